"""The fan-out of a page: what users meet who wait for the slowest of n calls, for the values of n that a slider has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.distribution import Distribution
from latencykit.histogram import Histogram
from latencykit.report.markup import esc, section, table
from latencykit.report.record import number
from latencykit.stats import fanout
from latencykit.stats.events import tail_counts, tail_shares
from latencykit.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.report.series import PageSeries
    from latencykit.report.slots import Slots

    Floats = NDArray[np.float64]

__all__ = ["fan_out_model", "fan_out_section"]

_CALLS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
_PERCENTILES = (50.0, 90.0, 99.0)
_FIRST = _CALLS.index(100)


def fan_out_model(series: Sequence[PageSeries]) -> list[dict[str, Any]]:
    """Return what the slider of each measured series walks through; six series at most."""
    found = [one for one in series if isinstance(one.counted, Histogram) and one.counted.count]
    return [
        {"name": one.name, "mixed": one.slots is not None, "percentiles": _PERCENTILES, "rows": _rows(one)} for one in found[:6]
    ]


def _rows(one: PageSeries) -> list[dict[str, Any]]:
    """One row a value of n: percentiles of the slowest, and a sentence."""
    histogram: Histogram = one.counted
    above = fanout.survival(histogram.counts)
    limit, top = histogram.highest_supported_percentile(), histogram.max
    late = _late(one.slots) if one.slots is not None else None
    found = []
    for n in _CALLS:
        supported = [bool(leaf <= limit) for leaf in fanout.leaf_percentile(_PERCENTILES, n).tolist()]
        alone = Distribution(histogram.buckets, histogram.index, fanout.probabilities(fanout.slowest(above, n)))
        told = {"n": n, "independent": _values(alone, supported, top), "mixture": [], "words": _words(n, late)}
        if one.slots is not None:
            told["mixture"] = _values(_mixed(one.slots, n), supported, top)
        found.append(told)
    return found


def _mixed(slots: Slots, n: int) -> Distribution:
    """The slowest of n calls that fall into one slot, mixed over the slots."""
    from latencykit.buckets import EdgeBuckets

    held = fanout.by_interval(slots.indptr, slots.index, slots.counts, n, slots.high.size)
    index = np.flatnonzero(held > 0)
    return Distribution(EdgeBuckets(slots.low, slots.high), index, held[index] / held.sum())


def _values(distribution: Distribution, supported: Sequence[bool], top: float) -> list[dict[str, Any]]:
    values = np.minimum(distribution.percentile(_PERCENTILES), top)
    return [{"value": number(float(value)), "supported": sure} for value, sure in zip(values.tolist(), supported, strict=True)]


def _late(slots: Slots) -> tuple[Floats, Floats]:
    """Requests of each slot above the p99 of all, and all of each slot."""
    total = np.bincount(slots.index, slots.counts, slots.high.size).astype(np.int64)
    position, share = tail_shares(total, [99.0])
    tail = tail_counts(slots.indptr, slots.high[slots.index], slots.counts, slots.high[position], share)
    running = np.concatenate(([0], np.cumsum(slots.counts)))
    return tail, np.diff(running[slots.indptr]).astype(np.float64)


def _words(n: int, late: tuple[Floats, Floats] | None) -> str:
    alone = float(fanout.chance_of_slow(99.0, n))
    leaf = float(fanout.leaf_percentile(99.0, n))
    calls = f"{format_count(n)} calls" if n > 1 else "1 call"
    rests = (
        f"The p99 of users rests on the p{_cut(leaf)} of one call; it takes {format_count(fanout.samples_needed(leaf))} requests"
    )
    if late is None:
        return (
            f"Of users who wait for {calls}, {100 * alone:.0f} % meet one that is slower than the p99 of a single call. {rests}."
        )
    mixed = float(fanout.share_above(*late, n)[0])
    return (
        f"Of users who wait for {calls}, {100 * mixed:.0f} % meet one that is slower than the p99 of a single call "
        f"({100 * alone:.0f} % if slow calls came independently of each other). {rests} to know it."
    )


def _cut(percentile: float) -> str:
    return f"{percentile:.5f}".rstrip("0").rstrip(".")


def fan_out_section(model: Sequence[dict[str, Any]]) -> str:
    """Return the section around the plot: slider, sentence and table."""
    if not model:
        return ""
    mixed = any(one["mixed"] for one in model)
    said = (
        "Solid: all calls of a user fall into the same moment, as they do (mixed by the steps of the timeline). "
        "Dashed: as if slow calls came independently of each other."
        if mixed
        else "As if slow calls came independently of each other: a source without time cannot tell when they came together."
    )
    options = "".join(f"<option value='{k}'>{esc(one['name'], 60)}</option>" for k, one in enumerate(model))
    choice = f"<p><label>Series <select id='fan-out-series'>{options}</select></label></p>" if len(model) > 1 else ""
    slider = (
        f"<p class='slider'><label for='fan-out-slider'>calls <b id='fan-out-n'>{_CALLS[_FIRST]}</b></label>"
        f"<input type='range' id='fan-out-slider' min='0' max='{len(_CALLS) - 1}' value='{_FIRST}'></p>"
    )
    first = model[0]["rows"][_FIRST]["words"]
    words = f"<p id='fan-out-words' aria-live='polite'>{esc(first, 500)}</p>"
    columns = ["users'", "in one moment", "if independent"] if mixed else ["users'", "if independent"]
    return section(
        "fan-out", "Waiting for many answers", f"<p class='quiet'>{said}</p>", choice, slider, words,
        "<div id='plot-fanOut' class='plot'></div>", table(columns, [], name="fan-out-table"),
    )  # fmt: skip
