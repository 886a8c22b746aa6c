"""`find_stalls`: the times during which a server was stopped, as the latencies show them.

From top to bottom: the result and the operation, stalls of samples, stalls of an interval log, and
the test for a period.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._records import record
from latencykit.core.blocks import TopFold, feed
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
    Flags = NDArray[np.bool_]

__all__ = [
    "LEVELS",
    "Delayed",
    "Period",
    "SlowFold",
    "Stalls",
    "Trace",
    "evenly_spread",
    "find_stalls",
    "first_pass_over",
    "hulls",
    "pauses",
    "period_of",
    "stalls_of",
    "usual_rate",
]


@record(eq=False)
class Stalls(Value):
    """Times during which (part of) a server did not answer: arrays of one length, ascending."""

    start: Floats  # seconds from the start of the series
    end: Floats
    worst: Floats  # longest latency that the stall caused, ns
    missing: Ints  # requests due at the usual rate but not sent; 0 where that may be chance
    share: Floats  # part (0..1) of that time's requests that were delayed
    notes: tuple[str, ...] = field(default=())  # clock steps, a warm-up, a period …
    delayed: Delayed | None = field(default=None, repr=False)  # what a log's intervals counted
    pause: tuple[float, float] | None = None  # the longest time with nothing recorded, seconds

    def __len__(self) -> int:
        return int(self.start.size)

    @property
    def duration(self) -> Floats:
        """Length of each, seconds."""
        return read_only(self.end - self.start)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per stall."""
        import pandas as pd

        names = ("start", "end", "duration", "worst", "missing", "share")
        frame = pd.DataFrame({name: getattr(self, name) for name in names})
        frame.attrs["notes"] = list(self.notes)
        return frame

    @classmethod
    def none(cls, *notes: str) -> Stalls:
        """Return no stalls at all."""
        empty = np.zeros(0)
        return cls(empty, empty, empty, np.zeros(0, np.int64), empty, notes)


def find_stalls(data: Samples | HistogramLog) -> pd.DataFrame:
    """Find the times during which a server was stopped.

    In samples a stall is a time without any reply while a request was waiting, longer than the
    gaps between replies usually are; or requests that were sent at various times and end all at
    once, as one stalled shard leaves them. In a log it follows from intervals with long maxima, and
    from intervals that the logger itself could not end in time; it is known to about one interval.
    A maximum alone is not a stall: fewer replies than usual, latencies spread evenly up to it, or
    an interval that ended late must confirm it.

    Parameters
    ----------
    data : Samples or HistogramLog
        Samples need start times.

    Returns
    -------
    DataFrame
        One row per stall: ``start``, ``end``, ``duration`` (seconds), ``worst`` (ns), ``missing``
        (requests that the usual rate would have sent meanwhile), ``share`` (part of that time's
        requests that were delayed). Its ``attrs["notes"]`` name clock steps, a warm-up and isolated
        slow requests, which are not stalls, and a period (of 8 stalls or more, in at least four
        periods).

    Raises
    ------
    DataNotAvailableError
        For histograms and summaries, which have no time, and for samples without start times.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall, paced_loop
    >>> stalls = find_stalls(paced_loop(Server("1ms", stalls=[Stall(4, 2)]), rate=100, duration=10))
    >>> stalls[["start", "end", "duration", "missing"]].round(2).values.tolist()
    [[4.0, 6.0, 2.0, 199.0]]
    """
    return stalls_of(data).to_frame()


def stalls_of(
    data: Any,
    first_pass: tuple[IntervalSeries, TopFold | None] | None = None,
    trace: Trace | None = None,
) -> Stalls:
    """Return the stalls as arrays; `first_pass` over a log, or `trace`, if at hand."""
    if isinstance(data, HistogramLog):
        data = data if first_pass else data.in_succession()
        series, top = first_pass or first_pass_over(data)
        stalls = _stalls_of_log(data, series, top)
        used, factor = series.count > 0, NANOSECONDS.get(series.unit, 0.0) / 1e9
        begin, end = pauses(
            (series.start - np.nan_to_num(series.max) * factor)[used],
            (series.start + series.length)[used],
            usual_rate(series),
        )
    elif isinstance(data, Samples) and data.start is not None:
        trace = trace if trace is not None else Trace.of(data)
        stalls = _stalls_of_trace(trace)
        begin, end = trace.pauses
    else:
        raise DataNotAvailableError(
            "this source does not know when requests were sent; stalls need a log, or samples with "
            "start times"
        )
    if begin.size:
        longest = int((end - begin).argmax())
        stalls = replace(stalls, pause=(float(begin[longest]), float(end[longest])))
    period = period_of(stalls.end, data.elapsed if isinstance(data, Samples) else data.duration)
    if period is None:
        return stalls
    return replace(stalls, notes=(*stalls.notes, period.words))


_PAUSES = 3  # more gaps that are as long are how the traffic is
_PAUSE_TIMES = 5.0  # the longest of the other gaps
_PAUSE_DUE = 30.0  # requests that would have been due; by chance a dozen are


def pauses(begin: Floats, end: Floats, rate: float) -> tuple[Floats, Floats]:
    """Return the few long times without any request under way, given when each was."""
    left, right = hulls(begin, end)
    gap = left[1:] - right[:-1]
    if not gap.size or not rate:
        return np.zeros(0), np.zeros(0)
    other = float(np.sort(gap)[-_PAUSES - 1]) if gap.size > _PAUSES else 0.0
    long = gap > max(_PAUSE_TIMES * other, _PAUSE_DUE / rate)
    return right[:-1][long], left[1:][long]


# ------------------------------------------------------------
# A run as sends and replies: what the tests of samples examine.

_SLOW_GAPS = 5.0  # of the mean gap between sends: no shorter request counts as slow,
_SLOW_TIMES = 5.0  # nor does one below that many medians
_CATCH_UP = 1.0  # of a stall: sends may be crowded for that long after it
_QUIET = 0.1  # of the run: a usual rate needs more than that outside stalls


@record()
class Trace:
    """Requests in the order of the moments that their latency counts from."""

    due: Floats  # that moment (send or intended start), seconds from the first one
    end: Floats  # the reply, seconds
    good: Flags  # answered; failures do not show that the server works

    @classmethod
    def of(cls, samples: Samples) -> Trace:
        """Take all requests that were sent, failed ones too."""
        assert samples.start is not None
        sent = np.ones(len(samples), np.bool_)
        if samples.outcome is not None:
            sent = samples.outcome != OUTCOMES.index("dropped")
        counts_from = samples.start
        if samples.run.measure == "response" and samples.intended is not None:
            counts_from = samples.intended
        good, due, end = (
            samples.good[sent],
            counts_from[sent],
            (samples.start + samples.duration)[sent],
        )
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
    def pauses(self) -> tuple[Floats, Floats]:
        """Start and end of the few long times without any request."""
        return pauses(self.due, self.end, self.due.size / max(self.span, 1e-9))

    @cached_property
    def active(self) -> float:
        """Seconds from the first to the last send, without pauses."""
        return self.span - _covered(*self.pauses)

    @cached_property
    def slow_from(self) -> float:
        """Seconds above which a request is slow enough to have kept others from being sent.

        Five mean gaps between sends or five times the median, whichever is more; more again where
        such requests would cover more than half of the run.
        """
        if self.due.size < 2 or not self.span:
            return float("inf")
        limit = max(_SLOW_GAPS * self.active / self.due.size, _SLOW_TIMES * self.usual)
        slow = np.sort(self.took[self.took > limit])
        while slow.size:
            longer = self.took > limit
            if _covered(*hulls(self.due[longer], self.end[longer])) <= self.span / 2:
                break
            limit = float(slow[slow.size // 2])
            slow = slow[slow > limit]
        return float(limit)

    @cached_property
    def grain(self) -> float:
        """Resolution of the clock or less: the shortest time between any two sends or replies."""
        steps = np.diff(np.sort(np.concatenate((self.due, self.end))))
        return float(steps[steps > 0].min(initial=self.span))

    @cached_property
    def slow(self) -> Flags:
        """Mask of the slow requests."""
        return self.took > self.slow_from

    @cached_property
    def windows(self) -> tuple[Floats, Floats]:
        """Start and end of the times with slow requests under way, merged, seconds."""
        return hulls(self.due[self.slow], self.end[self.slow])

    @cached_property
    def rate(self) -> float:
        """Sends per second outside those times, and outside possible catching up after them."""
        begin, end = self.windows
        for reach in (_CATCH_UP * (end - begin), np.zeros(end.size)):
            left, right = hulls(begin, np.minimum(end + reach, self.span))
            quiet = self.active - _covered(left, right)
            outside = self.due.size - int(self.sends_within(left, right).sum())
            if quiet > _QUIET * self.span and outside >= 20:
                return outside / quiet
        return self.due.size / max(self.active, 1e-9)

    def sends_within(self, begin: Floats, end: Floats) -> Ints:
        """Return the number of sends in each half-open window [begin, end)."""
        last, first = (np.searchsorted(self.due, at, "left") for at in (end, begin))
        number: Ints = last - first
        return number

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
        """Return the requests answered in (begin, end], in the order of their replies."""
        first, last = np.searchsorted(self.ends, (begin, end), "right").tolist()
        return self.by_end[first:last]

    @cached_property
    def idle(self) -> Floats:
        """Seconds from each reply to the send after the request's own, sorted; no slow requests."""
        rest = self.due[1:] - self.end[:-1]
        return np.sort(rest[~self.slow[:-1]])

    def under_way(self, at: Floats) -> Ints:
        """Return the number of requests under way right after each moment."""
        sent, answered = (np.searchsorted(times, at, "right") for times in (self.due, self.ends))
        number: Ints = sent - answered
        return number

    def share_above(self, level: int) -> float:
        """Return the part of the run during which more than `level` requests were under way."""
        return float(self._time_at[level + 1 :].sum()) / max(self.span, 1e-9)

    @cached_property
    def _time_at(self) -> Floats:
        """Seconds during which 0, 1, 2 … requests were under way."""
        at = np.concatenate((self.due, self.end))
        step = np.concatenate((np.ones(self.due.size, np.int64), np.full(self.end.size, -1)))
        order = np.lexsort((step, at))  # a reply and a send at the same moment do not overlap
        level = np.cumsum(step[order])[:-1]
        return np.asarray(np.bincount(np.maximum(level, 0), np.diff(at[order])), np.float64)


def hulls(begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Merge overlapping windows: starts and ends of what they cover, ascending."""
    if not begin.size:
        return np.zeros(0), np.zeros(0)
    order = np.argsort(begin, kind="stable")
    left, right = begin[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], left[1:] > right[:-1]))
    return left[first], right[np.concatenate((first[1:], [True]))]


def _covered(begin: Floats, end: Floats) -> float:
    return float((end - begin).sum())


# ------------------------------------------------------------
# Stalls of samples.

_STALLS_ALPHA = 0.01  # of taking any random gap between replies for a stall
_WAITED = 0.5  # of a gap between replies: some request must have waited that long
_STEP = 0.02  # of a clock step: latencies that contain it agree to within that
_RAMP = 0.25  # of the spread of sends: replies that end together are spread no wider
_STALLS_DRAIN = 0.25  # of its length: that soon after a stall only its backlog is seen
_STALLS_CHANCE = 3.0  # standard deviations of a Poisson count: that many sends may lack by chance
_PARTIAL = 3  # requests that must end together before part of a server is said to have stopped


def _stalls_of_trace(trace: Trace) -> Stalls:
    if trace.due.size < 2:
        return Stalls.none()
    begin, end, notes = _gaps(trace)
    left, right = _partial_stalls(trace, begin, end)
    before = np.concatenate(([-np.inf], end))[np.searchsorted(end, left, "right")]
    own = left - before > _STALLS_DRAIN * (right - left)  # else the backlog of the stall before
    begin, end = hulls(np.concatenate((begin, left[own])), np.concatenate((end, right[own])))
    if not begin.size:
        return Stalls.none(*notes)
    due = trace.rate * (np.minimum(end, trace.span) - begin)
    lacking = due - trace.sends_within(begin, end)
    certain = lacking > _STALLS_CHANCE * np.sqrt(np.maximum(due, 1))
    # Of the requests sent by the end and answered after the start, those slow and answered late.
    waiting = np.searchsorted(trace.due, end, "right") - np.searchsorted(trace.ends, begin, "right")
    slow = trace.took > 2 * trace.usual
    delayed = np.searchsorted(trace.due[slow], end, "right") - np.searchsorted(
        np.sort(trace.end[slow]), end - _STEP * (end - begin), "left"
    )
    # The longest latency of the requests that were under way in each stall: maxima over spans of
    # 2^level stalls, brought down level by level.
    first = np.searchsorted(end, trace.due, "left")
    last = np.searchsorted(begin, trace.end, "right") - 1
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
    return Stalls(
        begin,
        end,
        np.asarray(most[0]) * 1e9,
        np.where(certain, np.rint(lacking), 0).astype(np.int64),
        np.clip(delayed / np.maximum(waiting, 1), 0.0, 1.0),
        notes,
    )


def _gaps(trace: Trace) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Times without a reply while a request waited; clock steps and a warm-up become notes."""
    ends = np.concatenate(([0.0], trace.answers))
    limit = max(np.log(trace.due.size / _STALLS_ALPHA) / trace.rate, 2 * trace.usual)
    at = np.flatnonzero(np.diff(ends) > limit)
    if not at.size:
        return np.zeros(0), np.zeros(0), ()
    a, b = ends[at], ends[at + 1]
    good = trace.by_end[trace.good[trace.by_end]]
    earliest = np.minimum.accumulate(trace.due[good][::-1])[::-1]  # of those answered then or later
    answer = np.searchsorted(trace.answers, b, "left")
    since = np.maximum(a, earliest[answer])
    waited = np.searchsorted(trace.due, b, "left") - np.searchsorted(trace.ends, b, "left")
    alone = bool((trace.under_way(trace.due) <= 1).all())
    kept = (waited > 0) & (b - since >= np.maximum(_WAITED * (b - a), limit))
    kept &= (waited > 1) | (b <= trace.span) | alone  # else the last request, long after the others
    # Of the requests under way when sends ended, some are slow by themselves: each of their replies
    # comes long after the one before.
    inside = np.minimum(b, trace.span) - since
    kept &= (since <= trace.span) & (
        (inside >= limit) | (trace.took[good[answer]] <= 2 * (b - since))
    )
    begin, end, notes = [], [], []
    usually = int(np.quantile(trace.under_way(trace.due), 0.99)) if kept.any() else 0
    for k in np.flatnonzero(kept).tolist():
        left, right = float(a[k]), float(b[k])
        if _is_clock_step(trace, left, right, usually):
            notes.append(
                "the clock seems to have been set forward by about "
                f"{right - left:.3g} s at {left:.3g} s: not a stall"
            )
            continue
        begin.append(float(since[k]))
        end.append(right)
    if begin and (until := _warm_up_of_trace(trace, begin[0], end[0])):
        notes.append(
            f"warm-up: requests of the first {until:.3g} s were slow, though they were answered: "
            "not a stall"
        )
        begin, end = begin[1:], end[1:]
    return np.array(begin, np.float64), np.array(end, np.float64), tuple(notes)


def _warm_up_of_trace(trace: Trace, begin: float, end: float) -> float:
    """Seconds for which the first requests were slow but answered one after the other, else 0.

    The first reply of a run comes late then, which is not a stall: after a stall replies come all
    at once.
    """
    left, right = trace.windows
    if not left.size or left[0] > 5 / trace.rate or begin > right[0] or begin > 5 / trace.rate:
        return 0.0
    first = int(np.searchsorted(trace.answers, end + 0.1 * (end - begin)))
    answered = int(np.searchsorted(trace.answers, right[0])) - first
    steady = answered >= 0.5 * trace.rate * (right[0] - end)
    return float(right[0]) if steady and right[0] - begin > 1.5 * (end - begin) else 0.0


def _is_clock_step(trace: Trace, a: float, b: float, usually: int) -> bool:
    """Requests under way carry the same extra latency while all others continued as before.

    In a stall every sender is delayed, so that as many requests wait as there are connections, or
    ever more; at a clock step only those wait that were under way at that moment, and none is sent
    in the time that never was.
    """
    sent = int(trace.sends_within(np.array([a]), np.array([b]))[0])
    late = trace.ending_within(np.nextafter(b, 0.0), b + 10 * trace.usual)
    waits = trace.took[late[trace.due[late] < b]]
    if sent > 1 or not 1 < waits.size < usually:
        return False
    spread = float(np.ptp(waits))
    return spread < max(_STEP * (b - a), 4 * trace.usual) and spread < 10 * trace.usual


def _partial_stalls(trace: Trace, begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Slow requests outside the gaps, sent at various times, that end at once: one shard."""
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
    longest, left = np.maximum.reduceat(took, first), ended[first]
    width = np.maximum.reduceat(ended, first) - left
    others = slow.size / max(trace.span, 1e-9) * np.maximum(width, trace.grain)
    together = slow.size * poisson_at_least(number - 1, others) < _STALLS_ALPHA
    stopped = (number >= _PARTIAL) & together
    stopped &= (width <= _RAMP * spread) & (spread >= _WAITED * longest)
    return left[stopped] - longest[stopped], left[stopped]


# ------------------------------------------------------------
# Stalls of an interval log: from long maxima, if counts or latencies confirm them, and from
# intervals that ended late.
#
# One slow request makes a long maximum, too. A stop shows in the counts (too few replies
# meanwhile), in the latencies (requests that arrive during a stall of d seconds take from d down to
# nothing, evenly), or in the logger itself.

LEVELS = (0.1, 0.2, 0.4, 0.5, 0.6, 0.8)
"""Parts of a stall's longest latency above which requests are counted."""
_GAPS = 20.0  # mean gaps between requests, and
_TIMES = 20.0  # medians: a maximum above both may be a stall,
_SHARE = 0.02  # if it is not below this part of an interval: counts could not show it
_STRETCH = 0.2  # of the usual length of an interval: one that is longer by that ended late
_FEW = 0.5  # of the usual requests: fewer were answered while the server was stopped
_CHANCE = 3.0  # standard deviations of the counts: a smaller shortfall may be chance
_CORE = 5.0  # requests due in the intervals within a stall, to show that few were answered
_EVEN = 0.5  # of the requests that a stall delays: each fifth of its length has that many of them,
_BIN = 4.0  # if that many are due
_PART = 0.1  # of the requests: if fewer were delayed, no part of a server was stopped
_CLEAR = 50.0  # requests of a part that was stopped: fewer could be slow independently
_LONG = 4.0  # times its length: what a stall delayed is answered by then
_BEHIND = 0.25  # of its length: that soon after a stall latencies are those of its backlog
_DRAIN = 10.0  # times as many, at most: a queue that drains after the stall
_WARM = 3.0  # medians: a first interval whose own median is above that belongs to the warm-up
_HICCUP = 3.0  # requests due during a slow one, to show whether they are missing
_STEADY = 50.0  # requests that a time bin should count for a usual rate


def usual_rate(series: IntervalSeries) -> float:
    """Return the requests per second of an ordinary time bin: the median of those with any."""
    used = (series.count > 0) & (series.length > 0)
    if not used.any():
        return 0.0
    order = np.argsort(series.start[used], kind="stable")
    count, length = series.count[used][order], series.length[used][order]
    together = int(np.clip(np.ceil(_STEADY / float(median(count))), 1, max(count.size // 8, 1)))
    first = np.arange(0, count.size - together + 1, together)
    counts, lengths = (np.add.reduceat(part, first)[: first.size] for part in (count, length))
    return float(median(counts / lengths))


@record(eq=False)
class Delayed(Value):
    """Counts of the intervals of each stall."""

    above: Floats  # (levels, stalls): requests slower than each of LEVELS × the longest latency
    beside: Floats  # (levels, stalls): the same as intervals without a stall would have it
    short: Floats  # (stalls,): by how much the counts fall short of the usual rate,
    noise: Floats  # (stalls,): and its standard deviation
    deviation: float  # of the counts of intervals without a stall,
    usual: float  # and their median
    alone: bool  # a single connection that waits: each slow request costs those due meanwhile


class SlowFold:
    """Counts, per interval, the values above parts of a latency: a fold for a pass over a log."""

    def __init__(self, reference: Floats) -> None:
        self._reference = reference
        self.counts = np.zeros((len(LEVELS), reference.size), np.int64)

    def add(self, block: Block) -> None:
        """Take a block in."""
        reference, edges = self._reference[block.rows], block.buckets.high(np.arange(block.width))
        # Most requests are below what any row asks for.
        first = np.searchsorted(edges, LEVELS[0] * reference.min(initial=math.inf), "right")
        slow = np.flatnonzero(block.index >= first)
        entry = np.searchsorted(block.indptr, slow, "right") - 1
        part, counts = edges[block.index[slow]] / reference[entry], block.counts[slow]
        for k, level in enumerate(LEVELS):
            above = np.bincount(entry, np.where(part > level, counts, 0), minlength=block.rows.size)
            self.counts[k, block.rows] = above.astype(np.int64)


@record()
class _Rows:
    """The intervals in the order of time, seconds."""

    start: Floats
    length: Floats
    count: Floats
    worst: Floats
    middle: Floats
    rate: float
    usual: float

    @cached_property
    def stop(self) -> Floats:
        return self.start + self.length

    @cached_property
    def nominal(self) -> float:
        """Usual length of an interval."""
        return float(median(self.length))

    @cached_property
    def due(self) -> Floats:
        """Requests due in each interval; none after the last that counted half as many.

        What is counted there was sent before: traffic had ended.
        """
        due = self.rate * self.length
        full = np.flatnonzero(self.count >= _FEW * due)
        due[int(full[-1]) + 1 if full.size else 0 :] = 0.0
        if self.count[0]:  # traffic began within it
            due[0] = min(due[0], self.count[0])
        return due

    @cached_property
    def lost(self) -> Floats:
        """Requests due but not counted."""
        return self.due - np.where(self.due > 0, self.count, 0)

    def touched(self, left: Floats, right: Floats) -> tuple[Ints, Ints]:
        """First and last + 1 of the intervals that may have counted what a stall delayed."""
        stops = np.maximum.accumulate(self.stop)
        first = np.maximum(np.searchsorted(stops, left, "right") - 1, 0)
        last = np.minimum(np.searchsorted(self.start, right, "left") + 1, self.start.size)
        return first, np.maximum(last, first + 1)


def first_pass_over(log: HistogramLog) -> tuple[IntervalSeries, TopFold | None]:
    """Return each interval's numbers and highest values; the pass also sums the log.

    After an earlier pass the highest values are None: only stalls need them, and decode them then.
    """
    if log.is_scanned():
        return log.series((50,)), None
    top = TopFold(LEVELS[0])
    log.histogram_and(top)
    return log.series((50,)), top


def _stalls_of_log(log: HistogramLog, series: IntervalSeries, top: TopFold | None) -> Stalls:
    factor = NANOSECONDS.get(series.unit, 1.0)
    order = np.argsort(series.start, kind="stable")
    rate, middle = usual_rate(series), series.values[order, 0] * factor / 1e9
    if not rate:
        return Stalls.none()
    rows = _Rows(
        series.start[order], series.length[order], series.count[order].astype(np.float64),
        np.nan_to_num(series.max[order]) * factor / 1e9, middle, rate,
        float(median(middle[~np.isnan(middle)])),
    )  # fmt: skip
    limit = max(_GAPS / rate, _TIMES * rows.usual, _SHARE * rows.nominal)
    late = rows.length > rows.nominal * (1 + _STRETCH) + rows.usual
    late[-1:] = False  # the last interval ends with the run
    late &= rows.length - rows.nominal > limit
    # Where requests were answered as usual all through it, it was meant to be that long.
    asleep = _FEW * np.maximum(rows.length - rows.nominal, 0.0)
    chance = _CHANCE * np.sqrt(rate * rows.length)
    late &= (rows.lost >= np.maximum(rate * asleep, chance)) | (rows.worst >= asleep)
    slow = np.flatnonzero(rows.worst > limit)
    took = rows.worst[slow]
    earliest, latest = rows.start[slow] - took, rows.stop[slow] - took
    begin = np.where(late[slow], latest, (earliest + latest) / 2)
    low = np.flatnonzero(rows.count < rows.rate * rows.length / 2)
    first = np.maximum(np.searchsorted(rows.start, earliest, "right") - 1, 0)
    at = np.searchsorted(low, first)  # the first interval since then that counted little
    shown = at < low.size
    shown[shown] = low[at[shown]] < slow[shown]
    last_full = np.maximum(low[at[shown]] - 1, 0)
    total = np.concatenate(([0.0], np.cumsum(rows.count)))
    begin[shown] = rows.start[last_full] + (total[slow[shown]] - total[last_full]) / rows.rate
    begin = np.clip(begin, earliest, latest)
    end = np.concatenate((begin + took, rows.stop[late]))
    begin = np.concatenate((begin, rows.stop[late] - (rows.length - rows.nominal)[late]))
    if not begin.size:
        return Stalls.none()
    return _confirmed(log, top, rows, order, late, begin, end, factor)


def _confirmed(
    log: HistogramLog,
    top: TopFold | None,
    rows: _Rows,
    order: Ints,
    late: Flags,
    begin: Floats,
    end: Floats,
    factor: float,
) -> Stalls:
    """Confirm candidates by counts, latencies or the logger; collect what intervals say of each."""
    left, right = hulls(begin, end)
    # Median and standard deviation of the counts without any stall (of all, if these are too few);
    # the last interval is truncated.
    quiet = rows.stop < rows.stop.max() - 1e-9
    quiet[_positions(*rows.touched(left, right))] = False
    if quiet.sum() < 3:
        quiet[:] = True
    usual = float(median(rows.count[quiet]))
    away = np.abs(rows.count - rows.rate * rows.length)[quiet]
    # no less than for one request: an interval may have no length at all
    away /= np.sqrt(np.maximum(rows.length[quiet], 1 / rows.rate) / rows.nominal)
    deviation = max(1.4826 * float(median(away)), 0.5)

    begin, end, first, last = _without_backlog(rows, late, begin, end, deviation)
    silent, halted = _halted(rows, late, begin, end, first, last, deviation)
    number, duration, touched = last - first, end - begin, _positions(first, last)
    worst, widest = np.maximum.reduceat(
        (rows.worst[touched], rows.length[touched]),
        np.concatenate(([0], np.cumsum(number)[:-1])),
        axis=1,
    )
    worst = np.where(worst > 0, worst, duration)
    reference = np.zeros(rows.start.size)
    np.maximum.at(reference, touched, np.repeat(worst, number))
    quiet = (reference == 0) & (rows.stop < rows.stop.max() - 1e-9)
    reference[reference == 0] = worst.max()
    slower = _slow_counts(log, top, rows, order, reference, factor)
    above = _own_sums(slower, first, last, duration)
    covered, due = _own_sums(rows.length, first, last, duration), rows.rate * duration
    short = _own_sums(rows.lost, first, last, duration)
    noise = deviation * np.sqrt(_sums(rows.length, first, last) / rows.nominal)
    share = np.clip(above[3] / np.maximum(due / 2, 1e-9), 0.0, 1.0)
    even = share >= np.clip(_CLEAR / np.maximum(due, 1.0), _PART, _EVEN)
    even &= covered <= _LONG * (duration + widest)  # else requests are slow throughout
    even &= above[1] <= _DRAIN * due
    even &= evenly_spread(above, np.zeros_like(above), share * due, _BIN)
    others = np.ones(rows.start.size, np.bool_)  # their requests may be slow as well
    stalled = halted | even
    others[_positions(first[stalled], last[stalled])] = False
    beside = np.zeros_like(above)
    if others.sum() >= 3:
        usual_slow = slower[:, others].sum(axis=1)[:, None]
        beside = usual_slow / max(float(rows.length[others].sum()), 1e-9) * covered
    even &= evenly_spread(above, beside, share * due, _BIN)

    silence = np.where(silent | (_sums(late.astype(np.int64), first, last) > 0), duration, 0.0)
    notes, warm = _warm_up(rows, begin, silence)
    confirmed = halted | even
    stalls = confirmed & ~warm
    missing = np.clip(np.rint(short), 0, np.maximum(np.rint(due), 0))
    missing = np.where(short >= _CHANCE * noise, missing, 0)
    # What shares an interval with a stall may be another: its requests counted for the first.
    apart = _sums((~others).astype(np.int64), first, last) == 0
    isolated = int((~confirmed & ~warm & apart).sum())
    if isolated:
        times = "once" if isolated == 1 else f"{isolated:,} times"
        isolated_note = "requests were slow while others were answered as usual: not a stall"
        notes = (*notes, f"{times} {isolated_note}")
    return Stalls(
        begin[stalls],
        end[stalls],
        worst[stalls] * 1e9,
        missing[stalls].astype(np.int64),
        np.where(halted, 1.0, share)[stalls],
        notes,
        Delayed(
            above[:, stalls],
            beside[:, stalls],
            short[stalls],
            noise[stalls],
            deviation,
            usual,
            _waits_alone(rows, quiet),
        ),
    )


def _slow_counts(
    log: HistogramLog,
    top: TopFold | None,
    rows: _Rows,
    order: Ints,
    reference: Floats,
    factor: float,
) -> Ints:
    """Requests slower than each of `LEVELS` × the reference, shape (levels, rows)."""
    by_row = np.empty(reference.size)
    by_row[order] = reference * 1e9 / factor
    fold = SlowFold(by_row)
    # They are enough where no value exceeds the latency that it is compared with.
    kept = None if top is None else top.blocks()
    if kept is not None and (rows.worst <= reference).all():
        feed(kept, (fold,))
    else:
        log.scan(fold)
    return fold.counts[:, order]


def _without_backlog(
    rows: _Rows, late: Flags, begin: Floats, end: Floats, deviation: float
) -> tuple[Floats, Floats, Ints, Ints]:
    """Of overlapping candidates the longest, with the first and last + 1 of its intervals.

    What follows closely and is no longer is the backlog that drains.
    """
    left, right = hulls(begin, end)
    group = np.searchsorted(left, begin, "right") - 1
    last_of_group = np.searchsorted(np.sort(group), np.arange(left.size), "right") - 1
    longest = np.lexsort((end - begin, group))[last_of_group]
    begin, end = begin[longest], end[longest]
    _, halted = _halted(rows, late, begin, end, *rows.touched(left, right), deviation)
    gap = begin - np.concatenate(([-np.inf], right[:-1]))
    backlog = gap <= _BEHIND * (end - begin) + rows.nominal
    backlog &= (end - begin <= np.concatenate(([0.0], (end - begin)[:-1]))) & ~halted
    kept = np.flatnonzero(~backlog)
    right = np.append(right, 0.0)[np.append(kept[1:], backlog.size) - 1]
    return begin[kept], end[kept], *rows.touched(left[kept], right)


def _positions(first: Ints, last: Ints) -> Ints:
    """All positions of the half-open ranges, one range after the other."""
    number = last - first
    if not number.size:
        return np.zeros(0, np.int64)
    before = np.concatenate(([0], np.cumsum(number)[:-1]))
    return np.repeat(first - before, number) + np.arange(number.sum())


def _halted(
    rows: _Rows, late: Flags, begin: Floats, end: Floats, first: Ints, last: Ints, deviation: float
) -> tuple[Flags, Flags]:
    """Masks of stalls with few replies within, and of all that counts or the logger confirm."""
    within = np.searchsorted(rows.start, begin, "left")
    behind = np.maximum(within, np.searchsorted(rows.stop, end, "right"))
    due = _sums(rows.due, within, behind)
    silent = (due >= _CORE) & (_sums(rows.lost, within, behind) >= (1 - _FEW) * due)
    chance = _CHANCE * deviation * np.sqrt(_sums(rows.length, first, last) / rows.nominal)
    least = np.maximum(np.maximum(_FEW * rows.rate * (end - begin), chance), _CORE)
    lacking = _own_sums(rows.lost, first, last, end - begin) >= least
    return silent, np.asarray(silent | lacking | (_sums(late.astype(np.int64), first, last) > 0))


def evenly_spread(above: Floats, beside: Floats, due: Floats, least: float) -> Flags:
    """Return which stalls have latencies in each fifth of their length but the lowest.

    So it is for requests that arrive all through a stall.
    """
    fifths = [LEVELS.index(part) for part in (0.2, 0.4, 0.6, 0.8)]
    end = np.zeros((1, due.size))
    fill = -np.diff((above - beside)[fifths], axis=0, append=end)
    noise = np.sqrt(np.maximum(-np.diff(beside[fifths], axis=0, append=end), 0.0))
    enough = (fill >= np.maximum(_EVEN * 0.2 * due, _CHANCE * noise)).all(axis=0)
    return np.asarray((0.2 * due >= least) & enough)


def _warm_up(rows: _Rows, begin: Floats, silence: Floats) -> tuple[tuple[str, ...], Flags]:
    """The note on a warm-up, and the mask of stalls within it: slow intervals that yet answer.

    `silence` is how many seconds of each nothing was answered.
    """
    slow = (rows.middle > _WARM * rows.usual) | (rows.count == 0)
    lead = int(np.argmin(slow)) if not slow.all() else 0
    none = np.zeros(begin.size, np.bool_)
    if not lead or lead > rows.start.size / 2:
        return (), none
    if rows.count[:lead].sum() < _FEW * rows.due[:lead].sum():
        return (), none
    until = float(rows.stop[lead - 1])
    seconds = until - float(rows.start[0])
    warm = (begin < until) & (silence < seconds / 2)
    if not warm.any():
        return (), warm
    note = (
        f"warm-up: the first {format_duration(seconds * 1e9)} were slow throughout, though "
        "requests were answered: not a stall"
    )
    return (note,), warm


def _waits_alone(rows: _Rows, quiet: Flags) -> bool:
    """Without a stall, too, a slow request costs the requests due meanwhile."""
    lost = np.maximum(rows.worst * rows.rate - 1.0, 0.0)
    hiccup = quiet & (lost >= _HICCUP)
    if hiccup.sum() < 2 or (quiet & ~hiccup).sum() < 3:
        return False
    short = rows.rate * rows.length - rows.count
    usual = float(median(short[quiet & ~hiccup]))
    return bool((short[hiccup] - usual >= lost[hiccup] / 2).mean() >= 0.75)


def _sums(values: Floats | Ints, first: Ints, last: Ints) -> Floats:
    """Sums over half-open ranges."""
    total = np.concatenate(([0.0], np.cumsum(values)))
    return np.asarray(total[last] - total[first])


def _own_sums(values: Floats | Ints, first: Ints, last: Ints, size: Floats) -> Floats:
    """Sums over ranges of the last axis; what two of them share counts for the larger one."""
    touched, owner = _positions(first, last), np.repeat(np.arange(first.size), last - first)
    largest = np.zeros(values.shape[-1])
    np.maximum.at(largest, touched, size[owner])
    own = np.where(size[owner] >= largest[touched], values[..., touched], 0)
    starts = np.searchsorted(owner, np.arange(first.size))
    return np.asarray(np.add.reduceat(own, starts, axis=-1), np.float64)


# ------------------------------------------------------------
# Whether stalls come at regular times: garbage collections, cron jobs, compactions.

_LEAST = 8  # events: fewer support no claim
_ALPHA = 0.01
_HIGHEST = 1.5  # events per period at most: some are missed, some do not belong to it
_PERIODS = 4  # in which events must lie: two of a kind are not a regularity
_ENOUGH = 1000  # events to find a period in
_BLOCK = 128  # frequencies
_NEAR = 0.8  # of the best power: the lowest frequency that reaches it; the others are harmonics


@record()
class Period:
    """A period of events."""

    seconds: float
    events: int
    p: float  # probability of a period as strong where there is none

    @property
    def words(self) -> str:
        """One sentence."""
        p = f"p = {self.p:.1g}" if self.p > 1e-6 else "p < 0.000001"
        return f"{self.events} stalls occur about every {format_duration(self.seconds * 1e9)} ({p})"


def period_of(at: ArrayLike, span: float) -> Period | None:
    """Find the period of events; None for fewer than 8, in fewer than four periods, or by chance.

    Rayleigh's test, ``Z²(f) = 2/n |Σ exp(2πi f t)|²`` over frequencies from 3/T to 1.5 n/T; without
    a period half of it is exponential, and there are about three times as many independent
    frequencies as multiples of 1/T. The work grows with the square of n, so of more than 1,000
    events the first 1,000 are used.
    """
    times = np.asarray(at, np.float64)
    events = times.size
    if events > _ENOUGH:
        times = np.sort(times)[:_ENOUGH]
        span = float(times[-1] - times[0])
    n = times.size
    if n < _LEAST or not span > 0:
        return None
    frequencies = np.arange((_PERIODS - 1) / span, _HIGHEST * n / span, 1 / (8 * span))
    if not frequencies.size:
        return None
    # A block at a time: the phases of a frequency are those of the first of its block, turned by
    # what the steps between add.
    turned = np.exp(2j * np.pi / (8 * span) * np.outer(np.arange(_BLOCK), times))
    sums = np.concatenate(
        [turned @ np.exp(2j * np.pi * f * times) for f in frequencies[::_BLOCK].tolist()]
    )
    power = 2 / n * np.abs(sums[: frequencies.size]) ** 2
    best, p = float(power.max()), 1.0
    if best > 0:
        independent = 3 * (_HIGHEST * n - _PERIODS + 1)
        p = float(-np.expm1(independent * np.log1p(-np.exp(-best / 2))))
    if p > _ALPHA:
        return None
    first = int(np.argmax(power >= _NEAR * best))
    falls = np.flatnonzero(np.diff(power[first:]) < 0)
    peak = first + (int(falls[0]) if falls.size else power.size - 1 - first)
    phase = np.angle(np.exp(2j * np.pi * frequencies[peak] * times).sum()) / (2 * np.pi)
    if np.unique(np.rint(times * frequencies[peak] - phase)).size < _PERIODS:
        return None
    return Period(float(1 / frequencies[peak]), events, max(p, 1e-300))
