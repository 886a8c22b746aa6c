"""Latency against load: the most that a system carries within its SLO, and what must not be read from a curve.

Curves of load end where the measurement ended. Nothing here reaches beyond: a system that met its SLO at every load
measured has a capacity of *at least* the highest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.analysis.slo import SLO
from latencykit.core.dependence import levels_in_company, normal_quantile
from latencykit.core.histogram import Evidence, Histogram, histogram_of
from latencykit.core.quantiles import values_at_ranks
from latencykit.core.summary import Summary
from latencykit.core.value import Value
from latencykit.errors import DataNotAvailableError, InvalidArgumentError
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from latencykit.analysis.slo import SLORow
    from latencykit.core import Data
    from latencykit.core.histogram import PercentileRow

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

__all__ = [
    "Capacity",
    "LoadCurve",
    "LoadRow",
    "Machines",
    "ScalabilityLaw",
    "capacity",
    "fit_scalability",
    "load_curve",
    "machines_needed",
    "mm1_capacity",
    "saturated",
]


@dataclass(frozen=True)
class Capacity:
    """The largest load that meets a limit.

    Attributes
    ----------
    rate : float
        Estimate: where the rising curve through the measured loads crosses the limit; the highest load that passed
        where none failed; NaN where it begins beyond the limit.
    low, high : float
        The highest load that surely passed (0 where none did), and the lowest above it that surely failed (infinite
        where none did).
    reason : str
        What the reader has to know; ``""`` where the limit was crossed.
    """

    rate: float
    low: float
    high: float
    reason: str = ""


def capacity(
    rate: ArrayLike,
    value: ArrayLike,
    limit: float,
    high: ArrayLike | None = None,
    saturated: ArrayLike | None = None,
    low: ArrayLike | None = None,
) -> Capacity:
    """Return the largest load at which a latency stays within a limit.

    Latency rises with load; what falls is noise, so the logarithms of the values are pooled to a rising curve
    (isotonic regression). Between the last load on it within the limit and the first beyond, the reciprocal of
    the latency is taken as a straight line: that is what a queue near its pole does, exactly so for M/M/1.
    Loads that neither pass nor fail for sure lie inside the bracket, and so do all loads between one that fails and a
    higher one that passes.
    """
    uppers, lowers = (value if part is None else part for part in (high, low))
    loads, values, passes, fails = _sorted(rate, value, limit, uppers, lowers, saturated)
    if not (limit > 0 and (values > 0).all()):
        raise InvalidArgumentError("a capacity needs latencies and a limit above 0")
    failed, passed = np.flatnonzero(fails), np.flatnonzero(passes)
    below = passed[passed < failed[0]] if failed.size else passed
    above = failed[failed > passed[-1]] if passed.size else failed
    bottom = float(loads[below[-1]]) if below.size else 0.0
    top = float(loads[above[0]]) if above.size else math.inf
    fitted = _rising(values)
    beyond = np.flatnonzero(fitted > limit)
    if beyond.size and not beyond[0]:
        why = "the limit was not surely met at any load measured; measure lower ones"
        return Capacity(bottom or math.nan, bottom, top, why)
    if not beyond.size:
        estimate = float(loads[-1])
    else:
        start, end = float(loads[beyond[0] - 1]), float(loads[beyond[0]])
        estimate = start + _crossing(
            1 / fitted[beyond[0] - 1], 1 / fitted[beyond[0]], 1 / limit
        ) * (end - start)
    estimate = float(min(max(estimate, bottom), top))
    if not bottom:
        return Capacity(
            estimate,
            0.0,
            top,
            "the limit was not surely met at any load measured; measure lower ones, or longer",
        )
    if math.isinf(top) and bottom == loads[-1]:
        why = "the limit was met at every load measured; the capacity is at least the highest"
        return Capacity(bottom, bottom, math.inf, why)
    if math.isinf(top):
        return Capacity(
            estimate,
            bottom,
            math.inf,
            "no load measured surely misses the limit; measure higher ones, or longer",
        )
    undecided = int((~passes & ~fails & (loads > bottom) & (loads < top)).sum())
    reason = (
        f"{undecided} load{'s' if undecided > 1 else ''} between them cannot be decided"
        if undecided
        else ""
    )
    return Capacity(estimate, bottom, top, reason)


def _sorted(
    rate: ArrayLike,
    value: ArrayLike,
    limit: float,
    high: ArrayLike,
    low: ArrayLike,
    lost: ArrayLike | None,
) -> tuple[Floats, Floats, Flags, Flags]:
    """Ascending loads, each once, with the mean value, and which of them surely pass and fail."""
    loads, values, uppers, lowers = (
        np.asarray(part, np.float64) for part in (rate, value, high, low)
    )
    if not loads.size or not loads.shape == values.shape == uppers.shape == lowers.shape:
        raise InvalidArgumentError(
            "a load curve needs as many latencies as loads, and at least one"
        )
    saturated = np.zeros(loads.shape, np.bool_) if lost is None else np.asarray(lost, np.bool_)
    unique, inverse = np.unique(loads, return_inverse=True)
    each = np.bincount(inverse)
    means = np.exp(np.bincount(inverse, np.log(np.maximum(values, 1e-300))) / each)
    # of several runs at one load all have to agree
    passes = np.bincount(inverse, (uppers <= limit) & ~saturated) == each
    fails = np.bincount(inverse, (lowers > limit) | saturated) == each
    return unique, means * (values.min() > 0), passes, fails


def _rising(values: Floats) -> Floats:
    """The closest curve that never falls, on a logarithmic scale; infinite from the first infinite value on."""
    from scipy.optimize import isotonic_regression

    out = np.full(values.shape, np.inf)
    finite = int(np.argmax(np.isinf(values))) if np.isinf(values).any() else values.size
    if finite:
        out[:finite] = np.exp(isotonic_regression(np.log(values[:finite])).x)
    return out


def _crossing(start: float, end: float, level: float) -> float:
    """How far (0..1) a straight line from `start` down to `end` has come when it reaches `level`."""
    return min(1.0, max(0.0, (start - level) / (start - end)))


def mm1_capacity(service_rate: float, limit: float, percentile: float) -> float:
    """Return the load at which an M/M/1 queue's percentile of response time reaches a limit: ``μ − ln(1/(1−q)) / limit``."""
    return max(0.0, service_rate + math.log(1 - percentile / 100) / limit)


def saturated(
    offered: ArrayLike, achieved: ArrayLike, error: ArrayLike = 0.0, tolerance: float = 0.01
) -> NDArray[np.bool_]:
    """Return which runs surely did not carry the load that was offered: a surer sign of the pole than any knee.

    For open loops only; a closed loop offers no more than it gets.
    """
    most = np.asarray(achieved, np.float64) + np.asarray(error, np.float64)
    return np.asarray(most < (1 - tolerance) * np.asarray(offered, np.float64))


@dataclass(frozen=True)
class Machines:
    """How many machines an offered load takes.

    Attributes
    ----------
    least, most : int or None
        If one machine carries as much as the bracket's high end, or only its low end; None where that end is unknown.
    estimate : int or None
    """

    least: int | None
    estimate: int | None
    most: int | None


def machines_needed(offered: float, one: Capacity, spare: int = 0) -> Machines:
    """Return how many machines carry an offered load within the SLO."""
    if not offered > 0:
        raise InvalidArgumentError(
            f"an offered load must be above 0 requests per second, not {offered:g}"
        )
    rates = (one.high, one.rate, one.low)
    found = [
        math.ceil(offered / r - 1e-9) + spare if math.isfinite(r) and r > 0 else None for r in rates
    ]
    return Machines(*found)


# ------------------------------------------------------------
# The Universal Scalability Law: throughput against concurrency, with what contention and
# coherence take away.

_FEWEST = 6
_FARTHEST = 2.0


@dataclass(frozen=True, eq=False)
class ScalabilityLaw:
    """X(N) = λN / (1 + σ(N − 1) + κN(N − 1)), as fitted.

    Attributes
    ----------
    rate, contention, coherence : float
        λ (throughput of one), σ and κ.
    covariance : ndarray of float64, shape (3, 3)
        Of the three, in that order.
    highest : float
        Largest concurrency measured.
    past_knee : bool
        Whether throughput was seen to fall again; only then does a peak mean anything.
    """

    rate: float
    contention: float
    coherence: float
    covariance: Floats
    highest: float
    past_knee: bool

    @property
    def errors(self) -> Floats:
        """Standard errors of λ, σ and κ."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def peak(self) -> float:
        """Concurrency of the highest throughput, √((1 − σ)/κ); NaN where the measurement did not pass it."""
        if not self.past_knee or self.coherence <= 0:
            return math.nan
        return math.sqrt((1 - self.contention) / self.coherence)

    def at(self, concurrency: ArrayLike) -> Floats:
        """Return the throughput at some concurrency."""
        n = np.asarray(concurrency, np.float64)
        if (n > _FARTHEST * self.highest).any():
            raise InvalidArgumentError(
                f"a curve measured up to {self.highest:g} says nothing of {float(n.max()):g}; measure there, or ask within "
                f"{_FARTHEST * self.highest:g}"
            )
        return np.asarray(_law(n, self.rate, self.contention, self.coherence))


def _law(n: Floats, rate: float, contention: float, coherence: float) -> Floats:
    return np.asarray(rate * n / (1 + contention * (n - 1) + coherence * n * (n - 1)))


def fit_scalability(concurrency: ArrayLike, throughput: ArrayLike) -> ScalabilityLaw:
    """Fit the Universal Scalability Law (Gunther, 1993) by least squares."""
    from scipy.optimize import curve_fit

    n, x = np.asarray(concurrency, np.float64), np.asarray(throughput, np.float64)
    if n.shape != x.shape or np.unique(n).size < _FEWEST:
        raise InvalidArgumentError(
            f"three parameters need at least {_FEWEST} different loads, not {np.unique(n).size}"
        )
    if not ((n >= 1).all() and (x > 0).all() and np.isfinite(x).all()):
        raise InvalidArgumentError("concurrency starts at 1, and throughput is above 0")
    start = (float((x / n).max()), 0.01, 1e-4)
    try:
        found, covariance = curve_fit(
            _law, n, x, p0=start, bounds=([0, 0, 0], [np.inf, 1, 1]), x_scale=(start[0], 0.1, 1e-3)
        )
    except RuntimeError as failed:
        raise InvalidArgumentError(
            f"no scalability curve fits these {n.size} runs: {failed}"
        ) from None
    order = np.argsort(n, kind="stable")
    past = bool(x[order][-1] < x.max() and n[order][-1] > n[int(np.argmax(x))])
    rate, contention, coherence = (float(v) for v in found)
    return ScalabilityLaw(rate, contention, coherence, np.asarray(covariance), float(n.max()), past)


# ------------------------------------------------------------
# Runs at different loads: percentiles against throughput, and the largest load that meets an SLO.

_PERCENTILES = (50.0, 90.0, 99.0, 99.9)


@dataclass(frozen=True, eq=False)
class LoadRow(Value):
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
    data : Histogram or Summary
    evidence : Evidence or None
        How far the numbers of the run can be trusted; None of a Summary.
    """

    name: str
    rate: float
    offered: float
    achieved: float
    saturated: bool
    data: Histogram | Summary
    evidence: Evidence | None = None

    def percentile_rows(
        self, percentiles: Sequence[float], confidence: float = 0.95
    ) -> list[PercentileRow]:
        """Return percentiles with their intervals; runs at several loads are set side by side, as they were seen."""
        return (
            []
            if self.evidence is None
            else self.evidence.rows(percentiles, confidence, rare=False)[0]
        )


@dataclass(frozen=True, eq=False)
class LoadCurve(Value):
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
        """One row per run: rate, offered, achieved, saturated, count and percentiles."""
        import pandas as pd

        plain = ("name", "rate", "offered", "achieved", "saturated")
        rows = [
            {name: getattr(row, name) for name in plain} | {"count": row.data.count}
            for row in self.rows
        ]
        wanted = [
            {f"p{p:g}": value for p, value in self.percentiles(row).items()} for row in self.rows
        ]
        return pd.DataFrame([row | more for row, more in zip(rows, wanted, strict=True)]).set_index(
            "name"
        )

    def scalability(self) -> ScalabilityLaw:
        """Return the Universal Scalability Law through throughput against connections.

        Raises
        ------
        InvalidArgumentError
            With fewer than six different numbers of connections, or where no curve fits.
        """
        known = [
            row for row in self.rows if row.data.run.connections and not math.isnan(row.achieved)
        ]
        connections = [float(row.data.run.connections or 0) for row in known]
        return fit_scalability(connections, [row.achieved for row in known])

    @staticmethod
    def percentiles(row: LoadRow, wanted: Sequence[float] = _PERCENTILES) -> dict[float, float]:
        """Return percentiles of a run, those alone that a summary holds."""
        if isinstance(row.data, Summary):
            return {
                p: row.data.reported_percentiles[p]
                for p in wanted
                if p in row.data.reported_percentiles
            }
        return dict(zip(wanted, row.data.percentile(list(wanted)).tolist(), strict=True))


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
        levels = levels_in_company(
            [row.percentile for row in rows], [-end, end], total, self.company
        )
        ends = zip(*values_at_ranks(self.whole.counted, *(levels * total).T), strict=True)
        wider = [
            row if not 0 < row.percentile < 100 or math.isnan(row.high)
            else replace(row, low=min(row.low, bottom), high=max(row.high, top))
            for row, (bottom, top) in zip(rows, ends, strict=True)
        ]  # fmt: skip
        why = "requests that queue are slow together, and counts do not show when: measure for longer, or keep a log"
        return wider, (why,) if any(math.isinf(row.high) for row in wider) else ()

    def mean(
        self, name: str = "mean", confidence: float = 0.95, *, rare: bool = True
    ) -> tuple[float, float]:
        below, above = super().mean(name, confidence, rare=rare)
        return below * math.sqrt(self.company), above * math.sqrt(self.company)


def _with_queues(rows: list[LoadRow]) -> list[LoadRow]:
    """Runs of which only counts are known, with those that wait: what takes longer than the fastest tenth at the lowest load."""
    known = [row for row in rows if isinstance(row.data, Histogram) and row.data.count]
    if len(known) < 2:
        return rows
    alone = float(known[0].data.percentile(10))

    def queued(row: LoadRow) -> LoadRow:
        counted, evidence = row.data, row.evidence
        if row not in known or isinstance(counted, Summary) or counted.unit != "ns":
            return row
        if evidence is None or evidence.dependence is not None:
            return row
        return replace(
            row, evidence=_Queued(counted, row.rate * max(counted.mean - alone, 0.0) / 1e9)
        )

    return [queued(row) for row in rows]


def load_curve(
    runs: Mapping[str, Data], slo: SLO | str | None = None, confidence: float = 0.95
) -> LoadCurve:
    """Return how latency rises with load, and the largest load that meets an SLO.

    Parameters
    ----------
    runs : mapping of str to data type
        A name that is a number (``"5000"``, ``"5000/s"``) says the offered rate of its run.
    slo : SLO or str, optional
    confidence : float, default 0.95
        A load passes only where the whole interval of this confidence is within the limit.

    Returns
    -------
    LoadCurve

    Raises
    ------
    DataNotAvailableError
        Where a run says neither its rate nor how long it took.
    InvalidArgumentError
        For no runs at all.

    Examples
    --------
    >>> from latencykit.core.histogram import Histogram
    >>> runs = {str(rate): Histogram.of(np.full(2000, 1e9 / (1000 - rate)), 3) for rate in (500, 700, 900, 990)}
    >>> found = load_curve(runs, "p99=20ms")
    >>> round(found.capacity.rate), found.capacity.low, found.capacity.high
    (950, 0.0, 990.0)
    """
    if not runs:
        raise InvalidArgumentError("a load curve needs runs at different loads")
    given = sorted(
        (_row(str(name), data, confidence) for name, data in runs.items()), key=lambda row: row.rate
    )
    rows = tuple(_with_queues(given))
    limits = SLO.parse(slo) if isinstance(slo, str) else slo
    if limits is None:
        return LoadCurve(rows)
    checks = tuple(
        tuple(limits.check(row.evidence or row.data, confidence, rare=False)) for row in rows
    )
    found = [_capacity(rows, [check[k] for check in checks]) for k in range(len(limits.limits))]
    worst = min(range(len(found)), key=lambda k: (_order(found[k]), k))
    return LoadCurve(rows, limits, checks, found[worst], limits.limits[worst].statistic)


def _row(name: str, data: Any, confidence: float) -> LoadRow:
    """A run with its rates."""
    known = hasattr(data, "unit") and data.unit in NANOSECONDS
    held: Any = data.to_unit("ns") if known else data
    evidence = None
    if not isinstance(data, Summary):
        evidence = held.evidence() if hasattr(held, "evidence") else None
        held = histogram_of(held if evidence is None else evidence.whole, "a load curve")
    run = held.run
    offered = _named(name) or run.rate or math.nan
    achieved = run.achieved or (
        held.count / run.duration if held.count and run.duration else math.nan
    )
    rate = achieved if math.isnan(offered) else offered
    if math.isnan(rate):
        raise DataNotAvailableError(
            f"{name}: says neither its rate nor how long it took; write the offered rate as its name: 5000={run.source or 'path'}"
        )
    lost = run.loop != "closed" and not math.isnan(offered + achieved)
    lost = lost and bool(saturated(offered, achieved, _error(held, evidence, achieved, confidence)))
    return LoadRow(name, rate, offered, achieved, lost, held, evidence)


def _error(held: Any, evidence: Evidence | None, achieved: float, confidence: float) -> float:
    """By how much a rate may be higher: as of random arrivals, or as the counts over time vary where that is more."""
    if not held.count:
        return 0.0
    spread = (
        0.0
        if evidence is None or evidence.dependence is None
        else evidence.dependence.spread_of_count
    )
    # of many loads none must be called saturated by chance
    return normal_quantile(1 - (1 - confidence) / 20) * max(
        achieved / math.sqrt(held.count), achieved * spread
    )


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
    values, lows, highs = (
        np.array([getattr(check, name) for check in checks]) for name in ("value", "low", "high")
    )
    lost = np.array([row.saturated for row in rows])
    limit = checks[0].limit
    if (
        np.isnan(values).any() or limit <= 0 or not (values > 0).all()
    ):  # shares, zeros, unknowns: pass or fail is all there is
        met, missed = (
            np.array([check.outcome == outcome for check in checks])
            for outcome in ("met", "missed")
        )
        ends = np.where(met, 0.5, 2.0), np.where(missed, 2.0, 0.5)
        return _without_point(capacity(rate, ends[0], 1.0, ends[0], lost, ends[1]))
    return capacity(
        rate,
        values,
        limit,
        np.where(np.isnan(highs), np.inf, highs),
        lost,
        np.nan_to_num(lows, nan=0.0),
    )


def _without_point(found: Capacity) -> Capacity:
    """Between a load that passed and one that did not, nothing else is known."""
    return Capacity(found.low if found.low > 0 else found.rate, found.low, found.high, found.reason)


def _order(found: Capacity) -> tuple[float, float]:
    rate = 0.0 if math.isnan(found.rate) else found.rate
    return (math.inf if math.isinf(found.high) else rate, rate)
