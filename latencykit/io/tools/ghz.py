"""ghz: its JSON and CSV, which hold every call, and its text. A detail's timestamp is the end of the call.

Text, histogram and percentiles are of the calls that were answered well (of all with ``--count-errors``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.errors import InvalidArgumentError
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    histogram_of_both,
    nanoseconds,
    nanoseconds_of,
    nothing_answered,
    without_negative,
)
from latencykit.io.rows import line_chunks
from latencykit.io.source import Confidence, Format
from latencykit.io.text import below, iso_nanoseconds, plain
from latencykit.units import parse_duration, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_KINDS = {"ok": "ok", "": "ok", "deadlineexceeded": "timeout", "canceled": "unfinished"}
_POINT = re.compile(r"^[ \t]+([\d.]+) ?% in ([\d.]+ \S+)", re.MULTILINE)
_MARK = re.compile(r"^[ \t]+([\d.]+)\s+\[(\d+)\]\s*\|", re.MULTILINE)
_ROW = re.compile(rb"^(-?\d+(?:\.\d+)?),([A-Za-z]{1,30}),", re.MULTILINE)
_STATUS = re.compile(r"^[ \t]+\[([A-Za-z]+)\]\s+(\d+) responses?", re.MULTILINE)
_HINT = "ghz -O json and -O csv hold every call, and so the whole distribution"


def sniff_json(head: Head) -> Confidence:
    """Tell the keys of the report."""
    found = jsontext.has_keys(head, "endReason", "options", "count", "average")
    found = found or jsontext.has_keys(
        head, "latencyDistribution", "statusCodeDistribution", "fastest"
    )
    return Confidence.CERTAIN if found else Confidence.NO


def sniff_csv(head: Head) -> Confidence:
    """Tell the heading, which follows a blank line."""
    first = next((line for line in head.lines if line.strip()), "")
    return Confidence.CERTAIN if first.strip() == "duration (ms),status,error" else Confidence.NO


def sniff_text(head: Head) -> Confidence:
    """Tell the summary and its list of status codes."""
    found = re.search(r"^[ \t]+Requests/sec:\t", head.text, re.MULTILINE) and re.search(
        r"^[ \t]+Count:\t", head.text, re.MULTILINE
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every call; without them, the percentiles and the histogram."""
    record = jsontext.load(source)
    run = _run(record)
    if record.get("details"):
        return {"": _details(record["details"], run, source, options)}
    status = {
        str(name): int(count)
        for name, count in (record.get("statusCodeDistribution") or {}).items()
    }
    points = {
        float(p["percentage"]): float(p["latency"])
        for p in record.get("latencyDistribution") or ()
        if p["latency"] > 0
    }
    marks = [
        (round(float(step["mark"]) * 1e9, 3), int(step["count"]))
        for step in record.get("histogram") or ()
    ]
    stats = {
        kind: float(record[name])
        for kind, name in (("min", "fastest"), ("max", "slowest"))
        if record.get(name)
    }
    if record.get("average") and sum(status.values()) == status.get("OK", 0):
        stats["mean"] = float(record["average"])
    return {"": _shaped(points, marks, stats, status, run, source)}


def _run(record: Mapping[str, Any]) -> Run:
    """What the options of the report say."""
    asked = record.get("options") or {}
    rate, clients = float(asked.get("rps") or 0), int(asked.get("concurrency") or 0)
    scheduled = str(asked.get("load-schedule") or "const") != "const"
    known = Run(
        tool="ghz", loop="paced" if rate or scheduled else "closed", measure="service", corrected="none", unit="ns",
        unit_from="format", rate=rate if rate and not scheduled else None, connections=clients or None,
        achieved=record.get("rps") or None, duration=record["total"] / 1e9 if record.get("total") else None,
        timeout=asked.get("timeout") or None,
    )  # fmt: skip
    if asked.get("async"):
        return known.replace(loop="open", measure="response", corrected="schedule")
    return (
        known.replace(expected_interval=round(clients / rate * 1e9, 3))
        if known.rate and clients
        else known
    )


def _details(
    details: Sequence[Mapping[str, Any]], run: Run, source: Source, options: ReadOptions
) -> Samples:
    """One row per call."""
    try:
        duration = np.array([one["latency"] for one in details], np.int64)
        end = iso_nanoseconds([one["timestamp"] for one in details])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise source.corrupt(
            None,
            f"the details cannot be read ({printable(str(error), 80)})",
            "timestamp and latency of each call",
            "",
        ) from None
    outcome = _outcomes(
        [str(one.get("status") or "") for one in details],
        [str(one.get("error") or "") for one in details],
    )
    columns, notes = without_negative(
        {"duration": duration, "start": end - duration, "outcome": outcome}, options
    )
    start = float(columns["start"].min()) / 1e9 if columns["start"].size else None
    return Samples(run=run.replace(start=start).with_notes(*notes), **columns)


def _outcomes(statuses: Sequence[str], errors: Sequence[str]) -> NDArray[np.int8]:
    """Outcome of each call: by its status, and where it has none by its error."""
    kinds = [
        status.lower() or ("error" if error else "")
        for status, error in zip(statuses, errors, strict=True)
    ]
    names, where = np.unique(np.array(kinds, dtype=str), return_inverse=True)
    codes = np.array([OUTCOMES.index(_KINDS.get(str(name), "error")) for name in names], np.int8)
    return np.asarray(codes[where.reshape(-1)] if names.size else np.zeros(0, np.int8))


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every call; the file does not say when each was sent. An error's text is not quoted, whatever is in it."""
    values: list[bytes] = []
    statuses: list[bytes] = []
    notes: list[str] = []
    for first, chunk in line_chunks(source):
        rows = _ROW.findall(chunk)
        values += [row[0] for row in rows]
        statuses += [row[1] for row in rows]
        if len(rows) < len(chunk.splitlines()):
            _others(first, chunk, source, options, notes)
    duration = nanoseconds_of(np.array(values, "S").astype(np.float64) if values else [], "ms")
    outcome = _outcomes([status.decode() for status in statuses], [""] * len(statuses))
    columns, left_out = without_negative({"duration": duration, "outcome": outcome}, options)
    run = Run(tool="ghz", measure="service", unit="ms", unit_from="file", notes=(*notes, *left_out))
    return {"": Samples(run=run, **columns)} if values else {}


def _others(
    first: int, chunk: bytes, source: Source, options: ReadOptions, notes: list[str]
) -> None:
    """Look at lines that are no rows: heading and blanks are well, a cut last one is a note, others are corruption."""
    for number, line in enumerate(chunk.split(b"\n"), first):
        if not line.strip() or line.startswith(b"duration (ms)") or _ROW.match(line):
            continue
        if number == first + chunk.count(b"\n"):
            notes.append("the last line is cut; it was left out")
            continue
        seen = f"{printable(line.decode('utf-8', 'replace').strip())!r}"
        options.reject(
            source.corrupt(number, seen, "duration,status,error", "--lenient skips the line")
        )


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the summary, the histogram (ms) and the percentiles."""
    text = plain(source.text())
    facts = dict(
        re.findall(
            r"^[ \t]+(Count|Total|Slowest|Fastest|Average|Requests/sec):\s+(.+?)\s*$",
            text,
            re.MULTILINE,
        )
    )
    try:
        reported_stats = {
            name: round(parse_duration(facts[name]), 3)
            for name in ("Total", "Slowest", "Fastest", "Average")
            if name in facts
        }
        points = {
            float(p): round(parse_duration(value), 3)
            for p, value in _POINT.findall(text)
            if 0 < float(p) < 100
        }
        count = int(facts["Count"])
    except (InvalidArgumentError, ValueError, KeyError) as error:
        raise source.corrupt(
            None, f"the summary cannot be read ({error})", "ghz's closing text", "did the run end?"
        ) from None
    for heading, row in (
        ("Response time histogram:", _MARK),
        ("Latency distribution:", _POINT),
        ("Status code", _STATUS),
    ):
        for number, line in below(text, heading):
            if row.match(line) is None:
                seen = f"{printable(line.strip())!r} below {heading!r}"
                raise source.corrupt(
                    number, seen, "the lines that ghz prints there", "run it again"
                )
    status = {name: int(number) for name, number in _STATUS.findall(text)} or {"OK": count}
    stats = {
        kind: reported_stats[name]
        for kind, name in (("min", "Fastest"), ("max", "Slowest"))
        if reported_stats.get(name)
    }
    if sum(status.values()) == status.get("OK", 0) and reported_stats.get("Average"):
        stats["mean"] = reported_stats["Average"]
    marks = [(nanoseconds(float(mark), "ms"), int(number)) for mark, number in _MARK.findall(text)]
    rate = re.fullmatch(r"[\d.]+", facts.get("Requests/sec", ""))
    run = Run(
        tool="ghz", measure="service", unit="ns", achieved=float(rate[0]) if rate else None,
        duration=reported_stats["Total"] / 1e9 if "Total" in reported_stats else None, notes=(_HINT,),
    )  # fmt: skip
    return {"": _shaped(points, marks, stats, status, run, source)}


def _shaped(
    points: dict[float, float], marks: Sequence[tuple[float, int]], stats: dict[str, float], status: Mapping[str, int], run: Run,
    source: Source,
) -> Data:  # fmt: skip
    """Percentiles and histogram together; calls that failed are counted apart."""
    late, cut = status.get("DeadlineExceeded", 0), status.get("Canceled", 0)
    failed = sum(status.values()) - status.get("OK", 0) - late - cut
    known = run.replace(failed=failed, timeouts=late, unfinished=cut)
    held = sum(number for _, number in marks)
    if held == 0 and not status.get("OK"):
        raise nothing_answered(source, known)
    if not held:
        return data_from_points(points, status.get("OK") or None, stats, known)
    if held > status.get("OK", held):
        known = known.with_notes("--count-errors: times of failed calls are among the values")
    top = max(stats.get("max", 0.0), marks[-1][0])
    edges = np.maximum.accumulate([*(mark for mark, _ in marks[:-1]), top])
    return histogram_of_both(points, edges.tolist(), [number for _, number in marks], stats, known)


FORMATS = (
    Format(
        "ghz-json", "ghz (JSON)", "samples", (".json",), sniff_json, read_json, unit="ns",
        example="ghz --insecure --call pkg.Service/Method -O json -o out.json HOST",
    ),
    Format("ghz-csv", "ghz (CSV)", "samples", (".csv",), sniff_csv, read_csv, unit="ms", example="ghz … -O csv -o out.csv HOST"),
    Format("ghz", "ghz (text)", "histogram", (".txt",), sniff_text, read_text, example="ghz … HOST > out.txt"),
)  # fmt: skip
