"""latte: its JSON report, which holds HdrHistogram payloads (ns) of the run and, with ``--generate-report``, of each sample.

Cycles are calls of the workload's functions; requests are the queries inside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    histogram_of_payload,
    log_of_payloads,
    nanoseconds,
    printed_rows,
)
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_PERCENTILES = (
    0.0,
    1.0,
    2.0,
    5.0,
    10.0,
    25.0,
    50.0,
    75.0,
    90.0,
    95.0,
    98.0,
    99.0,
    99.9,
    99.99,
    100.0,
)


def sniff(head: Head) -> Confidence:
    """Tell the keys of the report: its configuration comes first."""
    text = head.text
    found = jsontext.has_keys(head, "conf", "workload") and any(
        f'"{key}"' in text
        for key in (
            "cycle_latency",
            "request_latency",
            "cycle_throughput",
            "resp_time_ms",
            "sampling_interval",
            "cluster_name",
        )
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read requests and cycles; as logs where the report holds samples."""
    record: dict[str, Any] = jsontext.load(source)
    result: dict[str, Any] = jsontext.entry(record, "result", source)
    run = _run(record.get("conf") or {}, result)
    samples = result.get("log") or []
    found: dict[str, Data] = {}
    parts: list[tuple[str, Any, list[Any]]] = [
        (
            "request",
            result.get("request_latency", result.get("resp_time_ms")),
            [one.get("request_latency") for one in samples],
        ),
        (
            "cycle",
            result.get("cycle_latency", result.get("cycle_time_ms")),
            [one.get("cycle_latency") for one in samples],
        ),
    ]
    functions = result.get("cycle_latency_by_fn") or {}
    for name, whole in functions.items() if len(functions) > 1 else ():
        parts.append(
            (name, whole, [(one.get("cycle_latency_by_fn") or {}).get(name) for one in samples])
        )
    for name, whole, each in parts:
        count = result.get("request_count" if name == "request" else "cycle_count", 0)
        data = (
            _data(name, whole, each, samples, run, source, count)
            if isinstance(whole, dict)
            else None
        )
        if data is not None:
            found[name] = data.with_run(aggregate=name == "cycle" and len(functions) > 1)
    return found


def _run(asked: dict[str, Any], result: dict[str, Any]) -> Run:
    rate = asked.get("rate")
    started = result.get("start_time")
    concurrency = asked.get("concurrency")
    threads = asked.get("threads") or 1
    return Run(
        tool="latte", command=asked.get("workload"), loop="unknown" if rate else "closed", measure="service",
        corrected="none" if not rate else "unknown", start=_epoch(started) if started else None,
        duration=result.get("elapsed_time_s"),
        rate=float(rate) if rate else None, achieved=(result.get("req_throughput") or {}).get("value"),
        connections=int(concurrency) * int(threads) if isinstance(concurrency, int) else None,
        failed=int(result.get("error_count") or 0), unit="ns", unit_from="format",
    )  # fmt: skip


def _epoch(text: str) -> float | None:
    import pandas as pd

    try:
        return float(pd.Timestamp(text).timestamp())
    except ValueError:
        return None


def _data(
    name: str,
    whole: dict[str, Any],
    each: list[Any],
    samples: list[Any],
    run: Run,
    source: Source,
    count: int,
) -> Data | None:
    """The samples as a log, the whole as a histogram, or its percentiles (ms)."""
    payloads = [
        str(one["histogram"]) for one in each if isinstance(one, dict) and one.get("histogram")
    ]
    if len(payloads) > 1 and len(payloads) == len(samples):
        starts = [float(one.get("time_s", 0.0)) for one in samples]
        lengths = [float(one.get("duration_s", 0.0)) for one in samples]
        return log_of_payloads(payloads, starts, lengths, "ns", run, source, name)
    rows = whole.get("percentiles") or []
    points = {
        p: nanoseconds(row["value"] if isinstance(row, dict) else row, "ms") for p, row in zip(_PERCENTILES, rows, strict=False)
    } if len(rows) == len(_PERCENTILES) else {}  # fmt: skip
    mean = whole.get("mean")
    reported_stats = (
        {"mean": nanoseconds(mean["value"] if isinstance(mean, dict) else mean, "ms")}
        if mean is not None
        else {}
    )
    if whole.get("histogram"):
        return histogram_of_payload(
            whole["histogram"],
            "ns",
            run,
            source,
            name,
            reported_stats=reported_stats,
            reported_percentiles=printed_rows(points),
        )
    return (
        data_from_points(points, int(count), reported_stats, run.replace(unit="ms"))
        if points or reported_stats
        else None
    )


FORMATS = (
    Format(
        name="latte",
        title="latte (JSON report)",
        level="log",
        suffixes=(".json",),
        sniff=sniff,
        read=read,
        unit="ns",
        example="latte run workload.rn --generate-report   # writes workload.*.json",
    ),
)
