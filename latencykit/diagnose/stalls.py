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

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from latencykit.log import IntervalSeries

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Stalls", "find_stalls", "stalls_of"]

_ALPHA = 0.01  # of taking any chance gap between replies for a stall
_HELD = 0.5  # of a gap between replies: some request must have waited so long
_STEP = 0.02  # of the step of a clock: latencies that carry it agree so closely
_RAMP = 0.25  # of the spread of sends: replies that end together are spread no wider
_DRAIN = 0.25  # of its length: so soon after a stall no part of the server stands still by itself
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
        Requests that the usual rate would have sent meanwhile and that were not sent then.
    share : ndarray of float64, shape (stalls,)
        Part (0..1) of the requests of that time that it held up.
    notes : tuple of str
        Steps of a clock, a period, and other things to know.
    """

    start: Floats
    end: Floats
    worst: Floats
    missing: Ints
    share: Floats
    notes: tuple[str, ...] = field(default=())

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
    together; it is known to about one interval.

    Parameters
    ----------
    rung : Samples or HistogramLog
        Samples need start times.

    Returns
    -------
    DataFrame
        One row a stall: ``start``, ``end``, ``duration`` (seconds), ``worst`` (ns), ``missing`` (requests that the
        usual rate would have sent meanwhile), ``share`` (part of that time's requests that were held up). Its
        ``attrs["notes"]`` tell of steps of a clock, which are no stalls, and of a period (from 8 stalls on).

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


def stalls_of(rung: Any, series: IntervalSeries | None = None) -> Stalls:
    """Return what `find_stalls` finds, as arrays; `series` is a log's, with its medians, where it is at hand."""
    if isinstance(rung, HistogramLog):
        from latencykit.diagnose.stalls_log import stalls_of_log

        found = stalls_of_log(rung, series)
    elif isinstance(rung, Samples) and rung.start is not None:
        found = _stalls_of_trace(Trace.of(rung))
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
    held = [(trace.due <= e) & (trace.end >= b) for b, e in zip(begin.tolist(), end.tolist(), strict=True)]
    slow = trace.took > 2 * trace.usual
    sent = trace.sends_within(begin, end)
    kept = [mine & (trace.end >= e - _STEP * (e - b)) for mine, b, e in zip(held, begin.tolist(), end.tolist(), strict=True)]
    return Stalls(
        begin,
        end,
        np.array([trace.took[mine].max() * 1e9 for mine in held]),
        np.maximum(np.rint(trace.rate * (np.minimum(end, trace.span) - begin) - sent), 0).astype(np.int64),
        np.array(
            [
                float((one & slow).sum() / max((mine & (trace.end > b)).sum(), 1))
                for one, mine, b in zip(kept, held, begin.tolist(), strict=True)
            ]
        ),
        notes,
    )


def _gaps(trace: Trace) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Times without a reply in which a request waited; steps of the clock are told apart."""
    ends = np.concatenate(([0.0], trace.ends))
    limit = max(np.log(trace.due.size / _ALPHA) / trace.rate, 2 * trace.usual)
    at = np.flatnonzero(np.diff(ends) > limit)
    begin, end, notes = [], [], []
    longest = float(trace.took.max())
    serial = bool((trace.under_way(trace.due) <= 1).all())
    for a, b in zip(ends[at].tolist(), ends[at + 1].tolist(), strict=True):
        first, last = np.searchsorted(trace.due, (b - longest, b), "left").tolist()
        waited = first + np.flatnonzero(trace.end[first:last] >= b)  # answered at the gap's end, or soon after
        if not waited.size or (waited.size == 1 and b > trace.span and not serial):  # none, or the last one, long after all
            continue
        since = max(a, float(trace.due[waited].min()))
        if b - since < max(_HELD * (b - a), limit):
            continue
        if _clock_step(trace, waited, a, b):
            notes.append(f"the clock seems to have been set forward by about {b - a:.3g} s, {a:.3g} s after the begin: no stall")
            continue
        begin.append(since)
        end.append(b)
    return np.array(begin, np.float64), np.array(end, np.float64), tuple(notes)


def _clock_step(trace: Trace, waited: Ints, a: float, b: float) -> bool:
    """Whether those under way carry one and the same extra latency while all others went on as if nothing had been.

    In a stall whoever sends is held up, so that as many requests wait as there are connections, or more and more; at a
    step of the clock only those wait that were under way at that moment, and nobody sends in the time that never was.
    """
    sent = int(trace.sends_within(np.array([a]), np.array([b]))[0])
    waits = trace.took[waited]
    before = trace.under_way(trace.due)
    usually = int(np.quantile(before, 0.99))
    alike = (
        waits.size > 1
        and float(np.ptp(waits)) < max(_STEP * (b - a), 4 * trace.usual)
        and float(np.ptp(waits)) < 10 * trace.usual
    )
    return sent <= 1 and alike and waits.size < usually


def _parts(trace: Trace, begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Slow requests outside the gaps that were sent at various times and end at once: a part of the server stood still."""
    inside = np.zeros(trace.due.size, np.bool_)
    for a, b in zip(begin.tolist(), end.tolist(), strict=True):
        inside |= (trace.due < b) & (trace.end > a)
    slow = np.flatnonzero((trace.took > trace.slow_from) & ~inside)
    slow = slow[np.argsort(trace.end[slow], kind="stable")]
    if slow.size < _PARTIAL:
        return np.zeros(0), np.zeros(0)
    together = np.concatenate(([True], np.diff(trace.end[slow]) > 0.1 * np.minimum(trace.took[slow][1:], trace.took[slow][:-1])))
    group = np.cumsum(together) - 1
    left, right = [], []
    for number in range(int(group[-1]) + 1):
        mine = slow[group == number]
        spread = float(np.ptp(trace.due[mine]))
        if mine.size < _PARTIAL or float(np.ptp(trace.end[mine])) > _RAMP * spread or spread < _HELD * trace.took[mine].max():
            continue
        left.append(float(trace.end[mine].min() - trace.took[mine].max()))
        right.append(float(trace.end[mine].min()))
    return np.array(left), np.array(right)
