"""Series records as text: a table for the terminal, Markdown or CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.report.record import TRIMMED
from latencykit.report.tables import csv_text, markdown, text_table
from latencykit.report.values import shown
from latencykit.units import format_count, format_percentile, printable, sure_percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEW = 6

__all__ = ["intervals_text", "summary_text"]


def summary_text(records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None) -> str:
    """Return one row a series: count, failures, percentiles, maximum, mean, and the highest supported percentile.

    A percentile in brackets is not supported by the sample: it is one of its largest values in disguise.
    """
    wanted = sorted({row["percentile"] for record in records for row in record["percentiles"]})
    below = [p for p in wanted if p < 100]
    bad = any(record["failed"] or record["timeouts"] for record in records)
    header = [
        "series",
        "requests",
        *(["failed", "timeouts"] if bad else []),
        *(f"p{format_percentile(p)}" for p in below),
    ]
    header += ["max", "mean", "tm99", "trust up to"]
    rows = [_row(record, below, bad, style, out_unit) for record in records]
    if style == "csv":
        return csv_text(header, rows)
    text = (markdown if style == "markdown" else text_table)(header, [[str(cell) for cell in row] for row in rows])
    if style == "markdown":
        return text
    unsupported = any(not row["supported"] and row["percentile"] < 100 for record in records for row in record["percentiles"])
    below_it = ["(in brackets: more than so many requests can support)"] if unsupported else []
    return "\n".join([text, *below_it, *_what_to_know(records, out_unit)])


def _what_to_know(records: Sequence[dict[str, Any]], out_unit: str | None) -> list[str]:
    """What the tails rest on, and what trimmed statistics leave out; of many series only what was asked for."""
    said = []
    for record in records:
        name = f"{printable(record['name'])}: " if len(records) > 1 else ""
        if record["rests_on"] and len(records) <= _FEW:
            said.append(f"{name}{record['rests_on']}")
        for spec, trim in record["trimmed"].items():
            if spec not in TRIMMED or (spec == "tm99" and len(records) <= _FEW):
                unit = "none" if trim["definition"][:2] in ("PR", "TC") else record["unit"]
                value = shown(trim["value"], unit, "table", out_unit) or "nothing"
                form, _, meaning = trim["definition"].partition(": ")
                said.append(f"{name}{spec} = {value}, the {meaning} ({form}); leaves out {trim['leaves_out']}")
    return said


def _row(record: dict[str, Any], below: list[float], bad: bool, style: str, out_unit: str | None) -> list[Any]:
    def show(value: float | None) -> Any:
        return shown(value, record["unit"], style, out_unit)

    held = {row["percentile"]: row for row in record["percentiles"]}
    cells: list[Any] = [
        record["name"],
        record["count"] if style == "csv" else format_count(record["count"] or 0) if record["count"] is not None else "",
    ]
    cells += [record["failed"], record["timeouts"]] if bad else []
    for p in below:
        row = held.get(p)
        text = show(None if row is None else row["value"])
        if row is not None and style != "csv":
            text = f"≥ {text}" if row["high"] is None and row["bucket_low"] is not None and _open(record, row) else text
            text = text if row["supported"] else f"({text})"
        cells.append(text)
    supported = record["highest_supported_percentile"]
    top, trust = show(record["max"]), ""
    if supported is not None:
        trust = f"{supported:.6f}" if style == "csv" else f"p{format_percentile(sure_percentile(supported))}"
    return [
        *cells,
        f"≥ {top}" if record["max_at_least"] and style != "csv" else top,
        show(record["mean"]),
        show(record["trimmed_means"].get("tm99")),
        trust,
    ]


def _open(record: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether the percentile reaches censored values: its bound is above all that was counted."""
    return record["max"] is not None and row["value"] is not None and row["value"] > record["max"]


def intervals_text(records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None) -> str:
    """Return one row an interval of every series."""
    names = list(dict.fromkeys(p for record in records for row in record["intervals"] for p in row["percentiles"]))
    header = ["series", "start", "length", "requests", *(f"p{name}" for name in names), "max"]
    rows: list[list[Any]] = []
    for record in records:
        for row in record["intervals"]:
            values = [shown(row["percentiles"].get(name), record["unit"], style, out_unit) for name in names]
            last = shown(row["max"], record["unit"], style, out_unit)
            rows.append([record["name"], row["start"], row["length"], row["count"], *values, last])
    if style == "csv":
        return csv_text(header, rows)
    texts = [[str(row[0]), f"{row[1]:.3f}", f"{row[2]:.3f}", format_count(row[3]), *map(str, row[4:])] for row in rows]
    return (markdown if style == "markdown" else text_table)(header, texts)
