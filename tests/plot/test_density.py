"""Densities, and what wide buckets leave of any chart."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit import plot
from latencykit.plot.curves import band_ends, curve_of, end_words
from latencykit.plot.density_chart import shares
from latencykit.plot.label_layout import EndLabels
from latencykit.views.terminal import terminal_chart
from tests.conftest import DATA
from tests.plot.conftest import assert_tidy, drawn, lines_named, lines_of, says, words_of


def test_a_bucket_across_an_edge_is_divided():
    h = lk.Histogram.from_buckets([100, 400], [400, 900], [10, 30])
    parts = shares(h, np.array([100.0, 200, 400, 600, 900])).tolist()
    assert parts == pytest.approx([0.125, 0.125, 0.375, 0.375])


def test_a_wide_bucket_is_flat_on_the_axis():
    data = lk.Histogram.from_buckets([1e6, 4e6], [4e6, 8e6], [600, 200])
    part = shares(data, np.geomspace(1e6, 8e6, 31))
    np.testing.assert_allclose(part[:20], part[0])
    np.testing.assert_allclose(part[20:], part[20])
    assert part[0] > part[20]


def test_both_modes_are_named_with_their_shares():
    random = np.random.default_rng(1)
    values = [random.lognormal(13.8, 0.2, 9000), random.lognormal(17.5, 0.2, 3000)]
    words = words_of(drawn(plot.density, lk.Histogram.of(np.concatenate(values))))
    assert {"980 µs  75 %", "40 ms  25 %"} <= set(words)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(800, 450), (500, 280)])
def test_many_series_have_lanes_in_their_order(twelve, shape):
    figure = drawn(plot.density, twelve, *shape)
    (ax,) = figure.axes
    lines = lines_of(ax)
    for k, label in enumerate(twelve):
        values = lines[label].get_ydata()
        assert values.min() == 11 - k
        assert 11.2 - k < values.max() <= 12 - k
    (names,) = [own for own in ax.artists if isinstance(own, EndLabels)]
    named = [text.get_text().split()[0] for text in names.texts]
    assert named == list(twelve)[:: 1 if shape[1] == 450 else 2]
    assert_tidy(figure)


def test_zeros_are_a_bar_at_0():
    (ax,) = drawn(plot.density, lk.Histogram.of([0] * 250 + [10**6] * 750)).axes
    assert "0" in [label.get_text() for label in ax.get_xticklabels()]
    (bar,) = [line for line in ax.get_lines() if line.get_linewidth() == 5]
    assert max(bar.get_ydata()) == 0.25
    assert shares(lk.Histogram.of([0] * 250 + [10**6] * 750), np.array([1.0, 1e7])) == [0.75]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["density", "ccdf", "dashboard", "percentiles"])
def test_nothing_but_zeros_stands_at_0(kind):
    zeros = lk.Histogram.of(np.zeros(3, dtype=np.int64))
    for data in (zeros, {"zeros": zeros, "others": lk.Histogram.of(np.full(9, 10**6))}):
        figure = drawn(getattr(plot, kind), data)
        axes = [ax for ax in figure.axes if ax.get_xscale() == "log"]
        for line in (line for ax in axes for line in ax.get_lines()):
            at = np.asarray(line.get_xdata(), dtype=float)
            assert (at[np.isfinite(at)] > 0).all(), line.get_label()


@pytest.mark.parametrize("limit", [1e3, 1e7, 1e12])
@pytest.mark.parametrize("kind", ["density", "ccdf", "heatmap", "timeline"])
def test_a_limit_is_within_the_axes(raw, kind, limit):
    figure = drawn(getattr(plot, kind), raw, slo=[(99, limit)])
    ax, along = figure.axes[0], "x" if kind in ("density", "ccdf") else "y"
    (line,) = lines_named(ax, "_slo")
    assert set(getattr(line, f"get_{along}data")()) == {limit}
    low, high = getattr(ax, f"get_{along}lim")()
    assert low < limit < high
    assert kind != "ccdf" or line.get_ydata() == [pytest.approx(0.01)]
    assert_tidy(figure)


@pytest.mark.parametrize(("chart", "part"), [(plot.density, "density"), (plot.ccdf, "tail")])
def test_a_summary_has_neither(ax, chart, part):
    with pytest.raises(lk.DataNotAvailableError, match=f"its {part} is unknown"):
        chart(lk.Summary({"mean": 1.0}), ax=ax)


# ------------------------------------------------------------ the tail


def test_what_is_above_a_value_is_above_every_one_up_to_the_next(ax):
    h = lk.Histogram.of([10, 10, 20, 1000])
    plot.ccdf(h, ax=ax)
    x, y = np.concatenate([line.get_path().vertices for line in ax.get_lines()[:2]]).T
    assert all(line.get_drawstyle() == "steps-post" for line in ax.get_lines()[:2])
    for value, share in ((12, 0.5), (19, 0.5), (25, 0.25), (900, 0.25)):
        k = int(np.searchsorted(x, value, "left"))
        assert max(y[k - 1], y[k]) >= share - 1e-9
        assert min(y[k - 1], y[k]) == pytest.approx(share)


def test_the_band_is_that_of_the_percentiles(ax, raw):
    plot.ccdf(raw.histogram(), ax=ax, confidence=0.95)
    (band,) = ax.collections
    least = 1 - raw.histogram().sample_limit() / 100
    # as that of the percentiles, to the dashes
    assert band.get_paths()[0].vertices[:, 1].min() == pytest.approx(least)


@pytest.mark.parametrize(
    ("high", "censored", "mark"), [(20, 0, ["v"]), (400, 0, []), (20, 3, [">"])]
)
def test_a_mark_at_the_end_says_what_is_known_of_the_maximum(ax, high, censored, mark):
    late = {"censored": censored, "censored_at": 20.0}
    plot.ccdf(lk.Histogram.from_buckets([1, 19], [10, high], [50, 50], **late), ax=ax)
    assert [line.get_marker() for line in ax.get_lines() if line.get_marker() in "v>"] == mark


# ---------------------------------------------------------------- wide buckets

PRINTED = (50.0, 90.0, 99.0)


def of_tool(scale=1.0):
    values = np.random.default_rng(1).lognormal(14, 1, 5000) * scale
    stats = {"min": float(values.min()), "max": float(values.max())}
    shown = np.percentile(values, PRINTED).tolist()
    return lk.Histogram.from_percentiles(PRINTED, shown, values.size, reported_stats=stats)


def of_buckets():
    edges = np.concatenate(([0.0], 1e5 * 2.0 ** np.arange(12)))
    values = np.random.default_rng(2).lognormal(14, 1, 5000)
    return lk.Histogram.from_buckets(edges[:-1], edges[1:], np.histogram(values, edges)[0])


def solid_points(ax):
    """Percentiles and values through which a line of a series runs, its thin edges apart."""
    lines = [
        line
        for line in ax.get_lines()
        if line.get_label() not in ("_edge", "_printed", "_slo") and line.get_marker() == "None"
    ]
    corners = np.concatenate([line.get_path().vertices for line in lines])
    return corners[np.isfinite(corners).all(axis=1)]


@pytest.mark.parametrize("data", [of_tool(), of_buckets()], ids=["reported_percentiles", "buckets"])
@pytest.mark.parametrize("kind", [plot.percentiles, plot.ccdf])
def test_no_line_runs_where_the_file_gives_only_a_range(ax, data, kind):
    kind(data, ax=ax)
    assert not curve_of(data).resolved.any()
    assert solid_points(ax).shape[0] <= 1  # a corner that no line leads to or from
    (area, *_) = ax.collections
    assert len(area.get_paths()[0].vertices) > 8


def test_the_area_reaches_from_edge_to_edge(ax):
    data = of_buckets()
    plot.percentiles(data, ax=ax)
    lower, upper = (line for line in ax.get_lines() if line.get_label() == "_edge")
    curve = curve_of(data)
    for p in (10.0, 50.0, 90.0, 99.0):
        (row,) = data.percentile_rows([p])
        at = int(np.searchsorted(curve.percentile, p))
        assert upper.get_ydata()[at] == row.bucket_high
        assert lower.get_ydata()[at] == max(row.bucket_low, lower.get_ydata()[0])


def test_printed_percentiles_are_points(ax):
    data = of_tool()
    plot.percentiles(data, ax=ax)
    (points,) = lines_named(ax, "_printed")
    assert points.get_xdata().tolist() == list(PRINTED)
    assert points.get_ydata().tolist() == data.percentile(list(PRINTED)).tolist()


@pytest.mark.parametrize("source", ["raw", "reported_percentiles", "buckets"])
def test_every_curve_lies_inside_its_own_band(raw, source):
    sources = {"raw": raw.histogram(), "reported_percentiles": of_tool(), "buckets": of_buckets()}
    data = sources[source]
    curve = curve_of(data)
    grid, low, high = band_ends(data.evidence(), curve, 0.95, 12)
    own = curve.percentile[curve.percentile <= curve.limit]
    every = np.unique(np.append(np.linspace(0, curve.limit, 5000), own))
    # the band holds its ends up to each of its percentiles
    step = np.searchsorted(grid, every, "left")
    inside = step < grid.size
    assert inside.sum() > 4000
    value = curve.at(every)[inside]
    assert (low[step[inside]] <= value).all()
    assert (value <= high[step[inside]]).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [plot.percentiles, plot.ccdf, plot.dashboard, plot.density])
@pytest.mark.parametrize("number", [1, 2, 12])
def test_ranges_are_tidy_at_one_two_and_twelve_series(kind, number):
    data = {f"run {k}": of_tool(1 + k / 5) for k in range(number)}
    figure = drawn(kind, data, 1000, 600)
    assert_tidy(figure)
    assert says(figure, "the file gives only a range")


def test_no_mode_is_named_where_a_bucket_only_spreads_its_requests(ax):
    plot.density(of_tool(), ax=ax)
    named = {word for word in words_of(ax.figure) if word.endswith(" ms")}
    ticks = {tick.get_text() for tick in ax.get_xticklabels()}
    assert {word for word in named if not word.startswith("max")} <= ticks


def test_a_terminal_draws_both_edges():
    pair = of_tool(), lk.Histogram.of([1_000_000, 9_000_000])
    wide, fine = (terminal_chart(data, colour=False) for data in pair)
    assert "two lines: a range" in wide
    assert "two lines" not in fine
    assert max(map(len, wide.splitlines())) <= 80


def test_a_load_curve_draws_bars_for_ranges(ax):
    runs = {
        str(rate): of_buckets().with_run(rate=float(rate), achieved=float(rate))
        for rate in (100, 200, 400)
    }
    plot.load_curve(runs, ax=ax)
    drawn_lines = lines_named(ax, "p50")
    assert all(np.size(line.get_ydata()) == 0 for line in drawn_lines)
    paths = [path for bars in ax.collections for path in bars.get_paths()]
    heights = np.concatenate([path.vertices[:, 1] for path in paths])
    (row,) = of_buckets().percentile_rows([50])
    assert {row.bucket_low, row.bucket_high} <= set(heights.tolist())


def test_the_end_of_a_curve_is_the_maximum_that_a_tool_reports_beside_rounded_percentiles():
    series = lk.read_all(DATA / "formats/locust-json/throughput/stdout.txt")
    assert (
        end_words(curve_of(series["GET /var"])) == "max 12.2 ms"
    )  # as `summary` has it; p100 is 12
