"""Tables of text: CSV, TSV, semicolons (with decimal commas), blanks; and one number per line."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from functools import cached_property, partial

from latencykit._records import record
from latencykit._text import printable
from latencykit.core.columns import Words, coded
from latencykit.io import writing as csv_out
from latencykit.io.build import EMPTY
from latencykit.io.raw.aggregates import looks_aggregated
from latencykit.io.raw.build_samples import build_data
from latencykit.io.raw.cells import (
    Sample,
    Style,
    kind_of,
    latency_columns,
    start_and_end,
    styles_of,
    with_point,
)
from latencykit.io.raw.columns import plan_of
from latencykit.io.raw.log_parts import sniff_requests
from latencykit.io.raw.outcomes import failure_in
from latencykit.io.rows import RowLayout, Table, refuse_twice, row_texts, table_chunks
from latencykit.io.source import Confidence, Data, DocumentSource, Head, ReadOptions, Source

_SAMPLE = 400  # rows that the decisions are based on
_SEPARATORS = ("\t", ";", "|", ",")
_NUMBER = re.compile(
    r"\s*+[-+]?(?:\d[\d_.,]*+|\.\d++)(?:[eE][-+]?\d++)?\s*+(?:(?:[nuµμm]?s|[num]?sec)\s*+)?"
)
_TITLES = 3  # lines above a header
_WIDEST = 2000  # columns; more are not a table of latencies
_DRAWN = frozenset(" 	|+:=│┃┆┌┬┐├┼┤└┴┘╞╪╡═─-")  # characters of a rule between rows
_TYPE = re.compile(r"[iuf]\d{1,2}|u?int\d{0,2}|str|bool(?:ean)?|double|float|varchar|bigint|-*")
_SEP_LINE = re.compile(r"sep=.")


@record()
class Dialect:
    """How a table is written."""

    sep: str  # ``" "`` stands for any run of blanks
    columns: tuple[str, ...]  # names from the header; ``1``, ``2`` … where there is none
    header: bool
    skip: int  # lines before the first row
    comment: str | None
    rows: tuple[tuple[str, ...], ...]  # the first rows

    @cached_property
    def styles(self) -> tuple[dict[str, Style], list[str]]:
        """The style of each column's numbers, and the columns whose style only others decide."""
        if self.sep == " ":
            return {}, []
        cells = {
            name: [row[k] for row in self.rows if k < len(row)]
            for k, name in enumerate(self.columns)
        }
        return styles_of(cells)

    def sample(self) -> Sample:
        """Return the first rows as text, numbers in the usual way."""
        columns = {}
        for k, name in enumerate(self.columns):
            cells = [row[k] if k < len(row) else "" for row in self.rows]
            style = self.styles[0].get(name, "plain")
            if style not in ("plain", "point"):
                cells = [with_point(cell, style) for cell in cells]
            columns[name] = Words.of([cell.strip() for cell in cells])
        return columns


def dialect_of(head: Head) -> Dialect | None:
    """Return how the head of a table is written, or None where it is not a table."""
    lines = without_bars(head.lines)
    comment = "#" if any(line.startswith("#") for line in lines) else None
    numbered = [
        (k, line)
        for k, line in enumerate(lines[: 3 * _SAMPLE])
        if line.strip() and not _SEP_LINE.fullmatch(line.strip())
    ]
    data = [(k, line) for k, line in numbered if not (comment and line.startswith("#"))]
    if not data or "\0" in head.text[:4096] or data[0][1].lstrip()[:1] in ("{", "["):
        return None
    at = data[0][0]
    above = [(k, line.lstrip("#").strip()) for k, line in numbered if k < at]
    try:
        # the last comment above a table may be its header
        if above:
            names = above[-1][1]
            table = _with_separator(names, [line for _, line in data], at - 1, comment)
            columns = [] if table is None else list(table.columns)
            if _are_readable(columns) and (len(columns) > 1 or " " not in names):  # else prose
                return table
        tables = (
            _with_separator(line, [row for _, row in data[k + 1 :]], number, comment)
            for k, (number, line) in enumerate(data[: 1 + _TITLES])
        )
        table = next(tables)
        if table is None or len(table.columns) > 1 or not table.header:
            return table
        return next(filter(_is_named, tables), table)  # below titles
    except csv.Error:
        return None


def without_bars(lines: list[str]) -> list[str]:
    """Return a drawn table's rows with bars between their cells only; others as they are."""
    # Of Markdown, and of clients of databases. Its other lines are blank, so that numbers of lines
    # stay what they were.
    rules = "".join(line for line in lines[:20] if _is_rule(line))
    if not rules:
        return lines
    if not re.search("[|+┌┼┴╪]", rules):  # blanks between the columns
        return ["" if _is_rule(line) else line for line in lines]
    drawn = (re.sub("[│┃┆┌┬┐]", "|", line).strip() for line in lines)
    cells = ([cell.strip(" `*─") for cell in line.strip("|").split("|")] for line in drawn)
    rows = (row if len(row) > 1 and "".join(row).strip("-: ") else [] for row in cells)
    # Polars and DuckDB print the types of columns below their names.
    return ["" if all(map(_TYPE.fullmatch, row)) else "|".join(row) for row in rows]


def _is_rule(line: str) -> bool:
    return line[:1] == "┌" or bool(re.search("--|──|==", line) and _DRAWN.issuperset(line))


def _is_named(table: Dialect | None) -> bool:
    """True if the header of a table names latencies among other columns."""
    if table is None or not table.header or len(table.columns) < 2 or table.sep == " ":
        return False
    return bool(latency_columns(table.columns)[0] or start_and_end(table.columns))


def _are_readable(names: list[str]) -> bool:
    """True if names are those of a table that can be read."""
    return bool(latency_columns(names)[0] or start_and_end(names)) or looks_aggregated(names)


def _with_separator(first: str, body: list[str], at: int, comment: str | None) -> Dialect | None:
    for sep in (*_SEPARATORS, " "):
        names = first.split() if sep == " " else next(csv.reader([first], delimiter=sep), [])
        if not 2 <= len(names) <= _WIDEST:
            continue
        if sep == " ":
            numbers = all(map(_NUMBER.fullmatch, names))
            if _NUMBER.fullmatch(first) or not (numbers or _are_readable(names)):  # 5.2 ms
                continue
        rows = [line.split() for line in body] if sep == " " else [*csv.reader(body, delimiter=sep)]
        rows = [row for row in rows if any(row)][:_SAMPLE]
        if sum(len(row) == len(names) for row in rows) >= 0.5 * len(rows):
            return _headed(sep, names, rows, at, comment)
    rows = [[line] for line in body][:_SAMPLE]
    decimal = any("," in line and '"' not in line for line in body)
    unused = (sep for sep in (";", "|", "\t") if decimal and not any(sep in line for line in body))
    return _headed(next(unused, ","), [first], rows, at, comment)


def _headed(
    sep: str, names: list[str], rows: list[list[str]], at: int, comment: str | None
) -> Dialect:
    header = names[0] == "series" or not any(_NUMBER.fullmatch(name) for name in names)
    if not header:
        rows, names = [names, *rows], [str(k + 1) for k in range(len(names))]
    names = [name.strip().strip('"').strip() or f"column {k}" for k, name in enumerate(names, 1)]
    return Dialect(sep, tuple(names), header, at + header, comment, tuple(map(tuple, rows)))


def _share_of_numbers(dialect: Dialect) -> float:
    """The share of rows with a number in them."""
    fitting = sum(any(map(_NUMBER.fullmatch, row)) for row in dialect.rows)
    return fitting / max(len(dialect.rows), 1)


def sniff_csv(head: Head) -> Confidence:
    """Recognise a table with numbers in it."""
    dialect = dialect_of(head)
    if dialect is None or (len(dialect.columns) == 1 and not dialect.header):
        return Confidence.NO
    if _share_of_numbers(dialect) < 0.5:  # a latency may be PT0.5S, 00:00:00.5 or the like
        columns = dialect.columns if dialect.header else ()
        bounds, names = start_and_end(columns), latency_columns(columns)[0]
        sample = dialect.sample() if bounds or names else {}
        kinds = ("moment",) if bounds else ("span", "number")
        if not any(kind_of(sample[part.column]) in kinds for part in bounds or names):
            return Confidence.NO
    if dialect.sep == " " and not looks_aggregated(dialect.columns):
        from latencykit.io import percentile_lines

        if percentile_lines.sniff(head):  # ``p99: 1234 us``, below ``Latency Distribution``
            return Confidence.NO
    if not dialect.header and sniff_requests(head):  # ``GET / 200 4 ms``
        return Confidence.NO
    return Confidence.GENERIC


def has_header_alone(head: Head) -> bool:
    """True if a text that no reader knows is the header of a table without rows, or empty ones."""
    dialect = dialect_of(head)
    if dialect is None or not dialect.header:
        return False
    if any(cell.strip() not in EMPTY for row in dialect.rows for cell in row):
        return False
    names = list(dialect.columns)
    return _are_readable(names) or (head.suffix in (".csv", ".tsv") and len(names) > 1)


def sniff_numbers(head: Head) -> Confidence:
    """Recognise a column of numbers without a header."""
    dialect = dialect_of(head)
    if dialect is None or len(dialect.columns) > 1 or dialect.header:
        return Confidence.NO
    return Confidence.GENERIC if _share_of_numbers(dialect) >= 0.8 else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the rows, a chunk at a time."""
    if without_bars(source.head.lines) is not source.head.lines:
        text = "\n".join(without_bars(source.text().splitlines()))
        return read(DocumentSource(source, text.encode("utf-8", "surrogateescape"), 0), options)
    dialect = dialect_of(source.head)
    if dialect is None or not dialect.rows:
        seen = "it contains no row of a table"
        if dialect is not None:
            seen = f"a header ({printable(', '.join(dialect.columns), 50)}) and no rows"
        expected = "a header and rows, or one number per line"
        raise source.corrupt(1, seen, expected, "did the measurement write any?")
    refuse_twice(dialect.columns, source)
    plan = plan_of(dialect.sample(), options, source)
    used = (*plan.numbers, *plan.numbers_as_words)
    styles, decided = dialect.styles
    local = {name: styles[name] for name in used if styles.get(name) in _MEANT}
    for name in used:
        if styles.get(name) in ("unclear", "mixed"):
            k = dialect.columns.index(name)
            cells = (row[k].strip() for row in dialect.rows if k < len(row))
            shown = printable(", ".join(c for c in cells if "," in c or "." in c)[:40], 50)
            seen = (
                f"numbers of column {name!r} may have a decimal comma, or grouped digits ({shown})"
            )
            expected, hint = "one kind of number in a column", "write 1234 or 1.234"
            raise source.corrupt(dialect.skip + 1, seen, expected, hint)
    numbers = tuple(name for name in plan.numbers if name not in local)
    words = (*plan.words, *(name for name in plan.numbers if name in local))
    layout = RowLayout(
        dialect.columns, numbers, words, dialect.sep, dialect.skip, optional=numbers,
        comment=dialect.comment, na=EMPTY, largest=dict.fromkeys(numbers, 2.0**63), exact=True,
        totalled=plan.shape is None, failures={plan.duration: failure_in},
    )  # fmt: skip
    notes = [
        f"column {name!r}: {_MEANT[local[name]]}, as in the other columns"
        for name in decided
        if name in local
    ]

    def usual(table: Table) -> Table:
        """Numbers in the usual style."""
        columns = dict(table.columns)
        for name, style in local.items():
            codes, words = coded(table[name])
            columns[name] = Words.named(codes, [with_point(word, style) for word in words])
        return replace(table, columns=columns)

    frames = map(usual, table_chunks(source, options, layout, notes))
    return build_data(frames, plan, options, source, partial(row_texts, source, layout), notes)


_MEANT = {"comma": "1,234 is taken as 1.234", "grouped": "1,234 is taken as 1234"}


FORMATS = {"csv": (sniff_csv, read, csv_out.write_csv), "numbers": (sniff_numbers, read)}
