"""Text reports as people save them: colours taken out, several runs in one file told apart, errors with their line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from latencykit.units import printable

if TYPE_CHECKING:
    from latencykit.errors import CorruptInputError
    from latencykit.formats.base import Source

__all__ = ["Section", "command_of", "plain", "sections"]

_PROMPT = re.compile(r"^(?:[\w.-]+@\S[^\n]{0,80}?[$#%>❯]|[$❯])(?: |$)", re.MULTILINE)
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\n]*\x07)")


def plain(text: str) -> str:
    r"""Return text without a terminal's escapes, each piece that a carriage return would overwrite on a line of its own.

    Examples
    --------
    >>> plain("\x1b[32m 50%\x1b[0m 1ms")
    ' 50% 1ms'
    """
    return _ESCAPE.sub("", text).replace("\r", "\n") if "\x1b" in text or "\r" in text else text


@dataclass(frozen=True)
class Section:
    """The report of one run within a file.

    Attributes
    ----------
    text : str
        From its first line to the next run.
    first_line : int
        Number of its first line in the file.
    source : Source
    """

    text: str
    first_line: int
    source: Source

    def line_at(self, position: int) -> int:
        """Return the number of the line that holds a character of `text`."""
        return self.first_line + self.text.count("\n", 0, position)

    def corrupt(self, position: int | None, seen: str, expected: str, way_out: str = "") -> CorruptInputError:
        """Return the error that names the line."""
        return self.source.corrupt(None if position is None else self.line_at(position), seen, expected, way_out)

    def lines(self, start: int, end: int) -> list[tuple[int, str]]:
        """Return the lines between two positions that are not blank, with their numbers."""
        first = self.line_at(start)
        return [(first + k, line) for k, line in enumerate(self.text[start:end].split("\n")) if line.strip()]

    def found(self, label: str, pattern: re.Pattern[str], expected: str) -> re.Match[str] | None:
        """Return the match of `pattern` on the line that begins with `label`; None where there is no such line.

        Raises
        ------
        CorruptInputError
            Where there is one, and it does not match.
        """
        line = re.search(rf"^[ \t]*{re.escape(label)}[^\n]*", self.text, re.MULTILINE)
        match = pattern.search(line[0]) if line else None
        if line is not None and match is None:
            raise self.corrupt(line.start(), f"{printable(line[0].strip(), 50)!r}", expected, "run the tool anew")
        return match

    def matches(self, pattern: re.Pattern[str], start: int, end: int, expected: str) -> list[re.Match[str]]:
        """Return the match of every line between two positions; one that does not match is damage."""
        found = []
        prompt = _PROMPT.search(self.text, start, end)  # of a copied terminal, below the table
        for number, line in self.lines(start, prompt.start() if prompt else end):
            match = pattern.match(line)
            if match is None:
                raise self.source.corrupt(number, f"{printable(line.strip(), 50)!r}", expected, "run the tool anew")
            found.append(match)
        return found


def sections(source: Source, begin: re.Pattern[str]) -> list[Section]:
    """Return one section a run: each begins where `begin` matches; what stands before the first one belongs to it."""
    text = plain(source.text())
    starts = [one.start() for one in begin.finditer(text)]
    bounds = [0, *starts[1:], len(text)]
    return [Section(text[start:end], text.count("\n", 0, start) + 1, source) for start, end in pairwise(bounds)]


def command_of(text: str, *tools: str) -> str | None:
    """Return the command line of one of `tools` where a copied terminal shows it after its prompt.

    Examples
    --------
    >>> command_of("user@host:~$ ./wrk -t2 -c8 http://x/\\nRunning 10s test", "wrk")
    './wrk -t2 -c8 http://x/'
    """
    names = "|".join(map(re.escape, tools))
    found = re.search(rf"^(?:[^\n]{{0,80}}?[$#%>❯] +|\+ +)?((?:\S*/)?(?:{names}) +\S[^\n]*)$", text, re.MULTILINE)
    return found[1].strip() if found else None
