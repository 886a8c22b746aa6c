"""Checked limits: the record, the table, JUnit XML, and the page's section."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Literal, TypedDict

from latencykit._text import brief_list, esc, format_items, printable, prose
from latencykit.analysis.slo import SLOResult, cannot_show, passed
from latencykit.units import NANOSECONDS, format_range
from latencykit.views.markup import badge, section, table
from latencykit.views.tables import MOST_ROWS, Table
from latencykit.views.values import number, record_from, value_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latencykit._typing import JSONObject
    from latencykit.analysis.slo import SLORow
    from latencykit.views.page_series import PageSeries


class LimitRecord(TypedDict):
    """A limit and its outcome: latencies in nanoseconds, failed and joint as shares from 0 to 1."""

    series: str
    statistic: str
    limit: float
    value: float | None
    low: float | None
    high: float | None
    bucket_low: float | None
    bucket_high: float | None
    resolved: bool
    outcome: Literal["met", "missed", "unknown"]
    sure: bool
    """The outcome holds for traffic like this run's."""
    margin: float | None
    """Distance to the limit, relative to it."""
    margin_low: float | None
    margin_high: float | None
    reason: str


class CheckRecord(TypedDict):
    """Checked limits."""

    schema_version: Literal[1]
    """Grows when a key changes its meaning or goes away."""
    passed: bool | None
    """null where a threshold is undecided."""
    rows: list[LimitRecord]
    notes: list[str]


def check_record(
    checked: Mapping[str, Sequence[SLORow]], passed: bool | None, notes: Sequence[str] = ()
) -> CheckRecord:
    """Return checked limits as plain values."""
    rows = [_limit_record(name, row) for name, results in checked.items() for row in results]
    return {"schema_version": 1, "passed": passed, "rows": rows, "notes": list(notes)}


def _limit_record(series: str, row: SLORow) -> LimitRecord:
    factor = 1.0 if row.is_share else NANOSECONDS.get(row.unit, 1.0)
    names = ("limit", "value", "low", "high", "bucket_low", "bucket_high")
    values = {name: number(getattr(row, name) * factor) for name in names}
    return record_from(LimitRecord, row, series=series, **values)


def check_text(
    checked: Mapping[str, Sequence[SLORow]],
    style: str = "table",
    out_unit: str | None = None,
    seconds: float = 0.0,
    *,
    every: bool = True,
) -> str:
    """Return one row per limit, the reasons below, and what a run of this length cannot show.

    Of many reasons, those of the first rows are stated unless `every` one is wanted.
    """
    table, reasons = Table(style, out_unit), dict[str, list[str]]()
    for name, results in checked.items():
        for row in results:
            limit, value, low, high = slo_texts(row, out_unit)
            if style == "csv":
                unit = "none" if row.is_share else row.unit
                ends = (row.limit, row.value, row.low, row.high)
                cells = [table.value(end, unit) if math.isfinite(end) else None for end in ends]
                columns = {
                    **dict(zip(("limit", "value", "low", "high"), cells, strict=True)),
                    "margin": number(row.margin),
                    "outcome": row.outcome,
                    "sure": row.sure,
                    "resolved": row.resolved,
                }
            else:
                columns = {
                    "limit": limit,
                    "this run": value,
                    "for such traffic": _interval(row, low, high),
                    "outcome": row.outcome,
                    "sure": "" if row.outcome == "unknown" else "yes" if row.sure else "no",
                }
            table.add({"series": name, "statistic": row.statistic, **columns})
            if row.reason:
                reasons.setdefault(row.reason, []).append(f"{printable(name)} {row.statistic}")
    text = table.render(left=2, most=MOST_ROWS)
    stated = [f"{brief_list(rows)}: {reason}" for reason, rows in reasons.items()]
    if len(stated) > _REASONS and not every:
        more = sum(map(len, [*reasons.values()][_REASONS:]))
        stated[_REASONS:] = [f"and {format_items(more, 'reason')} more: --notes states all"]
    if style == "csv":
        return text
    if style == "markdown":  # the first line of a comment
        verdicts: dict[str, list[str]] = {}
        for name, results in checked.items():
            verdicts.setdefault(SLOResult(results).headline, []).append(printable(name))
        heads = [prose(f"{brief_list(names)}: {said}", style) for said, names in verdicts.items()]
        text = "\n\n".join([*(f"**{head}**" for head in heads[:_REASONS]), text])
    lines = [prose(line, style) for line in (*stated, cannot_show(seconds)) if line]
    return "\n".join([text, "", *lines]) if lines else text


_REASONS = 4
"""Reasons below a table for a terminal."""


def _interval(row: SLORow, low: str, high: str) -> str:
    """The interval for such traffic: "12 ms to 19 ms"; empty where only the value is known."""
    alone = (row.low, row.high) in ((row.value,) * 2, (row.bucket_low, row.bucket_high))
    if alone or not (low or high):
        return ""
    if low and high:
        return low if low == high else f"{low} to {high}"
    return f"from {low}" if low else f"up to {high}"


def exit_text(
    rows: Sequence[SLORow], good: bool | None, *, strict: bool = False, sure: bool = False
) -> str:
    """Return the exit status of a check and what it is based on."""
    missed = [row for row in rows if row.outcome == "missed"]
    unsure = sum(row.outcome != "unknown" and not row.sure for row in rows)
    unknown = sum(row.outcome == "unknown" for row in rows)
    parts = [f"{format_items(unknown, 'limit')} unknown"] if unknown else []
    if missed:
        number_sure = sum(row.sure for row in missed)
        verb = "is" if number_sure == 1 else "are"
        of = "the miss" if len(missed) == 1 else f"{len(missed)} misses"
        text = f"{number_sure} of {of} {verb} sure"
        if len(missed) == 1:
            text = f"the miss is {'' if number_sure else 'not '}sure"
        parts.insert(0, text)
    elif strict and unsure:
        parts.append(f"{format_items(unsure, 'limit')} met, but not surely")
    elif sure is False and not unknown:
        certain = f", {len(rows) - unsure or 'none'} surely" if unsure else ""
        parts.append(f"all limits are met{certain}")
    why = f" ({'; '.join(parts)})" if parts else ""
    return f"exit status {int(good is False)}{why}"


def slo_texts(row: SLORow, out_unit: str | None = None) -> list[str]:
    """Return the limit, the value and the ends of its interval."""
    if row.is_share or out_unit is None:
        return [row.limit_text, row.value_text, row.text(row.low), row.text(row.high)]
    show = partial(value_text, unit=row.unit, out_unit=out_unit)
    values = (row.limit, row.value, row.low, row.high)
    texts = [show(value) if math.isfinite(value) else "" for value in values]
    if math.isinf(row.value) and row.outcome == "missed":
        texts[1] = row.value_text
    elif not row.resolved:
        texts[1] = format_range(row.bucket_low, row.bucket_high, show)
    return texts


def junit_xml(
    checked: Mapping[str, Sequence[SLORow]], *, strict: bool = False, sure: bool = False
) -> str:
    """Return the outcomes as JUnit XML: missed is a failure, unknown is skipped.

    With `strict`, all that is not surely met is a failure; with `sure`, a miss that is not sure is
    skipped.
    """
    from xml.etree import ElementTree as ET

    def result(row: SLORow) -> str:
        good = passed([row], strict=strict, sure=sure)
        return "skipped" if good is None else "" if good else "failure"

    results_of = [result(row) for results in checked.values() for row in results]
    counts = {
        "tests": str(len(results_of)),
        "failures": str(results_of.count("failure")),
        "errors": "0",
        "skipped": str(results_of.count("skipped")),
    }
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": "latencykit check", **counts})
    for name, results in checked.items():
        for row in results:
            limit, value, _, _ = slo_texts(row)
            relation = "at least" if row.statistic == "joint" else "within"
            attributes = {
                "classname": printable(name, 200),
                "name": f"{row.statistic} {relation} {limit}",
                "time": "0",
            }
            case = ET.SubElement(suite, "testcase", attributes)
            reason = f": {row.reason}" if row.reason else ""
            message = printable(
                f"{row.statistic} is {value or 'unknown'}, limit {limit}{reason}", 500
            )
            if result(row) == "failure":
                ET.SubElement(case, "failure", {"message": message, "type": row.outcome})
            elif result(row) == "skipped":
                ET.SubElement(case, "skipped", {"message": message})
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def slo_steps(checked: Sequence[Sequence[SLORow]]) -> list[JSONObject]:
    """Return the limits on percentiles as steps; the worst verdict of all series colours each."""
    steps = []
    for rows in zip(*checked, strict=True):
        statistic, outcomes = rows[0].statistic, {row.outcome for row in rows}
        if statistic == "max" or statistic.startswith("p"):
            percentile = 100.0 if statistic == "max" else float(statistic[1:])
            worst = next(outcome for outcome in ("missed", "unknown", "met") if outcome in outcomes)
            limit = number(rows[0].limit)
            steps.append({"percentile": percentile, "limit": limit, "outcome": worst})
    return sorted(steps, key=lambda step: step["percentile"])


def slo_section(checked: Sequence[Sequence[SLORow]], series: Sequence[PageSeries]) -> str:
    """Return the table of verdicts: a row per limit, a column per series."""
    if not checked:
        return ""
    rows, missed, unknown = [], 0, 0
    for results in zip(*checked, strict=True):
        outcomes = {row.outcome for row in results}
        missed, unknown = missed + ("missed" in outcomes), unknown + ("unknown" in outcomes)
        cells = [f"{esc(results[0].statistic)} ≤ {esc(slo_texts(results[0])[0])}"]
        for row in results:
            reason = f"<small>{esc(row.reason)}</small>" if row.reason else ""
            sure = ", sure" if row.sure else ""
            cells.append(f"{badge(row.outcome)} {esc(slo_texts(row)[1])}{sure}{reason}")
        rows.append(cells)
    title = "SLO: met"
    if missed or unknown:
        verdict = "missed" if missed else "cannot be judged"
        title = f"SLO: {missed or unknown} of {len(rows)} limits {verdict}"
    legend = (
        "<p class='quiet'>Met and missed are about this run. Sure: so it is for traffic like this, "
        "by the dependence between requests that the run shows.</p>"
    )
    header = ["limit", *(esc(entry.short or entry.name) for entry in series)]
    return section("slo", title, legend, table(header, rows, words=True))
