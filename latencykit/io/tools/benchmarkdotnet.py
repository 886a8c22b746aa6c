"""BenchmarkDotNet: its tables (Markdown, console, CSV) and its JSON.

A value is an iteration's: the mean of its calls. So are the percentiles of the columns.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from typing import NamedTuple

from latencykit._text import format_items
from latencykit._typing import JSONObject
from latencykit.core.run import CLOSED, Run
from latencykit.errors import InvalidArgumentError
from latencykit.io import build, json_text
from latencykit.io.raw.cells import decimal_number, decimal_style
from latencykit.io.source import Confidence, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import fact, plain
from latencykit.units import parse_duration

_OWN = frozenset({"Error", "StdErr", "Allocated", "Ratio"})
_MEANS = frozenset({"Mean", "Median"})
_UNIT = re.compile(r" ?\[([^\s\[\]]{1,20})\]$")
_CELL = re.compile(r"(\d[\d.,]*) ?(\S*)")
_ABSENT = ("", "-", "?", "NA")
_VERSION = r"BenchmarkDotNet(?:=| )v?(\d[\w.+-]*)"
_LONGEST = 5000  # characters of a row
_NOTE = "the statistics are of iterations, each the mean of many calls"
_EACH = "each value is of an iteration: the mean of its calls"
_RUN = Run(tool="BenchmarkDotNet", **CLOSED, connections=1)


class _Table(NamedTuple):
    """The cells of a table's heading, and of the rows below it with their line numbers."""

    heading: list[str]
    rows: list[tuple[int, list[str]]]


def _tables(text: str) -> list[_Table]:
    tables, inside, mark = list[_Table](), False, ""
    for number, full in enumerate(plain(text).split("\n"), 1):
        line = full if len(full) < _LONGEST else ""
        if "Method" in line and ("Mean" in line or "Median" in line):
            mark = max("|,;\t", key=line.count)
            heading = _cells(line, mark)
            names = {_UNIT.sub("", cell) for cell in heading}
            if "Method" in names and names & _MEANS and not _OWN.isdisjoint(names):
                tables.append(_Table(heading, []))
                inside = True
                continue
        inside = inside and mark in line
        cells = _cells(line, mark) if inside else []
        if any(cell.strip("-: ") for cell in cells):
            tables[-1].rows.append((number, cells))
    return tables


def _cells(line: str, mark: str) -> list[str]:
    if mark != "|":
        return next(csv.reader([line], delimiter=mark), [])
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip(" *`\t") for cell in inner.split("|")] if "|" in inner else []


def _mean_at(heading: list[str]) -> int:
    return next(k for k, name in enumerate(heading) if _UNIT.sub("", name) in _MEANS)


def sniff_table(head: Head) -> Confidence:
    """Recognise methods with their means, which have units."""
    if "Method" not in head.text or not any(name in head.text for name in _MEANS):
        return Confidence.NO
    for heading, rows in _tables(head.text):
        at = _mean_at(heading)
        means = [_CELL.fullmatch(cells[at]) for _, cells in rows if len(cells) > at]
        if any(match and (match[2] or _UNIT.search(heading[at])) for match in means):
            return Confidence.CERTAIN
    return Confidence.NO


def read_table(source: Source, options: ReadOptions) -> Series:
    """Read one summary per row, named by its method and by the columns that vary."""
    text = source.text()
    run = _RUN.with_notes(_NOTE).replace(version=fact(text, _VERSION, str))
    for heading, rows in _tables(text):
        complete = [cells for _, cells in rows if len(cells) == len(heading)]
        first = _mean_at(heading)
        names = [
            (k, "" if heading[k] == "Method" else f"{heading[k]}=")
            for k in range(first)
            if heading[k] == "Method" or len({cells[k] for cells in complete}) > 1
        ]
        named = [_UNIT.sub("", name) for name in heading]
        columns = [k for k, name in enumerate(named) if any(build.statistics_in({name: 1}))]
        numbers = (_CELL.fullmatch(cells[k]) for cells in complete for k in columns)
        style = decimal_style(match[1] for match in numbers if match)
        for number, cells in rows:
            try:
                if len(cells) != len(heading):
                    seen = f"{len(cells)} cells below a heading of {len(heading)}"
                    raise InvalidArgumentError(seen)  # noqa: TRY301 - as of a cell that is not a time
                values: dict[str, float] = {}
                for k in [k for k in columns if cells[k] not in _ABSENT]:
                    match, unit = _CELL.fullmatch(cells[k]), _UNIT.search(heading[k])
                    cell = decimal_number(match[1], style) if match else None
                    if match is None or cell is None:
                        seen = f"{cells[k]!r} cannot be read as a time"
                        raise InvalidArgumentError(seen)  # noqa: TRY301
                    own = match[2] or (unit[1] if unit else "")  # in the cell, or in the heading
                    values[named[k]] = round(parse_duration(cell + own), 3)
            except InvalidArgumentError as error:
                options.refuse(source, number, str(error), "times such as 7.735 us")
                continue
            label = " ".join(f"{prefix}{cells[k]}" for k, prefix in names)
            if values:
                yield label, build.data_from_statistics(values, None, run)
            else:
                options.report(f"{source.shown}: {label} has no result; left out")


def read_json(source: Source, options: ReadOptions) -> Series:
    """Read every benchmark: each iteration's value, else the statistics of these."""
    record = json_text.load(source)
    version = (record.get("HostEnvironmentInfo") or {}).get("BenchmarkDotNetVersion")
    run = _RUN.replace(version=version, unit="ns", unit_from="format")
    failed = 0
    rows = json_text.entry(record, "Benchmarks", source, list)
    names = Counter(str(row.get("FullName")) for row in rows)
    for row in rows:
        statistics: JSONObject | None = row.get("Statistics")
        if not statistics:
            failed += 1
            continue
        name = str(row.get("FullName"))
        jobs = name == "None" or names[name] > 1  # DisplayInfo names the job, too
        label = str(row.get("DisplayInfo") or row.get("Method")) if jobs else name
        values = statistics.get("OriginalValues")
        if values:
            times = build.nanoseconds_of(values, "ns")
            yield label, build.data_from_values(times, run.with_notes(_EACH))
            continue
        found = statistics | (statistics.get("Percentiles") or {})
        found["std"] = found.get("StandardDeviation")
        numbers = {key: float(v) for key, v in found.items() if isinstance(v, (int, float))}
        yield label, build.data_from_statistics(numbers, None, run.with_notes(_NOTE))
    if failed:
        options.report(f"{source.shown}: {format_items(failed, 'benchmark')} without a result")


FORMATS = {"benchmarkdotnet": (sniff_table, read_table), "benchmarkdotnet-json": read_json}
