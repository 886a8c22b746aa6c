"""The registry of formats: the modules that read them, and the marks that inputs are known by.

``formats.csv`` has a row per format: its module, name, title, level of detail, suffixes, unit, the
keys by which JSON is recognised, and the command that makes such an output. The module's
``FORMATS`` has the functions: name → sniff, read and, of what is written, write; what recognises it
is left out where keys do.

``marks.csv`` has the marks of each module. An input that has none of them is not of any of its
formats; of one that has, the module's own recognisers decide. So only modules that may know an
input are imported to detect its format. A mark is text in lower case that the head contains
(whatever its case; control characters as in JSON), or with a leading ^ an expression that the
first line matches. Marks of ``raw`` are of binary formats only: any table of numbers may be text
of the others, see `generic_formats`; the last two modules have none, see `rounds`.

To add a built-in format, add its row and its marks, and put a sample under ``tests/data/formats``.
A third party adds one by an entry point in the group ``latencykit.formats`` that refers to a
`latencykit.io.source.Format` or a tuple of them, and tests it with
`latencykit.testing.FormatContract`.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import itertools
import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from latencykit.io.source import Format, Head

ENTRY_POINTS = "latencykit.formats"

_MAGICS = (b"PAR1", b"ARROW1", b"FEA1")
"""Beginnings of binary tables: behind them, marks of text stand by chance."""


def candidates(head: Head) -> Iterator[Format]:
    """Yield the formats that an input may be of, in order: those of the package, then plug-ins'."""
    yield from _formats_in("hlog")
    text = head.text.lower()
    first = next((line.strip() for line in head.lines if line.strip()), "")
    # Recognisers look at directories themselves, and at text without a terminal's escapes.
    everything = head.is_dir or "\x1b" in text
    magic = next((magic for magic in _MAGICS if head.data.startswith(magic)), b"")
    if magic:
        everything, first, text = False, "", magic.decode().lower()
    marks = marks_of_modules()
    for module, own in itertools.islice(marks.items(), 1, len(marks) - 2):
        if everything or any(
            re.match(mark, first) if mark.startswith("^") else mark in text for mark in own
        ):
            yield from _formats_in(module)
    yield from plugin_formats()


def generic_formats() -> tuple[Format, ...]:
    """Return the formats of raw samples, which take any table of numbers with low confidence."""
    return _formats_in("raw")


def rounds(head: Head) -> Iterator[Iterable[Format]]:
    """Yield the formats to ask: those of the head's marks, then any table, then the last resort."""
    yield candidates(head)
    yield generic_formats()
    yield _formats_in("tools.request_lines") + _formats_in("percentile_lines")


@cache
def builtin_formats() -> tuple[Format, ...]:
    """Return the formats of the package, in order."""
    return tuple(entry for module in marks_of_modules() for entry in _formats_in(module))


@cache
def plugin_formats() -> tuple[Format, ...]:
    """Return the formats that installed packages add; one that cannot be imported is a warning."""
    # importlib.metadata takes a tenth of a command, and few installations have a plug-in.
    files = (path for place in sys.path for path in Path(place).glob("*-info/entry_points.txt"))
    with contextlib.suppress(OSError):  # of a file that cannot be read, importlib decides
        if not any(ENTRY_POINTS.encode() in path.read_bytes() for path in files):
            return ()
    from importlib.metadata import entry_points

    formats: list[Format] = []
    for point in entry_points(group=ENTRY_POINTS):
        try:
            loaded = point.load()
        except Exception as error:  # noqa: BLE001 - another package's code may raise anything
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"the format plug-in {point.name!r} cannot be imported: {reason}", stacklevel=2
            )
            continue
        formats += loaded if isinstance(loaded, tuple | list) else [loaded]
    return tuple(formats)


def all_formats() -> tuple[Format, ...]:
    """Return every format: those of the package, then those of plug-ins."""
    return builtin_formats() + plugin_formats()


def named_format(name: str) -> Format | None:
    """Return the format of that name, or None."""
    row = table().get(name)
    formats = plugin_formats() if row is None else _formats_in(row["module"])
    return next((entry for entry in formats if entry.name == name), None)


def _rows(name: str) -> Iterator[dict[str, str]]:
    return csv.DictReader(Path(__file__).with_name(name).read_text("utf-8").splitlines())


@cache
def table() -> dict[str, dict[str, str]]:
    """Return the row of each format of the package by its name."""
    return {row["name"]: row for row in _rows("formats.csv")}


@cache
def marks_of_modules() -> dict[str, list[str]]:
    """Return the modules below latencykit.io in the order of their formats, and their marks."""
    marks: dict[str, list[str]] = {row["module"]: [] for row in table().values()}
    for row in _rows("marks.csv"):
        mark = row["mark"]
        if not mark.startswith("^") and "\\" in mark:
            mark = json.loads(f'"{mark}"')
        marks[row["module"]].append(mark)
    return marks


@cache
def _formats_in(module: str) -> tuple[Format, ...]:
    formats = []
    for name, functions in importlib.import_module(f"latencykit.io.{module}").FORMATS.items():
        row = table()[name]
        pair = (functions,) if callable(functions) else functions
        if row["keys"]:  # of JSON: ``a & b | c``, or ``4000: a`` near its begin
            from latencykit.io.text_reports import has_json_keys  # not for logs

            size, colon, keys = row["keys"].rpartition(": ")
            alternatives = (tuple(some.split(" & ")) for some in keys.split(" | "))
            pair = (has_json_keys(*alternatives, within=int(size) if colon else None), *pair)
        sniff, read, write = (*pair, None)[:3]
        formats.append(
            Format(
                name, row["title"], row["level"], tuple(row["suffixes"].split()), sniff, read,
                write, row["unit"] or None, row["example"],
            )
        )  # fmt: skip
    return tuple(formats)
