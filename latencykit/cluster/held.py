"""Logs that are asked more than once, and logs that travel between processes of one machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.blocks import Block, MemoryPart
from latencykit.log import HistogramLog, LogPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

__all__ = ["HELD", "held", "light"]

HELD = 256 << 20
"""Bytes that all logs of a command may take in memory together."""
_LONG = 5_000  # intervals: longer logs are read once, and asked less
_KEPT = 12 << 20  # bytes, at 8 an entry, that a log keeps by itself


class _Narrow:
    """Intervals in memory, their integers as short as they can be: some 3 bytes an entry."""

    def __init__(self, blocks: list[Block]) -> None:
        self._part = MemoryPart(blocks)

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the blocks of the given rows."""
        for block in self._part.blocks(rows):
            yield replace(block, index=block.index.astype(np.int64), counts=block.counts.astype(np.int64))


class _Again:
    """Intervals that are read anew, in the process that asks for them."""

    def __init__(self, read: Callable[[], HistogramLog]) -> None:
        self._read = read
        self._part: LogPart | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_read": self._read, "_part": None}

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the blocks of the given rows."""
        if self._part is None:
            self._part = LogPart(self._read())
        yield from self._part.blocks(rows)


def held(rung: Any, most: float, least: float = _KEPT) -> Any:
    """Return a log with its intervals in memory, so that several questions decode it once; as it is where it is too large.

    Parameters
    ----------
    rung : rung
        Whatever is no log, and a small log, which keeps its intervals anyway, is returned as it is.
    most : float
        Bytes that it may take.
    least : float
        Bytes up to which a log keeps its intervals anyway.

    Examples
    --------
    >>> from latencykit.formats.reading import read
    >>> log = read("data/ctrlz-uncorrected.hlog")
    >>> held(log, 1e6) is log
    True
    """
    if not isinstance(rung, HistogramLog) or not 0 < len(rung) <= _LONG:
        return rung
    blocks: list[Block] = []
    rows = size = entries = 0
    for block in rung.blocks():
        rows, entries = rows + block.rows.size, entries + block.index.size
        blocks.append(replace(block, index=_least(block.index), counts=_least(block.counts)))
        size += blocks[-1].nbytes
        share = rows / len(rung)
        if size > most * share or (len(blocks) == 1 and 8 * entries < least * share):
            return rung  # for this is what it will take in the end
    return rung.seen_through(lambda _: _Narrow(blocks))


def light(rung: Any, most: float, read: Callable[[], HistogramLog]) -> Any:
    """Return a rung that can travel to another process: a log with its sum, and its intervals or where to read them again.

    Parameters
    ----------
    rung : rung
    most : float
        Bytes that the intervals of a log may take on the way.
    read : callable
        Reads the same log again; a function of a module, or a `functools.partial` of one.
    """
    if not isinstance(rung, HistogramLog):
        return rung
    kept = held(rung, most, least=0)
    told = kept if kept is not rung else rung.seen_through(lambda _: _Again(read))
    return told.rows(np.arange(len(told)), whole=kept.histogram())


def _least(values: Ints) -> NDArray[Any]:
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))
