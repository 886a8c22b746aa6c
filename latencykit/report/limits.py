"""The SLO of a page: limits as a staircase, and what each series says of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from latencykit.report.markup import esc, section, table
from latencykit.report.record import number
from latencykit.stats.slo import SLO
from latencykit.units import format_range, format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.report.series import PageSeries
    from latencykit.stats.slo_check import SLORow

__all__ = ["slo_rows", "slo_section", "slo_steps"]

_BADGES = {"met": "good", "missed": "bad", "unknown": "unsure"}


def slo_rows(slo: Any, series: Sequence[PageSeries]) -> list[list[SLORow]]:
    """Return each series' verdicts, one a limit; empty without an SLO."""
    if slo is None:
        return []
    stated = SLO.parse(slo) if isinstance(slo, str) else slo
    return [[_sure(row, one) for row in stated.check(one.counted)] for one in series]


def _sure(row: SLORow, one: PageSeries) -> SLORow:
    """A limit in time says nothing of values whose unit is only assumed."""
    if row.statistic == "failed" or one.counted.run.unit_from != "assumed" or row.unit == "none":
        return row
    return replace(row, outcome="unknown", reason="the unit of the values is only assumed; --unit settles it")


def slo_steps(checked: Sequence[Sequence[SLORow]]) -> list[dict[str, Any]]:
    """Return the limits on percentiles as steps for the curve; the worst verdict of all series colours each."""
    steps = []
    for rows in zip(*checked, strict=True):
        statistic, outcomes = rows[0].statistic, {row.outcome for row in rows}
        percentile = 100.0 if statistic == "max" else float(statistic[1:]) if statistic[:1] == "p" else None
        if percentile is not None:
            worst = next(outcome for outcome in ("missed", "unknown", "met") if outcome in outcomes)
            steps.append({"percentile": percentile, "limit": number(rows[0].limit), "outcome": worst})
    return sorted(steps, key=lambda step: step["percentile"])


def slo_section(checked: Sequence[Sequence[SLORow]], series: Sequence[PageSeries]) -> str:
    """Return the table of verdicts: a row a limit, a column a series."""
    if not checked:
        return ""
    rows = [[f"{esc(limits[0].statistic)} ≤ {_limit(limits[0])}", *map(_cell, limits)] for limits in zip(*checked, strict=True)]
    limits = [{row.outcome for row in limits} for limits in zip(*checked, strict=True)]
    missed, unknown = (sum(outcome in outcomes for outcomes in limits) for outcome in ("missed", "unknown"))
    title = "SLO: met"
    if missed or unknown:
        title = f"SLO: {missed or unknown} of {len(limits)} limits {'missed' if missed else 'cannot be judged'}"
    said = "<p class='quiet'>Met: the whole confidence interval is within the limit. Missed: all of it is beyond.</p>"
    return section("slo", title, said, table(["limit", *(esc(one.name, 60) for one in series)], rows, words=True))


def _cell(row: SLORow) -> str:
    value = "" if row.value != row.value else f"{_share(row.value) if row.statistic == 'failed' else _value(row)}"
    reason = f"<small>{esc(row.reason)}</small>" if row.reason else ""
    return f"<span class='badge {_BADGES[row.outcome]}'>{row.outcome}</span> {esc(value)}{reason}"


def _value(row: SLORow) -> str:
    def show(value: float) -> str:
        return format_value(value, row.unit)

    return show(row.value) if row.resolved else format_range(row.bucket_low, row.bucket_high, show)


def _limit(row: SLORow) -> str:
    return _share(row.limit) if row.statistic == "failed" else esc(format_value(row.limit, row.unit))


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"
