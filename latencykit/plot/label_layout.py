"""The texts of a chart that are placed when it is drawn: labels of curves and spans, the heading.

Every label has candidate places with a cost each (how far from its curve, how far from where it
would like to be). A place that a curve or a fixed text crosses is out; one that lies nearer to a
foreign curve than to its own costs more. Each label takes the cheapest place that the others leave.
This is plain geometry in pixels; the artists are below.
"""

from __future__ import annotations

import math
import textwrap
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, NullFormatter
from matplotlib.transforms import Bbox, IdentityTransform
from numpy.typing import NDArray

from latencykit._records import record
from latencykit._text import plain
from latencykit._typing import Floats
from latencykit.plot.series import distinct_names, named_count
from latencykit.plot.style import FEW, INK, MUTED, halo, lighten, short_names, size_in_points

_CLEAR = 3.0  # pixels that remain free around a label


@record()
class LabelRequest:
    """A label that needs a place."""

    size: tuple[float, float]  # width and height
    corners: Floats  # lower left one at each candidate place, shape (candidates, 2)
    costs: Floats  # of each candidate
    own: tuple[int, ...] = ()  # places of its curves among all: one nearer to another costs more


@record()
class Placement:
    """The place of a label: its lower left corner."""

    x: float
    y: float
    free: bool  # or else crossed by something, as all candidates are; this is the one crossed least


def points_of(vertices: Floats) -> Floats:
    """Return points on a polyline at most 2 pixels apart; it may be broken by NaN."""
    start, move = vertices[:-1], np.diff(vertices, axis=0)
    known = np.isfinite(move).all(1)
    start, move = start[known], move[known]
    parts = np.maximum(1, np.ceil(np.abs(move).max(1, initial=0) / 2)).astype(np.intp)
    segment = np.repeat(np.arange(len(parts)), parts)
    share = (np.arange(len(segment)) - np.repeat(np.cumsum(parts) - parts, parts)) / parts[segment]
    between = start[segment] + move[segment] * share[:, None]
    return np.concatenate([between, vertices[np.isfinite(vertices).all(1)]])


def along(
    curve: Floats,
    size: tuple[float, float],
    space: tuple[float, float, float, float],
    *,
    at: float = 0.5,
    spread: float = 1.0,
) -> tuple[Floats, Floats]:
    """Return candidate places above and below a curve, and their costs."""
    width, height = size
    left, lower, right, upper = space
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
    space: tuple[float, float, float, float],
    *,
    above: bool = False,
    below: bool = False,
) -> tuple[Floats, Floats]:
    """Return candidate places around a point, or on one side of it, and their costs."""
    (x, y), (width, height) = point, size
    corners, costs = [], []
    for step, gap in enumerate((8.0, 12.0, 18.0, 30.0, 50.0, 80.0)):  # the first is beside a mark
        right, left, middle = x + gap, x - gap - width, y - height / 2
        up, down = y + gap / 2, y - height - gap / 2
        over = (x - width / 2, y - gap - height if below else y + gap)
        level = [(right, middle), (left, middle), over]
        slanted = [(right, up), (left, up), (right, down), (left, down)]
        for side, (start, lower) in enumerate(level + slanted):
            # A label above or below its point may slide sideways.
            inside = min(max(start, space[0]), space[2] - width)
            crosses = inside != start and lower - gap < y < lower + height
            fits = space[1] <= lower and lower + height <= space[3]
            apart = not (above and lower < y + 2) and not (below and lower + height > y - 2)
            if fits and not crosses and apart:
                corners.append((inside, lower))
                costs.append(0.06 * side + 0.4 * step + 0.02 * abs(inside - start))
    if not corners:  # the space is too small for any of them: as near as possible
        nearest = min(max(x - width / 2, space[0]), space[2] - width)
        corners = [(nearest, min(max(y + 5.0, space[1]), space[3] - height))]
        costs = [9.0]
    return np.array(corners).reshape(-1, 2), np.array(costs)


def overlap(a: Floats, b: Floats) -> NDArray[np.bool_]:
    """Return which boxes (left, lower, right, upper) of `a` overlap which of `b`, shape (a, b)."""
    first, second = a[:, None, :], b[None, :, :]
    apart_x = (first[..., 2] <= second[..., 0]) | (second[..., 2] <= first[..., 0])
    apart_y = (first[..., 3] <= second[..., 1]) | (second[..., 3] <= first[..., 1])
    return np.asarray(~(apart_x | apart_y))


def _judged(
    request: LabelRequest, curves: Sequence[Floats], fixed: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Boxes of a label's places, cheapest first, and which of them nothing crosses."""
    boxes = np.concatenate([request.corners, request.corners + np.array(request.size)], 1)
    costs, hits = request.costs.copy(), np.zeros(len(boxes), np.int64)
    own, other = np.full(len(boxes), np.inf), np.full(len(boxes), np.inf)
    left, lower, right, upper = boxes.T[:, :, None]
    for number, points in enumerate(curves):
        if not len(points):
            continue
        x, y = points.T[:, None, :]
        squares = np.square(np.clip(x, left, right) - x)
        squares += np.square(np.clip(y, lower, upper) - y)
        hits += np.count_nonzero(squares < _CLEAR * _CLEAR, axis=1)
        if number in request.own:
            own = np.minimum(own, np.sqrt(squares.min(1)))
        else:
            other = np.minimum(other, np.sqrt(squares.min(1)))
    if request.own:
        costs = costs + 2.0 * np.clip(1.5 - other / np.maximum(own, 1.0), 0.0, 1.0)
    costs = costs + 0.8 * np.clip(1.0 - other / 14.0, 0.0, 1.0)
    hits += 50 * overlap(boxes, fixed).sum(1)
    free = hits == 0
    costs = np.where(free, costs, 100.0 + hits + costs)
    order = np.argsort(costs, kind="stable")
    return boxes[order], free[order]


def place(
    requests: Sequence[LabelRequest], curves: Sequence[Floats], fixed: Floats | None = None
) -> list[Placement | None]:
    """Return a place for every label, so that no two overlap."""
    # Each label takes the cheapest place that is left, those that have the fewest first.
    taken = np.zeros((0, 4)) if fixed is None else fixed
    judged = [_judged(request, curves, taken) for request in requests]
    places: list[Placement | None] = [None] * len(judged)
    boxes = np.zeros((0, 4))
    for k in sorted(range(len(judged)), key=lambda k: int(judged[k][1].sum())):
        spots, free = judged[k]
        if not len(spots):
            continue
        clear = ~overlap(spots + np.array([-_CLEAR, -_CLEAR, _CLEAR, _CLEAR]), boxes).any(1)
        chosen = int(np.argmax(clear))
        boxes = np.concatenate([boxes, spots[chosen : chosen + 1]])
        x, y = spots[chosen, :2].tolist()
        places[k] = Placement(x, y, bool(free[chosen] and clear.any()))
    return places


def apart(targets: Floats, step: float, low: float, high: float) -> Floats:
    """Return positions at least `step` apart in [low, high], around `targets`."""
    # Pushed up and pushed down as far as need be; half-way between both, labels keep their distance
    # and lie around where they would like to be.
    step = min(step, (high - low) / max(targets.size - 1, 1))
    order, below = np.argsort(targets, kind="stable"), step * np.arange(targets.size)
    free = np.clip(targets[order], low, high) - below
    row = (np.maximum.accumulate(free) + np.minimum.accumulate(free[::-1])[::-1]) / 2 + below
    row = np.maximum(np.minimum(row, high - below[::-1]), low + below)
    result = np.empty(row.size)
    result[order] = row
    return result


# ------------------------------------------------------------
# Labels that find their places when the chart is drawn: beside their curves, over their spans, or
# in a legend outside. They are artists of their own, so that a change of size, limits or resolution
# places them anew.

_MARGIN = 4.0  # points between a label and the frame of its axes


class _Labels(Artist):
    """Texts of one axes whose positions are found at each draw."""

    zorder = 6

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[Text] = []
        self.set_in_layout(False)

    def _text(self, ax: Axes, words: str, **look: Any) -> Text:
        text = Text(
            0, 0, words, transform=IdentityTransform(), figure=ax.figure, va="bottom", ha="left",
            **look,
        )  # fmt: skip
        self.texts.append(text)
        return text

    def get_children(self) -> list[Artist]:
        """Return the texts."""
        return list(self.texts)

    def arrange(self, renderer: RendererBase) -> None:
        """Find a place for every text; those without one become invisible."""
        raise NotImplementedError

    def draw(self, renderer: RendererBase) -> None:
        """Arrange and draw the texts."""
        if self.get_visible() and self.texts:
            self.arrange(renderer)
            for text in self.texts:
                text.draw(renderer)
        self.stale = False

    def _point(self) -> float:
        """Pixels per point."""
        return float(self.axes.figure.dpi) / 72.0  # type: ignore[union-attr]


def _size(text: Text, renderer: RendererBase) -> tuple[float, float]:
    text.set_visible(True)  # an invisible text has no size
    box = text.get_window_extent(renderer)
    return float(box.width), float(box.height)


@record()
class _Entry:
    """A label, and the lines or the point that it belongs to."""

    text: Text
    lines: tuple[Line2D, ...] = ()
    at: float = 0.5
    spread: float = 1.0
    point: tuple[float, float] | None = None
    above: bool = False
    below: bool = False


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
        **look: object,
    ) -> None:
        """Add a label of some lines, preferably at a share of the width."""
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
        below: bool = False,
        **look: Any,
    ) -> None:
        """Add a label beside a point of some lines, in data coordinates; or on one side of it."""
        text = self._text(ax, words, **({"fontsize": 8.5, "color": lines[0].get_color()} | look))
        self._entries.append(_Entry(text, tuple(lines), point=at, above=above, below=below))

    def arrange(self, renderer: RendererBase) -> None:
        """Find places for all labels together."""
        ax: Any = self.axes
        box, margin = ax.get_window_extent(renderer), _MARGIN * self._point()
        lower = box.y0 + margin + self.lower * box.height
        space = (box.x0 + margin, lower, box.x1 - margin, box.y1 - margin)
        lines = [line for line in ax.lines if line.get_visible()]
        curves = []
        for line in lines:  # in pixels, truncated not far outside the axes
            vertices = line.get_transform().transform(line.get_path().vertices)
            ends = box.padded(20).get_points()
            curves.append(points_of(np.clip(np.asarray(vertices, np.float64), *ends)))
        texts = list(ax.texts)
        for other in ax.artists:  # names of lines and spans have one place only: they go first
            if isinstance(other, EndLabels | SpanLabels) and other.get_visible():
                other.arrange(renderer)
                texts += other.texts
        texts = [text for text in texts if text.get_visible() and text.get_text()]
        extents = [text.get_window_extent(renderer).extents for text in texts]
        fixed = np.array(extents).reshape(-1, 4)
        requests = []
        for entry in self._entries:
            own = tuple(k for k, line in enumerate(lines) if line in entry.lines)
            size = _size(entry.text, renderer)
            if entry.point is not None:
                axes: Any = entry.lines[0].axes
                x, y = axes.transData.transform(entry.point).tolist()
                sides = {"above": entry.above, "below": entry.below}
                candidates = beside((x, y), size, space, **sides)
            else:
                curve = np.concatenate([curves[k] for k in own]) if own else np.zeros((0, 2))
                candidates = along(curve, size, space, at=entry.at, spread=entry.spread)
            requests.append(LabelRequest(size, *candidates, own))
        places = place(requests, curves, fixed)
        outline = halo(ax)["path_effects"]
        for entry, where in zip(self._entries, places, strict=True):
            entry.text.set_visible(where is not None)
            if where is not None:
                entry.text.set_position((where.x, where.y))
                entry.text.set_path_effects([] if where.free else outline)


class EndLabels(_Labels):
    """Names right of the axes, beside the ends of their lines, apart and in the order of these."""

    def __init__(self) -> None:
        super().__init__()
        self._values: list[float] = []
        self.set_in_layout(True)

    def add(self, ax: Axes, words: str, y: float, **look: Any) -> None:
        """Add a label of the line that ends at a value."""
        self._text(ax, words, **({"fontsize": 9.5, "fontweight": "bold"} | look))
        self._values.append(y)

    def attach(self, ax: Axes) -> None:
        """Add all labels to the axes, outside of which they are."""
        if self.texts:
            ax.add_artist(self)
            self.set_clip_on(False)

    def get_window_extent(self, renderer: Any = None) -> Bbox:
        """Return the space that a layout has to leave."""
        self.arrange(renderer)
        return Bbox.union([text.get_window_extent(renderer) for text in self.texts])

    def arrange(self, renderer: RendererBase) -> None:
        """Stack the labels."""
        ax: Any = self.axes
        box, point = ax.get_window_extent(renderer), self._point()
        sizes = [_size(text, renderer) for text in self.texts]
        ends = ax.transData.transform([(ax.get_xlim()[1], value) for value in self._values])
        height = max(h for _, h in sizes)
        middle = apart(ends[:, 1], height + point, box.y0 + height / 2, box.y1 - height / 2)
        for text, size, y in zip(self.texts, sizes, middle, strict=True):
            text.set_position((box.x1 + _MARGIN * point, y - size[1] / 2))


class SpanLabels(_Labels):
    """Labels of spans of time at the top of the axes, each in its longest form that fits."""

    def __init__(self) -> None:
        super().__init__()
        self._spans: list[tuple[float, float]] = []
        self._forms: list[tuple[str, ...]] = []

    def add(self, ax: Axes, start: float, end: float, forms: Sequence[str]) -> None:
        """Add a span's label, longest form first."""
        self._text(ax, forms[0], fontsize=8.5, color=INK)
        self._spans.append((start, end))
        self._forms.append(tuple(forms))

    def arrange(self, renderer: RendererBase) -> None:
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
                last = max(box.x1 - margin - width, box.x0)
                left = float(np.clip(spans[k].mean() - width / 2, box.x0 + margin, last))
                strip = np.array([[left - margin, 0.0, left + width + margin, 1.0]])
                if width < box.width and not (len(taken) and overlap(strip, taken).any()):
                    text.set_position((left, box.y1 - margin - height))
                    placed = True
                    taken = np.concatenate([taken, strip])
                    break
            text.set_visible(placed)


def outside_legend(ax: Axes, handles: Sequence[Any], texts: Sequence[str]) -> Legend:
    """Put a legend at the right, outside the axes, in the order given."""
    # A last row counts the series for which the axes are not high enough.
    height = ax.get_window_extent().height * 72.0 / ax.figure.dpi
    most = max(3, int(height / 12.5) - 1)
    shown, words = list(handles), list(texts)
    if len(shown) > most:
        words = [*words[: most - 1], f"and {len(shown) - most + 1} more"]
        shown = [*shown[: most - 1], Line2D([], [], linestyle="none")]
    return ax.legend(
        shown, words, loc="upper left", bbox_to_anchor=(1.015, 1.0), frameon=False, fontsize=8.5,
        handlelength=2.4, borderaxespad=0.0, borderpad=0.0, labelspacing=0.42, handletextpad=0.6,
        labelcolor=INK, alignment="left",
    )  # fmt: skip


def _letters(ax: Axes) -> int:
    """Return how long a name right of the axes may be: 22 letters, or a quarter of the figure."""
    return min(22, int(ax.figure.bbox.width * 72.0 / ax.figure.dpi / 20))


def lanes(ax: Axes, names: Mapping[str, str], colours: Sequence[str], named: bool) -> None:
    """Give each of many series a lane one unit high, the first at the top, with its name."""
    # `names` has further words for each label. Where lanes are lower than a line of text, every
    # second or third is named.
    ax.yaxis.set_major_locator(FixedLocator(range(len(names) + 1)))
    ax.yaxis.set_major_formatter(NullFormatter())
    ax.tick_params(axis="y", length=0)
    ends, (bottom, top) = EndLabels(), ax.get_ylim()
    each = size_in_points(ax)[1] / (top - bottom)
    short, words = short_names(list(names), _letters(ax)), list(names.values())
    for k in range(0, len(names) if named else 0, math.ceil(11.5 / each)):
        text, place = f"{plain(short[k])}   {words[k]}", len(names) - k - 0.5
        ends.add(ax, text, place, color=colours[k], fontsize=8.5, fontweight="normal")
    ends.attach(ax)


def name_curves(
    ax: Axes,
    labels: LineLabels,
    series: Mapping[str, object],
    curves: Mapping[str, object],
    ends: Mapping[str, tuple[float, str]],
    lines: Mapping[str, Sequence[Line2D]],
    places: tuple[float, float, float],
    *,
    across: bool = False,
    named: bool = True,
) -> None:
    """Name few series beside their curves and many in a legend; label each maximum."""
    # `ends` has the highest value of each series and the words for it, by which a legend is sorted;
    # `places` is where the first name would like to be, the distance of the next, and the
    # tolerance.
    alike = len({words for _, words in ends.values()}) == 1
    if named and len(series) > FEW:
        order = sorted(series, key=lambda label: -float(f"{ends[label][0]:.3g}"))
        texts = [
            "   ".join(filter(None, (plain(short), "" if alike else ends[label][1])))
            for label, short in zip(order, short_names(order, _letters(ax)), strict=True)
        ]
        outside_legend(ax, [lines[label][0] for label in order], texts)
        if not alike:
            return
    elif named and len(series) > 1:
        first, step, tolerance = places
        for k, (label, data) in enumerate(series.items()):
            name, at = named_count(distinct_names(series, 32)[label], data), first + step * k
            labels.add(ax, name, lines[label], at=at, spread=tolerance)
    for words, members in named_tops(ax, {label: ends[label] for label in curves}, across=across):
        colour = lines[members[0]][0].get_color() if len(members) == 1 and len(series) > 1 else INK
        top, own = ends[members[-1]][0], [line for label in members for line in lines[label]]
        (left, _), (bottom, _) = ax.get_xlim(), ax.get_ylim()
        end = (max(top, left), bottom) if across else (100.0, max(top, bottom))
        labels.point(ax, words, end, own, color=colour, fontsize=9)


_NEAR = 13.0
"""Points between two marks below which one label names both: two would not fit beside them."""


def named_tops(
    ax: Axes, ends: Mapping[str, tuple[float, str]], *, across: bool = False
) -> list[tuple[str, list[str]]]:
    """Return texts for the highest values of series, and whose each is: one where they meet."""
    # `ends` has the highest value of each series and the words for it; `across` where values are
    # along the x axis.
    step = _NEAR * ax.figure.dpi / 72.0 * (5.0 if across else 1.0)
    corner = (ax.get_xlim()[0], ax.get_ylim()[0])
    groups: list[list[str]] = []
    last = -np.inf
    for label in sorted(ends, key=lambda label: ends[label][0]):
        top = ends[label][0]
        point = (top, corner[1]) if across else (corner[0], top)
        place = float(ax.transData.transform(point)[0 if across else 1])
        if place - last >= step or not groups:
            groups.append([])
        groups[-1].append(label)
        last = place
    everyone = {1: "", 2: " (both)"}.get(len(ends), f" (all {len(ends)})")
    named = []
    for members in groups:
        words = list(dict.fromkeys(ends[label][1] for label in members))
        shared = everyone if len(members) == len(ends) else ""
        if len(words) == 1:
            named.append((words[0] + shared, members))
        elif all(text.startswith("max ") for text in words):
            named.append((f"{words[0]} to {words[-1].removeprefix('max ')}{shared}", members))
        else:
            named += [(text, [one for one in members if ends[one][1] == text]) for text in words]
    return named


# ------------------------------------------------------------
# The title, and the grey line of conditions below it, fitted to the width of the figure.


def wrapped(text: str, width: float, lines: int, measure: Callable[[str], float]) -> str:
    """Return `text` broken at blanks into at most `lines` lines; an ellipsis marks the rest."""
    look: Any = {"max_lines": lines, "placeholder": " …", "break_on_hyphens": False}

    def rows(letters: int) -> list[str]:
        return textwrap.wrap(text, letters, **look)

    def too_wide(letters: int) -> bool:
        return max(map(measure, rows(letters)), default=0.0) > width

    most = bisect_left(range(3, len(text) + 1), True, key=too_wide) + 2
    return "\n".join(rows(max(most, 3)))


class Heading(_Labels):
    """Title and conditions above the axes, flush with their left edge."""

    zorder = 5

    def __init__(self, ax: Axes, title: str, conditions: str) -> None:
        super().__init__()
        self.title, self.conditions = title, conditions
        bold: Any = {"fontsize": 12.5, "fontweight": "bold", "color": INK, "linespacing": 1.15}
        self._text(ax, conditions, fontsize=9, color=MUTED, linespacing=1.25)
        self._text(ax, title, **bold)
        self.set_in_layout(True)

    def arrange(self, renderer: RendererBase) -> None:
        """Break the texts at the figure's right edge and stack them above the axes."""
        axes: Any = self.axes
        figure = axes.figure
        point = figure.dpi / 72.0
        box, right = axes.get_window_extent(renderer), figure.bbox.x1
        for other in figure.axes:
            own = other.get_window_extent(renderer)
            if other is not axes and own.x0 >= box.x1 and own.y0 < box.y1 and own.y1 > box.y0:
                ticks = other.yaxis.get_tightbbox(renderer)
                right = min(right, own.x0 if ticks is None else ticks.x0)
        width = max(right - box.x0 - 6 * point, 36 * point)
        y = box.y1 + 6 * point
        for text, full in zip(self.texts, (self.conditions, self.title), strict=True):
            if not full:
                continue

            def measure(part: str, text: Text = text) -> float:
                text.set_text(part)
                return float(text.get_window_extent(renderer).width)

            text.set_text(wrapped(full, width, 2, measure))
            text.set_position((box.x0, y))
            y = text.get_window_extent(renderer).y1 + 3 * point

    def get_window_extent(self, renderer: RendererBase | None = None) -> Bbox:
        """Return the box around the texts."""
        if renderer is None:
            renderer = self.axes.figure.canvas.get_renderer()  # type: ignore[union-attr]
        self.arrange(renderer)
        boxes = [text.get_window_extent(renderer) for text in self.texts if text.get_text()]
        return Bbox.union(boxes) if boxes else Bbox.null()


_ALT_LABELS = 12
"""Labels per axes that an alternative text repeats; further ones are left out."""


def alt_text(figure: Any) -> str:
    """Return the alternative text of a chart: its heading, axes and labels."""
    parts: list[str] = []
    for ax in figure.axes:
        for heading in (artist for artist in ax.artists if isinstance(artist, Heading)):
            parts += [heading.title, heading.conditions]
        sides = [side for side in (ax.get_ylabel(), ax.get_xlabel()) if side]
        parts.append(" against ".join(sides))
        others = (artist for artist in ax.artists if not isinstance(artist, Heading))
        texts = [text for artist in others if isinstance(artist, _Labels) for text in artist.texts]
        labels = [" ".join(text.get_text().split()) for text in texts]
        parts.append("; ".join(list(dict.fromkeys(labels))[:_ALT_LABELS]))
    text = ". ".join(dict.fromkeys(part for part in parts if part))
    return text.replace("\\$", "$")


def _described(figure: object, **_: object) -> tuple[dict[str, object], dict[str, object]]:
    """The alternative text as IPython asks for it: metadata beside the pictures that it makes."""
    about = {"alt": alt_text(figure)}
    return {}, {"image/png": about, "image/svg+xml": about}


def head(
    ax: Axes, finding: str, conditions: str, title: str | None = None, subtitle: str | None = None
) -> None:
    """Put a heading above the axes, in place of an earlier one."""
    finding = finding if title is None else plain(title, 200)
    conditions = conditions if subtitle is None else plain(subtitle, 300)
    for artist in [artist for artist in ax.artists if isinstance(artist, Heading)]:
        artist.remove()
    if finding or conditions:
        heading = Heading(ax, finding, conditions)
        ax.add_artist(heading)
        heading.set_clip_on(False)
    lighten(ax)
    figure: Any = ax.figure.canvas.figure  # not a part of it
    figure._repr_mimebundle_ = partial(_described, figure)
    # Names at the right and headings need room, which a layout gives them as the chart is resized.
    if figure.get_layout_engine() is None and ax.get_subplotspec() is not None:
        figure.set_layout_engine("constrained")
