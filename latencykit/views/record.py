"""One series as the dictionary that the command line prints as JSON; values in nanoseconds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram import STANDARD_PERCENTILES, Histogram, highest_pinned_down
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.quantiles import highest_supported_percentile, is_resolved
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.units import NANOSECONDS, format_percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.core.histogram import PercentileRow
    from latencykit.core.histogram_log import IntervalSeries
    from latencykit.core.run import Run

    Data = Samples | HistogramLog | Histogram | Summary

_PRINTED = 12
"""Percentiles that a tool prints because somebody chose them; more are the rows of a spectrum."""

__all__ = ["TRIMMED", "in_nanoseconds", "interval_records", "number", "series_record"]

TRIMMED = {"tm95": 0.05, "tm99": 0.01, "tm99.9": 0.001}
"""Two-sided trimmed means: the share that is left out on each side."""


def number(value: float | None) -> float | int | None:
    """Return a number as JSON has it: whole ones as integers, unbounded and unknown ones as null."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else float(value)


def in_nanoseconds(data: Any) -> Any:
    """Return the data type in nanoseconds, or as it is where its values have no unit."""
    return data.to_unit("ns") if data.unit in NANOSECONDS else data


def series_record(
    name: str,
    data: Data,
    percentiles: Sequence[float] | None = None,
    confidence: float = 0.95,
    histogram: Histogram | None = None,
    trims: Sequence[str] = (),
) -> dict[str, Any]:
    """Return one series as a dictionary of plain values."""
    data = in_nanoseconds(data)
    if isinstance(data, Summary):
        return _of_summary(name, data, percentiles, confidence)
    if histogram is None or isinstance(data, Histogram):
        evidence = data.evidence()
    else:
        evidence = data.evidence(in_nanoseconds(histogram))
    counted = evidence.whole
    run: Run = counted.run
    asked = default_percentiles(counted) if percentiles is None else percentiles
    rows, limit, rests_on, why = _trusted(evidence, asked, confidence)
    ranges, means = _ranges(counted), trimmed_means(counted)
    unknown: dict[str, None] = dict.fromkeys([name for name in ("mean", "std") if name in ranges])
    open_ones = [*unknown, *(name for name, value in means.items() if value is None)]
    wide = (
        f"the source does not pin down {', '.join(open_ones)}: there are bounds and no number"
        if open_ones
        else ""
    )
    run = run.with_notes(*why, *filter(None, [wide]))
    kind = {Samples: "samples", HistogramLog: "log", Histogram: "histogram"}[type(data)]
    return _frame(name, kind, counted.unit, run) | {
        "count": counted.requests,
        **{key: number(getattr(counted, key)) for key in ("min", "max", "mean", "std")},
        **unknown,
        "ranges": ranges,
        "max_at_least": counted.requests
        > counted.count,  # some are only known to lie above a limit
        "percentiles": [_row(row) for row in rows],
        "trimmed_means": means,
        "trimmed": _trimmed(counted, (*TRIMMED, *trims)),
        "highest_supported_percentile": number(highest_pinned_down(counted, limit)),
        "supported_up_to": number(limit),
        "rests_on": rests_on,
    }


def default_percentiles(histogram: Histogram) -> Sequence[float]:
    """Return the usual percentiles, or those that the tool printed where it leaves the usual ones open."""
    reported_percentiles = [p for p in histogram.reported_percentiles[0] if 0 < p < 100]
    if not 0 < len(reported_percentiles) <= _PRINTED or all(
        row.resolved for row in histogram.percentile_rows(STANDARD_PERCENTILES)
    ):
        return STANDARD_PERCENTILES
    return [*reported_percentiles, 100.0]


def _ranges(histogram: Histogram) -> dict[str, dict[str, Any]]:
    """Bounds of the statistics that the source does not pin down within a tenth; there is no number for a mean then."""
    found = (
        {name: histogram.bracket(name) for name in ("min", "max", "mean", "std")}
        if histogram.count
        else {}
    )
    wide = {name: ends for name, ends in found.items() if not is_resolved(*ends)}
    return {name: {"low": number(low), "high": number(high)} for name, (low, high) in wide.items()}


def _trusted(
    evidence: Any, percentiles: Sequence[float], confidence: float
) -> tuple[list[PercentileRow], float, str | None, list[str]]:
    """Percentiles with their intervals, how far they are supported, what the tail is based on, and why ends are open."""
    if not evidence.whole.count + evidence.whole.censored:
        return [], 0.0, None, []
    rows, why = evidence.rows(percentiles, confidence)
    words = None
    if evidence.dependence is not None:
        most = evidence.whole.sample_limit(
            confidence
        )  # of so many requests, had they been independent
        sure = [row.percentile for row in rows if 50 <= row.percentile <= most]
        words = evidence.events(sure[-1:])[0].words if sure else None
    return rows, evidence.solid_up_to(confidence)[0], words, list(why)


def _trimmed(histogram: Histogram, specs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Trimmed statistics with their definitions and what they leave out."""
    if not histogram.count:
        return {}
    found = {spec: histogram.trimmed(spec) for spec in specs}
    numbers = {
        spec: {key: number(getattr(one, key)) for key in ("value", "low", "high")}
        for spec, one in found.items()
    }
    for spec, one in found.items():
        numbers[spec] |= {"resolved": one.resolved} | ({} if one.resolved else {"value": None})
    return {
        spec: numbers[spec] | {"definition": one.definition, "leaves_out": one.leaves_out}
        for spec, one in found.items()
    }


def _frame(name: str, data: str, unit: str, run: Run) -> dict[str, Any]:
    """What every record has, whatever the data type."""
    return {
        "name": name, "source": run.source, "format": run.format, "rung": data, "unit": unit, "unit_from": run.unit_from,
        "aggregate": run.aggregate, "tags": list(run.tags), "count": None, "failed": run.failed, "timeouts": run.timeouts,
        "min": None, "max": None, "ranges": {}, "max_at_least": False, "mean": None, "std": None,
        "start": number(run.start), "duration": number(run.duration),
        "percentiles": [], "trimmed_means": {}, "trimmed": {}, "highest_supported_percentile": None, "supported_up_to": None,
        "rests_on": None,
        "run": {
            "tool": run.tool, "version": run.version, "command": run.command, "loop": run.loop, "measure": run.measure,
            "corrected": run.corrected, "rate": number(run.rate), "achieved": number(run.achieved),
            "connections": run.connections, "dropped": run.dropped, "unfinished": run.unfinished,
        },
        "notes": list(run.notes),
    }  # fmt: skip


def _of_summary(
    name: str, summary: Summary, percentiles: Sequence[float] | None, confidence: float
) -> dict[str, Any]:
    """Only what the tool printed; percentiles that were asked for and are not held are left out.

    Whether its sample supports them can be said where the tool says how many requests there were.
    """
    held = {
        p: v for p, v in summary.reported_percentiles.items() if percentiles and p in percentiles
    } or dict(summary.reported_percentiles)
    limit = (
        None if summary.count is None else highest_supported_percentile(summary.count, confidence)
    )
    rows = [
        {
            "percentile": p, "value": number(v), "low": None, "high": None, "bucket_low": number(v), "bucket_high": number(v),
            "resolved": True, "supported": None if limit is None else p <= limit, "events": None,
        }
        for p, v in sorted(held.items())
    ]  # fmt: skip
    return _frame(name, "summary", summary.unit, summary.run) | {
        "count": summary.count,
        **{key: number(summary.stats.get(key)) for key in ("min", "max", "mean", "std")},
        "percentiles": rows,
        "highest_supported_percentile": max(
            (p for p in held if limit is not None and p <= limit), default=None
        ),
        "supported_up_to": limit,
    }


def _row(row: PercentileRow) -> dict[str, Any]:
    return {
        "percentile": row.percentile,
        **{
            key: number(getattr(row, key))
            for key in ("value", "low", "high", "bucket_low", "bucket_high")
        },
        "resolved": row.resolved,
        "supported": row.supported,
        "events": row.events,
    }


def trimmed_means(histogram: Histogram) -> dict[str, float | int | None]:
    """Return the two-sided trimmed means of a histogram by name; None where they are a range (`Trimmed.resolved`)."""
    if not histogram.count:
        return {}
    found = {name: histogram.trimmed(name) for name in TRIMMED}
    return {name: number(one.value) if one.resolved else None for name, one in found.items()}


def interval_records(series: IntervalSeries, confidence: float = 0.95) -> list[dict[str, Any]]:
    """Return one dictionary an interval: start, length, count, max, percentiles; and which of these are known how well.

    ``supported_up_to`` is the highest percentile that the requests of the interval bound from above, and ``ranges`` has the
    bounds of those that its buckets do not pin down within a tenth.
    """
    names = [format_percentile(p) for p in series.percentiles]
    values = np.column_stack(
        [series.max, np.where(np.isfinite(series.values), series.values, np.nan)]
    )
    wide = ~is_resolved(series.lows, values) & np.isfinite(values)
    sizes, which = np.unique(series.count, return_inverse=True)
    limits = np.array([highest_supported_percentile(size, confidence) for size in sizes.tolist()])[
        which.reshape(-1)
    ]
    columns = zip(
        series.start.tolist(), series.length.tolist(), series.count.tolist(), values.tolist(),
        limits.tolist(), series.lows.tolist(), wide.tolist(), strict=True,
    )  # fmt: skip
    return [
        {
            "start": number(start), "length": number(length), "count": count, "max": number(row[0]),
            "percentiles": dict(zip(names, map(number, row[1:]), strict=True)), "supported_up_to": limit,
            "ranges": {
                name: {"low": number(low), "high": number(high)}
                for name, low, high, flag in zip(("max", *names), lows, row, flags, strict=True) if flag
            },
        }
        for start, length, count, row, limit, lows, flags in columns
    ]  # fmt: skip
