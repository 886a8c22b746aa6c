"""Two distributions side by side: how much each statistic changed, and how sure that is.

One run a side says how much two *runs* differ, not two systems: runs of the same system differ, too, and with a million
requests any such difference is "significant". So intervals of single runs hold for their requests only, unless
`run_noise` says by how much runs differ; several runs a side are compared in `latencykit.stats.runs`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import UsageError
from latencykit.stats.bootstrap import ENDS, Draws, draw_means, draw_percentiles, draw_shifts
from latencykit.stats.counted import Counted
from latencykit.stats.dependence import LEAST_EVENTS
from latencykit.stats.modes import Gap, gap_at
from latencykit.stats.percentiles import percentile_table
from latencykit.stats.trim_spec import parse_trim
from latencykit.stats.trimmed import trimmed
from latencykit.stats.verdict import Change, holm
from latencykit.units import format_percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.stats.dependence import Dependence

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

__all__ = ["compare_counts"]

_MAXIMUM = "the maximum grows with the number of requests and the length of a run: it is shown, not judged"


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
    """Return the change of each statistic between two runs.

    Parameters
    ----------
    base, new : Counted
        In one unit.
    percentiles : sequence of float
    means : sequence of str
        ``"mean"`` and trimmed means between ranks (``"tm99"``, ``"TM(:99%)"``).
    confidence : float, default 0.95
    run_noise : float, optional
        Relative standard deviation of a statistic from run to run (0.03 for 3 %).
    corrected : bool, default False
        Counts of either side were filled up for coordinated omission: changes are shown without intervals.
    dependence : tuple, optional
        How the requests of each side depend on each other, where that is known.
    replicates, seed : int

    Returns
    -------
    list of Change
        Percentiles first. An interval holds the width of the buckets on both sides, so that a change below it is
        none; it is open where a side's sample does not bound the percentile. Shown and never judged are the maximum, and
        percentiles between two modes: there, ``"slow share"`` and ``"slow median"`` are compared instead, at the end.

    Examples
    --------
    >>> from latencykit.stats.counted import Counted
    >>> rng = np.random.default_rng(1)
    >>> sides = [Counted.of(rng.normal(mean, 1, 5000)) for mean in (100, 110)]
    >>> change = compare_counts(*sides, [50])[0]
    >>> round(change.change, 2), change.significant
    (0.1, True)
    """
    rng = np.random.default_rng(seed)
    sides = _Side(base.occupied(), dependence[0], replicates, rng), _Side(new.occupied(), dependence[1], replicates, rng)
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

    def means(self, ranks: Sequence[tuple[float, float]], values: tuple[Floats, Floats]) -> tuple[Draws, tuple[Flags, Flags]]:
        """Replicates of means between ranks, and whether there is a lower and an upper bound."""
        if self.dependence is None:
            return draw_means(self.counted, list(ranks), self.replicates, self.rng), _sure(len(ranks))
        return self._shifted(values, np.stack([self.dependence.shifts(*one, ENDS) for one in ranks]))

    def share(self, cut: float) -> tuple[Draws, tuple[Flags, Flags]]:
        """Replicates of the share of the requests above a value, and whether there is a lower and an upper bound."""
        total = self.counted.total
        share = _beyond(self.counted, cut).total / total
        if self.dependence is None:
            drawn = self.rng.binomial(total, share, (self.replicates, 1)) / total
            return Draws(drawn, drawn), _sure(1)
        shifts = share * (self.dependence.factors(self.dependence.value > cut, ENDS) - 1)
        return self._shifted((np.array([share]), np.array([share])), shifts[None, :])

    def _shifted(self, values: tuple[Floats, Floats], shifts: Floats) -> tuple[Draws, tuple[Flags, Flags]]:
        known, closed = ~np.isnan(shifts[:, 0]), np.isfinite(shifts[:, -1])
        return draw_shifts(values, shifts, self.replicates, self.rng), (known, known & closed)


def _sure(number: int) -> tuple[Flags, Flags]:
    return np.ones(number, np.bool_), np.ones(number, np.bool_)


def _percentiles(sides: tuple[_Side, _Side], percentiles: Sequence[float], confidence: float) -> _Group:
    p = np.asarray(percentiles, np.float64)
    tables = [percentile_table(side.counted, p, confidence) for side in sides]
    (first, left), (second, right) = (side.percentiles(p, one.supported) for side, one in zip(sides, tables, strict=True))
    gaps = [next((gap for side in sides if (gap := gap_at(side.counted, q)) is not None), None) for q in p.tolist()]
    notes = [gap.words if gap else _MAXIMUM if q == 100 else "" for q, gap in zip(p.tolist(), gaps, strict=True)]
    judged = [q < 100 and gap is None for q, gap in zip(p.tolist(), gaps, strict=True)]
    names = [f"p{format_percentile(q)}" for q in p.tolist()]
    return _Group(names, (tables[0].value, tables[1].value), (first, second), (left, right), judged, notes, gaps)


def _means(sides: tuple[_Side, _Side], means: Sequence[str]) -> _Group:
    trims = [_ranks_of(name) for name in means]
    found = [[trimmed(side.counted, _spec(name)) for name in means] for side in sides]
    points = [np.array([one.value for one in part]) for part in found]
    ends = [(np.array([one.low for one in part]), np.array([one.high for one in part])) for part in found]
    for side, point, end in zip(sides, points, ends, strict=True):
        if "mean" in means and math.isfinite(side.counted.mean):  # stated by the tool: no bucket knows better
            k = means.index("mean")
            point[k] = end[0][k] = end[1][k] = side.counted.mean
    (first, left), (second, right) = (side.means(trims, end) for side, end in zip(sides, ends, strict=True))
    for side, drawn in zip(sides, (first, second), strict=True):
        if side.dependence is None and "mean" in means and math.isfinite(side.counted.mean):
            k, counted = means.index("mean"), side.counted
            noise = side.rng.normal(0.0, _deviation(counted) / math.sqrt(max(counted.count, 1)), side.replicates)
            drawn.low[:, k] = drawn.high[:, k] = np.maximum(counted.mean + noise, counted.low[0])
    n = len(means)
    return _Group(list(means), (points[0], points[1]), (first, second), (left, right), [True] * n, [""] * n, [None] * n)


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
    points = [np.array([part.total / side.counted.total]) for part, side in zip(slow, sides, strict=True)]
    found, names = [side.share(cut) for side in sides], ["slow share"]
    if all(part.total for part in slow):
        names.append("slow median")
        for k, (side, part) in enumerate(zip(sides, slow, strict=True)):
            middle = np.array([100 - 50 * float(points[k][0])])  # the median of what is slow, among all
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
    return _Group(names, (points[0], points[1]), (first, second), (left, right), [True] * n, [""] * n, [None] * n)


def _beyond(counted: Counted, cut: float) -> Counted:
    """The part of the counts above a value, censored ones included where they are."""
    held = counted.high > cut
    return Counted(
        counted.low[held], counted.high[held], counted.counts[held], counted.middle[held], counted.censored, counted.limit
    )


def _spec(name: str) -> str:
    return "TM(0%:100%)" if name == "mean" else name


def _ranks_of(name: str) -> tuple[float, float]:
    trim = parse_trim(_spec(name))
    if trim.kind != "TM" or not trim.by_rank:
        raise UsageError(f"{name!r} cannot be compared; compare percentiles, the mean, or trimmed means such as tm99")
    return float(trim.low), float(trim.high)


def _rows(group: _Group, noise: Floats, confidence: float, corrected: bool) -> list[Change]:
    """Point, interval and chance of every change, ratios and differences alike."""
    base, new = group.draws
    one, two = group.points
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio_low = np.nan_to_num(new.low / base.high * noise, nan=0.0, posinf=np.inf)
        ratio_high = np.nan_to_num(new.high / base.low * noise, nan=np.inf, posinf=np.inf)
        change = two / one - 1
        step_low = np.nan_to_num(new.low * noise - base.high, nan=-np.inf, neginf=-np.inf, posinf=np.inf)
        step_high = np.nan_to_num(new.high * noise - base.low, nan=np.inf, neginf=-np.inf, posinf=np.inf)
    tail = (1 - confidence) / 2
    low, step = (np.quantile(part, tail, axis=0, method="inverted_cdf") for part in (ratio_low - 1, step_low))
    high, stop = (np.quantile(part, 1 - tail, axis=0, method="inverted_cdf") for part in (ratio_high - 1, step_high))
    (base_low, base_high), (new_low, new_high) = group.bounded
    left, right = (sure & np.array(not corrected) for sure in (base_high & new_low, base_low & new_high))
    low, step = np.where(left, low, -1.0), np.where(left, step, -np.inf)
    high, stop = np.where(right, high, np.inf), np.where(right, stop, np.inf)
    slower, faster = ((part <= 0).sum(axis=0) + 1 for part in (ratio_low - 1, 1 - ratio_high))
    chance = np.minimum(1.0, 2.0 * np.minimum(slower, faster) / (len(noise) + 1))
    chance = np.where(np.where(slower < faster, left, right), chance, 1.0)
    chance = np.where(np.array(group.judged) & np.array(not corrected), chance, np.nan)
    columns = (one, two, change, low, high, two - one, step, stop, chance)
    return [Change.of(name, [float(column[k]) for column in columns]) for k, name in enumerate(group.names)]
