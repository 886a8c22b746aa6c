"""Data points of OpenTelemetry histograms: attributes, times, edges and counts, whatever the writer's spelling."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.formats.base import Source

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Point", "attributes_of", "point_of"]

_FINEST = 1 << 14


@dataclass(frozen=True)
class Point:
    """One data point: edges and counts of its buckets, and what it states beside them."""

    start: float
    end: float
    low: Floats
    high: Floats
    counts: Ints
    above: int
    least: float | None
    greatest: float | None
    sum: float | None


def attributes_of(point: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Attributes in one form: a mapping, or a list of keys and typed values."""
    given = point.get("attributes") or {}
    if isinstance(given, dict):
        return tuple(sorted((str(name), str(value)) for name, value in given.items()))
    pairs = []
    for one in given:
        lowered = {str(key).lower(): value for key, value in one.items()}
        value = lowered.get("value")
        if isinstance(value, dict):
            value = next((v for k, v in value.items() if k.lower() != "type"), "")
        pairs.append((str(lowered.get("key")), str(value)))
    return tuple(sorted(pairs))


def _stamp(value: Any) -> float:
    """Seconds since the epoch of a time in ISO form or in nanoseconds."""
    import pandas as pd

    text = str(value or 0)
    if re.fullmatch(r"\d+", text):
        return int(text) / 1e9
    try:
        return float(pd.Timestamp(text).value) / 1e9
    except ValueError:
        return 0.0


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def point_of(point: dict[str, Any], source: Source) -> Point | None:
    """One data point, with the edges in the metric's unit; None for gauges and sums."""
    if "scale" in point:
        low, high, counts, above = _exponential(point, source)
    elif "bucketcounts" in point:
        low, high, counts, above = _explicit(point, source)
    else:
        return None
    start = _stamp(point.get("starttime", point.get("starttimeunixnano")))
    end = _stamp(point.get("time", point.get("timeunixnano")))
    least, greatest, total = (_number(point.get(name)) for name in ("min", "max", "sum"))
    if above and greatest is not None and greatest >= (high[-1] if high.size else 0):
        low = np.append(low, high[-1] if high.size else 0.0)
        high, counts, above = np.append(high, greatest), np.append(counts, above), 0
    return Point(start, end, low, high, counts, above, least, greatest, total)


def _exponential(point: dict[str, Any], source: Source) -> tuple[Floats, Floats, Ints, int]:
    scale = int(point["scale"])
    side = point.get("positivebucket") or point.get("positive") or {}
    given = np.array([int(count) for count in side.get("counts") or side.get("bucketcounts") or []], np.int64)
    if given.size > _FINEST or not -10 <= scale <= 20 or (given < 0).any():
        raise source.corrupt(None, f"an exponential histogram of scale {scale} with {given.size} buckets", "scale -10 to 20", "")
    index = int(side.get("offset") or 0) + np.arange(given.size)
    low, high = np.exp2(index / 2.0**scale), np.exp2((index + 1) / 2.0**scale)
    zero = int(point.get("zerocount") or 0)
    if zero:
        threshold = float(point.get("zerothreshold") or 0.0)
        low, high = np.append(0.0, low), np.append(threshold, high)
        given = np.append(zero, given)
    return low, high, given, 0


def _explicit(point: dict[str, Any], source: Source) -> tuple[Floats, Floats, Ints, int]:
    limits = np.array([float(edge) for edge in point.get("bounds") or point.get("explicitbounds") or []])
    counts = np.array([int(count) for count in point["bucketcounts"]], np.int64)
    if counts.size != limits.size + 1:
        raise source.corrupt(None, f"{limits.size} bounds and {counts.size} counts", "one count more than bounds", "")
    if not limits.size:
        return limits, limits, np.zeros(0, np.int64), int(counts.sum())
    low = np.append(min(0.0, limits[0]), limits[:-1])
    return low, limits, counts[:-1], int(counts[-1])
