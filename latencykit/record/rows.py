"""Where measurements are put: rows of five integers (start, end, due, outcome, tag) in chunks.

``_rows.c`` is the same in C, used where the installation could compile it: 20 times as fast. What
is here defines it.
"""

from __future__ import annotations

import struct
import sys
import threading
from typing import TYPE_CHECKING, Self

from latencykit.core import kernel

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

COLUMNS = 5
NO_DUE = -1
_ROW = struct.Struct(f"={COLUMNS}q")
_ROWS = 1 << 10
_FULL = 8  # full chunks that are worth counting


class _Chunk:
    """Rows of one thread: written by it alone, taken by anyone who counts."""

    __slots__ = ("at", "owner", "rows", "taken")

    def __init__(self) -> None:
        self.rows, self.at, self.taken = bytearray(_ROW.size * _ROWS), 0, 0
        self.owner = threading.current_thread()


class RowBuffer:
    """Takes rows; `at` moves on once a row is written, so taking needs no lock against putting."""

    def _setup(
        self,
        clock: Callable[[], int],
        outcome_of: Callable[[type[BaseException] | None], int],
        _timer: type[Timer],
    ) -> None:
        """Begin, with a clock (ns) and the outcome of a block by its exception's type."""
        self._clock, self._outcome_of = clock, outcome_of
        self._lock, self._local = threading.Lock(), threading.local()
        self._chunks: list[_Chunk] = []

    def _on_full(self) -> None:
        """Take what is waiting; called where much has come."""

    def _waiting(self) -> int:
        return sum(chunk.at - chunk.taken for chunk in list(self._chunks)) // _ROW.size

    def _accept(self, tag: int) -> None:
        """Take plain service times in C, under this tag; below 0 leave all of them to Python."""

    def _put(self, start: int, end: int, due: int, outcome: int, tag: int) -> None:
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

    def _take(self) -> list[bytes]:
        """Return the bytes of all rows put since the last time."""
        parts, waiting = [], []
        with self._lock:
            for chunk in self._chunks:
                at = chunk.at
                parts.append(bytes(chunk.rows[chunk.taken : at]))
                chunk.taken = at
                if (at < len(chunk.rows) and chunk.owner.is_alive()) or at < chunk.at:
                    waiting.append(chunk)
            self._chunks = waiting
        return parts


class Timer:
    """Puts a row when a block ends; `due` is when it was meant to start."""

    __slots__ = ("_due", "_rows", "_start", "_tag")

    def __init__(self, rows: RowBuffer, due: int, tag: int) -> None:
        self._rows, self._due, self._tag = rows, due, tag

    @property
    def due(self) -> int | None:
        """When the block was due, by ``perf_counter_ns``; None without a schedule."""
        return None if self._due == NO_DUE else self._due

    def again(self) -> Self:
        """Return another one under the same tag, without a schedule."""
        return type(self)(self._rows, NO_DUE, self._tag)

    def __enter__(self) -> Self:
        self._start = self._rows._clock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        rows = self._rows
        end, outcome = rows._clock(), 0 if kind is None else rows._outcome_of(kind)
        rows._put(self._start, end, self._due, outcome, self._tag)


COMPILED = False
if not TYPE_CHECKING and kernel.in_use() == "C" and "t" not in getattr(sys, "abiflags", ""):
    try:
        from latencykit.record import _rows
    except ImportError:
        pass
    else:
        if _rows.VERSION == 1:
            COMPILED, RowBuffer, Timer = True, _rows.RowBuffer, _rows.Timer
