"""JSON from other people's tools: whole documents, documents after lines of noise, and one object a line.

NaN and Infinity literals are taken, as many tools write them. What is damaged gives one error with the line.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from latencykit.formats.rows import line_chunks
from latencykit.formats.sections import plain
from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from latencykit.errors import CorruptInputError
    from latencykit.formats.base import Head, ReadOptions, Source

__all__ = ["batch", "documents", "entry", "has_keys", "lines", "load", "numbered", "parse", "parse_next", "without_halves"]

_BEGIN = re.compile(r'^[ \t]*(?:\{\s*["}]|\[\s*[\[{])', re.MULTILINE)  # not the "[error]" of a line of a log
_HEX = "[0-9a-fA-F]{2}"
_HALF = re.compile(
    rf"(?<!\\)((?:\\\\)*)\\u(?:[dD][89abAB]{_HEX}(?!\\u[dD][c-fC-F]{_HEX})|(?<!\\u[dD][89abAB][0-9a-fA-F][0-9a-fA-F]\\u)[dD][c-fC-F]{_HEX})"
)
_WAY_OUT = "write it anew with the tool"


def has_keys(head: Head, *keys: str, within: int | None = None) -> bool:
    """Whether the head looks like JSON and names all `keys`; for sniffing only.

    Parameters
    ----------
    head : Head
    *keys : str
    within : int, optional
        Only the first so many characters count.
    """
    text = head.text[:within]
    return text.lstrip()[:1] in ("{", "[") and all(f'"{key}"' in text for key in keys)


def load(source: Source, *, after_noise: bool = False) -> Any:
    """Return the whole document.

    Parameters
    ----------
    source : Source
    after_noise : bool, default False
        Whether lines of text may stand before and after it.

    Raises
    ------
    CorruptInputError
        Where it is damaged, cut, or nested so deeply that it must be hostile.
    """
    text = source.text()
    begin = _BEGIN.search(text) if after_noise else None
    if after_noise and begin is None:
        raise source.corrupt(1, "there is no JSON in it", "an object or a list", _WAY_OUT)
    return parse(text, source, begin.start() if begin else 0, whole=not after_noise)


def parse_next(text: str, source: Source, at: int) -> tuple[Any, int]:
    """Return the value that begins right at `at`, and where it ends: for objects that follow each other."""
    source.json = True
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise _damaged(source, error, 0) from None
    except (RecursionError, ValueError) as error:
        raise source.corrupt(None, f"the JSON cannot be read ({error})", "", "") from None


def documents(source: Source) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the objects of a file in which they follow each other, and a note where the last of several is cut."""
    from latencykit.errors import CorruptInputError

    text = without_halves(plain(source.text()))
    found: list[dict[str, Any]] = []
    at = len(text) - len(text.lstrip())
    while at < len(text):
        try:
            record, at = parse_next(text, source, at)
        except CorruptInputError as error:
            if found and "cut" in error.seen:
                return found, ("the last report is cut; it was left out",)
            raise
        found.append(entry({"object": record}, "object", source))
        at += len(text[at:]) - len(text[at:].lstrip())
    return found, ()


def parse(text: str, source: Source, at: int = 0, *, first_line: int = 1, whole: bool = True) -> Any:
    """Return the value that begins at `at`; with `whole`, nothing but blanks may follow it."""
    source.json = True
    text = without_halves(text)
    try:
        return json.loads(text[at:] if at else text) if whole else json.JSONDecoder().raw_decode(text[at:].lstrip())[0]
    except json.JSONDecodeError as error:
        raise _damaged(source, error, first_line + text.count("\n", 0, at) - 1) from None
    except RecursionError:
        raise source.corrupt(None, "the JSON is nested too deeply", "a tool's output", "") from None
    except ValueError as error:  # a number of thousands of digits
        raise source.corrupt(None, f"the JSON holds a number that cannot be read ({error})", "", "") from None


def without_halves(text: str) -> str:
    """The text with escaped halves of characters replaced, as long as before: no table of pandas takes them."""
    return _HALF.sub(r"\1\\ufffd", text) if "\\ud" in text or "\\uD" in text else text


def _damaged(source: Source, error: json.JSONDecodeError, lines_before: int) -> CorruptInputError:
    line = lines_before + error.lineno
    if not error.doc[error.pos :].strip() or error.msg.startswith("Unterminated string"):
        return source.corrupt(line, "the JSON ends in the middle: the file is cut", "the whole document", _WAY_OUT)
    near = printable(error.doc[error.pos : error.pos + 20])
    return source.corrupt(line, f"the JSON is damaged near {near!r} ({error.msg})", "", _WAY_OUT)


def lines(source: Source, options: ReadOptions, notes: list[str] | None = None) -> Iterator[tuple[int, list[Any]]]:
    """Yield batches of objects of a file with one object a line, as (number of the first line, objects).

    Blank lines are passed over. A damaged line raises, or is reported under ``options.lenient``; a last line
    that is cut is a note, appended to `notes`.
    """
    for first, chunk in line_chunks(source):
        yield first, batch(first, chunk, source, options, notes)


def batch(first: int, chunk: bytes, source: Source, options: ReadOptions, notes: list[str] | None = None) -> list[Any]:
    """Return the objects of a chunk of whole lines; see `lines`."""
    source.json = True
    text = chunk.decode("utf-8", "replace").removeprefix("\ufeff")
    given = [line for line in text.split("\n") if line and not line.isspace()]
    try:
        return list(json.loads(without_halves("[" + ",".join(given) + "]")))
    except (ValueError, RecursionError):
        return [value for _, value in numbered(source, options, first, chunk, notes)]


def numbered(
    source: Source, options: ReadOptions, first: int, chunk: bytes, notes: list[str] | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield the objects of a chunk of lines, whose first has the number `first`, with the number of each line.

    Damaged lines, and one that is cut at the end of the file, are treated as `lines` does.
    """
    from latencykit.errors import CorruptInputError

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
                    notes.append("the last line is cut; it was left out")
            else:
                options.damaged(
                    source.corrupt(
                        number,
                        f"this is no JSON: {printable(line)!r}",
                        error.seen,
                        "--lenient skips the line",
                    )
                )
            continue
        yield number, value


def entry(value: Any, path: str, source: Source, kind: type | tuple[type, ...] = dict) -> Any:
    """Return what lies at a path such as ``results.0.times``, checked for its type.

    Raises
    ------
    CorruptInputError
        Where it is missing or something else.
    """
    found = value
    for key in path.split("."):
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise source.corrupt(None, f"the JSON holds no {path}", "the output of one version of the tool", _WAY_OUT) from None
    if not isinstance(found, kind) or isinstance(found, bool):
        raise source.corrupt(None, f"{path} is {type(found).__name__}", "something else", _WAY_OUT)
    return found
