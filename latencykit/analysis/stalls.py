"""Times during which a server may have stopped, as the latencies show them.

From top to bottom: the result, stalls of samples, stalls of an interval log, and tails. Which of
them are stalls `omission.stalls_of` decides.
"""

from __future__ import annotations

import math
from dataclasses import field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from latencykit._arrays import Value, as_positions, read_only
from latencykit._records import record
from latencykit._typing import Flags, Floats, Ints
from latencykit.core.blocks import Block
from latencykit.core.histogram_log import HistogramLog, IntervalSeries, scan
from latencykit.core.probability import poisson_at_least
from latencykit.core.quantiles import median
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.units import NANOSECONDS, format_duration

if TYPE_CHECKING:
    import pandas as pd


MAD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""

TINY = 1e-9
"""Seconds: shorter times are rounding."""


@record(eq=False)
class Stalls(Value):
    """Times during which (part of) a server did not answer: arrays of one length, ascending."""

    start: Floats  # seconds from the start of the series
    end: Floats
    worst: Floats  # longest latency that the stall caused, ns
    missing: Ints  # requests due at the usual rate but not sent; 0 where that may be chance
    share: Floats  # part (0..1) of that time's requests that were delayed
    notes: tuple[str, ...] = field(default=())  # a warm-up, a period …
    holes: Holes | None = field(default=None, repr=False)  # what a log's intervals counted
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


def stall_candidates(data: object, series: IntervalSeries | None, trace: Trace | None) -> Stalls:
    """Return the times that may be stalls, from a log's intervals or a trace of samples."""
    begin = end = np.zeros(0)
    stalls = Stalls.none()
    if series is not None and isinstance(data, HistogramLog):
        stalls = _stalls_of_log(data, series)
        used, factor = series.count > 0, NANOSECONDS.get(series.unit, 0.0) / 1e9
        begin, end = pauses(
            (series.start - np.nan_to_num(series.max) * factor)[used],
            (series.start + series.length)[used],
            usual_rate(series),
        )
    elif trace is not None:
        stalls = _stalls_of_trace(trace)
        begin, end = trace.pauses
    if not begin.size:
        return stalls
    longest = int((end - begin).argmax())
    return replace(stalls, pause=(float(begin[longest]), float(end[longest])))


@record()
class PauseRules:
    """When nothing under way is a pause; chosen on the worlds with bursts, lulls and low rates."""

    # more gaps as long are how the traffic is
    max_pauses: int = 3
    # a pause is that many times the longest of the other gaps
    min_times_other_gaps: float = 5.0
    # and would have had that many requests: a dozen lack by chance
    min_due_requests: float = 30.0
    # steps of the clock that stamped the sends: whole seconds leave as much between them
    min_steps: float = 2.0
    # requests per moment of a clock that stamps many alike
    coarse_stamps: float = 5.0


PAUSE = PauseRules()


def pauses(begin: Floats, end: Floats, rate: float) -> tuple[Floats, Floats]:
    """Return the few long times without any request under way, given when each was."""
    left, right = merge_intervals(begin, end)
    gap = left[1:] - right[:-1]
    if not gap.size or not rate:
        return np.zeros(0), np.zeros(0)
    other = float(np.sort(gap)[-PAUSE.max_pauses - 1]) if gap.size > PAUSE.max_pauses else 0.0
    long = gap > max(PAUSE.min_times_other_gaps * other, PAUSE.min_due_requests / rate)
    return right[:-1][long], left[1:][long]


# ------------------------------------------------------------
# A run as sends and replies: what the tests of samples examine.


@record()
class SlowRules:
    """When a request of a trace is slow; chosen on quiet worlds, busy queues and slow modes."""

    # mean gaps between sends: no shorter request can have kept others from being sent
    min_mean_gaps: float = 5.0
    # medians: the ordinary spread of service times
    min_medians: float = 5.0
    # sends may be crowded for that many lengths of a stall after it,
    catch_up_stalls: float = 1.0
    # if that leaves as much of the run, and as many requests, for a usual rate
    min_quiet_share: float = 0.1
    min_quiet_requests: int = 20
    # of the run: times before and after a stall that are at least as long show the rate there
    beside_share: float = 0.05
    # bins of a run, sums of how many of them and how many such sums show a constant load,
    load_bins: int = 50
    load_widths: tuple[tuple[int, int], ...] = ((1, 6), (2, 12), (4, 12), (8, 12))
    # and how much they vary (of chance)
    max_load_variation: float = 0.5
    # requests in flight: a loop that never pauses has one at least
    min_load: float = 0.98
    # the median over the tenth percentile: else stalls hold the median
    max_median_ratio: float = 10.0


SLOW = SlowRules()


@record()
class Trace:
    """Requests in the order of the moments that their latency counts from."""

    start: Floats  # that moment (send or intended start), seconds from the first one
    end: Floats  # the reply, seconds
    good: Flags  # answered; failures do not show that the server works
    begin: float  # the first of these moments, seconds from the start of the run

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
        ended = samples.start + samples.duration
        good, due, end = samples.good[sent], counts_from[sent], ended[sent]
        order = np.argsort(due, kind="stable")
        if not order.size:
            return cls(due / 1e9, end / 1e9, good, 0.0)
        first, origin = order[0], due[order[0]]
        begin = samples.offsets[sent][first] + (origin - samples.start[sent][first]) / 1e9
        due, end = due[order] - origin, np.maximum(end, due)[order] - origin
        return cls(due / 1e9, end / 1e9, good[order], float(begin))

    @cached_property
    def latency(self) -> Floats:
        """Latency of each request, seconds."""
        return self.end - self.start

    @cached_property
    def baseline(self) -> float:
        """Latency of a request that no stall holds, as `usual_latency` has it; seconds."""
        if not self.latency.size:
            return 0.0
        return usual_latency(np.percentile(self.latency, [10, 50]))

    @cached_property
    def span(self) -> float:
        """Seconds from the first to the last send."""
        return float(self.start[-1]) if self.start.size else 0.0

    @cached_property
    def stamp(self) -> float:
        """Seconds between the moments of a clock that stamps many requests alike; else 0."""
        steps = [0.0]
        for times in (self.start, self.end):
            moments = np.unique(times)
            if 1 < moments.size < times.size / PAUSE.coarse_stamps:
                steps.append(float(median(np.diff(moments))))
        return max(steps)

    @cached_property
    def pauses(self) -> tuple[Floats, Floats]:
        """Start and end of the few long times without any request."""
        begin, end = pauses(self.start, self.end, self.start.size / max(self.span, TINY))
        long = end - begin > PAUSE.min_steps * self.stamp
        return begin[long], end[long]

    @cached_property
    def active(self) -> float:
        """Seconds from the first to the last send, without pauses."""
        begin, end = self.pauses
        return self.span - float((end - begin).sum())

    @cached_property
    def slow_from(self) -> float:
        """Seconds above which a request is slow enough to have kept others from being sent."""
        # Five mean gaps between sends or five times the median, whichever is more; more again where
        # such requests would cover more than half of the run.
        if self.start.size < 2 or not self.span:
            return float("inf")
        limit = max(
            SLOW.min_mean_gaps * self.active / self.start.size, SLOW.min_medians * self.baseline
        )
        slow = np.sort(self.latency[self.latency > limit])
        while slow.size:
            longer = self.latency > limit
            left, right = merge_intervals(self.start[longer], self.end[longer])
            if (right - left).sum() <= self.span / 2:
                break
            limit = float(slow[slow.size // 2])
            slow = slow[slow > limit]
        return float(limit)

    @cached_property
    def clock_resolution(self) -> float:
        """Resolution of the clock or less: the shortest time between any two sends or replies."""
        steps = np.diff(np.sort(np.concatenate((self.start, self.end))))
        return float(steps[steps > 0].min(initial=self.span))

    @cached_property
    def slow(self) -> Flags:
        """Mask of the slow requests."""
        return self.latency > self.slow_from

    @cached_property
    def windows(self) -> tuple[Floats, Floats]:
        """Start and end of the times with slow requests under way, merged, seconds."""
        return merge_intervals(self.start[self.slow], self.end[self.slow])

    @cached_property
    def rate(self) -> float:
        """Sends per second outside those times."""
        return self.quiet_rate(*self.windows)

    @cached_property
    def full_speed(self) -> bool:
        """A constant number of requests is in flight: no pause between a reply and a send."""
        bins = SLOW.load_bins
        if self.start.size < 4 * bins or not self.span > 0:
            return False
        edges = np.linspace(0.0, self.span, bins + 1)
        work = np.zeros(edges.size)  # request-seconds in flight up to each edge
        for times, sign in ((self.start, 1.0), (self.ends, -1.0)):
            passed = np.searchsorted(times, edges, "right")
            work += sign * (passed * edges - np.append(0.0, np.cumsum(times))[passed])
        at = np.minimum(self.start / self.span * bins, bins - 1).astype(np.int64)
        count = np.bincount(at, minlength=bins).astype(np.float64)
        squares = np.bincount(at, self.latency**2, bins).astype(np.float64)
        return constant_load(np.diff(work), squares, count, np.diff(edges))

    def quiet_rate(self, begin: Floats, end: Floats) -> float:
        """Return the sends per second outside stalls, and what may be catching up after them."""
        # Connections that waited together send in herds from then on, each of which may be slow: no
        # fewer are due than were sent over the whole run.
        everywhere = self.start.size / max(self.active, TINY)
        left, right = merge_intervals(begin, end + SLOW.catch_up_stalls * (end - begin))
        left, right = np.minimum(left, self.span), np.minimum(right, self.span)
        quiet = self.active - float((right - left).sum())
        outside = self.start.size - int(self.sends_within(left, right).sum())
        if quiet > SLOW.min_quiet_share * self.span and outside >= SLOW.min_quiet_requests:
            return max(outside / quiet, everywhere)
        return everywhere

    def rates_in(self, begin: Floats, end: Floats, every: tuple[Floats, Floats]) -> Floats:
        """Return the sends per second that were due in each stall: as outside of `every` one."""
        # Where the load changes over the run, as in equal times before and after the stall.
        rate, length, changes = self.quiet_rate(*every), end - begin, []
        width = np.maximum(np.maximum(length, SLOW.beside_share * self.span), TINY)
        first, last = np.append(0.0, end[:-1]), np.append(begin[1:], self.span)
        for low in (begin - width, end + SLOW.catch_up_stalls * length):
            number = self.sends_within(low, low + width)
            off = number - rate * width
            known = (low >= first) & (low + width <= last)
            known &= np.abs(off) > TRACE.missing_deviations * np.sqrt(number)
            changes.append(np.where(known, off / width, 0.0))
        before, after = changes
        return np.asarray(rate + np.where(before * after > 0, (before + after) / 2, 0.0))

    def sends_within(self, begin: Floats, end: Floats) -> Ints:
        """Return the number of sends in each half-open window [begin, end)."""
        last, first = (np.searchsorted(self.start, at, "left") for at in (end, begin))
        return np.asarray(last - first)

    @cached_property
    def ends(self) -> Floats:
        """All replies in order, seconds."""
        return np.asarray(self.end[self.by_end])

    @cached_property
    def answers(self) -> Floats:
        """Good replies in order, seconds."""
        return np.sort(self.end[self.good])

    @cached_property
    def silences(self) -> Floats:
        """Seconds up to each reply without another one while its request waited."""
        # The first request that was under way counts, whichever it is.
        good = self.by_end[self.good[self.by_end]]
        ends = self.end[good]
        earliest = np.minimum.accumulate(self.start[good][::-1])[::-1]
        before = np.concatenate((ends[:1], ends[:-1]))
        since = np.maximum(np.concatenate((self.start[good][:1], before[1:])), earliest)
        return np.maximum(ends - since, 0.0)

    @cached_property
    def by_end(self) -> Ints:
        """Requests in the order of their replies."""
        return np.argsort(self.end, kind="stable")


def constant_load(work: Floats, squares: Floats, count: Floats, length: Floats) -> bool:
    """Return whether a constant number of requests is in flight (Little's law): full speed."""
    # The sums of latencies, `work`, vary far less than those of as many requests that are sent at
    # equal times: these have the variance of their latencies. Random arrivals have more.
    for width, least in SLOW.load_widths:
        if length.size // width < least:
            break
        sums, above, number, lengths = (
            in_groups(part, width) for part in (work, squares, count, np.maximum(length, TINY))
        )
        chance = np.maximum(above - sums**2 / np.maximum(number, 1), 0.0)
        away = MAD * float(median(np.abs(sums / lengths - median(sums / lengths))))
        constant = away <= SLOW.max_load_variation * float(median(chance**0.5 / lengths))
        if constant and float(median(sums / lengths)) >= SLOW.min_load:
            return True
    return False


def in_groups(values: Floats | Ints | Flags, size: int) -> Floats:
    """Sums of groups of `size` consecutive values; a rest is left out."""
    number = values.size // size
    return np.asarray(values[: number * size].reshape(number, size).sum(axis=1), np.float64)


def usual_latency(percentiles: Floats) -> float:
    """Return the usual one of p10 and p50: the median, if stalls do not hold that, too."""
    low, middle = percentiles
    return float(min(middle, SLOW.max_median_ratio * low))


def merge_intervals(begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Merge overlapping windows: starts and ends of what they cover, ascending."""
    if not begin.size:
        return np.zeros(0), np.zeros(0)
    order = np.argsort(begin, kind="stable")
    left, right = begin[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], left[1:] > right[:-1]))
    return left[first], right[np.concatenate((first[1:], [True]))]


# ------------------------------------------------------------
# Stalls of samples.


@record()
class TraceStallRules:
    """When a gap between replies is a stall; chosen on quiet worlds."""

    # of taking any random gap between replies of a run for a stall
    max_probability: float = 0.01
    # of the gap: some request must have waited that long; else traffic paused
    min_waited_share: float = 0.5
    # of a stall: requests that end so shortly before it does were delayed by it
    end_share: float = 0.02
    # of the spread of sends: replies that end together are spread no wider
    end_spread_share: float = 0.25
    # of its length: that soon after a stall only its backlog is seen
    backlog_share: float = 0.25
    # of a Poisson count: that many sends may lack by chance
    missing_deviations: float = 3.0
    # that end together before part of a server is said to have stopped,
    min_partial_requests: int = 3
    # of the shorter one: requests that end farther apart do not
    max_apart: float = 0.1


TRACE = TraceStallRules()


def _stalls_of_trace(trace: Trace) -> Stalls:
    if trace.start.size < 2:
        return Stalls.none()
    # Times without a reply while a request waited; a warm-up becomes a note.
    limit = max(np.log(trace.start.size / TRACE.max_probability) / trace.rate, 2 * trace.baseline)
    limit = max(limit, PAUSE.min_steps * trace.stamp)
    gap = np.diff(trace.answers, prepend=0.0)
    at = np.flatnonzero(trace.silences >= np.maximum(TRACE.min_waited_share * gap, limit))
    end = trace.answers[at]
    begin = end - trace.silences[at]
    waited = np.searchsorted(trace.start, end, "left") - np.searchsorted(trace.ends, end, "left")
    kept = (waited > 0) & (begin <= trace.span)
    begin, end = begin[kept], end[kept]
    until = float(trace.start[~trace.slow][:1].sum())
    replies = float(np.searchsorted(trace.answers, until))
    at_first = begin <= SLOW.min_mean_gaps / trace.rate
    notes, warm = _warm_up(until, replies, trace.rate * until, at_first, end - begin)
    begin, end = begin[~warm], end[~warm]
    # Slow requests outside these gaps, sent at various times, that end at once: one shard.
    beside = np.zeros(trace.start.size, np.bool_)
    if begin.size:
        next_gap = np.searchsorted(end, trace.start, "right")  # the first that ends after the send
        beside = np.concatenate((begin, [np.inf]))[next_gap] < trace.end
    shard = np.flatnonzero((trace.latency > trace.slow_from) & ~beside)
    if shard.size >= TRACE.min_partial_requests:
        shard = shard[np.argsort(trace.end[shard], kind="stable")]
        took, sent, ended = trace.latency[shard], trace.start[shard], trace.end[shard]
        apart = np.diff(ended) > TRACE.max_apart * np.minimum(took[1:], took[:-1])
        begins = np.flatnonzero(np.append(True, apart))
        number = np.diff(np.append(begins, shard.size))
        spread = np.maximum.reduceat(sent, begins) - np.minimum.reduceat(sent, begins)
        longest, right = np.maximum.reduceat(took, begins), ended[begins]
        # what a coarse clock stamps alike ended up to a step apart
        width = np.maximum.reduceat(ended, begins) - right + trace.stamp
        others = shard.size / max(trace.span, TINY) * np.maximum(width, trace.clock_resolution)
        stopped = shard.size * poisson_at_least(number - 1, others) < TRACE.max_probability
        stopped &= (number >= TRACE.min_partial_requests) & (
            width <= TRACE.end_spread_share * spread
        )
        stopped &= spread >= TRACE.min_waited_share * longest
        left, right = right[stopped] - longest[stopped], right[stopped]
        before = np.concatenate(([-np.inf], end))[np.searchsorted(begin, left, "right")]
        own = left - before > TRACE.backlog_share * (right - left)  # else a gap's backlog
        begin, end = np.concatenate((begin, left[own])), np.concatenate((end, right[own]))
    begin, end = merge_intervals(begin, end)
    if not begin.size:
        return Stalls.none(*notes)
    due = trace.rates_in(begin, end, trace.windows) * (np.minimum(end, trace.span) - begin)
    lacking = due - trace.sends_within(begin, end)
    certain = lacking > TRACE.missing_deviations * np.sqrt(np.maximum(due, 1))
    # Of the requests sent by the end and answered after the start, those slow and answered late.
    waiting = np.searchsorted(trace.start, end, "right") - np.searchsorted(
        trace.ends, begin, "right"
    )
    slow = trace.latency > 2 * trace.baseline
    delayed = np.searchsorted(trace.start[slow], end, "right") - np.searchsorted(
        np.sort(trace.end[slow]), end - TRACE.end_share * (end - begin), "left"
    )
    # The longest of the requests under way in each: of those that lie within no other.
    outer = trace.end >= np.maximum.accumulate(trace.end)
    first = np.searchsorted(trace.end[outer], begin, "left")
    last = np.searchsorted(trace.start[outer], end, "right")
    ranges = as_positions(np.stack((first, last), 1).ravel())
    worst = np.maximum.reduceat(np.append(trace.latency[outer], 0.0), ranges)
    return Stalls(
        begin,
        end,
        worst[::2] * 1e9,
        np.where(certain, np.rint(lacking), 0).astype(np.int64),
        np.clip(delayed / np.maximum(waiting, 1), 0.0, 1.0),
        notes,
    )


# ------------------------------------------------------------
# Stalls of an interval log: from long maxima, if counts or latencies confirm them, and from
# intervals that ended late.
#
# One slow request makes a long maximum, too. A stop shows in the counts (too few replies
# meanwhile), in the latencies (requests that arrive during a stall of d seconds take from d down to
# nothing, evenly), or in the logger itself.

LEVELS = (0.1, 0.2, 0.4, 0.5, 0.6, 0.8)
"""Parts of a stall's longest latency above which requests are counted."""

FIFTHS = [LEVELS.index(part) for part in (0.2, 0.4, 0.6, 0.8)]
"""Positions of those where its fifths begin, but the first."""

PARTLY, HALF, THROUGHOUT = (LEVELS.index(part) for part in (0.1, 0.5, 0.8))
"""Positions of those above which a request was slow for a part, half and nearly all of a stall."""


@record()
class LogStallRules:
    """When a long maximum of a log is a stall; chosen on isolated slow requests and warm-ups."""

    # a maximum of that many mean gaps between requests,
    min_mean_gaps: float = 20.0
    # and of that many medians, may be a stall
    min_medians: float = 20.0
    # of an interval: the counts could not show a shorter one
    min_interval_share: float = 0.02
    # or of these many where as many replies lack as it implies (freezes of 12 intervals),
    hole_mean_gaps: float = 5.0
    hole_medians: float = 5.0
    # that the replies lack, in standard deviations of the counts
    hole_deviations: float = 2.5
    # of the usual length of an interval: one that is longer by that ended late
    stretch_share: float = 0.2
    # of the usual requests: fewer were answered while the server was stopped
    few_share: float = 0.5
    # of the counts: a smaller shortfall may be chance
    missing_deviations: float = 3.0
    # due in the intervals within a stall, to show that few were answered
    min_core_requests: float = 5.0
    # of the requests that a stall delays: each fifth of its length has that many,
    even_share: float = 0.5
    # if that many are due
    min_fifth_requests: float = 4.0
    # of the requests: if fewer were delayed, no part of a server was stopped
    min_part_share: float = 0.1
    # of a part that was stopped: fewer could be slow independently
    min_part_requests: float = 50.0
    # what a stall delayed is answered within that many times its length
    max_lengths: float = 4.0
    # a first interval whose own median is above that belongs to the warm-up
    warm_medians: float = 3.0
    # that a time bin should count for a usual rate
    rate_bin_requests: float = 50.0
    # and the fewest bins of a run
    rate_bins: int = 8
    # of a standard deviation: the least that counts have
    min_deviation: float = 0.5


LOG = LogStallRules()


@record()
class CountGapRules:
    """How the hole that a stall leaves in the counts is measured; chosen on freezes and pauses."""

    # of the longest latency: a burst that makes up for a stall is over by then (catch-up loops)
    reach_lengths: float = 1.5
    # of the run: with less outside stalls, all of it gives the rate
    min_quiet_share: float = 0.1
    # of what a hole lacks: with as little left, a burst made up for it
    max_rest: float = 0.5
    # whose bursts are looked for, the longest first: for time
    max_holes: int = 200
    # rounds, in which the rate outside stalls and bursts settles
    turns: int = 3
    # intervals to either side, or as many as a hole has, that show the rate there
    min_beside: int = 5


COUNT_GAP = CountGapRules()


def usual_rate(series: IntervalSeries) -> float:
    """Return the requests per second of an ordinary time bin: the median of those with any."""
    # a rate from an interval below a nanosecond, which corrupt times give, may be infinite
    used = (series.count > 0) & (series.length >= TINY)
    if not used.any():
        return 0.0
    order = np.argsort(series.start[used], kind="stable")
    count, length = series.count[used][order], series.length[used][order]
    most = max(count.size // LOG.rate_bins, 1)
    together = int(np.clip(np.ceil(LOG.rate_bin_requests / float(median(count))), 1, most))
    return float(median(in_groups(count, together) / in_groups(length, together)))


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


class WorkFold:
    """Sums, per interval, the latencies and their squares: a fold for a pass over a log."""

    def __init__(self, intervals: int) -> None:
        self.work, self.squares = np.zeros((2, intervals))

    def add(self, block: Block) -> None:
        """Take a block in."""
        latency = block.buckets.mid(np.arange(block.width))[block.index]
        work, filled = latency * block.counts, np.diff(block.indptr) > 0
        rows, first = block.rows[filled], block.indptr[:-1][filled]
        self.work[rows] = np.add.reduceat(work, as_positions(first))
        self.squares[rows] = np.add.reduceat(work * latency, as_positions(first))


@record()
class _Intervals:
    """The intervals in the order of time, seconds."""

    start: Floats
    length: Floats
    count: Floats
    worst: Floats
    middle: Floats
    rate: float
    baseline: float  # latency

    @cached_property
    def stop(self) -> Floats:
        return self.start + self.length

    @cached_property
    def nominal(self) -> float:
        """Usual length of an interval."""
        return float(median(self.length))

    @cached_property
    def due(self) -> Floats:
        """Requests due in each interval, up to the end of the traffic."""
        # Where the last that counted half as many would have had what is counted from it on, and
        # the longest of the last requests later: sends may have waited for that.
        due = self.rate * self.length
        last = np.flatnonzero(self.count >= LOG.few_share * due)[-1:]
        for k in last.tolist():
            over = self.start[k] + self.count[k:].sum() / self.rate
            over += self.worst[np.flatnonzero(self.count)[-1]]
            due = self.rate * np.clip(over - self.start, 0.0, self.length)
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


def _stalls_of_log(log: HistogramLog, series: IntervalSeries) -> Stalls:
    factor = NANOSECONDS.get(series.unit, 1.0)
    order = np.argsort(series.start, kind="stable")
    rate, middle = usual_rate(series), series.values[order, 0] * factor / 1e9
    if not rate:
        return Stalls.none()
    rows = _Intervals(
        series.start[order], series.length[order], series.count[order].astype(np.float64),
        np.nan_to_num(series.max[order]) * factor / 1e9, middle, rate,
        float(median(middle[~np.isnan(middle)])),
    )  # fmt: skip
    begin, end, of, late = _candidates(rows)
    if not begin.size:
        return Stalls.none()
    # Of those that overlap the longest: the others are its backlog.
    left, right = merge_intervals(begin, end)
    group = np.searchsorted(left, begin, "right") - 1
    last_of_group = np.searchsorted(np.sort(group), np.arange(left.size), "right") - 1
    longest = np.lexsort((end - begin, group))[last_of_group]
    spans = _StallWindows(begin[longest], end[longest], *rows.touched(left, right))
    # The longest request of an interval that ended late may have waited for less than all of it.
    late_one = longest >= begin.size - late.sum()
    worst = np.where(late_one, np.maximum(spans.most(rows.worst), TINY), spans.duration)
    ends = of[longest]  # the interval of the longest request
    reference = np.zeros(rows.start.size)
    np.maximum.at(
        reference, spans.positions, np.repeat(worst, as_positions(spans.last - spans.first))
    )
    by_row = np.empty(reference.size)
    by_row[order] = reference * 1e9 / factor
    slower = np.zeros((len(LEVELS), by_row.size), np.int64)
    touched = np.flatnonzero(by_row)
    fold = SlowFold(by_row[touched])
    scan(log[touched], fold)
    slower[:, touched] = fold.counts
    slower = slower[:, order]
    # Of a longer time with slow requests all through, a stall has that part.
    covered = _own_sums(rows.length, spans)
    longest_time = LOG.max_lengths * (spans.duration + spans.most(rows.length))
    part = np.minimum(longest_time / np.maximum(covered, TINY), 1.0)
    n_slow = part * _own_sums(slower, spans)
    asleep = spans.sums(late) > 0
    hole = _holes(rows, ends, worst, slower[-1], n_slow)
    no_replies = hole.core_due >= LOG.min_core_requests
    no_replies &= hole.core_replies <= LOG.few_share * hole.core_due
    least = np.maximum(LOG.few_share * hole.due, LOG.hole_deviations * hole.noise)
    stopped = no_replies | (hole.dip >= np.maximum(least, LOG.min_core_requests))
    stopped |= asleep
    # Where a part of a server stopped, as many were delayed as fill the time evenly.
    due = rows.rate * spans.duration
    share = np.clip(n_slow[HALF] / np.maximum(due / 2, TINY), 0.0, 1.0)
    is_uniform = share >= np.clip(
        LOG.min_part_requests / np.maximum(due, 1.0), LOG.min_part_share, LOG.even_share
    )
    is_uniform &= part == 1  # else slow throughout
    is_uniform &= evenly_spread(n_slow, np.zeros_like(n_slow), share * due, LOG.min_fifth_requests)
    others = np.ones(rows.start.size, np.bool_)  # their requests may be slow as well
    others[_positions(spans.first[stopped | is_uniform], spans.last[stopped | is_uniform])] = False
    usual_slow = np.zeros((len(LEVELS), worst.size))  # of these, those as slow as each stall's
    if not others.all():
        levels = np.array(LEVELS)[:, None] * worst * 1e9 / factor
        every, theirs = (
            np.append(np.cumsum(some.counts[::-1])[::-1], 0)[
                np.searchsorted(some.counted.high, levels, "right")
            ]
            for some in (log.histogram(), log[np.sort(order[~others])].histogram())
        )
        usual_slow = np.maximum(every - theirs, 0)
    baseline = usual_slow / max(float(rows.length[others].sum()), TINY) * part * covered
    is_uniform &= evenly_spread(n_slow, baseline, share * due, LOG.min_fifth_requests)

    silence = np.where(no_replies | asleep, spans.duration, 0.0)
    slow = (rows.middle > LOG.warm_medians * rows.baseline) | (rows.count == 0)
    lead = int(np.argmin(slow))
    counted, wanted = (float(part[:lead].sum()) for part in (rows.count, rows.due))
    until = float(rows.length[:lead].sum())
    notes, warm = _warm_up(until, counted, wanted, spans.begin - rows.start[0] < until, silence)
    kept_stalls = (stopped | is_uniform) & ~warm
    # What shares an interval with a stall may be another: its requests counted for the first.
    isolated = int((~stopped & ~is_uniform & ~warm & (spans.sums(~others) == 0)).sum())
    if isolated:
        often = "once" if isolated == 1 else f"{isolated:,} times"
        slow_alone = "requests were slow while others were answered as usual: not a stall"
        notes = (*notes, f"{often} {slow_alone}")
    short = np.minimum(hole.short, _own_sums(rows.lost, spans))  # a backlog may take longer
    certain = short >= LOG.missing_deviations * hole.noise
    missing = np.where(certain, np.clip(np.rint(short), 0, np.rint(hole.due)), 0)
    return Stalls(
        spans.begin[kept_stalls], spans.end[kept_stalls], worst[kept_stalls] * 1e9,
        missing[kept_stalls].astype(np.int64), np.where(stopped, 1.0, share)[kept_stalls], notes,
        replace(hole, baseline=baseline).select(kept_stalls),
    )  # fmt: skip


@record(eq=False)
class Holes(Value):
    """What each stall of a log leaves in its counts: arrays of one length."""

    due: Floats  # requests in as long as the longest latency, at the rate outside stalls
    core_due: Floats  # of these, in the intervals that lie wholly within the longest request's life
    core_replies: Floats
    short: Floats  # by how much the counts fall short of that rate,
    dip: Floats  # by how much they did at most, before a burst made up for it,
    noise: Floats  # and the standard deviation of such sums elsewhere in the run
    rest: Floats  # the shortfall that is left once a burst after the stall is over
    rest_noise: Floats
    quiet: Flags  # (intervals by time,): those without a stall, or a burst that follows one
    n_slow: Floats  # (levels, stalls): requests slower than LEVELS × the longest
    baseline: Floats  # (levels, stalls): the same as other intervals would have it

    def select(self, mask: Flags) -> Holes:
        """Some of them."""
        names = [item.name for item in fields(self) if item.name != "quiet"]
        return replace(self, **{name: getattr(self, name)[..., mask] for name in names})


def _holes(rows: _Intervals, ends: Ints, worst: Floats, slow: Ints, n_slow: Floats) -> Holes:
    """Measure the hole that each stall leaves in the counts, and the burst after it."""
    size = rows.start.size
    within = np.minimum(np.searchsorted(rows.start, rows.stop[ends] - worst - TINY, "left"), ends)
    # The first replies of those that waited may be in an interval before.
    waiting = np.append(np.flatnonzero(slow > 0), size)
    begun = np.minimum(waiting[np.searchsorted(waiting, within)], ends)
    stops = np.maximum.accumulate(rows.stop)
    first = np.minimum(np.searchsorted(stops, rows.start[ends] - worst, "right"), ends)
    # A hole ends with the replies that waited for it; the interval after it may have some of them.
    until = np.append(first[1:], size)
    last = np.minimum(ends + 2, np.maximum(until, ends + 1))
    reach = rows.stop[ends] + np.maximum(COUNT_GAP.reach_lengths * worst, 2 * rows.nominal)
    after = np.clip(np.searchsorted(rows.start, reach), last, np.maximum(until, last))
    best, quiet, lost = last, rows.due > 0, rows.lost
    for turn in range(COUNT_GAP.turns):  # a burst after a hole says nothing of the usual rate
        if turn:
            quiet = (rows.stop < rows.stop.max() - TINY) & (rows.due > 0)
            quiet[:1] = False
            quiet[_positions(first, best)] = False
            if rows.length[quiet].sum() < COUNT_GAP.min_quiet_share * rows.length.sum():
                quiet[:] = True
            rate = float(rows.count[quiet].sum() / max(rows.length[quiet].sum(), TINY))
            lost = np.where(rows.due > 0, rate / rows.rate * rows.due - rows.count, 0.0)
        total = np.concatenate(([0.0], np.cumsum(lost)))
        best = last.copy()  # where the shortfall is closest to nothing
        for k in np.argsort(-worst)[: COUNT_GAP.max_holes].tolist():
            rest = np.abs(total[last[k] : after[k] + 1] - total[first[k]])
            if rest.min() < COUNT_GAP.max_rest * abs(total[last[k]] - total[first[k]]):
                best[k] += int(rest.argmin())
    away = np.abs(rows.count[quiet] - median(rows.count[quiet])) if quiet.any() else np.zeros(1)
    one = max(MAD * float(median(away)), LOG.min_deviation)

    def noise(widths: Ints) -> Floats:
        """Standard deviation of sums over as many intervals, and of what is usual for them."""
        deviation = one * np.sqrt(widths * (1 + widths / max(int(quiet.sum()), 1)))
        return np.asarray(np.maximum(deviation, LOG.min_deviation))

    counted, lengths = np.where(quiet, rows.count, 0.0), np.where(quiet, rows.length, 0.0)
    rate = float(counted.sum() / max(lengths.sum(), TINY))
    reach = np.maximum(best - first, COUNT_GAP.min_beside)

    def change(low: Ints, high: Ints) -> Floats:
        """By how much the rate of some intervals is another one, beyond chance."""
        number, time, parts = (_sums(part, low, high) for part in (counted, lengths, quiet))
        off = number - rate * time
        known = np.where(np.abs(off) > LOG.missing_deviations * np.sqrt(number), off, 0.0)
        return np.where(parts > 1, known / np.maximum(time, TINY), math.nan)

    # Where the load changes over the run, requests are due at the rate before the stall or after
    # it, where a burst may be: what is nearer to that of all, which lies between them in midst.
    one_side = change(np.maximum(first - reach, 0), first)
    other = change(best, np.minimum(best + reach, size))
    nearer = np.isnan(other) | (np.abs(one_side) < np.abs(other))
    more = np.nan_to_num(np.where(nearer, one_side, other))
    more[one_side * other < 0] = 0.0

    def lacking(until: Ints) -> Floats:
        return total[until] - total[first] + more * _sums(rows.length, first, until)

    return Holes(
        due=(rate + more) * worst, core_due=(rate + more) * _sums(rows.length, within, begun),
        core_replies=_sums(rows.count, within, begun),
        short=lacking(last),
        dip=np.maximum(lacking(ends), np.maximum(lacking(ends + 1), lacking(last))),
        noise=noise(last - first), rest=lacking(best), rest_noise=noise(best - first),
        quiet=quiet, n_slow=n_slow, baseline=n_slow,
    )  # fmt: skip


def _candidates(rows: _Intervals) -> tuple[Floats, Floats, Ints, Flags]:
    """Begin, end and interval of times that may be stalls, and the mask of late intervals."""
    limit = max(
        LOG.min_mean_gaps / rows.rate,
        LOG.min_medians * rows.baseline,
        LOG.min_interval_share * rows.nominal,
    )
    late = rows.length > rows.nominal * (1 + LOG.stretch_share) + rows.baseline
    late[-1:] = False  # the last interval ends with the run
    late &= rows.length - rows.nominal > limit
    # Where no request waited for it, it was meant to be that long, or traffic paused.
    late &= rows.worst >= LOG.few_share * np.maximum(rows.length - rows.nominal, 0.0)
    # Intervals whose longest request is shorter, but long enough for the replies that lack: a hole
    # says more than the maximum alone. Holes of longer requests are theirs.
    known = rows.worst > limit
    away = np.abs(rows.lost[rows.due > 0])
    deviation = max(MAD * float(median(away)), LOG.min_deviation) if away.size else math.inf
    index = np.arange(rows.start.size)
    since = np.searchsorted(np.maximum.accumulate(rows.stop), rows.start - rows.worst, "right")
    since, lost = np.minimum(since, index), np.append(0.0, np.cumsum(rows.lost))
    least = np.maximum(
        LOG.few_share * rows.rate * rows.worst,
        LOG.hole_deviations * deviation * np.sqrt(index + 1 - since),
    )
    lacking = np.maximum(lost[:-1], lost[1:]) - lost[since]  # a burst may end the hole
    hole = lacking >= np.maximum(least, LOG.min_core_requests)
    hole &= rows.worst > np.maximum(
        LOG.hole_mean_gaps / rows.rate, LOG.hole_medians * rows.baseline
    )
    theirs = np.bincount(since[known], minlength=index.size) - np.append(0, known[:-1])
    hole &= _sums(np.cumsum(theirs) > 0, since, index + 1) == 0
    slow = np.flatnonzero(known | hole)
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
    return begin, end, np.concatenate((slow, np.flatnonzero(late))), late


@record(eq=False)
class _StallWindows:
    """Times, with the first and last + 1 of the intervals that each touches."""

    begin: Floats
    end: Floats
    first: Ints
    last: Ints

    @cached_property
    def duration(self) -> Floats:
        return self.end - self.begin

    @cached_property
    def positions(self) -> Ints:
        """All intervals of the first, then of the second, and so on."""
        return _positions(self.first, self.last)

    def most(self, values: Floats) -> Floats:
        """Largest value of each."""
        offsets = np.concatenate(([0], np.cumsum(self.last - self.first)[:-1]))
        return np.asarray(np.maximum.reduceat(values[self.positions], as_positions(offsets)))

    def sums(self, values: Floats | Ints | Flags) -> Floats:
        """Sum of the values of each."""
        return _sums(values, self.first, self.last)


def evenly_spread(n_slow: Floats, baseline: Floats, due: Floats, minimum: float) -> Flags:
    """Return which stalls have latencies in each fifth of their length but the lowest."""
    # So it is for requests that arrive all through a stall.
    each, end = due / (len(FIFTHS) + 1), np.zeros((1, due.size))
    fill = -np.diff((n_slow - baseline)[FIFTHS], axis=0, append=end)
    noise = np.sqrt(np.maximum(-np.diff(baseline[FIFTHS], axis=0, append=end), 0.0))
    enough = fill >= np.maximum(LOG.even_share * each, LOG.missing_deviations * noise)
    return np.asarray((each >= minimum) & enough.all(axis=0))


def _warm_up(
    until: float, answered: float, due: float, at_first: Flags, silence: Floats
) -> tuple[tuple[str, ...], Flags]:
    """The note on a warm-up, and which stalls are slow requests in it that yet are answered."""
    warm = at_first & (silence < until / 2) & (answered >= LOG.few_share * due)
    note = (
        f"warm-up: the first {format_duration(until * 1e9)} were slow throughout, though "
        "requests were answered: not a stall"
    )
    return ((note,) if warm.any() else ()), warm


def _positions(first: Ints, last: Ints) -> Ints:
    """All positions of the half-open ranges, one range after the other."""
    number = last - first
    if not number.size:
        return np.zeros(0, np.int64)
    before = np.concatenate(([0], np.cumsum(number)[:-1]))
    return np.repeat(first - before, as_positions(number)) + np.arange(number.sum())


def _sums(values: Floats | Ints | Flags, first: Ints, last: Ints) -> Floats:
    """Sums over half-open ranges."""
    total = np.concatenate(([0.0], np.cumsum(values)))
    return np.asarray(total[last] - total[first])


def _own_sums(values: Floats | Ints, spans: _StallWindows) -> Floats:
    """Sums over ranges of the last axis; what two of them share counts for the larger one."""
    size, touched = spans.duration, spans.positions
    owner = np.repeat(np.arange(size.size), as_positions(spans.last - spans.first))
    largest = np.zeros(values.shape[-1])
    np.maximum.at(largest, touched, size[owner])
    own = np.where(size[owner] >= largest[touched], values[..., touched], 0)
    starts = np.searchsorted(owner, np.arange(size.size))
    return np.asarray(np.add.reduceat(own, as_positions(starts), axis=-1), np.float64)


# ------------------------------------------------------------
# Whether the slowest requests, or silences, belong to the tail of all others.


@record()
class TailRules:
    """Whether the slowest belong to the tail of the others; chosen on services without a freeze."""

    # of all values: above a larger part lies no tail
    max_share: float = 0.1
    # times as many values lie above the one from which the exponent is measured
    span: float = 5.0
    # above a value that is compared with: fewer do not show a tail
    min_values: float = 8.0
    # standard errors by which the exponent of a tail may be overestimated
    deviations: float = 1.5
    # logarithms between two values: less is rounding
    min_distance: float = 1e-9
    # a tail may be as heavy, or is taken for no steeper
    min_exponent: float = 0.5
    max_exponent: float = 6.0
    # times the largest ones: beyond that far from the body a tail may become heavier (Pareto 1.5)
    far: float = 20.0
    far_exponent: float = 1.5
    # and that of a service whose other latencies are all alike
    constant_exponent: float = 2.0
    # next to the largest, whose spread gives the exponent (Hill, 1975)
    hill_values: float = 40.0
    # the largest values count as independent, up to that many
    max_independent: int = 3
    # silences or requests that show a tail
    min_silences: int = 20
    min_requests: int = 50
    # other requests as slow per long silence: more are a mode of the service
    max_slow: float = 6.0
    # and as many, while others were answered, that took as long as those that waited
    min_as_slow: int = 3
    # decades that remain where they are a mode, and that each further one takes from a rare one
    mode_decades: float = 0.5
    further_decades: float = 2.0
    # part of the largest within which values are alike, and the closest that counts
    spread: float = 0.25
    min_spread: float = 0.002
    # longest silences among which the largest ratio is looked for
    silences: int = 8
    # other requests as long as a silence, where there are none
    others: float = 0.5
    # decades: that slow requests of several connections overlap, at most
    max_overlap: float = 3.0


TAIL = TailRules()


def beyond_tail(least: float, number: int, values: Floats, counts: Floats) -> float:
    """Return `tail_decades`; a constant service may have a heavy tail from its latency on."""
    beyond = tail_decades(least, number, values, counts)
    if beyond != 0.0:
        return beyond
    if not values[-1]:  # all others are below what the source resolves
        return math.inf
    above = float(counts[values > values[-1] / 2].sum()) + number
    k = min(number, TAIL.max_independent)
    ways = sum(math.log10((above - i) / (i + 1)) for i in range(k))
    return k * TAIL.constant_exponent * (math.log10(least) - math.log10(values[-1])) - ways


def alike_decades(spread: float) -> float:
    """Decades by which a value is unusual that lies so close to another, as a part of it."""
    return math.log10(max(TAIL.spread / max(spread, TAIL.min_spread), 1.0))


def rare_mode_decades(length: Floats, usual: float, *, full_speed: bool) -> float:
    """Return the odds against a rare slow mode of the service that left several slow requests."""
    # It is the rarer the farther it is from the usual latency, and the likelier, compared with
    # freezes of the server, the more requests it left that differ; alike are freezes that a
    # schedule shows, else timers (retransmission, retries).
    number, most = length.size, float(length.max(initial=0.0))
    if number < 2:
        return math.inf
    far_off = TAIL.constant_exponent * math.log10(most / max(usual, TINY))
    alike = alike_decades(1 - float(length.min()) / most)
    each = TAIL.further_decades + (alike if full_speed else -alike)
    return max(far_off - each * (number - 1), 0.0)


def tail_decades(least: float, number: int, values: Floats, counts: Floats | Ints) -> float:
    """Return the odds (decimal logarithm) against a common tail of the largest and the others."""
    # Of m values above x in a tail of exponent a, each exceeds y with probability (y / x)^-a, and k
    # of them in C(m, k) ways. The exponent is that of the values next below x. `least` is y,
    # `number` k; `values` are upper bounds of the others, ascending, and `counts` how many each is
    # of.
    above = number + np.concatenate((np.cumsum(counts[::-1])[::-1][1:], [0.0]))
    total = float(counts.sum()) + number
    kept = (above >= max(TAIL.min_values, number)) & (above <= TAIL.max_share * total)
    kept &= (values < least) & (values > 0)
    # from the first value above which span times as many lie, in ascending values
    base = np.searchsorted(-above, -TAIL.span * above, "right") - 1
    kept &= (base >= 0) & (values[base] > 0)
    if not kept.any():
        return 0.0
    reached, x, base = above[kept], values[kept], base[kept]
    distance = np.maximum(np.log(x) - np.log(values[base]), TAIL.min_distance)
    exponent = np.log(above[base] / reached) / distance
    exponent = exponent * np.maximum(1 - TAIL.deviations / np.sqrt(reached), 0.0)
    most = np.where(reached > TAIL.far * number, TAIL.far_exponent, TAIL.max_exponent)
    exponent = np.clip(exponent, TAIL.min_exponent, most)
    k = min(number, TAIL.max_independent)
    ways = sum(np.log10((reached - i) / (i + 1)) for i in range(k))
    far_off = float((k * exponent * (np.log10(least) - np.log10(x)) - ways).max())
    # The same from the largest of the others on, with the exponent of the values next to it.
    near = above < number + min(TAIL.hill_values, TAIL.max_share * total)
    size, log = float(counts[near].sum()), np.log(values[near])
    logs = float(counts[near] @ (log - log[:1])) if size >= TAIL.min_values else 0.0
    if not logs > 0 or least <= values[-1]:
        return far_off
    hill = min((size - 1) / logs, TAIL.max_exponent)
    return max(far_off, k * hill * (math.log10(least) - math.log10(values[-1])))
