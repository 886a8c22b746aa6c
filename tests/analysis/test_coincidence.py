"""Events beside a run: what coincides with its stalls, and what its own times show."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import latencykit as lk
from latencykit.analysis.coincidence import coincide
from tests.benchmarks import truth_events as worlds

DATA = Path(__file__).parents[1] / "data" / "events"
NOON = 1_769_860_800.0  # 2026-01-31T12:00:00Z


# ------------------------------------------------------------ what was recorded together


def requests(name: str) -> lk.Samples:
    return lk.read(DATA / name / "requests.csv.gz")


def test_a_jvm_under_load_and_its_gc_log() -> None:
    """Serial collector, System.gc() about every 7 s, 80 requests/s; recorded together."""
    found = coincide(requests("jvm"), [lk.read_events(DATA / "jvm" / "gc.log")])
    full = found.rows[found.rows.source.str.contains("Pause Full")].iloc[0]
    assert full.significant
    assert full.coincide == full.stalls == len(found.stalls) >= 8
    assert full.expected < 0.3 * full.stalls
    assert full.share_above == 1.0
    assert abs(full.lag) < 50e6
    assert set(found.stalls.suspect) == {full.source}
    assert any("coincides with" in text for text in found.findings)
    assert not any("cause" in text for text in found.findings)


def test_a_log_without_stalls_still_has_slow_requests_that_coincide() -> None:
    log = requests("jvm").to_log("1s")
    found = coincide(log, [lk.read_events(DATA / "jvm" / "gc.log")])
    assert found.rows.significant.any()
    assert found.rows.share_above[0] == 1.0


def test_redis_asleep_and_its_slow_log() -> None:
    found = coincide(requests("redis"), [lk.read_events(DATA / "redis" / "slowlog.txt")])
    row = found.rows.iloc[0]
    assert (row.stalls, row.coincide, row.significant) == (10, 10, True)


def test_a_given_offset_moves_a_wrong_clock() -> None:
    gc = str(DATA / "jvm" / "gc.log")
    wrong = coincide(requests("jvm"), [lk.read_events(f"{gc}@+3s")])
    right = coincide(requests("jvm"), [lk.read_events(gc).shifted(3.0).shifted(-3.0)])
    assert wrong.rows.coincide[0] < right.rows.coincide[0]


# ------------------------------------------------------------ simulated worlds


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in worlds.PLANTED if "37 s, log" not in name])
def test_planted_causes_are_found_and_decoys_are_not(name: str) -> None:
    runs = 2 if name == "nightly job" else 5
    right, causes, wrong = worlds.planted_cell((name, 10, runs))
    assert right >= 0.8 * causes
    assert wrong == 0


@pytest.mark.slow
def test_phases_of_a_period_are_evidence_in_a_log_of_seconds() -> None:
    """Each interval allows any phase within a second, so that not every run can show it."""
    right, causes, wrong = worlds.planted_cell(("GC every 37 s, log of 1 s", 20, 20))
    assert right >= 0.85 * causes
    assert wrong <= 1


@pytest.mark.parametrize("above", ["p99", "99%", 99])
def test_a_number_up_to_100_is_a_percentile_for_events_too(above: str | float) -> None:
    run = worlds.served(np.random.default_rng(1), 100.0, 60.0, [20.0], 0.5)
    assert coincide(run, above=above).threshold == run.percentile(99)
    for nonsense in (-1, float("nan"), "p100", "soon"):
        with pytest.raises(lk.InvalidArgumentError):
            coincide(run, above=nonsense)


@pytest.mark.slow
@pytest.mark.parametrize("name", worlds.NULLS)
def test_without_a_connection_nothing_is_said(name: str) -> None:
    wrong, anything = worlds.null_cell((name, 370.0, "", 10))
    assert wrong + anything <= 2


@pytest.mark.slow
def test_other_periods_loads_and_rhythms_show_nothing_either() -> None:
    """Requests and logs take turns, as do the ways of the stalls."""
    wrong = 0
    for seed in range(18):
        rng = np.random.default_rng([seed, 2027])
        span, rate = rng.choice([300.0, 700.0, 1500.0]), rng.choice([20.0, 60.0, 150.0])
        stalls = (worlds.random, worlds.bursts, worlds.periodic)[seed % 3](rng, span)
        if seed % 3 == 2:
            stalls = worlds.periodic(rng, span, rng.uniform(13.0, 90.0))
        run = worlds.served(rng, rate, span, stalls, rng.uniform(0.2, 1.0))
        flush = np.cumsum(rng.gamma(8.0, rng.uniform(13.0, 60.0) / 8, 400))
        busy = np.sort(np.clip(rng.normal(0.5, 0.15, int(span / 40)), 0, 1)) * span
        sources = [
            worlds.events("gc.log", worlds.periodic(rng, span, rng.uniform(13.0, 90.0)), 0.3),
            worlds.events("flush.log", flush[flush < span], 0.05),
            worlds.events("app.csv", busy),
            *worlds.decoys(rng, span)[1:3],
        ]
        data = run.to_log("1s") if seed % 2 else run
        found = coincide(data, [one for one in sources if len(one)])
        wrong += bool(worlds.files_found(found))
    assert wrong <= 2  # of 18: more has a probability of 6 % at a rate of 5 %


@pytest.mark.slow
def test_two_rhythms_of_one_period_agree_by_chance_as_often_as_their_phases() -> None:
    """Garbage collections every 37.3 s, and stalls every 37.3 s of another cause; requests and logs take turns."""
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        stalls, gc = (worlds.periodic(rng, 600.0, 37.3) for _ in range(2))
        run = worlds.served(rng, 100.0, 600.0, stalls, 0.4)
        data = run.to_log("1s") if seed % 2 else run
        found = coincide(data, [worlds.events("gc.log", gc, 0.4)])
        wrong += bool(worlds.files_found(found))
    assert wrong <= 6  # 5 % of 40; more than 6 has probability 0.003


@pytest.mark.slow
def test_busy_hours_in_common_are_not_a_connection() -> None:
    """Deploys and stalls are both of the day, and have nothing else to do with each other."""
    wrong, day = 0, 86_400.0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        busy = [np.sort(day * rng.beta(10, 10, size)) for size in (25, 100)]
        run = worlds.served(rng, 0.5, day, busy[0], 20 + rng.exponential(40, 25))
        found = coincide(run, [worlds.events("deploys.csv", busy[1], 5.0)])
        wrong += bool(found.rows.significant.any())
    assert wrong <= 1


def test_one_period_leaves_the_phase_as_evidence_and_says_so() -> None:
    rng = np.random.default_rng(5)
    at = np.arange(5.0, 600.0, 37.0)
    data = worlds.served(rng, 100.0, 600.0, at, 0.4).to_log("10s")
    found = coincide(data, [worlds.events("gc.log", at, 0.4)])
    assert not found.rows.significant.any() or found.rows.p[0] > 0.01


def test_a_clock_that_only_counts_up_needs_its_start() -> None:
    world = worlds.gc_random(np.random.default_rng(4), 12)
    gc = world.sources[0]
    uptime = lk.Events("gc.log", "jvm-gc", gc.start - NOON + 500, gc.end - NOON + 500, gc.label)
    unplaced = coincide(world.data, [uptime])
    assert not unplaced.rows.significant.any()
    assert any("gc.log@+10s" in note for note in unplaced.notes)
    assert worlds.files_found(coincide(world.data, [gc])) == {"gc.log"}


def test_what_no_suspect_explains_is_counted() -> None:
    rng = np.random.default_rng(2)
    world = worlds.gc_random(rng, 14)
    alien = np.array([41.0, 111.0, 207.0])
    at = np.concatenate([world.sources[0].start - NOON, alien])
    run = worlds.served(rng, 100.0, float(at.max()) + 20, at, 0.4)
    found = coincide(run, [world.sources[0]])
    left = int((found.stalls.suspect == "").sum())
    assert 2 <= left <= 4
    assert f"no suspect explains {left} of {len(found.stalls)} stalls" in found.findings


# ------------------------------------------------------------ the run's own evidence


def test_a_rhythm_is_found_and_placed_on_the_clock() -> None:
    rng = np.random.default_rng(1)
    run = worlds.served(rng, 50.0, 1200.0, np.arange(5.0, 1200.0, 60.0), 0.5)
    (finding,) = coincide(run).findings
    assert "about every 1 min" in finding.replace("60 s", "1 min")
    assert "after the full minute" in finding


def test_a_period_that_is_nearly_a_minute_is_not_placed_on_the_clock() -> None:
    rng = np.random.default_rng(1)
    run = worlds.served(rng, 50.0, 1500.0, np.arange(5.0, 1500.0, 59.7), 0.5)
    (finding,) = coincide(run).findings
    assert "about every 59.7 s" in finding
    assert "full minute" not in finding


def test_the_time_of_day_is_found_over_days() -> None:
    rng = np.random.default_rng(6)
    world = worlds.nightly(rng, 5)
    findings = coincide(world.data).findings
    assert any("of each day (5 days" in text for text in findings)
    quiet = worlds.served(rng, 1.0, 5 * 86_400.0, rng.random(40) * 5 * 86_400, 5.0).to_log("1min")
    assert not any("each day" in text for text in coincide(quiet).findings)


def test_a_warm_up_is_found() -> None:
    rng = np.random.default_rng(9)
    start = np.sort(rng.random(30_000)) * 600
    took = rng.lognormal(0, 0.5, start.size) * np.where(start < 60, 3e6, 1e6)
    run = lk.Samples(start=start * 1e9, duration=took)
    (finding,) = [text for text in coincide(run).findings if "warm-up" in text]
    assert finding.startswith(("the first 1 min", "the first 60 s"))
    (again,) = coincide(run.to_log("1s")).findings
    assert again.split(" (")[0] == finding.split(" (")[0]
    late = np.where(start > 570, 3 * took, took)  # as slow at its end
    again = lk.Samples(start=start * 1e9, duration=late)
    assert not any("warm-up" in text for text in coincide(again).findings)


def test_requests_after_idle_times_are_found() -> None:
    rng = np.random.default_rng(10)
    bursts = np.cumsum(rng.exponential(10.0, 60)) + 5
    start = np.sort((bursts[:, None] + np.arange(40) * 0.02).ravel())
    first = np.concatenate(([True], np.diff(start) > 1.0))
    took = rng.lognormal(0, 0.3, start.size) * np.where(first, 30e6, 1e6)
    run = lk.Samples(start=start * 1e9, duration=took)
    assert any("after an idle time" in text for text in coincide(run).findings)
    shuffled = lk.Samples(start=start * 1e9, duration=rng.permutation(took))
    assert not any("idle" in text for text in coincide(shuffled).findings)


# ------------------------------------------------------------ the result


def test_data_without_time_say_so() -> None:
    with pytest.raises(lk.DataNotAvailableError, match="when requests were sent"):
        coincide(lk.Samples(duration=[1, 2, 3]))


def test_little_data_are_not_evidence() -> None:
    for run in (
        lk.Samples(start=[NOON * 1e9], duration=[5]),
        lk.Samples(start=np.arange(50) + NOON * 1e9, duration=np.full(50, 5)),
        lk.Samples(start=np.arange(50) * 1e9, duration=np.zeros(50)),
    ):
        found = coincide(run, [worlds.events("x.csv", [0.0, 0.1, 0.2], 0.01)])
        assert found.findings == ()
        assert len(found.rows) == 1


def test_thresholds_are_percentiles_or_latencies() -> None:
    run = worlds.served(np.random.default_rng(1), 100.0, 60.0, [20.0], 1.0)
    assert coincide(run, above="20ms").threshold == 20e6
    assert coincide(run, above=5e6).threshold == 5e6
    assert coincide(run, above="p90").threshold == run.percentile(90)
    with pytest.raises(lk.InvalidArgumentError):
        coincide(run, above=-1)


def test_where_many_are_as_slow_as_the_slowest_these_are_the_slow_ones() -> None:
    world = worlds.gc_random(np.random.default_rng(3), 20)
    one, other = (coincide(world.data, world.sources) for _ in range(2))
    assert one == other == pickle.loads(pickle.dumps(one))
    capped = np.minimum(world.data.duration, np.quantile(world.data.duration, 0.98))
    run = lk.Samples(start=world.data.start, duration=capped)
    assert worlds.files_found(coincide(run, world.sources)) == world.causes


def test_one_name_twice_stays_two_sources() -> None:
    run = worlds.served(np.random.default_rng(1), 100.0, 60.0, [20.0], 1.0)
    gc = worlds.events("gc.log", [20.0], 1.0)
    assert coincide(run, [gc, gc]).rows.source.tolist() == ["gc.log", "gc.log (2)"]


def test_explained_stalls_have_the_colour_of_their_lane() -> None:
    found = coincide(requests("jvm"), [lk.read_events(DATA / "jvm" / "gc.log")])
    page = lk.plot.coincidence(found, ax=Figure(figsize=(10, 5)).add_subplot())
    timeline, lanes = page.child_axes
    (lane,) = lanes.collections
    colour = tuple(lane.get_facecolor()[0][:3])
    spans = [patch for patch in timeline.patches if patch.get_alpha() == 0.3]
    assert len(spans) == len(found.stalls)
    assert {tuple(span.get_facecolor()[:3]) for span in spans} == {colour}
    plain = lk.plot.coincidence(coincide(requests("jvm")), ax=Figure().add_subplot())
    assert len(plain.child_axes) == 1
