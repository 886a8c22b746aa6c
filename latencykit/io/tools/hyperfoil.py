"""Hyperfoil: the statistics that its controller exports, as JSON and as ``total.csv``; in ns.

The JSON is also that of ``/stats/total``. The ``.histogram.csv`` files beside ``total.csv`` are
percentile distributions in ms.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import (
    data_from_points,
    distinct,
    in_nanoseconds,
    printed_rows,
)
from latencykit.io.sniffing import certain, has_keys, starts_with
from latencykit.io.source import Format, refuse_line

if TYPE_CHECKING:
    from latencykit._typing import JSONObject
    from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source

_HINT = "the run's all.json contains the distribution in finer steps"
_STATS = {
    "min": "minResponseTime", "max": "maxResponseTime", "mean": "meanResponseTime",
    "std": "stdDevResponseTime",
}  # fmt: skip
_CSV = {  # column of total.csv → key of the JSON
    "Start": "startTime", "End": "endTime", "Responses": "responseCount",
    "Min": "minResponseTime", "Max": "maxResponseTime", "Mean": "meanResponseTime",
    "StdDev": "stdDevResponseTime", "ConnectionErrors": "connectionErrors",
    "RequestTimeouts": "requestTimeouts", "InternalErrors": "internalErrors",
    "Invalid": "invalid", "BlockedTime": "blockedTime",
}  # fmt: skip


def sniff_json(head: Head) -> Confidence:
    """Recognise the schema, or a summary."""
    schema = "hyperfoil.io/run-schema" in head.text[:4000] and has_keys(head)
    return certain(schema or has_keys(head, "percentileResponseTime", "meanResponseTime"))


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every phase and metric."""
    record = json_text.load(source)
    version = record.get("version") if isinstance(record, dict) else None
    series: dict[str, Data] = {}
    for row in record.get("stats") or record.get("statistics") or []:
        summary = json_text.entry(row.get("total", row), "summary", source)
        parts = (row.get("name", row.get("phase")), row.get("metric"))
        name = distinct("/".join(str(part) for part in parts if part), series)
        steps = (row.get("histogram") or {}).get("percentiles") or []
        data = _data(summary, steps)
        if summary.get("responseCount"):
            series[name] = data.with_run(version=version)
    return series


def _data(summary: JSONObject, steps: list[JSONObject]) -> Data:
    """A phase: five steps per half distance, each of the values above the one before it."""
    start, end = summary.get("startTime"), summary.get("endTime")
    errors, late, invalid, blocked, count = (
        int(summary.get(key) or 0)
        for key in (
            "connectionErrors", "requestTimeouts", "invalid", "blockedTime", "responseCount",
        )
    )  # fmt: skip
    run = Run(
        tool="Hyperfoil", measure="service", corrected="none", unit="ns", unit_from="format",
        start=start / 1e3 if start else None, timeouts=late,
        duration=(end - start) / 1e3 if start and end else None,
        failed=errors + int(summary.get("internalErrors") or 0),
        notes=(f"{invalid:,} invalid responses are among the values",) if invalid else (),
    )  # fmt: skip
    if blocked:
        waited = f"requests waited {blocked / 1e9:.3g} s for a connection"
        run = run.with_notes(f"{waited}, which is not in their times")
    stats = in_nanoseconds({name: summary.get(key) for name, key in _STATS.items()}, "ns")
    percentiles = summary.get("percentileResponseTime") or {}
    points = {float(p): float(value) for p, value in percentiles.items()}
    if not steps:
        return data_from_points(points, count, stats, run.with_notes(_HINT))
    rows = [step for step in steps if step.get("count")]
    high = [float(step["to"]) for step in rows]
    low = [min(float(step["from"]), top) for step, top in zip(rows, high, strict=True)]
    return Histogram.from_buckets(
        low, high, [int(step["count"]) for step in rows], run=run, reported_stats=stats,
        reported_percentiles=printed_rows(points),
    )  # fmt: skip


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every phase and metric of ``total.csv``."""
    series: dict[str, Data] = {}
    reader = csv.DictReader(source.text().splitlines())
    for row in reader:
        cells = {key: value for key, value in row.items() if key not in ("Phase", "Metric")}
        try:
            numbers = {key: float(value) for key, value in cells.items() if value}
        except (ValueError, TypeError):
            seen = "a row that contains no numbers"
            refuse_line(source, options, reader.line_num, seen, "nanoseconds and counts")
            continue
        summary: dict[str, object] = {key: numbers.get(column) for column, key in _CSV.items()}
        summary["percentileResponseTime"] = {
            key[1:]: value for key, value in numbers.items() if re.fullmatch(r"p[\d.]+", key)
        }
        if summary["responseCount"]:
            name = distinct(f"{row['Phase']}/{row['Metric']}", series)
            series[name] = _data(summary, [])
    return series


FORMATS = (
    Format(
        "hyperfoil", "Hyperfoil (JSON)", "histogram", (".json",), sniff_json, read_json, unit="ns",
        example="hyperfoil> export -f json -d out.json",
    ),
    Format(
        "hyperfoil-csv", "Hyperfoil (total.csv)", "histogram", (".csv",),
        starts_with("Phase,Metric,Start,End,Requests,Responses,Mean,StdDev,Min,"), read_csv,
        unit="ns", example="hyperfoil> export -f csv -d out.zip   # writes total.csv into it",
    ),
)  # fmt: skip
