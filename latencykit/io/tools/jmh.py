"""JMH: JSON and CSV results, and the table that it prints.

In sample mode JMH keeps every sampled call, and its JSON the counts of each value; single-shot mode
keeps every shot. Throughput and average time are means of an iteration.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._text import printable
from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io import json_text
from latencykit.io.build import (
    added_up,
    data_from_points,
    distinct,
    in_nanoseconds,
    nanoseconds,
    nanoseconds_of,
)
from latencykit.io.sniffing import has_json_keys, has_match
from latencykit.io.source import Format, refuse_line
from latencykit.io.text_reports import below, fact, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from latencykit._typing import JSONObject
    from latencykit.io.source import Data, ReadOptions, Source

_UNITS = {
    "ns": ("ns", 1), "us": ("us", 1), "ms": ("ms", 1), "s": ("s", 1), "min": ("s", 60),
    "hr": ("s", 3600), "day": ("s", 86400),
}  # fmt: skip
_RUN = Run(tool="JMH", loop="closed", measure="service", corrected="none")
_INVERSE = "the mean is threads / throughput"
_HINT = "means of iterations; run JMH with -bm sample for the distribution of single calls"
_PERCENTILE_ROW = re.compile(r"(.+):(?:[^:]*·)?p(\d(?:\.\d+)?)$")


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every benchmark with its parameters as a series."""
    results = json_text.load(source)
    if not isinstance(results, list):
        raise source.corrupt(1, "not a list of results", "what JMH writes with -rf json")
    modes: dict[str, set[str]] = {}
    labels = [
        _label(str(json_text.entry(result, "benchmark", source, str)), result.get("params") or {})
        for result in results
    ]
    for label, result in zip(labels, results, strict=True):
        modes.setdefault(label, set()).add(str(result.get("mode")))
    series: dict[str, Data] = {}
    for label, result in zip(labels, results, strict=True):
        name = label if len(modes[label]) == 1 else f"{label} ({result.get('mode')})"
        data = _data(result, json_text.entry(result, "primaryMetric", source))
        if data is None:
            options.report(f"{source.shown}: {name} has no score in a unit of time; left out")
            continue
        series[distinct(name, series)] = data
        # The methods of a @Group.
        for part, metric in (result.get("secondaryMetrics") or {}).items():
            inner = _data(result, metric) if metric.get("rawDataHistogram") else None
            if inner is not None:
                series[distinct(f"{name}:{part}", series)] = inner
    return series


def _label(benchmark: str, parameters: JSONObject) -> str:
    return " ".join([benchmark, *(f"{name}={value}" for name, value in parameters.items())])


def _unit(score_unit: str) -> tuple[str, int, bool] | None:
    """Unit of time, its factor, and whether it is a throughput; None for another unit."""
    parts = score_unit.split("/")
    if len(parts) != 2:
        return None
    throughput = parts[0].endswith("ops") or parts[0] == "op"
    unit = _UNITS.get(parts[1] if throughput else parts[0])
    return None if unit is None else (*unit, throughput)


def _data(result: JSONObject, metric: JSONObject) -> Data | None:
    """One metric as the richest data type that its values allow."""
    kind = _unit(str(metric.get("scoreUnit")))
    score = metric.get("score")
    if kind is None or not isinstance(score, (int, float)):
        return None
    unit, factor, throughput = kind
    threads = int(result.get("threads") or 1)
    run = _RUN.replace(version=result.get("jmhVersion"), connections=threads, unit=unit)
    forks, raw = metric.get("rawDataHistogram"), metric.get("rawData")
    if forks:
        pairs = [pair for fork in forks for iteration in fork for pair in iteration]
        values, counts = np.array(pairs, np.float64)[:, :2].T
        return _exact(values * factor, counts, score * factor, metric, run, factor)
    if result.get("mode") == "ss" and raw:
        values = np.array([value for fork in raw for value in fork], np.float64)
        batch = int(result.get("measurementBatchSize") or 1)
        if batch > 1:
            run = run.with_notes(f"each value is one shot of {batch:,} calls")
        return _exact(values * factor, np.ones(values.size), score * factor, metric, run, factor)
    count = sum(len(fork) for fork in raw) if isinstance(raw, list) else None
    run = run.with_notes(*([_INVERSE] if throughput else []), _HINT)
    return Summary(_mean(score, kind, threads), {}, count, "ns", run)


def _mean(score: float, kind: tuple[str, int, bool], threads: int) -> dict[str, float]:
    """The mean time of a call; that of a throughput is threads / throughput."""
    unit, factor, throughput = kind
    if throughput:
        return {"mean": nanoseconds(factor * threads / score, unit)} if score else {}
    return {"mean": nanoseconds(score * factor, unit)}


def _exact(
    values: Any, counts: Any, mean: float, metric: JSONObject, run: Run, factor: int
) -> Histogram:
    """Every value with its count; percentiles read as JMH printed them."""
    points, total = added_up(nanoseconds_of(values, run.unit), counts.astype(np.int64))
    percentiles = sorted(
        (float(p), nanoseconds(value * factor, run.unit))
        for p, value in (metric.get("scorePercentiles") or {}).items()
        if isinstance(value, (int, float)) and value == value
    )
    return Histogram.from_buckets(
        points, points, total, run=run, reported_stats={"mean": nanoseconds(mean, run.unit)},
        reported_percentiles=(tuple(p for p, _ in percentiles), tuple(v for _, v in percentiles)),
    )  # fmt: skip


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every benchmark; the rows of its percentiles (sample mode) belong to it."""
    lines = source.text().splitlines()
    reader = csv.DictReader(lines, delimiter=lines[0][len('"Benchmark"')])
    return _of_rows(((reader.line_num, row) for row in reader), source, options)


def _of_rows(
    rows: Iterable[tuple[int, Mapping[str, Any]]], source: Source, options: ReadOptions
) -> dict[str, Data]:
    """The series of the rows of a table, by the names of the CSV's columns."""
    results: dict[tuple[str, str], dict[str, Any]] = {}
    for line, row in rows:
        try:
            score, kind = float(row["Score"].replace(",", ".")), _unit(row["Unit"])
            threads, samples = int(row["Threads"]), int(row["Samples"])
        except (ValueError, AttributeError, TypeError, KeyError):
            refuse_line(source, options, line, "a row without a score", "numbers")
            continue
        if kind is None:
            continue
        parameters = {
            name[7:]: value
            for name, value in row.items()
            if name and name.startswith("Param: ") and value
        }
        part = _PERCENTILE_ROW.match(row["Benchmark"])
        key = (_label(part[1] if part else row["Benchmark"], parameters), row["Mode"])
        result = results.setdefault(key, {"points": {}, "kind": kind, "threads": threads})
        if part:
            result["points"][round(float(part[2]) * 100, 10)] = score
        else:
            result |= {"score": score, "samples": samples, "kind": kind}
    labels = [label for label, _ in results]
    series: dict[str, Data] = {}
    for (label, mode), result in results.items():
        if "score" not in result:
            continue
        unit, factor, throughput = result["kind"]
        count = result["samples"]
        run = _RUN.replace(connections=result["threads"], unit=unit)
        stats = _mean(result["score"], result["kind"], result["threads"])
        points = {p: value * factor for p, value in result["points"].items()}
        if throughput:
            data: Data = Summary(stats, {}, count, "ns", run.with_notes(_INVERSE, _HINT))
        elif points:
            data = data_from_points(in_nanoseconds(points, unit), count, stats, run)
        else:
            shots = "run JMH with -rf json for the distribution of the shots"
            hint = shots if mode == "ss" else _HINT
            data = Summary(stats, {}, count, "ns", run.with_notes(hint))
        series[label if labels.count(label) == 1 else f"{label} ({mode})"] = data
    return series


# ------------------------------------------------------------
# The table that JMH prints at its end.

_HEADING = re.compile(
    r"^Benchmark +((?:\(\w+\) +)*)Mode +(?:Cnt|Samples) +Score(?: +(?:Score e|E)rror)?"
    r" +Units?[ \t]*$",
    re.MULTILINE,
)
_ROW = re.compile(
    r"(?P<name>\S+)(?P<parameters>(?: +\S+)*?) +(?P<mode>thrpt|avgt|sample|ss)"
    r"(?: +(?P<samples>\d+))? +(?:≈ *)?(?P<score>[\d.,]+(?P<power>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)"
    r"(?: +\S+ +[\d.,]+\S*)? +(?P<unit>\S+/\S+)"
)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the last table; everything above it are parts of these runs."""
    text = plain(source.text())
    headings = list(_HEADING.finditer(text))
    if not headings:
        seen = "the table of results is missing"
        raise source.corrupt(None, seen, "what JMH prints at its end", "did JMH run to its end?")
    names = re.findall(r"\w+", headings[-1][1])
    threads = fact(text, r"^# Threads: (\d+) thread", int) or 1

    def rows() -> Iterator[tuple[int, Mapping[str, Any]]]:
        for number, line in below(text, headings[-1][0]):
            row = _ROW.match(line)
            values = row["parameters"].split() if row else []
            if row is None or len(values) != len(names):
                seen = f"{printable(line.strip(), 50)!r}"
                refuse_line(source, options, number, seen, "a row of JMH's table")
                continue
            # What is below a thousandth is printed as a power of ten.
            score = f"1e{row['power'].translate(_RAISED)}" if row["power"] else row["score"]
            given = {f"Param: {name}": value for name, value in zip(names, values, strict=True)}
            yield (
                number,
                given | {
                    "Benchmark": row["name"], "Mode": row["mode"], "Threads": threads,
                    "Samples": row["samples"] or 1, "Score": score, "Unit": row["unit"],
                },
            )  # fmt: skip

    version = fact(text, r"^# JMH version: (\S+)", str)
    series = _of_rows(rows(), source, options)
    return {name: data.with_run(version=version) for name, data in series.items()}


FORMATS = (
    Format(
        "jmh-json", "JMH (JSON)", "histogram", (".json",),
        has_json_keys(("benchmark", "mode", "primaryMetric"), ("jmhVersion", "benchmark")),
        read_json, example="java -jar benchmarks.jar -bm sample -rf json -rff result.json",
    ),
    Format(
        "jmh-csv", "JMH (CSV)", "histogram", (".csv",),
        has_match(r'\A"Benchmark"[,;\t]"Mode"[,;\t]"Threads"[,;\t]"Samples"'), read_csv,
        example="java -jar benchmarks.jar -bm sample -rf csv -rff result.csv",
    ),
    Format(
        "jmh", "JMH (text)", "histogram", (".txt",),
        has_match(rf"^# JMH version: |{_HEADING.pattern}", plain=plain), read_text,
        example="java -jar benchmarks.jar -bm sample > out.txt",
    ),
)  # fmt: skip
