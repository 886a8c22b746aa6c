"""The course of a series over time: intervals in order, gaps as gaps, and no spike lost however few pixels there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import patheffects

from latencykit.core.histogram_log import HistogramLog
from latencykit.core.quantiles import is_resolved
from latencykit.core.samples import Samples
from latencykit.errors import DataNotAvailableError
from latencykit.plot.axes import DecadeLocator, EvenLocator, time_axis, value_axis
from latencykit.plot.curves import as_series
from latencykit.plot.figure import chart_title, head, joined, measured, percentile_text, slo_pairs
from latencykit.plot.label_layout import EndLabels, LineLabels, SpanLabels, outside_legend
from latencykit.plot.style import (
    AMBER,
    BLUE,
    FEW,
    GREY,
    INK,
    MUTED,
    RED,
    current_axes,
    plain,
    series_styles,
    shorten,
    tidy,
)
from latencykit.units import format_count, format_duration, format_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from latencykit.plot._typing import Drawable, Limits, StallRows

    Floats = NDArray[np.float64]

__all__ = [
    "STRIP",
    "Course",
    "Envelope",
    "as_log",
    "clock",
    "course_of",
    "draw_strip",
    "envelope",
    "failures",
    "highest_limit",
    "log_title",
    "shade",
    "slo_line",
    "spans_of",
    "steps",
    "taken",
    "timeline",
    "together",
]


_NICE = tuple(step * 10.0**power for power in range(-3, 5) for step in (1, 2, 5))
_SLACK = 0.05
"""Intervals that lie apart by less than this share of their length follow each other."""


@dataclass(frozen=True)
class Course:
    """What each interval of a series says, in order of time and without overlaps.

    Attributes
    ----------
    start, end : ndarray of float64, shape (intervals,)
        Seconds from the start of the log.
    count : ndarray of float64, shape (intervals,)
    values : dict of str to ndarray of float64, shape (intervals,)
        ``max`` and the percentiles asked for; NaN where nothing was counted.
    unit : str
    lows : dict of float to ndarray of float64, shape (intervals,)
        The least that these can be: the lower edges of their buckets.
    """

    start: Floats
    end: Floats
    count: Floats
    values: dict[float, Floats]
    unit: str
    lows: dict[float, Floats] = field(default_factory=dict)

    @property
    def gap(self) -> NDArray[np.bool_]:
        """Whether time is missing after each interval but the last, bool, shape (intervals − 1,)."""
        return np.asarray(self.start[1:] - self.end[:-1] > _SLACK * self.typical + 2e-3)

    @property
    def typical(self) -> float:
        """Median length of the intervals in seconds."""
        return float(np.median(self.end - self.start)) if self.start.size else 0.0

    @property
    def rate(self) -> Floats:
        """Requests per second of each interval; NaN of one too short to tell, such as what is left when a log is closed."""
        length = self.end - self.start
        gaps = length > _SLACK * self.typical
        return np.asarray(
            np.divide(self.count, length, out=np.full(length.shape, np.nan), where=gaps),
            np.float64,
        )


@dataclass(frozen=True)
class Envelope:
    """The lowest and the highest value in each column of a picture.

    Attributes
    ----------
    start, end : ndarray of float64, shape (columns,)
    low, high : ndarray of float64, shape (columns,)
        NaN where nothing is known.
    merged : int
        How many intervals per column holds at most; 1 where each has its own.
    """

    start: Floats
    end: Floats
    low: Floats
    high: Floats
    merged: int


def as_log(label: str, data: Any) -> HistogramLog:
    """Return the data type as a log of intervals.

    Samples are counted into intervals of a round length: some hundreds of them, each with a hundred requests or so.
    """
    log = data
    if isinstance(data, Samples) and data.start is not None and len(data):
        span = data.elapsed
        wanted = max(span / 300, 100 * span / len(data))
        log = data.to_log(
            next((step for step in _NICE if step >= min(wanted, span / 20)), _NICE[-1])
        )
    if not isinstance(log, HistogramLog):
        name = f"{label}: " if label else ""
        raise DataNotAvailableError(
            f"{name}this source knows no time, so it has no timeline; a log or samples with start times would"
        )
    if not len(log):
        raise DataNotAvailableError(
            f"{label or 'this log'}: holds no interval, so there is nothing to draw; was the range too narrow?"
        )
    return log


def course_of(log: HistogramLog, percentiles: Sequence[float], until: float = np.inf) -> Course:
    """Return the course of one series, in one pass over its payloads; intervals of one time (hosts) are summed.

    Where the measurement ended within the last interval, `until` says so.
    """
    order = np.argsort(log.starts, kind="stable")
    start, length = log.starts[order], log.lengths[order]
    typical = float(np.median(length)) or 1e-3
    if start.size > 1 and np.mean(start[1:] < (start + length)[:-1] - 0.5 * typical) > 0.02:
        log = log.resample(typical)
    series = log.series(percentiles)
    order = np.argsort(series.start, kind="stable")
    start = series.start[order]
    end = start + series.length[order]
    # Neighbours meet exactly: time stamps are rounded to a millisecond.
    near = np.abs(start[1:] - end[:-1]) <= _SLACK * typical + 2e-3
    end[:-1] = np.where(near, start[1:], np.minimum(end[:-1], start[1:]))
    end[-1] = max(min(end[-1], until), start[-1] + 1e-9)
    values = {100.0: series.max[order]} | {
        p: series.values[order, k] for k, p in enumerate(series.percentiles)
    }
    lows = dict(zip(values, series.lows[order].T, strict=True))
    return Course(start, end, series.count[order].astype(np.float64), values, series.unit, lows)


def together(courses: Sequence[Course], columns: int) -> Envelope:
    """Return the extremes of the maxima of several courses, on common columns."""
    start = np.concatenate([course.start for course in courses])
    order = np.argsort(start, kind="stable")
    end = np.concatenate([course.end for course in courses])[order]
    value = np.concatenate([course.values[100.0] for course in courses])[order]
    every = Course(start[order], end, np.zeros(0), {}, courses[0].unit)
    span = float(end.max() - start.min())
    intervals = max(1, round(span / max(every.typical, 1e-9)))
    return _merged(every, value, min(columns, intervals))


def envelope(course: Course, value: Floats, columns: int) -> Envelope:
    """Return the extremes of a value in each of at most so many columns: minima and maxima stay exact.

    Columns are of equal width in time. With no more intervals than columns, each interval is its own.
    """
    if course.start.size <= columns:
        return Envelope(course.start, course.end, value, value, 1)
    return _merged(course, value, columns)


def _merged(course: Course, value: Floats, columns: int) -> Envelope:
    begin = course.start[0]
    width = (course.end.max() - begin) / columns
    column = np.minimum(((course.start - begin) / width + 1e-9).astype(np.int64), columns - 1)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    held = column[first]
    start, end = begin + held * width, begin + (held + 1) * width
    merged = int(np.diff(np.append(first, column.size)).max())
    return Envelope(
        start, end, np.fmin.reduceat(value, first), np.fmax.reduceat(value, first), merged
    )


def steps(
    start: Floats, end: Floats, value: Floats, gap: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return the corners of a step line that is broken after intervals with a gap."""
    x = np.stack([start, end, end], 1).ravel()
    broken = np.append(gap, False)
    y = np.stack([value, value, np.where(broken, np.nan, value)], 1).ravel()
    return x, y


def failures(data: Any, course: Course) -> Floats | None:
    """Return the failed requests a second of each interval, where the source knows when they failed."""
    if (
        not isinstance(data, Samples)
        or data.outcome is None
        or data.start is None
        or data.good.all()
    ):
        return None
    moment = (data.offsets + data.duration / 1e9)[~data.good]
    slot = np.searchsorted(course.start, moment, "right") - 1
    inside = (slot >= 0) & (moment <= course.end[np.maximum(slot, 0)])
    number = np.bincount(slot[inside], minlength=course.start.size).astype(np.float64)
    return number / np.maximum(course.end - course.start, 1e-9)


# ------------------------------------------------------------
# What charts over time share: the start on the clock, stalls as grey blocks, an SLO's limit as a
# line.


def clock(begun: float | None) -> str:
    """The start as UTC, where it is known and plausible."""
    if begun is None or not 0 < begun < 253_402_300_799:
        return ""
    return f", {datetime.fromtimestamp(begun, UTC):%Y-%m-%d %H:%M:%S} UTC"


def log_title(label: str, log: Any, count: int) -> str:
    """Return a log's title: its name, and what was measured."""
    run = log.run.replace(duration=log.run.duration or log.duration or None)
    return " · ".join(filter(None, (plain(shorten(label, 60)), measured(run, count))))


def highest_limit(slo: Any) -> tuple[float, float] | None:
    """The percentile and value of the limit that a timeline can show: the highest."""
    pairs = slo_pairs(slo) if slo is not None else []
    return pairs[-1] if pairs else None


def slo_line(ax: Axes, slo: Any, unit: str) -> None:
    """Draw an SLO's highest limit as a line across, with its value."""
    limit = highest_limit(slo)
    if limit is not None:
        ax.axhline(limit[1], color=INK, linewidth=1.1, label="_slo", zorder=4)
        words = f"SLO {percentile_text(limit[0])} {format_value(limit[1], unit)}"
        ax.annotate(
            words, (0, limit[1]), (5, 2), ("axes fraction", "data"), "offset points", fontsize=8.5, color=INK, zorder=7,
            path_effects=[patheffects.withStroke(linewidth=2.5, foreground="white")],
        )  # fmt: skip


def spans_of(stalls: Any) -> list[tuple[float, float, float]]:
    """Stalls as start, end, and missing requests (NaN where unknown)."""
    if stalls is None:
        return []
    rows = (
        stalls[["start", "end", "missing"]].to_numpy().tolist()
        if hasattr(stalls, "columns")
        else stalls
    )
    return [
        (float(start), float(end), float("nan") if missing is None else float(missing))
        for start, end, missing in rows
    ]


def shade(ax: Axes, blocks: Sequence[tuple[float, float, float]]) -> None:
    """Grey blocks with their length and the missing requests."""
    labels = SpanLabels()
    for start, end, missing in blocks:
        ax.axvspan(start, end, color=GREY, alpha=0.22, linewidth=0, zorder=0)
        length = format_duration((end - start) * 1e9, 2)
        forms = [f"stall {length}", length]
        if missing >= 1:
            forms.insert(0, f"stall {length} · {format_count(missing)} missing")
            forms.insert(0, f"stall {length} · ~{format_count(missing)} requests missing")
        labels.add(ax, start, end, forms)
    if blocks:
        ax.add_artist(labels)


# ------------------------------------------------------------
# The strip at the foot of a timeline: requests per second of each interval, the failed ones in
# red.

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
    """Draw the strip along the foot of the chart."""
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


# ------------------------------------------------------------
# The course over time: maximum and percentiles of each interval as steps, gaps as gaps, the rate
# underneath.

_COARSE = 90
"""More than a few series are drawn in so many columns, and without their maxima, which one line shows for all."""

_RAMP = (RED, AMBER, BLUE, "#00876c", GREY)


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
    **line_kwargs: Any,
) -> Axes:
    """Draw maximum and percentiles of every interval.

    Where there are more intervals than pixels, each column of the picture shows the highest value of its intervals as a
    line and reaches down to the lowest as a band: no spike is lost.

    Parameters
    ----------
    data : HistogramLog or Samples, or mapping of str to such
        Of several series only the highest of `percentiles` is drawn, and the maximum as a thin line.
    ax : Axes, optional
        Where to draw; the current axes by default.
    unit : str, optional
        Unit of all ticks; by default each takes the one that suits it.
    slo : optional
        As in `percentiles`; the limit for the maximum, else for the highest percentile, is drawn as a line.
    percentiles : sequence of float, default (99, 50)
        In 0..100; the maximum is always drawn.
    stalls : iterable of (start, end, missing), or DataFrame with these columns, optional
        Shaded and labelled; seconds from the start, and the number of requests that are missing (NaN: unknown).
    log : bool, default True
        Logarithmic values.
    rate : bool, default True
        A strip of the rate, and of failures where their time is known, underneath.
    legend : bool, default True
        Name the series.
    title, subtitle : str, optional
        By default what was measured, and the conditions. Empty for none.
    **line_kwargs
        For the lines.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        Where a source knows no time.
    """
    ax = current_axes(ax)
    series = as_series(data)
    logs = {label: as_log(label, held_data) for label, held_data in series.items()}
    wanted = sorted(percentiles, reverse=True)[: None if len(logs) == 1 else 1]
    courses = {
        label: course_of(one, wanted, getattr(series[label], "elapsed", np.inf))
        for label, one in logs.items()
    }
    columns = (
        int(max(160, ax.get_window_extent().width / ax.figure.dpi * 100 / 1.4))
        if len(logs) <= FEW
        else _COARSE
    )
    blocks = spans_of(stalls)
    limit = highest_limit(slo)
    zero = _scale(ax, courses, limit, unit, log=log, strip=rate, room=bool(blocks))
    styles = series_styles(logs)
    lines, merged = _lines(ax, courses, styles, columns, zero, line_kwargs)
    slo_line(ax, slo, next(iter(courses.values())).unit)
    shade(ax, blocks)
    if rate:
        failed = {label: failures(held_data, courses[label]) for label, held_data in series.items()}
        draw_strip(ax, courses, styles, columns, failed)
    _times(ax, courses, room=len(logs) == 1)
    _name(ax, courses, lines, styles, named=legend)
    note = ""
    if merged > 1:
        length = format_duration(next(iter(courses.values())).typical * 1e9)
        note = f"a column is up to {merged} intervals of {length}: the line is the highest"
        note += ", the band reaches to the lowest" if len(logs) <= FEW else ""
    begun = next(iter(logs.values())).start if len(logs) == 1 else None
    tidy(ax, f"time from the start{clock(begun)}")
    _head(ax, logs, courses, title, subtitle, note)
    return ax


def _head(
    ax: Axes,
    logs: Mapping[str, Any],
    courses: Mapping[str, Course],
    title: str | None,
    subtitle: str | None,
    note: str,
) -> None:
    first = next(iter(courses.values()))
    main = percentile_text(min(first.values))
    said = chart_title(
        logs, f"{main} of each, max of all" if len(logs) > FEW else f"{main} bold, max thin"
    )
    if len(logs) == 1:
        ((label, log),) = logs.items()
        said = log_title(label, log, int(first.count.sum()))
    head(ax, said, joined(logs, note), title, subtitle)


def _scale(
    ax: Axes,
    courses: Mapping[str, Course],
    limit: tuple[float, float] | None,
    unit: str | None,
    *,
    log: bool,
    strip: bool,
    room: bool,
) -> float:
    """Scale the value axis, leaving room for the strip below and for labels of stalls above; return where zeros go."""
    flat = np.concatenate(
        [value for course in courses.values() for value in course.values.values()]
    )
    known = flat[np.isfinite(flat)]
    positive = known[known > 0]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (1.0, 10.0)
    high = max(high, limit[1]) if limit is not None else high
    stored = next(iter(courses.values())).unit
    zeros = bool((known == 0).any())
    zero = value_axis(ax, low, high, stored, fixed=unit, log=log, zeros=zeros)
    bottom, top = ax.get_ylim()
    share = taken(ax) if strip else 0.0
    above = min(0.2, 18.0 * ax.figure.dpi / 72.0 / ax.get_window_extent().height) if room else 0.0
    if log:
        span = np.log10(top / bottom) / (1 - share - above)
        ax.set_ylim(bottom / 10 ** (share * span), top * 10 ** (above * span))
        ax.yaxis.set_major_locator(
            DecadeLocator(bottom * (1.0001 if zeros else 1.0), zero if zeros else None, top)
        )
    else:
        span = (top - bottom) / (1 - share - above)
        ax.set_ylim(bottom - share * span, top + above * span)
        ax.yaxis.set_major_locator(EvenLocator(0.0, top))
    if strip:
        ax.spines["left"].set_bounds(bottom, top)
    return zero


def _lines(
    ax: Axes,
    courses: Mapping[str, Course],
    styles: Mapping[str, dict[str, Any]],
    columns: int,
    zero: float,
    line_kwargs: dict[str, Any],
) -> tuple[dict[str, dict[float, Any]], int]:
    """Draw all lines; return them by series and percentile, and how many intervals per column holds at most."""
    drawn: dict[str, dict[float, Any]] = {label: {} for label in courses}
    merged = 1
    for label, course in courses.items():
        for number, (percentile, value) in enumerate(course.values.items()):
            if percentile == 100 and len(courses) > FEW and len(course.values) > 1:
                continue
            look: dict[str, Any] = {
                "linewidth": 1.4,
                "zorder": 3 - 0.1 * number,
                "solid_joinstyle": "miter",
            }
            if len(courses) == 1:
                look |= {"color": _RAMP[min(number, 4)], "label": percentile_text(percentile)}
            elif percentile == 100:
                look |= {
                    "color": styles[label]["color"],
                    "linewidth": 0.7,
                    "alpha": 0.6,
                    "label": "_max",
                }
            else:
                look |= styles[label] | {"label": plain(label)}
            shown = envelope(course, np.maximum(value, zero), columns)
            merged = max(merged, shown.merged)
            least = np.maximum(course.lows[percentile], zero)
            wide = np.isfinite(value) & ~is_resolved(course.lows[percentile], value)
            if wide.any():
                _spread(
                    ax,
                    course,
                    np.where(wide, least, np.nan),
                    np.where(wide, np.maximum(value, zero), np.nan),
                    columns,
                    look,
                )
                shown = envelope(course, np.where(wide, np.nan, np.maximum(value, zero)), columns)
            drawn[label][percentile] = _draw(
                ax,
                course,
                shown,
                look | line_kwargs,
                banded=percentile < 100 and len(courses) <= FEW,
            )
    if len(courses) > FEW:
        every = together(list(courses.values()), columns)
        gap = every.start[1:] > every.end[:-1] + 1e-9
        x, y = steps(every.start, every.end, np.maximum(every.high, zero), gap)
        drawn[""] = {
            100.0: ax.plot(x, y, color=MUTED, linewidth=0.9, zorder=2, label="max of all")[0]
        }
    return drawn, merged


def _spread(
    ax: Axes, course: Course, low: Floats, high: Floats, columns: int, look: dict[str, Any]
) -> None:
    """Fill between the edges of wide buckets: the source says no more."""
    lower, upper = envelope(course, low, columns), envelope(course, high, columns)
    gap = course.gap if upper.merged == 1 else upper.start[1:] > upper.end[:-1] + 1e-9
    x, top = steps(upper.start, upper.end, upper.high, gap)
    bottom = steps(lower.start, lower.end, lower.low, gap)[1]
    ax.fill_between(x, bottom, top, color=look["color"], alpha=0.2, linewidth=0, zorder=2)
    for edge in (bottom, top):
        ax.plot(x, edge, color=look["color"], linewidth=0.7, alpha=0.7, zorder=2.2, label="_edge")


def _draw(ax: Axes, course: Course, shown: Envelope, look: dict[str, Any], *, banded: bool) -> Any:
    """One line through the highest values, and a band down to the lowest ones where intervals were merged."""
    gap = course.gap if shown.merged == 1 else shown.start[1:] > shown.end[:-1] + 1e-9
    x, y = steps(shown.start, shown.end, shown.high, gap)
    if shown.merged > 1 and banded:
        low = steps(shown.start, shown.end, shown.low, gap)[1]
        ax.fill_between(x, low, y, color=look["color"], alpha=0.22, linewidth=0, zorder=2)
    return ax.plot(x, y, **look)[0]


def _name(
    ax: Axes,
    courses: Mapping[str, Course],
    lines: Mapping[str, Mapping[float, Any]],
    styles: Mapping[str, dict[str, Any]],
    *,
    named: bool,
) -> None:
    """Name one series' lines at their right ends, few series' beside their lines, many in a legend; the peak has its value."""
    labels = LineLabels(taken(ax))
    if named and len(courses) == 1:
        ends = EndLabels()
        for percentile, line in list(next(iter(lines.values())).items())[::-1]:
            known = np.flatnonzero(np.isfinite(line.get_ydata()))
            if known.size:
                x, y = line.get_xdata()[known[-1]], line.get_ydata()[known[-1]]
                ends.add(ax, percentile_text(percentile), float(x), float(y), line.get_color())
        ax.add_artist(ends)
    elif named and len(courses) > FEW:
        last = {label: _last(course) for label, course in courses.items()}
        order = sorted(courses, key=lambda label: -last[label])
        main = [lines[""][100.0], *(lines[label][min(lines[label])] for label in order)]
        outside_legend(ax, main, ["max of all", *(plain(shorten(label, 22)) for label in order)])
    elif named:
        for label, mine in lines.items():
            name = percentile_text(min(mine))
            labels.add(
                ax,
                f"{plain(shorten(label, 28))} {name}",
                [mine[min(mine)]],
                at=0.8,
                spread=0.8,
                color=styles[label]["color"],
            )
    _peak(
        ax,
        labels,
        [mine[100.0] for mine in lines.values() if 100.0 in mine],
        next(iter(courses.values())).unit,
    )
    ax.add_artist(labels)


def _peak(ax: Axes, labels: LineLabels, lines: Sequence[Any], unit: str) -> None:
    """Write its value beside the highest point."""
    tops = [float(np.nanmax(line.get_ydata(), initial=-np.inf)) for line in lines]
    if not tops or not np.isfinite(max(tops)):
        return
    line, top = lines[int(np.argmax(tops))], max(tops)
    at = float(np.mean(np.asarray(line.get_xdata())[np.flatnonzero(line.get_ydata() == top)][:2]))
    labels.point(ax, f"max {format_value(top, unit)}", (at, top), [line])


def _last(course: Course) -> float:
    """The value at which a series' main line ends."""
    value = course.values[min(course.values)]
    known = value[np.isfinite(value)]
    return float(known[-1]) if known.size else 0.0


def _times(ax: Axes, courses: Mapping[str, Course], *, room: bool) -> None:
    """Scale the time axis; leave room for names at the right ends."""
    begin = min(float(course.start.min(initial=0.0)) for course in courses.values())
    end = max(float(course.end.max(initial=0.0)) for course in courses.values())
    begin = 0.0 if begin < 0.1 * max(end, 1e-9) else begin
    names = 38.0 * ax.figure.dpi / 72.0 / max(ax.get_window_extent().width, 1.0) if room else 0.0
    time_axis(ax, begin, end + (end - begin) * names)
