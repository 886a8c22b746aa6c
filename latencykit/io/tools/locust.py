"""Locust: its CSV files, the JSON of ``--json``, and the tables that it prints. Times in ms.

Percentiles are of values rounded to two digits, failed requests among them. In the history of ``--csv-full-history``
percentiles are those of the last 10 seconds; the totals beside them are of the whole run, as are the percentiles of a
history without it.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    distinct,
    mixed_note,
    nanoseconds,
    nanoseconds_of,
    nothing_answered,
    several,
)
from latencykit.io.source import Confidence, Format
from latencykit.io.text import below, plain
from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_ROUNDED = "Locust rounds response times to two digits before it counts them"
_WINDOW = "percentiles of this history are those of the last 10 s; NAME_stats.csv and --json hold the whole run's distribution"
_AGGREGATES = ("Aggregated", "Total")
_NAMES = {
    "# requests": "request count", "# failures": "failure count", "requests failed/s": "failures/s",
    "total request count": "request count", "total failure count": "failure count",
    "total median response time": "median response time", "total average response time": "average response time",
    "total min response time": "min response time", "total max response time": "max response time", "method": "type",
}  # fmt: skip
_COUNTS = re.compile(
    r"^(.{0,400}?)\s+(\d{1,15})\s+(\d{1,15})\([\d.]+%\)\s+\|?\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\|?\s*([\d.]+)\s+([\d.]+)\s*$"
)
_RULE = re.compile(r"^[-|\s]*$")
_POINTS = re.compile(r"^(.{0,400}?)((?:\s+(?:\d+|N/A)){3,})\s*$")


def _heading(line: str) -> list[str]:
    """Names of columns as this version of Locust has them."""
    cells = next(csv.reader([line]), [])
    return [_NAMES.get(cell.strip().lower(), cell.strip().lower()) for cell in cells]


def _first_line(head: Head) -> list[str]:
    return _heading(head.lines[0]) if head.lines and len(head.lines[0]) < 5000 else []


def sniff_stats(head: Head) -> Confidence:
    """Tell the heading of the closing table."""
    names = _first_line(head)
    found = (
        names[:2] == ["type", "name"] and "request count" in names and "max response time" in names
    )
    return Confidence.CERTAIN if found else Confidence.NO


def sniff_history(head: Head) -> Confidence:
    """Tell the heading of the history."""
    names = _first_line(head)
    return (
        Confidence.CERTAIN
        if names[:2] == ["timestamp", "user count"] and "request count" in names
        else Confidence.NO
    )


def sniff_failures(head: Head) -> Confidence:
    """Tell the heading of the list of failures, or of exceptions."""
    names = _first_line(head)
    failures = names[:4] == ["type", "name", "error", "occurrences"]
    return (
        Confidence.CERTAIN
        if failures or names[:3] == ["count", "message", "traceback"]
        else Confidence.NO
    )


def sniff_json(head: Head) -> Confidence:
    """Tell the keys of an entry."""
    text = head.text
    return (
        Confidence.CERTAIN
        if all(f'"{key}"' in text for key in ("num_none_requests", "response_times"))
        else Confidence.NO
    )


def sniff_text(head: Head) -> Confidence:
    """Tell the heading of the table of counts, where no JSON follows."""
    if sniff_json(head) is Confidence.CERTAIN:
        return Confidence.NO
    found = re.search(r"^(?:Type\s+)?Name\s+# reqs\s+# fails", plain(head.text), re.MULTILINE)
    return Confidence.CERTAIN if found else Confidence.NO


def _rows(source: Source, options: ReadOptions, notes: list[str]) -> Iterator[dict[str, str]]:
    """Rows of a CSV by the names of their columns."""
    text = source.text()
    reader = csv.reader(io.StringIO(text, newline=""))
    names = [_NAMES.get(cell.strip().lower(), cell.strip().lower()) for cell in next(reader, [])]
    for row in reader:
        if not row:
            continue
        cells = dict(zip(names, row, strict=False))
        if len(row) == len(names) and _is_whole(cells):
            yield cells
        elif not text.endswith("\n") and reader.line_num >= text.count("\n"):
            notes.append("the last line is cut; it was left out")
        else:
            seen = f"{printable(','.join(row))!r}"
            options.reject(
                source.corrupt(
                    reader.line_num, seen, f"{len(names)} fields with numbers", "--lenient skips it"
                )
            )


def _is_whole(cells: Mapping[str, str]) -> bool:
    """Whether the numbers of a row are there and make sense."""
    total, failed, top = (
        _number(cells.get(name, ""))
        for name in ("request count", "failure count", "max response time")
    )
    if total is None or top is None or total < (failed or 0):
        return False
    return all(
        _number(cell) is not None or cell == "N/A" for name, cell in cells.items() if "%" in name
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e12 else None


def read_stats(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the aggregate, then one series an entry."""
    notes = list(_failures_beside(source))
    rows = {_name(row): row for row in _rows(source, options, notes)}
    return _aggregate_first(
        {name: _data(row, Run(notes=tuple(notes))) for name, row in rows.items()}, source
    )


def read_history(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the totals that stand in the last row of each entry."""
    notes: list[str] = []
    rows = list(_rows(source, options, notes))
    last = {_name(row): row for row in rows}
    times = [value for row in rows if (value := _number(row.get("timestamp", ""))) is not None]
    users = max((int(_number(row.get("user count", "")) or 0) for row in rows), default=0)
    span = times[-1] - times[0] if times else 0.0
    run = Run(
        start=times[0] if times else None,
        duration=span or None,
        connections=users or None,
        notes=tuple(notes),
    )
    if len(last) > 1:
        run = run.with_notes(_WINDOW)
        last = {name: {k: v for k, v in row.items() if "%" not in k} for name, row in last.items()}
    found = {name: _data(row, run) for name, row in last.items()}
    return _aggregate_first(
        {name: data.with_run(achieved=None) for name, data in found.items()}, source
    )


def _name(row: Mapping[str, str]) -> str:
    if "name" not in row:
        raise InvalidArgumentError("the table has no column Name")
    kind, name = row.get("type", "").strip(), row["name"].strip()
    return name if kind in ("", "None") else f"{kind} {name}"


def _data(row: Mapping[str, str], run: Run) -> Data:
    """One row as a histogram of its percentiles, or a summary where they are of a window."""
    value = {name: number for name, text in row.items() if (number := _number(text)) is not None}
    total, failed = int(value["request count"]), int(value.get("failure count", 0))
    points = {
        float(name.rstrip("%")): nanoseconds(number, "ms")
        for name, number in value.items()
        if re.fullmatch(r"[\d.]+%", name)
    }
    stats = {
        kind: nanoseconds(value[name], "ms")
        for kind, name in (
            ("mean", "average response time"),
            ("min", "min response time"),
            ("max", "max response time"),
        )
        if name in value
    }
    if not points and "median response time" in value:
        points[50.0] = nanoseconds(value["median response time"], "ms")
    return _shaped(total, failed, points, stats, value.get("requests/s"), run)


def _shaped(
    total: int,
    failed: int,
    points: dict[float, float],
    stats: dict[str, float],
    rate: float | None,
    run: Run,
) -> Data:
    known = run.replace(
        tool="Locust", loop="closed", measure="service", corrected="none", unit="ms", unit_from="format", failed=failed,
        achieved=rate, duration=run.duration or (round(total / rate, 3) if rate else None),
    ).with_notes(_ROUNDED, *mixed_note(failed))  # fmt: skip
    good = max(total - failed, 0)
    top = stats.get("max", np.inf)  # exact, where percentiles are rounded
    held = {
        p: top if np.isfinite(top) and p * good > 100 * (good - 1) else min(v, top)
        for p, v in points.items()
    }
    return data_from_points(held, good, stats if total else {}, known)


def _aggregate_first(found: Mapping[str, Data], source: Source) -> dict[str, Data]:
    """Return the series that hold a good reply, the sum of all first."""
    held = [name for name, data in found.items() if getattr(data, "count", None)]
    if not held:
        raise nothing_answered(
            source,
            max((data.run for data in found.values()), key=lambda run: run.failed, default=Run()),
        )
    order = sorted(held, key=lambda name: name not in _AGGREGATES)
    return {
        name: found[name].with_run(aggregate=name in _AGGREGATES and len(found) > 1)
        for name in order
    }


def _failures_beside(source: Source) -> Iterator[str]:
    """What failed, from the list beside the table."""
    beside = source.path.with_name(source.path.name.replace("_stats.csv", "_failures.csv"))
    if source.shown == "-" or beside == source.path or not beside.is_file():
        return
    with beside.open(encoding="utf-8", errors="replace", newline="") as stream:
        for row in list(csv.reader(stream))[1:6]:
            if len(row) >= 4 and row[3].isdigit():
                yield f"{several(int(row[3]), 'request')} failed: {printable(' '.join(row[:3]).strip(), 120)}"


def read_failures(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Refuse: a list of failures holds no latency."""
    raise source.corrupt(
        None,
        "this is Locust's list of failures, without latencies",
        "NAME_stats.csv",
        "it lies beside this file",
    )


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the counts of every entry, and their sum."""
    text = source.text()
    begin = re.search(r"^\[\s*\{", text, re.MULTILINE)  # lines of the log begin with a bracket, too
    entries = jsontext.parse(text, source, begin.start() if begin else 0, whole=False)
    found: dict[str, Data] = {}
    for number, entry in enumerate(entries, 1):
        try:
            name = _name({"type": str(entry.get("method") or ""), "name": str(entry["name"])})
            if entry["num_requests"]:
                found[distinct(name, found)] = _counted(entry)
        except (AttributeError, KeyError, TypeError, ValueError, FloatingPointError) as error:
            seen = (
                f"entry {number} is corrupt ({type(error).__name__}: {printable(str(error), 60)})"
            )
            raise source.corrupt(None, seen, "the numbers of a request", "run it again") from None
    parts = [data for data in found.values() if isinstance(data, Histogram)]
    if len(parts) < 2:
        return found
    total = sum(parts[1:], parts[0])
    extremes = {"min": min(part.min for part in parts), "max": max(part.max for part in parts)}
    mean = sum(part.mean * part.count for part in parts) / max(sum(part.count for part in parts), 1)
    whole = Histogram(
        total.buckets,
        total.index,
        total.counts,
        total.unit,
        total.run,
        extremes | {"mean": round(mean, 3)},
    )
    notes = dict.fromkeys(note for part in parts for note in part.run.notes)
    rate = sum(part.run.achieved or 0 for part in parts) or None
    return {
        "Aggregated": whole.with_run(aggregate=True, unit="ms", achieved=rate, notes=tuple(notes))
    } | found


def _counted(entry: Mapping[str, Any]) -> Histogram:
    """Counts of rounded values; failed requests are among them."""
    value = np.array(sorted(float(key) for key in entry["response_times"]))
    counts = [
        int(entry["response_times"][f"{v:g}" if f"{v:g}" in entry["response_times"] else str(v)])
        for v in value.tolist()
    ]
    half = np.where(value < 100, 0.5, 0.5 * 10.0 ** (np.floor(np.log10(np.maximum(value, 1))) - 1))
    total, failed = int(entry["num_requests"]), int(entry["num_failures"])
    span = float(entry.get("last_request_timestamp") or 0) - float(entry.get("start_time") or 0)
    run = Run(
        tool="Locust", loop="closed", measure="service", corrected="none", unit="ms", unit_from="format", failed=failed,
        start=entry.get("start_time"), duration=span if span > 0 else None, achieved=total / span if span > 0 else None,
        notes=(_ROUNDED, *mixed_note(failed)),
    )  # fmt: skip
    reported_stats = {
        name: nanoseconds(entry[f"{name}_response_time"], "ms") for name in ("min", "max")
    }
    reported_stats["mean"] = nanoseconds(entry["total_response_time"] / total, "ms")
    return Histogram.from_buckets(
        nanoseconds_of(np.maximum(value - half, 0), "ms"),
        nanoseconds_of(value, "ms"),
        counts,
        run=run,
        reported_stats=reported_stats,
    )


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the last table of counts, and the percentiles below it."""
    text = plain(source.text())
    for title, shape in (
        (r"(?:Type\s+)?Name\s+# reqs\s+# fails", _COUNTS),
        (r"(?:Type\s+)?Name\s.*%", _POINTS),
    ):
        begins = [one[0] for one in re.finditer(rf"^{title}.*$", text, re.MULTILINE)]
        for number, line in below(text, begins[-1]) if begins else ():
            if not _RULE.match(line) and shape.match(line) is None:
                raise source.corrupt(
                    number,
                    f"{printable(line.strip())!r}",
                    "a row of Locust's table",
                    "run it again",
                )
    counts: dict[str, tuple[str, ...]] = {}
    points: dict[str, dict[float, float]] = {}
    columns: list[float] = []
    for line in text.split("\n"):
        heading = re.match(
            r"^(?:Type\s+)?Name\s+(?:# reqs\s+)?((?:[\d.]+%\s+)+)(?:# reqs)?\s*$", line
        )
        if heading:
            columns = [float(cell.rstrip("%")) for cell in heading[1].split()]
        elif row := _COUNTS.match(line):
            counts[" ".join(row[1].split())] = row.groups()
        elif columns and (row := _POINTS.match(line)) and len(row[2].split()) == len(columns) + 1:
            cells = zip(columns, row[2].split(), strict=False)
            points[" ".join(row[1].split())] = {
                p: nanoseconds(float(cell), "ms") for p, cell in cells if cell != "N/A"
            }
    found: dict[str, Data] = {}
    for name, (_, total, failed, mean, low, high, median, rate, _) in counts.items():
        if int(total):
            stats = {
                k: nanoseconds(float(v), "ms")
                for k, v in (("mean", mean), ("min", low), ("max", high))
            }
            held = points.get(name) or {50.0: nanoseconds(float(median), "ms")}
            found[name] = _shaped(int(total), int(failed), held, stats, float(rate), Run())
    return _aggregate_first(found, source)


FORMATS = (
    Format(
        "locust-csv", "Locust (NAME_stats.csv)", "histogram", (".csv",), sniff_stats, read_stats, unit="ms",
        example="locust --headless --csv NAME   # writes NAME_stats.csv",
    ),
    Format(
        "locust-history", "Locust (NAME_stats_history.csv)", "histogram", (".csv",), sniff_history, read_history, unit="ms",
        example="locust --headless --csv NAME   # writes NAME_stats_history.csv",
    ),
    Format(
        "locust-failures", "Locust (NAME_failures.csv: no latencies)", "summary", (".csv",), sniff_failures, read_failures,
        unit="ms", example="locust --headless --csv NAME   # writes NAME_failures.csv",
    ),
    Format(
        "locust-json", "Locust (JSON)", "histogram", (".json", ".txt"), sniff_json, read_json, unit="ms",
        example="locust --headless --json > out.json",
    ),
    Format(
        "locust", "Locust (text)", "histogram", (".txt",), sniff_text, read_text, unit="ms",
        example="locust --headless --only-summary 2> out.txt",
    ),
)  # fmt: skip
