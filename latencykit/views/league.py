"""The league of load generators: its table, and the list of modes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latencykit.units import format_duration, format_range
from latencykit.views.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.ctrlz.entries import Entry
    from latencykit.ctrlz.records import FailureRecord, LeagueRecord, ResultRecord


_ADVICE = "what to use instead"
_NOT_RUN = "not run"
"""An error that begins so says why a mode was not tested; it takes the place of the advice."""


def league_text(record: LeagueRecord, style: str = "table") -> str:
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


def league_row(result: ResultRecord | FailureRecord) -> dict[str, str]:
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
