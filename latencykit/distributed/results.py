"""Sums of counts, and sums by time bins: small, and equal in whatever order they are added.

Counts of unlike layouts stay apart until the end, extremes are kept as they were read, and nothing
is rounded on the way: a sum over ten thousand files is, bit for bit, the same from one process as
from a cluster.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._records import record
from latencykit.core.blocks import Block, MemoryPart, feed
from latencykit.core.histogram import Histogram, merge_histograms, reported
from latencykit.core.histogram_log import HistogramLog, SlotPart, slot_numbers
from latencykit.core.run import merge_runs
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import InputTooLargeError, InvalidArgumentError
from latencykit.units import format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.core.buckets import Buckets
    from latencykit.core.run import Run

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = [
    "TRAVELS",
    "Slots",
    "Totals",
    "carried",
    "slots_of",
    "totals_of",
    "width_of",
]


TRAVELS = 32 << 20
"""Bytes of a log's counts that a cluster returns unchanged, if nothing is asked of it."""
_SLOTS = 1000


@record()
class Totals:
    """Counts of a whole series, a histogram a layout, and when it was.

    Attributes
    ----------
    data : str
        What it was counted from: ``log``, ``samples`` or ``histogram``.
    parts : tuple of Histogram
    run : Run
    intervals : int
    first, last : tuple of float
        Log's start (0 where it does not say) and seconds from there, of the first interval's start
        and the last one's end.
    """

    level: str
    parts: tuple[Histogram, ...]
    run: Run
    intervals: int = 0
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
        return reported(
            merged.with_run(
                **{
                    name: getattr(run, name)
                    for name in ("failed", "timeouts", "dropped", "unfinished")
                }
            )
        )

    @staticmethod
    def sum(totals: Sequence[Totals]) -> Totals:
        """Return the sum; see `latencykit.core.histogram_log.merge` for what may be added."""
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
                "first": min(
                    (total.first for total in timed if total.first), key=lambda at: (sum(at), at)
                ),
                "last": max(
                    (total.last for total in timed if total.last), key=lambda at: (sum(at), at)
                ),
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
    fold = data.totals_fold()
    feed(data.blocks(), (fold,))
    run = data.run.replace(unit=data.unit)
    parts = tuple(
        Histogram(buckets, index, counts, data.unit, run)
        for _, buckets, index, counts in fold.totals()
    )
    if not parts:
        parts = (data.rows(np.zeros(0, np.int64)).histogram(),)
    if not len(data):
        return Totals("log", parts, run)
    start, ends = data.start or 0.0, data.starts + data.lengths
    return Totals(
        "log", parts, run, len(data), (start, float(data.starts.min())), (start, float(ends.max()))
    )


@record()
class Slots:
    """Counts of a log by slots of time and tag: what a resampled log holds, still to be added up.

    Attributes
    ----------
    width : float
        Seconds.
    number : ndarray of int64, shape (rows,)
        Which slot from the log's start.
    tags : tuple of str
        Of every row.
    start, end : ndarray of float64, shape (rows,)
        Of what is in the slot, seconds from the log's start.
    entries : dict of Buckets to (row, index, counts)
        Arrays of one length, ascending by row and index.
    unit : str
    run : Run
    """

    width: float
    number: Ints
    tags: tuple[str, ...]
    start: Floats
    end: Floats
    entries: dict[Buckets, tuple[Ints, Ints, Ints]]
    unit: str
    run: Run

    @staticmethod
    def sum(slots: Sequence[Slots]) -> Slots:
        """Return the sum, its rows ascending by slot and tag."""
        if len(slots) == 1:
            return slots[0]
        if len({some.width for some in slots}) > 1:
            raise InvalidArgumentError("slots of different lengths cannot be added")
        run = merge_runs([some.run for some in slots])
        names = sorted({tag for some in slots for tag in some.tags})
        keys = [
            some.number * len(names) + np.array([names.index(tag) for tag in some.tags], np.int64)
            for some in slots
        ]
        unique, row = np.unique(np.concatenate(keys), return_inverse=True)
        start, end = np.full(unique.size, np.inf), np.full(unique.size, -np.inf)
        np.minimum.at(start, row, np.concatenate([some.start for some in slots]))
        np.maximum.at(end, row, np.concatenate([some.end for some in slots]))
        moved = np.split(row, np.cumsum([key.size for key in keys])[:-1])
        parts_of: dict[Buckets, list[tuple[Ints, Ints, Ints]]] = {}
        for some, to in zip(slots, moved, strict=True):
            for buckets, (at, index, counts) in some.entries.items():
                parts_of.setdefault(buckets, []).append((to[at], index, counts))
        entries = {buckets: _added(parts) for buckets, parts in parts_of.items()}
        tags = tuple(names[code] for code in (unique % len(names)).tolist())
        return Slots(
            slots[0].width, unique // len(names), tags, start, end, entries, slots[0].unit, run
        )

    def log(self) -> HistogramLog:
        """Return the slots as a log, in memory."""
        names = tuple(sorted(set(self.tags))) or ("",)
        codes = np.array([names.index(tag) for tag in self.tags], np.int64)
        rows = np.arange(self.start.size)
        mixed = np.zeros(rows.size, np.int64)
        for at, _, _ in self.entries.values():
            mixed[np.unique(at)] += 1
        blocks = []
        for buckets, (at, index, counts) in self.entries.items():
            chosen = mixed[at] == 1
            own, first = np.unique(at[chosen], return_index=True)
            indptr = np.append(first, int(chosen.sum()))
            blocks.append(Block(own, indptr, index[chosen], counts[chosen], buckets))
        for row in np.flatnonzero(mixed > 1).tolist():  # brought to one layout
            parts = []
            for buckets in sorted(self.entries, key=repr):
                at, index, counts = self.entries[buckets]
                low, high = np.searchsorted(at, [row, row + 1])
                parts.append(Histogram(buckets, index[low:high], counts[low:high]))
            total = merge_histograms([part for part in parts if part.count])
            indptr = np.array([0, total.index.size])
            blocks.append(Block(np.array([row]), indptr, total.index, total.counts, total.buckets))
        blocks = [block for block in blocks if block.rows.size]
        where = (np.zeros(rows.size, np.int64), rows)
        return HistogramLog(
            self.start, self.end - self.start, [MemoryPart(blocks)],
            where=where, tag_code=codes, tag_names=names, unit=self.unit, run=self.run,
        )  # fmt: skip


def _added(parts: Sequence[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    """Entries of several logs with the counts of equal rows and indices added."""
    row, index, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    if float(counts.sum(dtype=np.float64)) >= 2.0**62:
        raise InputTooLargeError("the sum of the counts does not fit in 63 bits; take fewer files")
    order = np.lexsort((index, row))
    row, index, counts = row[order], index[order], counts[order]
    first = np.flatnonzero(np.append(True, (np.diff(row) != 0) | (np.diff(index) != 0)))
    return row[first], index[first], np.add.reduceat(counts, first) if first.size else counts


def slots_of(data: Any, width: float, origin: float | None = None) -> Slots:
    """Add a log's intervals up into slots."""
    if not hasattr(data, "to_log"):
        raise InvalidArgumentError(
            f"{data.run.source}: has no times, so it has no intervals; a log or samples with "
            "start times would"
        )
    log: HistogramLog = data if isinstance(data, HistogramLog) else data.to_log(width)
    shift = log.start - origin if origin is not None and log.start is not None else 0.0
    starts = log.starts + shift
    names, code = np.unique(np.asarray(log.tag_of_rows(), np.str_), return_inverse=True)
    number = slot_numbers(starts, width)
    unique, group = np.unique(number * max(1, names.size) + code, return_inverse=True)
    begin, end = np.full(unique.size, np.inf), np.full(unique.size, -np.inf)
    np.minimum.at(begin, group, starts)
    np.maximum.at(end, group, starts + log.lengths)
    parts_of: dict[Buckets, list[tuple[Ints, Ints, Ints]]] = {}
    for block in (
        SlotPart(log, group, unique.size).blocks(np.arange(unique.size)) if unique.size else ()
    ):
        parts_of.setdefault(block.buckets, []).append(
            (block.rows[block.entry_rows], block.index, block.counts)
        )
    tags = tuple(names[unique % max(1, names.size)].tolist())
    entries = {buckets: _added(parts) for buckets, parts in parts_of.items()}
    run = log.run.replace(unit=log.unit, **({"start": origin} if shift else {}))
    return Slots(width, unique // max(1, names.size), tags, begin, end, entries, log.unit, run)


def width_of(interval: str | float) -> float:
    """Return an interval such as ``"10s"`` in seconds."""
    width = parse_duration(interval, "s") / 1e9
    if not width > 0:
        raise InvalidArgumentError(f"an interval must be longer than nothing, not {interval!r}")
    return width


def carried(data: Any, most: float = math.inf) -> Any:
    """Return the data type with all that it needs in memory, so that it can travel."""
    if not isinstance(data, HistogramLog):
        return data
    blocks, size = [], 0
    for block in data.blocks():
        blocks.append(block)
        size += block.nbytes
        if size > most and len(data) > _SLOTS:
            width = data.duration / _SLOTS
            text = (
                f"its {len(data):,} intervals travelled as time bins of "
                f"{format_duration(width * 1e9)}; sums and maxima are exact"
            )
            return slots_of(data, width).log().with_run(notes=(*data.run.notes, text))
    names, codes = np.unique(np.asarray(data.tag_of_rows(), np.str_), return_inverse=True)
    return HistogramLog(
        data.starts, data.lengths, [MemoryPart(blocks)],
        tag_code=codes, tag_names=tuple(names.tolist()) or ("",), unit=data.unit, run=data.run,
    )  # fmt: skip
