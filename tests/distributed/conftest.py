"""Logs to spread out."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from latencykit.cli.inputs import time_bins_of_all, totals_of_all
from latencykit.cli.options import Inputs
from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram_log import blocks_of, interval_tags
from latencykit.hdr.write import encode
from latencykit.io.hlog import HlogWriter
from latencykit.io.reading import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    import latencykit as lk
    from latencykit.core.histogram import Histogram
    from latencykit.core.histogram_log import HistogramLog


@pytest.fixture(scope="session")
def make_log() -> Callable[..., Path]:
    """A function that writes a log of seeded intervals."""

    def make(
        path: Path,
        seed: int = 0,
        intervals: int = 24,
        *,
        start: float = 1_700_000_000.0,
        tags: tuple[str, ...] = ("",),
        digits: int = 3,
    ) -> Path:
        rng, layout = np.random.default_rng(seed), HdrBuckets(digits)
        with path.open("wb") as stream:
            HlogWriter(stream, start, "ns", []).header()
            for number in range(intervals):
                counts = np.bincount(layout.index_of(rng.lognormal(12, 1, 30)))
                index = np.flatnonzero(counts)
                for tag in tags:
                    prefix = f"Tag={tag}," if tag else ""
                    payload = encode(layout, index, counts[index], highest=3_600_000_000_000)
                    head = f"{prefix}{number * 0.7:.3f},0.700,1.000,"
                    stream.write(head.encode() + payload + b"\n")
        return path

    return make


@pytest.fixture(scope="session")
def logs(tmp_path_factory, make_log) -> list[str]:
    """Eight logs that begin at different moments, with and without tags, and one of other digits."""
    folder = tmp_path_factory.mktemp("logs")
    paths = [
        make_log(folder / f"host-{k:02}.hlog", k, start=1_700_000_000.0 + 3.3 * k) for k in range(6)
    ]
    paths.append(make_log(folder / "host-06.hlog", 8, tags=("get", "put"), start=1_700_000_001.0))
    paths.append(make_log(folder / "host-07.hlog", 9, digits=2))
    return [str(path) for path in paths]


@pytest.fixture
def timeless(logs, tmp_path) -> Path:
    """The first of them, without its start."""
    path = tmp_path / "timeless.hlog"
    lines = Path(logs[0]).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b"Time:" not in line))
    return path


def same(a: Histogram, b: Histogram) -> bool:
    """Whether two histograms are equal bit for bit, with what is known of their runs."""
    facts = ("start", "duration", "failed", "unit", "notes")
    return (
        a.buckets == b.buckets
        and a.index.tobytes() == b.index.tobytes()
        and a.counts.tobytes() == b.counts.tobytes()
        and all(getattr(a.run, name) == getattr(b.run, name) for name in facts)
    )


def rows_of(log: HistogramLog) -> Any:
    """All that a log holds, as plain values."""
    held = {}
    for block in blocks_of(log):
        for row, (low, high) in zip(block.rows.tolist(), pairwise(block.indptr), strict=True):
            if low < high:  # a block may leave empty intervals out
                own = block.index[low:high].tolist(), block.counts[low:high].tolist()
                held[row] = repr(block.buckets), *own
    return log.starts.tolist(), log.lengths.tolist(), interval_tags(log), sorted(held.items())


@pytest.fixture
def say(run):
    """Run a command; return exit status and what it says."""

    def said(*words):
        status, out, err = run("-q", *words)
        return status, out or err

    return said


def inputs_of(paths, *, dask: str | None = None, **selection) -> Inputs:
    """What the command line makes of FILES and options."""
    files = (paths,) if isinstance(paths, str) else tuple(map(str, paths))
    return Inputs(files=files, selection=Selection(**{"jobs": 1} | selection), dask=dask)


def total_of(paths, **options) -> lk.Histogram:
    """The sum of all files, as `summary --merge` makes it of many."""
    return totals_of_all(inputs_of(paths, **options)).histogram


def bins_of(paths, width: float, align: str = "absolute", **options) -> lk.HistogramLog:
    """The sum of all files by time bins, as `summary --merge --interval` makes it of many."""
    return time_bins_of_all(inputs_of(paths, **options), width, align).log
