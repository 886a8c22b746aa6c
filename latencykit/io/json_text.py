"""JSON from other people's tools: whole documents, documents after noise, one object per line.

NaN and Infinity are accepted, as many tools write them. Corrupt JSON is one error with its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from latencykit._limits import current_limits
from latencykit._text import printable
from latencykit._typing import JSONObject
from latencykit.core.run import Note
from latencykit.errors import CorruptInputError, InputTooLargeError
from latencykit.io.rows import CUT_LINE, line_chunks
from latencykit.io.source import ReadOptions, SeveralDocuments, Source
from latencykit.io.text_reports import documents_at, plain

# not the "[error]" of a line of a log
_BEGIN = re.compile(r'^[ \t]*(?:\{\s*["}]|\[\s*[\[{])', re.MULTILINE)
_SOMETHING = re.compile(r"\S")
_DECODER = json.JSONDecoder()
_HEX = "[0-9a-fA-F]{2}"
_ESCAPED = re.compile("[\ud800-\udfff]")  # as `Source.text` has bytes that are not UTF-8

_HALF = re.compile(
    rf"(?<!\\)((?:\\\\)*)\\u(?:[dD][89abAB]{_HEX}(?!\\u[dD][c-fC-F]{_HEX})|"
    rf"(?<!\\u[dD][89abAB][0-9a-fA-F][0-9a-fA-F]\\u)[dD][c-fC-F]{_HEX})"
)

_WAY_OUT = "write it anew with the tool"


def _several(text: str, at: int, source: Source) -> SeveralDocuments | None:
    """The documents of a text that holds nothing else from `at` on; None if it is one, or none."""
    starts: list[int] = []
    try:
        while text[at : at + 1] in ("{", "["):
            starts.append(at)
            if len(starts) > current_limits().series:
                raise InputTooLargeError(
                    f"{source.shown}: more than {current_limits().series:,} JSON documents, one "
                    "after the other; cut it into parts, or allow more with --limit series=N "
                    "(lk.limits)"
                )
            end = _DECODER.raw_decode(text, at)[1]
            following = _SOMETHING.search(text, end)
            at = following.start() if following else len(text)
    except (ValueError, RecursionError):
        return None
    return documents_at(text, starts) if len(starts) > 1 and at == len(text) else None


def load(source: Source, *, after_noise: bool = False) -> Any:
    """Return the document; of several one after the other, `reading` reads each."""
    text = source.text()
    begin = _BEGIN.search(text) if after_noise else None
    if after_noise and begin is None:
        raise source.corrupt(1, "it contains no JSON", "an object or a list", _WAY_OUT)
    start = _SOMETHING.search(text, begin.start() if begin else 0)
    at = start.start() if start else 0
    try:
        value = parse(text, source, at)
    except CorruptInputError as error:
        if "Extra data" in error.seen and (several := _several(text, at, source)) is not None:
            raise several from None
        if not after_noise or "near '{" in error.seen:  # the begin of another, which is cut
            raise
        value = parse(text, source, at, whole=False)
    return value


def parse_next(text: str, source: Source, at: int, lines_before: int = 0) -> tuple[Any, int]:
    """Return the value that begins right at `at`, and its end: for consecutive objects."""
    source.json = True
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise _corrupt_json(source, error, lines_before) from None
    except RecursionError:
        raise source.corrupt(None, "the JSON is nested too deeply", "a tool's output", "") from None
    except ValueError as error:  # a number of thousands of digits
        seen = f"the JSON contains a number that cannot be read ({error})"
        raise source.corrupt(None, seen) from None


def values(
    text: str, source: Source, notes: list[str] | None = None, cut: str = CUT_LINE
) -> Iterator[Any]:
    """Yield the values of a text one after the other; of a list, its entries."""
    # With `notes`, a last value that is cut is not corrupt if others precede it: they get `cut`.
    text, at, first = without_halves(text), 0, True
    while (begin := _SOMETHING.search(text, at)) is not None:
        try:
            value, at = parse_next(text, source, begin.start())
        except CorruptInputError as error:
            if first or notes is None or error.seen != _CUT:
                raise
            notes.append(cut)
            return
        first = False
        yield from value if isinstance(value, list) else [value]


def documents(source: Source, text: str | None = None) -> tuple[list[JSONObject], tuple[str, ...]]:
    """Return the objects of a file, in lists or not; and a note if the last of several is cut."""
    # They are in `text` if it is given.
    notes: list[str] = []
    cut = Note("the last report is truncated; it was left out")
    found = values(plain(source.text()) if text is None else text, source, notes, cut)
    return [entry({"object": row}, "object", source) for row in found], tuple(notes)


def parse(
    text: str, source: Source, at: int = 0, *, first_line: int = 1, whole: bool = True
) -> Any:
    """Return the value that begins at `at`; with `whole`, nothing but blanks may follow it."""
    text = without_halves(text)
    begin = _SOMETHING.search(text, at)
    value, end = parse_next(text, source, begin.start() if begin else len(text), first_line - 1)
    if whole and (more := _SOMETHING.search(text, end)) is not None:
        extra = json.JSONDecodeError("Extra data", text, more.start())
        raise _corrupt_json(source, extra, first_line - 1)
    return value


def without_halves(text: str) -> str:
    """The text with halves of characters replaced at equal length, and bytes that are not UTF-8."""
    # Pandas refuses them.
    if not text.isascii():
        text = _ESCAPED.sub("\ufffd", text)
    return _HALF.sub(r"\1\\ufffd", text) if "\\ud" in text or "\\uD" in text else text


_CUT = "the JSON ends in the middle: the file is truncated"


def _corrupt_json(
    source: Source, error: json.JSONDecodeError, lines_before: int
) -> CorruptInputError:
    line = lines_before + error.lineno
    if not error.doc[error.pos :].strip() or error.msg.startswith("Unterminated string"):
        return source.corrupt(line, _CUT, "the whole document", _WAY_OUT)
    near = printable(error.doc[error.pos : error.pos + 20])
    return source.corrupt(line, f"the JSON is corrupt near {near!r} ({error.msg})", "", _WAY_OUT)


def lines(source: Source, options: ReadOptions, notes: list[str] | None = None) -> Iterator[Any]:
    """Yield the objects of a file with one per line."""
    # Blank lines are passed over. A corrupt line raises, or is reported under ``options.lenient``;
    # a last line that is cut is a note, appended to `notes`.
    for first, chunk in line_chunks(source):
        yield from batch(first, chunk, source, options, notes)


def batch(
    first: int, chunk: bytes, source: Source, options: ReadOptions, notes: list[str] | None = None
) -> list[Any]:
    """Return the objects of a chunk of whole lines; see `lines`."""
    source.json = True
    text = chunk.decode("utf-8", "replace")
    rows = [line for line in text.split("\n") if line and not line.isspace()]
    try:
        return list(json.loads(without_halves("[" + ",".join(rows) + "]")))
    except (ValueError, RecursionError):
        return [value for _, value in numbered(source, options, first, chunk, notes)]


def numbered(
    source: Source, options: ReadOptions, first: int, chunk: bytes, notes: list[str] | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield number and object of each line of a chunk, whose first line has the number `first`."""
    # Corrupt lines, and one that is cut at the end of the file, are treated as `lines` does.
    closed = chunk.endswith(b"\n")
    rows = chunk.decode("utf-8", "replace").split("\n")
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
                seen = f"this is not JSON: {printable(line)!r}: {error.seen}"
                options.refuse(source, number, seen, "")
            continue
        yield number, value


def entry(value: Any, path: str, source: Source, kind: type | tuple[type, ...] = dict) -> Any:
    """Return what lies at a path such as ``results.0.times``, checked for its type."""
    inner = value
    for key in path.split("."):
        try:
            inner = inner[int(key)] if isinstance(inner, list) else inner[key]
        except (KeyError, IndexError, TypeError, ValueError):
            seen, expected = f"the JSON contains no {path}", "the output of one version of the tool"
            raise source.corrupt(None, seen, expected, _WAY_OUT) from None
    if not isinstance(inner, kind) or isinstance(inner, bool):
        raise source.corrupt(None, f"{path} is {type(inner).__name__}", "something else", _WAY_OUT)
    return inner


def field_of(record: Mapping[str, Any], name: str) -> Any:
    """Return a field by its name in camel case, or in the snake case of other writers."""
    if name in record:
        return record[name]
    return record.get(re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name))


def leaf(value: object) -> object:
    """Return a duration in two parts, as serde and protobuf have it, as text; others unchanged."""
    if isinstance(value, dict) and {*value} in ({"secs", "nanos"}, {"seconds", "nanos"}):
        whole, nanos = (value[key] for key in sorted(value, reverse=True))
        if isinstance(whole, int) and isinstance(nanos, int):
            return f"{whole + nanos / 1e9}s"
    return value


def flat(record: Mapping[str, object], depth: int = 3) -> JSONObject:
    """Return nested objects as ``a.b``; lists are left out."""
    pairs: dict[str, object] = {}
    for key, value in ((key, leaf(value)) for key, value in record.items()):
        if isinstance(value, dict) and depth:
            pairs |= {f"{key}.{inner}": leaf for inner, leaf in flat(value, depth - 1).items()}
        elif not isinstance(value, (dict, list)):
            pairs[str(key)] = value
    return pairs
