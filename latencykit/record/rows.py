"""Where measurements are put: preallocated chunks, one a thread, so that no thread waits for another."""

from __future__ import annotations

import struct
import threading
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["RowBuffer"]

_ROW = struct.Struct("=5q")
_ROWS = 1 << 10
_FULL = 16  # full chunks that are worth counting


class _Chunk:
    """Rows of one thread: written by it alone, taken by whoever counts."""

    __slots__ = ("at", "owner", "rows", "taken")

    def __init__(self) -> None:
        self.rows, self.at, self.taken = bytearray(_ROW.size * _ROWS), 0, 0
        self.owner = threading.current_thread()

    @property
    def over(self) -> bool:
        """Whether all was taken and nothing more will come."""
        return self.taken == self.at and (self.at == len(self.rows) or not self.owner.is_alive())


class RowBuffer:
    """Takes rows of five integers: start, end, due, outcome, tag.

    A row is written first and `at` moved over it afterwards, so that taking needs no lock against putting.

    Parameters
    ----------
    on_full : callable
        Called now and then, when 16,384 rows or so have come together.

    Examples
    --------
    >>> rows = RowBuffer(lambda: None)
    >>> rows.put(1, 2, -1, 0, 0)
    >>> [part.tolist() for part in rows.take()], len(rows)
    ([[[1, 2, -1, 0, 0]]], 0)
    """

    def __init__(self, on_full: Callable[[], object]) -> None:
        self._on_full, self._lock, self._local = on_full, threading.Lock(), threading.local()
        self._chunks: list[_Chunk] = []

    def __len__(self) -> int:
        return sum(chunk.at - chunk.taken for chunk in list(self._chunks)) // _ROW.size

    def put(self, start: int, end: int, due: int, outcome: int, tag: int) -> None:
        """Append a row."""
        try:
            chunk = self._local.chunk
        except AttributeError:
            chunk = self._next()
        _ROW.pack_into(chunk.rows, chunk.at, start, end, due, outcome, tag)
        chunk.at += _ROW.size
        if chunk.at == len(chunk.rows):
            self._next()
            if len(self._chunks) > _FULL:
                self._on_full()

    def _next(self) -> _Chunk:
        chunk = self._local.chunk = _Chunk()
        with self._lock:
            self._chunks.append(chunk)
        return chunk

    def take(self) -> list[NDArray[np.int64]]:
        """Return all rows put since the last time, as arrays of shape (n, 5)."""
        parts = []
        with self._lock:
            for chunk in self._chunks:
                at = chunk.at
                parts.append(np.frombuffer(bytes(chunk.rows[chunk.taken : at]), np.int64).reshape(-1, 5))
                chunk.taken = at
            self._chunks = [chunk for chunk in self._chunks if not chunk.over]
        return [part for part in parts if len(part)]
