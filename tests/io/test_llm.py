"""vLLM and GuideLLM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencykit.analysis.slo import SLO
from latencykit.core.run import series_named
from latencykit.errors import InvalidArgumentError

VLLM = {
    "date": "20260101-000000", "backend": "vllm", "model_id": "m", "num_prompts": 3,
    "request_rate": 4.0, "max_concurrency": None,
    "duration": 2.0, "completed": 2, "request_throughput": 1.0, "mean_ttft_ms": 20.0,
    "median_ttft_ms": 18.0, "std_ttft_ms": 2.0,
    "p99_ttft_ms": 30.0, "mean_itl_ms": 5.0, "median_itl_ms": 5.0, "p99_itl_ms": 9.0,
    "p99.9_itl_ms": 12.0,
}  # fmt: skip


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
