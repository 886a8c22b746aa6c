"""T1: whether the load generator stopped sending while replies were late: the strongest witness; only a trace has it.

A hole in the sends that lies within slow requests is what coordinated omission looks like; but so may a deploy, the end
of a burst, or a quiet minute. What tells them apart is coordination itself: in a closed loop all connections are under
way in the hole (never are there more), and sends go on with the first replies, not at a time of their own. Only holes
like that count, and their chance is what the local rate, with the dispersion of the arrivals, makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.diagnose.evidence import LEAST, STRONG, WEAK, Evidence, p_words
from latencykit.diagnose.trace import hulls
from latencykit.units import format_count, format_duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.diagnose.trace import Trace

    Floats = NDArray[np.float64]

__all__ = ["Sends", "sends_in_slow_times"]

_INTERVALS = 12.0  # of a connection: no hole shorter than that accuses
_AT_CAP = 0.02  # of the time outside slow requests: more may be under way than in the hole
_RESUME = 0.1  # of the hole, or two intervals: so soon after a reply sends must go on
_WENT_ON = 0.8  # of the usual sends: nobody waited


@dataclass(frozen=True)
class Sends:
    """What became of the sends in the times of slow requests.

    Attributes
    ----------
    evidence : Evidence
    expected, seen : float
        Sends in those times at the local rate, and those that were there; the first of each time left out.
    under_way : int
        Requests under way in the largest hole that counts: the connections of a closed loop.
    """

    evidence: Evidence
    expected: float
    seen: float
    under_way: int


def sends_in_slow_times(trace: Trace) -> Sends | None:
    """Test whether sends stopped with the replies; None where no request was slow enough to tell, or only at the end.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    Sends or None
    """
    begin, end = trace.windows
    inner = end < trace.span  # what lies behind the last send cannot be judged from sends
    begin, end = begin[inner], end[inner]
    if not begin.size:
        return None
    local = _local_rate(trace, begin, end)
    usual, sent = (end - begin) * local, np.maximum(trace.sends_within(begin, end) - 1, 0)
    expected, seen = float(usual.sum()), float(sent.sum())
    longest = end - begin >= (end - begin).max() / 2
    holes = _holes(trace, begin, end)
    best, missing, level_of_best = 0.0, 0.0, 0
    spread = _dispersion(trace, begin, end)
    for left, right, speed in zip(*holes, local.tolist(), strict=True):
        under_way = _coordinated(trace, left, right, speed)
        if under_way:
            weight = (right - left) * speed
            missing += weight
            if weight / spread > best:
                best, level_of_best = weight / spread, under_way
    p = float(min(1.0, begin.size * np.exp(-best))) if best else 1.0
    level = "strong" if p < STRONG and missing >= LEAST else "weak" if p < WEAK else "none"
    if (
        level == "none"
        and usual[longest].sum() >= 20
        and all(sent[some].sum() >= _WENT_ON * usual[some].sum() for some in (longest, slice(None)))
    ):
        level = "honest"
    finding = _words(level, expected, seen, level_of_best, p, float((end - begin).sum()), trace.slow_from)
    return Sends(Evidence("sends in slow times", p, STRONG, finding, level, missing), expected, seen, level_of_best)


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


def _holes(trace: Trace, begin: Floats, end: Floats) -> tuple[list[float], list[float]]:
    """The longest time without a send in each window, the one that begins with its last send included."""
    left, right = [], []
    for a, b in zip(begin.tolist(), end.tolist(), strict=True):
        first, last = np.searchsorted(trace.due, (a, b), "left").tolist()
        inside = trace.due[first : last + 1]  # up to the send that follows the window
        gaps = np.diff(inside)
        k = int(np.argmax(gaps)) if gaps.size else 0
        left.append(float(inside[k]) if gaps.size else b)
        right.append(float(inside[k + 1]) if gaps.size else b)
    return left, right


def _dispersion(trace: Trace, begin: Floats, end: Floats) -> float:
    """Variance over mean of the sends in stretches outside the windows: 1 for Poisson arrivals, more for bursts."""
    longest = float((end - begin).max())
    width = min(max(longest, 10.0 / max(trace.rate, 1e-9)), trace.span / 20)
    edges = np.arange(0.0, trace.span, width)
    if edges.size < 4:
        return 1.0
    low, high = edges[:-1], edges[1:]
    after = hulls(begin, end + (end - begin))  # and what may be the catching up
    touched = np.searchsorted(after[0], high, "left") - np.searchsorted(after[1], low, "right") > 0
    counts = trace.sends_within(low, high)[~touched]
    if counts.size < 3 or not counts.mean():
        return 1.0
    return float(max(1.0, counts.var(ddof=1) / counts.mean()))


def _coordinated(trace: Trace, left: float, right: float, rate: float) -> int:
    """How many requests were under way in a hole, if it is one that replies made: else 0.

    All of those that may be under way are, and the next send follows a reply that was awaited all along.
    """
    middle = np.array([left + (right - left) / 2])
    under_way = int(trace.under_way(middle)[0])
    if under_way < 1 or rate <= 0:
        return 0
    interval = under_way / max(rate, trace.rate)
    if right - left < _INTERVALS * interval * (1 - 1e-9):
        return 0
    if trace.share_above(under_way) > _AT_CAP:
        return 0
    awaited = trace.end[
        (trace.due <= left + interval) & (trace.end > left + (right - left) / 2) & (trace.end <= right + interval)
    ]
    if not awaited.size:
        return 0
    soon = max(2 * interval, _RESUME * (right - left))
    return under_way if right - float(awaited.min()) <= soon else 0


def _words(level: str, expected: float, seen: float, under_way: int, p: float, seconds: float, slow_from: float) -> str:
    times = f"while requests took more than {format_duration(slow_from * 1e9)} ({format_duration(seconds * 1e9)} in all)"
    counts = f"{format_count(seen)} others were sent where the rate around would have sent {format_count(expected)}"
    if level in ("strong", "weak"):
        who = "its only connection waited" if under_way == 1 else f"all {under_way} connections waited"
        return f"{times} {counts}; {who}, and sends went on with the replies ({p_words(p)})"
    if level == "honest":
        return f"{times} {counts}: nobody waited for replies"
    return f"{times} {counts}; the pauses do not follow the replies"
