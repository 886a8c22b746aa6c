"""The search of `sweep`: which load to measure next, given the verdicts so far.

The load doubles until the SLO is missed, then the bracket is bisected. Where a run decides nothing,
a longer one follows; where that would take too long, the search goes on to either side of it. In
the end both ends of the bracket are measured again: the upper one coming from below, the lower one
coming from an overload, since a system may not recover from one (hysteresis).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from latencykit._records import record
from latencykit.analysis.capacity import LoadCurve, bracket
from latencykit.analysis.slo import Outcome
from latencykit.errors import InvalidArgumentError

Purpose = Literal["warm-up", "double", "bisect", "longer", "repeat", "retest"]

MOST_VOID = 2
"""Runs of a stalled client in a row before the search gives up."""

_FEW_RUNS = 6
_ENOUGH_EVENTS = 20  # independent ones bound a percentile; fewer are too uncertain


@record()
class Probe:
    """The run to measure next: requests per second, and seconds."""

    rate: float
    duration: float
    purpose: Purpose


@record()
class Stop:
    """The end of a search; `complete` if no further run would narrow the bracket."""

    reason: str
    complete: bool = True


@record()
class Tried:
    """A run that was measured."""

    rate: float
    duration: float
    purpose: Purpose
    verdict: Outcome | Literal["void"]  # void: the warm-up, or the client was stalled
    within: bool = True  # the estimates are within the limits, surely or not
    longer: float = 2.0  # times as long a run would have a verdict, where it is unknown
    failed: bool = False  # by the load generator, or stalled twice: nothing is known at that load


@record()
class Search:
    """The parameters of a search."""

    start: float  # lowest load, requests per second
    stop: float  # highest
    duration: float  # seconds of a usual run
    longest: float  # and of the longest
    precision: float = 0.1  # the ends of a narrow bracket differ by this share
    runs: int = 12  # at most, the warm-up included

    def __post_init__(self) -> None:
        if not 0 < self.start <= self.stop < math.inf:
            raise InvalidArgumentError(
                f"the loads must ascend from above 0, not from {self.start:g} to {self.stop:g}"
            )
        if not 0 < self.duration <= self.longest < math.inf:
            raise InvalidArgumentError(f"a run must be longer than 0 s, not {self.duration:g} s")
        if not 0.001 <= self.precision <= 1 or self.runs < 3:
            raise InvalidArgumentError(
                "the precision must be 0.1 % to 100 %, and the runs 3 or more"
            )

    def next(
        self, tried: Sequence[Tried], estimate: float = math.nan, seconds: float = math.inf
    ) -> Probe | Stop:
        """Return the run to measure next, after those that were `tried`."""
        # Their values cross the limit at the load `estimate`; `seconds` are left.
        if not tried:
            brief = max(self.duration / 4, min(self.duration, 1.0))
            return Probe(self.start, self._seconds(brief), "warm-up")
        last, left = tried[-1], self.runs - len(tried)
        voids = [run.verdict == "void" and run.purpose != "warm-up" for run in tried]
        judged = [run for run in tried if run.verdict != "void"]
        probe: Probe | None
        if voids[-1]:
            if sum(voids[-MOST_VOID:]) == MOST_VOID:
                return Stop("the load generator was stalled again and again", complete=False)
            probe = Probe(last.rate, last.duration, "repeat")
        elif len(tried) > 1 and last.failed and tried[-2].failed:
            return Stop("the load generator failed twice in a row", complete=False)
        elif not judged:
            probe = Probe(self.start, self.duration, "double")
        else:
            low, high, _ = bracket([run.rate for run in judged], [run.verdict for run in judged])
            highest = max(run.rate for run in judged)
            barred = any(run.verdict == "missed" or run.failed for run in judged)
            if not barred and highest < self.stop:
                probe = Probe(min(_even(2 * highest), self.stop), self.duration, "double")
            else:
                probe = self._narrower(judged, low, high, estimate, left)
                # The ends of the bracket that were measured only once, in the order to retest;
                # the last two runs are for them.
                ends = [high, low] if last.rate < high else [low, high]
                if not low or math.isinf(high):
                    ends = [high] if high == self.start else []
                runs = {end: [run for run in judged if run.rate == end] for end in ends}
                retests = [
                    Probe(end, max(run.duration for run in same), "retest")
                    for end, same in runs.items()
                    if same and not any(run.purpose == "retest" for run in same)
                ]
                if retests and (probe is None or left <= len(retests)):
                    probe = retests[0]
            if probe is None:
                if high == self.start:
                    return Stop("the lowest load misses the SLO")
                if low >= self.stop:
                    return Stop("the highest load meets the SLO")
                narrow = low and high <= low * (1 + self.precision)
                return Stop(
                    "the bracket is narrow enough" if narrow else "only longer runs can narrow it"
                )
        if left <= 0:
            return Stop(f"all {self.runs} runs were measured", complete=False)
        if probe.duration > seconds:
            return Stop("the time is used up", complete=False)
        return probe

    def _narrower(
        self, judged: Sequence[Tried], low: float, high: float, estimate: float, left: int
    ) -> Probe | None:
        """Return a run between the ends of the bracket, or None where none would decide."""
        least, most = low or self.start, min(high, self.stop)
        by_length = sorted(judged, key=lambda run: run.duration)
        longest = {run.rate: run for run in by_length if low < run.rate < high}
        undecided = [run for run in longest.values() if run.verdict == "unknown"]
        if high == self.start or (low and high <= low * (1 + self.precision)) or low == self.stop:
            return None
        if not undecided:
            return Probe(_even(math.sqrt(least * most)), self.duration, "bisect")
        within = max([run.rate for run in undecided if run.within], default=least)
        beyond = min([run.rate for run in undecided if not run.within], default=most)
        if within < beyond / 1.5:
            return Probe(_even(math.sqrt(within * beyond)), self.duration, "bisect")
        if not least < estimate < most:
            estimate = math.sqrt(least * most)
        # A longer run on that side of the estimate where the bracket is wider, as close to it as
        # runs of the greatest length have not failed to decide.
        sides = [(most / estimate, 1.0), (estimate / low if low else math.inf, -1.0)]
        for _, sign in sorted(sides, reverse=True):
            distance = 0.5 * self.precision
            while distance < 4:
                rate = _even(estimate * (1 + distance) ** sign)
                rate = min(max(rate, self.start), self.stop)
                step = 1 + self.precision / 4
                if not low * step < rate < high / step:
                    break
                near = min(undecided, key=lambda run: abs(math.log(run.rate / rate)))
                close = 1 / step <= near.rate / rate <= step
                rate = near.rate if close else rate
                if not close or near.duration * 1.5 <= self.longest:
                    # Twice as far from the limit, a run of a quarter decides.
                    nearer = 1.0
                    if rate != estimate:
                        nearer = math.log(near.rate / estimate) / math.log(rate / estimate)
                    needed = near.duration * (near.longer * nearer**2 if nearer else 1.0)
                    seconds = max(1.5 * needed, 4 * self.duration, 2 * near.duration * close)
                    seconds = self.longest if left <= _FEW_RUNS else seconds
                    purpose: Purpose = "longer" if close else "bisect"
                    if needed <= 4 * self.longest or distance >= 4 * self.precision:
                        return Probe(rate, self._seconds(seconds), purpose)
                distance *= 2
        return None

    def _seconds(self, seconds: float) -> float:
        """Return a duration as load generators take it: whole seconds where it is longer."""
        seconds = min(seconds, self.longest)
        return min(float(math.ceil(seconds)) if seconds > 1 else seconds, self.longest)


def _even(rate: float) -> float:
    """Return a rate as load generators take it: an integer of three digits where it is above 10."""
    rounded = float(f"{rate:.3g}")
    return float(round(rounded)) if rounded >= 10 else rounded


def times_longer(curve: LoadCurve, name: str) -> float:
    """Return how many times longer a run would have to be for a verdict; infinite if none is."""
    # Intervals shrink with the square root of the duration; a percentile is bounded from above by
    # some twenty independent events beyond it.
    assert curve.slo is not None
    index = next(k for k, row in enumerate(curve.rows) if row.name == name)
    row, longest = curve.rows[index], 1.0
    for limit, check in zip(curve.slo.limits, curve.checks[index], strict=True):
        if check.bounded != "unknown":
            continue
        if math.isnan(check.value) or not check.resolved:
            return math.inf  # the output does not have the statistic, or only a range
        if math.isfinite(check.low) and math.isfinite(check.high):
            room = abs(check.value - check.limit)
            half = check.high if check.value <= check.limit else 2 * check.value - check.low
            needed = ((half - check.value) / room) ** 2 if room else math.inf
        else:
            needed = 4.0
            evidence: Any = row.evidence
            jackknife = None if evidence is None else evidence.jackknife
            if jackknife is not None and jackknife.known and limit.percentile is not None:
                (events,) = evidence.events([limit.percentile])
                needed = _ENOUGH_EVENTS / max(float(events), 0.1)
        longest = max(longest, 1.2 * needed)
    return longest
