"""Percentiles of a histogram (which imports this module) as rows: values, bounds, support."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from latencykit._records import record
from latencykit._typing import AnyArray, Floats, Ints
from latencykit.core.buckets import EdgeBuckets
from latencykit.core.quantiles import distinct, interval_ends, is_resolved, ranks, surely_within
from latencykit.units import format_range, format_value

if TYPE_CHECKING:
    import pandas as pd

CHOSEN = 12
"""A tool that prints at most this many percentiles chose them; more are the rows of a spectrum."""

Cause = Literal[
    "", "few requests", "one slow period", "drift", "parts differ", "as stated", "timeouts",
    "above the last bucket",
]  # fmt: skip
"""Why a percentile is uncertain; empty where it is not."""


@record()
class Doubt:
    """A range of percentiles that a run does not support; it is open at its beginning."""

    first: float
    last: float
    cause: str  # see `Cause`


@record(kw_only=True)
class PercentileRow:
    """One percentile and how far it can be trusted."""

    # The confidence interval is joined with the bucket: NaN without a lower bound, infinite without
    # an upper one, and both NaN without an interval.
    low: float
    high: float
    supported: bool  # the run shows it plainly; else it stands in brackets
    cause: str = ""  # why not; see `Cause`
    percentile: float
    value: float
    # The source's resolution: the bucket, narrowed by reported values; infinite above in the
    # censored mass.
    bucket_low: float
    bucket_high: float
    resolved: bool  # these two are within a tenth of each other; else `value` is a range's end
    # As how many independent requests those above count, if times are known.
    events: int | None = None


_COLUMNS = (
    "percentile", "value", "low", "high", "bucket_low", "bucket_high", "resolved", "supported",
    "events",
)  # fmt: skip


def percentile_frame(rows: Iterable[PercentileRow]) -> pd.DataFrame:
    """Return percentiles as a table: one row per percentile, one column per field."""
    import pandas as pd

    return pd.DataFrame([vars(row) for row in rows], columns=_COLUMNS).set_index("percentile")


def values_at(histogram: Any, p: Floats) -> tuple[Floats, Ints, NDArray[np.bool_]]:
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
    below, edges = histogram.count, histogram.counted
    if histogram.censored:
        below = int(histogram.counts[edges.high <= histogram.censored_at].sum())
    # Censored values rank right above the first `below` values.
    counted = np.maximum(rank - histogram.censored, min(below, histogram.count))
    counted = np.maximum(np.where(rank > below, counted, rank), 1)
    position = np.searchsorted(histogram.cumulative, counted, "left")
    position = np.minimum(position, histogram.index.size - 1).astype(np.int64)
    values = np.where(p == 0, edges.low.min(), edges.high[position])
    if histogram.reported_percentiles[0]:
        floor, ceiling = _reported_around(histogram, p)
        values = np.clip(values, floor, np.maximum(ceiling, floor))
    if histogram.censored:
        values = np.where(rank > below, np.maximum(histogram.censored_at, values), values)
        # A tool may know the maximum of those above its last bucket.
        values = np.where(p == 100, np.maximum(values, histogram.max), values)
    return values, position, (rank > below) & (histogram.censored > 0)


def bounds_at(histogram: Any, p: Floats) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Return value, lower edge, upper edge and "this is only a lower bound" of each percentile."""
    # The edges are the bucket's, narrowed by the extremes and percentiles that the source reports;
    # both are the value of a reported percentile. The upper one is infinite in censored mass.
    values, position, open_above = values_at(histogram, p)
    if not histogram.index.size:
        return values, values, np.where(open_above, np.inf, values), open_above
    edges, raw = histogram.counted, np.zeros(0)
    low, high = edges.low[position], edges.high[position]
    if isinstance(histogram.buckets, EdgeBuckets):
        raw = histogram.buckets.low(histogram.index)
    if (raw[1:] < raw[:-1]).any():  # they overlap: take the lower edge of the rank, not the bucket
        order = np.argsort(raw, kind="stable")
        rank = np.minimum(ranks(p, histogram.count + histogram.censored), histogram.count)
        low = edges.low[order][np.searchsorted(np.cumsum(histogram.counts[order]), rank, "left")]
    if histogram.reported_percentiles[0]:
        floor, ceiling = _reported_around(histogram, p)
        # With a handful of values, a rank's bucket may lie above the percentile reported for it.
        low = np.where((low >= ceiling) & (low < high), floor, np.maximum(low, floor))
        high = np.minimum(high, ceiling)
    for name, at in (("min", 0.0), ("max", 100.0)):
        if name in histogram.reported_stats:
            low, high = (np.where(p == at, values, edge) for edge in (low, high))
    low, high = (np.where(open_above, edge, end) for edge, end in ((values, low), (np.inf, high)))
    return values, np.minimum(low, values), np.maximum(high, values), open_above


def rows_of(columns: Mapping[str, AnyArray]) -> list[PercentileRow]:
    """Return the columns that `columns_at` returns as rows."""
    lists = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [PercentileRow(**dict(zip(columns, row, strict=True))) for row in lists]


def columns_at(
    histogram: Any, p: Floats, confidence: float, doubts: Sequence[Doubt], *, bounded: bool = True
) -> dict[str, AnyArray]:
    """Return percentiles as a column for each field of `PercentileRow`."""
    # `doubts` are the ranges of percentiles that are not supported; intervals are those of
    # independent requests, and there are none where not `bounded`.
    values, bottoms, tops, open_above = bounds_at(histogram, p)
    low, high = np.full(p.shape, np.nan), np.full(p.shape, np.inf)
    if histogram.run.corrected in ("us", "tool"):  # ranks of corrected counts are invented
        high = np.full(p.shape, np.nan) if bounded else high
    elif histogram.count + histogram.censored and bounded:
        low, high = interval_ends(histogram.counted, p, confidence)
    cause = np.full(p.shape, "", object)
    for doubt in doubts:
        cause[(p > doubt.first) & (p <= doubt.last) & (p < 100)] = doubt.cause
    cause[open_above] = "timeouts" if histogram.run.timeouts else "above the last bucket"
    return {
        "percentile": p,
        "value": values,
        "low": np.minimum(low, bottoms),
        "high": np.where(open_above, np.inf, np.maximum(high, tops)),
        "bucket_low": bottoms,
        "bucket_high": tops,
        "resolved": is_resolved(bottoms, tops),
        "supported": cause == "",
        "events": np.full(p.shape, None),
        "cause": cause,
    }


def stated_range(histogram: Any) -> tuple[float, float]:
    """Return the lowest and the highest value that the source reports, percentiles included."""
    top = histogram.reported_percentiles[1][-1] if histogram.reported_percentiles[1] else -np.inf
    return histogram.reported_stats.get("min", -np.inf), max(
        histogram.reported_stats.get("max", np.inf), top
    )


def _reported_around(histogram: Any, p: Floats) -> tuple[Floats, Floats]:
    """Values reported for the next percentile at or below and at or above each, else infinite."""
    at, values = (np.asarray(side, np.float64) for side in histogram.reported_percentiles)
    before, after = np.searchsorted(at, p, "right") - 1, np.searchsorted(at, p, "left")
    floor = np.where(before >= 0, values[np.maximum(before, 0)], -np.inf)
    return floor, np.where(after < at.size, values[np.minimum(after, at.size - 1)], np.inf)


def highest_pinned_down(histogram: Any, limit: float) -> float:
    """Return the highest percentile up to `limit` known within a tenth, or 0."""
    if limit > 0:  # the buckets of most sources are narrow
        _, low, high, _ = bounds_at(histogram, np.array([limit]))
        if is_resolved(low, high)[0]:
            return limit
    reached = 100.0 * histogram.cumulative / max(histogram.count + histogram.censored, 1)
    ends = np.concatenate(([limit], reached, histogram.reported_percentiles[0]))
    ends = distinct(ends[(ends > 0) & (ends <= limit)])[::-1]
    _, low, high, _ = bounds_at(histogram, ends)
    return float(next(iter(ends[is_resolved(low, high)]), 0.0))


def statistic_text(histogram: Any, name: str) -> str:
    """Return ``min``, ``max``, ``mean`` or ``std`` as text; a range where it is not resolved."""
    show = partial(format_value, unit=histogram.unit)
    low, high = histogram.bounds(name)
    if name == "max" and histogram.censored:  # of some requests only a lower bound is known
        return f"≥ {show(max(histogram.max, histogram.censored_at))}"
    return (
        show(getattr(histogram, name)) if is_resolved(low, high) else format_range(low, high, show)
    )
