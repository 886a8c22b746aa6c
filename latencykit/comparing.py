"""Two systems side by side: what changed, how sure that is, and whether they may be compared at all."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latencykit.errors import MixedInputsError, NotHeldError, UsageError
from latencykit.histogram import Histogram, histogram_of, statistic_of
from latencykit.stats.comparable import differences, unit_doubts
from latencykit.stats.compare import compare_counts
from latencykit.stats.conditions import Condition, parse_condition
from latencykit.stats.percentiles import is_resolved
from latencykit.stats.runs import compare_runs
from latencykit.stats.shift import superiority
from latencykit.stats.verdict import Change, Verdict, verdict
from latencykit.summary import Summary
from latencykit.units import NANOSECONDS, format_percentile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    Side = Histogram | Summary

__all__ = ["Comparison", "compare"]

_PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
_MEANS = ("mean", "tm99")
_PRINTED = 12
"""Percentiles that somebody chose to print; more are the rows of a spectrum."""


@dataclass(frozen=True)
class Comparison:
    """What changed from one side to the other.

    Attributes
    ----------
    changes : tuple of Change
        One a statistic: percentiles first, then means, then what stands for a percentile between two modes.
    basis : {"requests", "runs"}
        What the intervals hold for: the requests of one run a side, or the runs of several.
    verdict : {"same", "better", "worse", "mixed", "inconclusive"}
    reasons : tuple of str
        What kept the comparison from deciding, or parts of it.
    warnings : tuple of str
        What differs between the two measurements besides the system.
    faster : float
        Chance (0..1) that a request of the new side is faster than one of the base; NaN for several runs.
    unit : str
        Unit of the values.
    runs : tuple of two ints
        Runs a side.
    run_noise : float or None
        By how much runs were said to differ; single runs only.
    faster_between : tuple of two floats
        What `faster` is at least and at most, given the buckets.
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
        """One row a statistic: base, new, relative change with its interval, difference with its interval, significance."""
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.changes]).set_index("statistic")

    def failed(self, conditions: Iterable[str | Condition]) -> list[str]:
        """Return the conditions (``"p99.9 > +5%"``) that are surely met, decided on the ends of the intervals.

        Raises
        ------
        UsageError
            For a condition that cannot be read, or on a statistic that was not compared.
        """
        parsed = [one if isinstance(one, Condition) else parse_condition(one) for one in conditions]
        held = {row.statistic: row for row in self.changes}
        unknown = [one for one in parsed if one.statistic not in held]
        if unknown:
            raise UsageError(
                f"{unknown[0].text!r} judges {unknown[0].statistic}, which was not compared; these were: {', '.join(held)}"
            )
        return [one.text for one in parsed if one.holds(held[one.statistic], self.unit)]

    def __repr__(self) -> str:
        return f"Comparison({self.verdict}, by {self.basis}, {len(self.changes)} statistics)"


def compare(
    base: Any, new: Any, *, percentiles: Sequence[float] | None = None, means: Sequence[str] = _MEANS, confidence: float = 0.95,
    run_noise: float | None = None, margin: float = 0.05, also: Sequence[str] = (), replicates: int = 1000, seed: int = 0,
) -> Comparison:  # fmt: skip
    """Compare two runs, or several runs a side.

    Parameters
    ----------
    base, new : rung, or sequence or mapping of rungs
        Several a side are runs of one system each.
    percentiles : sequence of float, optional
        By default those that every sample supports, and the maximum.
    means : sequence of str
        ``"mean"`` and trimmed means between ranks (``"tm99"``, ``"TM(:99%)"``).
    confidence : float, default 0.95
    run_noise : float, optional
        Relative standard deviation of a statistic from run to run (0.03 for 3 %). One run a side says nothing of two
        systems without it.
    margin : float, default 0.05
        Changes that surely lie within ± `margin` are called the same.
    also : sequence of str
        Further statistics, supported or not, by name (``"p99.99"``, ``"tm95"``): those that conditions judge.
    replicates, seed : int
        Of the bootstrap.

    Returns
    -------
    Comparison

    Raises
    ------
    MixedInputsError
        Where bare numbers stand on one side and times on the other.
    UsageError
        For an empty side.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> a, b = (Histogram.of(rng.normal(mean, 1e5, 5000)) for mean in (10e6, 11e6))
    >>> found = compare(a, b)
    >>> found.basis, found.verdict, round(float(found.table.change["p50"]), 2)
    ('requests', 'inconclusive', 0.1)
    >>> compare(a, b, run_noise=0.01).verdict
    'worse'
    """
    if not 0 < confidence < 1 or (run_noise is not None and not 0 <= run_noise < 1) or not margin >= 0:
        raise UsageError("a confidence lies between 0 and 1, the noise of runs from 0 to below 1, and a margin is 0 or more")
    given = _listed(base, "base"), _listed(new, "new")
    evidence: list[Any] = [_evidence(side[0]) for side in given] if len(given[0]) == len(given[1]) == 1 else [None, None]
    if None in evidence:
        sides = [_held(one) for one in given[0]], [_held(one) for one in given[1]]
    else:
        sides = [histogram_of(evidence[0].whole, "a comparison")], [histogram_of(evidence[1].whole, "a comparison")]
    units = {rung.unit for side in sides for rung in side}
    if len(units) > 1:
        raise MixedInputsError(
            f"values in {' and '.join(sorted(units))} cannot be compared; name the unit of the former with unit= (--unit)"
        )
    if max(len(side) for side in sides) > 1:
        found = _of_runs(sides, _statistics(sides, percentiles, means, also, confidence), confidence, margin)
    elif any(isinstance(rung, Summary) for side in sides for rung in side):
        found = _of_summaries(sides, _statistics(sides, percentiles, means, also, confidence))
    else:
        (one,), (two,) = sides
        wanted = _default(one, two, confidence) if percentiles is None else list(percentiles)
        wanted += [p for name in also if name[0] == "p" and (p := float(name[1:])) not in wanted]
        named = dict.fromkeys([*means, *(name for name in also if name[0] != "p")])
        dependence = tuple(side.dependence for side in evidence)
        found = _of_requests(one, two, dependence, sorted(wanted), list(named), confidence, run_noise, margin, replicates, seed)
    runs = len(sides[0]), len(sides[1])
    return replace(found, warnings=_warnings(sides), unit=units.pop(), runs=runs)


def _listed(given: Any, name: str) -> list[Any]:
    rungs = [given] if hasattr(given, "run") else list(given.values()) if hasattr(given, "values") else list(given)
    if not rungs:
        raise UsageError(f"the {name} side is empty; name at least one run")
    return rungs


def _held(rung: Any) -> Side:
    if isinstance(rung, Summary):
        return rung.to_unit("ns") if rung.unit in NANOSECONDS else rung
    return histogram_of(rung, "a comparison")


def _evidence(rung: Any) -> Any:
    """How far the numbers of a single run can be trusted; None for a Summary, and for what is no measurement."""
    if isinstance(rung, Summary) or not hasattr(rung, "evidence"):
        return None
    return (rung.to_unit("ns") if getattr(rung, "unit", None) in NANOSECONDS else rung).evidence()


def _default(one: Any, two: Any, confidence: float) -> list[float]:
    """The usual percentiles that both samples support and both sources pin down, those that both printed, and the maximum."""
    top = min(side.sample_limit(confidence) for side in (one, two))
    printed = {p for p in one.printed[0] if p in two.printed[0] and 0 < p < 100}
    wanted = sorted(p for p in {*_PERCENTILES, *(printed if len(printed) <= _PRINTED else ())} if p <= top)
    rows = zip(*(side.percentile_rows(wanted, confidence) for side in (one, two)), strict=True)
    known = [a.percentile for a, b in rows if a.resolved and b.resolved]
    return [*(known or wanted), 100.0]


def _statistics(
    sides: tuple[list[Side], list[Side]], percentiles: Sequence[float] | None, means: Sequence[str], also: Sequence[str],
    confidence: float,
) -> list[str]:  # fmt: skip
    """Names of what to compare; by default what every run holds and supports."""
    every = [rung for side in sides for rung in side]
    asked = [*(f"p{format_percentile(p)}" for p in (percentiles or ())), *also]
    wanted = [] if percentiles is not None else [f"p{format_percentile(p)}" for p in _printed(every)]
    held = [
        name for name in (*wanted, "p100", *means) if not any(math.isnan(statistic_of(rung, name, confidence)) for rung in every)
    ]
    found = list(dict.fromkeys([*asked, *held]))
    if not found:
        raise NotHeldError("the two sides hold no statistic in common; read outputs that keep the samples or a histogram")
    return sorted(found, key=lambda name: (name[0] != "p", float(name[1:]) if name[0] == "p" else 0))


def _printed(rungs: Sequence[Side]) -> list[float]:
    """The usual percentiles, and others that a summary holds."""
    return sorted({*_PERCENTILES, *(p for rung in rungs if isinstance(rung, Summary) for p in rung.percentiles if 0 < p < 100)})


def _of_runs(sides: tuple[list[Side], list[Side]], names: list[str], confidence: float, margin: float) -> Comparison:
    tables = [[[statistic_of(rung, name, confidence) for name in names] for rung in side] for side in sides]
    found = compare_runs(tables[0], tables[1], names, confidence=confidence, margin=margin)
    return Comparison(tuple(found.changes), "runs", found.verdict, found.reasons)


def _of_summaries(sides: tuple[list[Side], list[Side]], names: list[str]) -> Comparison:
    """Printed numbers have no intervals."""
    rows = []
    for name in names:
        base, new = (statistic_of(side[0], name) for side in sides)
        change = new / base - 1 if base else math.nan
        rows.append(Change.of(name, [base, new, change, -1.0, math.inf, new - base, -math.inf, math.inf, math.nan]))
    why = "printed numbers have no intervals: compare outputs that keep the samples or a histogram, or several runs a side"
    return Comparison(tuple(rows), "requests", "inconclusive", (why,))


def _of_requests(
    base: Any, new: Any, dependence: Any, percentiles: list[float], means: list[str], confidence: float, run_noise: float | None,
    margin: float, replicates: int, seed: int,
) -> Comparison:  # fmt: skip
    corrected = any(side.run.corrected in ("us", "tool") for side in (base, new))
    options: dict[str, Any] = {"run_noise": run_noise, "corrected": corrected, "replicates": replicates, "seed": seed}
    options["dependence"] = dependence
    rows = compare_counts(base.counted, new.counted, percentiles, means, confidence=confidence, **options)
    rows = [row if row.statistic.startswith("slow") else row.between(*(_known(s, row) for s in (base, new))) for row in rows]
    reasons = []
    if run_noise is None:
        reasons.append(
            "one run a side cannot tell a change of the system from how runs differ: the intervals hold for these requests "
            "only; measure several runs a side, or say what runs differ by with run_noise (--run-noise 3%)"
        )
    if corrected:
        reasons.append("counts that were filled up for coordinated omission have no intervals: changes are shown, not judged")
    reasons += list(dict.fromkeys(row.note for row in rows if row.note and row.statistic != "p100"))
    said = verdict(rows, margin, noise_known=run_noise is not None and not corrected)
    better = superiority(base.counted, new.counted)
    ends = better.low, better.high
    return Comparison(
        tuple(rows), "requests", said, tuple(reasons), faster=better.value, run_noise=run_noise, faster_between=ends
    )


def _known(side: Histogram, row: Change) -> tuple[float, float, float]:
    """The value of a statistic as the source states it, else as its buckets have it, and the edges that it lies between."""
    if row.percentile is not None:
        (found,) = side.percentile_rows([row.percentile])
        return found.value, found.bucket_low, found.bucket_high
    if row.statistic == "mean":
        low, high = side.bracket("mean")
        return side.mean if is_resolved(low, high) or side.censored else high, low, high
    trim = side.trimmed(row.statistic)
    return trim.value, trim.low, trim.high


def _warnings(sides: tuple[list[Side], list[Side]]) -> tuple[str, ...]:
    """What differs between the sides, and among the runs of each."""
    one, two = sides[0][0], sides[1][0]
    every = [rung for side in sides for rung in side]
    guessed = {rung.run.unit_note for rung in every} - {None}
    found = [f"of at least one side, {note}" for note in sorted(filter(None, guessed))]
    if guessed:
        found += unit_doubts([rung.run for rung in every], [_middle(rung) for rung in every])
    found += differences(one.run, two.run, one.count, two.count)
    for name, side in zip(("base", "new"), sides, strict=True):
        among = (text for rung in side[1:] for text in differences(side[0].run, rung.run, side[0].count, rung.count))
        found += [f"among the {name} runs, {text}" for text in list(dict.fromkeys(among))[:3]]
        copies = _copies(side)
        if copies:
            found.append(
                f"{copies} of the {len(side)} {name} runs repeat another's very numbers: copies say nothing of how runs differ"
            )
    if len(sides[0]) == len(sides[1]) == 1 and _alike(one, two):
        found.append("both sides hold the very same numbers")
    return tuple(found)


def _middle(rung: Side) -> float:
    """The median, or the mean where that is all that is known, in ns where values have a unit."""
    factor = NANOSECONDS.get(rung.unit, 1.0)
    known = (statistic_of(rung, name) for name in ("p50", "mean"))
    return factor * next((value for value in known if not math.isnan(value)), math.nan)


def _copies(side: list[Side]) -> int:
    """How many runs of a side equal an earlier one; printed numbers may well do so by chance."""
    earlier: dict[bytes, Side] = {}
    held = [rung for rung in side if not isinstance(rung, Summary) and rung.count]
    return sum(_alike(earlier.setdefault(rung.index.tobytes() + rung.counts.tobytes(), rung), rung) for rung in held) - len(
        earlier
    )


def _alike(one: Side, two: Side) -> bool:
    if isinstance(one, Summary) or isinstance(two, Summary):
        return one == two
    return one.buckets == two.buckets and np.array_equal(one.index, two.index) and np.array_equal(one.counts, two.counts)
