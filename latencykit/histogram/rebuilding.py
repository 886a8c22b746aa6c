"""A histogram from printed percentiles, whose buckets reach from one printed value to the next; and hdrhistogram's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.buckets import HdrBuckets
from latencykit.errors import MissingPackageError, NotHeldError, UsageError
from latencykit.stats.quantiles import surely_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.histogram.noun import Histogram

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["counts_of_hdrh", "percentile_buckets", "to_hdrh"]


def percentile_buckets(
    percentiles: Sequence[float], values: Sequence[float], count: int, known: dict[str, Any]
) -> tuple[Floats, Floats, Ints, dict[str, Any]]:
    """Return lower edges, upper edges and counts, and what is known besides; see `Histogram.from_percentiles`."""
    told = dict(known.get("told", {}))
    p, v = np.asarray(percentiles, np.float64), np.asarray(values, np.float64)
    if "max" in told and (not p.size or p[-1] < 100):
        p, v = np.append(p, 100.0), np.append(v, max(told["max"], v[-1] if v.size else 0.0))
    if not p.size or count <= 0:
        raise NotHeldError("a histogram cannot be rebuilt without a count and at least one percentile")
    order = np.argsort(p, kind="stable")
    p, v = p[order], np.maximum.accumulate(v[order])
    if "min" in told and told["min"] > v[0]:  # as much as a percentile below the one before it
        known["told"] = told = {**told, "min": float(v[0])}
    known["printed"] = (tuple(p.tolist()), tuple(v.tolist()))
    cumulative = np.minimum(surely_within(p, count + int(known.get("censored", 0))), count)
    if cumulative[-1] < count:  # nothing is known of the values above the last row but that they lie there
        known["censored"] = int(known.get("censored", 0)) + count - int(cumulative[-1])
        known["censored_at"] = min(float(v[-1]), float(known.get("censored_at", np.inf)))
    lows = np.concatenate(([min(told.get("min", 0.0), v[0])], v[:-1]))
    return lows, v, np.diff(cumulative, prepend=0), known


def counts_of_hdrh(other: Any) -> tuple[HdrBuckets, Ints, Ints]:
    """Return layout, indices and counts of an ``hdrh.histogram.HdrHistogram``."""
    counts = np.fromiter((other.counts[i] for i in range(other.counts_len)), np.int64, other.counts_len)
    index = np.flatnonzero(counts)
    return HdrBuckets(other.significant_figures, other.lowest_trackable_value), index, counts[index]


def to_hdrh(histogram: Histogram) -> Any:
    """Return an ``hdrh.histogram.HdrHistogram`` with the same buckets and counts."""
    try:
        from hdrh.histogram import HdrHistogram
    except ImportError as missing:
        raise MissingPackageError("hdrhistogram", "to_hdrh()", "test") from missing
    layout = histogram.buckets
    if not isinstance(layout, HdrBuckets) or layout.scale != 1.0:
        raise UsageError("only an HDR histogram of whole values has a counterpart in the hdrhistogram package")
    top = int(layout.high_steps(histogram.index[-1])) if histogram.index.size else 2 * layout.lowest
    other = HdrHistogram(layout.lowest, max(top, 2 * layout.lowest), layout.digits)
    for value, count in zip(layout.low_steps(histogram.index).tolist(), histogram.counts.tolist(), strict=True):
        other.record_value(value, count)
    return other
