"""perf-gauge: blocks of text, and its metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencykit.io.reading import read_source
from latencykit.io.source import ReadOptions, Source

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "perf-gauge/stalled/stdout.txt").read_text()


@pytest.mark.parametrize(
    "change",
    [lambda t: t.replace("\n", "\r\n"), lambda t: "$ perf-gauge\n\x1b[31mERROR\x1b[0m\n" + t],
)
def test_other_surroundings(read_text, change):
    assert read_text(change(TEXT))["out.txt"].percentile(99) == 6.22e6


def test_metrics_are_microseconds():
    found = read_source(
        Source(DATA / "perf-gauge-prometheus/pushed/pushgateway.txt.gz"), ReadOptions()
    )
    assert list(found) == ["latency", "success_latency", "error_latency"]
    good = found["success_latency"]
    assert (good.count, good.percentile(50), good.percentile(99), good.max, good.mean) == (
        706,
        1.502e6,
        7.604e6,
        17.856e6,
        2.048e6,
    )
    assert (good.run.failed, good.run.unit, good.run.aggregate, found["latency"].run.aggregate) == (
        16,
        "us",
        False,
        True,
    )
    assert found["error_latency"].max == 2.968e6
