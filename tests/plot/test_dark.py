"""Charts on a dark ground: what is written can be read, and a light chart stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.text import Text

import latencykit as lk
from latencykit.plot.style import _LIGHT, BLUE, INK, lighten

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes


def samples() -> lk.Samples:
    rng = np.random.default_rng(1)
    start = np.arange(6000) * 10_000_000
    took = rng.lognormal(1.5, 0.5, 6000) * np.where(rng.random(6000) < 0.05, 8, 1)
    return lk.Samples(start=start, duration=took * 1e6, host=rng.choice(["a", "b"], 6000))


def explanation(ax: Axes) -> Axes:
    at = np.array([3.0, 20.0, 44.0])
    events = lk.Events("gc.log", "jvm-gc", at, at + 0.1, ["Pause"] * 3)
    return lk.plot.explanation(lk.explain(samples(), events=[events]), ax=ax)


CHARTS: dict[str, Callable[[Axes], Axes]] = {
    "explanation": explanation,
    "percentiles": lambda ax: lk.plot.percentiles(
        {"a": samples(), "b": samples()}, ax=ax, slo="99=20ms"
    ),
    "density": lambda ax: lk.plot.density(samples(), ax=ax),
    "timeline": lambda ax: lk.plot.timeline(samples(), ax=ax),
    "diagnosis": lambda ax: lk.plot.diagnosis(lk.diagnose(samples()), ax=ax),
}


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("style", ["dark_background", "default"])
def test_words_differ_from_their_ground(name: str, style: str) -> None:
    with plt.style.context(style):
        figure, ax = plt.subplots()
        CHARTS[name](ax)
        figure.canvas.draw()
        ground = np.mean(to_rgb(figure.get_facecolor()))
        for text in figure.findobj(Text):
            if text.get_visible() and text.get_text() and text.get_figure() is not None:
                assert abs(np.mean(to_rgb(text.get_color())) - ground) > 0.25, text.get_text()
        plt.close(figure)


def test_each_colour_of_an_artist_is_exchanged_by_itself() -> None:
    with plt.style.context("dark_background"):
        figure, ax = plt.subplots()
        lines = ax.vlines([1, 2, 3], 0, 1, color=[INK, BLUE, "#123456"], alpha=0.5)
        lighten(ax)
        plt.close(figure)
    light = [to_rgba(colour, 0.5) for colour in (_LIGHT[INK], _LIGHT[BLUE], "#123456")]
    assert np.allclose(lines.get_color(), light)
