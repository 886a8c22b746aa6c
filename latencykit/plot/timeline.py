"""The course over time: maximum and percentiles of each interval as steps, gaps as gaps, the rate underneath."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.plot.courses import as_log, course_of, envelope, failures, steps, together
from latencykit.plot.curves import as_series
from latencykit.plot.heading import head
from latencykit.plot.labels import EndLabels, LineLabels, outside_legend
from latencykit.plot.strip import draw_strip, taken
from latencykit.plot.style import AMBER, BLUE, FEW, GREY, MUTED, RED, current_axes, plain, series_styles, shorten, tidy
from latencykit.plot.ticks import DecadeLocator, EvenLocator, time_axis, value_axis
from latencykit.plot.timed import clock, highest_limit, log_title, shade, slo_line, spans_of
from latencykit.plot.words import chart_title, joined, percentile_text
from latencykit.stats.percentiles import is_resolved
from latencykit.units import format_duration, format_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from latencykit.plot.courses import Course, Envelope

    Floats = NDArray[np.float64]

__all__ = ["timeline"]

_COARSE = 90
"""More than a few series are drawn in so many columns, and without their maxima, which one line shows for all."""

_RAMP = (RED, AMBER, BLUE, "#00876c", GREY)


def timeline(
    data: Any,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Any = None,
    percentiles: Sequence[float] = (99, 50),
    stalls: Any = None,
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
    NotHeldError
        Where a source knows no time.
    """
    ax = current_axes(ax)
    series = as_series(data)
    logs = {label: as_log(label, rung) for label, rung in series.items()}
    wanted = sorted(percentiles, reverse=True)[: None if len(logs) == 1 else 1]
    courses = {label: course_of(one, wanted, getattr(series[label], "elapsed", np.inf)) for label, one in logs.items()}
    columns = int(max(160, ax.get_window_extent().width / ax.figure.dpi * 100 / 1.4)) if len(logs) <= FEW else _COARSE
    blocks = spans_of(stalls)
    limit = highest_limit(slo)
    zero = _scale(ax, courses, limit, unit, log=log, strip=rate, room=bool(blocks))
    styles = series_styles(logs)
    lines, merged = _lines(ax, courses, styles, columns, zero, line_kwargs)
    slo_line(ax, slo, next(iter(courses.values())).unit)
    shade(ax, blocks)
    if rate:
        failed = {label: failures(rung, courses[label]) for label, rung in series.items()}
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
    ax: Axes, logs: Mapping[str, Any], courses: Mapping[str, Course], title: str | None, subtitle: str | None, note: str
) -> None:
    first = next(iter(courses.values()))
    main = percentile_text(min(first.values))
    said = chart_title(logs, f"{main} of each, max of all" if len(logs) > FEW else f"{main} bold, max thin")
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
    flat = np.concatenate([value for course in courses.values() for value in course.values.values()])
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
        ax.yaxis.set_major_locator(DecadeLocator(bottom * (1.0001 if zeros else 1.0), zero if zeros else None, top))
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
    """Draw all lines; return them by series and percentile, and how many intervals a column holds at most."""
    drawn: dict[str, dict[float, Any]] = {label: {} for label in courses}
    merged = 1
    for label, course in courses.items():
        for number, (percentile, value) in enumerate(course.values.items()):
            if percentile == 100 and len(courses) > FEW and len(course.values) > 1:
                continue
            look: dict[str, Any] = {"linewidth": 1.4, "zorder": 3 - 0.1 * number, "solid_joinstyle": "miter"}
            if len(courses) == 1:
                look |= {"color": _RAMP[min(number, 4)], "label": percentile_text(percentile)}
            elif percentile == 100:
                look |= {"color": styles[label]["color"], "linewidth": 0.7, "alpha": 0.6, "label": "_max"}
            else:
                look |= styles[label] | {"label": plain(label)}
            shown = envelope(course, np.maximum(value, zero), columns)
            merged = max(merged, shown.merged)
            least = np.maximum(course.lows[percentile], zero)
            wide = np.isfinite(value) & ~is_resolved(course.lows[percentile], value)
            if wide.any():
                _spread(ax, course, np.where(wide, least, np.nan), np.where(wide, np.maximum(value, zero), np.nan), columns, look)
                shown = envelope(course, np.where(wide, np.nan, np.maximum(value, zero)), columns)
            drawn[label][percentile] = _draw(
                ax, course, shown, look | line_kwargs, banded=percentile < 100 and len(courses) <= FEW
            )
    if len(courses) > FEW:
        every = together(list(courses.values()), columns)
        gap = every.start[1:] > every.end[:-1] + 1e-9
        x, y = steps(every.start, every.end, np.maximum(every.high, zero), gap)
        drawn[""] = {100.0: ax.plot(x, y, color=MUTED, linewidth=0.9, zorder=2, label="max of all")[0]}
    return drawn, merged


def _spread(ax: Axes, course: Course, low: Floats, high: Floats, columns: int, look: dict[str, Any]) -> None:
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
                ax, f"{plain(shorten(label, 28))} {name}", [mine[min(mine)]], at=0.8, spread=0.8, color=styles[label]["color"]
            )
    _peak(ax, labels, [mine[100.0] for mine in lines.values() if 100.0 in mine], next(iter(courses.values())).unit)
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
