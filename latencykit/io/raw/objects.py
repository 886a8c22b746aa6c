"""Samples as JSON: one object per line, a list of objects or of numbers, an object of columns."""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from latencykit.io import text as jsontext
from latencykit.io.raw.aggregates import looks_aggregated
from latencykit.io.raw.build_samples import gathered
from latencykit.io.raw.cells import latency_columns
from latencykit.io.raw.columns import plan_of
from latencykit.io.rows import line_chunks
from latencykit.io.source import Confidence, Format, refuse_rows
from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]


class _Twice(dict[str, Any]):
    """An object in which a key occurs twice; its parser keeps only the last value."""

    keys_given: list[str]


def _noticed(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) == len(pairs):
        return record
    twice = _Twice(record)
    twice.keys_given = [key for key, _ in pairs]
    return twice


_DECODER = json.JSONDecoder(object_pairs_hook=_noticed)
_SAMPLE = 400


def _has_latency(record: Any) -> bool:
    """True if an object names a latency, or a bucket and its count."""
    if not isinstance(record, dict):
        return False
    columns = jsontext.flat(record)
    return bool(latency_columns(columns)[0]) or looks_aggregated(columns)


def _first_value(text: str, at: int) -> Any:
    try:
        return _DECODER.raw_decode(jsontext.without_halves(text), at)[0]
    except (ValueError, RecursionError):
        return None


def sniff_lines(head: Head) -> Confidence:
    """Recognise objects, one per line, that name a latency."""
    lines = [line for line in head.lines[:200] if line.strip()][:3]
    if not lines or not all(line.lstrip().startswith("{") for line in lines):
        return Confidence.NO
    records = [_first_value(line.strip(), 0) for line in lines]
    several = len(records) > 1 and all(isinstance(record, dict) for record in records)
    return Confidence.GENERIC if several or _has_latency(records[0]) else Confidence.NO


def sniff_document(head: Head) -> Confidence:
    """Recognise a list of numbers, a list of objects that name a latency, or named columns."""
    text = head.text.lstrip()
    if text[:1] == "[":
        fits = bool(re.match(r'\[\s*(?:-?[\d.]|"[\d.]+ ?[a-zµ]+")', text)) or _has_latency(
            _first_value(text, _begin(text, 1))
        )
    elif text[:1] == "{" and sniff_lines(head) == Confidence.NO:
        lists = list(re.finditer(r'"([^"\\]{1,80})"\s*:\s*\[\s*', text[:20_000]))
        names = [match[1] for match in lists]
        named = looks_aggregated(names) or any(
            re.match(r'-?[\d.]|"\d', text[match.end() :]) and latency_columns([match[1]])[0]
            for match in lists
        )
        fits = named or any(_has_latency(_first_value(text, match.end())) for match in lists[:5])
    else:
        fits = False
    return Confidence.GENERIC if fits else Confidence.NO


def _begin(text: str, at: int) -> int:
    return at + len(text[at:]) - len(text[at:].lstrip())


# ---------------------------------------------------------------- one object per line


def read_lines(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the objects, a chunk of lines at a time."""
    import pandas as pd

    lines = [line for line in source.head.lines[: 2 * _SAMPLE] if line.strip()][:_SAMPLE]
    records = [
        value
        for value in (_first_value(line.strip(), 0) for line in lines)
        if isinstance(value, dict)
    ]
    if not records:
        raise source.corrupt(1, "it contains no object", "one JSON object per line", "")
    _refuse_twice(records, source)
    plan = plan_of(pd.DataFrame([jsontext.flat(record) for record in records]), options, source)
    notes: list[str] = []
    frames = _frames(source, options, (*plan.numbers, *plan.words), notes)
    return gathered(frames, plan, options, source, partial(_lines_of, source), notes)


def _refuse_twice(records: Sequence[Any], source: Source) -> None:
    """Refuse objects in which a key has two values."""
    for number, record in enumerate(records, 1):
        if isinstance(record, _Twice):
            keys = record.keys_given
            second = next(k for k, key in enumerate(keys) if key in keys[:k])
            name = printable(keys[second], 40)
            first = keys.index(keys[second]) + 1
            seen = f"keys {first} and {second + 1} of object {number} are both named {name!r}"
            raise source.corrupt(None, seen, "one name for each", "rename one of them")


def _frames(
    source: Source, options: ReadOptions, columns: Sequence[str], notes: list[str]
) -> Iterator[pd.DataFrame]:
    """Chunks of rows, by pyarrow where it is installed and can read them, else by json."""
    fast = _fast_parser(columns)
    done = 0
    for first, chunk in line_chunks(source):
        frame = fast(chunk) if chunk.endswith(b"\n") else None
        if frame is None:
            records = jsontext.batch(first, chunk, source, options, notes)
            strange = [k for k, record in enumerate(records) if not isinstance(record, dict)]
            if strange:
                refuse_rows(
                    [done + k for k in strange], partial(_lines_of, source), source, options,
                    "this is not an object", "",
                )  # fmt: skip
                records = [record for record in records if isinstance(record, dict)]
            frame = _frame_of(records, columns)
        frame.index = frame.index + done
        done += len(frame)
        yield frame


def _fast_parser(columns: Sequence[str]) -> Callable[[bytes], pd.DataFrame | None]:
    """Pyarrow's parser for flat objects; None for a chunk unlike the one before."""
    try:
        import pyarrow as pa
        from pyarrow import json as arrow
    except ImportError:
        return lambda _: None
    kinds: dict[str, Any] = {}

    def parse(chunk: bytes) -> pd.DataFrame | None:
        import pandas as pd

        rules: dict[str, Any] = {"newlines_in_values": False}
        if kinds:
            rules |= {
                "explicit_schema": pa.schema(list(kinds.items())),
                "unexpected_field_behavior": "ignore",
            }
        try:
            table = arrow.read_json(
                pa.BufferReader(chunk),
                arrow.ReadOptions(block_size=len(chunk)),
                arrow.ParseOptions(**rules),
            )
            names = set(table.column_names)
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        plain = {name: table.schema.field(name).type for name in columns if name in names}
        if len(plain) < len(columns) or any(
            pa.types.is_nested(kind) or pa.types.is_null(kind) for kind in plain.values()
        ):
            return None
        try:
            frame = pd.DataFrame({name: table.column(name).to_pandas() for name in columns})
        except UnicodeDecodeError:
            return None
        kinds.update(plain)
        return frame

    return parse


def _frame_of(records: Sequence[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    paths = {column: column.split(".") for column in columns}
    return pd.DataFrame(
        {column: [_at(record, column, paths[column]) for record in records] for column in columns}
    )


def _at(record: dict[str, Any], column: str, path: list[str]) -> Any:
    if column in record or len(path) == 1:
        return record.get(column)
    value: Any = record
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


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
    """Read a list in pieces, an object of lists at once."""
    head = source.head.text.lstrip()
    _refuse_twice(
        [
            _first_value(head, _begin(head, match.end()))
            for match in re.finditer(r"\[(?=\s*\{)", head[:4096])
        ][:1],
        source,
    )
    if head[:1] == "[":
        pieces = jsontext.list_pieces(source)
    else:
        pieces = iter([_columns_or_records(jsontext.load(source))])
    first = next(pieces, ())
    if not len(first):
        raise source.corrupt(1, "it contains no list", "a list of objects or of numbers", "")
    plan = plan_of(_table_of(first[:_SAMPLE], None, 0, source), options, source)
    bare = isinstance(first, list) and not isinstance(first[0], dict)
    columns = None if bare else (*plan.numbers, *plan.words)

    def frames() -> Iterator[pd.DataFrame]:
        done = 0
        for piece in chain([first], pieces):
            frame = _table_of(piece, columns, done, source)
            frame.index = frame.index + done
            done += len(frame)
            yield frame

    def locate(rows: Sequence[int]) -> list[tuple[int | None, str]]:
        return [(None, f"entry {row + 1}") for row in rows]

    return gathered(frames(), plan, options, source, locate, [])


def _columns_or_records(value: Any) -> Any:
    """The list of records in an object, or a table of its columns; empty if there is neither."""
    import pandas as pd

    items = value.items() if isinstance(value, dict) else ()
    lists = {name: column for name, column in items if isinstance(column, list)}
    records = next(
        (column for column in lists.values() if column and _has_latency(column[0])), None
    )
    if records is not None or not lists:
        return records or ()
    named = latency_columns(lists)[0]
    size = len(lists[named[0].column]) if named else max(len(column) for column in lists.values())
    return pd.DataFrame({name: column for name, column in lists.items() if len(column) == size})


def _table_of(
    entries: Any, columns: Sequence[str] | None, before: int, source: Source
) -> pd.DataFrame:
    """A table of some entries of a list: of numbers, or of objects with all or some columns."""
    import pandas as pd

    if isinstance(entries, pd.DataFrame):
        return entries
    if columns is None and not (isinstance(entries[0], dict) and not before):
        return pd.DataFrame({"1": entries})
    strange = next((k for k, entry in enumerate(entries) if not isinstance(entry, dict)), None)
    if strange is not None:
        shown = printable(repr(entries[strange]), 30)
        raise source.corrupt(
            None, f"entry {before + strange + 1} is not an object: {shown}", "an object", ""
        )
    if columns is None:
        return pd.DataFrame([jsontext.flat(record) for record in entries])
    return _frame_of(entries, columns)


FORMATS = (
    Format(
        name="jsonl",
        title="JSON lines: one request per object",
        level="samples",
        suffixes=(".jsonl", ".ndjson", ".json"),
        sniff=sniff_lines,
        read=read_lines,
        example='my-client > calls.jsonl   # {"start": "2026-01-31T12:00:00.5Z", "latency_ms": '
        '1.3, "status": 200}',
    ),
    Format(
        name="json-samples",
        title="a JSON list of requests or of numbers",
        level="samples",
        suffixes=(".json",),
        sniff=sniff_document,
        read=read_document,
        example='my-client > calls.json   # [{"start_s": 0.0, "latency_ms": 1.3}, …]',
    ),
)
