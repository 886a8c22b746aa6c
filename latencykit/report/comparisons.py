"""Comparisons as dictionaries and as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from latencykit.report.record import number
from latencykit.report.tables import csv_text, markdown, text_table
from latencykit.report.values import shown
from latencykit.stats.percentiles import is_resolved
from latencykit.units import format_change, format_range, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from latencykit.comparing import Comparison
    from latencykit.stats.verdict import Change

__all__ = ["comparison_record", "comparisons_record", "comparisons_text"]

_GRAVE = ("mixed", "worse", "inconclusive", "better", "same")
_SURE = 0.02
"""Bounds of a probability that are farther apart are both shown."""

_HEADER = ("statistic", "base", "new", "change", "low", "high", "significant")


def comparisons_record(found: Mapping[str, Comparison], failed: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the comparison of one series as it is, and of several a list beside the first, as plain values."""
    records = {name: comparison_record(one, failed[name]) for name, one in found.items()}
    if len(records) == 1:
        return {"schema_version": 1, **next(iter(records.values()))}
    verdicts = {one.verdict for one in found.values()}
    both_ways = {"better", "worse"} <= verdicts
    return {
        "schema_version": 1,
        **next(iter(records.values())),
        "verdict": "mixed" if both_ways else next(word for word in _GRAVE if word in verdicts),
        "failed": [f"{name}: {text}" for name, texts in failed.items() for text in texts],
        "series": [{"name": name, **record} for name, record in records.items()],
    }


def comparison_record(found: Comparison, failed: Sequence[str] = ()) -> dict[str, Any]:
    """Return a comparison as plain values; changes are relative (0.05 is +5 %), null where unbounded."""
    rows = [_record(row) for row in found.changes]
    return {
        "basis": found.basis,
        "verdict": found.verdict,
        "unit": found.unit,
        "runs": list(found.runs),
        "rows": [row for row in rows if row["percentile"] is not None],
        "means": [row for row in rows if row["percentile"] is None],
        "faster": number(found.faster),
        "faster_between": [number(end) for end in found.faster_between],
        "failed": list(failed),
        "reasons": list(found.reasons),
        "warnings": list(found.warnings),
    }


def _record(row: Change) -> dict[str, Any]:
    names = ("base", "new", "change", "low", "high", "difference", "difference_low", "difference_high", "p_value")
    values = {name: number(getattr(row, name)) for name in names}
    values["low"] = None if row.low <= -1 else values["low"]
    values |= {name: number(getattr(row, name)) for name in ("base_low", "base_high", "new_low", "new_high")}
    values["resolved"] = row.resolved
    return {"statistic": row.statistic, "percentile": row.percentile, **values, "significant": row.significant, "note": row.note}


def comparisons_text(found: Mapping[str, Comparison], style: str = "table", out_unit: str | None = None) -> str:
    """Return one row a statistic; several series follow each other, in CSV with a column of their own."""
    if style == "csv":
        rows = [[name, *_plain(row, one.unit, out_unit)] for name, one in found.items() for row in one.changes]
        header = [*_HEADER, "resolved"]
        return csv_text(["series", *header], rows) if len(found) > 1 else csv_text(header, [row[1:] for row in rows])
    table = markdown if style == "markdown" else text_table
    texts = []
    for name, one in found.items():
        title = [("### " if style == "markdown" else "") + printable(name)] if len(found) > 1 else []
        rows = [_cells(row, one.unit, out_unit) for row in one.changes]
        texts.append("\n".join([*title, table(_HEADER, rows), "", *_words(one)]))
    return "\n\n".join(texts)


def _cells(row: Change, unit: str, out_unit: str | None) -> list[str]:
    values = [value_text(*ends, lambda one: str(shown(one, unit, "table", out_unit))) for ends in _sides(row)]
    if row.statistic == "slow share":
        values = [f"{100 * value:.3g} %" for value in (row.base, row.new)]
    ends = [format_change(row.low) if row.low > -1 else "", format_change(row.high) if math.isfinite(row.high) else ""]
    said = "yes" if row.significant else "not judged" if math.isnan(row.p_value) else "no"
    return ["max" if row.percentile == 100 else row.statistic, *values, format_change(row.change), *ends, said]


def _sides(row: Change) -> list[tuple[float, float, float]]:
    return [(row.base, row.base_low, row.base_high), (row.new, row.new_low, row.new_high)]


def value_text(value: float, low: float, high: float, show: Callable[[float], str]) -> str:
    """Return one side of a comparison: a range where its source does not pin it down.

    Examples
    --------
    >>> value_text(5.0, 1.0, 5.0, str), value_text(5.0, float("nan"), float("nan"), str)
    ('1.0–5.0', '5.0')
    """
    return show(value) if math.isnan(low) or is_resolved(low, high) else format_range(low, high, show)


def _plain(row: Change, unit: str, out_unit: str | None) -> list[Any]:
    scaled = None if row.statistic == "slow share" else out_unit
    values = [shown(value, unit, "csv", scaled) for value in (row.base, row.new)]
    ends = [row.change, row.low if row.low > -1 else None, row.high]
    return [row.statistic, *values, *(None if end is None else number(end) for end in ends), row.significant, row.resolved]


def _words(found: Comparison) -> list[str]:
    meaning = {
        "same": "the same: every change surely lies within the margin",
        "mixed": "mixed: some statistics are better, others worse",
    }
    runs = f"{found.runs[0]} runs against {found.runs[1]}" if found.basis == "runs" else "one run a side"
    lines = [f"verdict: {meaning.get(found.verdict, found.verdict)} ({runs})"]
    if math.isfinite(found.faster):
        low, high = found.faster_between
        share = f"{100 * found.faster:.3g}" if not high - low > _SURE else f"{100 * low:.3g}–{100 * high:.3g}"
        lines.append(f"P(new < base) = {share} %")
    return [*lines, *found.reasons]
