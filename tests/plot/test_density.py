"""The density chart."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit import plot
from latencykit.errors import DataNotAvailableError
from latencykit.plot.density_chart import shares
from latencykit.plot.label_layout import EndLabels
from tests.plot.conftest import assert_tidy, drawn, lines_named, lines_of, words_of


def test_shares_add_up_to_one(raw):
    assert shares(raw.histogram(), np.geomspace(1e3, 1e11, 100)).sum() == pytest.approx(1.0)


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["density", "ccdf", "dashboard", "percentiles"])
def test_nothing_but_zeros_stands_at_0(kind):
    zeros = lk.Histogram.of(np.zeros(3, dtype=np.int64))
    for data in (zeros, {"zeros": zeros, "others": lk.Histogram.of(np.full(9, 10**6))}):
        figure = drawn(getattr(plot, kind), data)
        figure.canvas.draw()
        axes = [ax for ax in figure.axes if ax.get_xscale() == "log"]
        for line in (line for ax in axes for line in ax.get_lines()):
            at = np.asarray(line.get_xdata(), dtype=float)
            assert (at[np.isfinite(at)] > 0).all(), line.get_label()


def test_limits_are_upright_lines(ax, raw):
    plot.density(raw, ax=ax, slo=[(99, 1e7)])
    (line,) = lines_named(ax, "_slo")
    assert set(line.get_xdata()) == {1e7}


def test_a_summary_has_no_density(ax):
    with pytest.raises(DataNotAvailableError, match="its density is unknown"):
        plot.density(lk.Summary({"mean": 1.0}), ax=ax)
