"""Reading: detect the format, parse, and select series, latency type, tags and window of time."""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from latencykit import errors
from latencykit._limits import current_limits
from latencykit._records import record
from latencykit._text import brief, did_you_mean, natural_key, option, printable, without_login
from latencykit._typing import PathOrFrame
from latencykit.core import Data, is_samples, is_summary
from latencykit.core.histogram_log import HistogramLog, relabelled
from latencykit.core.run import TOTAL, Measure, Note, series_named
from latencykit.io import registry
from latencykit.io.files import source_of
from latencykit.io.sanity_checks import checked, longer_than_run
from latencykit.io.source import (
    COMMANDS,
    DOUBLED,
    ESCAPED,
    LITERAL,
    PASTED,
    Confidence,
    DocumentSource,
    Format,
    ReadOptions,
    SeveralDocuments,
    SkippedLines,
    Source,
    drop,
    level_name,
)
from latencykit.units import NANOSECONDS, parse_moment

if TYPE_CHECKING:
    import pandas as pd


# How Python reports text that is not a number, or a number that cannot be converted: the input's
# fault, whichever reader meets it. A text, like all patterns of errors: compiling takes time.
_NOT_A_NUMBER = (
    r"(?s)(?:could not convert string to (?:float|complex)"
    r"|invalid literal for int\(\) with base 10): (?P<text>.*)|"
    r"Exceeds the limit \(\d+ digits\) for integer string conversion"
    r"|cannot convert float (?:NaN|infinity) to integer"
)
_HINT = "--format-in NAME (format=) takes it for another format"


@record(kw_only=True)
class Selection(ReadOptions):
    """The parts of inputs to read, and how: what readers must know, tags, a window of time."""

    # No series or no tags select all of them.

    format: str | Format | None = None
    tags: tuple[str, ...] = ()
    begin: str | None = None
    end: str | None = None
    anywhere: bool = False
    """A series or tag has to be in one of the inputs only."""
    together: bool = False
    """The requests of all tags are one entry: a tag is one column of several."""
    totals: bool = False
    """Before the parts of a series comes an entry with all of them, an aggregate."""
    by: str | None = None
    """The column whose values are the parts of a series, in place of its tags."""

    @property
    def windowed(self) -> bool:
        """True if a window of time is selected."""
        return self.begin is not None or self.end is not None


_TO_UTF_8 = "convert it: iconv -f UTF-16 -t UTF-8, or `Out-File -Encoding utf8` in PowerShell"


def detect(source: Source, name: str | Format | None = None) -> Format:
    """Return the format of a source: the one named, or the one with the highest confidence."""
    if name is not None and not isinstance(name, str):
        return name
    if name is not None:
        named = registry.named_format(name)
        if named is None:
            known = ", ".join(sorted(entry.name for entry in registry.all_formats()))
            raise errors.InvalidArgumentError(f"{name!r} is not a format; the formats are {known}")
        if not source.is_dir and (source.clean(PASTED) or not _sniffed(named, source, [])):
            unknown = not _sniffed(named, source, [])
            _changed(source, set(), named, unknown=unknown, weak=unknown)
        return named
    data = b"" if source.is_dir else source.head.data
    if not source.is_dir and not data.removeprefix(b"\xef\xbb\xbf").strip():
        cut = "the compressed file is truncated, and nothing of it can be read"
        seen = "the file begins with blanks only" if len(data) > 100 else "the file is empty"
        seen = cut if source.cut else seen
        raise source.corrupt(None, seen, "the output of a tool", "was the tool's run recorded?")
    begin = data[:400]
    wide = begin[1::2].count(0) == len(begin) // 2 or begin[::2].count(0) * 2 == len(begin)
    if any(begin) and (wide or begin[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        raise source.corrupt(1, "the text is UTF-16 or UTF-32", "UTF-8", _TO_UTF_8)
    broken: list[tuple[Format, Exception]] = []
    changed = True
    while changed:  # of one head, then of it without what stands before its lines or between them
        if not source.is_dir:
            source.clean(PASTED)
        broken.clear()
        asked = _asked(source, broken)
        if _is_log(asked):  # it cannot be anything else
            if source.packing == "UTF-16":  # no program writes a log so: what else was changed?
                raise source.corrupt(1, "the text is UTF-16", "UTF-8", _TO_UTF_8)
            return asked[0][1]
        sure = {entry.name for confidence, entry in asked if confidence > Confidence.GENERIC}
        sure -= {"percentile-table"}  # which has a prefix for the name of a row
        claims = {entry.name: confidence for confidence, entry in asked if confidence}
        claims.pop("hlog", None)  # by its name only
        weak = {*claims} <= {
            "csv",
            "hdr-base64",
            "percentile-lines",
            "percentile-table",
        }  # parts of other reports
        unknown = not any(confidence for confidence, _ in asked) and not broken
        changed = _changed(source, sure, unknown=unknown, weak=weak)
    best = max(confidence for confidence, _ in asked)
    by_chance = "numbers" not in claims and max(claims.values(), default=0) <= Confidence.GENERIC
    if not source.is_dir and by_chance:
        from latencykit.io.other_files import hint_for

        claimed = {"readable": bool(claims), "table": "csv" in claims}
        if (hint := hint_for(source.head, source.shown, **claimed)) is not None:
            raise errors.UnknownFormatError(f"{source.shown}: {hint}")
    candidates = [entry for confidence, entry in asked if confidence == best and best]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        names = ", ".join(entry.name for entry in candidates)
        raise errors.UnknownFormatError(
            f"{source.shown}: this could be any of {names}; choose one with --format-in (format=)"
        )
    if broken:
        raise _bug(source, *broken[0]) from broken[0][1]
    first = next((line for line in source.head.lines if line.strip()), "")
    start, hint = printable(first, 50), ""
    seen = "this directory (name the files in it)"
    if not source.is_dir:
        from latencykit.io.raw.delimited import has_header_alone

        if has_header_alone(source.head):
            return registry.generic_formats()[0]  # the table's reader reports the missing rows
        from latencykit.io.raw.log_parts import hint_of

        hint = hint_of(source.head.lines)
        seen = f"this input (it begins '{printable(first, 300) if hint else start}')"
    raise errors.UnknownFormatError(
        f"{source.shown}: no reader knows {seen}; {f'{hint}; ' if hint else ''}"
        "`latencykit formats` lists what can be read, --format-in NAME forces one"
    )


_MARKS = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'))  # of the source of a page
_LOG_LINES = "tools.log_lines"
_CONTROL = re.compile(rb"[\0-\x08\x0b\x0e-\x1a]|\r(?!\n)")
_ABOVE = 5  # lines
_BLANK = re.compile(r"\s*")
_PROSE = re.compile(r"\s*(?:[A-Za-z][^\n\t]*(?: \S|:)[^\n\t]*)?")  # a head of a table has tabs
_SENTENCE = re.compile(r"\s*+(?:[A-Za-z']+(?: [\w',-]+){2,40} ?[:.])?\s*")
_AROUND = re.compile(  # words, tags, marks of what was left out
    r"(?:(?:[-*+#]{1,6}|\d+[.)]) +)?[A-Za-z](?=.*(?: \S|[:.!?]))(?:[^\n\t|={}\",;]|[,;] )*|\s*"
    r"|(?:</?[a-z][^<>\n]*>[^<>\n]*)+|[\[(<]?(?:\.\.\.|\u2026|snip)[\])>]?"
)
_OBJECT = re.compile(r"\s*(?:[\w$=]{1,60} ){0,3}[{\[]")


def _changes(
    source: Source, *, unknown: bool, weak: bool
) -> Iterator[tuple[dict[str, Any], Confidence]]:
    """Yield what may be left out of a text, or made of it, and the confidence that is enough."""
    # What stands before every line, blank lines and sentences above, commands where no reader is
    # sure, and of a text that none knows how an interpreter prints an object.
    from latencykit.io.text_reports import line_prefixes

    head, pasted, lines = source.head, source.pasted, source.head.lines
    prefixes = [] if source.prefix else [*line_prefixes("\n".join(lines))][::-1]
    for prefix in prefixes:  # a header or a title has no time of its own
        titled = weak and re.fullmatch(rf"(?:{prefix})[A-Za-z\"][^\d\n]*", lines[0])
        yield {"prefix": prefix}, Confidence.GENERIC if titled else Confidence.LIKELY
    if source.lines is None and not source.above and head.whole:
        yield from _blocks(lines, unknown=unknown, weak=weak)
    words, between = (_PROSE, _BLANK) if unknown else (_SENTENCE, _SENTENCE)
    above = [] if source.above or _CONTROL.search(head.data) else lines[: _ABOVE + 1]
    for number, (line, first) in enumerate(pairwise(above), 1):
        if not (_PROSE if weak and first[:1] in ("{", "[") else words).fullmatch(line):
            break
        row = line.split()[:1] == first.split()[:1] and re.search(r"\d", line)  # as those below it
        if not (between.fullmatch(first) or row):
            document = first[0] in "{[" and any(map(str.strip, lines[:number]))
            yield {"above": number}, Confidence.GENERIC if document else Confidence.LIKELY
    if len(lines) > 2 * _ABOVE and DOUBLED[0] not in pasted and not "".join(lines[1::2]).strip():
        yield {"pasted": pasted + DOUBLED}, Confidence.LIKELY
    if any(name in head.text and mark not in head.text for name, mark in _MARKS):
        yield {"pasted": pasted + ESCAPED}, Confidence.LIKELY
    if weak and COMMANDS[0] not in pasted and re.search(COMMANDS[0][0], b"\n" + head.data):
        yield {"pasted": pasted + COMMANDS}, Confidence.NO
    if unknown:
        yield from (({"prefix": prefix}, Confidence.GENERIC) for prefix in prefixes)
        if LITERAL[0] not in pasted and _OBJECT.match(head.text):
            yield {"pasted": pasted + LITERAL}, Confidence.GENERIC


def _blocks(
    lines: list[str], *, unknown: bool, weak: bool
) -> Iterator[tuple[dict[str, Any], Confidence]]:
    """Yield what leaves of a page, a mail or a comment its report, without the words around."""
    from latencykit.io.text_reports import line_prefixes

    marked = [k for k, line in enumerate(lines) if not _AROUND.fullmatch(line)] or [0]
    begin, end = marked[0], marked[-1] + 1
    words = "".join(lines[:begin] + lines[end:])
    if not words.strip() or not (unknown or weak or lines[begin][:1] == ">"):
        return
    block: dict[str, Any] = {"above": begin, "lines": end - begin}
    prefixes = [*line_prefixes("\n".join(lines[begin:end]))]
    for prefix in reversed(prefixes):
        yield {"prefix": prefix, **block}, Confidence.GENERIC if unknown else Confidence.LIKELY
    beside = [*lines[begin - 1 : begin], *lines[end : end + 1]]  # may be corrupt rows
    bare = not any(re.match(r"\w", line) for line in beside) and not re.search(r"\d", words)
    document = lines[begin][:1] in ("{", "[")
    if not prefixes and (unknown or weak) and (document or bare):
        yield block, Confidence.GENERIC if document else Confidence.LIKELY


def _changed(source: Source, sure: set[str], *formats: Format, unknown: bool, weak: bool) -> bool:
    """Change a source so that readers know it then, all that are sure of it without, too."""
    head, given = source.head, (source.prefix, source.above, source.lines, source.pasted)
    if head.is_dir or "\ufffd" in head.text or b"\0" in head.data:
        return False
    known_logs = (name for name, row in registry.table().items() if row["module"] == _LOG_LINES)
    timed = not sure.isdisjoint(known_logs)  # the time before a line is that of the request
    for change, least in [*_changes(source, unknown=unknown, weak=weak)]:
        if timed and "prefix" in change:
            continue
        source.prefix, source.above, source.lines, source.pasted = given
        vars(source).update(change)
        del vars(source)["head"]
        asked = [(_sniffed(entry, source, []), entry) for entry in formats] or _asked(source, [])
        known = {entry.name for level, entry in asked if level >= least and entry.name != "hlog"}
        if known and sure <= known:
            return True
    source.prefix, source.above, source.lines, source.pasted = given
    vars(source)["head"] = head
    return False


def _asked(
    source: Source, broken: list[tuple[Format, Exception]]
) -> list[tuple[Confidence, Format]]:
    """Formats and their confidence: of those with marks in the head, else of any table, else all.

    Of an interval log, which is asked first, that alone.
    """
    asked: list[tuple[Confidence, Format]] = []
    enough = (Confidence.LIKELY, Confidence.GENERIC, Confidence.GENERIC)
    for least, formats in zip(enough, registry.rounds(source.head), strict=True):
        for entry in formats:
            if all(entry is not other for _, other in asked):
                asked.append((_sniffed(entry, source, broken), entry))
            if _is_log(asked):
                return asked
        if max(asked, key=itemgetter(0))[0] >= least or (broken and least is Confidence.GENERIC):
            break
    return asked


def _is_log(asked: list[tuple[Confidence, Format]]) -> bool:
    return asked[0][0] is Confidence.CERTAIN and asked[0][1].name == "hlog"


def _sniffed(entry: Format, source: Source, broken: list[tuple[Format, Exception]]) -> Confidence:
    """The confidence of a format; one whose code fails is appended to `broken`."""
    try:
        return entry.sniff(source.head)
    except Exception as error:
        unread = isinstance(error, OSError) and error.errno
        if isinstance(error, MemoryError) or (unread and not source.is_dir):
            raise
        if not unread and not (  # files of a directory may go away, or be private
            isinstance(error, (errors.LatencyKitError, csv.Error))
            or re.match(_NOT_A_NUMBER, str(error))
        ):
            broken.append((entry, error))
        return Confidence.NO


def _bug(source: Source, entry: Format, error: Exception) -> errors.ReaderError:
    """The error that reports a bug in a reader."""
    kind = type(error).__name__
    text = f"{kind}: {printable(str(error), 80)}" if str(error) else kind
    return errors.ReaderError(
        f"{source.shown}: the reader {entry.name} broke over this file ({text}): "
        "this is a bug in the reader; please send us the file"
    )


_ANY_TOOL = ("hdr-base64", "percentile-lines")
_ONE = re.compile(r"\s*(?:\{|\[)(?![^\n]*[}\]]\s*\n[{\[])")  # a document, none behind it
_MOST_LINES = 1 << 26  # bytes of documents, one per line
_DEPTH = 5  # of objects in objects that are searched for documents


def read_source(
    source: Source,
    options: ReadOptions,
    format: str | Format | None = None,  # noqa: A002 - as `read` calls it
) -> dict[str, Data]:
    """Read every series of a source: name → data, with the run's source and format filled in.

    Of JSON that is not a tool's, read the tools' documents within it: of runs, of endpoints.
    """
    found: dict[str, Data] = {}
    try:
        found = _read_whole(source, options, format)
    except (errors.CorruptInputError, errors.InvalidArgumentError, errors.UnknownFormatError):
        if isinstance(format, Format) or not (
            found := _read_inside(source, options, format)
            or _read_above_words(source, options, format)
        ):
            raise
    if format is None and all(data.run.format in _ANY_TOOL for data in found.values()):
        found = _read_inside(source, options, None) or found
    return found


def _read_above_words(source: Source, options: ReadOptions, name: str | None) -> dict[str, Data]:
    """Read a text without the sentences below it that someone has written, and commands."""
    if source.is_dir or source.lines is not None or source.size > _MOST_LINES:
        return {}
    lines = source.text().splitlines()
    kept = len(lines)
    while kept and _SENTENCE.fullmatch(lines[kept - 1]):
        kept -= 1
    words = " ".join(filter(None, map(str.strip, lines[kept:])))
    if not kept or not (source.clean(COMMANDS) or words):
        return {}
    source.lines = kept
    vars(source).pop("head", None)
    try:
        found = _read_whole(source, options, name)
    except (errors.CorruptInputError, errors.InvalidArgumentError, errors.UnknownFormatError):
        return {}
    notes = [Note(f"words below it were left out: {printable(words, 60)!r}")] * bool(words)
    return {key: data.with_run(notes=(*notes, *data.run.notes)) for key, data in found.items()}


def _read_inside(source: Source, options: ReadOptions, name: str | None) -> dict[str, Data]:
    """Read the objects within a JSON document that are documents of tools, the outermost of each.

    A series has the keys that lead to it as its name, where those of others differ.
    """
    if options.pattern or options.column or source.is_dir:
        return {}
    one = _ONE.match(source.head.text) is not None
    if not one and (source.head.text[:1] != "{" or source.size > _MOST_LINES):
        return {}
    from latencykit.io.build import unique_name

    rows = [] if one else [line for line in source.text().splitlines() if line.strip()]
    if len(rows) > current_limits().series:
        return {}
    try:
        value = json.loads(source.text()) if one else [json.loads(line) for line in rows]
    except (ValueError, RecursionError):
        return {}
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    if not one:  # a line that is a document itself is its reader's
        waiting = [((f"run {k}",), line) for k, line in enumerate(value, 1)]
    found: list[tuple[tuple[str, ...], dict[str, Data]]] = []
    refused: list[tuple[str, ...]] = []
    for path, value in waiting:
        runs = enumerate(value, 1) if isinstance(value, list) else ()
        entries = value.items() if isinstance(value, dict) else ((f"run {k}", v) for k, v in runs)
        for key, inner in entries:
            if len(waiting) > (limit := current_limits().series):  # others would be lost
                if not found:
                    return {}
                raise errors.InputTooLargeError(
                    f"{source.shown}: more than {limit:,} JSON objects around documents; cut it "
                    "into parts, or allow more with --limit series=N (lk.limits)"
                )
            if len(path) > _DEPTH or not isinstance(inner, (dict, list)):
                continue
            part = DocumentSource(source, json.dumps(inner).encode(), 0)
            asked = [(_sniffed(one, part, []), one) for one in registry.candidates(part.head)]
            best = max(level for level, _ in asked)
            sure = [one for level, one in asked if level == best > Confidence.GENERIC]
            known = [one for one in sure if one.name == name or not (name or one.name in _ANY_TOOL)]
            try:
                series = _read_whole(part, options, known[0]) if len(known) == 1 else {}
            except errors.CorruptInputError:
                series = {}
            if series:
                found.append(((*path, key), series))
            else:
                waiting.append(((*path, key), inner))
                refused += [(*path, key)] if known else []
    paths = [path for path, _ in found]
    if not one and len({path[0] for path in paths}) < len(rows):
        return {}
    read = [*paths, *refused]
    lost = [path for path in refused if [path] == [one for one in read if one[: len(path)] == path]]
    notes = [Note(f"{printable('.'.join(path))} could not be read") for path in lost]
    differ = [len({path[k : k + 1] for path in paths}) > 1 for k in range(_DEPTH + 2)]
    named: dict[str, Data] = {}
    for path, series in found:
        own = [key for key, differs in zip(path, differ, strict=False) if differs]
        for kind, data in series.items():
            label = " ".join(own if kind == source.name else [*own, kind])
            named[unique_name(brief(label or kind), named)] = data.with_run(
                series=label if len(found) > 1 else data.run.series, notes=(*notes, *data.run.notes)
            )
    return named


def _read_whole(
    source: Source,
    options: ReadOptions,
    format: str | Format | None,  # noqa: A002
) -> dict[str, Data]:
    if options.pattern is not None:
        from latencykit.io.tools.log_lines import log_format

        format = log_format(options.pattern)  # noqa: A001
    chosen = detect(source, format)
    options = replace(options, skipped=SkippedLines())
    try:
        series = _parsed(chosen, source, options)
    finally:
        if more := options.skipped.total - options.skipped.reported:
            options.report(f"skipped: {source.shown}: {more:,} more corrupt lines")
    if not any(
        not is_summary(data)
        or data.stats
        or data.reported_percentiles
        or any((data.run.failed, data.run.timeouts, data.run.dropped, data.run.unfinished))
        for data in series.values()
    ):
        counted = any(is_summary(data) and data.count == 0 for data in series.values())
        seen = f"this {chosen.title} contains no latencies"
        seen = "no request was answered" if counted else seen
        raise errors.CorruptInputError(source.shown, None, seen, "at least one", "")
    if options.unit is not None:
        series = {name: _in_stated_unit(data, options.unit) for name, data in series.items()}
        if all(data.run.unit_from != "option" for data in series.values()):
            raise errors.InvalidArgumentError(
                f"{source.shown}: {chosen.title} states its unit itself; leave {option('unit')} out"
            )
    cut = Note("the compressed file is truncated at its end") if source.cut else None
    result: dict[str, Data] = {}
    for name, data in series.items():
        run = data.run
        doubt = longer_than_run(data, source.highest)
        doubts = filter(None, [cut, doubt, options.skipped.note])  # more important than the rest
        notes = dict.fromkeys([*doubts, *run.notes, *filter(None, [run.unit_note])])
        result[name or source.name] = data.with_run(
            source=source.name,
            format=chosen.name,
            series=(name or None) if len(series) > 1 else None,
            command=without_login(run.command or "") or None,
            notes=tuple(notes),
        )
    if not (options.columns or options.counted):
        shared: dict[str, Data] = {}
        for name, data in result.items():
            if is_samples(data):
                from latencykit.core.columns import Columns

                again = replace(options, columns=True, report=drop, skipped=SkippedLines())
                size = len(data), int(data.duration.sum())
                load = _Later(source, source.shown, again, chosen, name, size, shared)
                result[name] = data.with_columns(Columns(load=load))
    return result


@dataclass
class _Later:
    """Reads the further columns of samples, by reading the input again when they are used."""

    source: Source | None
    path: str
    options: ReadOptions
    format: Format
    name: str
    size: tuple[int, int]  # number of rows, and the sum of their durations
    shared: dict[str, Data]  # series of the input that have been read again and not yet used

    def __call__(self) -> dict[str, object]:
        source = self.source or source_of(self.path)
        if self.name not in self.shared:
            self.shared.update(read_source(source, self.options, self.format))
        data = self.shared.pop(self.name, None)
        self.source = None
        if not is_samples(data) or (len(data), int(data.duration.sum())) != self.size:
            seen = "the file has changed since its latencies were read"
            raise source.corrupt(None, seen, "the same rows", "read it again")
        return {name: data.columns.cells(name) for name in data.columns}


def _in_stated_unit(data: Data, unit: str) -> Data:
    """Data of an assumed unit in the user's unit, if its reader did not resolve it."""
    run = data.run
    if run.unit_from != "assumed" or run.unit not in NANOSECONDS:
        return data
    facts: dict[str, object] = {
        "unit": unit,
        "unit_from": "option",
        "notes": tuple(note for note in run.notes if note != run.unit_note),
    }
    if is_samples(data):
        factor = (1.0 if unit == "none" else NANOSECONDS[unit]) / NANOSECONDS[run.unit]
        names = ("start", "intended", "outcome", "connection", "tag")
        columns = {name: getattr(data, name) for name in names}
        return type(data)(
            duration=data.duration * factor,
            unit="none" if unit == "none" else "ns",
            run=run.replace(**facts),
            **{name: column for name, column in columns.items() if column is not None},
        ).with_columns(data.columns)
    bare: Any = data.to_unit(run.unit)
    if isinstance(bare, HistogramLog):
        bare = relabelled(bare, unit)
    else:
        runs = tuple(replace(run, unit=unit) for run in getattr(bare, "runs", ()))
        bare = replace(bare, unit=unit, **({"runs": runs} if runs else {}))
    return cast("Data", (bare if unit == "none" else bare.to_unit(data.unit)).with_run(**facts))


def _parsed(chosen: Format, source: Source, options: ReadOptions) -> dict[str, Data]:
    """Series of a source; whatever breaks in a reader is reported as its bug."""
    # But text in place of a number is the input's fault, and so is JSON of another shape than the
    # tool's: the file is corrupt, or the tool has a version that we have not seen.
    try:
        with np.errstate(invalid="raise", over="raise"):
            runs = _runs(chosen, source, options)
        return {
            f"run {number} {name}".rstrip() if len(runs) > 1 else name: checked(data)
            for number, run in enumerate(runs, 1)
            for name, data in run.items()
        }
    except errors.LatencyKitError as error:
        named = source.shown in str(error)
        refused = (
            errors.InputTooLargeError,
            errors.IncompatibleDataError,
            errors.DataNotAvailableError,
        )
        if isinstance(error, refused) and not named:
            raise type(error)(f"{source.shown}: {error}") from error
        if not isinstance(error, errors.InvalidArgumentError) or named:
            raise
        raise source.corrupt(None, str(error)) from error
    except Exception as error:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno):
            raise
        number = re.match(_NOT_A_NUMBER, str(error)) if isinstance(error, ValueError) else None
        expected, hint = f"an intact output of {chosen.title}", _HINT
        shape = (AttributeError, LookupError, TypeError, ValueError)
        if isinstance(error, csv.Error):
            seen = f"this is not a table ({error})"
        elif isinstance(error, (FloatingPointError, OverflowError)):
            seen, expected = "a number in it is too large", "latencies"
        elif number is not None:
            text = printable(number["text"] or "the text in a number's place", 60)
            seen = f"{text} cannot be read as a number"
        elif isinstance(error, shape) and (source.json or not chosen.sniff(source.head)):
            text = f"{type(error).__name__}: {printable(str(error), 80)}"
            seen = f"this is not what {chosen.title} contains ({text})"
            expected = "an intact output"  # of a format that the user named, perhaps
            hint = "if the tool wrote it so, please send us the file"
        else:
            raise _bug(source, chosen, error) from error
        raise source.corrupt(None, seen, expected, hint) from error


def _runs(chosen: Format, source: Source, options: ReadOptions) -> list[dict[str, Data]]:
    """Series of a source, or of each of the documents in it, and of those in these."""
    # Long names are cut as other words are; of equal names, later ones are numbered.
    try:
        series = chosen.read(source, options)
        if isinstance(series, dict) and all(brief(name) == name for name in series):
            return [series]
        from latencykit.io.build import unique_name

        named: dict[str, Data] = {}
        for name, data in series.items() if isinstance(series, dict) else series:
            named[unique_name(brief(name), named)] = data
    except SeveralDocuments as several:
        texts = ((text.encode("utf-8", "surrogateescape"), line) for text, line in several.parts)
        parts = [DocumentSource(source, *part) for part in texts]
        return [run for part in parts for run in _runs(chosen, part, options)]
    return [named]


def select(source: Source, selection: Selection) -> list[tuple[str, str, Data]]:
    """Read a source; return series, tag and data of what is selected."""
    # A tagged log or tagged samples give one entry per tag, unless all are taken together.
    path = source.shown
    if selection.counted and selection.windowed:
        selection = replace(selection, counted=False)
    series = read_source(source, selection, selection.format)
    chosen: dict[str, list[str]] = {}
    if selection.series:
        chosen = {name: series_named(name, series) for name in selection.series}
    parts_named = {name for name, matches in chosen.items() if not matches}
    named = {name for matches in chosen.values() for name in matches}
    if selection.together and not selection.series:  # what sums up the others is enough
        series = {name: data for name, data in series.items() if data.run.aggregate} or series
    entries: list[tuple[str, str, Data]] = []
    tags, total_of_all = set[str](), TOTAL in parts_named and _total_of(series)
    if parts_named - {TOTAL}:
        selection = replace(selection, together=False)
    for name, data in series.items():
        whole = not selection.series or name in named
        if not (whole or parts_named):
            continue
        data = _with_measure(data, selection.measure)
        parts = _parts(data, selection)
        split = len(parts) > 1 and not selection.tags
        if split:
            tags.add(TOTAL)
            if TOTAL in parts_named or (whole and selection.totals):
                entries.append((name, TOTAL, _window(data.with_run(aggregate=True), selection)))
        elif name == total_of_all:
            entries.append((name, name, _window(data, selection)))
            tags.add(TOTAL)
        for tag, part_data in parts.items():
            own = tag if selection.by else (part_data.run.tags or ("",))[0]
            tags.add(own)
            asked = not selection.tags or own in selection.tags
            if asked and (whole or own in parts_named):
                entries.append((name, tag, _window(part_data, selection)))
    if selection.anywhere:
        return entries
    missing = [name for name in chosen if name in parts_named - tags]
    if missing:
        hint = did_you_mean(missing[0], {*series, *tags} - {""})
        raise errors.InvalidArgumentError(f"{path}: has no series {missing[0]!r}{hint}")
    unknown = [tag for tag in selection.tags if tag not in tags]
    if unknown:
        hint = did_you_mean(unknown[0], tags) if tags - {""} else ""
        raise errors.InvalidArgumentError(f"{path}: no line has the tag {unknown[0]!r}{hint}")
    return entries


def _total_of(series: dict[str, Data]) -> str | None:
    """The only series, or the one that sums up the others."""
    names = [name for name, data in series.items() if data.run.aggregate] or list(series)
    return names[0] if len(names) == 1 else None


def _parts(data: Data, selection: Selection) -> dict[str, Data]:
    """Return the parts of a series by tag, or by the values of a column."""
    if selection.by not in (None, "tag"):
        if is_samples(data):
            return dict(data.by(selection.by))
        raise errors.InvalidArgumentError(
            f"{data.run.source}: --by {selection.by} needs single requests; a log is split by its "
            "tags (--by tag)"
        )
    if selection.together and not (selection.tags or selection.by):
        return {"": data}
    return expand_tags("", data)


def expand_tags(name: str, data: Data) -> dict[str, Data]:
    """Return one entry per tag of a tagged log or tagged samples; other data under `name`."""
    if not (isinstance(data, HistogramLog) or is_samples(data)) or not data.tags:
        return {name: data}
    parts = data.by_tag()
    return {tag or name: parts[tag] for tag in sorted(parts, key=natural_key)}


def _with_measure(data: Data, measure: Measure | None) -> Data:
    """Return the data by the latency type asked for."""
    if measure is None:
        return data
    if is_samples(data):
        return data.measured(measure)
    if data.run.measure not in (measure, "unknown"):
        raise errors.DataNotAvailableError(
            f"{data.run.source} has {data.run.measure} times only; "
            "raw samples with intended starts have both"
        )
    return data


def _window(data: Any, selection: Selection) -> Any:
    """Return the part of the data between the ends of the window."""
    if not selection.windowed:
        return data
    if not hasattr(data, "between"):
        raise errors.DataNotAvailableError(
            f"{data.run.source}: a histogram of a complete run has no times; "
            "--from and --to need a log or samples"
        )
    try:
        start = parse_moment("-inf" if selection.begin is None else selection.begin, data.epoch)
        end = parse_moment("inf" if selection.end is None else selection.end, data.epoch)
    except errors.DataNotAvailableError as error:
        raise errors.DataNotAvailableError(f"{data.run.source}: {error}") from None
    if start > end:
        raise errors.InvalidArgumentError(
            f"--from {selection.begin} is later than --to {selection.end}: "
            "nothing lies between them; exchange the two"
        )
    if start == end:
        raise errors.InvalidArgumentError(
            f"--from {selection.begin} and --to {selection.end} are the same moment: "
            "--to itself is not included"
        )
    part = data.between(start, end)
    if len(part) < len(data):
        total, left = data.histogram(), part.histogram()
        kept = left.count and left.percentile(100) == total.percentile(100)
        selection.report(
            f"{data.run.source}: --from/--to kept {left.count:,} of {total.count:,} requests; "
            f"the maximum {'is still in it' if kept else 'is among those left out'}"
        )
    return part


def read(
    path: PathOrFrame,
    *,
    format: str | None = None,  # noqa: A002 - the contract's name
    series: str | None = None,
    tag: str | None = None,
    measure: Measure | None = None,
    unit: str | None = None,
    column: str | None = None,
    start_column: str | None = None,
    pattern: str | None = None,
    lenient: bool = False,
    counted: bool = False,
    jobs: int | None = None,
) -> Data:
    """Read one series of any output that latencykit knows.

    Parameters
    ----------
    path : str, os.PathLike, Series or data frame
        A file (also compressed), a URL, a directory where the tool writes one, or ``-``; or a frame
        or Series of pandas, Polars or Arrow, which is read as a file of it would be.
    format : str, optional
        Name of the format, to skip detection.
    series : str, optional
        Name of the series, if the output has several.
    tag : str, optional
        One tag of a tagged log; ``""`` for its untagged lines. Without it, all tags stay in one
        `HistogramLog`.
    measure : {"response", "service"}, optional
        Latency type, for sources that record the intended start; response is the default there.
    unit : str, optional
        Unit of the recorded values: ``ns``, ``us``, ``ms``, ``s``, ``none``.
    column, start_column : str, optional
        The columns of latencies and of starts in a table of raw samples, by name or by number
        from 1.
    pattern : str, optional
        What a line of a log looks like: a regular expression with ``(?P<latency>…)``, and
        ``start`` or ``end``, ``status`` and further columns; or nginx's or Apache's log format. The
        unit of a latency stands beside it, or in the group's name: ``latency_ms``.
    lenient : bool, default False
        Skip corrupt lines; the notes of the run count them.
    counted : bool, default False
        Only a histogram will be asked for: the rows of long tables are counted as they are read,
        in bounded memory.
    jobs : int, optional
        Threads that decode a long file, of a log two at most; the answers are the same. By default
        the number in the environment variable ``LATENCYKIT_JOBS``, else one per core; in threads
        and processes that others are beside (a pool's, a Dask worker's) one.

    Returns
    -------
    Samples, HistogramLog, Histogram or Summary
        The most detailed data type of the output.

    Raises
    ------
    LatencyKitError
        For an unknown format, corrupt input, or several series without a name.
    """
    options = ReadOptions(
        series=listed(series),
        measure=measure,
        unit=unit,
        column=column,
        start_column=start_column,
        pattern=pattern,
        lenient=lenient,
        counted=counted,
        jobs=jobs,
    )
    if isinstance(path, str | os.PathLike):
        entries = read_source(source_of(str(path)), options, format)
    else:
        from latencykit.io.raw.binary import FRAME, FrameSource

        name = type(path).__name__
        if format is not None:
            raise errors.InvalidArgumentError(f"format= is for files; leave it out for a {name}")
        entries = read_source(FrameSource(path), replace(options, columns=True), FRAME)
        path = name
    if series is None and len(entries) > 1:
        raise errors.InvalidArgumentError(
            f"{path}: has several series: {', '.join(entries)}; "
            "name one with series= (or use read_all)"
        )
    whole = _total_of(entries)
    if series == TOTAL and series not in entries:
        series = whole or series
    if series is not None and series not in entries:
        parted = entries.get(whole or "") if len(entries) == 1 and tag is None else None
        tags = getattr(parted, "tags", ())
        if series not in tags:
            hint = did_you_mean(series, [*entries, *tags])
            raise errors.InvalidArgumentError(f"{path}: has no series {series!r}{hint}")
        series, tag = whole, series  # as `read_all` names it
    data = _with_measure(entries[next(iter(entries)) if series is None else series], measure)
    if tag is None:
        return data
    if not (isinstance(data, HistogramLog) or is_samples(data)):
        raise errors.InvalidArgumentError(f"{path}: a {level_name(data)} has no tags")
    return data.tagged(tag)


def listed(value: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return names as a tuple; none stand for all."""
    names = () if value is None else (value,) if isinstance(value, str) else tuple(value)
    if value is not None and not names:
        raise errors.InvalidArgumentError(
            "an empty list selects nothing; leave it out to select all"
        )
    return names


def unique_names(named: Sequence[tuple[str, str, Data]]) -> dict[str, Any]:
    """Return name → data from (path, name, data)."""
    # Equal names are prefixed with as much of the path as distinguishes the files, and numbered
    # where that is not enough.
    if not named:
        raise errors.InvalidArgumentError("none of the files has the series or tags asked for")
    count = Counter(name for _, name, _ in named)
    tails: dict[str, list[str]] = {}  # of equal names: ends of each path, the shortest first
    for path in dict.fromkeys(path for path, _, _ in named) if len(count) < len(named) else ():
        parts = PurePath(path).parts
        tails[path] = [str(PurePath(*parts[-k:])) for k in range(1, len(parts) + 1)]
    often = Counter(tail for some in tails.values() for tail in some)
    result: dict[str, object] = {}
    for path, name, data in named:
        file, label = PurePath(path).name, name
        if count[name] > 1:
            rest = name.removeprefix(file) if name.startswith(file) else f":{name}"
            label = next((tail for tail in tails[path] if often[tail] == 1), path) + rest
        number, unique = 2, label
        while unique in result:
            unique, number = f"{label} ({number})", number + 1
        result[unique] = data
    return result


def formats() -> pd.DataFrame:
    """Return a table of all formats: name, title, data type, suffixes, unit, read and written.

    Examples
    --------
    >>> bool(formats().loc["hlog", "writes"])
    True
    """
    import pandas as pd

    rows = [
        {
            "name": entry.name, "title": entry.title, "suffixes": " ".join(entry.suffixes),
            "data_type": entry.level,
            "unit": entry.unit or "stated", "reads": True, "writes": entry.write is not None,
            "example": entry.example,
        }
        for entry in registry.all_formats()
    ]  # fmt: skip
    return pd.DataFrame(rows).set_index("name")
