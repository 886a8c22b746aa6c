"""The Ctrl+Z test: run a load generator, freeze its server, and compare report and schedule."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from latencykit._files import temporary_folder
from latencykit._records import record
from latencykit._text import printable
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import Note
from latencykit.core.summary import Summary
from latencykit.ctrlz.client import PORTS, loopback
from latencykit.ctrlz.freeze import LONGEST, Freezer
from latencykit.ctrlz.guard import Guarded
from latencykit.ctrlz.server import BACKLOG
from latencykit.ctrlz.targets import (
    CommandTarget,
    OwnTarget,
    ProcessTarget,
    ProxyTarget,
    Target,
    probe,
)
from latencykit.ctrlz.verdict import (
    CalibrationRow,
    FrozenSpan,
    Judgement,
    Model,
    Verdict,
    Waiting,
    connected_clients,
    judge,
    model_of,
    reported_percentiles,
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
from latencykit.io.source import Data, ReadOptions, Source
from latencykit.units import (
    format_count,
    format_duration,
    format_rate,
    parse_duration,
)

if TYPE_CHECKING:
    from latencykit.core.samples import Samples

PLACES = (
    "url", "host", "port", "rate", "connections", "duration", "rate_per_connection", "requests",
    "out",
)  # fmt: skip
"""Names in braces that a command may contain; ``{out.json}`` is ``{out}`` with a suffix."""

_PLACE = re.compile(r"\{(" + "|".join(PLACES) + r")((?<=out)\.\w+)?\}")
MOST_OUTPUT = 1 << 28
MOST_FILES = 200


def has_placeholder(command: Sequence[str], *places: str) -> bool:
    """Return True if the command contains one of these places."""
    return any("{" + place + "}" in word for place in places for word in command)


def substitute(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return the command with its ``{places}`` filled; other braces remain as they are."""
    missing = {match[1] for word in command for match in _PLACE.finditer(word)} - set(values)
    if missing:
        option = "--connections" if "connection" in min(missing) else "--url"
        raise InvalidArgumentError(f"{{{min(missing)}}} cannot be filled in: {option} is missing")
    return [_PLACE.sub(lambda match: values[match[1]] + (match[2] or ""), word) for word in command]


def filled(
    command: Sequence[str],
    rate: float,
    duration: float,
    out: Path,
    connections: int | None,
    url: str | None,
) -> list[str]:
    """Return the command with a load, an address, and the place of its output filled in."""
    values = {
        "rate": f"{rate:.10g}",
        "duration": f"{duration:.10g}",
        "requests": str(max(1, round(rate * duration))),
        "out": str(out),
    }
    if connections is not None:
        each = f"{rate / connections:.10g}"
        values |= {"connections": str(connections), "rate_per_connection": each}
    if url:
        parts = urlsplit(url)
        port = str(parts.port or PORTS.get(parts.scheme, 0))
        values |= {"url": url, "host": parts.hostname or "", "port": port}
    return substitute(command, values)


class Tool:
    """A load generator that runs in a session of its own, its output in files."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.command = list(command)
        self.stdout, self.stderr = folder / "stdout.txt", folder / "stderr.txt"

    def __enter__(self) -> Self:
        with self.stdout.open("wb") as out, self.stderr.open("wb") as err:
            try:
                self._process = Guarded(self.command, out, err)
            except OSError as error:
                raise InvalidArgumentError(
                    f"{self.command[0]}: cannot be started: {error.strerror or error}"
                ) from None
        self.started = time.perf_counter_ns()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end()

    @property
    def code(self) -> int | None:
        """Exit status; None while it runs."""
        return self._process.poll()

    def sleep_until(self, moment: int) -> bool:
        """Sleep until a time by ``perf_counter_ns``; return True if the tool still runs then."""
        while (left := (moment - time.perf_counter_ns()) / 1e9) > 0:
            if self.code is not None:
                return False
            time.sleep(min(left, 0.05))
        return self.code is None

    def wait(self, seconds: float) -> bool:
        """Wait for its end; return False if it did not come in time."""
        return self._process.wait(seconds)

    @property
    def failure(self) -> str:
        """A clause on its exit status; empty where it is 0."""
        if not self.code:
            return ""
        return f"; it ended with status {self.code}, and said: {self.last_output()}"

    def last_output(self) -> str:
        """Return the end of its output, for a message."""
        for path in (self.stderr, self.stdout):
            with path.open("rb") as stream:
                stream.seek(max(path.stat().st_size - 4096, 0))
                text = stream.read(4096).decode("utf-8", "replace").split("\n")
            last = " / ".join(line.strip() for line in text if line.strip())[-300:]
            if last:
                return printable(last, 300)
        return "nothing"


def written_files(folder: Path) -> list[Path]:
    """Return the files that a tool wrote to ``{out}``, beside it or below it, largest first."""
    printed = (folder / "stdout.txt", folder / "stderr.txt")
    files = [path for path in sorted(folder.rglob("*"))[:MOST_FILES] if path.is_file()]
    written = [path for path in files if path not in printed]
    return [*sorted(written, key=lambda path: -path.stat().st_size), *printed]


def read_output(
    paths: Sequence[Path],
    command: Sequence[str],
    format: str | None = None,  # noqa: A002
    options: ReadOptions | None = None,
) -> dict[str, Data]:
    """Read the one of a tool's outputs that is recognised best; the first among equals."""
    # Distributions come before mere summaries, which several tools write as well.
    candidates: list[tuple[int, Path]] = []
    for path in paths:
        if not path.exists() or not path.stat().st_size:
            continue
        if path.stat().st_size > MOST_OUTPUT:
            raise LatencyKitError(
                f"{command[0]} printed more than {MOST_OUTPUT >> 20} MiB; run it for a shorter time"
            )
        source = Source(path)
        with contextlib.suppress(UnknownFormatError, CorruptInputError):
            candidates.append((-int(detect(source, format).sniff(source.head)), path))
    best: dict[str, Data] = {}
    errors: list[CorruptInputError] = []
    for _, path in sorted(candidates, key=lambda candidate: candidate[0]):
        try:
            series = read_source(Source(path), options or ReadOptions(), format)
        except CorruptInputError as error:
            errors.append(error)
            continue
        if not all(isinstance(data, Summary) for data in series.values()):
            return series
        best = best or series
    if best:
        return best
    if errors:
        raise errors[0]
    raise LatencyKitError(
        f"no reader knows the output of {shlex.join(command)}; make it print its full output "
        "(`latencykit formats` lists what can be read), or write a file to {out}"
    )


# ------------------------------------------------------------
# The parameters of a Ctrl+Z test, checked.


@record()
class Plan:
    """The parameters of `ctrlz`, durations in seconds, the service time in ns."""

    command: tuple[str, ...]
    stall: float
    duration: float
    service_time: float
    options: ReadOptions
    progress: Callable[[str], None]
    server: str | Sequence[str] | None = None
    pid: int | None = None
    through: str | None = None
    remote: bool = False
    url: str | None = None
    rate: float = 200.0
    connections: int = 4
    at: str = "middle"
    series: str | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        if sys.platform == "win32":
            raise InvalidArgumentError(
                "Windows cannot freeze a process (it has no SIGSTOP); "
                "run this on Linux or macOS, or in WSL"
            )
        if not self.command:
            raise InvalidArgumentError(
                "no command to test; write it after --, "
                "as in: latencykit ctrlz -- hey -z {duration}s {url}"
            )
        if not 0 < self.stall < self.duration <= LONGEST:
            raise InvalidArgumentError(
                "the stall must be shorter than the run, and the run at most "
                f"{format_duration(LONGEST * 1e9)} long"
            )
        if not (0 < self.rate <= 100_000 and 1 <= self.connections <= 10_000):
            raise InvalidArgumentError(
                "the rate must be up to 100,000 per second, and the connections 1 to 10,000"
            )
        if self.scheduled and self.rate * self.stall > 0.9 * BACKLOG:
            raise InvalidArgumentError(
                f"{self.rate:g}/s for {format_duration(self.stall * 1e9)} are more requests than "
                f"the kernel keeps for a frozen server ({BACKLOG:,} connections); lower the rate, "
                "or shorten the stall"
            )
        if self.at not in ("middle", "end"):
            raise InvalidArgumentError(f"at is 'middle' or 'end', not {self.at!r}")
        servers = (self.server, self.pid, self.through)
        if sum(value is not None for value in servers) > 1:
            raise InvalidArgumentError(
                "a server command, a process id and through exclude each other"
            )
        if self.url is not None and all(value is None for value in servers):
            raise InvalidArgumentError(
                "url= (--url) is your own server's address: name its command or pid, "
                "or its address by through= (--through)"
            )
        if self.url is not None and self.through is None:
            loopback(self.url.replace("{port}", "1"), PORTS)

    def target(self) -> Target:
        """Return the server to freeze, not yet started."""
        if self.server is not None:
            return CommandTarget(self.server, self.url)
        if self.pid is not None:
            return ProcessTarget(self.pid, self.url)
        if self.through is not None:
            return ProxyTarget(self.through, self.url, remote=self.remote)
        return OwnTarget(self.service_time)

    @property
    def speaks_http(self) -> bool:
        """True if the server is known to speak HTTP: only then it is sent a request of our own."""
        if self.url is None:
            servers = (self.server, self.pid, self.through)
            return self.has_placeholder("url") or all(value is None for value in servers)
        return self.url.startswith("http://")

    def filled(self, url: str, folder: Path) -> list[str]:
        """Return the command with its places filled."""
        out = folder / "out"
        return filled(self.command, self.rate, self.duration, out, self.connections, url)

    def has_placeholder(self, *places: str) -> bool:
        """Return True if the command contains one of these places."""
        return has_placeholder(self.command, *places)

    @property
    def scheduled(self) -> bool:
        """True if the load generator is given a rate."""
        return self.has_placeholder("rate", "rate_per_connection")

    @property
    def stop_after(self) -> float:
        """Seconds from the first request to the freeze."""
        if self.at == "end":
            return self.duration - 0.6 * self.stall
        return (self.duration - self.stall) / 2

    @property
    def stalled(self) -> float:
        """Seconds of the freeze in which the run has requests due: some outlive it."""
        return min(self.stall, self.duration - self.stop_after)


# ------------------------------------------------------------
# Freezing the server in time, and the load generator as the server sees it meanwhile.

_GRACE = 30.0
_PATIENCE = 60.0


@record()
class Observed:
    """The load generator as its server sees it; None is unknown."""

    begin: int  # first request, by `perf_counter_ns`
    stall: FrozenSpan
    elapsed: float  # seconds from the first request to the tool's end
    base: float | None  # usual time of a request, ns
    waiting: tuple[Waiting | None, Waiting | None]  # early and late in the stall
    answered: bool  # a request sent during the stall was answered before its end
    before: float | None  # requests per second before the stall
    hidden: bool  # the server's own backlog after the thaw cannot be seen
    busy: float | None  # CPU share of the server while it was not frozen
    drain: float  # seconds after the thaw until the backlog was read; 0 where it is not visible
    requests: int | None  # all that arrived
    notes: tuple[str, ...]
    jitter: dict[str, int] | None = None  # percentile → ns by which our server was late otherwise


def observe(
    plan: Plan,
    target: Target,
    freezer: Freezer,
    tool: Tool,
    base: float | None,
    connections: set[str] | None = None,
) -> Observed:
    """Freeze in time, and return what the server sees."""
    # `connections` are those to the server before the tool was started, where they can be seen.
    begin = _first_request(target, tool, connections)
    opening = target.stats()
    if not tool.sleep_until(begin + round(plan.stop_after * 1e9)):
        raise LatencyKitError(
            f"{tool.command[0]} ended before the server was frozen, "
            f"{format_duration(plan.stop_after * 1e9)} after its first request; it must run for "
            f"{format_duration(plan.duration * 1e9)}; it said: {tool.last_output()}"
        )
    before = target.stats()
    plan.progress(f"the server is frozen for {format_duration(plan.stall * 1e9)}")
    started = freezer.stop(plan.stall, target.frozen())
    port = loopback(target.url, PORTS)[1] if target.url else None
    answered = False
    backlogs, times = [], []
    for part in (0.35, 0.85):
        tool.sleep_until(started + round(part * plan.stalled * 1e9))
        backlogs.append(None if port is None else waiting_requests(port))
        times.append(time.perf_counter_ns())
        foreign = not isinstance(target, OwnTarget | ProxyTarget) and plan.speaks_http
        if foreign and part < 0.5 and target.url:
            answered = probe(target.url, 1, 0.3 * plan.stalled) is not None
    # On a busy machine the tables take long to read: seen too late, nothing has grown.
    seen = [(moment - started) / 1e9 / plan.stalled for moment in times]
    early, late = backlogs
    if early and late and late.octets < 1.5 * early.octets and (seen[0] > 0.6 or seen[1] > 1.0):
        early = None
    thaw = freezer.wait()
    plan.progress("the server runs again")
    drain = 0.0  # seconds until the server has read all but a twentieth of the backlog
    if late is not None:
        # A proxy passes its backlog on: it is drained when the server behind it has read it.
        ports = [loopback(target.url, PORTS)[1]]
        if isinstance(target, ProxyTarget) and target.local:
            ports.append(target.port)
        while tool.sleep_until(time.perf_counter_ns() + 10_000_000):
            left = [waiting for waiting in map(waiting_requests, ports) if waiting is not None]
            if sum(waiting.octets for waiting in left) <= 0.05 * late.octets:
                break
        drain = (time.perf_counter_ns() - thaw) / 1e9
    limit = max(0.0, plan.duration - (thaw - begin) / 1e9) + plan.stall + _GRACE
    notes: tuple[str, ...] = ()
    if not tool.wait(limit):
        notes = (
            f"it was still running {format_duration(limit * 1e9)} after the thaw, and was ended",
        )
    ended = time.perf_counter_ns()
    after = target.stats()
    if notes:
        tool.__exit__()
    stall = FrozenSpan((started - begin) / 1e9, (thaw - begin) / 1e9)
    awake = max((ended - begin) / 1e9 - plan.stall, 0.1)
    rate = None
    if before is not None and before["requests"] is not None:
        rate = before["requests"] / plan.stop_after
    busy = None
    if opening is not None and after is not None and after["cpu"] is not None:
        busy = (after["cpu"] - opening["cpu"]) / awake
    return Observed(
        begin, stall, (ended - begin) / 1e9, base, (early, late), before=rate,
        answered=answered, busy=busy,
        hidden=isinstance(target, ProxyTarget) and not target.local,
        drain=drain, requests=None if after is None else after["requests"],
        jitter=target.jitter(started, thaw) if isinstance(target, OwnTarget) else None,
        notes=notes,
    )  # fmt: skip


def _first_request(target: Target, tool: Tool, connections: set[str] | None) -> int:
    """Return when our own server got a request, else the first connection or the tool's start."""
    own = target.stats() is not None
    if not own and (connections is None or not target.url):
        return tool.started
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        stats = target.stats()
        if stats is not None and stats["first"] is not None:
            return int(stats["first"])
        if not own and (connected_clients(loopback(target.url, PORTS)[1]) or set()) - (
            connections or set()
        ):
            return time.perf_counter_ns()
        if tool.code is not None:
            raise LatencyKitError(
                f"{tool.command[0]} ended without a request to {target.url}; "
                f"it said: {tool.last_output()}"
            )
        time.sleep(0.01)
    raise LatencyKitError(
        f"{tool.command[0]} sent no request to {target.url} within {_PATIENCE:g} s; "
        "does it take {url}?"
    )


# ------------------------------------------------------------
# `ctrlz`: does a load generator report that its server paused? Freeze the server, and compare the
# report with the schedule.

_BUSY = 0.7
_DRAIN = 0.2
_OVERLOAD = 0.33  # the queue after the thaw is then half as long as the one in the stall
_JITTER = 0.05  # of the stall
_MANY = 1.15
_AFTER = 0.25  # of the stall
_TURNS = 3  # a stall shorter than N intervals of a connection hides little from a closed loop


@record()
class Calibration:
    """A load generator's report of a stall, compared with the truth."""

    # What `load`, `server` and `machine` hold is described by its record.

    verdict: Verdict
    model: Model
    stall: float  # seconds that the server was frozen
    rows: tuple[CalibrationRow, ...]  # percentile by percentile, the maximum as 100
    reasons: tuple[str, ...]  # why this verdict, and further observations
    command: tuple[str, ...]  # as it was run
    tool: str | None
    version: str | None
    reported: Data = field(repr=False)  # the tool's report, in ns
    truth: Histogram = field(repr=False)  # response times of the schedule, in ns
    runs: tuple[Calibration, ...] = field(default=(), repr=False)  # of a repeated test
    notes: tuple[str, ...] = ()  # what the reader of the report remarks
    load: Mapping[str, Any] = field(default_factory=dict, repr=False)
    server: Mapping[str, Any] = field(default_factory=dict, repr=False)
    machine: Mapping[str, Any] = field(default_factory=dict, repr=False)


def ctrlz(
    command: str | Sequence[str],
    *,
    stall: str | float = "4s",
    duration: str | float = "12s",
    service_time: str | float = "1ms",
    repeat: int = 1,
    unit: str | None = None,
    column: str | None = None,
    check: bool = False,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Calibration:
    """Run a load generator against a server that is frozen for a while, and judge its report."""
    # The truth is the schedule's: requests at a constant rate over the run, those due in the stall
    # waiting for its end. For a closed loop at full speed these are the latencies of users who do
    # not wait for each other. With `check` nothing is frozen, and nothing judged: the tool runs for
    # two seconds, and its output is read. `settings` are the further fields of a `Plan`.
    if not 1 <= repeat <= 100:
        raise InvalidArgumentError(f"repeat must be 1 to 100, not {repeat}")
    plan = Plan(
        command=tuple(shlex.split(command) if isinstance(command, str) else command),
        stall=parse_duration(stall, "s") / 1e9,
        duration=parse_duration(duration, "s") / 1e9,
        service_time=parse_duration(service_time, "s"),
        options=ReadOptions(unit=unit, column=column),
        progress=progress or (lambda _: None),
        **settings,
    )
    if check:
        return _checked_run(plan)
    return _combined([_single_run(plan) for _ in range(repeat)])


def _single_run(plan: Plan) -> Calibration:
    with temporary_folder("ctrlz-") as folder:
        with plan.target() as target, Freezer(target.frozen()) as freezer:
            argv = plan.filled(target.url, folder)
            base = probe(target.url) if target.url and plan.speaks_http else None
            target.reset()
            port = loopback(target.url, PORTS)[1] if target.url else None
            connections = None if port is None else connected_clients(port)
            plan.progress(
                f"if this test is killed, `{freezer.by_hand}` or the next latencykit command "
                "thaws the server"
            )
            plan.progress(f"running {shlex.join(argv)}")
            with Tool(argv, folder) as tool:
                observed = observe(plan, target, freezer, tool, base, connections)
                failed = "".join(f"; {note}" for note in observed.notes) or tool.failure
        data = _read(plan, folder, argv, failed)
        # without a unit nothing can be judged, which is the reason that is given
        data = replace(data, unit="ns") if data.unit == "none" else data.to_unit("ns")
        return _judged(plan, observed, argv, data, target.kind)


def _read(plan: Plan, folder: Path, argv: list[str], failed: str) -> Samples | Histogram | Summary:
    """Return the series of the tool's output; keep an output that cannot be read."""
    try:
        output = read_output(written_files(folder), argv, plan.format, plan.options)
        name = _series_of(output) if plan.series is None else plan.series
        if name not in output:
            raise InvalidArgumentError(f"no series {name!r}; the output has {', '.join(output)}")
        data = output[name]
        return data.histogram() if isinstance(data, HistogramLog) else data
    except LatencyKitError as error:
        kept = Path(tempfile.mkdtemp(prefix="ctrlz-output-"))
        shutil.copytree(folder, kept, dirs_exist_ok=True)
        raise LatencyKitError(f"{error}{failed}; the output is kept in {kept}") from None


def _series_of(output: Mapping[str, Data]) -> str:
    """Return the name of the latencies; a reader of a tool gives its main series first."""
    names = list(output)
    if output[names[0]].run.format != "percentile-lines":
        return names[0]
    # Times of connections, or of an interval, must not be judged in place of all latencies.
    named = [name for name in names if re.search("latenc|response", name, re.IGNORECASE)] or names
    reported = [reported_percentiles(output[name], 0.0) for name in named]
    if any(values != reported[0] for values in reported):
        raise LatencyKitError(
            f"the output has several distributions; name one with --series: {', '.join(names)}"
        )
    return named[0]


def _checked_run(plan: Plan) -> Calibration:
    """Run the tool for two seconds without a freeze, and read its output."""
    plan = replace(plan, duration=2.0, stall=0.5)
    with temporary_folder("ctrlz-") as folder:
        with plan.target() as target, Tool(plan.filled(target.url, folder), folder) as tool:
            if not tool.wait(plan.duration + _GRACE):
                tool.__exit__()
            failed = tool.failure
        data = _read(plan, folder, tool.command, failed).to_unit("ns")
    rows = tuple(
        CalibrationRow(p, value, None, decisive=False)
        for p, value in sorted(reported_percentiles(data, plan.stall * 1e9).items())
    )
    why = f"the output is read as {data.run.format}; nothing was frozen"
    truth = scheduled_truth(FrozenSpan(0.0, 0.0), plan.duration)
    judgement = Judgement("unknown", rows, (why,))
    return _calibration(plan, target.kind, None, tool.command, data, truth, judgement)


def _judged(
    plan: Plan, observed: Observed, argv: list[str], data: Data, kind: str = "own"
) -> Calibration:
    scheduled = plan.scheduled
    duration = plan.duration if plan.has_placeholder("duration") else max(observed.elapsed, 0.001)
    rate = plan.rate if scheduled else None
    count = observed.requests if rate is None else None
    base, sent, skipped = observed.base, None, _skipped(data)
    # The schedule of what the tool reports: without the time in which it warms up.
    stall = replace(
        observed.stall, start=observed.stall.start - skipped, end=observed.stall.end - skipped
    )
    span = max(duration - skipped, 0.001)
    if count is not None:
        count = round(count * span / duration)
    truth = scheduled_truth(stall, span, rate=rate, count=count, base=base or 0.0)
    if rate is not None and observed.requests is not None:
        reached = min(1.0, (observed.before or rate) / rate)
        sent = min(1.0, observed.requests / (rate * duration * max(reached, 0.1)))
    judgement = judge(
        data, truth, stall.seconds * 1e9, stall.share_due(span), base=base,
        sent=sent, stretched=data.run.corrected == "tool" and not scheduled,
    )  # fmt: skip
    paced = _paced(observed, data, scheduled=scheduled)
    model = model_of(*observed.waiting, rate=rate, stall=plan.stalled, paced=paced)
    judgement, model = _applicable(
        plan, observed, judgement, model, rate, duration, data.run.timeouts
    )
    accused = judgement.verdict in ("omits", "partly", "loses")
    if accused and model == "open" and (plan.url or "").startswith("https:"):
        why = (
            "its requests came in time, but its times may leave out connecting and TLS's handshake"
        )
        reasons = (f"{judgement.seen}: {why}", *judgement.reasons[1:])
        judgement = replace(judgement, reasons=reasons)
    longest = max((row.reported for row in judgement.rows), default=0.0)
    if longest > 1.02e9 * observed.elapsed + 1e8:
        why = (
            f"the maximum is reported as {format_duration(longest)}, longer than the whole run of "
            f"{format_duration(observed.elapsed * 1e9)}: is the time before it counted twice?"
        )
        verdict = "unknown" if judgement.verdict == "honest" else judgement.verdict
        judgement = Judgement(verdict, judgement.rows, (why, *judgement.reasons))
    if data.run.unit_from == "assumed":
        why = "the output does not state its unit; give it by --unit"
        judgement = Judgement("unknown", judgement.rows, (why,))
    if skipped and stall.start < min(1.0, skipped):
        least = plan.stall + 2 * (skipped + 2) if plan.at == "middle" else skipped + 2 + plan.stall
        why = (
            f"the server was frozen {observed.stall.start:.2g} s after the first request, but the "
            f"report leaves out the first {skipped:g} s; use --duration {math.ceil(least)}s"
        )
        judgement = Judgement("unknown", judgement.rows, (why,))
    remarks = _remarks(plan, observed, model, rate, duration, judgement.verdict == "honest")
    reasons = (*judgement.reasons, *remarks)
    judgement = replace(judgement, reasons=(*reasons, *observed.notes))
    seconds = round(stall.seconds, 3)
    return _calibration(plan, kind, observed, argv, data, truth, judgement, model, seconds)


def _calibration(
    plan: Plan, kind: str, observed: Observed | None, argv: Sequence[str], data: Data,
    truth: Histogram, judgement: Judgement, model: Model = "unknown", stall: float = 0.0,
) -> Calibration:  # fmt: skip
    """Put a judgement together with what is known of tool, load, server and machine."""
    run, named = data.run, None if argv[0] in ("sh", "env") else Path(argv[0]).name
    duration = plan.duration if plan.has_placeholder("duration") else None
    rate = plan.rate if plan.scheduled else None
    return Calibration(
        judgement.verdict, model, stall, judgement.rows, judgement.reasons, tuple(argv),
        run.tool or named, run.version, data, truth, notes=run.notes,
        load={
            "duration": duration,
            "rate": rate,
            "connections": plan.connections if plan.has_placeholder("connections") else None,
            "due": round(rate * duration) if rate and duration else None,
            "sent": None if observed is None else observed.requests,
        },
        server={
            "kind": kind,
            "usual": None if observed is None else observed.base,
            "busy": None if observed is None else observed.busy,
            "jitter": None if observed is None else observed.jitter,
        },
        machine={
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "cpus": os.cpu_count(),
            "load_average": round(os.getloadavg()[0], 2),
        },
    )  # fmt: skip


def _skipped(data: Data) -> float:
    """Return the seconds at the start that the report leaves out, as its reader notes."""
    notes = (note for note in data.run.notes if isinstance(note, Note) and note.code == "begin")
    return max((note.value for note in notes), default=0.0)


def _applicable(
    plan: Plan,
    observed: Observed,
    judgement: Judgement,
    model: Model,
    rate: float | None,
    duration: float,
    timeouts: int,
) -> tuple[Judgement, Model]:
    """Return the judgement, or none where the schedule's truth does not apply to this tool."""
    late, before = observed.waiting[1], observed.before
    accused = judgement.verdict not in ("honest", "unknown")
    rest = max(observed.elapsed - plan.stop_after, 0.1)
    later = ((observed.requests or 0) - (before or 0.0) * plan.stop_after) / rest
    begun = before is None or before >= (0.5 * rate if rate else 0.3 * later)
    early = min(observed.stall.end, plan.duration)
    if plan.has_placeholder("duration"):
        early = 0.8 * duration
    unread = late is not None and late.octets
    over = judgement.verdict == "overcorrects"
    # The utilisation of the server, or of the connections where that is higher.
    load, connections = observed.busy or 0.0, 0 if late is None else late.connections
    if late is None and plan.has_placeholder("connections"):
        connections = plan.connections
    if plan.scheduled and connections:
        load = max(load, plan.rate * (observed.base or 0.0) / 1e9 / connections)
    stall = 1e9 * observed.stall.seconds
    jitter = (observed.jitter or {}).get("99", 0)
    top = max(judgement.rows, key=lambda row: row.percentile, default=None)
    behind = 0.0 if top is None or top.truth is None else (top.reported - top.truth) / 1e9
    many = (observed.requests or 0) / (rate * duration) if rate else 0.0
    after = duration - observed.stall.end
    unsent = judgement.verdict in ("partly", "omits") and 0 < many < 0.97
    used = min(load, 0.9)  # the rest is left to catch up with
    drain = observed.stall.seconds * max(_AFTER, used / (1 - used))
    turns = math.inf
    if model in ("paced", "unknown") and late is not None and late.connections:
        most = plan.connections if plan.has_placeholder("connections") else math.inf
        turns = (rate or before or math.inf) * plan.stalled / min(late.connections, most)
    if observed.answered:
        model = "unknown"
        why = (
            "the server answered while it should have been frozen: other processes serve the port, "
            "too; name the right --pid"
        )
    elif accused and observed.elapsed < early:
        why = (
            f"it ended {format_duration(observed.elapsed * 1e9, 2)} after its first request, in a "
            f"run of {format_duration(plan.duration * 1e9)}: did it stop at the first error? "
            "Raise its timeout"
        )
    elif accused and not begun:
        sent, full = map(format_rate, (before or 0.0, rate or later))
        why = (
            f"{sent} of {full} requests per second were sent before the freeze: it had not begun "
            f"its load; use --duration {math.ceil(2 * plan.duration)}s"
        )
    elif judgement.verdict == "loses" and before is None and not (timeouts or unread):
        model = "unknown"
        why = (
            "neither the report nor the connections show a request to the frozen process: "
            "is it the right one?"
        )
    elif over and observed.drain > _DRAIN * observed.stall.seconds:
        why = (
            f"the server needed {observed.drain:.2g} s for the backlog, "
            "which hides the tool's own behaviour; lower the rate"
        )
    elif over and behind > _DRAIN * observed.stall.seconds:
        why = (
            f"the slowest reply came {behind:.2g} s later than the stall explains: "
            "a queue in the tool itself may be the reason; lower the rate"
        )
    elif judgement.verdict in ("overcorrects", "partly") and jitter > _JITTER * stall:
        why = (
            f"the test's own server replied up to {format_duration(jitter)} late (p99) outside the "
            "freeze: this machine is too busy for a verdict"
        )
    elif judgement.verdict != "honest" and rate and many > _MANY:
        why = (
            f"{format_count(observed.requests or 0)} requests were sent where "
            f"{format_count(round(rate * duration))} were scheduled: the tool sends bursts or "
            "retries, and cannot be compared with the schedule"
        )
    elif unsent and plan.at == "middle" and after < drain:
        why = (
            f"the run ended {max(after, 0.0):.2g} s after the thaw, before a load generator that "
            "catches up could send all that was due; lower the rate, or use --duration "
            f"{math.ceil(plan.stall + 2 * drain)}s"
        )
    elif over and rate is None:
        why = "it is unknown how many requests were due: write the rate as {rate} in the command"
    elif over and rate and before is not None and before < 0.9 * rate:
        why = (
            f"{before:,.0f} of {rate:,.0f} requests per second were reached before the stall; "
            "lower the rate"
        )
    elif over and load > _OVERLOAD:
        why = f"at a utilisation of {load:.0%} the queue after the thaw explains it; lower the rate"
    elif over and (observed.hidden or (late is None and observed.busy is None)):
        why = "the backlog after the thaw cannot be seen here, and may explain it"
    elif judgement.verdict == "honest" and turns < _TURNS:
        why = (
            f"each connection was due to send {turns:.1f} requests in the stall, too few to "
            "distinguish loops that wait from those that do not; freeze the server for longer, or "
            "raise the rate"
        )
    else:
        return judgement, model
    return Judgement("unknown", judgement.rows, (why,)), model


def _paced(observed: Observed, data: Data, *, scheduled: bool) -> bool | None:
    """Return True if connections are known to idle between requests; None if it is unknown."""
    if scheduled or data.run.loop in ("paced", "closed"):
        return scheduled or data.run.loop == "paced"
    late = observed.waiting[1]
    if observed.before is None or late is None or not late.connections or not observed.base:
        return None
    busy = observed.before * observed.base / 1e9 / late.connections
    # In between, a rate may be the reason, or a load generator that is slow itself.
    return True if busy < 0.1 else None if busy < 0.3 else False


def _remarks(
    plan: Plan, observed: Observed, model: Model, rate: float | None, duration: float, honest: bool
) -> list[str]:
    """Return what else was observed: load, and requests sent."""
    remarks = []
    if observed.busy is not None and observed.busy > _BUSY:
        remarks.append(
            f"the test's server was busy {observed.busy:.0%} of the time: "
            "it may have been the bottleneck; lower the load"
        )
    if observed.requests is not None and rate is not None:
        due, sent = round(rate * duration), observed.requests
        remark = f"{format_count(sent)} of {format_count(due)} scheduled requests were sent"
        if sent > _MANY * due:
            text = (
                f"{format_count(sent)} requests were sent where {format_count(due)} were scheduled"
            )
            remarks += [text] * honest  # to others it is the reason
        elif sent < 0.97 * due:
            remarks.append(remark)
        elif model in ("paced", "closed"):
            remarks.append(f"{remark}, those of the stall late: it catches up")
    if observed.before is None and plan.through is None:
        usual = "unknown" if observed.base is None else format_duration(observed.base)
        remarks.append(
            "the run is taken to begin with the first connection; "
            f"the usual time of a request is {usual}"
        )
    return remarks


def _combined(runs: list[Calibration]) -> Calibration:
    """Return the verdict of most runs, with the medians of their rows."""
    if len(runs) == 1:
        return runs[0]
    verdicts, models = Counter(run.verdict for run in runs), Counter(run.model for run in runs)
    verdict, votes = verdicts.most_common(1)[0]
    chosen = next(run for run in runs if run.verdict == verdict)
    rows = []
    for row in chosen.rows:
        same = [other for run in runs for other in run.rows if other.percentile == row.percentile]
        reported = median(other.reported for other in same)
        truths = [other.truth for other in same if other.truth is not None]
        rows.append(replace(row, reported=reported, truth=median(truths) if truths else None))
    vote = f"{votes} of {len(runs)} runs: {verdict}"
    if len(verdicts) > 1:
        vote += f" ({', '.join(f'{name} {count}' for name, count in verdicts.items())})"
    if 2 * votes <= len(runs):
        verdict = "unknown"
    return replace(
        chosen, verdict=verdict, model=models.most_common(1)[0][0], rows=tuple(rows),
        stall=median(run.stall for run in runs), reasons=(vote, *chosen.reasons), runs=tuple(runs),
    )  # fmt: skip
