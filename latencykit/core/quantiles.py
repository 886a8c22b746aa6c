"""Ranks and quantiles of counted values, their confidence, and the probabilities behind it.

Binomial and Poisson probabilities are computed in numpy: `scipy.special` has them, but
its import takes half the time of a summary of a small log. Sums are exact; long ones use scipy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latencykit._arrays import read_only
from latencykit._records import record
from latencykit._typing import AnyArray, Flags, Floats, Ints
from latencykit.core.buckets import EdgeBuckets
from latencykit.errors import InputTooLargeError, InvalidArgumentError
from latencykit.units import format_range, format_value

if TYPE_CHECKING:
    import pandas as pd


LEAST_ABOVE = 10
"""Requests above a percentile that support it: fewer are the largest values that happened."""

_LONG = 4_000_000  # terms; above that importing scipy takes less time than summing them up
_TERMS = 600


def binomial_quantiles(probabilities: Sequence[float], n: int, q: ArrayLike) -> Ints:
    r"""Return the smallest k with P(Binomial(n, q) ≤ k) ≥ p, for every p and q."""
    inside = np.clip(np.ravel(q), 1e-12, 1 - 1e-12)
    ranks = _binomial_quantiles(tuple(probabilities), int(n), tuple(inside.tolist()))
    return ranks.reshape(len(probabilities), *np.shape(q))


@lru_cache(maxsize=1024)  # of thousands of series many have as many requests
def _binomial_quantiles(probabilities: tuple[float, ...], n: int, q: tuple[float, ...]) -> Ints:
    inside = np.array(q)
    reach = np.ceil(8 * np.sqrt(n * inside * (1 - inside))) + 20  # what lies beyond is below 1e-14
    if float(reach.sum()) * 2 > _LONG:
        from scipy import special

        # The values of `scipy.stats.binom.ppf`, without its import.
        p = np.asarray(probabilities)[:, None]
        most = np.clip(np.ceil(np.nan_to_num(special.bdtrik(p, n, inside))), 0, n)
        less = np.maximum(most - 1, 0)
        fewer = (most > 0) & (special.bdtr(less, n, inside) >= p)
        return read_only(np.where(fewer, less, most).astype(np.int64))
    out = np.empty((len(probabilities), inside.size), np.int64)
    for column, (share, most) in enumerate(zip(q, reach.tolist(), strict=True)):
        mode = int((n + 1) * share)
        first = max(0, mode - int(most))
        k = np.arange(first + 1, min(n, mode + int(most)) + 1, dtype=np.float64)
        steps = np.log((n + 1 - k) / k * (share / (1 - share)))
        mass = np.concatenate(([0.0], np.cumsum(steps)))  # logarithms of P(k) / P(first)
        below = np.cumsum(np.exp(mass - mass.max()))
        out[:, column] = first + np.searchsorted(below, np.asarray(probabilities) * below[-1])
    return read_only(out)


def poisson_at_least(k: ArrayLike, mean: ArrayLike) -> Floats:
    """Return P(Poisson(mean) ≥ k), the regularised lower incomplete gamma function.

    For small probabilities: with k of hundreds of thousands close to the mean it is too large.
    """
    a, x = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(mean, np.float64))
    with np.errstate(divide="ignore", under="ignore"):
        first = np.exp(a * np.log(x) - x - _log_gamma(a + 1))  # P(Poisson(mean) = k)
    term, total = np.ones_like(a), np.ones_like(a)
    # Far below the mean the sum is beyond all numbers, and the probability 1.
    with np.errstate(over="ignore", invalid="ignore"):
        for number in range(1, _TERMS + 1):
            term = term * (x / (a + number))
            total = total + term
            if not (term > 1e-12 * total).any():
                break
        ratio = np.minimum(x / (a + number + 1), 1 - 1e-9)
        # The remaining terms fall faster than a geometric series of this ratio.
        sums = first * (total + term * ratio / (1 - ratio))
    return np.asarray(np.minimum(np.nan_to_num(sums, nan=1.0), 1.0))


def _log_gamma(z: Floats) -> Floats:
    """Stirling's series, eight steps further up, where it is accurate to 1e-10."""
    y = z + 8
    steps = np.log(z[..., None] + np.arange(8)).sum(axis=-1)
    series = 1 / (12 * y) - 1 / (360 * y**3) + 1 / (1260 * y**5)
    return np.asarray((y - 0.5) * np.log(y) - y + 0.5 * math.log(2 * math.pi) + series - steps)


@lru_cache(maxsize=64)
def normal_quantile(probability: float) -> float:
    """Return the normal quantile without scipy."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


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
    """Return the number of `total` values surely at or below a tool's value of each percentile.

    Tools differ by one rank: some report the value of the rank rounded up, some of the rank rounded
    down, some a value between the two. That many values are not above any of these.
    """
    exact = _percentiles(percentiles) * (total / 100.0)
    nearest = np.rint(exact)
    # 99.9 % of a million is not 999,000 in binary.
    near = np.abs(exact - nearest) <= 1e-12 * total + 1e-9
    return np.minimum(np.where(near, nearest, np.floor(exact)), total).astype(np.int64)


def running_sums(counts: Ints) -> Ints:
    """Return the sums before each position and the total: int64, one longer than `counts`."""
    sums = np.empty(counts.size + 1, np.int64)
    sums[0] = 0
    np.cumsum(counts, out=sums[1:])
    return sums


def row_quantile_positions(
    indptr: Ints, counts: Ints, percentiles: ArrayLike, sums: Ints | None = None
) -> Ints:
    """Return the position of each percentile's bucket for every row of a CSR block at once.

    One cumulative sum over all rows and one sorted search answer rows × percentiles.
    """
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


def occupied(counts: NDArray[np.integer[Any]]) -> Ints:
    """Return where counts are not 0; numpy finds that ten times as fast among booleans."""
    return np.asarray((counts != 0).nonzero()[0], np.int64)


def rank_interval(
    total: int, percentiles: ArrayLike, confidence: float = 0.95
) -> tuple[Ints, Ints]:
    """Return the distribution-free confidence interval of each percentile as a pair of ranks.

    The number of values below the true quantile is binomial, whatever the distribution: the
    interval is valid for independent requests, and that of `scipy.stats.quantile_test`. Correlated
    requests (stalls) widen it; see `latencykit.core.jackknife`.
    """
    if not 0 < confidence < 1:
        raise InvalidArgumentError(f"a confidence must be between 0 and 1, not {confidence}")
    q = _percentiles(percentiles) / 100.0
    tail = (1.0 - confidence) / 2
    low, high = binomial_quantiles([tail, 1 - tail], total, q)
    return np.where(q <= 0, 0, low), np.where(q >= 1, total + 1, high + 1)


def highest_supported_percentile(total: int, confidence: float = 0.95) -> float:
    """Return the highest percentile that `total` values support: ten of them lie above it.

    The median needs no more than an upper bound: the probability that all values lie below it,
    2⁻ⁿ, must not exceed α/2.
    """
    if total <= 0:
        return 0.0
    alpha = (1.0 - confidence) / 2
    bounded = min(100.0 * alpha ** (1.0 / total), 50.0)
    return float(max(bounded, 100.0 * (1 - max(LEAST_ABOVE, -math.log(alpha)) / total)))


def share_interval(part: float, total: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval of the share part/total (Clopper and Pearson, 1934)."""
    from scipy import special

    tail = (1.0 - confidence) / 2
    low = special.betaincinv(part, total - part + 1, tail) if part > 0 else 0.0
    high = special.betaincinv(part + 1, total - part, 1 - tail) if part < total else 1.0
    return float(low), float(high)


# ------------------------------------------------------------
# Counted values as arrays, the input of every statistic here.


_DISTINCT = 20  # values: by chance the counts of fewer may have a common divisor


def repeats_of(counts: Ints, censored: int = 0) -> int:
    """Return how often each request was counted: the common divisor of all counts.

    Rows that were joined twice, sums with themselves and samples that were scaled up by the inverse
    of a sampling rate all count the same requests again. That makes none of them more certain.
    """
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
        """How often each request was counted; see `repeats_of`.

        Ranges that adjoin may lie between percentiles: their counts are shares of the total, and
        have a common divisor by construction.
        """
        adjoin = bool((self.low[1:] <= self.high[:-1]).any())
        return 1 if adjoin else repeats_of(self.counts, self.censored)

    def occupied(self) -> Counted:
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
    """Return the ends of the distribution-free confidence intervals of percentiles.

    The ranks are those of `scipy.stats.quantile_test`. Censored values may lie anywhere above their
    limit, so the lower end assumes the best and the upper end the worst.
    """
    full = counted.occupied()
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
        """Return the value at each percentile (0..100): scalar → float, array → array.

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
    full = counted.occupied()
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


def row_mean_std(
    rows: Ints, values: NDArray[np.generic], counts: Ints, size: int
) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of every row of a block at once."""
    reals = values.astype(np.float64)
    totals = np.bincount(rows, counts, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(rows, reals * counts, size) / totals
        deviation = reals - mean[rows]
        std = np.sqrt(np.bincount(rows, deviation * deviation * counts, size) / totals)
    return mean, std


# ------------------------------------------------------------
# Percentiles as rows of a table.


Cause = Literal[
    "", "few requests", "one stall", "drift", "parts differ", "as stated", "timeouts",
    "above the last bucket",
]  # fmt: skip
"""Why a percentile is uncertain; empty where it is not."""


@record()
class Doubt:
    """A range of percentiles that a run does not support.

    Attributes
    ----------
    first, last : float
        Percentiles; the range is open at its beginning.
    cause : str
        See `Cause`.
    needed : float
        How many times as long a run of such traffic would decide; 0 where it is unknown.
    """

    first: float
    last: float
    cause: str
    needed: float = 0.0


@record()
class Uncertainty:
    """How well a value is known.

    Attributes
    ----------
    low, high : float
        Confidence interval joined with the bucket; NaN without a lower bound, infinite without an
        upper one, and both NaN without an interval.
    supported : bool
        True if the run shows it plainly; else it stands in brackets.
    cause : str
        Why not; see `Cause`.
    needed : float
        How many times as long a run would decide; 0 where it is unknown or not needed.
    """

    low: float
    high: float
    supported: bool
    cause: str = ""
    needed: float = 0.0


@record(kw_only=True)
class PercentileRow(Uncertainty):
    """One percentile and how far it can be trusted.

    Attributes
    ----------
    percentile, value : float
    bucket_low, bucket_high : float
        Resolution of the source: the bucket, narrowed by reported values; infinite above in the
        censored mass.
    resolved : bool
        True if these two are within a tenth of each other; else `value` is the upper end of a
        range.
    events : int or None
        As how many independent requests those above the percentile count, if the source knows time:
        a stall is one.
    """

    percentile: float
    value: float
    bucket_low: float
    bucket_high: float
    resolved: bool
    events: int | None = None


_COLUMNS = (
    "percentile", "value", "low", "high", "bucket_low", "bucket_high", "resolved", "supported",
    "events",
)  # fmt: skip


def percentile_frame(rows: Iterable[PercentileRow]) -> pd.DataFrame:
    """Return percentiles as a table: one row per percentile, one column per field."""
    import pandas as pd

    return pd.DataFrame([vars(row) for row in rows], columns=_COLUMNS).set_index("percentile")


# ------------------------------------------------------------
# Percentiles of a `Histogram` (which imports this module): the value, the edges between which it
# lies, and what supports it.


def values_at(histogram: Any, p: Floats) -> tuple[Floats, Ints, NDArray[np.bool_]]:
    """Return value, bucket position and "this is only a lower bound" of each percentile."""
    total = histogram.count + histogram.censored
    rank = ranks(p, total)
    if histogram.reported_percentiles[0]:  # a tool may report the value of the rank below
        at = np.asarray(histogram.reported_percentiles[0])
        rank = np.where(np.isin(p, at), np.maximum(surely_within(p, total), 1), rank)
        if histogram.censored:  # no percentile lies above a higher one that is reported
            lower = np.append(np.maximum(surely_within(at, total), 1), total)
            rank = np.minimum(rank, lower[np.searchsorted(at, p, "left")])
    if not histogram.index.size:
        bound = histogram.censored_at if histogram.censored else np.nan
        return np.full(p.shape, bound), np.zeros(p.shape, np.int64), rank > 0
    below, edges = histogram.count, histogram.counted
    if histogram.censored:
        below = int(histogram.counts[edges.high <= histogram.censored_at].sum())
    # Censored values rank right above the first `below` values.
    counted = np.maximum(rank - histogram.censored, min(below, histogram.count))
    counted = np.maximum(np.where(rank > below, counted, rank), 1)
    position = np.searchsorted(histogram.cumulative, counted, "left")
    position = np.minimum(position, histogram.index.size - 1).astype(np.int64)
    values = np.where(p == 0, edges.low.min(), edges.high[position])
    if histogram.reported_percentiles[0]:
        floor, ceiling = _reported_around(histogram, p)
        values = np.clip(values, floor, np.maximum(ceiling, floor))
    if histogram.censored:
        values = np.where(rank > below, np.maximum(histogram.censored_at, values), values)
    return values, position, (rank > below) & (histogram.censored > 0)


def brackets_at(histogram: Any, p: Floats) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Return value, lower edge, upper edge and "this is only a lower bound" of each percentile.

    The edges are the bucket's, narrowed by the extremes and percentiles that the source reports;
    both are the value of a reported percentile. The upper one is infinite in censored mass.
    """
    values, position, open_above = values_at(histogram, p)
    if not histogram.index.size:
        return values, values, np.where(open_above, np.inf, values), open_above
    edges, raw = histogram.counted, np.zeros(0)
    low, high = edges.low[position], edges.high[position]
    if isinstance(histogram.buckets, EdgeBuckets):
        raw = histogram.buckets.low(histogram.index)
    if (raw[1:] < raw[:-1]).any():  # they overlap: take the lower edge of the rank, not the bucket
        order = np.argsort(raw, kind="stable")
        rank = np.minimum(ranks(p, histogram.count + histogram.censored), histogram.count)
        low = edges.low[order][np.searchsorted(np.cumsum(histogram.counts[order]), rank, "left")]
    if histogram.reported_percentiles[0]:
        floor, ceiling = _reported_around(histogram, p)
        # With a handful of values, a rank's bucket may lie above the percentile reported for it.
        low = np.where((low >= ceiling) & (low < high), floor, np.maximum(low, floor))
        high = np.minimum(high, ceiling)
    for name, at in (("min", 0.0), ("max", 100.0)):
        if name in histogram.reported_stats:
            low, high = (np.where(p == at, values, edge) for edge in (low, high))
    low, high = (np.where(open_above, edge, end) for edge, end in ((values, low), (np.inf, high)))
    return values, np.minimum(low, values), np.maximum(high, values), open_above


def rows_of(columns: Mapping[str, AnyArray]) -> list[PercentileRow]:
    """Return the columns that `columns_at` returns as rows."""
    lists = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [PercentileRow(**dict(zip(columns, row, strict=True))) for row in lists]


def columns_at(
    histogram: Any,
    p: Floats,
    confidence: float,
    doubts: Sequence[Doubt],
    *,
    bounded: bool = True,
) -> dict[str, AnyArray]:
    """Return percentiles as a column for each field of `PercentileRow`.

    `doubts` are the ranges of percentiles that are not supported; intervals are those of
    independent requests, and there are none where not `bounded`.
    """
    values, bottoms, tops, open_above = brackets_at(histogram, p)
    low, high = np.full(p.shape, np.nan), np.full(p.shape, np.inf)
    if histogram.run.corrected in ("us", "tool"):  # ranks of corrected counts are invented
        high = np.full(p.shape, np.nan) if bounded else high
    elif histogram.count + histogram.censored and bounded:
        low, high = interval_ends(histogram.counted, p, confidence)
    cause, needed = np.full(p.shape, "", object), np.zeros(p.shape)
    for doubt in doubts:
        inside = (p > doubt.first) & (p <= doubt.last) & (p < 100)
        cause[inside], needed[inside] = doubt.cause, doubt.needed
    few = cause == "few requests"
    needed[few] = LEAST_ABOVE / np.maximum(
        (1 - p[few] / 100) * (histogram.count + histogram.censored), 1e-9
    )
    beyond = "timeouts" if histogram.run.timeouts else "above the last bucket"
    cause[open_above] = beyond
    return {
        "percentile": p,
        "value": values,
        "low": np.minimum(low, bottoms),
        "high": np.where(open_above, np.inf, np.maximum(high, tops)),
        "bucket_low": bottoms,
        "bucket_high": tops,
        "resolved": is_resolved(bottoms, tops),
        "supported": cause == "",
        "events": np.full(p.shape, None),
        "cause": cause,
        "needed": needed,
    }


def stated_range(histogram: Any) -> tuple[float, float]:
    """Return the lowest and the highest value that the source reports, percentiles included."""
    top = histogram.reported_percentiles[1][-1] if histogram.reported_percentiles[1] else -np.inf
    return histogram.reported_stats.get("min", -np.inf), max(
        histogram.reported_stats.get("max", np.inf), top
    )


def _reported_around(histogram: Any, p: Floats) -> tuple[Floats, Floats]:
    """Values reported for the next percentile at or below and at or above each, else infinite."""
    at, values = (np.asarray(side, np.float64) for side in histogram.reported_percentiles)
    before, after = np.searchsorted(at, p, "right") - 1, np.searchsorted(at, p, "left")
    floor = np.where(before >= 0, values[np.maximum(before, 0)], -np.inf)
    return floor, np.where(after < at.size, values[np.minimum(after, at.size - 1)], np.inf)


def highest_pinned_down(histogram: Any, limit: float) -> float:
    """Return the highest percentile up to `limit` known within a tenth, or 0."""
    if limit > 0:  # the buckets of most sources are narrow
        _, low, high, _ = brackets_at(histogram, np.array([limit]))
        if is_resolved(low, high)[0]:
            return limit
    reached = 100.0 * histogram.cumulative / max(histogram.count + histogram.censored, 1)
    ends = np.concatenate(([limit], reached, histogram.reported_percentiles[0]))
    ends = distinct(ends[(ends > 0) & (ends <= limit)])[::-1]
    _, low, high, _ = brackets_at(histogram, ends)
    return float(next(iter(ends[is_resolved(low, high)]), 0.0))


def statistic_text(histogram: Any, name: str) -> str:
    """Return ``min``, ``max``, ``mean`` or ``std`` as text; a range where it is not resolved."""

    def show(value: float) -> str:
        return format_value(value, histogram.unit)

    low, high = histogram.bracket(name)
    if name == "max" and histogram.requests > histogram.count:
        return f"≥ {show(histogram.max)}"
    return (
        show(getattr(histogram, name)) if is_resolved(low, high) else format_range(low, high, show)
    )
