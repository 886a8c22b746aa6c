"""Many payloads at once: base64 texts → payloads, one call into C for all of them where a step allows it.

Nearly all payloads of a log are alike: version 2, compressed, of one layout. Those are opened and checked together;
as soon as one is not so, all are opened one by one, which knows every kind and says what is wrong.
"""

from __future__ import annotations

from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from latencykit.codec.inflating import INFLATE_ERRORS, SHORT, adler, base64_bytes, inflate, inflate_short
from latencykit.codec.limits import DEFAULT, PayloadError, RowError
from latencykit.codec.payload import (
    HEADER_BYTES,
    MOST_BYTES,
    V2,
    V2_COMPRESSED,
    Payload,
    open_payload,
    v2_layout,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.codec.limits import Limits

__all__ = ["open_payloads"]

_ENVELOPE_BYTES = 8  # cookie and length, before the compressed data
_CHECKSUM_BYTES = 4  # behind it
_AT_ONCE = 4  # so many times what a single payload may inflate to is the most memory that is taken
_layout_key = itemgetter(slice(8, HEADER_BYTES))  # all of the header but its cookie and the length of the counts


def open_payloads(texts: Sequence[bytes], limits: Limits = DEFAULT) -> list[Payload]:
    """Open the payload fields of many log lines.

    Parameters
    ----------
    texts : sequence of bytes
        As `open_payload` takes them.
    limits : Limits, optional
        What each may ask for.

    Returns
    -------
    list of Payload

    Raises
    ------
    RowError
        Naming the first damaged payload and what is wrong with it.

    Examples
    --------
    >>> text = b"HISTFAAAACV42pNpmSzMwMDAwgABzFCaEYh5f7hHMNh/gAicX8bIBABjHQWa"
    >>> [payload.body.hex() for payload in open_payloads([text, text])]
    ['cfa60102', 'cfa60102']
    """
    together = _together(texts, limits) if texts else []
    if together is not None:
        return together
    payloads = []
    for row, text in enumerate(texts):
        try:
            payloads.append(open_payload(text, limits))
        except PayloadError as error:
            raise RowError(row, str(error)) from None
    return payloads


def _together(texts: Sequence[bytes], limits: Limits) -> list[Payload] | None:
    """All payloads, if every one is a compressed V2 that announces what it holds; else None."""
    longest = max(map(len, texts))
    if longest > limits.harmless or sum(map(len, texts)) > _AT_ONCE * limits.harmless:
        return None
    try:
        raws = list(map(base64_bytes, texts, repeat(None), repeat(True)))
        streams = [raw[_ENVELOPE_BYTES:] for raw in raws]
        if sum(map(len, texts)) < SHORT * len(texts):
            plains = list(map(inflate_short, streams, repeat(15), repeat(SHORT)))
        else:
            plains = list(map(inflate, streams))
    except (ValueError, *INFLATE_ERRORS):
        return None
    sizes = np.fromiter(map(len, plains), np.int64, len(plains))
    if sizes.min() < HEADER_BYTES or not _announced(raws, plains, sizes):
        return None
    keys = list(map(_layout_key, plains))
    try:
        layouts = {key: v2_layout(key, limits) for key in set(keys)}
    except PayloadError:
        return None
    if sizes.max() - HEADER_BYTES > MOST_BYTES * min(layout.slots for layout in layouts.values()):
        return None
    pairs = zip(map(layouts.__getitem__, keys), [plain[HEADER_BYTES:] for plain in plains], strict=True)
    return list(map(tuple.__new__, repeat(Payload), pairs))


def _announced(raws: list[bytes], plains: list[bytes], sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    """Whether all cookies are those of V2, both lengths are right, and nothing follows the compressed data."""
    envelopes = np.frombuffer(b"".join([raw[:_ENVELOPE_BYTES] for raw in raws]), ">u4").reshape(-1, 2)
    announced = np.fromiter(map(len, raws), np.int64, len(raws)) - _ENVELOPE_BYTES
    heads = np.frombuffer(b"".join([plain[:8] for plain in plains]), ">u4").reshape(-1, 2)
    # A stream ends with the checksum of what it holds: bytes that follow it would stand in its place.
    ends = np.frombuffer(b"".join([raw[-_CHECKSUM_BYTES:] for raw in raws]), ">u4")
    return bool(
        (envelopes[:, 0] == V2_COMPRESSED).all()
        and (envelopes[:, 1] == announced).all()
        and (heads[:, 0] & ~np.uint32(0xF0) == V2).all()
        and (heads[:, 1] == sizes - HEADER_BYTES).all()
        and (ends == np.fromiter(map(adler, plains), np.uint32, len(plains))).all()
    )
