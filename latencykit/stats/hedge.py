"""Hedged requests: ask a second server when the first has not answered in time, and count what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import UsageError
from latencykit.stats.fanout import quorum, slowest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Hedged", "hedged", "hedged_by_interval"]

_CELLS = 400_000  # intervals × values held at once


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


def hedged_by_interval(
    indptr: Ints, index: Ints, counts: Ints, high: Floats, delay: float, n: int, k: int | None = None
) -> tuple[Floats, Floats]:
    """Return how slow the slowest of `n` hedged calls is that fall into one interval, added up over the intervals.

    Parameters
    ----------
    indptr : ndarray of int64, shape (rows + 1,)
    index, counts : ndarray of int64, shape (nonzero,)
        Ascending positions in `high` within a row, and their counts.
    high : ndarray of float64, shape (buckets,)
    delay : float
        In the unit of `high`.
    n : int
    k : int, optional
        Wait for the k fastest of n only.

    Returns
    -------
    values, survival : ndarray of float64, shape (m,)
        Each interval weighs as much as it holds requests: divide by their number. In a stall both requests of a pair
        are slow, which is what defeats a hedge.

    Examples
    --------
    >>> values, above = hedged_by_interval(np.array([0, 1]), np.array([1]), np.array([4]), np.array([1.0, 9.0]), 1.0, 10)
    >>> dict(zip(values.tolist(), above.tolist()))
    {1.0: 4.0, 2.0: 4.0, 9.0: 0.0, 10.0: 0.0}
    """
    values = np.unique(np.concatenate((high, high + delay, [delay])))
    now, later = (np.searchsorted(high, at, "right") for at in (values, values - delay))
    total, rows = np.zeros(values.size), indptr.size - 1
    for first in range(0, rows, step := max(1, _CELLS // values.size)):
        last = min(rows, first + step)
        held = slice(int(indptr[first]), int(indptr[last]))
        row = np.repeat(np.arange(last - first), np.diff(indptr[first : last + 1]))
        flat = np.bincount(row * high.size + index[held], counts[held], (last - first) * high.size)
        table = flat.reshape(last - first, high.size)
        sizes = table.sum(axis=1)
        table, sizes = table[sizes > 0], sizes[sizes > 0]
        above = np.ones((sizes.size, high.size + 1))
        above[:, 1:] = np.maximum(1.0 - np.cumsum(table, axis=1) / sizes[:, None], 0.0)
        above[:, -1] = 0.0
        pair = above[:, now] * np.where(values < delay, 1.0, above[:, later])
        total += sizes @ (slowest(pair, n) if k is None else quorum(pair, k, n))
    return values, total


def _at(high: Floats, above: Floats, values: Floats) -> Floats:
    """Survival at any value: that of the last bucket wholly at or below it."""
    return np.concatenate(([1.0], above))[np.searchsorted(high, values, "right")]
