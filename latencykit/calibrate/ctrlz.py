"""`ctrlz`: does a load generator tell when the server stands still? Freeze one under it, and compare with the schedule."""

from __future__ import annotations

import shlex
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from latencykit.calibrate.freeze import Freezer
from latencykit.calibrate.judge import CalibrationRow, Model, Ruling, Verdict, judge, model_of
from latencykit.calibrate.observe import Observed, observe
from latencykit.calibrate.plan import Plan, parse_part
from latencykit.calibrate.targets import probe
from latencykit.calibrate.tool import Tool, read_output
from latencykit.calibrate.truth import scheduled_truth
from latencykit.errors import LatencyKitError, UsageError
from latencykit.log import HistogramLog
from latencykit.units import format_count, format_duration, format_percentile, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from latencykit.formats.base import Rung
    from latencykit.histogram import Histogram

__all__ = ["Calibration", "ctrlz"]

_BUSY = 0.7
_DRAIN = 0.2


@dataclass(frozen=True)
class Calibration:
    """What became of a stall in a load generator's report.

    Attributes
    ----------
    verdict : {"honest", "omits", "loses", "clips", "overcorrects", "unknown"}
    model : {"open", "paced", "closed", "unknown"}
    stall : float
        Seconds that the server stood still.
    rows : tuple of CalibrationRow
        Percentile by percentile, the maximum as 100.
    reasons : tuple of str
        Why this verdict, and what else was seen.
    command : tuple of str
        As it was run.
    tool, version : str or None
    reported : Rung
        What the tool reported, in ns.
    truth : Histogram
        Response times of the schedule, in ns.
    runs : tuple of Calibration
        The single runs of a repeated test.
    """

    verdict: Verdict
    model: Model
    stall: float
    rows: tuple[CalibrationRow, ...]
    reasons: tuple[str, ...]
    command: tuple[str, ...]
    tool: str | None
    version: str | None
    reported: Rung = field(repr=False)
    truth: Histogram = field(repr=False)
    runs: tuple[Calibration, ...] = field(default=(), repr=False)

    @property
    def honest(self) -> bool | None:
        """Whether the report can be trusted; None where the test could not tell."""
        return None if self.verdict == "unknown" else self.verdict == "honest"

    def record(self) -> dict[str, Any]:
        """Return what ``latencykit ctrlz --format json`` prints: values in ns, the stall in seconds."""
        rows = [
            {"percentile": row.percentile, "reported": row.reported, "truth": row.truth, "ratio": row.ratio} for row in self.rows
        ]
        return {
            "verdict": self.verdict,
            "model": self.model,
            "stall": self.stall,
            "reported": {format_percentile(row.percentile): row.reported for row in self.rows},
            "truth": {format_percentile(row.percentile): row.truth for row in self.rows},
            "rows": rows,
        }


def ctrlz(
    command: str | Sequence[str],
    *,
    server: str | Sequence[str] | None = None,
    pid: int | None = None,
    url: str | None = None,
    stall: str | float = "4s",
    duration: str | float = "12s",
    rate: float = 200.0,
    connections: int = 4,
    at: str = "middle",
    partial: str | float | Fraction | None = None,
    repeat: int = 1,
    service_time: str | float = "1ms",
    series: str | None = None,
    format: str | None = None,  # noqa: A002 - the contract's name
    progress: Callable[[str], None] | None = None,
) -> Calibration:
    """Run a load generator against a server that stands still for a while, and judge its report.

    Parameters
    ----------
    command : str or sequence of str
        The load generator. ``{url} {host} {port} {rate} {rate_per_connection} {connections} {duration} {requests}``
        are filled in (the duration as a bare number of seconds, requests = rate × duration), and ``{out}`` is a file for
        its output, where it writes one; else standard output and error are read.
    server : str or sequence of str, optional
        A command that starts a server of your own on ``{port}``; it is frozen with all that it starts.
    pid : int, optional
        A server that runs already.
    url : str, optional
        Where `server` or `pid` listens, on this machine.
    stall, duration : str or float
        ``"4s"``, or seconds: how long the server stands still, and how long the run is.
    rate : float
        Requests per second of all connections together.
    connections : int
    at : {"middle", "end"}
        Freeze in the middle of the run, or over its end.
    partial : str or Fraction, optional
        ``"1/4"``: our server is four processes, of which one is frozen. The truth is then that of requests which are spread
        evenly, whoever replies; a tool that sends them to the others meanwhile cannot be judged by it.
    repeat : int
        Runs; the verdict is what most of them say, rows are medians.
    service_time : str or float
        Of our own server: ``"1ms"``, or seconds.
    series, format : str, optional
        Of the output, where there are several or it is not recognised.
    progress : callable, optional
        Takes a sentence at a time.

    Returns
    -------
    Calibration

    Raises
    ------
    LatencyKitError
        Where the command cannot be run, ends before the freeze, or prints nothing that a reader knows.

    Notes
    -----
    The truth is the schedule's: requests at a constant rate over the run, those due in the stall waiting for its end. For a
    closed loop at full speed that is the question of what users who do not wait for each other would have seen.
    """
    if not 1 <= repeat <= 100:
        raise UsageError(f"repeat must be 1 to 100, not {repeat}")
    plan = Plan(
        command=tuple(shlex.split(command) if isinstance(command, str) else command), server=server, pid=pid, url=url,
        stall=parse_duration(stall, "s") / 1e9, duration=parse_duration(duration, "s") / 1e9, rate=float(rate),
        connections=int(connections), at=at, partial=parse_part(partial), service_time=parse_duration(service_time, "s"),
        series=series, format=format, progress=progress or (lambda _: None),
    )  # fmt: skip
    return _together([_once(plan) for _ in range(repeat)])


def _once(plan: Plan) -> Calibration:
    """One run."""
    with tempfile.TemporaryDirectory(prefix="ctrlz-") as name:
        folder = Path(name)
        with plan.target() as target, Freezer(target.frozen()) as freezer:
            argv = plan.filled(target.url, folder)
            base = probe(target.url) if target.url else None
            target.reset()
            plan.progress(f"running {shlex.join(argv)}")
            with Tool(argv, folder) as tool:
                seen = observe(plan, target, freezer, tool, base)
                failed = f"; it ended with status {tool.code}, and said: {tool.said()}" if tool.code else ""
        try:
            found = read_output([folder / "out", tool.stdout, tool.stderr], argv, plan.format)
        except LatencyKitError as error:
            raise LatencyKitError(f"{error}{failed}") from None
        return _judged(plan, seen, argv, _series(found, plan.series))


def _series(found: dict[str, Rung], series: str | None) -> Rung:
    if series is not None and series not in found:
        raise UsageError(f"no series {series!r}; the output holds {', '.join(found)}")
    rung = found[series] if series is not None else next(iter(found.values()))
    rung = rung.histogram() if isinstance(rung, HistogramLog) else rung
    return rung.to_unit("ns")


def _judged(plan: Plan, seen: Observed, argv: list[str], rung: Rung) -> Calibration:
    paced_by_us = plan.takes("rate", "rate_per_connection")
    duration = plan.duration if plan.takes("duration") else max(seen.elapsed, 0.001)
    rate = plan.rate if paced_by_us else None
    count = seen.requests if rate is None else None
    truth = scheduled_truth(seen.stall, duration, rate=rate, count=count, base=seen.base)
    ruling = judge(rung, truth, seen.stall.seconds * 1e9, seen.stall.held(duration))
    model = model_of(*seen.waiting, rate=rate, stall=seen.stall.seconds, paced=_paced(seen, rung, paced_by_us))
    ruling, model = _unless_void(plan, seen, ruling, model, rate, rung.run.timeouts)
    reasons = (*ruling.reasons, *_asides(plan, seen, model, rate, duration), *seen.notes)
    stall, run = round(seen.stall.seconds, 3), rung.run
    return Calibration(ruling.verdict, model, stall, ruling.rows, reasons, tuple(argv), run.tool, run.version, rung, truth)


def _unless_void(
    plan: Plan, seen: Observed, ruling: Ruling, model: Model, rate: float | None, timeouts: int
) -> tuple[Ruling, Model]:
    """The ruling; none where the schedule's truth does not hold for this tool."""
    ours_whole = seen.before is not None and plan.partial is None
    late = seen.waiting[1]
    if ruling.verdict != "honest" and seen.around:
        why = "what was due went to the other processes meanwhile: a stall of a part does not hold this tool up"
    elif ruling.verdict == "loses" and not ours_whole and not timeouts and (late is None or not late.octets):
        why = "neither the report nor the connections show that any request met the frozen process: is it the right one?"
    elif ruling.verdict == "overcorrects" and seen.drain > _DRAIN * seen.stall.seconds:
        why = f"the server needed {seen.drain:.2g} s for the backlog, which hides what the tool does; lower the rate"
        return Ruling("unknown", ruling.rows, (why,)), model
    elif ruling.verdict == "overcorrects" and rate and seen.before is not None and seen.before < 0.9 * rate:
        why = f"{seen.before:,.0f} of {rate:,.0f} requests per second were reached before the stall; lower the rate"
        return Ruling("unknown", ruling.rows, (why,)), model
    else:
        return ruling, model
    return Ruling("unknown", ruling.rows, (why,)), "unknown"


def _paced(seen: Observed, rung: Rung, told: bool) -> bool | None:
    """Whether connections idled between requests: by the rate given, by what its reader knows, by how busy they were."""
    if told or rung.run.loop in ("paced", "closed"):
        return told or rung.run.loop == "paced"
    late = seen.waiting[1]
    if seen.before is None or late is None or not late.connections or not seen.base:
        return None
    return seen.before * seen.base / 1e9 / late.connections < 0.3


def _asides(plan: Plan, seen: Observed, model: Model, rate: float | None, duration: float) -> tuple[str, ...]:
    told = []
    if seen.busy is not None and seen.busy > _BUSY:
        told.append(f"the test's server was busy {seen.busy:.0%} of the time: it may have been the bottleneck; lower the load")
    if seen.requests is not None and rate is not None:
        due = round(rate * duration)
        sent = f"{format_count(seen.requests)} of {format_count(due)} scheduled requests were sent"
        if seen.requests < 0.97 * due:
            told.append(sent)
        elif model in ("paced", "closed"):
            told.append(f"{sent}, those of the stall late: it catches up")
    if plan.partial is not None:
        told.append(f"one connection in {plan.partial.denominator / plan.partial.numerator:g} led to a frozen process")
    if seen.before is None:
        base = format_duration(seen.base)
        told.append(f"the run is taken to begin when the command was started; the base time is {base}")
    return tuple(told)


def _together(runs: list[Calibration]) -> Calibration:
    """What most runs say, with the medians of their rows."""
    if len(runs) == 1:
        return runs[0]
    verdicts, models = Counter(run.verdict for run in runs), Counter(run.model for run in runs)
    verdict, votes = verdicts.most_common(1)[0]
    chosen = next(run for run in runs if run.verdict == verdict)
    rows = []
    for row in chosen.rows:
        same = [other for run in runs for other in run.rows if other.percentile == row.percentile]
        rows.append(replace(row, reported=median(one.reported for one in same), truth=median(one.truth for one in same)))
    said = f"{votes} of {len(runs)} runs: {verdict}"
    if len(verdicts) > 1:
        said += " (" + ", ".join(f"{name} {n}" for name, n in verdicts.items()) + ")"
    if 2 * votes <= len(runs):
        verdict = "unknown"
    return replace(
        chosen, verdict=verdict, model=models.most_common(1)[0][0], rows=tuple(rows),
        stall=median(run.stall for run in runs), reasons=(said, *chosen.reasons), runs=tuple(runs),
    )  # fmt: skip
