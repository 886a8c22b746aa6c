"""Tables of percentiles drawn with bars: Flotilla's (quartiles of each consumer, in ms), and others like it, as in READMEs.

A cell may carry its unit (``1.2ms``), the heading may (``p99 (ms)``); Flotilla's bare numbers are milliseconds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError
from latencykit.io.build import data_from_points, distinct, several
from latencykit.io.source import Confidence, Format
from latencykit.io.text import plain
from latencykit.units import NANOSECONDS, parse_duration, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from latencykit.core.run import UnitFrom
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_RULE = re.compile(r"^[\s|+\-=:─│┼┌┐└┘├┤┬┴╌╭╮╰╯═║╪╬╔╗╚╝]*$")
_BARS = re.compile(r"[|│║]")
_UNIT = re.compile(
    r"[(\[]\s*(ns|us|µs|μs|ms|msec|s|sec|seconds)\s*[)\]]|_(ns|us|ms|s)$", re.IGNORECASE
)
_PERCENTILE = re.compile(
    r"p ?(\d+(?:[._]\d+)?)|(\d+(?:\.\d+)?) ?(?:%|th|st|nd|rd)(?: ?(?:percentile|%ile|pct))?",
    re.IGNORECASE,
)
_WORDS: dict[str, float | str] = {
    "q1": 25.0, "q2": 50.0, "q3": 75.0, "median": 50.0, "med": 50.0, "min": "min", "minimum": "min", "fastest": "min",
    "max": "max", "maximum": "max", "slowest": "max", "mean": "mean", "avg": "mean", "average": "mean", "std dev": "std",
    "stddev": "std", "stdev": "std", "std": "std", "count": "count", "requests": "count", "samples": "count", "n": "count",
}  # fmt: skip
_NOTHING = ("", "-", "–", "N/A", "NaN")
_SPELLINGS = {"msec": "ms", "sec": "s", "seconds": "s", "µs": "us", "μs": "us"}
_FLOTILLA = {"consumer", "node", "q1", "q2", "q3"}
_SKEW = "a latency is the difference of two machines' clocks, in whole milliseconds"
_HINT = "Flotilla prints quartiles only; tylertreat/bench writes a whole distribution"


class _Table(NamedTuple):
    """A table: its headings, what each column is, and the lines of its rows."""

    line: int
    heading: list[str]
    kinds: list[float | str | None]
    rows: list[tuple[int, list[str]]]


def sniff_flotilla(head: Head) -> Confidence:
    """Tell the table of consumers with their quartiles."""
    return (
        Confidence.CERTAIN
        if any(_is_flotilla(table) for table in _tables(head.text))
        else Confidence.NO
    )


def sniff_table(head: Head) -> Confidence:
    """Tell a table with two percentiles or more."""
    found = any(_is_percentiles(table) and not _is_flotilla(table) for table in _tables(head.text))
    return Confidence.LIKELY if found else Confidence.NO


def _is_flotilla(table: _Table) -> bool:
    return {cell.lower() for cell in table.heading} >= _FLOTILLA


def _is_percentiles(table: _Table) -> bool:
    return sum(isinstance(kind, float) for kind in table.kinds) >= 2 and bool(table.rows)


def _tables(text: str) -> Iterator[_Table]:
    """Every table whose heading names a percentile, with the rows below it that have as many cells."""
    lines = plain(text).split("\n")
    table: _Table | None = None
    for number, line in enumerate(lines, 1):
        cells = _cells(line)
        if table is not None and _RULE.match(line) and line.strip():
            continue
        if table is not None and len(cells) == len(table.heading):
            table.rows.append((number, cells))
            continue
        if table is not None:
            yield table
            table = None
        kinds = [_kind(cell) for cell in cells]
        if len(cells) > 2 and any(isinstance(kind, float) for kind in kinds):
            table = _Table(number, cells, kinds, [])
    if table is not None:
        yield table


def _cells(line: str) -> list[str]:
    bare = line.strip()
    if len(bare) > 2000 or not _BARS.search(bare):
        return []
    inner = bare.removeprefix("|").removeprefix("│").removeprefix("║")
    return [cell.strip(" *`\t") for cell in _BARS.split(re.sub(r"[|│║]$", "", inner))]


def _kind(cell: str) -> float | str | None:
    """What a heading says: a percentile, the name of a statistic, or neither."""
    bare = _UNIT.sub("", cell).strip()
    found = _PERCENTILE.fullmatch(bare)
    if found:
        p = float((found[1] or found[2]).replace("_", "."))
        return p if 0 < p < 100 else "max" if p == 100 else None
    return _WORDS.get(re.sub(r"^latency\s+|\s+latency$", "", bare.lower()))


def read_flotilla(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one series a consumer."""
    unit, unit_from = options.resolve_unit("ms")
    run = Run(
        tool="Flotilla", measure="service", corrected="none", unit=unit, unit_from=unit_from, notes=(_SKEW, _HINT),
    )  # fmt: skip
    found: dict[str, Data] = {}
    failed = 0
    for table in filter(_is_flotilla, _tables(source.text())):
        names = [heading.lower() for heading in table.heading]
        for number, cells in table.rows:
            row = dict(zip(names, cells, strict=True))
            if row.get("error", "").lower() == "true":
                failed += 1
                continue
            name = distinct(f"consumer {row['consumer']} ({row['node']})", found)
            found[name] = _data(table, number, cells, unit, run, source)
    if not failed:
        return found
    note = f"{several(failed, 'further consumer')} failed and received nothing"
    return {name: data.with_run(notes=(*data.run.notes, note)) for name, data in found.items()}


def read_table(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one series per row."""
    found: dict[str, Data] = {}
    for table in filter(_is_percentiles, _tables(source.text())):
        unit, unit_from = _stated_unit(table, source, options)
        run = Run(
            unit=unit,
            unit_from=unit_from,
            notes=("a table of percentiles: between them nothing is known",),
        )
        named = [k for k, kind in enumerate(table.kinds) if kind is None]
        for number, cells in table.rows:
            name = " ".join(cells[k] for k in named if cells[k]) or f"line {number}"
            found[distinct(name, found)] = _data(table, number, cells, unit, run, source)
    return found


def _stated_unit(table: _Table, source: Source, options: ReadOptions) -> tuple[str, UnitFrom]:
    """Unit of the cells: in each of them, in the headings, or asked for."""
    cells = [
        row[k]
        for _, row in table.rows
        for k, kind in enumerate(table.kinds)
        if isinstance(kind, float)
    ]
    if all(re.search(r"[A-Za-zµμ]$", cell) for cell in cells if cell not in _NOTHING):
        return "ns", "file"
    stated = {found[1] or found[2] for cell in table.heading if (found := _UNIT.search(cell))}
    if len(stated) == 1:
        unit = stated.pop().lower()
        return options.resolve_unit(_SPELLINGS.get(unit, unit), "file")
    if options.unit is None:
        raise source.corrupt(
            table.line,
            "the table does not say the unit of its numbers",
            "p50 (ms)",
            "--unit (unit=) says it",
        )
    return options.unit, "option"


def _data(
    table: _Table, number: int, cells: list[str], unit: str, run: Run, source: Source
) -> Data:
    """One row: percentiles, statistics and a count as far as they are there."""
    points: dict[float, float] = {}
    stats: dict[str, float] = {}
    count: int | None = None
    for kind, cell in zip(table.kinds, cells, strict=True):
        if kind is None or cell in _NOTHING:
            continue
        try:
            if kind == "count":
                count = int(float(cell.replace(",", "")))
            elif isinstance(kind, float):
                points[kind] = _value(cell, unit)
            else:
                stats[kind] = _value(cell, unit)
        except (InvalidArgumentError, ValueError, OverflowError):
            raise source.corrupt(
                number, f"{printable(cell, 30)!r} in the table", "a number", ""
            ) from None
    return data_from_points(points, count, stats, run)


def _value(cell: str, unit: str) -> float:
    text = cell.replace(",", "")
    return round(parse_duration(text, unit), 3) if unit in NANOSECONDS else float(text)


FORMATS = (
    Format(
        name="flotilla",
        title="Flotilla (quartiles of each consumer)",
        level="summary",
        suffixes=(".txt",),
        sniff=sniff_flotilla,
        read=read_flotilla,
        unit="ms",
        example="flotilla-client --test=latency --broker=nats --host=HOST:9000 > out.txt",
    ),
    Format(
        name="percentile-table",
        title="table of percentiles (text, Markdown)",
        level="histogram",
        suffixes=(".md", ".txt"),
        sniff=sniff_table,
        read=read_table,
        example="my-report > table.md   # columns such as p50 (ms), p99 (ms), max (ms)",
    ),
)
