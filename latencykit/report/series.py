"""From rungs to what a page draws: counts by slot where time is known, else a curve, else the points that a tool printed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.distribution import Distribution
from latencykit.histogram import STANDARD_PERCENTILES, Histogram
from latencykit.histogram.lookup import brackets_at
from latencykit.log import HistogramLog, slot_edges, slot_numbers
from latencykit.plot.curves import curve_of, place_of
from latencykit.plot.style import BLUE, COLOURS, RED, series_styles
from latencykit.report.pack import numbers, packed
from latencykit.report.record import number, series_record
from latencykit.report.slots import MOST, slots_of, started
from latencykit.samples import OUTCOMES, Samples
from latencykit.summary import Summary
from latencykit.units import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latencykit.report.slots import Slots

__all__ = ["PageSeries", "edges_of", "fitted", "page_series"]

_ROOM = 2_000_000
"""Characters that the packed series of a page may take together; with more of them, slots grow wider."""

_CHOSEN = 12
"""Percentiles that somebody chose to print; more are the rows of a spectrum."""

_BAND, _POINTS, _A_NINE = 80, 4000, 1000
"""Places of the band along a curve; points that a curve may have, and places of a nine that are kept of more."""


@dataclass(frozen=True, eq=False)
class PageSeries:
    """One series of a page.

    Attributes
    ----------
    name : str
    rung : Samples, HistogramLog, Histogram, Summary or Distribution
    counted : Histogram, Summary or Distribution
        All of it, at full resolution.
    slots : Slots or None
        None where the source knows no time.
    look : tuple of str
        Classes of its colour and of its dash.
    shadow : bool
        It follows from another one (corrected): a curve and numbers, but no timeline of its own.
    supplied : tuple of float and str, optional
        The percentile from which on a correction supplies the values, and what it follows from.
    """

    name: str
    rung: Any
    counted: Any
    slots: Slots | None
    look: tuple[str, str]
    shadow: bool = False
    supplied: tuple[float, str] | None = None

    @cached_property
    def packed(self) -> dict[str, Any] | None:
        """The slots as the page unpacks them, with failures where their time is known."""
        if self.slots is None:
            return None
        held = packed(self.slots)
        held["reaching"] = isinstance(self.rung, HistogramLog) and self.rung.unit == "ns"  # a stall began before its interval
        if isinstance(self.rung, Samples) and self.rung.outcome is not None:
            held["failed"] = np.bincount(self._slot_of(~self.rung.good), minlength=self.slots.start.size).tolist()
            late = self.rung.outcome == OUTCOMES.index("timeout")
            if late.any():
                slot, bound = self._slot_of(late), np.full(self.slots.start.size, np.inf)
                np.minimum.at(bound, slot, self.rung.values[late].astype(np.float64))
                held |= {"timeouts": np.bincount(slot, minlength=bound.size).tolist(), "bound": numbers(bound.tolist())}
        return held

    @property
    def begin(self) -> float:
        """Where the first request of a part lies on the time axis of the whole, seconds; stalls count from it."""
        timed = isinstance(self.rung, Samples) and self.rung.start is not None and len(self.rung)
        return float(self.rung.offsets.min()) if timed else 0.0

    def _slot_of(self, which: Any) -> Any:
        """The slot that each of the chosen requests was sent in."""
        assert self.slots is not None
        return np.clip(np.searchsorted(self.slots.start, self.rung.offsets[which], "right") - 1, 0, self.slots.start.size - 1)

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """What `latencykit summary` says of the whole run: the page's numbers of it are these, and no others."""
        if isinstance(self.counted, Distribution):
            return _of_model(self.name, self.counted)
        return series_record(self.name, self.rung, histogram=None if isinstance(self.counted, Summary) else self.counted)

    def rows(self, percentiles: Sequence[float]) -> dict[float, dict[str, Any]]:
        """Percentile → row of the whole run, of those that the source knows."""
        held = {row["percentile"]: row for row in self.numbers["percentiles"]}
        if isinstance(self.counted, Summary) and "max" in self.counted.stats:
            held.setdefault(100.0, _known(100.0, self.counted.stats["max"]))
        further = [p for p in percentiles if p not in held]
        if further and isinstance(self.counted, Histogram) and self.counted.count + self.counted.censored:
            rows = series_record(self.name, self.rung, further, histogram=self.counted)["percentiles"]
            held |= {row["percentile"]: row for row in rows}
        return held

    @property
    def late(self) -> int:
        """Requests that timed out."""
        late: int = self.counted.run.timeouts or getattr(self.counted, "censored", 0)
        return late

    @property
    def further_statistics(self) -> dict[str, float]:
        """What a tool reports besides the statistics that every record has."""
        held = self.counted.stats if isinstance(self.counted, Summary) else {}
        return {name: value for name, value in held.items() if name not in ("mean", "std", "min", "max")}

    @property
    def printed(self) -> list[tuple[float, float]]:
        """Percentiles that the tool printed because somebody chose them, and their values; a spectrum has none."""
        if isinstance(self.counted, Summary):
            return sorted(self.counted.percentiles.items())
        rows = list(zip(*self.counted.printed, strict=True)) if isinstance(self.counted, Histogram) else []
        return rows if len(rows) <= _CHOSEN else []

    @property
    def reason(self) -> str:
        """Why there is no curve; empty where there is one."""
        counted = self.counted
        if isinstance(counted, Summary):
            held = " and ".join(counted.stats) or "a count"
            return "" if counted.percentiles else f"The source reports only {held}: there is no distribution to draw."
        if isinstance(counted, Histogram) and not counted.count:
            timed_out = f" {format_count(counted.censored)} timed out." if counted.censored else ""
            return f"No request was answered, so there is no curve to draw.{timed_out}"
        return ""

    def record(self) -> dict[str, Any]:
        """Return what the page's script needs of this series."""
        found: dict[str, Any] = {"name": self.name, "cls": self.look[0], "dash": self.look[1], "shadow": self.shadow}
        found |= {"points": [[p, number(v)] for p, v in self.printed if 0 < p < 100], "reason": self.reason}
        if self.slots is not None:
            found["packed"] = self.packed
        if self.reason or isinstance(self.counted, Summary):
            return found
        found["curve"] = _curve_of_model(self.counted) if isinstance(self.counted, Distribution) else _curve(self.counted)
        found["curve"] |= {"mean": number(self.counted.mean), "limit": 100, "solid": 100}
        if isinstance(self.counted, Distribution):
            return found
        found["curve"]["limit"] = self.counted.sample_limit()
        if self.counted.run.corrected not in ("us", "tool"):
            found["band"] = self._band()
        percentile, words = self.supplied or (self.numbers["supported_up_to"], "")
        if self.slots is not None and self.supplied is None:
            percentile, words = self.rung.evidence(self.counted).solid_up_to()
        found["curve"]["solid"], found["rests"] = percentile, words
        return found

    def _band(self) -> list[list[float | int | None]]:
        """Confidence intervals along the curve, as far as the sample bounds it."""
        last = -np.log10(max(1 - self.counted.sample_limit() / 100, 1e-12))
        percentiles = 100 * (1 - 10 ** -np.linspace(0, last * (1 - 1e-9), _BAND))
        rows = series_record(self.name, self.rung, percentiles.tolist(), histogram=self.counted)["percentiles"]
        held = [row for row in rows if row["low"] is not None and row["high"] is not None]
        return [[row["percentile"], row["low"], row["high"]] for row in held]


def page_series(named: Mapping[str, Any]) -> list[PageSeries]:
    """Return the series of a page, those over time in slots."""
    styles = series_styles(named)
    found = []
    for label, rung in named.items():
        slots, counted = None, None
        if isinstance(rung, Samples) and rung.start is not None and len(rung):
            log = started(rung)
            slots = _exact(rung, replace(slots_of(log)[0], width=float(log.lengths[0]))) if len(log) else None
        elif isinstance(rung, HistogramLog) and len(rung):
            slots, counted = slots_of(rung)
        if counted is None:
            counted = rung.histogram() if isinstance(rung, HistogramLog | Samples) else rung
        found.append(PageSeries(label or "all requests", rung, counted, slots, _look(styles[label])))
    return found


def fitted(series: list[PageSeries]) -> list[PageSeries]:
    """Return the series with slots so coarse, and then so wide, that the page stays below its limit."""
    while sum(len(one.packed["bytes"]) for one in series if one.packed) > _ROOM:
        largest = max(series, key=lambda one: len(one.packed["bytes"]) if one.packed else 0)
        assert largest.slots is not None
        if largest.slots.rough is None and largest.slots.start.size <= 20:
            break
        smaller = replace(largest, slots=largest.slots.wider() if largest.slots.rough is None else largest.slots.coarser())
        series = [smaller if one is largest else one for one in series]
    return series


def edges_of(series: Sequence[PageSeries]) -> list[float]:
    """Return the moments that a selection may begin and end at, ascending.

    Between two of them lie whole slots of every series, and just those of its intervals that start there. They are the
    shortest decimal numbers of which that is true, so that they can be copied from the page.
    """
    timed = [one.slots for one in series if one.slots is not None]
    if not timed:
        return []
    starts = np.unique(np.concatenate([slots.start for slots in timed]))
    widths = [round(slots.width * 1e9) for slots in timed if slots.width is not None]
    if not widths:
        usual = float(np.median(np.concatenate([slots.end - slots.start for slots in timed]))) or 1.0
        end, last = max(float(slots.end.max()) for slots in timed), float(starts[-1])
        return [*_written(starts, usual / 100).tolist(), round(end, 9) if round(end, 9) > last else round(last + usual, 9)]
    width = math.lcm(*widths)
    width *= math.ceil((starts[-1] - starts[0]) / (2 * MOST) / (width / 1e9)) or 1
    first, last = slot_numbers(starts[[0, -1]], width / 1e9).tolist()
    edges: list[float] = slot_edges(np.arange(first, last + 2, dtype=np.float64), width / 1e9).tolist()
    return edges


def _written(starts: Any, near: float) -> Any:
    """The shortest decimals at or before each start, after the start before it, and no further off than `near`."""
    found, before = starts.copy(), np.append(-np.inf, starts[:-1])
    for digits in range(9, -1, -1):
        short = np.round(starts, digits)
        short = np.where(short > starts, np.round(short - 10.0**-digits, digits), short)
        found = np.where((short <= starts) & (short > before) & (starts - short <= near), short, found)
    return found


def _look(style: dict[str, Any]) -> tuple[str, str]:
    """Classes of a style sheet for a chart's colour and dash."""
    colour, dash = style["color"], style["linestyle"]
    place = COLOURS.index(colour) if colour in COLOURS else 0
    name = {RED: "raw", BLUE: "c0"}.get(colour, f"c{place}")
    return name, "" if dash == "solid" else f"dash{({2: 1, 4: 2}.get(len(dash[1]), 1)) if dash[1][0] > 3 else 3}"


def _known(percentile: float, value: float) -> dict[str, Any]:
    """A row of what is known exactly: printed by the tool, or worked out by a model."""
    nothing = {"low": None, "high": None, "events": None}
    return {"percentile": percentile, "value": number(value), "bucket_low": number(value), "bucket_high": number(value),
            "resolved": True, "supported": None, **nothing}  # fmt: skip


def _of_model(name: str, model: Distribution) -> dict[str, Any]:
    """A model as a record: it has no count and no confidence."""
    rows = [_known(p, float(model.percentile(p))) for p in STANDARD_PERCENTILES[:-1]]
    return {
        "name": name, "rung": "model", "unit": model.unit, "count": None, "mean": number(model.mean), "std": None,
        "percentiles": rows, "highest_supported_percentile": 100.0, "supported_up_to": 100.0, "ranges": {}, "rests_on": None,
        "notes": list(model.run.notes),
    }  # fmt: skip


def _curve_of_model(model: Distribution) -> dict[str, Any]:
    curve = curve_of(model)
    return {**_points(curve.percentile[1:], curve.value[1:], curve.low[1:]), "count": None, "late": 0, "top": curve.top}


def _curve(counted: Histogram) -> dict[str, Any]:
    """The whole run exactly: up to each percentile the value, and the edges that the source pins it down between."""
    total = counted.count + counted.censored
    cumulative = counted.cumulative
    if counted.censored:
        below = int(counted.counts[counted.buckets.high(counted.index) <= counted.censored_at].sum())
        above = cumulative > below
        cumulative = np.concatenate((cumulative[~above], [below + counted.censored], cumulative[above] + counted.censored))
    percentile = np.unique(np.append(100.0 * cumulative / total, [p for p in counted.printed[0] if 0 < p <= 100]))
    percentile = percentile[percentile > 0]
    middle = (percentile + np.append(0.0, percentile[:-1])) / 2
    value, low, _, beyond = brackets_at(counted, middle)
    kept = np.ones(percentile.size, np.bool_)
    if percentile.size > _POINTS:  # more than a screen shows: of each place on the axis the first and the last, and the familiar
        new = np.diff(np.floor(place_of(percentile) * _A_NINE)) > 0
        kept = np.append(new, True) | np.append(True, new)
        kept[np.searchsorted(percentile, STANDARD_PERCENTILES)] = True
    return {
        **_points(percentile[kept], value[kept], low[kept]), "known": int((~beyond[kept]).sum()),
        "count": counted.count, "late": counted.censored, "top": number(max(counted.max, float(value[-1]))),
    }  # fmt: skip


def _points(percentile: Any, value: Any, low: Any) -> dict[str, Any]:
    return {"percentile": numbers(percentile.tolist()), "value": numbers(value.tolist()), "low": numbers(low.tolist())}


def _exact(samples: Samples, slots: Slots) -> Slots:
    """Slots whose maxima are those of the requests, not of their buckets."""
    good = samples.good
    slot = np.clip(np.searchsorted(slots.start, samples.offsets[good], "right") - 1, 0, slots.start.size - 1)
    top = np.full(slots.start.size, -np.inf)
    np.maximum.at(top, slot, samples.values[good].astype(np.float64))
    return replace(slots, max=np.where(np.isfinite(top), top, np.nan))
