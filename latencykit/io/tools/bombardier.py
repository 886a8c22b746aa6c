"""bombardier: its JSON (µs) and its text.

Every reply counts among the latencies, failed ones and timeouts, too.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from latencykit._text import printable
from latencykit.core.run import CLOSED, Run
from latencykit.io.declared import Json, Report, Text, at
from latencykit.io.text_reports import below, has_match, plain

_RUN = Run(tool="bombardier", **CLOSED)
_HINT = "bombardier --latencies prints the distribution (of 50, 75, 90, 95 and 99 %)"
_JSON = r'^[ \t]*\{\s*"(?:spec|result)"'
_BEGIN = r"^Bombarding \S+ "
_TITLE = r"^Statistics\s+Avg\s+Stdev\s+Max\s*$"
_TIMEOUT = re.compile(r"timeout|timed out|deadline", re.IGNORECASE)
_CODES = re.compile(
    r"1xx - (\d+), 2xx - (\d+), 3xx - (\d+), 4xx - (\d+), 5xx - (\d+)\s+others - (\d+)"
)
_ERROR = re.compile(r"[ \t]*(\S.*) - (\d+)[ \t]*")


def _counted(report: Report, codes: list[int], errors: dict[str, int]) -> Report:
    """Failures by status (of 400 and above, or none), timeouts among them by their text."""
    late = min(sum(count for text, count in errors.items() if _TIMEOUT.search(text)), codes[5])
    bad = sum(codes[3:])
    notes = [f"{count:,} × {printable(text, 100)}" for text, count in list(errors.items())[:5]]
    run = report.run.replace(failed=bad - late, timeouts=late).with_notes(*notes)
    run = run if report.points or sum(codes) == bad else run.with_notes(_HINT)
    return replace(report, run=run, count=sum(codes), failures_included=bad)


def finish_json(report: Report, record: Any) -> Report:
    """Take the load from the specification, and count replies by status."""
    result, run = record["result"], report.run
    names = ("req1xx", "req2xx", "req3xx", "req4xx", "req5xx", "others")
    codes = [int(result.get(name) or 0) for name in names]
    errors = {
        str(row.get("description", row.get("Error"))): int(row["count"])
        for row in result.get("errors") or ()
    }
    rate, clients = at(record, "spec.rate"), run.connections or None
    run = run.replace(
        connections=clients, loop="paced" if rate else "closed", rate=float(rate) if rate else None,
        achieved=sum(codes) / run.duration if run.duration else None,
        expected_interval=round(clients / rate * 1e9, 3) if rate and clients else None,
        timeout=run.timeout and run.timeout * 1e6,  # the only time that is not in µs
    )  # fmt: skip
    return _counted(replace(report, run=run), codes, errors)


def finish_text(report: Report) -> Report:
    """Count replies by status; a fork prints a second distribution, of the good ones."""
    codes = _CODES.search(report.text)
    assert codes is not None
    lines = (line.strip() for _, line in below(report.text[codes.end() :], "Errors:"))
    errors = {row[1]: int(row[2]) for row in map(_ERROR.fullmatch, lines) if row}
    return _counted(report, [int(number) for number in codes.groups()], errors)


TEXT = Text(
    run=_RUN.replace(unit_from="file"),
    begin=_BEGIN,
    facts={
        "mean": r"^[ \t]*Latency\s+(\d\S*)\s+\S+\s+\S+\s*$",
        "std": r"^[ \t]*Latency\s+\d\S*\s+(\S+)\s+\S+\s*$",
        "max": r"^[ \t]*Latency\s+\d\S*\s+\S+\s+(\S+)\s*$",
        "duration": r" for ([\d.hms]+) using", "connections": r"using (\d+) connection",
    },
    present=dict.fromkeys((_TITLE, _CODES.pattern), "the closing table is missing"),
    points=("Latency Distribution (Total)", "Latency Distribution"),
    finish=finish_text,
)  # fmt: skip
JSON = Json(
    run=_RUN.replace(unit="us", unit_from="format"),
    begin=_JSON,
    facts={
        "mean": "result.latency.mean", "std": "result.latency.stddev",
        "max": "result.latency.max", "duration": "result.timeTakenSeconds",
        "connections": "spec.numberOfConnections", "timeout": "spec.timeoutSeconds",
    },
    needed=("spec", "result"),
    points="result.latency.percentiles",
    finish=finish_json,
)  # fmt: skip
FORMATS = {
    "bombardier-json": (has_match(_JSON, '"result"', '"timeTakenSeconds"', '"req2xx"'), JSON),
    "bombardier": (
        has_match(rf"{_TITLE}\n[ \t]*Reqs/sec\s|{_BEGIN}", plain=plain, without='"req2xx"'),
        TEXT,
    ),
}
