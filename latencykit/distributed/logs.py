"""Logs of many files as one, wherever they are and whichever process reads them."""

from __future__ import annotations

import functools
import math
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from latencykit._records import record
from latencykit.core.histogram import STANDARD_PERCENTILES, Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.samples import Samples
from latencykit.distributed.executors import (
    LocalExecutor,
    Task,
    dask_executor,
    read_each,
    read_total,
    tasks_of,
)
from latencykit.distributed.results import (
    TRAVELS,
    Slots,
    Totals,
    carried,
    slots_of,
    totals_of,
    width_of,
)
from latencykit.errors import (
    DataNotAvailableError,
    IncompatibleDataError,
    InvalidArgumentError,
    LatencyKitError,
)
from latencykit.io.build import distinct
from latencykit.io.files import begin_of, expand
from latencykit.io.parts import PartResult, bar, read_part
from latencykit.io.reading import Selection, listed, select, select_all, unique_names
from latencykit.units import NANOSECONDS, format_count, parse_moment, without_secrets

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Executor

    import pandas as pd

    from latencykit.core.histogram_log import Tails
    from latencykit.core.run import Measure
    from latencykit.core.summary import Summary
    from latencykit.io.files import FileRange
    from latencykit.io.source import Data

__all__ = ["ClusterLog", "Window", "read_all", "read_many"]


def read_all(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: str | None = None,  # noqa: A002 - the contract's name
    series: str | Sequence[str] | None = None,
    tag: str | Sequence[str] | None = None,
    measure: str | None = None,
    unit: str | None = None,
    column: str | None = None,
    start_column: str | None = None,
    lenient: bool = False,
    counted: bool = False,
    executor: Executor | None = None,
) -> dict[str, Data]:
    """Read every series of several files, spread over an executor; see `latencykit.read_all`.

    Parameters
    ----------
    paths, format, series, tag, measure, unit, column, start_column, lenient, counted
        As `latencykit.read_all` takes them.
    executor : concurrent.futures.Executor, optional
        Reads the files: a `ProcessPoolExecutor`, or ``client.get_executor()`` of a Dask cluster.
        Without one, processes of this machine are started if that pays.

    Returns
    -------
    dict of str to data type
        What `latencykit.read_all` returns, in memory; a log of more than 32 MB as time bins.

    Examples
    --------
    >>> list(read_all(["data/ctrlz-uncorrected.hlog", "data/ctrlz-scheduled.hlog"]))
    ['ctrlz-uncorrected.hlog', 'ctrlz-scheduled.hlog']
    """
    several = not (isinstance(paths, str) or hasattr(paths, "__fspath__"))
    urls = list(map(str, cast("Iterable[Any]", paths) if several else [paths]))
    tasks = tasks_of(urls, divide=False)
    selection = Selection(
        format, listed(series), listed(tag), measure, unit, column, start_column, lenient,
        counted, anywhere=True,
    )  # fmt: skip
    if executor is None and not LocalExecutor().spreads(tasks):
        return select_all(urls, selection)
    read = functools.partial(read_part, selection=selection, ask=_portable)
    spread = LocalExecutor() if executor is None else executor
    results = read_each(spread, read, tasks, bar("reading"), lenient=False)
    named = [
        (without_secrets(url), name, data)
        for url, result in zip(urls, results, strict=True)
        for name, data in result.series
    ]
    return unique_names(named)


def _portable(data: Any) -> Any:
    return carried(data, TRAVELS)


@record()
class Window:
    """Seconds on the clock that all files share, counted from `origin`."""

    begin: float = -math.inf
    end: float = math.inf
    origin: float | None = None

    def of(self, data: Any) -> Any:
        """Return the intervals that start within the window."""
        if self.begin == -math.inf and self.end == math.inf:
            return data
        log = _log(data)
        shift = 0.0
        if self.origin is not None and log.start is not None:
            shift = log.start - self.origin
        starts = log.starts + shift
        return log.rows(np.flatnonzero((starts >= self.begin) & (starts < self.end)))


def _log(data: Any) -> HistogramLog:
    if isinstance(data, Samples):
        return data.to_log()
    if not isinstance(data, HistogramLog):
        raise DataNotAvailableError(
            f"{data.run.source}: has no times; a log or samples with start times would"
        )
    return data


def _slots(data: Any, width: float, origin: float | None) -> Slots:
    return slots_of(_log(data), width, origin)


def _ask_within(data: Any, window: Window, ask: Callable[[Any], Any]) -> Any:
    return ask(window.of(data))


def _start(place: FileRange, selection: Selection) -> PartResult:
    """When a file begins: its first bytes state it, if it is a log."""
    try:
        with begin_of(place) as source:
            rows = select(source, Selection(selection.format, selection.series, lenient=True))
        data: Any = rows[0][2]  # all tags begin with their log
        timed = isinstance(data, HistogramLog) and (data.start is not None or len(data))
        if timed and len({series for series, _, _ in rows}) == 1:
            return PartResult((("start", (data.start,)),))
    except LatencyKitError:  # the complete file states it, or has an error of its own
        pass
    result = read_part(place, selection, _start_of, key="tag")
    starts = tuple(start for _, start in result.series)
    return replace(result, series=(("start", starts),) if result.error is None else ())


def _start_of(data: Any) -> float | None:
    return _log(data).start


@record()
class ClusterLog:
    """Logs of many files as one, by the clock, read when a question is asked; only sums travel.

    Made by `read_many`. Slices are views, as those of a `HistogramLog` are; `resample` brings the
    sum of all files, time bin by time bin, into this process as a `HistogramLog`.

    Attributes
    ----------
    jobs : tuple of Task
        The files.
    engine : LocalExecutor or concurrent.futures.Executor
        Reads them.
    reading : Selection
    window : Window
    align : str
    progress : callable
        Called with (done, of all).
    """

    jobs: tuple[Task, ...]
    engine: LocalExecutor | Executor
    reading: Selection = field(default_factory=Selection)
    align: str = "absolute"
    progress: Callable[[int, int], None] = field(default=lambda *_: None, repr=False)
    reports: list[str] = field(default_factory=list, repr=False, compare=False)
    window: Window = field(default_factory=Window)

    def __len__(self) -> int:
        return len(self.jobs)

    # ------------------------------------------------------------ views

    def tagged(self, tag: str) -> ClusterLog:
        """Return the intervals of one tag; ``""`` for untagged ones."""
        return replace(self, reading=replace(self.reading, tags=(tag,)))

    def between(self, start: Any = -math.inf, end: Any = math.inf) -> ClusterLog:
        """Return the intervals with start ≤ t < end, where t is when an interval starts.

        Parameters
        ----------
        start, end : float, str or datetime
            Seconds from the earliest log's start (with ``align="relative"``, from each log's own),
            a duration (``"5s"``), or a timestamp.
        """
        origin = self.origin()
        epoch = None if origin is None else round(origin * 1e6) * 1000
        begin = max(parse_moment(start, epoch), self.window.begin)
        last = min(parse_moment(end, epoch), self.window.end)
        return replace(self, window=Window(begin, last, origin))

    # ------------------------------------------------------------ questions

    def histogram(self) -> Histogram:
        """Return the sum of everything, all tags together."""
        return Totals.sum([totals for _, totals in self._total(totals_of)]).histogram

    def evidence(self, interval: str | float = "10s") -> Tails:
        """Return the evidence for percentiles, from time bins; see `HistogramLog.evidence`."""
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
        """Return one histogram per time bin and tag, in memory: sums and maxima are exact.

        Parameters
        ----------
        interval : str or float
            ``"10s"``, or seconds. The result takes some tens of kilobytes per bin.
        """
        ask = functools.partial(_slots, width=width_of(interval), origin=self.origin())
        return Slots.sum([slots for _, slots in self._total(ask)]).log()

    def by_interval(
        self, percentiles: Sequence[float] = (50, 90, 99, 99.9), interval: str | float = "10s"
    ) -> pd.DataFrame:
        """Return one row per time bin: start, length, tag, count, max and the percentiles."""
        return self.resample(interval).by_interval(percentiles)

    def summary(self, percentiles: Sequence[float] = STANDARD_PERCENTILES) -> Summary:
        """Step down to named statistics of everything."""
        return self.histogram().summary(percentiles)

    def files(self, percentiles: Sequence[float] = (50, 99, 99.9)) -> pd.DataFrame:
        """Return one row per file and tag: intervals, count, percentiles, max; or the error."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for job, result in zip(self.jobs, self._each(totals_of), strict=True):
            path = without_secrets(job.places[0].url)
            for tag, totals in result.series:
                h = totals.histogram
                values = h.percentile(list(percentiles)).tolist()
                named = {f"p{p:g}": v for p, v in zip(percentiles, values, strict=True)}
                facts = {"start": totals.run.start, "intervals": totals.intervals, "count": h.count}
                rows.append(
                    {"file": path, "tag": tag, **facts, **named, "max": h.max, "error": None}
                )
            if result.error is not None:
                rows.append({"file": path, "error": str(result.error)})
        return pd.DataFrame(rows)

    def each(self, ask: Callable[[Any], Any]) -> dict[str, dict[str, Any]]:
        """Ask every file a question of your own.

        Parameters
        ----------
        ask : callable
            Takes a file's data (or one tag of it) where the file is read; its result travels. A
            function of a module that the workers can import.

        Returns
        -------
        dict of str to dict of str to object
            File → tag → result; files that could not be read are left out under ``lenient``.
        """
        results: dict[str, dict[str, Any]] = {}
        for job, result in zip(self.jobs, self._each(ask, divide=False), strict=True):
            if result.error is None:
                name = distinct(without_secrets(job.places[0].url), results)
                results[name] = dict(result.series)
        return results

    # ------------------------------------------------------------ doing the work

    def _reader(self, ask: Callable[[Any], Any]) -> Callable[[FileRange], PartResult]:
        if self.window == Window(origin=self.window.origin):
            selection = replace(self.reading, counted=ask is totals_of)
            return functools.partial(read_part, selection=selection, ask=ask, key="tag")
        within = functools.partial(_ask_within, window=self.window, ask=ask)
        return functools.partial(read_part, selection=self.reading, ask=within, key="tag")

    def _each(self, ask: Callable[[Any], Any], *, divide: bool = True) -> list[PartResult]:
        jobs = self.jobs if divide else [job.whole for job in self.jobs]
        lenient = self.reading.lenient
        results = read_each(self.engine, self._reader(ask), jobs, self.progress, lenient=lenient)
        for result in results:
            self.reports.extend(result.reports)
        self.reports.extend(
            f"left out: {result.error}" for result in results if result.error is not None
        )
        return results

    def _total(self, ask: Callable[[Any], Any]) -> tuple[tuple[str, Any], ...]:
        result = read_total(
            self.engine,
            self._reader(ask),
            self.jobs,
            self.progress,
            lenient=self.reading.lenient,
        )
        self.reports.extend(result.reports)
        if not result.series:
            raise InvalidArgumentError(
                "none of them could be read"
                if self.reading.tags is None
                else f"no file has an interval tagged {self.reading.tags[0]!r}"
            )
        return result.series

    def origin(self) -> float | None:
        """Return the earliest start of all logs in seconds since the epoch; None if relative."""
        if self.align == "relative":
            return None
        if self.window.origin is not None:
            return self.window.origin
        jobs = [job.whole for job in self.jobs]
        read = functools.partial(_start, selection=self.reading)
        lenient = self.reading.lenient
        results = read_each(self.engine, read, jobs, lambda *_: None, lenient=lenient)
        starts = {start for result in results for _, some in result.series for start in some}
        if None in starts and len(starts) > 1:
            raise IncompatibleDataError(
                "some of these logs do not say when they began; read them with align='relative'"
            )
        return min((start for start in starts if start is not None), default=None)

    def __repr__(self) -> str:
        size = format_count(sum(job.size for job in self.jobs))
        return f"ClusterLog({format_count(len(self.jobs))} files, {size} bytes)"


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
    """Treat many files as one log, read by a Dask cluster or by processes of this machine.

    Parameters
    ----------
    urls : str or iterable of str
        Paths and globs, or URLs that fsspec opens: ``s3://bucket/day/*.hlog``, ``https://…``,
        ``gcs://…``; the workers have to reach them.
    client : distributed.Client, optional
        A client of the cluster. Without one, processes of this machine read.
    jobs : int, optional
        Number of processes, without a client; by default one per core. A script that asks for more
        than one has to keep its own work under ``if __name__ == "__main__":``.
    format, series, measure, unit, column
        As `latencykit.read` takes them.
    lenient : bool, default False
        Leave unreadable files and corrupt lines out; ``reports`` of the result names each. Without
        it the first such file raises an error that names it.
    align : {"absolute", "relative"}
        Align files by the clock, or by the time since each began.
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
    engine: LocalExecutor | Executor
    if client is not None:
        engine = dask_executor(client)
    else:
        engine = LocalExecutor(jobs) if jobs else LocalExecutor()
    selection = Selection(
        format, listed(series), None, measure, unit, column, lenient=lenient, anywhere=True
    )
    tasks = tuple(tasks_of(paths, divide=not lenient))
    return ClusterLog(tasks, engine, selection, align, bar("reading", progress))
