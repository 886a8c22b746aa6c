"""Counts in buckets: the rung that answers every question but those about time and single requests."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from latencykit.buckets import EdgeBuckets, HdrBuckets
from latencykit.errors import LimitError, UsageError
from latencykit.histogram.counting import count_values
from latencykit.histogram.lookup import least_of, stated_range, values_at
from latencykit.histogram.rebuilding import counts_of_hdrh, percentile_buckets, to_hdrh
from latencykit.histogram.trust import PercentileRow, highest_pinned_down, statistic_bracket, trusted_rows
from latencykit.layouts import cells_of
from latencykit.rooms import html_of
from latencykit.run import Run, merge_runs
from latencykit.stats.counted import Counted
from latencykit.stats.means import mean_std
from latencykit.stats.percentiles import is_resolved
from latencykit.stats.quantiles import highest_supported_percentile
from latencykit.summary import Summary
from latencykit.units import checked_unit, format_count, format_row, format_value, unit_factor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from latencykit.buckets import Buckets
    from latencykit.histogram.evidence import Evidence
    from latencykit.stats.trimmed import Trimmed

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["STANDARD_PERCENTILES", "Histogram", "PercentileRow"]

STANDARD_PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 100.0)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts in buckets, immutable.

    Parameters
    ----------
    buckets : Buckets
        Where the bins lie.
    index, counts : ndarray of int64, shape (nonzero,)
        Ascending bucket indices with a count above zero, and their counts.
    unit : str
        Unit of the values: ``ns``, ``us``, ``ms``, ``s`` or ``none``.
    run : Run
        What the source says of the measurement.
    told : mapping of str to float
        ``mean``, ``std``, ``min``, ``max`` as the source itself states them: they win over the buckets.
    printed : tuple of two tuples of float
        Percentiles and values that the tool printed; they are given back as printed.
    censored : int
        Values known only to be at least `censored_at`: timeouts, clips, overflows.
    censored_at : float
        That bound.

    Examples
    --------
    >>> h = Histogram.of([1_000, 2_000, 2_000, 90_000])
    >>> h.count, h.percentile(50), h.max
    (4, 2000.0, 90047.0)
    """

    buckets: Buckets
    index: Ints
    counts: Ints
    unit: str = "ns"
    run: Run = field(default_factory=Run)
    told: Mapping[str, float] = field(default_factory=dict)
    printed: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    censored: int = 0
    censored_at: float = float("inf")

    def __post_init__(self) -> None:
        checked_unit(self.unit)
        if float(np.sum(self.counts, dtype=np.float64)) >= 2.0**63 or (self.counts < 0).any():
            raise LimitError("the counts add up to 2^63 or more, or are negative; such counts are damaged")

    # ------------------------------------------------------------ making one

    @classmethod
    def of(cls, values: ArrayLike | Iterable[ArrayLike], digits: int = 3, unit: str = "ns", run: Run | None = None) -> Histogram:
        """Count raw values.

        Parameters
        ----------
        values : array_like, or iterable of arrays
            Finite and not negative. Integers are counted to 1 step; floats of a time unit to 1 ns. They are counted in
            small pieces, whatever their number: a mapped ``.npy`` file (``np.load(path, mmap_mode="r")``), Arrow
            arrays, and batches of one Parquet column (``ParquetFile(path).iter_batches(columns=["latency"])``) never
            stand in memory whole.
        digits : int, default 3
            Significant decimal digits of the buckets.
        unit : str, default "ns"
            Unit of the values: ``ns``, ``us``, ``ms``, ``s`` or ``none``.
        run : Run, optional
            What is known of the measurement.

        Raises
        ------
        UsageError
            For negative, infinite or not-a-number values, and for null ones of Arrow.

        Examples
        --------
        >>> Histogram.of((np.arange(1000) for _ in range(3)), unit="us").count
        3000
        """
        buckets, index, counts = count_values(values, digits, unit)
        return cls(buckets, index, counts, unit, run or Run(unit=unit))

    @classmethod
    def from_buckets(cls, low: ArrayLike, high: ArrayLike, counts: ArrayLike, unit: str = "ns", **known: Any) -> Histogram:
        """Take counts between listed edges (arrays of one length, ascending); `known` are further fields."""
        numbers = np.asarray(counts, np.int64)
        if (numbers < 0).any():
            raise UsageError("counts must not be negative; cumulative buckets must be turned into differences first")
        index = np.flatnonzero(numbers)
        return cls(EdgeBuckets(low, high), index, numbers[index], unit, **known)

    @classmethod
    def from_percentiles(
        cls, percentiles: Sequence[float], values: Sequence[float], count: int, unit: str = "ns", **known: Any
    ) -> Histogram:
        """Rebuild a histogram from printed percentiles: its buckets reach from one printed value to the next.

        Parameters
        ----------
        percentiles, values : sequence of float
            Ascending percentiles (0..100) and their values; ``told`` may add ``min`` and ``max``.
        count : int
            Number of values behind them.
        unit : str
        **known
            Further fields: `run`, `told`, `censored`, `censored_at`.

        Returns
        -------
        Histogram
            What lies above the last value, where no maximum is known, is censored there.

        Examples
        --------
        >>> h = Histogram.from_percentiles([50, 99], [1.2e6, 5e6], 1000, told={"max": 6e6})
        >>> h.percentile([50, 98, 99, 100]).tolist()
        [1200000.0, 5000000.0, 5000000.0, 6000000.0]
        """
        lows, highs, counts, facts = percentile_buckets(percentiles, values, count, known)
        return cls.from_buckets(lows, highs, counts, unit, **facts)

    @classmethod
    def from_hdrh(cls, other: Any, unit: str = "ns", run: Run | None = None) -> Histogram:
        """Take an ``hdrh.histogram.HdrHistogram`` of the hdrhistogram package."""
        return cls(*counts_of_hdrh(other), unit, run or Run(unit=unit))

    def to_hdrh(self) -> Any:
        """Return an ``hdrh.histogram.HdrHistogram`` with the same buckets and counts."""
        return to_hdrh(self)

    # ------------------------------------------------------------ plain facts

    @cached_property
    def count(self) -> int:
        """Number of values counted; censored ones apart."""
        return int(self.counts.sum())

    @property
    def requests(self) -> int:
        """Good requests: those counted, and those known only to lie above a limit, unless they timed out.

        Examples
        --------
        >>> Histogram.from_percentiles([50, 90], [1e6, 2e6], 1000).requests  # 100 of them somewhere above 2 ms
        1000
        """
        return self.count + max(self.censored - self.run.timeouts, 0)

    @property
    def min(self) -> float:
        """Lowest value: the lower edge of the lowest bucket, unless the source states it."""
        return self._told("min", lambda: least_of(self))

    @property
    def max(self) -> float:
        """Highest value: the upper edge of the highest bucket, unless the source states it."""
        return self._told("max", lambda: float(self.buckets.high(self.index[-1])))

    @property
    def mean(self) -> float:
        """Mean of the buckets' middles, as the reference has it, unless the source states it; `bracket` has its bounds."""
        return self._told("mean", lambda: self._mean_std[0])

    @property
    def std(self) -> float:
        """Population standard deviation of the buckets' middles, unless the source states it."""
        return self._told("std", lambda: self._mean_std[1])

    @cached_property
    def _mean_std(self) -> tuple[float, float]:
        steps = self.buckets.mid_steps(self.index) if isinstance(self.buckets, HdrBuckets) else self.buckets.mid(self.index)
        mean, std = mean_std(steps, self.counts)
        return mean * self.buckets.scale, std * self.buckets.scale

    def _told(self, name: str, otherwise: Any) -> float:
        if name in self.told:
            return self.told[name]
        return float(otherwise()) if self.index.size else float("nan")

    @cached_property
    def cumulative(self) -> Ints:
        """Running total of the counts, int64, shape (nonzero,)."""
        return np.cumsum(self.counts)

    @cached_property
    def counted(self) -> Counted:
        """The same as plain arrays: what the functions of `latencykit.stats` take."""
        held = Counted.in_buckets(self.buckets, self.index, self.counts, self.censored, self.censored_at)
        if not self.told:
            return held
        least, most = stated_range(self)
        return held.stating(least, most, *(self.told.get(name, float("nan")) for name in ("mean", "std")))

    def bracket(self, statistic: str) -> tuple[float, float]:
        """Return the least and the most that a statistic can be, given the source's resolution.

        Parameters
        ----------
        statistic : {"min", "max", "mean", "std"}
            Both are equal where the source states it.

        Examples
        --------
        >>> wide = Histogram.from_percentiles([50, 99], [1e6, 4e6], 1000, told={"min": 0, "max": 5e6})
        >>> wide.bracket("mean"), wide.bracket("max")
        ((530000.0, 2510000.0), (5000000.0, 5000000.0))
        """
        return statistic_bracket(self, statistic)

    # ------------------------------------------------------------ questions

    @overload
    def percentile(self, percentile: float) -> float: ...
    @overload
    def percentile(self, percentile: Sequence[float] | Floats) -> Floats: ...
    def percentile(self, percentile: ArrayLike) -> float | Floats:
        """Return the value at each percentile (0..100): a float for a scalar, an array for an array.

        The value is the highest of its bucket (the reference's rule); a percentile that the tool printed is given
        as printed; one that reaches the censored mass gives its bound, of which the truth is "at least".
        """
        p = np.asarray(percentile, np.float64)
        values = self.values_at(np.atleast_1d(p))[0]
        return float(values[0]) if p.ndim == 0 else values.reshape(p.shape)

    @overload
    def quantile(self, quantile: float) -> float: ...
    @overload
    def quantile(self, quantile: Sequence[float] | Floats) -> Floats: ...
    def quantile(self, quantile: ArrayLike) -> float | Floats:
        """Return the value at each quantile (0..1); see `percentile`."""
        q = np.asarray(quantile, np.float64)
        if not ((q >= 0) & (q <= 1)).all():
            raise UsageError(f"quantiles must be from 0 to 1, not {q.tolist()}")
        return self.percentile(q * 100.0)

    def values_at(self, p: Floats) -> tuple[Floats, Ints, NDArray[np.bool_]]:
        """Value, bucket position and "this is only a lower bound" of each percentile."""
        return values_at(self, p)

    def percentile_rows(self, percentiles: ArrayLike = STANDARD_PERCENTILES, confidence: float = 0.95) -> list[PercentileRow]:
        """Return each percentile with its confidence interval, its bucket and whether the sample supports it."""
        return trusted_rows(self, np.atleast_1d(np.asarray(percentiles, np.float64)), confidence)

    def evidence(self) -> Evidence:
        """Return how far the numbers can be trusted, as of independent requests: counts do not know when they were."""
        from latencykit.histogram.evidence import Evidence

        return Evidence(self)

    def percentiles(self, percentiles: ArrayLike = STANDARD_PERCENTILES, confidence: float = 0.95) -> pd.DataFrame:
        """Return a table of percentiles with the columns of `PercentileRow`, indexed by percentile."""
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.percentile_rows(percentiles, confidence)]).set_index("percentile")

    def percentile_of(self, value: float) -> float:
        """Return the share (in %) of values that are surely at or below `value`: whole buckets only."""
        within = int(self.counts[self.buckets.high(self.index) <= value].sum())
        total = self.count + self.censored
        return 100.0 * within / total if total else float("nan")

    def count_above(self, value: float) -> int:
        """Return how many values are not surely at or below `value`, censored ones included."""
        return int(self.counts[self.buckets.high(self.index) > value].sum()) + self.censored

    def trimmed(self, spec: str) -> Trimmed:
        """Return a trimmed statistic with its definition, its bracket, and what it leaves out.

        Parameters
        ----------
        spec : str
            ``"tm99.9"`` (without the lowest and the highest 0.1 %), ``"TM(:99%)"``, ``"TM(150ms:1s)"``, ``"wm98"``,
            ``"tc90"``, ``"ts90"``, ``"PR(:300ms)"`` or ``"IQM"``; see `latencykit.stats.trim_spec`.

        Examples
        --------
        >>> found = Histogram.of([1, 2, 3, 4, 1000], unit="ms").trimmed("TM(:80%)")
        >>> found.value, found.definition, found.leaves_out
        (2.5, 'TM(:80%): mean without the highest 20 %', '1 request, up to 1 s')
        """
        from latencykit.stats.trimmed import trimmed

        return trimmed(self.counted, spec, self.unit)

    def trimmed_mean(self, spec: str) -> float:
        """Return a trimmed mean; `trimmed` tells its definition and what it leaves out, too."""
        return self._of_kind(spec, "TM", "trimmed")

    def winsorized_mean(self, spec: str) -> float:
        """Return a winsorized mean, ``"wm98"`` or ``"WM(1%:99%)"``: the ends are pulled in, not left out."""
        return self._of_kind(spec, "WM", "winsorized")

    def _of_kind(self, spec: str, kind: str, name: str) -> float:
        from latencykit.stats.trim_spec import parse_trim

        if parse_trim(spec, self.unit).kind != kind:
            raise UsageError(f"{spec!r} is no {name} mean; trimmed({spec!r}).value gives what it is")
        return self.trimmed(spec).value

    def sample_limit(self, confidence: float = 0.95) -> float:
        """Return the highest percentile that the number of values bounds from above, however wide its bucket; 0 where none."""
        return highest_supported_percentile(self.count + self.censored, confidence)

    def highest_supported_percentile(self, confidence: float = 0.95) -> float:
        """Return the highest percentile that the sample bounds from above and the source pins down within a tenth.

        0 where there is none: every percentile of buckets that double in width is a range.

        Examples
        --------
        >>> round(Histogram.of(range(1500)).highest_supported_percentile(), 3)
        99.754
        >>> Histogram.from_percentiles([50, 99], [1e6, 4e6], 10_000, told={"max": 9e6}).highest_supported_percentile()
        99.0
        """
        return highest_pinned_down(self, self.sample_limit(confidence))

    # ------------------------------------------------------------ making others

    def __add__(self, other: Histogram) -> Histogram:
        from latencykit.histogram.adding import merge_histograms

        return merge_histograms([self, other])

    def __sub__(self, other: Histogram) -> Histogram:
        """Return what was counted between two scrapes: `self` is the later one."""
        merge_runs([self.run.but(unit=self.unit), other.run.but(unit=other.unit)])
        if self.buckets != other.buckets:
            raise UsageError("only histograms of equal buckets can be subtracted")
        size = int(max(self.index.max(initial=-1), other.index.max(initial=-1))) + 1
        counts = np.zeros(size, np.int64)
        counts[self.index] = self.counts
        counts[other.index] -= other.counts
        if (counts < 0).any() or self.censored < other.censored:
            raise UsageError("a bucket shrank between the two: swap them, or the counter was reset in between")
        index, size = np.flatnonzero(counts), self.requests - other.requests
        told = {}
        if size > 0 and "mean" in self.told and "mean" in other.told:  # sums are counters, too
            told["mean"] = (self.told["mean"] * self.requests - other.told["mean"] * other.requests) / size
        return replace(
            self,
            index=index,
            counts=counts[index],
            told=told,
            printed=((), ()),
            censored=self.censored - other.censored,
        )

    def rebucket(self, layout: HdrBuckets, *, as_reference: bool = False) -> Histogram:
        """Record every bucket anew into another layout.

        A bucket goes where its highest value lies, so that nothing reads better than before; with
        `as_reference`, where its lowest value lies, as the reference's ``add`` does.
        """
        moved = cells_of(layout, self.buckets, self.index)[0 if as_reference else 1]
        if not layout.reaches(moved):
            raise UsageError(f"values up to {format_value(self.max, self.unit)} do not fit into {layout}")
        index, inverse = np.unique(moved, return_inverse=True)
        counts = np.zeros(index.size, np.int64)
        np.add.at(counts, inverse, self.counts)
        return replace(self, buckets=layout, index=index, counts=counts)

    def to_unit(self, unit: str) -> Histogram:
        """Return the same histogram with its values in another unit."""
        if unit == self.unit:
            return self
        factor = unit_factor(self.unit, unit)
        told = {name: value * factor for name, value in self.told.items()}
        printed = (self.printed[0], tuple(value * factor for value in self.printed[1]))
        return replace(
            self, buckets=self.buckets.scaled(factor), unit=unit, told=told, printed=printed,
            censored_at=self.censored_at * factor, run=self.run.but(unit=self.run.unit),
        )  # fmt: skip

    def but(self, **changes: Any) -> Histogram:
        """Return a copy with some facts of the run changed."""
        return replace(self, run=self.run.but(**changes))

    def histogram(self) -> Histogram:
        """Return itself: the rung asked for."""
        return self

    def summary(self, percentiles: Sequence[float] = STANDARD_PERCENTILES) -> Summary:
        """Step down to named statistics: those that the source pins down within a tenth."""
        names = [name for name in ("mean", "std", "min", "max") if is_resolved(*self.bracket(name))]
        known = {row.percentile: row.value for row in self.percentile_rows(list(percentiles)) if row.resolved}
        return Summary({name: getattr(self, name) for name in names}, known, self.requests, self.unit, self.run)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row a bucket: low, high, count."""
        import pandas as pd

        return pd.DataFrame({"low": self.buckets.low(self.index), "high": self.buckets.high(self.index), "count": self.counts})

    def _repr_html_(self) -> str:
        return html_of(self)

    def __repr__(self) -> str:
        if not self.index.size:
            return "Histogram(no values)"

        def show(value: float) -> str:
            return format_value(value, self.unit)

        rows = [replace(row, supported=True) for row in self.percentile_rows([50, 99, 100])]
        numbers = ", ".join(f"{name} {format_row(row, show)}" for name, row in zip(("p50", "p99", "max"), rows, strict=True))
        return f"Histogram({format_count(self.count)} values: {numbers})"
