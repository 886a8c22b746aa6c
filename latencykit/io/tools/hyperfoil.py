"""Hyperfoil: the statistics that its controller exports, as JSON (also ``/stats/total``) and as ``total.csv``; values in ns.

The ``.histogram.csv`` files beside ``total.csv`` are percentile distributions in ms.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_points, distinct, printed_rows
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_CSV_HEADER = "Phase,Metric,Start,End,Requests,Responses,Mean,StdDev,Min,"
_HINT = "the run's all.json holds the distribution in finer steps"


def sniff_json(head: Head) -> Confidence:
    """Tell the schema, or a summary."""
    found = "hyperfoil.io/run-schema" in head.text[:4000] or jsontext.has_keys(
        head, "percentileResponseTime", "meanResponseTime"
    )
    return Confidence.CERTAIN if found and head.text.lstrip()[:1] in ("{", "[") else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every phase and metric."""
    record = jsontext.load(source)
    version = record.get("version") if isinstance(record, dict) else None
    found: dict[str, Data] = {}
    for one in record.get("stats") or record.get("statistics") or []:
        total = one.get("total", one)
        summary = jsontext.entry(total, "summary", source)
        name = distinct(
            "/".join(
                str(part) for part in (one.get("name", one.get("phase")), one.get("metric")) if part
            ),
            found,
        )
        run = _run(summary).replace(version=version)
        steps = (one.get("histogram") or {}).get("percentiles") or []
        data = (
            _from_steps(steps, summary, run)
            if steps
            else _from_summary(summary, run.with_notes(_HINT))
        )
        if summary.get("responseCount"):
            found[name] = data
    return found


def _run(summary: dict[str, Any]) -> Run:
    start, end = summary.get("startTime"), summary.get("endTime")
    invalid = int(summary.get("invalid") or 0)
    errors = int(summary.get("connectionErrors") or 0) + int(summary.get("internalErrors") or 0)
    notes = (f"{invalid:,} invalid responses are among the values",) if invalid else ()
    blocked = int(summary.get("blockedTime") or 0)
    if blocked:
        notes = (
            *notes,
            f"requests waited {blocked / 1e9:.3g} s for a connection, which is not in their times",
        )
    return Run(
        tool="Hyperfoil", loop="unknown", measure="service", corrected="none", start=start / 1e3 if start else None,
        duration=(end - start) / 1e3 if start and end else None, failed=errors, timeouts=int(summary.get("requestTimeouts") or 0),
        unit="ns", unit_from="format", notes=notes,
    )  # fmt: skip


def _told(summary: dict[str, Any]) -> dict[str, float]:
    names = {
        "min": "minResponseTime",
        "max": "maxResponseTime",
        "mean": "meanResponseTime",
        "std": "stdDevResponseTime",
    }
    return {
        ours: float(summary[theirs])
        for ours, theirs in names.items()
        if summary.get(theirs) is not None
    }


def _points(summary: dict[str, Any]) -> dict[float, float]:
    return {
        float(p): float(value) for p, value in (summary.get("percentileResponseTime") or {}).items()
    }


def _from_summary(summary: dict[str, Any], run: Run) -> Data:
    return data_from_points(
        _points(summary), int(summary.get("responseCount") or 0), _told(summary), run
    )


def _from_steps(steps: list[dict[str, Any]], summary: dict[str, Any], run: Run) -> Histogram:
    """Five steps a half distance: each holds the values above the one before it."""
    rows = [step for step in steps if step.get("count")]
    high = [float(step["to"]) for step in rows]
    low = [min(float(step["from"]), top) for step, top in zip(rows, high, strict=True)]
    counts = [int(step["count"]) for step in rows]
    return Histogram.from_buckets(
        low,
        high,
        counts,
        run=run,
        reported_stats=_told(summary),
        reported_percentiles=printed_rows(_points(summary)),
    )


def sniff_csv(head: Head) -> Confidence:
    """Tell the header."""
    return (
        Confidence.CERTAIN
        if head.lines and head.lines[0].startswith(_CSV_HEADER)
        else Confidence.NO
    )


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every phase and metric of ``total.csv``."""
    found: dict[str, Data] = {}
    reader = csv.DictReader(source.text().splitlines())
    for row in reader:
        try:
            numbers = {
                key: float(value)
                for key, value in row.items()
                if key not in ("Phase", "Metric") and value
            }
        except (ValueError, TypeError):
            options.reject(
                source.corrupt(
                    reader.line_num,
                    "a row that holds no numbers",
                    "nanoseconds and counts",
                    "--lenient skips the line",
                )
            )
            continue
        summary = {
            "startTime": numbers.get("Start"), "endTime": numbers.get("End"), "responseCount": numbers.get("Responses"),
            "minResponseTime": numbers.get("Min"), "maxResponseTime": numbers.get("Max"), "meanResponseTime": numbers.get("Mean"),
            "stdDevResponseTime": numbers.get("StdDev"), "connectionErrors": numbers.get("ConnectionErrors"),
            "requestTimeouts": numbers.get("RequestTimeouts"), "internalErrors": numbers.get("InternalErrors"),
            "invalid": numbers.get("Invalid"), "blockedTime": numbers.get("BlockedTime"),
            "percentileResponseTime": {key[1:]: value for key, value in numbers.items() if re.fullmatch(r"p[\d.]+", key)},
        }  # fmt: skip
        if summary["responseCount"]:
            name = distinct(f"{row['Phase']}/{row['Metric']}", found)
            found[name] = _from_summary(summary, _run(summary).with_notes(_HINT))
    return found


FORMATS = (
    Format(
        "hyperfoil", "Hyperfoil (JSON)", "histogram", (".json",), sniff_json, read_json, unit="ns",
        example="hyperfoil> export -f json -d out.json",
    ),
    Format(
        "hyperfoil-csv", "Hyperfoil (total.csv)", "histogram", (".csv",), sniff_csv, read_csv, unit="ns",
        example="hyperfoil> export -f csv -d out.zip   # writes total.csv into it",
    ),
)  # fmt: skip
