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
from latencykit.units import format_count, format_duration, format_percentile, format_value

if TYPE_CHECKING:
    from latencykit.report.slots import Slots

__all__ = ["headline", "resolution", "trust"]

_RARE = ((99.9, "one in a thousand"), (99.0, "one in a hundred"), (90.0, "one in ten"))
_NEAR, _NONE, _FEW = 0.3, 0.005, 0.1
"""Requests within 30 % of the mean are what it describes; fewer than these shares are none and hardly any."""


def headline(rung: Any) -> str:
    """Return what happened, in one sentence that anybody understands.

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
    if rung.index.size == 1 and not rung.censored:
        return f"All {format_count(rung.count)} requests took {show(rung.max)}."
    rows = [row for row in rung.percentile_rows([p for p, _ in _RARE]) if row.supported or math.isinf(row.bucket_high)]
    rare = next((row for row in rows if row.percentile <= rung.sample_limit()), None)
    parts = [f"Half of the {format_count(rung.count)} requests took {show(half)} or less"]
    if rare is not None:
        over = "at least" if math.isinf(rare.bucket_high) else "over"
        parts.append(f"{dict(_RARE)[rare.percentile]} {over} {show(rare.value if rare.resolved else rare.bucket_low)}")
    parts.append(f"the worst {statistic_text(rung, 'max')}")
    if rung.censored:
        parts.append(f"and {format_count(rung.censored)} gave no answer within {show(rung.censored_at)}")
    return f"{', '.join(parts)}; {_mean(rung)}."


def _mean(histogram: Histogram) -> str:
    """What the mean is worth."""
    mean, middle = histogram.mean, histogram.buckets.mid(histogram.index)
    near = float(histogram.counts[np.abs(middle - mean) <= _NEAR * mean].sum()) / histogram.count
    text = statistic_text(histogram, "mean")
    if not is_resolved(*histogram.bracket("mean")) or not is_resolved(histogram.counted.low, histogram.counted.high).all():
        return f"the mean is {text}"
    if near < _FEW:
        return f"the mean, {text}, describes {'none' if near < _NONE else 'hardly any'} of them"
    return f"the mean is {text}"


def _of_summary(summary: Summary) -> str:
    held = [f"{name} {format_value(value, summary.unit)}" for name, value in summary.stats.items()]
    held += [f"p{format_percentile(p)} {format_value(value, summary.unit)}" for p, value in summary.percentiles.items()]
    return f"The tool kept {', '.join(held) or 'nothing'}; the rest of the distribution was thrown away."


def resolution(slots: Slots, rung: Any) -> str:
    """Return how coarse the page is: for people who compare its numbers with those of the file."""
    wide = 100.0 / (1 << int(np.ceil(np.log2(2 * 10**DIGITS))) - 1)
    exact = f"counts and maxima are exact, percentiles on this page lie at most {wide:.1g} % above those of the file"
    if isinstance(rung, Samples):
        step = _long(slots.width or float(np.median(slots.end - slots.start)))
        return f"Requests were counted into steps of {step} by the moment of their reply: {exact}."
    if slots.width is None:
        return f"Each step is one interval of the file: {exact}."
    return (
        f"Each step is a slot of {_long(slots.width)}, into which {format_count(len(rung))} intervals were put together: "
        f"{exact}. The selection snaps to slots."
    )


def _long(seconds: float) -> str:
    size, name = next((part for part in ((86400, "d"), (3600, "h"), (60, "min")) if seconds >= part[0]), (1, ""))
    return f"{seconds / size:.3g} {name}" if name else format_duration(seconds * 1e9)


def trust(rung: Any) -> list[str]:
    """Return what a reader of the numbers has to know, one sentence each."""
    run, said = rung.run, []
    if isinstance(rung, Histogram) and rung.count:
        limit = rung.highest_supported_percentile()
        sure = f"p{int(limit * 1000) / 1000:g}" if limit >= 90 else f"p{int(limit)}"
        said.append(
            f"{format_count(rung.count)} requests can say something up to {sure}; beyond that the curve is their maximum. "
            "Values in brackets lie beyond."
        )
    if isinstance(rung, Distribution):
        said.append("A model, not a measurement: it has no confidence intervals.")
    if run.unit_note is not None and run.unit_note not in run.notes:
        said.append(f"{run.unit_note[:1].upper()}{run.unit_note[1:]}.")
    if run.corrected == "unknown" and run.loop in ("closed", "paced"):
        said.append("A closed loop waits for each reply before it sends on: in a stall it does not measure.")
    if run.corrected in ("us", "tool"):
        said.append("Filled up for coordinated omission: added values follow from those measured, so no confidence is claimed.")
    others = {"failed": run.failed, "timed out": run.timeouts, "dropped": run.dropped, "unfinished": run.unfinished}
    if any(others.values()):
        words = ", ".join(f"{format_count(number)} {word}" for word, number in others.items() if number)
        said.append(f"Not among the requests that are shown as answered: {words}.")
    return [*said, *(note[:1].upper() + note[1:] + ("" if note.endswith((".", "!")) else ".") for note in run.notes)]
