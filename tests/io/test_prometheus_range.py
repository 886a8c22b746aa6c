"""Saved query answers: counters, rates, resets, native histograms."""

from __future__ import annotations

import json

from latencykit.core.histogram_log import HistogramLog, interval_series


def answer(series, kind="matrix"):
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": series}})


def bucket(le, values, name="rpc_seconds_bucket", **labels):
    metric = {"le": le} | labels | ({"__name__": name} if name else {})
    return {"metric": metric, "values": [[1_000 + 15 * k, str(v)] for k, v in enumerate(values)]}


def test_counters_become_differences(read_text):
    found = read_text(
        answer([bucket("0.1", [5, 8, 2]), bucket("0.5", [6, 11, 3]), bucket("+Inf", [6, 11, 3])])
    )["rpc_seconds"]
    assert isinstance(found, HistogramLog)
    series = interval_series(found)
    assert series.count.tolist() == [5, 3]  # the third sample began anew
    assert (series.max[0], found.starts.tolist(), found.lengths.tolist()) == (
        5e8,
        [0.0, 15.0],
        [15.0, 15.0],
    )
    assert found.run.start == 1_000
    assert any("reset 1 time in" in note for note in found.run.notes)


def test_rates_are_scaled_by_the_step(read_text):
    rates = [bucket("0.1", [0.2, 0.4], None), bucket("+Inf", [0.2, 0.4], None)]
    found = read_text(answer(rates), "range.json")["range.json"]
    assert interval_series(found).count.tolist() == [3, 6]
    assert found.run.unit_from == "assumed"


def test_values_above_the_last_bucket_are_censored(read_text):
    rows = [bucket("0.1", [0, 8, 9]), bucket("+Inf", [0, 10, 14])]
    found = read_text(answer(rows))["rpc_seconds"]
    assert isinstance(found, HistogramLog)
    assert [(one.count, one.censored, one.censored_at) for one in found] == [
        (8, 2, 1e8),
        (1, 3, 1e8),
    ]


def test_native_histograms(read_text):
    def sample(count):
        return {
            "count": str(count),
            "sum": "1",
            "buckets": [[0, "0.1", "0.2", str(count - 1)], [0, "0.2", "0.4", "1"]],
        }

    series = [
        {
            "metric": {"__name__": "rpc_seconds"},
            "histograms": [[1_000, sample(5)], [1_015, sample(9)]],
        }
    ]
    found = read_text(answer(series))["rpc_seconds"]
    assert interval_series(found).count.tolist() == [4]
    assert interval_series(found).max.tolist() == [2e8]


def test_custom_buckets_without_an_outer_edge_over_time(read_text):
    samples = [
        [
            stamp,
            {
                "count": str(first + last),
                "sum": "1",
                "buckets": [[3, "-Inf", "0.1", str(first)], [0, "0.5", "+Inf", str(last)]],
            },
        ]
        for stamp, first, last in ((1_000, 5, 1), (1_015, 9, 1), (1_030, 9, 4))
    ]
    row = {"metric": {"__name__": "rpc_seconds"}, "histograms": samples}
    found = read_text(answer([row]))["rpc_seconds"]
    assert [(one.count, one.censored) for one in found] == [(4, 0), (0, 3)]
    assert found.histogram().censored_at == 5e8
