"""nats latency and nats bench."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "nats-latency/paced/stderr.txt").read_text()


@pytest.mark.parametrize(
    "change",
    [
        str,
        lambda t: t.replace("00:24:22 ", ""),
        lambda t: ("$ nats latency\n" + t).replace("\n", "\r\n"),
    ],
)
def test_percentiles(read_text, change):
    h = read_text(change(TEXT))["out.txt"]
    assert (h.count, h.min, h.max) == (6000, 26_000, 3_811_000)
    assert h.percentile([10, 50, 90, 99, 99.99]).tolist() == [58e3, 101e3, 164e3, 238e3, 1.049e6]
    assert (h.run.loop, h.run.rate, h.run.achieved, h.run.duration) == ("open", 1000, 999, 6.001293)
