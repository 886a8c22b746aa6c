"""Several runs per side, verdicts, and conditions on a change."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

import latencykit as lk
from latencykit.analysis.compare import (
    TAIL,
    Change,
    compare_runs,
    differences,
    holm,
    least_p,
    parse_condition,
    runs_needed,
    verdict,
)
from latencykit.core.trimmed import statistic_name

Rng = np.random.Generator
NAMES = ["p50", "p90", "p99", "p99.9"]


def runs(
    rng: Rng, number: int, factor: float = 1.0, noise: float = 0.03, stall: bool = False
) -> np.ndarray:
    """Percentiles of runs: their level differs by `noise`, each percentile a little more."""
    level = np.exp(rng.normal(0, noise, (number, 1)))
    own = np.exp(rng.normal(0, [0.002, 0.004, 0.01, 0.03], (number, 4)))
    table = factor * level * own * [1, 2, 5, 20]
    if stall:
        table[rng.integers(number), 2:] *= 30
    return table


def drifting(rng: np.random.Generator, level: float = 1.0, tail: float = 1.0) -> lk.Samples:
    """A minute at a level of its own, with a stall of 2 s, and the part above p95 longer."""
    start = np.sort(rng.integers(0, 60_000_000_000, 6000))
    took = np.exp(14 + rng.normal(0, 0.25) + 0.5 * rng.standard_normal(start.size)) * level
    took[took > np.percentile(took, 95)] *= tail
    stall = rng.integers(0, 58_000_000_000)
    rest = stall + 2_000_000_000 - start
    return lk.Samples(start=start, duration=np.where((rest > 0) & (rest < 2e9), took + rest, took))


def test_a_longer_tail_shows_where_levels_differ_and_stalls_decide_p99() -> None:
    rng = np.random.default_rng(5)
    base, same = ([drifting(rng) for _ in range(4)] for _ in range(2))
    longer = [drifting(rng, tail=2.0) for _ in range(4)]
    rows = {row.statistic: row for row in lk.compare(base, longer).changes}
    assert not rows["p99"].significant
    assert rows[TAIL].significant
    assert rows[TAIL].change == pytest.approx(1.0, abs=0.15)
    assert not any(row.significant for row in lk.compare(base, same).changes)
    untimed = [[run.histogram() for run in side] for side in (base, longer)]
    assert not lk.compare(*untimed).table.significant[TAIL]  # one stall decides p99 of all


def test_a_faster_median_is_no_longer_tail() -> None:
    names = ["p50", "p99", TAIL]
    base, new = ([[p50, 10.0 + k, (10.0 + k) / p50] for k in range(4)] for p50 in (1.0, 0.5))
    rows = compare_runs(base, new, names).changes
    assert [row.significant for row in rows] == [True, False, False]


def test_p_values_are_those_of_welch() -> None:
    rng = np.random.default_rng(1)
    base, new = rng.lognormal(3, 0.1, (6, 1)), rng.lognormal(3.1, 0.3, (7, 1))
    (row,) = compare_runs(base, new, ["p50"]).changes
    theirs = scipy.stats.ttest_ind(np.log(new[:, 0]), np.log(base[:, 0]), equal_var=False)
    assert row.p_value == pytest.approx(theirs.pvalue)
    ends = np.expm1(theirs.confidence_interval(0.95))
    assert (row.low, row.high) == pytest.approx(tuple(ends))


@pytest.mark.parametrize("stall", [False, True])
def test_equal_systems_alarm_in_at_most_five_percent(stall: bool) -> None:
    rng, alarms, repetitions = np.random.default_rng(3), 0, 400
    for _ in range(repetitions):
        base = runs(rng, 5, stall=stall)
        new = runs(rng, 5, stall=stall and rng.random() < 0.5)
        found = compare_runs(base, new, NAMES)
        alarms += found.verdict in ("better", "worse", "mixed")
    assert alarms / repetitions <= 0.05 + 0.015  # 1.4 standard errors


def test_power() -> None:
    rng = np.random.default_rng(5)
    found = [compare_runs(runs(rng, 5), runs(rng, 5, 1.10), NAMES).verdict for _ in range(100)]
    assert found.count("worse") > 70
    assert "better" not in found


def test_two_runs_per_side_suffice_to_ask_and_one_does_not() -> None:
    rng = np.random.default_rng(6)
    assert compare_runs(runs(rng, 3), runs(rng, 3, 2.0), NAMES).verdict == "worse"
    assert compare_runs(runs(rng, 2)[:, :1], runs(rng, 2, 3.0)[:, :1], ["p50"]).verdict == "worse"
    found = compare_runs(runs(rng, 1), runs(rng, 4, 2.0), NAMES)
    assert found.verdict == "inconclusive"
    assert "at least 2 per side" in found.reasons[0]
    assert found.changes[0].change == pytest.approx(1.0, abs=0.1)  # the effect is still shown
    assert (least_p(3, 3), runs_needed(0.05), runs_needed(0.1)) == (0.1, 4, 3)


def test_same_is_only_ever_equivalence() -> None:
    rng = np.random.default_rng(7)
    quiet = [runs(rng, 8, noise=0.001)[:, :2] for _ in "ab"]
    assert compare_runs(*quiet, NAMES[:2]).verdict == "same"
    loud = [runs(rng, 4, noise=0.2)[:, :2] for _ in "ab"]
    assert compare_runs(*loud, NAMES[:2]).verdict == "inconclusive"


def test_the_interval_of_the_ratio_covers_it() -> None:
    rng, covered = np.random.default_rng(8), 0
    for _ in range(300):
        row = compare_runs(runs(rng, 6)[:, :1], runs(rng, 6, 1.05)[:, :1], NAMES[:1]).changes[0]
        covered += row.low <= 0.05 <= row.high
    assert covered / 300 >= 0.93


def test_unsupported_statistics_are_left_out_with_a_word() -> None:
    rng = np.random.default_rng(9)
    base, new = runs(rng, 5), runs(rng, 5, 1.3)
    base[2, 3] = math.nan
    found = compare_runs(base, new, NAMES)
    assert found.verdict == "worse"
    assert math.isnan(found.changes[3].p_value)
    assert "p99.9: not judged" in found.reasons[0]


def test_a_row_too_short_is_an_error() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="4 numbers"):
        compare_runs([[1.0]], [[1.0]], NAMES)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).size == 0


def change(low: float, high: float, p_value: float = 0.001, name: str = "p99") -> Change:
    middle = (low + high) / 2
    numbers = 100, 100 * (1 + middle), middle, low, high, 0, 100 * low, 100 * high
    return Change(name, *numbers).judged(p_value, 0.95)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([change(0.1, 0.2)], "worse"),
        ([change(-0.2, -0.1)], "better"),
        ([change(0.1, 0.2), change(-0.2, -0.1)], "mixed"),
        ([change(0.01, 0.02)], "same"),
        ([change(-0.01, 0.02), change(0.1, 0.3)], "worse"),
        ([change(-0.1, 0.2)], "inconclusive"),
        ([change(0.1, 0.2, p_value=0.2)], "inconclusive"),
        ([change(0.0, 0.0), change(-0.1, 0.2)], "inconclusive"),
        ([change(0.1, 0.2, p_value=math.nan)], "inconclusive"),
    ],
)
def test_verdicts(rows: list[Change], expected: str) -> None:
    assert verdict(rows) == expected


def test_conditions_look_at_the_bound() -> None:
    slower = parse_condition("p99 > +5%")
    assert slower.holds(change(0.06, 0.20)) is True
    assert slower.holds(change(0.04, 0.20)) is False  # the point is +12 %, and it may be +4 %
    assert slower.holds(change(-1.0, 0.20)) is None
    faster = parse_condition("p99 < -5%")
    assert faster.holds(change(-0.2, -0.06)) is True
    assert faster.holds(change(-0.2, math.inf)) is None


def test_conditions_in_time() -> None:
    longer = parse_condition("mean > +1ms")
    row = Change("mean", 10, 13, 0.3, 0.1, 0.5, 3, 1.5, 4.5)
    assert longer.holds(row, "ms") is True
    assert longer.holds(row, "us") is False
    assert parse_condition("p99.9>5%").threshold == 0.05
    assert parse_condition("p50 < -10 %").threshold == -0.1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("p99", "not a valid condition"),
        ("p99 > 20ms", "is a limit"),
        ("max > +5%", "maximum"),
        ("p99 > +x%", "percent"),
        ("qq > +5%", "percentile"),
        ("tmx > +5%", "trimmed"),
    ],
)
def test_conditions_that_mean_nothing(text: str, complaint: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match=complaint):
        parse_condition(text)


def test_names_of_statistics() -> None:
    names = {"median": "p50", "99.90": "p99.9", "P99": "p99", "TM(:99%)": "TM(:99%)", "iqm": "iqm"}
    assert {text: statistic_name(text) for text in names} == names


def test_what_makes_two_runs_hard_to_compare() -> None:
    one = lk.Run(rate=500.0, connections=10, duration=60.0)
    one = one.replace(loop="open", measure="response", corrected="none")
    assert differences(one, one, 1000, 1010) == ()
    assert differences(one, lk.Run()) == ()  # nothing is known to differ
    other = one.replace(rate=1000.0, connections=11, duration=30.0, failed=8)
    other = other.replace(loop="closed", measure="service", corrected="us")
    found = " / ".join(differences(one, other, 1000, 10))
    expected = ["response time, the other service", "500/s and 1,000/s", "10 and 11"]
    expected += ["60 s and 30 s", "open loop", "none and us", "1,000 and 10"]
    expected += ["0 requests failed on one side, 8"]
    assert [part for part in expected if part not in found] == []
