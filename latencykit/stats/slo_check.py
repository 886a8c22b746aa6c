"""One limit against one measurement: the value, its interval, and whether that settles the matter."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from latencykit.errors import NotHeldError
from latencykit.stats.fanout import samples_needed
from latencykit.stats.percentiles import is_resolved
from latencykit.stats.quantiles import share_interval
from latencykit.stats.trimmed import trimmed
from latencykit.units import format_count, format_percentile, format_value

__all__ = ["Outcome", "SLORow", "check_limit"]

Outcome = Literal["met", "missed", "unknown"]


@dataclass(frozen=True)
class SLORow:
    """One limit, checked.

    Attributes
    ----------
    statistic : str
    limit, value : float
        In the unit of the measurement's values; shares (0..1) for ``failed``. Infinite where failed requests
        reach the percentile, NaN where the measurement does not hold the statistic.
    low, high : float
        What the value may be: its confidence interval joined with the bucket.
    outcome : {"met", "missed", "unknown"}
    reason : str
        Why it is unknown, or what else there is to know; ``""`` otherwise.
    unit : str
    bucket_low, bucket_high : float
        What the source pins the value down between; NaN where that is not known.
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
        """Whether the source pins the value down within a tenth; else it is a range between the two edges."""
        return math.isnan(self.bucket_low) or bool(is_resolved(self.bucket_low, self.bucket_high))

    @property
    def margin(self) -> float:
        """Room to the limit as a share of it: 0.25 is a quarter left, −1 is twice the limit; NaN for a range."""
        return self._room(self.value) if self.resolved else math.nan

    @property
    def margin_low(self) -> float:
        """The margin at the high end of the interval: the least that it may be."""
        return self._room(self.high)

    @property
    def margin_high(self) -> float:
        """The margin at the low end of the interval: the most that it may be."""
        return self._room(self.low)

    def _room(self, value: float) -> float:
        return 1 - value / self.limit if self.limit else math.nan if value else 0.0


def check_limit(
    source: Any, statistic: str, limit: float, confidence: float, evidence: Any = None, *, rare: bool = True
) -> SLORow:
    """Return whether a measurement meets a limit; see `latencykit.stats.slo.SLO.check`.

    Parameters
    ----------
    source : Histogram or Summary
        Or anything with their attributes.
    statistic : str
        ``"p99.9"``, ``"max"``, ``"mean"``, a trimmed mean, or ``"failed"``.
    limit : float
        In the unit of `source`; a share (0..1) for ``failed``.
    confidence : float
    evidence : Evidence, optional
        Of the measurement that the source was counted from, where that knows more than counts do.
    rare : bool, default True
        Allow for stalls that a short measurement need not have seen.
    """
    if statistic == "failed":
        return _failed(source, limit, confidence)
    if not hasattr(source, "percentile_rows"):
        return _of_summary(source, statistic, limit)
    evidence = source.evidence() if evidence is None else evidence
    if statistic == "max":
        return _maximum(source, limit)
    if statistic.startswith("p"):
        return _percentile(source, float(statistic[1:]), limit, confidence, evidence, rare=rare)
    return _mean(source, statistic, limit, confidence, evidence, rare=rare)


def _settled(statistic: str, limit: float, value: float, low: float, high: float, unit: str, reason: str = "") -> SLORow:
    outcome: Outcome = "met" if high <= limit else "missed" if low > limit else "unknown"
    if outcome == "unknown" and not reason:
        span = f"{format_value(low, unit)} and {format_value(high, unit)}"
        reason = f"the value lies between {span}, and the limit does, too"
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
        return SLORow(
            "failed", limit, math.nan, math.nan, math.nan, "unknown", "the source does not say how many requests there were"
        )
    attempts = source.count + getattr(source, "censored", 0) + outside
    if not attempts:
        return SLORow("failed", limit, math.nan, math.nan, math.nan, "unknown", "there were no requests")
    value = failed / attempts
    if not source.run.failures_known:  # those that are known prove a limit missed, never met
        low, _ = share_interval(failed, attempts, confidence)
        why = "how many requests failed is not known: the source does not say, or not in a way that is understood"
        return _settled("failed", limit, value, low if limit else value, 1.0, "none", why)
    if limit == 0:  # "none may fail" is about these requests; no sample bounds a share by nothing
        return SLORow("failed", limit, value, value, value, "missed" if failed else "met")
    low, high = share_interval(failed, attempts, confidence)
    reason = ""
    if low <= limit < high:
        seen = f"{format_count(failed)} of {format_count(attempts)} requests failed"
        reason = f"{seen}, which a share of {100 * low:.3g} to {100 * high:.3g} % would explain"
    return _settled("failed", limit, value, low, high, "none", reason)


def _percentile(source: Any, percentile: float, limit: float, confidence: float, evidence: Any, *, rare: bool) -> SLORow:
    name, unit = f"p{format_percentile(percentile)}", source.unit
    outside, inside = _failures(source)
    good, counted = source.count, source.count + source.censored
    attempts = counted + outside
    if not attempts:
        return SLORow(name, limit, math.nan, math.nan, math.nan, "unknown", "there were no requests", unit)
    failed = f"{format_count(outside + inside)} of {format_count(attempts)} requests failed"
    asked = percentile * attempts / counted if counted else math.inf
    reached = asked > 100 * (1 + 1e-12) or (inside == source.censored > 0 and percentile * attempts > 100 * good)
    if reached:
        return SLORow(name, limit, math.inf, math.inf, math.inf, "missed", f"{failed}, and {name} falls among them", unit)
    (row,), why = evidence.rows([min(asked, 100.0)], confidence, rare=rare)
    low, high = row.low, row.high
    reason = f"{failed} and count as slower" if outside else ""
    if math.isnan(high) and evidence.dependence is None:  # corrected counts: only the bucket is known
        low, high = row.bucket_low, row.bucket_high
    low, high = (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)
    if math.isinf(high) and low <= limit and why:
        reason = "; ".join(why)
    elif math.isinf(high) and low <= limit:
        needed = f"{format_count(attempts)} requests do not bound {name}"
        reason = f"{needed}; it takes {format_count(samples_needed(percentile, confidence))}" if percentile < 100 else needed
    low, high = min(low, row.bucket_low), max(high, row.bucket_high)
    found = _settled(name, limit, row.value, low, high, unit, reason)
    return replace(found, bucket_low=row.bucket_low, bucket_high=row.bucket_high)


def _maximum(source: Any, limit: float) -> SLORow:
    outside, inside = _failures(source)
    unit, top = source.unit, source.max
    if outside + inside:
        reason = f"{format_count(outside + inside)} requests failed, and count as slower than any limit"
        return SLORow("max", limit, math.inf, math.inf, math.inf, "missed", reason, unit)
    if source.censored:
        least = max(source.censored_at, 0.0 if math.isnan(top) else top)
        reason = f"{format_count(source.censored)} values are known only to be at least {format_value(source.censored_at, unit)}"
        return _settled("max", limit, least, least, math.inf, unit, reason)
    if math.isnan(top):
        return SLORow("max", limit, top, top, top, "unknown", "there were no requests", unit)
    edge = source.bracket("max")[0]
    return replace(_settled("max", limit, top, min(edge, top), top, unit), bucket_low=min(edge, top), bucket_high=top)


def _mean(source: Any, statistic: str, limit: float, confidence: float, evidence: Any, *, rare: bool) -> SLORow:
    """The mean of the successes, or a trimmed one; its error is joined with the edges of the buckets."""
    unit = source.unit
    if not source.count:
        return SLORow(statistic, limit, math.nan, math.nan, math.nan, "unknown", "there were no requests", unit)
    found = trimmed(source.counted, "TM(0%:100%)" if statistic == "mean" else statistic, unit)
    value, low, high = found.value, found.low, found.high
    if statistic == "mean" and ("mean" in source.told or not source.censored):
        low, high = source.bracket("mean")
        value = source.mean if is_resolved(low, high) else high
    ends = low, high
    below, above = evidence.mean(statistic, confidence, rare=rare) if math.isfinite(high) else (0.0, 0.0)
    low, high = max(low - below, source.bracket("min")[0]), high + above  # no mean lies below the fastest request
    outside, inside = _failures(source)
    reason = f"of the {format_count(source.count)} requests that did not fail" if outside + inside else ""
    if math.isinf(above) and low <= limit:
        reason = "the run is too short, or its slow requests too few and too unlike, to bound the mean from above"
    return replace(_settled(statistic, limit, value, low, high, unit, reason), bucket_low=ends[0], bucket_high=ends[1])


def _of_summary(source: Any, statistic: str, limit: float) -> SLORow:
    """A printed number has no interval: it is taken as it stands."""
    if statistic not in ("max", "mean") and not statistic.startswith("p"):
        reason = f"{statistic} needs the values or a histogram, and the source holds printed numbers only"
        return SLORow(statistic, limit, math.nan, math.nan, math.nan, "unknown", reason, source.unit)
    try:
        if statistic.startswith("p"):
            value = source.percentile(float(statistic[1:]))
        else:
            value = source.max if statistic == "max" else source.mean
    except NotHeldError as missing:
        return SLORow(statistic, limit, math.nan, math.nan, math.nan, "unknown", str(missing), source.unit)
    return _settled(statistic, limit, value, value, value, source.unit, "as printed, without an interval")
