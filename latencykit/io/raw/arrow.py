"""Columns of Arrow as cells: numbers and words without pandas, which takes long to import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.columns import Words
from latencykit.io.rows import Table, cells_of

if TYPE_CHECKING:
    from latencykit._typing import AnyArray
    from latencykit.core.columns import Cells


def table_of(batch: Any, *, decoded: bool = False) -> Table:
    """Return the rows of a batch or table; `decoded`: as if no column had a dictionary."""
    import pyarrow as pa

    columns: dict[str, Cells] = {}
    for name, parts in zip(batch.schema.names, batch.columns, strict=True):
        column = parts.combine_chunks() if isinstance(parts, pa.ChunkedArray) else parts
        coded = decoded and pa.types.is_dictionary(column.type)
        columns[name] = _cells(column.dictionary_decode() if coded else column)
    return Table(columns)


def is_text(kind: object) -> bool:
    """Return True for the types of texts and of bytes."""
    import pyarrow as pa

    kinds = pa.string(), pa.large_string(), pa.binary(), pa.large_binary()
    return kind in kinds or pa.types.is_fixed_size_binary(kind)


def _cells(column: Any) -> Cells:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _numbers(column)
    coded = pa.types.is_dictionary(kind)
    if is_text(kind.value_type if coded else kind):
        words = column if coded else column.dictionary_encode()
        names = _texts(words.dictionary)
        codes = np.nan_to_num(_numbers(words.indices), nan=-1).astype(np.int32, copy=False)
        if coded and None not in names and len({*names}) == len(names):
            return Words(codes, np.array(names, object))
        place: dict[str, int] = {}
        table = [place.setdefault(name, len(place)) if name else -1 for name in names]
        return Words(np.array([*table, -1], np.int32)[codes], np.array(list(place), object))
    if pa.types.is_timestamp(kind):  # pandas may not know its zone
        column = column.cast(pa.timestamp(kind.unit))
    return cells_of(column.to_pandas())


def _numbers(column: Any) -> AnyArray:
    """Numbers of a column: its own memory, unless some are missing."""
    if column.null_count:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return np.from_dlpack(column)  # to_numpy would import pandas


def _texts(words: Any) -> list[str | None]:
    """Texts of a dictionary; bytes that are no UTF-8 are escaped."""
    import pyarrow as pa

    try:
        texts = words.to_pylist()
    except UnicodeDecodeError:
        texts = words.cast(pa.large_binary()).to_pylist()
    return [
        text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
        for text in texts
    ]
