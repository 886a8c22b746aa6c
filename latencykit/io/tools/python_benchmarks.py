"""Benchmarks of Python code: the JSON of pyperf and of pytest-benchmark.

pyperf keeps the values of every process, each already divided by the loops of its run;
pytest-benchmark every round where it was saved, else the quartiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    data_from_values,
    distinct,
    in_nanoseconds,
    nanoseconds_of,
)
from latencykit.io.source import Format
from latencykit.io.text import has_json_keys

if TYPE_CHECKING:
    from latencykit.io.source import Data, ReadOptions, Source

__all__ = ["FORMATS"]

_PYPERF_UNITS = {"second": "s", "byte": "none", "integer": "none"}
_PYPERF_KEYS = ("perf_version", "warmups", "calibrate_loops", "values")
_STATS = {"mean": "mean", "std": "stddev", "min": "min", "max": "max"}
_QUARTILES = {25.0: "q1", 50.0: "median", 75.0: "q3"}
_HINT = "only quartiles are saved; --benchmark-save-data keeps every round: the distribution"


def read_pyperf(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every benchmark but calibration runs and warm-ups, as pyperf does."""
    record = jsontext.load(source)
    common: dict[str, Any] = record.get("metadata") or {}
    series: dict[str, Data] = {}
    for benchmark in jsontext.entry(record, "benchmarks", source, list):
        facts: dict[str, Any] = common | (benchmark.get("metadata") or {})
        unit = _PYPERF_UNITS.get(str(facts.get("unit", "second")), "none")
        values: list[float] = []
        loops = 1
        for process in jsontext.entry(benchmark, "runs", source, list):
            own = facts | (process.get("metadata") or {})
            values += process.get("values") or []
            loops = max(loops, int(own.get("loops") or 1) * int(own.get("inner_loops") or 1))
        if not values:
            continue
        run = Run(
            tool="pyperf", version=facts.get("perf_version"), command=facts.get("command"),
            loop="closed", measure="service", corrected="none", connections=1, unit=unit,
            notes=(f"each value is the mean of {loops:,} calls",) if loops > 1 else (),
        )  # fmt: skip
        name = distinct(str(facts.get("name") or ""), series)
        series[name] = data_from_values(nanoseconds_of(values, unit), run)
    return series


def read_pytest(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every benchmark: one value per round, in seconds per call."""
    record = jsontext.load(source)
    benchmarks: list[dict[str, Any]] = jsontext.entry(record, "benchmarks", source, list)
    names = [str(benchmark.get("name")) for benchmark in benchmarks]
    series: dict[str, Data] = {}
    for name, benchmark in zip(names, benchmarks, strict=True):
        stats = jsontext.entry(benchmark, "stats", source)
        iterations = int(stats.get("iterations") or 1)
        run = Run(
            tool="pytest-benchmark", version=record.get("version"), loop="closed",
            measure="service", corrected="none", connections=1, unit="s", unit_from="format",
            notes=(f"each value is the mean of {iterations:,} calls",) if iterations > 1 else (),
        )  # fmt: skip
        label = name if names.count(name) == 1 else str(benchmark.get("fullname", name))
        if stats.get("data"):
            series[label] = data_from_values(nanoseconds_of(stats["data"], "s"), run)
            continue
        reported = in_nanoseconds({kind: stats.get(key) for kind, key in _STATS.items()}, "s")
        points = in_nanoseconds({p: stats.get(key) for p, key in _QUARTILES.items()}, "s")
        run = run.with_notes(_HINT)
        series[label] = data_from_points(points, stats.get("rounds"), reported, run)
    return series


FORMATS = (
    Format(
        "pyperf", "pyperf (JSON)", "samples", (".json",),
        has_json_keys(*(("benchmarks", "runs", key) for key in _PYPERF_KEYS)), read_pyperf,
        example="python -m pyperf timeit -o out.json CODE",
    ),
    Format(
        "pytest-benchmark", "pytest-benchmark (JSON)", "samples", (".json",),
        has_json_keys(
            ("machine_info", "commit_info"), ("benchmarks", "fullname", "stats", "rounds")
        ),
        read_pytest, unit="s", example="pytest --benchmark-json=out.json --benchmark-save-data",
    ),
)  # fmt: skip
