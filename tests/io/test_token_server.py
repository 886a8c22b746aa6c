"""From a server whose tokens come at known times, through a client's table, back to these times."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from latencykit.io.parts import read_all
from tests.io.token_server import FAILS, FIRST, GAP, token_server

pytestmark = pytest.mark.slow
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
