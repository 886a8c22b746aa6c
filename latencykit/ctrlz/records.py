"""What a freeze test prints as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from latencykit._typing import PercentileName
    from latencykit.ctrlz.verdict import Model, Verdict


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

    kind: Literal["own", "server", "pid", "container", "through"]
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


class VerdictRecord(TypedDict):
    """A report of a stall, compared with the truth."""

    verdict: Verdict
    model: Model
    stall: float
    """Seconds."""
    reasons: list[str]
    """Why this verdict, and further observations."""
    notes: list[str]
    """What the reader of the report remarks."""
    command: list[str]
    """As it was run."""
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


class CtrlzRecord(VerdictRecord):
    """A load generator's report of a stall, compared with the truth."""

    tool: str | None
    version: str | None
