"""A freeze test: its record, the table of report and truth, and its sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from latencykit._text import without_login
from latencykit._typing import PercentileName
from latencykit.ctrlz.verdict import Model, Verdict
from latencykit.units import format_duration, format_percentile, percentile_name
from latencykit.views.tables import Table
from latencykit.views.values import record_from

if TYPE_CHECKING:
    from latencykit.ctrlz.run import Calibration


class LoadFacts(TypedDict):
    """The load; null where the command does not take it, or it is unknown."""

    duration: float | None
    """Seconds."""
    rate: float | None
    """Requests per second."""
    connections: int | None
    due: int | None
    """Requests by the schedule."""
    sent: int | None
    """Requests that arrived."""


class ServerFacts(TypedDict):
    """The server that was frozen; null where unknown."""

    kind: Literal["own", "server", "pid", "through"]
    usual: float | None
    """Usual time of a request, ns."""
    busy: float | None
    """Share of a CPU."""
    jitter: dict[PercentileName, float | None] | None
    """How late the server replied outside the freeze, ns, by percentile."""


class MachineFacts(TypedDict):
    """The machine that ran the test."""

    system: str
    cpus: int | None
    load_average: float
    """Of the last minute, at the end of the run."""


class CalibrationRowRecord(TypedDict):
    """A percentile of the report and of the truth, ns, and their ratio."""

    percentile: float
    reported: float | None
    truth: float | None
    ratio: float | None


class CtrlzRecord(TypedDict):
    """A load generator's report of a stall, compared with the truth."""

    verdict: Verdict
    model: Model
    stall: float
    """Seconds."""
    reasons: list[str]
    """Why this verdict, and further observations."""
    notes: list[str]
    """What the reader of the report remarks."""
    tool: str | None
    version: str | None
    command: list[str]
    """The command line of the load generator."""
    load: LoadFacts
    server: ServerFacts
    machine: MachineFacts
    reported: dict[PercentileName, float | None]
    """Latency that the tool reports, ns, by percentile."""
    truth: dict[PercentileName, float | None]
    """Latency by the schedule, ns, by percentile."""
    rows: list[CalibrationRowRecord]
    runs: list[CtrlzRecord]
    """The single runs of --repeat."""


def ctrlz_record(result: Calibration) -> CtrlzRecord:
    """Return the record that ``--format json`` prints: values in ns, the stall in seconds."""
    reported, truth = (
        {format_percentile(row.percentile): getattr(row, name) for row in result.rows}
        for name in ("reported", "truth")
    )
    return record_from(
        CtrlzRecord, result, command=[without_login(word) for word in result.command],
        reported=reported, truth=truth,
        rows=[record_from(CalibrationRowRecord, row) for row in result.rows],
        runs=[ctrlz_record(run) for run in result.runs],
    )  # fmt: skip


def ctrlz_text(result: Calibration, style: str = "table") -> str:
    """Return one row per percentile."""
    table = Table(style)
    for row in result.rows:
        truth = "unknown" if row.truth is None else format_duration(row.truth)
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        table.add(
            {
                "percentile": table.either(row.percentile, percentile_name(row.percentile)),
                "reported": table.either(row.reported, format_duration(row.reported)),
                "truth": table.either(row.truth, truth),
                "ratio": table.either(row.ratio, ratio),
            }
        )
    return table.render()


def ctrlz_words(result: Calibration, *, verdict: bool = True) -> list[str]:
    """Return the verdict, the reasons for it, and notes."""
    tool = result.tool or "load generator"
    notes = [f"note: {text}" for text in result.notes]
    return [
        *([f"{tool}: {result.verdict} ({result.model} loop)"] if verdict else []),
        *(f"  {text}" for text in (*result.reasons, *notes)),
    ]
