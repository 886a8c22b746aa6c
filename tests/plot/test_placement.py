"""Places: of labels, and of ticks."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

import latencykit.plot  # noqa: F401 - registers the scale
from latencykit.plot import axes
from latencykit.plot import label_layout as layout
from latencykit.plot.axes import PercentileScale, log_ticks, value_axis
from latencykit.plot.label_layout import LabelRequest, along, beside, head, place, points_of
from latencykit.plot.series import time_texts

ROOM = (0.0, 0.0, 800.0, 400.0)


def box(found, size):
    return np.array([[found.x, found.y, found.x + size[0], found.y + size[1]]])


def covered(boxes, points):
    low, high = boxes[0, :2], boxes[0, 2:]
    return ((points >= low) & (points <= high)).all(axis=1).any()


def test_labels_stand_beside_their_own_curve_and_off_all_curves():
    x = np.linspace(0, 800, 200)
    heights = (60 + 0.1 * x, 180 + 60 * np.sin(x / 90), 330 - 0.05 * x)
    curves = [points_of(np.stack([x, y], 1)) for y in heights]
    size = (150.0, 14.0)
    wishes = [LabelRequest(size, *along(curve, size, ROOM), (k,)) for k, curve in enumerate(curves)]
    found = place(wishes, curves)
    boxes = [box(one, size) for one in found]
    for k, mine in enumerate(boxes):
        assert found[k].free
        assert not any(covered(mine, curve) for curve in curves)
        middle = mine.reshape(2, 2).mean(0)
        nearest = [np.hypot(*(curve - middle).T).min() for curve in curves]
        assert int(np.argmin(nearest)) == k
    assert not layout.overlap(np.concatenate(boxes), np.concatenate(boxes))[
        ~np.eye(3, dtype=bool)
    ].any()


def test_where_all_is_crossed_the_least_crossed_place_says_so():
    x = np.repeat(np.linspace(0, 800, 161), 2)
    fence = points_of(np.stack([x, np.tile([0.0, 400.0], 161)], 1))
    size = (60.0, 14.0)
    (found,) = place([LabelRequest(size, *beside((400.0, 200.0), size, ROOM))], [fence])
    assert not found.free


def test_the_only_free_place_is_left_to_the_label_that_has_no_other():
    wall = points_of(np.array([[0.0, 107.0], [60.0, 107.0]]))
    spots = [[[0.0, 0.0], [0.0, 200.0]], [[0.0, 0.0], [0.0, 100.0]]]
    spots += [[[300.0, y]] for y in (0.0, 50.0, 90.0)]
    costs = np.array([0.0, 1.0])
    five = [LabelRequest((60.0, 14.0), np.array(one), costs[: len(one)]) for one in spots]
    assert all(label.free for label in place(five, [wall]))


def test_a_label_without_candidates_has_no_place():
    nowhere = LabelRequest((900.0, 10.0), np.zeros((0, 2)), np.zeros(0))
    assert place([nowhere], []) == [None]


@pytest.mark.parametrize("point", [(0.0, 0.0), (800.0, 400.0), (400.0, 399.0), (799.0, 3.0)])
def test_labels_of_points_stay_in_the_room(point):
    corners, costs = beside(point, (90.0, 12.0), ROOM)
    assert len(corners) == len(costs) > 0
    assert (corners >= 0).all()
    assert (corners[:, 0] + 90 <= 800).all()
    assert (corners[:, 1] + 12 <= 400).all()


def test_positions_are_moved_apart_in_order_and_stay_inside():
    wanted = np.array([50.0, 50.0, 51.0, 90.0, 99.9])
    placed = layout.apart(wanted, 6.0, 0.0, 100.0)
    assert (np.diff(placed) >= 6.0 - 1e-9).all()
    assert placed.min() >= 0
    assert placed.max() <= 100 + 1e-9


def test_a_label_stands_where_it_is_wanted_above_a_flat_line():
    line = np.column_stack([np.arange(1000.0), np.full(1000, 100.0)])
    corners, costs = along(line, (50.0, 10.0), (0.0, 0.0, 1000.0, 200.0), at=0.7)
    x, y = corners[costs.argmin()].tolist()
    assert (abs(x - 0.7 * 950) <= 950 / 96, y) == (True, 104.0)


def test_a_curve_that_leaves_the_axes_leaves_their_edge_to_labels():
    ax = Figure(figsize=(5, 3)).add_subplot()
    (line,) = ax.plot([0, 1], [99, 99])
    ax.set_ylim(0, 1)
    labels = layout.LineLabels()
    labels.point(ax, "near the frame", (1, 0.97), [line])
    ax.add_artist(labels)
    ax.figure.draw_without_rendering()
    (text,) = labels.texts
    assert text.get_visible()
    assert not text.get_path_effects()  # nothing crosses it
    box, frame = text.get_window_extent(), ax.get_window_extent()
    assert frame.y1 - box.y1 < 12


# ------------------------------------------------------------ title and conditions


def headings(ax):
    return [artist for artist in ax.artists if isinstance(artist, layout.Heading)]


@pytest.mark.slow
@pytest.mark.parametrize("width", [4.0, 8.0, 16.0])
def test_long_titles_stay_inside_the_figure(width):
    figure = Figure(figsize=(width, 4), layout="constrained")
    ax = figure.add_subplot()
    head(ax, "a finding of many words " * 8, "and a condition of even more words " * 12)
    figure.draw_without_rendering()
    for text in headings(ax)[0].get_children():
        box = text.get_window_extent()
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1 + 1
        assert box.y0 >= ax.get_window_extent().y1
        assert text.get_text().count("\n") <= 1
        assert text.get_text().endswith("…") or width > 8


def test_the_title_stands_above_the_conditions():
    figure = Figure(figsize=(8, 4), layout="constrained")
    ax = figure.add_subplot()
    head(ax, "said", "conditions")
    figure.draw_without_rendering()
    conditions, title = headings(ax)[0].texts
    assert title.get_text() == "said"
    assert title.get_window_extent().y0 > conditions.get_window_extent().y1
    assert title.get_window_extent().x0 == pytest.approx(ax.get_window_extent().x0, abs=2)


def test_the_user_has_the_last_word():
    ax = Figure().add_subplot()
    head(ax, "said", "conditions", "mine $1$", "")
    (heading,) = headings(ax)
    assert heading.title == r"mine \$1\$"
    assert heading.conditions == ""
    head(ax, "said", "conditions", "", "")
    assert headings(ax) == []


# ---------------------------------------------------------------- ticks


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
    places = PercentileScale(nines=6).get_transform().transform([0, 90, 99, 99.9, 99.9999, 100])
    assert np.allclose(places, [0, 1, 2, 3, 6, 6 + axes.BEYOND])


def test_there_and_back():
    percentiles = np.array([0, 10, 50, 99, 99.99, 99.9999, 100])
    way = PercentileScale(nines=6).get_transform()
    assert np.allclose(way.inverted().transform(way.transform(percentiles)), percentiles, 0, 1e-9)


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
