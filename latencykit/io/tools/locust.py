"""Locust: its CSV files, the JSON of ``--json``, and the tables that it prints. Times in ms.

Percentiles are of values rounded to two digits, and include failed requests. In the history of
``--csv-full-history`` percentiles are those of the last 10 seconds; the totals beside them are of
the whole run, as are the percentiles of a history without it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from latencykit._text import format_items, printable
from latencykit.core.histogram import Histogram
from latencykit.core.run import CLOSED, Run
from latencykit.errors import InvalidArgumentError
from latencykit.io import build, json_text
from latencykit.io.rows import line_refuser
from latencykit.io.source import Data, ReadOptions, Source
from latencykit.io.text_reports import below, has_match, plain, text_of_run

_ROUNDED = "Locust rounds response times to two digits before it counts them"
_WINDOW = (
    "percentiles of this history are those of the last 10 s; "
    "NAME_stats.csv and --json contain the whole run's distribution"
)
_AGGREGATES = ("Aggregated", "Total")
_NAMES = {
    "# requests": "request count", "# failures": "failure count",
    "requests failed/s": "failures/s", "total request count": "request count",
    "total failure count": "failure count", "total median response time": "median response time",
    "total average response time": "average response time",
    "total min response time": "min response time",
    "total max response time": "max response time", "method": "type",
}  # fmt: skip
_STATS = {"mean": "average response time", "min": "min response time", "max": "max response time"}
_RUN = Run(tool="Locust", **CLOSED, unit="ms", unit_from="format")
_COUNTS = re.compile(
    r"^(.{0,400}?)[ \t]{1,99}(\d{1,15})\s+(\d{1,15})\([\d.]+%\)\s++(?:\|\s*+)?(\d+)\s+(\d+)"
    r"\s+(\d+)\s++(?:\|\s*+)?(\d+)\s++(?:\|\s*+)?([\d.]+)(?:\s+([\d.]+))?\s*+$"
)
_JSON = '"num_none_requests"'
_COUNT_HEADING = r" ?(?:Type\s+)?Name\s+# reqs\s+# fails"
_RULE = re.compile(r"^[-|\s]*$")
_TYPE, _NAME = (r'"?(?:type|method)"?,', r'"?name"?,')
_REQUESTS = "(?:# requests|(?:total )?request count)"
_POINTS = re.compile(r"^(.{0,400}?)((?:\s{1,99}(?:\d{1,15}|N/A)){3,40}+)\s*+$")
_POINT_HEADING = re.compile(
    r"^ ?(?:Type\s+)?Name\s++(?:# reqs\s++)?((?:[\d.]++%(?:[ \t]++|$))++)(?:# reqs)?[ \t]*+$"
)


_number = partial(build.number_in, most=1e12)


def _rows(source: Source, options: ReadOptions, notes: list[str]) -> Iterator[dict[str, str]]:
    """Rows of a CSV by the names of their columns."""
    text = source.text()
    reader = csv.reader(io.StringIO(text, newline=""))
    cells_of_header = (cell.strip().lower() for cell in next(reader, []))
    names = [_NAMES.get(cell, cell) for cell in cells_of_header]  # as the current version's
    refuse = line_refuser(source, options, text, notes)
    for row in reader:
        if not row:
            continue
        cells = dict(zip(names, row, strict=False))
        if "100%" in cells:  # NAME_distribution.csv, before version 1.0, has no other maximum
            cells.setdefault("max response time", cells["100%"].replace("N/A", "0"))
        total, failed, top = (
            _number(cells.get(name, ""))
            for name in ("request count", "failure count", "max response time")
        )
        complete = (
            len(row) == len(names) and total is not None and top is not None
            and total >= (failed or 0)
            and all(
                _number(cell) is not None or cell == "N/A"
                for name, cell in cells.items() if "%" in name
            )
        )  # fmt: skip
        if complete:
            yield cells
        else:
            seen, expected = f"{printable(','.join(row))!r}", f"{len(names)} fields with numbers"
            refuse(reader.line_num, seen, expected)


def read_stats(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the aggregate, then one series per entry; the list of failures beside it gives notes."""
    notes: list[str] = []
    beside = source.path.with_name(source.path.name.replace("_stats.csv", "_failures.csv"))
    if source.shown != "-" and beside != source.path and beside.is_file():
        with beside.open(encoding="utf-8", errors="replace", newline="") as stream:
            failures = [row for row in list(csv.reader(stream))[1:6] if len(row) >= 4]
        for row in failures:
            if row[3].isdigit():
                reason = printable(" ".join(row[:3]).strip(), 120)
                notes.append(f"{format_items(int(row[3]), 'request')} failed: {reason}")
    rows = {_name(row): row for row in _rows(source, options, notes)}
    run = _RUN.replace(notes=tuple(notes))
    return _aggregate_first({name: _data(row, run) for name, row in rows.items()})


def read_history(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the totals in the last row of each entry."""
    notes: list[str] = []
    rows = list(_rows(source, options, notes))
    last = {_name(row): row for row in rows}
    times = [value for row in rows if (value := _number(row.get("timestamp", ""))) is not None]
    users = max((int(_number(row.get("user count", "")) or 0) for row in rows), default=0)
    run = _RUN.replace(
        start=times[0] if times else None,
        connections=users or None,
        notes=tuple(notes),
        duration=(times[-1] - times[0] or None) if times else None,
    )
    if len(last) > 1:
        run = run.with_notes(_WINDOW)
        last = {name: {k: v for k, v in row.items() if "%" not in k} for name, row in last.items()}
    series = {name: _data(row, run).with_run(achieved=None) for name, row in last.items()}
    return _aggregate_first(series)


def _name(row: Mapping[str, str]) -> str:
    if "name" not in row:
        raise InvalidArgumentError("the table has no column Name")
    kind, name = row.get("type", "").strip(), row["name"].strip()
    return name if kind in ("", "None") else f"{kind} {name}"


def _data(row: Mapping[str, str], run: Run) -> Data:
    """One row as the percentiles of its good requests, which those of all are taken for."""
    # The maximum is exact, where percentiles are rounded.
    value = {name: number for name, text in row.items() if (number := _number(text)) is not None}
    levels = [name for name in value if re.fullmatch(r"[\d.]+%", name)]
    cells = {float(name[:-1]): value[name] for name in levels}
    if value.get("median response time") and not any(cells.values()):
        cells = {}  # of a history in which nothing was answered for 10 s
    points = build.in_nanoseconds(cells or {50.0: value.get("median response time")}, "ms")
    stats = build.in_nanoseconds({kind: value.get(name) for kind, name in _STATS.items()}, "ms")
    total, failed = int(value["request count"]), int(value.get("failure count", 0))
    rate = value.get("requests/s") or None
    duration = run.duration or (round(total / rate, 3) if rate else None)
    run = run.replace(failed=failed, achieved=rate, duration=duration)
    run = run.with_notes(_ROUNDED, *build.mixed_note(failed))
    top = stats.get("max", np.inf)
    points = {
        p: top if np.isfinite(top) and p * total > 100 * (total - 1) else min(value, top)
        for p, value in points.items()
    }
    return build.data_from_points(points, max(total - failed, 0), stats if total else {}, run)


def _aggregate_first(series: Mapping[str, Data]) -> dict[str, Data]:
    """The series that hold a request, the sum of all first."""
    counts = {name: getattr(data, "count", None) for name, data in series.items()}
    if not any(counts.values()):
        runs = (data.run for data in series.values())
        return {"": build.unanswered(max(runs, key=lambda run: run.failed, default=Run()))}
    sent = [name for name, data in series.items() if counts[name] or data.run.failed]
    sent.sort(key=lambda name: name not in _AGGREGATES)
    several_names = len(series) > 1
    return {
        name: series[name].with_run(aggregate=name in _AGGREGATES and several_names)
        for name in sent
    }


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the counts of every entry, and their sum."""
    source.json = True  # whichever run of it is read
    # lines of the log begin with a bracket, too
    text = text_of_run(source, r"^\[\s*\{")
    begin = re.search(r"^\[\s*\{", text, re.MULTILINE)
    entries = json_text.parse(text, source, begin.start() if begin else 0, whole=False)
    series: dict[str, Histogram] = {}
    for entry in entries:
        name = _name({"type": str(entry.get("method") or ""), "name": str(entry["name"])})
        if not entry["num_requests"]:
            continue
        times = entry["response_times"]  # counts of rounded values; of failed requests, too
        value = np.array(sorted(float(key) for key in times))
        keys = [f"{v:g}" if f"{v:g}" in times else str(v) for v in value.tolist()]
        half = 0.5 * 10.0 ** (np.floor(np.log10(np.maximum(value, 1))) - 1)
        half = np.where(value < 100, 0.5, half)
        count, failed = int(entry["num_requests"]), int(entry["num_failures"])
        began = entry.get("start_time")
        span = float(entry.get("last_request_timestamp") or 0) - float(began or 0)
        run = _RUN.replace(
            failed=failed, start=began, duration=span if span > 0 else None,
            achieved=count / span if span > 0 else None,
            notes=(_ROUNDED, *build.mixed_note(failed)),
        )  # fmt: skip
        own = {key: entry[f"{key}_response_time"] for key in ("min", "max")}
        own["mean"] = entry["total_response_time"] / count
        low, high = (
            build.nanoseconds_of(edge, "ms") for edge in (np.maximum(value - half, 0), value)
        )
        counts = [int(times[key]) for key in keys]
        series[build.unique_name(name, series)] = Histogram.from_buckets(
            low, high, counts, run=run, reported_stats=build.in_nanoseconds(own, "ms")
        )
    parts = list(series.values())
    if len(parts) < 2:
        return dict(series)
    notes = tuple(dict.fromkeys(note for part in parts for note in part.run.notes))
    rate = sum(part.run.achieved or 0 for part in parts) or None
    everything = sum(parts[1:], parts[0]).with_run(
        aggregate=True, unit="ms", achieved=rate, notes=notes
    )
    return {"Aggregated": everything, **series}


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read a run's last table of counts, and the percentiles below it, which end the run."""
    text = text_of_run(source, rf"^{_COUNT_HEADING}", _POINT_HEADING.pattern)
    for title, pattern in ((_COUNT_HEADING, _COUNTS), (r" ?(?:Type\s+)?Name\s.*%", _POINTS)):
        headings = re.findall(rf"^{title}.*$", text, re.MULTILINE)
        for number, line in below(text, headings[-1].strip()) if headings else ():
            below_rule = re.match(r" ?(?:Total|Aggregated)\b", line)  # before 1.0, without times
            if not _RULE.match(line) and pattern.match(line) is None and not below_rule:
                seen = f"{printable(line.strip())!r}"
                raise source.corrupt(number, seen, "a row of Locust's table", "run it again")
    rows: dict[str, dict[str, str]] = {}
    points: dict[str, dict[str, str]] = {}
    columns: list[str] = []
    first = False
    for line in text.split("\n"):
        if heading := _POINT_HEADING.match(line):
            columns = heading[1].split()
            first = re.search(r"# reqs\s+[\d.]+%", line) is not None  # before 1.0
        elif row := _COUNTS.match(line):
            name, *cells = (" ".join((cell or "").split()) for cell in row.groups())
            rows[name] = dict(zip(_PRINTED, cells, strict=False))
        elif columns and (row := _POINTS.match(line)) and len(row[2].split()) == len(columns) + 1:
            cells, name = row[2].split(), " ".join(row[1].split()).removeprefix("None ")
            count = {"request count": cells.pop(0 if first else -1)}
            points[name] = count | dict(zip(columns, cells, strict=True))
    if not rows:  # the table of percentiles alone, whose last column is the maximum
        rows = {name: {"max response time": row.get("100%", "")} for name, row in points.items()}
    rows = {name: points.get(name, {}) | row for name, row in rows.items()}
    return _of_rows(rows)


_PRINTED = (
    "request count", "failure count", "average response time", "min response time",
    "max response time", "median response time", "requests/s",
)  # fmt: skip


def _of_rows(rows: Mapping[str, Mapping[str, str]]) -> dict[str, Data]:
    """The series of rows by their names, but those without a request."""
    sent = {name: row for name, row in rows.items() if _number(row["request count"])}
    return _aggregate_first({name: _data(row, _RUN) for name, row in sent.items()})


_PAGE = {
    "request count": "num_requests", "failure count": "num_failures",
    "average response time": "avg_response_time", "min response time": "min_response_time",
    "max response time": "max_response_time", "median response time": "median_response_time",
    "requests/s": "total_rps",
}  # fmt: skip


def read_page(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read what the page of a running test asks for: a median, a mean and both ends."""
    stats = json_text.entry(json_text.load(source), "stats", source, list)
    names = [" ".join(filter(None, (row.get("method"), str(row.get("name"))))) for row in stats]
    rows = [{name: str(row.get(key) or 0) for name, key in _PAGE.items()} for row in stats]
    return _of_rows(dict(zip(names, rows, strict=True)))


FORMATS = {
    "locust-csv": (
        has_match(
            rf"(?i)\A(?:{_TYPE}{_NAME}[^\n]*{_REQUESTS}[^\n]*\bmax response time|"
            rf'{_NAME}"?{_REQUESTS}[^\n]*,"?100%"?\s*$)'
        ),
        read_stats,
    ),
    "locust-history": (
        has_match(rf'(?i)\A"?timestamp"?,"?user count"?,[^\n]*{_REQUESTS}'),
        read_history,
    ),
    "locust-json": (has_match(_JSON, '"response_times"'), read_json),
    "locust-page": read_page,
    "locust": (
        has_match(
            rf"^{_COUNT_HEADING}|^ ?(?:Type\s+)?Name\s+(?:# reqs\s+50%|50%[^\n]*# reqs)",
            plain=plain,
            without=_JSON,
        ),
        read_text,
    ),
}
