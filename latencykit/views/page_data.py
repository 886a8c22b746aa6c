"""A log at the resolution of a page: some hundred time bins, with exact counts, sums and maxima.

A day of a busy server is 300 MB on disk. Intervals are put together into time bins (slots), as
`HistogramLog.resample` does it. The buckets are those of the log where they are few; of many, each
goes into the coarser one of two digits that contains it. So counts stay exact, and so do each
slot's maximum and sum, which are kept beside them; a percentile is the highest value of its bucket,
at most 0.8 % above that of the log.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._records import record
from latencykit.core.blocks import Block, MemoryPart, block_of_rows, feed
from latencykit.core.buckets import EdgeBuckets, HdrBuckets
from latencykit.core.distribution import Distribution
from latencykit.core.histogram import STANDARD_PERCENTILES, Histogram, brackets_at
from latencykit.core.histogram_log import HistogramLog, slot_edges, slot_numbers
from latencykit.core.quantiles import occupied
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.core.summary import Summary
from latencykit.plot.curves import curve_of, place_of
from latencykit.plot.style import BLUE, COLOURS, RED, series_styles, shorten
from latencykit.units import format_count
from latencykit.views.record import exact_row, number, series_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from latencykit.core.buckets import Buckets

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = [
    "DIGITS",
    "MOST",
    "PAGE_SIZE",
    "PageSeries",
    "Slots",
    "bin_width",
    "edges_of",
    "finer",
    "finest",
    "fitted",
    "most_slots",
    "nice_width",
    "numbers",
    "packed",
    "page_series",
    "script_json",
    "short_names",
    "slots_of",
    "started",
    "with_short_names",
]


MOST, DIGITS, FINE = 300, 2, 600_000
"""Slots of a page, and the digits of its buckets where it would have more counts than FINE."""

_LEAST_FINE = 50_000
"""The counts that a series may have, however many share the page."""

_WIDTHS = (
    *(step * 10.0**power for power in range(-6, 0) for step in (1, 2, 5)),
    *(1.0, 2.0, 5.0, 10.0, 20.0, 30.0),
    *(60.0 * minutes for minutes in (1, 2, 5, 10, 20, 30)),
    *(3600.0 * hours for hours in (1, 2, 3, 6, 12, 24, 48, 168, 336, 720, 2160, 8760)),
)
"""Widths of a slot in seconds that people are used to."""


@record(eq=False)
class Slots:
    """Counts of a series, slot by slot, in order of time.

    Attributes
    ----------
    start, end : ndarray of float64, shape (slots,)
        Seconds from the log's start.
    max, sum : ndarray of float64, shape (slots,)
        The highest value, NaN where nothing was counted, and the sum of the buckets' middles, at
        full resolution.
    indptr : ndarray of int64, shape (slots + 1,)
    index, counts : ndarray of int64, shape (entries,)
        Slot s has ``counts[indptr[s]:indptr[s + 1]]`` in the buckets ``index[…]``, which ascend.
    low, high : ndarray of float64, shape (buckets,)
        Edges of the buckets; upper ones ascend.
    width : float or None
        Seconds of a slot where slots lie on a grid (slot k is k · width ≤ t < (k + 1) · width);
        None where each is one interval of the log.
    decoded : int
        Number of counts of the slots at the log's full resolution.
    rough : ndarray of float64, shape (buckets, 2), or None
        Edges of the bucket of two digits that contains each; None where the buckets are these.
    """

    start: Floats
    end: Floats
    max: Floats
    sum: Floats
    indptr: Ints
    index: Ints
    counts: Ints
    low: Floats
    high: Floats
    width: float | None
    decoded: int
    rough: Floats | None = None

    def log(self, unit: str) -> HistogramLog:
        """Return the slots as a log: the series at the page's resolution."""
        block = Block(
            np.arange(self.start.size),
            self.indptr,
            self.index,
            self.counts,
            EdgeBuckets(self.low, self.high),
        )
        return HistogramLog(self.start, self.end - self.start, [MemoryPart([block])], unit=unit)

    def coarser(self) -> Slots:
        """Return the same slots with buckets of two digits."""
        if self.rough is None:
            return self
        table, column = np.unique(self.rough, axis=0, return_inverse=True)
        row = np.repeat(np.arange(self.start.size), np.diff(self.indptr))
        indptr, index, counts = _summed(
            row, column.reshape(-1)[self.index], self.counts, self.start.size
        )
        return replace(
            self,
            indptr=indptr,
            index=index,
            counts=counts,
            low=table[:, 1],
            high=table[:, 0],
            rough=None,
        )

    def wider(self) -> Slots:
        """Return slots of at least twice the width, each of them made of entire slots."""
        usual = self.width or float(np.median(self.end - self.start))
        width = nice_width(2 * usual, of=self.width)
        group = slot_numbers(self.start, width)
        first = np.flatnonzero(np.diff(group, prepend=group[:1] - 1))
        rank = np.cumsum(np.diff(group, prepend=group[:1]) > 0, dtype=np.int64)
        row = np.repeat(rank, np.diff(self.indptr))
        indptr, index, counts = _summed(row, self.index, self.counts, first.size)
        return replace(
            self,
            start=self.start[first],
            end=np.maximum.reduceat(self.end, first),
            max=np.fmax.reduceat(self.max, first),
            sum=np.add.reduceat(self.sum, first),
            indptr=indptr,
            index=index,
            counts=counts,
            width=width,
        )


def started(samples: Samples, most: int = MOST, digits: int = 3) -> HistogramLog:
    """Return the good requests counted into intervals by the moment that they were sent.

    There are at most `most` intervals of a hundred requests or so each, but at least eight. Their
    edges are those that `Samples.between` cuts at.
    """
    offset, good, buckets = samples.offsets, samples.good, HdrBuckets(digits)
    span = float(np.ptp(offset))
    width = nice_width(min(max(span / (most - 2), 100 * span / len(samples)), span / 20))
    slot = slot_numbers(offset, width)  # failed requests have their place in time, too
    first = int(slot.min())
    size = int(slot.max()) + 1 - first
    block = block_of_rows(slot[good] - first, buckets.index_of(samples.values[good]), size, buckets)
    starts = slot_edges(first + np.arange(size, dtype=np.float64), width)
    return HistogramLog(
        starts, np.full(size, width), [MemoryPart([block])], unit=samples.unit, run=samples.run
    )


def slots_of(log: HistogramLog, most: int = MOST, fine: int = FINE) -> tuple[Slots, Histogram]:
    """Return a log's slots, and the exact sum of all intervals, from one pass over its payloads."""
    view = log.rows(np.argsort(log.starts, kind="stable"))
    typical = float(np.median(view.lengths))
    overlap = (view.starts + view.lengths)[:-1] - view.starts[1:] > 0.5 * typical
    overlaps = len(view) > 1 and bool(np.mean(overlap) > 0.02)
    width = None  # each interval is a slot: they are few, and none overlaps another
    if len(view) > most or overlaps:
        width = nice_width(max(view.duration / most, typical if overlaps else 0.0))
        view = view.resample(width)
    fold, totals = _SlotsFold(len(view), fine), view.totals_fold()
    log.expect((50,))
    feed(view.blocks(), (fold, totals))
    slots = fold.slots(view.starts, view.starts + view.lengths, width)
    return slots if slots.index.size <= fine else slots.coarser(), view.histogram_of(totals)


def nice_width(width: float, of: float | None = None) -> float:
    """Return a familiar width in seconds, at least the one given, and a multiple of `of`."""
    wider = (step for step in _WIDTHS if step >= width * (1 - 1e-9))
    if of is None:
        return next(wider, width)
    return next((step for step in wider if abs(step / of - round(step / of)) < 1e-9), 2 * of)


class _SlotsFold:
    """Collects each slot's buckets, its maximum and its sum."""

    def __init__(self, size: int, fine: int) -> None:
        self._decoded, self._fine, self._rough = 0, fine, False
        self.max, self.sum = np.full(size, np.nan), np.zeros(size)
        self._parts: dict[Buckets, list[tuple[Ints, Ints, Ints]]] = {}
        self._sizes: Counter[Buckets] = Counter()
        self._tables: dict[Buckets, tuple[Floats, Buckets, Ints]] = {}

    def add(self, block: Block) -> None:
        """Take a block in; once a layout has too many counts, only rough ones are kept."""
        buckets, index = block.buckets, block.index
        if not index.size:
            return
        self._decoded += index.size
        filled = np.flatnonzero(np.diff(block.indptr))
        last = index[block.indptr[filled + 1] - 1]
        slot = block.rows[filled]
        self.max[slot] = np.fmax(self.max[slot], buckets.high(last))
        row = block.rows[block.entry_rows]
        np.add.at(self.sum, row, block.counts * self._of(buckets, index)[0])
        self._put(buckets, row, index, block.counts)
        if not self._rough and self._sizes[buckets] > self._fine:
            self._rough, parts, self._parts = True, self._parts, {}
            for layout, some in parts.items():
                for part in some:
                    self._put(layout, *part)

    def _put(self, buckets: Buckets, row: Ints, index: Ints, counts: Ints) -> None:
        if self._rough:
            _, buckets, index = self._of(buckets, index)
            row, index, counts = _merged(row, index, counts)
        self._parts.setdefault(buckets, []).append((row, index, counts))
        self._sizes[buckets] += index.size

    def _of(self, buckets: Buckets, index: Ints) -> tuple[Floats, Buckets, Ints]:
        """Middle of each bucket, and its bucket in a layout of two digits, with that layout."""
        width = int(index.max()) + 1
        if width > index.size:
            return buckets.mid(index), *_coarser(buckets, index)
        if buckets not in self._tables or self._tables[buckets][0].size < width:
            full = np.arange(width)
            self._tables[buckets] = buckets.mid(full), *_coarser(buckets, full)
        middle, layout, coarse = self._tables[buckets]
        return middle[index], layout, coarse[index]

    def slots(self, start: Floats, end: Floats, width: float | None) -> Slots:
        """Return the slots, the buckets of all layouts side by side."""
        rows, columns, counts = ([np.zeros(0, np.int64)] for _ in range(3))
        edges, size = [np.zeros((0, 4))], 0
        for layout, parts in self._parts.items():
            used, place = np.unique(
                np.concatenate([index for _, index, _ in parts]), return_inverse=True
            )
            rough, coarse = _coarser(layout, used)
            ends = (layout.high(used), layout.low(used), rough.high(coarse), rough.low(coarse))
            edges.append(np.stack(ends, 1))
            rows += [row for row, _, _ in parts]
            columns.append(place.reshape(-1) + size)
            counts += [number for _, _, number in parts]
            size += used.size
        table, column = np.unique(np.concatenate(edges), axis=0, return_inverse=True)
        place = column.reshape(-1)[np.concatenate(columns)]
        indptr, index, number = _summed(
            np.concatenate(rows), place, np.concatenate(counts), start.size
        )
        return Slots(
            start=start,
            end=end,
            max=self.max,
            sum=self.sum,
            indptr=indptr,
            index=index,
            counts=number,
            low=table[:, 1],
            high=table[:, 0],
            width=width,
            decoded=self._decoded,
            rough=None if self._rough else table[:, 2:],
        )


def _coarser(buckets: Buckets, index: Ints) -> tuple[Buckets, Ints]:
    """The layout of two digits whose buckets contain those given, and the index of each in it."""
    if not isinstance(buckets, HdrBuckets) or buckets.digits <= DIGITS:
        return buckets, index
    plain = HdrBuckets(DIGITS, buckets.lowest)
    coarse = plain.index_of(buckets.high_steps(index))
    return HdrBuckets(DIGITS, buckets.lowest, buckets.scale), coarse


def _summed(row: Ints, index: Ints, counts: Ints, rows: int) -> tuple[Ints, Ints, Ints]:
    """Counts of equal row and index added up, in order: indptr, index, counts."""
    row, index, counts = _merged(row, index, counts)
    return np.searchsorted(row, np.arange(rows + 1)).astype(np.int64), index, counts


def _merged(row: Ints, index: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Counts of equal row and index added up, in order."""
    keys = row * (int(index.max(initial=0)) + 1) + index
    if (keys[1:] < keys[:-1]).any():
        order = np.argsort(keys, kind="stable")
        row, index, keys, counts = row[order], index[order], keys[order], counts[order]
    first = occupied(np.diff(keys, prepend=-1))
    total = np.add.reduceat(counts, first) if first.size else np.zeros(0, np.int64)
    return row[first], index[first], total


# ------------------------------------------------------------
# Data as text that is safe inside a page: JSON that ends no script, and bytes that deflate well.


def script_json(value: Any) -> str:
    r"""Return JSON for an inline script: ASCII without the characters that HTML interprets."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def numbers(values: ArrayLike) -> list[float | int | None]:
    """Return numbers as JSON has them; what is not finite becomes null."""
    array = np.asarray(values, np.float64)
    finite = np.isfinite(array)
    integers = np.flatnonzero(finite & (np.trunc(array) == array) & (np.abs(array) < 2.0**62))
    cells = np.where(finite, array, None)  # type: ignore[call-overload]
    cells[integers] = array[integers].astype(np.int64)
    plain: list[float | int | None] = cells.tolist()
    return plain


def packed(slots: Slots) -> dict[str, Any]:
    """Return slots as the page's ``data.js`` unpacks them.

    Edges are doubles; lengths, differences of indices, and counts are integers of as many bytes as
    the largest of them needs, a plane of bytes at a time, lowest bytes first. All of it is
    deflated, and base64 makes it text.
    """
    lengths = np.diff(slots.indptr)
    deltas = np.diff(slots.index, prepend=-1)
    first = slots.indptr[:-1][lengths > 0]
    deltas[first] = slots.index[first] + 1
    parts = [slots.low.astype("<f8").tobytes(), slots.high.astype("<f8").tobytes()]
    widths = []
    for column in (lengths, deltas, slots.counts):
        width = max(1, (int(column.max(initial=0)).bit_length() + 7) // 8)
        widths.append(width)
        parts.append(column.astype("<u8").view(np.uint8).reshape(-1, 8).T[:width].tobytes())
    return {
        "start": numbers(slots.start),
        "end": numbers(slots.end),
        "max": numbers(slots.max),
        "sum": numbers(slots.sum),
        "width": slots.width,
        "buckets": int(slots.low.size),
        "entries": int(slots.index.size),
        "widths": widths,
        "bytes": base64.b64encode(zlib.compress(b"".join(parts))).decode("ascii"),
    }


# ------------------------------------------------------------
# From data types to what a page draws: counts by slot where time is known, otherwise a curve,
# otherwise the points that a tool reports.

PAGE_SIZE = 2_000_000
"""Usual limit of a page in bytes: slots grow wider where it would be longer."""

_MOST_FINER = 3000
"""Most slots of a page that may be longer."""

_CHOSEN = 12
"""Percentiles that somebody chose to report; more are the rows of a spectrum."""

_SHORT, _LABEL = 60, 14
"""Most characters of a series' name in a table, and beside a curve."""

_BAND, _POINTS, _A_NINE = 80, 4000, 1000
"""Points of the band along a curve, most points of a curve, and those of a nine kept of more."""


@record(eq=False)
class PageSeries:
    """One series of a page.

    Attributes
    ----------
    name : str
    data : Samples, HistogramLog, Histogram, Summary or Distribution
    counted : Histogram, Summary or Distribution
        All of it, at full resolution.
    slots : Slots or None
        None where the source knows no time.
    look : tuple of str
        Classes of its colour and of its dash.
    shadow : bool
        Derived from another one (corrected): a curve and numbers, but no timeline of its own.
    supplied : tuple of float and str, optional
        The percentile above which a correction supplies the values, and what it is derived from.
    over_time : HistogramLog, optional
        What a corrected series' slots are made of.
    short, label : str
        The name for tables and legends, and the one beside a curve; distinct on a page.
    """

    name: str
    data: Any
    counted: Any
    slots: Slots | None
    look: tuple[str, str]
    shadow: bool = False
    supplied: tuple[float, str] | None = None
    over_time: HistogramLog | None = None
    short: str = ""
    label: str = ""

    @cached_property
    def packed(self) -> dict[str, Any] | None:
        """The slots as the page unpacks them, with failures where their time is known."""
        if self.slots is None:
            return None
        # A stall began before the interval in which it is recorded.
        reaching = isinstance(self.data, HistogramLog) and self.data.unit == "ns"
        text = packed(self.slots) | {"reaching": reaching}
        if isinstance(self.data, Samples) and self.data.outcome is not None:
            size = self.slots.start.size
            failed = np.bincount(self._slot_of(~self.data.good), minlength=size)
            text["failed"] = failed.tolist()
            late = self.data.outcome == OUTCOMES.index("timeout")
            if late.any():
                slot, bound = self._slot_of(late), np.full(size, np.inf)
                np.minimum.at(bound, slot, self.data.values[late].astype(np.float64))
                text["timeouts"] = np.bincount(slot, minlength=size).tolist()
                text["bound"] = numbers(bound)
        return text

    @cached_property
    def packed_size(self) -> int:
        """Characters that the slots take in a page."""
        return len(script_json(self.packed)) if self.packed else 0

    @property
    def begin(self) -> float:
        """The first request on the time axis of the whole run, in seconds: the origin of stalls."""
        timed = isinstance(self.data, Samples) and self.data.start is not None and len(self.data)
        return float(self.data.offsets.min()) if timed else 0.0

    def _slot_of(self, which: Any) -> Any:
        """The slot in which each of the chosen requests was sent."""
        assert self.slots is not None
        return _slot_at(self.slots, self.data.offsets[which])

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """The record of the whole run, as `latencykit summary` prints it."""
        if not isinstance(self.counted, Distribution):
            histogram = None if isinstance(self.counted, Summary) else self.counted
            return series_record(self.name, self.data, histogram=histogram)
        model = self.counted  # has no count and no confidence
        return {
            "name": self.name,
            "rung": "model",
            "unit": model.unit,
            "count": None,
            "mean": number(model.mean),
            "std": None,
            "percentiles": [
                exact_row(p, float(model.percentile(p))) for p in STANDARD_PERCENTILES[:-1]
            ],
            "highest_supported_percentile": 100.0,
            "supported_up_to": 100.0,
            "ranges": {},
            "tail_note": None,
            "findings": [],
            "notes": list(model.run.notes),
        }

    def rows(self, percentiles: Sequence[float]) -> dict[float, dict[str, Any]]:
        """Percentile → row of the whole run, of those that the source knows."""
        rows = {row["percentile"]: row for row in self.numbers["percentiles"]}
        if isinstance(self.counted, Summary) and "max" in self.counted.stats:
            rows.setdefault(100.0, exact_row(100.0, self.counted.stats["max"]))
        further = [p for p in percentiles if p not in rows]
        if (
            further
            and isinstance(self.counted, Histogram)
            and self.counted.count + self.counted.censored
        ):
            record = series_record(self.name, self.data, further, histogram=self.counted)
            rows |= {row["percentile"]: row for row in record["percentiles"]}
        return rows

    @property
    def late(self) -> int:
        """Requests that timed out."""
        late: int = self.counted.run.timeouts or getattr(self.counted, "censored", 0)
        return late

    @property
    def further_statistics(self) -> dict[str, float]:
        """Statistics that a tool reports besides those that every record has."""
        stats = self.counted.stats if isinstance(self.counted, Summary) else {}
        return {
            name: value
            for name, value in stats.items()
            if name not in ("mean", "std", "min", "max")
        }

    @property
    def reported_percentiles(self) -> list[tuple[float, float]]:
        """Chosen percentiles that the tool reports, and their values; a spectrum has none."""
        if isinstance(self.counted, Summary):
            return sorted(self.counted.reported_percentiles.items())
        rows = (
            list(zip(*self.counted.reported_percentiles, strict=True))
            if isinstance(self.counted, Histogram)
            else []
        )
        return rows if len(rows) <= _CHOSEN else []

    @property
    def reason(self) -> str:
        """The reason why a curve is missing; empty where there is one."""
        counted = self.counted
        if isinstance(counted, Summary):
            if counted.reported_percentiles:
                return ""
            *others, last = counted.stats or ("a count",)
            names = f"{', '.join(others)} and {last}" if others else last
            return f"The source reports only {names}: it has no distribution to draw."
        if isinstance(counted, Histogram) and not counted.count:
            timed_out = f" {format_count(counted.censored)} timed out." if counted.censored else ""
            return f"No request was answered, so there is nothing to draw.{timed_out}"
        return ""

    def record(self) -> dict[str, Any]:
        """Return what the page's script needs of this series."""
        slots = {} if self.packed is None else {"packed": self.packed}
        return {**self.curve_record, **slots, "short": self.short, "label": self.label}

    @cached_property
    def curve_record(self) -> dict[str, Any]:
        """The series without its slots: look, reported percentiles, the curve of the whole run."""
        counted = self.counted
        record: dict[str, Any] = {
            "name": self.name,
            "cls": self.look[0],
            "dash": self.look[1],
            "shadow": self.shadow,
            "points": [[p, number(v)] for p, v in self.reported_percentiles if 0 < p < 100],
            "reason": self.reason,
        }
        if self.reason or isinstance(counted, Summary):
            return record
        exact = {"mean": number(counted.mean), "limit": 100, "solid": 100}
        if isinstance(counted, Distribution):
            curve = curve_of(counted)
            points = _points(curve.percentile[1:], curve.value[1:], curve.low[1:])
            return record | {"curve": points | {"count": None, "late": 0, "top": curve.top} | exact}
        percentile, words = self.supplied or (self.numbers["supported_up_to"], "")
        if self.slots is not None and self.supplied is None:
            percentile, words = self.data.evidence(counted).solid_up_to()
        limits = {"limit": counted.sample_limit(), "solid": percentile}
        record["curve"] = _curve(counted) | exact | limits
        if counted.run.corrected not in ("us", "tool"):
            record["band"] = self._band()
        return record | {"rests": words}

    def _band(self) -> list[list[float | int | None]]:
        """Confidence intervals along the curve, as far as the sample bounds it."""
        last = -np.log10(max(1 - self.counted.sample_limit() / 100, 1e-12))
        percentiles = 100 * (1 - 10 ** -np.linspace(0, last * (1 - 1e-9), _BAND))
        known = () if isinstance(self.data, Histogram) else (self.counted,)
        rows, _ = self.data.evidence(*known).rows(percentiles.tolist(), 0.95)
        return [
            [row.percentile, number(row.low), number(row.high)]
            for row in rows
            if math.isfinite(row.low) and math.isfinite(row.high)
        ]


def most_slots(series: int, page_size: int) -> tuple[int, int]:
    """Return how many slots each series of a page may have, and how many counts in them."""
    share = max(1.0, page_size / PAGE_SIZE)
    fine = max(FINE / max(series, 1), _LEAST_FINE) * share
    return int(min(MOST * share, _MOST_FINER)), int(fine)


def page_series(named: Mapping[str, Any], page_size: int = PAGE_SIZE) -> list[PageSeries]:
    """Return the series of a page, those over time in slots: more of them on a longer page."""
    styles = series_styles(named)
    most, fine = most_slots(len(named), page_size)
    series = []
    for label, data in named.items():
        slots, counted = None, data
        if isinstance(data, Samples):
            counted = data.histogram()
            if data.start is not None and len(data) and len(log := started(data, most)):
                slots = replace(slots_of(log, most, fine)[0], width=float(log.lengths[0]))
                slots = replace(slots, max=_maxima(data, slots))
        elif isinstance(data, HistogramLog):
            slots, counted = slots_of(data, most, fine) if len(data) else (None, data.histogram())
        look = _look(styles[label])
        series.append(PageSeries(label or "all requests", data, counted, slots, look))
    return series


def fitted(series: list[PageSeries], limit: float = PAGE_SIZE) -> list[PageSeries]:
    """Return the series with slots coarse enough, and then wide enough, for a limit in bytes."""
    while sum(part.packed_size for part in series) > limit:
        largest = max(series, key=lambda part: part.packed_size)
        if largest.slots is None:
            break
        if largest.slots.rough is None and largest.slots.start.size <= 20:
            break
        smaller = replace(
            largest,
            slots=largest.slots.wider() if largest.slots.rough is None else largest.slots.coarser(),
        )
        series = [smaller if part is largest else part for part in series]
    return series


def with_short_names(series: Sequence[PageSeries]) -> list[PageSeries]:
    """Return the series with the short names that distinguish them on this page."""
    names = [part.name for part in series]
    apart = zip(series, short_names(names, _SHORT), short_names(names, _LABEL), strict=True)
    return [replace(part, short=short, label=label) for part, short, label in apart]


def short_names(names: Sequence[str], limit: int) -> list[str]:
    """Return names of at most `limit` characters, distinct where the names are."""
    if all(len(name) <= limit for name in names):
        return list(names)
    # What lies between the beginning and the end that all of them share.
    head = 0 if len(names) == 1 else _shared(names)
    tail = 0 if len(names) == 1 else _shared([name[head:][::-1] for name in names])
    cores = [
        ("…" if head else "") + name[head : len(name) - tail] + ("…" if tail else "")
        for name in names
    ]
    short = [shorten(name, limit) for name in cores]
    if len(set(short)) < len(set(names)):
        width = len(str(len(cores))) + 2
        short = [f"{shorten(name, limit - width)} #{k}" for k, name in enumerate(cores, 1)]
    return short


def _shared(names: Sequence[str]) -> int:
    """The length of the beginning that all names share, up to the end of a word.

    None where one of the names is this beginning: little would be left of it.
    """
    columns = enumerate(zip(*names, strict=False))
    size = next((k for k, letters in columns if len(set(letters)) > 1), 0)
    while size and names[0][size - 1].isalnum():
        size -= 1
    return size


def finer(series: Mapping[str, Any], start: float, end: float) -> dict[str, Any]:
    """Return the time from `start` to `end` in slots of its own, down to single intervals.

    The script draws them in place of the run's slots where the timeline shows no more than this.
    Of series without times, which may be None, it draws what it has.
    """
    parts = [
        page_series({name: data.between(start, end)})[0]
        if isinstance(data, HistogramLog) or (isinstance(data, Samples) and data.start is not None)
        else None
        for name, data in series.items()
    ]
    timed = [part for part in parts if part is not None and part.slots is not None]
    edges, first, last = edges_of(timed), start, end
    if any(part.slots is not None and part.slots.width for part in timed):
        # Slots on a grid may begin before the span, or end after it: of these a part is missing.
        inside = [edge for edge in edges if start <= edge <= end]
        if inside:
            first = inside[0] if edges[0] < start else start
            last = inside[-1] if edges[-1] > end else end
        edges = inside
    return {
        "span": [first, last],
        "bin": bin_width(timed),
        "edges": edges,
        "series": [part.packed if part is not None else None for part in parts],
    }


def bin_width(series: Sequence[PageSeries]) -> float:
    """Return the usual length in seconds of the longest time bins; 0 without any."""
    slots = [part.slots for part in series if part.slots is not None and part.slots.start.size]
    return max(
        (part.width or float(np.median(part.end - part.start)) for part in slots), default=0.0
    )


def finest(series: Sequence[PageSeries]) -> float:
    """Return the length in seconds of the shortest time bins that the data have; 0 without any."""
    lengths = [0.0]
    for part in series:
        if isinstance(part.data, HistogramLog) and len(part.data):
            lengths.append(float(np.median(part.data.lengths)))
        elif part.slots is not None and not part.shadow and len(part.data):
            # A hundred requests or so, as `started` counts them.
            lengths.append(100 * float(np.ptp(part.data.offsets)) / len(part.data))
    return min((length for length in lengths if length > 0), default=0.0)


def edges_of(series: Sequence[PageSeries]) -> list[float]:
    """Return the moments at which a selection may begin and end, ascending.

    Between two of them lie entire slots of every series, and exactly those of its intervals that
    start there. They are the shortest such decimal numbers, so that they can be copied.
    """
    timed = [part.slots for part in series if part.slots is not None]
    if not timed:
        return []
    starts = np.unique(np.concatenate([slots.start for slots in timed]))
    widths = [round(slots.width * 1e9) for slots in timed if slots.width is not None]
    if not widths:
        usual = (
            float(np.median(np.concatenate([slots.end - slots.start for slots in timed]))) or 1.0
        )
        end, last = max(float(slots.end.max()) for slots in timed), float(starts[-1])
        return [
            *_written(starts, usual / 100).tolist(),
            round(end, 9) if round(end, 9) > last else round(last + usual, 9),
        ]
    width = math.lcm(*widths)
    most = 2 * max(MOST, *(slots.start.size for slots in timed))
    width *= math.ceil((starts[-1] - starts[0]) / most / (width / 1e9)) or 1
    first, last = slot_numbers(starts[[0, -1]], width / 1e9).tolist()
    edges: list[float] = slot_edges(
        np.arange(first, last + 2, dtype=np.float64), width / 1e9
    ).tolist()
    return edges


def _written(starts: Any, near: float) -> Any:
    """The shortest decimals at or before each start, after the one before, within `near` of it."""
    decimals, before = starts.copy(), np.append(-np.inf, starts[:-1])
    for digits in range(9, -1, -1):
        short = np.round(starts, digits)
        short = np.where(short > starts, np.round(short - 10.0**-digits, digits), short)
        valid = (short <= starts) & (short > before) & (starts - short <= near)
        decimals = np.where(valid, short, decimals)
    return decimals


def _look(style: dict[str, Any]) -> tuple[str, str]:
    """Classes of the style sheet for a chart's colour and dash."""
    colour, dash = style["color"], style["linestyle"]
    place = COLOURS.index(colour) if colour in COLOURS else 0
    name = {RED: "raw", BLUE: "c0"}.get(colour, f"c{place}")
    if dash == "solid":
        return name, ""
    _, pattern = dash
    kind = {2: 1, 4: 2}.get(len(pattern), 1) if pattern[0] > 3 else 3
    return name, f"dash{kind}"


def _curve(counted: Histogram) -> dict[str, Any]:
    """The exact curve of the whole run: the value up to each percentile, and its lower edge."""
    total = counted.count + counted.censored
    cumulative = counted.cumulative
    if counted.censored:
        high = counted.buckets.high(counted.index)
        below = int(counted.counts[high <= counted.censored_at].sum())
        above = cumulative > below
        cumulative = np.concatenate(
            (cumulative[~above], [below + counted.censored], cumulative[above] + counted.censored)
        )
    reported = [p for p in counted.reported_percentiles[0] if 0 < p <= 100]
    percentile = np.unique(np.append(100.0 * cumulative / total, reported))
    percentile = percentile[percentile > 0]
    middle = (percentile + np.append(0.0, percentile[:-1])) / 2
    value, low, _, beyond = brackets_at(counted, middle)
    kept = np.ones(percentile.size, np.bool_)
    if percentile.size > _POINTS:
        # More than a screen shows: the first and the last of each place, and the familiar ones.
        new = np.diff(np.floor(place_of(percentile) * _A_NINE)) > 0
        kept = np.append(new, True) | np.append(True, new)
        kept[np.searchsorted(percentile, STANDARD_PERCENTILES)] = True
    return _points(percentile[kept], value[kept], low[kept]) | {
        "known": int((~beyond[kept]).sum()),
        "count": counted.count,
        "late": counted.censored,
        "top": number(max(counted.max, float(value[-1]))),
    }


def _points(percentile: Any, value: Any, low: Any) -> dict[str, Any]:
    return {
        "percentile": numbers(percentile),
        "value": numbers(value),
        "low": numbers(low),
    }


def _slot_at(slots: Slots, moments: Any) -> Any:
    """The slot of each moment; the first and the last reach to the ends."""
    return np.clip(np.searchsorted(slots.start, moments, "right") - 1, 0, slots.start.size - 1)


def _maxima(samples: Samples, slots: Slots) -> Floats:
    """The maxima of the requests of each slot, in place of those of their buckets."""
    largest = np.full(slots.start.size, -np.inf)
    values = samples.values[samples.good].astype(np.float64)
    np.maximum.at(largest, _slot_at(slots, samples.offsets[samples.good]), values)
    return np.where(np.isfinite(largest), largest, np.nan)
