"""memtier_benchmark: payloads, older versions, several runs, tables."""

from __future__ import annotations

import json

import numpy as np
import pytest

from latencykit.core.buckets import HdrBuckets
from latencykit.errors import CorruptInputError
from latencykit.hdr.write import encode

VALUES = np.array([100, 200, 300, 5000])  # µs


def payload():
    buckets = HdrBuckets(3)
    return encode(buckets, buckets.index_of(VALUES), np.ones(4, np.int64)).decode()


def row(**more):
    return {
        "Count": 4,
        "Ops/sec": 1.0,
        "Connection Errors": 2,
        "Min Latency": 0.1,
        "Max Latency": 5.0,
        "Average Latency": 1.4,
    } | more


def record(section, name="ALL STATS", limit=100):
    facts = {"Threads": 2, "Connections per thread": 4}
    return json.dumps(
        {"configuration": {"rate_limit": limit}, "run information": facts, name: section}
    )


def test_the_whole_histogram(read_text):
    latencies = {
        "p50.00": 0.2,
        "p99.90": 5.0,
        "Histogram log format": {"Compressed Histogram": payload()},
    }
    section = {
        "Sets": row(**{"Percentile Latencies": latencies}),
        "Totals": row(**{"Percentile Latencies": latencies}),
        "Gets": {"Count": 0},
    }
    found = read_text(record(section))
    assert list(found) == ["Totals", "Sets"]
    h = found["Totals"]
    assert (h.count, h.max, h.percentile(50), h.mean, h.run.failed) == (4, 5e6, 200_000, 1.4e6, 2)
    assert (h.run.aggregate, h.run.loop, h.run.rate, h.run.expected_interval) == (
        True,
        "paced",
        800.0,
        1e7,
    )
    assert found["Sets"].run.rate is None


def test_a_corrupt_payload(read_text):
    latencies = {"Histogram log format": {"Compressed Histogram": payload()[:-8]}}
    with pytest.raises(CorruptInputError, match="histogram of Totals is corrupt"):
        read_text(record({"Totals": row(**{"Percentile Latencies": latencies})}))


def test_older_versions_have_steps(read_text):
    steps = [
        {"<=msec": 0.1, "percent": 0.0},
        {"<=msec": 0.2, "percent": 50.0},
        {"<=msec": 5.0, "percent": 100.0},
    ]
    section = {"Sets": row(), "Totals": row(**{"p50.00": 0.2, "p99.00": 4.0}), "SET": steps}
    found = read_text(record(section, limit=0))
    assert found["Sets"].percentile(50) == 200_000
    assert found["Totals"].percentile(99) == 4e6
    assert found["Totals"].run.loop == "closed"


def test_several_runs_take_the_aggregate(read_text):
    text = json.loads(record({"Totals": row()}, "BEST RUN RESULTS"))
    text["AGGREGATED AVERAGE RESULTS (3 runs)"] = {"Totals": row(**{"Max Latency": 9.0})}
    found = read_text(json.dumps(text))["Totals"]
    assert found.max == 9e6
    assert any("AGGREGATED" in note for note in found.run.notes)


def test_tables(read_text):
    text = """2         Threads
4         Connections per thread
10        Requests per client


ALL STATS
=====
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec
-----
Sets           20.00          ---          ---         0.17792         0.08700         2.65500         3.24700         5.62
Waits           0.00          ---          ---             ---             ---             ---             ---          ---
Totals         20.00         0.00         0.00         0.15633         0.07900         1.82300         4.22300        33.96


Request Latency Distribution
Type     <= msec         Percent
-----
SET       0.023        0.000
SET       3.263      100.000
---
"""
    found = read_text(text)
    assert list(found) == ["Totals", "Sets"]
    assert (found["Totals"].count + found["Totals"].censored, found["Totals"].percentile(99)) == (
        80,
        1_823_000,
    )


def test_the_table_of_version_1_2_has_a_mean(read_text):
    found = read_text(
        "4         Threads\n50        Connections per thread\n100       Requests per client\n\n\n"
        "ALL STATS\n======\n"
        "Type         Ops/sec     Hits/sec   Misses/sec      Latency       KB/sec \n------\n"
        "Sets         4543.72          ---          ---      4.00500       350.02 \n"
        "Totals      49980.94         0.00     45437.22      4.00100      2120.03 \n\n\n"
        "Request Latency Distribution\nType     <= msec         Percent\n-----\n"
        "SET       4.000        60.10\nSET       9.000        99.00\nSET      15.000       100.00\n"
    )
    assert (found["Totals"].count, found["Totals"].mean) == (20_000, 4.001e6)
    assert (found["Sets"].mean, found["Sets"].percentile(99), found["Sets"].count) == (
        4.005e6,
        9e6,
        None,
    )
    assert not any("Ops/sec" in note for note in found["Sets"].run.notes)
