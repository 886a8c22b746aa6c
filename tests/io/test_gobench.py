"""go test -bench: counts, extra units, events."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from latencykit.errors import CorruptInputError

TEXT = """goos: linux
cpu: Some CPU
BenchmarkA/n=8-2         \t   86312\t       248.0 ns/op\t      48 B/op\t       7 allocs/op
BenchmarkA/n=8-2         \t   95299\t       324.2 ns/op\t      48 B/op\t       7 allocs/op
BenchmarkB  \t 10\t 5e+06 ns/op\t 7500000 p99-ns/op
PASS
"""


def test_reported_percentiles_are_those_of_each_run(read_text):
    row = "BenchmarkA-8 \t 100\t 900 ns/op\t 500 p50-ns/op\t 2 p99_us\t 0.000003 p999-sec/op\t 4000 p100-ns\n"
    (data,) = read_text(row).values()
    assert (data.mean, data.count, data.max) == (900, 100, 4000)
    assert data.reported_percentiles == {50: 500, 99: 2000, 99.9: 3000}
    assert not any("prints means only" in note for note in data.run.notes)
    (both,) = read_text(row + row.replace("2 p99", "3 p99")).values()
    assert [run.percentile(99) for run in both.runs] == [2000, 3000]
    frame = both.percentiles([50, 99])
    assert frame.bucket_low.tolist() == [500, 2000]
    assert frame.bucket_high.tolist() == [500, 3000]
    assert frame.resolved.tolist() == [True, False]


def test_percentiles_of_what_a_benchmark_measures_within(read_text):
    row = "BenchmarkA-8 \t 1\t 900 ns/op\t 70 read-p95-ns/op\t 90 read-p99-ns/op\t 8 write_p99-us\t 3 step99-ns\n"
    found = read_text(row)
    assert list(found) == ["BenchmarkA-8", "BenchmarkA-8 read", "BenchmarkA-8 write"]
    assert (found["BenchmarkA-8"].reported_percentiles, found["BenchmarkA-8"].count) == ({}, 1)
    assert found["BenchmarkA-8 read"].reported_percentiles == {95: 70, 99: 90}
    assert (found["BenchmarkA-8 write"].percentile(99), found["BenchmarkA-8 write"].count) == (
        8000,
        None,
    )


def test_events_join_a_split_result(read_text):
    events = [
        {"Action": "start", "Package": "p"},
        {"Action": "output", "Package": "p", "Output": "BenchmarkA-2 \t"},
        {"Action": "output", "Package": "p", "Output": " 100\t 12.5 ns/op\n"},
    ]
    text = "\n".join(json.dumps(one) for one in events) + "\n"
    assert read_text(text, "b.json")["BenchmarkA-2"].mean == 12.5
    with pytest.raises(CorruptInputError, match=r"b\.json:2"):
        read_text(text.replace('{"Action": "output"', "{Action", 1), "b.json")
    cut = read_text(text + '{"Action": "out', "b.json")["BenchmarkA-2"]
    assert any("truncated" in note for note in cut.run.notes)


def test_a_corrupt_result_is_named(read_text):
    broken = "pkg: p\nok\npkg: q\n" + TEXT.replace("324.2 ns", "32x.2 ns")
    with pytest.raises(
        CorruptInputError, match=r"out\.txt:7: the result of BenchmarkA/n=8-2 is '32x\.2 ns"
    ):
        read_text(broken)
    assert read_text(broken, lenient=True)["BenchmarkA/n=8-2"].mean == 248.0


def test_thousands_of_packages_take_no_more_memory_than_their_text(read_text):
    text = "".join(f"pkg: a/p{n}\nBenchmarkX-8 100 5 ns/op\n" for n in range(1500))
    tracemalloc.start()
    try:
        series = read_text(text)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(text)
    finally:
        tracemalloc.stop()
    assert len(series) == 1500
    with pytest.raises(CorruptInputError, match=r":2998: the result of"):
        read_text(
            text.replace("a/p1498\nBenchmarkX-8 100 5 ns/op", "a/p1498\nBenchmarkX-8 1 -1 ns/op")
        )
