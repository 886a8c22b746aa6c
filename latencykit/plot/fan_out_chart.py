"""Fan-out: the latency of the slowest of n calls, and the share of users slower than one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from latencykit._text import format_items, plain
from latencykit.errors import InvalidArgumentError
from latencykit.plot.curves import curve_of, cut, nines_of
from latencykit.plot.label_layout import head
from latencykit.plot.percentile_chart import percentiles
from latencykit.plot.series import Drawable, as_series, joined, series_title
from latencykit.plot.style import current_axes, series_styles, tidy

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
    ['10 calls', '1 call']
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
    names = [format_items(result.n, "call") for result in results]
    curves = dict(zip(names[::-1], results[::-1], strict=True))  # as they lie, the slowest above
    options: dict[str, Any] = {"unit": unit, "log": log, "legend": legend} | line_kwargs
    places = nines or nines_of(results[0].leaf.count)
    percentiles(curves, ax=ax, nines=places, title="", subtitle="", **options)
    colours = [look["color"] for look in series_styles(curves).values()][::-1]
    for bound, colour in zip(bounds, colours, strict=False):
        if bound.n > 1:
            at, value = cut(curve_of(bound), 0.0, 100.0)
            ax.plot(
                at, np.maximum(value, ax.get_ylim()[0]), drawstyle="steps-pre", color=colour,
                linewidth=0.9, alpha=0.55, zorder=2.4, label="_bound",
            )  # fmt: skip
    tidy(ax, "percentile of users")
    notes = [
        series_title(label, values.run, results[0].leaf.count),
        "thin: if calls were independent" if len(results) > 1 and bounds else "",
        "dotted: the sample is too small" if curve_of(results[-1]).limit < 99.9999 else "",
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
