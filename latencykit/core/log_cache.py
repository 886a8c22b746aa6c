"""Keep the blocks that one pass over a log decodes, so that later questions need no second one.

They are kept encoded, or with integers as narrow as they can be. All logs of a process together may
keep `BUDGET` bytes; a log that does not fit is read again for each question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

import numpy as np

from latencykit._typing import Ints
from latencykit.core.blocks import Block, MemoryPart, narrowed
from latencykit.core.buckets import Counts

BUDGET = 512 << 20
"""Bytes that the caches of all logs of a process may take together."""

LITTLE = 64 << 20
"""The same while one pass is expected of a log: a stall may be found, which takes another."""

_KEPT = WeakKeyDictionary[MemoryPart, int]()  # and the bytes of each


class SharedCache:
    """What all views of a log share: the blocks of its widest pass. It is not pickled."""

    # A view knows which places of the log its rows are. `total` is the sum of all intervals where
    # it was counted when they were read: layout, index and counts, in integers as narrow as they
    # can be. Little is kept where `keeps` is False.

    def __init__(self, size: int, total: list[Counts] | None = None) -> None:
        self.size = size
        self.total = total and [(of, narrowed(i), narrowed(n)) for of, i, n in total]
        self.keeps = True
        self._part = MemoryPart([])
        self._covered = np.zeros(size, np.bool_)

    def __reduce__(self) -> tuple[type[SharedCache], tuple[int]]:
        return SharedCache, (self.size,)

    def part_of(self, places: Ints) -> MemoryPart | None:
        """Return the kept blocks, whose rows are places, if they cover all of these."""
        return self._part if places.size and self._covered[places].all() else None

    def kept(self, places: Ints, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield the blocks of some places, and keep them in place of those of fewer."""
        some: list[Block] | None = [] if places.size > np.count_nonzero(self._covered) else None
        nbytes, most = 0, BUDGET if self.keeps else min(LITTLE, BUDGET)
        for block in blocks:
            if some is not None:
                some.append(block.moved(places[block.rows], block.buckets).kept())
                nbytes += some[-1].nbytes
                expected = nbytes
                if len(some) == 1:  # and all are expected to be as large
                    expected = nbytes * places.size // max(block.rows.size, 1)
                if sum(_KEPT.values()) + expected > most:
                    some = None
            yield block
        if some is not None:
            self._part, self._covered = MemoryPart(some), np.zeros(self.size, np.bool_)
            self._covered[places] = True
            _KEPT[self._part] = nbytes
