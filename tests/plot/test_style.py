"""Colours, markers and safe text."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure

import latencykit as lk
from latencykit._text import plain
from latencykit.plot import style
from latencykit.plot.style import _LIGHT, BLUE, COLOURS, INK, lighten, series_styles, shorten

# Machado, Oliveira, Fernandes (2009), severity 1.0
MATRICES = """
normal 1 0 0 0 1 0 0 0 1
deuteranopia 0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413 -0.01182 0.04294 0.968881
protanopia 0.152286 1.052583 -0.204868 0.114503 0.786281 0.099216 -0.003882 -0.048116 1.051998
tritanopia 1.255528 -0.076749 -0.178779 -0.078411 0.930809 0.147602 0.004733 0.691367 0.3039
"""
ROWS = [line.split() for line in MATRICES.strip().splitlines()]
SIGHT = {name: np.array(numbers, float).reshape(3, 3) for name, *numbers in ROWS}


def lab(colour, sight):
    rgb = np.array(to_rgb(colour))
    light = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(sight @ light, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ linear / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_stay_apart_for_every_eye(sight):
    seen = [lab(colour, SIGHT[sight]) for colour in COLOURS]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15


@pytest.mark.parametrize("corrected", [0, 4, 5, 12])  # of them, beside one that is not
def test_twenty_four_series_are_distinguishable(corrected):
    done = lk.Histogram.of([1e6, 2e6]).with_run(corrected="schedule")
    names = {f"corrected {k}": done for k in range(corrected)} | (
        {"raw": None} if corrected else {}
    )
    others = {f"host{k}": None for k in range((20 if 0 < corrected < 5 else 24) - len(names))}
    styles = series_styles(names | others).values()
    assert len({(style["color"], style["marker"]) for style in styles}) == len(names | others)


def test_foreign_text_is_never_mathematics_nor_control():
    assert plain("$x^2$ \x1b[31m") == r"\$x^2\$ \x1b[31m"
    text = Figure().text(0.5, 0.5, plain(r"$\frac{a}{b$ $"))
    text.figure.draw_without_rendering()
    assert text.get_window_extent().width > 0


def test_long_names_keep_both_ends():
    assert shorten("a" * 30 + "-0001", 12).endswith("0001")
    assert len(shorten("a" * 30, 12)) == 12
    assert shorten("short", 12) == "short"


def test_each_colour_of_an_artist_is_exchanged_by_itself() -> None:
    with plt.style.context("dark_background"):
        figure, ax = plt.subplots()
        lines = ax.vlines([1, 2, 3], 0, 1, color=[INK, BLUE, "#123456"], alpha=0.5)
        lighten(ax)
        plt.close(figure)
    light = [to_rgba(colour, 0.5) for colour in (_LIGHT[INK], _LIGHT[BLUE], "#123456")]
    assert np.allclose(lines.get_color(), light)


def test_shortened_names_are_distinct_and_have_numbers_only_where_they_must():
    short = style.short_names([f"{'x' * 30}{k}{'y' * 30}" for k in range(12)], 20)
    assert len({*short}) == 12
    assert max(map(len, short)) <= 20
    assert style.short_names([f"{'word ' * 9}{k}" for k in range(3)], 20) == ["…0", "…1", "…2"]
