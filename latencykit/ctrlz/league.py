"""The league table: ``python -m latencykit.ctrlz.league`` tests every load generator installed.

It is fair to closed loops: they answer another question (the throughput of N callers that wait for
each reply), and for that question their numbers are right. The table shows each tool's report of a
stall that users would have felt, and the flags that make the report honest.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import latencykit
from latencykit.ctrlz.run import ctrlz
from latencykit.errors import LatencyKitError
from latencykit.units import format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latencykit.ctrlz.run import Calibration

__all__ = ["ENTRIES", "Entry", "Result", "markdown", "run_league"]

_OWN = (sys.executable, "-m", "latencykit.ctrlz.client")


@dataclass(frozen=True)
class Entry:
    """A load generator in one of its modes.

    Attributes
    ----------
    tool : str
        Its name, which is also the program that has to be installed.
    mode : str
        The effect of the flags, in words.
    command : tuple of str
        With places to fill, as `ctrlz` takes it.
    advice : str
        The flags that make its report honest.
    least : float
        Seconds that a run must last at least: the tool leaves out its beginning.
    """

    tool: str
    mode: str
    command: tuple[str, ...]
    advice: str
    least: float = 0.0

    @property
    def installed(self) -> bool:
        """True if every program that the command needs is installed."""
        return all(shutil.which(name) is not None for name in self.programs)

    @property
    def programs(self) -> tuple[str, ...]:
        """Programs that the command needs."""
        return () if self.command[: len(_OWN)] == _OWN else (self.tool,)


def _own(mode: str, flags: str, label: str, advice: str) -> Entry:
    command = f"{mode} {{url}} --duration {{duration}}s -o {{out}} {flags}"
    return Entry("latencykit", label, (*_OWN, *command.split()), advice)


def _entry(tool: str, mode: str, command: str, advice: str, least: float = 0.0) -> Entry:
    return Entry(tool, mode, tuple(shlex.split(command)), advice, least)


_PACED = "--rate {rate} --connections {connections}"
_VEGETA = "echo 'GET {url}' | vegeta attack -rate={rate} -duration={duration}s"
_ENCODE = "| vegeta encode -to csv"
_NO_FLAG = "none: no flag makes it an open loop"
_MANY = "{many}"  # requests for about the full run of a closed loop; our server takes 1 ms each
_OHA = "oha --no-tui --output-format json -z {duration}s -c {connections} -q {rate}"
_WRK = "-t 1 -c {connections} -d {duration}s --latency"
_UNTIL_AFTER = "none needed if the run goes on after the last stall"

ENTRIES: tuple[Entry, ...] = (
    _own("open", "--rate {rate}", "open", "none needed"),
    _own("catchup", _PACED, "paced, catches up", "`--intended`: times from the schedule"),
    _own("closed", _PACED, "paced", "`open`"),
    _own("closed", "--connections {connections}", "full speed", "`open`"),
    _entry(
        "ab", "full speed", "ab -q -k -c {connections} -t {duration} -n 10000000 {url}", _NO_FLAG
    ),
    _entry(
        "autocannon",
        "`-R`",
        "autocannon -j -c {connections} -d {duration} -R {rate} {url}",
        "none: it corrects by 1 ms, whatever the rate",
    ),
    _entry(
        "bombardier",
        "`-r`",
        "bombardier -c {connections} -d {duration}s -r {rate} -l -p r -o json {url}",
        _NO_FLAG,
    ),
    _entry(
        "fortio",
        "`-qps`",
        "fortio load -quiet -qps {rate} -c {connections} -t {duration}s -json {out} {url}",
        _NO_FLAG,
    ),
    _entry(
        "h2load",
        "`--rps`",
        "h2load --h1 -c {connections} --rps {rate_per_connection} -D {duration} --log-file={out} "
        "{url}",
        _NO_FLAG,
    ),
    _entry(
        "hey",
        "`-q`",
        "hey -z {duration}s -c {connections} -q {rate_per_connection} {url}",
        _NO_FLAG,
    ),
    _entry(
        "oha",
        "`-q`",
        f"{_OHA} {{url}}",
        "`--latency-correction`, and a run that goes on after the last stall",
    ),
    _entry(
        "oha", "`-q --latency-correction`", f"{_OHA} --latency-correction {{url}}", _UNTIL_AFTER
    ),
    _entry(
        "redis-benchmark",
        "full speed",
        f"redis-benchmark -h {{host}} -p {{port}} -c {{connections}} -n {_MANY} -t get",
        "none; it also clips at 3 s",
    ),
    _entry("siege", "full speed", "siege -j -b -c {connections} -t {duration}S {url}", _NO_FLAG),
    Entry("vegeta", "`-rate`", ("sh", "-c", f"{_VEGETA} {_ENCODE}"), "none needed"),
    Entry(
        "vegeta",
        "`-max-workers`",
        ("sh", "-c", f"{_VEGETA} -max-workers={{connections}} {_ENCODE}"),
        "no `-max-workers`",
    ),
    _entry("wrk", "full speed", f"wrk {_WRK} {{url}}", "`--timeout` longer than any stall"),
    _entry(
        "wrk",
        "full speed, `--timeout 60s`",
        f"wrk {_WRK} --timeout 60s {{url}}",
        "none needed: it corrects by itself",
    ),
    _entry("wrk2", "`-R`, corrected", f"wrk2 {_WRK} -R {{rate}} {{url}}", _UNTIL_AFTER, 30.0),
)

_VERSION_FLAGS = {
    "ab": "-V", "wrk": "-v", "wrk2": "-v", "vegeta": "-version", "fortio": "version", "siege": "-V",
    **dict.fromkeys(("autocannon", "bombardier", "h2load", "oha", "redis-benchmark"), "--version"),
}  # fmt: skip


def _version(tool: str) -> str:
    """Return the version that a tool reports; nothing where it has no flag for it."""
    if tool == "latencykit":
        return latencykit.__version__
    if tool not in _VERSION_FLAGS:
        return ""
    answer = subprocess.run(  # noqa: S603
        [tool, _VERSION_FLAGS[tool]], capture_output=True, text=True, check=False, timeout=20
    )
    number = re.search(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)?)", answer.stdout + answer.stderr)
    return number[1] if number else ""


@dataclass(frozen=True)
class Result:
    """The result of an entry: a calibration, or the reason for having none."""

    entry: Entry
    calibration: Calibration | None
    version: str = ""
    error: str = ""

    def record(self) -> dict[str, Any]:
        """Return the result as JSON takes it."""
        texts = {"tool": self.entry.tool, "version": self.version}
        texts |= {"mode": self.entry.mode, "advice": self.entry.advice}
        if self.calibration is None:
            return texts | {"error": self.error}
        return texts | {"reasons": list(self.calibration.reasons)} | self.calibration.record()


def run_league(
    entries: Sequence[Entry] = ENTRIES,
    *,
    stall: str | float = "4s",
    duration: str | float = "12s",
    connections: int = 4,
    progress: Callable[[str], object] = lambda _: None,
    **options: Any,
) -> list[Result]:
    """Test every entry whose program is installed."""
    seconds, frozen = (parse_duration(value, "s") / 1e9 for value in (duration, stall))
    many = str(round(0.75 * connections * (seconds - frozen) / 0.001))
    options |= {"stall": stall, "connections": connections}
    table = []
    for entry in entries:
        if not entry.installed:
            progress(f"{entry.tool}: not installed")
            continue
        progress(f"{entry.tool} ({entry.mode})")
        command = [word.replace(_MANY, many) for word in entry.command]
        version = _version(entry.tool)
        try:
            table.append(
                Result(
                    entry, ctrlz(command, duration=max(seconds, entry.least), **options), version
                )
            )
        except LatencyKitError as error:
            table.append(Result(entry, None, version, str(error)))
        last = table[-1].calibration
        progress(f"    {last.verdict}: {last.reasons[0]}" if last else f"    {table[-1].error}")
    return table


_COLUMNS = (
    "tool", "version", "mode", "model", "reported p99", "true p99", "reported max", "verdict",
    "flags that make it honest",
)  # fmt: skip


def markdown(table: Sequence[Result]) -> str:
    """Return the league as a Markdown table."""
    lines: list[Sequence[str]] = [_COLUMNS, ["---"] * len(_COLUMNS)]
    for result in table:
        entry, calibration = result.entry, result.calibration
        cells = ["", "", "", "", f"no result: {result.error}"]
        if calibration is not None:
            reported = {row.percentile: format_duration(row.reported) for row in calibration.rows}
            p99, top = (reported.get(p, "not reported") for p in (99.0, 100.0))
            truth = format_duration(calibration.truth.percentile(99.0))
            cells = [calibration.model, p99, truth, top, f"**{calibration.verdict}**"]
        lines.append([entry.tool, result.version, entry.mode, *cells, entry.advice])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the league and print its table; progress goes to standard error."""
    parser = argparse.ArgumentParser(prog="python -m latencykit.ctrlz.league", description=__doc__)
    parser.add_argument("tools", nargs="*", help="only these")
    parser.add_argument("--stall", default="4s")
    parser.add_argument("--duration", default="12s")
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = vars(parser.parse_args(arguments))
    names, as_json = options.pop("tools"), options.pop("json")
    entries = [entry for entry in ENTRIES if not names or entry.tool in names]
    table = run_league(entries, progress=lambda text: sys.stderr.write(f"{text}\n"), **options)
    records = [result.record() for result in table]
    sys.stdout.write((json.dumps(records, indent=1) if as_json else markdown(table)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
