"""bombardier: JSON and text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencykit.errors import CorruptInputError
from tests.io.conftest import lost

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "bombardier/latencies/stdout.txt").read_text()


def record(latency=True, errors=(), others=0, rate=300, **codes):
    result = {
        "timeTakenSeconds": 6.0,
        "req1xx": 0,
        "req2xx": 1800,
        "req3xx": 0,
        "req4xx": 0,
        "req5xx": 0,
        "others": others,
    } | codes
    if latency:
        result["latency"] = {
            "mean": 1600.5,
            "stddev": 243.7,
            "max": 4.99e6,
            "percentiles": {"50": 1574, "95": 1823, "99": 2507},
        }
    if errors:
        result["errors"] = [{"description": text, "count": count} for text, count in errors]
    spec = {
        "numberOfConnections": 4,
        "testType": "timed",
        "testDurationSeconds": 6,
        "timeoutSeconds": 2,
    }
    return json.dumps({"spec": spec | ({"rate": rate} if rate else {}), "result": result})


def test_json(read_text):
    h = read_text(record(), "out.json")["out.json"]
    assert (h.count, h.percentile(50), h.percentile(99), h.max, h.mean) == (
        1800,
        1_574_000,
        2_507_000,
        4.99e9,
        1_600_500,
    )
    run = h.run
    assert (run.loop, run.rate, run.connections, run.timeout, run.achieved) == (
        "paced",
        300,
        4,
        2e9,
        300,
    )
    assert (run.expected_interval, run.unit, run.corrected) == (
        pytest.approx(13_333_333.333),
        "us",
        "none",
    )
    assert read_text(record(rate=None), "out.json")["out.json"].run.loop == "closed"


def test_failures(read_text):
    h = read_text(
        record(req5xx=7, others=5, errors=[("timeout", 3), ("connection reset", 2)]), "out.json"
    )["out.json"]
    assert (h.count, h.run.failed, h.run.timeouts) == (1800, 9, 3)
    assert "3 × timeout" in h.run.notes
    assert (
        lost(read_text(record(req2xx=0, others=5, errors=[("refused", 5)]), "out.json"))
        == "5 failed"
    )


def test_without_latencies(read_text):
    with pytest.raises(CorruptInputError, match="contains no latencies"):
        read_text(record(latency=False), "out.json")


@pytest.mark.parametrize(
    "change",
    [
        str,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(
            "\n", "\n [====>----] 10.00% 1s\r [=========] 100.00%\nDone!\n", 1
        ),
        lambda text: "$ bombardier -l\n" + text[text.index("Statistics") :],
    ],
)
def test_text(read_text, change):
    h = read_text(change(TEXT))["out.txt"]
    assert (h.count, h.mean, h.std, h.max) == (3000, 1.53e6, 314_250, 6.12e6)
    assert h.percentile([50, 75, 90, 95, 99]).tolist() == [1.48e6, 1.54e6, 1.63e6, 1.81e6, 3.25e6]


def test_text_that_holds_less(read_text):
    begin, end = TEXT.index("  Latency Distribution"), TEXT.index("  HTTP codes")
    s = read_text(TEXT[:begin] + TEXT[end:])["out.txt"]
    assert (s.mean, s.max, s.count) == (1.53e6, 6.12e6, 3000)
    assert any("--latencies prints the distribution" in note for note in s.run.notes)
    text = TEXT.replace("5xx - 0", "5xx - 30").replace(
        "others - 0", "others - 4\n  Errors:\n       timeout - 4"
    )
    run = read_text(text.replace("with 3000 request(s)", "for 1m10s"))["out.txt"].run
    assert (run.failed, run.timeouts, run.connections, run.duration) == (30, 4, 8, 70)


def test_corruption(read_text):
    with pytest.raises(CorruptInputError, match=r"out\.txt:9: .*a row of the latency distribution"):
        read_text(TEXT.replace("95%     1.81ms", "95%     1.81xx ms"))
    with pytest.raises(CorruptInputError, match="closing table is missing"):
        read_text(TEXT[: TEXT.index("  HTTP")])


def test_several_runs_in_one_file(read_text):
    found = read_text(TEXT + TEXT)
    once = read_text(TEXT)["out.txt"]
    assert list(found) == ["run 1", "run 2"]
    assert [(one.count, one.run.failed, one.run.notes) for one in found.values()] == [
        (once.count, once.run.failed, once.run.notes)
    ] * 2


def test_json_of_several_runs_with_text_between(read_text):
    failed = record(req2xx=0, others=1800, errors=[("timeout", 1800)])
    found = read_text(f"### one\n```json\n{record()}\n```\n### two\n{failed}\n")
    assert [(one.count, one.run.timeouts) for one in found.values()] == [(1800, 0), (0, 1800)]


def test_text_without_blanks_and_with_a_second_distribution(read_text):
    whole = read_text(TEXT)["out.txt"]
    flat = "\n".join(map(str.strip, TEXT.split("\n")))
    assert read_text(flat)["out.txt"] == whole
    begin, end = TEXT.index("  Latency Distribution"), TEXT.index("  HTTP codes")
    good = TEXT[begin:end].replace("Distribution", "Distribution (2xx)").replace("1.", "0.")
    total = TEXT[begin:end].replace("Distribution", "Distribution (Total)")
    assert read_text(TEXT[:begin] + total + good + TEXT[end:])["out.txt"] == whole
