"""`find_stalls`: the times in which a server stood still, as the latencies show them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.diagnose.period import period_of
from latencykit.diagnose.trace import Trace, hulls
from latencykit.errors import NotHeldError
from latencykit.log import HistogramLog
from latencykit.samples import Samples
from latencykit.stats.chances import poisson_at_least

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from latencykit.diagnose.stalls_log import Delayed
    from latencykit.log import IntervalSeries

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Stalls", "find_stalls", "stalls_of"]

_ALPHA = 0.01  # of taking any chance gap between replies for a stall
_HELD = 0.5  # of a gap between replies: some request must have waited so long
_STEP = 0.02  # of the step of a clock: latencies that carry it agree so closely
_RAMP = 0.25  # of the spread of sends: replies that end together are spread no wider
_DRAIN = 0.25  # of its length: so soon after a stall no part of the server stands still by itself
_CHANCE = 3.0  # standard deviations of a Poisson count: so many sends may lack by chance
_PARTIAL = 3  # requests that must end together before part of a server is said to have stood still


@dataclass(frozen=True)
class Stalls:
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
        return self.end - self.start

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row a stall."""
        import pandas as pd

        columns = {name: getattr(self, name) for name in ("start", "end", "duration", "worst", "missing", "share")}
        frame = pd.DataFrame(columns)
        frame.attrs["notes"] = list(self.notes)
        return frame

    @classmethod
    def none(cls, *notes: str) -> Stalls:
        """Return no stalls at all."""
        empty = np.zeros(0)
        return cls(empty, empty, empty, np.zeros(0, np.int64), empty, notes)


def find_stalls(rung: Samples | HistogramLog) -> pd.DataFrame:
    """Find the times in which a server stood still.

    In samples a stall is a time without any reply though a request was waiting, longer than the gaps between replies
    usually are; or requests that were sent at various times and end all at once, which is what one stalled shard looks
    like. In a log it is what intervals with long maxima, and intervals that the logger itself could not end in time, say
    together; it is known to about one interval. A maximum alone is not one: fewer replies than usual, latencies spread
    evenly up to it as of those who arrived all through the stall, or an interval that ended late must bear it out.

    Parameters
    ----------
    rung : Samples or HistogramLog
        Samples need start times.

    Returns
    -------
    DataFrame
        One row a stall: ``start``, ``end``, ``duration`` (seconds), ``worst`` (ns), ``missing`` (requests that the
        usual rate would have sent meanwhile), ``share`` (part of that time's requests that were delayed). Its
        ``attrs["notes"]`` name steps of a clock, a warm-up and isolated slow requests, which are not stalls, and a period
        (from 8 stalls in at least four periods on).

    Raises
    ------
    NotHeldError
        For histograms and summaries, which know no time, and for samples without start times.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall, paced_loop
    >>> found = find_stalls(paced_loop(Server("1ms", stalls=[Stall(4, 2)]), rate=100, duration=10))
    >>> found[["start", "end", "duration", "missing"]].round(2).values.tolist()
    [[4.0, 6.0, 2.0, 199.0]]
    """
    return stalls_of(rung).to_frame()


def stalls_of(rung: Any, series: IntervalSeries | None = None, trace: Trace | None = None) -> Stalls:
    """Return what `find_stalls` finds, as arrays; `series` is a log's, with its medians, where it or a trace is at hand."""
    if isinstance(rung, HistogramLog):
        from latencykit.diagnose.stalls_log import stalls_of_log

        found = stalls_of_log(rung, series)
    elif isinstance(rung, Samples) and rung.start is not None:
        found = _stalls_of_trace(trace if trace is not None else Trace.of(rung))
    else:
        raise NotHeldError(
            "this source does not know when requests were sent; a log, or samples with start times, would tell stalls"
        )
    period = period_of(found.end, rung.elapsed if isinstance(rung, Samples) else rung.duration)
    return found if period is None else Stalls(**vars(found) | {"notes": (*found.notes, period.words)})


def _stalls_of_trace(trace: Trace) -> Stalls:
    if trace.due.size < 2:
        return Stalls.none()
    begin, end, notes = _gaps(trace)
    left, right = _parts(trace, begin, end)
    before = np.concatenate(([-np.inf], end))[np.searchsorted(end, left, "right")]
    own = left - before > _DRAIN * (right - left)  # else it is the backlog of the stall before that drains
    left, right = left[own], right[own]
    begin, end = hulls(np.concatenate((begin, left)), np.concatenate((end, right)))
    if not begin.size:
        return Stalls.none(*notes)
    due = trace.rate * (np.minimum(end, trace.span) - begin)
    lacking = due - trace.sends_within(begin, end)
    slow = trace.took > 2 * trace.usual
    sent, late, ended = trace.due[slow], end - _STEP * (end - begin), np.sort(trace.end[slow])
    by_then = np.searchsorted(trace.due, end, "right")
    waiting = by_then - np.searchsorted(trace.ends, begin, "right")  # sent by the end and answered after the begin,
    kept = np.searchsorted(sent, end, "right") - np.searchsorted(ended, late, "left")  # and slow, and answered at the end
    return Stalls(
        begin,
        end,
        _longest_across(trace, begin, end) * 1e9,
        np.where(lacking > _CHANCE * np.sqrt(np.maximum(due, 1)), np.rint(lacking), 0).astype(np.int64),
        np.clip(kept / np.maximum(waiting, 1), 0.0, 1.0),
        notes,
    )


def _longest_across(trace: Trace, begin: Floats, end: Floats) -> Floats:
    """The longest request under way in each of some disjoint ascending windows, seconds.

    A request lies across a run of windows: it is entered at two powers of two that cover the run, and each power hands
    what it holds down to its halves.
    """
    first, last = np.searchsorted(end, trace.due, "left"), np.searchsorted(begin, trace.end, "right") - 1
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
    limit = max(np.log(trace.due.size / _ALPHA) / trace.rate, 2 * trace.usual)
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
    last = trace.took[good[np.searchsorted(trace.answers, b, "left")]]  # of what was under way when sends ended, some
    inside = np.minimum(b, trace.span) - since  # is slow by itself: each of its replies comes long after the one before
    kept &= (since <= trace.span) & ((inside >= limit) | (last <= 2 * (b - since)))
    begin, end, notes = [], [], []
    usually = int(np.quantile(trace.under_way(trace.due), 0.99)) if kept.any() else 0
    for k in np.flatnonzero(kept).tolist():
        left, right = float(a[k]), float(b[k])
        if _clock_step(trace, left, right, usually):
            notes.append(f"the clock seems to have been set forward by about {right - left:.3g} s at {left:.3g} s: not a stall")
            continue
        begin.append(float(since[k]))
        end.append(right)
    if begin and (until := _warm_up(trace, begin[0], end[0])):
        notes.append(f"warm-up: requests of the first {until:.3g} s were slow, though they were answered: not a stall")
        begin, end = begin[1:], end[1:]
    return np.array(begin, np.float64), np.array(end, np.float64), tuple(notes)


def _warm_up(trace: Trace, begin: float, end: float) -> float:
    """Seconds for which the first requests were slow and were yet answered one after the other; 0 where they were not.

    The first reply of a run comes late then, which is no stall: what stood still is answered all at once.
    """
    left, right = trace.windows
    if not left.size or left[0] > 5 / trace.rate or begin > right[0]:
        return 0.0
    answered = int(np.searchsorted(trace.answers, right[0])) - int(np.searchsorted(trace.answers, end + 0.1 * (end - begin)))
    steady = answered >= 0.5 * trace.rate * (right[0] - end) and right[0] - begin > 1.5 * (end - begin)
    return float(right[0]) if steady and begin <= 5 / trace.rate else 0.0


def _clock_step(trace: Trace, a: float, b: float, usually: int) -> bool:
    """Whether those under way carry one and the same extra latency while all others went on as if nothing had been.

    In a stall whoever sends is delayed, so that as many requests wait as there are connections, or more and more; at a
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
    """Slow requests outside the gaps that were sent at various times and end at once: a part of the server stood still."""
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
    longest, begin_of, end_of = np.maximum.reduceat(took, first), ended[first], np.maximum.reduceat(ended, first)
    others = slow.size / max(trace.span, 1e-9) * np.maximum(end_of - begin_of, trace.grain)
    stood = (number >= _PARTIAL) & (slow.size * poisson_at_least(number - 1, others) < _ALPHA)
    stood &= (end_of - begin_of <= _RAMP * spread) & (spread >= _HELD * longest)
    return begin_of[stood] - longest[stood], begin_of[stood]
