"""Latency against load: the most that a system carries within its SLO, and what must not be read from a curve.

Curves of load end where the measurement ended. Nothing here reaches beyond: a system that met its SLO at every load
measured has a capacity of *at least* the highest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

__all__ = ["Capacity", "Machines", "capacity", "machines_needed", "mm1_capacity", "saturated"]


@dataclass(frozen=True)
class Capacity:
    """The largest load that meets a limit.

    Attributes
    ----------
    rate : float
        Estimate: where the rising curve through the measured loads crosses the limit; the highest load that passed
        where none failed; NaN where it begins beyond the limit.
    low, high : float
        The highest load that surely passed (0 where none did), and the lowest above it that surely failed (infinite
        where none did).
    reason : str
        What the reader has to know; ``""`` where the limit was crossed.
    """

    rate: float
    low: float
    high: float
    reason: str = ""


def capacity(
    rate: ArrayLike,
    value: ArrayLike,
    limit: float,
    high: ArrayLike | None = None,
    saturated: ArrayLike | None = None,
    low: ArrayLike | None = None,
) -> Capacity:
    """Return the largest load at which a latency stays within a limit.

    Parameters
    ----------
    rate : array_like of float, shape (runs,)
        Load of each run, in requests per second; in any order, repeated loads being averaged.
    value : array_like of float, shape (runs,)
        The limited latency.
    limit : float
        In the unit of `value`.
    high : array_like of float, shape (runs,), optional
        Upper end of each value's confidence interval, infinite where it is open: a load passes only if that is within
        the limit. By default the value itself.
    saturated : array_like of bool, shape (runs,), optional
        Runs that did not carry the load that was offered: they fail.
    low : array_like of float, shape (runs,), optional
        Lower end of each value's confidence interval: a load fails only if that is beyond the limit. By default the
        value itself.

    Returns
    -------
    Capacity

    Notes
    -----
    Latency rises with load; what falls is noise, so the logarithms of the values are pooled to a rising curve
    (isotonic regression). Between the last load on it within the limit and the first beyond, the reciprocal of
    the latency is taken as a straight line: that is what a queue near its pole does, exactly so for M/M/1.
    Loads that neither pass nor fail for sure lie inside the bracket, and so do all loads between one that fails and a
    higher one that passes.

    Examples
    --------
    >>> found = capacity([100, 200, 300], [10.0, 12.0, 40.0], 20.0)
    >>> round(found.rate), found.low, found.high
    (257, 200.0, 300.0)
    """
    uppers, lowers = (value if part is None else part for part in (high, low))
    loads, values, passes, fails = _sorted(rate, value, limit, uppers, lowers, saturated)
    if not (limit > 0 and (values > 0).all()):
        raise UsageError("a capacity needs latencies and a limit above 0")
    failed, passed = np.flatnonzero(fails), np.flatnonzero(passes)
    below = passed[passed < failed[0]] if failed.size else passed
    above = failed[failed > passed[-1]] if passed.size else failed
    bottom = float(loads[below[-1]]) if below.size else 0.0
    top = float(loads[above[0]]) if above.size else math.inf
    fitted = _rising(values)
    beyond = np.flatnonzero(fitted > limit)
    if beyond.size and not beyond[0]:
        why = "the limit was not surely met at any load measured; measure lower ones"
        return Capacity(bottom or math.nan, bottom, top, why)
    if not beyond.size:
        estimate = float(loads[-1])
    else:
        start, end = float(loads[beyond[0] - 1]), float(loads[beyond[0]])
        estimate = start + _crossing(1 / fitted[beyond[0] - 1], 1 / fitted[beyond[0]], 1 / limit) * (end - start)
    estimate = float(min(max(estimate, bottom), top))
    if not bottom:
        return Capacity(estimate, 0.0, top, "the limit was not surely met at any load measured; measure lower ones, or longer")
    if math.isinf(top) and bottom == loads[-1]:
        why = "the limit was met at every load measured; the capacity is at least the highest"
        return Capacity(bottom, bottom, math.inf, why)
    if math.isinf(top):
        return Capacity(estimate, bottom, math.inf, "no load measured surely misses the limit; measure higher ones, or longer")
    undecided = int((~passes & ~fails & (loads > bottom) & (loads < top)).sum())
    reason = f"{undecided} load{'s' if undecided > 1 else ''} between them cannot be decided" if undecided else ""
    return Capacity(estimate, bottom, top, reason)


def _sorted(
    rate: ArrayLike, value: ArrayLike, limit: float, high: ArrayLike, low: ArrayLike, lost: ArrayLike | None
) -> tuple[Floats, Floats, Flags, Flags]:
    """Ascending loads, each once, with the mean value, and which of them surely pass and fail."""
    loads, values, uppers, lowers = (np.asarray(part, np.float64) for part in (rate, value, high, low))
    if not loads.size or not loads.shape == values.shape == uppers.shape == lowers.shape:
        raise UsageError("a load curve needs as many latencies as loads, and at least one")
    saturated = np.zeros(loads.shape, np.bool_) if lost is None else np.asarray(lost, np.bool_)
    unique, inverse = np.unique(loads, return_inverse=True)
    each = np.bincount(inverse)
    means = np.exp(np.bincount(inverse, np.log(np.maximum(values, 1e-300))) / each)
    # of several runs at one load all have to agree
    passes = np.bincount(inverse, (uppers <= limit) & ~saturated) == each
    fails = np.bincount(inverse, (lowers > limit) | saturated) == each
    return unique, means * (values.min() > 0), passes, fails


def _rising(values: Floats) -> Floats:
    """The closest curve that never falls, on a logarithmic scale; infinite from the first infinite value on."""
    from scipy.optimize import isotonic_regression

    out = np.full(values.shape, np.inf)
    finite = int(np.argmax(np.isinf(values))) if np.isinf(values).any() else values.size
    if finite:
        out[:finite] = np.exp(isotonic_regression(np.log(values[:finite])).x)
    return out


def _crossing(start: float, end: float, level: float) -> float:
    """How far (0..1) a straight line from `start` down to `end` has come when it reaches `level`."""
    return min(1.0, max(0.0, (start - level) / (start - end)))


def mm1_capacity(service_rate: float, limit: float, percentile: float) -> float:
    """Return the load at which an M/M/1 queue's percentile of response time reaches a limit: ``μ − ln(1/(1−q)) / limit``.

    Examples
    --------
    >>> round(mm1_capacity(1000, 0.020, 99), 1)
    769.7
    """
    return max(0.0, service_rate + math.log(1 - percentile / 100) / limit)


def saturated(offered: ArrayLike, achieved: ArrayLike, error: ArrayLike = 0.0, tolerance: float = 0.01) -> NDArray[np.bool_]:
    """Return which runs surely did not carry the load that was offered: a surer sign of the pole than any knee.

    For open loops only; a closed loop offers no more than it gets.

    Parameters
    ----------
    offered, achieved : array_like of float, shape (runs,)
        Requests per second.
    error : array_like of float, optional
        By how much the achieved rate may be higher: what arrives at random varies.
    tolerance : float, default 0.01
        Share of the offered load that a generator loses at its start and end.

    Examples
    --------
    >>> saturated([100, 200, 200], [99.8, 171, 171], [0, 0, 40]).tolist()
    [False, True, False]
    """
    most = np.asarray(achieved, np.float64) + np.asarray(error, np.float64)
    return np.asarray(most < (1 - tolerance) * np.asarray(offered, np.float64))


@dataclass(frozen=True)
class Machines:
    """How many machines an offered load takes.

    Attributes
    ----------
    least, most : int or None
        If one machine carries as much as the bracket's high end, or only its low end; None where that end is unknown.
    estimate : int or None
    """

    least: int | None
    estimate: int | None
    most: int | None


def machines_needed(offered: float, one: Capacity, spare: int = 0) -> Machines:
    """Return how many machines carry an offered load within the SLO.

    Parameters
    ----------
    offered : float
        Requests per second of all together, spread evenly.
    one : Capacity
        Of one machine.
    spare : int, default 0
        Machines that may fail without missing the SLO.

    Examples
    --------
    >>> machines_needed(10_000, Capacity(769.7, 750.0, 800.0), spare=1)
    Machines(least=14, estimate=14, most=15)
    """
    if not offered > 0:
        raise UsageError(f"an offered load must be above 0 requests per second, not {offered:g}")
    rates = (one.high, one.rate, one.low)
    found = [math.ceil(offered / r - 1e-9) + spare if math.isfinite(r) and r > 0 else None for r in rates]
    return Machines(*found)
