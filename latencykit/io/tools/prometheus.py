"""Monitoring metrics: families of labelled series, their names, their units, and the sum of a family."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.blocks import Block, MemoryPart
from latencykit.core.buckets import EdgeBuckets
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import Run
from latencykit.errors import IncompatibleDataError, LatencyKitError
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_points, distinct, nanoseconds, nanoseconds_of
from latencykit.io.raw.cells import unit_in, word_set
from latencykit.io.source import Confidence, Format
from latencykit.units import format_value, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from latencykit.core.run import UnitFrom
    from latencykit.io.source import Data, Head, ReadOptions, Source

    Floats = NDArray[np.float64]

__all__ = [
    "FORMATS",
    "family_series",
    "from_cumulative",
    "is_failure",
    "label_text",
    "quantile_note",
    "unit_of",
    "unit_said",
]


_DASHBOARD = "histogram_quantile interpolates within a bucket and prints"
_BRIEF = word_set(
    "s us ns ms µs μs sec micro milli nano"
)  # in a sentence, a unit only behind "in", or in brackets
_NO_TIME = word_set(
    "bytes byte size sizes count counts ratio percent percentage length rows items kb kib mb mib gb kilobytes megabytes "
    "celsius total number depth connections retries attempts"
)
_SIZES = word_set("bytes byte size")
_NO_TIME_SAID = re.compile(
    r"\b(?:in|of)\s+(?:kilo|mega|giga)?(?:bytes?|kib|mib|kb|mb|percent)\b|\((?:bytes?|kb|kib|mb|mib|%|percent)\)"
    r"|^(?:the\s+)?number of\b",
    re.IGNORECASE,
)
_SPANS = re.compile(r"\d\s*[-]?\s*$|\b(?:per|last|each|every|a|one)\s+$|/\s*$", re.IGNORECASE)
_STATUS = re.compile(r"(?:.*[._])?(?:code|status|status_code|http_status)$", re.IGNORECASE)


def unit_of(
    name: str, options: ReadOptions, stated: str | None = None, described: str = ""
) -> tuple[str, UnitFrom] | None:
    """Return the unit of a metric and where it comes from: what is stated, its name, its description, else seconds."""
    lowered = (stated or "").strip().lower()
    if lowered:
        own = unit_in(lowered)
        return None if own is None else (own, "file")
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    last = len(words) - 1
    named = {
        unit
        for k, word in enumerate(words)
        if k and (len(word) > 1 or k == last) and (unit := unit_in(word)) is not None
    }
    if len(named) == 1 and "per" not in words:
        return named.pop(), "format"
    if "per" in words or set(words[-1:]) & _NO_TIME or set(words[-2:]) & _SIZES:
        return None
    said = unit_said(described)
    if said is not None:
        return said, "file"
    if _NO_TIME_SAID.search(described):
        return None
    return options.resolve_unit("s", "assumed")


def unit_said(text: str) -> str | None:
    """Return the unit of time that a sentence states for its values; None where there is none, or more than one."""
    found = set()
    for hit in re.finditer(r"[^\W\d_]+", text[:1000]):
        word, before, after = hit[0].lower(), text[: hit.start()], text[hit.end() :]
        unit = unit_in(word)
        if unit is None or _SPANS.search(before):
            continue
        enclosed = before.rstrip().endswith(("(", "[")) and after.lstrip().startswith((")", "]"))
        if word in _BRIEF and not (
            enclosed or re.search(r"\b(?:in|unit:?|units:?)\s+$", before, re.IGNORECASE)
        ):
            continue
        found.add(unit)
    return found.pop() if len(found) == 1 else None


def label_text(labels: Mapping[str, Any]) -> str:
    """Return labels as a scrape writes them: ``{code="200",path="/"}``, or nothing."""
    inner = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def is_failure(labels: Mapping[str, Any]) -> bool:
    """Whether a label says that these requests failed: a status of 5xx, or an outcome in words."""
    for name, value in labels.items():
        text = str(value).lower()
        if _STATUS.match(name) and re.fullmatch(
            r"5\d\d|5xx|error|failed|failure|internal|unavailable|deadline_?exceeded", text
        ):
            return True
        if name.lower() in ("outcome", "result") and text in (
            "error",
            "failed",
            "failure",
            "server_error",
            "timeout",
        ):
            return True
    return False


def family_series(family: str, members: Sequence[tuple[Mapping[str, Any], Any]]) -> dict[str, Data]:
    """Return the series of a family: the sum of all first, where they can be added, then one a set of labels.

    Series whose labels say that their requests failed are counted apart in the sum.
    """
    if len(members) == 1:
        return {family + label_text(members[0][0]): members[0][1]}
    found: dict[str, Data] = {}
    good = [data for labels, data in members if not is_failure(labels)]
    failed = sum(_size(data) for labels, data in members if is_failure(labels))
    if good and hasattr(good[0], "histogram"):
        try:
            found[family] = _sum_of(good, failed)
        except (
            LatencyKitError
        ):  # unlike units, or percentiles that cannot be added: each stands for itself
            found.clear()
    for labels, data in members:
        found[distinct(family + label_text(labels), found)] = data
    return found


def _sum_of(parts: Sequence[Any], failed: int) -> Any:
    """All parts together; the mean is exact where each part states its own."""
    total = sum(parts[1:], parts[0])
    notes = [note for note in total.run.notes if not note.startswith(_DASHBOARD)]
    if isinstance(total, Histogram):
        if any(part.reported_percentiles[0] for part in parts):
            raise IncompatibleDataError("printed percentiles cannot be added")
        if all("mean" in part.reported_stats for part in parts):
            weighted = sum(
                part.reported_stats["mean"] * (part.count + part.censored) for part in parts
            )
            mean = round(weighted / (total.count + total.censored), 3)
            total = replace(total, reported_stats={**total.reported_stats, "mean": mean})
        if len(notes) < len(total.run.notes):
            notes.append(quantile_note(total))
    if failed:
        notes.append(f"{failed:,} failed requests are counted apart")
    return total.with_run(aggregate=True, failed=failed, unit=parts[0].run.unit, notes=tuple(notes))


def quantile_note(histogram: Histogram) -> str:
    """Return what Prometheus' ``histogram_quantile`` prints, for people who know their number from a dashboard."""
    buckets = histogram.buckets
    assert isinstance(buckets, EdgeBuckets)
    counts = np.zeros(len(buckets), np.int64)
    counts[histogram.index] = histogram.counts
    cumulative, total = np.cumsum(counts), histogram.count + histogram.censored
    shown = []
    for q in (0.5, 0.99):
        rank = q * total
        at = int(np.searchsorted(cumulative, rank, "left"))
        if at >= len(buckets):
            value = float(buckets.highs[-1])
        else:
            share = (rank - cumulative[at] + counts[at]) / counts[at] if counts[at] else 1.0
            value = float(buckets.lows[at] + (buckets.highs[at] - buckets.lows[at]) * share)
        shown.append(f"p{q * 100:g} {format_value(value, histogram.unit)}")
    return f"{_DASHBOARD} {', '.join(shown)}"


def _size(data: Any) -> int:
    if hasattr(data, "histogram"):
        whole = data.histogram()
        return int(whole.count + whole.censored)
    return int(data.count or 0)


# ------------------------------------------------------------
# Prometheus text exposition and OpenMetrics: classic histograms and summaries of one scrape.
#
# Counts are since the server began: the difference of two scrapes (``h2 - h1``) is what lies between them.

_LINE = re.compile(
    r'^([a-zA-Z_:][\w:]*)?[ \t]*(\{(?:[^"{}]|"(?:\\.|[^"\\])*")*\})?[ \t]+(\S+)(?:[ \t]+[\d.]+)?(?:[ \t]+#.*)?[ \t]*$'
)
_LABEL = re.compile(r'([a-zA-Z_][\w.]*|"(?:\\.|[^"\\])*")[ \t]*=[ \t]*"((?:\\.|[^"\\])*)"')
_QUOTED_NAME = re.compile(r'\{[ \t]*"((?:\\.|[^"\\])*)"[ \t]*[,}]')
_RUNTIME = (
    "go_",
    "promhttp_",
    "process_",
    "python_",
    "jvm_",
    "prometheus_",
    "scrape_",
    "nodejs_",
    "net_conntrack_",
)
_NO_DISTRIBUTION = (
    "this summary holds a sum and a count only; a histogram metric would hold the distribution"
)


@dataclass
class _Metric:
    """One histogram or summary with one set of labels, as it is gathered line by line."""

    edges: dict[float, float] = field(default_factory=dict)
    quantiles: dict[float, float] = field(default_factory=dict)
    sum: float = math.nan
    count: float = math.nan
    line: int = 0


def sniff(head: Head) -> Confidence:
    """Tell a type line of a histogram or summary, or a bucket."""
    found = re.search(r"^# TYPE \S+ (?:gauge)?(?:histogram|summary)\s*$", head.text, re.MULTILINE)
    bucket = re.search(r'^[a-zA-Z_:][\w:]*_bucket\{[^}\n]*le="', head.text, re.MULTILINE)
    return Confidence.LIKELY if found or bucket else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every histogram and summary of a time; those of the runtime itself only where nothing else is there."""
    families, units, helps = _families(source, options)
    mine = {
        name: members for name, members in families.items() if not name.startswith(_RUNTIME)
    } or families
    found: dict[str, Data] = {}
    for name, members in mine.items():
        unit = unit_of(name, options, units.get(name), helps.get(name, ""))
        if unit is None:
            continue
        run = Run(
            tool="Prometheus client",
            measure="service",
            corrected="none",
            unit=unit[0],
            unit_from=unit[1],
        )
        series = [(dict(labels), _data(metric, run, source)) for labels, metric in members.items()]
        held = [(labels, data) for labels, data in series if data is not None]
        if held:
            found |= family_series(name, held)
    return found


def _families(
    source: Source, options: ReadOptions
) -> tuple[dict[str, dict[tuple[tuple[str, str], ...], _Metric]], dict[str, str], dict[str, str]]:
    """Families by name: labels → metric; and the units and descriptions that the text states."""
    types: dict[str, str] = {}
    units: dict[str, str] = {}
    helps: dict[str, str] = {}
    families: dict[str, dict[tuple[tuple[str, str], ...], _Metric]] = {}
    lines = source.text().split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            words = line.split()
            if len(words) > 3 and words[1] == "HELP":
                helps[words[2]] = " ".join(words[3:])
            if len(words) > 3 and words[1] in ("TYPE", "UNIT"):
                (types if words[1] == "TYPE" else units)[words[2]] = words[3]
            continue
        if not line.strip():
            continue
        if number == len(lines) and _LINE.match(line) is None:
            continue  # the last line is cut
        name, labels, value = _parsed(line, number, source, options)
        base = re.sub(r"_(?:bucket|g?sum|g?count)$", "", name)
        kind = types.get(base, types.get(name, ""))
        is_bucket = name.endswith("_bucket") and "le" in labels
        if not (
            is_bucket
            or "quantile" in labels
            or (name != base and kind in ("histogram", "gaugehistogram", "summary", ""))
        ):
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
        for own in [
            own
            for own, one in members.items()
            if base not in types and not one.edges and not one.quantiles
        ]:
            del members[own]  # a counter that is called _sum or _count
    return {base: members for base, members in families.items() if members}, units, helps


def _parsed(
    line: str, number: int, source: Source, options: ReadOptions
) -> tuple[str, dict[str, str], float]:
    """Name, labels and value of one sample."""
    found = _LINE.match(line.rstrip("\r"))
    value = _number(found[3]) if found else None
    if found is None or value is None:
        options.reject(
            source.corrupt(
                number,
                f"this is no sample: {printable(line)!r}",
                "name{labels} value",
                "--lenient skips it",
            )
        )
        return "", {}, math.nan
    quoted = _QUOTED_NAME.match(found[2] or "")
    labels = {
        key.strip('"'): re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text)
        for key, text in _LABEL.findall(found[2] or "")
    }
    return found[1] or (quoted[1] if quoted else ""), labels, value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _data(metric: _Metric, run: Run, source: Source) -> Data | None:
    """A histogram from buckets or quantiles, else a mean; None where nothing was counted."""
    count = metric.count
    mean = metric.sum / count if count > 0 and math.isfinite(metric.sum) else None
    reported_stats = {} if mean is None else {"mean": nanoseconds(mean, run.unit)}
    if metric.edges:
        return from_cumulative(metric.edges, count, reported_stats, run, source, metric.line)
    if not count > 0 or (mean is None and not metric.quantiles):
        return None
    points = {p: nanoseconds(value, run.unit) for p, value in metric.quantiles.items()}
    noted = (
        run.with_notes("quantiles are the client's own, over its sliding window")
        if points
        else run.with_notes(_NO_DISTRIBUTION)
    )
    return data_from_points(points, int(count), reported_stats, noted)


def from_cumulative(
    edges: dict[float, float],
    count: float,
    reported_stats: dict[str, float],
    run: Run,
    source: Source,
    line: int | None,
) -> Histogram | None:
    """Return the histogram of cumulative counts by upper edge (``le``); what lies above the last finite one is censored."""
    limits = np.array(sorted(edge for edge in edges if math.isfinite(edge)))
    cumulative = np.rint([edges[edge] for edge in limits.tolist()])
    total = edges.get(math.inf, count)
    total = round(total) if math.isfinite(total) else int(cumulative[-1]) if cumulative.size else 0
    if total <= 0:
        return None
    if (
        not np.isfinite(cumulative).all()
        or (np.diff(cumulative) < 0).any()
        or (cumulative.size and cumulative[-1] > total)
    ):
        raise source.corrupt(
            line,
            "the buckets' counts shrink towards higher edges",
            "counts that add up (le is cumulative)",
            "",
        )
    above = total - (int(cumulative[-1]) if cumulative.size else 0)
    if not limits.size:
        return None
    high = nanoseconds_of(limits, run.unit)
    low = np.concatenate(([min(0.0, high[0])], high[:-1]))
    found = Histogram.from_buckets(
        low, high, np.diff(cumulative, prepend=0).astype(np.int64), "none" if run.unit == "none" else "ns", run=run, reported_stats=reported_stats,
        censored=above, censored_at=float(high[-1]) if above else math.inf,
    )  # fmt: skip
    return found.with_run(notes=(*run.notes, quantile_note(found)))


_PROMETHEUS = (
    Format(
        name="prometheus",
        title="Prometheus text exposition, OpenMetrics",
        level="histogram",
        suffixes=(".txt", ".prom", ".om"),
        sniff=sniff,
        read=read,
        example="curl -s HOST/metrics > scrape.txt",
    ),
)


# ------------------------------------------------------------
# Prometheus query answers saved as JSON: histograms over a range of time (``query_range``), or at
# one instant.
#
# Classic buckets come as series labelled ``le``, counters or rates; native histograms come with their own edges.


def sniff_range(head: Head) -> Confidence:
    """Tell the answer of the HTTP API."""
    return (
        Confidence.CERTAIN
        if jsontext.has_keys(head, "resultType", "result", within=4000)
        else Confidence.NO
    )


def read_range(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every histogram: a range as a log, an instant as a histogram."""
    record = jsontext.load(source)
    data = record.get("data", record) if isinstance(record, dict) else {}
    kind, results = data.get("resultType"), jsontext.entry(data, "result", source, list)
    if kind not in ("matrix", "vector"):
        raise source.corrupt(
            None, f"the answer is a {kind}", "a matrix (query_range) or a vector", ""
        )
    families: dict[str, dict[tuple[tuple[str, str], ...], list[dict[str, Any]]]] = {}
    for one in results:
        labels = dict(jsontext.entry(one, "metric", source))
        name = str(labels.pop("__name__", "")).removesuffix("_bucket")
        if "le" not in labels and "histograms" not in one and "histogram" not in one:
            continue
        own = tuple(sorted((key, value) for key, value in labels.items() if key != "le"))
        families.setdefault(name, {}).setdefault(own, []).append(one)
    if not families:
        raise source.corrupt(
            None, "no series has the label le", "buckets of a histogram",
            "query the buckets, such as sum by (le) (rate(x_bucket[1m])), not histogram_quantile of them",
        )  # fmt: skip
    found: dict[str, Data] = {}
    for name, members in families.items():
        unit = unit_of(name, options)
        if unit is None:
            continue
        run = Run(
            tool="Prometheus", measure="service", corrected="none", unit=unit[0], unit_from=unit[1]
        )
        series = [
            (dict(own), _prometheus_range_rung(parts, kind, run, source))
            for own, parts in members.items()
        ]
        found |= family_series(
            name, [(labels, held_data) for labels, held_data in series if held_data is not None]
        )
    return found


def _prometheus_range_rung(
    parts: list[dict[str, Any]], kind: str, run: Run, source: Source
) -> Data | None:
    """The series of one set of labels."""
    if "histograms" in parts[0] or "histogram" in parts[0]:
        return _native(parts[0].get("histograms") or [parts[0]["histogram"]], run, source)
    if kind == "vector":
        edges = {float(one["metric"]["le"]): float(one["value"][1]) for one in parts}
        whole = all(value == round(value) for value in edges.values())
        if not whole:  # a rate: only the shape is known
            run = run.with_notes("the counts are rates, scaled to a million")
            top = max(edges.values())
            edges = {edge: value / top * 1e6 for edge, value in edges.items()} if top else edges
        return from_cumulative(edges, math.nan, {}, run, source, None)
    return _classic(parts, run, source)


def _classic(parts: list[dict[str, Any]], run: Run, source: Source) -> Data | None:
    """Buckets over time: differences of counters, or rates times the step."""
    parts = sorted(parts, key=lambda one: float(one["metric"]["le"]))
    limits = np.array([float(one["metric"]["le"]) for one in parts])
    times = np.unique(np.concatenate([[float(t) for t, _ in one["values"]] for one in parts]))
    table = np.full((times.size, limits.size), np.nan)
    for column, one in enumerate(parts):
        stamps, values = np.array(one["values"], dtype=np.float64).T
        table[np.searchsorted(times, stamps), column] = values
    step = float(np.median(np.diff(times))) if times.size > 1 else 60.0
    table = np.nan_to_num(table)
    counters = "__name__" in parts[0]["metric"] or _are_counters(table)
    if counters:
        counts, notes = _increments(table)
        starts, lengths = times[:-1], np.diff(times)
    else:
        counts, notes = (
            table * step,
            ("the values are taken as rates a second (rate()); counts are rate x step, rounded",),
        )
        starts, lengths = times - step, np.full(times.size, step)
    if not counts.size or not counts.any():
        return None
    whole = np.rint(np.maximum.accumulate(counts, axis=1)).astype(
        np.int64
    )  # a rounding error must not make a count negative
    per_bucket = np.diff(whole, prepend=0, axis=1)
    known = run.with_notes(*notes)
    if not math.isfinite(limits[-1]):
        if per_bucket[:, -1].any():
            return _with_overflow(limits, whole, known, source, starts, lengths)
        limits, per_bucket = limits[:-1], per_bucket[:, :-1]
    high = nanoseconds_of(limits, run.unit)
    low = np.concatenate(([min(0.0, high[0])], high[:-1]))
    return _log(EdgeBuckets(low, high), per_bucket, starts, lengths, known)


def _are_counters(table: Floats) -> bool:
    """Whole numbers that never shrink are sums since a start."""
    return len(table) > 1 and bool(
        (table == np.rint(table)).all() and (np.diff(table, axis=0) >= 0).all()
    )


def _increments(table: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Differences between samples; where a counter shrank it began anew, and its value is the increment."""
    steps = np.diff(table, axis=0)
    reset = (steps < 0).any(axis=1)
    steps[reset] = table[1:][reset]
    number = int(reset.sum())
    return steps, (
        f"the counters were reset {number} time{'s' if number > 1 else ''} in the range",
    ) if number else ()


def _with_overflow(
    limits: Floats,
    whole: NDArray[np.int64],
    run: Run,
    source: Source,
    starts: Floats,
    lengths: Floats,
) -> Data | None:
    """Counts above the last finite edge cannot stand in a log: the whole range becomes one histogram with a bound."""
    edges = dict(zip(limits.tolist(), whole.sum(axis=0).tolist(), strict=True))
    known = run.with_notes(
        "some values lie above the last bucket, so the range is one histogram, not a log"
    ).replace(start=float(starts[0]), duration=float(lengths.sum()))
    return from_cumulative(edges, math.nan, {}, known, source, None)


def _log(
    buckets: EdgeBuckets, counts: NDArray[np.int64], starts: Floats, lengths: Floats, run: Run
) -> HistogramLog:
    row, index = np.nonzero(counts)
    indptr = np.searchsorted(row, np.arange(len(counts) + 1)).astype(np.int64)
    block = Block(
        np.arange(len(counts)), indptr, index.astype(np.int64), counts[row, index], buckets
    )
    known = run.replace(
        start=float(starts[0]), duration=float(starts[-1] + lengths[-1] - starts[0])
    )
    unit = "none" if run.unit == "none" else "ns"
    return HistogramLog(starts - starts[0], lengths, [MemoryPart([block])], unit=unit, run=known)


def _native(samples: list[Any], run: Run, source: Source) -> Data | None:
    """Native histograms: each sample lists its own buckets as [rule, low, high, count]."""
    times = np.array([float(stamp) for stamp, _ in samples])
    rows: list[tuple[int, float, float, float]] = []
    for place, (_, one) in enumerate(samples):
        listed = one.get("buckets") or [] if isinstance(one, dict) else []
        rows += [(place, float(low), float(high), float(count)) for _, low, high, count in listed]
    if not rows:
        return None
    table = np.array(rows)
    if not np.isfinite(table).all() or (table[:, 3] < 0).any():
        raise source.corrupt(
            None, "a native histogram with edges or counts that are no numbers", "finite ones", ""
        )
    table = table[table[:, 2] > 0]
    edges, where = np.unique(table[:, 2:0:-1], axis=0, return_inverse=True)
    values = np.zeros((times.size, len(edges)))
    values[table[:, 0].astype(np.int64), where.reshape(-1)] = table[:, 3]
    step = float(np.median(np.diff(times))) if times.size > 1 else 60.0
    notes: tuple[str, ...]
    if times.size > 1 and _are_counters(values):
        counts, notes = _increments(values)
        starts, lengths = times[:-1], np.diff(times)
    else:
        rated = times.size > 1
        counts, notes = (
            values * (step if rated else 1.0),
            ("the values are taken as rates a second (rate())",) if rated else (),
        )
        starts, lengths = times - step, np.full(times.size, step)
    low, high = (nanoseconds_of(np.maximum(edges[:, k], 0), run.unit) for k in (1, 0))
    whole = np.rint(counts).astype(np.int64)
    log = _log(EdgeBuckets(low, high), whole, starts, lengths, run.with_notes(*notes))
    return log if times.size > 1 else log.histogram()


_PROMETHEUS_RANGE = (
    Format(
        name="prometheus-json",
        title="Prometheus query answers (JSON)",
        level="log",
        suffixes=(".json",),
        sniff=sniff_range,
        read=read_range,
        example="curl 'PROMETHEUS/api/v1/query_range?query=sum by(le)(rate(x_bucket[1m]))&…' > range.json",
    ),
)

FORMATS = (*_PROMETHEUS, *_PROMETHEUS_RANGE)
