"""Stalls in an interval log: from long maxima, if counts or latencies bear them out, and from intervals that ended late.

One slow request makes a long maximum, too. That something stood still shows in the counts (too few replies meanwhile), in
the latencies (those that arrived during a stall of d seconds take from d down to nothing, evenly), or in the logger itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from latencykit.diagnose.stalls import Stalls
from latencykit.diagnose.trace import hulls
from latencykit.stats.quantiles import median
from latencykit.units import NANOSECONDS, format_duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.blocks import Block
    from latencykit.log import HistogramLog, IntervalSeries

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["LEVELS", "Delayed", "SlowFold", "evenly_spread", "stalls_of_log", "usual_rate"]

LEVELS = (0.1, 0.2, 0.4, 0.5, 0.6, 0.8)
"""Parts of a stall's longest latency above which requests are counted."""
_GAPS = 20.0  # mean gaps between requests, and
_TIMES = 20.0  # medians: a maximum above both may be a stall,
_SHARE = 0.02  # if it is not below this part of an interval: it could not be seen in the counts
_STRETCH = 0.2  # of the usual length of an interval: one that is longer by that ended late
_FEW = 0.5  # of the usual requests: fewer were answered while the server stood still
_CHANCE = 3.0  # standard deviations of the counts: a shortfall below that is chance
_CORE = 5.0  # requests that intervals within a stall must have room for, to show that few were answered
_EVEN = 0.5  # of the requests that a stall delays: each fifth of its length has that many of them,
_BIN = 4.0  # where it has room for so many,
_PART = 0.1  # of the requests: fewer that were delayed are no part of a server that stood still
_CLEAR = 50.0  # requests of a part that stood still: with fewer it could be independent slow ones
_LONG = 4.0  # times its length: what a stall delayed is answered by then
_BEHIND = 0.25  # of its length: so soon after a stall latencies are those of the backlog that drains
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
    return float(median(np.add.reduceat(count, first)[: first.size] / np.add.reduceat(length, first)[: first.size]))


@dataclass(frozen=True)
class Delayed:
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
    """Counts, of every interval, the values above parts of a latency: a fold for `HistogramLog.scan`.

    Parameters
    ----------
    reference : ndarray of float64, shape (intervals,)
        That latency, in the log's unit.
    """

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
    log: HistogramLog, rows: _Rows, order: Ints, late: NDArray[np.bool_], begin: Floats, end: Floats, factor: float
) -> Stalls:
    """The stalls among these that counts, latencies or the logger bear out, and what the intervals say of each.

    Of those that overlap the longest is the stall; what remains of the others is the backlog that drains.
    """
    left, right = hulls(begin, end)
    group = np.searchsorted(left, begin, "right") - 1
    longest = np.lexsort((end - begin, group))[np.searchsorted(np.sort(group), np.arange(left.size), "right") - 1]
    begin, end = begin[longest], end[longest]
    usual, wavering = _counts_beside(rows, *_touched(rows, left, right))
    silent, halted = _halted(rows, late, begin, end, *_touched(rows, left, right), wavering)
    follows = begin - np.concatenate(([-np.inf], right[:-1])) <= _BEHIND * (end - begin) + float(median(rows.length))
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
    even &= covered <= _LONG * (duration + float(median(rows.length)))  # else requests are slow throughout
    even &= above[1] <= _DRAIN * due
    even &= evenly_spread(above, np.zeros_like(above), share * due, _BIN)
    others = np.ones(rows.start.size, np.bool_)  # which may be slow as well, of themselves
    stalled = halted | even
    others[_positions(first[stalled], last[stalled])] = False
    beside = np.zeros_like(above)
    if others.sum() >= 3:
        beside = fold.counts[:, order][:, others].sum(axis=1)[:, None] / max(float(rows.length[others].sum()), 1e-9) * covered
    even &= evenly_spread(above, beside, share * due, _BIN)
    notes, warm = _warm_up(rows, begin, np.where(silent | (_sums(late.astype(np.int64), first, last) > 0), duration, 0.0))
    stood = halted | even
    kept = stood & ~warm
    missing = np.where(short >= _CHANCE * noise, np.clip(np.rint(short), 0, np.maximum(np.rint(due), 0)), 0)
    share = np.where(halted, 1.0, share)
    counts = Delayed(above[:, kept], beside[:, kept], short[kept], noise[kept], wavering, usual, _waits_alone(rows, quiet))
    isolated = int((~stood & ~warm).sum())
    if isolated:
        times = "once" if isolated == 1 else f"{isolated:,} times"
        notes = (*notes, f"{times} requests were slow while others were answered as usual: not a stall")
    return Stalls(begin[kept], end[kept], worst[kept] * 1e9, missing[kept].astype(np.int64), share[kept], notes, delayed=counts)


def _touched(rows: _Rows, left: Floats, right: Floats) -> tuple[Ints, Ints]:
    """First interval, and the one behind the last, that may have counted what a stall delayed: it is known to about one."""
    first = np.maximum(np.searchsorted(np.maximum.accumulate(rows.stop), left, "right") - 1, 0)
    last = np.minimum(np.searchsorted(rows.start, right, "left") + 1, rows.start.size)
    return first, np.maximum(last, first + 1)


def _positions(first: Ints, last: Ints) -> Ints:
    number = last - first
    if not number.size:
        return np.zeros(0, np.int64)
    return np.repeat(first - np.concatenate(([0], np.cumsum(number)[:-1])), number) + np.arange(number.sum())


def _counts_beside(rows: _Rows, first: Ints, last: Ints) -> tuple[float, float]:
    """Median and standard deviation of the counts of intervals without any stall (of all, where these are too few)."""
    quiet = rows.stop < rows.stop.max() - 1e-9  # the last interval is cut
    quiet[_positions(first, last)] = False
    if quiet.sum() < 3:
        quiet[:] = True
    away = np.abs(rows.count - rows.rate * rows.length)[quiet]
    return float(median(rows.count[quiet])), max(1.4826 * float(median(away)), 0.5)


def _halted(
    rows: _Rows, late: NDArray[np.bool_], begin: Floats, end: Floats, first: Ints, last: Ints, wavering: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which stalls had few replies within, and which kept requests or the logger from going on: those, fewer around, late."""
    within, behind = np.searchsorted(rows.start, begin, "left"), np.searchsorted(rows.stop, end, "right")
    behind = np.maximum(within, behind)
    room, lost = rows.room, rows.room - np.where(rows.room > 0, rows.count, 0)
    silent = (_sums(room, within, behind) >= _CORE) & (_sums(lost, within, behind) >= (1 - _FEW) * _sums(room, within, behind))
    chance = _CHANCE * wavering * np.sqrt(last - first)
    lacking = _own_sums(lost, first, last, end - begin) >= np.maximum(np.maximum(_FEW * rows.rate * (end - begin), chance), _CORE)
    return silent, np.asarray(silent | lacking | (_sums(late.astype(np.int64), first, last) > 0))


def evenly_spread(above: Floats, beside: Floats, due: Floats, least: float) -> NDArray[np.bool_]:
    """Whether latencies fill each fifth of a stall's length (but the lowest) as those do who arrive all through it.

    Parameters
    ----------
    above, beside : ndarray, shape (levels, stalls)
        As in `Delayed`.
    due : ndarray of float64, shape (stalls,)
        Requests that each stall has room for.
    least : float
        Of these in a fifth: with fewer there is no telling.
    """
    fifths = [LEVELS.index(part) for part in (0.2, 0.4, 0.6, 0.8)]
    fill = -np.diff((above - beside)[fifths], axis=0, append=np.zeros((1, due.size)))
    chance = _CHANCE * np.sqrt(np.maximum(-np.diff(beside[fifths], axis=0, append=np.zeros((1, due.size))), 0.0))
    return np.asarray((0.2 * due >= least) & (fill >= np.maximum(_EVEN * 0.2 * due, chance)).all(axis=0))


def _warm_up(rows: _Rows, begin: Floats, silent: Floats) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Name the warm-up, and which stalls are part of it: the first intervals are slow throughout, and yet answer.

    `silent` are the seconds of each in which nothing was answered.
    """
    slow = (rows.middle > _WARM * rows.usual) | (rows.count == 0)
    lead = int(np.argmin(slow)) if not slow.all() else 0
    if not lead or lead > rows.start.size / 2 or rows.count[:lead].sum() < _FEW * rows.room[:lead].sum():
        return (), np.zeros(begin.size, np.bool_)
    until = float(rows.stop[lead - 1])
    warm = (begin < until) & (silent < (until - float(rows.start[0])) / 2)
    if not warm.any():
        return (), warm
    seconds = format_duration((until - float(rows.start[0])) * 1e9)
    return (f"warm-up: the first {seconds} were slow throughout, though requests were answered: not a stall",), warm


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
    return np.asarray(np.add.reduceat(own, np.searchsorted(whose, np.arange(first.size)), axis=-1), np.float64)
