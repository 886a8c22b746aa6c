"""vLLM and GuideLLM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencykit.analysis.slo import SLO
from latencykit.core.run import series_named
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import CorruptInputError, InvalidArgumentError
from tests.io.conftest import lost

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


def test_goodput_counts_requests_that_meet_all_limits(read_text):
    n = 600
    first = [0.9 if k % 20 == 0 else 0.1 for k in range(n)]
    gaps = [[0.01, 0.2 if k % 30 == 7 else 0.01] for k in range(n)]
    more = {
        "ttfts": first, "itls": gaps, "errors": ["boom" if k % 100 == 50 else "" for k in range(n)],
    }  # fmt: skip
    found = read_text(json.dumps(VLLM | more | {"duration": 3600.0}))
    late = {k for k in range(n) if k % 20 == 0 or k % 30 == 7 or k % 100 == 50}
    slo = SLO.parse("ttft 90=500ms, tpot 90=50ms")
    rows = slo.check_all(found, joint=0.85)
    assert list(rows) == ["ttft", "tpot", "all"]
    (row,) = rows["all"]
    assert row.value == pytest.approx(1 - len(late) / n)
    assert row.low < row.value < row.high
    assert (row.outcome, joint_share_of(slo, found, 0.99)) == ("met", "missed")


def joint_share_of(slo, found, least):
    return slo.check_all(found, joint=least)["all"][0].outcome


def test_tokens_of_one_request_are_not_independent_evidence(read_text):
    tokens = 50
    gaps = [[0.05 if k % 10 == 3 else 0.01] * tokens for k in range(200)]
    found = read_text(json.dumps(VLLM | {"ttfts": [0.1] * 200, "itls": gaps, "duration": 3600.0}))
    itl = found["itl"]
    alone = itl.histogram().evidence().rows([95.0])[0][0]
    (clustered,), _ = itl.evidence().rows([90.0])
    (naive,), _ = itl.histogram().evidence().rows([90.0])
    assert alone.supported
    assert clustered.high >= naive.high
    assert clustered.low <= naive.low


def test_names_of_latency_types():
    assert series_named("ttft", ["itl", "time_to_first_token"]) == ["time_to_first_token"]
    assert series_named("tpot", ["rate 2 tpot", "rate 4 tpot", "rate 2 ttft"]) == [
        "rate 2 tpot", "rate 4 tpot",
    ]  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="series 'tpot'"):
        SLO.parse("tpot 95=1ms").of_series(["a", "b"])


@pytest.mark.parametrize(
    "command", [("chart", "-o", "a.png"), ("report", "-o", "a.html"), ("load",)]
)
def test_a_limit_of_one_series_is_refused_where_series_are_not_judged_apart(command, tmp_path):
    from latencykit.cli import main

    log = Path(__file__).parents[2] / "data" / "ctrlz-scheduled.hlog"
    out = [str(tmp_path / word) if word.startswith("a.") else word for word in command[1:]]
    words = [command[0], str(log), *out, "--slo", "ttft 99=500ms"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert not list(tmp_path.iterdir())


def requests_of(found, name):
    data = found[name]
    return [
        value
        for value, good in zip(data.duration.tolist(), data.good.tolist(), strict=True)
        if good
    ]


DETAILS = VLLM | {
    "num_prompts": 4, "completed": 3, "failed": 1, "output_lens": [3, 2, 1, 0],
    "ttfts": [0.02, 0.03, 0.04, 0.0], "itls": [[0.005, 0.006], [0.004], [], []],
    "errors": ["", "", "", "boom"],
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"errors": None},
        {"errors": ["", ""]},
        {"ttfts": [0.02, 0.03, 0.04, None], "itls": [[0.005, 0.006], [0.004], [], None]},
        {"ttfts": ["0.02", "0.03", "0.04", "0"], "output_lens": ["3", "2", "1", "0"],
         "itls": [["0.005", "0.006"], ["0.004"], [], []], "duration": "2.0", "num_prompts": "4"},
    ],
    ids=["no errors", "errors of another run", "nulls", "numbers as text"],
)  # fmt: skip
@pytest.mark.parametrize("shape", ["object", "reversed", "pretty", "list", "bom"])
def test_vllm_as_others_write_it(read_text, change, shape):
    record = DETAILS | change
    text = {
        "object": lambda: json.dumps(record),
        "reversed": lambda: json.dumps(dict(reversed(record.items()))),
        "pretty": lambda: json.dumps(record, indent=2).replace("\n", "\r\n"),
        "list": lambda: json.dumps([record]),
        "bom": lambda: "\ufeff" + json.dumps(record),
    }[shape]()
    found = read_text(text)
    assert requests_of(found, "ttft") == [20e6, 30e6, 40e6]
    assert requests_of(found, "e2el") == [31e6, 34e6, 40e6]
    assert requests_of(found, "tpot") == [5.5e6, 4e6]
    assert requests_of(found, "itl") == [5e6, 6e6, 4e6]
    assert found["ttft"].histogram().run.failed == 1


def test_statistics_of_no_request_are_refused(read_text):
    zeros = {key: 0.0 for key in VLLM if key.endswith("_ms")} | {"completed": 0, "failed": 3}
    assert lost(read_text(json.dumps(VLLM | zeros))) == "3 failed"
    lone = read_text(json.dumps([VLLM | zeros, VLLM]))
    assert list(lone) == ["rate 4 ttft", "rate 4 itl"]


def aiperf(number, **metrics):
    held = {
        "time_to_first_token": {"value": 20.0, "unit": "ms"},
        "request_latency": {"value": 50.0, "unit": "ms"},
        "inter_chunk_latency": {"value": [4.0, 6.0], "unit": "ms"},
    }
    begin = number * 10**9
    about = {"request_start_ns": begin, "request_end_ns": begin + 50_000_000}
    return {"metadata": about, "metrics": held | metrics, "error": None}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("value", [None, float("nan")])
def test_aiperf_without_a_first_token(read_text, indent, value):
    rows = [aiperf(1), aiperf(2, time_to_first_token={"value": value, "unit": "ms"})]
    found = read_text("\n".join(json.dumps(row, indent=indent) for row in rows), "run.jsonl")
    assert found["ttft"].duration.tolist() == [20_000_000]
    assert found["itl"].duration.tolist() == [4_000_000, 6_000_000] * 2
    assert found["e2el"].start.tolist() == [10**9, 2 * 10**9]


def test_inference_perf_of_a_request_that_did_not_end(read_text):
    row = {
        "start_time": 1000.0, "end_time": 1000.05, "error": None,
        "info": {"output_tokens": 3, "output_token_times": [1000.02, 1000.03, 1000.05]},
    }  # fmt: skip
    cut = row | {"end_time": None, "info": None}
    for text in (json.dumps([row, cut]), json.dumps(row) + "\n" + json.dumps(cut)):
        found = read_text(text)
        assert requests_of(found, "ttft") == [20_000_000]
        assert requests_of(found, "tpot") == [15_000_000]
        assert found["e2el"].histogram().run.failed == 1


def test_lines_of_a_log_between_the_runs_are_left_out(read_text):
    run = {"mean_ttft_ms": 20.0, "p99_ttft_ms": 30.0, "mean_e2e_latency_ms": 90.0, "completed": 9}
    lines = [json.dumps(run | {"max_concurrency": n}) for n in (8, 16)]
    found = read_text(f"max_prefill:8192\n{lines[0]}\n\n[2026-05-01 10:00:00] done\n{lines[1]}\n")
    assert list(found) == [f"concurrency {n} {name}" for n in (8, 16) for name in ("ttft", "e2el")]


def test_a_latency_type_of_zeros_was_not_measured(read_text):
    found = read_text(json.dumps(VLLM | {key: 0.0 for key in VLLM if "itl" in key}))
    assert list(found) == ["ttft"]


def test_a_report_without_a_good_request_has_its_failures(read_text):
    text = "============ Serving Benchmark Result ============\nSuccessful requests:  0\nFailed requests:  7\nMean TTFT (ms):  0.0\n"
    assert lost(read_text(text)) == "7 failed"


def test_a_report_that_is_cut_before_its_latencies_has_none(read_text):
    text = "============ Serving Benchmark Result ============\nSuccessful requests:  500\nFailed requests:  3\n"
    with pytest.raises(CorruptInputError, match="contains no latencies"):
        read_text(text)
