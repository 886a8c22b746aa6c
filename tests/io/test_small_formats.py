"""Cases that no sample shows: Google Benchmark, Artillery, two columns, pyperf, HistogramLogProcessor."""

from __future__ import annotations

import json

import numpy as np
import pytest

from latencykit.errors import CorruptInputError, LatencyKitError

ROW = {"name": "a", "run_name": "a", "real_time": 2.5, "cpu_time": 2.0, "time_unit": "us"}


def google(*rows: dict[str, object]) -> str:
    return json.dumps({"context": {"library_version": "1.9"}, "benchmarks": rows})


def test_google_aggregates_alone_are_a_summary(read_text):
    kinds = {"mean": 3.0, "median": 2.5, "stddev": 1.0, "cv": 0.3}
    rows = [
        ROW | {"name": f"a_{kind}", "run_type": "aggregate", "aggregate_name": kind, "real_time": v}
        for kind, v in kinds.items()
    ]
    (data,) = read_text(google(*rows)).values()
    assert (data.mean, data.std) == (3000, 1000)


def test_google_skips_failed_ones_and_counts_them(read_text):
    bad = ROW | {"error_occurred": True, "error_message": "no file", "real_time": 0.0}
    (data,) = read_text(google(ROW | {"iterations": 10}, bad)).values()
    assert (data.mean, data.count, data.run.failed) == (2500, 10, 1)
    with pytest.raises(CorruptInputError, match="1 benchmark failed"):
        read_text(google(bad))


def test_google_aggregates_without_types_belong_to_their_benchmark(read_text):
    """In older versions only their names show it, and a benchmark may have such a name, too."""
    old = {key: value for key, value in ROW.items() if key != "run_name"} | {"iterations": 9}
    rows = [old | {"real_time": time} for time in (2.5, 3.5)]
    rows += [
        old | {"name": name} for name in ("a_mean", "a_stddev", "b_mean", "b_stddev", "c_mean")
    ]
    found = read_text(google(*rows))
    assert list(found) == ["a", "b", "c_mean"]
    assert (found["a"].max, found["b"].stats) == (3500, {"mean": 2500, "std": 2500})


GOOGLE = """\
-----------------------------------------------------
Benchmark           Time             CPU   Iterations
-----------------------------------------------------
BM_a/threads:4   1.50 us         6.00 us         1000
"""


def test_google_prints_a_table(read_text):
    (data,) = read_text(GOOGLE).values()
    assert (data.mean, data.count, data.run.connections) == (1500, 1000, 4)
    old = "Benchmark    Time(ns)    CPU(ns) Iterations\n------\nBM_a    1500    6000    1000  1.3MB/s\n"
    (data,) = read_text(old).values()
    assert (data.mean, data.count) == (1500, 1000)
    # the heading is printed again for other counters; a name again is of another run
    assert list(read_text(GOOGLE + GOOGLE.replace("BM_a", "BM_b"))) == [
        "BM_a/threads:4",
        "BM_b/threads:4",
    ]
    assert list(read_text(GOOGLE + GOOGLE)) == ["run 1 BM_a/threads:4", "run 2 BM_a/threads:4"]
    with pytest.raises(CorruptInputError, match=r"out\.txt:8: 'BM_a"):
        read_text(GOOGLE + GOOGLE.replace("1.50", "1.5x"))


def test_artillery_one(read_text):
    report = {
        "timestamp": "2020-01-01T00:00:00.000Z", "scenariosCreated": 10, "scenariosCompleted": 9,
        "requestsCompleted": 9, "latency": {"min": 1.5, "max": 80, "median": 2, "p95": 50, "p99": 80},
        "rps": {"count": 10, "mean": 2}, "codes": {"200": 8, "500": 1}, "errors": {"ETIMEDOUT": 1},
    }  # fmt: skip
    (data,) = read_text(json.dumps({"aggregate": report, "intermediate": []})).values()
    assert (data.count, data.max, data.percentile(95)) == (9, 80e6, 50e6)
    assert (data.run.failed, data.run.timeouts) == (0, 1)
    assert any("1 answers of status" in note for note in data.run.notes)


def test_the_time_is_the_end_unless_it_is_a_start(read_text):
    rows = "1000 50\n2000 900\n"
    for header, starts in (
        ("TIMEus DELTAus", [950_000, 1_100_000]),
        ("STIME(us) DELTA(us)", [1_000_000, 2_000_000]),
        ("TIMEms LATENCYus", [999_950_000, 1_999_100_000]),
    ):
        (data,) = read_text(f"{header}\n{rows}").values()
        assert data.duration.tolist() == [50_000, 900_000]
        assert data.start.tolist() == starts
        assert data.run.unit_from == "file"


def test_a_printed_histogram_is_not_a_trace(read_text):
    table = "".join(
        f"{value} {count}\n" for value, count in zip(range(100, 3100, 100), [5] * 30, strict=True)
    )
    with pytest.raises(LatencyKitError, match="--column"):
        read_text(table)


def test_a_trace_without_a_header_needs_a_clock(read_text):
    dice = np.random.default_rng(3)
    clock, took = np.cumsum(dice.integers(1, 999, 100)) + 10**9, dice.integers(1, 999, 100)
    rows = [f"{a} {b}\n" for a, b in zip(clock, took, strict=True)]
    (data,) = read_text("".join(rows)).values()
    assert data.duration.sum() == took.sum() * 1000
    assert data.run.unit_from == "assumed"
    (data,) = read_text("".join(rows), unit="ns").values()
    assert data.duration.sum() == took.sum()
    with pytest.raises(LatencyKitError):
        read_text("".join(reversed(rows)))


def test_a_corrupt_row_is_named(read_text):
    with pytest.raises(CorruptInputError, match=r":25: "):
        read_text(
            "TIMEus DELTAus\n" + "".join(f"{k} 5\n" if k != 25 else "25 x\n" for k in range(2, 40))
        )


def test_pyperf_means_of_several_benchmarks(read_text):
    text = (
        "a: Mean +- std dev: 12.2 us +- 2.0 us\n.....\nb: Mean +- std dev: 1.20 sec +- 0.01 sec\n"
    )
    series = read_text(text)
    assert {name: data.mean for name, data in series.items()} == {"a": 12_200, "b": 1.2e9}


def test_totals_of_a_processor_never_fall(read_text):
    head = "Time: IntervalPercentiles:count ( 50% 90% Max ) TotalPercentiles:count ( 50% 90% 99% 99.9% 99.99% Max )\n"
    row = "{0}.000: I:5 ( 1.000 2.000 3.000 ) T:{1} ( 1.000 2.000 3.000 3.000 3.000 3.000 )\n"
    text = head + row.format(1, 10) + row.format(2, 5)
    with pytest.raises(CorruptInputError, match=r":3: "):
        read_text(text)
    (data,) = read_text(head + row.format(1, 10) + row.format(2, 20), unit="us").values()
    assert (data.count, data.max) == (20, 3000)


STATS = """\
Total duration: 11.6 sec
Total number of values: 60

Minimum:         {0} us
Median +- MAD:   4.25 us +- 0.05 us
Mean +- std dev: 4.34 us +- 0.31 us
Maximum:         6.02 us

  0th percentile: {0} us (-5% of the mean) -- minimum
 50th percentile: 4.25 us (-2% of the mean) -- median
 95th percentile: 4.84 us (+12% of the mean)
100th percentile: 6.02 us (+39% of the mean) -- maximum

Number of outlier (out of 4.07 us..4.44 us): 9
"""


def test_pyperf_stats_of_one_file_and_of_several_benchmarks(read_text):
    (data,) = read_text(STATS.format(4.12)).values()
    assert (data.count, data.min, data.max, data.mean) == (60, 4120, 6020, 4340)
    assert data.percentile(95) == 4840
    text = f"add\n---\n\n{STATS.format(4.12)}\nmul\n---\n\n{STATS.format(4.0)}"
    found = read_text(text)
    assert {name: data.min for name, data in found.items()} == {"add": 4120, "mul": 4000}
    # --stats of a run prints the mean once more; a run without it follows
    text = f"{STATS.format(4.12)}\nMean +- std dev: 4.34 us +- 0.31 us\nMean +- std dev: 9 us +- 1 us\n"
    assert [data.mean for data in read_text(text).values()] == [4340, 9000]
