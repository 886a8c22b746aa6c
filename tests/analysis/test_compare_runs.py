"""Several runs per side: levels, conditions, what is stated of one run per side, and how often it is wrong."""

from __future__ import annotations

import json
import math
import re

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


def run_of(
    seed: int, factor: float = 1.0, size: int = 4000, noise: float = 0.03, **facts
) -> lk.Histogram:
    rng = np.random.default_rng(seed)
    luck = float(np.exp(rng.normal(0, noise)))
    return lk.Histogram.of(rng.lognormal(14, 0.5, size) * factor * luck).with_run(**facts)


def side(first: int, number: int, factor: float = 1.0, size: int = 4000) -> list[lk.Histogram]:
    return [run_of(first + k, factor, size) for k in range(number)]


def test_one_run_per_side_states_what_runs_of_one_system_do_not_do():
    found = lk.compare(run_of(1), run_of(2, 3))
    assert (found.basis, found.verdict, found.runs) == ("requests", "worse", (1, 1))
    assert 0.3 < found.tolerates < 0.5
    table = found.table
    assert list(table.index)[:3] == ["p50", "p75", "p90"]
    assert table.low["p50"] < table.change["p50"] < table.high["p50"]
    assert 0.3 < table.tolerates["p50"] < 0.5
    assert lk.compare(run_of(1, 3), run_of(2)).verdict == "better"


def test_a_smaller_change_names_the_runs_that_would_decide():
    found = lk.compare(run_of(1), run_of(2, 1.3))
    assert (found.verdict, found.tolerates) == ("inconclusive", None)
    assert found.reasons[0].startswith("changed in these runs: p50, p75")
    assert "4 runs per side would decide" in found.reasons[0]
    assert "(run_noise=0.03)" in found.reasons[0]
    assert "--" not in found.reasons[0]
    assert 0.05 < found.table.tolerates["p50"] < 0.12
    same = lk.compare(run_of(1, noise=0), run_of(2, noise=0))
    assert same.reasons[0].startswith("no change in these runs")


def test_sides_that_were_not_alternated_are_warned_of():
    rng = np.random.default_rng(8)
    level = np.exp(0.05 * np.cumsum(rng.normal(size=10)))
    runs = [run_of(50 + k, level[k], noise=0.0, start=1.7e9 + 60 * k) for k in range(10)]
    apart, mixed = lk.compare(runs[:5], runs[5:]), lk.compare(runs[::2], runs[1::2])
    assert "alternate the sides" in apart.reasons[0]
    assert "alternate" not in " ".join(mixed.reasons)
    assert apart.verdict == "inconclusive"
    slower = [run_of(70 + k, 3, noise=0.02, start=1.8e9 + 60 * k) for k in range(5)]
    base = [run_of(80 + k, noise=0.02, start=1.7e9 + 60 * k) for k in range(5)]
    assert lk.compare(base, slower).verdict == "worse"


def test_run_noise_counts_with_several_runs_too():
    few = side(10, 1), side(20, 2, 1.5)
    assert lk.compare(*few).verdict == "inconclusive"
    assert lk.compare(*few, run_noise=0.03).verdict == "worse"
    assert lk.compare(*few, run_noise=0.3).verdict == "inconclusive"
    assert lk.compare(side(10, 6), side(20, 6, 1.25), run_noise=0.3).verdict == "inconclusive"


def test_only_supported_percentiles_are_compared_unasked():
    names = list(lk.compare(run_of(1), run_of(2)).table.index)
    assert "p99" in names  # 4,000 requests support p99.75
    assert "p99.9" not in names
    assert {"p100", "mean", "tm99"} <= set(names)
    asked = lk.compare(run_of(1), run_of(2), percentiles=[99.99]).changes[0]
    assert asked.statistic == "p99.99"
    assert not asked.significant
    assert (asked.low, asked.high) == (-1.0, math.inf)


def test_noise_makes_it_a_verdict():
    assert lk.compare(run_of(1), run_of(2, 1.5), run_noise=0.03).verdict == "worse"
    assert lk.compare(run_of(1, 1.5), run_of(2), run_noise=0.03).verdict == "better"
    assert lk.compare(run_of(1), run_of(2), run_noise=0.03).verdict == "inconclusive"
    large = [run_of(seed, size=40_000, noise=0) for seed in (1, 2)]
    wide = lk.compare(*large, run_noise=0.005, percentiles=[50], margin=0.1)
    assert wide.verdict == "same"


def test_runs_are_the_samples():
    found = lk.compare(side(10, 6), side(20, 6, 1.25))
    assert (found.basis, found.verdict, found.runs) == ("runs", "worse", (6, 6))
    assert lk.compare(side(10, 6), side(20, 6)).verdict != "worse"
    assert lk.compare(side(10, 2), side(20, 2, 3.0), percentiles=[50], means=()).verdict == "worse"
    few = lk.compare(side(10, 1), side(20, 3, 3.0))
    assert few.verdict == "inconclusive"
    assert "at least 2 per side" in few.reasons[0]


def test_conditions_fire_on_the_bound():
    found = lk.compare(run_of(1), run_of(2, 1.5))
    assert (found.verdict, found.failed(["p50 > +5%"])) == ("inconclusive", [])  # as the verdict
    found = lk.compare(run_of(1), run_of(2, 3))
    assert found.failed(["p50 > +5%", "p50 > +500%", "mean > +1us"]) == ["p50 > +5%", "mean > +1us"]
    assert found.failed(["p50 < -5%"]) == []
    with pytest.raises(lk.InvalidArgumentError, match="was not compared"):
        found.failed(["p99.9999 > 5%"])


def test_what_else_differs_is_said():
    base = run_of(1, rate=500.0, connections=10, measure="service")
    new = run_of(2, rate=1000.0, connections=20, measure="response")
    warned = " ".join(lk.compare(base, new).warnings)
    assert "rate" in warned
    assert "connections" in warned
    assert "response" in warned
    assert lk.compare(base, base).warnings == ("both sides have the very same numbers",)
    among = lk.compare([base, new], [base, base]).warnings
    assert any(text.startswith("among the base runs") for text in among)


def test_copies_of_a_run_are_not_further_runs():
    runs = side(1, 3)
    (said,) = lk.compare([*runs, runs[0], runs[1]], side(11, 3)).warnings
    assert said.startswith("2 of the 5 base runs repeat another's very numbers")
    assert lk.compare(runs, side(11, 3)).warnings == ()
    printed = [lk.Summary({"mean": 5.0, "p50": 4.0}, unit="ms", count=10)] * 2
    assert lk.compare(printed, printed).warnings == ()


def test_units_meet_or_not():
    micro = lk.Histogram.of(np.arange(1000, 3000), unit="us")
    nano = lk.Histogram.of(np.arange(1000, 3000) * 1000, unit="ns")
    assert lk.compare(micro, nano).table.change["p50"] == pytest.approx(0, abs=2e-3)
    with pytest.raises(lk.IncompatibleDataError):
        lk.compare(nano, lk.Histogram.of([1, 2, 3], unit="none"))


def test_printed_numbers_are_compared_as_they_are():
    base, new = (lk.Summary({"mean": mean}, {50.0: 2 * mean}, 10) for mean in (10.0, 12.0))
    found = lk.compare(base, new)
    assert [row.statistic for row in found.changes] == ["p50", "mean"]
    assert found.changes[1].change == pytest.approx(0.2)
    assert found.verdict == "inconclusive"
    several = ([lk.Summary({"mean": mean + k}) for k in range(5)] for mean in (10.0, 20.0))
    assert lk.compare(*several).verdict == "worse"
    with pytest.raises(lk.DataNotAvailableError, match="base reports mean and new reports p50"):
        lk.compare(lk.Summary({"mean": 1.0}), lk.Summary({}, {50.0: 1.0}))


@pytest.mark.parametrize(
    "options", [{"confidence": 1.0}, {"run_noise": -0.1}, {"run_noise": 3}, {"margin": -1}]
)
def test_impossible_options(options):
    with pytest.raises(lk.InvalidArgumentError):
        lk.compare(run_of(1), run_of(2), **options)


def test_empty_sides():
    with pytest.raises(lk.InvalidArgumentError, match="new side is empty"):
        lk.compare(run_of(1), [])
    with pytest.raises(lk.DataNotAvailableError):
        lk.compare(run_of(1), lk.Histogram.of([]))


def test_change_points_of_runs():
    runs = side(100, 15) + side(200, 15, 1.3)
    for statistic in ("p50", 90, "mean", "tm99"):
        (found,) = lk.change_points(runs, statistic)
        assert abs(found.position - 15) <= 1
        assert found.change == pytest.approx(0.3, abs=0.1)
    assert lk.change_points(side(100, 20), "p50") == []
    with pytest.raises(lk.DataNotAvailableError, match=r"does not support p99\.999"):
        lk.change_points(runs, "p99.999")


def go_bench(factor: float, runs: int = 6) -> str:
    rng = np.random.default_rng(round(1000 * factor))
    times = 1e4 * factor * np.exp(rng.normal(0, 0.02, runs))
    return "".join(f"BenchmarkParse-8 \t 1000 \t {time:.0f} ns/op\n" for time in times)


def jmh(score: float, error: float, unit: str = "ns/op", mode: str = "avgt") -> str:
    head = "Benchmark       Mode  Cnt      Score     Error  Units\n"
    return f"{head}MyBench.parse   {mode}   25  {score:.3f} ± {error:.3f}  {unit}\n"


def hyperfine(mean: float) -> str:
    rule = "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n|:---|---:|---:|---:|---:|\n"
    return f"{rule}| `prog` | {mean:.1f} ± 1.2 | {mean - 2:.1f} | {mean + 3:.1f} | 1.00 |\n"


def times(mean: float) -> str:
    each = (mean * np.exp(np.random.default_rng(round(mean)).normal(0, 0.01, 10)) / 1e3).tolist()
    facts = {"command": "prog", "mean": mean / 1e3, "stddev": 0.001, "user": 0, "system": 0}
    return json.dumps({"results": [facts | {"times": each, "exit_codes": [0] * 10}]})


@pytest.mark.parametrize(
    ("texts", "runs", "verdict", "change"),
    [
        ((go_bench(1), go_bench(1.3)), (6, 6), "worse", 0.3),
        ((go_bench(1), go_bench(1.001)), (6, 6), "same", 0.0),
        ((jmh(8755, 86), jmh(11755, 86)), (1, 1), "worse", 0.343),
        ((jmh(20, 0.4, "ops/us", "thrpt"), jmh(15, 0.3, "ops/us", "thrpt")), (1, 1), "worse", 0.333),
        ((jmh(8755, 86), jmh(8900, 86)), (1, 1), "inconclusive", 0.0166),
        ((hyperfine(132.3), hyperfine(102.3)), (1, 1), "better", -0.227),
        ((times(102), times(132)), (10, 10), "worse", 0.294),
    ],
)  # fmt: skip
def test_runs_in_one_file_and_the_spread_that_it_states_are_used(
    tmp_path, texts, runs, verdict, change
):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    found = lk.compare(*map(lk.read, paths))
    assert (found.runs, found.verdict) == (runs, verdict)
    row = found.table.loc["mean"]
    assert row.change == pytest.approx(change, abs=0.03)
    assert row.low < change < row.high < row.low + 0.1
    assert not any("no intervals" in text for text in found.reasons)


def test_forks_are_runs_where_there_are_three(tmp_path):
    def report(factor: float, forks: int) -> str:
        rng = np.random.default_rng(forks)
        raw = (factor * 10 * np.exp(rng.normal(0, 0.02, (forks, 5)))).tolist()
        score = {"score": float(np.mean(raw)), "scoreError": 0.2, "scoreUnit": "us/op"}
        metric = score | {"rawData": raw}
        return json.dumps([{"benchmark": "b", "mode": "avgt", "primaryMetric": metric}])

    for forks, runs in ((1, 1), (4, 4)):
        for name, factor in (("a", 1), ("b", 1.5)):
            (tmp_path / f"{name}.json").write_text(report(factor, forks))
        found = lk.compare(*(lk.read(tmp_path / f"{name}.json") for name in "ab"))
        assert (found.runs, found.verdict) == ((runs, runs), "worse")


def test_runs_survive_units_and_our_own_json(tmp_path):
    (tmp_path / "a.txt").write_text(go_bench(1))
    data = lk.read(tmp_path / "a.txt")
    lk.write(data, tmp_path / "a.json")
    assert lk.read(tmp_path / "a.json").runs == data.runs
    means = pytest.approx([run.mean / 1e3 for run in data.runs])
    assert [run.mean for run in data.to_unit("us").runs] == means


# ---------------------------------------------------------------- statistics of runs

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


def test_inconclusive_runs_say_how_many_would_decide() -> None:
    rng = np.random.default_rng(8)

    def sides(runs: int) -> list[np.ndarray]:
        return [np.exp(0.03 * rng.standard_normal((runs, 2))) for _ in "ab"]

    decided = []
    for _ in range(30):
        few = compare_runs(*sides(4), ["p50", "p99"])
        if few.verdict == "inconclusive":
            needed = re.search(r"about (\d+) runs per side would decide", few.reasons[-1])
            assert needed is not None
            decided.append(compare_runs(*sides(int(needed[1])), ["p50", "p99"]).verdict)
    assert decided.count("same") >= 0.7 * len(decided) > 15
    assert compare_runs(*[np.ones((3, 2))] * 2, ["p50", "p99"], margin=0.0).reasons == ()
    still = [np.column_stack([side[:, 0], np.ones(3)]) for side in sides(3)]
    assert "p50 is undecided (" in compare_runs(*still, ["p50", "p99"]).reasons[-1]


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
