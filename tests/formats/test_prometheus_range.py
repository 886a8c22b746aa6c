"""Saved query answers: counters, rates, resets, native histograms."""

from __future__ import annotations

import json

import pytest

from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.errors import CorruptInputError


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
    series = found.series()
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
    assert found.series().count.tolist() == [3, 6]
    assert found.run.unit_from == "assumed"


def test_values_above_the_last_bucket_are_censored(read_text):
    found = read_text(answer([bucket("0.1", [0, 8]), bucket("+Inf", [0, 10])]))["rpc_seconds"]
    assert isinstance(found, Histogram)
    assert (found.count, found.censored, found.censored_at) == (8, 2, 1e8)


def test_instants_and_labels(read_text):
    series = [
        {"metric": {"__name__": "a_ms_bucket", "le": le, "op": op}, "value": [1.5, value]}
        for op in "xy"
        for le, value in (("1", "4"), ("+Inf", "4"))
    ]
    found = read_text(answer(series, "vector"))
    assert list(found) == ["a_ms", 'a_ms{op="x"}', 'a_ms{op="y"}']
    assert (found["a_ms"].count, found["a_ms"].max) == (8, 1e6)


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
    assert found.series().count.tolist() == [4]
    assert found.series().max.tolist() == [2e8]


def test_a_quantile_is_no_histogram(read_text):
    series = [{"metric": {"job": "x"}, "values": [[1, "0.5"]]}]
    with pytest.raises(CorruptInputError, match="no series has the label le"):
        read_text(answer(series))
    with pytest.raises(CorruptInputError, match="a string"):
        read_text(json.dumps({"data": {"resultType": "string", "result": []}}))
