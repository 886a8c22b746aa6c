"""One limit against one measurement: the value, its interval, and whether that settles the matter."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latencykit.analysis.fan_out import samples_needed
from latencykit.core.histogram import Evidence, Histogram
from latencykit.core.quantiles import is_resolved, share_interval
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
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from latencykit.core import Data

    Floats = NDArray[np.float64]

__all__ = ["SLO", "Limit", "Outcome", "SLORow", "check_limit", "passed", "slo_from_text"]


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
    source: Any,
    statistic: str,
    limit: float,
    confidence: float,
    evidence: Any = None,
    *,
    rare: bool = True,
) -> SLORow:
    """Return whether a measurement meets a limit; see `latencykit.analysis.slo.SLO.check`."""
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


def _settled(
    statistic: str, limit: float, value: float, low: float, high: float, unit: str, reason: str = ""
) -> SLORow:
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
            "failed",
            limit,
            math.nan,
            math.nan,
            math.nan,
            "unknown",
            "the source does not say how many requests there were",
        )
    attempts = source.count + getattr(source, "censored", 0) + outside
    if not attempts:
        return SLORow(
            "failed", limit, math.nan, math.nan, math.nan, "unknown", "there were no requests"
        )
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


def _percentile(
    source: Any, percentile: float, limit: float, confidence: float, evidence: Any, *, rare: bool
) -> SLORow:
    name, unit = f"p{format_percentile(percentile)}", source.unit
    outside, inside = _failures(source)
    good, counted = source.count, source.count + source.censored
    attempts = counted + outside
    if not attempts:
        return SLORow(
            name, limit, math.nan, math.nan, math.nan, "unknown", "there were no requests", unit
        )
    failed = f"{format_count(outside + inside)} of {format_count(attempts)} requests failed"
    asked = percentile * attempts / counted if counted else math.inf
    reached = asked > 100 * (1 + 1e-12) or (
        inside == source.censored > 0 and percentile * attempts > 100 * good
    )
    if reached:
        return SLORow(
            name,
            limit,
            math.inf,
            math.inf,
            math.inf,
            "missed",
            f"{failed}, and {name} falls among them",
            unit,
        )
    (row,), why = evidence.rows([min(asked, 100.0)], confidence, rare=rare)
    low, high = row.low, row.high
    reason = f"{failed} and count as slower" if outside else ""
    if (
        math.isnan(high) and evidence.dependence is None
    ):  # corrected counts: only the bucket is known
        low, high = row.bucket_low, row.bucket_high
    low, high = (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)
    if math.isinf(high) and low <= limit and why:
        reason = "; ".join(why)
    elif math.isinf(high) and low <= limit:
        needed = f"{format_count(attempts)} requests do not bound {name}"
        reason = (
            f"{needed}; it takes {format_count(samples_needed(percentile, confidence))}"
            if percentile < 100
            else needed
        )
    low, high = min(low, row.bucket_low), max(high, row.bucket_high)
    found = _settled(name, limit, row.value, low, high, unit, reason)
    return replace(found, bucket_low=row.bucket_low, bucket_high=row.bucket_high)


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
        reason = f"{format_count(source.censored)} values are known only to be at least {format_value(source.censored_at, unit)}"
        return _settled("max", limit, least, least, math.inf, unit, reason)
    if math.isnan(top):
        return SLORow("max", limit, top, top, top, "unknown", "there were no requests", unit)
    edge = source.bracket("max")[0]
    return replace(
        _settled("max", limit, top, min(edge, top), top, unit),
        bucket_low=min(edge, top),
        bucket_high=top,
    )


def _mean(
    source: Any, statistic: str, limit: float, confidence: float, evidence: Any, *, rare: bool
) -> SLORow:
    """The mean of the successes, or a trimmed one; its error is joined with the edges of the buckets."""
    unit = source.unit
    if not source.count:
        return SLORow(
            statistic,
            limit,
            math.nan,
            math.nan,
            math.nan,
            "unknown",
            "there were no requests",
            unit,
        )
    found = trimmed(source.counted, "TM(0%:100%)" if statistic == "mean" else statistic, unit)
    value, low, high = found.value, found.low, found.high
    if statistic == "mean" and ("mean" in source.reported_stats or not source.censored):
        low, high = source.bracket("mean")
        value = source.mean if is_resolved(low, high) else high
    ends = low, high
    below, above = (
        evidence.mean(statistic, confidence, rare=rare) if math.isfinite(high) else (0.0, 0.0)
    )
    low, high = (
        max(low - below, source.bracket("min")[0]),
        high + above,
    )  # no mean lies below the fastest request
    outside, inside = _failures(source)
    reason = (
        f"of the {format_count(source.count)} requests that did not fail"
        if outside + inside
        else ""
    )
    if math.isinf(above) and low <= limit:
        reason = "the run is too short, or its slow requests too few and too unlike, to bound the mean from above"
    return replace(
        _settled(statistic, limit, value, low, high, unit, reason),
        bucket_low=ends[0],
        bucket_high=ends[1],
    )


def _of_summary(source: Any, statistic: str, limit: float) -> SLORow:
    """A printed number has no interval: it is taken as it stands."""
    if statistic not in ("max", "mean") and not statistic.startswith("p"):
        reason = f"{statistic} needs the values or a histogram, and the source holds printed numbers only"
        return SLORow(
            statistic, limit, math.nan, math.nan, math.nan, "unknown", reason, source.unit
        )
    try:
        if statistic.startswith("p"):
            value = source.percentile(float(statistic[1:]))
        else:
            value = source.max if statistic == "max" else source.mean
    except DataNotAvailableError as missing:
        return SLORow(
            statistic, limit, math.nan, math.nan, math.nan, "unknown", str(missing), source.unit
        )
    return _settled(
        statistic, limit, value, value, value, source.unit, "as printed, without an interval"
    )


# ------------------------------------------------------------
# Service level objectives: limits on statistics, and whether a measurement can tell that they are
# met.

_ENTRY = re.compile(r"(\w+\s*\(.*?\)|.+?)\s*(<=|>=|≤|≥|<|>|=|:)\s*(.+)")
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_FAILED = ("failed", "fail", "failures", "failure", "errors", "error", "error rate", "failure rate")
_HINT = "write for example '99.9=20ms, max=1s, mean=2ms, failed=0.1%'"


@dataclass(frozen=True)
class Limit:
    """The most that a statistic may be.

    Attributes
    ----------
    statistic : str
        ``"p99.9"``, ``"max"``, ``"mean"``, ``"tm99"`` or ``"failed"``.
    limit : float
        Nanoseconds; a bare number where `bare`; a share (0..1) of all requests for ``failed``.
    bare : bool
        The limit was written without a unit, for values that have none.
    """

    statistic: str
    limit: float
    bare: bool = False

    @property
    def percentile(self) -> float | None:
        """The percentile (0..100) that is limited; 100 for the maximum, None for other statistics."""
        if self.statistic == "max":
            return 100.0
        return float(self.statistic[1:]) if self.statistic[:1] == "p" else None

    def in_unit(self, unit: str) -> float:
        """Return the limit in the unit of some values."""
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
        if self.statistic == "failed":
            return f"failed={100 * self.limit:g}%"
        return (
            f"{self.statistic}={self.limit:g}"
            if self.bare
            else f"{self.statistic}={format_duration(self.limit, 15)}"
        )


@dataclass(frozen=True)
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
        """Return the SLO that a text states.

        Parameters
        ----------
        text : str
            Entries such as ``99.9=20ms``, ``p99<20ms``, ``max=1s``, ``mean=2ms``, ``tm99=5ms``, ``failed=0.1%``, parted
            by commas, semicolons or lines; ``#`` begins a comment.

        Raises
        ------
        InvalidArgumentError
            Where an entry states no limit, or two limit the same statistic.
        """
        lines = (line.split("#", 1)[0] for line in text.splitlines())
        entries = [entry.strip() for line in lines for entry in re.split(r"[,;]", line)]
        return cls.of(_parse_entry(entry) for entry in entries if entry)

    @classmethod
    def of(cls, limits: Iterable[Limit]) -> SLO:
        """Return the SLO of some limits, each statistic being limited once."""
        held = tuple(limits)
        names = [limit.statistic for limit in held]
        if not held:
            raise InvalidArgumentError(f"the SLO states no limit; {_HINT}")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise InvalidArgumentError(f"the SLO limits {twice} twice; keep the stricter one")
        return cls(held)

    def check(
        self, source: Data | Evidence, confidence: float = 0.95, *, rare: bool = True
    ) -> list[SLORow]:
        """Return one row per limit: met, missed, or unknown where the measurement cannot tell.

        Parameters
        ----------
        source : Histogram, HistogramLog, Samples or Summary
            Or the evidence of one of them. Values of the rows are in its unit.
        confidence : float, default 0.95
        rare : bool, default True
            Allow for stalls that a short measurement need not have seen; see `Evidence.rows`.

        Returns
        -------
        list of SLORow

        Notes
        -----
        A limit is met where the whole confidence interval, joined with the bucket, is within it; missed where all of
        it is beyond; anything else is unknown, and a percentile that the sample does not bound can only be missed or
        unknown. Requests that failed count as slower than any limit. Where the source knows time, intervals allow for
        requests that are slow together.
        """
        evidence = None
        if not isinstance(source, Summary):
            evidence = source if isinstance(source, Evidence) else source.evidence()
        counted = evidence.whole if evidence else source
        assert isinstance(counted, Histogram | Summary)
        limits = [(limit.statistic, limit.in_unit(counted.unit)) for limit in self.limits]
        return [check_limit(counted, *limit, confidence, evidence, rare=rare) for limit in limits]

    def staircase(self) -> tuple[Floats, Floats]:
        """Return the corners of the limits on percentiles, for drawing.

        Returns
        -------
        percentile, limit : ndarray of float64, shape (2 × limits,)
            From 0 on; each limit holds up to its percentile, the maximum's up to 100. Limits in nanoseconds, or bare.

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
    """Return whether all limits are met; None where some are unknown and none is missed."""
    outcomes: set[Outcome] = {row.outcome for row in rows}
    if "missed" in outcomes or (strict and "unknown" in outcomes):
        return False
    return None if "unknown" in outcomes else True


def _parse_entry(entry: str) -> Limit:
    found = _ENTRY.fullmatch(entry)
    if not found:
        raise InvalidArgumentError(f"{entry!r} is no limit; {_HINT}")
    name, sign, value = found[1].strip(), found[2], found[3].strip()
    if sign in (">", ">=", "≥"):
        raise InvalidArgumentError(
            f"{entry!r} is a lower limit; an SLO states the most that a statistic may be, such as p99<20ms"
        )
    if name.lower() in _FAILED:
        return Limit("failed", _share(value, entry))
    statistic = statistic_name(name)
    statistic = "max" if statistic == "p100" else statistic
    if statistic[0] in "tTwW" and parse_trim(statistic).kind not in ("TM", "WM"):
        raise InvalidArgumentError(
            f"{entry!r} limits a count or a sum; limit percentiles, the maximum, means, or failed requests"
        )
    if _NUMBER.fullmatch(value):
        return Limit(statistic, float(value), bare=True)
    limit = parse_duration(value)
    if limit < 0:
        raise InvalidArgumentError(f"{entry!r} limits a latency to less than nothing; {_HINT}")
    return Limit(statistic, limit)


def _share(value: str, entry: str) -> float:
    number = value.removesuffix("%").strip()
    if (
        not _NUMBER.fullmatch(number)
        or (value == number and float(number) != 0)
        or float(number) > 100
    ):
        raise InvalidArgumentError(
            f"{entry!r} states no share of the requests; write it in percent, such as failed=0.1%"
        )
    return float(number) / 100


# ------------------------------------------------------------
# SLOs that other tools keep in files: gnuplot's steps, and HistogramLogAnalyzer's XML.

_SLO_FILES_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_STEP = re.compile(
    rf"\s*({_SLO_FILES_NUMBER})[\s,]+({_SLO_FILES_NUMBER})(?:[\s,]+({_SLO_FILES_NUMBER})\s*%?.*)?\s*"
)
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
        return _from_steps([(float(s[1]), float(s[2]), s[3]) for s in steps if s], unit)
    return SLO.parse(text)


def _from_steps(rows: list[tuple[float, float, str | None]], unit: str) -> SLO:
    """Each level of the staircase is a limit, up to the percentile at which it ends."""
    if unit not in NANOSECONDS:
        raise InvalidArgumentError(
            f"limits in {unit!r} have no duration; name their unit: ns, us, ms or s"
        )
    ends: dict[float, float] = {}
    for place, level, label in rows:
        if place < 1:
            raise InvalidArgumentError(
                f"a step at {place:g} is no percentile; the first column is 1/(1 - q), 1 or more"
            )
        percentile = float(label) if label is not None else float(f"{100 * (1 - 1 / place):.12g}")
        ends[level] = max(ends.get(level, 0.0), percentile)
    limits = [
        Limit("max" if p == 100 else f"p{format_percentile(p)}", level * NANOSECONDS[unit])
        for level, p in sorted(ends.items(), key=lambda item: item[1])
        if p > 0
    ]
    return SLO.of(limits)


def _from_xml(text: str) -> SLO:
    """Read ``<SLAPercentile acceptablehicupp_msec="2">99.0</SLAPercentile>`` elements."""
    from xml.parsers import expat

    limits: list[Limit] = []
    inside: list[str] = []
    held: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == _ELEMENT:
            inside[:], held[:] = [attributes.get(_LIMIT, "")], []

    def end(name: str) -> None:
        if name == _ELEMENT and inside:
            limits.append(_xml_limit("".join(held).strip(), inside.pop()))

    def refuse(*_: object) -> None:
        raise InvalidArgumentError(
            "the SLO's XML declares a document type, which it does not need; remove the DOCTYPE"
        )

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = held.append
    parser.StartDoctypeDeclHandler = refuse  # so no entity can ever be declared, let alone expanded
    try:
        parser.Parse(text, True)
    except expat.ExpatError as broken:
        raise InvalidArgumentError(f"the SLO is no well-formed XML: {broken}") from None
    if not limits:
        raise InvalidArgumentError(
            f"the SLO's XML holds no {_ELEMENT} element; write them as HistogramLogAnalyzer's SLAdetails.xml does"
        )
    return SLO.of(limits)


def _xml_limit(percentile: str, limit: str) -> Limit:
    try:
        share, level = float(percentile), float(limit)
    except ValueError:
        share = level = -1.0
    if not (0 <= share <= 100 and level >= 0):
        raise InvalidArgumentError(
            f'<{_ELEMENT} {_LIMIT}="{limit[:40]}">{percentile[:40]} is no limit; both are plain numbers'
        )
    return Limit(
        "max" if share == 100 else f"p{format_percentile(share)}", level * NANOSECONDS["ms"]
    )
