"""The reference's rule for requests that were never sent: for every value v, fills at v − I, v − 2I … down to I.

A value below twice the interval gets no fill, and the smallest one lies in [I, 2I), as in ``AbstractHistogram.java`` of
HdrHistogram 2.2.2 (``recordValueWithCountAndExpectedInterval``). Fills are an arithmetic progression, so those that
fall into one bucket are counted, not listed, wherever that is less work: a stall of 100 s at an interval of 1 µs costs
as many steps as the layout has buckets below it, not 100 million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import LimitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from latencykit.buckets import HdrBuckets

    Ints = NDArray[np.int64]

__all__ = ["fill", "fills_of"]

_AT_ONCE = 1 << 20  # fills, or buckets, looked at in one pass
_MOST = 1 << 62  # of all counts together


def fills_of(values: Ints, interval: int) -> Ints:
    """Return how many fills each value has, int64.

    Parameters
    ----------
    values : ndarray of int64, shape (n,)
    interval : int
        Expected interval, in the same steps.

    Examples
    --------
    >>> fills_of(np.array([19, 20, 105]), 10).tolist()
    [0, 1, 9]
    """
    return np.where(values >= interval, values // interval - 1, 0)


def fill(values: Ints, counts: Ints, rows: Ints, interval: int, layout: HdrBuckets) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield what is to be added: rows, bucket indices and counts, in pieces of bounded size; pairs may repeat.

    Parameters
    ----------
    values, counts, rows : ndarray of int64, shape (n,)
        Values in steps of the layout (the highest of their buckets), how often each occurs, and which histogram it is
        of.
    interval : int
        Expected interval in steps.
    layout : HdrBuckets
        Of whole steps.

    Raises
    ------
    LimitError
        Where the sum would not fit in 63 bits.

    Examples
    --------
    >>> from latencykit.buckets import HdrBuckets
    >>> one = np.array([1])
    >>> [index.tolist() for _, index, _ in fill(np.array([105]), one, one, 10, HdrBuckets(3))]
    [[15, 25, 35, 45, 55, 65, 75, 85, 95], []]
    """
    if interval < 1:
        raise UsageError("the expected interval must be at least one step of the values' resolution")
    number = fills_of(values, interval)
    if float((number + 1.0) @ counts) >= _MOST:
        raise LimitError("the fills would not fit in 63 bits; the interval is far shorter than the stalls")
    held = np.flatnonzero(number)
    values, counts, rows, number = values[held], counts[held], rows[held], number[held]
    least = values - number * interval
    first, last = layout.index_of(least), layout.index_of(values - interval)
    width = last - first + 1
    listed = number <= width
    for piece in _pieces(np.where(listed, number, width)):
        one = piece[listed[piece]]
        source, place = _ragged(number[one])
        index = layout.index_of(least[one][source] + place * interval)
        yield rows[one][source], index, counts[one][source]
        many = piece[~listed[piece]]
        source, place = _ragged(width[many])
        index = first[many][source] + place
        times = _between(layout.low_steps(index), layout.high_steps(index), least[many][source], number[many][source], interval)
        yield rows[many][source], index, times * counts[many][source]


def _pieces(work: Ints) -> Iterator[Ints]:
    """Positions of the values, so many at a time that their work is bounded."""
    block = np.cumsum(work) // _AT_ONCE
    bounds = np.flatnonzero(np.diff(block, prepend=-1, append=-1))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield np.arange(begin, end)


def _ragged(sizes: Ints) -> tuple[Ints, Ints]:
    """For every place of rows of these sizes: the row, and the place within it."""
    row = np.repeat(np.arange(sizes.size), sizes)
    return row, np.arange(row.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _between(bottom: Ints, top: Ints, least: Ints, number: Ints, interval: int) -> Ints:
    """How many of the fills least, least + I, … (so many) lie in buckets with these edges, none of them below `least`."""
    up_to = np.minimum((top - least) // interval + 1, number)
    below = np.maximum(-((least - bottom) // interval), 0)  # ⌈(bottom − least) / I⌉
    return np.asarray(np.maximum(up_to - below, 0))
