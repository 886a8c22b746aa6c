"""A series and its key numbers: the record, tables, sentences, and the page's sections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, overload

import numpy as np

from latencykit._text import brief_list, cause_text, format_items, printable
from latencykit.analysis.modes import find_modes
from latencykit.analysis.slow_times import incident_of
from latencykit.analysis.timeouts import suspected_timeout
from latencykit.core.distribution import Distribution
from latencykit.core.evidence import Tails, TailsByRequest
from latencykit.core.histogram import STANDARD_PERCENTILES, Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.key_statistics import not_answered
from latencykit.core.quantiles import (
    highest_pinned_down,
    highest_supported_percentile,
    is_resolved,
    statistic_text,
)
from latencykit.core.run import code_of
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.units import (
    NANOSECONDS,
    format_count,
    format_duration,
    format_percentile,
    format_range,
    format_row,
    format_value,
    percentile_name,
    sure_percentile,
)
from latencykit.views.markup import as_sentence
from latencykit.views.tables import MOST_ROWS, Table
from latencykit.views.values import (
    PercentileRecord,
    Span,
    TrimmedRecord,
    UnitFrom,
    exact_row,
    in_nanoseconds,
    number,
    percentile_row,
    plain,
    value_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from latencykit._typing import PercentileName
    from latencykit.analysis.slow_times import Incident
    from latencykit.core import Data
    from latencykit.core.histogram_log import IntervalSeries
    from latencykit.core.run import Run

_AT_ONCE = 4096  # intervals whose records are made together

_CHOSEN = 12
"""Percentiles that a tool reports because somebody chose them; more are the rows of a spectrum."""

TRIMMED = {"tm95": 0.05, "tm99": 0.01, "tm99.9": 0.001}
"""Two-sided trimmed means: the share that is left out on each side."""


DataType = Literal["log", "samples", "histogram", "summary"]

Statistic = Literal["min", "max", "mean", "std"]

_RUNGS: dict[type, DataType] = {Samples: "samples", HistogramLog: "log", Histogram: "histogram"}


class IntervalRecord(TypedDict):
    """One interval of a log or time bin; times in seconds since the start."""

    start: float
    length: float
    count: int
    max: float | None
    percentiles: dict[PercentileName, float | None]
    """Value by percentile."""
    supported_up_to: float
    """The highest percentile that the requests of this interval bound from above."""
    ranges: dict[str, Span]
    """Values that the buckets do not pin down within a tenth, by percentile or max."""


class IncidentRecord(TypedDict):
    """The short time into which most slow requests fall, or the one stall behind percentiles.

    Times are in seconds since the start.
    """

    start: float
    end: float
    slow: int
    """Slow requests in that time."""
    total: int
    """Slow requests of the run; 0 of a stall that holds much of the run."""
    above: str
    """What makes a request slow."""
    without: dict[PercentileName, float | None]
    """Percentiles of what remains without it."""


class RunRecord(TypedDict):
    """What the source says about the measurement."""

    tool: str | None
    version: str | None
    command: str | None
    loop: Literal["open", "paced", "closed", "unknown"]
    measure: Literal["service", "response", "unknown"]
    """Latency type: service time or response time."""
    corrected: Literal["none", "tool", "schedule", "us", "unknown"]
    """Whether and how coordinated omission has been corrected."""
    rate: float | None
    """Requests per second that were to be sent."""
    achieved: float | None
    """Requests per second that were answered."""
    connections: int | None
    dropped: int
    """Requests that were due and never sent."""
    unfinished: int
    """Requests without an answer at the end."""


class SeriesRecord(TypedDict):
    """One series: a file, a tag, or an operation of a tool.

    Values are in nanoseconds unless unit says otherwise.
    """

    name: str
    source: str | None
    """File name."""
    format: str | None
    rung: DataType
    """The data type."""
    unit: Literal["ns", "none"]
    unit_from: UnitFrom
    aggregate: bool
    """The tool adds up its other series in this one."""
    tags: list[str]
    count: int | None
    """Good requests."""
    failed: int | None
    timeouts: int | None
    min: float | None
    max: float | None
    ranges: dict[Statistic, Span]
    """Statistics that the source does not pin down within a tenth."""
    max_is_lower_bound: bool
    """Some requests are only known to be slower than max."""
    mean: float | None
    std: float | None
    start: float | None
    """Seconds since the epoch."""
    duration: float | None
    """Seconds."""
    percentiles: list[PercentileRecord]
    trimmed_means: dict[str, float | None]
    """Two-sided trimmed means; null where they are a range."""
    trimmed: dict[str, TrimmedRecord]
    """Trimmed statistics by specification."""
    highest_supported_percentile: float | None
    supported_up_to: float | None
    """The highest percentile that the independent events support, whatever the buckets."""
    tail_note: str | None
    """The independent events that the tail is based on."""
    incident: IncidentRecord | None
    findings: list[str]
    """The incident; signs that numbers may mislead: drift, timeouts, averages, repeated counts."""
    run: RunRecord
    notes: list[str]
    intervals: NotRequired[Sequence[IntervalRecord]]


class SummaryRecord(TypedDict):
    """All series."""

    schema_version: Literal[1]
    """Grows when a key changes its meaning or goes away."""
    series: list[SeriesRecord]


_ROWS, _SLOW_STEP, _EXACTLY = 20, 5e9, 1e-6  # times (ns) that no load keeps so exactly


def _mean_alarm(histogram: Histogram) -> list[str]:
    """A mean above twice the p99.99: what lies beyond took more than half of the total time."""
    if not histogram.count or histogram.bracket("mean")[0] <= 2 * (
        p := histogram.percentile(99.99)
    ):
        return []
    show = partial(format_value, unit=histogram.unit)
    least, most = histogram.bracket("max")
    known = f"is {show(histogram.max)}" if is_resolved(least, most) else "is not reported"
    return [
        (
            f"the mean ({show(histogram.mean)}) is above p99.99 ({show(p)}): most of the time went "
            f"into requests that no percentile shows; the maximum {known}"
        )
    ]


def _drift(evidence: Tails) -> list[str]:
    """A percentile that differs between the halves of the run."""
    for moved in reversed(evidence.jackknife.drifts):
        if moved is None or not evidence.supported_rows([moved.percentile])[0].resolved:
            continue
        return [f"{moved.text(evidence.whole.unit)} (latencykit diagnose)"]
    return []


def _modes(histogram: Histogram, evidence: Any) -> list[str]:
    """How many modes there are, if there are several: a mean or a median then describes none."""
    modes = find_modes(histogram, evidence)
    parts = [
        f"{100 * mode.share:.2g} % around {format_value(mode.value, histogram.unit, 2)}"
        for mode in modes
    ]
    return [f"{len(modes)} modes: {', '.join(parts)}"] if len(modes) > 1 else []


def _findings(data: object, evidence: Any) -> list[str]:
    """Signs that the numbers are not what they seem, a sentence each."""
    histogram: Histogram = evidence.whole
    sentences = _mean_alarm(histogram)
    if isinstance(evidence, Tails) and not isinstance(evidence, TailsByRequest):
        sentences += _drift(evidence)
    timeout = suspected_timeout(histogram)
    if timeout is not None:
        share = timeout[1] / histogram.count
        sentences.append(
            f"{format_count(timeout[1])} requests ({100 * share:.3g} %) took "
            f"{format_value(timeout[0], histogram.unit)}, the maximum: a timeout? or "
            "the highest value that the recorder tracks? percentiles above "
            f"p{format_percentile(sure_percentile(100 * (1 - share)))} are then lower bounds"
        )
    if isinstance(data, Samples) and data.start is not None and data.start.size >= _ROWS:
        steps = np.diff(np.sort(data.start))
        if steps[0] >= _SLOW_STEP and np.ptp(steps) <= _EXACTLY * steps[0]:
            sentences.append(
                f"one row every {format_duration(float(steps[0]))}: if the rows are averages, as "
                "dashboards export them, the percentiles of requests are unknown"
            )
    repeats = histogram.counted.repeats
    if repeats > 1:
        sentences.append(
            f"all counts are multiples of {format_count(repeats)}: requests that were answered "
            "together (a pipeline), repeated rows, or samples scaled up; confidence intervals "
            "count each group once"
        )
    return sentences


def series_record(
    name: str,
    data: Data,
    percentiles: Sequence[float] | None = None,
    confidence: float = 0.95,
    histogram: Histogram | None = None,
    trims: Sequence[str] = (),
    *,
    brief: bool = False,
    footnotes: bool = True,
) -> SeriesRecord:
    """Return one series as a dictionary of plain values.

    With `brief` only those that tables show, and without `footnotes` none that stand below them,
    which saves most of the time of thousands of series.
    """
    data = in_nanoseconds(data)
    if isinstance(data, Summary):
        return _of_summary(name, data, percentiles, confidence)
    evidence: object
    if histogram is None or isinstance(data, Histogram):
        evidence = data.evidence()
    else:
        evidence = data.evidence(in_nanoseconds(histogram))
    counted: Histogram = evidence.whole
    if percentiles is None:
        percentiles = default_percentiles(counted)
    notes: tuple[str, ...] = ()
    record = _frame(name, _RUNGS[type(data)], counted.unit, counted.run) | {
        "count": counted.requests,
        "min": number(counted.min),
        "max": number(counted.max),
        "mean": number(counted.mean),
        "std": number(counted.std),
        # Of some requests only a lower bound is known.
        "max_is_lower_bound": counted.requests > counted.count,
        "highest_supported_percentile": 0,
        "supported_up_to": 0,
    }
    if counted.count + counted.censored:
        if brief:
            rows = evidence.supported_rows(percentiles, confidence)
        else:
            rows, notes = evidence.rows(percentiles, confidence)
        limit = evidence.supported_up_to(confidence)
        record |= {
            "percentiles": [percentile_row(row) for row in rows],
            "highest_supported_percentile": number(highest_pinned_down(counted, limit)),
            "supported_up_to": number(limit),
        }
        if footnotes:
            incident = None
            if isinstance(evidence, Tails) and isinstance(data, Samples | HistogramLog):
                incident = incident_of(data, evidence)
            shape = _modes(counted, evidence) if incident is None else [incident.text]
            record |= {
                "tail_note": _tail_note(evidence, percentiles, confidence),
                "incident": None if incident is None else _incident_record(incident),
                "findings": [*shape, *_findings(data, evidence)],
            }
    if counted.count:
        notes += _add_means(record, counted, trims, brief=brief)
    record["notes"] = list(counted.run.with_notes(*notes).notes)
    return record


def _incident_record(incident: Incident) -> IncidentRecord:
    return {
        "start": plain(incident.start),
        "end": plain(incident.end),
        "slow": round(incident.slow),
        "total": round(incident.total),
        "above": incident.above,
        "without": {format_percentile(p): number(value) for p, _, value in incident.without},
    }


def _add_means(
    record: SeriesRecord, counted: Histogram, trims: Sequence[str], *, brief: bool
) -> tuple[str, ...]:
    """Add trimmed statistics, and ranges of what the buckets leave open; return a note on these."""
    ranges = _ranges(counted, ("max", "mean") if brief else ("min", "max", "mean", "std"))
    trimmed = _trimmed(counted, (*(("tm99",) if brief else TRIMMED), *trims))
    means = {spec: trimmed[spec]["value"] for spec in TRIMMED if spec in trimmed}
    record |= {"ranges": ranges, "trimmed_means": means, "trimmed": trimmed}
    # A mean that the buckets leave open is unknown, not its bound.
    if "mean" in ranges:
        record["mean"] = None
    if "std" in ranges:
        record["std"] = None
    return tuple(filter(None, [_bounds_note(record)]))


def _bounds_note(record: SeriesRecord) -> str:
    """The means that the source does not pin down, which a table shows as ranges."""
    wide = [
        *(key for key in record["ranges"] if key in ("mean", "std")),
        *(spec for spec, value in record["trimmed_means"].items() if value is None),
    ]
    return f"the source gives only bounds for {', '.join(wide)}" if wide else ""


def model_record(name: str, model: Distribution) -> SeriesRecord:
    """Return a model as a series: it has neither a count nor confidence intervals."""
    return _frame(name, "summary", model.unit, model.run) | {
        "mean": number(model.mean),
        "percentiles": [
            exact_row(p, float(model.percentile(p))) for p in STANDARD_PERCENTILES[:-1]
        ],
        "highest_supported_percentile": 100.0,
        "supported_up_to": 100.0,
    }


def _tail_note(evidence: Any, percentiles: Sequence[float], confidence: float) -> str | None:
    """What the highest percentile is based on that as many independent requests would support."""
    if evidence.dependence is None:
        return None
    most = evidence.whole.sample_limit(confidence=confidence)
    last = [float(p) for p in percentiles if 50 <= p <= most][-1:]
    return evidence.events(last)[0].words if last else None


def _ranges(counted: Histogram, statistics: Iterable[Statistic]) -> dict[Statistic, Span]:
    """Statistics that the buckets do not pin down within a tenth."""
    ends = {name: counted.bracket(name) for name in statistics}
    return {
        name: {"low": number(low), "high": number(high)}
        for name, (low, high) in ends.items()
        if not is_resolved(low, high)
    }


def _trimmed(counted: Histogram, specs: Iterable[str]) -> dict[str, TrimmedRecord]:
    """Trimmed statistics by their specification, with bounds and meaning."""
    means = {spec: counted.trimmed(spec) for spec in specs}
    return {
        spec: {
            "value": number(mean.value) if mean.resolved else None,
            "low": number(mean.low),
            "high": number(mean.high),
            "resolved": mean.resolved,
            "definition": mean.definition,
            "leaves_out": mean.leaves_out,
        }
        for spec, mean in means.items()
    }


def default_percentiles(histogram: Histogram) -> Sequence[float]:
    """Return the usual percentiles, or those that the tool reports where it leaves these open."""
    reported = [p for p in histogram.reported_percentiles[0] if 0 < p < 100]
    if not 0 < len(reported) <= _CHOSEN or all(
        row.resolved for row in histogram.percentile_rows(STANDARD_PERCENTILES)
    ):
        return STANDARD_PERCENTILES
    return [*reported, 100.0]


def _frame(name: str, data: DataType, unit: str, run: Run) -> SeriesRecord:
    """The keys that every record has, whatever the data type."""
    return {
        "name": name,
        "source": run.source,
        "format": run.format,
        "rung": data,
        "unit": "none" if unit == "none" else "ns",
        "unit_from": run.unit_from,
        "aggregate": run.aggregate,
        "tags": list(run.tags),
        "count": None,
        "failed": run.failed,
        "timeouts": run.timeouts,
        "min": None,
        "max": None,
        "ranges": {},
        "max_is_lower_bound": False,
        "mean": None,
        "std": None,
        "start": number(run.start),
        "duration": number(run.duration),
        "percentiles": [],
        "trimmed_means": {},
        "trimmed": {},
        "highest_supported_percentile": None,
        "supported_up_to": None,
        "tail_note": None,
        "incident": None,
        "findings": [],
        "run": {
            "tool": run.tool,
            "version": run.version,
            "command": run.command,
            "loop": run.loop,
            "measure": run.measure,
            "corrected": run.corrected,
            "rate": number(run.rate),
            "achieved": number(run.achieved),
            "connections": run.connections,
            "dropped": run.dropped,
            "unfinished": run.unfinished,
        },
        "notes": list(run.notes),
    }


def _of_summary(
    name: str, summary: Summary, percentiles: Sequence[float] | None, confidence: float
) -> SeriesRecord:
    """Only what the tool reports; the sample is judged where it also reports a count."""
    reported = {
        p: v for p, v in summary.reported_percentiles.items() if percentiles and p in percentiles
    } or dict(summary.reported_percentiles)
    count = summary.count
    limit = None if count is None else highest_supported_percentile(count, confidence)
    rows = [
        exact_row(p, value, None if limit is None else p <= limit)
        for p, value in sorted(reported.items())
    ]
    for row in rows if summary.runs else ():
        low, high = summary.percentile_bounds(row["percentile"])
        row |= {"bucket_low": number(low), "resolved": bool(is_resolved(low, high))}
    return _frame(name, "summary", summary.unit, summary.run) | {
        "count": count,
        "min": number(summary.stats.get("min")),
        "max": number(summary.stats.get("max")),
        "mean": number(summary.stats.get("mean")),
        "std": number(summary.stats.get("std")),
        "percentiles": rows,
        "highest_supported_percentile": max(
            (row["percentile"] for row in rows if row["supported"]), default=None
        ),
        "supported_up_to": limit,
    }


def interval_records(series: IntervalSeries, confidence: float = 0.95) -> IntervalRecords:
    """Return one dictionary per interval: start, length, count, max and percentiles.

    ``supported_up_to`` is the highest percentile that the requests of the interval bound from
    above, and ``ranges`` has the bounds of those that its buckets do not resolve.
    """
    return IntervalRecords(series, confidence)


class IntervalRecords(Sequence[IntervalRecord]):
    """What `interval_records` returns: made when it is looked at, for a day has many intervals."""

    def __init__(self, series: IntervalSeries, confidence: float) -> None:
        self._series = series
        sizes, which = np.unique(series.count, return_inverse=True)
        limits = [highest_supported_percentile(size, confidence) for size in sizes.tolist()]
        self._limits = np.array(limits)[which.reshape(-1)]

    def __len__(self) -> int:
        return int(self._series.count.size)

    def __iter__(self) -> Iterator[IntervalRecord]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self[first : first + _AT_ONCE]

    @overload
    def __getitem__(self, which: int) -> IntervalRecord: ...
    @overload
    def __getitem__(self, which: slice) -> list[IntervalRecord]: ...
    def __getitem__(self, which: int | slice) -> IntervalRecord | list[IntervalRecord]:
        rows = np.atleast_1d(np.arange(len(self))[which])
        series = self._series
        names = [format_percentile(p) for p in series.percentiles]
        percentiles = series.values[rows]
        values = np.column_stack(
            [series.max[rows], np.where(np.isfinite(percentiles), percentiles, np.nan)]
        )
        lows = series.lows[rows]
        ranges: list[dict[str, Span]] = [{} for _ in values]
        highs = np.where(series.beyond[rows], np.inf, values)
        wide = ~is_resolved(lows, highs) & np.isfinite(values)
        for row, column in zip(*np.nonzero(wide), strict=True):
            low, high = number(lows[row, column]), number(highs[row, column])
            ranges[row][("max", *names)[column]] = {"low": low, "high": high}
        columns = (
            *map(_numbers, (series.start[rows], series.length[rows])),
            series.count[rows].tolist(),
            zip(*map(_numbers, values.T), strict=True),
            self._limits[rows].tolist(),
            ranges,
        )
        records: list[IntervalRecord] = [
            {
                "start": start,
                "length": length,
                "count": count,
                "max": largest,
                "percentiles": dict(zip(names, row, strict=True)),
                "supported_up_to": limit,
                "ranges": known,
            }
            for start, length, count, (largest, *row), limit, known in zip(*columns, strict=True)
        ]
        return records if isinstance(which, slice) else records[0]


def _numbers(values: NDArray[np.float64]) -> list[float | int | None]:
    """Each value as `number` returns it; at once where all are integers."""
    if (np.abs(values) < 2.0**53).all() and (values == np.rint(values)).all():
        return list(values.astype(np.int64).tolist())
    return [number(value) for value in values.tolist()]


_FEW = 6
"""Footnotes below a table; of more, only their number is stated."""


_OPTIONAL = (
    "highest supported", "tm99", "p99.999", "p75", "p95", "p99.99", "p90", "mean",
    "p99.9",
)  # fmt: skip
"""Columns that a narrow terminal does without, the first ones first."""


def summary_text(
    records: Sequence[SeriesRecord],
    style: str = "table",
    out_unit: str | None = None,
    *,
    percentiles: bool = True,
    notes: bool = False,
    left_out: int = 0,
) -> str:
    """Return one row per series: counts, percentiles, maximum and means.

    A percentile in brackets is not supported by the sample: it is one of its largest values. Where
    the source gives a range, CSV has its upper end. People see the usual `percentiles`, as many as
    fit, unless they asked for others, and one footnote per series unless they asked for all;
    `left_out` more series have no records.
    """
    columns = {row["percentile"] for record in records for row in record["percentiles"]}
    if percentiles and style != "csv":
        columns = columns & set(STANDARD_PERCENTILES) or columns
    failed = any(record["failed"] for record in records)
    late = any(record["timeouts"] for record in records)
    all_ = style == "csv" and (failed or late)
    suffix = _csv_unit(records, style, out_unit)
    table = Table(style, out_unit)
    for record in records:
        unit, count = record["unit"], record["count"]
        rows = {row["percentile"]: row for row in record["percentiles"]}
        largest = table.bounded(record["max"], record["ranges"].get("max"), unit)
        if largest and record["max_is_lower_bound"] and "max" not in record["ranges"]:
            largest = table.either(largest, f"≥ {largest}")
        trim = record["trimmed"].get("tm99")
        supported = record["highest_supported_percentile"]
        table.add(
            {
                "series": record["name"],
                "requests": table.either(count, None if count is None else format_count(count)),
                **({"failed": record["failed"]} if failed or all_ else {}),
                **({"timeouts": record["timeouts"]} if late or all_ else {}),
                **{
                    f"p{format_percentile(p)}{suffix}": table.percentile(rows.get(p), unit)
                    for p in sorted(columns)
                    if p < 100
                },
                f"max{suffix}": largest,
                f"mean{suffix}": table.bounded(record["mean"], record["ranges"].get("mean"), unit),
                f"tm99{suffix}": table.bounded(
                    record["trimmed_means"].get("tm99"),
                    trim if trim and not trim["resolved"] else None,
                    unit,
                ),
                "highest supported": table.either(
                    None if supported is None else f"{supported:.6f}",
                    f"p{format_percentile(sure_percentile(supported))}" if supported else "",
                ),
                **table.flags(row for _, row in sorted(rows.items())),
            }
        )
    optional = _OPTIONAL if percentiles else ("highest supported", "tm99", "mean")
    text = table.render(optional=optional, most=MOST_ROWS, causes=True, left_out=left_out)
    if style != "table":
        return text
    return "\n".join([text, *_footnotes(records, out_unit, every=notes, left_out=left_out)])


def _csv_unit(records: Sequence[SeriesRecord], style: str, out_unit: str | None) -> str:
    """The unit of a CSV's numbers, for its header."""
    if style != "csv":
        return ""
    units = {
        out_unit if out_unit and record["unit"] in NANOSECONDS else record["unit"]
        for record in records
    }
    return f" ({'/'.join(sorted(unit if unit in NANOSECONDS else 'no unit' for unit in units))})"


def _footnotes(
    records: Sequence[SeriesRecord], out_unit: str | None, *, every: bool, left_out: int
) -> list[str]:
    """The trimmed statistics that were asked for, and what to know of each series."""
    lines = []
    for record in records:
        name = f"{printable(record['name'])}: " if len(records) > 1 else ""
        for spec, trim in record["trimmed"].items():
            if spec not in TRIMMED:
                value = _trim_text(trim, record["unit"], out_unit)
                form, _, meaning = trim["definition"].partition(": ")
                lines.append(
                    f"{name}{spec} = {value}, the {meaning} ({form}); "
                    f"leaves out {trim['leaves_out']}"
                )
    messages: dict[str, list[str]] = {}
    totals = [record for record in records if record["aggregate"]]
    of_all = {note for record in totals for note in record["notes"]}
    of_all_slow = any(map(_falls_into_seconds, totals))
    for record in records:
        # The first finding is the incident; the total's line says it of its parts, too.
        first = int(of_all_slow and not record["aggregate"] and _falls_into_seconds(record))
        findings = record["findings"][0 if every else first :]
        texts = [*findings, *(text for text in record["notes"] if code_of(text) != "unit")]
        if not (record["aggregate"] or every):
            texts = [text for text in texts if text not in of_all]
        texts += [record["tail_note"]] if every and record["tail_note"] else []
        texts.sort(key=lambda text: code_of(text) != "doubt")
        texts = texts if every else [text for text in texts if text != _bounds_note(record)]
        for text in texts if every else texts[:1]:
            messages.setdefault(text, []).append(printable(record["name"]))
    for text, names in messages.items():
        of = f"{brief_list(names)}: " if len(names) < len(records) + left_out else ""
        lines.append(f"{of}{text}")
    if len(messages) > _FEW and not every:
        lines[-len(messages) :] = ["notes on many series: --notes prints them"]
    return lines


def _falls_into_seconds(record: SeriesRecord) -> bool:
    """Whether an incident holds most of the slow requests of a run."""
    return record["incident"] is not None and record["incident"]["total"] > 0


def _trim_text(trim: TrimmedRecord, unit: str, out_unit: str | None) -> str:
    """A trimmed statistic: a number where it is known within a tenth, otherwise a range."""
    value, low, high = trim["value"], trim["low"], trim["high"]
    if value is None and low is None and high is None:
        return "nothing"
    show = partial(value_text, unit=unit, out_unit=out_unit)
    return show(value) if trim["resolved"] else format_range(low, high, show)


def intervals_text(
    records: Sequence[SeriesRecord], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row per interval of every series; see `summary_text` for brackets and ranges."""
    names = list(
        dict.fromkeys(
            p for record in records for row in record["intervals"] for p in row["percentiles"]
        )
    )
    suffix = _csv_unit(records, style, out_unit)
    header = ["series", "start", "length", "requests", *(f"p{name}{suffix}" for name in names)]
    flags = ["supported", "resolved"] if style == "csv" else []
    table = Table(style, out_unit, header=[*header, f"max{suffix}", *flags])
    for record in records:
        for row in record["intervals"]:
            cells = {name: _interval_row(row, name) for name in (*names, "max")}
            start, length, count = row["start"], row["length"], row["count"]
            table.add(
                {
                    "series": record["name"],
                    "start": table.either(start, f"{start:.3f}"),
                    "length": table.either(length, f"{length:.3f}"),
                    "requests": table.either(count, format_count(count)),
                    **{
                        f"{'' if name == 'max' else 'p'}{name}{suffix}": table.percentile(
                            cell, record["unit"]
                        )
                        for name, cell in cells.items()
                    },
                    **table.flags(
                        cells[name] for name in names if cells[name]["value"] is not None
                    ),
                }
            )
    return table.render(optional=[f"p{name}" for name in ("99.999", "75", "95", "99.99", "90")])


def _interval_row(row: IntervalRecord, name: str) -> PercentileRecord:
    """A percentile, or the maximum, of an interval as a row of percentiles has it."""
    value = row["max"] if name == "max" else row["percentiles"].get(name)
    ends = row["ranges"].get(name)
    percentile = 100.0 if name == "max" else float(name)
    return {
        "percentile": percentile,
        "value": value,
        "low": None,
        "high": None,
        "bucket_low": ends["low"] if ends else value,
        "bucket_high": ends["high"] if ends else value,
        "resolved": ends is None,
        "supported": name == "max" or percentile <= row["supported_up_to"],
        "events": None,
        "cause": None if percentile <= row["supported_up_to"] else "few requests",
    }


def headline(data: Any) -> str:
    """Return p50, p99 and the maximum in one sentence."""

    def show(value: float) -> str:
        return format_value(value, data.unit)

    if isinstance(data, Summary):
        if data.count == 0 and (lost := not_answered(data.run)):
            return f"No request was answered well: {', '.join(lost)}."
        values = [f"{name} {show(value)}" for name, value in data.stats.items()]
        values += [
            f"{percentile_name(p)} {show(v)}" for p, v in sorted(data.reported_percentiles.items())
        ]
        of = "" if data.count is None else f" of {format_count(data.count)} requests"
        return (
            f"The source reports {', '.join(values) or 'no statistic'}{of}; "
            "it does not contain the rest of the distribution."
        )
    if isinstance(data, Histogram) and not data.count:
        return (
            f"No request was answered; {format_count(data.censored)} timed out."
            if data.censored
            else "Nothing was counted."
        )
    if isinstance(data, Distribution):
        half, rare = (show(float(data.percentile(p))) for p in (50, 99))
        return f"A model: p50 {half}, p99 {rare}."
    if data.index.size == 1 and not data.censored and is_resolved(data.min, data.max):
        return f"All {format_count(data.requests)} requests took {show(data.max)}."
    parts = [
        f"{percentile_name(row.percentile)} {format_row(replace(row, supported=True), show)}"
        + (
            f" (uncertain: {cause_text(row.cause)})"
            if row.cause and not math.isinf(row.bucket_high)
            else ""
        )
        for row in data.evidence().supported_rows([50.0, 99.0])
    ]
    parts.append(f"max {statistic_text(data, 'max')}")
    late = max(data.censored - (data.requests - data.count), 0)
    if late:
        parts.append(f"and {format_count(late)} gave no answer within {show(data.censored_at)}")
    return f"{format_items(data.requests, 'request')}: {', '.join(parts)}."


def trust(data: Any, record: SeriesRecord) -> list[str]:
    """Return what limits the numbers, one sentence each; `record` is that of ``summary``."""
    run, sentences = data.run, []
    limit = record["highest_supported_percentile"]
    if isinstance(data, Histogram) and data.count and limit:
        highest = f"p{format_percentile(sure_percentile(limit))}"
        sentences.append(
            f"Highest supported percentile of {format_count(data.requests)} requests: {highest}. "
            "Others are in brackets."
        )
    if isinstance(data, Distribution):
        sentences.append("A model, not a measurement: it has no confidence intervals.")
    if run.unit_note is not None and run.unit_note not in run.notes:
        sentences.append(as_sentence(run.unit_note))
    if run.corrected == "unknown" and run.loop in ("closed", "paced"):
        sentences.append(
            "A closed loop waits for each reply before it sends the next request: "
            "during a stall it measures nothing."
        )
    if run.corrected in ("us", "tool"):
        sentences.append(
            "Corrected for coordinated omission: added values follow from those measured, "
            "so no confidence is claimed."
        )
    if lost := not_answered(run):
        sentences.append(f"Not counted among the answered requests: {', '.join(lost)}.")
    return [*sentences, *(as_sentence(note) for note in record["notes"])]
