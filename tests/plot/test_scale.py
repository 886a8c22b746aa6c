"""The percentile axis."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

import latencykit.plot  # noqa: F401 - registers the scale
from latencykit.plot.axes import BEYOND, PercentileTransform


def test_even_by_nines_and_100_percent_beyond_the_last():
    places = PercentileTransform(6).transform([0, 90, 99, 99.9, 99.9999, 100])
    assert np.allclose(places, [0, 1, 2, 3, 6, 6 + BEYOND])


def test_there_and_back():
    percentiles = np.array([0, 10, 50, 99, 99.99, 99.9999, 100])
    way = PercentileTransform(6)
    assert np.allclose(way.inverted().transform(way.transform(percentiles)), percentiles, 0, 1e-9)
    assert isinstance(way.inverted().inverted(), PercentileTransform)


def test_ticks_are_the_nines_and_the_maximum():
    ax = Figure(figsize=(10, 5)).add_subplot()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.set_xscale("percentile", nines=6)
    ax.set_xlim(0, 100)
    ax.figure.draw_without_rendering()
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == ["0", "50", "90", "99", "99.9", "99.99", "99.999", "99.9999", "100 %"]


@pytest.mark.slow
@pytest.mark.parametrize("nines", [3, 6, 9, 12])
@pytest.mark.parametrize("width", [3.0, 6.0, 12.0])
def test_tick_labels_never_meet(nines, width):
    ax = Figure(figsize=(width, 4)).add_subplot()
    ax.set_xscale("percentile", nines=nines)
    ax.set_xlim(0, 100)
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert [label.get_text() for label in ax.get_xticklabels()][-1] == "100 %"
    assert all(right.x0 > left.x1 for left, right in itertools.pairwise(boxes))
