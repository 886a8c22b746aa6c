"""Keep what one pass over a log decodes, so that later questions need no second one.

A log that takes little memory is kept interval by interval, its integers as narrow as they can be.
Of a longer one a pass keeps sums of neighbouring intervals (of 256 at least, within spans of time
that people resample to; of twice as many whenever the sums take too much), the buckets of every
interval's extremes and usual percentiles, and the table of time slots that `Tails` needs, where it
is asked for. All of it is exact: an answer from memory equals the one from the payloads to the last
bit.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._arrays import as_positions
from latencykit._records import record
from latencykit.core.blocks import (
    Block,
    MemoryPart,
    SeriesFold,
    SlidingSums,
    TotalsFold,
    entry_sums,
    join,
    narrowed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from latencykit._typing import AnyArray, Ints
    from latencykit.core.blocks import Walked
    from latencykit.core.buckets import Buckets, Counts
    from latencykit.core.evidence import TailTable


USUAL = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)
"""Percentiles of every interval that are kept of a long log."""
WHOLE = 48 << 20
"""Bytes that the intervals of a log may take in memory; of a longer log only sums are kept."""
SUMS = 32 << 20
"""Bytes that these sums may take."""
BUDGET = 256 << 20
"""Bytes that the caches of all logs of a process may take together."""
WINDOW = 256
"""Intervals per sum at least, at first."""


@record()
class Request:
    """What a pass has to answer: the total, percentiles of each row, the table of slots."""

    total: bool = False
    percentiles: Sequence[float] | None = None
    table: bool = False

    def __or__(self, other: Request) -> Request:
        """Both."""
        sets = [one.percentiles for one in (self, other) if one.percentiles is not None]
        wanted = tuple(dict.fromkeys(p for some in sets for p in some)) if sets else None
        return Request(self.total or other.total, wanted, self.table or other.table)


class LogCache:
    """What a pass over some rows of a log keeps: a fold.

    `places` says where the rows are among those of the `Shelf`. Windows do not mix families (parts
    and tags). `table` makes the table, where it is asked for, and `slot` is the row of it that each
    row of the log belongs to; None where slots are too short to be summed on the way. One that does
    not keep holds no more than the request asks for.
    """

    def __init__(
        self,
        places: Ints,
        family: Ints,
        spans: Callable[[], Ints],
        slot: Ints | None,
        table: Callable[[], TailTable] | None,
        scaled: Callable[[Buckets], Buckets],
        request: Request,
        factor: float = 1.0,
        *,
        keeps: bool = True,
    ) -> None:
        self.places, self.size, self.keeps = places, places.size, keeps
        self._family, self._spans, self._slot = family, spans, slot
        self._new_table, self._scaled, self._percentiles = table, scaled, request.percentiles
        self._table = table and table()
        self._factor = factor
        self._blocks: list[Block] = []
        self._bytes = 0
        self._windows: _Windows | None = None
        self.part: MemoryPart | None = None
        # Adding up costs little where rows are looked at anyway.
        wanted, some = request.percentiles, request.total or request.percentiles is not None
        wanted = wanted if keeps else wanted or None
        by_slot = not keeps and some and slot is not None
        self.total = TotalsFold() if some else None
        series = SeriesFold(self.size, wanted or (), total=None if by_slot else self.total)
        self.series = None if wanted is None else series
        self.table: TailTable | None = None
        self._row_at = np.zeros(0, np.int64)
        if by_slot and slot is not None and self.total is not None:
            self._windows = _Windows(
                family, family, slot, self.series, self.total, self._tabulate, keeps=False
            )

    def add(self, block: Block) -> None:
        """Take a block in, its layout as it is stored."""
        if self._windows is None:
            self._hold(block)
            return
        if self._slot is None:
            self._tabulate(block)
        self._windows.add(block)

    def _hold(self, block: Block, walked: Walked | None = None) -> None:
        """Hold on to a block while the log takes little memory."""
        self._tabulate(block)
        if self.keeps:
            kept = block.kept()
            self._blocks.append(kept)
            self._bytes += kept.nbytes
            expected = self._bytes
            if len(self._blocks) == 1:
                expected = self._bytes * self.size // max(block.rows.size, 1)
            if expected > WHOLE:
                self._keep_sums()
                return
        fold = self.series or self.total
        if fold is not None:
            join(fold, block, walked)

    @property
    def walks(self) -> bool:
        """See `Fold`."""
        if self._windows is not None:
            return self._table is None or self._slot is not None
        return self._table is None and not self.keeps

    def ahead(self, block: Block) -> tuple[_Windows | None, Any] | None:
        """See `Fold`; the result says where it belongs to."""
        if self._windows is not None:
            parts = self._windows.ahead(block)
            return None if parts is None else (self._windows, parts)
        if self._table is not None:
            _ = block.counts  # and so walking costs less
        fold = self.series or self.total
        walked = None if fold is None else fold.ahead(block)
        return None if walked is None else (None, walked)

    def join(self, block: Block, result: tuple[_Windows | None, Any]) -> None:
        """See `Fold`."""
        windows, parts = result
        if windows is not self._windows:  # it was made before sums were all that is kept
            self.add(block)
        elif windows is None:
            self._hold(block, parts)
        else:
            if self._slot is None:
                self._tabulate(block)
            windows.join(block, parts)

    def _keep_sums(self) -> None:
        """Keep no more intervals, but sums of them."""
        self.total = TotalsFold()
        percentiles = dict.fromkeys((*USUAL, *(self._percentiles or ())))
        self.series = SeriesFold(self.size, tuple(percentiles))
        tabulate = None
        if self._new_table is not None and self._slot is not None:
            self._table, tabulate = self._new_table(), self._tabulate
        self._windows = _Windows(
            self._family, self._spans(), self._slot, self.series, self.total, tabulate
        )
        for block in MemoryPart(self._blocks).blocks(np.arange(self.size)):
            self._windows.add(block)
        self._blocks = []

    def _tabulate(self, block: Block) -> None:
        if self._table is not None:
            self._table.add(block.of_layout(self._scaled(block.buckets)))

    def close(self) -> None:
        """End the pass."""
        if self._windows is not None:
            self._windows.close()
        elif self.keeps:
            self.part = MemoryPart(self._blocks)
        if self._table is not None:
            self.table = self._table
            self.table.close()
        self._row_at = np.full(int(self.places.max(initial=-1)) + 1, -1, np.int64)
        self._row_at[self.places] = np.arange(self.size)

    def table_at(self, rows: Ints, factor: float) -> TailTable | None:
        """Return the table if the pass has filled it for just these rows in this unit."""
        return self.table if rows.size == self.size and factor == self._factor else None

    @property
    def nbytes(self) -> int:
        """Memory that is taken, in bytes."""
        own = self.places.nbytes + self._row_at.nbytes
        return own + (self._bytes if self._windows is None else self._windows.nbytes)

    def rows_of(self, places: Ints) -> Ints | None:
        """Return the rows that lie at these places, or None where some are not covered."""
        if not places.size or int(places.max()) >= self._row_at.size:
            return None
        rows = self._row_at[places]
        return None if (rows < 0).any() else rows

    def sums(self, rows: Ints, group: Ints) -> tuple[Ints, Iterator[Block], Ints]:
        """Return the windows within `rows` and one group each, and the positions of all other rows.

        A row of these blocks is a window, numbered as the first of its positions in `rows`; the
        first array returned holds these numbers.
        """
        if self._windows is None or not self.keeps:
            return np.zeros(0, np.int64), iter(()), np.arange(rows.size)
        return self._windows.within(rows, group)


class _Window:
    """The sum of neighbouring intervals, and which windows of the first size went into it."""

    def __init__(
        self,
        family: int,
        numbers: list[int],
        sums: dict[Buckets, tuple[AnyArray, AnyArray]],
    ) -> None:
        self.family, self.numbers, self.sums = family, numbers, sums

    @property
    def nbytes(self) -> int:
        total: int = sum(index.nbytes + counts.nbytes for index, counts in self.sums.values())
        return total

    def join(self, other: _Window) -> None:
        """Add the window that follows."""
        self.numbers += other.numbers
        for buckets, (index, counts) in other.sums.items():
            if buckets in self.sums:
                before, smaller = self.sums[buckets]
                places = np.concatenate((before, index)).astype(np.int64)
                numbers = np.concatenate((smaller, counts)).astype(np.int64)
                _, joint, total = entry_sums(np.zeros(places.size, np.int64), places, numbers)
                self.sums[buckets] = narrowed(joint), narrowed(total)
            else:
                self.sums[buckets] = index, counts


class _Windows:
    """Sums of neighbouring intervals: a fold that also makes the total and the series.

    A window is what begins in one span of time. Where rows have slots, what a slot has of a window
    is summed first and given to `tabulate`; windows are then made of these sums.
    """

    def __init__(
        self,
        family: Ints,
        span: Ints,
        slot: Ints | None,
        series: SeriesFold | None,
        total: TotalsFold,
        tabulate: Callable[[Block], None] | None,
        *,
        keeps: bool = True,
    ) -> None:
        self._series, self._total, self._tabulate = series, total, tabulate
        self._keeps = keeps
        # Windows are numbered family by family, so that neighbours may be joined.
        key = family * (int(span.max(initial=0)) + 1) + span
        window = np.unique(key, return_inverse=True)[1].reshape(-1)
        unit = np.arange(family.size) if slot is None else window * (int(slot.max()) + 1) + slot
        _, self._first, unit = np.unique(unit, return_index=True, return_inverse=True)
        self._window_of = window
        self._family = np.zeros(int(window.max(initial=-1)) + 1, np.int64)
        self._family[window] = family
        self._outer = SlidingSums(window[self._first], self._store)
        self._inner = SlidingSums(unit.reshape(-1), self._pass_on) if tabulate else self._outer
        self._windows: list[_Window] = []
        self._last: dict[int, _Window] = {}
        self._bytes: int = 0
        self._joined = 1
        self._rows_in = np.zeros(0, np.int64)

    def add(self, block: Block) -> None:
        """Take a block in."""
        self._inner.add(block, self._series)

    def ahead(self, block: Block) -> Any:
        """See `Fold`."""
        return self._inner.ahead(block, self._series.percentiles if self._series else ())

    def join(self, block: Block, parts: Any) -> None:
        """See `Fold`."""
        self._inner.join(block, parts, self._series)

    def _pass_on(self, number: int, sums: list[Counts]) -> None:
        """Take the sum of a slot in."""
        assert self._tabulate is not None
        for one in _rows_of(int(self._first[number]), sums):
            self._tabulate(one)
            if not self._keeps:
                self._total.add(one)
        if self._keeps:
            self._outer.add_sums(number, sums)

    def _store(self, number: int, sums: list[Counts]) -> None:
        """Keep a window; once windows take too much memory, join neighbours."""
        for one in _rows_of(0, sums):
            self._total.add(one)
        family = int(self._family[number])
        narrow = {buckets: (narrowed(index), narrowed(counts)) for buckets, index, counts in sums}
        self._keep(_Window(family, [number], narrow))
        while self._bytes > SUMS and len(self._windows) > len(self._last):
            self._joined *= 2
            before, self._windows, self._last, self._bytes = self._windows, [], {}, 0
            for window in before:
                self._keep(window)

    def _keep(self, window: _Window) -> None:
        last = self._last.get(window.family)
        if last is not None and len(last.numbers) + len(window.numbers) <= self._joined:
            self._bytes -= last.nbytes
            last.join(window)
            self._bytes += last.nbytes
            return
        self._windows.append(window)
        self._last[window.family] = window
        self._bytes += window.nbytes

    def close(self) -> None:
        """End the pass."""
        self._inner.close()
        self._outer.close()
        kept_as = np.full(self._family.size + 1, len(self._windows), np.int64)
        for at, window in enumerate(self._windows):
            kept_as[window.numbers] = at
        self._window_of = kept_as[self._window_of]  # rows of empty windows are in none
        self._rows_in = np.bincount(self._window_of, minlength=len(self._windows) + 1)

    @property
    def nbytes(self) -> int:
        """Memory that is taken, in bytes."""
        series = 0 if self._series is None else self._series.nbytes
        return self._bytes + int(self._window_of.nbytes) + series

    def within(self, rows: Ints, group: Ints) -> tuple[Ints, Iterator[Block], Ints]:
        """See `LogCache.sums`."""
        window = self._window_of[rows]
        size = self._rows_in.size
        low, high = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
        np.minimum.at(low, window, group)
        np.maximum.at(high, window, group)
        inside = (np.bincount(window, minlength=size) == self._rows_in) & (low == high)
        present, first = np.unique(window, return_index=True)
        used = inside[present] & (present < len(self._windows))
        first, windows = first[used], [self._windows[k] for k in present[used].tolist()]

        def blocks() -> Iterator[Block]:
            for position, one in zip(first.tolist(), windows, strict=True):
                wide = [
                    (b, i.astype(np.int64), c.astype(np.int64)) for b, (i, c) in one.sums.items()
                ]
                yield from _rows_of(position, wide)

        units = np.repeat(first, as_positions([len(one.sums) for one in windows]))
        return units, blocks(), np.flatnonzero(~inside[window])


def _rows_of(row: int, sums: list[Counts]) -> Iterator[Block]:
    for buckets, index, counts in sums:
        yield Block(np.array([row]), np.array([0, index.size]), index, counts, buckets)


class Shelf:
    """What all views of a log share: the cache of its widest pass. It is not pickled.

    `total` is the sum of all intervals where it was counted when they were read: layout, index and
    counts, in integers as narrow as they can be.
    """

    def __init__(self, size: int, total: list[Counts] | None = None) -> None:
        self.size = size
        self.total = total and [(of, narrowed(i), narrowed(n)) for of, i, n in total]
        self.cache: LogCache | None = None
        self.expected: Request | None = None
        self.keeps = True

    def __reduce__(self) -> tuple[type[Shelf], tuple[int]]:
        return Shelf, (self.size,)

    def keep(self, cache: LogCache) -> None:
        """Keep a cache in place of a smaller one, unless the caches of all logs take too much."""
        global _taken  # noqa: PLW0603
        nbytes = cache.nbytes
        smaller = self.cache is not None and self.cache.size > cache.size
        if smaller or _taken + nbytes > BUDGET:
            return
        _taken += nbytes
        weakref.finalize(cache, _give_back, nbytes)
        self.cache = cache


_taken = 0


def _give_back(nbytes: int) -> None:
    global _taken  # noqa: PLW0603
    _taken -= nbytes
