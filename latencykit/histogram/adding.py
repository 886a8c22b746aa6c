"""Adding histograms up: equal layouts add their counts, unlike ones meet in a layout that both fit into."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.buckets import HdrBuckets, coarser
from latencykit.errors import LimitError
from latencykit.histogram.noun import Histogram
from latencykit.run import merge_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["merge_histograms"]


def merge_histograms(parts: Sequence[Histogram]) -> Histogram:
    """Return the sum of histograms; unlike HDR layouts meet in the coarser of each dimension, and a note says so.

    Raises
    ------
    MixedInputsError
        Where units, measures or corrections differ.

    Examples
    --------
    >>> merge_histograms([Histogram.of([1, 2]), Histogram.of([3])]).count
    3
    """
    run = merge_runs([part.run.but(unit=part.unit) for part in parts])
    layout = parts[0].buckets
    if any(part.buckets != layout for part in parts[1:]):
        if all(isinstance(part.buckets, HdrBuckets) for part in parts):
            parts, note = _on_one_grid(parts)
            run = run.noting(note)
            layout = parts[0].buckets
        else:
            return replace(_edge_union(parts), run=run, **_censored(parts))
    index = np.unique(np.concatenate([part.index for part in parts]))
    counts = np.zeros(index.size, np.int64)
    for part in parts:
        np.add.at(counts, np.searchsorted(index, part.index), part.counts)
    if sum(part.count for part in parts) >= 1 << 63:
        raise LimitError("the sum of the counts does not fit in 63 bits")
    return Histogram(layout, index, counts, parts[0].unit, run, _told(parts), **_censored(parts))


def _told(parts: Sequence[Histogram]) -> dict[str, float]:
    """Extremes that every part states are stated by the sum, too."""
    told: dict[str, float] = {}
    for name, pick in (("min", min), ("max", max)):
        if all(name in part.told for part in parts):
            told[name] = pick(part.told[name] for part in parts)
    return told


def _censored(parts: Sequence[Histogram]) -> dict[str, Any]:
    return {
        "censored": sum(part.censored for part in parts),
        "censored_at": min(part.censored_at for part in parts),
    }


def _on_one_grid(parts: Sequence[Histogram]) -> tuple[list[Histogram], str]:
    layouts = [part.buckets for part in parts if isinstance(part.buckets, HdrBuckets)]
    grid = layouts[0]
    for layout in layouts[1:]:
        grid = coarser(grid, layout)
    width = 100.0 / (1 << grid.half_magnitude)
    note = f"layouts of {len(set(layouts))} kinds were merged into {grid.digits} digits: a bucket is up to {width:.2g} % wide"
    return [part.rebucket(grid) if part.buckets != grid else part for part in parts], note


def _edge_union(parts: Sequence[Histogram]) -> Histogram:
    """All buckets of all parts side by side, those of equal edges added up."""
    edges = np.concatenate([np.stack([part.buckets.high(part.index), part.buckets.low(part.index)], 1) for part in parts])
    unique, inverse = np.unique(edges, axis=0, return_inverse=True)
    counts = np.zeros(len(unique), np.int64)
    np.add.at(counts, inverse.reshape(-1), np.concatenate([part.counts for part in parts]))
    return Histogram.from_buckets(unique[:, 1], unique[:, 0], counts, parts[0].unit, told=_told(parts))
