"""A log at the resolution of a page: some hundred slots of time, and exact counts, sums and maxima of each.

A day of a busy server is 300 MB on disk. Intervals are put together into slots, as `HistogramLog.resample` does it. The
buckets are those of the log where they are few; of many, each goes into the coarser one of two digits that holds it
whole. So counts stay exact, and so do each slot's maximum and sum, which are kept beside them; a percentile is the
highest value of its bucket, at most 0.8 % above that of the log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from latencykit.blocks import Block, MemoryPart, block_of_rows
from latencykit.buckets import EdgeBuckets, HdrBuckets
from latencykit.log import HistogramLog, slot_edges, slot_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.buckets import Buckets
    from latencykit.histogram import Histogram
    from latencykit.samples import Samples

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["DIGITS", "MOST", "Slots", "nice_width", "slots_of", "started"]

MOST, DIGITS, FINE = 300, 2, 50_000
"""How many slots a page shows, and the digits of its buckets where it would hold more counts than that."""

_WIDTHS = (
    *(step * 10.0**power for power in range(-6, 0) for step in (1, 2, 5)), 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
    600.0, 1200.0, 1800.0, *(3600.0 * hours for hours in (1, 2, 3, 6, 12, 24, 48, 168, 336, 720, 2160, 8760)),
)  # fmt: skip
"""Widths of a slot in seconds that people can think in."""


@dataclass(frozen=True, eq=False)
class Slots:
    """Counts of a series, slot by slot, in order of time.

    Attributes
    ----------
    start, end : ndarray of float64, shape (slots,)
        Seconds from the log's start.
    max, sum : ndarray of float64, shape (slots,)
        The highest value, NaN where nothing was counted, and the sum of the buckets' middles, at full resolution.
    indptr : ndarray of int64, shape (slots + 1,)
    index, counts : ndarray of int64, shape (entries,)
        Slot s holds ``counts[indptr[s]:indptr[s + 1]]`` in the buckets ``index[…]``, which ascend.
    low, high : ndarray of float64, shape (buckets,)
        Edges of the buckets; upper ones ascend.
    width : float or None
        Seconds of a slot where slots lie on a grid (slot k is k · width ≤ t < (k + 1) · width); None where each is one
        interval of the log.
    decoded : int
        How many counts the slots hold at the log's full resolution.
    rough : ndarray of float64, shape (buckets, 2), or None
        Upper and lower edge of the bucket of two digits that holds each; None where the buckets are these already.
    """

    start: Floats
    end: Floats
    max: Floats
    sum: Floats
    indptr: Ints
    index: Ints
    counts: Ints
    low: Floats
    high: Floats
    width: float | None
    decoded: int
    rough: Floats | None = None

    def log(self, unit: str) -> HistogramLog:
        """Return the slots as a log: the series at the page's resolution."""
        block = Block(np.arange(self.start.size), self.indptr, self.index, self.counts, EdgeBuckets(self.low, self.high))
        return HistogramLog(self.start, self.end - self.start, [MemoryPart([block])], unit=unit)

    def coarser(self) -> Slots:
        """Return the same slots with buckets of two digits."""
        if self.rough is None:
            return self
        table, column = np.unique(self.rough, axis=0, return_inverse=True)
        row = np.repeat(np.arange(self.start.size), np.diff(self.indptr))
        indptr, index, counts = _summed(row, column.reshape(-1)[self.index], self.counts, self.start.size, len(table))
        return replace(self, indptr=indptr, index=index, counts=counts, low=table[:, 1], high=table[:, 0], rough=None)

    def wider(self) -> Slots:
        """Return slots of twice the width at least, each of them whole ones of these: for pages that would grow too large."""
        usual = self.width or float(np.median(self.end - self.start))
        width = nice_width(2 * usual, of=self.width)
        group = slot_numbers(self.start, width)
        first = np.flatnonzero(np.diff(group, prepend=group[:1] - 1))
        rank = np.cumsum(np.diff(group, prepend=group[:1]) > 0, dtype=np.int64)
        row = np.repeat(rank, np.diff(self.indptr))
        indptr, index, counts = _summed(row, self.index, self.counts, first.size, self.high.size)
        return replace(
            self, start=self.start[first], end=np.maximum.reduceat(self.end, first), max=np.fmax.reduceat(self.max, first),
            sum=np.add.reduceat(self.sum, first), indptr=indptr, index=index, counts=counts, width=width,
        )  # fmt: skip


def started(samples: Samples, most: int = MOST, digits: int = 3) -> HistogramLog:
    """Return the good requests counted into intervals by the moment that they were sent.

    There are at most so many intervals, and a hundred requests or so in each, but eight of them at least. Their edges are
    those that `Samples.between` cuts at.

    Examples
    --------
    >>> from latencykit.samples import Samples
    >>> samples = Samples(start=np.arange(900), duration=np.full(900, 5), unit="ms")
    >>> log = started(samples)
    >>> len(log), float(log.lengths[0]), int(log.series().count[0])
    (18, 0.05, 50)
    """
    offset, size = samples.offsets, len(samples)
    span = float(np.ptp(offset))
    width = nice_width(min(max(span / (most - 2), 100 * span / size), span / 20))
    slot, good = slot_numbers(offset, width), samples.good
    first = int(slot.min())
    number, buckets = int(slot.max()) - first + 1, HdrBuckets(digits)  # failed ones have their place in time, too
    block = block_of_rows(slot[good] - first, buckets.index_of(samples.values[good]), number, buckets)
    starts = slot_edges(first + np.arange(number, dtype=np.float64), width)
    return HistogramLog(starts, np.full(number, width), [MemoryPart([block])], unit=samples.unit, run=samples.run)


def slots_of(log: HistogramLog, most: int = MOST, fine: int = FINE) -> tuple[Slots, Histogram]:
    """Return a log's slots, and the exact sum of all intervals, from one pass over its payloads.

    Parameters
    ----------
    log : HistogramLog
        Of one tag, with at least one interval.
    most : int, default 300
        More intervals than that are put together.
    fine : int, default 50,000
        Counts up to which the slots keep the buckets of the log.

    Examples
    --------
    >>> from latencykit.samples import Samples
    >>> log = Samples(start=np.arange(900), duration=np.full(900, 5), unit="ms").to_log("2ms")
    >>> slots, total = slots_of(log)
    >>> slots.start.size, slots.width, int(slots.counts.sum()), total.count
    (181, 0.005, 900, 900)
    """
    order = np.argsort(log.starts, kind="stable")
    view = log.rows(order)
    width = _width(view, most)
    view = view if width is None else view.resample(width)
    fold, totals = _SlotsFold(len(view)), view.totals_fold()
    view.scan(fold, totals)
    slots = fold.slots(view.starts, view.starts + view.lengths, width)
    return slots if slots.index.size <= fine else slots.coarser(), view.histogram_of(totals)


def _width(log: HistogramLog, most: int) -> float | None:
    """Width of a slot; None where each interval is its own: few of them, none overlapping another."""
    typical = float(np.median(log.lengths))
    overlaps = np.mean(log.starts[1:] < (log.starts + log.lengths)[:-1] - 0.5 * typical) > 0.02 if len(log) > 1 else False
    if len(log) <= most and not overlaps:
        return None
    return nice_width(max(log.duration / most, typical if overlaps else 0.0))


def nice_width(width: float, of: float | None = None) -> float:
    """Return a width in seconds that people can think in, no smaller than the one given, and a multiple of `of`.

    Examples
    --------
    >>> nice_width(0.3), nice_width(288), nice_width(4, of=2)
    (0.5, 300.0, 10.0)
    """
    known = (step for step in _WIDTHS if step >= width * (1 - 1e-9))
    if of is None:
        return next(known, width)
    return next((step for step in known if abs(step / of - round(step / of)) < 1e-9), 2 * of)


class _SlotsFold:
    """Takes each slot's buckets, its maximum and its sum."""

    def __init__(self, size: int) -> None:
        self._decoded = 0
        self.max, self.sum = np.full(size, np.nan), np.zeros(size)
        self._found: dict[Buckets, list[tuple[Ints, Ints, Ints]]] = {}

    def add(self, block: Block) -> None:
        """Take a block in."""
        if not block.index.size:
            return
        self._decoded += block.index.size
        held = np.flatnonzero(np.diff(block.indptr))
        self.max[block.rows[held]] = np.fmax(
            self.max[block.rows[held]], block.buckets.high(block.index[block.indptr[held + 1] - 1])
        )
        rows = block.rows[np.repeat(np.arange(block.rows.size), np.diff(block.indptr))]
        np.add.at(self.sum, rows, block.counts * block.buckets.mid(block.index))
        self._found.setdefault(block.buckets, []).append((rows, block.index, block.counts))

    def slots(self, start: Floats, end: Floats, width: float | None) -> Slots:
        """Return what was taken in, the buckets of all layouts side by side."""
        rows, columns, counts = ([np.zeros(0, np.int64)] for _ in range(3))
        edges, size = [np.zeros((0, 4))], 0
        for layout, parts in self._found.items():
            held, place = np.unique(np.concatenate([index for _, index, _ in parts]), return_inverse=True)
            rough, coarse = _coarser(layout, held)
            edges.append(np.stack([layout.high(held), layout.low(held), rough.high(coarse), rough.low(coarse)], 1))
            rows += [row for row, _, _ in parts]
            columns.append(place.reshape(-1) + size)
            counts += [number for _, _, number in parts]
            size += held.size
        table, column = np.unique(np.concatenate(edges), axis=0, return_inverse=True)
        place = column.reshape(-1)[np.concatenate(columns)]
        indptr, index, number = _summed(np.concatenate(rows), place, np.concatenate(counts), start.size, len(table))
        return Slots(
            start, end, self.max, self.sum, indptr, index, number, table[:, 1], table[:, 0], width, self._decoded, table[:, 2:]
        )


def _coarser(buckets: Buckets, index: Ints) -> tuple[Buckets, Ints]:
    """The layout of two digits that holds each bucket whole, and each bucket's index in it."""
    if not isinstance(buckets, HdrBuckets) or buckets.digits <= DIGITS:
        return buckets, index
    plain = HdrBuckets(DIGITS, buckets.lowest)
    return HdrBuckets(DIGITS, buckets.lowest, buckets.scale), plain.index_of(buckets.high_steps(index))


def _summed(row: Ints, index: Ints, counts: Ints, rows: int, columns: int) -> tuple[Ints, Ints, Ints]:
    """Counts of equal row and index added up, in order: indptr, index, counts."""
    keys = row * max(columns, 1) + index
    if (keys[1:] < keys[:-1]).any():
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    total = np.add.reduceat(counts, first) if first.size else np.zeros(0, np.int64)
    keys = keys[first]
    indptr = np.searchsorted(keys, np.arange(rows + 1) * max(columns, 1))
    return indptr.astype(np.int64), keys % max(columns, 1), total
