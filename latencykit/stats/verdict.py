"""What a change is called: better, worse, mixed, same by equivalence, or inconclusive."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from latencykit.stats.percentiles import is_resolved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = ["Change", "Verdict", "holm", "significant", "verdict"]

Verdict = Literal["same", "better", "worse", "mixed", "inconclusive"]


@dataclass(frozen=True)
class Change:
    """How one statistic changed.

    Attributes
    ----------
    statistic : str
        ``"p99.9"``, ``"mean"``, ``"tm99"``.
    base, new : float
        In the unit of the values.
    change, low, high : float
        Relative change (0.05 is +5 %) and its interval; −1 and infinity where there is no bound.
    difference, difference_low, difference_high : float
        The same in the unit of the values.
    p_value : float
        Adjusted for all statistics compared, once judged; NaN where it is not judged.
    significant : bool
    note : str
        What the reader has to know of this row.
    base_low, base_high, new_low, new_high : float
        What the sources pin `base` and `new` down between. Where that is no better than within a tenth, `base` and `new` are
        upper bounds, and `change` and `difference` are NaN: there is an interval, and no number.
    """

    statistic: str
    base: float
    new: float
    change: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    p_value: float = math.nan
    significant: bool = False
    note: str = ""
    base_low: float = math.nan
    base_high: float = math.nan
    new_low: float = math.nan
    new_high: float = math.nan

    @classmethod
    def of(cls, statistic: str, numbers: Sequence[float]) -> Change:
        """Return the change with its numbers, `base` to `p_value`, in the order of the attributes."""
        base, new, change, low, high, difference, difference_low, difference_high, p_value = numbers
        return cls(statistic, base, new, change, low, high, difference, difference_low, difference_high, p_value)

    @property
    def percentile(self) -> float | None:
        """The percentile (0..100), where the statistic is one."""
        return float(self.statistic[1:]) if self.statistic[:1] == "p" else None

    @property
    def resolved(self) -> bool:
        """Whether both sides are known within a tenth."""
        ends = ((self.base_low, self.base_high), (self.new_low, self.new_high))
        return all(math.isnan(low) or bool(is_resolved(low, high)) for low, high in ends)

    def between(self, base: tuple[float, float, float], new: tuple[float, float, float]) -> Change:
        """Return the change between two values with the edges that the sources pin them down between: value, low, high."""
        held = replace(
            self, base=base[0], new=new[0], base_low=base[1], base_high=base[2], new_low=new[1], new_high=new[2],
            change=new[0] / base[0] - 1 if base[0] else math.nan, difference=new[0] - base[0],
        )  # fmt: skip
        return held if held.resolved else replace(held, change=math.nan, difference=math.nan)

    def judged(self, p_value: float, confidence: float, note: str = "") -> Change:
        """Return the change with its adjusted p-value, and whether it is significant at that confidence."""
        return replace(self, p_value=p_value, significant=significant(self, p_value, confidence), note=note)


def significant(change: Change, p_value: float, confidence: float) -> bool:
    """Return whether a change is one: its p-value is small and its interval leaves out "no change"."""
    return p_value <= 1 - confidence + 1e-12 and (change.low > 0 or change.high < 0)


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values adjusted for being several (Holm, 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    out = np.empty(p.size)
    out[order] = np.minimum(stepped, 1.0)
    return out


def verdict(changes: Sequence[Change], margin: float = 0.05, *, noise_known: bool = True) -> Verdict:
    """Return what the changes amount to.

    Parameters
    ----------
    changes : sequence of Change
        Rows without a p-value are not judged.
    margin : float, default 0.05
        Changes whose interval lies within ± `margin` are practically none: only so is anything ever ``same``.
    noise_known : bool, default True
        False for one run a side without a word on what runs differ by: such a comparison concludes nothing.

    Returns
    -------
    {"same", "better", "worse", "mixed", "inconclusive"}

    Examples
    --------
    >>> row = Change("p50", 100, 101, 0.01, -0.01, 0.03, 1, -1, 3, p_value=0.4)
    >>> verdict([row]), verdict([row], margin=0.02)
    ('same', 'inconclusive')
    """
    if not noise_known:
        return "inconclusive"
    judged = [row for row in changes if not math.isnan(row.p_value)]
    same = [row for row in judged if -margin <= row.low and row.high <= margin]
    moved = [row for row in judged if row.significant and row not in same]
    worse, better = any(row.low > 0 for row in moved), any(row.high < 0 for row in moved)
    if worse or better:
        return "mixed" if worse and better else "worse" if worse else "better"
    return "same" if judged and len(same) == len(judged) else "inconclusive"
