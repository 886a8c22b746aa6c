"""The change of each percentile from one side to the other, with its interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

import latencykit.plot.axes  # noqa: F401 - the percentile scale
from latencykit.errors import DataNotAvailableError
from latencykit.plot import style
from latencykit.plot.label_layout import LineLabels, head
from latencykit.units import format_change, format_count, percentile_name

if TYPE_CHECKING:
    from latencykit.analysis.compare import Change, Comparison, Runs


_TICKS = (
    1e-3, 1e-2, 0.05, 0.1, 0.2, 0.33, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0, 1.01, 1.02, 1.05,
    1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1e3, 1e4, 1e5, 1e6,
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
    **options: object,
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
        Of the intervals.
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
    >>> a, b = (Histogram.of(range(factor, 2000 * factor, factor)) for factor in (10, 11))
    >>> ax = compare(a, b, ax=Figure().add_subplot(), run_noise=0.01)
    >>> ax.get_ylabel()
    'change from base to new'
    """
    from latencykit.analysis.compare import Comparison, named_changes
    from latencykit.analysis.compare import compare as compare_sides

    ax = style.current_axes(ax)
    if isinstance(base, Comparison):
        comparison = base
    else:
        arguments: dict[str, Any] = {"confidence": confidence} | options
        comparison = compare_sides(base, () if new is None else new, **arguments)
    changes = [row for row in comparison.changes if row.percentile is not None]
    rows = [row for row in changes if row.base > 0 and row.new > 0]
    if not rows:
        raise DataNotAvailableError(
            "no percentile was compared, so there is nothing to draw; "
            "compare histograms, logs or samples"
        )
    percentiles = [row.percentile or 0.0 for row in rows]
    top = max((p for p in percentiles if p < 100), default=0.0) if len(rows) > 1 else 99.0
    nines = max(2, math.ceil(-math.log10(1 - min(top, 99.99999) / 100) - 1e-9))
    ax.set_xscale("percentile", nines=nines)
    ax.set_xlim(0, 100)
    _scale_ratios(ax, rows)
    ax.axhline(1.0, color=style.INK, linewidth=1.0, zorder=2, label="_no change")
    labels, (bottom, top_end) = LineLabels(), ax.get_ylim()
    for k, row in enumerate(rows):  # hollow where it is undecided
        at, ratio = row.percentile or 0.0, 1 + row.change
        colour = style.MUTED if not row.significant else style.AMBER if row.low > 0 else style.BLUE
        low = 1 + row.low if row.low > -1 else bottom
        high = 1 + row.high if math.isfinite(row.high) else top_end
        if row.low > -1 or math.isfinite(row.high):
            look: style.Look = {"linewidth": 1.6, "zorder": 3, "solid_capstyle": "butt"}
            ends = [max(low, bottom), min(high, top_end)]
            ax.plot([at, at], ends, color=colour, label="_interval", **look)
        (mark,) = ax.plot(
            [at], [ratio], marker="o" if at < 100 else "D", markersize=6.5, color=colour,
            markerfacecolor=colour if row.significant else style.ground_of(ax), linestyle="none",
            zorder=4, clip_on=False, label=f"_{row.statistic}",
        )  # fmt: skip
        text = f"{percentile_name(at)} {format_change(row.change)}"
        # Above and below by turns, so that names find places.
        below = (k % 2 == 1 or math.isinf(row.high)) and row.low > -1
        above, tip = not below and math.isfinite(row.high), ratio
        if below:
            tip = max(min(low, ratio), bottom)
        elif above:
            tip = min(max(high, ratio), top_end)
        labels.point(
            ax, text, (at, tip), [mark], above=above, below=below, fontsize=9, color=colour
        )
    ax.axhspan(1.0, top_end, color=style.WARM, zorder=0, linewidth=0)
    ax.axhspan(bottom, 1.0, color=style.GROUND, zorder=0, linewidth=0)
    words: style.Look = {
        "transform": ax.transAxes,
        "ha": "left",
        "fontsize": 9,
        "color": style.MUTED,
    }
    ax.text(0.006, 0.985, "slower", va="top", **words)
    ax.text(0.006, 0.015, "faster", va="bottom", **words)
    ax.add_artist(labels)
    style.tidy(ax, "percentile of requests", "change from base to new")
    basis = "one run per side: the intervals hold for these requests only"
    if comparison.basis == "runs":
        basis = f"{' against '.join(map(format_count, comparison.runs))} runs"
    elif comparison.run_noise is not None:
        noise = 100 * comparison.run_noise
        basis = f"one run per side, taken to differ by {noise:.2g} % from run to run"
    parts = [basis, f"{100 * confidence:g} % intervals"]
    hollow = {row.significance for row in rows if not row.significant}
    if hollow:  # the maximum is never judged
        unjudged = ["not judged"] * ("not judged" in hollow)
        undecided = ["not shown to differ"] * bool(hollow - {"not judged"})
        parts.append(f"hollow: {' or '.join(unjudged + undecided)}")
    parts = [f"not alike: {comparison.unfair}"] * bool(comparison.unfair) + parts
    parts += comparison.warnings[:1]
    # Of the changes that the verdict in words names the least doubtful, or the largest one judged.
    names = {row.statistic for row in named_changes(comparison)}
    judged = [row for row in rows if row.statistic in names]
    if judged:
        named = max(
            judged,
            key=lambda row: min(
                abs(math.log1p(max(row.low, -0.999999))), abs(math.log1p(min(row.high, 1e12)))
            ),
        )
    else:
        known = [row for row in rows if not math.isnan(row.change)] or rows
        shown = [row for row in known if row.significance != "not judged"] or known
        named = max(shown, key=lambda row: abs(math.log1p(row.change)))
    finding = f"{percentile_name(named.percentile or 0.0)} {format_change(named.change)}".rstrip()
    if named.low > -1 and not math.isinf(named.high):
        finding += f" ({format_change(named.low)} to {format_change(named.high)})"
    finding = f"{comparison.verdict.capitalize()}: {finding}"
    head(ax, finding, " · ".join(parts), title, subtitle)
    return ax


def _scale_ratios(ax: Axes, rows: list[Change]) -> None:
    """Scale the ratios logarithmically around "no change", with ticks as far as labels fit."""
    ends = [end for row in rows for end in (row.change, row.low, row.high) if -1 < end < math.inf]
    low = min([*(1 + end for end in ends), 1 / _NARROWEST])
    high = max([*(1 + end for end in ends), _NARROWEST])
    margin = (high / low) ** 0.12
    low, high = low / margin, high * margin
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    height = ax.get_window_extent().height * 72.0 / ax.figure.dpi
    apart = math.log(high / low) * 26.0 / height
    ticks = [1.0]
    slower = [tick for tick in _TICKS if 1 < tick <= high]
    faster = [tick for tick in reversed(_TICKS) if low <= tick < 1]
    for outwards in (slower, faster):
        last = 1.0
        for tick in outwards:
            if abs(math.log(tick / last)) >= apart:
                ticks.append(tick)
                last = tick
    ax.yaxis.set_major_locator(FixedLocator(sorted(ticks)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(
        FuncFormatter(lambda ratio, _: "no change" if ratio == 1 else format_change(ratio - 1))
    )
