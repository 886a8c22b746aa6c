"""What a log knows beyond its counts: how many events its tail rests on, and intervals that know how slow requests cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from latencykit.stats.block_bootstrap import block_intervals, tail_groups
from latencykit.stats.events import events_above, solid_up_to, tail_shares
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.blocks import Block
    from latencykit.histogram import Histogram, PercentileRow
    from latencykit.log.noun import HistogramLog
    from latencykit.stats.events import Events

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Tails", "tails_of"]

_SLOTS = 4096  # more intervals are put together with their neighbours
_GROUPS = 400
_BESIDES = (90.0, 97.0, 99.0, 99.7, 99.9, 99.97, 99.99)


@dataclass(frozen=True, eq=False)
class Tails:
    """A log as slots of time × groups of buckets, fine in the tail: in memory whatever its length.

    Attributes
    ----------
    whole : Histogram
        All of it.
    table : ndarray of float64, shape (slots, groups)
        Counts, in order of time.
    low, high : ndarray of float64, shape (groups,)
    start, length, longest : ndarray of float64, shape (slots,)
        Seconds; the longest latency of each, 0 for values without a unit.
    tags : ndarray of float64, shape (tags, groups)
    """

    whole: Histogram
    table: Floats
    low: Floats
    high: Floats
    start: Floats
    length: Floats
    longest: Floats
    tags: Floats

    def events(self, percentiles: Sequence[float]) -> list[Events]:
        """Return what makes up the requests above each percentile."""
        counts, sizes = np.rint(self.table.sum(axis=0)).astype(np.int64), self.table.sum(axis=1)
        # A stall shows best where it still holds many requests: some percentiles are asked besides.
        asked = [*percentiles, *(p for p in _BESIDES if p < max(percentiles, default=0.0))]
        tail = _above(self.table, *tail_shares(counts, asked))
        found = events_above(asked, tail, sizes, self.start, self.length, self.longest)[: len(percentiles)]
        if len(self.tags) < 2:
            return found
        by_tag = _above(self.tags, *tail_shares(counts, percentiles))
        most = [_most_of(column) for column in by_tag.T]
        return [replace(one, tags=number) for one, number in zip(found, most, strict=True)]

    def solid_up_to(self, confidence: float = 0.95) -> tuple[float, str]:
        """Return the percentile up to which enough events bear the curve, and what it rests on beyond ("1 stall")."""
        return solid_up_to(self.events, self.whole.sample_limit(confidence), confidence)

    def rows(self, percentiles: Sequence[float], confidence: float = 0.95) -> tuple[list[PercentileRow], tuple[str, ...]]:
        """Return percentiles with intervals from resampled blocks of time and with their events, and why some have none."""
        p = [float(one) for one in percentiles]
        plain = self.whole.percentile_rows(p, confidence)
        inner = [k for k, one in enumerate(p) if 0 < one < 100]
        if not inner or not self.whole.count:
            return plain, ()
        blocks = block_intervals(self.table, [p[k] for k in inner], confidence, replicates=300)
        events = self.events([p[k] for k in inner])
        rows = list(plain)
        for k, low, high, one in zip(inner, blocks.low.tolist(), blocks.high.tolist(), events, strict=True):
            rows[k] = replace(self._joined(plain[k], low, high), events=one.count or None)
        return rows, tuple(dict.fromkeys(reason for reason in blocks.reasons if reason))

    def _joined(self, row: PercentileRow, low: int, high: int) -> PercentileRow:
        """Wide enough for both: chance among requests, and chance among stretches of time."""
        if low < 0:
            return replace(row, low=math.nan, high=math.nan)
        bottom, top = min(float(self.low[low]), row.value), max(float(self.high[high]), row.value)
        if math.isnan(row.high):  # corrected counts: the blocks alone
            return replace(row, low=bottom, high=top)
        return replace(row, low=min(bottom, row.low) if not math.isnan(row.low) else row.low, high=max(top, row.high))


def _above(table: Floats, group: Ints, share: Floats) -> Floats:
    """Requests of each row above each cut, shape (rows, p)."""
    running = np.concatenate((np.zeros((len(table), 1)), np.cumsum(table, axis=1)), axis=1)
    return np.asarray(running[:, -1:] - running[:, group + 1] + table[:, group] * share)


def _most_of(parts: Floats) -> int:
    """How few parts hold nine tenths of all."""
    running = np.cumsum(np.sort(parts)[::-1])
    return int(np.searchsorted(running, 0.9 * running[-1] * (1 - 1e-12))) + 1 if running[-1] > 0 else 0


class _Table:
    """Counts of slots and tags in groups of buckets."""

    def __init__(self, slot: Ints, slots: int, tag: Ints, tags: int, high: Floats, group: Ints) -> None:
        self._slot, self._tag, self._high, self._group = slot, tag, high, group
        self._size = int(group.max(initial=0)) + 1
        self.table, self.tags = np.zeros(slots * self._size), np.zeros(tags * self._size)
        self.longest = np.zeros(slots)

    def add(self, block: Block) -> None:
        """Take a block in."""
        if not block.counts.size:
            return
        edges = block.buckets.high(np.arange(int(block.index.max()) + 1))
        at = np.minimum(np.searchsorted(self._high * (1 + 1e-12), edges, "left"), self._high.size - 1)
        group, lengths = self._group[at][block.index], np.diff(block.indptr)
        counts = block.counts.astype(np.float64)
        np.add.at(self.table, np.repeat(self._slot[block.rows] * self._size, lengths) + group, counts)
        if self.tags.size > self._size:
            np.add.at(self.tags, np.repeat(self._tag[block.rows] * self._size, lengths) + group, counts)
        held = np.flatnonzero(np.diff(block.indptr))
        np.maximum.at(self.longest, self._slot[block.rows[held]], edges[block.index[block.indptr[held + 1] - 1]])


def tails_of(log: HistogramLog, whole: Histogram | None = None) -> Tails:
    """Return a log as slots of time × groups of buckets, in one pass (two where `whole` is not given).

    Parameters
    ----------
    log : HistogramLog
    whole : Histogram, optional
        ``log.histogram()``, in the log's unit.
    """
    counted = log.histogram() if whole is None else whole
    high, group = counted.buckets.high(counted.index), tail_groups(counted.counts, _GROUPS)
    times, moment = np.unique(log.starts, return_inverse=True)
    slot = moment.reshape(-1) // max(1, math.ceil(times.size / _SLOTS))
    slots = int(slot.max(initial=-1)) + 1
    codes = np.unique(np.asarray(log.tag_of_rows(), object), return_inverse=True)[1].reshape(-1)
    fold = _Table(slot, slots, codes, int(codes.max(initial=0)) + 1, high, group)
    log.scan(fold)
    start, end = np.full(slots, np.inf), np.full(slots, -np.inf)
    np.minimum.at(start, slot, log.starts)
    np.maximum.at(end, slot, log.starts + log.lengths)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    last = np.append(first[1:], group.size)[: first.size] - 1
    seconds = fold.longest * (NANOSECONDS.get(log.unit, 0.0) / 1e9)
    low = counted.buckets.low(counted.index[first])
    width = max(1, last.size)
    table, tags = fold.table.reshape(slots, width), fold.tags.reshape(-1, width)
    return Tails(counted, table, low, high[last], start, end - start, seconds, tags)
