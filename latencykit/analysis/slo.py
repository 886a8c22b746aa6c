"""`SLO`: limits on statistics, and whether a measurement meets them."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latencykit._records import record
from latencykit.analysis.fan_out import samples_needed
from latencykit.analysis.timeouts import suspected_timeout
from latencykit.core.dependence import RAREST, Dependence, unseen_share
from latencykit.core.distribution import Distribution
from latencykit.core.histogram import Evidence, Histogram
from latencykit.core.latency_types import series_named
from latencykit.core.quantiles import is_resolved, share_interval
from latencykit.core.run import require_data
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.core.trimmed import parse_trim, statistic_name, trimmed
from latencykit.errors import DataNotAvailableError, InvalidArgumentError
from latencykit.units import (
    NANOSECONDS,
    format_count,
    format_duration,
    format_percentile,
    format_value,
    parse_duration,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from latencykit.core import Data

    Floats = NDArray[np.float64]

__all__ = [
    "SLO",
    "Limit",
    "Outcome",
    "SLORow",
    "check_limit",
    "for_all_series",
    "joint_share",
    "passed",
    "slo_from_text",
]


Outcome = Literal["met", "missed", "unknown"]


@record()
class SLORow:
    """One limit, checked.

    Attributes
    ----------
    statistic : str
        As in `Limit`, or ``"joint"``: the share of the requests that meet the limits of all
        latency types, of which `limit` is the least that is wanted.
    limit, value : float
        In the unit of the measurement's values; shares (0..1) for ``failed`` and ``joint``. The
        value is infinite where failed requests reach the percentile, NaN where the statistic is not
        available.
    low, high : float
        Confidence interval of the value joined with its bucket.
    outcome : {"met", "missed", "unknown"}
    reason : str
        Why it is unknown, or a remark; ``""`` otherwise.
    unit : str
    bucket_low, bucket_high : float
        Bounds of the value by the resolution of the source; NaN if unknown.
    """

    statistic: str
    limit: float
    value: float
    low: float
    high: float
    outcome: Outcome
    reason: str = ""
    unit: str = "ns"
    bucket_low: float = math.nan
    bucket_high: float = math.nan

    @property
    def resolved(self) -> bool:
        """True if the source resolves the value within a tenth; else it is a range."""
        return math.isnan(self.bucket_low) or bool(is_resolved(self.bucket_low, self.bucket_high))

    @property
    def margin(self) -> float:
        """Distance to the limit as a share of it: 0.25 is a quarter left; NaN for a range."""
        return self._margin(self.value) if self.resolved else math.nan

    @property
    def margin_low(self) -> float:
        """The margin at the worse end of the interval: its lower bound."""
        return self._margin(self.low if self.statistic == "joint" else self.high)

    @property
    def margin_high(self) -> float:
        """The margin at the better end of the interval: its upper bound."""
        return self._margin(self.high if self.statistic == "joint" else self.low)

    @property
    def is_share(self) -> bool:
        """True if limit and value are shares of the requests."""
        return self.statistic in ("failed", "joint")

    def _margin(self, value: float) -> float:
        if self.statistic == "joint":
            return value / self.limit - 1
        return 1 - value / self.limit if self.limit else math.nan if value else 0.0


_EMPTY = "the measurement has no requests"


def check_limit(
    source: Any,
    statistic: str,
    limit: float,
    confidence: float,
    evidence: Any = None,
    *,
    rare: bool = True,
) -> SLORow:
    """Check one limit; see `latencykit.analysis.slo.SLO.check`."""
    if statistic == "failed":
        return _failed(source, limit, confidence)
    if not hasattr(source, "percentile_rows"):
        # A reported number has no interval.
        if statistic not in ("max", "mean") and not statistic.startswith("p"):
            reason = (
                f"{statistic} needs the values or a histogram, and the source has reported "
                "numbers only"
            )
            return _unknown(statistic, limit, reason, source.unit)
        try:
            if statistic.startswith("p"):
                value = source.percentile(float(statistic[1:]))
            else:
                value = source.max if statistic == "max" else source.mean
        except DataNotAvailableError as missing:
            return _unknown(statistic, limit, str(missing), source.unit)
        return _settled(
            statistic, limit, value, value, value, source.unit, "as reported, without an interval"
        )
    evidence = source.evidence() if evidence is None else evidence
    if statistic == "max":
        return _maximum(source, limit)
    if statistic.startswith("p"):
        return _percentile(source, float(statistic[1:]), limit, confidence, evidence, rare=rare)
    return _mean(source, statistic, limit, confidence, evidence, rare=rare)


def _unknown(statistic: str, limit: float, reason: str, unit: str = "ns") -> SLORow:
    return SLORow(statistic, limit, math.nan, math.nan, math.nan, "unknown", reason, unit)


def _settled(
    statistic: str, limit: float, value: float, low: float, high: float, unit: str, reason: str = ""
) -> SLORow:
    outcome: Outcome = "met" if high <= limit else "missed" if low > limit else "unknown"
    if outcome == "unknown" and not reason:
        span = f"{format_value(low, unit)} and {format_value(high, unit)}"
        reason = f"both the value and the limit lie between {span}"
    return SLORow(statistic, limit, value, low, high, outcome, reason, unit)


def _failures(source: Any) -> tuple[int, int]:
    """Failed requests that the counts leave out, and those among the censored ones."""
    run = source.run
    inside = min(getattr(source, "censored", 0), run.timeouts)
    return run.failed + run.dropped + run.unfinished + run.timeouts - inside, inside


def _failed(source: Any, limit: float, confidence: float) -> SLORow:
    outside, inside = _failures(source)
    failed = outside + inside
    if source.count is None:
        return _unknown("failed", limit, "the source does not report the number of requests")
    attempts = source.count + getattr(source, "censored", 0) + outside
    if not attempts:
        return _unknown("failed", limit, _EMPTY)
    value = failed / attempts
    if not source.run.failures_known:  # known failures prove a limit missed, never met
        low, _ = share_interval(failed, attempts, confidence)
        why = "the number of failed requests is unknown: the source does not report it readably"
        return _settled("failed", limit, value, low if limit else value, 1.0, "none", why)
    if limit == 0:  # "none may fail" is about these requests; no sample bounds a share by 0
        return SLORow("failed", limit, value, value, value, "missed" if failed else "met")
    low, high = share_interval(failed, attempts, confidence)
    reason = ""
    if low <= limit < high:
        share = f"{format_count(failed)} of {format_count(attempts)} requests failed"
        reason = f"{share}, which a share of {100 * low:.3g} to {100 * high:.3g} % would explain"
    return _settled("failed", limit, value, low, high, "none", reason)


def _percentile(
    source: Any, percentile: float, limit: float, confidence: float, evidence: Any, *, rare: bool
) -> SLORow:
    name, unit = f"p{format_percentile(percentile)}", source.unit
    outside, inside = _failures(source)
    good, counted = source.count, source.count + source.censored
    attempts = counted + outside
    if not attempts:
        return _unknown(name, limit, _EMPTY, unit)
    failed = f"{format_count(outside + inside)} of {format_count(attempts)} requests failed"
    asked = percentile * attempts / counted if counted else math.inf
    reached = asked > 100 * (1 + 1e-12) or (
        inside == source.censored > 0 and percentile * attempts > 100 * good
    )
    if reached:
        reason = f"{failed}, and {name} falls among them"
        return SLORow(name, limit, math.inf, math.inf, math.inf, "missed", reason, unit)
    (row,), why = evidence.rows([min(asked, 100.0)], confidence, rare=rare, events=False)
    low, high = row.low, row.high
    reason = f"{failed} and count as slower" if outside else ""
    if math.isnan(high) and evidence.dependence is None:
        low, high = row.bucket_low, row.bucket_high  # corrected counts: only the bucket is known
    low, high = (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)
    if math.isinf(high) and low <= limit and why:
        reason = "; ".join(text.removeprefix(f"{name}: ") for text in why)
    elif math.isinf(high) and low <= limit:
        reason = f"{format_count(attempts)} requests do not bound {name}"
        needed = samples_needed(percentile, confidence) if percentile < 100 else 0
        if needed > attempts:
            reason += f"; it takes {format_count(needed)}"
        elif percentile < 100:
            reason += ", since too few of the slow ones are independent"
    low, high = min(low, row.bucket_low), max(high, row.bucket_high)
    step = _clock_step(source, row.value)
    if step and abs(limit / step - round(limit / step)) > _ON_GRID:
        low, high = min(low, max(row.value - step, 0.0)), max(high, row.value + step)
        if low <= limit < high and not reason:
            reason = f"times were read from a clock that ticks every {format_value(step, unit)}"
    given_up = suspected_timeout(evidence.whole)
    reached = row.value if math.isinf(high) else high
    if given_up is not None and low <= limit and reached >= given_up[0]:
        took = f"{format_count(given_up[1])} requests took {format_value(given_up[0], unit)}"
        high = math.inf
        reason = f"{took}: if that is a timeout, or the recorder's highest value, {name} is unknown"
    checked = _settled(name, limit, row.value, low, high, unit, reason)
    return replace(checked, bucket_low=row.bucket_low, bucket_high=row.bucket_high)


_COARSE = 0.05  # of a latency: finer ticks of a clock do not matter
_ON_GRID = 0.01  # of a tick: so near, a limit is a number of ticks, and compared as such
_REPEATED = 10  # requests per distinct latency, at least, where a clock is coarse
_APART = 4.0  # times a bucket: empty ones lie between two ticks


def _clock_step(source: Any, value: float) -> float:
    """Step between the readings of a coarse clock around a latency; 0 if the clock is fine.

    The difference of two readings is wrong by up to one tick to either side.
    """
    counted = source.counted
    few = 3 <= counted.counts.size <= counted.counts.sum() / _REPEATED
    if not few or not np.isfinite(counted.middle).all():
        return 0.0
    least = np.diff(counted.middle).min()
    if not least > 0:  # reported percentiles may have one value
        return 0.0
    ticks = np.rint(counted.middle / least)
    step = float(ticks @ counted.middle / (ticks @ ticks))
    width = counted.high - counted.low
    on_grid = np.abs(counted.middle - ticks * step) <= np.maximum(width, _ON_GRID * step)
    at = round(value / step)
    beside = (ticks == np.array([[at - 1], [at], [at + 1]])).any(axis=1)
    coarse = step >= max(_COARSE * value, _APART * float(width[ticks <= at + 1].max(initial=0.0)))
    return step if coarse and on_grid.all() and beside[1] and beside.sum() > 1 else 0.0


def _maximum(source: Any, limit: float) -> SLORow:
    outside, inside = _failures(source)
    unit, top = source.unit, source.max
    if outside + inside:
        reason = (
            f"{format_count(outside + inside)} requests failed, and count as slower than any limit"
        )
        return SLORow("max", limit, math.inf, math.inf, math.inf, "missed", reason, unit)
    if source.censored:
        least = max(source.censored_at, 0.0 if math.isnan(top) else top)
        bound = format_value(source.censored_at, unit)
        reason = f"{format_count(source.censored)} values are known only to be at least {bound}"
        return _settled("max", limit, least, least, math.inf, unit, reason)
    if math.isnan(top):
        return _unknown("max", limit, _EMPTY, unit)
    edge = source.bracket("max")[0]
    return replace(
        _settled("max", limit, top, min(edge, top), top, unit),
        bucket_low=min(edge, top),
        bucket_high=top,
    )


def _mean(
    source: Any, statistic: str, limit: float, confidence: float, evidence: Any, *, rare: bool
) -> SLORow:
    """The mean of the good requests, or a trimmed one; its error is joined with the buckets."""
    unit = source.unit
    if not source.count:
        return _unknown(statistic, limit, _EMPTY, unit)
    trim = trimmed(source.counted, "TM(0%:100%)" if statistic == "mean" else statistic, unit)
    value, low, high = trim.value, trim.low, trim.high
    if statistic == "mean" and ("mean" in source.reported_stats or not source.censored):
        low, high = source.bracket("mean")
        value = source.mean if is_resolved(low, high) else high
    ends = low, high
    below, above = (
        evidence.mean(statistic, confidence, rare=rare) if math.isfinite(high) else (0.0, 0.0)
    )
    # A mean is not below the fastest request.
    low, high = max(low - below, source.bracket("min")[0]), high + above
    step = _clock_step(source, value)
    low, high = max(low - step, 0.0), high + step  # readings may all be rounded to one side
    outside, inside = _failures(source)
    reason = (
        f"of the {format_count(source.count)} requests that did not fail"
        if outside + inside
        else ""
    )
    if math.isinf(above) and low <= limit:
        reason = (
            "the run is too short, or its slow requests too few and too different, to bound the "
            "mean from above"
        )
    return replace(
        _settled(statistic, limit, value, low, high, unit, reason),
        bucket_low=ends[0],
        bucket_high=ends[1],
    )


# ------------------------------------------------------------
# Service level objectives.

_ENTRY = re.compile(r"(\w+\s*\(.*?\)|.+?)\s*(<=|>=|≤|≥|<|>|=|:)\s*(.+)")
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_FAILED = ("failed", "fail", "failures", "failure", "errors", "error", "error rate", "failure rate")
_HINT = "write for example '99.9=20ms, max=1s, mean=2ms, failed=0.1%'"


@record()
class Limit:
    """The most that a statistic may be.

    Attributes
    ----------
    statistic : str
        ``"p99.9"``, ``"max"``, ``"mean"``, ``"tm99"`` or ``"failed"``.
    limit : float
        Nanoseconds; a bare number where `bare`; a share (0..1) of all requests for ``failed``.
    bare : bool
        The limit has no unit, for values that have none.
    series : str or None
        The series or latency type that it limits, such as ``"ttft"``; None for every series.
    """

    statistic: str
    limit: float
    bare: bool = False
    series: str | None = None

    @property
    def percentile(self) -> float | None:
        """The limited percentile (0..100); 100 for the maximum, None for other statistics."""
        if self.statistic == "max":
            return 100.0
        return float(self.statistic[1:]) if self.statistic[:1] == "p" else None

    def in_unit(self, unit: str) -> float:
        """Return the limit in the unit of the values."""
        if self.statistic == "failed":
            return self.limit
        if self.bare != (unit not in NANOSECONDS):
            kind = "values with a unit" if self.bare else "values without one"
            raise InvalidArgumentError(
                f"the limit of {self.statistic} cannot be compared with {kind}; write "
                + (
                    "it with a unit, such as 20ms"
                    if self.bare
                    else "a bare number, or name the values' unit (--unit)"
                )
            )
        return self.limit if self.bare else self.limit / NANOSECONDS[unit]

    def __str__(self) -> str:
        name = self.statistic if self.series is None else f"{self.series} {self.statistic}"
        if self.statistic == "failed":
            return f"{name}={100 * self.limit:g}%"
        return (
            f"{name}={self.limit:g}" if self.bare else f"{name}={format_duration(self.limit, 15)}"
        )


@record()
class SLO:
    """Limits that all have to be met.

    Parameters
    ----------
    limits : tuple of Limit

    Examples
    --------
    >>> slo = SLO.parse("99.9=20ms, max=1s, failed=0.1%")
    >>> print(slo)
    p99.9=20 ms, max=1 s, failed=0.1%
    >>> import latencykit as lk
    >>> [row.outcome for row in slo.check(lk.Histogram.of(range(1_000_000, 6_000_000, 1000)))]
    ['met', 'met', 'met']
    """

    limits: tuple[Limit, ...]

    @classmethod
    def parse(cls, text: str) -> SLO:
        """Parse an SLO.

        Parameters
        ----------
        text : str
            Entries such as ``99.9=20ms``, ``p99<20ms``, ``max=1s``, ``mean=2ms``, ``tm99=5ms``,
            ``failed=0.1%``, separated by commas, semicolons or lines; ``#`` starts a comment. An
            entry may begin with a series: ``ttft 99=500ms``.

        Raises
        ------
        InvalidArgumentError
            If an entry is not a valid limit, or two limit the same statistic.
        """
        if not isinstance(text, str):
            raise InvalidArgumentError(f"an SLO is text, not {type(text).__name__}; {_HINT}")
        lines = (line.split("#", 1)[0] for line in text.splitlines())
        entries = [entry.strip() for line in lines for entry in re.split(r"[,;]", line)]
        return cls.of(_parse_entry(entry) for entry in entries if entry)

    @classmethod
    def of(cls, limits: Iterable[Limit]) -> SLO:
        """Return the SLO of some limits, one per statistic."""
        stated = tuple(limits)
        names = [(limit.series, limit.statistic) for limit in stated]
        if not stated:
            raise InvalidArgumentError(f"the SLO states no limit; {_HINT}")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            name = " ".join(filter(None, twice))
            raise InvalidArgumentError(f"the SLO limits {name} twice; keep the stricter one")
        return cls(stated)

    def of_series(self, names: Iterable[str]) -> dict[str, SLO]:
        """Return the limits of each series that has some.

        Parameters
        ----------
        names : iterable of str
            The series of a file. A limit of ``ttft`` also means ``time_to_first_token``.

        Raises
        ------
        InvalidArgumentError
            For a limit of a series that is not there.

        Examples
        --------
        >>> slo = SLO.parse("ttft 99=500ms, tpot 95=50ms")
        >>> {name: str(own) for name, own in slo.of_series(["ttft", "itl", "tpot"]).items()}
        {'ttft': 'ttft p99=500 ms', 'tpot': 'tpot p95=50 ms'}
        """
        known = list(names)
        own: dict[str, list[Limit]] = {name: [] for name in known}
        for limit in self.limits:
            chosen = known if limit.series is None else series_named(limit.series, known)
            if not chosen:
                raise InvalidArgumentError(
                    f"the SLO limits the series {limit.series!r}, which is missing; the series are "
                    + (", ".join(known) or "none")
                )
            for name in chosen:
                own[name].append(limit)
        return {name: SLO(tuple(limits)) for name, limits in own.items() if limits}

    def check_all(
        self,
        series: Mapping[str, Data],
        confidence: float = 0.95,
        *,
        joint: float | None = None,
    ) -> dict[str, list[SLORow]]:
        """Check every series of a file against its own limits.

        Parameters
        ----------
        series : mapping of str to data
            As `latencykit.read_all` returns it.
        confidence : float, default 0.95
        joint : float, optional
            The least share (0..1) of the requests that has to meet all limits together: goodput.

        Returns
        -------
        dict of str to list of SLORow
            The joint result, if asked for, is under ``"all"``.

        Examples
        --------
        >>> import random
        >>> import latencykit as lk
        >>> sent = range(0, 600_000_000_000, 1_000_000_000)
        >>> took = random.Random(1).choices(range(200, 900), k=600)
        >>> ttft = lk.Samples(start=sent, duration=took, unit="ns")
        >>> slo = lk.SLO.parse("ttft 90=1us, e2el 90=2us")
        >>> rows = slo.check_all({"ttft": ttft, "e2el": ttft}, joint=0.9)
        >>> {name: row.outcome for name, (row,) in rows.items()}
        {'ttft': 'met', 'e2el': 'met', 'all': 'met'}
        """
        limits = self.of_series(series)
        checked = {name: own.check(series[name], confidence) for name, own in limits.items()}
        if joint is not None:
            chosen = {name: (series[name], own) for name, own in limits.items()}
            checked["all"] = [joint_share(chosen, joint, confidence)]
        return checked

    def check(
        self, source: Data | Distribution | Evidence, confidence: float = 0.95, *, rare: bool = True
    ) -> list[SLORow]:
        """Return one row per limit: met, missed, or unknown.

        Parameters
        ----------
        source : Histogram, HistogramLog, Samples or Summary
            Or the evidence of one of them. Values of the rows are in its unit.
        confidence : float, default 0.95
        rare : bool, default True
            Allow for stalls that a short measurement may have missed; see `Evidence.rows`.

        Returns
        -------
        list of SLORow

        Notes
        -----
        A limit is met if the whole confidence interval, joined with the bucket, is within it;
        missed if all of it is beyond; anything else is unknown. A percentile that the sample does
        not bound can only be missed or unknown. Failed requests count as slower than any limit. If
        the source has times, intervals allow for requests that are slow together.
        """
        evidence = None
        if not isinstance(source, Summary | Distribution):
            if not isinstance(source, Evidence):
                require_data(source, "SLO.check")
            evidence = source if isinstance(source, Evidence) else source.evidence()
        counted = evidence.whole if evidence else source
        assert isinstance(counted, Histogram | Summary | Distribution)
        limits = [(limit.statistic, limit.in_unit(counted.unit)) for limit in self.limits]
        return [check_limit(counted, *limit, confidence, evidence, rare=rare) for limit in limits]

    def staircase(self) -> tuple[Floats, Floats]:
        """Return the corners of the limits on percentiles, for drawing.

        Returns
        -------
        percentile, limit : ndarray of float64, shape (2 × limits,)
            From 0 on; each limit applies up to its percentile, the maximum's up to 100. Limits are
            in nanoseconds, or bare.

        Examples
        --------
        >>> percentile, limit = SLO.parse("p90=10ms, max=1s").staircase()
        >>> percentile.tolist(), (limit / 1e6).tolist()
        ([0.0, 90.0, 90.0, 100.0], [10.0, 10.0, 1000.0, 1000.0])
        """
        steps = sorted(
            (item.percentile, item.limit) for item in self.limits if item.percentile is not None
        )
        ends = np.array([percentile for percentile, _ in steps], np.float64)
        corners = np.repeat(np.concatenate(([0.0], ends)), 2)[1:-1]
        return corners, np.repeat(np.array([limit for _, limit in steps], np.float64), 2)

    def __str__(self) -> str:
        return ", ".join(map(str, self.limits))


def passed(rows: Iterable[SLORow], *, strict: bool = False) -> bool | None:
    """Return whether all limits are met; None if some are unknown and none is missed."""
    outcomes: set[Outcome] = {row.outcome for row in rows}
    if "missed" in outcomes or (strict and "unknown" in outcomes):
        return False
    return None if "unknown" in outcomes else True


def _parse_entry(entry: str) -> Limit:
    match = _ENTRY.fullmatch(entry)
    if not match:
        raise InvalidArgumentError(f"{entry!r} is not a valid limit; {_HINT}")
    name, sign, value = match[1].strip(), match[2], match[3].strip()
    if sign in (">", ">=", "≥"):
        raise InvalidArgumentError(
            f"{entry!r} is a lower limit; an SLO has upper limits, such as p99<20ms"
        )
    series, statistic = _series_and_statistic(name)
    if statistic == "failed":
        number = value.removesuffix("%").strip()
        bare = value == number and number.strip("0.")
        if not _NUMBER.fullmatch(number) or bare or float(number) > 100:
            raise InvalidArgumentError(
                f"{entry!r} is not a valid share of the requests; write it in percent, such as "
                "failed=0.1%"
            )
        return Limit("failed", float(number) / 100, series=series)
    statistic = "max" if statistic == "p100" else statistic
    if statistic[0] in "tTwW" and parse_trim(statistic).kind not in ("TM", "WM"):
        raise InvalidArgumentError(
            f"{entry!r} limits a count or a sum; limit percentiles, the maximum, means, or failed "
            "requests"
        )
    if _NUMBER.fullmatch(value):
        return Limit(statistic, float(value), True, series)
    limit = parse_duration(value)
    if limit < 0:
        raise InvalidArgumentError(f"{entry!r} limits a latency to a negative value; {_HINT}")
    return Limit(statistic, limit, False, series)


def _series_and_statistic(name: str) -> tuple[str | None, str]:
    """Return "ttft" and "p99" of "ttft 99"; a name that is a statistic has no series."""
    words, error = name.split(), None
    for first in range(len(words)):
        text = " ".join(words[first:])
        series = " ".join(words[:first]) or None
        if text.lower() in _FAILED:
            return series, "failed"
        try:
            return series, statistic_name(text)
        except InvalidArgumentError as reason:
            error = error or reason
    raise error or InvalidArgumentError(f"{name!r} is not a valid limit; {_HINT}")


# ------------------------------------------------------------
# Goodput: the share of the requests that meet the limits of all latency types.


def for_all_series(slo: SLO | str) -> SLO:
    """Return an SLO whose limits hold for any series; one that is for a named series is refused."""
    parsed = SLO.parse(slo) if isinstance(slo, str) else slo
    for limit in parsed.limits:
        if limit.series is not None:
            raise InvalidArgumentError(
                f"the limit {f'{limit.series} {limit.statistic}'!r} is for one series, which only "
                f"check judges apart; choose that series (--series {limit.series}) and leave its "
                "name out of the limit"
            )
    return parsed


def joint_share(
    series: Mapping[str, tuple[Data, SLO]], least: float, confidence: float = 0.95
) -> SLORow:
    """Judge the share of requests that meet all limits; failed ones meet none.

    A request meets a limit if its latency is within it, whatever the percentile, and if it has
    several latencies of a type, all of them are. Of several limits of one series, that of the
    highest percentile counts. Requests that are late together are allowed for as in `Dependence`:
    by the long-run variance of their sequence.
    """
    if not 0 < least <= 1:
        raise InvalidArgumentError(f"a joint share lies above 0 and is at most 100 %, not {least}")
    judged: dict[str, tuple[Samples, float]] = {}
    for name, (data, slo) in series.items():
        tops = [(limit.percentile, limit) for limit in slo.limits if limit.percentile is not None]
        if not tops:
            continue
        if not isinstance(data, Samples):
            reason = (
                f"{name}: which requests meet all limits is known of single requests only, and the "
                "file has statistics or counts"
            )
            return _unknown("joint", least, reason, "none")
        judged[name] = data, max(tops, key=lambda row: row[0])[1].in_unit(data.unit)
    if not judged:
        raise InvalidArgumentError("a joint share needs limits of percentiles or of the maximum")
    alone = len(judged) == 1
    numbers = []
    for name, (data, _) in judged.items():
        number = data.request
        if number is None and not (
            alone or all(len(samples) == len(data) for samples, _ in judged.values())
        ):
            raise DataNotAvailableError(
                f"{name}: does not state the request of each row, so its rows cannot be "
                "matched with those of the other series; limit one series only"
            )
        numbers.append(np.arange(len(data)) if number is None else number)
    known, place = np.unique(np.concatenate(numbers), return_inverse=True)
    bad = np.zeros(known.size, np.bool_)
    ends = np.cumsum([0, *(number.size for number in numbers)])
    for (data, limit), first, last in zip(judged.values(), ends, ends[1:], strict=False):
        bad[place.reshape(-1)[first:last][~data.good | (data.values > limit)]] = True
    # Failed requests that are not among the rows.
    outside = max(
        sum(_failures(data.histogram())) - int((~data.good).sum()) for data, _ in judged.values()
    )
    return _joint_row(bad, max(outside, 0), least, confidence, judged)


def _joint_row(
    bad: NDArray[np.bool_],
    outside: int,
    least: float,
    confidence: float,
    judged: Mapping[str, tuple[Samples, float]],
) -> SLORow:
    """The row of the share of requests that are not bad; `bad` is in order of the requests."""
    total, reason = bad.size + outside, ""
    if not total:
        return _unknown("joint", least, _EMPTY, "none")
    missed = int(bad.sum())
    low, high = share_interval(missed, bad.size, confidence)
    if 0 < missed < bad.size:
        clustered = Dependence(
            np.stack((~bad, bad), axis=1).astype(np.float64), np.array([0.0, 1.0])
        )
        ends = clustered.share_interval(confidence)
        if ends is None:
            low, high = 0.0, 1.0
            reason = (
                "the run is too short to show how requests that miss a limit depend on each other"
            )
        else:
            low, high = min(low, ends[0]), max(high, ends[1])
    seconds = max((data.run.duration or (data.elapsed or 0.0)) for data, _ in judged.values())
    unseen = unseen_share(seconds) if seconds else 0.0
    low, high = bad.size * low / total, (bad.size * min(high + unseen, 1.0) + outside) / total
    low += outside / total
    share = 1 - (missed + outside) / total
    least_share, most_share = 1 - high, 1 - low
    outcome: Outcome = (
        "met" if least_share >= least else "missed" if most_share < least else "unknown"
    )
    if not reason:
        met = format_count(total - missed - outside)
        reason = f"{met} of {format_count(total)} requests meet the limits of {', '.join(judged)}"
    if outcome == "unknown" and unseen and 1 - high + unseen * bad.size / total >= least:
        reason += (
            f"; a run of {format_duration(seconds * 1e9)} may have missed stalls that occur every "
            f"{RAREST / 60:.0f} minutes"
        )
    return SLORow("joint", least, share, least_share, most_share, outcome, reason, "none")


# ------------------------------------------------------------
# SLOs that other tools keep in files: gnuplot's steps, and HistogramLogAnalyzer's XML.

_FLOAT = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_STEP = re.compile(rf"\s*({_FLOAT})[\s,]+({_FLOAT})(?:[\s,]+({_FLOAT})\s*%?.*)?\s*")
_ELEMENT, _LIMIT = "SLAPercentile", "acceptablehicupp_msec"  # spelled so by HistogramLogAnalyzer


def slo_from_text(text: str, unit: str = "ms") -> SLO:
    """Return the SLO in the text of a file."""
    body = text.lstrip("\ufeff \t\r\n")
    if body.startswith("<"):
        return _from_xml(body)
    lines = [
        line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    steps = [_STEP.fullmatch(line) for line in lines]
    if lines and all(steps):
        if unit not in NANOSECONDS:
            raise InvalidArgumentError(
                f"limits in {unit!r} have no duration; name their unit: ns, us, ms or s"
            )
        ends: dict[float, float] = {}
        for place, level, label in [(float(s[1]), float(s[2]), s[3]) for s in steps if s]:
            if place < 1:
                raise InvalidArgumentError(
                    f"a step at {place:g} is not a valid percentile; the first column is "
                    "1/(1 - q), 1 or more"
                )
            percentile = (
                float(label) if label is not None else float(f"{100 * (1 - 1 / place):.12g}")
            )
            ends[level] = max(ends.get(level, 0.0), percentile)
        limits = [
            Limit("max" if p == 100 else f"p{format_percentile(p)}", level * NANOSECONDS[unit])
            for level, p in sorted(ends.items(), key=lambda item: item[1])
            if p > 0
        ]
        return SLO.of(limits)
    return SLO.parse(text)


def _from_xml(text: str) -> SLO:
    """Read ``<SLAPercentile acceptablehicupp_msec="2">99.0</SLAPercentile>`` elements."""
    from xml.parsers import expat

    limits: list[Limit] = []
    inside: list[str] = []
    text_of: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == _ELEMENT:
            inside[:], text_of[:] = [attributes.get(_LIMIT, "")], []

    def end(name: str) -> None:
        if name == _ELEMENT and inside:
            percentile = "".join(text_of).strip()
            limit = inside.pop()
            try:
                share, level = float(percentile), float(limit)
            except ValueError:
                share = level = -1.0
            if not (0 <= share <= 100 and level >= 0):
                raise InvalidArgumentError(
                    f'<{_ELEMENT} {_LIMIT}="{limit[:40]}">{percentile[:40]} is not a valid limit; '
                    "both are plain numbers"
                )
            limits.append(
                Limit(
                    "max" if share == 100 else f"p{format_percentile(share)}",
                    level * NANOSECONDS["ms"],
                )
            )

    def refuse(*_: object) -> None:
        raise InvalidArgumentError(
            "the SLO's XML declares a document type, which it does not need; remove the DOCTYPE"
        )

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text_of.append
    parser.StartDoctypeDeclHandler = refuse  # so no entity can ever be declared, let alone expanded
    try:
        parser.Parse(text, True)
    except expat.ExpatError as broken:
        raise InvalidArgumentError(f"the SLO is not well-formed XML: {broken}") from None
    if not limits:
        raise InvalidArgumentError(
            f"the SLO's XML has no {_ELEMENT} element; write them as HistogramLogAnalyzer's "
            "SLAdetails.xml does"
        )
    return SLO.of(limits)
