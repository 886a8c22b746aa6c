"""How far the numbers of a measurement can be trusted: events, support, confidence intervals.

`evidence()` of samples, logs and histograms has one interface. `Evidence` works without time, by
ranks, assuming independent requests; `TimedSupport` uses time, and `Jackknife` what varies with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from latencykit._arrays import Value, as_positions
from latencykit._records import record
from latencykit._text import format_items
from latencykit._typing import AnyArray, Floats, Ints
from latencykit.core.buckets import Buckets, HdrBuckets
from latencykit.core.jackknife import RULE, Jackknife, spread
from latencykit.core.kernel import tabulate
from latencykit.core.percentile_rows import (
    Doubt,
    PercentileRow,
    columns_at,
    highest_pinned_down,
    rows_of,
)
from latencykit.core.probability import normal_quantile, student_quantile
from latencykit.core.quantiles import nonzero, running_sums

if TYPE_CHECKING:
    from latencykit.core.blocks import Block


_SLIVER = 1.5  # of the requests above: p90 and p95 are a factor of 2 apart


def tail_shares(counts: ArrayLike, percentiles: ArrayLike) -> tuple[Ints, Floats]:
    """Return where each percentile cuts the counts: the bucket, and which part of it lies above."""
    numbers = np.asarray(counts, np.int64)
    cumulative, p = np.cumsum(numbers), np.atleast_1d(np.asarray(percentiles, np.float64))
    below = cumulative[-1] * (p / 100.0)
    # A cut on the edge of a bucket may miss it by rounding; an empty bucket cannot be cut.
    at = np.searchsorted(cumulative, below * (1 - 1e-12), "left")
    at = np.minimum(at, numbers.size - 1)
    share = (cumulative[at] - below) / np.maximum(numbers[at], 1)
    share = np.minimum(np.maximum(share, 0.0), 1.0)
    return at.astype(np.int64), np.where(share < 1e-9, 0.0, share)


def tail_counts(
    indptr: Ints, index: Ints, counts: Ints, position: ArrayLike, shares: ArrayLike
) -> Floats:
    """Return how many requests of each interval lie above each percentile."""
    cut, part = np.asarray(position, np.int64), np.asarray(shares, np.float64)
    size = 1 + max(int(index.max(initial=0)), int(cut.max(initial=0)))
    begins = np.arange(indptr.size - 1, dtype=np.int64) * size
    places = np.repeat(begins, as_positions(np.diff(indptr))) + index  # ascends throughout
    edges = begins[:, None] + cut
    running = running_sums(counts)
    first, after = (
        running[np.searchsorted(places, edges)],
        running[np.searchsorted(places, edges, "right")],
    )
    return np.asarray(running[indptr[1:], None] - after + part * (after - first))


# ------------------------------------------------------------
# The intervals of every command.


@record(eq=False)
class Evidence(Value):
    """Intervals of the statistics of one measurement."""

    whole: Any  # the histogram of all requests

    @property
    def jackknife(self) -> Jackknife | None:
        """How statistics vary between parts of the run; None where times are unknown."""
        return None

    @property
    def failures(self) -> Jackknife | None:
        """How the share of failed requests varies over the run; None where times are unknown."""
        return None

    def doubts(self, confidence: float = 0.95) -> tuple[Doubt, ...]:
        """Return the ranges of percentiles that the run does not support, ascending."""
        # Counts know how many requests lie above a percentile. The data that they were counted
        # from, or the file, may know more.
        kept = vars(self.whole).setdefault("_doubts", {})  # a copy no longer knows its origin
        if confidence not in kept:
            origin = vars(self.whole).get("_origin")
            richer = None if origin is None else origin.evidence(self.whole)
            if isinstance(richer, TimedSupport):
                kept[confidence] = richer.doubts(confidence)
            else:
                limit = self.whole.sample_limit(confidence=confidence)
                stated = self.whole.run.supported
                few: tuple[Doubt, ...] = (Doubt(limit, 100.0, "few requests"),)
                if stated is not None and stated < limit:
                    few = (Doubt(stated, limit, "as stated"), *few)
                kept[confidence] = few
        return tuple(kept[confidence])

    def supported_up_to(self, confidence: float = 0.95) -> float:
        """Return the highest percentile below 100 that the run supports."""
        limit = 100.0
        for doubt in reversed(self.doubts(confidence)):
            if doubt.last < limit:
                break
            limit = doubt.first
        return limit

    def rows(
        self, percentiles: Sequence[float], confidence: float = 0.95
    ) -> tuple[list[PercentileRow], tuple[str, ...]]:
        """Return percentiles with their intervals, and the reasons why some have none."""
        p = np.array([float(one) for one in percentiles])
        return rows_of(columns_at(self.whole, p, confidence, self.doubts(confidence))), ()

    def supported_rows(
        self, percentiles: Sequence[float], confidence: float = 0.95
    ) -> list[PercentileRow]:
        """Return the percentiles that `rows` gives, without intervals and events: much faster."""
        p = np.asarray(percentiles, np.float64)
        doubts = self.doubts(confidence)
        return rows_of(columns_at(self.whole, p, confidence, doubts, bounded=False))

    def mean(self, name: str = "mean", confidence: float = 0.95) -> tuple[float, float]:
        """Return how far a mean may lie below and above the sample's; infinite where open."""
        from latencykit.core.trimmed import ranks_of_mean

        ends = ranks_of_mean(name)
        if ends is None or not self.whole.count:
            return 0.0, 0.0
        counted = self.whole.counted.nonzero()
        shares = counted.cumulative / counted.count
        first, last = (
            counted.middle[min(int(np.searchsorted(shares, end - 1e-12)), shares.size - 1)]
            for end in ends
        )
        kept = np.clip(counted.middle, first, last)
        mean = float((kept * counted.counts).sum() / counted.count)
        spread = (
            math.sqrt(max(float(((kept - mean) ** 2 * counted.counts).sum()), 0.0))
            / counted.count
            / (ends[1] - ends[0])
        )
        if name == "mean":
            spread = self.whole.bounds("std")[1] / math.sqrt(counted.count)
        error = normal_quantile((1 + confidence) / 2) * spread * math.sqrt(counted.repeats)
        return error, error

    def highest_supported_percentile(self, *, confidence: float = 0.95) -> float:
        """Return the highest percentile that the run supports and the buckets resolve."""
        return highest_pinned_down(self.whole, self.supported_up_to(confidence))


@record(eq=False)
class TimedSupport(Evidence):
    """A measurement as time bins × groups of buckets, fine in the tail, of bounded size."""

    table: AnyArray  # (slots, groups): counts, unsigned, in order of time
    value: Floats  # (groups,): middle of each
    start: Floats  # (slots,): seconds
    length: Floats  # (slots,): seconds
    failed: Floats | None = None  # (slots,), where that is known

    def events(self, percentiles: Sequence[float]) -> Floats:
        """Return as how many independent requests those above each percentile count."""
        # Their number varies as much between parts of the run: a stall is one event, however many
        # requests it hit. NaN where the run is too short to show it.
        blocks = self.jackknife.blocks(min(RULE.blocks, max(self.jackknife.bins, 1)))
        above = _above(blocks, *tail_shares(self._counts, percentiles))
        if len(blocks) < RULE.min_doubted_bins:
            return np.full(above.shape[1], math.nan)
        size, part = blocks.sum(axis=1)[:, None], above.sum(axis=0)
        share, whole = part / size.sum(), size.sum()
        error = spread((part - above) / (whole - size))
        chance = share * (1 - share) / whole
        return np.asarray(part * np.minimum(chance / np.maximum(error**2, 1e-300), 1))

    def above(self, percentile: float) -> Floats:
        """Return how many requests of each slot lie above a percentile."""
        return _above(self.table, *tail_shares(self._counts, [percentile]))[:, 0]

    @cached_property
    def _counts(self) -> Ints:
        return np.asarray(np.rint(self.table.sum(axis=0)), np.int64)

    def doubts(self, confidence: float = 0.95) -> tuple[Doubt, ...]:
        """Return the ranges of percentiles that the run does not support, ascending."""
        if confidence not in self._doubts:
            limit = self.whole.sample_limit(confidence=confidence)
            timed = [
                replace(one, last=min(one.last, limit))
                for one in self.jackknife.doubts(confidence)
                if one.first < limit
            ]
            every = (*timed, Doubt(limit, 100.0, "few requests"))
            # What remains between two of them by a hair is not known.
            self._doubts[confidence] = tuple(
                replace(one, last=after.first)
                if one.last < after.first < 100 and 100 - one.last < _SLIVER * (100 - after.first)
                else one
                for one, after in zip(every, (*every[1:], Doubt(100.0, 100.0, "")), strict=True)
            )
        return self._doubts[confidence]

    @cached_property
    def _doubts(self) -> dict[float, tuple[Doubt, ...]]:
        return {}

    @cached_property
    def jackknife(self) -> Jackknife:
        """How statistics vary between parts of the run."""
        return Jackknife(self.table, self.value, self._seconds)

    @property
    def failures(self) -> Jackknife | None:
        """How the share of failed requests varies; None where it is not known when they failed."""
        if self.failed is None:
            return None
        good = self.table.sum(axis=1)
        return Jackknife(np.stack((good, self.failed), axis=1), np.array([0.0, 1.0]), self._seconds)

    def rows(
        self, percentiles: Sequence[float], confidence: float = 0.95
    ) -> tuple[list[PercentileRow], tuple[str, ...]]:
        """Return percentiles with confidence intervals and events, and why some have none."""
        # They are at least as wide as those of independent requests; corrected counts have none.
        p = np.array([float(one) for one in percentiles])
        inner = np.flatnonzero((p > 0) & (p < 100))
        columns = columns_at(self.whole, p, confidence, self.doubts(confidence))
        if not inner.size or not self.whole.count:
            return rows_of(columns), ()
        p, low, high = p[inner], columns["low"], columns["high"]
        events = np.maximum(np.rint(self.events(p.tolist())), 1)
        columns["events"][inner] = [None if math.isnan(one) else int(one) for one in events]
        if not self.jackknife.known:
            low[inner] = high[inner] = math.nan
            bins = format_items(self.jackknife.bins, "time bin")
            return rows_of(columns), (f"{bins}: a confidence interval needs {RULE.min_bins}",)
        bottom, top = columns["bucket_low"][inner], columns["bucket_high"][inner]
        down, up = self.jackknife.errors(p)
        factor, widest = student_quantile(confidence, RULE.blocks - 1), math.log(RULE.widest)
        useless = np.isfinite(top) & (top > 0) & (factor * np.maximum(down, up) > widest)
        # No part of the run is faster than its fastest.
        least = np.maximum(bottom * np.exp(-factor * down), self.jackknife.of_blocks(p).min(axis=0))
        further = np.multiply(top, np.exp(factor * up), out=top.copy(), where=top > 0)
        low[inner] = np.where(useless, np.nan, np.fmin(low[inner], np.minimum(least, bottom)))
        high[inner] = np.where(useless, np.nan, np.fmax(high[inner], further))
        return rows_of(columns), ()

    def mean(self, name: str = "mean", confidence: float = 0.95) -> tuple[float, float]:
        """Return how far a mean may lie below and above the sample's; see `Evidence.mean`."""
        from latencykit.core.trimmed import ranks_of_mean

        usual, ends = super().mean(name, confidence), ranks_of_mean(name)
        if ends is None or not self.whole.count:
            return (math.inf, math.inf) if self.whole.count else (0.0, 0.0)
        if not self.jackknife.known:
            return math.inf, math.inf
        down, up = self.jackknife.mean_errors(*ends)
        factor, mean = student_quantile(confidence, RULE.blocks - 1), self.whole.mean
        below, above = mean * -math.expm1(-factor * down), mean * math.expm1(factor * up)
        return max(below, usual[0]), max(above, usual[1])

    @property
    def _seconds(self) -> float:
        """How long the measurement took, without gaps."""
        return float(self.length.sum())


@record(eq=False)
class OrderedSupport(TimedSupport):
    """Support of samples without times: rows of the table are neighbouring requests."""

    @property
    def _seconds(self) -> float:
        return self.whole.run.duration or math.nan


def _above(table: AnyArray, group: Ints, share: Floats) -> Floats:
    """Requests of each row above each cut, shape (rows, p)."""
    # Sums between the cuts suffice; counts are whole, so the order of adding does not matter.
    cuts, place = np.unique(group, return_inverse=True)
    beyond, inner = np.zeros((cuts.size, len(table))), cuts < table.shape[1] - 1
    if inner.any():
        beyond[inner] = np.add.reduceat(table, as_positions(cuts[inner] + 1), axis=1).T
    beyond = np.cumsum(beyond[::-1], axis=0)[::-1]
    return (beyond[place.reshape(-1)] + table.T[group] * share[:, None]).T


def tails_of_requests(moment: Ints, value: Ints, open_above: Ints, whole: Any) -> TimedSupport:
    """Return requests as slots of time × groups of latencies."""
    begin = np.concatenate((moment, open_above))
    elapsed = max(int(begin.max(initial=0)) + 1, 1)
    slots = int(
        min(max(elapsed / 1e9 if elapsed >= 30e9 else 240, 1), MOST_BINS, max(begin.size // 4, 1))
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
    table, middle = grouped(table, steps)
    width = float(elapsed) / 1e9 / slots
    starts = np.arange(slots, dtype=np.float64) * width
    return TimedSupport(whole, table, middle, starts, np.full(slots, width))


# ------------------------------------------------------------
# Counts per time bin in columns of one relative width.

MOST_BINS = 4096
"""Time bins of a table at most: more intervals are put together with their neighbours."""
_GROUPS = 400  # of latencies at most, once all is read
_FINE = 64  # columns per doubling of the latency while a log is read: 1.1 % wide
_MORE = 64  # columns for what comes later; each row takes them, and more of them take memory
_ROWS_AT_ONCE = 64  # rows of a large table that are put together at a time


class TailTable:
    """A fold: counts per time bin, in columns of one relative width for all layouts."""

    def __init__(self, slot: Ints, slots: int) -> None:
        self.slot, self.table = slot, np.zeros((slots, 0))
        self._steps = np.zeros(0, np.int64)  # of each column
        self._columns: dict[Buckets, Ints] = {}

    def add(self, block: Block) -> None:
        """Take a block in."""
        if not block.counts.size:
            return
        buckets, size = block.buckets, block.width
        column = self._columns.get(buckets, np.zeros(0, np.int64))  # of each bucket of the layout
        if column.size < size:
            if isinstance(buckets, HdrBuckets):  # without end; spares doing it often
                size += -size % 1024
            every = column_of(buckets.high(np.arange(column.size, size)))
            steps, place = np.unique(every, return_inverse=True)
            fresh = steps[~np.isin(steps, self._steps)]
            self._steps = np.concatenate((self._steps, fresh))
            order = np.argsort(self._steps)
            columns = order[np.searchsorted(self._steps, steps, sorter=order)]
            column = self._columns[buckets] = np.concatenate((column, columns[place]))
            more = self._steps.size - self.table.shape[1]
            if more > 0:
                self.table = np.pad(self.table, ((0, 0), (0, more + _MORE)))
        slot = self.slot[block.rows]
        tabulate(self.table, slot, block.indptr, block.index, block.counts, column)

    def groups(self) -> tuple[AnyArray, Floats]:
        """Table and values of the groups, ascending."""
        return grouped(self.table, self._steps)


def column_of(values: Floats) -> Ints:
    """The column of each value, by its logarithm."""
    return np.asarray(np.floor(_FINE * np.log2(np.maximum(values, 2.0**-40))), np.int64)


def grouped(table: Floats, steps: Ints) -> tuple[AnyArray, Floats]:
    """Put columns together to some hundred, fine in the tail, empty ones left out."""
    sums = table[:, : steps.size].sum(axis=0)
    held = nonzero(sums)
    held = held[np.argsort(steps[held])]
    if not held.size:
        return np.zeros((len(table), 1)), np.zeros(1)
    sums, middle = sums[held], np.exp2((steps[held] + 0.5) / _FINE)
    group = tail_groups(np.rint(sums))
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    value = np.add.reduceat(sums * middle, first) / np.add.reduceat(sums, first)
    out = np.empty((len(table), first.size))
    for row in range(0, len(table), _ROWS_AT_ONCE):  # the table may be large
        some = table[row : row + _ROWS_AT_ONCE, held]
        np.add.reduceat(some, first, axis=1, out=out[row : row + _ROWS_AT_ONCE])
    # In few bytes: of a log each tag has a table.
    return out.astype(np.min_scalar_type(int(out.max()))), value


def tail_groups(counts: ArrayLike) -> Ints:
    """Return a group for each bucket: some hundred groups, fine in the tails."""
    numbers = np.asarray(counts, np.float64)
    if numbers.size <= _GROUPS:
        return np.arange(numbers.size)
    share = (np.cumsum(numbers) - numbers / 2 + 0.25) / (numbers.sum() + 0.5)
    odds = np.log(share / (1 - share))
    width = (odds[-1] - odds[0]) / _GROUPS or 1.0
    group = np.minimum(np.floor((odds - odds[0]) / width), _GROUPS - 1)
    return np.unique(group, return_inverse=True)[1].astype(np.int64)
