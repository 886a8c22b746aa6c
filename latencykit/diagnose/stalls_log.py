"""Stalls in an interval log: from long maxima, and from intervals that the logger itself could not end in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.diagnose.stalls import Stalls
from latencykit.diagnose.trace import hulls
from latencykit.stats.quantiles import median
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.log import HistogramLog, IntervalSeries

    Floats = NDArray[np.float64]

__all__ = ["stalls_of_log", "usual_rate"]

_GAPS = 20.0  # mean gaps between requests, and
_TIMES = 20.0  # medians: a maximum above both is a stall,
_SHARE = 0.02  # if it is not below this part of an interval: it could not be seen in the counts
_STRETCH = 0.2  # of the usual length of an interval: one that is longer by that ended late


def usual_rate(series: IntervalSeries) -> float:
    """Return requests per second of an ordinary interval: the median over those with any, or 0."""
    length = np.maximum(series.length, 1e-9)
    held = (series.count > 0) & (series.length > 0)
    return float(median(series.count[held] / length[held])) if held.any() else 0.0


def stalls_of_log(log: HistogramLog, series: IntervalSeries | None = None) -> Stalls:
    """Return the stalls of a log; see `find_stalls`."""
    series = series if series is not None else log.series((50,))
    factor = NANOSECONDS.get(series.unit, 1.0)
    order = np.argsort(series.start, kind="stable")
    start, length, count = series.start[order], series.length[order], series.count[order].astype(np.float64)
    worst = np.nan_to_num(series.max[order]) * factor
    rate = usual_rate(series)
    if not rate:
        return Stalls.none()
    values = series.values[:, 0]
    usual = float(median(values[~np.isnan(values)])) * factor / 1e9
    nominal = float(median(length))
    limit = max(_GAPS / rate, _TIMES * usual, _SHARE * nominal)
    late = length > nominal * (1 + _STRETCH) + usual
    late[-1:] = False  # the last interval ends with the run
    late &= length - nominal > limit
    begin, end = _placed(start, length, count, worst / 1e9, late, rate, limit)
    begin, end = hulls(
        np.concatenate((begin, (start + length)[late] - (length - nominal)[late])), np.concatenate((end, (start + length)[late]))
    )
    if not begin.size:
        return Stalls.none()
    return _described(begin, end, start, length, count, worst, rate, limit)


def _placed(
    start: Floats, length: Floats, count: Floats, worst: Floats, late: NDArray[np.bool_], rate: float, limit: float
) -> tuple[Floats, Floats]:
    """Where the stall behind each long maximum lies.

    It ended within the interval that counted it, so it began within [t − max, t + len − max]. Where intervals before
    counted little or nothing, their counts tell when: so long as the usual rate takes for them. Where the logger itself
    was held up, the interval ended with the stall.
    """
    rows = np.flatnonzero(worst > limit)
    earliest, latest = start[rows] - worst[rows], (start + length)[rows] - worst[rows]
    begin = np.where(late[rows], latest, (earliest + latest) / 2)
    low = count < rate * length / 2
    for k, row in enumerate(rows.tolist()):
        first = max(int(np.searchsorted(start, earliest[k], "right")) - 1, 0)
        if low[first:row].any():
            last_full = max(first + int(np.argmax(low[first:row])) - 1, 0)
            begin[k] = start[last_full] + count[last_full:row].sum() / rate
    begin = np.clip(begin, earliest, latest)
    return begin, begin + worst[rows]


def _described(
    begin: Floats, end: Floats, start: Floats, length: Floats, count: Floats, worst: Floats, rate: float, limit: float
) -> Stalls:
    """What the intervals say of each stall."""
    stop = start + length
    top, missing, share = [], [], []
    for a, b in zip(begin.tolist(), end.tolist(), strict=True):
        near = (stop > a) & (start <= b + 1e-9)
        if not near.any():  # no interval is as long as to hold it
            top.append((b - a) * 1e9)
            missing.append(0)
            share.append(1.0)
            continue
        top.append(float(worst[near].max()))
        covered = float(stop[near].max() - start[near].min())
        lost = rate * covered - float(count[near].sum())
        missing.append(int(np.clip(round(lost), 0, max(round(rate * (b - a)), 0))))
        slow = int((near & (worst / 1e9 > limit)).sum())
        share.append(1.0 if missing[-1] > 0.5 * rate * (b - a) or not near.any() else slow / int(near.sum()))
    return Stalls(begin, end, np.array(top), np.array(missing, np.int64), np.array(share))
