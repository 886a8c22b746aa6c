"""A diagnosis as the dictionary that the command line prints as JSON, and as text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from latencykit.histogram import Histogram
from latencykit.report.record import number
from latencykit.report.tables import csv_text, markdown, text_table
from latencykit.report.values import shown
from latencykit.units import format_count, format_duration, format_percentile, format_range, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latencykit.diagnose import Diagnosis

__all__ = ["diagnosis_html", "diagnosis_record", "diagnosis_text"]

_COLOURS = {"omits": "#d0312d", "clean": "#0b5cbf", "unknown": "#c77700"}
_GREY = "#8a909a"

_SHOWN_STALLS = 10


def diagnosis_record(name: str, found: Diagnosis) -> dict[str, Any]:
    """Return one series' diagnosis as plain values: stalls in seconds from the series' start, latencies in ns."""
    stalls = found.found
    rows = zip(
        *(column.tolist() for column in (stalls.start, stalls.end, stalls.duration, stalls.worst, stalls.missing)), strict=True
    )
    keys = ("start", "end", "duration", "worst", "missing")
    return {
        "name": name,
        "count": found.raw.count,
        "unit_from": found.run.unit_from,
        "verdict": found.verdict,
        "summary": found.summary,
        "ask": found.ask,
        "findings": list(found.findings),
        "evidence": [
            {"test": one.test, "statistic": number(one.statistic), "threshold": number(one.threshold), "finding": one.finding}
            for one in found.evidence
        ],
        "expected_interval": number(found.expected_interval),
        "stalls": [dict(zip(keys, (*map(number, row[:3]), number(round(row[3])), row[4]), strict=True)) for row in rows],
        "raw": {format_percentile(p): number(value) for p, value, _ in found.table},
        "raw_ranges": _ranges(found.raw, found),
        "corrected_ranges": _ranges(found.corrected, found),
        "corrected": {format_percentile(p): number(value) for p, _, value in found.table if value is not None},
        "method": found.method,
        "notes": [*stalls.notes, *filter(None, [found.run.unit_note])],
    }


def _ranges(held: Any, found: Diagnosis) -> dict[str, dict[str, Any]]:
    """Bounds of the percentiles that the source pins down no better than that."""
    if not isinstance(held, Histogram) or not held.count:
        return {}
    rows = held.percentile_rows([p for p, _, _ in found.table])
    return {
        format_percentile(row.percentile): {"low": number(row.bucket_low), "high": number(row.bucket_high)}
        for row in rows if not row.resolved
    }  # fmt: skip


def diagnosis_text(records: Sequence[dict[str, Any]], style: str, out_unit: str | None = None) -> str:
    """Return diagnoses as a paragraph each, or one row each as CSV or Markdown."""
    if style == "table":
        return "\n\n".join(_paragraph(record, out_unit) for record in records)
    heads = ["series", "requests", "verdict", "why", "findings", "expected interval", "stalls", "method"]
    rows = [
        [
            record["name"], format_count(record["count"] or 0), record["verdict"], record["summary"],
            " ".join(record["findings"]), _time(record["expected_interval"]), str(len(record["stalls"])), record["method"] or "",
        ]
        for record in records
    ]  # fmt: skip
    return csv_text(heads, rows) if style == "csv" else markdown(heads, rows, left=len(heads))


def _paragraph(record: dict[str, Any], out_unit: str | None) -> str:
    lines = [f"{printable(record['name'])}: {record['verdict']}", f"  {record['summary']}"]
    if record["findings"]:
        lines.append(f"  also: {', '.join(record['findings'])}")
    lines += [f"  {one['test']}: {one['finding']}" for one in record["evidence"]]
    lines += [f"  {note}" for note in record["notes"]]
    for stall in record["stalls"][:_SHOWN_STALLS]:
        lines.append(
            f"  stall from {stall['start']:.3f} s to {stall['end']:.3f} s, worst {_time(stall['worst'])}, "
            f"{format_count(stall['missing'])} requests not sent meanwhile"
        )
    if len(record["stalls"]) > _SHOWN_STALLS:
        lines.append(f"  and {format_count(len(record['stalls']) - _SHOWN_STALLS)} more stalls")
    if record["expected_interval"]:
        lines.append(f"  expected interval {_time(record['expected_interval'])}")
    lines += _percentiles(record, out_unit)
    return "\n".join([*lines, *([f"  {record['ask']}"] if record["ask"] else [])])


def diagnosis_html(found: Diagnosis) -> str:
    """Return a diagnosis as HTML without scripts: the verdict, its reason and evidence, raw and corrected percentiles.

    Examples
    --------
    >>> from latencykit.diagnose import diagnose
    >>> from latencykit.histogram import Histogram
    >>> "unknown" in diagnosis_html(diagnose(Histogram.of([1])))
    True
    """
    record = diagnosis_record(found.run.source or found.run.tool or "this measurement", found)
    quiet = f"style='color:{_GREY};font-size:85%'"
    lines = [f"{one['test']}: {one['finding']}" for one in record["evidence"]] + record["notes"] + [record["ask"]]
    if record["findings"]:
        lines.insert(0, f"also: {', '.join(record['findings'])}")
    below = "".join(f"<div {quiet}>{escape(printable(line, 400))}</div>" for line in lines if line)
    rows = "".join(
        f"<tr><td {quiet}>{_named(name)}</td><td style='text-align:right'>{_value(record, 'raw', name, _time)}</td>"
        f"<td style='text-align:right;color:{_COLOURS['clean']}'>{_value(record, 'corrected', name, _time)}</td></tr>"
        for name in record["raw"]
    )
    title = escape(printable(record["name"]))
    return (
        f"<div style='font-family:sans-serif;max-width:640px'><b>{title}: "
        f"<span style='color:{_COLOURS[found.verdict]}'>{found.verdict}</span></b>"
        f"<div>{escape(printable(found.summary, 300))}</div><table>{rows}</table>{below}</div>"
    )


def _percentiles(record: dict[str, Any], out_unit: str | None) -> list[str]:
    """Raw percentiles, and corrected ones beside them where there are any."""
    heads = ["", "as measured"]
    how = {"retime": "by the schedule", "backfill": "back-filled"}.get(record["method"])
    if record["corrected"] and how:
        heads.append(how)
    columns = [record["raw"], record["corrected"]][: len(heads) - 1]

    def show(value: float | None) -> str:
        return str(shown(value, "ns", "table", out_unit))

    kinds = ("raw", "corrected")[: len(columns)]
    rows = [[_named(name), *(_value(record, kind, name, show) for kind in kinds)] for name in record["raw"]]
    return [f"  {line}" for line in text_table(heads, rows).splitlines()] if rows else []


def _value(record: dict[str, Any], kind: str, name: str, show: Callable[[float | None], str]) -> str:
    """A percentile of the raw or the corrected counts: a range where the source says no more."""
    ends = record[f"{kind}_ranges"].get(name)
    return show(record[kind].get(name)) if ends is None else format_range(ends["low"], ends["high"], show)


def _named(percentile: str) -> str:
    return "max" if percentile == "100" else f"p{percentile}"


def _time(value: float | None) -> str:
    return "" if value is None else format_duration(float(value))
