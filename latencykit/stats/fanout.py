"""The slowest of n: what users meet who wait for many answers, from the distribution of one.

Works on survival functions over ascending buckets: ``survival[k]`` is the probability of a value above bucket k. Tails
keep their precision that way, where a distribution function runs into 1.

Calls are taken as independent unless something says otherwise. They are not: in a stall all calls are slow together,
which makes the slowest of n *less* often slow. A log knows when, so that its intervals are mixed (`by_interval`);
without one, `correlation` moves between independence and all calls alike.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import UsageError
from latencykit.stats.quantiles import running_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = [
    "all_of",
    "by_interval",
    "chance_of_slow",
    "landing_percentile",
    "leaf_percentile",
    "mixture",
    "probabilities",
    "quorum",
    "samples_needed",
    "share_above",
    "slowest",
    "survival",
]


def survival(counts: ArrayLike, censored: int = 0) -> Floats:
    """Return the share of values above each bucket, float64, shape (buckets,).

    Parameters
    ----------
    counts : array_like of int, shape (buckets,)
    censored : int
        Values above all buckets; with them the last share is not 0.

    Examples
    --------
    >>> survival([6, 3, 1]).tolist()
    [0.4, 0.1, 0.0]
    """
    numbers = np.asarray(counts, np.int64)
    running = np.cumsum(numbers)
    total = int(running[-1]) + censored
    return np.asarray((total - running) / total)


def probabilities(above: ArrayLike) -> Floats:
    """Return the probability of each bucket from its survival function.

    Examples
    --------
    >>> probabilities([0.5, 0.25, 0.0]).tolist()
    [0.5, 0.25, 0.25]
    """
    return -np.diff(np.asarray(above, np.float64), prepend=1.0)


def slowest(above: ArrayLike, n: int, correlation: float = 0.0) -> Floats:
    """Return the survival function of the slowest of `n` calls.

    Parameters
    ----------
    above : array_like of float, shape (buckets,)
        Survival function of one call.
    n : int
    correlation : float, default 0
        Share (0..1) of cases in which all calls are as slow as one: ``(1 − c) (1 − Fⁿ) + c (1 − F)``.

    Examples
    --------
    >>> slowest([0.01, 0.0], 100).round(3).tolist()
    [0.634, 0.0]
    """
    _whole(n)
    if not 0 <= correlation <= 1:
        raise UsageError(f"a correlation must be between 0 and 1, not {correlation}")
    one = np.asarray(above, np.float64)
    return (1 - correlation) * _any_of(one, n) + correlation * one


def quorum(above: ArrayLike, k: int, n: int) -> Floats:
    """Return the survival function of the k-th fastest of `n` calls: enough answers have come.

    Notes
    -----
    At least k of n are within x with probability I(F; k, n − k + 1), the regularised incomplete beta function.

    Examples
    --------
    >>> quorum([0.1, 0.0], 2, 3).round(3).tolist()
    [0.028, 0.0]
    """
    from scipy import special

    _whole(n)
    if not 1 <= k <= n:
        raise UsageError(f"a quorum of {k} of {n} calls is impossible; it must be from 1 to {n}")
    return np.asarray(special.betainc(n - k + 1, k, np.asarray(above, np.float64)))


def all_of(aboves: Sequence[ArrayLike], each: Sequence[int] | None = None) -> Floats:
    """Return the survival function of the slowest of unlike services, ``1 − Π Fᵢ^nᵢ``, over common buckets.

    Parameters
    ----------
    aboves : sequence of array_like, shape (buckets,) each
    each : sequence of int, optional
        Calls to each service; 1 by default.

    Examples
    --------
    >>> all_of([[0.5, 0.0], [0.5, 0.2]]).tolist()
    [0.75, 0.2]
    """
    times = [1] * len(aboves) if each is None else list(each)
    with np.errstate(divide="ignore"):
        logs = sum(n * np.log1p(-np.asarray(one, np.float64)) for one, n in zip(aboves, times, strict=True) if n)
    return np.asarray(-np.expm1(logs))


def mixture(aboves: Sequence[ArrayLike], weights: Sequence[float]) -> Floats:
    """Return the survival function of a value taken from one of several distributions, over common buckets.

    Examples
    --------
    >>> mixture([[0.5, 0.0], [0.1, 0.1]], [3, 1]).tolist()
    [0.4, 0.025]
    """
    share = np.asarray(weights, np.float64)
    return np.asarray(share @ np.asarray(aboves, np.float64) / share.sum())


def by_interval(
    indptr: Ints, index: Ints, counts: Ints, n: int, size: int, k: int | None = None, total: int | None = None
) -> Floats:
    """Return the distribution of the slowest of `n` calls that fall into one interval, mixed over the intervals.

    Parameters
    ----------
    indptr : ndarray of int64, shape (rows + 1,)
    index, counts : ndarray of int64, shape (nonzero,)
        Ascending bucket indices within a row, and their counts.
    n : int
        Calls of one user; all fall into the same interval.
    size : int
        Number of buckets.
    k : int, optional
        Wait for the k fastest of n only.
    total : int, optional
        Requests of the whole log, where these rows are a part of it: the parts' results then add up.

    Returns
    -------
    ndarray of float64, shape (size,)
        Probability of each bucket. An interval weighs as much as requests fell into it, as users do. Nothing is ever
        held as intervals × buckets.

    Examples
    --------
    >>> by_interval(np.array([0, 1, 2]), np.array([0, 1]), np.array([9, 1]), 100, 2).tolist()
    [0.9, 0.1]
    """
    running, lengths = running_sums(counts), np.diff(indptr)
    held = np.repeat(np.diff(running[indptr]), lengths)
    above = (np.repeat(running[indptr[1:]], lengths) - running[1:]) / held
    slow = slowest(above, n) if k is None else quorum(above, k, n)
    before = np.empty_like(slow)
    before[1:] = slow[:-1]
    before[indptr[:-1][lengths > 0]] = 1.0
    weight = held / (running[-1] if total is None else total)
    return np.bincount(index, (before - slow) * weight, size).astype(np.float64)


def share_above(tail: ArrayLike, count: ArrayLike, n: int) -> Floats:
    """Return the share of users of whose `n` calls at least one lies above each percentile, mixed by interval.

    Parameters
    ----------
    tail : array_like of float, shape (intervals, p)
        Requests above each percentile; see `latencykit.stats.events.tail_counts`.
    count : array_like of int, shape (intervals,)

    Returns
    -------
    ndarray of float64, shape (p,)
        In 0..1. For independent calls it would be `chance_of_slow`.

    Examples
    --------
    >>> share_above([[10.0], [0.0]], [10, 990], 100).tolist()
    [0.01]
    """
    parts, sizes = np.asarray(tail, np.float64), np.asarray(count, np.float64)
    parts, sizes = parts[sizes > 0], sizes[sizes > 0]
    return np.asarray(sizes @ _any_of(np.minimum(parts / sizes[:, None], 1.0), n) / sizes.sum())


def chance_of_slow(percentile: ArrayLike, n: ArrayLike, correlation: float = 0.0) -> Floats:
    """Return the chance (0..1) that at least one of `n` calls is slower than the percentile of one.

    `n` is the calls of a whole session where users open several pages. `correlation` is that of `slowest`.

    Examples
    --------
    >>> chance_of_slow(99, [69, 100]).round(3).tolist(), round(float(chance_of_slow(99, 100, correlation=1)), 3)
    ([0.5, 0.634], 0.01)
    """
    rest = 1.0 - np.asarray(percentile, np.float64) / 100.0
    return np.asarray((1 - correlation) * _any_of(rest, n) + correlation * rest)


def landing_percentile(percentile: ArrayLike, n: ArrayLike) -> Floats:
    """Return the users' percentile at which a percentile of one call lands: ``100 qⁿ``.

    Examples
    --------
    >>> landing_percentile(99.9, [1, 10, 100]).round(2).tolist()
    [99.9, 99.0, 90.48]
    """
    return np.asarray(100.0 * (np.asarray(percentile, np.float64) / 100.0) ** np.asarray(n))


def leaf_percentile(percentile: ArrayLike, n: int, k: int | None = None) -> Floats:
    """Return the percentile of one call that a percentile of the users rests on: ``100 q^(1/n)``.

    Parameters
    ----------
    percentile : array_like of float
        The users' percentile.
    n : int
    k : int, optional
        They wait for the k fastest only.

    Examples
    --------
    >>> leaf_percentile([50, 99], 100).round(5).tolist()
    [99.30925, 99.98995]
    """
    _whole(n)
    q = np.asarray(percentile, np.float64) / 100.0
    if k is None or k == n:
        return np.asarray(100.0 * q ** (1.0 / n))
    from scipy import special

    return np.asarray(100.0 * special.betaincinv(k, n - k + 1, q))


def samples_needed(percentile: float, confidence: float = 0.95, *, two_sided: bool = True) -> int:
    """Return how many independent values it takes to bound a percentile from above.

    Examples
    --------
    >>> samples_needed(99.9), samples_needed(99.9, two_sided=False)
    (3688, 2995)
    """
    if not 0 <= percentile < 100:
        raise UsageError(f"no sample bounds p{percentile:g}; a percentile from 0 to below 100 can be bounded")
    alpha = (1.0 - confidence) / (2 if two_sided else 1)
    if percentile == 0:
        return 1
    return math.ceil(math.log(alpha) / math.log(percentile / 100.0) * (1 - 1e-12))


def _any_of(above: ArrayLike, n: ArrayLike) -> Floats:
    """``1 − (1 − S)ⁿ`` without loss where S is tiny."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(np.asarray(n) * np.log1p(-np.asarray(above, np.float64))))


def _whole(n: int) -> None:
    if n < 1:
        raise UsageError(f"a fan-out must be at least 1, not {n}")
