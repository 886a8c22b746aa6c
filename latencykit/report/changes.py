"""The comparison of a page: every series against the first one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from latencykit.comparing import compare
from latencykit.errors import LatencyKitError
from latencykit.report.comparisons import value_text
from latencykit.report.markup import bullets, esc, section, table
from latencykit.units import format_change, format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.comparing import Comparison
    from latencykit.report.series import PageSeries
    from latencykit.stats.verdict import Change

__all__ = ["comparison_section"]

_MOST = 6
_BADGES = {"better": "good", "same": "good", "worse": "bad", "mixed": "bad", "inconclusive": "unsure"}


def comparison_section(series: Sequence[PageSeries]) -> str:
    """Return one table a series that is held against the first; empty for a single series."""
    if len(series) < 2:
        return ""
    base, *others = series
    parts = [_against(base, other) for other in others[:_MOST]]
    if len(others) > _MOST:
        parts.append(f"<p class='quiet'>The other {len(others) - _MOST} series are not compared here.</p>")
    return section("comparison", f"Compared with {esc(base.name, 60)}", *parts)


def _against(base: PageSeries, other: PageSeries) -> str:
    name = f"<b>{esc(other.name, 60)}</b>"
    try:
        found = compare(base.counted, other.counted)
    except LatencyKitError as error:  # a summary beside a curve, or an empty series: the page says so
        return f"<p>{name}: {esc(error)}</p>"
    badge = f"<span class='badge {_BADGES[found.verdict]}'>{found.verdict}</span>"
    header = ["", esc(base.name, 40), esc(other.name, 40), "change", "95 % interval", "significant"]
    return f"<p>{name} {badge}</p>{table(header, [_row(row, found) for row in found.changes])}{bullets(_notes(found))}"


def _row(row: Change, found: Comparison) -> list[str]:
    share = row.statistic == "slow share"
    ends = (row.base, row.base_low, row.base_high), (row.new, row.new_low, row.new_high)

    def show(value: float) -> str:
        return format_value(value, found.unit)

    values = [f"{100 * value:.3g} %" if share else value_text(value, low, high, show) for value, low, high in ends]
    low = format_change(row.low) if row.low > -1 else "unknown"
    high = format_change(row.high) if math.isfinite(row.high) else "unknown"
    said = "not judged" if math.isnan(row.p_value) else "yes" if row.significant else "no"
    name = "max" if row.percentile == 100 else row.statistic
    interval = f"{low} to {high}" if {low, high} != {"unknown"} else ""
    return [esc(name), *map(esc, values), format_change(row.change), interval, said]


def _notes(found: Comparison) -> list[str]:
    """What kept the comparison from deciding, what else differs, and what there is to know of single rows."""
    texts = [*found.reasons, *found.warnings, *dict.fromkeys(row.note for row in found.changes if row.note)]
    return [f"{text[:1].upper()}{text[1:]}." for text in texts]
