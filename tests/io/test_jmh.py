"""JMH: modes, NaN, CSV of old and new versions."""

from __future__ import annotations

import json


def result(mode, unit, metric, threads=1, name="demo.A.run"):
    return {
        "jmhVersion": "1.37", "benchmark": name, "mode": mode, "threads": threads,
        "params": {"n": "1"},
        "primaryMetric": {"scoreUnit": unit, "scoreError": "NaN"} | metric, "secondaryMetrics": {},
    }  # fmt: skip


def test_modes_of_one_benchmark_and_scores_that_are_not_time(read_text):
    rows = [result("avgt", "us/op", {"score": 1.0}), result("ss", "us/op", {"score": 9.0, "rawData": [[8.0, 10.0]]}),
            result("avgt", "us/op", {"score": "NaN"}, name="demo.A.broken")]  # fmt: skip
    seen = []
    found = read_text(json.dumps(rows), "r.json", report=seen.append)
    assert list(found) == ["demo.A.run n=1 (avgt)", "demo.A.run n=1 (ss)"]
    assert found["demo.A.run n=1 (ss)"].max == 10_000
    assert "broken" in seen[0]
