"""Reading spread over an executor: processes of this machine, or a Dask cluster.

Small files are grouped into tasks of 4 MB or 128 files.
A task is a pure function of its files, so one whose worker dies is simply repeated elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gc
import importlib
import logging
import os
import pydoc
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from dataclasses import field
from typing import Any

from latencykit import __version__
from latencykit._processes import safe_path
from latencykit._records import record
from latencykit._text import printable
from latencykit._threads import VARIABLE, jobs
from latencykit.core.addition import merge
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.distributed.results import BinnedLog, Totals
from latencykit.errors import (
    DataNotAvailableError,
    IncompatibleDataError,
    InputTooLargeError,
    InvalidArgumentError,
    LatencyKitError,
    MissingPackageError,
)
from latencykit.io.files import (
    TASK_BYTES,
    TASK_FILES,
    is_url,
    read_head,
    size_of,
    worth_multiprocessing,
)
from latencykit.io.parts import PartResult, checked, read_part
from latencykit.io.reading import Selection, select

Reader = Callable[[str], PartResult]
Progress = Callable[[int, int], None]

_FAN_IN = 64  # results that are added up at once
_PATIENCE = 10.0  # seconds to wait for a scheduler; a busy machine takes some
_TASK_URLS = 8  # each takes a round trip to a server


@record()
class Task:
    """A file to read."""

    url: str
    size: int = 0


def tasks_of(urls: Sequence[str]) -> list[Task]:
    """Return the files to read."""
    tasks = []
    for url in urls:
        try:
            size = size_of(url)
        except LatencyKitError:  # raised again when it is read, after the results of other files
            size = 0
        tasks.append(Task(url, size))
    return tasks


@record()
class LocalExecutor:
    """Processes of this machine, started only for as much reading as pays for it."""

    workers: int = field(default_factory=jobs)

    def spreads(self, tasks: Sequence[Task]) -> bool:
        """Whether there is enough to read for processes to pay."""
        return (
            self.workers > 1
            and len(tasks) > 1
            and all(task.url != "-" for task in tasks)
            and worth_multiprocessing([task.size for task in tasks])
        )


# ------------------------------------------------------------ results


def joined(results: Sequence[PartResult], *, lenient: bool = False) -> PartResult:
    """Add results up, series by series; the first error is that of the sum unless `lenient`."""
    if len(results) == 1 and not (lenient and results[0].error):
        return results[0]
    reports = [report for result in results for report in result.reports]
    errors = [result.error for result in results if result.error is not None]
    if errors and not lenient:
        return PartResult((), tuple(reports), errors[0])
    reports += [f"left out: {error}" for error in errors]
    parts: dict[str, list[object]] = {}
    for name, part in (pair for result in results for pair in result.series):
        parts.setdefault(name, []).append(part)
    try:
        series = tuple((name, added(some)) for name, some in parts.items())
    except LatencyKitError as error:
        return PartResult((), tuple(reports), error)
    return PartResult(series, tuple(reports))


def added(parts: Sequence[Any]) -> Any:
    """Return the sum of results of one type."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, Totals) for part in parts):
        return Totals.sum(parts)
    if all(isinstance(part, BinnedLog) for part in parts):
        return BinnedLog.sum(parts)
    return merge(
        [
            part.histogram if isinstance(part, Totals) else part
            for part in parts
            if isinstance(part, Totals | Summary)
        ]
    )


def read_each(
    executor: LocalExecutor | Executor,
    read: Reader,
    tasks: Sequence[Task],
    progress: Progress,
    *,
    lenient: bool,
    add: bool = False,
) -> list[PartResult]:
    """Return the result of every file, in order, or their sum alone (`add`)."""
    # The first error is raised unless `lenient`.
    results: list[PartResult] = []
    done, how = 0, "each" if not add else "lenient sum" if lenient else "sum"
    with contextlib.closing(_read(executor, read, tasks, how)) as groups:
        for files, some in groups:
            results += some if lenient else [_checked(result, executor) for result in some]
            if add and len(results) >= _FAN_IN:
                results = [checked(joined(results, lenient=lenient))]
            done += files
            progress(done, len(tasks))
    return [checked(joined(results, lenient=lenient))] if add else results


def _checked(result: PartResult, executor: LocalExecutor | Executor) -> PartResult:
    """Return the result, or raise its error; a file may be here and not where it was read."""
    error = result.error
    if not isinstance(executor, LocalExecutor) and os.strerror(errno.ENOENT) in str(error):
        hint = "; the workers read it: put it where they reach it by this path, or give a URL"
        raise LatencyKitError(f"{error}{hint}") from error
    return checked(result)


def _read(
    executor: LocalExecutor | Executor, read: Reader, tasks: Sequence[Task], how: str
) -> Generator[tuple[int, list[PartResult]], None, None]:
    """Yield the number of files in a group and their results, or their sum."""
    groups = list(_groups(tasks))
    if isinstance(executor, LocalExecutor) and not executor.spreads(tasks):
        for group in groups:
            results = _results(read, [task.url for task in group])
            yield from ((0, [result]) for result in results)
            yield len(group), []
        return
    waiting: deque[Future[Any]] = deque()
    with (
        _processes(executor.workers)
        if isinstance(executor, LocalExecutor)
        else _borrowed(executor, waiting)
    ) as pool:
        # processes that start here ignore interrupts from their beginning
        with _without_interrupts(), safe_path():
            waiting.extend(
                pool.submit(_read_some, read, [task.url for task in group], how) for group in groups
            )
        for group in groups:
            yield len(group), waiting.popleft().result()


def _groups(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Yield files that are read together: one large file, or as many small ones as pay."""
    group: list[Task] = []
    size = 0
    for task in tasks:
        most = _TASK_URLS if is_url(task.url) else TASK_FILES
        if group and (size + task.size > TASK_BYTES or len(group) >= most):
            yield group
            group, size = [], 0
        group.append(task)
        size += task.size
    if group:
        yield group


def _results(read: Reader, urls: Sequence[str]) -> Iterator[PartResult]:
    """Read files in order; a reader may have one result for several, see `TotalsReader`."""
    several: Callable[..., Iterator[PartResult]] | None = getattr(read, "several", None)
    return map(read, urls) if several is None else several(urls)


def _read_some(read: Reader, urls: Sequence[str], how: str) -> list[PartResult]:
    """Read files up to the first error; return the result of each, or their sum."""
    results: list[PartResult] = []
    for result in _results(read, urls):
        results.append(result)
        if how == "sum" and results[-1].error is not None:
            break
        if how != "each" and len(results) >= _FAN_IN:
            results = [joined(results, lenient=how != "sum")]
    return results if how == "each" else [joined(results, lenient=how != "sum")]


@contextlib.contextmanager
def _borrowed(executor: Executor, waiting: deque[Future[Any]]) -> Iterator[Executor]:
    """Give an executor that is not ours; on an error the waiting tasks are cancelled."""
    try:
        yield executor
    except BaseException as error:
        for future in waiting:
            future.cancel()
        killed = getattr(sys.modules.get("distributed"), "KilledWorker", BrokenExecutor)
        if isinstance(error, (killed, BrokenExecutor)):
            raise InputTooLargeError(
                f"workers died again and again over one task, perhaps for want of memory ({error})"
            ) from error
        if isinstance(error, CancelledError):
            raise LatencyKitError(
                "the Dask scheduler ended before the work was done; start it again, or read "
                "without --dask"
            ) from error
        if isinstance(error, (ImportError, AttributeError)):  # it cannot read the task
            raise LatencyKitError(
                f"a worker has another latencykit, or none ({type(error).__name__}: {error}); "
                f"install latencykit {__version__} on all workers"
            ) from error
        raise


@contextlib.contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of fresh processes; on an error they and the unfinished work end at once."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    before = set(multiprocessing.active_children())
    # Processes are spawned, not forked: a fork copies locks that other threads hold.
    context = multiprocessing.get_context("spawn")
    with safe_path():  # it starts a process that tracks semaphores
        pool = ProcessPoolExecutor(workers, context, _as_worker)
    try:
        yield pool
    except BaseException as error:
        results = getattr(pool, "_result_queue", None)
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        if (pipe := getattr(results, "_writer", None)) is not None:
            pipe.close()  # else the pool's thread waits for ever for the rest of a result
        if isinstance(error, BrokenExecutor):
            raise InputTooLargeError(
                "a process that was reading ended unexpectedly, perhaps for want of memory; "
                "try --jobs 1"
            ) from error
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl+C waits until the end of the block; processes that are started in it never see one."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _as_worker() -> None:
    """Decode with one thread; Ctrl+C is for the process that started this one."""
    os.environ[VARIABLE] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Give the Dask cluster at an address as an executor that repeats the tasks of dead workers."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as missing:
        raise MissingPackageError("distributed", "Dask", "cluster") from missing
    # One line of ours says what went wrong; the client has a level of its own.
    for name in ("distributed", "distributed.client", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # A client that got no answer, collected while this one begins, would wait for it for ever: the
    # library starts and ends clients under one lock.
    gc.collect()
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except Exception as error:  # each protocol has errors of its own
        reason = printable(str(error).partition("\n")[0], 200) or "no answer"
        raise InvalidArgumentError(
            f"--dask {address}: no Dask scheduler answers there ({reason}); give tcp://HOST:PORT"
        ) from error
    with client:
        # A worker that has just died does not answer: another one gets its tasks.
        versions = client.run(pydoc.locate, "latencykit.__version__", on_error="ignore")
        for worker, version in versions.items():
            if version != __version__:  # it would fail over each task, or give other results
                raise InvalidArgumentError(
                    f"--dask {address}: the worker {worker} has latencykit {version}; install "
                    f"latencykit {__version__} there"
                )
        yield client.get_executor(pure=False, retries=2)


# ------------------------------------------------------------
# When the earliest of many logs begins, found by whichever process reads them.


def earliest_start(
    executor: LocalExecutor | Executor, selection: Selection, tasks: Sequence[Task]
) -> float | None:
    """Return the earliest start of all logs, seconds since the epoch; None if none states it."""
    read = functools.partial(_start, selection=selection)
    results = read_each(executor, read, tasks, lambda *_: None, lenient=selection.lenient)
    starts = {start for result in results for _, some in result.series for start in some}
    if None in starts and len(starts) > 1:
        raise IncompatibleDataError(
            "some of these logs do not say when they began; align them with --align relative"
        )
    return min((start for start in starts if start is not None), default=None)


def _start(url: str, selection: Selection) -> PartResult:
    """When a file begins: its first bytes state it, if it is a log."""
    try:
        with read_head(url) as source:
            rows = select(
                source, Selection(format=selection.format, series=selection.series, lenient=True)
            )
        data: Any = rows[0][2]  # all tags begin with their log
        timed = isinstance(data, HistogramLog) and (data.start is not None or len(data))
        if timed and len({series for series, _, _ in rows}) == 1:
            return PartResult((("start", (data.start,)),))
    except LatencyKitError:  # the complete file states it, or has an error of its own
        pass
    result = read_part(url, selection, _start_of, key="tag")
    if result.error is not None:
        return PartResult((), result.reports, result.error)
    return PartResult((("start", tuple(start for _, start in result.series)),), result.reports)


def _start_of(data: Any) -> float | None:
    if isinstance(data, Samples):
        return data.to_log().start
    if not isinstance(data, HistogramLog):
        raise DataNotAvailableError(
            f"{data.run.source}: has no times; a log or samples with start times would"
        )
    return data.start
