"""One histogram per interval: the data type that knows when, without single requests.

A `HistogramLog` knows its intervals (start, length, tag, and where the payload lies) and decodes
them on demand, a block of lines at a time. Slicing, selecting tags, merging, resampling and
changing units make views: nothing is decoded for them, and memory does not grow with the length of
the log.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from latencykit._records import record
from latencykit.core import log_cache
from latencykit.core.blocks import Block, SeriesFold, SlidingSums, TagPart, TotalsFold
from latencykit.core.buckets import HdrBuckets
from latencykit.core.dependence import (
    LEAST_BINS,
    LEAST_EVENTS,
    RAREST,
    Dependence,
    normal_quantile,
    tail_groups,
    unseen_share,
)
from latencykit.core.histogram import (
    STANDARD_PERCENTILES,
    Evidence,
    Histogram,
    HistogramBacked,
    merge_histograms,
    ranks_of_mean,
    reported,
    rows_at,
)
from latencykit.core.kernel import tabulate
from latencykit.core.log_cache import LogCache, Request, Shelf
from latencykit.core.quantiles import PercentileRow, distinct, median, values_at_ranks
from latencykit.core.run import Run, merge_runs, require_data
from latencykit.core.summary import Summary
from latencykit.core.tail_events import TimeBins, fewest, solid_up_to, tail_shares
from latencykit.core.value import Value, equal, read_only
from latencykit.errors import IncompatibleDataError, InvalidArgumentError
from latencykit.units import (
    NANOSECONDS,
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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from latencykit.core import Data
    from latencykit.core.blocks import Fold, Part
    from latencykit.core.buckets import Buckets
    from latencykit.core.tail_events import Bursts, TailEvents
    from latencykit.units import Moment

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = [
    "HistogramLog",
    "IntervalSeries",
    "LogPart",
    "SlotPart",
    "Tails",
    "merge",
    "merge_logs",
    "slot_edges",
    "slot_numbers",
    "tails_of",
    "tails_of_requests",
]


def slot_numbers(starts: Floats, width: float) -> Ints:
    """Return the time bin of each moment: bin k is k · width ≤ t < (k + 1) · width.

    Edges are the decimal numbers that people write, so that `HistogramLog.between` draws the same
    line.
    """
    slot = np.floor(starts / width)
    slot = slot + (starts >= slot_edges(slot + 1, width)) - (starts < slot_edges(slot, width))
    return np.asarray(slot, np.int64)


def slot_edges(slot: Floats, width: float) -> Floats:
    """The moments at which slots begin, whole nanoseconds."""
    return np.asarray(np.round(slot * width, 9))


_FARTHEST = 1e18  # seconds
_AT_ONCE = 64  # intervals that are decoded, or put together, at a time
_TURN = 8192  # intervals of a log of several parts that are summed at a time
_ENTRIES = 1 << 15  # buckets of slots that are handed on together


@record(eq=False)
class IntervalSeries(Value):
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
        self._scaled_layouts: dict[Buckets, Buckets] = {}
        self._whole = whole
        self._tails: Tails | None = None
        # Views share what passes over the payloads have kept, and know which of the rows are
        # theirs.
        self._shelf, self._places = Shelf(size), np.arange(size)
        self.unit, self.run = checked_unit(unit), run or Run(unit=unit)

    def __len__(self) -> int:
        return int(self.starts.size)

    @overload
    def __getitem__(self, which: int) -> Histogram: ...
    @overload
    def __getitem__(self, which: slice) -> HistogramLog: ...
    def __getitem__(self, which: int | slice) -> Histogram | HistogramLog:
        rows = np.arange(len(self))[which]
        return self.rows(rows) if isinstance(which, slice) else next(iter(self.rows(rows[None])))

    def __iter__(self) -> Iterator[Histogram]:
        for first in range(0, len(self), _AT_ONCE):
            rows = np.arange(first, min(first + _AT_ONCE, len(self)))
            contents: dict[int, tuple[Buckets, Ints, Ints]] = {}
            for block in self.rows(rows).blocks():
                for row, begin, end in zip(
                    block.rows.tolist(), block.indptr, block.indptr[1:], strict=False
                ):
                    if begin < end:
                        entries = block.index[begin:end], block.counts[begin:end]
                        contents[row] = block.buckets, *entries
            none = HdrBuckets(3), np.zeros(0, np.int64), np.zeros(0, np.int64)
            for row in rows.tolist():
                tag = self._tag_names[self._tag_code[row]]
                run = self.run.replace(
                    unit=self.unit,
                    start=None if self.start is None else self.start + float(self.starts[row]),
                    duration=float(self.lengths[row]),
                    tags=(tag,) if tag else (),
                )
                yield Histogram(*contents.get(row - first, none), self.unit, run)

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        if same is not True or self is other:
            return same
        return isinstance(other, HistogramLog) and all(map(equal, self, other))

    __hash__ = Value.__hash__

    def _content(self) -> tuple[Any, ...]:
        return self.unit, self.run, self.starts, self.lengths, self.tag_of_rows()

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
        if self._of_one_tag:
            names: tuple[str, ...] = (self._tag_names[self._tag_code[0]],)
        else:
            used = np.flatnonzero(np.bincount(self._tag_code))
            names = tuple(self._tag_names[code] for code in used)
        return () if names == ("",) else names

    @property
    def _of_one_tag(self) -> bool:
        """Whether all intervals have one tag: found without a look at thousands of other tags."""
        return len(self) > 0 and bool((self._tag_code == self._tag_code[0]).all())

    def tag_of_rows(self) -> list[str]:
        """Return the tag of every interval, ``""`` for none."""
        return [self._tag_names[code] for code in self._tag_code]

    # ------------------------------------------------------------ views

    def rows(self, rows: Ints, **changes: object) -> HistogramLog:
        """Return a view of some intervals, with other facts where `changes` name them."""
        part, row = self._where
        facts: dict[str, Any] = {
            "where": (part[rows], row[rows]), "tag_code": self._tag_code[rows],
            "tag_names": self._tag_names,
            "unit": self.unit, "run": self.run, "factor": self._factor,
        }  # fmt: skip
        view = HistogramLog(self.starts[rows], self.lengths[rows], self._parts, **(facts | changes))
        view._shelf, view._places = self._shelf, self._places[rows]
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
        first, last = (parse_moment(moment, self.epoch) for moment in (start, end))
        return self.rows(np.flatnonzero((self.starts >= first) & (self.starts < last)))

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
        return self.rows(rows, run=self.run.replace(tags=(tag,) if tag else ()))

    def by_tag(self) -> dict[str, HistogramLog]:
        """Return one log a tag, ``""`` for untagged lines."""
        if not len(self):
            return {"": self}
        order = np.argsort(self._tag_code, kind="stable")
        begins = np.flatnonzero(np.diff(self._tag_code[order], prepend=-1))
        rows_of = {
            self._tag_names[self._tag_code[rows[0]]]: rows for rows in np.split(order, begins[1:])
        }
        log = self
        if begins.size > _TAGS_APART:
            log = self._mapped_through(lambda part: TagPart(part, self._tag_code))
        return {
            name: log.rows(rows_of[name], run=self.run.replace(tags=(name,) if name else ()))
            for name in self.tags or ("",)
        }

    def with_tag(self, tag: str | None) -> HistogramLog:
        """Return the same log with every interval tagged so; as it is for None."""
        if tag is None:
            return self
        return self.rows(
            np.arange(len(self)), tag_code=np.zeros(len(self), np.int64), tag_names=(tag,)
        )

    def to_unit(self, unit: str) -> HistogramLog:
        """Return the same log with its values in another unit."""
        if unit == self.unit:
            return self
        return self.rows(
            np.arange(len(self)), unit=unit, factor=self._factor * unit_factor(self.unit, unit)
        )

    def shifted(self, seconds: float) -> HistogramLog:
        """Return the same intervals counted from a start that is `seconds` earlier."""
        start = None if self.run.start is None else self.run.start - seconds
        later = self.rows(np.arange(len(self)), run=self.run.replace(start=start))
        later.starts = read_only(self.starts + seconds)
        return later

    def with_run(self, **changes: object) -> HistogramLog:
        """Return a copy with some facts of the run changed."""
        same = HistogramLog.__new__(HistogramLog)
        facts = {"run": self.run.replace(**changes), "_whole": None, "_tails": None}
        vars(same).update(vars(self) | facts)
        return same

    def _mapped_through(self, view: Callable[[Part], Part]) -> HistogramLog:
        """Return the same intervals with their payloads changed by `view` when they are decoded."""
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
        """Return a log of wider intervals (``"10s"``, or seconds); sums and maxima stay exact.

        An interval goes whole into the slot that it starts in (k · width ≤ start < (k + 1) ·
        width); a slot's start and length are those of what is in it.
        """
        width = parse_duration(interval, "s") / 1e9
        if not width > 0:
            raise InvalidArgumentError(f"an interval must be longer than nothing, not {interval!r}")
        slot = np.unique(slot_numbers(self.starts, width), return_inverse=True)[1].reshape(-1)
        codes = slot * len(self._tag_names) + self._tag_code
        keys, group = np.unique(codes, return_inverse=True)
        group = group.reshape(-1)
        starts, ends = np.full(keys.size, np.inf), np.full(keys.size, -np.inf)
        np.minimum.at(starts, group, self.starts)
        np.maximum.at(ends, group, self.starts + self.lengths)
        if keys.size == len(self):
            view = self.rows(np.argsort(group))
            view.lengths = ends - starts
            return view
        return HistogramLog(
            starts,
            ends - starts,
            [SlotPart(self, group, keys.size)],
            tag_code=keys % len(self._tag_names),
            tag_names=self._tag_names,
            unit=self.unit,
            run=self.run,
        )

    def in_succession(self) -> HistogramLog:
        """Return the log with one interval at a time: itself, unless hosts or tags overlap.

        Rates, runs of intervals and seconds have no meaning where intervals lie side by side.
        """
        width = self._overlap()
        if not width:
            return self
        view = self.with_tag("").resample(width)
        view.starts = slot_edges(slot_numbers(view.starts, width).astype(np.float64), width)
        view.lengths = np.full(len(view), width)
        return view

    def _overlap(self) -> float:
        """Length of intervals that lie side by side, seconds; 0 where one follows the other."""
        order = np.argsort(self.starts, kind="stable")
        ends = (self.starts + self.lengths)[order]
        before = np.concatenate(([-np.inf], np.maximum.accumulate(ends)[:-1]))
        covered = float(np.maximum(ends - np.maximum(self.starts[order], before), 0.0).sum())
        apart = float(self.lengths.sum()) <= _OVERLAP * covered
        return 0.0 if apart else float(np.quantile(self.lengths, 0.9))

    def __add__(self, other: HistogramLog) -> HistogramLog:
        return merge_logs([self, other])

    # ------------------------------------------------------------ one pass over the payloads

    def blocks(self) -> Iterator[Block]:
        """Yield all intervals as blocks, each once, in any order; `Block.rows` are this log's."""
        expected, cache = self._shelf.expected, None
        if expected and len(self) == self._shelf.size and not self._cached():
            cache = self._new_cache(expected) if self._gains_by_cache() else None
        for block in self._stored_blocks():
            if cache is not None:
                cache.add(block)
            yield self._in_unit(block)
        if cache is not None:
            cache.close()
            self._shelf.keep(cache)

    def _in_unit(self, block: Block) -> Block:
        return block if self._factor == 1.0 else block.of_layout(self._scaled(block.buckets))

    def _scaled(self, buckets: Buckets) -> Buckets:
        """Return a stored layout in the unit of this log."""
        if self._factor == 1.0:
            return buckets
        if buckets not in self._scaled_layouts:
            self._scaled_layouts[buckets] = buckets.scaled(self._factor)
        return self._scaled_layouts[buckets]

    def _stored_blocks(self) -> Iterator[Block]:
        """Yield the blocks with their stored layouts, from memory if all intervals are there."""
        parts, (part_of, row_of) = self._parts, self._where
        cache = self._shelf.cache
        if cache is not None and cache.part is not None:
            rows = cache.rows_of(self._places)
            if rows is not None:
                parts, part_of, row_of = (cache.part,), np.zeros(rows.size, np.int64), rows
        for number, part in enumerate(parts):
            mine = np.flatnonzero(part_of == number)
            mine = mine[np.argsort(row_of[mine], kind="stable")]
            wanted = row_of[mine]
            for block in part.blocks(wanted) if mine.size else ():
                own = mine[np.searchsorted(wanted, block.rows)]
                yield block.numbered(own)

    def scan(self, *folds: Fold) -> None:
        """Pass every block to every fold, and keep what is decoded for later questions."""
        totals = [fold for fold in folds if isinstance(fold, TotalsFold) and fold.is_fresh]
        self._pass(Request(), *folds)
        if totals and self._whole is None:  # and so `histogram` need not sum up once more
            self._whole = self.histogram_of(totals[0])

    def _pass(self, request: Request, *folds: Fold) -> tuple[LogCache, Ints] | None:
        """Scan, and return the cache and the rows of this log in it; None where nothing is kept."""
        known = self._cached()
        cache = self._new_cache(request) if known is None and self._gains_by_cache() else None
        for block in self._stored_blocks():
            if folds:  # first: what they decode is at hand then
                shown = self._in_unit(block)
                for fold in folds:
                    fold.add(shown)
            if cache is not None:
                cache.add(block)
        if cache is None:
            return known
        cache.close()
        self._shelf.keep(cache)
        return cache, np.arange(len(self))

    def _new_cache(self, request: Request) -> LogCache:
        """Return a cache for a pass over this log, which also answers what `expect` announced."""
        request |= self._shelf.expected or request
        codes, tags = self._tags_by_name()
        few = tags <= _TAGS_APART
        family = self._where[0] * tags + codes if few else self._where[0]
        slot = table = None
        if request.table:
            slot, slots = _slots_of(self)
            table = partial(_Table, slot, slots, codes, tags)
            pays = slots * (int(family.max()) + 1) * _SLOT_ROWS <= len(self)
            slot = slot if few and pays else None
        return LogCache(
            self._places,
            family,
            lambda: _spans_of(self),
            slot,
            table,
            self._scaled,
            request,
            self._factor,
        )

    def expect(
        self, percentiles: Sequence[float] = (), *, evidence: bool = True, keep: bool = True
    ) -> None:
        """Announce what will be asked, so that one pass answers all of it.

        With ``keep=False`` that pass keeps nothing for later questions.
        """
        request = Request(True, tuple(float(p) for p in percentiles), evidence)
        self._shelf.expected = request | (self._shelf.expected or request)
        self._shelf.keeps = keep

    def is_scanned(self) -> bool:
        """Return True if the sums and the usual percentiles of this log are remembered."""
        return self._cached() is not None

    def _cached(self) -> tuple[LogCache, Ints] | None:
        """The cache and the rows of this log in it, where it covers all of them."""
        cache = self._shelf.cache
        rows = None if cache is None else cache.rows_of(self._places)
        return None if cache is None or rows is None else (cache, rows)

    def _gains_by_cache(self) -> bool:
        enough = len(self) >= _LEAST_ROWS or 0 < len(self) == self._shelf.size
        decodes = any(not getattr(part, "in_memory", False) for part in self._parts)
        return self._shelf.keeps and enough and decodes

    def _answers(self, request: Request) -> tuple[LogCache, Ints] | None:
        """The cache, filled by a pass that answers the request where there is none yet."""
        return self._cached() or (self._pass(request) if self._gains_by_cache() else None)

    def _use_sidecar(self, path: Path) -> None:
        """Use what an earlier pass stored beside the log, or let the next one store it there."""
        if self._gains_by_cache():
            self._shelf.use_sidecar(path, lambda: self._new_cache(Request()))

    def _tags_by_name(self) -> tuple[Ints, int]:
        """Number each interval's tag among those in use, by name, and count those in use."""
        if self._of_one_tag:
            return np.zeros(len(self), np.int64), 1
        used = np.flatnonzero(np.bincount(self._tag_code))
        names, rank = np.unique(
            np.array([self._tag_names[code] for code in used.tolist()], object), return_inverse=True
        )
        rank_of = np.zeros(len(self._tag_names), np.int64)
        rank_of[used] = rank.reshape(-1)
        return rank_of[self._tag_code], max(1, names.size)

    def totals_fold(self, *, by_tag: bool = False) -> TotalsFold:
        """Return a fold for `scan` that sums all intervals, or each tag's."""
        return TotalsFold(self._tag_code if by_tag else np.zeros(len(self), np.int64))

    def series_fold(
        self, percentiles: Sequence[float] = (), *, moments: bool = False
    ) -> SeriesFold:
        """Return a fold for `scan` that takes each interval's numbers."""
        return SeriesFold(len(self), percentiles, moments=moments)

    def histogram_of(
        self, fold: TotalsFold, tag: str | None = None, like: HdrBuckets | None = None
    ) -> Histogram:
        """Return the histogram of a scanned `totals_fold`, or that of one of its tags."""
        group = 0 if tag is None else self._tag_names.index(tag)
        run = self.run.replace(unit=self.unit, duration=self.run.duration or self.duration or None)
        run = run if tag is None else run.replace(tags=(tag,) if tag else ())
        parts = [
            Histogram(buckets, index, counts, self.unit, run)
            for number, buckets, index, counts in fold.totals()
            if number == group
        ]
        if like is not None:
            parts = [part.rebucket(like, as_reference=True) for part in parts]
        if not parts:
            none = np.zeros(0, np.int64)
            return Histogram(like or HdrBuckets(3), none, none, self.unit, run)
        if len(parts) == 1:
            return parts[0]
        whole = merge_histograms(parts)
        outcomes = ("failed", "timeouts", "dropped", "unfinished")
        return reported(whole.with_run(**{name: getattr(run, name) for name in outcomes}))

    def series_of(self, fold: SeriesFold) -> IntervalSeries:
        """Return the arrays that a scanned `series_fold` holds, with the intervals' times."""
        least, most, values, lows = fold.edges(fold.percentiles)
        return IntervalSeries(
            self.starts, self.lengths, fold.count, least, most, fold.percentiles, values,
            fold.mean, fold.std, self.unit, lows,
        )  # fmt: skip

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
            return self._whole
        plain = self._factor == 1.0
        known = self._answers(Request(total=plain))
        if plain and known is not None and known[0].total and known[1].size == known[0].size:
            fold = known[0].total
        else:
            fold = self.totals_fold()
            for block in self._summed_blocks(np.zeros(len(self), np.int64), known)[1]:
                fold.add(block)
        histogram = self.histogram_of(fold, like=like)
        self._whole = histogram if like is None else self._whole
        return histogram

    def _summed_blocks(
        self, group: Ints, known: tuple[LogCache, Ints] | None
    ) -> tuple[Ints, Iterator[Block]]:
        """Return blocks that give the same sums of groups, and which of their rows will come.

        A row may stand for neighbours of one group: it is numbered as the first of them.
        """
        units, rest = np.zeros(0, np.int64), np.arange(len(self))
        windows: Iterator[Block] = iter(())
        if known is not None:
            units, windows, rest = known[0].sums(known[1], group)

        def blocks() -> Iterator[Block]:
            for window in windows:
                yield self._in_unit(window)
            for block in self.rows(rest).blocks() if rest.size else ():
                yield block.numbered(rest[block.rows])

        return np.concatenate((units, rest)), blocks()

    def histogram_and(self, *folds: Fold) -> Histogram:
        """Return the sum of all intervals, and show every block to `folds` in the same pass."""
        total = self.totals_fold()
        if self._whole is not None:
            self.scan(*folds)
        elif self._gains_by_cache():
            self._pass(Request(total=self._factor == 1.0), *folds)
        else:
            self.scan(*folds, total)  # in this order: what they decode is at hand then
        return self.histogram()

    def series(self, percentiles: Sequence[float] = (), *, moments: bool = False) -> IntervalSeries:
        """Return count, extremes and percentiles of every interval, in one pass."""
        wanted = tuple(float(p) for p in percentiles)
        known = None if moments else self._answers(Request(percentiles=wanted))
        if known is not None:
            cache, rows = known
            if cache.series is not None and set(wanted) <= set(cache.series.percentiles):
                least, most, values, lows = cache.series.edges(wanted, rows, self._scaled)
                none = np.zeros(0)
                return IntervalSeries(
                    self.starts, self.lengths, cache.series.count[rows], least, most, wanted,
                    values, none, none, self.unit, lows,
                )  # fmt: skip
        total = self.totals_fold() if self._whole is None else None
        fold = SeriesFold(len(self), percentiles, moments=moments, total=total)
        self.scan(fold)
        if total is not None:
            self._whole = self.histogram_of(total)
        return self.series_of(fold)

    def by_interval(self, percentiles: Sequence[float] = (50, 90, 99, 99.9)) -> pd.DataFrame:
        """Return one row per interval: start, length, tag, count, max and the percentiles."""
        import pandas as pd

        series = self.series(percentiles)
        columns = {
            "start": series.start,
            "length": series.length,
            "tag": self.tag_of_rows(),
            "count": series.count,
            "max": series.max,
        }
        named = {
            f"p{format_percentile(p)}": series.values[:, k]
            for k, p in enumerate(series.percentiles)
        }
        return pd.DataFrame(columns | named)

    def evidence(self, whole: Histogram | None = None) -> Tails:
        """Return events and confidence intervals that allow for requests that are slow together."""
        self._tails = self._tails or tails_of(self, whole)
        return self._tails

    def percentile_rows(
        self, percentiles: ArrayLike = STANDARD_PERCENTILES, confidence: float = 0.95
    ) -> list[PercentileRow]:
        """Return percentiles of all intervals, with how many events each is based on.

        Confidence intervals allow for requests that are slow together, and are as wide as those of
        independent requests at least. The upper end is open where a percentile is based on fewer
        than twenty independent events, and no interval where the log is too short to show how far
        requests depend on each other.
        """
        return self.evidence().rows(
            np.atleast_1d(np.asarray(percentiles, np.float64)).tolist(), confidence
        )[0]

    def events(self, percentiles: Sequence[float] = (99, 99.9)) -> list[TailEvents]:
        """Return how many stalls, intervals and tags make up the tail above each percentile."""
        return self.evidence().events([float(p) for p in percentiles])

    def to_log(self, interval: str | float | None = None) -> HistogramLog:
        """Return itself, or itself resampled."""
        return self if interval is None else self.resample(interval)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per bucket and interval: start, length, tag, low, high, count."""
        import pandas as pd

        tags = np.asarray(self.tag_of_rows(), object)
        frames = []
        for block in self.blocks():
            row = block.rows[block.entry_rows]
            columns = {
                "start": self.starts[row], "length": self.lengths[row], "tag": tags[row],
                "low": block.buckets.low(block.index), "high": block.buckets.high(block.index),
                "count": block.counts,
            }  # fmt: skip
            frames.append(pd.DataFrame(columns))
        empty = pd.DataFrame(
            {name: [] for name in ("start", "length", "tag", "low", "high", "count")}
        )
        return (
            pd.concat(frames, ignore_index=True).sort_values(
                ["start", "tag", "low"], ignore_index=True
            )
            if frames
            else empty
        )

    def _repr_html_(self) -> str:
        from latencykit.core.key_statistics import html_of

        return html_of(
            f"Histogram log, {format_count(len(self))} intervals over "
            f"{format_duration(self.duration * 1e9)}",
            self,
        )

    def __repr__(self) -> str:
        tags = f", tags {', '.join(name or '(none)' for name in self.tags)}" if self.tags else ""
        size, span = format_count(len(self)), format_duration(self.duration * 1e9)
        return f"HistogramLog({size} intervals over {span}{tags})"


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
        # Intervals of one part come in order of time, but those of several parts one part after the
        # other, and sums from memory before what is decoded beside them.
        known = self._log._cached()
        turns = 1
        if len(self._log._parts) > 1 or (known is not None and known[0].part is None):
            turns = max(1, min(chosen.size // _TURN, rows.size))
        bounds = np.searchsorted(slot[chosen], (np.arange(turns + 1) * rows.size) // turns)
        for first, end in pairwise(bounds.tolist()):
            mine = np.sort(chosen[first:end])
            if not mine.size:
                continue
            view = self._log.rows(mine)
            units, blocks = view._summed_blocks(slot[mine], view._cached())
            ready: list[tuple[int, Buckets, Ints, Ints]] = []

            def slot_done(number: int, sums: list[tuple[Buckets, Ints, Ints]]) -> None:
                if len(sums) > 1:  # layouts differ within the slot
                    whole = merge_histograms([Histogram(*one) for one in sums])
                    sums = [(whole.buckets, whole.index, whole.counts)]
                ready.extend((number, *one) for one in sums)  # noqa: B023

            sums = SlidingSums(slot[mine], slot_done, units)
            for block in blocks:
                sums.add(block)
                if sum(one[2].size for one in ready) > _ENTRIES:
                    yield from _joined(rows, ready)
                    ready.clear()
            sums.close()
            yield from _joined(rows, ready)


def _joined(slots: Ints, sums: list[tuple[int, Buckets, Ints, Ints]]) -> Iterator[Block]:
    """Sums of slots as blocks, one per layout."""
    layouts: dict[Buckets, list[tuple[int, Ints, Ints]]] = {}
    for number, buckets, index, counts in sums:
        layouts.setdefault(buckets, []).append((number, index, counts))
    for buckets, members in layouts.items():
        numbers, indices, counts_of = zip(*members, strict=True)
        indptr = np.concatenate(([0], np.cumsum([index.size for index in indices])))
        yield Block(
            slots[list(numbers)],
            indptr,
            np.concatenate(indices),
            np.concatenate(counts_of),
            buckets,
        )


def merge_logs(logs: Sequence[HistogramLog], align: str = "absolute") -> HistogramLog:
    """Return all intervals of all logs, sorted by time; a view, nothing is decoded."""
    if align not in ("absolute", "relative"):
        raise InvalidArgumentError(f"align must be 'absolute' or 'relative', not {align!r}")
    run = merge_runs([log.run.replace(unit=log.unit) for log in logs])
    by_clock = align == "absolute" and all(log.start is not None for log in logs)
    origin = min(log.start or 0.0 for log in logs) if by_clock else 0.0
    if align == "absolute" and not by_clock and any(log.start is not None for log in logs):
        raise IncompatibleDataError(
            "some of these logs do not say when they began; merge them with align='relative' "
            "(--align relative)"
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
    return HistogramLog(
        start[order],
        np.concatenate([log.lengths for log in logs])[order],
        parts,
        where=(np.concatenate(part_of)[order], np.concatenate(row_of)[order]),
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
        for block in self._log.rows(rows).blocks():
            yield block.numbered(rows[block.rows])


# ------------------------------------------------------------
# What a measurement that knows time knows beyond its counts: events, and intervals that know how
# slow requests cluster.

_SLOTS = 4096  # more intervals are put together with their neighbours
_LARGE = 2048  # into at most this many, of very long logs
_SLOT_ROWS = 16  # intervals per slot from which on slots are summed before they are tabulated
_TAGS_APART = 16  # of more tags, whose sums would all grow at once, windows are not kept apart
_OVERLAP = 1.1  # times the time that intervals cover: more, and they lie side by side
_SPANS = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 24 * 3600)  # seconds
_LEAST_ROWS = 64  # a pass over fewer intervals than these, of more, is not kept
_GROUPS = 400
_SMALL = 1 << 15  # entries of a table that is cheaply summed once from its end
_MORE = 512  # columns for what comes later: they take memory only when they are written to
_FINE = 64  # columns per doubling of the latency while a log is read: 1.1 % wide
_BESIDES = (90.0, 97.0, 99.0, 99.7, 99.9, 99.97, 99.99)


@record(eq=False)
class Tails(Evidence):
    """A measurement as time bins × groups of buckets, fine in the tail, of bounded size.

    Attributes
    ----------
    whole : Histogram
        All of it.
    table : ndarray of float64, shape (slots, groups)
        Counts, in order of time.
    value : ndarray of float64, shape (groups,)
        Middle of each group.
    start, length, longest : ndarray of float64, shape (slots,)
        Seconds; the longest latency of each, 0 for values without a unit.
    tags : ndarray of float64, shape (tags, groups)
    """

    table: Floats
    value: Floats
    start: Floats
    length: Floats
    longest: Floats
    tags: Floats

    @cached_property
    def dependence(self) -> Dependence:
        """How requests depend on each other."""
        return Dependence(self.table, self.value)

    def events(self, percentiles: Sequence[float]) -> list[TailEvents]:
        """Return what makes up the requests above each percentile."""
        events = self._bursts(percentiles).events(slice(len(percentiles)))
        if len(self.tags) < 2:
            return events
        by_tag = _above(self.tags, *tail_shares(self._counts, percentiles))
        most = [fewest(column)[0] for column in by_tag.T]
        return [replace(above, tags=number) for above, number in zip(events, most, strict=True)]

    @cached_property
    def _counts(self) -> Ints:
        return np.asarray(np.rint(self.table.sum(axis=0)), np.int64)

    @cached_property
    def _bins(self) -> TimeBins:
        return TimeBins.of(self.table.sum(axis=1), self.start, self.length, self.longest)

    def _bursts(self, percentiles: Sequence[float]) -> Bursts:
        """The requests of each slot above each percentile, and where they are bursts."""
        # A stall shows best where it still holds many requests: some percentiles are asked besides.
        asked = [*percentiles, *(p for p in _BESIDES if p < max(percentiles, default=0.0))]
        group, share = tail_shares(self._counts, asked)
        if self._beyond is None:
            return self._bins.bursts(asked, _above(self.table, group, share))
        return self._bins.bursts(asked, self._beyond[:, group] + self.table[:, group] * share)

    @cached_property
    def _beyond(self) -> Floats | None:
        """Requests of each slot beyond each group; None for a large table."""
        if self.table.size > _SMALL:
            return None
        beyond = np.zeros(self.table.shape)
        np.cumsum(self.table[:, :0:-1], axis=1, out=beyond[:, -2::-1])
        return beyond

    def solid_up_to(self, confidence: float = 0.95) -> tuple[float, str]:
        """Return the highest percentile that enough events support, and the basis above."""
        if confidence not in self._solid:
            limit = self.whole.sample_limit(confidence)
            self._solid[confidence] = solid_up_to(self._bursts, limit, confidence)
        return self._solid[confidence]

    @cached_property
    def _solid(self) -> dict[float, tuple[float, str]]:
        return {}

    def rows(
        self,
        percentiles: Sequence[float],
        confidence: float = 0.95,
        *,
        rare: bool = True,
        events: bool = True,
    ) -> tuple[list[PercentileRow], tuple[str, ...]]:
        """Return percentiles with confidence intervals and events, and why some have none."""
        p = [float(one) for one in percentiles]
        inner = [k for k, one in enumerate(p) if 0 < one < 100]
        if not inner or not self.whole.count:
            return list(self.whole.percentile_rows(p, confidence)), ()
        asked = np.array([p[k] for k in inner])
        unseen = unseen_share(self._seconds) if rare else 0.0
        known = self.dependence.resolved(asked)
        above: list[int | None] = [None] * asked.size
        if events:
            above = [one.count or None for one in self.events(asked.tolist())]
        bounded = np.ones(len(p), np.bool_)
        bounded[inner] = known
        rows = rows_at(self.whole, np.array(p), confidence, bounded)
        ends = self._ends([rows[k] for k in inner], known, confidence, unseen)
        for k, number, *row in zip(inner, above, *(end.tolist() for end in ends), strict=True):
            facts = dict(zip(("low", "high", "supported"), row, strict=True))
            rows[k] = PercentileRow(**vars(rows[k]) | facts | {"events": number})
        return rows, self._reasons(rows, known.tolist(), unseen)

    def supported_rows(
        self, percentiles: Sequence[float], confidence: float = 0.95
    ) -> list[PercentileRow]:
        """Return the percentiles that `rows` gives, without intervals and events: much faster."""
        rows = super().supported_rows(percentiles, confidence)
        if not self.whole.count:
            return rows
        solid = self.solid_up_to(confidence)[0]
        return [
            PercentileRow(**vars(row) | {"supported": False})
            if solid < row.percentile < 100
            else row
            for row in rows
        ]

    def ends(self, percentiles: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return only the lower and upper ends of the intervals that `rows` gives."""
        inner = (percentiles > 0) & (percentiles < 100)
        if not inner.any() or not self.whole.count:
            return super().ends(percentiles, confidence)
        chosen = ~inner
        chosen[inner] = self.dependence.resolved(percentiles[inner])
        low, high = np.full((2, percentiles.size), math.nan)
        low[~inner], high[~inner] = super().ends(percentiles[~inner], confidence)
        chosen &= inner
        if chosen.any():
            rows = self.whole.percentile_rows(percentiles[chosen], confidence)
            known, unseen = np.ones(len(rows), np.bool_), unseen_share(self._seconds)
            low[chosen], high[chosen], _ = self._ends(rows, known, confidence, unseen)
        return low, high

    def _ends(
        self,
        rows: list[PercentileRow],
        known: NDArray[np.bool_],
        confidence: float,
        unseen: float,
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Ends of the intervals of percentiles between 0 and 100, and which are supported.

        An interval is at least as wide as that of independent requests; corrected counts have none.
        """
        columns = [(row.percentile, row.value, row.low, row.high, row.supported) for row in rows]
        p, value, low, high, supported = np.array(columns, np.float64).T
        # What a supported percentile bounds, it bounds for all that are lower, too.
        sure = (supported > 0) & (p <= self.solid_up_to(confidence)[0])
        if not known.any():
            return np.full(p.shape, np.nan), np.full(p.shape, np.nan), sure
        end = normal_quantile((1 + confidence) / 2)
        levels = self.dependence.levels(p, [-end, end], unseen)
        total = self.whole.count + self.whole.censored
        bottom, top = values_at_ranks(self.whole.counted, *(levels * total).T)
        top = np.where(sure & (levels[:, 1] < 1), top, np.inf)
        highest = np.maximum(top, np.where(np.isnan(high), value, high))
        lowest = np.minimum(bottom, np.where(np.isnan(low), value, low))
        lowest[np.isnan(low) & ~np.isnan(high)] = math.nan
        return np.where(known, lowest, math.nan), np.where(known, highest, math.nan), sure

    def mean(
        self, name: str = "mean", confidence: float = 0.95, *, rare: bool = True
    ) -> tuple[float, float]:
        """Return how far a mean may lie below and above the sample's; see `Evidence.mean`."""
        ends = ranks_of_mean(name)
        if ends is None or not self.whole.count:
            return (math.inf, math.inf) if self.whole.count else (0.0, 0.0)
        end = normal_quantile((1 + confidence) / 2)
        unseen = unseen_share(self._seconds) if rare else 0.0
        low, high = self.dependence.shifts(*ends, [-end, end], unseen).tolist()
        if math.isnan(low):
            return math.inf, math.inf
        usual = super().mean(name, confidence)
        return max(-low, usual[0]), max(high, usual[1])

    @property
    def _seconds(self) -> float:
        """How long the measurement took, without gaps."""
        return float(self.length.sum())

    def _reasons(
        self, rows: list[PercentileRow], known: list[bool], unseen: float
    ) -> tuple[str, ...]:
        """Why rows have no interval, or an open one."""
        bins = int((self.table.sum(axis=1) > 0).sum())
        if bins < LEAST_BINS:
            return (
                f"{bins} intervals are too few for a confidence interval; {LEAST_BINS} are needed",
            )
        found = []
        if not all(known):
            found.append(
                "latencies drift over much of the run, which is too short to bound them; measure "
                "for longer"
            )
        few = [
            f"p{format_percentile(row.percentile)}"
            for row in rows
            if row.percentile < 100 and not row.supported
        ]
        if few:
            found.append(
                f"{', '.join(few)}: no upper bound, since fewer than {LEAST_EVENTS} independent "
                "events lie above"
            )
        if any(
            row.supported and math.isinf(row.high) and 100 * (1 - unseen) <= row.percentile < 100
            for row in rows
        ):
            found.append(
                f"no upper bound above p{format_percentile(round(100 * (1 - unseen), 1))}: a run "
                "of "
                f"{format_duration(self._seconds * 1e9)} may have missed stalls that occur every "
                f"{RAREST / 60:.0f} minutes"
            )
        return tuple(found)


@record(eq=False)
class TailsByRequest(Tails):
    """The same without times: rows of the table are neighbouring requests, in order."""

    def events(self, percentiles: Sequence[float]) -> list[TailEvents]:
        """Return what makes up the rows above each percentile."""
        return [replace(one, seconds=math.nan) for one in super().events(percentiles)]

    @property
    def _seconds(self) -> float:
        return self.whole.run.duration or math.inf


def _above(table: Floats, group: Ints, share: Floats) -> Floats:
    """Requests of each row above each cut, shape (rows, p)."""
    # Sums between the cuts suffice; counts are whole, so the order of adding does not matter.
    cuts, place = np.unique(group, return_inverse=True)
    beyond, inner = np.zeros((cuts.size, len(table))), cuts < table.shape[1] - 1
    if inner.any():
        beyond[inner] = np.add.reduceat(table, cuts[inner] + 1, axis=1).T
    beyond = np.cumsum(beyond[::-1], axis=0)[::-1]
    return (beyond[place.reshape(-1)] + table.T[group] * share[:, None]).T


class _Table:
    """A fold: counts per time bin and tag, in columns of one relative width for all layouts."""

    def __init__(self, slot: Ints, slots: int, tag: Ints, tags: int) -> None:
        self.slot, self.tag = slot, tag
        self.table, self.tags = np.zeros((slots, 0)), np.zeros((tags, 0))
        self.longest = np.zeros(slots)
        self._steps = np.zeros(0, np.int64)  # of each column
        self._columns: dict[Buckets, Ints] = {}
        self._result: tuple[Floats, Floats, Floats] | None = None

    def add(self, block: Block) -> None:
        """Take a block in."""
        if not block.counts.size:
            return
        column = self._of(block.buckets, block.width)
        entries = block.indptr, block.index, block.counts, column
        slot = self.slot[block.rows]
        tabulate(self.table, slot, *entries)
        if len(self.tags) > 1:
            tabulate(self.tags, self.tag[block.rows], *entries)
        ends = block.indptr[1:]
        held = (ends > block.indptr[:-1]).nonzero()[0]
        top = block.buckets.high(block.index[ends[held] - 1])
        np.maximum.at(self.longest, slot[held], top)

    def _of(self, buckets: Buckets, size: int) -> Ints:
        """Column of each bucket of a layout."""
        known = self._columns.get(buckets, np.zeros(0, np.int64))
        if known.size < size:
            if isinstance(buckets, HdrBuckets):  # without end; spares doing it often
                size += -size % 1024
            steps, place = _columns_between(buckets, known.size, size)
            if self._steps.size:
                fresh = steps[~np.isin(steps, self._steps)]
                self._steps = np.concatenate((self._steps, fresh))
                order = np.argsort(self._steps)
                columns = order[np.searchsorted(self._steps, steps, sorter=order)]
                known = np.concatenate((known, columns[place]))
            else:
                self._steps, known = steps, place
            self._columns[buckets] = known
            more = self._steps.size - self.table.shape[1]
            if more > 0:
                more += _MORE
                self.table, self.tags = _widened(self.table, more), _widened(self.tags, more)
        return known

    def close(self) -> None:
        """Keep the groups, which take less memory than the columns."""
        self._result = self.groups()
        self.table = self.tags = np.zeros((0, 0))

    def groups(self) -> tuple[Floats, Floats, Floats]:
        """Table, tags and values of the groups, ascending."""
        if self._result is not None:
            return self._result
        return grouped(self.table, self.tags, self._steps)


@lru_cache(maxsize=32)
def _columns_between(buckets: Buckets, first: int, last: int) -> tuple[Ints, Ints]:
    """The columns of some buckets, and which of them each is in; many tags share a layout."""
    steps, place = np.unique(column_of(buckets.high(np.arange(first, last))), return_inverse=True)
    return steps, place.reshape(-1)


def _widened(table: Floats, more: int) -> Floats:
    """With more columns of zeros."""
    wider = np.zeros((len(table), table.shape[1] + more))
    wider[:, : table.shape[1]] = table
    return wider


def column_of(values: Floats) -> Ints:
    """The column of each value, by its logarithm."""
    return np.asarray(np.floor(_FINE * np.log2(np.maximum(values, 2.0**-40))), np.int64)


def grouped(table: Floats, tags: Floats, steps: Ints) -> tuple[Floats, Floats, Floats]:
    """Put columns together to some hundred, fine in the tail, empty ones left out."""
    sums = table[:, : steps.size].sum(axis=0)
    order = np.argsort(steps)
    held = order[sums[order] > 0]
    if not held.size:
        return np.zeros((len(table), 1)), np.zeros((len(tags), 1)), np.zeros(1)
    sums, middle = sums[held], np.exp2((steps[held] + 0.5) / _FINE)
    group = tail_groups(np.rint(sums), _GROUPS)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    value = np.add.reduceat(sums * middle, first) / np.add.reduceat(sums, first)

    def together(counts: Floats) -> Floats:
        """Some rows at a time: the table may be large."""
        out = np.empty((len(counts), first.size))
        for row in range(0, len(counts), _AT_ONCE):
            some = counts[row : row + _AT_ONCE, held]
            np.add.reduceat(some, first, axis=1, out=out[row : row + _AT_ONCE])
        return out

    return together(table), together(tags), value


def _slots_of(log: HistogramLog) -> tuple[Ints, int]:
    """The slot of each interval of a log, and how many slots there are."""
    width = log._overlap()
    times, moment = np.unique(
        slot_numbers(log.starts, width) if width else log.starts, return_inverse=True
    )
    most = _SLOTS if times.size <= 4 * _SLOTS else _LARGE
    slot = moment.reshape(-1) // max(1, math.ceil(times.size / most))
    slots = int(slot.max(initial=-1)) + 1
    return slot, slots


def _spans_of(log: HistogramLog) -> Ints:
    """The span of each interval: of a width that people resample to, and that fills a window."""
    steps = np.diff(distinct(log.starts))
    least = log_cache.WINDOW * float(median(steps)) if steps.size else 1.0
    width = next((span for span in _SPANS if span >= least), least)
    return np.unique(slot_numbers(log.starts, width), return_inverse=True)[1].reshape(-1)


def tails_of(log: HistogramLog, whole: Histogram | None = None) -> Tails:
    """Return a log as slots of time × groups of buckets, in one pass."""
    slot, slots = _slots_of(log)
    fold = _Table(slot, slots, *log._tags_by_name())
    known = log._answers(Request(total=whole is None, table=True))
    filled = None if known is None else known[0].table_at(known[1], log._factor)
    if (
        known is not None
        and isinstance(filled, _Table)
        and np.array_equal(filled.slot[known[1]], slot)
        and np.array_equal(filled.tag[known[1]], fold.tag)
    ):
        fold = filled
        counted = whole or log.histogram()
    else:
        counted = log.histogram_and(fold) if whole is None else whole
        if whole is not None:
            log.scan(fold)
    start, end = np.full(slots, np.inf), np.full(slots, -np.inf)
    np.minimum.at(start, slot, log.starts)
    np.maximum.at(end, slot, log.starts + log.lengths)
    end = np.minimum(end, np.append(start[1:], np.inf))  # of hosts side by side a second is one
    table, tags, value = fold.groups()
    seconds = fold.longest * (NANOSECONDS.get(log.unit, 0.0) / 1e9)
    return Tails(counted, table, value, start, end - start, seconds, tags)


def tails_of_requests(
    moment: Ints, value: Ints, open_above: Ints, tag: Ints | None, whole: Histogram
) -> Tails:
    """Return requests as slots of time × groups of latencies."""
    begin = np.concatenate((moment, open_above))
    elapsed = max(int(begin.max(initial=0)) + 1, 1)
    slots = int(
        min(max(elapsed / 1e9 if elapsed >= 30e9 else 240, 1), _SLOTS, max(begin.size // 4, 1))
    )
    slot = np.minimum((begin * (slots / elapsed)).astype(np.int64), slots - 1)
    steps, column = np.unique(column_of(value.astype(np.float64)), return_inverse=True)
    top = column_of(np.array([max(whole.censored_at, whole.max)]))[0] + 1 if open_above.size else 0
    column = np.concatenate((column.reshape(-1), np.full(open_above.size, steps.size)))
    steps = np.append(steps, top) if open_above.size else steps
    table = (
        np.bincount(slot * steps.size + column, minlength=slots * steps.size)
        .astype(np.float64)
        .reshape(slots, -1)
    )
    codes = np.zeros(moment.size, np.int64) if tag is None else tag
    kinds = int(codes.max(initial=0)) + 1
    flat = codes * steps.size + column[: moment.size]
    tags = np.bincount(flat, minlength=kinds * steps.size).astype(np.float64).reshape(kinds, -1)
    table, tags, middle = grouped(table, tags, steps)
    width = float(elapsed) / 1e9 / slots
    starts = np.arange(slots, dtype=np.float64) * width
    return Tails(whole, table, middle, starts, np.full(slots, width), np.zeros(slots), tags)


# ------------------------------------------------------------
# Adding up data types of any kind: what may be added is, what may not says why.


def merge(
    series: Iterable[Data] | Mapping[str, Data], align: str = "absolute"
) -> HistogramLog | Histogram:
    """Add up what several hosts, files or runs measured.

    Parameters
    ----------
    series : iterable or mapping of data types
        Logs give a log; anything else steps down to histograms and gives a histogram.
    align : {"absolute", "relative"}
        How the intervals of logs are laid side by side: by the clock, or by the time since each
        began.

    Returns
    -------
    HistogramLog or Histogram

    Raises
    ------
    IncompatibleDataError
        For summaries (an average of percentiles is the percentile of nothing), and for different
        units, measures or corrections.

    Examples
    --------
    >>> from latencykit.core.histogram import Histogram
    >>> merge([Histogram.of([1, 2]), Histogram.of([900])]).max
    900.0
    """
    given = series.values() if hasattr(series, "values") else series
    parts: list[Any] = list(given) if hasattr(given, "__iter__") else [given]
    if not parts:
        raise InvalidArgumentError("there is nothing to merge")
    for part in parts:
        require_data(part, "merge")
        if isinstance(part, Summary):
            _ = part + part
    if all(isinstance(part, HistogramLog) for part in parts):
        return merge_logs(parts, align)
    return reported(merge_histograms([part.histogram() for part in parts]))
