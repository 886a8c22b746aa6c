"""pytest-benchmark: its JSON; every round where it was saved, else the quartiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_points, data_from_values, nanoseconds, nanoseconds_of
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_HINT = "only quartiles are saved; --benchmark-save-data keeps every round: the distribution"


def sniff(head: Head) -> Confidence:
    """Tell the keys at the beginning of the report."""
    found = jsontext.has_keys(head, "machine_info", "commit_info") or jsontext.has_keys(
        head, "benchmarks", "fullname", "stats", "rounds"
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every benchmark: one value per round, in seconds a call."""
    record = jsontext.load(source)
    benchmarks: list[dict[str, Any]] = jsontext.entry(record, "benchmarks", source, list)
    names = [str(one.get("name")) for one in benchmarks]
    found: dict[str, Data] = {}
    for name, benchmark in zip(names, benchmarks, strict=True):
        stats = jsontext.entry(benchmark, "stats", source)
        iterations = int(stats.get("iterations") or 1)
        run = Run(
            tool="pytest-benchmark", version=record.get("version"), loop="closed", measure="service", corrected="none",
            connections=1, unit="s", unit_from="format",
            notes=(f"each value is the mean of {iterations:,} calls",) if iterations > 1 else (),
        )  # fmt: skip
        label = name if names.count(name) == 1 else str(benchmark.get("fullname", name))
        if stats.get("data"):
            found[label] = data_from_values(nanoseconds_of(stats["data"], "s"), run)
            continue
        reported_stats = {"mean": "mean", "std": "stddev", "min": "min", "max": "max"}
        held = {
            ours: nanoseconds(stats[theirs], "s")
            for ours, theirs in reported_stats.items()
            if theirs in stats
        }
        quartiles = {25.0: "q1", 50.0: "median", 75.0: "q3"}
        points = {p: nanoseconds(stats[key], "s") for p, key in quartiles.items() if key in stats}
        found[label] = data_from_points(points, stats.get("rounds"), held, run.with_notes(_HINT))
    return found


FORMATS = (
    Format(
        name="pytest-benchmark",
        title="pytest-benchmark (JSON)",
        level="samples",
        suffixes=(".json",),
        sniff=sniff,
        read=read,
        unit="s",
        example="pytest --benchmark-json=out.json --benchmark-save-data",
    ),
)
