"""Many runs in a row: after which of them a statistic became another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import NotHeldError
from latencykit.histogram import histogram_of, statistic_of
from latencykit.stats import changes
from latencykit.stats.conditions import statistic_name
from latencykit.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latencykit.stats.changes import ChangePoints

__all__ = ["change_points"]


def change_points(
    runs: Sequence[Any] | Mapping[str, Any], statistic: str | float = "p99", *, alpha: float = 0.01, permutations: int = 499,
    least: int = 5, seed: int = 0,
) -> ChangePoints:  # fmt: skip
    """Return where a series of runs changes, in order.

    Parameters
    ----------
    runs : sequence or mapping of rungs, or sequence of numbers
        In order of time; a number is a run's statistic itself.
    statistic : str or float, default "p99"
        Of each run: a percentile, ``"mean"`` or a trimmed mean.
    alpha : float, default 0.01
        Level at which a change is believed.
    permutations, least, seed : int
        See `latencykit.stats.changes.change_points`.

    Returns
    -------
    ChangePoints
        A list: position of the first run of what is new, the probability of so clear a split without a change, and
        the medians before and after. Empty where runs are not exchangeable, as its ``note`` says.

    Raises
    ------
    NotHeldError
        Where a run does not hold the statistic, or its sample does not support it.

    Examples
    --------
    >>> [(c.position, round(c.change, 2)) for c in change_points([10, 11, 10, 9, 10, 11] * 3 + [14, 15, 14, 13, 15, 14] * 3)]
    [(18, 0.4)]
    """
    listed = list(runs.values()) if hasattr(runs, "values") else list(runs)
    name = statistic_name(str(statistic))
    values = [float(one) if isinstance(one, int | float | np.number) else _of_run(one, k, name) for k, one in enumerate(listed)]
    return changes.change_points(values, alpha=alpha, permutations=permutations, least=least, seed=seed)


def _of_run(rung: Any, position: int, name: str) -> float:
    held = rung if isinstance(rung, Summary) else histogram_of(rung, "a change point")
    value = statistic_of(held, name)
    if np.isnan(value):
        source = held.run.source or f"run {position}"
        raise NotHeldError(f"{source}: does not support {name}; choose a statistic that every run supports, such as p50 or mean")
    return value
