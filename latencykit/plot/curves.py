"""Percentile curves as steps, never a straight line between two distant samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latencykit._records import record
from latencykit._text import format_items
from latencykit._typing import Floats
from latencykit.core.percentile_rows import CHOSEN, Doubt
from latencykit.core.quantiles import is_resolved
from latencykit.plot.style import UNCERTAIN, UNSUPPORTED, Look, marked, role_of
from latencykit.units import format_range, format_value, percentile_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from latencykit.core.evidence import Evidence


_MOST, _A_NINE = 4000, 1000
"""Of a curve with more points, this many per nine of the axis are kept, more than visible."""


@record()
class Curve:
    """A step function: a value applies up to its own percentile (``drawstyle="steps-pre"``)."""

    # The last point is 100 % and the maximum, or, where values are censored, the last percentile
    # that is known.

    percentile: Floats  # ascending, as values are
    value: Floats
    low: Floats  # the least that each value can be: the lower edge of its bucket
    limit: float  # highest percentile that the sample supports; 100 for models
    bound: float | None  # lower limit of the censored values, which lie beyond the last point
    unit: str
    count: int | None  # of the values behind it; None for models
    censored: int = 0
    reported_percentiles: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())  # and values
    top_low: float = 0.0  # the least that the maximum can be, or what the tool reports

    @property
    def top(self) -> float:
        """The highest value known: the maximum, or the least that it can be."""
        return max(self.bound or 0.0, float(self.value[-1]), self.top_low)

    @cached_property
    def resolved(self) -> NDArray[np.bool_]:
        """True for values known within a tenth, shape (points,); the others are drawn as a band."""
        return is_resolved(self.low, self.value)

    @property
    def wide(self) -> bool:
        """True where some value is known less precisely than a line shows it."""
        return not bool(self.resolved.all())

    @property
    def top_known(self) -> bool:
        """True where the maximum is known within a tenth."""
        return self.bound is None and bool(is_resolved(self.top_low, self.top))

    def at(self, percentiles: ArrayLike) -> Floats:
        """Return the value at each percentile; the highest known where the sample is censored."""
        return self._looked_up(self.value, percentiles, self.bound or self.top)

    def known_at(self, percentiles: ArrayLike) -> NDArray[np.bool_]:
        """Return True for each percentile whose value is known within a tenth."""
        return self._looked_up(self.resolved, percentiles, True)

    def _looked_up(self, values: NDArray[Any], percentiles: ArrayLike, beyond: Any) -> NDArray[Any]:
        at = np.searchsorted(self.percentile, np.asarray(percentiles, np.float64), "left")
        return np.where(at < values.size, values[np.minimum(at, values.size - 1)], beyond)


def curve_of(data: Any) -> Curve:
    """Return the percentile curve of a histogram with values, or of a model."""
    bound, count = None, None
    extras: dict[str, Any]
    if hasattr(data, "probabilities"):
        filled = data.probabilities > 0
        index, limit = data.index[filled], 100.0
        share = 100.0 * np.minimum(np.cumsum(data.probabilities[filled]), 1.0)
        share[-1] = 100.0
        value, low = data.buckets.high(index), data.buckets.low(index)
        extras = {"top_low": float(low[-1])}
        bound = data.censored_at if math.isfinite(data.censored_at) else None
        if hasattr(data, "supported"):  # as far as the single calls of a fan-out support it
            grid = 100.0 * (1.0 - 10.0 ** -np.linspace(0.0, 6.0, 121))
            supported = [True, *map(data.supported, grid[1:].tolist()), False]
            limit = float(grid[supported.index(False) - 1])
    else:
        share = 100.0 * data.cumulative / (data.count + data.censored)
        # A hair below each step's end, so that rounding cannot reach into the next bucket.
        value = np.asarray(data.percentile(share * (1 - 4e-16)), np.float64)
        low, limit, count = np.minimum(data.counted.low, value), data.sample_limit(), data.count
        if data.censored:
            bound = float(data.censored_at)
            known = data.buckets.high(data.index) <= bound
            share, value, low = share[known], value[known], low[known]
            if not share.size:
                share, value, low = np.zeros(1), np.full(1, bound), np.full(1, bound)
        top_low = float(data.max) if data.censored else data.bounds("max")[0]
        extras = {"censored": data.censored, "top_low": top_low}
        if len(data.reported_percentiles[0]) <= CHOSEN:
            extras["reported_percentiles"] = data.reported_percentiles
    kept = shown_points(share)
    share, value, low = share[kept], value[kept], low[kept]
    steps = np.append(0.0, share), np.append(value[:1], value), np.append(low[:1], low)
    return Curve(*steps, limit, bound, data.unit, count, **extras)


def place_of(percentile: ArrayLike, most: float = 12.0) -> Floats:
    """Return the place of each percentile on an axis of nines, at most that of 100 %."""
    share = 1.0 - np.asarray(percentile, np.float64) / 100.0
    return np.asarray(np.round(-np.log10(np.clip(share, 10.0**-most, None)), 12) + 0.0)


def shown_points(percentile: Floats) -> NDArray[np.bool_]:
    """Return which points of a curve to draw; of many on one place, the first and the last."""
    # The first ends the step before it at its place, the last is the highest.
    if percentile.size <= _MOST:
        return np.ones(percentile.size, np.bool_)
    new = np.diff(np.floor(place_of(percentile) * _A_NINE)) > 0
    return np.asarray(np.append(new, True) | np.append(True, new))


def grid_of(limit: float, nines: float, points: int = 260) -> Floats:
    """Return percentiles from 0 to `limit`, evenly by nines."""
    top = float(min(place_of(np.array([limit]))[0], nines + 0.6))
    grid = 100.0 * (1.0 - 10.0 ** -np.linspace(0.0, top, points))
    grid[-1] = min(limit, 100.0)
    return grid


def nines_of(count: int | None) -> int:
    """Return the nines of an axis for a sample, at most six: its last step is close to 100 %."""
    return 6 if count is None else int(min(6, max(2, math.ceil(math.log10(max(count, 1)) - 0.4))))


def two_stories(series: Mapping[str, object], curves: Mapping[str, Curve]) -> str | None:
    """Return the percentile on which a raw and a corrected measurement differ most."""
    # Only percentiles that both samples support count, and only differences of more than a tenth.
    roles = {role_of(label, data): label for label, data in series.items()}
    if len(series) != 2 or set(roles) != {"raw", "honest"} or not set(series) <= set(curves):
        return None
    raw, honest = curves[roles["raw"]], curves[roles["honest"]]
    supported = min(raw.limit, honest.limit)
    usual = np.array([p for p in (50.0, 90.0, 99.0, 99.9) if p <= supported])
    usual = usual[raw.known_at(usual) & honest.known_at(usual)]
    if not usual.size:
        return None
    flattered, true = raw.at(usual), honest.at(usual)
    worst = int(np.argmax(true / np.maximum(flattered, 1e-12)))
    if not true[worst] > 1.1 * flattered[worst]:
        return None
    low, high = (format_value(float(value[worst]), raw.unit, 2) for value in (flattered, true))
    return f"Two stories: {percentile_name(float(usual[worst]))} is {low} or {high}"


def end_words(curve: Curve) -> str:
    """Return the label of a curve's end: its maximum, or the bound of its censored values."""
    show = partial(format_value, unit=curve.unit)
    if curve.bound is not None:
        number = f" ({format_items(curve.censored, 'request')})" if curve.censored else ""
        return f"≥ {show(curve.top)}{number}"
    top = show(curve.top) if curve.top_known else format_range(curve.top_low, curve.top, show)
    return f"max {top}"


# ------------------------------------------------------------
# Drawing: solid where the sample supports the curve, dashed where a few events dominate it, dotted
# beyond.


def cut(curve: Curve, start: float, end: float) -> tuple[Floats, Floats]:
    """Return the corners of a curve between two percentiles, for ``drawstyle="steps-pre"``."""
    end = min(end, float(curve.percentile[-1]))
    if start >= end:
        return np.zeros(0), np.zeros(0)
    inside = (curve.percentile > start) & (curve.percentile < end)
    at = np.concatenate(([start], curve.percentile[inside], [end]))
    value = np.concatenate((curve.at([start]), curve.value[inside], curve.at([end])))
    return at, np.where(curve.known_at(at), value, np.nan)


def pieces(
    curve: Curve, look: Look, doubts: Sequence[Doubt]
) -> list[tuple[float, float, dict[str, Any]]]:
    """Return the parts of a curve: from and to a percentile, and the look; the last is faint."""
    parts: list[tuple[float, float, dict[str, Any]]] = []
    at, uncertain = 0.0, look | {"linestyle": UNCERTAIN}
    for one in doubts:
        first, last = min(one.first, curve.limit), min(one.last, curve.limit)
        if parts and first == at < last:  # another cause, the same dashes
            parts[-1] = (parts[-1][0], last, uncertain)
        elif last > first:
            parts += [(at, first, look), (first, last, uncertain)]
        at = max(at, last)
    faint = look | {"linewidth": 0.85 * look["linewidth"], "linestyle": UNSUPPORTED}
    return [*parts, (at, curve.limit, look), (curve.limit, 100.0, faint)]


def draw_curve(
    ax: Axes,
    curve: Curve,
    style: Look,
    zero: float,
    doubts: Sequence[Doubt] = (),
    *,
    crowded: bool = False,
    across: bool = False,
    least: float = 0.0,
) -> list[Line2D]:
    """Draw a curve in pieces and its end at 100 %; return its lines, the main first."""
    # `across`, against the shares above each value, of at least `least`. Between the edges of wide
    # buckets it is filled.
    look: Look = {
        "linewidth": 1.8,
        "solid_joinstyle": "miter",
        "dash_capstyle": "butt",
        "zorder": 3,
    } | style

    def placed(at: ArrayLike, value: ArrayLike) -> tuple[Floats, Floats]:
        at, value = np.asarray(at, np.float64), np.maximum(value, zero)
        return (value, np.maximum(1.0 - at / 100.0, least)) if across else (at, value)

    lines: list[Line2D] = []
    # The share above one value applies to every value up to the next.
    step = "steps-post" if across else "steps-pre"
    for start, end, kind in pieces(curve, look, doubts):
        at, value = cut(curve, start, end)
        if at.size:
            named = kind if not lines else kind | {"label": "_nolegend_"}
            lines += ax.plot(*placed(at, value), drawstyle=step, **marked(named, value))
    if curve.wide:  # and the percentiles that the tool reported are marked
        ends = [
            placed(curve.percentile, np.where(curve.resolved, np.nan, edge))
            for edge in (curve.low, curve.value)
        ]
        (low, high), at = (end[0 if across else 1] for end in ends), ends[0][1 if across else 0]
        fill, alpha = ax.fill_betweenx if across else ax.fill_between, 0.04 if crowded else 0.2
        fill(at, low, high, color=look["color"], alpha=alpha, linewidth=0, zorder=2, step="pre")
        thin: Look = {"color": look["color"], "linewidth": 0.7, "alpha": 0.7, "zorder": 2.2}
        thin |= {"drawstyle": step, "label": "_edge"}
        symbol: Look = {
            key: look[key] for key in ("marker", "markersize", "markevery") if key in look
        }
        ax.plot(*ends[0], **thin)
        lines += ax.plot(*ends[1], **thin, **marked(symbol, high))
        p, value = (np.asarray(part, np.float64) for part in curve.reported_percentiles)
        inner = (p > 0) & (p < 100)
        dot: Look = {"linestyle": "none", "marker": "o", "markersize": 4.0, "zorder": 4}
        ax.plot(*placed(p[inner], value[inner]), label="_printed", color=look["color"], **dot)
    mark = {"linestyle": "none", "color": look["color"], "clip_on": False, "zorder": 4}
    mark |= {"in_layout": False}  # which measuring a thousand of them would slow
    mark |= {"label": "_nolegend_", "markersize": 6.0 if across else 4.0}
    last, edge = float(curve.percentile[-1]), float(curve.value[-1])
    if curve.bound is not None and across:
        ax.plot(*placed([last], [curve.bound]), marker=">", **mark)
    elif curve.bound is not None:
        faint = kind | {"label": "_nolegend_"}
        corners = [edge, curve.bound, curve.bound, curve.top]
        lines += ax.plot(*placed([last, last, 100.0, 100.0], corners), **faint)
        ax.plot([100.0], [curve.top], marker="^", **mark)
    elif curve.top_known:
        ax.plot(*placed([100.0], [curve.top]), marker="v" if across else "o", **mark)
    return lines


def band(
    ax: Axes,
    ends: tuple[Floats, Floats, Floats],
    colour: str,
    zero: float,
    *,
    across: bool = False,
    least: float = 0.0,
) -> None:
    """Draw a confidence band, see `band_ends`; `across`, against shares of at least `least`."""
    grid, low, high = ends
    if grid.size:  # none for corrected counts
        at = np.maximum(1.0 - grid / 100.0, least) if across else grid
        fill = ax.fill_betweenx if across else ax.fill_between
        edges = np.maximum(low, zero), np.maximum(high, zero)
        look: dict[str, Any] = {"color": colour, "alpha": 0.15, "linewidth": 0, "zorder": 2}
        fill(at, *edges, step="pre", label="_band", **look)


def area_notes(ax: Axes, confidence: float | None) -> list[str]:
    """Return what the bands of a chart are, and the areas between the edges of wide buckets."""
    drawn = {artist.get_label() for artist in (*ax.collections, *ax.lines)}
    band = f"band: {100 * (confidence or 0.0):g} % interval" if "_band" in drawn else ""
    return [band, "shaded: the file gives only a range" if "_edge" in drawn else ""]


def band_ends(
    evidence: Evidence, curve: Curve, confidence: float, nines: float
) -> tuple[Floats, Floats, Floats]:
    """Return percentiles as far as a sample reaches, and the ends of the band at each."""
    # The curve lies within: each of its steps is one of the percentiles. A band without an upper
    # end reaches to the maximum.
    grid = grid_of(curve.limit, nines)
    grid = np.unique(np.concatenate((grid, curve.percentile[curve.percentile <= grid[-1]])))
    rows, _ = evidence.rows((grid * (1 - 4e-16)).tolist(), confidence)
    low, high = np.array([(row.low, row.high) for row in rows]).T
    known = ~(np.isnan(low) & np.isnan(high))
    value = curve.at(grid)  # of a dense curve fewer steps are drawn than there are
    low = np.minimum(np.where(np.isfinite(low), low, curve.low[0]), value)
    high = np.maximum(np.where(np.isfinite(high), high, curve.top), value)
    return grid[known], low[known], high[known]
