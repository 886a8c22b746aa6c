"""Checked limits: the record, the table, JUnit XML, and the page's section."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from latencykit._text import brief_list, esc, format_items, printable, prose
from latencykit._typing import JSONObject
from latencykit.analysis.slo import SURE, SLOResult, SLORow, passed
from latencykit.core.repr_html import listing_html
from latencykit.units import NANOSECONDS, format_count, format_duration, format_range, format_value
from latencykit.views.markup import badge, section, table
from latencykit.views.tables import MOST_ROWS, Table, csv_unit
from latencykit.views.values import Versioned, number, record_from, value_text

if TYPE_CHECKING:
    from latencykit.views.page_series import PageSeries


_NO_TIMES = "the source has no times, so it does not show how requests depend on each other"
_DECIDES = "requests with their starts, or an .hlog of the run, would decide"
SENTENCES = {
    "text": "{text}",
    "omitted": "{text}",
    "no requests": "the measurement has no requests",
    "no count": "the source does not report the number of requests",
    "no times": f"{_NO_TIMES}, and the range is that of independent ones; {_DECIDES}",
    "as reported": "as reported",
    "no interval": f"as reported, without an interval ({_NO_TIMES}; {_DECIDES})",
    "needs values": "{statistic} needs the values or a histogram, and the source has reported "
    "numbers only",
    "not reported": "the source does not report p{percentile:.6g}",
    "not resolved": "both the value and the limit lie between {low:value} and {high:value}: the "
    "source resolves no more",
    "not single requests": "{series}: which requests meet all limits is known of single requests "
    "only, and the file has statistics or counts",
    "unit assumed": "the unit of the values is only assumed; {option} settles it",
    "clock ticks": "times were read from a clock that ticks every {tick:value}",
    "timeout": "{number:count} requests took {took:value}: if that is a timeout, or the recorder's "
    "highest value, {statistic} is unknown",
    "censored": "of {number:request} only a lower bound is known, {bound:value}",
    "corrected": "corrected counts are estimates and have no interval",
    "failed": "{failed:count} of {of:count} requests failed",
    "among failed": "{failed:count} of {of:count} requests failed, and {statistic} falls among "
    "them",
    "failed are slower": "{failed:count} of {of:count} requests failed and count as slower",
    "failed beyond any limit": "{number:request} failed, and {number:counts} as slower than any "
    "limit",
    "failed in all": "{number:request} of the whole log failed: how many of this part is unknown",
    "failed when": "the source does not show when",
    "failures unknown": "the number of failed requests is unknown: the source does not report it "
    "readably",
    "such traffic fails": "such traffic fails in {low:.3g} to {high:.3g} %",
    "good ones": "of the {number:count} requests that did not fail",
    "under way": "{number:request} {number:were} still under way at the end of the run",
    "meet all": "{met:count} of {of:count} requests meet the limits of {series}",
    "few above": "{above:count} requests lie above {statistic}; {least} are needed, so "
    "{needed:count} in all",
    "few bins": "{blocks} time bins are needed, and the run has {bins}",
    "bins needed": "{blocks} time bins are needed to be sure",
    "requests needed": "{number} are needed to be sure",
    "most beyond": "most requests took longer than the limit",
    "parts beyond": "{parts} of {of} parts of the run {parts:are} beyond the limit",
    "only parts beyond": "only {parts} of {of} parts of the run {parts:are} beyond the limit",
    "parts differ": "the parts of the run differ: a longer run may exceed the limit",
    "runs differ": "runs differ by {noise:percent} (standard deviation): others may be on the "
    "other side",
    "earlier runs": "earlier runs reach {top:value}: a further run within the limit would decide",
    "stall breaks": "one stall longer than {stall:stall} would break it",
    "request breaks": "one slower request would break it",
    "maximum grows": "a maximum grows with the length of a run",
    "too close": "the value is so close to the limit that no run decides",
    "too different": "the parts of the run differ too much to state how long a run would decide",
    "more requests": "{times} times as many requests would decide",
    "longer decides": "{seconds:length} of such traffic would decide",
    "longer is surer": "{seconds:length} would decide more",
}
"""The sentence of each `Reason`; a fact is shown as its format says."""


_KINDS: dict[str, Callable[[Any], str]] = {
    "count": format_count,
    "request": lambda number: format_items(number, "request"),
    "counts": lambda number: "counts" if number == 1 else "count",
    "were": lambda number: "was" if number == 1 else "were",
    "are": lambda number: "is" if number == 1 else "are",
    "percent": lambda share: f"{100 * share:.3g} %",
    "stall": lambda length: format_duration(float(f"{length:.2g}")),
}


class _Fact:
    """A fact within a sentence, in the unit of its row."""

    def __init__(self, value: Any, unit: str) -> None:
        self._value, self._unit = value, unit

    def __format__(self, kind: str) -> str:
        if kind == "value":
            known = math.isfinite(self._value)
            return format_value(self._value, self._unit) if known else "infinity"
        if kind == "length":  # of a run as people write it, rounded up: "90 s", "20 min", "3 h"
            for unit, name in ((3600.0, "h"), (60.0, "min")):
                if self._value >= 2 * unit:
                    return f"{math.ceil(self._value / unit - 1e-3):,} {name}"
            if self._value < 1:
                return format_duration(float(f"{self._value:.1g}") * 1e9)
            return f"{math.ceil(self._value - 1e-3)} s"
        return _KINDS[kind](self._value) if kind in _KINDS else format(self._value, kind)


def reason_text(row: SLORow) -> str:
    """Return why an outcome is unknown or not sure, or a remark; empty where there is none."""
    return "; ".join(
        SENTENCES[reason.code].format(
            **{name: _Fact(value, row.unit) for name, value in reason.facts.items()}
        )
        for reason in row.reasons
    )


def cannot_show(seconds: float) -> str:
    """Return what a run of this length cannot show, one line; empty where it is unknown.

    >>> cannot_show(300)
    'a run of 5 min cannot detect events rarer than one per 100 s'
    """
    if not (math.isfinite(seconds) and seconds > 0):
        return ""
    whole, each = (format_duration(s * 1e9, 2) for s in (seconds, seconds / SURE.rarest_per_run))
    return f"a run of {whole} cannot detect events rarer than one per {each}"


def html_of(result: SLOResult) -> str:
    """Return a checked SLO as a notebook shows it."""
    header = ("", "limit", "this run", "outcome", "sure")
    rows = [
        (row.statistic, *slo_texts(row)[:2], row.outcome, "yes" if row.sure else "no")
        for row in result
    ]
    reasons = [f"{row.statistic}: {row.reason}" for row in result if row.reason]
    return listing_html(result.headline, header, rows, reasons)


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


class CheckRecord(Versioned):
    """Checked limits."""

    passed: bool | None
    """null where a threshold is undecided."""
    rows: list[LimitRecord]
    notes: list[str]


def check_record(
    checked: Mapping[str, Sequence[SLORow]], passed: bool | None, notes: Sequence[str] = ()
) -> CheckRecord:
    """Return checked limits as plain values."""
    rows = []
    for series, results in checked.items():
        for row in results:
            factor = 1.0 if row.is_share else NANOSECONDS.get(row.unit, 1.0)
            names = ("limit", "value", "low", "high", "bucket_low", "bucket_high")
            values = {name: number(getattr(row, name) * factor) for name in names}
            rows.append(record_from(LimitRecord, row, series=series, **values))
    return {"schema_version": 1, "passed": passed, "rows": rows, "notes": list(notes)}


def check_text(
    checked: Mapping[str, Sequence[SLORow]],
    style: str = "table",
    out_unit: str | None = None,
    seconds: float = 0.0,
    *,
    every: bool = True,
) -> str:
    """Return one row per limit, the reasons below, and what a run of this length cannot show."""
    # Of many reasons, those of the first rows are stated unless `every` one is wanted.
    table, reasons = Table(style, out_unit), dict[str, list[str]]()
    rows = [row for results in checked.values() for row in results]
    times = [{"unit": row.unit} for row in rows if not row.is_share]  # shares have none
    suffix = csv_unit(times, style, out_unit) if times else ""
    for name, results in checked.items():
        for row in results:
            limit, value, low, high = slo_texts(row, out_unit)
            if style == "csv":
                unit = "none" if row.is_share else row.unit
                ends = (row.limit, row.value, row.low, row.high)
                cells = [table.value(end, unit) if math.isfinite(end) else None for end in ends]
                columns = {
                    **{
                        f"{end}{suffix}": cell
                        for end, cell in zip(("limit", "value", "low", "high"), cells, strict=True)
                    },
                    "margin": number(row.margin),
                    "outcome": row.outcome,
                    "sure": row.sure,
                    "resolved": row.resolved,
                }
            else:
                span = low if low == high else f"{low} to {high}"
                if not (low and high):
                    span = f"from {low}" if low else f"up to {high}" if high else ""
                # Only the value is known, or its bucket.
                if (row.low, row.high) in ((row.value,) * 2, (row.bucket_low, row.bucket_high)):
                    span = ""
                columns = {
                    "limit": limit,
                    "this run": value,
                    "for such traffic": span,
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
        text = f"{number_sure} of {len(missed)} misses {verb} sure"
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
    """Return the outcomes as JUnit XML: missed is a failure, unknown is skipped."""
    # With `strict`, all that is not surely met is a failure; with `sure`, a miss that is not sure
    # is skipped.
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
    header = ["limit", *(esc(entry.short) for entry in series)]
    return section("slo", title, legend, table(header, rows, words=True))
