"""Axes with round ticks: 10 µs, 1 ms, 1 s of values; 5 s, 10 min, 2 h of time; percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from matplotlib.axis import Axis
from matplotlib.scale import FuncTransform, ScaleBase, register_scale
from matplotlib.ticker import Formatter, FuncFormatter, Locator, MaxNLocator, NullLocator
from matplotlib.transforms import Transform
from numpy.typing import ArrayLike, NDArray

from latencykit import units
from latencykit._typing import Floats
from latencykit.plot.curves import place_of
from latencykit.plot.series import time_texts
from latencykit.plot.style import size_in_points

_STEPS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))
_SECONDS = (
    *(step * 10.0**power for power in range(-6, 0) for step in (1, 2, 5)),
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200),
    *(86_400 * days for days in (1, 2, 5, 7, 14, 28, 56, 112, 365)),
)  # fmt: skip


class ValueFormatter(Formatter):
    """Values of a unit as durations: 10 µs, 1 ms; or all in one unit where `fixed` names it."""

    def __init__(self, unit: str, fixed: str | None = None) -> None:
        self.unit, self.fixed = unit, fixed
        self._factor = 1.0 if fixed is None else units.unit_factor(unit, fixed)

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002
        """Return the label of a tick."""
        if self.fixed is not None:
            return f"{x * self._factor:,.10g} {self.fixed.replace('us', 'µs')}"
        if self.unit in units.NANOSECONDS:
            return units.format_duration(x * units.NANOSECONDS[self.unit], 5)
        return units.format_value(x, self.unit)


def share_text(share: float, _: float | None = None) -> str:
    """Return the label of a tick: a share in per cent, without zeros behind."""
    return f"{np.format_float_positional(share * 100, 6, trim='-')} %"


def second_of(unit: str, fixed: str | None = None) -> float:
    """Return from how many of an axis' units on its ticks are round in minutes and hours: 1 s."""
    return units.unit_factor("s", unit) if unit in units.NANOSECONDS and fixed is None else math.inf


def _decade(power: int, second: float) -> float:
    """A power of ten; from 100 s on, what is as round in min, h and d."""
    value = 10.0**power
    if value < 99 * second:
        return value
    over = round(math.log10(value / second)) - 2
    return second * (120, 1200, 7200, 72_000, 864_000)[min(over, 4)] * 10.0 ** max(over - 4, 0)


def log_ticks(bottom: float, top: float, most: int = 12, second: float = math.inf) -> list[float]:
    """Return round values in [bottom, top], at least three where possible and at most `most`."""
    # Powers of ten where there are enough of them, else 1-3, 1-2-5 or finer steps within a decade;
    # every second or third power where there are too many. `second` is that of `second_of`.
    first, last = math.floor(math.log10(bottom)), math.ceil(math.log10(top))
    chosen: list[float] = []
    for steps in _STEPS:
        ticks = [step * _decade(k, second) for k in range(first, last + 1) for step in steps]
        finer = [tick for tick in ticks if bottom <= tick <= top]
        if chosen and len(finer) > most:
            break
        chosen = finer
        if len(chosen) >= 3:
            break
    # Even steps crowd at the upper end of more than a decade.
    if len(chosen) < (2 if top >= 10 * bottom else 3):
        even = MaxNLocator(max(2, min(most, 6)), steps=[1, 2, 2.5, 5, 10]).tick_values(bottom, top)
        chosen = [float(tick) for tick in even if bottom <= tick <= top] or chosen
    return chosen[:: max(1, math.ceil(len(chosen) / max(most, 2)))]


class _ViewLocator(Locator):
    """A locator whose ticks depend on the view alone."""

    def __call__(self) -> list[float]:
        """Return the ticks in view."""
        assert self.axis is not None
        return list(self.tick_values(*sorted(self.axis.get_view_interval())))


class DecadeLocator(_ViewLocator):
    """Ticks of a logarithmic axis of values; see `log_ticks`."""

    def __init__(
        self,
        floor: float = 0.0,
        zero: float | None = None,
        ceiling: float = math.inf,
        second: float = math.inf,
    ) -> None:
        self.floor, self.zero, self.ceiling, self.second = floor, zero, ceiling, second

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks within [vmin, vmax]."""
        bottom, top, most = max(vmin, self.floor, 1e-300), min(vmax, self.ceiling), 12
        axis: Any = self.axis
        if axis is not None:  # a label takes 20 points of height or 52 of width
            box, upright = axis.axes.bbox, axis.axis_name == "y"
            points = (box.height if upright else box.width) * 72.0 / axis.axes.figure.dpi
            most = max(3, int(points / (20 if upright else 52)))
        ticks = log_ticks(bottom, top, most, self.second) if top > bottom else []
        return ticks if self.zero is None or not vmin <= self.zero <= vmax else [self.zero, *ticks]


def value_axis(
    ax: Any,
    low: float,
    high: float,
    unit: str,
    *,
    fixed: str | None = None,
    log: bool = True,
    along: str = "y",
    zeros: bool = False,
) -> float:
    """Scale an axis of values so that `low` to `high` (both above zero) are well inside."""
    axis = getattr(ax, f"{along}axis")
    limits, scale = getattr(ax, f"set_{along}lim"), getattr(ax, f"set_{along}scale")
    formatter = ValueFormatter(unit, fixed)
    if not log:
        limits(0, high * 1.08 if high > 0 else 1)
        axis.set_major_locator(EvenLocator(0.0, math.inf, second_of(unit, fixed)))
        axis.set_major_formatter(formatter)
        return 0.0
    scale("log")
    if high < 4 * low:  # all values alike: no more detail than the data has
        low, high = (low * high) ** 0.5 / 2, (low * high) ** 0.5 * 2
    span = max(math.log10(high / low), 0.25)
    upright = along == "y"
    length = max(60.0, size_in_points(ax)[1]) if upright else 1.0
    above = max(0.09, 24.0 / (length - 24.0)) if upright else 0.07  # space for one label
    bottom, top = low / 10 ** (0.04 * span), high * 10 ** (above * span)
    zero = bottom / 10 ** (0.08 * span)
    limits(zero if zeros else bottom, top)
    second = second_of(unit, fixed)
    axis.set_major_locator(DecadeLocator(bottom, zero if zeros else None, second=second))
    axis.set_major_formatter(
        FuncFormatter(lambda x, _: "0" if zeros and x <= zero * 1.0001 else formatter(x))
    )
    axis.set_minor_locator(NullLocator())
    return zero if zeros else bottom


def fit_values(
    ax: object, values: NDArray[np.float64], unit: str, *, below: float = 1.0, **options: Any
) -> float:
    """Scale an axis to the values that are drawn on it; those that are not finite are ignored."""
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (1.0, 10.0)
    return value_axis(ax, low / below, high, unit, zeros=bool((values == 0).any()), **options)


class EvenLocator(_ViewLocator):
    """Even ticks of a linear axis between two values, whatever is in view."""

    def __init__(self, floor: float, ceiling: float, second: float = math.inf) -> None:
        self.floor, self.ceiling, self.second = floor, ceiling, second

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks within [vmin, vmax]."""
        low, high = max(vmin, self.floor), min(vmax, self.ceiling)
        if high > 120 * self.second:
            times = TimeLocator().tick_values(low / self.second, high / self.second)
            return [tick * self.second for tick in times]
        return [
            float(tick) for tick in MaxNLocator(6).tick_values(low, high) if low <= tick <= high
        ]


class TimeLocator(_ViewLocator):
    """Ticks at round times: 5 s, 10 min, 2 h."""

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks within [vmin, vmax], in seconds."""
        span, most, axis = vmax - vmin, 9.0, cast("Any", self.axis)
        if axis is not None:  # a label takes 60 points
            points = axis.axes.bbox.width * 72.0 / axis.axes.figure.dpi
            most = float(min(9.0, max(2.0, points / 60)))
        step = next((step for step in _SECONDS if span / step <= most), span / most or 1.0)
        ticks = np.arange(math.ceil(vmin / step - 1e-9), math.floor(vmax / step + 1e-9) + 1) * step
        return [round(float(tick), 9) for tick in ticks]


class _TimeFormatter(Formatter):
    """Times from the start, all ticks of an axis in one form."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002
        """Return the label of a tick by itself."""
        return time_texts([x])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the labels of all ticks."""
        return time_texts([float(value) for value in values])


def time_axis(ax: Any, start: float, end: float) -> None:
    """Scale the x axis to times from `start` to `end` seconds, with round ticks."""
    ax.set_xlim(start, end if end > start else start + 1.0)
    ax.xaxis.set_major_locator(TimeLocator())
    ax.xaxis.set_major_formatter(_TimeFormatter())


# ------------------------------------------------------------
# The percentile axis: evenly spaced by nines, ending at 100 %, the place of the maximum.
#
# ``ax.set_xscale("percentile", nines=6)`` puts percentile p at −log₁₀(1 − p/100): 90, 99 and 99.9
# are one step apart. 100 % would lie at infinity; it is drawn a little beyond the last nine
# instead, so that the maximum is always visible.

BEYOND = 0.6
"""Distance of 100 % from the last nine, in nines."""


def percentile_at(places: ArrayLike, most: float) -> Floats:
    """Return the percentile at each place; see `place_of`."""
    given = np.asarray(places, np.float64)
    return np.where(given >= most - 1e-9, 100.0, 100.0 * (1.0 - 10.0**-given))


class PercentileLocator(_ViewLocator):
    """Ticks at 0, 50, 90, 99, 99.9 … up to a number of nines, and at 100, as far as they fit."""

    def __init__(self, nines: float) -> None:
        self.nines = nines

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks within [vmin, vmax]."""
        nines = (100.0 - 10.0 ** (2 - k) for k in range(1, int(self.nines) + 1))
        return [
            tick
            for tick in (0.0, 50.0, *(round(nine, 10) for nine in nines), 100.0)
            if vmin <= tick <= vmax
        ]

    def __call__(self) -> list[float]:
        """Return the ticks in view, both ends and those between whose labels touch no other."""
        ticks, axis = super().__call__(), cast("Any", self.axis)
        if len(ticks) < 3 or axis.axis_name != "x":
            return ticks
        points = axis.get_major_ticks(1)[0].label1.get_fontsize()
        size, place = points * axis.axes.figure.dpi / 72.0, axis.get_transform().transform
        shares = place(np.array(ticks)) / np.ptp(place(np.array(axis.get_view_interval())))
        at = shares * axis.axes.bbox.width
        letters = np.array([len(_percentile_label(tick)) for tick in ticks])
        half = 0.34 * size * letters + 0.25 * size
        kept = [0]
        for k in range(1, len(ticks) - 1):
            clear_before = at[k] - half[k] >= at[kept[-1]] + half[kept[-1]]
            if clear_before and at[k] + half[k] <= at[-1] - half[-1]:
                kept.append(k)
        return [ticks[k] for k in (*kept, len(ticks) - 1)]


def _percentile_label(percentile: float, _: float | None = None) -> str:
    return "100 %" if percentile >= 100 else units.format_percentile(round(percentile, 10))


class PercentileScale(ScaleBase):
    """The scale ``percentile`` of matplotlib."""

    name = "percentile"

    def __init__(self, _axis: Axis | None = None, *, nines: float = 6) -> None:
        self.nines = nines

    def get_transform(self) -> Transform:
        """Return percentile → place."""
        ways = (partial(way, most=self.nines + BEYOND) for way in (place_of, percentile_at))
        return FuncTransform(*ways)

    def set_default_locators_and_formatters(self, axis: Axis) -> None:
        """Give the axis its ticks."""
        axis.set_major_locator(PercentileLocator(self.nines))
        axis.set_major_formatter(_percentile_label)
        axis.set_minor_locator(NullLocator())

    def limit_range_for_scale(
        self,
        vmin: float,
        vmax: float,
        minpos: float,  # noqa: ARG002
    ) -> tuple[float, float]:
        """Keep the axis within 0 to 100."""
        return max(vmin, 0.0), min(vmax, 100.0)


register_scale(PercentileScale)
