"""Samples as JSON: one object per line, a list of objects or of numbers, an object of columns."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from latencykit._text import format_items, printable
from latencykit._threads import in_order, jobs
from latencykit.io import json_text
from latencykit.io.build import word_set
from latencykit.io.raw.aggregates import looks_aggregated
from latencykit.io.raw.build_samples import build_data
from latencykit.io.raw.cells import are_statistics, latency_columns, roles_of, start_and_end
from latencykit.io.raw.columns import ColumnPlan, looked_at, plan_of
from latencykit.io.raw.outcomes import candidate
from latencykit.io.rows import CUT_LINE, Table, cells_of, line_chunks
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source, refuse_rows

_DECODER = json.JSONDecoder()
_REPORT = ("statistics", "percentiles", "histogram", "histograms", "counters")
"""Keys above the results of many requests: a duration beside them is how long a run took."""
_LIST = re.compile(
    r'\[\s*(?:-?[\d.]{1,40}(?:[eE][-+]?\d{1,3})?|NaN|null|"[\d.]{1,40} ?[a-zµ]+")\s*+(?:,|\]?\s*+$)'
)
"""The first entry of a list: not that of a log, ``[2026-05-01 12:34:56] …``."""
_SAMPLE = 400
_TYPED = 100  # lines from which the types of columns are inferred


def _has_latency(record: object) -> bool:
    """True if an object names a latency, or a bucket and its count."""
    if not isinstance(record, dict) or any(
        isinstance(record.get(key), dict | list) for key in _REPORT
    ):
        return False
    if any(isinstance(value, list) and latency_columns([key])[0] for key, value in record.items()):
        return False  # a document of columns
    columns = json_text.flat(record)
    return bool(latency_columns(columns)[0] or start_and_end(columns)) or looks_aggregated(columns)


def _first_value(text: str, at: int) -> object:
    try:
        return _DECODER.raw_decode(json_text.without_halves(text), at)[0]
    except (ValueError, RecursionError):
        return None


def sniff_lines(head: Head) -> Confidence:
    """Recognise objects, one per line, that name a latency."""
    lines = [line for line in head.lines[:200] if line.strip()][:3]
    if not lines or not all(line.lstrip().startswith("{") for line in lines):
        return Confidence.NO
    if len(lines) == 1:
        from latencykit.io import percentile_lines

        if percentile_lines.sniff(head):
            return Confidence.NO  # a report, not a request
    records = [_first_value(line.strip(), 0) for line in lines]
    if len(records) > 1 and all(isinstance(record, dict) for record in records):
        return Confidence.GENERIC
    alone = records[0]
    of_a_run = isinstance(alone, dict) and are_statistics(json_text.flat(alone))  # or its SLO
    of_many = bool(_lists_in(alone)[0])  # a search's result, which says how long it took, too
    fits = _has_latency(alone) and not of_a_run and not of_many
    return Confidence.GENERIC if fits else Confidence.NO


def sniff_document(head: Head) -> Confidence:
    """Recognise a list of numbers, a list of objects that name a latency, or named columns."""
    text = head.text.lstrip()
    if text[:1] == "[":
        begin = len(text) - len(text[1:].lstrip())
        fits = _LIST.match(text) is not None or _has_latency(_first_value(text, begin))
    elif text[:1] == "{" and sniff_lines(head) == Confidence.NO:
        lists = list(re.finditer(r'"([^"\\]{1,80})"\s*:\s*(?:\[|\{\s*"0"\s*:)\s*', text))
        names = [match[1] for match in lists]
        named = looks_aggregated(names) or any(
            re.match(r'-?[\d.]|"\d', text[match.end() :]) and latency_columns([match[1]])[0]
            for match in lists
        )
        fits = named or any(_has_latency(_first_value(text, match.end())) for match in lists[:5])
        fits = fits or _are_objects(text)
    else:
        fits = False
    return Confidence.GENERIC if fits else Confidence.NO


# ---------------------------------------------------------------- one object per line


def read_lines(
    source: Source, options: ReadOptions, plan: ColumnPlan | None = None
) -> dict[str, Data]:
    """Read the objects, a chunk of lines at a time, by a tool's plan or one of their own."""
    lines = [line for line in source.head.lines[: 2 * _SAMPLE] if line.strip()][:_SAMPLE]
    values = (_first_value(line.strip(), 0) for line in lines)
    records = [value for value in values if isinstance(value, dict)]
    if not records:
        raise source.corrupt(1, "it contains no object", "one JSON object per line", "")
    plan = plan or plan_of(_sample_of(records, options).columns, options, source)
    notes: list[str] = []
    frames = _frames(source, options, (*plan.numbers, *plan.words), notes)
    return build_data(frames, plan, options, source, partial(_lines_of, source), notes)


def _sample_of(records: Sequence[Mapping[str, object]], options: ReadOptions) -> Table:
    """The first objects as a table of the columns that are looked at."""
    rows = [json_text.flat(record) for record in records]
    names = looked_at(chain.from_iterable(rows), options)
    return Table({name: cells_of([row.get(name) for row in rows]) for name in names})


def _frames(
    source: Source, options: ReadOptions, columns: Sequence[str], notes: list[str]
) -> Iterator[Table]:
    """Chunks of rows, by pyarrow where it is installed and can read them, else by json."""
    fast, done, wide = _fast_parser(columns, source.head), 0, False

    def parse(piece: tuple[int, bytes]) -> tuple[int, bytes, bool, Table | None]:
        taken = wide
        return *piece, taken, fast(piece[1], taken) if piece[1].endswith(b"\n") else None

    threads = 1 if source.head.whole else jobs(options.jobs)
    for first, chunk, taken, table in in_order(line_chunks(source), parse, threads):
        if chunk.endswith(b"\n") and (taken != wide or (table is None and not wide)):
            table, wide = fast(chunk, True), True  # as all chunks after this one
        if table is None:
            records = json_text.batch(first, chunk, source, options, notes)
            strange = [k for k, record in enumerate(records) if not isinstance(record, dict)]
            if strange:
                refuse_rows(
                    [done + k for k in strange], partial(_lines_of, source), source, options,
                    "this is not an object", "",
                )  # fmt: skip
                records = [record for record in records if isinstance(record, dict)]
            table = _table_of_objects(records, columns, source)
        yield replace(table, first=done)
        done += len(table)


def _fast_parser(columns: Sequence[str], head: Head) -> Callable[[bytes, bool], Table | None]:
    """Pyarrow's parser for flat objects; None for a chunk unlike the first objects."""
    # Their types are taken from the head, for a chunk may name as many columns as it likes; or what
    # these may turn out to be further down.
    try:
        import pyarrow as pa
        from pyarrow import json as arrow
    except ImportError:
        return lambda *_: None

    def read(data: bytes, **rules: object) -> Any:
        options = arrow.ReadOptions(block_size=len(data))
        how = arrow.ParseOptions(newlines_in_values=False, **rules)
        return arrow.read_json(pa.BufferReader(data), options, how)

    begin = b"".join(head.data.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)[:_TYPED])
    try:
        seen = {field.name: field.type for field in read(begin).schema}
    except (pa.ArrowException, UnicodeDecodeError):
        return lambda *_: None
    kinds = {name: seen[name] for name in columns if name in seen}
    kinds = {name: pa.string() if pa.types.is_null(k) else k for name, k in kinds.items()}
    if len(kinds) < len(columns) or any(map(pa.types.is_nested, kinds.values())):
        return lambda *_: None
    reals = {name: pa.float64() for name, k in kinds.items() if pa.types.is_integer(k)}
    texts = {name: pa.string() for name, k in kinds.items() if pa.types.is_timestamp(k)}
    schemas = [pa.schema(list(some.items())) for some in (kinds, kinds | reals | texts)]

    def parse(chunk: bytes, wide: bool) -> Table | None:
        rules = {"explicit_schema": schemas[wide], "unexpected_field_behavior": "ignore"}
        try:
            table = read(chunk, **rules)
            table.validate(full=True)  # of UTF-8
            return Table.of_arrow(table)
        except (pa.ArrowException, UnicodeDecodeError):
            return None

    return parse


_CELL = 16  # bytes


def _table_of_objects(
    records: Sequence[Mapping[str, object]], columns: Sequence[str], source: Source
) -> Table:
    source.check_memory(len(records) * len(columns) * _CELL, "a table of all its columns")
    paths = {column: column.split(".") for column in columns}
    return Table(
        {
            name: cells_of(
                [
                    json_text.leaf(record.get(name) if len(path) == 1 else _at(record, path))
                    for record in records
                ]
            )
            for name, path in paths.items()
        }
    )


def _at(record: Mapping[str, object], path: Sequence[str]) -> object:
    """The value at a path; keys may have points of their own: ``resource.service.name``."""
    for size in range(1, len(path) + 1):
        value = record.get(path[0] if size == 1 else ".".join(path[:size]))
        if size == len(path):
            return value
        if isinstance(value, dict):
            return _at(value, path[size:])
    return None


_PAIR = re.compile(r'(?:^|(?<=[\s,;\[{]))([A-Za-z_@][\w.@-]*)=("(?:[^"\\]|\\.)*"|[^\s,;\]}"]*)')


def pairs(line: str) -> dict[str, str]:
    """Return the pairs of a line; of a key that comes twice, the last one."""
    return {key: value.strip('"') for key, value in _PAIR.findall(line)}


def sniff_pairs(head: Head) -> Confidence:
    """Recognise lines of ``key=value``: the same keys in most of them, of a request."""
    # A request has a time or an outcome beside its latency; a run has settings or counts.
    rows = [pairs(line) for line in head.lines[:_SAMPLE] if line.strip()]
    keys = dict.fromkeys(chain.from_iterable(rows))
    often = [key for key in keys if sum(key in row for row in rows) > 0.5 * len(rows)]
    of_a_run = are_statistics(keys) or looks_aggregated(keys) or not _SETTINGS.isdisjoint(keys)
    if of_a_run or (len(rows) < 2 and len(keys) < _SURE):
        return Confidence.NO
    if not (latency_columns(often)[0] or start_and_end(often)):
        return Confidence.NO
    if any(line.lstrip().startswith("<") for line in head.lines[:_SAMPLE]):
        return Confidence.NO  # of a page or a picture
    own = {part.column for part in latency_columns(often)[0] if part.stem not in _OF_OTHERS}
    dated = not own.isdisjoint(often) and "start" in roles_of(often, next(iter(own), ""))
    fits = dated or bool(own and any(map(candidate, often))) or bool(start_and_end(often))
    return Confidence.GENERIC if fits else Confidence.NO


_SURE = 6  # pairs of a lone line
_OF_OTHERS = ("delay", "cost")  # of a retry or a move
_SETTINGS = word_set(
    "rate rps qps conns connections threads concurrency workers clients users vus iterations seed"
)


def read_pairs(
    source: Source, options: ReadOptions, plan: ColumnPlan | None = None
) -> dict[str, Data]:
    """Read the lines, a chunk at a time; those without latency and outcome are other messages."""
    notes: list[str] = []
    rows = [pairs(line) for line in source.head.lines[: 2 * _SAMPLE] if line.strip()]
    if not rows:
        raise source.corrupt(1, "it contains no pair", "key=value", "")
    plan = plan or plan_of(_sample_of(rows[:_SAMPLE], options).columns, options, source)
    wanted = {plan.duration, *(outcome.column for outcome in plan.outcomes)}

    def frames() -> Iterator[Table]:
        done = others = 0
        last: dict[str, str] = {}
        for _, chunk in line_chunks(source):
            texts = chunk.decode("utf-8", "replace").split("\n")
            records = [pairs(text) for text in texts if text.strip()]
            # A line without an end is cut where it does not end in the pair that others end in.
            before = records[-2] if len(records) > 1 else last
            if texts[-1].strip() and before and list(before)[-1:] != list(records[-1])[-1:]:
                notes.append(CUT_LINE)
                records.pop()
            if not records:
                continue
            last = records[-1]
            rows = [k for k, record in enumerate(records) if not wanted.isdisjoint(record)]
            some = [records[k] for k in rows]
            table = _table_of_objects(some, (*plan.numbers, *plan.words), source)
            yield replace(table, first=done, rows=np.array(rows, np.int64))
            done, others = done + len(records), others + len(records) - len(rows)
        if others:
            notes.append(f"{format_items(others, 'line')} about something else left out")

    return build_data(frames(), plan, options, source, partial(_lines_of, source), notes)


def _lines_of(source: Source, rows: Sequence[int]) -> list[tuple[int | None, str]]:
    """Lines and texts of objects: found by reading the file again, for messages only."""
    lines: list[tuple[int | None, str]] = []
    row, numbers = -1, set(rows)
    for first, chunk in line_chunks(source):
        for number, line in enumerate(chunk.split(b"\n"), first):
            row += bool(line.strip())
            if row in numbers and line.strip():
                lines.append((number, line.decode("utf-8", "replace")))
    return lines


# ---------------------------------------------------------------- one document


def read_document(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read a list of objects or of numbers, or an object of lists."""
    notes: list[str] = []
    several = _are_objects(source.head.text.lstrip())
    value = [*json_text.values(source.text(), source, notes)] if several else json_text.load(source)
    records, lists = _lists_in(value)
    if not any(lists.values()):
        raise source.corrupt(1, "it contains no list", "a list of objects or of numbers", "")
    if records is not None:
        strange = next((k for k, entry in enumerate(records) if not isinstance(entry, dict)), None)
        if strange is not None:
            shown = printable(repr(records[strange]), 30)
            seen = f"entry {strange + 1} is not an object: {shown}"
            raise source.corrupt(None, seen, "an object", "")
        sample = _sample_of(records[:_SAMPLE], options)
    else:
        named = latency_columns(lists)[0]
        size = len(lists[named[0].column]) if named else max(map(len, lists.values()))
        names = looked_at((name for name, column in lists.items() if len(column) == size), options)
        sample = Table({name: cells_of(lists[name][:_SAMPLE]) for name in names})
    plan = plan_of(sample.columns, options, source)
    wanted = (*plan.numbers, *plan.words)
    if records is not None:
        table = _table_of_objects(records, wanted, source)
    else:
        table = Table({name: cells_of(lists[name]) for name in wanted})

    def locate(rows: Sequence[int]) -> list[tuple[int | None, str]]:
        return [(None, f"entry {row + 1}") for row in rows]

    return build_data([table], plan, options, source, locate, notes)


def _are_objects(text: str) -> bool:
    """True if requests follow one another, each on several lines."""
    with contextlib.suppress(ValueError, RecursionError):
        first, end = _DECODER.raw_decode(json_text.without_halves(text))
        if _has_latency(first) and text[end:].lstrip()[:1] == "{":
            return not (are_statistics(json_text.flat(first)) or _lists_in(first)[0])
    return False


def _lists_in(value: object) -> tuple[list[Any] | None, dict[str, list[Any]]]:
    """The list of records in a document, if there is one, and all lists by name."""
    if isinstance(value, list):
        return (value if value and isinstance(value[0], dict) else None), {"1": value}
    items: Iterable[tuple[str, Any]] = value.items() if isinstance(value, dict) else ()
    keys = [[*column] for _, column in items if isinstance(column, dict)]
    if len(keys) > 1 and all(each == [*map(str, range(len(keys[0])))] for each in keys):
        items = [(name, [*column.values()]) for name, column in items if isinstance(column, dict)]
    lists = {name: column for name, column in items if isinstance(column, list)}
    some = (column for column in lists.values() if column and _has_latency(column[0]))
    records = next(some, None)
    if records is None and not latency_columns(lists)[0]:
        inside = (_lists_in(item) for _, item in items if isinstance(item, dict))
        return next((found for found in inside if any(found[1].values())), (None, lists))
    return records, lists


FORMATS = {
    "jsonl": (sniff_lines, read_lines),
    "logfmt": (sniff_pairs, read_pairs),
    "json-samples": (sniff_document, read_document),
}
