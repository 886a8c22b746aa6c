"""Hyperfoil: the statistics that its controller exports, as JSON and as ``total.csv``; in ns.

The JSON is also that of ``/stats/total``. The ``.histogram.csv`` files beside ``total.csv`` are
percentile distributions in ms.
"""

from __future__ import annotations

import csv
import re

from latencykit._typing import JSONObject
from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import data_from_buckets, data_from_points
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import either, has_json_keys, has_match, starts_with

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


def read_json(source: Source, options: ReadOptions) -> Series:
    """Read every phase and metric."""
    record = json_text.load(source)
    version = record.get("version") if isinstance(record, dict) else None
    for row in record.get("stats") or record.get("statistics") or []:
        summary = json_text.entry(row.get("total", row), "summary", source)
        parts = (row.get("name", row.get("phase")), row.get("metric"))
        name = "/".join(str(part) for part in parts if part)
        steps = (row.get("histogram") or {}).get("percentiles") or []
        if summary.get("responseCount"):
            yield name, _data(summary, steps).with_run(version=version)


def _data(summary: JSONObject, steps: list[JSONObject]) -> Data:
    """A phase: five steps per half distance, each of the values above the one before it."""
    start, end = summary.get("startTime"), summary.get("endTime")
    numbers = {key: int(summary.get(key) or 0) for key in _CSV.values()}
    invalid, blocked = numbers["invalid"], numbers["blockedTime"]
    run = Run(
        tool="Hyperfoil", measure="service", corrected="none", unit="ns", unit_from="format",
        start=start / 1e3 if start else None, timeouts=numbers["requestTimeouts"],
        duration=(end - start) / 1e3 if start and end else None,
        failed=numbers["connectionErrors"] + numbers["internalErrors"],
        notes=(f"{invalid:,} invalid responses are among the values",) if invalid else (),
    )  # fmt: skip
    if blocked:
        waited = f"requests waited {blocked / 1e9:.3g} s for a connection"
        run = run.with_notes(f"{waited}, which is not in their times")
    stats = {name: summary.get(key) for name, key in _STATS.items()}
    percentiles = summary.get("percentileResponseTime") or {}
    points = {float(p): float(value) for p, value in percentiles.items()}
    if not steps:
        return data_from_points(
            points, numbers["responseCount"], stats, run.with_notes(_HINT), "ns"
        )
    rows = [step for step in steps if step.get("count")]
    high = [float(step["to"]) for step in rows]
    low = [min(float(step["from"]), top) for step, top in zip(rows, high, strict=True)]
    counts = [int(step["count"]) for step in rows]
    return data_from_buckets(low, high, counts, run, stats=stats, points=points)


def read_csv(source: Source, options: ReadOptions) -> Series:
    """Read every phase and metric of ``total.csv``."""
    reader = csv.DictReader(source.text().splitlines())
    for row in reader:
        cells = {key: value for key, value in row.items() if key not in ("Phase", "Metric")}
        try:
            numbers = {key: float(value) for key, value in cells.items() if value}
        except (ValueError, TypeError):
            seen = "a row that contains no numbers"
            options.refuse(source, reader.line_num, seen, "nanoseconds and counts")
            continue
        summary: dict[str, object] = {key: numbers.get(column) for column, key in _CSV.items()}
        summary["percentileResponseTime"] = {
            key[1:]: value for key, value in numbers.items() if re.fullmatch(r"p[\d.]+", key)
        }
        if summary["responseCount"]:
            yield f"{row['Phase']}/{row['Metric']}", _data(summary, [])


FORMATS = {
    "hyperfoil": (
        either(
            has_match(r"\A\s*[{\[][\s\S]{0,4000}hyperfoil\.io/run-schema"),
            has_json_keys(("percentileResponseTime", "meanResponseTime")),
        ),
        read_json,
    ),
    "hyperfoil-csv": (
        starts_with("Phase,Metric,Start,End,Requests,Responses,Mean,StdDev,Min,"),
        read_csv,
    ),
}
