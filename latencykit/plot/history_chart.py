"""A statistic over the runs of a history, with noise band and changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter

from latencykit._text import format_items, plain
from latencykit.analysis.judge import SETTINGS
from latencykit.plot.axes import fit_values
from latencykit.plot.label_layout import EndLabels, head
from latencykit.plot.style import AMBER, COLOURS, current_axes, tidy
from latencykit.units import format_value

if TYPE_CHECKING:
    from latencykit.history.history import Trend
    from latencykit.history.run_file import StoredRun

_FEW_POINTS = 150  # runs whose points are drawn large
_CHANGES = 6  # that are labelled: the latest ones
_TICK = 0.95  # inches between labels of runs


def history(
    data: Sequence[Trend],
    *,
    ax: Axes | None = None,
    title: str | None = None,
    subtitle: str | None = None,
) -> Axes:
    """Draw the trends of one series: points, levels, noise bands, and changes between two runs."""
    # By default the title is the last change, and the subtitle has the conditions.
    ax = current_axes(ax)
    runs = sorted({run for trend in data for run in trend.runs}, key=lambda run: run.order)
    place = {run: k for k, run in enumerate(runs)}
    fit_values(ax, np.concatenate([trend.values for trend in data]), data[0].unit, log=True)
    machines = list(dict.fromkeys(_machine(trend) for trend in data))
    statistics = list(dict.fromkeys(trend.statistic for trend in data))
    chief = next((trend for trend in data if trend.changes), data[0])  # which the title is about
    ends = EndLabels()
    size = 18 if len(runs) <= _FEW_POINTS else 5
    for trend in data:
        x = np.array([place[run] for run in trend.runs])
        number = statistics.index(trend.statistic) + len(statistics) * machines.index(
            _machine(trend)
        )
        colour = COLOURS[number % len(COLOURS)]
        ax.scatter(x, trend.values, s=size, color=colour, alpha=0.8, linewidths=0, zorder=3)
        ax.fill_between(x, trend.low, trend.high, color=colour, alpha=0.12, linewidth=0, step="mid")
        ax.plot(x, trend.level, color=colour, linewidth=1.6, drawstyle="steps-mid")
        name = f"{trend.statistic} {_machine(trend)}" if len(machines) > 1 else trend.statistic
        ends.add(ax, plain(name.strip()), float(trend.values[-3:].mean()), color=colour)
        for number, change in enumerate(trend.changes):
            first, last = place[trend.runs[change.first]], place[trend.runs[change.last]]
            ax.axvspan(
                first, max(last, first + 0.2), color=_colour(change), alpha=0.16, linewidth=0
            )
            if len(trend.changes) - number <= _CHANGES and trend is chief:
                step = 100 * (change.after / change.before - 1)
                ax.annotate(
                    f"{step:+.0f} %", ((first + last) / 2, 1), (0, -3), color=_colour(change),
                    xycoords=("data", "axes fraction"), textcoords="offset points",
                    ha="center", va="top", fontsize=8.5, fontweight="bold",
                )  # fmt: skip
    ax.set_xlim(-0.5, len(runs) - 0.5)
    ends.attach(ax)
    _run_ticks(ax, runs)
    tidy(ax, "run")
    named = plain(", ".join(filter(None, machines)))
    band = "shaded: where 95 of 100 unchanged runs lie"
    conditions = " · ".join(filter(None, (format_items(len(runs), "run"), named, band)))
    name = f"{plain(chief.series)} {chief.statistic}"
    name += f" on {plain(_machine(chief))}" if len(machines) > 1 and _machine(chief) else ""
    finding = f"{name} has not changed in {len(chief.runs):,} runs"
    if len(chief.runs) <= SETTINGS.min_history_runs:
        count = format_items(len(chief.runs), "run")
        finding = f"{name}: {count}, too few to show a change"
    elif chief.changes:
        change = chief.changes[-1]
        step = change.after / change.before - 1
        levels = (format_value(value, chief.unit) for value in (change.before, change.after))
        finding = f"{name} {'rose' if step > 0 else 'fell'} by {100 * abs(step):.0f} %, "
        finding += f"from {' to '.join(levels)}, at {chief.runs[change.last].label}"
    head(ax, finding, conditions, title, subtitle)
    return ax


def _machine(trend: Trend) -> str:
    return ", ".join(trend.labels.values())


def _colour(change: Any) -> str:
    return AMBER if change.after > change.before else COLOURS[2]


def _run_ticks(ax: Axes, runs: Sequence[StoredRun]) -> None:
    """Commits, or dates above times, below every n-th run: as many as there is space for."""
    inches = ax.bbox.width / ax.figure.dpi
    step = max(1, math.ceil((len(runs) - 1) / max(1, int(inches / _TICK) - 1)))
    ax.xaxis.set_major_locator(FixedLocator(range(len(runs) - 1, -1, -step)))

    def label(x: float, _: int) -> str:
        return plain(runs[round(x)].label).replace(" ", "\n") if 0 <= round(x) < len(runs) else ""

    ax.xaxis.set_major_formatter(FuncFormatter(label))
