"""Counted values as arrays: what every statistic of this room works on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from latencykit.buckets import Buckets

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Counted"]


@dataclass(frozen=True, eq=False)
class Counted:
    """Counts between edges, in ascending order, and what is known only to be large.

    Parameters
    ----------
    low, high : ndarray of float64, shape (buckets,)
        Lowest and highest value of each bucket; equal for raw values.
    counts : ndarray of int64, shape (buckets,)
    mid : ndarray of float64, shape (buckets,), optional
        What means are made of; the middle of the edges unless given.
    censored : int
        Values known only to be at least `limit`: timeouts, clips, overflows.
    limit : float
        That bound.
    mean, std : float
        What the source itself states, which wins over the buckets; NaN where it does not.

    Examples
    --------
    >>> c = Counted.of([3, 1, 1])
    >>> c.low.tolist(), c.counts.tolist(), c.total
    ([1.0, 3.0], [2, 1], 3)
    """

    low: Floats
    high: Floats
    counts: Ints
    mid: Floats | None = None
    censored: int = 0
    limit: float = float("inf")
    mean: float = float("nan")
    std: float = float("nan")

    @classmethod
    def of(cls, values: ArrayLike, censored: int = 0, limit: float = float("inf")) -> Counted:
        """Count raw values: buckets of no width."""
        unique, counts = np.unique(np.asarray(values, np.float64), return_counts=True)
        return cls(unique, unique, counts.astype(np.int64), None, censored, limit)

    @classmethod
    def in_buckets(cls, buckets: Buckets, index: Ints, counts: Ints, censored: int = 0, limit: float = float("inf")) -> Counted:
        """Take the counts of a histogram: a layout, ascending bucket indices, and their counts."""
        return cls(buckets.low(index), buckets.high(index), counts, buckets.mid(index), censored, limit)

    def stating(self, least: float, most: float, mean: float, std: float) -> Counted:
        """Return the same with what the source states: all values lie between `least` and `most`."""
        low, high, middle = (np.clip(edge, least, most) for edge in (self.low, self.high, self.middle))
        return replace(self, low=low, high=high, mid=middle, mean=mean, std=std)

    def by_low(self) -> Counted:
        """Return the same in the order of the lower edges: of buckets that overlap, rank by rank the least there can be."""
        order = np.argsort(self.low, kind="stable")
        return replace(self, low=self.low[order], high=self.high[order], counts=self.counts[order], mid=self.middle[order])

    @cached_property
    def middle(self) -> Floats:
        """Middle of each bucket."""
        return (self.low + self.high) / 2 if self.mid is None else self.mid

    @cached_property
    def cumulative(self) -> Ints:
        """Running total of the counts, censored ones left out."""
        return np.cumsum(self.counts)

    @cached_property
    def count(self) -> int:
        """Number of values, censored ones left out."""
        return int(self.counts.sum())

    @property
    def total(self) -> int:
        """Number of values, censored ones included."""
        return self.count + self.censored

    def occupied(self) -> Counted:
        """Return the same without empty buckets.

        Raises
        ------
        UsageError
            Where nothing was counted at all.
        """
        if not self.total:
            raise UsageError("nothing was counted, so there is nothing to say; read a source that holds values")
        held = self.counts > 0
        if held.all():
            return self
        return replace(self, low=self.low[held], high=self.high[held], counts=self.counts[held], mid=self.middle[held])

    def at_best(self) -> Counted:
        """Return the censored values placed where they are at least: a bucket at `limit`, open above."""
        at = int(np.searchsorted(self.high, self.limit, "right"))
        return self._with_open_bucket(at, self.limit)

    def at_worst(self) -> Counted:
        """Return the censored values placed above everything else, with no upper end."""
        return self._with_open_bucket(self.counts.size, np.inf)

    def _with_open_bucket(self, at: int, low: float) -> Counted:
        if not self.censored:
            return self
        return Counted(
            np.insert(self.low, at, low),
            np.insert(self.high, at, np.inf),
            np.insert(self.counts, at, self.censored),
            np.insert(self.middle, at, low),
        )
