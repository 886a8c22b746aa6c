"""Go's gob encoding: values of one struct type, read as columns.

A stream is a series of messages, each behind its length: definitions of types, then values. A
value names its fields by their distance from the field before, and leaves zeros out; so one field
after the other is read of all values at once. Source: the documentation of Go's encoding/gob.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from latencykit._typing import AnyArray, Bytes, Ints
from latencykit.core.run import Note
from latencykit.errors import InvalidArgumentError
from latencykit.io.source import Source
from latencykit.io.wire import follow

Fields = list[tuple[str, int]]  # name and type of each field of a struct

_CHUNK = 4 << 20
_LARGEST = 64 << 20  # bytes of a value
_LONGEST = 1024  # bytes that are kept of a text
_NUMBERS = {1: False, 2: True, 3: False}  # ids of bool, int and uint, and whether they are signed
_TEXTS = {5, 6}  # ids of bytes and string
_STRUCT, _ENCODED = 3, (5, 6, 7)  # fields of wireType; the latter are bytes to gob
_CORRUPT = "its records do not fit their types"


def columns_of_structs(
    source: Source, names: tuple[str, ...], notes: list[str]
) -> Iterator[dict[str, AnyArray]]:
    """Yield fields of all values chunk by chunk: int64, or texts (bytes) of at most a kilobyte."""
    # A value that is cut at the end is noted.
    structs: dict[int, Fields] = {}
    encoded: set[int] = set()
    data = b""
    with source.open() as stream:
        while piece := stream.read(_CHUNK):
            data += piece
            if len(data) > _LARGEST + _CHUNK:
                raise InvalidArgumentError(f"a value of the file has more than {_LARGEST:,} bytes")
            used = yield from _values(data, structs, encoded, names)
            data = data[used:]
    if data:
        notes.append(Note("the last result is truncated; it was left out"))


def _values(
    data: bytes, structs: dict[int, Fields], encoded: set[int], names: tuple[str, ...]
) -> Generator[dict[str, AnyArray], None, int]:
    """Yield the columns of complete messages, remember types they define; return where they end."""
    raw = np.frombuffer(data, np.uint8)
    at = 0
    while (message := _message(data, at)) is not None:
        start, end, number = message
        if number > 0:
            if number not in structs:
                raise InvalidArgumentError("a value is of a type that is not defined")
            starts, ends = _chain(data, raw, at, start)
            yield _fields(raw, starts, ends, structs[number], encoded, names)
            at = int(ends[-1])
            continue
        cursor = _Cursor(data, start, end)
        kind = cursor.number()
        if kind == _STRUCT:
            structs[-number] = _struct(cursor)
        elif kind in _ENCODED:
            encoded.add(-number)
        at = end
    return at


class _Cursor:
    """Reads numbers and texts one after the other."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self._data, self.at, self._end = data, at, end

    def number(self) -> int:
        """An unsigned number: one byte, or its size (negative) and its bytes."""
        first = int.from_bytes(self.bytes(1), "big")
        return first if first < 0x80 else int.from_bytes(self.bytes(256 - first), "big")

    def signed(self) -> int:
        """A signed number, its sign in the lowest bit."""
        number = self.number()
        return ~(number >> 1) if number & 1 else number >> 1

    def bytes(self, size: int) -> bytes:
        """Some bytes."""
        begin, self.at = self.at, self.at + size
        if self.at > self._end:
            raise InvalidArgumentError(_CORRUPT)
        return self._data[begin : self.at]


def _message(data: bytes, at: int) -> tuple[int, int, int] | None:
    """Begin and end of a value, and its type (negative: a definition); None if it is cut."""
    if at >= len(data) or at + 1 + (256 - data[at]) * (data[at] >= 0x80) > len(data):
        return None
    cursor = _Cursor(data, at, len(data))
    end = cursor.number() + cursor.at
    if end > len(data):
        return None
    cursor = _Cursor(data, cursor.at, end)
    number = cursor.signed()
    return cursor.at, end, number


def _struct(cursor: _Cursor) -> Fields:
    """The fields of a struct by its definition, which has its name and id, then they."""
    fields: Fields = []
    member = 0
    while step := cursor.number():
        member += step
        for _ in range(cursor.number() if member == 2 else 1):
            name, number, part = "", 0, 0
            while piece := cursor.number():
                part += piece
                if part == 1:
                    name = cursor.bytes(cursor.number()).decode("utf-8", "replace")
                else:
                    number = cursor.signed()
            fields += [(name, number)] * (member == 2)
    return fields


def _chain(data: bytes, raw: Bytes, at: int, start: int) -> tuple[Ints, Ints]:
    """Begins and ends of the successive values from a message on that are of its type."""
    size = int(data[at] >= 0x80) * (256 - data[at])
    mark = data[at + 1 + size : start]  # the type, as it is written
    places = np.flatnonzero(raw[: raw.size - len(mark) + 1] == mark[0])
    for k in range(1, len(mark)):
        places = places[raw[places + k] == mark[k]]
    # Before the type lies the length, in one byte or behind its size; what does not fit is not one.
    heads, begins, ends = [], [], []
    for width in range(5):
        begin = places[places > width]
        head = begin - 1 - width
        fits = raw[head] == 256 - width if width else raw[head] < 0x80
        begin, head = begin[fits], head[fits]
        length, _ = _numbers(raw, head)
        heads.append(head)
        begins.append(begin + len(mark))
        ends.append(begin + length)
    head, begin, end = (np.concatenate(side) for side in (heads, begins, ends))
    order = np.argsort(head, kind="stable")
    order = order[(end[order] <= raw.size) & (end[order] >= begin[order])]
    head, begin, end = head[order], begin[order], end[order]
    after = np.searchsorted(head, end)
    linked = head[np.minimum(after, head.size - 1)] == end
    rows = follow(np.where(linked, after, head.size), int(np.searchsorted(head, at)))
    return begin[rows], end[rows]


def _numbers(raw: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """Unsigned numbers at some places, as int64, and where they end."""
    first = raw[at].astype(np.int64)
    size = np.where(first < 0x80, 0, 256 - first)
    after = at + 1 + size
    if (size > 8).any() or (after > raw.size).any():
        raise InvalidArgumentError(_CORRUPT)
    value = np.where(size == 0, first, 0).astype(np.uint64)
    for k in range(1, int(size.max(initial=0)) + 1):
        byte = raw[np.minimum(at + k, raw.size - 1)].astype(np.uint64)
        value = np.where(size >= k, value << np.uint64(8) | byte, value)
    return value.astype(np.int64), after


def _fields(
    raw: Bytes, at: Ints, ends: Ints, fields: Fields, encoded: set[int], names: tuple[str, ...]
) -> dict[str, AnyArray]:
    """The columns of values that begin and end at some places."""
    columns: dict[str, AnyArray] = {}
    left = set(names) & {name for name, _ in fields}
    step, at = _numbers(raw, at)
    place = np.where(step == 0, len(fields), step - 1)  # of the field that comes next
    for number, (name, kind) in enumerate(fields):
        if not left:
            break
        rows = np.flatnonzero(place == number)
        value, after = _numbers(raw, at[rows])
        column: AnyArray = np.zeros(at.size, np.int64)
        if kind in _NUMBERS:
            half = (value.view(np.uint64) >> np.uint64(1)).astype(np.int64)
            column[rows] = half ^ -(value & 1) if _NUMBERS[kind] else value
        elif kind in _TEXTS or kind in encoded:
            if (value < 0).any() or (value > ends[rows] - after).any():
                raise InvalidArgumentError(_CORRUPT)
            if name in left:
                ends_at = after + np.minimum(value, _LONGEST)
                places = map(slice, after.tolist(), ends_at.tolist())
                column = np.full(at.size, b"", object)
                column[rows] = [*map(bytes, map(raw.data.__getitem__, places))]
            after = after + value
        else:
            raise InvalidArgumentError(f"its field {name} is of a type that is not read")
        if name in left:
            columns[name] = column
            left.remove(name)
        step, at[rows] = _numbers(raw, after)
        if (at[rows] > ends[rows]).any():
            raise InvalidArgumentError(_CORRUPT)
        place[rows] = np.where(step == 0, len(fields), number + step)
    return columns
