"""The course of a series over time: intervals in order, gaps as gaps, and no spike lost however few pixels there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import NotHeldError
from latencykit.log import HistogramLog
from latencykit.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Course", "Envelope", "as_log", "course_of", "envelope", "failures", "steps", "together"]

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
        told = length > _SLACK * self.typical
        return np.asarray(np.divide(self.count, length, out=np.full(length.shape, np.nan), where=told), np.float64)


@dataclass(frozen=True)
class Envelope:
    """The lowest and the highest value in each column of a picture.

    Attributes
    ----------
    start, end : ndarray of float64, shape (columns,)
    low, high : ndarray of float64, shape (columns,)
        NaN where nothing is known.
    merged : int
        How many intervals a column holds at most; 1 where each has its own.
    """

    start: Floats
    end: Floats
    low: Floats
    high: Floats
    merged: int


def as_log(label: str, rung: Any) -> HistogramLog:
    """Return the rung as a log of intervals.

    Samples are counted into intervals of a round length: some hundreds of them, each with a hundred requests or so.

    Raises
    ------
    NotHeldError
        Where the source knows no time, or no interval.
    """
    log = rung
    if isinstance(rung, Samples) and rung.start is not None and len(rung):
        span = rung.elapsed
        wanted = max(span / 300, 100 * span / len(rung))
        log = rung.to_log(next((step for step in _NICE if step >= min(wanted, span / 20)), _NICE[-1]))
    if not isinstance(log, HistogramLog):
        name = f"{label}: " if label else ""
        raise NotHeldError(f"{name}this source knows no time, so it has no timeline; a log or samples with start times would")
    if not len(log):
        raise NotHeldError(f"{label or 'this log'}: holds no interval, so there is nothing to draw; was the range too narrow?")
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
    values = {100.0: series.max[order]} | {p: series.values[order, k] for k, p in enumerate(series.percentiles)}
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
    return Envelope(start, end, np.fmin.reduceat(value, first), np.fmax.reduceat(value, first), merged)


def steps(start: Floats, end: Floats, value: Floats, gap: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the corners of a step line that is broken after intervals with a gap."""
    x = np.stack([start, end, end], 1).ravel()
    broken = np.append(gap, False)
    y = np.stack([value, value, np.where(broken, np.nan, value)], 1).ravel()
    return x, y


def failures(rung: Any, course: Course) -> Floats | None:
    """Return the failed requests a second of each interval, where the source knows when they failed."""
    if not isinstance(rung, Samples) or rung.outcome is None or rung.start is None or rung.good.all():
        return None
    moment = (rung.offsets + rung.duration / 1e9)[~rung.good]
    slot = np.searchsorted(course.start, moment, "right") - 1
    inside = (slot >= 0) & (moment <= course.end[np.maximum(slot, 0)])
    number = np.bincount(slot[inside], minlength=course.start.size).astype(np.float64)
    return number / np.maximum(course.end - course.start, 1e-9)
