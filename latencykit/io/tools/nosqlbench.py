"""NoSQLBench, and others whose timers are Dropwizard metrics: summary, log, CSV, histostats.

Its HDR logs (``--log-histograms``) are interval logs and hold everything. A timer's count and mean
are of the whole run; its percentiles are of the last reporting interval, or of a sample that
favours the latest values. Histostats have one row of percentiles per interval, of all its values.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping

from latencykit._text import printable
from latencykit.core.histogram import Histogram, merge_histograms
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io import build
from latencykit.io.rows import line_refuser
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import has_match, line_numbers, plain

_HINT = (
    "percentiles of a timer are of its last interval or of a sample; "
    "--log-histograms keeps the full distribution"
)
_KNOWN = {"min", "max", "mean", "stddev", "median", "count", "mean_rate"}
_TIMER = re.compile(
    r"type=TIMER, name=(.{1,500}?), ((?:\w+=[^,\n]+, ){1,40}+\w+=\S+)\s*$", re.MULTILINE
)
_CONSOLE = re.compile(r"^(\S.{0,500}?) *\n((?: +[\w%.-][\w%. -]*?(?:=|<=) .+\n)+)", re.MULTILINE)
_FACT = re.compile(
    r"^ +([\w%.-][\w%. -]{0,60}?) *(?:=|<=) (\d+(?:\.\d+)?(?:E-?\d{1,2})?) (\S+) *$", re.MULTILINE
)
_COUNT = re.compile(r"^ +count = (\d{1,18}) *$")
_HISTOSTATS = re.compile(
    r"^#\s*Tag,Interval_Start,Interval_Length,count,min,(p[\w,]+),max\s*$", re.MULTILINE
)


def _timer(values: Mapping[str, float], unit: str, notes: tuple[str, ...] = ()) -> Summary:
    """A timer of `values` by the names of their columns."""
    points, stats = (build.in_nanoseconds(part, unit) for part in build.statistics_in(values))
    run = Run(tool="NoSQLBench", unit=unit, achieved=values.get("mean_rate"), notes=(_HINT, *notes))
    count = int(values.get("count", 0))
    return Summary(stats, dict(sorted(points.items())), count, "ns", run)


def read_log(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the last line of each timer that counted something."""
    text = source.text()
    line_at = line_numbers(text)
    series: dict[str, Data] = {}
    for row in _TIMER.finditer(text):
        facts = dict(part.split("=", 1) for part in row[2].split(", "))
        line = line_at(row.start())
        unit = build.unit_in(facts.get("duration_unit", ""))
        if unit is None:
            seen = f"duration_unit is {printable(str(facts.get('duration_unit')), 30)}"
            raise source.corrupt(line, seen, "milliseconds")
        values = _numbers(facts, line, source)
        if values.get("count"):
            series[row[1]] = _timer(values, unit)
    return series


def _numbers(facts: Mapping[str, str], line: int, source: Source) -> dict[str, float]:
    names = [name for name in facts if name in _KNOWN or build.percentile_named(name)]
    try:
        return {name: float(facts[name]) for name in names}
    except ValueError:
        seen = "a value of this timer is not a number"
        raise source.corrupt(line, seen, "count=…, min=…") from None


def read_console(source: Source, options: ReadOptions) -> Series:  # noqa: ARG001
    """Read each timer of the summary."""
    text = plain(source.text()) + "\n"
    line_at = line_numbers(text)
    for block in _CONSOLE.finditer(text):
        values: dict[str, float] = {}
        for number, line in enumerate(block[2].split("\n"), line_at(block.start(2))):
            row, counted = _FACT.match(line), _COUNT.match(line)
            name = row[1] if row else ""
            if counted:
                values["count"] = float(counted[1])
            elif row and name.endswith("rate"):
                values |= {"mean_rate": float(row[2])} if name == "mean rate" else {}
            elif (
                row
                and (unit := build.unit_in(row[3]))
                and (name in _KNOWN or build.percentile_named(name))
            ):
                values[name] = build.nanoseconds(row[2], unit)
            elif line.strip() and (row is None or build.unit_in(row[3])):
                shown, due = f"{printable(line.strip())!r}", "such as 99% <= 23.92 milliseconds"
                raise source.corrupt(number, shown, due, "run it again")
        if values.get("count") and "max" in values:
            yield block[1].strip(), _timer(values, "ns")


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the last row of a timer's file."""
    text, notes = source.text(), list[str]()
    lines, refuse = text.split("\n"), line_refuser(source, options, text, notes)
    names = lines[0].strip().split(",")
    last: dict[str, str] = {}
    line = 0
    for number, row in enumerate(csv.reader(lines[1:]), 2):
        if len(row) == len(names) and build.unit_in(row[-1]):
            last, line = dict(zip(names, row, strict=True)), number
        elif row:
            refuse(number, f"{printable(lines[number - 1])!r}", f"{len(names)} fields")
    if not last:
        return {}
    unit = build.unit_in(last["duration_unit"]) or "ns"
    return {"": _timer(_numbers(last, line, source), unit, tuple(notes))}


def read_histostats(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read each tag: its intervals' percentiles as histograms, added up."""
    text = source.text()
    unit, unit_from = options.resolve_unit("ns")
    legend = _HISTOSTATS.search(text)
    names = legend[1].split(",") if legend else []
    parts: dict[str, list[Histogram]] = {}
    ends: list[float] = []
    note = "each interval's percentiles made these buckets"
    notes = [f"{note}; --log-histograms keeps the full distribution"]
    refuse = line_refuser(source, options, text, notes)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        row = _interval(line, names, unit)
        if row is not None:
            tag, end, histogram = row
            ends.append(end)
            parts.setdefault(tag, []).extend([] if histogram is None else [histogram])
        else:
            expected = "Tag=…,start,length,count,min,percentiles,max"
            refuse(number, f"{printable(line)!r}", expected)
    facts: dict[str, object] = {
        "tool": "NoSQLBench", "unit": unit, "unit_from": unit_from, "notes": tuple(notes),
        "duration": max(ends, default=0.0) or None,
    }  # fmt: skip
    return {tag: merge_histograms(some).with_run(**facts) for tag, some in parts.items() if some}


def _interval(line: str, names: list[str], unit: str) -> tuple[str, float, Histogram | None] | None:
    """Tag, end and histogram of a row; None where it is corrupt."""
    tag, _, rest = line.partition(",") if line.startswith("Tag=") else ("Tag=", "", line)
    try:
        start, length, count, *values = (float(cell) for cell in rest.strip().split(","))
    except ValueError:
        return None
    if len(values) != len(names) + 2 or values != sorted(values):
        return None
    if not 0 <= count < 1e15 or min(values) < 0:
        return None
    if not count:
        return tag[4:], start + length, None
    low, *inner, high = (build.nanoseconds(value, unit) for value in values)
    points = build.percentiles_in(dict(zip(names, inner, strict=True)))
    histogram = Histogram.from_percentiles(
        list(points), list(points.values()), int(count), build.base_unit(unit),
        reported_stats={"min": low, "max": high},
    )  # fmt: skip
    return tag[4:], start + length, histogram


FORMATS = {
    "nosqlbench": (
        has_match(r"^ +99\.9% <= \S+ (?:nano|micro|milli)?seconds", plain=plain),
        read_console,
    ),
    "nosqlbench-log": (
        has_match(r"\btype=(?:TIMER|GAUGE|HISTOGRAM|METER|COUNTER), name="),
        read_log,
    ),
    "nosqlbench-csv": (
        has_match(r"\At,count,max,mean,min,stddev,(?:.*,)?duration_unit[ \t]*$"),
        read_csv,
    ),
    "nosqlbench-histostats": (has_match(_HISTOSTATS), read_histostats),
}
