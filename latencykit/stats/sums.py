"""Sums of independent latencies: calls one after another, with both ends of what binning does to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import LimitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = ["Leg", "SumBracket", "sum_of"]

_MOST_BINS = 1 << 22
_BINS = 1 << 20
_NOISE = 1e-15  # a Fourier transform's rounding, in each bin


@dataclass(frozen=True, eq=False)
class Leg:
    """One kind of call in a sequence.

    Attributes
    ----------
    low, high : ndarray of float64, shape (buckets,)
    probabilities : ndarray of float64, shape (buckets,)
    times : int
        How often it is made.
    """

    low: Floats
    high: Floats
    probabilities: Floats
    times: int = 1


@dataclass(frozen=True, eq=False)
class SumBracket:
    """Distribution of a sum, between two.

    Attributes
    ----------
    step : float
        Width of a bin; value k × step.
    fast, slow : ndarray of float64, shape (bins,)
        Probabilities with every value rounded down to a bin, and up. The true distribution lies between; tails below
        about 1e-12 drown in rounding.
    """

    step: float
    fast: Floats
    slow: Floats

    def quantile(self, quantile: ArrayLike) -> tuple[Floats, Floats]:
        """Return the lowest and the highest value that each quantile (0..1) can have."""
        q = np.atleast_1d(np.asarray(quantile, np.float64))
        ends = []
        for part in (self.fast, self.slow):
            at = np.searchsorted(np.cumsum(part), q * (1 - 1e-13), "left")
            ends.append(np.minimum(at, part.size - 1) * self.step)
        return ends[0], ends[1]


def sum_of(legs: Sequence[Leg], step: float | None = None) -> SumBracket:
    """Return the distribution of the time that independent calls take one after another.

    Parameters
    ----------
    legs : sequence of Leg
    step : float, optional
        Width of the bins. By default a millionth of the longest possible sum.

    Returns
    -------
    SumBracket
        For raw values (buckets without width) the bracket of a sum of n is at most n × `step` wide.

    Raises
    ------
    LimitError
        Where `step` asks for more than four million bins.

    Examples
    --------
    >>> dice = Leg(np.arange(1.0, 7), np.arange(1.0, 7), np.full(6, 1 / 6), times=2)
    >>> found = sum_of([dice], step=1)
    >>> round(found.slow[7] * 36), found.quantile(0.5)
    (6, (array([7.]), array([7.])))
    """
    if not legs or any(leg.times < 1 for leg in legs):
        raise UsageError("a sum needs at least one call, and each is made at least once")
    longest = sum(leg.times * float(leg.high[leg.probabilities > 0].max()) for leg in legs)
    calls = sum(leg.times for leg in legs)
    width = (longest / _BINS or 1.0) if step is None else float(step)
    if not width > 0 or not np.isfinite(longest):
        raise UsageError(f"a sum needs finite values and bins wider than nothing, not {width}")
    bins = int(longest / width) + calls + 2
    if bins > _MOST_BINS:
        raise LimitError(f"a step of {width:g} makes {bins:,} bins, and {_MOST_BINS:,} is the limit; take a wider step")
    size = 1 << (bins - 1).bit_length()
    return SumBracket(width, _convolve(legs, width, size, up=False), _convolve(legs, width, size, up=True))


def _convolve(legs: Sequence[Leg], step: float, size: int, *, up: bool) -> Floats:
    """Probabilities of the sum when every value is rounded to a bin."""
    product: NDArray[np.complex128] | None = None
    for leg in legs:
        # a value that stands on a bin must stay there, whatever its division leaves in the last place
        at = np.ceil(leg.high / step - 1e-9) if up else np.floor(leg.low / step + 1e-9)
        binned = np.bincount(np.maximum(at, 0).astype(np.int64), leg.probabilities / leg.probabilities.sum(), size)
        part = _power(np.fft.rfft(binned, size), leg.times)
        product = part if product is None else product * part
    assert product is not None
    found = np.fft.irfft(product, size)
    found[found < _NOISE] = 0.0
    last = int(np.flatnonzero(found)[-1]) + 1
    return np.asarray(found[:last] / found.sum())


def _power(base: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """`base` to a whole power by squaring: a complex power goes through logarithms and takes ten times as long."""
    found, square = np.ones_like(base), base.copy()
    while times:
        if times & 1:
            found *= square
        times >>= 1
        if times:
            square *= square
    return found
