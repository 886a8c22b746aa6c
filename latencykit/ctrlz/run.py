"""The load generator under test: its command, its run, and what it printed."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self

from latencykit.core.histogram_log import HistogramLog
from latencykit.ctrlz.client import loopback
from latencykit.ctrlz.freeze import Freezer
from latencykit.ctrlz.server import BACKLOG
from latencykit.ctrlz.targets import (
    MOST_WORKERS,
    CommandTarget,
    OwnTarget,
    ProcessTarget,
    Target,
    probe,
)
from latencykit.ctrlz.verdict import (
    CalibrationRow,
    Judgement,
    Model,
    Stall,
    Verdict,
    Waiting,
    judge,
    model_of,
    scheduled_truth,
    waiting_requests,
)
from latencykit.errors import (
    CorruptInputError,
    InvalidArgumentError,
    LatencyKitError,
    UnknownFormatError,
)
from latencykit.io.reading import detect, read_source
from latencykit.io.source import ReadOptions, Source
from latencykit.units import (
    format_count,
    format_duration,
    format_percentile,
    parse_duration,
    printable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from latencykit.core.histogram import Histogram
    from latencykit.io.source import Data

__all__ = [
    "PLACES",
    "Calibration",
    "Observed",
    "Plan",
    "Tool",
    "ctrlz",
    "fill",
    "observe",
    "parse_part",
    "read_output",
]


PLACES = (
    "url",
    "host",
    "port",
    "rate",
    "connections",
    "duration",
    "rate_per_connection",
    "requests",
    "out",
)
"""What is filled into a command."""

_PLACE = re.compile(r"\{(" + "|".join(PLACES) + r")\}")
MOST_OUTPUT = 1 << 28


def fill(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return the command with its ``{places}`` filled; other braces stay as they are."""
    missing = {name for word in command for name in _PLACE.findall(word)} - set(values)
    if missing:
        raise InvalidArgumentError(
            f"{{{min(missing)}}} cannot be filled in: --pid of a server needs --url to know where it serves"
        )
    return [_PLACE.sub(lambda found: values[found[1]], word) for word in command]


class Tool:
    """A load generator that runs in a session of its own, its output in files."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.command = list(command)
        self.stdout, self.stderr = folder / "stdout.txt", folder / "stderr.txt"

    def __enter__(self) -> Self:
        with self.stdout.open("wb") as out, self.stderr.open("wb") as err:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            except OSError as error:
                raise InvalidArgumentError(
                    f"{self.command[0]}: cannot be started: {error.strerror or error}"
                ) from None
        self.started = time.perf_counter_ns()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(
            ProcessLookupError, PermissionError
        ):  # macOS says "not permitted" of a group of zombies
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def code(self) -> int | None:
        """Exit status; None while it runs."""
        return self._process.poll()

    def sleep_until(self, moment: int) -> bool:
        """Sleep until a time by ``perf_counter_ns``; return whether the tool still runs then."""
        while (left := (moment - time.perf_counter_ns()) / 1e9) > 0:
            if self.code is not None:
                return False
            time.sleep(min(left, 0.05))
        return self.code is None

    def wait(self, seconds: float) -> bool:
        """Wait for its end; return whether it came in time."""
        try:
            self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def said(self, limit: int = 300) -> str:
        """Return the end of what it printed, for a message."""
        for path in (self.stderr, self.stdout):
            text = path.read_bytes()[-4096:].decode("utf-8", "replace").split("\n")
            last = " / ".join(line.strip() for line in text if line.strip())[-limit:]
            if last:
                return printable(last, limit)
        return "nothing"


def read_output(
    paths: Sequence[Path],
    command: Sequence[str],
    format: str | None = None,  # noqa: A002
) -> dict[str, Data]:
    """Read the one of a tool's outputs that is recognised best; the first of equals."""
    best: tuple[int, Path] | None = None
    for path in paths:
        if not path.exists() or not path.stat().st_size:
            continue
        if path.stat().st_size > MOST_OUTPUT:
            raise LatencyKitError(
                f"{command[0]} printed more than {MOST_OUTPUT >> 20} MiB; run it for a shorter time"
            )
        source = Source(path)
        try:
            confidence = int(detect(source, format).sniff(source.head))
        except (UnknownFormatError, CorruptInputError):
            continue
        if best is None or confidence > best[0]:
            best = (confidence, path)
    if best is None:
        raise LatencyKitError(
            f"no reader knows what {shlex.join(command)} printed; make it print its full output "
            "(`latencykit formats` lists what can be read), or write a file to {out}"
        )
    return read_source(Source(best[1]), ReadOptions(), format)


# ------------------------------------------------------------
# What a Ctrl+Z test is asked to do, checked.

LONGEST = 600.0
"""No run is longer than this, seconds."""


@dataclass(frozen=True)
class Plan:
    """What `ctrlz` was asked for; its parameters, durations in seconds, the service time in ns."""

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
            raise InvalidArgumentError(
                "Windows cannot freeze a process (it has no SIGSTOP); run this on Linux or macOS, or in WSL"
            )
        if not self.command:
            raise InvalidArgumentError(
                "no command to test; write it behind --, as in: latencykit ctrlz -- hey -z {duration}s {url}"
            )
        if not 0 < self.stall < self.duration <= LONGEST:
            raise InvalidArgumentError(
                f"the stall must be shorter than the run, and the run at most {LONGEST:g} s long"
            )
        if not (0 < self.rate <= 100_000 and 1 <= self.connections <= 10_000):
            raise InvalidArgumentError(
                "the rate must be up to 100,000 per second, and the connections 1 to 10,000"
            )
        if self.takes("rate", "rate_per_connection") and self.rate * self.stall > 0.9 * BACKLOG:
            raise InvalidArgumentError(
                f"{self.rate:g}/s for {self.stall:g} s are more requests than the kernel holds for a frozen server "
                f"({BACKLOG:,} connections); lower the rate, or shorten the stall"
            )
        if self.at not in ("middle", "end"):
            raise InvalidArgumentError(f"at is 'middle' or 'end', not {self.at!r}")
        if sum(given is not None for given in (self.server, self.pid, self.partial)) > 1:
            raise InvalidArgumentError(
                "a server command, a process id and partial exclude each other: partial is about our own server"
            )
        if self.url is not None:
            if self.server is None and self.pid is None:
                raise InvalidArgumentError(
                    "url= (--url) says where a server of your own listens: name its command or its pid, too"
                )
            loopback(self.url.replace("{port}", "1"))

    def target(self) -> Target:
        """Return the server to freeze, not yet started."""
        if self.server is not None:
            return CommandTarget(self.server, self.url)
        if self.pid is not None:
            return ProcessTarget(self.pid, self.url)
        part = self.partial or Fraction(1)
        return OwnTarget(self.service_time, part.denominator, part.numerator)

    def filled(self, url: str, folder: Path) -> list[str]:
        """Return the command with its places filled."""
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
        """Return whether the command asks for one of these places."""
        return any("{" + place + "}" in word for place in places for word in self.command)

    @property
    def stop_after(self) -> float:
        """Seconds from the first request to the freeze."""
        return (
            self.duration - 0.6 * self.stall
            if self.at == "end"
            else (self.duration - self.stall) / 2
        )


def parse_part(partial: str | float | Fraction | None) -> Fraction | None:
    """Return a part such as ``"1/4"`` as a fraction, whose denominator is the number of server processes."""
    if partial is None:
        return None
    try:
        part = Fraction(partial).limit_denominator(MOST_WORKERS)
    except (ValueError, ZeroDivisionError):
        part = Fraction(0)
    if not 0 < part <= 1:
        raise InvalidArgumentError(
            f"partial is a part of up to {MOST_WORKERS} server processes, such as 1/4; not {partial!r}"
        )
    return part


# ------------------------------------------------------------
# Freezing the server in time, and what its side shows of the load generator meanwhile.

_GRACE = 30.0
_PATIENCE = 20.0
_AROUND = 0.9


@dataclass(frozen=True)
class Observed:
    """What was seen from the server's side.

    Attributes
    ----------
    begin : int
        First request, by ``perf_counter_ns``.
    stall : Stall
    elapsed : float
        Seconds from the first request to the tool's end.
    base : float
        Usual time of a request, ns; 0 where it could not be asked.
    waiting : tuple of two Waiting or None
        Early and late in the stall.
    around : bool
        Whether requests went to processes that were not frozen instead.
    before : float or None
        Requests per second before the stall.
    busy : float or None
        CPU share of the server while it was not frozen.
    drain : float
        Seconds after the thaw until the backlog was read; 0 where it cannot be seen.
    requests : int or None
        All that came.
    notes : tuple of str
    """

    begin: int
    stall: Stall
    elapsed: float
    base: float
    waiting: tuple[Waiting | None, Waiting | None]
    around: bool
    before: float | None
    busy: float | None
    drain: float
    requests: int | None
    notes: tuple[str, ...]


def observe(
    plan: Plan, target: Target, freezer: Freezer, tool: Tool, base: float | None
) -> Observed:
    """Freeze in time, and note what the server's side shows."""
    begin = _first_request(target, tool)
    opening = target.stats()
    early_end = f"{tool.command[0]} ended before the server was frozen, {plan.stop_after:g} s after its first request; "
    if not tool.sleep_until(begin + round(plan.stop_after * 1e9)):
        raise LatencyKitError(
            f"{early_end}it must run for {plan.duration:g} s; it said: {tool.said()}"
        )
    before = target.stats()
    plan.progress(f"the server is stopped for {plan.stall:g} s")
    started = freezer.stop(plan.stall)
    waiting, sent = _during(plan, target, tool, started)
    window = freezer.wait()
    plan.progress("the server goes on")
    drain = _drain(target, tool, window.end, waiting[1])
    limit = max(0.0, plan.duration - (window.end - begin) / 1e9) + plan.stall + _GRACE
    notes = (
        () if tool.wait(limit) else (f"it had not ended {limit:g} s after the thaw, and was ended",)
    )
    ended = time.perf_counter_ns()
    after = target.stats()
    if notes:
        tool.__exit__()
    stall = Stall(
        (window.start - begin) / 1e9, (window.end - begin) / 1e9, float(plan.partial or 1)
    )
    awake = max((ended - begin) / 1e9 - plan.stall, 0.1)
    rate = None if before is None else before["requests"] / plan.stop_after
    return Observed(
        begin, stall, (ended - begin) / 1e9, base or 0.0, waiting, before=rate,
        around=sent is not None and rate is not None and sent > _AROUND * rate,
        busy=None if opening is None or after is None else (after["cpu"] - opening["cpu"]) / awake,
        drain=drain, requests=None if after is None else after["requests"], notes=notes,
    )  # fmt: skip


def _drain(target: Target, tool: Tool, thaw: int, late: Waiting | None) -> float:
    """Seconds until the server has read all but a twentieth of what had waited."""
    if late is None:
        return 0.0
    port = loopback(target.url)[1]
    while tool.sleep_until(time.perf_counter_ns() + 10_000_000):
        left = waiting_requests(port)
        if left is None or left.octets <= 0.05 * late.octets:
            break
    return (time.perf_counter_ns() - thaw) / 1e9


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
            raise LatencyKitError(
                f"{tool.command[0]} ended without a request to {target.url}; it said: {tool.said()}"
            )
        time.sleep(0.01)
    raise LatencyKitError(
        f"{tool.command[0]} sent no request to {target.url} within {_PATIENCE:g} s; does it take {{url}}?"
    )


def _during(
    plan: Plan, target: Target, tool: Tool, started: int
) -> tuple[tuple[Waiting | None, Waiting | None], float | None]:
    """What waits for the frozen server early and late in the stall; requests per second to its other processes."""
    port = loopback(target.url)[1] if target.url else None
    seen, counts, times = [], [], []
    for part in (0.35, 0.85):
        tool.sleep_until(started + round(part * plan.stall * 1e9))
        seen.append(None if port is None else waiting_requests(port))
        times.append(time.perf_counter_ns())
        counts.append(target.live_requests() if isinstance(target, OwnTarget) else 0)
    rate = (counts[1] - counts[0]) / (times[1] - times[0]) * 1e9
    return (seen[0], seen[1]), rate if plan.partial is not None and plan.partial < 1 else None


# ------------------------------------------------------------
# `ctrlz`: does a load generator tell when the server is stopped? Freeze one under it, and
# compare with the schedule.

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
        Seconds that the server was stopped.
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
    reported: Data = field(repr=False)
    truth: Histogram = field(repr=False)
    runs: tuple[Calibration, ...] = field(default=(), repr=False)

    @property
    def honest(self) -> bool | None:
        """Whether the report can be trusted; None where the test could not tell."""
        return None if self.verdict == "unknown" else self.verdict == "honest"

    def record(self) -> dict[str, Any]:
        """Return what ``latencykit ctrlz --format json`` prints: values in ns, the stall in seconds."""
        rows = [
            {
                "percentile": row.percentile,
                "reported": row.reported,
                "truth": row.truth,
                "ratio": row.ratio,
            }
            for row in self.rows
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
    """Run a load generator against a server that is stopped for a while, and judge its report.

    The truth is the schedule's: requests at a constant rate over the run, those due in the stall waiting for its end. For a
    closed loop at full speed that is the question of what users who do not wait for each other would have seen.
    """
    if not 1 <= repeat <= 100:
        raise InvalidArgumentError(f"repeat must be 1 to 100, not {repeat}")
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
                failed = (
                    f"; it ended with status {tool.code}, and said: {tool.said()}"
                    if tool.code
                    else ""
                )
        try:
            found = read_output([folder / "out", tool.stdout, tool.stderr], argv, plan.format)
        except LatencyKitError as error:
            raise LatencyKitError(f"{error}{failed}") from None
        return _judged(plan, seen, argv, _series(found, plan.series))


def _series(found: dict[str, Data], series: str | None) -> Data:
    if series is not None and series not in found:
        raise InvalidArgumentError(f"no series {series!r}; the output holds {', '.join(found)}")
    data = found[series] if series is not None else next(iter(found.values()))
    data = data.histogram() if isinstance(data, HistogramLog) else data
    return data.to_unit("ns")


def _judged(plan: Plan, seen: Observed, argv: list[str], data: Data) -> Calibration:
    paced_by_us = plan.takes("rate", "rate_per_connection")
    duration = plan.duration if plan.takes("duration") else max(seen.elapsed, 0.001)
    rate = plan.rate if paced_by_us else None
    count = seen.requests if rate is None else None
    truth = scheduled_truth(seen.stall, duration, rate=rate, count=count, base=seen.base)
    ruling = judge(data, truth, seen.stall.seconds * 1e9, seen.stall.held(duration))
    model = model_of(
        *seen.waiting, rate=rate, stall=seen.stall.seconds, paced=_paced(seen, data, paced_by_us)
    )
    ruling, model = _unless_void(plan, seen, ruling, model, rate, data.run.timeouts)
    reasons = (*ruling.reasons, *_asides(plan, seen, model, rate, duration), *seen.notes)
    stall, run = round(seen.stall.seconds, 3), data.run
    return Calibration(
        ruling.verdict,
        model,
        stall,
        ruling.rows,
        reasons,
        tuple(argv),
        run.tool,
        run.version,
        data,
        truth,
    )


def _unless_void(
    plan: Plan, seen: Observed, ruling: Judgement, model: Model, rate: float | None, timeouts: int
) -> tuple[Judgement, Model]:
    """The ruling; none where the schedule's truth does not hold for this tool."""
    ours_whole = seen.before is not None and plan.partial is None
    late = seen.waiting[1]
    if ruling.verdict != "honest" and seen.around:
        why = "what was due went to the other processes meanwhile: a stall of a part does not hold this tool up"
    elif (
        ruling.verdict == "loses"
        and not ours_whole
        and not timeouts
        and (late is None or not late.octets)
    ):
        why = "neither the report nor the connections show that any request met the frozen process: is it the right one?"
    elif ruling.verdict == "overcorrects" and seen.drain > _DRAIN * seen.stall.seconds:
        why = f"the server needed {seen.drain:.2g} s for the backlog, which hides what the tool does; lower the rate"
        return Judgement("unknown", ruling.rows, (why,)), model
    elif (
        ruling.verdict == "overcorrects"
        and rate
        and seen.before is not None
        and seen.before < 0.9 * rate
    ):
        why = f"{seen.before:,.0f} of {rate:,.0f} requests per second were reached before the stall; lower the rate"
        return Judgement("unknown", ruling.rows, (why,)), model
    else:
        return ruling, model
    return Judgement("unknown", ruling.rows, (why,)), "unknown"


def _paced(seen: Observed, data: Data, reported_stats: bool) -> bool | None:
    """Whether connections idled between requests: by the rate given, by what its reader knows, by how busy they were."""
    if reported_stats or data.run.loop in ("paced", "closed"):
        return reported_stats or data.run.loop == "paced"
    late = seen.waiting[1]
    if seen.before is None or late is None or not late.connections or not seen.base:
        return None
    return seen.before * seen.base / 1e9 / late.connections < 0.3


def _asides(
    plan: Plan, seen: Observed, model: Model, rate: float | None, duration: float
) -> tuple[str, ...]:
    reported_stats = []
    if seen.busy is not None and seen.busy > _BUSY:
        reported_stats.append(
            f"the test's server was busy {seen.busy:.0%} of the time: it may have been the bottleneck; lower the load"
        )
    if seen.requests is not None and rate is not None:
        due = round(rate * duration)
        sent = f"{format_count(seen.requests)} of {format_count(due)} scheduled requests were sent"
        if seen.requests < 0.97 * due:
            reported_stats.append(sent)
        elif model in ("paced", "closed"):
            reported_stats.append(f"{sent}, those of the stall late: it catches up")
    if plan.partial is not None:
        reported_stats.append(
            f"one connection in {plan.partial.denominator / plan.partial.numerator:g} led to a frozen process"
        )
    if seen.before is None:
        base = format_duration(seen.base)
        reported_stats.append(
            f"the run is taken to begin when the command was started; the base time is {base}"
        )
    return tuple(reported_stats)


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
        rows.append(
            replace(
                row,
                reported=median(one.reported for one in same),
                truth=median(one.truth for one in same),
            )
        )
    said = f"{votes} of {len(runs)} runs: {verdict}"
    if len(verdicts) > 1:
        said += " (" + ", ".join(f"{name} {n}" for name, n in verdicts.items()) + ")"
    if 2 * votes <= len(runs):
        verdict = "unknown"
    return replace(
        chosen, verdict=verdict, model=models.most_common(1)[0][0], rows=tuple(rows),
        stall=median(run.stall for run in runs), reasons=(said, *chosen.reasons), runs=tuple(runs),
    )  # fmt: skip
