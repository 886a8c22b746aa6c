"""latte: payloads of the run and of its samples, percentiles of older versions."""

from __future__ import annotations

import json

import numpy as np

from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram_log import HistogramLog, interval_series
from latencykit.hdr.write import encode


def latency(values):
    buckets = HdrBuckets(3)
    index, counts = np.unique(buckets.index_of(np.array(values)), return_counts=True)
    rows = [
        {"n": 100, "value": v / 1e6, "std_err": None}
        for v in np.percentile(
            values, [0, 1, 2, 5, 10, 25, 50, 75, 90, 95, 98, 99, 99.9, 99.99, 100]
        )
    ]
    return {
        "mean": {"n": 1, "value": float(np.mean(values)) / 1e6},
        "percentiles": rows,
        "histogram": encode(buckets, index, counts).decode(),
    }


def report(log=(), rate=None):
    whole = latency([1_000_000, 2_000_000, 9_000_000])
    result = {
        "start_time": "2026-11-21T00:00:00+01:00", "elapsed_time_s": 2.0, "cycle_count": 3,
        "request_count": 3, "error_count": 1,
        "req_throughput": {"value": 1.5}, "cycle_latency": whole,
        "cycle_latency_by_fn": {"run": whole},
        "request_latency": whole, "log": list(log),
    }  # fmt: skip
    conf = {
        "workload": "w.rn",
        "rate": rate,
        "threads": 2,
        "concurrency": 8,
        "sampling_interval": "1s",
    }
    return json.dumps({"conf": conf, "percentiles": [], "result": result})


def test_samples_make_a_log(read_text):
    log = [
        {
            "time_s": k,
            "duration_s": 1.0,
            "request_latency": latency([1_000_000 * (k + 1)] * (k + 1)),
            "cycle_latency": latency([5]),
        }
        for k in range(3)
    ]
    found = read_text(report(log))["request"]
    assert isinstance(found, HistogramLog)
    assert interval_series(found).count.tolist() == [1, 2, 3]
    assert found.starts.tolist() == [0.0, 1.0, 2.0]
    assert abs(interval_series(found).max[2] - 3e6) < 3_000
