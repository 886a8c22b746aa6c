"""siege: its closing table as text, and as JSON (``-j``, the default of some distributions).

siege prints times in seconds with two decimals (its text since 4.1.7 in ms) and no distribution.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from latencykit.core.run import CLOSED, Run
from latencykit.io.declared import Json, Report, Text, at
from latencykit.io.text_reports import fact, has_match
from latencykit.units import format_duration

_RUN = Run(tool="siege", **CLOSED, unit="s", unit_from="format")
_HINT = (
    "siege keeps no distribution; its --log and verbose lines contain single requests to 10 ms at "
    "best: measure with a tool that prints percentiles"
)
_LABELS = {
    "count": "Transactions", "failed": "Failed transactions", "duration": "Elapsed time",
    "achieved": "Transaction rate", "connections": "Concurrency", "mean": "Response time",
    "min": "Shortest transaction", "max": "Longest transaction",
}  # fmt: skip


def finish(report: Report, record: Any = None) -> Report:
    """Work the mean out where siege printed it too coarsely; `connections` are its concurrency."""
    run, mean = report.run, report.stats["mean"]
    good = at(record, _GOOD) if record else fact(report.text, r"Successful t\w+: +(\d+)", int)
    if good is not None and (bad := (report.count or 0) - good) > 0:  # siege's own count is 0
        report, run = replace(report, failures_included=bad), run.replace(failed=run.failed + bad)
    busy = (run.connections or 0.0) * (run.duration or 0.0)
    fine = record is None and re.search(r"Response time:[^\n]* ms\b", report.text)  # since 4.1.7
    notes = [_HINT] if fine else ["siege prints times to 10 ms", _HINT]
    if not fine and mean < 1e8 and busy and report.count:
        note = "the mean is concurrency x elapsed time / transactions"
        notes.insert(0, f"{note}; siege printed {format_duration(mean)}")
        mean = busy / report.count * 1e9
    stats = {"min": 0.0} | dict(report.stats) | {"mean": round(mean, 3)}
    return replace(report, run=run.replace(connections=None).with_notes(*notes), stats=stats)


_GOOD = "successful_transactions"
_CELL = r'^[ \t]*"?{}"?[ \t]*:[ \t]*([\d.]+)[ \t]*(ms\b)?'
TEXT = Text(
    run=_RUN,
    begin=r"^[ \t]*Transactions:",
    facts={name: _CELL.format(label) for name, label in _LABELS.items()},
    needed=("count", "mean", "max"),
    finish=finish,
)
JSON = Json(
    run=_RUN,
    facts={name: label.lower().replace(" ", "_") for name, label in _LABELS.items()},
    needed=(),
    begin=r'^[ \t]*\{\s*"transactions":',
    finish=finish,
)
FORMATS = {
    "siege": (has_match("Availability:", r"Longest transaction:\s"), TEXT),
    "siege-json": (has_match('"transactions":', '"availability":', '"longest_transaction":'), JSON),
}
