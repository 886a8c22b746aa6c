"""Trimmed statistics in the notations ``tm99.9``, ``TM(5%:95%)``, ``TM(150ms:1s)`` and others.

"tm99" has three meanings. Here ``tm99`` excludes 1 % at *each* end, as in the literature and in
perf-gauge's manual; Amazon CloudWatch's tm99 excludes the top 1 % only and is written ``TM(:99%)``,
CloudWatch's other notation for it; perf-gauge's program trims by value, not by rank, and its
figures are quoted, never recomputed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from latencykit import units
from latencykit._records import record
from latencykit._typing import AnyArray, Floats
from latencykit.core.quantiles import Counted, is_resolved, nonzero
from latencykit.errors import InvalidArgumentError

_LONGEST = 80  # characters
_SHORT = re.compile(r"\s*(tm|wm)\s*(\d+(?:\.\d+)?)\s*%?\s*", re.IGNORECASE)
_RANGE = re.compile(r"\s*(tm|wm)\s*\(\s*([^:()]*?)\s*:\s*([^:()]*?)\s*\)\s*", re.IGNORECASE)
_DECIMAL = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_WHAT = {"TM": "mean", "WM": "winsorized mean"}


@record()
class Trim:
    """The values that a trimmed mean keeps."""

    kind: str  # TM: trimmed mean, WM: winsorized mean
    low: Fraction | float  # exclusive: a share of the ranks as a fraction, or a value
    high: Fraction | float  # inclusive
    text: str  # as it was written

    @property
    def by_rank(self) -> bool:
        """True if the bounds are shares of the ranks, not values."""
        return isinstance(self.high, Fraction)

    @lru_cache(maxsize=64)  # noqa: B019 - as long-lived as `parse_trim`'s
    def definition(self, unit: str = "ns") -> str:
        """Return the full specification and its meaning; values are shown in their `unit`."""
        low, high = self.low, self.high
        if isinstance(low, Fraction) and isinstance(high, Fraction):
            bounds = [f"{_percent(low)}%" if low else "", f"{_percent(high)}%" if high < 1 else ""]
            ends = [f"the lowest {_percent(low)} %"] if low else []
            ends += [f"the highest {_percent(1 - high)} %"] if high < 1 else []
            verb = "with {} pulled in to the rest" if self.kind == "WM" else "without {}"
            rest = verb.format(" and ".join(ends)) if ends else "of all"
        else:
            bounds = [
                "" if math.isinf(v) else units.format_value(float(v), unit) for v in (low, high)
            ]
            ends = [f"above {bounds[0]}"] if bounds[0] else []
            ends += [f"up to {bounds[1]}"] if bounds[1] else []
            rest = ("clipped " if self.kind == "WM" else "of values ") + " and ".join(ends)
        return f"{self.kind}({bounds[0]}:{bounds[1]}): {_WHAT[self.kind]} {rest}"


@lru_cache(maxsize=64)  # the same few for every series
def parse_trim(spec: str, unit: str = "ns") -> Trim:
    """Return the bounds of a specification such as ``tm99.9``."""
    if len(spec) > _LONGEST:
        raise InvalidArgumentError(
            f"{spec[:20]!r}… is not a valid trimmed statistic; "
            "write tm99.9, TM(:99%) or TM(150ms:1s)"
        )
    if spec.strip().upper() == "IQM":
        return Trim("TM", Fraction(1, 4), Fraction(3, 4), spec.strip())
    if short := _SHORT.fullmatch(spec):
        high = Fraction(short[2]) / 100
        if not Fraction(1, 2) < high <= 1:
            raise InvalidArgumentError(
                f"{spec!r} would leave nothing: {short[1]}P excludes 100 - P percent at each end, "
                "so P is above 50"
            )
        return Trim(short[1].upper(), 1 - high, high, spec.strip())
    if not (span := _RANGE.fullmatch(spec)):
        raise InvalidArgumentError(
            f"{spec!r} is not a valid trimmed mean; write tm99.9, TM(5%:95%), TM(:99%), "
            "TM(150ms:1s), wm98 or IQM"
        )
    spec = spec.strip()
    ranks = {text.endswith("%") for text in (span[2], span[3]) if text}
    if not ranks:
        raise InvalidArgumentError(
            f"{spec!r} names no bound; write for example TM(:99%) or TM(150ms:1s)"
        )
    if len(ranks) > 1:
        raise InvalidArgumentError(
            f"{spec!r} mixes a percentile and a value; both bounds must be of one kind"
        )
    bounds: list[Fraction | float] = [Fraction(0), Fraction(1)]
    bounds = bounds if True in ranks else [-math.inf, math.inf]
    for k, text in enumerate((span[2], span[3])):
        number = text.removesuffix("%").strip()
        if not text:
            continue
        if True in ranks:
            if not _DECIMAL.fullmatch(number):  # an exponent could ask for a billion digits
                raise InvalidArgumentError(
                    f"{text!r} in {spec!r} is not a valid percentile; write for example TM(5%:95%)"
                )
            bounds[k] = Fraction(number) / 100
        elif unit in units.NANOSECONDS:
            bounds[k] = units.parse_duration(text, unit) / units.NANOSECONDS[unit]
        else:
            try:
                bounds[k] = float(text)
            except ValueError:
                raise InvalidArgumentError(
                    f"{text!r} is not a plain number, but the values have no unit"
                ) from None
    first, last = bounds
    if not (first < last and (True not in ranks or 0 <= first < last <= 1)):
        rule = "the first bound must be below the second"
        rule = "percentiles ascend from 0% to 100%" if True in ranks else rule
        raise InvalidArgumentError(f"{spec!r} keeps nothing; {rule}")
    return Trim(span[1].upper(), first, last, spec)


def _percent(share: Fraction) -> str:
    return units.format_percentile(float(share * 100))


def statistic_name(text: str) -> str:
    """Return the usual name of a statistic: ``p99.9``, ``mean``, or a trimmed mean as written."""
    word = text.strip().lower()
    if word in ("mean", "avg", "average"):
        return "mean"
    if word in ("max", "maximum", "worst"):
        return "p100"
    if word in ("median", "med"):
        return "p50"
    if word[:1] in "tw" or word == "iqm":
        parse_trim(text)
        return text.strip()
    percentile = units.parse_percentile(text)
    if 0 < percentile < 1:
        meant = units.format_percentile(float(f"{100 * percentile:.12g}"))
        raise InvalidArgumentError(
            f"p{units.format_percentile(percentile)} lies below the first percent: "
            f"was p{meant} meant? Write {meant}"
        )
    return f"p{units.format_percentile(percentile)}"


# ------------------------------------------------------------
# Means from counts: tm, wm and IQM, with partial bucket weights.


@record()
class Trimmed:
    """One trimmed statistic, with its meaning and what it excludes."""

    # From the middle of each bucket, if that is known within a tenth; else the upper bound (or,
    # without one, the lower), so that it never looks better than it was. NaN if nothing is left.
    value: float
    low: float  # bounds, given the edges of the buckets and censored values
    high: float
    definition: str  # the statistic in unambiguous notation, and in words
    leaves_out: str  # "2 × 7 requests, up to 6 s"
    below: float  # requests excluded (winsorized: replaced) at either end, fractions included
    above: float
    worst: float  # highest value excluded above, infinite if unknown; NaN if none is

    @cached_property
    def resolved(self) -> bool:
        """True if the bounds are within a tenth of each other; else the statistic is a range."""
        return bool(is_resolved(self.low, self.high))


def trimmed(counted: Counted, spec: str | Trim, unit: str = "ns") -> Trimmed:
    """Return a trimmed statistic of counted values."""
    # Bounds in ranks split buckets: the fitting part of a bucket counts, so that trimming a whole
    # number of values from each end equals `scipy.stats.trim_mean`. Bounds in values take the
    # buckets that lie completely within; `low` and `high` allow for the others. Censored values
    # count as their limit in `value` and `low`, and as anything above in `high`.
    trim = parse_trim(spec, unit) if isinstance(spec, str) else spec
    full = counted.nonzero()
    best = full.at_best()
    if trim.by_rank:
        statistic, below_it, above_it = _between_ranks(best, trim)
        low, value, high = map(statistic, (best.low, best.middle, best.high))
        if (best.low[1:] < best.low[:-1]).any():  # buckets overlap
            ordered = best.by_low()
            low = _between_ranks(ordered, trim)[0](ordered.low)
        if full.censored:
            worst = full.at_worst()
            high = _between_ranks(worst, trim)[0](worst.high)
    else:
        # Buckets that lie completely between the values count, and in the bounds those that reach
        # out of the range on that side. Of a winsorized mean all count, pulled in to the range.
        counts, first, last = best.counts, float(trim.low), float(trim.high)
        over = (best.low > first) | ((best.high > best.low) & (best.low >= first))
        inside, under = over & (best.high <= last), best.high <= first
        maybe = ~inside & ~under & (best.low <= last)

        def mean(values: Floats, kept: NDArray[np.bool_]) -> float:
            if trim.kind == "WM":
                return float((np.clip(values, first, last) * counts).sum()) / best.count
            number = float(counts[kept].sum())
            return float((values[kept] * counts[kept]).sum()) / number if number else math.nan

        low = mean(np.maximum(best.low, first), inside | (maybe & (best.low < first)))
        value = mean(best.middle, inside)
        high = mean(np.minimum(best.high, last), inside | (maybe & (best.high > last)))
        below_it, above_it = np.where(under, counts, 0), np.where(inside | under, 0, counts)
    if not is_resolved(low, high) and not math.isnan(value):
        value = low if math.isinf(high) else high
    out = nonzero(above_it)
    top = float(best.high[out[-1]]) if out.size else math.nan
    below, above = float(below_it.sum()), float(above_it.sum())
    some = f"up to {units.format_value(top, unit)}"
    if math.isinf(top):
        some = "≥ " + units.format_value(full.limit, unit)
    excluded = f"{_requests(above)}, {some}"
    if not above:
        excluded = f"{_requests(below)} below" if below else "nothing"
    elif math.isclose(below, above):
        excluded = f"2 × {excluded}"
    elif below:
        excluded = f"{_requests(below)} below and {_requests(above)} above, {some}"
    return Trimmed(value, low, high, trim.definition(unit), excluded, below, above, top)


def _between_ranks(
    counted: Counted, trim: Trim
) -> tuple[Callable[[Floats], float], AnyArray, AnyArray]:
    """The statistic of any values of the buckets, and what each has below and above the ranks."""
    first, last = float(trim.low * counted.count), float(trim.high * counted.count)
    after = counted.cumulative.astype(np.float64)
    before = after - counted.counts
    part = np.maximum(np.minimum(after, last) - np.maximum(before, first), 0.0)
    below = np.maximum(np.minimum(after, first) - before, 0.0)
    above = np.maximum(after - np.maximum(before, last), 0.0)
    kept, count = nonzero(part), float(part.sum())
    weights, low, high = part[kept], float(below.sum()), float(above.sum())

    def statistic(values: Floats) -> float:
        total = float((values[kept] * weights).sum())
        if trim.kind == "TM":
            return total / count
        ends = (low * values[kept[0]] if low else 0.0) + (high * values[kept[-1]] if high else 0.0)
        return (total + float(ends)) / (count + low + high)

    return statistic, below, above


def _requests(count: float) -> str:
    shown = units.format_count(count) if count > 0.5 or not count else "< 1"
    return f"{shown} request" + ("" if shown in ("1", "< 1") else "s")


def ranks_of_mean(name: str) -> tuple[float, float] | None:
    """Return the range of ranks (as shares) of a mean, or None if it is not trimmed by rank."""
    trim = parse_trim("TM(0%:100%)" if name == "mean" else name)
    return (float(trim.low), float(trim.high)) if trim.by_rank else None
