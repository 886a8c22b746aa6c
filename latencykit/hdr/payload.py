"""HdrHistogram payloads: base64 text → inflated bytes → header → sparse rows of counts.

Base64 and inflate come from pybase64 and isal where they ship wheels, else from Python's library.
"""

from __future__ import annotations

import binascii
import math
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import repeat
from struct import Struct
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from latencykit._arrays import as_positions
from latencykit._limits import Limits, current_limits
from latencykit._records import record
from latencykit._typing import AnyArray, Bytes, Flags, Ints
from latencykit.core import kernel
from latencykit.core.buckets import HdrBuckets
from latencykit.core.quantiles import nonzero
from latencykit.errors import InputTooLargeError, InvalidArgumentError, PayloadError, RowError

Narrow = NDArray[Any]  # integers of 32 bits where they fit, else of 64

base64_bytes: Callable[..., bytes]
"""(text, None, True) → bytes; `ValueError` for anything but base64."""
try:
    from pybase64 import b64decode as base64_bytes
except ImportError:

    def base64_bytes(text: bytes, _altchars: None, _validate: bool) -> bytes:
        """Return the bytes; nothing but base64 is let through."""
        return binascii.a2b_base64(text, strict_mode=True)


adler: Callable[[bytes], int]
inflate: Callable[..., bytes]
inflater: Callable[[], Any]
INFLATE_ERRORS: Any
try:
    from isal.isal_zlib import IsalError, adler32, decompress, decompressobj
except ImportError:
    adler, inflate, inflater, INFLATE_ERRORS = (
        zlib.adler32,
        zlib.decompress,
        zlib.decompressobj,
        (zlib.error,),
    )
else:
    adler, inflate, inflater, INFLATE_ERRORS = (
        adler32,
        decompress,
        decompressobj,
        (zlib.error, IsalError),
    )
inflate_short = zlib.decompress
_PADDING = 0x3D3D  # ==
SHORT = 400  # bytes; below this zlib starts sooner than isal runs faster


# ------------------------------------------------------------
# One payload: base64 text → (inflated) → header, with the counts left as bytes.
#
# Every version is known here, and what is wrong with a payload is said here; the ordinary ones of a
# log are opened together, below.
#
# The numbers in the headers are those of ``AbstractHistogram.java`` and ``DoubleHistogram.java`` of
# HdrHistogram 2.2.2; all fields are big-endian.

# Cookies of plain histograms; bits 4 to 7 hold the width of a word and are left out here.
V0, V1, V2 = 0x1C849308, 0x1C849301, 0x1C849303
COMPRESSED = {0x1C849309: V0, 0x1C849302: V1, 0x1C849304: V2}
DOUBLE, DOUBLE_COMPRESSED = 0x0C72124E, 0x0C72124F
V2_COMPRESSED = 0x1C849314  # as it is written, with its width bits
MOST_BYTES = 9  # of a varint

_ENVELOPE = Struct(">Ii")  # cookie, length of what follows
_HEADER_V0 = Struct(">Iiqqq")  # cookie, digits, lowest, highest, total count
# cookie, length of the counts, normalizing offset, digits, lowest, highest, ratio
_HEADER = Struct(">Iiiiqqd")
HEADER_BYTES = _HEADER.size
_PREFIX = Struct(">Iiq")  # a double histogram's cookie, digits, ratio of highest to lowest
_envelope = _ENVELOPE.unpack_from


@record(eq=False)
class Layout:
    """What a header says. Equal headers give the same object."""

    buckets: HdrBuckets  # its `scale` is a DoubleHistogram's ratio, else 1
    double: bool  # a DoubleHistogram
    word: int  # 0 for ZigZag LEB128-64b9B numbers (V2); bytes of a word (V0, V1): 2, 4 or 8
    highest: int  # `highestTrackableValue`, before `scale`
    slots: int  # buckets up to `highest`

    def joins(self, other: Layout) -> bool:
        """Return whether `decode_rows` can decode both in one call (counts encoded alike)."""
        return self.word == other.word


class Payload(NamedTuple):
    """An opened payload: what its header says, and its counts, still encoded."""

    layout: Layout
    body: bytes

    @property
    def buckets(self) -> HdrBuckets:
        """Where the bins lie."""
        return self.layout.buckets


def open_payload(text: bytes, limits: Limits | None = None) -> Payload:
    """Open the payload field of one log line.

    It is base64, without blanks around it, of a histogram of version 0, 1 or 2, or of a
    DoubleHistogram, compressed or not. No more memory is taken than the limits allow. A
    `PayloadError` says what is wrong with it; where it stood is for the caller to add.

    >>> payload = open_payload(b"HISTFAAAACV42pNpmSzMwMDAwgABzFCaEYh5f7hHMNh/gAicX8bIBABjHQWa")
    >>> payload.buckets, payload.layout.highest, payload.body.hex()
    (HdrBuckets(3, 1), 60000000000, 'cfa60102')
    """
    limits = limits or current_limits()
    size = len(text)
    if size > limits.line:
        raise PayloadError(
            f"the payload has {size:,} bytes of base64; at most {limits.line:,} are read"
        )
    try:
        raw = base64_bytes(text, None, True)
    except ValueError as error:
        raise PayloadError(f"the payload's base64 is corrupt: {_tidy(error)}") from None
    if len(raw) < _ENVELOPE.size:
        raise PayloadError(f"the payload has {len(raw)} bytes, too few for a histogram")
    double, digits = int.from_bytes(raw[:4], "big") in (DOUBLE, DOUBLE_COMPRESSED), None
    if double:  # a few words of its own, then a whole integer histogram
        if len(raw) < _PREFIX.size + _ENVELOPE.size:
            raise PayloadError(f"the payload has {len(raw)} bytes, too few for a DoubleHistogram")
        _, digits, dynamic_range = _PREFIX.unpack_from(raw)
        if dynamic_range < 2:
            raise PayloadError(
                f"the DoubleHistogram's highest to lowest ratio is {dynamic_range}; it must be 2 "
                "or more"
            )
        raw = raw[_PREFIX.size :]
    plain = _plain(raw, limits)
    layout, start = _header(plain, limits, double=double)
    if double and layout.buckets.digits != digits:
        raise PayloadError(
            f"the DoubleHistogram has {digits} digits but the histogram inside has "
            f"{layout.buckets.digits}"
        )
    return Payload(layout, plain[start:])


def counts_length(buckets: HdrBuckets, highest: int) -> int:
    """Return how many buckets the reference makes for values up to `highest` (before the scale).

    Source: ``AbstractHistogram.getBucketsNeededToCoverValue`` and ``getLengthForNumberOfBuckets``.

    >>> counts_length(HdrBuckets(3), 2), counts_length(HdrBuckets(2, 1000), 3_600_000_000_000)
    (2048, 3456)
    """
    doublings = highest.bit_length() - (buckets.unit_magnitude + buckets.half_magnitude)
    return (max(doublings, 1) + 1) << buckets.half_magnitude


def _plain(raw: bytes, limits: Limits) -> bytes:
    """The uncompressed form of an integer histogram."""
    cookie, length = _envelope(raw)
    if cookie & ~0xF0 in (V0, V1, V2):
        return raw
    if cookie & ~0xF0 not in COMPRESSED:
        raise PayloadError(
            f"the payload begins with {cookie:#010x}, which is not a known kind of histogram"
        )
    if length != len(raw) - _ENVELOPE.size:
        raise PayloadError(
            f"the payload announces {length} compressed bytes; {len(raw) - _ENVELOPE.size} follow"
        )
    # Inflate without ever taking more memory than allowed.
    stream = raw[_ENVELOPE.size :]
    most = limits.inflated + 1
    stepwise = inflater()
    try:
        plain: bytes = stepwise.decompress(stream, most)
    except INFLATE_ERRORS as error:
        why = f"the payload's compressed data is corrupt: {_tidy(error)}"
        raise PayloadError(why) from None
    if len(plain) > limits.inflated:
        raise PayloadError(f"the payload inflates to more than {limits.inflated:,} bytes")
    if not stepwise.eof:
        raise PayloadError("the payload's compressed data is truncated")
    if stepwise.unused_data:
        raise PayloadError(
            f"{len(stepwise.unused_data)} bytes follow the end of the compressed data"
        )
    return plain


def _header(plain: bytes, limits: Limits, *, double: bool = False) -> tuple[Layout, int]:
    """What the header says, and where the counts begin."""
    cookie = int.from_bytes(plain[:4], "big")
    kind = cookie & ~0xF0
    header = _HEADER_V0 if kind == V0 else _HEADER
    if kind not in (V0, V1, V2):
        raise PayloadError(
            f"the histogram begins with {cookie:#010x}, which is not a known version"
        )
    if len(plain) < header.size:
        raise PayloadError(
            f"the histogram's header is truncated: {len(plain)} bytes of {header.size}"
        )
    if kind == V0:
        ratio, (_, digits, lowest, highest, _) = 1.0, header.unpack_from(plain)
    else:
        _, length, _, digits, lowest, highest, ratio = header.unpack_from(plain)
        if length != len(plain) - header.size:
            raise PayloadError(
                f"the header announces {length} bytes of counts; {len(plain) - header.size} follow"
            )
    if not (math.isfinite(ratio) and ratio > 0):
        raise PayloadError(
            f"the header's value of one step is {ratio}; it must be a positive number"
        )
    if double and kind == V0:
        raise PayloadError(
            "a histogram of version 0 inside a DoubleHistogram does not say what one step is worth"
        )
    word = cookie >> 4 & 0xE
    if kind == V2:
        word = 0
    elif not word:
        raise PayloadError("the histogram has counts of 0 bytes; they can have 2, 4 or 8")
    layout = _layout(digits, lowest, highest, ratio if double else 1.0, word, double)
    # What could not be counts of such a histogram is refused before any of it is decoded.
    size = len(plain) - header.size
    if layout.slots > limits.slots:
        raise PayloadError(
            f"the header asks for {layout.slots:,} buckets; at most {limits.slots:,} are read"
        )
    if layout.word and size % layout.word:
        raise PayloadError(
            f"the counts take {size} bytes, which is not a multiple of their {layout.word}"
        )
    if size > layout.slots * (layout.word or MOST_BYTES):
        raise PayloadError(f"the counts take {size} bytes, more than {layout.slots} buckets can")
    return layout, header.size


@lru_cache(maxsize=4096)
def _layout(
    digits: int, lowest: int, highest: int, ratio: float, word: int, double: bool
) -> Layout:
    """The one object for such a header."""
    if word not in (0, 2, 4, 8):
        raise PayloadError(f"the histogram has counts of {word} bytes; they can have 2, 4 or 8")
    if lowest > 0 and highest < 2 * lowest:
        raise PayloadError(
            f"the highest value is {highest}; it must be at least twice the lowest, {lowest}"
        )
    buckets = _buckets(digits, lowest, ratio)
    return Layout(buckets, double, word, highest, counts_length(buckets, highest))


@lru_cache(maxsize=4096)
def _buckets(digits: int, lowest: int, ratio: float) -> HdrBuckets:
    try:
        return HdrBuckets(digits, lowest, ratio)
    except InvalidArgumentError as error:
        raise PayloadError(f"the header makes no sense: {error}") from None


def _tidy(error: Exception) -> str:
    """The library's reason without its capital and full stop, for the middle of a sentence."""
    text = str(error).rstrip(".")
    return text[:1].lower() + text[1:]


# ------------------------------------------------------------
# Many payloads at once: base64 texts → payloads, one call into C for all of them where a step
# allows it.
#
# Nearly all payloads of a log are alike: version 2, compressed, of one layout. Those are opened and
# checked together; as soon as one is not so, all are opened one by one, which knows every kind and
# says what is wrong.

_ENVELOPE_BYTES = 8  # cookie and length, before the compressed data
_CHECKSUM_BYTES = 4  # behind it
_ALONE = 2  # times what one payload may inflate to: what one among several can at most


class Payloads(Sequence[Payload]):
    """Opened payloads, column by column: ordinary ones share one layout and need no object each."""

    # Of `layouts` there is one per body, or one alone, which all share; `data` has all bodies, from
    # `begins` to `ends`, and maybe more between them.

    __slots__ = ("begins", "data", "ends", "layouts")

    def __init__(self, layouts: list[Layout], data: bytes, begins: Ints, ends: Ints) -> None:
        self.layouts, self.data, self.begins, self.ends = layouts, data, begins, ends

    @classmethod
    def of(cls, payloads: Sequence[Payload]) -> Payloads:
        """Return them as such."""
        if isinstance(payloads, Payloads):
            return payloads
        bodies = [payload.body for payload in payloads]
        sizes = np.fromiter(map(len, bodies), np.int64, len(bodies))
        ends = sizes.cumsum()
        layouts = [payload.layout for payload in payloads]
        return cls(layouts, b"".join(bodies), ends - sizes, ends)

    @property
    def sizes(self) -> Ints:
        """Bytes of each body."""
        return self.ends - self.begins

    @property
    def slots(self) -> Ints:
        """Buckets that each may have, or all."""
        if len(set(self.layouts)) == 1:
            return np.array(self.layouts[0].slots)
        return np.fromiter((layout.slots for layout in self.layouts), np.int64, len(self))

    def take(self, places: Ints) -> Payloads:
        """Return some of them; the bytes are shared."""
        layouts = self.layouts
        if len(layouts) > 1:
            layouts = [layouts[place] for place in places.tolist()]
        return Payloads(layouts, self.data, self.begins[places], self.ends[places])

    @overload
    def __getitem__(self, place: int) -> Payload: ...
    @overload
    def __getitem__(self, place: slice) -> Payloads: ...
    def __getitem__(self, place: int | slice) -> Payload | Payloads:
        if isinstance(place, slice):
            layouts = self.layouts if len(self.layouts) == 1 else self.layouts[place]
            return Payloads(layouts, self.data, self.begins[place], self.ends[place])
        layout = self.layouts[0 if len(self.layouts) == 1 else place]
        return Payload(layout, self.data[self.begins[place] : self.ends[place]])

    def __len__(self) -> int:
        return self.ends.size


def open_payloads(texts: Sequence[bytes], limits: Limits | None = None) -> Payloads:
    """Open the payload fields of log lines, from the first on, up to a limit of memory.

    Once the inflated payloads take ``limits.block``, no more are opened: the result has at least
    one, nearly always all; open the rest by another call. A `RowError` names the first corrupt one.

    >>> text = b"HISTFAAAACV42pNpmSzMwMDAwgABzFCaEYh5f7hHMNh/gAicX8bIBABjHQWa"
    >>> [payload.body.hex() for payload in open_payloads([text, text])]
    ['cfa60102', 'cfa60102']
    """
    limits = limits or current_limits()
    together = _together(texts, limits) if texts else Payloads.of([])
    if together is not None:
        return together
    payloads: list[Payload] = []
    taken = 0
    for row, text in enumerate(texts):
        if taken > limits.block:
            break
        try:
            payloads.append(open_payload(text, limits))
        except PayloadError as error:
            raise RowError(row, str(error)) from None
        taken += len(payloads[-1].body)
    return Payloads.of(payloads)


def _together(texts: Sequence[bytes], limits: Limits) -> Payloads | None:
    """The payloads, if every one is a compressed V2 that announces what it holds; else None."""
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    longest, ends = int(sizes.max()), sizes.cumsum()
    if longest > min(limits.line, _ALONE * limits.harmless) or (sizes % 4).any() or not sizes.min():
        return None
    short = sizes.sum() < SHORT * len(texts)
    # All are decoded as one text, where a zero that no row takes stands for each `=` at an end.
    text = bytearray().join(texts)
    last = _at(text, ends - 2, ">u2")
    padding = (last & 255 == ord("=")).astype(np.int64) + (last == _PADDING)
    letters = np.frombuffer(text, np.uint8)
    letters[ends[padding > 0] - 1] = letters[ends[padding > 1] - 2] = ord("A")
    try:
        raw = base64_bytes(text, None, True)
    except ValueError:
        return None
    begins, ends = (ends - sizes) // 4 * 3, ends // 4 * 3 - padding
    lengths = ends - begins - _ENVELOPE_BYTES
    if (
        lengths.min() < _CHECKSUM_BYTES
        or (_at(raw, begins, ">i8") != np.int64(V2_COMPRESSED << 32) + lengths).any()
    ):
        return None
    streams = between(raw, begins + _ENVELOPE_BYTES, ends)
    one = inflate_short if short else inflate
    try:
        # A buffer that has to grow costs a tenth of inflating; neighbours are about as large.
        plains = [one(streams[0])]
        taken = len(plains[0])
        room = taken * 9 // 8 + SHORT
        while taken <= limits.block and (begin := len(plains)) < len(streams):
            some = streams[begin : begin + max(1, limits.harmless // longest)]
            plains += map(one, some, repeat(15), repeat(room))
            taken += sum(map(len, plains[begin:]))
    except INFLATE_ERRORS:
        return None
    ends = ends[: len(plains)]
    # A stream ends with the checksum of what it holds: bytes that follow it would stand in its
    # place.
    checksums = np.fromiter(map(adler, plains), np.uint32, len(plains))
    lengths = np.fromiter(map(len, plains), np.int64, len(plains))
    if (
        lengths.max() > limits.inflated
        or (_at(raw, ends - _CHECKSUM_BYTES, ">u4") != checksums).any()
    ):
        return None
    data, ends = b"".join(plains), lengths.cumsum()
    begins = ends - lengths + HEADER_BYTES
    layouts = _layouts(data, begins, ends, limits)
    return None if layouts is None else Payloads(layouts, data, begins, ends)


def _layouts(data: bytes, begins: Ints, ends: Ints, limits: Limits) -> list[Layout] | None:
    """The layout of each histogram, or the common one; None if a header does not fit the rest."""
    sizes = ends - begins
    if sizes.min() < 0:
        return None
    announced = _at(data, begins - HEADER_BYTES, ">i8").astype(np.int64)
    if ((announced >> 32 & 0xFFFFFF0F) != V2).any() or ((announced & 0xFFFFFFFF) != sizes).any():
        return None
    fields = HEADER_BYTES - _ENVELOPE.size
    keys = _at(data, begins - fields, f"V{fields}")
    if (keys == keys[0]).all():
        keys = keys[:1]
    try:
        known = {key: _header(_ENVELOPE.pack(V2, 0) + key, limits)[0] for key in set(keys.tolist())}
    except PayloadError:
        return None
    if sizes.max() > MOST_BYTES * min(layout.slots for layout in known.values()):
        return None
    return [known[key] for key in keys.tolist()]


def between(data: bytes, begins: Ints, ends: Ints) -> list[bytes]:
    """Return what lies there, piece by piece."""
    return [data[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


def _at(data: bytes | bytearray, places: Ints, kind: str) -> AnyArray:
    """What stands at each place, as items of a numpy type."""
    return np.ndarray((len(data) - np.dtype(kind).itemsize + 1,), kind, data, 0, (1,))[places]


# ------------------------------------------------------------
# Many payloads → one block of sparse rows, in a fixed number of array operations, whatever
# layouts they are of.
#
# A V2 payload is a list of varints: a positive one is the count of the next bucket, 0 is one empty
# bucket, and −n are n of them. V0 and V1 payloads are plain words. All rows are taken at once.
#
# Nothing is believed: what could not be a histogram of the header's size is refused, before it is
# added to anything.

_MOST_MORE = 8  # bytes that can follow the first of a varint

_CUT_OFF = "the counts end inside a number"

# `take` clips where all places are known to be valid: checking takes as long as taking.

# The C library gives the pages of a large array back at every free, and faulting them in again
# costs more than the arithmetic here does. A block that was freed once (this one is never touched)
# makes it keep smaller ones.
np.empty(8 << 20, np.uint8)


def decode_rows(
    payloads: Sequence[Payload], limits: Limits | None = None
) -> tuple[Ints, Ints, Ints]:
    """Decode payloads into a block of sparse rows: indptr, index and counts.

    Row i has the buckets ``index[indptr[i]:indptr[i + 1]]``, which ascend, and their counts, all
    above 0; a row's sum fits in an int64. Payloads of one call are of equal `word`, whatever their
    buckets, and no longer than ``limits.block``; some hundred KiB of bodies at a time keep the
    temporaries in the cache. A `RowError` names the first corrupt one.

    >>> from latencykit.hdr.payload import open_payload
    >>> payload = open_payload(b"HISTFAAAACZ42pNpmSzMwMDAygABzFCaEYh5f7hHMNh/gAhw7TzGyAQAZ58Frw==")
    >>> decode_rows([payload, payload])
    (array([0, 2, 4]), array([    0, 12702,     0, 12702]), array([5, 1, 5, 1]))
    """
    return decode_summed(payloads, limits)[:3]


def sum_of_rows(payloads: Payloads) -> Ints | None:
    """Return the sum of all rows, bucket by bucket, if that takes no decoding of each."""
    if not len(payloads) or any(layout.word for layout in payloads.layouts):
        return None
    place = payloads.data, payloads.begins, payloads.ends, payloads.slots
    compiled = kernel.decode_varints(*place, sum_only=True)
    return None if compiled is None else compiled[3]


def decode_summed(
    payloads: Sequence[Payload], limits: Limits | None = None
) -> tuple[Ints, Ints, Ints, Ints | None]:
    """Return what `decode_rows` does, and the sum of all rows where that costs little."""
    opened = Payloads.of(payloads)
    most = (limits or current_limits()).block
    try:
        return _decode(opened, most)
    except PayloadError:
        # The first row that cannot be decoded, by bisection: those before `row` are fine.
        row, bad = 0, len(opened)  # one before `bad` is not
        while bad - row > 1:
            middle = (row + bad) // 2
            try:
                _decode(opened[row:middle], most)
            except PayloadError:
                bad = middle
            else:
                row = middle
    try:
        _decode(opened[row : row + 1], most)
    except PayloadError as error:
        raise RowError(row, str(error)) from None
    raise AssertionError("a row was refused among others, but not alone")  # pragma: no cover


def _decode(payloads: Payloads, most: int) -> tuple[Ints, Ints, Ints, Ints | None]:
    """Decode rows; the error says what is wrong with one of them, but not which."""
    sizes = payloads.sizes
    ends = np.cumsum(sizes)
    if not ends.size or not ends[-1]:
        return np.zeros(ends.size + 1, np.int64), *np.empty((2, 0), np.int64), None
    if ends[-1] > most:
        raise InputTooLargeError(
            f"payloads of more than {most:,} bytes were to be decoded at once; pass fewer"
        )
    first, kinds = payloads.layouts[0], set(payloads.layouts)
    if not all(first.joins(kind) for kind in kinds):
        raise InvalidArgumentError(
            "varints and words of 2, 4 or 8 bytes cannot be decoded together"
        )
    data, begins, slots = payloads.data, payloads.begins, payloads.slots
    if not first.word:  # compiled where that is plain
        compiled = kernel.decode_varints(data, begins, payloads.ends, slots)
        if compiled is not None:
            return compiled
    together = b"".join(between(data, begins, payloads.ends))
    if first.word:
        return *_words(together, ends, first.word), None
    return *_varints(np.frombuffer(together, np.uint8), ends, slots), None


def _varints(data: Bytes, ends_of_rows: Ints, slots: Ints) -> tuple[Ints, Ints, Ints]:
    """V2: find where each varint ends, gather the numbers, and count in numbers."""
    more = (data > 127).nonzero()[0]
    most = int(slots.max())
    if data.size - more.size > most * ends_of_rows.size:  # before anything is made of it
        raise PayloadError(f"the counts fill more buckets than the {most} that the header allows")
    last = (data < 128).nonzero()[0]
    run = _MOST_MORE - 1
    if more.size > run and (more[run:] - more[: more.size - run] == run).any():
        # Last bytes of nine-byte varints look as if they continued: they are every ninth byte of a
        # run, which does not go on into the next row.
        begins = (np.diff(more, prepend=-2) != 1) | np.isin(more, ends_of_rows)
        starts = np.flatnonzero(begins)
        place = np.arange(more.size) - np.repeat(
            starts, as_positions(np.diff(starts, append=more.size))
        )
        last = np.sort(
            np.append(last, more[np.flatnonzero(place % (_MOST_MORE + 1) == _MOST_MORE)])
        )  # none is both
    ends = np.searchsorted(last, ends_of_rows)  # in varints
    if not last.size or (last[ends - 1] != ends_of_rows - 1)[_lengths(ends_of_rows) > 0].any():
        raise PayloadError(_CUT_OFF)
    # The value of each varint; its arrays end with it.
    further = _lengths(last + 1) - 1  # bytes of each varint but the last
    longest = int(further.max())
    value: Narrow = data.take(last, mode="clip").astype(np.uint32 if longest < 4 else np.uint64)
    for k in range(1, longest + 1):
        at = np.flatnonzero(further >= k)
        value[at] = value[at] << 7 | (data[last[at] - k] & 127)
    # ZigZag: half of it is a count, or a number of empty buckets.
    numbers = value >> 1
    beyond = numbers * (value & 1)  # buckets beyond the one that any number stands for
    run = int(beyond.max(initial=0)) + 1
    if run > most:  # and so it cannot overflow what it is added to
        raise PayloadError(
            f"the counts contain a run of {run} empty buckets; the header allows {most}"
        )
    steps, is_count = beyond.astype(np.int64) + 1, numbers > beyond
    if steps.sum() < 1 << 31:
        steps = steps.astype(np.int32)
    indptr, index, at = _place(steps, ends, is_count, slots)
    counts = numbers.take(at, mode="clip").astype(np.int64)
    _check_sums(indptr, counts, int(counts.max(initial=0)))
    return indptr, index, counts


def _place(steps: Narrow, ends: Ints, is_count: Flags, slots: Ints) -> tuple[Ints, Ints, Ints]:
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
    index -= (tops - used + 1).repeat(
        as_positions(_lengths(indptr[1:]))
    )  # each row begins with bucket 0
    return indptr, index.astype(np.int64, copy=False), at


def _lengths(ends: Ints) -> Ints:
    """Distances of the ends; ``np.diff`` takes many times as long for a few rows."""
    lengths = ends.copy()
    lengths[1:] -= ends[:-1]
    return lengths


def _words(data: bytes, ends: Ints, word: int) -> tuple[Ints, Ints, Ints]:
    """V0 and V1: signed big-endian words."""
    numbers = np.frombuffer(data, f">i{word}").astype(np.int64)
    if numbers.min() < 0:
        raise PayloadError(f"a count is negative: {numbers.min()}")
    ends = ends // word
    at = nonzero(numbers)
    indptr = np.append(0, at.searchsorted(ends)).astype(np.int64)
    counts = numbers[at]
    _check_sums(indptr, counts, int(counts.max(initial=0)))
    return indptr, at - np.repeat(ends - _lengths(ends), as_positions(_lengths(indptr[1:]))), counts


def _check_sums(indptr: Ints, counts: Ints, most: int) -> None:
    """Refuse rows whose counts, none above `most`, add up to more than an int64 holds."""
    if most * counts.size < 1 << 63:
        return
    halves = (counts >> 32, counts & 0xFFFFFFFF)
    high, low = (np.diff(np.concatenate(([0], np.cumsum(half)))[indptr]) for half in halves)
    if (high + (low >> 32) >= 1 << 31).any():
        raise PayloadError("the counts add up to more than 2**63 - 1")
