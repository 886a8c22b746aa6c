"""`Recorder`: measure your own code, and write an ``.hlog`` while it runs."""

from __future__ import annotations

import atexit
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from latencykit.errors import LatencyKitError, LimitError, MixedInputsError, UsageError
from latencykit.record.intervals import MOST_TAGS, IntervalCounter, interval_width
from latencykit.record.measurement import NO_DUE, Measurement
from latencykit.record.rows import RowBuffer
from latencykit.record.schedule import Schedule
from latencykit.run import Run
from latencykit.samples import OUTCOMES, Samples
from latencykit.units import format_count

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from numpy.typing import NDArray

    from latencykit.histogram import Histogram
    from latencykit.log import HistogramLog

__all__ = ["Recorder"]

F = TypeVar("F", bound="Callable[..., Any]")
_PEDIGREE = {
    "service": "latencykit measure: service, corrected: none",
    "response": "latencykit measure: response, corrected: schedule",
}


class Recorder:
    """Measures your own code: thread-safe, at a microsecond or two a measurement.

    Service times come from `measure`, a decorated function or `record`; response times, which contain the
    waiting for a late start, from `schedule` or ``measure(intended=…)``. A recorder holds one of the two.

    Parameters
    ----------
    path : str or os.PathLike, optional
        An ``.hlog`` to write; an old one is replaced. A thread appends every interval as a whole line once it
        is over, so the file is valid at any moment. Without a path everything stays in memory.
    interval : str or float, default "1s"
        Length of an interval: ``"100ms"``, or seconds; at least 1 ms.
    rate : float, optional
        Requests per second of `schedule`, where that names none.
    digits : int, default 3
        Significant digits of the buckets.
    tag : str, optional
        Name of the operation, where a measurement names none.
    keep : int, default 1,000,000
        So many rows are kept for `samples`; the intervals hold all of them, however many there are.

    Notes
    -----
    A block that raises counts as failed (``TimeoutError`` as a timeout, cancelled as unfinished), never as a
    fast request. An empty block measures 0.2 to 0.5 µs: shorter work is better timed by the thousand.
    After `close` a decorated function runs on, unmeasured.

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
        self.path = None if path is None else Path(path)
        self._rate, self._keep = rate, keep
        width = interval_width(interval)
        self._epoch, self._zero = time.time_ns(), time.perf_counter_ns()
        self._rows, self._raw = RowBuffer(self._on_full), list[Any]()
        self._outcomes = np.zeros(len(OUTCOMES), np.int64)
        self._kind: str | None = None
        self._ready: str | None = None  # the kind, as long as nothing speaks against measuring it
        self._closed = False
        self._failure: Exception | None = None
        self._work = threading.RLock()  # held by whoever counts
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
        """Return a measurement: ``with recorder.measure(): …``, ``async with``, or a decorator of a function.

        Parameters
        ----------
        tag : str, optional
            Name of the operation.
        intended : int, optional
            When the block was due, by ``time.perf_counter_ns()``: the response time counts from there.

        Raises
        ------
        MixedInputsError
            Where the recorder already holds the other kind of time.
        """
        kind = "service" if intended is None else "response"
        if kind != self._ready:
            self._declare(kind)
        code = self._tag if tag is None else self._code(tag)
        return Measurement(self._rows.put, NO_DUE if intended is None else int(intended), code)

    def __call__(self, function: F) -> F:
        """Return `function`, every call of it measured; coroutines are measured until they return."""
        return self.measure()(function)

    def record(self, nanoseconds: float, *, tag: str | None = None) -> None:
        """Count a service time that was measured elsewhere and has just ended.

        Parameters
        ----------
        nanoseconds : int or float
        tag : str, optional
        """
        if not 0 <= nanoseconds < 1 << 62:
            raise UsageError(f"a service time must be from 0 to 2**62 ns, not {nanoseconds}")
        self._declare("service")
        now = time.perf_counter_ns()
        self._rows.put(now - int(nanoseconds), now, NO_DUE, 0, self._tag if tag is None else self._code(tag))

    def schedule(self, rate: float | None = None, *, duration: str | float | None = None, count: int | None = None) -> Schedule:
        """Return slots at a fixed rate, to be entered: ``for slot in recorder.schedule(100): with slot: …``.

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
            For ``for``, and in a coroutine for ``async for``. A slot is a `Measurement` whose time counts
            from when it was due: the timer's lateness (0.1 ms) and the wait behind earlier slots are in it.

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
            raise UsageError("a schedule needs a rate: recorder.schedule(rate=100), or Recorder(rate=100)")
        return Schedule(lambda due: self.measure(intended=due), rate, duration, count)

    def _code(self, tag: str | None) -> int:
        """Position of a tag's name; a new one is checked and remembered."""
        known = self._codes.get(tag or "")
        if known is not None:
            return known
        assert tag is not None
        if set(tag) & set(", \r\n\t"):
            raise UsageError(f"a tag cannot hold commas, blanks or line breaks, as {tag!r} does; rename it")
        with self._work:
            if len(self._counter.tags) >= MOST_TAGS:
                raise LimitError(f"more than {MOST_TAGS} tags; a tag names an operation, not a request")
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
                self._counter.comment(_PEDIGREE[kind])
        if self._kind != kind:
            raise MixedInputsError(
                f"this recorder holds {self._kind} times, into which {kind} times must not be mixed; "
                "make another Recorder for them"
            )
        self._ready = kind

    def _refuse_if_broken(self) -> None:
        if self._failure is not None:
            raise LatencyKitError(f"{self.path}: the log could not be written: {self._failure}") from self._failure
        if self._closed:
            raise UsageError("this recorder is closed; make another one")

    # ------------------------------------------------------------ counting

    def _on_full(self) -> None:
        if self._stream is None:
            self._count()
        else:
            self._wake.set()

    def _count(self) -> None:
        """Count what was put so far."""
        with self._work:
            parts = self._rows.take()
            if parts:
                self._count_rows(np.concatenate(parts))

    def _count_rows(self, rows: NDArray[np.int64]) -> None:
        start, end, due, outcome, tag = rows.T
        self._outcomes += np.bincount(outcome, minlength=len(OUTCOMES))
        good = outcome == 0
        value = np.maximum(end - np.where(due == NO_DUE, start, due), 0)
        self._counter.add((end - self._zero)[good], value[good], tag[good])
        if int(self._outcomes.sum()) <= self._keep:
            self._raw.append(rows)
        else:
            self._raw.clear()

    def _write(self) -> None:
        """What the writer thread does: once an interval, or when much has come, write what is over."""
        width = self._counter.width
        while not self._closed:
            self._wake.wait((width - (time.perf_counter_ns() - self._zero) % width) / 1e9 + 0.002)
            self._wake.clear()
            try:
                with self._work:
                    if not self._closed:
                        self._count()
                        self._counter.advance(time.perf_counter_ns() - self._zero)
            except (OSError, LatencyKitError) as error:  # raised where it is seen: at the next measurement
                self._failure, self._ready = error, None
                return

    def flush(self) -> None:
        """Count and write everything so far; the interval that is running is cut in two."""
        if self._closed:
            return
        self._refuse_if_broken()
        with self._work:
            self._count()
            self._counter.finish(time.perf_counter_ns() - self._zero)

    def close(self) -> None:
        """Write the last interval and the number of failures, and end the writer thread."""
        if self._closed:
            return
        atexit.unregister(self.close)
        try:
            with self._work:
                self.flush()
                failures = ", ".join(f"{name}: {n}" for name, n in self._failures().items() if n)
                if failures:
                    self._counter.comment(f"latencykit {failures}")
        finally:
            self._closed, self._ready = True, None
            self._wake.set()
            if self._stream is not None:
                self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ what was measured

    def _failures(self) -> dict[str, int]:
        names = ("failed", "timeouts", "dropped", "unfinished")
        return dict(zip(names, self._outcomes[1:].tolist(), strict=True))

    def _run(self) -> Run:
        response = self._kind == "response"
        known = Run(tool="latencykit Recorder", start=self._epoch / 1e9, rate=self._rate if response else None)
        known = known.but(measure="response" if response else "service", corrected="schedule" if response else "none")
        return known.but(**self._failures())

    def log(self) -> HistogramLog:
        """Return the intervals recorded so far; of a recorder with a path, what its file holds."""
        self.flush()
        if self.path is None:
            return self._counter.log(self._run())
        from latencykit.formats.reading import read

        log: HistogramLog = read(self.path)
        return log.but(**self._failures())

    def histogram(self) -> Histogram:
        """Return all values recorded so far, of all tags."""
        return self.log().histogram()

    def samples(self) -> Samples:
        """Return one row a measurement, failed ones with their outcome.

        Raises
        ------
        LimitError
            Where more were recorded than are kept.
        """
        if not self._closed:
            self._count()
        total = int(self._outcomes.sum())
        if total > self._keep:
            raise LimitError(
                f"{format_count(total)} measurements were recorded, and rows are kept up to "
                f"{format_count(self._keep)}; log() and histogram() hold all, keep= keeps more rows"
            )
        rows = np.concatenate([np.zeros((0, 5), np.int64), *self._raw])
        start, end, due, outcome, tag = rows.T
        shift = self._epoch - self._zero
        names = np.asarray(self._counter.tags)
        return Samples(
            start=start + shift, duration=end - start, outcome=outcome.astype(np.int8), run=self._run(),
            intended=due + shift if self._kind == "response" else None,
            tag=names[tag] if len(names) > 1 else None,
        )  # fmt: skip

    def __repr__(self) -> str:
        total = int(self._outcomes.sum()) + len(self._rows)
        return f"Recorder({format_count(total)} measurements{f' → {self.path}' * (self.path is not None)})"
