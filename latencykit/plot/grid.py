"""Counts of a log by time and latency, in one pass and in little memory, however long the log is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.buckets import HdrBuckets
from latencykit.errors import NotHeldError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.buckets import Buckets
    from latencykit.log import HistogramLog

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Grid", "grid"]

_COLUMNS = 480
_A_DECADE = 48
_CODE = 1 << 16
_LOWEST, _HIGHEST = -6, 16
"""Powers of ten between which values have rows of their own."""


@dataclass(frozen=True)
class Grid:
    """Counts of values by time and by latency.

    Attributes
    ----------
    times : ndarray of float64, shape (columns + 1,)
        Edges in seconds; columns without an interval are gaps.
    values : ndarray of float64, shape (rows + 1,)
        Edges, evenly spaced in their logarithm; the lowest row holds the zeros where there are any.
    counts : ndarray of float64, shape (rows, columns)
        NaN in gaps.
    top : ndarray of float64, shape (columns,)
        The maximum of each column.
    zeros : bool
        Whether the lowest row holds zeros.
    """

    times: Floats
    values: Floats
    counts: Floats
    top: Floats
    zeros: bool


def grid(log: HistogramLog, columns: int = _COLUMNS) -> Grid:
    """Return a log's counts by time and latency, in one pass and in little memory.

    Parameters
    ----------
    log : HistogramLog
        Of one series: intervals of one time are summed.
    columns : int, default 480
        At most so many; fewer intervals have a column each.

    Raises
    ------
    NotHeldError
        Where nothing was counted.
    """
    edges, column = _columns(log, columns)
    shape = ((_HIGHEST - _LOWEST) * _A_DECADE + 2, edges.size - 1)
    counts, change = np.zeros(shape), np.zeros(shape)
    top = np.full(edges.size - 1, -np.inf)
    known: dict[Buckets, Ints] = {}
    for block in log.blocks():
        codes = known[block.buckets] = _rows_of(block.buckets, int(block.index.max(initial=0)), known.get(block.buckets))
        held = np.flatnonzero(np.diff(block.indptr))
        if not held.size:
            continue
        starts = _groups(codes[block.index], block.indptr[held])
        first, wide = np.divmod(codes[block.index[starts]], _CODE)
        at = column[block.rows[np.searchsorted(block.indptr, starts, "right") - 1]]
        share = np.add.reduceat(block.counts, starts) / (wide + 1)
        one = wide == 0
        np.add.at(counts, (first[one], at[one]), share[one])
        np.add.at(change, (first[~one], at[~one]), share[~one])
        np.add.at(change, ((first + wide + 1)[~one], at[~one]), -share[~one])
        np.maximum.at(top, column[block.rows[held]], block.buckets.high(block.index[block.indptr[held + 1] - 1]))
    counts += np.cumsum(change, axis=0)
    counts[counts < 1e-6] = 0.0
    used = np.flatnonzero(counts.any(axis=1))
    if not used.size:
        raise NotHeldError("nothing was counted, so there is nothing to draw; was the range too narrow?")
    return _cropped(edges, counts, top, used, column)


def _groups(codes: Ints, begins: Ints) -> Ints:
    """Where runs of equal codes start; a run ends where an interval does."""
    new = np.ones(codes.size, np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=new[1:])
    new[begins] = True
    return np.flatnonzero(new)


def _cropped(edges: Floats, counts: Floats, top: Floats, used: Ints, column: Ints) -> Grid:
    """Only the rows that hold something, fewer and taller ones where counts are small; the zeros right below them."""
    zeros = bool(used[0] == 0)
    positive = used[used > 0] if (used > 0).any() else np.array([1 - _LOWEST * _A_DECADE])
    typical = float(np.median(counts.sum(0)[np.unique(column)]))
    joint = 4 if typical < 1000 else 2 if typical < 10_000 else 1
    first = (int(positive[0]) - 1) // joint * joint + 1
    size = -(-(int(positive[-1]) + 1 - first) // joint)
    body = np.pad(counts[first : first + size * joint], ((0, max(0, first + size * joint - len(counts))), (0, 0)))
    shown = body.reshape(size, joint, -1).sum(1)
    values = 10.0 ** (_LOWEST + (first - 1 + joint * np.arange(size + 1)) / _A_DECADE)
    if zeros:
        gap = max(2.0, size * joint / 16) / _A_DECADE
        values = np.concatenate((values[0] / 10.0 ** (np.array([2.0, 1.0]) * gap), values))
        shown = np.concatenate((counts[:1], np.zeros((1, shown.shape[1])), shown))
    shown[:, np.setdiff1d(np.arange(edges.size - 1), column)] = np.nan
    return Grid(edges, values, shown, np.where(np.isfinite(top), top, np.nan), zeros)


def _columns(log: HistogramLog, most: int) -> tuple[Floats, Ints]:
    """Edges of the columns in seconds, and the column of each interval."""
    start, end = log.starts, log.starts + log.lengths
    begin, finish = float(start.min()), float(end.max())
    typical = float(np.median(log.lengths)) or 1e-3
    whole = max(1, round((finish - begin) / typical))
    number = min(whole, most)
    width = typical if number == whole else (finish - begin) / number
    column = np.clip(np.floor((start - begin) / width + 1e-3).astype(np.int64), 0, number - 1)
    return np.asarray(begin + width * np.arange(number + 1), np.float64), column


def _rows_of(buckets: Buckets, highest: int, known: Ints | None) -> Ints:
    """First row of every bucket up to an index, times `_CODE`, plus how many more rows it covers.

    A bucket wider than a row fills all that it covers; a narrower one goes where its middle is.
    """
    if known is not None and known.size > highest:
        return known
    index = np.arange(min(2 * (highest + 1), buckets.slots) if isinstance(buckets, HdrBuckets) else highest + 1)
    low, high = buckets.low(index), buckets.high(index)
    zero = high <= 0
    if isinstance(buckets, HdrBuckets):
        high = np.append(low[1:], high[-1])  # steps are counted, so a bucket reaches to the next one's low end
    low = np.where(low > 0, low, high / 2)  # from zero to somewhere is endless on a logarithmic axis
    first, last = np.floor(_place(low)), np.ceil(_place(high) - 1e-9) - 1
    middle = np.floor((_place(low) + _place(high)) / 2)
    narrow = last <= first + 1
    first, wide = np.where(narrow, middle, first), np.where(narrow, 0, last - first)
    return np.where(zero, 0, (first.astype(np.int64) + 1) * _CODE + wide.astype(np.int64))


def _place(values: Floats) -> Floats:
    top = (_HIGHEST - _LOWEST) * _A_DECADE
    return np.asarray(np.clip((np.log10(np.maximum(values, 10.0**_LOWEST)) - _LOWEST) * _A_DECADE, 0, top - 1), np.float64)
