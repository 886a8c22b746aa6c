"""One payload: base64 text → (inflated) → header, with the counts left as bytes.

Every version is known here, and what is wrong with a payload is said here; `latencykit.codec.many` opens the ordinary
ones of a log together.

The numbers in the headers are those of ``AbstractHistogram.java`` and ``DoubleHistogram.java`` of HdrHistogram 2.2.2;
all fields are big-endian.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from latencykit.buckets import HdrBuckets
from latencykit.codec.inflating import INFLATE_ERRORS, SHORT, base64_bytes, inflater
from latencykit.codec.limits import PayloadError, in_force
from latencykit.errors import UsageError

if TYPE_CHECKING:
    from latencykit.codec.limits import Limits

__all__ = ["Layout", "Payload", "open_payload", "slots_of"]

# Cookies of plain histograms; bits 4 to 7 hold the width of a word and are left out here.
V0, V1, V2 = 0x1C849308, 0x1C849301, 0x1C849303
COMPRESSED = {0x1C849309: V0, 0x1C849302: V1, 0x1C849304: V2}
DOUBLE, DOUBLE_COMPRESSED = 0x0C72124E, 0x0C72124F
V2_COMPRESSED = 0x1C849314  # as it is written, with its width bits
MOST_BYTES = 9  # of a varint

_ENVELOPE = Struct(">Ii")  # cookie, length of what follows
_HEADER_V0 = Struct(">Iiqqq")  # cookie, digits, lowest, highest, total count
_HEADER = Struct(">Iiiiqqd")  # cookie, length of the counts, normalizing offset, digits, lowest, highest, ratio
_FIELDS = Struct(">iiqqd")  # the same without the first two
HEADER_BYTES = _HEADER.size
_PREFIX = Struct(">Iiq")  # a double histogram's cookie, digits, ratio of highest to lowest
_envelope = _ENVELOPE.unpack_from


@dataclass(frozen=True, eq=False, slots=True)
class Layout:
    """What a header says. Equal headers give the same object.

    Attributes
    ----------
    buckets : HdrBuckets
        Where the bins lie; its `scale` is a DoubleHistogram's ratio, else 1.
    double : bool
        Whether it is a DoubleHistogram.
    word : int
        0 for ZigZag LEB128-64b9B numbers (V2); 2, 4 or 8 for words of as many bytes (V0, V1).
    highest : int
        ``highestTrackableValue``, before `scale`.
    slots : int
        Buckets up to `highest`.
    """

    buckets: HdrBuckets
    double: bool
    word: int
    highest: int
    slots: int

    def joins(self, other: Layout) -> bool:
        """Whether payloads of both can be decoded in one call of `decode_rows`: their counts are written alike."""
        return self.word == other.word


class Payload(NamedTuple):
    """An opened payload: what its header says, and its counts, still encoded.

    Attributes
    ----------
    layout : Layout
    body : bytes
    """

    layout: Layout
    body: bytes

    @property
    def buckets(self) -> HdrBuckets:
        """Where the bins lie."""
        return self.layout.buckets

    @property
    def double(self) -> bool:
        """Whether it is a DoubleHistogram."""
        return self.layout.double

    @property
    def word(self) -> int:
        """Bytes of a fixed word; 0 for varints."""
        return self.layout.word

    @property
    def highest(self) -> int:
        """``highestTrackableValue`` of the header, before the scale."""
        return self.layout.highest


def open_payload(text: bytes, limits: Limits | None = None) -> Payload:
    """Open the payload field of one log line.

    Parameters
    ----------
    text : bytes
        Base64 of a histogram of version 0, 1 or 2, or of a DoubleHistogram, compressed or not; no blanks around it.
    limits : Limits, optional
        What it may ask for. No more memory is taken than they allow, whatever the text holds.

    Returns
    -------
    Payload

    Raises
    ------
    PayloadError
        Saying what is wrong with it; where it stood is for the caller to add.

    Examples
    --------
    >>> payload = open_payload(b"HISTFAAAACV42pNpmSzMwMDAwgABzFCaEYh5f7hHMNh/gAicX8bIBABjHQWa")
    >>> payload.buckets, payload.highest, payload.body.hex()
    (HdrBuckets(3, 1), 60000000000, 'cfa60102')
    """
    limits = limits or in_force()
    size = len(text)
    if size > limits.line:
        raise PayloadError(f"the payload has {size:,} bytes of base64; at most {limits.line:,} are read")
    try:
        raw = base64_bytes(text, None, True)
    except ValueError as error:
        raise PayloadError(f"the payload's base64 is damaged: {_tidy(error)}") from None
    if len(raw) < _ENVELOPE.size:
        raise PayloadError(f"the payload has {len(raw)} bytes, too few for a histogram")
    cookie = int.from_bytes(raw[:4], "big")
    if cookie in (DOUBLE, DOUBLE_COMPRESSED):
        return _open_double(raw, limits)
    plain = _plain(raw, limits)
    layout, start = _header(plain, limits)
    return Payload(layout, plain[start:])


def slots_of(buckets: HdrBuckets, highest: int) -> int:
    """Return how many buckets the reference makes for values up to `highest` (before the scale).

    Source: ``AbstractHistogram.getBucketsNeededToCoverValue`` and ``getLengthForNumberOfBuckets``.

    Examples
    --------
    >>> slots_of(HdrBuckets(3), 2), slots_of(HdrBuckets(2, 1000), 3_600_000_000_000)
    (2048, 3456)
    """
    doublings = highest.bit_length() - (buckets.unit_magnitude + buckets.half_magnitude)
    return (max(doublings, 1) + 1) << buckets.half_magnitude


def _open_double(raw: bytes, limits: Limits) -> Payload:
    """Open a DoubleHistogram: a few words of its own, then a whole integer histogram."""
    if len(raw) < _PREFIX.size + _ENVELOPE.size:
        raise PayloadError(f"the payload has {len(raw)} bytes, too few for a DoubleHistogram")
    _, digits, dynamic_range = _PREFIX.unpack_from(raw)
    if dynamic_range < 2:
        raise PayloadError(f"the DoubleHistogram's highest to lowest ratio is {dynamic_range}; it must be 2 or more")
    plain = _plain(raw[_PREFIX.size :], limits)
    layout, start = _header(plain, limits, double=True)
    if layout.buckets.digits != digits:
        raise PayloadError(f"the DoubleHistogram has {digits} digits but the histogram inside has {layout.buckets.digits}")
    return Payload(layout, plain[start:])


def _plain(raw: bytes, limits: Limits) -> bytes:
    """The uncompressed form of an integer histogram."""
    cookie, length = _envelope(raw)
    if cookie & ~0xF0 in (V0, V1, V2):
        return raw
    if cookie & ~0xF0 not in COMPRESSED:
        raise PayloadError(f"the payload begins with {cookie:#010x}, which is no known kind of histogram")
    if length != len(raw) - _ENVELOPE.size:
        raise PayloadError(f"the payload announces {length} compressed bytes; {len(raw) - _ENVELOPE.size} follow")
    return _inflate_within(raw[_ENVELOPE.size :], limits)


def _inflate_within(stream: bytes, limits: Limits) -> bytes:
    """Inflate without ever taking more memory than allowed."""
    stepwise = zlib.decompressobj() if len(stream) < SHORT else inflater()
    try:
        plain: bytes = stepwise.decompress(stream, limits.inflated + 1)
    except INFLATE_ERRORS as error:
        raise PayloadError(f"the payload's compressed data is damaged: {_tidy(error)}") from None
    if len(plain) > limits.inflated:
        raise PayloadError(f"the payload inflates to more than {limits.inflated:,} bytes")
    if not stepwise.eof:
        raise PayloadError("the payload's compressed data is cut off")
    if stepwise.unused_data:
        raise PayloadError(f"{len(stepwise.unused_data)} bytes follow the end of the compressed data")
    return plain


def _header(plain: bytes, limits: Limits, *, double: bool = False) -> tuple[Layout, int]:
    """What the header says, and where the counts begin."""
    cookie = int.from_bytes(plain[:4], "big")
    kind = cookie & ~0xF0
    header = _HEADER_V0 if kind == V0 else _HEADER
    if kind not in (V0, V1, V2):
        raise PayloadError(f"the histogram begins with {cookie:#010x}, which is no known version")
    if len(plain) < header.size:
        raise PayloadError(f"the histogram's header is cut off: {len(plain)} bytes of {header.size}")
    if kind == V0:
        ratio, (_, digits, lowest, highest, _) = 1.0, header.unpack_from(plain)
    else:
        _, length, _, digits, lowest, highest, ratio = header.unpack_from(plain)
        if length != len(plain) - header.size:
            raise PayloadError(f"the header announces {length} bytes of counts; {len(plain) - header.size} follow")
    if not (math.isfinite(ratio) and ratio > 0):
        raise PayloadError(f"the header's value of one step is {ratio}; it must be a positive number")
    if double and kind == V0:
        raise PayloadError("a histogram of version 0 inside a DoubleHistogram does not say what one step is worth")
    word = cookie >> 4 & 0xE
    if kind == V2:
        word = 0
    elif not word:
        raise PayloadError("the histogram has counts of 0 bytes; they can have 2, 4 or 8")
    layout = _layout(digits, lowest, highest, ratio if double else 1.0, word, double)
    _check_size(layout, len(plain) - header.size, limits)
    return layout, header.size


def v2_layout(fields: bytes, limits: Limits) -> Layout:
    """Return what the header of a plain V2 histogram says; `fields` are all of it but cookie and length."""
    _, digits, lowest, highest, ratio = _FIELDS.unpack(fields)
    if not (math.isfinite(ratio) and ratio > 0):
        raise PayloadError(f"the header's value of one step is {ratio}; it must be a positive number")
    layout = _layout(digits, lowest, highest, 1.0, 0, False)
    _check_size(layout, 0, limits)
    return layout


@lru_cache(maxsize=4096)
def _layout(digits: int, lowest: int, highest: int, ratio: float, word: int, double: bool) -> Layout:
    """The one object for such a header."""
    if word not in (0, 2, 4, 8):
        raise PayloadError(f"the histogram has counts of {word} bytes; they can have 2, 4 or 8")
    if lowest > 0 and highest < 2 * lowest:
        raise PayloadError(f"the highest value is {highest}; it must be at least twice the lowest, {lowest}")
    buckets = _buckets(digits, lowest, ratio)
    return Layout(buckets, double, word, highest, slots_of(buckets, highest))


@lru_cache(maxsize=4096)
def _buckets(digits: int, lowest: int, ratio: float) -> HdrBuckets:
    try:
        return HdrBuckets(digits, lowest, ratio)
    except UsageError as error:
        raise PayloadError(f"the header makes no sense: {error}") from None


def _check_size(layout: Layout, size: int, limits: Limits) -> None:
    """Refuse what could not be counts of such a histogram before any of it is decoded."""
    if layout.slots > limits.slots:
        raise PayloadError(f"the header asks for {layout.slots:,} buckets; at most {limits.slots:,} are read")
    if layout.word and size % layout.word:
        raise PayloadError(f"the counts take {size} bytes, which is no multiple of their {layout.word}")
    if size > layout.slots * (layout.word or MOST_BYTES):
        raise PayloadError(f"the counts take {size} bytes, more than {layout.slots} buckets can")


def _tidy(error: Exception) -> str:
    """The library's reason without its capital and full stop, for the middle of a sentence."""
    text = str(error).rstrip(".")
    return text[:1].lower() + text[1:]
