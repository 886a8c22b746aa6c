"""Damaged lines: where they stand, what they say, how many of which kind there are, and how that is told."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from latencykit.units import format_count, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from latencykit.errors import CorruptInputError
    from latencykit.formats.base import ReadOptions, Source

__all__ = ["Locate", "Tally", "parser_error", "refuse_rows", "rows_in", "skipped_lines"]

Locate = Callable[["Sequence[int]"], "list[tuple[int | None, str]]"]
"""From numbers of rows to where they stand (a line, if there are lines) and what they say."""

_FIRST = 10  # of a file, that are told whatever they are: each, where few are damaged
_MOST = 12  # that are told at all: also the first of another kind
_KINDS = 50  # that are told apart
_NAMED = 4
_PARTICULAR = re.compile(r"""(?: is)?\s*[:('"].*""", re.DOTALL)


class Tally:
    """What was skipped of a file: how many lines for which reason; the first few are told one by one.

    Examples
    --------
    >>> tally = Tally()
    >>> [tally.add(f"the time stamp is '{k}'") for k in range(11)].count(True), tally.add("2 fields ('1,2')", 1000)
    (10, True)
    >>> tally.note, tally.untold
    ('1,011 damaged lines were skipped: 1,000 × 2 fields, 11 × the time stamp', 1000)
    """

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self._told = 0

    def _kind(self, seen: str) -> str:
        kind = printable(_PARTICULAR.sub("", seen[:200]), 80) or "others"
        return kind if kind in self._kinds or len(self._kinds) < _KINDS else "others"

    def wanted(self, seen: str) -> int:
        """How many more lines with that damage are to be told one by one."""
        new = self._told < _MOST and self._kind(seen) not in self._kinds
        return max(_FIRST - self._told, int(new))

    def add(self, seen: str, count: int = 1) -> bool:
        """Count lines; True where the first of them is to be told."""
        told = self.wanted(seen) > 0
        self._kinds[self._kind(seen)] += count
        self._told += told
        return told

    @property
    def untold(self) -> int:
        """How many were not told one by one."""
        return self._kinds.total() - self._told

    @property
    def note(self) -> str | None:
        """What a reader of the numbers has to know; None where nothing was skipped."""
        total = self._kinds.total()
        if not total:
            return None
        named = Counter({kind: count for kind, count in self._kinds.items() if kind != "others"}).most_common(_NAMED)
        left = total - sum(count for _, count in named)
        reasons = [f"{format_count(count)} × {kind}" for kind, count in [*named, ("others", left)] if count]
        return f"{format_count(total)} damaged {'line was' if total == 1 else 'lines were'} skipped: {', '.join(reasons)}"


def refuse_rows(rows: Sequence[int], locate: Locate, source: Source, options: ReadOptions, seen: str, expected: str) -> None:
    """Raise for the first of damaged rows; under ``lenient`` count them, and report the first few of a file."""
    told = rows[: options.tally.wanted(seen)] if options.lenient else rows[:1]
    for line, text in locate(told) if len(told) else ():
        options.damaged(source.corrupt(line, f"{seen}: {printable(text)!r}", expected, "--lenient skips the line"))
    if len(rows) > len(told):
        options.damaged(source.corrupt(None, seen, expected), len(rows) - len(told))


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


def skipped_lines(messages: Iterable[str], first: int) -> Iterator[tuple[int, str]]:
    """Yield ``7, "expected 5 fields, saw 9"`` for each line that pandas skipped."""
    for message in messages:
        for number, seen in re.findall(r"[Ll]ine (\d+): (.*)", message):
            yield int(number) + first - 1, seen.strip()
