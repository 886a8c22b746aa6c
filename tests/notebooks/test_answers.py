"""``check`` takes what a learner types, and never answers with a traceback."""

from __future__ import annotations

import re
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from tests.notebooks.conftest import beside

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def lessons() -> Iterator[Any]:
    """The module that every lesson imports."""
    with beside("lessons") as module:
        yield module


@pytest.fixture
def fresh(lessons: Any) -> Any:
    """The same, with no hint given and no answer tried yet."""
    lessons._hints.clear()
    lessons._wrong.clear()
    return lessons


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("7.1", 3.33), ("7.1", 3.3), ("7.1", "3.33 %"), ("7.1", 10 / 3), ("7.1", [3.33]), ("7.1", np.float32(3.33)),
        ("1.1", pd.Series([2.28])), ("1.2", 92), ("3.1", "400"), ("3.1", "0.4 s"), ("3.1", "400000us"), ("3.2", "4.14 ms"), ("3.2", 4100),
        ("2.1", "27.78 hours"), ("2.1", "27.8 h"), ("4.1", 106), ("4.1", 106.0), ("4.1", "106 requests"), ("10.2", "5,931"), ("12.1", "100_000"),
        ("6.1", "p98"), ("6.3", " Met "), ("12.3", "'stalls'"), ("12.2", "5800 ms"), ("9.3", "54 %"), ("6.2", 16),
        ("8.3", "6500 requests per second"), ("10.3", 55), ("5.1", [100, 0.001]), ("5.1", ("100 s", "1 ms")),
    ],
)  # fmt: skip
def test_right_in_many_ways_of_writing(fresh: Any, exercise: str, answer: Any) -> None:
    assert fresh.check(exercise, answer) is True


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("7.1", 3.2), ("7.1", 4), ("7.1", 0.0333), ("1.1", -2.28), ("3.1", "400 s"), ("3.1", 0.4), ("3.1", "400 apples"), ("4.1", 100), ("4.1", 105),
        ("10.2", 5930), ("10.2", 5900), ("12.1", 36_887), ("1.1", True), ("1.1", np.nan), ("1.1", np.inf), ("1.1", [1, 2]), ("1.1", {"a": 1}),
        ("1.1", object()), ("1.1", lambda: 3), ("1.1", 1 + 2j), ("1.1", pd.NA), ("1.1", "two"), ("1.1", b"2.28"), ("9.3", 0), ("9.3", pd.DataFrame()),
        ("1.1", np.zeros((2, 2))), ("1.1", "1" * 5000), ("1.1", 10**400), ("12.3", "LookupError"), ("6.3", False), ("6.2", 8), ("6.2", 24),
        ("5.1", [100, 100]), ("5.1", 100), ("5.1", [1, 2, 3]), ("4.3", 13.6), ("1.3", 10),
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


def test_hints_teach_before_the_third_shows_the_code(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for step, answer in ((1, 31), (2, 32), (3, 33), (3, 34)):
        fresh.check("1.1", answer)
        assert f"Hint {step} of 3: {fresh.EXERCISES['1.1'].hints[step - 1]}" in capsys.readouterr().out
    fresh.check("1.1", 2.28)
    fresh.hint("1.1")
    assert "Hint 1 of 3" in capsys.readouterr().out


def test_the_code_is_shown_after_two_answers_of_ones_own(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code = fresh.EXERCISES["1.1"].hints[2]
    for _ in range(5):
        fresh.hint("1.1")
    fresh.check("1.1", 31)
    fresh.check("1.1", 31)
    assert code not in capsys.readouterr().out
    fresh.check("1.1", 3.6)
    fresh.hint("1.1")
    assert code in capsys.readouterr().out


def test_every_exercise_has_three_hints_and_only_the_last_may_give_the_answer(lessons: Any) -> None:
    for exercise, (wanted, _, _, hints, *_) in lessons.EXERCISES.items():
        assert len(set(hints)) == 3, exercise
        assert not [hint for hint in hints[:2] if f" {wanted}." in f" {hint} "], exercise


RUNS_2_3 = 200 * 0.999**1500
USUAL = {
    # exercise: what a reader answers who thinks …, and the word by which the answer is named
    "1.1": [(3.6, "below 1 ms"), (100 * NormalDist().cdf(-1), "one standard deviation"), (200 * NormalDist().cdf(-2), "both sides"), (97.72, "rest")],
    "1.2": [(50, "median"), (0, "nanoseconds"), (67.8, "mean itself"), (0.9155, "per cent")],
    "1.3": [(10, "mean"), (15, "plus one deviation"), (10 + 5 * (0.99 / 0.01) ** 0.5, "stalls"), (0.00984, "unit")],
    "2.1": [(1e6 / 100 / 3600, "million"), (3_688_878 / 100 / 3600, "upper end"), (1e7 / 50 / 3600, "50 requests"), (1666.7, "minutes")],
    "2.2": [(30, "p99.99"), (0, "maximum"), (4, "upper end")],
    "2.3": [(200 - RUNS_2_3, "above"), (RUNS_2_3 / 2, "per cent"), (0.999**1500, "probability"), (0, "chance")],
    "3.1": [((12 + 80 + 400) / 3, "average"), (80, "median"), (12 + 80 + 400, "sum"), (12, "lower bound")],
    "3.2": [((4255.743 + 2504.703) / 2, "average"), ((3180 * 4255.743 + 795 * 2504.703) / 3975, "weighted"), (4255.7, "GETs"), (4.143, "unit")],
    "3.3": [(100 / 1.5, "1.5 %"), (2, "slow requests of A"), (1, "jumps"), (0.5, "per cent")],
    "4.1": [(100, "adds up"), (105, "still below"), (np.ceil(np.log(0.5) / np.log(0.999)), "half"), (107, "exact")],
    "4.2": [(100 * (1 - 0.99**10), "independent"), (10, "adds up"), (30.6, "100 requests"), (0.0835, "per cent")],
    "4.3": [(100 * (1 - 0.9999**2000), "independent"), (20, "adds up"), (13.6, "two worlds"), (0.139, "per cent")],
    "5.1": [((0.001, 0.001), "Answer 1: 9,998"), ((100, 100), "Answer 2: 9,999"), ((50.0005, 0.001), "interpolates"), (("100 ms", 0.001), "unit")],
    "5.2": [(25, "ideal"), (27.5 * 2, "during the stall"), (100, "longest"), (27_500, "unit")],
    "5.3": [(0.15, "not corrected"), (0.397, "10 ms"), (6002, "maximum"), (4.02, "unit")],
    "6.1": [(99, "timed out"), (100, "leaves out"), (2, "share that timed out"), (95, None)],
    "6.2": [(2000, "open loop"), (8, "One timeout|one timeout"), (24, "third request"), (2, "one connection")],
    "6.3": [("missed", "above p80"), ("unknown", "median is known"), ("undecided", "median is known"), ("p50", "Three words")],
    "7.1": [(100 * 3 / 60, "last second"), (100 / 60, "less than 1 s"), (200 / 3, "delayed requests"), (1 / 30, "per cent")],
    "7.2": [(141.1564 / 20 - 130.3972 / 20, "p99.99"), (130.3972 - 45.2490, "milliseconds"), (13, "Kafka"), (4, "whole")],
    "7.3": [(6 * 300, "last second"), (300, "one second"), (25, "per cent"), (1, "omits")],
    "8.1": [(9, "waiting"), (1 / 0.9, "busy share"), (10 * np.log(100), "p99"), (0.01, "unit")],
    "8.2": [(460, "one cashier"), (230, "half"), (35.4, "mean"), (3, "unit")],
    "8.3": [(6000, "backlog only"), (7000, "whole second"), (3250, "number of requests"), (500, "rate of arrival")],
    "9.1": [(3, "p = 0.1"), (4, "0.029"), (10, "both sides"), (2, "0.33")],
    "9.2": [(5, "level"), (48.5, "3 %"), (10, "noise"), (4, "one number per run")],
    "9.3": [(117.3, "higher"), (46, "remains"), (0.111, "difference"), (0.54, "per cent")],
    "10.1": [(38, "remains"), (100 * (10 / 3.8 - 1), "old one"), (10 / 3.8, "factor"), (0.62, "per cent")],
    "10.2": [(20_231, "all values"), (14_300, "measured"), (145, "without a freeze"), (5930, "exact")],
    "10.3": [(10, "once"), (100, "ten of each"), (45, "second correction adds"), (54, "filled in")],
    "11.1": [(8 / 74, "inverse"), (66, "difference"), ((74 / 26) / (8 / 92), "odds"), (74, "share of the slow")],
    "11.2": [(55, "above the p99"), (12.5, "share of all"), (8, "lift"), (1, "per cent")],
    "11.3": [(9, "still above"), (11, "beforehand"), (1000, "1 / 0.001"), (12, None)],
    "12.1": [(10_000, "average"), (36_887, "upper end"), (1_000, "p99"), (100_100, "exact")],
    "12.2": [(0.00104, "omits"), (6.0, "maximum"), (4.02, "p90"), (5.8e-3, "unit")],
    "12.3": [("p99", "percentile"), ("mean", "follows"), ("maximum", "highest"), ("times", "One of the four")],
    "13.1": [(1000, "more than once"), (250, "four tries"), (3000, "multiplies"), (2000 / 3, "places")],
    "13.2": [(1.05, "budget"), (2, "sent twice"), (0.5, "first time"), (1.99, "70 %")],
    "13.3": [(30, "share of 1,000"), (1000 / 7, "retries alone"), (300, "how many"), (400, "four tries")],
}  # fmt: skip
"""Four wrong answers per exercise, from the mistakes that lead to them; None where no misconception is behind one."""


def test_usual_wrong_answers_are_named(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert set(USUAL) == set(fresh.EXERCISES)
    named: dict[str, int] = {}
    for exercise, tried in USUAL.items():
        for answer, word in tried:
            fresh._wrong.clear()
            assert fresh.check(exercise, answer) is False, (exercise, answer)
            said = capsys.readouterr().out
            if word is None:
                assert "Hint " in said, (exercise, answer)
            else:
                assert re.search(word, said), (exercise, answer, said)
                assert "Hint " not in said
                named[exercise] = named.get(exercise, 0) + 1
            fresh._hints.clear()
    assert min(named.values()) >= 3
    assert len(USUAL) == 39


def test_every_other_wrong_number_gets_its_reason_and_a_hint(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    numeric = {name: one for name, one in fresh.EXERCISES.items() if isinstance(one.answer, int | float)}
    assert len(numeric) == 36
    for exercise, one in numeric.items():
        for factor, reason in zip((0.63, 1.83), one.too, strict=True):
            given = round(one.answer * factor) if one.unit == "whole" else one.answer * factor
            fresh._wrong.clear()
            fresh._hints.clear()
            assert fresh.check(exercise, given) is False
            said = capsys.readouterr().out
            assert (reason in said and "Hint 1" in said) or "Hint" not in said, (exercise, given, said)


def test_a_wrong_answer_is_named_in_any_unit(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for exercise, answer, word in (("12.2", 1.04, "omits"), ("9.3", 1.17, "higher"), ("9.3", -54, "no sign"), ("4.2", "0.0956", "independent")):
        fresh._wrong.clear()
        assert fresh.check(exercise, answer) is False
        assert re.search(word, capsys.readouterr().out), exercise


def test_no_usual_wrong_answer_is_right(lessons: Any) -> None:
    for exercise, (wanted, _, _, _, usual, _) in lessons.EXERCISES.items():
        pairs = zip(wanted, usual, strict=True) if isinstance(wanted, tuple) else [(wanted, usual)]
        for right, wrong in pairs:
            assert wrong, exercise
            for answer in wrong:
                given = (answer, 0.001) if isinstance(wanted, tuple) and right == wanted[0] else (100, answer) if isinstance(wanted, tuple) else answer
                assert lessons.check(exercise, given) is False, (exercise, answer)


def test_a_model_answer_follows_an_attempt(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (..., None, 3, "too short"):
        fresh.explain("1.4", text)
        assert "first" in capsys.readouterr().out
    fresh.explain("1.4", "Two numbers cannot describe a tail, so I would ask for percentiles.")
    assert "A model answer to 1.4" in capsys.readouterr().out
