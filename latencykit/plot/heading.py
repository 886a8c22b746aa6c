"""A chart's title and the grey line of conditions below it, fitted to the width of the figure when they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.artist import Artist
from matplotlib.text import Text
from matplotlib.transforms import Bbox, IdentityTransform

from latencykit.plot.style import INK, MUTED, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

__all__ = ["Heading", "head", "wrapped"]


def wrapped(text: str, width: float, lines: int, measure: Callable[[str], float]) -> str:
    """Return `text` broken at blanks into at most so many lines; what does not fit ends in an ellipsis.

    Examples
    --------
    >>> wrapped("one two three four", 9, 2, len)
    'one two\\nthree …'
    """
    rows: list[str] = []
    words = text.split(" ")
    while words:
        count = len(words)
        while count > 1 and measure(" ".join(words[:count])) > width:
            count -= 1
        row, words = " ".join(words[:count]), words[count:]
        if words and len(rows) == lines - 1:
            while count > 1 and measure(f"{row} …") > width:
                row = row.rsplit(" ", 1)[0]
                count -= 1
            row, words = f"{row} …", []
        while len(row) > 2 and measure(row) > width:
            row = row.removesuffix("…")[:-1] + "…"
        rows.append(row)
    return "\n".join(rows)


class Heading(Artist):
    """Title and conditions above the axes, flush with their left edge.

    Parameters
    ----------
    title, conditions : str
        Already safe to draw (see `style.plain`); either may be empty.
    """

    zorder = 5

    def __init__(self, ax: Axes, title: str, conditions: str) -> None:
        super().__init__()
        self.title, self.conditions = title, conditions
        common: dict[str, Any] = {"va": "bottom", "ha": "left", "transform": IdentityTransform(), "figure": ax.figure}
        self._title = Text(0, 0, title, fontsize=12.5, fontweight="bold", color=INK, linespacing=1.15, **common)
        self._conditions = Text(0, 0, conditions, fontsize=9, color=MUTED, linespacing=1.25, **common)

    def get_children(self) -> list[Artist]:
        """Return the texts."""
        return [text for text in (self._title, self._conditions) if text.get_text()]

    def _fit(self, renderer: Any) -> list[Text]:
        """Break the texts at the figure's right edge and stack them above the axes."""
        assert self.axes is not None
        figure: Any = self.axes.figure
        point = figure.dpi / 72.0
        box = self.axes.get_window_extent(renderer)
        width = figure.bbox.x1 - box.x0 - 6 * point
        y = box.y1 + 6 * point
        shown = []
        for text, full, lines in ((self._conditions, self.conditions, 2), (self._title, self.title, 2)):
            if not full:
                continue

            def measure(part: str, text: Text = text) -> float:
                text.set_text(part)
                return float(text.get_window_extent(renderer).width)

            text.set_text(wrapped(full, width, lines, measure))
            text.set_position((box.x0, y))
            y = text.get_window_extent(renderer).y1 + 3 * point
            shown.append(text)
        return shown

    def get_window_extent(self, renderer: Any = None) -> Bbox:
        """Return what the texts cover."""
        renderer = renderer if renderer is not None else self.axes.figure.canvas.get_renderer()  # type: ignore[union-attr]
        boxes = [text.get_window_extent(renderer) for text in self._fit(renderer)]
        return Bbox.union(boxes) if boxes else Bbox.null()

    def get_tightbbox(self, renderer: Any = None) -> Bbox | None:
        """Return what a layout has to leave room for."""
        return self.get_window_extent(renderer) if self.title or self.conditions else None

    def draw(self, renderer: Any) -> None:
        """Draw the texts."""
        if self.get_visible():
            for text in self._fit(renderer):
                text.draw(renderer)
        self.stale = False


def head(ax: Axes, said: str, conditions: str, title: str | None = None, subtitle: str | None = None) -> None:
    """Put a heading above the axes, in place of one that is there.

    Parameters
    ----------
    ax : Axes
    said, conditions : str
        What the software has to say; safe to draw.
    title, subtitle : str, optional
        What the user wants there instead, as it is; empty for nothing.
    """
    said = said if title is None else plain(title, 200)
    conditions = conditions if subtitle is None else plain(subtitle, 300)
    for artist in [one for one in ax.artists if isinstance(one, Heading)]:
        artist.remove()
    if said or conditions:
        heading = Heading(ax, said, conditions)
        ax.add_artist(heading)
        heading.set_clip_on(False)
