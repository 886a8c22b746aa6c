"""The league: every load generator that is installed, tested for what it reports of a stall.

It is fair to closed loops: they answer another question (the throughput of N callers that wait for
each reply), and for that question their numbers are right. The table shows each tool's report of a
stall that users would have felt, and the flags that make the report honest.
"""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from latencykit.ctrlz.entries import tool_version
from latencykit.ctrlz.run import ctrlz
from latencykit.errors import CorruptInputError, InvalidArgumentError, LatencyKitError
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latencykit.ctrlz.entries import Entry
    from latencykit.ctrlz.records import FailureRecord, LeagueRecord, ModeFacts, ResultRecord


def run_league(
    entries: Sequence[Entry],
    *,
    stall: str | float = "4s",
    duration: str | float = "12s",
    rate: float = 200.0,
    connections: int = 4,
    repeat: int = 3,
    progress: Callable[[str], None] = lambda _: None,
    keep: Callable[[LeagueRecord], object] = lambda _: None,
) -> LeagueRecord:
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
        The record that ``latencykit league --format json`` prints.
    """
    seconds, frozen = (parse_duration(value, "s") / 1e9 for value in (duration, stall))
    if not 0 < frozen < seconds:
        raise InvalidArgumentError("the stall must be shorter than the run")
    results: list[ResultRecord | FailureRecord] = []
    record: LeagueRecord = {
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
        facts: ModeFacts = {
            "tool": entry.tool,
            "version": tool_version(entry.tool),
            "mode": entry.mode,
            "protocol": entry.protocol,
            "advice": entry.advice,
            "install": entry.install,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
        }
        progress(f"{entry.tool} ({entry.mode})")
        try:
            result = ctrlz(
                [word.replace("{many}", many) for word in entry.command],
                server=entry.server, url=entry.url, unit=entry.unit, series=entry.series,
                stall=stall, duration=length, rate=rate, connections=connections, repeat=repeat,
            ).record()  # fmt: skip
        except LatencyKitError as error:
            progress(f"    no result: {error}")
            results.append({**facts, "error": str(error)})
        else:
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


def merge_results(old: LeagueRecord | None, new: LeagueRecord) -> LeagueRecord:
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
