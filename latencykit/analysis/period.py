"""Whether events come at regular times: garbage collections, cron jobs, compactions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from latencykit._records import record
from latencykit.units import format_duration


@record()
class PeriodRules:
    """When stalls come at regular times; chosen on random moments."""

    # fewer support no claim
    min_events: int = 8
    # of a period as strong where there is none
    max_probability: float = 0.01
    # some are missed, some do not belong to it
    max_events_per_period: float = 1.5
    # in which events must lie: two are not a regularity
    min_periods: int = 4
    # of which each has few: many are a slow change
    max_per_period: int = 4
    # to find a period in: the work grows with their square
    max_events: int = 1000
    # frequencies per 1/T that are looked at, and that count as independent
    fine: int = 8
    independent: int = 3
    # of a period by chance: a smaller one is not written
    min_shown: float = 1e-6
    # per pass, for the size of the arrays
    block_frequencies: int = 128
    # the lowest frequency that reaches it; the others are harmonics
    near_best_power: float = 0.8


PERIOD = PeriodRules()


@record()
class Period:
    """A period of events."""

    seconds: float
    events: int
    p: float  # probability of a period as strong where there is none

    @property
    def words(self) -> str:
        """One sentence."""
        least = PERIOD.min_shown
        p = f"p = {self.p:.1g}" if self.p > least else f"p < {least:.6f}"
        return f"{self.events} stalls occur about every {format_duration(self.seconds * 1e9)} ({p})"


def period_of(at: ArrayLike, span: float) -> Period | None:
    """Find the period of events; None for fewer than 8, in under four periods, or by chance."""
    # Rayleigh's test, ``Z²(f) = 2/n |Σ exp(2πi f t)|²`` over frequencies from 3/T to 1.5 n/T;
    # without a period half of it is exponential, and there are about three times as many
    # independent frequencies as multiples of 1/T. The work grows with the square of n, so of more
    # than 1,000 events the first 1,000 are used.
    times = np.asarray(at, np.float64)
    events = times.size
    if events > PERIOD.max_events:
        times = np.sort(times)[: PERIOD.max_events]
        span = float(times[-1] - times[0])
    n = times.size
    if n < PERIOD.min_events or not span > 0:
        return None
    frequencies = np.arange(
        max(PERIOD.min_periods - 1, n / PERIOD.max_per_period) / span,
        PERIOD.max_events_per_period * n / span,
        1 / (PERIOD.fine * span),
    )
    if not frequencies.size:
        return None
    # A block at a time: the phases of a frequency are those of the first of its block, turned by
    # what the steps between add.
    turned = np.exp(
        2j * np.pi / (PERIOD.fine * span) * np.outer(np.arange(PERIOD.block_frequencies), times)
    )
    sums = np.concatenate(
        [
            turned @ np.exp(2j * np.pi * f * times)
            for f in frequencies[:: PERIOD.block_frequencies].tolist()
        ]
    )
    power = 2 / n * np.abs(sums[: frequencies.size]) ** 2
    best, p = float(power.max()), 1.0
    if best > 0:
        independent = PERIOD.independent * (
            PERIOD.max_events_per_period * n - PERIOD.min_periods + 1
        )
        p = float(-np.expm1(independent * np.log1p(-np.exp(-best / 2))))
    if p > PERIOD.max_probability:
        return None
    first = int(np.argmax(power >= PERIOD.near_best_power * best))
    falls = np.flatnonzero(np.diff(power[first:]) < 0)
    peak = first + (int(falls[0]) if falls.size else power.size - 1 - first)
    phase = np.angle(np.exp(2j * np.pi * frequencies[peak] * times).sum()) / (2 * np.pi)
    if np.unique(np.rint(times * frequencies[peak] - phase)).size < PERIOD.min_periods:
        return None
    return Period(float(1 / frequencies[peak]), events, max(p, math.ulp(0.0)))
