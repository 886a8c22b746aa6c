"""Shared by the chart tests: figures laid out without a file, and queries of their texts."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

import latencykit as lk
from latencykit.plot.files import figure_of
from tests.conftest import RAW, log_of_values

if TYPE_CHECKING:
    from matplotlib.lines import Line2D


@pytest.fixture
def ax():
    return Figure(figsize=(10, 5.6)).add_subplot()


@pytest.fixture(scope="session")
def raw():
    return lk.read(RAW)


@pytest.fixture(scope="session")
def pair(raw):
    """The same seconds, as a closed loop saw them and from the schedule."""
    values = raw.histogram()
    stalled = np.linspace(1e6, 6e9, 3000).astype(np.int64)
    return {
        "as measured (raw)": values,
        "from the schedule": values + lk.Histogram.of(stalled).with_run(corrected="none"),
    }


@pytest.fixture(scope="session")
def twelve():
    random = np.random.default_rng(3)
    slow = [np.where(random.random(20_000) < 0.002, 30, 1) for _ in range(12)]
    return {
        f"host-{k:02d}": lk.Histogram.of(random.lognormal(13 + 0.15 * k, 0.6, 20_000) * slow[k])
        for k in range(12)
    }


@pytest.fixture(scope="session")
def twelve_logs():
    return {f"host-{k:02d}": log_of(30, 100, seed=k) for k in range(12)}


def log_of(
    intervals: int, a_second: int, seed: int = 0, gap: tuple[int, int] = (0, 0)
) -> lk.HistogramLog:
    """A log of one-second intervals without those from `gap` to `gap`."""
    kept = np.setdiff1d(np.arange(intervals), np.arange(*gap))
    values = np.random.default_rng(seed).lognormal(13 + 0.1 * seed, 0.6, (kept.size, a_second))
    return log_of_values(values, kept)


def drawn(chart, data, width: int = 800, height: int = 450, **options) -> Figure:
    """A chart as the command line draws it, laid out and rendered to nowhere."""
    figure = figure_of(chart, data, size=(width, height), **options)
    FigureCanvasAgg(figure).draw()
    return figure


def texts_of(figure: Figure) -> list[Text]:
    """All texts that are drawn and say something."""
    hidden = {
        text
        for axes in figure.findobj(Axes)
        for axis in (axes.xaxis, axes.yaxis)
        for text in _undrawn(axes, axis)
    }
    return [
        text
        for text in figure.findobj(Text)
        if text not in hidden and text.get_visible() and text.get_text().strip()
    ]


def _undrawn(axes: Axes, axis) -> list[Text]:
    """Texts of an axis that are not drawn: those of ticks out of view, or all."""
    ticks = {*axis.majorTicks, *axis.minorTicks}
    if axes.axison and axis.get_visible():
        low, high = sorted(axis.get_view_interval())
        ticks -= {tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high}
        return [label for tick in ticks for label in (tick.label1, tick.label2)]
    return [axis.label, *(label for tick in ticks for label in (tick.label1, tick.label2))]


def words_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in texts_of(figure)]


def says(figure: Figure, text: str) -> bool:
    """Whether one of its texts, wherever its lines break, contains this one."""
    return any(text in " ".join(words.split()) for words in words_of(figure))


def lines_of(ax: Axes) -> dict[str, Line2D]:
    return {str(line.get_label()): line for line in ax.get_lines()}


def lines_named(ax: Axes, label: str) -> list[Line2D]:
    return [line for line in ax.get_lines() if line.get_label() == label]


def assert_tidy(figure: Figure) -> None:
    """No text overlaps another one, none leaves the figure."""
    texts = texts_of(figure)
    boxes = [text.get_window_extent() for text in texts]
    page = figure.bbox
    for text, box in zip(texts, boxes, strict=True):
        assert page.x0 - 1 <= box.x0, text
        assert box.x1 <= page.x1 + 1, text
        assert page.y0 - 1 <= box.y0, text
        assert box.y1 <= page.y1 + 1, text
    for (one, a), (other, b) in combinations(zip(texts, boxes, strict=True), 2):
        width = min(a.x1, b.x1) - max(a.x0, b.x0)
        height = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert not (width > 1.0 and height > 1.5), (one.get_text(), other.get_text())


def legend_words(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.findobj(Legend) for text in legend.get_texts()]
