"""pyperf: the values of every process; each is already divided by the loops of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_values, distinct, nanoseconds_of
from latencykit.io.sniffing import has_json_keys
from latencykit.io.source import Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, ReadOptions, Source

__all__ = ["FORMATS"]

_UNITS = {"second": "s", "byte": "none", "integer": "none"}
_KEYS = ("perf_version", "warmups", "calibrate_loops", "values")


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every benchmark but calibration runs and warm-ups, as pyperf does."""
    record = jsontext.load(source)
    common: dict[str, Any] = record.get("metadata") or {}
    series: dict[str, Data] = {}
    for benchmark in jsontext.entry(record, "benchmarks", source, list):
        facts: dict[str, Any] = common | (benchmark.get("metadata") or {})
        unit = _UNITS.get(str(facts.get("unit", "second")), "none")
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


FORMATS = (
    Format(
        "pyperf", "pyperf (JSON)", "samples", (".json",),
        has_json_keys(*(("benchmarks", "runs", key) for key in _KEYS)), read,
        example="python -m pyperf timeit -o out.json CODE",
    ),
)  # fmt: skip
