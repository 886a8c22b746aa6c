"""`change_points`: the runs in a series after which a statistic changed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from latencykit import errors
from latencykit._arrays import as_positions
from latencykit._records import record
from latencykit._typing import Floats, PathOrFrame
from latencykit.analysis.given import as_data
from latencykit.core import Data
from latencykit.core.histogram import histogram_of, statistic_of
from latencykit.core.repr_html import listing_html
from latencykit.core.summary import Summary
from latencykit.core.trimmed import statistic_name
from latencykit.units import format_change

if TYPE_CHECKING:
    import pandas as pd


_MOST_RUNS = 5000  # distances of all pairs: 200 MB
_BATCH_CELLS = 4_000_000

_NOT_EXCHANGEABLE = (
    "successive runs resemble each other more than runs further apart (correlation {:.2f} within "
    "stretches): their order is not exchangeable, so that no change can be distinguished from drift"
)


@record()
class ChangePointRules:
    """How much drift passes for chance; chosen on the worlds of `tests.benchmarks`."""

    # standard errors of the run-to-run correlation: above it runs are not exchangeable
    max_correlation_errors: float = 2.2
    # standard errors by which it may be higher than estimated
    hidden_correlation_errors: float = 0.25


RULES = ChangePointRules()


@record()
class ChangePoint:
    """A change between two runs."""

    position: int  # first run after the change, from 0
    p_value: float  # probability of a split as clear if the runs were in random order
    before: float  # medians on either side, up to the next change points
    after: float

    @property
    def change(self) -> float:
        """Relative change of the median."""
        return self.after / self.before - 1 if self.before else float("nan")


class ChangePoints(list[ChangePoint]):
    """Change points in order."""

    exchangeable: bool = True  # runs between changes are in random order; if not, the list is empty
    note: str = ""  # why the list is empty

    @property
    def table(self) -> pd.DataFrame:
        """One row per change."""
        import pandas as pd

        names = [item.name for item in fields(ChangePoint)]
        rows = [[getattr(change, name) for name in names] for change in self]
        return pd.DataFrame(rows, columns=names).assign(change=[change.change for change in self])

    def _repr_html_(self) -> str:
        rows = [
            (f"run {change.position}", format_change(change.change), f"{change.p_value:.2g}")
            for change in self
        ]
        lines = [self.note or ("" if rows else "no change")]
        return listing_html("Change points", ("from", "change", "p"), rows, lines)


def change_positions(
    values: ArrayLike,
    *,
    alpha: float = 0.01,
    permutations: int = 499,
    min_runs: int = 5,
    seed: int = 0,
) -> ChangePoints:
    """Return the positions at which a series of runs changes its level or spread, in order."""
    # E-divisive (Matteson and James, 2014): the split with the largest energy distance between its
    # sides is tested by shuffling the stretch, and each side is searched again. Distances are
    # limited to ten times their median, so that one run with a stall does not make a change.
    #
    # Shuffling presupposes that runs without a change are in random order. A slow drift makes
    # successive runs alike and would pass for a change, so the correlation of successive residuals
    # (as normal scores, less the medians of their stretches, corrected for its bias) is examined:
    # where it is clear, no change is reported; where it is possible, a split also has to be clearer
    # than in series with that correlation and without a change.
    series = np.asarray(values, np.float64)
    if series.ndim != 1 or not np.isfinite(series).all():
        raise errors.InvalidArgumentError(
            "change points need one finite number per run; leave out runs without one"
        )
    if (1.0 / (permutations + 1)) > alpha or min_runs < 2:
        raise errors.InvalidArgumentError(
            f"{permutations} permutations cannot show a probability of {alpha:g}; it takes "
            f"{round(1 / alpha) - 1}"
        )
    if series.size > _MOST_RUNS:
        raise errors.InputTooLargeError(
            f"{series.size:,} runs are more than {_MOST_RUNS:,}; look at a part of them"
        )
    scale = np.log(series) if (series > 0).all() else series
    distance = np.abs(scale[:, None] - scale[None, :])
    pairs = distance[np.triu_indices(series.size, 1)]
    typical = float(np.median(pairs)) if series.size > 1 else 0.0
    if typical > 0:
        distance = np.minimum(distance, 10 * typical)
    if series.size < 2 * min_runs or not typical:
        return ChangePoints()
    splits = _splits(distance, alpha, permutations, min_runs, seed)
    edges = [0, *(position for position, _ in splits), series.size]
    parts = [scale[a:b] - np.median(scale[a:b]) for a, b in itertools.pairwise(edges)]
    # The correlation of successive residuals within stretches, by ranks, and its standard error.
    residual = np.concatenate(parts)
    stretch = np.repeat(np.arange(len(parts)), as_positions([part.size for part in parts]))
    n, normal = residual.size, NormalDist()
    scores = np.array([normal.inv_cdf((k + 0.5) / n) for k in range(n)])
    scores = scores[np.argsort(np.argsort(residual, kind="stable"))]
    scores -= (np.bincount(stretch, scores) / np.bincount(stretch))[stretch]
    same = stretch[1:] == stretch[:-1]
    raw = float((scores[1:] * scores[:-1])[same].sum() / max((scores**2).sum(), 1e-300))
    # Every fitted level lowers the correlation (Marriott and Pope, 1954), and so does the search.
    correlation = raw + (len(parts) + 1) * (1 + 3 * max(raw, 0.0)) / n
    error = 1 / math.sqrt(n)
    if correlation > RULES.max_correlation_errors * error:
        none = ChangePoints()
        none.exchangeable, none.note = False, _NOT_EXCHANGEABLE.format(correlation)
        return none
    possible = min(correlation + RULES.hidden_correlation_errors * error, 0.95)
    if splits and possible > 0:
        # The distribution of series with the residuals' values and this correlation.
        drifting = np.sort(residual), possible, 10 * typical
        splits = _splits(distance, alpha, permutations, min_runs, seed, drifting)
    edges = [0, *(position for position, _ in splits), series.size]
    levels = [float(np.median(series[a:b])) for a, b in itertools.pairwise(edges)]
    return ChangePoints(
        ChangePoint(position, p, levels[k], levels[k + 1]) for k, (position, p) in enumerate(splits)
    )


def _splits(
    distance: Floats,
    alpha: float,
    permutations: int,
    min_runs: int,
    seed: int,
    drifting: tuple[Floats, float, float] | None = None,
) -> list[tuple[int, float]]:
    """Positions and p-values of splits at the clearest position, as long as one is significant."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(-6, 6, 2401)
    # The normal distribution function, to 1e-4: enough to choose a rank.
    normal = [] if drifting is None else [NormalDist().cdf(z) for z in grid]
    splits: list[tuple[int, float]] = []
    stretches = [(0, len(distance))]
    while stretches:
        start, end = stretches.pop()
        n, part = end - start, distance[start:end, start:end]
        if n < 2 * min_runs:
            continue
        energies = _energies(part[None], min_runs)[0]
        best = float(energies.max())
        if best <= 0:
            continue
        as_clear, batch = 1, max(1, _BATCH_CELLS // (n * n))
        for first in range(0, permutations, batch):
            order = np.argsort(rng.random((min(batch, permutations - first), n)), axis=1)
            shuffled = part[order[:, :, None], order[:, None, :]]
            as_clear += int((_energies(shuffled, min_runs).max(axis=1) >= best * (1 - 1e-12)).sum())
        p_value = as_clear / (permutations + 1)
        if drifting is not None and p_value <= alpha:
            (residual, correlation, cut), as_clear = drifting, 1
            drift_rng = np.random.default_rng([seed, n])
            for first in range(0, permutations, batch):
                noise = drift_rng.standard_normal((min(batch, permutations - first), n))
                for k in range(1, n):
                    noise[:, k] *= math.sqrt(1 - correlation**2)
                    noise[:, k] += correlation * noise[:, k - 1]
                places = (np.interp(noise, grid, normal) * residual.size).astype(np.int64)
                values = residual[np.minimum(places, residual.size - 1)]
                apart = np.minimum(np.abs(values[:, :, None] - values[:, None, :]), cut)
                clear = _energies(apart, min_runs).max(axis=1) >= best * (1 - 1e-12)
                as_clear += int(clear.sum())
            p_value = max(p_value, as_clear / (permutations + 1))
        if p_value <= alpha:
            at = start + min_runs + int(energies.argmax())
            splits.append((at, p_value))
            stretches += [(start, at), (at, end)]
    return sorted(splits)


def _energies(distance: Floats, min_runs: int) -> Floats:
    """Energy of every split into stretches of at least `min_runs`, for a stack of distances."""
    n = distance.shape[-1]
    upper = np.triu(distance, 1)
    left = np.cumsum(upper.sum(axis=1), axis=1)  # pairs within the first k + 1
    right = np.cumsum(upper.sum(axis=2)[:, ::-1], axis=1)[:, ::-1]  # pairs within those from k on
    at = np.arange(min_runs, n - min_runs + 1, dtype=np.int64)
    within, beyond = left[:, at - 1], right[:, at]
    between = left[:, -1:] - within - beyond
    rest = n - at
    spread = (
        2 * between / (at * rest) - 2 * within / (at * (at - 1)) - 2 * beyond / (rest * (rest - 1))
    )
    return np.asarray(spread * at * rest / n)


# ------------------------------------------------------------
# The operation.


def change_points(
    runs: Sequence[Data | PathOrFrame | float] | Mapping[str, Data | PathOrFrame | float],
    statistic: str | float = "p99", *,
    alpha: float = 0.01, permutations: int = 499, min_runs: int = 5, seed: int = 0,
    unit: str | None = None,
) -> ChangePoints:  # fmt: skip
    """Find the runs after which a statistic changed, in order.

    Parameters
    ----------
    runs : sequence or mapping of data types, paths or frames, or sequence of numbers
        In order of time; numbers are the statistic of each run.
    statistic : str or float, default "p99"
        Of each run: a percentile, ``"mean"`` or a trimmed mean.
    alpha : float, default 0.01
        Significance level.
    permutations, min_runs, seed : int
        See `latencykit.analysis.change_points.change_positions`.
    unit : str, optional
        Of a path or frame whose numbers state none, as for `lk.read`.

    Returns
    -------
    ChangePoints
        A list of changes: position of the first run after it, the probability of a split as clear
        without a change, and the medians before and after. Empty where runs are not exchangeable,
        as its ``note`` says.

    Raises
    ------
    DataNotAvailableError
        Where a run does not have the statistic, or its sample does not support it.

    Examples
    --------
    >>> p99 = [10, 11, 10, 9, 10, 11] * 3 + [14, 15, 14, 13, 15, 14] * 3
    >>> [(c.position, round(c.change, 2)) for c in change_points(p99)]
    [(18, 0.4)]
    """
    given = runs.values() if isinstance(runs, Mapping) else runs
    errors.require(given, Iterable, "runs or numbers, oldest first: [run, run, …]")
    listed = list(given)
    name, values = statistic_name(str(statistic)), []
    for position, run in enumerate(listed):
        if isinstance(run, int | float | np.number):
            values.append(float(run))
            continue
        run = as_data(run, "a change point", unit)
        data = run if isinstance(run, Summary) else histogram_of(run, "a change point")
        values.append(statistic_of(data, name))
        if np.isnan(values[-1]):
            source = data.run.source or f"run {position}"
            raise errors.DataNotAvailableError(
                f"{source}: does not support {name}; choose a statistic that every run supports, "
                "such as p50 or mean"
            )
    return change_positions(
        values, alpha=alpha, permutations=permutations, min_runs=min_runs, seed=seed
    )
