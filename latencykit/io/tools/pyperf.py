"""pyperf: the values of every process; each is already divided by the loops of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_values, distinct, nanoseconds_of
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_UNITS = {"second": "s", "byte": "none", "integer": "none"}


def sniff(head: Head) -> Confidence:
    """Tell the keys: pyperf writes one line, its metadata may come late."""
    found = jsontext.has_keys(head, "benchmarks", "runs") and any(
        f'"{key}"' in head.text for key in ("perf_version", "warmups", "calibrate_loops", "values")
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every benchmark of the suite; calibration runs and warm-ups are left out, as pyperf does."""
    record = jsontext.load(source)
    common: dict[str, Any] = record.get("metadata") or {}
    found: dict[str, Data] = {}
    for benchmark in jsontext.entry(record, "benchmarks", source, list):
        facts: dict[str, Any] = common | (benchmark.get("metadata") or {})
        unit = _UNITS.get(str(facts.get("unit", "second")), "none")
        values: list[float] = []
        loops = 1
        for run in jsontext.entry(benchmark, "runs", source, list):
            own = facts | (run.get("metadata") or {})
            values += run.get("values") or []
            loops = max(loops, int(own.get("loops") or 1) * int(own.get("inner_loops") or 1))
        if not values:
            continue
        notes = (f"each value is the mean of {loops:,} calls",) if loops > 1 else ()
        known = Run(
            tool="pyperf", version=facts.get("perf_version"), command=facts.get("command"), loop="closed", measure="service",
            corrected="none", connections=1, unit=unit, notes=notes,
        )  # fmt: skip
        name = distinct(str(facts.get("name") or ""), found)
        found[name] = data_from_values(nanoseconds_of(values, unit), known)
    return found


FORMATS = (
    Format(
        name="pyperf",
        title="pyperf (JSON)",
        level="samples",
        suffixes=(".json",),
        sniff=sniff,
        read=read,
        example="python -m pyperf timeit -o out.json CODE",
    ),
)
