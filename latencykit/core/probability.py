"""Probabilities and quantiles of distributions, by numpy where that takes less than scipy's import.

That import takes half the time of a summary of a small log. Sums are exact; long ones use scipy.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from latencykit._arrays import read_only
from latencykit._typing import Floats, Ints

_LONG = 4_000_000  # terms; above that importing scipy takes less time than summing them up
_TERMS = 600


@lru_cache(maxsize=1024)  # of thousands of series many have as many requests
def binomial_quantiles(probabilities: tuple[float, ...], n: int, q: tuple[float, ...]) -> Ints:
    """Return the smallest k with P(Binomial(n, q) ≤ k) ≥ p, for every p and q."""
    inside = np.clip(q, 1e-12, 1 - 1e-12)
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
    for column, (share, most) in enumerate(zip(inside.tolist(), reach.tolist(), strict=True)):
        mode = int((n + 1) * share)
        first = max(0, mode - int(most))
        k = np.arange(first + 1, min(n, mode + int(most)) + 1, dtype=np.float64)
        steps = np.log((n + 1 - k) / k * (share / (1 - share)))
        mass = np.concatenate(([0.0], np.cumsum(steps)))  # logarithms of P(k) / P(first)
        below = np.cumsum(np.exp(mass - mass.max()))
        out[:, column] = first + np.searchsorted(below, np.asarray(probabilities) * below[-1])
    return read_only(out)


def poisson_at_least(k: ArrayLike, mean: ArrayLike) -> Floats:
    """Return P(Poisson(mean) ≥ k), the regularised lower incomplete gamma function."""
    # For small probabilities: with k of hundreds of thousands close to the mean it is too large.
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


def student_quantile(confidence: float, degrees: float) -> float:
    """Return Student's two-sided quantile (Cornish and Fisher): 2.20 for 95 % and 11 degrees."""
    z = normal_quantile((1 + confidence) / 2)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def share_interval(part: float, total: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval of the share part/total (Clopper and Pearson, 1934)."""
    from scipy import special

    tail = (1.0 - confidence) / 2
    low = special.betaincinv(part, total - part + 1, tail) if part > 0 else 0.0
    high = special.betaincinv(part + 1, total - part, 1 - tail) if part < total else 1.0
    return float(low), float(high)
