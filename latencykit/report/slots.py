"""A log at the resolution of a page: some hundred slots of time, buckets of two digits, and exact totals and maxima.

A day of a busy server is 300 MB on disk. Intervals are put together into slots, as `HistogramLog.resample` does it, and
each bucket into the coarser one that holds it whole. So counts stay exact, and so does each slot's maximum, which is
kept beside them; a percentile is the highest value of its bucket, at most 0.8 % above that of the log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from latencykit.blocks import Block, MemoryPart
from latencykit.buckets import EdgeBuckets, HdrBuckets
from latencykit.log import HistogramLog

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.buckets import Buckets
    from latencykit.histogram import Histogram

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["DIGITS", "Slots", "nice_width", "slots_of"]

MOST, DIGITS = 300, 2
"""How many slots a page shows, and the digits of its buckets."""

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
    max : ndarray of float64, shape (slots,)
        Exact; NaN where nothing was counted.
    indptr : ndarray of int64, shape (slots + 1,)
    index, counts : ndarray of int64, shape (entries,)
        Slot s holds ``counts[indptr[s]:indptr[s + 1]]`` in the buckets ``index[…]``, which ascend.
    low, high : ndarray of float64, shape (buckets,)
        Edges of the buckets; upper ones ascend.
    width : float or None
        Seconds of a slot where intervals were put together; None where each slot is one interval.
    decoded : int
        How many counts the slots hold at the log's full resolution.
    """

    start: Floats
    end: Floats
    max: Floats
    indptr: Ints
    index: Ints
    counts: Ints
    low: Floats
    high: Floats
    width: float | None
    decoded: int

    def log(self, unit: str) -> HistogramLog:
        """Return the slots as a log: the series at the page's resolution."""
        block = Block(np.arange(self.start.size), self.indptr, self.index, self.counts, EdgeBuckets(self.low, self.high))
        return HistogramLog(self.start, self.end - self.start, [MemoryPart([block])], unit=unit)

    def wider(self) -> Slots:
        """Return slots of twice the width at least: for pages that would grow too large."""
        width = nice_width(2 * (self.width or float(np.median(self.end - self.start))))
        group = np.floor(self.start / width + 1e-9).astype(np.int64)
        first = np.flatnonzero(np.diff(group, prepend=group[:1] - 1))
        rank = np.cumsum(np.diff(group, prepend=group[:1]) > 0, dtype=np.int64)
        row = np.repeat(rank, np.diff(self.indptr))
        indptr, index, counts = _summed(row, self.index, self.counts, first.size, self.high.size)
        top = np.fmax.reduceat(self.max, first)
        end = np.maximum.reduceat(self.end, first)
        return replace(self, start=self.start[first], end=end, max=top, indptr=indptr, index=index, counts=counts, width=width)


def slots_of(log: HistogramLog, most: int = MOST, digits: int = DIGITS) -> tuple[Slots, Histogram]:
    """Return a log's slots, and the exact sum of all intervals, from one pass over its payloads.

    Parameters
    ----------
    log : HistogramLog
        Of one tag, with at least one interval.
    most : int, default 300
        More intervals than that are put together.
    digits : int, default 2

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
    fold, totals = _SlotsFold(len(view), digits), view.totals_fold()
    view.scan(fold, totals)
    end = view.starts + view.lengths
    return fold.slots(view.starts, end, width), view.histogram_of(totals)


def _width(log: HistogramLog, most: int) -> float | None:
    """Width of a slot; None where each interval is its own: few of them, none overlapping another."""
    typical = float(np.median(log.lengths))
    overlaps = np.mean(log.starts[1:] < (log.starts + log.lengths)[:-1] - 0.5 * typical) > 0.02 if len(log) > 1 else False
    if len(log) <= most and not overlaps:
        return None
    return nice_width(max(log.duration / most, typical if overlaps else 0.0))


def nice_width(width: float) -> float:
    """Return a width in seconds that people can think in, no smaller than the one given.

    Examples
    --------
    >>> nice_width(0.3), nice_width(288)
    (0.5, 300.0)
    """
    return next((step for step in _WIDTHS if step >= width * (1 - 1e-9)), width)


class _SlotsFold:
    """Takes each interval's buckets, made coarser, and its maximum."""

    def __init__(self, size: int, digits: int) -> None:
        self._digits, self._decoded = digits, 0
        self.max = np.full(size, np.nan)
        self._found: dict[Buckets, list[tuple[Ints, Ints, Ints]]] = {}

    def add(self, block: Block) -> None:
        """Take a block in."""
        if not block.index.size:
            return
        self._decoded += block.index.size
        held = np.flatnonzero(np.diff(block.indptr))
        self.max[block.rows[held]] = block.buckets.high(block.index[block.indptr[held + 1] - 1])
        layout, index = _coarser(block.buckets, block.index, self._digits)
        row = np.repeat(np.arange(block.rows.size), np.diff(block.indptr))
        indptr, index, counts = _summed(row, index, block.counts, block.rows.size, int(index.max()) + 1)
        rows = np.repeat(block.rows, np.diff(indptr))
        self._found.setdefault(layout, []).append((rows, index, counts))

    def slots(self, start: Floats, end: Floats, width: float | None) -> Slots:
        """Return what was taken in, the buckets of all layouts side by side."""
        rows, edges, counts = [np.zeros(0, np.int64)], [np.zeros((0, 2))], [np.zeros(0, np.int64)]
        for layout, parts in self._found.items():
            for row, index, number in parts:
                rows.append(row)
                edges.append(np.stack([layout.high(index), layout.low(index)], 1))
                counts.append(number)
        table, column = np.unique(np.concatenate(edges), axis=0, return_inverse=True)
        every = np.concatenate(rows)
        indptr, index, number = _summed(every, column.reshape(-1), np.concatenate(counts), start.size, len(table))
        return Slots(start, end, self.max, indptr, index, number, table[:, 1], table[:, 0], width, self._decoded)


def _coarser(buckets: Buckets, index: Ints, digits: int) -> tuple[Buckets, Ints]:
    """The layout of so many digits that holds each bucket whole, and each bucket's index in it."""
    if not isinstance(buckets, HdrBuckets) or buckets.digits <= digits:
        return buckets, index
    layout = HdrBuckets(digits, buckets.lowest, buckets.scale)
    plain = HdrBuckets(digits, buckets.lowest)
    return layout, plain.index_of(buckets.high_steps(index))


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
