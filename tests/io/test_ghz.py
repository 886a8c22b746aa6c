"""ghz: calls with their outcomes, and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencykit.core.samples import OUTCOMES

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "ghz/paced/ghz-text.txt").read_text()


def record(details, **asked):
    options = {"rps": 100, "concurrency": 4, "timeout": 20_000_000_000} | asked
    return json.dumps(
        {"date": "2026-11-21T00:19:21Z", "endReason": "normal", "options": options, "count": 2, "total": 2e9, "average": 5,
         "fastest": 1, "slowest": 9, "rps": 1.0, "details": details}
    )  # fmt: skip


def call(at, latency, status="OK"):
    return {
        "timestamp": f"2026-11-21T00:00:{at:02d}.5Z",
        "latency": latency,
        "error": "",
        "status": status,
    }


def test_a_stamp_is_the_end_of_a_call(read_text):
    s = read_text(
        record(
            [
                call(1, 500_000_000),
                call(2, 1000),
                call(3, 9, "DeadlineExceeded"),
                call(4, 5, "Internal"),
            ]
        ),
        "out.json",
    )
    s = s["out.json"]
    assert s.start[0] % 10**9 == 0
    assert [OUTCOMES[code] for code in s.outcome] == ["ok", "ok", "timeout", "error"]
    assert (s.run.loop, s.run.rate, s.run.connections, s.run.expected_interval) == (
        "paced",
        100,
        4,
        4e7,
    )
    assert (
        s.run.corrected,
        s.run.measure,
        s.histogram().run.failed,
        s.histogram().run.timeouts,
    ) == ("none", "service", 1, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: "$ ghz x\n" + t,
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.replace("1.48 ms", "1480 µs"),
    ],
)
def test_other_surroundings(read_text, change):
    assert read_text(change(TEXT))["out.txt"].percentile(10) == 1.48e6
