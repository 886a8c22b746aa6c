"""`compare`: which statistics changed between two systems, with confidence.

From top to bottom: the result, the operation, what makes measurements hard to compare, the verdict,
one run per side, several runs per side, and the mathematics of gaps, superiority and shift.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latencykit._records import record
from latencykit.analysis.bootstrap import ENDS, Draws, draw_means, draw_percentiles, draw_shifts
from latencykit.core.dependence import LEAST_EVENTS
from latencykit.core.histogram import Histogram, histogram_of, statistic_of
from latencykit.core.quantiles import (
    Counted,
    is_resolved,
    percentile_table,
    rank_interval,
    share_interval,
)
from latencykit.core.repr_html import listing_html
from latencykit.core.run import require_data
from latencykit.core.summary import Summary
from latencykit.core.trimmed import parse_trim, statistic_name, trimmed
from latencykit.core.value import Value
from latencykit.errors import DataNotAvailableError, IncompatibleDataError, InvalidArgumentError
from latencykit.units import (
    NANOSECONDS,
    format_change,
    format_count,
    format_duration,
    format_percentile,
    format_range,
    format_value,
    parse_duration,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from latencykit.core import Data
    from latencykit.core.dependence import Dependence
    from latencykit.core.run import Run

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Side = Histogram | Summary
    Runs = Data | Sequence[Data] | Mapping[str, Data]

__all__ = [
    "Change",
    "Comparison",
    "Condition",
    "Gap",
    "RunsComparison",
    "Shift",
    "Superiority",
    "Verdict",
    "compare",
    "compare_counts",
    "compare_runs",
    "differences",
    "gap_at",
    "holm",
    "least_p",
    "parse_condition",
    "rank_sum_null",
    "runs_needed",
    "shift",
    "significance",
    "superiority",
    "unit_doubts",
    "verdict",
]

Verdict = Literal["same", "better", "worse", "mixed", "inconclusive"]


@record()
class Change:
    """The change of one statistic.

    Attributes
    ----------
    statistic : str
        ``"p99.9"``, ``"mean"``, ``"tm99"``.
    base, new : float
        In the unit of the values.
    change, low, high : float
        Relative change (0.05 is +5 %) and its interval; −1 and infinity where it is unbounded.
    difference, difference_low, difference_high : float
        The same in the unit of the values.
    p_value : float
        Adjusted for the number of statistics, once judged; NaN where not judged.
    significant : bool
    note : str
        A remark for the reader of this row.
    base_low, base_high, new_low, new_high : float
        Bounds of `base` and `new` by the resolution of the sources. Where these are more than a
        tenth apart, `base` and `new` are upper bounds, and `change` and `difference` are NaN: there
        is an interval but no number.
    """

    statistic: str
    base: float
    new: float
    change: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    p_value: float = math.nan
    significant: bool = False
    note: str = ""
    base_low: float = math.nan
    base_high: float = math.nan
    new_low: float = math.nan
    new_high: float = math.nan

    @property
    def percentile(self) -> float | None:
        """The percentile (0..100), if the statistic is one."""
        return float(self.statistic[1:]) if self.statistic[:1] == "p" else None

    @property
    def resolved(self) -> bool:
        """True if both sides are known within a tenth."""
        ends = ((self.base_low, self.base_high), (self.new_low, self.new_high))
        return all(math.isnan(low) or bool(is_resolved(low, high)) for low, high in ends)

    def between(self, base: tuple[float, float, float], new: tuple[float, float, float]) -> Change:
        """Return the change between two values with their bounds (value, low, high)."""
        change = replace(
            self, base=base[0], new=new[0],
            base_low=base[1], base_high=base[2], new_low=new[1], new_high=new[2],
            change=new[0] / base[0] - 1 if base[0] else math.nan, difference=new[0] - base[0],
        )  # fmt: skip
        return change if change.resolved else replace(change, change=math.nan, difference=math.nan)

    def judged(self, p_value: float, confidence: float, note: str = "") -> Change:
        """Return the change with its adjusted p-value; significant if its interval excludes 0."""
        small = p_value <= 1 - confidence + 1e-12
        significant = small and (self.low > 0 or self.high < 0)
        return replace(self, p_value=p_value, significant=significant, note=note)


def significance(row: Change) -> str:
    """Return ``yes``, ``no``, or ``not judged`` without a p-value or without any interval."""
    unknown = math.isnan(row.p_value) or (row.low <= -1 and math.isinf(row.high))
    return "yes" if row.significant else "not judged" if unknown else "no"


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
    faster : float
        P(new < base), the probability (0..1) that a request of the new side is faster than one of
        the base; NaN for several runs.
    unit : str
        Unit of the values.
    runs : tuple of two ints
        Runs per side.
    run_noise : float or None
        Stated relative standard deviation from run to run; single runs only.
    faster_between : tuple of two floats
        Bounds of `faster`, given the buckets.
    """

    changes: tuple[Change, ...]
    basis: Literal["requests", "runs"]
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    faster: float = math.nan
    unit: str = "ns"
    runs: tuple[int, int] = (1, 1)
    run_noise: float | None = None
    faster_between: tuple[float, float] = (math.nan, math.nan)

    @property
    def table(self) -> pd.DataFrame:
        """One row per statistic, with the attributes of `Change` as columns."""
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.changes]).set_index("statistic")

    def failed(self, conditions: Iterable[str | Condition]) -> list[str]:
        """Return the conditions (``"p99.9 > +5%"``) that are met, decided by the intervals' ends.

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
        return [item.text for item in parsed if item.holds(rows[item.statistic], self.unit)]

    def _repr_html_(self) -> str:
        def side(value: float, low: float, high: float, statistic: str) -> str:
            if statistic == "slow share":
                return f"{100 * value:.3g} %"
            if math.isnan(low) or is_resolved(low, high):
                return format_value(value, self.unit)
            return format_range(low, high, lambda end: format_value(end, self.unit))

        rows = []
        for row in self.changes:
            low = format_change(row.low) if row.low > -1 else "unknown"
            high = format_change(row.high) if math.isfinite(row.high) else "unknown"
            rows.append(
                (
                    "max" if row.percentile == 100 else row.statistic,
                    side(row.base, row.base_low, row.base_high, row.statistic),
                    side(row.new, row.new_low, row.new_high, row.statistic),
                    format_change(row.change),
                    "" if low == high == "unknown" else f"{low} to {high}",
                    significance(row),
                )
            )
        header = ("", "base", "new", "change", "interval", "significant")
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
            "with an SLO (check --slo)"
        )
    return Condition(name, above, factor * parse_duration(size), False, text)


# ------------------------------------------------------------
# The operation.

_PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
_MEANS = ("mean", "tm99")
_REPORTED = 12
"""A source that reports at most this many percentiles chose them; more are a spectrum."""


def compare(
    base: Runs, new: Runs, *, percentiles: Sequence[float] | None = None,
    means: Sequence[str] = _MEANS, confidence: float = 0.95, run_noise: float | None = None,
    margin: float = 0.05, also: Sequence[str] = (), replicates: int = 1000, seed: int = 0,
) -> Comparison:  # fmt: skip
    """Compare two runs, or several runs per side.

    Parameters
    ----------
    base, new : data type, or sequence or mapping of data types
        Several per side are runs of one system each.
    percentiles : sequence of float, optional
        By default those that every sample supports, and the maximum.
    means : sequence of str
        ``"mean"`` and trimmed means between ranks (``"tm99"``, ``"TM(:99%)"``).
    confidence : float, default 0.95
    run_noise : float, optional
        Relative standard deviation of a statistic from run to run (0.03 for 3 %). Without it, one
        run per side shows nothing about two systems.
    margin : float, default 0.05
        Changes that surely lie within ± `margin` are called the same.
    also : sequence of str
        Further statistics, supported or not, by name (``"p99.99"``, ``"tm95"``), for conditions.
    replicates, seed : int
        Of the bootstrap.

    Returns
    -------
    Comparison

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
    valid = 0 < confidence < 1 and (run_noise is None or 0 <= run_noise < 1)
    if not (valid and margin >= 0):
        raise InvalidArgumentError(
            "a confidence lies between 0 and 1, run noise from 0 to below 1, and a margin is 0 or "
            "more"
        )
    inputs = _listed(base, "base"), _listed(new, "new")
    # Single runs are judged with all that is known of how their requests depend on each other.
    evidence: list[Any] = [None, None]
    if len(inputs[0]) == len(inputs[1]) == 1 and not any(
        isinstance(data, Summary) or not hasattr(data, "evidence") for (data,) in inputs
    ):
        times = (data.to_unit("ns") if data.unit in NANOSECONDS else data for (data,) in inputs)
        evidence = [data.evidence() for data in times]
        pair = [histogram_of(side.whole, "a comparison") for side in evidence]
        sides: tuple[list[Side], list[Side]] = [pair[0]], [pair[1]]
    else:
        sides = (
            [_comparable(data) for data in inputs[0]],
            [_comparable(data) for data in inputs[1]],
        )
    units = {data.unit for side in sides for data in side}
    if len(units) > 1:
        raise IncompatibleDataError(
            f"values in {' and '.join(sorted(units))} cannot be compared; name the unit of the "
            "former with unit= (--unit)"
        )
    (first, *more), (second, *others) = sides
    if more or others:
        names = _statistics(sides, percentiles, means, also, confidence)
        tables = [
            [[statistic_of(data, name, confidence) for name in names] for data in side]
            for side in sides
        ]
        runs = compare_runs(
            tables[0], tables[1], names, confidence=confidence, margin=margin, seed=seed
        )
        result = Comparison(tuple(runs.changes), "runs", runs.verdict, runs.reasons)
    elif isinstance(first, Summary) or isinstance(second, Summary):
        names = _statistics(sides, percentiles, means, also, confidence)
        result = _of_summaries(first, second, names)
    else:
        chosen = _default(first, second, confidence) if percentiles is None else list(percentiles)
        chosen += [p for name in also if name[0] == "p" and (p := float(name[1:])) not in chosen]
        named = dict.fromkeys([*means, *(name for name in also if name[0] != "p")])
        result = _of_requests(
            first, second, sorted(chosen), list(named), margin, run_noise=run_noise,
            dependence=tuple(None if side is None else side.dependence for side in evidence),
            confidence=confidence, replicates=replicates, seed=seed,
        )  # fmt: skip
    numbers = len(sides[0]), len(sides[1])
    return replace(result, warnings=_warnings(sides), unit=units.pop(), runs=numbers)


def _listed(side: Any, name: str) -> list[Any]:
    if hasattr(side, "run"):
        return [side]
    runs = side.values() if hasattr(side, "values") else side
    series = list(runs) if hasattr(runs, "__iter__") else [runs]
    if not series:
        raise InvalidArgumentError(f"the {name} side is empty; name at least one run")
    for data in series:
        require_data(data, f"the {name} side of a comparison")
    return series


def _comparable(data: Any) -> Side:
    if isinstance(data, Summary):
        return data.to_unit("ns") if data.unit in NANOSECONDS else data
    return histogram_of(data, "a comparison")


def _default(base: Histogram, new: Histogram, confidence: float) -> list[float]:
    """The maximum, and the percentiles that both samples support and both sources resolve.

    Those are the usual ones, and those that both sources report.
    """
    top = min(side.sample_limit(confidence) for side in (base, new))
    reported = {p for p in base.reported_percentiles[0] if p in new.reported_percentiles[0]}
    reported = {p for p in reported if 0 < p < 100}
    candidates = {*_PERCENTILES, *(reported if len(reported) <= _REPORTED else ())}
    chosen = sorted(p for p in candidates if p <= top)
    rows = zip(*(side.percentile_rows(chosen, confidence) for side in (base, new)), strict=True)
    known = [a.percentile for a, b in rows if a.resolved and b.resolved]
    return [*(known or chosen), 100.0]


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
        reported = (p for data in summaries for p in data.reported_percentiles if 0 < p < 100)
        candidates = {*_PERCENTILES, *reported}
    available = [
        name
        for name in (*(f"p{format_percentile(p)}" for p in sorted(candidates)), "p100", *means)
        if not any(math.isnan(statistic_of(data, name, confidence)) for data in runs)
    ]
    asked = [*(f"p{format_percentile(p)}" for p in (percentiles or ())), *also]
    names = list(dict.fromkeys([*asked, *available]))
    if not names:
        raise DataNotAvailableError(
            "the two sides have no statistic in common; read outputs that keep the samples or a "
            "histogram"
        )
    return sorted(
        names, key=lambda name: (name[0] != "p", float(name[1:]) if name[0] == "p" else 0)
    )


def _of_summaries(first: Side, second: Side, names: list[str]) -> Comparison:
    """Reported numbers have no intervals."""
    rows = []
    for name in names:
        base, new = (statistic_of(side, name) for side in (first, second))
        change = new / base - 1 if base else math.nan
        rows.append(
            Change(name, base, new, change, -1.0, math.inf, new - base, -math.inf, math.inf)
        )
    why = (
        "reported numbers have no intervals: compare outputs that keep the samples or a histogram, "
        "or several runs per side"
    )
    return Comparison(tuple(rows), "requests", "inconclusive", (why,))


def _of_requests(
    base: Histogram, new: Histogram, percentiles: list[float], means: list[str], margin: float,
    *, run_noise: float | None, **options: Any,
) -> Comparison:  # fmt: skip
    """Compare one run per side; `options` are those of `compare_counts`."""
    corrected = any(side.run.corrected in ("us", "tool") for side in (base, new))
    rows = compare_counts(
        base.counted, new.counted, percentiles, means,
        run_noise=run_noise, corrected=corrected, **options,
    )  # fmt: skip
    rows = [
        row
        if row.statistic.startswith("slow")
        else row.between(_value(base, row), _value(new, row))
        for row in rows
    ]
    reasons = []
    if run_noise is None:
        reasons.append(
            "one run per side cannot distinguish a change of the system from variation between "
            "runs: the intervals hold for these requests only; measure several runs per side, or "
            "state the variation with run_noise (--run-noise 3%)"
        )
    if corrected:
        reasons.append(
            "counts that were corrected for coordinated omission have no intervals: changes are "
            "shown, not judged"
        )
    reasons += list(dict.fromkeys(row.note for row in rows if row.note and row.statistic != "p100"))
    faster = superiority(base.counted, new.counted)
    return Comparison(
        tuple(rows),
        "requests",
        verdict(rows, margin, noise_known=run_noise is not None and not corrected),
        tuple(reasons),
        faster=faster.value,
        run_noise=run_noise,
        faster_between=(faster.low, faster.high),
    )


def _value(side: Histogram, row: Change) -> tuple[float, float, float]:
    """The value of a statistic (reported by the source, else from its buckets) and its bounds."""
    if row.percentile is not None:
        (known,) = side.percentile_rows([row.percentile])
        return known.value, known.bucket_low, known.bucket_high
    if row.statistic == "mean":
        low, high = side.bracket("mean")
        return side.mean if is_resolved(low, high) or side.censored else high, low, high
    trim = side.trimmed(row.statistic)
    return trim.value, trim.low, trim.high


# ------------------------------------------------------------
# Whether two measurements may be compared at all: what differs between them besides the system.

_A_THOUSANDFOLD = 250.0  # two units, and a change of the system by a factor of up to four
_NEAR = 0.05  # relative; rates and durations are never exactly equal


def unit_doubts(runs: Sequence[Run], middles: Sequence[float]) -> tuple[str, ...]:
    """Return reasons against comparing values whose units are partly assumed."""
    guessed = [run for run in runs if run.unit_note is not None]
    if not guessed:
        return ()
    doubts = []
    units = sorted({run.unit for run in guessed})
    if len(units) > 1:
        doubts.append(
            f"units are only assumed, and differ: {' and '.join(units)}; state them with --unit"
        )
    known = [value for value in middles if value > 0]
    factor = max(known) / min(known) if known else 1.0
    if factor >= _A_THOUSANDFOLD:
        doubts.append(
            f"the medians differ by a factor of {factor:,.0f} and a unit is only assumed: state "
            "the unit of each file (--unit)"
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
        ("rate", base.rate, new.rate, _NEAR, per_second),
        ("achieved rate", *achieved, _NEAR, per_second),
        ("number of connections", base.connections, new.connections, 0.0, format_count),
        ("duration", base.duration, new.duration, _NEAR, lambda v: format_duration(v * 1e9)),
        ("number of requests", base_count, new_count, 0.5, format_count),
    )
    for name, value, other, near, show in numbers:
        if value is None or other is None:
            continue
        if abs(value - other) > near * max(abs(value), abs(other)):
            texts.append(f"the {name} differs: {show(value)} and {show(other)}")
    failing = [run.failed + run.timeouts + run.dropped + run.unfinished for run in (base, new)]
    if failing[0] != failing[1]:
        texts.append(
            f"{format_count(failing[0])} requests failed on one side, {format_count(failing[1])} "
            "on the other"
        )
    return tuple(texts)


def _warnings(sides: tuple[list[Side], list[Side]]) -> tuple[str, ...]:
    """Differences between the sides, and among the runs of each."""
    base, new = sides[0][0], sides[1][0]
    runs = [data for side in sides for data in side]
    guessed = {data.run.unit_note for data in runs} - {None}
    texts = [f"of at least one side, {note}" for note in sorted(filter(None, guessed))]
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
    return tuple(texts)


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


def verdict(
    changes: Sequence[Change], margin: float = 0.05, *, noise_known: bool = True
) -> Verdict:
    """Return the verdict on all changes together."""
    if not noise_known:
        return "inconclusive"
    judged = [row for row in changes if not math.isnan(row.p_value)]
    same = [row for row in judged if -margin <= row.low and row.high <= margin]
    moved = [row for row in judged if row.significant and row not in same]
    worse, better = any(row.low > 0 for row in moved), any(row.high < 0 for row in moved)
    if worse or better:
        return "mixed" if worse and better else "worse" if worse else "better"
    return "same" if judged and len(same) == len(judged) else "inconclusive"


# ------------------------------------------------------------
# One run per side: how much each statistic changed.
#
# That shows how much two *runs* differ, not two systems: runs of the same system differ, too, and
# with a million requests any such difference is "significant". So intervals of single runs hold for
# their requests only, unless `run_noise` states by how much runs differ.

_MAXIMUM = (
    "the maximum grows with the number of requests and the length of a run: it is shown, not judged"
)


def compare_counts(
    base: Counted,
    new: Counted,
    percentiles: Sequence[float],
    means: Sequence[str] = ("mean",),
    *,
    confidence: float = 0.95,
    run_noise: float | None = None,
    corrected: bool = False,
    dependence: tuple[Dependence | None, ...] = (None, None),
    replicates: int = 1000,
    seed: int = 0,
) -> list[Change]:
    """Return the change of each statistic between two runs."""
    rng = np.random.default_rng(seed)
    sides = (
        _Side(base.occupied(), dependence[0], replicates, rng),
        _Side(new.occupied(), dependence[1], replicates, rng),
    )
    groups = [_percentiles(sides, percentiles, confidence)]
    if means:
        groups.append(_means(sides, means))
    gap = next((gap for gap in groups[0].gaps if gap is not None), None)
    if gap is not None:
        groups.append(_modes(sides, gap))
    noise = np.exp(rng.normal(0.0, math.sqrt(2) * (run_noise or 0.0), (replicates, 1)))
    rows = [row for group in groups for row in _rows(group, noise, confidence, corrected)]
    notes = [note for group in groups for note in group.notes or [""] * len(group.names)]
    judged = [k for k, row in enumerate(rows) if not math.isnan(row.p_value)]
    adjusted = np.full(len(rows), np.nan)
    adjusted[judged] = holm([rows[k].p_value for k in judged])
    return [row.judged(float(adjusted[k]), confidence, notes[k]) for k, row in enumerate(rows)]


@record(eq=False)
class _Group:
    """Statistics of one kind.

    `bounded` are masks per side of where the sample gives a lower and an upper bound.
    """

    names: list[str]
    points: Sequence[Floats]
    draws: Sequence[Draws]
    bounded: Sequence[tuple[Flags, Flags]]
    judged: Sequence[bool] = ()  # all, if empty
    notes: Sequence[str] = ()
    gaps: Sequence[Gap | None] = ()


@record(eq=False)
class _Side:
    """One run: its counts, the dependence between its requests, and replicates of statistics.

    Methods return replicates with masks of where there is a lower and an upper bound.
    """

    counted: Counted
    dependence: Dependence | None
    replicates: int
    rng: np.random.Generator

    def percentiles(self, p: Floats, supported: Flags) -> tuple[Draws, tuple[Flags, Flags]]:
        draws = draw_percentiles(self.counted, p, self.replicates, self.rng, self.dependence)
        if self.dependence is None:
            return draws, (np.ones(p.size, np.bool_), supported)
        known = self.dependence.resolved(p)
        return draws, (known, known & supported & (self.dependence.events(p) >= LEAST_EVENTS))

    def means(
        self, ranks: Sequence[tuple[float, float]], values: tuple[Floats, Floats]
    ) -> tuple[Draws, tuple[Flags, Flags]]:
        if self.dependence is None:
            drawn = draw_means(self.counted, list(ranks), self.replicates, self.rng)
            return drawn, _both_ends(len(ranks))
        shifts = np.stack([self.dependence.shifts(*pair, ENDS) for pair in ranks])
        return self._shifted(values, shifts)

    def share(self, cut: float) -> tuple[Draws, tuple[Flags, Flags]]:
        """The share of requests above a value."""
        total = self.counted.total
        share = _beyond(self.counted, cut).total / total
        if self.dependence is None:
            requests = total // self.counted.repeats
            drawn = self.rng.binomial(requests, share, (self.replicates, 1)) / requests
            return Draws(drawn, drawn), _both_ends(1)
        shifts = share * (self.dependence.factors(self.dependence.value > cut, ENDS) - 1)
        return self._shifted((np.array([share]), np.array([share])), shifts[None, :])

    def _shifted(
        self, values: tuple[Floats, Floats], shifts: Floats
    ) -> tuple[Draws, tuple[Flags, Flags]]:
        known, closed = ~np.isnan(shifts[:, 0]), np.isfinite(shifts[:, -1])
        return draw_shifts(values, shifts, self.replicates, self.rng), (known, known & closed)


def _both_ends(number: int) -> tuple[Flags, Flags]:
    return np.ones(number, np.bool_), np.ones(number, np.bool_)


def _percentiles(
    sides: tuple[_Side, _Side], percentiles: Sequence[float], confidence: float
) -> _Group:
    p = np.asarray(percentiles, np.float64)
    tables = [percentile_table(side.counted, p, confidence) for side in sides]
    draws, bounded = zip(
        *(side.percentiles(p, table.supported) for side, table in zip(sides, tables, strict=True)),
        strict=True,
    )
    gaps = [
        next((gap for side in sides if (gap := gap_at(side.counted, q)) is not None), None)
        for q in p.tolist()
    ]
    pairs = list(zip(p.tolist(), gaps, strict=True))
    return _Group(
        [f"p{format_percentile(q)}" for q in p.tolist()],
        [table.value for table in tables],
        draws,
        bounded,
        [q < 100 and gap is None for q, gap in pairs],
        [gap.words if gap else _MAXIMUM if q == 100 else "" for q, gap in pairs],
        gaps,
    )


def _means(sides: tuple[_Side, _Side], names: Sequence[str]) -> _Group:
    ranks, specs = [], ["TM(0%:100%)" if name == "mean" else name for name in names]
    for name, spec in zip(names, specs, strict=True):
        trim = parse_trim(spec)
        if trim.kind != "TM" or not trim.by_rank:
            raise InvalidArgumentError(
                f"{name!r} cannot be compared; compare percentiles, the mean, or trimmed means "
                "such as tm99"
            )
        ranks.append((float(trim.low), float(trim.high)))
    points, draws, bounded = [], [], []
    for side in sides:
        trims = [trimmed(side.counted, spec) for spec in specs]
        columns = ([getattr(trim, name) for trim in trims] for name in ("value", "low", "high"))
        point, low, high = (np.array(column) for column in columns)
        if "mean" in names and math.isfinite(side.counted.mean):
            k = names.index("mean")  # reported by the tool, and more exact than any bucket
            point[k] = low[k] = high[k] = side.counted.mean
        drawn, ends = side.means(ranks, (low, high))
        points.append(point)
        draws.append(drawn)
        bounded.append(ends)
    for side, drawn in zip(sides, draws, strict=True):
        counted = side.counted
        if side.dependence is None and "mean" in names and math.isfinite(counted.mean):
            # The standard deviation that the source reports, or the most that its buckets allow.
            deviation = counted.std
            if not math.isfinite(deviation):
                below, above = (
                    np.abs(counted.low - counted.mean),
                    np.abs(counted.high - counted.mean),
                )
                farthest = np.maximum(below, above)
                deviation = math.sqrt(float(np.average(farthest**2, weights=counted.counts)))
            error = deviation / math.sqrt(max(counted.count, 1))
            noise = side.rng.normal(0.0, error, side.replicates)
            k = names.index("mean")
            drawn.low[:, k] = drawn.high[:, k] = np.maximum(counted.mean + noise, counted.low[0])
    return _Group(list(names), points, draws, bounded)


def _modes(sides: tuple[_Side, _Side], gap: Gap) -> _Group:
    """Weight of the slow mode, and its median where both sides have one."""
    cut = math.sqrt(max(gap.below, 0.0) * gap.above) or gap.above / 2  # a clock may read zero
    slow = [_beyond(side.counted, cut) for side in sides]
    points = [
        np.array([part.total / side.counted.total]) for part, side in zip(slow, sides, strict=True)
    ]
    replicates, names = [side.share(cut) for side in sides], ["slow share"]
    if all(part.total for part in slow):
        names.append("slow median")
        for k, (side, part) in enumerate(zip(sides, slow, strict=True)):
            # The median of the slow mode, as a percentile of all.
            middle = np.array([100 - 50 * float(points[k][0])])
            if side.dependence is None:
                draws = draw_percentiles(part, [50], side.replicates, side.rng)
                bounded = _both_ends(1)
            else:
                draws, bounded = side.percentiles(middle, np.ones(1, np.bool_))
            share, ends = replicates[k]
            joined = Draws(np.c_[share.low, draws.low], np.c_[share.high, draws.high])
            replicates[k] = joined, (np.append(ends[0], bounded[0]), np.append(ends[1], bounded[1]))
            points[k] = np.append(points[k], percentile_table(part, [50]).value)
    draws_of, bounded_of = zip(*replicates, strict=True)
    return _Group(names, points, draws_of, bounded_of)


def _beyond(counted: Counted, cut: float) -> Counted:
    """The part of the counts above a value, with censored ones."""
    above = counted.high > cut
    return Counted(
        counted.low[above],
        counted.high[above],
        counted.counts[above],
        counted.middle[above],
        counted.censored,
        counted.limit,
    )


def _rows(group: _Group, noise: Floats, confidence: float, corrected: bool) -> list[Change]:
    """Point, interval and p-value of every change, ratios and differences alike."""
    base, new = group.draws
    before, after = group.points
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio_low = np.nan_to_num(new.low / base.high * noise, nan=0.0, posinf=np.inf)
        ratio_high = np.nan_to_num(new.high / base.low * noise, nan=np.inf, posinf=np.inf)
        change = after / before - 1
        step_low = np.nan_to_num(
            new.low * noise - base.high, nan=-np.inf, neginf=-np.inf, posinf=np.inf
        )
        step_high = np.nan_to_num(
            new.high * noise - base.low, nan=np.inf, neginf=-np.inf, posinf=np.inf
        )
    tail = (1 - confidence) / 2
    low, step = (
        np.quantile(part, tail, axis=0, method="inverted_cdf") for part in (ratio_low - 1, step_low)
    )
    high, stop = (
        np.quantile(part, 1 - tail, axis=0, method="inverted_cdf")
        for part in (ratio_high - 1, step_high)
    )
    (base_low, base_high), (new_low, new_high) = group.bounded
    left, right = (
        sure & np.array(not corrected) for sure in (base_high & new_low, base_low & new_high)
    )
    low, step = np.where(left, low, -1.0), np.where(left, step, -np.inf)
    high, stop = np.where(right, high, np.inf), np.where(right, stop, np.inf)
    slower, faster = ((part <= 0).sum(axis=0) + 1 for part in (ratio_low - 1, 1 - ratio_high))
    p_value = np.minimum(1.0, 2.0 * np.minimum(slower, faster) / (len(noise) + 1))
    p_value = np.where(np.where(slower < faster, left, right), p_value, 1.0)
    judged = np.array(group.judged or [True] * len(group.names)) & np.array(not corrected)
    p_value = np.where(judged, p_value, np.nan)
    columns = (before, after, change, low, high, after - before, step, stop, p_value)
    numbers: Any = np.stack(columns, axis=1).tolist()
    return [Change(name, *row) for name, row in zip(group.names, numbers, strict=True)]


# ------------------------------------------------------------
# Several runs per side: the samples are the runs, not their requests.
#
# Pooled requests of identical systems differ "significantly" in every second comparison, because
# runs vary. Here every run gives one number per statistic, and the two groups of numbers are
# compared by their ranks, which one run with a stall cannot distort.

_MOST_EXACT = 20_000  # relabellings; if there are more, a sample of them is drawn


@record()
class RunsComparison:
    """Groups of runs, compared; in `changes`, `base` and `new` are medians over the runs.

    `change` is the median of all ratios of a new run to a base run.
    """

    changes: list[Change]
    verdict: Verdict
    reasons: tuple[str, ...]


def least_p(base_runs: int, new_runs: int) -> float:
    """Return the smallest two-sided p-value that an exact test of that many runs can give."""
    return min(1.0, 2.0 / math.comb(base_runs + new_runs, base_runs))


def runs_needed(alpha: float = 0.05) -> int:
    """Return the number of runs per side from which a test at level `alpha` can reject."""
    return next(n for n in itertools.count(2) if least_p(n, n) <= alpha)


def compare_runs(
    base: ArrayLike,
    new: ArrayLike,
    statistics: Sequence[str],
    *,
    confidence: float = 0.95,
    margin: float = 0.05,
    seed: int = 0,
) -> RunsComparison:
    """Compare two groups of runs.

    The test is Mann and Whitney's rank sum over all ways to label the runs, so p-values are exact.
    Across statistics they are adjusted by stepping down through the same relabellings (Westfall and
    Young, 1993), which is Holm's procedure for correlated statistics such as the percentiles of one
    run. The interval of a ratio is Hodges and Lehmann's.
    """
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
    needed, alpha = runs_needed(1 - confidence), 1 - confidence
    enough = min(runs) >= needed
    if not enough:
        reasons.append(
            f"{runs[0]} and {runs[1]} runs cannot decide at the {100 * alpha:.2g} % level: the "
            f"smallest p-value they can give is {least_p(*runs):.2g}; measure at least {needed} "
            "runs per side"
        )
    judged = np.flatnonzero(complete & (np.array(statistics) != "p100"))
    p_values = np.full(len(statistics), np.nan)
    if judged.size and enough:
        p_values[judged] = _relabelled(pooled[:, judged], runs[0], seed)
    changes = [
        _change(name, sides[0][:, k], sides[1][:, k], confidence).judged(
            float(p_values[k]), confidence
        )
        for k, name in enumerate(statistics)
    ]
    return RunsComparison(changes, verdict(changes, margin, noise_known=enough), tuple(reasons))


def _relabelled(pooled: Floats, first: int, seed: int) -> Floats:
    """Adjusted p-value of each column, over all (or 20,000 drawn) choices of the first group."""
    rows = len(pooled)
    # Ranks of each column from 1; equal values share theirs.
    below = (pooled[:, None, :] > pooled[None, :, :]).sum(axis=1)
    level = (pooled[:, None, :] == pooled[None, :, :]).sum(axis=1)
    order = np.asarray(below + (level + 1) / 2)
    if math.comb(rows, first) <= _MOST_EXACT:
        chosen = np.array(list(itertools.combinations(range(rows), first)), np.int64)
    else:
        rng = np.random.default_rng(seed)
        drawn = np.argsort(rng.random((_MOST_EXACT - 1, rows)), axis=1)[:, :first]
        chosen = np.concatenate((np.arange(first)[None, :], drawn))
    sums = order[chosen].sum(axis=1)
    spread = np.maximum(sums.std(axis=0), 1e-12)
    away = np.abs(sums - first * (rows + 1) / 2) / spread
    measured = away[0]  # the first relabelling is the one that was measured
    down = np.argsort(-measured, kind="stable")
    rest = np.maximum.accumulate(away[:, down[::-1]], axis=1)[:, ::-1]
    out = np.empty(measured.size)
    out[down] = np.maximum.accumulate((rest >= measured[down] - 1e-9).mean(axis=0))
    return out


def rank_sum_null(first: int, second: int) -> Floats:
    """Return the null distribution of the Mann–Whitney statistic, 0 … first × second."""
    # U is a sum over the second group of how many of the first lie below: a Gaussian binomial.
    ways = np.zeros(first * second + 1)
    ways[0] = 1.0
    for k in range(1, second + 1):
        grown = ways.copy()
        grown[first + k :] -= ways[: grown.size - first - k] if first + k < grown.size else 0.0
        for start in range(k):
            grown[start::k] = np.cumsum(grown[start::k])
        ways = grown
    return np.asarray(ways / ways.sum())


def _change(name: str, base: Floats, new: Floats, confidence: float) -> Change:
    """Medians, and Hodges and Lehmann's interval of the ratio and of the difference."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.sort((new[:, None] / base[None, :]).ravel()) - 1
    steps = np.sort((new[:, None] - base[None, :]).ravel())
    null = np.cumsum(rank_sum_null(base.size, new.size))
    out = int(np.searchsorted(null, (1 - confidence) / 2 + 1e-12, "right"))
    low, high, step, stop = -1.0, math.inf, -math.inf, math.inf
    if out >= 1 and not np.isnan(steps).any():
        low, high, step, stop = (
            float(part[at]) for part in (ratios, steps) for at in (out - 1, -out)
        )
    before, after, ratio, middle = (float(np.median(part)) for part in (base, new, ratios, steps))
    return Change(name, before, after, ratio, low, high, middle, step, stop)


# ------------------------------------------------------------
# Percentiles that fall between two modes: there they jump, and no interval helps.
#
# If 1 % of the requests take a slow path, p99 lies on the boundary: 1.8 ms in one run, 44.6 ms in
# the next, and nothing has changed. What can be compared are the weight of the slow mode and where
# it lies.

_WIDE = 2.0  # a gap doubles the value
_FEWEST = 8  # requests beyond it: fewer are the loose end of any heavy tail
_MODES_NEAR = 1.5  # factor between the tail's share and the slow mode's weight


@record()
class Gap:
    """An empty stretch between two modes, at a percentile."""

    below: float  # end of the fast mode
    above: float  # start of the slow mode
    weight: float  # share (0..1) of requests in the slow mode,
    weight_low: float  # and its 95 % interval
    weight_high: float
    slow_median: float  # of the slow mode
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
    """Return the gap between two modes that a percentile falls into, or None.

    A gap is an empty stretch across which the value at least doubles, with at least eight requests
    on either side, wider than any within the slow mode; the percentile falls into it if the slow
    mode's weight is within the percentile's rank interval, or within half again of its tail.
    """
    if not 0 < percentile < 100 or not counted.count:
        return None
    occupied = counted.occupied()
    total, running = occupied.total, occupied.cumulative
    beyond = total - running[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        jump = occupied.low[1:] / occupied.high[:-1]
    share, tail = beyond / total, 1 - percentile / 100
    low, high = (int(end[0]) for end in rank_interval(total, [percentile]))
    brink = (running[:-1] >= low) & (running[:-1] <= high)
    brink |= (share <= tail * _MODES_NEAR) & (share >= tail / _MODES_NEAR)
    populated = (beyond >= _FEWEST) & (running[:-1] >= _FEWEST)
    candidates = np.flatnonzero(brink & (jump >= _WIDE) & populated)
    candidates = candidates[[bool((jump[k] > jump[k + 1 :]).all()) for k in candidates]]
    if not candidates.size:
        return None
    at = int(candidates[np.argmax(jump[candidates])])
    bounds = share_interval(int(beyond[at]), total)
    middle = int(np.searchsorted(running, running[at] + (occupied.count - running[at] + 1) // 2))
    return Gap(
        float(occupied.high[at]),
        float(occupied.low[at + 1]),
        float(share[at]),
        bounds[0],
        bounds[1],
        float(occupied.high[min(middle, running.size - 1)]),
        percentile,
    )


# ------------------------------------------------------------
# Entire distributions: the shift of every percentile, and P(new < base).


@record()
class Superiority:
    """P(new < base) + ½ P(equal), where ties are requests of overlapping buckets."""

    value: float
    low: float  # if all ties went against the new side,
    high: float  # or for it


def superiority(base: Counted, new: Counted) -> Superiority:
    """Return the probability that a request of `new` is faster than one of `base`."""

    def sure_wins(fast: Counted, slow: Counted) -> float:
        """Pairs in which a value of `fast` surely lies below one of `slow`."""
        running = np.concatenate(([0.0], np.cumsum(fast.counts.astype(np.float64))))
        # An upper edge equal to the next bucket's lower one belongs to the lower bucket, unless
        # the buckets have no width.
        touch = (slow.high > slow.low) & np.isfinite(slow.low)
        strictly = np.searchsorted(fast.high, slow.low, "left")
        below = np.where(touch, np.searchsorted(fast.high, slow.low, "right"), strictly)
        return float((running[below] * slow.counts).sum())

    old, current = (side.occupied().at_worst() for side in (base, new))
    pairs = float(old.cumulative[-1]) * float(current.cumulative[-1])
    faster, slower = sure_wins(current, old) / pairs, sure_wins(old, current) / pairs
    high = max(faster, 1 - slower)  # rounding must not invert the bounds
    return Superiority((faster + high) / 2, faster, high)


@record(eq=False)
class Shift:
    """The shift function: ratio of new to base at each percentile, with a simultaneous band."""

    percentile: Floats
    ratio: Floats
    low: Floats
    high: Floats


def shift(
    base: Counted,
    new: Counted,
    percentiles: ArrayLike,
    *,
    confidence: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> Shift:
    """Return the ratio of each percentile, with a simultaneous band.

    The band is as many standard errors wide, on a logarithmic scale, as the largest deviation of a
    replicate from the point has in `confidence` of the replicates (max-t bootstrap), joined with
    the buckets. Percentiles that either sample does not support are left out.
    """
    tables = [percentile_table(side, percentiles, confidence) for side in (base, new)]
    usable = tables[0].supported & tables[1].supported
    usable &= (tables[0].bucket_low > 0) & (tables[1].bucket_low > 0)
    p = tables[0].percentile[usable]
    rng = np.random.default_rng(seed)
    draws = [draw_percentiles(side, p, replicates, rng) for side in (base, new)]
    logs = [
        np.log(np.maximum((d.low + np.where(np.isinf(d.high), d.low, d.high)) / 2, 1e-300))
        for d in draws
    ]
    spread = logs[1] - logs[0]
    error = np.maximum(spread.std(axis=0), 1e-12)
    farthest = (np.abs(spread - spread.mean(axis=0)) / error).max(axis=1, initial=0.0)
    reach = float(np.quantile(farthest, confidence)) if p.size else 0.0
    ratio = tables[1].value[usable] / tables[0].value[usable]
    least = tables[1].bucket_low[usable] / tables[0].bucket_high[usable]
    most = tables[1].bucket_high[usable] / tables[0].bucket_low[usable]
    return Shift(p, ratio, least * np.exp(-reach * error), most * np.exp(reach * error))
