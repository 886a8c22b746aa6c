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

__all__ = ["SHADED", "band", "band_ends", "cut", "draw_curve", "grid_of", "nines_of", "spread"]

SHADED = "shaded: the source says no more"
"""What a chart says of areas that `spread` fills."""

_EVENT = (0, (3.4, 2.0))
"""The dashes of what rests on a few events."""


def cut(curve: Curve, start: float, end: float) -> tuple[Floats, Floats]:
    """Return the corners of a curve between two percentiles, for ``drawstyle="steps-pre"``.

    Returns
    -------
    percentile, value : ndarray of float64, shape (points,)
        Empty where the curve does not reach `start`; NaN where the source does not pin the value down.
    """
    last = float(curve.percentile[-1])
    if start >= min(end, last):
        return np.zeros(0), np.zeros(0)
    inside = (curve.percentile > start) & (curve.percentile < min(end, last))
    at = np.concatenate(([start], curve.percentile[inside], [min(end, last)]))
    value = np.concatenate((curve.at([start]), curve.value[inside], curve.at([min(end, last)])))
    return at, np.where(curve.known_at(at), value, np.nan)


def draw_curve(
    ax: Axes, curve: Curve, style: dict[str, Any], zero: float, dashed_from: float | None = None, *, crowded: bool = False
) -> list[Line2D]:
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
    crowded : bool, default False
        Many series share the axes: areas are hardly filled.
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
    lines += spread(ax, curve, look, zero, crowded=crowded)
    mark = {"linestyle": "none", "color": look["color"], "clip_on": False, "markersize": 4.0, "zorder": 4, "label": "_nolegend_"}
    if curve.bound is not None:
        last = float(curve.percentile[-1])
        lines += ax.plot(
            [last, last, 100.0], [max(float(curve.value[-1]), zero), curve.top, curve.top], **faint | {"label": "_nolegend_"}
        )
        ax.plot([100.0], [curve.top], marker="^", **mark)
    elif curve.top_known:
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
    grid, low, high = band_ends(rung, curve, confidence, nines)
    if not grid.size:  # corrected counts
        return
    ax.fill_between(
        grid, np.maximum(low, zero), np.maximum(high, zero), step="pre", color=colour, alpha=0.15, linewidth=0, zorder=2
    )


def band_ends(rung: Any, curve: Curve, confidence: float, nines: float) -> tuple[Floats, Floats, Floats]:
    """Return percentiles and the ends of the confidence band up to each; the curve lies within, for each of its steps is one."""
    grid = grid_of(curve.limit, nines)
    grid = np.unique(np.concatenate((grid, curve.percentile[curve.percentile <= grid[-1]])))
    rows = rung.percentile_rows(grid * (1 - 4e-16), confidence)
    low, high = np.array([row.low for row in rows]), np.array([row.high for row in rows])
    known = ~(np.isnan(low) & np.isnan(high))
    value = curve.at(grid)  # of a dense curve fewer steps are drawn than there are
    low = np.minimum(np.where(np.isfinite(low), low, curve.low[0]), value)
    high = np.maximum(np.where(np.isfinite(high), high, curve.top), value)
    return grid[known], low[known], high[known]


def spread(
    ax: Axes, curve: Curve, look: dict[str, Any], zero: float, *, across: bool = False, least: float = 0.0, crowded: bool = False
) -> list[Line2D]:
    """Fill from the lower to the upper edge where the source says no more, and mark what the tool printed.

    Parameters
    ----------
    ax : Axes
    curve : Curve
    look : dict
        Colour and width of the series' line.
    zero : float
        Where values of zero are drawn.
    across : bool, default False
        Values lie along x and shares of requests above them along y, not percentiles along x and values along y.
    least : float, default 0
        The least share that is drawn.
    crowded : bool, default False
        Many series share the axes.

    Returns
    -------
    list of Line2D
        The upper edge, beside which labels may stand; none where everything is pinned down.
    """
    if not curve.wide:
        return []
    at = np.maximum(1.0 - curve.percentile / 100.0, least) if across else curve.percentile
    low, high = (np.where(curve.resolved, np.nan, np.maximum(edge, zero)) for edge in (curve.low, curve.value))
    fill = {"color": look["color"], "alpha": 0.04 if crowded else 0.2, "linewidth": 0, "zorder": 2, "step": "pre"}
    (ax.fill_betweenx if across else ax.fill_between)(at, low, high, **fill)
    thin = {"color": look["color"], "linewidth": 0.7, "alpha": 0.7, "zorder": 2.2, "label": "_edge"}
    style = {"drawstyle": "steps-post" if across else "steps-pre", **thin, "linestyle": look.get("linestyle", "solid")}
    lower, upper = ((edge, at) if across else (at, edge) for edge in (low, high))
    ax.plot(*lower, **style)
    lines: list[Line2D] = ax.plot(*upper, **style)
    p, value = np.asarray(curve.printed[0], np.float64), np.maximum(np.asarray(curve.printed[1], np.float64), zero)
    inner = (p > 0) & (p < 100)
    p = np.maximum(1.0 - p / 100.0, least) if across else p
    place = (value, p) if across else (p, value)
    mark = {"linestyle": "none", "marker": "o", "markersize": 4.0, "color": look["color"], "zorder": 4, "label": "_printed"}
    ax.plot(*(part[inner] for part in place), **mark)
    return lines


def nines_of(count: int | None) -> int:
    """Return how many nines an axis needs for a sample: its last step stands shortly before 100 %, six nines at most.

    Examples
    --------
    >>> nines_of(6852), nines_of(1_000_000), nines_of(20)
    (4, 6, 2)
    """
    return 6 if count is None else int(min(6, max(2, math.ceil(math.log10(max(count, 1)) - 0.4))))
