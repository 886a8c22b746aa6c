"""Benchmarks of Python code: the JSON of pyperf and of pytest-benchmark, and what they print.

pyperf keeps the values of every process, each already divided by the loops of its run;
pytest-benchmark every round where it was saved, else the quartiles.
"""

from __future__ import annotations

import re
from typing import Any

from latencykit._text import printable
from latencykit.core.run import CLOSED, Run
from latencykit.io import json_text
from latencykit.io.build import data_from_statistics, data_from_values, nanoseconds_of
from latencykit.io.source import ReadOptions, Series, Source
from latencykit.io.text_reports import durations, fact, has_match, line_numbers, plain

_RUN = Run(**CLOSED, connections=1)
_PYPERF_UNITS = {"second": "s", "byte": "none", "integer": "none"}
_PYPERF_TIME = r"\d+(?:\.\d+)? (?:ns|us|ms|sec)"
_PYPERF_MEAN = re.compile(
    rf"^(?:(?P<name>\S[^\n:]*): )?Mean \+- std dev: (?P<mean>{_PYPERF_TIME}) \+- "
    rf"(?P<std>{_PYPERF_TIME})$",
    re.MULTILINE,
)
_PYPERF_ROW = re.compile(rf"^ *(\d+)th percentile: +({_PYPERF_TIME}) \(", re.MULTILINE)
_PYPERF_TITLE = r"([^\n]+)\n[-=]{3,}\n\s*\Z"
_PYTEST_HEADER = re.compile(
    r"Name \(time in (?P<unit>ns|us|µs|ms|s)\) +(?P<columns>(?:Min|Max|Mean|StdDev|Median)\b.*)"
)
_PYTEST_HINT = (
    "the table keeps no distribution; --benchmark-json=out.json --benchmark-save-data does"
)
_HINT = "only quartiles are saved; --benchmark-save-data keeps every round: the distribution"


def _mean_note(calls: int) -> tuple[str, ...]:
    return (f"each value is the mean of {calls:,} calls",) if calls > 1 else ()


def read_pyperf(source: Source, options: ReadOptions) -> Series:
    """Read every benchmark but calibration runs and warm-ups, as pyperf does."""
    record = json_text.load(source)
    common: dict[str, object] = record.get("metadata") or {}
    for benchmark in json_text.entry(record, "benchmarks", source, list):
        facts: dict[str, Any] = common | (benchmark.get("metadata") or {})
        unit = _PYPERF_UNITS.get(str(facts.get("unit", "second")), "none")
        values: list[float] = []
        loops = 1
        for process in json_text.entry(benchmark, "runs", source, list):
            own = facts | (process.get("metadata") or {})
            values += process.get("values") or []
            loops = max(loops, int(own.get("loops") or 1) * int(own.get("inner_loops") or 1))
        if not values:
            continue
        run = _RUN.replace(
            tool="pyperf", version=facts.get("perf_version"), command=facts.get("command"),
            unit=unit, values_are_runs=True, notes=_mean_note(loops),
        )  # fmt: skip
        yield str(facts.get("name") or ""), data_from_values(nanoseconds_of(values, unit), run)


def read_pytest(source: Source, options: ReadOptions) -> Series:
    """Read every benchmark: one value per round, in seconds per call."""
    record = json_text.load(source)
    benchmarks: list[dict[str, object]] = json_text.entry(record, "benchmarks", source, list)
    names = [str(benchmark.get("name")) for benchmark in benchmarks]
    for name, benchmark in zip(names, benchmarks, strict=True):
        stats = json_text.entry(benchmark, "stats", source)
        iterations = int(stats.get("iterations") or 1)
        run = _RUN.replace(
            tool="pytest-benchmark", version=record.get("version"), unit="s", unit_from="format",
            notes=_mean_note(iterations),
        )  # fmt: skip
        label = name if names.count(name) == 1 else str(benchmark.get("fullname", name))
        if stats.get("data"):
            yield label, data_from_values(nanoseconds_of(stats["data"], "s"), run)
            continue
        run = run.with_notes(_HINT)
        yield label, data_from_statistics(stats, stats.get("rounds"), run, "s")


def read_pyperf_text(source: Source, options: ReadOptions) -> Series:
    """Read the mean of every benchmark, and what ``--stats`` prints above it."""
    text = plain(source.text())
    line_at = line_numbers(text)
    begin = 0
    means = [*_PYPERF_MEAN.finditer(text)]
    ends = [*(mean.start() for mean in means[1:]), len(text)]
    for mean, end in zip(means, ends, strict=False):
        report, name = text[begin : mean.end()], mean["name"]
        if "Total duration: " in report and "percentile: " not in report:  # amid the statistics
            stop = text.find("Total duration: ", mean.end(), end)
            if stop < 0 and end < len(text):
                continue  # a run with --stats prints the mean once more, below them
            first = text.index("Total duration: ", begin)
            name = name or fact(text[max(0, first - 300) : first], _PYPERF_TITLE, str)
            end = end if stop < 0 else stop
            report, begin = text[begin:end], end
        else:
            begin = mean.end()
        line = line_at(mean.start())
        cells = {"mean": mean["mean"], "std": mean["std"]}
        cells |= {f"p{p}": value for p, value in _PYPERF_ROW.findall(report)}
        times = durations(cells, source, "12.2 us", line=line)
        count = fact(report, r"^Total number of values: (\d+)", int)
        hint = "pyperf -o out.json keeps every value: the distribution"
        run = _RUN.replace(tool="pyperf", notes=(hint,))
        yield name or "", data_from_statistics(times, count, run)


def read_pytest_text(source: Source, options: ReadOptions) -> Series:
    """Read every row of every table that pytest-benchmark prints."""
    columns: list[str] = []
    unit, cells = "s", re.compile("")
    for number, line in enumerate(plain(source.text()).split("\n"), 1):
        if header := _PYTEST_HEADER.match(line):
            unit = header["unit"].replace("µ", "u")
            columns = re.sub(r"\([^)]*\)", "", header["columns"]).split()
            cells = re.compile(
                r"(?P<name>\S.*?)" + r"\s+([-+\d.,;einfa]+)(?: \([^)]*\))?" * len(columns) + r"\s*"
            )
        elif not line.strip():
            columns = []
        elif columns and not line.startswith("--"):
            match = cells.fullmatch(line)
            values = match.groups()[1:] if match else ()
            row = {k: v.replace(",", "") for k, v in zip(columns, values, strict=False)}
            times: dict[str, str] = {
                key: row[key] for key in ("Min", "Max", "Mean", "StdDev", "Median") if key in row
            }
            if not times or not all(re.fullmatch(r"\d+(?:\.\d+)?", v) for v in times.values()):
                seen = f"{printable(line.strip(), 50)!r}"
                raise source.corrupt(number, seen, "a name and its times", "run pytest again")
            iterations = int(row.get("Iterations") or 1)
            notes = (_PYTEST_HINT, *_mean_note(iterations))
            run = _RUN.replace(tool="pytest-benchmark", unit=unit, notes=notes)
            count = int(row["Rounds"]) if row.get("Rounds", "").isdigit() else None
            yield match["name"] if match else "", data_from_statistics(times, count, run, unit)


FORMATS = {
    "pyperf": read_pyperf,
    "pytest-benchmark": read_pytest,
    "pyperf-text": (has_match(_PYPERF_MEAN), read_pyperf_text),
    "pytest-benchmark-text": (has_match(rf"^{_PYTEST_HEADER.pattern}"), read_pytest_text),
}
