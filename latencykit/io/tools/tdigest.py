"""t-digest: the bytes that Dunning's Java library writes, also as base64, and JSON of centroids.

A t-digest stores centroids: means of neighbouring values with their counts. A value is taken to lie
between the neighbours of its centroid: no bound is guaranteed. Both classes of the library (merging
and AVL tree) write big-endian numbers, verbose or compact; Druid prints base64 of them. JSON comes
from Elasticsearch's field type ``tdigest``, and from the packages tdigest for Python and for Rust.
Sources: MergingDigest.asBytes and asSmallBytes, AVLTreeDigest.asBytes and asSmallBytes.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from latencykit._typing import JSONObject
from latencykit.core.histogram import Histogram
from latencykit.errors import InvalidArgumentError
from latencykit.io import json_text
from latencykit.io.build import SketchBuckets, histogram_of_sketch
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import certain
from latencykit.io.wire import varints

_MAGIC = (b"\0\0\0\1", b"\0\0\0\2")
_EMPTY = (30, 32)  # bytes without a centroid
_BASE64 = re.compile(r"\s*AAAAA[QTUVgjkl][A-Za-z0-9+/]{34,}=*\s*$", re.MULTILINE)
_JSON = re.compile(
    r'"centroids"\s*:\s*\[\s*(?:\{[^{}]*"(?:m|mean)"\s*:|(?=[^\]]*\][\s\S]*"counts"\s*:))'
)
_WEIGHTS, _MEANS = ("c", "n", "weight", "count"), ("m", "mean")


def buckets_of_centroids(
    mean: ArrayLike, weight: ArrayLike, least: float, most: float
) -> SketchBuckets | None:
    """Return the buckets of means with weights, and what is known; None if they make no sense."""
    means, weights = np.asarray(mean, np.float64), np.asarray(weight, np.float64)
    if not means.size or not np.isfinite([*means, *weights, least, most]).all():
        return None
    if weights.min() < 1 or weights.sum() >= 2.0**63 or (weights != np.rint(weights)).any():
        return None
    if means.min() < least or means.max() > most:
        return None
    order = np.argsort(means, kind="stable")
    means, counts = means[order], weights[order].astype(np.int64)
    stats = {"min": least, "max": most, "mean": float(means @ counts / counts.sum())}
    if (counts == 1).all():
        return means, means, counts, stats, ()
    low, high = np.append(least, means[:-1]), np.append(means[1:], most)
    note = "estimated by t-digest: a value is taken to lie between the neighbours of its centroid"
    return low, high, counts, stats, (note,)


def sniff(head: Head) -> Confidence:
    """Recognise the encoding's number and a fitting size, base64 of them, or centroids."""
    if head.data.startswith(_MAGIC):
        # Of a long one only the extremes are checked.
        least, most = struct.unpack_from(">dd", head.data.ljust(20, b"\0"), 4)
        fits = not head.whole or len(head.data) in _EMPTY or _of_bytes(head.data) is not None
        return certain(fits and (least <= most or len(head.data) in _EMPTY))
    return certain(
        _BASE64.match(head.text)
        or (head.text.lstrip()[:1] in ("{", "[") and _JSON.search(head.text))
    )


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the digest, or one per line of base64, or per document that has centroids."""
    if source.head.data.startswith(_MAGIC):
        return {"": _histogram(_of_bytes(source.bytes()), source, None, options)}
    series: dict[str, Data] = {}
    if _BASE64.match(source.head.text):
        for number, data in base64_lines(source.text()):
            series[f"line {number}"] = _histogram(_of_bytes(data), source, number, options)
    else:
        for name, digest in _digests(json_text.load(source), ""):
            series[name or f"digest {len(series) + 1}"] = _histogram(
                _of_json(digest), source, None, options
            )
    return {"": next(iter(series.values()))} if len(series) == 1 else series


def base64_lines(text: str) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of the lines that are not blank; none of one that is not base64."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, base64.b64decode(line.strip(), validate=True)
            except ValueError:
                yield number, b""


def _histogram(
    buckets: SketchBuckets | None, source: Source, line: int | None, options: ReadOptions
) -> Histogram:
    if buckets is None:
        seen = "the t-digest is corrupt, or contains no requests"
        raise source.corrupt(line, seen, "centroids between the extremes", "")
    return histogram_of_sketch(buckets, "t-digest", options)


def _of_bytes(data: bytes) -> SketchBuckets | None:
    """SketchBuckets of one of the four encodings, which differ in the size that they announce."""
    if len(data) < 30 or not data.startswith(_MAGIC):
        return None
    verbose = data.startswith(_MAGIC[0])
    least, most = struct.unpack_from(">dd", data, 4)
    if not verbose and len(data) == 30 + 8 * int.from_bytes(data[28:30], "big"):
        pairs = np.frombuffer(data, ">f4", -1, 30).reshape(-1, 2)
        return _rounded(pairs[:, 1], pairs[:, 0], least, most)
    number = int.from_bytes(data[28:32], "big")
    if verbose and len(data) == 32 + 16 * number:
        pairs = np.frombuffer(data, ">f8", -1, 32).reshape(-1, 2)
        return buckets_of_centroids(pairs[:, 1], pairs[:, 0], least, most)
    if verbose and len(data) == 32 + 12 * number:
        means = np.frombuffer(data, ">f8", number, 32)
        weights = np.frombuffer(data, ">i4", number, 32 + 8 * number)
        return buckets_of_centroids(means, weights, least, most)
    if verbose or len(data) < 32 + 5 * number:
        return None
    means = np.cumsum(np.frombuffer(data, ">f4", number, 32).astype(np.float64))
    try:
        weights = varints(memoryview(data)[32 + 4 * number :])
    except InvalidArgumentError:
        return None
    return _rounded(means, weights, least, most) if weights.size == number else None


def _rounded(mean: ArrayLike, weight: ArrayLike, least: float, most: float) -> SketchBuckets | None:
    """The same of means in single precision, which may round them beyond the extremes."""
    with np.errstate(invalid="ignore"):  # corrupt bytes that are not a number
        means = np.asarray(mean, np.float64)
    near = np.abs(means) * 2.0**-20  # differences add up in the AVL tree's encoding
    if not (least <= most and (means >= least - near).all() and (means <= most + near).all()):
        return None
    return buckets_of_centroids(np.clip(means, least, most), weight, least, most)


def _digests(value: object, name: str) -> Iterator[tuple[str, JSONObject]]:
    """Objects with centroids, named by the keys that lead there."""
    if isinstance(value, dict) and isinstance(value.get("centroids"), list):
        yield name, value
    elif isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value, 1)
        for key, inner in pairs:
            if isinstance(inner, dict | list):
                yield from _digests(inner, f"{name}.{key}" if name else str(key))


def _of_json(digest: JSONObject) -> SketchBuckets | None:
    """SketchBuckets of centroids as objects, or as two lists."""
    listed = digest["centroids"]
    if listed and isinstance(listed[0], dict):
        keys = [next((key for key in kind if key in listed[0]), "") for kind in (_MEANS, _WEIGHTS)]
        means, weights = ([float(centroid[key]) for centroid in listed] for key in keys)
    else:
        means, weights = list(map(float, listed)), list(map(float, digest["counts"]))
    if len(means) != len(weights) or not means:
        return None
    ends = (digest.get("min"), digest.get("max"))
    least, most = (
        float(end) if isinstance(end, int | float) else bound
        for end, bound in zip(ends, (min(means), max(means)), strict=True)
    )
    buckets = buckets_of_centroids(means, weights, least, most)
    if buckets is None or None not in ends or (buckets[2][0] == 1 == buckets[2][-1]):
        return buckets
    *_, stats, notes = buckets
    known = {key: value for key, value in stats.items() if digest.get(key) is not None}
    more = "the extremes are not stated: they lie beyond the outermost centroids"
    return (*buckets[:3], known | {"mean": stats["mean"]}, (*notes, more))


FORMATS = {
    "t-digest": (sniff, read),
}
