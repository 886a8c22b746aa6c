"""How long the resampling of statistics takes: ``python -m tests.benchmarks.stats_speed`` prints milliseconds (medians)."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from latencykit.analysis.bootstrap import draw_means, draw_percentiles
from latencykit.analysis.change_points import change_positions
from latencykit.analysis.compare import compare_counts
from latencykit.core.dependence import Dependence
from latencykit.core.quantiles import Counted

if TYPE_CHECKING:
    from collections.abc import Callable

PERCENTILES = [50, 75, 90, 95, 99, 99.9]


def jobs() -> dict[str, Callable[[], object]]:
    """What is measured, over a histogram of 1,200 buckets and a log of 3,600 intervals."""
    rng = np.random.default_rng(0)
    edges = np.geomspace(1, 1000, 1201)
    shape = 1000 * np.exp(-(((np.arange(1200) - 400) / 200.0) ** 2))
    base, new = (Counted(edges[:-1], edges[1:], rng.poisson(shape)) for _ in range(2))
    rows, runs = rng.poisson(2.0, (3600, 400)).astype(float), rng.normal(100, 3, 200)
    known = Dependence(rows, edges[:400])
    ends = [-1.96, 1.96]
    return {
        "1,000 replicates of 6 percentiles": lambda: draw_percentiles(
            base, PERCENTILES, 1000, np.random.default_rng(1)
        ),
        "1,000 replicates of the mean": lambda: draw_means(
            base, [(0.0, 1.0)], 1000, np.random.default_rng(1)
        ),
        "a comparison of 6 percentiles and the mean": lambda: compare_counts(
            base, new, PERCENTILES
        ),
        "intervals of 4 percentiles that know of time": lambda: replace(known).levels(
            [50, 90, 99, 99.9], ends
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
