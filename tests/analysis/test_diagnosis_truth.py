"""A diagnosis is never clean of a loop that waited, never omits of an honest run.

The worlds are the benchmark's (`tests.benchmarks.truth_diagnosis`), a few seeds of each.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

import latencykit as lk
from latencykit import simulate
from latencykit.analysis.facts import facts_of
from latencykit.analysis.omission import stalls_of
from latencykit.analysis.period import period_of
from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES
from latencykit.simulate import Server, Stall, catch_up_loop, exponential, paced_loop
from tests.benchmarks.truth_diagnosis import (
    HONEST,
    closed_world,
    data_types,
    honest_world,
    one_queue,
)

if TYPE_CHECKING:
    from pathlib import Path

LOOPS = [
    ("catch-up", 50, 500.0, "bimodal"),
    ("catch-up", 20, 200.0, "bimodal"),
    ("paced", 100, 500.0, "bimodal"),
    ("paced", 50, 500.0, "lognormal"),
    ("grid", 64, 800.0, "bimodal"),
    ("batch", 20, 200.0, "exponential"),
    ("full speed", 8, 1200.0, "lognormal"),
]


def bare(start: np.ndarray, took: np.ndarray, **known: object) -> lk.Samples:
    """Seconds as samples of an unknown tool."""
    order = np.argsort(start, kind="stable")
    return lk.Samples(
        start=start[order] * 1e9, duration=took[order] * 1e9, run=Run(measure="service", **known)
    )


def frozen(sent: np.ndarray, begin: float, end: float, work: float = 2e-3) -> np.ndarray:
    """How long requests take of a server that is stopped for a while."""
    return np.where((sent < end) & (sent + work > begin), np.maximum(end - sent, 0) + work, work)


@pytest.mark.slow
@pytest.mark.parametrize("cell", LOOPS, ids=lambda cell: f"{cell[0]} {cell[1]}")
@pytest.mark.parametrize("steps", [1.5, 3, 6, 10])
def test_a_loop_that_waited_is_never_clean(cell: tuple[str, int, float, str], steps: float) -> None:
    world = closed_world(cell, steps, seed=5)
    for form, data, known in data_types(world):
        assert lk.diagnose(data, **known).verdict != "clean", form
        if world.material and steps >= 3:
            assert lk.diagnose(data, **known).verdict != "no stall", form


@pytest.mark.parametrize(
    "cell",
    [*LOOPS, ("think time", 40, 300.0, "lognormal")],
    ids=lambda cell: f"{cell[0]} {cell[1]}",
)
def test_long_stalls_of_a_loop_that_waited_are_found(cell: tuple[str, int, float, str]) -> None:
    samples = next(
        data for form, data, _ in data_types(closed_world(cell, 30, seed=4)) if form == "samples"
    )
    found = lk.diagnose(samples)
    assert found.verdict == "omits"
    missing = int(found.stalls["missing"].sum())
    assert float(found.left.omitted.sum()) == pytest.approx(missing, rel=0.05)
    assert ("sent late" if cell[0] == "catch-up" else "are missing") in found.sentences[1]


def test_a_run_shows_whether_its_loop_ran_at_full_speed():
    server = Server(simulate.lognormal("10ms", 0.3), servers=64)
    closed = simulate.closed_loop(server, 200, connections=8)
    schedules = [arrive(len(closed) / 200, 200) for arrive in (simulate.poisson, simulate.fixed)]
    runs = closed, *(simulate.open_loop(server, times, duration=200) for times in schedules)
    for forms in (runs, [run.to_log("1s") for run in runs]):
        loops = [facts_of(form.with_run(loop=None)).at_full_speed for form in forms]
        assert loops == [True, False, False]


def test_alike_requests_of_one_connection_at_full_speed_are_timers() -> None:
    took = np.random.default_rng(1).lognormal(16, 0.3, 5000)
    took[500::1500] = 1e9 + took[:3] / 100
    start = np.append(0.0, np.cumsum(took)[:-1])
    assert lk.diagnose(lk.Samples(start=start, duration=took)).verdict == "service times"


RARE = (
    "deploy, one slow request", "lull, one slow request", "clock set forward",
    "clock set forward, one in flight", "taken out by a balancer",
)  # fmt: skip
"""Worlds that leave what omission leaves: their explanations remain beside it, by their priors."""


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_the_honest_are_not_accused(name: str) -> None:
    accused = []
    for seed in range(3):
        for form, data, known in data_types(honest_world(name, seed)):
            found = lk.diagnose(data, **known)
            if found.verdict == "omits":
                accused.append((seed, form))
                assert "not excluded" in found.sentences[2] or not found.left.timed, accused
    assert not accused or name in RARE, accused  # of 36


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loop", "mean", "connections", "rate"),
    [*product([paced_loop, catch_up_loop], ["1ms"], [1, 4, 16], [100]),
     (paced_loop, "80ms", 1, 8), (paced_loop, "80ms", 8, 50)],
)  # fmt: skip
def test_a_loop_that_waited_is_found(loop, mean: str, connections: int, rate: float) -> None:
    stall = Stall(12.007, 20 * connections / rate)
    server = Server(exponential(mean), servers=64, stalls=[stall])
    runs = [loop(server, rate, 60, connections=connections, seed=seed) for seed in range(12)]
    verdicts = [lk.diagnose(bare(run.start / 1e9, run.duration / 1e9)).verdict for run in runs]
    # of a single connection, a request of 31 times the mean may be the service's own, and a clock
    # set forward may leave the same
    assert verdicts.count("omits") >= (12 if connections > 1 else 6 if mean == "80ms" else 10)
    assert set(verdicts) <= {"omits", "unknown"}


def test_a_tenth_of_the_sends_does_not_lack_by_chance() -> None:
    hits, misses = (simulate.lognormal(median, 0.4) for median in ("1ms", "12ms"))
    server = Server(simulate.mixture((0.8, hits), (0.2, misses)), servers=8)
    run = paced_loop(server, 800, 40, connections=8, seed=1)
    assert lk.diagnose(bare(run.start / 1e9, run.duration / 1e9)).verdict != "clean"


def test_many_short_omissions_do_not_add_up_to_an_honest_histogram() -> None:
    rng = np.random.default_rng(1)
    work = rng.lognormal(np.log(1e6), 0.3, 60_000)
    # 50 connections in three stalls: as many as one stall leaves, but all near the top
    late = np.repeat(0.5e9, 50 * 3) * rng.uniform(0.9, 1.0, 150)
    histogram = lk.Histogram.of(np.concatenate((work, late)).astype(np.int64))
    assert lk.diagnose(histogram, rate=500, duration="120s").verdict == "unknown"
    once = lk.Histogram.of(
        np.concatenate((work, 0.5e9 * (np.arange(250) + 0.5) / 250)).astype(np.int64)
    )
    assert lk.diagnose(once, rate=once.count / 120, duration="120s").verdict == "clean"
    assert lk.diagnose(once, rate=600, duration="120s").verdict == "unknown", (
        "an honest phase does not clear one that omitted requests"
    )


# ---------------------------------------------------------------- one witness is not enough


def test_a_clock_set_forward_with_one_request_in_flight(tmp_path: Path) -> None:
    sent = np.arange(3000) / 100
    took = np.random.default_rng(2).exponential(1e-3, sent.size)
    at = sent[1550] + took[1550] / 2
    start, end = sent + 5.0 * (sent > at), sent + took + 5.0 * (sent + took > at)
    found = lk.diagnose(bare(start, end - start))
    assert "a clock that was set forward" in " ".join(found.sentences)
    # a logger that runs meanwhile writes one long interval
    lk.write(bare(sent, end - start).to_log("1s"), path := tmp_path / "step.hlog")
    rows = [line.split(",") for line in path.read_text().splitlines()]
    stepped = []
    for fields in rows:
        if len(fields) == 4 and fields[0][0].isdigit():
            first = float(fields[0])
            fields[0] = f"{first + 5.0 * (first > at):.3f}"
            fields[1] = f"{float(fields[1]) + 5.0 * (first < at < first + 1):.3f}"
        stepped.append(",".join(fields))
    path.write_text("\n".join(stepped) + "\n")
    log = lk.read(path)
    assert log.lengths.max() == 6.0
    assert lk.diagnose(log).verdict == "unknown"


@pytest.mark.parametrize("form", ["samples", "histogram"])
def test_nothing_is_due_while_the_last_reply_is_awaited(form: str) -> None:
    sent = np.arange(1200) / 100
    samples = bare(sent, frozen(sent, 9.0, 14.0)).with_run(
        loop="open", corrected="schedule", rate=100, duration=14.002, measure="response"
    )
    assert lk.diagnose(samples if form == "samples" else samples.histogram()).verdict == "clean"


def test_percentiles_without_support_do_not_withhold_a_verdict() -> None:
    took = np.full(3190, 1.6e-3)
    took[:31] = np.linspace(1.8e-3, 3.1e-3, 31)
    took[:3] = [27.7e-3, 14.5e-3, 14.5e-3]
    known = {"loop": "closed", "corrected": "none", "tool": "hey", "duration": 8.01}
    histogram = bare(np.arange(3190) / 398, took).histogram().with_run(**known)
    found = lk.diagnose(histogram)
    assert found.verdict == "service times"
    assert max(found.most) == 99.0, "three requests do not bound p99.9"


@pytest.mark.parametrize("back", [0.0, 1e-3, 0.2])
def test_a_node_that_a_balancer_takes_out(back: float) -> None:
    rng = np.random.default_rng(3)
    sent = np.sort(rng.uniform(0, 30, 9000))
    took = frozen(sent, 12.0, 17.0)
    kept = (sent < 12.1) | (sent > 17.0 + back)
    samples = bare(sent[kept], took[kept])
    for data in (samples, samples.to_log("1s"), samples.to_log("100ms")):
        left = dict(lk.diagnose(data.with_run(tool="nginx", format="access-log")).explanations)
        assert left["node taken out"] > 0.01, data


def test_refusals_while_frozen_give_one_answer_for_one_run() -> None:
    sent = np.arange(6000) / 200
    took = frozen(sent, 10.0, 14.0)
    inside = (sent >= 10.0) & (sent < 14.0)
    refused = inside & (np.cumsum(inside) > 16)
    outcome = np.where(refused, OUTCOMES.index("error"), 0).astype(np.int8)
    kept = bare(sent, np.where(refused, 2e-4, took))
    samples = lk.Samples(start=kept.start, duration=kept.duration, outcome=outcome, run=kept.run)
    for data in (samples, samples.to_log("1s"), samples.to_log("100ms"), samples.histogram()):
        found = lk.diagnose(data, rate=200, duration="30s")
        assert (found.verdict, "failed-in-stalls" in found.findings) == ("unknown", True), data
    errors = np.where(np.arange(6000) % 50, 0, OUTCOMES.index("error")).astype(np.int8)
    evenly = lk.Samples(start=1e9 * sent, duration=1e9 * took, outcome=errors)  # 16 in the stall
    assert lk.diagnose(evenly).verdict == "clean"
    without = lk.diagnose(samples.to_log("1s").with_run(failed=0))
    assert without.verdict == "omits", (
        "the same counts with nothing that failed are those of sixteen connections that waited"
    )


def test_a_lull_with_one_slow_request() -> None:
    rng = np.random.default_rng(4)
    sent = np.sort(rng.uniform(0, 30, 6000))
    kept = (sent < 12) | (sent > 15)
    took = np.full(sent.size, 2e-3)
    took[np.flatnonzero(sent < 12)[-1]] = 3.0
    users = bare(sent[kept], took[kept])
    assert dict(lk.diagnose(users).explanations)["paused"] > 0.001
    log = lk.diagnose(users.with_run(tool="nginx", format="access-log"))
    assert log.verdict == "unknown"
    assert "traffic that paused for another reason" in log.sentences[-1]


# ---------------------------------------------------------------- stalls


NO_STALLS = {  # seconds, requests, how long a share of them takes, and which share
    "three of thousands": (10, 100_000, lambda rng, n: rng.uniform(0.4, 2.0, n), 3e-5),
    "a slow mode": (30, 60_000, lambda rng, n: rng.gamma(20, 2e-3, n), 0.05),
    "some that outlast the run": (20, 8000, lambda rng, n: rng.uniform(0.2, 3, n), 0.02),
}


@pytest.mark.parametrize("world", NO_STALLS)
def test_slow_requests_are_not_a_stall(world: str) -> None:
    seconds, number, slow, share = NO_STALLS[world]
    rng = np.random.default_rng(5)
    sent = np.sort(rng.uniform(0, seconds, number))
    took = rng.lognormal(np.log(1e-3), 0.4, number)
    late = rng.choice(number, int(share * number), replace=False)
    took[late] = slow(rng, late.size)
    samples = bare(sent, took)
    for data in (samples, samples.to_log("1s"), samples.to_log("100ms")):
        found = lk.find_stalls(data)
        assert len(found) == 0
    if world == "three of thousands":
        assert "not a stall" in lk.find_stalls(samples.to_log("1s")).attrs["notes"][0]


@pytest.mark.parametrize("form", ["samples", "1s", "100ms"])
def test_a_warm_up_is_named_and_a_freeze_at_the_begin_is_a_stall(form: str) -> None:
    sent = np.arange(12_000) / 400
    warm = bare(sent, 2e-3 + 0.6 * np.exp(-sent))
    cold = bare(sent, frozen(sent, 0.0, 2.0))
    found, stalled = (one if form == "samples" else one.to_log(form) for one in (warm, cold))
    assert len(lk.find_stalls(found)) == 0
    assert any(note.startswith("warm-up") for note in lk.find_stalls(found).attrs["notes"])
    assert lk.find_stalls(stalled)["duration"].tolist() == pytest.approx([2.0], rel=0.05)


def test_a_backlog_that_drains_is_part_of_its_stall_in_a_log_too() -> None:
    rng = np.random.default_rng(8)
    sent = np.sort(rng.uniform(0, 40, 8000))
    end = one_queue(sent, np.full(sent.size, 3e-3), [(20.0, 22.0)])
    for interval in ("1s", "100ms"):
        found = lk.find_stalls(bare(sent, end - sent).to_log(interval))
        assert found["duration"].tolist() == pytest.approx([2.0], rel=0.05)
        assert found["missing"].sum() == 0


def test_what_chance_leaves_out_is_not_missing() -> None:
    rng = np.random.default_rng(9)
    sent = np.sort(rng.uniform(0, 30, 9000))
    samples = bare(sent, frozen(sent, 10.0, 13.0))
    for data in (samples, samples.to_log("1s"), samples.to_log("100ms")):
        found = lk.diagnose(data)
        assert (found.verdict, found.stalls["missing"].tolist()) == ("clean", [0]), found
    # Slow requests of two connections overlap.
    took = np.where(rng.random((2, 6000)) < 0.003, 1.0, 0.01 * rng.lognormal(0, 0.3, (2, 6000)))
    sent = took.cumsum(axis=1) - took
    assert lk.diagnose(bare(sent.ravel(), took.ravel())).verdict != "omits"


def test_a_period_takes_more_than_two_of_itself() -> None:
    rng = np.random.default_rng(10)
    three = np.sort(
        np.concatenate([centre + rng.normal(0, 1, 12) for centre in (50.0, 350.0, 650.0)])
    )
    assert period_of(three, 700.0) is None
    assert period_of(np.arange(10) * 300.0 + rng.normal(0, 3, 10), 3000.0).seconds == pytest.approx(
        300, rel=0.02
    )


@pytest.mark.slow
def test_as_many_stalls_as_one_likes_cost_no_more_than_their_number() -> None:
    begin = np.arange(3000) * 1.0 + 0.5
    sent = np.arange(300_000) / 100
    late = (sent % 1 >= 0.5) & (sent % 1 < 0.7)
    took = np.where(late, np.floor(sent) + 0.7 - sent, 0) + 1e-3
    found = stalls_of(bare(sent, took))
    assert len(found) == begin.size
    assert np.abs(found.start - begin).max() < 0.02
    assert found.worst / 1e9 == pytest.approx(np.full(begin.size, 0.201), abs=0.011)


def test_the_worst_request_of_each_stall() -> None:
    rng = np.random.default_rng(11)
    sent = np.sort(rng.uniform(0, 60, 12_000))
    edges = [(5, 5.5), (12, 14), (30, 30.4), (31, 33), (50, 51)]
    took = np.full(sent.size, 1e-3)
    for begin, end in edges:
        took = np.maximum(took, np.where((sent >= begin) & (sent < end), end - sent + 1e-3, 0))
    took[np.searchsorted(sent, 4.0)] = 40.0  # under way across the first four
    found = stalls_of(bare(sent, took))
    by_hand = [
        took[(sent <= b) & (sent + took >= a)].max()
        for a, b in zip(found.start, found.end, strict=True)
    ]
    assert len(found) == len(edges)
    assert found.worst / 1e9 == pytest.approx(by_hand)


def test_what_was_due_where_connections_send_in_herds_or_the_load_grows() -> None:
    rng = np.random.default_rng(1)
    sent = np.append(np.arange(0, 10.25, 1 / 800), np.repeat(np.arange(10.7, 40, 0.25), 200))
    waited = np.where(np.abs(sent - 10.125) <= 0.125, 10.7 - sent, 0.0)
    found = lk.diagnose(bare(sent, waited + 3e-3 * rng.weibull(0.7, sent.size)))
    assert (found.verdict, found.left.due) == ("unknown", pytest.approx([560], rel=0.1))
    sent = np.sort(np.append(20 * rng.random(3000), 20 + 20 * rng.random(9000)))
    run = bare(sent, frozen(sent, 15, 18, rng.gamma(3, 1e-3, sent.size)))
    due = lk.diagnose(run.to_log("1s")).sentences[1]
    assert 400 < int(due.split()[-3]) < 460, due  # of about 450
