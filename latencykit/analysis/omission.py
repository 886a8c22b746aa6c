"""What a test found: one line of a diagnosis."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latencykit.analysis.correct import back_filled
from latencykit.analysis.retime import chains, retime
from latencykit.analysis.stalls import (
    LEVELS,
    Stalls,
    Trace,
    evenly_spread,
    hulls,
    stalls_of,
    usual_rate,
)
from latencykit.core.histogram import STANDARD_PERCENTILES
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.quantiles import poisson_at_least, poisson_at_most, poisson_mean
from latencykit.core.repr_html import verdict_html
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.core.value import Value
from latencykit.errors import InvalidArgumentError
from latencykit.units import (
    NANOSECONDS,
    format_count,
    format_duration,
    format_percentile,
    format_row,
    format_value,
    parse_duration,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from latencykit.core.histogram import Histogram
    from latencykit.core.histogram_log import IntervalSeries
    from latencykit.core.run import Run

    Floats = NDArray[np.float64]
    Data = Samples | HistogramLog | Histogram | Summary

__all__ = [
    "STRONG",
    "WEAK",
    "Counts",
    "Diagnosis",
    "Evidence",
    "Facts",
    "Sends",
    "Verdict",
    "above_half",
    "advice",
    "area_test",
    "counts_in_stalls",
    "diagnose",
    "facts_of",
    "floor_test",
    "full_speed",
    "holm",
    "is_material",
    "ladder",
    "p_words",
    "physics_floor",
    "repaired",
    "repaired_by",
    "seen_from",
    "sends_in_slow_times",
    "sentence",
]


STRONG, WEAK = 0.001, 0.05
LEAST = 5
"""Requests that must be missing before anybody is accused."""


@dataclass(frozen=True)
class Evidence:
    """One test and what it found.

    Attributes
    ----------
    test : str
        Its name.
    statistic : float
        Its p-value where it has one (`p` is True), else the number that it compares.
    threshold : float
        What the statistic is compared with.
    finding : str
        One sentence in words and numbers.
    level : {"none", "weak", "strong", "honest"}
        How strongly it speaks for omission; ``honest`` against it.
    missing : float
        Requests that it finds missing.
    p : bool
        Whether the statistic is a p-value, and so takes part in Holm's correction.
    """

    test: str
    statistic: float
    threshold: float
    finding: str
    level: str = "none"
    missing: float = 0.0
    p: bool = True


def holm(found: list[Evidence]) -> list[Evidence]:
    """Return the tests with their p-values adjusted for how many were made (Holm 1979), and levels to match."""
    order = sorted((one.statistic, k) for k, one in enumerate(found) if one.p)
    out, worst = list(found), 0.0
    for place, (p, k) in enumerate(order):
        worst = max(worst, min(1.0, p * (len(order) - place)))
        level = found[k].level
        if level in ("weak", "strong"):
            level = (
                "strong"
                if level == "strong" and worst < STRONG
                else "weak"
                if worst < WEAK
                else "none"
            )
        out[k] = replace(found[k], statistic=worst, level=level)
    return out


def p_words(p: float) -> str:
    """Return a p-value as text: ``p < 1e-12`` below that."""
    return "p < 1e-12" if p < 1e-12 else f"p = {p:.2g}"


# ------------------------------------------------------------
# T3, the lower bound: the slow requests that a stall of a whole server must leave behind, if
# nobody waited.
#
# While a server is stopped for d seconds, requests that arrive at rate λ without regard to it find it so: λ·(d − x) of
# them take longer than x. Hence Q(q) ≥ d − (1 − q)·T over a run of T seconds. A lone slow request that delayed no other
# breaks the bound as well, so that this test accuses only where the tool is known to wait for replies. Nor does a number
# that reaches it clear anybody: many stalls that each left requests out, or a service that is slow at times, reach it, too.
# One stall that nobody waited for leaves latencies spread evenly from its length down; that shape does.

_DEFICIT = 0.5  # of what must be there: less is missing, and not only late
_THERE = 0.8
_MOST = 1.25  # of what one stall leaves: more is not one stall
_PARTS = (0.2, 0.4, 0.6, 0.8)  # of the stall: latencies between these are counted
_LEAST_PART = 0.6  # of what one stall leaves in each of these parts, where it leaves at least
_SURE_PART = 25.0  # requests there
_FEW_EDGES = 40  # of buckets: a list of percentiles, not a histogram
_POWER = 20.0  # requests that must exceed half of the stall, to tell


def physics_floor(percentile: ArrayLike, stall: float, duration: float) -> Floats:
    """Return the least that a percentile can be when a whole server was stopped and nobody waited."""
    q = np.asarray(percentile, np.float64) / 100.0
    return np.asarray(np.maximum(stall - (1.0 - q) * duration, 0.0))


def above_half(histogram: Histogram) -> tuple[int, int, float]:
    """Return how many values surely, and at most, exceed half of the largest, and the largest in the histogram's unit."""
    top = histogram.max if histogram.count else 0.0
    if histogram.censored and np.isfinite(histogram.censored_at):
        top = max(top, histogram.censored_at)
    low, high = histogram.buckets.low(histogram.index), histogram.buckets.high(histogram.index)
    surely = int(histogram.counts[low > top / 2].sum()) if histogram.count else 0
    at_most = int(histogram.counts[high > top / 2].sum()) if histogram.count else 0
    late = histogram.censored if histogram.censored_at > top / 2 else 0
    return max(surely, 1) + late if at_most else late, at_most + late, top


def floor_test(
    histogram: Histogram, rate: float, duration: float, *, waited: bool = True
) -> Evidence:
    """Test whether as many requests exceed half of the longest as its stall must have hit."""
    surely, at_most, top = above_half(histogram)
    stall = min(top / 1e9, duration)
    expected = rate * stall / 2
    p = poisson_at_most(at_most, expected)
    missing = expected - at_most
    level = "none"
    if p < WEAK and at_most < _DEFICIT * expected:
        level = "strong" if p < STRONG and missing >= LEAST else "weak"
    elif expected >= _POWER:
        enough = not waited and surely >= _THERE * expected
        if (
            enough
            or _of_one_stall(histogram, rate, stall)
            or _stands_on_it(histogram, stall, duration)
        ):
            level = "honest"
    longest = format_duration(top)
    shown = f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"
    implied = f"a stall of {longest} at {shown} requests per second implies {format_count(expected)} requests slower than half of it"
    has = (
        format_count(at_most)
        if surely == at_most
        else f"{format_count(surely)} to {format_count(at_most)}"
    )
    were = "was" if has == "1" else "were"
    finding = f"{implied}; {has} {were} recorded ({p_words(p)})"
    return Evidence(
        "lower bound",
        p,
        STRONG,
        finding,
        level,
        max(missing, 0.0) if level in ("weak", "strong") else 0.0,
    )


def _of_one_stall(histogram: Histogram, rate: float, stall: float) -> bool:
    """Whether latencies fill each fifth of the longest but the lowest, with as many as one stall leaves there."""
    if not histogram.count or histogram.censored:
        return False
    edges = np.array(_PARTS) * stall * 1e9
    low, high = histogram.buckets.low(histogram.index), histogram.buckets.high(histogram.index)
    if (
        high[high > edges[0]] > _MOST * low[high > edges[0]]
    ).any():  # it is not known where in it requests lie
        return False
    above = np.array([int(histogram.counts[high > edge].sum()) for edge in edges])
    fill, each = -np.diff(above, append=0), rate * stall * (1 - _PARTS[-1])
    total = each * len(_PARTS)
    near = bool(((fill >= _LEAST_PART * each) & (fill <= each / _LEAST_PART)).all())
    return near and each >= _SURE_PART and bool(_THERE * total <= above[0] <= _MOST * total)


def _stands_on_it(histogram: Histogram, stall: float, duration: float) -> bool:
    """Whether the upper edges of the buckets, where percentiles are exact, all lie near what one stall leaves."""
    if not np.isfinite(duration) or not histogram.count or histogram.censored:
        return False
    share = histogram.cumulative[:-1] / histogram.count
    least = physics_floor(100.0 * share, stall, duration)
    shown = least >= (1 - _THERE) * stall
    values = histogram.buckets.high(histogram.index)[:-1] / 1e9
    if (
        not 2 <= shown.sum() <= _FEW_EDGES
    ):  # with more of them their number in each part is known, which says more
        return False
    return bool(
        (values[shown] >= _THERE * least[shown]).all()
        and (values[shown] <= _MOST * least[shown]).all()
    )


def area_test(
    mean: float, top: float, count: int, rate: float, duration: float, *, waited: bool = True
) -> Evidence:
    """Test whether the mean has room for the stall that the maximum shows: n · mean ≥ λ d² / 2.

    That it has says nothing where the load generator may have waited: N connections at full speed always take
    n · mean = N · T together, whatever they left out.
    """
    stall = min(top / 1e9, duration)
    needed, held = rate * stall**2 / 2, count * mean / 1e9
    ratio = held / needed if needed > 0 else 1.0
    missing = rate * stall / 2
    level = "strong" if ratio < 0.25 and missing >= 4 * LEAST else "none"
    if ratio >= 1 and missing >= _POWER and not waited:
        level = "honest"
    finding = (
        f"all requests together took {format_duration(held * 1e9)}; a stall of {format_duration(top)} alone would add "
        f"{format_duration(needed * 1e9)} to those it hit"
    )
    return Evidence(
        "area", ratio, 0.25, finding, level, missing if level == "strong" else 0.0, p=False
    )


def seen_from(rate: float, connections: int = 1) -> float:
    """Return the shortest stall, in seconds, that the floor would have shown at the strong level."""
    if not rate > 0:
        return float("inf")
    return (
        2.0
        * max(poisson_mean(connections, STRONG), connections + LEAST, connections / _DEFICIT)
        / rate
    )


# ------------------------------------------------------------
# T4 and T5: what tells a closed loop at full speed, and synthetic values, from the numbers alone.

_WINDOWS = 50
_STEADY = 0.02  # variation of the number under way that still is one number
_STEPS = 8  # data types that a ladder has at least
_FINE = 20.0  # times the width of a bucket: a step below that is not told from the buckets


def full_speed(trace: Trace) -> Evidence | None:
    """Tell whether a fixed number of requests is always under way (Little's law): a closed loop at full speed."""
    if trace.due.size < 4 * _WINDOWS:
        return None
    edges = np.linspace(0.0, trace.span, _WINDOWS + 1)
    work = _running_work(trace, edges)
    level = np.diff(work) / np.diff(edges)
    mean, near = float(level.mean()), round(float(np.median(level)))
    if (
        near < 1
        or abs(np.median(level) - near) > _STEADY * near
        or level[1:-1].std() > _STEADY * near
    ):
        return None
    finding = f"always {near} under way: a closed loop at full speed with N = {near}, so these are service times"
    return Evidence("requests under way", mean, float(near), finding, p=False)


def _running_work(trace: Trace, at: Floats) -> Floats:
    """Request-seconds under way up to each moment."""
    due, end = trace.due, trace.ends
    sums = [np.concatenate(([0.0], np.cumsum(times))) for times in (due, end)]
    out = np.zeros(at.size)
    for times, total, sign in ((due, sums[0], 1.0), (end, sums[1], -1.0)):
        passed = np.searchsorted(times, at, "right")
        out += sign * (passed * at - total[passed])
    return out


def ladder(histogram: Histogram, interval: float | None = None) -> Evidence | None:
    """Find values on a ladder of equal steps below the maximum: back-filled, or measured from a schedule."""
    if not histogram.index.size:
        return None
    high, low = histogram.buckets.high(histogram.index), histogram.buckets.low(histogram.index)
    upper = high > high[-1] / 2
    values, widths, counts = high[upper], (high - low)[upper], histogram.counts[upper]
    if values.size < _STEPS:
        return None
    gaps = np.diff(values)
    step = float(np.median(gaps))
    if interval and abs(step - interval) < 0.1 * interval:
        step = interval
    width = float(widths.max())
    if step < _FINE * max(width, 1.0) or not np.all(counts <= 8):
        return None
    off = np.abs((values[-1] - values) / step - np.rint((values[-1] - values) / step)) * step
    share = float((off <= 2 * width + 0.02 * step).mean())
    if share < 0.9:
        return None
    finding = (
        f"the longest {values.size} values stand {format_duration(step)} apart: back-filled or measured from a schedule; do not "
        "correct again, and take them for one event"
    )
    return Evidence("ladder", share, 0.9, finding, "honest", p=False)


# ------------------------------------------------------------
# T1: whether the load generator stopped sending while replies were late: the strongest witness;
# only a trace has it.
#
# A hole in the sends that lies within slow requests is what coordinated omission looks like; but so may a deploy, the end
# of a burst, a quiet minute, a clock that was set forward, or a balancer that takes a frozen node out. Coordination itself
# tells them apart, by two witnesses. The hole: all connections are under way in it (never are there more), it is far longer
# than chance makes gaps, and sends go on with the first replies. And the hand of a load generator: either sends follow those
# replies one by one, faster than anybody would come by chance; or they dwindled as one connection after the other had to
# wait; or never are more under way, though by chance there would be; or all sends outside keep to a schedule, and no clock
# that was set forward would have left the same.

_INTERVALS = 12.0  # of a connection: no hole shorter than that accuses
_AT_CAP = 0.02  # of the time outside slow requests: more may be under way than in the hole
_RESUME = 2.0  # intervals: so soon after a reply sends must go on
_WENT_ON = 0.8  # of the usual sends: nobody waited
_TO_THE_END = 0.7  # of the usual sends of a stall's last half,
_GAP = 0.25  # and no part of it longer than that without any
_TRIFLE = 0.05  # of the usual sends: so many may be missing in stalls that are not large
_SENDS_POWER = 20.0  # sends that a stall must have room for, to show that they went on
_SCHEDULE = 0.25  # of the variance of chance: sends that waver less keep to a schedule
_CROWDED, _RARELY = (
    15.0,
    0.05,
)  # sends in a crowd that chance would bring, and part of them that closed loops may have
_LOOKED_AT, _ORDERS = 50_000, 4
_SURE = 1e-3  # of chance sends coming so fast after replies


@dataclass(frozen=True)
class Sends:
    """What became of the sends in the times of slow requests.

    Attributes
    ----------
    evidence : Evidence
        Its level is ``honest`` where sends went on through every large stall, to its end.
    went_on : bool
        Whether about as many sends as usual were there in the times of slow requests, whenever in them.
    under_way : int
        Requests under way in the largest hole that counts: the connections of a closed loop.
    failed : bool
        Whether many of the requests of the stalls failed: how long they would have taken is not known.
    """

    evidence: Evidence
    went_on: bool
    under_way: int
    failed: bool


def sends_in_slow_times(
    trace: Trace, stalls: Stalls, until: float | None = None, *, full_speed: bool = False
) -> Sends | None:
    """Test whether sends stopped with the replies; None where no request was slow enough to tell."""
    begin, end = trace.windows
    inner = end < trace.span  # what lies behind the last send cannot be judged from sends
    begin, end = begin[inner], end[inner]
    p, missing, under_way, went_on = 1.0, 0.0, 0, False
    sure = False
    if begin.size:
        local = _local_rate(trace, begin, end)
        usual, sent = (end - begin) * local, np.maximum(trace.sends_within(begin, end) - 1, 0)
        longest = end - begin >= (end - begin).max() / 2
        went_on = bool(
            usual[longest].sum() >= _SENDS_POWER
            and all(
                sent[some].sum() >= _WENT_ON * usual[some].sum() for some in (longest, slice(None))
            )
        )
        p, under_way, missing, sure = _worst_hole(trace, begin, end, local, full_speed=full_speed)
    through = _sent_through(trace, stalls, until)
    if not begin.size and not len(stalls):
        return None
    level = "strong" if p < STRONG and missing >= LEAST and sure else "weak" if p < WEAK else "none"
    if level == "none" and through:
        level = "honest"
    finding = _words(trace, stalls, level, under_way, p, sure)
    lost = float(stalls.missing.sum()) or (missing if level in ("weak", "strong") else 0.0)
    evidence = Evidence("sends in slow times", p, STRONG, finding, level, lost)
    return Sends(evidence, went_on, under_way, _failures(trace, stalls))


def _worst_hole(
    trace: Trace, begin: Floats, end: Floats, local: Floats, *, full_speed: bool
) -> tuple[float, int, float, bool]:
    """The p-value of the largest coordinated hole, requests under way in it, all that are missing, and whether two agree."""
    left, right = _holes(trace, begin, end)
    spread = _dispersion(trace, begin, end)
    under_way = trace.under_way(left + (right - left) / 2)
    interval = under_way / np.maximum(np.maximum(local, trace.rate), 1e-9)
    long_enough = (
        (under_way >= 1) & (local > 0) & (right - left >= _INTERVALS * interval * (1 - 1e-9))
    )
    best, missing, most, second = 0.0, 0.0, 0, False
    capped: dict[int, bool] = {}
    scheduled: dict[int, bool] = {}
    for k in np.flatnonzero(long_enough).tolist():
        a, b, many, each = float(left[k]), float(right[k]), int(under_way[k]), float(interval[k])
        replies = _awaited(trace, a, b, many, each)
        if not replies.size:
            continue
        weight, speed = (b - a) * float(local[k]), max(float(local[k]), trace.rate)
        missing += weight
        sure = full_speed or _follow_replies(trace, replies, b, many, speed)
        soon = b - float(trace.end[replies].min()) <= max(each, 3 / trace.rate)
        sure = sure or (soon and _dwindles(trace, a, b, speed))
        if not sure:
            if many not in capped:
                capped[many] = _is_capped(trace, many)
                scheduled[many] = not capped[many] and _keeps_a_schedule(trace, begin, end, each)
            sure = capped[many] or (
                scheduled[many] and soon and not _like_a_clock(trace, replies, b)
            )
        if (sure, weight / spread) > (second, best):
            best, most, second = weight / spread, many, sure
    p = float(min(1.0, begin.size * np.exp(-best))) if best else 1.0
    return p, most, missing, second


def _local_rate(trace: Trace, begin: Floats, end: Floats) -> Floats:
    """Sends per second beside each window: the smaller of both sides, so that ramps and bursts accuse nobody."""
    reach = np.maximum(end - begin, 20.0 / max(trace.rate, 1e-9))
    left = np.maximum(np.concatenate(([0.0], end[:-1])), begin - reach)
    right = np.minimum(np.concatenate((begin[1:], [trace.span])), end + reach)
    sides = []
    for a, b in ((left, begin), (end, right)):
        length = b - a
        speed = trace.sends_within(a, b) / np.maximum(length, 1e-9)
        sides.append(np.where(length * trace.rate >= 5, speed, np.nan))
    both = np.nan_to_num(np.fmin(*sides), nan=trace.rate)
    return np.asarray(np.minimum(both, 2 * trace.rate))


def _holes(trace: Trace, begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """The longest time without a send in each window, the one that begins with its last send included."""
    left, right = [], []
    for a, b in zip(begin.tolist(), end.tolist(), strict=True):
        first, last = np.searchsorted(trace.due, (a, b), "left").tolist()
        inside = trace.due[first : last + 1]  # up to the send that follows the window
        gaps = np.diff(inside)
        k = int(np.argmax(gaps)) if gaps.size else 0
        left.append(float(inside[k]) if gaps.size else b)
        right.append(float(inside[k + 1]) if gaps.size else b)
    return np.array(left), np.array(right)


def _dispersion(trace: Trace, begin: Floats, end: Floats) -> float:
    """Variance over mean of the sends in stretches outside the windows: 1 for Poisson arrivals, more for bursts."""
    longest = float((end - begin).max())
    width = min(max(longest, 10.0 / max(trace.rate, 1e-9)), trace.span / 20)
    counts = _counts_outside(trace, begin, end, width)
    if counts.size < 3 or not counts.mean():
        return 1.0
    return float(max(1.0, counts.var(ddof=1) / counts.mean()))


def _counts_outside(trace: Trace, begin: Floats, end: Floats, width: float) -> NDArray[np.int64]:
    """Sends in stretches of one width that touch no window, nor what may be the catching up after it."""
    edges = np.arange(0.0, trace.span, max(width, trace.span / 1e6))
    low, high = edges[:-1], edges[1:]
    after = hulls(begin, end + (end - begin))
    touched = np.searchsorted(after[0], high, "left") - np.searchsorted(after[1], low, "right") > 0
    counts = trace.sends_within(low, high)
    outside: NDArray[np.int64] = counts[~touched]
    return outside


def _awaited(
    trace: Trace, left: float, right: float, under_way: int, interval: float
) -> NDArray[np.int64]:
    """The requests whose replies a hole waited for; none if it is no such hole.

    All connections that there may be are under way, and the next send follows a reply that was awaited all along.
    """
    if trace.share_above(under_way) > _AT_CAP:
        return np.zeros(0, np.int64)
    late = trace.ending_within(left + (right - left) / 2, right + interval)
    late = late[trace.due[late] <= left + interval]
    soon = late.size and right - float(trace.end[late].min()) <= _RESUME * interval + trace.usual
    return late if soon else late[:0]


def _follow_replies(
    trace: Trace, replies: NDArray[np.int64], right: float, under_way: int, rate: float
) -> bool:
    """Whether sends follow the first replies faster than the usual rate would make them come by chance."""
    first = float(trace.end[replies].min())
    if right < first - trace.grain:
        return False
    at = np.searchsorted(trace.due, right, "left")
    number = 2 ** np.arange(int(np.log2(max(min(under_way, trace.due.size - int(at)), 1))) + 1)
    passed = np.maximum(trace.due[at + number - 1] - first, 0.0) + trace.grain
    return bool(poisson_at_least(number, rate * passed).min() * number.size < _SURE)


def _dwindles(trace: Trace, left: float, right: float, rate: float) -> bool:
    """Whether sends thin out from the last reply before a hole on: one connection after the other waits.

    That is how those stop that think for a random time between a reply and the next send.
    """
    before = float(
        trace.ends[max(int(np.searchsorted(trace.ends, left + (right - left) / 2)) - 1, 0)]
    )
    if before >= left:
        return False
    halves = trace.sends_within(
        np.array([before, (before + left) / 2]), np.array([(before + left) / 2, left])
    )
    room = rate * (left - before)
    few = poisson_at_most(int(halves.sum()), room) < _SURE
    return bool(
        few and poisson_at_most(int(halves[1]), room / 2) < _SURE and halves[1] < halves[0] / 2
    )


def _keeps_a_schedule(trace: Trace, begin: Floats, end: Floats, interval: float) -> bool:
    """Whether sends are so regular that a load generator must have paced them: as many in each interval, or nearly."""
    several = max(1.0, np.ceil(10.0 / max(trace.rate * interval, 1e-9)))
    counts = _counts_outside(trace, begin, end, several * interval)
    counts = counts[counts > 0]
    if counts.size < 8:
        return False
    middle = float(np.median(counts))
    wavering = 1.4826 * float(np.median(np.abs(counts - middle)))
    usual = float(np.quantile(np.abs(counts - middle), 0.8)) / 1.28
    return max(wavering, usual) ** 2 <= max(_SCHEDULE * middle, 1.0 if middle >= 8 else 0.0)


def _is_capped(trace: Trace, under_way: int) -> bool:
    """Whether so many are never under way at a send, though they would be if sends took no heed of replies.

    What they would be is what the same latencies leave in another order.
    """
    ordinary = np.flatnonzero(~trace.slow)[:_LOOKED_AT]
    due, took = trace.due[ordinary], trace.took[ordinary]
    rng = np.random.default_rng(0)
    crowded = [
        int(
            (
                np.arange(due.size) - np.searchsorted(np.sort(due + times), due, "right")
                >= under_way
            ).sum()
        )
        for times in (took, *(rng.permutation(took) for _ in range(_ORDERS)))
    ]
    usual = float(np.mean(crowded[1:]))
    return usual >= _CROWDED and crowded[0] <= _RARELY * usual


def _like_a_clock(trace: Trace, replies: NDArray[np.int64], right: float) -> bool:
    """Whether a clock that was set forward would have left the same: those under way late by one and the same time."""
    took, sent, ended = trace.took[replies], trace.due[replies], trace.end[replies]
    if replies.size > 1:
        return float(np.ptp(took)) < 0.5 * float(np.ptp(sent))
    if trace.idle.size < 20:
        return True
    low, high = np.quantile(trace.idle, (0.005, 0.995)).tolist()
    return bool(low - trace.grain <= right - float(ended[0]) <= high + trace.grain)


# ---------------------------------------------------------------- whether sends went on
def _sent_through(trace: Trace, stalls: Stalls, until: float | None) -> bool:
    """Whether sends went on as usual through every large stall, to its very end: all that it delayed is there.

    Only the time in which nothing was answered counts: what is sent in a burst thereafter was late.
    """
    if not len(stalls):
        return False
    large = stalls.duration >= stalls.duration.max() / 2
    if (
        stalls.missing[large].any()
        or stalls.missing.sum() > _TRIFLE * trace.rate * stalls.duration.sum()
    ):
        return False
    begin, end = stalls.start[large], stalls.end[large]
    stop = np.minimum(end, trace.span if until is None else max(until, trace.span))
    reach = np.maximum(end - begin, _SENDS_POWER / max(trace.rate, 1e-9))
    before = trace.sends_within(np.maximum(begin - reach, 0.0), begin) / np.maximum(
        np.minimum(reach, begin), 1e-9
    )
    rate = np.maximum(trace.rate, np.where(begin >= reach / 2, before, 0.0))
    due, middle = rate * (stop - begin), (begin + stop) / 2
    if (due < _SENDS_POWER).any():
        return False
    sent, later = trace.sends_within(begin, stop), trace.sends_within(middle, stop)
    if (sent < _WENT_ON * due).any() or (later < _TO_THE_END * due / 2).any():
        return False
    first, last = (
        np.searchsorted(trace.due, begin, "left").tolist(),
        np.searchsorted(trace.due, stop, "left").tolist(),
    )
    for a, b, i, j in zip(begin.tolist(), end.tolist(), first, last, strict=True):
        gaps = np.diff(np.concatenate(([a], trace.due[i:j], [b])))
        if float(gaps.max()) > _GAP * (b - a):
            return False
    return True


def _failures(trace: Trace, stalls: Stalls) -> bool:
    """Whether more than a fifth of what was sent in the stalls failed."""
    bad = trace.due[~trace.good]
    if not bad.size or not len(stalls):
        return False
    failed = np.searchsorted(bad, stalls.end, "left") - np.searchsorted(bad, stalls.start, "left")
    return bool(
        failed.sum()
        > (1 - _WENT_ON) * max(int(trace.sends_within(stalls.start, stalls.end).sum()), 1)
    )


def _words(trace: Trace, stalls: Stalls, level: str, under_way: int, p: float, sure: bool) -> str:
    inside = np.minimum(stalls.end, trace.span) - stalls.start
    if not len(stalls):
        times = f"no stall of the server was seen; requests slower than {format_duration(trace.slow_from * 1e9)} were under way"
        return (
            times if level in ("none", "honest") else f"{times} while sends paused ({p_words(p)})"
        )
    sent = format_count(
        int(trace.sends_within(stalls.start, np.minimum(stalls.end, trace.span)).sum())
    )
    due = format_count(round(trace.rate * float(np.maximum(inside, 0).sum())))
    times = f"during stalls ({format_duration(float(stalls.duration.sum()) * 1e9)} in total)"
    counts = f"{sent} requests were sent; the surrounding rate implies {due}"
    if level == "honest":
        return f"{times} {counts}: the load generator did not wait for replies"
    if level in ("strong", "weak") and under_way:
        who = "its only connection" if under_way == 1 else f"all {under_way} connections"
        if sure:
            return (
                f"{times} {counts}; {who} waited, and sends resumed with the replies ({p_words(p)})"
            )
        return f"{times} {counts}; {who} may have waited, or traffic paused for a reason of its own ({p_words(p)})"
    return f"{times} {counts}"


# ------------------------------------------------------------
# T2: whether counts fall short while a log's server was stopped, and whether all that its stalls
# delayed is there.
#
# A closed loop that waits loses just as many requests as its stall has room for, and those that waited, one for each
# connection, all take as long as the stall. A deploy, a dip or the refusals of a frozen server lose requests, too: so a
# shortfall accuses only if it equals the stall's room to within what the counts waver by, if the counts are steadier than
# those of independent users, and if failed requests do not make up for it. A client that catches up loses none; then what it
# has too few of are the latencies between nothing and the stall's length.

_NEARLY = (
    0.5  # of those it delayed at all: so many were delayed for all of the stall in a closed loop
)
_MATCH = 0.0025  # of the stall: the shortfall may differ by so much, beside what counts waver by
_WAVER = 3.0  # standard deviations of what they waver by
_COUNTS_FINE = (
    0.02  # of the stall: where counts waver by more, a match could be chance, and proves nothing
)
_COUNTS_SCHEDULE = (
    0.25  # of the variance of independent users: counts that waver less keep to a schedule
)
_FAILED = 0.2  # of those missing: so many failures may be what is missing
_IN_FLIGHT = 3  # requests may be under way by chance when a clock is set forward, or traffic pauses
_COUNTS_POWER = 8.0  # requests in a fifth of a stall, to show that all of it is there
_COUNTS_LEAST_PART = 0.5  # of what each part of a stall leaves
_COUNTS_THERE = 0.8
_COUNTS_TRIFLE = 0.05  # of the requests: so many may be missing in shorter stalls


@dataclass(frozen=True)
class Counts:
    """What the counts say of the stalls.

    Attributes
    ----------
    evidence : Evidence
    waiting : int
        Requests that the largest stall delayed for its whole length: the connections of a closed loop.
    failed : bool
        Whether failures may account for what is missing.
    """

    evidence: Evidence
    waiting: int
    failed: bool


def counts_in_stalls(stalls: Stalls, rate: float, failures: int) -> Counts | None:
    """Test the counts around every stall; None where there is none, or too little to go by."""
    counts = stalls.delayed
    if counts is None or not len(stalls) or not rate or np.isnan(counts.wavering):
        return None
    due, missing = rate * stalls.duration, float(stalls.missing.sum())
    waiting, any_delay = counts.above[LEVELS.index(0.8)], counts.above[LEVELS.index(0.1)]
    lost = due - waiting / 2  # each connection still sent one, and loses whole slots only
    slack = 1.0 + _MATCH * due + _WAVER * counts.noise
    match = (
        (waiting >= _NEARLY * any_delay)
        & (counts.short >= LEAST)
        & (np.abs(counts.short - lost) <= slack + waiting / 2)
    )
    match &= slack <= np.maximum(_COUNTS_FINE * due, _WAVER)
    sigma = np.where(
        match, counts.short / np.maximum(counts.noise, np.sqrt(np.maximum(due, 1.0))), 0.0
    )
    largest = int(np.argmax(sigma))
    p = (
        float(min(1.0, len(stalls) * 0.5 * math.erfc(float(sigma[largest]) / math.sqrt(2.0))))
        if match.any()
        else 1.0
    )
    failed = failures > _FAILED * (missing if missing >= LEAST else float(due.sum()))
    steady = counts.wavering**2 <= max(
        _COUNTS_SCHEDULE * counts.usual, 1.0 if counts.usual >= _COUNTS_POWER else 0.0
    )
    # Few requests that are slow by themselves, or whose clock was set forward, fit any hole; a connection loses to each hiccup.
    sure = (
        steady
        and not failed
        and (waiting[largest] > _IN_FLIGHT or counts.alone or int(match.sum()) > 1)
    )
    level = "strong" if p < STRONG and missing >= LEAST and sure else "weak" if p < WEAK else "none"
    longest = stalls.duration >= stalls.duration.max() * _COUNTS_THERE
    lost_none = not stalls.missing[longest].any() and missing <= _COUNTS_TRIFLE * float(due.sum())
    if level == "none" and lost_none and _all_there(stalls, due, longest):
        level = "honest"
    finding = _counts_words(
        stalls, level, float(due.sum()), int(waiting[largest]), p, failed, failures
    )
    evidence = Evidence("counts in stalls", p, STRONG, finding, level, missing)
    return Counts(evidence, int(waiting[largest]) if match.any() else 0, failed)


def _all_there(stalls: Stalls, due: NDArray[np.float64], longest: NDArray[np.bool_]) -> bool:
    """Whether the longest stalls each left latencies all the way down from their length, as those do who do not wait."""
    counts = stalls.delayed
    assert counts is not None
    even = evenly_spread(counts.above, counts.beside, due, _COUNTS_POWER)
    half = LEVELS.index(0.5)
    enough = counts.above[half] - counts.beside[half] >= _COUNTS_THERE * due / 2
    tenth = np.diff(-counts.above[:2] + counts.beside[:2], axis=0)[
        0
    ]  # the shortest waits are those that are left out first
    there = tenth >= _COUNTS_LEAST_PART * due / 10
    return bool((even & enough & there)[longest].all())


def _counts_words(
    stalls: Stalls, level: str, due: float, waiting: int, p: float, failed: bool, failures: int
) -> str:
    during = f"during stalls ({format_duration(float(stalls.duration.sum()) * 1e9)} in total)"
    missing = format_count(int(stalls.missing.sum()))
    shortfall = f"{during} the usual rate implies {format_count(round(due))} requests; {missing} are missing"
    if failed:
        return f"{shortfall}, and {format_count(failures)} failed at times that are not known"
    if level == "strong":
        who = "one request was" if waiting == 1 else f"{waiting} requests were"
        return f"{shortfall}, and {who} delayed for the whole of the longest ({p_words(p)}): a closed loop that waited"
    if level == "weak":
        return f"{shortfall}: a closed loop that waited, or traffic that paused for a reason of its own ({p_words(p)})"
    if level == "honest":
        return f"{shortfall}, and latencies are spread evenly up to the longest: the load generator did not wait for replies"
    return shortfall


# ------------------------------------------------------------
# What is known of a run: its rate, length, connections and provenance, and where each of them comes
# from.

_CATCH_UP = ("wrk2", "oha", "fortio", "ghz", "h2load")
"""Tools that send later what a stall kept them from sending: all requests of the schedule are there."""
_STALL = 20.0  # medians: a longest request below that is no stall


@dataclass(frozen=True)
class Facts:
    """A series and what is known of it, in nanoseconds and seconds.

    Attributes
    ----------
    data : Samples, HistogramLog, Histogram or Summary
        In ns, where its values have a unit.
    told_rate, told_interval : float or None
        Requests per second, and ns between two of one connection, as the caller says.
    told_connections : int or None
    told_duration : float or None
        Seconds.
    """

    data: Any
    told_rate: float | None = None
    told_interval: float | None = None
    told_connections: int | None = None
    told_duration: float | None = None
    found_connections: int | None = None

    @property
    def run(self) -> Run:
        """What the source says."""
        run: Run = self.data.run
        return run

    @cached_property
    def histogram(self) -> Histogram:
        """All values together."""
        histogram: Histogram = self.data.histogram()
        return histogram

    @cached_property
    def trace(self) -> Trace | None:
        """Sends and replies, where the source knows them."""
        known = (
            isinstance(self.data, Samples) and self.data.start is not None and len(self.data) > 1
        )
        return Trace.of(self.data) if known else None

    @cached_property
    def series(self) -> IntervalSeries | None:
        """Each interval's numbers, for a log."""
        return self.data.series((50,)) if isinstance(self.data, HistogramLog) else None

    def having_found(self, connections: int) -> Facts:
        """Return the same, with the number of connections that a test made out."""
        return (
            self
            if self.connections or not connections
            else replace(self, found_connections=connections)
        )

    # ------------------------------------------------------------ numbers

    @cached_property
    def connections(self) -> int | None:
        """As told, as the source says, by its column, or as a test made out."""
        known = self.told_connections or self.run.connections
        if (
            known is None
            and isinstance(self.data, Samples)
            and self.data.connection is not None
            and len(self.data)
        ):
            known = int(np.unique(self.data.connection).size)
        return known or self.found_connections

    @cached_property
    def duration(self) -> float | None:
        """Length of the run in seconds."""
        if self.told_duration or self.run.duration:
            return self.told_duration or self.run.duration
        if isinstance(self.data, HistogramLog):
            return self.data.duration or None
        if self.trace is not None:
            return self.data.elapsed or None
        speed = self.told_rate or self.run.achieved or self.run.rate
        return self.count / speed if speed and self.count else None

    @cached_property
    def count(self) -> int:
        """Requests with a latency."""
        if isinstance(self.data, Summary):
            return self.data.count or 0
        return self.histogram.count + self.histogram.censored

    @cached_property
    def observed_rate(self) -> float | None:
        """Requests per second outside the stalls where the source shows them, else of the whole run."""
        if self.trace is not None:
            return self.trace.rate
        if self.series is not None:
            return usual_rate(self.series) or None
        return self.count / self.duration if self.duration and self.count else None

    @cached_property
    def rate(self) -> float | None:
        """Requests per second that were to come, all connections together.

        A rate that the source only aimed at counts no more than what it reached while nothing was stopped.
        """
        if self.told_rate:
            return self.told_rate
        if self.told_interval:
            return 1e9 * (self.connections or 1) / self.told_interval
        known = [speed for speed in (self.run.rate, self.observed_rate) if speed]
        return min(known) if known else self.run.achieved

    @cached_property
    def interval(self) -> float | None:
        """Expected interval of one connection, ns."""
        if self.told_interval:
            return self.told_interval
        if self.run.expected_interval and not self.told_rate and not self.told_connections:
            return self.run.expected_interval
        if not self.rate or not self.connections:
            return None
        return 1e9 * self.connections / (self._pace or self.rate)

    @cached_property
    def _pace(self) -> float | None:
        """Requests per second while nothing was stopped, guessed for a loop that waited and shows no course."""
        if (
            self.told_rate
            or self.trace is not None
            or self.series is not None
            or not (self.waits and self.duration)
        ):
            return None
        lost = 0.0 if self.run.tool in _CATCH_UP else min(self.longest, 0.9 * self.duration)
        pace = self.count / max(self.duration - lost, 1e-9)
        return min(pace, self.run.rate or pace)

    @cached_property
    def longest(self) -> float:
        """Seconds of the longest request, timeouts included."""
        if isinstance(self.data, Summary):
            return float(self.data.stats.get("max", 0.0)) / 1e9
        if not self.count:
            return 0.0
        histogram = self.histogram
        late = (
            histogram.censored_at
            if histogram.censored and np.isfinite(histogram.censored_at)
            else 0.0
        )
        return max(float(histogram.max) if histogram.count else 0.0, float(late)) / 1e9

    @cached_property
    def stall(self) -> float:
        """The same where it is many times what is usual, so that a stall must be behind it; else 0."""
        if isinstance(self.data, Summary):
            usual = self.data.stats.get("mean", 0.0)
        else:
            usual = float(self.histogram.percentile(50)) if self.count else 0.0
        return self.longest if self.longest * 1e9 >= _STALL * usual else 0.0

    # ------------------------------------------------------------ T0, the provenance of the numbers

    @property
    def corrected_by(self) -> str | None:
        """Who took care of omission in these values: ``us``, ``tool``, ``schedule``, or None for nobody known."""
        run = self.run
        if run.corrected == "schedule" and isinstance(self.data, Samples):
            from_send = run.measure == "service" and self.data.intended is not None
            return None if from_send else "schedule"
        return run.corrected if run.corrected in ("us", "tool", "schedule") else None

    @property
    def waits(self) -> bool:
        """Whether the tool is known to wait for replies before it sends, and to time from the send.

        So does one that drops what is due while all its users wait, whatever its schedule.
        """
        if self.corrected_by is None and self.run.dropped > 0.01 * max(self.count, 1):
            return True
        from_schedule = (
            isinstance(self.data, Samples)
            and self.run.measure == "response"
            and self.data.intended is not None
        )
        return (
            self.corrected_by is None and self.run.loop in ("closed", "paced") and not from_schedule
        )

    @property
    def may_wait(self) -> bool:
        """Whether the load generator may have waited for replies: unless the source is known to time from a schedule."""
        return self.corrected_by is None and self.run.loop != "open"


def facts_of(
    data: Data,
    expected_interval: str | float | None = None,
    rate: float | None = None,
    connections: int | None = None,
    duration: str | float | None = None,
) -> Facts:
    """Bring a data type to nanoseconds and take what the caller says of it."""
    same = data.to_unit("ns") if data.unit in NANOSECONDS else data
    bare = None if data.unit in NANOSECONDS else "ns"  # a bare number is for values without a unit
    interval = None if expected_interval is None else parse_duration(expected_interval, bare)
    if interval is not None and not 0 < interval < math.inf:
        raise InvalidArgumentError(
            f"an expected interval must be longer than nothing, not {expected_interval!r}"
        )
    for name, value in (("a rate", rate), ("a number of connections", connections)):
        if value is not None and not 0 < value < math.inf:
            raise InvalidArgumentError(
                f"{name} must be more than nothing and finite, not {value!r}"
            )
    return Facts(
        same,
        rate,
        interval,
        connections,
        None if duration is None else parse_duration(duration, "s") / 1e9,
    )


# ------------------------------------------------------------
# The sentences of a diagnosis.


def sentence(
    verdict: str,
    facts: Facts,
    evidence: Sequence[Evidence],
    findings: Sequence[str],
    stalls: Stalls,
) -> str:
    """Return the verdict's reason."""
    strongest = max(
        evidence,
        key=lambda one: ("none", "honest", "weak", "strong").index(one.level),
        default=None,
    )
    stall = format_duration(facts.longest * 1e9)
    if verdict == "omits" and strongest is not None:
        missing = float(stalls.missing.sum()) or strongest.missing
        later = "; they were sent later, and timed from then" if "catch-up" in findings else ""
        return (
            f"coordinated omission detected: about {format_count(missing)} requests that were due in stalls of up to "
            f"{stall} are missing{later}"
        )
    if verdict == "clean":
        by = {
            "us": "back-filled",
            "tool": "corrected by the tool",
            "schedule": "timed from the schedule",
        }
        how = f" ({by[facts.corrected_by]}: do not correct it again)" if facts.corrected_by else ""
        return f"a stall of up to {stall} was seen, and the requests that it delayed are there{how}"
    return _spoiled(facts, findings) or _unknown(facts, evidence, findings, stalls)


def _spoiled(facts: Facts, findings: Sequence[str]) -> str:
    """What is wrong with the numbers themselves, if anything is."""
    run = facts.run
    if "over-corrected" in findings:
        return "the tool's correction invented more slow requests than the run can have had"
    if "lost-to-timeouts" in findings:
        return f"{format_count(run.timeouts)} requests timed out; what they would have taken is not in the latencies"
    if "dropped" in findings:
        return (
            f"{format_count(run.dropped)} requests that were due were dropped, and have no latency"
        )
    if "unfinished" in findings:
        return (
            f"{format_count(run.unfinished)} requests were cut off at the end, and have no latency"
        )
    if "failed-in-stalls" in findings:
        return "many requests failed, it seems while the server was stopped; what they would have taken is not in the latencies"
    return ""


def _unknown(
    facts: Facts, evidence: Sequence[Evidence], findings: Sequence[str], stalls: Stalls
) -> str:
    """Why nothing can be said."""
    longest = format_duration(facts.longest * 1e9)
    if "immaterial" in findings and "closed-loop" in findings:
        return f"a closed loop: these are service times; what it left out in hiccups of up to {longest} would hardly be seen"
    if "immaterial" in findings:
        return "some requests were left out, but neither the mean nor a supported percentile would move by a tenth"
    suspected = [one for one in evidence if one.level in ("weak", "strong")]
    if suspected and facts.corrected_by:
        return f"a stall of {longest} implies more slow requests than were recorded; one that delayed no others looks the same"
    if suspected and any(one.missing and one.test != "lower bound" for one in suspected):
        return f"omission, or traffic that paused for a reason of its own while one request took {longest}"
    if suspected:
        return f"omission, or isolated slow requests that delayed no others: the longest took {longest}"
    if "fewer-than-due" in findings:
        due = (facts.told_rate or facts.run.rate or 0.0) * (facts.duration or 0.0)
        return f"only {format_count(facts.count)} of {format_count(due)} requests that were due have a latency"
    if "nothing-to-omit" in findings:
        return "there was nothing to omit: no request took so long that it would have shown"
    if "closed-loop" in findings and facts.corrected_by is None:
        return "a closed loop: these are service times; how many requests users would have sent is not known"
    if not facts.rate:
        return "how many requests were to come is not known"
    if facts.stall and len(stalls):
        return f"stalls of up to {longest} were seen; neither do all requests that they delayed show, nor are they surely missing"
    if facts.stall:
        return f"the slow requests, up to {longest}, are neither as many as one stall leaves nor so few that they must be missing"
    return "no stall was seen, and so nothing that could be missing"


def advice(verdict: str, facts: Facts, findings: Sequence[str], visible: float) -> str:
    """Return what would decide, or what to do about it."""
    if verdict == "omits":
        known = facts.interval is not None
        fix = (
            "lk.correct and lk.retime put them back"
            if known
            else "--rate and --connections tell how to put them back"
        )
        return (
            f"{fix}; prefer an open-loop generator that times requests from their scheduled start"
        )
    if verdict == "clean":
        return ""
    if "lost-to-timeouts" in findings:
        return "measure again with a timeout longer than any stall"
    if not facts.rate:
        return (
            "give --rate (requests per second, all connections together) or --duration (of the run)"
        )
    if "over-corrected" in findings:
        return "read the tool's uncorrected values instead"
    if "failed-in-stalls" in findings:
        return "count failed requests as misses (latencykit check does), or measure with a timeout longer than any stall"
    if "nothing-to-omit" in findings and math.isfinite(visible):
        return f"a stall of {format_duration(visible * 1e9, 2)} or more would have shown; latencykit ctrlz makes one"
    if isinstance(facts.data, Summary):
        return (
            "an output with one row per request would show whether sends went on during the stall"
        )
    if isinstance(facts.data, Samples) and facts.trace is not None:
        return "to settle it, record when each request was due (intended start), or freeze the server for longer: latencykit ctrlz"
    return "one row per request, with its start, would settle it; or freeze the server for some seconds: latencykit ctrlz"


# ------------------------------------------------------------
# The percentiles as they would have been: re-timed where the sends tell, else back-filled.

_MOVED, _DOUBLED = 1.1, 2.0
_REPAIR_STEADY = (
    0.1  # of an interval: a schedule's sends are no farther from their slots, half of the time
)


def repaired_by(facts: Facts, *, scheduled: bool = True) -> str | None:
    """Return which repair fits: ``retime``, ``backfill``, or None where the interval is not known.

    A closed loop at full speed is not `scheduled`: it has no slots to time from.
    """
    if (
        facts.interval is None
        or not facts.rate
        or isinstance(facts.data, Summary)
        or not facts.count
    ):
        return None
    if _by_its_own_schedule(facts) is not None:
        return "retime"
    return (
        "retime"
        if scheduled and facts.trace is not None and _repair_keeps_a_schedule(facts)
        else "backfill"
    )


def repaired(facts: Facts, method: str | None) -> Histogram | None:
    """Return the distribution with the omitted requests in it, or None where it cannot be told."""
    if method is None or facts.interval is None:
        return None
    if method == "retime":
        if (known := _by_its_own_schedule(facts)) is not None:
            return known
        data = facts.data.measured("service").with_run(corrected="none")
        if facts.told_duration:
            data = data.with_run(duration=facts.told_duration)
        timed: Histogram = retime(data, facts.rate, facts.connections).histogram()
        return timed
    filled: Histogram = back_filled(facts.data, facts.interval).histogram()
    return filled


def _by_its_own_schedule(facts: Facts) -> Histogram | None:
    """The response times from the intended starts, where the source holds these and none of them is missing."""
    data = facts.data
    if not isinstance(data, Samples) or data.intended is None or data.run.measure == "response":
        return None
    timed = data.measured("response")
    trace = Trace.of(timed)
    sends = sends_in_slow_times(trace, stalls_of(timed, trace=trace))
    return (
        timed.histogram()
        if sends is not None and sends.evidence.level in ("none", "honest")
        else None
    )


def _repair_keeps_a_schedule(facts: Facts) -> bool:
    """Whether each connection sends at equal distances but for its stalls: else there are no slots to time from."""
    trace, interval = facts.trace, facts.interval
    if trace is None or interval is None or trace.usual * 1e9 > interval:
        return False
    start, took = (
        np.rint(trace.due * 1e9).astype(np.int64),
        np.rint(trace.took * 1e9).astype(np.int64),
    )
    chain = chains(start, took, None, facts.connections or 1, interval)
    order = np.lexsort((start, chain))
    same = np.diff(chain[order]) == 0
    off = np.abs(np.diff(start[order])[same] - interval)
    return bool(off.size and np.median(off) <= _REPAIR_STEADY * interval)


def is_material(facts: Facts, after: Histogram | None, stall: float, *, coarse: bool) -> bool:
    """Whether the mean or a supported percentile moves by more than a tenth."""
    if isinstance(facts.data, Summary):
        mean, duration = facts.data.stats.get("mean"), facts.duration
        return bool(mean and duration and stall**2 / (2 * duration) * 1e9 > (_MOVED - 1) * mean)
    raw = facts.histogram
    limit = min(99.0 if coarse else 100.0, raw.sample_limit())
    wanted = [p for p in STANDARD_PERCENTILES if p <= limit]
    before = np.asarray(raw.percentile(wanted), np.float64)
    if (
        after is not None and not coarse
    ):  # at full speed its usual times would be filled, too: they are no stall
        moved, mean = np.asarray(after.percentile(wanted), np.float64), after.mean
    elif facts.duration:
        moved = physics_floor(wanted, stall, facts.duration) * 1e9
        mean = raw.mean + stall**2 / (2 * facts.duration) * 1e9
    else:
        return False
    return bool(
        (moved > _MOVED * before).any() or mean > (_DOUBLED if coarse else _MOVED) * raw.mean
    )


# ------------------------------------------------------------
# What `lk.diagnose` gives back.

Verdict = Literal["omits", "clean", "unknown"]
_SHOWN = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99)


@dataclass(frozen=True, eq=False)
class Diagnosis(Value):
    """Whether a measurement left requests out because it waited for replies, and what it would have shown.

    Attributes
    ----------
    verdict : {"omits", "clean", "unknown"}
        ``clean`` needs a stall that was seen and is fully there; without one there is nothing to tell by.
    summary : str
        The verdict and its reason in a sentence.
    ask : str
        What would decide an ``unknown``, or a hint of an ``omits``.
    findings : tuple of str
        Names of what was found beside: ``closed-loop``, ``already-corrected``, ``over-corrected``, ``catch-up``,
        ``lost-to-timeouts``, ``failed-in-stalls``, ``fewer-than-due``, ``dropped``, ``unfinished``, ``clipped``,
        ``clock-step``, ``immaterial``, ``ladder``, ``nothing-to-omit``.
    evidence : tuple of Evidence
        The tests, their p-values adjusted for how many they are.
    expected_interval : float or None
        Between two requests of one connection, ns.
    raw : Histogram or Summary
        As it was measured.
    corrected : Histogram or None
        With the omitted requests; only where omission was found or is suspected.
    method : {"retime", "backfill"} or None
        How.
    rate, duration : float or None
        Requests per second that were to come, and length of the run in seconds, as used by the tests.
    timed : Samples, HistogramLog or None
        The series over time, where it has one.
    """

    verdict: Verdict
    summary: str
    ask: str
    findings: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    expected_interval: float | None
    raw: Histogram | Summary
    corrected: Histogram | None
    method: str | None
    rate: float | None
    duration: float | None
    found: Stalls = field(repr=False)
    timed: Samples | None = field(default=None, repr=False)

    @cached_property
    def stalls(self) -> pd.DataFrame:
        """The stalls: ``start``, ``end``, ``duration`` (seconds), ``worst`` (ns), ``missing``, ``share``."""
        return self.found.to_frame()

    @property
    def run(self) -> Run:
        """What the source says of the measurement."""
        return self.raw.run

    @cached_property
    def table(self) -> list[tuple[float, float, float | None]]:
        """Percentile, raw and corrected value, as far as the number of requests supports it."""
        if isinstance(self.raw, Summary):
            return [(p, float(v), None) for p, v in self.raw.reported_percentiles.items()]
        if not self.raw.count + self.raw.censored:
            return []
        limit = self.raw.sample_limit()
        wanted = [p for p in STANDARD_PERCENTILES if p <= limit or p in (99.0, 99.9, 100.0)]
        before = np.asarray(self.raw.percentile(wanted)).tolist()
        after: list[float | None] = [None] * len(wanted)
        if self.corrected is not None:
            after = np.asarray(self.corrected.percentile(wanted)).tolist()
        return list(zip(wanted, before, after, strict=True))

    @property
    def longest_stall(self) -> float:
        """Seconds of the longest stall, or of the longest request where no time is known."""
        if len(self.found):
            return float(self.found.worst.max()) / 1e9
        top = self.raw.stats.get("max", 0.0) if isinstance(self.raw, Summary) else self.raw.max
        return float(top) / 1e9 if np.isfinite(top) and self.raw.unit in NANOSECONDS else 0.0

    def _repr_html_(self) -> str:
        raw, corrected = (self._texts(data) for data in (self.raw, self.corrected))
        rows = [
            (f"p{format_percentile(p)}", raw.get(p, ""), corrected.get(p, ""))
            for p, *_ in self.table
        ]
        also = [f"also: {', '.join(self.findings)}"] if self.findings else []
        tests = [f"{one.test}: {one.finding}" for one in self.evidence]
        title = self.run.source or self.run.tool or "this measurement"
        return verdict_html(
            title, self.verdict, self.summary, rows, [*also, *tests, *self.found.notes, self.ask]
        )

    def _texts(self, data: Histogram | Summary | None) -> dict[float, str]:
        """Percentiles of the table as text: ranges where the source does not pin them down."""
        if data is None:
            return {}
        if isinstance(data, Summary):
            return {
                p: format_value(value, data.unit) for p, value in data.reported_percentiles.items()
            }
        rows = data.percentile_rows([p for p, *_ in self.table]) if data.count else []
        return {
            row.percentile: format_row(
                replace(row, supported=True), lambda value: format_value(value, data.unit)
            )
            for row in rows
        }

    def __repr__(self) -> str:
        lines = [f"{self.verdict}: {self.summary}"]
        lines += [f"  {one.test}: {one.finding}" for one in self.evidence]
        for p, before, after in self.table:
            fixed = (
                "" if after is None else f"  would have been {format_value(after, self.raw.unit)}"
            )
            lines.append(
                f"  p{format_percentile(p):<7} {format_value(before, self.raw.unit):>9}{fixed}"
            )
        return "\n".join([*lines, *([f"  {self.ask}"] if self.ask else [])])


# ------------------------------------------------------------
# `diagnose`: from the tests and the provenance to one verdict, which never accuses an honest
# measurement.

_VERDICT_INTERVALS = 12.0  # of one connection: a stall shorter than that accuses nobody
_OVER = 1.25  # of the requests that the schedule held: more are invented
_CEILING = 2.5  # of the share that one stall can hit
_FEWER = 0.9  # of the requests that the schedule held: the others have no latency
_VERDICT_FAILED = 0.2  # of what a stall as long as the longest request has room for: so many failures may be what it delayed
_LOST = 0.01  # of the requests: so many dropped or timed out are no footnote


def diagnose(
    data: Samples | HistogramLog | Histogram | Summary,
    expected_interval: str | float | None = None,
    rate: float | None = None,
    connections: int | None = None,
    duration: str | float | None = None,
) -> Diagnosis:
    """Tell whether a measurement left out requests because it waited for replies (coordinated omission).

    Parameters
    ----------
    data : Samples, HistogramLog, Histogram or Summary
        The more of the ladder is left, the more can be told: a trace shows whether sends stopped, a log whether counts
        fall short, a histogram only whether as many requests were slow as a stall must hit.
    expected_interval : str or float, optional
        Between two requests of one connection: ``"10ms"``, or nanoseconds.
    rate : float, optional
        Requests per second of all connections together.
    connections : int, optional
    duration : str or float, optional
        Length of the run: ``"20s"``, or seconds.

    Returns
    -------
    Diagnosis
        ``omits`` needs strong evidence (p < .001 after Holm's correction, at least 5 requests missing) that the load
        generator itself waited, and that the mean or a supported percentile moves by more than a tenth by it;
        ``clean`` needs a stall that was seen and is fully there; anything else is ``unknown``, and says what would tell.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall, fixed, open_loop, paced_loop
    >>> server = Server("1ms", stalls=[Stall(7, 6)], ideal=True)
    >>> diagnose(paced_loop(server, rate=200, duration=20, connections=4)).verdict
    'omits'
    >>> diagnose(open_loop(server, fixed(rate=200, duration=20))).verdict
    'clean'
    """
    facts = facts_of(data, expected_interval, rate, connections, duration)
    timed = facts.trace is not None or facts.series is not None
    stalls = stalls_of(facts.data, facts.series, facts.trace) if timed else Stalls.none()
    tests = _run_tests(facts, stalls)
    facts = facts.having_found(tests.connections)
    suspected = [one for one in tests.evidence if one.level in ("strong", "weak")]
    method = (
        repaired_by(facts, scheduled=not tests.steady)
        if suspected and facts.corrected_by != "tool"
        else None
    )
    after = repaired(facts, method)
    material = bool(suspected) and is_material(
        facts, after, facts.longest, coarse=_at_full_speed(facts, tests)
    )
    verdict, findings = _judge(facts, tests, material, stalls)
    kept = verdict != "clean" and after is not None
    return Diagnosis(
        verdict=verdict,
        summary=sentence(verdict, facts, tests.evidence, findings, stalls),
        ask=advice(verdict, facts, findings, seen_from(facts.rate or 0.0, facts.connections or 1)),
        findings=findings,
        evidence=tuple(tests.evidence),
        expected_interval=facts.interval,
        raw=facts.data if isinstance(facts.data, Summary) else facts.histogram,
        corrected=after if kept else None,
        method=method if kept else None,
        rate=facts.rate,
        duration=facts.duration,
        found=stalls,
        timed=facts.data if facts.trace is not None or facts.series is not None else None,
    )


@dataclass(frozen=True)
class _Tests:
    """What the tests found, each at most once."""

    sends: Evidence | None
    counts: Evidence | None
    floor: Evidence | None
    others: tuple[Evidence, ...]
    connections: int
    went_on: bool
    failed: bool

    @property
    def steady(self) -> bool:
        """Whether one and the same number of requests was always under way: a closed loop at full speed."""
        return any(one.test == "requests under way" for one in self.others)

    @property
    def evidence(self) -> list[Evidence]:
        return [
            one for one in (self.sends, self.counts, self.floor, *self.others) if one is not None
        ]


def _run_tests(facts: Facts, stalls: Stalls) -> _Tests:
    """Run the tests that the source allows."""
    sends, steady = None, None
    if facts.trace is not None:
        steady = full_speed(facts.trace)
        until = facts.told_duration or facts.run.duration
        sends = sends_in_slow_times(facts.trace, stalls, until, full_speed=steady is not None)
    counts = None
    if facts.series is not None:
        counts = counts_in_stalls(
            stalls, facts.observed_rate or 0.0, facts.run.failed + facts.run.timeouts
        )
    floor = _floor(facts)
    first = [None if one is None else one.evidence for one in (sends, counts)]
    ran = iter(holm([one for one in (*first, floor) if one is not None]))
    adjusted = [None if one is None else next(ran) for one in (*first, floor)]
    others = [steady]
    if not isinstance(facts.data, Summary) and facts.count:
        others.append(ladder(facts.histogram, facts.interval))
    connections = (sends.under_way if sends else 0) or (counts.waiting if counts else 0)
    went_on = sends.went_on if sends else False
    failed = (sends.failed if sends else False) or (counts.failed if counts else False)
    kept = tuple(one for one in others if one is not None)
    return _Tests(adjusted[0], adjusted[1], adjusted[2], kept, connections, went_on, failed)


def _floor(facts: Facts) -> Evidence | None:
    """The floor test, or that of the area where only a mean and a maximum are held."""
    if not facts.rate or not facts.count:
        return None
    duration = facts.duration or float("inf")
    if not isinstance(facts.data, Summary):
        return floor_test(facts.histogram, facts.rate, duration, waited=facts.may_wait)
    stats = facts.data.stats
    if "mean" in stats and "max" in stats:
        return area_test(
            stats["mean"], stats["max"], facts.count, facts.rate, duration, waited=facts.may_wait
        )
    return None


def _at_full_speed(facts: Facts, tests: _Tests) -> bool:
    return tests.steady or (
        facts.run.loop == "closed" and not facts.run.rate and not facts.told_rate
    )


# ---------------------------------------------------------------- the verdict
def _judge(
    facts: Facts, tests: _Tests, material: bool, stalls: Stalls
) -> tuple[Verdict, tuple[str, ...]]:
    findings = _findings(facts, tests, stalls)
    seen = max(
        (one.level for one in (tests.sends, tests.counts) if one is not None),
        key=_RANK.index,
        default="none",
    )
    floor = tests.floor.level if tests.floor is not None else "none"
    accused = _accused(facts, seen, floor, tests.went_on)
    if accused and material:
        return "omits", (*findings, *(("catch-up",) if _caught_up(facts, tests) else ()))
    if accused:
        return "unknown", (*findings, "immaterial")
    spoiled = _SPOILED & set(findings)
    if facts.stall and not spoiled and _fully_there(facts, stalls, seen, floor):
        return "clean", findings
    if seen in ("weak", "strong") or floor in ("weak", "strong"):
        return "unknown", findings
    quiet = bool(facts.rate) and facts.longest < seen_from(facts.rate or 0.0, 1)
    return "unknown", (*findings, *(("nothing-to-omit",) if quiet and not spoiled else ()))


_RANK = ("none", "honest", "weak", "strong")
_SPOILED = {
    "over-corrected",
    "lost-to-timeouts",
    "dropped",
    "unfinished",
    "clipped",
    "fewer-than-due",
    "failed-in-stalls",
}


def _accused(facts: Facts, seen: str, floor: str, went_on: bool) -> bool:
    """Whether strong evidence says that the load generator itself waited."""
    if facts.corrected_by in ("us", "tool"):
        return False
    if seen == "strong":
        return True
    if floor != "strong" or not facts.waits or went_on or seen == "honest":
        return False
    interval = facts.interval or 1e9 / (facts.rate or 1e9)
    return facts.longest * 1e9 >= _VERDICT_INTERVALS * interval


def _fully_there(facts: Facts, stalls: Stalls, seen: str, floor: str) -> bool:
    """Whether a stall was seen, and all that it must have delayed is there."""
    if facts.waits:  # it cannot be: what it left out is not seen, at best
        return False
    if floor in ("weak", "strong") or seen in ("weak", "strong"):
        return False
    if (
        facts.trace is not None or facts.series is not None
    ):  # the course over time tells more than the sum
        return len(stalls) > 0 and seen == "honest"
    return floor == "honest"


def _findings(facts: Facts, tests: _Tests, stalls: Stalls) -> tuple[str, ...]:
    """Names of what is to be known of the run beside the verdict."""
    run, found = facts.run, []
    if tests.steady or run.loop == "closed":
        found.append("closed-loop")
    if facts.corrected_by is not None:
        found.append("already-corrected")
    if facts.corrected_by in ("us", "tool") and _over_corrected(facts):
        found.append("over-corrected")
    if any(one.test == "ladder" for one in tests.others):
        found.append("ladder")
    total = max(facts.count + run.failed + run.dropped, 1)
    if run.timeouts and _lost(facts):
        found.append("lost-to-timeouts")
    if run.dropped > _LOST * total:
        found.append("dropped")
    if run.unfinished > max(_LOST * total, facts.connections or 1):
        found.append("unfinished")
    if _clipped(facts):
        found.append("clipped")
    offered = facts.told_rate or run.rate
    sending = (
        facts.duration or 0.0
    ) - facts.longest  # some tools count the wait for the last reply in
    if offered and total + run.timeouts < _FEWER * offered * sending:
        found.append("fewer-than-due")
    sum_only = facts.trace is None and facts.series is None
    if tests.failed or (
        sum_only
        and run.failed + run.timeouts > _VERDICT_FAILED * (facts.rate or math.inf) * facts.stall > 0
    ):
        found.append("failed-in-stalls")
    if any("clock" in note for note in stalls.notes):
        found.append("clock-step")
    return tuple(found)


def _over_corrected(facts: Facts) -> bool:
    """Whether more requests are there than the schedule held, or more slow ones than one stall can hit."""
    if isinstance(facts.data, Summary) or not facts.duration or not facts.count:
        return False
    speed = facts.told_rate or facts.run.rate
    if speed:
        return facts.count > _OVER * speed * facts.duration + 20
    histogram = facts.histogram
    share = histogram.count_above(histogram.max / 2) / facts.count
    return share > _CEILING * (histogram.max / 2e9) / facts.duration and share > 0.1


def _lost(facts: Facts) -> bool:
    """Whether requests that timed out are not among the latencies; some tools count them and time them all the same."""
    return (
        isinstance(facts.data, Summary)
        or facts.histogram.censored > 0
        or facts.longest * 1e9 < (facts.run.timeout or 0.0)
    )


def _clipped(facts: Facts) -> bool:
    """Whether values stop at a limit that is no timeout: known, or a pile of them at the very top."""
    if isinstance(facts.data, Summary) or not facts.count:
        return False
    histogram = facts.histogram
    return bool(histogram.censored and not facts.run.timeouts)


def _caught_up(facts: Facts, tests: _Tests) -> bool:
    """Whether the requests that were due in the stalls were sent after all, late."""
    trace = facts.trace
    if trace is None or tests.sends is None or not facts.rate:
        return False
    return trace.due.size >= facts.rate * trace.span - 0.2 * tests.sends.missing
