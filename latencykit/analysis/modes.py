"""The modes of a distribution: separate groups of values, such as hits and misses of a cache.

On the logarithm of the value, bins of one width are cut at each valley in which fewer values were
counted than its lower side implies: half as many at most, by almost five standard errors of the
difference of two Poisson counts. That is asked at four widths, for a mode may be narrow or wide,
and the width that finds the most modes has the say. A clock's steps are not modes: each bin has at
least six of the gaps that are usual around it, and of its buckets. Where times are known, most
parts of the run have values of each mode: a latency that drifts, or changes for good, has one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from latencykit._arrays import as_positions
from latencykit._typing import Floats, Ints
from latencykit.core.quantiles import is_resolved


class Mode(NamedTuple):
    """A group of values: their median, and the share of all values that belong to it."""

    value: float
    share: float


class _Rule(NamedTuple):
    """Chosen by the worlds of tests/analysis/test_findings.py."""

    widths: tuple[float, ...] = (0.04, 0.08, 0.16, 0.32)  # of bins, in the logarithm of the value
    errors: float = 4.75  # standard errors that a valley must lack
    valley: float = 2.0  # times as many values at the lower side of a valley: no ripple of bins
    least: float = 0.01  # share of all values in a mode: fewer are outliers
    gaps: float = 6.0  # usual gaps between neighbouring values in a bin: a clock's steps
    window: int = 9  # gaps around a value, of which the third smallest is usual
    expected: float = 4.0  # values of a mode in a part of the run
    together: float = 0.75  # of the parts of the run, which have values of both sides of a valley


_RULE = _Rule()


def find_modes(histogram: Any, evidence: Any = None) -> list[Mode]:
    """Return the modes from the lowest to the highest; none where buckets are too wide to tell.

    Shares of the values above zero add up to 1. If the `evidence` of the same data has times, modes
    are those of most parts of the run.

    >>> from latencykit.core.histogram import Histogram
    >>> modes = find_modes(Histogram.of([1] * 900 + [20] * 100))
    >>> [(round(mode.value), mode.share) for mode in modes]
    [(1, 0.9), (20, 0.1)]
    """
    low, high = (part(histogram.index) for part in (histogram.buckets.low, histogram.buckets.high))
    positive = high > 0
    low, high = low[positive], high[positive]
    counts = histogram.counts[positive] / histogram.counted.repeats  # those counted by themselves
    total = float(counts.sum())
    if not total or counts[~is_resolved(low, high)].sum() > _RULE.least * total:
        return []
    middle = (low + high) / 2.0
    upto = np.concatenate(([0.0], np.cumsum(counts)))
    gaps = np.pad(np.diff(middle, prepend=0.0), _RULE.window // 2, mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(gaps, _RULE.window)
    usual = _RULE.gaps * np.maximum(np.partition(around, 2, axis=1)[:, 2], high - low)
    best: list[tuple[int, int]] = []
    for width in _RULE.widths:
        # Bins of one width on a logarithmic axis, or of some usual gaps, or some buckets.
        steps = [max(middle[0] * math.exp(-width / 2), middle[0] - usual[0] / 2)]
        while steps[-1] <= middle[-1]:
            at = min(int(np.searchsorted(middle, steps[-1])), middle.size - 1)
            steps.append(steps[-1] + max(steps[-1] * math.expm1(width), usual[at]))
        edges = np.array(steps)
        cuts = np.searchsorted(middle, edges)
        found = list(_split(np.diff(upto[cuts]), np.diff(np.log(edges)), total))
        if len(found) > len(best):
            best = [(int(cuts[first]), int(cuts[last])) for first, last in found]
    table: Any = getattr(evidence, "table", None)
    for _, last in best[:-1] if table is not None else ():
        # Most parts of the run have values of both sides of the valley.
        above = table[:, evidence.value >= middle[last]].sum(axis=1)
        sides = np.stack((above, table.sum(axis=1) - above))
        merged = math.ceil(_RULE.expected * len(above) / max(float(sides.sum(axis=1).min()), 1.0))
        parts = np.add.reduceat(sides, as_positions(np.arange(0, len(above), merged)), axis=1)
        if (parts > 0).all(axis=0).mean() < _RULE.together:
            best = [(best[0][0], best[-1][1])]
            break
    modes = []
    for first, last in best:
        half = (upto[first] + upto[last]) / 2.0
        at = middle[min(int(np.searchsorted(upto, half, "right")) - 1, last - 1)]
        modes.append(Mode(float(at), float((upto[last] - upto[first]) / total)))
    return modes


def _split(
    counts: Floats, width: Floats, total: float, start: int = 0
) -> Iterator[tuple[int, int]]:
    """Yield the bins of each mode: the first, and the one behind the last."""
    height, upto = counts / width, np.cumsum(counts)
    (left, at_left), (right, at_right) = _highest(height), _highest(height[::-1])
    right, at_right = right[::-1], counts.size - 1 - at_right[::-1]
    # The lower side was counted, too, in a bin that may be narrower than the valley.
    narrower = np.minimum(width, width[np.where(left <= right, at_left, at_right)])
    implied = np.minimum(left, right) * narrower
    errors = (implied - counts) / np.sqrt(implied + counts + 1e-9)
    valley = (implied >= _RULE.valley * counts) & (errors >= _RULE.errors)
    valley &= np.minimum(upto, upto[-1] - upto) >= _RULE.least * total
    if not valley.any():
        yield start, start + counts.size
        return
    cut = int(np.argmax(np.where(valley, errors, -1.0))) + 1
    yield from _split(counts[:cut], width[:cut], total, start)
    yield from _split(counts[cut:], width[cut:], total, start + cut)


def _highest(height: Floats) -> tuple[Floats, Ints]:
    """Return the highest so far, and where that is."""
    highest = np.maximum.accumulate(height)
    return highest, np.maximum.accumulate(np.where(height == highest, np.arange(height.size), 0))
