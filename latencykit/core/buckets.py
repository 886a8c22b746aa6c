"""Bucket layouts: value → index, and index → lowest, highest and middle value; no counts.

Two layouts cover everything that tools print:

* `HdrBuckets` is HdrHistogram's log-linear layout: within each power of two, ``10**digits``
  (rounded up to a power of two) equal bins, so that a bucket is never wider than one part in
  ``10**digits`` of its value. It has no upper end: ``highestTrackableValue`` limits a recorder, not
  the layout.
* `EdgeBuckets` lists its edges: the ``le`` bounds of a scrape, fio's bins, the rows of a percentile
  table, or raw values (bins of no width).

Index arithmetic follows ``AbstractHistogram.java`` of HdrHistogram 2.2.2 (``getBucketIndex``,
``valueFromIndex``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from latencykit._arrays import Value, read_only
from latencykit._records import record
from latencykit._typing import AnyArray, Floats, Ints
from latencykit.errors import InvalidArgumentError
from latencykit.units import format_value

Counts = tuple["Buckets", Ints, Ints]

_CHUNK = 1 << 16  # samples per pass: the temporaries stay in the cache
_LARGEST = 1e288  # a scale: 2**63 of its steps are still a number
_FAR = 900  # doublings: that many steps are still a number
_EXACT = 1 << 53  # above this a float64 cannot hold every integer


class Buckets:
    """The interface of both layouts; see `HdrBuckets` and `EdgeBuckets`."""

    scale: float = 1.0
    """Value of one stored unit, applied after statistics are summed, as the reference does."""

    def index_of(self, values: ArrayLike) -> Ints:
        """Return the index of the bucket that holds each value, int64, the shape of `values`."""
        raise NotImplementedError

    def low(self, index: ArrayLike) -> Floats:
        """Return the lowest value of each bucket, float64."""
        raise NotImplementedError

    def high(self, index: ArrayLike) -> Floats:
        """Return the highest value of each bucket, float64."""
        raise NotImplementedError

    def mid(self, index: ArrayLike) -> Floats:
        """Return the middle of each bucket, float64: what means are made of."""
        raise NotImplementedError

    def upper_edge(self, index: ArrayLike) -> Floats:
        """Return the highest value of each bucket, NaN for an open-ended one."""
        return self.high(index)

    def scaled(self, factor: float) -> Buckets:
        """Return the same buckets over values `factor` times as large."""
        raise NotImplementedError


@record()
class HdrBuckets(Buckets):
    """HdrHistogram's log-linear layout.

    Parameters
    ----------
    digits : int
        Significant decimal digits, 0 to 5.
    lowest : int, default 1
        ``lowestDiscernibleValue``: bins are never narrower than the power of two below it.
    scale : float, default 1.0
        Value of one integer step: DoubleHistogram's ratio, or a change of unit.

    Examples
    --------
    >>> b = HdrBuckets(3)
    >>> int(b.index_of(1_000_000)), b.low(11169).item(), b.high(11169).item()
    (11169, 999936.0, 1000447.0)
    """

    digits: int
    lowest: int = field(default=1, compare=False)
    scale: float = field(default=1.0, repr=False)
    unit_magnitude: int = field(init=False, repr=False)
    half_magnitude: int = field(init=False, repr=False)

    def __init__(self, digits: int, lowest: int = 1, scale: float = 1.0) -> None:
        if not 0 <= digits <= 5:
            raise InvalidArgumentError(f"significant digits must be 0 to 5, not {digits}")
        if not 1 <= lowest <= 1 << 62:
            raise InvalidArgumentError(
                f"the lowest discernible value must be 1 to 2**62, not {lowest}"
            )
        if not 0 < scale <= _LARGEST:
            raise InvalidArgumentError(
                f"the scale of a layout must be a positive number of at most {_LARGEST:g}, not "
                f"{scale}"
            )
        half = max(1, math.ceil(math.log2(2 * 10**digits))) - 1
        unit = int(lowest).bit_length() - 1
        if unit + half + 1 > 62:
            raise InvalidArgumentError(
                f"{digits} digits above a lowest value of {lowest} do not fit in 63 bits"
            )
        for name, value in (("digits", digits), ("lowest", int(lowest)), ("scale", float(scale))):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "unit_magnitude", unit)
        object.__setattr__(self, "half_magnitude", half)

    @property
    def slots(self) -> int:
        """Number of indices that 63-bit values can have."""
        return (65 - self.unit_magnitude - self.half_magnitude) << self.half_magnitude

    def index_of(self, values: ArrayLike) -> Ints:
        """Return the index of each value, int64; values must be finite and ≥ 0.

        Integers go in as they are; a float is cut to the integer step below it, as recording it
        would.
        """
        array = np.asarray(values)
        flat = array.reshape(-1)
        out = np.empty(flat.shape, np.int64)
        for at in range(0, flat.size, _CHUNK):
            chunk: AnyArray = flat[at : at + _CHUNK]
            if self.scale != 1.0:
                chunk = chunk / self.scale
            if chunk.dtype.kind in "iu":
                # the cast must not round into the next bucket
                if chunk.size and int(chunk.max()) >= _EXACT:
                    chunk = np.where(chunk >= _EXACT, chunk >> 11 << 11, chunk)
            elif chunk.dtype != np.float64:
                chunk = chunk.astype(np.float64)
            if chunk.size and not (chunk.min() >= 0 and chunk.max() < 2.0**63):
                raise InvalidArgumentError(
                    "only values from 0 to 2**63 steps can be counted; negative and not-a-number "
                    "cannot"
                )
            # A float64's exponent and its top mantissa bits are the index, but for a constant.
            reals = chunk.astype(np.float64)
            index = reals.view(np.int64) >> (52 - self.half_magnitude)
            index -= (1022 + self.half_magnitude + self.unit_magnitude) << self.half_magnitude
            linear = reals < float(1 << (self.unit_magnitude + self.half_magnitude))
            if linear.any():
                index[linear] = reals[linear].astype(np.int64) >> self.unit_magnitude
            out[at : at + _CHUNK] = index
        return out.reshape(array.shape)

    def parts(self, index: ArrayLike) -> tuple[Ints, Ints]:
        """Return (sub, shift) of each bucket: ``2**shift`` steps from ``sub`` times that."""
        i = np.asarray(index, np.int64)
        shift = np.maximum((i >> self.half_magnitude) - 1, 0)
        return i - (shift << self.half_magnitude), shift + self.unit_magnitude

    def reaches(self, index: ArrayLike) -> bool:
        """Return whether all buckets lie below 2**63 steps, as in recorded histograms."""
        return (
            int(np.asarray(index).max(initial=0))
            < (64 - self.unit_magnitude - self.half_magnitude) << self.half_magnitude
        )

    def _steps(self, index: ArrayLike) -> tuple[Ints, Ints]:
        """Lowest integer value of each bucket and log2 of its width."""
        sub, shift = self.parts(index)
        return sub << shift, shift

    def low_steps(self, index: ArrayLike) -> Ints:
        """Return the lowest integer value of each bucket, before `scale`, int64."""
        return self._steps(index)[0]

    def high_steps(self, index: ArrayLike) -> Ints:
        """Return the highest integer value of each bucket, before `scale`, int64."""
        low, shift = self._steps(index)
        return low + ((np.int64(1) << shift) - 1)

    def mid_steps(self, index: ArrayLike) -> Ints:
        """Return the middle integer value of each bucket, before `scale`, int64."""
        low, shift = self._steps(index)
        return low + ((np.int64(1) << shift) >> 1)

    def low(self, index: ArrayLike) -> Floats:
        """Return the lowest value of each bucket, float64."""
        sub, shift = self.parts(index)
        return np.asarray(np.ldexp(sub * self.scale, shift.astype(np.intc)), np.float64)

    def high(self, index: ArrayLike) -> Floats:
        """Return the highest value of each bucket, float64."""
        sub, shift = self.parts(index)
        shift = shift.astype(np.intc)  # ldexp takes no other integers where a long has 32 bits
        # far up the 1 is lost to rounding
        steps = np.ldexp(sub + 1.0, np.minimum(shift, _FAR)) - 1
        return np.asarray(
            np.where(shift < _FAR, steps * self.scale, np.ldexp((sub + 1) * self.scale, shift)),
            np.float64,
        )

    def mid(self, index: ArrayLike) -> Floats:
        """Return the middle of each bucket, float64."""
        sub, shift = self.parts(index)
        return np.asarray(
            np.ldexp((sub + np.where(shift > 0, 0.5, 0.0)) * self.scale, shift.astype(np.intc)),
            np.float64,
        )

    def scaled(self, factor: float) -> HdrBuckets:
        """Return the same buckets over values `factor` times as large."""
        return HdrBuckets(self.digits, self.lowest, self.scale * factor)

    def __repr__(self) -> str:
        scale = "" if self.scale == 1.0 else f", scale={self.scale:g}"
        return f"HdrBuckets({self.digits}, {self.lowest}{scale})"


class EdgeBuckets(Value, Buckets):
    """Buckets with listed edges, in ascending order.

    Parameters
    ----------
    low, high : array_like of float, shape (buckets,)
        Edges of each bucket; equal for raw values. Upper edges ascend; lower edges may overlap, as
        they do where two sources were merged.
    open_ended : bool, default False
        Values in the last bucket are known only to be at least its lower edge: of an interval of a
        log, where a histogram has censored values.

    Examples
    --------
    >>> b = EdgeBuckets([0, 10, 20], [10, 20, 50])
    >>> b.index_of([5, 10, 10.5, 50]).tolist(), b.mid([2]).tolist()
    ([0, 0, 1, 2], [35.0])
    """

    def __init__(self, low: ArrayLike, high: ArrayLike, *, open_ended: bool = False) -> None:
        self.open_ended = open_ended
        self.lows = read_only(np.array(low, np.float64))
        self.highs = read_only(np.array(high, np.float64))
        if self.lows.shape != self.highs.shape or self.lows.ndim != 1:
            raise InvalidArgumentError("there must be as many low edges as high ones")
        if not (np.isfinite(self.lows).all() and np.isfinite(self.highs).all()):
            raise InvalidArgumentError(
                "edges must be finite; what lies above the last one is censored mass"
            )
        if not ((self.lows <= self.highs).all() and (np.diff(self.highs) >= 0).all()):
            raise InvalidArgumentError(
                "upper edges must ascend, and no lower edge may exceed its upper one"
            )

    def __len__(self) -> int:
        return int(self.highs.size)

    def index_of(self, values: ArrayLike) -> Ints:
        """Return the index of the first bucket whose upper edge is not below each value, int64."""
        return np.minimum(
            np.searchsorted(self.highs, np.asarray(values, np.float64), "left"), len(self) - 1
        ).astype(np.int64)

    def low(self, index: ArrayLike) -> Floats:
        """Return the lower edge of each bucket, float64."""
        return self.lows[np.asarray(index, np.int64)]

    def high(self, index: ArrayLike) -> Floats:
        """Return the upper edge of each bucket, float64."""
        return self.highs[np.asarray(index, np.int64)]

    def mid(self, index: ArrayLike) -> Floats:
        """Return the middle of each bucket, float64."""
        i = np.asarray(index, np.int64)
        return (self.lows[i] + self.highs[i]) / 2

    def upper_edge(self, index: ArrayLike) -> Floats:
        """Return the upper edge of each bucket, NaN for an open-ended one."""
        known = not self.open_ended or np.asarray(index) < len(self) - 1
        return np.where(known, self.high(index), np.nan)

    def scaled(self, factor: float) -> EdgeBuckets:
        """Return the same buckets over values `factor` times as large."""
        return EdgeBuckets(self.lows * factor, self.highs * factor, open_ended=self.open_ended)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EdgeBuckets):
            return NotImplemented
        same = self.open_ended == other.open_ended and np.array_equal(self.lows, other.lows)
        return same and np.array_equal(self.highs, other.highs)

    def __hash__(self) -> int:
        return hash((self.lows.tobytes(), self.highs.tobytes()))

    def __repr__(self) -> str:
        return f"EdgeBuckets({len(self)} buckets)"


def coarser(a: HdrBuckets, b: HdrBuckets) -> HdrBuckets:
    """Return the layout that both can be added in: the finer steps, the fewer digits."""
    # A layout has no upper end, so fine steps cost nothing; only digits are coarsened.
    fine = min(a, b, key=lambda layout: (layout.scale * 2.0**layout.unit_magnitude, layout.scale))
    return HdrBuckets(min(a.digits, b.digits), fine.lowest, fine.scale)


# ------------------------------------------------------------
# Sums over unlike HDR layouts: the finest steps, the fewest digits, and no bucket that claims
# more than its source.
#
# A layout has no upper end, so the finest steps of all can hold the values of all; only digits have
# to be coarsened. What has coarser steps than its neighbours (a larger ``lowestDiscernibleValue``)
# keeps its own edges: such a bucket covers a run of the cells of the common grid, and runs may
# overlap. The ratios of DoubleHistograms are powers of two, so that nothing at all is lost there.

COST = "unlike histogram layouts"
"""Beginning of the note on the resolution that a sum of unlike layouts loses."""

# keep what no float represents exactly out of the neighbouring cells
_UP, _DOWN = 1 + 2.0**-51, 1 - 2.0**-51
_KEPT = 40  # low bits of a bucket's highest value: all ones, and more than any layout looks at


class CellBuckets(EdgeBuckets):
    """Buckets made of runs of cells of one HDR layout, ordered by last cell; runs may overlap."""

    def __init__(self, grid: HdrBuckets, first: ArrayLike, last: ArrayLike) -> None:
        self.grid = grid
        self.first = read_only(np.asarray(first, np.int64))
        self.last = read_only(np.asarray(last, np.int64))
        super().__init__(grid.low(self.first), grid.high(self.last))

    @property
    def overlap(self) -> bool:
        """True if some bucket is wider than its cell."""
        return bool((self.first != self.last).any())

    def mid(self, index: ArrayLike) -> Floats:
        """Return the middle of each bucket, float64."""
        i = np.asarray(index, np.int64)
        alone = self.first[i] == self.last[i]
        between = super().mid(i) + self.grid.scale / 2  # half of as many steps, as in an HDR layout
        return np.where(alone, self.grid.mid(self.last[i]), between)

    def scaled(self, factor: float) -> CellBuckets:
        """Return the same buckets over values `factor` times as large."""
        return CellBuckets(self.grid.scaled(factor), self.first, self.last)


def cells_of(grid: HdrBuckets, buckets: Buckets, index: ArrayLike) -> tuple[Ints, Ints]:
    """Return the cells of `grid` that hold the lowest and the highest value of each bucket."""
    # Exact where the scales are a power of two apart; else within rounding.
    i = np.asarray(index, np.int64)
    if isinstance(buckets, CellBuckets):
        if buckets.grid == grid:
            return buckets.first[i], buckets.last[i]
        return cells_of(grid, buckets.grid, buckets.first[i])[0], cells_of(
            grid, buckets.grid, buckets.last[i]
        )[1]
    if isinstance(buckets, HdrBuckets) and _divides(grid, buckets):
        sub, shift = buckets.parts(i)
        kept = np.minimum(shift, _KEPT)
        doublings = math.frexp(buckets.scale)[1] - math.frexp(grid.scale)[1] - grid.unit_magnitude
        highest = _cells(grid, ((sub + 1) << kept) - 1, shift - kept + doublings)
        return _cells(grid, sub, shift + doublings), highest
    return _cells_of_values(grid, buckets.low(i)), _cells_of_values(
        grid, buckets.high(i), above=True
    )


def _divides(grid: HdrBuckets, buckets: Buckets) -> bool:
    """True if the scales are a power of two apart."""
    return math.frexp(grid_of(buckets).scale)[0] == math.frexp(grid.scale)[0]


def _cells_of_values(grid: HdrBuckets, values: Floats, *, above: bool = False) -> Ints:
    """Cell of each value, or the first that ends at or above it (`above`)."""
    mantissa, exponent = math.frexp(grid.scale)
    own, order = np.frexp(values)
    steps = np.ldexp(own / mantissa * (_DOWN if above else _UP), 53).astype(np.int64)
    doublings = order.astype(np.int64) - (exponent + grid.unit_magnitude + 53)
    if above:  # whole steps of the grid
        shift = np.clip(-doublings, 0, 62)
        steps, doublings = (steps + ((np.int64(1) << shift) - 1)) >> shift, np.maximum(doublings, 0)
    return _cells(grid, steps, doublings)


def _cells(grid: HdrBuckets, number: Ints, exponent: Ints) -> Ints:
    """Cell of ``number * 2**exponent`` narrowest cells, which may exceed any integer."""
    half = grid.half_magnitude
    # must not round up to one more bit
    exact = np.where(number >= _EXACT, number & ~np.int64(2047), number)
    bits = np.frexp(exact.astype(np.float64))[1].astype(np.int64)
    top = bits + exponent
    up, down = np.clip(exponent, 0, half + 1), np.clip(-exponent, 0, 63)
    linear = np.where(exponent >= 0, np.where(top <= half + 1, number, 0) << up, number >> down)
    extra = bits - (half + 1)
    leading = np.where(
        extra > 0, number >> np.clip(extra, 0, 63), number << np.clip(-extra, 0, half + 1)
    )
    return np.where(
        (top <= half + 1) | (number == 0), linear, ((top - half) << half) + leading - (1 << half)
    )


def grid_of(buckets: Buckets) -> HdrBuckets:
    """Return the HDR layout whose cells these buckets are, or are made of."""
    assert isinstance(buckets, HdrBuckets | CellBuckets)
    return buckets.grid if isinstance(buckets, CellBuckets) else buckets


def add_up(parts: Sequence[Counts]) -> Counts:
    """Return the layout, indices and counts of the sum of counts in HDR layouts of any kind."""
    spread = (
        [part for part in parts if is_spread(part)]
        or [part for part in parts if part[1].size][:1]
        or list(parts[:1])
    )
    grid = reduce(coarser, {grid_of(buckets) for buckets, *_ in spread})
    if grid.unit_magnitude and any(part[1].size and not is_spread(part) for part in parts):
        grid = HdrBuckets(grid.digits, 1, grid.scale)  # or exact zeros would not stay exact
    near: list[Counts] = []
    # of other mantissas: looked up together, for each may be of a layout of its own
    far: list[Counts] = []
    for part in parts:
        (far if is_spread(part) and not _divides(grid, part[0]) else near).append(part)
    cells = [
        cells_of(grid, part[0], part[1]) if is_spread(part) else (part[1], part[1]) for part in near
    ]
    if far:
        low = np.concatenate([part[0].low(part[1]) for part in far])
        high = np.concatenate([part[0].high(part[1]) for part in far])
        cells.append((_cells_of_values(grid, low), _cells_of_values(grid, high, above=True)))
    first, last = (np.concatenate(side) for side in zip(*cells, strict=True))
    counts = np.concatenate([part[2] for part in near + far])
    if (first == last).all() and grid.reaches(last):
        unique, inverse = np.unique(last, return_inverse=True)
        return grid, unique, added(counts, inverse, unique.size)
    # in the order of their last cells
    runs, inverse = np.unique((last << 32) + first, return_inverse=True)
    return (
        CellBuckets(grid, runs & 0xFFFFFFFF, runs >> 32),
        np.arange(runs.size),
        added(counts, inverse, runs.size),
    )


def is_spread(part: Counts) -> bool:
    """Return whether it counts anything but exact zeros."""
    buckets, index, _ = part
    exact = isinstance(buckets, HdrBuckets) and buckets.unit_magnitude == 0
    return bool(index.size) and not (exact and int(index[-1]) == 0)


def added(counts: Ints, place: Ints, size: int) -> Ints:
    """Return the sums of the counts of each place."""
    total = np.zeros(size, np.int64)
    np.add.at(total, place, counts)
    return total


def on_grid(buckets: Buckets, index: Ints, counts: Ints) -> Counts:
    """Return the counts in an HDR layout, each run of cells counted in its highest cell."""
    if not isinstance(buckets, CellBuckets):
        return buckets, index, counts
    cells, inverse = np.unique(buckets.last[index], return_inverse=True)
    return buckets.grid, cells, added(counts, inverse, cells.size)


def widest(buckets: Buckets, index: Ints) -> tuple[float, float, float]:
    """Return the greatest width of a bucket relative to its highest value, and its two edges."""
    low, high = buckets.low(index), buckets.high(index)
    width = np.divide(high - low, high, out=np.zeros(high.shape), where=high > 0)
    at = int(width.argmax()) if width.size else -1
    return (float(width[at]), float(low[at]), float(high[at])) if width.size else (0.0, 0.0, 0.0)


def cost(width: float, low: float, high: float, unit: str, digits: Sequence[int] = ()) -> str:
    """Return the note on what a sum of unlike layouts costs."""
    percent = 100 * width
    step = 10.0 ** (math.floor(math.log10(percent)) - 1)  # two digits, and never less than it is
    shown = f"{math.ceil(round(percent / step, 9)) * step:.3g}"
    kinds = (
        f" of {', '.join(map(str, digits[:-1]))} and {digits[-1]} digits" if len(digits) > 1 else ""
    )
    where = f" ({format_value(low, unit)} to {format_value(high, unit)})" if high else ""
    return f"{COST}{kinds} were added: a bucket is up to {shown} % wide{where}"
