"""Charts over time: lines and the heat map."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import QuadMesh

import latencykit as lk
from latencykit import plot
from latencykit.core.blocks import MemoryPart, block_of_rows
from latencykit.plot.heatmap_chart import grid
from latencykit.plot.label_layout import EndLabels
from latencykit.plot.timeline_chart import as_log, envelope, failures, intervals_of
from latencykit.units import format_value
from latencykit.views.page_data import page_bins, started
from tests.conftest import log_of_values
from tests.plot.conftest import assert_tidy, drawn, lines_of, log_of, says, words_of


def test_each_interval_is_a_step_and_a_gap_is_a_gap(ax, raw):
    plot.timeline(raw, ax=ax)
    top = lines_of(ax)["max"]
    assert list(lines_of(ax)) == ["max", "p99", "p50"]
    assert np.nanmax(top.get_ydata()) == raw.histogram().max
    x, y = np.asarray(top.get_xdata()), np.asarray(top.get_ydata())
    assert np.isnan(y).any()
    assert not np.isfinite(y[(x > 7.5) & (x < 11.5)]).any()
    assert np.nanmin(y) > 0


@pytest.mark.parametrize("step", [1, 7])
def test_a_coarse_clock_leaves_no_gaps(step):
    rng = np.random.default_rng(1)
    start = np.sort(rng.uniform(0, 119, 24_000)) * 1e9
    duration = np.rint(1e3 * rng.lognormal(-4, 0.6, 24_000)).astype(np.int64) * 10**6
    end = (start / 1e9 // step).astype(np.int64) * step * 10**9
    samples = lk.Samples(start=end - duration, duration=duration)
    for log in (as_log("", samples), started(samples)):
        count = np.array([part.count for part in log])
        assert count[1:-1].min() > 0.7 * np.median(count)
        assert count.max() < 1.3 * np.median(count)
    figure = drawn(plot.timeline, samples)
    (strip,) = figure.axes[0].child_axes
    assert np.nanmax(lines_of(strip)["rate"].get_ydata()) < 280


def test_a_clock_of_milliseconds_leaves_no_gaps_between_short_intervals():
    log = log_of_values([[10**6] * 3] * 50, np.arange(50) * 0.011, np.full(50, 0.01))
    assert not intervals_of(log, [50]).gap.any()


def test_values_are_the_logs_own():
    log = log_of(20, 150)
    table = log.by_interval([99])
    intervals = intervals_of(log, [99])
    assert intervals.values[99].tolist() == table["p99"].tolist()
    assert intervals.values[100.0].tolist() == table["max"].tolist()
    assert intervals.rate.tolist() == [150.0] * 20


def test_percentiles_of_few_requests_are_those_of_longer_bins():
    log = log_of(40, 10)
    intervals = intervals_of(log, [99, 50])
    tens = log.resample("10s").by_interval([99])
    assert intervals.values[99].tolist() == np.repeat(tens["p99"], 10).tolist()
    assert intervals.values[50].tolist() == log.by_interval([50])["p50"].tolist()
    assert np.isnan(intervals_of(log_of(5, 10), [99]).values[99]).all()  # p99 of 50 requests
    for chart in (plot.timeline, plot.dashboard):
        assert says(drawn(chart, log), "intervals: 10 s for p99, 1 s for max")
    assert not says(drawn(plot.timeline, log_of(5, 10)), "intervals")


def test_the_rest_in_which_a_run_ends_does_not_leap():
    rng = np.random.default_rng(4)
    start = np.concatenate((rng.random(3000) * 20, [20.01, 20.02, 20.03]))
    run = lk.Samples(start=np.sort(start) * 1e9, duration=rng.lognormal(14, 0.5, start.size))
    values = intervals_of(run.to_log("1s"), [50]).values
    assert np.isnan(values[50]).tolist() == [False] * 20 + [True]
    assert np.isnan(values[100.0]).tolist() == [False] * 20 + [True]
    slow = lk.Samples(start=run.start, duration=np.append(run.duration[:-1], 10**9))
    values = intervals_of(slow.to_log("1s"), [50]).values
    assert np.nanmax(values[100.0]) >= 10**9  # nothing is lost


def test_a_long_timeline_loses_no_spike_and_few_points_are_drawn(ax):
    values = np.full((86_400, 3), 1_000_000, np.int64)
    values[[12_345, 70_000], 0] = 5_000_000_000, 1_000
    plot.timeline(log_of_values(values), ax=ax, percentiles=[99, 1])
    named = lines_of(ax)
    assert len(named["max"].get_xdata()) < 4000
    top = int(np.nanargmax(named["max"].get_ydata()))
    assert named["max"].get_ydata()[top] >= 5_000_000_000
    assert named["max"].get_xdata()[top] == pytest.approx(12_345, abs=200)
    lowest = min(path.vertices[:, 1].min() for one in ax.collections for path in one.get_paths())
    assert lowest == pytest.approx(1000, rel=0.01)


def test_columns_hold_the_extremes_of_their_intervals():
    random = np.random.default_rng(2)
    intervals = intervals_of(log_of(1000, 20), [50])
    value = random.random(1000)
    value[::7] = np.nan
    found = envelope(intervals, value, 64)
    assert found.start.size == 64
    assert found.merged == 16
    for k in (0, 10, 63):
        start = intervals.start + 1e-6
        inside = (start >= found.start[k]) & (start < found.end[k])
        assert found.high[k] == np.nanmax(value[inside])
        assert found.low[k] == np.nanmin(value[inside])
    assert envelope(intervals, value, 1000).merged == 1


def test_intervals_of_many_tags_are_summed():
    logs = [log_of(7, 10, seed=k).with_tag(f"/{k}") for k in range(12)]
    together = lk.merge(logs, align="relative")
    intervals = intervals_of(together, [50])
    assert (intervals.start.size, intervals.typical) == (7, 1.0)
    assert intervals.count.tolist() == [120.0] * 7
    slots = page_bins(together)
    assert (slots.end - slots.start).tolist() == [1.0] * 7


def test_the_strip_shows_the_rate_below_the_lines(ax, raw):
    plot.timeline(raw, ax=ax)
    (strip,) = ax.child_axes
    rate = strip.get_lines()[0].get_ydata()
    assert np.nanmax(rate) == pytest.approx(500, rel=0.05)
    assert "500/s" in [label.get_text() for label in strip.get_yticklabels()]
    lowest = min(np.nanmin(line.get_ydata()) for line in ax.get_lines())
    height = ax.transData.transform((0, lowest))[1]
    assert height > strip.get_window_extent().y1
    ax.clear()
    plot.timeline(raw, ax=ax, rate=False)
    assert not ax.child_axes


def test_failures_are_counted_where_they_happened():
    start = np.arange(100, dtype=np.int64) * 100_000_000
    outcome = np.where((np.arange(100) >= 50) & (np.arange(100) < 60), "error", "ok")
    samples = lk.Samples(start=start, duration=np.full(100, 1_000_000), outcome=outcome)
    intervals = intervals_of(as_log("", samples), [50])
    bad = failures(samples, intervals)
    assert (bad * (intervals.end - intervals.start)).sum() == pytest.approx(10)
    assert not bad[intervals.end < 5.0].any()
    assert failures(log_of(5, 5), intervals) is None
    late = lk.Samples(start=start, duration=samples.duration, outcome=["timeout", *outcome[1:]])
    assert "max ≥ 1 ms" in words_of(drawn(plot.timeline, late))
    assert "longest reply 1 ms" in words_of(drawn(plot.heatmap, late))


@pytest.mark.slow
def test_stalls_are_shaded_and_labelled(raw):
    table = pd.DataFrame({"start": [6.7], "end": [12.7], "worst": [6e9], "missing": [3000]})
    for stalls in ([(6.7, 12.7, 3000)], table):
        figure = drawn(plot.timeline, raw, stalls=stalls)
        assert "stall 6 s · ~3,000 requests missing" in words_of(figure)
        assert_tidy(figure)


@pytest.mark.slow
@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("shape", [(800, 450), (500, 280), (1600, 900)])
def test_many_series_have_lanes_with_the_highest_maximum_at_the_top(twelve_logs, shape, log):
    figure = drawn(plot.timeline, twelve_logs, *shape, log=log, slo=[(100, 2e7)])
    (ax,) = figure.axes
    order = sorted(twelve_logs, key=lambda label: -twelve_logs[label].max)
    for k, label in enumerate(order):
        values = lines_of(ax)[label].get_ydata()
        assert 11 - k <= np.nanmin(values) < np.nanmax(values) <= 12 - k
    (names,) = [own for own in ax.artists if isinstance(own, EndLabels)]
    named = [text.get_text().split()[0] for text in names.texts]
    assert named == order[:: 2 if shape[1] == 280 else 1]
    assert names.texts[0].get_text().endswith(f"max {format_value(twelve_logs[order[0]].max)}")
    assert [line.get_label() for line in ax.get_lines()].count("_slo") == 12
    assert_tidy(figure)


def test_a_lane_has_the_scale_of_the_values():
    logs = {str(k): log_of_values([[10**6] * 200, [10 ** (6 + k)] * 200], [0, 1]) for k in range(5)}
    lines = lines_of(drawn(plot.timeline, logs).axes[0])
    rise = [np.ptp(lines[str(k)].get_ydata()[[0, 3]]) for k in range(5)]
    assert np.allclose(rise, np.arange(5) * rise[1], rtol=2e-3)
    ends = [(lines[str(k)].get_ydata().min(), lines[str(k)].get_ydata().max()) for k in range(5)]
    assert all(k <= low <= high <= k + 1 for k, (low, high) in enumerate(ends))


def test_the_slo_is_a_line_with_its_limit(raw):
    figure = drawn(plot.timeline, raw, slo=[(99, 1e6), (100, 1e9)])
    assert "SLO max 1 s" in words_of(figure)
    assert set(lines_of(figure.axes[0])["_slo"].get_ydata()) == {1e9}


def test_what_knows_no_time_has_no_timeline(ax, raw):
    with pytest.raises(lk.DataNotAvailableError, match="a: this source has no times"):
        plot.timeline({"a": raw.histogram()}, ax=ax)
    failed = lk.Samples(start=[0, 9], duration=[1, 1], outcome=["error"] * 2, unit="s")
    for nothing in (raw.between(1e6, 2e6), failed, failed.between(1, 2)):
        with pytest.raises(lk.DataNotAvailableError, match="nothing was counted"):
            plot.timeline(nothing, ax=ax)


def test_the_clock_is_reported_where_it_is_known(raw):
    assert says(drawn(plot.timeline, raw), "UTC")
    assert not says(drawn(plot.timeline, log_of(5, 5)), "UTC")


# ---------------------------------------------------------------- the heat map


def test_every_request_is_counted_once(raw):
    cells = grid(raw)
    assert np.nansum(cells.counts) == pytest.approx(6852)
    assert (cells.values.size - 1, cells.times.size - 1) == cells.counts.shape
    assert np.nanmax(cells.top) == raw.histogram().max


def test_many_intervals_share_columns_without_losing_any():
    log = log_of(3000, 5, gap=(1000, 1100))
    cells = grid(log, columns=100)
    assert np.nansum(cells.counts) == pytest.approx(2900 * 5)
    assert cells.counts.shape[1] == 100
    assert np.nanmax(cells.top) == log.histogram().max
    assert np.flatnonzero(np.isnan(cells.counts).all(axis=0)).tolist() == [34, 35]  # the gap
    assert grid(log.between(1500, 3000), columns=100).times[[0, -1]] == pytest.approx([1500, 3000])


def test_wide_buckets_fill_the_rows_that_they_cover():
    layout = lk.EdgeBuckets([0, 1e3, 1e6], [1e3, 1e6, 1e9])
    block = block_of_rows(np.zeros(30, np.int64), np.repeat([0, 1, 2], 10), 1, layout)
    cells = grid(lk.HistogramLog([0], [1], [MemoryPart([block])]))
    assert cells.counts.sum() == pytest.approx(30)
    middle = (cells.values[:-1] > 1.1e3) & (cells.values[1:] < 0.9e6)
    assert np.ptp(cells.counts[middle, 0]) == pytest.approx(0.0, abs=1e-9)
    assert cells.counts[middle, 0].sum() == pytest.approx(10, rel=0.1)


def test_zeros_have_a_row_of_their_own_labelled_0():
    values = np.concatenate([np.zeros(100), np.full(300, 208415971)]).astype(np.int64)
    samples = lk.Samples(start=np.arange(400) * 10_000_000, duration=values)
    cells = grid(samples.to_log("1s"))
    assert cells.zeros
    assert cells.counts[0].sum() == 100
    for chart in (plot.timeline, plot.heatmap):
        figure = drawn(chart, samples)
        assert "max 208 ms" in words_of(figure)  # not the 209 ms of its bucket
        assert "0" in [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert_tidy(figure)


def test_the_image_shows_each_cell_where_it_lies(raw):
    figure = drawn(plot.heatmap, raw, slo=[(99, 1e6)])
    ax = figure.axes[0]
    pixels, cells = np.asarray(figure.canvas.buffer_rgba())[::-1].astype(int), grid(raw)
    busiest, highest = int(np.argmax(cells.counts[:, 0])), int(np.nanargmax(cells.top))
    for row, column in ((busiest, 0), (len(cells.counts) - 1, highest)):
        middle = cells.times[column : column + 2].mean()
        height = np.sqrt(cells.values[row : row + 2].prod())
        x, y = ax.transData.transform((middle, height))
        assert np.ptp(pixels[int(y), int(x), :3]) > 20  # blue
    assert ax.get_yscale() == "log"
    x, y = ax.transData.transform((9.5, 3e6))
    assert np.ptp(pixels[int(y), int(x), :3]) < 20  # grey


@pytest.mark.parametrize(
    ("later", "label", "columns"),
    [
        (None, "total of 2 series", 40),
        (20, "total of 2 series", 60),
        (10_000, "total of 2 series, each from its start", 40),
    ],
)
def test_of_several_series_the_total_is_drawn_and_named(later, label, columns):
    logs = {"a": log_of(40, 200), "b": log_of(40, 100)}
    if later is not None:
        starts = {"a": 1_767_268_800.0, "b": 1_767_268_800.0 + later}
        logs = {name: log.with_run(start=starts[name]) for name, log in logs.items()}
    figure = drawn(plot.heatmap, logs)
    assert any(text.startswith(f"{label} · 12,000 requests") for text in words_of(figure))
    (image,) = [one for one in figure.axes[0].collections if isinstance(one, QuadMesh)]
    assert image.get_array().shape[1] == columns
    assert np.allclose(image.get_array().sum(0), 1)


def test_series_without_a_total_or_times_are_refused(raw, ax):
    sides = {name: raw.with_run(measure=name) for name in ("service", "response")}
    with pytest.raises(lk.IncompatibleDataError, match="cannot be merged"):
        plot.heatmap(sides, ax=ax)
    with pytest.raises(lk.DataNotAvailableError, match="b: this source has no times"):
        plot.heatmap({"a": raw, "b": raw.histogram()}, ax=ax)
    with pytest.raises(lk.DataNotAvailableError, match="has no times"):
        plot.heatmap(raw.histogram(), ax=ax)
