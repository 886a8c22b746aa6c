"""`SLO`: limits on statistics, and whether a measurement meets them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latencykit import units
from latencykit._records import record
from latencykit._text import option
from latencykit._typing import PathOrFrame
from latencykit.analysis.clock_ticks import clock_step
from latencykit.analysis.given import as_data
from latencykit.analysis.omission import diagnosed, omission_text
from latencykit.analysis.timeouts import suspected_timeout
from latencykit.core import Data
from latencykit.core.buckets import EdgeBuckets
from latencykit.core.consistency import contradiction
from latencykit.core.distribution import Distribution
from latencykit.core.evidence import Evidence
from latencykit.core.histogram import Histogram
from latencykit.core.jackknife import RULE, Jackknife
from latencykit.core.probability import share_interval, student_quantile
from latencykit.core.quantiles import is_resolved, share_above
from latencykit.core.run import code_of, failure_counts, series_named
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.core.trimmed import statistic_name, trimmed
from latencykit.errors import DataNotAvailableError, InvalidArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from latencykit.analysis.judge import RunVerdict


Outcome = Literal["met", "missed", "unknown"]


@record()
class SureRule:
    """When an outcome of one run holds for traffic like it."""

    # `python -m tests.benchmarks.truth --only check` chose the numbers, and prints how often they
    # fail.

    min_met_s: float = 119.0  # of 60 s, runs that drift for 10 s are met and wrong in 31 %
    min_stretches: float = 15.0  # time bins over the correlation: fewer take
    min_events: float = 4.0  # in a shorter run than certain_s: fewer are stalls that may get longer
    certain_s: float = 299.0  # as long a run
    min_above: int = 10  # requests above a percentile that is met: fewer are its largest values
    # In a run of few independent stretches, a further part is met as far as that (drift of 10 s).
    further_sds: float = 2.2
    certain_stretches: float = 50.0
    min_missed_blocks: float = 0.5  # of the blocks beyond the limit: fewer are one slow stretch
    max_needed: float = 1000.0  # times the run: nobody measures that long
    close: float = 0.05  # of the limit: a value so near to it may need as long
    # Standard deviations from run to run beyond which other runs have the same outcome; the truth
    # table of `tests.benchmarks.history --only check` shows both. A run that is met has to be
    # ordinary as well; one that is missed may be a regression, so that it is compared with one run.
    run_noise_sds_met: float = 1.8
    run_noise_sds_missed: float = 1.8 * math.sqrt(2.0)
    most_run_noise: float = 0.99  # relative: beyond it, runs are hardly of one system
    rarest_per_run: float = 3.0  # events that a run misses with a probability of exp(−3) = 5 %


SURE = SureRule()


@record()
class Reason:
    """Why an outcome is unknown or not sure, or a remark: a code that `views.slo` words."""

    # Facts are values: times in the unit of the row, lengths of runs in seconds.

    code: str
    facts: dict[str, Any]


def why(code: str, **facts: Any) -> tuple[Reason, ...]:
    """Return one reason; several are added up."""
    return (Reason(code, facts),)


@record()
class SLORow:
    """One limit, checked."""

    # As in `Limit`, or "joint": the share of the requests that meet the limits of all latency
    # types, of which `limit` is the least that is wanted.
    statistic: str
    # In the unit of the measurement; shares (0..1) for failed and joint. The value is infinite
    # where failed requests reach the percentile, NaN where the statistic is not available.
    limit: float
    value: float
    low: float  # confidence interval for traffic like this, joined with the value's bucket
    high: float
    outcome: Outcome  # of this run; unknown where the source does not resolve it
    reasons: tuple[Reason, ...] = ()  # why it is unknown or not sure, or a remark
    unit: str = "ns"
    bucket_low: float = math.nan  # bounds of the value by the source's resolution
    bucket_high: float = math.nan
    sure: bool = False  # it holds for traffic like this, by the dependence that the run shows

    @property
    def reason(self) -> str:
        """The reasons as a text; empty where there are none."""
        from latencykit.views.slo import reason_text

        return reason_text(self)

    @property
    def resolved(self) -> bool:
        """True if the source resolves the value within a tenth; else it is a range."""
        return math.isnan(self.bucket_low) or bool(is_resolved(self.bucket_low, self.bucket_high))

    @property
    def bounded(self) -> Outcome:
        """The outcome that the whole interval has; unknown where the limit lies inside."""
        if self.outcome == "unknown" or math.isnan(self.value):
            return "unknown"
        if self.statistic == "joint":
            return "met" if self.low >= self.limit else _UNDECIDED[self.high < self.limit]
        return "met" if self.high <= self.limit else _UNDECIDED[self.low > self.limit]

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
    def limit_text(self) -> str:
        """The limit with its unit."""
        return self.text(self.limit)

    @property
    def value_text(self) -> str:
        """The value with its unit, or its range; "failed" where failed requests reach it."""
        if math.isinf(self.value) and self.outcome == "missed":
            return "failed"
        if not self.resolved:
            return units.format_range(self.bucket_low, self.bucket_high, self.text)
        return self.text(self.value)

    def text(self, value: float) -> str:
        """Return a value of this row with its unit; empty where there is none."""
        if not math.isfinite(value):
            return ""
        return f"{100 * value:.3g} %" if self.is_share else units.format_value(value, self.unit)

    @property
    def is_share(self) -> bool:
        """True if limit and value are shares of the requests."""
        return self.statistic in ("failed", "joint")

    def _margin(self, value: float) -> float:
        if self.statistic == "joint":
            return value / self.limit - 1
        return 1 - value / self.limit if self.limit else math.nan if value else 0.0


class SLOResult(tuple[SLORow, ...]):
    """The rows of `SLO.check`, one per limit.

    >>> import latencykit as lk
    >>> result = SLO.parse("p50=5us, p99=8us").check(lk.Histogram.of(range(1000, 9000)))
    >>> result.headline
    'misses its SLO: p99 is 8.92 µs, limit 8 µs'
    >>> result.table[["limit", "outcome"]]
                limit outcome
    statistic
    p50        5000.0     met
    p99        8000.0  missed
    """

    __slots__ = ()

    @property
    def table(self) -> pd.DataFrame:
        """One row per limit: limit, value, its interval, outcome, sure and reason."""
        import pandas as pd

        names = ("statistic", "limit", "value", "low", "high", "outcome", "sure", "reason")
        rows = [{name: getattr(row, name) for name in names} for row in self]
        return pd.DataFrame(rows, columns=names).set_index("statistic")

    @property
    def passed(self) -> bool | None:
        """True if all limits are met, False if one is missed, None if one is undecided."""
        return passed(self)

    @property
    def headline(self) -> str:
        """Whether the run meets the SLO, and by how much it misses the limit it misses most."""
        missed = [row for row in self if row.outcome == "missed"]
        unknown = [row for row in self if row.outcome == "unknown"]
        if missed:
            row = min(missed, key=lambda one: -math.inf if math.isnan(one.margin) else one.margin)
            value = "falls among failed requests" if math.isinf(row.value) else ""
            value = value or f"is {row.value_text}"
            return f"misses its SLO: {row.statistic} {value}, limit {row.limit_text}"
        if unknown:
            names = ", ".join(row.statistic for row in unknown)
            verb = "is" if len(unknown) == 1 else "are"
            return f"the run does not show whether {names} {verb} within the SLO"
        return "meets its SLO"

    def _repr_html_(self) -> str:
        from latencykit.views.slo import html_of

        return html_of(self)


_UNDECIDED: dict[bool, Outcome] = {True: "missed", False: "unknown"}
_EMPTY, _NO_TIMES = why("no requests"), why("no times")


def seconds_of(data: Any) -> float:
    """Return how long a measurement took in seconds, 0 where it is unknown."""
    length = data.elapsed if hasattr(data, "elapsed") else getattr(data, "duration", None)
    return float(data.run.duration or length or 0.0)


def without_under_way(data: Any, rate: float | None = None) -> Any:
    """Leave out requests that were under way when a run ended: they did not fail."""
    seconds = seconds_of(data)
    if not (data.run.unfinished and seconds and data.unit in units.NANOSECONDS):
        return data
    mean = data.stats.get("mean", math.nan) if isinstance(data, Summary) else data.mean
    rate = rate or data.run.achieved or (data.count or 0) / seconds
    in_flight = rate * mean * units.NANOSECONDS[data.unit] / 1e9  # on average L = λW (Little's law)
    few = data.run.unfinished <= in_flight + 3 * math.sqrt(in_flight) + 1
    return data.with_run(unfinished=0) if few else data


def check_limit(
    source: Any, statistic: str, limit: float, confidence: float, evidence: Any = None
) -> SLORow:
    """Check one limit; see `latencykit.analysis.slo.SLO.check`."""
    lost = int(sum(note.value for note in source.run.notes if code_of(note) == "failures"))
    if lost:  # all of them or none are of this part
        row, worst = (
            check_limit(source.with_run(failed=n, notes=()), statistic, limit, confidence, evidence)
            for n in (0, lost)
        )
        unknown = replace(
            row, outcome="unknown", sure=False, reasons=why("failed in all", number=lost)
        )
        return row if row.outcome == worst.outcome else unknown
    if statistic == "failed":
        return _failed(source, limit, confidence, evidence)
    if (text := contradiction(source)) is not None:
        return _unknown(statistic, limit, why("text", text=text), source.unit)
    if not hasattr(source, "percentile_rows"):
        return _reported(source, statistic, limit)
    evidence = source.evidence() if evidence is None else evidence
    if statistic == "max":
        return _maximum(source, limit, evidence)
    if statistic.startswith("p"):
        return _percentile(source, float(statistic[1:]), limit, confidence, evidence)
    return _mean(source, statistic, limit, confidence, evidence)


def with_history(row: SLORow, history: RunVerdict) -> SLORow:
    """Return a row whose outcome is sure where other runs of the system have it, too."""
    # A limit is surely met if it lies above the run's interval, 1.8 standard deviations from run to
    # run, and the band in which the runs of the `history` lie. It is surely missed if it lies below
    # the interval and 1.8 standard deviations of the difference of two runs: a regression leaves
    # the band. Shares, unknown outcomes, and a maximum beyond the limit remain as they are.
    lasting = row.statistic == "max" and row.outcome == "missed"
    omits = any(reason.code == "omitted" for reason in row.reasons)
    if row.is_share or row.outcome == "unknown" or lasting or omits or math.isinf(row.value):
        return row
    noise = min(history.noise, SURE.most_run_noise)
    down, up = (
        math.exp(sds * noise) for sds in (SURE.run_noise_sds_missed, SURE.run_noise_sds_met)
    )
    row = replace(row, low=min(row.low, row.value / down), high=max(row.high, row.value * up))
    if row.bounded != row.outcome:
        return replace(row, sure=False, reasons=why("runs differ", noise=noise))
    if row.outcome == "met" and history.high > row.limit:
        reasons = why("earlier runs", top=history.high)
        return replace(row, high=history.high, sure=False, reasons=reasons)
    return replace(row, sure=True, reasons=())


def _reported(source: Any, statistic: str, limit: float) -> SLORow:
    """The outcome of a number that a tool reported: it has no interval."""
    if statistic not in ("max", "mean") and not statistic.startswith("p"):
        return _unknown(statistic, limit, why("needs values", statistic=statistic), source.unit)
    failed = sum(_failures(source))
    counted = getattr(source, "count", None)  # a model has none
    if failed and counted == 0 and statistic != "mean":
        reasons = why("among failed", failed=failed, of=failed, statistic=statistic)
        ends = (math.inf,) * 3
        return SLORow(statistic, limit, *ends, "missed", reasons, source.unit)
    try:
        if statistic.startswith("p"):
            value = source.percentile(float(statistic[1:]))
        else:
            value = source.max if statistic == "max" else source.mean
    except DataNotAvailableError as missing:
        return _unknown(statistic, limit, why("text", text=str(missing)), source.unit)
    outcome: Outcome = "met" if value <= limit else "missed"
    row = SLORow(statistic, limit, value, value, value, outcome, why("as reported"), source.unit)
    if failed and counted and statistic != "mean" and row.outcome == "met":
        share = {"failed": failed, "of": failed + counted}
        asked = 100.0 if statistic == "max" else float(statistic[1:])
        asked *= 1 + failed / counted
        if asked > 100:
            reasons = why("among failed", statistic=statistic, **share)
            return replace(
                row, value=math.inf, low=math.inf, high=math.inf, outcome="missed", reasons=reasons
            )
        known = source.reported_percentiles
        if not any(p >= asked and known[p] <= limit for p in known):
            reasons = why("failed are slower", **share) + why("not reported", percentile=asked)
            return replace(row, outcome="unknown", reasons=reasons)
    if statistic == "max" and row.outcome == "missed":
        return replace(row, sure=True)
    return replace(row, reasons=why("no interval"))


def _unknown(statistic: str, limit: float, reasons: tuple[Reason, ...], unit: str = "ns") -> SLORow:
    return SLORow(statistic, limit, math.nan, math.nan, math.nan, "unknown", reasons, unit)


def _outcome(row: SLORow, low: float, high: float, *, open_below: bool = False) -> SLORow:
    """The outcome of a value that the source places between two ends."""
    beyond = low >= row.limit if open_below and high > low else low > row.limit
    outcome: Outcome = "met" if high <= row.limit else _UNDECIDED[bool(beyond)]
    reasons = row.reasons
    if outcome == "unknown" and not reasons:
        reasons = why("not resolved", low=low, high=high)
    return replace(row, outcome=outcome, reasons=reasons)


def _failures(source: Any) -> tuple[int, int]:
    """Failed requests that the counts leave out, and those among the censored ones."""
    inside = min(getattr(source, "censored", 0), source.run.timeouts)
    return sum(failure_counts(source.run).values()) - inside, inside


def _failed(source: Any, limit: float, confidence: float, evidence: Any) -> SLORow:
    outside, inside = _failures(source)
    failed = outside + inside
    if source.count is None:
        return _unknown("failed", limit, why("no count"))
    attempts = source.count + getattr(source, "censored", 0) + outside
    if not attempts:
        return _unknown("failed", limit, _EMPTY)
    value = failed / attempts
    low, high = share_interval(failed, attempts, confidence)
    row = SLORow("failed", limit, value, low, high, "met", unit="none")
    if not source.run.failures_known:  # known failures prove a limit missed, never met
        row = replace(row, high=1.0, reasons=why("failures unknown"))
        if value <= limit < 1:
            return replace(row, outcome="unknown")
    row = replace(row, outcome="met" if value <= limit else "missed")
    if limit == 0 and failed:
        return replace(row, sure=True)  # one that fails is one too many, in a longer run as well
    share = why("failed", failed=failed, of=attempts)
    failures = None if evidence is None else evidence.failures
    if failures is None:
        return replace(row, reasons=share + why("failed when"))
    if not failures.known:
        return replace(row, reasons=share + why("bins needed", blocks=RULE.blocks))
    ends = failures.share_interval(confidence)
    low, high = min(low, ends[0]), max(high, ends[1])
    row = replace(row, low=low, high=high)
    if row.bounded != row.outcome:
        away = abs(value - limit)
        times = (max(high - value, value - low) / away) ** 2 if away else math.inf
        reasons = share + why("such traffic fails", low=100 * low, high=100 * high)
        return replace(row, reasons=reasons + _decides(row, times, failures.seconds))
    if row.outcome == "missed" or _is_long(failures):
        return replace(row, sure=True)
    return replace(row, reasons=share + _decides(row, 1.0, failures.seconds))


def _percentile(
    source: Any, percentile: float, limit: float, confidence: float, evidence: Any
) -> SLORow:
    name, unit = f"p{units.format_percentile(percentile)}", source.unit
    outside, inside = _failures(source)
    good, counted = source.count, source.count + source.censored
    attempts = counted + outside
    if not attempts:
        return _unknown(name, limit, _EMPTY, unit)
    asked = percentile * attempts / counted if counted else math.inf
    if asked > 100 * (1 + 1e-12) or (
        inside == source.censored > 0 and percentile * attempts > 100 * good
    ):
        failed = _failed(source, 1 - percentile / 100, confidence, evidence)
        reasons = why("among failed", failed=outside + inside, of=attempts, statistic=name)
        return SLORow(name, limit, math.inf, math.inf, math.inf, "missed", reasons, unit,
                      sure=failed.sure and failed.outcome == "missed")  # fmt: skip
    (known,), _ = evidence.rows([min(asked, 100.0)], confidence)
    low, high = min(known.low, known.bucket_low), max(known.high, known.bucket_high)
    if evidence.jackknife is None and source.run.corrected in ("us", "tool"):
        low, high = known.bucket_low, known.bucket_high  # only the bucket is known
    low, high = (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)
    row = SLORow(name, limit, known.value, low, high, "met", (), unit)
    row = replace(row, bucket_low=known.bucket_low, bucket_high=known.bucket_high)
    bottom, top = known.bucket_low, known.bucket_high
    open_below = isinstance(source.buckets, EdgeBuckets)
    step = clock_step(source.counted, known.value)
    if step:  # the difference of two readings: more than a tick to either side is impossible
        reading, open_below = round(known.value / step) * step, True
        bottom, top = max(reading - step, 0.0), (reading + step) * (1 - 1e-9)
        if bottom < limit < top:
            row = replace(row, reasons=why("clock ticks", tick=step))
    given_up = suspected_timeout(evidence.whole)
    if given_up is not None and known.value >= given_up[0] * 0.9995 and bottom <= limit:
        took, number = given_up
        row = replace(row, reasons=why("timeout", number=number, took=took, statistic=name))
        top = math.inf
    row = _outcome(row, bottom, top, open_below=open_below)
    row = replace(row, low=min(low, bottom), high=max(high, top))
    if row.outcome != "unknown":
        above = float(attempts * share_above(percentile) / evidence.whole.counted.repeats)
        reasons = _why_unsure(row, evidence, asked, above, confidence)
        row = replace(row, sure=not reasons, reasons=reasons)
    if outside:
        moved = why("failed are slower", failed=outside, of=attempts)
        row = replace(row, reasons=moved + row.reasons)
    return row


def _too_short(jackknife: Any) -> tuple[Reason, ...]:
    """Why nothing is sure, whatever the values."""
    if jackknife is None:
        return _NO_TIMES
    few = why("few bins", blocks=RULE.blocks, bins=jackknife.bins)
    return () if jackknife.known else few


def _is_long(jackknife: Jackknife) -> bool:
    """Whether a run is long enough, in time and in independent stretches, to have seen a tail."""
    stretches = jackknife.bins / jackknife.correlation
    few = stretches < SURE.min_stretches
    return jackknife.seconds >= (SURE.certain_s if few else SURE.min_met_s)


def _why_unsure(
    row: SLORow, evidence: Any, percentile: float, above: float, confidence: float
) -> tuple[Reason, ...]:
    """Why the outcome of a percentile may not hold for such traffic; nothing where it does."""
    jackknife = evidence.jackknife
    if evidence.whole.run.corrected in ("us", "tool"):
        return why("corrected")
    if short := _too_short(jackknife):
        return short
    if row.outcome == "met" and above < SURE.min_above:
        asked = float(row.statistic[1:])  # failed requests move what is read of the good ones
        needed = math.ceil(SURE.min_above / (1 - asked / 100) * (1 - 1e-9))
        few = {"above": int(above), "statistic": row.statistic, "least": SURE.min_above}
        return why("few above", needed=needed, **few)
    if row.bounded != row.outcome:  # the standard error falls with the root of a run's length
        down, up = (float(error[0]) for error in jackknife.errors(percentile))
        met = row.outcome == "met"
        far = row.limit / row.value if met else row.value / row.limit if row.limit else math.inf
        away = math.log(far) if far > 0 else 0.0
        spread = student_quantile(confidence, RULE.blocks - 1) * (up if met else down)
        return _decides(row, (spread / away) ** 2 if away > 0 else math.inf, jackknife.seconds)
    parts = jackknife.of_blocks(percentile)[:, 0]
    beyond = float((parts > row.limit).mean())
    longer = why("longer is surer", seconds=max(SURE.min_met_s + 1, 2 * jackknife.seconds))
    few_parts = {"parts": round(beyond * RULE.blocks), "of": RULE.blocks}
    if row.outcome == "missed":
        least = SURE.min_missed_blocks if _is_long(jackknife) else 1.0
        return () if beyond >= least else why("only parts beyond", **few_parts) + longer
    if beyond:
        return why("parts beyond", **few_parts) + longer
    # As the parts differ, a further one would be met as well.
    parts = np.log(np.maximum(parts, 1e-300))
    further = SURE.further_sds * float(parts.std(ddof=1)) * math.sqrt(1 + 1 / parts.size)
    few = jackknife.bins < SURE.certain_stretches * jackknife.correlation
    if few and row.limit > 0 and float(parts.mean()) + further > math.log(row.limit):
        return why("parts differ") + longer
    # A short run with few stalls has not seen how long these get, or how often they come.
    (events,) = evidence.events([evidence.whole.sample_limit(confidence=confidence)])
    enough = jackknife.seconds >= SURE.certain_s or events >= SURE.min_events
    if enough and _is_long(jackknife):
        return ()
    # Which stall would break the statement.
    decides = _decides(row, 1.0, jackknife.seconds)
    if row.unit not in units.NANOSECONDS:
        return decides
    whole = evidence.whole
    share = whole.count_above(row.limit) / max(whole.count + whole.censored, 1)
    allowed = max((1 - percentile / 100) - share, 0.0) * jackknife.seconds * 1e9
    return why("stall breaks", stall=row.limit * units.NANOSECONDS[row.unit] + allowed) + decides


def _decides(row: SLORow, times: float, seconds: float) -> tuple[Reason, ...]:
    """State the length of a run that would decide, given how many times as long it has to be."""
    if not times <= SURE.max_needed:
        close = abs(row.value - row.limit) <= SURE.close * row.limit
        return why("too close" if close else "too different")
    if not math.isfinite(seconds):
        return why("more requests", times=math.ceil(max(times, 1.5)))
    longer = max(1.1 * times * seconds, 1.5 * seconds if seconds >= SURE.min_met_s else 0.0)
    return why("longer decides", seconds=max(longer, SURE.min_met_s + 1))


def _maximum(source: Any, limit: float, evidence: Any) -> SLORow:
    outside, inside = _failures(source)
    unit, top = source.unit, source.max
    if outside + inside:
        reasons = why("failed beyond any limit", number=outside + inside)
        ends = (math.inf,) * 3
        return SLORow("max", limit, *ends, "missed", reasons, unit, sure=True)
    if source.censored:
        least = max(source.censored_at, 0.0 if math.isnan(top) else top)
        reasons = why("censored", number=source.censored, bound=source.censored_at)
        row = SLORow("max", limit, least, least, math.inf, "missed", reasons, unit)
        return _outcome(replace(row, sure=least > limit), least, math.inf)
    if math.isnan(top):
        return _unknown("max", limit, _EMPTY, unit)
    edge = min(source.bounds("max")[0], top)
    row = SLORow("max", limit, top, edge, top, "met", (), unit, edge, top)
    row = _outcome(row, edge, top)
    if row.outcome != "met":  # whatever follows, this maximum was reached
        return replace(row, sure=row.outcome == "missed")
    jackknife, longer = evidence.jackknife, why("maximum grows")
    if jackknife is None or not jackknife.known or not _is_long(jackknife):
        return replace(row, reasons=why("request breaks") + longer)
    # The next run of this length exceeds it with 5 %: Gumbel's law through the maxima of blocks.
    tops = jackknife.maxima()
    scale = math.sqrt(6) / math.pi * float(tops.std(ddof=1))
    reach = -math.log(-math.log(0.95 ** (1 / RULE.blocks))) - np.euler_gamma
    high = max(math.exp(float(tops.mean()) + reach * scale), top)
    if high <= limit:
        return replace(row, high=high, sure=True)
    return replace(row, high=high if high <= RULE.widest * top else math.inf, reasons=longer)


def _mean(source: Any, statistic: str, limit: float, confidence: float, evidence: Any) -> SLORow:
    """The mean of the good requests, or a trimmed one; its error is joined with the buckets."""
    unit = source.unit
    if not source.count:
        return _unknown(statistic, limit, _EMPTY, unit)
    trim = trimmed(source.counted, "TM(0%:100%)" if statistic == "mean" else statistic, unit)
    value, low, high = trim.value, trim.low, trim.high
    if statistic == "mean" and ("mean" in source.reported_stats or not source.censored):
        low, high = source.bounds("mean")
        value = source.mean if is_resolved(low, high) else high
    step = clock_step(source.counted, value)
    ends = max(low - step, 0.0), high + step  # readings may all be rounded to one side
    below, above = evidence.mean(statistic, confidence) if math.isfinite(high) else (0.0, 0.0)
    # A mean is not below the fastest request.
    bottom = max(ends[0] - below, min(source.bounds("min")[0], ends[0]))
    top = ends[1] + above if ends[1] + above <= RULE.widest * value else math.inf
    row = SLORow(statistic, limit, value, bottom, top, "met", (), unit, low, high)
    # The middles of buckets are as good as what the buckets resolve.
    narrow = is_resolved(low, high) and not step
    row = _outcome(row, *((value, value) if narrow else ends))
    if row.outcome != "unknown":
        jackknife = evidence.jackknife
        if not (reasons := _too_short(jackknife)) and row.bounded != row.outcome:
            away, error = abs(limit - value), above if row.outcome == "met" else below
            times = (error / away) ** 2 if away > 0 else math.inf
            reasons = _decides(row, times, jackknife.seconds)
        elif not reasons and row.outcome == "met" and not _is_long(jackknife):
            spare = (limit - value) * units.NANOSECONDS.get(unit, 0.0) / 1e9
            stall = math.sqrt(2 * spare * jackknife.seconds)  # a stall of d costs d / 2 on average
            reasons = why("stall breaks", stall=stall * 1e9)
            reasons += _decides(row, 1.0, jackknife.seconds)
        row = replace(row, sure=not reasons, reasons=reasons)
    if sum(_failures(source)):
        row = replace(row, reasons=why("good ones", number=source.count) + row.reasons)
    return row


# ------------------------------------------------------------
# Service level objectives.

_ENTRY = re.compile(r"(\w+\s*\(.*?\)|.+?)\s*(<=|>=|≤|≥|<|>|=|:)\s*(.+)")
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_FAILED = ("failed", "fail", "failures", "failure", "errors", "error", "error rate", "failure rate")
_HINT = "write for example '99.9=20ms, max=1s, mean=2ms, failed=0.1%'"


@record()
class Limit:
    """The most that a statistic may be."""

    statistic: str  # p99.9, max, mean, tm99 or failed
    limit: float  # ns; a bare number where `bare`; a share (0..1) of all requests for failed
    bare: bool = False  # without a unit, for values that have none
    series: str | None = None  # the series or latency type that it limits; None for every series

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
        if self.bare != (unit not in units.NANOSECONDS):
            kind = "values with a unit" if self.bare else "values without one"
            raise InvalidArgumentError(
                f"the limit of {self.statistic} cannot be compared with {kind}; write "
                + (
                    "it with a unit, such as 20ms"
                    if self.bare
                    else f"a bare number, or name the values' unit ({option('unit')})"
                )
            )
        return self.limit if self.bare else self.limit / units.NANOSECONDS[unit]

    def __str__(self) -> str:
        name = self.statistic if self.series is None else f"{self.series} {self.statistic}"
        if self.statistic == "failed":
            return f"{name}={100 * self.limit:g}%"
        return (
            f"{name}={self.limit:g}"
            if self.bare
            else f"{name}={units.format_duration(self.limit, 15)}"
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
        limits = []
        for entry in filter(None, entries):
            match = _ENTRY.fullmatch(entry)
            if not match:
                raise InvalidArgumentError(f"{entry!r} is not a valid limit; {_HINT}")
            name, sign, value = match[1].strip(), match[2], match[3].strip()
            if sign in (">", ">=", "≥"):
                raise InvalidArgumentError(
                    f"{entry!r} is a lower limit; an SLO has upper limits, such as p99<20ms"
                )
            words, error = name.split(), None
            for first in range(len(words)):  # a name that is a statistic has no series
                text, series = " ".join(words[first:]), " ".join(words[:first]) or None
                try:
                    statistic = "failed" if text.lower() in _FAILED else statistic_name(text)
                    break
                except InvalidArgumentError as reason:
                    error = error or reason
            else:
                raise error or InvalidArgumentError(f"{name!r} is not a valid limit; {_HINT}")
            bare = _NUMBER.fullmatch(value) is not None
            if statistic == "failed":
                number = value.removesuffix("%").strip()
                if (
                    not _NUMBER.fullmatch(number)
                    or (bare and number.strip("0."))
                    or float(number) > 100
                ):
                    raise InvalidArgumentError(
                        f"{entry!r} is not a valid share of the requests; write it in percent, "
                        "such as failed=0.1%"
                    )
                limit, bare = float(number) / 100, False
            else:
                statistic = "max" if statistic == "p100" else statistic
                limit = float(value) if bare else units.parse_duration(value)
            if limit < 0:
                raise InvalidArgumentError(
                    f"{entry!r} limits a latency to a negative value; {_HINT}"
                )
            limits.append(Limit(statistic, limit, bare, series))
        return cls.of(limits)

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
        self, series: Mapping[str, Data], *, confidence: float = 0.95, joint: float | None = None
    ) -> dict[str, SLOResult]:
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
        dict of str to SLOResult
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
        checked = {
            name: own.check(series[name], confidence=confidence) for name, own in limits.items()
        }
        if joint is not None:
            chosen = {name: (series[name], own) for name, own in limits.items()}
            checked["all"] = SLOResult([joint_share(chosen, joint, confidence)])
        return checked

    def check(
        self,
        source: Data | PathOrFrame | Distribution | Evidence,
        *,
        confidence: float = 0.95,
        unit: str | None = None,
    ) -> SLOResult:
        """Return one row per limit: met, missed, or unknown, and whether that is sure.

        Parameters
        ----------
        source : Histogram, HistogramLog, Samples or Summary, path or frame
            Or the evidence of one of them. Values of the rows are in its unit.
        confidence : float, default 0.95
        unit : str, optional
            Of a path or frame whose numbers state none, as for `lk.read`.

        Returns
        -------
        SLOResult
            A tuple of `SLORow`.

        Notes
        -----
        The outcome is that of this run: unknown only where the source does not resolve it. It is
        sure where it holds for traffic like this, by the dependence between requests that the run
        itself shows: the confidence interval (the jackknife over twelve blocks of time) excludes
        the limit; a limit that is met is met in each block, by ten requests more or less, over two
        minutes and fifteen independent stretches or more, or over five minutes; one that is missed
        is missed in half of the blocks, or in all of them where the run is shorter. Sources without
        times are never sure of a percentile. Failed requests count as slower than any limit.
        """
        if not isinstance(source, Distribution | Evidence):
            source = as_data(source, "SLO.check", unit)
        evidence = None
        if not isinstance(source, Summary | Distribution):
            evidence = source if isinstance(source, Evidence) else source.evidence()
        counted = evidence.whole if evidence else source
        assert isinstance(counted, Histogram | Summary | Distribution)
        untimed = evidence is None or evidence.jackknife is None
        reported = untimed and not (isinstance(counted, Distribution) or "_origin" in vars(counted))
        whole = counted
        if reported:  # by a tool: that of requests knows which of them were cancelled
            counted = without_under_way(whole)
        limits = [(limit.statistic, limit.in_unit(counted.unit)) for limit in self.limits]
        rows = [check_limit(counted, *limit, confidence, evidence) for limit in limits]
        if counted is not whole:  # what becomes of these decides whether one is too many
            cut_off = why("under way", number=whole.run.unfinished)
            rows = [
                replace(row, reasons=row.reasons + cut_off)
                if row.statistic in ("failed", "max")
                else row
                for row in rows
            ]
        if not isinstance(counted, Distribution):
            data = counted if isinstance(source, Evidence | Distribution) else source
            if text := omission_text(diagnosed(data, counted)):
                # What was omitted would all have been slow, but no slower than the slowest.
                rows = [
                    replace(row, sure=False, reasons=why("omitted", text=text) + row.reasons)
                    if row.outcome == "met" and row.statistic not in ("failed", "max")
                    else row
                    for row in rows
                ]
        return SLOResult(rows)

    def __str__(self) -> str:
        return ", ".join(map(str, self.limits))


def passed(rows: Iterable[SLORow], *, strict: bool = False, sure: bool = False) -> bool | None:
    """Return whether all limits are met; None if some are undecided and none is missed."""
    # Where `strict`, False unless all are surely met; where `sure`, only sure misses count.
    results = list(rows)
    if strict:
        return all(row.outcome == "met" and row.sure for row in results)
    if any(row.outcome == "missed" and (row.sure or not sure) for row in results):
        return False
    return None if any(row.outcome != "met" for row in results) else True


# ------------------------------------------------------------
# Goodput: the share of the requests that meet the limits of all latency types.


def for_all_series(slo: SLO | str) -> SLO:
    """Return an SLO whose limits hold for any series; one that is for a named series is refused."""
    parsed = SLO.parse(slo) if isinstance(slo, str) else slo
    for limit in parsed.limits:
        if limit.series is not None:
            raise InvalidArgumentError(
                f"the limit {f'{limit.series} {limit.statistic}'!r} is for one series, which only "
                f"check judges apart; choose that series and leave its name out of the limit"
            )
    return parsed


def joint_share(
    series: Mapping[str, tuple[Data, SLO]], least: float, confidence: float = 0.95
) -> SLORow:
    """Judge the share of requests that meet all limits; failed ones meet none."""
    # A request meets a limit if its latency is within it, whatever the percentile, and if it has
    # several latencies of a type, all of them are. Of several limits of one series, that of the
    # highest percentile counts. Requests that are late together are allowed for by the jackknife
    # over blocks of their sequence.
    if not 0 < least <= 1:
        raise InvalidArgumentError(f"a joint share lies above 0 and is at most 100 %, not {least}")
    judged: dict[str, tuple[Samples, float]] = {}
    for name, (data, slo) in series.items():
        tops = [(limit.percentile, limit) for limit in slo.limits if limit.percentile is not None]
        if not tops:
            continue
        if not isinstance(data, Samples):
            return _unknown("joint", least, why("not single requests", series=name), "none")
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
    outside = max(outside, 0)
    total = bad.size + outside
    if not total:
        return _unknown("joint", least, _EMPTY, "none")
    missed = int(bad.sum())
    seconds = max((data.run.duration or (data.elapsed or 0.0)) for data, _ in judged.values())
    order = np.stack((~bad, bad), axis=1).astype(np.float64)
    jackknife = Jackknife(order, np.array([0.0, 1.0]), seconds or math.nan)
    interval = jackknife.share_interval(confidence)
    # Failed requests that have no row meet no limit.
    low, high = ((bad.size * end + outside) / total for end in interval)
    share = 1 - (missed + outside) / total
    reasons = why("meet all", met=total - missed - outside, of=total, series=", ".join(judged))
    outcome: Outcome = "met" if share >= least else "missed"
    row = SLORow("joint", least, share, 1 - high, 1 - low, outcome, reasons, "none")
    if not jackknife.known:
        return replace(row, reasons=reasons + why("requests needed", number=RULE.blocks))
    if row.bounded != outcome:
        reach = max(row.high - share, share - row.low)
        times = (reach / (share - least)) ** 2 if share != least else math.inf
        return replace(row, reasons=reasons + _decides(row, times, jackknife.seconds))
    if outcome == "missed" or _is_long(jackknife):
        return replace(row, sure=True)
    decides = _decides(row, 1.0, seconds) if seconds else _NO_TIMES
    return replace(row, reasons=reasons + decides)
