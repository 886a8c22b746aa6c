"""Apache DataSketches: KLL and t-digest sketches of numbers, as bytes or base64 (as Druid prints).

KLL keeps values with weights. Up to some hundred of them, all are kept; beyond, the rank of a value
is known up to an error that holds with 99 %, so a value here lies between those of the ranks that
far below and above. A t-digest keeps means of neighbouring values: a value lies between the
neighbours of its centroid, where no bound is guaranteed. Neither form states the type of its
numbers, but their lengths and weights fit one width only. Sources: kll_sketch_impl.hpp and
tdigest_impl.hpp of datasketches-cpp; the package datasketches gives quantiles, not what is kept.
"""

from __future__ import annotations

import re

import numpy as np

from latencykit._arrays import as_positions
from latencykit._typing import Floats
from latencykit.core.histogram import Histogram
from latencykit.io.build import SketchBuckets, histogram_of_sketch
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import certain
from latencykit.io.tools.tdigest import base64_lines, buckets_of_centroids

# Preamble longs or ints, serial version, family.
_KLL = (b"\x05\x01\x0f", b"\x02\x01\x0f", b"\x02\x02\x0f")
_TDIGEST = (b"\x02\x01\x14", b"\x01\x01\x14")
_BASE64 = re.compile(r"(?:BQEP|AgEP|AgIP|AgEU|AQEU)[A-Za-z0-9+/]+=*[ \t]*(?:\n|$)")
_EMPTY, _SINGLE = 0b1, 0b100  # flags of KLL; a t-digest's single value is 0b10
_EMPTY_NOTE = "the sketch contains no requests"


def sniff(head: Head) -> Confidence:
    """Recognise the preamble, in bytes or as base64."""
    return certain(head.data.startswith(_KLL + _TDIGEST) or _BASE64.match(head.text))


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the sketch, or one per line of base64."""
    if not _BASE64.match(source.head.text):
        return {"": _histogram(source.bytes(), source, None, options)}
    series: dict[str, Data] = {
        f"line {number}": _histogram(data, source, number, options)
        for number, data in base64_lines(source.text())
    }
    return series if len(series) > 1 else {"": next(iter(series.values()))}


def _histogram(data: bytes, source: Source, line: int | None, options: ReadOptions) -> Histogram:
    """The histogram of one sketch."""
    kll = data.startswith(_KLL)
    buckets = None
    if len(data) >= 8 and (kll or data.startswith(_TDIGEST)):
        if data[5 if not kll else 3] & _EMPTY:
            raise source.corrupt(line, _EMPTY_NOTE, "at least one", "")
        buckets = _of_kll(data) if kll else _of_tdigest(data)
    if buckets is None:
        expected = "an intact KLL or t-digest sketch of numbers"
        raise source.corrupt(line, f"{len(data):,} bytes that do not fit", expected, "")
    return histogram_of_sketch(buckets, "DataSketches", options)


def _of_kll(data: bytes) -> SketchBuckets | None:
    """SketchBuckets of a KLL sketch; None where the bytes fit no type of numbers."""
    if data[3] & _SINGLE:
        values = _numbers(data[8:])
        return None if values is None or values.size != 1 else _exact(values)
    if len(data) < 20:
        return None
    total = int.from_bytes(data[8:16], "little")
    least_k, depth = int.from_bytes(data[16:18], "little"), data[18]
    begin = 20 + 4 * depth
    if not depth or not least_k or len(data) < begin:
        return None
    levels = np.frombuffer(data[20:begin], "<u4").astype(np.int64)
    if (np.diff(levels) < 0).any():
        return None
    for width in (8, 4):
        kept, rest = divmod(len(data) - begin, width)
        sizes = np.diff(levels, append=levels[0] + kept - 2)  # values of each level
        if rest or sizes[-1] < 0 or depth > 60 or int((sizes << np.arange(depth)).sum()) != total:
            continue
        values = _numbers(data[begin:], width)
        if values is None or not np.isfinite(values).all():
            return None
        (least, most), kept_values = values[:2], values[2:]
        if (kept_values < least).any() or (kept_values > most).any():
            return None
        weights = np.repeat(np.int64(1) << np.arange(depth), as_positions(sizes))
        order = np.argsort(kept_values, kind="stable")
        value, weight = kept_values[order], weights[order]
        stats = {"min": float(least), "max": float(most)}
        if depth == 1:
            return value, value, weight, stats, ()
        error = 2.296 / least_k**0.9723  # of a rank, get_normalized_rank_error
        rank = np.cumsum(weight)
        ends = np.append(value, most)
        below = np.searchsorted(rank, rank - weight + 1 - error * total, "left")
        above = np.searchsorted(rank, rank + error * total, "left")
        low = np.where(rank - weight + 1 - error * total <= 1, least, ends[below])
        high = np.where(rank + error * total >= total, most, ends[above])
        note = f"ranks are known within {100 * error:.2g} % of the requests, with 99 % confidence"
        return low, high, weight, stats, (note,)
    return None


def _of_tdigest(data: bytes) -> SketchBuckets | None:
    """SketchBuckets of a t-digest; None where the bytes fit no type of numbers."""
    if data[5] & 0b10:
        values = _numbers(data[8:])
        return None if values is None or values.size != 1 else _exact(values)
    if len(data) < 16:
        return None
    number, buffered = (int.from_bytes(data[at : at + 4], "little") for at in (8, 12))
    for width in (8, 4):
        if len(data) != 16 + width * (2 + 2 * number + buffered):
            continue
        extremes = np.frombuffer(data, f"<f{width}", 2, 16).astype(np.float64)
        kind = [("mean", f"<f{width}"), ("weight", f"<u{width}")]
        centroids = np.frombuffer(data, kind, number, 16 + 2 * width)
        single = np.frombuffer(data, f"<f{width}", buffered, 16 + 2 * width * (1 + number))
        mean = np.concatenate((centroids["mean"], single)).astype(np.float64)
        weight = np.concatenate((centroids["weight"], np.ones(buffered, f"<u{width}")))
        return buckets_of_centroids(mean, weight, *extremes.tolist())
    return None


def _exact(values: Floats) -> SketchBuckets | None:
    """A single value."""
    if not np.isfinite(values).all():
        return None
    return values, values, np.ones(1, np.int64), {}, ()


def _numbers(data: bytes, width: int | None = None) -> Floats | None:
    """Numbers of four or eight bytes: floating, unless that leaves them without exponents."""
    width = width or len(data)
    if width not in (4, 8) or len(data) % width:
        return None
    values = np.frombuffer(data, f"<f{width}")
    exponents = np.frombuffer(data, f"<u{width}") << 1 >> (24 if width == 4 else 53)
    if ((exponents == 0) & (values != 0)).any():  # integers below 2**23, or 2**52
        values = np.frombuffer(data, f"<i{width}")
    return values.astype(np.float64)


FORMATS = {
    "datasketches": (sniff, read),
}
