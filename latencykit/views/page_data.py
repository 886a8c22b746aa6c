"""A log at the resolution of a page: some hundred time bins, with exact counts, sums and maxima.

A day of a busy server is 300 MB on disk. Intervals are put together into time bins (slots), as
`HistogramLog.resample` does it. The buckets are those of the log where they are few; of many, each
goes into the coarser one of two digits that contains it. So counts stay exact, and so do each
slot's maximum and sum, which are kept beside them; a percentile is the highest value of its bucket,
at most 0.8 % above that of the log.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from latencykit._arrays import as_positions
from latencykit._records import record
from latencykit._typing import Floats, Ints
from latencykit.core.blocks import Block, MemoryPart, block_of_rows, entry_sums
from latencykit.core.buckets import Buckets, EdgeBuckets, HdrBuckets
from latencykit.core.histogram_log import HistogramLog, scan_with_evidence, slot_edges, slot_numbers
from latencykit.core.quantiles import median
from latencykit.core.samples import Samples, in_steps, stamp_step
from latencykit.views.values import numbers

MOST, DIGITS, FINE = 300, 2, 600_000
"""Slots of a page, and the digits of its buckets where it would have more counts than FINE."""

_ENTRIES = 1 << 20
"""Counts of slots that wait to be added up."""

LEAST_FINE = 50_000
"""The counts that a series may have, however many share the page."""

_WIDTHS = (
    *(step * 10.0**power for power in range(-6, 0) for step in (1, 2, 5)),
    *(1.0, 2.0, 5.0, 10.0, 20.0, 30.0),
    *(60.0 * minutes for minutes in (1, 2, 5, 10, 20, 30)),
    *(3600.0 * hours for hours in (1, 2, 3, 6, 12, 24, 48, 168, 336, 720, 2160, 8760)),
)
"""Widths of a slot in seconds that people are used to."""


@record(eq=False)
class PageBins:
    """Counts of a series, slot by slot, in order of time."""

    # Slot s has ``counts[indptr[s]:indptr[s + 1]]`` in the buckets ``index[…]``, which ascend.

    start: Floats  # of each slot, seconds from the log's start
    end: Floats
    max: Floats  # at full resolution; NaN where nothing was counted
    sum: Floats  # of the buckets' middles, at full resolution
    indptr: Ints
    index: Ints
    counts: Ints
    low: Floats  # edges of the buckets; upper ones ascend
    high: Floats
    width: float | None  # s; slot k is k · width ≤ t < (k + 1) · width, or (None) an interval
    open_ended: NDArray[np.bool_]  # buckets of which only the lower edge bounds the values
    rough: Floats | None = None  # edges of the bucket of two digits around each; None: it is one

    def log(self, unit: str) -> HistogramLog:
        """Return the slots as a log: the series at the page's resolution."""
        block = Block(
            np.arange(self.start.size),
            self.indptr,
            self.index,
            self.counts,
            EdgeBuckets(self.low, self.high, open_ended=bool(self.open_ended[-1:].any())),
        )
        return HistogramLog(self.start, self.end - self.start, [MemoryPart([block])], unit=unit)

    def coarser(self) -> PageBins:
        """Return the same slots with buckets of two digits."""
        if self.rough is None:
            return self
        edges: Floats = np.column_stack((self.rough, self.open_ended))
        table, column = np.unique(edges, axis=0, return_inverse=True)
        row = np.repeat(np.arange(self.start.size), as_positions(np.diff(self.indptr)))
        indptr, index, counts = _summed(
            row, column.reshape(-1)[self.index], self.counts, self.start.size
        )
        return replace(
            self,
            indptr=indptr,
            index=index,
            counts=counts,
            low=table[:, 1],
            high=table[:, 0],
            open_ended=table[:, 2] > 0,
            rough=None,
        )

    def wider(self) -> PageBins:
        """Return slots of at least twice the width, each of them made of entire slots."""
        usual = self.width or float(median(self.end - self.start))
        width = nice_width(2 * usual, of=self.width)
        group = slot_numbers(self.start, width)
        first = np.flatnonzero(np.diff(group, prepend=group[:1] - 1))
        rank = np.cumsum(np.diff(group, prepend=group[:1]) > 0, dtype=np.int64)
        row = np.repeat(rank, as_positions(np.diff(self.indptr)))
        indptr, index, counts = _summed(row, self.index, self.counts, first.size)
        return replace(
            self,
            start=self.start[first],
            end=np.maximum.reduceat(self.end, first),
            max=np.fmax.reduceat(self.max, first),
            sum=np.add.reduceat(self.sum, first),
            indptr=indptr,
            index=index,
            counts=counts,
            width=width,
        )


def started(samples: Samples, most: int = MOST) -> HistogramLog:
    """Return the good requests counted into intervals by the moment that they were sent."""
    # There are at most `most` intervals of a hundred requests or so each, but at least eight. Their
    # edges are those that `Samples.between` cuts at.
    offset, good, buckets = samples.offsets, samples.good, HdrBuckets(3)
    span = float(np.ptp(offset)) or 1e9  # of requests at one moment, any
    width = nice_width(min(max(span / (most - 2), 100 * span / len(samples)), span / 20))
    width = in_steps(width, stamp_step(samples))
    slot = slot_numbers(offset, width)  # failed requests have their place in time, too
    first = int(slot.min())
    size = int(slot.max()) + 1 - first
    block = block_of_rows(slot[good] - first, buckets.index_of(samples.values[good]), size, buckets)
    starts = slot_edges(first + np.arange(size, dtype=np.float64), width)
    return HistogramLog(
        starts, np.full(size, width), [MemoryPart([block])], unit=samples.unit, run=samples.run
    )


def page_bins(log: HistogramLog, most: int = MOST, fine: int = FINE) -> PageBins:
    """Return a log's slots, from the one pass over its payloads that tells its evidence, too."""
    typical = float(median(log.lengths))
    order, ends = np.argsort(log.starts, kind="stable"), log.starts + log.lengths
    overlap = ends[order][:-1] - log.starts[order][1:] > 0.5 * typical
    overlaps = len(log) > 1 and bool(np.mean(overlap) > 0.02)
    width, at = None, np.argsort(order)  # an interval is a slot: they are few, and none overlaps
    if len(log) > most or overlaps:
        width = nice_width(max(log.duration / most, typical if overlaps else 0.0))
        at = np.unique(slot_numbers(log.starts, width), return_inverse=True)[1].reshape(-1)
    size = int(at.max(initial=-1)) + 1
    start, end = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(start, at, log.starts)
    np.maximum.at(end, at, ends)
    fold = _SlotsFold(at, size)
    scan_with_evidence(log, fold)
    slots = fold.slots(start, end, width)
    return slots if slots.index.size <= fine else slots.coarser()


def nice_width(width: float, of: float | None = None) -> float:
    """Return a familiar width in seconds, at least the one given, and a multiple of `of`."""
    wider = (step for step in _WIDTHS if step >= width * (1 - 1e-9))
    if of is None:
        return next(wider, width)
    return next((step for step in wider if abs(step / of - round(step / of)) < 1e-9), 2 * of)


class _SlotsFold:
    """Collects each slot's buckets and its maximum."""

    def __init__(self, slot: Ints, size: int) -> None:
        self.slot = slot  # of each interval
        self.max = np.full(size, np.nan)
        self._parts: dict[Buckets, list[tuple[Ints, Ints, Ints]]] = {}
        self._size, self._most = 0, _ENTRIES

    def add(self, block: Block) -> None:
        """Take a block in."""
        buckets, index = block.buckets, block.index
        if not index.size:
            return
        filled = np.flatnonzero(np.diff(block.indptr))
        last = index[block.indptr[filled + 1] - 1]
        np.fmax.at(self.max, self.slot[block.rows[filled]], buckets.high(last))
        sums = entry_sums(self.slot[block.rows][block.entry_rows], index, block.counts)
        self._parts.setdefault(buckets, []).append(sums)
        self._size += sums[0].size
        if self._size > self._most:
            self._size = sum(row.size for _, row, _, _ in self._added())
            self._most = self._size + _ENTRIES

    def _added(self) -> list[tuple[Buckets, Ints, Ints, Ints]]:
        """Add up what is there of each layout: slots, indices, counts."""
        for layout, parts in self._parts.items():
            self._parts[layout] = [entry_sums(*map(np.concatenate, zip(*parts, strict=True)))]
        return [(layout, *parts[0]) for layout, parts in self._parts.items()]

    def slots(self, start: Floats, end: Floats, width: float | None) -> PageBins:
        """Return the slots, the buckets of all layouts side by side."""
        rows, columns, counts = ([np.zeros(0, np.int64)] for _ in range(3))
        edges, size = [np.zeros((0, 5))], 0
        sums = np.zeros(start.size)
        for layout, row, index, number in self._added():
            np.add.at(sums, row, number * layout.mid(index))
            used, place = np.unique(index, return_inverse=True)
            rough, coarse = layout, used
            if isinstance(layout, HdrBuckets) and layout.digits > DIGITS:
                # The layout of two digits, whose buckets contain those that are used.
                plain = HdrBuckets(DIGITS, layout.lowest)
                coarse = plain.index_of(layout.high_steps(used))
                rough = HdrBuckets(DIGITS, layout.lowest, layout.scale)
            ends = (layout.high(used), layout.low(used), rough.high(coarse), rough.low(coarse))
            edges.append(np.column_stack((*ends, np.isnan(layout.upper_edge(used)))))
            rows.append(row)
            columns.append(place.reshape(-1) + size)
            counts.append(number)
            size += used.size
        table, column = np.unique(np.concatenate(edges), axis=0, return_inverse=True)
        place = column.reshape(-1)[np.concatenate(columns)]
        indptr, index, number = _summed(
            np.concatenate(rows), place, np.concatenate(counts), start.size
        )
        return PageBins(
            start=start,
            end=end,
            max=self.max,
            sum=sums,
            indptr=indptr,
            index=index,
            counts=number,
            low=table[:, 1],
            high=table[:, 0],
            width=width,
            open_ended=table[:, 4] > 0,
            rough=table[:, 2:4],
        )


def _summed(row: Ints, index: Ints, counts: Ints, rows: int) -> tuple[Ints, Ints, Ints]:
    """Counts of equal row and index added up, in order: indptr, index, counts."""
    row, index, counts = entry_sums(row, index, counts)
    return np.searchsorted(row, np.arange(rows + 1)).astype(np.int64), index, counts


# ------------------------------------------------------------
# Data as text that is safe inside a page: JSON that ends no script, and bytes that deflate well.


def packed(slots: PageBins) -> dict[str, object]:
    """Return slots as the page's ``data.js`` unpacks them."""
    # Edges are doubles; lengths, differences of indices, and counts are integers of as many bytes
    # as the largest of them needs, a plane of bytes at a time, lowest bytes first. All of it is
    # deflated, and base64 makes it text.
    lengths = np.diff(slots.indptr)
    deltas = np.diff(slots.index, prepend=-1)
    first = slots.indptr[:-1][lengths > 0]
    deltas[first] = slots.index[first] + 1
    parts = [slots.low.astype("<f8").tobytes(), slots.high.astype("<f8").tobytes()]
    widths = []
    for column in (lengths, deltas, slots.counts):
        width = max(1, (int(column.max(initial=0)).bit_length() + 7) // 8)
        widths.append(width)
        parts.append(column.astype("<u8").view(np.uint8).reshape(-1, 8).T[:width].tobytes())
    return {
        "start": numbers(slots.start),
        "end": numbers(slots.end),
        "max": numbers(slots.max),
        "sum": numbers(slots.sum),
        "width": slots.width,
        "buckets": int(slots.low.size),
        "open": np.flatnonzero(slots.open_ended).tolist(),
        "entries": int(slots.index.size),
        "widths": widths,
        "bytes": base64.b64encode(zlib.compress(b"".join(parts))).decode("ascii"),
    }
