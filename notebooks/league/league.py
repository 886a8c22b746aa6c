"""The league: every load generator that is installed, tested for what it reports of a stall.

It is fair to closed loops: they answer another question (the throughput of N callers that wait for
each reply), and for that question their numbers are right. The table shows each tool's report of a
stall that users would have felt, and the flags that make the report honest.

    python notebooks/league/league.py wrk hey --repeat 3 --json league.json
    python notebooks/league/league.py --from league.json --format markdown

An entry is a TOML file beside this one, named after its load generator:

    tool = "wrk"                       # its name, and the program's
    install = "apt install wrk"
    version = "wrk -v"                 # a command whose output contains the version

    [[modes]]
    name = "full speed"                # the effect of the flags, in words
    command = "wrk -t1 -c {connections} -d {duration}s --latency {url}"
    advice = "`--timeout` longer than any stall"

Optional: ``protocol`` (``http``); and per file or mode ``needs``, the programs that must be
installed, where the tool's own is not the only one; ``server`` and ``url``, the command that starts
a server on ``{port}`` and its address, where the test's own server (HTTP, RESP) will not do;
``duration``, the least length of a run in seconds; ``unit`` and ``series`` of the output, where it
does not state them. Commands contain the places of `ctrlz`, and ``{python}``, ``{league}`` (this
folder) and ``{many}`` (requests for most of a run at full speed).
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from latencykit import __version__
from latencykit._files import check_folder
from latencykit._text import did_you_mean
from latencykit.cli.options import OUTPUT_FILE, format_option, freeze_options, note
from latencykit.cli.output import atomic, print_result, print_text
from latencykit.ctrlz.run import ctrlz
from latencykit.errors import CorruptInputError, InvalidArgumentError, LatencyKitError
from latencykit.units import format_duration, format_range, parse_duration
from latencykit.views.ctrlz import ctrlz_record
from latencykit.views.tables import Table, json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Record = dict[str, Any]
    """Results of one run, or of one mode, as they are written to JSON."""


_FOLDER = Path(__file__).resolve().parent
_KEYS = {"tool", "install", "version", "needs", "protocol", "server", "url", "duration", "modes"}
_KEYS |= {"unit", "series"}
_MODE_KEYS = {"name", "command", "advice", "server", "url", "duration", "unit", "series", "needs"}


class Entry(NamedTuple):
    """A load generator in one of its modes.

    Attributes
    ----------
    tool : str
        Its name.
    mode : str
        The effect of the flags, in words.
    command : tuple of str
        With places to fill, as `ctrlz` takes it.
    advice : str
        The flags that make its report honest.
    install : str
        How to install it.
    version_command : str
        A command whose output contains its version.
    needs : tuple of str
        Programs that have to be installed.
    protocol : str
    server, url : str or None
        Command that starts a server on ``{port}``, and its address; None for the test's own server.
    least : float
        Seconds that a run must last at least.
    unit, series : str or None
        Of its output.
    text : str
        The command as the file has it.
    """

    tool: str
    mode: str
    command: tuple[str, ...]
    advice: str
    install: str = ""
    version_command: str = ""
    needs: tuple[str, ...] = ()
    protocol: str = "http"
    server: str | None = None
    url: str | None = None
    least: float = 0.0
    unit: str | None = None
    series: str | None = None
    text: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """Programs that it needs and that are not installed."""
        return tuple(name for name in self.needs if shutil.which(name) is None)


def version_of(entry: Entry) -> str | None:
    """Return the version that a tool reports; None where it is unknown."""
    command = shlex.split(entry.version_command)
    if not command or shutil.which(command[0]) is None:
        return __version__ if entry.tool == "latencykit" else None
    try:
        answer = subprocess.run(  # noqa: S603 - of an entry
            command, capture_output=True, text=True, check=False, timeout=30, errors="replace",
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    number = re.search(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)?)", answer.stdout + answer.stderr)
    return number[1] if number else None


def load_entries(names: Sequence[str] = ()) -> tuple[Entry, ...]:
    """Return the entries of some tools, or of all.

    Parameters
    ----------
    names : sequence of str
        Names of tools, or paths of ``.toml`` files.
    """
    own = [Path(name) for name in names if name.endswith(".toml")]
    tools = [name for name in names if not name.endswith(".toml")]
    known = [entry for path in sorted(_FOLDER.glob("*.toml")) for entry in _entries_of(path)]
    for name in tools:
        if all(entry.tool != name for entry in known):
            hint = did_you_mean(name, sorted({entry.tool for entry in known}))
            raise InvalidArgumentError(f"the league has no entry for {name!r}{hint}")
    chosen = [entry for entry in known if entry.tool in tools or not names]
    return (*chosen, *(entry for path in own for entry in _entries_of(path)))


def _entries_of(path: Path) -> list[Entry]:
    """Return the entries of a file, one per mode."""
    expected = "an entry of the league: tool, install, version, and [[modes]]"
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
        _check(path, record, _KEYS, {"tool", "install", "modes"})
        if isinstance(record["modes"], list):
            for mode in record["modes"]:
                _check(path, mode, _MODE_KEYS, {"name", "command", "advice"})
        places = {"{python}": sys.executable, "{league}": str(path.resolve().parent)}
        return [
            Entry(
                record["tool"], mode["name"], _words(mode["command"], places), mode["advice"],
                record["install"], record.get("version", ""),
                tuple(both.get("needs", [record["tool"]])), record.get("protocol", "http"),
                _filled(both.get("server"), places), both.get("url"),
                float(both.get("duration", 0.0)), both.get("unit"), both.get("series"),
                mode["command"],
            )
            for mode in record["modes"]
            for both in [record | mode]
        ]  # fmt: skip
    except OSError as error:
        raise InvalidArgumentError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CorruptInputError(str(path), None, str(error), expected) from None
    except (AttributeError, TypeError, ValueError) as error:
        raise CorruptInputError(str(path), None, f"a wrong value ({error})", expected) from None


def _check(path: Path, record: Mapping[str, object], known: set[str], needed: set[str]) -> None:
    for key in sorted(set(record) - known):
        raise CorruptInputError(str(path), None, f"the key {key!r}", f"one of {sorted(known)}")
    for key in sorted(needed - set(record)):
        raise CorruptInputError(str(path), None, f"no key {key!r}", "it")


def _filled(text: str | None, places: Mapping[str, str]) -> str | None:
    for place, value in places.items() if text is not None else ():
        text = text and text.replace(place, shlex.quote(value))
    return text


def _words(command: str, places: Mapping[str, str]) -> tuple[str, ...]:
    words = shlex.split(command)
    for place, value in places.items():
        words = [word.replace(place, value) for word in words]
    return tuple(words)


def run_league(
    entries: Sequence[Entry],
    *,
    stall: str | float = "4s",
    duration: str | float = "12s",
    rate: float = 200.0,
    connections: int = 4,
    repeat: int = 3,
    progress: Callable[[str], None] = lambda _: None,
    keep: Callable[[Record], object] = lambda _: None,
) -> Record:
    """Test every entry whose programs are installed.

    Parameters
    ----------
    entries : sequence of Entry
    stall, duration : str or float
        How long the server is frozen, and how long a run lasts; bare numbers are seconds.
    rate : float
        Requests per second.
    connections : int
    repeat : int
        Runs per entry. An entry whose verdict differs between them is ``unknown``.
    progress : callable
        Takes a line of text at a time.
    keep : callable
        Takes the record so far, after each entry.

    Returns
    -------
    dict
        The record that ``--format json`` prints.
    """
    seconds, frozen = (parse_duration(value, "s") / 1e9 for value in (duration, stall))
    if not 0 < frozen < seconds:
        raise InvalidArgumentError("the stall must be shorter than the run")
    results: list[Record] = []
    record: Record = {
        "schema_version": 1,
        "stall": frozen,
        "duration": seconds,
        "rate": rate,
        "connections": connections,
        "results": results,
    }
    for entry in entries:
        if entry.missing:
            progress(f"{entry.tool}: not installed ({entry.install})")
            continue
        length = max(seconds, entry.least)
        many = str(round(0.75 * connections * (length - frozen) / 0.001))
        facts: Record = {
            "tool": entry.tool,
            "version": version_of(entry),
            "mode": entry.mode,
            "protocol": entry.protocol,
            "advice": entry.advice,
            "install": entry.install,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
        }
        progress(f"{entry.tool} ({entry.mode})")
        try:
            calibration = ctrlz(
                [word.replace("{many}", many) for word in entry.command],
                server=entry.server, url=entry.url, unit=entry.unit, series=entry.series,
                stall=stall, duration=length, rate=rate, connections=connections, repeat=repeat,
            )  # fmt: skip
        except LatencyKitError as error:
            progress(f"    no result: {error}")
            results.append({**facts, "error": str(error)})
        else:
            result: Any = ctrlz_record(calibration)
            result["runs"] = result["runs"] or [{**result}]
            for run in (result, *result["runs"]):
                run["command"] = shlex.split(entry.text)  # without the paths of this machine
            verdicts = {run["verdict"]: None for run in result["runs"]}
            if len(verdicts) > 1:
                why = f"the verdict differs between runs: {', '.join(verdicts)}"
                result |= {"verdict": "unknown", "reasons": [why, *result["reasons"]]}
            version = facts["version"] or result["version"]
            results.append({**facts, "error": None, **result, **facts, "version": version})
            progress(f"    {result['verdict']}: {result['reasons'][0]}")
        keep(record)
    return record


def merge_results(old: Record | None, new: Record) -> Record:
    """Return a new record with those results of an old one that it does not replace."""
    if old is None:
        return new
    for key in ("stall", "duration", "rate", "connections"):
        if old.get(key) != new.get(key):
            raise CorruptInputError(
                "the results", None, f"{key} is {old.get(key)}", f"{new.get(key)} as in this run",
                "write to another file",
            )  # fmt: skip
    rows = {(row["tool"], row["mode"]): row for row in (*old["results"], *new["results"])}
    order = sorted(rows, key=lambda name: (name[0] != "latencykit", name[0]))
    return {**new, "results": [rows[name] for name in order]}


_ADVICE = "what to use instead"
_NOT_RUN = "not run"
"""An error that begins so says why a mode was not tested; it takes the place of the advice."""


def league_text(record: Record, style: str = "table") -> str:
    """Return one row per mode, tools in alphabetical order."""
    if not record["results"]:
        return "no load generator is installed"
    table, advice = Table(style, code=True), []
    for row in sorted(record["results"], key=lambda row: row["tool"].lower()):
        cells = league_row(row)
        if style == "table":  # flags are longer than a terminal is wide
            flags = cells.pop(_ADVICE)
            advice += [f"{cells['tool']} {cells['mode']}: {flags}"] if flags else []
        table.add(cells)
    text = table.render(left=10, optional=("version", "model", "reported max"))
    return "\n".join([text, "", f"{_ADVICE}:", *advice]) if advice else text


def modes_text(entries: Sequence[Entry], style: str = "table") -> str:
    """Return one row per mode, and whether its tool is installed."""
    table = Table(style, code=True)
    for entry in entries:
        installed = f"no: {entry.install}" if entry.missing else "yes"
        table.add({"tool": entry.tool, "mode": entry.mode, "installed": installed})
    return table.render(left=3)


def league_row(result: Record) -> dict[str, str]:
    """Return a result as a row of the table: text by heading, spreads over the runs."""
    row = {"tool": result["tool"], "verdict": "no result", "mode": result["mode"]}
    cells, advice = [""] * 5, result["advice"]
    if result["error"] is not None and result["error"].startswith(f"{_NOT_RUN}: "):
        row["verdict"], advice = _NOT_RUN, result["error"].removeprefix(f"{_NOT_RUN}: ")
    if result["error"] is None:
        runs = result["runs"]
        says_so = result["verdict"] == "omits" and any(
            "the report does say" in text for text in result["reasons"]
        )
        row["verdict"] = "omits, and says so" if says_so else result["verdict"]
        load = result["load"]
        counted = load["due"] is not None and load["sent"] is not None
        sent = f"{load['sent']:,} of {load['due']:,}" if counted else ""
        cells = [
            result["model"],
            sent,
            _spread([run["reported"].get("99") for run in runs]) or "not reported",
            _spread([run["truth"].get("99") for run in runs]),
            _spread([run["reported"].get("100") for run in runs]) or "not reported",
        ]
    headings = ("model", "requests sent of due", "reported p99", "true p99", "reported max")
    last = {"version": result["version"] or "", _ADVICE: advice}
    return row | dict(zip(headings, cells, strict=True)) | last


def _spread(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return format_range(min(known), max(known), format_duration) if known else ""


class _ToolsOrFile(click.Command):
    """A command whose ``--json`` takes a file, or nothing: then it prints JSON."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words: list[str] = []
        for word in args:
            if words and words[-1] == "--json" and not word.lower().endswith(".json"):
                words[-1:] = ["--format", "json"]
            words.append(word)
        if words and words[-1] == "--json":
            words[-1:] = ["--format", "json"]
        return super().parse_args(ctx, words)


@click.command("league.py", cls=_ToolsOrFile)
@click.argument("tools", metavar="[TOOL…]", nargs=-1)
@click.option("--repeat", type=click.IntRange(1, 100), default=3, help="Runs per mode.")
@freeze_options
@click.option("--list", "listing", is_flag=True, help="List the modes, and what is installed.")
@click.option(
    "--from",
    "results",
    metavar="FILE",
    type=OUTPUT_FILE,
    help="Run nothing; print the results in this file (.json).",
)
@click.option(
    "--json",
    "out",
    metavar="[FILE]",
    type=OUTPUT_FILE,
    help="Write the results to this file (.json); results of other modes in it are kept. Without "
    "FILE the same as --format json.",
)
@format_option
def command(
    tools: tuple[str, ...],
    listing: bool,
    results: Path | None,
    out: Path | None,
    style: str,
    **options: Any,
) -> None:
    """Test every load generator that is installed for the stalls that it reports.

    TOOL is a name, or a .toml file with an entry of your own. A verdict that differs between the
    runs of a mode is unknown.

    \b
    python league.py wrk hey --repeat 3 --json league.json
    python league.py --from league.json --format markdown
    """
    if listing:
        print_text(modes_text(load_entries(tools), style), style)
        return
    if results is not None:
        record = _read(results)
        known = {row["tool"] for row in record["results"]}
        rows = [row for row in record["results"] if not tools or row["tool"] in tools]
        if missing := sorted(set(tools) - known):
            hint = did_you_mean(missing[0], known)
            raise InvalidArgumentError(f"{results}: no result of {missing[0]!r}{hint}")
        record = {**record, "results": rows}
    else:
        entries = load_entries(tools)
        if out is not None:
            check_folder(out)
        old = _read(out) if out is not None and out.exists() else None

        def keep(so_far: Record) -> None:
            if out is not None:
                merged = merge_results(old, so_far)
                with atomic(out) as path:
                    path.write_text(json_text(merged) + "\n", encoding="utf-8")

        record = run_league(entries, progress=note, keep=keep, **options)
        if out is not None:
            note(f"wrote {out}")
    print_result(style, lambda: record, lambda: league_text(record, style))


def _read(path: Path) -> Record:
    """Return the results in a file."""
    try:
        record: Record = json.loads(path.read_text(encoding="utf-8"))
        for row in record["results"]:
            row["tool"], row["mode"], row["error"]
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise CorruptInputError(str(path), None, reason) from None
    except (ValueError, LookupError, TypeError):
        seen, expected = "these are not results", "what `league.py --json FILE` writes"
        raise CorruptInputError(str(path), None, seen, expected) from None
    return record


def main(words: Sequence[str]) -> int:
    """Run the command and return the exit status; an error is one line."""
    try:
        command.main(list(words), "league.py", standalone_mode=False)
    except (click.ClickException, LatencyKitError) as error:
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"league.py: {text}", err=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
