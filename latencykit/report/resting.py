"""What the tail of a series rests on: many events, or one stall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.stats.events import events_above, tail_counts, tail_shares

if TYPE_CHECKING:
    from latencykit.report.slots import Slots
    from latencykit.stats.events import Events

__all__ = ["resting", "solid_up_to"]

_STEPS = 8
"""So many percentiles a nine are tried."""


def resting(slots: Slots, percentiles: list[float]) -> list[Events]:
    """Return what lies above each percentile, at the page's resolution."""
    total = np.bincount(slots.index, slots.counts, slots.high.size).astype(np.int64)
    position, share = tail_shares(total, percentiles)
    tail = tail_counts(slots.indptr, slots.high[slots.index], slots.counts, slots.high[position], share)
    count = np.diff(np.concatenate(([0], np.cumsum(slots.counts)))[slots.indptr])
    return events_above(percentiles, tail, count, slots.start, slots.end - slots.start, slots.max / 1e9)


def solid_up_to(slots: Slots, limit: float) -> tuple[float, str]:
    """Return the percentile up to which enough events bear the curve, and what it rests on beyond; `limit` and ``""`` if all do.

    Parameters
    ----------
    slots : Slots
    limit : float
        The highest percentile that the number of requests supports.
    """
    last = -np.log10(1 - limit / 100)
    percentiles = [p for p in (100 * (1 - 10.0 ** -(k / _STEPS)) for k in range(2, int(last * _STEPS) + 1)) if p < limit]
    found = resting(slots, percentiles) if percentiles else []
    weak = next((k for k in range(len(found)) if not any(one.supports() for one in found[k:])), len(found))
    if weak == len(found):
        return limit, ""
    first = found[weak]
    stalls = first.stalls if first.stall_share >= 0.5 else 0
    words = (
        f"{stalls} stall{'' if stalls == 1 else 's'}"
        if stalls
        else f"{max(1, first.count)} event{'' if first.count <= 1 else 's'}"
    )
    return percentiles[weak], words
