"""Tables of percentiles: Flotilla's (quartiles of each consumer, ms), and others, drawn or as CSV.

A cell may carry its unit (``1.2ms``), the heading may (``p99 (ms)``); Flotilla's bare numbers are
milliseconds, and so are those of JMeter's aggregate report (``99% Line``).
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, NamedTuple

from latencykit._text import format_items, printable
from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError
from latencykit.io.build import (
    STATISTIC_WORDS,
    data_from_points,
    distinct,
    percentile_named,
    unit_in,
)
from latencykit.io.sniffing import certain
from latencykit.io.source import Confidence, Format
from latencykit.io.text_reports import plain
from latencykit.units import NANOSECONDS, parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from latencykit.core.run import UnitFrom
    from latencykit.io.source import Data, Head, ReadOptions, Source

_RULE = re.compile(r"^[\s|+\-=:─│┼┌┐└┘├┤┬┴╌╭╮╰╯═║╪╬╔╗╚╝]*$")
_BARS = re.compile(r"[|│║]")
_UNIT = re.compile(
    r"[(\[]\s*(ns|us|µs|μs|ms|msec|s|sec|seconds)\s*[)\]]|_(ns|us|ms|s)$", re.IGNORECASE
)
_WORDS = STATISTIC_WORDS | {"q1": 25.0, "q2": 50.0, "q3": 75.0}
_LINE = re.compile(r"(?<=%) line$", re.IGNORECASE)
_TIME = re.compile(r"time|date|ts$|start|end$|second|interval|epoch", re.IGNORECASE)
_NUMBER = re.compile(r"-?[\d.,]+ ?%?")
_NOTHING = ("", "-", "–", "N/A", "NaN")
_FLOTILLA = {"consumer", "node", "q1", "q2", "q3"}
_SKEW = "a latency is the difference of two machines' clocks, in whole milliseconds"
_HINT = "Flotilla prints quartiles only; tylertreat/bench writes a full distribution"


class _Table(NamedTuple):
    """A table: its headings, what each column is, and the lines of its rows."""

    line: int
    heading: list[str]
    kinds: list[float | str | None]
    rows: list[tuple[int, list[str]]]


def sniff_flotilla(head: Head) -> Confidence:
    """Recognise the table of consumers with their quartiles."""
    return certain(any(map(_is_flotilla, _tables(head.text))))


def sniff_table(head: Head) -> Confidence:
    """Recognise a table with two percentiles or more."""
    tables = list(_tables(head.text))
    if any(_has_percentiles(table) and not _is_flotilla(table) for table in tables):
        return Confidence.LIKELY
    return Confidence.NO


def _is_flotilla(table: _Table) -> bool:
    return {cell.lower() for cell in table.heading} >= _FLOTILLA


def _has_percentiles(table: _Table) -> bool:
    return sum(isinstance(kind, float) for kind in table.kinds) >= 2 and bool(table.rows)


def _tables(text: str) -> Iterator[_Table]:
    """Every table whose heading names a percentile, and the rows below with as many cells."""
    text = plain(text)
    mark = _mark(text.lstrip("\ufeff\n").partition("\n")[0])
    table: _Table | None = None
    for number, line in enumerate(text.split("\n"), 1):
        bare, cells = line.strip(), list[str]()
        if len(bare) <= 2000 and mark:
            cells = [cell.strip() for cell in next(csv.reader([bare], delimiter=mark), [])]
        elif len(bare) <= 2000 and _BARS.search(bare):
            inner = bare.removeprefix("|").removeprefix("│").removeprefix("║")
            cells = _BARS.split(re.sub(r"[|│║]$", "", inner))
            cells = [cell.strip(" *`\t") for cell in cells]
        if table is not None and bare and _RULE.match(line):
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


def _mark(first: str) -> str:
    """What separates the cells of a CSV by its first line; empty for other text.

    Rows by time are none of it: they cannot be added up to one distribution.
    """
    mark = max(",;\t", key=first.count)
    cells = first.replace('"', "").split(mark)
    heading = len(cells) > 2 and not any(re.fullmatch(r"-?[\d.]+", cell) for cell in cells)
    return mark if heading and not any(map(_TIME.match, cells)) else ""


def _kind(cell: str) -> float | str | None:
    """The percentile or the statistic of a heading, or neither."""
    bare = _LINE.sub("", _UNIT.sub("", cell).strip("# "))
    p = percentile_named(bare)
    if p is not None:
        return p if 0 < p < 100 else "max" if p == 100 else None
    return _WORDS.get(re.sub(r"^latency\s+|\s+latency$", "", bare.lower()))


def read_flotilla(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one series per consumer."""
    unit, unit_from = options.resolve_unit("ms")
    run = Run(
        tool="Flotilla", measure="service", corrected="none", unit=unit, unit_from=unit_from,
        notes=(_SKEW, _HINT),
    )  # fmt: skip
    series: dict[str, Data] = {}
    failed = 0
    for table in filter(_is_flotilla, _tables(source.text())):
        names = [heading.lower() for heading in table.heading]
        for number, cells in table.rows:
            row = dict(zip(names, cells, strict=True))
            if row.get("error", "").lower() == "true":
                failed += 1
                continue
            name = distinct(f"consumer {row['consumer']} ({row['node']})", series)
            series[name] = _data(table, number, cells, unit, run, source)
    if not failed:
        return series
    note = f"{format_items(failed, 'further consumer')} failed and received nothing"
    return {name: data.with_run(notes=(*data.run.notes, note)) for name, data in series.items()}


def read_table(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one series per row."""
    note = "a table of percentiles: between them nothing is known"
    series: dict[str, Data] = {}
    unit_from: UnitFrom
    for table in filter(_has_percentiles, _tables(source.text())):
        # The unit: in each of the cells, in the headings, or from the options.
        columns = [k for k, kind in enumerate(table.kinds) if isinstance(kind, float)]
        shown = [row[k] for _, row in table.rows for k in columns if row[k] not in _NOTHING]
        stated = {match[1] or match[2] for cell in table.heading if (match := _UNIT.search(cell))}
        jmeter = any(map(_LINE.search, table.heading))
        if all(re.search(r"[A-Za-zµμ]$", cell) for cell in shown):
            unit, unit_from = "ns", "file"
        elif jmeter:
            unit, unit_from = options.resolve_unit("ms")
        elif len(stated) == 1:
            unit, unit_from = options.resolve_unit(unit_in(stated.pop()) or "ns", "file")
        elif options.unit is not None:
            unit, unit_from = options.unit, "option"
        else:
            seen = "the table does not say the unit of its numbers"
            raise source.corrupt(table.line, seen, "p50 (ms)", "--unit (unit=) says it")
        tool = "JMeter" if jmeter else None
        run = Run(tool=tool, unit=unit, unit_from=unit_from, notes=(note,))
        others = [k for k, kind in enumerate(table.kinds) if kind is None]
        words = [k for k in others if not all(_NUMBER.fullmatch(row[k]) for _, row in table.rows)]
        labels = words or others[:1]
        for number, cells in table.rows:
            name = " ".join(cells[k] for k in labels if cells[k]) or f"line {number}"
            series[distinct(name, series)] = _data(table, number, cells, unit, run, source)
    return series


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
        text = cell.replace(",", "")
        try:
            if kind == "count":
                count = int(float(text))
                continue
            timed = unit in NANOSECONDS
            value = round(parse_duration(text, unit), 3) if timed else float(text)
        except (InvalidArgumentError, ValueError, OverflowError):
            seen = f"{printable(cell, 30)!r} in the table"
            raise source.corrupt(number, seen, "a number") from None
        if isinstance(kind, float):
            points[kind] = value
        else:
            stats[kind] = value
    return data_from_points(points, count, stats, run)


FORMATS = (
    Format(
        "flotilla", "Flotilla (quartiles of each consumer)", "summary", (".txt",), sniff_flotilla,
        read_flotilla, unit="ms",
        example="flotilla-client --test=latency --broker=nats --host=HOST:9000 > out.txt",
    ),
    Format(
        "percentile-table", "table of percentiles (text, Markdown, CSV)", "histogram",
        (".md", ".txt", ".csv"),
        sniff_table, read_table,
        example="my-report > table.md   # columns such as p50 (ms), p99 (ms), max (ms)",
    ),
)  # fmt: skip
