"""The percentile chart and its curves, looked at through its artists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PolyCollection
from matplotlib.colors import same_color
from matplotlib.figure import Figure

import latencykit as lk
from latencykit import plot
from latencykit.plot.curves import curve_of
from latencykit.plot.series import as_series
from latencykit.plot.style import BLUE, INK, RED
from tests.conftest import SCHEDULED, log_of_values
from tests.plot.conftest import (
    assert_tidy,
    drawn,
    legend_words,
    lines_named,
    lines_of,
    says,
    words_of,
)


def test_solid_where_the_sample_supports_it_and_dotted_beyond(ax, raw):
    alone = replace(raw.histogram())  # without the log that it sums up
    plot.percentiles(alone, ax=ax)
    solid, dotted, mark = ax.get_lines()
    limit = alone.highest_supported_percentile()
    assert solid.get_drawstyle() == dotted.get_drawstyle() == "steps-pre"
    assert solid.get_xdata()[0] == 0
    assert solid.get_xdata()[-1] == pytest.approx(limit) == dotted.get_xdata()[0]
    assert solid.get_ydata()[-1] == dotted.get_ydata()[0] == raw.histogram().percentile(limit)
    assert (dotted.get_xdata()[-1], dotted.get_ydata()[-1]) == (100.0, raw.histogram().max)
    assert dotted.is_dashed()
    assert not solid.is_dashed()
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (100.0, raw.histogram().max)


def test_the_maximum_and_the_limit_of_trust_are_said(raw):
    words = words_of(drawn(plot.percentiles, raw))
    assert "max 6 s" in words
    assert "percentile of requests (grey: too few requests above p99.85)" in words
    assert any(word.startswith("uncorrected.hlog: p50 ") for word in words)
    assert any(word.startswith("6,852 requests in 21 s") for word in words)


def test_grey_is_explained_where_there_is_some():
    many = lk.Histogram.of(np.random.default_rng(1).lognormal(14, 0.5, 1_000_000))
    ax = drawn(plot.percentiles, many, nines=3).axes[0]
    assert (ax.get_xlabel(), len(ax.patches)) == ("percentile of requests", 0)
    few = {str(k): lk.Histogram.of(range(k, 1000)) for k in range(5)}
    figure = drawn(plot.percentiles, few, 330, 280)
    words = "percentile of requests\n(grey: too few requests above p99)"
    assert figure.axes[0].get_xlabel() == words
    assert_tidy(figure)


def test_raw_is_red_corrected_is_blue_and_the_finding_is_the_title(pair):
    figure = drawn(plot.percentiles, pair)
    (ax,) = figure.axes
    named = lines_of(ax)
    assert same_color(named["as measured (raw)"].get_color(), RED)
    assert same_color(named["from the schedule"].get_color(), BLUE)
    assert any(word.startswith("Two stories: p") for word in words_of(figure))


@pytest.mark.slow
def test_many_series_have_a_legend_outside_in_the_order_in_which_they_end(twelve):
    figure = drawn(plot.percentiles, twelve)
    (ax,) = figure.axes
    order = sorted(twelve, key=lambda label: -twelve[label].max)
    assert [words.split()[0] for words in legend_words(figure)] == order
    assert all("max" in words for words in legend_words(figure))
    assert ax.get_legend().get_window_extent().x0 > ax.get_window_extent().x1


@pytest.mark.slow
def test_a_legend_too_long_for_the_chart_counts_the_rest():
    data = {f"host-{k}": lk.Histogram.of([1000 + k]) for k in range(80)}
    figure = drawn(plot.percentiles, data)
    words = legend_words(figure)
    assert len(words) < 40
    assert words[-1] == f"and {80 - len(words) + 1} more"
    assert_tidy(figure)
    small = drawn(plot.percentiles, {key * 5: one for key, one in data.items()}, 400)
    assert small.axes[0].bbox.width > 0.2 * small.bbox.width


def test_a_legend_finds_room_without_a_layout_engine(twelve):
    figure = Figure(figsize=(6.4, 4.8))
    ax = plot.percentiles(twelve, ax=figure.add_subplot())
    figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_the_slo_is_a_staircase(ax, raw):
    plot.percentiles(raw, ax=ax, slo=[(99, 1e7), (90, 1e6)])
    (stairs,) = lines_named(ax, "_slo")
    assert stairs.get_drawstyle() == "steps-pre"
    assert stairs.get_xdata().tolist() == [0, 90, 99]
    assert stairs.get_ydata().tolist() == [1e6, 1e6, 1e7]


@pytest.mark.parametrize("slo", ["99=500us, max=1s, mean=3ms", lk.SLO.parse("99=500us, max=1s")])
def test_an_slo_is_drawn_whether_parsed_or_not(raw, slo):
    figure = drawn(plot.percentiles, raw, slo=slo)
    assert says(figure, "misses its SLO: max is 6 s, limit 1 s")


@pytest.mark.slow
def test_a_curve_is_dashed_where_one_stall_bears_it(raw):
    scheduled = lk.read(SCHEDULED)
    figure = drawn(plot.percentiles, {"a": scheduled}, confidence=0.95)
    assert says(figure, "dashed: uncertain (one slow period")
    assert says(figure, "band: 95 % interval")
    dashed = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    start, end = dashed[0].get_xdata()[[0, -1]]
    assert start < 50  # the 6 s took about a third of all requests
    assert end == pytest.approx(scheduled.histogram().sample_limit())
    band = next(one for one in figure.axes[0].collections if isinstance(one, PolyCollection))
    assert band.get_datalim(figure.axes[0].transData).x1 <= end + 1e-9
    total = words_of(drawn(plot.percentiles, raw.histogram()))
    assert any("dashed" in word for word in total)  # it knows the run that it sums up
    assert not any("band" in word for word in total)
    assert not says(drawn(plot.percentiles, {"a": scheduled}, dashed_from={}), "dashed")


@pytest.mark.slow
def test_an_slo_is_judged_as_check_judges_it(raw):
    for percentile, limit in ((95, 1e8), (99.97, 1e8), (99, 1e5)):
        (row,) = lk.SLO.parse(f"{percentile}={limit:.0f}ns").check(raw)
        words = words_of(drawn(plot.percentiles, raw, slo=[(percentile, limit)]))
        assert any("meets its SLO" in word for word in words) == (row.outcome == "met")


@pytest.mark.slow
def test_the_band_ends_where_the_sample_does_and_opens_to_the_maximum(ax, raw):
    plot.percentiles(raw.histogram(), ax=ax, confidence=0.95)
    (band,) = [one for one in ax.collections if isinstance(one, PolyCollection)]
    (path,) = band.get_paths()
    assert path.vertices[:, 0].max() == pytest.approx(raw.histogram().sample_limit())
    rows = raw.histogram().percentile_rows([50.0])
    low, high = rows[0].low, rows[0].high
    near = path.vertices[np.abs(path.vertices[:, 0] - 50) < 1.5]
    assert near[:, 1].min() <= low * 1.05
    assert near[:, 1].max() >= high * 0.95
    alone = lk.Histogram.of(np.random.default_rng(1).lognormal(14, 0.4, 5000))
    other = plot.percentiles(alone, ax=ax.figure.add_subplot(), confidence=0.95)
    (band,) = [one for one in other.collections if isinstance(one, PolyCollection)]
    (path,) = band.get_paths()
    assert path.vertices[:, 0].max() == pytest.approx(alone.sample_limit())
    assert alone.percentile(99.8) < path.vertices[:, 1].max() <= alone.max


def test_censored_mass_is_drawn_as_at_least(raw):
    counted = np.array([1000]), np.array([92])
    h = lk.Histogram(lk.HdrBuckets(3), *counted, censored=8, censored_at=2e9)
    figure = drawn(plot.percentiles, h)
    (ax,) = figure.axes
    assert "≥ 2 s (8 requests)" in words_of(figure)
    assert ax.get_lines()[0].get_xdata().max() <= 92.0
    assert [line.get_marker() for line in ax.get_lines()][-1] == "^"


def test_zeros_have_a_place_on_a_logarithmic_axis():
    figure = drawn(plot.percentiles, lk.Histogram.of([0] * 300 + [10**6] * 700))
    (ax,) = figure.axes
    line = ax.get_lines()[0]
    assert ax.get_yticklabels()[0].get_text() == "0"
    floor = ax.get_yticks()[0]
    assert line.get_ydata()[line.get_xdata() <= 30].tolist() == [floor] * 2


def test_runs_are_thin_lines_with_their_range_and_median():
    random = np.random.default_rng(1)
    runs = {f"run {k}": lk.Histogram.of(random.lognormal(13, 0.5, 2000)) for k in range(5)}
    figure = drawn(plot.percentiles, runs, runs=True)
    (ax,) = figure.axes
    (median,) = lines_named(ax, "median of 5 runs")
    middle = np.sort([runs[label].percentile(99.0) for label in runs])[2]
    k = int(np.searchsorted(median.get_xdata(), 99.0))
    assert median.get_ydata()[k] == pytest.approx(middle, rel=0.02)
    assert same_color(median.get_color(), INK)
    assert "median of 5 runs" in words_of(figure)
    assert figure.axes[0].get_legend() is None
    assert_tidy(figure)


def test_wide_buckets_are_shaded(raw):
    stats = {"max": 2e7}
    h = lk.Histogram.from_percentiles([50, 90, 99], [1e6, 2e6, 9e6], 5000, reported_stats=stats)
    figure = drawn(plot.percentiles, h)
    (shade,) = [one for one in figure.axes[0].collections if isinstance(one, PolyCollection)]
    assert same_color(shade.get_facecolor()[0][:3], BLUE)
    assert says(figure, "shaded: the file gives only a range")


def test_a_summary_is_labelled_points_and_says_what_is_missing():
    run = lk.Run(source="s.txt", tool="ab")
    stats = {"min": 1e5, "mean": 1.2e6, "max": 9e6}
    summary = lk.Summary(stats, {50: 1e6, 99: 5e6}, 1000, run=run)
    figure = drawn(plot.percentiles, summary)
    (points,) = figure.axes[0].get_lines()
    assert points.get_linestyle() == "None"
    many = {p: p * 1e4 for p in range(100)}  # with a maximum of 0 among them, as some tools say
    page = drawn(
        plot.dashboard, {"a": lk.Summary({}, many), "0": lk.Summary({"max": 0.0}, {99: 0})}
    )
    assert_tidy(page)
    assert page.axes[0].child_axes[0].bbox.height == page.axes[0].bbox.height
    few = words_of(drawn(plot.dashboard, lk.Summary({"max": 1e6}, many)))
    assert {"p50", "p99", "max"} <= set(few)
    assert list(points.get_xdata()) == [0, 50, 99, 100.0]
    assert figure.axes[0].get_ylim()[0] < points.get_ydata()[0]
    assert {"p50 1 ms", "p99 5 ms", "max 9 ms"} <= set(words_of(figure))
    assert says(figure, "values between them are unknown")
    assert_tidy(figure)


@pytest.mark.parametrize("names", [("one",), ("one", "two"), tuple("abcdefghijk")])
def test_a_mean_alone_is_a_mark_at_the_axis_and_no_curve(names):
    run = lk.Run(source="go", tool="go test")
    means = {name: lk.Summary({"mean": 1e6 * 2**k}, run=run) for k, name in enumerate(names)}
    figure = drawn(plot.percentiles, means)
    lines = [line for line in figure.axes[0].get_lines() if line.get_linewidth() == 3]
    assert [set(line.get_ydata()) for line in lines] == [{1e6 * 2**k} for k in range(len(names))]
    assert max(line.get_xdata()[-1] for line in lines) < 0.05  # of the width of the axes
    assert says(figure, "mean 1 ms")
    assert says(figure, "means only; the distribution is unknown")


def test_a_table_of_percentiles_is_drawn_to_its_last_one_each_series_with_its_own_look(ax):
    levels = [50, 99, 99.9, 99.9999]
    rows = [{p: 1e6 * (n + 1 + k / 8) for n, p in enumerate(levels)} for k in range(16)]
    plot.percentiles({f"client {k}": lk.Summary({}, row) for k, row in enumerate(rows)}, ax=ax)
    assert ax.get_xticks()[-2] == 99.9999
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in ax.get_lines()}
    assert len(looks) == 16
    places = ax.transData.transform([line.get_xydata()[-1] for line in ax.get_lines()])
    assert places[:, 0].max() < ax.transAxes.transform((0.99, 0))[0]  # not at the place of 100 %


def test_an_empty_series_beside_others_is_named_not_hidden(raw):
    figure = drawn(plot.percentiles, {"a": raw, "b": lk.Histogram.of(np.zeros(0, np.int64))})
    assert says(figure, "nothing counted: b")
    with pytest.raises(lk.DataNotAvailableError, match="nothing was counted"):
        drawn(plot.percentiles, lk.Histogram.of(np.zeros(0, np.int64)))


@pytest.mark.slow
def test_hostile_labels_are_drawn_as_they_are(raw):
    data = {r"$\frac{": raw, "b\x1b[2J\nc": raw.histogram(), "x" * 300: raw}
    figure = drawn(plot.percentiles, data)
    assert_tidy(figure)
    assert not says(figure, "\x1b")


@pytest.mark.slow
def test_one_value_is_a_chart():
    assert_tidy(drawn(plot.percentiles, lk.Histogram.of([1_000_000])))
    assert_tidy(drawn(plot.percentiles, lk.Histogram.of([0, 0])))
    assert_tidy(drawn(plot.percentiles, lk.Histogram.of([3.5, 2.25], unit="none")))


# ---------------------------------------------------------------- curves


def test_a_curve_says_what_the_histogram_says(raw):
    h = raw.histogram()
    curve = curve_of(h)
    assert curve.percentile[-1] == 100.0
    assert curve.value[-1] == curve.top == h.max
    assert (np.diff(curve.value) >= 0).all()
    asked = [0.01, 10, 50, 90, 99, 99.9, 99.95, 99.98, 100]
    assert curve.at(asked).tolist() == h.percentile(asked).tolist()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=4000), st.integers(1, 5))
def test_thinning_never_flatters_and_keeps_both_ends(values, power):
    h = lk.Histogram.of(np.array(values, np.int64) ** power % 10**12)
    curve = curve_of(h)
    asked = np.concatenate([np.linspace(0.01, 100, 400), 100 - np.geomspace(1e-4, 10, 100)])
    reported_stats, shown = h.percentile(asked), curve.at(asked)
    assert (shown >= reported_stats).all()
    assert (curve.value[0], curve.top) == (h.percentile(1e-9), h.max)


def test_a_dense_histogram_is_thinned_without_moving_its_steps():
    values = np.random.default_rng(1).lognormal(16, 2, 100_000)
    h = lk.Histogram.of(np.append(values, np.zeros(3000)).astype(np.int64))
    curve = curve_of(h)
    assert curve.value.size < h.index.size
    share = 100 * 3000 / 103_000
    assert curve.at([share - 0.01])[0] == 0.0
    asked = np.linspace(share + 0.1, 99.5, 500)
    assert (curve.at(asked) >= h.percentile(asked)).all()
    assert (curve.at(asked) <= h.percentile(asked + 0.3)).all()


def test_censored_mass_ends_the_curve(raw):
    h = replace(raw.histogram(), censored=500, censored_at=1e7)
    curve = curve_of(h)
    assert (curve.bound, curve.top) == (1e7, h.max)  # as everywhere: max ≥ 6 s
    assert curve.percentile[-1] < 100
    assert curve.value[-1] <= 1e7
    assert curve.at([100.0])[0] == 1e7
    assert "≥ 6 s" in words_of(drawn(plot.dashboard, {"a": h, "b": raw}, 1000, 780))


def test_a_tagged_log_is_one_series_per_tag():
    tags = {"tag_code": [0, 1, 0, 1], "tag_names": ["", "get"]}
    log = log_of_values([[10], [20], [30], [40]], [0, 0, 1, 1], **tags)
    assert list(as_series(log)) == ["total", "untagged", "get"]
    assert list(as_series({"a": log, "b": log.tagged("get")})) == ["a", "b"]


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(lk.InvalidArgumentError, match="nothing to draw"):
        as_series({})
    with pytest.raises(lk.InvalidArgumentError, match="not list"):
        as_series([lk.Histogram.of([1])])
    with pytest.raises(lk.IncompatibleDataError, match="no axis in common"):
        as_series({"a": lk.Histogram.of([1]), "b": lk.Histogram.of([1], unit="none")})
