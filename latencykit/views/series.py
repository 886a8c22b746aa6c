"""A series as plain values: the record, and signs that its numbers mislead."""

from __future__ import annotations

from collections.abc import Sequence  # of a record, whose schema is published
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import numpy as np

from latencykit._typing import PercentileName
from latencykit.analysis.diagnosis import Diagnosis
from latencykit.analysis.modes import find_modes
from latencykit.analysis.omission import diagnosed, omission_text
from latencykit.analysis.slow_times import incident_of
from latencykit.analysis.timeouts import suspected_timeout
from latencykit.core import Data
from latencykit.core.evidence import OrderedSupport, TimedSupport
from latencykit.core.histogram import STANDARD_PERCENTILES, Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.percentile_rows import CHOSEN, highest_pinned_down
from latencykit.core.quantiles import highest_supported_percentile, is_resolved
from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.units import (
    format_count,
    format_duration,
    format_percentile,
    format_value,
    sure_percentile,
)
from latencykit.views import values

if TYPE_CHECKING:
    from latencykit.core.distribution import Distribution

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
    ranges: dict[str, values.Span]
    """Values that the buckets do not pin down within a tenth, by percentile or max."""


class IncidentRecord(TypedDict):
    """The short time into which most slow requests fall, or the one stall that decides percentiles.

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
    unit_from: values.UnitFrom
    aggregate: bool
    """The tool adds up its other series in this one."""
    tags: list[str]
    count: int | None
    """Good requests."""
    failed: int | None
    timeouts: int | None
    min: float | None
    max: float | None
    ranges: dict[Statistic, values.Span]
    """Statistics that the source does not pin down within a tenth."""
    max_is_lower_bound: bool
    """Some requests are only known to be slower than max."""
    mean: float | None
    std: float | None
    start: float | None
    """Seconds since the epoch."""
    duration: float | None
    """Seconds."""
    percentiles: list[values.PercentileRecord]
    trimmed_means: dict[str, float | None]
    """Two-sided trimmed means; null where they are a range."""
    trimmed: dict[str, values.TrimmedRecord]
    """Trimmed statistics by specification."""
    highest_supported_percentile: float | None
    supported_up_to: float | None
    """The highest percentile that the run supports, whatever the buckets."""
    incident: IncidentRecord | None
    findings: list[str]
    """What was omitted, else the incident, else modes; signs that numbers may mislead: drift,
    timeouts, averages, repeated counts."""
    run: RunRecord
    notes: list[str]
    intervals: NotRequired[list[IntervalRecord]]


_ROWS, _SLOW_STEP, _EXACTLY = 20, 5e9, 1e-6  # times (ns) that no load keeps so exactly


def _findings(data: object, evidence: Any) -> list[str]:
    """Signs that the numbers are not what they seem, a sentence each."""
    histogram: Histogram = evidence.whole
    show = partial(format_value, unit=histogram.unit)
    sentences = []
    if histogram.count and histogram.bounds("mean")[0] > 2 * (p := histogram.percentile(99.99)):
        known = "is not reported"
        if is_resolved(*histogram.bounds("max")):
            known = f"is {show(histogram.max)}"
        sentences.append(
            f"the mean ({show(histogram.mean)}) is above p99.99 ({show(p)}): most of the time went "
            f"into requests that no percentile shows; the maximum {known}"
        )
    if isinstance(evidence, TimedSupport) and not isinstance(evidence, OrderedSupport):
        # A percentile that differs between the halves of the run.
        for moved in reversed(evidence.jackknife.drifts):
            if moved is not None and evidence.supported_rows([moved.percentile])[0].resolved:
                sentences.append(f"{moved.text(histogram.unit)} (latencykit diagnose)")
                break
    timeout = suspected_timeout(histogram)
    if timeout is not None:
        share = timeout[1] / histogram.count
        sentences.append(
            f"{format_count(timeout[1])} requests ({100 * share:.3g} %) took "
            f"{show(timeout[0])}, the maximum: a timeout? or "
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
    diagnosis: Diagnosis | None = None,
) -> SeriesRecord:
    """Return one series as a dictionary of plain values."""
    # With `brief` only those that tables show, and without `footnotes` none that stand below them,
    # which saves most of the time of thousands of series. `diagnosis` is that of the data, if it is
    # known already.
    data = values.in_nanoseconds(data)
    if isinstance(data, Summary):  # what the tool reports, judged where it also reports a count
        reported = sorted(data.reported_percentiles)
        chosen = [p for p in reported if p in (percentiles or ())] or reported
        known = values.summary_rows(data, chosen, confidence)
        return _frame(name, "summary", data.unit, data.run) | {
            "count": data.count,
            "min": values.number(data.stats.get("min")),
            "max": values.number(data.stats.get("max")),
            "mean": values.number(data.stats.get("mean")),
            "std": values.number(data.stats.get("std")),
            "percentiles": known,
            "highest_supported_percentile": max(
                (row["percentile"] for row in known if row["supported"]), default=None
            ),
            "supported_up_to": None
            if data.count is None
            else highest_supported_percentile(data.count, confidence),
            "findings": list(filter(None, [omission_text(diagnosis or diagnosed(data, data))])),
        }
    evidence: object
    if histogram is None or isinstance(data, Histogram):
        evidence = data.evidence()
    else:
        evidence = data.evidence(values.in_nanoseconds(histogram))
    counted: Histogram = evidence.whole
    if percentiles is None:  # the usual ones, or those of the tool where it leaves these open
        percentiles = STANDARD_PERCENTILES
        reported = [p for p in counted.reported_percentiles[0] if 0 < p < 100]
        if 0 < len(reported) <= CHOSEN and not all(
            row.resolved for row in counted.percentile_rows(percentiles)
        ):
            percentiles = [*reported, 100.0]
    notes: tuple[str, ...] = ()
    record = _frame(name, _RUNGS[type(data)], counted.unit, counted.run) | {
        "count": counted.requests,
        "min": values.number(counted.min),
        "max": values.number(counted.max),
        "mean": values.number(counted.mean),
        "std": values.number(counted.std),
        # Of some requests only a lower bound is known.
        "max_is_lower_bound": counted.censored > 0,
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
            "percentiles": [values.percentile_row(row) for row in rows],
            "highest_supported_percentile": values.number(highest_pinned_down(counted, limit)),
            "supported_up_to": values.number(limit),
        }
        if footnotes:
            incident, found = None, diagnosis or diagnosed(data, counted)
            if isinstance(evidence, TimedSupport) and isinstance(data, Samples | HistogramLog):
                incident = incident_of(data, evidence, found)
            shape = []
            if omitted := omission_text(found):
                shape = [omitted]
            elif incident is not None:
                shape = [incident.text]
            elif len(modes := find_modes(counted, evidence)) > 1:  # no mean describes them
                parts = [
                    f"{100 * mode.share:.2g} % around {format_value(mode.value, counted.unit, 2)}"
                    for mode in modes
                ]
                shape = [f"{len(modes)} modes: {', '.join(parts)}"]
            record["findings"] = [*shape, *_findings(data, evidence)]
            if incident is not None:
                record["incident"] = values.record_from(
                    IncidentRecord,
                    incident,
                    slow=round(incident.slow),
                    total=round(incident.total),
                    without={
                        format_percentile(p): values.number(rest) for p, _, rest in incident.without
                    },
                )
    if counted.count:
        statistics: tuple[Statistic, ...] = ("min", "max", "mean", "std")
        # What the buckets do not pin down within a tenth.
        ends = {key: counted.bounds(key) for key in (("max", "mean") if brief else statistics)}
        ranges: dict[Statistic, values.Span] = {
            key: {"low": values.number(low), "high": values.number(high)}
            for key, (low, high) in ends.items()
            if not is_resolved(low, high)
        }
        means = {
            spec: counted.trimmed(spec) for spec in (*(("tm99",) if brief else TRIMMED), *trims)
        }
        trimmed = {
            spec: values.record_from(
                values.TrimmedRecord,
                mean,
                value=values.number(mean.value) if mean.resolved else None,
            )
            for spec, mean in means.items()
        }
        record |= {
            "ranges": ranges,
            "trimmed_means": {spec: trimmed[spec]["value"] for spec in TRIMMED if spec in trimmed},
            "trimmed": trimmed,
        }
        # A mean that the buckets leave open is unknown, not its bound.
        for key in ranges.keys() & {"mean", "std"}:
            record[key] = None
        notes += tuple(filter(None, [bounds_note(record)]))
    record["notes"] = list(counted.run.with_notes(*notes).notes)
    return record


def bounds_note(record: SeriesRecord) -> str:
    """The means that the source does not pin down, which a table shows as ranges."""
    wide = [
        *(key for key in record["ranges"] if key in ("mean", "std")),
        *(spec for spec, value in record["trimmed_means"].items() if value is None),
    ]
    return f"the source gives only bounds for {', '.join(wide)}" if wide else ""


def model_record(name: str, model: Distribution) -> SeriesRecord:
    """Return a model as a series: it has neither a count nor confidence intervals."""
    exact = Summary({}, {p: float(model.percentile(p)) for p in STANDARD_PERCENTILES[:-1]})
    return _frame(name, "summary", model.unit, model.run) | {
        "mean": values.number(model.mean),
        "percentiles": values.summary_rows(exact, list(exact.reported_percentiles)),
        "highest_supported_percentile": 100.0,
        "supported_up_to": 100.0,
    }


def _frame(name: str, data: DataType, unit: str, run: Run) -> SeriesRecord:
    """The keys that every record has, whatever the data type."""
    lost = ("failed", "timeouts")
    unknown = [name for name in lost if not (getattr(run, name) or run.failures_known)]
    unknown += ["count", "min", "max", "mean", "std", "highest_supported_percentile"]
    return values.record_from(
        SeriesRecord,
        run,
        **dict.fromkeys((*unknown, "supported_up_to", "incident")),
        name=name,
        rung=data,
        unit="none" if unit == "none" else "ns",
        ranges={},
        max_is_lower_bound=False,
        percentiles=[],
        trimmed_means={},
        trimmed={},
        findings=[],
        run=values.record_from(RunRecord, run),
    )
