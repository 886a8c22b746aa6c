"""Shared by the chart tests: figures laid out without a file, and queries of their texts."""

from __future__ import annotations

import functools
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text

import latencykit as lk
from latencykit import plot, simulate
from latencykit.plot.files import figure_of
from tests import laws
from tests.conftest import CTRLZ, RAW, log_of_values
from tests.ctrlz.test_commands import result as calibration

if TYPE_CHECKING:
    from collections.abc import Callable


@functools.cache
def world(kind: str) -> Any:
    """What the charts below draw, made once."""
    if kind == "swept":
        server = simulate.Server(simulate.exponential("1ms"))

        def measure(rate: float, duration: float) -> lk.Samples:
            arrivals = simulate.poisson(rate, duration)
            return simulate.open_loop(server, arrivals, duration=duration)

        return lk.sweep(measure, "p99=20ms", start=400, duration="5s", runs=4)
    rng = np.random.default_rng(1)
    if kind == "load":
        rates = (100.0, 200.0, 400.0, 800.0)
        runs = {f"{rate:g}": rng.lognormal(14 + rate / 2000, 0.4, 2000) for rate in rates}
        known = {rate: lk.Histogram.of(runs[f"{rate:g}"]).with_run(rate=rate) for rate in rates}
        return lk.load_curve({f"{rate:g}": one for rate, one in known.items()}, "99=20ms")
    if kind == "explained":
        took = rng.lognormal(1.5, 0.5, 6000) * np.where(rng.random(6000) < 0.05, 8, 1)
        slow = {"start": np.arange(6000) * 10_000_000, "duration": took * 1e6}
        at = np.array([3.0, 20.0, 44.0])
        events = [lk.Events("gc.log", "jvm-gc", at, at + 0.1, ["Pause"] * 3)]
        return lk.explain(lk.Samples(**slow, host=rng.choice(["a", "b"], 6000)), events=events)
    log, due = (lk.read(CTRLZ / f"{name}.hlog") for name in ("uncorrected", "corrected"))
    made = {"log": lambda: log, "pair": lambda: {"raw": log, "corrected": due}}
    made |= {"compared": lambda: lk.compare(log, due), "diagnosed": lambda: lk.diagnose(log)}
    return made[kind]()


CHARTS: dict[str, Callable[..., Any]] = {
    "percentiles": lambda ax: plot.percentiles(world("pair"), ax=ax, slo="99=20ms"),
    "timeline": lambda ax: plot.timeline(world("log"), ax=ax),
    "heatmap": lambda ax: plot.heatmap(world("log"), ax=ax),
    "density": lambda ax: plot.density(world("pair"), ax=ax),
    "ccdf": lambda ax: plot.ccdf(world("pair"), ax=ax),
    "fan_out": lambda ax: plot.fan_out(world("log"), ax=ax),
    "compare": lambda ax: plot.compare(world("compared"), ax=ax),
    "diagnosis": lambda ax: plot.diagnosis(world("diagnosed"), ax=ax),
    "dashboard": lambda ax: plot.dashboard(world("log"), ax=ax),
    "load_curve": lambda ax: plot.load_curve(world("load"), ax=ax),
    "explanation": lambda ax: plot.explanation(world("explained"), ax=ax),
    "coincidence": lambda ax: plot.coincidence(world("explained"), ax=ax),
    "ctrlz": lambda ax: plot.ctrlz(calibration(), ax=ax),
    "sweep": lambda ax: plot.sweep(world("swept"), ax=ax),
}
"""Every chart, of data that it is made for."""


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
    laws.output([], "\n".join(words_of(figure)))
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


def look_of(figure: Figure) -> list[list[Any]]:
    """What is drawn and where, in hundredths of the figure: texts, lines, areas, images."""
    drawn = [(text, text.get_text()) for text in texts_of(figure)]
    for ax in figure.findobj(Axes):
        parts = [*ax.lines, *ax.patches, *ax.collections, *ax.images]
        drawn += [(part, part.get_label()) for part in parts if part.get_visible()]
    rows = []
    for part, words in drawn:
        box = part.get_window_extent().get_points()
        if isinstance(part, Line2D) and len(points := points_of(part)):  # its course, too
            box = np.vstack([box, part.axes.transData.transform(points).mean(0)])
        rows.append([words, (100 * box / figure.bbox.size).round(1).ravel().tolist()])
    return rows


def says(figure: Figure, text: str) -> bool:
    """Whether one of its texts, wherever its lines break, contains this one."""
    return any(text in " ".join(words.split()) for words in words_of(figure))


def points_of(line: Line2D) -> np.ndarray:
    """Where a line has data; nowhere, if it is one across the axes."""
    if line.get_transform() is not line.axes.transData:
        return np.zeros((0, 2))
    points = np.column_stack([np.asarray(part, float) for part in line.get_data()])
    return points[np.isfinite(points).all(axis=1)]


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
