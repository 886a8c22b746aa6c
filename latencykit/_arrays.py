"""Arrays: read-only in values that are equal by content, and positions as numpy takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a view that cannot be written to; the caller's own array stays as it is."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def equal(value: object, other: object) -> bool:
    """Return whether two values have the same content; NaN equals NaN."""
    if value is other:
        return True
    if isinstance(value, np.ndarray) or isinstance(other, np.ndarray):
        value, other = np.asarray(value), np.asarray(other)
        return np.array_equal(value, other, equal_nan=value.dtype.kind == other.dtype.kind == "f")
    if isinstance(value, Value):
        return bool(value == other)
    if is_dataclass(value) and type(value) is type(other):
        names = [item.name for item in fields(value)]
        return all(equal(getattr(value, name), getattr(other, name)) for name in names)
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(equal(value[key], other[key]) for key in value)
    if isinstance(value, tuple | list) and type(value) is type(other):
        return len(value) == len(other) and all(map(equal, value, other))
    if hasattr(value, "equals"):  # a table of pandas
        return type(value) is type(other) and bool(value.equals(other))
    return bool(value == other or (value != value and other != other))  # NaN


class Value:
    """Base of immutable types: frozen dataclasses with ``eq=False``, or classes with `_content`."""

    def _content(self) -> tuple[object, ...]:
        compared = (item.name for item in fields(self) if item.compare)  # type: ignore[arg-type]
        return tuple(getattr(self, name) for name in compared)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Value) or type(self) is not type(other):
            return NotImplemented
        return self is other or equal(self._content(), other._content())

    def __hash__(self) -> int:
        sizes = (item.size for item in self._content() if isinstance(item, np.ndarray))
        return hash((type(self), *sizes))

    def __post_init__(self) -> None:
        self.__setstate__(vars(self))

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, item in list(state.items()):
            frozen = read_only(item) if isinstance(item, np.ndarray) else item
            object.__setattr__(self, name, frozen)


def as_positions(values: ArrayLike) -> NDArray[np.intp]:
    """Return positions or lengths as ``np.repeat`` and ``ufunc.reduceat`` take them."""
    # Both refuse int64 where an index has 32 bits, as in WebAssembly; what fits into memory fits
    # into an index there.
    return np.asarray(values).astype(np.intp, copy=False)


def ragged(sizes: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return for every place of rows of these sizes the row, and the place within it.

    >>> [part.tolist() for part in ragged([2, 0, 3])]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    lengths = as_positions(sizes)
    row = np.repeat(np.arange(lengths.size), lengths)
    return row, np.arange(row.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
