"""Where labels go: beside their own curve, where nothing crosses them. Plain geometry in pixels; no artist is touched.

Every label brings candidate places with a cost each (how far from its curve, how far from where it would like to be).
A place that a curve or a fixed text crosses is out; one that lies nearer to a foreign curve than to its own costs more.
Of all labels together the cheapest set of places that do not meet is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Place", "Wish", "along", "apart", "beside", "overlap", "place", "points_of", "within"]

_CLEAR = 3.0
"""Pixels that stay free around a label."""

_TAKEN = 400
"""How many of a label's best places are tried against the other labels."""


@dataclass(frozen=True)
class Wish:
    """A label that wants a place.

    Attributes
    ----------
    size : tuple of float
        Width and height.
    corners : ndarray of float64, shape (candidates, 2)
        Lower left corner at each candidate place.
    costs : ndarray of float64, shape (candidates,)
    own : tuple of int
        Positions of its own curves among the curves; a place nearer to another one costs more.
    """

    size: tuple[float, float]
    corners: Floats
    costs: Floats
    own: tuple[int, ...] = field(default=())


@dataclass(frozen=True)
class Place:
    """Where a label goes.

    Attributes
    ----------
    x, y : float
        Its lower left corner.
    free : bool
        False where every candidate is crossed by something; then this is the one crossed least.
    """

    x: float
    y: float
    free: bool


def points_of(vertices: Floats, step: float = 2.0) -> Floats:
    """Return points on a polyline at most `step` apart; it may be broken by NaN.

    Examples
    --------
    >>> points_of(np.array([[0.0, 0.0], [4.0, 0.0]])).tolist()
    [[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]]
    """
    if len(vertices) < 2:
        return vertices[np.isfinite(vertices).all(1)] if len(vertices) else np.zeros((0, 2))
    start, move = vertices[:-1], np.diff(vertices, axis=0)
    known = np.isfinite(move).all(1)
    start, move = start[known], move[known]
    if not len(start):
        return vertices[np.isfinite(vertices).all(1)]
    parts = np.maximum(1, np.ceil(np.abs(move).max(1) / step)).astype(np.int64)
    segment = np.repeat(np.arange(len(parts)), parts)
    share = (np.arange(len(segment)) - np.repeat(np.cumsum(parts) - parts, parts)) / parts[segment]
    points = np.concatenate([start[segment] + move[segment] * share[:, None], (start + move)[-1:]])
    # A dense log has many points on one pixel; one of them is enough.
    cells, first = np.unique(np.floor(2 * points / step), axis=0, return_index=True)
    return points[np.sort(first)] if len(cells) < len(points) else points


def along(
    curve: Floats, size: tuple[float, float], room: tuple[float, float, float, float], *, at: float = 0.5, spread: float = 1.0
) -> tuple[Floats, Floats]:
    """Return candidate places above and below a curve, and their costs.

    Parameters
    ----------
    curve : ndarray, shape (points, 2)
        As `points_of` gives it.
    size : tuple of float
    room : tuple of float
        Left, lower, right and upper bound.
    at : float, default 0.5
        Where along the room the label would like to be, from 0 (left) to 1.
    spread : float, default 1.0
        How far from there it may go, as a share of the room.
    """
    width, height = size
    left, lower, right, upper = room
    reach = max(right - left - width, 0.0)
    shares = np.linspace(max(0.0, at - spread), min(1.0, at + spread), 49)
    corners, costs = [], []
    for share in shares.tolist():
        x = left + share * reach
        near = curve[(curve[:, 0] >= x - _CLEAR) & (curve[:, 0] <= x + width + _CLEAR), 1]
        if not near.size:
            continue
        away = abs(share - at) * 1.2
        for gap in (4.0, 10.0, 22.0):
            steep = (near.max() - near.min()) / (4 * height)
            for y, below in ((near.max() + gap, 0.0), (near.min() - gap - height, 0.12)):
                if lower <= y and y + height <= upper:
                    corners.append((x, y))
                    costs.append(away + below + gap / 40 + steep)
    return np.array(corners).reshape(-1, 2), np.array(costs)


def beside(
    point: tuple[float, float], size: tuple[float, float], room: tuple[float, float, float, float], *, above: bool = False
) -> tuple[Floats, Floats]:
    """Return candidate places around a point, right of it first, or only above it; and their costs."""
    (x, y), (width, height) = point, size
    corners, costs = [], []
    for step, gap in enumerate((5.0, 9.0, 16.0, 30.0, 50.0, 80.0)):
        for side, (left, lower) in enumerate((
            (x + gap, y - height / 2), (x - gap - width, y - height / 2), (x - width / 2, y + gap), (x + gap, y + gap / 2),
            (x - gap - width, y + gap / 2), (x + gap, y - height - gap / 2), (x - gap - width, y - height - gap / 2),
        )):  # fmt: skip
            if above and lower < y + 2:
                continue
            inside = min(max(left, room[0]), room[2] - width)  # a label above or below its point may slide sideways
            if (inside == left or not lower - gap < y < lower + height) and room[1] <= lower and lower + height <= room[3]:
                corners.append((inside, lower))
                costs.append(0.06 * side + 0.4 * step + 0.02 * abs(inside - left))
    if not corners:  # a room that is too small for any of them: as near as can be
        corners = [(min(max(x - width / 2, room[0]), room[2] - width), min(max(y + 5.0, room[1]), room[3] - height))]
        costs = [9.0]
    return np.array(corners).reshape(-1, 2), np.array(costs)


def within(
    region: tuple[float, float, float, float], size: tuple[float, float], *, corner: tuple[float, float] = (0.0, 0.0)
) -> tuple[Floats, Floats]:
    """Return candidate places inside a region, the cheaper the nearer to a corner of it (0..1 each way)."""
    left, lower, right, upper = region
    width, height = size
    if right - left < width or upper - lower < height:
        return np.zeros((0, 2)), np.zeros(0)
    x, y = np.meshgrid(np.linspace(left, right - width, 9), np.linspace(lower, upper - height, 25))
    away = np.hypot(
        (x - left) / max(right - left - width, 1) - corner[0], (y - lower) / max(upper - lower - height, 1) - corner[1]
    )
    return np.stack([x.ravel(), y.ravel()], 1), away.ravel()


def overlap(a: Floats, b: Floats) -> NDArray[np.bool_]:
    """Return which boxes of `a` meet which of `b`, shape (a, b); a box is left, lower, right, upper."""
    first, second = a[:, None, :], b[None, :, :]
    apart_x = (first[..., 2] <= second[..., 0]) | (second[..., 2] <= first[..., 0])
    apart_y = (first[..., 3] <= second[..., 1]) | (second[..., 3] <= first[..., 1])
    return np.asarray(~(apart_x | apart_y))


def _distances(boxes: Floats, points: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Distance from each box to the nearest point, and how many points lie in it."""
    if not len(points):
        return np.full(len(boxes), np.inf), np.zeros(len(boxes), np.int64)
    dx = np.maximum(np.maximum(boxes[:, None, 0] - points[None, :, 0], points[None, :, 0] - boxes[:, None, 2]), 0.0)
    dy = np.maximum(np.maximum(boxes[:, None, 1] - points[None, :, 1], points[None, :, 1] - boxes[:, None, 3]), 0.0)
    squares = dx * dx + dy * dy
    return np.sqrt(squares.min(1)), (squares < _CLEAR * _CLEAR).sum(1)


def _judged(wish: Wish, curves: Sequence[Floats], fixed: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Boxes, costs and freedom of a wish's best places, cheapest first."""
    boxes = np.concatenate([wish.corners, wish.corners + np.array(wish.size)], 1)
    costs, hits = wish.costs.copy(), np.zeros(len(boxes), np.int64)
    own, other = np.full(len(boxes), np.inf), np.full(len(boxes), np.inf)
    for number, points in enumerate(curves):
        distance, inside = _distances(boxes, points)
        hits += inside
        if number in wish.own:
            own = np.minimum(own, distance)
        else:
            other = np.minimum(other, distance)
    if wish.own:
        costs = costs + 2.0 * np.clip(1.5 - other / np.maximum(own, 1.0), 0.0, 1.0)
    costs = costs + 0.8 * np.clip(1.0 - other / 14.0, 0.0, 1.0)
    if len(fixed):
        hits += 50 * overlap(boxes, fixed).sum(1)
    free = hits == 0
    costs = np.where(free, costs, 100.0 + hits + costs)
    best = np.argsort(costs, kind="stable")[:_TAKEN]
    return boxes[best], costs[best], free[best]


def place(wishes: Sequence[Wish], curves: Sequence[Floats], fixed: Floats | None = None) -> list[Place | None]:
    """Return a place for every label, so that no two meet.

    Parameters
    ----------
    wishes : sequence of Wish
        Few of them take the best of all orders; more than four are placed one after the other.
    curves : sequence of ndarray, shape (points, 2)
        What no label may cover, as `points_of` gives it.
    fixed : ndarray, shape (boxes, 4), optional
        Texts that are there already.

    Returns
    -------
    list of Place or None
        None where a label has no place at all.
    """
    taken = np.zeros((0, 4)) if fixed is None else fixed
    judged = [_judged(wish, curves, taken) for wish in wishes]
    orders = permutations(range(len(wishes))) if len(wishes) <= 4 else [tuple(range(len(wishes)))]
    return min((_in_order(order, judged) for order in orders), key=lambda found: found[0])[1]


def _in_order(
    order: Sequence[int], judged: Sequence[tuple[Floats, Floats, NDArray[np.bool_]]]
) -> tuple[float, list[Place | None]]:
    """Total cost and places when each label in turn takes the cheapest place that is left."""
    total, boxes = 0.0, np.zeros((0, 4))
    found: list[Place | None] = [None] * len(judged)
    for k in order:
        mine, costs, free = judged[k]
        if not len(mine):
            total += 1000.0
            continue
        clear = (
            ~overlap(mine + np.array([-_CLEAR, -_CLEAR, _CLEAR, _CLEAR]), boxes).any(1)
            if len(boxes)
            else np.ones(len(mine), bool)
        )
        chosen = int(np.argmax(clear)) if clear.any() else 0
        total += float(costs[chosen]) + (0.0 if clear.any() else 500.0)
        boxes = np.concatenate([boxes, mine[chosen : chosen + 1]])
        found[k] = Place(float(mine[chosen, 0]), float(mine[chosen, 1]), bool(free[chosen] and clear.any()))
    return total, found


def apart(wanted: Floats, step: float, low: float, high: float) -> Floats:
    """Return positions at least `step` apart, as near as possible to where they are wanted, within [low, high].

    Neighbours that are too near merge into a group that stands around the mean of its members' wishes. Where they do
    not all fit, they share the room evenly.

    Examples
    --------
    >>> apart(np.array([5.0, 5.0, 9.0]), 2.0, 0.0, 10.0).tolist()
    [4.0, 6.0, 9.0]
    """
    if not wanted.size:
        return wanted
    step = min(step, (high - low) / max(wanted.size - 1, 1))
    order = np.argsort(wanted, kind="stable")
    groups: list[list[float]] = []  # each: the sum of its members' wishes for the first place, and their number
    for position in np.clip(wanted[order], low, high).tolist():
        groups.append([position, 1.0])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] + groups[-2][1] * step > groups[-1][0] / groups[-1][1]:
            last = groups.pop()
            groups[-1][0] += last[0] - last[1] * groups[-1][1] * step
            groups[-1][1] += last[1]
    row = np.concatenate([total / size + step * np.arange(int(size)) for total, size in groups])
    row = np.minimum(row, high - step * np.arange(row.size)[::-1])
    row = np.maximum(row, low + step * np.arange(row.size))
    result = np.empty(row.size)
    result[order] = row
    return result
