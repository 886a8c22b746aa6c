"""Steadiness of a run: whether latencies of its second half differ from those of the first.

Sixteen blocks of time show how much the share of slow requests varies by chance. Their variance is
taken from differences between neighbours (von Neumann, 1941), all but the largest, which neither a
trend nor a step inflates much, while a single stall does. What is left is a t test of the halves,
at a level that leaves room for blocks that depend on each other. Where latencies are correlated
over as long as a block, or single blocks make the difference, nothing is said.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from latencykit._arrays import as_positions
from latencykit._records import record
from latencykit.core.quantiles import median
from latencykit.units import format_percentile, format_value

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from latencykit._typing import Floats, Ints


@record()
class DriftRules:
    """When the halves of a run differ; chosen on AR(1) worlds and single stalls."""

    # of time
    blocks: int = 16
    # above a percentile that each half has at least
    min_slow_requests: int = 20
    # standard errors: blocks may depend on each other
    min_deviations: float = 14.0
    # the same of blocks that do: neighbours are alike, and show too little variance
    min_deviations_dependent: float = 20.0
    # of independent requests, from which on blocks depend
    dependent_variances: float = 5.0
    # within a block: correlated for as long, nothing is said
    max_correlation: float = 0.25
    # of a block that can show any correlation
    min_block_rows: int = 4
    # of the difference, which the medians of the blocks show: not one block's alone
    min_median_share: float = 1 / 3
    # of the percentiles of the halves
    min_ratio: float = 1.1


DRIFT = DriftRules()


@record()
class Drift:
    """A percentile that differs between the halves of a run.

    Attributes
    ----------
    percentile : float
    first, second : float
        Its value in each half, within about 2 %.
    """

    percentile: float
    first: float
    second: float

    def text(self, unit: str) -> str:
        """Return one sentence."""
        first, second = (format_value(float(f"{x:.2g}"), unit) for x in (self.first, self.second))
        return (
            f"the run is not steady: p{format_percentile(self.percentile)} is about {first} in the "
            f"first half, about {second} in the second"
        )


def drift(table: Floats, value: Floats, percentile: float) -> Drift | None:
    """Return a percentile of each half of a run if they differ by more than chance explains.

    Parameters
    ----------
    table : ndarray of float64, shape (bins, groups)
        Requests in time bins × groups of ascending latencies.
    value : ndarray of float64, shape (groups,)
    percentile : float

    Returns
    -------
    Drift or None
        None also for runs that are too short to show it.

    Examples
    --------
    >>> table = np.random.default_rng(1).integers(90, 110, (200, 2)).astype(float)
    >>> table[:100, 1], table[100:, 0] = 9, 20
    >>> drift(table, np.array([1e6, 2e6]), 50.0)
    Drift(percentile=50.0, first=1000000.0, second=2000000.0)
    """
    table = table[table.sum(axis=1) > 0]
    if len(table) < DRIFT.min_block_rows * DRIFT.blocks:
        return None
    half = np.add.reduceat(table, as_positions([0, len(table) // 2]))
    begins = np.linspace(0, len(table), DRIFT.blocks, endpoint=False).astype(int)
    above = np.cumsum(table.sum(axis=0)[::-1])[::-1]
    wanted = (1 - percentile / 100) * above[0]
    edge = int(np.abs(np.log(above[1:] / wanted)).argmin()) + 1 if above.size > 1 else 0
    slow = half[:, edge:].sum(axis=1)
    if not edge or (half.sum(axis=1) * (1 - percentile / 100) < DRIFT.min_slow_requests).any():
        return None
    first, second = (_percentile(one, value, percentile) for one in half)
    if max(first, second) < DRIFT.min_ratio * min(first, second) or not slow.any():
        return None
    above_it, counts = table[:, edge:].sum(axis=1), table.sum(axis=1)
    size = np.add.reduceat(counts, as_positions(begins))
    share = np.add.reduceat(above_it, as_positions(begins)) / size
    if _differ(share, size) and _memory(above_it / counts, begins) < DRIFT.max_correlation:
        return Drift(percentile, first, second)
    return None


def _differ(share: Floats, size: Floats) -> bool:
    """True if the means of the halves differ beyond chance, and not by single blocks alone."""
    squares = np.sort(np.diff(share) ** 2)[:-1]  # but the largest: it may be the step
    variance = float(squares.mean()) / 2
    first, second = np.split(share, 2)
    between = abs(float(first.mean() - second.mean()))
    if abs(float(median(first) - median(second))) < DRIFT.min_median_share * between:
        return False
    independent = float((share * (1 - share) / size).mean())
    beyond = (
        DRIFT.min_deviations_dependent
        if variance > DRIFT.dependent_variances * independent
        else DRIFT.min_deviations
    )
    return between > beyond * math.sqrt(variance * 4 / share.size)


def _memory(share: Floats, begins: Ints) -> float:
    """Median correlation within a block less its trend, at an eighth of its length."""
    size = share.size // begins.size
    parts = share[begins[:, None] + np.arange(size)]
    parts = parts - parts.mean(axis=1, keepdims=True)
    line = np.arange(size) - (size - 1) / 2
    parts = parts - np.outer(parts @ line, line) / (line @ line)
    lag, square = max(size // 8, 1), (parts**2).sum(axis=1)
    products = (parts[:, lag:] * parts[:, :-lag]).sum(axis=1) * size / (size - lag)
    return float(np.median(np.where(square > 0, products / np.where(square > 0, square, 1), 0)))


def _percentile(counts: Floats, value: ArrayLike, percentile: float) -> float:
    """The value of the group that a percentile lies in."""
    running = np.cumsum(counts)
    at = int(np.searchsorted(running, percentile / 100 * running[-1] * (1 - 1e-12)))
    return float(np.asarray(value)[min(at, running.size - 1)])
