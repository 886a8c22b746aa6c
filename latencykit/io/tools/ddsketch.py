"""DDSketch: its protobuf message, as bytes and in the JSON form that protobuf defines.

The message does not say which port wrote it, and the ports disagree. Java and Go count a value in
[b**k, b**(k + 1)) under k, Python and JavaScript one in (b**(k - 1), b**k]; of a logarithmic
mapping, a bucket here spans both. Of interpolated ones, Java and Go state the gamma of the
interpolated scale, Python and JavaScript that of the accuracy: the port is known by the reading
under which the accuracy is a round number. Sources: ddsketch.proto, LogLikeIndexMapping of
sketches-java, mapping.py of sketches-py.
"""

from __future__ import annotations

import math

import numpy as np

from latencykit._typing import Floats, JSONObject
from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError
from latencykit.io import json_text
from latencykit.io.build import data_from_buckets
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import certain
from latencykit.io.wire import Schema, decode

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
    return np.ldexp(significand, exponent.astype(np.int64))


def _edges(place: Floats, gamma: float, form: str, source: Source) -> tuple[Floats, Floats]:
    """Both edges of the buckets at some indices, without the offset."""
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


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the JSON form."""
    return _read(json_text.load(source), source, options)


def sniff_protobuf(head: Head) -> Confidence:
    """Recognise the mapping, which comes first: its length, and a gamma above 1."""
    begin = head.data[:22]
    if len(begin) < 11 or begin[0] != ord("\n") or begin[1] not in (9, 11, 18, 20) or begin[2] != 9:
        return certain(None)
    try:
        mapping = decode(memoryview(begin[2 : 2 + begin[1]]), _MAPPING, head=True)
    except InvalidArgumentError:
        return certain(None)
    return certain(1 < mapping["gamma"] < 4 and mapping.get("interpolation", 0) < 4)


def read_protobuf(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the message itself."""
    return _read(decode(memoryview(source.bytes()), _SKETCH), source, options)


def _read(record: JSONObject, source: Source, options: ReadOptions) -> dict[str, Data]:
    """The counts of positive values and of zeros."""
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
    "ddsketch-json": read,
    "ddsketch": (sniff_protobuf, read_protobuf),
}
