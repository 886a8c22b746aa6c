"""Percentiles with their confidence: the interval that order statistics give, joined with the bucket.

What the numbers mean when an end is missing, here and in every table made of it: ``low`` is NaN where the sample has
no lower bound, ``high`` is infinite where it has no upper one, and both are NaN where no interval can be given at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.stats.quantiles import highest_supported_percentile, rank_interval, ranks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from latencykit.stats.counted import Counted

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

__all__ = ["RESOLVED", "PercentileTable", "is_resolved", "percentile_table", "values_at_ranks"]

RESOLVED = 1.1
"""Upper edge over lower edge up to which a value counts as known: within a tenth."""


def is_resolved(low: ArrayLike, high: ArrayLike) -> Flags:
    """Return whether edges pin a value down within a tenth; with an unknown or open one they do not.

    Examples
    --------
    >>> is_resolved([0.0, 1.0, 1.0, 0.0], [0.0, 1.1, 1.2, 1.0]).tolist()
    [True, True, False, False]
    """
    bottom, top = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return np.asarray((top <= RESOLVED * bottom * (1 + 1e-12)) & np.isfinite(top))


@dataclass(frozen=True, eq=False)
class PercentileTable:
    """Percentiles and how far each can be trusted: arrays of one length.

    Attributes
    ----------
    percentile, value : ndarray of float64, shape (p,)
        The value is the highest of its bucket; of a percentile that reaches censored values, the least it can be.
    low, high : ndarray of float64, shape (p,)
        Confidence interval joined with the bucket; see the module for missing ends.
    bucket_low, bucket_high : ndarray of float64, shape (p,)
        The bucket that the value lies in; `bucket_high` is infinite in censored mass.
    supported : ndarray of bool, shape (p,)
        Whether the sample bounds the percentile from above.
    at_least : ndarray of bool, shape (p,)
        Whether the value is only a lower bound ("≥ 2 s"): the percentile reaches censored mass.
    """

    percentile: Floats
    value: Floats
    low: Floats
    high: Floats
    bucket_low: Floats
    bucket_high: Floats
    supported: Flags
    at_least: Flags


def percentile_table(
    counted: Counted, percentiles: ArrayLike, confidence: float = 0.95, *, corrected: bool = False
) -> PercentileTable:
    """Return percentiles with their distribution-free confidence intervals.

    Parameters
    ----------
    counted : Counted
        Ranks count the censored values, too.
    percentiles : array_like of float, shape (p,)
        In 0..100.
    confidence : float, default 0.95
    corrected : bool, default False
        The counts were filled up for coordinated omission: their ranks are invented, and no interval is given.

    Returns
    -------
    PercentileTable

    Notes
    -----
    The ranks are those of `scipy.stats.quantile_test`. Censored values may lie anywhere from their limit upwards, so
    the lower end assumes the best of them and the upper end the worst.

    Examples
    --------
    >>> from latencykit.stats.counted import Counted
    >>> t = percentile_table(Counted.of(range(1, 1501)), [50, 99.9])
    >>> t.value.tolist(), t.low.tolist(), t.high.tolist(), t.supported.tolist()
    ([750.0, 1499.0], [712.0, 1496.0], [789.0, inf], [True, False])
    """
    held = counted.occupied()
    p = np.atleast_1d(np.asarray(percentiles, np.float64))
    total, best, worst = held.total, held.at_best(), held.at_worst()
    at = _at(best, ranks(p, total))
    bucket_low, bucket_high = best.low[at], best.high[at]
    value = np.where(p == 0, bucket_low, np.where(np.isinf(bucket_high), bucket_low, bucket_high))
    at_least = _open(held, p)
    if corrected:
        low = high = np.full(p.shape, np.nan)
    else:
        first, last = rank_interval(total, p, confidence)
        low = np.where(first >= 1, best.low[_at(best, first)], np.nan)
        high = np.where(last <= total, worst.high[_at(worst, last)], np.inf)
        high = np.maximum(high, value)
    supported = (p <= highest_supported_percentile(total, confidence)) & ~at_least
    return PercentileTable(p, value, low, high, bucket_low, bucket_high, supported, at_least)


def values_at_ranks(counted: Counted, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the values at lower and upper ends that are given as ranks, fractions of a request being rounded outwards.

    Parameters
    ----------
    counted : Counted
    low, high : ndarray of float64, shape (p,)
        0 means no lower bound (NaN), the number of values no upper bound (infinite).

    Returns
    -------
    low, high : ndarray of float64, shape (p,)

    Examples
    --------
    >>> from latencykit.stats.counted import Counted
    >>> values_at_ranks(Counted.of(range(1, 101)), np.array([0.0, 9.5]), np.array([20.2, 100.0]))
    (array([nan,  9.]), array([21., inf]))
    """
    held = counted.occupied()
    first, last = np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)
    best, worst = held.at_best(), held.at_worst()
    bottom = np.where(first >= 1, best.low[_at(best, first)], np.nan)
    return bottom, np.where(last < held.total, worst.high[_at(worst, last)], np.inf)


def _at(counted: Counted, rank: Ints) -> Ints:
    """Position of the bucket that reaches each rank."""
    found = np.searchsorted(counted.cumulative, np.maximum(rank, 1), "left")
    return np.minimum(found, counted.counts.size - 1).astype(np.int64)


def _open(counted: Counted, p: Floats) -> Flags:
    """Whether a censored value may stand at or below each percentile's rank, so that the truth may be higher."""
    below = int(counted.counts[counted.high <= counted.limit].sum())
    return (ranks(p, counted.total) > below) & (counted.censored > 0)
