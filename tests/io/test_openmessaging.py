"""OpenMessaging Benchmark: three measures in two units."""

from __future__ import annotations

import json


def test_the_three_measures(read_text):
    record = {
        "workload": "1-topic", "driver": "Kafka", "publishRate": [100.0, 101.0],
        "publishErrorRate": [0.0, 0.3],
        "consumeRate": [99.0, 99.0],
        "publishLatency50pct": [1.0], "aggregatedPublishLatencyAvg": 2.5,
        "aggregatedPublishLatency50pct": 2.0,
        "aggregatedPublishLatency99pct": 9.0, "aggregatedPublishLatency999pct": 20.0,
        "aggregatedPublishLatencyMax": 30.5,
        "aggregatedPublishDelayLatencyAvg": 40.0, "aggregatedPublishDelayLatency50pct": 30,
        "aggregatedPublishDelayLatency99pct": 90,
        "aggregatedPublishDelayLatencyMax": 5000, "aggregatedEndToEndLatencyAvg": 3.0,
        "aggregatedEndToEndLatencyMax": 31.0,
        "aggregatedEndToEndLatencyQuantiles": {"0.0": 1.0, "50.0": 2.5, "99.0": 9.5, "100.0": 31.0},
    }  # fmt: skip
    found = read_text(json.dumps(record))
    assert list(found) == ["publish", "publish delay", "end-to-end"]
    assert (found["publish"].count, found["publish"].percentile(99), found["publish"].max) == (
        2010,
        9e6,
        30.5e6,
    )
    assert (found["publish delay"].max, found["publish delay"].run.unit) == (5e6, "us")
    assert (found["end-to-end"].percentile(50), found["end-to-end"].count) == (2.5e6, 1980)
    assert found["publish"].run.failed == 3
