"""The percentile axis: evenly spaced by nines, ending at 100 %, where the maximum stands.

``ax.set_xscale("percentile", nines=6)`` puts percentile p at −log₁₀(1 − p/100): 90, 99, 99.9 … are one step apart.
100 % would lie at infinity; it stands a little beyond the last nine instead, so that the maximum is always in the picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.scale import ScaleBase, register_scale
from matplotlib.ticker import Formatter, Locator, NullLocator
from matplotlib.transforms import Transform

from latencykit.units import format_percentile

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from numpy.typing import ArrayLike, NDArray

__all__ = ["BEYOND", "PercentileFormatter", "PercentileLocator", "PercentileScale", "PercentileTransform", "register"]

BEYOND = 0.6
"""How far 100 % stands beyond the last nine, in nines."""


class PercentileTransform(Transform):
    """Percentile (0..100) → nines, clipped so that 100 % has a place.

    Examples
    --------
    >>> PercentileTransform(6).transform([0, 90, 99, 100]).tolist()
    [0.0, 1.0, 2.0, 6.6]
    """

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
    """Ticks at 0, 50, 90, 99, 99.9 … up to so many nines, and at 100; as many of them as the axis has room for.

    Examples
    --------
    >>> PercentileLocator(3).tick_values(0, 100)
    [0.0, 50.0, 90.0, 99.0, 99.9, 100.0]
    """

    def __init__(self, nines: float) -> None:
        self.nines = nines

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks within [vmin, vmax]."""
        nines = (100.0 - 10.0 ** (2 - k) for k in range(1, int(self.nines) + 1))
        return [tick for tick in (0.0, 50.0, *(round(nine, 10) for nine in nines), 100.0) if vmin <= tick <= vmax]

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
        at = place(np.array(ticks)) / np.ptp(place(np.array(axis.get_view_interval()))) * axis.axes.bbox.width
        half = np.array([0.34 * size * len(PercentileFormatter()(tick)) + 0.25 * size for tick in ticks])
        kept = [0]
        for k in range(1, len(ticks) - 1):
            if at[k] - half[k] >= at[kept[-1]] + half[kept[-1]] and at[k] + half[k] <= at[-1] - half[-1]:
                kept.append(k)
        return [ticks[k] for k in (*kept, len(ticks) - 1)]


def _label_size(axis: Any) -> float:
    """Font size of an axis' tick labels in pixels."""
    points = axis.get_major_ticks(1)[0].label1.get_fontsize()
    return float(points * axis.axes.figure.dpi / 72.0)


class PercentileFormatter(Formatter):
    """99.9 as ``99.9``, 100 as ``100 %``.

    Examples
    --------
    >>> [PercentileFormatter()(tick) for tick in (50.0, 99.99, 100.0)]
    ['50', '99.99', '100 %']
    """

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - matplotlib's signature
        """Return the label of a tick."""
        return "100 %" if x >= 100 else format_percentile(round(x, 10))


class PercentileScale(ScaleBase):
    """The scale's registration; see the module.

    Parameters
    ----------
    nines : float, keyword
        Number of nines before 100 %.
    """

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
