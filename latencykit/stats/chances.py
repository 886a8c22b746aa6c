"""Chances that the package asks for all the time: binomial, Poisson and Student's, in numpy alone.

`scipy.special` knows all of them, but importing it takes a quarter of a second, half of what a summary of a small log
takes. What is summed up here is summed up exactly; where sums get long, scipy is taken after all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["binomial_quantiles", "poisson_at_least", "poisson_at_most", "poisson_mean", "student_tail"]

_LONG = 4_000_000  # terms; above that importing scipy takes less time than summing them up
_TERMS = 600


def binomial_quantiles(probabilities: Sequence[float], n: int, q: ArrayLike) -> Ints:
    r"""Return the smallest k with P(Binomial(n, q) ≤ k) ≥ p, for every p and q.

    Parameters
    ----------
    probabilities : sequence of float
        Each within 1e-9 .. 1 − 1e-9.
    n : int
    q : array_like of float
        Within 0..1.

    Returns
    -------
    ndarray of int64, shape (probabilities, \*shape of q)

    Examples
    --------
    >>> binomial_quantiles([0.025, 0.975], 1500, [0.5, 0.99]).tolist()
    [[712, 1477], [788, 1492]]
    """
    inside = np.clip(np.ravel(q), 1e-12, 1 - 1e-12)
    reach = np.ceil(8 * np.sqrt(n * inside * (1 - inside))) + 20  # what lies beyond is below 1e-14
    if float(reach.sum()) * 2 > _LONG:
        return _binomial_quantiles_by_scipy(probabilities, n, inside).reshape(len(probabilities), *np.shape(q))
    out = np.empty((len(probabilities), inside.size), np.int64)
    for column, (share, most) in enumerate(zip(inside.tolist(), reach.tolist(), strict=True)):
        mode = int((n + 1) * share)
        first = max(0, mode - int(most))
        k = np.arange(first + 1, min(n, mode + int(most)) + 1, dtype=np.float64)
        steps = np.log((n + 1 - k) / k * (share / (1 - share)))
        mass = np.concatenate(([0.0], np.cumsum(steps)))  # logarithms of P(k) / P(first)
        below = np.cumsum(np.exp(mass - mass.max()))
        out[:, column] = first + np.searchsorted(below, np.asarray(probabilities) * below[-1])
    return out.reshape(len(probabilities), *np.shape(q))


def _binomial_quantiles_by_scipy(probabilities: Sequence[float], n: int, q: Floats) -> Ints:
    """The same of `scipy.stats.binom.ppf`, without its import."""
    from scipy import special

    p = np.asarray(probabilities)[:, None]
    k = np.clip(np.ceil(np.nan_to_num(special.bdtrik(p, n, q))), 0, n)
    below = np.maximum(k - 1, 0)
    k = np.where((k > 0) & (special.bdtr(below, n, q) >= p), below, k)
    return np.asarray(k, np.int64)


def poisson_at_least(k: ArrayLike, mean: ArrayLike) -> Floats:
    """Return P(Poisson(mean) ≥ k), for fractions of k its smooth continuation: the regularised lower incomplete gamma function.

    It is meant for small chances: for a k of hundreds of thousands close to its mean the chance comes out too large.

    Parameters
    ----------
    k, mean : array_like of float
        Above 0; not below 0.

    Examples
    --------
    >>> poisson_at_least([2, 30], 10.0).round(9).tolist()
    [0.999500601, 2.51e-07]
    """
    a, x = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(mean, np.float64))
    with np.errstate(divide="ignore", under="ignore"):
        first = np.exp(a * np.log(x) - x - _log_gamma(a + 1))
    term, total = np.ones_like(a), np.ones_like(a)
    for number in range(1, _TERMS + 1):
        term = term * (x / (a + number))
        total = total + term
        if not (term > 1e-12 * total).any():
            break
    ratio = np.minimum(x / (a + number + 1), 1 - 1e-9)
    return np.asarray(np.minimum(first * (total + term * ratio / (1 - ratio)), 1.0))  # what follows falls faster than that


def _log_gamma(z: Floats) -> Floats:
    """Stirling's series, eight steps further up, where it is good to 1e-10."""
    y = z + 8
    steps = np.log(z[..., None] + np.arange(8)).sum(axis=-1)
    series = 1 / (12 * y) - 1 / (360 * y**3) + 1 / (1260 * y**5)
    return np.asarray((y - 0.5) * np.log(y) - y + 0.5 * math.log(2 * math.pi) + series - steps)


def poisson_at_most(k: int, mean: float) -> float:
    """Return P(Poisson(mean) ≤ k), however small.

    Examples
    --------
    >>> round(poisson_at_most(2, 10.0), 9), f"{poisson_at_most(0, 200.0):.9g}"
    (0.002769396, '1.38389653e-87')
    """
    if mean <= 0 or k > mean + 10 * math.sqrt(mean) + 50:
        return 1.0
    falls = np.log(np.arange(k, max(k - _LONG, 0), -1, dtype=np.float64) / mean)
    sums = np.concatenate(([0.0], np.cumsum(falls)))  # logarithms of P(k − j) / P(k)
    last = k * math.log(mean) - mean - math.lgamma(k + 1)
    top = float(sums.max())
    with np.errstate(under="ignore"):
        return min(1.0, math.exp(last + top + math.log(float(np.exp(sums - top).sum()))))


def poisson_mean(k: int, chance: float) -> float:
    """Return the mean m at which P(Poisson(m) ≤ k) falls to a chance.

    Examples
    --------
    >>> round(poisson_mean(0, 0.05), 6), round(poisson_mean(9, 0.05), 6)
    (2.995732, 15.705216)
    """
    low, high = 0.0, k + 1.0
    while poisson_at_most(k, high) > chance:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if poisson_at_most(k, middle) > chance else (low, middle)
    return high


def student_tail(tail: float, degrees: float) -> float:
    """Return the normal tail that stands as far out as Student's `tail` does.

    Parameters
    ----------
    tail : float
        Below one half.
    degrees : float
        Degrees of freedom, at least 1; no whole number is needed.

    Examples
    --------
    >>> round(student_tail(0.025, 10), 6), round(student_tail(0.025, 1e9), 6)
    (0.012936, 0.025)
    """
    # With t = √d · tan φ the density is cos(φ) to the power d − 1; its integral is read backwards.
    width = min(math.pi / 2, 12 / math.sqrt(degrees))
    angle = np.linspace(0.0, width, 20_001)
    density = np.maximum(np.cos(angle), 0.0) ** (degrees - 1)
    area = np.concatenate(([0.0], np.cumsum(density[:-2:2] + 4 * density[1:-1:2] + density[2::2])))  # Simpson's rule
    found = float(np.interp((0.5 - tail) / 0.5 * area[-1], area, angle[::2]))
    return 0.5 * math.erfc(math.sqrt(degrees) * math.tan(found) / math.sqrt(2))
