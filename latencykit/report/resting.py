"""What the tail of a series rests on: many events, or one stall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.stats import events as stats
from latencykit.stats.events import events_above, tail_counts, tail_shares

if TYPE_CHECKING:
    from latencykit.report.slots import Slots
    from latencykit.stats.events import Events

__all__ = ["resting", "solid_up_to"]


def resting(slots: Slots, percentiles: list[float]) -> list[Events]:
    """Return what lies above each percentile, at the page's resolution."""
    total = np.bincount(slots.index, slots.counts, slots.high.size).astype(np.int64)
    position, share = tail_shares(total, percentiles)
    tail = tail_counts(slots.indptr, slots.index, slots.counts, position, share)
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
    return stats.solid_up_to(lambda percentiles: resting(slots, percentiles), limit)
