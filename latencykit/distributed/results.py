"""Sums of counts, and sums by time bins: small, and equal in whatever order they are added.

Counts of unlike layouts stay apart until the end, extremes are kept as they were read, and nothing
is rounded on the way: a sum over ten thousand files is, bit for bit, the same from one process as
from a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from latencykit._records import record
from latencykit.core.buckets import Buckets
from latencykit.core.columns import Words
from latencykit.core.histogram import Histogram, merge_histograms, of_interval
from latencykit.core.histogram_log import (
    HistogramLog,
    blocks_of,
    interval_tags,
    merge_logs,
    shifted,
    slot_numbers,
    total_of,
)
from latencykit.core.run import Run, failure_counts, merge_runs
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError
from latencykit.io.hlog import SmallLog, small_log, sum_of_small
from latencykit.io.parts import PartResult, in_memory, read_part
from latencykit.io.reading import Selection


@record()
class Totals:
    """Counts of a whole series, a histogram a layout, and when it was."""

    level: str  # what it was counted from: log, samples or histogram
    parts: tuple[Histogram, ...]
    run: Run
    intervals: int = 0
    # The log's start (0 where it does not say), and seconds from there to the first interval's
    # start, and to the last one's end.
    first: tuple[float, float] | None = None
    last: tuple[float, float] | None = None

    @property
    def histogram(self) -> Histogram:
        """All of it in one histogram; unlike layouts meet here."""
        duration = self.run.duration
        if duration is None and self.first is not None and self.last is not None:
            duration = (self.last[0] - self.first[0]) + (self.last[1] - self.first[1]) or None
        run = self.run.replace(duration=duration)
        counted = [part for part in self.parts if part.count or part.censored] or list(
            self.parts[:1]
        )
        parts = sorted(counted, key=lambda part: repr(part.buckets))
        if len(parts) == 1:
            return replace(parts[0], run=run)
        merged = merge_histograms([replace(part, run=run) for part in parts])
        return merged.with_run(**failure_counts(run))

    @staticmethod
    def sum(totals: Sequence[Totals]) -> Totals:
        """Return the sum; see `latencykit.core.addition.merge` for what may be added."""
        if len(totals) == 1:
            return totals[0]
        alike: dict[Buckets, list[Histogram]] = {}
        for part in (part for total in totals for part in total.parts):
            alike.setdefault(part.buckets, []).append(part)
        timed = [total for total in totals if total.level != "log" or total.intervals]
        ends = {}
        if (
            all(total.first for total in timed)
            and len({total.run.start is None for total in timed}) == 1
        ):
            ends = {
                "first": min((total.first for total in timed if total.first), key=_moment),
                "last": max((total.last for total in timed if total.last), key=_moment),
            }
        series = {total.level for total in totals}
        parts = tuple(
            some[0] if len(some) == 1 else merge_histograms(some) for some in alike.values()
        )
        run = merge_runs([total.run for total in totals])
        data = series.pop() if len(series) == 1 else "histogram"
        return Totals(data, parts, run, sum(total.intervals for total in totals), **ends)


def totals_of(data: Any) -> Totals | Summary:
    """Return the counts of a series; a summary, which cannot be added, stays unchanged."""
    if isinstance(data, Summary | Totals):
        return data
    if not isinstance(data, HistogramLog):
        counted = data.histogram()
        return Totals(
            "samples" if isinstance(data, Samples) else "histogram", (counted,), counted.run
        )
    run = data.run.replace(unit=data.unit)
    parts = tuple(
        of_interval(buckets, index, counts, data.unit, run)
        for buckets, index, counts in total_of(data)
    )
    if not parts:
        parts = (data[:0].histogram(),)
    if not len(data):
        return Totals("log", parts, run)
    start, ends = data.start or 0.0, data.starts + data.lengths
    return Totals(
        "log", parts, run, len(data), (start, float(data.starts.min())), (start, float(ends.max()))
    )


@record()
class TotalsReader:
    """Reads files and counts all of each."""

    selection: Selection

    def __call__(self, url: str) -> PartResult:
        """Return the counts of a file, those of all tags together."""
        return read_part(url, self.selection, totals_of, key="all")

    def several(self, urls: Sequence[str]) -> Iterator[PartResult]:
        """Yield the counts of files in order, those of small logs that are alike in one sum."""
        alike: dict[bytes, dict[int, SmallLog]] = {}
        given = self.selection
        whole = len(urls) > 1 and not (given.windowed or given.series or given.by)
        for at, url in enumerate(urls if whole else ()):
            if (log := small_log(url)) is not None:
                alike.setdefault(log.header, {})[at] = log
        results: dict[int, PartResult | None] = dict.fromkeys(range(len(urls)))
        for logs in alike.values():
            first, *others = logs
            total = self._sum(urls[first], list(logs.values())) if others else None
            if total is not None:
                results[first] = PartResult((("", total),))
                for at in others:
                    del results[at]
        for at, result in results.items():
            yield self(urls[at]) if result is None else result

    def _sum(self, first: str, logs: Sequence[SmallLog]) -> Totals | None:
        """The counts of logs, the first of which says what is true of all but counts and times."""
        result = self(first)
        total = result.series[0][1] if len(result.series) == 1 else None
        if result.reports or not isinstance(total, Totals) or total.run.format != "hlog":
            return None
        if any(failure_counts(total.run).values()):  # each log's add up
            return None
        sums = sum_of_small(logs, total.run.unit)
        if sums is None:
            return None
        counts, intervals, *moments = sums
        start, begin, end = (column.tolist() for column in moments)
        same = len({log.source.name for log in logs}) == 1
        run = total.run.replace(source=total.run.source if same else None, start=min(start))
        parts = tuple(of_interval(*some, run.unit, run) for some in counts)
        earliest = min(zip(start, begin, strict=True), key=_moment)
        latest = max(zip(start, end, strict=True), key=_moment)
        return Totals("log", parts, run, intervals, earliest, latest)


def _moment(at: tuple[float, float]) -> tuple[float, tuple[float, float]]:
    return sum(at), at


@record(eq=False)
class BinnedLog:
    """A log with one interval per time bin and tag, in memory; such logs can be added up."""

    width: float  # seconds; bin k is k · width ≤ t < (k + 1) · width
    log: HistogramLog  # in order of bins and names of tags

    @property
    def run(self) -> Run:
        """What the sources say of the measurement."""
        return self.log.run

    @staticmethod
    def of(data: Any, width: float, origin: float | None = None) -> BinnedLog:
        """Add a log's intervals up; with `origin` they are counted from there, not its start."""
        if not hasattr(data, "to_log"):
            raise InvalidArgumentError(
                f"{data.run.source}: has no times, so it has no intervals; a log or samples with "
                "start times would"
            )
        log: HistogramLog = data if isinstance(data, HistogramLog) else data.to_log(width)
        if origin is not None and log.start is not None and log.start != origin:
            log = shifted(log, log.start - origin).with_run(start=origin)
        return BinnedLog(width, _binned(log, width))

    @staticmethod
    def sum(parts: Sequence[BinnedLog]) -> BinnedLog:
        """Return the sum of bins of one width."""
        if len(parts) == 1:
            return parts[0]
        width = parts[0].width
        if any(part.width != width for part in parts):
            raise InvalidArgumentError("time bins of different widths cannot be added")
        run = merge_runs([part.log.run for part in parts])
        log = merge_logs([part.log for part in parts], "relative")
        return BinnedLog(width, _binned(log, width).with_run(**vars(run)))


def _binned(log: HistogramLog, width: float) -> HistogramLog:
    """A log with one interval per time bin and tag, in memory."""
    log = log.with_run(unit=log.unit).resample(width)
    tags = Words.of(interval_tags(log)).sorted().codes
    log = log[np.lexsort((tags, slot_numbers(log.starts, width)))]
    return in_memory(log, list(blocks_of(log)))
