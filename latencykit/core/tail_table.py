"""Counts per time bin and tag in columns of one relative width: a fold over the blocks of a log."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.buckets import HdrBuckets
from latencykit.core.kernel import tabulate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from latencykit._typing import Floats, Ints
    from latencykit.core.blocks import Block
    from latencykit.core.buckets import Buckets

MOST_BINS = 4096
"""Time bins of a table at most: more intervals are put together with their neighbours."""
_GROUPS = 400  # of latencies at most, once all is read
_FINE = 64  # columns per doubling of the latency while a log is read: 1.1 % wide
_MORE = 64  # columns for what comes later; each row takes them, and more of them take memory
_ROWS_AT_ONCE = 64  # rows of a large table that are put together at a time


class TailTable:
    """A fold: counts per time bin and tag, in columns of one relative width for all layouts."""

    def __init__(self, slot: Ints, slots: int, tag: Ints, tags: int) -> None:
        self.slot, self.tag = slot, tag
        self.table, self.tags = np.zeros((slots, 0)), np.zeros((tags, 0))
        self.longest = np.zeros(slots)
        self._steps = np.zeros(0, np.int64)  # of each column
        self._columns: dict[Buckets, Ints] = {}
        self._result: tuple[Floats, Floats, Floats] | None = None

    def add(self, block: Block) -> None:
        """Take a block in."""
        if not block.counts.size:
            return
        column = self._of(block.buckets, block.width)
        entries = block.indptr, block.index, block.counts, column
        slot = self.slot[block.rows]
        tabulate(self.table, slot, *entries)
        if len(self.tags) > 1:
            tabulate(self.tags, self.tag[block.rows], *entries)
        ends = block.indptr[1:]
        held = (ends > block.indptr[:-1]).nonzero()[0]
        top = block.buckets.high(block.index[ends[held] - 1])
        np.maximum.at(self.longest, slot[held], top)

    def _of(self, buckets: Buckets, size: int) -> Ints:
        """Column of each bucket of a layout."""
        known = self._columns.get(buckets, np.zeros(0, np.int64))
        if known.size < size:
            if isinstance(buckets, HdrBuckets):  # without end; spares doing it often
                size += -size % 1024
            steps, place = _columns_between(buckets, known.size, size)
            if self._steps.size:
                fresh = steps[~np.isin(steps, self._steps)]
                self._steps = np.concatenate((self._steps, fresh))
                order = np.argsort(self._steps)
                columns = order[np.searchsorted(self._steps, steps, sorter=order)]
                known = np.concatenate((known, columns[place]))
            else:
                self._steps, known = steps, place
            self._columns[buckets] = known
            more = self._steps.size - self.table.shape[1]
            if more > 0:
                more += _MORE
                self.table, self.tags = _widened(self.table, more), _widened(self.tags, more)
        return known

    def close(self) -> None:
        """Keep the groups, which take less memory than the columns."""
        self._result = self.groups()
        self.table = self.tags = np.zeros((0, 0))

    def groups(self) -> tuple[Floats, Floats, Floats]:
        """Table, tags and values of the groups, ascending."""
        if self._result is not None:
            return self._result
        return grouped(self.table, self.tags, self._steps)


@lru_cache(maxsize=32)
def _columns_between(buckets: Buckets, first: int, last: int) -> tuple[Ints, Ints]:
    """The columns of some buckets, and which each is in; many tags share a layout."""
    steps, place = np.unique(column_of(buckets.high(np.arange(first, last))), return_inverse=True)
    return steps, place.reshape(-1)


def _widened(table: Floats, more: int) -> Floats:
    """With more columns of zeros."""
    wider = np.zeros((len(table), table.shape[1] + more))
    wider[:, : table.shape[1]] = table
    return wider


def column_of(values: Floats) -> Ints:
    """The column of each value, by its logarithm."""
    return np.asarray(np.floor(_FINE * np.log2(np.maximum(values, 2.0**-40))), np.int64)


def grouped(table: Floats, tags: Floats, steps: Ints) -> tuple[Floats, Floats, Floats]:
    """Put columns together to some hundred, fine in the tail, empty ones left out."""
    sums = table[:, : steps.size].sum(axis=0)
    order = np.argsort(steps)
    held = order[sums[order] > 0]
    if not held.size:
        return np.zeros((len(table), 1)), np.zeros((len(tags), 1)), np.zeros(1)
    sums, middle = sums[held], np.exp2((steps[held] + 0.5) / _FINE)
    group = tail_groups(np.rint(sums))
    first = np.flatnonzero(np.diff(group, prepend=-1))
    value = np.add.reduceat(sums * middle, first) / np.add.reduceat(sums, first)

    def together(counts: Floats) -> Floats:
        """Some rows at a time: the table may be large."""
        out = np.empty((len(counts), first.size))
        for row in range(0, len(counts), _ROWS_AT_ONCE):
            some = counts[row : row + _ROWS_AT_ONCE, held]
            np.add.reduceat(some, first, axis=1, out=out[row : row + _ROWS_AT_ONCE])
        return out

    return together(table), together(tags), value


def tail_groups(counts: ArrayLike, groups: int = _GROUPS) -> Ints:
    """Return a group for each bucket: some hundred groups, fine in the tails."""
    numbers = np.asarray(counts, np.float64)
    if numbers.size <= groups:
        return np.arange(numbers.size)
    share = (np.cumsum(numbers) - numbers / 2 + 0.25) / (numbers.sum() + 0.5)
    odds = np.log(share / (1 - share))
    width = (odds[-1] - odds[0]) / groups or 1.0
    group = np.minimum(np.floor((odds - odds[0]) / width), groups - 1)
    return np.unique(group, return_inverse=True)[1].astype(np.int64)
