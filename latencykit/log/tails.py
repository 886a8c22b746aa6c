"""What a measurement that knows time knows beyond its counts: events, and intervals that know how slow requests cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from latencykit.histogram.evidence import Evidence, ranks_of_mean
from latencykit.stats.dependence import LEAST_BINS, LEAST_EVENTS, RAREST, Dependence, normal_quantile, tail_groups, unseen_share
from latencykit.stats.events import events_above, solid_up_to, tail_shares
from latencykit.stats.percentiles import values_at_ranks
from latencykit.units import NANOSECONDS, format_duration, format_percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.blocks import Block
    from latencykit.buckets import Buckets
    from latencykit.histogram import Histogram, PercentileRow
    from latencykit.log.noun import HistogramLog
    from latencykit.stats.events import Events

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Tails", "tails_of", "tails_of_requests"]

_SLOTS = 4096  # more intervals are put together with their neighbours
_LARGE = 2048  # into no more than so many, of logs that are very long
_GROUPS = 400
_FINE = 64  # columns per doubling of the latency while a log is read: 1.1 % wide
_BESIDES = (90.0, 97.0, 99.0, 99.7, 99.9, 99.97, 99.99)


@dataclass(frozen=True, eq=False)
class Tails(Evidence):
    """A measurement as slots of time × groups of buckets, fine in the tail: in memory whatever its length.

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

    def events(self, percentiles: Sequence[float]) -> list[Events]:
        """Return what makes up the requests above each percentile."""
        counts, sizes = np.rint(self.table.sum(axis=0)).astype(np.int64), self.table.sum(axis=1)
        # A stall shows best where it still holds many requests: some percentiles are asked besides.
        asked = [*percentiles, *(p for p in _BESIDES if p < max(percentiles, default=0.0))]
        tail = _above(self.table, *tail_shares(counts, asked))
        found = events_above(asked, tail, sizes, self.start, self.length, self.longest)[: len(percentiles)]
        if len(self.tags) < 2:
            return found
        by_tag = _above(self.tags, *tail_shares(counts, percentiles))
        most = [_most_of(column) for column in by_tag.T]
        return [replace(one, tags=number) for one, number in zip(found, most, strict=True)]

    def solid_up_to(self, confidence: float = 0.95) -> tuple[float, str]:
        """Return the percentile up to which enough events bear the curve, and what it rests on beyond ("1 stall")."""
        return solid_up_to(self.events, self.whole.sample_limit(confidence), confidence)

    def rows(
        self, percentiles: Sequence[float], confidence: float = 0.95, *, rare: bool = True
    ) -> tuple[list[PercentileRow], tuple[str, ...]]:
        """Return percentiles with intervals that know of time and with their events, and why some have none."""
        p = [float(one) for one in percentiles]
        rows = list(self.whole.percentile_rows(p, confidence))
        inner = [k for k, one in enumerate(p) if 0 < one < 100]
        if not inner or not self.whole.count:
            return rows, ()
        asked = [p[k] for k in inner]
        end = normal_quantile((1 + confidence) / 2)
        unseen = unseen_share(self._seconds) if rare else 0.0
        levels = self.dependence.levels(asked, [-end, end], unseen)
        low, high = values_at_ranks(self.whole.counted, *(levels * (self.whole.count + self.whole.censored)).T)
        known, limit = self.dependence.resolved(asked), self.solid_up_to(confidence)[0]
        columns = (inner, low.tolist(), high.tolist(), levels.tolist(), known.tolist(), self.events(asked))
        for k, bottom, top, (_, share), sure, one in zip(*columns, strict=True):
            supported = rows[k].supported and one.supports(confidence) and p[k] <= limit
            row = replace(rows[k], supported=supported, events=one.count or None)
            top = top if supported and share < 1 else math.inf
            rows[k] = replace(row, low=_least(bottom, row), high=_most(top, row)) if sure else _none(row)
        return rows, self._reasons(rows, known.tolist(), unseen)

    def mean(self, name: str = "mean", confidence: float = 0.95, *, rare: bool = True) -> tuple[float, float]:
        """Return by how much a mean may be lower and higher than the sample's; see `Evidence.mean`."""
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

    def _reasons(self, rows: list[PercentileRow], known: list[bool], unseen: float) -> tuple[str, ...]:
        """Why rows have no interval, or an open one."""
        bins = int((self.table.sum(axis=1) > 0).sum())
        if bins < LEAST_BINS:
            return (f"{bins} intervals are too few for an interval of confidence; {LEAST_BINS} are needed",)
        found = []
        if not all(known):
            found.append("latencies drift over much of the run, which is too short to bound them; measure for longer")
        few = [f"p{format_percentile(row.percentile)}" for row in rows if row.percentile < 100 and not row.supported]
        if few:
            found.append(f"{', '.join(few)}: no upper bound, since fewer than {LEAST_EVENTS} independent events lie above")
        if any(row.supported and math.isinf(row.high) and 100 * (1 - unseen) <= row.percentile < 100 for row in rows):
            found.append(
                f"no upper bound above p{format_percentile(round(100 * (1 - unseen), 1))}: a run of "
                f"{format_duration(self._seconds * 1e9)} may have missed stalls that occur every {RAREST / 60:.0f} minutes"
            )
        return tuple(found)


def _least(bottom: float, row: PercentileRow) -> float:
    """The lower end, no higher than that of independent requests; NaN where there is none."""
    if math.isnan(bottom) or (math.isnan(row.low) and not math.isnan(row.high)):
        return math.nan
    return min(bottom, row.value) if math.isnan(row.low) else min(bottom, row.low)


def _most(top: float, row: PercentileRow) -> float:
    """The upper end, no lower than that of independent requests; corrected counts have none of these."""
    return max(top, row.value) if math.isnan(row.high) else max(top, row.high)


def _none(row: PercentileRow) -> PercentileRow:
    return replace(row, low=math.nan, high=math.nan)


def _above(table: Floats, group: Ints, share: Floats) -> Floats:
    """Requests of each row above each cut, shape (rows, p)."""
    running = np.concatenate((np.zeros((len(table), 1)), np.cumsum(table, axis=1)), axis=1)
    return np.asarray(running[:, -1:] - running[:, group + 1] + table[:, group] * share)


def _most_of(parts: Floats) -> int:
    """How few parts hold nine tenths of all."""
    running = np.cumsum(np.sort(parts)[::-1])
    return int(np.searchsorted(running, 0.9 * running[-1] * (1 - 1e-12))) + 1 if running[-1] > 0 else 0


class _Table:
    """Counts of slots and tags in columns of a fixed relative width, whatever the layout of the buckets: one pass."""

    def __init__(self, slot: Ints, slots: int, tag: Ints, tags: int) -> None:
        self._slot, self._tag = slot, tag
        self.table, self.tags = np.zeros((slots, 0)), np.zeros((tags, 0))
        self.longest = np.zeros(slots)
        self.steps: list[int] = []
        self._place: dict[int, int] = {}
        self._columns: dict[Buckets, Ints] = {}

    def add(self, block: Block) -> None:
        """Take a block in."""
        if not block.counts.size:
            return
        column = self._of(block.buckets, int(block.index.max()) + 1)[block.index]
        lengths, width, slot = np.diff(block.indptr), self.table.shape[1], self._slot[block.rows]
        first = np.flatnonzero(np.diff(slot, prepend=-1))  # rows of one slot are counted together
        ends = block.indptr[np.append(first[1:], slot.size)].tolist()
        for at, start, end in zip(slot[first].tolist(), block.indptr[first].tolist(), ends, strict=True):
            self.table[at] += np.bincount(column[start:end], block.counts[start:end], width)
        if len(self.tags) > 1:
            np.add.at(self.tags.reshape(-1), np.repeat(self._tag[block.rows] * width, lengths) + column, block.counts)
        held = np.flatnonzero(lengths)
        top = block.buckets.high(block.index[block.indptr[held + 1] - 1])
        np.maximum.at(self.longest, self._slot[block.rows[held]], top)

    def _of(self, buckets: Buckets, size: int) -> Ints:
        """Column of each bucket of a layout."""
        known = self._columns.get(buckets, np.zeros(0, np.int64))
        if known.size < size:
            step = column_of(buckets.high(np.arange(known.size, size)))
            for one in np.unique(step).tolist():
                self._place.setdefault(one, len(self._place))
            places = np.array([self._place[one] for one in np.unique(step).tolist()], np.int64)
            fresh = places[np.unique(step, return_inverse=True)[1].reshape(-1)]
            known = self._columns[buckets] = np.concatenate((known, fresh))
            more = len(self._place) - self.table.shape[1]
            self.table = np.pad(self.table, ((0, 0), (0, more)))
            self.tags = np.pad(self.tags, ((0, 0), (0, more)))
        return known

    def found(self) -> tuple[Floats, Floats, Floats]:
        """Table, tags and values of the groups, ascending."""
        steps = np.fromiter(self._place, np.int64, len(self._place))
        order = np.argsort(steps)
        return grouped(self.table[:, order], self.tags[:, order], steps[order])


def column_of(values: Floats) -> Ints:
    """The column of each value, by its logarithm."""
    return np.asarray(np.floor(_FINE * np.log2(np.maximum(values, 2.0**-40))), np.int64)


def grouped(table: Floats, tags: Floats, steps: Ints) -> tuple[Floats, Floats, Floats]:
    """Put columns together to some hundred, fine in the tail, empty ones left out."""
    sums = table.sum(axis=0)
    held = np.flatnonzero(sums)
    if not held.size:
        return np.zeros((len(table), 1)), np.zeros((len(tags), 1)), np.zeros(1)
    sums, middle = sums[held], np.exp2((steps[held] + 0.5) / _FINE)
    group = tail_groups(np.rint(sums), _GROUPS)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    value = np.add.reduceat(sums * middle, first) / np.add.reduceat(sums, first)
    return np.add.reduceat(table[:, held], first, axis=1), np.add.reduceat(tags[:, held], first, axis=1), value


def tails_of(log: HistogramLog, whole: Histogram | None = None) -> Tails:
    """Return a log as slots of time × groups of buckets, in one pass.

    Parameters
    ----------
    log : HistogramLog
    whole : Histogram, optional
        ``log.histogram()``, in the log's unit, where it is known already.
    """
    times, moment = np.unique(log.starts, return_inverse=True)
    most = _SLOTS if times.size <= 4 * _SLOTS else _LARGE
    slot = moment.reshape(-1) // max(1, math.ceil(times.size / most))
    slots = int(slot.max(initial=-1)) + 1
    codes = np.unique(np.asarray(log.tag_of_rows(), object), return_inverse=True)[1].reshape(-1)
    fold = _Table(slot, slots, codes, int(codes.max(initial=0)) + 1)
    counted = log.histogram_and(fold) if whole is None else whole
    if whole is not None:
        log.scan(fold)
    start, end = np.full(slots, np.inf), np.full(slots, -np.inf)
    np.minimum.at(start, slot, log.starts)
    np.maximum.at(end, slot, log.starts + log.lengths)
    table, tags, value = fold.found()
    seconds = fold.longest * (NANOSECONDS.get(log.unit, 0.0) / 1e9)
    return Tails(counted, table, value, start, end - start, seconds, tags)


def tails_of_requests(moment: Ints, value: Ints, open_above: Ints, tag: Ints | None, whole: Histogram) -> Tails:
    """Return requests as slots of time × groups of latencies.

    Parameters
    ----------
    moment : ndarray of int64, shape (n,)
        When each request began, nanoseconds from the first on.
    value : ndarray of int64, shape (n,)
        Latencies.
    open_above : ndarray of int64
        When those began of which is only known that they took longer than `whole.censored_at`.
    tag : ndarray of int64, shape (n,), optional
        Code of each request's tag.
    whole : Histogram
    """
    begin = np.concatenate((moment, open_above))
    elapsed = max(int(begin.max(initial=0)) + 1, 1)
    slots = int(min(max(elapsed / 1e9 if elapsed >= 30e9 else 240, 1), _SLOTS, max(begin.size // 4, 1)))
    slot = np.minimum((begin * (slots / elapsed)).astype(np.int64), slots - 1)
    steps, column = np.unique(column_of(value.astype(np.float64)), return_inverse=True)
    top = column_of(np.array([max(whole.censored_at, whole.max)]))[0] + 1 if open_above.size else 0
    column = np.concatenate((column.reshape(-1), np.full(open_above.size, steps.size)))
    steps = np.append(steps, top) if open_above.size else steps
    table = np.bincount(slot * steps.size + column, minlength=slots * steps.size).astype(np.float64).reshape(slots, -1)
    codes = np.zeros(moment.size, np.int64) if tag is None else tag
    kinds = int(codes.max(initial=0)) + 1
    flat = codes * steps.size + column[: moment.size]
    tags = np.bincount(flat, minlength=kinds * steps.size).astype(np.float64).reshape(kinds, -1)
    table, tags, middle = grouped(table, tags, steps)
    width = float(elapsed) / 1e9 / slots
    starts = np.arange(slots, dtype=np.float64) * width
    return Tails(whole, table, middle, starts, np.full(slots, width), np.zeros(slots), tags)
