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

__all__ = ["Capacity", "Machines", "capacity", "machines_needed", "mm1_capacity", "saturated"]


@dataclass(frozen=True)
class Capacity:
    """The largest load that meets a limit.

    Attributes
    ----------
    rate : float
        Estimate: where the rising curve through the measured loads crosses the limit; the highest load that passed
        where none failed; NaN where none passed.
    low, high : float
        The highest load that surely passed (0 where none did), and the lowest above it that did not (infinite where
        all passed).
    reason : str
        What the reader has to know; ``""`` where the limit was crossed.
    """

    rate: float
    low: float
    high: float
    reason: str = ""


def capacity(
    rate: ArrayLike, value: ArrayLike, limit: float, high: ArrayLike | None = None, saturated: ArrayLike | None = None
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
        Runs that did not carry the load that was offered: they pass nothing.

    Returns
    -------
    Capacity

    Notes
    -----
    Latency rises with load; what falls is noise, so the logarithms of the values are pooled to a rising curve
    (isotonic regression). Between the last load that passed and the first that did not, the reciprocal of
    the latency is taken as a straight line: that is what a queue near its pole does, exactly so for M/M/1.

    Examples
    --------
    >>> found = capacity([100, 200, 300], [10.0, 12.0, 40.0], 20.0)
    >>> round(found.rate), found.low, found.high
    (257, 200.0, 300.0)
    """
    loads, values, uppers = _sorted(rate, value, value if high is None else high, saturated)
    if not (limit > 0 and (values > 0).all()):
        raise UsageError("a capacity needs latencies and a limit above 0")
    fitted, above = _rising(values), np.maximum(_rising(uppers), _rising(values))
    passing = int(np.argmin(np.append(above <= limit, False)))  # how many loads pass before the first that does not
    if passing == loads.size:
        top = float(loads[-1])
        return Capacity(top, top, math.inf, "the limit was met at every load measured; the capacity is at least the highest")
    first = float(loads[passing])
    if not passing:
        return Capacity(math.nan, 0.0, first, "the limit was not surely met at any load measured; measure lower ones")
    last = float(loads[passing - 1])
    reason = "" if fitted[passing] > limit else "the first load that failed did so only by its confidence interval"
    rest = 1.0 if fitted[passing] <= limit else _crossing(1 / fitted[passing - 1], 1 / fitted[passing], 1 / limit)
    return Capacity(last + rest * (first - last), last, first, reason)


def _sorted(rate: ArrayLike, value: ArrayLike, high: ArrayLike, lost: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
    """Ascending loads, each once, with the mean value and the highest upper end."""
    loads, values, uppers = (np.asarray(part, np.float64) for part in (rate, value, high))
    if not loads.size or not loads.shape == values.shape == uppers.shape:
        raise UsageError("a load curve needs as many latencies as loads, and at least one")
    if lost is not None:
        uppers = np.where(np.asarray(lost, np.bool_), np.inf, uppers)
    unique, inverse = np.unique(loads, return_inverse=True)
    each = np.bincount(inverse)
    means = np.exp(np.bincount(inverse, np.log(np.maximum(values, 1e-300))) / each)
    tops = np.zeros(unique.size)
    np.maximum.at(tops, inverse, uppers)
    return unique, means * (values.min() > 0), tops


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


def saturated(offered: ArrayLike, achieved: ArrayLike, tolerance: float = 0.01) -> NDArray[np.bool_]:
    """Return which runs did not carry the load that was offered: a surer sign of the pole than any knee.

    For open loops only; a closed loop offers no more than it gets.

    Examples
    --------
    >>> saturated([100, 200], [99.8, 171]).tolist()
    [False, True]
    """
    return np.asarray(np.asarray(achieved, np.float64) < (1 - tolerance) * np.asarray(offered, np.float64))


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
