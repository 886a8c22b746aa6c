"""From raw values to counts, a chunk at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.buckets import HdrBuckets
from latencykit.errors import UsageError
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

__all__ = ["count_values"]

_NO_UNIT_SCALE = 2.0**-30  # the resolution of plain numbers that may be fractions


def count_values(values: Any, digits: int, unit: str) -> tuple[HdrBuckets, Ints, Ints]:
    """Return layout, indices and counts of raw values; see `Histogram.of`."""
    chunks = _chunks(values)
    first = next(chunks, np.empty(0, np.int64))
    real = first.dtype.kind == "f"
    scale = 1.0 / NANOSECONDS[unit] if real and unit in NANOSECONDS else _NO_UNIT_SCALE if real else 1.0
    buckets = HdrBuckets(digits, 1, scale)
    total = _count_chunk(buckets, first, np.zeros(0, np.int64))
    for chunk in chunks:
        total = _count_chunk(buckets, chunk, total)
    index = np.flatnonzero(total)
    return buckets, index, total[index]


def _chunks(values: Any) -> Iterator[NDArray[Any]]:
    """One array, or an iterable of arrays, as an iterator of one-dimensional arrays."""
    if isinstance(values, (np.ndarray, list, tuple)) or np.isscalar(values) or hasattr(values, "__array__"):
        yield np.asarray(values).reshape(-1)
        return
    for chunk in values:
        yield np.asarray(chunk).reshape(-1)


def _count_chunk(buckets: HdrBuckets, chunk: NDArray[Any], total: Ints) -> Ints:
    """`total` plus the chunk's counts; counted in pieces so that temporaries stay small."""
    if chunk.dtype.kind not in "iuf" and chunk.size:
        raise UsageError(f"values must be numbers, not {chunk.dtype}")
    for at in range(0, chunk.size, 1 << 16):
        found = np.bincount(buckets.index_of(chunk[at : at + (1 << 16)]), minlength=total.size)
        if found.size > total.size:
            total = np.concatenate((total, np.zeros(found.size - total.size, np.int64)))
        total += found
    return total
