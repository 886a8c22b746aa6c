"""Damaged rows of a table: where they stand, what they say, and how that is told."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from latencykit.errors import CorruptInputError
    from latencykit.formats.base import ReadOptions, Source

__all__ = ["Locate", "parser_error", "refuse_rows", "rows_in", "skipped_lines"]

Locate = Callable[["Sequence[int]"], "list[tuple[int | None, str]]"]
"""From numbers of rows to where they stand (a line, if there are lines) and what they say."""

_TOLD = 20


def refuse_rows(rows: Sequence[int], locate: Locate, source: Source, options: ReadOptions, seen: str, expected: str) -> None:
    """Raise for the first of damaged rows; under ``lenient`` report each, or their number where they are many."""
    told = rows[:_TOLD] if options.lenient else rows[:1]
    for line, text in locate(told):
        options.damaged(source.corrupt(line, f"{seen}: {printable(text)!r}", expected, "--lenient skips the line"))
    if len(rows) > len(told):
        options.report(f"skipped: {source.shown}: {len(rows) - len(told):,} more rows like these")


def rows_in(
    lines: Iterator[str], first: int, skip: int, sep: str, comment: str | None, rows: Sequence[int]
) -> list[tuple[int | None, str]]:
    """Return line and text of some rows, ascending, of lines of which the first has the number `first`."""
    found: list[tuple[int | None, str]] = []
    wanted, row = iter(rows), -1
    next_row = next(wanted, None)
    for _ in range(skip):
        next(lines, "")
    reader = csv.reader(lines, delimiter=sep if sep != " " else "\0")
    before = first - 1 + skip
    for fields in _until_error(reader):
        if next_row is None:
            break
        start, before = before + 1, first - 1 + skip + reader.line_num
        if not any(fields) or (comment and fields[0].startswith(comment)):
            continue
        row += 1
        if row == next_row:
            found.append((start, sep.join(fields)))
            next_row = next(wanted, None)
    return found + [(None, "")] * (len(rows) - len(found))


def _until_error(reader: Any) -> Iterator[list[str]]:
    """The rows up to one that Python's own parser refuses, such as one with a field of a megabyte."""
    while True:
        try:
            yield next(reader)
        except (StopIteration, csv.Error):
            return


def parser_error(source: Source, text: str, first: int) -> CorruptInputError:
    """Return pandas' error about a table that begins in line `first`, in our words."""
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", text)
    if found:
        line = int(found[2]) + first - 1
        return source.corrupt(line, f"a row of {found[3]} fields", f"{found[1]}", "--lenient skips the line")
    found = re.search(r"inside string starting at row (\d+)", text)
    seen = "a quote is opened and not closed" if found else f"the table is damaged ({printable(text, 80)})"
    return source.corrupt(int(found[1]) + first if found else None, seen, "", "")


def skipped_lines(messages: Iterable[str], first: int) -> Iterator[str]:
    """Yield ``:7: expected 5 fields, saw 9`` for each line that pandas skipped."""
    for message in messages:
        for number, seen in re.findall(r"[Ll]ine (\d+): (.*)", message):
            yield f":{int(number) + first - 1}: {seen.strip()}"
