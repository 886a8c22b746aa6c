"""Text and JSON as tools print them: recognised, cleaned of a terminal's traces, and parsed."""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from latencykit._limits import in_force
from latencykit._records import record
from latencykit.core.samples import as_nanoseconds
from latencykit.errors import CorruptInputError, InputTooLargeError, InvalidArgumentError
from latencykit.io.rows import CUT_LINE, line_chunks
from latencykit.io.source import HEAD_SIZE, Confidence, SeveralDocuments
from latencykit.units import parse_duration, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from latencykit.io.source import Head, ReadOptions, Source

    Sniff = Callable[[Head], Confidence]

__all__ = [
    "Section",
    "batch",
    "below",
    "certain",
    "command_of",
    "documents",
    "durations",
    "entry",
    "epoch_seconds",
    "fact",
    "flat",
    "has_json_keys",
    "has_keys",
    "has_match",
    "iso_nanoseconds",
    "lines",
    "list_pieces",
    "load",
    "numbered",
    "parse",
    "parse_next",
    "plain",
    "plain_report",
    "runs",
    "section_runs",
    "sections",
    "starts_with",
    "without_halves",
]

_Key = TypeVar("_Key")
_Kind = TypeVar("_Kind")

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


def plain(text: str) -> str:
    r"""Return text without escape sequences, and of an overwritten line the last version.

    Line numbers stay what they were.
    """
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\r" not in text:
        return text
    return "\n".join(
        next((part for part in reversed(line.split("\r")) if part.strip()), "")
        if "\r" in line
        else line
        for line in text.split("\n")
    )


def runs(text: str, begin: re.Pattern[str]) -> dict[str, str]:
    r"""Return name → text of each run, which begins where `begin` matches; a lone one is ""."""
    starts = [match.start() for match in begin.finditer(text)]
    parts = [text[start:end] for start, end in pairwise([0, *starts[1:], len(text)])]
    return (
        {"": text}
        if len(parts) < 2
        else {f"run {number}": part for number, part in enumerate(parts, 1)}
    )


def below(text: str, heading: str) -> Iterator[tuple[int, str]]:
    r"""Yield number and text of the lines from the last heading line to a blank one."""
    lines = text.split("\n")
    begin = next(
        (k for k in range(len(lines) - 1, -1, -1) if lines[k].startswith(heading)), len(lines)
    )
    for number, line in enumerate(lines[begin + 1 :], begin + 2):
        if not line.strip():
            return
        yield number, line


# ------------------------------------------------------------
# Text reports as people save them: colours taken out, several runs in one file separated, errors
# with their line.

_PROMPT = re.compile(r"^(?:[\w.-]+@\S[^\n]{0,80}?[$#%>❯]|[$❯])(?: |$)", re.MULTILINE)
_SECTIONS_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\n]*\x07)")


def plain_report(text: str) -> str:
    r"""Return text without a terminal's escapes, with carriage returns as line breaks."""
    return (
        _SECTIONS_ESCAPE.sub("", text).replace("\r", "\n")
        if "\x1b" in text or "\r" in text
        else text
    )


@record()
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
        prompt = _PROMPT.search(self.text, start, end)  # of a copied terminal, below the table
        for number, line in self.lines(start, prompt.start() if prompt else end):
            match = pattern.match(line)
            if match is None:
                raise self.source.corrupt(
                    number, f"{printable(line.strip(), 50)!r}", expected, "run the tool anew"
                )
            matches.append(match)
        return matches


def sections(source: Source, begin: re.Pattern[str]) -> list[Section]:
    """Return one section per run: each begins where `begin` matches, the first one earlier."""
    text = plain_report(source.text())
    starts = [match.start() for match in begin.finditer(text)]
    bounds = [0, *starts[1:], len(text)]
    return [
        Section(text[start:end], text.count("\n", 0, start) + 1, source)
        for start, end in pairwise(bounds)
    ]


def section_runs(source: Source, begin: re.Pattern[str]) -> dict[str, Section]:
    """Return name → section of each run; a lone one has no name."""
    parts = sections(source, begin)
    if len(parts) == 1:
        return {"": parts[0]}
    return {f"run {number}": part for number, part in enumerate(parts, 1)}


def fact(text: str, pattern: str | re.Pattern[str], kind: Callable[[str], _Kind]) -> _Kind | None:
    """Return the first group of a pattern's first match as `kind`; None without a match.

    In a pattern that is text, ``^`` and ``$`` match at every line.
    """
    match = re.search(pattern, text, 0 if isinstance(pattern, re.Pattern) else re.MULTILINE)
    return None if match is None else kind(match[1])


def durations(
    cells: Mapping[_Key, str],
    source: Source,
    example: str,
    *,
    line: int | None = None,
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
        rf"^(?:[^\n]{{0,80}}?[$#%>❯] +|\+ +)?((?:\S*/)?(?:{names}) +\S[^\n]*)$",
        text,
        re.MULTILINE,
    )
    return match[1].strip() if match else None


# ------------------------------------------------------------
# Points in time as text: RFC 3339 and its relatives, many at once.


def iso_nanoseconds(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return nanoseconds since the epoch, int64 of the same length; what names no zone is UTC."""
    import pandas as pd

    try:
        when = as_nanoseconds(
            pd.to_datetime(
                pd.Series(list(map(str, texts)), dtype=object), utc=True, format="ISO8601"
            )
        )
    except (ValueError, OverflowError, TypeError) as error:
        raise InvalidArgumentError(
            f"a timestamp is not a date ({printable(str(error), 60)})"
        ) from error
    if np.isnat(when).any():
        raise InvalidArgumentError("a timestamp is missing, or lies beyond the years 1678 to 2261")
    return np.asarray(when.astype(np.int64))


def epoch_seconds(text: object) -> float | None:
    """Return seconds since the epoch, or None if `text` is not a date."""
    try:
        seconds = float(iso_nanoseconds([str(text)])[0]) / 1e9
    except ValueError:
        return None
    return seconds if seconds > 0 else None


# ------------------------------------------------------------
# JSON from other people's tools: whole documents, documents after lines of noise, and one object
# a line.
#
# NaN and Infinity literals are taken, as many tools write them. What is corrupt gives one error
# with the line.

# not the "[error]" of a line of a log
_BEGIN = re.compile(r'^[ \t]*(?:\{\s*["}]|\[\s*[\[{])', re.MULTILINE)
_HEX = "[0-9a-fA-F]{2}"
_HALF = re.compile(
    rf"(?<!\\)((?:\\\\)*)\\u(?:[dD][89abAB]{_HEX}(?!\\u[dD][c-fC-F]{_HEX})|"
    rf"(?<!\\u[dD][89abAB][0-9a-fA-F][0-9a-fA-F]\\u)[dD][c-fC-F]{_HEX})"
)
_WAY_OUT = "write it anew with the tool"


def has_keys(head: Head, *keys: str, within: int | None = None) -> bool:
    """True if the head looks like JSON and names all `keys`; for sniffing only."""
    text = head.text[:within]
    return text.lstrip()[:1] in ("{", "[") and all(f'"{key}"' in text for key in keys)


def _several(text: str, at: int) -> SeveralDocuments | None:
    """The documents of a text that holds nothing else from `at` on; None if it is one, or none."""
    decoder, parts, line = json.JSONDecoder(), [], text.count("\n", 0, at)
    try:
        while match := re.compile(r"[{[]").match(text, at):
            end = decoder.raw_decode(text, match.start())[1]
            parts.append((text[at:end], line))
            begin = len(text) - len(text[end:].lstrip())
            line += text.count("\n", at, begin)
            at = begin
    except (ValueError, RecursionError):
        return None
    return SeveralDocuments(parts) if len(parts) > 1 and at == len(text) else None


def load(source: Source, *, after_noise: bool = False) -> Any:
    """Return the document; of several one after the other, `reading` reads each."""
    text = source.text()
    begin = _BEGIN.search(text) if after_noise else None
    if after_noise and begin is None:
        raise source.corrupt(1, "it contains no JSON", "an object or a list", _WAY_OUT)
    at = (
        len(text) - len(text.lstrip())
        if begin is None
        else text.index(begin[0].strip()[0], begin.start())
    )
    try:
        value = parse(text, source, at)
    except CorruptInputError as error:
        if "Extra data" in error.seen and (several := _several(text, at)) is not None:
            raise several from None
        if not after_noise or "near '{" in error.seen:  # the begin of another, which is cut
            raise
        value = parse(text, source, at, whole=False)
    return value


_LIST_PIECE = 2 << 20  # bytes; as Python objects they take ten to twenty times as much
_DEPTH = np.zeros(256, np.int8)
_DEPTH[[*b"[{"]], _DEPTH[[*b"]}"]] = 1, -1


def list_pieces(source: Source) -> Iterator[list[Any]]:
    """Yield the entries of a document that is one list in pieces, of which the head is the first.

    The memory that it takes does not grow with the file.
    """
    with source.open() as stream:
        begin = stream.read(HEAD_SIZE).removeprefix(b"\xef\xbb\xbf")
        pending = begin.lstrip().removeprefix(b"[")
        line = 1 + begin.count(b"\n") - pending.count(b"\n")
        closed, first = False, True
        while not closed:
            end, closed = _end_of_entries(pending)
            if end:
                text = pending[:end] if closed else pending[: end - 1] + b"]"
                entries = parse(f"[{_decoded(text)}", source, first_line=line)
                if not (entries or (first and closed)):
                    raise source.corrupt(
                        line, "the JSON has a comma without an entry", "", _WAY_OUT
                    )
                yield entries
                line, first, pending = line + text.count(b"\n"), False, pending[end:]
            elif len(pending) > in_force().line:
                raise InputTooLargeError(
                    f"{source.shown}:{line}: an entry of more than {in_force().line:,} bytes; "
                    "--limit line=SIZE (lk.limits) allows more"
                )
            if not closed:
                more = stream.read(_LIST_PIECE)
                if not more:
                    parse(
                        f"[{_decoded(pending)}", source, first_line=line
                    )  # raises: it is truncated
                pending += more
        while not pending.strip():
            pending = stream.read(_LIST_PIECE)
            if not pending:
                return
    load(source)  # raises: another document follows, or something else


def _end_of_entries(text: bytes) -> tuple[int, bool]:
    """The end of the complete entries of a list, with the comma or bracket, and whether it closes.

    Of a text that begins after the list's opening bracket, or after a comma between two entries.
    """
    if not re.search(rb'["[{}]', text):
        closing = text.find(b"]") + 1
        return closing or text.rfind(b",") + 1, closing > 0
    letters = np.frombuffer(re.sub(rb"(?s)\\.", b"__", text) if b"\\" in text else text, np.uint8)
    outside = ~np.logical_xor.accumulate(letters == ord('"'))
    depth = np.cumsum(_DEPTH[letters] * outside, dtype=np.int32)
    if (closing := int((depth < 0).argmax())) or depth[0] < 0:
        return closing + 1, True
    commas = np.flatnonzero((letters == ord(",")) & (depth == 0) & outside)
    return (int(commas[-1]) + 1 if commas.size else 0), False


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def parse_next(text: str, source: Source, at: int) -> tuple[Any, int]:
    """Return the value that begins right at `at`, and its end: for consecutive objects."""
    source.json = True
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise _corrupt_json(source, error, 0) from None
    except (RecursionError, ValueError) as error:
        raise source.corrupt(None, f"the JSON cannot be read ({error})", "", "") from None


def documents(source: Source) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the objects of a file, in lists or not; and a note if the last of several is cut."""
    text = without_halves(plain_report(source.text()))
    records: list[dict[str, Any]] = []
    at = len(text) - len(text.lstrip())
    while at < len(text):
        try:
            record, at = parse_next(text, source, at)
        except CorruptInputError as error:
            if records and "cut" in error.seen:
                return records, ("the last report is cut; it was left out",)
            raise
        rows = record if isinstance(record, list) else [record]
        records += [entry({"object": row}, "object", source) for row in rows]
        at += len(text[at:]) - len(text[at:].lstrip())
    return records, ()


def parse(
    text: str, source: Source, at: int = 0, *, first_line: int = 1, whole: bool = True
) -> Any:
    """Return the value that begins at `at`; with `whole`, nothing but blanks may follow it."""
    source.json = True
    text = without_halves(text)
    try:
        return (
            json.loads(text[at:] if at else text)
            if whole
            else json.JSONDecoder().raw_decode(text[at:].lstrip())[0]
        )
    except json.JSONDecodeError as error:
        raise _corrupt_json(source, error, first_line + text.count("\n", 0, at) - 1) from None
    except RecursionError:
        raise source.corrupt(None, "the JSON is nested too deeply", "a tool's output", "") from None
    except ValueError as error:  # a number of thousands of digits
        raise source.corrupt(
            None, f"the JSON contains a number that cannot be read ({error})", "", ""
        ) from None


def without_halves(text: str) -> str:
    """The text with escaped halves of characters replaced at equal length: pandas refuses them."""
    return _HALF.sub(r"\1\\ufffd", text) if "\\ud" in text or "\\uD" in text else text


def _corrupt_json(
    source: Source, error: json.JSONDecodeError, lines_before: int
) -> CorruptInputError:
    line = lines_before + error.lineno
    if not error.doc[error.pos :].strip() or error.msg.startswith("Unterminated string"):
        return source.corrupt(
            line,
            "the JSON ends in the middle: the file is cut",
            "the whole document",
            _WAY_OUT,
        )
    near = printable(error.doc[error.pos : error.pos + 20])
    return source.corrupt(line, f"the JSON is corrupt near {near!r} ({error.msg})", "", _WAY_OUT)


def lines(
    source: Source, options: ReadOptions, notes: list[str] | None = None
) -> Iterator[tuple[int, list[Any]]]:
    """Yield batches of a file with one object per line: (number of the first line, objects).

    Blank lines are passed over. A corrupt line raises, or is reported under ``options.lenient``; a
    last line that is cut is a note, appended to `notes`.
    """
    for first, chunk in line_chunks(source):
        yield first, batch(first, chunk, source, options, notes)


def batch(
    first: int, chunk: bytes, source: Source, options: ReadOptions, notes: list[str] | None = None
) -> list[Any]:
    """Return the objects of a chunk of whole lines; see `lines`."""
    source.json = True
    text = chunk.decode("utf-8", "replace").removeprefix("\ufeff")
    rows = [line for line in text.split("\n") if line and not line.isspace()]
    try:
        return list(json.loads(without_halves("[" + ",".join(rows) + "]")))
    except (ValueError, RecursionError):
        return [value for _, value in numbered(source, options, first, chunk, notes)]


def numbered(
    source: Source, options: ReadOptions, first: int, chunk: bytes, notes: list[str] | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield number and object of each line of a chunk, whose first line has the number `first`.

    Corrupt lines, and one that is cut at the end of the file, are treated as `lines` does.
    """
    closed = chunk.endswith(b"\n")
    rows = chunk.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    for number, line in enumerate(rows, first):
        if not line or line.isspace():
            continue
        try:
            value = parse(line, source, first_line=number)
        except CorruptInputError as error:
            if number == first + len(rows) - 1 and not closed:
                if notes is not None:
                    notes.append(CUT_LINE)
            else:
                options.reject(
                    source.corrupt(
                        number,
                        f"this is not JSON: {printable(line)!r}: {error.seen}",
                        "",
                        "--lenient skips the line",
                    )
                )
            continue
        yield number, value


def entry(value: Any, path: str, source: Source, kind: type | tuple[type, ...] = dict) -> Any:
    """Return what lies at a path such as ``results.0.times``, checked for its type."""
    inner = value
    for key in path.split("."):
        try:
            inner = inner[int(key)] if isinstance(inner, list) else inner[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise source.corrupt(
                None,
                f"the JSON contains no {path}",
                "the output of one version of the tool",
                _WAY_OUT,
            ) from None
    if not isinstance(inner, kind) or isinstance(inner, bool):
        raise source.corrupt(None, f"{path} is {type(inner).__name__}", "something else", _WAY_OUT)
    return inner


# ------------------------------------------------------------
# Recognition as data: what a format is known by, as values for `Format.sniff`.


def certain(match: object) -> Confidence:
    """Return CERTAIN where something matches, else NO."""
    return Confidence.CERTAIN if match else Confidence.NO


def starts_with(*prefixes: str) -> Sniff:
    """Recognise a file that begins with one of these prefixes."""
    return partial(_starts_with, prefixes)


def has_json_keys(*alternatives: tuple[str, ...], within: int | None = None) -> Sniff:
    """Recognise JSON whose first characters contain all keys of one of the alternatives."""
    return partial(_has_json_keys, alternatives, within)


def has_match(
    pattern: str | re.Pattern[str],
    *,
    plain: Callable[[str], str] = str,
    confidence: Confidence = Confidence.CERTAIN,
) -> Sniff:
    """Recognise text in which a pattern matches; `plain` takes a terminal's escapes out first."""
    compiled = re.compile(pattern, 0 if isinstance(pattern, re.Pattern) else re.MULTILINE)
    return partial(_has_match, compiled, plain, confidence)


def _starts_with(prefixes: tuple[str, ...], head: Head) -> Confidence:
    return certain(head.text.startswith(prefixes))


def _has_json_keys(
    alternatives: tuple[tuple[str, ...], ...], within: int | None, head: Head
) -> Confidence:
    return certain(any(has_keys(head, *keys, within=within) for keys in alternatives))


def _has_match(
    pattern: re.Pattern[str], plain: Callable[[str], str], confidence: Confidence, head: Head
) -> Confidence:
    return confidence if pattern.search(plain(head.text)) else Confidence.NO


def flat(record: Mapping[str, Any], depth: int = 3) -> dict[str, Any]:
    """Return nested objects as ``a.b``; lists are left out."""
    pairs: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict) and depth:
            pairs |= {f"{key}.{inner}": leaf for inner, leaf in flat(value, depth - 1).items()}
        elif not isinstance(value, (dict, list)):
            pairs[str(key)] = value
    return pairs
