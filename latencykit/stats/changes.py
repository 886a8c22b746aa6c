"""Change points: after which of many runs a statistic became another."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import LimitError, UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["ChangePoint", "change_points"]

_MOST_RUNS = 5000  # distances of all pairs: 200 MB
_BATCH_CELLS = 4_000_000


@dataclass(frozen=True)
class ChangePoint:
    """A place between two runs.

    Attributes
    ----------
    position : int
        First run of what is new, from 0.
    p_value : float
        Chance of a split as clear as this if the runs of the stretch came in any order.
    before, after : float
        Medians of the stretches on either side, up to the next change points.
    """

    position: int
    p_value: float
    before: float
    after: float

    @property
    def change(self) -> float:
        """Relative change of the median."""
        return self.after / self.before - 1 if self.before else float("nan")


def change_points(
    values: ArrayLike, *, alpha: float = 0.01, permutations: int = 499, least: int = 5, seed: int = 0
) -> list[ChangePoint]:
    """Return where a series of runs changes its level or spread, in order.

    Parameters
    ----------
    values : array_like of float, shape (runs,)
        One number a run, such as its p99; runs in order of time. Positive numbers are compared by their logarithms.
    alpha : float, default 0.01
        Level at which a split is believed.
    permutations : int, default 499
    least : int, default 5
        Runs that a stretch has at least.
    seed : int, default 0

    Returns
    -------
    list of ChangePoint

    Raises
    ------
    UsageError
        Where a value is missing, or `permutations` cannot reach `alpha`.

    Notes
    -----
    E-divisive (Matteson and James, 2014): the split with the largest energy distance between its sides is tested by
    shuffling the stretch, and each side is searched again. Distances are cut at what ten medians of them are, so that
    one run with a stall is no change.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> runs = np.r_[rng.normal(100, 3, 30), rng.normal(110, 3, 30)]
    >>> [(c.position, round(c.change, 2)) for c in change_points(runs)]
    [(30, 0.1)]
    """
    series = np.asarray(values, np.float64)
    if series.ndim != 1 or not np.isfinite(series).all():
        raise UsageError("change points need one finite number a run; leave out runs without one")
    if (1.0 / (permutations + 1)) > alpha or least < 2:
        raise UsageError(f"{permutations} permutations cannot show a chance of {alpha:g}; it takes {round(1 / alpha) - 1}")
    if series.size > _MOST_RUNS:
        raise LimitError(f"{series.size:,} runs are more than {_MOST_RUNS:,}; look at a part of them")
    scale = np.log(series) if (series > 0).all() else series
    distance = np.abs(scale[:, None] - scale[None, :])
    typical = float(np.median(distance[np.triu_indices(series.size, 1)])) if series.size > 1 else 0.0
    if typical > 0:
        distance = np.minimum(distance, 10 * typical)
    rng = np.random.default_rng(seed)
    found: list[tuple[int, float]] = []
    stretches = [(0, series.size)]
    while stretches:
        start, end = stretches.pop()
        split = _best_split(distance[start:end, start:end], alpha, permutations, least, rng)
        if split is not None:
            found.append((start + split[0], split[1]))
            stretches += [(start, start + split[0]), (start + split[0], end)]
    found.sort()
    edges = [0, *(position for position, _ in found), series.size]
    levels = [float(np.median(series[a:b])) for a, b in itertools.pairwise(edges)] if series.size else []
    return [ChangePoint(position, p, levels[k], levels[k + 1]) for k, (position, p) in enumerate(found)]


def _best_split(
    distance: Floats, alpha: float, permutations: int, least: int, rng: np.random.Generator
) -> tuple[int, float] | None:
    """The clearest split and its p-value, if it is believed."""
    n = len(distance)
    if n < 2 * least:
        return None
    energies = _energies(distance[None], least)[0]
    best = float(energies.max())
    if best <= 0:
        return None
    as_clear, batch = 1, max(1, _BATCH_CELLS // (n * n))
    for first in range(0, permutations, batch):
        order = np.argsort(rng.random((min(batch, permutations - first), n)), axis=1)
        shuffled = distance[order[:, :, None], order[:, None, :]]
        as_clear += int((_energies(shuffled, least).max(axis=1) >= best * (1 - 1e-12)).sum())
    p_value = as_clear / (permutations + 1)
    return (least + int(energies.argmax()), p_value) if p_value <= alpha else None


def _energies(distance: Floats, least: int) -> Floats:
    """Energy of every split into two stretches of at least `least`, for a stack of distance matrices."""
    n = distance.shape[-1]
    upper = np.triu(distance, 1)
    left = np.cumsum(upper.sum(axis=1), axis=1)  # pairs within the first k + 1
    right = np.cumsum(upper.sum(axis=2)[:, ::-1], axis=1)[:, ::-1]  # pairs within those from k on
    at = np.arange(least, n - least + 1)
    within, beyond = left[:, at - 1], right[:, at]
    between = left[:, -1:] - within - beyond
    rest = n - at
    spread = 2 * between / (at * rest) - 2 * within / (at * (at - 1)) - 2 * beyond / (rest * (rest - 1))
    return np.asarray(spread * at * rest / n)
