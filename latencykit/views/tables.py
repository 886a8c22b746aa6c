"""Rows of text as a table for a terminal, as Markdown, or as CSV."""

from __future__ import annotations

import csv
import io
import math
import unicodedata
from typing import TYPE_CHECKING, Any

from latencykit.units import NANOSECONDS, format_value, guarded, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["csv_text", "markdown", "shown", "styled", "text_table"]


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return rows in aligned columns; the first `left` columns are flush left, numbers flush right."""
    cells = [[printable(cell, 80) for cell in row] for row in (header, *rows)]
    widths = [max(_width(row[k]) for row in cells) for k in range(len(header))]
    lines = []
    for row in cells:
        padded = [
            cell + " " * (widths[k] - _width(cell))
            if k < left
            else " " * (widths[k] - _width(cell)) + cell
            for k, cell in enumerate(row)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return rows as a Markdown table."""

    def line(cells: Sequence[str]) -> str:
        return (
            "| "
            + " | ".join(
                printable(cell, 200).replace("|", "\\|").replace("<", "&lt;") for cell in cells
            )
            + " |"
        )

    rule = "|" + "|".join("---" if k < left else "--:" for k in range(len(header))) + "|"
    return "\n".join([line(header), rule, *(line(row) for row in rows)])


def csv_text(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows as CSV (RFC 4180 quoting, line feeds)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(
        [
            [
                "" if cell is None else guarded(cell) if isinstance(cell, str) else cell
                for cell in row
            ]
            for row in rows
        ]
    )
    return out.getvalue().rstrip("\n")


def styled(
    style: str,
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    plain: Sequence[Sequence[object]],
    left: int = 1,
) -> str:
    """Return rows as a table, as Markdown, or as CSV, of which the last takes `plain`: the same rows with bare numbers."""
    if style == "csv":
        return csv_text(header, plain)
    return (markdown if style == "markdown" else text_table)(
        header, [[str(cell) for cell in row] for row in rows], left
    )


# ------------------------------------------------------------
# Values in cells of tables.


def shown(value: float | None, unit: str, style: str = "table", out_unit: str | None = None) -> Any:
    """Return a value for a cell: a bare number in CSV and where a unit is asked for, else with the unit that suits it."""
    if value is None or math.isnan(value):
        return None if style == "csv" else ""
    if out_unit is not None and unit in NANOSECONDS:
        scaled = value * NANOSECONDS[unit] / NANOSECONDS[out_unit]
        return scaled if style == "csv" else f"{scaled:,.6g} {out_unit}"
    return value if style == "csv" else format_value(value, unit)
