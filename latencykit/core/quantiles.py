"""Ranks and quantiles of counted values, and the confidence of percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latencykit._records import record
from latencykit._typing import AnyArray, Flags, Floats, Ints
from latencykit.core.probability import binomial_quantiles
from latencykit.errors import InputTooLargeError, InvalidArgumentError

LEAST_ABOVE = 10
"""Requests above a percentile that support it: fewer are the largest values that happened."""


# ------------------------------------------------------------
# Ranks and quantiles of counted values, and how far a sample supports them.
#
# The rule is the reference implementation's (``AbstractHistogram.getValueAtPercentile``,
# HdrHistogram 2.2.2): the percentile is lowered by one unit in the last place, the rank is rounded
# up, and the value is the highest equivalent value of the bucket that reaches the rank. So p99.94
# of 1,000 values is the 1,000th, not the 999th.


def _percentiles(percentiles: ArrayLike) -> Floats:
    p = np.asarray(percentiles, np.float64)
    if not ((p >= 0) & (p <= 100)).all():
        raise InvalidArgumentError(
            f"percentiles must be from 0 to 100, not {np.asarray(percentiles).tolist()}"
        )
    return p


def ranks(percentiles: ArrayLike, total: ArrayLike) -> Ints:
    """Return the 1-based rank of each percentile among `total` values."""
    below = np.maximum(np.nextafter(_percentiles(percentiles), -np.inf), 0.0)
    try:
        number = np.asarray(total, np.int64)
    except OverflowError:
        raise InputTooLargeError(
            "more than 2^63 values are counted in all; such counts are corrupt and have no ranks"
        ) from None
    return np.maximum(np.ceil(below * number / 100.0).astype(np.int64), 1)


def surely_within(percentiles: ArrayLike, total: int) -> Ints:
    """Return the number of `total` values surely at or below a tool's value of each percentile."""
    # Tools differ by one rank: some report the value of the rank rounded up, some of the rank
    # rounded down, some a value between the two. That many values are not above any of these.
    exact = _percentiles(percentiles) * (total / 100.0)
    nearest = np.rint(exact)
    # 99.9 % of a million is not 999,000 in binary.
    near = np.abs(exact - nearest) <= 1e-12 * total + 1e-9
    return np.minimum(np.where(near, nearest, np.floor(exact)), total).astype(np.int64)


def share_above(percentiles: ArrayLike) -> Floats:
    """Return the share of values above percentiles; ``1 - 90 / 100`` is below a tenth."""
    return np.asarray((1 - np.asarray(percentiles) / 100) * (1 + 1e-12))


def running_sums(counts: Ints) -> Ints:
    """Return the sums before each position and the total: int64, one longer than `counts`."""
    sums = np.empty(counts.size + 1, np.int64)
    sums[0] = 0
    np.cumsum(counts, out=sums[1:])
    return sums


def row_quantile_positions(
    indptr: Ints, counts: Ints, percentiles: ArrayLike, sums: Ints | None = None
) -> Ints:
    """Return the position of each percentile's bucket for every row of a CSR block at once."""
    # One cumulative sum over all rows and one sorted search answer rows × percentiles.
    sums = running_sums(counts) if sums is None else sums
    before = sums[indptr]
    totals = np.diff(before)
    rank = ranks(np.asarray(percentiles, np.float64)[None, :], totals[:, None])
    position = np.searchsorted(sums[1:], rank + before[:-1, None], "left")
    last = np.maximum(indptr[1:, None] - 1, indptr[:-1, None])
    return np.where(totals[:, None] > 0, np.minimum(position, last), -1).astype(np.int64)


def median(values: NDArray[np.generic]) -> Floats:
    """Return the median of the last axis; ``np.median`` would import a fifth of numpy."""
    middle = [(values.shape[-1] - 1) // 2, values.shape[-1] // 2]
    return np.asarray(np.partition(values, middle)[..., middle].mean(-1))


def distinct(values: AnyArray) -> AnyArray:
    """Return the sorted distinct values; ``np.unique`` would import `numpy.ma` for that."""
    return np.unique(values, return_counts=True)[0]


def nonzero(counts: NDArray[np.integer[Any]]) -> Ints:
    """Return where counts are not 0; numpy finds that ten times as fast among booleans."""
    return np.asarray((counts != 0).nonzero()[0], np.int64)


def rank_interval(
    total: int, percentiles: ArrayLike, confidence: float = 0.95
) -> tuple[Ints, Ints]:
    """Return the distribution-free confidence interval of each percentile as a pair of ranks."""
    # The number of values below the true quantile is binomial, whatever the distribution: the
    # interval is valid for independent requests, and that of `scipy.stats.quantile_test`.
    # Correlated requests (stalls) widen it; see `latencykit.core.jackknife`.
    q = _percentiles(percentiles) / 100.0
    tail = tail_of(confidence)
    ends = binomial_quantiles((tail, 1 - tail), int(total), tuple(q.ravel().tolist()))
    low, high = ends.reshape(2, *q.shape)
    return np.where(q <= 0, 0, low), np.where(q >= 1, total + 1, high + 1)


def tail_of(confidence: float) -> float:
    """Return the probability on either side of an interval."""
    if not 0 < confidence < 1:
        raise InvalidArgumentError(f"a confidence must be between 0 and 1, not {confidence}")
    return (1.0 - confidence) / 2


def highest_supported_percentile(total: int, confidence: float = 0.95) -> float:
    """Return the highest percentile that `total` values support: ten of them lie above it."""
    # The median needs no more than an upper bound: the probability that all values lie below it,
    # 2⁻ⁿ, must not exceed α/2.
    alpha = tail_of(confidence)
    if total <= 0:
        return 0.0
    bounded = min(100.0 * alpha ** (1.0 / total), 50.0)
    return float(max(bounded, 100.0 * (1 - max(LEAST_ABOVE, -math.log(alpha)) / total)))


# ------------------------------------------------------------
# Counted values as arrays, the input of every statistic here.


_DISTINCT = 20  # values: by chance the counts of fewer may have a common divisor


def repeats_of(counts: Ints, censored: int = 0) -> int:
    """Return how often each request was counted: the common divisor of all counts."""
    # Rows that were joined twice, sums with themselves and samples that were scaled up by the
    # inverse of a sampling rate all count the same requests again. That makes none of them more
    # certain.
    numbers = np.append(counts[counts > 0], censored)
    return int(np.gcd.reduce(numbers)) if numbers.size > _DISTINCT else 1


@record(eq=False)
class Counted:
    """Counts between ascending edges, and censored values (at least `limit`)."""

    low: Floats
    high: Floats
    counts: Ints
    mid: Floats | None = None
    censored: int = 0
    limit: float = float("inf")

    @classmethod
    def of(cls, values: ArrayLike, censored: int = 0, limit: float = float("inf")) -> Counted:
        """Count raw values: buckets of no width."""
        unique, counts = np.unique(np.asarray(values, np.float64), return_counts=True)
        return cls(unique, unique, counts.astype(np.int64), None, censored, limit)

    def by_low(self) -> Counted:
        """Return the buckets ordered by lower edge: the least value of each rank."""
        return self._take(np.argsort(self.low, kind="stable"))

    @cached_property
    def middle(self) -> Floats:
        """Middle of each bucket."""
        return (self.low + self.high) / 2 if self.mid is None else self.mid

    @cached_property
    def cumulative(self) -> Ints:
        """Running total of the counts, without censored values."""
        return np.cumsum(self.counts)

    @cached_property
    def count(self) -> int:
        """Number of values, without censored ones."""
        return int(self.counts.sum())

    @property
    def total(self) -> int:
        """Number of values, censored ones included."""
        return self.count + self.censored

    @cached_property
    def repeats(self) -> int:
        """How often each request was counted; see `repeats_of`."""
        # Ranges that adjoin may lie between percentiles: their counts are shares of the total, and
        # have a common divisor by construction.
        adjoin = bool((self.low[1:] <= self.high[:-1]).any())
        return 1 if adjoin else repeats_of(self.counts, self.censored)

    def nonzero(self) -> Counted:
        """Return the same without empty buckets."""
        if not self.total:
            raise InvalidArgumentError("no values were counted; read a source that contains values")
        full = self.counts > 0
        return self if full.all() else self._take(np.flatnonzero(full))

    def _take(self, positions: Ints) -> Counted:
        low, high, mid = (edge[positions] for edge in (self.low, self.high, self.middle))
        return replace(self, low=low, high=high, counts=self.counts[positions], mid=mid)

    def at_best(self) -> Counted:
        """Return the censored values at their lower bound: a bucket at `limit`, open above."""
        at = int(np.searchsorted(self.high, self.limit, "right"))
        return self._with_open_bucket(at, self.limit)

    def at_worst(self) -> Counted:
        """Return the censored values above all others, with no upper end."""
        return self._with_open_bucket(self.counts.size, np.inf)

    def _with_open_bucket(self, at: int, low: float) -> Counted:
        if not self.censored:
            return self
        return Counted(
            np.insert(self.low, at, low),
            np.insert(self.high, at, np.inf),
            np.insert(self.counts, at, self.censored),
            np.insert(self.middle, at, low),
        )


# ------------------------------------------------------------
# Percentiles with their confidence: the interval of order statistics, joined with the bucket.
#
# Missing ends, here and in every table: ``low`` is NaN without a lower bound, ``high`` is infinite
# without an upper one, and both are NaN without an interval.

RESOLVED = 1.1
"""Upper edge over lower edge up to which a value counts as known: within a tenth."""


def is_resolved(low: ArrayLike, high: ArrayLike) -> Flags:
    """Return whether edges are known, finite and within a tenth of each other."""
    if isinstance(low, float) and isinstance(high, float):  # arrays take ten times as long
        return np.asarray(high <= RESOLVED * low * (1 + 1e-12) and math.isfinite(high))
    bottom, top = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return np.asarray((top <= RESOLVED * bottom * (1 + 1e-12)) & np.isfinite(top))


def interval_ends(
    counted: Counted, percentiles: Floats, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Return the ends of the distribution-free confidence intervals of percentiles."""
    # The ranks are those of `scipy.stats.quantile_test`. Censored values may lie anywhere above
    # their limit, so the lower end assumes the best and the upper end the worst.
    full = counted.nonzero()
    ends = rank_interval(full.total // full.repeats, percentiles, confidence)
    return values_at_ranks(full, *(rank * full.repeats for rank in ends))


def as_numbers(given: ArrayLike, name: str) -> Floats:
    """Return percentiles or quantiles as an array; text that is not a number is refused by name."""
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name} are numbers such as 99.9, not {given!r}") from None


class Percentiles:
    """What every data type answers: the value at each percentile, and at each quantile."""

    def _values_at(self, percentiles: Floats) -> Floats:
        raise NotImplementedError

    @overload
    def percentile(self, percentile: float) -> float: ...
    @overload
    def percentile(self, percentile: Sequence[float] | Floats) -> Floats: ...
    def percentile(self, percentile: ArrayLike) -> float | Floats:
        """Return the value at each percentile, 99 for p99: scalar → float, array → array.

        The value is the highest of its bucket (the reference's rule); a reported percentile is
        returned as reported; one in the censored mass is its bound, "at least" of the true value.

        Raises
        ------
        DataNotAvailableError
            From a `Summary`, which only has what was reported, for any other percentile.
        """
        p = as_numbers(percentile, "percentiles")
        values = self._values_at(p.reshape(-1))
        return float(values[0]) if p.ndim == 0 else values.reshape(p.shape)

    @overload
    def quantile(self, quantile: float) -> float: ...
    @overload
    def quantile(self, quantile: Sequence[float] | Floats) -> Floats: ...
    def quantile(self, quantile: ArrayLike) -> float | Floats:
        """Return the value at each quantile (0..1); see `percentile`."""
        q = as_numbers(quantile, "quantiles")
        if not ((q >= 0) & (q <= 1)).all():
            raise InvalidArgumentError(f"quantiles must be from 0 to 1, not {q.tolist()}")
        return self.percentile(q * 100.0)


def values_at_ranks(counted: Counted, first: Ints, last: Ints) -> tuple[Floats, Floats]:
    """Return the values at lower and upper ends given as ranks."""
    full = counted.nonzero()
    best, worst = full.at_best(), full.at_worst()
    lows, highs = (  # of the bucket that reaches each rank
        edge[np.minimum(np.searchsorted(side.cumulative, np.maximum(rank, 1)), edge.size - 1)]
        for side, edge, rank in ((best, best.low, first), (worst, worst.high, last))
    )
    return np.where(first >= 1, lows, np.nan), np.where(last <= full.total, highs, np.inf)


# ------------------------------------------------------------
# Means and deviations of counted values, summed as in the reference: from the lowest bucket up.


def mean_std(values: NDArray[np.generic], counts: Ints) -> tuple[float, float]:
    """Return the mean and the population standard deviation of counted values."""
    if not counts.size or not counts.any():
        return float("nan"), float("nan")
    total = float(counts.sum())
    reals = values.astype(np.float64)
    # Scaling by a power of two is exact and keeps squares finite.
    order = max(0, math.frexp(float(reals.max()))[1] - 400)
    reals = np.ldexp(reals, -order) if order else reals
    mean = float(np.cumsum(reals * counts)[-1]) / total
    deviation = reals - mean
    return math.ldexp(mean, order), math.ldexp(
        float(np.sqrt(np.cumsum(deviation * deviation * counts)[-1] / total)), order
    )
