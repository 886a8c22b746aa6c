"""`compare`: which statistics changed between two systems, with confidence.

From top to bottom: the result, the operation, what makes measurements hard to compare, the verdict,
one run per side, several runs per side, and the mathematics of gaps.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from latencykit._arrays import Value, as_positions
from latencykit._records import record
from latencykit._text import brief_list, option
from latencykit._typing import Floats, PathOrFrame, is_path_or_frame
from latencykit.analysis.clock_ticks import clock_step
from latencykit.analysis.given import as_data
from latencykit.analysis.omission import diagnosed, omission_text
from latencykit.core import Data
from latencykit.core.evidence import Evidence
from latencykit.core.histogram import Histogram, histogram_of, statistic_of
from latencykit.core.probability import normal_quantile, share_interval, student_quantile
from latencykit.core.quantiles import Counted, as_numbers, is_resolved, rank_interval
from latencykit.core.repr_html import listing_html
from latencykit.core.run import Note, Run, failure_counts
from latencykit.core.summary import Summary
from latencykit.core.trimmed import parse_trim, ranks_of_mean, statistic_name
from latencykit.errors import DataNotAvailableError, IncompatibleDataError, InvalidArgumentError
from latencykit.units import (
    NANOSECONDS,
    format_change,
    format_count,
    format_duration,
    format_estimate,
    format_percentile,
    format_range,
    format_rate,
    format_share,
    format_value,
    parse_duration,
)

if TYPE_CHECKING:
    import pandas as pd

Side = Histogram | Summary
Given: TypeAlias = "Data | PathOrFrame"
Runs: TypeAlias = "Given | Sequence[Given] | Mapping[str, Given]"
Verdict = Literal["same", "better", "worse", "mixed", "inconclusive"]

TAIL = "TM(95%:)/p50"
"""The statistic of several runs that neither their level nor one of their stalls decides."""
UNITLESS: dict[str, Callable[[float], str]] = {
    "slow share": lambda value: f"{100 * value:.3g} %", TAIL: "× {:.3g}".format,
}  # fmt: skip
_WIDEST = 100.0  # factor at an end of an interval that says nothing


@record()
class Change:
    """The change of one statistic."""

    statistic: str  # such as p99.9, mean, tm99
    base: float  # in the unit of the values, as the differences are
    new: float
    change: float  # relative (0.05 is +5 %), as its interval is: -1 and infinity where unbounded
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    p_value: float = math.nan  # adjusted for the number of statistics; NaN where not judged
    significant: bool = False
    note: str = ""
    # Bounds of both sides by the resolution of the sources. Where these are more than a tenth
    # apart, `base` and `new` are upper bounds, and `change` and `difference` are NaN.
    base_low: float = math.nan
    base_high: float = math.nan
    new_low: float = math.nan
    new_high: float = math.nan
    # Relative standard deviation from run to run of one system that chance would need to explain
    # the change; 0 where the requests alone may explain it. One run per side only.
    tolerates: float = math.nan

    @property
    def percentile(self) -> float | None:
        """The percentile (0..100), if the statistic is one."""
        is_one = self.statistic[:1] == "p" and self.statistic != TAIL
        return float(self.statistic[1:]) if is_one else None

    @property
    def resolved(self) -> bool:
        """True if both sides are known within a tenth."""
        ends = ((self.base_low, self.base_high), (self.new_low, self.new_high))
        return all(math.isnan(low) or bool(is_resolved(low, high)) for low, high in ends)

    def sides(self, show: Callable[[float], str]) -> list[str]:
        """Return the base and the new value: a range where the source does not resolve it."""
        if self.statistic in UNITLESS:
            return [UNITLESS[self.statistic](value) for value in (self.base, self.new)]
        ends = ((self.base, self.base_low, self.base_high), (self.new, self.new_low, self.new_high))
        return [
            show(value)
            if math.isnan(low) or is_resolved(low, high)
            else format_range(low, high, show)
            for value, low, high in ends
        ]

    @property
    def interval_text(self) -> str:
        """The interval of the change; empty where it says nothing."""
        low, high = format_change(self.low), format_change(self.high)
        if 1 + self.low > 1 / _WIDEST and 1 + self.high < _WIDEST:
            return f"{low} to {high}"
        return f"from {low}" if self.low > 0 else f"up to {high}" if self.high < 0 else ""

    def judged(self, p_value: float, confidence: float) -> Change:
        """Return the change with its adjusted p-value; significant if its interval excludes 0."""
        small = p_value <= 1 - confidence + 1e-12
        significant = small and (self.low > 0 or self.high < 0)
        return replace(self, p_value=p_value, significant=significant)

    def cells(self, show: Callable[[float], str]) -> list[str]:
        """Return its row in a table: statistic, base, new, change, interval, and `significance`."""
        name = "max" if self.percentile == 100 else self.statistic
        change = format_change(self.change)
        return [name, *self.sides(show), change, self.interval_text, self.significance]

    @property
    def significance(self) -> str:
        """``yes``, ``no``, ``in these runs``, or ``not judged`` without an interval."""
        if self.significant:
            return "yes"
        unknown = math.isnan(self.p_value) and math.isnan(self.tolerates)
        if self.note or not self.interval_text or unknown:
            return "not judged"
        return "in these runs" if math.isnan(self.p_value) and self.tolerates > 0 else "no"


@record(eq=False)
class Comparison(Value):
    """The changes from one side to the other.

    Attributes
    ----------
    changes : tuple of Change
        One per statistic: percentiles first, then means, then what replaces a percentile between
        two modes.
    basis : {"requests", "runs"}
        Population of the intervals: the requests of one run per side, or several runs.
    verdict : {"same", "better", "worse", "mixed", "inconclusive"}
    reasons : tuple of str
        What prevented a decision, or parts of it.
    warnings : tuple of str
        Differences between the two measurements besides the system.
    unit : str
        Unit of the values.
    runs : tuple of two ints
        Runs per side.
    unfair : str
        What makes the comparison one of two things; empty if nothing does.
    run_noise : float or None
        Stated relative standard deviation from run to run; single runs only.
    tolerates : float or None
        Run noise that chance would need to explain the clearest change that is stated; None where
        the noise is known or nothing is stated.
    would_show : tuple of (str, float)
        Statistics, and the relative change of each that one run per side would have shown.
    """

    changes: tuple[Change, ...]
    basis: Literal["requests", "runs"]
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unit: str = "ns"
    runs: tuple[int, int] = (1, 1)
    unfair: str = ""
    run_noise: float | None = None
    tolerates: float | None = None
    would_show: tuple[tuple[str, float], ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """One row per statistic, with the attributes of `Change` as columns."""
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.changes]).set_index("statistic")

    def failed(self, conditions: Iterable[str | Condition]) -> list[str]:
        """Return the conditions (``"p99.9 > +5%"``) that are met by changes that are stated.

        The ends of their intervals decide.

        Raises
        ------
        InvalidArgumentError
            For a condition that cannot be parsed, or on a statistic that was not compared.
        """
        parsed = [
            item if isinstance(item, Condition) else parse_condition(item) for item in conditions
        ]
        rows = {row.statistic: row for row in self.changes}
        for condition in parsed:
            if condition.statistic not in rows:
                raise InvalidArgumentError(
                    f"{condition.text!r} judges {condition.statistic}, which was not compared; "
                    f"compared were: {', '.join(rows)}"
                )
        return [
            item.text
            for item in parsed
            for row in [rows[item.statistic]]
            if row.significant and item.holds(row, self.unit)
        ]

    def _repr_html_(self) -> str:
        rows = [row.cells(lambda value: format_value(value, self.unit)) for row in self.changes]
        header = ("", "base", "new", "change", "interval", "changed")
        lines = [*self.reasons, *self.warnings]
        return listing_html(f"Comparison: {self.verdict}", header, rows, lines)

    def __repr__(self) -> str:
        return f"Comparison({self.verdict}, by {self.basis}, {len(self.changes)} statistics)"


# ------------------------------------------------------------
# Conditions on a change, as a pipeline states them: ``p99.9 > +5%``, ``mean > +1ms``.

_CONDITION = re.compile(r"\s*(.+?)\s*(>=|<=|>|<)\s*([+-]?)\s*(\S.*?)\s*")
_HINT = "write for example 'p99.9 > +5%' or 'mean > +1ms'"


@record()
class Condition:
    """A change that must not happen."""

    statistic: str  # "p99.9", "mean", "tm99"
    above: bool  # met by changes above the threshold, else below
    threshold: float  # relative (0.05 is 5 %) or in nanoseconds
    relative: bool
    text: str  # as it was written

    def holds(self, change: Change, unit: str = "ns") -> bool | None:
        """Return whether a change surely meets the condition; None where it is unbounded."""
        if self.relative:
            bound = change.low if self.above else change.high
            threshold, unbounded = self.threshold, -1.0
        else:
            bound = change.difference_low if self.above else change.difference_high
            threshold, unbounded = self.threshold / NANOSECONDS.get(unit, 1.0), -math.inf
        if bound == (unbounded if self.above else math.inf):
            return None
        return bool(bound > threshold if self.above else bound < threshold)


def parse_condition(text: str) -> Condition:
    """Parse a condition."""
    match = _CONDITION.fullmatch(text)
    if not match:
        raise InvalidArgumentError(f"{text!r} is not a valid condition; {_HINT}")
    name, above, sign, size = statistic_name(match[1]), ">" in match[2], match[3], match[4]
    if name == "p100":
        raise InvalidArgumentError(
            f"{text!r} judges the maximum, which grows with the length of a run; use a percentile "
            "instead"
        )
    factor = -1.0 if sign == "-" else 1.0
    if size.endswith("%"):
        try:
            return Condition(name, above, factor * float(size[:-1]) / 100, True, text)
        except ValueError:
            raise InvalidArgumentError(
                f"{size!r} in {text!r} is not a valid percentage; {_HINT}"
            ) from None
    if not sign:
        raise InvalidArgumentError(
            f"{text!r} is a limit, not a change; write '+{size}' for a change, or check the limit "
            "with an SLO (check)"
        )
    return Condition(name, above, factor * parse_duration(size), False, text)


# ------------------------------------------------------------
# The operation.

_PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
_MEANS = ("mean", "tm99")


@record()
class SourceRules:
    """What makes sources comparable, and which of their statistics; chosen on real outputs."""

    # percentiles that a source chose to report: more are a spectrum
    max_reported: int = 12
    # of medians: two units, and a change of the system by a factor of up to four
    thousandfold: float = 250.0
    # relative: rates and durations are never exactly equal
    near: float = 0.05
    # factor between numbers of requests that is worth a warning
    near_counts: float = 0.5
    # factor between rates that are other loads
    unlike_rates: float = 1.9


SOURCE = SourceRules()


def compare(
    base: Runs, new: Runs, *, percentiles: Sequence[float] | None = None,
    means: Sequence[str] = _MEANS, confidence: float = 0.95, run_noise: float | None = None,
    margin: float = 0.05, also: Sequence[str] = (), unit: str | None = None,
) -> Comparison:  # fmt: skip
    """Compare two runs, or several runs per side.

    Parameters
    ----------
    base, new : data type, path or frame, or sequence or mapping of these
        Several per side are runs of one system each.
    percentiles : sequence of float, optional
        By default those that every sample supports, and the maximum.
    means : sequence of str
        ``"mean"`` and trimmed means between ranks (``"tm99"``, ``"TM(:99%)"``). Several runs per
        side have ``"TM(95%:)/p50"``, too: of the typical thirtieth of each run, so that neither its
        level nor a few stalls hide a longer tail.
    confidence : float, default 0.95
    run_noise : float, optional
        Relative standard deviation of a statistic from run to run (0.03 for 3 %). Without it, one
        run per side shows changes that are larger than runs of one system plausibly differ, each
        with the run noise that chance would need.
    margin : float, default 0.05
        Changes that surely lie within ± `margin` are called the same.
    also : sequence of str
        Further statistics, supported or not, by name (``"p99.99"``, ``"tm95"``), for conditions.
    unit : str, optional
        Of a path or frame whose numbers state none, as for `lk.read`.

    Raises
    ------
    IncompatibleDataError
        If one side has values without a unit and the other has times.
    InvalidArgumentError
        For an empty side.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> a, b = (Histogram.of(rng.normal(mean, 1e5, 5000)) for mean in (10e6, 11e6))
    >>> result = compare(a, b)
    >>> result.basis, result.verdict, round(float(result.table.change["p50"]), 2)
    ('requests', 'inconclusive', 0.1)
    >>> compare(a, b, run_noise=0.01).verdict
    'worse'
    """
    if percentiles is not None:
        percentiles = as_numbers(percentiles, "percentiles").reshape(-1).tolist()
    valid = all(isinstance(part, Real) for part in (confidence, margin, run_noise or 0.0))
    if not (valid and 0 < confidence < 1 and 0 <= (run_noise or 0.0) < 1 and margin >= 0):
        raise InvalidArgumentError(
            "a confidence lies between 0 and 1, run noise from 0 to below 1, and a margin is 0 or "
            "more; numbers such as 0.05"
        )
    inputs = _listed(base, "base", unit), _listed(new, "new", unit)
    sides: tuple[list[Side], list[Side]]
    evidence: tuple[Evidence, Evidence] | None = None
    if len(inputs[0]) == len(inputs[1]) == 1 and not any(
        isinstance(data, Summary) for (data,) in inputs
    ):  # single runs are judged with all that is known of how their requests depend on each other
        evidence = evidence_of(inputs[0][0]), evidence_of(inputs[1][0])
        first, second = (histogram_of(side.whole, "a comparison") for side in evidence)
        sides = [first], [second]
    else:
        sides = [_comparable(data) for data in inputs[0]], [_comparable(data) for data in inputs[1]]
    units = {data.unit for side in sides for data in side}
    if len(units) > 1:
        raise IncompatibleDataError(
            f"values in {' and '.join(sorted(units))} cannot be compared; name the unit of the "
            f"former with {option('unit')}"
        )
    numbers, runs = (len(sides[0]), len(sides[1])), cast("Any", inputs)
    asked = percentiles is not None or set(also) - {"mean"}
    if (
        evidence is not None
        and not asked
        and all(
            side.whole.run.values_are_runs and side.whole.count >= RUNS.least for side in evidence
        )
    ):
        before, after = (
            np.repeat(side.whole.counted.middle, as_positions(side.whole.counted.counts))[:, None]
            for side in evidence
        )
        result = compare_runs(
            before, after, ["mean"], confidence=confidence, margin=margin, run_noise=run_noise
        )
        numbers = len(before), len(after)
    elif evidence is not None:
        named = dict.fromkeys([*means, *(name for name in also if name[0] != "p")])
        further = [float(name[1:]) for name in also if name[0] == "p"]
        result = compare_single(
            evidence, percentiles, list(named), also=further, confidence=confidence, margin=margin,
            run_noise=run_noise,
        )  # fmt: skip
    else:
        names = _statistics(sides, percentiles, means, also, confidence)
        if len(sides[0]) == len(sides[1]) == 1:
            result = _of_summaries(
                sides[0][0], sides[1][0], names, confidence=confidence, margin=margin,
                run_noise=run_noise,
            )  # fmt: skip
        else:
            listed = itertools.chain(*sides)
            table = np.array(
                [[statistic_of(data, x, confidence) for x in names] for data in listed]
            )
            if percentiles is None and {"p50", "p99"} <= set(names):
                tails = _tails([*runs[0], *runs[1]])
                if tails is not None:
                    names, table = [*names, TAIL], np.column_stack((table, tails))
            stamps = [
                [data.run.start if (epoch := getattr(data, "epoch", None)) is None else epoch / 1e9
                 for data in side]
                for side in runs
            ]  # fmt: skip
            result = compare_runs(
                table[: numbers[0]], table[numbers[0] :], names, confidence=confidence,
                margin=margin, stamps=stamps, run_noise=run_noise,
            )  # fmt: skip
    ends = sides[0][0], sides[1][0]
    # What one run leaves out and the other has, or had no stall to leave it out in.
    omits = ""
    if numbers == (1, 1):
        texts = [
            omission_text(diagnosed(side[0], end)) for side, end in zip(runs, ends, strict=True)
        ]
        if bool(texts[0]) != bool(texts[1]):
            omits = f"base: {texts[0]}" if texts[0] else f"new: {texts[1]}"
    unfair, warnings = _doubts(sides, omits)
    return replace(result, warnings=warnings, unit=units.pop(), runs=numbers, unfair=unfair)


def _listed(side: object, name: str, unit: str | None) -> list[object]:
    if hasattr(side, "run"):
        return list(getattr(side, "runs", ()) or (side,))
    values = getattr(side, "values", None)
    runs: Any = [side] if is_path_or_frame(side) else values() if callable(values) else side
    series = list(runs) if hasattr(runs, "__iter__") else [runs]
    series = [run for data in series for run in getattr(data, "runs", ()) or (data,)]
    if not series:
        raise InvalidArgumentError(f"the {name} side is empty; name at least one run")
    return [as_data(data, f"the {name} side of a comparison", unit) for data in series]


def _comparable(data: object) -> Side:
    if isinstance(data, Summary):
        return data.to_unit("ns") if data.unit in NANOSECONDS else data
    return histogram_of(data, "a comparison")


def evidence_of(data: Any) -> Evidence:
    """Return the evidence of a run, in nanoseconds where its values are times."""
    counted = data if hasattr(data, "evidence") else histogram_of(data, "a comparison")
    counted = counted.to_unit("ns") if counted.unit in NANOSECONDS else counted
    evidence: Evidence = counted.evidence()
    if evidence.jackknife is not None and not evidence.jackknife.known:
        evidence = replace(evidence.whole).evidence()  # its course over time shows too little
    return evidence


def _statistics(
    sides: tuple[list[Side], list[Side]],
    percentiles: Sequence[float] | None,
    means: Sequence[str],
    also: Sequence[str],
    confidence: float,
) -> list[str]:
    """Names of the statistics to compare; by default those that every run has and supports."""
    runs = [data for side in sides for data in side]
    candidates: set[float] = set()
    if percentiles is None:
        summaries = (data for data in runs if isinstance(data, Summary))
        reported = {p for data in summaries for p in data.reported_percentiles if 0 < p < 100}
        few = len(reported) <= SOURCE.max_reported
        candidates = {*_PERCENTILES, *(reported if few else ())}
    available = [
        name
        for name in (*(f"p{format_percentile(p)}" for p in sorted(candidates)), "p100", *means)
        if not any(math.isnan(statistic_of(data, name, confidence)) for data in runs)
    ]
    asked = [*(f"p{format_percentile(p)}" for p in (percentiles or ())), *also]
    names = list(dict.fromkeys([*asked, *available]))
    if not names:
        raise DataNotAvailableError(
            nothing_in_common(*sides)
            or "the two sides have no statistic in common; read outputs that keep the samples or a "
            "histogram"
        )
    return sorted(
        names, key=lambda name: (name[0] != "p", float(name[1:]) if name[0] == "p" else 0)
    )


def nothing_in_common(base: Sequence[Data], new: Sequence[Data]) -> str | None:
    """Return what the reported numbers of two sides are, where none is of the same statistic."""
    words, known = [], []
    for name, runs in (("base", base), ("new", new)):
        own = set[str]()
        for data in runs:
            if not isinstance(data, Summary):
                return None
            own |= {name for name in ("mean", "max") if name in data.stats}
            own |= {f"p{format_percentile(p)}" for p in data.reported_percentiles}
        known.append(own)
        words.append(f"{name} reports {brief_list(sorted(own)) or 'nothing'}")
        words[-1] += f" ({runs[0].run.tool})" if runs[0].run.tool else ""
    if known[0] & known[1]:
        return None
    return f"nothing can be compared: {' and '.join(words)}; read outputs that keep the samples"


def _tails(runs: Sequence[Any]) -> Floats | None:
    """The mean above p95 over p50 in the typical part of each run; in all of one without times."""
    if any(isinstance(data, Summary) for data in runs):
        return None
    # Stalls move every statistic of whole runs; few parts have one.
    known = [evidence_of(data) for data in runs]
    blocks = [one.jackknife for one in known if one.jackknife is not None]
    parts = min(RUNS.parts, *(one.bins for one in blocks),
                *(one.whole.count // RUNS.least_part for one in known))  # fmt: skip
    percentiles = np.append(50.0, RUNS.tail)
    if len(blocks) == len(known) and parts >= RUNS.least_parts:
        values = [one.of_blocks(percentiles, parts) for one in blocks]
    else:
        values = [np.atleast_2d(one.whole.percentile(percentiles)) for one in known]
    if any((each[:, 0] <= 0).any() for each in values):
        return None
    return np.array([float(np.median(v[:, 1:].mean(axis=1) / v[:, 0])) for v in values])


def _of_summaries(
    first: Side,
    second: Side,
    names: list[str],
    *,
    confidence: float,
    margin: float,
    run_noise: float | None,
) -> Comparison:
    """Reported numbers have no intervals of their own; percentiles show what runs may tolerate."""
    points: list[list[_Point]] = [[], []]
    for side, own in zip((first, second), points, strict=True):
        for name in names:
            value, reach = statistic_of(side, name), 0.0
            if name == "mean" and isinstance(side, Summary):  # its error, or the values' spread
                error = side.stats.get("standard error", side.stats.get("std", 0.0))
                reach = error * student_quantile(confidence, max((side.count or math.inf) - 1, 1))
            own.append(_Point(value, value, value, max(value - reach, 0.0), value + reach))
    notes = [_MAXIMUM if name == "p100" else "" for name in names]
    rows = [
        _change_of(name, base, new, confidence, run_noise)
        for name, base, new in zip(names, *points, strict=True)
    ]
    why = "reported numbers have no intervals: compare outputs that keep the samples or a histogram"
    if run_noise is not None:
        rows = _judged(rows, notes, confidence)
        result = verdict(rows, margin)
        return Comparison(tuple(rows), "requests", result, (why,), run_noise=run_noise)
    percentiles = [name for name in names if name[0] == "p" and name != "p100"]
    unknown: dict[str, Any] = {
        "low": -1.0, "high": math.inf, "difference_low": -math.inf, "difference_high": math.inf,
    }  # fmt: skip
    reasons: tuple[str, ...] = (why,)
    spread = any(point.low < point.high for own in points for point in own)
    enough = "p50" in percentiles and len(percentiles) >= SINGLE.min_reported
    if enough and not spread:
        rows = _stated(rows, points, notes, added=False)
    else:  # of a mean with its spread there is an interval; other numbers have none
        rows = [
            replace(row, significant=row.tolerates >= SINGLE.usual_noise, p_value=math.nan)
            if base.low < base.high and new.low < new.high
            else replace(row, tolerates=math.nan, p_value=math.nan, **unknown)
            for row, base, new in zip(rows, *points, strict=True)
        ]
        reasons = () if spread else (f"{why}, or several runs per side",)
    result = _direction([row for row in rows if row.significant])
    known = [row.tolerates for row in rows if row.significant and math.isfinite(row.tolerates)]
    if enough or spread:
        reasons = (_single_reason(rows, result), *reasons)
    rows = rows if spread else [replace(row, **unknown) for row in rows]
    return Comparison(tuple(rows), "requests", result, reasons, tolerates=max(known, default=None))


def _single_reason(rows: Sequence[Change], result: Verdict) -> str:
    """What one run per side leaves open, and how many runs would decide."""
    changed = [row for row in rows if not row.note and row.tolerates > 0 and not row.significant]
    needed = RUNS.advised
    if result != "inconclusive" and not changed:
        return f"one run per side: {needed} on each would show smaller changes, too"
    if not changed:
        return (
            "no change in these runs beyond their intervals; one run per side cannot show that "
            f"systems are equal: measure {needed} per side, or state how much runs differ "
            f"({option('run-noise', '3%', '0.03')})"
        )
    largest = max(changed, key=lambda row: row.tolerates)
    size = abs(math.log1p(largest.change)) if math.isfinite(largest.change) else 0.0
    runs = needed if not size else max(
        needed, math.ceil(2 * (SINGLE.power * SINGLE.usual_noise / size) ** 2)
    )  # fmt: skip
    noise = format_share(largest.tolerates)
    chance = f"chance explains it where runs of one system differ by {noise}"
    middle = next((row.change for row in rows if row.statistic == "p50"), math.nan)
    steady = abs(math.log1p(middle)) < math.log(SINGLE.least_ratio_of_all) if middle > -1 else False
    if steady and largest.tolerates >= SINGLE.least_noise:
        chance = f"one slow period may explain it: the median's change is {format_change(middle)}"
    return (
        f"changed in these runs: {', '.join(row.statistic for row in changed)}; {chance}. "
        f"{runs} runs per side would decide, or the variation between runs "
        f"({option('run-noise', '3%', '0.03')})"
    )


# ------------------------------------------------------------
# Whether two measurements may be compared at all: what differs between them besides the system.


def unit_doubts(runs: Sequence[Run], middles: Sequence[float]) -> tuple[str, ...]:
    """Return reasons against comparing values whose units are partly assumed."""
    guessed = [run for run in runs if run.unit_note is not None]
    if not guessed:
        return ()
    doubts = []
    units = sorted({run.unit for run in guessed})
    if len(units) > 1:
        doubts.append(
            f"units are only assumed, and differ: {' and '.join(units)}; state them with "
            f"{option('unit')}"
        )
    known = [value for value in middles if value > 0]
    factor = max(known) / min(known) if known else 1.0
    if factor >= SOURCE.thousandfold:
        doubts.append(
            f"the medians differ by a factor of {factor:,.0f} and a unit is only assumed: state "
            f"the unit of each file ({option('unit')})"
        )
    return tuple(doubts)


def differences(
    base: Run, new: Run, base_count: int | None = None, new_count: int | None = None
) -> tuple[str, ...]:
    """Return what makes two measurements hard to compare, one sentence each."""

    def per_second(rate: float) -> str:
        return f"{rate:,.{0 if rate >= 100 else 2}f}/s"

    texts = []
    for name, words in (
        ("measure", "one side measures {} time, the other {} time"),
        ("corrected", "the correction for coordinated omission differs: {} and {}"),
        ("loop", "the kind of load differs: {} loop and {} loop"),
    ):
        pair = getattr(base, name), getattr(new, name)
        if pair[0] != pair[1] and "unknown" not in pair:
            texts.append(words.format(*pair))
    achieved = (base.achieved, new.achieved) if base.rate == new.rate else (None, None)
    numbers: tuple[tuple[str, float | None, float | None, float, Callable[[float], str]], ...] = (
        ("rate", base.rate, new.rate, SOURCE.near, per_second),
        ("achieved rate", *achieved, SOURCE.near, per_second),
        ("number of connections", base.connections, new.connections, 0.0, format_count),
        ("duration", base.duration, new.duration, SOURCE.near, lambda v: format_duration(v * 1e9)),
        ("number of requests", base_count, new_count, SOURCE.near_counts, format_count),
    )
    for name, value, other, near, show in numbers:
        if value is None or other is None:
            continue
        if abs(value - other) > near * max(abs(value), abs(other)):
            texts.append(f"the {name} differs: {show(value)} and {show(other)}")
    failing = [sum(failure_counts(run).values()) for run in (base, new)]
    if failing[0] != failing[1] and base.failures_known and new.failures_known:
        texts.append(
            f"{format_count(failing[0])} requests failed on one side, {format_count(failing[1])} "
            "on the other"
        )
    return tuple(texts)


def _doubts(sides: tuple[list[Side], list[Side]], omits: str) -> tuple[str, tuple[str, ...]]:
    """What explains more than the system does, and other differences, also among runs of a side."""
    base, new = sides[0][0], sides[1][0]
    one, other = base.run, new.run
    rates = [run.rate or run.achieved or 0.0 for run in (one, other)]
    corrected = [run.corrected in ("us", "tool") for run in (one, other)]
    only = f"only the {'base' if corrected[0] else 'new'} side"
    unlike = all(rates) and not 1 / SOURCE.unlike_rates < rates[0] / rates[1] < SOURCE.unlike_rates
    kinds = {one.measure, other.measure} == {"service", "response"}
    apart = bool(one.series and other.series and one.series != other.series)
    unfair = (
        (corrected[0] != corrected[1], f"{only} is corrected for coordinated omission"),
        (kinds, f"one side measures {one.measure} time, the other {other.measure} time"),
        (bool(omits), omits),
        (unlike, f"the load differs: {' and '.join(f'{format_rate(rate)}/s' for rate in rates)}"),
        (apart, f"other operations: {one.series} and {other.series}"),
    )
    runs = [data for side in sides for data in side]
    guessed = {data.run.unit_note for data in runs} - {None}
    texts: list[str] = [
        Note(f"of at least one side, {note}", "unit") for note in sorted(filter(None, guessed))
    ]
    if guessed:
        middles = []
        for data in runs:
            known = (statistic_of(data, name) for name in ("p50", "mean"))
            middle = next((value for value in known if not math.isnan(value)), math.nan)
            middles.append(NANOSECONDS.get(data.unit, 1.0) * middle)
        texts += unit_doubts([data.run for data in runs], middles)
    texts += differences(base.run, new.run, base.count, new.count)
    for name, side in zip(("base", "new"), sides, strict=True):
        among = (
            text
            for data in side[1:]
            for text in differences(side[0].run, data.run, side[0].count, data.count)
        )
        texts += [f"among the {name} runs, {text}" for text in list(dict.fromkeys(among))[:3]]
        # Summaries may be equal by chance.
        counted = [data for data in side if not isinstance(data, Summary) and data.count]
        earlier: dict[bytes, Side] = {}
        copies = 0
        for data in counted:
            key = data.index.tobytes() + data.counts.tobytes()
            copies += _alike(earlier.setdefault(key, data), data)
        copies -= len(earlier)
        if copies:
            texts.append(
                f"{copies} of the {len(side)} {name} runs repeat another's very numbers: copies do "
                "not show how runs differ"
            )
    if len(sides[0]) == len(sides[1]) == 1 and _alike(base, new):
        texts.append("both sides have the very same numbers")
    return next((text for applies, text in unfair if applies), ""), tuple(texts)


def _alike(first: Side, second: Side) -> bool:
    if isinstance(first, Summary) or isinstance(second, Summary):
        return first == second
    return (
        first.buckets == second.buckets
        and np.array_equal(first.index, second.index)
        and np.array_equal(first.counts, second.counts)
    )


# ------------------------------------------------------------
# The verdict: better, worse, mixed, same by equivalence, or inconclusive.


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values adjusted for their number (Holm, 1979)."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    out = np.empty(p.size)
    out[order] = np.minimum(stepped, 1.0)
    return out


def named_changes(comparison: Comparison) -> list[Change]:
    """Return the changes that a headline names: of p50, p99 and p99.9, or any three."""
    changed = [row for row in comparison.changes if row.significant]
    usual = [row for row in changed if row.percentile in (50.0, 99.0, 99.9)]
    return (usual or [row for row in changed if row.percentile is not None] or changed)[:3]


def verdict(changes: Sequence[Change], margin: float = 0.05) -> Verdict:
    """Return the verdict on all changes together."""
    judged = [row for row in changes if not math.isnan(row.p_value)]
    same = [row for row in judged if -margin <= row.low and row.high <= margin]
    moved = [row for row in judged if row.significant and row not in same]
    if moved:
        return _direction(moved)
    return "same" if judged and len(same) == len(judged) else "inconclusive"


def _direction(moved: Sequence[Change]) -> Verdict:
    """What changes add up to."""
    worse, better = any(row.low > 0 for row in moved), any(row.high < 0 for row in moved)
    if worse and better:
        return "mixed"
    return "worse" if worse else "better" if better else "inconclusive"


# ------------------------------------------------------------
# One run per side: how much each statistic changed, and how much runs of one system would have to
# differ for that to be chance.
#
# Two runs of one system differ, too, and with a million requests any such difference is
# "significant". So a change is stated where it is larger than runs plausibly differ: most parts of
# one run are slower than most parts of the other, and by much. Whatever is stated comes with the
# run noise that chance would need.

_MAXIMUM = (
    "the maximum grows with the number of requests and the length of a run: it is shown, not judged"
)


@record()
class SingleRunRule:
    """When a change between two runs is stated; `truth --only compare` chose it."""

    # At a run noise of 10 % it is wrong in 1 to 3 % of pairs of one system, and finds a factor of 2
    # in nine of ten.

    blocks: int = 10  # parts of each run, compared part by part
    dominance: float = 0.8  # pairs of parts that are slower minus faster: a stall is one part
    least_ratio: float = 1.5  # of the medians of the parts
    least_noise: float = (
        0.17  # run noise that has to be tolerated: runs of one system differ by 10 %
    )
    least_ratio_of_all: float = 1.75  # without parts: of the median, which no stall carries alone
    least_ratio_of_many: float = 10.0  # or of p90, once corrected: a tenth of the time
    most_shown: float = 9.0  # relative change that would have been shown, and is worth a word
    usual_noise: float = 0.05  # of well kept systems: for the number of runs that would decide
    power: float = 2.8  # standard errors that are found in four of five cases: 1.96 + 0.84
    min_reported: int = 3  # percentiles of reported numbers, the median among them, to be judged
    max_exponent: float = 700.0  # of a float


SINGLE = SingleRunRule()


@record(eq=False)
class _Point:
    """One statistic of a run: its value, bucket and clock bounds, interval, and parts."""

    value: float
    bottom: float
    top: float
    low: float
    high: float
    parts: Floats | None = None


def compare_single(
    sides: tuple[Evidence, Evidence],
    percentiles: Sequence[float] | None = None,
    means: Sequence[str] = ("mean",),
    *,
    also: Sequence[float] = (),
    confidence: float = 0.95,
    margin: float = 0.05,
    run_noise: float | None = None,
) -> Comparison:
    """Compare two runs; by default the maximum and percentiles that both support and resolve."""
    # Intervals of a ratio are those of both sides put together (MOVER; Zou and Donner, 2008), and
    # allow for the run noise where it is stated.
    wholes = [side.whole for side in sides]
    if percentiles is None:
        top = min(whole.sample_limit(confidence=confidence) for whole in wholes)
        reported = {*wholes[0].reported_percentiles[0]} & {*wholes[1].reported_percentiles[0]}
        candidates = {*_PERCENTILES}
        if len(reported - {0, 100}) <= SOURCE.max_reported:
            candidates |= reported - {0, 100}
        supported = sorted(p for p in candidates if p <= top)
        rows_of = (x.percentile_rows(supported, confidence=confidence) for x in wholes)
        known = [a.percentile for a, b in zip(*rows_of, strict=True) if a.resolved and b.resolved]
        percentiles = [*(known or supported), 100.0]
    percentiles = sorted({*percentiles, *also})
    gaps = [
        next((gap for one in wholes if (gap := gap_at(one.counted, p)) is not None), None)
        for p in percentiles
    ]
    points = [list(_points(side, percentiles, means, confidence)) for side in sides]
    names = [*(f"p{format_percentile(p)}" for p in percentiles), *means]
    notes = [
        gap.words if gap else _MAXIMUM if p == 100 else ""
        for p, gap in zip(percentiles, gaps, strict=True)
    ]
    notes += [""] * len(means)
    found = next((gap for gap in gaps if gap is not None), None)
    if found is not None:
        for name, *pair in _mode_points(sides, found, confidence):
            names.append(name)
            notes.append("")
            for side, point in zip(points, pair, strict=True):
                side.append(point)
    rows = [
        _change_of(name, before, after, confidence, run_noise)
        for name, before, after in zip(names, *points, strict=True)
    ]
    added, alone = any(x.run.corrected in ("us", "tool") for x in wholes), run_noise is None
    rows = _stated(rows, points, notes, added=added) if alone else _judged(rows, notes, confidence)
    rows = [
        row if row.resolved else replace(row, change=math.nan, difference=math.nan) for row in rows
    ]
    reasons = []
    if added:
        reasons.append(
            "counts were corrected for coordinated omission: requests that were added count like "
            "measured ones, so intervals are too narrow, and one long stall moves all of them"
        )
    stated = [row for row in rows if row.significant]
    result = _direction(stated) if alone else verdict(rows, margin)
    if alone:
        reasons.append(_single_reason(rows, result))
        if any(side.jackknife is None for side in sides):
            reasons.append(
                "a source has no times, or too few, so its intervals are those of independent "
                "requests: where slow ones come together they are too narrow"
            )
    reasons += list(dict.fromkeys(row.note for row in rows if row.note and row.statistic != "p100"))
    # The smallest slowdown of p50 and p99 that these two runs would have stated, if none changed.
    shown = []
    changed = any(row.tolerates > 0 and not row.note for row in rows)
    for row in rows if alone and result == "inconclusive" and not changed else ():
        if row.statistic in ("p50", "p99") and not row.note and math.isfinite(row.high):
            # From an end of the interval to its middle.
            error = math.log1p(row.high) - math.log1p(max(row.change, row.low))
            noise = normal_quantile(0.975) * math.sqrt(2) * SINGLE.least_noise
            size = math.expm1(max(math.hypot(noise, error), math.log(SINGLE.least_ratio)))
            if size <= SINGLE.most_shown:  # a larger one says only that nothing is known
                shown.append((row.statistic, size))
    tolerated = [row.tolerates for row in stated if alone and math.isfinite(row.tolerates)]
    return Comparison(
        tuple(rows), "requests", result, tuple(reasons), run_noise=run_noise,
        tolerates=max(tolerated, default=None), would_show=tuple(shown),
    )  # fmt: skip


def _judged(changes: Sequence[Change], notes: Sequence[str], confidence: float) -> list[Change]:
    """The changes with p-values adjusted for their number, where the run noise is known."""
    judged = [
        not note and not math.isnan(row.p_value) for row, note in zip(changes, notes, strict=True)
    ]
    known = [row.p_value for row, one in zip(changes, judged, strict=True) if one]
    adjusted = iter(holm(known).tolist())
    return [
        row.judged(next(adjusted), confidence) if one else replace(row, p_value=math.nan, note=note)
        for row, one, note in zip(changes, judged, notes, strict=True)
    ]


def _points(
    side: Evidence, percentiles: Sequence[float], means: Sequence[str], confidence: float
) -> Iterator[_Point]:
    """Percentiles of a run, and means, also trimmed by rank."""
    whole, counts, jackknife = side.whole, side, side.jackknife
    if jackknife is None and whole.run.corrected in ("us", "tool"):
        counts = whole.with_run(corrected="unknown").evidence()  # are taken for requests
    for row in counts.rows(percentiles, confidence)[0]:
        step = clock_step(whole.counted, row.value)
        bottom, top = max(row.bucket_low - step, 0.0), row.bucket_high + step
        low = 0.0 if math.isnan(row.low) else min(row.low, bottom)
        high = math.inf if math.isnan(row.high) else max(row.high, top)
        parts = None
        if jackknife is not None and 0 < row.percentile < 100:
            parts = jackknife.of_blocks(row.percentile, SINGLE.blocks)
        yield _Point(row.value, bottom, top, low, high, parts)
    for name in means:
        ranks = ranks_of_mean(name) if name == "mean" or parse_trim(name).kind == "TM" else None
        if ranks is None:
            raise InvalidArgumentError(
                f"{name!r} cannot be compared; compare percentiles, the mean, or trimmed means "
                "such as tm99"
            )
        if name == "mean":  # reported by the source, else from its buckets
            bottom, top = whole.bounds("mean")
            value = whole.mean if is_resolved(bottom, top) or whole.censored else top
        else:
            trim = whole.trimmed(name)
            value, bottom, top = trim.value, trim.low, trim.high
        step = clock_step(whole.counted, value)
        bottom, top = max(bottom - step, 0.0), top + step
        below, above = side.mean(name, confidence) if math.isfinite(top) else (0.0, 0.0)
        if is_resolved(bottom, top) and not step:
            bottom = top = value
        low, high = max(bottom - below, 0.0), top + above
        parts = None if jackknife is None else jackknife.means(*ranks, number=SINGLE.blocks)
        yield _Point(value, bottom, top, low, high, parts)


def _mode_points(
    sides: tuple[Evidence, Evidence], gap: Gap, confidence: float
) -> Iterator[tuple[str, _Point, _Point]]:
    """Weight of the slow mode, and its median where both sides have one."""
    cut = math.sqrt(max(gap.below, 0.0) * gap.above) or gap.above / 2  # a clock may read zero
    weights = []
    for side in sides:
        counted = side.whole.counted
        slow = int(counted.counts[counted.high > cut].sum()) + counted.censored
        share = slow / counted.total
        requests = counted.total // counted.repeats
        low, high = share_interval(min(slow // counted.repeats, requests), requests, confidence)
        if side.jackknife is not None:
            ends = side.jackknife.above(cut).share_interval(confidence)
            low, high = min(low, ends[0]), max(high, ends[1])
        weights.append(_Point(share, share, share, low, high))
    yield "slow share", weights[0], weights[1]
    if all(point.value > 0 for point in weights):
        base, new = (
            next(_points(side, [100 - 50 * point.value], (), confidence))
            for side, point in zip(sides, weights, strict=True)
        )
        yield "slow median", base, new


def _change_of(
    name: str, base: _Point, new: _Point, confidence: float, run_noise: float | None
) -> Change:
    """The change between two runs with its interval, and the run noise that chance would need."""
    z = normal_quantile((1 + confidence) / 2)
    noise = z * math.sqrt(2) * (run_noise or 0.0)
    least, most = _log_ratio(new.bottom, base.top), _log_ratio(new.top, base.bottom)
    down = math.hypot(_log_ratio(new.bottom, new.low), _log_ratio(base.high, base.top))
    up = math.hypot(_log_ratio(new.high, new.top), _log_ratio(base.bottom, base.low))
    low, high = least - math.hypot(down, noise), most + math.hypot(up, noise)
    low, high = (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)
    apart, error = (least, down) if least > 0 else (-most, up) if most < 0 else (0.0, math.inf)
    tolerates = p_value = math.nan
    if math.isfinite(apart) and math.isfinite(error):
        tolerates = math.sqrt(max(apart**2 - error**2, 0.0)) / (z * math.sqrt(2))
        spread = math.hypot(error / z, math.sqrt(2) * (run_noise or 0.0))
        p_value = math.erfc(apart / spread / math.sqrt(2)) if spread else 0.0
    elif not apart:
        tolerates, p_value = 0.0, 1.0
    scale = noise * max(base.value, new.value)
    return Change(
        name, base.value, new.value, new.value / base.value - 1 if base.value else math.nan,
        math.expm1(low), math.exp(high) - 1 if high < SINGLE.max_exponent else math.inf,
        new.value - base.value,
        new.bottom - base.top - math.hypot(new.bottom - new.low, base.high - base.top, scale),
        new.top - base.bottom + math.hypot(new.high - new.top, base.bottom - base.low, scale),
        p_value, tolerates=tolerates,
        base_low=base.bottom, base_high=base.top, new_low=new.bottom, new_high=new.top,
    )  # fmt: skip


def _log_ratio(upper: float, lower: float) -> float:
    """The logarithm of a ratio; 0 of two zeros, infinite of one."""
    if upper == lower:
        return 0.0
    if not lower or math.isinf(upper):
        return math.inf
    ratio = upper / lower if math.isfinite(lower) else 0.0  # which may be too small for a float
    return math.log(ratio) if ratio > 0 else -math.inf


def _stated(
    changes: Sequence[Change], points: Sequence[Sequence[_Point]], notes: Sequence[str],
    *, added: bool,
) -> list[Change]:  # fmt: skip
    """The changes that are larger than runs of one system plausibly differ."""
    least = {"p50": SINGLE.least_ratio_of_all}
    if added:  # by a correction: a tenth of the requests is a tenth of the time
        least["p90"] = SINGLE.least_ratio_of_many
    carried = [row for row in changes if row.statistic in least]
    rows = []
    for row, base, new, note in zip(changes, *points, notes, strict=True):
        significant = not note and row.tolerates >= SINGLE.least_noise
        sign = 1 if row.low > 0 else -1
        if significant and base.parts is not None and new.parts is not None:
            # Parts of one run are slower than those of the other, and by much.
            before, after = (np.log(np.maximum(one.parts, 1e-300)) for one in (base, new))
            dominance = float(np.sign(after[:, None] - before[None, :]).mean())
            moved = float(np.median(after) - np.median(before))
            significant = sign * dominance > SINGLE.dominance
            significant = significant and sign * moved >= math.log(SINGLE.least_ratio)
        elif significant and row.statistic != "slow share" and carried:
            # Without parts: percentiles that no stall carries alone have moved as well.
            significant = any(
                sign * _log_ratio(one.new, one.base) >= math.log(least[one.statistic])
                for one in carried
            )
        rows.append(replace(row, p_value=math.nan, significant=bool(significant), note=note))
    return rows


# ------------------------------------------------------------
# Several runs per side: the samples are the runs, not their requests.
#
# Pooled requests of identical systems differ "significantly" in every second comparison, because
# runs vary. Here every run gives one number per statistic, and Welch's t compares the logarithms.


@record()
class RunsRule:
    """Several runs per side; `tests.benchmarks.truth --only uncertainty` shows the errors."""

    least: int = 2  # per side: one run does not show how runs differ
    least_spread: float = 1e-3  # relative: numbers of three digits
    advised: int = 4  # per side: a doubling of p99 is found in nine of ten cases
    parts: int = 30  # of a run, for its typical tail: a few stalls touch fewer than half of them
    least_parts: int = 12
    least_part: int = 100  # requests of a part: five of them lie above p95
    tail: tuple[float, ...] = tuple(np.arange(95.25, 100, 0.5).tolist())  # whose mean is TM(95%:)
    most_of_middle: float = 0.5  # of the tail's change, in p50 the other way
    most_noise: float = 22.0  # times what is to be shown: a thousand runs per side


RUNS = RunsRule()


def least_p(base_runs: int, new_runs: int) -> float:
    """Return the smallest two-sided p-value that an exact test of that many runs can give."""
    return min(1.0, 2.0 / math.comb(base_runs + new_runs, base_runs))


def runs_needed(alpha: float = 0.05) -> int:
    """Return the number of runs per side from which a rank test at level `alpha` can reject."""
    return next(n for n in itertools.count(2) if least_p(n, n) <= alpha)


def compare_runs(
    base: ArrayLike,
    new: ArrayLike,
    statistics: Sequence[str],
    *,
    confidence: float = 0.95,
    margin: float = 0.05,
    stamps: Sequence[Sequence[float | None]] | None = None,
    run_noise: float | None = None,
) -> Comparison:
    """Compare two groups of runs; in the changes, `base` and `new` are geometric means."""
    # Welch's t-test compares the logarithms of the runs' statistics; p-values are adjusted for the
    # number of statistics (Holm, 1979). Where `stamps` show that one side was measured before the
    # other, a change has to exceed what a drift from run to run may do; where `run_noise` is
    # stated, what such noise may do.
    sides = [np.atleast_2d(np.asarray(side, np.float64)) for side in (base, new)]
    if any(side.shape[1] != len(statistics) for side in sides):
        raise InvalidArgumentError(
            f"every run needs {len(statistics)} numbers, one for each of {', '.join(statistics)}"
        )
    pooled = np.concatenate(sides)
    runs, reasons = [len(side) for side in sides], []
    complete = np.logical_not(np.isnan(pooled).any(axis=0))
    left_out = np.asarray(statistics)[~complete].tolist()
    if left_out:
        reasons.append(f"not every run supports {', '.join(left_out)}: not judged")
    enough = min(runs) >= RUNS.least or run_noise is not None
    if not enough:
        reasons.append(
            f"{runs[0]} and {runs[1]} runs do not show how runs differ; measure at least "
            f"{RUNS.least} per side, {RUNS.advised} for smaller changes"
        )
    positive = pooled[pooled > 0]
    least = float(positive.min()) / 2 if positive.size else 1.0  # a clock may read zero
    logs = [np.log(np.maximum(side, least)) for side in sides]
    noise = run_noise or 0.0
    rows = [
        _change(name, logs[0][:, k], logs[1][:, k], confidence, noise)
        for k, name in enumerate(statistics)
    ]
    judged = np.flatnonzero(complete & enough & (np.array(statistics) != "p100")).tolist()
    p_values = np.full(len(statistics), np.nan)
    p_values[judged] = holm([rows[k].p_value for k in judged])
    reach: list[float] = []
    began = [[one for one in side if one is not None] for side in stamps or ()]
    if (  # all runs of one side began before those of the other
        stamps is not None
        and judged
        and all(len(a) >= max(len(b), 2) for a, b in zip(began, stamps, strict=True))
        and (max(began[0]) < min(began[1]) or max(began[1]) < min(began[0]))
    ):
        reach = [_drift(logs, stamps, k, confidence) for k in judged]
        for k, far in zip(judged, reach, strict=True):
            if abs(math.log1p(rows[k].change)) <= far:
                p_values[k] = 1.0
        reasons.append(
            "all runs of one side were measured before those of the other, so a drift from run to "
            f"run looks like a change: changes below {format_share(math.expm1(max(reach)))} are "
            "not judged; alternate the sides"
        )
    moved = {row.statistic: math.log1p(row.change) for row in rows}
    if TAIL in moved and -moved["p50"] / (moved[TAIL] or 1.0) > RUNS.most_of_middle:
        p_values[list(statistics).index(TAIL)] = 1.0  # the middle has moved, not the tail
    changes = [row.judged(float(p), confidence) for row, p in zip(rows, p_values, strict=True)]
    result = verdict(changes, margin) if enough else "inconclusive"
    if result == "inconclusive" and not reach and run_noise is None:
        reasons += _runs_that_decide(changes, judged, logs, margin)
    return Comparison(tuple(changes), "runs", result, tuple(reasons))


def _runs_that_decide(
    changes: Sequence[Change], judged: Sequence[int], logs: Sequence[Floats], margin: float
) -> list[str]:
    """What is open, and how many runs would show its change, or that it is within the margin."""
    needed = {}
    for k in judged:
        row, moved = changes[k], abs(math.log1p(changes[k].change))
        if not row.significant and not -margin <= row.low <= row.high <= margin:
            spread = math.sqrt(np.mean([side[:, k].var(ddof=1) for side in logs]))
            size = max(moved, math.log1p(margin) - moved)
            if SINGLE.power * spread < RUNS.most_noise * size:
                needed[k] = math.ceil(2 * (SINGLE.power * spread / size) ** 2)
    if not needed:
        return []
    most = max(needed, key=lambda k: needed[k])
    ends = f"{format_change(changes[most].low)} to {format_change(changes[most].high)}"
    runs = format_estimate(max(needed[most], max(map(len, logs)) + 1))
    name = changes[most].statistic
    return [f"{name} is undecided ({ends}): about {runs} runs per side would decide"]


def _change(name: str, base: Floats, new: Floats, confidence: float, noise: float) -> Change:
    """The ratio of two groups of runs by Welch's t, from their logarithms."""
    from scipy import special

    floor = max(RUNS.least_spread, noise) ** 2
    squares, parts = [], []
    for side in (base, new):
        variance = max(float(side.var(ddof=1)), floor) if side.size > 1 else floor
        squares.append(variance / side.size)
        parts.append(squares[-1] ** 2 / max(side.size - 1, 1))
    freedom = math.inf if min(base.size, new.size) < RUNS.least else sum(squares) ** 2 / sum(parts)
    error, moved = math.sqrt(sum(squares)), float(new.mean() - base.mean())
    before, after = math.exp(float(base.mean())), math.exp(float(new.mean()))
    low, high, difference_low, difference_high = -1.0, math.inf, -math.inf, math.inf
    p_value = math.nan
    if math.isfinite(error) and (math.isfinite(freedom) or noise):
        freedom = min(freedom, 1e6)
        reach = float(special.stdtrit(freedom, (1 + confidence) / 2)) * error
        p_value = 2 * float(special.stdtr(freedom, -abs(moved) / error))
        low, high = math.expm1(moved - reach), math.expm1(moved + reach)
        difference_low, difference_high = low * before, high * before
    return Change(
        name, before, after, math.expm1(moved), low, high, after - before, difference_low,
        difference_high, p_value,
    )  # fmt: skip


def _drift(
    logs: Sequence[Floats], stamps: Sequence[Sequence[float | None]], column: int, confidence: float
) -> float:
    """How far two groups of runs may drift apart, as a logarithm, if runs go on from the last."""
    steps = []
    for side, begun in zip(logs, stamps, strict=True):
        order = np.argsort([one or 0.0 for one in begun], kind="stable")
        steps.append(np.diff(side[order, column]))
    every = np.concatenate(steps)
    runs = (len(logs[0]) + len(logs[1])) / 2
    # In a random walk of steps of variance s², means of n runs differ by s² (2 n² + 1) / 3 n.
    variance = float((every**2).mean()) * (2 * runs**2 + 1) / (3 * runs)
    return student_quantile(confidence, every.size) * math.sqrt(variance)


# ------------------------------------------------------------
# Percentiles that fall between two modes: there they jump, and no interval helps.
#
# If 1 % of the requests take a slow path, p99 lies on the boundary: 1.8 ms in one run, 44.6 ms in
# the next, and nothing has changed. What can be compared are the weight of the slow mode and where
# it lies.


@record()
class GapRules:
    """When a percentile falls between two modes; chosen on bimodal services."""

    min_ratio: float = 2.0  # a gap doubles the value
    min_requests: int = 8  # beyond it: fewer are the loose end of any heavy tail
    near: float = 1.5  # factor between the tail's share and the slow mode's weight


GAP = GapRules()


@record()
class Gap:
    """An empty stretch between two modes, at a percentile."""

    below: float  # end of the fast mode
    above: float  # start of the slow mode
    weight: float  # share (0..1) of requests in the slow mode,
    weight_low: float  # and its 95 % interval
    weight_high: float
    percentile: float  # the percentile that lies on the boundary

    @property
    def words(self) -> str:
        """One sentence."""
        return (
            f"p{self.percentile:g} lies between two modes and jumps from run to run; compare the "
            f"slow mode instead: {100 * self.weight:.3g} % of requests "
            f"({100 * self.weight_low:.3g} to {100 * self.weight_high:.3g} %)"
        )


def gap_at(counted: Counted, percentile: float) -> Gap | None:
    """Return the gap between two modes that a percentile falls into, or None."""
    # A gap is an empty stretch across which the value at least doubles, with at least eight
    # requests on either side, wider than any within the slow mode; the percentile falls into it if
    # the slow mode's weight is within the percentile's rank interval, or within half again of its
    # tail.
    if not 0 < percentile < 100 or not counted.count:
        return None
    nonzero = counted.nonzero()
    total, running = nonzero.total, nonzero.cumulative
    beyond = total - running[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        jump = nonzero.low[1:] / nonzero.high[:-1]
    share, tail = beyond / total, 1 - percentile / 100
    low, high = (int(end[0]) for end in rank_interval(total, [percentile]))
    brink = (running[:-1] >= low) & (running[:-1] <= high)
    brink |= (share <= tail * GAP.near) & (share >= tail / GAP.near)
    populated = (beyond >= GAP.min_requests) & (running[:-1] >= GAP.min_requests)
    candidates = np.flatnonzero(brink & (jump >= GAP.min_ratio) & populated)
    candidates = candidates[[bool((jump[k] > jump[k + 1 :]).all()) for k in candidates]]
    if not candidates.size:
        return None
    at = int(candidates[np.argmax(jump[candidates])])
    bounds = share_interval(int(beyond[at]), total)
    return Gap(
        float(nonzero.high[at]), float(nonzero.low[at + 1]), float(share[at]), *bounds, percentile
    )
