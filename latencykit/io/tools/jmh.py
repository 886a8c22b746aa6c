"""JMH: JSON and CSV results; what it prints is read by `jmh_text`.

In sample mode JMH keeps every sampled call, and its JSON the counts of each value; single-shot mode
keeps every shot. Throughput and average time are means of an iteration.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.jackknife import student_quantile
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io import build, json_text
from latencykit.io.sniffing import has_json_keys, has_match
from latencykit.io.source import Data, Format, ReadOptions, Series, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from latencykit._typing import JSONObject

_UNITS = {
    "ns": ("ns", 1), "us": ("us", 1), "ms": ("ms", 1), "s": ("s", 1), "min": ("s", 60),
    "hr": ("s", 3600), "day": ("s", 86400),
}  # fmt: skip
_RUN = Run(tool="JMH", loop="closed", measure="service", corrected="none")
_FORKS = 3  # that show how processes differ
_INVERSE = "the mean is threads / throughput"
_HINT = "means of iterations; run JMH with -bm sample for the distribution of single calls"
_ONE_THREAD = "the threads are not stated: one is assumed, as is the default"
FINER = "JMH prints numbers in a finer unit (-tu ns)"
"""What is to be done about scores that are orders of magnitude."""
_PERCENTILE_ROW = re.compile(r"(.+):(?:[^:]*·)?p(\d(?:\.\d+)?)$")


def read_json(source: Source, options: ReadOptions) -> Series:
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
    for label, result in zip(labels, results, strict=True):
        name = label if len(modes[label]) == 1 else f"{label} ({result.get('mode')})"
        data = _data(result, json_text.entry(result, "primaryMetric", source))
        if data is None:
            options.report(f"{source.shown}: {name} has no score in a unit of time; left out")
            continue
        yield name, data
        # The methods of a @Group.
        for part, metric in (result.get("secondaryMetrics") or {}).items():
            inner = _data(result, metric) if metric.get("rawDataHistogram") else None
            if inner is not None:
                yield f"{name}:{part}", inner


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
    run = run.with_notes(*([_INVERSE] if throughput else []), _HINT)
    forks = [fork for fork in raw if fork] if isinstance(raw, list) else []
    count, error = sum(map(len, forks)) or None, metric.get("scoreError")
    stats = _mean(score, kind, threads, error if isinstance(error, float) else None, count)
    # Iterations of one fork share its compiled code: with few forks their spread is all there is.
    means = [sum(fork) / len(fork) for fork in forks] if len(forks) >= _FORKS else []
    runs = tuple(Summary(_mean(mean, kind, threads), {}, None, "ns", run) for mean in means)
    return Summary(stats, {}, count, "ns", run, runs)


def _mean(
    score: float, kind: tuple[str, int, bool], threads: int, error: float | None = None,
    count: int | None = None,
) -> dict[str, float]:  # fmt: skip
    """The mean time of a call, and its standard error; of a throughput: threads / throughput.

    JMH states half of the interval that has a confidence of 99.9 %.
    """
    unit, factor, throughput = kind
    if throughput and not score:
        return {}
    stats = {"mean": build.nanoseconds(factor * (threads / score if throughput else score), unit)}
    if score and error is not None and error > 0 and count is not None and count > 1:
        relative = error / score / student_quantile(0.999, count - 1)
        stats["standard error"] = stats["mean"] * relative
    return stats


def _exact(
    values: Any, counts: Any, mean: float, metric: JSONObject, run: Run, factor: int
) -> Histogram:
    """Every value with its count; percentiles read as JMH printed them."""
    points, total = build.added_up(build.nanoseconds_of(values, run.unit), counts.astype(np.int64))
    percentiles = sorted(
        (float(p), build.nanoseconds(value * factor, run.unit))
        for p, value in (metric.get("scorePercentiles") or {}).items()
        if isinstance(value, (int, float)) and value == value
    )
    return Histogram.from_buckets(
        points, points, total, run=run, reported_stats={"mean": build.nanoseconds(mean, run.unit)},
        reported_percentiles=(tuple(p for p, _ in percentiles), tuple(v for _, v in percentiles)),
    )  # fmt: skip


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every benchmark; the rows of its percentiles (sample mode) belong to it."""
    lines = source.text().splitlines()
    reader = csv.DictReader(lines, delimiter=lines[0][len('"Benchmark"')])
    return of_rows(((reader.line_num, row) for row in reader), source, options)


def of_rows(
    rows: Iterable[tuple[int, Mapping[str, Any]]], source: Source, options: ReadOptions
) -> dict[str, Data]:
    """Return the series of the rows of a table, by the names of the CSV's columns.

    Of a score that is only an order of magnitude, that is in the column ``Rough``.
    """
    results: dict[tuple[str, str], dict[str, Any]] = {}
    latest: dict[tuple[str, str], tuple[str, str]] = {}
    repeats: Counter[tuple[str, str]] = Counter()
    for line, row in rows:
        try:
            name, kind, rough = row["Benchmark"], _unit(row["Unit"]), row.get("Rough")
            score = 0.0 if rough else float(row["Score"].replace(",", "."))
            error = float((row.get("Score Error (99.9%)") or "nan").replace(",", "."))
            threads, samples = (
                None if row[key] is None else int(row[key]) for key in ("Threads", "Samples")
            )
            part = _PERCENTILE_ROW.match(name)
            whole = kind is not None or (not part and (":" in name or "/" in row["Unit"]))
        except (ValueError, AttributeError, TypeError, KeyError):
            whole = False
        if not whole:
            options.refuse(source, line, "a row without a score", "numbers")
            continue
        if kind is None or score != score or (part is None and "·" in name):  # of a profiler
            if ":" not in name:
                options.report(f"{source.shown}: {name} has no score in a unit of time; left out")
            continue
        label = _label(part[1] if part else name, _parameters(row))
        first = (label, row["Mode"])
        key = latest.get(first, first)
        if part is None and "samples" in results.get(key, {}):  # another one of that name
            repeats[first] += 1
            key = (f"{label} ({repeats[first] + 1})", row["Mode"])
        latest[first] = key
        result = results.setdefault(key, {"points": {}, "rough": {}, "kind": kind})
        if part is None:
            result |= {"threads": threads, "samples": samples, "kind": kind, "error": error}
        point = round(float(part[2]) * 100, 10) if part else "mean"
        if rough:
            result["rough"][point] = f"{rough} {row['Unit']}"
        else:
            result["points"][point] = score
    modes = Counter(label for label, _ in results)
    return {
        label if modes[label] == 1 else f"{label} ({mode})": _result(result, mode)
        for (label, mode), result in results.items()
    }


def _parameters(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        name[7:]: value
        for name, value in row.items()
        if name and name.startswith("Param: ") and value
    }


def _result(result: Mapping[str, Any], mode: str) -> Data:
    """What the rows of one benchmark amount to."""
    (unit, factor, throughput), threads = result["kind"], result.get("threads")
    points, count = dict(result["points"]), result.get("samples")
    score = points.pop("mean", None)
    stats = {}
    if score is not None:
        stats = _mean(score, result["kind"], threads or 1, result.get("error"), count)
    run = _RUN.replace(connections=threads, unit=unit)
    if result["rough"]:
        rough = (
            f"{point if point == 'mean' else f'p{point:g}'} ≈ {value}"
            for point, value in result["rough"].items()
        )
        run = run.with_notes(f"orders of magnitude, not numbers: {', '.join(rough)}; {FINER}")
    if throughput:
        inverse = _INVERSE if threads else f"{_INVERSE}; {_ONE_THREAD}"
        return Summary(stats, {}, count, "ns", run.with_notes(inverse, _HINT))
    if points:
        points = {p: value * factor for p, value in points.items()}
        return build.data_from_points(build.in_nanoseconds(points, unit), count, stats, run)
    shots = "run JMH with -rf json for the distribution of the shots"
    return Summary(stats, {}, count, "ns", run.with_notes(shots if mode == "ss" else _HINT))


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
)  # fmt: skip
