"""JMH: modes, NaN, CSV of old and new versions."""

from __future__ import annotations

import json

import pytest

from latencykit.core.histogram import Histogram
from latencykit.core.summary import Summary
from latencykit.errors import CorruptInputError


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


TABLE = """\
Benchmark                   (n)  (k)    Mode     Cnt     Score     Error  Units
A.run                         1   ab  sample  888579   0,421 ± 500,946  us/op
A.run:p0.00                   1   ab  sample             ≈ 10⁻³          us/op
A.run:run·p0.50               1   ab  sample             0,042          us/op
A.run:run·p0.999              1   ab  sample             3,916          us/op
A.run:run·p1.00               1   ab  sample         95944,704          us/op
A.run                         2   ab   thrpt               4,000         ops/us
A.mean                        2   ab    avgt      10     1,129 ± 0,546  ms/op
"""


def test_the_table_that_it_prints(read_text):
    found = read_text(
        "# JMH version: 1.37\n# Threads: 2 threads, will synchronize iterations\n" + TABLE
    )
    run, pace, mean = (found[f"A.{name} k=ab"] for name in ("run n=1", "run n=2", "mean n=2"))
    assert (run.count + run.censored, run.mean, run.max, run.run.version) == (
        888579,
        421,
        95944704,
        "1.37",
    )
    assert run.percentile([0, 50, 99.9]).tolist() == [1, 42, 3916]
    assert (pace.mean, mean.mean, mean.count) == (500, 1_129_000, 10)  # two threads


def test_a_run_that_did_not_end_and_a_corrupt_row(read_text):
    with pytest.raises(CorruptInputError, match="the table of results is missing"):
        read_text("# JMH version: 1.37\n# Warmup Iteration   1: 420.956 ns/op\n")
    with pytest.raises(CorruptInputError, match=r"out\.txt:4: 'A\.run:run·p0\.50"):
        read_text(TABLE.replace("0,042 ", "fast "))
