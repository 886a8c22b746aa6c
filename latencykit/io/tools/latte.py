"""latte: its JSON report, with HdrHistogram payloads (ns) of the run and of each sample.

Those of samples need ``--generate-report``. Cycles are calls of the workload's functions; requests
are the queries inside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    histogram_of_payload,
    in_nanoseconds,
    log_of_payloads,
    printed_rows,
)
from latencykit.io.sniffing import certain
from latencykit.io.source import Format

if TYPE_CHECKING:
    from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_PERCENTILES = (
    0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9, 99.99, 100.0,
)  # fmt: skip
_KEYS = (
    "cycle_latency", "request_latency", "cycle_throughput", "resp_time_ms", "sampling_interval",
    "cluster_name",
)  # fmt: skip


def sniff(head: Head) -> Confidence:
    """Recognize the keys of the report: its configuration is first."""
    keyed = jsontext.has_keys(head, "conf", "workload")
    return certain(keyed and any(f'"{key}"' in head.text for key in _KEYS))


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read requests and cycles; as logs where the report holds samples."""
    record: dict[str, Any] = jsontext.load(source)
    result: dict[str, Any] = jsontext.entry(record, "result", source)
    run = _run(record.get("conf") or {}, result)
    samples = result.get("log") or []
    functions = result.get("cycle_latency_by_fn") or {}
    parts: list[tuple[str, Any, list[Any]]] = [
        (name, result.get(key, result.get(old)), [sample.get(key) for sample in samples])
        for name, key, old in (
            ("request", "request_latency", "resp_time_ms"),
            ("cycle", "cycle_latency", "cycle_time_ms"),
        )
    ]
    for name, total in functions.items() if len(functions) > 1 else ():
        each = [(sample.get("cycle_latency_by_fn") or {}).get(name) for sample in samples]
        parts.append((name, total, each))
    series: dict[str, Data] = {}
    for name, total, each in parts:
        if not isinstance(total, dict):
            continue
        count = int(result.get("request_count" if name == "request" else "cycle_count", 0))
        own = run.replace(aggregate=name == "cycle" and len(functions) > 1)
        data = _data(name, total, each, samples, own, source, count)
        if data is not None:
            series[name] = data
    return series


def _run(settings: dict[str, Any], result: dict[str, Any]) -> Run:
    import pandas as pd

    rate, concurrency = settings.get("rate"), settings.get("concurrency")
    start = None
    if result.get("start_time"):
        try:
            start = float(pd.Timestamp(result["start_time"]).timestamp())
        except ValueError:
            start = None
    clients = None
    if isinstance(concurrency, int):
        clients = concurrency * int(settings.get("threads") or 1)
    return Run(
        tool="latte", command=settings.get("workload"), loop="unknown" if rate else "closed",
        measure="service", corrected="unknown" if rate else "none", start=start,
        duration=result.get("elapsed_time_s"), rate=float(rate) if rate else None,
        achieved=(result.get("req_throughput") or {}).get("value"), connections=clients,
        failed=int(result.get("error_count") or 0), unit="ns", unit_from="format",
    )  # fmt: skip


def _data(
    name: str,
    total: dict[str, Any],
    each: list[Any],
    samples: list[Any],
    run: Run,
    source: Source,
    count: int,
) -> Data | None:
    """The samples as a log, the total as a histogram, or its percentiles (ms)."""
    payloads = [
        str(row["histogram"]) for row in each if isinstance(row, dict) and row.get("histogram")
    ]
    if len(payloads) > 1 and len(payloads) == len(samples):
        starts = [float(sample.get("time_s", 0.0)) for sample in samples]
        lengths = [float(sample.get("duration_s", 0.0)) for sample in samples]
        return log_of_payloads(payloads, starts, lengths, "ns", run, source, name)

    def bare(value: Any) -> Any:
        return value["value"] if isinstance(value, dict) else value

    points: dict[float, float] = {}
    rows = total.get("percentiles") or []
    if len(rows) == len(_PERCENTILES):
        points = dict(zip(_PERCENTILES, map(bare, rows), strict=True))
    points, stats = in_nanoseconds(points, "ms"), {"mean": bare(total.get("mean"))}
    stats = in_nanoseconds(stats, "ms")
    if total.get("histogram"):
        return histogram_of_payload(
            total["histogram"], "ns", run, source, name, reported_stats=stats,
            reported_percentiles=printed_rows(points),
        )  # fmt: skip
    if not points and not stats:
        return None
    return data_from_points(points, count, stats, run.replace(unit="ms"))


FORMATS = (
    Format(
        "latte", "latte (JSON report)", "log", (".json",), sniff, read, unit="ns",
        example="latte run workload.rn --generate-report   # writes workload.*.json",
    ),
)  # fmt: skip
