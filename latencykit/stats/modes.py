"""Percentiles that fall between two modes: there they jump, and no interval helps.

If 1 % of the requests take a slow path, p99 lies on the brink: 1.8 ms in one run, 44.6 ms in the next, and nothing has
changed. What can be compared are the weight of the slow mode and where it lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.stats.quantiles import rank_interval, share_interval

if TYPE_CHECKING:
    from latencykit.stats.counted import Counted

__all__ = ["Gap", "gap_at"]

_WIDE = 2.0  # a gap doubles the value
_FEWEST = 8  # requests beyond it: fewer are the loose end of any heavy tail
_NEAR = 1.5  # how far the tail's share may be from the slow mode's weight


@dataclass(frozen=True)
class Gap:
    """An empty stretch between two modes, at a percentile.

    Attributes
    ----------
    below, above : float
        Where the fast mode ends and the slow one begins.
    weight, weight_low, weight_high : float
        Share (0..1) of requests in the slow mode, and its 95 % interval.
    slow_median : float
        Median of the slow mode.
    percentile : float
        The percentile that lies on the brink.
    """

    below: float
    above: float
    weight: float
    weight_low: float
    weight_high: float
    slow_median: float
    percentile: float

    @property
    def words(self) -> str:
        """One sentence."""
        return (
            f"p{self.percentile:g} lies between two modes and jumps from run to run; compare the slow mode instead: "
            f"{100 * self.weight:.3g} % of requests ({100 * self.weight_low:.3g} to {100 * self.weight_high:.3g} %)"
        )


def gap_at(counted: Counted, percentile: float) -> Gap | None:
    """Return the gap between two modes that a percentile falls into, or None.

    Parameters
    ----------
    counted : Counted
    percentile : float
        In 0..100.

    Notes
    -----
    A gap is an empty stretch across which the value at least doubles, with at least eight requests on either side,
    wider than any within the slow mode; the percentile falls into it if the slow mode's weight is within the
    percentile's rank interval, or within half again of its tail.

    Examples
    --------
    >>> from latencykit.stats.counted import Counted
    >>> rng = np.random.default_rng(1)
    >>> counted = Counted.of(np.r_[rng.normal(1.5, 0.1, 9900), rng.normal(45, 1, 100)])
    >>> gap_at(counted, 99).weight, gap_at(counted, 50)
    (0.01, None)
    """
    if not 0 < percentile < 100 or not counted.count:
        return None
    held = counted.occupied()
    total, running = held.total, held.cumulative
    beyond = total - running[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        jump = held.low[1:] / held.high[:-1]
    share, tail = beyond / total, 1 - percentile / 100
    low, high = (int(end[0]) for end in rank_interval(total, [percentile]))
    brink = ((running[:-1] >= low) & (running[:-1] <= high)) | ((share <= tail * _NEAR) & (share >= tail / _NEAR))
    found = np.flatnonzero(brink & (jump >= _WIDE) & (beyond >= _FEWEST) & (running[:-1] >= _FEWEST))
    found = found[[bool((jump[k] > jump[k + 1 :]).all()) for k in found]]
    if not found.size:
        return None
    at = int(found[np.argmax(jump[found])])
    bounds = share_interval(int(beyond[at]), total)
    middle = int(np.searchsorted(running, running[at] + (held.count - running[at] + 1) // 2))
    return Gap(
        float(held.high[at]),
        float(held.low[at + 1]),
        float(share[at]),
        bounds[0],
        bounds[1],
        float(held.high[min(middle, running.size - 1)]),
        percentile,
    )
