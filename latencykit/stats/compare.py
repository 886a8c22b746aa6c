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
from latencykit.stats.bootstrap import Draws, draw_means, draw_percentiles
from latencykit.stats.counted import Counted
from latencykit.stats.modes import Gap, gap_at
from latencykit.stats.percentiles import percentile_table
from latencykit.stats.trim_spec import parse_trim
from latencykit.stats.trimmed import trimmed
from latencykit.stats.verdict import Change, holm
from latencykit.units import format_percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
    sides = base.occupied(), new.occupied()
    groups = [_percentiles(sides, percentiles, confidence, replicates, rng)]
    if means:
        groups.append(_means(sides, means, replicates, rng))
    gap = next((gap for gap in groups[0].gaps if gap is not None), None)
    if gap is not None:
        groups.append(_modes(sides, gap, replicates, rng))
    noise = np.exp(rng.normal(0.0, math.sqrt(2) * (run_noise or 0.0), (replicates, 1)))
    rows = [row for group in groups for row in _rows(group, noise, confidence, corrected)]
    notes = [note for group in groups for note in group.notes]
    judged = [k for k, row in enumerate(rows) if not math.isnan(row.p_value)]
    adjusted = np.full(len(rows), np.nan)
    adjusted[judged] = holm([rows[k].p_value for k in judged])
    return [row.judged(float(adjusted[k]), confidence, notes[k]) for k, row in enumerate(rows)]


@dataclass(frozen=True, eq=False)
class _Group:
    """Statistics of one kind: their values, replicates, and whether each side's sample bounds them."""

    names: list[str]
    points: tuple[Floats, Floats]
    draws: tuple[Draws, Draws]
    bounded: tuple[Flags, Flags]
    judged: list[bool]
    notes: list[str]
    gaps: list[Gap | None]


def _percentiles(
    sides: tuple[Counted, Counted], percentiles: Sequence[float], confidence: float, replicates: int, rng: np.random.Generator
) -> _Group:
    p = np.asarray(percentiles, np.float64)
    first, second = (percentile_table(side, p, confidence) for side in sides)
    draws = draw_percentiles(sides[0], p, replicates, rng), draw_percentiles(sides[1], p, replicates, rng)
    gaps = [next((gap for side in sides if (gap := gap_at(side, q)) is not None), None) for q in p.tolist()]
    notes = [gap.words if gap else _MAXIMUM if q == 100 else "" for q, gap in zip(p.tolist(), gaps, strict=True)]
    judged = [q < 100 and gap is None for q, gap in zip(p.tolist(), gaps, strict=True)]
    names = [f"p{format_percentile(q)}" for q in p.tolist()]
    return _Group(names, (first.value, second.value), draws, (first.supported, second.supported), judged, notes, gaps)


def _means(sides: tuple[Counted, Counted], means: Sequence[str], replicates: int, rng: np.random.Generator) -> _Group:
    trims = [_ranks_of(name) for name in means]
    first, second = (np.array([trimmed(side, _spec(name)).value for name in means]) for side in sides)
    draws = draw_means(sides[0], trims, replicates, rng), draw_means(sides[1], trims, replicates, rng)
    for side, points, drawn in zip(sides, (first, second), draws, strict=True):
        if "mean" in means and math.isfinite(side.mean):  # stated by the tool: no bucket knows better
            k = means.index("mean")
            noise = rng.normal(0.0, _deviation(side) / math.sqrt(max(side.count, 1)), replicates)
            points[k] = side.mean
            drawn.low[:, k] = drawn.high[:, k] = np.maximum(side.mean + noise, side.low[0])
    return _whole(list(means), (first, second), draws)


def _deviation(side: Counted) -> float:
    """The standard deviation that the source states, or the most that its buckets allow."""
    if math.isfinite(side.std):
        return side.std
    farthest = np.maximum(np.abs(side.low - side.mean), np.abs(side.high - side.mean))
    return math.sqrt(float(np.average(farthest**2, weights=side.counts)))


def _modes(sides: tuple[Counted, Counted], gap: Gap, replicates: int, rng: np.random.Generator) -> _Group:
    """Weight of the slow mode, and its median where both sides have one."""
    cut = math.sqrt(max(gap.below, 0.0) * gap.above)
    slow = [_beyond(side, cut) for side in sides]
    shares = [np.array([part.total / side.total]) for part, side in zip(slow, sides, strict=True)]
    drawn = [
        rng.binomial(side.total, float(share[0]), (replicates, 1)) / side.total for side, share in zip(sides, shares, strict=True)
    ]
    group = _whole(["slow share"], (shares[0], shares[1]), (Draws(drawn[0], drawn[0]), Draws(drawn[1], drawn[1])))
    if not all(part.total for part in slow):
        return group
    medians = [draw_percentiles(part, [50], replicates, rng) for part in slow]
    points = [np.append(share, percentile_table(part, [50]).value) for share, part in zip(shares, slow, strict=True)]
    both = [Draws(np.c_[d, m.low], np.c_[d, m.high]) for d, m in zip(drawn, medians, strict=True)]
    return _whole(["slow share", "slow median"], (points[0], points[1]), (both[0], both[1]))


def _whole(names: list[str], points: tuple[Floats, Floats], draws: tuple[Draws, Draws]) -> _Group:
    """Statistics that every sample bounds."""
    sure, n = np.ones(len(names), np.bool_), len(names)
    return _Group(names, points, draws, (sure, sure), [True] * n, [""] * n, [None] * n)


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
    left, right = (side & np.array(not corrected) for side in group.bounded)
    low, step = np.where(left, low, -1.0), np.where(left, step, -np.inf)
    high, stop = np.where(right, high, np.inf), np.where(right, stop, np.inf)
    slower, faster = ((part <= 0).sum(axis=0) + 1 for part in (ratio_low - 1, 1 - ratio_high))
    chance = np.minimum(1.0, 2.0 * np.minimum(slower, faster) / (len(noise) + 1))
    chance = np.where(left & right, chance, 1.0)
    chance = np.where(np.array(group.judged) & np.array(not corrected), chance, np.nan)
    columns = (one, two, change, low, high, two - one, step, stop, chance)
    return [Change.of(name, [float(column[k]) for column in columns]) for k, name in enumerate(group.names)]
