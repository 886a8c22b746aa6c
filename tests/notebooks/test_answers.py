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
        ("5.1", 3.33), ("5.1", 3.3), ("5.1", "3.33 %"), ("5.1", 10 / 3), ("5.1", [3.33]), ("5.1", np.float32(3.33)),
        ("0.1", pd.Series([2.28])), ("0.2", 92), ("2.1", "400"), ("2.1", "0.4 s"), ("2.1", "400000us"), ("2.2", "4.14 ms"), ("2.2", 4100),
        ("1.1", "8.32 hours"), ("1.1", "8.3 h"), ("3.1", 106), ("3.1", 106.0), ("3.1", "106 requests"), ("8.2", "5,931"), ("9.1", "36_887"),
        ("5b.1", "p98"), ("5b.3", " Met "), ("7.3", "'inconclusive'"), ("9.3", lk.DataNotAvailableError), ("9.3", lk.DataNotAvailableError("x")),
        ("6.3", "6500 requests per second"), ("8.3", "alreadycorrectederror"),
    ],
)  # fmt: skip
def test_right_in_many_ways_of_writing(fresh: Any, exercise: str, answer: Any) -> None:
    assert fresh.check(exercise, answer) is True


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("5.1", 3.2), ("5.1", 4), ("5.1", 0.0333), ("0.1", -2.28), ("2.1", "400 s"), ("2.1", 0.4), ("2.1", "400 apples"), ("3.1", 100), ("3.1", 105),
        ("8.2", 5930), ("8.2", 5900), ("9.1", 37_000), ("0.1", True), ("0.1", np.nan), ("0.1", np.inf), ("0.1", [1, 2]), ("0.1", {"a": 1}),
        ("0.1", object()), ("0.1", lambda: 3), ("0.1", 1 + 2j), ("0.1", pd.NA), ("0.1", "two"), ("0.1", b"2.28"), ("7.3", 0), ("7.3", pd.DataFrame()),
        ("0.1", np.zeros((2, 2))), ("0.1", "1" * 5000), ("0.1", 10**400), ("9.3", "LookupError"), ("5b.3", False),
    ],
)  # fmt: skip
def test_wrong_is_not_yet_and_never_a_traceback(fresh: Any, capsys: pytest.CaptureFixture[str], exercise: str, answer: Any) -> None:
    assert fresh.check(exercise, answer) is False
    assert f"Exercise {exercise}: not yet." in capsys.readouterr().out


@pytest.mark.parametrize("answer", [..., None, "", "  ", [...], [None]])
def test_what_is_not_answered_is_not_judged(fresh: Any, capsys: pytest.CaptureFixture[str], answer: Any) -> None:
    assert fresh.check("0.1", answer) is None
    assert "not answered yet" in capsys.readouterr().out


def test_an_unknown_exercise_lists_the_known(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert fresh.check("0.17", 3) is None
    assert "0.1, 0.2, 0.3, 1.1" in capsys.readouterr().out


def test_hints_come_in_three_steps_and_the_solution_last(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for step in (1, 2, 3, 3):
        fresh.check("0.1", 50)
        assert f"Hint {step} of 3: {fresh.ANSWERS['0.1'][3][step - 1]}" in capsys.readouterr().out
    fresh.check("0.1", 2.28)
    fresh.hint("0.1")
    assert "Hint 1 of 3" in capsys.readouterr().out


def test_every_exercise_has_three_hints_and_only_the_last_may_give_the_answer(lessons: Any) -> None:
    for exercise, (wanted, _, _, hints) in lessons.ANSWERS.items():
        assert len(set(hints)) == 3, exercise
        assert not [hint for hint in hints[:2] if f" {wanted}." in f" {hint} "], exercise


def test_a_model_answer_follows_an_attempt(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (..., None, 3, "too short"):
        fresh.explain("0.4", text)
        assert "first" in capsys.readouterr().out
    fresh.explain("0.4", "Two numbers cannot describe a tail, so I would ask for percentiles.")
    assert "A model answer to 0.4" in capsys.readouterr().out
