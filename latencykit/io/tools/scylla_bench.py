"""scylla-bench: the raw latencies that it prints, and those that count from the schedule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from latencykit.core.run import Run
from latencykit.io.build import data_from_points
from latencykit.io.sniffing import certain
from latencykit.io.source import Format
from latencykit.io.text import durations, fact
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_BLOCK = re.compile(
    r"^(raw latency|c-o fixed latency|latency) ?:[ \t]*\n((?:[ \t]+[\w.]+:\s+\S+[ \t]*\n?)+)",
    re.MULTILINE | re.IGNORECASE,
)
_ROW = re.compile(r"^[ \t]+(max|mean|median|[\d.]+th):\s+(\S+)", re.MULTILINE)
_NAMES = {"raw latency": "raw", "c-o fixed latency": "co-fixed", "latency": ""}
_HINT = "-hdr-latency-file keeps the whole distribution"


def sniff(head: Head) -> Confidence:
    """Recognize the configuration, or the closing blocks."""
    text = head.text
    configured = text.startswith("Configuration\n") and "Partition count:" in text
    mode = re.search(r"^Mode:\s", text, re.MULTILINE)
    return certain((configured and mode) or (_BLOCK.search(text) and "Total ops:" in text))


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the closing blocks."""
    text = source.text()
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
        failed=fact(results, r"^Total errors:\s+(\d+)", int) or 0, notes=(_HINT,),
    )  # fmt: skip
    series: dict[str, Data] = {}
    for title, body in blocks:
        name = _NAMES[title.lower()]
        rows = durations(dict(_ROW.findall(body)), source, "1.5ms")
        points = {float(key[:-2]): value for key, value in rows.items() if key.endswith("th")}
        points |= {50.0: rows["median"]} if "median" in rows else {}
        stats = {key: rows[key] for key in ("mean", "max") if key in rows}
        own = run.replace(measure="service", corrected="none")
        if name == "co-fixed":
            own = run.replace(measure="response", corrected="schedule")
        series[name] = data_from_points(points, count, stats, own)
    return series


FORMATS = (
    Format(
        "scylla-bench", "scylla-bench (text)", "histogram", (".txt",), sniff, read,
        example="scylla-bench -workload sequential -mode write -max-rate 1000 > out.txt",
    ),
)  # fmt: skip
