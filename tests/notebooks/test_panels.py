"""The arithmetic of what readers play with, against laws."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from tests.notebooks.conftest import NOTEBOOKS, beside

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def controls() -> Iterator[Any]:
    """The module with the controls, which imports the pictures."""
    with beside("controls") as module:
        yield module


def test_p99_runs_between_the_bounds_while_mean_and_deviation_stay(controls: Any) -> None:
    pictures = sys.modules["pictures"]
    p99 = []
    for slow in (0.1, 0.5, 0.99, 1.0, 1.01, 2, 10, 50):
        for even in (0, 0.3, 1):
            times = pictures.fixed_mean_and_deviation(slow, even)
            assert np.allclose([times.mean(), times.std()], [10, 5])
            assert times.min() > 0
            p99.append(pictures.nearest_rank(times, 99))
    low, high = 10 - 5 * np.sqrt(0.01 / 0.99), 10 + 5 * np.sqrt(0.99 / 0.01)  # Cantelli
    assert low - 1e-9 <= min(p99) < low + 0.01
    assert high - 0.5 < max(p99) <= high


def test_a_closed_loop_has_the_p99_of_its_queue(controls: Any) -> None:
    p99 = sys.modules["pictures"].closed_loop_p99
    assert p99(1, 700) == pytest.approx(np.log(100))  # nobody else is there
    assert p99(50, 0.001) == pytest.approx(np.log(100), rel=1e-4)
    assert p99(20, 1e9) == pytest.approx(stats.gamma.ppf(0.99, 20), rel=1e-4)  # all others wait before it
    assert p99(2000, 500) == pytest.approx(np.log(100) / (1 - 0.5), rel=0.01)  # nearly an open loop
    by_load = [p99(10, rate) for rate in (100, 500, 1000, 1600)]
    assert by_load == sorted(by_load)


def test_what_runs_in_the_browser_is_there(controls: Any) -> None:
    script = (NOTEBOOKS / "controls.js").read_text("utf-8")
    drawn = set(re.findall(r"^  (\w+): \{$", script, re.MULTILINE))
    assert set(controls._IN_BROWSER) <= drawn
