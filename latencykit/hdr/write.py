"""Counts → the payload field of a log line; before compression the reference's bytes."""

from __future__ import annotations

import binascii
import zlib
from struct import pack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latencykit.core.buckets import HdrBuckets
from latencykit.errors import InvalidArgumentError
from latencykit.hdr.payload import DOUBLE_COMPRESSED, MOST_BYTES, V2_COMPRESSED, counts_length

_V2_PLAIN = 0x1C849313  # with its width bits, as the reference writes it
_BEST = 9  # the reference's compression level
_MOST = (1 << 63) - 1


def encode(
    buckets: HdrBuckets,
    index: ArrayLike,
    counts: ArrayLike,
    *,
    double: bool = False,
    highest: int | None = None,
) -> bytes:
    """Return counts as a compressed V2 payload, in base64, without a line break.

    Bucket indices ascend strictly; the counts add up to less than 2**63. A DoubleHistogram
    (`double`) can hold a `scale`; an integer histogram cannot. Its lowest value is always one step;
    counts of a layout with a larger one are written at the highest value of their bucket.

    `highest` is ``highestTrackableValue``, before the scale; by default the end of the range of
    doubled values that the last index lies in, which is what a histogram that resizes itself has.
    Of a DoubleHistogram it only matters how large it is: the reference takes no others than powers
    of two less one.

    >>> encode(HdrBuckets(3), [10_664], [1], highest=60_000_000_000)
    b'HISTFAAAACV42pNpmSzMwMDAwgABzFCaEYh5f7hHMNh/gAicX8bIBABjHQWa'
    """
    if not double and buckets.scale != 1.0:
        raise InvalidArgumentError(
            f"an integer histogram has no scale, so {buckets} can only be written with double=True"
        )
    # Indices and counts as arrays, those of no count left out.
    places, numbers = np.asarray(index, np.int64), np.asarray(counts, np.int64)
    if places.ndim != 1 or places.shape != numbers.shape:
        raise InvalidArgumentError("index and counts must be one-dimensional and of one length")
    if (numbers < 0).any():
        raise InvalidArgumentError("counts must not be negative")
    if (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFFFFFF).sum()) > _MOST:
        raise InvalidArgumentError(
            "the counts add up to more than 2**63 - 1, the most that a histogram can hold"
        )
    places, numbers = places[numbers > 0], numbers[numbers > 0]
    if places.size and (int(places[0]) < 0 or (np.diff(places) <= 0).any()):
        raise InvalidArgumentError("indices must be 0 or more, and ascend")
    if places.size and int(places[-1]) >= counts_length(buckets, _MOST):
        raise InvalidArgumentError(
            f"index {int(places[-1])} lies above the highest that {buckets} has"
        )
    if double and buckets.unit_magnitude:
        places = HdrBuckets(buckets.digits).index_of(buckets.high_steps(places))
        buckets = HdrBuckets(buckets.digits, 1, buckets.scale)
    last = int(places[-1]) if places.size else 0
    top = highest
    if top is None:
        ranges = max((last >> buckets.half_magnitude) + 1, 2)
        top = int(buckets.high_steps((ranges << buckets.half_magnitude) - 1))
        top = max(top, 2 * buckets.lowest)
    elif not 2 * buckets.lowest <= top <= _MOST:
        raise InvalidArgumentError(
            f"the highest value must be {2 * buckets.lowest} to 2**63 - 1, not {top}"
        )
    elif counts_length(buckets, top) <= last:
        raise InvalidArgumentError(f"index {last} lies above the highest value, {top}")
    dynamic_range = 0
    if double:
        # The reference derives one from the other and refuses a pair that does not match.
        order = max(top.bit_length() - buckets.half_magnitude, 3)
        top, dynamic_range = (1 << (order + buckets.half_magnitude)) - 1, 1 << (order - 2)
    body = _body(places, numbers)
    head = (
        _V2_PLAIN,
        len(body),
        0,
        buckets.digits,
        buckets.lowest,
        top,
        buckets.scale if double else 1.0,
    )
    packed = zlib.compress(pack(">Iiiiqqd", *head) + body, _BEST)
    raw = pack(">Ii", V2_COMPRESSED, len(packed)) + packed
    if double:
        raw = pack(">Iiq", DOUBLE_COMPRESSED, buckets.digits, dynamic_range) + raw
    return binascii.b2a_base64(raw, newline=False)


def _body(places: NDArray[np.int64], numbers: NDArray[np.int64]) -> bytes:
    """Counts as ZigZag LEB128-64b9B varints; n empty buckets are -n."""
    if not places.size:
        return b"\0"
    gaps = places.copy()  # empty buckets before each count
    gaps[1:] -= places[:-1] + 1
    before = gaps.nonzero()[0]
    at = np.arange(places.size) + (gaps > 0).cumsum()
    zigzag = np.empty(places.size + before.size, np.uint64)
    zigzag[at] = numbers << 1
    zigzag[at[before] - 1] = np.where(gaps[before] == 1, 0, 2 * gaps[before] - 1)
    most = min(-(-int(zigzag.max()).bit_length() // 7), MOST_BYTES)
    if most < 2:
        return zigzag.astype(np.uint8).tobytes()
    lengths = np.ones(zigzag.size, np.int64)
    for k in range(1, most):
        lengths += zigzag >> np.uint64(7 * k) > 0
    ends = np.cumsum(lengths)
    out = np.empty(int(ends[-1]), np.uint8)
    out[ends - lengths] = zigzag & np.uint64(127) | (lengths > 1).astype(np.uint8) << np.uint8(7)
    for k in range(1, most):
        longer = np.flatnonzero(lengths > k)
        part = zigzag[longer] >> np.uint64(7 * k)
        if k < MOST_BYTES - 1:  # the ninth byte has no space for a mark and needs none
            part = (part & np.uint64(127)) | (np.uint64(128) * (lengths[longer] > k + 1))
        out[ends[longer] - lengths[longer] + k] = part.astype(np.uint8)
    return out.tobytes()
