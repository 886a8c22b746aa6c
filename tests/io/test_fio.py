"""fio: bins, percentiles, versions, mixed outputs, logs."""

from __future__ import annotations

import json

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.histogram_log import HistogramLog, interval_series
from latencykit.errors import CorruptInputError


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
