"""Latency against load: percentiles, the throughput that was achieved, and the largest load within the SLO."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from latencykit.core.summary import Summary
from latencykit.errors import DataNotAvailableError
from latencykit.plot.axes import fit_values
from latencykit.plot.figure import head, percentile_text, slo_pairs
from latencykit.plot.label_layout import LineLabels
from latencykit.plot.style import BLUE, COLOURS, GREY, INK, RED, current_axes, tidy
from latencykit.units import format_count, format_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from latencykit.analysis.capacity import LoadCurve, LoadRow
    from latencykit.core import Data
    from latencykit.plot._typing import Limits

__all__ = ["load_curve"]

_STRIP, _GAP = 0.2, 0.07
_TAIL = 99.9


def load_curve(
    data: LoadCurve | Mapping[str, Data],
    *,
    ax: Axes | None = None,
    slo: Limits | None = None,
    percentiles: Sequence[float] = (50.0, 90.0, 99.0, _TAIL),
    confidence: float = 0.95,
    unit: str | None = None,
    log: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: Any,
) -> Axes:
    """Draw percentiles against load, with the throughput that each run achieved below.

    Parameters
    ----------
    data : LoadCurve, or mapping of str to data type
        Runs at different loads; see `latencykit.load_curve`.
    ax : Axes, optional
        Where to draw; the current axes by default.
    slo : SLO or str, optional
        Its limits, and the largest load that meets them, between the last load that did and the first that did not.
    percentiles : sequence of float
        A line each; the highest, the tail, is the boldest.
    confidence : float, default 0.95
        Of the bars around the tail's points, and of what meets the SLO.
    unit, log, title, subtitle
        As in `percentiles`.
    **line_kwargs
        For the lines, as `Axes.plot` takes them.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        Where no run holds one of the percentiles.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from latencykit.core.histogram import Histogram
    >>> runs = {str(rate): Histogram.of(np.arange(1, 4000) * rate) for rate in (100, 200, 400)}
    >>> ax = load_curve(runs, ax=Figure().add_subplot(), slo="99=1ms")
    >>> [line.get_label() for line in ax.lines if not line.get_label().startswith("_")]
    ['p50', 'p90', 'p99', 'p99.9']
    """
    ax = current_axes(ax)
    curve = _curve_of(data, slo, confidence)
    lines = _values(curve, percentiles)
    if not lines:
        raise DataNotAvailableError(
            "no run holds the percentiles asked for, so there is nothing to draw"
        )
    rates = np.array([row.rate for row in curve.rows])
    pairs = slo_pairs(curve.slo) if curve.slo is not None else []
    stored = curve.rows[0].data.unit
    fit_values(
        ax,
        np.concatenate([*lines.values(), [limit for _, limit in pairs]]),
        stored,
        fixed=unit,
        log=log,
    )
    _load_axis(ax, rates)
    if log:  # the strip below takes room, which the logarithmic axis gives
        low, high = ax.get_ylim()
        ax.set_ylim(low / (high / low) ** ((_STRIP + _GAP) / (1 - _STRIP - _GAP)), high)
    labels = LineLabels(lower=_STRIP + _GAP)
    _draw(ax, curve, lines, rates, labels, confidence, line_kwargs)
    _limits(ax, curve, pairs, labels, stored)
    _strip(ax, curve)
    ax.add_artist(labels)
    tidy(ax, "load, requests per second")
    hollow = any(not _supported(row, p, confidence) for row in curve.rows for p in lines)
    head(ax, _finding(curve), _conditions(curve, hollow), title, subtitle)
    return ax


def _curve_of(data: LoadCurve | Mapping[str, Any], slo: Any, confidence: float) -> LoadCurve:
    from latencykit.analysis.capacity import (  # not for those who draw other charts: it loads much
        LoadCurve,
        load_curve,
    )

    if not isinstance(data, LoadCurve):
        return load_curve(data, slo, confidence)
    return (
        data
        if slo is None
        else load_curve({row.name: row.data for row in data.rows}, slo, confidence)
    )


def _values(curve: LoadCurve, percentiles: Sequence[float]) -> dict[float, Any]:
    """Percentile → one value per run, NaN where a run does not hold it; only those that some run holds."""
    table = {
        p: [curve.percentiles(row, [p]).get(p, math.nan) for row in curve.rows] for p in percentiles
    }
    return {p: np.array(values) for p, values in table.items() if not np.isnan(values).all()}


def _bounds(row: LoadRow, p: float) -> tuple[float, float]:
    """What the source pins a percentile down between, where that is no number."""
    if isinstance(row.data, Summary) or not row.data.count:
        return math.nan, math.nan
    (found,) = row.data.percentile_rows([p])
    return (
        (math.nan, math.nan)
        if found.resolved or math.isinf(found.bucket_high)
        else (found.bucket_low, found.bucket_high)
    )


def _load_axis(ax: Axes, rates: Any) -> None:
    span = float(rates.max() - rates.min()) or float(rates.max())
    ax.set_xlim(max(0.0, float(rates.min()) - 0.08 * span), float(rates.max()) + 0.12 * span)
    ax.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:,.10g}"))


def _draw(
    ax: Axes, curve: LoadCurve, lines: Mapping[float, Any], rates: Any, labels: LineLabels, confidence: float,
    line_kwargs: dict[str, Any],
) -> None:  # fmt: skip
    """A line per percentile; hollow where the sample does not support it, and the tail's intervals."""
    tail = max(lines)
    for k, (p, uppers) in enumerate(lines.items()):
        ranges = np.array([_bounds(row, p) for row in curve.rows])
        values = np.where(np.isfinite(ranges[:, 1]), math.nan, uppers)
        colour = RED if p == tail and len(lines) > 1 else COLOURS[k % len(COLOURS)]
        look: dict[str, Any] = {
            "color": colour,
            "linewidth": 2.2 if p == tail else 1.4,
            "zorder": 3,
        } | line_kwargs
        drawn = ax.plot(*_course(rates, values), label=percentile_text(p), **look)
        sure = np.array([_supported(row, p, confidence) for row in curve.rows])
        for held, face in ((sure, colour), (~sure, "white")):
            look = {
                "linestyle": "none",
                "marker": "o",
                "markersize": 5,
                "color": colour,
                "markerfacecolor": face,
                "zorder": 4,
            }
            ax.plot(rates[held], values[held], label="_runs", **look)
        # A range is a bar: no line runs through a number that nobody knows.
        ax.vlines(
            rates,
            *np.maximum(ranges, ax.get_ylim()[0]).T,
            color=colour,
            linewidth=3 if p == tail else 2,
            zorder=3,
        )
        between = ax.plot(
            rates,
            np.sqrt(ranges[:, 0] * ranges[:, 1]),
            linestyle="none",
            marker="",
            color=colour,
            label="_range",
        )
        labels.add(ax, percentile_text(p), [*drawn, *between], at=0.3, spread=0.7)
    bars = [_ends(row, tail, confidence) for row in curve.rows]
    ax.vlines(
        rates,
        [low for low, _ in bars],
        [high for _, high in bars],
        color=RED,
        alpha=0.35,
        linewidth=4,
        zorder=2,
    )


def _course(rates: Any, values: Any) -> tuple[Any, Any]:
    """A line through the runs, straight in the latency's reciprocal: as a queue near its pole, and as capacities are read."""
    known = np.isfinite(values) & (values > 0)
    x, y = rates[known], values[known]
    if x.size < 2:
        return x, y
    between = np.unique(np.concatenate((x, np.linspace(x[0], x[-1], 300))))
    return between, 1.0 / np.interp(between, x, 1.0 / y)


def _supported(row: LoadRow, p: float, confidence: float) -> bool:
    if isinstance(row.data, Summary):
        return True
    return row.percentile_rows([p], confidence)[0].supported


def _ends(row: LoadRow, p: float, confidence: float) -> tuple[float, float]:
    """The interval of a percentile, up to the maximum where it has no upper end."""
    if isinstance(row.data, Summary):
        return math.nan, math.nan
    found = row.percentile_rows([p], confidence)[0]
    high = found.high if math.isfinite(found.high) else max(row.data.max, found.value)
    return (found.low, high) if math.isfinite(found.low) else (found.bucket_low, found.bucket_high)


def _limits(
    ax: Axes, curve: LoadCurve, pairs: Sequence[tuple[float, float]], labels: LineLabels, unit: str
) -> None:
    """The SLO's limits across, and the largest load that meets it with its bracket."""
    for p, limit in pairs:
        line = ax.axhline(limit, color=INK, linewidth=1.1, label="_slo", zorder=2.5)
        labels.add(
            ax,
            f"SLO {percentile_text(p)} {format_value(limit, unit)}",
            [line],
            at=0.0,
            spread=0.9,
            fontsize=9,
            color=INK,
        )
    found = curve.capacity
    if found is None or math.isnan(found.rate):
        return
    if math.isfinite(found.high):
        ax.axvspan(found.low, found.high, color=BLUE, alpha=0.08, linewidth=0, zorder=0)
    line = ax.axvline(
        found.rate,
        color=BLUE,
        linewidth=1.4,
        linestyle=(0, (5.5, 1.8)),
        label="_capacity",
        zorder=2.5,
    )
    words = (
        f"{_rounded(found.rate)}/s" if math.isfinite(found.high) else f"≥ {_rounded(found.rate)}/s"
    )
    top = ax.get_ylim()[1]
    labels.point(ax, words, (found.rate, top), [line], fontsize=9.5, color=BLUE, fontweight="bold")


def _strip(ax: Axes, curve: LoadCurve) -> None:
    """What each run achieved, as bars at the foot; red where that is less than was offered."""
    rows = [row for row in curve.rows if not math.isnan(row.achieved)]
    if not rows:
        return
    strip: Axes = ax.inset_axes((0.0, 0.0, 1.0, _STRIP), sharex=ax)
    strip.patch.set_alpha(0.0)
    left, right = ax.get_xlim()
    width = 0.022 * (right - left)
    colours = [RED if row.saturated else GREY for row in rows]
    strip.bar(
        [row.rate for row in rows],
        [row.achieved for row in rows],
        width,
        color=colours,
        alpha=0.7,
        label="achieved",
    )
    for row in rows:
        if row.saturated:
            strip.plot(
                [row.rate - width / 2, row.rate + width / 2],
                [row.offered] * 2,
                color=INK,
                linewidth=1.2,
            )
    top = max(max(row.achieved, row.offered if row.saturated else 0.0) for row in rows)
    strip.set_ylim(0, top * 1.05)
    strip.set_yticks([0, top], ["0", f"{_rate(top)}/s"])
    tidy(strip)
    strip.grid(visible=False)
    strip.xaxis.set_visible(False)
    strip.tick_params(labelsize=8, labelcolor=INK)
    for name, side in strip.spines.items():
        side.set_visible(name == "left")


def _rounded(rate: float) -> str:
    """Three digits, never more than there is, and no exponent."""
    step = 10.0 ** (math.floor(math.log10(rate)) - 2) if rate > 0 else 1.0
    return f"{float(f'{math.floor(rate / step + 1e-9) * step:.3g}'):,.10g}"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _finding(curve: LoadCurve) -> str:
    found = curve.capacity
    runs = f"{format_count(len(curve.rows))} runs from {_rate(curve.rows[0].rate)} to {_rate(curve.rows[-1].rate)} requests/s"
    if found is None:
        return runs
    if math.isnan(found.rate):
        return "No load that was measured meets the SLO"
    if math.isinf(found.high):
        return f"The SLO is met up to {_rate(found.rate)} requests/s, the highest load measured"
    return f"About {_rounded(found.rate)} requests/s within the SLO: between {_rate(found.low)} (met) and {_rate(found.high)} (not)"


def _conditions(curve: LoadCurve, hollow: bool) -> str:
    parts = [f"SLO {curve.slo}; limited by {curve.limited_by}" if curve.slo is not None else ""]
    parts.append(curve.capacity.reason if curve.capacity is not None else "")
    lost = any(row.saturated for row in curve.rows)
    parts.append(
        "bars: throughput achieved"
        + (", red where it fell short of what was offered" if lost else "")
    )
    parts.append("hollow: the sample is too small" if hollow else "")
    guessed = dict.fromkeys(
        row.data.run.unit for row in curve.rows if row.data.run.unit_note is not None
    )
    parts += [f"values assumed to be {unit}" for unit in guessed]
    return " · ".join(filter(None, parts))
