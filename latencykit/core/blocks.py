"""A stream of CSR blocks, and the folds that ask several questions of it in one pass.

A day of one-second intervals of a busy server is 4 GB as one sparse matrix, so nobody builds it:
intervals are decoded a block at a time, every fold sees each block once, and memory does not grow
with the length of a log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from latencykit._arrays import as_positions
from latencykit._records import record
from latencykit._typing import AnyArray, Floats, Ints
from latencykit.core.buckets import Buckets, CellBuckets, Counts, HdrBuckets, add_up
from latencykit.core.quantiles import nonzero, row_quantile_positions, running_sums
from latencykit.errors import InputTooLargeError

_DENSE = 32 << 20  # bytes of totals of several layouts; further layouts are kept entry by entry
_ASIDE = 1 << 22  # entries of further layouts that wait to be added up
_MOST_CELLS = 8  # cells of a table per entry that are sooner added up there than sorted
_TAGS = 1 << 14  # tags that are read together
_FIRST_TAGS = 1 << 8  # at first: a table shows no more than some
_TAG_BYTES = 32 << 20  # bytes of payloads of tags that are read together
_TOO_MUCH = "the counts add up to 2^63 or more; take a slice of the log"


@record(eq=False)
class Block:
    """Some intervals of a log, decoded."""

    rows: Ints  # (r,): which interval each row is
    indptr: Ints  # (r + 1,): row i holds index[indptr[i]:indptr[i + 1]]
    index: Ints  # (nonzero,): bucket indices, ascending within a row
    counts: Ints  # (nonzero,)
    buckets: Buckets  # the layout that all rows share

    @property
    def sums(self) -> Ints | None:
        """Sums of all rows, bucket by bucket, where they take less than the entries."""
        return None

    def moved(self, rows: Ints, buckets: Buckets) -> Block:
        """Return the block with other numbers of its rows, in a layout of another scale."""
        return replace(self, rows=rows, buckets=buckets)

    @property
    def entry_rows(self) -> Ints:
        """Position (0..r-1) of the row that each entry belongs to, int64, shape (nonzero,)."""
        return np.repeat(np.arange(self.rows.size), as_positions(np.diff(self.indptr)))

    @cached_property
    def width(self) -> int:
        """One more than the highest index, 0 for an empty block; each row ascends."""
        if not self.index.size:
            return 0
        return int(self.index[self.indptr[1:][np.diff(self.indptr) > 0] - 1].max()) + 1

    def take(self, positions: Ints) -> Block:
        """Return the block of some of its rows."""
        lengths = np.diff(self.indptr)[positions]
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        entries = np.arange(indptr[-1]) - np.repeat(
            indptr[:-1] - self.indptr[positions], as_positions(lengths)
        )
        return Block(
            self.rows[positions], indptr, self.index[entries], self.counts[entries], self.buckets
        )

    def part(self, begin: int, end: int) -> Block:
        """Return the block of neighbouring rows."""
        indptr = self.indptr[begin : end + 1]
        some = slice(int(indptr[0]), int(indptr[-1]))
        rows, index, counts = self.rows[begin:end], self.index[some], self.counts[some]
        return Block(rows, indptr - indptr[0], index, counts, self.buckets)

    def joined(self, others: Sequence[Block]) -> Block:
        """Return the rows of this block and of others of its layout as one block."""
        blocks = [self, *others]
        lengths = np.concatenate([np.diff(block.indptr) for block in blocks])
        rows, index, counts = (
            np.concatenate([getattr(block, name) for block in blocks])
            for name in ("rows", "index", "counts")
        )
        return Block(rows, np.append(0, np.cumsum(lengths)), index, counts, self.buckets)

    def kept(self) -> Block:
        """Return what takes the least memory to give this block again."""
        return self.narrow()

    def narrow(self) -> Block:
        """Return the block with its integers as narrow as they can be; a fold needs `widened`."""
        index, counts = self.index.astype(np.min_scalar_type(self.width)), narrowed(self.counts)
        return Block(self.rows, self.indptr, index, counts, self.buckets)

    def widened(self) -> Block:
        """Return what `narrow` made narrow as it was."""
        index, counts = (x.astype(np.int64, copy=False) for x in (self.index, self.counts))
        return replace(self, index=index, counts=counts)

    def folded(self, percentiles: Sequence[float] = ()) -> tuple[Ints, Ints]:
        """Return sums of the rows, and the indices of their lowest, highest and percentiles."""
        # Of shape (rows,) and (rows, 2 + percentiles), -1 in empty rows.
        running = running_sums(self.counts)
        sums = np.diff(running[self.indptr])
        index = np.full((sums.size, 2 + len(percentiles)), -1)
        filled = np.flatnonzero(sums)
        entries = row_quantile_positions(self.indptr, self.counts, percentiles, running)[filled]
        index[filled, 0] = self.index[self.indptr[filled]]
        index[filled, 1] = self.index[self.indptr[filled + 1] - 1]
        index[filled, 2:] = self.index[entries]
        return sums, index

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take, in bytes."""
        return self.rows.nbytes + self.indptr.nbytes + self.index.nbytes + self.counts.nbytes


def narrowed(values: Ints) -> AnyArray:
    """Return the integers as narrow as they can be."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


class Part(Protocol):
    """Where the intervals of a log come from: a file, memory, or another log seen differently."""

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the given rows (ascending), each once, in any grouping, empty ones or not."""


class MemoryPart:
    """Intervals held as blocks in memory; integers may be narrow there, or still encoded."""

    in_memory = True

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = tuple(block for block in blocks if block.rows.size)
        self._first = np.array([block.rows.min() for block in self._blocks], np.int64)
        self._last = np.array([block.rows.max() for block in self._blocks], np.int64)

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the blocks of the given rows."""
        if not rows.size:
            return
        low, high = int(rows[0]), int(rows[-1])
        wanted = np.zeros(high - low + 1, np.bool_)
        wanted[rows - low] = True
        for at in np.flatnonzero((self._last >= low) & (self._first <= high)).tolist():
            kept = self._blocks[at]
            inside = (kept.rows >= low) & (kept.rows <= high)
            chosen = np.flatnonzero(inside & wanted.take(kept.rows - low, mode="clip"))
            if chosen.size:
                block = kept.widened()
                yield block if chosen.size == block.rows.size else block.take(chosen)


class TagPart:
    """A part whose rows are asked for tag by tag: many tags are read together, and held."""

    # The rows of one of thousands of tags lie far apart, so that reading each tag by itself would
    # open every payload by itself.

    in_memory = True

    def __init__(self, part: Part, tag_code: Ints) -> None:
        self._part, self._code = part, tag_code
        self._tags, self._most = _FIRST_TAGS, _TAGS
        self._first = self._end = 0
        self._held: list[tuple[Ints, Block]] = []

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_first": 0, "_end": 0, "_held": []}

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the blocks of the given rows, one per layout where they are of one tag."""
        tag = int(self._code[rows[0]]) if rows.size else 0
        if not rows.size or (self._code[rows] != tag).any():
            yield from self._part.blocks(rows)
            return
        if not self._first <= tag < self._end:
            self._hold(tag)
        if self._end <= tag:
            yield from self._part.blocks(rows)
        for codes, block in self._held:
            begin, end = np.searchsorted(codes, [tag, tag + 1]).tolist()
            if begin == end:
                continue
            own = block.part(begin, end)
            if not np.array_equal(own.rows, rows):
                own = own.take(np.flatnonzero(np.isin(own.rows, rows, assume_unique=True)))
            if own.rows.size:
                yield own.widened()

    def _hold(self, tag: int) -> None:
        """Hold the rows of a tag and of as many after it as memory allows; none if it is large."""
        self._first = self._end = tag
        self._held = []
        while self._tags:
            wanted = np.flatnonzero((self._code >= tag) & (self._code < tag + self._tags))
            of_layout: dict[Buckets, list[Block]] = {}
            size = 0
            for block in self._part.blocks(wanted):
                of_layout.setdefault(block.buckets, []).append(block.narrow())
                size += of_layout[block.buckets][-1].nbytes
                if size > _TAG_BYTES:
                    break
            else:
                for first, *others in of_layout.values():
                    whole = first.joined(others)
                    order = np.lexsort((whole.rows, self._code[whole.rows]))
                    whole = whole.take(order)
                    self._held.append((self._code[whole.rows], whole))
                self._end = tag + self._tags
                self._tags = self._most
                return
            self._tags //= 2
            self._most = self._tags
        self._tags = 1


def block_of_rows(row_of_value: Ints, index: Ints, rows: int, buckets: Buckets) -> Block:
    """Count values (their interval and bucket index) into one block of `rows` intervals."""
    width = int(index.max(initial=0)) + 1
    keys, counts = np.unique(row_of_value * np.int64(width) + index, return_counts=True)
    indptr = np.searchsorted(keys, np.arange(rows + 1, dtype=np.int64) * width)
    return Block(
        np.arange(rows), indptr.astype(np.int64), keys % width, counts.astype(np.int64), buckets
    )


def entry_sums(row: Ints, index: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Add the counts of equal row and bucket up; the result ascends by row, then bucket."""
    low = int(index.min(initial=0))  # sketches have buckets below 0
    width = int(index.max(initial=0)) - low + 1
    keys = row * width + (index - low)
    if not keys.size:
        return keys, keys, np.zeros(0, np.int64)
    large = float(counts.sum(dtype=np.float64)) >= 2.0**62
    begin = int(keys.min())
    cells = int(keys.max()) - begin + 1
    if cells <= _MOST_CELLS * keys.size and not large:
        dense = np.zeros(cells, np.int64)
        np.add.at(dense, keys - begin, counts)
        at = nonzero(dense)
        keys, sums = at + begin, dense[at]
    else:
        if (keys[1:] < keys[:-1]).any():
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
        if large:  # is it in one row?
            begins = nonzero(np.diff(keys // width, prepend=-1))
            if max(np.add.reduceat(counts.astype(object), as_positions(begins))) >= 1 << 63:
                raise InputTooLargeError(_TOO_MUCH)
        first = nonzero(np.diff(keys, prepend=-1))
        keys, sums = keys[first], np.add.reduceat(counts, as_positions(first))
    return keys // width, keys % width + low, sums


class Fold(Protocol):
    """A question that is answered by seeing each block of a log once, in any order."""

    def add(self, block: Block) -> None:
        """Take a block in."""


class TotalsFold:
    """Sum of all counts, layout by layout."""

    def __init__(self) -> None:
        self._dense: dict[Buckets, Ints] = {}
        self._sparse: dict[Buckets, list[tuple[Ints, Ints]]] = {}  # indices, counts
        self._dense_bytes = self._waiting = self._sum = 0

    def add(self, block: Block) -> None:
        """Add the block's counts."""
        buckets, sums = block.buckets, block.sums
        counts = block.counts if sums is None else sums
        large = int(counts.max(initial=0)) * counts.size >= 1 << 62
        self._sum += sum(counts.tolist()) if large else int(counts.sum())
        if self._sum >= 1 << 63:
            raise InputTooLargeError(_TOO_MUCH)
        held = self._dense.get(buckets)
        needed = int(block.index.max(initial=-1)) + 1 if sums is None else sums.size
        if held is None or needed > held.size:
            narrow = np.zeros(0, np.int64) if held is None else held
            wider = np.zeros(needed + 1024, np.int64)
            if held is not None or not self._dense or self._dense_bytes + wider.nbytes <= _DENSE:
                wider[: narrow.size] = narrow
                self._dense_bytes += wider.nbytes - narrow.nbytes
                self._dense[buckets] = held = wider
        if held is not None:
            if sums is None:
                np.add.at(held, block.index, counts)
            else:
                held[:needed] += sums
            return
        # Entries of a rare layout are kept as they are, up to a bound; then they are added up.
        index = block.index if sums is None else nonzero(sums)
        counts = counts if sums is None else sums[index]
        self._sparse.setdefault(buckets, []).append((index, counts))
        self._waiting += index.size
        if self._waiting > _ASIDE:
            aside = self._aside()
            self._sparse = {buckets: [(index, counts)] for buckets, index, counts in aside}
            self._waiting = min(sum(index.size for _, index, _ in aside), _ASIDE // 2)

    def _aside(self) -> list[Counts]:
        """The sums of rare layouts, in one layout where a common one fits."""
        sums: list[Counts] = []
        common: list[Counts] = []
        for buckets, parts in self._sparse.items():
            index, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
            chosen = common if isinstance(buckets, HdrBuckets | CellBuckets) else sums
            chosen.append((buckets, *entry_sums(np.zeros(index.size, np.int64), index, counts)[1:]))
        return [*sums, add_up(common)] if common else sums

    def sums(self) -> list[Counts]:
        """Return layout, index and counts for every layout with counts."""
        dense = [(buckets, nonzero(held), held) for buckets, held in self._dense.items()]
        return [
            *((buckets, index, held[index]) for buckets, index, held in dense if index.size),
            *self._aside(),
        ]


class SeriesFold:
    """Count, extremes and percentiles of every interval, as bucket indices."""

    def __init__(self, intervals: int, percentiles: Sequence[float] = ()) -> None:
        self.percentiles = tuple(float(p) for p in percentiles)
        self.count = np.zeros(intervals, np.int64)
        # Indices of the lowest and the highest bucket and those of the percentiles.
        self._index = np.zeros((intervals, 2 + len(self.percentiles)), np.int32)
        self._layout = np.full(intervals, -1, np.int32)
        self._layouts: dict[Buckets, int] = {}

    def add(self, block: Block) -> None:
        """Take a block in: a few array operations, whatever its number of rows."""
        rows, buckets = block.rows, block.buckets
        sums, index = block.folded(self.percentiles)
        if self._index.dtype == np.int32 and int(index.max(initial=0)) >= 1 << 31:
            self._index = self._index.astype(np.int64)
        self.count[rows], self._index[rows] = sums, index
        self._layout[rows] = np.where(
            sums > 0, self._layouts.setdefault(buckets, len(self._layouts)), -1
        )

    def edges(self) -> tuple[Floats, Floats, Floats, Floats, NDArray[np.bool_]]:
        """Return minima, maxima, percentiles, and lower edges of the latter two; NaN if empty."""
        # The last array is True where the latter two lie in an open-ended bucket.
        values = np.full(self._index.shape, np.nan)
        lows = np.full((len(values), values.shape[1] - 1), np.nan)
        beyond = np.zeros(lows.shape, np.bool_)
        lowest = [0, *(2 + k for k, p in enumerate(self.percentiles) if p == 0)]
        for buckets, number in self._layouts.items():
            mine = np.flatnonzero(self._layout == number)
            index = self._index[mine].astype(np.int64)
            width = int(index.max(initial=0)) + 1
            if width < index.size:  # the edges of all buckets are fewer
                every = np.arange(width)
                low, edges = buckets.low(every)[index], buckets.high(every)[index]
            else:
                low, edges = buckets.low(index), buckets.high(index)
            lows[mine] = low[:, 1:]
            beyond[mine] = np.isnan(buckets.upper_edge(index[:, 1:]))
            edges[:, lowest] = low[:, :1]
            values[mine] = edges
        return values[:, 0], values[:, 1], values[:, 2:], lows, beyond
