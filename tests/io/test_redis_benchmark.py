"""redis-benchmark: two lists of cumulative counts, the clip at 3 s, old versions, quiet lines, CSV."""

from __future__ import annotations

import json
from pathlib import Path

from latencykit.io.reading import read_source
from latencykit.io.source import ReadOptions, Source
from latencykit.views.series import series_record

DATA = Path(__file__).parents[1] / "data" / "formats"

BLOCK = """====== GET ======
  1000 requests completed in 0.50 seconds
  4 parallel clients
  3 bytes payload
  keep alive: 1
  multi-thread: no

Latency by percentile distribution:
0.000% <= 0.015 milliseconds (cumulative count 10)
50.000% <= 0.031 milliseconds (cumulative count 640)
99.219% <= 0.079 milliseconds (cumulative count 993)
100.000% <= 9.095 milliseconds (cumulative count 1000)

Cumulative distribution of latencies:
99.500% <= 0.103 milliseconds (cumulative count 995)
99.600% <= 2.103 milliseconds (cumulative count 996)
100.000% <= 9.103 milliseconds (cumulative count 1000)

Summary:
  throughput summary: 2000.00 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        0.067     0.008     0.031     0.055     0.071     9.095
"""


def test_both_lists_and_the_table_together(read_text):
    h = read_text(BLOCK)["GET"]
    assert (h.count, h.min, h.mean, h.max) == (1000, 8000, 67_000, 9_095_000)
    assert h.percentile([50, 95, 99, 99.2, 99.55, 100]).tolist() == [
        31e3,
        55e3,
        71e3,
        79e3,
        2.103e6,
        9.095e6,
    ]
    assert (h.count_above(0.079e6), h.count_above(0.103e6)) == (7, 5)
    assert float(h.buckets.low(h.index[-1])) > 7e6, (
        "the list moves by 1 ms, so the last four lie near its last row"
    )
    run = h.run
    assert (run.loop, run.corrected, run.duration, run.achieved, run.connections) == (
        "closed",
        "none",
        0.5,
        2000,
        4,
    )


def test_the_clip_becomes_at_least_three_seconds():
    found = read_source(Source(DATA / "redis-benchmark/clipped/stdout.txt"), ReadOptions())["GET"]
    assert (found.count, found.censored, found.censored_at, found.requests) == (
        359_996,
        4,
        3e9,
        360_000,
    )
    assert (found.percentile(99.9), found.max) == (575_000, 3_000_319_000)
    assert any("4 requests took 3 s or more" in note for note in found.run.notes)
    record = series_record("GET", found)
    assert (record["count"], record["max"]) == (360_000, 3_000_319_000)
    assert json.dumps(record["percentiles"][-1]["high"]) == "null"
