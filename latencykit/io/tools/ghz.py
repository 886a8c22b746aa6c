"""ghz: its JSON and CSV, which contain every call, and its text.

A detail's timestamp is the end of the call. Text, histogram and percentiles are of the calls that
were answered well (of all with ``--count-errors``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from latencykit.core.columns import coded
from latencykit.core.run import SCHEDULED, Run
from latencykit.core.samples import OUTCOMES
from latencykit.io import build, json_text
from latencykit.io.declared import Report, Text, data_of
from latencykit.io.rows import records
from latencykit.io.source import Data, ReadOptions, Source
from latencykit.io.text_reports import has_match

_KINDS = {"ok": "ok", "": "ok", "deadlineexceeded": "timeout", "canceled": "unfinished"}
_ROW = re.compile(rb"^(-?\d+(?:\.\d+)?),([A-Za-z]{1,30}),", re.MULTILINE)
_CALL = re.compile(rb"^(?!duration \(ms\)|[ \t\r]*$)", re.MULTILINE)
_FIRST = "the distribution is of {:,} of {:,} calls: ghz keeps the details of a million"
_HINT = "ghz -O json and -O csv contain every call, and so the full distribution"


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every call; without them, the percentiles and the histogram."""
    record = json_text.load(source)
    settings = record.get("options") or {}
    rate, clients = float(settings.get("rps") or 0), int(settings.get("concurrency") or 0)
    scheduled = str(settings.get("load-schedule") or "const") != "const"
    run = Run(
        tool="ghz", loop="paced" if rate or scheduled else "closed", measure="service",
        corrected="none", unit="ns", unit_from="format",
        rate=rate if rate and not scheduled else None, connections=clients or None,
        achieved=record.get("rps") or None, timeout=settings.get("timeout") or None,
        duration=record["total"] / 1e9 if record.get("total") else None,
    )  # fmt: skip
    if settings.get("async"):
        run = run.replace(**SCHEDULED)
    elif run.rate and clients:
        run = run.replace(expected_interval=round(clients / rate * 1e9, 3))
    if record.get("details"):
        details = record["details"]
        duration = np.array([row["latency"] for row in details], np.int64)
        end = build.iso_nanoseconds([row["timestamp"] for row in details])
        words = [
            str(row.get("status") or "") or ("error" if str(row.get("error") or "") else "")
            for row in details
        ]
        given: dict[str, object] = {
            "duration": duration, "start": end - duration, "outcome": _outcomes(words),
        }  # fmt: skip
        if options.columns:
            given["columns"] = {"status": [str(row.get("status") or "") for row in details]}
        if (count := int(record.get("count") or 0)) > len(details):
            run = run.with_notes(_FIRST.format(len(details), count))
        return build.samples_of(given, run, options)
    marks = record.get("histogram") or ()
    keys = (("min", "fastest"), ("max", "slowest"), ("mean", "average"))
    report = Report(
        run=run,
        stats={kind: float(record[key]) for kind, key in keys if record.get(key)},
        points={
            float(row["percentage"]): float(row["latency"])
            for row in record.get("latencyDistribution") or ()
            if row["latency"] > 0
        },
        edges=tuple(build.nanoseconds(row["mark"], "s") for row in marks),
        counts=tuple(int(row["count"]) for row in marks),
        statuses={
            str(name): int(n) for name, n in (record.get("statusCodeDistribution") or {}).items()
        },
    )
    return {"": data_of(finish(report))}


def _outcomes(words: Sequence[str] | Sequence[bytes]) -> NDArray[np.int8]:
    codes, names = coded(words)
    kinds = [OUTCOMES.index(_KINDS.get(name.lower(), "error")) for name in names]
    return np.asarray(np.array(kinds, np.int8)[codes])


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every call; the file does not say when each was sent. An error's text is not quoted."""
    notes: list[str] = []
    rows = list(records(source, options, _ROW, _CALL, "duration,status,error", notes))
    if not rows:
        return {}
    values, statuses = zip(*rows, strict=True)
    duration = build.nanoseconds_of(np.array([*map(float, values)]), "ms")
    outcome = _outcomes(statuses)
    run = Run(tool="ghz", measure="service", unit="ms", notes=tuple(notes))
    return build.samples_of({"duration": duration, "outcome": outcome}, run, options)


def finish(report: Report) -> Report:
    """Count failed calls apart; they are part of the mean, not of the distribution."""
    status = report.statuses or {"OK": report.count or 0}
    good, late, canceled = (status.get(name, 0) for name in ("OK", "DeadlineExceeded", "Canceled"))
    failed = sum(status.values()) - good - late - canceled
    run = report.run.replace(failed=failed, timeouts=late, unfinished=canceled)
    stats = {kind: value for kind, value in report.stats.items() if value}
    if sum(status.values()) != good:
        stats.pop("mean", None)
    edges, counts, points, counted = report.edges, report.counts, report.points, sum(report.counts)
    if counted < good:
        run = run.with_notes(_FIRST.format(counted, good)) if counted else run
        edges, counts = (), ()
    elif counted:
        if counted > status.get("OK", counted):
            run = run.with_notes("--count-errors: times of failed calls are among the values")
        top = max(stats.get("max", 0.0), edges[-1])
        edges = tuple(np.maximum.accumulate([*edges[:-1], top]).tolist())
    else:
        points = {}
    return replace(
        report, run=run, stats=stats, points=points, edges=edges, counts=counts,
        count=max(good, sum(counts)),
    )  # fmt: skip


REPORT = Text(
    run=Run(tool="ghz", measure="service", unit="ns", notes=(_HINT,)),
    begin=r"^[ \t]*Summary:[ \t]*$",
    facts={
        "count": "Count:", "duration": "Total:", "max": "Slowest:", "min": "Fastest:",
        "mean": "Average:", "achieved": "Requests/sec:",
    },
    needed=("count", "max", "min", "mean"),
    points=("Latency distribution:",),
    buckets=("Response time histogram:",),
    bucket_unit="ms",
    statuses=("Status code distribution:",),
    finish=finish,
)  # fmt: skip
FORMATS = {
    "ghz-json": read_json,
    "ghz-csv": (has_match(r"\A\s*duration \(ms\),status,error\s*$"), read_csv),
    "ghz": (
        has_match(r"^[ \t]*Requests/sec:\s", r"^[ \t]*Count:\s+\d", r"^[ \t]*Fastest:\s"),
        REPORT,
    ),
}
