"""The payloads of a log file as a part of a `HistogramLog`: decoded a block of lines at a time, when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.blocks import Block, MemoryPart, blocks_by_layout
from latencykit.codec import Payloads, RowError, decode_rows, open_payloads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import IO

    from numpy.typing import NDArray

    from latencykit.errors import CorruptInputError
    from latencykit.formats.base import Source
    from latencykit.formats.hlog_lines import Intervals

    Ints = NDArray[np.int64]

__all__ = ["AHEAD", "KEEP", "BlockBuilder", "HlogPart", "narrow"]

CHUNK = 48 * 1024
"""Bytes of inflated payload that are decoded at once: the temporaries of such a block stay in the cache."""
_BESIDE = 16  # bytes that a payload costs beside its own

SPAN = 96 * 1024
"""Bytes that are read at once where payloads lie one after the other."""
AHEAD = 4 * SPAN
"""The same where only the places of payloads are noted."""
TOGETHER = 1024
"""Rows whose places are looked up at once."""
KEEP = 12 << 20
"""A log whose decoded blocks take less memory than this keeps them; others are decoded again for every pass."""


class BlockBuilder:
    """Gathers opened payloads and decodes them some at a time, into a block for each of their layouts.

    Parameters
    ----------
    damaged : callable
        Takes (row, reason) of a payload that turns out to be damaged; returns if it may be skipped.
    """

    def __init__(self, damaged: Callable[[int, str], None]) -> None:
        self._damaged = damaged
        self._rows: list[int] = []
        self._parts: list[Payloads] = []
        self._size = 0

    def add(self, rows: Sequence[int], payloads: Payloads) -> Iterator[Block]:
        """Take payloads and their rows; yield blocks as enough are gathered."""
        first = (self._parts[0] if self._parts else payloads).layouts[0]
        if all(layout.joins(first) for layout in set(payloads.layouts)):
            yield from self._take(rows, payloads)
            return
        for k, row in enumerate(rows):  # a change of versions is rare
            if self._parts and not payloads[k].layout.joins(self._parts[0].layouts[0]):
                yield from self.flush()
            yield from self._take([row], payloads[k : k + 1])

    def _take(self, rows: Sequence[int], payloads: Payloads) -> Iterator[Block]:
        """Take payloads that go together."""
        sizes = np.cumsum(payloads.sizes + _BESIDE)
        begin, before = 0, 0
        while begin < len(payloads):
            end = min(int(np.searchsorted(sizes, before + CHUNK - self._size)) + 1, len(payloads))
            self._rows += rows[begin:end]
            self._parts.append(payloads[begin:end])
            self._size += int(sizes[end - 1]) - before
            if self._size >= CHUNK:
                yield from self.flush()
            begin, before = end, int(sizes[end - 1])

    def flush(self) -> Iterator[Block]:
        """Decode what is gathered."""
        rows, parts = self._rows, self._parts
        self._rows, self._parts, self._size = [], [], 0
        while rows:
            payloads = Payloads.joined(parts)
            try:
                indptr, index, counts = decode_rows(payloads)
            except RowError as bad:
                self._damaged(rows[bad.row], str(bad))
                del rows[bad.row]
                parts = [payloads[: bad.row], payloads[bad.row + 1 :]]
                continue
            layouts = [layout.buckets for layout in payloads.layouts]
            yield from blocks_by_layout(np.array(rows, np.int64), indptr, index, counts, layouts)
            return


class HlogPart:
    """A log file's intervals.

    Parameters
    ----------
    source : Source
    intervals : Intervals
        Where each payload lies.
    damaged : callable
        (line, reason) → the error that names the file.
    """

    def __init__(self, source: Source, intervals: Intervals, damaged: Callable[[int, str], CorruptInputError]) -> None:
        self._source, self._damaged = source, damaged
        self._offset, self._size, self._line = intervals.offset, intervals.size, intervals.line
        self._kept: MemoryPart | None = None

    def keep(self, blocks: list[Block]) -> None:
        """Hold on to the blocks of a small log, as `narrow` left them."""
        self._kept = MemoryPart(blocks)

    def _raise(self, row: int, reason: str) -> None:
        raise self._damaged(self._line[row], reason)

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the blocks of the given rows."""
        if self._kept is not None:
            for block in self._kept.blocks(rows):
                yield Block(block.rows, block.indptr, block.index.astype(np.int64), block.counts.astype(np.int64), block.buckets)
            return
        builder = BlockBuilder(self._raise)
        with self._source.open() as stream:
            for begin in range(0, rows.size, TOGETHER):
                some = rows[begin : begin + TOGETHER].tolist()
                for mine, texts in self._texts(stream, some):
                    yield from builder.add(mine, self._opened(mine, texts))
        yield from builder.flush()

    def _opened(self, rows: list[int], texts: list[bytes]) -> Payloads:
        try:
            return open_payloads(texts)
        except RowError as bad:
            self._raise(rows[bad.row], str(bad))
            raise

    def _texts(self, stream: IO[bytes], rows: list[int]) -> Iterator[tuple[list[int], list[bytes]]]:
        """Yield rows and their base64 texts; neighbours are read together."""
        found: list[bytes] = []
        span, low, first = b"", 0, 0
        for k, row in enumerate(rows):
            at, size = self._offset[row], self._size[row]
            if not low <= at <= at + size <= low + len(span):
                if found:
                    yield rows[first:k], found
                    first, found = k, []
                stream.seek(at)
                span, low = stream.read(max(size, SPAN)), at
            found.append(span[at - low : at - low + size])
        if found:
            yield rows[first:], found


def narrow(block: Block) -> Block:
    """Return the block with indices and counts of 32 bits, where they fit: half the memory to keep."""
    if block.index.size and (int(block.index.max()) >= 1 << 31 or int(block.counts.max()) >= 1 << 31):
        return block
    return Block(block.rows, block.indptr, block.index.astype(np.int32), block.counts.astype(np.int32), block.buckets)
