"""What each stall of a run left behind, from every kind of source: one record for all of them.

For a stall of d seconds at λ requests per second: how many requests were due, were sent, were
missing once a burst was over, and were slow throughout it or for a part of it. Samples show all of
this. A log counts replies, not sends: what was sent follows from what its intervals lack. Of a
histogram only the slow requests are known, and what a stated rate leaves missing.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._records import record
from latencykit._typing import Flags, Floats, Ints
from latencykit.analysis.stalls import (
    MAD,
    PARTLY,
    TAIL,
    THROUGHOUT,
    TINY,
    Stalls,
    Trace,
    alike_decades,
    beyond_tail,
    evenly_spread,
    in_groups,
    merge_intervals,
    rare_mode_decades,
    tail_decades,
)
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import IntervalSeries
from latencykit.core.quantiles import median

if TYPE_CHECKING:
    from latencykit.analysis.facts import Facts


@record()
class RecordRules:
    """How stalls are measured; chosen with ``tests.benchmarks.omission``, on seeds from 0 on."""

    # stalls that are examined, and the share of the longest that they last at least
    max_stalls: int = 20
    min_length: float = 1 / 3
    # decades: no observation is surer than its model
    max_decades: float = 6.0
    # of a stall: a request that began by then was slow throughout,
    throughout: float = 0.2
    # one that began by then was slow for a part
    part: float = 0.9
    # of a stall's length: its edge, where sends and replies are counted
    edge: float = 1e-3
    # fewer requests were slow throughout a stall: one alone
    one_alone: float = 1.5
    # steps of a coarse clock that a stall lasts at least
    min_steps: float = 3.0
    # of the run: the least that is quiet
    min_quiet: float = 0.02
    # a Poisson count of less is none
    least_mean: float = 1e-3
    # requests of a connection within a stall
    sent_each: float = 1.5
    # lengths of a stall within which a burst makes up for it, and moments that are looked at
    burst_lengths: float = 1.5
    burst_moments: int = 64
    # requests due that show whether sends went on, and the share of them that were sent
    min_due: float = 20.0
    min_sent_share: float = 0.8
    # windows elsewhere that show how much sends vary, and in how many parts a stall is counted
    min_windows: int = 8
    window_parts: int = 8
    # variance over mean of counts that keep to a schedule
    schedule_variance: float = 0.25
    min_schedule_bins: int = 8
    max_bins: float = 1e6
    # of such counts: that many lie within as many deviations of a normal distribution
    near_share: float = 0.8
    near_deviations: float = 1.28
    bin_requests: float = 10.0


RECORD = RecordRules()


@record()
class NearRules:
    """Which requests of a histogram waited for its longest stall; chosen on broad services."""

    # of the maximum: slower requests were slow throughout, and for a part of it
    near_share: float = 0.75
    part_share: float = 0.25
    # upper edge over lower: a wider bucket is one between two percentiles
    max_edge_ratio: float = 1.5
    # of the maximum: a wider bucket hides how alike they are
    max_hidden: float = 0.1


NEAR = NearRules()


_NONE: Any = 0
"""What a source does not show, of every stall."""


@record(eq=False)
class StallRecord:
    """What a source shows of each stall: arrays of one length; counts are requests, times seconds.

    Observations that are probabilities by themselves are in decades (a decimal logarithm).
    """

    length: Floats
    due: Floats
    sent: Floats
    missing: Floats  # once a burst after the stall is over
    throughout: Floats  # slow throughout the stall
    partial: Floats  # slow for a part of it
    tail: Floats  # decades by which the silence is unusual in a loop where nothing stopped
    baseline: float  # median latency
    rate: float  # of requests due
    count: float  # of all requests
    lull: Floats = _NONE  # decades by which so few sends are unusual if sends went on
    lack: Floats = _NONE  # decades by which what is missing in the end is unusual if all is there
    is_uniform: Flags = _NONE  # latencies are spread evenly up to the longest
    ended: Flags = _NONE  # the run ends in the stall
    noise: Floats = _NONE  # standard deviation of the counts
    last: Floats = _NONE  # probability that requests as slow are in flight when a run ends
    listed: Floats = _NONE  # missing as the list of stalls has them; 0 where that may be chance
    slack: Floats = _NONE  # requests that the resolution of the source leaves open
    in_flight: float = 0.0  # usual number, by Little's law
    scheduled: bool | None = None  # it looks like a load generator; None: cannot be seen
    blur: float = 0.0  # requests sent in as long as a start is uncertain
    timed: bool = True
    sends_known: bool = True
    stated: tuple[float, ...] = ()  # decades, by explanation, of what a stated rate leaves missing
    alike: float = 0.0  # decades by which as many, as alike as connections that wait, are unusual
    hidden: float = 0.0  # requests that may have been slow for a part, too: wide buckets hide it

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.type in ("Floats", "Flags"):
                value = np.broadcast_to(np.asarray(getattr(self, item.name)), np.shape(self.length))
                object.__setattr__(self, item.name, value)

    @property
    def waited(self) -> Floats:
        """Requests of each stall that were sent, or waited for it."""
        return np.maximum(self.sent, np.minimum(self.throughout, self.due))

    @property
    def omitted(self) -> Floats:
        """Requests due in each stall that were neither; as the list of stalls counts them."""
        return np.where(self.listed > 0, self.listed, np.maximum(self.due - self.waited, 0.0))


def stall_record(facts: Facts, stalls: Stalls) -> StallRecord | None:
    """Return what the source shows of its stalls; None where nothing was slow."""
    trace = facts.trace
    if trace is not None:
        if facts.longest < RECORD.min_steps * trace.stamp:
            return None
        return _of_trace(facts, trace, stalls)
    if facts.series is not None:
        return _of_log(facts, facts.series, stalls)
    return None if facts.histogram is None else _of_histogram(facts)


def decades(z: Floats | float) -> Floats:
    """Return the deviance of a normal variable that many deviations off, in decades."""
    return np.asarray(np.square(np.maximum(z, 0.0)) / 2 / math.log(10))


def poisson_decades(k: Floats, mean: Floats, over: Floats | float = 1.0) -> Floats:
    """Return the deviance of a count from its mean, in decades, over-dispersion allowed for."""
    k, mean = np.asarray(k, np.float64), np.maximum(mean, RECORD.least_mean)
    deviance = mean - k + np.where(k > 0, k * np.log(np.maximum(k, TINY) / mean), 0.0)
    bounded = np.maximum(deviance, 0.0) / over / math.log(10)
    return np.asarray(np.minimum(bounded, RECORD.max_decades))


def _longest(length: Floats) -> Ints:
    """Positions, ascending, of the stalls that are examined."""
    first = np.argsort(-length, kind="stable")[: RECORD.max_stalls]
    return np.sort(first[length[first] >= RECORD.min_length * length.max()])


def _lull(
    counts: Floats, loud: Flags, width: float, sent: float, due: float, length: float
) -> float:
    """Decades by which so few requests in a stall are unusual elsewhere, where nobody waits."""
    size = max(round(length / width), 1)
    sums = in_groups(counts, size)[in_groups(loud, size) == 0]
    over = 1.0
    if sums.size >= RECORD.min_windows and sums.mean() > 0:
        over = max(over, float(sums.var(ddof=1) / sums.mean()))
    return float(poisson_decades(np.asarray(min(sent, due)), np.asarray(due), over))


# ------------------------------------------------------------
# Samples: sends and replies are known.


def _of_trace(facts: Facts, trace: Trace, stalls: Stalls) -> StallRecord | None:
    every = (stalls.start, stalls.end) if len(stalls) else trace.windows
    step = trace.stamp
    if not every[0].size:
        return None
    kept = _longest(every[1] - every[0])
    begin, end = every[0][kept], every[1][kept]
    length, sends = end - begin, trace.sends_within
    rates = trace.rates_in(begin, end, every)
    rate = float(rates[length.argmax()])
    early, late = begin + RECORD.throughout * length, begin + RECORD.part * length
    # Of those under way in its last moment: others were answered meanwhile.
    last = (end - RECORD.edge * length - TINY)[:, None]
    long = trace.latency >= (1 - RECORD.part - RECORD.edge) * float(length.min())
    waited = trace.start[long], trace.end[long] > last
    all_through = (waited[0] <= early[:, None]) & waited[1]
    throughout = np.maximum(all_through.sum(axis=1), 1.0)
    sent = sends(begin, end).astype(np.float64)
    ended = (end > trace.span) & (sent <= RECORD.sent_each * throughout + 1)
    ended &= sends(early, end) == 0
    # A run that ends in its stall goes on to the end that is stated, or to the last reply.
    stop = np.minimum(end, max(trace.span, TINY))
    until = np.minimum(end, facts.given_duration) if facts.given_duration else end
    stop = np.where(ended, np.maximum(until, trace.span), stop)
    due = rates * np.maximum(stop - begin, 0.0)
    inside = (waited[0] > early[:, None]) & (waited[0] < np.minimum(late, stop)[:, None])
    partial: Floats = (inside & waited[1]).sum(axis=1).astype(np.float64)
    missing = np.zeros(length.size)
    for k in range(length.size):
        a, b, d = float(begin[k]), float(end[k]), float(length[k])
        limit = float(begin[k + 1]) if k + 1 < length.size else max(trace.span, b)
        at = np.linspace(b, min(b + RECORD.burst_lengths * d, max(limit, b)), RECORD.burst_moments)
        left = rates[k] * (at - a) - sends(np.full(at.size, a), at + TINY)
        missing[k] = due[k] - sent[k] if ended[k] else left[np.argmin(np.abs(left))]
    lull = np.zeros(length.size)
    for k, lasted in enumerate((stop - begin).tolist()):
        width = max(lasted / RECORD.window_parts, trace.span / RECORD.max_bins, TINY)
        edges = np.arange(0.0, trace.span + TINY, width)
        free = _outside(every, edges[:-1], edges[1:], RECORD.throughout)
        counts = sends(edges[:-1], edges[1:]).astype(np.float64)
        lull[k] = _lull(counts, ~free, width, sent[k], due[k], lasted)
    busy = np.minimum(every[1], trace.span) - np.minimum(every[0], trace.span)
    quiet = max(trace.active - float(busy.sum()), RECORD.min_quiet * trace.span, TINY)
    interval = max(float(median(throughout)) / max(rate, TINY), TINY)
    scheduled = (
        trace.full_speed
        or (step > 0 and _keeps_a_schedule(trace, every, step, step))
        or _keeps_a_schedule(trace, every, interval, 0.0)
    )
    is_uniform = (due >= RECORD.min_due) & (sent >= RECORD.min_sent_share * due)
    total = due.sum()
    pooled = total >= RECORD.min_due and sent.sum() >= RECORD.min_sent_share * total
    is_uniform |= pooled & (sent >= due / 2) & (length.size > 2)
    blur = rate * step
    if step:  # neither silences nor the order of sends and replies are known
        sent = np.maximum(sent - blur, np.minimum(sent, throughout))
        tail = np.full(length.size, slowest_of(facts.histogram).decades)
    elif trace.answers.size < TAIL.min_silences:
        tail = np.full(length.size, RECORD.max_decades)
    else:  # by how much each silence is unusual in a closed loop where nothing stopped
        silences = trace.silences[trace.silences > 0]
        if silences.size < TAIL.min_silences:  # the others are below what the source resolves
            silences = trace.silences
        silences = np.sort(silences)[::-1]
        most = TAIL.silences
        k = int(np.argmax(silences[:most] / np.maximum(silences[1 : most + 1], TINY))) + 1
        rest = silences[k:][::-1]
        single = max(beyond_tail(float(silences[k - 1]), k, rest, np.ones(rest.size)), 0.0)
        others = trace.latency > NEAR.part_share * silences[0]
        others &= _outside(every, trace.start, trace.end, RECORD.throughout)
        as_long = trace.latency[long][all_through.any(axis=0)]  # as those that waited
        least = NEAR.near_share * float(median(as_long)) if as_long.size else math.inf
        mode = others & (trace.latency > least)
        if others.sum() > TAIL.max_slow * k or mode.sum() >= TAIL.min_as_slow:
            single = min(single, TAIL.mode_decades)
        alone = throughout < RECORD.one_alone
        rare = rare_mode_decades(length[alone], trace.baseline, full_speed=trace.full_speed)
        took = np.sort(trace.latency)[::-1]
        longer = np.searchsorted(-took, -NEAR.near_share * length)
        work = np.append(0.0, np.cumsum(took))[longer]
        # That requests of several connections overlap is in the tail of the silences, too.
        own = np.where(alone, min(single, rare), max(single - TAIL.further_decades, 0.0))
        tail = np.maximum(own, _overlap_decades(work, length, throughout, trace.span))
    return StallRecord(
        length, due, sent, missing, throughout, partial, np.clip(tail, 0.0, RECORD.max_decades),
        trace.baseline, rate, trace.start.size, lull=lull, lack=lull,
        is_uniform=is_uniform, ended=ended,
        listed=np.asarray(stalls.missing[kept] if len(stalls) else 0.0, np.float64),
        slack=np.asarray(blur), in_flight=float(trace.latency[~trace.slow].sum()) / quiet,
        scheduled=scheduled, blur=blur,
    )  # fmt: skip


def _outside(every: tuple[Floats, Floats], low: Floats, high: Floats, reach: float) -> Flags:
    """Mask of windows that touch no stall, and not the time after it by that many lengths."""
    left, right = merge_intervals(every[0], every[1] + reach * (every[1] - every[0]))
    return np.asarray(np.searchsorted(left, high, "left") <= np.searchsorted(right, low, "right"))


def _keeps_a_schedule(
    trace: Trace, every: tuple[Floats, Floats], interval: float, step: float
) -> bool | None:
    """Sends outside stalls vary far less than random arrivals: a load generator paced them."""
    several = max(1.0, math.ceil(RECORD.bin_requests / max(trace.rate * interval, TINY)))
    width = max(several * interval, trace.span / RECORD.max_bins)
    edges = np.arange(0.0, trace.span, width) - step / 2
    free = _outside(every, edges[:-1], edges[1:], 1.0)
    counts = trace.sends_within(edges[:-1], edges[1:])[free]
    return _is_even(counts[1:] if step else counts[counts > 0])


def _is_even(counts: Floats | Ints) -> bool | None:
    """Counts of equal times vary far less than those of random arrivals; None of too few."""
    if counts.size < RECORD.min_schedule_bins:
        return None
    middle = float(median(counts))
    away = np.abs(counts - middle)
    deviation = max(
        MAD * float(median(away)),
        float(np.quantile(away, RECORD.near_share)) / RECORD.near_deviations,
    )
    rounding = 1.0 if middle >= RECORD.min_schedule_bins else 0.0
    return deviation**2 <= max(RECORD.schedule_variance * middle, rounding)


def _overlap_decades(work: Floats, length: Floats, throughout: Floats, duration: float) -> Floats:
    """Decades by which requests as slow rarely overlap on all connections by chance; of one, 0."""
    # `work` is the request-seconds of all that took about as long, the stall's own included.
    others = np.maximum(work / length - throughout, TAIL.others)
    share = np.minimum(others * length / (throughout * max(duration, TINY)), 1.0)
    rarer = -(throughout - 1) * np.log10(share) - np.log10(np.maximum(others, 1.0))
    return np.where(throughout < RECORD.one_alone, 0.0, np.maximum(rarer, 0.0))


# ------------------------------------------------------------
# Interval logs: replies are counted, sends follow from what is missing.


@record()
class LogRules:
    """What the counts of a log say of sends; chosen on freezes, deploys and lulls."""

    # due within the longest request's life: their replies show whether sends went on
    min_core: float = 5.0
    # of what is due: that much comes back in a burst,
    min_burst_share: float = 0.5
    # in deviations of the counts,
    burst_deviations: float = 4.0
    # and leaves as little missing
    max_rest: float = 0.4
    # of what is due: as many were delayed if all are recorded
    delayed_share: float = 0.75
    # in each fifth of a stall, to show that latencies are spread evenly
    min_fifth: float = 8.0
    # of what is due: the rate is not known better
    rate_error: float = 0.05
    count_error: float = 0.002


LOG = LogRules()


def _of_log(facts: Facts, series: IntervalSeries, stalls: Stalls) -> StallRecord | None:
    counts = stalls.holes
    if not len(stalls) or counts is None:
        return None
    length = stalls.worst / 1e9
    waited = np.maximum(counts.n_slow - counts.baseline, 0.0)
    throughout = np.maximum(waited[THROUGHOUT], 1.0)
    partial = np.maximum(waited[PARTLY] - throughout, 0.0)
    burst = counts.dip >= np.maximum(
        LOG.min_burst_share * counts.due, LOG.burst_deviations * counts.noise
    )
    burst &= np.abs(counts.rest) <= LOG.max_rest * counts.dip
    hole = np.where(burst, np.maximum(counts.dip, counts.short), counts.short)
    went_on = np.clip(counts.core_replies / np.maximum(counts.core_due, TINY), 0.0, 1.0)
    sent = np.where(
        counts.core_due >= LOG.min_core, went_on * counts.due, np.maximum(counts.due - hole, 0.0)
    )
    rest = np.where(np.abs(counts.rest) < np.abs(counts.short), counts.rest, counts.short)
    at = _longest(length)
    length, throughout, partial, sent, rest, due = (
        part[at] for part in (length, throughout, partial, sent, rest, counts.due)
    )
    begin, end = stalls.end[at] - length, stalls.end[at]
    order, interval = np.argsort(series.start, kind="stable"), float(median(series.length))
    noise, total = np.maximum(counts.noise[at], 0.5), facts.duration or 1.0
    off = np.maximum(np.abs(rest) - LOG.rate_error * due, 0.0)
    lack = decades(off / np.maximum(counts.rest_noise[at], 0.5))
    lack = np.where(throughout + partial >= LOG.delayed_share * due, 0.0, lack)
    start, width = series.start[order], series.length[order]
    count: Floats = series.count[order].astype(np.float64)
    left, right = merge_intervals(begin, end)
    loud = np.searchsorted(left, start + 2 * width, "left") > np.searchsorted(
        right, start - width, "right"
    )
    loud[:1] = loud[-1:] = True  # truncated by the run
    lull = np.array(
        [
            _lull(count, loud, interval, *each)
            for each in zip(sent.tolist(), due.tolist(), length.tolist(), strict=True)
        ]
    )
    stop = float((series.start + series.length).max())
    ended = sent <= RECORD.sent_each * throughout + 1 + 2 * noise + LOG.rate_error * due
    ended &= end >= stop - 2 * interval
    histogram, number = facts.histogram, float(median(throughout))
    baseline = float(histogram.percentile(50)) / 1e9
    inside = float((throughout * length).sum())
    others = max(histogram.mean / 1e9 * facts.count - inside, 0.0)
    in_flight = others / max(total - float(length.sum()), TINY)
    top = slowest_of(histogram)
    tail = top.decades
    if number < RECORD.one_alone:
        tail = min(tail, rare_mode_decades(length, baseline, full_speed=facts.at_full_speed))
        as_slow = top.near + top.part > min(at.size, TAIL.max_independent) + RECORD.one_alone
        if as_slow or in_flight >= RECORD.one_alone:
            tail = min(tail, TAIL.mode_decades)  # others as slow, or under way, waited for nothing
    least = NEAR.near_share * length[:, None] * 1e9
    high = histogram.buckets.high(histogram.index)
    work = np.where(high > least, high * histogram.counts, 0.0).sum(axis=1) / 1e9
    rarer = _overlap_decades(work, length, throughout, total)
    tails = max(tail, 0.0) + np.minimum(rarer, TAIL.max_overlap)
    rate = float(counts.due[0] / max(stalls.worst[0] / 1e9, TINY))
    several = max(1, math.ceil(RECORD.bin_requests / max(rate * interval, TINY)))
    all_there = np.abs(throughout + partial - due) <= LOG.rate_error * due
    all_there &= due >= RECORD.min_due
    spread = evenly_spread(counts.n_slow, counts.baseline, counts.due, LOG.min_fifth)
    regular = in_groups(count, several)[in_groups(~counts.quiet, several) == 0]
    slowest = float((throughout + partial).sum())
    return StallRecord(
        length, due, sent, rest, throughout, partial, np.clip(tails, 0.0, RECORD.max_decades),
        baseline, rate, facts.count,
        lull=lull, lack=np.minimum(lack, due),
        is_uniform=spread[at] | all_there, ended=ended, noise=noise,
        last=max(top.near + top.part - slowest, 0.0) * length / total,
        listed=np.where(np.abs(rest) > LOG.max_rest * (due - sent), stalls.missing[at], 0.0),
        slack=LOG.count_error * due, in_flight=in_flight,
        scheduled=facts.at_full_speed or _is_even(regular), blur=rate * interval,
    )  # fmt: skip


# ------------------------------------------------------------
# Histograms: no time. What was sent is known only where a rate is stated.


@record()
class HistogramRules:
    """What a histogram says of stalls; chosen on closed loops of broad service, none frozen."""

    # requests near the maximum per connection, for there to be several stalls,
    max_stalls: float = 5.5
    # and how many were slow for a part of them
    max_part_share: float = 0.6
    # of the connections: as many were slow throughout a stall
    near_number: tuple[float, float] = (0.9, 1.05)
    # of each connection: with fewer, a slow mode of 2 % is about as many requests,
    min_requests: float = 100.0
    # the likelier by that many decades for a tenth of them
    mode_decades: float = 4.0
    # decades: a rare slow mode may be as far from all others
    max_tail_decades: float = 2.3
    # decades: as many as connections by chance; and as alike, at most
    match_decades: float = 1.0
    max_alike_decades: float = 1.0
    # of what waiting costs: it is not known better
    cost_error: float = 0.1
    lack_error: float = 0.02
    # latencies between these shares of the longest are counted: one stall leaves as many in each
    parts: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    min_part_share: float = 0.6
    min_part_requests: float = 25.0
    # of what one stall leaves: all of it, and no more
    there_share: tuple[float, float] = (0.8, 1.25)
    # of the requests due at a stated rate: others may be missing
    min_due_share: float = 0.98


HISTOGRAM = HistogramRules()


def _of_histogram(facts: Facts) -> StallRecord | None:
    if not facts.count or not facts.stall:
        return None
    rules, histogram, number = HISTOGRAM, facts.histogram, facts.connections
    length = min(facts.longest, facts.duration or math.inf)
    baseline = float(histogram.percentile(50)) / 1e9
    top = slowest_of(histogram)
    near, part = max(top.near, 1.0), top.part
    stated, rate = facts.given_rate or facts.run.rate, facts.rate or 0.0
    few = part <= rules.max_part_share * near
    several = number and near / number <= rules.max_stalls and few
    stalls = max(round(near / number), 1) if several and number else 1
    low, high = histogram.buckets.low(histogram.index), histogram.buckets.high(histogram.index)
    if not rate:
        slow = (high > histogram.max / 2) & (high <= NEAR.max_edge_ratio * low)
        late = histogram.censored * (histogram.censored_at > histogram.max / 2)
        slowest = max(float(histogram.counts[slow].sum()) + late, near)
        rate = 2 * slowest / stalls / max(facts.longest, TINY)
    throughout, due = near / stalls, rate * length
    # Do the longest belong to a tail, or to a slow mode of as many requests as connections?
    tail, alike = max(top.decades, 0.0), 0.0
    short = math.log10(max(rules.min_requests * (number or near) / facts.count, 1.0))
    if number:
        fewest, most = rules.near_number
        match = fewest * number <= throughout <= most * number + 0.5
        if match and number > 1 and stalls == 1:
            alike = (min(throughout, TAIL.max_independent) - 1) * alike_decades(top.spread)
            alike = min(alike, rules.max_alike_decades) + rules.match_decades
    else:  # no fewer than are in flight on average (Little's law)
        in_flight = facts.count * histogram.mean / 1e9 / (facts.duration or math.inf)
        match = facts.is_closed_loop and near >= rules.near_number[0] * in_flight
    if not match or not few:
        tail = min(tail, TAIL.mode_decades)
    if facts.at_full_speed:  # several alike are timers
        tail -= (stalls - 1) * (TAIL.further_decades + alike_decades(top.spread))
    # A slow mode of many requests is likelier to be about as many.
    tail = max(min(tail, rules.max_tail_decades) + alike - rules.mode_decades * short, 0.0)
    # Have latencies the shape that one stall leaves, evenly spread below its length? Where in wide
    # buckets requests lie is not known.
    least, most = rules.there_share
    edges = np.array(rules.parts) * length * 1e9
    is_uniform = (
        rate > 0 and not histogram.censored and not (high > most * low)[high > edges[0]].any()
    )
    if is_uniform:
        above = (histogram.counts[:, None] * (high[:, None] > edges)).sum(axis=0)
        fill, each = -np.diff(above, append=0), rate * length * (1 - rules.parts[-1])
        total, share = each * len(rules.parts), rules.min_part_share
        is_uniform = bool(((fill >= share * each) & (fill <= each / share)).all())
        is_uniform = is_uniform and least * total <= above[0] <= most * total
        is_uniform = is_uniform and each >= rules.min_part_requests
    if is_uniform and stated and facts.duration:
        # A tool that keeps to a schedule may count the wait for the last reply as part of the run.
        sending = facts.duration - (
            0.0 if facts.may_be_closed_loop or facts.given_duration else length
        )
        is_uniform = facts.count >= rules.min_due_share * stated * sending
    # What a stated rate leaves missing, by explanation: what waiting costs, or nothing but by
    # chance; or the rate was never reached.
    fits: tuple[float, ...] = ()
    if stated and facts.duration:
        wanted, cost = stated * facts.duration, stalls * max(due - throughout, 0.0)
        lacking = wanted - facts.count - facts.run.failed
        slack = rules.cost_error * cost + 1
        if number:  # a connection that waits v for a reply does not send v / I − 1 requests
            turns = np.minimum((low + high) / 2, histogram.max) * stated / number / 1e9
            cost = float(np.maximum(turns - 1, 0.0) @ histogram.counts)
            cost += histogram.censored * max(facts.longest * stated / number - 1, 0.0)
            slack = (math.sqrt(number) + 1) / 2 + rules.lack_error * abs(lacking)

        def off(difference: float, deviation: float) -> float:
            return -min(float(decades(abs(difference) / deviation)), RECORD.max_decades)

        random = off(max(lacking, 0.0), math.sqrt(wanted))
        random += math.log10(min(slack / math.sqrt(wanted), 1.0))
        none = math.log10(10**random / 2 + 10 ** off(lacking, slack) / 2)
        unknown = math.log10(min(slack / wanted, 1.0))
        fits = (none, none, off(cost - lacking, slack), off(lacking, slack), *[unknown] * 4)
        fits = tuple(max(value, unknown) for value in fits)
    one, sent = np.ones(1), min(throughout, due)
    return StallRecord(
        length * one, due * one, sent * one, (due - sent) * one, throughout * one,
        part / stalls * one, tail * one, baseline, rate, facts.count,
        is_uniform=np.asarray(is_uniform), noise=one, slack=rules.lack_error * due * one,
        timed=False, alike=alike, hidden=top.hidden / stalls,
        sends_known=bool(stated and facts.duration), stated=fits,
    )  # fmt: skip


@record()
class Slowest:
    """The requests near the maximum of a histogram, and those that took a good part of it."""

    near: float
    part: float
    decades: float  # by which they do not belong to the tail of all others
    spread: float = 0.0  # between them, as a part of the maximum, as far as buckets show it
    hidden: float = 0.0  # others that may have taken a good part of it: their buckets are wide


def slowest_of(histogram: Histogram) -> Slowest:
    """Count the requests near the maximum; in wide buckets, as the deviation or the mean allows."""
    low, high = histogram.buckets.low(histogram.index), histogram.buckets.high(histogram.index)
    counts, top = histogram.counts.astype(np.float64), float(histogram.max)
    late = above = 0.0  # that took as long as the slowest, or from `censored_at` on
    if histogram.censored and np.isfinite(histogram.censored_at):
        late, top = float(histogram.censored), max(top, float(histogram.censored_at))
        if histogram.censored_at <= NEAR.near_share * top:
            late, above = 0.0, late
    high = np.minimum(high, top)
    near, part = low > NEAR.near_share * top, high > NEAR.part_share * top
    # Between two percentiles, or in the bucket of the maximum, requests may be anywhere.
    wide = part & ~near & (high > NEAR.max_edge_ratio * low)
    number, at_most = float(counts[near].sum()) + late, float(counts[wide].sum()) + above
    part &= ~near & ~wide
    if at_most:
        mean, std = (histogram.reported_stats.get(name, math.nan) for name in ("mean", "std"))
        power = 1 if math.isnan(mean + std) else 2  # squares are those of the slowest
        rest = (mean if power == 1 else mean**2 + std**2) * (counts.sum() + above)
        rest -= above * histogram.censored_at**power if above else 0.0
        rest -= float((((low + high) / 2) ** power * counts)[~wide].sum())
        more = (rest - float((low**power * counts)[wide].sum())) / top**power
        more = 0.0 if math.isnan(more) else more
        more = float(np.clip(round(more), 0.0 if number else 1.0, at_most))
        number, at_most = number + more, at_most - more
    body = ~near & ~wide & ~part
    if not body.any() or not number:
        return Slowest(number, float(counts[part].sum()), 0.0, hidden=at_most)
    # The least that they can be, if it is not known where in a bucket they are.
    least = max(float(low[near][0]) if near.any() else 0.0, NEAR.near_share * top)
    between = max(float(counts.sum()) + late - float(counts[body].sum()) - round(number), 0.0)
    values, points = np.append(high[body], least), np.append(counts[body], between)
    k = max(round(number), 1)
    beyond = tail_decades(least, k, values, points)
    if not beyond and body.any() and histogram.count >= TAIL.min_requests:
        beyond = beyond_tail(least, k, high[body], counts[body])
    spread = 1 - least / top if near.any() else 0.0
    if near.any() and high[near][0] - low[near][0] > NEAR.max_hidden * top:
        spread = TAIL.spread
    return Slowest(number, float(counts[part].sum()), beyond, spread, at_most)
