"""Benchmarks of language-model servers: ``vllm bench serve --save-result`` and GuideLLM.

ttft is the time to the first token, tpot the mean time a further token, itl the time between two tokens, e2el the whole.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    distinct,
    nanoseconds,
    nanoseconds_of,
    whole_nanoseconds,
)
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_VLLM_HINT = "--save-detailed keeps every request: the distribution"
_GUIDE_METRICS = (
    "request_latency",
    "time_to_first_token_ms",
    "inter_token_latency_ms",
    "time_per_output_token_ms",
)
_GUIDE_HINT = (
    "the file keeps a sample of the requests; their distribution is that of its percentiles"
)


def sniff_vllm(head: Head) -> Confidence:
    """Tell the keys of the result."""
    found = jsontext.has_keys(head, "request_throughput", "mean_ttft_ms") or jsontext.has_keys(
        head, "num_prompts", "request_rate", "completed"
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read_vllm(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every measure of the result: single requests where they were saved, else means and percentiles."""
    record: dict[str, Any] = jsontext.load(source)
    run = _vllm_run(record)
    count = int(record.get("completed") or 0)
    found: dict[str, Data] = {}
    if record.get("ttfts"):
        found |= _vllm_requests(record, run)
    for key in [key for key in record if re.fullmatch(r"mean_\w+_ms", key)]:
        name = key[5:-3]
        if name in found:
            continue
        points = {
            float(part[1]): nanoseconds(value, "ms")
            for other, value in record.items()
            if (part := re.fullmatch(rf"p([\d.]+)_{name}_ms", other)) and value is not None
        }
        if record.get(f"median_{name}_ms") is not None:
            points[50.0] = nanoseconds(record[f"median_{name}_ms"], "ms")
        stats = {"mean": record[key], "std": record.get(f"std_{name}_ms")}
        held = {
            kind: nanoseconds(value, "ms") for kind, value in stats.items() if value is not None
        }
        if name != "itl":  # a token has its own number of intervals
            found[name] = data_from_points(
                points, count, held, run.replace(unit="ms").with_notes(_VLLM_HINT)
            )
        else:
            found[name] = data_from_points(
                points, None, held, run.replace(unit="ms").with_notes(_VLLM_HINT)
            )
    return found


def _vllm_run(record: dict[str, Any]) -> Run:
    rate = record.get("request_rate")
    finite = isinstance(rate, (int, float)) and math.isfinite(rate) and rate > 0
    limit = record.get("max_concurrency")
    sent = int(record.get("num_prompts") or 0)
    failed = record.get("failed")
    return Run(
        tool="vLLM", command=record.get("model_id"), loop="open" if finite and not limit else "closed" if limit else "unknown",
        measure="service", corrected="schedule" if finite and not limit else "none", duration=record.get("duration"),
        rate=float(rate) if finite and rate is not None else None, achieved=record.get("request_throughput"),
        connections=int(limit) if limit else None, unit="s", unit_from="format",
        failed=int(failed) if failed is not None else max(sent - int(record.get("completed") or sent), 0),
    )  # fmt: skip


def _vllm_requests(record: dict[str, Any], run: Run) -> dict[str, Data]:
    """Single requests, in seconds; failed ones carry a text in ``errors``."""
    first = np.array(record["ttfts"], np.float64)
    between = record.get("itls") or []
    texts = record.get("errors") or []
    failed = (
        np.array([bool(text) for text in texts])
        if len(texts) == first.size
        else np.zeros(first.size, np.bool_)
    )
    outcome = np.where(failed, OUTCOMES.index("error"), 0).astype(np.int8) if failed.any() else None
    started = record.get("start_times")
    start = whole_nanoseconds(started, "s") if started and len(started) == first.size else None
    known = run.replace(failed=0 if failed.any() else run.failed)
    found: dict[str, Data] = {
        "ttft": Samples(
            duration=nanoseconds_of(first, "s"), start=start, outcome=outcome, run=known
        )
    }
    gaps = np.array([gap for one in between for gap in one], np.float64)
    if gaps.size:
        found["itl"] = Samples(duration=nanoseconds_of(gaps, "s"), run=run.replace(failed=0))
    if len(between) == first.size:
        whole = first + np.array([sum(one) for one in between])
        found["e2el"] = Samples(
            duration=nanoseconds_of(whole, "s"), start=start, outcome=outcome, run=known
        )
    return found


def sniff_guidellm(head: Head) -> Confidence:
    """Tell the keys of a report; the metrics may come late."""
    found = jsontext.has_keys(head, "benchmarks") and (
        "guidellm" in head.text or '"generative_benchmark"' in head.text
    )
    return (
        Confidence.CERTAIN
        if found or jsontext.has_keys(head, "benchmarks", "time_to_first_token_ms")
        else Confidence.NO
    )


def read_guidellm(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read latency, time to the first token and between tokens of every benchmark; incomplete and errored ones apart."""
    record = jsontext.load(source)
    benchmarks = jsontext.entry(record, "benchmarks", source, list)
    found: dict[str, Data] = {}
    for benchmark in benchmarks:
        strategy = _strategy(benchmark)
        rate = next((strategy[key] for key in ("rate", "constant_rate") if strategy.get(key)), None)
        label = str(strategy.get("type_") or strategy.get("type") or "benchmark") + (
            f"@{float(rate):g}" if rate else ""
        )
        metrics = jsontext.entry(benchmark, "metrics", source)
        for metric in _GUIDE_METRICS:
            part = (metrics.get(metric) or {}).get("successful")
            if part and part.get("count"):
                name = metric.removesuffix("_ms")
                full = f"{label} {name}" if len(benchmarks) > 1 else name
                found[distinct(full, found)] = _guide_rung(
                    benchmark, metric, metrics, strategy, rate
                )
    return found


def _strategy(benchmark: dict[str, Any]) -> dict[str, Any]:
    for holder in ("config", "args", "scheduler"):
        strategy = (benchmark.get(holder) or {}).get("strategy")
        if isinstance(strategy, dict):
            return strategy
    return {}


def _guide_rung(
    benchmark: dict[str, Any],
    metric: str,
    metrics: dict[str, Any],
    strategy: dict[str, Any],
    rate: Any,
) -> Data:
    parts = metrics[metric]
    part = parts["successful"]
    unit = "ms" if metric.endswith("_ms") else "s"
    counts = {
        kind: int((parts.get(kind) or {}).get("count") or 0) for kind in ("errored", "incomplete")
    }
    kind = str(strategy.get("type_") or strategy.get("type") or "")
    streams = strategy.get("streams") or strategy.get("max_concurrency")
    scheduled = kind in ("constant", "poisson", "async")
    run = Run(
        tool="GuideLLM", measure="service",
        loop="open" if scheduled else "closed" if kind in ("synchronous", "concurrent") else "unknown",
        corrected="schedule" if scheduled else "none", start=benchmark.get("start_time"), duration=benchmark.get("duration"),
        rate=float(rate) if rate else None, connections=int(streams) if streams else None, failed=counts["errored"],
        unfinished=counts["incomplete"], unit=unit, unit_from="format",
    )  # fmt: skip
    rows = (benchmark.get("requests") or {}).get("successful") or []
    values = [
        float(row[metric]) for row in rows if isinstance(row, dict) and row.get(metric) is not None
    ]
    if len(values) == int(part["count"]):
        began = [row.get("request_start_time", row.get("start_time")) for row in rows]
        start = (
            whole_nanoseconds([float(one) for one in began], "s")
            if len(began) == len(values) and all(began)
            else None
        )
        return Samples(duration=nanoseconds_of(values, unit), start=start, run=run)
    points = {
        _percentile(key): nanoseconds(value, unit)
        for key, value in (part.get("percentiles") or {}).items()
    }
    stats = {
        "mean": part.get("mean"),
        "std": part.get("std_dev"),
        "min": part.get("min"),
        "max": part.get("max"),
    }
    held = {name: nanoseconds(value, unit) for name, value in stats.items() if value is not None}
    return data_from_points(points, int(part["count"]), held, run.with_notes(_GUIDE_HINT))


def _percentile(key: str) -> float:
    """GuideLLM's names: p50 is 50, p999 is 99.9, p001 is 0.1."""
    digits = key.removeprefix("p")
    return float(digits[:2] + "." + digits[2:]) if len(digits) > 2 else float(digits)


FORMATS = (
    Format(
        "vllm", "vLLM serving benchmark (JSON)", "samples", (".json",), sniff_vllm, read_vllm,
        example="vllm bench serve --save-result --save-detailed --result-filename run.json …",
    ),
    Format(
        "guidellm", "GuideLLM (JSON)", "samples", (".json",), sniff_guidellm, read_guidellm,
        example="guidellm benchmark --output-path benchmarks.json …",
    ),
)  # fmt: skip
