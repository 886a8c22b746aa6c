"""Whether events come at regular times: garbage collections, cron jobs, compactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram_log import HistogramLog
from latencykit.core.quantiles import median, poisson_at_least
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.core.value import Value, read_only
from latencykit.errors import DataNotAvailableError
from latencykit.units import NANOSECONDS, format_duration

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from latencykit.core.blocks import Block
    from latencykit.core.histogram_log import IntervalSeries

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = [
    "LEVELS",
    "Delayed",
    "Period",
    "SlowFold",
    "Stalls",
    "Trace",
    "evenly_spread",
    "find_stalls",
    "hulls",
    "period_of",
    "stalls_of",
    "stalls_of_log",
    "usual_rate",
]


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

    Rayleigh's test, ``Z²(f) = 2/n |Σ exp(2πi f t)|²`` over frequencies from 3/T to 1.5 n/T; under no period half of it is
    exponential, and there are about three times as many independent frequencies as whole ones. The work grows with the
    square of n, so that of more than 1,000 events the first 1,000 are asked.
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
    sums = np.concatenate(
        [turned @ np.exp(2j * np.pi * f * times) for f in frequencies[::_BLOCK].tolist()]
    )
    power = 2 / n * np.abs(sums[: frequencies.size]) ** 2
    best = float(power.max())
    p = (
        float(-np.expm1(3 * (_HIGHEST * n - _PERIODS + 1) * np.log1p(-np.exp(-best / 2))))
        if best > 0
        else 1.0
    )
    if p > _ALPHA:
        return None
    first = int(np.argmax(power >= _NEAR * best))
    falls = np.flatnonzero(np.diff(power[first:]) < 0)
    peak = first + (int(falls[0]) if falls.size else power.size - 1 - first)
    phase = np.angle(np.exp(2j * np.pi * frequencies[peak] * times).sum()) / (2 * np.pi)
    if np.unique(np.rint(times * frequencies[peak] - phase)).size < _PERIODS:
        return None
    return Period(float(1 / frequencies[peak]), every, max(p, 1e-300))


# ------------------------------------------------------------
# A run as sends and replies: what the tests of samples look at.

_SLOW_GAPS = 5.0  # of the mean gap between sends: no request is called slow below that,
_SLOW_TIMES = 5.0  # nor below so many times the median
_CATCH_UP = 1.0  # of a stall: so long after it sends may be crowded
_QUIET = 0.1  # of the run: less of it tells no usual rate


@dataclass(frozen=True)
class Trace:
    """Requests in the order of the moments that their latency counts from.

    Attributes
    ----------
    due : ndarray of float64, shape (n,)
        That moment (the send, or the intended start where the samples count from it), seconds from the first one.
    end : ndarray of float64, shape (n,)
        The reply, seconds.
    good : ndarray of bool, shape (n,)
        Which requests were answered; the others failed, which is no sign of a server at work.
    """

    due: Floats
    end: Floats
    good: NDArray[np.bool_]

    @classmethod
    def of(cls, samples: Samples) -> Trace:
        """Take all requests that were sent, failed ones too."""
        assert samples.start is not None
        sent = (
            np.ones(len(samples), np.bool_)
            if samples.outcome is None
            else samples.outcome != OUTCOMES.index("dropped")
        )
        good = samples.good[sent]
        counts_from = (
            samples.intended
            if samples.run.measure == "response" and samples.intended is not None
            else samples.start
        )
        due, end = counts_from[sent], (samples.start + samples.duration)[sent]
        order = np.argsort(due, kind="stable")
        origin = due[order[0]] if order.size else 0
        return cls(
            (due[order] - origin) / 1e9, (np.maximum(end, due)[order] - origin) / 1e9, good[order]
        )

    @cached_property
    def took(self) -> Floats:
        """Latency of each request, seconds."""
        return self.end - self.due

    @cached_property
    def usual(self) -> float:
        """Median latency, seconds."""
        return float(np.median(self.took)) if self.took.size else 0.0

    @cached_property
    def span(self) -> float:
        """Seconds from the first to the last send."""
        return float(self.due[-1]) if self.due.size else 0.0

    @cached_property
    def slow_from(self) -> float:
        """Seconds above which a request is slow enough to have kept others from being sent.

        Five mean gaps between sends or five times the median, whichever is more; more again where such requests would
        cover more than half of the run.
        """
        if self.due.size < 2 or not self.span:
            return float("inf")
        limit = max(_SLOW_GAPS * self.span / self.due.size, _SLOW_TIMES * self.usual)
        slow = np.sort(self.took[self.took > limit])
        while (
            slow.size
            and _covered(*hulls(self.due[self.took > limit], self.end[self.took > limit]))
            > self.span / 2
        ):
            limit = float(slow[slow.size // 2])
            slow = slow[slow > limit]
        return float(limit)

    @cached_property
    def grain(self) -> float:
        """Seconds that the clock counts in, or less: the shortest time between any two sends or replies."""
        steps = np.diff(np.sort(np.concatenate((self.due, self.end))))
        return float(steps[steps > 0].min(initial=self.span))

    @cached_property
    def slow(self) -> NDArray[np.bool_]:
        """Which requests are slow."""
        return self.took > self.slow_from

    @cached_property
    def windows(self) -> tuple[Floats, Floats]:
        """Begin and end of the times in which slow requests were under way, overlapping ones merged, seconds."""
        return hulls(self.due[self.slow], self.end[self.slow])

    @cached_property
    def rate(self) -> float:
        """Sends per second outside those times, and outside what may be the catching up after them."""
        begin, end = self.windows
        for reach in (_CATCH_UP * (end - begin), np.zeros(end.size)):
            left, right = hulls(begin, np.minimum(end + reach, self.span))
            quiet = self.span - _covered(left, right)
            outside = self.due.size - int(self.sends_within(left, right).sum())
            if quiet > _QUIET * self.span and outside >= 20:
                return outside / quiet
        return self.due.size / max(self.span, 1e-9)

    def sends_within(self, begin: Floats, end: Floats) -> Ints:
        """Return how many sends lie in each half-open window [begin, end)."""
        found: Ints = np.searchsorted(self.due, end, "left") - np.searchsorted(
            self.due, begin, "left"
        )
        return found

    @cached_property
    def ends(self) -> Floats:
        """All replies in order, seconds."""
        return np.asarray(self.end[self.by_end])

    @cached_property
    def answers(self) -> Floats:
        """Good replies in order, seconds."""
        return np.sort(self.end[self.good])

    @cached_property
    def by_end(self) -> Ints:
        """Requests in the order of their replies."""
        return np.argsort(self.end, kind="stable")

    def ending_within(self, begin: float, end: float) -> Ints:
        """Return the requests that were answered in (begin, end], in the order of their replies."""
        first, last = np.searchsorted(self.ends, (begin, end), "right").tolist()
        return self.by_end[first:last]

    @cached_property
    def idle(self) -> Floats:
        """Seconds from each reply to the send that follows the request's own, ascending; slow requests left out."""
        rest = self.due[1:] - self.end[:-1]
        return np.sort(rest[~self.slow[:-1]])

    def under_way(self, at: Floats) -> Ints:
        """Return how many requests were under way right after each moment."""
        found: Ints = np.searchsorted(self.due, at, "right") - np.searchsorted(
            self.ends, at, "right"
        )
        return found

    def share_above(self, level: int) -> float:
        """Return the part of the run in which more than so many requests were under way."""
        return float(self._time_at[level + 1 :].sum()) / max(self.span, 1e-9)

    @cached_property
    def _time_at(self) -> Floats:
        """Seconds during which 0, 1, 2 … requests were under way."""
        at = np.concatenate((self.due, self.end))
        step = np.concatenate((np.ones(self.due.size, np.int64), np.full(self.end.size, -1)))
        order = np.lexsort((step, at))  # a reply and a send of one moment overlap nowhere
        level = np.cumsum(step[order])[:-1]
        return np.asarray(np.bincount(np.maximum(level, 0), np.diff(at[order])), np.float64)


def hulls(begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Merge windows that overlap: begins and ends of what they cover, ascending."""
    if not begin.size:
        return np.zeros(0), np.zeros(0)
    order = np.argsort(begin, kind="stable")
    left, right = begin[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], left[1:] > right[:-1]))
    return left[first], right[np.concatenate((first[1:], [True]))]


def _covered(begin: Floats, end: Floats) -> float:
    return float((end - begin).sum())


# ------------------------------------------------------------
# Stalls in an interval log: from long maxima, if counts or latencies bear them out, and from
# intervals that ended late.
#
# One slow request makes a long maximum, too. That something was stopped shows in the counts (too few replies meanwhile), in
# the latencies (those that arrived during a stall of d seconds take from d down to nothing, evenly), or in the logger itself.

LEVELS = (0.1, 0.2, 0.4, 0.5, 0.6, 0.8)
"""Parts of a stall's longest latency above which requests are counted."""
_GAPS = 20.0  # mean gaps between requests, and
_TIMES = 20.0  # medians: a maximum above both may be a stall,
_SHARE = 0.02  # if it is not below this part of an interval: it could not be seen in the counts
_STRETCH = 0.2  # of the usual length of an interval: one that is longer by that ended late
_FEW = 0.5  # of the usual requests: fewer were answered while the server was stopped
_CHANCE = 3.0  # standard deviations of the counts: a shortfall below that is chance
_CORE = (
    5.0  # requests that intervals within a stall must have room for, to show that few were answered
)
_EVEN = 0.5  # of the requests that a stall delays: each fifth of its length has that many of them,
_BIN = 4.0  # where it has room for so many,
_PART = 0.1  # of the requests: fewer that were delayed are no part of a server that was stopped
_CLEAR = 50.0  # requests of a part that was stopped: with fewer it could be independent slow ones
_LONG = 4.0  # times its length: what a stall delayed is answered by then
_BEHIND = (
    0.25  # of its length: so soon after a stall latencies are those of the backlog that drains
)
_DRAIN = 10.0  # and no more than so many times as many: a queue that drains behind the stall
_WARM = 3.0  # medians: an interval at the run's begin whose own median is above that belongs to its warm-up
_HICCUP = 3.0  # requests: a slow one that takes the time of so many shows whether they are missing
_STEADY = 50.0  # requests that a stretch should count for a usual rate


def usual_rate(series: IntervalSeries) -> float:
    """Return requests per second of an ordinary stretch of the log: the median over those with any, or 0."""
    used = (series.count > 0) & (series.length > 0)
    if not used.any():
        return 0.0
    order = np.argsort(series.start[used], kind="stable")
    count, length = series.count[used][order], series.length[used][order]
    together = int(np.clip(np.ceil(_STEADY / float(median(count))), 1, max(count.size // 8, 1)))
    first = np.arange(0, count.size - together + 1, together)
    return float(
        median(
            np.add.reduceat(count, first)[: first.size]
            / np.add.reduceat(length, first)[: first.size]
        )
    )


@dataclass(frozen=True, eq=False)
class Delayed(Value):
    """What the intervals of each stall counted: arrays of one length, except `wavering` and `usual`.

    Attributes
    ----------
    above : ndarray of float64, shape (levels, stalls)
        Requests that took longer than each of `LEVELS`, as part of the stall's longest latency.
    beside : ndarray of float64, shape (levels, stalls)
        How many would take so long in that time, going by the intervals without any stall.
    short : ndarray of float64, shape (stalls,)
        By how much its intervals counted less than the usual rate implies.
    noise : ndarray of float64, shape (stalls,)
        Standard deviation of that.
    wavering, usual : float
        Standard deviation and median of the counts of intervals without any stall; NaN with fewer than three.
    alone : bool
        Whether intervals without any stall lose about as many requests as their longest one takes the time of: a single
        connection that waits for each reply.
    """

    above: Floats
    beside: Floats
    short: Floats
    noise: Floats
    wavering: float
    usual: float
    alone: bool


class SlowFold:
    """Counts, of every interval, the values above parts of a latency: a fold for `HistogramLog.scan`."""

    def __init__(self, reference: Floats) -> None:
        self._reference = reference
        self.counts = np.zeros((len(LEVELS), reference.size), np.int64)

    def add(self, block: Block) -> None:
        """Take a block in."""
        value, entry = block.buckets.high(block.index), block.entry_rows
        part = value / self._reference[block.rows][entry]
        slow = np.flatnonzero(part > LEVELS[0])
        part, entry, counts = part[slow], entry[slow], block.counts[slow]
        for k, level in enumerate(LEVELS):
            above = np.bincount(entry, np.where(part > level, counts, 0), minlength=block.rows.size)
            self.counts[k, block.rows] = above.astype(np.int64)


@dataclass(frozen=True)
class _Rows:
    """The intervals in the order of time, seconds."""

    start: Floats
    length: Floats
    count: Floats
    worst: Floats
    middle: Floats
    rate: float
    usual: float

    @property
    def stop(self) -> Floats:
        return self.start + self.length

    @cached_property
    def room(self) -> Floats:
        """Requests that the usual rate has for each interval; none behind the last that counted half as many.

        What is counted there was sent before: traffic had ended.
        """
        room = self.rate * self.length
        full = np.flatnonzero(self.count >= _FEW * room)
        room[int(full[-1]) + 1 if full.size else 0 :] = 0.0
        if self.count[0]:  # traffic began within it
            room[0] = min(room[0], self.count[0])
        return room


def stalls_of_log(log: HistogramLog, series: IntervalSeries | None = None) -> Stalls:
    """Return the stalls of a log; see `find_stalls`."""
    series = series if series is not None else log.series((50,))
    factor = NANOSECONDS.get(series.unit, 1.0)
    order = np.argsort(series.start, kind="stable")
    rate, middle = usual_rate(series), series.values[order, 0] * factor / 1e9
    if not rate:
        return Stalls.none()
    rows = _Rows(
        series.start[order], series.length[order], series.count[order].astype(np.float64),
        np.nan_to_num(series.max[order]) * factor / 1e9, middle, rate, float(median(middle[~np.isnan(middle)])),
    )  # fmt: skip
    nominal = float(median(rows.length))
    limit = max(_GAPS / rate, _TIMES * rows.usual, _SHARE * nominal)
    late = rows.length > nominal * (1 + _STRETCH) + rows.usual
    late[-1:] = False  # the last interval ends with the run
    late &= rows.length - nominal > limit
    begin, end = _placed(rows, late, limit)
    begin = np.concatenate((begin, rows.stop[late] - (rows.length - nominal)[late]))
    end = np.concatenate((end, rows.stop[late]))
    if not begin.size:
        return Stalls.none()
    return _borne_out(log, rows, order, late, begin, end, factor)


def _placed(rows: _Rows, late: NDArray[np.bool_], limit: float) -> tuple[Floats, Floats]:
    """Where the stall behind each long maximum lies.

    It ended within the interval that counted it, so it began within [t − max, t + len − max]. Where intervals before
    counted little or nothing, their counts tell when: so long as the usual rate takes for them. Where the logger itself
    was delayed, the interval ended with the stall.
    """
    slow = np.flatnonzero(rows.worst > limit)
    took = rows.worst[slow]
    earliest, latest = rows.start[slow] - took, rows.stop[slow] - took
    begin = np.where(late[slow], latest, (earliest + latest) / 2)
    low = np.flatnonzero(rows.count < rows.rate * rows.length / 2)
    first = np.maximum(np.searchsorted(rows.start, earliest, "right") - 1, 0)
    at = np.searchsorted(low, first)  # the first interval since then that counted little
    found = at < low.size
    found[found] = low[at[found]] < slow[found]
    last_full = np.maximum(low[at[found]] - 1, 0)
    total = np.concatenate(([0.0], np.cumsum(rows.count)))
    begin[found] = rows.start[last_full] + (total[slow[found]] - total[last_full]) / rows.rate
    begin = np.clip(begin, earliest, latest)
    return begin, begin + took


def _borne_out(
    log: HistogramLog,
    rows: _Rows,
    order: Ints,
    late: NDArray[np.bool_],
    begin: Floats,
    end: Floats,
    factor: float,
) -> Stalls:
    """The stalls among these that counts, latencies or the logger bear out, and what the intervals say of each.

    Of those that overlap the longest is the stall; what remains of the others is the backlog that drains.
    """
    left, right = hulls(begin, end)
    group = np.searchsorted(left, begin, "right") - 1
    longest = np.lexsort((end - begin, group))[
        np.searchsorted(np.sort(group), np.arange(left.size), "right") - 1
    ]
    begin, end = begin[longest], end[longest]
    usual, wavering = _counts_beside(rows, *_touched(rows, left, right))
    silent, halted = _halted(rows, late, begin, end, *_touched(rows, left, right), wavering)
    follows = begin - np.concatenate(([-np.inf], right[:-1])) <= _BEHIND * (end - begin) + float(
        median(rows.length)
    )
    backlog = follows & (end - begin <= np.concatenate(([0.0], (end - begin)[:-1]))) & ~halted
    whose = np.flatnonzero(~backlog)
    begin, end, left = begin[whose], end[whose], left[whose]
    right = np.append(right, 0.0)[np.append(whose[1:], backlog.size) - 1]
    first, last = _touched(rows, left, right)
    silent, halted = _halted(rows, late, begin, end, first, last, wavering)
    number = last - first
    touched = _positions(first, last)
    duration = end - begin
    worst = np.maximum.reduceat(rows.worst[touched], np.concatenate(([0], np.cumsum(number)[:-1])))
    worst = np.where(worst > 0, worst, duration)
    reference = np.zeros(rows.start.size)
    np.maximum.at(reference, touched, np.repeat(worst, number))
    quiet = (reference == 0) & (rows.stop < rows.stop.max() - 1e-9)  # the last interval is cut
    reference[reference == 0] = worst.max()
    in_order = np.empty(rows.start.size)
    in_order[order] = reference * 1e9 / factor
    fold = SlowFold(in_order)
    log.scan(fold)
    above = _own_sums(fold.counts[:, order], first, last, duration)
    covered, due = _own_sums(rows.length, first, last, duration), rows.rate * duration
    lost = rows.room - np.where(rows.room > 0, rows.count, 0)
    short, noise = _own_sums(lost, first, last, duration), wavering * np.sqrt(number)
    share = np.clip(above[3] / np.maximum(due / 2, 1e-9), 0.0, 1.0)
    even = share >= np.clip(_CLEAR / np.maximum(due, 1.0), _PART, _EVEN)
    even &= covered <= _LONG * (
        duration + float(median(rows.length))
    )  # else requests are slow throughout
    even &= above[1] <= _DRAIN * due
    even &= evenly_spread(above, np.zeros_like(above), share * due, _BIN)
    others = np.ones(rows.start.size, np.bool_)  # which may be slow as well, of themselves
    stalled = halted | even
    others[_positions(first[stalled], last[stalled])] = False
    beside = np.zeros_like(above)
    if others.sum() >= 3:
        beside = (
            fold.counts[:, order][:, others].sum(axis=1)[:, None]
            / max(float(rows.length[others].sum()), 1e-9)
            * covered
        )
    even &= evenly_spread(above, beside, share * due, _BIN)
    notes, warm = _warm_up(
        rows,
        begin,
        np.where(silent | (_sums(late.astype(np.int64), first, last) > 0), duration, 0.0),
    )
    stood = halted | even
    kept = stood & ~warm
    missing = np.where(
        short >= _CHANCE * noise, np.clip(np.rint(short), 0, np.maximum(np.rint(due), 0)), 0
    )
    share = np.where(halted, 1.0, share)
    counts = Delayed(
        above[:, kept],
        beside[:, kept],
        short[kept],
        noise[kept],
        wavering,
        usual,
        _waits_alone(rows, quiet),
    )
    isolated = int((~stood & ~warm).sum())
    if isolated:
        times = "once" if isolated == 1 else f"{isolated:,} times"
        notes = (
            *notes,
            f"{times} requests were slow while others were answered as usual: not a stall",
        )
    return Stalls(
        begin[kept],
        end[kept],
        worst[kept] * 1e9,
        missing[kept].astype(np.int64),
        share[kept],
        notes,
        delayed=counts,
    )


def _touched(rows: _Rows, left: Floats, right: Floats) -> tuple[Ints, Ints]:
    """First interval, and the one behind the last, that may have counted what a stall delayed: it is known to about one."""
    first = np.maximum(np.searchsorted(np.maximum.accumulate(rows.stop), left, "right") - 1, 0)
    last = np.minimum(np.searchsorted(rows.start, right, "left") + 1, rows.start.size)
    return first, np.maximum(last, first + 1)


def _positions(first: Ints, last: Ints) -> Ints:
    number = last - first
    if not number.size:
        return np.zeros(0, np.int64)
    return np.repeat(first - np.concatenate(([0], np.cumsum(number)[:-1])), number) + np.arange(
        number.sum()
    )


def _counts_beside(rows: _Rows, first: Ints, last: Ints) -> tuple[float, float]:
    """Median and standard deviation of the counts of intervals without any stall (of all, where these are too few)."""
    quiet = rows.stop < rows.stop.max() - 1e-9  # the last interval is cut
    quiet[_positions(first, last)] = False
    if quiet.sum() < 3:
        quiet[:] = True
    away = np.abs(rows.count - rows.rate * rows.length)[quiet]
    return float(median(rows.count[quiet])), max(1.4826 * float(median(away)), 0.5)


def _halted(
    rows: _Rows,
    late: NDArray[np.bool_],
    begin: Floats,
    end: Floats,
    first: Ints,
    last: Ints,
    wavering: float,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which stalls had few replies within, and which kept requests or the logger from going on: those, fewer around, late."""
    within, behind = (
        np.searchsorted(rows.start, begin, "left"),
        np.searchsorted(rows.stop, end, "right"),
    )
    behind = np.maximum(within, behind)
    room, lost = rows.room, rows.room - np.where(rows.room > 0, rows.count, 0)
    silent = (_sums(room, within, behind) >= _CORE) & (
        _sums(lost, within, behind) >= (1 - _FEW) * _sums(room, within, behind)
    )
    chance = _CHANCE * wavering * np.sqrt(last - first)
    lacking = _own_sums(lost, first, last, end - begin) >= np.maximum(
        np.maximum(_FEW * rows.rate * (end - begin), chance), _CORE
    )
    return silent, np.asarray(silent | lacking | (_sums(late.astype(np.int64), first, last) > 0))


def evenly_spread(above: Floats, beside: Floats, due: Floats, least: float) -> NDArray[np.bool_]:
    """Whether latencies fill each fifth of a stall's length (but the lowest) as those do who arrive all through it."""
    fifths = [LEVELS.index(part) for part in (0.2, 0.4, 0.6, 0.8)]
    fill = -np.diff((above - beside)[fifths], axis=0, append=np.zeros((1, due.size)))
    chance = _CHANCE * np.sqrt(
        np.maximum(-np.diff(beside[fifths], axis=0, append=np.zeros((1, due.size))), 0.0)
    )
    return np.asarray(
        (0.2 * due >= least) & (fill >= np.maximum(_EVEN * 0.2 * due, chance)).all(axis=0)
    )


def _warm_up(
    rows: _Rows, begin: Floats, silent: Floats
) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Name the warm-up, and which stalls are part of it: the first intervals are slow throughout, and yet answer.

    `silent` are the seconds of each in which nothing was answered.
    """
    slow = (rows.middle > _WARM * rows.usual) | (rows.count == 0)
    lead = int(np.argmin(slow)) if not slow.all() else 0
    if (
        not lead
        or lead > rows.start.size / 2
        or rows.count[:lead].sum() < _FEW * rows.room[:lead].sum()
    ):
        return (), np.zeros(begin.size, np.bool_)
    until = float(rows.stop[lead - 1])
    warm = (begin < until) & (silent < (until - float(rows.start[0])) / 2)
    if not warm.any():
        return (), warm
    seconds = format_duration((until - float(rows.start[0])) * 1e9)
    return (
        f"warm-up: the first {seconds} were slow throughout, though requests were answered: not a stall",
    ), warm


def _waits_alone(rows: _Rows, quiet: NDArray[np.bool_]) -> bool:
    """Whether a slow request costs the requests that its time has room for, in intervals without a stall, too."""
    lost = np.maximum(rows.worst * rows.rate - 1.0, 0.0)
    hiccup = quiet & (lost >= _HICCUP)
    if hiccup.sum() < 2 or (quiet & ~hiccup).sum() < 3:
        return False
    short = rows.rate * rows.length - rows.count
    usual = float(median(short[quiet & ~hiccup]))
    return bool((short[hiccup] - usual >= lost[hiccup] / 2).mean() >= 0.75)


def _sums(values: Floats | Ints, first: Ints, last: Ints) -> Floats:
    """Sums over the half-open ranges of the last axis."""
    total = np.concatenate((np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)), axis=-1)
    return np.asarray(total[..., last] - total[..., first])


def _own_sums(values: Floats | Ints, first: Ints, last: Ints, size: Floats) -> Floats:
    """The same over ranges that may overlap: what two of them share is the larger one's."""
    touched, whose = _positions(first, last), np.repeat(np.arange(first.size), last - first)
    largest = np.zeros(values.shape[-1])
    np.maximum.at(largest, touched, size[whose])
    own = np.where(size[whose] >= largest[touched], values[..., touched], 0)
    return np.asarray(
        np.add.reduceat(own, np.searchsorted(whose, np.arange(first.size)), axis=-1), np.float64
    )


# ------------------------------------------------------------
# `find_stalls`: the times in which a server was stopped, as the latencies show them.

_STALLS_ALPHA = 0.01  # of taking any chance gap between replies for a stall
_HELD = 0.5  # of a gap between replies: some request must have waited so long
_STEP = 0.02  # of the step of a clock: latencies that carry it agree so closely
_RAMP = 0.25  # of the spread of sends: replies that end together are spread no wider
_STALLS_DRAIN = (
    0.25  # of its length: so soon after a stall no part of the server is stopped by itself
)
_STALLS_CHANCE = 3.0  # standard deviations of a Poisson count: so many sends may lack by chance
_PARTIAL = 3  # requests that must end together before part of a server is said to have was stopped


@dataclass(frozen=True, eq=False)
class Stalls(Value):
    """Times in which nothing, or a part of a server, answered: arrays of one length, ascending.

    Attributes
    ----------
    start, end : ndarray of float64, shape (stalls,)
        Seconds from the begin of the series.
    worst : ndarray of float64, shape (stalls,)
        Longest latency that it caused, ns.
    missing : ndarray of int64, shape (stalls,)
        Requests that the usual rate would have sent meanwhile and that were not sent then; 0 where that may be chance.
    share : ndarray of float64, shape (stalls,)
        Part (0..1) of the requests of that time that it delayed.
    notes : tuple of str
        Steps of a clock, a warm-up, a period, and other things to know.
    delayed : Delayed or None
        What the intervals of a log counted in each.
    """

    start: Floats
    end: Floats
    worst: Floats
    missing: Ints
    share: Floats
    notes: tuple[str, ...] = field(default=())
    delayed: Delayed | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return int(self.start.size)

    @property
    def duration(self) -> Floats:
        """Length of each, seconds."""
        return read_only(self.end - self.start)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per stall."""
        import pandas as pd

        columns = {
            name: getattr(self, name)
            for name in ("start", "end", "duration", "worst", "missing", "share")
        }
        frame = pd.DataFrame(columns)
        frame.attrs["notes"] = list(self.notes)
        return frame

    @classmethod
    def none(cls, *notes: str) -> Stalls:
        """Return no stalls at all."""
        empty = np.zeros(0)
        return cls(empty, empty, empty, np.zeros(0, np.int64), empty, notes)


def find_stalls(data: Samples | HistogramLog) -> pd.DataFrame:
    """Find the times in which a server was stopped.

    In samples a stall is a time without any reply though a request was waiting, longer than the gaps between replies
    usually are; or requests that were sent at various times and end all at once, which is what one stalled shard looks
    like. In a log it is what intervals with long maxima, and intervals that the logger itself could not end in time, say
    together; it is known to about one interval. A maximum alone is not one: fewer replies than usual, latencies spread
    evenly up to it as of those who arrived all through the stall, or an interval that ended late must bear it out.

    Parameters
    ----------
    data : Samples or HistogramLog
        Samples need start times.

    Returns
    -------
    DataFrame
        One row per stall: ``start``, ``end``, ``duration`` (seconds), ``worst`` (ns), ``missing`` (requests that the
        usual rate would have sent meanwhile), ``share`` (part of that time's requests that were delayed). Its
        ``attrs["notes"]`` name steps of a clock, a warm-up and isolated slow requests, which are not stalls, and a period
        (from 8 stalls in at least four periods on).

    Raises
    ------
    DataNotAvailableError
        For histograms and summaries, which know no time, and for samples without start times.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall, paced_loop
    >>> found = find_stalls(paced_loop(Server("1ms", stalls=[Stall(4, 2)]), rate=100, duration=10))
    >>> found[["start", "end", "duration", "missing"]].round(2).values.tolist()
    [[4.0, 6.0, 2.0, 199.0]]
    """
    return stalls_of(data).to_frame()


def stalls_of(
    data: Any, series: IntervalSeries | None = None, trace: Trace | None = None
) -> Stalls:
    """Return what `find_stalls` finds, as arrays; `series` is a log's, with its medians, where it or a trace is at hand."""
    if isinstance(data, HistogramLog):
        found = stalls_of_log(data, series)
    elif isinstance(data, Samples) and data.start is not None:
        found = _stalls_of_trace(trace if trace is not None else Trace.of(data))
    else:
        raise DataNotAvailableError(
            "this source does not know when requests were sent; a log, or samples with start times, would tell stalls"
        )
    period = period_of(found.end, data.elapsed if isinstance(data, Samples) else data.duration)
    return (
        found if period is None else Stalls(**vars(found) | {"notes": (*found.notes, period.words)})
    )


def _stalls_of_trace(trace: Trace) -> Stalls:
    if trace.due.size < 2:
        return Stalls.none()
    begin, end, notes = _gaps(trace)
    left, right = _parts(trace, begin, end)
    before = np.concatenate(([-np.inf], end))[np.searchsorted(end, left, "right")]
    own = left - before > _STALLS_DRAIN * (
        right - left
    )  # else it is the backlog of the stall before that drains
    left, right = left[own], right[own]
    begin, end = hulls(np.concatenate((begin, left)), np.concatenate((end, right)))
    if not begin.size:
        return Stalls.none(*notes)
    due = trace.rate * (np.minimum(end, trace.span) - begin)
    lacking = due - trace.sends_within(begin, end)
    slow = trace.took > 2 * trace.usual
    sent, late, ended = trace.due[slow], end - _STEP * (end - begin), np.sort(trace.end[slow])
    by_then = np.searchsorted(trace.due, end, "right")
    waiting = by_then - np.searchsorted(
        trace.ends, begin, "right"
    )  # sent by the end and answered after the begin,
    kept = np.searchsorted(sent, end, "right") - np.searchsorted(
        ended, late, "left"
    )  # and slow, and answered at the end
    return Stalls(
        begin,
        end,
        _longest_across(trace, begin, end) * 1e9,
        np.where(
            lacking > _STALLS_CHANCE * np.sqrt(np.maximum(due, 1)), np.rint(lacking), 0
        ).astype(np.int64),
        np.clip(kept / np.maximum(waiting, 1), 0.0, 1.0),
        notes,
    )


def _longest_across(trace: Trace, begin: Floats, end: Floats) -> Floats:
    """The longest request under way in each of some disjoint ascending windows, seconds.

    A request lies across a run of windows: it is entered at two powers of two that cover the run, and each power hands
    what it holds down to its halves.
    """
    first, last = (
        np.searchsorted(end, trace.due, "left"),
        np.searchsorted(begin, trace.end, "right") - 1,
    )
    across = first <= last
    first, last, took = first[across], last[across], trace.took[across]
    power = np.log2(last - first + 1).astype(np.int64)
    most = np.zeros((int(power.max(initial=0)) + 1, begin.size))
    np.maximum.at(most, (power, first), took)
    np.maximum.at(most, (power, last - 2**power + 1), took)
    for level in range(most.shape[0] - 1, 0, -1):
        half = 2 ** (level - 1)
        np.maximum(most[level - 1], most[level], out=most[level - 1])
        np.maximum(most[level - 1, half:], most[level, :-half], out=most[level - 1, half:])
    return np.asarray(most[0])


def _gaps(trace: Trace) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Times without a reply in which a request waited; steps of the clock and a warm-up are named instead."""
    ends = np.concatenate(([0.0], trace.answers))
    limit = max(np.log(trace.due.size / _STALLS_ALPHA) / trace.rate, 2 * trace.usual)
    at = np.flatnonzero(np.diff(ends) > limit)
    if not at.size:
        return np.zeros(0), np.zeros(0), ()
    a, b = ends[at], ends[at + 1]
    good = trace.by_end[trace.good[trace.by_end]]
    earliest = np.minimum.accumulate(trace.due[good][::-1])[::-1]  # of those answered then or later
    since = np.maximum(a, earliest[np.searchsorted(trace.answers, b, "left")])
    waited = np.searchsorted(trace.due, b, "left") - np.searchsorted(trace.ends, b, "left")
    alone = bool((trace.under_way(trace.due) <= 1).all())
    kept = (waited > 0) & (b - since >= np.maximum(_HELD * (b - a), limit))
    kept &= (waited > 1) | (b <= trace.span) | alone  # else it is the last one, long after all
    last = trace.took[
        good[np.searchsorted(trace.answers, b, "left")]
    ]  # of what was under way when sends ended, some
    inside = (
        np.minimum(b, trace.span) - since
    )  # is slow by itself: each of its replies comes long after the one before
    kept &= (since <= trace.span) & ((inside >= limit) | (last <= 2 * (b - since)))
    begin, end, notes = [], [], []
    usually = int(np.quantile(trace.under_way(trace.due), 0.99)) if kept.any() else 0
    for k in np.flatnonzero(kept).tolist():
        left, right = float(a[k]), float(b[k])
        if _clock_step(trace, left, right, usually):
            notes.append(
                f"the clock seems to have been set forward by about {right - left:.3g} s at {left:.3g} s: not a stall"
            )
            continue
        begin.append(float(since[k]))
        end.append(right)
    if begin and (until := _stalls_warm_up(trace, begin[0], end[0])):
        notes.append(
            f"warm-up: requests of the first {until:.3g} s were slow, though they were answered: not a stall"
        )
        begin, end = begin[1:], end[1:]
    return np.array(begin, np.float64), np.array(end, np.float64), tuple(notes)


def _stalls_warm_up(trace: Trace, begin: float, end: float) -> float:
    """Seconds for which the first requests were slow and were yet answered one after the other; 0 where they were not.

    The first reply of a run comes late then, which is no stall: what was stopped is answered all at once.
    """
    left, right = trace.windows
    if not left.size or left[0] > 5 / trace.rate or begin > right[0]:
        return 0.0
    answered = int(np.searchsorted(trace.answers, right[0])) - int(
        np.searchsorted(trace.answers, end + 0.1 * (end - begin))
    )
    steady = answered >= 0.5 * trace.rate * (right[0] - end) and right[0] - begin > 1.5 * (
        end - begin
    )
    return float(right[0]) if steady and begin <= 5 / trace.rate else 0.0


def _clock_step(trace: Trace, a: float, b: float, usually: int) -> bool:
    """Whether those under way carry one and the same extra latency while all others went on as if nothing had been.

    In a stall anyone who sends is delayed, so that as many requests wait as there are connections, or more and more; at a
    step of the clock only those wait that were under way at that moment, and nobody sends in the time that never was.
    """
    sent = int(trace.sends_within(np.array([a]), np.array([b]))[0])
    late = trace.ending_within(np.nextafter(b, 0.0), b + 10 * trace.usual)
    waits = trace.took[late[trace.due[late] < b]]
    alike = (
        waits.size > 1
        and float(np.ptp(waits)) < max(_STEP * (b - a), 4 * trace.usual)
        and float(np.ptp(waits)) < 10 * trace.usual
    )
    return sent <= 1 and alike and waits.size < usually


def _parts(trace: Trace, begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Slow requests outside the gaps that were sent at various times and end at once: a part of the server was stopped."""
    beside = np.zeros(trace.due.size, np.bool_)
    if begin.size:
        next_gap = np.searchsorted(end, trace.due, "right")  # the first that ends after the send
        beside = np.concatenate((begin, [np.inf]))[next_gap] < trace.end
    slow = np.flatnonzero((trace.took > trace.slow_from) & ~beside)
    slow = slow[np.argsort(trace.end[slow], kind="stable")]
    if slow.size < _PARTIAL:
        return np.zeros(0), np.zeros(0)
    took, sent, ended = trace.took[slow], trace.due[slow], trace.end[slow]
    apart = np.concatenate(([True], np.diff(ended) > 0.1 * np.minimum(took[1:], took[:-1])))
    first = np.flatnonzero(apart)
    number = np.diff(np.append(first, slow.size))
    spread = np.maximum.reduceat(sent, first) - np.minimum.reduceat(sent, first)
    longest, begin_of, end_of = (
        np.maximum.reduceat(took, first),
        ended[first],
        np.maximum.reduceat(ended, first),
    )
    others = slow.size / max(trace.span, 1e-9) * np.maximum(end_of - begin_of, trace.grain)
    stood = (number >= _PARTIAL) & (
        slow.size * poisson_at_least(number - 1, others) < _STALLS_ALPHA
    )
    stood &= (end_of - begin_of <= _RAMP * spread) & (spread >= _HELD * longest)
    return begin_of[stood] - longest[stood], begin_of[stood]
