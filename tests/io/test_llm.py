"""Servers of language models: tokens, goodput, and known times through a client's table."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from latencykit.analysis.slo import SLO
from latencykit.core.run import series_named
from latencykit.errors import InvalidArgumentError
from latencykit.io.parts import read_all
from tests.io.token_server import FAILS, FIRST, GAP, token_server

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


# ---------------------------------------------------------------- known times

TOKENS, REQUESTS = 6, 24


def ask(port):
    """One request as vLLM's client times it: ttft, gaps and an error."""
    begin = last = time.perf_counter()
    body = json.dumps({"model": "mock", "stream": True, "max_tokens": TOKENS})
    times = []
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("POST", "/v1/chat/completions", body)
        reply = connection.getresponse()
        for line in iter(reply.readline, b""):
            if b'"content"' in line:
                now = time.perf_counter()
                times.append(now - last)
                last = now
    error = "" if reply.status == 200 else reply.reason
    return {"ttft": (times or [0.0])[0], "itl": times[1:], "error": error, "start": begin}


def check(found):
    """Compare with the truth: a busy machine delays, but no token comes before it is due.

    Those behind a token that is read late follow at once, so that single gaps are shorter.
    """
    failed = REQUESTS // FAILS
    for name, truth in (("ttft", FIRST), ("tpot", GAP), ("e2el", FIRST + (TOKENS - 1) * GAP)):
        total = found[name].histogram()
        assert (total.count, total.run.failed) == (REQUESTS - failed, failed)
        least = total.percentile(50) if name == "tpot" else total.min
        assert truth * 0.8e9 <= least
        assert total.min <= truth * 1.6e9
    assert found["itl"].histogram().count == (REQUESTS - failed) * (TOKENS - 1)


@pytest.mark.slow
def test_a_table_of_known_requests(tmp_path):
    with token_server() as port, ThreadPoolExecutor(3) as pool:
        rows = list(pool.map(lambda _: ask(port), range(REQUESTS)))
    lists = {
        "ttfts": "ttft", "itls": "itl", "errors": "error", "start_times": "start",
    }  # fmt: skip
    record = {"num_prompts": REQUESTS, "request_rate": "inf", "max_concurrency": 3}
    record |= {"completed": sum(not row["error"] for row in rows), "backend": "openai"}
    record |= {name: [row[key] for row in rows] for name, key in lists.items()}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(record | {"output_lens": [TOKENS] * REQUESTS}))
    check(read_all(path))


def tokenizer(folder):
    """A tokenizer of single bytes, which needs no download."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [*map(chr, shown), *(chr(0x100 + k) for k in range(256 - len(shown)))]
    steps = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    vocabulary = {word: k for k, word in enumerate(["<unk>", *letters])}
    model = {"type": "BPE", "unk_token": "<unk>", "vocab": vocabulary, "merges": []}
    text = {"version": "1.0", "added_tokens": [], "model": model}
    text |= {"pre_tokenizer": steps, "decoder": steps}
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(text))
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return str(folder)


@pytest.mark.slow
@pytest.mark.needs_tool
def test_what_aiperf_measures(tmp_path):
    program = shutil.which("aiperf")
    if program is None:
        pytest.skip("AIPerf is not installed: pip install aiperf")
    with token_server() as port:
        done = subprocess.run(
            [
                *(program, "profile", "--model", "mock", "--url", f"http://127.0.0.1:{port}"),
                *("--endpoint-type", "chat", "--streaming", "--concurrency", "3", "--tokenizer"),
                *(tokenizer(tmp_path / "words"), "--request-count", str(REQUESTS), "--ui", "none"),
                *("--synthetic-input-tokens-mean", "8", "--output-tokens-mean", str(TOKENS)),
                *("--workers-max", "2", "--artifact-dir", str(tmp_path / "run")),
            ],
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout.decode()
    (path,) = tmp_path.rglob("profile_export.jsonl")
    found = read_all(path)
    total = found["ttft"].histogram()
    assert (total.count, total.run.failed) == (REQUESTS - REQUESTS // FAILS, REQUESTS // FAILS)
    assert FIRST * 0.8e9 <= total.min <= FIRST * 1.6e9
