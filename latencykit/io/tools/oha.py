"""oha: JSON, CSV and text; times in seconds, in text in the unit behind each.

No output says whether ``--latency-correction`` was on. With it, times count from the moment a request was due, yet those
to the first byte still from the send: where the one exceed the other by far, and not because bodies took long, a schedule
is behind them. Requests still in flight at the deadline are dropped, and only counted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.io import text as jsontext
from latencykit.io.build import distinct, nanoseconds, without_negative
from latencykit.io.rows import Layout, read_table
from latencykit.io.source import Confidence, Format
from latencykit.io.text import command_of, plain_report, sections
from latencykit.io.tools.hey import Report, is_report, parse_report, rung_of_report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_HEADER = "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status"
_BEGIN = re.compile(r"^Summary:[ \t]*$", re.MULTILINE)
_RUN = Run(tool="oha", measure="service", unit="s", unit_from="format")
_SERVICE: dict[str, Any] = {"loop": "closed", "measure": "service", "corrected": "none"}
_SCHEDULE: dict[str, Any] = {"loop": "open", "measure": "response", "corrected": "schedule"}
_APART, _OFTEN, _EVEN = 1.5, 20, 0.9
_FROM_SCHEDULE = "times exceed those to the first byte, yet not by the time of a body: they count from the schedule"


def sniff_json(head: Head) -> Confidence:
    """Tell the keys."""
    keys = ("summary", "responseTimeHistogram", "latencyPercentiles")
    return Confidence.CERTAIN if jsontext.has_keys(head, *keys) else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read percentiles and buckets; of good replies alone, where ``--stats-success-breakdown`` tells them apart."""
    record = jsontext.load(source)
    summary = jsontext.entry(record, "summary", source)
    apart = isinstance(record.get("latencyPercentilesSuccessful"), dict)
    percentiles = jsontext.entry(
        record, "latencyPercentilesSuccessful" if apart else "latencyPercentiles", source
    )
    histogram = jsontext.entry(
        record, "responseTimeHistogramSuccessful" if apart else "responseTimeHistogram", source
    )
    marks = sorted((nanoseconds(float(mark), "s"), int(count)) for mark, count in histogram.items())
    statuses = {
        int(code): int(count)
        for code, count in (record.get("statusCodeDistribution") or {}).items()
    }
    good = sum(statuses.values()) - (
        sum(n for code, n in statuses.items() if code >= 400) if apart else 0
    )
    if sum(count for _, count in marks) != good:  # equal marks fall together in an object
        marks = []
    names = {"min": "fastest", "max": "slowest", "mean": "average"}
    report = Report(
        stats={
            name: nanoseconds(value, "s")
            for name, key in names.items()
            if (value := summary.get(key)) is not None
        },
        points=_points(percentiles),
        marks=tuple(mark for mark, _ in marks),
        buckets=tuple(count for _, count in marks),
        statuses=statuses,
        errors={
            str(text): int(count) for text, count in (record.get("errorDistribution") or {}).items()
        },
        duration=summary.get("total"),
        achieved=summary.get("requestsPerSec"),
        apart=apart,
    )
    return {"": rung_of_report(report, _scheduled(record, report), source, 0.0)}


def _points(percentiles: dict[str, Any]) -> dict[float, float]:
    """Percentile → ns; null stands for what a few requests do not tell."""
    return {
        float(key.removeprefix("p")): nanoseconds(float(value), "s")
        for key, value in percentiles.items()
        if isinstance(value, (int, float)) and re.fullmatch(r"p?\d+(?:\.\d+)?", key)
    }


def _scheduled(record: dict[str, Any], report: Report) -> Run:
    """The run, told by the times to the first byte beside the whole ones."""
    first = _points(record.get("firstBytePercentiles") or {})
    slowest = ((record.get("details") or {}).get("firstByte") or {}).get("slowest")
    top = report.stats.get("max")
    if not first or slowest is None or not top:
        return _RUN
    far = any(report.points.get(p, 0.0) > _APART * value for p, value in first.items() if value > 0)
    if not far:
        return _RUN.replace(**_SERVICE)
    if top <= _APART * nanoseconds(float(slowest), "s"):
        return _RUN.replace(**_SCHEDULE).with_notes(_FROM_SCHEDULE)
    return _RUN


def sniff_csv(head: Head) -> Confidence:
    """Tell the header."""
    return Confidence.CERTAIN if head.text.startswith(_HEADER) else Confidence.NO


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every reply; the moment it was due, where a schedule shows in the times."""
    names = ("request-start", "Response-delay", "request-duration", "status")
    largest = dict.fromkeys(names, 9e9)
    frame, notes = read_table(
        source, options, Layout(tuple(_HEADER.split(",")), names, skip=1, largest=largest)
    )
    start, delay, duration = (
        np.rint(frame[name].to_numpy(np.float64) * 1e9).astype(np.int64) for name in names[:3]
    )
    outcome = np.where(frame["status"].to_numpy(np.int64) >= 400, OUTCOMES.index("error"), 0)
    given: dict[str, Any] = {
        "start": start,
        "duration": duration,
        "outcome": outcome if outcome.any() else None,
    }
    rate = _rate_of_schedule(start - (duration - delay), duration, delay)
    run = _RUN.replace(**(_SERVICE if rate is None else {**_SCHEDULE, "rate": rate})).with_notes(
        *notes
    )
    if rate is not None:
        given |= {"intended": start - (duration - delay), "duration": delay}
        run = run.with_notes(_FROM_SCHEDULE)
    columns, left_out = without_negative(given, options)
    return {"": Samples(run=run.with_notes(*left_out), **columns)}


def _rate_of_schedule(
    due: NDArray[np.int64], duration: NDArray[np.int64], delay: NDArray[np.int64]
) -> float | None:
    """Requests a second, where they were due at even steps and some were late; None where that does not show."""
    if due.size < _OFTEN or not (duration > _APART * delay).any():
        return None
    steps = np.diff(np.sort(due)).astype(np.float64)
    step = float(np.median(steps))
    even = np.abs(steps - step) <= 0.25 * step + 50_000
    return round(1e9 / step, 3) if step > 0 and even.mean() >= _EVEN else None


def sniff_text(head: Head) -> Confidence:
    """Tell the headings, and the success rate that hey does not print."""
    text = plain_report(head.text)
    found = "Success rate:" in text and any(
        is_report(text, name) for name in ("Response time distribution", "Latency distribution")
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every report."""
    found: dict[str, Data] = {}
    parts = sections(source, _BEGIN)
    for number, part in enumerate(parts, 1):
        command = command_of(part.text, "oha")
        run = _RUN.replace(command=command, unit_from="file")
        if command is not None:
            run = run.replace(**(_SCHEDULE if "--latency-correction" in command else _SERVICE))
        report = rung_of_report(parse_report(part), run, source, 0.0)
        found["" if len(parts) == 1 else distinct(f"run {number}", found)] = report
    return found


FORMATS = (
    Format(
        "oha-json", "oha (JSON)", "histogram", (".json",), sniff_json, read_json, unit="s",
        example="oha -z 30s -q 200 --latency-correction --no-tui --output-format json http://127.0.0.1:8080/ > oha.json",
    ),
    Format(
        "oha-csv", "oha (CSV)", "samples", (".csv",), sniff_csv, read_csv, unit="s",
        example="oha -z 30s -q 200 --latency-correction --no-tui --output-format csv http://127.0.0.1:8080/ > oha.csv",
    ),
    Format(
        "oha", "oha (text)", "histogram", (".txt",), sniff_text, read_text,
        example="oha -z 30s -q 200 --latency-correction --no-tui http://127.0.0.1:8080/ > oha.txt",
    ),
)  # fmt: skip
