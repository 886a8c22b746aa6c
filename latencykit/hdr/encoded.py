"""Intervals of a log whose payloads are inflated but not decoded: most questions need no more."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.blocks import Block
from latencykit.errors import RowError
from latencykit.hdr.payload import HEADER_BYTES, Payloads, decode_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latencykit._typing import Ints
    from latencykit.core.buckets import Buckets


class EncodedBlock(Block):
    """Intervals of one layout whose counts are decoded when they are asked for.

    Parameters
    ----------
    rows : ndarray of int64
    payloads : Payloads
        Of the same buckets.
    refuse : callable
        Takes a row with a corrupt payload and what is wrong with it. Where it returns, the row
        counts as empty.
    buckets : Buckets, optional
        By default those of the layout.
    """

    def __init__(
        self,
        rows: Ints,
        payloads: Payloads,
        refuse: Callable[[int, str], object],
        buckets: Buckets | None = None,
    ) -> None:
        buckets = buckets or payloads.layouts[0].buckets
        self.__dict__.update(rows=rows, buckets=buckets, payloads=payloads, refuse=refuse)

    payloads: Payloads
    refuse: Callable[[int, str], object]

    @cached_property
    def _entries(self) -> tuple[Ints, Ints, Ints]:
        while True:
            try:
                return decode_rows(self.payloads)
            except RowError as bad:
                self.refuse(int(self.rows[bad.row]), str(bad))
                self.payloads.ends[bad.row] = self.payloads.begins[bad.row]

    @property
    def indptr(self) -> Ints:
        """See `Block`."""
        return self._entries[0]

    @property
    def index(self) -> Ints:
        """See `Block`."""
        return self._entries[1]

    @property
    def counts(self) -> Ints:
        """See `Block`."""
        return self._entries[2]

    def _like(self, rows: Ints, buckets: Buckets) -> Block:
        same = EncodedBlock(rows, self.payloads, self.refuse, buckets)
        if "_entries" in self.__dict__:
            same.__dict__["_entries"] = self._entries
        return same

    def numbered(self, rows: Ints) -> Block:
        """See `Block`."""
        return self._like(rows, self.buckets)

    def of_layout(self, buckets: Buckets) -> Block:
        """See `Block`."""
        return self if buckets is self.buckets else self._like(self.rows, buckets)

    def kept(self) -> Block:
        """Return the block without what is decoded of it."""
        return EncodedBlock(self.rows, self.payloads, self.refuse, self.buckets)

    widened = kept

    def part(self, begin: int, end: int) -> Block:
        """See `Block`."""
        return EncodedBlock(
            self.rows[begin:end], self.payloads[begin:end], self.refuse, self.buckets
        )

    def joined(self, others: Sequence[Block]) -> Block:
        """See `Block`; nothing is decoded."""
        blocks = [block for block in (self, *others) if isinstance(block, EncodedBlock)]
        if len(blocks) <= len(others) or len({b.payloads.layouts[0].word for b in blocks}) > 1:
            return super().joined(others)
        rows = np.concatenate([block.rows for block in blocks])
        payloads = Payloads.joined([block.payloads for block in blocks])
        return EncodedBlock(rows, payloads, self.refuse, self.buckets)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without what refuses corrupt rows, after there are none left."""
        _ = self._entries
        return EncodedBlock, (self.rows, self.payloads, _sound, self.buckets)

    def take(self, positions: Ints) -> Block:
        """See `Block`."""
        some = self.payloads.take(positions)
        return EncodedBlock(self.rows[positions], some, self.refuse, self.buckets)

    @property
    def nbytes(self) -> int:
        """Memory that the payloads take, in bytes."""
        return int(self.payloads.sizes.sum()) + (HEADER_BYTES + 24) * self.rows.size


def _sound(row: int, reason: str) -> None:
    raise AssertionError(f"row {row} was sound before: {reason}")  # pragma: no cover
