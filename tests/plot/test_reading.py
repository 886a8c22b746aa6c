"""What a reader sees: dashes mean one thing, names are beside what they name, axes end with data."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import latencykit as lk
from latencykit import plot
from latencykit.plot.label_layout import EndLabels
from latencykit.plot.style import UNCERTAIN, UNSUPPORTED
from tests.conftest import RAW
from tests.plot.conftest import drawn, log_of, says, words_of


def pattern(line, look):
    return line._dash_pattern[1] == [part * line.get_linewidth() for part in look[1]]


@pytest.mark.parametrize("chart", [plot.percentiles, plot.ccdf, plot.timeline])
@pytest.mark.parametrize("many", [True, False])
def test_dashes_are_for_what_is_uncertain_alone(chart, many, raw, twelve_logs):
    figure = drawn(chart, twelve_logs if many else raw)
    dashed = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == "--"]
    assert all(pattern(line, UNCERTAIN) or pattern(line, UNSUPPORTED) for line in dashed)
    explained = says(figure, "dashed: ")
    assert explained == any(pattern(line, UNCERTAIN) for line in dashed)


def test_maxima_that_meet_share_a_label():
    near = {f"s{k}": lk.Histogram.of(np.geomspace(1e6, 1e9 + 5e6 * k, 500)) for k in range(4)}
    words = [word for word in words_of(drawn(plot.percentiles, near)) if word.startswith("max ")]
    assert words == ["max 1 s to 1.02 s (all 4)"]
    far = {"fast": lk.Histogram.of([1e6] * 500), "slow": lk.Histogram.of([1e9] * 500)}
    words = [word for word in words_of(drawn(plot.percentiles, far)) if word.startswith("max ")]
    assert sorted(words) == ["max 1 ms", "max 1 s"]


def test_labels_of_limits_are_in_the_order_of_their_lines():
    rng = np.random.default_rng(2)
    runs = {
        str(rate): lk.Histogram.of(rng.lognormal(14, 0.5, 5000) * rate).with_run(rate=rate)
        for rate in (1.0, 2.0, 4.0)
    }
    slo = "50=2ms, 90=2.2ms, 99=2.4ms, 99.9=9ms"
    figure = drawn(plot.load_curve, runs, width=1200, height=300, slo=slo)
    (ends,) = [own for own in figure.axes[0].artists if isinstance(own, EndLabels)]
    boxes = {text.get_text(): text.get_window_extent() for text in ends.texts}
    heights = [box.y0 for _, box in sorted(boxes.items(), key=lambda own: own[0].split()[-2:])]
    assert heights == sorted(heights)
    ordered = sorted(boxes.values(), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(ordered))
    assert all(box.x0 >= figure.axes[0].get_window_extent().x1 for box in ordered)
    assert all(box.x1 <= figure.bbox.x1 for box in ordered)


@pytest.mark.parametrize("shape", [(1200, 300), (1000, 560), (700, 300)])
def test_a_diagnosis_keeps_the_names_of_its_axes(shape):
    width, height = shape
    figure = drawn(plot.diagnosis, lk.diagnose(lk.read(RAW)), width, height)
    upper, lower = figure.axes[0].child_axes
    name, other = upper.xaxis.label.get_window_extent(), lower.get_window_extent()
    assert name.y0 >= 0
    assert name.x1 <= other.x0 if height == 300 else name.y0 >= other.y1  # low pages: beside


def test_the_axis_of_time_ends_where_the_data_do():
    log = log_of(40, 50)
    assert drawn(plot.timeline, log).axes[0].get_xlim() == (0.0, 40.0)
    assert drawn(plot.heatmap, log).axes[0].get_xlim() == (0.0, 40.0)


@pytest.mark.parametrize(
    ("seconds", "text"), [(30 * 3600 + 12, "30 h"), (3 * 3600 + 1800, "3.5 h"), (354, "5.9 min")]
)
def test_large_times_are_a_number_and_a_unit(seconds, text):
    rng = np.random.default_rng(1)
    start = np.sort(rng.uniform(0, seconds * 1e9, 3000)).astype(np.int64)
    start[[0, -1]] = 0, seconds * 10**9
    figure = drawn(plot.timeline, lk.Samples(start=start, duration=start % 7_000_000 + 10**6))
    assert says(figure, f"in {text}")
