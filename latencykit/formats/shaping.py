"""From what a tool prints to a rung: values in nanoseconds, percentile tables, one series an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.formats.stated import stated, whole_count
from latencykit.histogram import Histogram
from latencykit.samples import Samples
from latencykit.summary import Summary
from latencykit.units import NANOSECONDS, format_count

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from latencykit.formats.base import ReadOptions, Rung
    from latencykit.run import Run

    Floats = NDArray[np.float64]

__all__ = [
    "distinct",
    "nanoseconds",
    "nanoseconds_of",
    "per_operation",
    "rung_of_points",
    "rung_of_values",
    "several",
    "whole_nanoseconds",
    "without_negative",
]

_FINE = 10_000.0  # below 10 µs, whole nanoseconds would round by more than 0.005 %


def nanoseconds(value: float, unit: str) -> float:
    """Return a value of a unit in nanoseconds, without the conversion's noise; bare numbers stay as they are.

    Examples
    --------
    >>> nanoseconds(0.0043, "s"), nanoseconds(12, "none")
    (4300000.0, 12.0)
    """
    return round(float(value) * NANOSECONDS.get(unit, 1.0), 3)


def nanoseconds_of(values: ArrayLike, unit: str) -> Floats:
    """Return values of a unit in nanoseconds, float64 of the same shape, rounded to a thousandth."""
    return np.round(np.asarray(values, np.float64) * NANOSECONDS.get(unit, 1.0), 3)


def whole_nanoseconds(stamps: ArrayLike, unit: str) -> NDArray[np.int64]:
    """Return points in time of a unit as whole nanoseconds, int64 of the same shape.

    A stamp such as 1795220202.323 s is meant to the microsecond at best; a float64 of its nanoseconds would be off
    by up to 128.
    """
    given = np.asarray(stamps)
    micro = NANOSECONDS[unit] / 1e3
    if given.dtype.kind in "iu" or unit == "ns":
        return np.asarray(np.rint(given).astype(np.int64) * np.int64(NANOSECONDS[unit]))
    return np.asarray(np.rint(given * micro).astype(np.int64) * 1000)


def several(number: int, one: str, more: str | None = None) -> str:
    """Return "1 request", "1,200 requests".

    Examples
    --------
    >>> several(1, "request"), several(1200, "reply", "replies")
    ('1 request', '1,200 replies')
    """
    return f"{format_count(number)} {one if number == 1 else more or one + 's'}"


def distinct(name: str, taken: Container[str]) -> str:
    """Return `name`, numbered where it is taken: "sleep 1", "sleep 1 (2)".

    Examples
    --------
    >>> distinct("get", {"get"})
    'get (2)'
    """
    label, number = name, 2
    while label in taken:
        label, number = f"{name} ({number})", number + 1
    return label


def rung_of_points(
    points: Mapping[float, float], count: int | None, stats: Mapping[str, float], run: Run, **known: Any
) -> Histogram | Summary:
    """Return what printed percentiles and statistics (in ns) amount to.

    Parameters
    ----------
    points : mapping of float to float
        Percentile (0..100) → ns.
    count : int or None
        Values behind them.
    stats : mapping of str to float
        ``mean``, ``std``, ``min``, ``max`` in ns, as far as the tool states them.
    run : Run
    **known
        ``censored`` and ``censored_at``, where the tool says how many values were cut off.

    Returns
    -------
    Histogram or Summary
        A histogram where there are a count and at least three percentiles, the maximum among them.

    Examples
    --------
    >>> from latencykit.run import Run
    >>> rung_of_points({50: 1e6, 99: 3e6}, 100, {"max": 4e6}, Run()).percentile(99)
    3000000.0
    """
    unit = "none" if run.unit == "none" else "ns"
    extremes = {"min": points.get(0.0), "max": points.get(100.0)}
    told = {name: value for name, value in extremes.items() if value is not None} | dict(stats)
    inner, told, run = stated({p: v for p, v in points.items() if 0 < p < 100}, told, run)
    count = whole_count(count)
    if count and count > 0 and len(inner) + ("max" in told) >= 3:
        return Histogram.from_percentiles(list(inner), list(inner.values()), count, unit, run=run, told=told, **known)
    return Summary(told, inner, count, unit, run)


def rung_of_values(values: ArrayLike, run: Run, counts: ArrayLike | None = None) -> Histogram | Samples:
    """Return single values (ns, with fractions) as samples, or as an exact histogram where that loses less.

    Samples hold whole nanoseconds. A micro-benchmark's 2.31 ns an operation would not survive that, so values
    below 10 µs, and values with counts, become a histogram whose buckets are the values themselves.
    """
    given = np.asarray(values, np.float64)
    unit = "none" if run.unit == "none" else "ns"
    if counts is None and unit == "ns" and given.size and given.min() >= _FINE:
        return Samples(duration=given, run=run)
    numbers = np.ones(given.size, np.int64) if counts is None else np.asarray(counts, np.int64)
    points, where = np.unique(given, return_inverse=True)
    total = np.zeros(points.size, np.int64)
    np.add.at(total, where.reshape(-1), numbers)
    return Histogram.from_buckets(points, points, total, unit, run=run)


def without_negative(samples: Mapping[str, Any], options: ReadOptions) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return columns without the rows of a negative ``duration``, and the note that says so."""
    bad = np.asarray(samples["duration"]) < 0
    number = int(bad.sum())
    columns = {name: column for name, column in samples.items() if column is not None}
    if not number:
        return columns, ()
    note = f"{several(number, 'negative duration')} left out: the clock was set back"
    options.report(note)
    return {name: np.asarray(column)[~bad] for name, column in columns.items()}, (note,)


def per_operation(
    everything: Samples,
    code: NDArray[np.int64],
    names: Sequence[str],
    aggregate: str = "all",
    apart: Sequence[str] = (),
) -> dict[str, Rung]:
    """Return the series of an output with several operations: all of them first, then one each.

    Parameters
    ----------
    everything : Samples
    code : ndarray of int64, shape (n,)
        Position in `names` of each row's operation.
    names : sequence of str
    aggregate : str
        Name of the series of all.
    apart : sequence of str
        Operations that are sums of others and stay out of the aggregate.
    """
    used = np.unique(code).tolist()
    if len(used) == 1:
        return {names[used[0]]: everything}
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(names) + 1))
    each: dict[str, Rung] = {names[k]: everything.select(np.sort(order[bounds[k] : bounds[k + 1]])) for k in used}
    outside = [k for k, name in enumerate(names) if name in apart]
    whole = everything.select(~np.isin(code, outside)) if outside else everything
    free = aggregate if aggregate not in each else f"{aggregate} operations"
    return {free: whole.but(aggregate=True)} | each
