"""Histograms: counts in buckets, reported statistics and censored values, and their percentiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from latencykit import errors, units
from latencykit._arrays import Value, read_only
from latencykit._records import record
from latencykit._text import brief_list
from latencykit._typing import Floats, Ints
from latencykit.core.buckets import (
    COST,
    Buckets,
    CellBuckets,
    EdgeBuckets,
    HdrBuckets,
    add_up,
    added,
    cells_of,
    cost,
    grid_of,
    is_spread,
    widest,
)
from latencykit.core.evidence import Evidence
from latencykit.core.percentile_rows import PercentileRow, percentile_frame, stated_range, values_at
from latencykit.core.quantiles import (
    Counted,
    Percentiles,
    as_numbers,
    highest_supported_percentile,
    is_resolved,
    mean_std,
    surely_within,
)
from latencykit.core.run import Run, merge_runs, require_data

if TYPE_CHECKING:
    import pandas as pd
    from hdrh.histogram import HdrHistogram

    from latencykit.core.summary import Summary
    from latencykit.core.trimmed import Trimmed


STANDARD_PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 100.0)


def _average(values: Floats, counts: Ints) -> float:
    """The mean of counted values; ``np.average`` takes several times as long for a few."""
    return float((values * counts).sum() / counts.sum(dtype=np.float64))


class Evidenced(Percentiles):
    """Percentiles with how far they can be trusted."""

    def evidence(self) -> Evidence:
        """Return how far the numbers can be trusted, given when requests were slow."""
        raise NotImplementedError

    def __radd__(self, zero: int) -> Self:
        return self if zero == 0 else NotImplemented  # sum() begins with it

    def _repr_html_(self) -> str:
        from latencykit.core.key_statistics import html_of

        return html_of(type(self).__name__, self)

    def percentile_rows(
        self, percentiles: ArrayLike = STANDARD_PERCENTILES, *, confidence: float = 0.95
    ) -> list[PercentileRow]:
        """Return each percentile with its confidence interval, its bucket and its support.

        If times are known, the intervals allow for requests that are slow together (the jackknife
        over twelve blocks of time), and are as wide as those of independent requests at least;
        there is none where a log has fewer than twelve intervals.
        """
        p = as_numbers(percentiles, "percentiles").ravel().tolist()
        return self.evidence().rows(p, confidence)[0]

    def percentiles(
        self, percentiles: ArrayLike = STANDARD_PERCENTILES, *, confidence: float = 0.95
    ) -> pd.DataFrame:
        """Return a table of percentiles, indexed by percentile; see `percentile_rows`.

        Parameters
        ----------
        percentiles : array_like
        confidence : float, default 0.95

        Returns
        -------
        DataFrame
            value; low, high (confidence interval joined with the bucket); bucket_low, bucket_high;
            resolved (these within a tenth); supported (bounded by the sample); events.
        """
        return percentile_frame(self.percentile_rows(percentiles, confidence=confidence))

    def highest_supported_percentile(self, *, confidence: float = 0.95) -> float:
        """Return the highest percentile bounded by the sample and resolved within a tenth.

        0 if there is none: every percentile of buckets that double in width is a range.

        Examples
        --------
        >>> round(Histogram.of(range(1500)).highest_supported_percentile(), 3)
        99.333
        >>> h = Histogram.from_percentiles([50, 99], [1e6, 4e6], 9999, reported_stats={"max": 9e6})
        >>> h.highest_supported_percentile()
        99.0
        """
        return self.evidence().highest_supported_percentile(confidence=confidence)


class HistogramBacked(Evidenced):
    """Statistics that samples and logs take from their histogram, as far as it can answer."""

    def histogram(self) -> Histogram:
        """Step down to one histogram."""
        raise NotImplementedError

    def _values_at(self, percentiles: Floats) -> Floats:
        return np.asarray(self.histogram().percentile(percentiles))

    @property
    def count(self) -> int:
        """Number of good requests that were counted."""
        return self.histogram().count

    @property
    def min(self) -> float:
        """Lowest value; see `Histogram.min`."""
        return self.histogram().min

    @property
    def max(self) -> float:
        """Highest value; see `Histogram.max`."""
        return self.histogram().max

    @property
    def mean(self) -> float:
        """Mean; see `Histogram.mean`."""
        return self.histogram().mean

    @property
    def std(self) -> float:
        """Population standard deviation; see `Histogram.std`."""
        return self.histogram().std

    def percentile_of(self, value: float | str) -> float:
        """Return the share (in %) of values surely at or below `value`."""
        return self.histogram().percentile_of(value)

    def count_above(self, value: float | str) -> int:
        """Return the number of values that may be above `value`, censored ones included."""
        return self.histogram().count_above(value)

    def summary(self, percentiles: Sequence[float] = STANDARD_PERCENTILES) -> Summary:
        """Step down to named statistics."""
        return self.histogram().summary(percentiles)


# ------------------------------------------------------------
# Counts in buckets: the data type for every question but those about time and single requests.


class Known(TypedDict, total=False):
    """Further fields of a `Histogram`."""

    run: Run
    reported_stats: Mapping[str, float]
    reported_percentiles: tuple[tuple[float, ...], tuple[float, ...]]
    censored: int
    censored_at: float


@record(eq=False)
class Histogram(Evidenced, Value):
    """Counts in buckets, immutable; equal to another if all fields are, `run` included.

    Parameters
    ----------
    buckets : Buckets
        Layout of the buckets.
    index, counts : ndarray of int64, shape (nonzero,)
        Ascending bucket indices with a count above zero, and their counts.
    unit : str
        Unit of the values: ``ns``, ``us``, ``ms``, ``s`` or ``none``.
    run : Run
        Facts about the measurement.
    reported_stats : mapping of str to float
        ``mean``, ``std``, ``min``, ``max`` as the source states them: they win over the buckets.
    reported_percentiles : tuple of two tuples of float
        Percentiles and values as reported by the tool; `percentile` returns them unchanged.
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
    reported_stats: Mapping[str, float] = field(default_factory=dict)
    reported_percentiles: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    censored: int = 0
    censored_at: float = float("inf")

    def __post_init__(self) -> None:
        super().__post_init__()
        units.checked_unit(self.unit)
        total = self.censored + float(np.sum(self.counts, dtype=np.float64))
        if total >= 2.0**63 or (self.counts < 0).any():
            raise errors.InputTooLargeError(
                "the counts add up to 2^63 or more, or are negative; such counts are corrupt"
            )

    # ------------------------------------------------------------ making one

    @classmethod
    def of(
        cls,
        values: ArrayLike | Iterable[ArrayLike],
        digits: int = 3,
        unit: str = "ns",
        run: Run | None = None,
    ) -> Histogram:
        """Count raw values.

        Parameters
        ----------
        values : array_like, or iterable of arrays
            Finite and not negative. Integers are counted to 1 step; floats of a time unit to 1 ns,
            and so are timedeltas.
            They are counted in small pieces: a mapped ``.npy`` file
            (``np.load(path, mmap_mode="r")``), Arrow arrays, and batches of one Parquet column
            (``ParquetFile(path).iter_batches(columns=["latency"])``) are never loaded completely.
        digits : int, default 3
            Significant decimal digits of the buckets.
        unit : str, default "ns"
            Unit of the values: ``ns``, ``us``, ``ms``, ``s`` or ``none``.
        run : Run, optional
            Facts about the measurement.

        Raises
        ------
        InvalidArgumentError
            For negative, infinite or not-a-number values, and for null ones of Arrow.

        Examples
        --------
        >>> Histogram.of((np.arange(1000) for _ in range(3)), unit="us").count
        3000
        """
        from latencykit.core.counting import count_values

        buckets, index, counts = count_values(values, digits, unit)
        return cls(buckets, index, counts, unit, run or Run(unit=unit))

    @classmethod
    def from_buckets(
        cls,
        low: ArrayLike,
        high: ArrayLike,
        counts: ArrayLike,
        unit: str = "ns",
        **known: Unpack[Known],
    ) -> Histogram:
        """Take counts between ascending edges; `known` are further fields."""
        numbers = np.asarray(counts, np.int64)
        if (numbers < 0).any():
            raise errors.InvalidArgumentError(
                "counts must not be negative; cumulative buckets must be turned into differences "
                "first"
            )
        index = np.flatnonzero(numbers)
        return cls(EdgeBuckets(low, high), index, numbers[index], unit, **known)

    @classmethod
    def from_percentiles(
        cls,
        percentiles: Sequence[float],
        values: Sequence[float],
        count: int,
        unit: str = "ns",
        **known: Unpack[Known],
    ) -> Histogram:
        """Rebuild a histogram from reported percentiles, with buckets between the reported values.

        Parameters
        ----------
        percentiles, values : sequence of float
            Ascending percentiles (0..100) and their values; ``reported_stats`` may add ``min`` and
            ``max``.
        count : int
            Number of values behind them.
        unit : str
        **known
            Further fields: `run`, `reported_stats`, `censored`, `censored_at`.

        Returns
        -------
        Histogram
            Values above the last percentile are censored there, unless the maximum is known.

        Examples
        --------
        >>> h = Histogram.from_percentiles([50, 99], [1e6, 5e6], 100, reported_stats={"max": 6e6})
        >>> h.percentile([50, 98, 99, 100]).tolist()
        [1000000.0, 5000000.0, 5000000.0, 6000000.0]
        """
        stats = dict(known.get("reported_stats", {}))
        p, v = np.asarray(percentiles, np.float64), np.asarray(values, np.float64)
        if "max" in stats and (not p.size or p[-1] < 100):
            top = max(stats["max"], v[-1] if v.size else 0.0)
            p, v = np.append(p, 100.0), np.append(v, top)
        if not p.size or count <= 0:
            raise errors.DataNotAvailableError(
                "a histogram cannot be rebuilt without a count and at least one percentile"
            )
        order = np.argsort(p, kind="stable")
        p, v = p[order], np.maximum.accumulate(v[order])
        if "min" in stats and stats["min"] > v[0]:  # contradicts the percentile
            known["reported_stats"] = stats = {**stats, "min": float(v[0])}
        known["reported_percentiles"] = (tuple(p.tolist()), tuple(v.tolist()))
        censored = int(known.get("censored", 0))
        cumulative = np.minimum(surely_within(p, count + censored), count)
        if cumulative[-1] < count:  # values above the last row: known only to lie there
            known["censored"] = censored + count - int(cumulative[-1])
            known["censored_at"] = min(float(v[-1]), float(known.get("censored_at", np.inf)))
        lows = np.concatenate(([min(stats.get("min", 0.0), v[0])], v[:-1]))
        return cls.from_buckets(lows, v, np.diff(cumulative, prepend=0), unit, **known)

    @classmethod
    def from_hdrh(cls, other: HdrHistogram, unit: str = "ns", run: Run | None = None) -> Histogram:
        """Take an ``hdrh.histogram.HdrHistogram`` of the hdrhistogram package."""
        if not hasattr(other, "counts_len"):
            kind = type(other).__name__
            raise errors.InvalidArgumentError(
                f"expected a histogram of the package hdrhistogram, not {kind}"
            )
        size: int = other.counts_len
        counts = np.fromiter((other.counts[i] for i in range(size)), np.int64, size)
        index = np.flatnonzero(counts)
        layout = HdrBuckets(other.significant_figures, other.lowest_trackable_value)
        return cls(layout, index, counts[index], unit, run or Run(unit=unit))

    def to_hdrh(self) -> HdrHistogram:
        """Return an ``hdrh.histogram.HdrHistogram`` with the same buckets and counts."""
        try:
            from hdrh.histogram import HdrHistogram
        except ImportError as missing:
            raise errors.MissingPackageError("hdrhistogram", "to_hdrh()", "test") from missing
        layout = self.buckets
        if not isinstance(layout, HdrBuckets) or layout.scale != 1.0:
            raise errors.InvalidArgumentError(
                "the hdrhistogram package only has HDR histograms of integer values"
            )
        top = int(layout.high_steps(self.index[-1])) if self.index.size else 2 * layout.lowest
        other = HdrHistogram(layout.lowest, max(top, 2 * layout.lowest), layout.digits)
        values = layout.low_steps(self.index).tolist()
        for value, count in zip(values, self.counts.tolist(), strict=True):
            other.record_value(value, count)
        return other

    # ------------------------------------------------------------ plain facts

    @cached_property
    def count(self) -> int:
        """Number of values counted, without censored ones."""
        return int(self.counts.sum())

    @property
    def requests(self) -> int:
        """Good requests: those counted, and censored ones that did not time out.

        Examples
        --------
        >>> h = Histogram.from_percentiles([50, 90], [1e6, 2e6], 1000)
        >>> h.requests, h.censored  # somewhere above 2 ms
        (1000, 100)
        """
        return self.count + max(self.censored - self.run.timeouts, 0)

    @property
    def min(self) -> float:
        """Lowest value: the lower edge of the lowest bucket, unless reported by the source."""
        # Listed buckets may overlap, so the lowest edge need not be the first.
        some = self.index if isinstance(self.buckets, EdgeBuckets) else self.index[:1]
        return self._reported_or("min", lambda: float(self.buckets.low(some).min()))

    @property
    def max(self) -> float:
        """Highest value: the upper edge of the highest bucket, unless reported by the source."""
        # Of few requests, the highest percentile that a source reports may be beyond all buckets.
        least = max(self.reported_percentiles[1], default=-math.inf)
        return self._reported_or(
            "max", lambda: max(float(self.buckets.high(self.index[-1])), least)
        )

    @property
    def mean(self) -> float:
        """Mean of the buckets' middles, as in the reference, unless reported; see `bounds`."""
        least, most = self.reported_stats.get("min", 0.0), self.reported_stats.get("max", math.inf)
        return self._reported_or("mean", lambda: min(max(self._mean_std[0], least), most))

    @property
    def std(self) -> float:
        """Population standard deviation of the buckets' middles, unless reported by the source."""
        return self._reported_or("std", lambda: self._mean_std[1])

    @cached_property
    def _mean_std(self) -> tuple[float, float]:
        steps = (
            self.buckets.mid_steps(self.index)
            if isinstance(self.buckets, HdrBuckets)
            else self.buckets.mid(self.index)
        )
        mean, std = mean_std(steps, self.counts)
        return mean * self.buckets.scale, std * self.buckets.scale

    def _reported_or(self, name: str, otherwise: Callable[[], float]) -> float:
        if name in self.reported_stats:
            return self.reported_stats[name]
        return float(otherwise()) if self.index.size else float("nan")

    @cached_property
    def cumulative(self) -> Ints:
        """Running total of the counts, int64, shape (nonzero,)."""
        return read_only(np.cumsum(self.counts))

    @cached_property
    def counted(self) -> Counted:
        """The counts as plain arrays, between edges that respect the reported extremes."""
        edges = [
            part(self.index) for part in (self.buckets.low, self.buckets.high, self.buckets.mid)
        ]
        if self.reported_stats:
            edges = [np.clip(edge, *stated_range(self)) for edge in edges]
        low, high, middle = edges
        return Counted(low, high, self.counts, middle, self.censored, self.censored_at)

    def bounds(self, statistic: str) -> tuple[float, float]:
        """Return the lower and upper bound of a statistic, given the source's resolution.

        Parameters
        ----------
        statistic : {"min", "max", "mean", "std"}
            The bounds are equal if the source reports it.

        Examples
        --------
        >>> stats = {"min": 0, "max": 5e6}
        >>> wide = Histogram.from_percentiles([50, 99], [1e6, 4e6], 1000, reported_stats=stats)
        >>> wide.bounds("mean"), wide.bounds("max")
        ((530000.0, 2510000.0), (5000000.0, 5000000.0))
        """
        if statistic in self.reported_stats:
            return self.reported_stats[statistic], self.reported_stats[statistic]
        counted = self.counted.at_best()
        low, high = counted.low, counted.high
        if not counted.total:
            return math.nan, math.nan
        if statistic in ("min", "max"):
            at = 0 if statistic == "min" else -1
            return float(low[at]), float(high[at])
        if statistic == "mean":
            return _average(low, counted.counts), _average(high, counted.counts)
        if self.censored:
            return 0.0, math.inf
        # Moving each value to its bucket's middle moves the deviation by no more than the root mean
        # square of these moves.
        reach = math.sqrt(_average((high - low) ** 2, counted.counts)) / 2
        return max(self.std - reach, 0.0), self.std + reach

    # ------------------------------------------------------------ questions

    def _values_at(self, percentiles: Floats) -> Floats:
        return values_at(self, percentiles)[0]

    def evidence(self) -> Evidence:
        """Return how far the numbers can be trusted, assuming independent requests."""
        return Evidence(self)

    def percentile_of(self, value: float | str) -> float:
        """Return the share (in %) of values surely at or below `value`: complete buckets only.

        Parameters
        ----------
        value : float or str
            A number in `unit`, or a duration such as ``"5ms"``.

        Examples
        --------
        >>> Histogram.of([1, 2, 3, 400], unit="ms").percentile_of("5ms")
        75.0
        """
        total = self.count + self.censored
        return 100.0 * (total - self.count_above(value)) / total if total else float("nan")

    def count_above(self, value: float | str) -> int:
        """Return the number of values that may be above `value`, censored ones included.

        Parameters
        ----------
        value : float or str
            A number in `unit`, or a duration such as ``"5ms"``.
        """
        limit = units.in_unit(value, self.unit)
        return int(self.counts[self.buckets.high(self.index) > limit].sum()) + self.censored

    def trimmed(self, spec: str) -> Trimmed:
        """Return a trimmed statistic with its definition, its bounds, and what it excludes.

        Parameters
        ----------
        spec : str
            ``"tm99.9"`` (without the lowest and the highest 0.1 %), ``"TM(:99%)"``,
            ``"TM(150ms:1s)"``, ``"wm98"`` or ``"IQM"``.

        Examples
        --------
        >>> tm = Histogram.of([1, 2, 3, 4, 1000], unit="ms").trimmed("TM(:80%)")
        >>> tm.value, tm.definition, tm.leaves_out
        (2.5, 'TM(:80%): mean without the highest 20 %', '1 request, up to 1 s')
        """
        from latencykit.core.trimmed import trimmed

        errors.require(spec, str, "text such as 'tm99.9'")
        result = trimmed(self.counted, spec, self.unit)
        if spec not in self.reported_stats:
            return result
        value = self.reported_stats[spec]
        return replace(result, value=value, low=value, high=value)

    def trimmed_mean(self, spec: str) -> float:
        """Return a trimmed mean; `trimmed` also gives its definition and what it excludes."""
        return self._of_kind(spec, "TM", "trimmed")

    def winsorized_mean(self, spec: str) -> float:
        """Return a winsorized mean, ``"wm98"`` or ``"WM(1%:99%)"``: ends are pulled in, not cut."""
        return self._of_kind(spec, "WM", "winsorized")

    def _of_kind(self, spec: str, kind: str, name: str) -> float:
        from latencykit.core.trimmed import parse_trim

        value = self.trimmed(spec).value
        if parse_trim(spec, self.unit).kind != kind:
            raise errors.InvalidArgumentError(
                f"{spec!r} is not a {name} mean; use trimmed({spec!r}).value"
            )
        return value

    def sample_limit(self, *, confidence: float = 0.95) -> float:
        """Return the highest percentile that the number of values supports, or 0."""
        total = self.count + self.censored
        return highest_supported_percentile(total // self.counted.repeats, confidence)

    def _counted_from(self, origin: object) -> Histogram:
        """Return itself, which knows the run with times that it sums up and so what it supports."""
        object.__setattr__(self, "_origin", origin)
        return self

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_origin"}

    # ------------------------------------------------------------ making others

    def __add__(self, other: Histogram) -> Histogram:
        require_data(other, "+")
        errors.require(other, Histogram, "a histogram; lk.merge adds up others")
        return merge_histograms([self, other])

    def __sub__(self, other: Histogram) -> Histogram:
        """Return the values counted between two scrapes, of which `self` is the later."""
        require_data(other, "-")
        errors.require(other, Histogram, "a histogram of an earlier scrape")
        merge_runs([self.run.replace(unit=self.unit), other.run.replace(unit=other.unit)])
        if self.buckets != other.buckets:
            raise errors.InvalidArgumentError("only histograms of equal buckets can be subtracted")
        size = int(max(self.index.max(initial=-1), other.index.max(initial=-1))) + 1
        counts = np.zeros(size, np.int64)
        counts[self.index] = self.counts
        counts[other.index] -= other.counts
        if (counts < 0).any() or self.censored < other.censored:
            raise errors.InvalidArgumentError(
                "a bucket shrank between the two: swap them, or the counter was reset in between"
            )
        index, size = np.flatnonzero(counts), self.requests - other.requests
        reported_stats = {}
        if size > 0 and "mean" in self.reported_stats and "mean" in other.reported_stats:
            sums = [side.reported_stats["mean"] * side.requests for side in (self, other)]
            reported_stats["mean"] = (sums[0] - sums[1]) / size
        return replace(
            self,
            index=index,
            counts=counts[index],
            reported_stats=reported_stats,
            reported_percentiles=((), ()),
            censored=self.censored - other.censored,
        )

    def rebucket(self, layout: HdrBuckets, *, as_reference: bool = False) -> Histogram:
        """Return the same counts in another layout.

        A bucket moves to that of its highest value, so that no value looks better than before;
        with `as_reference`, to that of its lowest value, as in the reference's ``add``.
        """
        moved = cells_of(layout, self.buckets, self.index)[0 if as_reference else 1]
        if not layout.reaches(moved):
            raise errors.InvalidArgumentError(
                f"values up to {units.format_value(self.max, self.unit)} do not fit into {layout}"
            )
        index, inverse = np.unique(moved, return_inverse=True)
        counts = added(self.counts, inverse, index.size)
        return replace(self, buckets=layout, index=index, counts=counts)

    def to_unit(self, unit: str) -> Histogram:
        """Return the same histogram with its values in another unit."""
        factor = units.unit_factor(self.unit, unit)
        if factor == 1.0:
            return self
        reported_stats = {name: value * factor for name, value in self.reported_stats.items()}
        reported_percentiles = (
            self.reported_percentiles[0],
            tuple(value * factor for value in self.reported_percentiles[1]),
        )
        return replace(
            self, buckets=self.buckets.scaled(factor), unit=unit, reported_stats=reported_stats,
            reported_percentiles=reported_percentiles,
            censored_at=self.censored_at * factor, run=self.run.replace(unit=self.run.unit),
        )  # fmt: skip

    def with_run(self, **changes: object) -> Histogram:
        """Return a copy with some facts of the run changed."""
        return replace(self, run=self.run.replace(**changes))

    def histogram(self) -> Histogram:
        """Return itself."""
        return self

    def summary(self, percentiles: Sequence[float] = STANDARD_PERCENTILES) -> Summary:
        """Step down to named statistics: those resolved within a tenth."""
        from latencykit.core.summary import Summary

        names = [name for name in ("mean", "std", "min", "max") if is_resolved(*self.bounds(name))]
        if self.censored and self.max < self.censored_at and "max" in names:
            names.remove("max")  # some took longer
        rows = [row for row in self.percentile_rows(list(percentiles)) if row.resolved]
        return Summary(
            {name: getattr(self, name) for name in names},
            {row.percentile: row.value for row in rows},
            self.requests,
            self.unit,
            self.run,
            causes={row.percentile: row.cause for row in rows if row.cause},
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per bucket: low, high, count."""
        import pandas as pd

        return pd.DataFrame(
            {
                "low": self.buckets.low(self.index),
                "high": self.buckets.high(self.index),
                "count": self.counts,
            }
        )

    def __repr__(self) -> str:
        if not self.index.size:
            return "Histogram(no values)"
        show = partial(units.format_value, unit=self.unit)
        rows = [replace(row, supported=True) for row in self.percentile_rows([50, 99, 100])]
        numbers = ", ".join(
            f"{name} {units.format_row(row, show)}"
            for name, row in zip(("p50", "p99", "max"), rows, strict=True)
        )
        return f"Histogram({units.format_count(self.count)} values: {numbers})"


# ------------------------------------------------------------
# Sums of histograms: equal layouts add their counts, unlike ones use the finest steps of all.


def merge_histograms(parts: Sequence[Histogram]) -> Histogram:
    """Return the sum of histograms; unlike HDR layouts use the finest steps and fewest digits."""
    # A note states the loss of resolution, if there is any.
    run = merge_runs([part.run.replace(unit=part.unit) for part in parts])
    if sum(part.count for part in parts) >= 1 << 63:
        raise errors.InputTooLargeError("the sum of the counts does not fit in 63 bits")
    layout = parts[0].buckets
    if any(part.buckets != layout for part in parts[1:]):
        if not all(isinstance(part.buckets, HdrBuckets | CellBuckets) for part in parts):
            # All buckets of all parts, those of equal edges added up.
            ends = [(part.buckets.high(part.index), part.buckets.low(part.index)) for part in parts]
            edges = np.concatenate([np.stack(pair, 1) for pair in ends])
            unique, place = np.unique(edges, axis=0, return_inverse=True)
            every = np.concatenate([part.counts for part in parts])
            counts = added(every, place.reshape(-1), len(unique))
            union = Histogram.from_buckets(
                unique[:, 1], unique[:, 0], counts, parts[0].unit,
                reported_stats=_sum_of_reported(parts),
            )  # fmt: skip
            return replace(union, run=run, **_censored(parts))
        layout, index, counts = add_up([(part.buckets, part.index, part.counts) for part in parts])
        # Note the loss of resolution, in place of notes of earlier sums.
        grid = grid_of(layout)
        unlike = [
            part.buckets for part in parts if is_spread((part.buckets, part.index, part.counts))
        ]
        digits = sorted({grid_of(buckets).digits for buckets in unlike} | {grid.digits})
        others = tuple(note for note in run.notes if not note.startswith(COST))
        overlap = isinstance(layout, CellBuckets) and layout.overlap
        if len(digits) > 1 or overlap or others != run.notes:
            (width, low, high), common = widest(layout, index), 1 / (1 << grid.half_magnitude)
            high = high if width > common else 0.0
            run = run.replace(notes=others)
            run = run.with_notes(cost(max(width, common), low, high, parts[0].unit, digits))
    else:
        every = np.concatenate([part.index for part in parts])
        index, place = np.unique(every, return_inverse=True)
        counts = added(np.concatenate([part.counts for part in parts]), place, index.size)
    return Histogram(
        layout, index, counts, parts[0].unit, run, _sum_of_reported(parts), **_censored(parts)
    )


def _sum_of_reported(parts: Sequence[Histogram]) -> dict[str, float]:
    """Statistics of the sum that follow from those that every part reports."""
    reported_stats: dict[str, float] = {}
    for name, pick in (("min", min), ("max", max)):
        if all(name in part.reported_stats for part in parts):
            reported_stats[name] = pick(part.reported_stats[name] for part in parts)
    sizes = np.array([part.requests for part in parts], np.float64)
    if sizes.sum() > 0 and all("mean" in part.reported_stats for part in parts):
        means = np.array([part.reported_stats["mean"] for part in parts])
        reported_stats["mean"] = float(np.average(means, weights=sizes))
        if all("std" in part.reported_stats for part in parts):
            squares = (
                np.array([part.reported_stats["std"] for part in parts]) ** 2
                + (means - reported_stats["mean"]) ** 2
            )
            reported_stats["std"] = float(np.sqrt(np.average(squares, weights=sizes)))
    return reported_stats


def _censored(parts: Sequence[Histogram]) -> dict[str, Any]:
    return {
        "censored": sum(part.censored for part in parts),
        "censored_at": min(part.censored_at for part in parts),
    }


def with_timeouts(histogram: Histogram) -> Histogram:
    """Return a histogram of replies with the timeouts of its run, as values of at least that."""
    bound = (histogram.run.timeout or 0.0) / units.NANOSECONDS.get(histogram.unit, 1.0)
    if not histogram.run.timeouts or histogram.censored or not 0 < bound < 2.0**62:
        return histogram
    known = {k: v for k, v in histogram.reported_stats.items() if k in ("min", "max")}
    return replace(
        histogram, censored=histogram.run.timeouts, censored_at=bound, reported_stats=known,
        reported_percentiles=((), ()),
    )  # fmt: skip


# ------------------------------------------------------------
# Intervals of a log: what is censored there lies in an open-ended bucket.


def of_interval(
    buckets: Buckets, index: Ints, counts: Ints, unit: str = "ns", run: Run | None = None
) -> Histogram:
    """Return an interval's counts, those in an open-ended bucket as censored values."""
    run = run or Run(unit=unit)
    if not isinstance(buckets, EdgeBuckets) or not buckets.open_ended:
        return Histogram(buckets, index, counts, unit, run)
    closed, inner = EdgeBuckets(buckets.lows[:-1], buckets.highs[:-1]), index < len(buckets) - 1
    above = int(counts[~inner].sum())
    at = float(buckets.lows[-1]) if above else math.inf
    return Histogram(closed, index[inner], counts[inner], unit, run, censored=above, censored_at=at)


def as_interval(histogram: Histogram) -> tuple[Buckets, Ints, Ints]:
    """Return layout, indices and counts of an interval: the inverse of `of_interval`."""
    layout, index, counts = histogram.buckets, histogram.index, histogram.counts
    if not histogram.censored:
        return layout, index, counts
    low, high, at = layout.low(index), layout.high(index), histogram.censored_at
    high = np.append(high, high.max(initial=at))
    counts = np.append(counts, histogram.censored)
    return EdgeBuckets(np.append(low, at), high, open_ended=True), np.arange(high.size), counts


# ------------------------------------------------------------
# Stepping down to a histogram, or to one number per run, with an error for data that cannot.


def histogram_of(data: Any, purpose: str) -> Histogram:
    """Return the histogram of a data type, in nanoseconds where its values have a unit."""
    name = getattr(getattr(data, "run", None), "source", None) or "this source"
    if (stats := getattr(data, "stats", None)) is not None:
        names = [*stats, *(f"p{units.format_percentile(p)}" for p in data.reported_percentiles)]
        seen = brief_list(names, 8) or "numbers of requests"
        raise errors.DataNotAvailableError(
            f"{name}: {purpose} needs the full distribution, but this source contains only "
            f"{seen}; read an output with samples or a histogram"
        )
    require_data(data, purpose)
    counted: Histogram = data.histogram()
    if not counted.count + counted.censored:
        seen = "nothing was counted: all requests failed, or none is in the range"
        raise errors.DataNotAvailableError(f"{name}: {seen}")
    return counted.to_unit("ns") if counted.unit in units.NANOSECONDS else counted


def statistic_of(data: Histogram | Summary, name: str, confidence: float = 0.95) -> float:
    """Return one statistic of a run, or NaN if it is unsupported or unresolved."""
    if not isinstance(data, Histogram):
        try:
            return float(
                data.percentile(float(name[1:])) if name.startswith("p") else data.stats[name]
            )
        except (errors.DataNotAvailableError, KeyError):
            return math.nan
    if name == "p100":
        return data.max if not data.censored and is_resolved(*data.bounds("max")) else math.nan
    if name.startswith("p"):
        # Between runs shows how well each is known: only too few requests leave it out.
        (row,) = data.evidence().supported_rows([float(name[1:])], confidence)
        few = row.percentile > data.sample_limit(confidence=confidence)
        return math.nan if few or not row.resolved or math.isinf(row.bucket_high) else row.value
    if name == "mean":
        return data.mean if data.censored or is_resolved(*data.bounds("mean")) else math.nan
    mean = data.trimmed(name)
    return mean.value if mean.resolved or data.censored else math.nan
