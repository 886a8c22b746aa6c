"""A log beyond the cache's budget is read in bounded memory, which does not grow with its length.

The bound, measured on processes of their own: a log of any length takes at most 16 MB more than one
of 20 intervals (96 MB with two threads, which decode ahead), and 128 bytes per interval (when it
was, how long it was, where its payload lies). In memory whole, this one would take 180 MB.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from latencykit.core.buckets import HdrBuckets
from latencykit.hdr.write import encode
from latencykit.io.hlog import HlogWriter
from tests.conftest import PEAK, python

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc has the peak memory")

INTERVALS = 4000
QUESTIONS = f"""
import sys
import latencykit as lk
from latencykit.cli import inputs
from latencykit.cli.options import Inputs
from latencykit.core import log_cache
from latencykit.core.histogram_log import interval_series
from latencykit.io.reading import Selection
{PEAK}
log_cache.BUDGET = 4 << 20
path = sys.argv[1]
counts = {{
    lk.read(path).histogram().count,
    int(lk.read(path).between(-1, 1e9).histogram().count),
    int(interval_series(lk.read(path).resample("60s"), [99]).count.sum()),
    int(interval_series(lk.read(path), [50, 99]).count.sum()),
    inputs.totals_of_all(Inputs(files=(path,), selection=Selection(jobs=1))).histogram.count,
}}
print(*counts, peak())
"""


def busy_log(path: Path, intervals: int) -> tuple[int, int]:
    """Write a log of a few busy intervals repeated; return the numbers of values and buckets."""
    rng, layout = np.random.default_rng(3), HdrBuckets(3)
    lines, nonzero = [], []
    for _ in range(4):
        counts = np.bincount(layout.index_of(rng.lognormal(12, 1.2, 10_000)))
        index = np.flatnonzero(counts)
        nonzero.append(index.size)
        lines.append(encode(layout, index, counts[index], highest=3_600_000_000_000))
    with path.open("wb") as stream:
        HlogWriter(stream, 1_700_000_000.0, "ns", []).header()
        for number in range(intervals):
            stream.write(f"{number}.000,1.000,1.000,".encode() + lines[number % 4] + b"\n")
    return 10_000 * intervals, sum(nonzero) * (intervals // 4)


def asked(path: Path, threads: int) -> tuple[int, int]:
    """Ask all questions in a new process; return the common count and the peak memory in bytes."""
    done = python("-c", QUESTIONS, path, env=os.environ | {"LATENCYKIT_JOBS": str(threads)})
    count, size = map(int, done.stdout.split())
    return count, size


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "more"), [(1, 20e6), (2, 96e6)])  # seen: 16 to 18e6
def test_memory_does_not_grow_with_the_length_of_a_log(tmp_path, threads, more):
    small, large = tmp_path / "small.hlog", tmp_path / "large.hlog"
    busy_log(small, 20)
    values, buckets = busy_log(large, INTERVALS)
    assert buckets * 12 > 180e6
    (_, little), (count, much) = asked(small, threads), asked(large, threads)
    assert count == values
    assert much - little < more + 128 * INTERVALS
