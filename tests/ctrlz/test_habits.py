"""Nobody is accused wrongly: load generators with odd habits get the right verdict, or none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from latencykit.ctrlz.run import ctrlz
from tests.ctrlz.worlds import live

FAKE = str(Path(__file__).with_name("fake_tool.py"))


@pytest.mark.slow
@live
@pytest.mark.parametrize(
    ("habit", "verdict", "reason"),
    [
        ("seconds", None, "does not state its unit"),
        ("two-units", "honest", ""),
        ("drops-failed", "loses", "delayed requests are not in the report"),
        ("clips", "clips", "is reported"),
        ("retries-anew", None, "were sent where 900 were scheduled"),
        ("gives-up", None, "did it stop at the first error"),
        ("ramps", "honest", ""),
        ("closes", "honest", ""),
        ("one-connection", "omits", "are missing"),
        ("thinks", "omits", "are missing"),
        ("starts-late", "honest", ""),
        ("probes-long", None, "had not begun its load"),
    ],
)
def test_the_verdict_is_right_or_unknown(habit: str, verdict: str | None, reason: str) -> None:
    rate = "200" if habit == "thinks" else "{rate}"
    command = [sys.executable, FAKE, habit, "{url}", rate, "{duration}"]
    found = ctrlz(command, stall=1.5, duration=4.5)
    assert found.verdict in (verdict, "unknown")
    assert found.reasons[0]
    if found.verdict == verdict or verdict is None:
        assert reason in found.reasons[0]
