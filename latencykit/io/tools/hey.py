"""hey (once boom): its text and its CSV, both in seconds with four decimals.

The histogram's first mark is the fastest request, and ten steps of equal width lead to the slowest;
a mark is the upper end of its bucket. Marks are printed with three decimals, so they are computed
anew from the two ends. oha prints the same report.

hey sends the next request when the reply to the last one arrived (or later, with ``-q``), so a
stall shows in one request per worker and in none of those that were not sent.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np

from latencykit.core.run import CLOSED, Run
from latencykit.io.declared import TRUNCATED, Report, Rows, Text
from latencykit.io.source import Confidence, Head
from latencykit.io.text_reports import certain, plain, starts_with

_RUN = Run(tool="hey", **CLOSED, unit="s")
_BEGIN = (  # the first line may be missing
    r"^[ \t]*[Ss]ummary:[ \t]*$"
    r"|\A\s*+(?:(?![Ss]ummary:)[^\n]{0,400}\n\s*+){0,3}?Total:[ \t]+[\d.]+ secs"
)
_HEADING = (
    r"^[ \t]*(?:Response time|Latency) (?:histogram|distribution)(?: \([^)\n]*only\))?:[ \t]*$"
)
_FLAG = r" -{}[ =]?(\d+(?:\.\d+)?)"
_UNFINISHED = re.compile(r"aborted due to deadline", re.IGNORECASE)
_HEADER = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read"


def is_report(text: str) -> bool:
    """True if text has the summary, and the histogram or percentiles."""
    found = [re.search(pattern, text, re.MULTILINE) for pattern in (_BEGIN, _HEADING)]
    return all(found) and "Fastest:" in text


def sniff_text(head: Head) -> Confidence:
    """Recognise the headings; the reports of oha and ghz have others."""
    text = plain(head.text)
    other = "Success rate:" in text or re.search(r"^[ \t]*Count:\s+\d", text, re.MULTILINE)
    return certain(is_report(text) and not other)


def evenly(report: Report) -> Report:
    """Compute the marks anew, where they lead from the fastest request to the slowest."""
    late = sum(n for text, n in report.errors.items() if _UNFINISHED.search(text))
    run = report.run.replace(failed=report.run.failed - late, unfinished=late)
    if report.count is None and run.achieved and run.duration:  # of all, which failed, too
        answered = round(run.achieved * run.duration) - sum(report.errors.values())
        no_reply = math.isnan(report.stats.get("mean", 0.0))
        report = replace(report, count=0 if no_reply else answered)
    if "(2xx only)" in report.text:  # of the percentiles and buckets, not of the statistics
        failed = report.failures_included
        stats = {"max": report.edges[-1]} if failed and report.edges else report.stats
        count = None if report.count is None else report.count - failed
        report = replace(
            report,
            stats={} if failed and not report.edges else stats,
            failures_included=0,
            count=count,
        )
    edges, counts, stats = report.edges, report.counts, report.stats
    near = 0.0006 * (1e9 if "secs" in report.text else 1e6) + 1.0
    ends = (stats.get("min", -1e18), stats.get("max", -1e18))
    if len(edges) < 2 or abs(edges[0] - ends[0]) > near or abs(edges[-1] - ends[1]) > near:
        far = near + 1.01 * (edges[-1] - edges[0]) / (len(edges) - 1) if edges[1:] else math.inf
        if edges and (edges[0] < ends[0] - far or edges[-1] < ends[1] - far):
            run = run.with_notes("the histogram does not fit fastest and slowest: it is left out")
        return replace(report, run=run, edges=(), counts=(), count=report.count or sum(counts))
    even = np.round(np.linspace(*ends, len(edges)), 3).tolist()
    return replace(report, run=run, edges=tuple(even))


def finish(report: Report) -> Report:
    """Take the loop, the rate and the timeout from the command line; etcd's benchmark has none."""
    run = report.run
    if re.search(r"^[ \t]*+Stddev:", report.text, re.MULTILINE):
        notes = tuple(note for note in run.notes if note != TRUNCATED)
        run = run.replace(tool="etcd benchmark", loop="unknown", notes=notes)
    elif run.command:
        found = {key: re.search(_FLAG.format(key), run.command) for key in "cqt"}
        flags = {key: float(match[1]) for key, match in found.items() if match}
        workers, each = int(flags.get("c", 50)), flags.get("q", 0.0)
        run = run.replace(
            connections=workers, loop="paced" if each else "closed",
            rate=each * workers or None, expected_interval=round(1e9 / each, 3) if each else None,
            timeout=flags["t"] * 1e9 if "t" in flags else None,
        )  # fmt: skip
    return evenly(replace(report, run=run, timeout=20e9))


REPORT = Text(
    run=_RUN,
    begin=_BEGIN,
    facts={
        "min": "Fastest:", "max": "Slowest:", "mean": "Average:", "duration": "Total:",
        "achieved": "Requests/sec:",
    },
    needed=("min", "max", "mean"),
    points=(
        "Response time distribution (2xx only):", "Latency distribution:",
        "Response time distribution:",
    ),
    buckets=("Response time histogram (2xx only):", "Response time histogram:"),
    statuses=("Status code distribution:",),
    errors=("Error distribution:",),
    closing=r"^[ \t]*Status code distribution:",
    commands=("hey", "boom"),
    finish=finish,
)  # fmt: skip
CSV = Rows(
    run=_RUN, columns=_HEADER, duration="response-time", start="offset",
    status="status-code", notes=("hey prints times to 0.1 ms",), most=1_000_000,
    most_note="hey keeps the first million replies: the run may have been longer",
)  # fmt: skip
FORMATS = {"hey": (sniff_text, REPORT), "hey-csv": (starts_with(_HEADER), CSV)}
