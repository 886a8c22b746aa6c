"""Latency over time: intervals in order, gaps as gaps, and no spike lost however few pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from latencykit._arrays import read_only
from latencykit._records import record
from latencykit._text import plain
from latencykit._typing import Floats
from latencykit.core.histogram_log import HistogramLog, IntervalSeries, interval_series
from latencykit.core.quantiles import is_resolved
from latencykit.core.samples import OUTCOMES, Samples, in_steps, requests_by_interval, stamp_step
from latencykit.errors import DataNotAvailableError
from latencykit.plot import style
from latencykit.plot.axes import DecadeLocator, EvenLocator, fit_values, second_of, time_axis
from latencykit.plot.label_layout import EndLabels, LineLabels, SpanLabels, head, lanes
from latencykit.plot.series import (
    Drawable,
    Limits,
    StallRows,
    as_series,
    chart_title,
    distinct_names,
    joined,
    series_title,
    slo_pairs,
)
from latencykit.units import format_duration, format_estimate, format_value, percentile_name

_NICE = tuple(step * 10.0**power for power in range(-3, 5) for step in (1, 2, 5))
_TIMEOUT = OUTCOMES.index("timeout")
_SLACK = 0.05  # of their length: intervals that are separated by less follow each other


@record()
class Intervals:
    """Statistics of each interval of a series, in order of time and without overlaps."""

    start: Floats  # seconds from the start of the log
    end: Floats
    count: Floats
    values: dict[float, Floats]  # by percentile, 100 for the maximum; NaN where nothing was counted
    unit: str
    lows: dict[float, Floats] = field(default_factory=dict)  # lower edges of the values' buckets
    beyond: bool = False  # the highest value is only a lower bound
    longer: dict[float, float] = field(default_factory=dict)  # seconds, of which a percentile is

    @property
    def gap(self) -> NDArray[np.bool_]:
        """True after each interval but the last where time is missing, shape (intervals − 1,)."""
        return np.asarray(self.start[1:] > self.end[:-1])

    @property
    def typical(self) -> float:
        """Median length of the intervals in seconds."""
        return float(np.median(self.end - self.start)) if self.start.size else 0.0

    @property
    def rate(self) -> Floats:
        """Requests per second of each interval; NaN for the short rest of a log that was closed."""
        length = self.end - self.start
        long, rate = length > _SLACK * self.typical, np.full(length.shape, np.nan)
        return np.asarray(np.divide(self.count, length, out=rate, where=long), np.float64)


@record()
class Envelope:
    """The lowest and the highest value in each column of a picture."""

    start: Floats
    end: Floats
    low: Floats  # NaN where nothing is known
    high: Floats
    merged: int  # the largest number of intervals in a column; 1 where each has its own
    gap: NDArray[np.bool_]  # time is missing after a column, the last one aside

    def line(self, value: Floats) -> tuple[Floats, Floats]:
        """Return the corners of a step line through one value per column, broken at gaps."""
        after = np.where(np.append(self.gap, False), np.nan, value)
        x = np.stack([self.start, self.end, self.end], 1).ravel()
        return x, np.stack([value, value, after], 1).ravel()


def as_log(label: str, data: object) -> HistogramLog:
    """Return the data type as a log of intervals."""
    if not isinstance(data, HistogramLog) and getattr(data, "start", None) is None:
        raise DataNotAvailableError(
            f"{label}{': ' if label else ''}this source has no times, so it has no timeline; "
            "a log or samples with start times would"
        )
    assert isinstance(data, HistogramLog | Samples)
    if not len(data) or (isinstance(data, Samples) and not data.good.any()):
        raise DataNotAvailableError(
            f"{label or 'this log'}: nothing was counted, so there is nothing to draw: "
            "all requests failed, or none is in the range"
        )
    if isinstance(data, HistogramLog):
        return data
    # Samples are counted into some hundreds of intervals of a round length, each with about a
    # hundred requests or more, and with as many of the clock's steps.
    span = data.elapsed
    length = min(max(span / 300, 100 * span / len(data)), span / 20)
    length = next((step for step in _NICE if step >= length), _NICE[-1])
    step = stamp_step(data)
    log = data.to_log(in_steps(length, step))
    if not step:  # the last interval ends when the measurement did
        rest = (data.offsets + data.duration / 1e9).max() - log.starts
        vars(log)["lengths"] = read_only(np.clip(rest, 1e-9, log.lengths))
    return log


def late(data: Any) -> bool:
    """Return whether requests timed out: how long they took is not known."""
    return bool(data.run.timeouts or np.any(getattr(data, "outcome", 0) == _TIMEOUT))


def max_text(parts: Sequence[Any], counted: float, *, beyond: bool, known: bool) -> str:
    """Return the words for the highest value of series: of samples their own, not a bucket's."""
    # Where it is not `known` when requests timed out, these are in no interval.
    samples = [part for part in parts if isinstance(part, Samples)]
    if len(samples) == len(parts) and not (known and beyond):
        counted = max(float(part.max) for part in samples)
    name = f"max{' ≥' * beyond}" if known else "longest reply"
    return f"{name} {format_value(counted, parts[0].unit)}"


def intervals_of(log: HistogramLog, percentiles: Sequence[float], data: object = None) -> Intervals:
    """Return maxima and percentiles of a log by interval; timeouts as `data` has them."""
    # Intervals of one time (of several hosts or tags) are summed. A percentile that intervals have
    # too few requests for is that of longer ones, and NaN where these have too few, too.
    order = np.argsort(log.starts, kind="stable")
    start, length = log.starts[order], log.lengths[order]
    typical = float(np.median(length)) or 1e-3
    final, overlap = (start + length).max(), start[1:] < (start + length)[:-1] - 0.5 * typical

    def within(seconds: float, asked: Sequence[float]) -> IntervalSeries:
        if isinstance(data, Samples) and late(data):
            return requests_by_interval(data, seconds or typical, asked)
        return interval_series(log.with_tag("").resample(seconds) if seconds else log, asked)

    series = within(typical if overlap.size and overlap.mean() > 0.02 else 0.0, percentiles)
    order = np.argsort(series.start, kind="stable")
    start = series.start[order]
    end = np.minimum(start + series.length[order], final)
    # Neighbours meet exactly: time stamps are rounded to a millisecond.
    near = np.abs(start[1:] - end[:-1]) <= _SLACK * typical + 2e-3
    end[:-1] = np.where(near, start[1:], np.minimum(end[:-1], start[1:]))
    end[-1] = max(end[-1], start[-1] + 1e-9)
    values = {100.0: series.max[order]}
    values |= {p: series.values[order, k] for k, p in enumerate(series.percentiles)}
    lows = dict(zip(values, series.lows[order].T, strict=True))
    count = series.count[order].astype(np.float64)
    usual = float(np.median(count[count > 0])) if count.any() else 1.0
    cut = count[-1] < usual / 2  # the measurement may have ended in it
    if cut and count.size > 1 and values[100.0][-1] < values[100.0][-2]:
        values[100.0] = np.append(values[100.0][:-1], np.nan)  # of a few requests: no leap
    longer: dict[float, float] = {}
    for p in set(values) & {p for p in percentiles if p < 100}:
        # With less than one request above it a percentile is but another name of the maximum.
        enough, number = 1 / (1 - p / 100) * (1 - 1e-9), count
        if usual < enough:
            longer[p] = typical * math.ceil(enough / usual)
            wide = within(longer[p], [p])
            place = np.argsort(wide.start, kind="stable")
            place = place[np.searchsorted(wide.start[place], start + 1e-9, "right") - 1]
            number = wide.count[place].astype(np.float64)
            values[p], lows[p] = wide.values[place, 0], wide.lows[place, 1]
        few = number < enough
        few[-1] |= cut
        values[p] = np.where(few, np.nan, values[p])
    beyond = bool(series.beyond[:, 0].any())
    return Intervals(start, end, count, values, series.unit, lows, beyond, longer)


def envelope(intervals: Intervals, value: Floats, columns: int) -> Envelope:
    """Return the extremes of a value in each of at most `columns` columns; they are exact."""
    # Columns are of equal width in time. With no more intervals than columns, each has its own.
    if intervals.start.size <= columns:
        return Envelope(intervals.start, intervals.end, value, value, 1, intervals.gap)
    begin = intervals.start[0]
    width = (intervals.end.max() - begin) / columns
    column = ((intervals.start - begin) / width + 1e-9).astype(np.int64)
    column = np.minimum(column, columns - 1)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    filled = column[first]
    start, end = begin + filled * width, begin + (filled + 1) * width
    merged = int(np.diff(np.append(first, column.size)).max())
    low, high = np.fmin.reduceat(value, first), np.fmax.reduceat(value, first)
    return Envelope(start, end, low, high, merged, start[1:] > end[:-1] + 1e-9)


def failures(data: Any, intervals: Intervals) -> Floats | None:
    """Return the failed requests per second of each interval, None if their times are unknown."""
    timed = isinstance(data, Samples) and data.start is not None
    if not timed or data.outcome is None or data.good.all():
        return None
    end = (data.offsets + data.duration / 1e9)[~data.good]
    interval = np.searchsorted(intervals.start, end, "right") - 1
    inside = (interval >= 0) & (end <= intervals.end[np.maximum(interval, 0)])
    number = np.bincount(interval[inside], minlength=intervals.start.size).astype(np.float64)
    return number / np.maximum(intervals.end - intervals.start, 1e-9)


# ------------------------------------------------------------
# What charts over time share: the start on the clock, stalls as grey blocks, an SLO's limit as a
# line, and the strip of a rate at the foot.


def clock(begun: float | None) -> str:
    """Return the start as UTC, where it is known and plausible."""
    if begun is None or not 0 < begun < 253_402_300_799:
        return ""
    return f", {datetime.fromtimestamp(begun, UTC):%Y-%m-%d %H:%M:%S} UTC"


def log_title(label: str, log: HistogramLog, count: int) -> str:
    """Return a log's title: its name, and what was measured."""
    run = log.run.replace(duration=log.run.duration or log.duration or None)
    return series_title(label, run, count)


def slo_line(ax: Axes, slo: object, unit: str) -> None:
    """Draw an SLO's highest limit as a line across, with its value."""
    for percentile, limit in slo_pairs(slo)[-1:]:
        ax.axhline(limit, color=style.INK, linewidth=1.1, label="_slo", zorder=4)
        words = f"SLO {percentile_name(percentile)} {format_value(limit, unit)}"
        look: style.Look = {"fontsize": 8.5, "color": style.INK, "zorder": 7} | style.halo(ax)
        at, units = (0, limit), ("axes fraction", "data")
        ax.annotate(words, at, (5, 2), units, "offset points", **look)


STRIP = 0.16
"""Share of a timeline's height that the strip of the rate takes."""


def _taken(ax: Axes) -> float:
    """Return the share of the height that the strip and the gap above it take."""
    return min(0.4, STRIP + 13.0 * ax.figure.dpi / 72.0 / max(ax.get_window_extent().height, 1.0))


def foot_strip(ax: Axes, height: float, top: float, limit: float, text: str) -> Axes:
    """Return axes along the foot of a chart, from 0 to `limit`, with `top` as their only tick."""
    strip: Axes = ax.inset_axes((0.0, 0.0, 1.0, height), sharex=ax)
    strip.patch.set_alpha(0.0)
    strip.set_ylim(0, limit)
    style.tidy(strip)
    strip.grid(visible=False)
    strip.xaxis.set_visible(False)
    strip.set_yticks([0, top] if top else [0], ["0", text] if top else ["0"])
    strip.tick_params(labelsize=8, labelcolor=style.INK)
    for name, side in strip.spines.items():
        side.set_visible(name == "left")
    return strip


# ------------------------------------------------------------
# Maximum and percentiles of each interval as steps, gaps as gaps, the rate underneath.

_RAMP = (style.INK, style.AMBER, style.BLUE, "#00876c", style.GREY)


def timeline(
    data: Drawable,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Limits | None = None,
    percentiles: Sequence[float] = (99, 50),
    stalls: StallRows | None = None,
    log: bool = True,
    rate: bool = True,
    legend: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: object,
) -> Axes:
    """Draw maximum and percentiles of every interval.

    Where there are more intervals than pixels, each column of the picture shows the highest value
    of its intervals as a line and reaches down to the lowest as a band: no spike is lost.

    Parameters
    ----------
    data : HistogramLog or Samples, or mapping of str to such
        Of several series only the highest of `percentiles` is drawn, and the maximum as a thin
        line; of more than four each on a lane of its own, the highest maximum at the top.
    slo : optional
        As in `percentiles`; the limit for the maximum, else for the highest percentile, is drawn as
        a line.
    percentiles : sequence of float, default (99, 50)
        In 0..100; the maximum is always drawn.
    stalls : iterable of (start, end, missing), or DataFrame with these columns, optional
        Shaded and labelled; seconds from the start, and the number of requests that are missing
        (NaN: unknown).
    log : bool, default True
        Logarithmic values.
    rate : bool, default True
        A strip of the rate, and of failures where their time is known, underneath.
    ax, unit, legend, title, subtitle, **line_kwargs
        As in `percentiles`.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        Where a source has no times.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> start = np.arange(1000) * 10_000_000
    >>> samples = Samples(start=start, duration=start % 7_000_000 + 1)
    >>> timeline(samples, ax=Figure().add_subplot()).get_xlabel()
    'time from the start'
    """
    ax = style.current_axes(ax)
    series = as_series(data)
    logs = {label: as_log(label, part) for label, part in series.items()}
    single, many = len(logs) == 1, len(logs) > style.FEW
    chosen = sorted(percentiles, reverse=True)[: None if single else 1]
    timed = {label: intervals_of(part, chosen, series[label]) for label, part in logs.items()}
    first = next(iter(timed.values()))
    columns = int(max(160, ax.get_window_extent().width / ax.figure.dpi * 100 / 1.4))
    table: Any = () if stalls is None else stalls
    if hasattr(table, "columns"):
        table = table[["start", "end", "missing"]].to_numpy().tolist()
    blocks = [tuple(row) for row in table]
    # Scale the values, with space for the strip of the rate and for labels of stalls.
    values = [value for part in timed.values() for value in part.values.values()]
    flat = np.concatenate([*values, [limit for _, limit in slo_pairs(slo)[-1:]]])
    zero, zeros = fit_values(ax, flat, first.unit, fixed=unit, log=log), bool((flat == 0).any())
    second, (bottom, top) = second_of(first.unit, unit), ax.get_ylim()
    share = _taken(ax) if rate and not many else 0.0
    above = min(0.2, 18.0 / style.size_in_points(ax)[1]) if blocks and not many else 0.0
    if log:
        span = np.log10(top / bottom) / (1 - share - above)
        ax.set_ylim(bottom / 10 ** (share * span), top * 10 ** (above * span))
        least = bottom * (1.0001 if zeros else 1.0)
        ax.yaxis.set_major_locator(DecadeLocator(least, zero if zeros else None, top, second))
    else:
        span = (top - bottom) / (1 - share - above)
        ax.set_ylim(bottom - share * span, top + above * span)
        ax.yaxis.set_major_locator(EvenLocator(0.0, top, second))
    if share:
        ax.spines["left"].set_bounds(bottom, top)
    styles, notes = style.series_styles(logs), []
    places: dict[str, Callable[[Floats], Floats]] = dict.fromkeys(timed, np.asarray)
    if many:
        styles = {label: look | {"marker": "None"} for label, look in styles.items()}
        places, note = _lanes(ax, series, timed, slo, styles, strip=rate, named=legend)
        notes.append(note)
    else:
        slo_line(ax, slo, first.unit)
    lines, merged = _lines(ax, timed, styles, columns, zero, places, line_kwargs)
    spans = SpanLabels()  # stalls as grey blocks with their length and the missing requests
    for start, stop, missing in blocks:
        ax.axvspan(start, stop, color=style.GREY, alpha=0.22, linewidth=0, zorder=0)
        length = format_duration((stop - start) * 1e9, 2)
        forms = [f"stall {length}", length]
        if missing is not None and missing >= 1:
            number = format_estimate(missing)
            forms.insert(0, f"stall {length} · {number} missing")
            forms.insert(0, f"stall {length} · ~{number} requests missing")
        spans.add(ax, float(start), float(stop), forms)
    ax.add_artist(spans)
    if rate:  # requests per second along the foot, the failed ones in amber
        rates = {label: envelope(part, part.rate, columns) for label, part in timed.items()}
        top = max(float(np.nanmax(shown.high, initial=0.0)) for shown in rates.values())
        text = f"{top:,.0f}/s" if top >= 10 else f"{top:.2g}/s"
        strip = foot_strip(ax, STRIP, top, top * 1.02 or 1.0, text)
        for label, shown in rates.items():
            colour = style.GREY if single else styles[label]["color"]
            x, y = shown.line(shown.high)
            strip.plot(x, y, color=colour, linewidth=0.9, label="rate")
            if single:
                lowest = shown.line(shown.low)[1]
                strip.fill_between(x, 0, lowest, color=colour, alpha=0.30, linewidth=0)
                strip.fill_between(x, lowest, y, color=colour, alpha=0.15, linewidth=0)
            failed = failures(series[label], timed[label])
            if failed is not None:
                worst = envelope(timed[label], failed, columns)
                look: style.Look = {
                    "color": style.AMBER,
                    "alpha": 0.75,
                    "linewidth": 0,
                    "label": "failed",
                }
                x, y = worst.line(worst.high)
                strip.fill_between(x, 0, y, **look)
    begin = min(float(part.starts.min()) for part in logs.values())
    end = max(float(part.end.max(initial=0.0)) for part in timed.values())
    begin = 0.0 if begin < 0.1 * max(end, 1e-9) else begin
    time_axis(ax, begin, end)
    if not many:
        _name(ax, series, timed, lines, styles, named=legend)
    style.tidy(
        ax, f"time from the start{clock(next(iter(logs.values())).start if single else None)}"
    )
    if merged > 1:
        length = format_duration(first.typical * 1e9)
        columns_are = f"a column is up to {merged} intervals of {length}: the line is the highest"
        notes.append(f"{columns_are}, the band reaches to the lowest")
    longer = [
        (seconds, p)
        for part in timed.values()
        for p, seconds in part.longer.items()
        if np.isfinite(part.values[p]).any()
    ]
    if longer:  # of which a percentile may lie above the maximum of a short one
        lengths = {p: seconds for seconds, p in sorted(longer)} | {100.0: first.typical}
        of_each = (
            f"{format_duration(s * 1e9)} for {percentile_name(p)}" for p, s in lengths.items()
        )
        notes.append(f"intervals: {'' if single else 'up to '}{', '.join(of_each)}")
        ax.set_label(notes[-1])  # for the heading of a dashboard
    finding = chart_title(logs, f"{percentile_name(min(first.values))} bold, max thin")
    if single:
        ((label, part),) = logs.items()
        finding = log_title(label, part, int(first.count.sum()))
    head(ax, finding, joined(logs, *notes), title, subtitle)
    return ax


def _lanes(
    ax: Axes,
    series: Mapping[str, Any],
    timed: Mapping[str, Intervals],
    slo: object,
    styles: Mapping[str, style.Look],
    *,
    strip: bool,
    named: bool,
) -> tuple[dict[str, Callable[[Floats], Floats]], str]:
    """Repeat scale and SLO for each series; return where each has its values, and words."""
    (bottom, top), size = ax.get_ylim(), len(timed)
    along = np.log10 if ax.get_yscale() == "log" else np.asarray
    ends = [ax.yaxis.get_major_formatter()(float(f"{value:.2g}")) for value in (bottom, top)]
    words = f"each lane from {ends[0]} to {ends[1]}{', logarithmic' if along is np.log10 else ''}"
    first, span = along(bottom), along(top) - along(bottom)
    order = sorted(timed, key=lambda label: -float(series[label].max))

    def place(base: int, values: Floats) -> Floats:
        return np.asarray(base + 0.96 * (along(values) - first) / span)

    places = {label: partial(place, size - 1 - k) for k, label in enumerate(order)}
    ax.set_yscale("linear")
    share = _taken(ax) if strip else 0.0
    ax.set_ylim(-share * size / (1 - share), size)
    ax.spines["left"].set_bounds(0, size)
    maxima = {label: _highest(series[label], timed[label]) for label in order}
    lanes(ax, maxima, [styles[label]["color"] for label in order], named)
    for percentile, limit in slo_pairs(slo)[-1:]:
        for at in places.values():
            ax.axhline(
                float(at(np.asarray(limit))), color=style.INK, linewidth=0.7, label="_slo", zorder=4
            )
        unit = next(iter(timed.values())).unit
        words += f" · thin line: SLO {percentile_name(percentile)} {format_value(limit, unit)}"
    return dict(places), words


def _highest(data: Any, timed: Intervals) -> str:
    known, top = isinstance(data, Samples) or not late(data), float(np.nanmax(timed.values[100.0]))
    return max_text([data], top, beyond=timed.beyond, known=known)


def _lines(
    ax: Axes,
    timed: Mapping[str, Intervals],
    styles: Mapping[str, style.Look],
    columns: int,
    zero: float,
    places: Mapping[str, Callable[[Floats], Floats]],
    line_kwargs: dict[str, object],
) -> tuple[dict[str, dict[float, object]], int]:
    """Draw all lines; return them by series and percentile, and the most intervals per column."""
    lines: dict[str, dict[float, object]] = {label: {} for label in timed}
    merged, single = 1, len(timed) == 1
    for label, intervals in timed.items():
        for number, (percentile, value) in enumerate(intervals.values.items()):
            look: style.Look = {"linewidth": 1.4, "zorder": 3 - 0.1 * number}
            look |= {"solid_joinstyle": "miter"}
            if single:
                look |= {"color": _RAMP[min(number, 4)], "label": percentile_name(percentile)}
            elif percentile == 100:
                look |= {"color": styles[label]["color"], "linewidth": 0.7}
                look |= {"alpha": 0.6, "label": "_max"}
            else:
                look |= styles[label] | {"label": plain(label)}
            high, low = np.maximum(value, zero), np.maximum(intervals.lows[percentile], zero)
            wide = np.isfinite(value) & ~is_resolved(intervals.lows[percentile], value)
            if wide.any():
                low, top = np.where(wide, low, np.nan), np.where(wide, high, np.nan)
                # Between the edges of wide buckets the value is unknown.
                lower = envelope(intervals, places[label](low), columns)
                upper = envelope(intervals, places[label](top), columns)
                (x, most), least = upper.line(upper.high), lower.line(lower.low)[1]
                fill: style.Look = {
                    "color": look["color"],
                    "alpha": 0.2,
                    "linewidth": 0,
                    "zorder": 2,
                }
                ax.fill_between(x, least, most, **fill)
                edges: style.Look = {"color": look["color"], "alpha": 0.7, "linewidth": 0.7}
                for edge in (least, most):
                    ax.plot(x, edge, zorder=2.2, label="_edge", **edges)
            high = places[label](np.where(wide, np.nan, high))
            shown = envelope(intervals, high, columns)
            x, y = shown.line(shown.high)
            merged = max(merged, shown.merged)
            if shown.merged > 1 and percentile < 100:
                band: style.Look = {"alpha": 0.22, "linewidth": 0, "zorder": 2}
                ax.fill_between(
                    x, shown.line(shown.low)[1], y, color=(look | line_kwargs)["color"], **band
                )
            (lines[label][percentile],) = ax.plot(x, y, **style.marked(look, y) | line_kwargs)
    return lines, merged


def _name(
    ax: Axes,
    series: Mapping[str, Any],
    timed: Mapping[str, Intervals],
    lines: Mapping[str, Mapping[float, Any]],
    styles: Mapping[str, style.Look],
    *,
    named: bool,
) -> None:
    """Name lines at their right ends, beside them, or in a legend; and label the highest point."""
    labels = LineLabels(_taken(ax))
    if named and len(timed) == 1:
        ends = EndLabels()
        for percentile, line in list(next(iter(lines.values())).items())[::-1]:
            known = np.flatnonzero(np.isfinite(line.get_ydata()))
            if known.size:
                final = float(line.get_ydata()[known[-1]])
                ends.add(ax, percentile_name(percentile), final, color=line.get_color())
        ends.attach(ax)
    elif named:
        for label, own in lines.items():
            words = f"{plain(distinct_names(lines, 28)[label])} {percentile_name(min(own))}"
            colour = styles[label]["color"]
            labels.add(ax, words, [own[min(own)]], at=0.8, spread=0.8, color=colour)
    tops = {
        label: float(np.nanmax(own[100.0].get_ydata(), initial=-np.inf))
        for label, own in lines.items()
    }
    highest = max(tops, key=lambda label: tops[label])
    if np.isfinite(tops[highest]):
        line, top = lines[highest][100.0], tops[highest]
        at = np.flatnonzero(line.get_ydata() == top)
        x = float(np.mean(np.asarray(line.get_xdata())[at][:2]))
        labels.point(ax, _highest(series[highest], timed[highest]), (x, top), [line])
    ax.add_artist(labels)
