"""Charts of ranges: an area between edges, points for reported numbers, no line elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit import plot
from latencykit.plot.curves import band_ends, curve_of
from latencykit.views.terminal import terminal_chart
from tests.plot.conftest import assert_tidy, drawn, lines_named, words_of

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
    said = " ".join(words_of(figure))
    assert "the file gives only a range" in said


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
