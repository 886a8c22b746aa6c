"""The league table: ``python -m latencykit.ctrlz.league`` runs the Ctrl+Z test with every load generator that it finds.

Fair to closed loops by design: they answer another question (how fast can so many callers go who wait for each reply), and
for that question their numbers are right. The table says what each report shows of a stall that users would have felt, and
which flags make it show that.
"""

from __future__ import annotations

import argparse
import json
import re
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
        What the flags ask for, in words.
    command : tuple of str
        With places to fill, as `ctrlz` takes it.
    advice : str
        Which flags make its report honest.
    """

    tool: str
    mode: str
    command: tuple[str, ...]
    advice: str

    @property
    def installed(self) -> bool:
        """Whether every program that the command needs is there."""
        return all(shutil.which(name) is not None for name in self.programs)

    @property
    def programs(self) -> tuple[str, ...]:
        """Programs that the command needs."""
        return () if self.command[: len(_OWN)] == _OWN else (self.tool,)


def _own(mode: str, *flags: str) -> tuple[str, ...]:
    return (*_OWN, mode, "{url}", "--duration", "{duration}s", "-o", "{out}", *flags)


_PACED = ("--rate", "{rate}", "--connections", "{connections}")
_VEGETA = "echo 'GET {url}' | vegeta attack -rate={rate} -duration={duration}s "
_ENCODE = "| vegeta encode -to csv"
_NO_FLAG = "none: no flag makes it an open loop"
_MANY = "{many}"  # requests that a closed loop needs about the whole run for; our server takes 1 ms for each

_C = "{connections}"
_OHA = ("oha", "--no-tui", "--output-format", "json", "-z", "{duration}s", "-c", _C, "-q", "{rate}")
_WRK = ("wrk", "-t", "1", "-c", _C, "-d", "{duration}s", "--latency")
_UNTIL_AFTER = "none needed if the run goes on after the last stall"

ENTRIES: tuple[Entry, ...] = (
    Entry("latencykit", "open", _own("open", "--rate", "{rate}"), "none needed"),
    Entry("latencykit", "paced, catches up", _own("catchup", *_PACED), "`--intended`: times from the schedule"),
    Entry("latencykit", "paced", _own("closed", *_PACED), "`open`"),
    Entry("latencykit", "full speed", _own("closed", "--connections", _C), "`open`"),
    Entry("ab", "full speed", ("ab", "-q", "-k", "-c", _C, "-t", "{duration}", "-n", "10000000", "{url}"), _NO_FLAG),
    Entry(
        "autocannon", "`-R`", ("autocannon", "-j", "-c", _C, "-d", "{duration}", "-R", "{rate}", "{url}"),
        "none: it corrects by 1 ms, whatever the rate",
    ),
    Entry(
        "bombardier", "`-r`",
        ("bombardier", "-c", _C, "-d", "{duration}s", "-r", "{rate}", "-l", "-p", "r", "-o", "json", "{url}"), _NO_FLAG,
    ),
    Entry(
        "fortio", "`-qps`",
        ("fortio", "load", "-quiet", "-qps", "{rate}", "-c", _C, "-t", "{duration}s", "-json", "{out}", "{url}"), _NO_FLAG,
    ),
    Entry(
        "h2load", "`--rps`",
        ("h2load", "--h1", "-c", _C, "--rps", "{rate_per_connection}", "-D", "{duration}", "--log-file={out}", "{url}"),
        _NO_FLAG,
    ),
    Entry("hey", "`-q`", ("hey", "-z", "{duration}s", "-c", _C, "-q", "{rate_per_connection}", "{url}"), _NO_FLAG),
    Entry("oha", "`-q`", (*_OHA, "{url}"), "`--latency-correction`, and a run that goes on after the last stall"),
    Entry("oha", "`-q --latency-correction`", (*_OHA, "--latency-correction", "{url}"), _UNTIL_AFTER),
    Entry(
        "redis-benchmark", "full speed",
        ("redis-benchmark", "-h", "{host}", "-p", "{port}", "-c", _C, "-n", _MANY, "-t", "get"), "none; it cuts off at 3 s, too",
    ),
    Entry("siege", "full speed", ("siege", "-j", "-b", "-c", _C, "-t", "{duration}S", "{url}"), _NO_FLAG),
    Entry("vegeta", "`-rate`", ("sh", "-c", _VEGETA + _ENCODE), "none needed"),
    Entry("vegeta", "`-max-workers`", ("sh", "-c", f"{_VEGETA}-max-workers={_C} {_ENCODE}"), "no `-max-workers`"),
    Entry("wrk", "full speed", (*_WRK, "{url}"), "`--timeout` longer than any stall"),
    Entry("wrk", "full speed, `--timeout 60s`", (*_WRK, "--timeout", "60s", "{url}"), "none needed: it corrects by itself"),
    Entry("wrk2", "`-R`, corrected", ("wrk2", *_WRK[1:], "-R", "{rate}", "{url}"), _UNTIL_AFTER),
)  # fmt: skip

_VERSION_FLAGS = {
    "ab": "-V", "wrk": "-v", "wrk2": "-v", "vegeta": "-version", "fortio": "version", "siege": "-V",
    **dict.fromkeys(("autocannon", "bombardier", "h2load", "oha", "redis-benchmark"), "--version"),
}  # fmt: skip


def _version(tool: str) -> str:
    """What the tool says of its version; nothing where it has no flag for it."""
    if tool == "latencykit":
        return latencykit.__version__
    if tool not in _VERSION_FLAGS:
        return ""
    said = subprocess.run(  # noqa: S603
        [tool, _VERSION_FLAGS[tool]], capture_output=True, text=True, check=False, timeout=20
    )
    found = re.search(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)?)", said.stdout + said.stderr)
    return found[1] if found else ""


@dataclass(frozen=True)
class Result:
    """What became of an entry: a calibration, or why there is none."""

    entry: Entry
    calibration: Calibration | None
    version: str = ""
    error: str = ""

    def record(self) -> dict[str, Any]:
        """Return the standing as JSON takes it."""
        texts = {
            "tool": self.entry.tool,
            "version": self.version,
            "mode": self.entry.mode,
            "advice": self.entry.advice,
        }
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
    quiet = (parse_duration(duration, "s") - parse_duration(stall, "s")) / 1e9
    many = str(round(0.75 * connections * quiet / 0.001))
    options |= {"stall": stall, "duration": duration, "connections": connections}
    table = []
    for entry in entries:
        if not entry.installed:
            progress(f"{entry.tool}: not installed")
            continue
        progress(f"{entry.tool} ({entry.mode})")
        command, version = (
            [word.replace(_MANY, many) for word in entry.command],
            _version(entry.tool),
        )
        try:
            table.append(Result(entry, ctrlz(command, **options), version))
        except LatencyKitError as error:
            table.append(Result(entry, None, version, str(error)))
        last = table[-1].calibration
        progress(f"    {last.verdict}: {last.reasons[0]}" if last else f"    {table[-1].error}")
    return table


def markdown(table: Sequence[Result]) -> str:
    """Return the league as a Markdown table."""
    head = [
        "tool",
        "version",
        "mode",
        "model",
        "reported p99",
        "true p99",
        "reported max",
        "verdict",
        "flags that make it honest",
    ]
    lines = [head, ["---"] * len(head), *map(_cells, table)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(one: Result) -> list[str]:
    found = one.calibration
    if found is None:
        return [
            one.entry.tool,
            one.version,
            one.entry.mode,
            "",
            "",
            "",
            "",
            f"no result: {one.error}",
            one.entry.advice,
        ]
    rows = {row.percentile: row for row in found.rows}

    def shown(percentile: float, side: str) -> str:
        return (
            format_duration(getattr(rows[percentile], side))
            if percentile in rows
            else "not reported"
        )

    return [
        one.entry.tool, one.version, one.entry.mode, found.model, shown(99.0, "reported"),
        format_duration(found.truth.percentile(99.0)), shown(100.0, "reported"), f"**{found.verdict}**", one.entry.advice,
    ]  # fmt: skip


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
    table = run_league(entries, progress=lambda said: sys.stderr.write(said + "\n"), **options)
    sys.stdout.write(
        (json.dumps([one.record() for one in table], indent=1) if as_json else markdown(table))
        + "\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
