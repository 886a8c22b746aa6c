"""Measure your own code: `Recorder`, its measurements and its schedules."""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
import math
import os
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from latencykit import errors
from latencykit._files import check_folder
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import FAILURES, Run, failure_counts
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.io.hlog import own_comment, stated_failures
from latencykit.record.intervals import MOST_TAGS, IntervalCounter, interval_width
from latencykit.units import format_count, parse_duration

# ------------------------------------------------------------
# When requests are due: a fixed rate, kept whatever the requests do.


class Schedule:
    """Slots at a fixed rate: iterate with ``for``, or with ``async for`` in a coroutine."""

    # A slot that comes late because the one before it took long keeps its time: what is measured
    # from it has the waiting in it, so a stall is recorded with all the requests that it delayed.

    def __init__(
        self,
        make: Callable[[int], object],
        rate: float,
        duration: str | float | None = None,
        count: int | None = None,
    ) -> None:
        if not (math.isfinite(rate) and rate > 0):
            raise errors.InvalidArgumentError(
                f"a rate must be a positive number of requests per second, not {rate}"
            )
        self._make, self.rate = make, rate
        timed = math.inf if duration is None else round(parse_duration(duration, "s") / 1e9 * rate)
        self.count = min(timed, math.inf if count is None else count)

    def __iter__(self) -> Iterator[Any]:
        for due in self._dues():
            wait = due - time.perf_counter_ns()
            if wait > 0:
                time.sleep(wait / 1e9)
            yield self._make(due)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for due in self._dues():
            await asyncio.sleep(max(0, due - time.perf_counter_ns()) / 1e9)
            yield self._make(due)

    def _dues(self) -> Iterator[int]:
        """Due times; computed from the number of the slot, so that rounding does not add up."""
        first, number = time.perf_counter_ns(), 0
        while number < self.count:
            yield first + round(number * 1e9 / self.rate)
            number += 1


# ------------------------------------------------------------
# One measurement: a block, or every call of a function, sync or async.

_Function = TypeVar("_Function", bound="Callable[..., Any]")
OK, ERROR, TIMEOUT, UNFINISHED = 0, 1, 2, 4
"""Positions in `latencykit.core.samples.OUTCOMES`."""


def outcome_of(error: type[BaseException] | None) -> int:
    """Return the outcome of a block by its exception: timeout, error or unfinished (cancelled)."""
    if error is None:
        return OK
    if issubclass(error, TimeoutError):
        return TIMEOUT
    return ERROR if issubclass(error, Exception) else UNFINISHED


class Measurement:
    """Measures a block (``with``, ``async with``) or a function (as a decorator)."""

    __slots__ = ("_due", "_recorder", "_start", "_tag")

    def __init__(self, recorder: Recorder, due: int, tag: int) -> None:
        self._recorder, self._due, self._tag = recorder, due, tag

    @property
    def due(self) -> int | None:
        """When the block was due, by ``perf_counter_ns``; None without a schedule."""
        return None if self._due == NO_DUE else self._due

    def __enter__(self) -> Self:
        self._start = time.perf_counter_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        end, outcome = time.perf_counter_ns(), OK if kind is None else outcome_of(kind)
        self._recorder._put(self._start, end, self._due, outcome, self._tag)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.__exit__(kind)

    def __call__(self, function: _Function) -> _Function:
        """Return `function`, every call of it measured."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise errors.InvalidArgumentError(
                f"{function.__name__} is a generator: calling it does no work yet; measure the "
                "loop over it, with recorder.measure()"
            )
        recorder, tag = self._recorder, self._tag
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def measured(*args: object, **kwargs: object) -> object:
                with Measurement(recorder, NO_DUE, tag):
                    return await function(*args, **kwargs)
        else:

            @functools.wraps(function)
            def measured(*args: object, **kwargs: object) -> object:
                with Measurement(recorder, NO_DUE, tag):
                    return function(*args, **kwargs)

        return measured  # type: ignore[return-value]


# ------------------------------------------------------------
# `Recorder`: measure your own code, and write an ``.hlog`` while it runs.

_PROVENANCE = {
    "service": "latencykit measure: service, corrected: none",
    "response": "latencykit measure: response, corrected: schedule",
}


COLUMNS = 5  # of a row: start, end, due, outcome, tag
NO_DUE = -1
_FULL = COLUMNS << 13  # integers that are worth counting


class Recorder:
    """Measures your own code: thread-safe, about 1 µs per measurement.

    Service times come from `measure`, a decorated function or `record`; response times, which
    contain the waiting for a late start, from `schedule` or ``measure(intended=…)``. A recorder
    holds one of the two.

    Parameters
    ----------
    path : str or os.PathLike, optional
        An ``.hlog`` to write; an old one is replaced. A thread appends every interval as a whole
        line once it is over, so the file is valid at any moment. Without a path everything stays in
        memory.
    interval : str or float, default "1s"
        Length of an interval: ``"100ms"``, or seconds; at least 1 ms.
    rate : float, optional
        Requests per second of `schedule`, where that names none.
    digits : int, default 3
        Significant digits of the buckets.
    tag : str, optional
        Name of the operation, where a measurement names none.
    keep : int, default 1,000,000
        Rows kept for `samples`; the intervals count all of them, however many there are.

    Notes
    -----
    A block that raises counts as failed (``TimeoutError`` as a timeout, cancelled as unfinished),
    never as a fast request. An empty block measures 0.2 to 0.5 µs: shorter work is better timed by
    the thousand. After `close` a decorated function runs on, unmeasured. A forked process writes
    nothing into its parent's file: it needs a recorder and a file of its own.

    Examples
    --------
    >>> recorder = Recorder()
    >>> for _ in range(3):
    ...     with recorder.measure():
    ...         _ = sum(range(100))
    >>> @recorder
    ... def work(): return 42
    >>> work(), recorder.histogram().count
    (42, 4)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        interval: str | float = "1s",
        rate: float | None = None,
        digits: int = 3,
        tag: str | None = None,
        keep: int = 1_000_000,
    ) -> None:
        if path is not None:
            errors.require_path(path)
            check_folder(Path(path))
        self.path = None if path is None else Path(path)
        self._rate, self._keep = rate, keep
        width = interval_width(interval)
        self._epoch, self._zero = time.time_ns(), time.perf_counter_ns()
        # What was put and not yet counted, end to end. Each change of it is one operation of the
        # interpreter, so threads that put need no lock; who takes holds `_work`.
        self._waiting: list[int] = []
        self._raw: list[NDArray[np.int64]] = []  # rows that were counted
        self._outcomes = np.zeros(len(OUTCOMES), np.int64)
        self._timeout = np.iinfo(np.int64).max  # the shortest of them
        self._kind: str | None = None
        self._ready: str | None = None  # the kind, as long as nothing speaks against measuring it
        self._closed, self._process = False, os.getpid()
        self._failure: Exception | None = None
        self._work = threading.RLock()  # held by anyone who counts
        self._codes = {"": 0}
        self._stream: IO[bytes] | None = None if self.path is None else self.path.open("wb")
        head = ["Logged with latencykit Recorder"]
        self._counter = IntervalCounter(self._epoch / 1e9, width, digits, self._stream, head)
        self._tag = self._code(tag)
        self._wake = threading.Event()
        if self._stream is not None:
            threading.Thread(target=self._write, name="latencykit recorder", daemon=True).start()
            atexit.register(self.close)

    # ------------------------------------------------------------ measuring

    def measure(self, *, tag: str | None = None, intended: int | None = None) -> Measurement:
        """Return a measurement, for ``with``, for ``async with``, or to decorate a function.

        Parameters
        ----------
        tag : str, optional
            Name of the operation.
        intended : int, optional
            When the block was due, by ``time.perf_counter_ns()``: the response time counts from
            there.

        Raises
        ------
        IncompatibleDataError
            Where the recorder already holds the other kind of time.
        """
        kind = "service" if intended is None else "response"
        if intended is not None and intended > 10**18:  # 31 years
            raise errors.InvalidArgumentError(
                "intended= is by time.perf_counter_ns(), not time.time_ns()"
            )
        if kind != self._ready:
            self._declare(kind)
        code = self._tag if tag is None else self._code(tag)
        return Measurement(self, NO_DUE if intended is None else int(intended), code)

    def __call__(self, function: _Function) -> _Function:
        """Return `function` with every call measured; coroutines until they return."""
        return self.measure()(function)

    def record(self, nanoseconds: float, *, tag: str | None = None) -> None:
        """Count a service time that was measured elsewhere and has just ended.

        Parameters
        ----------
        nanoseconds : int or float
        tag : str, optional
        """
        if not 0 <= nanoseconds < 1 << 62:
            raise errors.InvalidArgumentError(
                f"a service time must be from 0 to 2**62 ns, not {nanoseconds}"
            )
        if self._ready != "service":
            self._declare("service")
        now = time.perf_counter_ns()
        self._put(
            now - int(nanoseconds), now, NO_DUE, 0, self._tag if tag is None else self._code(tag)
        )

    def schedule(
        self,
        rate: float | None = None,
        *,
        duration: str | float | None = None,
        count: int | None = None,
    ) -> Schedule:
        """Return slots at a fixed rate: ``for slot in recorder.schedule(100): with slot: …``.

        Parameters
        ----------
        rate : float, optional
            Slots per second; the recorder's own rate without it.
        duration : str or float, optional
            ``"10s"``, or seconds; without it and `count` the schedule has no end.
        count : int, optional
            Number of slots.

        Returns
        -------
        Schedule
            For ``for``, and in a coroutine for ``async for``. A slot is a `Measurement` whose time
            counts from when it was due: the timer's lateness (0.1 ms) and the wait behind earlier
            slots are in it.

        Examples
        --------
        >>> recorder = Recorder()
        >>> for slot in recorder.schedule(rate=1000, count=5):
        ...     with slot:
        ...         pass
        >>> recorder.samples().run.measure
        'response'
        """
        rate = self._rate if rate is None else rate
        if rate is None:
            raise errors.InvalidArgumentError(
                "a schedule needs a rate: recorder.schedule(rate=100), or Recorder(rate=100)"
            )
        return Schedule(lambda due: self.measure(intended=due), rate, duration, count)

    def _code(self, tag: str | None) -> int:
        """Position of a tag's name; a new one is checked and remembered."""
        known = self._codes.get(tag or "")
        if known is not None:
            return known
        assert tag is not None
        if set(tag) & set(", \r\n\t"):
            raise errors.InvalidArgumentError(
                f"a tag cannot contain commas, blanks or line breaks, as {tag!r} does; rename it"
            )
        with self._work:
            if len(self._counter.tags) >= MOST_TAGS:
                raise errors.InputTooLargeError(
                    f"more than {MOST_TAGS} tags; a tag names an operation, not a request"
                )
            if tag not in self._codes:
                self._counter.tags.append(tag)
                self._codes[tag] = len(self._counter.tags) - 1
        return self._codes[tag]

    def _declare(self, kind: str) -> None:
        """Refuse what this recorder cannot hold; the first kind of time is the one it holds."""
        self._refuse_if_broken()
        if self._kind is None:
            with self._work:
                self._kind = kind
                self._counter.comment(_PROVENANCE[kind])
        if self._kind != kind:
            raise errors.IncompatibleDataError(
                f"this recorder contains {self._kind} times, into which {kind} times must not be "
                "mixed; make another Recorder for them"
            )
        self._ready = kind

    def _refuse_if_broken(self) -> None:
        if self._failure is not None:
            raise errors.LatencyKitError(
                f"{self.path}: the log could not be written: {self._failure}"
            ) from self._failure
        if self._closed:
            raise errors.InvalidArgumentError("this recorder is closed; make another one")

    # ------------------------------------------------------------ counting

    def _put(self, start: int, end: int, due: int, outcome: int, tag: int) -> None:
        self._waiting.extend((start, end, due, outcome, tag))
        if len(self._waiting) < _FULL:
            return
        if self._closed:
            self._waiting.clear()
        elif self._stream is None:
            self._count()
        elif not self._wake.is_set():
            self._wake.set()

    def _count(self) -> None:
        """Count what was put so far."""
        with self._work:
            size = len(self._waiting)
            taken = np.fromiter(self._waiting[:size], np.int64, size)
            del self._waiting[:size]
            rows = taken.reshape(-1, COLUMNS)
            start, end, due, outcome, tags = rows.T
            if start.size:
                self._outcomes += np.bincount(outcome, minlength=len(OUTCOMES))
                good = outcome == 0
                value = np.maximum(end - np.where(due == NO_DUE, start, due), 0)
                late = value[outcome == OUTCOMES.index("timeout")]
                self._timeout = late.min(initial=self._timeout)
                self._counter.add((end - self._zero)[good], value[good], tags[good])
                self._raw.append(rows)
            if int(self._outcomes.sum()) > self._keep:
                self._raw.clear()

    def _write(self) -> None:
        """The writer thread: write what is over once per interval, or when much has arrived."""
        width = self._counter.width
        while not self._closed:
            self._wake.wait((width - (time.perf_counter_ns() - self._zero) % width) / 1e9 + 0.002)
            self._wake.clear()
            try:
                with self._work:
                    if not self._closed:
                        self._count()
                        self._counter.advance(time.perf_counter_ns() - self._zero)
            except (OSError, errors.LatencyKitError) as error:
                self._failure = error  # raised where it is seen: at the next measurement
                self._ready = None
                return

    def flush(self) -> None:
        """Count and write everything so far; the interval that is running is cut in two."""
        if self._closed or os.getpid() != self._process:
            return
        self._refuse_if_broken()
        with self._work:
            self._count()
            self._counter.finish(time.perf_counter_ns() - self._zero)

    def close(self) -> None:
        """Write the last interval and the number of failures, and end the writer thread."""
        if self._closed or os.getpid() != self._process:
            return
        atexit.unregister(self.close)
        try:
            with self._work:
                self.flush()
                if self._outcomes[1:].any():
                    self._counter.comment(own_comment(stated_failures(self._run())))
        finally:
            self._closed = True
            self._ready = None
            self._wake.set()
            if self._stream is not None:
                self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()
        if kind is None and not self._outcomes.sum():
            warnings.warn(
                "the recorder measured nothing: 'with recorder.measure():' measures its block, and "
                "'with Recorder() as recorder:' closes the recorder",
                stacklevel=2,
            )

    # ------------------------------------------------------------ what was measured

    def _run(self) -> Run:
        response = self._kind == "response"
        run = Run(
            tool="latencykit Recorder",
            start=self._epoch / 1e9,
            rate=self._rate if response else None,
            measure="response" if response else "service",
            corrected="schedule" if response else "none",
        )
        run = run.replace(**dict(zip(FAILURES, self._outcomes[1:].tolist(), strict=True)))
        return run.replace(timeout=float(self._timeout)) if run.timeouts else run

    def log(self) -> HistogramLog:
        """Return the intervals recorded so far; of a recorder with a path, what its file holds."""
        self.flush()
        if self.path is None:
            return self._counter.log(self._run())
        from latencykit.io.reading import read

        log = read(self.path)
        assert isinstance(log, HistogramLog)
        known = self._run()  # the file names them once it is closed
        return log.with_run(**failure_counts(known), timeout=known.timeout)

    def histogram(self) -> Histogram:
        """Return all values recorded so far, of all tags."""
        return self.log().histogram()

    def samples(self) -> Samples:
        """Return one row a measurement, failed ones with their outcome.

        Raises
        ------
        InputTooLargeError
            Where more were recorded than are kept.
        """
        if not self._closed:
            self._count()
        total = int(self._outcomes.sum())
        if total > self._keep:
            raise errors.InputTooLargeError(
                f"{format_count(total)} measurements were recorded, and rows are kept up to "
                f"{format_count(self._keep)}; log() and histogram() contain all; keep= keeps more"
            )
        nothing = np.zeros((0, COLUMNS), np.int64)
        start, end, due, outcome, tag = np.concatenate([nothing, *self._raw]).T
        shift = self._epoch - self._zero
        names = np.asarray(self._counter.tags)
        return Samples(
            start=start + shift,
            duration=end - start,
            outcome=outcome.astype(np.int8),
            run=self._run(),
            intended=due + shift if self._kind == "response" else None,
            tag=names[tag] if len(names) > 1 else None,
        )

    def __repr__(self) -> str:
        total = int(self._outcomes.sum()) + len(self._waiting) // COLUMNS
        target = "" if self.path is None else f" → {self.path}"
        return f"Recorder({format_count(total)} measurements{target})"
