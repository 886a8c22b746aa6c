"""From raw values to counts, in chunks that stay in the cache.

The exponent and the upper bits of the mantissa of a float64 *are* its HDR bucket, but for a
constant. The compiled loop counts what lies below the layout's first power of two by powers of two,
too, finer than the layout.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from typing import Any

import numpy as np

from latencykit._typing import AnyArray, Ints
from latencykit.core import kernel
from latencykit.core.buckets import HdrBuckets
from latencykit.core.quantiles import nonzero
from latencykit.errors import InvalidArgumentError, require
from latencykit.units import NANOSECONDS

_CHUNK = 1 << 16  # values per pass of numpy: the temporaries stay in the second-level cache
_MOST = 1 << 31  # values per pass of the compiled loop
_PAGES = 1 << 23  # bytes of a mapped file after which its pages are given back
_NO_UNIT_SCALE = 2.0**-30  # the resolution of plain numbers that may be fractions
_UP = 1 + 2.0**-51  # keeps 0.003 s, which no float holds exactly, from ending up as 2 999 999 ns


def count_values(values: object, digits: int, unit: str) -> tuple[HdrBuckets, Ints, Ints]:
    """Return layout, indices and counts of raw values; see `Histogram.of`."""
    pieces: Any = values
    if hasattr(pieces, "iterchunks"):  # Arrow's chunked arrays would be copied into one
        pieces = pieces.iterchunks()
    elif isinstance(pieces, (list, tuple)):
        pieces = pieces if len(pieces) and np.ndim(pieces[0]) else (pieces,)
    elif np.isscalar(pieces) or hasattr(pieces, "__array__"):
        pieces = (pieces,)
    require(pieces, Iterable, "latencies: an array, a Series, or an iterable of arrays")
    counter: _Counter | None = None
    for chunk in pieces:
        if hasattr(chunk, "num_columns"):  # an Arrow record batch, as Parquet files are read in
            if chunk.num_columns != 1:
                raise InvalidArgumentError(
                    f"a batch of {chunk.num_columns} columns; name the one of latencies, as in "
                    "columns=['latency']"
                )
            chunk = chunk.column(0)
        masked = isinstance(chunk, np.ma.MaskedArray)
        array = chunk.compressed() if masked else np.asarray(chunk)
        if array.dtype.kind == "m" and unit in NANOSECONDS:
            array = array / np.array(1, f"m8[{unit}]")
        if array.ndim != 1:  # the order of the values does not matter
            array = array.ravel(order="K")
        if not array.size:
            continue
        counter = counter or _Counter(digits, unit, real=array.dtype.kind == "f")
        mapped: object = chunk if isinstance(chunk, np.memmap) and chunk.mode == "r" else None
        while mapped is not None and not isinstance(mapped, mmap.mmap):
            mapped = getattr(mapped, "base", None)
        if mapped is None or not hasattr(mmap, "MADV_DONTNEED"):
            counter.add(array)
            continue
        # A mapped file is counted in pieces whose pages are given back.
        step = max(1, _PAGES // max(1, abs(array.strides[0])))
        for at in range(0, array.size, step):
            counter.add(array[at : at + step])
            mapped.madvise(mmap.MADV_DONTNEED)
    counter = counter or _Counter(digits, unit, real=False)
    index = nonzero(counter.total)
    return counter.buckets, index, counter.total[index]


class _Counter:
    """Counts values into HDR buckets, chunk after chunk."""

    def __init__(self, digits: int, unit: str, *, real: bool) -> None:
        self._whole = not real and unit != "ns"  # a fraction of a nanosecond does not matter
        scale, self._factor = 1.0, 1.0
        if real and unit not in NANOSECONDS:
            scale, self._factor = _NO_UNIT_SCALE, 1.0 / _NO_UNIT_SCALE
        elif real and unit != "ns":
            scale, self._factor = 1.0 / NANOSECONDS[unit], NANOSECONDS[unit] * _UP
        self.buckets = HdrBuckets(digits, 1, scale)
        self._steps = HdrBuckets(digits)
        self.total: Ints = np.zeros(0, np.int64)  # counts by index of the layout

    def add(self, values: AnyArray) -> None:
        """Count a one-dimensional array."""
        kind = values.dtype.kind
        if kind not in "iuf" and values.size:
            raise InvalidArgumentError(f"values must be numbers, not {values.dtype}")
        if kind == "f" and values.size and self._whole:
            raise InvalidArgumentError(
                "chunks of whole numbers and of floats are mixed; bring them to one type"
            )
        while values.size:
            done, some, half = 0, values[:_MOST], self._steps.half_magnitude
            if some.size >= 64 << half:  # else the table costs more than it saves
                table = np.zeros(64 << half, np.uint32)
                done = kernel.count_plain(some, self._factor, half, table)
                fine = nonzero(table)
                power = fine >> half  # 0 for what is below 1
                low = (1 << half) | (fine & ((1 << half) - 1))
                low >>= np.clip(half + 1 - power, 0, half + 1)
                index = np.where(power > half, fine - (half << half), np.where(power > 0, low, 0))
                self._count(index, table[fine])
            chunk = values[done : done + _CHUNK]  # what is unusual
            if self._factor != 1.0:
                chunk = np.multiply(chunk, self._factor, dtype=np.float64)
            self._count(self._steps.index_of(chunk), 1)
            values = values[done + _CHUNK :]

    def _count(self, index: Ints, counts: Any) -> None:
        more = int(index.max(initial=-1)) + 1 - self.total.size
        if more > 0:
            self.total = np.concatenate((self.total, np.zeros(more, np.int64)))
        np.add.at(self.total, index, counts)
