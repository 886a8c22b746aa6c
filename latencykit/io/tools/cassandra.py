"""Load tools of Cassandra and ScyllaDB: cassandra-stress, scylla-bench and latte.

cassandra-stress prints its results at its end. With ``-rate fixed=`` its times count from the
moment an operation was due, with ``throttle=`` from its start; the text shows which only if it
contains the command line. Its ``-log hdrfile=`` is an interval log.

scylla-bench prints raw latencies, and those that count from the schedule.

latte writes a JSON report with HdrHistogram payloads (ns) of the run and, with
``--generate-report``, of each sample. Cycles are calls of the workload's functions; requests are
the queries inside them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from latencykit._text import printable
from latencykit.core.blocks import Block, MemoryPart
from latencykit.core.histogram import Histogram, merge_histograms
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import SCHEDULED, Run
from latencykit.core.summary import Summary
from latencykit.io import build, json_text
from latencykit.io.rows import line_refuser
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import (
    durations,
    either,
    fact,
    has_match,
    line_numbers,
    plain,
    text_of_run,
)
from latencykit.units import parse_duration

_STRESS_LINE = re.compile(
    r"^[ \t]*(op rate|latency (?:mean|median|max|[\d.]+th percentile)|total (?:partitions|errors"
    r"|operations|operation time))[ \t]*: +(\S+)(?: [a-z/]+)?[ \t]*+(?:\[([^\n]*)\])?[ \t]*+$",
    re.MULTILINE | re.IGNORECASE,
)
_STRESS_BEGIN = (
    r"^[ \t]*(?:\*+ Stress Settings|(?:### )?Running (?:[A-Z]+ )?with \d|type[, ]+total ops,"
    "|Rate:|Results:)"
)
_STRESS_HINT = "-log hdrfile=run.hdr keeps the full distribution"
_BLOCK = re.compile(
    r"^(raw latency|c-o fixed latency|latency) ?:[ \t]*\n((?:[ \t]+[\w.]+:\s+\S+[ \t]*\n?)+)",
    re.MULTILINE | re.IGNORECASE,
)
_ROW = re.compile(r"^[ \t]+(max|mean|median|[\d.]+th):\s+(\S+)", re.MULTILINE)
_NAMES = {"raw latency": "raw", "c-o fixed latency": "co-fixed", "latency": ""}
_SCYLLA_HINT = "-hdr-latency-file keeps the full distribution"
_LATTE_PERCENTILES = (
    0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9, 99.99, 100.0,
)  # fmt: skip


def read_stress(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the last results: all operations first, then one series each where there are several."""
    text = text_of_run(source, _STRESS_BEGIN, r"(?i)^[ \t]*latency 99th percentile")
    begin = max(text.rfind("Results:"), 0)
    facts: dict[str, dict[str, float]] = {"total": {}}
    for name, value, parts in _STRESS_LINE.findall(text[begin:]):
        key = name.lower()
        if "time" in key:
            clock = [float(part) for part in value.split(":")]
            facts["total"][key] = sum(60**k * part for k, part in enumerate(reversed(clock)))
            continue
        facts["total"][key] = _number(value)
        for operation, own in re.findall(r"(?<![^\s:,\[])([^\s:,\[]++): ?([\d.,]+)", parts):
            facts.setdefault(operation, {})[key] = _number(own.rstrip(","))
    if "Averages from the middle" in text:  # before 2.1
        seen = "its closing percentiles are averages of intervals, which no request had"
        raise source.corrupt(None, seen, "those of the run", "cassandra-stress 2.1 prints them")
    if "latency 99th percentile" not in facts["total"]:
        seen = "the results at the end are missing"
        raise source.corrupt(None, seen, "Results: and its lines", "did the run end?")
    rate = fact(text, r"(?i)OpsPer Sec: ([1-9]\d*)", int)
    rate = rate or fact(text, r"(?i)\b(?:throttle|fixed)=([1-9]\d*)", int)
    threads = fact(text, r"(?i)Thread Count: (\d+)", int)
    run = Run(
        tool="cassandra-stress", loop="paced" if rate else "closed",
        rate=float(rate) if rate else None, unit="ms", notes=(_STRESS_HINT,),
        connections=threads or fact(text, r"(?i)Running with (\d+) thread", int),
    )  # fmt: skip
    if re.search(r"\bfixed=\d", text):
        run = run.replace(**SCHEDULED)
    else:
        if rate and not re.search(r"\bthrottle=\d", text):
            run = run.with_notes(
                "whether times count from the schedule (fixed=) or from the start (throttle=) "
                "is not in the text"
            )
        else:
            run = run.replace(measure="service", corrected="none")
    total = facts.pop("total")
    if len(facts) < 2:
        return {next(iter(facts), "total"): _stress_data(total, run, text[:begin])}
    return {"total": _stress_data(total, run.replace(aggregate=True), text[:begin])} | {
        operation: _stress_data(own, run, "") for operation, own in facts.items()
    }


def _number(text: str) -> float:
    """A number as Java prints it: commas between thousands."""
    match = re.match(r"[\d,]{0,40}\.?\d++", text)
    return float(match[0].replace(",", "")) if match else float("nan")


def _stress_data(own: dict[str, float], run: Run, text: str) -> Data:
    """Percentiles and statistics of an operation; `text` has the count of all operations."""
    points = {50.0: own.get("latency median")}
    for key, value in own.items():
        match = re.match(r"latency ([\d.]+)th percentile", key)
        if match:
            points[float(match[1])] = value
    stats = {name: own.get(f"latency {name}") for name in ("mean", "max")}
    counts = re.findall(r"^total,\s+([\d,]+),", text, re.MULTILINE)
    partitions = own.get("total operations", own.get("total partitions", 0.0))
    count = _number(counts[-1]) if counts else partitions
    due = own.get("op rate", 0.0) * own.get("total operation time", 0.0)
    if due and abs(partitions - due) < abs(count - due):  # intervals are left out of the text
        counts, count = [], partitions
    run = run.replace(
        achieved=own.get("op rate"),
        failed=int(own.get("total errors", 0)),
        duration=own.get("total operation time"),
    )
    if not counts and "total partitions" in own:
        run = run.with_notes("the number of operations is that of partitions")
    return build.data_from_points(points, int(count) or None, stats, run, "ms")


def read_scylla(source: Source, options: ReadOptions) -> Series:
    """Read the closing blocks."""
    text = text_of_run(source, r"^(?:Configuration|Results)[ \t]*$", "^Total ops:")
    results = text[max(text.rfind("\nResults"), 0) :]
    count = fact(results, r"^Total ops:\s+(\d+)", int)
    blocks = _BLOCK.findall(results + "\n")
    if not blocks or count is None:
        seen = "the results at the end are missing"
        raise source.corrupt(None, seen, "Results and its latencies", "did the run end?")
    rate = fact(text, r"^Max(?:imum)? rate:\s+(?:map\[)?(\d+)", float)
    elapsed = fact(results, r"^Time \(avg\):\s+(\S+)", parse_duration)
    run = Run(
        tool="scylla-bench", loop="paced" if rate else "closed", rate=rate,
        connections=fact(text, r"^Concurrency:\s+(\d+)", int) or None,
        duration=None if elapsed is None else elapsed / 1e9,
        achieved=fact(results, r"^Operations/s:\s+([\d.e+]+)", float),
        failed=fact(results, r"^Total errors:\s+(\d+)", int) or 0, notes=(_SCYLLA_HINT,),
    )  # fmt: skip
    for title, body in blocks:
        name = _NAMES[title.lower()]
        rows = durations(dict(_ROW.findall(body)), source, "1.5ms")
        own = run.replace(measure="service", corrected="none")
        if name == "co-fixed":
            own = run.replace(measure="response", corrected="schedule")
        yield name, build.data_from_statistics(rows, count, own)


def read_latte(source: Source, options: ReadOptions) -> Series:
    """Read requests and cycles; as logs where the report holds samples."""
    record: dict[str, Any] = json_text.load(source)
    result: dict[str, Any] = json_text.entry(record, "result", source)
    settings = record.get("conf") or {}
    rate, concurrency = settings.get("rate"), settings.get("concurrency")
    connections = None
    if isinstance(concurrency, int):
        connections = concurrency * int(settings.get("threads") or 1)
    run = Run(
        tool="latte", command=settings.get("workload"), loop="unknown" if rate else "closed",
        measure="service", corrected="unknown" if rate else "none",
        start=build.epoch_seconds(result.get("start_time")),
        duration=result.get("elapsed_time_s"), rate=float(rate) if rate else None,
        achieved=(result.get("req_throughput") or {}).get("value"), connections=connections,
        failed=int(result.get("error_count") or 0), unit="ns", unit_from="format",
    )  # fmt: skip
    samples = result.get("log") or []
    functions = result.get("cycle_latency_by_fn") or {}
    parts: list[tuple[str, object, list[object]]] = [
        (name, result.get(key, result.get(old)), [sample.get(key) for sample in samples])
        for name, key, old in (
            ("request", "request_latency", "resp_time_ms"),
            ("cycle", "cycle_latency", "cycle_time_ms"),
        )
    ]
    for name, total in functions.items() if len(functions) > 1 else ():
        each = [(sample.get("cycle_latency_by_fn") or {}).get(name) for sample in samples]
        parts.append((name, total, each))

    def bare(value: object) -> Any:
        return value["value"] if isinstance(value, dict) else value

    for name, total, each in parts:
        if not isinstance(total, dict):
            continue
        count = int(result.get("request_count" if name == "request" else "cycle_count", 0))
        own = run.replace(aggregate=name == "cycle" and len(functions) > 1)
        payloads = [
            str(row["histogram"]) for row in each if isinstance(row, dict) and row.get("histogram")
        ]
        if len(payloads) > 1 and len(payloads) == len(samples):
            logged = [
                build.histogram_of_payload(text, "ns", own, source, name) for text in payloads
            ]
            blocks = [
                Block(np.array([k]), np.array([0, h.index.size]), h.index, h.counts, h.buckets)
                for k, h in enumerate(logged)
            ]
            starts, lengths = (
                [float(sample.get(key, 0.0)) for sample in samples]
                for key in ("time_s", "duration_s")
            )
            yield name, HistogramLog(starts, lengths, [MemoryPart(blocks)], run=own)
            continue
        rows = total.get("percentiles") or []
        points: dict[float, float] = {}
        if len(rows) == len(_LATTE_PERCENTILES):
            points = dict(zip(_LATTE_PERCENTILES, map(bare, rows), strict=True))
        points = build.in_nanoseconds(points, "ms")
        stats = build.in_nanoseconds({"mean": bare(total.get("mean"))}, "ms")
        if total.get("histogram"):
            yield name, build.histogram_of_payload(
                total["histogram"], "ns", own, source, name, reported_stats=stats,
                reported_percentiles=build.printed_rows(points),
            )  # fmt: skip
        elif points or stats:
            yield name, build.data_from_points(points, count, stats, own.replace(unit="ms"))


# ------------------------------------------------------------
# NoSQLBench, and others whose timers are Dropwizard metrics: summary, log, CSV, histostats.
#
# Its HDR logs (``--log-histograms``) are interval logs and hold everything. A timer's count and
# mean are of the whole run; its percentiles are of the last reporting interval, or of a sample
# that favours the latest values. Histostats have one row of percentiles per interval, of all its
# values.

_HINT = (
    "percentiles of a timer are of its last interval or of a sample; "
    "--log-histograms keeps the full distribution"
)
_KNOWN = {"min", "max", "mean", "stddev", "median", "count", "mean_rate"}
_TIMER = re.compile(
    r"type=TIMER, name=(.{1,500}?), ((?:\w+=[^,\n]+, ){1,40}+\w+=\S+)\s*$", re.MULTILINE
)
_CONSOLE = re.compile(r"^(\S.{0,500}?) *\n((?: +[\w%.-][\w%. -]*?(?:=|<=) .+\n)+)", re.MULTILINE)
_FACT = re.compile(
    r"^ +([\w%.-][\w%. -]{0,60}?) *(?:=|<=) (\d+(?:\.\d+)?(?:E-?\d{1,2})?) (\S+) *$", re.MULTILINE
)
_COUNT = re.compile(r"^ +count = (\d{1,18}) *$")
_HISTOSTATS = re.compile(
    r"^#\s*Tag,Interval_Start,Interval_Length,count,min,(p[\w,]+),max\s*$", re.MULTILINE
)


def _timer(values: Mapping[str, float], unit: str, notes: tuple[str, ...] = ()) -> Summary:
    """A timer of `values` by the names of their columns."""
    points, stats = (build.in_nanoseconds(part, unit) for part in build.statistics_in(values))
    run = Run(tool="NoSQLBench", unit=unit, achieved=values.get("mean_rate"), notes=(_HINT, *notes))
    count = int(values.get("count", 0))
    return Summary(stats, dict(sorted(points.items())), count, "ns", run)


def read_log(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the last line of each timer that counted something."""
    text = source.text()
    line_at = line_numbers(text)
    series: dict[str, Data] = {}
    for row in _TIMER.finditer(text):
        facts = dict(part.split("=", 1) for part in row[2].split(", "))
        line = line_at(row.start())
        unit = build.unit_in(facts.get("duration_unit", ""))
        if unit is None:
            seen = f"duration_unit is {printable(str(facts.get('duration_unit')), 30)}"
            raise source.corrupt(line, seen, "milliseconds")
        values = _numbers(facts, line, source)
        if values.get("count"):
            series[row[1]] = _timer(values, unit)
    return series


def _numbers(facts: Mapping[str, str], line: int, source: Source) -> dict[str, float]:
    names = [name for name in facts if name in _KNOWN or build.percentile_named(name)]
    try:
        return {name: float(facts[name]) for name in names}
    except ValueError:
        seen = "a value of this timer is not a number"
        raise source.corrupt(line, seen, "count=…, min=…") from None


def read_console(source: Source, options: ReadOptions) -> Series:
    """Read each timer of the summary."""
    text = plain(source.text()) + "\n"
    line_at = line_numbers(text)
    for block in _CONSOLE.finditer(text):
        values: dict[str, float] = {}
        for number, line in enumerate(block[2].split("\n"), line_at(block.start(2))):
            row, counted = _FACT.match(line), _COUNT.match(line)
            name = row[1] if row else ""
            if counted:
                values["count"] = float(counted[1])
            elif row and name.endswith("rate"):
                values |= {"mean_rate": float(row[2])} if name == "mean rate" else {}
            elif (
                row
                and (unit := build.unit_in(row[3]))
                and (name in _KNOWN or build.percentile_named(name))
            ):
                values[name] = build.nanoseconds(row[2], unit)
            elif line.strip() and (row is None or build.unit_in(row[3])):
                shown, due = f"{printable(line.strip())!r}", "such as 99% <= 23.92 milliseconds"
                raise source.corrupt(number, shown, due, "run it again")
        if values.get("count") and "max" in values:
            yield block[1].strip(), _timer(values, "ns")


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the last row of a timer's file."""
    text, notes = source.text(), list[str]()
    lines, refuse = text.split("\n"), line_refuser(source, options, text, notes)
    names = lines[0].strip().split(",")
    last: dict[str, str] = {}
    line = 0
    for number, row in enumerate(csv.reader(lines[1:]), 2):
        if len(row) == len(names) and build.unit_in(row[-1]):
            last, line = dict(zip(names, row, strict=True)), number
        elif row:
            refuse(number, f"{printable(lines[number - 1])!r}", f"{len(names)} fields")
    if not last:
        return {}
    unit = build.unit_in(last["duration_unit"]) or "ns"
    return {"": _timer(_numbers(last, line, source), unit, tuple(notes))}


def read_histostats(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read each tag: its intervals' percentiles as histograms, added up."""
    text = source.text()
    unit, unit_from = options.resolve_unit("ns")
    legend = _HISTOSTATS.search(text)
    names = legend[1].split(",") if legend else []
    parts: dict[str, list[Histogram]] = {}
    ends: list[float] = []
    note = "each interval's percentiles made these buckets"
    notes = [f"{note}; --log-histograms keeps the full distribution"]
    refuse = line_refuser(source, options, text, notes)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        row = _interval(line, names, unit)
        if row is not None:
            tag, end, histogram = row
            ends.append(end)
            parts.setdefault(tag, []).extend([] if histogram is None else [histogram])
        else:
            expected = "Tag=…,start,length,count,min,percentiles,max"
            refuse(number, f"{printable(line)!r}", expected)
    facts: dict[str, object] = {
        "tool": "NoSQLBench", "unit": unit, "unit_from": unit_from, "notes": tuple(notes),
        "duration": max(ends, default=0.0) or None,
    }  # fmt: skip
    return {tag: merge_histograms(some).with_run(**facts) for tag, some in parts.items() if some}


def _interval(line: str, names: list[str], unit: str) -> tuple[str, float, Histogram | None] | None:
    """Tag, end and histogram of a row; None where it is corrupt."""
    tag, _, rest = line.partition(",") if line.startswith("Tag=") else ("Tag=", "", line)
    try:
        start, length, count, *values = (float(cell) for cell in rest.strip().split(","))
    except ValueError:
        return None
    if len(values) != len(names) + 2 or values != sorted(values):
        return None
    if not 0 <= count < 1e15 or min(values) < 0:
        return None
    if not count:
        return tag[4:], start + length, None
    low, *inner, high = (build.nanoseconds(value, unit) for value in values)
    points = build.percentiles_in(dict(zip(names, inner, strict=True)))
    histogram = Histogram.from_percentiles(
        list(points), list(points.values()), int(count), build.base_unit(unit),
        reported_stats={"min": low, "max": high},
    )  # fmt: skip
    return tag[4:], start + length, histogram


FORMATS = {
    "cassandra-stress": (
        has_match(r"^type,? +total ops,|(?i:^[ \t]*latency 99\.9th percentile +: )"),
        read_stress,
    ),
    "scylla-bench": (
        either(
            has_match(r"\AConfiguration\n", "Partition count:", r"^Mode:\s"),
            has_match(_BLOCK, "Total ops:"),
        ),
        read_scylla,
    ),
    "latte": read_latte,
    "nosqlbench": (
        has_match(r"^ +99\.9% <= \S+ (?:nano|micro|milli)?seconds", plain=plain),
        read_console,
    ),
    "nosqlbench-log": (
        has_match(r"\btype=(?:TIMER|GAUGE|HISTOGRAM|METER|COUNTER), name="),
        read_log,
    ),
    "nosqlbench-csv": (
        has_match(r"\At,count,max,mean,min,stddev,(?:.*,)?duration_unit[ \t]*$"),
        read_csv,
    ),
    "nosqlbench-histostats": (has_match(_HISTOSTATS), read_histostats),
}
