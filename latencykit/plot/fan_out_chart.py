"""Fan-out: the latency of the slowest of n calls, and the share of users slower than one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from latencykit._text import format_items, plain
from latencykit.errors import InvalidArgumentError
from latencykit.plot.axes import fit_values
from latencykit.plot.curves import Curve, curve_of, cut, draw_curve, end_words, nines_of
from latencykit.plot.label_layout import LineLabels, head, outside_legend
from latencykit.plot.series import Drawable, as_series, joined, series_title
from latencykit.plot.style import FEW, INK, Look, current_axes, series_styles, tidy
from latencykit.units import format_value

if TYPE_CHECKING:
    from latencykit.analysis.fan_out import FanOut


def fan_out(
    data: Drawable,
    n: int | Sequence[int] = (1, 10, 100),
    *,
    ax: Axes | None = None,
    independent: bool = False,
    unit: str | None = None,
    nines: float | None = None,
    log: bool = True,
    legend: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: object,
) -> Axes:
    """Draw the latency of users who wait for the slowest of n calls.

    Parameters
    ----------
    data : data type, or mapping of one label to a data type
        One call.
    n : int or sequence of int
        Calls of one user, one curve each.
    ax : Axes, optional
        Where to draw; the current axes by default.
    independent : bool, default False
        Take calls as independent, even where a log shows otherwise.
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
    series = as_series(data)
    label, values = next(iter(series.items()))
    if len(series) > 1:  # their total, if there is one
        totals = [part for part in series.values() if part.run.aggregate]
        if len(totals) != 1:
            some = ", ".join(plain(name, 24) for name in list(series)[:6])
            raise InvalidArgumentError(
                f"a fan-out shows one series, not {len(series)} ({some}); choose one of them"
            )
        label, values = f"total of {len(series) - 1} series", totals[0]
    from latencykit.analysis.fan_out import fan_out

    sizes = np.ravel(n).tolist()
    results = fan_out(values, sizes, independent=independent, shares=(99.0,))
    mixed = any(result.model == "mixture" for result in results)
    bounds = fan_out(values, sizes, independent=True, shares=(99.0,)) if mixed else []
    curves = [_curve(result) for result in results]
    ax.set_xscale("percentile", nines=nines or nines_of(results[0].leaf.count))
    ax.set_xlim(0, 100)
    drawn = np.concatenate([curve.value for curve in curves])
    zero = fit_values(ax, drawn, curves[0].unit, fixed=unit, log=log)
    names = [format_items(result.n, "call") for result in results]
    styles = series_styles(dict.fromkeys(names))
    lines = [
        draw_curve(ax, curve, {"label": name, **styles[name]} | line_kwargs, zero)
        for name, curve in zip(names, curves, strict=True)
    ]
    for bound in bounds:
        if bound.n > 1:
            at, value = cut(_curve(bound), 0.0, 100.0)
            colour = styles[format_items(bound.n, "call")]["color"]
            look: Look = {"color": colour, "linewidth": 0.9, "alpha": 0.55}
            look |= {"label": "_bound", "zorder": 2.4}
            ax.plot(at, np.maximum(value, zero), drawstyle="steps-pre", **look)
    if legend:  # few curves are named beside them
        labels = LineLabels()
        if len(names) > FEW:
            outside_legend(ax, [own[0] for own in lines[::-1]], names[::-1])
        else:
            for k, (name, own) in enumerate(zip(names, lines, strict=True)):
                labels.add(ax, name, own, at=0.15 + 0.1 * k, spread=0.7)
        top, last = max(curve.top for curve in curves), curves[-1]
        words = end_words(last) if last.bound is None else f"≥ {format_value(top, last.unit)}"
        handles = [line for own in lines for line in own]
        labels.point(ax, words, (100.0, top), handles, color=INK, fontsize=9)
        ax.add_artist(labels)
    tidy(ax, "percentile of users")
    weak = any(curve.limit < 99.9999 for curve in curves)
    notes = [
        series_title(label, values.run, results[0].leaf.count),
        "thin: if calls were independent" if len(results) > 1 and bounds else "",
        "dotted: the sample is too small" if weak else "",
    ]
    finding = (
        f"{_slower(results[-1])} of users who wait for {names[-1]} fare worse than the p99 of one"
    )
    finding += f" ({_slower(bounds[-1])} if independent)" if bounds else ""
    head(ax, finding, joined({label: values}, *notes), title, subtitle)
    return ax


def _slower(result: FanOut) -> str:
    """Return the share of users slower than the p99 of one call: two digits, and no exponent."""
    return f"{float(f'{100 * result.above[99.0]:.2g}'):g} %"


def _curve(result: FanOut) -> Curve:
    """Return a curve that is solid as far as the single calls support it."""
    curve = curve_of(result)
    grid = 100.0 * (1.0 - 10.0 ** -np.linspace(0.0, 6.0, 121)[1:])
    supported = [result.supported(p) for p in grid.tolist()]
    last = supported.index(False) if False in supported else len(supported)
    limit = float(grid[last - 1]) if last else 0.0
    bound = result.censored_at
    return replace(curve, limit=limit, bound=bound if np.isfinite(bound) else None)
