"""Binary records: messages of Protocol Buffers, and records of which each states its length.

A message is decoded by a schema (field number → name and kind) into the mapping that its JSON form
would give, so that both forms of a format share one reader. Unknown fields are skipped. Source:
protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latencykit._arrays import as_positions
from latencykit._typing import AnyArray
from latencykit.errors import InvalidArgumentError
from latencykit.units import format_count

Schema = dict[int, tuple[str, "str | Schema"]]
"""Fields of a message by number: name, with ``[]`` after it where repeated, and kind.

The kinds are ``int``, ``uint``, ``sint``, ``bool``, ``double``, ``fixed64``, ``text``, ``hex`` (of
bytes) and schemas.
"""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST = 20  # bytes of two numbers of variable length
_TYPE = {"double": np.float64, "int": np.int64, "sint": np.int64}
_WIRE = {"double": _FIXED64, "fixed64": _FIXED64, "text": _BYTES, "hex": _BYTES}


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return the number of variable length that begins at a position, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise InvalidArgumentError("the message ends within a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
    raise InvalidArgumentError("a number of the message has more than 64 bits")


def varints(data: memoryview) -> NDArray[np.uint64]:
    """Return the varints of a packed list."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 0x80)
    if raw.size and (not ends.size or ends[-1] != raw.size - 1):
        raise InvalidArgumentError("a list of numbers in the message is truncated")
    starts = np.append(0, ends[:-1] + 1)[: ends.size]
    place = np.arange(raw.size) - np.repeat(starts, as_positions(ends - starts + 1))
    if place.max(initial=0) > 9:
        raise InvalidArgumentError("a number of the message has more than 64 bits")
    if not raw.size:
        return np.zeros(0, np.uint64)
    bits = (raw & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.asarray(np.bitwise_or.reduceat(bits, as_positions(starts)))


def decode(data: memoryview, schema: Schema, *, head: bool = False) -> dict[str, Any]:
    """Return the known fields of a message; of a `head`, those before it is cut."""
    # Repeated numbers are arrays, packed or not.
    message: dict[str, Any] = {}
    for number, wire, value, cut in _fields(data, head):
        name, kind = schema.get(number, ("", ""))
        if not name:
            continue
        repeated, name = name.endswith("[]"), name.removesuffix("[]")
        expected = _WIRE.get(kind, _VARINT) if isinstance(kind, str) else _BYTES
        if wire != expected and not (repeated and wire == _BYTES):
            raise InvalidArgumentError(f"the field {name} of the message has another type")
        cell: object
        if not isinstance(kind, str):
            cell = decode(value, kind, head=cut)
        elif kind == "text":
            cell = bytes(value).decode("utf-8", "replace")
        elif kind == "hex":
            cell = bytes(value).hex()
        elif wire == _BYTES:
            if not cut:
                message.setdefault(name, []).append(_packed(value, kind))
            continue
        else:
            cell = _number(value, kind)
        if not repeated:
            message[name] = cell
        elif expected == _BYTES:
            message.setdefault(name, []).append(cell)
        else:
            message.setdefault(name, []).append(np.array([cell], _TYPE.get(str(kind), np.uint64)))
    for name, kind in schema.values():
        plain = name.removesuffix("[]")
        if plain != name and isinstance(kind, str) and kind != "text" and plain in message:
            message[plain] = np.concatenate(message[plain])
    return message


def delimited(data: memoryview, *, head: bool = False, fixed: bool = False) -> Iterator[memoryview]:
    """Yield messages, each after its length, in four bytes if `fixed`; that of a `head` is cut."""
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big"), at + 4
        size, begin = length if fixed else varint(data, at)
        at = begin + size
        if at > len(data) and not head:
            raise _cut(size, max(len(data) - begin, 0))
        yield data[begin:at]


def messages(data: memoryview, schema: Schema, *, head: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the messages of a file: a single one, or several, each after its length."""
    # OpenTelemetry's collector writes lengths of four bytes, other tools varints. The schema has
    # one field, number 1, which is repeated.
    begin = bytes(data[:2])
    if begin[:1] == b"\n":
        try:
            message = decode(data, schema, head=head)
        except InvalidArgumentError:
            if begin != b"\n\n":  # a length of 10
                raise
        else:
            yield message
            return
    for part in delimited(data, head=head, fixed=begin[:1] == b"\0"):
        yield decode(part, schema, head=head)


def first(data: bytes, schema: Schema, *path: str) -> dict[str, Any]:
    """Return the first message at a path through the lists of a file's head, or nothing."""
    try:
        found = list(islice(messages(memoryview(data), schema, head=True), 1))
    except InvalidArgumentError:
        return {}
    for name in path:
        found = [inner for message in found for inner in message.get(name) or ()]
    return found[0] if found else {}


def follow(successor: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Return the chain `first`, ``successor[first]`` … until one is ``successor.size``."""
    # By pointer jumping: each pass doubles both the chain and the length of a jump.
    end = successor.size
    jump = np.append(successor, end)
    chain = np.array([first], np.int64)
    while chain[-1] != end:
        chain = np.concatenate((chain, jump[chain]))
        jump = jump[jump]
    return chain[: np.searchsorted(chain, end)]


def _fields(data: memoryview, head: bool) -> Iterator[tuple[int, int, Any, bool]]:
    """Number, wire type and undecoded value of each field, and whether that is cut."""
    at = 0
    while at < len(data):
        begin = at
        try:
            number, wire, value, at = _key(data, at)
        except InvalidArgumentError:
            if head and len(data) - begin < _LONGEST:
                return
            raise
        size = value if wire == _BYTES else {_VARINT: 0, _FIXED64: 8, _FIXED32: 4}[wire]
        cut = at + size > len(data)
        if cut and not head:
            raise _cut(size, len(data) - at)
        if cut and wire != _BYTES:
            return
        yield number, wire, value if wire == _VARINT else data[at : at + size], cut
        at += size


def _key(data: memoryview, at: int) -> tuple[int, int, int, int]:
    """Number and wire type of a field, its number or length of varying size, and where it ends."""
    key, at = varint(data, at)
    number, wire, value = key >> 3, key & 7, 0
    if not number or wire not in (_VARINT, _FIXED64, _BYTES, _FIXED32):
        raise InvalidArgumentError("a field of the message has no valid number and type")
    if wire in (_VARINT, _BYTES):
        value, at = varint(data, at)
    return number, wire, value, at


def _cut(size: int, left: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the message is truncated: {format_count(size)} bytes are announced where "
        f"{format_count(left)} are left"
    )


def _number(value: Any, kind: str) -> float | bool:
    """One number of a kind, from a varint or from eight bytes."""
    if kind in ("double", "fixed64"):
        number: float = struct.unpack("<d" if kind == "double" else "<Q", value)[0]
        return number
    if kind == "sint":
        return int((value >> 1) ^ -(value & 1))
    if kind == "int" and value >> 63:
        return int(value) - (1 << 64)
    return bool(value) if kind == "bool" else int(value)


def _packed(data: memoryview, kind: str) -> AnyArray:
    """The numbers of a packed field."""
    if kind in ("double", "fixed64"):
        if len(data) % 8:
            raise InvalidArgumentError("a list of numbers in the message is truncated")
        return np.frombuffer(data, "<f8" if kind == "double" else "<u8")
    value = varints(data)
    if kind == "sint":
        return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)
    return value.astype(np.int64) if kind == "int" else value
