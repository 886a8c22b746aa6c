"""`load_curve`: latency against load, and the highest load that meets an SLO (the capacity).

Nothing is extrapolated: a system that met its SLO at every measured load has a capacity of *at
least* the highest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from latencykit._arrays import Value
from latencykit._records import record
from latencykit._text import brief_list, format_items
from latencykit._typing import Floats, PathOrFrame
from latencykit.analysis.facts import facts_of
from latencykit.analysis.given import as_data
from latencykit.analysis.slo import SLO, Outcome, SLORow, for_all_series, why, without_under_way
from latencykit.core import Data
from latencykit.core.evidence import Evidence, TimedSupport
from latencykit.core.histogram import Histogram, histogram_of
from latencykit.core.jackknife import Jackknife
from latencykit.core.percentile_rows import PercentileRow
from latencykit.core.probability import normal_quantile
from latencykit.core.quantiles import rank_interval, tail_of, values_at_ranks
from latencykit.core.repr_html import listing_html
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import DataNotAvailableError, InvalidArgumentError, require
from latencykit.units import NANOSECONDS, format_rate, format_value

if TYPE_CHECKING:
    import pandas as pd


@record()
class Capacity:
    """The highest load that meets a limit."""

    # where the rising curve through the measured loads crosses the limit; the highest load that
    # passed if none failed; NaN if even the lowest load is beyond it
    rate: float
    low: float  # the highest load that surely passed; 0 if none did
    high: float  # the lowest load above it that surely failed; infinite if none did
    reason: str = ""  # a remark; empty if the limit was crossed

    @property
    def rounded(self) -> float:
        """The estimate in three digits, if these lie between its ends, too."""
        rounded = float(f"{self.rate:.3g}")
        return rounded if self.low <= rounded <= self.high else self.rate


def crossing(
    rate: ArrayLike, value: ArrayLike, limit: float, saturated: ArrayLike | None = None
) -> float:
    """Return the load at which the latency of runs crosses a limit."""
    # Latency rises with load and falls only by noise, so the logarithms of the values are pooled to
    # a rising curve (isotonic regression). Between the last load on it within the limit and the
    # first beyond, the reciprocal of the latency is interpolated linearly: that is how a queue
    # behaves near saturation, exactly so for M/M/1. The highest load where none is beyond the
    # limit, NaN where the lowest is.
    from scipy.optimize import isotonic_regression

    each_load, each_value = np.asarray(rate, np.float64), np.asarray(value, np.float64)
    if not each_load.size or each_load.shape != each_value.shape:
        raise InvalidArgumentError(
            "a load curve needs as many latencies as loads, and at least one"
        )
    if not (limit > 0 and (each_value > 0).all()):
        raise InvalidArgumentError("a capacity needs latencies and a limit above 0")
    if saturated is not None:
        # The queue of an overloaded system grows, however quick the replies that arrived.
        each_value = np.where(np.asarray(saturated) & (each_value <= limit), np.inf, each_value)
    loads, inverse = np.unique(each_load, return_inverse=True)
    values = np.bincount(inverse, np.log(each_value)) / np.bincount(inverse)
    fitted = np.full(values.shape, np.inf)  # infinite from the first infinite value on
    finite = int(np.argmax(np.isinf(values))) if np.isinf(values).any() else values.size
    if finite:
        fitted[:finite] = np.exp(isotonic_regression(values[:finite]).x)
    beyond = np.flatnonzero(fitted > limit)
    if not beyond.size:
        return float(loads[-1])
    if not beyond[0]:
        return math.nan
    (start, end), (before, after) = (
        side[beyond[0] - 1 : beyond[0] + 1] for side in (loads, 1 / fitted)
    )
    part = (before - 1 / limit) / (before - after)
    return float(start + min(1.0, max(0.0, part)) * (end - start))


def bracket(rates: ArrayLike, outcomes: Sequence[str]) -> tuple[float, float, str]:
    """Return the highest load that surely passed, the lowest above it that failed, and a remark."""
    # Runs at one load must not contradict each other; one that is undecided is outvoted.
    loads, inverse = np.unique(rates, return_inverse=True)
    passes, fails = (
        np.bincount(inverse, [outcome == wanted for outcome in outcomes]) > 0
        for wanted in ("met", "missed")
    )
    passes, fails = passes & ~fails, fails & ~passes
    failed, passed = np.flatnonzero(fails), np.flatnonzero(passes)
    below = passed[passed < failed[0]] if failed.size else passed
    above = failed[failed > passed[-1]] if passed.size else failed
    low = float(loads[below[-1]]) if below.size else 0.0
    high = float(loads[above[0]]) if above.size else math.inf
    inside = loads[~passes & ~fails & (loads > low) & (loads < high)]
    reversed_loads = fails & (loads < loads[passed[-1]]) if passed.size else fails & False
    if reversed_loads.any():
        verb = "misses" if reversed_loads.sum() == 1 else "miss"
        remark = f"{_rates(loads[reversed_loads])} {verb} the limit, and a higher load meets it"
    elif fails[0]:
        remark = f"even the lowest load measured, {_rates(loads[:1])}, misses the limit"
    elif math.isinf(high) and low == loads[-1]:
        remark = "the limit was met at every load measured; the capacity is at least the highest"
    elif low and math.isfinite(high):
        loads_undecided = f"{inside.size} load{'s' if inside.size > 1 else ''}"
        remark = f"{loads_undecided} between them cannot be decided" if inside.size else ""
    else:
        unbounded = "no load measured surely misses the limit: " if low else ""
        remark = f"{unbounded}undecided at {_rates(inside)}; measure for longer"
    return low, high, remark


def _rates(loads: Floats) -> str:
    return brief_list(f"{format_rate(load)}/s" for load in loads.tolist())


# ------------------------------------------------------------
# Runs at different loads: percentiles against throughput, and the highest load within an SLO.

_PERCENTILES = (50.0, 90.0, 99.0, 99.9)


@record(eq=False)
class LoadRow(Value):
    """One run of a load curve."""

    name: str
    rate: float  # load in requests per second: what was offered, else what was achieved
    offered: float  # NaN where the source does not say
    achieved: float
    saturated: bool  # an open or paced loop that surely did not sustain the offered load
    data: Histogram | Summary
    evidence: Evidence | None = None  # None for a Summary
    # how far the rate that the system sustains may differ from the one achieved
    achieved_low: float = math.nan
    achieved_high: float = math.nan

    def percentile_rows(
        self, percentiles: Sequence[float], confidence: float = 0.95
    ) -> list[PercentileRow]:
        """Return percentiles with intervals."""
        if self.evidence is None:
            return []
        return self.evidence.rows(percentiles, confidence)[0]


@record(eq=False)
class LoadCurve(Value):
    """Latency against load, as far as it was measured.

    Attributes
    ----------
    rows : tuple of LoadRow
        By load, ascending.
    slo : SLO or None
    checks : tuple of tuples of SLORow
        One per row, in the order of the SLO's limits.
    capacity : Capacity or None
        The highest load that meets the SLO.
    limited_by : str
        The limit that is reached first, or ``""``.
    """

    rows: tuple[LoadRow, ...]
    slo: SLO | None = None
    checks: tuple[tuple[SLORow, ...], ...] = ()
    capacity: Capacity | None = None
    limited_by: str = ""

    def verdict(self, name: str) -> tuple[Outcome, str]:
        """Return whether a run meets every limit of the SLO, and why not or why it is unknown."""
        row, checks = self._of(name)
        if row.saturated:
            return "missed", f"overloaded: {overload_text(row)}"
        for outcome in ("missed", "unknown"):
            for check in checks:
                if check.outcome == outcome:
                    return check.outcome, check.reason
        return "met", ""

    def decided(self, name: str) -> tuple[Outcome, str]:
        """Return whether a run meets the SLO with all of its intervals, and why not."""
        row, checks = self._of(name)
        outcome = _bounded(row, checks)
        if row.saturated:
            return outcome, self.verdict(name)[1]
        return outcome, next((check.reason for check in checks if check.bounded == outcome), "")

    def _of(self, name: str) -> tuple[LoadRow, tuple[SLORow, ...]]:
        pairs = zip(self.rows, self.checks, strict=True)
        return next(pair for pair in pairs if pair[0].name == name)

    @property
    def passed(self) -> bool | None:
        """True if some load surely meets the SLO, False if none does, None if undecided."""
        if self.capacity is None:
            return None
        missed = any(
            row.rate == self.rows[0].rate and _bounded(row, checks) == "missed"
            for row, checks in zip(self.rows, self.checks, strict=True)
        )
        return True if self.capacity.low else False if missed else None

    @property
    def table(self) -> pd.DataFrame:
        """One row per run: rate, offered, achieved, saturated, count and percentiles."""
        import pandas as pd

        plain = ("name", "rate", "offered", "achieved", "saturated")
        rows = [
            {name: getattr(row, name) for name in plain}
            | {"count": row.data.count}
            | {f"p{p:g}": value for p, value in self.percentiles(row).items()}
            for row in self.rows
        ]
        return pd.DataFrame(rows).set_index("name")

    def _repr_html_(self) -> str:
        rows = []
        for row in self.rows:
            known = self.percentiles(row)
            values = [
                format_value(known[p], row.data.unit) if p in known else "" for p in _PERCENTILES
            ]
            outcome = [self.verdict(row.name)[0]] if self.checks else []
            rows.append((row.name, f"{format_rate(row.rate)}/s", *values, *outcome))
        header = ("", "load", *(f"p{p:g}" for p in _PERCENTILES), *(["SLO"] if self.checks else []))
        return listing_html(
            "Load curve", header, rows, [self.capacity.reason if self.capacity else ""]
        )

    def __repr__(self) -> str:
        rates = [row.rate for row in self.rows]
        loads = f"{format_rate(min(rates))} to {format_rate(max(rates))}/s" if rates else "no load"
        return f"LoadCurve({format_items(len(rates), 'run')}, {loads})"

    @staticmethod
    def percentiles(
        row: LoadRow, percentiles: Sequence[float] = _PERCENTILES
    ) -> dict[float, float]:
        """Return percentiles of a run; of a summary only those that it has."""
        if isinstance(row.data, Summary):
            return {
                p: row.data.reported_percentiles[p]
                for p in percentiles
                if p in row.data.reported_percentiles
            }
        return dict(zip(percentiles, row.data.percentile(list(percentiles)).tolist(), strict=True))


@record(eq=False)
class _Queued(Evidence):
    """A run of a system with a queue, which may be too short for its requests' dependence to show.

    Requests wait together. Little's law gives their number: L = rate × waiting time. In an M/M/1
    queue requests beyond a high percentile come in groups of 1 / (1 − ρ)² = (1 + L)² on average,
    and twice as many count as one event, since groups differ in size. Those that are as slow on
    the lowest load, without waiting, come alone. Groups that a stall leaves show in how the blocks
    of a run differ. Without blocks they may be any slow ones: waiting times fall evenly from their
    top, so that a group has twice the requests that arrive in the mean excess.
    """

    base: Evidence
    waiting: float
    rate: float
    light: Histogram  # the run of the lowest load,
    stretch: float  # whose requests took that many times as long as alone

    @property
    def jackknife(self) -> Jackknife | None:
        return self.base.jackknife

    @property
    def failures(self) -> Jackknife | None:
        return self.base.failures

    def events(self, percentiles: Sequence[float]) -> Floats:
        """Return as how many independent requests those above each percentile count."""
        assert isinstance(self.base, TimedSupport)
        return self.base.events(percentiles)

    @property
    def _known(self) -> Evidence:
        """What the parts of the run show; of one with too few, the counts."""
        short = self.jackknife is not None and not self.jackknife.known
        return Evidence(self.whole) if short else self.base

    def queue_length(self, percentile: float) -> float:
        """Requests beyond a percentile that count as one event."""
        counted, value = self.whole.counted.nonzero(), self.whole.percentile(percentile)
        excess = np.maximum(counted.middle - value, 0.0)
        beyond = max(float(counted.counts[excess > 0].sum()), 1.0)
        group = 2 * self.rate * float((excess * counted.counts).sum()) / beyond / 1e9
        queue, share = (1 + self.waiting) ** 2, max(1 - percentile / 100, 1e-12)
        most = 2 * max(queue, group)
        if not isinstance(self.base, TimedSupport) or not 0 < percentile < 100:
            return most
        (events,) = self.base.events([percentile])
        alone = self.light.count_above(value * self.stretch) / self.light.count
        waited = max(1 - alone / share, 0.0)
        seen = share * self.whole.count / max(events, 1.0)
        return most if math.isnan(events) else min(most, max(1 + (2 * queue - 1) * waited, seen))

    def rows(
        self, percentiles: Sequence[float], confidence: float = 0.95
    ) -> tuple[list[PercentileRow], tuple[str, ...]]:
        rows, known = self._known.rows(percentiles, confidence)
        queue_length = np.array([self.queue_length(row.percentile) for row in rows])
        groups = ((self.whole.count + self.whole.censored) / queue_length).astype(np.int64)
        ranks = [
            np.concatenate(rank_interval(number, [row.percentile], confidence))
            for number, row in zip(groups.tolist(), rows, strict=True)
        ]
        low, high = (np.reshape(ranks, (-1, 2)) * queue_length[:, None]).T
        levels = np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)
        ends = zip(*values_at_ranks(self.whole.counted, *levels), strict=True)
        wider = [  # NaN where so few events bound nothing from below
            row if not 0 < row.percentile < 100 or math.isnan(row.high)
            else replace(row, low=float(np.minimum(row.low, bottom)), high=max(row.high, top))
            for row, (bottom, top) in zip(rows, ends, strict=True)
        ]  # fmt: skip
        why = (
            "requests that queue are slow together, and so few do not show how often: measure for "
            "longer" + ("" if self.jackknife else ", or keep a log")
        )
        return wider, (*known, why) if any(math.isinf(row.high) for row in wider) else known

    def mean(self, name: str = "mean", confidence: float = 0.95) -> tuple[float, float]:
        below, above = super().mean(name, confidence)
        wider = math.sqrt(self.queue_length(0.0))
        known = self._known.mean(name, confidence)
        return max(below * wider, known[0]), max(above * wider, known[1])


def load_curve(
    runs: Mapping[str, Data | LoadRow | PathOrFrame],
    slo: SLO | str | None = None,
    *,
    confidence: float = 0.95,
    unit: str | None = None,
) -> LoadCurve:
    """Find how latency rises with load, and the highest load that meets an SLO.

    Parameters
    ----------
    runs : mapping of str to data type, path, frame or LoadRow
        A name that is a number (``"5000"``, ``"5000/s"``) is the offered rate of its run. A row of
        `load_row` saves its computation where a run is part of many curves.
    slo : SLO or str, optional
    confidence : float, default 0.95
        A load passes only if the whole interval of this confidence is within the limit.
    unit : str, optional
        Of a path or frame whose numbers state none, as for `lk.read`.

    Raises
    ------
    DataNotAvailableError
        If the rate and the duration of a run are both unknown.
    InvalidArgumentError
        For no runs at all.

    Examples
    --------
    >>> from latencykit.core.histogram import Histogram
    >>> latency = {rate: np.full(2000, 1e9 / (1000 - rate)) for rate in (500, 700, 900, 990)}
    >>> runs = {str(rate): Histogram.of(values, 3) for rate, values in latency.items()}
    >>> curve = load_curve(runs, "p99=20ms")
    >>> round(curve.capacity.rate), curve.capacity.low, curve.capacity.high
    (950, 500.0, 990.0)
    """
    require(runs, Mapping, "runs by name: {'500': lk.read(…), '1000': lk.read(…)}")
    if not runs:
        raise InvalidArgumentError("a load curve needs runs at different loads")
    measured = (
        data if isinstance(data, LoadRow) else load_row(str(name), data, confidence, unit)
        for name, data in runs.items()
    )  # fmt: skip
    ordered = sorted(measured, key=lambda row: row.rate)
    counts = [
        (row.rate, row.data)
        for row in ordered
        if isinstance(row.data, Histogram) and row.data.count
    ]
    if len(counts) > 1:
        # What a request takes alone. In M/M/1, 1 / mean falls linearly with the load; with more
        # servers it falls later, so that a line through two loads takes the time for shorter.
        (first, light), *others = counts
        alone = float(light.percentile(10))
        for rate, run in others:
            if (rise := rate * run.mean - first * light.mean) > 0:
                alone = max(alone, (rate - first) * light.mean * run.mean / rise)
        alone = min(alone, light.mean)
        stretch = light.mean / alone if alone else 1.0
        for k, row in enumerate(ordered):
            counted, evidence = row.data, row.evidence
            times = isinstance(counted, Histogram) and counted.unit == "ns"
            if times and evidence is not None and counted.count:
                waiting = row.rate * max(counted.mean - alone, 0.0) / 1e9
                queued = _Queued(evidence.whole, evidence, waiting, row.rate, light, stretch)
                ordered[k] = replace(row, evidence=queued)
    rows = tuple(ordered)
    if slo is None:
        return LoadCurve(rows)
    limits = for_all_series(slo)
    checks = tuple(tuple(_checked(row, limits, confidence)) for row in rows)
    rates, lost = (np.array([getattr(row, name) for row in rows]) for name in ("rate", "saturated"))
    estimates = []
    for k in range(len(limits.limits)):
        own = [check[k] for check in checks]
        outcomes = [_bounded(row, [check]) for row, check in zip(rows, own, strict=True)]
        low, high, _ = bracket(rates, outcomes)
        values, rate = np.array([check.value for check in own]), math.nan
        if own[0].limit > 0 and (values > 0).all():
            rate = min(max(crossing(rates, values, own[0].limit, lost), low), high)
        if math.isnan(rate):  # of shares, zeros and unknowns only the bracket is known
            rate = low or math.nan
        known = 0.0 if math.isnan(rate) else rate
        estimates.append((math.inf if math.isinf(high) else known, known, k, rate))
    *_, worst, rate = min(estimates)
    # A load passes if it meets every limit, whichever of them the estimate comes from.
    outcomes = [_bounded(row, own) for row, own in zip(rows, checks, strict=True)]
    low, high, remark = bracket(rates, outcomes)
    rate = min(max(rate, low), high) if low or outcomes[0] != "missed" else math.nan
    if not low and rows[0].saturated:
        remark = f"overloaded even at the lowest load measured: {overload_text(rows[0])}"
    elif remark:
        for row, checked in zip(rows, checks, strict=True):
            reason = next((check.reason for check in checked if check.bounded == "unknown"), "")
            if low < row.rate < high and reason and _bounded(row, checked) == "unknown":
                remark = f"{remark} (at {_rates(np.array([row.rate]))}: {reason})"
                break
    capacity = Capacity(rate, low, high, remark)
    return LoadCurve(rows, limits, checks, capacity, limits.limits[worst].statistic)


def _bounded(row: LoadRow, checks: Sequence[SLORow]) -> Outcome:
    """Whether a run meets the SLO with all of its intervals: what brackets are made of."""
    outcomes = {check.bounded for check in checks}
    if row.saturated or "missed" in outcomes:
        return "missed"
    return "unknown" if "unknown" in outcomes else "met"


def _checked(row: LoadRow, slo: SLO, confidence: float) -> Sequence[SLORow]:
    """Check a run; requests under way at its end count as failed unless that alone is a miss."""
    evidence = row.evidence
    checks = list(slo.check(evidence or row.data, confidence=confidence))
    if row.data.run.unfinished:
        answered = slo.check(
            row.data.with_run(unfinished=0)
            if evidence is None
            else replace(evidence, whole=evidence.whole.with_run(unfinished=0)),
            confidence=confidence,
        )
        reasons = why("under way", number=row.data.run.unfinished)
        checks = [
            check if check.outcome != "missed"
            else other if other.outcome == "missed"
            else replace(other, high=math.inf, outcome="unknown", reasons=reasons)
            for check, other in zip(checks, answered, strict=True)
        ]  # fmt: skip
    # Counts do not show when, so that the interval of a growing queue's percentile has no end: it
    # is missed where most of the requests that may queue are beyond the limit.
    for k, (check, limit) in enumerate(zip(checks, slo.limits, strict=True)):
        p = limit.percentile
        if isinstance(evidence, _Queued) and check.bounded == "unknown" and p and 50 < p < 100:
            (slow,) = evidence.whole.percentile_rows([min(50.0, 2 * p - 100)])
            if slow.bucket_low > check.limit:
                reasons = why("most beyond")
                checks[k] = replace(check, low=slow.bucket_low, outcome="missed", reasons=reasons)
    return checks


def overload_text(row: LoadRow) -> str:
    """Return what an overloaded run achieved, with its interval."""
    ends = (
        f"{end:,.0f}" if end >= 100 else f"{end:.3g}"
        for end in (row.achieved_low, row.achieved_high)
    )
    offered, achieved = (_rates(np.array([rate])) for rate in (row.offered, row.achieved))
    return f"{achieved} of {offered} achieved ({' to '.join(ends)})"


_BLOCKS = 10


def load_row(name: str, data: Any, confidence: float = 0.95, unit: str | None = None) -> LoadRow:
    """Return a run with its rates, as a row of a load curve; see `load_curve`."""
    data = as_data(data, "a load curve", unit)
    known = hasattr(data, "unit") and data.unit in NANOSECONDS
    counted: Any = data.to_unit("ns") if known else data
    counted = without_under_way(counted, counted.run.achieved or _named(name))
    timed, evidence = counted, None
    if not isinstance(data, Summary):
        evidence = counted.evidence() if hasattr(counted, "evidence") else None
        counted = histogram_of(counted if evidence is None else evidence.whole, "a load curve")
    run = counted.run
    offered = _named(name) or run.rate or math.nan
    timed_alone = isinstance(evidence, TimedSupport) and math.isnan(offered)
    if timed_alone and run.loop == "unknown" and facts_of(timed).at_full_speed:
        counted = counted.with_run(loop="closed")
    achieved = run.achieved or (  # a single request has no rate
        counted.count / run.duration if (counted.count or 0) > 1 and run.duration else math.nan
    )
    rate = achieved if math.isnan(offered) else offered
    if math.isnan(rate):
        raise DataNotAvailableError(
            f"{name}: rate and duration are unknown; write the offered rate as its name: "
            f"5000={run.source or 'path'}"
        )
    low, high = math.nan, math.nan
    if run.loop != "closed" and not math.isnan(offered + achieved):
        # Of many loads none must be called saturated by chance.
        z, error, in_flight = normal_quantile(1 - tail_of(confidence) / 10), 0.0, 0.0
        if isinstance(timed, Samples) and known and (served := _served(timed)) is not None:
            achieved, error = served
            error = z * math.hypot(error, math.sqrt(achieved / timed.elapsed))
        elif counted.count:
            # As of random arrivals, or as the counts vary over time.
            parts = None if evidence is None else evidence.jackknife
            spread = 0.0
            if parts is not None and parts.known:
                rates = parts.rates()
                spread = float(rates.std(ddof=1) / rates.mean()) / math.sqrt(rates.size)
            error = z * max(achieved / math.sqrt(counted.count), achieved * spread)
            if run.duration and counted.unit == "ns":
                # Requests under way at the end are not counted: by Little's law, L = λW.
                in_flight = offered * counted.mean / 1e9 / run.duration
        low, high = max(0.0, achieved - error), achieved + error + in_flight
    # A surer sign than any knee, of open loops: a closed one offers no more than it achieves.
    lost = not math.isnan(high) and bool(high < 0.99 * offered)
    return LoadRow(name, rate, offered, achieved, lost, counted, evidence, low, high)


def _served(samples: Samples) -> tuple[float, float] | None:
    """Return replies per second while requests were sent; the error of the backlog's growth."""
    if samples.start is None or len(samples) < 20 * _BLOCKS:
        return None
    start = samples.start if samples.intended is None else samples.intended
    start = np.sort(np.asarray(start, np.float64))
    done = np.sort(np.asarray(samples.start, np.float64) + samples.duration)
    edges = np.linspace(done[0], start[-1], _BLOCKS + 1)
    if not edges[-1] > edges[0]:
        return None
    sent, replied = (np.searchsorted(times, edges, "right") for times in (start, done))
    length = (edges[-1] - edges[0]) / _BLOCKS / 1e9
    grown = np.diff(sent - replied) / length
    served = float(replied[-1] - replied[0]) / (_BLOCKS * length)
    # Student's t of nine degrees of freedom against the normal quantile
    return served, 1.35 * float(grown.std(ddof=1)) / math.sqrt(_BLOCKS)


def _named(name: str) -> float | None:
    """The rate in a name."""
    text = name.strip().lower().removesuffix("rps").removesuffix("/s").replace(",", "").strip()
    factor = 1000.0 if text.endswith("k") else 1.0
    try:
        rate = float(text.removesuffix("k")) * factor
    except ValueError:
        return None
    return rate if 0 < rate < math.inf else None
