"""Histograms that bpftrace (``hist``, ``lhist``) and the bcc tools (biolatency, runqlat …) print.

A bucket's edges are whole numbers of the map's unit; a value was truncated to a whole number, so
``[2, 4)`` µs and ``2 -> 3`` reach up to 4 µs. bpftrace writes K, M and G for powers of 1024.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from latencykit._text import format_items
from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.io import build, json_text
from latencykit.io.rows import RowLayout, read_table
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import certain, has_match
from latencykit.units import NANOSECONDS

_MAP = re.compile(r"^(@[\w.]*(?:\[[^\n]*\])?): *$")
_ROW = re.compile(
    r"^(?:\[(-?\d+)([KMGT]?), (?:(-?\d+)([KMGT]?)|\.\.\.)\)|\[(-?\d+)([KMGT]?)\]"
    r"|\(\.\.\., (-?\d+)([KMGT]?)[\])]) +(\d+) *\|"
)
_BCC_HEADER = re.compile(r"^ +(nsecs|usecs|msecs|secs) +: count +distribution *$", re.MULTILINE)
_BCC_ROW = re.compile(r"^ *(\d+) +-> +(\d+) +: (\d+) +\|")
_BCC_LABEL = re.compile(r"^(?:\w[\w ]* = .+|[Bb]ucket \w+ = .+)$")
_POWERS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_UNITS = (
    ("ns", r"(?:^|[_.])n(?:s|sec|secs|anos?)(?:$|[_.])|nsecs"),
    ("ms", r"(?:^|[_.])m(?:s|sec|secs|illis?)(?:$|[_.])|msecs"),
    ("us", r"(?:^|[_.])u(?:s|sec|secs)(?:$|[_.])|usecs|micros"),
)

Row = tuple[float, float, int]  # lowest value, lowest value of the next bucket, count


def sniff_bpftrace(head: Head) -> Confidence:
    """Recognise a map's name and a row below it."""
    pairs = pairwise(head.lines)
    return certain(any(_MAP.match(line) and _ROW.match(after) for line, after in pairs))


def read_bpftrace(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every map; one printed several times is the sum, unless it accumulates."""
    reports: dict[str, list[list[Row]]] = {}
    rows: list[Row] | None = None
    for number, line in enumerate(source.text().splitlines(), 1):
        name, row = _MAP.match(line), _ROW.match(line)
        if name:
            rows = []
            reports.setdefault(name[1], []).append(rows)
        elif row and rows is not None:
            low, high, single, below = (
                None if row[k] is None else float(int(row[k]) * _POWERS[row[k + 1]])
                for k in (1, 3, 5, 7)
            )
            if single is not None:
                low, high = single, single + 1
            elif below is not None:
                low, high = None, below
            lowest, above = -np.inf if low is None else low, np.inf if high is None else high
            rows.append((lowest, above, int(row[9])))
        elif rows and line.lstrip().startswith(("[", "(")) and "|" in line:
            seen = f"not a row of a histogram: {line!r}"
            options.reject(source.corrupt(number, seen, "[2, 4) 7 |@@|"))
        elif not line.strip():
            rows = None
    return {name: _map(name, parts, options) for name, parts in reports.items() if any(parts)}


def _map(name: str, parts: Sequence[Sequence[Row]], options: ReadOptions) -> Histogram:
    plain = re.sub(r"\[.*", "", name).lstrip("@")
    unit = next((unit for unit, pattern in _UNITS if re.search(pattern, plain)), None)
    chosen, origin = options.resolve_unit(unit or "us", "format" if unit else "assumed")
    run = Run(tool="bpftrace", measure="service", corrected="none", unit=chosen, unit_from=origin)
    full = [part for part in parts if part]
    # Where each report contains the one before it, the map was not cleared in between.
    tables = [{row[:2]: row[2] for row in part} for part in full]
    grows = all(
        after.get(key, 0) >= count
        for before, after in pairwise(tables)
        for key, count in before.items()
    )
    if grows:
        return _histogram(full[-1], run)
    run = run.with_notes(f"the sum of {format_items(len(full), 'report')}")
    return _histogram([row for part in full for row in part], run)


def _histogram(rows: Sequence[Row], run: Run) -> Histogram:
    """Rows added up by bucket; what has no upper end is censored, negative values are left out."""
    if negative := sum(count for _, high, count in rows if high <= 0):
        note = f"{format_items(negative, 'negative value')} left out: the clock was set back"
        run = run.with_notes(note)
    beyond = [(low, count) for low, high, count in rows if high == np.inf]
    kept = [(high, max(low, 0.0), count) for low, high, count in rows if 0 < high < np.inf]
    ends = np.array([edges for *edges, _ in kept]).reshape(-1, 2)
    edges, counts = build.added_up(ends, np.array([count for *_, count in kept], np.int64))
    high, low = build.nanoseconds_of(edges, run.unit).T
    start = min((low for low, count in beyond if count), default=np.inf)
    return Histogram.from_buckets(  # up to the last whole step below the next bucket
        low, np.maximum(low, high - 1.0), counts, build.base_unit(run.unit), run=run,
        censored=sum(count for _, count in beyond),
        censored_at=start * NANOSECONDS.get(run.unit, 1.0),
    )  # fmt: skip


def read_bcc(source: Source, options: ReadOptions) -> Series:
    """Read every table, named by the lines above it; those of one name are added up."""
    tables: dict[str, tuple[str, list[list[Row]]]] = {}
    labels: list[str] = []
    rows: list[Row] | None = None
    longest = 2.0**63
    for number, line in enumerate(source.text().splitlines(), 1):
        header, row = _BCC_HEADER.match(line), _BCC_ROW.match(line)
        if header:
            rows = []
            longest = 2.0**63 / NANOSECONDS.get(build.unit_in(header[1]) or "us", 1.0)
            tables.setdefault(" ".join(labels), (header[1], []))[1].append(rows)
            labels = []
        elif row and rows is not None and float(row[1]) >= longest and int(row[3]):
            seen = f"a bucket begins at {row[1]}, which is not a latency"
            options.reject(source.corrupt(number, seen, "", "--lenient leaves it out"))
        elif row and rows is not None:
            rows.append((float(row[1]), float(row[2]) + 1, int(row[3])))
        elif line.strip():
            rows = None
            labels = [*labels, line.strip()] if _BCC_LABEL.match(line.strip()) else []
    for name, (word, parts) in tables.items():
        run = Run(tool="bcc", measure="service", corrected="none", unit=build.unit_in(word) or "us")
        if len(parts) > 1:
            run = run.with_notes(f"the sum of {format_items(len(parts), 'report')}")
        histogram = _histogram([row for part in parts for row in part], run)
        if histogram.count or histogram.censored:
            yield name, histogram


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the histograms of bpftrace's JSON lines; the last report of a map counts."""
    notes: list[str] = []
    maps: dict[str, list[list[Row]]] = {}
    for record in json_text.lines(source, options, notes):
        if not isinstance(record, dict) or record.get("type") not in ("hist", "lhist"):
            continue
        for name, data in record.get("data", {}).items():
            for key, rows in data.items() if isinstance(data, dict) else [("", data)]:
                lows = [float(row.get("min", -np.inf)) for row in rows]
                highs = [float(row.get("max", np.inf)) + 1 for row in rows]
                counts = [int(row.get("count", 0)) for row in rows]
                part = list(zip(lows, highs, counts, strict=True))
                maps.setdefault(f"{name}[{key}]" if key else name, []).append(part)
    series = {name: _map(name, parts, options) for name, parts in maps.items()}
    return {name: data.with_run(notes=(*data.run.notes, *notes)) for name, data in series.items()}


# ------------------------------------------------------------
# Traces as two columns, ``TIMEus DELTAus``: when an operation ended, and how long it took.
#
# It is the input of Brendan Gregg's ``trace2heatmap.pl``, cut from the output of iosnoop, biosnoop
# and the like. Without a header, whole numbers are such a trace if the first column is that of a
# clock: it never falls and its steps differ, as those of the values of a printed histogram do not.

_HEADER = re.compile(
    r"#?\s*(?P<time>S?TIME|END|START|TS)(?:\s?\(?(?P<clock>ns|us|ms|s)\)?)?\s+"
    r"(?:DELTA|LAT|LATENCY|DURATION)(?:\s?\(?(?P<unit>ns|us|ms|s)\)?)?",
    re.IGNORECASE,
)
_PAIR_ROW = re.compile(r"\s*(\d{1,18})[ \t]+(\d{1,15})\s*")
_FEWEST = 20  # rows without a header


def _header(head: Head) -> re.Match[str] | None:
    return _HEADER.fullmatch(head.lines[0].strip()) if head.lines else None


def sniff(head: Head) -> Confidence:
    """Recognise the header, or the clock of bare numbers."""
    lines = head.lines[1:21] if (header := _header(head)) else head.lines[:2000]
    if header is not None:
        fits = [re.fullmatch(r"\s*[\d.]+[ \t]+[\d.]+\s*", line) for line in lines]
        return Confidence.CERTAIN if fits and all(fits) else Confidence.NO
    rows = [_PAIR_ROW.fullmatch(line) for line in lines]
    if len(rows) < _FEWEST or not all(rows):
        return Confidence.NO
    clock = np.array([float(row[1]) for row in rows if row])
    steps = np.diff(clock)
    varied = np.unique(steps).size > len(rows) / 4
    return Confidence.LIKELY if (steps >= 0).all() and varied else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every row; the time is that of the end, unless the header says STIME or START."""
    header = _header(source.head)
    layout = RowLayout(
        ("time", "latency"), ("time", "latency"), sep=" ", skip=int(header is not None),
        largest={"time": 9e18, "latency": 9e15}, exact=True,
    )  # fmt: skip
    frame, notes = read_table(source, options, layout)
    stated = header["unit"] if header else None
    unit, origin = options.resolve_unit("us", "assumed")
    if stated:
        unit, origin = stated.lower(), "file"
    clock = (header["clock"] or unit).lower() if header else unit
    if clock == "none":
        clock = "ns"
    latency = build.nanoseconds_of(frame["latency"], unit)
    end = build.whole_nanoseconds(frame["time"], clock)
    begins = header is not None and header["time"].upper() in ("STIME", "START")
    start = end if begins else end - np.rint(latency).astype(np.int64)
    guess = () if header else ("two columns without names: taken as end time and latency",)
    run = Run(
        measure="service", corrected="none", unit=unit, unit_from=origin, notes=(*notes, *guess)
    )
    given = {"start": start, "duration": latency}
    return build.samples_of(given, run, options, unit=build.base_unit(unit))


FORMATS = {
    "bpftrace": (sniff_bpftrace, read_bpftrace),
    "bpftrace-json": (has_match(r'^\{"type": ?"l?hist"'), read_json),
    "bcc": (has_match(_BCC_HEADER), read_bcc),
    "time-latency": (sniff, read),
}
