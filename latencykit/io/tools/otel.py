"""OpenTelemetry metrics: SDK console exporters and OTLP, both kinds of histograms.

Keys differ by writer (``DataPoints``, ``data_points``, ``dataPoints``) and are compared without
case and underscores. Bucket i of an exponential histogram of scale s holds values above
2**(i / 2**s) up to 2**((i + 1) / 2**s). OTLP comes as JSON and as protobuf.
Sources: OpenTelemetry's metrics data model, metrics.proto, the file exporter's README.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from latencykit._arrays import as_positions
from latencykit._records import record
from latencykit._text import format_items
from latencykit._typing import AnyArray, Floats, Ints, JSONObject
from latencykit.core.run import Note, Run
from latencykit.io import build, json_text
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import certain, has_match, plain
from latencykit.io.tools import prometheus
from latencykit.io.wire import Schema, first, messages

Labels = tuple[tuple[str, str], ...]

_TOOL = "OpenTelemetry SDK"
_FINEST = 1 << 14
_KEYS = re.compile(r'"(?:resource_?metrics|scope_?metrics)"', re.IGNORECASE)

# The messages of metrics.proto, by the names that `_plain` gives the keys of their JSON.
_VALUE: Schema = {
    1: ("string", "text"), 2: ("bool", "bool"), 3: ("int", "int"), 4: ("double", "double"),
}  # fmt: skip
_ATTRIBUTE: Schema = {1: ("key", "text"), 2: ("value", _VALUE)}
_SIDE: Schema = {1: ("offset", "sint"), 2: ("bucketcounts[]", "uint")}
_EXPLICIT: Schema = {
    2: ("starttimeunixnano", "fixed64"), 3: ("timeunixnano", "fixed64"), 5: ("sum", "double"),
    6: ("bucketcounts[]", "fixed64"), 7: ("explicitbounds[]", "double"),
    9: ("attributes[]", _ATTRIBUTE), 11: ("min", "double"), 12: ("max", "double"),
}  # fmt: skip
_EXPONENTIAL: Schema = {
    1: ("attributes[]", _ATTRIBUTE), 2: ("starttimeunixnano", "fixed64"),
    3: ("timeunixnano", "fixed64"), 5: ("sum", "double"), 6: ("scale", "sint"),
    7: ("zerocount", "fixed64"), 8: ("positive", _SIDE), 9: ("negative", _SIDE),
    12: ("min", "double"), 13: ("max", "double"), 14: ("zerothreshold", "double"),
}  # fmt: skip
_METRIC: Schema = {
    1: ("name", "text"), 2: ("description", "text"), 3: ("unit", "text"),
    5: ("gauge", {}), 7: ("counter", {}), 11: ("summary", {}),
    9: ("histogram", {1: ("datapoints[]", _EXPLICIT), 2: ("aggregationtemporality", "uint")}),
    10: (
        "exponentialhistogram",
        {1: ("datapoints[]", _EXPONENTIAL), 2: ("aggregationtemporality", "uint")},
    ),
}  # fmt: skip
_KINDS = ("gauge", "counter", "histogram", "exponentialhistogram", "summary")
_EXPORT: Schema = {1: ("resourcemetrics[]", {2: ("scopemetrics[]", {2: ("metrics[]", _METRIC)})})}


# Lines of the debug exporter.
_DIGITS = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_BOUND = re.compile(rf"^ExplicitBounds #\d+: ({_DIGITS})$", re.MULTILINE)
_COUNT = re.compile(r"^Buckets #\d+, Count: (\d{1,18})$", re.MULTILINE)
_FACT = re.compile(r"^ +-> (Name|Unit|Description|AggregationTemporality): (.*)$", re.MULTILINE)
_LABEL = re.compile(r"^ +-> (\S+): \w+\((.*)\)$", re.MULTILINE)
_TIME = re.compile(r"Timestamp: (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) \+0000 UTC")
_STATISTIC = re.compile(rf"^(Sum|Min|Max): ({_DIGITS})$", re.MULTILINE)


@record()
class _Point:
    """One data point: edges (in the metric's unit) and counts of its buckets, and statistics."""

    start: float
    end: float
    low: Floats
    high: Floats
    counts: AnyArray
    stats: dict[str, float]


def _attributes_of(point: JSONObject) -> Labels:
    """Attributes in one form: a mapping, or a list of keys and typed values."""
    attributes = point.get("attributes") or {}
    if isinstance(attributes, dict):
        return tuple(sorted((str(name), str(value)) for name, value in attributes.items()))
    pairs = []
    for attribute in attributes:
        lowered = {str(key).lower(): value for key, value in attribute.items()}
        value = lowered.get("value")
        if isinstance(value, dict):
            value = next((v for k, v in value.items() if k.lower() != "type"), "")
        pairs.append((str(lowered.get("key")), str(value)))
    return tuple(sorted(pairs))


def _seconds(value: object) -> float:
    """Seconds since the epoch of a time in ISO form or in nanoseconds."""
    text = str(value or 0)
    return int(text) / 1e9 if re.fullmatch(r"\d+", text) else build.epoch_seconds(text) or 0.0


def _counts(record: JSONObject, *names: str) -> Ints:
    """The counts under the first of some names; JSON writes them as text."""
    listed = next((record[name] for name in names if record.get(name) is not None), ())
    return np.array([int(count) for count in listed], np.int64)


def _point_of(point: JSONObject, source: Source) -> _Point | None:
    """One data point; None for gauges and sums."""
    if not point.keys().isdisjoint(("scale", "positive", "positivebucket", "zerocount")):
        scale = int(point.get("scale") or 0)  # protobuf leaves zeros out
        side = point.get("positivebucket") or point.get("positive") or {}
        counts: AnyArray = _counts(side, "counts", "bucketcounts")
        if counts.size > _FINEST or not -10 <= scale <= 20 or (counts < 0).any():
            seen = f"an exponential histogram of scale {scale} with {counts.size} buckets"
            raise source.corrupt(None, seen, "scale -10 to 20")
        index = int(side.get("offset") or 0) + 1 + np.arange(counts.size)
        zero, threshold = int(point.get("zerocount") or 0), float(point.get("zerothreshold") or 0)
        low, high, counts = prometheus.exponential_buckets(index, counts, scale, zero, threshold)
    elif "bucketcounts" in point:
        edges = point.get("bounds", point.get("explicitbounds"))
        high = np.array([] if edges is None else edges, np.float64)
        counts = _counts(point, "bucketcounts")
        if counts.size != high.size + 1:
            seen = f"{high.size} bounds and {counts.size} counts"
            raise source.corrupt(None, seen, "one count more than bounds")
        low, high = prometheus.lower_edges(high), np.append(high, np.inf)
    else:
        return None
    start = _seconds(point.get("starttime", point.get("starttimeunixnano")))
    end = _seconds(point.get("time", point.get("timeunixnano")))
    names = ("min", "max", "sum")
    stats = {name: float(point[name]) for name in names if point.get(name) is not None}
    if not (np.isfinite(low).all() and (low <= high).all()):
        seen = "a histogram whose bounds do not ascend, or are not numbers"
        raise source.corrupt(None, seen, "ascending bounds")
    if counts.size and counts[-1] and high[-1] == np.inf and stats.get("max", -1.0) >= low[-1]:
        high = np.append(high[:-1], stats["max"])
    if end < start:
        seen = "a histogram whose time is missing or lies before its start time"
        raise source.corrupt(None, seen, "the time of the export")
    return _Point(start, end, low, high, counts, stats)


def read(source: Source, options: ReadOptions) -> Series:
    """Read every histogram of a time; several exports of one make a log."""
    notes: list[str] = []
    cut = Note("the last object is truncated; it was left out")
    documents = json_text.values(source.text(), source, notes, cut)  # one per line, or over lines
    return _series(_metrics(map(_plain, documents)), notes, source, options)


def sniff_protobuf(head: Head) -> Confidence:
    """Recognise the first metric: its name and its kind of data."""
    metric = first(head.data, _EXPORT, "resourcemetrics", "scopemetrics", "metrics")
    named = re.match(r"[A-Za-z][ -~]*$", metric.get("name", ""))
    return certain(named and not metric.keys().isdisjoint(_KINDS))


def read_protobuf(source: Source, options: ReadOptions) -> Series:
    """Read the same from protobuf."""
    exports = messages(memoryview(source.bytes()), _EXPORT)
    return _series(_metrics(exports), [], source, options)


def _series(
    metrics: Iterator[JSONObject], notes: list[str], source: Source, options: ReadOptions
) -> Series:
    """The series of metrics in the form of `_plain`."""
    families: dict[tuple[str, str], dict[Labels, list[_Point]]] = {}
    facts: dict[tuple[str, str], tuple[str, bool]] = {}  # description, and whether it is cumulative
    negative: Counter[tuple[str, str]] = Counter()
    for metric in metrics:
        key = (str(metric.get("name")), str(metric.get("unit", "")))
        kinds = [metric.get(kind) for kind in ("data", "histogram", "exponentialhistogram")]
        data: dict[str, Any] = next((kind for kind in kinds if isinstance(kind, dict)), {})
        temporality = str(data.get("temporality", data.get("aggregationtemporality", 2)))
        delta = "delta" in temporality.lower() or temporality == "1"
        facts[key] = str(metric.get("description") or ""), not delta
        for entry in data.get("datapoints") or []:
            below = entry.get("negative", entry.get("negativebucket")) or {}
            negative[key] += int(_counts(below, "counts", "bucketcounts").sum())
            point = _point_of(entry, source)
            if point is not None:
                families.setdefault(key, {}).setdefault(_attributes_of(entry), []).append(point)
    for (name, stated), members in families.items():
        described, cumulative = facts[name, stated]
        run = None if stated == "1" else prometheus.run_of(_TOOL, name, options, stated, described)
        if run is None:
            continue
        number = negative[name, stated]
        left_out = [f"{format_items(number, 'negative value')} left out"] if number else []
        run = run.with_notes(*notes, *left_out)
        found = {own: _data(points, run, cumulative) for own, points in members.items()}
        yield from prometheus.family_series(name, found)


def _metrics(exports: Iterable[object]) -> Iterator[JSONObject]:
    """The metrics of all resources and scopes."""
    for export in exports:
        record: JSONObject = export if isinstance(export, dict) else {}
        for resource in record.get("resourcemetrics") or [record]:
            for scope in resource.get("scopemetrics") or ():
                yield from scope.get("metrics") or ()


def read_debug(source: Source, options: ReadOptions) -> Series:
    """Read the histograms that the collector's debug exporter prints."""
    return _series(_printed(source), [], source, options)


def _printed(source: Source) -> Iterator[JSONObject]:
    """Metrics as text, in the form of `_plain`; exponential buckets are not printed so."""
    for block in plain(source.text()).split("Descriptor:"):  # of the first, the name may be cut
        head, *points = re.split(r"^HistogramDataPoints #\d+", block, flags=re.MULTILINE)
        found = {name.lower(): value for name, value in _FACT.findall(head)}
        facts = {"name": "histogram"} | found
        listed = []
        for point in points:
            labels, _, body = point.partition("StartTimestamp:")
            times = [f"{day}T{time}Z" for day, time in _TIME.findall(point)]
            if len(times) < 2:
                seen = "a data point without times"
                raise source.corrupt(None, seen, "StartTimestamp, Timestamp")
            rows = {name.lower(): value for name, value in _STATISTIC.findall(body)}
            listed.append({
                **rows, "attributes": dict(_LABEL.findall(labels)),
                "starttime": times[0], "time": times[-1],
                "explicitbounds": _BOUND.findall(body),
                "bucketcounts": _COUNT.findall(body),
            })  # fmt: skip
        yield facts | {"histogram": facts | {"datapoints": listed}}


def _plain(value: object) -> object:
    """A value with its keys in lower case, without underscores; attributes keep theirs."""
    if isinstance(value, dict):
        plain = {name.lower().replace("_", ""): item for name, item in value.items()}
        return {key: v if key == "attributes" else _plain(v) for key, v in plain.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [_plain(item) for item in value]
    return value


def _data(points: Sequence[_Point], run: Run, cumulative: bool) -> Data | None:
    """One export as a histogram, several as a log of what was counted between them."""
    points = sorted(points, key=lambda point: point.end)
    pairs = [np.stack([point.high, point.low], 1) for point in points]
    edges, where = np.unique(np.concatenate(pairs), axis=0, return_inverse=True)
    table = np.zeros((len(points), len(edges)))
    rows = np.repeat(np.arange(len(points)), as_positions([len(pair) for pair in pairs]))
    np.add.at(table, (rows, where.reshape(-1)), np.concatenate([p.counts for p in points]))
    if cumulative:  # a new start time means a new count
        anew = [False, *(b.start > a.start + 1e-3 for a, b in pairwise(points))]
        counted = prometheus.increments(
            np.vstack((np.zeros(len(edges)), table)), run, np.array(anew)
        )
        if counted is None:
            return _data(points[-1:], run.with_notes(prometheus.RESCALED), cumulative)
        table, run = counted
    used = table.any(axis=0)
    if not used.any():
        return None
    table, (high, low) = table[:, used], np.maximum(edges[used], 0).T
    # The edges of the outermost buckets are moved to the extremes that the points state.
    extremes = [[p.stats[name] for p in points if name in p.stats] for name in ("min", "max")]
    if len(extremes[0]) == len(extremes[1]) == len(points) > 1:
        least, greatest = min(extremes[0]), max(extremes[1])
        high[-1] = greatest if low[-1] <= greatest <= high[-1] else high[-1]
        low[0] = least if low[0] <= least <= high[0] else low[0]
    ends = np.array([point.end for point in points])
    starts = np.append(points[0].start or ends[0], ends[:-1])
    log = prometheus.log_of_edges(low, high, table, starts, ends - starts, run)
    if len(points) > 1:
        return log
    (last,), total = points, float(table.sum())
    stats = last.stats | ({"mean": last.stats["sum"] / total} if "sum" in last.stats else {})
    stats = build.in_nanoseconds({k: v for k, v in stats.items() if k != "sum"}, run.unit)
    seconds = (last.end - last.start) or None if last.start else None
    run = run.replace(start=last.start or None, duration=seconds)
    return replace(log[0], run=run, reported_stats=stats)


FORMATS = {
    "otel-debug": (
        has_match(r"^HistogramDataPoints #\d", r"^StartTimestamp: \d", r"^Buckets #\d+, Count: \d"),
        read_debug,
    ),
    "otel": (has_match(r"\A\s*[{\[]", _KEYS), read),
    "otel-protobuf": (sniff_protobuf, read_protobuf),
}
