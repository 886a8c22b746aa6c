"""fio: bins, percentiles, versions, mixed outputs, logs."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.histogram_log import HistogramLog, interval_series
from latencykit.errors import CorruptInputError


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
