"""Distribution files of Go's hdrhistogram-writer: tylertreat/bench, ``nats latency --histogram``.

A row is a percentile and its value in ms. TotalCount is the percentile's share of the total,
rounded, and not what was counted up to the value. With a rate, bench writes two files: one
back-filled for coordinated omission, and beside it ``uncorrected_`` with what was measured; without
a rate only the first, and nothing is back-filled then.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from latencykit.core.run import Run
from latencykit.io.build import data_from_points, nanoseconds
from latencykit.io.rows import CUT_LINE
from latencykit.io.sniffing import certain
from latencykit.io.source import Format, refuse_line
from latencykit.units import printable

if TYPE_CHECKING:
    from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_HEADER = re.compile(r"^Value {4}Percentile {4}TotalCount {4}1/\(1-Percentile\)\s*$", re.MULTILINE)
_ROW = re.compile(r"^\s*(\d+\.\d+)\s+([01]\.\d+)\s+(\d+)\s+(\d+\.\d+|\+?Inf)\s*$")
_LONGEST = 200
_BESIDE = "uncorrected_"
_NATS = (10.0, 25.0, 50.0, 75.0, 90.0, 99.0)


def sniff(head: Head) -> Confidence:
    """Recognize bench's header, whose columns are four blanks apart."""
    return certain(_is_distribution(head) and not _is_nats(head))


def sniff_nats(head: Head) -> Confidence:
    """Recognize the same header above the percentiles of ``nats latency``."""
    return certain(_is_distribution(head) and _is_nats(head))


def _is_distribution(head: Head) -> bool:
    header = _HEADER.search(head.text[:4000])
    if header is None or "#[" in head.text:
        return False
    return not head.text[: header.start()].lstrip().startswith("#")


def _is_nats(head: Head) -> bool:
    rows = [row for line in head.lines[:20] if len(line) < _LONGEST and (row := _ROW.match(line))]
    return tuple(round(float(row[2]) * 100, 4) for row in rows[: len(_NATS)]) == _NATS


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read bench's distribution; a second file beside it shows whether bench back-filled it."""
    name = source.path.name
    run = Run(tool="bench", measure="service")
    if source.shown != "-" and name.startswith(_BESIDE):
        run = run.replace(corrected="none", loop="paced")
    elif source.shown != "-" and source.path.with_name(_BESIDE + name).exists():
        run = run.replace(corrected="tool", loop="paced").with_notes(
            "bench back-filled these counts for coordinated omission; "
            f"{_BESIDE}{name} beside it holds the measured ones"
        )
    elif source.shown != "-":
        run = run.with_notes(
            "without a rate bench corrects nothing, with one it does; "
            f"there is no {_BESIDE}{name} beside this file to show which"
        )
    return _read(source, options, run)


def read_nats(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the distribution of ``nats latency``: messages are sent at a pace, without waiting."""
    run = Run(tool="nats latency", loop="open", measure="service", corrected="none")
    return _read(source, options, run)


def _read(source: Source, options: ReadOptions, run: Run) -> dict[str, Data]:
    unit, unit_from = options.resolve_unit("ms")
    points: dict[float, float] = {}
    total, share, value, notes = 0, 0.0, 0.0, list(run.notes)
    lines = source.text().split("\n")
    begin = next((k for k, line in enumerate(lines, 1) if _HEADER.match(line)), 0)
    for number, line in enumerate(lines[begin:], begin + 1):
        row = _ROW.match(line) if len(line) < _LONGEST else None
        if not line.strip():
            continue
        if number == len(lines) and (row is None or re.search(r"\.\d{6}$", row[4]) is None):
            notes.append(CUT_LINE)
        elif row is None or float(row[2]) > 1 or float(row[1]) < value:
            expected = "value, percentile, count, 1/(1-percentile), ascending"
            refuse_line(source, options, number, f"{printable(line.strip(), 50)!r}", expected)
        else:
            value, share, total = float(row[1]), float(row[2]), int(row[3])
            points[round(share * 100, 6)] = nanoseconds(value, unit)
    if not points:
        raise source.corrupt(None, "no value was counted", "rows of values")
    points.pop(0.0, None)  # not the minimum: the writer prints 0 there
    count = round(total / share) if share else 0
    if not count:
        notes.append(
            "this version does not print how many values it counted: "
            "of the distribution there are percentiles only"
        )
    run = run.replace(unit=unit, unit_from=unit_from, notes=tuple(notes))
    return {"": data_from_points(points, count or None, {}, run)}


FORMATS = (
    Format(
        "bench", "tylertreat/bench latency distribution", "histogram", (".txt",), sniff, read,
        unit="ms", example='summary.GenerateLatencyDistribution(nil, "latency.txt")',
    ),
    Format(
        "nats-latency-histogram", "nats latency --histogram", "histogram", (".histogram",),
        sniff_nats, read_nats, unit="ms",
        example="nats latency --server-b HOST --histogram out   # writes out.histogram",
    ),
)  # fmt: skip
