"""autocannon: JSON with and without its back-filling, and the tables it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencykit.errors import CorruptInputError
from latencykit.io.text_reports import plain
from tests.io.conftest import lost

DATA = Path(__file__).parents[1] / "data" / "formats"
TABLES = (DATA / "autocannon/latency/ac-latency.txt").read_text()


def test_json_below_tables(read_text):
    found = read_text(TABLES + (DATA / "autocannon-json/failures/ac.json").read_text())
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
