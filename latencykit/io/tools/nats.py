"""NATS: what ``nats latency`` prints and the raw values of its ``--histogram``, and ``nats bench``.

``nats latency`` sends messages at a pace without waiting; a latency is from the send of a message
to its receipt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io.build import (
    data_from_points,
    data_from_values,
    nanoseconds_of,
    without_negative,
)
from latencykit.io.rows import Layout, read_table
from latencykit.io.sniffing import has_match
from latencykit.io.source import Confidence, Format
from latencykit.io.text import durations, plain
from latencykit.units import printable

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_CLOCK = r"^(?:\d\d:\d\d:\d\d )?"
_POINT = re.compile(_CLOCK + r"([\d.]+): +(\S+)\s*$", re.MULTILINE)
_FACT = re.compile(_CLOCK + r"([A-Z1][\w/ ]+?) *: +(.+?)\s*$", re.MULTILINE)
_RAW = re.compile(r"\d+\.\d{6}")
_BENCH = re.compile(
    r"^ *(NATS .+? stats): ([\d,]+) msgs/sec(?: ~ [^~\n]+)?(?: ~ ([\d.]+(?:ns|us|µs|ms|s|m)))?\s*$",
    re.MULTILINE,
)
_MEANS = re.compile(
    r"^[ \t]*avg latencies min \S+ \| avg (\S+) \| max \S+ \| stddev \S+", re.MULTILINE
)
_RUN = Run(tool="nats latency", loop="open", measure="service", corrected="none")
_HINT = "nats latency measures single messages and prints the distribution"


def sniff_raw(head: Head) -> Confidence:
    """Recognize values with six decimals in a file that ends in .raw."""
    lines = head.lines[:50]
    if head.suffix == ".raw" and lines and all(map(_RAW.fullmatch, lines)):
        return Confidence.LIKELY
    return Confidence.NO


def read_bench_csv(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Refuse: a row is a client's run, not a message."""
    raise source.corrupt(1, "this CSV of nats bench holds throughput only", "latencies", _HINT)


def read_latency(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the percentiles and the facts around them."""
    text = plain(source.text())
    _, _, body = text.partition("HDR Percentiles:")
    facts = {name.strip(): value for name, value in _FACT.findall(text)}
    line = text.count("\n", 0, len(text) - len(body)) + 1
    cells = {float(p): value for p, value in _POINT.findall(body)}
    points = durations(cells, source, "1.049ms", line=line)
    kinds = ("Latency", "Time", "Duration")
    timed = {name: value for name, value in facts.items() if name.endswith(kinds)}
    times = durations(timed, source, "1.049ms", line=line)
    for number, row in enumerate(body.split("=====")[0].split("\n")[1:-1], line + 1):
        numbered = row.strip() and re.search(r"\d", row.partition(" ")[2] or row)
        if numbered and _POINT.match(row) is None:
            seen, expected = f"{printable(row.strip())!r}", "a percentile, such as 99:  238µs"
            raise source.corrupt(number, seen, expected, "run it again")
    if 100.0 not in points and "Maximum Latency" not in times:
        seen, hint = "the percentiles end before 100", "did nats latency end?"
        raise source.corrupt(line, seen, "10 to 100", hint)
    names = {"min": "Minimum Latency", "max": "Maximum Latency"}
    stats = {kind: times[name] for kind, name in names.items() if name in times}
    rate, achieved = (
        int(text) if text.isdigit() and len(text) < 12 else None
        for text in (facts.get("Target Msgs/Sec", ""), facts.get("Actual Msgs/Sec", ""))
    )
    # It sends that many, and waits for all of them.
    count = rate * int(times.get("Target Duration", 0.0) / 1e9) if rate else None
    run = _RUN.replace(
        rate=float(rate) if rate else None, achieved=float(achieved) if achieved else None,
        duration=times.get("Last Recv Wall Time", 0.0) / 1e9 or None,
    )  # fmt: skip
    run = run.with_notes(
        "nats latency cuts what it prints to whole microseconds; "
        "--histogram FILE writes every value to FILE.raw"
    )
    return {"": data_from_points(points, count, stats, run)}


def read_raw(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every value (ms), in the order of receipt."""
    unit, unit_from = options.resolve_unit("ms")
    layout = Layout(("value",), ("value",), largest={"value": 9e12})
    frame, notes = read_table(source, options, layout)
    if not len(frame):
        return {}
    given = {"duration": nanoseconds_of(frame["value"].to_numpy(np.float64), unit)}
    columns, left_out = without_negative(given, options)
    run = _RUN.replace(unit=unit, unit_from=unit_from, notes=(*notes, *left_out))
    return {"": data_from_values(columns["duration"], run)}


def read_bench(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the mean latency of versions that print one."""
    text = plain(source.text())
    series: dict[str, Data] = {}
    begins = list(_BENCH.finditer(text))
    ends = [*(match.start() for match in begins[1:]), len(text)]
    for begin, end in zip(begins, ends, strict=False):
        means = _MEANS.search(text[begin.end() : end]) or _MEANS.search(text)
        cell = means[1] if means else begin[3]
        if cell:
            line = text.count("\n", 0, begin.start()) + 1
            stats = durations({"mean": cell}, source, "29.35us", line=line)
            achieved = float(begin[2].replace(",", ""))
            run = Run(tool="nats bench", measure="service", corrected="none", achieved=achieved)
            name = begin[1].removesuffix(" stats")
            series[name] = Summary(stats, {}, None, "ns", run.with_notes(_HINT))
    if not series:
        seen = "this version of nats bench prints throughput only"
        raise source.corrupt(None, seen, "a latency", _HINT)
    return series


FORMATS = (
    Format(
        "nats-latency", "nats latency (text)", "histogram", (".txt",),
        has_match(_CLOCK + "HDR Percentiles:"), read_latency,
        example="nats latency --server-b HOST --rate 1000 2> out.txt",
    ),
    Format(
        "nats-latency-raw", "nats latency --histogram (raw values)", "samples", (".raw",),
        sniff_raw, read_raw, unit="ms",
        example="nats latency --server-b HOST --histogram out   # writes out.raw",
    ),
    Format(
        "nats-bench", "nats bench (mean only)", "summary", (".txt",),
        has_match(_BENCH, plain=plain), read_bench, example="nats bench pub foo > out.txt",
    ),
    Format(
        "nats-bench-csv", "nats bench (CSV: no latencies)", "summary", (".csv",),
        has_match(r"\A\s*#RunID,ClientID,MsgCount,"), read_bench_csv,
        example="nats bench pub foo --csv out.csv",
    ),
)  # fmt: skip
