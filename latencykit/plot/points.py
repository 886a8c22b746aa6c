"""A summary as what it is: some labelled points, or one line where only a mean is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.plot.words import percentile_text
from latencykit.units import format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from latencykit.plot.labels import LineLabels
    from latencykit.summary import Summary

__all__ = ["draw_summary", "known_points", "what_is_missing"]

_LABELLED = 12
_USUAL = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0)


def known_points(summary: Summary) -> dict[float, float]:
    """Return the percentiles that a summary holds, its minimum and maximum among them, ascending."""
    known = dict(summary.percentiles)
    for name, percentile in (("min", 0.0), ("max", 100.0)):
        if name in summary.stats:
            known[percentile] = summary.stats[name]
    return dict(sorted(known.items()))


def what_is_missing(summary: Summary) -> str:
    """Return a plain sentence on what the chart cannot show."""
    tool = summary.run.tool or summary.run.source or "this output"
    if known_points(summary):
        return f"{tool} prints these points only: nothing is known between them"
    return f"{tool} prints a mean only: nothing is known of the distribution"


def draw_summary(ax: Axes, labels: LineLabels, summary: Summary, colour: str, *, alone: bool) -> list[Line2D]:
    """Draw points, or the mean as a line; alone, each with its value and with a sentence on what is missing."""
    known = known_points(summary)
    mean = summary.stats.get("mean")
    if known:
        look: dict[str, Any] = {
            "linestyle": "none",
            "marker": "o",
            "markersize": 5.5,
            "color": colour,
            "clip_on": False,
            "zorder": 4,
        }
        lines = ax.plot(list(known), list(known.values()), **look)
        crowded = len(known) > _LABELLED
        for percentile, value in known.items() if alone else ():
            if crowded and percentile not in _USUAL:
                continue
            name = "min" if percentile == 0 else percentile_text(percentile)
            labels.point(ax, f"{name} {format_value(value, summary.unit)}", (percentile, value), lines, fontsize=9)
    else:
        lines = [ax.axhline(mean if mean is not None else 1.0, color=colour, linewidth=1.6, linestyle=(0, (6, 2.5)))]
        if alone and mean is not None:
            labels.add(ax, f"mean {format_value(mean, summary.unit)}", lines, at=0.5)
    if alone:
        words = what_is_missing(summary)
        labels.note(ax, (words, words.replace(": ", ":\n")), lambda: ax.get_window_extent().extents, (0.97, 0.05))
    return lines
