"""Ticks that people read at once: 10 µs, 1 ms, 1 s on an axis of values; 5 s, 10 min, 2 h on an axis of time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.scale import ScaleBase, register_scale
from matplotlib.ticker import Formatter, FuncFormatter, Locator, MaxNLocator, NullLocator
from matplotlib.transforms import Transform

from latencykit.units import (
    NANOSECONDS,
    format_duration,
    format_percentile,
    format_value,
    unit_factor,
)

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "BEYOND",
    "DecadeLocator",
    "PercentileFormatter",
    "PercentileLocator",
    "PercentileScale",
    "PercentileTransform",
    "ShareFormatter",
    "TimeLocator",
    "ValueFormatter",
    "fit_values",
    "log_ticks",
    "register",
    "time_axis",
    "time_text",
    "value_axis",
]


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
        self._factor = 1.0 if fixed is None else unit_factor(unit, fixed)

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - matplotlib's signature
        """Return the label of a tick."""
        if self.fixed is not None:
            return f"{x * self._factor:,.10g} {self.fixed.replace('us', 'µs')}"
        if self.unit in NANOSECONDS:
            return format_duration(x * NANOSECONDS[self.unit], 5)
        return format_value(x, self.unit)


class ShareFormatter(Formatter):
    """Shares in per cent, without zeros behind."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - matplotlib's signature
        """Return the label of a tick."""
        return f"{np.format_float_positional(x * 100, 6, trim='-')} %"


def log_ticks(bottom: float, top: float, most: int = 12) -> list[float]:
    """Return round values in [bottom, top], at least three where they can be had and at most `most`.

    Powers of ten where there are enough of them, else 1-3, 1-2-5 or finer steps within a decade; every second or third
    power where there are too many.
    """
    first, last = math.floor(math.log10(bottom)), math.ceil(math.log10(top))
    found: list[float] = []
    for steps in _STEPS:
        ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        finer = [tick for tick in ticks if bottom <= tick <= top]
        if found and len(finer) > most:
            break
        found = finer
        if len(found) >= 3:
            break
    if len(found) < 3:
        even = MaxNLocator(max(2, min(most, 6)), steps=[1, 2, 2.5, 5, 10]).tick_values(bottom, top)
        found = [float(tick) for tick in even if bottom <= tick <= top] or found
    return found[:: max(1, math.ceil(len(found) / max(most, 2)))]


class DecadeLocator(Locator):
    """Ticks of a logarithmic axis of values; see `log_ticks`."""

    def __init__(
        self, floor: float = 0.0, zero: float | None = None, ceiling: float = math.inf
    ) -> None:
        self.floor, self.zero, self.ceiling = floor, zero, ceiling

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks within [vmin, vmax]."""
        bottom = max(vmin, self.floor, 1e-300)
        top = min(vmax, self.ceiling)
        ticks = log_ticks(bottom, top, self._most()) if top > bottom else []
        return ticks if self.zero is None or not vmin <= self.zero <= vmax else [self.zero, *ticks]

    def _most(self) -> int:
        if self.axis is None:
            return 12
        axes: Any = self.axis.axes  # type: ignore[union-attr]
        upright = self.axis.axis_name == "y"  # type: ignore[union-attr]
        length = (axes.bbox.height if upright else axes.bbox.width) * 72.0 / axes.figure.dpi
        return max(3, int(length / (20 if upright else 52)))

    def __call__(self) -> list[float]:
        """Return the ticks in view."""
        assert self.axis is not None
        return self.tick_values(*sorted(self.axis.get_view_interval()))


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
        axis.set_major_formatter(formatter)
        return 0.0
    scale("log")
    if high < 4 * low:  # all values alike: no more detail than there is to see
        low, high = (low * high) ** 0.5 / 2, (low * high) ** 0.5 * 2
    span = max(math.log10(high / low), 0.25)
    upright = along == "y"
    length = max(60.0, ax.get_window_extent().height * 72.0 / ax.figure.dpi) if upright else 1.0
    above = max(0.09, 24.0 / (length - 24.0)) if upright else 0.07  # room for one label
    bottom, top = low / 10 ** (0.04 * span), high * 10 ** (above * span)
    zero = bottom / 10 ** (0.08 * span)
    limits(zero if zeros else bottom, top)
    axis.set_major_locator(DecadeLocator(bottom, zero if zeros else None))
    axis.set_major_formatter(
        FuncFormatter(lambda x, _: "0" if zeros and x <= zero * 1.0001 else formatter(x))
    )
    axis.set_minor_locator(NullLocator())
    return zero if zeros else bottom


def fit_values(
    ax: Any, values: NDArray[np.float64], unit: str, *, below: float = 1.0, **options: Any
) -> float:
    """Scale an axis to the values that are drawn on it; those that are not finite do not count."""
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (1.0, 10.0)
    return value_axis(ax, low / below, high, unit, zeros=bool((values == 0).any()), **options)


class EvenLocator(Locator):
    """Even ticks of a linear axis between two values, whatever is in view."""

    def __init__(self, floor: float, ceiling: float) -> None:
        self.floor, self.ceiling = floor, ceiling

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks within [vmin, vmax]."""
        low, high = max(vmin, self.floor), min(vmax, self.ceiling)
        return [
            float(tick) for tick in MaxNLocator(6).tick_values(low, high) if low <= tick <= high
        ]

    def __call__(self) -> list[float]:
        """Return the ticks in view."""
        assert self.axis is not None
        return self.tick_values(*sorted(self.axis.get_view_interval()))


class TimeLocator(Locator):
    """Ticks at round times: 5 s, 10 min, 2 h."""

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks within [vmin, vmax], in seconds."""
        span, most = vmax - vmin, self._most()
        step = next((step for step in _SECONDS if span / step <= most), span / most or 1.0)
        ticks = np.arange(math.ceil(vmin / step - 1e-9), math.floor(vmax / step + 1e-9) + 1) * step
        return [round(float(tick), 9) for tick in ticks]

    def _most(self) -> float:
        if self.axis is None:
            return 9
        axes: Any = self.axis.axes  # type: ignore[union-attr]
        return float(min(9.0, max(2.0, axes.bbox.width * 72.0 / axes.figure.dpi / 60)))

    def __call__(self) -> list[float]:
        """Return the ticks in view."""
        assert self.axis is not None
        return self.tick_values(*sorted(self.axis.get_view_interval()))


def time_text(seconds: float) -> str:
    """Return a time from the start as a tick shows it."""
    size = abs(seconds)
    if size < 60:
        return format_duration(seconds * 1e9)
    for unit, length, part in (("d", 86_400, 3600), ("h", 3600, 60), ("min", 60, 1)):
        if size >= length and not (unit == "d" and (size % length or size < 2 * length)):
            whole, rest = divmod(round(seconds), length)
            return f"{whole}:{rest // part:02d} {unit}" if rest else f"{whole} {unit}"
    return f"{seconds:g} s"


def time_axis(ax: Any, start: float, end: float) -> None:
    """Scale the x axis to times from `start` to `end` seconds, with round ticks."""
    ax.set_xlim(start, end if end > start else start + 1.0)
    ax.xaxis.set_major_locator(TimeLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: time_text(x)))


# ------------------------------------------------------------
# The percentile axis: evenly spaced by nines, ending at 100 %, where the maximum stands.
#
# ``ax.set_xscale("percentile", nines=6)`` puts percentile p at −log₁₀(1 − p/100): 90, 99, 99.9 … are one step apart.
# 100 % would lie at infinity; it stands a little beyond the last nine instead, so that the maximum is always in the picture.

BEYOND = 0.6
"""How far 100 % stands beyond the last nine, in nines."""


class PercentileTransform(Transform):
    """Percentile (0..100) → nines, clipped so that 100 % has a place."""

    input_dims = output_dims = 1
    is_separable = True

    def __init__(self, nines: float) -> None:
        super().__init__()
        self.nines = nines

    def transform_non_affine(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the place of each percentile, in nines."""
        left = 1.0 - np.asarray(values, np.float64) / 100.0
        places = -np.log10(np.clip(left, 10.0 ** -(self.nines + BEYOND), None))
        return np.asarray(np.round(places, 12) + 0.0, np.float64)

    def inverted(self) -> Transform:
        """Return the way back."""
        return _Inverse(self.nines)


class _Inverse(Transform):
    input_dims = output_dims = 1
    is_separable = True

    def __init__(self, nines: float) -> None:
        super().__init__()
        self.nines = nines

    def transform_non_affine(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the percentile at each place."""
        places = np.asarray(values, np.float64)
        return np.where(places >= self.nines + BEYOND - 1e-9, 100.0, 100.0 * (1.0 - 10.0**-places))

    def inverted(self) -> Transform:
        """Return the way forth."""
        return PercentileTransform(self.nines)


class PercentileLocator(Locator):
    """Ticks at 0, 50, 90, 99, 99.9 … up to so many nines, and at 100; as many of them as the axis has room for."""

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
        """Return the ticks in view whose labels do not meet."""
        assert self.axis is not None
        ticks = self.tick_values(*sorted(self.axis.get_view_interval()))
        return self._with_room(ticks)

    def _with_room(self, ticks: list[float]) -> list[float]:
        """Leave out what would touch its neighbour; the ends stay."""
        axis: Any = self.axis
        if len(ticks) < 3 or axis.axis_name != "x":
            return ticks
        size, place = _label_size(axis), axis.get_transform().transform
        at = (
            place(np.array(ticks))
            / np.ptp(place(np.array(axis.get_view_interval())))
            * axis.axes.bbox.width
        )
        half = np.array(
            [0.34 * size * len(PercentileFormatter()(tick)) + 0.25 * size for tick in ticks]
        )
        kept = [0]
        for k in range(1, len(ticks) - 1):
            if (
                at[k] - half[k] >= at[kept[-1]] + half[kept[-1]]
                and at[k] + half[k] <= at[-1] - half[-1]
            ):
                kept.append(k)
        return [ticks[k] for k in (*kept, len(ticks) - 1)]


def _label_size(axis: Any) -> float:
    """Font size of an axis' tick labels in pixels."""
    points = axis.get_major_ticks(1)[0].label1.get_fontsize()
    return float(points * axis.axes.figure.dpi / 72.0)


class PercentileFormatter(Formatter):
    """99.9 as ``99.9``, 100 as ``100 %``."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - matplotlib's signature
        """Return the label of a tick."""
        return "100 %" if x >= 100 else format_percentile(round(x, 10))


class PercentileScale(ScaleBase):
    """The scale's registration; see the module."""

    name = "percentile"

    def __init__(self, _axis: Axis | None = None, *, nines: float = 6) -> None:
        self.nines = nines

    def get_transform(self) -> Transform:
        """Return percentile → place."""
        return PercentileTransform(self.nines)

    def set_default_locators_and_formatters(self, axis: Axis) -> None:
        """Give the axis its ticks."""
        axis.set_major_locator(PercentileLocator(self.nines))
        axis.set_major_formatter(PercentileFormatter())
        axis.set_minor_locator(NullLocator())

    def limit_range_for_scale(self, vmin: float, vmax: float, minpos: float) -> tuple[float, float]:  # noqa: ARG002
        """Keep the axis within 0 to 100."""
        return max(vmin, 0.0), min(vmax, 100.0)


def register() -> None:
    """Make ``set_xscale("percentile")`` known to matplotlib."""
    register_scale(PercentileScale)
