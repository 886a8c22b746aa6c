"""The table of key numbers: each with its confidence interval, in brackets where the sample does not support it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from latencykit.distribution import Distribution
from latencykit.report.markup import esc, table
from latencykit.report.record import TRIMMED, trimmed_means
from latencykit.summary import Summary
from latencykit.units import format_count, format_percentile, format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.report.series import PageSeries

__all__ = ["key_table"]

_PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)


def key_table(series: Sequence[PageSeries]) -> str:
    """Return the table: one row a statistic, one column a series."""
    columns = [_column(one.counted) for one in series]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [[esc(name), *(column.get(name, "") for column in columns)] for name in names]
    caption = "Small: the 95 % confidence interval, joined with the bucket. In brackets: more than the sample supports."
    trimmed = {name: f"{100 * share:g} %" for name, share in TRIMMED.items() if name in names}
    if trimmed:
        caption += f" {', '.join(trimmed)}: the mean without the lowest and the highest {', '.join(trimmed.values())}."
    return table(["", *(esc(one.name, 60) for one in series)], rows, caption)


def _column(counted: Any) -> dict[str, str]:
    """Statistic → cell of one series."""
    unit = counted.unit

    def show(value: float) -> str:
        return esc(format_value(value, unit))

    if isinstance(counted, Summary):
        held = {} if counted.count is None else {"requests": format_count(counted.count)}
        held |= {f"p{format_percentile(p)}": show(value) for p, value in counted.percentiles.items()}
        return held | {name: show(value) for name, value in counted.stats.items()}
    if isinstance(counted, Distribution):
        return {f"p{format_percentile(p)}": show(float(counted.percentile(p))) for p in _PERCENTILES} | {
            "mean": show(counted.mean)
        }
    found = {"requests": format_count(counted.count)}
    others = {"failed": counted.run.failed, "timed out": counted.run.timeouts or counted.censored}
    found |= {name: format_count(number) for name, number in others.items() if number}
    if not counted.count:
        return found
    for row in counted.percentile_rows(_PERCENTILES):
        found[f"p{format_percentile(row.percentile)}"] = _percentile(row, show, open_above=bool(counted.censored))
    beyond = counted.requests > counted.count or (counted.censored and counted.censored_at >= counted.max)
    top = f"≥ {show(max(counted.max, counted.censored_at))}" if beyond else show(counted.max)
    found |= {"max": top, "mean": show(counted.mean), "standard deviation": show(counted.std)}
    return found | {name: show(float(value or 0)) for name, value in trimmed_means(counted).items()}


def _percentile(row: Any, show: Any, *, open_above: bool) -> str:
    text = f"≥ {show(row.value)}" if open_above and math.isinf(row.high) else show(row.value)
    text = text if row.supported else f"({text})"
    if not math.isfinite(row.low):
        return text
    high = f"to {show(row.high)}" if math.isfinite(row.high) else "or more"
    return f"{text}<small>{show(row.low)} {high}</small>"
