"""Many payloads → one block of sparse rows, in a fixed number of array operations.

A V2 payload is a list of varints: a positive one is the count of the next bucket, 0 is one empty bucket, and −n are n
of them. Nearly all varints of an ordinary log have one byte, so there `_short` treats bytes as numbers and mends the
few places where it takes several; where many have several, `_long` gathers the numbers first. Both take all rows at
once. V0 and V1 payloads are plain words.

Nothing is believed: what could not be a histogram of the header's size is refused, before it is added to anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from latencykit.codec.limits import PayloadError, RowError, in_force
from latencykit.codec.many import Payloads
from latencykit.errors import LimitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.codec.limits import Limits
    from latencykit.codec.payload import Payload

    Ints = NDArray[np.int64]
    Bytes = NDArray[np.uint8]
    Bools = NDArray[np.bool_]
    Narrow = NDArray[Any]  # integers of 32 bits where they fit, else of 64

__all__ = ["decode_rows"]

_MANY = 12  # where more than one byte in so many continues a number, `_long` is faster
_MOST_MORE = 8  # bytes that can follow the first of a varint

# What each byte means where it is a whole varint: how many buckets it stands for, and whether it is a count above 0.
_STEPS = bytes([(b + 1) // 2 if b & 1 else 1 for b in range(128)] + [0] * 128)
_COUNT = bytes([b > 0 and b % 2 == 0 for b in range(128)] + [0] * 128)

_CUT_OFF = "the counts end inside a number"

# `take` is told to clip where all places are known to lie within: looking for others takes as long as the taking.


# The C library gives the pages of a large array back at every free, and faulting them in again costs more than the
# arithmetic here does. A block that was freed once (this one is never touched) makes it keep smaller ones.
np.empty(8 << 20, np.uint8)


class _Rows(NamedTuple):
    """The bytes of all rows, where each row ends, and how many buckets each may have (one number if all alike)."""

    data: bytes
    ends: Ints
    slots: Ints


def decode_rows(payloads: Sequence[Payload], limits: Limits | None = None) -> tuple[Ints, Ints, Ints]:
    """Decode payloads of one layout into a block of sparse rows.

    Parameters
    ----------
    payloads : sequence of Payload
        Of equal `buckets` and `word`; some hundred KiB of bodies at a time keep the temporaries in the cache.
    limits : Limits, optional
        ``limits.block`` bounds the bodies of one call.

    Returns
    -------
    indptr : ndarray of int64, shape (rows + 1,)
        Row i holds ``index[indptr[i]:indptr[i + 1]]``.
    index : ndarray of int64, shape (nonzero,)
        Bucket indices, ascending within a row.
    counts : ndarray of int64, shape (nonzero,)
        Their counts, > 0; a row's sum fits in an int64.

    Raises
    ------
    RowError
        Naming the first damaged payload and what is wrong with it.
    UsageError, LimitError
        For payloads that do not go together, and for too many of them.

    Examples
    --------
    >>> from latencykit.codec import open_payload
    >>> payload = open_payload(b"HISTFAAAACZ42pNpmSzMwMDAygABzFCaEYh5f7hHMNh/gAhw7TzGyAQAZ58Frw==")
    >>> decode_rows([payload, payload])
    (array([0, 2, 4]), array([    0, 12702,     0, 12702]), array([5, 1, 5, 1]))
    """
    held = Payloads.of(payloads)
    most = (limits or in_force()).block
    try:
        return _decode(held, most)
    except PayloadError:
        row = _first_bad(held, most)
    try:
        _decode(held[row : row + 1], most)
    except PayloadError as error:
        raise RowError(row, str(error)) from None
    raise AssertionError("a row was refused among others, but not alone")  # pragma: no cover


def _first_bad(payloads: Payloads, most: int) -> int:
    """Return the first row that cannot be decoded; half of what is left is decoded at each step, so at most all once."""
    good, bad = 0, len(payloads)  # the rows before `good` are fine, and one of those before `bad` is not
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _decode(payloads[good:middle], most)
        except PayloadError:
            bad = middle
        else:
            good = middle
    return good


def _decode(payloads: Payloads, most: int) -> tuple[Ints, Ints, Ints]:
    """Decode rows; the error says what is wrong with one of them, but not which."""
    ends = np.cumsum(payloads.sizes)
    if not ends.size or not ends[-1]:
        return np.zeros(ends.size + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    if ends[-1] > most:
        raise LimitError(f"payloads of more than {most:,} bytes were to be decoded at once; pass fewer")
    first, kinds = payloads.layouts[0], set(payloads.layouts)
    if not all(first.joins(kind) for kind in kinds):
        raise UsageError("only payloads of one layout can be decoded together")
    slots = np.array(first.slots)
    if len(kinds) > 1:
        slots = np.fromiter((layout.slots for layout in payloads.layouts), np.int64, ends.size)
    rows = _Rows(b"".join(payloads.bodies), ends, slots)
    return _words(rows, first.word) if first.word else _varints(rows)


def _varints(rows: _Rows) -> tuple[Ints, Ints, Ints]:
    """V2: choose the faster way."""
    data = np.frombuffer(rows.data, np.uint8)
    more = (data > 127).nonzero()[0]
    most = int(rows.slots.max())
    if data.size - more.size > most * rows.ends.size:  # before anything is made of it
        raise PayloadError(f"the counts fill more buckets than the {most} that the header allows")
    if more.size * _MANY > data.size or _has_run(more):
        return _long(rows, data, more)
    return _short(rows, data, more)


def _has_run(more: Ints) -> bool:
    """Whether some varint may have nine bytes, of which the last needs none after it however large it is."""
    return more.size >= _MOST_MORE and bool((more[_MOST_MORE - 1 :] - more[: 1 - _MOST_MORE] == _MOST_MORE - 1).any())


def _short(rows: _Rows, data: Bytes, more: Ints) -> tuple[Ints, Ints, Ints]:
    """V2 where nearly every varint is one byte: count in bytes, and mend the others at their last byte."""
    steps: Narrow = np.frombuffer(rows.data.translate(_STEPS), np.uint8)
    is_count = np.frombuffer(bytearray(rows.data.translate(_COUNT)), np.bool_)
    if not more.size:
        indptr, index, at = _place(steps.astype(np.int32), rows.ends, is_count, rows.slots)
        return indptr, index, (data.take(at, mode="clip") >> 1).astype(np.int64)
    if (data[rows.ends - 1] > 127).any():  # an empty row looks at the end of another
        raise PayloadError(_CUT_OFF)
    final = (more[1:] - more[:-1] != 1).nonzero()[0]  # of each run but the last one
    runs = np.concatenate((final + 1, [more.size]))
    last, lengths = more[runs - 1] + 1, _lengths(runs)
    large_steps, large, is_large = _zigzag(_gather(data, last, lengths), rows.slots)
    steps = steps.astype(np.int32 if large_steps.sum() + 64 * data.size < 1 << 31 else np.int64)
    steps[last], is_count[last] = large_steps, is_large
    last, large = last[is_large], large[is_large]
    indptr, index, at = _place(steps, rows.ends, is_count, rows.slots)
    counts = (data.take(at, mode="clip") >> 1).astype(np.int64)
    counts[np.searchsorted(at, last)] = large
    _check_sums(indptr, counts, int(large.max(initial=63)))
    return indptr, index, counts


def _long(rows: _Rows, data: Bytes, more: Ints) -> tuple[Ints, Ints, Ints]:
    """V2 of any kind: find where each varint ends, gather the numbers, and count in numbers."""
    last = (data < 128).nonzero()[0]
    if _has_run(more):
        last = np.union1d(last, _ninth_bytes(more, rows.ends))
    ends = np.searchsorted(last, rows.ends)  # in varints
    if not last.size or (last[ends - 1] != rows.ends - 1)[_lengths(rows.ends) > 0].any():
        raise PayloadError(_CUT_OFF)
    steps, numbers, is_count = _zigzag(_gather(data, last, _lengths(last + 1) - 1), rows.slots)
    if steps.sum() < 1 << 31:
        steps = steps.astype(np.int32)
    indptr, index, at = _place(steps, ends, is_count, rows.slots)
    counts = numbers.take(at, mode="clip").astype(np.int64)
    _check_sums(indptr, counts, int(counts.max(initial=0)))
    return indptr, index, counts


def _ninth_bytes(more: Ints, ends: Ints) -> Ints:
    """Where nine-byte varints end whose last byte looks like one to be continued: in a run, every ninth byte."""
    begins = (np.diff(more, prepend=-2) != 1) | np.isin(more, ends)  # a run does not go on into the next row
    starts = np.flatnonzero(begins)
    place = np.arange(more.size) - np.repeat(starts, np.diff(starts, append=more.size))
    return more[np.flatnonzero(place % (_MOST_MORE + 1) == _MOST_MORE)]


def _gather(data: Bytes, last: Ints, more: Ints) -> Narrow:
    """Values of the varints that end at `last` after `more` bytes to be continued; as narrow as they fit."""
    most = int(more.max())
    value: Narrow = data.take(last, mode="clip").astype(np.uint32 if most < 4 else np.uint64)
    if most:
        before = data.take(last - 1, mode="clip")
        value = np.where(more > 0, value << 7 | (before & 127), value)
    for k in range(2, most + 1):
        held = np.flatnonzero(more >= k)
        value[held] = value[held] << 7 | (data[last[held] - k] & 127)
    return value


def _zigzag(value: Narrow, slots: Ints) -> tuple[Ints, Narrow, Bools]:
    """How many buckets each number stands for, its half, and whether that half is a count above 0."""
    half, odd = value >> 1, (value & 1).astype(np.bool_)
    steps = np.where(odd, half + 1, 1)
    most = int(steps.max())
    if most > slots.max():  # and so it cannot overflow what it is added to
        raise PayloadError(f"the counts hold a run of {most} empty buckets; the header allows {slots.max()} in all")
    return steps.astype(np.int64), half, ~odd & (half > 0)


def _place(steps: Narrow, ends: Ints, is_count: Bools, slots: Ints) -> tuple[Ints, Ints, Ints]:
    """Return indptr, the bucket of each count, and where the counts stand; `steps` is used up."""
    starts = ends - _lengths(ends)
    limit = slots
    if (starts == ends).any():
        held = starts < ends
        starts, limit = starts[held], slots[held] if slots.ndim else slots
    used = np.add.reduceat(steps, starts)
    if (used > limit).any():
        raise PayloadError(f"the counts fill {used.max()} buckets; the header allows {slots.max()}")
    steps[starts[0]] -= 1  # the first bucket is number 0,
    steps[starts[1:]] -= used[:-1]  # and again in each row
    at = is_count.nonzero()[0]
    indptr = np.zeros(ends.size + 1, np.int64)
    indptr[1:] = at.searchsorted(ends)
    return indptr, steps.cumsum(out=steps).take(at, mode="clip").astype(np.int64, copy=False), at


def _lengths(ends: Ints) -> Ints:
    """What lies between one end and the next; ``np.diff`` takes many times as long for a few rows."""
    lengths = ends.copy()
    lengths[1:] -= ends[:-1]
    return lengths


def _words(rows: _Rows, word: int) -> tuple[Ints, Ints, Ints]:
    """V0 and V1: signed big-endian words."""
    numbers = np.frombuffer(rows.data, f">i{word}").astype(np.int64)
    if numbers.min() < 0:
        raise PayloadError(f"a count is negative: {numbers.min()}")
    ends = rows.ends // word
    at = np.flatnonzero(numbers)
    indptr = np.concatenate(([0], np.searchsorted(at, ends)))
    counts = numbers[at]
    _check_sums(indptr, counts, int(counts.max(initial=0)))
    return indptr, at - np.repeat(ends - _lengths(ends), _lengths(indptr[1:])), counts


def _check_sums(indptr: Ints, counts: Ints, most: int) -> None:
    """Refuse rows whose counts, none above `most`, add up to more than an int64 holds."""
    if most * counts.size < 1 << 63:
        return
    halves = (counts >> 32, counts & 0xFFFFFFFF)
    high, low = (np.diff(np.concatenate(([0], np.cumsum(half)))[indptr]) for half in halves)
    if (high + (low >> 32) >= 1 << 31).any():
        raise PayloadError("the counts add up to more than 2**63 - 1")
