"""Data points of OpenTelemetry histograms: attributes, times, edges and counts, whatever the writer's spelling."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.blocks import Block, MemoryPart
from latencykit.core.buckets import EdgeBuckets
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import Run
from latencykit.errors import CorruptInputError
from latencykit.io import text as jsontext
from latencykit.io.build import nanoseconds, nanoseconds_of
from latencykit.io.source import Confidence, Format
from latencykit.io.tools.prometheus import family_series, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from latencykit.io.source import Data, Head, ReadOptions, Source

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["FORMATS", "Point", "attributes_of", "point_of"]


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
    given = np.array(
        [int(count) for count in side.get("counts") or side.get("bucketcounts") or []], np.int64
    )
    if given.size > _FINEST or not -10 <= scale <= 20 or (given < 0).any():
        raise source.corrupt(
            None,
            f"an exponential histogram of scale {scale} with {given.size} buckets",
            "scale -10 to 20",
            "",
        )
    index = int(side.get("offset") or 0) + np.arange(given.size)
    low, high = np.exp2(index / 2.0**scale), np.exp2((index + 1) / 2.0**scale)
    zero = int(point.get("zerocount") or 0)
    if zero:
        threshold = float(point.get("zerothreshold") or 0.0)
        low, high = np.append(0.0, low), np.append(threshold, high)
        given = np.append(zero, given)
    return low, high, given, 0


def _explicit(point: dict[str, Any], source: Source) -> tuple[Floats, Floats, Ints, int]:
    limits = np.array(
        [float(edge) for edge in point.get("bounds") or point.get("explicitbounds") or []]
    )
    counts = np.array([int(count) for count in point["bucketcounts"]], np.int64)
    if counts.size != limits.size + 1:
        raise source.corrupt(
            None, f"{limits.size} bounds and {counts.size} counts", "one count more than bounds", ""
        )
    if not limits.size:
        return limits, limits, np.zeros(0, np.int64), int(counts.sum())
    low = np.append(min(0.0, limits[0]), limits[:-1])
    return low, limits, counts[:-1], int(counts[-1])


# ------------------------------------------------------------
# OpenTelemetry metrics as JSON: SDK console exporters and OTLP, exponential and explicit
# histograms.
#
# Keys differ by writer (``DataPoints``, ``data_points``, ``dataPoints``) and are compared without case and underscores.
# Bucket i of scale s holds values above 2**(i / 2**s) up to 2**((i + 1) / 2**s). Source: OpenTelemetry's metrics data model.

_KEYS = re.compile(r'"(?:resource_?metrics|scope_?metrics)"', re.IGNORECASE)


def sniff(head: Head) -> Confidence:
    """Tell the key that holds the metrics."""
    found = head.text.lstrip()[:1] in ("{", "[") and _KEYS.search(head.text)
    return Confidence.CERTAIN if found else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every histogram of a time; several exports of one make a log."""
    notes: list[str] = []
    families: dict[tuple[str, str], dict[tuple[tuple[str, str], ...], list[Point]]] = {}
    modes: dict[tuple[str, str], bool] = {}
    described: dict[tuple[str, str], str] = {}
    for document in _documents(source, notes):
        for metric in _metrics(document):
            key = (str(metric.get("name")), str(metric.get("unit", "")))
            described.setdefault(key, str(metric.get("description") or ""))
            kinds = [metric.get(kind) for kind in ("data", "histogram", "exponentialhistogram")]
            data: dict[str, Any] = next((one for one in kinds if isinstance(one, dict)), {})
            temporality = str(data.get("temporality", data.get("aggregationtemporality", 2)))
            modes[key] = not ("delta" in temporality.lower() or temporality == "1")
            for point in data.get("datapoints") or []:
                held = point_of(point, source)
                if held is not None:
                    families.setdefault(key, {}).setdefault(attributes_of(point), []).append(held)
    found: dict[str, Data] = {}
    for (name, stated), members in families.items():
        unit = unit_of(name, options, stated, described[name, stated])
        if unit is None or stated == "1":
            continue
        run = Run(
            tool="OpenTelemetry SDK",
            measure="service",
            corrected="none",
            unit=unit[0],
            unit_from=unit[1],
            notes=tuple(notes),
        )
        series = [
            (dict(own), _data(points, modes[name, stated], run)) for own, points in members.items()
        ]
        found |= family_series(
            name, [(labels, values) for labels, values in series if values is not None]
        )
    return found


def _documents(source: Source, notes: list[str]) -> Iterator[Any]:
    """Objects one after another: one a line, or spread over lines."""
    text = source.text()
    at, first = 0, True
    while at < len(text):
        begin = re.compile(r"\S").search(text, at)
        if begin is None:
            return
        at = begin.start()
        try:
            value, at = jsontext.parse_next(text, source, at)
        except CorruptInputError as error:
            if first or "ends in the middle" not in error.seen:
                raise
            notes.append("the last object is cut; it was left out")
            return
        first = False
        yield from value if isinstance(value, list) else [value]


def _plain(value: Any) -> Any:
    """The same with keys in lower case and without underscores; attributes keep theirs."""
    if isinstance(value, dict):
        return {
            (key := name.lower().replace("_", "")): item if key == "attributes" else _plain(item)
            for name, item in value.items()
        }
    return (
        [_plain(item) for item in value]
        if isinstance(value, list) and value and isinstance(value[0], dict)
        else value
    )


def _metrics(document: Any) -> Iterator[dict[str, Any]]:
    plain = _plain(document)
    if not isinstance(plain, dict):
        return
    for resource in plain.get("resourcemetrics") or [plain]:
        for scope in resource.get("scopemetrics") or []:
            yield from scope.get("metrics") or []


def _data(points: Sequence[Point], cumulative: bool, run: Run) -> Data | None:
    """One export as a histogram, several as a log of what was counted between them."""
    points = sorted(points, key=lambda one: one.end)
    last = points[-1]
    edges = np.unique(np.concatenate([np.stack([one.high, one.low], 1) for one in points]), axis=0)
    table = np.zeros((len(points), len(edges)), np.int64)
    for row, one in zip(table, points, strict=True):
        np.add.at(row, _rows_of(edges, one), one.counts)
    begin = points[0].start or points[0].end
    if cumulative and len(points) > 1:
        table, fits = _between(table, points)
        if not fits:
            return _single(
                last,
                run.with_notes(
                    "the scale changed between exports: this is the sum since the start, not a log"
                ),
            )
    if len(points) == 1 or any(one.above for one in points):
        return _single(last, run) if cumulative or len(points) == 1 else _added(points, run)
    low, high = (nanoseconds_of(np.maximum(edges[:, k], 0), run.unit) for k in (1, 0))
    low, high = _clipped(low, high, table.sum(axis=0), points, run)
    ends = np.array([one.end for one in points])
    starts = np.append(begin, ends[:-1])
    row, index = np.nonzero(table)
    if not row.size:
        return None
    indptr = np.searchsorted(row, np.arange(len(points) + 1)).astype(np.int64)
    block = Block(
        np.arange(len(points)),
        indptr,
        index.astype(np.int64),
        table[row, index],
        EdgeBuckets(low, high),
    )
    known = run.replace(start=float(begin) or None, duration=float(ends[-1] - begin))
    return HistogramLog(starts - begin, ends - starts, [MemoryPart([block])], run=known)


def _rows_of(edges: Floats, point: Point) -> Ints:
    """Position of each of a point's buckets among all edges."""
    wanted = np.stack([point.high, point.low], 1)
    joined = np.concatenate([edges, wanted])
    _, where = np.unique(joined, axis=0, return_inverse=True)
    return where.reshape(-1)[len(edges) :].astype(np.int64)


def _between(table: Ints, points: Sequence[Point]) -> tuple[Ints, bool]:
    """What was counted since the export before; a new start time means that counting began anew."""
    before = np.concatenate([np.zeros((1, table.shape[1]), np.int64), table[:-1]])
    restarted = [False] + [b.start > a.start + 1e-3 for a, b in pairwise(points)]
    before[np.array(restarted)] = 0
    steps = table - before
    shrank = (steps < 0).any(axis=1)
    anew = shrank & (table.sum(axis=1) < before.sum(axis=1))
    steps[anew] = table[anew]
    return steps, not (shrank & ~anew).any()


def _clipped(
    low: Floats, high: Floats, counts: Ints, points: Sequence[Point], run: Run
) -> tuple[Floats, Floats]:
    """Edges of the outermost buckets, moved to the extremes that the points state."""
    used = np.flatnonzero(counts)
    extremes = [
        [value for one in points if (value := getattr(one, name)) is not None]
        for name in ("least", "greatest")
    ]
    if used.size and len(extremes[0]) == len(extremes[1]) == len(points):
        least, greatest = (
            nanoseconds(min(extremes[0]), run.unit),
            nanoseconds(max(extremes[1]), run.unit),
        )
        first, last = used[0], used[-1]
        if low[last] <= greatest <= high[last]:
            high = np.where(np.arange(high.size) == last, greatest, high)
        if low[first] <= least <= high[first]:
            low = np.where(np.arange(low.size) == first, least, low)
        high = np.maximum.accumulate(high)
    return np.minimum(low, high), high


def _single(point: Point, run: Run) -> Histogram | None:
    """One point as a histogram."""
    count = int(point.counts.sum()) + point.above
    if not count:
        return None
    reported_stats = {
        name: nanoseconds(value, run.unit)
        for name, value in (
            ("min", point.least),
            ("max", point.greatest),
            ("mean", None if point.sum is None else point.sum / count),
        )
        if value is not None
    }
    low, high = (nanoseconds_of(np.maximum(side, 0), run.unit) for side in (point.low, point.high))
    known = run.replace(
        start=point.start or None,
        duration=(point.end - point.start) or None if point.start else None,
    )
    bound = float(high[-1]) if point.above and high.size else 0.0 if point.above else math.inf
    return Histogram.from_buckets(
        low,
        high,
        point.counts,
        run=known,
        reported_stats=reported_stats,
        censored=point.above,
        censored_at=bound,
    )


def _added(points: Sequence[Point], run: Run) -> Histogram | None:
    """Points of their own time, some with values above the last bound, as one histogram."""
    parts = [part for part in (_single(point, run) for point in points) if part is not None]
    return sum(parts[1:], parts[0]) if parts else None


FORMATS = (
    Format(
        name="otel",
        title="OpenTelemetry metrics (JSON: SDK console, OTLP)",
        level="log",
        suffixes=(".json", ".jsonl"),
        sniff=sniff,
        read=read,
        example="OTEL_METRICS_EXPORTER=console my-service > metrics.json   # or the collector's file exporter",
    ),
)
