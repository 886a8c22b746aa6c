"""Fan-out: how long users wait for the slowest of n calls, and how often they meet a percentile of one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import NullLocator

from latencykit.errors import InvalidArgumentError
from latencykit.plot.axes import DecadeLocator, ShareFormatter, fit_values
from latencykit.plot.curves import curve_of, cut, draw_curve, end_words, nines_of, only_series
from latencykit.plot.figure import head, joined, measured
from latencykit.plot.label_layout import LineLabels, make_room, outside_legend
from latencykit.plot.style import FEW, INK, MUTED, current_axes, plain, series_styles, shorten, tidy
from latencykit.units import format_count, format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from latencykit.analysis.fan_out import FanOut
    from latencykit.plot._typing import Drawable
    from latencykit.plot.curves import Curve

    Floats = NDArray[np.float64]

__all__ = ["fan_out"]

_BOUND: Any = (0, (2.6, 1.8))
_MAP = LinearSegmentedColormap.from_list(
    "met", ["#f5f8fc", "#cfe0f4", "#8fb9e6", "#3f86d3", "#0b4a97"]
)
_NINES = 5


def fan_out(
    data: Drawable | None = None,
    n: Sequence[int] = (1, 10, 100),
    *,
    ax: Axes | None = None,
    kind: Literal["curves", "heatmap"] = "curves",
    independent: bool = False,
    unit: str | None = None,
    nines: float | None = None,
    log: bool = True,
    legend: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: Any,
) -> Axes:
    """Draw what users meet who wait for the slowest of n calls.

    Parameters
    ----------
    data : data type, or mapping of one label to a data type, optional
        One call. The heat map can do without: then calls are independent.
    n : sequence of int
        Calls of one user, a curve each; of the heat map the first and the last of its axis.
    ax : Axes, optional
        Where to draw; the current axes by default.
    kind : {"curves", "heatmap"}
        Percentile curves of the users; or the share of users who meet each percentile of one call, with the line at
        which half of them do.
    independent : bool, default False
        Take calls as independent, even where a log knows better.
    unit, nines, log, legend, title, subtitle
        As in `percentiles`.
    **line_kwargs
        For the lines, as `Axes.plot` takes them.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        For a summary.
    InvalidArgumentError
        For more than one series, and for impossible numbers of calls.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from latencykit.core.histogram import Histogram
    >>> ax = fan_out(Histogram.of(range(1, 1000)), [1, 10], ax=Figure().add_subplot())
    >>> [line.get_label() for line in ax.lines if not line.get_label().startswith("_")]
    ['1 call', '10 calls']
    """
    ax = current_axes(ax)
    label, values = _only(data)
    if kind == "heatmap":
        return _heat_map(ax, label, values, n, independent, title, subtitle)
    if values is None:
        raise InvalidArgumentError(
            "curves of a fan-out need the latencies of one call; the heat map (kind='heatmap') does without"
        )
    from latencykit.analysis.fan_out import fan_outs

    found = fan_outs(values, list(n), independent=independent, shares=(99.0,))
    mixed = any(one.model == "mixture" for one in found)
    bounds = fan_outs(values, list(n), independent=True, shares=(99.0,)) if mixed else []
    curves = [_curve(one) for one in found]
    places = nines or nines_of(found[0].leaf.count)
    ax.set_xscale("percentile", nines=places)
    ax.set_xlim(0, 100)
    zero = fit_values(
        ax, np.concatenate([curve.value for curve in curves]), curves[0].unit, fixed=unit, log=log
    )
    styles = list(series_styles({_calls(one.n): None for one in found}).values())
    lines = {}
    for k, (one, curve) in enumerate(zip(found, curves, strict=True)):
        style: dict[str, Any] = {"label": _calls(one.n), **styles[k]} | line_kwargs
        lines[one.n] = draw_curve(ax, curve, style, zero)
    for k, bound in enumerate(bounds):
        if bound.n > 1:
            at, value = cut(_curve(bound), 0.0, 100.0)
            look: dict[str, Any] = {
                "color": styles[k]["color"],
                "linewidth": 1.0,
                "linestyle": _BOUND,
                "alpha": 0.75,
            }
            ax.plot(
                at,
                np.maximum(value, zero),
                drawstyle="steps-pre",
                label="_bound",
                zorder=2.4,
                **look,
            )
    if legend:
        _name(ax, found, curves, lines)
    tidy(ax, "percentile of users")
    more = ["dashed: if calls were independent" if len(found) > 1 and bounds else ""]
    more.append(
        "dotted: the sample is too small" if any(curve.limit < 99.9999 for curve in curves) else ""
    )
    said = _finding(found[-1], bounds[-1] if bounds else None)
    head(
        ax, said, joined({label: values}, _source(label, values, found[0]), *more), title, subtitle
    )
    return ax


def _only(data: Any) -> tuple[str, Any]:
    if data is None:
        return "", None
    return only_series(data, "a fan-out")


def _calls(n: int) -> str:
    return f"{format_count(n)} call" + ("" if n == 1 else "s")


def _source(label: str, data: Any, first: FanOut) -> str:
    return " · ".join(
        filter(None, (plain(shorten(label, 60)), measured(data.run, first.leaf.count)))
    )


def _curve(one: FanOut) -> Curve:
    """A curve that ends to be solid where the single calls do not support it any more."""
    curve = curve_of(one.distribution)
    grid = 100.0 * (1.0 - 10.0 ** -np.linspace(0.0, 6.0, 121)[1:])
    sure = [one.supported(p) for p in grid.tolist()]
    last = sure.index(False) if False in sure else len(sure)
    limit = float(grid[last - 1]) if last else 0.0
    bound = one.distribution.censored_at
    return replace(curve, limit=limit, bound=bound if np.isfinite(bound) else None)


def _name(
    ax: Axes, found: Sequence[FanOut], curves: Sequence[Curve], lines: dict[int, list[Line2D]]
) -> None:
    labels = LineLabels()
    if len(found) > FEW:
        outside_legend(
            ax,
            [lines[one.n][0] for one in reversed(found)],
            [_calls(one.n) for one in reversed(found)],
        )
    else:
        for k, one in enumerate(found):
            labels.add(ax, _calls(one.n), lines[one.n], at=0.15 + 0.1 * k, spread=0.7)
    top = max(curve.top for curve in curves)
    words = (
        end_words(curves[-1])
        if curves[-1].bound is None
        else f"≥ {format_value(top, curves[-1].unit)}"
    )
    labels.point(
        ax,
        words,
        (100.0, top),
        [line for held in lines.values() for line in held],
        color=INK,
        fontsize=9,
    )
    ax.add_artist(labels)


def _per_cent(one: FanOut) -> str:
    """Of the users, who fare worse than the p99 of one call: two digits, and no exponent."""
    return f"{float(f'{100 * one.above[99.0]:.2g}'):g} %"


def _finding(one: FanOut, bound: FanOut | None) -> str:
    share = f"{_per_cent(one)} of users who wait for {_calls(one.n)} fare worse than the p99 of one"
    return share if bound is None else f"{share} ({_per_cent(bound)} if independent)"


# ---------------------------------------------------------------- the heat map


def _heat_map(
    ax: Axes,
    label: str,
    data: Any,
    n: Sequence[int],
    independent: bool,
    title: str | None,
    subtitle: str | None,
) -> Axes:
    """Leaf percentile × number of calls: the share of users who fare worse, and where half of them do."""
    from latencykit.analysis.fan_out import chance_of_slow, fan_outs

    first, last = min(n, default=1), max([*n, 2])
    if first < 1:
        raise InvalidArgumentError(f"a fan-out must be at least 1, not {first}")
    calls = np.geomspace(first, last, 60)
    percentiles = 100.0 * (1.0 - 10.0 ** -np.linspace(0.0, _NINES, 121))
    shares = np.array([chance_of_slow(percentiles, one) for one in calls])
    model = "independent calls"
    if data is not None and not independent:
        whole = np.unique(np.rint(calls[::2]).astype(np.int64))
        calls, found = (
            whole.astype(np.float64),
            fan_outs(data, whole.tolist(), shares=percentiles.tolist()),
        )
        shares = np.array([list(one.above.values()) for one in found])
        model = "calls mixed by interval" if any(one.model == "mixture" for one in found) else model
    ax.set_xscale("log")
    ax.set_yscale("percentile", nines=_NINES)
    ax.set_xlim(float(calls[0]), float(calls[-1]))
    ax.set_ylim(0.0, float(percentiles[-1]))
    look: dict[str, Any] = {"cmap": _MAP, "vmin": 0.0, "vmax": 1.0}
    image = ax.contourf(
        calls, percentiles, shares.T, levels=np.linspace(0, 1, 41), zorder=1, **look
    )
    thin = ax.contour(
        calls,
        percentiles,
        shares.T,
        levels=[0.01, 0.1, 0.9, 0.99],
        colors=INK,
        linewidths=0.7,
        zorder=2,
    )
    half = ax.contour(
        calls, percentiles, shares.T, levels=[0.5], colors="#d0312d", linewidths=2.0, zorder=3
    )
    for lines, size in ((thin, 8), (half, 9.5)):
        ax.clabel(lines, fmt=ShareFormatter(), fontsize=size, inline_spacing=4)
    ax.xaxis.set_major_locator(DecadeLocator())
    ax.xaxis.set_major_formatter(lambda x, _: format_count(x))
    ax.xaxis.set_minor_locator(NullLocator())
    _bar(ax, image)
    tidy(ax, "calls that a user waits for", "percentile of one call")
    ax.grid(visible=False)
    said = "Most users fare worse than any percentile of one call below the red line"
    head(ax, said, " · ".join(filter(None, (plain(shorten(label, 60)), model))), title, subtitle)
    return ax


def _bar(ax: Axes, image: Any) -> None:
    place = ax.inset_axes((1.018, 0.0, 0.014, 1.0))
    bar = ax.figure.colorbar(image, cax=place, ticks=[0, 0.25, 0.5, 0.75, 1])
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    bar.ax.tick_params(labelsize=8, labelcolor=INK, length=0)
    bar.set_label("share of users who fare worse", fontsize=8.5, color=MUTED)
    make_room(ax, bar.ax.yaxis.label)
