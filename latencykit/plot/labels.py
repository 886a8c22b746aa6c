"""Labels that find their places when the chart is drawn: beside their curves, over their spans, or in a legend outside.

They are artists of their own, so that a change of size, limits or resolution places them anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import patheffects
from matplotlib.artist import Artist
from matplotlib.text import Text
from matplotlib.transforms import IdentityTransform

from latencykit.plot.placement import Wish, along, apart, beside, overlap, place, points_of, within
from latencykit.plot.style import INK, MUTED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from latencykit.plot.placement import Place

    Floats = NDArray[np.float64]

__all__ = ["EndLabels", "LineLabels", "SpanLabels", "make_room", "outside_legend"]

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
        text = Text(0, 0, words, transform=IdentityTransform(), figure=ax.figure, va="bottom", ha="left", **look)
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
    """Labels beside their curves, where nothing crosses them.

    Parameters
    ----------
    lower : float, default 0
        Share of the axes' height, from below, that is not theirs.
    """

    def __init__(self, lower: float = 0.0) -> None:
        super().__init__()
        self.lower = lower
        self._entries: list[_Entry] = []

    def add(self, ax: Axes, words: str, lines: Sequence[Line2D], *, at: float = 0.5, spread: float = 1.0, **look: Any) -> None:
        """Add a label of some lines that would like to stand at a share of the width."""
        look = {"fontsize": 9.5, "color": lines[0].get_color(), "fontweight": "bold"} | look
        self._entries.append(_Entry(self._text(ax, words, **look), tuple(lines), at, spread))

    def point(
        self, ax: Axes, words: str, at: tuple[float, float], lines: Sequence[Line2D], *, above: bool = False, **look: Any
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
        room = (box.x0 + margin, box.y0 + margin + self.lower * box.height, box.x1 - margin, box.y1 - margin)
        lines = [line for line in ax.lines if line.get_visible()]
        curves = [points_of(_pixels(line, box)) for line in lines]
        texts = [text for text in ax.texts if text.get_visible() and text.get_text()]
        fixed = np.array([text.get_window_extent(renderer).extents for text in texts]).reshape(-1, 4)
        firm = [entry for entry in self._entries if entry.region is None]
        wishes = [_beside(entry, renderer, room, lines, curves) for entry in firm]
        for entry, wish, where in zip(firm, wishes, place(wishes, curves, fixed), strict=True):
            fixed = self._put(entry.text, where, wish.size, fixed)
        for entry in self._entries:
            if entry.region is not None:
                fixed = self._put_note(entry, renderer, room, curves, fixed)

    def _put_note(
        self, entry: _Entry, renderer: Any, room: tuple[float, float, float, float], curves: list[Floats], fixed: Floats
    ) -> Floats:
        assert entry.region is not None
        left, lower, right, upper = entry.region()
        inside = (max(left, room[0]), max(lower, room[1]), min(right, room[2]), min(upper, room[3]))
        for form in entry.forms:
            entry.text.set_text(form)
            size = _size(entry.text, renderer)
            (where,) = place([Wish(size, *within(inside, size, corner=entry.corner))], curves, fixed)
            if where is not None and where.free:
                return self._put(entry.text, where, size, fixed)
        return self._put(entry.text, None, (0.0, 0.0), fixed)

    @staticmethod
    def _put(text: Text, where: Place | None, size: tuple[float, float], fixed: Floats) -> Floats:
        """Move a text to its place, or hide it; return all boxes that are taken now."""
        text.set_visible(where is not None)
        if where is None:
            return fixed
        text.set_position((where.x, where.y))
        text.set_path_effects([] if where.free else [patheffects.withStroke(linewidth=2.5, foreground="white")])
        return np.concatenate([fixed, [[where.x, where.y, where.x + size[0], where.y + size[1]]]])


def _beside(
    entry: _Entry, renderer: Any, room: tuple[float, float, float, float], lines: list[Line2D], curves: list[Floats]
) -> Wish:
    """The wish of a label to stand beside its lines, or beside its point."""
    own = tuple(k for k, line in enumerate(lines) if line in entry.lines)
    if entry.point is not None:
        size = _size(entry.text, renderer)
        x, y = entry.lines[0].axes.transData.transform(entry.point)  # type: ignore[union-attr]
        return Wish(size, *beside((float(x), float(y)), size, room, above=entry.above), own)
    course = np.concatenate([curves[k] for k in own]) if own else np.zeros((0, 2))
    size = _size(entry.text, renderer)
    return Wish(size, *along(course, size, room, at=entry.at, spread=entry.spread), own)


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
        x = ax.transData.transform(np.column_stack([np.array(self._spans).reshape(-1), np.ones(2 * len(self._spans))]))[:, 0]
        spans, taken = x.reshape(-1, 2), np.zeros((0, 4))
        for k in np.argsort(spans[:, 0] - spans[:, 1], kind="stable").tolist():
            text, placed = self.texts[k], False
            for form in self._forms[k]:
                text.set_text(form)
                width, height = _size(text, renderer)
                left = float(np.clip(spans[k].mean() - width / 2, box.x0 + margin, max(box.x1 - margin - width, box.x0)))
                mine = np.array([[left - margin, 0.0, left + width + margin, 1.0]])
                if width < box.width and not (len(taken) and overlap(mine, taken).any()):
                    text.set_position((left, box.y1 - margin - height))
                    placed = True
                    taken = np.concatenate([taken, mine])
                    break
            text.set_visible(placed)


def outside_legend(ax: Axes, handles: Sequence[Any], texts: Sequence[str], title: str | None = None) -> Legend:
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
