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
