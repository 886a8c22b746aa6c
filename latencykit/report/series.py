"""From rungs to what a page draws: counts by slot where time is known, else a curve, else the points that a tool printed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.distribution import Distribution
from latencykit.histogram import Histogram
from latencykit.log import HistogramLog
from latencykit.plot.courses import as_log
from latencykit.plot.curves import curve_of
from latencykit.plot.style import BLUE, COLOURS, RED, series_styles
from latencykit.report.pack import numbers, packed
from latencykit.report.record import number
from latencykit.report.resting import solid_up_to
from latencykit.report.slots import slots_of
from latencykit.samples import OUTCOMES, Samples
from latencykit.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from latencykit.report.slots import Slots

__all__ = ["PageSeries", "fitted", "page_series"]

_ROOM = 2_000_000
"""Characters that the packed series of a page may take together; with more of them, slots grow wider."""

_BAND = 80


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
        told = packed(self.slots)
        if isinstance(self.rung, Samples) and self.rung.outcome is not None:
            late = self.rung.outcome == OUTCOMES.index("timeout")
            told["failed"] = _by_slot(self.rung, ~self.rung.good, self.slots).tolist()
            if self.counted.censored:
                told |= {"timeouts": _by_slot(self.rung, late, self.slots).tolist(), "bound": float(self.counted.censored_at)}
        return told

    def record(self) -> dict[str, Any]:
        """Return what the page's script needs of this series."""
        found: dict[str, Any] = {"name": self.name, "cls": self.look[0], "dash": self.look[1], "shadow": self.shadow}
        if isinstance(self.counted, Summary):
            return found | {"points": [[p, v] for p, v in sorted(self.counted.percentiles.items())]}
        if self.slots is not None:
            found["packed"] = self.packed
        elif isinstance(self.counted, Distribution) or self.counted.count:
            found["curve"] = _curve(self.counted)
        if isinstance(self.counted, Histogram) and self.counted.count and self.counted.run.corrected not in ("us", "tool"):
            found["band"] = _band(self.counted)
        if self.supplied is not None:
            found |= {"solid": self.supplied[0], "rests": self.supplied[1]}
        elif self.slots is not None and self.counted.count:
            percentile, words = solid_up_to(self.slots, self.counted.sample_limit())
            found |= {"solid": percentile, "rests": words}
        return found


def page_series(named: Mapping[str, Any]) -> list[PageSeries]:
    """Return the series of a page, those over time in slots."""
    styles = series_styles(named)
    found = []
    for label, rung in named.items():
        slots, counted = None, None
        if (
            isinstance(rung, HistogramLog | Samples)
            and len(rung)
            and getattr(rung, "starts", getattr(rung, "start", None)) is not None
        ):
            slots, counted = slots_of(as_log(label, rung))
        if slots is not None and isinstance(rung, Samples):
            slots = _exact(rung, slots)
        if counted is None or isinstance(rung, Samples):
            counted = rung.histogram() if isinstance(rung, HistogramLog | Samples) else rung
        found.append(PageSeries(label or "all requests", rung, counted, slots, _look(styles[label])))
    return found


def fitted(series: list[PageSeries]) -> list[PageSeries]:
    """Return the series with slots so wide that the page stays below its limit."""
    while sum(len(one.packed["bytes"]) for one in series if one.packed) > _ROOM:
        largest = max(series, key=lambda one: len(one.packed["bytes"]) if one.packed else 0)
        assert largest.slots is not None
        if largest.slots.start.size <= 20:
            break
        wider = replace(largest, slots=largest.slots.wider())
        series = [wider if one is largest else one for one in series]
    return series


def _look(style: dict[str, Any]) -> tuple[str, str]:
    """Classes of a style sheet for a chart's colour and dash."""
    colour, dash = style["color"], style["linestyle"]
    place = COLOURS.index(colour) if colour in COLOURS else 0
    name = {RED: "raw", BLUE: "c0"}.get(colour, f"c{place}")
    return name, "" if dash == "solid" else f"dash{({2: 1, 4: 2}.get(len(dash[1]), 1)) if dash[1][0] > 3 else 3}"


def _curve(counted: Any) -> dict[str, Any]:
    curve = curve_of(counted)
    return {
        **{name: numbers(getattr(curve, name).tolist()) for name in ("percentile", "value", "low")},
        "count": curve.count, "late": curve.censored, "bound": curve.bound, "top": curve.top, "mean": number(counted.mean),
    }  # fmt: skip


def _band(histogram: Histogram) -> list[list[float | int | None]]:
    """Confidence intervals along the curve, as far as the sample bounds it."""
    last = -np.log10(max(1 - histogram.sample_limit() / 100, 1e-12))
    percentiles = 100 * (1 - 10 ** -np.linspace(0, last * (1 - 1e-9), _BAND))
    rows = histogram.percentile_rows(percentiles)
    return [[row.percentile, number(row.low), number(row.high)] for row in rows if np.isfinite(row.low) and np.isfinite(row.high)]


def _by_slot(samples: Samples, which: Any, slots: Slots) -> Any:
    """How many of the chosen requests ended in each slot."""
    return np.bincount(_slot_of(samples, which, slots), minlength=slots.start.size)


def _slot_of(samples: Samples, which: Any, slots: Slots) -> Any:
    assert samples.start is not None
    begin = samples.start.min() if samples.intended is None else min(samples.start.min(), samples.intended.min())
    moment = ((samples.start + samples.duration)[which] - begin) / 1e9
    return np.clip(np.searchsorted(slots.start, moment, "right") - 1, 0, slots.start.size - 1)


def _exact(samples: Samples, slots: Slots) -> Slots:
    """Slots whose maxima are those of the requests, not of their buckets."""
    good = samples.good
    top = np.full(slots.start.size, -np.inf)
    np.maximum.at(top, _slot_of(samples, good, slots), samples.values[good].astype(np.float64))
    held = np.flatnonzero(np.diff(slots.indptr))
    low = np.full(slots.start.size, np.inf)
    low[held] = slots.low[slots.index[slots.indptr[held + 1] - 1]]
    return replace(slots, max=np.where((top >= low) & (top <= slots.max), top, slots.max))
