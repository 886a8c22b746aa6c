"""Where labels go: beside their own curve, where nothing crosses them. Plain geometry in pixels; no artist is touched.

Every label brings candidate places with a cost each (how far from its curve, how far from where it would like to be).
A place that a curve or a fixed text crosses is out; one that lies nearer to a foreign curve than to its own costs more.
Of all labels together the cheapest set of places that do not meet is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import patheffects
from matplotlib.artist import Artist
from matplotlib.text import Text
from matplotlib.transforms import IdentityTransform

from latencykit.plot.style import INK, MUTED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "EndLabels",
    "FileRange",
    "LabelRequest",
    "LineLabels",
    "SpanLabels",
    "along",
    "apart",
    "beside",
    "make_room",
    "outside_legend",
    "overlap",
    "place",
    "points_of",
    "within",
]


_CLEAR = 3.0
"""Pixels that stay free around a label."""

_TAKEN = 400
"""How many of a label's best places are tried against the other labels."""


@dataclass(frozen=True)
class LabelRequest:
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
class FileRange:
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
    """Return points on a polyline at most `step` apart; it may be broken by NaN."""
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
    curve: Floats,
    size: tuple[float, float],
    room: tuple[float, float, float, float],
    *,
    at: float = 0.5,
    spread: float = 1.0,
) -> tuple[Floats, Floats]:
    """Return candidate places above and below a curve, and their costs."""
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
    point: tuple[float, float],
    size: tuple[float, float],
    room: tuple[float, float, float, float],
    *,
    above: bool = False,
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
            inside = min(
                max(left, room[0]), room[2] - width
            )  # a label above or below its point may slide sideways
            if (
                (inside == left or not lower - gap < y < lower + height)
                and room[1] <= lower
                and lower + height <= room[3]
            ):
                corners.append((inside, lower))
                costs.append(0.06 * side + 0.4 * step + 0.02 * abs(inside - left))
    if not corners:  # a room that is too small for any of them: as near as can be
        corners = [
            (
                min(max(x - width / 2, room[0]), room[2] - width),
                min(max(y + 5.0, room[1]), room[3] - height),
            )
        ]
        costs = [9.0]
    return np.array(corners).reshape(-1, 2), np.array(costs)


def within(
    region: tuple[float, float, float, float],
    size: tuple[float, float],
    *,
    corner: tuple[float, float] = (0.0, 0.0),
) -> tuple[Floats, Floats]:
    """Return candidate places inside a region, the cheaper the nearer to a corner of it (0..1 each way)."""
    left, lower, right, upper = region
    width, height = size
    if right - left < width or upper - lower < height:
        return np.zeros((0, 2)), np.zeros(0)
    x, y = np.meshgrid(np.linspace(left, right - width, 9), np.linspace(lower, upper - height, 25))
    away = np.hypot(
        (x - left) / max(right - left - width, 1) - corner[0],
        (y - lower) / max(upper - lower - height, 1) - corner[1],
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
    dx = np.maximum(
        np.maximum(boxes[:, None, 0] - points[None, :, 0], points[None, :, 0] - boxes[:, None, 2]),
        0.0,
    )
    dy = np.maximum(
        np.maximum(boxes[:, None, 1] - points[None, :, 1], points[None, :, 1] - boxes[:, None, 3]),
        0.0,
    )
    squares = dx * dx + dy * dy
    return np.sqrt(squares.min(1)), (squares < _CLEAR * _CLEAR).sum(1)


def _judged(
    wish: LabelRequest, curves: Sequence[Floats], fixed: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
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


def place(
    wishes: Sequence[LabelRequest], curves: Sequence[Floats], fixed: Floats | None = None
) -> list[FileRange | None]:
    """Return a place for every label, so that no two meet."""
    taken = np.zeros((0, 4)) if fixed is None else fixed
    judged = [_judged(wish, curves, taken) for wish in wishes]
    orders = permutations(range(len(wishes))) if len(wishes) <= 4 else [tuple(range(len(wishes)))]
    return min((_in_order(order, judged) for order in orders), key=lambda found: found[0])[1]


def _in_order(
    order: Sequence[int], judged: Sequence[tuple[Floats, Floats, NDArray[np.bool_]]]
) -> tuple[float, list[FileRange | None]]:
    """Total cost and places when each label in turn takes the cheapest place that is left."""
    total, boxes = 0.0, np.zeros((0, 4))
    found: list[FileRange | None] = [None] * len(judged)
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
        found[k] = FileRange(
            float(mine[chosen, 0]), float(mine[chosen, 1]), bool(free[chosen] and clear.any())
        )
    return total, found


def apart(wanted: Floats, step: float, low: float, high: float) -> Floats:
    """Return positions at least `step` apart, as near as possible to where they are wanted, within [low, high].

    Neighbours that are too near merge into a group that stands around the mean of its members' wishes. Where they do
    not all fit, they share the room evenly.
    """
    if not wanted.size:
        return wanted
    step = min(step, (high - low) / max(wanted.size - 1, 1))
    order = np.argsort(wanted, kind="stable")
    groups: list[
        list[float]
    ] = []  # each: the sum of its members' wishes for the first place, and their number
    for position in np.clip(wanted[order], low, high).tolist():
        groups.append([position, 1.0])
        while (
            len(groups) > 1
            and groups[-2][0] / groups[-2][1] + groups[-2][1] * step > groups[-1][0] / groups[-1][1]
        ):
            last = groups.pop()
            groups[-1][0] += last[0] - last[1] * groups[-1][1] * step
            groups[-1][1] += last[1]
    row = np.concatenate([total / size + step * np.arange(int(size)) for total, size in groups])
    row = np.minimum(row, high - step * np.arange(row.size)[::-1])
    row = np.maximum(row, low + step * np.arange(row.size))
    result = np.empty(row.size)
    result[order] = row
    return result


# ------------------------------------------------------------
# Labels that find their places when the chart is drawn: beside their curves, over their spans, or
# in a legend outside.
#
# They are artists of their own, so that a change of size, limits or resolution places them anew.

_MARGIN = 4.0
"""Points between a label and the frame of its axes."""


class _Labels(Artist):
    """Texts of one axes whose positions are found at each draw."""

    zorder = 6

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[Text] = []
        self.set_in_layout(False)

    def _text(self, ax: Axes, words: str, **look: Any) -> Text:
        text = Text(
            0,
            0,
            words,
            transform=IdentityTransform(),
            figure=ax.figure,
            va="bottom",
            ha="left",
            **look,
        )
        self.texts.append(text)
        return text

    def get_children(self) -> list[Artist]:
        """Return the texts."""
        return list(self.texts)

    def arrange(self, renderer: Any) -> None:
        """Find a place for every text; those without one become invisible."""
        raise NotImplementedError

    def draw(self, renderer: Any) -> None:
        """Arrange and draw the texts."""
        if self.get_visible() and self.texts:
            self.arrange(renderer)
            for text in self.texts:
                text.draw(renderer)
        self.stale = False

    def _point(self) -> float:
        """Pixels a point."""
        return float(self.axes.figure.dpi) / 72.0  # type: ignore[union-attr]


def _size(text: Text, renderer: Any) -> tuple[float, float]:
    text.set_visible(True)  # an invisible text has no size
    box = text.get_window_extent(renderer)
    return float(box.width), float(box.height)


def _pixels(line: Line2D, room: Any) -> Floats:
    """A line's course in pixels, cut off not far outside the axes."""
    vertices = np.asarray(line.get_transform().transform(line.get_path().vertices), np.float64)
    return np.clip(vertices, (room.x0 - 20, room.y0 - 20), (room.x1 + 20, room.y1 + 20))


@dataclass(frozen=True)
class _Entry:
    """What a label belongs to: lines, or a region of the axes."""

    text: Text
    lines: tuple[Line2D, ...] = ()
    at: float = 0.5
    spread: float = 1.0
    point: tuple[float, float] | None = None
    above: bool = False
    region: Callable[[], tuple[float, float, float, float]] | None = None
    corner: tuple[float, float] = (0.0, 0.0)
    forms: tuple[str, ...] = ()


class LineLabels(_Labels):
    """Labels beside their curves, where nothing crosses them."""

    def __init__(self, lower: float = 0.0) -> None:
        super().__init__()
        self.lower = lower
        self._entries: list[_Entry] = []

    def add(
        self,
        ax: Axes,
        words: str,
        lines: Sequence[Line2D],
        *,
        at: float = 0.5,
        spread: float = 1.0,
        **look: Any,
    ) -> None:
        """Add a label of some lines that would like to stand at a share of the width."""
        look = {"fontsize": 9.5, "color": lines[0].get_color(), "fontweight": "bold"} | look
        self._entries.append(_Entry(self._text(ax, words, **look), tuple(lines), at, spread))

    def point(
        self,
        ax: Axes,
        words: str,
        at: tuple[float, float],
        lines: Sequence[Line2D],
        *,
        above: bool = False,
        **look: Any,
    ) -> None:
        """Add a label beside a point of some lines, in data coordinates; or only above it."""
        text = self._text(ax, words, **({"fontsize": 8.5, "color": lines[0].get_color()} | look))
        self._entries.append(_Entry(text, tuple(lines), point=at, above=above))

    def note(
        self,
        ax: Axes,
        forms: Sequence[str],
        region: Callable[[], tuple[float, float, float, float]],
        corner: tuple[float, float],
    ) -> None:
        """Add a quiet sentence inside a region (pixels), near one of its corners.

        The first of its forms that finds room is taken; where none does it is left out.
        """
        text = self._text(ax, forms[0], fontsize=8, color=MUTED, linespacing=1.3)
        self._entries.append(_Entry(text, region=region, corner=corner, forms=tuple(forms)))

    def arrange(self, renderer: Any) -> None:
        """Find places for all labels together, then for the sentences."""
        ax: Any = self.axes
        box, margin = ax.get_window_extent(renderer), _MARGIN * self._point()
        room = (
            box.x0 + margin,
            box.y0 + margin + self.lower * box.height,
            box.x1 - margin,
            box.y1 - margin,
        )
        lines = [line for line in ax.lines if line.get_visible()]
        curves = [points_of(_pixels(line, box)) for line in lines]
        texts = [text for text in ax.texts if text.get_visible() and text.get_text()]
        fixed = np.array([text.get_window_extent(renderer).extents for text in texts]).reshape(
            -1, 4
        )
        firm = [entry for entry in self._entries if entry.region is None]
        wishes = [_beside(entry, renderer, room, lines, curves) for entry in firm]
        for entry, wish, where in zip(firm, wishes, place(wishes, curves, fixed), strict=True):
            fixed = self._put(entry.text, where, wish.size, fixed)
        for entry in self._entries:
            if entry.region is not None:
                fixed = self._put_note(entry, renderer, room, curves, fixed)

    def _put_note(
        self,
        entry: _Entry,
        renderer: Any,
        room: tuple[float, float, float, float],
        curves: list[Floats],
        fixed: Floats,
    ) -> Floats:
        assert entry.region is not None
        left, lower, right, upper = entry.region()
        inside = (max(left, room[0]), max(lower, room[1]), min(right, room[2]), min(upper, room[3]))
        for form in entry.forms:
            entry.text.set_text(form)
            size = _size(entry.text, renderer)
            (where,) = place(
                [LabelRequest(size, *within(inside, size, corner=entry.corner))], curves, fixed
            )
            if where is not None and where.free:
                return self._put(entry.text, where, size, fixed)
        return self._put(entry.text, None, (0.0, 0.0), fixed)

    @staticmethod
    def _put(
        text: Text, where: FileRange | None, size: tuple[float, float], fixed: Floats
    ) -> Floats:
        """Move a text to its place, or hide it; return all boxes that are taken now."""
        text.set_visible(where is not None)
        if where is None:
            return fixed
        text.set_position((where.x, where.y))
        text.set_path_effects(
            [] if where.free else [patheffects.withStroke(linewidth=2.5, foreground="white")]
        )
        return np.concatenate([fixed, [[where.x, where.y, where.x + size[0], where.y + size[1]]]])


def _beside(
    entry: _Entry,
    renderer: Any,
    room: tuple[float, float, float, float],
    lines: list[Line2D],
    curves: list[Floats],
) -> LabelRequest:
    """The wish of a label to stand beside its lines, or beside its point."""
    own = tuple(k for k, line in enumerate(lines) if line in entry.lines)
    if entry.point is not None:
        size = _size(entry.text, renderer)
        x, y = entry.lines[0].axes.transData.transform(entry.point)  # type: ignore[union-attr]
        return LabelRequest(size, *beside((float(x), float(y)), size, room, above=entry.above), own)
    course = np.concatenate([curves[k] for k in own]) if own else np.zeros((0, 2))
    size = _size(entry.text, renderer)
    return LabelRequest(size, *along(course, size, room, at=entry.at, spread=entry.spread), own)


class EndLabels(_Labels):
    """Names at the right ends of lines, in the room that was left there; moved apart where they would meet."""

    def __init__(self) -> None:
        super().__init__()
        self._values: list[tuple[float, float]] = []

    def add(self, ax: Axes, words: str, x: float, y: float, colour: str) -> None:
        """Add a label of the line that ends at (x, y)."""
        self._text(ax, words, fontsize=9.5, color=colour, fontweight="bold")
        self._values.append((x, y))

    def arrange(self, renderer: Any) -> None:
        """Stack the labels."""
        ax: Any = self.axes
        box, point = ax.get_window_extent(renderer), self._point()
        sizes = [_size(text, renderer) for text in self.texts]
        ends = ax.transData.transform(np.array(self._values))
        height = max(h for _, h in sizes)
        middle = apart(ends[:, 1], height + point, box.y0 + height / 2, box.y1 - height / 2)
        for text, size, end, y in zip(self.texts, sizes, ends, middle, strict=True):
            text.set_position((min(end[0] + _MARGIN * point, box.x1 - size[0]), y - size[1] / 2))


class SpanLabels(_Labels):
    """What happened in spans of time, at the top of the axes: each in its longest form that fits, or left out."""

    def __init__(self) -> None:
        super().__init__()
        self._spans: list[tuple[float, float]] = []
        self._forms: list[tuple[str, ...]] = []

    def add(self, ax: Axes, start: float, end: float, forms: Sequence[str]) -> None:
        """Add a span's label, longest form first."""
        self._text(ax, forms[0], fontsize=8.5, color=INK)
        self._spans.append((start, end))
        self._forms.append(tuple(forms))

    def arrange(self, renderer: Any) -> None:
        """Place the longest spans first, in one row."""
        ax: Any = self.axes
        box, margin = ax.get_window_extent(renderer), _MARGIN * self._point()
        x = ax.transData.transform(
            np.column_stack([np.array(self._spans).reshape(-1), np.ones(2 * len(self._spans))])
        )[:, 0]
        spans, taken = x.reshape(-1, 2), np.zeros((0, 4))
        for k in np.argsort(spans[:, 0] - spans[:, 1], kind="stable").tolist():
            text, placed = self.texts[k], False
            for form in self._forms[k]:
                text.set_text(form)
                width, height = _size(text, renderer)
                left = float(
                    np.clip(
                        spans[k].mean() - width / 2,
                        box.x0 + margin,
                        max(box.x1 - margin - width, box.x0),
                    )
                )
                mine = np.array([[left - margin, 0.0, left + width + margin, 1.0]])
                if width < box.width and not (len(taken) and overlap(mine, taken).any()):
                    text.set_position((left, box.y1 - margin - height))
                    placed = True
                    taken = np.concatenate([taken, mine])
                    break
            text.set_visible(placed)


def outside_legend(
    ax: Axes, handles: Sequence[Any], texts: Sequence[str], title: str | None = None
) -> Legend:
    """Put a legend at the right, outside the axes, in the order given; as many rows as there is height for.

    What does not fit is counted in a last row.
    """
    height = ax.get_window_extent().height * 72.0 / ax.figure.dpi
    most = max(3, int(height / 12.5) - (2 if title else 1))
    shown, words = list(handles), list(texts)
    if len(shown) > most:
        left = len(shown) - most + 1
        shown, words = [*shown[: most - 1], _nothing()], [*words[: most - 1], f"and {left} more"]
    legend = ax.legend(
        shown, words, loc="upper left", bbox_to_anchor=(1.015, 1.0), frameon=False, fontsize=8.5, handlelength=2.4,
        borderaxespad=0.0, borderpad=0.0, labelspacing=0.42, handletextpad=0.6, labelcolor=INK, title=title, title_fontsize=8.5,
        alignment="left",
    )  # fmt: skip
    legend.get_title().set_color(MUTED)
    make_room(ax, legend)
    return legend


def _nothing() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none")


def make_room(ax: Axes, artist: Any) -> None:
    """Narrow the axes so that what stands at their right lies within the figure, where no layout engine does so."""
    figure: Any = ax.figure
    if figure.get_layout_engine() is not None or ax.get_subplotspec() is None:
        return
    position = ax.get_position()
    over = artist.get_window_extent().x1 - figure.bbox.x1 + 6.0 * figure.dpi / 72.0
    share = over / figure.bbox.width
    if over > 0 and position.width - share > 0.2:
        ax.set_position((position.x0, position.y0, position.width - share, position.height))
