"""Text as people save it: what a format is known by, reports without escapes, split into runs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TypeVar

from latencykit._records import record
from latencykit._text import printable
from latencykit.errors import CorruptInputError, InvalidArgumentError
from latencykit.io.source import Confidence, Head, SeveralDocuments, Source
from latencykit.units import parse_duration

Sniff = Callable[[Head], Confidence]

_Key = TypeVar("_Key")
_Kind = TypeVar("_Kind")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


def plain(text: str) -> str:
    r"""Return text without escape sequences, and of an overwritten line the last version.

    Line numbers stay what they were; carriage returns alone end lines, too.
    """
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\r" not in text or "\n" not in text:
        return text.replace("\r", "\n")
    return "\n".join(
        next((part for part in reversed(line.split("\r")) if part.strip()), "")
        if "\r" in line
        else line
        for line in text.split("\n")
    )


# Before each line of a reply or a comment, of containers' output, of a CI server's log.
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?(?:[ \t]|$)"
_QUOTES = (
    r"#\d{1,4} (?:\d{1,6}\.\d{1,4}(?: |$)|(?=\[|DONE|CACHED))",  # of docker build
    rf"[^\t\n]{{1,100}}\t[^\t\n]{{1,100}}\t{_STAMP}",  # of gh run view --log
    r"(?:>|#|//[/!]?)[ \t]?",
    rf"{_STAMP}(?:(?:stdout|stderr) [FP] |\d\d[OE](?:[ +]|$))?",
    r"\[pod/[^\]\s]{1,200}\](?: |$)",
    r"\[[^\]\[\n]{0,60}\d\d:\d\d:\d\d[^\]\[\n]{0,60}\][ \t]?",
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,100} [^\s:\[]{1,100}(?:\[\d{1,9}\])?:(?: |$)",
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: |$)",
    r"\d\d:\d\d:\d\d(?:  |$)",  # of Jenkins
    r"[\w./-]{1,100}\[[\w.-]{1,60}\]: ",
    r"\[?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|debug|info|warn|error)\b ?\]?:?(?:[ \t]|$)",
    r"[\w.-]{1,100}[-_]\d{1,9}[ \t]+\|(?:[ \t]|$)",
)
_CONTAINER = re.compile(r"[\w.-]{1,100}[ \t]+\|")
_ROUNDS = 3  # of quotes within quotes


def line_prefixes(text: str) -> Iterator[str]:
    """Yield patterns of what stands before every line: the first of it, and of quotes within."""
    lines = [line for line in text.split("\n") if line.strip()]
    prefix = ""
    for _ in range(_ROUNDS):
        indent = min((line[: -len(line.lstrip(" \t"))] for line in lines), key=len, default="")
        name = _CONTAINER.match(lines[0]) if lines else None
        own = [indent] * (indent != "") + ([re.escape(name[0]) + "[ \t]?"] if name else [])
        quotes = (*own, *_QUOTES)
        quote = next((q for q in quotes if lines and all(re.match(q, row) for row in lines)), None)
        if quote is None:
            return
        prefix += f"(?:{quote})"
        lines = [bare for line in lines if (bare := re.sub(quote, "", line, count=1)).strip()]
        yield prefix


# What follows a table without a blank line: the end of a page's block, a prompt of a copied
# terminal, the next heading; and a rule, which some tables contain.
_CLOSING = (
    r"[ \t]*(?:```|~~~|</?[a-z]|\{%)|(?:[\w.-]+@\S[^\n]{0,80}?[$#%>❯]|[$❯+])(?: |$)"
    r"|[A-Z][a-z]+(?: [a-z]+){0,4}:[ \t]*$"
)
_END = re.compile(_CLOSING)
_END_OF_ROWS = re.compile(rf"^(?:{_CLOSING}|[ \t]*[-=_*]{{3,}}[ \t]*$)", re.MULTILINE)


def below(text: str, heading: str) -> Iterator[tuple[int, str]]:
    r"""Yield number and text of the lines from the last heading line to the end of its block."""
    lines = text.split("\n")
    begin = next(
        (k for k in range(len(lines) - 1, -1, -1) if lines[k].lstrip().startswith(heading)),
        len(lines),
    )
    for number, line in enumerate(lines[begin + 1 :], begin + 2):
        if not line.strip() or _END.match(line):
            return
        yield number, line


def line_numbers(text: str) -> Callable[[int], int]:
    """Return what gives the line of a position; a count from the begin each time is quadratic."""
    ends = cache(lambda: [end.start() for end in re.finditer("\n", text)])
    return lambda position: bisect_left(ends(), position) + 1


@record()
class Section:
    """The report of one run within a file."""

    text: str  # from its first line to the next run
    first_line: int  # its number in the file
    source: Source

    def line_at(self, position: int) -> int:
        """Return the number of the line that holds a character of `text`."""
        return self.first_line + self.text.count("\n", 0, position)

    def corrupt(
        self, position: int | None, seen: str, expected: str, hint: str = ""
    ) -> CorruptInputError:
        """Return the error that names the line."""
        return self.source.corrupt(
            None if position is None else self.line_at(position), seen, expected, hint
        )

    def lines(self, start: int, end: int) -> list[tuple[int, str]]:
        """Return the lines between two positions that are not blank, with their numbers."""
        first = self.line_at(start)
        return [
            (first + k, line)
            for k, line in enumerate(self.text[start:end].split("\n"))
            if line.strip()
        ]

    def found(self, label: str, pattern: re.Pattern[str], expected: str) -> re.Match[str] | None:
        """Return the match of `pattern` on the line that begins with `label`, or None."""
        line = re.search(rf"^[ \t]*{re.escape(label)}[^\n]*", self.text, re.MULTILINE)
        match = pattern.search(line[0]) if line else None
        if line is not None and match is None:
            raise self.corrupt(
                line.start(), f"{printable(line[0].strip(), 50)!r}", expected, "run the tool anew"
            )
        return match

    def matches(
        self, pattern: re.Pattern[str], start: int, end: int, expected: str
    ) -> list[re.Match[str]]:
        """Return the match of every line between two positions; others are corrupt."""
        matches = []
        below_it = _END_OF_ROWS.search(self.text, start, end)
        for number, line in self.lines(start, below_it.start() if below_it else end):
            match = pattern.match(line)
            if match is None:
                raise self.source.corrupt(
                    number, f"{printable(line.strip(), 50)!r}", expected, "run the tool anew"
                )
            matches.append(match)
        return matches


_COMMAND = re.compile(r"^(?:[\w.-]+@\S[^\n]{0,80}?[$#%>❯]|[$❯]) +\S", re.MULTILINE)


def _with_commands(text: str, starts: list[int]) -> list[int]:
    """Where runs begin: at the last prompt above a report, which states how it was made."""
    prompts = [match.start() for match in _COMMAND.finditer(text)]
    bounds = zip([0, *starts[:-1]], starts, strict=True) if starts else ()
    found = []
    for before, start in bounds:
        at = bisect_left(prompts, start)
        found.append(prompts[at - 1] if at and prompts[at - 1] > before else start)
    return found


def sections(source: Source, begin: re.Pattern[str]) -> list[Section]:
    """Return one section per run: each begins where `begin` matches, the first one earlier."""
    text = plain(source.text())
    starts = _with_commands(text, [match.start() for match in begin.finditer(text)])
    bounds, line_at = [0, *starts[1:], len(text)], line_numbers(text)
    return [Section(text[start:end], line_at(start), source) for start, end in pairwise(bounds)]


def text_of_run(
    source: Source, begin: str | re.Pattern[str], holds: str | re.Pattern[str] = ""
) -> str:
    """Return the text of one run; of several one after the other, `reading` reads each."""
    # A run begins where `begin` matches, and lasts until it has what `holds` matches.
    text = plain(source.text())
    starts = [match.start() for match in re.finditer(begin, text, _flags(begin))]
    starts = _with_commands(text, starts)
    runs, at, begins_at = [], 0, 0
    for end in [*starts[1:], len(text)]:
        if search(holds, text[at:end]):
            runs.append(begins_at)
            begins_at = end
        at = end
    if len(runs) < 2:
        return text
    raise documents_at(text, runs)


def documents_at(text: str, starts: Sequence[int]) -> SeveralDocuments:
    """Return what makes `reading` read each of the parts that begin at some positions."""
    line_at, bounds = line_numbers(text), pairwise([*starts, len(text)])
    return SeveralDocuments([(text[start:end], line_at(start) - 1) for start, end in bounds])


def blocks(text: str, heading: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the match of each heading, and where what is below it ends."""
    matches = list(heading.finditer(text))
    ends = [*(match.start() for match in matches[1:]), len(text)]
    return zip(matches, ends, strict=False)


def search(pattern: str | re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the first match; in a pattern that is text, ``^`` and ``$`` match at every line."""
    return re.search(pattern, text, _flags(pattern))


def _flags(pattern: str | re.Pattern[str]) -> re.RegexFlag:
    return re.NOFLAG if isinstance(pattern, re.Pattern) else re.MULTILINE


def fact(text: str, pattern: str | re.Pattern[str], kind: Callable[[str], _Kind]) -> _Kind | None:
    """Return the first group of a pattern's first match as `kind`; None without a match."""
    match = search(pattern, text)
    return None if match is None else kind(match[1])


def durations(
    cells: Mapping[_Key, str], source: Source, example: str, *, line: int | None = None
) -> dict[_Key, float]:
    """Return durations with their units in ns; other text is corrupt."""
    try:
        return {key: round(parse_duration(cell), 3) for key, cell in cells.items()}
    except InvalidArgumentError as error:
        seen = f"a latency that cannot be read ({error})"
        raise source.corrupt(line, seen, f"such as {example}", "run the tool again") from None


def command_of(text: str, *tools: str) -> str | None:
    """Return the command line of one of `tools` that a copied terminal shows, or None."""
    names = "|".join(map(re.escape, tools))
    match = re.search(
        rf"^(?:[^\n]{{0,80}}?[$#%>❯] +|\+ +)?((?:\S*/)?(?:{names}) +\S[^\n]*)$", text, re.MULTILINE
    )
    return match[1].strip() if match else None


# ------------------------------------------------------------
# Recognition as data: what a format is known by, as values for `Format.sniff`.


def has_keys(head: Head, *keys: str, within: int | None = None) -> bool:
    """True if the head looks like JSON and names all `keys`; for sniffing only."""
    text = head.text[:within] + (head.text[-within:] if within and head.whole else "")
    return text.lstrip()[:1] in ("{", "[") and all(f'"{key}"' in text for key in keys)


def certain(match: object) -> Confidence:
    """Return CERTAIN where something matches, else NO."""
    return Confidence.CERTAIN if match else Confidence.NO


def either(*sniffs: Sniff) -> Sniff:
    """Recognise what one of these does, as surely as the surest of them."""
    return lambda head: max(sniff(head) for sniff in sniffs)


def starts_with(*prefixes: str) -> Sniff:
    """Recognise a file that begins with one of these prefixes."""
    return lambda head: certain(head.text.startswith(prefixes))


def has_json_keys(*alternatives: tuple[str, ...], within: int | None = None) -> Sniff:
    """Recognise JSON whose first characters contain all keys of one of the alternatives."""
    return lambda head: certain(any(has_keys(head, *keys, within=within) for keys in alternatives))


def has_match(
    *patterns: str | re.Pattern[str],
    without: str | re.Pattern[str] = r"(?!)",
    plain: Callable[[str], str] = str,
    confidence: Confidence = Confidence.CERTAIN,
) -> Sniff:
    """Recognise text that each of the patterns matches, and `without` does not."""
    # In a pattern that is text, ``^`` and ``$`` match at every line. `plain` takes a terminal's
    # escapes out first.

    def sniff(head: Head) -> Confidence:
        text = plain(head.text)
        fits = all(search(pattern, text) for pattern in patterns) and not search(without, text)
        return confidence if fits else Confidence.NO

    return sniff
