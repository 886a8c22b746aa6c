"""Ticks of values, shares and times, and the percentile axis."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

import latencykit.plot  # noqa: F401 - registers the scale
from latencykit.plot import axes
from latencykit.plot.axes import PercentileTransform, log_ticks, value_axis
from latencykit.plot.series import time_texts


@pytest.mark.parametrize(
    ("bottom", "top"),
    [(1e3, 1e10), (1e6, 3e6), (1e6, 1.2e6), (1e6, 1.01e6), (5, 5e17), (0.02, 0.9), (3.1e7, 1.9e8)],
)
def test_log_ticks_are_few_round_and_inside(bottom, top):
    ticks = log_ticks(bottom, top)
    assert 2 <= len(ticks) <= 12
    assert all(bottom <= tick <= top for tick in ticks)
    assert ticks == sorted(ticks)


def test_value_labels_are_durations_without_exponents():
    ax = Figure(figsize=(6, 4)).add_subplot()
    value_axis(ax, 1.2e4, 9e9, "ns")
    ax.figure.draw_without_rendering()
    decades = ["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]
    assert [label.get_text() for label in ax.get_yticklabels()] == decades


@pytest.mark.parametrize("log", [True, False])
def test_beyond_two_minutes_ticks_are_round_in_longer_units(log):
    ax = Figure(figsize=(6, 4)).add_subplot()
    value_axis(ax, 1.2e7, 4e8, "us", log=log)
    ax.figure.draw_without_rendering()
    texts = [label.get_text() for label in ax.get_yticklabels()]
    expected = ["30 s", "2 min"] if log else ["0", "60 s", "2 min", "3 min", "4 min", "5 min"]
    assert texts[: len(expected)] == expected
    decades = [f"{value:.6g}" for value in log_ticks(1e9, 1e15, second=1e9)]
    assert decades == ["1e+09", "1e+10", "1.2e+11", "1.2e+12", "7.2e+12", "7.2e+13", "8.64e+14"]


def test_one_unit_for_all_ticks():
    texts = [axes.ValueFormatter("ns", "ms")(value) for value in (1e3, 1e6, 2e9)]
    assert texts == ["0.001 ms", "1 ms", "2,000 ms"]
    assert axes.ValueFormatter("ns", "us")(1e6) == "1,000 µs"
    bare, time = axes.ValueFormatter("none"), axes.ValueFormatter("ns")
    assert (bare(1500.0), time(1_234_500.0)) == ("1,500", "1.2345 ms")


def test_locators_keep_out_of_the_room_that_is_not_theirs():
    assert min(axes.DecadeLocator(floor=1e6, ceiling=1e9).tick_values(1e3, 1e12)) >= 1e6
    assert max(axes.DecadeLocator(floor=1e6, ceiling=1e9).tick_values(1e3, 1e12)) <= 1e9
    assert min(axes.EvenLocator(0.0, 10.0).tick_values(-5, 20)) == 0.0
    assert max(axes.EvenLocator(0.0, 10.0).tick_values(-5, 20)) <= 10.0


@pytest.mark.parametrize("span", [0.003, 1, 21, 100, 3600, 86_400, 30 * 86_400, 4e8])
def test_times_are_round_and_few(span):
    ticks = np.array(axes.TimeLocator().tick_values(0, span))
    assert 2 <= ticks.size <= 11
    assert np.allclose(np.diff(ticks), np.diff(ticks)[0])
    assert len(set(time_texts(ticks.tolist()))) == ticks.size


@pytest.mark.parametrize("most", [3, 4, 6, 12])
def test_ticks_of_more_than_a_decade_leave_room_for_their_labels(most):
    for bottom in np.geomspace(1, 9.9, 23):
        for decades in (1.0, 1.7, 2.3, 2.7, 3.4):
            ticks = log_ticks(bottom, bottom * 10**decades, most)
            assert 2 <= len(ticks) <= most
            assert min(np.diff(np.log10(ticks))) > 0.5 * decades / most


# ------------------------------------------------------------ the percentile axis


def test_even_by_nines_and_100_percent_beyond_the_last():
    places = PercentileTransform(6).transform([0, 90, 99, 99.9, 99.9999, 100])
    assert np.allclose(places, [0, 1, 2, 3, 6, 6 + axes.BEYOND])


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
