"""How long intervals and comparisons take: ``python -m tests.benchmarks.stats_speed`` prints milliseconds (medians)."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from latencykit.analysis.change_points import change_positions
from latencykit.analysis.compare import compare_single
from latencykit.core.evidence import Evidence
from latencykit.core.histogram import Histogram
from latencykit.core.jackknife import Jackknife

if TYPE_CHECKING:
    from collections.abc import Callable

PERCENTILES = [50, 75, 90, 95, 99, 99.9]


def jobs() -> dict[str, Callable[[], object]]:
    """What is measured, over a histogram of 1,200 buckets and a log of 3,600 intervals."""
    rng = np.random.default_rng(0)
    edges = np.geomspace(1, 1000, 1201)
    shape = 1000 * np.exp(-(((np.arange(1200) - 400) / 200.0) ** 2))
    sides = tuple(
        Evidence(Histogram.from_buckets(edges[:-1], edges[1:], rng.poisson(shape)))
        for _ in range(2)
    )
    rows, runs = rng.poisson(2.0, (3600, 400)).astype(float), rng.normal(100, 3, 200)
    known = Jackknife(rows, edges[:400], 3600.0)
    return {
        "a comparison of 6 percentiles and the mean": lambda: compare_single(sides, PERCENTILES),
        "intervals of 4 percentiles that know of time": lambda: replace(known).errors(
            [50, 90, 99, 99.9]
        ),
        "change points of 200 runs": lambda: change_positions(runs),
    }


def main() -> None:
    """Print one line a job."""
    for name, job in jobs().items():
        taken = []
        for _ in range(3):
            begin = time.perf_counter()
            job()
            taken.append(time.perf_counter() - begin)
        print(f"{name}: {1000 * statistics.median(taken):.1f} ms")


if __name__ == "__main__":
    main()
