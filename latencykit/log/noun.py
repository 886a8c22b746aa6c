"""One histogram an interval: the rung that knows when, without single requests.

A `HistogramLog` knows its intervals (start, length, tag, and where the payload lies) and decodes them on demand, a
block of lines at a time. Slicing, selecting tags, merging, resampling and changing units make views: nothing is
decoded for them, and memory does not grow with the length of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.blocks import Block, SeriesFold, TotalsFold, feed
from latencykit.errors import UsageError
from latencykit.histogram import STANDARD_PERCENTILES, Histogram, merge_histograms, reported
from latencykit.rooms import html_of
from latencykit.run import Run
from latencykit.units import (
    checked_unit,
    did_you_mean,
    format_count,
    format_duration,
    format_percentile,
    parse_duration,
    parse_moment,
    unit_factor,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from latencykit.blocks import Fold, Part
    from latencykit.buckets import Buckets, HdrBuckets
    from latencykit.histogram import PercentileRow
    from latencykit.log.tails import Tails
    from latencykit.stats.events import Events
    from latencykit.summary import Summary

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["HistogramLog", "IntervalSeries", "slot_edges", "slot_numbers"]


def slot_numbers(starts: Floats, width: float) -> Ints:
    """Return the number of the slot that each moment is in: slot k is k · width ≤ t < (k + 1) · width.

    Edges are the decimal numbers that people write, so that `HistogramLog.between` draws the same line.

    Examples
    --------
    >>> slot_numbers(np.array([0.29, 0.3, 0.6, 0.7]), 0.1).tolist()
    [2, 3, 6, 7]
    """
    slot = np.floor(starts / width)
    slot = slot + (starts >= slot_edges(slot + 1, width)) - (starts < slot_edges(slot, width))
    return np.asarray(slot, np.int64)


def slot_edges(slot: Floats, width: float) -> Floats:
    """The moments at which slots begin, whole nanoseconds."""
    return np.asarray(np.round(slot * width, 9))


_FARTHEST = 1e18  # seconds


@dataclass(frozen=True)
class IntervalSeries:
    """What each interval of a log says: arrays of one length.

    Attributes
    ----------
    start, length : ndarray of float64, shape (intervals,)
        Seconds from the log's start, and seconds.
    count : ndarray of int64, shape (intervals,)
    min, max : ndarray of float64, shape (intervals,)
        NaN where nothing was counted.
    percentiles : tuple of float
    values : ndarray of float64, shape (intervals, percentiles)
    mean, std : ndarray of float64, shape (intervals,) or (0,)
    unit : str
    lows : ndarray of float64, shape (intervals, 1 + percentiles)
        Lower edges of the buckets whose upper edges are `max` and `values`.
    """

    start: Floats
    length: Floats
    count: Ints
    min: Floats
    max: Floats
    percentiles: tuple[float, ...]
    values: Floats
    mean: Floats
    std: Floats
    unit: str
    lows: Floats


class HistogramLog:
    """A log of histograms, immutable.

    Parameters
    ----------
    start, length : array_like of float, shape (intervals,)
        Seconds from the log's start (``run.start``), and seconds.
    parts : sequence of Part
        Where the payloads lie.
    where : tuple of two ndarrays of int64, optional
        Part and row of each interval; by default the rows of the only part, in order.
    tag_code : array_like of int, optional
        Position in `tag_names` of each interval's tag.
    tag_names : sequence of str
        ``""`` stands for untagged lines.
    unit : str
        Unit of the values.
    run : Run
    factor : float
        What the parts' values are multiplied by.
    whole : Histogram, optional
        The sum of all intervals, where it is known already; it is counted at most once.

    Examples
    --------
    >>> from latencykit.blocks import MemoryPart, block_of_rows
    >>> from latencykit.buckets import HdrBuckets
    >>> b = HdrBuckets(3)
    >>> block = block_of_rows(np.array([0, 0, 1]), b.index_of([5, 7, 900]), 2, b)
    >>> log = HistogramLog([0, 1], [1, 1], [MemoryPart([block])])
    >>> len(log), log.histogram().count, log.between(1, 2).histogram().max
    (2, 3, 900.0)
    """

    def __init__(
        self,
        start: ArrayLike,
        length: ArrayLike,
        parts: Sequence[Part],
        *,
        where: tuple[Ints, Ints] | None = None,
        tag_code: ArrayLike | None = None,
        tag_names: Sequence[str] = ("",),
        unit: str = "ns",
        run: Run | None = None,
        factor: float = 1.0,
        whole: Histogram | None = None,
    ) -> None:
        self.starts, self.lengths = np.asarray(start, np.float64), np.asarray(length, np.float64)
        if not ((np.abs(self.starts) < _FARTHEST).all() and (np.abs(self.lengths) < _FARTHEST).all()):
            raise UsageError("an interval begins or ends at no time that there is")
        size = self.starts.size
        self._parts = tuple(parts)
        self._where = where or (np.zeros(size, np.int64), np.arange(size))
        self._tag_code = np.zeros(size, np.int64) if tag_code is None else np.asarray(tag_code, np.int64)
        self._tag_names = tuple(tag_names)
        self._factor = factor
        self._whole = whole
        self._tails: Tails | None = None
        self.unit, self.run = checked_unit(unit), run or Run(unit=unit)

    def __len__(self) -> int:
        return int(self.starts.size)

    # ------------------------------------------------------------ plain facts

    @property
    def start(self) -> float | None:
        """The log's start in seconds since the epoch, where it is known."""
        return self.run.start

    @property
    def duration(self) -> float:
        """Seconds from the first interval's start to the last one's end."""
        return float((self.starts + self.lengths).max() - self.starts.min()) if len(self) else 0.0

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags of the lines, ``""`` for untagged ones beside tagged ones; empty for a log without tags."""
        names = tuple(self._tag_names[code] for code in np.flatnonzero(np.bincount(self._tag_code)))
        return () if names == ("",) else names

    def tag_of_rows(self) -> list[str]:
        """Return the tag of every interval, ``""`` for none."""
        return [self._tag_names[code] for code in self._tag_code]

    # ------------------------------------------------------------ views

    def rows(self, rows: Ints, **changes: Any) -> HistogramLog:
        """Return a view of some intervals, with other facts where `changes` name them."""
        part, row = self._where
        facts: dict[str, Any] = {
            "where": (part[rows], row[rows]), "tag_code": self._tag_code[rows], "tag_names": self._tag_names,
            "unit": self.unit, "run": self.run, "factor": self._factor,
        }  # fmt: skip
        return HistogramLog(self.starts[rows], self.lengths[rows], self._parts, **(facts | changes))

    @property
    def epoch(self) -> int | None:
        """Nanoseconds since the epoch from which `starts` count, to the microsecond, where the log says."""
        return None if self.start is None else round(self.start * 1e6) * 1000

    def between(self, start: Any = -np.inf, end: Any = np.inf) -> HistogramLog:
        """Return the intervals with start ≤ t < end, where t is when an interval starts.

        Parameters
        ----------
        start, end : float, str or datetime
            Seconds from the log's start, a duration (``"5s"``), or a timestamp.
        """
        first, last = (parse_moment(moment, self.epoch) for moment in (start, end))
        return self.rows(np.flatnonzero((self.starts >= first) & (self.starts < last)))

    def tagged(self, tag: str) -> HistogramLog:
        """Return the intervals of one tag; ``""`` for the untagged ones.

        Raises
        ------
        UsageError
            Where no line has that tag.
        """
        code = self._tag_names.index(tag) if tag in self._tag_names else -1
        rows = np.flatnonzero(self._tag_code == code)
        if not rows.size:
            raise UsageError(f"no interval is tagged {tag!r}{did_you_mean(tag, self.tags)}")
        return self.rows(rows, run=self.run.but(tags=(tag,) if tag else ()))

    def by_tag(self) -> dict[str, HistogramLog]:
        """Return one log a tag, ``""`` for untagged lines."""
        return {name: self.tagged(name) for name in (self.tags or ("",))} if len(self) else {"": self}

    def retagged(self, tag: str | None) -> HistogramLog:
        """Return the same log with every interval tagged so; as it is for None."""
        if tag is None:
            return self
        return self.rows(np.arange(len(self)), tag_code=np.zeros(len(self), np.int64), tag_names=(tag,))

    def to_unit(self, unit: str) -> HistogramLog:
        """Return the same log with its values in another unit."""
        if unit == self.unit:
            return self
        return self.rows(np.arange(len(self)), unit=unit, factor=self._factor * unit_factor(self.unit, unit))

    def shifted(self, seconds: float) -> HistogramLog:
        """Return the same intervals counted from a start that lies so much earlier."""
        start = None if self.run.start is None else self.run.start - seconds
        later = self.rows(np.arange(len(self)), run=self.run.but(start=start))
        later.starts = self.starts + seconds
        return later

    def but(self, **changes: Any) -> HistogramLog:
        """Return a copy with some facts of the run changed."""
        return self.rows(np.arange(len(self)), run=self.run.but(**changes))

    def seen_through(self, view: Callable[[Part], Part]) -> HistogramLog:
        """Return the same intervals with what `view` makes of their payloads when they are decoded."""
        from latencykit.log.views import LogPart

        return HistogramLog(
            self.starts,
            self.lengths,
            [view(LogPart(self))],
            tag_code=self._tag_code,
            tag_names=self._tag_names,
            unit=self.unit,
            run=self.run,
        )

    def resample(self, interval: str | float) -> HistogramLog:
        """Return a log of wider intervals (``"10s"``, or seconds), tags kept apart; sums and maxima stay exact.

        An interval goes whole into the slot that it starts in (k · width ≤ start < (k + 1) · width); a slot's start and
        length are those of what is in it.
        """
        width = parse_duration(interval, "s") / 1e9
        if not width > 0:
            raise UsageError(f"an interval must be longer than nothing, not {interval!r}")
        slot = slot_numbers(self.starts, width)
        keys, group = np.unique(np.stack([slot, self._tag_code], 1), axis=0, return_inverse=True)
        starts, ends = np.full(len(keys), np.inf), np.full(len(keys), -np.inf)
        np.minimum.at(starts, group.reshape(-1), self.starts)
        np.maximum.at(ends, group.reshape(-1), self.starts + self.lengths)
        from latencykit.log.views import SlotPart

        part = SlotPart(self, group.reshape(-1), len(keys))
        return HistogramLog(
            starts,
            ends - starts,
            [part],
            tag_code=keys[:, 1],
            tag_names=self._tag_names,
            unit=self.unit,
            run=self.run,
        )

    def __add__(self, other: HistogramLog) -> HistogramLog:
        from latencykit.log.views import merge_logs

        return merge_logs([self, other])

    # ------------------------------------------------------------ one pass over the payloads

    def blocks(self) -> Iterator[Block]:
        """Yield all intervals as blocks, each once, in any order; `Block.rows` are this log's."""
        part_of, row_of = self._where
        scaled: dict[Buckets, Buckets] = {}
        for number, part in enumerate(self._parts):
            mine = np.flatnonzero(part_of == number)
            mine = mine[np.argsort(row_of[mine], kind="stable")]
            wanted = row_of[mine]
            for block in part.blocks(wanted) if mine.size else ():
                buckets = block.buckets
                if self._factor != 1.0:
                    buckets = scaled.setdefault(buckets, buckets.scaled(self._factor))
                rows = mine[np.searchsorted(wanted, block.rows)]
                yield Block(rows, block.indptr, block.index, block.counts, buckets)

    def scan(self, *folds: Fold) -> None:
        """Show every block to every fold: several questions, one pass."""
        feed(self.blocks(), folds)

    def totals_fold(self, *, by_tag: bool = False) -> TotalsFold:
        """Return a fold for `scan` that sums all intervals, or each tag's."""
        return TotalsFold(self._tag_code if by_tag else np.zeros(len(self), np.int64))

    def series_fold(self, percentiles: Sequence[float] = (), *, moments: bool = False) -> SeriesFold:
        """Return a fold for `scan` that takes each interval's numbers."""
        return SeriesFold(len(self), percentiles, moments=moments)

    def histogram_of(self, fold: TotalsFold, tag: str | None = None, like: HdrBuckets | None = None) -> Histogram:
        """Return the histogram that a scanned `totals_fold` holds, of one tag if the fold kept them apart."""
        group = 0 if tag is None else self._tag_names.index(tag)
        run = self.run.but(unit=self.unit, duration=self.run.duration or self.duration or None)
        run = run if tag is None else run.but(tags=(tag,) if tag else ())
        found = [(buckets, index, counts) for g, buckets, index, counts in fold.totals() if g == group]
        parts = [Histogram(buckets, index, counts, self.unit, run) for buckets, index, counts in found]
        if like is not None:
            parts = [part.rebucket(like, as_reference=True) for part in parts]
        if not parts:
            from latencykit.buckets import HdrBuckets

            return Histogram(like or HdrBuckets(3), np.zeros(0, np.int64), np.zeros(0, np.int64), self.unit, run)
        if len(parts) == 1:
            return parts[0]
        whole = merge_histograms(parts)
        return reported(whole.but(**{name: getattr(run, name) for name in ("failed", "timeouts", "dropped", "unfinished")}))

    def series_of(self, fold: SeriesFold) -> IntervalSeries:
        """Return the arrays that a scanned `series_fold` holds, with the intervals' times."""
        return IntervalSeries(
            self.starts,
            self.lengths,
            fold.count,
            fold.min,
            fold.max,
            fold.percentiles,
            fold.values,
            fold.mean,
            fold.std,
            self.unit,
            fold.lows,
        )

    # ------------------------------------------------------------ questions

    def histogram(self, like: HdrBuckets | None = None) -> Histogram:
        """Return the sum of all intervals, all tags together.

        Parameters
        ----------
        like : HdrBuckets, optional
            Record every bucket anew at its lowest value into this layout, as the reference's ``add`` does; its
            published sums come out so.
        """
        if like is None and self._whole is not None:
            return self._whole
        fold = self.totals_fold()
        self.scan(fold)
        found = self.histogram_of(fold, like=like)
        self._whole = found if like is None else self._whole
        return found

    def histogram_and(self, *folds: Fold) -> Histogram:
        """Return the sum of all intervals, and show every block to `folds` in the same pass."""
        if self._whole is None:
            fold = self.totals_fold()
            self.scan(fold, *folds)
            self._whole = self.histogram_of(fold)
        else:
            self.scan(*folds)
        return self._whole

    def series(self, percentiles: Sequence[float] = (), *, moments: bool = False) -> IntervalSeries:
        """Return count, extremes and percentiles of every interval, in one pass."""
        fold = self.series_fold(percentiles, moments=moments)
        self.scan(fold)
        return self.series_of(fold)

    def percentiles(self, percentiles: Sequence[float] = (50, 90, 99, 99.9)) -> pd.DataFrame:
        """Return a table with one row an interval: start, length, tag, count, max and the percentiles."""
        import pandas as pd

        series = self.series(percentiles)
        columns = {
            "start": series.start,
            "length": series.length,
            "tag": self.tag_of_rows(),
            "count": series.count,
            "max": series.max,
        }
        named = {f"p{format_percentile(p)}": series.values[:, k] for k, p in enumerate(series.percentiles)}
        return pd.DataFrame(columns | named)

    def evidence(self, whole: Histogram | None = None) -> Tails:
        """Return what the log knows beyond counts: events, and intervals of confidence that know of time."""
        from latencykit.log.tails import tails_of

        self._tails = self._tails or tails_of(self, whole)
        return self._tails

    def percentile_rows(self, percentiles: ArrayLike = STANDARD_PERCENTILES, confidence: float = 0.95) -> list[PercentileRow]:
        """Return percentiles of all intervals, with how many events each is based on.

        Confidence intervals allow for requests that are slow together, and are as wide as those of independent requests
        at least. There is no upper end where a percentile is based on fewer than twenty independent events, and no
        interval where the log is too short to show how far requests depend on each other.
        """
        return self.evidence().rows(np.atleast_1d(np.asarray(percentiles, np.float64)).tolist(), confidence)[0]

    def events(self, percentiles: Sequence[float] = (99, 99.9)) -> list[Events]:
        """Return how many stalls, intervals and tags make up what lies above each percentile; each has its ``words``."""
        return self.evidence().events([float(p) for p in percentiles])

    def summary(self, percentiles: Sequence[float] = STANDARD_PERCENTILES) -> Summary:
        """Step down to named statistics of all intervals."""
        return self.histogram().summary(percentiles)

    def to_log(self, interval: str | float | None = None) -> HistogramLog:
        """Return itself, or itself resampled."""
        return self if interval is None else self.resample(interval)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row a bucket an interval: start, length, tag, low, high, count."""
        import pandas as pd

        tags = np.asarray(self.tag_of_rows(), object)
        frames = []
        for block in self.blocks():
            row = block.rows[block.entry_rows]
            columns = {
                "start": self.starts[row], "length": self.lengths[row], "tag": tags[row],
                "low": block.buckets.low(block.index), "high": block.buckets.high(block.index), "count": block.counts,
            }  # fmt: skip
            frames.append(pd.DataFrame(columns))
        empty = pd.DataFrame({name: [] for name in ("start", "length", "tag", "low", "high", "count")})
        return pd.concat(frames, ignore_index=True).sort_values(["start", "tag", "low"], ignore_index=True) if frames else empty

    def _repr_html_(self) -> str:
        return html_of(self)

    def __repr__(self) -> str:
        tags = f", tags {', '.join(name or '(none)' for name in self.tags)}" if self.tags else ""
        return f"HistogramLog({format_count(len(self))} intervals over {format_duration(self.duration * 1e9)}{tags})"
