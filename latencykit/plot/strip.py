"""The strip at the foot of a timeline: requests per second of each interval, the failed ones in red."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.plot.courses import envelope, steps
from latencykit.plot.style import GREY, INK, RED, tidy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from latencykit.plot.courses import Course

    Floats = NDArray[np.float64]

__all__ = ["STRIP", "draw_strip", "taken"]

STRIP = 0.16
"""Share of the chart's height that the strip takes."""


def taken(ax: Axes) -> float:
    """Return the share of the height that the strip and the gap above it take."""
    return min(0.4, STRIP + 13.0 * ax.figure.dpi / 72.0 / max(ax.get_window_extent().height, 1.0))


def draw_strip(
    ax: Axes,
    courses: Mapping[str, Course],
    styles: Mapping[str, dict[str, Any]],
    columns: int,
    failed: Mapping[str, Floats | None],
) -> None:
    """Draw the strip along the foot of the chart.

    Parameters
    ----------
    ax : Axes
        The chart.
    courses : mapping of str to Course
    styles : mapping of str to dict
        Colour of each series; a single one is grey.
    columns : int
        At most so many columns: of more intervals each shows the highest and the lowest rate.
    failed : mapping of str to ndarray or None
        Failed requests per second of each interval, where known.
    """
    strip: Axes = ax.inset_axes((0.0, 0.0, 1.0, STRIP), sharex=ax)
    strip.patch.set_alpha(0.0)
    top = 0.0
    for label, course in courses.items():
        colour = GREY if len(courses) == 1 else styles[label]["color"]
        shown = envelope(course, course.rate, columns)
        gap = course.gap if shown.merged == 1 else shown.start[1:] > shown.end[:-1] + 1e-9
        x, y = steps(shown.start, shown.end, shown.high, gap)
        strip.plot(x, y, color=colour, linewidth=0.9, label="rate")
        if len(courses) == 1:
            low = steps(shown.start, shown.end, shown.low, gap)[1]
            strip.fill_between(x, 0, low, color=colour, alpha=0.30, linewidth=0)
            strip.fill_between(x, low, y, color=colour, alpha=0.15, linewidth=0)
        bad = failed[label]
        if bad is not None:
            worst = envelope(course, bad, columns)
            x, y = steps(worst.start, worst.end, worst.high, gap)
            strip.fill_between(x, 0, y, color=RED, alpha=0.75, linewidth=0, label="failed")
        top = max(top, float(np.nanmax(shown.high, initial=0.0)))
    strip.set_ylim(0, top * 1.02 or 1.0)
    tidy(strip)
    strip.grid(visible=False)
    strip.xaxis.set_visible(False)
    text = f"{top:,.0f}/s" if top >= 10 else f"{top:.2g}/s"
    strip.set_yticks([0, top] if top else [0], ["0", text] if top else ["0"])
    strip.tick_params(labelsize=8, labelcolor=INK)
    for side in strip.spines.values():
        side.set_visible(False)
    strip.spines["left"].set_visible(True)
