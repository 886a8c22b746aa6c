"""One series as the dictionary that the command line prints as JSON; values in nanoseconds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.histogram import STANDARD_PERCENTILES, Histogram
from latencykit.log import HistogramLog
from latencykit.samples import Samples
from latencykit.summary import Summary
from latencykit.units import NANOSECONDS, format_percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.histogram import PercentileRow
    from latencykit.log import IntervalSeries
    from latencykit.run import Run

    Rung = Samples | HistogramLog | Histogram | Summary

LONG = 5_000
"""Intervals of a log up to which a second pass is made over it, for confidence and events."""

__all__ = ["LONG", "TRIMMED", "in_nanoseconds", "interval_records", "number", "series_record"]

TRIMMED = {"tm95": 0.05, "tm99": 0.01, "tm99.9": 0.001}
"""Two-sided trimmed means: the share that is left out on each side."""


def number(value: float | None) -> float | int | None:
    """Return a number as JSON has it: whole ones as integers, unbounded and unknown ones as null.

    Examples
    --------
    >>> number(3.0), number(2.5), number(float("inf"))
    (3, 2.5, None)
    """
    if value is None or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else float(value)


def in_nanoseconds(rung: Any) -> Any:
    """Return the rung in nanoseconds, or as it is where its values have no unit."""
    return rung.to_unit("ns") if rung.unit in NANOSECONDS else rung


def series_record(
    name: str,
    rung: Rung,
    percentiles: Sequence[float] = STANDARD_PERCENTILES,
    confidence: float = 0.95,
    histogram: Histogram | None = None,
    trims: Sequence[str] = (),
) -> dict[str, Any]:
    """Return one series as a dictionary of plain values.

    Parameters
    ----------
    name : str
    rung : Samples, HistogramLog, Histogram or Summary
    percentiles : sequence of float
    confidence : float, default 0.95
    histogram : Histogram, optional
        Of the same rung, where it was already counted.
    trims : sequence of str
        Further trimmed statistics; see `latencykit.stats.trim_spec`.
    """
    rung = in_nanoseconds(rung)
    if isinstance(rung, Summary):
        return _of_summary(name, rung, percentiles)
    counted = in_nanoseconds(histogram if histogram is not None else rung.histogram())
    run: Run = counted.run
    rows, rests_on, why = _trusted(rung, counted, percentiles, confidence)
    run = run.noting(*why)
    kind = {Samples: "samples", HistogramLog: "log", Histogram: "histogram"}[type(rung)]
    return _frame(name, kind, counted.unit, run) | {
        "count": counted.requests,
        **{key: number(getattr(counted, key)) for key in ("min", "max", "mean", "std")},
        "max_at_least": counted.requests > counted.count,  # some are only known to lie above a limit
        "percentiles": [_row(row) for row in rows],
        "trimmed_means": trimmed_means(counted),
        "trimmed": _trimmed(counted, (*TRIMMED, *trims)),
        "highest_supported_percentile": number(counted.highest_supported_percentile(confidence)),
        "rests_on": rests_on,
    }


def _trusted(
    rung: Any, counted: Histogram, percentiles: Sequence[float], confidence: float
) -> tuple[list[PercentileRow], str | None, list[str]]:
    """Percentiles with their intervals; of what knows time, also what the tail rests on, and what to say of that."""
    if not counted.count + counted.censored:
        return [], None, []
    rows = counted.percentile_rows(percentiles, confidence)
    if not counted.count or not (isinstance(rung, HistogramLog) or (isinstance(rung, Samples) and rung.start is not None)):
        return rows, None, []
    log = rung if isinstance(rung, HistogramLog) else rung.to_log(_width(rung.elapsed))
    if len(log) > LONG:
        said = f"a log of more than {LONG:,} intervals is read once: no confidence and no events; cut it with --from and --to"
        return [replace(row, low=math.nan, high=math.nan) for row in rows], None, [said]
    tails = log.tails(counted)
    rows, why = tails.rows(percentiles, confidence)
    sure = [row.percentile for row in rows if row.supported and 50 <= row.percentile < 100]
    return rows, tails.events(sure[-1:])[0].words if sure else None, [f"of percentiles: {one}" for one in why]


def _width(seconds: float) -> float:
    """Intervals of a second where that makes a fair number of them."""
    return 1.0 if 30 <= seconds <= 4000 else max(seconds / (60 if seconds < 30 else 4000), 1e-6)


def _trimmed(histogram: Histogram, specs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Trimmed statistics with their definitions and what they leave out."""
    if not histogram.count:
        return {}
    found = {spec: histogram.trimmed(spec) for spec in specs}
    numbers = {spec: {key: number(getattr(one, key)) for key in ("value", "low", "high")} for spec, one in found.items()}
    return {spec: numbers[spec] | {"definition": one.definition, "leaves_out": one.leaves_out} for spec, one in found.items()}


def _frame(name: str, rung: str, unit: str, run: Run) -> dict[str, Any]:
    """What every record has, whatever the rung."""
    return {
        "name": name, "source": run.source, "format": run.format, "rung": rung, "unit": unit, "unit_from": run.unit_from,
        "aggregate": run.aggregate, "tags": list(run.tags), "count": None, "failed": run.failed, "timeouts": run.timeouts,
        "min": None, "max": None, "max_at_least": False, "mean": None, "std": None,
        "start": number(run.start), "duration": number(run.duration),
        "percentiles": [], "trimmed_means": {}, "trimmed": {}, "highest_supported_percentile": None, "rests_on": None,
        "run": {
            "tool": run.tool, "version": run.version, "command": run.command, "loop": run.loop, "measure": run.measure,
            "corrected": run.corrected, "rate": number(run.rate), "achieved": number(run.achieved),
            "connections": run.connections, "dropped": run.dropped, "unfinished": run.unfinished,
        },
        "notes": list(run.notes),
    }  # fmt: skip


def _of_summary(name: str, summary: Summary, percentiles: Sequence[float]) -> dict[str, Any]:
    """Only what the tool printed; percentiles that were asked for and are not held are left out."""
    held = {p: v for p, v in summary.percentiles.items() if p in percentiles} or dict(summary.percentiles)
    nothing = {
        "low": None,
        "high": None,
        "bucket_low": None,
        "bucket_high": None,
        "resolved": True,
        "supported": False,
        "events": None,
    }
    return _frame(name, "summary", summary.unit, summary.run) | {
        "count": summary.count,
        **{key: number(summary.stats.get(key)) for key in ("min", "max", "mean", "std")},
        "percentiles": [{"percentile": p, "value": number(v), **nothing} for p, v in held.items()],
    }


def _row(row: PercentileRow) -> dict[str, Any]:
    return {
        "percentile": row.percentile,
        **{key: number(getattr(row, key)) for key in ("value", "low", "high", "bucket_low", "bucket_high")},
        "resolved": row.resolved,
        "supported": row.supported,
        "events": row.events,
    }


def trimmed_means(histogram: Histogram) -> dict[str, float | int | None]:
    """Return the two-sided trimmed means of a histogram by name."""
    if not histogram.count:
        return {}
    return {name: number(histogram.trimmed_mean(name)) for name in TRIMMED}


def interval_records(series: IntervalSeries) -> list[dict[str, Any]]:
    """Return one dictionary an interval: start, length, count, max, percentiles."""
    names = [format_percentile(p) for p in series.percentiles]
    values = np.where(np.isfinite(series.values), series.values, np.nan).tolist()
    columns = zip(
        series.start.tolist(),
        series.length.tolist(),
        series.count.tolist(),
        series.max.tolist(),
        values,
        strict=True,
    )
    return [
        {
            "start": number(start), "length": number(length), "count": count, "max": number(top),
            "percentiles": dict(zip(names, map(number, row), strict=True)),
        }
        for start, length, count, top, row in columns
    ]  # fmt: skip
