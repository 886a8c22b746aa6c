"""How a percentile curve is drawn: solid where the sample supports it, dashed where one event does, dotted beyond."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.plot.curves import place_of
from latencykit.plot.style import UNSUPPORTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from latencykit.plot.curves import Curve

    Floats = NDArray[np.float64]

__all__ = ["band", "bracket", "cut", "draw_curve", "grid_of", "nines_of"]

_EVENT = (0, (3.4, 2.0))
"""The dashes of what rests on a few events."""


def cut(curve: Curve, start: float, end: float) -> tuple[Floats, Floats]:
    """Return the corners of a curve between two percentiles, for ``drawstyle="steps-pre"``.

    Returns
    -------
    percentile, value : ndarray of float64, shape (points,)
        Empty where the curve does not reach `start`.
    """
    last = float(curve.percentile[-1])
    if start >= min(end, last):
        return np.zeros(0), np.zeros(0)
    inside = (curve.percentile > start) & (curve.percentile < min(end, last))
    at = np.concatenate(([start], curve.percentile[inside], [min(end, last)]))
    return at, np.concatenate((curve.at([start]), curve.value[inside], curve.at([min(end, last)])))


def draw_curve(ax: Axes, curve: Curve, style: dict[str, Any], zero: float, dashed_from: float | None = None) -> list[Line2D]:
    """Draw a curve in up to three pieces and its end at 100 %; return the lines, the supported piece first.

    Parameters
    ----------
    ax : Axes
    curve : Curve
    style : dict
        For the supported piece; the others vary its dash.
    zero : float
        Where values of zero are drawn.
    dashed_from : float, optional
        Percentile from which the curve rests on so few events that it is not drawn solid.
    """
    look: dict[str, Any] = {"linewidth": 1.8, "solid_joinstyle": "miter", "dash_capstyle": "butt", "zorder": 3} | style
    faint = look | {"linewidth": 0.85 * look["linewidth"], "linestyle": UNSUPPORTED}
    first = curve.limit if dashed_from is None else min(dashed_from, curve.limit)
    pieces = [(0.0, first, look), (first, curve.limit, look | {"linestyle": _EVENT}), (curve.limit, 100.0, faint)]
    lines: list[Line2D] = []
    for start, end, kind in pieces:
        at, value = cut(curve, start, end)
        if at.size:
            named = kind if not lines else kind | {"label": "_nolegend_"}
            lines += ax.plot(at, np.maximum(value, zero), drawstyle="steps-pre", **named)
    mark = {"linestyle": "none", "color": look["color"], "clip_on": False, "markersize": 4.0, "zorder": 4, "label": "_nolegend_"}
    if curve.bound is not None:
        last = float(curve.percentile[-1])
        lines += ax.plot(
            [last, last, 100.0], [max(float(curve.value[-1]), zero), curve.top, curve.top], **faint | {"label": "_nolegend_"}
        )
        ax.plot([100.0], [curve.top], marker="^", **mark)
    else:
        ax.plot([100.0], [max(curve.top, zero)], marker="o", **mark)
    return lines


def grid_of(limit: float, nines: float, points: int = 260) -> Floats:
    """Return percentiles from 0 to `limit`, evenly by nines."""
    top = float(min(place_of(np.array([limit]))[0], nines + 0.6))
    grid = 100.0 * (1.0 - 10.0 ** -np.linspace(0.0, top, points))
    grid[-1] = min(limit, 100.0)
    return grid


def band(ax: Axes, rung: Any, curve: Curve, confidence: float, colour: str, nines: float, zero: float) -> None:
    """Draw the confidence band as far as the sample supports the curve; where it has no upper end it opens to the maximum."""
    grid = grid_of(curve.limit, nines)
    rows = rung.percentile_rows(grid, confidence)
    low, high = np.array([row.low for row in rows]), np.array([row.high for row in rows])
    known = ~(np.isnan(low) & np.isnan(high))
    if not known.any():
        return
    low = np.where(np.isfinite(low), low, curve.low[0])
    high = np.where(np.isfinite(high), high, curve.top)
    ax.fill_between(
        grid[known], np.maximum(low, zero)[known], np.maximum(high, zero)[known],
        step="pre", color=colour, alpha=0.15, linewidth=0, zorder=2,
    )  # fmt: skip


def bracket(ax: Axes, curve: Curve, colour: str, zero: float) -> None:
    """Shade from the lower to the upper edge of each bucket: the value lies somewhere in between."""
    ax.fill_between(
        curve.percentile, np.maximum(curve.low, zero), np.maximum(curve.value, zero),
        step="pre", color=colour, alpha=0.12, linewidth=0, zorder=2,
    )  # fmt: skip


def nines_of(count: int | None) -> int:
    """Return how many nines an axis needs for a sample: its last step stands shortly before 100 %, six nines at most.

    Examples
    --------
    >>> nines_of(6852), nines_of(1_000_000), nines_of(20)
    (4, 6, 2)
    """
    return 6 if count is None else int(min(6, max(2, math.ceil(math.log10(max(count, 1)) - 0.4))))
