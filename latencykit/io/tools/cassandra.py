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

import re
from typing import Any

import numpy as np

from latencykit.core.blocks import Block, MemoryPart
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import Run
from latencykit.io import build, json_text
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import durations, either, fact, has_match, text_of_run
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


def read_stress(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
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
        run = run.replace(loop="open", measure="response", corrected="schedule")
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
    run = run.replace(
        achieved=own.get("op rate"),
        failed=int(own.get("total errors", 0)),
        duration=own.get("total operation time"),
    )
    if not counts and "total partitions" in own:
        run = run.with_notes("the number of operations is that of partitions")
    return build.data_from_points(points, int(count) or None, stats, run, "ms")


def read_scylla(source: Source, options: ReadOptions) -> Series:  # noqa: ARG001
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
        points, stats = build.statistics_in(rows)
        own = run.replace(measure="service", corrected="none")
        if name == "co-fixed":
            own = run.replace(measure="response", corrected="schedule")
        yield name, build.data_from_points(points, count, stats, own)


def read_latte(source: Source, options: ReadOptions) -> Series:  # noqa: ARG001
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
}
