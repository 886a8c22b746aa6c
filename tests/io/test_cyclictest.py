"""cyclictest: buckets, overflows, threads, status lines."""

from __future__ import annotations

import pytest

HISTOGRAM = """# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000\t000000
000004 000002\t000000
000005 000007\t000005
# Total: 000000009 000000005
# Min Latencies: 00004 00005
# Avg Latencies: 00004 00005
# Max Latencies: 01067 00005
# Histogram Overflows: 00001 00000
"""


def test_threads_overflows_and_the_maximum(read_text):
    found = read_text(HISTOGRAM)
    assert list(found) == ["all", "thread 0", "thread 1"]
    first, second = found["thread 0"], found["thread 1"]
    assert (first.count, first.censored, first.censored_at, first.max) == (
        9,
        1,
        6_000.0,
        1_067_000.0,
    )
    assert (second.count, second.censored, second.max) == (5, 0, 5_000.0)
    assert first.percentile(50) == 5_999.0
    assert (found["all"].count, found["all"].censored, found["all"].run.aggregate) == (14, 1, True)


def test_the_unit_can_be_given(read_text):
    found = read_text(HISTOGRAM, unit="ns")
    assert found["thread 1"].max == 5.0
    assert found["thread 1"].run.unit_from == "option"


def test_a_cut_histogram_says_so(read_text):
    found = read_text(HISTOGRAM[: HISTOGRAM.index("# Total")])
    assert any("truncated" in note for note in found["all"].run.notes)


def test_verbose(read_text):
    cycles = "       0:       0:      13\n       0:       1:      -2\n       0:       2:      40\n"
    text = f"Max CPUs = 2\nThread 0 Interval: 1500\n{cycles}"
    found = read_text(text)["out.txt"]
    assert found.duration.tolist() == [13_000, 40_000]
    assert any("negative" in note for note in found.run.notes)


def test_status_lines_keep_the_last_of_each_thread(read_text):
    line = "T: {} ( 1234) P:80 I:{} C: {} Min:      4 Act:   15 Avg:   20 Max:    {}\n"
    found = read_text(
        line.format(0, 1000, 50, 60) + line.format(0, 1000, 100, 67) + line.format(1, 1500, 66, 30)
    )
    assert (found["thread 0"].count, found["thread 0"].max) == (100, 67_000)
    assert found["thread 1"].run.expected_interval == 1.5e6


@pytest.mark.parametrize(("resolution", "top"), [(0, 5_000.0), (1, 5.0)])
def test_json_states_its_unit(read_text, resolution, top):
    text = (
        '{"file_version": 1, "cmdline:": "cyclictest -q --histogram=400", "rt_test_version:": '
        '"2.40", '
        f'"resolution_in_ns": {resolution}, "thread": {{"0": {{"histogram": {{"4": 3, "5": 1}}, '
        '"cycles": 6, "min": 4, "max": 5, "avg": 4.2}}}'
    )
    found = read_text(text)["out.txt"]
    assert found.max == top
    assert (found.count, found.censored) == (4, 2)


def test_rtla_s_columns_and_their_sums(read_text):
    text = (
        "# Time unit is nanoseconds (ns)\n  Index   IRQ-003   Thr-003   Usr-003\n"
        "  1000        2         0         0\n  2000        1         3         0\n"
        "  over:       0         1         0\n  min:     1000      2000 18446744073709551615\n"
        "  avg:     1300      2900         -\n  max:     2000      5000         0\n"
    )
    found = read_text(text)
    assert list(found) == ["IRQ-003", "Thr-003"]
    assert (found["Thr-003"].requests, found["Thr-003"].censored, found["Thr-003"].max) == (
        4,
        1,
        5000,
    )
    assert found["IRQ-003"].min == 1000
