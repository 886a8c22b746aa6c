"""Histograms that bpftrace (``hist``, ``lhist``) and the bcc tools (biolatency, runqlat …) print.

A bucket's edges are whole numbers of the map's unit; a value was cut to a whole number, so ``[2, 4)`` µs and ``2 -> 3``
reach up to 4 µs. bpftrace writes K, M and G for powers of 1024.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import distinct, nanoseconds_of, several
from latencykit.io.source import Confidence, Format
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_MAP = re.compile(r"^(@[\w.]*(?:\[[^\n]*\])?): *$")
_ROW = re.compile(
    r"^(?:\[(-?\d+)([KMGT]?), (?:(-?\d+)([KMGT]?)|\.\.\.)\)|\[(-?\d+)([KMGT]?)\]|\(\.\.\., (-?\d+)([KMGT]?)[\])]) +(\d+) *\|"
)
_BCC_HEADER = re.compile(r"^ +(nsecs|usecs|msecs|secs) +: count +distribution *$")
_BCC_ROW = re.compile(r"^ *(\d+) +-> +(\d+) +: (\d+) +\|")
_BCC_LABEL = re.compile(r"^(?:\w[\w ]* = .+|[Bb]ucket \w+ = .+)$")
_POWERS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NAMED = (("ns", r"(?:^|[_.])n(?:s|sec|secs|anos?)(?:$|[_.])|nsecs"), ("ms", r"(?:^|[_.])m(?:s|sec|secs|illis?)(?:$|[_.])|msecs"),
          ("us", r"(?:^|[_.])u(?:s|sec|secs)(?:$|[_.])|usecs|micros"))  # fmt: skip

Row = tuple[float, float, int]


def sniff_bpftrace(head: Head) -> Confidence:
    """Tell a map's name and a row below it."""
    lines = head.lines
    found = any(_MAP.match(line) and _ROW.match(after) for line, after in pairwise(lines))
    return Confidence.CERTAIN if found else Confidence.NO


def sniff_bcc(head: Head) -> Confidence:
    """Tell the head of the table."""
    return (
        Confidence.CERTAIN if any(_BCC_HEADER.match(line) for line in head.lines) else Confidence.NO
    )


def sniff_json(head: Head) -> Confidence:
    """Tell a histogram among bpftrace's JSON lines."""
    found = re.search(r'^\{"type": ?"l?hist"', head.text, re.MULTILINE)
    return Confidence.CERTAIN if found else Confidence.NO


def read_bpftrace(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every map; a map that was printed several times (``interval``) is the sum, unless it grows on."""
    reports: dict[str, list[list[Row]]] = {}
    rows: list[Row] | None = None
    for number, line in enumerate(source.text().splitlines(), 1):
        named, row = _MAP.match(line), _ROW.match(line)
        if named:
            rows = []
            reports.setdefault(named[1], []).append(rows)
        elif row and rows is not None:
            rows.append(_row_of(row))
        elif rows and line.lstrip().startswith(("[", "(")) and "|" in line:
            options.reject(
                source.corrupt(
                    number, f"this is no row of a histogram: {line!r}", "[2, 4) 7 |@@|", ""
                )
            )
        elif not line.strip():
            rows = None
    return {name: _map(name, parts, options) for name, parts in reports.items() if any(parts)}


def _row_of(found: re.Match[str]) -> Row:
    """Lowest value, lowest value of the next bucket, count."""
    low, low_power, high, high_power, single, single_power, below, below_power, count = (
        found.groups()
    )
    if single is not None:
        value = float(int(single) * _POWERS[single_power])
        return value, value + 1, int(count)
    if below is not None:
        return -np.inf, float(int(below) * _POWERS[below_power]), int(count)
    return (
        float(int(low) * _POWERS[low_power]),
        float(int(high) * _POWERS[high_power]) if high is not None else np.inf,
        int(count),
    )


def _map(name: str, parts: Sequence[Sequence[Row]], options: ReadOptions) -> Histogram:
    plain = re.sub(r"\[.*", "", name).lstrip("@")
    unit = next((unit for unit, pattern in _NAMED if re.search(pattern, plain)), None)
    chosen, origin = options.resolve_unit(unit or "us", "format" if unit else "assumed")
    run = Run(tool="bpftrace", measure="service", corrected="none", unit=chosen, unit_from=origin)
    full = [part for part in parts if part]
    if len(full) > 1 and not _grows(full):
        run = run.with_notes(f"the sum of {several(len(full), 'report')}")
        return _histogram([row for part in full for row in part], run)
    return _histogram(full[-1], run)


def _grows(parts: Sequence[Sequence[Row]]) -> bool:
    """Whether each report holds the one before it: the map was not cleared in between."""
    tables = [{row[:2]: row[2] for row in part} for part in parts]
    return all(
        after.get(key, 0) >= count
        for before, after in pairwise(tables)
        for key, count in before.items()
    )


def _histogram(rows: Sequence[Row], run: Run) -> Histogram:
    """Rows added up by bucket; what has no upper end is censored, negative values are left out."""
    negative = sum(count for low, high, count in rows if high <= 0)
    if negative:
        run = run.with_notes(
            f"{several(negative, 'negative value')} left out: the clock was set back"
        )
    open_rows = [(low, count) for low, high, count in rows if not np.isfinite(high)]
    total: dict[tuple[float, float], int] = {}
    for low, high, count in rows:
        if high > 0 and np.isfinite(high):
            total[max(low, 0.0), high] = total.get((max(low, 0.0), high), 0) + count
    keys = sorted(total, key=lambda key: (key[1], key[0]))
    factor = NANOSECONDS.get(run.unit, 1.0)
    lows = nanoseconds_of([key[0] for key in keys], run.unit)
    highs = (
        nanoseconds_of([key[1] for key in keys], run.unit) - 1.0
    )  # the last whole step below the next bucket
    above = sum(count for _, count in open_rows)
    counts = [total[key] for key in keys]
    return Histogram.from_buckets(
        lows, np.maximum(lows, highs), counts, "none" if run.unit == "none" else "ns", run=run, censored=above,
        censored_at=min(start for start, _ in open_rows) * factor if above else float("inf"),
    )  # fmt: skip


def read_bcc(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every table, named by the lines above it; tables of one name (intervals) are added up."""
    tables: dict[str, tuple[str, list[list[Row]]]] = {}
    labels: list[str] = []
    rows: list[Row] | None = None
    for line in source.text().splitlines():
        header, row = _BCC_HEADER.match(line), _BCC_ROW.match(line)
        if header:
            rows = []
            tables.setdefault(" ".join(labels), (header[1], []))[1].append(rows)
            labels = []
        elif row and rows is not None:
            rows.append((float(row[1]), float(row[2]) + 1, int(row[3])))
        elif line.strip():
            rows = None
            labels = [*labels, line.strip()] if _BCC_LABEL.match(line.strip()) else []
    found: dict[str, Data] = {}
    for name, (word, parts) in tables.items():
        unit = {"nsecs": "ns", "usecs": "us", "msecs": "ms", "secs": "s"}[word]
        run = Run(tool="bcc", measure="service", corrected="none", unit=unit)
        if len(parts) > 1:
            run = run.with_notes(f"the sum of {several(len(parts), 'report')}")
        histogram = _histogram([row for part in parts for row in part], run)
        if histogram.count or histogram.censored:
            found[distinct(name, found)] = histogram
    return found


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the histograms of bpftrace's JSON lines; the last report of a map counts."""
    notes: list[str] = []
    maps: dict[str, list[list[Row]]] = {}
    for _, batch in jsontext.lines(source, options, notes):
        for one in batch:
            if isinstance(one, dict) and one.get("type") in ("hist", "lhist"):
                for name, data in one.get("data", {}).items():
                    parts = data.items() if isinstance(data, dict) else [("", data)]
                    for key, rows in parts:
                        maps.setdefault(f"{name}[{key}]" if key else name, []).append(
                            [_json_row(row) for row in rows]
                        )
    found = {name: _map(name, parts, options) for name, parts in maps.items()}
    return {name: one.with_run(notes=(*one.run.notes, *notes)) for name, one in found.items()}


def _json_row(row: dict[str, Any]) -> Row:
    low, high = row.get("min", -np.inf), row.get("max", np.inf)
    return float(low), float(high) + 1 if np.isfinite(high) else np.inf, int(row.get("count", 0))


FORMATS = (
    Format(
        "bpftrace", "bpftrace histograms", "histogram", (".txt",), sniff_bpftrace, read_bpftrace,
        example="bpftrace -e '... @usecs = hist(...); ...' > out.txt",
    ),
    Format(
        "bpftrace-json", "bpftrace histograms (JSON)", "histogram", (".json", ".jsonl"), sniff_json, read_json,
        example="bpftrace -f json -e '... @usecs = hist(...); ...' > out.json",
    ),
    Format("bcc", "bcc histograms", "histogram", (".txt",), sniff_bcc, read_bcc, example="biolatency-bpfcc 60 1 > out.txt"),
)  # fmt: skip
