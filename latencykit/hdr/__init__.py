"""HdrHistogram payloads ⇄ arrays: bytes in, arrays out, and back.

* ``open_payload(text, limits=None) -> Payload`` opens one base64 field,
  ``open_payloads(texts)`` many.
* ``decode_rows(payloads) -> (indptr, index, counts)`` decodes many at once.
* ``write.encode(buckets, index, counts, *, double=False, highest=None) -> bytes`` writes one.
* ``PayloadError`` says what is wrong with a payload, ``RowError`` also which of many it is;
  ``Limits`` bound them.

To read a log, open and decode some ten KiB at a time: ``decode_rows`` takes the `Payloads` of
``open_payloads``, or slices of them, as they are. ``payload.layout`` is the same object for equal
headers; payloads may share a call where ``layout.joins(other)``.

The format: ``AbstractHistogram.java``, ``DoubleHistogram.java`` and ``ZigZagEncoding.java`` of
HdrHistogram 2.2.2.
"""

from __future__ import annotations

from latencykit._limits import DEFAULT, Limits
from latencykit.errors import PayloadError, RowError
from latencykit.hdr.payload import (
    Layout,
    Payload,
    Payloads,
    counts_length,
    decode_rows,
    open_payload,
    open_payloads,
)

__all__ = [
    "DEFAULT",
    "Layout",
    "Limits",
    "Payload",
    "PayloadError",
    "Payloads",
    "RowError",
    "counts_length",
    "decode_rows",
    "open_payload",
    "open_payloads",
]
