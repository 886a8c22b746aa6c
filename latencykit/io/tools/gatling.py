"""Gatling: ``simulation.log`` as text (up to 3.11), its report, and the table that it prints.

The report (``stats.json``, or ``stats.js``) and the table state the times of good requests apart.
"""

from __future__ import annotations

import re

import numpy as np

from latencykit.core.columns import Words, matching
from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import data_from_points, outcome_codes, samples_of, unanswered
from latencykit.io.rows import records
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import certain, fact, has_match, plain, text_of_run

_RUN = Run(tool="Gatling", measure="service", corrected="none", unit="ms", unit_from="format")
# 3.4 to 3.11: REQUEST, groups, name, start, end, status, message; in older versions a user's number
# comes second, up to 2.3 behind the scenario's name.
_KIND = rb"^(?:[^\t\n]*\t\d*\t)?REQUEST\t"
_REQUEST = re.compile(
    _KIND + rb"(?:(?:[^\t\n]*\t)?\d+\t)?"
    rb"([^\t\n]*)\t([^\t\n]*)\t(\d{12,14})\t(-?\d{1,18}|-9223372036854775808)\t(OK|KO)(?:\t([^\n]*))?$",
    re.MULTILINE,
)
_ANY_REQUEST = re.compile(_KIND, re.MULTILINE)
_BEGIN = re.compile(
    r"^(?:RUN\t|[^\t\n]*\t[^\t\n]*\tRUN\t|(?:[^\t\n]*\t\d*\t)?REQUEST\t)", re.MULTILINE
)
_POINTS = {50.0: "percentiles1", 75.0: "percentiles2", 95.0: "percentiles3", 99.0: "percentiles4"}
_KEY = re.compile(r"^([ \t]*)(type|name|path|pathFormatted|stats|contents):", re.MULTILINE)
_STATS = {
    "min": "minResponseTime", "max": "maxResponseTime", "mean": "meanResponseTime",
    "std": "standardDeviation",
}  # fmt: skip


def sniff_log(head: Head) -> Confidence:
    """Recognise the records; a binary log by its name and first byte."""
    binary = head.name == "simulation.log" and head.data[:1] == b"\0"
    return certain(_BEGIN.search(head.text) or binary)


def read_log(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request; KO ones are counted apart. Groups are sums of requests and left out."""
    if source.head.data[:1] == b"\0":
        seen = "this is the binary simulation.log of Gatling 3.12 and later"
        hint = "read js/stats.json of the HTML report, which contains its percentiles"
        raise source.corrupt(None, seen, "the text of versions up to 3.11", hint)
    notes: list[str] = []
    due = "REQUEST, groups, name, start, end, OK or KO"
    rows = list(records(source, options, _REQUEST, _ANY_REQUEST, due, notes))
    if not rows:
        return {}
    groups, names, starts, ends, statuses, messages = zip(*rows, strict=True)
    start, end = (np.array(column).astype(np.int64) for column in (starts, ends))
    failed = np.array(statuses) == b"KO"
    unfinished = end <= 0  # Gatling writes the smallest number for requests that never ended
    late = failed & matching(messages, lambda text: "timeout" in text.lower())
    group, name = (Words.of(column).cells for column in (groups, names))
    operations = Words.of(np.where(group == "", name, group + " / " + name)).sorted()
    columns: dict[str, object] = {
        "start": start * 1_000_000,
        "duration": np.where(unfinished, 0, end - start) * 1_000_000,
        "outcome": outcome_codes(error=failed, timeout=late, unfinished=unfinished),
        "code": operations.codes,
    }
    if options.columns:
        columns["columns"] = {"request": name, "group": group}
    version = r"^(?:[^\t\n]*\t[^\t\n]*\t)?RUN\t.*?\t(\d+\.\d+\.\S+)\s*$"  # 2.0 is the format's
    run = _RUN.replace(version=fact(source.head.text, version, str), notes=tuple(notes))
    return samples_of(columns, run, options, operations.names.tolist())


def read_stats(source: Source, options: ReadOptions) -> Series:
    """Read the statistics of all requests, and of each."""
    if source.head.text.lstrip().startswith("{"):
        record = json_text.load(source)
    else:  # stats.js: keys are not quoted, and functions follow
        text = _KEY.sub(r'\1"\2":', source.text())
        record = json_text.parse(text, source, text.index("{"), whole=False)
    waiting = [record]
    while waiting:
        node = waiting.pop(0)
        waiting += list((node.get("contents") or {}).values())
        stats = node.get("stats", node)
        if node is not record and node.get("type") != "REQUEST":
            continue
        cells = {
            (key, which): float(text) if re.fullmatch(r"\d+(?:\.\d+)?", text) else None
            for key, row in stats.items() if isinstance(row, dict)
            for which, cell in row.items() if (text := str(cell).replace(",", ""))
        }  # fmt: skip
        run = _RUN.replace(
            aggregate=node is record and bool(waiting),
            failed=int(cells.get(("numberOfRequests", "ko")) or 0),
            achieved=cells.get(("meanNumberOfRequestsPerSecond", "total")),
            notes=("percentiles are taken as Gatling's default: 50, 75, 95, 99",),
        )  # fmt: skip
        good = int(cells.get(("numberOfRequests", "ok")) or 0)
        values = {name: cells.get((key, "ok")) for name, key in _STATS.items()}
        points = {p: cells.get((key, "ok")) for p, key in _POINTS.items()}
        data = data_from_points(points, good, values, run, "ms") if good else unanswered(run)
        yield str(node.get("path") or stats.get("name") or "all"), data


# ------------------------------------------------------------
# The table at the end of the console. Up to 3.11 the columns are "9 (OK=9  KO=-  )", then
# "|  9 |  9 |  - ".

_CONSOLE = r"^[ \t]*---- Global Information -"
_CELL = r"([\d.,]+|-)"
_ROW = re.compile(
    rf"^[ \t]*> ([a-z][A-Za-z\d /]{{1,60}}?)(?: \((?:ms|rps)\))?[ \t|]+{_CELL}[ \t]*"
    rf"(?:\(OK=|\|)[ \t]*{_CELL}[ \t]*(?:/ )?(?:KO=|\|)[ \t]*{_CELL}",
    re.MULTILINE,
)
_OLD = {  # up to 1.5, whose percentiles are those by default
    "numberOfRequests": "request count", "minResponseTime": "min response time",
    "maxResponseTime": "max response time", "meanResponseTime": "mean response time",
    "stdDeviation": "std deviation", "percentiles1": "response time 95th percentile",
    "percentiles2": "response time 99th percentile",
    "meanNumberOfRequestsPerSecond": "mean requests/sec",
}  # fmt: skip
_COUNT = r"^[ \t]*> (?:request count|numberOfRequests)\b"
_LABELS = {
    "min response time": "min", "max response time": "max", "mean response time": "mean",
    "std deviation": "std", "response time std deviation": "std",
}  # fmt: skip
_PERCENTILE = re.compile(r"response time (\d{1,2})(?:st|nd|rd|th) percentile")


def read_console(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the table of a run, of its good requests."""
    begin = rf"^Simulation \S+ (?:started|completed in)|{_CONSOLE}"
    text = text_of_run(source, begin, _COUNT)
    rows = {
        _OLD.get(row[1], row[1]): [
            None if cell == "-" else float(cell.replace(",", "")) for cell in row.groups()[1:]
        ]
        for row in _ROW.finditer(text)
    }
    if "request count" not in rows:
        return {}
    _, good, failed = (int(number or 0) for number in rows["request count"])
    rate = rows.get("mean requests/sec") or rows.get("mean throughput") or [None]
    run = _RUN.replace(
        failed=failed, achieved=rate[0],
        duration=fact(text, r"^Simulation \S+ completed in (\d+) seconds", float),
    )  # fmt: skip
    if not good:
        return {"": unanswered(run)}
    stats = {_LABELS[name]: cells[1] for name, cells in rows.items() if name in _LABELS}
    named = {name: _PERCENTILE.fullmatch(name) for name in rows}
    points = {float(match[1]): rows[name][1] for name, match in named.items() if match}
    return {"": data_from_points(points, good, stats, run, "ms")}


FORMATS = {
    "gatling": (sniff_log, read_log),
    "gatling-stats": (
        has_match(
            r"\A\s*(?:var stats = )?\{", '"numberOfRequests"', '"maxResponseTime"', '"percentiles1"'
        ),
        read_stats,
    ),
    "gatling-console": (has_match(_CONSOLE, _COUNT, plain=plain), read_console),
}
