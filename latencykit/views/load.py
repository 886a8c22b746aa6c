"""Loads and sweeps over them: records, tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from latencykit._text import brief_list, format_items
from latencykit.core.summary import Summary
from latencykit.units import format_duration, format_percentile, format_rate
from latencykit.views import values
from latencykit.views.tables import Table, csv_unit
from latencykit.views.values import Versioned

if TYPE_CHECKING:
    from latencykit.analysis.capacity import LoadCurve
    from latencykit.ctrlz.sweep import Sweep


class CapacityRecord(TypedDict):
    """The highest load that meets the SLO, requests per second."""

    rate: float | None
    low: float | None
    high: float | None
    limited_by: str | None
    reason: str


class RunRecord(TypedDict):
    """One run; rates are requests per second."""

    series: str
    rate: float | None
    offered: float | None
    achieved: float | None
    achieved_low: float | None
    """Interval of the rate that the system sustains."""
    achieved_high: float | None
    """Interval of the rate that the system sustains."""
    saturated: bool
    """The run achieved less than was offered."""
    verdict: Literal["met", "missed", "unknown"] | None
    """Whether the run meets every limit; null without an SLO."""
    unit: str
    count: int | None
    unit_from: values.UnitFrom
    notes: list[str]
    percentiles: list[values.PercentileRecord]


class LoadRecord(Versioned):
    """Runs at different loads."""

    rows: list[RunRecord]
    capacity: CapacityRecord | None


def load_record(
    curve: LoadCurve, percentiles: Sequence[float], confidence: float = 0.95
) -> LoadRecord:
    """Return a load curve as plain values."""
    rows = []
    for row in curve.rows:
        if isinstance(row.data, Summary):
            reported = [p for p in percentiles if p in row.data.reported_percentiles]
            known = values.summary_rows(row.data, reported, confidence)
        else:
            known = [
                values.percentile_row(one) for one in row.percentile_rows(percentiles, confidence)
            ]
        rows.append(
            values.record_from(
                RunRecord,
                row,
                series=row.name,
                verdict=None if curve.slo is None else curve.verdict(row.name)[0],
                unit=row.data.unit,
                count=row.data.count,
                unit_from=row.data.run.unit_from,
                notes=list(row.data.run.notes),
                percentiles=known,
            )
        )
    return {
        "schema_version": 1,
        "rows": rows,
        "capacity": None
        if curve.capacity is None
        else values.record_from(CapacityRecord, curve.capacity, limited_by=curve.limited_by),
    }


def load_text(record: LoadRecord, style: str = "table", out_unit: str | None = None) -> str:
    """Return one row per run, by load."""
    percentiles = sorted(
        {cell["percentile"] for row in record["rows"] for cell in row["percentiles"]}
    )
    table, suffix = Table(style, out_unit), csv_unit(record["rows"], style, out_unit)
    for row in record["rows"]:
        cells = {cell["percentile"]: cell for cell in row["percentiles"]}
        table.add(
            {
                "series": row["series"],
                "offered": table.either(row["offered"], rate_text(row["offered"])),
                "achieved": table.either(row["achieved"], rate_text(row["achieved"])),
                **{
                    f"p{format_percentile(p)}{suffix}": table.percentile(cells.get(p), row["unit"])
                    for p in percentiles
                },
                "saturated": table.either(row["saturated"], "yes" if row["saturated"] else ""),
                **table.flags(cells[p] for p in percentiles if p in cells),
            }
        )
    return table.render(optional=("p99.9", "p90", "saturated"), causes=True)


def rate_text(rate: float | None) -> str:
    """Return requests per second; empty if unknown."""
    if rate is None or not math.isfinite(rate):
        return ""
    return f"{format_rate(rate)}/s"


def load_words(curve: LoadCurve) -> list[str]:
    """Return the findings: the largest load within the SLO, and what limits it."""
    from latencykit.analysis.capacity import overload_text

    lines = []
    capacity = curve.capacity
    if capacity is not None and curve.slo is not None:
        low, high = rate_text(capacity.low), rate_text(capacity.high)
        rate = format_rate(capacity.rounded)
        largest = f"{curve.slo}: the largest load is about {rate}/s"
        if curve.passed is False and math.isnan(capacity.rate):
            met = any(curve.verdict(row.name)[0] == "met" for row in curve.rows)
            none = "" if met else "no load measured meets "
            lines.append(f"{none}{curve.slo}: {capacity.reason}")
        elif math.isnan(capacity.rate):
            lines.append(f"no load measured surely meets {curve.slo}: {capacity.reason}")
        elif not capacity.low and math.isinf(capacity.high):
            lines.append(f"no run decides whether {curve.slo} is met: {capacity.reason}")
        elif not capacity.low:
            lines.append(f"{largest}; {high} misses it; {capacity.reason}")
        elif math.isinf(capacity.high):
            lines.append(f"{curve.slo}: met up to {low}; {capacity.reason}")
        else:
            bracket = f"between {low} (met) and {high} (not met)"
            lines.append(f"{largest}, {bracket}; limited by {curve.limited_by}")
            lines += [capacity.reason] if capacity.reason else []
        closed = [row.name for row in curve.rows if row.data.run.loop == "closed"]
        if closed:
            lines.append(
                f"closed loops ({brief_list(closed)}): each connection waited for its reply before "
                "it sent the next request; users who arrive on their own wait longer at that rate"
            )
    saturated = [row for row in curve.rows if row.saturated]
    if saturated:
        offered = rate_text(saturated[0].offered)
        lines.append(f"saturated from {offered} offered: {overload_text(saturated[0])}")
    return lines


# ------------------------------------------------------------
# Sweeps.


class SweepRunRecord(TypedDict):
    """One run of a sweep; rates are requests per second."""

    number: Annotated[int, ("minimum", 1)]
    series: str
    rate: float
    duration: float
    """Seconds."""
    purpose: Literal["warm-up", "double", "bisect", "longer", "repeat", "retest"]
    verdict: Literal["met", "missed", "unknown", "void"]
    reason: str
    hiccup: float | None
    """Longest delay of the load generator by its own machine, ns."""
    unit: str
    achieved: float | None
    achieved_low: float | None
    achieved_high: float | None
    saturated: bool
    count: int | None
    percentiles: list[values.PercentileRecord]


class SweepRecord(Versioned):
    """A search for the highest load that meets an SLO; rates are requests per second."""

    passed: bool | None
    """Whether some load surely meets the SLO; null if undecided."""
    slo: str
    capacity: CapacityRecord | None
    stopped: str
    """Why the search ended."""
    complete: bool
    """False if more runs or time would narrow the bracket."""
    hysteresis: list[float]
    """Loads that met the SLO in one run and missed it in another."""
    command: list[str]
    folder: str | None
    """Outputs of all runs."""
    notes: list[str]
    rows: list[SweepRunRecord]
    """Runs in their order."""


def sweep_record(sweep: Sweep, percentiles: Sequence[float]) -> SweepRecord:
    """Return a sweep as plain values: the keys of `load_record`, with the rows in their order."""
    load = None
    if sweep.curve is not None:
        load = load_record(sweep.curve, percentiles, sweep.confidence)
    measured: dict[str, Mapping[str, object]] = {}
    if load is not None:
        measured = {row["series"]: row for row in load["rows"]}
    names = ("achieved", "achieved_low", "achieved_high", "count", "saturated", "percentiles")
    without: dict[str, object] = {**dict.fromkeys(names), "saturated": False, "percentiles": []}
    rows = []
    for run in sweep.runs:
        facts = measured.get(run.name, without)
        known = {name: facts[name] for name in names}
        rows.append(values.record_from(SweepRunRecord, run, series=run.name, unit="ns", **known))
    return values.record_from(
        SweepRecord,
        sweep,
        schema_version=1,
        slo=str(sweep.slo),
        capacity=None if load is None else load["capacity"],
        folder=None if sweep.folder is None else str(sweep.folder),
        rows=rows,
    )


def sweep_text(record: SweepRecord, style: str = "table") -> str:
    """Return one row per run, in their order."""
    percentiles = sorted(
        {cell["percentile"] for row in record["rows"] for cell in row["percentiles"]}
    )
    table, time = Table(style), "seconds" if style == "csv" else "time"
    for row in record["rows"]:
        cells = {cell["percentile"]: cell for cell in row["percentiles"]}
        table.add(
            {
                "run": row["number"] if style == "csv" else str(row["number"]),
                "offered": table.either(row["rate"], rate_text(row["rate"])),
                "achieved": table.either(row["achieved"], rate_text(row["achieved"])),
                time: table.either(row["duration"], format_duration(row["duration"] * 1e9)),
                **{
                    f"p{format_percentile(p)}": table.percentile(cells.get(p), row["unit"])
                    for p in percentiles
                },
                "purpose": row["purpose"],
                "verdict": "no verdict" if row["verdict"] == "void" else row["verdict"],
                **table.flags(cells[p] for p in percentiles if p in cells),
            }
        )
    return table.render(optional=("p99.9", "p90", time))


def sweep_words(sweep: Sweep) -> list[str]:
    """Return the findings of a sweep: the bracket, why it ended, and what to know of it."""
    lines = [f"{sweep.slo}: no run has a verdict"]
    if sweep.curve is not None:
        lines = load_words(sweep.curve)
    for rate in sweep.hysteresis:
        lines.append(
            f"{rate_text(rate)} met the SLO in one run and missed it in another: "
            "the load before matters (hysteresis), or the system varies"
        )
    runs = format_items(len(sweep.runs), "run")
    why = "it was interrupted" if sweep.stopped == "interrupted" else sweep.stopped
    return [*lines, f"{runs}; the search ended because {why}", *sweep.notes]
