"""Many payloads at once: base64 texts → payloads, one call into C for all of them where a step allows it.

Nearly all payloads of a log are alike: version 2, compressed, of one layout. Those are opened and checked together;
as soon as one is not so, all are opened one by one, which knows every kind and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from latencykit.codec.inflating import INFLATE_ERRORS, SHORT, adler, base64_bytes, inflate, inflate_short
from latencykit.codec.limits import PayloadError, RowError, in_force
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
    from numpy.typing import NDArray

    from latencykit.codec.limits import Limits
    from latencykit.codec.payload import Layout

    Ints = NDArray[np.int64]

__all__ = ["Payloads", "open_payloads"]

_ENVELOPE_BYTES = 8  # cookie and length, before the compressed data
_CHECKSUM_BYTES = 4  # behind it
_AT_ONCE = 6  # so many times what a single payload may inflate to is the most memory that is taken
_PAD = ord("=")


class Payloads(Sequence[Payload]):
    """Opened payloads, a column each for what they have: ordinary ones share one layout and need no object each.

    Parameters
    ----------
    layouts : list of Layout
        One a body; or one alone, which all share.
    bodies : list of bytes
    sizes : ndarray of int64, optional
        Bytes of each body.
    """

    __slots__ = ("bodies", "layouts", "sizes")

    def __init__(self, layouts: list[Layout], bodies: list[bytes], sizes: Ints | None = None) -> None:
        self.layouts, self.bodies = layouts, bodies
        self.sizes = np.fromiter(map(len, bodies), np.int64, len(bodies)) if sizes is None else sizes

    @classmethod
    def of(cls, payloads: Sequence[Payload]) -> Payloads:
        """Return them as such."""
        if isinstance(payloads, Payloads):
            return payloads
        return cls([payload.layout for payload in payloads], [payload.body for payload in payloads])

    @classmethod
    def joined(cls, parts: Sequence[Payloads]) -> Payloads:
        """Return those of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        layouts = parts[0].layouts
        if any(part.layouts != layouts for part in parts) or len(layouts) > 1:
            layouts = [layout for part in parts for layout in part.layout_of_each()]
        bodies = [body for part in parts for body in part.bodies]
        return cls(layouts, bodies, np.concatenate([part.sizes for part in parts]))

    def layout_of_each(self) -> list[Layout]:
        """Return one layout a body."""
        return self.layouts * len(self) if len(self.layouts) == 1 else self.layouts

    @overload
    def __getitem__(self, place: int) -> Payload: ...
    @overload
    def __getitem__(self, place: slice) -> Payloads: ...
    def __getitem__(self, place: int | slice) -> Payload | Payloads:
        alone = len(self.layouts) == 1
        if isinstance(place, slice):
            return Payloads(self.layouts if alone else self.layouts[place], self.bodies[place], self.sizes[place])
        return Payload(self.layouts[0 if alone else place], self.bodies[place])

    def __len__(self) -> int:
        return len(self.bodies)


def open_payloads(texts: Sequence[bytes], limits: Limits | None = None) -> Payloads:
    """Open the payload fields of many log lines.

    Parameters
    ----------
    texts : sequence of bytes
        As `open_payload` takes them.
    limits : Limits, optional
        What each may ask for.

    Returns
    -------
    Payloads

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
    limits = limits or in_force()
    together = _together(texts, limits) if texts else Payloads([], [])
    if together is not None:
        return together
    payloads = []
    for row, text in enumerate(texts):
        try:
            payloads.append(open_payload(text, limits))
        except PayloadError as error:
            raise RowError(row, str(error)) from None
    return Payloads.of(payloads)


def _together(texts: Sequence[bytes], limits: Limits) -> Payloads | None:
    """All payloads, if every one is a compressed V2 that announces what it holds; else None."""
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    if sizes.max() > limits.harmless or sizes.sum() > _AT_ONCE * limits.harmless:
        return None
    raws = _decoded(texts, sizes)
    if raws is None:
        return None
    raw, starts, ends = raws
    streams = [raw[start:end] for start, end in zip((starts + _ENVELOPE_BYTES).tolist(), ends.tolist(), strict=True)]
    short = sizes.sum() < SHORT * len(texts)
    try:
        plains = list(map(inflate_short, streams, repeat(15), repeat(SHORT)) if short else map(inflate, streams))
    except INFLATE_ERRORS:
        return None
    # A stream ends with the checksum of what it holds: bytes that follow it would stand in its place.
    checksums = np.fromiter(map(adler, plains), np.uint32, len(plains))
    if (_at(raw, ends - _CHECKSUM_BYTES, ">u4") != checksums).any():
        return None
    sizes = np.fromiter(map(len, plains), np.int64, len(plains)) - HEADER_BYTES
    layouts = _layouts([plain[:HEADER_BYTES] for plain in plains], sizes, limits)
    return None if layouts is None else Payloads(layouts, [plain[HEADER_BYTES:] for plain in plains], sizes)


def _decoded(texts: Sequence[bytes], sizes: Ints) -> tuple[bytes, Ints, Ints] | None:
    """The bytes of base64 texts end to end, and where those of each begin and end; None if one is no compressed V2.

    All are decoded as one text: what pads the end of one counts as zeros there, and lies between its end and the next.
    """
    if (sizes & 3).any() or sizes.min() < 4:
        return None
    text, ends = b"".join(texts), np.cumsum(sizes)
    padding = np.frombuffer(text, np.uint8) == _PAD
    last, last_but_one = padding[ends - 1], padding[ends - 2]
    pads = last.astype(np.int64) + last_but_one
    if np.count_nonzero(padding) != pads.sum() or (last_but_one > last).any():
        return None
    try:
        raw = base64_bytes(text.replace(b"=", b"A"), None, True)
    except ValueError:
        return None
    starts, ends = (ends - sizes) // 4 * 3, ends // 4 * 3 - pads
    lengths = ends - starts - _ENVELOPE_BYTES
    if lengths.min() < _CHECKSUM_BYTES or (_at(raw, starts, ">i8") != np.int64(V2_COMPRESSED << 32) + lengths).any():
        return None
    return raw, starts, ends


def _layouts(heads: list[bytes], sizes: Ints, limits: Limits) -> list[Layout] | None:
    """The layout of each histogram, or the one of all; None if a header makes no sense for what follows it."""
    if sizes.min() < 0:
        return None
    announced, *_ = np.frombuffer(b"".join(heads), ">i8").astype(np.int64).reshape(-1, HEADER_BYTES // 8).T
    if ((announced >> 32 & 0xFFFFFF0F) != V2).any() or ((announced & 0xFFFFFFFF) != sizes).any():
        return None
    keys = [head[8:] for head in heads]
    if keys.count(keys[0]) == len(keys):
        keys = keys[:1]
    try:
        known = {key: v2_layout(key, limits) for key in set(keys)}
    except PayloadError:
        return None
    if sizes.max() > MOST_BYTES * min(layout.slots for layout in known.values()):
        return None
    return list(map(known.__getitem__, keys))


def _at(data: bytes, places: Ints, kind: str) -> NDArray[Any]:
    """What stands at each place, as items of a numpy type."""
    return np.ndarray((len(data) - np.dtype(kind).itemsize + 1,), kind, data, 0, (1,))[places]
