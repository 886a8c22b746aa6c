"""Means and deviations of counted values, added up as the reference does: strictly from the lowest bucket upwards."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["mean_std", "row_mean_std"]


def mean_std(values: NDArray[np.generic], counts: Ints) -> tuple[float, float]:
    """Return the mean and the population standard deviation of counted values.

    Parameters
    ----------
    values : ndarray, shape (buckets,)
        Middle of each bucket, ascending.
    counts : ndarray of int64, shape (buckets,)

    Returns
    -------
    mean, std : float
        NaN where there are no counts. A cumulative sum adds from left to right, so that both equal the
        reference's to the last digit; numpy's own sum adds in pairs and does not.

    Examples
    --------
    >>> mean_std(np.array([1.0, 3.0]), np.array([1, 1]))
    (2.0, 1.0)
    """
    if not counts.size or not counts.any():
        return float("nan"), float("nan")
    total = float(counts.sum())
    reals = values.astype(np.float64)
    order = max(0, math.frexp(float(reals.max()))[1] - 400)  # by a power of two, which rounds nothing, squares stay finite
    reals = np.ldexp(reals, -order) if order else reals
    mean = float(np.cumsum(reals * counts)[-1]) / total
    deviation = reals - mean
    return math.ldexp(mean, order), math.ldexp(float(np.sqrt(np.cumsum(deviation * deviation * counts)[-1] / total)), order)


def row_mean_std(rows: Ints, values: NDArray[np.generic], counts: Ints, size: int) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of every row of a block at once.

    Parameters
    ----------
    rows : ndarray of int64, shape (nonzero,)
        Row of each entry.
    values, counts : ndarray, shape (nonzero,)
    size : int
        Number of rows.

    Returns
    -------
    mean, std : ndarray of float64, shape (size,)
        NaN for rows without counts. `numpy.bincount` adds from left to right, too.

    Examples
    --------
    >>> row_mean_std(np.array([0, 0]), np.array([1.0, 3.0]), np.array([1, 1]), 2)[0].tolist()
    [2.0, nan]
    """
    reals = values.astype(np.float64)
    totals = np.bincount(rows, counts, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(rows, reals * counts, size) / totals
        deviation = reals - mean[rows]
        std = np.sqrt(np.bincount(rows, deviation * deviation * counts, size) / totals)
    return mean, std
