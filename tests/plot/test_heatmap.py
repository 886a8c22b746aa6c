"""The heat map and the counts behind it."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import QuadMesh

import latencykit as lk
from latencykit import plot
from latencykit.core.blocks import MemoryPart, block_of_rows
from latencykit.plot.heatmap_chart import grid
from tests.plot.conftest import assert_tidy, drawn, log_of, words_of


def test_every_request_is_counted_once(raw):
    cells = grid(raw)
    assert np.nansum(cells.counts) == pytest.approx(6852)
    assert (cells.values.size - 1, cells.times.size - 1) == cells.counts.shape
    assert np.nanmax(cells.top) == raw.histogram().max


def test_many_intervals_share_columns_without_losing_any():
    log = log_of(3000, 5, gap=(1000, 1100))
    cells = grid(log, columns=100)
    assert np.nansum(cells.counts) == pytest.approx(2900 * 5)
    assert cells.counts.shape[1] == 100
    assert np.nanmax(cells.top) == log.histogram().max
    assert grid(log.between(1500, 3000), columns=100).times[[0, -1]] == pytest.approx([1500, 3000])


def test_gaps_are_not_zeros():
    cells = grid(log_of(30, 5, gap=(10, 20)))
    assert np.isnan(cells.counts[:, 10:20]).all()
    assert np.isfinite(cells.counts[:, :10]).all()


def test_wide_buckets_fill_the_rows_that_they_cover():
    layout = lk.EdgeBuckets([0, 1e3, 1e6], [1e3, 1e6, 1e9])
    block = block_of_rows(np.zeros(30, np.int64), np.repeat([0, 1, 2], 10), 1, layout)
    cells = grid(lk.HistogramLog([0], [1], [MemoryPart([block])]))
    assert cells.counts.sum() == pytest.approx(30)
    middle = (cells.values[:-1] > 1.1e3) & (cells.values[1:] < 0.9e6)
    assert np.ptp(cells.counts[middle, 0]) == pytest.approx(0.0, abs=1e-9)
    assert cells.counts[middle, 0].sum() == pytest.approx(10, rel=0.1)


def test_zeros_have_a_row_of_their_own_labelled_0():
    values = np.concatenate([np.zeros(100), np.full(300, 1e6)]).astype(np.int64)
    samples = lk.Samples(start=np.arange(400) * 10_000_000, duration=values)
    cells = grid(samples.to_log("1s"))
    assert cells.zeros
    assert cells.counts[0].sum() == 100
    figure = drawn(plot.heatmap, samples)
    assert "0" in [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert_tidy(figure)


def test_the_axis_of_values_is_logarithmic_in_the_logs_unit(raw):
    (ax, *_) = drawn(plot.heatmap, raw).axes
    assert ax.get_yscale() == "log"
    low, high = ax.get_ylim()
    assert low < raw.histogram().min
    assert high > raw.histogram().max


def test_the_image_shows_each_cell_where_it_lies(raw):
    figure = drawn(plot.heatmap, raw, slo=[(99, 1e6)])
    ax = figure.axes[0]
    pixels, cells = np.asarray(figure.canvas.buffer_rgba())[::-1].astype(int), grid(raw)
    busiest, highest = int(np.argmax(cells.counts[:, 0])), int(np.nanargmax(cells.top))
    for row, column in ((busiest, 0), (len(cells.counts) - 1, highest)):
        middle = cells.times[column : column + 2].mean()
        height = np.sqrt(cells.values[row : row + 2].prod())
        x, y = ax.transData.transform((middle, height))
        assert np.ptp(pixels[int(y), int(x), :3]) > 20  # blue
    x, y = ax.transData.transform((9.5, 3e6))
    assert np.ptp(pixels[int(y), int(x), :3]) < 20  # grey


@pytest.mark.parametrize(
    ("later", "label", "columns"),
    [
        (None, "total of 2 series", 40),
        (20, "total of 2 series", 60),
        (10_000, "total of 2 series, each from its start", 40),
    ],
)
def test_of_several_series_the_total_is_drawn_and_named(later, label, columns):
    logs = {"a": log_of(40, 200), "b": log_of(40, 100)}
    if later is not None:
        starts = {"a": 1_767_268_800.0, "b": 1_767_268_800.0 + later}
        logs = {name: log.with_run(start=starts[name]) for name, log in logs.items()}
    figure = drawn(plot.heatmap, logs)
    assert any(text.startswith(f"{label} · 12,000 requests") for text in words_of(figure))
    (image,) = [one for one in figure.axes[0].collections if isinstance(one, QuadMesh)]
    assert image.get_array().shape[1] == columns
    assert np.allclose(image.get_array().sum(0), 1)


def test_series_without_a_total_or_times_are_refused(raw, ax):
    sides = {name: raw.with_run(measure=name) for name in ("service", "response")}
    with pytest.raises(lk.IncompatibleDataError, match="cannot be merged"):
        plot.heatmap(sides, ax=ax)
    with pytest.raises(lk.DataNotAvailableError, match="b: this source has no times"):
        plot.heatmap({"a": raw, "b": raw.histogram()}, ax=ax)
    with pytest.raises(lk.DataNotAvailableError, match="has no times"):
        plot.heatmap(raw.histogram(), ax=ax)
