"""`ctrlz`: does a load generator tell when the server stands still? Freeze one under it, and compare with the schedule."""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from latencykit.calibrate.clients import loopback
from latencykit.calibrate.freeze import Freezer
from latencykit.calibrate.judge import CalibrationRow, Model, Verdict, judge, model_of
from latencykit.calibrate.targets import MOST_WORKERS, CommandTarget, OwnTarget, ProcessTarget, probe
from latencykit.calibrate.tool import Tool, fill, read_output
from latencykit.calibrate.truth import Stall, scheduled_truth
from latencykit.calibrate.waiting import Waiting, waiting_requests
from latencykit.errors import LatencyKitError, UsageError
from latencykit.log import HistogramLog
from latencykit.units import format_count, format_duration, format_percentile, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latencykit.calibrate.targets import Target
    from latencykit.formats.base import Rung
    from latencykit.histogram import Histogram

__all__ = ["Calibration", "ctrlz"]

LONGEST = 600.0
_GRACE = 30.0
_BUSY = 0.7
_PATIENCE = 20.0


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


@dataclass(frozen=True)
class _Plan:
    """What `ctrlz` was asked for, in seconds."""

    command: tuple[str, ...]
    server: str | Sequence[str] | None
    pid: int | None
    url: str | None
    stall: float
    duration: float
    rate: float
    connections: int
    at: str
    partial: Fraction | None
    service_time: float
    series: str | None
    format: str | None
    progress: Callable[[str], None]

    def __post_init__(self) -> None:
        if sys.platform == "win32":
            raise UsageError("Windows cannot freeze a process (it has no SIGSTOP); run this on Linux or macOS, or in WSL")
        if not self.command:
            raise UsageError("no command to test; write it behind --, as in: latencykit ctrlz -- hey -z {duration}s {url}")
        if not 0 < self.stall < self.duration <= LONGEST:
            raise UsageError(f"the stall must be shorter than the run, and the run at most {LONGEST:g} s long")
        if not (0 < self.rate <= 100_000 and 1 <= self.connections <= 10_000):
            raise UsageError("the rate must be up to 100,000 per second, and the connections 1 to 10,000")
        if self.at not in ("middle", "end"):
            raise UsageError(f"at is 'middle' or 'end', not {self.at!r}")
        if sum(given is not None for given in (self.server, self.pid, self.partial)) > 1:
            raise UsageError("a server command, a process id and partial exclude each other: partial is about our own server")
        if self.url is not None:
            if self.server is None and self.pid is None:
                raise UsageError("url= (--url) says where a server of your own listens: name its command or its pid, too")
            loopback(self.url.replace("{port}", "1"))

    def target(self) -> Target:
        if self.server is not None:
            return CommandTarget(self.server, self.url)
        if self.pid is not None:
            return ProcessTarget(self.pid, self.url)
        part = self.partial or Fraction(1)
        return OwnTarget(self.service_time, part.denominator, part.numerator)

    def filled(self, url: str, folder: Path) -> list[str]:
        values = {
            "rate": f"{self.rate:g}", "rate_per_connection": f"{self.rate / self.connections:g}",
            "connections": str(self.connections), "duration": f"{self.duration:g}",
            "requests": str(round(self.rate * self.duration)), "out": str(folder / "out"),
        }  # fmt: skip
        if url:
            host, port = loopback(url)
            values |= {"url": url, "host": host, "port": str(port)}
        return fill(self.command, values)

    def takes(self, *places: str) -> bool:
        return any("{" + place + "}" in word for place in places for word in self.command)

    @property
    def stop_after(self) -> float:
        """Seconds from the first request to the freeze."""
        return self.duration - 0.6 * self.stall if self.at == "end" else (self.duration - self.stall) / 2


@dataclass(frozen=True)
class _Seen:
    """What was seen from the server's side."""

    begin: int
    stall: Stall
    elapsed: float
    base: float
    waiting: tuple[Waiting | None, Waiting | None]
    before: float | None
    busy: float | None
    requests: int | None
    notes: tuple[str, ...]


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
        ``"1/4"``: our server is four processes, of which one is frozen.
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
    plan = _Plan(
        command=tuple(shlex.split(command) if isinstance(command, str) else command), server=server, pid=pid, url=url,
        stall=parse_duration(stall, "s") / 1e9, duration=parse_duration(duration, "s") / 1e9, rate=float(rate),
        connections=int(connections), at=at, partial=_part(partial), service_time=parse_duration(service_time, "s"),
        series=series, format=format, progress=progress or (lambda _: None),
    )  # fmt: skip
    return _together([_once(plan) for _ in range(repeat)])


def _part(partial: str | float | Fraction | None) -> Fraction | None:
    if partial is None:
        return None
    try:
        part = Fraction(partial).limit_denominator(MOST_WORKERS)
    except (ValueError, ZeroDivisionError):
        part = Fraction(0)
    if not 0 < part <= 1:
        raise UsageError(f"partial is a part of up to {MOST_WORKERS} server processes, such as 1/4; not {partial!r}")
    return part


def _once(plan: _Plan) -> Calibration:
    """One run."""
    with tempfile.TemporaryDirectory(prefix="ctrlz-") as name:
        folder = Path(name)
        with plan.target() as target, Freezer(target.frozen()) as freezer:
            argv = plan.filled(target.url, folder)
            base = probe(target.url) if target.url else None
            target.reset()
            plan.progress(f"running {shlex.join(argv)}")
            with Tool(argv, folder) as tool:
                seen = _watch(plan, target, freezer, tool, base)
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


def _watch(plan: _Plan, target: Target, freezer: Freezer, tool: Tool, base: float | None) -> _Seen:
    """Freeze in time, and note what the server's side shows."""
    begin = _first_request(target, tool)
    early_end = f"{tool.command[0]} ended before the server was frozen, {plan.stop_after:g} s after its first request; "
    if not tool.sleep_until(begin + round(plan.stop_after * 1e9)):
        raise LatencyKitError(f"{early_end}it must run for {plan.duration:g} s; it said: {tool.said()}")
    before = target.stats()
    plan.progress(f"the server stands still for {plan.stall:g} s")
    started = freezer.stop(plan.stall)
    waiting = _sample_waiting(plan, target, tool, started)
    window = freezer.wait()
    plan.progress("the server goes on")
    limit = max(0.0, plan.duration - (window.end - begin) / 1e9) + plan.stall + _GRACE
    notes = () if tool.wait(limit) else (f"it had not ended {limit:g} s after the thaw, and was ended",)
    ended = time.perf_counter_ns()
    after = target.stats()
    if notes:
        tool.__exit__()
    stall = Stall((window.start - begin) / 1e9, (window.end - begin) / 1e9, float(plan.partial or 1))
    return _Seen(
        begin, stall, (ended - begin) / 1e9, base or 0.0, waiting,
        before=None if before is None else before["requests"] / plan.stop_after,
        busy=None if before is None or after is None else after["cpu"] / max((ended - begin) / 1e9 - plan.stall, 0.1),
        requests=None if after is None else after["requests"], notes=notes,
    )  # fmt: skip


def _first_request(target: Target, tool: Tool) -> int:
    """When the first request came, as our own server says; when the tool was started, for others."""
    if target.stats() is None:
        return tool.started
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        said = target.stats()
        if said is not None and said["first"] is not None:
            return int(said["first"])
        if tool.code is not None:
            raise LatencyKitError(f"{tool.command[0]} ended without a request to {target.url}; it said: {tool.said()}")
        time.sleep(0.01)
    raise LatencyKitError(f"{tool.command[0]} sent no request to {target.url} within {_PATIENCE:g} s; does it take {{url}}?")


def _sample_waiting(plan: _Plan, target: Target, tool: Tool, started: int) -> tuple[Waiting | None, Waiting | None]:
    """What waits for the frozen server early and late in the stall."""
    if not target.url:
        return None, None
    port = loopback(target.url)[1]
    seen = []
    for part in (0.35, 0.85):
        tool.sleep_until(started + round(part * plan.stall * 1e9))
        seen.append(waiting_requests(port))
    return seen[0], seen[1]


def _judged(plan: _Plan, seen: _Seen, argv: list[str], rung: Rung) -> Calibration:
    paced_by_us = plan.takes("rate", "rate_per_connection")
    duration = plan.duration if plan.takes("duration") else max(seen.elapsed, 0.001)
    rate = plan.rate if paced_by_us else None
    count = seen.requests if rate is None else None
    truth = scheduled_truth(seen.stall, duration, rate=rate, count=count, base=seen.base)
    ruling = judge(rung, truth, seen.stall.seconds * 1e9, seen.stall.held(duration))
    model = model_of(*seen.waiting, rate=rate, stall=seen.stall.seconds, paced=_paced(seen, rung, paced_by_us))
    asides = _asides(plan, seen, model, rate, duration)
    run = rung.run
    return Calibration(
        ruling.verdict, model, round(seen.stall.seconds, 3), ruling.rows, (*ruling.reasons, *asides, *seen.notes),
        tuple(argv), run.tool, run.version, rung, truth,
    )  # fmt: skip


def _paced(seen: _Seen, rung: Rung, told: bool) -> bool | None:
    """Whether connections idled between requests: they were given a rate, or were seldom busy before the stall."""
    late = seen.waiting[1]
    if told:
        return True
    if seen.before is not None and late is not None and late.connections and seen.base:
        return seen.before * seen.base / 1e9 / late.connections < 0.3
    return {"paced": True, "closed": False}.get(rung.run.loop)


def _asides(plan: _Plan, seen: _Seen, model: Model, rate: float | None, duration: float) -> tuple[str, ...]:
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
        told.append(f"the run is taken to begin when the command was started; the base time is {format_duration(seen.base)}")
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
