"""From raw values to counts at the speed of memory: a chunk at a time, in buffers that stay in the cache.

The exponent and the upper bits of the mantissa of a float64 *are* its HDR bucket, but for a constant: a shift, a
subtraction and a count of equal numbers are all that most values take. What does not fit that (values of the linear
range at the bottom, integers above 2**53, whatever cannot be counted) is told by the counts themselves, and such a chunk
goes through `HdrBuckets.index_of`.
"""

from __future__ import annotations

import contextlib
import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.buckets import HdrBuckets
from latencykit.errors import UsageError
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Counter", "count_values"]

_CHUNK = 1 << 15  # values a pass: the two buffers and the counts stay in the second-level cache
_PAGES = 1 << 23  # bytes of a mapped file after which its pages are given back
_NO_UNIT_SCALE = 2.0**-30  # the resolution of plain numbers that may be fractions
_UP = 1 + 2.0**-51  # keeps 0.003 s, which no float holds exactly, from ending up as 2 999 999 ns


def count_values(values: Any, digits: int, unit: str) -> tuple[HdrBuckets, Ints, Ints]:
    """Return layout, indices and counts of raw values; see `Histogram.of`."""
    counter: Counter | None = None
    for chunk in _chunks(values):
        if counter is None and chunk.size:
            counter = Counter(digits, unit, real=chunk.dtype.kind == "f")
        if counter is not None:
            counter.add(chunk)
    if counter is None:
        counter = Counter(digits, unit, real=False)
    index = np.flatnonzero(counter.total)
    return counter.buckets, index, counter.total[index]


class Counter:
    """Counts values into HDR buckets, chunk after chunk.

    Parameters
    ----------
    digits : int
        Significant digits of the buckets.
    unit : str
        Unit of the values.
    real : bool
        Whether fractions of the unit matter: floats of a time unit are counted to 1 ns.

    Examples
    --------
    >>> counter = Counter(3, "ms", real=True)
    >>> counter.add(np.array([0.003, 1.5]))
    >>> counter.buckets.high(np.flatnonzero(counter.total)).round(4).tolist()
    [0.003, 1.5002]
    """

    def __init__(self, digits: int, unit: str, *, real: bool) -> None:
        self._whole = not real and unit != "ns"  # a fraction of a nanosecond does not matter
        scale = 1.0 / NANOSECONDS[unit] if real and unit in NANOSECONDS else _NO_UNIT_SCALE if real else 1.0
        self.buckets = HdrBuckets(digits, 1, scale)
        self.total: Ints = np.zeros(0, np.int64)
        self._steps = HdrBuckets(digits)
        self._factor = 1.0 if scale == 1.0 else 1.0 / scale if scale == _NO_UNIT_SCALE else NANOSECONDS[unit] * _UP
        self._linear = 1 << self._steps.half_magnitude  # from here on, bits and index go together
        self._exact = int(self._steps.index_of(1 << 53))  # below here, an integer is a float64
        self._end = int(self._steps.index_of((1 << 63) - 1)) + 1
        self._reals = np.empty(_CHUNK, np.float64)
        self._index, self._spare = np.empty(_CHUNK, np.int64), np.empty(_CHUNK, np.int64)
        self._small = False  # whether the last chunk held values of the linear range

    def add(self, values: NDArray[Any]) -> None:
        """Count a one-dimensional array.

        Raises
        ------
        UsageError
            For what is no number, not finite or negative, and for fractions where whole numbers came first.
        """
        kind = values.dtype.kind
        if kind not in "iuf" and values.size:
            raise UsageError(f"values must be numbers, not {values.dtype}")
        if kind == "f" and values.size and self._whole:
            raise UsageError("chunks of whole numbers and of floats are mixed; bring them to one type")
        for at in range(0, values.size, _CHUNK):
            chunk = values[at : at + _CHUNK]
            self._gather(self._counts(chunk) if kind == "f" or chunk.dtype.itemsize < 8 else self._counts_of_integers(chunk))

    def _gather(self, found: Ints) -> None:
        if found.size > self.total.size:
            self.total = np.concatenate((self.total, np.zeros(found.size - self.total.size, np.int64)))
        self.total[: found.size] += found

    def _counts_of_integers(self, chunk: NDArray[Any]) -> Ints:
        found = self._counts(chunk)
        if found.size > self._exact and self._factor == 1.0:  # the cast may have rounded into the next bucket
            if int(chunk.max()) >= 1 << 63:
                raise UsageError("only values from 0 to 2**63 steps can be counted; negative and not-a-number cannot")
            return np.bincount(self._steps.index_of(chunk.astype(np.int64)))
        return found

    def _counts(self, chunk: NDArray[Any]) -> Ints:
        """Counts by bucket; the chunk's values go through float64."""
        if chunk.dtype == np.float64 and self._factor == 1.0 and chunk.flags.c_contiguous:
            reals = chunk
        else:
            reals = self._reals[: chunk.size]
            np.multiply(chunk, self._factor, out=reals) if self._factor != 1.0 else np.copyto(reals, chunk)
        index = self._index[: chunk.size]
        half = self._steps.half_magnitude
        np.right_shift(reals.view(np.int64), 52 - half, out=index)
        index -= (1022 + half) << half
        if not self._small:
            with contextlib.suppress(ValueError):  # bincount refuses a negative index: a small value, or worse
                found = np.bincount(index)
                if found.size <= self._end and not found[: self._linear].any():
                    return found
        return self._counts_with_small(reals, index)

    def _counts_with_small(self, reals: Floats, index: Ints) -> Ints:
        """The same where some values are of the linear range, whose index is the value itself.

        There the value is the larger of the two, and elsewhere the last linear index is the smaller: no mask is needed.
        """
        if not (reals.min() >= 0 and reals.max() < 2.0**63):
            raise UsageError("only values from 0 to 2**63 steps can be counted; negative and not-a-number cannot")
        linear = self._spare[: index.size]
        np.copyto(linear, reals, casting="unsafe")
        np.minimum(linear, self._linear - 1, out=linear)
        np.maximum(index, linear, out=index)
        found = np.bincount(index)
        self._small = bool(found[: self._linear].any())
        return found


def _chunks(values: Any) -> Iterator[NDArray[Any]]:
    """One array, or an iterable of arrays or Arrow batches, as an iterator of one-dimensional arrays."""
    if hasattr(values, "iterchunks"):  # Arrow's chunked arrays would be copied into one
        values = values.iterchunks()
    elif isinstance(values, (list, tuple)):
        values = values if len(values) and np.ndim(values[0]) else (values,)
    elif np.isscalar(values) or hasattr(values, "__array__"):
        values = (values,)
    for chunk in values:
        yield from _pieces(_column(chunk))


def _column(chunk: Any) -> NDArray[Any]:
    """A chunk as an array of one dimension; the order of the values does not matter."""
    if hasattr(chunk, "num_columns"):  # an Arrow record batch, as Parquet files are read in
        if chunk.num_columns != 1:
            raise UsageError(f"a batch of {chunk.num_columns} columns; name the one of latencies, as in columns=['latency']")
        chunk = chunk.column(0)
    if isinstance(chunk, np.ma.MaskedArray):
        return chunk.compressed()
    array = chunk if isinstance(chunk, np.ndarray) else np.asarray(chunk)
    return array.ravel(order="K") if array.ndim != 1 else array


def _pieces(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The array as it is, or a mapped file's in pieces whose pages are given back when they are counted."""
    mapped: Any = array
    while mapped is not None and not isinstance(mapped, mmap.mmap):
        mapped = getattr(mapped, "base", None)
    if mapped is None or getattr(array, "mode", None) != "r" or not hasattr(mmap, "MADV_DONTNEED"):
        yield array
        return
    step = max(1, _PAGES // max(1, abs(array.strides[0])))
    for at in range(0, array.size, step):
        yield array[at : at + step]
        mapped.madvise(mmap.MADV_DONTNEED)
