"""Further columns of samples, such as endpoint, host or status: read when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latencykit._arrays import equal, read_only
from latencykit._records import record
from latencykit._text import brief
from latencykit._typing import AnyArray, Ints
from latencykit.errors import InvalidArgumentError


@record(eq=False)
class Words:
    """A column of words: a code per row, -1 where there is none, and the word of each code."""

    # Text of unknown length is kept this way and as objects only: an array of text is as wide as
    # its longest word in every row.

    codes: NDArray[np.int32]
    names: NDArray[np.object_]

    @classmethod
    def of(cls, cells: ArrayLike | Sequence[object]) -> Words:
        """Return a column of words from the value of each cell."""
        array = cells if isinstance(cells, np.ndarray) else np.asarray(cells, object)
        words: list[Any] = array.reshape(-1).tolist()
        if {*map(type, words)} - {str, bytes}:
            words = [*map(word_of, words)]
        codes, texts = coded(words)
        return cls.named(codes.reshape(array.shape), texts)

    @classmethod
    def named(cls, codes: AnyArray, texts: Sequence[str | None]) -> Words:
        """Return a column from the code and the text of each code, some none, equal or long."""
        place: dict[str, int] = {}
        table = [
            -1 if text is None else place.setdefault(brief(text), len(place)) for text in texts
        ]
        if len(place) < len(texts):
            codes = np.array([*table, -1])[codes]
        return cls(read_only(codes.astype(np.int32, copy=False)), np.array(list(place), object))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the column."""
        return self.codes.shape

    @property
    def cells(self) -> NDArray[np.object_]:
        """The cells as text, all with a word."""
        return self.names[self.codes]

    def sorted(self) -> Words:
        """Return the cells with the words that they have in order, ``""`` where there is none."""
        words = np.append(self.names, "")  # the last is that of code -1
        used = np.flatnonzero(np.bincount(self.codes.reshape(-1) + 1)) - 1
        names, rank = np.unique(words[used], return_inverse=True)
        table = np.zeros(words.size, np.int32)
        table[used] = rank.reshape(-1)
        return Words(table[self.codes], names)

    def select(self, rows: Any) -> Words:
        """Return some of the cells, all with a word, and the words that they have."""
        codes = self.codes[rows]
        used = np.bincount(codes, minlength=self.names.size) > 0
        if used.all():
            return Words(codes, self.names)
        return Words((np.cumsum(used, dtype=np.int32) - 1)[codes], self.names[used])


Cells = Words | np.ndarray[Any, Any]


def coded(cells: Cells | Sequence[str] | Sequence[bytes]) -> tuple[AnyArray, list[str]]:
    """Return a code per cell, -1 where there is none, and the text of each code."""
    if isinstance(cells, Words):
        return cells.codes, cells.names.tolist()
    if not isinstance(cells, np.ndarray):
        rank: dict[Any, int] = {cell: k for k, cell in enumerate(dict.fromkeys(cells))}
        numbers = np.fromiter(map(rank.__getitem__, cells), np.int32, len(cells))
        decoded = (x.decode("utf-8", "replace") if isinstance(x, bytes) else x for x in rank)
        texts: list[Any] = [x if x is None else str(x) for x in decoded]
        return numbers, texts
    distinct, index, codes = np.unique(cells, return_index=True, return_inverse=True)
    order = np.argsort(index)  # as they occur
    place = np.argsort(order)
    place[distinct != distinct] = -1
    return place[codes.reshape(-1)], list(map(str, distinct[order].tolist()))


def matching(
    cells: Cells | Sequence[str] | Sequence[bytes], fits: Callable[[str], object]
) -> NDArray[np.bool_]:
    """Return which cells have a text that fits."""
    codes, names = coded(cells)
    return np.array([*(bool(fits(name)) for name in names), False], np.bool_)[codes]


def select(cells: Cells, rows: Any) -> Cells:
    """Return some of the cells: by a mask, positions or a slice."""
    if isinstance(cells, Words):
        return Words(cells.codes[rows], cells.names)
    return np.asarray(cells[rows])


def joined(parts: Sequence[Cells]) -> Cells:
    """Return cells one after the other; of some that are words, all are."""
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts):
        return np.concatenate(arrays) if arrays else np.zeros(0)
    place: dict[str, int] = {}
    codes = []
    for part in parts:
        code, texts = coded(part)
        table = [place.setdefault(text, len(place)) for text in texts]
        codes.append(np.array([*table, -1], np.int32)[code])
    return Words(np.concatenate(codes), np.array(list(place), object))


class _Table:
    """Complete columns, shared by all selections of rows; loaded and encoded once."""

    def __init__(
        self, columns: Mapping[str, object] | None, load: Callable[[], Mapping[str, object]] | None
    ) -> None:
        self._columns = {} if columns is None and load is None else columns
        self.load = load
        self._encoded: dict[str, Cells] = {}

    @property
    def loaded(self) -> bool:
        return self._columns is not None

    @property
    def columns(self) -> Mapping[str, object]:
        if self._columns is None:
            assert self.load is not None
            self._columns = self.load()
        return self._columns

    def cells(self, name: str) -> Cells:
        if name not in self._encoded:
            self._encoded[name] = encoded(self.columns[name])
        return self._encoded[name]


class Columns(Mapping[str, "NDArray[Any]"]):
    """Further columns of samples by name, as read-only arrays with one cell per row."""

    # Numbers are int64 or float64 (NaN where there is none), words are objects (None where there is
    # none). A file's columns are read by `load`, once, when one of them is first used.

    def __init__(
        self,
        columns: Mapping[str, object] | _Table | None = None,
        *,
        load: Callable[[], Mapping[str, object]] | None = None,
        rows: Ints | None = None,
    ) -> None:
        self._table = columns if isinstance(columns, _Table) else _Table(columns, load)
        self._rows = rows

    def __getitem__(self, name: str) -> AnyArray:
        cells = self.cells(name)
        if isinstance(cells, Words):
            words: AnyArray = np.array([*cells.names, None], object)
            return read_only(words[cells.codes])
        return read_only(cells)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.columns)

    def __len__(self) -> int:
        return len(self._table.columns)

    def __contains__(self, name: object) -> bool:
        return name in self._table.columns

    def cells(self, name: str) -> Cells:
        """Return a column as an array of numbers, or as codes and words."""
        if name not in self._table.columns:
            raise InvalidArgumentError(
                f"no column {name!r}; the columns are {', '.join(self) or 'none'}"
            )
        cells = self._table.cells(name)
        if self._rows is None:
            return cells
        return select(cells, self._rows)

    def select(self, rows: NDArray[np.bool_] | Ints) -> Columns:
        """Return the columns of some rows: a boolean mask or positions; nothing is read."""
        if self._table.loaded and not self._table.columns:
            return self
        at = np.flatnonzero(rows) if rows.dtype.kind == "b" else np.asarray(rows, np.int64)
        return Columns(self._table, rows=at if self._rows is None else self._rows[at])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Columns):
            return NotImplemented
        if self._table is other._table and equal(self._rows, other._rows):
            return True
        return self.keys() == other.keys() and all(
            np.array_equal(self[name], other[name])
            if self[name].dtype.kind == "O"
            else equal(self[name], other[name])
            for name in self
        )

    def __hash__(self) -> int:
        return hash(Columns)

    def __reduce__(self) -> tuple[object, ...]:
        return Columns, ({name: self.cells(name) for name in self},)

    def __repr__(self) -> str:
        return f"Columns({', '.join(self)})"


def encoded(values: object) -> Cells:
    """Return a column as numbers, or as codes and words; cells without a value stay so."""
    if isinstance(values, Words):
        return values
    if isinstance(values, np.ndarray) and values.dtype in (np.int64, np.float64):
        return read_only(values)
    import pandas as pd

    # a Series of words would be converted to pandas' own strings
    cells: Any = values if isinstance(values, pd.Series) else np.asarray(values)
    if cells.dtype.kind in "mM" or isinstance(cells.dtype, pd.DatetimeTZDtype):
        return read_only(np.asarray(cells))
    if cells.dtype.kind in "iuf":
        kind: Any = np.int64 if cells.dtype.kind in "iu" else np.float64
        if not isinstance(cells.dtype, np.dtype):  # pandas' own numbers, which may be missing
            if cells.isna().any():
                return read_only(np.asarray(cells.to_numpy(np.float64, na_value=np.nan)))
            return read_only(np.asarray(cells.to_numpy(kind)))
        return read_only(np.asarray(cells).astype(kind, copy=False))
    if isinstance(cells.dtype, pd.CategoricalDtype):
        codes, distinct = cells.cat.codes.to_numpy(), cells.cat.categories
    else:
        try:
            codes, distinct = pd.factorize(cells, use_na_sentinel=True)
        except TypeError:  # objects and lists, which JSON may have anywhere
            words = [word_of(cell) for cell in cells.tolist()]
            codes, distinct = pd.factorize(np.array(words, object), use_na_sentinel=True)
    names = np.asarray(distinct, object)
    type_of = pd.api.types.infer_dtype(names, skipna=False)
    if type_of in ("integer", "floating", "mixed-integer-float", "decimal") and names.size:
        if type_of == "integer" and (codes >= 0).all() and np.abs(names).max() < 2**63:
            return read_only(names.astype(np.int64)[codes])
        return read_only(np.append(names.astype(np.float64), np.nan)[codes])
    words = names.tolist()
    plain = type_of == "string" and "" not in words
    return Words.named(codes, words if plain else [*map(word_of, words)])


def word_of(value: object) -> str | None:
    """Return a cell as a word, an object or list as JSON; None where it has no value."""
    if isinstance(value, dict | list):
        import json

        return json.dumps(value, default=str)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return str(value) if value is not None and value == value and str(value) != "" else None
