"""Circonus' log-linear histograms (OpenHistogram): base64 in any text or JSON, and bins as text.

A bin has two decimal digits: value 12 and exponent -3 count [1.2e-3, 1.3e-3). Serialised, it has
one byte each for value, exponent and width of the count, then the count, lowest byte first. Source:
hist_serialize and hist_bucket_to_double of libcircllhist.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

import numpy as np

from latencykit._text import format_items, printable
from latencykit._typing import Ints
from latencykit.core.run import Run
from latencykit.io import build
from latencykit.io.raw.cells import named
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.wire import follow

Bins = tuple[Ints, Ints, Ints]  # value, exponent, count

# Up to 4,095 bins; there are 90 in a power of ten.
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=])[A-D][A-Za-z0-9+/]{7,}={0,2}(?![A-Za-z0-9+/=])")
_BIN = r"H\[(-?\d\.?\d?)e([+-]\d{2,3})\]=(\d{1,19})"
_BINS = re.compile(rf"{_BIN}(?:[\"',\s]*{_BIN})*")
_LABEL = re.compile(
    r"""(?:"([^"\n]+)"\s*:|([^\W\d][^,;:="'\s]*)["']?\s*[:=,;]?)\s*"""
    r"""(?:\{\s*"_type"\s*:\s*"h"\s*,\s*"_value"\s*:\s*)?[\["'\s]*$"""
)


def _parsed(text: str) -> Bins | None:
    """The bins of a serialised histogram; None where the text is not one."""
    number = int.from_bytes(base64.b64decode(text[:4])[:2], "big")
    if len(text) % 4 or not 16 * number <= 3 * len(text) <= 44 * number + 16:
        return None  # 4 to 11 bytes per bin
    try:
        data = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
    except binascii.Error:
        return None
    bins = data[2:].astype(np.int64)
    at = np.arange(bins.size)
    width = np.append(bins[2:], (0, 0)) + 1  # of the count of a bin that begins here
    first = follow(np.minimum(at + width + 3, bins.size), 0)
    if first.size != number or first[-1] + width[first[-1]] + 3 != bins.size:
        return None
    width = width[first]
    if (width > 8).any():
        return None
    count = np.zeros(number, np.uint64)
    for byte in range(8):
        cell = bins[np.minimum(first + 3 + byte, bins.size - 1)].astype(np.uint64)
        count |= np.where(width > byte, cell, np.uint64(0)) << np.uint64(8 * byte)
    if (count >= 1 << 62).any():
        return None
    value, exponent = (bins[first + k].astype(np.int8).astype(np.int64) for k in (0, 1))
    return value, exponent, count.astype(np.int64)


def _histograms(text: str) -> Iterator[tuple[int, Bins]]:
    """Position and bins of each histogram of a text."""
    for match in _BASE64.finditer(text):
        if (bins := _parsed(match[0])) is not None:
            yield match.start(), bins
    for match in _BINS.finditer(text):
        rows = re.findall(_BIN, match[0])
        value = np.rint(np.array([float(row[0]) for row in rows]) * 10).astype(np.int64)
        exponent, count = (np.array([int(row[k]) for row in rows], np.int64) for k in (1, 2))
        yield match.start(), (value, exponent, count)


def sniff(head: Head) -> Confidence:
    """Recognise a histogram in the text; a tool's own format that holds one is surer."""
    return Confidence.LIKELY if any(_histograms(head.text)) else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read histogram after histogram, named by the words before it."""
    text = source.text()
    series: dict[str, Data] = {}
    empty = 0
    for number, (at, (value, exponent, count)) in enumerate(_histograms(text), 1):
        good = (value == 0) | ((value >= 10) & (value <= 99))
        outside = int(count[~good].sum())
        value, exponent, count = (column[good] for column in (value, exponent, count))
        if not count.any():
            empty += 1
            continue
        low, high = ((value + (value > 0) * step) * 10.0 ** (exponent - 1) for step in (0, 1))
        low, high = np.where(value > 0, low, 0.0), np.where(value > 0, high, 0.0)
        order = np.lexsort((low, high))
        notes = ["a bin has two digits: each value is known within a tenth of itself"]
        if outside:
            notes.append(f"{format_items(outside, 'value')} below 0 or not a number left out")
        before = text[max(at - 120, 0, text.rfind("\n", 0, at) + 1) : at]
        label = _LABEL.search(before)
        name = printable(label[1] or label[2], 80) if label else f"histogram {number}"
        unit, origin = options.resolve_unit("s", "assumed")
        if label and (stated := named(name).unit):
            unit, origin = stated, "file"
        run = Run(tool="OpenHistogram", unit=unit, unit_from=origin, notes=tuple(notes))
        data = build.data_from_buckets(low[order], high[order], count[order], run)
        series[build.unique_name(name, series)] = data
    return build.histograms_found(series, empty)


FORMATS = {"circllhist": (sniff, read)}
