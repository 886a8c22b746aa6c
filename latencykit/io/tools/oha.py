"""oha: JSON, CSV and text; times in seconds, in text in the unit behind each.

No output says whether ``--latency-correction`` was on. With it, times count from the moment a
request was due, yet those to the first byte still from the send: where the former exceed the latter
by far, and not because bodies took long, the times count from a schedule. Requests still in flight
at the deadline are dropped, and only counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import (
    in_nanoseconds,
    nanoseconds,
    outcome_codes,
    percentiles_in,
    samples_of,
)
from latencykit.io.rows import RowLayout, read_table
from latencykit.io.sniffing import certain, has_json_keys, starts_with
from latencykit.io.source import Format
from latencykit.io.text_reports import command_of, plain, section_runs
from latencykit.io.tools.hey import BEGIN, HeyReport, data_from_report, is_report, parse_report

if TYPE_CHECKING:
    from latencykit._typing import JSONObject
    from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source


_HEADER = "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status"
_RUN = Run(tool="oha", measure="service", unit="s", unit_from="format")
_SERVICE: dict[str, Any] = {"loop": "closed", "measure": "service", "corrected": "none"}
_SCHEDULE: dict[str, Any] = {"loop": "open", "measure": "response", "corrected": "schedule"}
_APART, _OFTEN, _EVEN = 1.5, 20, 0.9
_FROM_SCHEDULE = (
    "times exceed those to the first byte, yet not by the time of a body: "
    "they count from the schedule"
)


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read percentiles and buckets, of good replies alone with ``--stats-success-breakdown``."""
    record = json_text.load(source)
    summary = json_text.entry(record, "summary", source)
    apart = isinstance(record.get("latencyPercentilesSuccessful"), dict)
    suffix = "Successful" if apart else ""
    percentiles = json_text.entry(record, f"latencyPercentiles{suffix}", source)
    histogram = json_text.entry(record, f"responseTimeHistogram{suffix}", source)
    marks = sorted((nanoseconds(mark, "s"), int(count)) for mark, count in histogram.items())
    codes, errors = (
        record.get(key) or {} for key in ("statusCodeDistribution", "errorDistribution")
    )
    statuses = {int(code): int(count) for code, count in codes.items()}
    good = sum(count for code, count in statuses.items() if code < 400 or not apart)
    if sum(count for _, count in marks) != good:  # equal marks fall together in an object
        marks = []
    names = {"min": "fastest", "max": "slowest", "mean": "average"}
    report = HeyReport(
        stats=in_nanoseconds({name: summary.get(key) for name, key in names.items()}, "s"),
        points=_points(percentiles),
        marks=tuple(mark for mark, _ in marks),
        buckets=tuple(count for _, count in marks),
        statuses=statuses,
        errors={str(text): int(count) for text, count in errors.items()},
        duration=summary.get("total"),
        achieved=summary.get("requestsPerSec"),
        apart=apart,
    )
    return {"": data_from_report(report, _run_of(record, report), 0.0)}


def _points(percentiles: JSONObject) -> dict[float, float]:
    """Percentile → ns; null stands for a percentile that too few requests leave unknown."""
    cells = {
        f"p{key.removeprefix('p')}": value
        for key, value in percentiles.items()
        if isinstance(value, (int, float))
    }
    return in_nanoseconds(percentiles_in(cells), "s")


def _run_of(record: JSONObject, report: HeyReport) -> Run:
    """The run, by a comparison of the times to the first byte with the total ones."""
    first = _points(record.get("firstBytePercentiles") or {})
    slowest = ((record.get("details") or {}).get("firstByte") or {}).get("slowest")
    top = report.stats.get("max")
    if not first or slowest is None or not top:
        return _RUN
    if not any(
        report.points.get(p, 0.0) > _APART * value for p, value in first.items() if value > 0
    ):
        return _RUN.replace(**_SERVICE)
    if top <= _APART * nanoseconds(slowest, "s"):
        return _RUN.replace(**_SCHEDULE).with_notes(_FROM_SCHEDULE)
    return _RUN


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every reply; the moment it was due, where a schedule shows in the times."""
    names = ("request-start", "Response-delay", "request-duration", "status")
    largest = dict.fromkeys(names, 9e9)
    layout = RowLayout(tuple(_HEADER.split(",")), names, skip=1, largest=largest)
    frame, notes = read_table(source, options, layout)
    start, delay, duration = (
        np.rint(frame[name].to_numpy(np.float64) * 1e9).astype(np.int64) for name in names[:3]
    )
    given: dict[str, object] = {
        "start": start,
        "duration": duration,
        "outcome": outcome_codes(error=frame["status"].to_numpy(np.int64) >= 400),
    }
    due = start - (duration - delay)
    # Requests per second, where they were due at even steps and some were late; else None.
    if due.size < _OFTEN or not (duration > _APART * delay).any():
        rate = None
    else:
        steps = np.diff(np.sort(due)).astype(np.float64)
        step = float(np.median(steps))
        even = np.abs(steps - step) <= 0.25 * step + 50_000
        rate = round(1e9 / step, 3) if step > 0 and even.mean() >= _EVEN else None
    if rate is None:
        run = _RUN.replace(**_SERVICE, notes=notes)
    else:
        given |= {"intended": due, "duration": delay}
        run = _RUN.replace(**_SCHEDULE, rate=rate, notes=notes).with_notes(_FROM_SCHEDULE)
    return samples_of(given, run, options)


def sniff_text(head: Head) -> Confidence:
    """Recognise the headings, and the success rate that hey does not print."""
    text = plain(head.text)
    headings = ("Response time distribution", "Latency distribution")
    return certain("Success rate:" in text and any(is_report(text, name) for name in headings))


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every report."""
    series: dict[str, Data] = {}
    for name, part in section_runs(source, BEGIN).items():
        command = command_of(part.text, "oha")
        run = _RUN.replace(command=command, unit_from="file")
        if command is not None:
            run = run.replace(**(_SCHEDULE if "--latency-correction" in command else _SERVICE))
        series[name] = data_from_report(parse_report(part), run, 0.0)
    return series


_COMMAND = "oha -z 30s -q 200 --latency-correction --no-tui"
FORMATS = (
    Format(
        "oha-json", "oha (JSON)", "histogram", (".json",),
        has_json_keys(("summary", "responseTimeHistogram", "latencyPercentiles")), read_json,
        unit="s", example=f"{_COMMAND} --output-format json http://127.0.0.1:8080/ > oha.json",
    ),
    Format(
        "oha-csv", "oha (CSV)", "samples", (".csv",), starts_with(_HEADER), read_csv, unit="s",
        example=f"{_COMMAND} --output-format csv http://127.0.0.1:8080/ > oha.csv",
    ),
    Format(
        "oha", "oha (text)", "histogram", (".txt",), sniff_text, read_text,
        example=f"{_COMMAND} http://127.0.0.1:8080/ > oha.txt",
    ),
)  # fmt: skip
