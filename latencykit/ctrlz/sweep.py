"""`sweep`: measure one load after the other, and find the highest that surely meets an SLO."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from latencykit import units
from latencykit._arrays import Value
from latencykit._files import whole
from latencykit._processes import own_command
from latencykit._records import record
from latencykit._typing import Floats
from latencykit.analysis.capacity import Capacity, LoadCurve, LoadRow, load_curve, load_row
from latencykit.analysis.slo import SLO, Outcome, SLORow, for_all_series
from latencykit.analysis.sweep import Probe, Purpose, Search, Stop, Tried, times_longer
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.repr_html import listing_html
from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.ctrlz.run import Tool, filled, has_placeholder, read_output, written_files
from latencykit.errors import CorruptInputError, InvalidArgumentError, LatencyKitError
from latencykit.io.source import Data, ReadOptions
from latencykit.io.writing import write
from latencykit.record.hiccup import lateness

if TYPE_CHECKING:
    import pandas as pd


RECORD = "sweep.json"
"""The file in the folder of a sweep that lists its runs."""

LONGER = 8.0
"""The longest run, in usual durations."""

_PAUSE = 2.0
_GRACE = 60.0


RESOLUTION = 1_000_000
"""Of the hiccups, ns."""


@record(eq=False)
class SweepRun(Value):
    """One run of a sweep."""

    number: int  # in the order of the runs, from 1
    rate: float  # requests per second that were offered
    duration: float  # seconds
    purpose: Purpose
    verdict: Outcome | Literal["void"]  # void: the warm-up, or the load generator was stalled
    reason: str
    data: Data | None = field(repr=False)  # None where the load generator failed
    hiccup: float = math.nan  # longest that this machine delayed the load generator, ns, if known

    @property
    def name(self) -> str:
        """Its name in the load curve, and of its folder."""
        return f"{self.number:02d}-{self.rate:g}"


@record(eq=False)
class Sweep(Value):
    """The highest load that meets an SLO, and the runs that show it.

    Attributes
    ----------
    runs : tuple of SweepRun
        In their order.
    curve : LoadCurve or None
        Of the runs that count; None if there is none.
    slo : SLO
    stopped : str
        Why the search ended.
    complete : bool
        False if it ended before the bracket was as narrow as possible.
    confidence : float
        Of each single verdict.
    notes : tuple of str
    command : tuple of str
        Of the load generator; empty for a callable.
    folder : Path or None
    """

    runs: tuple[SweepRun, ...]
    curve: LoadCurve | None
    slo: SLO
    stopped: str
    complete: bool
    confidence: float = 0.95
    notes: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    folder: Path | None = None

    @property
    def capacity(self) -> Capacity | None:
        """The estimate and its bracket: the highest load met, and the lowest missed above it."""
        return None if self.curve is None else self.curve.capacity

    @property
    def passed(self) -> bool | None:
        """True if some load surely meets the SLO, False if none does, None if undecided."""
        return None if self.curve is None else self.curve.passed

    @property
    def table(self) -> pd.DataFrame:
        """One row per run that counts; see `LoadCurve.table`."""
        import pandas as pd

        return pd.DataFrame() if self.curve is None else self.curve.table

    @property
    def hysteresis(self) -> tuple[float, ...]:
        """Loads that met the SLO in one run and missed it in another."""
        rates = {run.rate for run in self.runs}
        return tuple(
            rate
            for rate in sorted(rates)
            if {"met", "missed"} <= {run.verdict for run in self.runs if run.rate == rate}
        )

    def _repr_html_(self) -> str:
        limited = {limit.percentile for limit in self.slo.limits} - {None}
        shown = sorted({50.0, *(p for p in limited if p is not None)})
        known = {row.name: row for row in (() if self.curve is None else self.curve.rows)}
        rows = []
        for run in self.runs:
            row = known.get(run.name)
            values = {} if row is None else LoadCurve.percentiles(row, shown)
            rows.append((
                str(run.number), f"{units.format_rate(run.rate)}/s",
                units.format_duration(run.duration * 1e9),
                *(units.format_value(values[p], "ns") if p in values else "" for p in shown),
                run.purpose, "no verdict" if run.verdict == "void" else run.verdict,
            ))  # fmt: skip
        levels = (f"p{units.format_percentile(p)}" for p in shown)
        header = ("run", "load", "time", *levels, "purpose", "verdict")
        return listing_html(
            f"{self.slo}: {bracket_text(self.curve)}", header, rows, (self.stopped, *self.notes)
        )

    def __repr__(self) -> str:
        capacity = self.capacity
        low, high = (capacity.low, capacity.high) if capacity else (0.0, math.inf)
        met = f"met at {units.format_rate(low)}/s" if low else "met at no load"
        missed = f", missed at {units.format_rate(high)}/s" if math.isfinite(high) else ""
        return f"Sweep({len(self.runs)} runs, {met}{missed})"


def sweep(
    load: str | Sequence[str] | Callable[[float, float], Data],
    slo: SLO | str,
    *,
    start: float = 100.0,
    stop: float = 50_000.0,
    duration: str | float = "20s",
    budget: str | float | None = None,
    runs: int = 12,
    precision: float = 0.1,
    confidence: float = 0.95,
    url: str | None = None,
    connections: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    accept_omission: bool = False,
    series: str | None = None,
    format: str | None = None,  # noqa: A002 - the contract's name
    unit: str | None = None,
    column: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Sweep:
    """Find the highest load at which an SLO is surely met, with any load generator.

    The load doubles until the SLO is missed; then the bracket is narrowed, by longer runs where one
    decides nothing; at last both ends are measured again. Ctrl+C ends the search, not the result.

    Parameters
    ----------
    load : str, sequence of str, or callable
        Command of a load generator, in which ``{rate}``, ``{duration}`` (seconds), ``{requests}``,
        ``{rate_per_connection}``, ``{connections}``, ``{url}`` and ``{out}`` are filled in; or a
        function of rate and duration that returns one of the data types.
    slo : SLO or str
        Such as ``"p99=20ms, failed=0.1%"``.
    start, stop : float
        Lowest and highest load, requests per second.
    duration : str or float, default "20s"
        Of a usual run; a number is in seconds. The longest run takes eight times as long.
    budget : str or float, optional
        Time for all runs together.
    runs : int, default 12
        The most runs, the warm-up included.
    precision : float, default 0.1
        The bracket is narrow enough when its ends differ by this share.
    confidence : float, default 0.95
        That the bracket holds the capacity; each single verdict is surer.
    url, connections
        Values of ``{url}`` and ``{connections}``.
    folder : path, optional
        New folder for the outputs of all runs, which `load_curve` and ``latencykit load`` read.
    accept_omission : bool, default False
        Go on with a load generator that is known to omit the requests that a stall delays.
    series, format, unit, column
        How the output is read; see `read`.
    progress : callable, optional
        Takes a line of text per run.

    Raises
    ------
    InvalidArgumentError
        For a command without a rate, or a load generator that is known to omit.
    LatencyKitError
        If the first output cannot be read.

    Examples
    --------
    A simulated queue, M/M/1, that serves 1,000 requests per second: the p99 of its response times
    is ``ln(100) / (1000 - rate)``, which is 20 ms at 770 per second.

    >>> from latencykit import simulate
    >>> server = simulate.Server(simulate.exponential("1ms"))
    >>> def measure(rate, duration):
    ...     return simulate.open_loop(server, simulate.poisson(rate, duration), duration=duration)
    >>> found = sweep(measure, "p99=20ms", start=400, duration="60s")
    >>> found.capacity.low < 770 < found.capacity.high, len(found.runs) <= 12
    (True, True)
    """
    limits = for_all_series(slo)
    bare = [limit.statistic for limit in limits.limits if limit.bare]
    if bare and not callable(load):
        raise InvalidArgumentError(
            f"the limit of {bare[0]} has no unit; write it with one, such as {bare[0]}=20ms"
        )
    usual = units.parse_duration(duration, "s") / 1e9
    left = math.inf if budget is None else units.parse_duration(budget, "s") / 1e9
    longest = min(LONGER * usual, max(usual, left / 6))
    search = Search(float(start), float(stop), usual, longest, precision, runs)
    reading = {"series": series, "format": format, "unit": unit, "column": column}
    if callable(load):
        generator = _function(load, None if folder is None else Path(folder))
    else:
        words = tuple(shlex.split(load)) if isinstance(load, str) else load
        words = tuple(words) if isinstance(words, list) else words
        if not (isinstance(words, tuple) and all(isinstance(word, str) for word in words)):
            kind = type(load).__name__
            raise InvalidArgumentError(f"expected a command or a function of the rate, not {kind}")
        path = Path(folder if folder is not None else time.strftime("sweep-%Y%m%d-%H%M%S"))
        generator = _command(words, path, url, connections, reading)
    say = progress or (lambda _: None)
    # Of all verdicts together, on either side, none is wrong: Bonferroni's bound.
    each = 1 - 2 * (1 - confidence) / search.runs
    state = _State(search, limits, generator, each, accept_omission, say)
    with _Hiccups() as hiccups:
        return state.search_within(time.monotonic() + left, hiccups)


@dataclass
class _State:
    """A sweep under way."""

    search: Search
    slo: SLO
    generator: _Generator
    confidence: float  # of each single verdict
    accept_omission: bool
    say: Callable[[str], None]
    runs: list[SweepRun] = field(default_factory=list)
    hiccups: list[Floats] = field(default_factory=list)
    rows: dict[str, LoadRow] = field(default_factory=dict)
    curve: LoadCurve | None = None
    notes: dict[str, str] = field(default_factory=dict)  # by what they are about, each once

    def search_within(self, deadline: float, hiccups: _Hiccups) -> Sweep:
        """Measure until the search ends, the time is used up, or Ctrl+C."""
        stopped = Stop("interrupted", complete=False)
        estimate = math.nan
        try:
            while True:
                left = deadline - time.monotonic()
                # The runs as the search sees them.
                tried = []
                for number, run in enumerate(self.runs):
                    result = Tried(run.rate, run.duration, run.purpose, run.verdict)
                    before = self.runs[number - 1] if number else run
                    again = before.rate == run.rate and before.purpose != "warm-up"
                    stalled_again = run.verdict == before.verdict == "void" and again
                    if run.purpose != "warm-up" and (run.data is None or stalled_again):
                        # A load that the load generator cannot send: nothing is known from here on.
                        result = replace(
                            result, verdict="unknown", within=False, longer=math.inf, failed=True
                        )
                    elif run.verdict in ("unknown", "missed") and self.curve is not None:
                        index = [row.name for row in self.curve.rows].index(run.name)
                        checks = self.curve.checks[index]
                        within = run.verdict == "unknown" and all(
                            not check.value > check.limit for check in checks
                        )
                        longer = times_longer(self.curve, run.name)
                        result = replace(result, within=within, longer=longer)
                    tried.append(result)
                following = self.search.next(tried, estimate, left)
                if isinstance(following, Stop):
                    stopped = following
                    break
                self._measure(following, hiccups)
                if self.curve is not None and self.curve.capacity is not None:
                    estimate = self.curve.capacity.rate
        except KeyboardInterrupt:
            if self.generator.folder is not None:  # of the run that was interrupted
                for path in self.generator.folder.glob(f"{len(self.runs) + 1:02d}-*"):
                    shutil.rmtree(path, ignore_errors=True)
        except Exception as error:
            error.add_note(f"after {len(self.runs)} runs of the sweep; {bracket_text(self.curve)}")
            raise
        return Sweep(
            tuple(self.runs), self.curve, self.slo, stopped.reason, stopped.complete,
            self.confidence, tuple(self.notes.values()), self.generator.words,
            self.generator.folder,
        )  # fmt: skip

    def _measure(self, probe: Probe, hiccups: _Hiccups) -> None:
        """Measure one load, and judge all runs anew, since each is judged beside the others."""
        number = len(self.runs) + 1
        run = SweepRun(number, probe.rate, probe.duration, probe.purpose, "void", "", None)
        begin = time.perf_counter_ns()
        try:
            data: Data | None = self.generator.run(run)
        except _RunFailedError as error:
            if not any(run.data is not None for run in self.runs):
                raise LatencyKitError(str(error)) from None
            data, run = None, replace(run, reason=str(error))
        end = time.perf_counter_ns()
        wall = (end - begin) / 1e9
        # A simulation takes no time, so that no hiccup delays it.
        late = hiccups.between(begin, end) if wall > 0.5 * probe.duration else np.empty(0)
        hiccup = float(late.max()) if late.size else math.nan
        if data is not None:
            data = data.with_run(rate=probe.rate)
            self._admit(data.run)
            sent = data.run.achieved or (data.count or 0) / (data.run.duration or math.inf)
            if (data.count or 0) > 100 and sent > 1.5 * probe.rate:
                self.notes.setdefault(
                    "rate",
                    f"{sent:,.0f}/s were sent where {probe.rate:g}/s were asked for: the load "
                    "generator does not keep to {rate}, or sends several requests each time",
                )
            if probe.purpose != "warm-up":
                self.rows[run.name] = load_row(run.name, data, self.confidence)
        self.runs.append(replace(run, data=data, hiccup=hiccup))
        self.hiccups.append(late)
        self._judge()
        if self.generator.folder is not None:
            record = {
                "schema_version": 1, "slo": str(self.slo), "command": list(self.generator.words),
                "reading": dict(self.generator.reading),
                "runs": [
                    {"folder": run.name, "number": run.number, "rate": run.rate,
                     "duration": run.duration, "purpose": run.purpose, "verdict": run.verdict,
                     "reason": run.reason}
                    for run in self.runs
                ],
            }  # fmt: skip
            with whole(self.generator.folder / RECORD) as temporary:
                temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        self.say(_line(self.runs[-1], self.curve, self.search.runs))
        time.sleep(min(_PAUSE, 0.1 * wall))

    def _admit(self, run: Run) -> None:
        """Refuse or mark a load generator that is known to omit what a stall delays."""
        tool = run.tool or "the load generator"
        timed = run.measure == "response" or run.corrected in ("tool", "schedule", "us")
        if run.loop == "closed" and timed and not self.accept_omission:
            raise InvalidArgumentError(
                f"{tool} sends a request when a reply arrives (closed loop), so that it offers no "
                "set load; use an open loop (wrk2, vegeta, k6's arrival rates, "
                "oha --latency-correction)"
            )
        if run.loop in ("closed", "paced") and not timed:
            omits = (
                f"{tool} times requests from the send, so that those which a stall delays are "
                "missing from its report"
            )
            if not self.accept_omission:
                raise InvalidArgumentError(
                    f"{omits}; measure with an open loop (wrk2, vegeta, k6's arrival rates, "
                    "oha --latency-correction), or accept that the capacity is overestimated "
                    "(--accept-omission)"
                )
            self.notes["omits"] = f"{omits}: the capacity is overestimated"
        elif run.loop == "unknown" and run.corrected == "unknown":
            self.notes["loop"] = (
                "it is unknown whether the load generator omits requests that a stall delays; "
                "latencykit ctrlz tests it"
            )

    def _judge(self) -> None:
        """Judge all runs together."""
        curve: LoadCurve | None = None
        usable, stalls = self.rows, dict[str, str]()
        if usable:
            first = load_curve(usable, self.slo, confidence=self.confidence)
            for row, checks in zip(first.rows, first.checks, strict=True):
                number = next(k for k, run in enumerate(self.runs) if run.name == row.name)
                stalls[row.name] = _stalled(self.hiccups[number], row, checks, self.slo)
            usable = {name: row for name, row in usable.items() if not stalls[name]}
            curve = first if len(usable) == len(stalls) else None
            if curve is None and usable:
                curve = load_curve(usable, self.slo, confidence=self.confidence)
        judged = []
        for run in self.runs:
            verdict: Outcome | Literal["void"] = "void"
            reason = run.reason
            if run.purpose == "warm-up":
                reason = reason or "warms up"
            elif run.data is None:
                verdict = "unknown"
            elif stalls[run.name]:
                reason = stalls[run.name]
            elif curve is not None:
                verdict, reason = curve.decided(run.name)
            judged.append(replace(run, verdict=verdict, reason=reason))
        self.runs, self.curve = judged, curve


def _stalled(late: Floats, row: LoadRow, checks: Sequence[SLORow], slo: SLO) -> str:
    """Return why a run has no verdict: hiccups of the load generator's machine may explain it."""
    if not late.size:
        return ""
    longest = units.format_duration(float(late.max()))
    share_lost = float((late > 10e6).mean())
    lost = 1 - row.achieved_high / row.offered if row.saturated else 0.0
    if row.saturated and lost > 3 * share_lost:
        return ""
    for limit, check in zip(slo.limits, checks, strict=True):
        if limit.bare or limit.percentile is None or row.data.unit != "ns":
            continue
        allowed = 1 - limit.percentile / 100
        delayed = float((late > 0.5 * limit.limit).mean())
        if not delayed or delayed <= 0.5 * allowed:
            continue
        slow = 0.0
        if check.bounded == "missed" and not isinstance(row.data, Summary) and row.data.count:
            slow = row.data.count_above(limit.limit) / row.data.count
        if slow <= allowed + 3 * delayed:
            share = f"{100 * delayed:.2g} % of the time by more than half of the limit"
            return f"the load generator was stalled, for up to {longest}: {share}"
    if share_lost > 0.01 and (row.saturated or not row.offered <= row.achieved_high / 0.99):
        return f"the load generator was stalled, for up to {longest}"
    return ""


def _line(run: SweepRun, curve: LoadCurve | None, most: int) -> str:
    """Return the line of progress of a run."""
    length = units.format_duration(run.duration * 1e9)
    words = [f"run {run.number} of at most {most}: {run.rate:g}/s for {length}"]
    if run.purpose == "warm-up":
        return f"{words[0]}: warm-up"
    if curve is not None and run.verdict != "void" and run.data is not None:
        index = [row.name for row in curve.rows].index(run.name)
        for check in curve.checks[index]:
            value, low, high = (
                units.format_duration(end * units.NANOSECONDS.get(check.unit, 1.0))
                if math.isfinite(end)
                else "?"
                for end in (check.value, check.low, check.high)
            )
            if check.statistic == "failed":
                value = f"{100 * check.value:.3g} %"
            elif low != high:
                value += f" ({low} to {high})"
            words += [] if math.isnan(check.value) else [f"{check.statistic} {value}"]
    why = f" ({run.reason})" if run.reason else ""
    verdict = {"void": "no verdict"}.get(run.verdict, run.verdict)
    return f"{', '.join(words)}: {verdict}{why}; {bracket_text(curve)}"


def bracket_text(curve: LoadCurve | None) -> str:
    """Return the bracket so far."""
    capacity = None if curve is None else curve.capacity
    low = f"{capacity.low:g}" if capacity is not None and capacity.low else "?"
    known = capacity is not None and math.isfinite(capacity.high)
    return f"bracket {low} to {f'{capacity.high:g}' if capacity and known else '?'}/s"


# ------------------------------------------------------------
# What sends the load: a command, or a function.


class _RunFailedError(LatencyKitError):
    """A load generator that failed, or whose output cannot be read."""


@dataclass
class _Generator:
    """The source of the load, and the folder of its outputs."""

    run: Callable[[SweepRun], Data]  # sends a load, and returns what was measured
    folder: Path | None
    words: tuple[str, ...] = ()
    reading: Mapping[str, str | None] = field(default_factory=dict)


def _function(function: Callable[[float, float], Data], folder: Path | None) -> _Generator:
    """A function of rate and duration that returns data."""
    if folder is not None:
        _make(folder)

    def run(run: SweepRun) -> Data:
        data = function(run.rate, run.duration)
        if not isinstance(data, Samples | HistogramLog | Histogram):
            raise InvalidArgumentError(
                "the function must return Samples, a HistogramLog or a Histogram, "
                f"not {type(data).__name__}"
            )
        if folder is not None:
            (folder / run.name).mkdir()
            write(data, folder / run.name / "out.json")
        return data

    return _Generator(run, folder)


def _command(
    words: tuple[str, ...],
    outputs: Path,
    url: str | None,
    connections: int | None,
    reading: Mapping[str, str | None],
) -> _Generator:
    """A load generator as a command."""
    if not has_placeholder(words, "rate", "rate_per_connection"):
        raise InvalidArgumentError(
            "the command does not take {rate}, the load to send; write it for example as: "
            "latencykit sweep --slo 99=20ms -- wrk2 -R {rate} -d {duration} --latency URL"
        )
    if not has_placeholder(words, "duration", "requests"):
        raise InvalidArgumentError(
            "the command takes neither {duration} nor {requests}, so that no run can be longer "
            "where a short one decides nothing"
        )
    filled(words, 1.0, 1.0, Path("out"), connections, url)
    if shutil.which(words[0]) is None:  # before there is a folder
        raise InvalidArgumentError(f"{words[0]}: cannot be started: no such program")
    _make(outputs)

    def run(run: SweepRun) -> Data:
        folder = outputs / run.name
        folder.mkdir()
        argv = filled(words, run.rate, run.duration, folder / "out", connections, url)
        with Tool(argv, folder) as tool:
            ended = tool.wait(1.5 * run.duration + _GRACE)
        try:
            return _read(folder, argv, reading)
        except LatencyKitError as error:
            text = str(error)
            if not ended:
                text = f"{shlex.join(argv)} had not ended {_GRACE:g} s after its time"
            elif tool.code:
                text = f"{shlex.join(argv)} failed (exit status {tool.code}): {tool.last_output()}"
            raise _RunFailedError(f"{text}; the output is kept in {folder}") from None

    return _Generator(run, outputs, words, reading)


def _make(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgumentError(f"{folder}: exists already; name a new folder for the outputs")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgumentError(f"{folder}: {error.strerror}; name another folder") from None


def _read(folder: Path, words: Sequence[str], reading: Mapping[str, str | None]) -> Data:
    """Return the series of a run: the one asked for, the only one, or the one of all operations."""
    options = ReadOptions(unit=reading.get("unit"), column=reading.get("column"))
    series = reading.get("series")
    output = read_output(written_files(folder), words, reading.get("format"), options)
    if series is not None and series not in output:
        raise InvalidArgumentError(f"no series {series!r}; the output has {', '.join(output)}")
    chosen = [series] if series is not None else [n for n, d in output.items() if d.run.aggregate]
    chosen = chosen or list(output)
    if len(chosen) > 1:
        names = ", ".join(chosen[:6])
        raise InvalidArgumentError(f"the output has several series ({names}); choose with --series")
    data = output[chosen[0]]
    if data.run.tool == "oha" and "--latency-correction" in words:  # which its report omits
        data = data.with_run(loop="open", measure="response", corrected="schedule")
    if isinstance(data, Summary):
        raise CorruptInputError(
            str(folder), None, "the output has single statistics only", "a distribution",
            "make the load generator print percentiles and a count, or write raw times to {out}",
        )  # fmt: skip
    if data.run.unit_from == "assumed":
        raise InvalidArgumentError("the output does not state the unit of its values; give --unit")
    return data


# ------------------------------------------------------------
# The folder of a sweep.


def runs_in(folder: Path) -> dict[str, Data]:
    """Read the runs in the folder of a sweep that count: neither warm-ups nor void ones."""
    # The offered rate is that of the sweep.
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        reading = dict(record.get("reading") or {})
        counted = [run for run in record["runs"] if run["verdict"] in ("met", "missed", "unknown")]
        places = [(str(run["folder"]), float(run["rate"])) for run in counted]
        words = [str(word) for word in record["command"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptInputError(
            str(path), None, f"this is not the record of a sweep: {error}", "",
            "name a folder that latencykit sweep wrote",
        ) from None  # fmt: skip
    runs: dict[str, Data] = {}
    for name, rate in places:
        if not (folder / name).is_dir() or Path(name).name != name:
            continue  # a load generator that failed, or a folder that was removed
        with contextlib.suppress(CorruptInputError):
            runs[name] = _read(folder / name, words, reading).with_run(rate=rate)
    return runs


# ------------------------------------------------------------
# The hiccups of the machine that sends the load.


class _Hiccups:
    """A process that wakes every millisecond, for all of a sweep."""

    def __enter__(self) -> Self:
        command = own_command("latencykit.record.sampler", str(RESOLUTION))
        self._sampler = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603
        self._pieces: list[bytes] = []
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._sampler.kill()
        self._sampler.wait()
        self._thread.join()
        assert self._sampler.stdout is not None
        self._sampler.stdout.close()

    def _take(self) -> None:
        assert self._sampler.stdout is not None
        while data := self._sampler.stdout.read1(1 << 16):  # type: ignore[attr-defined]
            self._pieces.append(data)

    def between(self, begin: int, end: int) -> Floats:
        """Return the lateness of the slots due between two times of ``perf_counter_ns``, ns."""
        time.sleep(0.1)  # the sampler writes every 50 ms
        data = b"".join(self._pieces)
        rows = np.frombuffer(data[: len(data) // 24 * 24], np.int64).reshape(-1, 3)
        if not len(rows):
            return np.empty(0)
        origin = int(rows[0, 0])
        begin, end, rows = begin - origin, end - origin, rows[1:] - np.array([0, 0, origin])
        rows = rows[(rows[:, 2] >= begin) & (rows[:, 0] * RESOLUTION <= end)]
        pieces = (
            late[(now - late >= begin) & (now - late <= end)]
            for now, late in lateness(rows, RESOLUTION)
        )
        return np.concatenate([np.empty(0), *pieces])
