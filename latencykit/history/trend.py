"""A statistic over the runs of a history: levels, noise bands, and where the level changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record
from latencykit.analysis.judge import bands_of
from latencykit.history.history import family_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit._typing import Floats
    from latencykit.history.history import History
    from latencykit.history.run_file import StoredRun


@record()
class Change:
    """A change of the level: it happened after run `first` and not later than run `last`.

    Attributes
    ----------
    position : int
        The first run at the new level, as the gate reported it.
    first, last : int
        Positions: the last run that is surely before the change, and the first surely after it.
    before, after : float
        Medians of the levels.
    """

    position: int
    first: int
    last: int
    before: float
    after: float


@record(eq=False)
class Trend:
    """A statistic of one series over the runs with the same labels, oldest first; times in ns."""

    series: str
    statistic: str
    unit: str
    labels: dict[str, str]
    runs: tuple[StoredRun, ...]
    values: Floats
    level: Floats
    low: Floats
    high: Floats
    changes: tuple[Change, ...]


def trend_of(
    history: History, series: str, statistic: str, labels: dict[str, str], last: int = 1000
) -> Trend:
    """Return the trend of the last runs that have the statistic."""
    runs, numbers = history.values(series, statistic, labels)
    runs, values = runs[-last:], np.asarray(numbers[-last:], np.float64)
    level, low, high, positions = bands_of(values, family_of(runs[-1]) if runs else 1)
    edges = [0, *positions, values.size]
    changes = []
    for k, position in enumerate(positions):
        before = float(np.median(values[edges[k] : position]))
        after = float(np.median(values[position : edges[k + 2]]))
        # A run nearer to the other level than to its own may belong to either side.
        nearer = np.abs(np.log(values / before)) < np.abs(np.log(values / after))
        earlier = np.flatnonzero(nearer[edges[k] : position])
        later = np.flatnonzero(~nearer[position : edges[k + 2]])
        first = edges[k] + int(earlier[-1]) if earlier.size else position - 1
        final = position + int(later[0]) if later.size else position
        changes.append(Change(position, first, final, before, after))
    unit = runs[-1].series[series].unit if runs else "ns"
    return Trend(
        series, statistic, unit, labels, tuple(runs), values, level, low, high, tuple(changes)
    )


def trends_of(
    history: History, statistics: Sequence[str], series: Sequence[str] = (), last: int = 1000
) -> list[Trend]:
    """Return a trend per series, statistic and labels that at least one run has."""
    known = dict.fromkeys(name for run in history.runs for name in run.series)
    trends = [
        trend_of(history, name, statistic, labels, last)
        for name in (series or known)
        for statistic in statistics
        for labels in history.labels()
    ]
    return [trend for trend in trends if trend.runs]
