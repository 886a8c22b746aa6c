"""Where labels go, and the title and conditions above a chart."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from latencykit.plot import label_layout as layout
from latencykit.plot.label_layout import LabelRequest, along, beside, head, place, points_of

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
    assert found is not None
    assert not found.free


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


def test_a_word_longer_than_the_line_is_cut():
    assert layout.wrapped("x" * 50, 10, 2, len) == "x" * 9 + "…"


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
