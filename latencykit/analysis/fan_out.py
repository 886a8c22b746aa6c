"""`fan_out` and `sequential`: the latency of users who wait for many calls, from that of one.

The mathematics works on survival functions over ascending buckets: ``survival[k]`` is the
probability of a value above bucket k. Tails keep their precision that way, where a distribution
function runs into 1.

Calls are not independent: in a stall all calls are slow together, which makes the slowest of n
*less* often slow. A log shows when, so its intervals are mixed (`Within`); samples show which
requests follow each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from latencykit import errors, units
from latencykit._arrays import as_positions
from latencykit._records import record
from latencykit._text import format_items
from latencykit._typing import AnyArray, Floats, Ints, PathOrFrame
from latencykit.analysis.given import as_data
from latencykit.core import Data
from latencykit.core.blocks import Block
from latencykit.core.buckets import Buckets, EdgeBuckets
from latencykit.core.distribution import Distribution
from latencykit.core.evidence import Evidence, tail_counts, tail_shares
from latencykit.core.histogram import Histogram, histogram_of
from latencykit.core.histogram_log import HistogramLog, in_succession, interval_series, scan
from latencykit.core.jackknife import Jackknife
from latencykit.core.percentile_rows import (
    PercentileRow,
    bounds_at,
    percentile_frame,
    rows_of,
    stated_range,
)
from latencykit.core.quantiles import (
    LEAST_ABOVE,
    highest_supported_percentile,
    is_resolved,
    median,
    running_sums,
)
from latencykit.core.repr_html import listing_html
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary

if TYPE_CHECKING:
    import pandas as pd


def survival(counts: ArrayLike) -> Floats:
    """Return the share of values above each bucket, float64, shape (buckets,)."""
    numbers = np.asarray(counts, np.int64)
    running = np.cumsum(numbers)
    return np.asarray((running[-1] - running) / running[-1])


def probabilities(above: ArrayLike) -> Floats:
    """Return the probability of each bucket from its survival function."""
    return -np.diff(np.asarray(above, np.float64), prepend=1.0)


def slowest(above: ArrayLike, n: int, k: int | None = None) -> Floats:
    """Return the survival function of the slowest of `n` calls, or of the k-th fastest."""
    if k is not None:
        return quorum(above, k, n)
    _check(n)
    return _any_of(above, n)


def quorum(above: ArrayLike, k: int, n: int) -> Floats:
    """Return the survival function of the k-th fastest of `n` calls."""
    # At least k of n are within x with probability I(F; k, n − k + 1), the regularised incomplete
    # beta function.
    from scipy import special

    _check(n, k)
    return np.asarray(special.betainc(n - k + 1, k, np.asarray(above, np.float64)))


class Within:
    """Survival within each interval of a block, which serves any number of calls."""

    def __init__(self, indptr: Ints, index: Ints, counts: Ints, total: int) -> None:
        running, lengths = running_sums(counts), np.diff(indptr)
        number = np.repeat(np.diff(running[indptr]), as_positions(lengths))
        self._above = (np.repeat(running[indptr[1:]], as_positions(lengths)) - running[1:]) / number
        self._log = _log_below(self._above)
        self._first, self._index, self._weight = indptr[:-1][lengths > 0], index, number / total

    def mixed(self, n: int, size: int, k: int | None = None) -> Floats:
        """Return the distribution of the slowest of `n` calls in one interval, mixed."""
        slow = -np.expm1(n * self._log) if k is None else quorum(self._above, k, n)
        before = np.empty_like(slow)
        before[1:] = slow[:-1]
        before[self._first] = 1.0
        before -= slow
        before *= self._weight
        return np.bincount(self._index, before, size).astype(np.float64)


def probability_of_slow(percentile: ArrayLike, n: ArrayLike) -> Floats:
    """Return the probability that at least one of `n` calls exceeds the percentile of one."""
    # `n` is the calls of a whole session where users open several pages.
    return np.asarray(_any_of(1.0 - np.asarray(percentile, np.float64) / 100.0, n))


def landing_percentile(percentile: ArrayLike, n: ArrayLike) -> Floats:
    """Return the users' percentile at which a percentile of one call lands: ``100 qⁿ``."""
    return np.asarray(100.0 * (np.asarray(percentile, np.float64) / 100.0) ** np.asarray(n))


def leaf_percentile(percentile: ArrayLike, n: int, k: int | None = None) -> Floats:
    """Return the percentile of one call behind a percentile of the users: ``100 q^(1/n)``."""
    _check(n)
    q = np.asarray(percentile, np.float64) / 100.0
    if k is None or k == n:
        return np.asarray(100.0 * q ** (1.0 / n))
    from scipy import special

    return np.asarray(100.0 * special.betaincinv(k, n - k + 1, q))


def samples_needed(percentile: float) -> int:
    """Return how many independent values it takes to support a percentile: ten lie above it."""
    if not 0 <= percentile < 100:
        raise errors.InvalidArgumentError(
            f"no sample bounds p{percentile:g}; a percentile from 0 to below 100 can be bounded"
        )
    return math.ceil(LEAST_ABOVE / (1 - percentile / 100) * (1 - 1e-12))


def _any_of(above: ArrayLike, n: ArrayLike) -> Floats:
    """``1 − (1 − S)ⁿ`` without loss where S is tiny."""
    return np.asarray(-np.expm1(np.asarray(n) * _log_below(above)))


def _log_below(above: ArrayLike) -> Floats:
    """``log(1 − S)``."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(-np.asarray(above, np.float64)))


def _check(n: int, k: int | None = None) -> None:
    errors.require(n, (int, float, np.number), "a number of calls")
    if n < 1:
        raise errors.InvalidArgumentError(f"a fan-out must be at least 1, not {n}")
    if k is not None and not 1 <= k <= n:
        raise errors.InvalidArgumentError(
            f"a quorum of {k} of {n} calls is impossible; it must be from 1 to {n}"
        )


# ------------------------------------------------------------
# Hedged requests: send a second request if the first has no answer in time; and what that costs.

_CELLS = 400_000  # intervals × values held at once


@record(eq=False)
class Hedged:
    """Latency with a hedge, and its price."""

    delay: float  # after which the second request is sent, in the unit of the values
    added_load: float  # share of requests (0..1) that are sent twice
    values: Floats  # ascending
    survival: Floats  # probability of a latency above each value


def hedged(high: Floats, above: Floats, delay: float, shared: float = 0.0) -> Hedged:
    """Return the latency of the first answer of two if a second request is sent after `delay`."""
    # It is min(X, d + Y), whose survival function is S(t) before d and S(t) S(t − d) from there on.
    # Between two buckets the value above is taken.
    if not delay >= 0:
        raise errors.InvalidArgumentError(
            f"a hedge cannot be sent {delay} after its request; the delay must be 0 or more"
        )
    if not 0 <= shared <= 1:
        raise errors.InvalidArgumentError(
            f"the shared part of slowness must be between 0 and 1, not {shared}"
        )
    values = np.unique(np.concatenate((high, high + delay, [delay])))
    first, second = _at(high, above, values), _at(high, above, values - delay)
    later = np.where(values < delay, 1.0, second)
    together = first * ((1 - shared) * later + shared)
    return Hedged(delay, float(_at(high, above, np.array([delay]))[0]), values, together)


def hedged_by_interval(
    indptr: Ints,
    index: Ints,
    counts: Ints,
    high: Floats,
    delay: float,
    n: int,
    k: int | None = None,
) -> tuple[Floats, Floats]:
    """Return the survival of the slowest of `n` hedged calls, summed over the intervals."""
    values = np.unique(np.concatenate((high, high + delay, [delay])))
    now, later = (np.searchsorted(high, at, "right") for at in (values, values - delay))
    total, rows = np.zeros(values.size), indptr.size - 1
    for first in range(0, rows, step := max(1, _CELLS // values.size)):
        last = min(rows, first + step)
        entries = slice(int(indptr[first]), int(indptr[last]))
        row = np.repeat(np.arange(last - first), as_positions(np.diff(indptr[first : last + 1])))
        flat = np.bincount(
            row * high.size + index[entries], counts[entries], (last - first) * high.size
        )
        table = flat.reshape(last - first, high.size)
        sizes = table.sum(axis=1)
        table, sizes = table[sizes > 0], sizes[sizes > 0]
        above = np.ones((sizes.size, high.size + 1))
        above[:, 1:] = np.maximum(1.0 - np.cumsum(table, axis=1) / sizes[:, None], 0.0)
        above[:, -1] = 0.0
        pair = above[:, now] * np.where(values < delay, 1.0, above[:, later])
        total += sizes @ slowest(pair, n, k)
    return values, total


def _at(high: Floats, above: Floats, values: Floats) -> Floats:
    """Survival at any value: that of the last bucket wholly at or below it."""
    return np.concatenate(([1.0], above))[np.searchsorted(high, values, "right")]


# ------------------------------------------------------------
# Users who wait for many calls: the slowest of n, and the percentile of one call behind it.

_CROWD = 3
"""Requests per interval for each call drawn from it: with fewer the slowest would look too fast."""

_SHARES = (50.0, 90.0, 99.0, 99.9)


@record(eq=False, kw_only=True)
class FanOut(Distribution):
    """The latency of users who make `n` calls: a distribution that knows the calls it is made of.

    Made by `fan_out` and `sequential`.

    Attributes
    ----------
    n : int
    model : {"mixture", "independent"}
        Calls of one user fall into one interval of the log, or are independent.
    leaf : Histogram
        Latency of one call.
    above : mapping of float to float
        Percentile of one call → share (0..1) of users with a higher latency.
    quorum : int or None
        Users wait for that number of the n calls only.
    interval : float or None
        Seconds of an interval of the mixture.
    added_load : float
        Share of calls that a hedge sends twice.
    sequential : bool
        The calls are made one after the other.
    note : str
        A remark on the model.
    fastest : Distribution or None
        Lower bound of the users' latency, if the buckets do not give it.
    above_between : mapping of float to two floats
        Bounds of the shares of `above`, if the buckets of one call leave them open.
    evidence : Evidence or None
        How far the percentiles of one call can be trusted; from `leaf` alone if None.

    Examples
    --------
    >>> from latencykit.core.histogram import Histogram
    >>> users = fan_out(Histogram.of([1_000_000] * 9_900 + [900_000_000] * 100), 10)
    >>> users.percentile(95), users.supported(95), users.supported(99.99)
    (900202495.0, True, False)
    >>> list(users.table)
    ['value', 'bucket_low', 'bucket_high', 'resolved', 'supported']
    """

    n: int
    model: Literal["mixture", "independent"]
    leaf: Histogram
    above: dict[float, float]
    quorum: int | None = None
    interval: float | None = None
    added_load: float = 0.0
    sequential: bool = False
    note: str = ""
    fastest: Distribution | None = None
    above_between: dict[float, tuple[float, float]] = field(default_factory=dict)
    evidence: Evidence | None = field(default=None, repr=False)
    _of_leaf: bool = field(default=False, repr=False)  # percentiles are percentiles of one call

    def _values_at(self, percentiles: Floats) -> Floats:
        if self._of_leaf:  # of one call, as its source states them
            return bounds_at(self.leaf, self._behind(percentiles))[0]
        values = super()._values_at(percentiles)
        # No user waits longer than the slowest call took.
        return values if self.sequential else np.minimum(values, stated_range(self.leaf)[1])

    def rows(
        self, percentiles: Sequence[float], *, confidence: float = 0.95
    ) -> list[PercentileRow]:
        """Return percentiles of the users with their bounds by the buckets of one call."""
        p = np.asarray(percentiles, np.float64)
        if self._of_leaf:
            values, low, high, _ = bounds_at(self.leaf, self._behind(p))
        else:
            values, (low, high) = self.percentile(p), self.bounds(p)
            low = low if self.fastest is None else self.fastest.bounds(p)[0]
        low = np.minimum(low, values)
        cause = np.array(self._causes(p, values, confidence), object)
        return rows_of(
            {
                "percentile": p, "value": values, "low": np.full(p.shape, math.nan, object),
                "high": np.full(p.shape, math.inf), "bucket_low": low, "bucket_high": high,
                "resolved": is_resolved(low, high), "supported": cause == "", "cause": cause,
            }
        )  # fmt: skip

    def percentiles(
        self, percentiles: ArrayLike = (50, 75, 90, 95, 99, 99.9, 99.99)
    ) -> pd.DataFrame:
        """Return a table of percentiles: value, edges of its bucket, resolved, supported."""
        rows = self.rows(np.atleast_1d(np.asarray(percentiles, np.float64)).tolist())
        return percentile_frame(rows)[
            ["value", "bucket_low", "bucket_high", "resolved", "supported"]
        ]

    def leaf_percentile(self, percentile: float) -> float:
        """Return the percentile of one call behind one of the users, for independent calls."""
        return float(leaf_percentile(percentile, self.n, self.quorum))

    def _behind(self, percentiles: Floats) -> Floats:
        """Percentiles of one call behind those of the users."""
        return np.array([self.leaf_percentile(percentile) for percentile in percentiles.tolist()])

    def supported(self, percentile: float, *, confidence: float = 0.95) -> bool:
        """Return whether the sample of single calls supports this percentile of the users."""
        p = np.array([percentile], np.float64)
        return not self._causes(p, self.percentile(p), confidence)[0]

    def _causes(self, p: Floats, values: Floats, confidence: float) -> list[str]:
        """Why each percentile, of these values, is not supported; empty where it is."""
        counted, leaf = self.leaf.count + self.leaf.censored, self.leaf
        if self.sequential:  # n calls are one sequence
            independent = counted // (self.n * leaf.counted.repeats)
            few = p > highest_supported_percentile(independent, confidence)
            others = [""] * p.size
        else:  # as is the percentile of one call behind it
            behind = 100.0 * ((leaf.buckets.high(leaf.index) < values[:, None]) @ leaf.counts)
            behind /= counted
            if not self.added_load and self.model == "independent":
                behind = np.maximum(behind, self._behind(p))
            if not self.added_load and self.quorum is None:
                behind = np.maximum(behind, p)
            few = behind > leaf.sample_limit(confidence=confidence)
            # How the users' latency varies between parts of the run, unless one call decides.
            users, calls = None, self._leaf_evidence.jackknife
            if calls and not (self.n == 1 or self.model == "independent" or self.added_load):
                table = calls.table[calls.table.sum(axis=1) > 0]
                crowd = float(median(table.sum(axis=1)))
                rows = math.ceil(_CROWD * self.n / crowd)  # as many per call as the model takes
                table = np.add.reduceat(table, as_positions(np.arange(0, len(table), rows)))
                sizes = table.sum(axis=1, keepdims=True)
                above = np.maximum(1.0 - np.cumsum(table, axis=1) / sizes, 0.0)
                slow = slowest(above, self.n, self.quorum)
                counts = -np.diff(slow, axis=1, prepend=1.0) * sizes
                users = Jackknife(counts, calls.value, calls.seconds)
            asked = behind if users is None else p
            few |= (behind >= 100) & (users is None)
            doubts = (self._leaf_evidence if users is None else users).doubts(confidence)
            others = [
                next((doubt.cause for doubt in doubts if doubt.first < one <= doubt.last), "")
                for one in asked.tolist()
            ]
        few |= p >= 100
        beyond = "timeouts" if leaf.run.timeouts else "above the last bucket"
        late = values >= self.censored_at
        if self._of_leaf:
            late = bounds_at(leaf, self._behind(p))[3]
        return [
            beyond if censored else "few requests" if lacking else other
            for censored, lacking, other in zip(late.tolist(), few.tolist(), others, strict=True)
        ]

    @property
    def _leaf_evidence(self) -> Evidence:
        return self.leaf.evidence() if self.evidence is None else self.evidence

    def to_unit(self, unit: str) -> Self:
        """Return the same fan-out in another unit."""
        fastest = None if self.fastest is None else self.fastest.to_unit(unit)
        return replace(super().to_unit(unit), leaf=self.leaf.to_unit(unit), fastest=fastest)

    def __str__(self) -> str:
        calls = f"{self.n:,} call{'s' * (self.n > 1)}"
        if self.sequential:
            return f"{calls}, one after the other"
        return f"slowest of {calls}" if self.quorum is None else f"{self.quorum:,} of {calls}"

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name} {units.format_value(self.percentile(p), self.unit)}"
            for name, p in (("p50", 50.0), ("p99", 99.0))
        )
        return f"FanOut({self}, {self.model}, {shown})"

    def _repr_html_(self) -> str:
        show = partial(units.format_value, unit=self.unit)
        rows = self.rows([50.0, 90.0, 99.0, 99.9])
        lines = [
            f"{100 * share:.3g} % wait longer than p{units.format_percentile(p)} of one call"
            for p, share in self.above.items()
            if p == 99.0
        ]
        if not all(row.supported for row in rows):
            lines.append("in parentheses: not supported by the sample of single calls")
        return listing_html(
            f"Latency of users: {self} ({self.model})",
            ("percentile", "latency"),
            [
                (f"p{units.format_percentile(row.percentile)}", units.format_row(row, show))
                for row in rows
            ],
            [*lines, self.note],
        )


def _fan_out_of(
    users: Distribution, *, n: int, leaf: Histogram, above: dict[float, float], **facts: Any
) -> FanOut:
    """Add the calls to the latency of users."""
    base = {item.name: getattr(users, item.name) for item in fields(Distribution)}
    return FanOut(**base, n=n, leaf=leaf, above=above, **facts)


def _drawn(took: AnyArray, leaf: Histogram, shares: Sequence[float], **facts: Any) -> FanOut:
    """Users whose latencies are drawn from the requests of a run, as these follow each other."""
    whole = type(leaf).of(took, unit=leaf.unit)
    users = Distribution(whole.buckets, whole.index, whole.counts / took.size, leaf.unit, leaf.run)
    edges = bounds_at(leaf, np.asarray(shares))[0].tolist()
    above = {p: float((took > edge).mean()) for p, edge in zip(shares, edges, strict=True)}
    return _fan_out_of(users, leaf=leaf, above=above, **{"model": "mixture"} | facts)


@overload
def fan_out(
    data: Data | PathOrFrame,
    n: int,
    *,
    independent: bool = ...,
    quorum: int | None = ...,
    hedge: float | str | None = ...,
    shares: Sequence[float] = ...,
    unit: str | None = ...,
) -> FanOut: ...
@overload
def fan_out(
    data: Data | PathOrFrame,
    n: Sequence[int],
    *,
    independent: bool = ...,
    quorum: int | None = ...,
    hedge: float | str | None = ...,
    shares: Sequence[float] = ...,
    unit: str | None = ...,
) -> list[FanOut]: ...
def fan_out(
    data: Data | PathOrFrame,
    n: int | Sequence[int],
    *,
    independent: bool = False,
    quorum: int | None = None,
    hedge: float | str | None = None,
    shares: Sequence[float] = _SHARES,
    unit: str | None = None,
) -> FanOut | list[FanOut]:
    """Estimate the latency users see when they wait for the slowest of `n` calls.

    More calls are never faster: the time bins of a larger fan-out are unions of those of a smaller
    one.

    Parameters
    ----------
    data : HistogramLog, Samples or Histogram, path or frame
        One call. Of a log the calls of one user fall into one
        interval, and the intervals are mixed by their numbers of requests: in a stall all calls are
        slow together. Of samples the calls of one user are consecutive requests.
    n : int, or sequence of int
        Several are answered together, and give a list.
    independent : bool, default False
        Treat calls as independent, as is done where no time is known: the other bound.
    quorum : int, optional
        Users wait for the fastest `quorum` calls only.
    hedge : float or str, optional
        Percentile of one call, such as ``"p95"``, after which a second one is sent; the faster of
        the two counts.
    shares : sequence of float
        Percentiles of one call for which `FanOut.above` has the share of slower users.
    unit : str, optional
        Of a path or frame whose numbers state none, as for `lk.read`.

    Raises
    ------
    DataNotAvailableError
        For a summary, which has no distribution.
    InvalidArgumentError
        For impossible numbers.

    Examples
    --------
    >>> from latencykit.core.histogram import Histogram
    >>> one = Histogram.of([1_000_000] * 99 + [900_000_000])
    >>> users = fan_out(one, 100)
    >>> round(users.share_above(1_000_447), 3), users.percentile(50) > 8e8, users.supported(50)
    (0.634, True, False)
    """
    numbers = [n] if isinstance(n, int | np.integer) else n
    errors.require(numbers, (list, tuple, range, np.ndarray), "a number of calls, or several")
    if not len(numbers):
        raise errors.InvalidArgumentError("a fan-out needs a number of calls, such as 100")
    for number in numbers:
        _check(number, quorum)
    data = as_data(data, "a fan-out", unit)
    leaf = histogram_of(data, "a fan-out")
    delay = None if hedge is None else float(leaf.percentile(units.parse_percentile(hedge)))
    strategy = _Strategy(leaf, quorum, delay, tuple(shares))
    sent = isinstance(data, Samples) and data.start is not None and bool(data.good.any())
    if independent or leaf.censored or not (sent or isinstance(data, HistogramLog)):
        results = [_independent(strategy, number) for number in numbers]
    elif isinstance(data, Samples) and data.start is not None and delay is None:
        # The slowest, or the k-th fastest, of each n consecutive requests. Of a ring there are as
        # many windows of every length; each lies in one that is longer, and none is faster.
        values = data.values[data.good][np.argsort(data.start[data.good], kind="stable")]
        results = []
        for number in numbers:
            if number == 1 or 2 * number > values.size:
                results.append(_independent(strategy, number))
                continue
            if quorum is None:
                users, width = values, 1
                while width < number:  # a window of 2 w is two of w, which may overlap
                    step = min(width, number - width)
                    users, width = np.maximum(users, np.roll(users, -step)), width + step
            else:
                ring = np.resize(values, -(-values.size // number) * number)
                users = np.partition(ring.reshape(-1, number), quorum - 1, axis=1)[:, quorum - 1]
            note = f"of {number:,} consecutive requests"
            results.append(_drawn(users, leaf, shares, n=number, quorum=quorum, note=note))
    else:  # the intervals of a log, or of samples by their start times, all tags together
        log: Any = data.to_log(by_start=True) if isinstance(data, Samples) else data
        log = in_succession(log.to_unit("ns") if log.unit in units.NANOSECONDS else log)
        if len(log.tags) > 1:
            log = log.with_tag("").resample(float(median(log.lengths)) or 1.0)
        results = _mixtures(log, strategy, numbers)
    # Of calls that were slow together there are fewer than their number says.
    evidence = leaf.evidence() if isinstance(data, Summary) else data.evidence()
    results = [replace(result, evidence=evidence) for result in results]
    return results[0] if numbers is not n else results


@record()
class _Strategy:
    """What users wait for, whatever the number of calls."""

    leaf: Histogram
    quorum: int | None
    delay: float | None  # after which a call is hedged, in the unit of the leaf
    shares: tuple[float, ...]


# ---------------------------------------------------------------- independent calls
def _model(leaf: Histogram, low: Floats, high: Floats, above: Floats) -> Distribution:
    each = probabilities(above)
    index = np.flatnonzero(each > 0)
    each = each[index] / each[index].sum()
    bound = leaf.censored_at if leaf.censored else math.inf
    return Distribution(EdgeBuckets(low, high), index, each, leaf.unit, leaf.run, bound)


def _ranked(strategy: _Strategy, n: int) -> dict[float, float]:
    """The share of users slower than each percentile of one call, by ranks alone."""
    above = 1.0 - np.asarray(strategy.shares) / 100.0
    worse = slowest(above, n, strategy.quorum).tolist()
    return dict(zip(strategy.shares, worse, strict=True))


def _independent(strategy: _Strategy, n: int) -> FanOut:
    leaf, k, delay = strategy.leaf, strategy.quorum, strategy.delay
    best = leaf.counted.at_best()  # censored values are taken at their lower bound
    high = np.where(np.isinf(best.high), best.low, best.high)
    low, above = np.minimum(best.low, high), survival(best.counts)
    facts: dict[str, Any] = {"n": n, "model": "independent", "leaf": leaf, "quorum": k}
    if delay is None:
        return _fan_out_of(
            _model(leaf, low, high, slowest(above, n, k)),
            above=_ranked(strategy, n),
            _of_leaf=True,
            **facts,
        )
    pair = hedged(high, above, delay)
    quick = hedged(_ascending(low), above, _min_delay(leaf, delay))
    below = np.append(0.0, pair.values[:-1])
    users = _model(leaf, below, pair.values, slowest(pair.survival, n, k))
    fastest = _model(leaf, quick.values, quick.values, slowest(quick.survival, n, k))
    return _fan_out_of(
        users,
        above={p: users.share_above(float(leaf.percentile(p))) for p in strategy.shares},
        above_between=_between(leaf, fastest, users, strategy.shares),
        fastest=fastest,
        added_load=pair.added_load,
        **facts,
    )


def _ascending(low: Floats) -> Floats:
    """Lower edges made ascending, none raised: buckets may overlap."""
    return np.asarray(np.minimum.accumulate(low[::-1])[::-1])


def _min_delay(leaf: Histogram, hedge: float) -> float:
    """The least that the delay of a hedge can be, which is a percentile of one call."""
    edges = leaf.counted.low[leaf.counted.high >= hedge]
    return float(min(edges[0], hedge)) if edges.size else hedge


def _between(
    leaf: Histogram, fastest: Distribution, slowest: Distribution, shares: Sequence[float]
) -> dict[float, object]:
    """Bounds of the shares of users who wait longer than percentiles of one call."""
    _, low, high, _ = bounds_at(leaf, np.asarray(shares, np.float64))
    ends = zip(shares, low.tolist(), high.tolist(), strict=True)
    return {p: (fastest.share_above(top), slowest.share_above(bottom)) for p, bottom, top in ends}


# ---------------------------------------------------------------- calls that share an interval
def _mixtures(log: HistogramLog, strategy: _Strategy, numbers: Sequence[int]) -> list[FanOut]:
    """Mix over the intervals, in one pass per width of them."""
    # Always the typical width doubled k times: bins are unions of narrower ones. 1 − (1 − S)ⁿ is
    # concave in S, so a union has as many slow users as its parts or more (Jensen's inequality).
    sizes = interval_series(log)
    crowd = float(median(sizes.count[sizes.count > 0])) if sizes.count.any() else 1.0
    typical = float(median(log.lengths)) or 1.0
    doublings = {n: max(0, math.ceil(math.log2(_CROWD * n / crowd))) for n in numbers if n > 1}
    fan_outs_of: dict[int, FanOut] = {}
    needed = {doublings.get(n, 0) for n in numbers}
    hedges, narrower = strategy.delay is not None, None
    if hedges:  # not concave in S: take the slowest of all narrower bins, too
        needed = set(range(max(needed) + 1))
    for k in sorted(needed):
        width = typical * 2**k
        view = log.resample(width) if k else log
        wanted = range(k, max(needed) + 1) if hedges else (k,)
        fold = _MixtureFold(
            strategy, [n for n in dict.fromkeys(numbers) if doublings.get(n, 0) in wanted]
        )
        scan(view, fold)
        if narrower is not None:
            fold.raise_to(narrower)
        narrower = fold if hedges else None
        note = (
            f"mixed over {units.format_duration(width * 1e9)}, so that each has at least {_CROWD} "
            "requests per call"
        )
        for result in fold.results():
            facts: dict[str, Any] = {"note": note if k else "", "interval": width}
            if k and len(view) < 2:
                each = f"its intervals have {format_items(round(crowd), 'request')} each"
                note = f"{each}: too few to draw {result.n} calls from one; treated as independent"
                facts = {"note": note, "model": "independent"}
                if strategy.delay is None:  # one bin: ranks decide, wherever its buckets lie
                    facts |= {"above": _ranked(strategy, result.n), "above_between": {}}
            fan_outs_of[result.n] = replace(result, **facts)  # wider bins come last
    return [fan_outs_of[n] for n in numbers]


class _MixtureFold:
    """Sums the survival of the slowest of n calls over the intervals, for each of the `numbers`."""

    def __init__(self, strategy: _Strategy, numbers: Sequence[int]) -> None:
        leaf = strategy.leaf
        self.leaf, self.numbers, self.k = leaf, numbers, strategy.quorum
        self.hedge, self.shares = strategy.delay, strategy.shares
        self.high = leaf.buckets.high(leaf.index)
        self._cut, self._part = tail_shares(leaf.counts, self.shares)
        self.low = _ascending(leaf.buckets.low(leaf.index))
        self._places: dict[Buckets, Ints] = {}
        self._total = 0.0
        # Of each number: the sum, or with a hedge values and sums; and shares of slower users, with
        # the requests in the bucket that a percentile splits as they lie, all fast, and all slow.
        self._mass = np.zeros((len(numbers), self.high.size))
        self._hedged: dict[int, tuple[Floats, Floats]] = {}
        self._quick: dict[int, tuple[Floats, Floats]] = {}
        self._slower = np.zeros((len(numbers), 3, len(self.shares)))

    def add(self, block: Block) -> None:
        """Take a block in."""
        if not block.counts.size:
            return
        # Position of each entry in the buckets of the sum, by its highest value.
        places, top = self._places.get(block.buckets), int(block.index.max()) + 1
        if places is None or places.size < top:
            highs = block.buckets.high(np.arange(top))
            at = np.searchsorted(self.high * (1 + 1e-12), highs, "left")
            places = self._places[block.buckets] = np.minimum(at, self.high.size - 1)
        index = places[block.index]
        if self.hedge is None:
            within = Within(block.indptr, index, block.counts, 1)
            for mass, n in zip(self._mass, self.numbers, strict=True):
                mass += within.mixed(n, self.high.size, self.k)
        else:
            # The survival at the upper ends of the buckets and at the lower.
            for sums, ends, delay in (
                (self._hedged, self.high, self.hedge),
                (self._quick, self.low, _min_delay(self.leaf, self.hedge)),
            ):
                for n in self.numbers:
                    values, above = hedged_by_interval(
                        block.indptr, index, block.counts, ends, delay, n, self.k
                    )
                    sums[n] = values, above + (sums[n][1] if n in sums else 0.0)
        sizes = np.diff(running_sums(block.counts)[block.indptr]).astype(np.float64)
        filled, cut = sizes > 0, self._cut
        sizes = sizes[filled]
        # None, or all, of the requests in the bucket that a percentile splits may be the slower
        # ones of an interval.
        ways = np.concatenate((self._part, 0.0 * self._part, 0.0 * self._part + 1))
        tail = tail_counts(block.indptr, index, block.counts, np.tile(cut, 3), ways)[filled]
        share = np.minimum(tail / sizes[:, None], 1.0)
        for slower, n in zip(self._slower, self.numbers, strict=True):
            slower += (sizes @ slowest(share, n, self.k)).reshape(3, -1)
        self._total += float(sizes.sum())

    def raise_to(self, narrower: _MixtureFold) -> None:
        """Take the larger survival with a hedge: of these bins, or of narrower ones."""
        for sums, others in ((self._hedged, narrower._hedged), (self._quick, narrower._quick)):
            for n, (values, above) in sums.items():
                sums[n] = values, np.maximum(above, others[n][1])

    def results(self) -> Iterator[FanOut]:
        """Yield the fan-out of all blocks for each number."""
        leaf, lows = self.leaf, self.leaf.buckets.low(self.leaf.index)
        for n, mass, slower in zip(self.numbers, self._mass, self._slower, strict=True):
            facts: dict[str, Any] = {}
            if n in self._hedged:
                values, above = self._hedged[n][0], self._hedged[n][1] / self._total
                users = _model(leaf, np.append(0.0, values[:-1]), values, above)
                worse = {p: users.share_above(float(leaf.percentile(p))) for p in self.shares}
                quick, sums = self._quick[n]
                fastest = _model(leaf, quick, quick, sums / self._total)
                between = _between(leaf, fastest, users, self.shares)
                added = leaf.count_above(self.hedge or 0.0) / (leaf.count + leaf.censored)
                facts = {"fastest": fastest, "added_load": added}
            else:
                above = np.maximum(1.0 - np.cumsum(mass) / mass.sum(), 0.0)
                users = _model(leaf, lows, self.high, above)
                exact, *bounds = (slower / self._total).tolist()
                worse = dict(zip(self.shares, exact, strict=True))
                between = {}
                if n > 1:
                    between = dict(zip(self.shares, zip(*bounds, strict=True), strict=True))
            yield _fan_out_of(
                users, n=n, model="mixture", leaf=leaf, above=worse, quorum=self.k,
                above_between=between, **facts,
            )  # fmt: skip


# ---------------------------------------------------------------- one after the other
def sequential(data: Data | PathOrFrame, n: int, *, unit: str | None = None) -> FanOut:
    """Return the latency of users who make `n` calls, one after the other.

    Parameters
    ----------
    data : HistogramLog, Samples or Histogram, path or frame
        One call. In samples with times, and in a log, each call is the first request that was sent
        after the reply to the one before; otherwise the calls are independent.
    n : int
    unit : str, optional
        Of a path or frame whose numbers state none, as for `lk.read`.

    Returns
    -------
    FanOut
        Its buckets reach from the lower bound of a sum to the upper.

    Examples
    --------
    >>> from latencykit.core.histogram import Histogram
    >>> sums = sequential(Histogram.of([1000, 3000]), 2)
    >>> [round(v, -2) for v in sums.percentile([20, 50, 90]).tolist()]
    [2000.0, 4000.0, 6000.0]
    """
    if n < 1:
        raise errors.InvalidArgumentError(f"a sequence has at least 1 call, not {n}")
    data = as_data(data, "a sum", unit)
    leaf = histogram_of(data, "a sum")
    if leaf.censored:
        raise errors.DataNotAvailableError(
            f"{leaf.censored:,} values are known only to be at least {leaf.censored_at:g} "
            f"{leaf.unit}: a sum of them is unknown"
        )
    facts: dict[str, Any] = {"n": n, "sequential": True}
    in_turn = 1 < n <= leaf.count // 2 and data.unit in units.NANOSECONDS
    if isinstance(data, Samples) and data.start is not None and in_turn:
        order = np.flatnonzero(data.good)[np.argsort(data.start[data.good], kind="stable")]
        took = _in_a_row(data.start[order], data.duration[order], data.values[order][None], n)
        return _drawn(took[0], leaf, _SHARES, evidence=data.evidence(), **facts)
    if isinstance(data, HistogramLog) and in_turn:
        log = in_succession(data)
        fold = _Replies(log.starts, log.lengths, log.unit, leaf.count)
        scan(log, fold)
        facts["evidence"] = data.evidence()
    else:  # one interval, in which all are answered at once: each call is any of them
        fold = _Replies(np.zeros(1), np.zeros(1), "none", leaf.count)
        ends = np.array([0, leaf.index.size])
        fold.add(Block(np.zeros(1, np.int64), ends, leaf.index, leaf.counts, leaf.buckets))
        facts["model"] = "independent"
    fast, slow = _in_a_row(*fold.requests(), n)
    fastest, slowest = (_drawn(took, leaf, _SHARES, **facts) for took in (fast, slow))
    _, low, high, _ = bounds_at(leaf, np.asarray(_SHARES))
    above = zip(_SHARES, low.tolist(), high.tolist(), strict=True)
    between = {p: (float((fast > b).mean()), float((slow > a).mean())) for p, a, b in above}
    return replace(slowest, fastest=fastest, above_between=between)


_REPLIES = 500_000
"""As many requests at most are drawn: more change no percentile that can be shown."""


class _Replies:
    """Requests of intervals, each answered at a random moment of its own, in a random order."""

    def __init__(self, starts: Floats, lengths: Floats, unit: str, count: int) -> None:
        self._starts, self._lengths, self._scale = starts, lengths, units.NANOSECONDS.get(unit, 0.0)
        # A few are drawn again and again.
        self._share = _REPLIES / count if self._scale == 0.0 else min(1.0, _REPLIES / count)
        self._rng, self._parts = np.random.default_rng(0), list[Floats]()

    def add(self, block: Block) -> None:
        """Take a block in."""
        running = np.cumsum(block.counts)
        total = int(running[-1]) if running.size else 0
        number = math.ceil(total * self._share)
        entry = np.searchsorted(running, (np.arange(number) + 0.5) * (total / max(number, 1)))
        entry = self._rng.permutation(entry)
        row, index = block.rows[block.entry_rows[entry]], block.index[entry]
        replied = self._starts[row] + self._lengths[row] * self._rng.random(number)
        ends = (edge(index) for edge in (block.buckets.low, block.buckets.high))
        self._parts.append(np.stack((1e9 * replied, *ends)))

    def requests(self) -> tuple[Floats, Floats, Floats]:
        """Starts in order, how long they took, and the bounds of that, shape (2, requests)."""
        replied, low, high = np.concatenate(self._parts, axis=1)
        order = np.argsort(replied - self._scale * high, kind="stable")
        lasted = self._scale * high[order]
        return replied[order] - lasted, lasted, np.stack((low, high))[:, order]


def _in_a_row(start: ArrayLike, lasted: ArrayLike, took: AnyArray, n: int) -> AnyArray:
    """Sums along the last axis of `n` calls, from each request on; the run is a ring."""
    begin = np.asarray(start)
    after = np.arange(1, begin.size + 1)
    following = np.maximum(np.searchsorted(begin, begin + np.asarray(lasted)), after) % begin.size
    users, at = np.zeros_like(took), np.arange(begin.size)
    while n:  # in steps of 1, 2, 4 … calls
        if n & 1:
            users, at = users + took[:, at], following[at]
        took, following = took + took[:, following], following[following]
        n >>= 1
    return users
