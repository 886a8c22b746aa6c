"""The percentile curve: the whole distribution, evenly by nines, with the maximum and the limit of trust."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.plot.curves import Curve, as_histogram, as_series, curve_of, describe
from latencykit.plot.style import (
    GREY,
    GROUND,
    INK,
    current_axes,
    line_styles,
    plain,
    side_labels,
    tidy,
    title_axes,
    value_axis,
)
from latencykit.summary import Summary
from latencykit.units import format_count, format_percentile, format_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

__all__ = ["percentiles", "staircase"]


def percentiles(
    data: Any,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Any = None,
    confidence: float | None = None,
    nines: float | None = None,
    log: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    runs: bool = False,
    **line_kwargs: Any,
) -> Axes:
    """Draw percentile curves.

    Parameters
    ----------
    data : rung, Distribution, or mapping of str to such
    ax : Axes, optional
        Where to draw; the current axes by default.
    unit : str, optional
        Fix the unit of the ticks to ``ns``, ``us``, ``ms`` or ``s``; by default each tick takes the one that suits it.
    slo : sequence of (percentile, limit in ns), or an SLO, optional
        Drawn as a staircase.
    confidence : float, optional
        Draw the band of that confidence.
    nines : float, optional
        Nines before 100 %; by default one more than the largest sample has, at most 6.
    log : bool, default True
        Logarithmic values.
    title, subtitle : str, optional
        By default what was measured.
    runs : bool, default False
        Thin lines for runs of one thing, and their envelope.
    **line_kwargs
        For the lines, as `Axes.plot` takes them.

    Returns
    -------
    Axes
    """
    ax = current_axes(ax)
    series = {label: as_histogram(rung) for label, rung in as_series(data).items()}
    curves = {label: curve_of(rung) for label, rung in series.items() if not isinstance(rung, Summary)}
    points = {label: rung for label, rung in series.items() if isinstance(rung, Summary)}
    places = nines or _nines(series)
    ax.set_xscale("percentile", nines=places)
    ax.set_xlim(0, 100)
    low, high, shown = _range(curves, points, slo)
    value_axis(ax, low, high, shown, log=log)
    if unit is not None:
        _fix_unit(ax, unit, shown)
    styles = dict(zip(series, line_styles(list(series)), strict=True))
    if runs and len(curves) > 1:
        _envelope(ax, curves, places)
        styles = {label: {"color": GREY, "linestyle": "solid", "linewidth": 0.8} for label in series}
    for label, curve in curves.items():
        _draw(ax, curve, styles[label] | line_kwargs, low)
        if confidence is not None and hasattr(series[label], "percentile_rows"):
            _band(ax, series[label], curve, confidence, styles[label]["color"], places, high)
    for label, summary in points.items():
        _draw_summary(ax, summary, styles[label])
    _limit_of_trust(ax, curves)
    if slo is not None:
        staircase(ax, slo)
    _end_labels(ax, series, curves, points, styles, few=not runs)
    ax.set_xlabel("percentile of requests", fontsize=9.5, color=INK)
    tidy(ax)
    first = next(iter(series))
    title_axes(
        ax,
        (first if len(series) == 1 else _several(series)) if title is None else title,
        subtitle if subtitle is not None else _conditions(series),
    )
    return ax


def _several(series: Mapping[str, Any]) -> str:
    return f"{len(series)} series: {', '.join(list(series)[:3])}{' …' if len(series) > 3 else ''}"


def _conditions(series: Mapping[str, Any]) -> str:
    if len(series) == 1:
        return describe(next(iter(series.values())))
    total = sum(rung.count or 0 for rung in series.values() if hasattr(rung, "count"))
    return f"{format_count(total)} requests in all" if total else ""


def _nines(series: Mapping[str, Any]) -> int:
    largest = max((rung.count or 1000 for rung in series.values() if hasattr(rung, "count")), default=10**6)
    return int(min(6, max(3, math.ceil(math.log10(max(largest, 1))) + 1)))


def _range(curves: Mapping[str, Curve], points: Mapping[str, Summary], slo: Any) -> tuple[float, float, str]:
    """Lowest and highest value to show, and the unit."""
    values = [curve.value for curve in curves.values()] + [np.asarray([curve.bound or curve.top]) for curve in curves.values()]
    values += [
        np.asarray([*summary.percentiles.values(), *(summary.stats.get(k, np.nan) for k in ("mean", "max"))])
        for summary in points.values()
    ]
    if slo is not None:
        values.append(np.asarray([limit for _, limit in _pairs(slo)]))
    flat = np.concatenate(values) if values else np.ones(1)
    positive = flat[np.isfinite(flat) & (flat > 0)]
    units = [curve.unit for curve in curves.values()] + [summary.unit for summary in points.values()]
    unit = units[0] if units else "ns"
    return (float(positive.min()), float(positive.max()), unit) if positive.size else (0.5, 1.0, unit)


def _fix_unit(ax: Axes, unit: str, stored: str) -> None:
    from matplotlib.ticker import FuncFormatter

    from latencykit.units import unit_factor

    factor = unit_factor(stored, unit)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * factor:,.10g} {unit.replace('us', 'µs')}"))


def _draw(ax: Axes, curve: Curve, style: dict[str, Any], floor: float) -> None:
    """Solid as far as the sample supports, dotted beyond; an arrow where the truth is only known to be higher."""
    solid: dict[str, Any] = {"linewidth": 1.8, "solid_joinstyle": "miter"} | style
    value = np.maximum(curve.value, floor / 1.3)  # zeros have no place on a logarithmic axis: they lie on its ground
    split = int(np.searchsorted(curve.percentile, curve.limit, "right"))
    at_limit = max(curve.at(curve.limit), floor / 1.3)
    end = min(curve.limit, float(curve.percentile[-1]))
    ax.plot(
        np.append(curve.percentile[:split], end),
        np.append(value[:split], at_limit),
        drawstyle="steps-pre",
        **solid,
    )
    if split < curve.percentile.size:
        dotted: dict[str, Any] = solid | {"linestyle": (0, (1.2, 1.6)), "linewidth": solid["linewidth"] * 0.9}
        ax.plot(
            np.append(end, curve.percentile[split:]),
            np.append(at_limit, value[split:]),
            drawstyle="steps-pre",
            **dotted,
        )
    if curve.bound is not None:
        ax.annotate(
            "", (float(curve.percentile[-1]), curve.bound * 1.3), (float(curve.percentile[-1]), curve.bound),
            arrowprops={"arrowstyle": "->", "color": solid["color"], "linewidth": 1.4}, annotation_clip=False,
        )  # fmt: skip


def _band(ax: Axes, rung: Any, curve: Curve, confidence: float, colour: str, nines: float, high: float) -> None:
    """The confidence band, as far as it has an upper end."""
    top = -math.log10(max(1 - curve.limit / 100, 10.0**-nines))
    grid = 100 * (1 - 10.0 ** -np.linspace(0, top, 240))
    rows = rung.percentile_rows(grid, confidence)
    low, upper = np.array([row.low for row in rows]), np.array([row.high for row in rows])
    known = np.isfinite(low) | np.isfinite(upper)
    if known.any():
        low = np.where(np.isfinite(low), low, curve.value[0])
        upper = np.where(np.isfinite(upper), upper, high)
        ax.fill_between(grid[known], low[known], upper[known], step="pre", color=colour, alpha=0.14, linewidth=0)


def _draw_summary(ax: Axes, summary: Summary, style: dict[str, Any]) -> None:
    """Labelled points where there are percentiles; one line where there is a mean only."""
    known = dict(summary.percentiles)
    if "max" in summary.stats:
        known[100.0] = summary.stats["max"]
    if known:
        at = sorted(known)
        ax.plot(
            at,
            [known[p] for p in at],
            linestyle="none",
            marker="o",
            markersize=5,
            color=style["color"],
            clip_on=False,
        )
        return
    mean = summary.stats.get("mean")
    if mean is not None:
        ax.axhline(mean, color=style["color"], linewidth=1.4, linestyle=(0, (5, 3)))
        text = "a mean only: nothing is known of the distribution"
        ax.annotate(
            text,
            (0.5, mean),
            (0, 4),
            ("axes fraction", "data"),
            "offset points",
            ha="center",
            va="bottom",
            fontsize=9,
            color=GREY,
        )


def _limit_of_trust(ax: Axes, curves: Mapping[str, Curve]) -> None:
    """Grey ground and a plain sentence where no sample reaches."""
    limit = max((curve.limit for curve in curves.values()), default=100.0)
    if limit >= 99.9999 or not curves:
        return
    ax.axvspan(limit, 100, color=GROUND, zorder=0, linewidth=0)
    text = f"beyond p{format_percentile(math.floor(limit * 1000) / 1000)} the\nsample is too small:\nthe curve is its maximum"
    ax.annotate(
        text,
        (limit, 0),
        (6, 6),
        ("data", "axes fraction"),
        "offset points",
        fontsize=8,
        color=GREY,
        va="bottom",
        linespacing=1.3,
    )


def _end_labels(
    ax: Axes, series: Mapping[str, Any], curves: Mapping[str, Curve], points: Mapping[str, Summary],
    styles: Mapping[str, dict[str, Any]], *, few: bool,
) -> None:  # fmt: skip
    """Name and maximum of each curve beside its right end."""
    if not few:
        tops = [curve.top for curve in curves.values()]
        worst = max(tops)
        unit = next(iter(curves.values())).unit
        side_labels(ax, [worst], [f"{len(tops)} runs\nmax {format_value(worst, unit)}"], [INK])
        return
    values, texts, colours = [], [], []
    for label in series:
        if label in curves:
            curve = curves[label]
            value = curve.top if curve.bound is None else max(curve.bound, curve.top)
            bound = (
                f"≥ {format_value(value, curve.unit)}"
                if curve.bound is not None
                else f"max {format_value(curve.top, curve.unit)}"
            )
        else:
            stats = points[label].stats
            value = stats.get("max", max(points[label].percentiles.values(), default=stats.get("mean", 1.0)))
            bound = (
                f"max {format_value(stats['max'], points[label].unit)}"
                if "max" in stats
                else f"mean {format_value(stats['mean'], points[label].unit)}"
                if "mean" in stats
                else ""
            )
        values.append(value)
        joint = "\n" if len(series) <= 4 else "  "
        texts.append(bound if len(series) == 1 else f"{plain(label, 26)}{joint}{bound}")
        colours.append(styles[label]["color"])
    side_labels(ax, values, texts, colours)


def _envelope(ax: Axes, curves: Mapping[str, Curve], nines: float) -> None:
    """The lowest and highest run at each percentile."""
    grid = 100 * (1 - 10.0 ** -np.linspace(0, nines + 0.6, 400))
    grid[-1] = 100.0
    values = np.array([[curve.at(p) for p in grid] for curve in curves.values()])
    ax.fill_between(grid, values.min(0), values.max(0), step="pre", color=GREY, alpha=0.2, linewidth=0)


def _pairs(slo: Any) -> list[tuple[float, float]]:
    return [(float(p), float(v)) for p, v in (slo.staircase() if hasattr(slo, "staircase") else slo)]


def staircase(ax: Axes, slo: Sequence[tuple[float, float]] | Any) -> None:
    """Draw the limits of an SLO: each holds up to its percentile."""
    pairs = sorted(_pairs(slo))
    if not pairs:
        return
    at = np.array([0.0, *(p for p, _ in pairs)])
    limits = np.array([pairs[0][1], *(v for _, v in pairs)])
    ax.plot(at, limits, drawstyle="steps-pre", color=INK, linewidth=1.3, zorder=3)
    ax.annotate("SLO", (0.0, limits[0]), (4, 3), "data", "offset points", fontsize=9, color=INK, va="bottom")
