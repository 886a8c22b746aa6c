"""Confidence of percentiles when requests are not independent: the block bootstrap over the intervals of a log.

Slow requests come in company. Rank intervals assume that they do not, and cover a true p95 in 10 % of logs instead of
95 % when load drifts over ten intervals. Resampling whole blocks of adjacent intervals keeps the company together, if
the blocks are longer than the drift: they grow until the variance of their sums settles, and where a log is too short
for twenty such blocks there is no interval, and the reason is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.stats.chances import student_tail
from latencykit.stats.quantiles import ranks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["LEAST_BLOCKS", "BlockIntervals", "block_intervals", "group_rows", "tail_groups"]

LEAST_BLOCKS = 20
_MOST_INTERVALS = 1024  # more are merged with their neighbours; blocks are longer than that anyway
_BATCH = 100  # replicates a pass: keeps the weights in the cache


@dataclass(frozen=True, eq=False)
class BlockIntervals:
    """Confidence intervals of percentiles as positions of buckets (or groups of buckets).

    Attributes
    ----------
    low, high : ndarray of int64, shape (p,)
        Positions in the columns of the rows; −1 where no interval can be given.
    block : ndarray of int64, shape (p,)
        Length of the blocks, in intervals of the log; 0 where none was long enough.
    reasons : tuple of str
        Why there is no interval; ``""`` where there is one.
    """

    low: Ints
    high: Ints
    block: Ints
    reasons: tuple[str, ...]


def tail_groups(counts: ArrayLike, groups: int = 400) -> Ints:
    """Return a group for each bucket: fine in the tails, so that some hundred columns stand for all buckets.

    Parameters
    ----------
    counts : array_like of int, shape (buckets,)
        Counts of the whole log.
    groups : int, default 400
        How many groups there are at most; they are equally spaced in the log-odds of the rank.

    Returns
    -------
    ndarray of int64, shape (buckets,)
        Ascending from 0, without gaps.

    Examples
    --------
    >>> tail_groups([5, 0, 3]).tolist()
    [0, 1, 2]
    """
    numbers = np.asarray(counts, np.float64)
    if numbers.size <= groups:
        return np.arange(numbers.size)
    share = (np.cumsum(numbers) - numbers / 2 + 0.25) / (numbers.sum() + 0.5)
    odds = np.log(share / (1 - share))
    width = (odds[-1] - odds[0]) / groups or 1.0
    group = np.minimum(np.floor((odds - odds[0]) / width), groups - 1)
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


def group_rows(indptr: Ints, group: Ints, counts: Ints, size: int) -> Floats:
    """Return the counts of each interval in each group, from sparse rows.

    Parameters
    ----------
    indptr : ndarray of int64, shape (rows + 1,)
    group : ndarray of int64, shape (nonzero,)
        Group of each entry's bucket.
    counts : ndarray of int64, shape (nonzero,)
    size : int
        Number of groups.

    Returns
    -------
    ndarray of float64, shape (rows, size)

    Examples
    --------
    >>> group_rows(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([5, 1, 2]), 2).tolist()
    [[5.0, 1.0], [0.0, 2.0]]
    """
    row = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    flat = np.bincount(row * size + group, counts, (indptr.size - 1) * size).astype(np.float64)
    return flat.reshape(-1, size)


def block_intervals(
    rows: ArrayLike, percentiles: ArrayLike, confidence: float = 0.95, *, replicates: int = 1000, seed: int = 0
) -> BlockIntervals:
    """Return confidence intervals of percentiles by resampling blocks of adjacent intervals.

    Parameters
    ----------
    rows : array_like of float, shape (intervals, buckets)
        Counts of each interval, in order of time, in ascending buckets or groups of them; see `group_rows`.
    percentiles : array_like of float, shape (p,)
    confidence : float, default 0.95
    replicates : int, default 1000
    seed : int, default 0

    Returns
    -------
    BlockIntervals

    Notes
    -----
    A circular block bootstrap (Politis and Romano, 1992). The block is twice the integrated correlation time of what
    each interval holds above the percentile, and above the median, which shows a drift more clearly: beyond it the
    variance of block sums stays level. The correlation time is summed up to Geyer's first negative pair, its downward
    bias in short logs (about τ/n at every lag) put back; a sum that has not settled within an eighth of the log has no
    plateau. The tails of the confidence level are Student's for the number of blocks.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.multinomial(100, [0.9, 0.06, 0.04], size=200)
    >>> found = block_intervals(rows, [50, 97])
    >>> found.low.tolist(), found.high.tolist(), found.block.tolist()
    ([0, 2], [0, 2], [1, 1])
    """
    table = np.asarray(rows, np.float64)
    table = table[table.sum(axis=1) > 0]
    merged = max(1, math.ceil(len(table) / _MOST_INTERVALS))
    if merged > 1:
        table = np.add.reduceat(table, np.arange(0, len(table), merged))
    p = np.atleast_1d(np.asarray(percentiles, np.float64))
    low, high, block = np.full(p.size, -1), np.full(p.size, -1), np.zeros(p.size, np.int64)
    reasons, drift = [], _correlation_time(_beyond(table, 50.0)) if len(table) else math.inf
    for k, percentile in enumerate(p.tolist()):
        length, reason = _block_length(table, percentile, drift)
        reasons.append(reason)
        block[k] = length * merged
    for length in sorted(set(block[block > 0].tolist())):
        chosen = np.flatnonzero(block == length)
        draws = _resample(table, p[chosen], length // merged, replicates, seed)
        degrees = max(1.0, 0.75 * len(table) * merged / length - 1)  # few blocks know their variance badly
        tail = student_tail((1 - confidence) / 2, degrees)
        ends = np.quantile(draws, [tail, 1 - tail], axis=0, method="inverted_cdf").astype(np.int64)
        low[chosen], high[chosen] = ends
    return BlockIntervals(low, high, block, tuple(reasons))


def _block_length(table: Floats, percentile: float, drift: float) -> tuple[int, str]:
    """How many intervals make a block, or 0 and why none does."""
    if len(table) < LEAST_BLOCKS:
        return 0, f"{len(table)} intervals are too few for an interval of confidence; {LEAST_BLOCKS} are needed"
    time = max(drift, _correlation_time(_beyond(table, percentile)))
    if math.isinf(time):
        return 0, "slow requests stay together over more than an eighth of the log: no block is long enough"
    length = 1 if time < 1.2 else math.ceil(2 * time)
    if len(table) // length < LEAST_BLOCKS:
        return 0, (
            f"slow requests stay together over {time:.3g} intervals, so that {len(table)} hold fewer than "
            f"{LEAST_BLOCKS} independent blocks"
        )
    return length, ""


def _beyond(table: Floats, percentile: float) -> Floats:
    """What each interval holds above the percentile, less its fair share."""
    pooled, size = table.sum(axis=0), table.sum(axis=1)
    at = int(np.searchsorted(np.cumsum(pooled), ranks(percentile, int(pooled.sum()))))
    after = at + 1 if pooled[at + 1 :].any() else at
    above = table[:, after:].sum(axis=1)
    return np.asarray(above - above.sum() / size.sum() * size)


def _correlation_time(series: Floats) -> float:
    """Integrated correlation time in intervals, 1 without correlation; infinite where the sum does not settle."""
    n = series.size
    centred = np.fft.rfft(series - series.mean(), 2 * n)
    covariance = np.fft.irfft(np.abs(centred) ** 2)[:n]
    if n < 4 or covariance[0] <= 0:
        return 1.0
    correlation = covariance / covariance[0]
    time = _geyer(correlation)
    for _ in range(2):
        if time >= n / 8:
            return math.inf
        time = _geyer(np.concatenate((correlation[:1], correlation[1:] + time / n)))
    return time if time < n / 8 else math.inf


def _geyer(correlation: Floats) -> float:
    """2 × the sum of the correlations − 1, over pairs of lags up to the first pair that is not positive."""
    even = correlation.size // 2 * 2
    pairs = correlation[:even].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if negative.size else pairs)
    return max(1.0, 2.0 * float(pairs.sum()) - 1.0)


def _resample(table: Floats, percentiles: Floats, length: int, replicates: int, seed: int) -> Ints:
    """Position of each percentile in every replicate, shape (replicates, p)."""
    rng = np.random.default_rng(seed)
    n = len(table)
    blocks = math.ceil(n / length)
    out = np.empty((replicates, percentiles.size), np.int64)
    for first in range(0, replicates, _BATCH):
        batch = min(_BATCH, replicates - first)
        starts = rng.integers(0, n, (batch, blocks))
        chosen = ((starts[:, :, None] + np.arange(length)).reshape(batch, -1)[:, :n]) % n
        flat = chosen + np.arange(batch)[:, None] * n
        weights = np.bincount(flat.reshape(-1), minlength=batch * n).reshape(batch, n)
        sums = np.cumsum(weights.astype(np.float64) @ table, axis=1)
        wanted = ranks(percentiles[None, :], sums[:, -1:].astype(np.int64))
        for k in range(percentiles.size):
            out[first : first + batch, k] = (sums < wanted[:, k : k + 1]).sum(axis=1)
    return out
