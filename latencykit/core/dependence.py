"""Confidence of shares and means of dependent requests, from the counts of successive time bins.

Slow requests come in company: a stall delays everybody who arrives meanwhile, load drifts. The
number of requests above a value is then far less certain than a binomial count. How uncertain it is
shows in sums over ever longer blocks of time: their variance grows until the blocks are longer than
the correlation (the long-run variance). A share y / n whose long-run variance is v is as sure as
one that m = y² / v independent events make up, and is bounded as such: m events that were seen
bound what was to be expected from both sides, as Poisson counts do.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from latencykit._typing import Flags, Floats, Ints


LEAST_EVENTS = 20
"""Independent events that bound a statistic from above; fewer are too uncertain."""

LEAST_BINS = 20
"""Time bins that show how requests depend on each other."""

_BLOCKS = 10  # the longest block is a tenth of the run
# from a quarter of the longest block on, the variance of independent blocks grows by chance alone
_GROWTH = 2.0
_FEW = 4.0  # events that have to lie above the upper end of an interval
_MOST_BINS = 1024
_DECAYS = 30  # of the correlation within a run: fewer show too little of it
# Of runs that are short for their correlation those pass the test in which it shows least. What
# their variance may hide is allowed for.
_LAGS, _SHOWN = 3, 1.6  # correlation over three lags, in standard errors of independent bins
_MANY_DECAYS, _HIDDEN = 1000, 1.5  # a run of fewer decays; times the variance
_MANY_EVENTS = 50  # with more of them, only runs of few decays hide variance
_FEW_DECAYS, _HIDDEN_SHARE = 100, 2.5  # the same for a single share
# Where events are hardly enough, a percentile is bounded in those runs whose variance came out too
# small, and these are the runs with too few slow requests.
_HARDLY_ENOUGH = 2 * LEAST_EVENTS
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
        return np.add.reduceat(table, np.arange(0, len(table), merged)) if merged > 1 else table

    @cached_property
    def _size(self) -> Floats:
        """Requests of each bin."""
        return np.asarray(self._bins.sum(axis=1))

    @cached_property
    def _edges(self) -> tuple[Floats, _LongRun]:
        """Share of the requests above each group but the last, and its long-run variance."""
        above = np.cumsum(self._bins[:, :0:-1], axis=1)[:, ::-1]
        share = above.sum(axis=0) / self._size.sum()
        residual = above - share * self._size[:, None]
        found = _long_run(residual)
        if not share.size or len(residual) < LEAST_BINS:
            return share, found
        # A drift shows most clearly at the median.
        decay = _decay(residual[:, int(np.abs(share - 0.5).argmin())])
        enough = decay * _DECAYS <= len(residual)
        lacking = _LACKING * min(decay, len(residual) / _DECAYS) / (len(residual) // _BLOCKS)
        bins = len(residual)
        products = [
            np.einsum("ij,ij->j", residual[lag:], residual[: bins - lag])
            for lag in range(_LAGS + 1)
        ]
        return share, replace(
            found,
            variance=found.variance / (1 - lacking),
            settled=found.settled & enough,
            correlated=sum(products[1:]) > _SHOWN * math.sqrt(_LAGS / bins) * products[0],
            decays=bins / max(decay, 1),
        )

    def _nearest(self, percentiles: ArrayLike) -> Ints:
        """The edge that each percentile is closest to."""
        level = -np.log(np.maximum(self._edges[0], 1e-300))  # ascends
        p = np.atleast_1d(np.asarray(percentiles, np.float64))
        wanted = -np.log(np.maximum(1 - p / 100, 1e-12))
        after = np.minimum(np.searchsorted(level, wanted), level.size - 1)
        before = np.maximum(after - 1, 0)
        nearer = np.where(wanted - level[before] <= np.abs(level[after] - wanted), before, after)
        return np.searchsorted(level, level[nearer])

    def resolved(self, percentiles: ArrayLike) -> Flags:
        """Return whether the run is long enough to show the dependence near each percentile.

        A drift shows most clearly at the median: one that is as slow as the run leaves no
        percentile.
        """
        p = np.atleast_1d(np.asarray(percentiles, np.float64))
        if len(self._bins) < LEAST_BINS:
            return np.zeros(p.shape, np.bool_)
        share, found = self._edges
        if not share.size:
            return np.ones(p.shape, np.bool_)
        middle = int(np.abs(share - 0.5).argmin())
        return np.asarray(found.settled[self._nearest(p)] & found.settled[middle])

    def events(self, percentiles: ArrayLike) -> Floats:
        """Return how many independent events are as uncertain as each percentile."""
        p = np.atleast_1d(np.asarray(percentiles, np.float64))
        if not self._events.size:
            return np.full(p.shape, self._size.sum())
        return self._events[self._nearest(p)]

    @cached_property
    def _events(self) -> Floats:
        """Independent events above each edge."""
        share, found = self._edges
        tail = share * self._size.sum()
        return np.asarray(tail**2 / np.maximum(found.variance, tail * (1 - share)))

    @property
    def spread_of_count(self) -> float:
        """Relative standard deviation of the number of requests; 0 if the run is too short."""
        if len(self._bins) < LEAST_BINS:
            return 0.0
        total = float(self._size.sum())
        return (
            math.sqrt(float(_long_run((self._size - total / len(self._size))[:, None]).variance[0]))
            / total
        )

    def _bound(
        self,
        end: float,
        few: float = _FEW,
        found: _LongRun | None = None,
        hides: float = _HIDDEN,
    ) -> Floats:
        """Bound of the share above each edge at one level; none above where events are few."""
        share, known = self._edges
        total = self._size.sum()
        tail, rest = share * total, (1 - share) * total
        if found is None:
            few = np.minimum(tail, rest) ** 2 < _MANY_EVENTS * known.variance
            enough = np.where(few, _MANY_DECAYS, _FEW_DECAYS)
            hidden = known.correlated & (known.decays <= enough)
            variance = np.where(hidden, hides, 1.0) * known.variance
            degrees = 1 + np.minimum(tail, rest) ** 2 / np.maximum(variance, tail * (1 - share)) / 2
            found = replace(known, variance=variance, degrees=np.minimum(known.degrees, degrees))
        variance = np.maximum(found.variance, tail * (1 - share))
        wider = variance * _student(abs(end), found.degrees) ** 2
        events, others = tail**2 / wider, rest**2 / wider
        if end <= 0:
            return np.minimum(share * _lower(events, -end), 1 - (1 - share) * _upper(others, -end))
        bound = np.maximum(share * _upper(events, end), 1 - (1 - share) * _lower(others, end))
        bound = np.maximum(bound, share + np.sqrt(wider) / total * (end + found.lean(end)))
        return np.where(events >= few, bound, np.inf)

    def levels(self, percentiles: ArrayLike, z: ArrayLike) -> Floats:
        """Return where in the sample each true percentile lies, at some levels of confidence.

        A value is above the percentile if the share above it is surely smaller than 1 − p, so the
        bounds of the shares are inverted at every edge, each with the events above that very edge.
        """
        p = np.atleast_1d(np.asarray(percentiles, np.float64))
        ends = np.atleast_1d(np.asarray(z, np.float64))
        share = self._edges[0]
        out = np.tile(np.where(ends > 0, 1.0, 0.0), (p.size, 1))
        if not share.size or len(self._bins) < LEAST_BINS:
            return out
        events = self._events[self._nearest(p)]
        # A percentile is bounded by what bounds a higher one.
        above = np.maximum.accumulate(self._events[::-1])[::-1][self._nearest(p)]
        hardly = (events >= LEAST_EVENTS) & (above < _HARDLY_ENOUGH)
        for k, end in enumerate(ends.tolist()):
            wanted = 1 - p / 100
            out[:, k] = _inverse(share, self._bound(end), wanted, end)
            if end > 0:
                if hardly.any():
                    careful = self._bound(end, hides=_HIDDEN_SHARE)
                    out[hardly, k] = _inverse(share, careful, wanted[hardly], end)
                out[events < LEAST_EVENTS, k] = 1.0
        return out

    def shifts(self, low: float, high: float, z: ArrayLike) -> Floats:
        """Return how far the mean between two ranks may differ from the sample, at some levels.

        A trimmed mean varies as the winsorized one does, over the share that is kept (Tukey and
        McLaughlin, 1963).
        """
        counts = self._bins.sum(axis=0)
        running = np.cumsum(counts) / counts.sum()
        first, last = (
            self.value[min(int(np.searchsorted(running, part - 1e-12)), running.size - 1)]
            for part in (low, high)
        )
        kept = np.clip(self.value, first, last)
        mean = float(counts @ kept / counts.sum())
        shift = mean * (self.factors(kept, z) - 1) / (high - low)
        return np.asarray(shift)

    def factors(self, value: ArrayLike, z: ArrayLike) -> Floats:
        """Return how far a mean may differ from that of the sample, at some levels."""
        ends = np.atleast_1d(np.asarray(z, np.float64))
        sums = self._bins @ np.asarray(value, np.float64)
        total = float(sums.sum())
        if len(self._bins) < LEAST_BINS:
            return np.full(ends.shape, np.nan)
        found = _long_run((sums - total / self._size.sum() * self._size)[:, None])
        if not (found.settled[0] and self.resolved([50.0])[0]):
            return np.full(ends.shape, np.nan)
        if total <= 0 or found.variance[0] <= 0:
            return np.ones(ends.shape)
        out = np.empty(ends.shape)
        for k, end in enumerate(ends.tolist()):
            events = total**2 / (found.variance * _student(abs(end), found.degrees) ** 2)
            if end > 0:
                leaning = 1 + (end + found.lean(end)) / np.sqrt(events)
                enough = total**2 / found.variance[0] >= LEAST_EVENTS
                out[k] = max(_upper(events, end)[0], leaning[0]) if enough else math.inf
            else:
                out[k] = _lower(events, -end)[0]
        return out


@record(eq=False)
class _LongRun:
    """Long-run variance of sums, its degrees of freedom, if it has settled, and skewness.

    Besides, whether neighbouring bins are correlated, and how many decays of it the run has.
    """

    variance: Floats
    degrees: Floats
    settled: Flags
    skewness: Floats
    correlated: Flags = field(default_factory=lambda: np.zeros(1, np.bool_))
    decays: float = math.inf

    def lean(self, z: float) -> Floats:
        """Standard errors by which skewness moves the upper end outwards.

        Where some dozen stalls are mixed with many other requests, their number decides (Hall,
        1992: the second term of Cornish and Fisher's expansion of Student's statistic).
        """
        return np.asarray((1 + 2 * z * z) / 6 * self.skewness)


def _long_run(residual: Floats) -> _LongRun:
    """Variance of column sums, from overlapping blocks of every length up to a tenth.

    The largest of them counts, and what the last doubling would add: blocks of n correlation times
    lack about 1/n of it.
    """
    n, columns = residual.shape
    if n < LEAST_BINS:
        return _LongRun(
            np.full(columns, np.inf),
            np.full(columns, 2.0),
            np.zeros(columns, np.bool_),
            np.zeros(columns),
        )
    longest = max(1, n // _BLOCKS)
    lengths = [1 << k for k in range(longest.bit_length())]
    lengths += [longest] if lengths[-1] < longest else []
    sums = np.concatenate((np.zeros((1, columns)), np.cumsum(residual, axis=0)))
    found, third = np.empty((len(lengths), columns)), np.empty((len(lengths), columns))
    for k, length in enumerate(lengths):
        blocks = sums[length:] - sums[:-length]
        squares = blocks * blocks
        found[k] = squares.sum(axis=0) / (n - length + 1) * n / length / (1 - length / n)
        third[k] = np.einsum("ij,ij->j", squares, blocks) / (n - length + 1) * n / length
    half, quarter = (
        max(k for k, length in enumerate(lengths) if length <= max(1, longest // part))
        for part in (2, 4)
    )
    grown = found[-1] + np.maximum(found[-1] - found[half], 0.0)
    clearest = np.asarray(lengths)[found.argmax(axis=0)]
    # overlapping blocks know as much as half as many again
    degrees = np.maximum(1.5 * n / clearest - 1, 2.0)
    variance = np.maximum(found.max(axis=0), grown)
    skewness = np.clip(third.max(axis=0), 0.0, None) / np.maximum(variance, 1e-200) ** 1.5
    return _LongRun(
        variance, degrees, found[-1] <= _GROWTH * found[quarter], np.minimum(skewness, 1.5)
    )


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


def _student(z: float, degrees: Floats) -> Floats:
    """Ratio of Student's quantile to the normal one (Cornish and Fisher)."""
    first = (z * z + 1) / 4
    second = (5 * z**4 + 16 * z * z + 3) / 96
    return np.asarray(1 + first / degrees + second / degrees**2)


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


def tail_groups(counts: ArrayLike, groups: int = 400) -> Ints:
    """Return a group for each bucket: some hundred groups, fine in the tails."""
    numbers = np.asarray(counts, np.float64)
    if numbers.size <= groups:
        return np.arange(numbers.size)
    share = (np.cumsum(numbers) - numbers / 2 + 0.25) / (numbers.sum() + 0.5)
    odds = np.log(share / (1 - share))
    width = (odds[-1] - odds[0]) / groups or 1.0
    group = np.minimum(np.floor((odds - odds[0]) / width), groups - 1)
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


@lru_cache(maxsize=64)
def normal_quantile(probability: float) -> float:
    """Return the normal quantile without scipy."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)
