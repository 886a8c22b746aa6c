"""Google Benchmark: its JSON, CSV and table.

A repetition gives the mean of its iterations, not single calls.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from latencykit._text import format_items, printable
from latencykit.core.run import CLOSED, Run
from latencykit.io import build, json_text
from latencykit.io.source import Data, ReadOptions, SeveralDocuments, Source
from latencykit.io.text_reports import documents_at, fact, has_match, plain
from latencykit.units import format_count

_Row = dict[str, Any]
"""One object of the JSON's list ``benchmarks``."""

_HINT = "Google Benchmark keeps means only; record single calls in an HdrHistogram to see the tail"
_AGGREGATE = re.compile(r"(.+)_(mean|median|stddev|cv|BigO|RMS)", re.DOTALL)
_UNITS = ("ns", "us", "ms", "s")
_HEADING = re.compile(
    r"^Benchmark[ \t]+Time(?:\((\w+)\))?[ \t]+CPU(?:\(\w+\))?[ \t]+Iterations\b", re.MULTILINE
)
_CSV = re.compile("^name,iterations,real_time,cpu_time,time_unit\\b", re.MULTILINE)


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the real time of every benchmark: one value per repetition, or their statistics."""
    record = json_text.load(source, after_noise=True)
    rows = json_text.entry(record, "benchmarks", source, list)
    return _series(rows, record.get("context") or {}, source)


def _series(found: list[_Row], context: Mapping[str, Any], source: Source) -> dict[str, Data]:
    rows: dict[str, list[_Row]] = {}
    failed: dict[str, int] = {}
    names = {str(row.get("name")) for row in found}
    for row in found:
        match = _AGGREGATE.fullmatch(str(row.get("name")))
        if match and "run_type" not in row:  # which older versions do not state
            base, kind = match.groups()
            if base in names or {f"{base}_mean", f"{base}_stddev"} <= names:
                of = {"run_name": base, "run_type": "aggregate", "aggregate_name": kind}
                row = row | of
        name = str(row.get("run_name") or row.get("name"))
        if row.get("error_occurred") or row.get("skipped"):
            failed[name] = failed.get(name, 0) + 1
        elif "real_time" in row:  # else the complexity that was fitted
            rows.setdefault(name, []).append(row)
    series: dict[str, Data] = {}
    for name, own in rows.items():
        unit = str(own[0].get("time_unit", "ns"))
        if unit not in _UNITS or any(str(row.get("time_unit", "ns")) != unit for row in own):
            raise source.corrupt(None, f"{name} has the unit {unit!r}", "one of ns, us, ms, s", "")
        run = Run(
            tool="Google Benchmark", version=context.get("library_version"),
            command=context.get("executable"), start=build.epoch_seconds(context.get("date")),
            **CLOSED, unit=unit, connections=int(own[0].get("threads") or 1),
            failed=failed.get(name, 0),
        )  # fmt: skip
        if context.get("library_build_type") == "debug":
            run = run.with_notes("the benchmark library was built for debugging")
        single = [row for row in own if row.get("run_type", "iteration") == "iteration"]
        if not single:  # --benchmark_report_aggregates_only
            cells = {row["aggregate_name"]: row["real_time"] for row in own}
            series[name] = build.data_from_statistics(cells, None, run.with_notes(_HINT), unit)
            continue
        calls = int(single[0].get("iterations") or 1)
        values = build.nanoseconds_of([float(row["real_time"]) for row in single], unit)
        if len(values) == 1 and calls > 1:
            mean, run = {"mean": float(values[0])}, run.with_notes(_HINT)
            series[name] = build.data_from_points({}, calls, mean, run)
            continue
        run = run.replace(values_are_runs=True)
        if calls > 1:
            run = run.with_notes(f"each value is the mean of {format_count(calls)} calls")
        series[name] = build.data_from_values(values, run)
    if failed and not series:
        seen = f"{format_items(sum(failed.values()), 'benchmark')} failed, and none gave a result"
        raise source.corrupt(None, seen, "a benchmark that ran", "see error_message in the file")
    return series


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the same of the CSV."""
    text = source.text()
    headings = [match.start() for match in _CSV.finditer(text)]
    if len(headings) > 1:
        raise documents_at(text, headings)
    before = text.count("\n", 0, headings[0]) if headings else 0
    reader = csv.DictReader(text.splitlines()[before:])
    rows = []
    for row in reader:
        failed = row["error_occurred"] == "true" if row.get("error_occurred") else False
        fitted = re.search("_(?:BigO|RMS)$", row["name"]) and not row["iterations"]
        if build.number_in(row["real_time"] or "") is None and not failed:
            line = before + reader.line_num
            options.refuse(source, line, "a row without a time", "a number")
        elif not fitted:
            rows.append({**_facts(row["name"]), **row, "error_occurred": failed})
    return _series(rows, {}, source)


def _facts(name: str) -> dict[str, Any]:
    threads = re.search(r"/threads:(\d{1,9})(?:/|$|_)", name)
    return {"threads": threads[1]} if threads else {}


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the same of the table that is printed; one that repeats names is of another run."""
    text = plain(source.text())
    lines = text.split("\n")
    tables: list[list[tuple[int, _Row]]] = []
    unit: str | None = None
    for number, line in enumerate(lines, 1):
        if line.startswith("Benchmark") and (heading := _HEADING.match(line)):
            tables, unit = [*tables, []], heading[1]
        elif tables and (row := _row(line.split(), unit)) is not None:
            if row.get("real_time") is None and "error_occurred" not in row:
                seen = f"{printable(line.strip(), 50)!r}"
                options.refuse(source, number, seen, "a benchmark's times")
            else:
                tables[-1].append((number, row))
    names = [{row["name"] for _, row in table} for table in tables]
    if sum(map(len, names)) > len(set().union(*names)):
        ends = [0, *(table[-1][0] for table in tables[:-1] if table), len(lines)]
        parts = pairwise(ends)
        raise SeveralDocuments([("\n".join(lines[begin:end]), begin) for begin, end in parts])
    debug = re.search(r"^\*{3}WARNING\*{3} Library was built as DEBUG", text, re.MULTILINE)
    context = {
        "date": fact(text, r"^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*)$", str),
        "executable": fact(text, r"^Running (\S[^\n]*)$", str),
        "library_build_type": "debug" if debug else None,
    }
    return _series([row for table in tables for _, row in table], context, source)


def _row(words: list[str], unit: str | None) -> _Row | None:
    """A row of the printed table as the JSON has it; None for another line."""
    if words[1:2] in (["ERROR"], ["SKIPPED:"]):
        return {"name": words[0], "error_occurred": True}
    if unit is not None:  # of older versions, whose heading states it
        words[1:3] = [word for number in words[1:3] for word in (number, unit)]
    places = (k for k in range(2, len(words) - 3) if words[k] == words[k + 2] in _UNITS)
    at = next(places, None)
    if at is None or not words[at + 3].isdigit():
        return None
    name, time = " ".join(words[: at - 1]), build.number_in(words[at - 1])
    facts = {"real_time": time, "time_unit": words[at], "iterations": words[at + 3]}
    return {"name": name} | facts | _facts(name)


FORMATS = {
    "google-benchmark": read,
    "google-benchmark-csv": (has_match(_CSV), read_csv),
    "google-benchmark-text": (has_match(_HEADING, plain=plain), read_text),
}
