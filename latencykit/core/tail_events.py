"""How many events make up the tail: a stall is one event, however many requests it hit.

The requests above a percentile are spread over the intervals of a log. Intervals that hold far more
of them than their share are bursts; bursts that touch in time are one stall, and one event; every
other slow request counts as an event of its own, as rank intervals assume of all. The number of
independent events is then Kish's effective number, (Σ tₑ)² / Σ tₑ², where event e holds tₑ
requests.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record
from latencykit.core.dependence import LEAST_EVENTS
from latencykit.core.quantiles import median, poisson_rarer, running_sums
from latencykit.units import format_count, format_duration, format_items, format_percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = [
    "Bursts",
    "TailEvents",
    "TimeBins",
    "fewest",
    "solid_up_to",
    "tail_counts",
    "tail_shares",
]

_CHANCE = 0.001  # of calling any interval of a log a burst by mistake
_MOST = 0.9  # "comes from": that much of the tail
_CARRIED = 90.0  # bursts above it are those of all that is slower
_AT_ONCE = 1 << 16  # intervals × percentiles that are looked at together
_ALIKE = 0.05  # intervals that cover so nearly the same time are of one length
_STEPS = 8  # percentiles per nine at which a curve is asked what it is based on


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
    begins = np.arange(indptr.size - 1) * size
    places = np.repeat(begins, np.diff(indptr)) + index  # ascends throughout
    edges = begins[:, None] + cut
    running = running_sums(counts)
    first, after = (
        running[np.searchsorted(places, edges)],
        running[np.searchsorted(places, edges, "right")],
    )
    return np.asarray(running[indptr[1:], None] - after + part * (after - first))


def solid_up_to(
    bursts_of: Callable[[list[float]], Bursts], limit: float, confidence: float = 0.95
) -> tuple[float, str]:
    """Return the percentile up to which enough events support a curve, and its basis above."""
    last = -math.log10(max(1 - limit / 100, 1e-12))
    asked = [100 * (1 - 10.0 ** -(k / _STEPS)) for k in range(2, math.ceil(last * _STEPS) + 1)]
    if not asked:
        return limit, ""
    bursts = bursts_of(asked)
    weak = bursts.first_weak(len(asked), confidence)
    if weak == len(asked):
        return limit, ""
    below = asked[weak - 1] if weak else 0.0
    between = [
        100 - (100 - below) * ((100 - asked[weak]) / (100 - below)) ** (k / _STEPS)
        for k in range(1, _STEPS)
    ]
    solid = [below, *between][bursts_of(between).first_weak(len(between), confidence)]
    (first,) = bursts.events(slice(weak, weak + 1))
    if first.stall_share >= 0.5:
        return solid, format_items(first.stalls, "stall")
    return solid, format_items(first.count, "event") if first.count else ""


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
        reach = np.zeros(begin.size) if longest is None else np.nan_to_num(longest)
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

    def first_weak(self, number: int, confidence: float) -> int:
        """Position, among the first ones, of the percentile from which on all lack events."""
        enough = self._sums[1][:number] >= _least_events(confidence)
        return int(np.flatnonzero(enough)[-1]) + 1 if enough.any() else 0

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


def _turns(rows: int, columns: int) -> Iterator[slice]:
    """Rows of a table a few at a time, so that what is made of them stays small."""
    step = max(1, _AT_ONCE // max(columns, 1))
    return (slice(first, first + step) for first in range(0, rows, step))


def _rolling_median(sizes: Floats, window: int = 11) -> Floats:
    """Median of each value and its neighbours; of all where there are few."""
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
