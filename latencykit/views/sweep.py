"""Sweeps over loads: the record, the table and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from latencykit._text import format_items
from latencykit.units import format_duration, format_percentile
from latencykit.views.load import CapacityRecord, load_record, load_words, rate_text
from latencykit.views.tables import Table
from latencykit.views.values import PercentileRecord, record_from

if TYPE_CHECKING:
    from latencykit.ctrlz.sweep import Sweep


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
    percentiles: list[PercentileRecord]


class SweepRecord(TypedDict):
    """A search for the highest load that meets an SLO; rates are requests per second."""

    schema_version: Literal[1]
    """Grows when a key changes its meaning or goes away."""
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
        rows.append(record_from(SweepRunRecord, run, series=run.name, unit="ns", **known))
    return record_from(
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
