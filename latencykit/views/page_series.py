"""From data types to what a page draws: counts by time bin, a curve, or reported points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from latencykit._records import record
from latencykit._text import cause_text, isolated, script_json
from latencykit._typing import Floats, Ints
from latencykit.analysis.diagnosis import Diagnosis
from latencykit.core import Data
from latencykit.core.distribution import Distribution
from latencykit.core.histogram import STANDARD_PERCENTILES, Histogram
from latencykit.core.histogram_log import HistogramLog, slot_edges, slot_numbers
from latencykit.core.percentile_rows import CHOSEN, Doubt, bounds_at
from latencykit.core.quantiles import distinct, median
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.core.summary import Summary
from latencykit.plot.curves import curve_of, shown_points
from latencykit.plot.series import evidence_of
from latencykit.plot.style import BLUE, COLOURS, MARKERS, RED, series_styles, short_names
from latencykit.units import format_count
from latencykit.views.page_data import FINE, LEAST_FINE, MOST, PageBins, packed, page_bins, started
from latencykit.views.series import SeriesRecord, model_record, series_record
from latencykit.views.values import PercentileRecord, number, numbers, summary_rows

PAGE_SIZE = 2_000_000
"""Usual limit of a page in bytes: slots grow wider where it would be longer."""

_MOST_FINER = 3000  # slots of a page that may be longer

_SHORT, _LABEL = 60, 14  # characters of a series' name in a table, and beside a curve

_BAND = 80  # points of the band along a curve


@record(eq=False)
class PageSeries:
    """One series of a page."""

    name: str
    data: Data | Distribution
    counted: Histogram | Summary | Distribution  # all of it, at full resolution
    slots: PageBins | None  # None where the source knows no time
    look: tuple[str, str]  # classes of its colour and of its marker
    derived: bool = False  # a corrected one: a curve and numbers, but no timeline of its own
    correction: Doubt | None = None  # percentiles that a correction supplies, and from what
    diagnosis: Diagnosis | None = None  # None where the source cannot be diagnosed
    short: str = ""  # the name for tables and legends, distinct on a page
    label: str = ""  # and beside a curve

    @property
    def omits(self) -> bool:
        """The diagnosis found coordinated omission."""
        return self.diagnosis is not None and self.diagnosis.verdict == "omits"

    def longest(self, most: int) -> list[int]:
        """Return the positions of the longest stalls, in order of time."""
        if self.diagnosis is None:
            return []
        longest = np.argsort(-self.diagnosis.detected_stalls.duration, kind="stable")
        return sorted(longest[:most].tolist())

    @cached_property
    def packed(self) -> dict[str, object] | None:
        """The slots as the page unpacks them, with failures where their time is known."""
        if self.slots is None:
            return None
        text = packed(self.slots)
        samples = self.samples
        if samples is not None and samples.outcome is not None:
            place, size = _slot_at(self.slots, samples.offsets), self.slots.start.size
            text["failed"] = np.bincount(place[~samples.good], minlength=size).tolist()
            late = samples.outcome == OUTCOMES.index("timeout")
            if late.any():
                slot, bound = place[late], np.full(size, np.inf)
                np.minimum.at(bound, slot, samples.values[late].astype(np.float64))
                text["timeouts"] = np.bincount(slot, minlength=size).tolist()
                text["bound"] = numbers(bound)
        return text

    @cached_property
    def packed_size(self) -> int:
        """Characters that the slots take in a page."""
        return len(script_json(self.packed)) if self.packed else 0

    @property
    def samples(self) -> Samples | None:
        """Requests with their times, if that is what the source has."""
        if isinstance(self.data, Samples) and self.data.start is not None and len(self.data):
            return self.data
        return None

    @property
    def timed(self) -> Data | Distribution:
        """The measurement with its times, in the page's unit; its counts where it has no times."""
        if not isinstance(self.data, HistogramLog | Samples) or not len(self.data):
            return self.counted
        same = self.data.unit == self.counted.unit
        return self.data if same else self.data.to_unit(self.counted.unit)

    @cached_property
    def numbers(self) -> SeriesRecord:
        """The record of the whole run, as `latencykit summary` prints it."""
        if isinstance(self.data, Distribution):
            return model_record(self.name, self.data)
        histogram = self.counted if isinstance(self.counted, Histogram) else None
        return series_record(self.name, self.data, histogram=histogram, diagnosis=self.diagnosis)

    def rows(self, percentiles: Sequence[float]) -> dict[float, PercentileRecord]:
        """Percentile → row of the whole run, of those that the source knows."""
        rows = {row["percentile"]: row for row in self.numbers["percentiles"]}
        if isinstance(self.counted, Summary) and "max" in self.counted.stats:
            rows.setdefault(100.0, summary_rows(self.counted, [100.0])[0])
        further = [p for p in percentiles if p not in rows]
        if (
            further
            and not isinstance(self.data, Distribution)
            and isinstance(self.counted, Histogram)
            and self.counted.count + self.counted.censored
        ):
            record = series_record(
                self.name, self.data, further, histogram=self.counted, footnotes=False
            )
            rows |= {row["percentile"]: row for row in record["percentiles"]}
        return rows

    @property
    def reported_percentiles(self) -> list[tuple[float, float]]:
        """Chosen percentiles that the tool reports, and their values; a spectrum has none."""
        if isinstance(self.counted, Summary):
            return sorted(self.counted.reported_percentiles.items())
        if not isinstance(self.counted, Histogram):
            return []
        rows = list(zip(*self.counted.reported_percentiles, strict=True))
        return rows if len(rows) <= CHOSEN else []

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

    def record(self) -> dict[str, object]:
        """Return what the page's script needs of this series."""
        slots = {} if self.packed is None else {"packed": self.packed}
        short, label = isolated(self.short), isolated(self.label)
        return {**self.curve_record, **slots, "short": short, "label": label}

    @cached_property
    def curve_record(self) -> dict[str, object]:
        """The series without its slots: look, reported percentiles, the curve of the whole run."""
        counted = self.counted
        record: dict[str, object] = {
            "name": self.name,
            "cls": self.look[0],
            "mark": self.look[1],
            "derived": self.derived,
            "points": [[p, number(v)] for p, v in self.reported_percentiles if 0 < p < 100],
            "reason": self.reason,
        }
        if self.reason or isinstance(counted, Summary):
            return record
        exact = {"mean": number(counted.mean), "limit": 100, "doubts": list[Any]()}
        if isinstance(counted, Distribution):
            curve = curve_of(counted)
            points = _points(curve.percentile[1:], curve.value[1:], curve.low[1:])
            return record | {"curve": points | {"count": None, "late": 0, "top": curve.top} | exact}
        evidence = evidence_of(self.data, counted)
        doubts = evidence.doubts() if self.correction is None else (self.correction,)
        ranges = [[one.first, one.last] for one in doubts]
        # The exact curve of the whole run: the value up to each percentile, and its lower edge.
        cumulative = counted.cumulative
        if counted.censored:
            high = counted.buckets.high(counted.index)
            below = int(counted.counts[high <= counted.censored_at].sum())
            above = cumulative > below
            bound = below + counted.censored
            cumulative = np.concatenate(
                (cumulative[~above], [bound], cumulative[above] + counted.censored)
            )
        reported = [p for p in counted.reported_percentiles[0] if 0 < p <= 100]
        total = counted.count + counted.censored
        percentile = distinct(np.append(100.0 * cumulative / total, reported))
        percentile = percentile[percentile > 0]
        middle = (percentile + np.append(0.0, percentile[:-1])) / 2
        value, low, _, beyond = bounds_at(counted, middle)
        kept = shown_points(percentile)
        familiar = np.searchsorted(percentile, STANDARD_PERCENTILES)
        kept[np.minimum(familiar, percentile.size - 1)] = True
        curve_record = _points(percentile[kept], value[kept], low[kept]) | {
            "known": int((~beyond[kept]).sum()),
            "count": counted.count,
            "late": counted.censored,
            "top": number(max(counted.max, float(value[-1]))),
            **exact,
            "limit": counted.sample_limit(),
            "doubts": ranges,
        }
        if not counted.censored:  # a maximum that the tool reports is exact
            curve_record["top_low"] = number(counted.bounds("max")[0])
        record["curve"] = curve_record
        if counted.run.corrected not in ("us", "tool"):
            # Confidence intervals along the curve, as far as the sample bounds it.
            last = -np.log10(max(1 - counted.sample_limit() / 100, 1e-12))
            percentiles = 100 * (1 - 10 ** -np.linspace(0, last * (1 - 1e-9), _BAND))
            rows, _ = evidence.rows(percentiles.tolist(), 0.95)
            record["band"] = [
                [row.percentile, number(row.low), number(row.high)]
                for row in rows
                if math.isfinite(row.low) and math.isfinite(row.high)
            ]
        causes = dict.fromkeys(
            cause_text(one.cause) for one in doubts if one.cause != "few requests"
        )
        record["beyond"] = "timeouts" if counted.run.timeouts else "above the last bucket"
        return record | {"uncertain": ", ".join(causes)}


def page_series(named: Mapping[str, Any], page_size: int = PAGE_SIZE) -> list[PageSeries]:
    """Return the series of a page, those over time in slots: more of them on a longer page."""
    styles = series_styles(named)
    share = max(1.0, page_size / PAGE_SIZE)
    most = int(min(MOST * share, _MOST_FINER))  # slots of each series, and counts in them
    fine = int(max(FINE / max(len(named), 1), LEAST_FINE) * share)
    series = []
    for label, data in named.items():
        slots, counted = None, data
        if isinstance(data, Samples):
            counted = data.histogram()
            if data.start is not None and len(data) and len(log := started(data, most)):
                slots = replace(page_bins(log, most, fine), width=float(log.lengths[0]))
                # The maxima of the requests of each slot, in place of those of their buckets.
                largest = np.full(slots.start.size, -np.inf)
                values = data.values[data.good].astype(np.float64)
                np.maximum.at(largest, _slot_at(slots, data.offsets[data.good]), values)
                slots = replace(slots, max=np.where(np.isfinite(largest), largest, np.nan))
        elif isinstance(data, HistogramLog):
            slots = page_bins(data, most, fine) if len(data) else None
            counted = data.histogram()
        # Classes of the style sheet for a chart's colour and marker.
        style = styles[label]
        colour, marker = style["color"], MARKERS.index(style["marker"])
        place = COLOURS.index(colour) if colour in COLOURS else 0
        name = {RED: "raw", BLUE: "c0"}.get(colour, f"c{place}")
        look = name, f"mark{marker}" if marker else ""
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


def finer(series: Mapping[str, object], start: float, end: float) -> dict[str, Any]:
    """Return the time from `start` to `end` in slots of its own, down to single intervals."""
    # The script draws them in place of the run's slots where the timeline shows no more than this.
    # Of series without times, which may be None, it draws what it has.
    parts = [
        page_series({name: data.between(start, end)})[0]
        if isinstance(data, HistogramLog) or (isinstance(data, Samples) and data.start is not None)
        else None
        for name, data in series.items()
    ]
    timed = [part for part in parts if part is not None and part.slots is not None]
    edges, first, last = edges_of(timed), start, end
    for slots in (part.slots for part in timed if part.slots is not None):
        # Slots on a grid may begin before the span, or end after it: of these a part is missing.
        if slots.width:
            cells = slot_numbers(slots.start[[0, -1]], slots.width).astype(np.float64)
            begins, ends = (slot_edges(cells + k, slots.width).tolist() for k in (0, 1))
            first = max(first, ends[0] if begins[0] < start else start)
            last = min(last, begins[1] if ends[1] > end else end)
    if any(part.slots is not None and part.slots.width for part in timed):
        edges = [edge for edge in edges if first <= edge <= last]
    return {
        "span": [first, last],
        "bin": bin_width(timed),
        "edges": edges,
        "series": [part.packed if part is not None else None for part in parts],
    }


def bin_width(series: Sequence[PageSeries]) -> float:
    """Return the usual length in seconds of the longest time bins; 0 without any."""
    slots = [part.slots for part in series if part.slots is not None and part.slots.start.size]
    return max((part.width or float(median(part.end - part.start)) for part in slots), default=0.0)


def finest(series: Sequence[PageSeries]) -> float:
    """Return the length in seconds of the shortest time bins that the data have; 0 without any."""
    lengths = [0.0]
    for part in series:
        if isinstance(part.data, HistogramLog) and len(part.data):
            lengths.append(float(median(part.data.lengths)))
        elif part.samples is not None and not part.derived:
            # A hundred requests or so, as `started` counts them.
            lengths.append(100 * float(np.ptp(part.samples.offsets)) / len(part.samples))
    return min((length for length in lengths if length > 0), default=0.0)


def edges_of(series: Sequence[PageSeries]) -> list[float]:
    """Return the moments at which a selection may begin and end, ascending."""
    # They are the edges of the shortest slots, and those of longer ones at times without these: a
    # drag can select what the finest series resolves. Single intervals are taken where they start;
    # the moments are the shortest such decimal numbers, so that they can be copied.
    timed = [part.slots for part in series if part.slots is not None and part.slots.start.size]
    grids: dict[float | None, list[PageBins]] = {}
    for slots in timed:
        grids.setdefault(slots.width, []).append(slots)
    own: list[Floats] = []
    for width, group in grids.items():
        starts = np.unique(np.concatenate([slots.start for slots in group]))
        if width is not None:  # of a multiple of it where the slots are far apart
            most = 2 * max(MOST, *(slots.start.size for slots in group))
            times = math.ceil((starts[-1] - starts[0]) / most / width) or 1
            step = round(width * 1e9) * times / 1e9
            first, last = slot_numbers(starts[[0, -1]], step).tolist()
            own.append(slot_edges(np.arange(first, last + 2, dtype=np.float64), step))
            continue
        # Where an interval of any log starts, and the end of the last.
        lengths = np.concatenate([slots.end - slots.start for slots in group])
        usual = float(median(lengths)) or 1.0
        end = round(max(float(slots.end.max()) for slots in group), 9)
        if end <= starts[-1]:
            end = round(float(starts[-1]) + usual, 9)
        # The shortest decimals at or before each start, after the one before, and near it.
        decimals, before = starts.copy(), np.append(-np.inf, starts[:-1])
        for digits in range(9, -1, -1):
            short = np.round(starts, digits)
            short = np.where(short > starts, np.round(short - 10.0**-digits, digits), short)
            valid = (short <= starts) & (short > before) & (starts - short <= usual / 100)
            decimals = np.where(valid, short, decimals)
        own.append(np.append(decimals, end))
    edges = np.zeros(0)
    for finer_ones in sorted(own, key=lambda one: float(median(np.diff(one)))):
        outside = finer_ones
        if edges.size:
            outside = finer_ones[(finer_ones < edges[0]) | (finer_ones > edges[-1])]
        edges = np.sort(np.concatenate((edges, outside)))
    listed: list[float] = edges.tolist()
    return listed


_DECIMALS = 9  # of a percentile: one request in 100 billion


def _points(percentile: Floats, value: Floats, low: Floats) -> dict[str, object]:
    return {
        "percentile": numbers(np.round(percentile, _DECIMALS)),
        "value": numbers(value),
        "low": numbers(low),
    }


def _slot_at(slots: PageBins, moments: Floats) -> Ints:
    """The slot of each moment; the first and the last reach to the ends."""
    return np.clip(np.searchsorted(slots.start, moments, "right") - 1, 0, slots.start.size - 1)
