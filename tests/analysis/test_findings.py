"""What a summary remarks on: drifts, piles, timeouts, incidents and modes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy
from click.testing import CliRunner

import latencykit as lk
from latencykit.analysis.modes import find_modes
from latencykit.analysis.slow_times import Incident, _with_rest
from latencykit.analysis.timeouts import suspected_timeout
from latencykit.cli import cli
from latencykit.views.series import series_record
from latencykit.views.summary import headline, summary_text
from tests.conftest import log_of_values


def drift(evidence: Any) -> Any:
    """The drift of p99, or else of the median."""
    return next((one for one in reversed(evidence.jackknife.drifts) if one is not None), None)


def ar(n: int, rho: float, spread: float, rng: np.random.Generator) -> np.ndarray:
    """A median per second whose logarithm is correlated from second to second."""
    steps = rng.standard_normal(n) * np.sqrt(1 - rho * rho)
    steps[0] = rng.standard_normal()
    for k in range(1, n):
        steps[k] += rho * steps[k - 1]
    return np.exp(spread * steps)


def log_of(median: np.ndarray, rng: np.random.Generator, rate: int = 60) -> lk.HistogramLog:
    counts = rng.poisson(rate, median.size).astype(np.intp)
    second = np.repeat(np.arange(median.size), counts)
    start = np.sort(second + rng.random(second.size))
    took = 1e6 * np.repeat(median, counts) * np.exp(0.6 * rng.standard_normal(second.size))
    return lk.Samples(start=start * 1e9, duration=took).to_log("1s")


def stalls(n: int, share: float, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(n) < share, rng.uniform(10, 1000, n), 1.0)


STEADY = {
    "independent": lambda rng: np.ones(100),
    "correlated over ten seconds": lambda rng: ar(240, 0.9, 0.3, rng),
    "correlated over half a minute": lambda rng: ar(400, 0.97, 0.3, rng),
    "rare stalls": lambda rng: stalls(200, 0.01, rng),
    "many stalls": lambda rng: stalls(200, 0.05, rng),
    "one stall": lambda rng: np.where(np.arange(120) // 8 == 13, 300.0, 1.0),
    "one batch, perhaps at the end": lambda rng: np.where(
        (np.arange(400) - rng.integers(395)) // 5 == 0, 9.0, 1.0
    ),
    "a short run, correlated over half a minute": lambda rng: ar(64, 0.9, 0.5, rng),
    "correlated over a sixth of the run": lambda rng: ar(600, 0.99, 0.3, rng),
    "correlated over a third of the run": lambda rng: ar(600, 0.995, 0.6, rng),
    "two regimes": lambda rng: np.where(np.cumsum(rng.random(300) < 0.15) % 2 == 1, 3.0, 1.0),
}
DRIFTING = {
    "step": lambda: np.where(np.arange(200) < 100, 1, 1.4),
    "step at two fifths": lambda: np.where(np.arange(200) < 80, 1, 1.6),
    "step at a quarter": lambda: np.where(np.arange(200) < 50, 1, 2),
    "ramp": lambda: np.linspace(1, 1.6, 200),
    "it gets faster": lambda: np.linspace(3, 1, 64),
}


@pytest.mark.slow
@pytest.mark.parametrize("world", STEADY)
def test_steady_runs_are_not_said_to_drift(world):
    found = [
        drift(log_of(STEADY[world](rng), rng, 30).evidence())
        for rng in map(np.random.default_rng, range(50))
    ]
    assert sum(one is not None for one in found) <= 1  # a rate of 10 % passes once in thirty times


@pytest.mark.parametrize("world", DRIFTING)
def test_a_drift_is_found_with_its_size(world):
    rng = np.random.default_rng(3)
    log = log_of(DRIFTING[world](), rng)
    found = drift(log.evidence())
    assert found is not None
    end = len(log) // 2
    halves = [log[:end].percentile(found.percentile), log[end:].percentile(found.percentile)]
    assert [found.first, found.second] == pytest.approx(halves, rel=0.03)
    (text, *_) = series_record("run", log)["findings"]
    assert text.startswith(f"the run is not steady: p{found.percentile:g} is about ")


@pytest.mark.parametrize("where", [0, 195])
def test_one_batch_at_an_end_is_not_drift(where):
    rng = np.random.default_rng(11)
    log = log_of(np.where((np.arange(200) - where) // 5 == 0, 9.0, 1.0), rng)
    assert drift(log.evidence()) is None


def latencies(rng: np.random.Generator, n: int = 5000, median: float = 0.05) -> np.ndarray:
    return median * np.exp(rng.standard_normal(n))


TIMEOUTS = {
    "thirty seconds": (lambda rng: np.r_[latencies(rng), np.full(20, 30.0)], 30.0, 20),
    "a little late": (lambda rng: np.r_[latencies(rng), 30 + rng.uniform(0, 0.02, 25)], 30.0, 25),
    "of a busy tail": (lambda rng: np.minimum(latencies(rng, 20000, 0.3), 5), 5.0, None),
    "clock of a millisecond": (
        lambda rng: np.round(np.minimum(latencies(rng, 20000, 0.1), 1), 3), 1.0, None,
    ),
}  # fmt: skip
OTHERS = {
    "heavy tail": lambda rng: 0.01 * (1 + rng.pareto(1.2, 20000)),
    "clock of a second": lambda rng: np.round(np.exp(rng.normal(1, 1, 20000))).clip(0, 30),
    "clock of a hundredth": lambda rng: np.round(rng.gamma(3, 0.01, 20000), 2).clip(0, 0.1),
    "a second on purpose": lambda rng: 1 + rng.uniform(0, 1e-3, 5000),
    "even up to ten": lambda rng: rng.uniform(0, 10, 20000),
    "no round time": lambda rng: np.r_[latencies(rng), np.full(50, 17.3)],
    "four of them": lambda rng: np.r_[latencies(rng), np.full(4, 30.0)],
    "most at a second": lambda rng: np.where(rng.random(5000) < 0.6, 1.0, latencies(rng)[:5000]),
    "not the maximum": lambda rng: np.r_[latencies(rng), np.full(50, 30.0), 41.0],
}


@pytest.mark.parametrize("digits", [2, 3])
@pytest.mark.parametrize("world", TIMEOUTS)
def test_many_requests_at_a_round_maximum_are_a_question(world, digits):
    draw, timeout, number = TIMEOUTS[world]
    values = draw(np.random.default_rng(1))
    expected = int((values >= timeout).sum()) if number is None else number
    assert suspected_timeout(lk.Histogram.of(values, digits=digits, unit="s")) == (
        pytest.approx(timeout), pytest.approx(expected, rel=0.05),
    )  # fmt: skip


@pytest.mark.parametrize("digits", [1, 2, 3])
@pytest.mark.parametrize("world", OTHERS)
def test_others_are_not(world, digits):
    values = OTHERS[world](np.random.default_rng(1))
    assert suspected_timeout(lk.Histogram.of(values, digits=digits, unit="s")) is None


def test_no_tail_of_any_shape_looks_like_a_timeout():
    rng = np.random.default_rng(8)
    for _ in range(200):
        values = np.exp(rng.normal(rng.uniform(-5, 1), rng.uniform(0.2, 1.5), 5000))
        rounded = np.round(values, rng.integers(0, 4)) + 1e-3
        even = rng.uniform(0, rng.choice([1, 2, 5, 10, 30]), 5000)
        for one in (values, rounded, even):
            assert suspected_timeout(lk.Histogram.of(one, unit="s")) is None


def test_summary_says_both_below_the_table_and_in_json(tmp_path):
    rng = np.random.default_rng(5)
    log = log_of(np.repeat([1.0, 3.0], 100), rng)
    late = lk.Samples(start=rng.uniform(0, 199e9, 30), duration=np.full(30, 2_000_000_000))
    path = tmp_path / "run.hlog"
    lk.write(log + late.to_log("1s"), path)
    text = CliRunner().invoke(cli, ["summary", str(path)]).output
    assert "the run is not steady: p50 is about 1 ms in the first half, about 3 ms in the" in text
    assert "a timeout?" not in text  # one line per series, the most important one
    text = CliRunner().invoke(cli, ["summary", str(path), "--notes"]).output
    assert "took 2 s, the maximum: a timeout?" in text
    record = json.loads(CliRunner().invoke(cli, ["summary", str(path), "--format", "json"]).stdout)
    assert len(record["series"][0]["findings"]) == 2


def test_latencies_that_a_recorder_clips_are_not_called_short(tmp_path):
    """Stalls of a second, of which the highest value that is tracked leaves a twentieth."""
    rng = np.random.default_rng(6)
    start = np.sort(rng.random(30_000)) * 300
    took = 2e-3 * np.exp(0.5 * rng.standard_normal(start.size))
    for at in range(10, 290, 20):
        within = (start > at) & (start < at + 1)
        took[within] = at + 1 - start[within]
    path = tmp_path / "run.hlog"
    for highest in (0.05, 0.1):
        clipped = lk.Samples(start=start * 1e9, duration=np.minimum(took, highest) * 1e9)
        lk.write(clipped.to_log("1s"), path)
        found = lk.diagnose(lk.read(path, unit="ns"))
        assert "clipped" in found.findings
        assert "highest value that the recorder tracks" in found.summary
        assert "would have shown" not in found.advice
        words = ["check", str(path), "--unit", "ns", "--slo", f"99={1.5 * highest}s"]
        output = CliRunner().invoke(cli, words).output
        assert "unknown" in output
        assert "met" not in output.split()


@pytest.mark.filterwarnings("error")
def test_requests_that_began_at_once_are_judged_as_without_times(run, tmp_path):
    took = latencies(np.random.default_rng(2), 2000) * 1e9
    at_once = lk.Samples(start=np.full(2000, 5 * 10**9), duration=took)
    ranges = at_once.percentiles([50, 99], confidence=0.95)
    assert ranges.equals(lk.Samples(duration=took).percentiles([50, 99], confidence=0.95))
    assert lk.diagnose(at_once).verdict == "unknown"
    path = tmp_path / "calls.csv"
    path.write_text("start_s,duration_ns\n" + "".join(f"5,{ns:.0f}\n" for ns in took))
    assert "intervals of" not in run("summary", path)[1]


def test_summary_of_many_series_counts_those_with_findings(tmp_path):
    rng = np.random.default_rng(1)
    paths = [tmp_path / f"{k}.txt" for k in range(8)]
    for k, path in enumerate(paths):
        np.savetxt(path, np.r_[rng.exponential(0.1, 2000), np.full(20 * (k < 2), 30.0)])
    arguments = ["summary", "--unit", "s", *map(str, paths)]
    text = CliRunner().invoke(cli, arguments).output
    (line,) = [line for line in text.splitlines() if "a timeout?" in line]
    assert line.startswith("0.txt, 1.txt: ")
    assert "a timeout?" in CliRunner().invoke(cli, arguments[:6]).output


def test_a_mean_far_above_p9999_is_an_alarm(run, tmp_path):
    closed = np.r_[np.full(10_000, 0.001), 100.0]  # the tool waited for the one slow answer
    path = tmp_path / "closed.txt"
    np.savetxt(path, closed)
    text = run("summary", "--unit", "s", "--notes", path)[1]
    said = "mean (11 ms) is above p99.99 (1 ms): most of the time went into"
    assert said in " ".join(text.split())
    np.savetxt(path, np.r_[np.full(10_000, 0.001), 0.1])  # above, but with a small part of the time
    assert "is above p99.99" not in run("summary", "--unit", "s", "--notes", path)[1]


def test_a_maximum_above_the_last_bucket_is_a_lower_bound() -> None:
    whole = lk.Histogram.from_buckets([0, 10], [10, 20], [50, 50])
    beyond = lk.Histogram.from_buckets([0, 10], [10, 20], [50, 50], censored=3, censored_at=20.0)
    late = beyond.with_run(timeouts=3)
    for data, text in ((whole, "10–20 ns"), (beyond, "≥ 20 ns"), (late, "≥ 20 ns")):
        assert series_record("", data)["max_is_lower_bound"] is ("≥" in text)
        assert f", max {text}" in headline(data)


def test_a_doubt_stands_beside_the_modes_and_hides_nothing(tmp_path):
    rng = np.random.default_rng(1)
    values = rng.lognormal(0, 0.1, 20_000) * np.repeat([1, 20], [18_000, 2_000])
    path = tmp_path / "values.csv"
    path.write_text("latency_ms\n" + "\n".join(f"{value:.4f}" for value in values))
    *_, doubt, modes = summary_text([series_record("values", lk.read(path))]).splitlines()
    assert doubt == "the last line has no newline; its number may be incomplete"
    assert modes == "2 modes: 90 % around 1 ms, 10 % around 20 ms"


def test_an_incident_of_a_log_takes_the_intervals_that_it_touches() -> None:
    log = log_of_values([[k + 1.0] * 9 for k in range(8)])
    found = _with_rest(Incident(3.5, 5.0, 9, 9), log)
    rest = lk.merge([log[k] for k in (0, 1, 2, 6, 7)]).histogram()
    values = {p: (value, without) for p, value, without in found.without}
    for p in (50.0, 75.0, 99.0):
        assert values[p] == (log.histogram().percentile(p), rest.percentile(p))


# ---------------------------------------------------------------- modes


def lognormal(rng, count):
    return rng.lognormal(14, rng.uniform(0.1, 2), count)


def pareto(rng, count):
    return 1e6 * (1 + rng.pareto(rng.uniform(1, 3), count))


def stepped(rng, count):
    step = 10 ** rng.uniform(3, 6)
    return step * np.maximum(np.rint(rng.lognormal(14, rng.uniform(0.1, 1.5), count) / step), 1)


@pytest.mark.slow
@pytest.mark.parametrize("world", [lognormal, pareto, stepped])
def test_one_mode_is_one(world):
    rng = np.random.default_rng(2)
    for _ in range(100):
        values = world(rng, int(10 ** rng.uniform(2.5, 5)))
        assert len(find_modes(lk.Histogram.of(values))) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weight", "ratio", "spread"), [(0.02, 2, 0.1), (0.1, 2, 0.1), (0.02, 3, 0.15), (0.5, 20, 0.3)]
)
def test_two_modes_are_two(weight, ratio, spread):
    rng, found = np.random.default_rng(3), 0
    for _ in range(40):
        values = rng.lognormal(14, spread, 10_000)
        values[rng.random(values.size) < weight] *= ratio
        modes = find_modes(lk.Histogram.of(values))
        found += len(modes) == 2
        if len(modes) == 2:
            assert modes[1].share == pytest.approx(weight, rel=0.4)
            assert modes[1].value / modes[0].value == pytest.approx(ratio, rel=0.1)
    assert found >= 36


def _timed(values):
    start = np.arange(values.size) * 5_000_000
    return lk.Samples(start=start, duration=values.astype(np.int64))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3, 10, 60])
def test_a_drift_has_no_modes(seconds):
    """AR(1) over 120 s at 200 requests per second, with a noise of 2 %."""
    named = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        kept = np.exp(-1 / (200 * seconds))
        steps = rng.normal(0, np.sqrt(1 - kept**2), 24_000)
        level = scipy.signal.lfilter([1], [1, -kept], np.append(rng.normal(), steps))[1:]
        data = _timed(np.exp(14 + 0.3 * level + 0.02 * rng.normal(size=24_000)))
        named += len(find_modes(data.histogram(), data.evidence())) > 1
    assert named == 0


@pytest.mark.slow
def test_modes_of_requests_with_times_are_found():
    rng, found = np.random.default_rng(3), 0
    for _ in range(40):
        values = rng.lognormal(14, 0.1, 10_000)
        values[rng.random(values.size) < 0.02] *= 2
        data = _timed(values)
        found += len(find_modes(data.histogram(), data.evidence())) == 2
    assert found >= 36


@pytest.mark.slow
def test_two_constants_and_wide_buckets():
    assert find_modes(lk.Histogram.of([1e6] * 900 + [20e6] * 100))[1].share == 0.1
    wide = lk.Histogram.from_buckets([1e6, 5e6, 25e6], [5e6, 25e6, 125e6], [90, 1, 60])
    assert find_modes(wide) == []
