"""Many payloads → one block of sparse rows, in a fixed number of array operations.

A V2 payload is a list of varints: a positive one is the count of the next bucket, 0 is one empty bucket, and −n are n
of them. Nearly all varints of an ordinary log have one byte, so there `_short` treats bytes as numbers and mends the
few places where it takes several; where many have several, `_long` gathers the numbers first. Both take all rows at
once. V0 and V1 payloads are plain words.

Nothing is believed: what could not be a histogram of the header's size is refused, before it is added to anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from latencykit.codec.limits import DEFAULT, PayloadError, RowError
from latencykit.codec.payload import MOST_BYTES
from latencykit.errors import LimitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.codec.limits import Limits
    from latencykit.codec.payload import Payload

    Ints = NDArray[np.int64]
    Bytes = NDArray[np.uint8]

__all__ = ["decode_rows"]

_MANY = 12  # where more than one byte in so many continues a number, `_long` is faster
_MOST_MORE = 8  # bytes that can follow the first of a varint

# What each byte means where it is a whole varint: how many buckets it stands for, and whether it is a count above 0.
_ADVANCE = bytes([(b + 1) // 2 if b & 1 else 1 for b in range(128)] + [0] * 128)
_COUNT = bytes([b > 0 and b % 2 == 0 for b in range(128)] + [0] * 128)


class _Rows(NamedTuple):
    """The bytes of all rows, where each row ends, and how many buckets each may have."""

    data: bytes
    ends: Ints
    slots: Ints

    @property
    def bytes(self) -> Bytes:
        return np.frombuffer(self.data, np.uint8)


def decode_rows(payloads: Sequence[Payload], limits: Limits = DEFAULT) -> tuple[Ints, Ints, Ints]:
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
    _check_together(payloads, limits)
    try:
        return _decode(payloads)
    except PayloadError as error:
        row, reason = _first_bad(payloads, error)
        raise RowError(row, str(reason)) from None


def _check_together(payloads: Sequence[Payload], limits: Limits) -> None:
    layouts = {payload[0] for payload in payloads}
    first = next(iter(layouts), None)
    if first is not None and not all(layout.joins(first) for layout in layouts):
        raise UsageError("only payloads of one layout can be decoded together")
    if sum(len(payload[1]) for payload in payloads) > limits.block:
        raise LimitError(f"payloads of more than {limits.block:,} bytes were to be decoded at once; pass fewer")


def _first_bad(payloads: Sequence[Payload], error: PayloadError) -> tuple[int, PayloadError]:
    """Halve the rows until the first damaged one is left; no row is decoded more than twice on average."""
    good, bad = 0, len(payloads)  # rows before `good` are fine, one before `bad` is not
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _decode(payloads[good:middle])
            good = middle
        except PayloadError as found:
            bad, error = middle, found
    try:
        _decode(payloads[good:bad])
    except PayloadError as found:
        error = found
    return good, error


def _decode(payloads: Sequence[Payload]) -> tuple[Ints, Ints, Ints]:
    """Decode all rows in one way or another, by what the bytes are like."""
    bodies = [payload[1] for payload in payloads]
    ends = np.cumsum(np.fromiter(map(len, bodies), np.int64, len(bodies)))
    slots = np.fromiter((payload[0].slots for payload in payloads), np.int64, len(bodies))
    rows = _Rows(b"".join(bodies), ends, slots)
    word = payloads[0][0].word if payloads else 0
    found = _words(rows, word) if word else _varints(rows)
    _check_sums(*found)
    return found


def _check_sums(indptr: Ints, _index: Ints, counts: Ints) -> None:
    """Refuse rows whose counts add up beyond an int64; a float shows that without wrapping."""
    if counts.size and int(counts.max()) > (1 << 62) // max(1, int(np.diff(indptr).max())):
        sums = np.add.reduceat(counts.astype(np.float64), indptr[:-1][np.diff(indptr) > 0])
        if float(sums.max()) >= 2.0**63:
            raise PayloadError("the counts add up to more than 63 bits hold")


def _words(rows: _Rows, word: int) -> tuple[Ints, Ints, Ints]:
    """Words of 2, 4 or 8 bytes, a count each (V0, V1)."""
    numbers = np.frombuffer(rows.data, f">i{word}")
    if numbers.size and int(numbers.min()) < 0:
        raise PayloadError("a count is negative")
    ends = rows.ends // word
    starts = np.concatenate(([0], ends[:-1]))
    held = np.flatnonzero(numbers).astype(np.int64)
    indptr = np.concatenate(([0], np.searchsorted(held, ends))).astype(np.int64)
    index = held - np.repeat(starts, np.diff(indptr))
    last = ends - starts
    if (last > rows.slots).any():
        raise PayloadError("there are more counts than the header has buckets")
    return indptr, index, numbers[held].astype(np.int64)


def _varints(rows: _Rows) -> tuple[Ints, Ints, Ints]:
    """ZigZag LEB128-64b9B numbers (V2)."""
    more = np.flatnonzero(rows.bytes > 127)
    if more.size and _longest_run(more) >= _MOST_MORE:
        return _one_by_one(rows)
    filled = rows.ends[np.diff(rows.ends, prepend=0) > 0]
    if more.size and (rows.bytes[filled - 1] > 127).any():
        raise PayloadError("the last number is cut off")
    return _long(rows) if more.size * _MANY > len(rows.data) else _short(rows, more)


def _longest_run(more: Ints) -> int:
    """Length of the longest run of neighbouring positions."""
    breaks = np.flatnonzero(np.diff(more) != 1)
    return int(np.diff(np.concatenate(([-1], breaks, [more.size - 1]))).max())


def _short(rows: _Rows, more: Ints) -> tuple[Ints, Ints, Ints]:
    """Byte by byte: right wherever a number has one byte; where it has several, its last byte is mended."""
    data = rows.bytes
    advance = np.frombuffer(rows.data.translate(_ADVANCE), np.uint8).astype(np.int64)
    is_count = np.frombuffer(bytearray(rows.data.translate(_COUNT)), np.bool_)
    lasts = numbers = np.zeros(0, np.int64)
    if more.size:
        first = np.concatenate(([True], np.diff(more) != 1))
        begins = np.flatnonzero(first)
        run = np.cumsum(first) - 1
        shift = 7 * (more - more[begins][run])
        lengths = np.diff(np.concatenate((begins, [more.size])))
        lasts = more[begins] + lengths
        numbers = np.add.reduceat((data[more] & 127).astype(np.int64) << shift, begins)
        numbers += data[lasts].astype(np.int64) << (7 * lengths)
        is_run = (numbers & 1).astype(bool)
        advance[lasts] = runs = np.where(is_run, (numbers + 1) >> 1, 1)
        _check_runs(runs, rows.slots)
        is_count[lasts] = ~is_run & (numbers > 0)
    held = np.flatnonzero(is_count).astype(np.int64, copy=False)
    counts = (data[held] >> 1).astype(np.int64)
    kept = is_count[lasts]
    counts[np.searchsorted(held, lasts[kept])] = numbers[kept] >> 1
    return _placed(rows.ends, rows.slots, advance, held, counts)


def _long(rows: _Rows) -> tuple[Ints, Ints, Ints]:
    """Number by number: gather each one's bytes first."""
    data = rows.bytes
    lasts = np.flatnonzero(data < 128)
    lengths = np.diff(lasts, prepend=-1)
    numbers = data[lasts].astype(np.int64)
    for step in range(1, int(lengths.max(initial=1))):
        longer = np.flatnonzero(lengths > step)
        numbers[longer] = numbers[longer] << 7 | (data[lasts[longer] - step] & 127)
    return _from_numbers(numbers, np.searchsorted(lasts, rows.ends), rows.slots)


def _from_numbers(numbers: Ints, ends: Ints, slots: Ints) -> tuple[Ints, Ints, Ints]:
    """Rows of whole numbers, still in ZigZag: even ones are counts doubled, odd ones are runs of empty buckets."""
    is_run = (numbers & 1).astype(bool)
    advance = np.where(is_run, (numbers >> 1) + 1, 1)
    _check_runs(advance, slots)
    held = np.flatnonzero(~is_run & (numbers > 0)).astype(np.int64, copy=False)
    return _placed(ends, slots, advance, held, numbers[held] >> 1)


def _placed(ends: Ints, slots: Ints, advance: Ints, held: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Turn "so many buckets on" into bucket indices, row by row."""
    reached = np.cumsum(advance)
    after = np.where(ends > 0, reached[ends - 1], 0) if reached.size else np.zeros_like(ends)
    base = np.concatenate(([0], after[:-1]))
    if (after - base > slots).any():
        raise PayloadError("there are more counts than the header has buckets")
    indptr = np.concatenate(([0], np.searchsorted(held, ends))).astype(np.int64)
    index = reached[held]
    index -= np.repeat(base + 1, np.diff(indptr))
    return indptr, index, counts


def _check_runs(runs: Ints, slots: Ints) -> None:
    """Refuse a run of empty buckets that is longer than any row, before runs are added up."""
    if runs.size and int(runs.max()) > int(slots.max()):
        raise PayloadError("a run of empty buckets is longer than the histogram")


def _one_by_one(rows: _Rows) -> tuple[Ints, Ints, Ints]:
    """Numbers of nine bytes, whose last byte has no bit to spare: read each alone. They are counts above 2**55."""
    numbers: list[int] = []
    ends: list[int] = []
    start = 0
    for end in rows.ends.tolist():
        at = start
        while at < end:
            number, at = _number(rows.data, at, end)
            if number > 0xFFFF_FFFF_FFFF_FFFE or (number & 1 and number >> 1 >= 1 << 62):
                raise PayloadError("a run of empty buckets is longer than the histogram")
            numbers.append(number)
        ends.append(len(numbers))
        start = end
    big = np.array(numbers, np.uint64)
    is_run = (big & np.uint64(1)).astype(bool)
    half = (big >> np.uint64(1)).astype(np.int64)
    advance = np.where(is_run, half + 1, 1)
    _check_runs(advance, rows.slots)
    held = np.flatnonzero(~is_run & (half > 0)).astype(np.int64)
    return _placed(np.array(ends, np.int64), rows.slots, advance, held, half[held])


def _number(data: bytes, at: int, end: int) -> tuple[int, int]:
    """One LEB128-64b9B number, and where the next one begins."""
    number = 0
    for k in range(MOST_BYTES):
        if at + k >= end:
            raise PayloadError("the last number is cut off")
        byte = data[at + k]
        if k == MOST_BYTES - 1:
            return number | byte << 56, at + k + 1
        number |= (byte & 127) << (7 * k)
        if byte < 128:
            return number, at + k + 1
    raise AssertionError("unreachable")
