"""sysbench: the closing text, with the histogram of ``--histogram=on`` where it is there.

The histogram's 1024 buckets are spaced evenly in the logarithm from 0.001 to 100,000 ms; a row prints the middle of
its bucket. With ``--rate``, latencies count from the moment an event was due (sysbench adds the time in its queue).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io.build import nanoseconds, nanoseconds_of
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_ROW = re.compile(r"^[ \t]*(\d+\.\d+)\s+\|[* ]*\s(\d+)\s*$", re.MULTILINE)
_STEP = math.log(100_000 / 0.001) / 1023
_STATS = re.compile(r"^[ \t]+(min|avg|max|sum):\s+([\d.]+) *(ms)?\s*$", re.MULTILINE)
_PERCENTILE = re.compile(
    r"^[ \t]+(?:approx\.\s+)?([\d.]+)(?:th|st|nd|rd)? percentile:\s+([\d.]+) *(?:ms)?\s*$",
    re.MULTILINE,
)
_HINT = "run sysbench with --histogram=on for the distribution"


def sniff(head: Head) -> Confidence:
    """Tell the first line, or the blocks of the closing text."""
    if re.search(r"^sysbench \d+\.\d+", head.text, re.MULTILINE):
        return Confidence.CERTAIN
    found = re.search(r"^Latency histogram \(values are in milliseconds\)", head.text, re.MULTILINE)
    return Confidence.CERTAIN if found or "Threads fairness:" in head.text else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the closing text."""
    text = source.text()
    reported_stats = {name: float(value) for name, value, _ in _STATS.findall(text)}
    count = _number(text, r"total number of events:\s+(\d+)")
    if not reported_stats or count is None:
        raise source.corrupt(
            None,
            "the closing statistics are missing",
            "min, avg, max and the number of events",
            "did sysbench end?",
        )
    stats = {
        name: nanoseconds(reported_stats[name], "ms")
        for name in ("min", "max")
        if name in reported_stats
    }
    exact = (
        reported_stats["sum"] / count
        if reported_stats.get("sum") and count
        else reported_stats.get("avg", 0.0)
    )
    stats["mean"] = nanoseconds(exact, "ms")
    points = {
        float(p): nanoseconds(float(value), "ms")
        for p, value in _PERCENTILE.findall(text)
        if 0 < float(p) < 100
    }
    run = _run(text)
    rows = [(float(value), int(number)) for value, number in _ROW.findall(text)]
    if rows:
        return {"": _histogram(rows, stats, points, run, int(count), source)}
    return {"": Summary(stats, points, int(count), "ns", run.with_notes(_HINT))}


def _number(text: str, pattern: str) -> float | None:
    found = re.search(pattern, text)
    return float(found[1]) if found else None


def _run(text: str) -> Run:
    version = re.search(r"^sysbench (\d\S*)", text, re.MULTILINE)
    threads, rate = (
        _number(text, r"Number of threads: (\d+)"),
        _number(text, r"Target transaction rate: ([\d.]+)"),
    )
    seconds = _number(text, r"total time:\s+([\d.]+)s")
    count = _number(text, r"total number of events:\s+(\d+)")
    return Run(
        tool="sysbench",
        version=version[1] if version else None,
        loop="open" if rate else "closed",
        measure="response" if rate else "service",
        corrected="schedule" if rate else "none",
        rate=rate,
        achieved=count / seconds if count and seconds else None,
        duration=seconds,
        connections=int(threads) if threads else None,
        failed=int(_number(text, r"ignored errors:\s+(\d+)") or 0),
        unit="ms",
    )


def _histogram(
    rows: list[tuple[float, int]],
    stats: dict[str, float],
    points: dict[float, float],
    run: Run,
    count: int,
    source: Source,
) -> Histogram:
    middle, counts = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    if int(counts.sum()) != count:
        raise source.corrupt(
            None,
            f"the histogram holds {int(counts.sum())} events, the statistics {count}",
            "equal numbers",
            "",
        )
    step = np.rint(np.log(np.maximum(middle, 0.001) / 0.001) / _STEP)
    low, high = (
        nanoseconds_of(0.001 * np.exp((step + side) * _STEP), "ms") for side in (-0.5, 0.5)
    )
    reported_percentiles = (tuple(points), tuple(points.values()))
    return Histogram.from_buckets(
        np.maximum.accumulate(low),
        np.maximum.accumulate(high),
        counts,
        run=run,
        reported_stats=stats,
        reported_percentiles=reported_percentiles,
    )


FORMATS = (
    Format(
        name="sysbench",
        title="sysbench (text)",
        level="histogram",
        suffixes=(".txt",),
        sniff=sniff,
        read=read,
        unit="ms",
        example="sysbench oltp_read_only --histogram=on run > sysbench.txt",
    ),
)
