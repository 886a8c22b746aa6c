"""Positions for numpy, which takes those of its own index type only: 32 bits in WebAssembly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def as_positions(values: ArrayLike) -> NDArray[np.intp]:
    """Return positions or lengths as ``np.repeat`` and ``ufunc.reduceat`` take them.

    Both refuse int64 where an index has 32 bits; what fits into memory fits into an index there.
    """
    return np.asarray(values).astype(np.intp, copy=False)


def ragged(sizes: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return for every place of rows of these sizes the row, and the place within it.

    Examples
    --------
    >>> [part.tolist() for part in ragged([2, 0, 3])]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    lengths = as_positions(sizes)
    row = np.repeat(np.arange(lengths.size), lengths)
    return row, np.arange(row.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
