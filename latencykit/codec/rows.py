"""Many payloads → one block of sparse rows, in a fixed number of array operations, whatever layouts they are of.

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

_MANY = 4  # where more than one byte in so many continues a number, `_long` is faster
_MOST_MORE = 8  # bytes that can follow the first of a varint

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
    """Decode payloads into a block of sparse rows.

    Parameters
    ----------
    payloads : sequence of Payload
        Of equal `word`, whatever their buckets; some hundred KiB of bodies at a time keep the temporaries in the cache.
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
        raise UsageError("varints and words of 2, 4 or 8 bytes cannot be decoded together")
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
    # Of a single byte, the lowest bit says that it is a run of empty buckets; overflow is meant in both lines.
    steps, is_count = (data >> 1) * (data & 1) + 1, data > data * 128
    if not more.size:
        indptr, index, at = _place(steps.astype(np.int32), rows.ends, is_count, rows.slots)
        return indptr, index, (data.take(at, mode="clip") >> 1).astype(np.int64)
    if (data[rows.ends - 1] > 127).any():  # an empty row looks at the end of another
        raise PayloadError(_CUT_OFF)
    last, lengths = _runs(more)
    large_steps, large, is_large = _zigzag(_gather(data, last, lengths), rows.slots)
    steps[more], is_count[more], is_count[last] = 0, False, is_large
    wide: Narrow = steps.astype(np.int32 if large_steps.sum() + 64 * data.size < 1 << 31 else np.int64)
    wide[last] = large_steps
    indptr, index, at = _place(wide, rows.ends, is_count, rows.slots)
    counts = (data.take(at, mode="clip") >> 1).astype(np.int64)
    large = large[is_large]
    counts[at.searchsorted(last[is_large])] = large
    _check_sums(indptr, counts, int(large.max(initial=63)))
    return indptr, index, counts


def _runs(more: Ints) -> tuple[Ints, Ints | None]:
    """Where the varints of several bytes end, and how many bytes are before their last one; None if it is one each."""
    follows = more[1:] - more[:-1] == 1
    if not follows.any():
        return more + 1, None
    ends = np.append((~follows).nonzero()[0] + 1, more.size)
    return more[ends - 1] + 1, _lengths(ends)


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


def _gather(data: Bytes, last: Ints, more: Ints | None) -> Narrow:
    """Values of the varints that end at `last` after `more` bytes to be continued, or one each; as narrow as they fit."""
    most = 1 if more is None else int(more.max())
    value: Narrow = data.take(last, mode="clip").astype(np.uint32 if most < 4 else np.uint64)
    longer = value << 7 | (data.take(last - 1, mode="clip") & 127)
    if more is None:
        return longer
    value = np.where(more > 0, longer, value)
    for k in range(2, most + 1):
        held = np.flatnonzero(more >= k)
        value[held] = value[held] << 7 | (data[last[held] - k] & 127)
    return value


def _zigzag(value: Narrow, slots: Ints) -> tuple[Ints, Narrow, Bools]:
    """How many buckets each number stands for, its half, and whether that half is a count above 0."""
    half = value >> 1
    beyond = half * (value & 1)  # buckets beyond the one that any number stands for
    most = int(beyond.max(initial=0)) + 1
    if most > slots.max():  # and so it cannot overflow what it is added to
        raise PayloadError(f"the counts hold a run of {most} empty buckets; the header allows {slots.max()} in all")
    return beyond.astype(np.int64) + 1, half, half > beyond


def _place(steps: Narrow, ends: Ints, is_count: Bools, slots: Ints) -> tuple[Ints, Ints, Ints]:
    """Return indptr, the bucket of each count, and where the counts stand; `steps` is used up."""
    reached = steps.cumsum(out=steps)
    tops = reached[ends - 1]
    tops[ends == 0] = 0
    used = _lengths(tops)
    if (used > slots).any():
        raise PayloadError(f"the counts fill {used.max()} buckets; the header allows {slots.max()}")
    at = is_count.nonzero()[0]
    indptr = np.zeros(ends.size + 1, np.int64)
    indptr[1:] = at.searchsorted(ends)
    index = reached.take(at, mode="clip")
    index -= (tops - used + 1).repeat(_lengths(indptr[1:]))  # each row begins with bucket 0
    return indptr, index.astype(np.int64, copy=False), at


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
