"""The chart of the tail."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit import plot
from latencykit.errors import DataNotAvailableError
from tests.plot.conftest import lines_named


def test_what_is_above_a_value_is_above_every_one_up_to_the_next(ax):
    h = lk.Histogram.of([10, 10, 20, 1000])
    plot.ccdf(h, ax=ax)
    x = np.concatenate([line.get_path().vertices[:, 0] for line in ax.get_lines()[:2]])
    y = np.concatenate([line.get_path().vertices[:, 1] for line in ax.get_lines()[:2]])
    assert all(line.get_drawstyle() == "steps-post" for line in ax.get_lines()[:2])
    for value, share in ((12, 0.5), (19, 0.5), (25, 0.25), (900, 0.25)):
        k = int(np.searchsorted(x, value, "left"))
        assert max(y[k - 1], y[k]) >= share - 1e-9
        assert min(y[k - 1], y[k]) == pytest.approx(share)


@pytest.mark.slow
def test_the_band_is_that_of_the_percentiles(ax, raw):
    plot.ccdf(raw.histogram(), ax=ax, confidence=0.95)
    (band,) = ax.collections
    solid = raw.histogram().sample_limit()
    shares = band.get_paths()[0].vertices[:, 1]
    assert shares.min() == pytest.approx(
        1 - solid / 100
    )  # as that of the percentiles, to the dashes


def test_limits_are_points_at_the_share_that_they_allow(ax, raw):
    plot.ccdf(raw, ax=ax, slo=[(99, 1e7)])
    (point,) = lines_named(ax, "_slo")
    assert point.get_xdata() == [1e7]
    assert point.get_ydata() == [pytest.approx(0.01)]


def test_a_summary_has_no_tail(ax):
    with pytest.raises(DataNotAvailableError, match="its tail is unknown"):
        plot.ccdf(lk.Summary({"mean": 1.0}), ax=ax)


@pytest.mark.parametrize(
    ("high", "censored", "mark"), [(20, 0, ["v"]), (400, 0, []), (20, 3, [">"])]
)
def test_a_mark_at_the_end_says_what_is_known_of_the_maximum(ax, high, censored, mark):
    h = lk.Histogram.from_buckets(
        [1, 19], [10, high], [50, 50], censored=censored, censored_at=20.0
    )
    plot.ccdf(h, ax=ax)
    assert [line.get_marker() for line in ax.get_lines() if line.get_marker() in "v>"] == mark
