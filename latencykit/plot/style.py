"""Colours, markers and the quiet frame that all charts share; global settings stay untouched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from latencykit._text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Look: TypeAlias = dict[str, Any]
"""How a line, an area or a text is drawn: matplotlib's keywords."""


RED, BLUE, AMBER = "#d0312d", "#0b5cbf", "#c77700"
INK, GREY, MUTED, EDGE = "#1a1d23", "#8a909a", "#5f6672", "#a9aeb6"
GRID, GROUND, GAP, WARM = "#e6e8eb", "#f2f4f6", "#e7e9ec", "#fdf6ec"

COLOURS = (BLUE, "#d17d00", "#00876c", "#9c2f8f", "#30343b", "#4f9fdc")
"""Distinct with normal sight and to deuteranopes, protanopes and tritanopes."""

MARKERS = ("None", "o", "s", "^")
"""One per round of the colours. Dashes are for what is uncertain: they never name a series."""

LIGHT = {
    INK: "#e9ebee", MUTED: "#a9afb9", EDGE: "#69707b", GRID: "#33373e", GROUND: "#1e2126",
    GAP: "#2b2f36", WARM: "#2b241a", RED: "#f0625e", BLUE: "#6aaef7", "#30343b": "#c6cbd3",
    "#00876c": "#2eb398", "#9c2f8f": "#d77bca",
}  # fmt: skip
"""Colours on a dark background, by those on a light one."""

FEW = 4
"""At most this many series are labelled beside their curves; more in a legend, or on lanes."""

UNSUPPORTED = (0, (1.1, 1.7))
"""The dots of what the sample cannot support."""

UNCERTAIN = (0, (3.4, 2.0))
"""The dashes of what is based on a few events."""

_RAW = {"raw", "reported", "uncorrected", "naive", "omitted"}
_HONEST = {
    *("corrected", "honest", "truth", "response"),
    *("scheduled", "retimed", "schedule", "intended"),
}


def series_styles(series: Mapping[str, Any]) -> dict[str, Look]:
    """Return label → colour and marker."""
    # Where there are raw and corrected measurements, no more of each than markers, the raw ones are
    # red and the corrected ones blue, each further one with another marker; the others take the
    # remaining colours in turn, and after each round another marker: 24 series remain distinct, or
    # 20 beside raw and corrected ones.
    roles = [role_of(label, data) for label, data in series.items()]
    if all(0 < roles.count(role) <= len(MARKERS) for role in ("raw", "honest")):
        palettes = {"raw": (RED,), "honest": (BLUE,), None: COLOURS[1:]}
    else:
        palettes, roles = {None: COLOURS}, [None] * len(roles)
    styles: dict[str, Look] = {}
    for k, (label, role) in enumerate(zip(series, roles, strict=True)):
        palette = palettes[role]
        turn, colour = divmod(roles[:k].count(role), len(palette))
        styles[label] = {"color": palette[colour], "marker": MARKERS[turn % len(MARKERS)]}
        # By distance on the page, so that curves of any number of points have a few of them.
        styles[label] |= {"markersize": 4.5, "markevery": (0.02 + 0.017 * (k % 6), 0.13)}
    return styles


def marked(look: Look, values: ArrayLike) -> dict[str, Any]:
    """Return the look of a line through some values: matplotlib spaces no markers along NaN."""
    return look if np.isfinite(values).any() else look | {"markevery": 1}


def role_of(label: str, data: Any) -> str | None:
    """Return "raw" or "honest" by a series' provenance, else by its name; None for neither."""
    corrected = getattr(getattr(data, "run", None), "corrected", "unknown")
    if corrected in ("us", "schedule"):
        return "honest"
    words = set("".join(c.lower() if c.isalnum() else " " for c in label).split())
    if words & _RAW:
        return "raw"
    return "honest" if words & _HONEST else None


_ENDING = re.compile(r"(?<=\w)\.[a-z]\w{0,8}(?=$|, )", re.IGNORECASE)


def short_names(names: Sequence[str], limit: int) -> list[str]:
    """Return names of at most `limit` characters, distinct where the names are."""
    if len(names) == 1 or all(len(name) <= limit for name in names):
        return [shorten(name, limit) for name in names]
    # What lies between the beginning and the end that all share, without the ending of their files.
    endings = {found[0] if found else "" for found in map(_ENDING.search, names)}
    bare = [_ENDING.sub("", name) for name in names] if len(endings) == 1 else names
    head = _shared(bare)
    tail = _shared([name[head:][::-1] for name in bare])
    tail = tail if max(len(name) for name in bare) - head >= limit else 0
    before, after = "…" if head else "", "…" if tail else ""
    cores = [f"{before}{name[head : len(name) - tail]}{after}" for name in bare]
    short, width = [shorten(core, limit) for core in cores], len(str(len(cores))) + 2
    whole = [shorten(name, limit) for name in names]
    if len(set(whole)) == len(set(names)) > len(set(short)):
        return whole
    for text in {text for text in short if 1 < short.count(text) < len(short)}:
        alike = [k for k, other in enumerate(short) if other == text]  # these share more
        for k, part in zip(alike, short_names([names[k] for k in alike], limit), strict=True):
            short[k] = part
    return [
        f"{shorten(core, limit - width)} #{k}" if short.count(text) > 1 else text
        for k, (core, text) in enumerate(zip(cores, short, strict=True), 1)
    ]


def _shared(names: Sequence[str]) -> int:
    """The length of the beginning that all names share, up to the end of a word."""
    # None where one of the names is this beginning: little would be left of it.
    columns = enumerate(zip(*names, strict=False))
    size = next((k for k, letters in columns if len(set(letters)) > 1), 0)
    while size and names[0][size - 1].isalnum():
        size -= 1
    return size


def current_axes(ax: Axes | None) -> Axes:
    """Return the axes given, or pyplot's current ones; pyplot is imported only then."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.gca()


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Return the width and height of the axes in points."""
    box = ax.get_window_extent()
    return box.width * 72.0 / ax.figure.dpi, box.height * 72.0 / ax.figure.dpi


def tidy(ax: Axes, x: str = "", y: str = "") -> None:
    """Give the axes the common look: a faint grid, two spines, quiet ticks; and name them."""
    if x:
        ax.set_xlabel(x, fontsize=9.5, color=INK)
    if y:
        ax.set_ylabel(y, fontsize=9.5, color=INK)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(EDGE)
    ax.set_axisbelow(True)
    ax.grid(visible=True, which="major", color=GRID, linewidth=0.8, linestyle="solid")
    ax.tick_params(labelcolor=INK, labelsize=9, length=3, color=EDGE)


def is_dark(ax: Any) -> bool:
    """True if axes are on a dark background, as in matplotlib's style ``dark_background``."""
    from matplotlib.colors import to_rgba

    figure: Any = ax.figure
    red, green, blue, alpha = to_rgba(figure.canvas.figure.get_facecolor())
    return alpha > 0.5 and 0.3 * red + 0.59 * green + 0.11 * blue < 0.4


def halo(ax: Any) -> Look:
    """Return the outline of letters that something may cross."""
    from matplotlib.patheffects import withStroke

    return {"path_effects": [withStroke(linewidth=2.5, foreground=ground_of(ax))]}


def ground_of(ax: Any) -> str:
    """Return the colour of outlines around letters, and of hollow marks."""
    return "black" if is_dark(ax) else "white"


def lighten(ax: Axes) -> None:
    """Exchange the colours of a chart on a dark background for those that it needs."""
    if not is_dark(ax):
        return
    from matplotlib.axes import Axes as AnyAxes
    from matplotlib.colors import to_hex, to_rgba_array

    for artist in ax.findobj():
        if isinstance(artist, AnyAxes):
            ink, edge, grid = (LIGHT[part] for part in (INK, EDGE, GRID))
            artist.tick_params(which="both", grid_color=grid, labelcolor=ink, color=edge)
        for part in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            get, put = (getattr(artist, f"{verb}_{part}", None) for verb in ("get", "set"))
            if get is None or put is None or isinstance(artist, AnyAxes):
                continue
            old = to_rgba_array(get())
            new = [LIGHT.get(to_hex(colour), colour) for colour in old]
            if any(isinstance(colour, str) for colour in new):
                with_alpha = to_rgba_array(new)
                with_alpha[:, 3] = old[:, 3]
                put(with_alpha if len(new) > 1 else tuple(with_alpha[0].tolist()))
