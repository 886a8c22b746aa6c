"""Headings and labels on figures without a layout engine, as plt.subplots makes them: nothing is cut, nothing collides."""

from __future__ import annotations

import functools
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import latencykit as lk
from latencykit import plot
from latencykit.plot.files import save
from latencykit.plot.label_layout import Heading
from tests.conftest import CTRLZ
from tests.plot.conftest import assert_tidy, drawn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.text import Text

pytestmark = pytest.mark.slow


@functools.cache
def load_curve() -> Any:
    rng = np.random.default_rng(1)
    rates = (100.0, 200.0, 400.0, 800.0)
    runs = {
        f"{rate:g}": lk.Histogram.of(rng.lognormal(14 + rate / 2000, 0.4, 2000)).with_run(rate=rate)
        for rate in rates
    }
    return lk.load_curve(runs, "99=20ms")


LOG, DUE = (lk.read(CTRLZ / f"{name}.hlog") for name in ("uncorrected", "corrected"))
compared = functools.cache(lambda: lk.compare(LOG, DUE))
diagnosed = functools.cache(lambda: lk.diagnose(LOG))
CHARTS: dict[str, Callable[..., Any]] = {
    "percentiles": lambda ax: plot.percentiles({"raw": LOG, "corrected": DUE}, ax=ax),
    "timeline": lambda ax: plot.timeline(LOG, ax=ax),
    "heatmap": lambda ax: plot.heatmap(LOG, ax=ax),
    "density": lambda ax: plot.density({"raw": LOG, "corrected": DUE}, ax=ax),
    "ccdf": lambda ax: plot.ccdf({"raw": LOG, "corrected": DUE}, ax=ax),
    "fan_out": lambda ax: plot.fan_out(LOG, ax=ax),
    "compare": lambda ax: plot.compare(compared(), ax=ax),
    "diagnosis": lambda ax: plot.diagnosis(diagnosed(), ax=ax),
    "dashboard": lambda ax: plot.dashboard(LOG, ax=ax),
    "load_curve": lambda ax: plot.load_curve(load_curve(), ax=ax),
}


@pytest.mark.parametrize(
    "names",
    [
        *((name,) for name in CHARTS),
        *(tuple(islice(cycle(CHARTS), first, first + 4)) for first in range(0, len(CHARTS), 4)),
    ],
    ids=", ".join,
)
def test_nothing_is_cut_and_nothing_collides(names: tuple[str, ...]) -> None:
    """Each chart on a figure of its own, and among three others."""
    figure = Figure(figsize=(6.4, 4.8) if len(names) == 1 else (9.5, 8))
    side = 1 if len(names) == 1 else 2
    axes = [figure.add_subplot(side, side, k + 1) for k in range(len(names))]
    for name, ax in zip(names, axes, strict=True):
        CHARTS[name](ax)
    figure.draw_without_rendering()
    page, headings, others = figure.bbox, [], []
    for ax in axes:
        for artist in ax.artists:
            if isinstance(artist, Heading):
                headings += [(ax, text, text.get_window_extent()) for text in artist.get_children()]
        texts: list[Text] = [ax.xaxis.label, ax.yaxis.label, *ax.texts]
        for axis, side in ((ax.xaxis, 0), (ax.yaxis, 1)):
            first, last = sorted(axis.get_view_interval())
            labels = axis.get_majorticklabels()
            texts += [one for one in labels if first <= one.get_position()[side] <= last]
        others += [(ax, text, text.get_window_extent()) for text in texts if text.get_text()]
    assert headings
    for _, text, box in headings + others:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1
        assert inside, text.get_text()
    for ax, text, box in headings:
        for other, beside, own in headings + others:
            wide = min(box.x1, own.x1) - max(box.x0, own.x0)
            high = min(box.y1, own.y1) - max(box.y0, own.y0)
            assert other is ax or wide < 2 or high < 2, (text.get_text(), beside.get_text())


@pytest.mark.parametrize("size", [(500, 320), (800, 450), (1600, 900)])
@pytest.mark.parametrize(
    "name", ["percentiles", "timeline", "heatmap", "density", "ccdf", "dashboard"]
)
def test_texts_are_tidy_at_every_size(name, size, raw, pair, twelve, twelve_logs):
    few = {label: twelve_logs[label] for label in list(twelve_logs)[:3]}
    limits = {"slo": [(90, 1e6), (99, 1e7), (99.9, 1e8)], "confidence": 0.95}
    cases = {
        "percentiles": [(raw, {}), (pair, limits), (twelve, {}), (pair, {"log": False})],
        "timeline": [(raw, {}), (few, {}), (twelve_logs, {})],
        "heatmap": [(raw, {})],
        "dashboard": [(raw, {}), (raw.histogram(), {}), (few, {}), (twelve_logs, {}), (twelve, {})],
    }
    least = {"dashboard": (800, 640), "density": (800, 450)}.get(name, (0, 0))
    width, height = np.maximum(size, least).tolist()
    for data, options in cases.get(name, [(raw, {}), (pair, {}), (twelve, {})]):
        assert_tidy(drawn(getattr(plot, name), data, width, height, **options))


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_files_carry_their_text(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"chart.{kind}"
    save(plot.timeline, LOG, path)
    content = path.read_bytes()
    if kind == "svg":
        title = content.partition(b"<title>")[2].partition(b"</title>")[0].decode()
        assert "6,852 requests" in title
        assert "time from the start" in title
    else:
        assert {"png": b"Description\0", "pdf": b"/Title"}[kind] in content
