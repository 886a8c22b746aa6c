"""Percentiles of a histogram: the value, the edges between which it lies, and what supports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.buckets import EdgeBuckets
from latencykit.core.quantiles import (
    PercentileRow,
    distinct,
    is_resolved,
    percentile_table,
    ranks,
    surely_within,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit._typing import Floats, Ints
    from latencykit.core.histogram import Histogram


def values_at(histogram: Histogram, p: Floats) -> tuple[Floats, Ints, NDArray[np.bool_]]:
    """Return value, bucket position and "this is only a lower bound" of each percentile."""
    total = histogram.count + histogram.censored
    rank = ranks(p, total)
    if histogram.reported_percentiles[0]:  # a tool may report the value of the rank below
        at = np.asarray(histogram.reported_percentiles[0])
        rank = np.where(np.isin(p, at), np.maximum(surely_within(p, total), 1), rank)
        if histogram.censored:  # no percentile lies above a higher one that is reported
            lower = np.append(np.maximum(surely_within(at, total), 1), total)
            rank = np.minimum(rank, lower[np.searchsorted(at, p, "left")])
    if not histogram.index.size:
        bound = histogram.censored_at if histogram.censored else np.nan
        return np.full(p.shape, bound), np.zeros(p.shape, np.int64), rank > 0
    below = histogram.count
    if histogram.censored:
        highs = _within(histogram, histogram.buckets.high(histogram.index))
        below = int(histogram.counts[highs <= histogram.censored_at].sum())
    # Censored values rank right above the first `below` values.
    counted = np.maximum(rank - histogram.censored, min(below, histogram.count))
    counted = np.maximum(np.where(rank > below, counted, rank), 1)
    position = np.searchsorted(histogram.cumulative, counted, "left")
    position = np.minimum(position, histogram.index.size - 1).astype(np.int64)
    highest = histogram.buckets.high(histogram.index[position])
    values = _within(histogram, np.where(p == 0, least_of(histogram), highest))
    floor, ceiling = _reported_around(histogram, p)
    values = np.clip(values, floor, np.maximum(ceiling, floor))
    if histogram.censored:
        values = np.where(rank > below, np.maximum(histogram.censored_at, values), values)
    return values, position, (rank > below) & (histogram.censored > 0)


def brackets_at(
    histogram: Histogram, p: Floats
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Return value, lower edge, upper edge and "this is only a lower bound" of each percentile.

    The edges are the bucket's, narrowed by the extremes and percentiles that the source reports;
    both are the value of a reported percentile. The upper one is infinite in censored mass.
    """
    values, position, open_above = values_at(histogram, p)
    if not histogram.index.size:
        return values, values, np.where(open_above, np.inf, values), open_above
    floor, ceiling = _reported_around(histogram, p)
    edges = np.zeros(0)
    if isinstance(histogram.buckets, EdgeBuckets):
        edges = histogram.buckets.low(histogram.index)
    if (edges[1:] >= edges[:-1]).all():
        low = histogram.buckets.low(histogram.index[position])
    else:  # buckets overlap: take the lower edge of the rank, not of its bucket
        order = np.argsort(edges, kind="stable")
        rank = np.minimum(ranks(p, histogram.count + histogram.censored), histogram.count)
        low = edges[order][np.searchsorted(np.cumsum(histogram.counts[order]), rank, "left")]
    low = _within(histogram, low)
    high = _within(histogram, histogram.buckets.high(histogram.index[position]))
    # With a handful of values, the bucket of a rank may lie above the percentile reported for it.
    low = np.where((low >= ceiling) & (low < high), floor, np.maximum(low, floor))
    high = np.minimum(high, ceiling)
    for name, at in (("min", 0.0), ("max", 100.0)):
        if name in histogram.reported_stats:
            low, high = (np.where(p == at, values, edge) for edge in (low, high))
    low, high = (np.where(open_above, edge, end) for edge, end in ((values, low), (np.inf, high)))
    return values, np.minimum(low, values), np.maximum(high, values), open_above


def rows_at(
    histogram: Histogram,
    p: Floats,
    confidence: float,
    bounded: NDArray[np.bool_] | None = None,
) -> list[PercentileRow]:
    """Return the rows of percentiles; all, or those to be bounded, have an interval."""
    values, bottoms, tops, open_above = brackets_at(histogram, p)
    low, high = np.full(p.shape, np.nan), np.full(p.shape, np.inf)
    bounded = np.ones(p.shape, np.bool_) if bounded is None else bounded
    if histogram.count + histogram.censored and bounded.any():
        # Ranks of corrected counts are invented: they have no interval.
        corrected = histogram.run.corrected in ("us", "tool")
        table = percentile_table(histogram.counted, p[bounded], confidence, corrected=corrected)
        low[bounded], high[bounded] = table.low, table.high
    low = np.minimum(low, bottoms)
    high = np.where(open_above, np.inf, np.maximum(high, tops))
    supported = (p <= histogram.supported_limit(confidence=confidence)) & ~open_above
    columns = (p, values, low, high, bottoms, tops, is_resolved(bottoms, tops), supported)
    beyond = "timeouts" if histogram.run.timeouts else "above the last bucket"
    cause = np.where(open_above, beyond, np.where(supported, "", "few requests"))
    plain = (column.tolist() for column in columns)
    return [
        PercentileRow(*row) for row in zip(*plain, [None] * p.size, cause.tolist(), strict=True)
    ]


def stated_range(histogram: Histogram) -> tuple[float, float]:
    """Return the lowest and the highest value that the source reports, percentiles included."""
    top = histogram.reported_percentiles[1][-1] if histogram.reported_percentiles[1] else -np.inf
    return histogram.reported_stats.get("min", -np.inf), max(
        histogram.reported_stats.get("max", np.inf), top
    )


def least_of(histogram: Histogram) -> float:
    """Return the lowest edge; listed buckets may overlap, so it need not be the first."""
    candidates = (
        histogram.index if isinstance(histogram.buckets, EdgeBuckets) else histogram.index[:1]
    )
    return float(histogram.buckets.low(candidates).min())


def _within(histogram: Histogram, values: Floats) -> Floats:
    """Clip values to the lowest and the highest that the source reports."""
    least, most = stated_range(histogram)
    return np.minimum(np.maximum(values, least), most)


def _reported_around(histogram: Histogram, p: Floats) -> tuple[Floats, Floats]:
    """Values reported for the next percentile at or below and at or above each, else infinite."""
    at, values = (np.asarray(side, np.float64) for side in histogram.reported_percentiles)
    if not at.size:
        return np.full(p.shape, -np.inf), np.full(p.shape, np.inf)
    before, after = np.searchsorted(at, p, "right") - 1, np.searchsorted(at, p, "left")
    floor = np.where(before >= 0, values[np.maximum(before, 0)], -np.inf)
    return floor, np.where(after < at.size, values[np.minimum(after, at.size - 1)], np.inf)


def highest_pinned_down(histogram: Histogram, limit: float) -> float:
    """Return the highest percentile up to `limit` known within a tenth, or 0."""
    if limit > 0:  # the buckets of most sources are narrow
        _, low, high, _ = brackets_at(histogram, np.array([limit]))
        if is_resolved(low, high)[0]:
            return limit
    reached = 100.0 * histogram.cumulative / max(histogram.count + histogram.censored, 1)
    ends = np.concatenate(([limit], reached, histogram.reported_percentiles[0]))
    ends = distinct(ends[(ends > 0) & (ends <= limit)])[::-1]
    _, low, high, _ = brackets_at(histogram, ends)
    return float(next(iter(ends[is_resolved(low, high)]), 0.0))
