"""JMH: modes, NaN, CSV of old and new versions."""

from __future__ import annotations

import json

import pytest

from latencykit.core.histogram import Histogram
from latencykit.core.summary import Summary


def result(mode, unit, metric, threads=1, name="demo.A.run"):
    return {
        "jmhVersion": "1.37", "benchmark": name, "mode": mode, "threads": threads,
        "params": {"n": "1"},
        "primaryMetric": {"scoreUnit": unit, "scoreError": "NaN"} | metric, "secondaryMetrics": {},
    }  # fmt: skip


def test_sample_mode_keeps_every_value(read_text):
    metric = {
        "score": 1.5,
        "rawDataHistogram": [[[[1.0, 98], [3.0, 2]], [[1.0, 100]]]],
        "scorePercentiles": {"50.0": 1.0, "99.9": 2.98},
    }
    found = read_text(json.dumps([result("sample", "us/op", metric)]), "r.json")["demo.A.run n=1"]
    assert isinstance(found, Histogram)
    assert (found.count, found.max, found.mean, found.percentile(99.9)) == (200, 3000, 1500, 2980)


@pytest.mark.parametrize(
    ("mode", "unit", "score", "mean"),
    [("avgt", "ms/op", 2.0, 2e6), ("thrpt", "ops/us", 4.0, 500.0), ("avgt", "min/op", 1.0, 60e9)],
)
def test_means_say_how_to_get_a_distribution(read_text, mode, unit, score, mean):
    found = read_text(
        json.dumps([result(mode, unit, {"score": score, "rawData": [[score, score]]}, threads=2)]),
        "r.json",
    )
    only = found["demo.A.run n=1"]
    assert isinstance(only, Summary)
    assert only.mean == mean
    assert any("-bm sample" in note for note in only.run.notes)


def test_modes_of_one_benchmark_and_scores_that_are_not_time(read_text):
    rows = [result("avgt", "us/op", {"score": 1.0}), result("ss", "us/op", {"score": 9.0, "rawData": [[8.0, 10.0]]}),
            result("avgt", "us/op", {"score": "NaN"}, name="demo.A.broken")]  # fmt: skip
    seen = []
    found = read_text(json.dumps(rows), "r.json", report=seen.append)
    assert list(found) == ["demo.A.run n=1 (avgt)", "demo.A.run n=1 (ss)"]
    assert found["demo.A.run n=1 (ss)"].max == 10_000
    assert "broken" in seen[0]


@pytest.mark.parametrize("mark", [":p", ":run·p"])
def test_csv_percentile_rows(read_text, mark):
    head = (
        '"Benchmark","Mode","Threads","Samples","Score","Score Error (99.9%)","Unit","Param: n"\n'
    )
    row = '"demo.A.run{}","sample",1,{},{},NaN,"us/op",1\n'
    text = head + row.format("", 5000, 2.5)
    for p, value in (("0.00", 1.0), ("0.50", 2.0), ("0.90", 3.0), ("0.99", 8.0), ("1.00", 90.0)):
        text += row.format(mark + p, 1, value)
    found = read_text(text, "r.csv")["demo.A.run n=1"]
    assert (found.count, found.percentile(99), found.max, found.min, found.mean) == (
        5000,
        8000,
        90_000,
        1000,
        2500,
    )


def test_a_throughput_of_zero_in_a_csv_has_no_mean(read_text):
    head = '"Benchmark","Mode","Threads","Samples","Score","Score Error (99.9%)","Unit"\n'
    rows = [
        f'"demo.A.{name}","thrpt",1,5,{score},NaN,"ops/s"\n'
        for name, score in (("slow", 0.0), ("run", 4.0))
    ]
    found = read_text(head + "".join(rows), "r.csv")
    assert (found["demo.A.slow"].stats, found["demo.A.run"].mean) == ({}, 250_000_000)
