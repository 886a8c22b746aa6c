"""Logs of many files as one, wherever they lie and anyone who reads them."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram import STANDARD_PERCENTILES, Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.samples import Samples
from latencykit.distributed.executors import (
    DaskExecutor,
    Engine,
    LocalExecutor,
    PartResult,
    Task,
    bar,
    jobs_of,
)
from latencykit.distributed.results import Slots, Totals, slots_of, totals_of, width_of
from latencykit.distributed.sources import begin_of, expand, source_of
from latencykit.errors import (
    DataNotAvailableError,
    IncompatibleDataError,
    InvalidArgumentError,
    LatencyKitError,
)
from latencykit.io.build import distinct
from latencykit.io.reading import expand_tags, read_source, with_measure
from latencykit.io.source import ReadOptions
from latencykit.units import NANOSECONDS, did_you_mean, format_count, parse_moment, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pandas as pd

    from latencykit.core.histogram_log import Tails
    from latencykit.core.run import Measure
    from latencykit.core.summary import Summary
    from latencykit.distributed.sources import FileRange

__all__ = ["ClusterLog", "Reading", "read_many"]


@dataclass(frozen=True)
class Reading:
    """How each file is read, and which of its intervals count."""

    format: str | None = None
    series: str | None = None
    measure: Measure | None = None
    unit: str | None = None
    column: str | None = None
    lenient: bool = False
    tag: str | None = None
    begin: float = -math.inf
    end: float = math.inf
    origin: float | None = None


def answer_of(place: FileRange, reading: Reading, ask: Callable[[Any], Any]) -> PartResult:
    """Read one place and ask every tag of it; what goes wrong is part of the answer."""
    reports: list[str] = []
    whole = reading.begin == -math.inf and reading.end == math.inf
    options = ReadOptions(
        unit=reading.unit, column=reading.column, lenient=reading.lenient, report=reports.append,
        counted=ask is totals_of and whole, measure=reading.measure,
        series=() if reading.series is None else (reading.series,),
    )  # fmt: skip
    try:
        source = source_of(place)
        known = "hlog" if place.end else reading.format  # nothing else is cut into ranges
        data = _one_series(
            read_source(source, options, known, part=place.end > 0), reading, source.shown
        )
        parts = expand_tags("", with_measure(data, reading.measure))
        chosen = {
            tag: _windowed(part, reading)
            for tag, part in parts.items()
            if reading.tag in (None, tag)
        }
        found = tuple((tag, ask(part)) for tag, part in chosen.items())
    except LatencyKitError as error:
        return PartResult((), tuple(reports), error)
    return PartResult(found, tuple(reports), None, getattr(source, "restarted", False))


def _one_series(found: dict[str, Any], reading: Reading, path: str) -> Any:
    if reading.series is not None:
        if reading.series not in found:
            raise InvalidArgumentError(
                f"{path}: holds no series {reading.series!r}{did_you_mean(reading.series, found)}"
            )
        return found[reading.series]
    if len(found) > 1:
        raise InvalidArgumentError(
            f"{path}: holds several series: {', '.join(found)}; name one with series= (--series)"
        )
    return next(iter(found.values()))


def _windowed(data: Any, reading: Reading) -> Any:
    """The intervals that start within the window, counted from where all files are counted from."""
    if reading.begin == -math.inf and reading.end == math.inf:
        return data
    log = _log(data)
    starts = log.starts + (
        log.start - reading.origin if reading.origin is not None and log.start is not None else 0.0
    )
    return log.rows(np.flatnonzero((starts >= reading.begin) & (starts < reading.end)))


def _log(data: Any) -> HistogramLog:
    if isinstance(data, Samples):
        return data.to_log()
    if not isinstance(data, HistogramLog):
        raise DataNotAvailableError(
            f"{data.run.source}: knows no time; a log or samples with start times would"
        )
    return data


def _slots(data: Any, width: float, origin: float | None) -> Slots:
    return slots_of(_log(data), width, origin)


def _start(place: FileRange, reading: Reading) -> PartResult:
    """When a file begins: its first bytes tell, if it is a log."""
    try:
        with begin_of(place) as source:
            data = _one_series(
                read_source(source, ReadOptions(lenient=True), reading.format),
                reading,
                source.shown,
            )
        if isinstance(data, HistogramLog) and (data.start is not None or len(data)):
            return PartResult((("start", (data.start,)),))
    except (
        LatencyKitError
    ):  # what the first bytes do not tell, the whole file does, or its own error
        pass
    answer = answer_of(
        place, replace(reading, begin=-math.inf, end=math.inf), lambda data: _log(data).start
    )
    starts = tuple(start for _, start in answer.found)
    return replace(answer, found=(("start", starts),) if answer.error is None else ())


@dataclass(frozen=True)
class ClusterLog:
    """Logs of many files as one, by the clock; nothing is read until a question is asked, and only its answer travels.

    Made by `read_many`. Slices are views, as those of a `HistogramLog` are; `resample` brings the sum of all files, slot
    by slot, into this process as a `HistogramLog`, from where everything else goes on.

    Attributes
    ----------
    jobs : tuple of Job
        The files.
    engine : Engine
        Who reads them.
    reading : Reading
    align : str
    progress : callable
        Hears (done, of all).
    """

    jobs: tuple[Task, ...]
    engine: Engine
    reading: Reading = field(default_factory=Reading)
    align: str = "absolute"
    progress: Callable[[int, int], None] = field(default=lambda *_: None, repr=False)
    reports: list[str] = field(default_factory=list, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.jobs)

    # ------------------------------------------------------------ views

    def tagged(self, tag: str) -> ClusterLog:
        """Return the intervals of one tag; ``""`` for untagged ones."""
        return replace(self, reading=replace(self.reading, tag=tag))

    def between(self, start: Any = -math.inf, end: Any = math.inf) -> ClusterLog:
        """Return the intervals with start ≤ t < end, where t is when an interval starts.

        Parameters
        ----------
        start, end : float, str or datetime
            Seconds from the earliest log's start (with ``align="relative"``, from each log's own), a duration
            (``"5s"``), or a timestamp.
        """
        origin = self.origin()
        epoch = None if origin is None else round(origin * 1e6) * 1000
        begin, last = (
            max(parse_moment(start, epoch), self.reading.begin),
            min(parse_moment(end, epoch), self.reading.end),
        )
        return replace(self, reading=replace(self.reading, begin=begin, end=last, origin=origin))

    # ------------------------------------------------------------ questions

    def histogram(self) -> Histogram:
        """Return the sum of everything, all tags together."""
        return Totals.sum([totals for _, totals in self._total(totals_of)]).histogram

    def evidence(self, interval: str | float = "10s") -> Tails:
        """Return how far the numbers of everything can be trusted, from counts of time bins; see `HistogramLog.evidence`."""
        log = self.resample(interval)
        return (log.to_unit("ns") if log.unit in NANOSECONDS else log).evidence()

    def histograms(self) -> dict[str, Histogram]:
        """Return the sum of every tag, ``""`` for untagged intervals."""
        return {tag: totals.histogram for tag, totals in sorted(self._total(totals_of))}

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags of the intervals; all files are read for it."""
        names = tuple(sorted({tag for tag, _ in self._total(totals_of)}))
        return () if names == ("",) else names

    def resample(self, interval: str | float) -> HistogramLog:
        """Return one histogram a slot of time and tag, in memory: sums and maxima are exact.

        Parameters
        ----------
        interval : str or float
            ``"10s"``, or seconds. The result takes some tens of kilobytes a slot.
        """
        ask = functools.partial(_slots, width=width_of(interval), origin=self.origin())
        return Slots.sum([slots for _, slots in self._total(ask)]).log()

    def percentiles(
        self, percentiles: Sequence[float] = (50, 90, 99, 99.9), interval: str | float = "10s"
    ) -> pd.DataFrame:
        """Return a table with one row a slot of time: start, length, tag, count, max and the percentiles."""
        return self.resample(interval).by_interval(percentiles)

    def summary(self, percentiles: Sequence[float] = STANDARD_PERCENTILES) -> Summary:
        """Step down to named statistics of everything."""
        return self.histogram().summary(percentiles)

    def files(self, percentiles: Sequence[float] = (50, 99, 99.9)) -> pd.DataFrame:
        """Return a table with one row per file and tag: intervals, count, percentiles, max; or the file's error."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for job, answer in zip(self.jobs, self._each(totals_of), strict=True):
            path = without_secrets(job.places[0].url)
            for tag, totals in answer.found:
                h = totals.histogram
                named = dict(
                    zip(
                        (f"p{p:g}" for p in percentiles),
                        h.percentile(list(percentiles)).tolist(),
                        strict=True,
                    )
                )
                facts = {"start": totals.run.start, "intervals": totals.intervals, "count": h.count}
                rows.append(
                    {"file": path, "tag": tag, **facts, **named, "max": h.max, "error": None}
                )
            if answer.error is not None:
                rows.append({"file": path, "error": str(answer.error)})
        return pd.DataFrame(rows)

    def each(self, ask: Callable[[Any], Any]) -> dict[str, dict[str, Any]]:
        """Ask every file a question of your own.

        Parameters
        ----------
        ask : callable
            Takes a data type (a file's log, or one tag of it) where the file is read; what it returns travels. It has to be
            a function of a module that the workers can import.

        Returns
        -------
        dict of str to dict of str to object
            File → tag → answer; files that could not be read are left out under ``lenient``.
        """
        found: dict[str, dict[str, Any]] = {}
        for job, answer in zip(self.jobs, self._each(ask, divide=False), strict=True):
            if answer.error is None:
                found[distinct(without_secrets(job.places[0].url), found)] = dict(answer.found)
        return found

    # ------------------------------------------------------------ doing the work

    def _each(self, ask: Callable[[Any], Any], *, divide: bool = True) -> list[PartResult]:
        jobs = (
            self.jobs if divide else [Task((job.places[0].whole,), job.size) for job in self.jobs]
        )
        read = functools.partial(answer_of, reading=self.reading, ask=ask)
        answers = self.engine.each(read, jobs, self.progress, lenient=self.reading.lenient)
        self.reports.extend(report for answer in answers for report in answer.reports)
        self.reports.extend(
            f"left out: {answer.error}" for answer in answers if answer.error is not None
        )
        return answers

    def _total(self, ask: Callable[[Any], Any]) -> tuple[tuple[str, Any], ...]:
        read = functools.partial(answer_of, reading=self.reading, ask=ask)
        answer = self.engine.total(read, self.jobs, self.progress, lenient=self.reading.lenient)
        self.reports.extend(answer.reports)
        if not answer.found:
            wanted = (
                "of them"
                if self.reading.tag is None
                else f"has an interval tagged {self.reading.tag!r}"
            )
            raise InvalidArgumentError(
                f"none {wanted} could be read" if self.reading.tag is None else f"no file {wanted}"
            )
        return answer.found

    def origin(self) -> float | None:
        """The earliest start of all logs, seconds since the epoch; None where each counts from its own."""
        if self.align == "relative":
            return None
        if self.reading.origin is not None:
            return self.reading.origin
        jobs = [Task((job.places[0].whole,), job.size) for job in self.jobs]
        read = functools.partial(_start, reading=self.reading)
        answers = self.engine.each(read, jobs, lambda *_: None, lenient=self.reading.lenient)
        starts = {start for answer in answers for _, found in answer.found for start in found}
        if None in starts and len(starts) > 1:
            raise IncompatibleDataError(
                "some of these logs do not say when they began; read them with align='relative'"
            )
        return min((start for start in starts if start is not None), default=None)

    def __repr__(self) -> str:
        return f"ClusterLog({format_count(len(self.jobs))} files, {format_count(sum(job.size for job in self.jobs))} bytes)"


def read_many(
    urls: str | Iterable[str],
    client: Any = None,
    *,
    jobs: int | None = None,
    format: str | None = None,  # noqa: A002 - the contract's name
    series: str | None = None,
    measure: Measure | None = None,
    unit: str | None = None,
    column: str | None = None,
    lenient: bool = False,
    align: str = "absolute",
    progress: bool | None = None,
) -> ClusterLog:
    """Take many files as one log, read where a Dask cluster reads them.

    Parameters
    ----------
    urls : str or iterable of str
        Paths and globs, or URLs that fsspec opens: ``s3://bucket/day/*.hlog``, ``https://…``, ``gcs://…``; the workers
        have to reach them.
    client : distributed.Client, optional
        A client of the cluster. Without one, processes of this machine read.
    jobs : int, optional
        How many processes, without a client; by default one a core. A script that asks for more than one has to keep
        its own work under ``if __name__ == "__main__":``.
    format, series, measure, unit, column
        As `latencykit.read` takes them.
    lenient : bool, default False
        Leave unreadable files and corrupt lines out; ``reports`` of the result names each. Without it the first such
        file raises an error that names it.
    align : {"absolute", "relative"}
        How files are laid side by side: by the clock, or by the time since each began.
    progress : bool, optional
        Whether a bar shows how many files are done; by default where standard error is a terminal.

    Returns
    -------
    ClusterLog

    Examples
    --------
    >>> log = read_many(["data/ctrlz-uncorrected.hlog", "data/ctrlz-scheduled.hlog"], jobs=1)
    >>> len(log), log.histogram().count, len(log.resample("5s"))
    (2, 16827, 6)
    """
    if align not in ("absolute", "relative"):
        raise InvalidArgumentError(f"align must be 'absolute' or 'relative', not {align!r}")
    paths = [
        path for url in ([urls] if isinstance(urls, str) else urls) for path in expand(str(url))
    ]
    if not paths:
        raise InvalidArgumentError("there is nothing to read")
    engine: Engine = (
        LocalExecutor(jobs)
        if client is None and jobs
        else LocalExecutor()
        if client is None
        else DaskExecutor(client)
    )
    reading = Reading(format, series, measure, unit, column, lenient)
    return ClusterLog(
        tuple(jobs_of(paths, divide=not lenient)), engine, reading, align, bar("reading", progress)
    )
