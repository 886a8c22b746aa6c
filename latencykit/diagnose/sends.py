"""T1: whether the load generator stopped sending while replies were late: the strongest witness; only a trace has it.

A hole in the sends that lies within slow requests is what coordinated omission looks like; but so may a deploy, the end
of a burst, a quiet minute, a clock that was set forward, or a balancer that takes a frozen node out. Coordination itself
tells them apart, by two witnesses. The hole: all connections are under way in it (never are there more), it is far longer
than chance makes gaps, and sends go on with the first replies. And the hand of a load generator: either sends follow those
replies one by one, faster than anybody would come by chance; or they dwindled as one connection after the other had to
wait; or never are more under way, though by chance there would be; or all sends outside keep to a schedule, and no clock
that was set forward would have left the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.diagnose.evidence import LEAST, STRONG, WEAK, Evidence, p_words
from latencykit.diagnose.trace import hulls
from latencykit.stats.chances import poisson_at_least, poisson_at_most
from latencykit.units import format_count, format_duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.diagnose.stalls import Stalls
    from latencykit.diagnose.trace import Trace

    Floats = NDArray[np.float64]

__all__ = ["Sends", "sends_in_slow_times"]

_INTERVALS = 12.0  # of a connection: no hole shorter than that accuses
_AT_CAP = 0.02  # of the time outside slow requests: more may be under way than in the hole
_RESUME = 2.0  # intervals: so soon after a reply sends must go on
_WENT_ON = 0.8  # of the usual sends: nobody waited
_TO_THE_END = 0.7  # of the usual sends of a stall's last half,
_GAP = 0.25  # and no part of it longer than that without any
_TRIFLE = 0.05  # of the usual sends: so many may be missing in stalls that are not large
_POWER = 20.0  # sends that a stall must have room for, to show that they went on
_SCHEDULE = 0.25  # of the variance of chance: sends that waver less keep to a schedule
_CROWDED, _RARELY = 15.0, 0.05  # sends in a crowd that chance would bring, and part of them that closed loops may have
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


def sends_in_slow_times(trace: Trace, stalls: Stalls, until: float | None = None, *, full_speed: bool = False) -> Sends | None:
    """Test whether sends stopped with the replies; None where no request was slow enough to tell.

    Parameters
    ----------
    trace : Trace
    stalls : Stalls
        Of the same trace.
    until : float, optional
        When the load generator was to stop, seconds from the first send; the last send unless known.
    full_speed : bool
        Whether one and the same number of requests is always under way, which is a witness of its own.
    """
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
            usual[longest].sum() >= _POWER
            and all(sent[some].sum() >= _WENT_ON * usual[some].sum() for some in (longest, slice(None)))
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


def _worst_hole(trace: Trace, begin: Floats, end: Floats, local: Floats, *, full_speed: bool) -> tuple[float, int, float, bool]:
    """The p-value of the largest coordinated hole, requests under way in it, all that are missing, and whether two agree."""
    left, right = _holes(trace, begin, end)
    spread = _dispersion(trace, begin, end)
    under_way = trace.under_way(left + (right - left) / 2)
    interval = under_way / np.maximum(np.maximum(local, trace.rate), 1e-9)
    long_enough = (under_way >= 1) & (local > 0) & (right - left >= _INTERVALS * interval * (1 - 1e-9))
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
            sure = capped[many] or (scheduled[many] and soon and not _like_a_clock(trace, replies, b))
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


def _awaited(trace: Trace, left: float, right: float, under_way: int, interval: float) -> NDArray[np.int64]:
    """The requests whose replies a hole waited for; none if it is no such hole.

    All connections that there may be are under way, and the next send follows a reply that was awaited all along.
    """
    if trace.share_above(under_way) > _AT_CAP:
        return np.zeros(0, np.int64)
    late = trace.ending_within(left + (right - left) / 2, right + interval)
    late = late[trace.due[late] <= left + interval]
    soon = late.size and right - float(trace.end[late].min()) <= _RESUME * interval + trace.usual
    return late if soon else late[:0]


def _follow_replies(trace: Trace, replies: NDArray[np.int64], right: float, under_way: int, rate: float) -> bool:
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
    before = float(trace.ends[max(int(np.searchsorted(trace.ends, left + (right - left) / 2)) - 1, 0)])
    if before >= left:
        return False
    halves = trace.sends_within(np.array([before, (before + left) / 2]), np.array([(before + left) / 2, left]))
    room = rate * (left - before)
    few = poisson_at_most(int(halves.sum()), room) < _SURE
    return bool(few and poisson_at_most(int(halves[1]), room / 2) < _SURE and halves[1] < halves[0] / 2)


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
        int((np.arange(due.size) - np.searchsorted(np.sort(due + times), due, "right") >= under_way).sum())
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
    if stalls.missing[large].any() or stalls.missing.sum() > _TRIFLE * trace.rate * stalls.duration.sum():
        return False
    begin, end = stalls.start[large], stalls.end[large]
    stop = np.minimum(end, trace.span if until is None else max(until, trace.span))
    reach = np.maximum(end - begin, _POWER / max(trace.rate, 1e-9))
    before = trace.sends_within(np.maximum(begin - reach, 0.0), begin) / np.maximum(np.minimum(reach, begin), 1e-9)
    rate = np.maximum(trace.rate, np.where(begin >= reach / 2, before, 0.0))
    due, middle = rate * (stop - begin), (begin + stop) / 2
    if (due < _POWER).any():
        return False
    sent, later = trace.sends_within(begin, stop), trace.sends_within(middle, stop)
    if (sent < _WENT_ON * due).any() or (later < _TO_THE_END * due / 2).any():
        return False
    first, last = np.searchsorted(trace.due, begin, "left").tolist(), np.searchsorted(trace.due, stop, "left").tolist()
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
    return bool(failed.sum() > (1 - _WENT_ON) * max(int(trace.sends_within(stalls.start, stalls.end).sum()), 1))


def _words(trace: Trace, stalls: Stalls, level: str, under_way: int, p: float, sure: bool) -> str:
    inside = np.minimum(stalls.end, trace.span) - stalls.start
    if not len(stalls):
        times = f"no stall of the server was seen; requests slower than {format_duration(trace.slow_from * 1e9)} were under way"
        return times if level in ("none", "honest") else f"{times} while sends paused ({p_words(p)})"
    sent = format_count(int(trace.sends_within(stalls.start, np.minimum(stalls.end, trace.span)).sum()))
    due = format_count(round(trace.rate * float(np.maximum(inside, 0).sum())))
    times = f"during stalls ({format_duration(float(stalls.duration.sum()) * 1e9)} in total)"
    counts = f"{sent} requests were sent; the surrounding rate implies {due}"
    if level == "honest":
        return f"{times} {counts}: the load generator did not wait for replies"
    if level in ("strong", "weak") and under_way:
        who = "its only connection" if under_way == 1 else f"all {under_way} connections"
        if sure:
            return f"{times} {counts}; {who} waited, and sends resumed with the replies ({p_words(p)})"
        return f"{times} {counts}; {who} may have waited, or traffic paused for a reason of its own ({p_words(p)})"
    return f"{times} {counts}"
