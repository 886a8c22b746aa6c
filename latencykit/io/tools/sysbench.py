"""sysbench: the closing text, with the histogram of ``--histogram=on`` where it is there.

The histogram's 1024 buckets are spaced evenly in the logarithm from 0.001 to 100,000 ms; a row
prints the middle of its bucket. With ``--rate``, latencies count from the moment an event was due
(sysbench adds the time in its queue).
"""

from __future__ import annotations

import math
import re

import numpy as np

from latencykit.core.run import Run
from latencykit.io import build
from latencykit.io.source import Data, ReadOptions, Source
from latencykit.io.text_reports import fact, has_match, text_of_run

_ROW = re.compile(r"^[ \t]*(\d+\.\d+)\s+\|[* ]*\s(\d+)\s*$", re.MULTILINE)
_STEP = math.log(100_000 / 0.001) / 1023
_STATS = re.compile(r"^[ \t]*(min|avg|max|sum):\s+([\d.]+) *+(?:ms)?[ \t]*+$", re.MULTILINE)
_PERCENTILE = re.compile(
    r"^[ \t]*(?:approx\.\s+)?([\d.]+)(?:th|st|nd|rd)? percentile:\s+([\d.]+) *+(?:ms)?[ \t]*+$",
    re.MULTILINE,
)
_BEGIN = (
    r"^(?:.*\b)?sysbench v?\d|^Running the test with|^(?:SQL|OLTP test|General) statistics:"
    "|^CPU speed:|^Test execution summary:"
)
_CUT = "the histogram's first rows are cut off: it is left out"
_HINT = "run sysbench with --histogram=on for the distribution"


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the closing text."""
    text = text_of_run(source, _BEGIN, _STATS)
    facts = {name: float(value) for name, value in _STATS.findall(text)}
    count = fact(text, r"total number of events:\s+(\d+)", int)
    if not facts or count is None:
        seen = "the closing statistics are missing"
        expected = "min, avg, max and the number of events"
        raise source.corrupt(None, seen, expected, "did sysbench end?")
    mean = facts["sum"] / count if facts.get("sum") and count else facts.get("avg", 0.0)
    stats = {"min": facts.get("min") or None, "max": facts.get("max"), "mean": mean}
    # 0.00 is less than half of its last digit
    points = {float(p): value for p, value in _PERCENTILE.findall(text) if float(value)}
    rate = fact(text, r"Target transaction rate: ([\d.]+)", float)
    seconds = fact(text, r"(?:total time|time elapsed):\s+([\d.]+)s", float)
    run = Run(
        tool="sysbench", version=fact(text, r"^sysbench (\d\S*)", str),
        loop="open" if rate else "closed", measure="response" if rate else "service",
        corrected="schedule" if rate else "none", rate=rate, duration=seconds,
        achieved=count / seconds if count and seconds else None,
        connections=fact(text, r"Number of threads: (\d+)", int) or None,
        failed=fact(text, r"ignored errors:\s+(\d+)", int) or 0, unit="ms",
    )  # fmt: skip
    rows = _ROW.findall(text)
    if not rows:
        return {"": build.data_from_points(points, count, stats, run.with_notes(_HINT), "ms")}
    middle, counts = np.array([float(row[0]) for row in rows]), np.array([int(r[1]) for r in rows])
    if int(counts.sum()) < count and not re.search(r"^Latency histogram", text, re.MULTILINE):
        return {"": build.data_from_points(points, count, stats, run.with_notes(_CUT), "ms")}
    if int(counts.sum()) != count:
        seen = f"the histogram contains {int(counts.sum())} events, the statistics {count}"
        raise source.corrupt(None, seen, "equal numbers")
    step = np.rint(np.log(np.maximum(middle, 0.001) / 0.001) / _STEP)
    low, high = (
        np.maximum.accumulate(0.001 * np.exp((step + side) * _STEP)) for side in (-0.5, 0.5)
    )
    return {"": build.data_from_buckets(low, high, counts, run, stats=stats, points=points)}


FORMATS = {
    "sysbench": (
        has_match(
            r"^sysbench \d+\.\d+|^Latency histogram \(values are in milliseconds\)"
            r"|Threads fairness:|^ *total number of events: "
        ),
        read,
    ),
}
