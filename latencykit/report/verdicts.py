"""Checked limits as dictionaries, as text, and as JUnit's XML."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from latencykit.report.record import number
from latencykit.report.tables import styled
from latencykit.report.values import shown
from latencykit.units import NANOSECONDS, format_range, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latencykit.stats.slo_check import SLORow

__all__ = ["check_record", "check_text", "junit_xml"]

_HEADER = ("series", "statistic", "limit", "value", "low", "high", "margin", "outcome")


def check_record(found: Mapping[str, Sequence[SLORow]], passed: bool | None) -> dict[str, Any]:
    """Return checked limits as plain values: ns, shares (0..1) for ``failed``; null where unknown or unbounded."""
    rows = [_record(name, row) for name, rows in found.items() for row in rows]
    return {"schema_version": 1, "passed": passed, "rows": rows}


def _record(name: str, row: SLORow) -> dict[str, Any]:
    factor = NANOSECONDS.get(row.unit, 1.0) if row.statistic != "failed" else 1.0
    values = {key: number(getattr(row, key) * factor) for key in ("limit", "value", "low", "high", "bucket_low", "bucket_high")}
    values["resolved"] = row.resolved
    margins = {key: number(getattr(row, key)) for key in ("margin", "margin_low", "margin_high")}
    return {"series": name, "statistic": row.statistic, **values, "outcome": row.outcome, **margins, "reason": row.reason}


def check_text(found: Mapping[str, Sequence[SLORow]], style: str = "table", out_unit: str | None = None) -> str:
    """Return one row a limit, and below what there is to say of those that are not simply met."""
    flat = [(name, row) for name, rows in found.items() for row in rows]
    cells = [[name, row.statistic, *_values(row, out_unit), _percent(row.margin), row.outcome] for name, row in flat]
    plain = [
        [name, row.statistic, *_numbers(row, out_unit), number(row.margin), row.outcome, row.resolved] for name, row in flat
    ]  # fmt: skip
    table = styled(style, [*_HEADER, "resolved"] if style == "csv" else _HEADER, cells, plain, left=2)
    reasons = [f"{printable(name)} {row.statistic}: {row.reason}" for name, row in flat if row.reason]
    return table if style == "csv" or not reasons else "\n".join([table, "", *reasons])


def _values(row: SLORow, out_unit: str | None) -> list[str]:
    values = (row.limit, row.value, row.low, row.high)
    if row.statistic == "failed":
        return ["" if math.isnan(value) else f"{100 * value:.3g} %" for value in values]

    def show(value: float) -> str:
        return str(shown(value, row.unit, "table", out_unit))

    texts = [show(value) if math.isfinite(value) else "" for value in values]
    texts[1] = texts[1] if row.resolved else format_range(row.bucket_low, row.bucket_high, show)
    return texts


def _numbers(row: SLORow, out_unit: str | None) -> list[Any]:
    values = (row.limit, row.value, row.low, row.high)
    unit = "none" if row.statistic == "failed" else row.unit
    return [shown(value, unit, "csv", out_unit) if math.isfinite(value) else None for value in values]


def _percent(margin: float) -> str:
    """Room to the limit; far beyond it, how many times the limit."""
    if margin < -9:
        return f"{1 - margin:,.0f} × limit" if math.isfinite(margin) else ""
    return f"{100 * margin:.3g} %" if math.isfinite(margin) else ""


def junit_xml(found: Mapping[str, Sequence[SLORow]], *, strict: bool = False) -> str:
    """Return the outcomes as JUnit's XML: a missed limit is a failure, an unknown one is skipped (a failure if `strict`)."""
    from xml.etree import ElementTree as ET

    outcomes = [row.outcome for rows in found.values() for row in rows]
    failures = outcomes.count("missed") + (outcomes.count("unknown") if strict else 0)
    counts = {"tests": len(outcomes), "failures": failures, "errors": 0, "skipped": 0 if strict else outcomes.count("unknown")}
    numbers = {key: str(value) for key, value in counts.items()}
    root = ET.Element("testsuites", numbers)
    suite = ET.SubElement(root, "testsuite", {"name": "latencykit check", **numbers})
    for name, rows in found.items():
        for row in rows:
            value, limit = _values(row, None)[1] or "unknown", _values(row, None)[0]
            named = {"classname": printable(name, 200), "name": f"{row.statistic} within {limit}", "time": "0"}
            case = ET.SubElement(suite, "testcase", named)
            said = f"{row.statistic} is {value}, limit {limit}" + (f": {row.reason}" if row.reason else "")
            if row.outcome == "missed" or (strict and row.outcome == "unknown"):
                ET.SubElement(case, "failure", {"message": printable(said, 500), "type": row.outcome})
            elif row.outcome == "unknown":
                ET.SubElement(case, "skipped", {"message": printable(said, 500)})
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"
