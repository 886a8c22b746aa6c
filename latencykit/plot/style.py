"""Colours, dashes, ticks and texts that all charts share; nothing here touches matplotlib's global settings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from latencykit.units import NANOSECONDS, format_duration, format_value, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = [
    "AMBER", "BLUE", "GREY", "GRID", "GROUND", "INK", "RED", "current_axes", "line_styles", "log_ticks", "plain",
    "side_labels", "tick_text", "tidy", "title_axes", "value_axis",
]  # fmt: skip

RED, BLUE, AMBER = "#d0312d", "#0b5cbf", "#c77700"
INK, GREY, GRID, GROUND = "#1a1d23", "#6b7280", "#e4e6ea", "#f3f4f6"

# Told apart by people who see colours differently, and in print: each colour comes back with another dash.
_COLOURS = (BLUE, "#d97706", "#00856f", "#a3268f", "#5b6472", "#7a4a12")
_DASHES: tuple[Any, ...] = ("solid", (0, (6, 2)), (0, (2, 1.4)))


def line_styles(labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return one colour and dash a series: raw and uncorrected ones red, corrected ones blue, others in turn.

    Examples
    --------
    >>> [style["color"] for style in line_styles(["raw", "corrected"])]
    ['#d0312d', '#0b5cbf']
    """
    told = {label: _meaning(label) for label in labels}
    pair = len(labels) <= 3 and sum(colour is not None for colour in told.values()) >= 2
    spare = iter([c for c in _COLOURS if not pair or c != BLUE] * 2)
    styles = []
    for number, label in enumerate(labels):
        own = told[label] if pair else None
        colour = own or (next(spare) if pair else _COLOURS[number % len(_COLOURS)])
        dash = "solid" if pair else _DASHES[number // len(_COLOURS) % len(_DASHES)]
        styles.append({"color": colour, "linestyle": dash})
    return styles


def _meaning(label: str) -> str | None:
    words = label.lower().replace("_", " ").replace("-", " ").replace(".", " ").split()
    if any(word in ("raw", "uncorrected", "naive", "service") for word in words):
        return RED
    if any(word in ("corrected", "honest", "response", "scheduled", "retimed") for word in words):
        return BLUE
    return None


def plain(text: str, limit: int = 60) -> str:
    """Return foreign text that matplotlib takes as it is: no mathematics between dollar signs, nothing unprintable."""
    return printable(text, limit).replace("$", r"\$")


def current_axes(ax: Axes | None) -> Axes:
    """Return the axes given, or pyplot's current ones; pyplot is imported only then."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.gca()


def tidy(ax: Axes) -> None:
    """Give the axes the house look: faint grid, no upper and right spine, quiet ticks."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#9aa0aa")
    ax.set_axisbelow(True)
    ax.grid(visible=True, color=GRID, linewidth=0.8)
    ax.tick_params(colors=INK, labelsize=9, length=3, color="#9aa0aa")


def title_axes(ax: Axes, title: str | None, subtitle: str | None) -> None:
    """Write a bold title, and a grey line with the conditions below it."""
    lines = bool(title) + bool(subtitle)
    if title:
        ax.annotate(
            plain(title, 110), (0, 1), (0, 8 + 14 * (lines - 1)), "axes fraction", "offset points",
            fontsize=12, fontweight="bold", color=INK, va="bottom", annotation_clip=False,
        )  # fmt: skip
    if subtitle:
        ax.annotate(
            plain(subtitle, 150), (0, 1), (0, 6), "axes fraction", "offset points",
            fontsize=9, color=GREY, va="bottom", annotation_clip=False,
        )  # fmt: skip


def value_axis(ax: Axes, low: float, high: float, unit: str, *, log: bool = True, along: str = "y") -> None:
    """Scale an axis of values from `low` to `high`, with ticks such as 10 µs, 1 ms, 1 s."""
    axis = getattr(ax, f"{along}axis")
    limits, scale = getattr(ax, f"set_{along}lim"), getattr(ax, f"set_{along}scale")
    if not log:
        limits(0, high * 1.06 if high > 0 else 1)
        axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value, unit)))
        return
    scale("log")
    bottom, top = low / 1.3, high * 1.35
    limits(bottom, top)
    axis.set_major_locator(FixedLocator(log_ticks(bottom, top)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value, unit)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def tick_text(value: float, unit: str) -> str:
    """Return a value as a tick shows it: 10 µs, 1 ms, 1 s."""
    return format_duration(value * NANOSECONDS[unit]) if unit in NANOSECONDS else format_value(value, unit)


def log_ticks(bottom: float, top: float) -> list[float]:
    """Powers of ten; 1-2-5 within less than two decades; every other decade where there are many."""
    if math.log10(top / bottom) < 0.5:
        return [float(tick) for tick in MaxNLocator(5).tick_values(bottom, top) if bottom <= tick <= top]
    first, last = math.floor(math.log10(bottom)), math.ceil(math.log10(top))
    decades = last - first
    steps: tuple[float, ...] = (1.0,)
    if math.log10(top / bottom) < 0.8:
        steps = tuple(float(k) for k in range(1, 10))
    elif math.log10(top / bottom) < 3.0:
        steps = (1.0, 2.0, 5.0)
    stride = 1 if decades <= 9 else 3
    ticks = [step * 10.0**power for power in range(first, last + 1, stride) for step in steps]
    return [tick for tick in ticks if bottom <= tick <= top]


def side_labels(ax: Axes, values: Sequence[float], texts: Sequence[str], colours: Sequence[str], *, bold: bool = True) -> None:
    """Write a label at the right of the axes beside each value; labels that would meet are moved apart.

    Each is joined to its value by a thin line where it had to move.
    """
    if not len(values):
        return
    lines = max(text.count("\n") + 1 for text in texts)
    size = 9.0 if len(texts) <= 8 else 8.0
    height = _axes_height(ax)
    step = min(size * 1.35 * lines / height, 1.0 / len(texts))
    wanted = np.array([_fraction(ax, value) for value in values])
    order = np.argsort(wanted, kind="stable")
    placed = np.empty(len(values))
    placed[order] = _apart(wanted[order], step)
    for k, text in enumerate(texts):
        moved = abs(placed[k] - wanted[k]) > 0.25 * step
        leader = {"arrowstyle": "-", "color": colours[k], "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
        ax.annotate(
            text, (1.0, wanted[k]), (1.022, placed[k]), "axes fraction", "axes fraction", fontsize=size, color=colours[k],
            fontweight="bold" if bold else "normal", va="center", ha="left", annotation_clip=False, linespacing=1.15,
            arrowprops=leader if moved else None,
        )  # fmt: skip


def _axes_height(ax: Axes) -> float:
    """Height of the axes in points."""
    return float(max(40.0, ax.get_window_extent().height * 72.0 / ax.figure.dpi))


def _fraction(ax: Axes, value: float) -> float:
    bottom, top = ax.get_ylim()
    if ax.get_yscale() == "log":
        value, bottom, top = (math.log10(max(v, 1e-300)) for v in (value, bottom, top))
    return min(max((value - bottom) / (top - bottom), 0.0), 1.0)


def _apart(wanted: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Positions in ascending order, at least `step` apart, as near as possible to where they are wanted.

    Neighbours that are too near merge into a group that stands around the mean of its members' wishes.
    """
    groups: list[list[float]] = []  # each: sum of the members' wishes for the group's first place, number of members
    for position in wanted.tolist():
        groups.append([position, 1])
        while len(groups) > 1:
            before, last = groups[-2], groups[-1]
            if before[0] / before[1] + before[1] * step <= last[0] / last[1]:
                break
            groups.pop()
            before[0] += last[0] - last[1] * before[1] * step
            before[1] += last[1]
    placed = [total / int(size) + k * step for total, size in groups for k in range(int(size))]
    shift = min(0.0, 1.0 - placed[-1])
    result = np.asarray(placed) + shift
    return result + max(0.0, -float(result[0]))
