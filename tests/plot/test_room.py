"""Nothing is cut and nothing collides, whatever the size; and the dashboard, which has the least room."""

from __future__ import annotations

import functools
import json
from itertools import cycle, islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import latencykit as lk
from latencykit import plot
from latencykit.plot.files import save
from latencykit.plot.label_layout import Heading
from tests import laws
from tests.plot.conftest import CHARTS, assert_tidy, drawn, look_of, texts_of, words_of

if TYPE_CHECKING:
    from matplotlib.text import Text


LOOKS = Path(__file__).parents[1] / "snapshots/charts"


@functools.cache
def shown(*names: str, style: str = "default") -> Figure:
    """A chart on a figure of its own, or several on one."""
    with plt.style.context(style):
        figure = Figure(figsize=(6.4, 4.8) if len(names) == 1 else (9.5, 8))
        side = 1 if len(names) == 1 else 2
        for k, name in enumerate(names):  # one after the other, as with `plt.subplot`
            CHARTS[name](figure.add_subplot(side, side, k + 1, label=name))
        figure.draw_without_rendering()
    laws.output([], "\n".join(words_of(figure)))
    return figure


@pytest.mark.parametrize(
    "names",
    [
        *((name,) for name in CHARTS),
        *(
            pytest.param(tuple(islice(cycle(CHARTS), first, first + 4)), marks=pytest.mark.slow)
            for first in range(0, len(CHARTS), 4)
        ),
    ],
    ids=", ".join,
)
def test_nothing_is_cut_and_nothing_collides(names: tuple[str, ...]) -> None:
    """Each chart on a figure of its own, and among three others."""
    figure = shown(*names)
    axes = [one for one in figure.axes if one.get_label() in CHARTS]
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


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_looks_as_recorded(name: str) -> None:
    """If another look is meant, run `python -m tests.snapshots`."""
    now, then = look_of(shown(name)), json.loads((LOOKS / f"{name}.json").read_text("utf-8"))
    assert [words for words, _ in now] == [words for words, _ in then]
    for (words, places), (_, before) in zip(now, then, strict=True):
        assert places == pytest.approx(before, abs=2), words


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("style", ["dark_background", "default"])
def test_words_differ_from_their_ground(name: str, style: str) -> None:
    figure = shown(name) if style == "default" else shown(name, style=style)  # drawn once
    ground = np.mean(to_rgb(figure.get_facecolor()))
    for text in texts_of(figure):
        assert abs(np.mean(to_rgb(text.get_color())) - ground) > 0.25, text.get_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "width", "height"),
    [
        *product(["percentiles", "timeline", "heatmap", "ccdf"], [500], [320]),
        *product(["percentiles", "timeline", "heatmap", "ccdf", "density"], [800], [450]),
        ("dashboard", 800, 640),
        *product(["percentiles", "timeline", "heatmap", "ccdf", "density"], [1600], [900]),
        ("dashboard", 1600, 900),
    ],
)
def test_texts_are_tidy_at_every_size(name, width, height, raw, pair, twelve, twelve_logs):
    few = {label: twelve_logs[label] for label in list(twelve_logs)[:3]}
    summary = lk.Summary({"max": 8e9}, {99: 3e6}, 10)
    limits = {"slo": [(90, 1e6), (99, 1e7), (99.9, 1e8)], "confidence": 0.95}
    cases = {
        "percentiles": [
            *((raw, {}), (pair, limits), (twelve, {}), (pair, {"log": False})),
            ({"log": raw, "tool": summary}, {}),
        ],
        "timeline": [
            *((raw, {}), (few, {}), (twelve_logs, {}), (raw, {"log": False})),
            (raw, {"stalls": [(k, k + 0.4, 100 * k) for k in range(1, 20)]}),
        ],
        "heatmap": [(raw, {})],
        "dashboard": [
            (data, {}) for data in (raw, raw.histogram(), few, twelve_logs, twelve, summary)
        ],
    }
    for data, options in cases.get(name, [(raw, {}), (pair, {}), (twelve, {})]):
        assert_tidy(drawn(getattr(plot, name), data, width, height, **options))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_files_carry_their_text(kind: str, raw: Any, tmp_path: Path) -> None:
    path = tmp_path / f"chart.{kind}"
    save(plot.timeline, raw, path)
    content = path.read_bytes()
    if kind == "svg":
        title = content.partition(b"<title>")[2].partition(b"</title>")[0].decode()
        assert "6,852 requests" in title
        assert "time from the start" in title
    else:
        assert {"png": b"Description\0", "pdf": b"/Title"}[kind] in content


# ---------------------------------------------------------------- dashboard


@pytest.mark.slow
def test_one_series_has_its_numbers_beside_the_curve(raw):
    words = set(words_of(drawn(plot.dashboard, raw, 1000, 780)))
    assert words >= {"requests", "6,852", "p90", "150 µs", "p99", "(1.04 ms)", "p99.99", "(6 s)"}
    assert words >= {"max", "6 s", "stall 6 s · ~2,930 requests missing"}  # supported: p96.3
    assert "mean are too low: see diagnose" in words


@pytest.mark.slow
def test_many_series_have_a_table_with_the_highest_maximum_first(twelve_logs):
    figure = drawn(plot.dashboard, twelve_logs, 1000, 780)
    names = [word for word in words_of(figure) if word.startswith("host-")]
    assert names == sorted(twelve_logs, key=lambda label: -twelve_logs[label].histogram().max)


@pytest.mark.slow
def test_more_series_than_rows_are_counted():
    data = {f"host-{k}": lk.Histogram.of([1000 + 10 * k]) for k in range(60)}
    figure = drawn(plot.dashboard, data, 800, 640)
    assert any(word.startswith("and ") and word.endswith(" more") for word in words_of(figure))
    assert_tidy(figure)


@pytest.mark.slow
def test_without_time_the_density_takes_the_timelines_place(raw):
    (page,) = drawn(plot.dashboard, raw.histogram()).axes
    assert page.child_axes[0].get_xscale() == "log"
    took = np.random.default_rng(1).lognormal(14, 0.5, 4000) * (1 + np.arange(4000) // 100 % 7)
    one = lk.Samples(start=np.arange(4000) * 10**7, duration=took)
    page = drawn(plot.dashboard, one).axes[0].child_axes
    assert page[0].get_xscale() == "linear"
    alone = drawn(plot.percentiles, one, confidence=0.95).axes[0]
    bands = [ax.collections[0].get_datalim(ax.transData).ymax for ax in (page[1], alone)]
    assert bands[0] == bands[1]  # by time
