"""vLLM and GuideLLM."""

from __future__ import annotations

import json

import pytest

from latencykit.core.samples import Samples
from latencykit.core.summary import Summary

VLLM = {
    "date": "20260101-000000", "backend": "vllm", "model_id": "m", "num_prompts": 3,
    "request_rate": 4.0, "max_concurrency": None,
    "duration": 2.0, "completed": 2, "request_throughput": 1.0, "mean_ttft_ms": 20.0,
    "median_ttft_ms": 18.0, "std_ttft_ms": 2.0,
    "p99_ttft_ms": 30.0, "mean_itl_ms": 5.0, "median_itl_ms": 5.0, "p99_itl_ms": 9.0,
    "p99.9_itl_ms": 12.0,
}  # fmt: skip


def test_vllm_summary(read_text):
    found = read_text(json.dumps(VLLM))
    assert isinstance(found["ttft"], Summary)
    assert (found["ttft"].mean, found["ttft"].percentile(99), found["itl"].percentile(99.9)) == (
        20e6,
        30e6,
        12e6,
    )
    assert (found["ttft"].run.loop, found["ttft"].run.rate, found["ttft"].run.failed) == (
        "open",
        4.0,
        1,
    )
    assert any("distribution" in note for note in found["ttft"].run.notes)


def test_vllm_details(read_text):
    more = {
        "ttfts": [0.02, 0.03, 0.0],
        "itls": [[0.005, 0.006], [0.004], []],
        "errors": ["", "", "boom"],
        "start_times": [5.0, 5.5, 6.0],
    }
    found = read_text(json.dumps(VLLM | more))
    first = found["ttft"].histogram()
    assert (first.count, first.run.failed, first.max) == (2, 1, 30e6)
    assert found["e2el"].duration.tolist() == [31_000_000, 34_000_000, 0]
    assert found["itl"].histogram().count == 3
    assert found["ttft"].start.tolist() == [5_000_000_000, 5_500_000_000, 6_000_000_000]


@pytest.mark.parametrize(
    ("rate", "limit", "loop"),
    [("inf", 8, "closed"), ("inf", None, "unknown"), (float("inf"), None, "unknown")],
)
def test_vllm_without_a_rate(read_text, rate, limit, loop):
    assert (
        read_text(json.dumps(VLLM | {"request_rate": rate, "max_concurrency": limit}))[
            "ttft"
        ].run.loop
        == loop
    )


def guide(requests, count):
    percentiles = {"p001": 0.5, "p50": 1.5, "p99": 3.5, "p999": 4.0}
    one = {
        "mean": 2.0,
        "std_dev": 0.5,
        "min": 0.5,
        "max": 4.0,
        "count": count,
        "percentiles": percentiles,
    }
    metrics = {
        "request_latency": {"successful": one, "errored": {"count": 2}, "incomplete": {"count": 1}}
    }
    metrics["time_to_first_token_ms"] = {"successful": one}
    return {
        "config": {"strategy": {"type_": "constant", "rate": 2.0}},
        "metrics": metrics,
        "requests": {"successful": requests},
        "duration": 9.0,
    }


def test_guidellm(read_text):
    rows = [{"request_latency": v, "request_start_time": 100.0 + v} for v in (1.0, 4.0)]
    text = json.dumps(
        {"metadata": {"guidellm_version": "0.4"}, "benchmarks": [guide(rows, 2), guide(rows, 50)]}
    )
    found = read_text(text)
    assert list(found) == [
        "constant@2 request_latency", "constant@2 time_to_first_token",
        "constant@2 request_latency (2)", "constant@2 time_to_first_token (2)",
    ]  # fmt: skip
    assert isinstance(found["constant@2 request_latency"], Samples)
    assert found["constant@2 request_latency"].start.tolist() == [101_000_000_000, 104_000_000_000]
    sampled = found["constant@2 request_latency (2)"]
    assert (
        sampled.count,
        sampled.percentile(99.9),
        sampled.run.failed,
        sampled.run.unfinished,
    ) == (50, 4e9, 2, 1)
    assert found["constant@2 time_to_first_token (2)"].max == 4e6
