"""What programs print of themselves: Envoy's ``/stats``, grpc-go, elbencho, trtexec, httperf."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np

from latencykit.core.run import CLOSED, Run
from latencykit.io import json_text
from latencykit.io.build import data_from_buckets, unit_in
from latencykit.io.declared import Json, Lines, Report, Text, as_it_is, in_ns, report_of
from latencykit.io.source import ReadOptions, Series, Source
from latencykit.io.text_reports import fact, has_match, plain

# Of the last interval, and of the time since the start, which are taken; all in ms.
_TIMED = r"\S{1,400}(?:_(?:ms|time)|[._]latency)"
_ENVOY_RUN = Run(tool="Envoy", unit="ms", notes=("percentiles since the start, interpolated",))
_ENVOY_BUCKETS = re.compile(rf"^({_TIMED}):((?: B[\d.e+]+\(\d+,\d+\))+)[ \t]*$", re.MULTILINE)
_GRPC = re.compile(
    r"^Histogram \(unit: (\S{1,5})\)\s+Count: \d+ +Min: +[\d.]+ +Max: +([\d.]+) +Avg: +([\d.]+)$"
    r"((?:\n-+$|\n\[ *[\d.]+, +(?:[\d.]+|inf)\) +\d+ [^\n]*)+)",
    re.MULTILINE,
)
_GRPC_ROW = re.compile(r"\[ *([\d.]+), +([\d.]+|inf)\) +(\d+)")
_ELBENCHO = re.compile(
    r"^ *(?P<name>\w+) latency +: \[ min=(\S+) avg=(\S+) max=(\S+) \]\n"
    r"(?: *(?P=name) lat % us[^\n]*\n)? *(?P=name) lat hist +: \[ ((?:[\d.]+: \d+(?:, )?)+) \]",
    re.MULTILINE,
)
# rows of a table, between which are rules: ``|latency (ms)|min = `0.34`, mean = `1.69`, …|``
_NBOMBER = (
    r"^[ |│]*(?:scenario )?name[ `|│]+(?P<name>[^\s`|│][^`|│\n]{0,199}?)[ `|│]*\n(?:[^\w\n]*\n)?"
    r"[ |│]*requests?(?: count)?[ |│]+(?:all|total) = `?\d+`?, ok = `?(?P<count>\d+)[^\n]*\n"
    r"(?:[^\w\n]*\n|[ |│]*RPS [^\n]*\n){0,3}"
    r"[ |│]*latency \(ms\)[ |│]+min = `?(?P<min>[\d.]+)`?, mean = `?(?P<mean>[\d.]+)`?, max = "
    r"`?(?P<max>[\d.]+)`?, StdDev = `?(?P<std>[\d.]+)[^\n]*\n(?:[^\w\n]*\n)?"
    r"[ |│]*latency percentile \(ms\)[ |│]+(?P<points>[^\n]*)"
)
# up to version 5, the sum of a scenario is named alike in all of them
_SCENARIO = re.compile(
    r"^(scenario: `?([^\s`][^`\n]{0,199})`?$(?:\n(?!scenario: )[^\n]*){1,60}?\n[ |│]*name[ `|│]+)"
    r"global information",
    re.MULTILINE,
)


def read_buckets(source: Source, options: ReadOptions) -> Series:
    """Read Envoy's buckets by their upper edges; counts that never fall are cumulative."""
    for name, body in _ENVOY_BUCKETS.findall(plain(source.text())):
        rows = np.array(re.findall(r"B([\d.e+]+)\(\d+,(\d+)\)", body), np.float64)
        counts = np.diff(rows[:, 1], prepend=0.0)
        counts = counts if (counts >= 0).all() else rows[:, 1]
        if counts.any():
            low = np.concatenate([[0.0], rows[:-1, 0]])
            yield name, data_from_buckets(low, rows[:, 0], counts, _ENVOY_RUN.replace(notes=()))


def read_quantiles(source: Source, options: ReadOptions) -> Series:
    """Read Envoy's JSON: quantiles by the position of their level."""
    stats = json_text.entry(json_text.load(source), "stats", source, list)
    for part in (row["histograms"] for row in stats if "histograms" in row):
        for row in part.get("computed_quantiles", ()):
            values = [value.get("cumulative") for value in row.get("values", ())]
            if re.fullmatch(_TIMED, row.get("name", "")) and None not in values:
                levels = zip(part["supported_quantiles"], values, strict=False)
                points = {level: in_ns(value, "ms") for level, value in levels}
                ends = {"min": points.pop(0.0, None), "max": points.pop(100.0, None)}
                yield row["name"], report_of(ends, _ENVOY_RUN, as_it_is, points=points)


def read_grpc(source: Source, options: ReadOptions) -> Series:
    """Read every histogram: buckets from an edge up to another."""
    tables = _GRPC.findall(plain(source.text()))
    for number, (printed, most, mean, body) in enumerate(tables, 1):
        run = Run(tool="grpc-go benchmark", **CLOSED, unit=unit_in(printed) or "us")
        rows = np.array([row for row in _GRPC_ROW.findall(body) if int(row[2])], np.float64)
        if rows.size:
            low, high, counts = rows.T
            # The maximum is printed to a tenth, and may seem to lie below its bucket.
            high = np.minimum(high, max(float(most), float(low[-1])))
            name = f"histogram {number}" if len(tables) > 1 else ""
            yield name, data_from_buckets(low, high, counts, run, stats={"mean": mean})


def read_elbencho(source: Source, options: ReadOptions) -> Series:
    """Read the buckets of files and of I/O, which are named by their upper edges (µs)."""
    run = Run(tool="elbencho", **CLOSED, unit="us")
    for name, least, mean, most, body in _ELBENCHO.findall(plain(source.text())):
        rows = [row.split(": ") for row in body.split(", ")]
        stats = {"min": in_ns(least, "us"), "mean": in_ns(mean, "us"), "max": in_ns(most, "us")}
        edges, counts = (tuple(column) for column in zip(*rows, strict=True))
        highs = tuple(in_ns(edge, "us") for edge in edges)
        yield name, report_of(stats, run, as_it_is, edges=highs, counts=tuple(map(int, counts)))


def finish_nbomber(report: Report) -> Report:
    """Count the failed requests, whose times stand in a table of their own."""
    every = fact(report.text, r"(?:all|total) = `?(\d+)", int) or 0
    return replace(report, run=report.run.replace(failed=every - (report.count or 0)))


def finish_httperf(report: Report) -> Report:
    """Take connections' times where each had one reply, else the mean time of a reply."""
    text, run, points = report.text, report.run, {}
    bad = sum(map(int, re.findall(r"\b[45]xx=(\d+)", text)))
    run = run.replace(failed=run.failed - run.timeouts + bad)
    median = fact(text, r"median ([\d.]+)(?=[^!]*?replies/conn\]: 1\.000\b)", float)
    stats, note = report.stats, "times are those of connections, each with one reply"
    if median is None:
        parts = re.findall(r"Reply time \[ms\]: response ([\d.]+) transfer ([\d.]+)", text)
        stats = {"mean": sum(in_ns(part, "ms") for part in parts[0])} if parts else {}
        note = "httperf prints no distribution of replies, only their mean"
    else:
        points = {50.0: median * 1e6}
    run = run.with_notes(note)
    return replace(report, run=run, stats=stats, points=points, failures_included=bad)


FORMATS = {
    "perf-hooks": Json(
        run=Run(tool="Node.js perf_hooks", unit="ns"),
        facts={"count": "count", "min": "min", "max": "max", "mean": "mean", "std": "stddev"},
        points="percentiles",
    ),
    "envoy-buckets": (has_match(_ENVOY_BUCKETS), read_buckets),
    "envoy-json": read_quantiles,
    "grpc-go": (has_match(_GRPC), read_grpc),
    "elbencho": (has_match(_ELBENCHO), read_elbencho),
    "nbomber": (
        has_match(_NBOMBER),
        Lines(
            run=Run(tool="NBomber", measure="service", unit="ms"),
            row=_NBOMBER,
            pair=r"p(\d+) = `?([\d.]+)",
            prepare=partial(_SCENARIO.sub, r"\1\2"),
            finish=finish_nbomber,
        ),
    ),
    "httperf": (
        has_match(r"^ *Total: connections \d+ requests \d+ replies \d+ test-duration "),
        Text(
            run=Run(tool="httperf", measure="service", corrected="none", unit="ms"),
            begin=r"^ *Total: connections \d",
            facts={
                "count": r"Total: connections \d+ requests \d+ replies (\d+)",
                "duration": r"test-duration ([\d.]+ s)",
                "failed": r"Errors: total (\d+)",
                "timeouts": r"client-timo (\d+)",
                "mean": r"Connection time \[ms\]: min [\d.]+ avg ([\d.]+)",
                "min": r"Connection time \[ms\]: min ([\d.]+)",
                "max": r"Connection time \[ms\]: min [^\n]* max ([\d.]+)",
            },
            needed=("count", "failed"),
            finish=finish_httperf,
        ),
    ),
}
