"""Runs at different loads: percentiles against throughput, and the largest load that meets an SLO."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import NotHeldError, UsageError
from latencykit.histogram import Histogram, histogram_of
from latencykit.histogram.evidence import Evidence
from latencykit.stats.dependence import levels_in_company, normal_quantile
from latencykit.stats.load import Capacity, capacity, saturated
from latencykit.stats.percentiles import values_at_ranks
from latencykit.stats.slo import SLO
from latencykit.stats.usl import ScalabilityLaw, fit_scalability
from latencykit.summary import Summary
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from latencykit.histogram import PercentileRow
    from latencykit.stats.slo_check import SLORow

__all__ = ["LoadCurve", "LoadRow", "load_curve"]

_PERCENTILES = (50.0, 90.0, 99.0, 99.9)


@dataclass(frozen=True, eq=False)
class LoadRow:
    """One run of a load curve.

    Attributes
    ----------
    name : str
    rate : float
        Load in requests per second: what was offered, else what was achieved.
    offered, achieved : float
        NaN where the source does not say.
    saturated : bool
        An open or paced loop that surely did not carry what was offered.
    rung : Histogram or Summary
    evidence : Evidence or None
        How far the numbers of the run can be trusted; None of a Summary.
    """

    name: str
    rate: float
    offered: float
    achieved: float
    saturated: bool
    rung: Histogram | Summary
    evidence: Evidence | None = None

    def percentile_rows(self, percentiles: Sequence[float], confidence: float = 0.95) -> list[PercentileRow]:
        """Return percentiles with their intervals; runs at several loads are set side by side, as they were seen."""
        return [] if self.evidence is None else self.evidence.rows(percentiles, confidence, rare=False)[0]


@dataclass(frozen=True, eq=False)
class LoadCurve:
    """Latency against load, as far as it was measured.

    Attributes
    ----------
    rows : tuple of LoadRow
        By load, ascending.
    slo : SLO or None
    checks : tuple of tuples of SLORow
        One a row, in the order of the SLO's limits.
    capacity : Capacity or None
        The largest load that meets the SLO.
    limited_by : str
        The limit that is reached first; ``""`` without one.
    """

    rows: tuple[LoadRow, ...]
    slo: SLO | None = None
    checks: tuple[tuple[SLORow, ...], ...] = ()
    capacity: Capacity | None = None
    limited_by: str = ""

    @property
    def table(self) -> pd.DataFrame:
        """One row a run: rate, offered, achieved, saturated, count and percentiles."""
        import pandas as pd

        plain = ("name", "rate", "offered", "achieved", "saturated")
        rows = [{name: getattr(row, name) for name in plain} | {"count": row.rung.count} for row in self.rows]
        wanted = [{f"p{p:g}": value for p, value in self.percentiles(row).items()} for row in self.rows]
        return pd.DataFrame([row | more for row, more in zip(rows, wanted, strict=True)]).set_index("name")

    def scalability(self) -> ScalabilityLaw:
        """Return the Universal Scalability Law through throughput against connections.

        Raises
        ------
        UsageError
            With fewer than six different numbers of connections, or where no curve fits.
        """
        known = [row for row in self.rows if row.rung.run.connections and not math.isnan(row.achieved)]
        connections = [float(row.rung.run.connections or 0) for row in known]
        return fit_scalability(connections, [row.achieved for row in known])

    @staticmethod
    def percentiles(row: LoadRow, wanted: Sequence[float] = _PERCENTILES) -> dict[float, float]:
        """Return percentiles of a run, those alone that a summary holds."""
        if isinstance(row.rung, Summary):
            return {p: row.rung.percentiles[p] for p in wanted if p in row.rung.percentiles}
        return dict(zip(wanted, row.rung.percentile(list(wanted)).tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class _Queued(Evidence):
    """Counts without time of a system with a queue.

    Who waits, waits together with others. Little's law says with how many: L = rate × waiting time. In an M/M/1 queue
    requests beyond a high percentile come in groups of 1 / (1 − ρ)² = (1 + L)² on average, and twice as many count as one
    event, since groups differ in size.
    """

    waiting: float

    @property
    def company(self) -> float:
        """Requests that count as one event."""
        return 2 * (1 + self.waiting) ** 2

    def rows(
        self, percentiles: Sequence[float], confidence: float = 0.95, *, rare: bool = True
    ) -> tuple[list[PercentileRow], tuple[str, ...]]:
        rows, _ = super().rows(percentiles, confidence, rare=rare)
        total = self.whole.count + self.whole.censored
        end = normal_quantile((1 + confidence) / 2)
        levels = levels_in_company([row.percentile for row in rows], [-end, end], total, self.company)
        ends = zip(*values_at_ranks(self.whole.counted, *(levels * total).T), strict=True)
        wider = [
            row if not 0 < row.percentile < 100 or math.isnan(row.high)
            else replace(row, low=min(row.low, bottom), high=max(row.high, top))
            for row, (bottom, top) in zip(rows, ends, strict=True)
        ]  # fmt: skip
        why = "requests that queue are slow together, and counts do not show when: measure for longer, or keep a log"
        return wider, (why,) if any(math.isinf(row.high) for row in wider) else ()

    def mean(self, name: str = "mean", confidence: float = 0.95, *, rare: bool = True) -> tuple[float, float]:
        below, above = super().mean(name, confidence, rare=rare)
        return below * math.sqrt(self.company), above * math.sqrt(self.company)


def _with_queues(rows: list[LoadRow]) -> list[LoadRow]:
    """Runs of which only counts are known, with those that wait: what takes longer than the fastest tenth at the lowest load."""
    known = [row for row in rows if isinstance(row.rung, Histogram) and row.rung.count]
    if len(known) < 2:
        return rows
    alone = float(known[0].rung.percentile(10))

    def queued(row: LoadRow) -> LoadRow:
        counted, evidence = row.rung, row.evidence
        if row not in known or isinstance(counted, Summary) or counted.unit != "ns":
            return row
        if evidence is None or evidence.dependence is not None:
            return row
        return replace(row, evidence=_Queued(counted, row.rate * max(counted.mean - alone, 0.0) / 1e9))

    return [queued(row) for row in rows]


def load_curve(runs: Mapping[str, Any], slo: SLO | str | None = None, confidence: float = 0.95) -> LoadCurve:
    """Return how latency rises with load, and the largest load that meets an SLO.

    Parameters
    ----------
    runs : mapping of str to rung
        A name that is a number (``"5000"``, ``"5000/s"``) says the offered rate of its run.
    slo : SLO or str, optional
    confidence : float, default 0.95
        A load passes only where the whole interval of this confidence is within the limit.

    Returns
    -------
    LoadCurve

    Raises
    ------
    NotHeldError
        Where a run says neither its rate nor how long it took.
    UsageError
        For no runs at all.

    Examples
    --------
    >>> from latencykit.histogram import Histogram
    >>> runs = {str(rate): Histogram.of(np.full(2000, 1e9 / (1000 - rate)), 3) for rate in (500, 700, 900, 990)}
    >>> found = load_curve(runs, "p99=20ms")
    >>> round(found.capacity.rate), found.capacity.low, found.capacity.high
    (950, 0.0, 990.0)
    """
    if not runs:
        raise UsageError("a load curve needs runs at different loads")
    given = sorted((_row(str(name), rung, confidence) for name, rung in runs.items()), key=lambda row: row.rate)
    rows = tuple(_with_queues(given))
    limits = SLO.parse(slo) if isinstance(slo, str) else slo
    if limits is None:
        return LoadCurve(rows)
    checks = tuple(tuple(limits.check(row.evidence or row.rung, confidence, rare=False)) for row in rows)
    found = [_capacity(rows, [check[k] for check in checks]) for k in range(len(limits.limits))]
    worst = min(range(len(found)), key=lambda k: (_order(found[k]), k))
    return LoadCurve(rows, limits, checks, found[worst], limits.limits[worst].statistic)


def _row(name: str, rung: Any, confidence: float) -> LoadRow:
    """A run with its rates."""
    known = hasattr(rung, "unit") and rung.unit in NANOSECONDS
    held: Any = rung.to_unit("ns") if known else rung
    evidence = None
    if not isinstance(rung, Summary):
        evidence = held.evidence() if hasattr(held, "evidence") else None
        held = histogram_of(held if evidence is None else evidence.whole, "a load curve")
    run = held.run
    offered = _named(name) or run.rate or math.nan
    achieved = run.achieved or (held.count / run.duration if held.count and run.duration else math.nan)
    rate = achieved if math.isnan(offered) else offered
    if math.isnan(rate):
        raise NotHeldError(
            f"{name}: says neither its rate nor how long it took; write the offered rate as its name: 5000={run.source or 'path'}"
        )
    lost = run.loop != "closed" and not math.isnan(offered + achieved)
    lost = lost and bool(saturated(offered, achieved, _error(held, evidence, achieved, confidence)))
    return LoadRow(name, rate, offered, achieved, lost, held, evidence)


def _error(held: Any, evidence: Evidence | None, achieved: float, confidence: float) -> float:
    """By how much a rate may be higher: as of random arrivals, or as the counts over time vary where that is more."""
    if not held.count:
        return 0.0
    spread = 0.0 if evidence is None or evidence.dependence is None else evidence.dependence.spread_of_count
    # of many loads none must be called saturated by chance
    return normal_quantile(1 - (1 - confidence) / 20) * max(achieved / math.sqrt(held.count), achieved * spread)


def _named(name: str) -> float | None:
    """The rate that a name states."""
    text = name.strip().lower().removesuffix("rps").removesuffix("/s").replace(",", "").strip()
    factor = 1000.0 if text.endswith("k") else 1.0
    try:
        rate = float(text.removesuffix("k")) * factor
    except ValueError:
        return None
    return rate if 0 < rate < math.inf else None


def _capacity(rows: Sequence[LoadRow], checks: Sequence[SLORow]) -> Capacity:
    """The largest load that meets one limit."""
    rate = np.array([row.rate for row in rows])
    values, lows, highs = (np.array([getattr(check, name) for check in checks]) for name in ("value", "low", "high"))
    lost = np.array([row.saturated for row in rows])
    limit = checks[0].limit
    if np.isnan(values).any() or limit <= 0 or not (values > 0).all():  # shares, zeros, unknowns: pass or fail is all there is
        met, missed = (np.array([check.outcome == outcome for check in checks]) for outcome in ("met", "missed"))
        ends = np.where(met, 0.5, 2.0), np.where(missed, 2.0, 0.5)
        return _without_point(capacity(rate, ends[0], 1.0, ends[0], lost, ends[1]))
    return capacity(rate, values, limit, np.where(np.isnan(highs), np.inf, highs), lost, np.nan_to_num(lows, nan=0.0))


def _without_point(found: Capacity) -> Capacity:
    """Between a load that passed and one that did not, nothing else is known."""
    return Capacity(found.low if found.low > 0 else found.rate, found.low, found.high, found.reason)


def _order(found: Capacity) -> tuple[float, float]:
    rate = 0.0 if math.isnan(found.rate) else found.rate
    return (math.inf if math.isinf(found.high) else rate, rate)
