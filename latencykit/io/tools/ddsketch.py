"""DDSketch as JSON: its protobuf message in the JSON form that protobuf defines.

The ports disagree by one: Java and Go count a value in [gamma**k, gamma**(k + 1)) under k, Python
and JavaScript one in (gamma**(k - 1), gamma**k]. The message does not say whose it is, so a bucket
here spans both. Sources: ddsketch.proto, sketches-java's LogLikeIndexMapping, mapping.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import base_unit, nanoseconds_of
from latencykit.io.source import Format
from latencykit.io.text import has_json_keys

if TYPE_CHECKING:
    from latencykit.io.source import Data, ReadOptions, Source

__all__ = ["FORMATS"]


def _key(record: dict[str, Any], name: str) -> Any:
    """A field by its name in JSON or in the proto file (``zeroCount``, ``zero_count``)."""
    snake = "".join(f"_{one.lower()}" if one.isupper() else one for one in name)
    return record.get(name, record.get(snake))


def _bins(store: dict[str, Any]) -> tuple[list[int], list[float]]:
    """Index and count of each bucket of a store."""
    run = [float(count) for count in _key(store, "contiguousBinCounts") or []]
    begin = int(_key(store, "contiguousBinIndexOffset") or 0)
    single = _key(store, "binCounts") or {}
    index = [*range(begin, begin + len(run)), *map(int, single)]
    return index, [*run, *map(float, single.values())]


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the counts of positive values and of zeros."""
    record = jsontext.load(source)
    mapping = jsontext.entry(record, "mapping", source)
    gamma = float(mapping.get("gamma") or 0)
    form = str(mapping.get("interpolation") or "NONE")
    if not 1 < gamma < 4:
        raise source.corrupt(None, f"gamma is {gamma:g}", "a number above 1", "")
    if form not in ("NONE", "0"):
        hint = "write it with the logarithmic mapping"
        raise source.corrupt(None, f"its mapping is {form}", "interpolation NONE", hint)
    index, weights = _bins(_key(record, "positiveValues") or {})
    below = sum(_bins(_key(record, "negativeValues") or {})[1])
    counts = np.array(weights, np.float64)
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts != np.rint(counts)).any():
        raise source.corrupt(None, "its counts are not whole", "counts of requests", "")
    place = np.array(index, np.float64) - float(_key(mapping, "indexOffset") or 0)
    order = np.argsort(place, kind="stable")
    place, counts = place[order], counts[order]
    if (np.abs(place) * np.log(gamma) > 600).any():
        raise source.corrupt(None, "a bucket lies beyond any number", "latencies", "")
    unit, origin = options.resolve_unit("s", "assumed")
    low, high = (nanoseconds_of(gamma ** (place + step), unit) for step in (-1, 1))
    zeros = float(_key(record, "zeroCount") or 0)
    if zeros:
        low, high, counts = np.append(0.0, low), np.append(0.0, high), np.append(zeros, counts)
    notes = [f"each value is known within a factor of {gamma**2:.3g}, the width of a bucket"]
    if below:
        notes.append(f"{below:,.0f} negative values left out")
    run = Run(tool="DDSketch", unit=unit, unit_from=origin, notes=tuple(notes))
    if not counts.sum():
        raise source.corrupt(None, "the sketch is empty", "counts", "")
    return {"": Histogram.from_buckets(low, high, counts, base_unit(unit), run=run)}


FORMATS = (
    Format(
        "ddsketch-json", "DDSketch (protobuf's JSON)", "histogram", (".json",),
        has_json_keys(
            ("mapping", "gamma", "positiveValues"), ("mapping", "gamma", "positive_values")
        ),
        read, example="my-service --sketch > sketch.json   # JsonFormat.printer().print(proto)",
    ),
)  # fmt: skip
