"""The page with everything."""

from __future__ import annotations

import pytest

import latencykit as lk
from latencykit import plot
from tests.plot.conftest import assert_tidy, drawn, words_of


@pytest.mark.slow
def test_one_series_has_its_numbers_beside_the_curve(raw):
    words = words_of(drawn(plot.dashboard, raw, 1000, 780))
    for name, value in (
        ("requests", "6,852"),
        ("p90", "150 µs"),
        ("p99", "(1.04 ms)"),  # the run supports p96.3
        ("p99.99", "(6 s)"),
        ("max", "6 s"),
    ):
        assert name in words
        assert value in words


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
    figure = drawn(plot.dashboard, raw.histogram(), 1000, 780)
    page = figure.axes[0]
    upper = page.child_axes[0]
    assert upper.get_xscale() == "log"
    assert drawn(plot.dashboard, raw, 1000, 780).axes[0].child_axes[0].get_xscale() == "linear"


@pytest.mark.slow
def test_shortened_names_are_distinct(raw):
    label = 'http_request_duration_seconds{code="%s",method="GET",path="/var"}'
    series = {label % code: raw for code in (200, 404, 500, 503)}
    words = words_of(drawn(plot.dashboard, series, 1000, 780))
    assert len({word for word in words if word.startswith("…")}) == 4
