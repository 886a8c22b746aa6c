"""Prometheus: text exposition, OpenMetrics, protobuf, and query answers saved as JSON.

A scrape holds classic histograms and summaries, whose counts are since the server began: the
difference of two scrapes (``h2 - h1``) is what lies between them. Native histograms are exposed as
protobuf only: behind lengths, or as text. An answer holds histograms over a range of time
(``query_range``), or at one instant: classic buckets as series labelled ``le``, counters or rates,
and native histograms with their own edges.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from latencykit import errors
from latencykit._arrays import as_positions
from latencykit._text import format_items, natural_key, printable
from latencykit._typing import AnyArray, Floats, JSONObject
from latencykit.core.buckets import EdgeBuckets
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import Run, UnitFrom
from latencykit.io import build, json_text
from latencykit.io.build import word_set
from latencykit.io.source import COMMANDS, Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import certain, has_match
from latencykit.io.wire import Schema, decode, delimited
from latencykit.units import format_value

Labels = tuple[tuple[str, str], ...]
_Families = tuple[dict[str, dict[Labels, "_Metric"]], dict[str, str], dict[str, str]]

_Value = TypeVar("_Value")
RESCALED = "the resolution changed in the range: this is the sum since the start, not a log"
_RATES = "the counts are rates, scaled to a million"
_DASHBOARD = "histogram_quantile interpolates within a bucket and prints"
_NO_TIME = word_set(
    "bytes byte size sizes count counts ratio percent percentage length rows items kb kib mb mib "
    "gb kilobytes megabytes celsius total number depth connections retries attempts"
)
_SIZES = word_set("bytes byte size")
_NO_TIME_SAID = re.compile(
    r"\b(?:in|of)\s+(?:kilo|mega|giga)?(?:bytes?|kib|mib|kb|mb|percent)\b"
    r"|\((?:bytes?|kb|kib|mb|mib|%|percent)\)|^(?:the\s+)?number of\b",
    re.IGNORECASE,
)
# In a sentence: short ones only behind "in" or a bracket, and none of "per second".
_UNIT_SAID = re.compile(
    r"(?:\b(?:in|units?:?)\s{1,9}|[(\[]\s{0,9})([a-zµμ]+)\b"
    r"|(?<!\d)(?<!\d[\s-])(?<!/)(?<!/ )(?<!per )(?<!last )(?<!each )(?<!every )(?<!\ba )(?<!one )"
    r"\b([munacroil]*sec(?:ond)?s?|(?:nano|micro|milli)s)\b",
    re.IGNORECASE,
)
_STATUS = re.compile(r"(?:.*[._])?(?:code|status|status_code|http_status)$", re.IGNORECASE)
_FAILURE = re.compile(
    r"5\d\d|5xx|error|failed|failure|internal|unavailable|deadline_?exceeded", re.IGNORECASE
)
_BAD_OUTCOMES = ("error", "failed", "failure", "server_error", "timeout")


def run_of(
    tool: str, name: str, options: ReadOptions, stated: str | None = None, described: str = ""
) -> Run | None:
    """Return the run of a metric whose values are times, else None."""
    # Its unit is stated, or that of its name or its description, else seconds.
    unit: str | None = None
    origin: UnitFrom = "file"
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    last = len(words) - 1
    named = {
        unit
        for k, word in enumerate(words)
        if k and (len(word) > 1 or k == last) and (unit := build.unit_in(word)) is not None
    }
    if stated and stated.strip():
        unit = build.unit_in(stated)
    elif len(named) == 1 and "per" not in words:
        unit, origin = named.pop(), "format"
    elif "per" in words or set(words[-1:]) & _NO_TIME or set(words[-2:]) & _SIZES:
        return None
    elif name.startswith("nighthawk_"):
        unit, origin = "us", "format"
    elif (unit := unit_said(described)) is None and not _NO_TIME_SAID.search(described):
        unit, origin = options.resolve_unit("s", "assumed")
    if unit is None:
        return None
    return Run(tool=tool, measure="service", corrected="none", unit=unit, unit_from=origin)


def unit_said(text: str) -> str | None:
    """Return the one unit of time that a sentence states for its values, else None."""
    words = [short or long for short, long in _UNIT_SAID.findall(text[:1000])]
    units = {unit for word in words if (unit := build.unit_in(word))}
    return units.pop() if len(units) == 1 else None


def _is_failure(labels: Mapping[str, object]) -> bool:
    """True if a label says that these requests failed: a status of 5xx, or an outcome in words."""
    return any(
        (_STATUS.match(name) and _FAILURE.fullmatch(str(value)))
        or (name.lower() in ("outcome", "result") and str(value).lower() in _BAD_OUTCOMES)
        for name, value in labels.items()
    )


def family_series(family: str, members: Mapping[Labels, Any]) -> Series:
    """Yield the sum of a family, where it can be added, then one series per set of labels."""
    # Series whose labels say that their requests failed are counted apart in the sum. A member
    # without data, in which nothing was counted, is left out.
    parts = [(dict(own), data) for own, data in members.items() if data is not None]
    good = [data for labels, data in parts if not _is_failure(labels)]
    bad = [data for labels, data in parts if _is_failure(labels)]
    totals = [data.histogram() if hasattr(data, "histogram") else data for data in bad]
    failed = sum(int((data.count or 0) + getattr(data, "censored", 0)) for data in totals)
    if len(parts) > 1 and good and all(hasattr(data, "histogram") for data in good):
        # not of unlike units, nor of percentiles that cannot be added
        with contextlib.suppress(errors.LatencyKitError):
            yield family, _sum_of(good, failed)
    for labels, data in parts:
        inner = ",".join(f'{name}="{value}"' for name, value in labels.items())
        yield family + (f"{{{inner}}}" if inner else ""), data  # as a scrape writes them


def _sum_of(parts: Sequence[Any], failed: int) -> Any:
    """All parts together."""
    if len({type(part) for part in parts}) > 1:  # some were exported once, others several times
        parts = [part.histogram() for part in parts]
    total = sum(parts[1:], parts[0])
    notes = [note for note in total.run.notes if not note.startswith(_DASHBOARD)]
    if isinstance(total, Histogram):
        if any(part.reported_percentiles[0] for part in parts):
            raise errors.IncompatibleDataError("printed percentiles cannot be added")
        if len(notes) < len(total.run.notes):
            notes.append(_quantile_note(total))
    if failed:
        notes.append(f"{failed:,} failed requests are counted apart")
    return total.with_run(aggregate=True, failed=failed, unit=parts[0].run.unit, notes=tuple(notes))


def _quantile_note(histogram: Histogram) -> str:
    """The result of Prometheus' ``histogram_quantile``, which people know from a dashboard."""
    buckets, index = histogram.buckets, histogram.index
    ends, total = np.cumsum(histogram.counts), histogram.count + histogram.censored
    ranks = np.stack((ends - histogram.counts, ends), axis=1).ravel()
    values = np.stack((buckets.low(index), buckets.high(index)), axis=1).ravel()
    assert isinstance(buckets, EdgeBuckets)
    top = float(buckets.highs[-1])  # of what lies above it, too
    ranks, values = np.append(ranks, (histogram.count, total)), np.append(values, (top, top))
    found = np.interp(np.nextafter((0.5 * total, 0.99 * total), 0), ranks, values).tolist()
    cells = (format_value(value, histogram.unit) for value in found)
    return "{} p50 {}, p99 {}".format(_DASHBOARD, *cells)


# ------------------------------------------------------------
# One scrape.

_LINE = re.compile(
    r'^([a-zA-Z_:][\w:]*)?[ \t]*(\{(?:[^"{}]|"(?:\\.|[^"\\])*")*\})?[ \t]+(?:=>[ \t]+)?(\S+)'
    r"(?:[ \t]+(?:[\d.]+|@\[[\d.]+\]))?(?:[ \t]+#.*)?[ \t]*$"
)
_LABEL = re.compile(
    r'(?<![\w.])([a-zA-Z_][\w.]*+|"(?:\\.|[^"\\])*+")[ \t]*+=[ \t]*"((?:\\.|[^"\\])*)"'
)
_MOMENT = re.compile(r"^(\S+) @\[([\d.]+)\]", re.MULTILINE)
_PROMTOOL = re.compile(
    r"^([a-zA-Z_:][\w:]*)?(\{[^\n]*\})? =>[ \t]*\n((?:\S+ @\[[\d.]+\][ \t]*\n?)+)", re.MULTILINE
)
_QUOTED_NAME = re.compile(r'\{[ \t]*"((?:\\.|[^"\\])*)"[ \t]*[,}]')
_RUNTIME = (
    "go_", "promhttp_", "process_", "python_", "jvm_", "prometheus_", "scrape_", "nodejs_",
    "net_conntrack_",
)  # fmt: skip
_CLIENT = "Prometheus client"
_NO_DISTRIBUTION = (
    "this summary contains only a sum and a count; a histogram metric would give the distribution"
)


@dataclass
class _Metric:
    """One histogram or summary with one set of labels, as it is collected line by line."""

    edges: dict[float, float] = field(default_factory=dict)
    quantiles: dict[float, float] = field(default_factory=dict)
    sum: float = math.nan
    count: float = math.nan
    line: int = 0
    native: JSONObject | None = None  # as an answer has it


def read(source: Source, options: ReadOptions) -> Series:
    """Read every histogram and summary of a time; the runtime's own only without others."""
    families, units, helps = _families_of(source, options)
    for name, members in _own(families).items():
        run = run_of(_CLIENT, name, options, units.get(name), helps.get(name, ""))
        values = (v for row in members.values() for v in (*row.edges, *row.quantiles.values()))
        most = max(filter(math.isfinite, values), default=0.0)
        if run and run.unit_from == "assumed" and most > 1e7:  # no seconds, but Go's durations
            run = run.replace(unit="ns")
        found = {own: _data(row, run, source) for own, row in members.items()} if run else {}
        yield from family_series(name, found)


def _own(families: dict[str, _Value]) -> dict[str, _Value]:
    """The families of the program itself; the runtime's where there are no others."""
    own = {name: rows for name, rows in families.items() if not name.startswith(_RUNTIME)}
    return own or families


def _families_of(source: Source, options: ReadOptions) -> _Families:
    """Families by name: labels → metric; and the units and descriptions that are stated."""
    if sniff_protobuf(source.head) is not Confidence.NO:
        return _families_in_protobuf(source)
    stated: dict[str, dict[str, str]] = {"TYPE": {}, "UNIT": {}, "HELP": {}}
    types = stated["TYPE"]
    families: dict[str, dict[Labels, _Metric]] = {}
    source.clean(COMMANDS)
    lines = source.text().rstrip().split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            words = line.split()
            if len(words) > 3 and words[1] in stated:
                text = " ".join(words[3:]) if words[1] == "HELP" else words[3]
                stated[words[1]][words[2]] = text
            continue
        row = _LINE.match(line.rstrip("\r"))
        if row is None and (not line.strip() or number == len(lines) or not families):
            continue  # blank, the truncated last line, or words above the first sample
        if row is None:
            seen = f"not a valid sample: {printable(line)!r}"
            options.refuse(source, number, seen, "name{labels} value")
            continue
        quoted = _QUOTED_NAME.match(row[2] or "")
        labels = {key.strip('"'): _unescaped(text) for key, text in _LABEL.findall(row[2] or "")}
        name, value = row[1] or (quoted[1] if quoted else ""), _number(row[3])
        base = re.sub(r"_(?:bucket|g?sum|g?count)$", "", name)
        kind = types.get(base, types.get(name, ""))
        is_bucket = "le" in labels and (not name or name.endswith("_bucket"))
        is_part = name != base and kind in ("histogram", "gaugehistogram", "summary", "")
        if not (is_bucket or "quantile" in labels or is_part):
            continue
        own = tuple((key, text) for key, text in labels.items() if key not in ("le", "quantile"))
        metric = families.setdefault(base, {}).setdefault(own, _Metric(line=number))
        if is_bucket:
            metric.edges[_number(labels["le"])] = value
        elif "quantile" in labels:
            metric.quantiles[_number(labels["quantile"]) * 100] = value
        elif name.endswith("sum"):
            metric.sum = value
        else:
            metric.count = value
    for base, members in families.items():
        if base not in types:  # counters with names in _sum or _count
            families[base] = {
                own: row for own, row in members.items() if row.edges or row.quantiles
            }
    families = {base: members for base, members in families.items() if members}
    return families, stated["UNIT"], stated["HELP"]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _data(metric: _Metric, run: Run, source: Source) -> Data | None:
    """A histogram from buckets or quantiles, else a mean; None where nothing was counted."""
    count = metric.count
    mean = metric.sum / count if count > 0 and math.isfinite(metric.sum) else None
    if metric.native is not None:
        return _native([(0.0, metric.native)], run, source, counters=True)
    if metric.edges:
        if math.isnan(count) and math.inf not in metric.edges:
            run = run.with_notes("the buckets have no +Inf: slower requests may be missing")
        return _from_cumulative(metric.edges, run, source, metric.line, count, mean)
    scale = 0.01 if max(metric.quantiles, default=0.0) > 100 else 1.0  # quantile="99" of some
    points = {p * scale: value for p, value in metric.quantiles.items() if math.isfinite(value)}
    if not (count > 0 or (math.isnan(count) and points)) or (mean is None and not points):
        return None
    window = "quantiles are the client's own, over its sliding window"
    run = run.with_notes(window if points else _NO_DISTRIBUTION)
    number = None if math.isnan(count) else int(count)
    return build.data_from_points(points, number, {"mean": mean}, run, run.unit)


def _from_cumulative(
    edges: dict[float, float],
    run: Run,
    source: Source,
    line: int | None = None,
    count: float = math.nan,
    mean: float | None = None,
) -> Histogram | None:
    """The histogram of counts up to each edge (``le``), censored above the last finite one."""
    # Without a count of all they may be rates, as of a query: then only their shape is known.
    if math.isnan(count) and any(value != round(value) for value in edges.values()):
        run, top = run.with_notes(_RATES), max(edges.values()) or 1.0
        edges = {edge: value / top * 1e6 for edge, value in edges.items()}
    if math.isfinite(count):
        edges = {math.inf: count, **edges}
    limits = np.array(sorted(edge for edge in edges if edge > -math.inf))  # nor not a number
    sums = np.rint([edges[edge] for edge in limits.tolist()])
    counts = np.diff(sums, prepend=0)
    if counts.min() < 0 and sums[:-1].sum() == sums[-1]:  # ghz's are not added up
        counts = np.append(sums[:-1], 0)
    if not (counts >= 0).all():
        seen = "the buckets' counts shrink towards higher edges"
        raise source.corrupt(line, seen, "counts that add up (le is cumulative)")
    if not counts.any() or not np.isfinite(limits).any():
        return None
    moment = np.zeros(1)
    log = log_of_edges(lower_edges(limits)[:-1], limits, counts[None], moment, moment, run)
    stats = build.in_nanoseconds({"mean": mean}, run.unit)
    histogram = replace(log[0], run=run, reported_stats=stats)
    return histogram.with_run(notes=(*run.notes, _quantile_note(histogram)))


def lower_edges(highs: Floats) -> Floats:
    """Return the lower edges of buckets by their upper ones, and that of what lies above them."""
    # The first begins at 0, or below it.
    return np.concatenate(([min(0.0, *highs[:1])], highs))


# ------------------------------------------------------------
# Protobuf, which alone carries native histograms. Sources: metrics.proto of client_model, and the
# specification of native histograms: bucket i of schema s ends at 2**(i / 2**s), its lower edge
# excluded; spans list the indices, and deltas the counts.

_SPAN: Schema = {1: ("offset", "sint"), 2: ("length", "uint")}
_HISTOGRAM: Schema = {
    1: ("sample_count", "uint"), 2: ("sample_sum", "double"), 4: ("sample_count_float", "double"),
    3: ("bucket[]", {
        1: ("cumulative_count", "uint"), 2: ("upper_bound", "double"),
        4: ("cumulative_count_float", "double"),
    }),
    5: ("schema", "sint"), 6: ("zero_threshold", "double"), 7: ("zero_count", "uint"),
    8: ("zero_count_float", "double"), 10: ("negative_delta[]", "sint"),
    11: ("negative_count[]", "double"), 12: ("positive_span[]", _SPAN),
    13: ("positive_delta[]", "sint"), 14: ("positive_count[]", "double"),
}  # fmt: skip
_SUMMARY: Schema = {
    1: ("sample_count", "uint"),
    2: ("sample_sum", "double"),
    3: ("quantile[]", {1: ("quantile", "double"), 2: ("value", "double")}),
}
_METRIC: Schema = {
    1: ("label[]", {1: ("name", "text"), 2: ("value", "text")}),
    4: ("summary", _SUMMARY),
    7: ("histogram", _HISTOGRAM),
}
_FAMILY: Schema = {
    1: ("name", "text"), 2: ("help", "text"), 3: ("type", "uint"), 4: ("metric[]", _METRIC),
    5: ("unit", "text"),
}  # fmt: skip
_ONCE = ("histogram", "summary")  # of the messages; of numbers, only these are repeated:
_REPEATED = ("positive_delta", "positive_count")
_BEGIN = re.compile(r'\s*name\s*:\s*"')
_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')|(?P<open>[{<])|(?P<close>[}>])"""
    r"""|(?P<name>[A-Za-z_]\w*+)(?=\s*+[:{<])|(?P<mark>[:,;])|(?P<number>[^\s{}<>,;:"']++)"""
)


def sniff_protobuf(head: Head) -> Confidence:
    """Recognise the first family: its name, its type and a metric."""
    if _BEGIN.match(head.text):
        return certain(re.search(r"\btype\s*:\s*[A-Z]", head.text) and "metric" in head.text)
    try:
        first = next(delimited(memoryview(head.data), head=True), memoryview(b""))
        family = decode(first, _FAMILY, head=True)
    except errors.InvalidArgumentError:
        return certain(None)
    return certain(
        re.match(r"[^\W\d][ -~]*$", family.get("name", "")) and {"type", "metric"} <= family.keys()
    )


def _families_in_protobuf(source: Source) -> _Families:
    """The families of protobuf as text, or behind lengths."""
    if _BEGIN.match(source.head.text):  # as text, which is made into JSON
        source.json = True  # and its values may be of any type, as in JSON
        text = '{"":0' + _TOKEN.sub(_json_of, source.text()) + "}"
        try:
            messages = json.loads(text, object_pairs_hook=_message)
        except ValueError as error:
            line, expected = getattr(error, "lineno", None), "protobuf's text format"
            raise source.corrupt(line, f"not a field ({error})", expected) from None
        messages = messages if isinstance(messages, list) else [messages]
    else:
        messages = [decode(part, _FAMILY) for part in delimited(memoryview(source.bytes()))]
    families: dict[str, dict[Labels, _Metric]] = {}
    units, helps = {}, {}
    for family in messages:
        name = str(family.get("name"))
        units[name], helps[name] = family.get("unit", ""), family.get("help", "")
        for message in family.get("metric", ()):
            record = message.get("histogram") or message.get("summary") or {}
            count = float(record.get("sample_count_float") or record.get("sample_count", 0))
            metric = _Metric(sum=float(record.get("sample_sum", math.nan)), count=count)
            for bucket in record.get("bucket", ()):
                count = bucket.get("cumulative_count_float") or bucket.get("cumulative_count", 0)
                metric.edges[float(bucket.get("upper_bound", 0.0))] = float(count)
            if metric.edges:
                metric.edges.setdefault(math.inf, metric.count)
            for row in record.get("quantile", ()):
                if not math.isnan(value := float(row.get("value", 0.0))):
                    metric.quantiles[float(row.get("quantile", 0.0)) * 100] = value
            zero = float(record.get("zero_count") or 0)
            if record.get("positive_span") or (zero and not metric.edges):
                edges = _buckets(record, source)
                buckets = np.stack((np.zeros(edges[0].size), *edges), axis=1).tolist()
                metric.native = {"count": metric.count, "sum": metric.sum, "buckets": buckets}
            pairs = message.get("label", ())
            own = tuple((pair.get("name", ""), pair.get("value", "")) for pair in pairs)
            families.setdefault(name, {})[own] = metric
    return families, units, helps


def _json_of(token: re.Match[str]) -> str:
    """A token as JSON has it: numbers as text, and a field without a name before all others."""
    kind, text = str(token.lastgroup), token[0]
    if kind == "text":
        return json.dumps(_unescaped(text[1:-1]))
    known = {"open": '{"":0', "close": "}", "name": f',"{text}":', "mark": ""}
    return known.get(kind, json.dumps(text))


def _message(fields: list[tuple[str, Any]]) -> Any:
    """The fields of a message, or of several: a second name begins the next one."""
    found: list[JSONObject] = [{}]
    for name, value in fields:
        if name == "name" and name in found[-1]:
            found.append({})
        if name in _REPEATED or (isinstance(value, dict) and name not in _ONCE):
            found[-1].setdefault(name, []).append(value)
        else:
            found[-1][name] = value
    return found if len(found) > 1 else found[0]


def _buckets(record: JSONObject, source: Source) -> tuple[Floats, Floats, Floats]:
    """Edges and counts of the buckets of a native histogram, of zero and above it."""
    spans = record.get("positive_span", ())
    deltas = record.get("positive_delta", ())
    counts = np.asarray(record.get("positive_count", ()), np.float64)
    if len(deltas):
        counts = np.cumsum(np.asarray(deltas, np.int64)).astype(np.float64)
    lengths = [int(span.get("length", 0)) for span in spans]
    if sum(lengths) != counts.size or any(length < 0 for length in lengths):
        seen = f"spans of {sum(lengths)} buckets with {counts.size} counts"
        raise source.corrupt(None, f"a native histogram has {seen}", "as many")
    if (counts < 0).any() or not np.isfinite(counts).all():
        raise source.corrupt(None, "a native histogram has negative counts", "counts of requests")
    steps = np.array([int(span.get("offset", 0)) for span in spans], np.float64)
    first = np.cumsum(steps)  # of each span, without the buckets of the spans before
    index = np.repeat(first, as_positions(lengths)) + np.arange(counts.size)
    schema = int(record.get("schema", 0))
    if not -4 <= schema <= 8:
        seen = f"a native histogram of schema {schema}"
        raise source.corrupt(None, seen, "schema -4 to 8, whose buckets are exponential")
    zero = float(record.get("zero_count_float") or record.get("zero_count") or 0)
    threshold = float(record.get("zero_threshold") or 0.0)
    return exponential_buckets(index, counts, schema, zero, threshold)


def exponential_buckets(
    index: AnyArray, counts: AnyArray, scale: int, zero: float, threshold: float
) -> tuple[Floats, Floats, Floats]:
    """Return edges and counts of buckets, with that of zero; bucket i ends at 2**(i / 2**scale)."""
    low, high = (np.exp2((index + step) / 2.0**scale) for step in (-1, 0))
    if zero:
        low, high = np.append(0.0, low), np.maximum.accumulate(np.append(threshold, high))
        counts, low = np.append(zero, counts), np.minimum(low, high)
    return low, high, counts


# ------------------------------------------------------------
# Query answers.


def read_promtool(source: Source, options: ReadOptions) -> Series:
    """Read a range as promtool prints it: a line of labels, and one per moment below it."""
    rows = [
        {
            "metric": ({"__name__": head[1]} if head[1] else {})
            | dict(_LABEL.findall(head[2] or "")),
            "values": [[float(at), value] for value, at in _MOMENT.findall(head[3])],
        }
        for head in _PROMTOOL.finditer(source.text())
    ]
    return _answer({"resultType": "matrix", "result": rows}, source, options)


def read_range(source: Source, options: ReadOptions) -> Series:
    """Read every histogram: a range as a log, an instant as a histogram."""
    record = json_text.load(source)
    answer = record.get("data", record) if isinstance(record, dict) else {}
    if isinstance(record, dict) and record.get("status") == "error":
        seen = f"Prometheus answered with an error ({printable(str(record.get('error')), 80)})"
        raise source.corrupt(None, seen, "a result", "query anew")
    return _answer(answer, source, options)


def _answer(answer: JSONObject, source: Source, options: ReadOptions) -> Series:
    kind, results = answer.get("resultType"), json_text.entry(answer, "result", source, list)
    if kind not in ("matrix", "vector"):
        expected = "a matrix (query_range) or a vector"
        raise source.corrupt(None, f"the answer is a {kind}", expected)
    families: dict[str, dict[Labels, Any]] = {}  # rows of buckets, or a client's quantiles
    for row in results:
        labels = dict(json_text.entry(row, "metric", source))
        name = str(labels.pop("__name__", "")).removesuffix("_bucket")
        if "le" in labels or row.get("histograms") or row.get("histogram"):
            own = tuple(sorted((key, value) for key, value in labels.items() if key != "le"))
            families.setdefault(name, {}).setdefault(own, []).append(row)
        elif "quantile" in labels and row.get("value"):
            level, own = _number(labels.pop("quantile")) * 100, tuple(sorted(labels.items()))
            metric = families.setdefault(name, {}).setdefault(own, _Metric())
            metric.quantiles[level] = _number(row["value"][1])
    if not families:
        seen = "no series has the label le" if results else "the answer contains no series"
        hint = (
            "query the buckets, such as sum by (le) (rate(x_bucket[1m])), "
            "not histogram_quantile of them"
        )
        raise source.corrupt(None, seen, "buckets of a histogram", hint)
    for name, members in families.items():
        run = run_of("Prometheus", name, options)
        found: dict[Labels, Data | None] = {}
        if run is None:
            continue
        for own, rows in members.items():
            if isinstance(rows, _Metric):
                found[own] = _data(rows, run, source)
                continue
            named = "__name__" in rows[0]["metric"]
            native = rows[0].get("histograms") or [rows[0].get("histogram")]
            if native[0]:
                found[own] = _native(native, run, source, counters=named)
                continue
            rows = sorted(rows, key=lambda row: float(row["metric"]["le"]))
            limits = np.array([float(row["metric"]["le"]) for row in rows])
            if kind != "matrix" or all(len(row["values"]) < 2 for row in rows):
                values = (float((row.get("value") or row["values"][0])[1]) for row in rows)
                edges = dict(zip(limits.tolist(), values, strict=True))
                found[own] = _from_cumulative(edges, run, source)
                continue
            times = np.unique(
                np.concatenate([[float(t) for t, _ in row["values"]] for row in rows])
            )
            table = np.full((times.size, limits.size), np.nan)
            for column, row in enumerate(rows):
                stamps, cells = np.array(row["values"], dtype=np.float64).T
                table[np.searchsorted(times, stamps), column] = cells
            found[own] = _classic(limits, times, np.nan_to_num(table), run, counters=named)
        yield from family_series(name, found)


# ------------------------------------------------------------
# A directory of scrapes.

_SEVERAL = 2
_LOOKED_AT = 20
"""Files of a directory that are looked at to recognise it."""

_STAMP = re.compile(r"(20\d\d)-?(\d\d)-?(\d\d)[T_ -]?(\d\d)[:_-]?(\d\d)[:_-]?(\d\d)")
_EPOCH = re.compile(r"(?<!\d)(1\d{9})(\d{3})?(?!\d)")


sniff = has_match(
    r"^# TYPE \S+ [a-z]+\s*$"
    r'|^(?:[a-zA-Z_:][\w:]*_bucket)?\{[^}\n]*\ble="|^[a-zA-Z_:][\w:]*\{[^}\n]*\bquantile="',
    confidence=Confidence.LIKELY,
)


def _is_scrape(head: Head) -> Confidence:
    return max(sniff(head), sniff_protobuf(head))


def sniff_scrapes(head: Head) -> Confidence:
    """Recognise a directory with two scrapes or more."""
    if not head.is_dir or head.path is None:
        return Confidence.NO
    scrapes = 0
    for path in islice(_files_of(head.path), _LOOKED_AT):
        scrapes += _is_scrape(Source(path).head) is not Confidence.NO
    return Confidence.LIKELY if scrapes >= _SEVERAL else Confidence.NO


def _files_of(folder: Path) -> Iterator[Path]:
    """The visible files of a directory, as people sort them."""
    names = sorted((path.name for path in folder.iterdir()), key=natural_key)
    return (folder / name for name in names if name[0] != "." and (folder / name).is_file())


def read_scrapes(source: Source, options: ReadOptions) -> Series:
    """Read the scrapes of a directory as logs over time: what was counted between two of them."""
    if not source.path.is_dir():
        raise source.corrupt(None, "this is a file", "a directory of scrapes")
    scrapes = []
    for path in _files_of(source.path):
        scrape = Source(path)
        if _is_scrape(scrape.head) is Confidence.NO:
            continue
        # the time in its name (UTC), else that of the file
        stamp, epoch = _STAMP.search(path.name), _EPOCH.search(path.name)
        made = int(epoch[1]) + int(epoch[2] or 0) / 1e3 if epoch else path.stat().st_mtime
        if stamp is not None:
            with contextlib.suppress(ValueError):
                made = datetime(*map(int, stamp.groups()), tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]
        try:
            scrapes.append((made, _families_of(scrape, options)))
        except errors.CorruptInputError as error:
            options.reject(error)
    scrapes.sort(key=lambda scrape: scrape[0])
    times = [moment for moment, _ in scrapes]
    if len(set(times)) < len(times):
        hint = "name them like metrics-20260101-120000.txt"
        seen, expected = "two scrapes are of the same time", "a time in each file's name"
        raise source.corrupt(None, seen, expected, hint)
    found: dict[str, dict[Labels, list[tuple[float, _Metric]]]] = {}
    units: dict[str, str] = {}
    helps: dict[str, str] = {}
    for moment, (families, stated, described) in scrapes:
        units |= stated
        helps |= described
        for name, members in families.items():
            for own, metric in members.items():
                if metric.edges or metric.native is not None:
                    found.setdefault(name, {}).setdefault(own, []).append((moment, metric))
    steps = np.diff(times)
    usual = float(np.median(steps)) if steps.size else 0.0
    missing = int(np.rint(steps / usual - 1).clip(0).sum()) if usual else 0
    scrapes_are = f"{format_items(missing, 'scrape')} {'is' if missing == 1 else 'are'}"
    gaps = [f"{scrapes_are} missing: an interval spans the gap"] if missing else []
    for name, by_labels in _own(found).items() if len(times) > 1 else ():
        run = run_of(_CLIENT, name, options, units.get(name), helps.get(name, ""))
        if run is None:
            continue
        run = run.with_notes(*gaps)
        changes: dict[Labels, Data | None] = {}
        for own, moments in by_labels.items():
            first, metric = moments[0]
            # from the scrape on that lacks the labels: nothing had been counted by then
            if before := [moment for moment in times if moment < first]:
                edges = dict.fromkeys(metric.edges, 0.0)
                zero = replace(metric, edges=edges, native=metric.native and {})
                moments.insert(0, (before[-1], zero))
            native = [(at, row.native) for at, row in moments if row.native is not None]
            if native:
                changes[own] = _native(native, run, source, counters=True)
                continue
            limits = np.array(sorted(set.intersection(*(set(row.edges) for _, row in moments))))
            table = [[row.edges[edge] for edge in limits.tolist()] for _, row in moments]
            stamps = np.array([moment for moment, _ in moments])
            changes[own] = _classic(limits, stamps, np.array(table), run, counters=True)
        yield from family_series(name, changes)


def _classic(
    limits: Floats, times: Floats, table: Floats, run: Run, *, counters: bool
) -> Data | None:
    """Counts up to each edge over time: differences of counters, or rates times the step."""
    restarted = np.any(np.diff(table, axis=0) < 0, axis=1)
    steps = _steps(table, times, run, counters, restarted, "; counts are rate x step, rounded")
    assert steps is not None
    counts, starts, lengths, run = steps
    if not counts.size or not counts.any() or not np.isfinite(limits).any():
        return None
    # A rounding error must not make a count negative.
    cumulative = np.rint(np.maximum.accumulate(counts, axis=1))
    per_bucket = np.diff(cumulative, prepend=0, axis=1)
    return log_of_edges(lower_edges(limits)[:-1], limits, per_bucket, starts, lengths, run)


def _steps(
    table: Floats,
    times: Floats,
    run: Run,
    counters: bool,
    restarted: AnyArray | bool = False,
    how: str = "",
) -> tuple[Floats, Floats, Floats, Run] | None:
    """What was counted in each interval, and their starts and lengths; see `increments`."""
    # Rates per second are multiplied by the steps that they end. Whole numbers that never shrink
    # are counters, whatever is known of them.
    whole = len(table) > 1 and (table == np.rint(table)).all()
    if not counters and not (whole and (np.diff(table, axis=0) >= 0).all()):
        step = float(np.median(np.diff(times))) if times.size > 1 else 60.0
        run = run.with_notes(f"the values are taken as rates per second (rate()){how}")
        return table * step, times - step, np.full(times.size, step), run
    counted = increments(table, run, restarted)
    return counted and (counted[0], times[:-1], np.diff(times), counted[1])


def increments(table: Floats, run: Run, restarted: AnyArray | bool) -> tuple[Floats, Run] | None:
    """Return what was counted between samples of counters; None where their buckets changed."""
    # Where a count began anew, or fewer are counted than before, the value is the increment.
    steps = np.diff(table, axis=0)
    shrank = (steps < 0).any(axis=1)
    reset = restarted | (shrank & (steps.sum(axis=1) < 0))
    if (shrank & ~reset).any():
        return None
    steps[reset] = table[1:][reset]
    if number := int(reset.sum()):
        run = run.with_notes(f"the counters were reset {format_items(number, 'time')} in the range")
    return steps, run


def log_of_edges(
    low: Floats, high: Floats, counts: AnyArray, starts: Floats, lengths: Floats, run: Run
) -> HistogramLog:
    """Return counts per interval and bucket as a log; buckets without an upper edge become one."""
    counts = counts.astype(np.int64)
    low, high = build.nanoseconds_of(low, run.unit), build.nanoseconds_of(high, run.unit)
    closed = np.isfinite(high)
    if not closed.all():
        size = np.count_nonzero(closed) + 1
        counts = np.column_stack((counts[:, closed], counts[:, ~closed].sum(axis=1)))
        low = low[:size]
        high = np.append(high[closed], max(low[-1], *high[closed][-1:]))
    buckets = EdgeBuckets(low, high, open_ended=not closed.all())
    begin, end = float(starts[0]), float(starts[-1] + lengths[-1])
    run = run.replace(start=begin, duration=float(end - starts[0]))
    unit = build.base_unit(run.unit)
    return build.log_of_counts(counts, buckets, starts - begin, lengths, unit=unit, run=run)


def _native(samples: list[Any], run: Run, source: Source, *, counters: bool) -> Data | None:
    """Native histograms: each sample lists its own buckets as [rule, low, high, count]."""
    times = np.array([float(stamp) for stamp, _ in samples])
    rows = [
        (place, *map(float, edges))
        for place, (_, sample) in enumerate(samples)
        for _, *edges in sample.get("buckets") or ()
    ]
    if not rows:
        return None
    table = np.array(rows)
    if np.isnan(table).any() or not np.isfinite(table[:, 3]).all() or (table[:, 3] < 0).any():
        seen = "a native histogram with edges or counts that are not numbers"
        raise source.corrupt(None, seen, "finite ones")
    below = table[:, 2] <= 0
    table, left_out = table[~below], bool(below.any())
    edges, where = np.unique(table[:, 2:0:-1], axis=0, return_inverse=True)
    counts = np.zeros((times.size, len(edges)))
    counts[table[:, 0].astype(np.int64), where.reshape(-1)] = table[:, 3]
    stats: dict[str, float] = {}
    if times.size == 1:
        total, values = (float(samples[0][1].get(key, 0)) for key in ("count", "sum"))
        left_out = left_out or round(total) > round(counts.sum())
        if not left_out and total > 0 and math.isfinite(values):
            stats = build.in_nanoseconds({"mean": values / total}, run.unit)
        if (counts != np.rint(counts)).any():  # a rate: only the shape is known
            run = run.with_notes(_RATES)
            counts = counts / counts.sum() * 1e6
        starts = lengths = np.zeros(1)
    else:
        steps = _steps(counts, times, run, counters)
        if steps is None:
            return _native(samples[-1:], run.with_notes(RESCALED), source, counters=counters)
        counts, starts, lengths, run = steps
    counts = np.rint(counts)
    if not counts.any():
        return None
    if left_out:
        run = run.with_notes("values below 0, or not a number, left out")
    # An outermost bucket may have no edge: below the first, or above the last.
    low, high = (np.maximum(edges[:, k], 0) for k in (1, 0))
    log = log_of_edges(low, high, counts, starts, lengths, run)
    return log if times.size > 1 else replace(log[0], run=run, reported_stats=stats)


FORMATS = {
    "prometheus": (sniff, read),
    "prometheus-scrapes": (sniff_scrapes, read_scrapes),
    "prometheus-protobuf": (sniff_protobuf, read),
    "promtool-range": (has_match(_PROMTOOL), read_promtool),
    "prometheus-json": read_range,
}
