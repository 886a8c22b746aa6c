"""The step of a coarse clock, from the latencies that it gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record

if TYPE_CHECKING:
    from latencykit.core.quantiles import Counted


@record()
class ClockRule:
    """What makes a clock coarse; real outputs of the corpus chose it."""

    min_step: float = 0.05  # of a latency: finer ticks do not matter
    near: float = 0.01  # of a tick: a reading so near lies on the grid of its clock
    min_repeats: int = 10  # requests per distinct latency: fewer may look like a grid by chance
    min_apart: float = 4.0  # times a bucket: empty buckets lie between two ticks


RULE = ClockRule()


def clock_step(counted: Counted, value: float) -> float:
    """Return the step between the readings of a coarse clock around a latency; 0 for a fine one.

    The difference of two readings is wrong by up to one tick to either side.

    >>> from latencykit.core.quantiles import Counted
    >>> floored = Counted.of([1e6] * 500 + [2e6] * 300 + [3e6] * 90)
    >>> clock_step(floored, 2e6), clock_step(Counted.of(range(1, 900)), 450)
    (1000000.0, 0.0)
    """
    few = 3 <= counted.counts.size <= counted.counts.sum() / RULE.min_repeats
    if not few or not np.isfinite(counted.middle).all():
        return 0.0
    least = np.diff(counted.middle).min()
    if not least > 0:  # reported percentiles may have one value
        return 0.0
    ticks = np.rint(counted.middle / least)
    step = float(ticks @ counted.middle / (ticks @ ticks))
    width = counted.high - counted.low
    on_grid = np.abs(counted.middle - ticks * step) <= np.maximum(width, RULE.near * step)
    at = round(value / step)
    beside = (ticks == np.array([[at - 1], [at], [at + 1]])).any(axis=1)
    wide = float(width[ticks <= at + 1].max(initial=0.0))
    coarse = step >= max(RULE.min_step * value, RULE.min_apart * wide)
    return step if coarse and on_grid.all() and beside[1] and beside.sum() > 1 else 0.0
