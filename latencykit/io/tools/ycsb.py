"""YCSB: its closing lines (text and JSON), with the buckets or raw rows of its measurement types.

* ``hdrhistogram`` with ``measurement.histogram.verbose``: one line per value (µs) and its count
* ``histogram`` with it: one line per millisecond, and the overflow
* ``timeseries``: one line per interval with its mean, which is left out here
* ``raw``: rows of operation, time in ms (when the operation ended) and latency in µs

``Intended-READ`` and the like count from the moment the operation was due. The ``.hdr`` files are
interval logs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from latencykit.core.columns import Words
from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import data_from_points, nanoseconds, printed_rows, samples_of
from latencykit.io.declared import Lines
from latencykit.io.rows import records
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import fact, has_match, text_of_run

_LINE = re.compile(r"^ *\[([^\]]+)\], ?([^,\n]+), ?(\S+) *$", re.MULTILINE)
_RAW = re.compile(rb"^([A-Za-z][\w-]*),(\d{12,14}),(-?\d{1,18})\r?$", re.MULTILINE)
_ANY_RAW = re.compile(rb"^[A-Za-z][\w-]*,\d{12,14},", re.MULTILINE)
_RAW_HEADER = "latency raw data: op, timestamp(ms), latency(us)"
_OVERALL = r"\[OVERALL\], ?RunTime\(ms\),"
_BEGIN = r"^(?:Command line:|\[OVERALL\],)"
_CLOSING = r"^ *\[\w[\w-]*\], ?\S*Latency\([mu]s\), "
_PERCENTILE = re.compile(r"([\d.]+)(?:st|nd|rd|th)?PercentileLatency\(([mu]s)\)|p([\d.]+)")
_STATS = {
    "AverageLatency(us)": "mean", "MinLatency(us)": "min", "MaxLatency(us)": "max",
    "Average": "mean", "Min": "min", "Max": "max",
}  # fmt: skip
_APART = ("OVERALL", "CLEANUP")
_HINT = (
    "-p measurement.histogram.verbose=true prints the full distribution, "
    "-p hdrhistogram.fileoutput=true logs it (.hdr)"
)


def sniff_raw(head: Head) -> Confidence:
    """Recognise the header of the rows, or the rows."""
    if _RAW_HEADER in head.text:
        return Confidence.CERTAIN
    lines = [line.encode("utf-8", "replace") for line in head.lines[:20] if line.strip()]
    return Confidence.LIKELY if lines and all(map(_RAW.fullmatch, lines)) else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read one series per operation; a printed command line has target rate and threads."""
    text = text_of_run(source, _BEGIN, _CLOSING)
    rate, threads = fact(text, r"-target (\d+)", float), fact(text, r"-threads (\d+)", int)
    run = Run(loop="closed" if rate is None else "paced", rate=rate, connections=threads)
    return _series([match.groups() for match in _LINE.finditer(text)], run)


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read one series per operation from measurements, in a list or one after another."""
    records = json_text.values(source.text(), source)
    keys = ("metric", "measurement", "value")
    rows = [tuple(str(row.get(key)) for key in keys) for row in records if isinstance(row, dict)]
    begins = [k for k, row in enumerate(rows) if row[:2] == ("OVERALL", "RunTime(ms)")]
    if len(begins) < 2:
        return _series(rows, Run(loop="closed"))
    return {
        f"run {number} {name}": data
        for number, (begin, end) in enumerate(pairwise([0, *begins[1:], len(rows)]), 1)
        for name, data in _series(rows[begin:end], Run(loop="closed")).items()
    }


def _series(rows: list[Any], run: Run) -> dict[str, Data]:
    metrics: dict[str, dict[str, str]] = {}
    for metric, name, value in rows:
        metrics.setdefault(metric, {})[name.strip()] = value
    overall = metrics.get("OVERALL", {})
    seconds = float(overall["RunTime(ms)"]) / 1e3 if "RunTime(ms)" in overall else None
    series: dict[str, Data] = {}
    for metric, facts in metrics.items():
        if metric in _APART or metric.startswith("TOTAL_GC") or metric.endswith("-FAILED"):
            continue
        count = int(float(facts.get("Operations", facts.get("Total Operations", 0))))
        if not count and ("Operations" in facts or not any("Latency(" in name for name in facts)):
            continue
        intended = metric.startswith("Intended-")
        failed = sum(
            int(float(number))
            for name, number in facts.items()
            if name.startswith("Return=") and "OK" not in name and name != "Return=0"
        )
        failed = failed or int(float(metrics.get(f"{metric}-FAILED", {}).get("Operations", 0)))
        own = run.replace(
            tool="YCSB", measure="response" if intended else "service",
            corrected="schedule" if intended else "none", duration=seconds, failed=failed,
            unit="us", unit_from="format", achieved=count / seconds if seconds else None,
        )  # fmt: skip
        series[metric] = _operation(facts, count, own)
    return series


def _operation(facts: Mapping[str, str], count: int, run: Run) -> Data:
    """One operation: its buckets where they are printed, else its percentiles."""
    stats: dict[str, float] = {}
    for name, kind in _STATS.items():  # releases up to 0.1.4 print milliseconds
        for spelled, unit in ((name, "us"), (name.replace("(us)", "(ms)"), "ms")):
            if spelled in facts:
                stats.setdefault(kind, nanoseconds(facts[spelled], unit))
    if any(name.endswith("PercentileLatency(ms)") for name in facts):
        run = run.with_notes("this version rounds percentiles down to whole milliseconds")
    if "AverageLatency(ms)" in facts:
        run = run.with_notes("its mean is that of times rounded down: up to 1 ms too low")
    points = {
        float(match[1] or match[3]): nanoseconds(value, match[2] or "us")
        for name, value in facts.items()
        if (match := _PERCENTILE.fullmatch(name)) and float(value)  # 0 is less than 1
    }
    buckets = {int(name): float(value) for name, value in facts.items() if name.isdigit()}
    over = [int(float(value)) for name, value in facts.items() if re.fullmatch(r">\d+", name)]
    keys, counts = np.array(sorted(buckets)), np.array([buckets[key] for key in sorted(buckets)])
    top = stats.get("max", np.inf)
    if over or (
        buckets and "AverageLatency(ms)" in facts
    ):  # buckets of 1 ms; printed percentiles are their lower edges, so they are not taken
        low = keys * 1e6
        high = np.minimum(low + 999_999, max(top, 0.0))
        bound = float(low[-1] + 1e6) if keys.size else 0.0
        return Histogram.from_buckets(
            np.minimum(low, high), high, counts.astype(np.int64), run=run, reported_stats=stats,
            censored=sum(over), censored_at=bound if sum(over) else float("inf"),
        )  # fmt: skip
    if buckets and round(float(counts.sum())) == count and (counts == np.rint(counts)).all():
        values = np.minimum(keys * 1e3, top)
        return Histogram.from_buckets(
            values, values, counts.astype(np.int64), run=run, reported_stats=stats,
            reported_percentiles=printed_rows(points),
        )  # fmt: skip
    return data_from_points(points, count or None, stats, run.with_notes(_HINT))


def read_raw(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every row of the raw measurement type."""
    notes: list[str] = []
    rows = list(records(source, options, _RAW, _ANY_RAW, "operation,ms,us", notes))
    if not rows:
        return {}
    operation, end, latency = zip(*rows, strict=True)
    operations = Words.of(operation).sorted()
    duration = np.array(latency).astype(np.int64) * 1_000
    start = np.array(end).astype(np.int64) * 1_000_000 - duration
    given = {"duration": duration, "start": start, "code": operations.codes}
    run = Run(
        tool="YCSB", loop="closed", measure="service", corrected="none", unit="us",
        unit_from="format", notes=tuple(notes),
    )  # fmt: skip
    return samples_of(given, run, options, operations.names.tolist(), apart=("CLEANUP",))


_CPP = (  # of failures, only the number
    r"\[(?P<name>[A-Z]+): Count=(?P<count>\d+) Max=(?P<max>[\d.]+) Min=(?P<min>[\d.]+)"
    r" Avg=(?P<mean>[\d.]+)(?P<points>(?: [\d.]+=[\d.]+)*)\]"
    r"(?=(?:[^\n]{0,4000}?\[(?P=name)-FAILED: Count=(?P<failed>\d+))?)"
)
FORMATS = {
    "ycsb": (has_match(f"{_OVERALL}|{_CLOSING}", without=re.escape(_RAW_HEADER)), read_text),
    "ycsb-json": read_json,
    "ycsb-cpp": (
        has_match(_CPP),
        Lines(
            run=Run(tool="YCSB-cpp", loop="closed", measure="service", corrected="none", unit="us"),
            row=_CPP,
            unit="us",
            pair=r"([\d.]+)=([\d.]+)",
            cumulative=True,
        ),
    ),
    "ycsb-raw": (sniff_raw, read_raw),
}
