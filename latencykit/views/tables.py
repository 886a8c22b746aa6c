"""Tables for a terminal, as Markdown and as CSV from the same rows; and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from latencykit._text import guarded, markdown_text, printable, shorten, terminal_width, text_width
from latencykit.units import (
    NANOSECONDS,
    format_percentile,
    format_range,
    format_row,
    percentile_name,
)
from latencykit.views import values

MOST_ROWS = 13
"""Rows of a table for a terminal of 24 lines, where a file has as many series as it likes."""

Cell = str | float | bool | None
"""A value of CSV, or a text for people."""


class Table:
    """Rows of a table as text for a terminal, as Markdown, or as CSV."""

    # A row names its cells by the headings of their columns. Its methods make the cells: bare
    # values for CSV, and texts with units, brackets and ranges for people.

    def __init__(
        self,
        style: str = "table",
        out_unit: str | None = None,
        header: Sequence[str] = (),
        *,
        code: bool = False,  # text between backticks is code in Markdown
    ) -> None:
        self._style, self._out_unit, self._header = style, out_unit, list(header)
        self._code = code
        self._rows: list[list[Cell]] = []
        self._percentiles: list[values.PercentileRecord | values.UserPercentileRecord] = []

    def add(self, row: Mapping[str, Cell]) -> None:
        """Add a row; all rows have the same headings."""
        self._header = self._header if self._rows else list(row)
        self._rows.append(list(row.values()))

    def either(self, value: Cell, text: Cell) -> Cell:
        """Return `value` for CSV, otherwise `text`."""
        return value if self._style == "csv" else text

    def value(self, value: float | None, unit: str) -> Cell:
        """Return a cell with one value."""
        if self._style == "csv":
            return values.bare_value(value, unit, self._out_unit)
        return values.value_text(value, unit, self._out_unit)

    def percentile(
        self, row: values.PercentileRecord | values.UserPercentileRecord | None, unit: str
    ) -> Cell:
        """Return a percentile: in brackets if not supported, a range if not resolved."""
        if row is None or self._style == "csv":
            return self.value(None if row is None else row["value"], unit)
        self._percentiles.append(row)
        return format_row(row, partial(values.value_text, unit=unit, out_unit=self._out_unit))

    def bounded(
        self, value: float | None, bounds: values.Span | values.TrimmedRecord | None, unit: str
    ) -> Cell:
        """Return a cell with a value, or with the range that is known of it."""
        if bounds is None or self._style == "csv":
            return self.value(value, unit)
        show = partial(values.value_text, unit=unit, out_unit=self._out_unit)
        return format_range(bounds["low"], bounds["high"], show)

    def flags(
        self, rows: Iterable[values.PercentileRecord | values.UserPercentileRecord]
    ) -> dict[str, str]:
        """Return the columns of CSV that name the supported and the resolved percentiles."""
        if self._style != "csv":
            return {}
        named = [(f"p{format_percentile(row['percentile'])}", row) for row in rows]
        return {
            "supported": " ".join(name for name, row in named if row["supported"]),
            "resolved": " ".join(name for name, row in named if row["resolved"]),
        }

    def render(
        self,
        *,
        left: int = 1,
        optional: Sequence[str] = (),
        most: int | None = None,
        causes: bool = False,
        left_out: int = 0,
        indent: int = 0,
    ) -> str:
        """Return the table; the first `left` columns are flush left."""
        # For a terminal it is fitted, less an `indent`: see `fitted` for `optional` columns, and of
        # more than `most` rows the first ones are shown; `left_out` more series have no rows. With
        # `causes`, a line below it names those of the brackets.
        if self._style == "csv":
            # Rows as CSV (RFC 4180 quoting, line feeds).
            out = io.StringIO()
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(self._header)
            writer.writerows(
                [guarded(cell) if isinstance(cell, str) else cell for cell in row]
                for row in self._rows
            )
            return out.getvalue().rstrip("\n")
        cells = [["" if cell is None else str(cell) for cell in row] for row in self._rows]
        if self._style == "markdown":
            lines = []
            for row in (self._header, *cells):
                safe = (markdown_text(printable(cell, 200), code=self._code) for cell in row)
                lines.append(f"| {' | '.join(safe)} |")
            columns = ("---" if k < left else "--:" for k in range(len(self._header)))
            return "\n".join([lines[0], f"|{'|'.join(columns)}|", *lines[1:]])
        fits = most is None or len(cells) + bool(left_out) <= most
        shown = cells if fits or most is None else cells[: most - 1]
        header, *rows = ([printable(cell, 80) for cell in row] for row in (self._header, *shown))
        text = fitted(header, rows, left, terminal_width() - indent, optional)
        if left_out:
            names = {row[0] for row in cells[len(shown) :]} - {row[0] for row in shown}
            text += f"\nand {len(names) + left_out:,} more series: --format csv has all"
        elif len(shown) < len(cells):
            text += f"\nand {len(cells) - len(shown):,} more rows: --format csv has all"
        names = set(text.split())
        seen = [row for row in self._percentiles if percentile_name(row["percentile"]) in names]
        if causes and (why := values.causes_text(seen)):
            text += f"\n(in brackets: uncertain; {why})"
        return text


# ------------------------------------------------------------
# JSON.

_encode = json.JSONEncoder(allow_nan=False).encode


def json_text(value: Any, indent: str = "") -> str:
    """Return JSON with one record per line; only what contains lists of records is indented."""
    inner = f"{indent} "
    if _is_table(value):
        nested = any(map(_is_table, value[0].values()))
        lines = [inner + (json_text(row, inner) if nested else _encode(row)) for row in value]
        return "\n".join(["[", ",\n".join(lines), f"{indent}]"])
    if isinstance(value, dict) and (not indent or any(map(_is_table, value.values()))):
        lines = [f"{inner}{_encode(str(k))}: {json_text(part, inner)}" for k, part in value.items()]
        return "\n".join(["{", ",\n".join(lines), f"{indent}}}"])
    return _encode(value)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and isinstance(value[0], dict)


# ------------------------------------------------------------
# Fitting a table into a terminal: its columns, and the names in it.

_NAME, _LEAST = 16, 8
"""Columns that a name keeps before columns are dropped, and in any case."""

_GAP = "  "


def _short_texts(texts: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return texts that take at most `widths` columns, distinct where the texts are."""
    short = [shorten(text, width) for text, width in zip(texts, widths, strict=True)]
    distinct = list(dict.fromkeys(texts))
    if len({*short}) >= len(distinct):
        return short
    from latencykit.plot.style import short_names

    named = dict(zip(distinct, short_names(distinct, min(widths)), strict=True))
    return [shorten(named[text], width) for text, width in zip(texts, widths, strict=True)]


def fitted(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: int,
    width: int,
    optional: Sequence[str] = (),
) -> str:
    """Return rows in aligned columns that take at most `width` columns of a terminal."""
    # The first `left` columns are flush left, and their texts may be shortened. Where that is not
    # enough, `optional` columns are left out, the first ones first; then a name that all rows share
    # becomes a heading; at last there is one line per statistic instead of a column.
    table = [list(row) for row in (header, *rows)]
    names, kept = min(left, len(header)), list(range(len(header)))

    def room(least: int) -> int:
        sizes = [max(text_width(row[k]) for row in table) for k in kept]
        floors = [
            min(size, least) if k < names else size for k, size in zip(kept, sizes, strict=True)
        ]
        return width - sum(floors) - len(_GAP) * (len(kept) - 1)

    kept = [k for k in kept if not k or not rows or any(row[k] for row in table[1:])]
    expendable = [k for name in optional for k in kept if header[k] == name]
    if room(10**6) < 0:
        for k in expendable:
            if room(_NAME if left < len(header) else 2 * _NAME) >= 0:
                break
            kept.remove(k)
    heading: list[str] = []
    if room(_NAME) < 0 and len(kept) > 2 and len({row[kept[0]] for row in table[1:]}) == 1:
        heading = [shorten(table[1][kept.pop(0)], width)]
    if room(_LEAST) < 0:
        columns = _one_line_per_column([[row[k] for k in kept] for row in table], width)
        return "\n".join([*heading, columns])
    while room(10**6) < 0:  # the widest name gives way
        widest = max(
            (k for k in kept if k < names), key=lambda k: max(text_width(row[k]) for row in table)
        )
        size = max(text_width(row[widest]) for row in table)
        others = [
            max(text_width(row[k]) for row in table) for k in kept if k < names and k != widest
        ]
        target = max(_LEAST, size + room(10**6), *(other - 1 for other in others if other < size))
        size = min(target, size - 1)
        texts = _short_texts([row[widest] for row in table[1:]], [size] * len(rows))
        for row, text in zip(table, [shorten(table[0][widest], size), *texts], strict=True):
            row[widest] = text
    return "\n".join(
        [*heading, _aligned([[row[k] for k in kept] for row in table], sum(k < left for k in kept))]
    )


def _aligned(table: Sequence[Sequence[str]], left: int) -> str:
    sizes = [[text_width(cell) for cell in row] for row in table]
    widths = [max(column) for column in zip(*sizes, strict=True)]
    lines = []
    for row, used in zip(table, sizes, strict=True):
        spaces = [" " * (width - size) for width, size in zip(widths, used, strict=True)]
        padded = [
            cell + space if k < left else space + cell
            for k, (cell, space) in enumerate(zip(row, spaces, strict=True))
        ]
        lines.append(_GAP.join(padded).rstrip())
    return "\n".join(lines)


def _one_line_per_column(table: Sequence[Sequence[str]], width: int) -> str:
    """A line per column and a column per row, as many side by side as fit."""
    header, *rows = table
    if len(rows) > 1:  # names no wider than their numbers
        widths = [max(_NAME, *map(text_width, row[1:])) for row in rows]
        texts = _short_texts([row[0] for row in rows], widths)
        rows = [[text, *row[1:]] for text, row in zip(texts, rows, strict=True)]
    label = min(max(map(text_width, header)), width // 2)
    parts: list[list[Sequence[str]]] = [[]]
    used = label
    for row in rows:
        size = len(_GAP) + min(max(map(text_width, row)), width - label - len(_GAP))
        if parts[-1] and used + size > width:
            parts.append([])
            used = label
        parts[-1].append(row)
        used += size
    most = width - label - len(_GAP)
    return "\n\n".join(
        _aligned(
            [
                [shorten(cell, label if not k else most) for k, cell in enumerate(line)]
                for line in zip(header, *part, strict=True)
            ],
            1,
        )
        for part in parts
    )


def csv_unit(records: Iterable[Mapping[str, Any]], style: str, out_unit: str | None) -> str:
    """Return the unit of a CSV's numbers, for its header."""
    if style != "csv":
        return ""
    units = {
        out_unit if out_unit and record["unit"] in NANOSECONDS else record["unit"]
        for record in records
    }
    return f" ({'/'.join(sorted(unit if unit in NANOSECONDS else 'no unit' for unit in units))})"
