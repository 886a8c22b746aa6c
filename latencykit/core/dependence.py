"""How many independent events dependent requests are worth, from the counts of time bins.

Slow requests come in company: a stall delays everybody who arrives meanwhile, load drifts. The
number of requests above a value is then far less certain than a binomial count. How uncertain it is
shows in sums over ever longer blocks of time: their variance grows until the blocks are longer than
the correlation (the long-run variance). A share y / n whose long-run variance is v is as sure as
one that m = y² / v independent events make up.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from latencykit._arrays import as_positions
from latencykit._records import record

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from latencykit._typing import Floats, Ints


LEAST_BINS = 20
"""Time bins that show how requests depend on each other."""

_BLOCKS = 10  # the longest block is a tenth of the run
_FEW = 4.0  # events that have to lie above the upper end of an interval
_MOST_BINS = 1024
_DECAYS = 30  # of the correlation within a run: fewer show too little of it
_LACKING = 1.5  # of the variance in blocks that are as long as a decay; longer ones lack less


@record(eq=False)
class Dependence:
    """Requests of successive time bins, counted in groups of ascending values."""

    table: Floats
    value: Floats

    @cached_property
    def _bins(self) -> Floats:
        """Bins that hold requests, neighbours put together where there are very many."""
        table = self.table[self.table.sum(axis=1) > 0]
        merged = math.ceil(len(table) / _MOST_BINS)
        return (
            np.add.reduceat(table, as_positions(np.arange(0, len(table), merged)))
            if merged > 1
            else table
        )

    @cached_property
    def _size(self) -> Floats:
        """Requests of each bin."""
        return np.asarray(self._bins.sum(axis=1))

    @cached_property
    def _edges(self) -> tuple[Floats, Floats]:
        """Share of the requests above each group but the last, and its long-run variance."""
        above = np.cumsum(self._bins[:, :0:-1], axis=1)[:, ::-1]
        share = above.sum(axis=0) / self._size.sum()
        residual = above - share * self._size[:, None]
        variance = _long_run(residual)
        if share.size and len(residual) >= LEAST_BINS:
            # A drift shows most clearly at the median.
            decay = _decay(residual[:, int(np.abs(share - 0.5).argmin())])
            shortest = min(decay, len(residual) / _DECAYS)
            variance = variance / (1 - _LACKING * shortest / (len(residual) // _BLOCKS))
        return share, variance

    def _nearest(self, percentiles: ArrayLike) -> Ints:
        """The edge that each percentile is closest to."""
        level = -np.log(np.maximum(self._edges[0], 1e-300))  # ascends
        p = np.atleast_1d(np.asarray(percentiles, np.float64))
        wanted = -np.log(np.maximum(1 - p / 100, 1e-12))
        after = np.minimum(np.searchsorted(level, wanted), level.size - 1)
        before = np.maximum(after - 1, 0)
        nearer = np.where(wanted - level[before] <= np.abs(level[after] - wanted), before, after)
        return np.searchsorted(level, level[nearer])

    def events(self, percentiles: ArrayLike) -> Floats:
        """Return how many independent events are as uncertain as each percentile."""
        p = np.atleast_1d(np.asarray(percentiles, np.float64))
        if not self._events.size:
            return np.full(p.shape, self._size.sum())
        return self._events[self._nearest(p)]

    @cached_property
    def _events(self) -> Floats:
        """Independent events above each edge."""
        share, variance = self._edges
        tail = share * self._size.sum()
        return np.asarray(tail**2 / np.maximum(variance, tail * (1 - share)))

    @property
    def spread_of_count(self) -> float:
        """Relative standard deviation of the number of requests; 0 if the run is too short."""
        if len(self._bins) < LEAST_BINS:
            return 0.0
        total = float(self._size.sum())
        residual = (self._size - total / len(self._size))[:, None]
        return math.sqrt(float(_long_run(residual)[0])) / total


def _long_run(residual: Floats) -> Floats:
    """Variance of column sums, from overlapping blocks of every length up to a tenth.

    The largest of them counts, and what the last doubling would add: blocks of n correlation times
    lack about 1/n of it.
    """
    n, columns = residual.shape
    if n < LEAST_BINS:
        return np.full(columns, np.inf)
    longest = max(1, n // _BLOCKS)
    lengths = [1 << k for k in range(longest.bit_length())]
    lengths += [longest] if lengths[-1] < longest else []
    sums = np.concatenate((np.zeros((1, columns)), np.cumsum(residual, axis=0)))
    found = np.empty((len(lengths), columns))
    for k, length in enumerate(lengths):
        blocks = sums[length:] - sums[:-length]
        squares = (blocks * blocks).sum(axis=0)
        found[k] = squares / (n - length + 1) * n / length / (1 - length / n)
    half = max(k for k, length in enumerate(lengths) if length <= max(1, longest // 2))
    grown = found[-1] + np.maximum(found[-1] - found[half], 0.0)
    return np.asarray(np.maximum(found.max(axis=0), grown))


def _decay(residual: Floats) -> int:
    """Bins in which the correlation falls to 1/e of that between neighbours.

    Taking the mean out of n bins lowers every correlation by about (1 + 2 t)/n (Kendall, 1954).
    """
    n = residual.size
    products = np.fft.irfft(np.abs(np.fft.rfft(residual, 2 * n)) ** 2)[:n]
    if not products[1] > products[0] / math.sqrt(n):
        return 0
    length = 0
    for _ in range(3):
        correlation = products / products[0] + (1 + 2 * length) / n
        low = np.flatnonzero(correlation < correlation[1] / math.e)
        length = int(low[0]) if low.size else n
    return length


def _inverse(share: Floats, bound: Floats, wanted: Floats, end: float) -> Floats:
    """Levels at which the bound of the share above falls to what is wanted; 1 where it does not."""
    falling = np.minimum.accumulate(np.concatenate(([1.0], bound)))
    inside = np.flatnonzero(np.isfinite(falling))
    padded = np.concatenate(([1.0], share))
    level = 1 - np.interp(wanted, falling[inside][::-1], padded[inside][::-1])
    if end <= 0:
        return np.asarray(level)
    return np.where((wanted >= falling[inside[-1]]) & (wanted > 0), level, 1.0)


def _upper(events: Floats, z: float) -> Floats:
    """Upper bound of a count, as a factor: chi-squared, 2 m + 2 degrees (Wilson and Hilferty)."""
    degrees = 2 * events + 2
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(
            degrees * (1 - 2 / (9 * degrees) + z * np.sqrt(2 / (9 * degrees))) ** 3 / (2 * events)
        )


def _lower(events: Floats, z: float) -> Floats:
    """The least that a count can mean, as a factor: a chi-squared quantile of 2 m degrees."""
    degrees = np.maximum(2 * events, 1e-9)
    return np.asarray(np.maximum(1 - 2 / (9 * degrees) - z * np.sqrt(2 / (9 * degrees)), 0.0) ** 3)


def levels_in_company(percentiles: ArrayLike, z: ArrayLike, total: int, company: float) -> Floats:
    """Return where each true percentile lies if slow requests come in groups of a known size."""
    wanted = 1 - np.atleast_1d(np.asarray(percentiles, np.float64)) / 100
    share = np.geomspace(1.0, 1 / (2 * total), 4000)
    # Of a binomial count, in groups: both sides of an edge have the same variance.
    variance = company * total * share * np.maximum(1 - share, 0.1)
    events, others = (share * total) ** 2 / variance, ((1 - share) * total) ** 2 / variance
    out = np.empty((wanted.size, np.size(z)))
    for k, end in enumerate(np.atleast_1d(np.asarray(z, np.float64)).tolist()):
        if end > 0:
            bound = np.where(events >= _FEW, share * _upper(events, end), np.inf)
        else:
            bound = np.minimum(
                share * _lower(events, -end),
                1 - (1 - share) * _upper(np.maximum(others, 1e-9), -end),
            )
        out[:, k] = _inverse(share, bound, wanted, end)
    return out
