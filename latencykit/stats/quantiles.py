"""Ranks and quantiles of counted values, and how far a sample supports them.

The rule is the reference implementation's (``AbstractHistogram.getValueAtPercentile``, HdrHistogram 2.2.2): the
percentile is lowered by one unit in the last place, the rank is rounded up, and the value is the highest
equivalent value of the bucket that reaches the rank. So p99.94 of 1,000 values is the 1,000th, not the 999th.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import LimitError, UsageError
from latencykit.stats.chances import binomial_quantiles

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = [
    "highest_supported_percentile",
    "median",
    "quantile_positions",
    "rank_interval",
    "ranks",
    "row_quantile_positions",
    "running_sums",
    "share_interval",
    "surely_within",
]


def _percentiles(percentiles: ArrayLike) -> Floats:
    p = np.asarray(percentiles, np.float64)
    if not ((p >= 0) & (p <= 100)).all():
        raise UsageError(f"percentiles must be from 0 to 100, not {np.asarray(percentiles).tolist()}")
    return p


def ranks(percentiles: ArrayLike, total: ArrayLike) -> Ints:
    """Return the 1-based rank of each percentile among `total` values.

    Parameters
    ----------
    percentiles : array_like of float
        In 0..100.
    total : array_like of int
        Number of values; broadcast against `percentiles`.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> ranks([50, 99.94, 100], 1000).tolist()
    [500, 1000, 1000]
    """
    below = np.maximum(np.nextafter(_percentiles(percentiles), -np.inf), 0.0)
    try:
        number = np.asarray(total, np.int64)
    except OverflowError:
        raise LimitError("more than 2^63 values are counted in all; such counts are damaged, and no ranks among them") from None
    wanted = np.ceil(below * number / 100.0)
    return np.maximum(wanted.astype(np.int64), 1)


def surely_within(percentiles: ArrayLike, total: int) -> Ints:
    """Return how many of `total` values surely lie at or below the value that a tool prints for each percentile.

    Tools differ by one rank: some print the value of the rank that is rounded up, some that of the one rounded down,
    some a value between two. Whatever they do, so many values are not above it, and the next is not below it but for
    the distance of two neighbours.

    Examples
    --------
    >>> surely_within([50, 99, 99.9, 100], 150).tolist()
    [75, 148, 149, 150]
    """
    exact = _percentiles(percentiles) * (total / 100.0)
    whole = np.rint(exact)
    near = np.abs(exact - whole) <= 1e-12 * total + 1e-9  # 99.9 % of a million is not 999,000 in binary
    return np.minimum(np.where(near, whole, np.floor(exact)), total).astype(np.int64)


def quantile_positions(counts: ArrayLike, percentiles: ArrayLike) -> Ints:
    """Return the position in `counts` of the bucket that holds each percentile.

    Parameters
    ----------
    counts : array_like of int, shape (buckets,)
        Counts in ascending order of value, at least one above zero.
    percentiles : array_like of float, shape (p,)

    Returns
    -------
    ndarray of int64, shape (p,)

    Examples
    --------
    >>> quantile_positions([1, 4], [20, 25]).tolist()
    [0, 1]
    """
    cumulative = np.cumsum(np.asarray(counts, np.int64))
    wanted = ranks(percentiles, cumulative[-1])
    return np.minimum(np.searchsorted(cumulative, wanted, "left"), cumulative.size - 1).astype(np.int64)


def running_sums(counts: Ints) -> Ints:
    """Return the sum of what stands before each position, and of all at the end: int64, one more than `counts`."""
    sums = np.empty(counts.size + 1, np.int64)
    sums[0] = 0
    np.cumsum(counts, out=sums[1:])
    return sums


def row_quantile_positions(indptr: Ints, counts: Ints, percentiles: ArrayLike, sums: Ints | None = None) -> Ints:
    """Return the position of each percentile's bucket for every row of a CSR block at once.

    One cumulative sum over all rows and one sorted search answer rows × percentiles.

    Parameters
    ----------
    indptr : ndarray of int64, shape (rows + 1,)
        Row r holds ``counts[indptr[r]:indptr[r + 1]]``.
    counts : ndarray of int64, shape (nonzero,)
    percentiles : array_like of float, shape (p,)
    sums : ndarray of int64, shape (nonzero + 1,), optional
        `running_sums` of the counts, where they are at hand.

    Returns
    -------
    ndarray of int64, shape (rows, p)
        Positions in `counts`; −1 for rows without counts.

    Examples
    --------
    >>> row_quantile_positions(np.array([0, 2, 2, 3]), np.array([1, 4, 9]), [20, 100]).tolist()
    [[0, 1], [-1, -1], [2, 2]]
    """
    sums = running_sums(counts) if sums is None else sums
    before = sums[indptr]
    totals = np.diff(before)
    wanted = ranks(np.asarray(percentiles, np.float64)[None, :], totals[:, None]) + before[:-1, None]
    found = np.searchsorted(sums[1:], wanted, "left")
    last = np.maximum(indptr[1:, None] - 1, indptr[:-1, None])
    return np.where(totals[:, None] > 0, np.minimum(found, last), -1).astype(np.int64)


def median(values: NDArray[np.generic]) -> Floats:
    """Return the median of the last axis; ``np.median`` loads a fifth of numpy anew for it.

    Parameters
    ----------
    values : ndarray, shape (..., n)
        n > 0, none of them NaN.

    Returns
    -------
    ndarray of float64, shape (...)

    Examples
    --------
    >>> float(median(np.array([4, 1, 3, 2])))
    2.5
    """
    middle = [(values.shape[-1] - 1) // 2, values.shape[-1] // 2]
    return np.asarray(np.partition(values, middle)[..., middle].mean(-1))


def rank_interval(total: int, percentiles: ArrayLike, confidence: float = 0.95) -> tuple[Ints, Ints]:
    """Return the distribution-free confidence interval of each percentile as a pair of ranks.

    The number of values below the true quantile is binomial, whatever the distribution: the interval holds
    for independent requests, and is what `scipy.stats.quantile_test` gives. Correlated requests (stalls) widen it;
    see `latencykit.stats.dependence` for data that know time.

    Parameters
    ----------
    total : int
        Number of values.
    percentiles : array_like of float, shape (p,)
    confidence : float, default 0.95

    Returns
    -------
    low, high : ndarray of int64, shape (p,)
        1-based ranks; 0 means no lower bound, ``total + 1`` no upper bound.

    Examples
    --------
    >>> low, high = rank_interval(1500, [50, 99, 99.9])
    >>> low.tolist(), high.tolist()
    ([712, 1477, 1496], [789, 1493, 1501])
    """
    if not 0 < confidence < 1:
        raise UsageError(f"a confidence must be between 0 and 1, not {confidence}")
    q = _percentiles(percentiles) / 100.0
    tail = (1.0 - confidence) / 2
    low, high = binomial_quantiles([tail, 1 - tail], total, q)
    return np.where(q <= 0, 0, low), np.where(q >= 1, total + 1, high + 1)


def highest_supported_percentile(total: int, confidence: float = 0.95, *, two_sided: bool = True) -> float:
    """Return the highest percentile that has an upper confidence bound among `total` values.

    Beyond it the interval is open: the sample's maximum stands in for the percentile. The chance that
    all `total` values lie below quantile q is qⁿ, which must not exceed α (or α/2): q = α^(1/n).

    Examples
    --------
    >>> round(highest_supported_percentile(1500), 3)
    99.754
    >>> round(highest_supported_percentile(1500, two_sided=False), 2)
    99.8
    """
    if total <= 0:
        return 0.0
    alpha = (1.0 - confidence) / (2 if two_sided else 1)
    return float(100.0 * alpha ** (1.0 / total))


def share_interval(part: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval of a share, `part` of `total` having been seen (Clopper and Pearson, 1934).

    Examples
    --------
    >>> [round(end, 4) for end in share_interval(0, 1500)]
    [0.0, 0.0025]
    """
    from scipy import special

    tail = (1.0 - confidence) / 2
    low = special.betaincinv(part, total - part + 1, tail) if part > 0 else 0.0
    high = special.betaincinv(part + 1, total - part, 1 - tail) if part < total else 1.0
    return float(low), float(high)
