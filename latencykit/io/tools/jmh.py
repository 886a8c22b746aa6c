"""JMH: JSON and CSV results.

In sample mode JMH keeps every sampled call, and its JSON the counts of each value; single-shot mode keeps every shot.
Throughput and average time are means of an iteration.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_points, distinct, nanoseconds, nanoseconds_of
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_UNITS = {
    "ns": ("ns", 1),
    "us": ("us", 1),
    "ms": ("ms", 1),
    "s": ("s", 1),
    "min": ("s", 60),
    "hr": ("s", 3600),
    "day": ("s", 86400),
}
_HINT = "means of iterations; run JMH with -bm sample for the distribution of single calls"
_PERCENTILE_ROW = re.compile(r"(.+):(?:[^:]*·)?p(\d(?:\.\d+)?)$")


def sniff_json(head: Head) -> Confidence:
    """Tell the keys of the first result."""
    found = jsontext.has_keys(head, "benchmark", "mode", "primaryMetric") or jsontext.has_keys(
        head, "jmhVersion", "benchmark"
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every benchmark with its parameters as a series."""
    results = jsontext.load(source)
    if not isinstance(results, list):
        raise source.corrupt(1, "this is no list of results", "what JMH writes with -rf json", "")
    modes: dict[str, set[str]] = {}
    labels = [
        _label(str(jsontext.entry(one, "benchmark", source, str)), one.get("params") or {})
        for one in results
    ]
    for label, one in zip(labels, results, strict=True):
        modes.setdefault(label, set()).add(str(one.get("mode")))
    found: dict[str, Data] = {}
    for label, one in zip(labels, results, strict=True):
        name = label if len(modes[label]) == 1 else f"{label} ({one.get('mode')})"
        data = _result(one, jsontext.entry(one, "primaryMetric", source))
        if data is None:
            options.report(f"{source.shown}: {name} has no score in a unit of time; left out")
            continue
        found[distinct(name, found)] = data
        for part, metric in (one.get("secondaryMetrics") or {}).items():  # the methods of a @Group
            inner = _result(one, metric) if metric.get("rawDataHistogram") else None
            if inner is not None:
                found[distinct(f"{name}:{part}", found)] = inner
    return found


def _label(benchmark: str, parameters: dict[str, Any]) -> str:
    return " ".join([benchmark, *(f"{name}={value}" for name, value in parameters.items())])


def _unit(score_unit: str) -> tuple[str, int, bool] | None:
    """Unit of time, what to multiply by, and whether it is a throughput; None for what is no time."""
    parts = score_unit.split("/")
    if len(parts) != 2:
        return None
    throughput = parts[0].endswith("ops") or parts[0] == "op"
    found = _UNITS.get(parts[1] if throughput else parts[0])
    return None if found is None else (*found, throughput)


def _result(one: dict[str, Any], metric: dict[str, Any]) -> Data | None:
    """One metric as the richest data type that it holds."""
    kind = _unit(str(metric.get("scoreUnit")))
    score = metric.get("score")
    if kind is None or not isinstance(score, (int, float)):
        return None
    unit, times, throughput = kind
    threads = int(one.get("threads") or 1)
    run = Run(
        tool="JMH", version=one.get("jmhVersion"), loop="closed", measure="service", corrected="none", connections=threads,
        unit=unit,
    )  # fmt: skip
    histogram = metric.get("rawDataHistogram")
    if histogram:
        pairs = np.array(
            [pair for fork in histogram for iteration in fork for pair in iteration], np.float64
        )
        return _exact(pairs[:, 0] * times, pairs[:, 1], score * times, metric, run, times)
    raw = metric.get("rawData")
    if one.get("mode") == "ss" and raw:
        values = np.array([value for fork in raw for value in fork], np.float64)
        batch = int(one.get("measurementBatchSize") or 1)
        noted = run.with_notes(f"each value is one shot of {batch:,} calls") if batch > 1 else run
        return _exact(values * times, np.ones(values.size), score * times, metric, noted, times)
    if throughput:
        return Summary({"mean": nanoseconds(times * threads / score, unit)} if score else {}, {}, _iterations(raw), "ns",
                       run.with_notes("the mean is threads / throughput", _HINT))  # fmt: skip
    return Summary(
        {"mean": nanoseconds(score * times, unit)},
        {},
        _iterations(raw),
        "ns",
        run.with_notes(_HINT),
    )


def _iterations(raw: Any) -> int | None:
    return sum(len(fork) for fork in raw) if isinstance(raw, list) else None


def _exact(
    values: Any, counts: Any, mean: float, metric: dict[str, Any], run: Run, times: int
) -> Histogram:
    """Every value with its count; percentiles read as JMH printed them."""
    given = nanoseconds_of(values, run.unit)
    points, where = np.unique(given, return_inverse=True)
    total = np.zeros(points.size, np.int64)
    np.add.at(total, where.reshape(-1), counts.astype(np.int64))
    table = {
        float(p): v
        for p, v in (metric.get("scorePercentiles") or {}).items()
        if isinstance(v, (int, float))
    }
    shown = [(p, nanoseconds(v * times, run.unit)) for p, v in sorted(table.items()) if v == v]
    reported_percentiles = (tuple(p for p, _ in shown), tuple(v for _, v in shown))
    return Histogram.from_buckets(
        points,
        points,
        total,
        run=run,
        reported_stats={"mean": nanoseconds(mean, run.unit)},
        reported_percentiles=reported_percentiles,
    )


def sniff_csv(head: Head) -> Confidence:
    """Tell the header, in JMH's quotes."""
    return (
        Confidence.CERTAIN
        if re.match(r'"Benchmark"[,;\t]"Mode"[,;\t]"Threads"[,;\t]"Samples"', head.text)
        else Confidence.NO
    )


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every benchmark; the rows of its percentiles (sample mode) belong to it."""
    lines = source.text().splitlines()
    reader = csv.DictReader(lines, delimiter=lines[0][len('"Benchmark"')])
    held: dict[tuple[str, str], dict[str, Any]] = {}
    for row in reader:
        try:
            score, kind = float(row["Score"].replace(",", ".")), _unit(row["Unit"])
            threads, samples = int(row["Threads"]), int(row["Samples"])
        except (ValueError, AttributeError, TypeError, KeyError):
            options.reject(
                source.corrupt(
                    reader.line_num, "a row without a score", "numbers", "--lenient skips the line"
                )
            )
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
        one = held.setdefault(key, {"points": {}, "kind": kind, "threads": threads})
        if part:
            one["points"][round(float(part[2]) * 100, 10)] = score
        else:
            one |= {"score": score, "samples": samples, "kind": kind}
    labels = [label for label, _ in held]
    return {
        label if labels.count(label) == 1 else f"{label} ({mode})": _from_csv(mode, one)
        for (label, mode), one in held.items()
        if "score" in one
    }


def _from_csv(mode: str, one: dict[str, Any]) -> Data:
    unit, times, throughput = one["kind"]
    run = Run(
        tool="JMH",
        loop="closed",
        measure="service",
        corrected="none",
        connections=one["threads"],
        unit=unit,
    )
    if throughput:
        mean = nanoseconds(times * one["threads"] / one["score"], unit)
        return Summary(
            {"mean": mean},
            {},
            one["samples"],
            "ns",
            run.with_notes("the mean is threads / throughput", _HINT),
        )
    mean = nanoseconds(one["score"] * times, unit)
    points = {p: nanoseconds(value * times, unit) for p, value in one["points"].items()}
    if points:
        return data_from_points(points, one["samples"], {"mean": mean}, run)
    hint = "run JMH with -rf json for the distribution of the shots" if mode == "ss" else _HINT
    return Summary({"mean": mean}, {}, one["samples"], "ns", run.with_notes(hint))


FORMATS = (
    Format(
        "jmh-json", "JMH (JSON)", "histogram", (".json",), sniff_json, read_json,
        example="java -jar benchmarks.jar -bm sample -rf json -rff result.json",
    ),
    Format(
        "jmh-csv", "JMH (CSV)", "histogram", (".csv",), sniff_csv, read_csv,
        example="java -jar benchmarks.jar -bm sample -rf csv -rff result.csv",
    ),
)  # fmt: skip
