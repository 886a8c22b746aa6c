"""Change points over many runs."""

from __future__ import annotations

import numpy as np
import pytest

from latencykit.analysis.change_points import _splits, change_positions
from latencykit.errors import InputTooLargeError, InvalidArgumentError


@pytest.mark.slow
def test_a_shift_is_found_where_it_is() -> None:
    errors, power = [], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        found = change_positions(
            np.r_[rng.normal(100, 2, 30), rng.normal(103, 2, 30)], permutations=199
        )
        power += bool(found)
        errors += [abs(change.position - 30) for change in found[:1]]
    assert power >= 19
    assert np.median(errors) <= 2


def test_runs_alike_have_no_change() -> None:
    alarms = sum(
        bool(change_positions(np.random.default_rng(seed).normal(100, 3, 60), permutations=99))
        for seed in range(60)
    )
    assert alarms <= 3


def test_one_stalled_run_is_not_a_change_and_hides_none() -> None:
    rng = np.random.default_rng(3)
    series = np.exp(np.r_[rng.normal(0, 0.03, 40), rng.normal(0.06, 0.03, 40)])
    assert change_positions(np.r_[series[:20], 10.0, series[20:39]]) == []
    series[15] *= np.exp(60 * 0.03)
    found = change_positions(series)
    assert len(found) == 1
    assert abs(found[0].position - 40) <= 2
    assert found[0].change == pytest.approx(0.06, abs=0.02)


def test_several_changes_come_in_order() -> None:
    rng = np.random.default_rng(4)
    found = change_positions(
        np.r_[rng.normal(10, 0.2, 25), rng.normal(12, 0.2, 25), rng.normal(11, 0.2, 25)]
    )
    assert [change.position for change in found] == [25, 50]
    assert [change.change > 0 for change in found] == [True, False]
    assert all(change.p_value <= 0.01 for change in found)


def test_seeded() -> None:
    series = np.random.default_rng(5).normal(size=30).cumsum()
    assert change_positions(series, seed=1) == change_positions(series, seed=1)


def test_short_and_constant_series() -> None:
    for series in ([], [1.0], [1.0] * 9, [2.0] * 40):
        assert change_positions(series) == []


def test_refuses_what_cannot_be_answered() -> None:
    with pytest.raises(InvalidArgumentError, match="finite"):
        change_positions([1.0, np.nan])
    with pytest.raises(InvalidArgumentError, match="it takes 999"):
        change_positions([1.0] * 20, alpha=0.001)
    with pytest.raises(InputTooLargeError):
        change_positions(np.zeros(6000))


def test_runs_that_resemble_their_neighbours_show_no_change() -> None:
    noise = np.random.default_rng(1).normal(size=160)
    drift = noise.copy()
    for k in range(1, drift.size):
        drift[k] += 0.9 * drift[k - 1]
    found = change_positions(100 + drift[100:])
    assert (list(found), found.exchangeable) == ([], False)
    assert "no change can be distinguished from drift" in found.note
    assert change_positions(100 + noise[100:]).exchangeable


@pytest.mark.parametrize(("spread", "splits"), [(0.1, [(10, 1 / 500)]), (10.0, [])])
def test_a_split_is_ranked_among_those_of_drifting_series(
    spread: float, splits: list[tuple[int, float]]
) -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=20) / 10 + np.repeat([0, 1], 10)
    drifting = np.sort(spread * rng.normal(size=40)), 0.3, np.inf
    distance = np.abs(values[:, None] - values)
    assert _splits(distance, 0.01, 499, 5, 0) == [(10, 1 / 500)]
    assert _splits(distance, 0.01, 499, 5, 0, drifting) == splits
