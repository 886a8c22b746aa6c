"""Whether events come at regular times: garbage collections, cron jobs, compactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.units import format_duration

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Period", "period_of"]

_LEAST = 8  # events: fewer support no claim
_ALPHA = 0.01
_HIGHEST = 1.5  # events a period at most: some are missed, some are none of it
_PERIODS = 4  # in which events must lie: two of a kind are no regularity
_ENOUGH = 1000  # events to tell a period by
_BLOCK = 128  # frequencies
_NEAR = 0.8  # of the best frequency's power: the lowest one that reaches it is the period, the others its harmonics


@dataclass(frozen=True)
class Period:
    """A period of events.

    Attributes
    ----------
    seconds : float
    events : int
    p : float
        Chance of so strong a period where there is none.
    """

    seconds: float
    events: int
    p: float

    @property
    def words(self) -> str:
        """One sentence."""
        chance = f"p = {self.p:.1g}" if self.p > 1e-6 else "p < 0.000001"
        return f"{self.events} stalls come about every {format_duration(self.seconds * 1e9)} ({chance})"


def period_of(at: ArrayLike, span: float) -> Period | None:
    """Find the period of events, or None where there are fewer than 8, in fewer than four periods, or none beyond chance.

    Parameters
    ----------
    at : array_like of float, shape (n,)
        When each event was, seconds.
    span : float
        How long was looked, seconds.

    Notes
    -----
    Rayleigh's test, ``Z²(f) = 2/n |Σ exp(2πi f t)|²`` over frequencies from 3/T to 1.5 n/T; under no period half of it is
    exponential, and there are about three times as many independent frequencies as whole ones. The work grows with the
    square of n, so that of more than 1,000 events the first 1,000 are asked.

    Examples
    --------
    >>> found = period_of(np.arange(12) * 10.3 + 0.2 * np.sin(np.arange(12)), 125.0)
    >>> round(found.seconds, 1), period_of([1, 2, 3], 10) is None
    (10.3, True)
    """
    times = np.asarray(at, np.float64)
    every = times.size
    if every > _ENOUGH:
        times = np.sort(times)[:_ENOUGH]
        span = float(times[-1] - times[0])
    n = times.size
    if n < _LEAST or not span > 0:
        return None
    frequencies = np.arange((_PERIODS - 1) / span, _HIGHEST * n / span, 1 / (8 * span))
    if not frequencies.size:
        return None
    # Many at a time: the turns of a frequency are those of the first of its block, turned on by what the steps between add.
    turned = np.exp(2j * np.pi / (8 * span) * np.outer(np.arange(_BLOCK), times))
    sums = np.concatenate([turned @ np.exp(2j * np.pi * f * times) for f in frequencies[::_BLOCK].tolist()])
    power = 2 / n * np.abs(sums[: frequencies.size]) ** 2
    best = float(power.max())
    p = float(-np.expm1(3 * (_HIGHEST * n - _PERIODS + 1) * np.log1p(-np.exp(-best / 2)))) if best > 0 else 1.0
    if p > _ALPHA:
        return None
    first = int(np.argmax(power >= _NEAR * best))
    falls = np.flatnonzero(np.diff(power[first:]) < 0)
    peak = first + (int(falls[0]) if falls.size else power.size - 1 - first)
    phase = np.angle(np.exp(2j * np.pi * frequencies[peak] * times).sum()) / (2 * np.pi)
    if np.unique(np.rint(times * frequencies[peak] - phase)).size < _PERIODS:
        return None
    return Period(float(1 / frequencies[peak]), every, max(p, 1e-300))
