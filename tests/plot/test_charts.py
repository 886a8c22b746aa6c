"""Charts, looked at through their artists and arrays."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import latencykit as lk
from latencykit import plot
from latencykit.errors import NotHeldError
from latencykit.plot.curves import curve_of
from latencykit.plot.scale import PercentileTransform
from latencykit.plot.style import _apart, line_styles, log_ticks, plain
from latencykit.run import Run
from tests.conftest import DATA

CTRLZ = DATA / "hlog/hdrhistogram-java-ctrlz-a/uncorrected.hlog"


@pytest.fixture
def ax():
    return Figure(figsize=(10, 5.6)).add_subplot()


@pytest.fixture
def log():
    return lk.read(CTRLZ)


def test_the_percentile_scale_is_even_by_nines_and_ends_at_100(ax):
    ax.set_xscale("percentile", nines=6)
    ax.set_xlim(0, 100)
    ax.figure.canvas.draw()
    places = PercentileTransform(6).transform([0, 90, 99, 99.9, 99.9999, 100])
    assert np.allclose(places[:5], [0, 1, 2, 3, 6])
    assert places[5] > places[4]
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == ["0", "50", "90", "99", "99.9", "99.99", "99.999", "99.9999", "100 %"]


def test_the_scale_goes_there_and_back():
    percentiles = np.array([0, 10, 50, 99, 99.99, 99.9999, 100])
    way = PercentileTransform(6)
    assert np.allclose(way.inverted().transform(way.transform(percentiles)), percentiles, atol=1e-9)


def test_a_curve_is_a_step_function_up_to_the_maximum(log):
    h = log.histogram()
    curve = curve_of(h)
    assert curve.percentile[-1] == 100.0
    assert curve.value[-1] == curve.top == h.max
    assert (np.diff(curve.value) >= 0).all()
    for p in (10, 50, 99, 99.9, 99.99):
        assert curve.at(p) == h.percentile(p)


def test_solid_where_the_sample_supports_it_and_dotted_beyond(ax, log):
    plot.percentiles(log, ax=ax)
    solid, dotted = ax.get_lines()[:2]
    limit = log.histogram().highest_supported_percentile()
    assert solid.get_drawstyle() == dotted.get_drawstyle() == "steps-pre"
    assert solid.get_xdata()[-1] == pytest.approx(limit)
    assert dotted.get_xdata()[-1] == 100.0
    assert dotted.get_ydata()[-1] == log.histogram().max
    assert dotted.get_linestyle() != solid.get_linestyle()
    words = [text.get_text() for text in ax.texts]
    assert any("sample is too small" in word for word in words)
    assert any("max 6 s" in word for word in words)


def test_the_slo_is_a_staircase(ax, log):
    plot.percentiles(log, ax=ax, slo=[(90, 1e6), (99, 1e7)])
    stairs = ax.get_lines()[-1]
    assert stairs.get_xdata().tolist() == [0, 90, 99]
    assert stairs.get_ydata().tolist() == [1e6, 1e6, 1e7]


def test_a_mean_alone_is_drawn_as_one_line_that_says_so(ax):
    plot.percentiles(lk.Summary({"mean": 1e6}, run=Run(source="go")), ax=ax)
    assert any("a mean only" in text.get_text() for text in ax.texts)


def test_censored_mass_is_an_arrow_upwards(ax):
    h = lk.Histogram(lk.HdrBuckets(3), np.array([1000]), np.array([92]), censored=8, censored_at=2e9)
    plot.percentiles(h, ax=ax)
    assert any("≥ 2 s" in text.get_text() for text in ax.texts)
    assert ax.get_lines()[0].get_xdata().max() <= 92.0


def test_twelve_series_are_told_apart():
    styles = line_styles([f"host{k}" for k in range(12)])
    assert len({(style["color"], str(style["linestyle"])) for style in styles}) == 12


def test_labels_are_moved_apart_and_stay_inside():
    wanted = np.array([0.5, 0.5, 0.51, 0.9, 0.999])
    placed = _apart(wanted, 0.06)
    assert (np.diff(placed) >= 0.06 - 1e-9).all()
    assert placed.min() >= 0
    assert placed.max() <= 1 + 1e-9


def test_labels_of_twelve_equal_curves_do_not_overlap(ax):
    h = lk.Histogram.of([1_000_000] * 1000)
    plot.percentiles({f"host{k}": h for k in range(12)}, ax=ax)
    ax.figure.canvas.draw()
    places = sorted(text.xyann[1] for text in ax.texts if text.get_text().startswith("host"))
    height = 8.0 / (ax.get_window_extent().height * 72 / ax.figure.dpi)
    assert len(places) == 12
    assert np.diff(places).min() > height
    assert places[0] >= 0
    assert places[-1] <= 1


def test_foreign_text_is_never_mathematics():
    assert plain("$x^2$ \x1b[31m") == r"\$x^2\$ \x1b[31m"


def test_ticks_are_few_and_within_the_axis():
    for bottom, top in ((1e3, 1e10), (1e6, 3e6), (1e6, 1.2e6), (5, 5e17)):
        ticks = log_ticks(bottom, top)
        assert 2 <= len(ticks) <= 12
        assert all(bottom <= tick <= top for tick in ticks)


def test_the_timeline_breaks_where_nothing_was_counted(ax, log):
    plot.timeline(log, ax=ax)
    top = ax.get_lines()[0]
    assert np.isnan(top.get_ydata()).any()
    assert np.nanmax(top.get_ydata()) == log.histogram().max
    (strip,) = ax.child_axes
    assert np.nanmax(strip.get_lines()[0].get_ydata()) == pytest.approx(500, rel=0.05)


def test_a_long_timeline_loses_no_spike(ax):
    from latencykit.blocks import MemoryPart, block_of_rows

    size, layout = 20_000, lk.HdrBuckets(3)
    rows = np.repeat(np.arange(size), 3)
    values = np.full(rows.size, 1_000_000)
    values[12_345 * 3] = 5_000_000_000
    block = block_of_rows(rows, layout.index_of(values), size, layout)
    long = lk.HistogramLog(np.arange(size), np.ones(size), [MemoryPart([block])])
    plot.timeline(long, ax=ax)
    top = ax.get_lines()[0]
    assert len(top.get_xdata()) < 4000
    assert np.nanmax(top.get_ydata()) >= 5_000_000_000


def test_stalls_are_shaded_and_labelled(ax, log):
    plot.timeline(log, ax=ax, stalls=[(6.7, 12.7, 3000)])
    assert any(text.get_text() == "stall 6 s · ~3,000 requests missing" for text in ax.texts)


def test_the_heat_map_counts_every_request(log):
    from latencykit.plot.heatmap import grid

    times, values, counts = grid(log)
    assert counts.sum() == 6852
    assert (times.size, values.size) == (counts.shape[1] + 1, counts.shape[0] + 1)


def test_density_shares_add_up_to_one(log):
    from latencykit.plot.density import shares

    edges = np.geomspace(1e3, 1e11, 100)
    assert shares(log.histogram(), edges).sum() == pytest.approx(1.0)


def test_a_histogram_has_no_timeline(ax, log):
    with pytest.raises(NotHeldError, match="knows no time"):
        plot.timeline(log.histogram(), ax=ax)


def test_charts_leave_global_settings_alone(ax, log):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    for chart in (plot.percentiles, plot.timeline, plot.heatmap, plot.density, plot.ccdf, plot.dashboard):
        assert chart(log, ax=Figure(figsize=(9, 6)).add_subplot()) is not None
    assert dict(mpl.rcParams) == before
