"""The course over time: maximum and percentiles of each interval as steps, gaps as gaps, the rate underneath."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import NotHeldError
from latencykit.log import HistogramLog
from latencykit.plot.curves import as_series, describe
from latencykit.plot.style import (
    AMBER,
    BLUE,
    GREY,
    INK,
    RED,
    current_axes,
    line_styles,
    plain,
    side_labels,
    tidy,
    title_axes,
    value_axis,
)
from latencykit.samples import Samples
from latencykit.units import format_count, format_duration, format_percentile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from latencykit.log import IntervalSeries

    Floats = NDArray[np.float64]

__all__ = ["as_log", "timeline"]

SLOTS = 900
"""More intervals than this are summed into so many slots before they are drawn: maxima and totals stay exact."""


def timeline(
    data: Any,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Any = None,
    confidence: float | None = None,  # noqa: ARG001 - every chart takes the same options
    percentiles: Sequence[float] = (99, 50),
    stalls: Any = None,
    log: bool = True,
    rate: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: Any,
) -> Axes:
    """Draw maximum and percentiles of every interval.

    Parameters
    ----------
    data : HistogramLog or Samples, or mapping of str to such
        Of several, the highest of `percentiles` is drawn solid and the maximum thin.
    ax : Axes, optional
    unit : str, optional
        Fix the unit of the ticks.
    slo : optional
        An SLO: its limit for the maximum (or the highest percentile) is drawn as a line.
    percentiles : sequence of float, default (99, 50)
    stalls : iterable of (start, end, missing), or DataFrame of `lk.find_stalls`, optional
        Shaded and labelled; seconds from the start.
    log : bool, default True
        Logarithmic values.
    rate : bool, default True
        A strip with the rate underneath.
    title, subtitle : str, optional
    **line_kwargs
        For the lines.

    Returns
    -------
    Axes
    """
    ax = current_axes(ax)
    logs = {label: as_log(label, rung) for label, rung in as_series(data).items()}
    wanted = sorted(percentiles, reverse=True)[: None if len(logs) == 1 else 1]
    drawn = {label: _slots(one).series(wanted) for label, one in logs.items()}
    positive = np.concatenate([np.append(s.values.ravel(), s.max) for s in drawn.values()])
    positive = positive[np.isfinite(positive) & (positive > 0)]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (0.5, 1.0)
    limit = _limit(slo)
    shown = next(iter(drawn.values())).unit
    value_axis(ax, low, max(high, limit or 0) * (1.5 if stalls is None else 5), shown, log=log)
    if unit is not None:
        from latencykit.plot.percentiles import _fix_unit

        _fix_unit(ax, unit, shown)
    end = max(float((s.start + s.length).max(initial=0.0)) for s in drawn.values())
    begin = min(float(s.start.min(initial=0.0)) for s in drawn.values())
    ax.set_xlim(min(0.0, begin), end or 1.0)
    labels: list[tuple[float, str, str]] = []
    styles = line_styles(list(drawn))
    for (label, series), style in zip(drawn.items(), styles, strict=True):
        labels += _lines(ax, label, series, style, alone=len(drawn) == 1, **line_kwargs)
    side_labels(ax, [v for v, _, _ in labels], [t for _, t, _ in labels], [c for _, _, c in labels])
    if limit is not None:
        ax.axhline(limit, color=INK, linewidth=1.2)
        ax.annotate("SLO", (0, limit), (4, 3), ("axes fraction", "data"), "offset points", fontsize=9, color=INK)
    _shade(ax, stalls)
    strip = _rate_strip(ax, drawn, styles) if rate else ax
    strip.set_xlabel(_time_label(logs, drawn), fontsize=9.5, color=INK)
    tidy(ax)
    first = next(iter(logs))
    conditions = describe(logs[first]) if len(logs) == 1 else ""
    title_axes(
        ax,
        (first if len(logs) == 1 else f"{len(logs)} series over time") if title is None else title,
        conditions if subtitle is None else subtitle,
    )
    return ax


def as_log(label: str, rung: Any) -> HistogramLog:
    """Return the rung as a log.

    Raises
    ------
    NotHeldError
        Where the source knows no time.
    """
    if isinstance(rung, HistogramLog):
        return rung
    if isinstance(rung, Samples) and rung.start is not None:
        span = rung.elapsed
        return rung.to_log(max(span / 300, 1e-3) if span < 120 else "1s")
    raise NotHeldError(f"{label}: knows no time, so it has no timeline; a log or samples with start times would")


def _slots(log: HistogramLog) -> HistogramLog:
    if len(log) <= 2 * SLOTS:
        return log.resample(1e-9) if log.tags and len(set(log.starts.tolist())) < len(log) and len(log.tags) == 1 else log
    return log.resample(log.duration / SLOTS)


def _steps(series: IntervalSeries, values: Floats) -> tuple[Floats, Floats]:
    """Corners of a step line that breaks where nothing was counted, and where time is missing between intervals."""
    order = np.argsort(series.start, kind="stable")
    start, end, value = series.start[order], (series.start + series.length)[order], values[order]
    gap = start[1:] - end[:-1]
    typical = float(np.median(series.length)) if series.length.size else 0.0
    end[:-1] = np.where(np.abs(gap) < 0.05 * typical + 2e-3, start[1:], end[:-1])
    x = np.stack([start, end, end], 1)
    y = np.stack([value, value, np.where(np.append(gap > 0.05 * typical + 2e-3, False), np.nan, value)], 1)
    return x.ravel(), y.ravel()


def _lines(
    ax: Axes, label: str, series: IntervalSeries, style: dict[str, Any], *, alone: bool, **kwargs: Any
) -> list[tuple[float, str, str]]:
    """Draw one series' lines; return value, text and colour of their labels."""
    names = ["max", *(f"p{format_percentile(p)}" for p in series.percentiles)]
    values = [series.max, *(series.values[:, k] for k in range(len(series.percentiles)))]
    colours = [RED, AMBER, BLUE, GREY, GREY] if alone else [style["color"]] * 5
    labels: list[tuple[float, str, str]] = []
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        x, y = _steps(series, value)
        look: dict[str, Any] = {"color": colours[min(number, 4)], "linewidth": 1.5} | kwargs
        if not alone:
            look |= {"linewidth": 0.7, "alpha": 0.6} if number == 0 else {"linestyle": style["linestyle"]}
        ax.plot(x, y, **look)
        known = value[np.isfinite(value)]
        if known.size and (alone or number == 1):
            labels.append((float(known[-1]), name if alone else f"{plain(label, 22)} {name}", look["color"]))
    return labels


def _limit(slo: Any) -> float | None:
    if slo is None:
        return None
    pairs = slo.staircase() if hasattr(slo, "staircase") else list(slo)
    return float(max(pairs)[1]) if pairs else None


def _shade(ax: Axes, stalls: Any) -> None:
    """Grey blocks with their length and the missing requests."""
    if stalls is None:
        return
    rows: Iterable[Any] = stalls[["start", "end", "missing"]].itertuples(index=False) if hasattr(stalls, "itertuples") else stalls
    left, right = ax.get_xlim()
    occupied = -np.inf
    for start, end, missing in sorted((tuple(row)[:3] for row in rows), key=lambda row: row[0]):
        ax.axvspan(start, end, color="#9aa3af", alpha=0.25, linewidth=0, zorder=0)
        middle, width = (start + end) / 2, 0.24 * (right - left)
        if middle - width / 2 < occupied:
            continue
        occupied = middle + width / 2
        text = f"stall {format_duration((end - start) * 1e9)}"
        if missing == missing and missing is not None and missing >= 1:
            text += f" · ~{format_count(missing)} requests missing"
        place = min(max(middle, left + width / 2), right - width / 2)
        ax.annotate(
            text,
            (place, 1),
            (0, -3),
            ("data", "axes fraction"),
            "offset points",
            ha="center",
            va="top",
            fontsize=8.5,
            color=INK,
        )


def _rate_strip(ax: Axes, drawn: Mapping[str, IntervalSeries], styles: Sequence[dict[str, Any]]) -> Axes:
    """Requests per second of each interval, under the chart."""
    strip: Axes = ax.inset_axes((0.0, -0.30, 1.0, 0.2), sharex=ax)
    top = 0.0
    for series, style in zip(drawn.values(), styles, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(series.length > 0, series.count / series.length, np.nan)
        x, y = _steps(series, rate)
        colour = GREY if len(drawn) == 1 else style["color"]
        strip.plot(x, y, color=colour, linewidth=1.0)
        if len(drawn) == 1:
            strip.fill_between(x, 0, np.nan_to_num(y), color=colour, alpha=0.25, linewidth=0)
        top = max(top, float(np.nanmax(rate, initial=0.0)))
    strip.set_ylim(0, top * 1.15 or 1.0)
    strip.set_yticks([0, top] if top else [0], ["0", f"{top:,.0f}/s" if top >= 10 else f"{top:.2g}/s"] if top else ["0"])
    ax.tick_params(labelbottom=False)
    tidy(strip)
    strip.tick_params(labelsize=8)
    return strip


def _time_label(logs: Mapping[str, HistogramLog], drawn: Mapping[str, IntervalSeries]) -> str:
    widest = max((len(one) for one in logs.values()), default=0)
    if widest <= 2 * SLOTS:
        return "seconds from start, and requests per second"
    width = float(np.median(next(iter(drawn.values())).length))
    return f"seconds from start, and requests per second (slots of {format_duration(width * 1e9)})"
