"""When requests are due: ascending times in nanoseconds from the begin of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import UsageError
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["bursty", "fixed", "poisson", "ramp"]


def fixed(rate: float, duration: str | float) -> Floats:
    """Return arrivals at equal distances.

    Parameters
    ----------
    rate : float
        Requests per second.
    duration : str or float
        Length of the run: ``"20s"``, or seconds.

    Returns
    -------
    ndarray of float64, shape (n,)
        Nanoseconds; the first at 0, all before `duration`.

    Examples
    --------
    >>> fixed(rate=2, duration="2s").tolist()
    [0.0, 500000000.0, 1000000000.0, 1500000000.0]
    """
    span = _span(rate, duration)
    return np.asarray(np.arange(np.ceil(round(rate * span / 1e9, 6))) * (1e9 / rate), np.float64)


def poisson(rate: float, duration: str | float, seed: int = 0) -> Floats:
    """Return arrivals of independent users: a Poisson process of `rate` per second, ns; see `fixed`.

    Examples
    --------
    >>> poisson(rate=100, duration=10, seed=1).size
    1001
    """
    rng, span = np.random.default_rng(seed), _span(rate, duration)
    return np.sort(rng.uniform(0.0, span, rng.poisson(rate * span / 1e9)))


def bursty(rate: float, duration: str | float, on: str | float = 0.5, off: str | float = 1.5, seed: int = 0) -> Floats:
    """Return arrivals in bursts: a Poisson process that runs for a while and pauses for a while.

    Parameters
    ----------
    rate : float
        Requests per second on the long run; within a burst they come ``(on + off) / on`` times as fast.
    duration : str or float
    on, off : str or float
        Mean length of a burst and of the pause after it (both exponential), seconds.
    seed : int

    Returns
    -------
    ndarray of float64, shape (n,)
        Nanoseconds.

    Examples
    --------
    >>> 500 < bursty(rate=100, duration=20, seed=1).size < 4000
    True
    """
    rng, span = np.random.default_rng(seed), _span(rate, duration)
    busy, idle = parse_duration(on, "s"), parse_duration(off, "s")
    cycles = int(4 * span / (busy + idle)) + 16
    ends = np.cumsum(np.stack([rng.exponential(busy, cycles), rng.exponential(idle, cycles)], 1).reshape(-1))
    edges = np.concatenate(([0.0], ends))
    active = np.cumsum(np.concatenate(([0.0], np.diff(edges)[::2])))  # burst time passed before each burst
    size = rng.poisson(rate * (busy + idle) / busy * active[-1] / 1e9)
    within = np.sort(rng.uniform(0.0, active[-1], size))
    burst = np.searchsorted(active, within, "right") - 1
    arrivals = edges[::2][burst] + within - active[burst]
    return np.asarray(arrivals[arrivals < span])


def ramp(rate: float, to: float, duration: str | float, seed: int = 0) -> Floats:
    """Return arrivals whose rate grows (or falls) evenly from `rate` to `to` per second: a Poisson process, ns.

    Examples
    --------
    >>> t = ramp(10, 190, duration=20, seed=1)
    >>> 1800 < t.size < 2200, bool((t < 10e9).sum() < (t >= 10e9).sum())
    (True, True)
    """
    rng, span = np.random.default_rng(seed), _span(max(rate, to), duration)
    if min(rate, to) < 0:
        raise UsageError("rates must not be negative")
    size = rng.poisson((rate + to) / 2 * span / 1e9)
    share = np.sort(rng.uniform(0.0, 1.0, size))  # of all arrivals; its inverse is a quadratic
    if rate == to:
        return share * span
    root = np.sqrt(rate * rate + share * (to * to - rate * rate))
    return np.asarray(span * (root - rate) / (to - rate))


def _span(rate: float, duration: str | float) -> float:
    span = parse_duration(duration, "s")
    if not (rate > 0 and span > 0):
        raise UsageError(f"a rate and a duration must be above zero, not {rate} and {duration}")
    return span
