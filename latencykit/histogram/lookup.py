"""From a percentile to a value: the bucket that reaches its rank, what a tool printed, and where censored values stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.buckets import EdgeBuckets
from latencykit.stats.quantiles import ranks, surely_within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.histogram.noun import Histogram

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["brackets_at", "least_of", "stated_range", "values_at"]


def values_at(histogram: Histogram, p: Floats) -> tuple[Floats, Ints, NDArray[np.bool_]]:
    """Value, bucket position and "this is only a lower bound" of each percentile."""
    total = histogram.count + histogram.censored
    wanted = ranks(p, total)
    if histogram.printed[0]:  # a tool may print the value of the rank below
        wanted = np.where(np.isin(p, histogram.printed[0]), np.maximum(surely_within(p, total), 1), wanted)
    if not histogram.index.size:
        return (
            np.full(p.shape, histogram.censored_at if histogram.censored else np.nan),
            np.zeros(p.shape, np.int64),
            wanted > 0,
        )
    below = histogram.count
    if histogram.censored:
        highs = _within(histogram, histogram.buckets.high(histogram.index))
        below = int(histogram.counts[highs <= histogram.censored_at].sum())
    position, bounded = _positions(histogram, wanted, below)
    values = np.where(p == 0, least_of(histogram), histogram.buckets.high(histogram.index[position]))
    values = _as_printed(histogram, p, _within(histogram, values))
    if histogram.censored:
        values = np.where(wanted > below, np.maximum(histogram.censored_at, values), values)
    return values, position, bounded


def brackets_at(histogram: Histogram, p: Floats) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Value of each percentile, the edges that the source pins it down between, and "this is only a lower bound".

    The edges are the bucket's, cut at the extremes and percentiles that the source states: both are the value where it
    states that very percentile. The upper one is infinite in censored mass.
    """
    values, position, open_above = values_at(histogram, p)
    if not histogram.index.size:
        return values, values, np.where(open_above, np.inf, values), open_above
    floor, ceiling = _printed_around(histogram, p)
    low = _within(histogram, _lowest(histogram, p, position))
    high = _within(histogram, histogram.buckets.high(histogram.index[position]))
    # Of a handful of values, the bucket of a rank may lie above a percentile that the tool prints for it.
    low = np.where((low >= ceiling) & (low < high), floor, np.maximum(low, floor))
    high = np.minimum(high, ceiling)
    for name, at in (("min", 0.0), ("max", 100.0)):
        if name in histogram.told:
            low, high = (np.where(p == at, values, edge) for edge in (low, high))
    low, high = (np.where(open_above, edge, end) for edge, end in ((values, low), (np.inf, high)))
    return values, np.minimum(low, values), np.maximum(high, values), open_above


def _lowest(histogram: Histogram, p: Floats, position: Ints) -> Floats:
    """The least that each percentile can be: where buckets overlap, the lower edge of its rank, not of its bucket."""
    edges = histogram.buckets.low(histogram.index)
    if (np.diff(edges) >= 0).all():
        return edges[position]
    order = np.argsort(edges, kind="stable")
    rank = np.minimum(ranks(p, histogram.count + histogram.censored), histogram.count)
    found = np.searchsorted(np.cumsum(histogram.counts[order]), rank, "left")
    return np.asarray(edges[order][found])


def stated_range(histogram: Histogram) -> tuple[float, float]:
    """Return the lowest and the highest value that the source states; a percentile that it prints may lie higher."""
    top = histogram.printed[1][-1] if histogram.printed[1] else -np.inf
    return histogram.told.get("min", -np.inf), max(histogram.told.get("max", np.inf), top)


def least_of(histogram: Histogram) -> float:
    """Return the lowest edge of all buckets; listed ones may overlap, so that it need not be the first one's."""
    candidates = histogram.index if isinstance(histogram.buckets, EdgeBuckets) else histogram.index[:1]
    return float(histogram.buckets.low(candidates).min())


def _within(histogram: Histogram, values: Floats) -> Floats:
    """Values held between the lowest and the highest that the source states."""
    least, most = stated_range(histogram)
    return np.minimum(np.maximum(values, least), most)


def _positions(histogram: Histogram, wanted: Ints, below: int) -> tuple[Ints, NDArray[np.bool_]]:
    """Bucket position of each rank when the censored values stand right above the first `below` values."""
    own = np.where(wanted > below, np.maximum(wanted - histogram.censored, min(below, histogram.count)), wanted)
    position = np.searchsorted(histogram.cumulative, np.maximum(own, 1), "left")
    return np.minimum(position, histogram.index.size - 1).astype(np.int64), (wanted > below) & (histogram.censored > 0)


def _as_printed(histogram: Histogram, p: Floats, values: Floats) -> Floats:
    """Hold each value between the printed rows around it."""
    floor, ceiling = _printed_around(histogram, p)
    return np.clip(values, floor, np.maximum(ceiling, floor))


def _printed_around(histogram: Histogram, p: Floats) -> tuple[Floats, Floats]:
    """What the tool printed for the percentiles at or below and at or above each; infinite where nothing."""
    at, printed = (np.asarray(side, np.float64) for side in histogram.printed)
    if not at.size:
        return np.full(p.shape, -np.inf), np.full(p.shape, np.inf)
    before, after = np.searchsorted(at, p, "right") - 1, np.searchsorted(at, p, "left")
    floor = np.where(before >= 0, printed[np.maximum(before, 0)], -np.inf)
    return floor, np.where(after < at.size, printed[np.minimum(after, at.size - 1)], np.inf)
