"""YCSB: its measurement types, intended latencies, failures."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError

HEAD = """Command line: -db x -target 100 -threads 4
[OVERALL], RunTime(ms), 10000
[OVERALL], Throughput(ops/sec), 98.9
[CLEANUP], Operations, 4
"""
READ = """[READ], Operations, 100
[READ], AverageLatency(us), 594.6
[READ], MinLatency(us), 273
[READ], MaxLatency(us), 46367
[READ], 95thPercentileLatency(us), 890
[READ], 99thPercentileLatency(us), 1220
[READ], Return=OK, 97
[READ], Return=ERROR, 3
"""


def test_closing_lines(read_text):
    found = read_text(HEAD + READ + READ.replace("READ", "Intended-READ"))
    assert list(found) == ["READ", "Intended-READ"]
    h = found["READ"]
    assert (h.count, h.max, h.percentile(99), h.mean, h.run.failed) == (
        100,
        46_367_000,
        1_220_000,
        594_600,
        3,
    )
    assert (h.run.loop, h.run.rate, h.run.connections, h.run.corrected) == (
        "paced",
        100.0,
        4,
        "none",
    )
    intended = found["Intended-READ"].run
    assert (intended.measure, intended.corrected) == ("response", "schedule")


def test_every_recorded_value(read_text):
    rows = "[READ], 273, 60.0\n[READ], 890, 38.0\n[READ], 46399, 2.0\n"
    h = read_text(HEAD + READ + rows)["READ"]
    assert (h.count, h.percentile(50), h.percentile(98), h.max) == (
        100,
        273_000,
        890_000,
        46_367_000,
    )
    assert not any("verbose" in note for note in h.run.notes)


def test_milliseconds_and_their_overflow(read_text):
    rows = "".join(f"[READ], {k}, {n}\n" for k, n in enumerate([90, 7, 2])) + "[READ], >3, 1\n"
    h = read_text(HEAD + READ + rows)["READ"]
    assert (h.count, h.censored, h.censored_at) == (99, 1, 3e6)
    assert h.percentile(50) == 999_999
    assert h.max == 46_367_000


def test_means_of_intervals_are_not_counts(read_text):
    h = read_text(HEAD + READ + "[READ], 0, 594.3\n[READ], 1000, 595.0\n")["READ"]
    assert h.count == 100
    assert any("distribution" in note for note in h.run.notes)


def test_json_in_both_layouts(read_text):
    rows = [
        {"metric": "READ", "measurement": "Operations", "value": 10},
        {"metric": "READ", "measurement": "AverageLatency(us)", "value": 5.5},
    ]
    for text in (json.dumps(rows), "".join(json.dumps(one) for one in rows)):
        assert read_text(text)["READ"].mean == 5_500


def test_raw_rows(read_text):
    rows = "READ,1795220742902,594\nREAD,1795220742950,1000\nUPDATE,1795220742960,7\nREAD,17952"
    text = f"READ latency raw data: op, timestamp(ms), latency(us)\n{rows}"
    found = read_text(text)
    assert list(found) == ["all", "READ", "UPDATE"]
    assert found["READ"].start.tolist() == [1795220742902_000_000 - 594_000, 1795220742949_000_000]
    with pytest.raises(CorruptInputError, match=r"out\.txt:3: "):
        read_text(text.replace("950,1000", "950,x"))


def test_releases_that_print_milliseconds(read_text):
    text = (
        "[OVERALL], RunTime(ms), 10110.0\n[OVERALL], Throughput(ops/sec), 50.2\n"
        "[READ], Operations, 508\n[READ], AverageLatency(ms), 2.5\n[READ], MinLatency(ms), 1\n"
        "[READ], MaxLatency(ms), 120\n[READ], 95thPercentileLatency(ms), 5\n"
        "[READ], 99thPercentileLatency(ms), 14\n[READ], Return=0, 508\n"
    )
    data = read_text(text)["READ"]
    assert (data.count, data.mean, data.max, data.percentile(99)) == (508, 2.5e6, 120e6, 14e6)
    assert data.run.failed == 0
    assert any("rounds percentiles down" in note for note in data.run.notes)


def test_buckets_of_milliseconds_of_old_versions(read_text):
    """Version 0.1 puts no blank behind some commas, and a value is at least its bucket's."""
    text = (
        "[OVERALL],RunTime(ms), 10110\n[UPDATE], Operations, 491\n"
        "[UPDATE], AverageLatency(ms), 0.055\n[UPDATE], MinLatency(ms), 0\n"
        "[UPDATE], MaxLatency(ms), 1\n[UPDATE], 99thPercentileLatency(ms), 1\n"
        "[UPDATE], 0, 464\n[UPDATE], 1, 27\n[UPDATE], 2, 0\n"
    )
    (data,) = read_text(text).values()
    assert (data.count, data.mean) == (491, 55_000)
    row = data.percentile_rows([50])[0]
    assert (row.bucket_low, row.bucket_high) == (0, pytest.approx(1e6, abs=2))


def test_operations_that_are_not_counted_have_latencies(read_text):
    text = "[OVERALL], Throughput(ops/sec), 3156.5\n" + "\n".join(READ.splitlines()[1:]) + "\n"
    (data,) = read_text(text).values()
    assert data.count is None
    assert data.max == 46_367_000


GO = "READ - Takes(s): 9.0, Count: {}, OPS: 9.0, Avg(us): 3066, Min(us): 1766, Max(us): 131613, "


def test_go_ycsb_once_kept_buckets_of_one_millisecond_up_to_a_second(read_text):
    text = GO.format(5000) + "99th(us): 125000, 99.9th(us): 132000, 99.99th(us): 0\n"
    (data,) = read_text(text).values()
    assert data.percentile(99) == 125e6
    assert data.percentile(99.9) == data.max == 131.613e6  # the edge of the bucket is above it
    assert 99.99 not in data.reported_percentiles[0]


def test_go_ycsb_s_lines_are_about_the_run_so_far_and_go_tpc_s_are_not(read_text):
    lines = [GO.format(count) + "99th(us): 125000\n" for count in (10, 20)]
    (data,) = read_text("".join(lines)).values()
    assert (data.count, data.run.duration, data.run.loop) == (20, 9.0, "closed")
    (data,) = read_text(f"[Current] {lines[0]}[Summary] {lines[1]}").values()
    assert data.count == 20
    with pytest.raises(CorruptInputError, match=r"some seconds of the run \(\[Current\]\)"):
        read_text(f"[Current] {lines[0]}")


def test_go_ycsb_that_only_failed(read_text):
    (name,) = read_text(GO.format(5).replace("READ", "READ_ERROR") + "99th(us): 125000\n")
    assert "READ_ERROR" in name


def test_json_of_two_runs(read_text):
    one = [
        {"metric": metric, "measurement": name, "value": value}
        for metric, name, value in (
            ("OVERALL", "RunTime(ms)", 1000), ("READ", "Operations", 7),
            ("READ", "AverageLatency(us)", 5), ("READ", "MaxLatency(us)", 9),
        )
    ]  # fmt: skip
    found = read_text(json.dumps(one) + "\n" + json.dumps(one).replace("7", "8"), "x.json")
    assert {name: data.count for name, data in found.items()} == {"run 1 READ": 7, "run 2 READ": 8}


def test_go_ycsb_that_was_stopped_does_not_change_the_run_before(read_text):
    head = "***************** properties *****************\n"
    line = GO + "99th(us): 9000\n"
    text = head + line.format(10) + "Run finished, takes 9s\n" + line.format(20)
    (data,) = read_text(text + head + line.format(5)).values()
    assert data.count == 20
