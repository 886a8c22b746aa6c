"""ghz: its JSON and CSV, which contain every call, and its text.

A detail's timestamp is the end of the call. Text, histogram and percentiles are of the calls that
were answered well (of all with ``--count-errors``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._text import printable
from latencykit.core.columns import coded
from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES
from latencykit.errors import InvalidArgumentError
from latencykit.io import build, json_text
from latencykit.io.rows import line_chunks, unmatched_lines
from latencykit.io.text_reports import below, has_json_keys, has_match, text_of_run
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from latencykit.io.source import Data, ReadOptions, Source


_KINDS = {"ok": "ok", "": "ok", "deadlineexceeded": "timeout", "canceled": "unfinished"}
_POINT = re.compile(r"^[ \t]*([\d.]+) ?% in ([\d.]+ \S+)", re.MULTILINE)
_MARK = re.compile(r"^[ \t]*([\d.]+)\s+\[(\d+)\]\s*\|", re.MULTILINE)
_ROW = re.compile(rb"^(-?\d+(?:\.\d+)?),([A-Za-z]{1,30}),", re.MULTILINE)
_STATUS = re.compile(r"^[ \t]*\[([A-Za-z]+)\]\s+(\d+) responses?", re.MULTILINE)
_FACT = re.compile(
    r"^[ \t]*(Count|Total|Slowest|Fastest|Average|Requests/sec):[ \t]++(\S++(?:[ \t]++\S++)*+)",
    re.MULTILINE,
)
_BLOCKS = {
    "Response time histogram:": _MARK,
    "Latency distribution:": _POINT,
    "Status code": _STATUS,
}
_FIRST = "the distribution is of {:,} of {:,} calls: ghz keeps the details of a million"
_HINT = "ghz -O json and -O csv contain every call, and so the full distribution"


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every call; without them, the percentiles and the histogram."""
    record = json_text.load(source)
    run = _run(record)
    if record.get("details"):
        details = record["details"]
        try:
            duration = np.array([row["latency"] for row in details], np.int64)
            end = build.iso_nanoseconds([row["timestamp"] for row in details])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            seen = f"the details cannot be read ({printable(str(error), 80)})"
            raise source.corrupt(None, seen, "timestamp and latency of each call") from None
        words = [
            str(row.get("status") or "") or ("error" if str(row.get("error") or "") else "")
            for row in details
        ]
        given: dict[str, object] = {
            "duration": duration, "start": end - duration, "outcome": _outcomes(words),
        }  # fmt: skip
        if options.columns:
            given["columns"] = {"status": [str(row.get("status") or "") for row in details]}
        start = float((end - duration).min()) / 1e9
        series = build.samples_of(given, run.replace(start=start), options)
        if int(record.get("count") or 0) <= len(details):
            return series
        notes = series[""].run.with_notes(_FIRST.format(len(details), int(record["count"]))).notes
        return {"": series[""].with_run(notes=notes)}
    codes = record.get("statusCodeDistribution") or {}
    status = {str(name): int(count) for name, count in codes.items()}
    points = {
        float(row["percentage"]): float(row["latency"])
        for row in record.get("latencyDistribution") or ()
        if row["latency"] > 0
    }
    marks = [
        (build.nanoseconds(row["mark"], "s"), int(row["count"]))
        for row in record.get("histogram") or ()
    ]
    keys = (("min", "fastest"), ("max", "slowest"), ("mean", "average"))
    stats = {kind: float(record[key]) for kind, key in keys if record.get(key)}
    return {"": _shaped(points, marks, stats, status, run)}


def _run(record: Mapping[str, Any]) -> Run:
    """The run as the options of the report describe it."""
    settings = record.get("options") or {}
    rate, clients = float(settings.get("rps") or 0), int(settings.get("concurrency") or 0)
    scheduled = str(settings.get("load-schedule") or "const") != "const"
    run = Run(
        tool="ghz", loop="paced" if rate or scheduled else "closed", measure="service",
        corrected="none", unit="ns", unit_from="format",
        rate=rate if rate and not scheduled else None, connections=clients or None,
        achieved=record.get("rps") or None, timeout=settings.get("timeout") or None,
        duration=record["total"] / 1e9 if record.get("total") else None,
    )  # fmt: skip
    if settings.get("async"):
        return run.replace(loop="open", measure="response", corrected="schedule")
    if run.rate and clients:
        return run.replace(expected_interval=round(clients / rate * 1e9, 3))
    return run


def _outcomes(words: Sequence[str] | Sequence[bytes]) -> NDArray[np.int8]:
    codes, names = coded(words)
    kinds = [OUTCOMES.index(_KINDS.get(name.lower(), "error")) for name in names]
    return np.asarray(np.array(kinds, np.int8)[codes])


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every call; the file does not say when each was sent. An error's text is not quoted."""
    values: list[bytes] = []
    statuses: list[bytes] = []
    notes: list[str] = []
    for first, chunk in line_chunks(source):
        rows = _ROW.findall(chunk)
        values += [row[0] for row in rows]
        statuses += [row[1] for row in rows]
        if len(rows) < len(chunk.splitlines()):
            for number, line in unmatched_lines(chunk, first, _ROW, notes):
                if not line.startswith("duration (ms)"):
                    options.refuse(source, number, repr(line), "duration,status,error")
    if not values:
        return {}
    duration = build.nanoseconds_of(np.array([*map(float, values)]), "ms")
    outcome = _outcomes(statuses)
    run = Run(tool="ghz", measure="service", unit="ms", notes=tuple(notes))
    return build.samples_of({"duration": duration, "outcome": outcome}, run, options)


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the summary of a run, its histogram (ms) and the percentiles."""
    text = text_of_run(source, r"^[ \t]*Summary:[ \t]*$", r"^[ \t]*Count:\s+\d")
    facts = dict(_FACT.findall(text))
    names = {"Total": "total", "Slowest": "max", "Fastest": "min", "Average": "mean"}
    try:
        times = {
            kind: round(parse_duration(facts[name]), 3)
            for name, kind in names.items()
            if name in facts
        }
        points = {float(p): round(parse_duration(value), 3) for p, value in _POINT.findall(text)}
        count = int(facts["Count"])
    except (InvalidArgumentError, ValueError, KeyError) as error:
        seen = f"the summary cannot be read ({error})"
        raise source.corrupt(None, seen, "ghz's closing text", "did the run end?") from None
    for heading, pattern in _BLOCKS.items():
        for number, line in below(text, heading):
            if pattern.match(line) is None:
                seen = f"{printable(line.strip())!r} below {heading!r}"
                raise source.corrupt(
                    number, seen, "the lines that ghz prints there", "run it again"
                )
    status = {name: int(number) for name, number in _STATUS.findall(text)} or {"OK": count}
    marks = [(build.nanoseconds(mark, "ms"), int(number)) for mark, number in _MARK.findall(text)]
    rate = facts.get("Requests/sec", "")
    seconds = times.pop("total", None)
    run = Run(
        tool="ghz", measure="service", unit="ns", notes=(_HINT,),
        achieved=float(rate) if re.fullmatch(r"[\d.]+", rate) else None,
        duration=None if seconds is None else seconds / 1e9,
    )  # fmt: skip
    points = {p: value for p, value in points.items() if 0 < p < 100}
    stats = {kind: value for kind, value in times.items() if value}
    return {"": _shaped(points, marks, stats, status, run)}


def _shaped(
    points: dict[float, float],
    marks: Sequence[tuple[float, int]],
    stats: dict[str, float],
    status: Mapping[str, int],
    run: Run,
) -> Data:
    """Percentiles and histogram together; failed calls, counted apart, are part of the mean."""
    good, late, canceled = (status.get(name, 0) for name in ("OK", "DeadlineExceeded", "Canceled"))
    failed = sum(status.values()) - good - late - canceled
    run = run.replace(failed=failed, timeouts=late, unfinished=canceled)
    if sum(status.values()) != good:
        stats = {kind: value for kind, value in stats.items() if kind != "mean"}
    counted = sum(number for _, number in marks)
    if counted == 0 and not good:
        return build.unanswered(run)
    if 0 < counted < good:
        run = run.with_notes(_FIRST.format(counted, good))
    if counted < good or not counted:
        return build.data_from_points(points, good, stats, run)
    if counted > status.get("OK", counted):
        run = run.with_notes("--count-errors: times of failed calls are among the values")
    top = max(stats.get("max", 0.0), marks[-1][0])
    edges = np.maximum.accumulate([*(mark for mark, _ in marks[:-1]), top])
    return build.histogram_of_both(
        points, edges.tolist(), [number for _, number in marks], stats, run
    )


FORMATS = {
    "ghz-json": (
        has_json_keys(
            ("endReason", "options", "count", "average"),
            ("latencyDistribution", "statusCodeDistribution", "fastest"),
        ),
        read_json,
    ),
    "ghz-csv": (has_match(r"\A\s*duration \(ms\),status,error\s*$"), read_csv),
    "ghz": (
        has_match(r"^[ \t]*Requests/sec:\s", r"^[ \t]*Count:\s+\d", r"^[ \t]*Fastest:\s"),
        read_text,
    ),
}
