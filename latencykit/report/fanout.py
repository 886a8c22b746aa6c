"""The fan-out of a page: what users meet who wait for the slowest of n calls, for the values of n that a slider has."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from latencykit.fanning import fan_outs
from latencykit.histogram import Histogram
from latencykit.report.markup import esc, section, table
from latencykit.report.record import number
from latencykit.stats.fanout import samples_needed
from latencykit.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.fanning import FanOut
    from latencykit.report.series import PageSeries

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
    alone = fan_outs(one.counted, _CALLS, independent=True, shares=(99.0,))
    mixed = fan_outs(one.slots.log(one.counted.unit), _CALLS, shares=(99.0,)) if one.slots is not None else [None] * len(_CALLS)
    return [
        {
            "n": apart.n, "words": _words(apart, together), "independent": _values(apart, one.counted.max),
            "mixture": [] if together is None else _values(together, one.counted.max),
        }
        for apart, together in zip(alone, mixed, strict=True)
    ]  # fmt: skip


def _values(found: FanOut, top: float) -> list[dict[str, Any]]:
    rows = [found.row(p) for p in _PERCENTILES]
    return [
        {
            "value": number(min(row.value, top)), "low": number(min(row.bucket_low, top)), "resolved": row.resolved,
            "open": not math.isfinite(row.bucket_high), "supported": row.supported,
        }
        for row in rows
    ]  # fmt: skip


def _words(apart: FanOut, together: FanOut | None) -> str:
    leaf = apart.leaf_percentile(99.0)
    calls = f"{format_count(apart.n)} calls" if apart.n > 1 else "1 call"
    most = together or apart
    said = f"Of users who wait for {calls}, {_share(most)} meet one that is slower than the p99 of a single call"
    if together is not None and together.model == "mixture":
        said += f" ({_share(apart)} if slow calls came independently of each other)"
    needed = format_count(samples_needed(leaf))
    rests = f"the p99 of users rests on the p{_cut(leaf)} of one call, which takes {needed} requests to know"
    note = f" {most.note[:1].upper()}{most.note[1:]}." if most.note else ""
    return f"{said}; {rests}.{note}"


def _share(found: FanOut) -> str:
    low, high = (f"{100 * share:.0f}" for share in found.above_between.get(99.0, (found.above[99.0],) * 2))
    return f"{high} %" if low == high else f"{low}–{high} %"


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
