"""scylla-bench: raw and schedule-based latencies."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError

TEXT = """Configuration
Mode:\t\t\t write
Partition count:\t 100
Concurrency:\t\t 16
Maximum rate:\t\t 1000 op/s

time    ops/s  rows/s errors max
Results
Time (avg):\t 10.5s
Total ops:\t 10000
Total rows:\t 10000
Total errors:\t 2
Operations/s:\t 995.5
Rows/s:\t\t 995.5
raw latency :
  max:\t\t 22.937599ms
  99.9th:\t 9.1ms
  99th:\t\t 3.2ms
  95th:\t\t 1.5ms
  90th:\t\t 900µs
  median:\t 393.215µs
  mean:\t\t 450.5µs
c-o fixed latency :
  max:\t\t 1.5s
  99.9th:\t 1.2s
  99th:\t\t 800ms
  95th:\t\t 2ms
  90th:\t\t 1ms
  median:\t 400µs
  mean:\t\t 9ms
"""


def test_both_series(read_text):
    found = read_text(TEXT)
    assert list(found) == ["raw", "co-fixed"]
    raw, fixed = found["raw"], found["co-fixed"]
    assert (raw.count, raw.percentile(99), raw.max, raw.mean, raw.run.failed) == (
        10_000,
        3.2e6,
        22_937_599,
        450_500,
        2,
    )
    assert (raw.run.loop, raw.run.rate, raw.run.duration, raw.run.connections) == (
        "paced",
        1000.0,
        10.5,
        16,
    )
    assert (raw.run.corrected, fixed.run.corrected, fixed.run.measure) == (
        "none",
        "schedule",
        "response",
    )
    assert fixed.max == 1.5e9


def test_no_results(read_text):
    with pytest.raises(CorruptInputError, match="results at the end"):
        read_text(TEXT.split("Results")[0])
