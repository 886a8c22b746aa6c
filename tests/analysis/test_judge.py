"""The gate on histories of runs: one alarm per lasting change, none for noise."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.judge import bands_of, judged
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


def test_an_outlier_asks_for_another_run_and_is_forgotten() -> None:
    values = _steady(4, 40)
    values[25] *= 3
    assert lk.judge(values[:25], values[25]) == "confirm"
    assert not {"worse", "better"} & set(_verdicts(values))
    assert lk.judge(values[:25], [values[25], 10.0]) == "same"


def test_a_confirming_run_decides() -> None:
    history = _steady(5, 30)
    assert lk.judge(history, [14.0]) == "confirm"
    assert lk.judge(history, [14.0, 14.2, 13.9]) == "worse"


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


def test_too_little_history_is_unknown_and_says_how_much_is_missing() -> None:
    verdict = judged([10.0] * 4, 20.0)
    assert (verdict.verdict, verdict.missing) == ("unknown", 6)
    assert lk.judge([], 1.0) == "unknown"
    assert lk.judge([10.0] * 10, 10.0) == "same"


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
