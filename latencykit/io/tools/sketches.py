"""Quantile sketches as their libraries write them: t-digest, Apache DataSketches, DDSketch."""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latencykit._arrays import as_positions
from latencykit._typing import Floats, JSONObject
from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError
from latencykit.io import json_text
from latencykit.io.build import data_from_buckets
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import certain
from latencykit.io.wire import Schema, decode, varints

# ------------------------------------------------------------
# t-digest: the bytes that Dunning's Java library writes, also as base64, and JSON of centroids.
#
# A t-digest stores centroids: means of neighbouring values with their counts. A value is taken to
# lie between the neighbours of its centroid: no bound is guaranteed. Both classes of the library
# (merging and AVL tree) write big-endian numbers, verbose or compact; Druid prints base64 of them.
# JSON comes from Elasticsearch's field type ``tdigest``, and from the packages tdigest for Python
# and for Rust. Sources: asBytes and asSmallBytes of MergingDigest and of AVLTreeDigest.

SketchBuckets = tuple[Floats, Floats, NDArray[np.int64], dict[str, float], tuple[str, ...]]
"""Edges, counts, statistics that the sketch states, and notes."""

_MAGIC = (b"\0\0\0\1", b"\0\0\0\2")
_EMPTY = (30, 32)  # bytes without a centroid
_BASE64 = re.compile(r"\A\s*+AAAAA[QTUVgjkl][A-Za-z0-9+/]{34,}+=*+[ \t\r]*+$", re.MULTILINE)
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
    found: Iterable[tuple[int | None, str, SketchBuckets | None]]
    if source.head.data.startswith(_MAGIC) or _BASE64.match(source.head.text):
        found = _encoded(source, _BASE64, _of_bytes)
    else:
        digests = _digests(json_text.load(source), "")
        found = ((None, name, _of_json(digest)) for name, digest in digests)
    return _histograms(found, "t-digest", "centroids between the extremes", source, options)


def _encoded(
    source: Source,
    base64_text: re.Pattern[str],
    buckets_of: Callable[[bytes], SketchBuckets | None],
) -> Iterator[tuple[int | None, str, SketchBuckets | None]]:
    """Yield line, name and buckets of the sketch in a file's bytes, or of each line of base64."""
    if not base64_text.match(source.head.text):
        yield None, "", buckets_of(source.bytes())
        return
    for number, line in enumerate(source.text().split("\n"), 1):
        if line.strip():
            try:
                data = base64.b64decode(line.strip(), validate=True)
            except ValueError:
                data = b""
            yield number, f"line {number}", buckets_of(data)


def _histograms(
    found: Iterable[tuple[int | None, str, SketchBuckets | None]],
    tool: str,
    expected: str,
    source: Source,
    options: ReadOptions,
) -> dict[str, Data]:
    """Return the histogram of each sketch, whose unit is not stated."""
    unit, origin = options.resolve_unit("s", "assumed")
    series: dict[str, Data] = {}
    for line, name, buckets in found:
        if buckets is None:
            seen = "the sketch is corrupt, or contains no requests"
            raise source.corrupt(line, seen, expected, "")
        low, high, counts, stats, notes = buckets
        run = Run(tool=tool, unit=unit, unit_from=origin, notes=notes)
        data = data_from_buckets(low, high, counts, run, stats=stats)
        series[name or f"digest {len(series) + 1}"] = data
    return {"": next(iter(series.values()))} if len(series) == 1 else series


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
    """Buckets of centroids in single precision, which may round them beyond the extremes."""
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


# ------------------------------------------------------------
# Apache DataSketches: KLL and t-digest sketches of numbers, as bytes or base64 (as Druid prints).
#
# KLL keeps values with weights. Up to some hundred of them, all are kept; beyond, the rank of a
# value is known up to an error of 99 % confidence: one here lies between those of the ranks that
# far below and above. A t-digest keeps means of neighbouring values: a value lies between the
# neighbours of its centroid, where no bound is guaranteed. Neither form states the type of its
# numbers, but their lengths and weights fit one width only. Sources: kll_sketch_impl.hpp and
# tdigest_impl.hpp of datasketches-cpp; the package datasketches gives quantiles, not what is kept.

# Preamble longs or ints, serial version, family.
_KLL = (b"\x05\x01\x0f", b"\x02\x01\x0f", b"\x02\x02\x0f")
_TDIGEST = (b"\x02\x01\x14", b"\x01\x01\x14")
_APACHE_BASE64 = re.compile(r"\A(?:BQEP|AgEP|AgIP|AgEU|AQEU)[A-Za-z0-9+/]++=*[ \t]*(?:\n|$)")
_NO_VALUE, _SINGLE = 0b1, 0b100  # flags of KLL; a t-digest's single value is 0b10


def sniff_apache(head: Head) -> Confidence:
    """Recognise the preamble, in bytes or as base64."""
    return certain(head.data.startswith(_KLL + _TDIGEST) or _APACHE_BASE64.match(head.text))


def read_apache(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the sketch, or one per line of base64."""
    found = _encoded(source, _APACHE_BASE64, _of_apache)
    expected = "an intact KLL or t-digest of numbers"
    return _histograms(found, "DataSketches", expected, source, options)


def _of_apache(data: bytes) -> SketchBuckets | None:
    """Return the buckets of a sketch; None where it is empty, or fits no type of numbers."""
    if len(data) < 8 or not data.startswith(_KLL + _TDIGEST):
        return None
    kll = data.startswith(_KLL)
    if data[3 if kll else 5] & _NO_VALUE:
        return None
    return _of_kll(data) if kll else _of_tdigest(data)


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


# ------------------------------------------------------------
# DDSketch: its protobuf message, as bytes and in the JSON form that protobuf defines.
#
# The message does not say which port wrote it, and the ports disagree. Java and Go count a value in
# [b**k, b**(k + 1)) under k, Python and JavaScript one in (b**(k - 1), b**k]; of a logarithmic
# mapping, a bucket here spans both. Of interpolated ones, Java and Go state the gamma of the
# interpolated scale, Python and JavaScript that of the accuracy: the port is known by the reading
# under which the accuracy is a round number. Sources: ddsketch.proto, LogLikeIndexMapping of
# sketches-java, mapping.py of sketches-py.

_MAPPING: Schema = {
    1: ("gamma", "double"),
    2: ("indexOffset", "double"),
    3: ("interpolation", "uint"),
}
_STORE: Schema = {
    1: ("binCounts[]", {1: ("key", "sint"), 2: ("value", "double")}),
    2: ("contiguousBinCounts[]", "double"),
    3: ("contiguousBinIndexOffset", "sint"),
}
_SKETCH: Schema = {
    1: ("mapping", _MAPPING),
    2: ("positiveValues", _STORE),
    3: ("negativeValues", _STORE),
    4: ("zeroCount", "double"),
}
_INTERPOLATIONS = ("NONE", "LINEAR", "QUADRATIC", "CUBIC")
# Slope of the interpolated logarithm (base 2) where it is flattest, times ln 2: what a step of the
# mapping is shortened by to keep its accuracy.
_FLATTEST = {"LINEAR": 1.0, "QUADRATIC": 3 / 4, "CUBIC": 7 / 10}


def _bins(store: JSONObject) -> tuple[Floats, Floats]:
    """Index and count of each bucket of a store."""
    run = json_text.field_of(store, "contiguousBinCounts")
    run = np.array([] if run is None else run, np.float64)
    begin = int(json_text.field_of(store, "contiguousBinIndexOffset") or 0)
    single = json_text.field_of(store, "binCounts") or {}
    if not isinstance(single, dict):
        single = {entry.get("key", 0): entry.get("value", 0.0) for entry in single}
    index = np.append(begin + np.arange(run.size, dtype=np.float64), [*map(int, single)])
    return index, np.append(run, [*map(float, single.values())])


def _power(log: Floats, form: str) -> Floats:
    """The value of which `log` is the interpolated logarithm to the base 2."""
    exponent = np.floor(log)
    part = log - exponent
    if form == "LINEAR":
        significand = 1 + part
    elif form == "QUADRATIC":
        significand = 3 - np.sqrt(4 - 3 * part)
    else:  # Cardano's formula for A s**3 + B s**2 + C s = part
        a, b, c = 6 / 35, -3 / 5, 10 / 7
        d0 = b * b - 3 * a * c
        d1 = 2 * b**3 - 9 * a * b * c - 27 * a * a * part
        p = np.cbrt((d1 - np.sqrt(d1 * d1 - 4 * d0**3)) / 2)
        significand = 1 - (b + p + d0 / p) / (3 * a)
    return np.ldexp(significand, exponent.astype(np.intc))


def _edges(place: Floats, gamma: float, form: str, source: Source) -> tuple[Floats, Floats]:
    """Lower and upper edges of the buckets at some indices, without the offset."""
    if form == "NONE":
        step, after, before = math.log2(gamma), 1, -1
    else:
        flattest = _FLATTEST[form]
        steps = {"Java and Go": math.log2(gamma)}
        if form != "QUADRATIC":
            steps["Python and JavaScript"] = math.log(gamma) / flattest
        accuracy = {port: math.tanh(step * flattest / 2) for port, step in steps.items()}
        ports = [
            port
            for port, share in accuracy.items()
            if len(steps) == 1 or abs(share - float(f"{share:.4g}")) < 1e-9 * share
        ]
        if len(ports) != 1:
            seen = f"its mapping is {form} with gamma {gamma:.12g}, which fits no round accuracy"
            hint = "write it with the logarithmic mapping"
            raise source.corrupt(None, seen, "an accuracy such as 0.01", hint)
        step = steps[ports[0]]
        after, before = (1, 0) if ports[0] == "Java and Go" else (0, -1)
    if (np.abs(place) * step > 900).any():
        raise source.corrupt(None, "a bucket lies beyond any number", "latencies", "")
    if form == "NONE":
        return np.exp2((place + before) * step), np.exp2((place + after) * step)
    return _power((place + before) * step, form), _power((place + after) * step, form)


def sniff_dd(head: Head) -> Confidence:
    """Recognise the mapping, which comes first: its length, and a gamma above 1."""
    begin = head.data[:22]
    if len(begin) < 11 or begin[0] != ord("\n") or begin[1] not in (9, 11, 18, 20) or begin[2] != 9:
        return certain(None)
    try:
        mapping = decode(memoryview(begin[2 : 2 + begin[1]]), _MAPPING, head=True)
    except InvalidArgumentError:
        return certain(None)
    return certain(1 < mapping["gamma"] < 4 and mapping.get("interpolation", 0) < 4)


def read_dd(source: Source, options: ReadOptions, *, binary: bool) -> dict[str, Data]:
    """Read the counts of positive values and of zeros, of a message or of its JSON form."""
    record = decode(memoryview(source.bytes()), _SKETCH) if binary else json_text.load(source)
    mapping = json_text.entry(record, "mapping", source)
    gamma = float(mapping.get("gamma") or 0)
    form = str(mapping.get("interpolation") or "NONE")
    form = _INTERPOLATIONS[int(form)] if form in ("0", "1", "2", "3") else form
    if not 1 < gamma < 4:
        raise source.corrupt(None, f"gamma is {gamma:g}", "a number above 1", "")
    if form not in _INTERPOLATIONS:
        raise source.corrupt(None, f"its mapping is {form}", f"one of {_INTERPOLATIONS}", "")
    index, counts = _bins(json_text.field_of(record, "positiveValues") or {})
    below = float(_bins(json_text.field_of(record, "negativeValues") or {})[1].sum())
    zeros = float(json_text.field_of(record, "zeroCount") or 0)
    everything = np.append(counts, (below, zeros))
    if not ((everything >= 0) & (everything < 2**53) & (everything == np.rint(everything))).all():
        raise source.corrupt(None, "its counts are not counts", "counts of requests", "")
    if not counts.sum() + zeros:
        left = f" but {below:,.0f} negative ones" if below else ""
        raise source.corrupt(None, f"the sketch contains no requests{left}", "at least one", "")
    index, counts = index[counts > 0], counts[counts > 0]
    offset = json_text.field_of(mapping, "indexOffset")
    place = index - float(offset or 0)
    order = np.argsort(place, kind="stable")
    unit, origin = options.resolve_unit("s", "assumed")
    low, high = _edges(place[order], gamma, form, source)
    counts = counts[order]
    notes = []
    if counts.size:
        ratio = float((high / np.maximum(low, 1e-300)).max()) if low.all() else gamma**2
        notes.append(f"each value is known within a factor of {ratio:.3g}, the width of a bucket")
    if zeros:
        low, high, counts = np.append(0.0, low), np.append(0.0, high), np.append(zeros, counts)
    if below:
        notes.append(f"{below:,.0f} negative values left out")
    run = Run(tool="DDSketch", unit=unit, unit_from=origin, notes=tuple(notes))
    return {"": data_from_buckets(low, high, counts, run)}


FORMATS = {
    "t-digest": (sniff, read),
    "datasketches": (sniff_apache, read_apache),
    "ddsketch-json": partial(read_dd, binary=False),
    "ddsketch": (sniff_dd, partial(read_dd, binary=True)),
}
