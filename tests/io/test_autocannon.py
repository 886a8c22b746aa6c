"""autocannon: JSON with and without its back-filling, and the tables it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencykit.errors import CorruptInputError
from latencykit.io.text_reports import plain
from tests.io.conftest import lost

DATA = Path(__file__).parents[1] / "data" / "formats"
TABLES = (DATA / "autocannon/latency/ac-latency.txt").read_text()


def record(counted=1600, replies=1600, **more):
    latency = {
        "average": 1.77,
        "mean": 1.77,
        "stddev": 1.76,
        "min": 1,
        "max": 16,
        "p0_001": 1,
        "p2_5": 1,
        "p50": 1,
        "p97_5": 7,
    }
    latency |= {"p99": 10, "p99_9": 15, "p99_999": 16} | (
        {} if counted is None else {"totalCount": counted}
    )
    facts = {
        "connections": 4,
        "duration": 8.02,
        "start": "1970-01-01T00:01:00.000Z",
        "errors": 0,
        "timeouts": 0,
        "non2xx": 0,
    }
    return json.dumps(
        {
            "url": "http://x",
            **facts,
            "latency": latency,
            "requests": {"average": 200, "total": replies},
            "throughput": {},
        }
        | more
    )


def test_json_below_tables(read_text):
    found = read_text(TABLES + record())
    assert found["out.txt"].run.format == "autocannon-json"


@pytest.mark.parametrize(
    "change",
    [
        str,
        plain,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "$ autocannon -l x\n" + plain(text).replace("│", "|"),
    ],
)
def test_tables(read_text, change):
    h = read_text(change(TABLES))["out.txt"]
    assert (h.count, h.run.failed, h.max, h.mean, h.std) == (1888, 944, 38e6, 2.29e6, 2.73e6)
    assert h.percentile([2.5, 10, 50, 75, 90, 97.5, 99, 99.9]).tolist() == [
        0,
        1e6,
        2e6,
        2e6,
        5e6,
        9e6,
        15e6,
        24e6,
    ]
    assert (h.run.corrected, h.run.connections, h.run.duration, h.run.achieved) == (
        "unknown",
        4,
        2.05,
        1416,
    )


def test_status_codes_are_not_percentiles(read_text):
    codes = "┌──────┬───────┐\n│ Code │ Count │\n├──────┼───────┤\n│ 200  │ 1888  │\n└──────┴───────┘\n\n"
    h = read_text(plain(TABLES).replace("1888 2xx", codes + "1888 2xx"))["out.txt"]
    assert (h.percentile(99.9), h.max, h.count) == (24e6, 38e6, 1888)


def test_nothing_was_answered(read_text):
    text = plain(TABLES).replace("1888 2xx responses, 944", "0 2xx responses, 12")
    found = read_text(text + "0 errors (0 timeouts)\n")["out.txt"]
    assert (found.count, found.run.failed) == (0, 12), "their times are the values"
    zeros = """\
| Stat    | 2.5% | 50%  | 97.5% | 99%  | Avg  | Stdev | Max  |
|---------|------|------|-------|------|------|-------|------|
| Latency | 0 ms | 0 ms | 0 ms  | 0 ms | 0 ms | 0 ms  | 0 ms |

0 requests in 10.01s, 0 B read
12 errors (0 timeouts)
"""
    assert lost(read_text(zeros)) == "12 failed"
    found = read_text(f"{zeros}\n## two\n{TABLES}\n## three\n{TABLES}")
    assert [one.count for one in found.values()] == [0, 1888, 1888]


def test_corruption(read_text):
    with pytest.raises(CorruptInputError, match="cannot be read"):
        read_text(plain(TABLES).replace(" 15 ms", " x5 ms"))
