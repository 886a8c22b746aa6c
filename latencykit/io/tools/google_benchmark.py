"""Google Benchmark: its JSON. A repetition gives the mean of its iterations, not single calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit._text import format_items
from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import data_from_points, data_from_values, nanoseconds_of
from latencykit.io.sniffing import has_json_keys
from latencykit.io.source import Format
from latencykit.io.timestamps import epoch_seconds
from latencykit.units import format_count

if TYPE_CHECKING:
    from latencykit.io.source import Data, ReadOptions, Source

_HINT = "Google Benchmark keeps means only; record single calls in an HdrHistogram to see the tail"
_STATS = {"mean": "mean", "median": "median", "stddev": "std"}
_UNITS = ("ns", "us", "ms", "s")


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the real time of every benchmark: one value per repetition, or their statistics."""
    record = json_text.load(source, after_noise=True)
    context: dict[str, Any] = record.get("context") or {}
    rows: dict[str, list[dict[str, Any]]] = {}
    failed: dict[str, int] = {}
    for row in json_text.entry(record, "benchmarks", source, list):
        name = str(row.get("run_name") or row.get("name"))
        if row.get("error_occurred") or row.get("skipped"):
            failed[name] = failed.get(name, 0) + 1
        elif "real_time" in row:  # else the complexity that was fitted
            rows.setdefault(name, []).append(row)
    series: dict[str, Data] = {}
    for name, own in rows.items():
        unit = str(own[0].get("time_unit", "ns"))
        if unit not in _UNITS or any(str(row.get("time_unit", "ns")) != unit for row in own):
            raise source.corrupt(None, f"{name} has the unit {unit!r}", "one of ns, us, ms, s", "")
        run = Run(
            tool="Google Benchmark", version=context.get("library_version"),
            command=context.get("executable"), start=epoch_seconds(context.get("date")),
            loop="closed", measure="service", corrected="none", unit=unit,
            connections=int(own[0].get("threads") or 1), failed=failed.get(name, 0),
        )  # fmt: skip
        single = [row for row in own if row.get("run_type", "iteration") == "iteration"]
        if context.get("library_build_type") == "debug":
            run = run.with_notes("the benchmark library was built for debugging")
        if not single:  # --benchmark_report_aggregates_only
            stated = {
                _STATS[kind]: row["real_time"]
                for row in own
                if (kind := row.get("aggregate_name")) in _STATS
            }
            series[name] = data_from_points({}, None, stated, run.with_notes(_HINT), unit)
            continue
        calls = int(single[0].get("iterations") or 1)
        values = nanoseconds_of([float(row["real_time"]) for row in single], unit)
        if len(values) == 1 and calls > 1:
            stats = {"mean": float(values[0])}
            series[name] = data_from_points({}, calls, stats, run.with_notes(_HINT))
        else:
            note = f"each value is the mean of {format_count(calls)} calls"
            run = run.with_notes(note) if calls > 1 else run
            series[name] = data_from_values(values, run)
    if failed and not series:
        seen = f"{format_items(sum(failed.values()), 'benchmark')} failed, and none gave a result"
        raise source.corrupt(None, seen, "a benchmark that ran", "see error_message in the file")
    return series


FORMATS = (
    Format(
        "google-benchmark", "Google Benchmark (JSON)", "samples", (".json",),
        has_json_keys(("real_time", "cpu_time", "time_unit")), read,
        example="./bench --benchmark_repetitions=30 --benchmark_out=out.json",
    ),
)  # fmt: skip
