"""Traffic whose true percentiles are known: what the benchmark of confident statements is measured in.

A world draws requests (start and latency, seconds); its truth comes from a closed form where there
is one, else from a weighted sample so large that its own error does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

import latencykit as lk

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rng = np.random.Generator

_MEDIAN = float(np.exp(14.0)) * 1e-9


def lognormal(rng: Rng, size: int) -> Floats:
    """Service times of exp(N(14, 1)) ns, in seconds."""
    return np.asarray(_MEDIAN * np.exp(rng.standard_normal(size)))


def exponential(rng: Rng, size: int) -> Floats:
    """Service times of 2 ms on average."""
    return np.asarray(rng.exponential(2e-3, size))


def pareto(rng: Rng, size: int) -> Floats:
    """Service times from 1 ms with a tail of exponent 2.5."""
    return np.asarray(1e-3 * (1 - rng.random(size)) ** (-1 / 2.5))


def bimodal(rng: Rng, size: int) -> Floats:
    """Service times of 1 ms, and of 20 ms for 3 % of the requests."""
    return np.asarray(
        np.where(rng.random(size) < 0.03, 20e-3, 1e-3) * np.exp(0.2 * rng.standard_normal(size))
    )


def autoregression(rng: Rng, size: int, keep: float) -> Floats:
    """An AR(1) of standard deviation 1."""
    from scipy.signal import lfilter

    shocks = rng.standard_normal(size) * np.sqrt(1 - keep * keep)
    shocks[0] = rng.standard_normal()
    return np.asarray(lfilter([1.0], [1.0, -keep], shocks))


def moments(rng: Rng, rate: float, seconds: float) -> Floats:
    """Starts of requests that come at random."""
    return np.sort(rng.random(rng.poisson(rate * seconds))) * seconds


def requests(start: Floats, took: Floats, factor: float = 1.0) -> lk.Samples:
    """Requests in seconds as samples, their latencies multiplied by `factor`."""
    return lk.Samples(start=start * 1e9, duration=took * (1e9 * factor))


@dataclass(frozen=True)
class World:
    """Independent requests at random moments: a rate per second, and what draws service times."""

    rate: float = 75.0
    service: Callable[[Rng, int], Floats] = lognormal
    draws: int = field(default=4_000_000, repr=False)

    def latencies(self, rng: Rng, start: Floats, duration: float) -> Floats:
        """Return the latency of each request."""
        return self.service(rng, start.size)

    def run(self, rng: Rng, duration: float) -> tuple[Floats, Floats]:
        """Return start and latency of each request of one run."""
        start = moments(rng, self.rate, duration)
        return start, self.latencies(rng, start, duration)

    def samples(self, rng: Rng, duration: float, factor: float = 1.0) -> lk.Samples:
        """Return one run, its latencies multiplied by `factor`."""
        return requests(*self.run(rng, duration), factor)

    @cached_property
    def _sample(self) -> tuple[Floats, Floats]:
        return self._weighted(np.random.default_rng(20_260_101))

    def _weighted(self, rng: Rng) -> tuple[Floats, Floats]:
        """Return latencies of requests at any moment, and their weights."""
        return self._values(rng), np.full(self.draws, 1 / self.draws)

    def _values(self, rng: Rng) -> Floats:
        return self.service(rng, self.draws)

    def percentile(self, p: float) -> float:
        """Return the true percentile, seconds."""
        values, weights = self._sorted
        return float(values[np.searchsorted(weights, p / 100)])

    @cached_property
    def _sorted(self) -> tuple[Floats, Floats]:
        values, weights = self._sample
        order = np.argsort(values)
        return values[order], np.cumsum(weights[order])

    @cached_property
    def mean(self) -> float:
        """The true mean, seconds."""
        values, weights = self._sample
        return float((values * weights).sum() / weights.sum())


@dataclass(frozen=True)
class Drift(World):
    """Log-latency follows an autoregression in time of this standard deviation; noise of 0.5."""

    time: float = 10.0
    spread: float = 1.0
    step: float = 0.1

    def latencies(self, rng: Rng, start: Floats, duration: float) -> Floats:
        steps = int(duration / self.step) + 2
        level = self.spread * autoregression(rng, steps, np.exp(-self.step / self.time))
        noise = 0.5 * rng.standard_normal(start.size)
        return np.asarray(_MEDIAN * np.exp(level[(start / self.step).astype(int)] + noise))

    def _values(self, rng: Rng) -> Floats:
        from scipy.special import ndtri

        at = (np.arange(self.draws) + 0.5) / self.draws
        return np.asarray(_MEDIAN * np.exp(np.hypot(self.spread, 0.5) * ndtri(at)))


@dataclass(frozen=True)
class Stalls(World):
    """Freezes at random moments; anyone who arrives meanwhile waits to the end."""

    per_minute: float = 1.0
    length: float = 1.0
    constant: bool = False

    def _freezes(self, rng: Rng, duration: float) -> tuple[Floats, Floats]:
        """Begin and end of each freeze, overlapping ones merged, from long before the run on."""
        before = 20 * self.length
        span = duration + before
        number = rng.poisson(self.per_minute / 60 * span)
        begin = np.sort(rng.random(number)) * span - before
        long = (
            np.full(number, self.length) if self.constant else rng.exponential(self.length, number)
        )
        end = np.maximum.accumulate(begin + long) if number else long
        first = (
            np.flatnonzero(np.concatenate(([True], begin[1:] > end[:-1])))
            if number
            else np.zeros(0, int)
        )
        last = np.append(first[1:], number)[: first.size] - 1
        return begin[first], end[last]

    def latencies(self, rng: Rng, start: Floats, duration: float) -> Floats:
        begin, end = self._freezes(rng, duration)
        at = np.searchsorted(begin, start, "right") - 1
        wait = np.where(at >= 0, end[at] - start, 0.0) if begin.size else np.zeros(start.size)
        return np.maximum(wait, 0.0) + self.service(rng, start.size)

    def _weighted(self, rng: Rng) -> tuple[Floats, Floats]:
        span = 60 / self.per_minute * 200_000
        begin, end = self._freezes(rng, span)
        long = end - begin
        frozen = float(long.sum()) / span
        # a random moment falls into long freezes more often
        chosen = rng.choice(long, self.draws, p=long / long.sum())
        values = self.service(rng, 2 * self.draws)
        values[: self.draws] += chosen * rng.random(self.draws)
        weights = np.repeat([frozen, 1 - frozen], self.draws) / self.draws
        return values, weights


@dataclass(frozen=True)
class Modes(World):
    """Two states by turns: as usual, and `slow` times slower, each of exponential length."""

    usual: float = 27.0
    bad: float = 3.0
    slow: float = 5.0

    def latencies(self, rng: Rng, start: Floats, duration: float) -> Floats:
        number = int(duration / (self.usual + self.bad) * 3 + 60)
        long = rng.exponential(np.tile([self.usual, self.bad], number))
        if rng.random() < self.bad / (self.usual + self.bad):
            long[0] = 0.0  # exponential times have no memory: the run begins in either state
        state = np.searchsorted(np.cumsum(long), start, "right") % 2
        return np.asarray(self.service(rng, start.size) * np.where(state == 1, self.slow, 1.0))

    def _weighted(self, rng: Rng) -> tuple[Floats, Floats]:
        values = self.service(rng, 2 * self.draws)
        values[: self.draws] *= self.slow
        share = self.bad / (self.usual + self.bad)
        return values, np.repeat([share, 1 - share], self.draws) / self.draws


@dataclass(frozen=True)
class Rhythm(World):
    """A sine of the latency's logarithm, of a period in seconds and a random phase."""

    period: float = 60.0
    swing: float = 0.5

    def latencies(self, rng: Rng, start: Floats, duration: float) -> Floats:
        phase = rng.random() * 2 * np.pi
        level = self.swing * np.sin(2 * np.pi * start / self.period + phase)
        return np.asarray(self.service(rng, start.size) * np.exp(level))

    def _values(self, rng: Rng) -> Floats:
        level = self.swing * np.sin(2 * np.pi * rng.random(self.draws))
        return self.service(rng, self.draws) * np.exp(level)


@dataclass(frozen=True)
class Pauses(World):
    """Short pauses at nearly regular moments, as of a garbage collector."""

    every: float = 5.0
    length: float = 0.1

    def latencies(self, rng: Rng, start: Floats, duration: float) -> Floats:
        number = int(2 * duration / self.every) + 50
        begin = np.cumsum(self.every * (0.5 + rng.random(number))) - 2 * self.every * rng.random()
        end = begin + self.length * np.exp(0.3 * rng.standard_normal(number))
        at = np.maximum(np.searchsorted(begin, start, "right") - 1, 0)
        wait = np.where(start >= begin[at], end[at] - start, 0.0)
        return np.maximum(wait, 0.0) + self.service(rng, start.size)

    def _values(self, rng: Rng) -> Floats:
        span = self.draws / self.rate
        return self.latencies(rng, np.sort(rng.random(self.draws)) * span, span)
