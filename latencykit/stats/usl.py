"""The Universal Scalability Law: throughput against concurrency, with what contention and coherence take away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = ["ScalabilityLaw", "fit_scalability"]

_FEWEST = 6
_FARTHEST = 2.0


@dataclass(frozen=True, eq=False)
class ScalabilityLaw:
    """X(N) = λN / (1 + σ(N − 1) + κN(N − 1)), as fitted.

    Attributes
    ----------
    rate, contention, coherence : float
        λ (throughput of one), σ and κ.
    covariance : ndarray of float64, shape (3, 3)
        Of the three, in that order.
    highest : float
        Largest concurrency measured.
    past_knee : bool
        Whether throughput was seen to fall again; only then does a peak mean anything.
    """

    rate: float
    contention: float
    coherence: float
    covariance: Floats
    highest: float
    past_knee: bool

    @property
    def errors(self) -> Floats:
        """Standard errors of λ, σ and κ."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def peak(self) -> float:
        """Concurrency of the highest throughput, √((1 − σ)/κ); NaN where the measurement did not pass it."""
        if not self.past_knee or self.coherence <= 0:
            return math.nan
        return math.sqrt((1 - self.contention) / self.coherence)

    def at(self, concurrency: ArrayLike) -> Floats:
        """Return the throughput at some concurrency.

        Raises
        ------
        UsageError
            Beyond twice what was measured: a fit says nothing of what it has not seen.
        """
        n = np.asarray(concurrency, np.float64)
        if (n > _FARTHEST * self.highest).any():
            raise UsageError(
                f"a curve measured up to {self.highest:g} says nothing of {float(n.max()):g}; measure there, or ask within "
                f"{_FARTHEST * self.highest:g}"
            )
        return np.asarray(_law(n, self.rate, self.contention, self.coherence))


def _law(n: Floats, rate: float, contention: float, coherence: float) -> Floats:
    return np.asarray(rate * n / (1 + contention * (n - 1) + coherence * n * (n - 1)))


def fit_scalability(concurrency: ArrayLike, throughput: ArrayLike) -> ScalabilityLaw:
    """Fit the Universal Scalability Law (Gunther, 1993) by least squares.

    Parameters
    ----------
    concurrency, throughput : array_like of float, shape (runs,)
        At least six different concurrencies.

    Returns
    -------
    ScalabilityLaw

    Raises
    ------
    UsageError
        With fewer loads, or where no curve fits.

    Examples
    --------
    >>> n = np.array([1, 2, 4, 8, 16, 32, 64])
    >>> law = fit_scalability(n, 1000 * n / (1 + 0.05 * (n - 1) + 8e-4 * n * (n - 1)))
    >>> round(law.contention, 3), round(law.peak, 1)
    (0.05, 34.5)
    """
    from scipy.optimize import curve_fit

    n, x = np.asarray(concurrency, np.float64), np.asarray(throughput, np.float64)
    if n.shape != x.shape or np.unique(n).size < _FEWEST:
        raise UsageError(f"three parameters need at least {_FEWEST} different loads, not {np.unique(n).size}")
    if not ((n >= 1).all() and (x > 0).all() and np.isfinite(x).all()):
        raise UsageError("concurrency starts at 1, and throughput is above 0")
    start = (float((x / n).max()), 0.01, 1e-4)
    try:
        found, covariance = curve_fit(_law, n, x, p0=start, bounds=([0, 0, 0], [np.inf, 1, 1]), x_scale=(start[0], 0.1, 1e-3))
    except RuntimeError as failed:
        raise UsageError(f"no scalability curve fits these {n.size} runs: {failed}") from None
    order = np.argsort(n, kind="stable")
    past = bool(x[order][-1] < x.max() and n[order][-1] > n[int(np.argmax(x))])
    rate, contention, coherence = (float(v) for v in found)
    return ScalabilityLaw(rate, contention, coherence, np.asarray(covariance), float(n.max()), past)
