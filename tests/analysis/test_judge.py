"""Gates on histories of runs, and the changes in them."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.change_points import _splits, change_positions
from latencykit.analysis.judge import _band, bands_of, judged
from latencykit.errors import InputTooLargeError, InvalidArgumentError
from tests.benchmarks import history


def _steady(seed: int, runs: int, noise: float = 0.03) -> np.ndarray:
    return 10 * np.exp(noise * np.random.default_rng(seed).standard_normal(runs))


def _verdicts(values: np.ndarray, warm: int = 12) -> list[str]:
    return [lk.judge(values[:t], values[t]) for t in range(warm, len(values))]


@pytest.mark.parametrize("seed", range(5))
def test_an_unchanged_series_raises_no_alarm(seed: int) -> None:
    assert not {"worse", "better"} & set(_verdicts(_steady(seed, 60)))


@pytest.mark.parametrize(("factor", "word"), [(1.3, "worse"), (0.6, "better")])
def test_a_lasting_change_is_reported_once_and_learned(factor: float, word: str) -> None:
    values = _steady(3, 60)
    values[40:] *= factor
    verdicts = _verdicts(values)
    alarms = [k + 12 for k, verdict in enumerate(verdicts) if verdict in ("worse", "better")]
    assert len(alarms) == 1
    assert 40 <= alarms[0] <= 42
    assert verdicts[alarms[0] - 12] == word
    assert judged(values[:50], values[50]).level == pytest.approx(10 * factor, rel=0.05)
    assert judged(values[:50], values[50]).changes in ((39,), (40,))


def test_bands_follow_a_small_change_that_lasts() -> None:
    values = _steady(8, 85, 0.02)
    assert bands_of(values)[3] == []
    values[55:] *= 1.05
    level, _, _, found = bands_of(values)
    assert len(found) == 1
    assert 52 <= found[0] <= 58
    assert level[-1] == pytest.approx(10.5, rel=0.02)


def test_the_next_of_runs_alike_is_in_the_band_as_often_as_it_says() -> None:
    runs = np.random.default_rng(2).standard_normal((2000, 46))
    low, high = np.transpose([_band(run[:45], ())[1:3] for run in runs])
    assert np.mean((low <= runs[:, 45]) & (runs[:, 45] <= high)) == pytest.approx(0.95, abs=0.015)


def test_an_outlier_asks_for_another_run_and_is_forgotten() -> None:
    values = _steady(4, 40)
    values[25] *= 3
    assert lk.judge(values[:25], values[25]) == "confirm"
    assert not {"worse", "better"} & set(_verdicts(values))
    assert lk.judge(values[:25], [values[25], 10.0]) == "same"


def test_the_modes_of_two_machines_are_not_changes() -> None:
    rng = np.random.default_rng(6)
    values = 10 * 1.2 ** rng.integers(0, 2, 60) * np.exp(0.005 * rng.standard_normal(60))
    assert not {"worse", "better"} & set(_verdicts(values, 20))
    changed = values.copy()
    changed[50:] *= 1.1  # between the modes: smaller than their distance
    assert "worse" in _verdicts(changed, 20)


def test_machines_that_take_turns_become_known_but_a_regression_that_returns_is_reported() -> None:
    turns = np.repeat([0, 0, *[1, 0] * 5], 10)
    values = 10 * 1.3**turns * np.exp(0.01 * np.random.default_rng(9).standard_normal(turns.size))
    words = _verdicts(values)
    alarms = [number + 12 for number, word in enumerate(words) if word in ("worse", "better")]
    assert [(at // 10, words[at - 12]) for at in alarms] == [
        (2, "worse"), (3, "better"), (4, "worse"),
    ]  # fmt: skip
    levels = [judged(values[:at], values[at]).level for at in (78, 88)]
    assert levels == pytest.approx([10, 13] if turns[88] else [13, 10], rel=0.03)
    slower = np.concatenate([values[:100], values[:3] * 2])
    assert "worse" in _verdicts(slower)[-3:]


def test_too_little_history_is_unknown_and_a_short_one_shows_its_noise() -> None:
    verdict = judged([10.0] * 4, 20.0)
    assert (verdict.verdict, verdict.missing) == ("unknown", 1)
    assert lk.judge([], 1.0) == "unknown"
    assert lk.judge([10.0] * 10, 10.0) == "same"
    series = [_steady(seed, 12) for seed in range(200)]
    found = [judged(one[:-1], one[-1]) for one in series]
    assert np.mean([one.noise for one in found]) == pytest.approx(0.03, rel=0.05)
    held = [one.low <= all_of[-1] <= one.high for one, all_of in zip(found, series, strict=True)]
    assert 0.91 <= np.mean(held) <= 0.98


@pytest.mark.parametrize("bad", [[0.0], [-1.0], [float("nan")], [float("inf")], []])
def test_what_has_no_logarithm_is_refused(bad: list[float]) -> None:
    with pytest.raises(lk.InvalidArgumentError):
        lk.judge([10.0] * 20, bad)


@pytest.mark.slow
def test_the_gate_meets_its_aims_on_the_histories_of_public_projects() -> None:
    """Of every fourth series; ``python -m tests.benchmarks.history`` replays all."""
    result = history.replay(lk.judge, list(history.load(history.FILES).values())[::4])
    assert result["alarms per 100"] <= 1
    assert result["that last"] >= 0.80
    least = {1.1: 0.30, 1.25: 0.60, 1.5: 0.82, 2.0: 0.95}
    assert all(result[f"× {factor:g}"] >= share for factor, share in least.items())


# ---------------------------------------------------------------- change points


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


def test_short_and_constant_series() -> None:
    series = np.random.default_rng(5).normal(size=30).cumsum()
    assert change_positions(series, seed=1) == change_positions(series, seed=1)
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
