"""Benchmarks of language-model servers: ``vllm bench serve --save-result`` and GuideLLM.

ttft is the time to the first token, tpot the mean time per further token, itl the time between two
tokens, e2el the total time.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    distinct,
    in_nanoseconds,
    nanoseconds_of,
    outcome_codes,
    whole_nanoseconds,
)
from latencykit.io.sniffing import certain, has_json_keys
from latencykit.io.source import Format

if TYPE_CHECKING:
    from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_VLLM_HINT = "--save-detailed keeps every request: the distribution"
_GUIDE_METRICS = (
    "request_latency", "time_to_first_token_ms", "inter_token_latency_ms",
    "time_per_output_token_ms",
)  # fmt: skip
_GUIDE_HINT = (
    "the file keeps a sample of the requests; their distribution is that of its percentiles"
)


def read_vllm(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every latency: single requests where they were saved, else means and percentiles."""
    record: dict[str, Any] = jsontext.load(source)
    rate, limit = record.get("request_rate"), record.get("max_concurrency")
    finite = isinstance(rate, (int, float)) and math.isfinite(rate) and rate > 0
    scheduled = finite and not limit
    completed, failed = record.get("completed"), record.get("failed")
    sent = int(record.get("num_prompts") or 0)
    run = Run(
        tool="vLLM", command=record.get("model_id"), measure="service",
        loop="open" if scheduled else "closed" if limit else "unknown",
        corrected="schedule" if scheduled else "none", duration=record.get("duration"),
        rate=float(rate) if finite and rate is not None else None, unit="s", unit_from="format",
        achieved=record.get("request_throughput"), connections=int(limit) if limit else None,
        failed=int(failed) if failed is not None else max(sent - int(completed or sent), 0),
    )  # fmt: skip
    series: dict[str, Data] = _vllm_requests(record, run) if record.get("ttfts") else {}
    run = run.replace(unit="ms").with_notes(_VLLM_HINT)
    for key in [key for key in record if re.fullmatch(r"mean_\w+_ms", key)]:
        name = key[5:-3]
        if name in series:
            continue
        cells = {
            float(match[1]): value
            for other, value in record.items()
            if (match := re.fullmatch(rf"p([\d.]+)_{name}_ms", other))
        }
        points = in_nanoseconds(cells, "ms")
        points |= in_nanoseconds({50.0: record.get(f"median_{name}_ms")}, "ms")
        stats = in_nanoseconds({"mean": record[key], "std": record.get(f"std_{name}_ms")}, "ms")
        # A token has its own number of intervals.
        count = None if name == "itl" else int(completed or 0)
        series[name] = data_from_points(points, count, stats, run)
    return series


def _vllm_requests(record: dict[str, Any], run: Run) -> dict[str, Data]:
    """Single requests, in seconds; failed ones carry a text in ``errors``."""
    first = np.array(record["ttfts"], np.float64)
    between, texts = record.get("itls") or [], record.get("errors") or []
    outcome = None
    if len(texts) == first.size:
        outcome = outcome_codes(error=np.array([bool(text) for text in texts]))
    started = record.get("start_times")
    start = whole_nanoseconds(started, "s") if started and len(started) == first.size else None
    own = run if outcome is None else run.replace(failed=0)

    def samples(seconds: Any) -> Samples:
        duration = nanoseconds_of(seconds, "s")
        return Samples(duration=duration, start=start, outcome=outcome, run=own)

    series: dict[str, Data] = {"ttft": samples(first)}
    gaps = np.array([gap for row in between for gap in row], np.float64)
    if gaps.size:
        series["itl"] = Samples(duration=nanoseconds_of(gaps, "s"), run=run.replace(failed=0))
    if len(between) == first.size:
        series["e2el"] = samples(first + np.array([sum(row) for row in between]))
    return series


def sniff_guidellm(head: Head) -> Confidence:
    """Recognize the keys of a report; the metrics may be far behind."""
    words = ("guidellm", '"generative_benchmark"', '"time_to_first_token_ms"')
    return certain(
        jsontext.has_keys(head, "benchmarks") and any(word in head.text for word in words)
    )


def read_guidellm(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every benchmark's latencies of successful requests; the others are counted apart."""
    record = jsontext.load(source)
    benchmarks = jsontext.entry(record, "benchmarks", source, list)
    series: dict[str, Data] = {}
    for benchmark in benchmarks:
        holders = [(benchmark.get(key) or {}) for key in ("config", "args", "scheduler")]
        strategies = (holder.get("strategy") for holder in holders)
        strategy = next((row for row in strategies if isinstance(row, dict)), {})
        rate = strategy.get("rate") or strategy.get("constant_rate")
        kind = str(strategy.get("type_") or strategy.get("type") or "")
        label = (kind or "benchmark") + (f"@{float(rate):g}" if rate else "")
        streams = strategy.get("streams") or strategy.get("max_concurrency")
        run = Run(
            tool="GuideLLM", measure="service", corrected="none",
            loop="closed" if kind in ("synchronous", "concurrent") else "unknown",
            start=benchmark.get("start_time"), duration=benchmark.get("duration"),
            rate=float(rate) if rate else None, connections=int(streams) if streams else None,
            unit_from="format",
        )  # fmt: skip
        if kind in ("constant", "poisson", "async"):
            run = run.replace(loop="open", corrected="schedule")
        metrics = jsontext.entry(benchmark, "metrics", source)
        requests = (benchmark.get("requests") or {}).get("successful") or []
        for metric in _GUIDE_METRICS:
            parts = metrics.get(metric) or {}
            if not (parts.get("successful") or {}).get("count"):
                continue
            name = metric.removesuffix("_ms")
            name = distinct(f"{label} {name}" if len(benchmarks) > 1 else name, series)
            series[name] = _guide_metric(metric, parts, requests, run)
    return series


def _guide_metric(metric: str, parts: dict[str, Any], requests: list[Any], run: Run) -> Data:
    """One latency: single requests where all were saved, else its percentiles."""
    good, unit = parts["successful"], "ms" if metric.endswith("_ms") else "s"
    count = int(good["count"])
    failed, unfinished = (
        int((parts.get(kind) or {}).get("count") or 0) for kind in ("errored", "incomplete")
    )
    run = run.replace(unit=unit, failed=failed, unfinished=unfinished)
    rows = [row for row in requests if isinstance(row, dict) and row.get(metric) is not None]
    if len(rows) == count:
        duration = nanoseconds_of([float(row[metric]) for row in rows], unit)
        began = [row.get("request_start_time", row.get("start_time")) for row in requests]
        start = None
        if len(began) == count and all(began):
            start = whole_nanoseconds([float(stamp) for stamp in began], "s")
        return Samples(duration=duration, start=start, run=run)
    points = {}
    for key, value in (good.get("percentiles") or {}).items():
        digits = key.removeprefix("p")  # p50 is 50, p999 is 99.9, p001 is 0.1
        points[float(digits if len(digits) < 3 else f"{digits[:2]}.{digits[2:]}")] = value
    keys = {"mean": "mean", "std": "std_dev", "min": "min", "max": "max"}
    stats = in_nanoseconds({name: good.get(key) for name, key in keys.items()}, unit)
    points = in_nanoseconds(points, unit)
    return data_from_points(points, count, stats, run.with_notes(_GUIDE_HINT))


FORMATS = (
    Format(
        "vllm", "vLLM serving benchmark (JSON)", "samples", (".json",),
        has_json_keys(
            ("request_throughput", "mean_ttft_ms"), ("num_prompts", "request_rate", "completed")
        ),
        read_vllm,
        example="vllm bench serve --save-result --save-detailed --result-filename run.json …",
    ),
    Format(
        "guidellm", "GuideLLM (JSON)", "samples", (".json",), sniff_guidellm, read_guidellm,
        example="guidellm benchmark --output-path benchmarks.json …",
    ),
)  # fmt: skip
