"""Conditions on a change, as a pipeline states them: ``p99.9 > +5%``, ``mean > +1ms``."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latencykit.core.bootstrap import ENDS, Draws, draw_means, draw_percentiles, draw_shifts
from latencykit.core.dependence import LEAST_EVENTS
from latencykit.core.histogram import Histogram, histogram_of, statistic_of
from latencykit.core.quantiles import (
    Counted,
    is_resolved,
    percentile_table,
    rank_interval,
    share_interval,
)
from latencykit.core.summary import Summary
from latencykit.core.trimmed import parse_trim, statistic_name, trimmed
from latencykit.core.value import Value
from latencykit.errors import DataNotAvailableError, IncompatibleDataError, InvalidArgumentError
from latencykit.units import (
    NANOSECONDS,
    format_count,
    format_duration,
    format_percentile,
    parse_duration,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from latencykit.core import Data
    from latencykit.core.dependence import Dependence
    from latencykit.core.run import Run

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Ints = NDArray[np.int64]
    Side = Histogram | Summary
    Runs = Data | Sequence[Data] | Mapping[str, Data]

__all__ = [
    "Change",
    "Comparison",
    "Condition",
    "Gap",
    "RunsComparison",
    "Shift",
    "Superiority",
    "Verdict",
    "compare",
    "compare_counts",
    "compare_runs",
    "differences",
    "gap_at",
    "holm",
    "least_p",
    "parse_condition",
    "rank_sum_null",
    "runs_needed",
    "shift",
    "significant",
    "superiority",
    "unit_doubts",
    "verdict",
]


_CONDITION = re.compile(r"\s*(.+?)\s*(>=|<=|>|<)\s*([+-]?)\s*(\S.*?)\s*")
_HINT = "write for example 'p99.9 > +5%' or 'mean > +1ms'"


@dataclass(frozen=True)
class Condition:
    """A change that must not be.

    Attributes
    ----------
    statistic : str
        ``"p99.9"``, ``"mean"``, ``"tm99"``.
    above : bool
        Whether it is met by changes above the threshold, or below.
    threshold : float
        Relative (0.05 is 5 %) or in nanoseconds.
    relative : bool
    text : str
        The condition as it was written.
    """

    statistic: str
    above: bool
    threshold: float
    relative: bool
    text: str

    def holds(self, change: Change, unit: str = "ns") -> bool | None:
        """Return whether a change surely meets the condition."""
        if self.relative:
            bound, threshold, end = (
                (change.low if self.above else change.high),
                self.threshold,
                -1.0,
            )
        else:
            bound = change.difference_low if self.above else change.difference_high
            threshold, end = self.threshold / NANOSECONDS.get(unit, 1.0), -float("inf")
        if bound == (end if self.above else float("inf")):
            return None
        return bool(bound > threshold if self.above else bound < threshold)


def parse_condition(text: str) -> Condition:
    """Return the condition that a text states."""
    found = _CONDITION.fullmatch(text)
    if not found:
        raise InvalidArgumentError(f"{text!r} is no condition; {_HINT}")
    name, sign, size = statistic_name(found[1]), found[3], found[4]
    if name == "p100":
        raise InvalidArgumentError(
            f"{text!r} judges the maximum, which grows with the length of a run; take a percentile instead"
        )
    factor = -1.0 if sign == "-" else 1.0
    if size.endswith("%"):
        try:
            return Condition(name, ">" in found[2], factor * float(size[:-1]) / 100, True, text)
        except ValueError:
            raise InvalidArgumentError(
                f"{size!r} in {text!r} is no number of percent; {_HINT}"
            ) from None
    if not sign:
        raise InvalidArgumentError(
            f"{text!r} is a limit, not a change; write '+{size}' for a change, or check the limit with an SLO (check --slo)"
        )
    return Condition(name, ">" in found[2], factor * parse_duration(size), False, text)


# ------------------------------------------------------------
# What a change is called: better, worse, mixed, same by equivalence, or inconclusive.

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
        return cls(
            statistic,
            base,
            new,
            change,
            low,
            high,
            difference,
            difference_low,
            difference_high,
            p_value,
        )

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
        return replace(
            self, p_value=p_value, significant=significant(self, p_value, confidence), note=note
        )


def significant(change: Change, p_value: float, confidence: float) -> bool:
    """Return whether a change is one: its p-value is small and its interval leaves out "no change"."""
    return p_value <= 1 - confidence + 1e-12 and (change.low > 0 or change.high < 0)


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values adjusted for being several (Holm, 1979)."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    out = np.empty(p.size)
    out[order] = np.minimum(stepped, 1.0)
    return out


def verdict(
    changes: Sequence[Change], margin: float = 0.05, *, noise_known: bool = True
) -> Verdict:
    """Return what the changes amount to."""
    if not noise_known:
        return "inconclusive"
    judged = [row for row in changes if not math.isnan(row.p_value)]
    same = [row for row in judged if -margin <= row.low and row.high <= margin]
    moved = [row for row in judged if row.significant and row not in same]
    worse, better = any(row.low > 0 for row in moved), any(row.high < 0 for row in moved)
    if worse or better:
        return "mixed" if worse and better else "worse" if worse else "better"
    return "same" if judged and len(same) == len(judged) else "inconclusive"


# ------------------------------------------------------------
# Whether two measurements may be compared at all: what differs between them besides the system.

_A_THOUSANDFOLD = 250.0  # two units, and a change of the system by a factor of up to four
_NEAR = 0.05  # relative; rates and durations are never equal to the last digit


def unit_doubts(runs: Sequence[Run], middles: Sequence[float]) -> tuple[str, ...]:
    """Return what speaks against comparing or adding values some of whose units are only assumed, one sentence each."""
    guessed = [run for run in runs if run.unit_note is not None]
    if not guessed:
        return ()
    found = []
    units = sorted({run.unit for run in guessed})
    if len(units) > 1:
        found.append(
            f"units are only assumed, and not the same ones: {' and '.join(units)}; state them with --unit"
        )
    known = [value for value in middles if value > 0]
    factor = max(known) / min(known) if known else 1.0
    if factor >= _A_THOUSANDFOLD:
        found.append(
            f"the medians differ by a factor of {factor:,.0f} and a unit is only assumed: state the unit of each file (--unit)"
        )
    return tuple(found)


def differences(
    base: Run, new: Run, base_count: int | None = None, new_count: int | None = None
) -> tuple[str, ...]:
    """Return what makes two measurements hard to compare, one sentence each; empty where nothing is known to."""
    found = []
    for name, words in (
        ("measure", "one side measures {} time, the other {} time"),
        ("corrected", "the correction for coordinated omission differs: {} and {}"),
        ("loop", "one side is a load of the {} kind, the other of the {} kind"),
    ):
        pair = getattr(base, name), getattr(new, name)
        if pair[0] != pair[1] and "unknown" not in pair:
            found.append(words.format(*pair))
    numbers: tuple[tuple[str, float | None, float | None, Callable[[float], str]], ...] = (
        ("rate", base.rate, new.rate, lambda v: f"{v:,.{0 if v >= 100 else 2}f}/s"),
        (
            "achieved rate",
            base.achieved,
            new.achieved,
            lambda v: f"{v:,.{0 if v >= 100 else 2}f}/s",
        ),
        ("number of connections", base.connections, new.connections, format_count),
        ("duration", base.duration, new.duration, lambda v: format_duration(v * 1e9)),
        ("number of requests", base_count, new_count, format_count),
    )
    for name, one, other, show in numbers:
        if one is None or other is None or (name == "achieved rate" and base.rate != new.rate):
            continue
        near = (
            0.0
            if name == "number of connections"
            else 0.5
            if name == "number of requests"
            else _NEAR
        )
        if abs(one - other) > near * max(abs(one), abs(other)):
            found.append(f"the {name} differs: {show(one)} and {show(other)}")
    failing = [(run.failed + run.timeouts + run.dropped + run.unfinished) for run in (base, new)]
    if failing[0] != failing[1]:
        found.append(
            f"{format_count(failing[0])} requests failed on one side, {format_count(failing[1])} on the other"
        )
    return tuple(found)


# ------------------------------------------------------------
# Percentiles that fall between two modes: there they jump, and no interval helps.
#
# If 1 % of the requests take a slow path, p99 lies on the brink: 1.8 ms in one run, 44.6 ms in the next, and nothing has
# changed. What can be compared are the weight of the slow mode and where it lies.

_WIDE = 2.0  # a gap doubles the value
_FEWEST = 8  # requests beyond it: fewer are the loose end of any heavy tail
_MODES_NEAR = 1.5  # how far the tail's share may be from the slow mode's weight


@dataclass(frozen=True)
class Gap:
    """An empty stretch between two modes, at a percentile.

    Attributes
    ----------
    below, above : float
        Where the fast mode ends and the slow one begins.
    weight, weight_low, weight_high : float
        Share (0..1) of requests in the slow mode, and its 95 % interval.
    slow_median : float
        Median of the slow mode.
    percentile : float
        The percentile that lies on the brink.
    """

    below: float
    above: float
    weight: float
    weight_low: float
    weight_high: float
    slow_median: float
    percentile: float

    @property
    def words(self) -> str:
        """One sentence."""
        return (
            f"p{self.percentile:g} lies between two modes and jumps from run to run; compare the slow mode instead: "
            f"{100 * self.weight:.3g} % of requests ({100 * self.weight_low:.3g} to {100 * self.weight_high:.3g} %)"
        )


def gap_at(counted: Counted, percentile: float) -> Gap | None:
    """Return the gap between two modes that a percentile falls into, or None.

    A gap is an empty stretch across which the value at least doubles, with at least eight requests on either side,
    wider than any within the slow mode; the percentile falls into it if the slow mode's weight is within the
    percentile's rank interval, or within half again of its tail.
    """
    if not 0 < percentile < 100 or not counted.count:
        return None
    held = counted.occupied()
    total, running = held.total, held.cumulative
    beyond = total - running[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        jump = held.low[1:] / held.high[:-1]
    share, tail = beyond / total, 1 - percentile / 100
    low, high = (int(end[0]) for end in rank_interval(total, [percentile]))
    brink = ((running[:-1] >= low) & (running[:-1] <= high)) | (
        (share <= tail * _MODES_NEAR) & (share >= tail / _MODES_NEAR)
    )
    found = np.flatnonzero(
        brink & (jump >= _WIDE) & (beyond >= _FEWEST) & (running[:-1] >= _FEWEST)
    )
    found = found[[bool((jump[k] > jump[k + 1 :]).all()) for k in found]]
    if not found.size:
        return None
    at = int(found[np.argmax(jump[found])])
    bounds = share_interval(int(beyond[at]), total)
    middle = int(np.searchsorted(running, running[at] + (held.count - running[at] + 1) // 2))
    return Gap(
        float(held.high[at]),
        float(held.low[at + 1]),
        float(share[at]),
        bounds[0],
        bounds[1],
        float(held.high[min(middle, running.size - 1)]),
        percentile,
    )


# ------------------------------------------------------------
# Two distributions as wholes: the shift of every percentile, and the probability that one side's
# request is the faster.


@dataclass(frozen=True)
class Superiority:
    """Chance that a request of the new side is faster than one of the base: 0.5 where neither is.

    Attributes
    ----------
    value : float
        P(new < base) + ½ P(equal), ties being requests of overlapping buckets.
    low, high : float
        Bounds if all ties went against the new side, or for it.
    """

    value: float
    low: float
    high: float


def superiority(base: Counted, new: Counted) -> Superiority:
    """Return the probability that a request of `new` is faster than one of `base`."""
    sides = [side.occupied().at_worst() for side in (base, new)]
    pairs = float(sides[0].cumulative[-1]) * float(sides[1].cumulative[-1])
    faster, slower = (
        _sure_wins(a, b) / pairs for a, b in ((sides[1], sides[0]), (sides[0], sides[1]))
    )
    high = max(faster, 1 - slower)  # rounding must not turn the bracket over
    return Superiority((faster + high) / 2, faster, high)


def _sure_wins(fast: Counted, slow: Counted) -> float:
    """Pairs in which a value of `fast` surely lies below one of `slow`."""
    running = np.concatenate(([0.0], np.cumsum(fast.counts.astype(np.float64))))
    # An upper edge that is the next bucket's lower one belongs to the lower bucket, unless the buckets have no width.
    touch = (slow.high > slow.low) & np.isfinite(slow.low)
    strictly = np.searchsorted(fast.high, slow.low, "left")
    below = np.where(touch, np.searchsorted(fast.high, slow.low, "right"), strictly)
    return float((running[below] * slow.counts).sum())


@dataclass(frozen=True, eq=False)
class Shift:
    """The whole shift function: how each percentile changed, with a band that holds for all at once.

    Attributes
    ----------
    percentile, ratio, low, high : ndarray of float64, shape (p,)
        Ratio of new to base, and the simultaneous band.
    """

    percentile: Floats
    ratio: Floats
    low: Floats
    high: Floats


def shift(
    base: Counted,
    new: Counted,
    percentiles: ArrayLike,
    *,
    confidence: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> Shift:
    """Return the ratio of each percentile, with a simultaneous band.

    The band is as many standard errors wide, on a logarithmic scale, as the largest deviation of a replicate from the
    point has in `confidence` of the replicates (max-t bootstrap), joined with the buckets. Percentiles that either
    sample does not support are left out.
    """
    tables = [percentile_table(side, percentiles, confidence) for side in (base, new)]
    held = (
        tables[0].supported
        & tables[1].supported
        & (tables[0].bucket_low > 0)
        & (tables[1].bucket_low > 0)
    )
    p = tables[0].percentile[held]
    rng = np.random.default_rng(seed)
    draws = [draw_percentiles(side, p, replicates, rng) for side in (base, new)]
    logs = [
        np.log(np.maximum((d.low + np.where(np.isinf(d.high), d.low, d.high)) / 2, 1e-300))
        for d in draws
    ]
    spread = logs[1] - logs[0]
    error = np.maximum(spread.std(axis=0), 1e-12)
    farthest = (np.abs(spread - spread.mean(axis=0)) / error).max(axis=1, initial=0.0)
    reach = float(np.quantile(farthest, confidence)) if p.size else 0.0
    ratio = tables[1].value[held] / tables[0].value[held]
    least = tables[1].bucket_low[held] / tables[0].bucket_high[held]
    most = tables[1].bucket_high[held] / tables[0].bucket_low[held]
    return Shift(p, ratio, least * np.exp(-reach * error), most * np.exp(reach * error))


# ------------------------------------------------------------
# Two distributions side by side: how much each statistic changed, and how sure that is.
#
# One run per side says how much two *runs* differ, not two systems: runs of the same system differ, too, and with a million
# requests any such difference is "significant". So intervals of single runs hold for their requests only, unless
# `run_noise` says by how much runs differ; several runs per side are compared in `latencykit.analysis.compare`.

_MAXIMUM = (
    "the maximum grows with the number of requests and the length of a run: it is shown, not judged"
)


def compare_counts(
    base: Counted,
    new: Counted,
    percentiles: Sequence[float],
    means: Sequence[str] = ("mean",),
    *,
    confidence: float = 0.95,
    run_noise: float | None = None,
    corrected: bool = False,
    dependence: tuple[Dependence | None, Dependence | None] = (None, None),
    replicates: int = 1000,
    seed: int = 0,
) -> list[Change]:
    """Return the change of each statistic between two runs."""
    rng = np.random.default_rng(seed)
    sides = (
        _Side(base.occupied(), dependence[0], replicates, rng),
        _Side(new.occupied(), dependence[1], replicates, rng),
    )
    groups = [_percentiles(sides, percentiles, confidence)]
    if means:
        groups.append(_means(sides, means))
    gap = next((gap for gap in groups[0].gaps if gap is not None), None)
    if gap is not None:
        groups.append(_modes(sides, gap))
    noise = np.exp(rng.normal(0.0, math.sqrt(2) * (run_noise or 0.0), (replicates, 1)))
    rows = [row for group in groups for row in _rows(group, noise, confidence, corrected)]
    notes = [note for group in groups for note in group.notes]
    judged = [k for k, row in enumerate(rows) if not math.isnan(row.p_value)]
    adjusted = np.full(len(rows), np.nan)
    adjusted[judged] = holm([rows[k].p_value for k in judged])
    return [row.judged(float(adjusted[k]), confidence, notes[k]) for k, row in enumerate(rows)]


@dataclass(frozen=True, eq=False)
class _Group:
    """Statistics of one kind: their values, replicates, and at which ends each side's sample bounds them."""

    names: list[str]
    points: tuple[Floats, Floats]
    draws: tuple[Draws, Draws]
    bounded: tuple[tuple[Flags, Flags], tuple[Flags, Flags]]
    judged: list[bool]
    notes: list[str]
    gaps: list[Gap | None]


@dataclass(frozen=True, eq=False)
class _Side:
    """One run: its counts, how its requests depend on each other, and replicates of its statistics."""

    counted: Counted
    dependence: Dependence | None
    replicates: int
    rng: np.random.Generator

    def percentiles(self, p: Floats, supported: Flags) -> tuple[Draws, tuple[Flags, Flags]]:
        """Replicates, and whether there is a lower and an upper bound."""
        draws = draw_percentiles(self.counted, p, self.replicates, self.rng, self.dependence)
        if self.dependence is None:
            return draws, (np.ones(p.size, np.bool_), supported)
        known = self.dependence.resolved(p)
        return draws, (known, known & supported & (self.dependence.events(p) >= LEAST_EVENTS))

    def means(
        self, ranks: Sequence[tuple[float, float]], values: tuple[Floats, Floats]
    ) -> tuple[Draws, tuple[Flags, Flags]]:
        """Replicates of means between ranks, and whether there is a lower and an upper bound."""
        if self.dependence is None:
            return draw_means(self.counted, list(ranks), self.replicates, self.rng), _sure(
                len(ranks)
            )
        return self._shifted(
            values, np.stack([self.dependence.shifts(*one, ENDS) for one in ranks])
        )

    def share(self, cut: float) -> tuple[Draws, tuple[Flags, Flags]]:
        """Replicates of the share of the requests above a value, and whether there is a lower and an upper bound."""
        total = self.counted.total
        share = _beyond(self.counted, cut).total / total
        if self.dependence is None:
            drawn = self.rng.binomial(total, share, (self.replicates, 1)) / total
            return Draws(drawn, drawn), _sure(1)
        shifts = share * (self.dependence.factors(self.dependence.value > cut, ENDS) - 1)
        return self._shifted((np.array([share]), np.array([share])), shifts[None, :])

    def _shifted(
        self, values: tuple[Floats, Floats], shifts: Floats
    ) -> tuple[Draws, tuple[Flags, Flags]]:
        known, closed = ~np.isnan(shifts[:, 0]), np.isfinite(shifts[:, -1])
        return draw_shifts(values, shifts, self.replicates, self.rng), (known, known & closed)


def _sure(number: int) -> tuple[Flags, Flags]:
    return np.ones(number, np.bool_), np.ones(number, np.bool_)


def _percentiles(
    sides: tuple[_Side, _Side], percentiles: Sequence[float], confidence: float
) -> _Group:
    p = np.asarray(percentiles, np.float64)
    tables = [percentile_table(side.counted, p, confidence) for side in sides]
    (first, left), (second, right) = (
        side.percentiles(p, one.supported) for side, one in zip(sides, tables, strict=True)
    )
    gaps = [
        next((gap for side in sides if (gap := gap_at(side.counted, q)) is not None), None)
        for q in p.tolist()
    ]
    notes = [
        gap.words if gap else _MAXIMUM if q == 100 else ""
        for q, gap in zip(p.tolist(), gaps, strict=True)
    ]
    judged = [q < 100 and gap is None for q, gap in zip(p.tolist(), gaps, strict=True)]
    names = [f"p{format_percentile(q)}" for q in p.tolist()]
    return _Group(
        names,
        (tables[0].value, tables[1].value),
        (first, second),
        (left, right),
        judged,
        notes,
        gaps,
    )


def _means(sides: tuple[_Side, _Side], means: Sequence[str]) -> _Group:
    trims = [_ranks_of(name) for name in means]
    found = [[trimmed(side.counted, _spec(name)) for name in means] for side in sides]
    points = [np.array([one.value for one in part]) for part in found]
    ends = [
        (np.array([one.low for one in part]), np.array([one.high for one in part]))
        for part in found
    ]
    for side, point, end in zip(sides, points, ends, strict=True):
        if "mean" in means and math.isfinite(
            side.counted.mean
        ):  # stated by the tool: no bucket knows better
            k = means.index("mean")
            point[k] = end[0][k] = end[1][k] = side.counted.mean
    (first, left), (second, right) = (
        side.means(trims, end) for side, end in zip(sides, ends, strict=True)
    )
    for side, drawn in zip(sides, (first, second), strict=True):
        if side.dependence is None and "mean" in means and math.isfinite(side.counted.mean):
            k, counted = means.index("mean"), side.counted
            noise = side.rng.normal(
                0.0, _deviation(counted) / math.sqrt(max(counted.count, 1)), side.replicates
            )
            drawn.low[:, k] = drawn.high[:, k] = np.maximum(counted.mean + noise, counted.low[0])
    n = len(means)
    return _Group(
        list(means),
        (points[0], points[1]),
        (first, second),
        (left, right),
        [True] * n,
        [""] * n,
        [None] * n,
    )


def _deviation(side: Counted) -> float:
    """The standard deviation that the source states, or the most that its buckets allow."""
    if math.isfinite(side.std):
        return side.std
    farthest = np.maximum(np.abs(side.low - side.mean), np.abs(side.high - side.mean))
    return math.sqrt(float(np.average(farthest**2, weights=side.counts)))


def _modes(sides: tuple[_Side, _Side], gap: Gap) -> _Group:
    """Weight of the slow mode, and its median where both sides have one."""
    cut = math.sqrt(max(gap.below, 0.0) * gap.above)
    slow = [_beyond(side.counted, cut) for side in sides]
    points = [
        np.array([part.total / side.counted.total]) for part, side in zip(slow, sides, strict=True)
    ]
    found, names = [side.share(cut) for side in sides], ["slow share"]
    if all(part.total for part in slow):
        names.append("slow median")
        for k, (side, part) in enumerate(zip(sides, slow, strict=True)):
            middle = np.array(
                [100 - 50 * float(points[k][0])]
            )  # the median of what is slow, among all
            if side.dependence is None:
                draws, bounded = draw_percentiles(part, [50], side.replicates, side.rng), _sure(1)
            else:
                draws, bounded = side.percentiles(middle, np.ones(1, np.bool_))
            share, sure = found[k]
            joined = Draws(np.c_[share.low, draws.low], np.c_[share.high, draws.high])
            found[k] = joined, (np.append(sure[0], bounded[0]), np.append(sure[1], bounded[1]))
            points[k] = np.append(points[k], percentile_table(part, [50]).value)
    (first, left), (second, right) = found
    n = len(names)
    return _Group(
        names,
        (points[0], points[1]),
        (first, second),
        (left, right),
        [True] * n,
        [""] * n,
        [None] * n,
    )


def _beyond(counted: Counted, cut: float) -> Counted:
    """The part of the counts above a value, censored ones included where they are."""
    held = counted.high > cut
    return Counted(
        counted.low[held],
        counted.high[held],
        counted.counts[held],
        counted.middle[held],
        counted.censored,
        counted.limit,
    )


def _spec(name: str) -> str:
    return "TM(0%:100%)" if name == "mean" else name


def _ranks_of(name: str) -> tuple[float, float]:
    trim = parse_trim(_spec(name))
    if trim.kind != "TM" or not trim.by_rank:
        raise InvalidArgumentError(
            f"{name!r} cannot be compared; compare percentiles, the mean, or trimmed means such as tm99"
        )
    return float(trim.low), float(trim.high)


def _rows(group: _Group, noise: Floats, confidence: float, corrected: bool) -> list[Change]:
    """Point, interval and probability of every change, ratios and differences alike."""
    base, new = group.draws
    one, two = group.points
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio_low = np.nan_to_num(new.low / base.high * noise, nan=0.0, posinf=np.inf)
        ratio_high = np.nan_to_num(new.high / base.low * noise, nan=np.inf, posinf=np.inf)
        change = two / one - 1
        step_low = np.nan_to_num(
            new.low * noise - base.high, nan=-np.inf, neginf=-np.inf, posinf=np.inf
        )
        step_high = np.nan_to_num(
            new.high * noise - base.low, nan=np.inf, neginf=-np.inf, posinf=np.inf
        )
    tail = (1 - confidence) / 2
    low, step = (
        np.quantile(part, tail, axis=0, method="inverted_cdf") for part in (ratio_low - 1, step_low)
    )
    high, stop = (
        np.quantile(part, 1 - tail, axis=0, method="inverted_cdf")
        for part in (ratio_high - 1, step_high)
    )
    (base_low, base_high), (new_low, new_high) = group.bounded
    left, right = (
        sure & np.array(not corrected) for sure in (base_high & new_low, base_low & new_high)
    )
    low, step = np.where(left, low, -1.0), np.where(left, step, -np.inf)
    high, stop = np.where(right, high, np.inf), np.where(right, stop, np.inf)
    slower, faster = ((part <= 0).sum(axis=0) + 1 for part in (ratio_low - 1, 1 - ratio_high))
    chance = np.minimum(1.0, 2.0 * np.minimum(slower, faster) / (len(noise) + 1))
    chance = np.where(np.where(slower < faster, left, right), chance, 1.0)
    chance = np.where(np.array(group.judged) & np.array(not corrected), chance, np.nan)
    columns = (one, two, change, low, high, two - one, step, stop, chance)
    return [
        Change.of(name, [float(column[k]) for column in columns])
        for k, name in enumerate(group.names)
    ]


# ------------------------------------------------------------
# Several runs per side: the samples are the runs, not their requests.
#
# Pooled requests of identical systems differ "significantly" in every second comparison, because each run has its own
# luck. Here every run gives one number per statistic, and the two groups of numbers are compared by their ranks, which one
# run with a stall cannot sway.

_MOST_EXACT = 20_000  # relabellings; more are drawn


@dataclass(frozen=True)
class RunsComparison:
    """Groups of runs, compared.

    Attributes
    ----------
    changes : list of Change
        `base` and `new` are medians over the runs, `change` the median of all ratios of a new run to a base run.
    verdict : {"same", "better", "worse", "mixed", "inconclusive"}
    reasons : tuple of str
        What kept the comparison from deciding, or parts of it.
    """

    changes: list[Change]
    verdict: Verdict
    reasons: tuple[str, ...]


def least_p(base_runs: int, new_runs: int) -> float:
    """Return the smallest two-sided p-value that an exact test of so many runs can give."""
    return min(1.0, 2.0 / math.comb(base_runs + new_runs, base_runs))


def runs_needed(alpha: float = 0.05) -> int:
    """Return how many runs per side it takes before a test at level `alpha` can ever fire."""
    return next(n for n in itertools.count(2) if least_p(n, n) <= alpha)


def compare_runs(
    base: ArrayLike,
    new: ArrayLike,
    statistics: Sequence[str],
    *,
    confidence: float = 0.95,
    margin: float = 0.05,
    seed: int = 0,
) -> RunsComparison:
    """Compare two groups of runs.

    The test is Mann and Whitney's rank sum over all ways to label the runs, so that its p-values are exact. Across
    statistics they are adjusted by stepping down through the same relabellings (Westfall and Young, 1993): what Holm's
    procedure does, but percentiles of one run go together, and that is taken into account. The interval
    of a ratio is Hodges and Lehmann's.
    """
    sides = [np.atleast_2d(np.asarray(side, np.float64)) for side in (base, new)]
    if any(side.shape[1] != len(statistics) for side in sides):
        raise InvalidArgumentError(
            f"every run needs {len(statistics)} numbers, one for each of {', '.join(statistics)}"
        )
    pooled = np.concatenate(sides)
    runs, reasons = [len(side) for side in sides], []
    whole = np.logical_not(np.isnan(pooled).any(axis=0))
    left = np.asarray(statistics)[~whole].tolist()
    if left:
        reasons.append(f"not every run supports {', '.join(left)}: not judged")
    needed, alpha = runs_needed(1 - confidence), 1 - confidence
    enough = min(runs) >= needed
    if not enough:
        reasons.append(
            f"{runs[0]} and {runs[1]} runs cannot decide at the {100 * alpha:.2g} % level: the smallest p-value they "
            f"can give is {least_p(*runs):.2g}; measure at least {needed} runs per side"
        )
    judged = np.flatnonzero(whole & (np.array(statistics) != "p100"))
    chances = np.full(len(statistics), np.nan)
    if judged.size and enough:
        chances[judged] = _relabelled(pooled[:, judged], runs[0], seed)
    changes = [
        _change(name, sides[0][:, k], sides[1][:, k], confidence).judged(
            float(chances[k]), confidence
        )
        for k, name in enumerate(statistics)
    ]
    return RunsComparison(changes, verdict(changes, margin, noise_known=enough), tuple(reasons))


def _relabelled(pooled: Floats, first: int, seed: int) -> Floats:
    """Adjusted p-value of each column, over all (or 20,000 drawn) ways to call so many rows the first group."""
    rows = len(pooled)
    order = _mid_ranks(pooled)
    if math.comb(rows, first) <= _MOST_EXACT:
        chosen = np.array(list(itertools.combinations(range(rows), first)), np.int64)
    else:
        rng = np.random.default_rng(seed)
        drawn = np.argsort(rng.random((_MOST_EXACT - 1, rows)), axis=1)[:, :first]
        chosen = np.concatenate((np.arange(first)[None, :], drawn))
    sums = order[chosen].sum(axis=1)
    spread = np.maximum(sums.std(axis=0), 1e-12)
    away = np.abs(sums - first * (rows + 1) / 2) / spread
    seen = away[0]  # the first relabelling is the one that was measured
    down = np.argsort(-seen, kind="stable")
    rest = np.maximum.accumulate(away[:, down[::-1]], axis=1)[:, ::-1]
    out = np.empty(seen.size)
    out[down] = np.maximum.accumulate((rest >= seen[down] - 1e-9).mean(axis=0))
    return out


def _mid_ranks(pooled: Floats) -> Floats:
    """Ranks of each column from 1, equal values sharing theirs."""
    below = (pooled[:, None, :] > pooled[None, :, :]).sum(axis=1)
    level = (pooled[:, None, :] == pooled[None, :, :]).sum(axis=1)
    return np.asarray(below + (level + 1) / 2)


def rank_sum_null(first: int, second: int) -> Floats:
    """Return the probability of each value 0 … first × second of the Mann–Whitney statistic without a difference."""
    # U is a sum over the second group of how many of the first lie below: a Gaussian binomial coefficient.
    ways = np.zeros(first * second + 1)
    ways[0] = 1.0
    for k in range(1, second + 1):
        grown = ways.copy()
        grown[first + k :] -= ways[: grown.size - first - k] if first + k < grown.size else 0.0
        for start in range(k):
            grown[start::k] = np.cumsum(grown[start::k])
        ways = grown
    return np.asarray(ways / ways.sum())


def _change(name: str, base: Floats, new: Floats, confidence: float) -> Change:
    """Medians, and Hodges and Lehmann's interval of the ratio and of the difference."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.sort((new[:, None] / base[None, :]).ravel()) - 1
    steps = np.sort((new[:, None] - base[None, :]).ravel())
    out = int(
        np.searchsorted(
            np.cumsum(rank_sum_null(base.size, new.size)), (1 - confidence) / 2 + 1e-12, "right"
        )
    )
    ends = [-1.0, math.inf, -math.inf, math.inf]
    if out >= 1 and not np.isnan(steps).any():
        ends = [float(part[at]) for part in (ratios, steps) for at in (out - 1, -out)]
    middle = (float(np.median(base)), float(np.median(new)), float(np.median(ratios)))
    return Change.of(
        name, [*middle, ends[0], ends[1], float(np.median(steps)), ends[2], ends[3], math.nan]
    )


# ------------------------------------------------------------
# Two systems side by side: what changed, how sure that is, and whether they may be compared at
# all.

_PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
_MEANS = ("mean", "tm99")
_PRINTED = 12
"""Percentiles that somebody chose to print; more are the rows of a spectrum."""


@dataclass(frozen=True, eq=False)
class Comparison(Value):
    """What changed from one side to the other.

    Attributes
    ----------
    changes : tuple of Change
        One a statistic: percentiles first, then means, then what stands for a percentile between two modes.
    basis : {"requests", "runs"}
        What the intervals hold for: the requests of one run per side, or the runs of several.
    verdict : {"same", "better", "worse", "mixed", "inconclusive"}
    reasons : tuple of str
        What kept the comparison from deciding, or parts of it.
    warnings : tuple of str
        What differs between the two measurements besides the system.
    faster : float
        Chance (0..1) that a request of the new side is faster than one of the base; NaN for several runs.
    unit : str
        Unit of the values.
    runs : tuple of two ints
        Runs a side.
    run_noise : float or None
        By how much runs were said to differ; single runs only.
    faster_between : tuple of two floats
        What `faster` is at least and at most, given the buckets.
    """

    changes: tuple[Change, ...]
    basis: Literal["requests", "runs"]
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    faster: float = math.nan
    unit: str = "ns"
    runs: tuple[int, int] = (1, 1)
    run_noise: float | None = None
    faster_between: tuple[float, float] = (math.nan, math.nan)

    @property
    def table(self) -> pd.DataFrame:
        """One row per statistic: base, new, relative change with its interval, difference with its interval, significance."""
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.changes]).set_index("statistic")

    def failed(self, conditions: Iterable[str | Condition]) -> list[str]:
        """Return the conditions (``"p99.9 > +5%"``) that are surely met, decided on the ends of the intervals.

        Raises
        ------
        InvalidArgumentError
            For a condition that cannot be read, or on a statistic that was not compared.
        """
        parsed = [one if isinstance(one, Condition) else parse_condition(one) for one in conditions]
        held = {row.statistic: row for row in self.changes}
        unknown = [one for one in parsed if one.statistic not in held]
        if unknown:
            raise InvalidArgumentError(
                f"{unknown[0].text!r} judges {unknown[0].statistic}, which was not compared; these were: {', '.join(held)}"
            )
        return [one.text for one in parsed if one.holds(held[one.statistic], self.unit)]

    def __repr__(self) -> str:
        return f"Comparison({self.verdict}, by {self.basis}, {len(self.changes)} statistics)"


def compare(
    base: Runs, new: Runs, *, percentiles: Sequence[float] | None = None, means: Sequence[str] = _MEANS, confidence: float = 0.95,
    run_noise: float | None = None, margin: float = 0.05, also: Sequence[str] = (), replicates: int = 1000, seed: int = 0,
) -> Comparison:  # fmt: skip
    """Compare two runs, or several runs per side.

    Parameters
    ----------
    base, new : data type, or sequence or mapping of data types
        Several a side are runs of one system each.
    percentiles : sequence of float, optional
        By default those that every sample supports, and the maximum.
    means : sequence of str
        ``"mean"`` and trimmed means between ranks (``"tm99"``, ``"TM(:99%)"``).
    confidence : float, default 0.95
    run_noise : float, optional
        Relative standard deviation of a statistic from run to run (0.03 for 3 %). One run per side says nothing of two
        systems without it.
    margin : float, default 0.05
        Changes that surely lie within ± `margin` are called the same.
    also : sequence of str
        Further statistics, supported or not, by name (``"p99.99"``, ``"tm95"``): those that conditions judge.
    replicates, seed : int
        Of the bootstrap.

    Returns
    -------
    Comparison

    Raises
    ------
    IncompatibleDataError
        Where bare numbers stand on one side and times on the other.
    InvalidArgumentError
        For an empty side.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> a, b = (Histogram.of(rng.normal(mean, 1e5, 5000)) for mean in (10e6, 11e6))
    >>> found = compare(a, b)
    >>> found.basis, found.verdict, round(float(found.table.change["p50"]), 2)
    ('requests', 'inconclusive', 0.1)
    >>> compare(a, b, run_noise=0.01).verdict
    'worse'
    """
    if (
        not 0 < confidence < 1
        or (run_noise is not None and not 0 <= run_noise < 1)
        or not margin >= 0
    ):
        raise InvalidArgumentError(
            "a confidence lies between 0 and 1, the noise of runs from 0 to below 1, and a margin is 0 or more"
        )
    given = _listed(base, "base"), _listed(new, "new")
    evidence: list[Any] = (
        [_evidence(side[0]) for side in given]
        if len(given[0]) == len(given[1]) == 1
        else [None, None]
    )
    if None in evidence:
        sides = [_held(one) for one in given[0]], [_held(one) for one in given[1]]
    else:
        sides = (
            [histogram_of(evidence[0].whole, "a comparison")],
            [histogram_of(evidence[1].whole, "a comparison")],
        )
    units = {data.unit for side in sides for data in side}
    if len(units) > 1:
        raise IncompatibleDataError(
            f"values in {' and '.join(sorted(units))} cannot be compared; name the unit of the former with unit= (--unit)"
        )
    if max(len(side) for side in sides) > 1:
        found = _of_runs(
            sides, _statistics(sides, percentiles, means, also, confidence), confidence, margin
        )
    elif any(isinstance(data, Summary) for side in sides for data in side):
        found = _of_summaries(sides, _statistics(sides, percentiles, means, also, confidence))
    else:
        (one,), (two,) = sides
        wanted = _default(one, two, confidence) if percentiles is None else list(percentiles)
        wanted += [p for name in also if name[0] == "p" and (p := float(name[1:])) not in wanted]
        named = dict.fromkeys([*means, *(name for name in also if name[0] != "p")])
        dependence = tuple(side.dependence for side in evidence)
        found = _of_requests(
            one,
            two,
            dependence,
            sorted(wanted),
            list(named),
            confidence,
            run_noise,
            margin,
            replicates,
            seed,
        )
    runs = len(sides[0]), len(sides[1])
    return replace(found, warnings=_warnings(sides), unit=units.pop(), runs=runs)


def _listed(given: Any, name: str) -> list[Any]:
    series = (
        [given]
        if hasattr(given, "run")
        else list(given.values())
        if hasattr(given, "values")
        else list(given)
    )
    if not series:
        raise InvalidArgumentError(f"the {name} side is empty; name at least one run")
    return series


def _held(data: Any) -> Side:
    if isinstance(data, Summary):
        return data.to_unit("ns") if data.unit in NANOSECONDS else data
    return histogram_of(data, "a comparison")


def _evidence(data: Any) -> Any:
    """How far the numbers of a single run can be trusted; None for a Summary, and for what is no measurement."""
    if isinstance(data, Summary) or not hasattr(data, "evidence"):
        return None
    return (data.to_unit("ns") if getattr(data, "unit", None) in NANOSECONDS else data).evidence()


def _default(one: Any, two: Any, confidence: float) -> list[float]:
    """The usual percentiles that both samples support and both sources pin down, those that both printed, and the maximum."""
    top = min(side.sample_limit(confidence) for side in (one, two))
    reported_percentiles = {
        p for p in one.reported_percentiles[0] if p in two.reported_percentiles[0] and 0 < p < 100
    }
    wanted = sorted(
        p
        for p in {
            *_PERCENTILES,
            *(reported_percentiles if len(reported_percentiles) <= _PRINTED else ()),
        }
        if p <= top
    )
    rows = zip(*(side.percentile_rows(wanted, confidence) for side in (one, two)), strict=True)
    known = [a.percentile for a, b in rows if a.resolved and b.resolved]
    return [*(known or wanted), 100.0]


def _statistics(
    sides: tuple[list[Side], list[Side]], percentiles: Sequence[float] | None, means: Sequence[str], also: Sequence[str],
    confidence: float,
) -> list[str]:  # fmt: skip
    """Names of what to compare; by default what every run holds and supports."""
    every = [data for side in sides for data in side]
    asked = [*(f"p{format_percentile(p)}" for p in (percentiles or ())), *also]
    wanted = (
        [] if percentiles is not None else [f"p{format_percentile(p)}" for p in _printed(every)]
    )
    held = [
        name
        for name in (*wanted, "p100", *means)
        if not any(math.isnan(statistic_of(data, name, confidence)) for data in every)
    ]
    found = list(dict.fromkeys([*asked, *held]))
    if not found:
        raise DataNotAvailableError(
            "the two sides hold no statistic in common; read outputs that keep the samples or a histogram"
        )
    return sorted(
        found, key=lambda name: (name[0] != "p", float(name[1:]) if name[0] == "p" else 0)
    )


def _printed(series: Sequence[Side]) -> list[float]:
    """The usual percentiles, and others that a summary holds."""
    return sorted(
        {
            *_PERCENTILES,
            *(
                p
                for data in series
                if isinstance(data, Summary)
                for p in data.reported_percentiles
                if 0 < p < 100
            ),
        }
    )


def _of_runs(
    sides: tuple[list[Side], list[Side]], names: list[str], confidence: float, margin: float
) -> Comparison:
    tables = [
        [[statistic_of(data, name, confidence) for name in names] for data in side]
        for side in sides
    ]
    found = compare_runs(tables[0], tables[1], names, confidence=confidence, margin=margin)
    return Comparison(tuple(found.changes), "runs", found.verdict, found.reasons)


def _of_summaries(sides: tuple[list[Side], list[Side]], names: list[str]) -> Comparison:
    """Printed numbers have no intervals."""
    rows = []
    for name in names:
        base, new = (statistic_of(side[0], name) for side in sides)
        change = new / base - 1 if base else math.nan
        rows.append(
            Change.of(
                name, [base, new, change, -1.0, math.inf, new - base, -math.inf, math.inf, math.nan]
            )
        )
    why = "printed numbers have no intervals: compare outputs that keep the samples or a histogram, or several runs per side"
    return Comparison(tuple(rows), "requests", "inconclusive", (why,))


def _of_requests(
    base: Any, new: Any, dependence: Any, percentiles: list[float], means: list[str], confidence: float, run_noise: float | None,
    margin: float, replicates: int, seed: int,
) -> Comparison:  # fmt: skip
    corrected = any(side.run.corrected in ("us", "tool") for side in (base, new))
    options: dict[str, Any] = {
        "run_noise": run_noise,
        "corrected": corrected,
        "replicates": replicates,
        "seed": seed,
    }
    options["dependence"] = dependence
    rows = compare_counts(
        base.counted, new.counted, percentiles, means, confidence=confidence, **options
    )
    rows = [
        row
        if row.statistic.startswith("slow")
        else row.between(*(_known(s, row) for s in (base, new)))
        for row in rows
    ]
    reasons = []
    if run_noise is None:
        reasons.append(
            "one run per side cannot tell a change of the system from how runs differ: the intervals hold for these requests "
            "only; measure several runs per side, or say what runs differ by with run_noise (--run-noise 3%)"
        )
    if corrected:
        reasons.append(
            "counts that were corrected for coordinated omission have no intervals: changes are shown, not judged"
        )
    reasons += list(dict.fromkeys(row.note for row in rows if row.note and row.statistic != "p100"))
    said = verdict(rows, margin, noise_known=run_noise is not None and not corrected)
    better = superiority(base.counted, new.counted)
    ends = better.low, better.high
    return Comparison(
        tuple(rows),
        "requests",
        said,
        tuple(reasons),
        faster=better.value,
        run_noise=run_noise,
        faster_between=ends,
    )


def _known(side: Histogram, row: Change) -> tuple[float, float, float]:
    """The value of a statistic as the source states it, else as its buckets have it, and the edges that it lies between."""
    if row.percentile is not None:
        (found,) = side.percentile_rows([row.percentile])
        return found.value, found.bucket_low, found.bucket_high
    if row.statistic == "mean":
        low, high = side.bracket("mean")
        return side.mean if is_resolved(low, high) or side.censored else high, low, high
    trim = side.trimmed(row.statistic)
    return trim.value, trim.low, trim.high


def _warnings(sides: tuple[list[Side], list[Side]]) -> tuple[str, ...]:
    """What differs between the sides, and among the runs of each."""
    one, two = sides[0][0], sides[1][0]
    every = [data for side in sides for data in side]
    guessed = {data.run.unit_note for data in every} - {None}
    found = [f"of at least one side, {note}" for note in sorted(filter(None, guessed))]
    if guessed:
        found += unit_doubts([data.run for data in every], [_middle(data) for data in every])
    found += differences(one.run, two.run, one.count, two.count)
    for name, side in zip(("base", "new"), sides, strict=True):
        among = (
            text
            for data in side[1:]
            for text in differences(side[0].run, data.run, side[0].count, data.count)
        )
        found += [f"among the {name} runs, {text}" for text in list(dict.fromkeys(among))[:3]]
        copies = _copies(side)
        if copies:
            found.append(
                f"{copies} of the {len(side)} {name} runs repeat another's very numbers: copies say nothing of how runs differ"
            )
    if len(sides[0]) == len(sides[1]) == 1 and _alike(one, two):
        found.append("both sides hold the very same numbers")
    return tuple(found)


def _middle(data: Side) -> float:
    """The median, or the mean where that is all that is known, in ns where values have a unit."""
    factor = NANOSECONDS.get(data.unit, 1.0)
    known = (statistic_of(data, name) for name in ("p50", "mean"))
    return factor * next((value for value in known if not math.isnan(value)), math.nan)


def _copies(side: list[Side]) -> int:
    """How many runs of a side equal an earlier one; printed numbers may well do so by chance."""
    earlier: dict[bytes, Side] = {}
    held = [data for data in side if not isinstance(data, Summary) and data.count]
    return sum(
        _alike(earlier.setdefault(data.index.tobytes() + data.counts.tobytes(), data), data)
        for data in held
    ) - len(earlier)


def _alike(one: Side, two: Side) -> bool:
    if isinstance(one, Summary) or isinstance(two, Summary):
        return one == two
    return (
        one.buckets == two.buckets
        and np.array_equal(one.index, two.index)
        and np.array_equal(one.counts, two.counts)
    )
