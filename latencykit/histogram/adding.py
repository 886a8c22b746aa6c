"""Adding histograms up: equal layouts add their counts, unlike ones are added in the finest steps of all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.buckets import HdrBuckets
from latencykit.errors import LimitError
from latencykit.histogram.noun import Histogram
from latencykit.layouts import COST, CellBuckets, add_up, cost, grid_of, is_spread, widest
from latencykit.run import merge_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.buckets import Buckets
    from latencykit.run import Run

    Ints = NDArray[np.int64]

__all__ = ["merge_histograms", "reported"]


def merge_histograms(parts: Sequence[Histogram]) -> Histogram:
    """Return the sum of histograms; unlike HDR layouts are added in the finest steps and the fewest digits.

    A note says what that costs, if it costs anything.

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
    if sum(part.count for part in parts) >= 1 << 63:
        raise LimitError("the sum of the counts does not fit in 63 bits")
    layout = parts[0].buckets
    if any(part.buckets != layout for part in parts[1:]):
        if not all(isinstance(part.buckets, HdrBuckets | CellBuckets) for part in parts):
            return replace(_edge_union(parts), run=run, **_censored(parts))
        layout, index, counts = add_up([(part.buckets, part.index, part.counts) for part in parts])
        run = _noted(run, parts, layout, index)
    else:
        index = np.unique(np.concatenate([part.index for part in parts]))
        counts = np.zeros(index.size, np.int64)
        for part in parts:
            np.add.at(counts, np.searchsorted(index, part.index), part.counts)
    return Histogram(layout, index, counts, parts[0].unit, run, _told(parts), **_censored(parts))


def _noted(run: Run, parts: Sequence[Histogram], layout: Buckets, index: Ints) -> Run:
    """Say what the sum of unlike layouts costs; what earlier sums of the same counts cost is part of it."""
    grid = grid_of(layout)
    spread = [part.buckets for part in parts if is_spread((part.buckets, part.index, part.counts))]
    digits = sorted({grid_of(one).digits for one in spread} | {grid.digits})
    before = [note for note in run.notes if note.startswith(COST)]
    run = run.but(notes=tuple(note for note in run.notes if not note.startswith(COST)))
    overlap = isinstance(layout, CellBuckets) and layout.overlap
    if len(digits) == 1 and not overlap and not before:
        return run
    (width, low, high), common = widest(layout, index), 1 / (1 << grid.half_magnitude)
    return run.noting(cost(max(width, common), low, high if width > common else 0.0, parts[0].unit, digits))


def reported(histogram: Histogram) -> Histogram:
    """Return the sum of a whole log or of files as it is, and report what it costs; see `latencykit.run.reporting`."""
    histogram.run.report(*(note for note in histogram.run.notes if note.startswith(COST)))
    return histogram


def _told(parts: Sequence[Histogram]) -> dict[str, float]:
    """What every part states is stated of the sum, too: extremes, and the mean and the deviation of all."""
    told: dict[str, float] = {}
    for name, pick in (("min", min), ("max", max)):
        if all(name in part.told for part in parts):
            told[name] = pick(part.told[name] for part in parts)
    sizes = np.array([part.requests for part in parts], np.float64)
    if sizes.sum() > 0 and all("mean" in part.told for part in parts):
        means = np.array([part.told["mean"] for part in parts])
        told["mean"] = float(np.average(means, weights=sizes))
        if all("std" in part.told for part in parts):
            squares = np.array([part.told["std"] for part in parts]) ** 2 + (means - told["mean"]) ** 2
            told["std"] = float(np.sqrt(np.average(squares, weights=sizes)))
    return told


def _censored(parts: Sequence[Histogram]) -> dict[str, Any]:
    return {
        "censored": sum(part.censored for part in parts),
        "censored_at": min(part.censored_at for part in parts),
    }


def _edge_union(parts: Sequence[Histogram]) -> Histogram:
    """All buckets of all parts side by side, those of equal edges added up."""
    edges = np.concatenate([np.stack([part.buckets.high(part.index), part.buckets.low(part.index)], 1) for part in parts])
    unique, inverse = np.unique(edges, axis=0, return_inverse=True)
    counts = np.zeros(len(unique), np.int64)
    np.add.at(counts, inverse.reshape(-1), np.concatenate([part.counts for part in parts]))
    return Histogram.from_buckets(unique[:, 1], unique[:, 0], counts, parts[0].unit, told=_told(parts))
