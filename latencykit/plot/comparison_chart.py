"""The shift plot: how much each percentile changed from one side to the other, and how sure that is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from latencykit.core.histogram import histogram_of
from latencykit.core.summary import Summary
from latencykit.errors import DataNotAvailableError
from latencykit.plot.figure import head, percentile_text
from latencykit.plot.label_layout import LineLabels
from latencykit.plot.style import BLUE, GREY, GROUND, INK, MUTED, RED, current_axes, tidy
from latencykit.units import format_change, format_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from latencykit.analysis.compare import Change, Comparison
    from latencykit.plot._typing import Runs

    Floats = NDArray[np.float64]

__all__ = ["compare"]

_TICKS = (
    1e-3, 1e-2, 0.05, 0.1, 0.2, 0.33, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0,
    10.0, 20.0, 50.0, 100.0, 1e3, 1e4, 1e5, 1e6,
)  # fmt: skip
_NARROWEST = 1.02


def compare(
    base: Comparison | Runs,
    new: Runs | None = None,
    *,
    ax: Axes | None = None,
    confidence: float = 0.95,
    title: str | None = None,
    subtitle: str | None = None,
    **options: Any,
) -> Axes:
    """Draw the relative change of each percentile with its interval.

    Parameters
    ----------
    base : data type, sequence or mapping of data types, or Comparison
    new : data type, sequence or mapping of data types, optional
        The other side; not needed for a `Comparison`.
    ax : Axes, optional
        Where to draw; the current axes by default.
    confidence : float, default 0.95
        Of the intervals; the band around the whole curve of two single runs holds for all percentiles at once.
    title, subtitle : str, optional
        By default the verdict and what it is based on. Empty for none.
    **options
        For `latencykit.compare`.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        Where no percentile was compared.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from latencykit.core.histogram import Histogram
    >>> a, b = (Histogram.of(np.arange(1, 2000) * factor) for factor in (10, 11))
    >>> ax = compare(a, b, ax=Figure().add_subplot(), run_noise=0.01)
    >>> ax.get_ylabel()
    'change from base to new'
    """
    from latencykit.analysis.compare import Comparison
    from latencykit.analysis.compare import compare as compare_rungs

    ax = current_axes(ax)
    found = (
        base
        if isinstance(base, Comparison)
        else compare_rungs(base, () if new is None else new, confidence=confidence, **options)
    )
    rows = [
        row for row in found.changes if row.percentile is not None and row.base > 0 and row.new > 0
    ]
    if not rows:
        raise DataNotAvailableError(
            "no percentile was compared, so there is nothing to draw; compare histograms, logs or samples"
        )
    top = (
        max(row.percentile or 0.0 for row in rows if (row.percentile or 0.0) < 100)
        if len(rows) > 1
        else 99.0
    )
    nines = max(2, math.ceil(-math.log10(1 - min(top, 99.99999) / 100) - 1e-9))
    whole = None if isinstance(base, Comparison) else _whole(base, new, confidence, nines + 0.45)
    ax.set_xscale("percentile", nines=nines)
    ax.set_xlim(0, 100)
    _ratio_axis(ax, rows, whole)
    ax.axhline(1.0, color=INK, linewidth=1.0, zorder=2, label="_no change")
    if whole is not None:
        _curve(ax, whole)
    labels = LineLabels()
    _points(ax, rows, labels)
    _sides(ax)
    ax.add_artist(labels)
    tidy(ax, "percentile of requests", "change from base to new")
    head(
        ax,
        _verdict(found, rows),
        _conditions(found, whole is not None, confidence),
        title,
        subtitle,
    )
    return ax


def _whole(
    base: Any, new: Any, confidence: float, last: float
) -> tuple[Floats, Floats, Floats, Floats] | None:
    """The whole shift function of two single runs, on a grid of percentiles, with its band."""
    from latencykit.analysis.compare import shift

    sides = [one for one in (base, new) if hasattr(one, "run") and not isinstance(one, Summary)]
    if len(sides) < 2 or any(side.run.corrected in ("us", "tool") for side in sides):
        return None
    one, two = (histogram_of(side, "a comparison") for side in sides)
    places = np.linspace(0.02, last, 160)
    found = shift(
        one.counted,
        two.counted,
        100.0 * (1.0 - 10.0**-places),
        confidence=confidence,
        replicates=400,
    )
    timed = any(
        hasattr(side, "starts") or getattr(side, "start", None) is not None for side in sides
    )
    band = (
        (found.ratio, found.ratio) if timed else (found.low, found.high)
    )  # the band is one of independent requests
    return (found.percentile, found.ratio, *band) if found.percentile.size > 1 else None


def _ratio_axis(
    ax: Axes, rows: list[Change], whole: tuple[Floats, Floats, Floats, Floats] | None
) -> None:
    """Ratios on a logarithmic scale, around "no change"."""
    ends = [
        1 + end for row in rows for end in (row.change, row.low, row.high) if -1 < end < math.inf
    ]
    low, high = min([*ends, 1 / _NARROWEST]), max([*ends, _NARROWEST])
    if whole is not None:
        low, high = min(low, float(whole[2].min())), max(high, float(whole[3].max()))
    room = (high / low) ** 0.12
    ax.set_yscale("log")
    ax.set_ylim(low / room, high * room)
    apart = (
        math.log(high * room * room / low)
        * 26.0
        / (ax.get_window_extent().height * 72.0 / ax.figure.dpi)
    )
    ax.yaxis.set_major_locator(FixedLocator(_ticks(low / room, high * room, apart)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(
        FuncFormatter(lambda ratio, _: "no change" if ratio == 1 else format_change(ratio - 1))
    )


def _ticks(low: float, high: float, apart: float) -> list[float]:
    """Round ratios from "no change" outwards, far enough from each other for their labels."""
    found = [1.0]
    for outwards in (
        [tick for tick in _TICKS if 1 < tick <= high],
        [tick for tick in reversed(_TICKS) if low <= tick < 1],
    ):
        last = 1.0
        for tick in outwards:
            if abs(math.log(tick / last)) >= apart:
                found.append(tick)
                last = tick
    return sorted(found)


def _curve(ax: Axes, whole: tuple[Floats, Floats, Floats, Floats]) -> None:
    at, ratio, low, high = whole
    ax.plot(at, ratio, drawstyle="steps-pre", color=GREY, linewidth=1.3, zorder=2.5, label="_shift")
    ax.fill_between(at, low, high, step="pre", color=GREY, alpha=0.22, linewidth=0, zorder=1.5)


def _colour(row: Change) -> str:
    if not row.significant:
        return MUTED
    return RED if row.low > 0 else BLUE


def _points(ax: Axes, rows: list[Change], labels: LineLabels) -> None:
    """Each percentile with its interval: filled where it changed, hollow where that cannot be told."""
    bottom, top = ax.get_ylim()
    for row in rows:
        at, ratio, colour = row.percentile or 0.0, 1 + row.change, _colour(row)
        low = 1 + row.low if row.low > -1 else bottom
        high = 1 + row.high if math.isfinite(row.high) else top
        bounded = row.low > -1 or math.isfinite(row.high)
        if bounded:
            look: dict[str, Any] = {
                "color": colour,
                "linewidth": 1.6,
                "zorder": 3,
                "solid_capstyle": "butt",
            }
            ax.plot([at, at], [max(low, bottom), min(high, top)], label="_interval", **look)
        face = colour if row.significant else "white"
        (mark,) = ax.plot(
            [at], [ratio], marker="o" if at < 100 else "D", markersize=6.5, color=colour, markerfacecolor=face, linestyle="none",
            zorder=4, clip_on=False, label=f"_{row.statistic}",
        )  # fmt: skip
        words = f"{percentile_text(at)} {format_change(row.change)}"
        tip = min(max(high, ratio), top) if math.isfinite(row.high) else ratio
        labels.point(ax, words, (at, tip), [mark], above=bounded, fontsize=9, color=colour)


def _sides(ax: Axes) -> None:
    """Say which way is which."""
    ax.axhspan(1.0, ax.get_ylim()[1], color="#fdf3f2", zorder=0, linewidth=0)
    ax.axhspan(ax.get_ylim()[0], 1.0, color=GROUND, zorder=0, linewidth=0)
    for place, words, va in (
        ((0.006, 0.985), "slower", "top"),
        ((0.006, 0.015), "faster", "bottom"),
    ):
        ax.text(*place, words, transform=ax.transAxes, va=va, ha="left", fontsize=9, color=MUTED)


def _verdict(found: Comparison, rows: list[Change]) -> str:
    words = {
        "same": "No change",
        "better": "Better",
        "worse": "Worse",
        "mixed": "Mixed",
        "inconclusive": "Inconclusive",
    }
    judged = [row for row in rows if row.significant]
    if not judged:
        within = [row for row in rows if not math.isnan(row.p_value)] or rows
        row = within[-1]
        return f"{words[found.verdict]}: {percentile_text(row.percentile or 0.0)} {format_change(row.change)}{_span(row)}"
    most = max(
        judged,
        key=lambda row: min(
            abs(math.log1p(max(row.low, -0.999999))), abs(math.log1p(min(row.high, 1e12)))
        ),
    )
    return f"{words[found.verdict]}: {percentile_text(most.percentile or 0.0)} {format_change(most.change)}{_span(most)}"


def _span(row: Change) -> str:
    if row.low <= -1 or math.isinf(row.high):
        return ""
    return f" ({format_change(row.low)} to {format_change(row.high)})"


def _conditions(found: Comparison, whole: bool, confidence: float) -> str:
    level = f"{100 * confidence:g} % intervals"
    runs = " against ".join(format_count(number) for number in found.runs)
    single = "one run per side: the intervals hold for these requests only"
    if found.run_noise is not None:
        single = (
            f"one run per side, taken to differ by {100 * found.run_noise:.2g} % from run to run"
        )
    parts = [f"{runs} runs" if found.basis == "runs" else single, level]
    parts += ["grey: every percentile, with a band that holds for all at once"] if whole else []
    return " · ".join([*parts, *found.warnings[:2]])
