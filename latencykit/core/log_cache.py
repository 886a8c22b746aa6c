"""Keep what one pass over a log decodes, so that later questions need no second one.

A log is kept interval by interval, its integers as narrow as they can be, up to `BUDGET` bytes for
all logs of a process; of a larger one only the total, the series and the table that the pass made.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record
from latencykit.core.blocks import MemoryPart, SeriesFold, TotalsFold, narrowed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latencykit._typing import Ints
    from latencykit.core.blocks import Block
    from latencykit.core.buckets import Buckets, Counts
    from latencykit.core.evidence import TailTable

USUAL = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)
"""Percentiles of every interval that are kept of a log."""
BUDGET = 512 << 20
"""Bytes that the caches of all logs of a process may take together."""


@record()
class Request:
    """What a pass has to answer: the total, percentiles of each row, the table of tails."""

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

    `places` are the rows' among those of the `SharedCache`. One that does not keep holds no more
    than the request asks for.
    """

    def __init__(
        self,
        places: Ints,
        table: TailTable | None,
        scaled: Callable[[Buckets], Buckets],
        request: Request,
        factor: float = 1.0,
        *,
        keeps: bool = True,
    ) -> None:
        self.places, self.size, self.keeps = places, places.size, keeps
        self._scaled, self._factor = scaled, factor
        self.table = table
        self._blocks: list[Block] = []
        self._bytes = 0
        self.part: MemoryPart | None = None
        wanted = request.percentiles
        some = request.total or wanted is not None
        self.total = TotalsFold() if some else None
        if wanted is not None:
            wanted = tuple(dict.fromkeys((*USUAL, *wanted))) if keeps else wanted
        self.series = None if wanted is None else SeriesFold(self.size, wanted)
        self._row_at = np.zeros(0, np.int64)

    def add(self, block: Block) -> None:
        """Take a block in, its layout as it is stored."""
        if self.table is not None:
            self.table.add(block.of_layout(self._scaled(block.buckets)))
        if self.keeps:
            kept = block.kept()
            self._blocks.append(kept)
            self._bytes += kept.nbytes
            first = len(self._blocks) == 1  # and all are expected to be as large
            expected = self._bytes * self.size // max(block.rows.size, 1) if first else self._bytes
            if expected > BUDGET:
                self.keeps, self._blocks, self._bytes = False, [], 0
        for fold in (self.total, self.series):
            if fold is not None:
                fold.add(block)

    def close(self) -> None:
        """End the pass."""
        if self.keeps:
            self.part = MemoryPart(self._blocks)
        if self.table is not None:
            self.table.close()
        self._row_at = np.full(int(self.places.max(initial=-1)) + 1, -1, np.int64)
        self._row_at[self.places] = np.arange(self.size)

    def table_at(self, rows: Ints, factor: float) -> TailTable | None:
        """Return the table if the pass has filled it for just these rows in this unit."""
        return self.table if rows.size == self.size and factor == self._factor else None

    @property
    def nbytes(self) -> int:
        """Memory that is taken, in bytes."""
        series = 0 if self.series is None else self.series.nbytes
        return self.places.nbytes + self._row_at.nbytes + self._bytes + series

    def rows_of(self, places: Ints) -> Ints | None:
        """Return the rows that lie at these places, or None where some are not covered."""
        if not places.size or int(places.max()) >= self._row_at.size:
            return None
        rows = self._row_at[places]
        return None if (rows < 0).any() else rows


class SharedCache:
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

    def __reduce__(self) -> tuple[type[SharedCache], tuple[int]]:
        return SharedCache, (self.size,)

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
