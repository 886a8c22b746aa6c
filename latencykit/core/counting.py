"""From raw values to counts at the speed of memory, in chunks that stay in the cache.

The exponent and the upper bits of the mantissa of a float64 *are* its HDR bucket, but for a
constant: a shift, a subtraction and a count of equal numbers are all that a value takes. An integer
becomes such a float by one addition and one subtraction: added to the bits of a power of two it is
the mantissa, and without that power the float is the integer times 2**-1022, whose exponent needs
no constant taken off. Values below the layout's first power of two are counted one power of two
after the other, too, finer than the layout, and brought into it in the end.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core import kernel
from latencykit.core.buckets import HdrBuckets
from latencykit.core.quantiles import occupied
from latencykit.errors import InvalidArgumentError, require
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from latencykit._typing import AnyArray, Ints


_CHUNK = 1 << 16  # values per pass: the buffer and the counts stay in the second-level cache
_MOST = 1 << 31  # values per pass of the compiled loop
_PAGES = 1 << 23  # bytes of a mapped file after which its pages are given back
_NO_UNIT_SCALE = 2.0**-30  # the resolution of plain numbers that may be fractions
# exponent field of the power of two that an integer is added to: 1 ends up as the smallest normal
# float
_ONE = 53
_LIFT, _DROP = np.int64(_ONE << 52), np.float64(2.0 ** (_ONE - 1023))
_REFUSED = "only values from 0 to 2**63 steps can be counted; negative and not-a-number cannot"
_UP = 1 + 2.0**-51  # keeps 0.003 s, which no float holds exactly, from ending up as 2 999 999 ns


def count_values(values: object, digits: int, unit: str) -> tuple[HdrBuckets, Ints, Ints]:
    """Return layout, indices and counts of raw values; see `Histogram.of`."""
    counter: Counter | None = None
    for chunk in _chunks(values):
        if counter is None and chunk.size:
            counter = Counter(digits, unit, real=chunk.dtype.kind == "f")
        if counter is not None:
            counter.add(chunk)
    if counter is None:
        counter = Counter(digits, unit, real=False)
    return counter.buckets, *counter.counts()


class Counter:
    """Counts values into HDR buckets, chunk after chunk."""

    def __init__(self, digits: int, unit: str, *, real: bool) -> None:
        self._whole = not real and unit != "ns"  # a fraction of a nanosecond does not matter
        scale = (
            1.0 / NANOSECONDS[unit]
            if real and unit in NANOSECONDS
            else _NO_UNIT_SCALE
            if real
            else 1.0
        )
        self.buckets = HdrBuckets(digits, 1, scale)
        self._factor = (
            1.0
            if scale == 1.0
            else 1.0 / scale
            if scale == _NO_UNIT_SCALE
            else NANOSECONDS[unit] * _UP
        )
        self._half = self.buckets.half_magnitude
        self._shift, self._bias = np.uint64(52 - self._half), np.uint64(1022 << self._half)
        self._bits = np.empty(_CHUNK, np.uint64)
        # Counts by number of the power of two (0 for what is below 1) and the upper bits below it.
        self._total: Ints = np.zeros(0, np.int64)
        # counts of a chunk are fewer than its values: added up by themselves first
        self._narrow = digits <= 3

    def add(self, values: AnyArray) -> None:
        """Count a one-dimensional array."""
        kind = values.dtype.kind
        if kind not in "iuf" and values.size:
            raise InvalidArgumentError(f"values must be numbers, not {values.dtype}")
        if kind == "f" and values.size and self._whole:
            raise InvalidArgumentError(
                "chunks of whole numbers and of floats are mixed; bring them to one type"
            )
        count = self._add_integers if kind != "f" and self._factor == 1.0 else self._add_reals
        with np.errstate(invalid="ignore"):  # bits that are not a number show in their index
            while values.size:
                done = 0
                if values.size >= self._total.size:  # else a table costs more than it saves
                    table = np.zeros(self._total.size, np.uint32)
                    done = kernel.count_plain(values[:_MOST], self._factor, self._half, table)
                    if done:
                        self._total += table
                if done < values.size:  # what is unusual: numpy knows what to make of its chunk
                    count(values[done : done + _CHUNK])
                values = values[done + _CHUNK :]

    def counts(self) -> tuple[Ints, Ints]:
        """Return the indices of the buckets that hold values, ascending, and their counts."""
        fine = occupied(self._total)
        power, half = fine >> self._half, self._half
        low = ((1 << half) | (fine & ((1 << half) - 1))) >> np.clip(half + 1 - power, 0, half + 1)
        index = np.where(power > half, fine - (half << half), np.where(power > 0, low, 0))
        first = np.flatnonzero(np.diff(index, prepend=-1))
        return index[first], np.add.reduceat(self._total[fine], first) if first.size else first

    def _add_integers(self, chunk: AnyArray) -> None:
        if chunk.dtype.kind == "u" and chunk.dtype.itemsize == 8:
            # what is too large for 63 bits is negative then
            chunk = chunk.view(chunk.dtype.str.replace("u", "i"))
        bits = self._bits[: chunk.size]
        reals = bits.view(np.float64)
        np.add(chunk, _LIFT, out=bits.view(np.int64))
        np.subtract(reals, _DROP, out=reals)
        np.right_shift(bits, self._shift, out=bits)
        # from 2**52 on an integer is more than a mantissa
        if not self._counted(bits, _ONE << self._half):
            exact = chunk.astype(np.int64)
            self._add_reals(np.where(exact >= 1 << 53, exact & ~2047, exact).astype(np.float64))

    def _add_reals(self, chunk: AnyArray) -> None:
        bits = self._bits[: chunk.size]
        if chunk.dtype == np.float64 and self._factor == 1.0:
            np.right_shift(chunk.view(np.uint64), self._shift, out=bits)
        else:
            np.multiply(chunk, self._factor, out=bits.view(np.float64), dtype=np.float64)
            np.right_shift(bits, self._shift, out=bits)
        np.subtract(bits, self._bias, out=bits)
        if not self._counted(bits, 64 << self._half):
            # Count a chunk that holds values below 1, or such as cannot be counted.
            reals = np.multiply(chunk, self._factor, dtype=np.float64)
            if not (reals.min() >= 0 and reals.max() < 2.0**63):
                raise InvalidArgumentError(_REFUSED)
            index = reals.view(np.int64) >> np.int64(self._shift)
            index -= np.int64(self._bias)
            self._counted(np.maximum(index, 0).view(np.uint64), 64 << self._half)

    def _counted(self, index: NDArray[np.uint64], end: int) -> bool:
        """Count indices if all of them lie before `end`."""
        signed = index.view(np.int64)
        if not self._narrow:
            if int(index.max()) >= end:
                return False
            self._widen(int(index.max()) + 1)
            np.add.at(self._total, signed, 1)
            return True
        try:
            counts = np.bincount(signed)
        except ValueError:  # a negative index
            return False
        if counts.size > end:
            return False
        self._widen(counts.size)
        self._total[: counts.size] += counts
        return True

    def _widen(self, size: int) -> None:
        if size > self._total.size:  # by whole powers of two, of which there are few
            more = -(-size >> self._half << self._half) - self._total.size
            self._total = np.concatenate((self._total, np.zeros(more, np.int64)))


def _chunks(values: Any) -> Iterator[AnyArray]:
    """Yield one-dimensional arrays of one array, or of an iterable of arrays or Arrow batches."""
    if hasattr(values, "iterchunks"):  # Arrow's chunked arrays would be copied into one
        values = values.iterchunks()
    elif isinstance(values, (list, tuple)):
        values = values if len(values) and np.ndim(values[0]) else (values,)
    elif np.isscalar(values) or hasattr(values, "__array__"):
        values = (values,)
    require(values, Iterable, "latencies: an array, a Series, or an iterable of arrays")
    for chunk in values:
        yield from _pieces(_column(chunk))


def _column(chunk: Any) -> AnyArray:
    """A chunk as an array of one dimension; the order of the values does not matter."""
    if hasattr(chunk, "num_columns"):  # an Arrow record batch, as Parquet files are read in
        if chunk.num_columns != 1:
            raise InvalidArgumentError(
                f"a batch of {chunk.num_columns} columns; name the one of latencies, as in "
                "columns=['latency']"
            )
        chunk = chunk.column(0)
    if isinstance(chunk, np.ma.MaskedArray):
        return chunk.compressed()
    array = chunk if isinstance(chunk, np.ndarray) else np.asarray(chunk)
    return array.ravel(order="K") if array.ndim != 1 else array


def _pieces(array: AnyArray) -> Iterator[AnyArray]:
    """The array itself; a mapped file in pieces whose pages are released once they are counted."""
    mapped: object = array
    while mapped is not None and not isinstance(mapped, mmap.mmap):
        mapped = getattr(mapped, "base", None)
    if mapped is None or getattr(array, "mode", None) != "r" or not hasattr(mmap, "MADV_DONTNEED"):
        yield array
        return
    step = max(1, _PAGES // max(1, abs(array.strides[0])))
    for at in range(0, array.size, step):
        yield array[at : at + step]
        mapped.madvise(mmap.MADV_DONTNEED)
