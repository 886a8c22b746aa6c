"""Runs at different loads: percentiles against throughput, and the largest load that meets an SLO."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import NotHeldError, UsageError
from latencykit.histogram import histogram_of
from latencykit.stats.load import Capacity, capacity, saturated
from latencykit.stats.slo import SLO
from latencykit.stats.usl import ScalabilityLaw, fit_scalability
from latencykit.summary import Summary
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from latencykit.histogram import Histogram
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
        An open or paced loop that did not carry what was offered.
    rung : Histogram or Summary
    """

    name: str
    rate: float
    offered: float
    achieved: float
    saturated: bool
    rung: Histogram | Summary


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
    (950, 900.0, 990.0)
    """
    if not runs:
        raise UsageError("a load curve needs runs at different loads")
    rows = tuple(sorted((_row(str(name), rung) for name, rung in runs.items()), key=lambda row: row.rate))
    limits = SLO.parse(slo) if isinstance(slo, str) else slo
    if limits is None:
        return LoadCurve(rows)
    checks = tuple(tuple(limits.check(row.rung, confidence)) for row in rows)
    found = [_capacity(rows, [check[k] for check in checks]) for k in range(len(limits.limits))]
    worst = min(range(len(found)), key=lambda k: (_order(found[k]), k))
    return LoadCurve(rows, limits, checks, found[worst], limits.limits[worst].statistic)


def _row(name: str, rung: Any) -> LoadRow:
    """A run with its rates."""
    if isinstance(rung, Summary):
        held: Any = rung.to_unit("ns") if rung.unit in NANOSECONDS else rung
    else:
        held = histogram_of(rung, "a load curve")
    run = held.run
    offered = _named(name) or run.rate or math.nan
    achieved = run.achieved or (held.count / run.duration if held.count and run.duration else math.nan)
    rate = achieved if math.isnan(offered) else offered
    if math.isnan(rate):
        raise NotHeldError(
            f"{name}: says neither its rate nor how long it took; write the offered rate as its name: 5000={run.source or 'path'}"
        )
    lost = run.loop != "closed" and not math.isnan(offered + achieved) and bool(saturated(offered, achieved))
    return LoadRow(name, rate, offered, achieved, lost, held)


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
    values, highs = (np.array([getattr(check, name) for check in checks]) for name in ("value", "high"))
    lost = np.array([row.saturated for row in rows])
    limit = checks[0].limit
    if np.isnan(values).any() or limit <= 0 or not (values > 0).all():  # shares, zeros, unknowns: pass or fail is all there is
        met = np.array([check.outcome == "met" for check in checks])
        values = np.where(met, 0.5, 2.0)
        return _without_point(capacity(rate, values, 1.0, values, lost))
    return capacity(rate, values, limit, np.where(np.isnan(highs), np.inf, highs), lost)


def _without_point(found: Capacity) -> Capacity:
    """Between a load that passed and one that did not, nothing else is known."""
    return Capacity(found.low if found.low > 0 else found.rate, found.low, found.high, found.reason)


def _order(found: Capacity) -> tuple[float, float]:
    rate = 0.0 if math.isnan(found.rate) else found.rate
    return (math.inf if math.isinf(found.high) else rate, rate)
