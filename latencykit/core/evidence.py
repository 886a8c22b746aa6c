"""How far the numbers of a measurement can be trusted: events, support, confidence intervals.

`evidence()` of samples, logs and histograms has one interface. `Evidence` works without time, by
ranks, assuming independent requests; `Tails` uses time.

A stall is one event, however many requests it hit. The requests above a percentile are spread over
the intervals of a log. Intervals that hold far more of them than their share are bursts; bursts
that touch in time are one stall, and one event; every other slow request counts as an event of its
own, as rank intervals assume of all. The number of independent events is then Kish's effective
number, (Σ tₑ)² / Σ tₑ², where event e holds tₑ requests.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._arrays import Value, as_positions
from latencykit._records import record
from latencykit._text import format_items
from latencykit.core.buckets import HdrBuckets
from latencykit.core.jackknife import RULE, Jackknife, student_quantile
from latencykit.core.kernel import tabulate
from latencykit.core.quantiles import (
    LEAST_EVENTS,
    Doubt,
    PercentileRow,
    columns_at,
    highest_pinned_down,
    median,
    normal_quantile,
    occupied,
    poisson_rarer,
    rows_of,
    running_sums,
)
from latencykit.units import format_count, format_duration, format_percentile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from latencykit._typing import AnyArray, Flags, Floats, Ints
    from latencykit.core.blocks import Block
    from latencykit.core.buckets import Buckets
    from latencykit.core.dependence import Dependence


_CHANCE = 0.001  # of calling any interval of a log a burst by mistake
_MOST = 0.9  # "comes from": that much of the tail
_CARRIED = 90.0  # bursts above it are those of all that is slower
_AT_ONCE = 1 << 16  # intervals × percentiles that are looked at together
_SLIVER = 1.5  # of the requests above: p90 and p95 are a factor of 2 apart
_ALIKE = 0.05  # intervals that cover so nearly the same time are of one length
_SMALL = 1 << 15  # entries of a table that is cheaply summed once from its end
_BESIDES = (90.0, 97.0, 99.0, 99.7, 99.9, 99.97, 99.99)


@record()
class TailEvents:
    """What makes up the requests above one percentile.

    Attributes
    ----------
    percentile : float
    requests : float
        How many requests lie above it.
    effective : float
        Independent events that they amount to.
    stalls : int
        Bursts, merged where they touch, that hold nine tenths of what bursts hold.
    stall_share : float
        Share (0..1) of the requests above that bursts hold.
    intervals, of_intervals : int
        The fewest intervals that hold nine tenths of the requests above, and how many intervals
        there are.
    share : float
        Share (0..1) that those intervals hold.
    seconds : float
        Usual length of an interval, 0 where their lengths vary; NaN where intervals are groups of
        requests without times.
    tags : int
        The fewest tags that hold nine tenths of the requests above; 0 where tags were not given.
    """

    percentile: float
    requests: float
    effective: float
    stalls: int
    stall_share: float
    intervals: int
    of_intervals: int
    share: float
    seconds: float
    tags: int = 0

    @property
    def count(self) -> int:
        """The effective number of events as a whole number, at least 1 for a tail."""
        return max(1, round(self.effective)) if self.requests > 0 else 0

    def supports(self, confidence: float = 0.95) -> bool:
        """Return whether there are enough events to bound the percentile from above."""
        return bool(self.effective >= _least_events(confidence))

    @property
    def words(self) -> str:
        """One sentence: "p99.9 is based on 1 stall; 92 % of the tail comes from 3 of 3,600 s"."""
        name = f"p{format_percentile(self.percentile)}"
        if not self.requests > 0:
            return f"nothing lies above {name}"
        if self.stall_share >= _MOST:
            rests = f"{name} is based on {format_items(self.stalls, 'stall')}"
        elif self.stall_share >= 0.5:
            share = f"{100 * self.stall_share:.0f} %"
            rests = f"{name} is based mostly ({share}) on {format_items(self.stalls, 'stall')}"
        else:
            rests = f"{name} is based on about {format_items(self.count, 'independent event')}"
        unit = f"intervals of {format_duration(self.seconds * 1e9)}"
        if math.isclose(self.seconds, 1.0, rel_tol=0.05):
            unit = "s"
        elif math.isnan(self.seconds):
            unit = "groups of successive requests"
        elif not self.seconds:
            unit = "intervals"
        spread = f"{format_count(self.intervals)} of {format_count(self.of_intervals)} {unit}"
        tags = f" and {format_items(self.tags, 'tag')}" if self.tags else ""
        return f"{rests}; {100 * self.share:.0f} % of the tail comes from {spread}{tags}"


def _least_events(confidence: float) -> float:
    """Events that bound a percentile: as few leave it open with the probability of an error."""
    return max(LEAST_EVENTS, -math.log((1 - confidence) / 2)) * (1 - 1e-9)


def tail_shares(counts: ArrayLike, percentiles: ArrayLike) -> tuple[Ints, Floats]:
    """Return where each percentile cuts the counts: the bucket, and which part of it lies above."""
    numbers = np.asarray(counts, np.int64)
    cumulative, p = np.cumsum(numbers), np.atleast_1d(np.asarray(percentiles, np.float64))
    below = cumulative[-1] * (p / 100.0)
    # A cut on the edge of a bucket may miss it by rounding; an empty bucket cannot be cut.
    at = np.searchsorted(cumulative, below * (1 - 1e-12), "left")
    at = np.minimum(at, numbers.size - 1)
    share = (cumulative[at] - below) / np.maximum(numbers[at], 1)
    share = np.minimum(np.maximum(share, 0.0), 1.0)
    return at.astype(np.int64), np.where(share < 1e-9, 0.0, share)


def tail_counts(
    indptr: Ints, index: Ints, counts: Ints, position: ArrayLike, shares: ArrayLike
) -> Floats:
    """Return how many requests of each interval lie above each percentile."""
    cut, part = np.asarray(position, np.int64), np.asarray(shares, np.float64)
    size = 1 + max(int(index.max(initial=0)), int(cut.max(initial=0)))
    begins = np.arange(indptr.size - 1, dtype=np.int64) * size
    places = np.repeat(begins, as_positions(np.diff(indptr))) + index  # ascends throughout
    edges = begins[:, None] + cut
    running = running_sums(counts)
    first, after = (
        running[np.searchsorted(places, edges)],
        running[np.searchsorted(places, edges, "right")],
    )
    return np.asarray(running[indptr[1:], None] - after + part * (after - first))


@record(eq=False)
class TimeBins:
    """The intervals of a log in order of time, without empty ones.

    `order` has their positions among all `intervals`; `usual` is the load of each without backlogs;
    `reach` is how many seconds before an interval its requests may have begun.
    """

    order: Ints
    usual: Floats
    begin: Floats
    span: Floats
    reach: Floats
    intervals: int

    @classmethod
    def of(
        cls,
        count: ArrayLike,
        start: ArrayLike,
        length: ArrayLike,
        longest: ArrayLike | None = None,
    ) -> TimeBins:
        """Return the intervals sorted; `longest` is the longest latency of each, in seconds."""
        sizes, begin = np.asarray(count, np.float64), np.asarray(start, np.float64)
        order = np.argsort(begin, kind="stable")
        order = order[sizes[order] > 0]
        reach = np.zeros(begin.size) if longest is None else np.asarray(longest, np.float64)
        reach = reach if np.isfinite(reach).all() else np.nan_to_num(reach)
        # A backlog that is worked off crowds an interval and must not raise what is expected of it;
        # load moves slowly.
        load = sizes[order]
        usual = np.minimum(load, 2 * _rolling_median(load)) if order.size else load
        span = np.asarray(length, np.float64)[order]
        return cls(order, usual, begin[order], span, reach[order], sizes.size)

    @cached_property
    def seconds(self) -> float:
        """Usual length of an interval, 0 where their lengths vary."""
        usual = float(median(self.span)) if self.span.size else 0.0
        alike = math.isclose(float(self.span.sum()), usual * self.span.size, rel_tol=_ALIKE)
        return usual if alike else 0.0

    def bursts(self, percentiles: Sequence[float], tail: Floats) -> Bursts:
        """Return where the requests above each percentile, shape (intervals, p), are bursts."""
        above = np.ascontiguousarray(tail.T)
        if not np.array_equal(self.order, np.arange(self.intervals)):  # it may be large
            above = np.ascontiguousarray(above[:, self.order])
        burst = np.zeros(above.shape, np.bool_)
        least, total = _CHANCE / max(self.order.size, 1), self.usual.sum()
        for some in _turns(*above.shape):
            expected = above[some].sum(axis=1)[:, None] * self.usual / total
            crowded = (above[some] > 1) & (above[some] > expected)
            burst[some][crowded] = poisson_rarer(above[some][crowded], expected[crowded], least)
        slow = burst
        if burst.any():
            # What is slower still, in the same interval, is of the same stall, however few requests
            # of it are left.
            order = np.argsort(percentiles, kind="stable")
            order = order[np.asarray(percentiles)[order] >= _CARRIED]
            slow = burst.copy()
            slow[order] = np.logical_or.accumulate(burst[order], axis=0)
            burst = slow & (above > 0)
        return Bursts(self, percentiles, above, burst, slow)


@record(eq=False)
class Bursts:
    """The requests above each percentile, shape (p, intervals), and in which they are bursts.

    `slow` are those intervals and, where none of these requests is left, those of the percentiles
    below.
    """

    bins: TimeBins
    percentiles: Sequence[float]
    tail: Floats
    burst: NDArray[np.bool_]
    slow: NDArray[np.bool_]

    @cached_property
    def _sums(self) -> tuple[Floats, Floats, Ints, Floats]:
        """Requests above each percentile, events, stalls among them, and requests in stalls."""
        total, others = self.tail.sum(axis=1), np.maximum(self.tail, 0)
        stalls, held = np.zeros(total.size, np.int64), np.zeros(total.size)
        squares, (row, at) = others.sum(axis=1), self.burst.nonzero()
        if at.size:
            # Bursts that touch are one stall, and so are those with no request, or nothing but slow
            # intervals, between them.
            ends = np.where(self.burst, self.bins.begin + self.bins.span, -np.inf)
            ends = np.maximum.accumulate(ends, axis=1)[row, at]
            begin, later = (self.bins.begin - self.bins.reach)[at], 1e-6 * self.bins.span[at]
            usual = np.cumsum(~self.slow, axis=1)[row, at]
            apart = (begin[1:] > ends[:-1] + later[1:]) & (np.diff(usual) > 0)
            first = np.flatnonzero(np.concatenate(([True], apart | (row[1:] != row[:-1]))))
            sizes, row = np.add.reduceat(self.tail[row, at], first), row[first]
            held = np.bincount(row, sizes, total.size)
            squares = np.where(self.burst, 0, others).sum(axis=1)
            squares += np.bincount(row, sizes**2, total.size)
            table = np.zeros((total.size, int(np.bincount(row).max())))
            table[row, np.arange(row.size) - np.searchsorted(row, row)] = sizes
            stalls = _fewest(table)[0]
        effective = total**2 / np.maximum(np.maximum(squares, total), 1e-300)
        return total, effective, stalls, held

    @property
    def counts(self) -> list[int | None]:
        """The `count` of the events above each percentile; None where nothing lies above it."""
        rows = zip(*(column.tolist() for column in self._sums[:2]), strict=True)
        return [max(1, round(effective)) if total > 0 else None for total, effective in rows]

    def events(self, which: slice = slice(None)) -> list[TailEvents]:
        """Return what makes up the requests above each percentile, or some of them."""
        columns = (*(column[which] for column in self._sums), *_fewest(self.tail[which]))
        rows = zip(self.percentiles[which], *(c.tolist() for c in columns), strict=True)
        return [
            TailEvents(
                float(percentile),
                total,
                effective,
                stalls,
                held / total if total else 0.0,
                number,
                self.bins.intervals,
                share,
                self.bins.seconds,
            )
            for percentile, total, effective, stalls, held, number, share in rows
        ]


def _is_sliver(low: float, high: float) -> bool:
    """Whether a range of percentiles is narrower than any two that people ask for."""
    return low < high < 100 and 100 - low < _SLIVER * (100 - high)


def _turns(rows: int, columns: int) -> Iterator[slice]:
    """Rows of a table a few at a time, so that what is made of them stays small."""
    step = max(1, _AT_ONCE // max(columns, 1))
    return (slice(first, first + step) for first in range(0, rows, step))


def _rolling_median(sizes: Floats) -> Floats:
    """Median of each value and its neighbours; of all where there are few."""
    window = 11
    if sizes.size < 2 * window:
        return np.full(sizes.shape, median(sizes))
    padded = np.pad(sizes, window // 2, mode="edge")
    return median(np.lib.stride_tricks.sliding_window_view(padded, window))


def fewest(parts: Floats) -> tuple[int, float]:
    """How few parts hold nine tenths of all, and which share they hold."""
    numbers, shares = _fewest(parts[None])
    return int(numbers[0]), float(shares[0])


def _fewest(parts: Floats) -> tuple[Ints, Floats]:
    """The same of each row."""
    numbers, shares = np.zeros(len(parts), np.int64), np.zeros(len(parts))
    for some in _turns(*parts.shape) if parts.size else ():
        running = np.cumsum(np.sort(parts[some], axis=1)[:, ::-1], axis=1)
        whole = running[:, -1]
        number = (running < _MOST * whole[:, None] * (1 - 1e-12)).sum(axis=1)
        share = np.take_along_axis(running, number[:, None], 1)[:, 0] / np.where(
            whole > 0, whole, 1
        )
        numbers[some], shares[some] = np.where(whole > 0, (number + 1, share), 0)
    return numbers, shares


# ------------------------------------------------------------
# The intervals of every command.


@record(eq=False)
class Evidence(Value):
    """Intervals of the statistics of one measurement.

    Attributes
    ----------
    whole : Histogram
        The histogram of all requests.
    """

    whole: Any

    @property
    def dependence(self) -> Dependence | None:
        """How requests depend on each other; None where their times are unknown."""
        return None

    @property
    def jackknife(self) -> Jackknife | None:
        """How statistics vary between parts of the run; None where times are unknown."""
        return None

    @property
    def failures(self) -> Jackknife | None:
        """The same of failed requests: good ones and others; None where times are unknown."""
        return None

    def doubts(self, confidence: float = 0.95) -> tuple[Doubt, ...]:
        """Return the ranges of percentiles that the run does not support, ascending.

        Counts know how many requests lie above a percentile. The data that they were counted from,
        or the file, may know more.
        """
        kept = vars(self.whole).setdefault("_doubts", {})  # a copy no longer knows its origin
        if confidence not in kept:
            origin = vars(self.whole).get("_origin")
            richer = None if origin is None else origin.evidence(self.whole)
            kept[confidence] = (
                richer.doubts(confidence) if isinstance(richer, Tails) else self._few(confidence)
            )
        return tuple(kept[confidence])

    def _few(self, confidence: float) -> tuple[Doubt, ...]:
        limit, stated = self.whole.sample_limit(confidence=confidence), self.whole.run.supported
        few = Doubt(limit, 100.0, "few requests")
        if stated is None or stated >= limit:
            return (few,)
        return (Doubt(stated, limit, "as stated"), few)

    def supported_up_to(self, confidence: float = 0.95) -> float:
        """Return the highest percentile below 100 that the run supports."""
        limit = 100.0
        for doubt in reversed(self.doubts(confidence)):
            if doubt.last < limit:
                break
            limit = doubt.first
        return limit

    def rows(
        self,
        percentiles: Sequence[float],
        confidence: float = 0.95,
        *,
        events: bool = True,  # noqa: ARG002 - counts do not know what was slow together
    ) -> tuple[list[PercentileRow], tuple[str, ...]]:
        """Return percentiles with their intervals, and the reasons why some have none.

        Without `events` rows do not count theirs, and take half the time.
        """
        p = np.array([float(one) for one in percentiles])
        return rows_of(columns_at(self.whole, p, confidence, self.doubts(confidence))), ()

    def supported(self, percentiles: ArrayLike, confidence: float = 0.95) -> Flags:
        """Return which percentiles the run supports; the maximum is always one of its values."""
        p = np.atleast_1d(np.asarray(percentiles, np.float64))
        doubted = [(p > one.first) & (p <= one.last) for one in self.doubts(confidence)]
        return np.asarray((p >= 100) | ~np.logical_or.reduce(doubted, axis=0))

    def supported_rows(
        self, percentiles: Sequence[float], confidence: float = 0.95
    ) -> list[PercentileRow]:
        """Return the percentiles that `rows` gives, without intervals and events: much faster."""
        p = np.asarray(percentiles, np.float64)
        doubts = self.doubts(confidence)
        return rows_of(columns_at(self.whole, p, confidence, doubts, bounded=False))

    def ends(self, percentiles: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return only the lower and upper ends of the intervals that `rows` gives."""
        columns = columns_at(self.whole, percentiles, confidence, ())
        return columns["low"], columns["high"]

    def mean(self, name: str = "mean", confidence: float = 0.95) -> tuple[float, float]:
        """Return how far a mean may lie below and above the sample's; infinite where open."""
        from latencykit.core.trimmed import ranks_of_mean

        ends = ranks_of_mean(name)
        if ends is None or not self.whole.count:
            return 0.0, 0.0
        counted = self.whole.counted.occupied()
        shares = counted.cumulative / counted.count
        first, last = (
            counted.middle[min(int(np.searchsorted(shares, end - 1e-12)), shares.size - 1)]
            for end in ends
        )
        kept = np.clip(counted.middle, first, last)
        mean = float((kept * counted.counts).sum() / counted.count)
        spread = (
            math.sqrt(max(float(((kept - mean) ** 2 * counted.counts).sum()), 0.0))
            / counted.count
            / (ends[1] - ends[0])
        )
        if name == "mean":
            spread = self.whole.bracket("std")[1] / math.sqrt(counted.count)
        error = normal_quantile((1 + confidence) / 2) * spread * math.sqrt(counted.repeats)
        return error, error

    def highest_supported_percentile(self, *, confidence: float = 0.95) -> float:
        """Return the highest percentile that the run supports and the buckets resolve."""
        return highest_pinned_down(self.whole, self.supported_up_to(confidence))


@record(eq=False)
class Tails(Evidence):
    """A measurement as time bins × groups of buckets, fine in the tail, of bounded size.

    Attributes
    ----------
    whole : Histogram
        All of it.
    table : ndarray of float64, shape (slots, groups)
        Counts, in order of time.
    value : ndarray of float64, shape (groups,)
        Middle of each group.
    start, length, longest : ndarray of float64, shape (slots,)
        Seconds; the longest latency of each, 0 for values without a unit.
    tags : ndarray of float64, shape (tags, groups)
    failed : ndarray of float64, shape (slots,), or None
        Requests that failed in each slot, where that is known.
    """

    table: Floats
    value: Floats
    start: Floats
    length: Floats
    longest: Floats
    tags: Floats
    failed: Floats | None = None

    @cached_property
    def dependence(self) -> Dependence:
        """How requests depend on each other."""
        from latencykit.core.dependence import Dependence

        return Dependence(self.table, self.value)

    def events(self, percentiles: Sequence[float]) -> list[TailEvents]:
        """Return what makes up the requests above each percentile."""
        events = self._bursts(percentiles).events(slice(len(percentiles)))
        if len(self.tags) < 2:
            return events
        by_tag = _above(self.tags, *tail_shares(self._counts, percentiles))
        most = [fewest(column)[0] for column in by_tag.T]
        return [replace(above, tags=number) for above, number in zip(events, most, strict=True)]

    def above(self, percentile: float) -> Floats:
        """Return how many requests of each slot lie above a percentile."""
        return _above(self.table, *tail_shares(self._counts, [percentile]))[:, 0]

    @cached_property
    def _counts(self) -> Ints:
        return np.asarray(np.rint(self.table.sum(axis=0)), np.int64)

    @cached_property
    def _bins(self) -> TimeBins:
        return TimeBins.of(self.table.sum(axis=1), self.start, self.length, self.longest)

    def _bursts(self, percentiles: Sequence[float]) -> Bursts:
        """The requests of each slot above each percentile, and where they are bursts."""
        # A stall shows best where it still holds many requests: some percentiles are asked besides.
        asked = [*percentiles, *(p for p in _BESIDES if p < max(percentiles, default=0.0))]
        group, share = tail_shares(self._counts, asked)
        if self._beyond is None:
            return self._bins.bursts(asked, _above(self.table, group, share))
        return self._bins.bursts(asked, self._beyond[:, group] + self.table[:, group] * share)

    @cached_property
    def _beyond(self) -> Floats | None:
        """Requests of each slot beyond each group; None for a large table."""
        if self.table.size > _SMALL:
            return None
        beyond = np.zeros(self.table.shape)
        np.cumsum(self.table[:, :0:-1], axis=1, out=beyond[:, -2::-1])
        return beyond

    def doubts(self, confidence: float = 0.95) -> tuple[Doubt, ...]:
        """Return the ranges of percentiles that the run does not support, ascending."""
        if confidence not in self._doubts:
            limit = self.whole.sample_limit(confidence=confidence)
            timed = [
                replace(one, last=min(one.last, limit))
                for one in self.jackknife.doubts(confidence)
                if one.first < limit
            ]
            every = (*timed, Doubt(limit, 100.0, "few requests"))
            # What remains between two of them by a hair is not known.
            self._doubts[confidence] = tuple(
                replace(one, last=after.first) if _is_sliver(one.last, after.first) else one
                for one, after in zip(every, (*every[1:], Doubt(100.0, 100.0, "")), strict=True)
            )
        return self._doubts[confidence]

    @cached_property
    def _doubts(self) -> dict[float, tuple[Doubt, ...]]:
        return {}

    @cached_property
    def jackknife(self) -> Jackknife:
        """How statistics vary between parts of the run."""
        return Jackknife(self.table, self.value, self._seconds)

    @property
    def failures(self) -> Jackknife | None:
        """How the share of failed requests varies; None where it is not known when they failed."""
        if self.failed is None:
            return None
        good = self.table.sum(axis=1)
        return Jackknife(np.stack((good, self.failed), axis=1), np.array([0.0, 1.0]), self._seconds)

    def bins_of(self, begin: Ints) -> Floats:
        """Return how many of some moments (ns from the start) fall into each slot."""
        slot = np.searchsorted(self.start, np.asarray(begin) / 1e9, "right") - 1
        return np.bincount(np.maximum(slot, 0), minlength=self.start.size).astype(np.float64)

    def rows(
        self, percentiles: Sequence[float], confidence: float = 0.95, *, events: bool = True
    ) -> tuple[list[PercentileRow], tuple[str, ...]]:
        """Return percentiles with confidence intervals and events, and why some have none."""
        p = np.array([float(one) for one in percentiles])
        inner = np.flatnonzero((p > 0) & (p < 100))
        columns = columns_at(self.whole, p, confidence, self.doubts(confidence))
        if not inner.size or not self.whole.count:
            return rows_of(columns), ()
        if events:
            asked = p[inner].tolist()
            columns["events"][inner] = self._bursts(asked).counts[: len(asked)]
        columns["low"], columns["high"] = self._ends_of(columns, confidence)
        return rows_of(columns), self._reasons()

    def ends(self, percentiles: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return only the lower and upper ends of the intervals that `rows` gives.

        They are at least as wide as those of independent requests; corrected counts have none.
        """
        return self._ends_of(columns_at(self.whole, percentiles, confidence, ()), confidence)

    def _ends_of(self, columns: Mapping[str, AnyArray], confidence: float) -> tuple[Floats, Floats]:
        """The same, from the columns of independent requests."""
        names = ("percentile", "low", "high", "bucket_low", "bucket_high")
        percentiles, low, high, bottom, top = (columns[name] for name in names)
        inner = np.flatnonzero((percentiles > 0) & (percentiles < 100))
        if not inner.size or not self.whole.count:
            return low, high
        if not self.jackknife.known:
            low[inner] = high[inner] = math.nan
            return low, high
        bottom, top, p = bottom[inner], top[inner], percentiles[inner]
        down, up = self.jackknife.errors(p)
        factor, widest = student_quantile(confidence, RULE.blocks - 1), math.log(RULE.widest)
        useless = np.isfinite(top) & (top > 0) & (factor * np.maximum(down, up) > widest)
        # No part of the run is faster than its fastest.
        least = np.maximum(bottom * np.exp(-factor * down), self.jackknife.of_blocks(p).min(axis=0))
        further = np.multiply(top, np.exp(factor * up), out=top.copy(), where=top > 0)
        low[inner] = np.where(useless, np.nan, np.fmin(low[inner], np.minimum(least, bottom)))
        high[inner] = np.where(useless, np.nan, np.fmax(high[inner], further))
        return low, high

    def mean(self, name: str = "mean", confidence: float = 0.95) -> tuple[float, float]:
        """Return how far a mean may lie below and above the sample's; see `Evidence.mean`."""
        from latencykit.core.trimmed import ranks_of_mean

        usual, ends = super().mean(name, confidence), ranks_of_mean(name)
        if ends is None or not self.whole.count:
            return (math.inf, math.inf) if self.whole.count else (0.0, 0.0)
        if not self.jackknife.known:
            return math.inf, math.inf
        down, up = self.jackknife.mean_errors(*ends)
        factor, mean = student_quantile(confidence, RULE.blocks - 1), self.whole.mean
        below, above = mean * -math.expm1(-factor * down), mean * math.expm1(factor * up)
        return max(below, usual[0]), max(above, usual[1])

    @property
    def _seconds(self) -> float:
        """How long the measurement took, without gaps."""
        return float(self.length.sum())

    def _reasons(self) -> tuple[str, ...]:
        """Why rows have no interval."""
        if self.jackknife.known:
            return ()
        bins = f"{self.jackknife.bins} time bins are too few for a confidence interval"
        return (f"{bins}; {RULE.min_bins} are needed",)


@record(eq=False)
class TailsByRequest(Tails):
    """The same without times: rows of the table are neighbouring requests, in order."""

    def events(self, percentiles: Sequence[float]) -> list[TailEvents]:
        """Return what makes up the rows above each percentile."""
        return [replace(one, seconds=math.nan) for one in super().events(percentiles)]

    @property
    def _seconds(self) -> float:
        return self.whole.run.duration or math.nan


def _above(table: Floats, group: Ints, share: Floats) -> Floats:
    """Requests of each row above each cut, shape (rows, p)."""
    # Sums between the cuts suffice; counts are whole, so the order of adding does not matter.
    cuts, place = np.unique(group, return_inverse=True)
    beyond, inner = np.zeros((cuts.size, len(table))), cuts < table.shape[1] - 1
    if inner.any():
        beyond[inner] = np.add.reduceat(table, as_positions(cuts[inner] + 1), axis=1).T
    beyond = np.cumsum(beyond[::-1], axis=0)[::-1]
    return (beyond[place.reshape(-1)] + table.T[group] * share[:, None]).T


def tails_of_requests(
    moment: Ints, value: Ints, open_above: Ints, tag: Ints | None, whole: Any
) -> Tails:
    """Return requests as slots of time × groups of latencies."""
    begin = np.concatenate((moment, open_above))
    elapsed = max(int(begin.max(initial=0)) + 1, 1)
    slots = int(
        min(max(elapsed / 1e9 if elapsed >= 30e9 else 240, 1), MOST_BINS, max(begin.size // 4, 1))
    )
    slot = np.minimum((begin * (slots / elapsed)).astype(np.int64), slots - 1)
    steps, column = np.unique(column_of(value.astype(np.float64)), return_inverse=True)
    top = column_of(np.array([max(whole.censored_at, whole.max)]))[0] + 1 if open_above.size else 0
    column = np.concatenate((column.reshape(-1), np.full(open_above.size, steps.size)))
    steps = np.append(steps, top) if open_above.size else steps
    table = (
        np.bincount(slot * steps.size + column, minlength=slots * steps.size)
        .astype(np.float64)
        .reshape(slots, -1)
    )
    codes = np.zeros(moment.size, np.int64) if tag is None else tag
    kinds = int(codes.max(initial=0)) + 1
    flat = codes * steps.size + column[: moment.size]
    tags = np.bincount(flat, minlength=kinds * steps.size).astype(np.float64).reshape(kinds, -1)
    table, tags, middle = grouped(table, tags, steps)
    width = float(elapsed) / 1e9 / slots
    starts = np.arange(slots, dtype=np.float64) * width
    return Tails(whole, table, middle, starts, np.full(slots, width), np.zeros(slots), tags)


# ------------------------------------------------------------
# Counts per time bin and tag in columns of one relative width.

MOST_BINS = 4096
"""Time bins of a table at most: more intervals are put together with their neighbours."""
_GROUPS = 400  # of latencies at most, once all is read
_FINE = 64  # columns per doubling of the latency while a log is read: 1.1 % wide
_MORE = 64  # columns for what comes later; each row takes them, and more of them take memory
_ROWS_AT_ONCE = 64  # rows of a large table that are put together at a time


class TailTable:
    """A fold: counts per time bin and tag, in columns of one relative width for all layouts."""

    def __init__(self, slot: Ints, slots: int, tag: Ints, tags: int) -> None:
        self.slot, self.tag = slot, tag
        self.table, self.tags = np.zeros((slots, 0)), np.zeros((tags, 0))
        self.longest = np.zeros(slots)
        self._steps = np.zeros(0, np.int64)  # of each column
        self._columns: dict[Buckets, Ints] = {}
        self._result: tuple[Floats, Floats, Floats] | None = None

    def add(self, block: Block) -> None:
        """Take a block in."""
        if not block.counts.size:
            return
        column = self._of(block.buckets, block.width)
        entries = block.indptr, block.index, block.counts, column
        slot = self.slot[block.rows]
        tabulate(self.table, slot, *entries)
        if len(self.tags) > 1:
            tabulate(self.tags, self.tag[block.rows], *entries)
        ends = block.indptr[1:]
        held = (ends > block.indptr[:-1]).nonzero()[0]
        top = block.buckets.high(block.index[ends[held] - 1])
        np.maximum.at(self.longest, slot[held], top)

    def _of(self, buckets: Buckets, size: int) -> Ints:
        """Column of each bucket of a layout."""
        known = self._columns.get(buckets, np.zeros(0, np.int64))
        if known.size < size:
            if isinstance(buckets, HdrBuckets):  # without end; spares doing it often
                size += -size % 1024
            steps, place = _columns_between(buckets, known.size, size)
            if self._steps.size:
                fresh = steps[~np.isin(steps, self._steps)]
                self._steps = np.concatenate((self._steps, fresh))
                order = np.argsort(self._steps)
                columns = order[np.searchsorted(self._steps, steps, sorter=order)]
                known = np.concatenate((known, columns[place]))
            else:
                self._steps, known = steps, place
            self._columns[buckets] = known
            more = self._steps.size - self.table.shape[1]
            if more > 0:
                more += _MORE
                self.table, self.tags = _widened(self.table, more), _widened(self.tags, more)
        return known

    def close(self) -> None:
        """Keep the groups, which take less memory than the columns."""
        self._result = self.groups()
        self.table = self.tags = np.zeros((0, 0))

    def groups(self) -> tuple[Floats, Floats, Floats]:
        """Table, tags and values of the groups, ascending."""
        if self._result is not None:
            return self._result
        return grouped(self.table, self.tags, self._steps)


@lru_cache(maxsize=32)
def _columns_between(buckets: Buckets, first: int, last: int) -> tuple[Ints, Ints]:
    """The columns of some buckets, and which each is in; many tags share a layout."""
    steps, place = np.unique(column_of(buckets.high(np.arange(first, last))), return_inverse=True)
    return steps, place.reshape(-1)


def _widened(table: Floats, more: int) -> Floats:
    """With more columns of zeros."""
    wider = np.zeros((len(table), table.shape[1] + more))
    wider[:, : table.shape[1]] = table
    return wider


def column_of(values: Floats) -> Ints:
    """The column of each value, by its logarithm."""
    return np.asarray(np.floor(_FINE * np.log2(np.maximum(values, 2.0**-40))), np.int64)


def grouped(table: Floats, tags: Floats, steps: Ints) -> tuple[Floats, Floats, Floats]:
    """Put columns together to some hundred, fine in the tail, empty ones left out."""
    sums = table[:, : steps.size].sum(axis=0)
    held = occupied(sums)
    held = held[np.argsort(steps[held])]
    if not held.size:
        return np.zeros((len(table), 1)), np.zeros((len(tags), 1)), np.zeros(1)
    sums, middle = sums[held], np.exp2((steps[held] + 0.5) / _FINE)
    group = tail_groups(np.rint(sums))
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    value = np.add.reduceat(sums * middle, first) / np.add.reduceat(sums, first)

    def together(counts: Floats) -> Floats:
        """Some rows at a time: the table may be large."""
        out = np.empty((len(counts), first.size))
        for row in range(0, len(counts), _ROWS_AT_ONCE):
            some = counts[row : row + _ROWS_AT_ONCE, held]
            np.add.reduceat(some, first, axis=1, out=out[row : row + _ROWS_AT_ONCE])
        return out

    return together(table), together(tags), value


def tail_groups(counts: ArrayLike) -> Ints:
    """Return a group for each bucket: some hundred groups, fine in the tails."""
    numbers = np.asarray(counts, np.float64)
    if numbers.size <= _GROUPS:
        return np.arange(numbers.size)
    share = (np.cumsum(numbers) - numbers / 2 + 0.25) / (numbers.sum() + 0.5)
    odds = np.log(share / (1 - share))
    width = (odds[-1] - odds[0]) / _GROUPS or 1.0
    group = np.minimum(np.floor((odds - odds[0]) / width), _GROUPS - 1)
    return np.unique(group, return_inverse=True)[1].astype(np.int64)
