"""Count rows into intervals as they arrive, in memory or line by line into an ``.hlog``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

import numpy as np
from numpy.typing import ArrayLike

from latencykit._typing import Ints
from latencykit.core.blocks import Block, MemoryPart, entry_sums
from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError
from latencykit.io.hlog import HlogWriter
from latencykit.units import parse_duration

MOST_TAGS = 4096
_MILLISECOND = 1_000_000
_FOLD_AT = 1 << 18  # pending keys that are worth folding


def interval_width(interval: str | float) -> int:
    """Return an interval's length in ns: ``"1s"``, ``"100ms"``, or seconds."""
    width = parse_duration(interval, "s")
    if not 1e6 <= width < 1e18:
        raise InvalidArgumentError(f"an interval must be at least 1 ms long, not {interval!r}")
    return int(width)


class IntervalCounter:
    """Counts values into intervals by the time of their reply, and emits those that are over."""

    # Not thread-safe: its owner holds a lock.

    def __init__(
        self,
        start: float,
        width: int,
        digits: int,
        stream: IO[bytes] | None = None,
        comments: Iterable[str] = (),
    ) -> None:
        self.start, self.width, self.buckets = start, width, HdrBuckets(digits)
        self.tags: list[str] = [""]
        self._done = 0  # ns from the start up to which intervals were given away
        self._pending: list[tuple[Ints, Ints]] = []
        self._rows: list[tuple[float, float, int, Ints, Ints]] = []
        self._stream = stream
        self._writer = None if stream is None else HlogWriter(stream, start, "ns", comments)
        if self._writer is not None:
            self._writer.header()
            self._flush()

    def comment(self, text: str) -> None:
        """Write a comment line; nothing where the intervals stay in memory."""
        if self._stream is not None:
            self._stream.write(f"#[{text}]\n".encode())
            self._flush()

    def add(self, end: ArrayLike, value: ArrayLike, tag: ArrayLike = 0) -> None:
        """Count values (ns) that ended at `end` (ns from the start); `tag` is a place in `tags`."""
        ends = np.maximum(np.asarray(end, np.int64), self._done)
        slot = (ends // self.width) * MOST_TAGS + np.asarray(tag, np.int64)
        keys = slot * self.buckets.slots + self.buckets.index_of(np.asarray(value, np.int64))
        self._pending.append((keys, np.ones(keys.size, np.int64)))
        if sum(keys.size for keys, _ in self._pending) > _FOLD_AT:
            self._pending = [self._folded()]

    def advance(self, now: int) -> None:
        """Give away all intervals that are over `now` (ns from the start), empty ones too."""
        self._give(now // self.width * self.width)

    def finish(self, now: int) -> None:
        """Give away everything, the interval that is still running as a shorter one."""
        self.advance(now)
        if now > self._done or self._pending:  # times are written in milliseconds
            self._give(max(-(-now // _MILLISECOND), self._done // _MILLISECOND + 1) * _MILLISECOND)

    def _folded(self) -> tuple[Ints, Ints]:
        nothing = np.zeros(0, np.int64)
        keys, counts = (
            np.concatenate(side) for side in zip((nothing, nothing), *self._pending, strict=True)
        )
        return entry_sums(np.zeros_like(keys), keys, counts)[1:]

    def _give(self, until: int) -> None:
        """Give away what ended before `until`, interval by interval and tag by tag."""
        if until <= self._done:
            return
        keys, counts = self._folded()
        size = self.buckets.slots
        last = -(-until // self.width)  # intervals below this one; a cut one counts as over
        ready = int(np.searchsorted(keys, last * MOST_TAGS * size))
        self._pending = [(keys[ready:], counts[ready:])] if ready < keys.size else []
        keys, counts = keys[:ready], counts[:ready]
        # Interval → (tag, bucket indices, counts), from ascending keys.
        intervals: dict[int, list[tuple[int, Ints, Ints]]] = {}
        rows, first = np.unique(keys // size, return_index=True)
        ends = np.append(first[1:], keys.size)[: rows.size]
        for row, begin, stop in zip(rows.tolist(), first.tolist(), ends.tolist(), strict=True):
            slot, tag = divmod(row, MOST_TAGS)
            some = (tag, keys[begin:stop] % size, counts[begin:stop])
            intervals.setdefault(slot, []).append(some)
        nothing = (0, np.zeros(0, np.int64), np.zeros(0, np.int64))
        for slot in range(self._done // self.width, last):
            begin, end = max(slot * self.width, self._done), min((slot + 1) * self.width, until)
            for tag, index, many in intervals.get(slot, [nothing]):
                start, length = begin / 1e9, (end - begin) / 1e9
                if self._writer is None:
                    self._rows.append((start, length, tag, index, many))
                    continue
                name = self.tags[tag] or None
                self._writer.interval(start, length, self.buckets, index, many, name)
                self._flush()
            self._done = end  # interval by interval: an interrupt must not have one written twice

    def _flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()

    def log(self, run: Run | None = None) -> HistogramLog:
        """Return the intervals given away so far that are in memory."""
        starts, lengths, tags, indices, counts = (
            zip(*self._rows, strict=True) if self._rows else ((),) * 5
        )
        indptr = np.concatenate(([0], np.cumsum([index.size for index in indices]))).astype(
            np.int64
        )
        nothing = np.zeros(0, np.int64)
        block = Block(
            np.arange(len(starts)),
            indptr,
            np.concatenate([nothing, *indices]),
            np.concatenate([nothing, *counts]),
            self.buckets,
        )
        return HistogramLog(
            starts,
            lengths,
            [MemoryPart([block])],
            tag_code=tags,
            tag_names=tuple(self.tags),
            unit="ns",
            run=run,
        )
