"""Hedged requests: ask a second server when the first has not answered in time, and count what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Hedged", "hedged"]


@dataclass(frozen=True, eq=False)
class Hedged:
    """Latency with a hedge, and its price.

    Attributes
    ----------
    delay : float
        When the second request is sent, in the unit of the values.
    added_load : float
        Share of requests (0..1) that are sent twice.
    values : ndarray of float64, shape (m,)
        Ascending.
    survival : ndarray of float64, shape (m,)
        Probability of a latency above each value.
    """

    delay: float
    added_load: float
    values: Floats
    survival: Floats


def hedged(high: Floats, above: Floats, delay: float, shared: float = 0.0) -> Hedged:
    """Return the latency of the first answer of two, the second request being sent after `delay`.

    Parameters
    ----------
    high, above : ndarray of float64, shape (buckets,)
        Highest value of each bucket, ascending, and the survival function of one request.
    delay : float
        In the unit of the values; a usual choice is the p95.
    shared : float, default 0
        Share (0..1) of slow cases in which the second server is as slow as the first (a shared stall): there
        hedging gains nothing.

    Returns
    -------
    Hedged

    Notes
    -----
    The latency is min(X, d + Y), whose survival function is S(t) before d and S(t) S(t − d) from there on. Between two
    buckets the value above is taken.

    Examples
    --------
    >>> found = hedged(np.array([1.0, 10.0, 100.0]), np.array([0.1, 0.01, 0.0]), delay=10.0)
    >>> found.added_load, dict(zip(found.values.tolist(), found.survival.round(4).tolist()))[11.0]
    (0.01, 0.001)
    """
    if not delay >= 0:
        raise UsageError(f"a hedge cannot be sent {delay} after its request; the delay must be 0 or more")
    if not 0 <= shared <= 1:
        raise UsageError(f"the shared part of slowness must be between 0 and 1, not {shared}")
    values = np.unique(np.concatenate((high, high + delay, [delay])))
    first, second = _at(high, above, values), _at(high, above, values - delay)
    later = np.where(values < delay, 1.0, second)
    together = first * ((1 - shared) * later + shared)
    return Hedged(delay, float(_at(high, above, np.array([delay]))[0]), values, together)


def _at(high: Floats, above: Floats, values: Floats) -> Floats:
    """Survival at any value: that of the last bucket wholly at or below it."""
    return np.concatenate(([1.0], above))[np.searchsorted(high, values, "right")]
