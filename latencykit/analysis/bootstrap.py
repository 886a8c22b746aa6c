"""Resampled statistics of counted values: percentiles by their ranks, means by Poisson counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record
from latencykit.core.dependence import tail_groups
from latencykit.core.quantiles import Counted, ranks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from latencykit.core.dependence import Dependence

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["ENDS", "Draws", "draw_means", "draw_percentiles", "draw_shifts", "rank_draws"]

_MOST_BUCKETS = 512
_BATCH = 128  # replicates per pass: a few MB of counts
ENDS = np.linspace(-4.0, 4.0, 42)
"""Normal quantiles at which confidence distributions are computed; none of them is 0."""


@record(eq=False)
class Draws:
    """Replicates of some statistics, each as low and as high as the buckets allow.

    Attributes
    ----------
    low, high : ndarray of float64, shape (replicates, statistics)
        `high` is infinite where a replicate reaches censored values.
    """

    low: Floats
    high: Floats


def rank_draws(
    total: int, percentiles: ArrayLike, replicates: int, rng: np.random.Generator
) -> Ints:
    """Return the ranks that percentiles have in bootstrap replicates of `total` values.

    The r-th smallest of n values drawn with replacement from n values is at or below the k-th of
    them if at least r draws are, with probability P(Binomial(n, k/n) ≥ r) = P(Beta(r, n − r + 1) ≤
    k/n). So its rank is a Beta variate times n, rounded up, and neighbouring ranks share the sum of
    Gamma spacings. That is the bootstrap itself, at the cost of p numbers per replicate however
    many buckets or values there are.
    """
    rank = ranks(np.atleast_1d(np.asarray(percentiles, np.float64)), total)
    order = np.argsort(rank, kind="stable")
    steps = np.diff(np.concatenate(([0], rank[order], [total + 1]))).astype(np.float64)
    spacings = np.cumsum(rng.standard_gamma(steps, (replicates, steps.size)), axis=1)
    place = np.ceil(spacings[:, :-1] / spacings[:, -1:] * total)
    out = np.empty((replicates, rank.size), np.int64)
    out[:, order] = np.clip(place, 1, total).astype(np.int64)
    return out


def draw_percentiles(
    counted: Counted,
    percentiles: ArrayLike,
    replicates: int,
    rng: np.random.Generator,
    dependence: Dependence | None = None,
) -> Draws:
    """Return replicates of percentiles, shape (replicates, p).

    Those of independent requests are bootstrap ranks, see `rank_draws`. Where the dependence of the
    requests is known, replicates come from the confidence distribution: the end of the one-sided
    interval at a level drawn at random.
    """
    occupied = counted.occupied()
    best, worst = occupied.at_best(), occupied.at_worst()
    if dependence is None:
        requests = occupied.total // occupied.repeats
        drawn = occupied.repeats * rank_draws(requests, percentiles, replicates, rng)
    else:
        p = np.atleast_1d(np.asarray(percentiles, np.float64))
        levels = np.where(p[:, None] < 100, dependence.levels(p, ENDS), 1.0)
        # One level for all: percentiles of a run go up and down together.
        places = rng.standard_normal(replicates)
        shares = np.stack([np.interp(places, ENDS, level) for level in levels], axis=1)
        drawn = np.clip(np.ceil(shares * occupied.total), 1, occupied.total).astype(np.int64)
    low = best.low[np.searchsorted(best.cumulative, drawn, "left")]
    return Draws(low, worst.high[np.searchsorted(worst.cumulative, drawn, "left")])


def draw_shifts(
    values: tuple[Floats, Floats], shifts: Floats, replicates: int, rng: np.random.Generator
) -> Draws:
    """Return replicates of statistics from their confidence distributions."""
    places = rng.standard_normal(replicates)
    # Open ends are not judged; see `compare_counts`.
    finite = np.nan_to_num(shifts, nan=0.0, posinf=0.0)
    moved = np.stack([np.interp(places, ENDS, shift) for shift in finite], axis=1)
    return Draws(np.maximum(values[0] + moved, 0.0), values[1] + moved)


def draw_means(
    counted: Counted, trims: list[tuple[float, float]], replicates: int, rng: np.random.Generator
) -> Draws:
    """Return bootstrap replicates of means between two ranks.

    In each replicate every bucket's count is a Poisson variate around the count that was seen.
    Beyond five hundred buckets, neighbours are merged at their mean edges.
    """
    grouped = _grouped(counted.occupied())
    sides, repeats = (grouped.at_best(), grouped.at_worst()), counted.repeats
    ends: list[list[Floats]] = [[], []]
    for first in range(0, replicates, _BATCH):
        batch = min(_BATCH, replicates - first)
        drawn = rng.poisson(grouped.counts / repeats, (batch, grouped.counts.size))
        counts = (repeats * drawn).astype(np.float64)
        # A replicate of a handful of values may be empty.
        counts[counts.sum(axis=1) == 0] = grouped.counts
        extra = (repeats * rng.poisson(grouped.censored / repeats, batch)).astype(np.float64)
        for side, values, out in zip(sides, (sides[0].low, sides[1].high), ends, strict=True):
            out.append(_means_of(_with_open(counts, extra, side), values, trims))
    return Draws(np.concatenate(ends[0]), np.concatenate(ends[1]))


def _grouped(counted: Counted) -> Counted:
    """At most five hundred buckets, at the mean of their edges."""
    if counted.counts.size <= _MOST_BUCKETS:
        return counted
    group = tail_groups(counted.counts, _MOST_BUCKETS)
    counts = np.bincount(group, counted.counts)
    low, high = (
        np.bincount(group, counted.counts * edge) / counts for edge in (counted.low, counted.high)
    )
    return Counted(low, high, counts.astype(np.int64), None, counted.censored, counted.limit)


def _with_open(counts: Floats, extra: Floats, side: Counted) -> Floats:
    """Replicated counts with the censored ones at their place."""
    if not side.counts.size > counts.shape[1]:
        return counts
    at = int(np.flatnonzero(np.isinf(side.high))[0])
    return np.insert(counts, at, extra, axis=1)


def _means_of(counts: Floats, values: Floats, trims: list[tuple[float, float]]) -> Floats:
    """Mean of each row between each pair of ranks, with parts of buckets, shape (rows, trims)."""
    after = np.cumsum(counts, axis=1)
    total = after[:, -1:]
    finite = np.isfinite(values)
    out = np.empty((counts.shape[0], len(trims)))
    for k, (low, high) in enumerate(trims):
        kept = np.clip(
            np.minimum(after, high * total) - np.maximum(after - counts, low * total), 0.0, None
        )
        out[:, k] = kept[:, finite] @ values[finite] / kept.sum(axis=1)
        out[kept[:, ~finite].sum(axis=1) > 0, k] = np.inf
    return out
