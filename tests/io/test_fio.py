"""fio: bins, percentiles, versions, mixed outputs, logs."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.histogram_log import HistogramLog, interval_series
from latencykit.errors import CorruptInputError

TEXT = """seq: (g=0): rw=write, bs=(R) 16.0KiB-16.0KiB, ioengine=psync, iodepth=1
fio-3.33
Starting 1 process

seq: (groupid=0, jobs=1): err= 0: pid=26531: Sat Nov 21 00:17:25 2026
  write: IOPS=1.9k, BW=3198KiB/s (3275kB/s)(9600KiB/3002msec); 0 zone resets
    clat (usec): min=4, max=36k, avg=19.38, stdev=17.10
     lat (usec): min=4, max=36k, avg=20.65, stdev=17.46
    clat percentiles (usec):
     |  1.00th=[    6],  5.00th=[    7], 50.00th=[   18], 95.00th=[   35],
     | 99.00th=[   43], 99.90th=[  371], 99.99th=[  371]
  lat (usec)   : 10=23.67%, 20=33.50%, 50=42.50%, 100=0.17%, 500=0.17%
  fsync/fdatasync/sync_file_range:
    sync percentiles (usec):
     | 50.00th=[  243]
     issued rwts: total=0,600,0,75 short=0,0,0,0 dropped=0,0,0,0
"""


def side(**more):
    return {"total_ios": 4, "runtime": 2000, "iops": 2.0} | more


def latency(bins=None, **more):
    table = {
        "min": 100,
        "max": 5000,
        "mean": 1300.0,
        "stddev": 9.0,
        "N": 4,
        "percentile": {"50.000000": 129, "99.000000": 4960},
    }
    return table | ({"bins": bins} if bins else {}) | more


def record(*jobs):
    return json.dumps({"fio version": "fio-3.33", "jobs": list(jobs)}, indent=1)


def test_bins_and_an_aggregate_of_all(read_text):
    bins = {"100": 1, "129": 2, "4960": 1}
    job = {
        "jobname": "a",
        "read": side(clat_ns=latency(bins)),
        "write": side(clat_ns=latency(bins)),
        "job options": {"rate_iops": "50"},
    }
    found = read_text(record(job))
    assert list(found) == ["all", "a read", "a write"]
    h = found["a read"]
    assert h.buckets.low([0, 1, 2]).tolist() == [100, 128, 4928]
    assert h.buckets.high([0, 1, 2]).tolist() == [100, 129, 4991]
    assert (h.percentile(50), h.percentile(99), h.max, h.mean) == (129, 4960, 5000, 1300)
    assert (h.run.loop, h.run.rate) == ("paced", 50.0)
    assert (found["all"].count, found["all"].run.aggregate) == (8, True)


def test_percentiles_alone_are_not_added_up(read_text):
    job = {"jobname": "a", "read": side(clat_ns=latency()), "write": side(clat_ns=latency())}
    assert list(read_text(record(job))) == ["a read", "a write"]


def test_total_latency_is_preferred_where_it_has_a_distribution(read_text):
    job = {"jobname": "a", "read": side(clat_ns=latency(max=5000), lat_ns=latency(max=6000))}
    assert read_text(record(job))["a read"].max == 6000


def test_version_2_has_microseconds_and_clients_have_their_own_list(read_text):
    old = {
        "jobname": "a",
        "read": side(
            clat={
                "min": 1,
                "max": 50,
                "mean": 9.0,
                "stddev": 1.0,
                "percentile": {"50.0": 8, "99.0": 40},
            }
        ),
    }
    text = json.dumps({"fio version": "fio-2.21", "client_stats": [old]})
    found = read_text("note: both iodepth >= 1\n" + text)["a read"]
    assert (found.max, found.percentile(50), found.count, found.run.unit) == (
        50_000,
        8_000,
        4,
        "us",
    )


def test_the_last_of_several_reports_counts(read_text):
    first, last = ({"jobname": "a", "read": side(clat_ns=latency(N=n))} for n in (2, 4))
    assert read_text(record(first) + "\n" + record(last) + "\n\nseq: text\n")["a read"].count == 4
    with pytest.raises(CorruptInputError, match="ends in the middle"):
        read_text(record(first)[:-9])


def test_json_of_several_runs_is_several_runs(read_text):
    """A status of one run has the same start; another run has another."""
    runs = [
        record({"jobname": "a", "job_start": start, "read": side(clat_ns=latency(N=n))})
        for start, n in ((1000, 2), (1000, 4), (2000, 5))
    ]
    text = "\n".join(run.replace('"job_start":', '"job_start" :') for run in runs)
    found = read_text(text)
    assert {name: data.count for name, data in found.items()} == {
        "run 1 a read": 4,
        "run 2 a read": 5,
    }


def test_a_copied_part_of_the_text(read_text):
    part = TEXT[TEXT.index("  write:") :]
    (write, sync) = read_text(part).items()
    assert (write[0], write[1].percentile(99)) == ("write", 43_000)
    assert sync[0] == "sync"
    table = part[part.index("    clat percentiles") : part.index("  lat (usec)   :")]
    (data,) = read_text(table).values()
    assert data.percentile(99) == 43_000


def test_clients_of_a_server_are_named(read_text):
    job = {"jobname": "a", "hostname": "host-1", "read": side(clat_ns=latency(N=2))}
    (name,) = read_text(record(job))
    assert name == "host-1 a read"


def test_normal_text(read_text):
    found = read_text(TEXT)
    assert list(found) == ["seq write", "seq sync"]
    h = found["seq write"]
    assert (h.count, h.max, h.percentile(99), h.mean, h.run.achieved) == (
        600,
        36e6,
        43_000,
        19_380,
        1900,
    )
    version_2 = re.sub(
        r"issued rwts: .*", "issued    : total=r=0/w=706/d=0, short=r=0/w=0/d=0", TEXT
    )
    assert read_text(version_2)["seq write"].count == 706


def test_terse_and_its_corruption(read_text):
    percentiles = ";".join(
        f"{p:.6f}%={v}" for p, v in [(1.0, 5), (50.0, 17), (99.0, 42), *[(0, 0)] * 17]
    )
    nothing = (
        "0;0;0;0;0;0;0.0;0.0;0;0;0.0;0.0;" + ";".join(["0%=0"] * 20) + ";0;0;0.0;0.0;0;0;0%;0;0"
    )
    write = f"9600;3197;199;3002;0;0;0.0;0.0;4;368;19.379795;17.09;{percentiles};4;369;20.6;17.4;3200;3232;50%;3206.4;14.3"
    line = f"3;fio-3.33;seq;0;0;{nothing};{write};1.0%;0.0%\n"
    h = read_text(line)["seq write"]
    assert (h.percentile(50), h.percentile(99), h.max, h.count) == (17_000, 42_000, 368_000, 597)
    with pytest.raises(CorruptInputError, match=r"out\.txt:2: a terse line of 6 fields"):
        read_text(line + "3;fio-3.33;seq;0;0;1\n")


def test_latency_log(read_text):
    found = read_text(
        "1, 231716, 0, 4096, 0\n2, 123818, 1, 4096, 8192\n3, 59291, 0, 4096, 0\n", "run_lat.1.log"
    )
    assert list(found) == ["all", "read", "write"]
    assert found["read"].start.tolist() == [1_000_000 - 231716, 3_000_000 - 59291]


def test_windows_of_a_log_say_that_they_are_means(read_text):
    found = read_text("100, 25911, 1, 0, 0\n200, 21620, 1, 0, 0\n", "run_clat.1.log")[
        "run_clat.1.log"
    ]
    assert any("mean of a window" in note for note in found.run.notes)
    assert any("clat" in note for note in found.run.notes)


def test_a_bandwidth_log_is_refused(read_text):
    with pytest.raises(CorruptInputError, match="bandwidth"):
        read_text("100, 25911, 1, 0, 0\n", "run_bw.1.log")


@pytest.mark.parametrize("halved", [0, 3])
def test_histogram_log(read_text, halved):
    counts = np.zeros((2, 1856 >> halved), int)
    counts[0, 100 >> halved], counts[1, 1000 >> halved] = 5, 3
    lines = [
        f"{500 * (k + 1)}, 1, 4096, " + ", ".join(map(str, row))
        for k, row in enumerate(counts.tolist())
    ]
    log = read_text("\n".join(lines) + "\n500, 1, 40", "run_clat_hist.1.log")["run_clat_hist.1.log"]
    assert isinstance(log, HistogramLog)
    assert (log.starts.tolist(), log.lengths.tolist()) == ([0.0, 0.5], [0.5, 0.5])
    series = interval_series(log)
    assert series.count.tolist() == [5, 3]
    # bucket 1000 is group 14 (from 2**20), bucket 40 of 64: 1048576 + 40 * 16384
    base = 2**20 + 40 * 2**14
    assert series.max[1] == base + (2**14 << halved) - 1
    assert any("truncated" in note for note in log.run.notes)


def window(at, direction, count="0"):
    """A row of a histogram log, as fio -log_hist_coarseness=4 writes it."""
    return f"{at}, {direction}, 4096, {', '.join(['1'] + [count] * 75)}\n"


@pytest.mark.parametrize(
    "row",
    [
        window(2000, 9),
        window(2000, -1),
        window(2000, 0, "-3"),
        window(2000, 0, "9" * 19),
        "2000, 0, 4096, 1\n",
    ],
)
def test_a_row_that_fio_does_not_write_is_named_or_skipped(read_text, row):
    text = window(1000, 0) + row + window(3000, 1)
    with pytest.raises(CorruptInputError, match=r":2: .*--lenient skips the line"):
        read_text(text, "x_clat_hist.1.log")
    (log,) = read_text(text, "x_clat_hist.1.log", lenient=True).values()
    assert (log.tags, log.histogram().count) == (("read", "write"), 2)


def test_a_histogram_log_without_a_whole_row_says_so(tmp_path):
    path = tmp_path / "x.log"
    path.write_text("\n\n")
    with pytest.raises(CorruptInputError, match="no row is complete"):
        lk.read(path, format="fio-histograms")


@pytest.mark.parametrize("direction", ["9", "-1"])
def test_a_direction_that_fio_does_not_know_is_refused(tmp_path, direction):
    path = tmp_path / "x_lat.1.log"
    path.write_text(f"1, 5, 0, 4096\n2, 5, {direction}, 4096\n")
    with pytest.raises(CorruptInputError):
        lk.read(path, format="fio-log")
