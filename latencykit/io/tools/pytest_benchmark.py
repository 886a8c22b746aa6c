"""pytest-benchmark: its JSON; every round where it was saved, else the quartiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_points, data_from_values, in_nanoseconds, nanoseconds_of
from latencykit.io.sniffing import has_json_keys
from latencykit.io.source import Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, ReadOptions, Source

__all__ = ["FORMATS"]

_STATS = {"mean": "mean", "std": "stddev", "min": "min", "max": "max"}
_QUARTILES = {25.0: "q1", 50.0: "median", 75.0: "q3"}
_HINT = "only quartiles are saved; --benchmark-save-data keeps every round: the distribution"


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
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
        "pytest-benchmark", "pytest-benchmark (JSON)", "samples", (".json",),
        has_json_keys(
            ("machine_info", "commit_info"), ("benchmarks", "fullname", "stats", "rounds")
        ),
        read, unit="s", example="pytest --benchmark-json=out.json --benchmark-save-data",
    ),
)  # fmt: skip
