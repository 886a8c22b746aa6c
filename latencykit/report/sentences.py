"""What a page says in whole sentences: the finding of each series, and how far it can be trusted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.distribution import Distribution
from latencykit.histogram import Histogram
from latencykit.keynumbers import statistic_text
from latencykit.report.slots import DIGITS
from latencykit.samples import Samples
from latencykit.stats.percentiles import is_resolved
from latencykit.summary import Summary
from latencykit.units import format_count, format_duration, format_percentile, format_value, sure_percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from latencykit.report.slots import Slots

__all__ = ["headline", "resolution", "trust"]

_RARE = ((99.9, "one in a thousand"), (99.0, "one in a hundred"), (90.0, "one in ten"))
_NEAR, _NONE, _FEW = 0.3, 0.005, 0.1
"""Requests within 30 % of the mean are what it describes; fewer than these shares are none and hardly any."""


def headline(rung: Any, limit: float | None = None) -> str:
    """Return what happened, in one sentence that anybody understands.

    Parameters
    ----------
    rung : Histogram, Summary or Distribution
    limit : float, optional
        The highest percentile that the measurement supports; by default that of so many independent requests.

    Examples
    --------
    >>> headline(Histogram.of(np.r_[np.full(5000, 300_000), np.full(10, 1_800_000_000)]))
    'Half of the 5,010 requests took 300 µs or less, one in a thousand over 1.8 s, the worst 1.8 s; the mean, 3.89 ms, describes none of them.'
    """  # noqa: E501 - the sentence is one line
    if isinstance(rung, Summary):
        return _of_summary(rung)
    if isinstance(rung, Histogram) and not rung.count:
        return f"No request was answered; {format_count(rung.censored)} timed out." if rung.censored else "Nothing was counted."

    def show(value: float) -> str:
        return format_value(value, rung.unit)

    half = float(rung.percentile(50))  # "or less": true of an upper bound, too
    if isinstance(rung, Distribution):
        return f"Half of the users wait {show(half)} or less, one in a hundred over {show(float(rung.percentile(99)))}."
    if rung.index.size == 1 and not rung.censored and is_resolved(rung.min, rung.max):
        return f"All {format_count(rung.requests)} requests took {show(rung.max)}."
    highest = rung.sample_limit() if limit is None else limit
    rows = [row for row in rung.percentile_rows([p for p, _ in _RARE]) if row.supported or math.isinf(row.bucket_high)]
    rare = next((row for row in rows if row.percentile <= highest), None)
    parts = [_half(rung, show)]
    if rare is not None:
        over = "at least" if math.isinf(rare.bucket_high) else "over"
        parts.append(f"{dict(_RARE)[rare.percentile]} {over} {show(rare.value if rare.resolved else rare.bucket_low)}")
    parts.append(f"the worst {statistic_text(rung, 'max')}")
    late = max(rung.censored - (rung.requests - rung.count), 0)
    if late:
        parts.append(f"and {format_count(late)} gave no answer within {show(rung.censored_at)}")
    return f"{', '.join(parts)}; {_mean(rung)}."


def _half(rung: Histogram, show: Callable[[float], str]) -> str:
    row = rung.percentile_rows([50.0])[0]
    took = f"at least {show(row.value)}" if not np.isfinite(row.bucket_high) else f"{show(row.value)} or less"
    return f"Half of the {format_count(rung.requests)} requests took {took}"


def _mean(histogram: Histogram) -> str:
    """What the mean is worth: how many requests may have taken about as long."""
    text = statistic_text(histogram, "mean")
    if not is_resolved(*histogram.bracket("mean")):
        return f"the mean is {text}"
    mean, low, high = histogram.mean, histogram.counted.low, histogram.counted.high
    near = (low <= (1 + _NEAR) * mean) & (high >= (1 - _NEAR) * mean)
    share = float(histogram.counts[near].sum()) / histogram.count
    if share < _FEW:
        return f"the mean, {text}, describes {'none' if share < _NONE else 'hardly any'} of them"
    return f"the mean is {text}"


def _of_summary(summary: Summary) -> str:
    held = [f"{name} {format_value(value, summary.unit)}" for name, value in summary.stats.items()]
    held += [f"p{format_percentile(p)} {format_value(value, summary.unit)}" for p, value in sorted(summary.percentiles.items())]
    whose = "" if summary.count is None else f" of {format_count(summary.count)} requests"
    return f"The source reports {', '.join(held) or 'no statistic'}{whose}; the rest of the distribution is not in it."


def resolution(slots: Slots, rung: Any) -> str:
    """Return how coarse the page is: for people who compare its numbers with those of the file."""
    wide = 100.0 / (1 << int(np.ceil(np.log2(2 * 10**DIGITS))) - 1)
    close = "counts, maxima and percentiles are those of the file"
    if slots.rough is None and np.any(slots.high > slots.low * (1 + 0.1 / 10**DIGITS)):
        close = f"counts and maxima are exact, percentiles of a selection lie at most {wide:.1g} % above those of the file"
    if isinstance(rung, Samples):
        return f"Requests are counted into time bins of {_long(slots.width or 0.0)} by the moment they were sent: {close}."
    if slots.width is None:
        return f"Each time bin is one interval of the file: {close}."
    return (
        f"Each time bin sums up the intervals that start within {_long(slots.width)}, {format_count(len(rung))} in all: {close}."
    )


def _long(seconds: float) -> str:
    size, name = next((part for part in ((86400, "d"), (3600, "h"), (60, "min")) if seconds >= part[0]), (1, ""))
    return f"{seconds / size:.3g} {name}" if name else format_duration(seconds * 1e9)


def trust(rung: Any, record: Mapping[str, Any]) -> list[str]:
    """Return what a reader of the numbers has to know, one sentence each; `record` is what ``summary`` prints of it."""
    run, said = rung.run, []
    limit = record["highest_supported_percentile"]
    if isinstance(rung, Histogram) and rung.count and limit:
        highest = f"p{format_percentile(sure_percentile(limit))}"
        said.append(f"Highest supported percentile of {format_count(rung.requests)} requests: {highest}. Others are in brackets.")
    if record["rests_on"]:
        said.append(f"{record['rests_on'][:1].upper()}{record['rests_on'][1:]}.")
    if isinstance(rung, Distribution):
        said.append("A model, not a measurement: it has no confidence intervals.")
    if run.unit_note is not None and run.unit_note not in run.notes:
        said.append(f"{run.unit_note[:1].upper()}{run.unit_note[1:]}.")
    if run.corrected == "unknown" and run.loop in ("closed", "paced"):
        said.append("A closed loop waits for each reply before it sends the next request: during a stall it measures nothing.")
    if run.corrected in ("us", "tool"):
        said.append("Corrected for coordinated omission: added values follow from those measured, so no confidence is claimed.")
    others = {"failed": run.failed, "timed out": run.timeouts, "dropped": run.dropped, "unfinished": run.unfinished}
    if any(others.values()):
        words = ", ".join(f"{format_count(number)} {word}" for word, number in others.items() if number)
        said.append(f"Not counted among the answered requests: {words}.")
    return [*said, *(note[:1].upper() + note[1:] + ("" if note.endswith((".", "!")) else ".") for note in record["notes"])]
