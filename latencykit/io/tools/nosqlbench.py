"""NoSQLBench, and others whose timers are Dropwizard metrics: the summary, the log, the CSV of a timer, histostats.

Its HDR logs (``--log-histograms``) are interval logs and hold everything. A timer's count and mean are of the whole run;
its percentiles are of the last reporting interval, or of a sample that favours the latest values. Histostats have one row
of percentiles per interval, of every value in it.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

from latencykit.core.histogram import Histogram, merge_histograms
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io.build import distinct, nanoseconds
from latencykit.io.source import Confidence, Format
from latencykit.io.text import plain
from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_HINT = "percentiles of a timer are of its last interval or of a sample; --log-histograms keeps the whole distribution"
_UNITS = {"nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s"}
_STATS = {"min": "min", "max": "max", "mean": "mean", "stddev": "std"}
_POINTS = {
    "median": 50.0,
    "p50": 50.0,
    "p75": 75.0,
    "p90": 90.0,
    "p95": 95.0,
    "p98": 98.0,
    "p99": 99.0,
    "p999": 99.9,
    "p9999": 99.99,
}
_TIMER = re.compile(r"type=TIMER, name=(.{1,500}?), ((?:\w+=[^,\n]+, )+\w+=\S+)\s*$", re.MULTILINE)
_CONSOLE = re.compile(r"^(\S.{0,500}?) *\n((?: +[\w%. -]+? *(?:=|<=) .+\n)+)", re.MULTILINE)
_FACT = re.compile(
    r"^ +([\w%. -]+?) *(?:=|<=) (\d+(?:\.\d+)?(?:E-?\d{1,2})?) (\S+) *$", re.MULTILINE
)
_COUNT = re.compile(r"^ +count = (\d{1,18}) *$")
_CSV = ("t", "count", "max", "mean", "min", "stddev")
_HISTOSTATS = re.compile(
    r"^#\s*Tag,Interval_Start,Interval_Length,count,min,(p[\w,]+),max\s*$", re.MULTILINE
)


def sniff_console(head: Head) -> Confidence:
    """Tell a block of a timer."""
    text = plain(head.text)
    return (
        Confidence.CERTAIN
        if re.search(r"^ +99\.9% <= \S+ (?:nano|micro|milli)?seconds", text, re.MULTILINE)
        else Confidence.NO
    )


def sniff_log(head: Head) -> Confidence:
    """Tell the line of a timer, or of another metric above it."""
    return (
        Confidence.CERTAIN
        if re.search(r"\btype=(?:TIMER|GAUGE|HISTOGRAM|METER|COUNTER), name=", head.text)
        else Confidence.NO
    )


def sniff_csv(head: Head) -> Confidence:
    """Tell the heading of a timer's file."""
    names = head.lines[0].strip().split(",") if head.lines else []
    return (
        Confidence.CERTAIN
        if tuple(names[:6]) == _CSV and names[-1] == "duration_unit"
        else Confidence.NO
    )


def sniff_histostats(head: Head) -> Confidence:
    """Tell the legend."""
    return Confidence.CERTAIN if _HISTOSTATS.search(head.text) else Confidence.NO


def _timer(values: Mapping[str, float], unit: str, notes: tuple[str, ...] = ()) -> Summary:
    """A timer of `values` by the names of their columns."""
    stats = {
        _STATS[name]: nanoseconds(value, unit) for name, value in values.items() if name in _STATS
    }
    points = {
        _POINTS[name]: nanoseconds(value, unit) for name, value in values.items() if name in _POINTS
    }
    run = Run(tool="NoSQLBench", unit=unit, achieved=values.get("mean_rate"), notes=(_HINT, *notes))
    return Summary(stats, dict(sorted(points.items())), int(values.get("count", 0)), "ns", run)


def read_log(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the last line of each timer that counted something."""
    text = source.text()
    found: dict[str, Data] = {}
    for row in _TIMER.finditer(text):
        facts = dict(part.split("=", 1) for part in row[2].split(", "))
        line = text.count("\n", 0, row.start()) + 1
        unit = _UNITS.get(facts.get("duration_unit", ""))
        if unit is None:
            raise source.corrupt(
                line,
                f"duration_unit is {printable(str(facts.get('duration_unit')), 30)}",
                "milliseconds",
                "",
            )
        values = _numbers(facts, line, source)
        if values.get("count"):
            found[row[1]] = _timer(values, unit)
    if not found:
        raise source.corrupt(
            None, "no timer in it counted anything", "a line with type=TIMER", "did the run end?"
        )
    return found


def _numbers(facts: Mapping[str, str], line: int, source: Source) -> dict[str, float]:
    wanted = {*_STATS, *_POINTS, "count", "mean_rate"} & set(facts)
    try:
        return {name: float(facts[name]) for name in wanted}
    except ValueError:
        raise source.corrupt(
            line, "a value of this timer is no number", "count=…, min=…", ""
        ) from None


def read_console(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read each timer of the summary."""
    text = plain(source.text()) + "\n"
    found: dict[str, Data] = {}
    for block in _CONSOLE.finditer(text):
        values = _block(block[2], text.count("\n", 0, block.start(2)) + 1, source)
        if values.get("count") and "max" in values:
            found[distinct(block[1].strip(), found)] = _timer(values, "ns")
    if not found:
        raise source.corrupt(
            None,
            "no timer in it counted anything",
            "blocks of count, min, max, mean, …",
            "did the run end?",
        )
    return found


def _block(text: str, first: int, source: Source) -> dict[str, float]:
    """Values of a timer (ns), its count and its rate."""
    values: dict[str, float] = {}
    for number, line in enumerate(text.split("\n"), first):
        fact, counted = _FACT.match(line), _COUNT.match(line)
        name = (
            ""
            if fact is None
            else f"p{fact[1][:-1].replace('.', '')}"
            if fact[1].endswith("%")
            else fact[1]
        )
        if counted:
            values["count"] = float(counted[1])
        elif fact and name.endswith("rate"):
            values |= {"mean_rate": float(fact[2])} if name == "mean rate" else {}
        elif fact and fact[3] in _UNITS and name in (*_STATS, *_POINTS):
            values[name] = nanoseconds(float(fact[2]), _UNITS[fact[3]])
        elif line.strip() and (fact is None or fact[3] in _UNITS):
            raise source.corrupt(
                number,
                f"{printable(line.strip())!r}",
                "such as 99% <= 23.92 milliseconds",
                "run it again",
            )
    return values


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the last row of a timer's file."""
    text = source.text()
    lines = text.split("\n")
    names = lines[0].strip().split(",")
    last: dict[str, str] = {}
    line, notes = 0, []
    for number, row in enumerate(csv.reader(lines[1:]), 2):
        if len(row) == len(names) and row[-1] in _UNITS:
            last, line = dict(zip(names, row, strict=True)), number
        elif number == len(lines) and row:
            notes.append("the last line is cut; it was left out")
        elif row:
            seen = f"{printable(lines[number - 1])!r}"
            options.reject(
                source.corrupt(number, seen, f"{len(names)} fields", "--lenient skips the line")
            )
    if not last:
        return {}
    return {"": _timer(_numbers(last, line, source), _UNITS[last["duration_unit"]], tuple(notes))}


def read_histostats(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read each tag: its intervals' percentiles as histograms, added up."""
    text = source.text()
    lines = text.split("\n")
    unit, unit_from = options.resolve_unit("ns")
    legend = _HISTOSTATS.search(text)
    names = legend[1].split(",") if legend else []
    parts: dict[str, list[Histogram]] = {}
    ends: list[float] = []
    notes = [
        "each interval's percentiles made these buckets; --log-histograms keeps the whole distribution"
    ]
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        row = _interval(line, names, unit)
        if row is not None:
            ends.append(row[1])
            parts.setdefault(row[0], []).extend([row[2]] if row[2] is not None else [])
        elif number == len(lines):
            notes.append("the last line is cut; it was left out")
        else:
            seen, expected = f"{printable(line)!r}", "Tag=…,start,length,count,min,percentiles,max"
            options.reject(source.corrupt(number, seen, expected, "--lenient skips the line"))
    run: dict[str, Any] = {
        "tool": "NoSQLBench", "unit": unit, "unit_from": unit_from, "duration": max(ends, default=0.0) or None,
        "notes": tuple(notes),
    }  # fmt: skip
    return {tag: merge_histograms(some).with_run(**run) for tag, some in parts.items() if some}


def _interval(line: str, names: list[str], unit: str) -> tuple[str, float, Histogram | None] | None:
    """Tag, end and histogram of a row; None where it is corrupt."""
    tag, _, rest = line.partition(",") if line.startswith("Tag=") else ("Tag=", "", line)
    cells = rest.strip().split(",")
    try:
        start, length, count, *values = (float(cell) for cell in cells)
    except ValueError:
        return None
    if (
        len(values) != len(names) + 2
        or values != sorted(values)
        or not 0 <= count < 1e15
        or min(values) < 0
    ):
        return None
    if not count:
        return tag[4:], start + length, None
    points = {
        _percentile(name): nanoseconds(value, unit)
        for name, value in zip(names, values[1:-1], strict=True)
    }
    reported_stats = {"min": nanoseconds(values[0], unit), "max": nanoseconds(values[-1], unit)}
    whole = "none" if unit == "none" else "ns"
    return (
        tag[4:],
        start + length,
        Histogram.from_percentiles(
            list(points), list(points.values()), int(count), whole, reported_stats=reported_stats
        ),
    )


def _percentile(name: str) -> float:
    """Return 99.9 for ``p999``."""
    digits = name[1:]
    return float(digits if len(digits) < 3 else f"{digits[:2]}.{digits[2:]}")


FORMATS = (
    Format(
        "nosqlbench", "NoSQLBench summary (Dropwizard console)", "summary", (".txt",), sniff_console, read_console,
        example="nb5 WORKLOAD --report-summary-to out.txt",
    ),
    Format(
        "nosqlbench-log", "NoSQLBench log (Dropwizard SLF4J)", "summary", (".log",), sniff_log, read_log,
        example="nb5 WORKLOAD ; ls logs/scenario_*.log",
    ),
    Format(
        "nosqlbench-csv", "NoSQLBench CSV (Dropwizard)", "summary", (".csv",), sniff_csv, read_csv,
        example="nb5 WORKLOAD --report-csv-to metrics   # writes metrics/*.csv",
    ),
    Format(
        "nosqlbench-histostats", "NoSQLBench histostats", "histogram", (".csv", ".log"), sniff_histostats, read_histostats,
        unit="ns", example="nb5 WORKLOAD --log-histostats stats.csv",
    ),
)  # fmt: skip
