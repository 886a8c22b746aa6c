"""oha: JSON, CSV and text; times in seconds, in text in the unit behind each.

No output says whether ``--latency-correction`` was on. With it, times count from the moment a
request was due, yet those to the first byte still from the send: where the former exceed the latter
by far, and not because bodies took long, the times count from a schedule. Requests still in flight
at the deadline are dropped, and only counted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from latencykit.core.run import CLOSED, SCHEDULED, Run
from latencykit.io.declared import Json, Report, Rows, at, in_ns
from latencykit.io.source import Confidence, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import certain, plain, starts_with
from latencykit.io.tools.hey import REPORT, evenly, is_report

_HEADER = "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status"
_RUN = Run(tool="oha", measure="service", unit="s", unit_from="format")
_APART, _OFTEN, _EVEN = 1.5, 20, 0.9
_FROM_SCHEDULE = (
    "times exceed those to the first byte, yet not by the time of a body: "
    "they count from the schedule"
)


def sniff_text(head: Head) -> Confidence:
    """Recognise the headings, and the success rate that hey does not print."""
    text = plain(head.text)
    return certain("Success rate:" in text and is_report(text))


def finish_text(report: Report) -> Report:
    """Take the loop from the command line."""
    command, run = report.run.command, report.run
    if command is not None:
        run = run.replace(**(SCHEDULED if "--latency-correction" in command else CLOSED))
    return evenly(replace(report, run=run, timeout=0.0))


def finish_json(report: Report, record: Any) -> Report:
    """Compare the times to the first byte with the total ones; equal marks fall together."""
    good = (report.count or 0) - (report.failures_included if report.text else 0)
    if sum(report.counts) != good:
        report = replace(report, edges=(), counts=())
    first = at(record, "firstBytePercentiles") or {}
    slowest, top = at(record, "details.firstByte.slowest"), report.stats.get("max")
    run = report.run
    if first and slowest is not None and top:
        pairs = ((float(p[1:]), in_ns(v, "s")) for p, v in first.items() if v)
        if not any(report.points.get(p, 0.0) > _APART * value for p, value in pairs):
            run = run.replace(**CLOSED)
        elif top <= _APART * in_ns(slowest, "s"):
            run = run.replace(**SCHEDULED).with_notes(_FROM_SCHEDULE)
    if report.count is None:  # parts were cut out
        return replace(report, run=run)
    return evenly(replace(report, run=run, timeout=0.0))


def finish_rows(
    frame: dict[str, Any], given: dict[str, Any], run: Run
) -> tuple[dict[str, Any], Run]:
    """Find the moments at which requests were due, where these show an even schedule."""
    delay = np.rint(frame["Response-delay"] * 1e9).astype(np.int64)
    due = given["start"] - (given["duration"] - delay)
    rate = None
    if due.size >= _OFTEN and (given["duration"] > _APART * delay).any():
        steps = np.diff(np.sort(due)).astype(np.float64)
        step = float(np.median(steps))
        even = np.abs(steps - step) <= 0.25 * step + 50_000
        rate = round(1e9 / step, 3) if step > 0 and even.mean() >= _EVEN else None
    if rate is None:
        return given, run.replace(**CLOSED)
    run = run.replace(**SCHEDULED, rate=rate).with_notes(_FROM_SCHEDULE)
    return given | {"intended": due, "duration": delay}, run


def read_json(source: Source, options: ReadOptions) -> Series:
    """Read percentiles and buckets, of good replies alone with ``--stats-success-breakdown``."""
    apart = '"latencyPercentilesSuccessful": {' in source.text()
    return (_APART_JSON if apart else _JSON)(source, options)


_JSON = Json(
    run=_RUN,
    facts={
        "min": "summary.fastest", "max": "summary.slowest", "mean": "summary.average",
        "duration": "summary.total", "achieved": "summary.requestsPerSec",
    },
    needed=("summary", "latencyPercentiles"),
    points="latencyPercentiles",
    buckets="responseTimeHistogram",
    statuses="statusCodeDistribution",
    errors="errorDistribution",
    finish=finish_json,
)  # fmt: skip
_APART_JSON = replace(
    _JSON, points="latencyPercentilesSuccessful", buckets="responseTimeHistogramSuccessful",
    finish=lambda report, record: finish_json(replace(report, text="(2xx only)"), record),
)  # fmt: skip
FORMATS = {
    "oha-json": read_json,
    "oha-csv": (
        starts_with(_HEADER),
        Rows(
            run=_RUN,
            columns=_HEADER,
            duration="request-duration",
            start="request-start",
            status="status",
            numbers=("Response-delay",),
            finish=finish_rows,
        ),
    ),
    "oha": (
        sniff_text,
        replace(REPORT, run=_RUN.replace(unit_from="file"), commands=("oha",), finish=finish_text),
    ),
}
