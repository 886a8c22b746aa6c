"""oha's JSON, CSV and text, and what tells that its latency correction was on."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError
from tests.io.conftest import lost

MARKS = [0.001 + 0.0005 * k for k in range(11)]
RECORD = {
    "summary": {"successRate": 1.0, "total": 10.0, "slowest": 0.006, "fastest": 0.001, "average": 0.0015, "requestsPerSec": 100},
    "responseTimeHistogram": {str(mark): 90 if k == 1 else 1 for k, mark in enumerate(MARKS)},
    "latencyPercentiles": {"p10": 0.00105, "p50": 0.0012, "p90": 0.0015, "p99": 0.0055, "p99.9": None},
    "firstBytePercentiles": {"p50": 0.00119, "p90": 0.00149, "p99": 0.0054},
    "details": {"firstByte": {"average": 0.0015, "fastest": 0.001, "slowest": 0.00599}},
    "statusCodeDistribution": {"200": 100},
    "errorDistribution": {"aborted due to deadline": 4},
}  # fmt: skip


def read(read_text, **changes):
    return read_text(json.dumps({**RECORD, **changes}), "out.json")["out.json"]


def test_json(read_text):
    found = read(read_text)
    assert (found.count, found.min, found.max, found.mean) == (100, 1e6, 6e6, 1.5e6)
    assert found.percentile([50, 90, 99]).tolist() == [1.2e6, 1.5e6, 5.5e6]
    assert found.count_above(1.5e6) == 9
    run = found.run
    assert (run.loop, run.corrected, run.unfinished, run.duration, run.achieved) == (
        "closed",
        "none",
        4,
        10.0,
        100.0,
    )


def test_times_far_above_those_to_the_first_byte_count_from_the_schedule(read_text):
    late = {**RECORD["latencyPercentiles"], "p90": 0.0045}
    found = read(read_text, latencyPercentiles=late)
    assert (found.run.loop, found.run.corrected, found.run.measure) == (
        "open",
        "schedule",
        "response",
    )
    bodies = read(read_text, latencyPercentiles=late, details={"firstByte": {"slowest": 0.002}})
    assert bodies.run.corrected == "unknown"
    assert read(read_text, firstBytePercentiles={}).run.corrected == "unknown"


def test_failures_mixed_and_apart(read_text):
    mixed = read(
        read_text,
        statusCodeDistribution={"200": 90, "500": 10},
        errorDistribution={"timeout": 3, "refused": 2},
    )
    assert (mixed.count, mixed.run.failed, mixed.run.timeouts, mixed.censored) == (90, 12, 3, 3)
    assert any("10 failed requests are among" in note for note in mixed.run.notes)
    marks = {str(mark): 81 if k == 1 else 1 if k < 10 else 0 for k, mark in enumerate(MARKS)}
    apart = read(
        read_text, statusCodeDistribution={"200": 90, "500": 10},
        responseTimeHistogramSuccessful=marks,
        latencyPercentilesSuccessful={"p50": 0.0011, "p90": 0.0012, "p99": 0.005},
    )  # fmt: skip
    assert (apart.count, apart.run.failed, apart.percentile(90)) == (90, 10, 1.2e6)
    assert not any("among" in note for note in apart.run.notes)


def test_marks_of_other_versions_and_equal_times(read_text):
    old = {
        str(0.0005 * (k + 1)): count
        for k, count in enumerate(RECORD["responseTimeHistogram"].values())
    }
    assert read(read_text, responseTimeHistogram=old).percentile(50) == 1.2e6
    same = dict.fromkeys(RECORD["latencyPercentiles"], 0.001)
    summary = {**RECORD["summary"], "slowest": 0.001, "average": 0.001}
    found = read(
        read_text, responseTimeHistogram={"0.001": 0}, latencyPercentiles=same, summary=summary
    )
    assert (found.count, found.percentile(99.99), found.max) == (100, 1e6, 1e6)
    nothing = dict.fromkeys(RECORD["latencyPercentiles"])
    empty = {
        "successRate": 0.0,
        "total": 1.0,
        "slowest": None,
        "fastest": None,
        "average": None,
        "requestsPerSec": 10.0,
    }
    failed = read(
        read_text, summary=empty, latencyPercentiles=nothing, statusCodeDistribution={},
        responseTimeHistogram={"NaN": 0},
        errorDistribution={"connection refused": 10},
    )  # fmt: skip
    assert lost({"": failed}) == "10 failed"


HEADER = "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n"


def test_csv_from_the_send_and_from_the_schedule(read_text):
    rows = [f"{0.01 * k + 0.0001},0,0,0.0012,0.0013,3,{200 if k else 503}" for k in range(40)]
    found = read_text(HEADER + "\n".join(rows) + "\n", "out.csv")["out.csv"]
    assert (found.duration[0], found.start[1], found.intended, found.run.corrected) == (
        1_300_000,
        10_100_000,
        None,
        "none",
    )
    assert found.outcome.tolist() == [1] + [0] * 39
    late = [0.0 if k < 10 else max(0.2 - 0.01 * (k - 10), 0.0) for k in range(40)]
    rows = [
        f"{0.01 * k + lag:.6f},0,0,0.0012,{0.0012 + lag:.6f},3,200" for k, lag in enumerate(late)
    ]
    found = read_text(HEADER + "\n".join(rows) + "\n", "out.csv")["out.csv"]
    assert (found.run.corrected, found.run.rate) == ("schedule", 100.0)
    assert (found.duration[12], found.response[12], found.intended[12]) == (
        1_200_000,
        181_200_000,
        120_000_000,
    )
    bodies = [f"{0.013 * k * (1 + k % 3)},0,0,0.001,{0.001 * (2 + k % 5)},3,200" for k in range(40)]
    assert (
        read_text(HEADER + "\n".join(bodies) + "\n", "out.csv")["out.csv"].run.corrected == "none"
    )


TEXT = """Summary:
  Success rate:	100.00%
  Total:	10004.1000 ms
  Slowest:	6.0000 ms
  Fastest:	1.0000 ms
  Average:	1.5000 ms
  Requests/sec:	9.9959

  Total data:	300 B
  Size/request:	3 B
  Size/sec:	29 B

Response time histogram:
  1.000 ms [1]  |
  1.500 ms [90] |■■■■■■■■■■
  2.000 ms [1]  |
  2.500 ms [1]  |
  3.000 ms [1]  |
  3.500 ms [1]  |
  4.000 ms [1]  |
  4.500 ms [1]  |
  5.000 ms [1]  |
  5.500 ms [1]  |
  6.000 ms [1]  |

Response time distribution:
  10.00% in 1.0500 ms
  50.00% in 1.2000 ms
  99.00% in 5.5000 ms
  99.90% in NaN ms


Details (average, fastest, slowest):
  DNS+dialup:	0.1000 ms, 0.1000 ms, 0.1000 ms

Status code distribution:
  [200] 100 responses

Error distribution:
  [4] aborted due to deadline
"""


def test_text(read_text):
    found = read_text("\x1b[1m" + TEXT.replace("Summary:", "Summary:\x1b[0m"))["out.txt"]
    assert (
        found.count,
        found.max,
        found.percentile(50),
        found.count_above(1.5e6),
        found.run.unfinished,
    ) == (
        100,
        6e6,
        1.2e6,
        9,
        4,
    )
    assert (found.run.format, found.run.duration, found.run.corrected) == (
        "oha",
        10.0041,
        "unknown",
    )
    assert (
        read_text("$ oha -q 9 --latency-correction http://x\n" + TEXT)["out.txt"].run.corrected
        == "schedule"
    )
    seconds = TEXT.replace(" ms", " secs").replace(".00% in", "% in")
    assert read_text(seconds)["out.txt"].percentile(99) == 5.5e9
    tens = TEXT.replace(" ms", " 10 sec")
    assert read_text(tens)["out.txt"].percentile(99) == 55e9
    with pytest.raises(CorruptInputError, match=r"out\.txt:28: "):
        read_text(TEXT.replace("50.00% in 1.2000", "50.00% in 1.?000"))
