"""From data types to step curves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk
from latencykit.plot.curves import curve_of
from latencykit.plot.series import as_series, drawable
from tests.conftest import log_of_values


def test_a_curve_says_what_the_histogram_says(raw):
    h = raw.histogram()
    curve = curve_of(h)
    assert curve.percentile[-1] == 100.0
    assert curve.value[-1] == curve.top == h.max
    assert (np.diff(curve.value) >= 0).all()
    asked = [0.01, 10, 50, 90, 99, 99.9, 99.95, 99.98, 100]
    assert curve.at(asked).tolist() == h.percentile(asked).tolist()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=4000), st.integers(1, 5))
def test_thinning_never_flatters_and_keeps_both_ends(values, power):
    h = lk.Histogram.of(np.array(values, np.int64) ** power % 10**12)
    curve = curve_of(h)
    asked = np.concatenate([np.linspace(0.01, 100, 400), 100 - np.geomspace(1e-4, 10, 100)])
    reported_stats, shown = h.percentile(asked), curve.at(asked)
    assert (shown >= reported_stats).all()
    assert (curve.value[0], curve.top) == (h.percentile(1e-9), h.max)


def test_a_dense_histogram_is_thinned_without_moving_its_steps():
    values = np.random.default_rng(1).lognormal(16, 2, 100_000)
    h = lk.Histogram.of(np.append(values, np.zeros(3000)).astype(np.int64))
    curve = curve_of(h)
    assert curve.value.size < h.index.size
    share = 100 * 3000 / 103_000
    assert curve.at([share - 0.01])[0] == 0.0
    asked = np.linspace(share + 0.1, 99.5, 500)
    assert (curve.at(asked) >= h.percentile(asked)).all()
    assert (curve.at(asked) <= h.percentile(asked + 0.3)).all()


def test_censored_mass_ends_the_curve(raw):
    h = replace(raw.histogram(), censored=500, censored_at=1e7)
    curve = curve_of(h)
    assert curve.bound == curve.top == 1e7
    assert curve.percentile[-1] < 100
    assert curve.value[-1] <= 1e7
    assert curve.at([100.0])[0] == 1e7


def test_a_tagged_log_is_one_series_per_tag():
    tags = {"tag_code": [0, 1, 0, 1], "tag_names": ["", "get"]}
    log = log_of_values([[10], [20], [30], [40]], [0, 0, 1, 1], **tags)
    assert list(as_series(log)) == ["total", "untagged", "get"]
    assert list(as_series({"a": log, "b": log.tagged("get")})) == ["a", "b"]


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(lk.InvalidArgumentError, match="nothing to draw"):
        as_series({})
    with pytest.raises(lk.InvalidArgumentError, match="not list"):
        as_series([lk.Histogram.of([1])])
    with pytest.raises(lk.IncompatibleDataError, match="no axis in common"):
        as_series({"a": lk.Histogram.of([1]), "b": lk.Histogram.of([1], unit="none")})
    with pytest.raises(lk.DataNotAvailableError, match="go: a summary has no buckets"):
        drawable({"go": lk.Summary({"mean": 1.0})}, "density")
    empty = lk.Histogram.of(np.zeros(0, np.int64))
    with pytest.raises(lk.DataNotAvailableError, match="nothing was counted"):
        drawable({"a": empty}, "curve")
    series, note = drawable({"a": empty, "b": lk.Histogram.of([1])}, "curve")
    assert (list(series), note) == (["b"], "nothing counted: a")
