"""How far it is: one line on standard error that is written over."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from latencykit.core.histogram_log import merge
from latencykit.core.summary import Summary
from latencykit.distributed.results import Slots, Totals
from latencykit.distributed.sources import FileRange, size_of, split
from latencykit.errors import (
    InputTooLargeError,
    InvalidArgumentError,
    LatencyKitError,
    MissingPackageError,
)
from latencykit.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from concurrent.futures import ProcessPoolExecutor

    Reader = Callable[[FileRange], "PartResult"]
    Told = Callable[[int, int], None]

__all__ = [
    "DaskExecutor",
    "Engine",
    "LocalExecutor",
    "PartResult",
    "Task",
    "added",
    "bar",
    "checked",
    "jobs_of",
    "joined",
    "local_cluster",
]


_CELLS = 24


def bar(what: str, wanted: bool | None = None) -> Callable[[int, int], None]:
    """Return what takes (done, of all) and draws a bar; it draws nothing where nobody is looking."""
    stream = sys.stderr
    if stream is None or not (stream.isatty() if wanted is None else wanted):
        return lambda *_: None
    began = shown = time.monotonic()

    def tell(done: int, of: int) -> None:
        nonlocal shown, began
        now = time.monotonic()
        if done == 1:
            began = now  # the first of several passes says nothing of the next
        if done < of and now - shown < 0.2:
            return
        shown = now
        stream.write(line(what, done, of, now - began) + ("\n" if done == of else ""))
        stream.flush()

    return tell


def line(what: str, done: int, of: int, seconds: float) -> str:
    """Return the line: a bar, how many of how many, and how much time is left."""
    full = _CELLS * done // max(of, 1)
    left = f", {format_duration(seconds / done * (of - done) * 1e9)} left" if 0 < done < of else ""
    return f"\r{what} {'█' * full}{'·' * (_CELLS - full)} {done:,} of {of:,}{left}"


# ------------------------------------------------------------
# Who does the work: this process, processes of this machine, or a Dask cluster. The answers are
# the same.
#
# A job is a file, as one place or as ranges of its lines. Its answer comes from pure functions alone, so that a worker
# that dies changes nothing: what it held is made again elsewhere.

FAN_IN = 8
_PATIENCE = 5.0  # seconds to wait for a scheduler
_WORTH_PROCESSES = (
    24 << 20
)  # bytes; below this the start of a process takes longer than the reading


@dataclass(frozen=True)
class PartResult:
    """What one place, or many, gave.

    Attributes
    ----------
    found : tuple of (str, object)
        Name of a series, and what was made of it: `Totals`, `Slots`, or anything that travels.
    reports : tuple of str
        What ``lenient`` skipped.
    error : LatencyKitError or None
    restarted : bool
        Whether a range of lines sets the clock anew: the ranges behind it cannot know, so the file is read whole.
    """

    found: tuple[tuple[str, Any], ...] = ()
    reports: tuple[str, ...] = ()
    error: LatencyKitError | None = None
    restarted: bool = False


@dataclass(frozen=True)
class Task:
    """A file to read, in one or several places."""

    places: tuple[FileRange, ...]
    size: int = 0


def jobs_of(urls: Sequence[str], *, divide: bool) -> list[Task]:
    """Return the jobs of some files; large logs are cut into ranges of lines if their answers can be added."""
    found = []
    for url in urls:
        try:
            size = size_of(url)
            places = split(url, size) if divide else [FileRange(url)]
        except (
            LatencyKitError
        ):  # it is named when it is read, with the others that were read before it
            size, places = 0, [FileRange(url)]
        found.append(Task(tuple(places), size))
    return found


def joined(answers: Sequence[PartResult], *, lenient: bool = False) -> PartResult:
    """Add answers up, series by series; the first error stands for all unless it may be passed over."""
    if len(answers) == 1 and not (lenient and answers[0].error):
        return answers[0]
    reports = tuple(report for one in answers for report in one.reports)
    if lenient:
        lost = tuple(f"left out: {one.error}" for one in answers if one.error is not None)
        return _summed([one for one in answers if one.error is None], reports + lost)
    error = next((one.error for one in answers if one.error is not None), None)
    return PartResult((), reports, error) if error is not None else _summed(answers, reports)


def _summed(answers: Sequence[PartResult], reports: tuple[str, ...]) -> PartResult:
    held: dict[str, list[Any]] = {}
    for name, part in (pair for one in answers for pair in one.found):
        held.setdefault(name, []).append(part)
    try:
        found = tuple((name, added(parts)) for name, parts in held.items())
    except LatencyKitError as error:
        return PartResult((), reports, error)
    return PartResult(found, reports, None, any(one.restarted for one in answers))


def added(parts: Sequence[Any]) -> Any:
    """Return the sum of answers of one kind."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, Totals) for part in parts):
        return Totals.sum(parts)
    if all(isinstance(part, Slots) for part in parts):
        return Slots.sum(parts)
    return merge(
        [
            part.histogram if isinstance(part, Totals) else part
            for part in parts
            if isinstance(part, Totals | Summary)
        ]
    )


def whole_if_restarted(read: Reader, job: Task, answer: PartResult) -> PartResult:
    """Return the answer of a file's ranges, or of the file whole where a range set the clock anew."""
    return read(job.places[0].whole) if answer.restarted and len(job.places) > 1 else answer


class Engine(Protocol):
    """Does jobs; see `LocalExecutor` and `DaskExecutor`."""

    def each(
        self, read: Reader, jobs: Sequence[Task], reported_stats: Told, *, lenient: bool
    ) -> list[PartResult]:
        """Return the answer of every job, in order; `told` hears (done, of all). The first error is raised unless `lenient`."""

    def total(
        self, read: Reader, jobs: Sequence[Task], reported_stats: Told, *, lenient: bool
    ) -> PartResult:
        """Return all answers added up. The first error is raised unless `lenient`."""


@dataclass(frozen=True)
class LocalExecutor:
    """One machine: its own process, threads for a few small files, processes for more."""

    workers: int = field(default_factory=lambda: os.cpu_count() or 1)

    def spreads(self, jobs: Sequence[Task]) -> bool:
        """Whether there is so much to read that processes are worth their start."""
        places = [place for job in jobs for place in job.places]
        enough = sum(job.size for job in jobs) >= _WORTH_PROCESSES
        return (
            enough
            and min(self.workers, len(places)) > 1
            and all(place.url != "-" for place in places)
        )

    def each(
        self, read: Reader, jobs: Sequence[Task], reported_stats: Told, *, lenient: bool
    ) -> list[PartResult]:
        """Return the answer of every job, in order."""
        with contextlib.closing(self._each(read, jobs, reported_stats)) as answers:
            return [answer if lenient else checked(answer) for answer in answers]

    def total(
        self, read: Reader, jobs: Sequence[Task], reported_stats: Told, *, lenient: bool
    ) -> PartResult:
        """Return all answers added up, as they come in."""
        held: list[PartResult] = []
        with contextlib.closing(self._each(read, jobs, reported_stats)) as answers:
            for answer in answers:
                held.append(answer if lenient else checked(answer))
                if len(held) >= FAN_IN:
                    held = [checked(joined(held, lenient=lenient))]
        return checked(joined(held, lenient=lenient)) if held else PartResult()

    def _each(
        self, read: Reader, jobs: Sequence[Task], reported_stats: Told
    ) -> Generator[PartResult, None, None]:
        """Answers as they come; to be closed, or another thread may be the one that tries to end the threads."""
        with self._results(read, jobs) as results:
            for done, job in enumerate(jobs, 1):
                answer = joined([next(results) for _ in job.places])
                yield whole_if_restarted(read, job, answer)
                reported_stats(done, len(jobs))

    @contextlib.contextmanager
    def _results(self, read: Reader, jobs: Sequence[Task]) -> Iterator[Iterator[PartResult]]:
        tasks = [place for job in jobs for place in job.places]
        workers = min(self.workers, len(tasks))
        if workers <= 1:
            yield map(read, tasks)
        elif self.spreads(jobs):
            with _processes(workers) as pool:
                with (
                    _without_interrupts()
                ):  # the processes begin here, and would be interrupted before they can ignore it
                    waiting = deque(pool.submit(read, task) for task in tasks)
                # Not `pool.map`: it cancels what is left when it is given up, and the pool's own thread then dies of that.
                yield (waiting.popleft().result() for _ in tasks)
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(workers) as threads:
                yield threads.map(read, tasks)


@contextlib.contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of fresh processes; when something goes wrong they end at once, and the unfinished work with them."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    before = set(multiprocessing.active_children())
    # Processes are spawned, not forked: a fork copies locks that other threads hold.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _ignore_interrupts)
    try:
        yield pool
    except BaseException as error:
        answers = getattr(pool, "_result_queue", None)
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        if (pipe := getattr(answers, "_writer", None)) is not None:
            pipe.close()  # else the pool's thread waits for ever for the rest of an answer that a process died over
        if isinstance(error, BrokenProcessPool):
            raise InputTooLargeError(
                "a process that was reading ended unexpectedly, perhaps for want of memory; try --jobs 1"
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


def _ignore_interrupts() -> None:
    """Ctrl+C is for the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class DaskExecutor:
    """A Dask cluster."""

    def __init__(self, client: Any, retries: int = 2) -> None:
        self._client, self._retries = client, retries

    def each(
        self, read: Reader, jobs: Sequence[Task], reported_stats: Told, *, lenient: bool
    ) -> list[PartResult]:
        """Return the answer of every job, in order."""
        futures = self._files(read, jobs)
        at = {future.key: k for k, future in enumerate(futures)}
        answers: list[Any] = [None] * len(jobs)
        for done, (future, answer) in enumerate(self._completed(futures), 1):
            answers[at[future.key]] = answer if lenient else checked(answer)
            reported_stats(done, len(jobs))
        return answers

    def total(
        self, read: Reader, jobs: Sequence[Task], reported_stats: Told, *, lenient: bool
    ) -> PartResult:
        """Return all answers added up on the workers, eight at a time; one result travels."""
        level = self._files(read, jobs)
        checks = [self._submit(_error_of, future) for future in level]
        add = functools.partial(_joined_of, lenient=lenient)
        while True:
            level = [
                self._submit(add, *level[at : at + FAN_IN]) for at in range(0, len(level), FAN_IN)
            ]
            if len(level) <= 1:
                break
        for done, (_, answer) in enumerate(self._completed(checks), 1):
            if not lenient:
                checked(answer)
            reported_stats(done, len(jobs))
        return (
            checked(next(answer for _, answer in self._completed(level))) if level else PartResult()
        )

    def _files(self, read: Reader, jobs: Sequence[Task]) -> list[Any]:
        futures = []
        for job in jobs:
            parts = [self._submit(read, place) for place in job.places]
            if len(parts) > 1:
                parts = [self._submit(functools.partial(_whole_of, read, job), *parts)]
            futures += parts
        return futures

    def _submit(self, function: Any, *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, pure=False, retries=self._retries)

    def _completed(self, futures: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        distributed: Any = importlib.import_module("distributed")
        try:
            yield from distributed.as_completed(futures, with_results=True, loop=self._client.loop)
        except distributed.KilledWorker as killed:
            raise InputTooLargeError(
                f"workers died again and again over one task, perhaps for want of memory ({killed})"
            ) from killed


def checked(answer: PartResult) -> PartResult:
    """Return the answer, or raise its error."""
    if answer.error is not None:
        raise answer.error
    return answer


def _error_of(answer: PartResult) -> PartResult:
    return PartResult(error=answer.error)


def _joined_of(*answers: PartResult, lenient: bool) -> PartResult:
    return joined(answers, lenient=lenient)


def _whole_of(read: Reader, job: Task, *answers: PartResult) -> PartResult:
    return whole_if_restarted(read, job, joined(answers))


@contextlib.contextmanager
def local_cluster(address: str, workers: int | None = None) -> Iterator[Any]:
    """Give a client of the cluster at an address, or of one made on this machine for ``local``; both end with the block."""
    try:
        dask: Any = importlib.import_module("dask")
        distributed: Any = importlib.import_module("distributed")
    except ImportError as missing:
        raise MissingPackageError("distributed", "Dask", "cluster") from missing
    if address != "local":
        try:
            _greet(distributed, address)
            client = distributed.Client(address, timeout="20s", set_as_default=False)
        except (
            OSError,
            ValueError,
            MemoryError,
        ) as error:  # bytes that are not Dask's read as enormous sizes
            why = (
                "what answers speaks another language"
                if isinstance(error, MemoryError)
                else str(error) or "no answer"
            )
            raise InvalidArgumentError(
                f"--dask {address}: no Dask scheduler answers there ({why}); give tcp://HOST:PORT or local"
            ) from error
        with client:
            yield client
        return
    # Dask has glibc give memory back after every block, which costs a third of the time of decoding.
    patient = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": str(128 << 20)}
    count = workers or os.cpu_count() or 1
    with (
        dask.config.set(patient),
        distributed.Client(
            n_workers=count, threads_per_worker=1, dashboard_address=None, set_as_default=False
        ) as client,
    ):
        yield client


def _greet(distributed: Any, address: str) -> None:
    """Shake hands with anyone who listens: a client that finds nobody takes most of a minute to give up, and to be taken down."""
    import asyncio

    async def greet() -> None:
        known = distributed.Security().get_connection_args("client")
        met = await asyncio.wait_for(
            distributed.comm.connect(address, timeout=_PATIENCE, **known), _PATIENCE + 1
        )
        met.abort()

    asyncio.run(greet())
