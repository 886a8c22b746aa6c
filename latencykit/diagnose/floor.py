"""T3, the lower bound: the slow requests that a stall of a whole server must leave behind, if nobody waited.

While a server stands still for d seconds, requests that arrive at rate λ without regard to it find it so: λ·(d − x) of
them take longer than x. Hence Q(q) ≥ d − (1 − q)·T over a run of T seconds. A lone slow request that delayed no other
breaks the bound as well, so that this test accuses only where the tool is known to wait for replies. Nor does a number
that reaches it clear anybody: many stalls that each left requests out, or a service that is slow at times, reach it, too.
One stall that nobody waited for leaves latencies spread evenly from its length down; that shape does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.diagnose.evidence import LEAST, STRONG, WEAK, Evidence, p_words
from latencykit.stats.chances import poisson_at_most, poisson_mean
from latencykit.units import format_count, format_duration

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from latencykit.histogram import Histogram

    Floats = NDArray[np.float64]

__all__ = ["above_half", "area_test", "floor_test", "physics_floor", "seen_from"]

_DEFICIT = 0.5  # of what must be there: less is missing, and not only late
_THERE = 0.8
_MOST = 1.25  # of what one stall leaves: more is not one stall
_PARTS = (0.2, 0.4, 0.6, 0.8)  # of the stall: latencies between these are counted
_LEAST_PART = 0.6  # of what one stall leaves in each of these parts, where it leaves at least
_SURE_PART = 25.0  # requests there
_FEW_EDGES = 40  # of buckets: a list of percentiles, not a histogram
_POWER = 20.0  # requests that must exceed half of the stall, to tell


def physics_floor(percentile: ArrayLike, stall: float, duration: float) -> Floats:
    """Return the least that a percentile can be when a whole server stood still and nobody waited.

    Parameters
    ----------
    percentile : array_like of float
        In 0..100.
    stall, duration : float
        Length of the stall and of the run, in one unit.

    Returns
    -------
    ndarray of float64
        In the same unit; 0 where the floor says nothing.

    Examples
    --------
    >>> physics_floor([50, 75, 90, 99, 99.99], 100.0, 200.0).round(2).tolist()
    [0.0, 50.0, 80.0, 98.0, 99.98]
    """
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


def floor_test(histogram: Histogram, rate: float, duration: float, *, waited: bool = True) -> Evidence:
    """Test whether as many requests exceed half of the longest as its stall must have hit.

    Parameters
    ----------
    histogram : Histogram
        In ns.
    rate : float
        Requests per second of all connections together.
    duration : float
        Of the run, seconds.
    waited : bool
        Whether the load generator may have waited for replies; where it surely did not, as many slow requests as the
        stall must hit are enough, and they need not be spread as those of a single stall are.
    """
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
        if enough or _of_one_stall(histogram, rate, stall) or _stands_on_it(histogram, stall, duration):
            level = "honest"
    longest = format_duration(top)
    shown = f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"
    implied = (
        f"a stall of {longest} at {shown} requests per second implies {format_count(expected)} requests slower than half of it"
    )
    has = format_count(at_most) if surely == at_most else f"{format_count(surely)} to {format_count(at_most)}"
    were = "was" if has == "1" else "were"
    finding = f"{implied}; {has} {were} recorded ({p_words(p)})"
    return Evidence("lower bound", p, STRONG, finding, level, max(missing, 0.0) if level in ("weak", "strong") else 0.0)


def _of_one_stall(histogram: Histogram, rate: float, stall: float) -> bool:
    """Whether latencies fill each fifth of the longest but the lowest, with as many as one stall leaves there."""
    if not histogram.count or histogram.censored:
        return False
    edges = np.array(_PARTS) * stall * 1e9
    low, high = histogram.buckets.low(histogram.index), histogram.buckets.high(histogram.index)
    if (high[high > edges[0]] > _MOST * low[high > edges[0]]).any():  # it is not known where in it requests lie
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
    if not 2 <= shown.sum() <= _FEW_EDGES:  # with more of them their number in each part is known, which says more
        return False
    return bool((values[shown] >= _THERE * least[shown]).all() and (values[shown] <= _MOST * least[shown]).all())


def area_test(mean: float, top: float, count: int, rate: float, duration: float, *, waited: bool = True) -> Evidence:
    """Test whether the mean has room for the stall that the maximum shows: n · mean ≥ λ d² / 2.

    That it has says nothing where the load generator may have waited: N connections at full speed always take
    n · mean = N · T together, whatever they left out.

    Parameters
    ----------
    mean, top : float
        Mean and maximum, ns.
    count : int
    rate, duration : float
        Requests per second, and seconds.
    waited : bool
        Whether the load generator may have waited for replies.

    Examples
    --------
    >>> area_test(1e6, 6e9, 2800, 200.0, 20.0).level
    'strong'
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
    return Evidence("area", ratio, 0.25, finding, level, missing if level == "strong" else 0.0, p=False)


def seen_from(rate: float, connections: int = 1) -> float:
    """Return the shortest stall, in seconds, that the floor would have shown at the strong level.

    Examples
    --------
    >>> round(seen_from(100.0), 3)
    0.185
    """
    if not rate > 0:
        return float("inf")
    return 2.0 * max(poisson_mean(connections, STRONG), connections + LEAST, connections / _DEFICIT) / rate
