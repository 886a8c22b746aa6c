"""Users who wait for many calls: what the slowest of n is like, and which percentile of one call that rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from latencykit.buckets import EdgeBuckets
from latencykit.distribution import Distribution
from latencykit.errors import NotHeldError, UsageError
from latencykit.histogram import PercentileRow, histogram_of
from latencykit.histogram.lookup import brackets_at
from latencykit.log import HistogramLog
from latencykit.samples import Samples
from latencykit.stats.events import tail_counts, tail_shares
from latencykit.stats.fanout import by_interval, leaf_percentile, probabilities, quorum, slowest, survival
from latencykit.stats.hedge import hedged, hedged_by_interval
from latencykit.stats.percentiles import is_resolved
from latencykit.stats.quantiles import highest_supported_percentile, running_sums
from latencykit.stats.sums import Leg, sum_of
from latencykit.units import NANOSECONDS, format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.blocks import Block
    from latencykit.buckets import Buckets
    from latencykit.histogram import Histogram

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["FanOut", "fan_out", "fan_outs", "in_series"]

_CROWD = 3
"""Requests that an interval holds for each call that is drawn from it; of fewer the slowest would look too fast."""

_SHARES = (50.0, 90.0, 99.0, 99.9)


@dataclass(frozen=True, eq=False)
class FanOut:
    """What users meet who make `n` calls.

    Attributes
    ----------
    n : int
    model : {"mixture", "independent"}
        Calls of one user fall into one interval of the log, or are independent.
    distribution : Distribution
        How long the users wait.
    leaf : Histogram
        One call.
    above : mapping of float to float
        Percentile of one call → share (0..1) of users who wait longer than that.
    quorum : int or None
        They wait for so many of the n calls only.
    interval : float or None
        Seconds of an interval of the mixture.
    added_load : float
        Share of calls that a hedge sends twice.
    in_series : bool
        The calls come one after the other.
    note : str
        What there is to know of the model.
    fastest : Distribution or None
        How long they wait at least, where the buckets of `distribution` do not say that.
    above_between : mapping of float to two floats
        What the shares of `above` lie between, where the buckets of one call leave them open.
    correlation : float
        Share of cases in which all calls are as slow as one.
    """

    n: int
    model: Literal["mixture", "independent"]
    distribution: Distribution
    leaf: Histogram
    above: dict[float, float]
    quorum: int | None = None
    interval: float | None = None
    added_load: float = 0.0
    in_series: bool = False
    note: str = ""
    fastest: Distribution | None = None
    above_between: dict[float, tuple[float, float]] = field(default_factory=dict)
    correlation: float = 0.0

    def row(self, percentile: float, confidence: float = 0.95) -> PercentileRow:
        """Return a percentile of the users with what the buckets of one call pin it down between, and no interval."""
        low, high = self.distribution.bracket(percentile)
        value = float(self.distribution.percentile(percentile))
        if self.model == "independent" and not (self.added_load or self.correlation or self.in_series):
            found, lows, highs, _ = brackets_at(self.leaf, np.array([self.leaf_percentile(percentile)]))
            value, low, high = float(found[0]), float(lows[0]), float(highs[0])
        elif self.fastest is not None:
            low = min(self.fastest.bracket(percentile)[0], value)
        known, sure = bool(is_resolved(low, high)), self.supported(percentile, confidence)
        return PercentileRow(percentile, value, math.nan, math.inf, low, high, known, sure)

    def leaf_percentile(self, percentile: float) -> float:
        """Return the percentile of one call that this percentile of the users rests on, if calls were independent."""
        return float(leaf_percentile(percentile, self.n, self.quorum))

    def supported(self, percentile: float, confidence: float = 0.95) -> bool:
        """Return whether the sample of single calls is large enough for this percentile of the users."""
        counted = self.leaf.count + self.leaf.censored
        if percentile >= 100 or self.distribution.at_least(percentile):
            return False
        if self.in_series:  # so many calls are that many fewer whole sequences
            return percentile <= highest_supported_percentile(counted // self.n, confidence)
        value = float(self.distribution.percentile(percentile))
        below = int(self.leaf.counts[self.leaf.buckets.high(self.leaf.index) < value].sum())
        rests_on = self.leaf_percentile(percentile) if self.model == "independent" and not self.added_load else 0.0
        return max(rests_on, 100.0 * below / counted) <= self.leaf.sample_limit(confidence)


@overload
def fan_out(
    rung: Any,
    n: int,
    *,
    independent: bool = ...,
    quorum: int | None = ...,
    hedge_after: float | None = ...,
    correlation: float = ...,
) -> Distribution: ...
@overload
def fan_out(
    rung: Any,
    n: Sequence[int],
    *,
    independent: bool = ...,
    quorum: int | None = ...,
    hedge_after: float | None = ...,
    correlation: float = ...,
) -> list[Distribution]: ...
def fan_out(
    rung: Any, n: int | Sequence[int], *, independent: bool = False, quorum: int | None = None, hedge_after: float | None = None,
    correlation: float = 0.0,
) -> Distribution | list[Distribution]:  # fmt: skip
    """Return the distribution of the slowest of `n` calls.

    Parameters
    ----------
    rung : HistogramLog, Samples or Histogram
        One call. Of a log (or of samples with start times) the calls of one user fall into one interval, and the
        intervals are mixed as their requests weigh: in a stall all calls are slow together.
    n : int, or sequence of int
        Several are answered in one pass, and give a list.
    independent : bool, default False
        Take calls as independent of each other, as must be where no time is known: the other bound.
    quorum : int, optional
        Users wait for the so many fastest calls only.
    hedge_after : float, optional
        Percentile of one call after which a second one is sent; the faster of the two counts.
    correlation : float, default 0
        For independent calls: share (0..1) of cases in which all are as slow as one.

    Returns
    -------
    Distribution, or list of Distribution

    Raises
    ------
    NotHeldError
        For a summary, which holds no distribution.
    UsageError
        For impossible numbers.

    Examples
    --------
    >>> from latencykit.histogram import Histogram
    >>> one = Histogram.of([1_000_000] * 99 + [900_000_000])
    >>> users = fan_out(one, 100)
    >>> round(users.share_above(1_000_447), 3), users.percentile(50) > 8e8
    (0.634, True)
    """
    options: dict[str, Any] = {
        "independent": independent, "quorum": quorum, "hedge_after": hedge_after, "correlation": correlation,
    }  # fmt: skip
    found = fan_outs(rung, [n] if isinstance(n, int | np.integer) else n, **options)
    return found[0].distribution if isinstance(n, int | np.integer) else [one.distribution for one in found]


def fan_outs(
    rung: Any, numbers: Sequence[int], *, independent: bool = False, quorum: int | None = None,
    hedge_after: float | None = None, correlation: float = 0.0, shares: Sequence[float] = _SHARES,
) -> list[FanOut]:  # fmt: skip
    """Return what `fan_out` gives, with how far it is supported and how many users fare worse; see there.

    Parameters
    ----------
    rung, numbers, independent, quorum, hedge_after, correlation
        See `fan_out`.
    shares : sequence of float
        Percentiles of one call for which to tell how many users fare worse.

    Returns
    -------
    list of FanOut
        In the order of `numbers`.
    """
    _checked(numbers, quorum, correlation)
    leaf = histogram_of(rung, "a fan-out")
    hedge = None if hedge_after is None else float(leaf.percentile(float(hedge_after)))
    log = None if independent else _log_of(rung)
    if log is not None and correlation:
        raise UsageError("a log knows how slow calls go together; a correlation is for independent calls (independent=True)")
    if leaf.censored:  # nobody says when
        log = None
    if log is None:
        return [_independent(leaf, n, quorum, hedge, correlation, shares) for n in numbers]
    return _mixtures(log, leaf, numbers, quorum, hedge, shares)


def _checked(numbers: Sequence[int], k: int | None, correlation: float) -> None:
    if not len(numbers):
        raise UsageError("a fan-out needs a number of calls, such as 100")
    for n in numbers:
        if n < 1:
            raise UsageError(f"a fan-out must be at least 1, not {n}")
        if k is not None and not 1 <= k <= n:
            raise UsageError(f"a quorum of {k} of {n} calls is impossible; it must be from 1 to {n}")
    if not 0 <= correlation <= 1:
        raise UsageError(f"a correlation must be between 0 and 1, not {correlation}")


def _log_of(rung: Any) -> HistogramLog | None:
    """The intervals of what knows time, of all tags together; None of what does not."""
    if isinstance(rung, Samples):
        rung = rung.to_log("1s", by_start=True) if rung.start is not None and rung.good.any() else None
    if not isinstance(rung, HistogramLog):
        return None
    log = rung.to_unit("ns") if rung.unit in NANOSECONDS else rung
    return log.retagged("").resample(float(np.median(log.lengths)) or 1.0) if len(log.tags) > 1 else log


# ---------------------------------------------------------------- independent calls


def _edges(leaf: Histogram) -> tuple[Floats, Floats, Floats]:
    """Low and high edges and survival of one call; censored values stand where they are at least."""
    best = leaf.counted.at_best()
    high = np.where(np.isinf(best.high), best.low, best.high)
    return np.minimum(best.low, high), high, survival(best.counts)


def _model(leaf: Histogram, low: Floats, high: Floats, above: Floats) -> Distribution:
    held = probabilities(above)
    found = np.flatnonzero(held > 0)
    chances = held[found] / held[found].sum()
    bound = leaf.censored_at if leaf.censored else math.inf
    return Distribution(EdgeBuckets(low, high), found, chances, leaf.unit, leaf.run, bound)


def _independent(
    leaf: Histogram, n: int, k: int | None, hedge: float | None, correlation: float, shares: Sequence[float]
) -> FanOut:
    low, high, above = _edges(leaf)

    def of_all(one: Floats) -> Floats:
        return slowest(one, n, correlation) if k is None else _correlated(quorum(one, k, n), one, correlation)

    added, fastest = 0.0, None
    if hedge is not None:
        pair, quick = hedged(high, above, hedge), hedged(_ascending(low), above, _least_delay(leaf, hedge))
        low, high, above, added = np.append(0.0, pair.values[:-1]), pair.values, pair.survival, pair.added_load
        fastest = _model(leaf, quick.values, quick.values, of_all(quick.survival))
    found = _model(leaf, low, high, of_all(above))
    if hedge is None:
        rest = 1.0 - np.asarray(shares) / 100.0
        exact = slowest(rest, n, correlation) if k is None else _correlated(quorum(rest, k, n), rest, correlation)
        worse = dict(zip(shares, exact.tolist(), strict=True))
    else:
        worse = {p: found.share_above(float(leaf.percentile(p))) for p in shares}
    between = {} if fastest is None else _between(leaf, fastest, found, shares)
    return FanOut(
        n, "independent", found, leaf, worse, k, added_load=added, fastest=fastest, above_between=between, correlation=correlation
    )


def _ascending(low: Floats) -> Floats:
    """Lower edges that ascend, none of them higher than it was: buckets may overlap."""
    return np.asarray(np.minimum.accumulate(low[::-1])[::-1])


def _least_delay(leaf: Histogram, hedge: float) -> float:
    """The least that the delay of a hedge can be, which is a percentile of one call."""
    edges = leaf.counted.low[leaf.counted.high >= hedge]
    return float(min(edges[0], hedge)) if edges.size else hedge


def _between(leaf: Histogram, fastest: Distribution, slowest: Distribution, shares: Sequence[float]) -> dict[float, Any]:
    """Bounds of the shares of users who wait longer than percentiles of one call."""
    _, low, high, _ = brackets_at(leaf, np.asarray(shares, np.float64))
    ends = zip(shares, low.tolist(), high.tolist(), strict=True)
    return {p: (fastest.share_above(top), slowest.share_above(bottom)) for p, bottom, top in ends}


def _correlated(apart: Floats, together: Floats, correlation: float) -> Floats:
    return (1 - correlation) * apart + correlation * together


# ---------------------------------------------------------------- calls that share an interval


def _mixtures(
    log: HistogramLog, leaf: Histogram, numbers: Sequence[int], k: int | None, hedge: float | None, shares: Sequence[float]
) -> list[FanOut]:
    """One pass a width of the intervals; most fan-outs share one."""
    sizes = log.series_fold()
    log.scan(sizes)
    crowd = float(np.median(sizes.count[sizes.count > 0])) if sizes.count.any() else 1.0
    typical = float(np.median(log.lengths)) or 1.0
    wide = {n: math.ceil(_CROWD * n / crowd) if n > 1 else 1 for n in numbers}
    found: dict[int, FanOut] = {}
    for factor in sorted(set(wide.values())):
        mine = [n for n in dict.fromkeys(numbers) if wide[n] == factor]
        view = log if factor == 1 else log.resample(factor * typical)
        if factor > 1 and len(view) < 2:
            why = f"its intervals hold {crowd:,.0f} requests each: too few to draw so many calls from one; taken as independent"
            found |= {n: replace(_independent(leaf, n, k, hedge, 0.0, shares), note=why) for n in mine}
            continue
        folds = [_MixtureFold(leaf, n, k, hedge, shares) for n in mine]
        view.scan(*folds)
        width = factor * typical
        why = "" if factor == 1 else f"mixed over {format_duration(width * 1e9)}, so that each holds {_CROWD} requests a call"
        found |= {n: replace(fold.result(), interval=width, note=why) for n, fold in zip(mine, folds, strict=True)}
    return [found[n] for n in numbers]


class _MixtureFold:
    """Adds up, interval by interval, how slow the slowest of n calls is."""

    def __init__(self, leaf: Histogram, n: int, k: int | None, hedge: float | None, shares: Sequence[float]) -> None:
        self.leaf, self.n, self.k, self.hedge, self.shares = leaf, n, k, hedge, tuple(shares)
        self.high = leaf.buckets.high(leaf.index)
        self._cut, self._part = tail_shares(leaf.counts, self.shares)
        self.low = _ascending(leaf.buckets.low(leaf.index))
        self._bounds = np.zeros((2, len(self.shares)))
        self._quick: tuple[Floats, Floats] | None = None
        self._places: dict[Buckets, Ints] = {}
        self._mass = np.zeros(self.high.size)
        self._hedged: tuple[Floats, Floats] | None = None
        self._worse, self._total = np.zeros(len(self.shares)), 0.0

    def add(self, block: Block) -> None:
        """Take a block in."""
        if not block.counts.size:
            return
        index = self._place_of(block)
        if self.hedge is None:
            self._mass += by_interval(block.indptr, index, block.counts, self.n, self.high.size, self.k, total=1)
        else:
            values, above = hedged_by_interval(block.indptr, index, block.counts, self.high, self.hedge, self.n, self.k)
            self._hedged = (values, above + (0.0 if self._hedged is None else self._hedged[1]))
            delay = _least_delay(self.leaf, self.hedge)
            values, above = hedged_by_interval(block.indptr, index, block.counts, self.low, delay, self.n, self.k)
            self._quick = (values, above + (0.0 if self._quick is None else self._quick[1]))
        sizes = np.diff(running_sums(block.counts)[block.indptr]).astype(np.float64)
        held, cut = sizes > 0, self._cut
        sizes = sizes[held]
        # None, or all, of the requests in the bucket that a percentile cuts may be the slower ones of an interval.
        tails = (
            tail_counts(block.indptr, index, block.counts, cut, part)[held]
            for part in (self._part, 0.0 * self._part, 0.0 * self._part + 1)
        )
        for k, tail in enumerate(tails):
            share = np.minimum(tail / sizes[:, None], 1.0)
            slow = sizes @ (slowest(share, self.n) if self.k is None else quorum(share, self.k, self.n))
            if k:
                self._bounds[k - 1] += slow
            else:
                self._worse += slow
        self._total += float(sizes.sum())

    def _place_of(self, block: Block) -> Ints:
        """Where each entry lies in the buckets of all: of several layouts, where its highest value lies."""
        places, top = self._places.get(block.buckets), int(block.index.max()) + 1
        if places is None or places.size < top:
            highs = block.buckets.high(np.arange(top))
            found = np.searchsorted(self.high * (1 + 1e-12), highs, "left")
            places = self._places[block.buckets] = np.minimum(found, self.high.size - 1)
        return places[block.index]

    def result(self) -> FanOut:
        """Return what the blocks add up to."""
        leaf, lows = self.leaf, self.leaf.buckets.low(self.leaf.index)
        if self._hedged is not None:
            values, above = self._hedged[0], self._hedged[1] / self._total
            found = _model(leaf, np.append(0.0, values[:-1]), values, above)
            worse = {p: found.share_above(float(leaf.percentile(p))) for p in self.shares}
            added = leaf.count_above(self.hedge or 0.0) / (leaf.count + leaf.censored)
            assert self._quick is not None
            fastest = _model(leaf, self._quick[0], self._quick[0], self._quick[1] / self._total)
            between = _between(leaf, fastest, found, self.shares)
            return FanOut(self.n, "mixture", found, leaf, worse, self.k, added_load=added, fastest=fastest, above_between=between)
        above = np.maximum(1.0 - np.cumsum(self._mass) / self._mass.sum(), 0.0)
        worse = dict(zip(self.shares, (self._worse / self._total).tolist(), strict=True))
        between = (
            {} if self.n == 1 else dict(zip(self.shares, zip(*(self._bounds / self._total).tolist(), strict=True), strict=True))
        )
        return FanOut(self.n, "mixture", _model(leaf, lows, self.high, above), leaf, worse, self.k, above_between=between)


# ---------------------------------------------------------------- one after the other


def in_series(rung: Any, n: int, step: float | None = None) -> FanOut:
    """Return the time that `n` independent calls take one after the other.

    Parameters
    ----------
    rung : HistogramLog, Samples or Histogram
        One call.
    n : int
    step : float, optional
        Width of the bins in which sums are counted; see `latencykit.stats.sums.sum_of`.

    Returns
    -------
    FanOut
        Its distribution's buckets reach from the fastest that a sum can be to the slowest.

    Examples
    --------
    >>> from latencykit.histogram import Histogram
    >>> users = in_series(Histogram.of([1000, 3000]), 2)
    >>> [round(v, -2) for v in users.distribution.percentile([25, 75, 100]).tolist()]
    [2000.0, 4000.0, 6000.0]
    """
    if n < 1:
        raise UsageError(f"a sequence has at least 1 call, not {n}")
    leaf = histogram_of(rung, "a sum")
    if leaf.censored:
        raise NotHeldError(
            f"{leaf.censored:,} values are known only to be at least {leaf.censored_at:g} {leaf.unit}: a sum of them is unknown"
        )
    chances = leaf.counts / leaf.count
    sums = sum_of([Leg(leaf.buckets.low(leaf.index), leaf.buckets.high(leaf.index), chances, n)], step)
    index = np.flatnonzero(sums.slow)
    high = index * sums.step
    least, _ = sums.quantile(np.minimum(np.cumsum(sums.slow[index]), 1.0))
    buckets = EdgeBuckets(np.minimum(least, high), high)
    chances = sums.slow[index] / sums.slow[index].sum()
    found = Distribution(buckets, np.arange(index.size), chances, leaf.unit, leaf.run)
    worse = {p: found.share_above(float(leaf.percentile(p))) for p in _SHARES}
    _, lows, highs, _ = brackets_at(leaf, np.asarray(_SHARES))
    surely = (float(found.probabilities[buckets.lows > edge].sum()) for edge in highs.tolist())
    between = dict(zip(_SHARES, zip(surely, map(found.share_above, lows.tolist()), strict=True), strict=True))
    return FanOut(n, "independent", found, leaf, worse, in_series=True, above_between=between)
