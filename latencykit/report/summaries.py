"""Series records as text: a table for the terminal, Markdown or CSV."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from latencykit.report.record import TRIMMED
from latencykit.report.tables import csv_text, markdown, text_table
from latencykit.report.values import shown
from latencykit.stats.percentiles import is_resolved
from latencykit.units import (
    NANOSECONDS,
    format_count,
    format_percentile,
    format_range,
    format_row,
    printable,
    sure_percentile,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FEW = 6
_BRACKETS = "(in brackets: sample too small for this percentile)"
_RANGES = "(a–b: between these, the source says no more)"

__all__ = ["intervals_text", "legend", "summary_text"]


def summary_text(records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None) -> str:
    """Return one row a series: count, failures, percentiles, maximum, mean, and the highest supported percentile.

    A percentile in brackets is not supported by the sample: it is one of its largest values in disguise. A range is what
    the source says, where that is no number. CSV has the upper end of a range, and names the columns that are supported
    and resolved.
    """
    wanted = sorted({row["percentile"] for record in records for row in record["percentiles"]})
    below = [p for p in wanted if p < 100]
    bad = any(record["failed"] or record["timeouts"] for record in records)
    unit = f" ({_unit(records, out_unit)})" if style == "csv" else ""
    header = [
        "series",
        "requests",
        *(["failed", "timeouts"] if bad else []),
        *(f"p{format_percentile(p)}{unit}" for p in below),
    ]
    header += [f"max{unit}", f"mean{unit}", f"tm99{unit}", "highest supported"]
    rows = [_row(record, below, bad, style, out_unit) for record in records]
    if style == "csv":
        return csv_text([*header, "supported", "resolved"], rows)
    text = (markdown if style == "markdown" else text_table)(header, [[str(cell) for cell in row] for row in rows])
    if style == "markdown":
        return text
    return "\n".join([text, *legend(cell for row in rows for cell in row), *_what_to_know(records, out_unit)])


def legend(cells: Iterable[object]) -> list[str]:
    """Return what brackets and ranges among the cells of a table mean, where there are any.

    Examples
    --------
    >>> legend(["(5 ms)"]), legend(["5 ms"])
    (['(in brackets: sample too small for this percentile)'], [])
    """
    texts = [str(cell) for cell in cells]
    found = [_BRACKETS] if any(text.startswith("(") and text.endswith(")") for text in texts) else []
    return [*found, _RANGES] if any(re.search(r"\d[^ ]*( [nµm]?s)?–\d|≤ \d", text) for text in texts) else found


def _unit(records: Sequence[dict[str, Any]], out_unit: str | None) -> str:
    """The unit of a CSV's numbers, for its header."""
    units = {out_unit if out_unit and record["unit"] in NANOSECONDS else record["unit"] for record in records}
    return "/".join(sorted(unit if unit in NANOSECONDS else "no unit" for unit in units))


def _what_to_know(records: Sequence[dict[str, Any]], out_unit: str | None) -> list[str]:
    """What the tails rest on, and what trimmed statistics leave out; of many series only what was asked for."""
    said = []
    for record in records:
        name = f"{printable(record['name'])}: " if len(records) > 1 else ""
        if record["rests_on"] and len(records) <= _FEW:
            said.append(f"{name}{record['rests_on']}")
        for spec, trim in record["trimmed"].items():
            if spec not in TRIMMED or (spec == "tm99" and len(records) <= _FEW):
                value = _trim_text(trim, record["unit"], out_unit)
                form, _, meaning = trim["definition"].partition(": ")
                said.append(f"{name}{spec} = {value}, the {meaning} ({form}); leaves out {trim['leaves_out']}")
    return said


def _trim_text(trim: dict[str, Any], unit: str, out_unit: str | None) -> str:
    """A trimmed statistic: a number where it is known within a tenth, else a range."""
    share = trim["definition"].startswith("PR")
    plain = share or trim["definition"].startswith("TC")

    def show(value: float) -> str:
        return f"{value:.4g}" if share else str(shown(value, "none" if plain else unit, "table", out_unit))

    # Of a share, what is left of 100 % is as much of a statement as what is not.
    known = trim["resolved"] and (not share or is_resolved(100 - (trim["high"] or 0), 100 - (trim["low"] or 0)))
    if trim["value"] is None and trim["low"] is None and trim["high"] is None:
        return "nothing"
    return (show(trim["value"]) if known else format_range(trim["low"], trim["high"], show)) + (" %" if share else "")


def _row(record: dict[str, Any], below: list[float], bad: bool, style: str, out_unit: str | None) -> list[Any]:
    def show(value: float | None) -> Any:
        return shown(value, record["unit"], style, out_unit)

    def known(name: str, value: float | None, ends: dict[str, Any] | None) -> Any:
        at_least = name == "max" and record["max_at_least"]
        if style == "csv":
            return show(value)
        if ends is not None:
            return format_range(ends["low"], ends["high"], show)
        return f"≥ {show(value)}" if at_least else show(value)

    held = {row["percentile"]: row for row in record["percentiles"]}
    cells: list[Any] = [
        record["name"],
        record["count"] if style == "csv" else format_count(record["count"] or 0) if record["count"] is not None else "",
    ]
    cells += [record["failed"], record["timeouts"]] if bad else []
    for p in below:
        row = held.get(p)
        cells.append(show(None) if row is None else show(row["value"]) if style == "csv" else format_row(row, show))
    cells += [known(name, record[name], record["ranges"].get(name)) for name in ("max", "mean")]
    trim = record["trimmed"].get("tm99")
    cells.append(known("tm99", record["trimmed_means"].get("tm99"), trim if trim and not trim["resolved"] else None))
    supported = record["highest_supported_percentile"]
    if style != "csv":
        return [*cells, f"p{format_percentile(sure_percentile(supported))}" if supported else ""]
    named = [(f"p{format_percentile(p)}", row) for p, row in sorted(held.items())]
    flags = [" ".join(name for name, row in named if row[flag]) for flag in ("supported", "resolved")]
    return [*cells, None if supported is None else f"{supported:.6f}", *flags]


def intervals_text(records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None) -> str:
    """Return one row an interval of every series; brackets and ranges are those of `summary_text`."""
    names = list(dict.fromkeys(p for record in records for row in record["intervals"] for p in row["percentiles"]))
    unit = f" ({_unit(records, out_unit)})" if style == "csv" else ""
    header = ["series", "start", "length", "requests", *(f"p{name}{unit}" for name in names), f"max{unit}"]
    rows: list[list[Any]] = []
    for record in records:
        for row in record["intervals"]:
            values = [_interval_cell(row, name, record["unit"], style, out_unit) for name in names]
            last = _interval_cell(row, "max", record["unit"], style, out_unit)
            flags = [
                " ".join(
                    f"p{name}"
                    for name, value in row["percentiles"].items()
                    if value is not None and float(name) <= row["supported_up_to"]
                ),
                " ".join(
                    f"p{name}" for name, value in row["percentiles"].items() if value is not None and name not in row["ranges"]
                ),
            ]
            more = flags if style == "csv" else []
            rows.append([record["name"], row["start"], row["length"], row["count"], *values, last, *more])
    if style == "csv":
        return csv_text([*header, "supported", "resolved"], rows)
    texts = [[str(row[0]), f"{row[1]:.3f}", f"{row[2]:.3f}", format_count(row[3]), *map(str, row[4:])] for row in rows]
    if style == "markdown":
        return markdown(header, texts)
    return "\n".join([text_table(header, texts), *legend(cell for row in texts for cell in row)])


def _interval_cell(row: dict[str, Any], name: str, unit: str, style: str, out_unit: str | None) -> Any:
    value, ends = row["max"] if name == "max" else row["percentiles"].get(name), row["ranges"].get(name)
    if style == "csv":
        return shown(value, unit, style, out_unit)
    fields = {"value": value, "resolved": ends is None, "supported": name == "max" or float(name) <= row["supported_up_to"]}
    low, high = (ends["low"], ends["high"]) if ends else (value, value)
    return format_row(fields | {"bucket_low": low, "bucket_high": high}, lambda one: str(shown(one, unit, style, out_unit)))
