"""``check`` takes what a learner types, and never answers with a traceback."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import latencykit as lk

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture(scope="module")
def lessons() -> Iterator[Any]:
    """The module that every lesson imports."""
    names = ("lessons", "controls", "pictures")
    sys.path.insert(0, str(NOTEBOOKS))
    yield importlib.import_module("lessons")
    sys.path.remove(str(NOTEBOOKS))
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def fresh(lessons: Any) -> Any:
    """The same, with no hint given yet."""
    lessons._tries.clear()
    return lessons


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("7.1", 3.33), ("7.1", 3.3), ("7.1", "3.33 %"), ("7.1", 10 / 3), ("7.1", [3.33]), ("7.1", np.float32(3.33)),
        ("1.1", pd.Series([2.28])), ("1.2", 92), ("3.1", "400"), ("3.1", "0.4 s"), ("3.1", "400000us"), ("3.2", "4.14 ms"), ("3.2", 4100),
        ("2.1", "8.32 hours"), ("2.1", "8.3 h"), ("4.1", 106), ("4.1", 106.0), ("4.1", "106 requests"), ("10.2", "5,931"), ("12.1", "36_887"),
        ("6.1", "p98"), ("6.3", " Met "), ("9.3", "'inconclusive'"), ("12.3", lk.DataNotAvailableError), ("12.3", lk.DataNotAvailableError("x")),
        ("8.3", "6500 requests per second"), ("10.3", "alreadycorrectederror"),
    ],
)  # fmt: skip
def test_right_in_many_ways_of_writing(fresh: Any, exercise: str, answer: Any) -> None:
    assert fresh.check(exercise, answer) is True


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("7.1", 3.2), ("7.1", 4), ("7.1", 0.0333), ("1.1", -2.28), ("3.1", "400 s"), ("3.1", 0.4), ("3.1", "400 apples"), ("4.1", 100), ("4.1", 105),
        ("10.2", 5930), ("10.2", 5900), ("12.1", 37_000), ("1.1", True), ("1.1", np.nan), ("1.1", np.inf), ("1.1", [1, 2]), ("1.1", {"a": 1}),
        ("1.1", object()), ("1.1", lambda: 3), ("1.1", 1 + 2j), ("1.1", pd.NA), ("1.1", "two"), ("1.1", b"2.28"), ("9.3", 0), ("9.3", pd.DataFrame()),
        ("1.1", np.zeros((2, 2))), ("1.1", "1" * 5000), ("1.1", 10**400), ("12.3", "LookupError"), ("6.3", False),
    ],
)  # fmt: skip
def test_wrong_is_not_yet_and_never_a_traceback(fresh: Any, capsys: pytest.CaptureFixture[str], exercise: str, answer: Any) -> None:
    assert fresh.check(exercise, answer) is False
    assert f"Exercise {exercise}: not yet." in capsys.readouterr().out


@pytest.mark.parametrize("answer", [..., None, "", "  ", [...], [None]])
def test_what_is_not_answered_is_not_judged(fresh: Any, capsys: pytest.CaptureFixture[str], answer: Any) -> None:
    assert fresh.check("1.1", answer) is None
    assert "not answered yet" in capsys.readouterr().out


def test_an_unknown_exercise_lists_the_known(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert fresh.check("1.17", 3) is None
    assert "1.1, 1.2, 1.3, 2.1" in capsys.readouterr().out


def test_hints_come_in_three_steps_and_the_solution_last(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for step in (1, 2, 3, 3):
        fresh.check("1.1", 50)
        assert f"Hint {step} of 3: {fresh.ANSWERS['1.1'][3][step - 1]}" in capsys.readouterr().out
    fresh.check("1.1", 2.28)
    fresh.hint("1.1")
    assert "Hint 1 of 3" in capsys.readouterr().out


def test_every_exercise_has_three_hints_and_only_the_last_may_give_the_answer(lessons: Any) -> None:
    for exercise, (wanted, _, _, hints) in lessons.ANSWERS.items():
        assert len(set(hints)) == 3, exercise
        assert not [hint for hint in hints[:2] if f" {wanted}." in f" {hint} "], exercise


def test_a_model_answer_follows_an_attempt(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (..., None, 3, "too short"):
        fresh.explain("1.4", text)
        assert "first" in capsys.readouterr().out
    fresh.explain("1.4", "Two numbers cannot describe a tail, so I would ask for percentiles.")
    assert "A model answer to 1.4" in capsys.readouterr().out
