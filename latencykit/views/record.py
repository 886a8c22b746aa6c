"""One series as the dictionary that the command line prints as JSON; values in nanoseconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from latencykit.analysis.steadiness import drift
from latencykit.analysis.timeouts import suspected_timeout
from latencykit.core.histogram import STANDARD_PERCENTILES, Histogram, highest_pinned_down
from latencykit.core.histogram_log import HistogramLog, Tails, TailsByRequest
from latencykit.core.quantiles import highest_supported_percentile, is_resolved
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.units import (
    NANOSECONDS,
    format_count,
    format_duration,
    format_percentile,
    format_value,
    sure_percentile,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from latencykit.core.histogram import PercentileRow
    from latencykit.core.histogram_log import IntervalSeries
    from latencykit.core.run import Run

    Data = Samples | HistogramLog | Histogram | Summary

_AT_ONCE = 4096  # intervals whose records are made together
_CHOSEN = 12
"""Percentiles that a tool reports because somebody chose them; more are the rows of a spectrum."""

__all__ = [
    "TRIMMED",
    "exact_row",
    "in_nanoseconds",
    "interval_records",
    "number",
    "numbers_of",
    "percentile_row",
    "series_record",
]

TRIMMED = {"tm95": 0.05, "tm99": 0.01, "tm99.9": 0.001}
"""Two-sided trimmed means: the share that is left out on each side."""


def number(value: float | None) -> float | int | None:
    """Return a number as JSON has it: integers where exact, null where unbounded or unknown."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else float(value)


def numbers_of(data: object, *names: str) -> dict[str, Any]:
    """Return attributes as JSON has them, by name."""
    return {name: number(getattr(data, name)) for name in names}


def percentile_row(row: PercentileRow) -> dict[str, Any]:
    """Return a percentile, its confidence interval and its bucket."""
    return {
        "percentile": row.percentile,
        "value": number(row.value),
        "low": number(row.low),
        "high": number(row.high),
        "bucket_low": number(row.bucket_low),
        "bucket_high": number(row.bucket_high),
        "resolved": row.resolved,
        "supported": row.supported,
        "events": row.events,
    }


def exact_row(percentile: float, value: float, supported: bool | None = None) -> dict[str, Any]:
    """Return a percentile that a tool reports or a model gives: no interval and no bucket."""
    exact = number(value)
    return {
        "percentile": percentile,
        "value": exact,
        "low": None,
        "high": None,
        "bucket_low": exact,
        "bucket_high": exact,
        "resolved": True,
        "supported": supported,
        "events": None,
    }


def in_nanoseconds(data: Any) -> Any:
    """Return the data in nanoseconds, or unchanged where the values have no unit."""
    return data.to_unit("ns") if data.unit in NANOSECONDS else data


_ROWS, _SLOW_STEP, _EXACTLY = 20, 5e9, 1e-6  # times (ns) that no load keeps so exactly


def _findings(data: Any, evidence: Any) -> list[str]:
    """Signs that the numbers are not what they seem, a sentence each."""
    histogram: Histogram = evidence.whole
    sentences = []
    if isinstance(evidence, Tails) and not isinstance(evidence, TailsByRequest):
        moved = drift(evidence)
        sentences += [] if moved is None else [moved.words]
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
) -> dict[str, Any]:
    """Return one series as a dictionary of plain values.

    With `brief` only those that tables show, which saves most of the time of thousands of series.
    """
    data = in_nanoseconds(data)
    if isinstance(data, Summary):
        return _of_summary(name, data, percentiles, confidence)
    evidence: Any
    if histogram is None or isinstance(data, Histogram):
        evidence = data.evidence()
    else:
        evidence = data.evidence(in_nanoseconds(histogram))
    counted: Histogram = evidence.whole
    if percentiles is None:
        percentiles = default_percentiles(counted)
    rows: list[PercentileRow] = []
    notes: tuple[str, ...] = ()
    limit, tail_note = 0.0, None
    findings: list[str] = []
    if counted.count + counted.censored:
        if brief:
            rows = evidence.supported_rows(percentiles, confidence)
        else:
            rows, notes = evidence.rows(percentiles, confidence)
        limit = evidence.solid_up_to(confidence)[0]
        tail_note = _tail_note(evidence, percentiles, confidence)
        findings = _findings(data, evidence)
    ranges: dict[str, dict[str, Any]] = {}
    trimmed: dict[str, dict[str, Any]] = {}
    if counted.count:
        ranges = _ranges(counted, ("max", "mean") if brief else ("min", "max", "mean", "std"))
        trimmed = _trimmed(counted, (*(("tm99",) if brief else TRIMMED), *trims))
    means = {spec: trimmed[spec]["value"] for spec in TRIMMED if spec in trimmed}
    # A mean that the buckets leave open is unknown, not its bound.
    unknown: dict[str, None] = dict.fromkeys(key for key in ("mean", "std") if key in ranges)
    wide = [*unknown, *(spec for spec, value in means.items() if value is None)]
    if wide:
        notes = (*notes, f"the source gives only bounds for {', '.join(wide)}")
    kind = {Samples: "samples", HistogramLog: "log", Histogram: "histogram"}[type(data)]
    return _frame(name, kind, counted.unit, counted.run.with_notes(*notes)) | {
        "count": counted.requests,
        **numbers_of(counted, "min", "max", "mean", "std"),
        **unknown,
        "ranges": ranges,
        # Of some requests only a lower bound is known.
        "max_is_lower_bound": counted.requests > counted.count,
        "percentiles": [percentile_row(row) for row in rows],
        "trimmed_means": means,
        "trimmed": trimmed,
        "highest_supported_percentile": number(highest_pinned_down(counted, limit)),
        "supported_up_to": number(limit),
        "tail_note": tail_note,
        "findings": findings,
    }


def _tail_note(evidence: Any, percentiles: Sequence[float], confidence: float) -> str | None:
    """What the highest percentile is based on that as many independent requests would support."""
    if evidence.dependence is None:
        return None
    most = evidence.whole.sample_limit(confidence)
    last = [float(p) for p in percentiles if 50 <= p <= most][-1:]
    return evidence.events(last)[0].words if last else None


def _ranges(counted: Histogram, statistics: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Statistics that the buckets do not pin down within a tenth."""
    ends = {name: counted.bracket(name) for name in statistics}
    return {
        name: {"low": number(low), "high": number(high)}
        for name, (low, high) in ends.items()
        if not is_resolved(low, high)
    }


def _trimmed(counted: Histogram, specs: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Trimmed statistics by their specification, with bounds and meaning."""
    means = {spec: counted.trimmed(spec) for spec in specs}
    return {
        spec: {
            "value": number(mean.value) if mean.resolved else None,
            **numbers_of(mean, "low", "high"),
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


def _frame(name: str, data: str, unit: str, run: Run) -> dict[str, Any]:
    """The keys that every record has, whatever the data type."""
    return {
        "name": name,
        "source": run.source,
        "format": run.format,
        "rung": data,
        "unit": unit,
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
) -> dict[str, Any]:
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
    return _frame(name, "summary", summary.unit, summary.run) | {
        "count": count,
        **{key: number(summary.stats.get(key)) for key in ("min", "max", "mean", "std")},
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


class IntervalRecords(Sequence[dict[str, Any]]):
    """What `interval_records` returns: made when it is looked at, for a day has many intervals."""

    def __init__(self, series: IntervalSeries, confidence: float) -> None:
        self._series = series
        sizes, which = np.unique(series.count, return_inverse=True)
        limits = [highest_supported_percentile(size, confidence) for size in sizes.tolist()]
        self._limits = np.array(limits)[which.reshape(-1)]

    def __len__(self) -> int:
        return int(self._series.count.size)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self[first : first + _AT_ONCE]

    @overload
    def __getitem__(self, which: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, which: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, which: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        rows = np.arange(len(self))[which]
        records = self._records(np.atleast_1d(rows))
        return records if isinstance(which, slice) else records[0]

    def _records(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        series = self._series
        names = [format_percentile(p) for p in series.percentiles]
        percentiles = series.values[rows]
        values = np.column_stack(
            [series.max[rows], np.where(np.isfinite(percentiles), percentiles, np.nan)]
        )
        lows = series.lows[rows]
        ranges: list[dict[str, Any]] = [{} for _ in values]
        wide = ~is_resolved(lows, values) & np.isfinite(values)
        for row, column in zip(*np.nonzero(wide), strict=True):
            low, high = number(lows[row, column]), number(values[row, column])
            ranges[row][("max", *names)[column]] = {"low": low, "high": high}
        columns = (
            *map(_numbers, (series.start[rows], series.length[rows])),
            series.count[rows].tolist(),
            zip(*map(_numbers, values.T), strict=True),
            self._limits[rows].tolist(),
            ranges,
        )
        return [
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


def _numbers(values: NDArray[np.float64]) -> list[float | int | None]:
    """Each value as `number` returns it; at once where all are integers."""
    if (np.abs(values) < 2.0**53).all() and (values == np.rint(values)).all():
        return list(values.astype(np.int64).tolist())
    return [number(value) for value in values.tolist()]
