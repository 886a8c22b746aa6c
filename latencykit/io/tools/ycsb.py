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
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from latencykit.core.columns import Words
from latencykit.core.histogram import Histogram
from latencykit.core.run import CLOSED, Run
from latencykit.io import build, json_text
from latencykit.io.rows import records
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import either, fact, has_match, plain, text_of_run

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


def read_text(source: Source, options: ReadOptions) -> Series:
    """Read one series per operation; a printed command line has target rate and threads."""
    text = text_of_run(source, _BEGIN, _CLOSING)
    rate, threads = fact(text, r"-target (\d+)", float), fact(text, r"-threads (\d+)", int)
    run = Run(loop="closed" if rate is None else "paced", rate=rate, connections=threads)
    return _series([match.groups() for match in _LINE.finditer(text)], run)


def read_json(source: Source, options: ReadOptions) -> Series:
    """Read one series per operation from measurements, in a list or one after another."""
    records = json_text.values(source.text(), source)
    keys = ("metric", "measurement", "value")
    rows = [tuple(str(row.get(key)) for key in keys) for row in records if isinstance(row, dict)]
    begins = [k for k, row in enumerate(rows) if row[:2] == ("OVERALL", "RunTime(ms)")]
    for number, (begin, end) in enumerate(pairwise([0, *begins[1:], len(rows)]), 1):
        for name, data in _series(rows[begin:end], Run(loop="closed")):
            yield name if len(begins) < 2 else f"run {number} {name}", data


def _series(rows: list[Any], run: Run) -> Series:
    metrics: dict[str, dict[str, str]] = {}
    for metric, name, value in rows:
        metrics.setdefault(metric, {})[name.strip()] = value
    overall = metrics.get("OVERALL", {})
    seconds = float(overall["RunTime(ms)"]) / 1e3 if "RunTime(ms)" in overall else None
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
        yield metric, _operation(facts, count, own)


def _operation(facts: Mapping[str, str], count: int, run: Run) -> Data:
    """One operation: its buckets where they are printed, else its percentiles."""
    stats: dict[str, float] = {}
    for name, kind in _STATS.items():  # releases up to 0.1.4 print milliseconds
        for spelled, unit in ((name, "us"), (name.replace("(us)", "(ms)"), "ms")):
            if spelled in facts:
                stats.setdefault(kind, build.nanoseconds(facts[spelled], unit))
    if any(name.endswith("PercentileLatency(ms)") for name in facts):
        run = run.with_notes("this version rounds percentiles down to whole milliseconds")
    if "AverageLatency(ms)" in facts:
        run = run.with_notes("its mean is that of times rounded down: up to 1 ms too low")
    points = {
        float(match[1] or match[3]): build.nanoseconds(value, match[2] or "us")
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
            reported_percentiles=build.printed_rows(points),
        )  # fmt: skip
    return build.data_from_points(points, count or None, stats, run.with_notes(_HINT))


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
    run = Run(tool="YCSB", **CLOSED, unit="us", unit_from="format", notes=tuple(notes))
    return build.samples_of(given, run, options, operations.names.tolist(), apart=("CLEANUP",))


# ------------------------------------------------------------
# go-ycsb and go-tpc: a line of statistics per operation, every few seconds and at the end.
#
# Lines of go-ycsb cover the run so far; those of go-tpc, ``[Current]``, some seconds alone, and are
# left out. Both keep buckets: a percentile is the upper edge of one, and may lie above the maximum.

_GO_LINE = re.compile(
    r"^(?:\[(Current|Summary)\] )?(\w[\w.-]*) +- "
    r"((?:Takes\(s\): [\d.]+, )?Count: \d+, \w+(?:\(ms\))?: .*)$",
    re.MULTILINE,
)
_FIELD = re.compile(r"([^\s:,][^:,]{0,60}+): (-?[\d.]+)")
_TABLE = re.compile(r"^\| *operation *\| *takes\(s\) *\|", re.IGNORECASE | re.MULTILINE)
_TIME = re.compile(r"([\d.]+th|avg|min|max)\(([mu]s)\)")
_FAILED = ("_ERR", "_ERROR")


def read_go(source: Source, options: ReadOptions) -> Series:
    """Read the last line of each operation."""
    text = plain(source.text())
    if (ended := text.rfind("\nRun finished")) >= 0:  # what a further run began is not of this one
        text = text[:ended] + re.split(r"\n\*+ properties", text[ended:])[0]
    lines = list(_GO_LINE.finditer(text))
    if not lines:
        cells = [line.strip(" |").split("|") for line in text.splitlines() if "|" in line]
        if not cells:
            seen = "it has no line of statistics"
            raise source.corrupt(None, seen, "what the tool prints at its end", "did the run end?")
        names, *rows = [[cell.strip() for cell in line] for line in cells]
        found = [dict(zip(names, row, strict=False)) for row in rows if row != names]
        return _go_series(found, Run(tool="go-ycsb", loop="closed"))
    if all(line[1] == "Current" for line in lines):
        seen = "every line is about some seconds of the run ([Current])"
        raise source.corrupt(None, seen, "[Summary] lines at its end", "let the run finish")
    found = [
        {"operation": line[2], **dict(_FIELD.findall(line[3]))}
        for line in lines
        if line[1] != "Current"
    ]
    threads = fact(text, r'"threadcount"="(\d+)"', int)
    rate = fact(text, r'"target"="(\d+)"', float) or None
    run = Run(
        tool="go-tpc" if lines[0][1] else "go-ycsb", connections=threads, rate=rate,
        loop="paced" if rate else "closed",
    )  # fmt: skip
    return _go_series(found, run)


def read_go_json(source: Source, options: ReadOptions) -> Series:
    """Read go-ycsb's lists of operations, of which the last one counts."""
    records = json_text.values(source.text(), source)
    lists = [record if isinstance(record, list) else [record] for record in records]
    rows = [row for rows in lists for row in rows if isinstance(row, dict)]
    return _go_series(rows, Run(tool="go-ycsb", loop="closed"))


def _go_series(rows: Iterable[Mapping[str, object]], run: Run) -> Series:
    """One series per operation, of its last row; what failed is a number of the operation."""
    given: dict[str, dict[str, str]] = {}
    for row in rows:
        facts = {name.strip().lower(): str(value) for name, value in row.items()}
        if "count" in facts:
            given[facts.pop("operation", "")] = facts
    failures = {name + end for name in given for end in _FAILED if name + end in given}
    for name, facts in given.items():
        if name in failures:
            continue
        points, stats = build.statistics_in(
            {
                match[1]: build.nanoseconds(value, match[2])
                for field, value in facts.items()
                if (match := _TIME.fullmatch(field))
            }
        )
        least, most = stats.get("min", 0.0), stats.get("max", float("inf"))
        # above its last bucket, one second, go-ycsb once printed 0
        points = {p: min(value, most) for p, value in points.items() if value >= max(least, 1.0)}
        count, seconds = int(facts["count"]), float(facts.get("takes(s)", 0)) or None
        own = run.replace(
            measure="service", corrected="none", unit="us", unit_from="format", duration=seconds,
            achieved=count / seconds if seconds else None,
            failed=sum(int(given[name + end]["count"]) for end in _FAILED if name + end in given),
        )  # fmt: skip
        yield name, build.data_from_points(points, count, stats, own)


FORMATS = {
    "ycsb": (has_match(f"{_OVERALL}|{_CLOSING}", without=re.escape(_RAW_HEADER)), read_text),
    "ycsb-json": read_json,
    "ycsb-raw": (sniff_raw, read_raw),
    "go-ycsb": (either(has_match(_GO_LINE), has_match(_TABLE)), read_go),
    "go-ycsb-json": read_go_json,
}
