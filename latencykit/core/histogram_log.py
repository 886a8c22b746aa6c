"""One histogram per interval: the data type that knows when, without single requests.

A `HistogramLog` knows its intervals (start, length, tag, and where the payload lies) and decodes
them on demand, a block of lines at a time. Slicing, selecting tags, merging, resampling and
changing units make views: nothing is decoded for them, and memory does not grow with the length of
the log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import FrozenInstanceError
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latencykit import units
from latencykit._arrays import Value, equal, read_only
from latencykit._records import record
from latencykit._text import did_you_mean, option
from latencykit._typing import Floats, Ints
from latencykit.core.blocks import Block, Fold, Part, SeriesFold, TagPart, TotalsFold, entry_sums
from latencykit.core.buckets import Buckets, Counts, HdrBuckets
from latencykit.core.evidence import MOST_BINS, TailTable, TimedSupport
from latencykit.core.histogram import (
    Histogram,
    HistogramBacked,
    as_interval,
    merge_histograms,
    of_interval,
    with_timeouts,
)
from latencykit.core.log_cache import SharedCache
from latencykit.core.quantiles import distinct
from latencykit.core.run import Run, failure_counts, merge_runs, of_some, require_data
from latencykit.errors import IncompatibleDataError, InvalidArgumentError, require
from latencykit.units import Moment

if TYPE_CHECKING:
    import pandas as pd


def slot_numbers(starts: Floats, width: float) -> Ints:
    """Return the time bin of each moment: bin k is k · width ≤ t < (k + 1) · width."""
    # Edges are the decimal numbers that people write, so that `HistogramLog.between` draws the same
    # line.
    slot = np.floor(starts / width)
    slot = slot + (starts >= slot_edges(slot + 1, width)) - (starts < slot_edges(slot, width))
    return np.asarray(slot, np.int64)


def slot_edges(slot: Floats, width: float) -> Floats:
    """The moments at which slots begin, whole nanoseconds."""
    return np.asarray(np.round(slot * width, 9))


_FARTHEST = 1e18  # seconds
_AT_ONCE = 64  # intervals that are decoded at a time
_TURN = 8192  # intervals of a log of several parts that are summed at a time
_ENTRIES = 1 << 15  # buckets of slots that are handed on together
_LONG_LOG_BINS = 2048  # of the table of tails, of a log of more than 4 · `MOST_BINS` intervals
_TAGS_APART = 16  # of more tags, whose sums would all grow at once, windows are not kept apart
_OVERLAP = 1.1  # times the time that intervals cover: more, and they lie side by side
_LEAST_ROWS = 64  # a pass over no more intervals than these, of more, is not kept


@record(eq=False)
class IntervalSeries(Value):
    """What each interval of a log says: arrays of one length."""

    start: Floats  # seconds from the log's start
    length: Floats  # seconds
    count: Ints
    min: Floats  # NaN where nothing was counted, as the other values
    max: Floats
    percentiles: tuple[float, ...]
    values: Floats  # (intervals, percentiles)
    unit: str
    lows: Floats  # (intervals, 1 + percentiles): lower edges of the buckets of `max` and `values`
    # of its shape: where these are only lower bounds, above the last bucket
    beyond: NDArray[np.bool_]


class HistogramLog(HistogramBacked, Value):
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
    total : list of (Buckets, ndarray, ndarray), optional
        The same as layout, index and counts of each layout, in the unit of the parts.

    Examples
    --------
    >>> from latencykit.core.blocks import MemoryPart, block_of_rows
    >>> from latencykit.core.buckets import HdrBuckets
    >>> b = HdrBuckets(3)
    >>> block = block_of_rows(np.array([0, 0, 1]), b.index_of([5, 7, 900]), 2, b)
    >>> log = HistogramLog([0, 1], [1, 1], [MemoryPart([block])])
    >>> len(log), log.histogram().count, log.between(1, 2).histogram().max
    (2, 3, 900.0)
    >>> log[1].max, [h.count for h in log], log[:1].percentile(99)
    (900.0, [2, 1], 7.0)
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
        total: list[Counts] | None = None,
    ) -> None:
        self.starts = read_only(np.asarray(start, np.float64))
        self.lengths = read_only(np.asarray(length, np.float64))
        if not (
            (np.abs(self.starts) < _FARTHEST).all() and (np.abs(self.lengths) < _FARTHEST).all()
        ):
            raise InvalidArgumentError("an interval begins or ends at no time that there is")
        size = self.starts.size
        self._parts = tuple(parts)
        self._where = where or (np.zeros(size, np.int64), np.arange(size))
        self._tag_code = (
            np.zeros(size, np.int64) if tag_code is None else np.asarray(tag_code, np.int64)
        )
        self._tag_names = tuple(tag_names)
        self._factor = factor
        self._whole = whole
        self._tails: TimedSupport | None = None
        # Views share what passes over the payloads have kept, and know which of the rows are
        # theirs.
        self._shared, self._places = SharedCache(size, total), np.arange(size)
        self.unit, self.run = units.checked_unit(unit), run or Run(unit=unit)

    def __setattr__(self, name: str, value: object) -> None:
        if "run" in vars(self) and not name.startswith("_"):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        vars(self)[name] = value

    def __len__(self) -> int:
        return int(self.starts.size)

    @overload
    def __getitem__(self, which: int) -> Histogram: ...
    @overload
    def __getitem__(self, which: slice | Ints) -> HistogramLog: ...
    def __getitem__(self, which: int | slice | Ints) -> Histogram | HistogramLog:
        rows = np.arange(len(self))[which]
        if not rows.ndim:
            return next(iter(self._view(rows[None])))
        if not isinstance(which, slice) and distinct(rows).size < rows.size:
            raise InvalidArgumentError(
                "an interval is selected more than once; add logs up to count it again"
            )
        return self._view(rows)

    def __iter__(self) -> Iterator[Histogram]:
        known = self.run if len(self) == 1 else of_some(self.run)
        for first in range(0, len(self), _AT_ONCE):
            rows = np.arange(first, min(first + _AT_ONCE, len(self)))
            contents: dict[int, tuple[Buckets, Ints, Ints]] = {}
            for block in self._view(rows)._blocks():
                for row, begin, end in zip(
                    block.rows.tolist(), block.indptr, block.indptr[1:], strict=False
                ):
                    if begin < end:
                        entries = block.index[begin:end], block.counts[begin:end]
                        contents[row] = block.buckets, *entries
            none = HdrBuckets(3), np.zeros(0, np.int64), np.zeros(0, np.int64)
            for row in rows.tolist():
                tag = self._tag_names[self._tag_code[row]]
                run = known.replace(
                    unit=self.unit,
                    start=None if self.start is None else self.start + float(self.starts[row]),
                    duration=float(self.lengths[row]),
                    tags=(tag,) if tag else (),
                )
                yield of_interval(*contents.get(row - first, none), self.unit, run)

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        if same is not True or self is other:
            return same
        return isinstance(other, HistogramLog) and all(map(equal, self, other))

    __hash__ = Value.__hash__

    def _content(self) -> tuple[object, ...]:
        return self.unit, self.run, self.starts, self.lengths, interval_tags(self)

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
        """Tags of the lines, ``""`` for untagged ones; empty for a log without tags."""
        # Found without a look at thousands of other tags.
        if len(self) and (self._tag_code == self._tag_code[0]).all():
            names: tuple[str, ...] = (self._tag_names[self._tag_code[0]],)
        else:
            used = np.flatnonzero(np.bincount(self._tag_code))
            names = tuple(self._tag_names[code] for code in used)
        return () if names == ("",) else names

    # ------------------------------------------------------------ views

    def _view(self, rows: Ints, **changes: object) -> HistogramLog:
        """Some intervals, with other facts where `changes` name them."""
        part, row = self._where
        facts: dict[str, Any] = {
            "start": self.starts[rows], "length": self.lengths[rows], "parts": self._parts,
            "where": (part[rows], row[rows]), "tag_code": self._tag_code[rows],
            "tag_names": self._tag_names,
            "unit": self.unit, "run": self.run, "factor": self._factor,
        }  # fmt: skip
        facts |= changes
        if rows.size < len(self):
            facts["run"] = of_some(facts["run"])
        view = HistogramLog(**facts)
        view._shared, view._places = self._shared, self._places[rows]
        return view

    @property
    def epoch(self) -> int | None:
        """Nanoseconds since the epoch at which the log begins, if known; whole microseconds."""
        return None if self.start is None else round(self.start * 1e6) * 1000

    def between(self, start: Moment = -np.inf, end: Moment = np.inf) -> HistogramLog:
        """Return the intervals with start ≤ t < end, where t is when an interval starts.

        Parameters
        ----------
        start, end : float, str or datetime
            Seconds from the log's start, a duration (``"5s"``), or a timestamp.
        """
        first, last = (units.parse_moment(moment, self.epoch) for moment in (start, end))
        return self._view(np.flatnonzero((self.starts >= first) & (self.starts < last)))

    def tagged(self, tag: str) -> HistogramLog:
        """Return the intervals of one tag; ``""`` for the untagged ones.

        Raises
        ------
        InvalidArgumentError
            Where no line has that tag.
        """
        code = self._tag_names.index(tag) if tag in self._tag_names else -1
        rows = np.flatnonzero(self._tag_code == code)
        if not rows.size:
            raise InvalidArgumentError(
                f"no interval is tagged {tag!r}{did_you_mean(tag, self.tags)}"
            )
        return self._view(rows, run=self.run.replace(tags=(tag,) if tag else ()))

    def by_tag(self) -> dict[str, HistogramLog]:
        """Return one log per tag, ``""`` for untagged lines."""
        if not len(self):
            return {"": self}
        order = np.argsort(self._tag_code, kind="stable")
        begins = np.flatnonzero(np.diff(self._tag_code[order], prepend=-1))
        rows_of = {
            self._tag_names[self._tag_code[rows[0]]]: rows for rows in np.split(order, begins[1:])
        }
        log = self
        if begins.size > _TAGS_APART:
            log = mapped_through(self, lambda part: TagPart(part, self._tag_code))
        return {
            name: log._view(rows_of[name], run=self.run.replace(tags=(name,) if name else ()))
            for name in self.tags or ("",)
        }

    def with_tag(self, tag: str | None) -> HistogramLog:
        """Return the same log with every interval tagged so; as it is for None."""
        if tag is None:
            return self
        return self._view(
            np.arange(len(self)), tag_code=np.zeros(len(self), np.int64), tag_names=(tag,)
        )

    def to_unit(self, unit: str) -> HistogramLog:
        """Return the same log with its values in another unit."""
        if unit == self.unit:
            return self
        return self._view(
            np.arange(len(self)),
            unit=unit,
            factor=self._factor * units.unit_factor(self.unit, unit),
        )

    def with_run(self, **changes: object) -> HistogramLog:
        """Return a copy with some facts of the run changed."""
        same = HistogramLog.__new__(HistogramLog)
        facts = {"run": self.run.replace(**changes), "_whole": None, "_tails": None}
        vars(same).update(vars(self) | facts)
        return same

    def resample(self, interval: str | float) -> HistogramLog:
        """Return a log of wider intervals (``"10s"``, or seconds); sums and maxima stay exact.

        An interval goes whole into the slot that it starts in (k · width ≤ start < (k + 1) ·
        width); a slot's start and length are those of what is in it.
        """
        width = units.interval_seconds(interval)
        slot = np.unique(slot_numbers(self.starts, width), return_inverse=True)[1].reshape(-1)
        codes = slot * len(self._tag_names) + self._tag_code
        keys, group = np.unique(codes, return_inverse=True)
        group = group.reshape(-1)
        starts, ends = np.full(keys.size, np.inf), np.full(keys.size, -np.inf)
        np.minimum.at(starts, group, self.starts)
        np.maximum.at(ends, group, self.starts + self.lengths)
        if keys.size == len(self):
            return self._view(np.argsort(group), length=ends - starts)
        return HistogramLog(
            starts,
            ends - starts,
            [SlotPart(self, group, keys.size)],
            tag_code=keys % len(self._tag_names),
            tag_names=self._tag_names,
            unit=self.unit,
            run=self.run,
        )

    def _overlap(self) -> float:
        """Length of intervals that lie side by side, seconds; 0 where one follows the other."""
        order = np.argsort(self.starts, kind="stable")
        ends = (self.starts + self.lengths)[order]
        before = np.concatenate(([-np.inf], np.maximum.accumulate(ends)[:-1]))
        covered = float(np.maximum(ends - np.maximum(self.starts[order], before), 0.0).sum())
        apart = float(self.lengths.sum()) <= _OVERLAP * covered
        return 0.0 if apart else float(np.quantile(self.lengths, 0.9))

    def __add__(self, other: HistogramLog) -> HistogramLog:
        require_data(other, "+")
        require(other, HistogramLog, "a log; lk.merge adds up others")
        return merge_logs([self, other])

    # ------------------------------------------------------------ one pass over the payloads

    def _blocks(self) -> Iterator[Block]:
        """All intervals as blocks; see `blocks_of`."""
        shared, blocks = self._shared, self._stored_blocks()
        enough = len(self) > _LEAST_ROWS or len(self) == shared.size
        decodes = any(not getattr(part, "in_memory", False) for part in self._parts)
        if enough and decodes and shared.part_of(self._places) is None:
            blocks = shared.kept(self._places, blocks)
        if self._factor == 1.0:
            return blocks
        return (x.moved(x.rows, x.buckets.scaled(self._factor)) for x in blocks)

    def _stored_blocks(self) -> Iterator[Block]:
        """Yield the blocks with their stored layouts, from memory if all intervals are there."""
        parts, (part_of, row_of) = self._parts, self._where
        kept = self._shared.part_of(self._places)
        if kept is not None:
            parts, part_of, row_of = (kept,), np.zeros(len(self), np.int64), self._places
        order = np.lexsort((row_of, part_of))
        bounds = np.searchsorted(part_of[order], np.arange(len(parts) + 1)).tolist()
        for part, (begin, end) in zip(parts, pairwise(bounds), strict=True):
            mine = order[begin:end]
            wanted = row_of[mine]
            if not mine.size:
                continue
            for block in part.blocks(wanted):
                yield block.moved(mine[np.searchsorted(wanted, block.rows)], block.buckets)

    @property
    def _read_total(self) -> list[Counts] | None:
        """The sum of all intervals, if it was counted when they were read."""
        total = self._shared.total
        if total is None or self._factor != 1.0 or len(self) < self._shared.size:
            return None
        return [(of, i.astype(np.int64), n.astype(np.int64)) for of, i, n in total]

    def _histogram_of(self, sums: list[Counts], like: HdrBuckets | None = None) -> Histogram:
        """The histogram of the sums of all intervals."""
        run = self.run.replace(unit=self.unit, duration=self.run.duration or self.duration or None)
        parts = [
            of_interval(buckets, index, counts, self.unit, run) for buckets, index, counts in sums
        ]
        if like is not None:
            parts = [part.rebucket(like, as_reference=True) for part in parts]
        if not parts:
            none = np.zeros(0, np.int64)
            return with_timeouts(Histogram(like or HdrBuckets(3), none, none, self.unit, run))
        if len(parts) == 1:
            return with_timeouts(parts[0])
        return with_timeouts(merge_histograms(parts).with_run(**failure_counts(run)))

    # ------------------------------------------------------------ questions

    def histogram(self, like: HdrBuckets | None = None) -> Histogram:
        """Return the sum of all intervals, all tags together.

        Parameters
        ----------
        like : HdrBuckets, optional
            Record every bucket anew at its lowest value into this layout, as the reference's
            ``add`` does; its published sums come out so.
        """
        if like is None and self._whole is not None:
            return self._whole._counted_from(self)
        histogram = self._histogram_of(total_of(self), like)
        if like is None:
            self._whole = histogram._counted_from(self)
        return histogram

    def by_interval(self, percentiles: Sequence[float] = (50, 90, 99, 99.9)) -> pd.DataFrame:
        """Return one row per interval: start, length, tag, count, max and the percentiles."""
        import pandas as pd

        series = interval_series(self, percentiles)
        columns = {
            "start": series.start,
            "length": series.length,
            "tag": interval_tags(self),
            "count": series.count,
            "max": series.max,
        }
        named = {
            f"p{units.format_percentile(p)}": series.values[:, k]
            for k, p in enumerate(series.percentiles)
        }
        return pd.DataFrame(columns | named)

    def evidence(self, whole: Histogram | None = None) -> TimedSupport:
        """Return events and confidence intervals that allow for requests that are slow together."""
        return scan_with_evidence(self, whole=whole)

    def to_log(self, interval: str | float | None = None) -> HistogramLog:
        """Return itself, or itself resampled."""
        return self if interval is None else self.resample(interval)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per bucket and interval: start, length, tag, low, high, count."""
        import pandas as pd

        tags = np.asarray(interval_tags(self), object)
        frames = []
        for block in self._blocks():
            row = block.rows[block.entry_rows]
            columns = {
                "start": self.starts[row], "length": self.lengths[row], "tag": tags[row],
                "low": block.buckets.low(block.index),
                "high": block.buckets.upper_edge(block.index), "count": block.counts,
            }  # fmt: skip
            frames.append(pd.DataFrame(columns))
        names = ("start", "length", "tag", "low", "high", "count")
        if not frames:
            return pd.DataFrame({name: [] for name in names})
        every = pd.concat(frames, ignore_index=True)
        return every.sort_values(["start", "tag", "low"], ignore_index=True)

    def _repr_html_(self) -> str:
        from latencykit.core.key_statistics import html_of

        size, span = units.format_count(len(self)), units.format_duration(self.duration * 1e9)
        return html_of(f"Histogram log, {size} intervals over {span}", self)

    def __repr__(self) -> str:
        tags = f", tags {', '.join(name or '(none)' for name in self.tags)}" if self.tags else ""
        size, span = units.format_count(len(self)), units.format_duration(self.duration * 1e9)
        return f"HistogramLog({size} intervals over {span}{tags})"


# ------------------------------------------------------------
# One pass over the payloads, for the packages that ask more of it than the methods do.


def blocks_of(log: HistogramLog) -> Iterator[Block]:
    """Yield all intervals as blocks, each once, in any order; `Block.rows` are the log's."""
    return log._blocks()


def total_of(log: HistogramLog) -> list[Counts]:
    """Return the sum of all intervals: layout, index and counts of each layout."""
    read = log._read_total
    if read is not None:
        return read
    fold = TotalsFold()
    scan(log, fold)
    return fold.sums()


def scan(log: HistogramLog, *folds: Fold) -> None:
    """Pass every block to every fold, and keep what is decoded for later questions."""
    for block in log._blocks():
        for fold in folds:
            fold.add(block)


def scan_with_total(log: HistogramLog, *folds: Fold) -> Histogram:
    """Return the sum of all intervals, and pass every block to `folds` in the same pass."""
    if log._whole is not None or log._read_total is not None:
        scan(log, *folds)
    else:
        total = TotalsFold()
        scan(log, *folds, total)
        log._whole = log._histogram_of(total.sums())
    return log.histogram()


def scan_with_evidence(
    log: HistogramLog, *folds: Fold, whole: Histogram | None = None
) -> TimedSupport:
    """Return a log's evidence, and pass every block to `folds` in the same pass."""
    if log._tails is not None:
        if folds:
            scan(log, *folds)
        return log._tails
    # The log as time bins × groups of buckets.
    times, moment, ends = log.starts, np.arange(len(log)), log.starts + log.lengths
    if not ((times[:-1] < times[1:]) & (ends[:-1] <= times[1:])).all():
        width = log._overlap()
        times, moment = np.unique(
            slot_numbers(log.starts, width) if width else log.starts, return_inverse=True
        )
    most = MOST_BINS if times.size <= 4 * MOST_BINS else _LONG_LOG_BINS
    slot = moment.reshape(-1) // max(1, math.ceil(times.size / most))
    slots = int(slot.max(initial=-1)) + 1
    table = TailTable(slot, slots)
    if whole is None:
        whole = scan_with_total(log, table, *folds)
    else:
        scan(log, table, *folds)
    start, end = np.full(slots, np.inf), np.full(slots, -np.inf)
    np.minimum.at(start, slot, log.starts)
    np.maximum.at(end, slot, ends)
    end = np.minimum(end, np.append(start[1:], np.inf))  # of hosts side by side a second is one
    counts, value = table.groups()
    sizes = counts.sum(axis=1, dtype=np.float64)
    if 0 < sizes.sum() < whole.count + whole.censored:  # when requests timed out is not known
        late = np.cumsum(sizes) * ((whole.count + whole.censored) / sizes.sum() - 1)
        counts = np.column_stack((counts, np.diff(np.rint(late), prepend=0.0)))
        value = np.append(value, max(whole.censored_at, value[-1]))
    log._tails = TimedSupport(whole, counts, value, start, end - start)
    return log._tails


def expect(log: HistogramLog, *, keep: bool = True) -> None:
    """Announce whether more than one pass will be asked of a log, which then keeps more blocks."""
    log._shared.keeps = keep


def interval_series(log: HistogramLog, percentiles: Sequence[float] = ()) -> IntervalSeries:
    """Return count, extremes and percentiles of every interval, in one pass."""
    fold = SeriesFold(len(log), percentiles)
    scan_with_total(log, fold)
    return series_of(log, fold)


def series_of(log: HistogramLog, fold: SeriesFold) -> IntervalSeries:
    """Return what a fold has seen of every interval."""
    least, most, values, lows, beyond = fold.edges()
    columns = fold.count, least, most, fold.percentiles, values
    return IntervalSeries(log.starts, log.lengths, *columns, log.unit, lows, beyond)


def interval_tags(log: HistogramLog) -> list[str]:
    """Return the tag of every interval, ``""`` for none."""
    return [log._tag_names[code] for code in log._tag_code]


def shifted(log: HistogramLog, seconds: float) -> HistogramLog:
    """Return the same intervals counted from a start that is `seconds` earlier."""
    start = None if log.run.start is None else log.run.start - seconds
    run, later = log.run.replace(start=start), log.starts + seconds
    return log._view(np.arange(len(log)), start=later, run=run)


def mapped_through(log: HistogramLog, view: Callable[[Part], Part]) -> HistogramLog:
    """Return the same intervals with their payloads changed by `view` when they are decoded."""
    return HistogramLog(
        log.starts,
        log.lengths,
        [view(LogPart(log))],
        tag_code=log._tag_code,
        tag_names=log._tag_names,
        unit=log.unit,
        run=log.run,
    )


def relabelled(log: HistogramLog, unit: str) -> HistogramLog:
    """Return a log whose values are the same numbers in another unit."""
    return log._view(np.arange(len(log)), unit=unit)


def in_succession(log: HistogramLog) -> HistogramLog:
    """Return the log with one interval at a time: itself, unless hosts or tags overlap."""
    # Rates, runs of intervals and seconds have no meaning where intervals lie side by side.
    width = log._overlap()
    if not width:
        return log
    wider = log.with_tag("").resample(width)
    starts = slot_edges(slot_numbers(wider.starts, width).astype(np.float64), width)
    return wider._view(np.arange(len(wider)), start=starts, length=np.full(starts.size, width))


# ------------------------------------------------------------
# Logs seen differently: intervals summed into slots, and several logs as one. Nothing is decoded
# until asked for.


class SlotPart:
    """A log's intervals summed into time bins while they are decoded, some bins at a time."""

    def __init__(self, log: HistogramLog, group: Ints, size: int) -> None:
        self._log, self._group, self._size = log, group, size

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the blocks of some slots (ascending)."""
        position = np.full(self._size, -1)
        position[rows] = np.arange(rows.size)
        slot = position[self._group]
        chosen = np.flatnonzero(slot >= 0)
        chosen = chosen[np.argsort(slot[chosen], kind="stable")]
        # Of several parts, the intervals of one come after those of the other.
        turns = 1
        if len(self._log._parts) > 1:
            turns = max(1, min(chosen.size // _TURN, rows.size))
        bounds = np.searchsorted(
            slot[chosen], (np.arange(turns + 1, dtype=np.int64) * rows.size) // turns
        )
        for first, end in pairwise(bounds.tolist()):
            mine = np.sort(chosen[first:end])
            if mine.size:
                yield from _summed(self._log._view(mine)._blocks(), slot[mine], rows)


def _summed(blocks: Iterable[Block], slot: Ints, rows: Ints) -> Iterator[Block]:
    """Sum the intervals of each slot; slots are handed on once all of their intervals have come."""
    left = np.bincount(slot, minlength=rows.size)
    waiting: dict[Buckets, list[tuple[Ints, Ints, Ints]]] = {}
    size, most = 0, _ENTRIES
    for block in chain(blocks, (None,)):
        if block is not None:
            of_row = slot[block.rows]
            left -= np.bincount(of_row, minlength=left.size)
            sums = entry_sums(of_row[block.entry_rows], block.index, block.counts)
            waiting.setdefault(block.buckets, []).append(sums)
            size += sums[0].size
            if size <= most:
                continue
        ready = left <= 0 if block is not None else np.ones(left.size, np.bool_)
        layouts, size = np.zeros(left.size, np.int64), 0
        whole = {}
        for buckets, parts in waiting.items():
            columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
            whole[buckets] = columns = [*(entry_sums(*columns) if len(parts) > 1 else columns)]
            layouts[columns[0]] += 1
        mixed = ready & (layouts > 1)
        for buckets, columns in whole.items():
            now = (ready & ~mixed)[columns[0]]
            if now.any():
                yield _block_of(rows, buckets, *(column[now] for column in columns))
            later = ~ready[columns[0]]
            waiting[buckets] = [tuple(column[later] for column in columns)]
            size += int(np.count_nonzero(later))
        for number in np.flatnonzero(mixed).tolist():
            of_slot = [
                of_interval(buckets, index[slots == number], counts[slots == number])
                for buckets, (slots, index, counts) in whole.items()
                if (slots == number).any()
            ]
            buckets, index, counts = as_interval(merge_histograms(of_slot))
            yield _block_of(rows, buckets, np.full(index.size, number), index, counts)
        most = max(_ENTRIES, 2 * size)


def _block_of(rows: Ints, buckets: Buckets, slot: Ints, index: Ints, counts: Ints) -> Block:
    """A block of the sums of some slots."""
    first = np.flatnonzero(np.diff(slot, prepend=-1))
    return Block(rows[slot[first]], np.append(first, slot.size), index, counts, buckets)


def merge_logs(logs: Sequence[HistogramLog], align: str = "absolute") -> HistogramLog:
    """Return all intervals of all logs, sorted by time, as a view; nothing is decoded."""
    if align not in ("absolute", "relative"):
        raise InvalidArgumentError(f"align must be 'absolute' or 'relative', not {align!r}")
    run = merge_runs([log.run.replace(unit=log.unit) for log in logs])
    by_clock = align == "absolute" and all(log.start is not None for log in logs)
    origin = min(log.start or 0.0 for log in logs) if by_clock else 0.0
    if align == "absolute" and not by_clock and any(log.start is not None for log in logs):
        raise IncompatibleDataError(
            "some of these logs do not say when they began; merge them with "
            + option("align", "relative", "'relative'")
        )
    names = dict.fromkeys(name for log in logs for name in log._tag_names)
    code_of = {name: code for code, name in enumerate(names)}
    parts: list[Part] = []
    starts, part_of, row_of, codes = [], [], [], []
    for log in logs:
        shift = (log.start or 0.0) - origin if by_clock else 0.0
        starts.append(log.starts + shift)
        view = log if log._factor == 1.0 else None
        part_of.append((log._where[0] if view else np.zeros(len(log), np.int64)) + len(parts))
        row_of.append(log._where[1] if view else np.arange(len(log)))
        parts.extend(log._parts if view else [LogPart(log)])
        codes.append(np.array([code_of[name] for name in log._tag_names], np.int64)[log._tag_code])
    start = np.concatenate(starts)
    order = np.argsort(start, kind="stable")
    where = np.concatenate(part_of)[order], np.concatenate(row_of)[order]
    return HistogramLog(
        start[order],
        np.concatenate([log.lengths for log in logs])[order],
        parts,
        where=where,
        tag_code=np.concatenate(codes)[order],
        tag_names=tuple(names),
        unit=logs[0].unit,
        run=run.replace(start=origin if by_clock else None, tags=()),
    )


class LogPart:
    """Another log's rows as a part: for views that change its values."""

    def __init__(self, log: HistogramLog) -> None:
        self._log = log

    @property
    def in_memory(self) -> bool:
        """Whether the log's blocks are at hand, decoded."""
        return all(getattr(part, "in_memory", False) for part in self._log._parts)

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the log's blocks of the given rows, numbered as the log numbers them."""
        for block in self._log._view(rows)._blocks():
            yield block.moved(rows[block.rows], block.buckets)
