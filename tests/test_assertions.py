"""Latency assertions: the statistics in simulated time, the fixture as a project uses it."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import latencykit as lk
from latencykit import assertions
from latencykit.assertions import Latency, LatencyResult, Measurement, _block
from latencykit.errors import DataNotAvailableError, InvalidArgumentError, UndecidedWarning
from tests.benchmarks.assertions import WORLDS, busy, compared, flaky, limited

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
MODULE = "latencykit.pytest_plugin"


# ------------------------------------------------------------ statistics
def pairs(percentile: float, allowed: float, budget: str = "1s") -> Measurement:
    return Measurement(Latency(), percentile, allowed=allowed, names=("base", "new"), budget=budget)


def bursts(rng: np.random.Generator, blocks: int) -> np.ndarray:
    """Blocks of 20 calls, of which some are slow as a whole: calls depend on each other."""
    slow = np.where(rng.random(blocks) < 0.1, 3.0, 1.0)
    return rng.lognormal(0, 0.5, (blocks, 20)) * 1e6 * slow[:, None]


@pytest.mark.parametrize("percentile", [50, 95, 99])
def test_wealth_does_not_grow_if_sides_are_alike(percentile):
    """The law behind the level: a mean of 1 after any number of looks, in any world."""
    ends = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        evidence = pairs(percentile, 0.0)
        for _ in range(3):
            evidence.add(bursts(rng, 10).reshape(2, 5, 20))
        ends.append(np.exp(evidence._wealth).mean(axis=1))
    mean, error = np.mean(ends, axis=0), np.std(ends, axis=0) / 200**0.5
    assert (mean - 3 * error < 1).all()
    assert (mean + 3 * error > 1).all()


@pytest.mark.parametrize("percentile", [50, 95, 99])
def test_wealth_does_not_grow_at_the_limit(percentile):
    ends = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        evidence = Measurement(Latency(), percentile, percentile / 100)
        for _ in range(5):
            evidence.add(rng.random((1, 5, 4)))
        ends.append(np.exp(evidence._wealth).mean(axis=1))
    assert (np.mean(ends, axis=0) - 3 * np.std(ends, axis=0) / 200**0.5 <= 1).all()


def test_a_bet_is_the_same_if_sides_are_swapped():
    rng = np.random.default_rng(3)
    one, other = pairs(95, 0.0), pairs(95, 0.0)
    for _ in range(4):
        batch = bursts(rng, 12).reshape(2, 6, 20)
        batch[0, 2, 5:] = np.nan
        one.add(batch)
        other.add(batch[::-1])
    assert np.allclose(one._wealth, other._wealth[::-1])


def test_calls_that_are_not_known_are_left_out():
    rng = np.random.default_rng(4)
    measurement = pairs(50, 0.5)
    batch = bursts(rng, 400).reshape(2, 200, 20)
    batch[1, ::2] = np.nan
    batch[0, 1::4, 10:] = np.nan
    assert measurement.add(batch) == "passed"
    assert measurement.finish().calls == np.isfinite(batch[:, 1::2]).sum()
    assert pairs(50, 0.5).add(np.full((2, 9, 3), np.nan)) is None


def test_short_calls_that_were_interrupted_are_left_out(monkeypatch):
    """An account says how often, and for how long a thread waited: here for 10 s."""
    own, found = str(threading.get_native_id()), []
    accounts, counts = iter([{own: (0, 0)}, {own: (0, 10**10)}]), iter([0, 1])
    monkeypatch.setattr(assertions, "thread_times", lambda _: next(accounts))
    monkeypatch.setattr(assertions, "interruptions", counts.__next__)

    def loop() -> Iterator[int]:
        found.extend((yield from _block(0, 3, others=True)))

    for _ in loop():
        spin(100)
    values, spent, waited = found
    assert np.isnan(values).all()
    assert waited == spent  # no more than there was


@pytest.mark.parametrize(("others", "left_out"), [(True, 10**6), (False, 0)])
def test_of_other_threads_the_longest_wait_is_left_out_of_a_comparison(
    monkeypatch, others, left_out
):
    accounts, found = iter([{"1": (0, 5), "2": (0, 5)}, {"1": (0, 9), "2": (0, 5 + 10**6)}]), []
    monkeypatch.setattr(assertions, "thread_times", lambda _: next(accounts))

    def loop() -> Iterator[int]:
        found.extend((yield from _block(0, 1, others=others)))

    for _ in loop():
        spin(2000)
    assert found[2] == left_out
    assert found[1] - found[0][0] == pytest.approx(left_out, abs=5e5)


def test_one_slow_moment_does_not_fail_a_limit():
    evidence = Measurement(Latency(), 50, 2.0)
    assert evidence.add(np.full((1, 500, 1000), 3.0)) is None
    looks = [evidence.add(np.full((1, 1, 1000), 3.0)) for _ in range(20)]
    assert looks.index("failed") > 5


def test_intervals_contain_the_change():
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        evidence = pairs(95, 0.2)
        evidence.add(np.stack([bursts(rng, 150), 1.5 * bursts(rng, 150)]))
        _, _, low, high = evidence._found()
        found.append((low <= 0.5 <= high, low > 0))
    assert (np.sum(found, axis=0) >= 33).all()


@pytest.mark.parametrize("world", WORLDS)
def test_worlds(world):
    """Nothing changed, and + 50 % at p99, in simulated time."""
    for seed in range(3):
        assert compared(world, 99, 0.0, seed, 0.2) != "failed"
        assert compared(world, 50, 0.2, seed, 0.1) == "failed"
        assert compared(world, 95, 0.5, seed, 0.2) == "failed"
        assert limited(world, 95, 1.0, seed) == "passed"
    found = [compared(world, 99, 0.5, seed, 0.2) for seed in range(5)]
    assert found.count("failed") >= 4


# ------------------------------------------------------------ what is said
def result(**changes: object) -> LatencyResult:
    facts = {
        "verdict": "failed", "statistic": "p95", "value": 1.31e6, "base": 1.02e6, "allowed": 0.2,
        "low": 0.24, "high": 0.33, "seconds": 3.1, "calls": 18_400, "blocks": 62, "waited": 0.0,
        "series": {},
    }  # fmt: skip
    return LatencyResult(**(facts | changes))


def test_the_fact_is_first():
    assert str(result()) == (
        "p95 1.31 ms, 1.02 ms before (+28 %, 24 to 33), limit +20 %; decided after 3.1 s, "
        "18,400 calls in 62 blocks"
    )
    assert str(result(verdict="undecided", low=np.nan, waited=0.26, note="why")) == (
        "p95 1.31 ms, 1.02 ms before (+28 %), limit +20 %; undecided after 3.1 s, 18,400 calls "
        "in 62 blocks; waiting for a processor (26 % of the time) is left out; why"
    )
    assert str(result(base=1e6, allowed=np.nan, low=0.2, high=0.4)) == (
        "p95 1.31 ms, limit 1 ms (+31 %, 20 to 40); decided after 3.1 s, 18,400 calls in 62 blocks"
    )
    assert str(result(verdict="undecided", base=np.nan, note="3 of 10 runs")) == (
        "p95 1.31 ms; undecided after 3.1 s, 18,400 calls in 62 blocks; 3 of 10 runs"
    )


@pytest.mark.parametrize("limit", ["max < 2ms", "p99 < 2", "p50 < 1ms, p99 < 2ms", "mean < 1ms"])
def test_limits_that_are_none(limit):
    with pytest.raises(InvalidArgumentError, match=r"is not a limit of a percentile"):
        Latency().limit(limit)


@pytest.mark.parametrize("allow", ["20", "+20%", "p95", "+20% p100", "-5% p95"])
def test_changes_that_are_none(allow):
    said = r"is not an allowed change, such as '\+20% p95'"
    with pytest.raises(InvalidArgumentError, match=said):
        Latency().compare(int, int, allow=allow)


def test_a_limit_or_a_base():
    for given in ({}, {"limit": "p99 < 1s", "base": int}):
        with pytest.raises(InvalidArgumentError, match="a limit such as 'p99 < 2ms', or base="):
            lk.assert_latency(int, **given)


def test_a_loop_that_does_not_run():
    with (
        pytest.raises(DataNotAvailableError, match="write 'for _ in run:'"),
        Latency().limit("p99 < 1s"),
    ):
        pass


def test_an_error_in_the_block_is_kept():
    def work() -> None:
        with Latency().limit("p99 < 1s") as run:
            for _ in run:
                _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        work()


def test_off_calls_and_measures_nothing():
    calls, results = [], []
    latency = Latency(off=True, on_result=results.append)
    latency.compare(lambda: calls.append("base"), lambda: calls.append("new"))
    with latency.limit("p99 < 1ns") as run:
        for _ in run:
            calls.append("loop")
    assert set(calls) == {"base", "new", "loop"}
    assert len(calls) <= 5
    assert [found.verdict for found in results] == ["off", "off"]


# ------------------------------------------------------------ pytest-benchmark
def benchmark(data: list[float], iterations: int = 1) -> SimpleNamespace:
    """The fixture of pytest-benchmark after it ran, as of its version 5."""
    stats = SimpleNamespace(iterations=iterations, stats=SimpleNamespace(data=data))
    return SimpleNamespace(stats=stats)


def test_data_of_pytest_benchmark():
    latency = Latency()
    for p, data in (("p99", [0.001] * 1001), ("p99.9", benchmark([0.001] * 10_000))):
        found = latency.from_benchmark(data, f"{p} < 2ms")
        assert (found.verdict, found.value) == ("passed", 1e6)
        with pytest.raises(
            AssertionError, match=rf"{p} 1 ms, limit 500 µs \(\+100 %, 100 to 100\)"
        ):
            latency.from_benchmark(data, f"{p} < 500us")


def test_few_or_averaged_data_decide_nothing():
    latency = Latency()
    with pytest.warns(UndecidedWarning, match="undecided after 0.005 s, 5 calls in 5 blocks"):
        latency.from_benchmark([0.001] * 5, "p95 < 500us")
    with pytest.raises(AssertionError, match="undecided"):
        Latency(strict=True).from_benchmark([0.001] * 5, "p95 < 500us")
    with pytest.raises(DataNotAvailableError, match=r"the mean of 12 calls.*iterations=1"):
        latency.from_benchmark(benchmark([0.001], 12), "p95 < 2ms")
    with pytest.raises(DataNotAvailableError, match="no call was measured"):
        latency.from_benchmark(benchmark([]), "p95 < 2ms")


# ------------------------------------------------------------ measuring
def spin(microseconds: float) -> None:
    end = time.perf_counter_ns() + microseconds * 1e3
    while time.perf_counter_ns() < end:
        pass


@pytest.mark.slow
def test_functions():
    assert lk.assert_latency(lambda: spin(20), "p50 < 20ms").verdict == "passed"
    with pytest.raises(AssertionError, match=r"^p50 .* before \(\+.*, limit \+20 %; decided after"):
        lk.assert_latency(lambda: sum(range(9000)), base=lambda: sum(range(3000)), allow="+20% p50")
    with pytest.raises(AssertionError, match=r"^p50 .*, limit 10 µs \(.*; decided after"):
        lk.assert_latency(lambda: sum(range(9000)), "p50 < 10us", budget="20s")


@pytest.mark.slow
def test_coroutines_in_a_loop_of_their_own_and_in_a_running_one():
    async def wait() -> None:
        await asyncio.sleep(0.001)

    assert lk.assert_latency(wait, "p50 < 1s").calls
    assert lk.assert_latency(lambda: wait(), base=wait, allow="+900% p50").verdict == "passed"

    async def test() -> None:
        latency = Latency()
        assert (await latency.compare(wait, wait, allow="+900% p50")).verdict == "passed"
        with latency.limit("p50 < 1s") as run:
            for _ in run:
                await wait()
        assert run.result is not None
        assert run.result.verdict == "passed"

    asyncio.run(test())


@pytest.mark.slow
def test_threads_share_a_loop():
    counts: dict[int, int] = {}
    with Latency().limit("p50 < 1s") as run:

        def work() -> None:
            for _ in run:
                counts[threading.get_ident()] = counts.get(threading.get_ident(), 0) + 1
                time.sleep(0.001)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(counts) == 3
    assert run.result.verdict == "passed"
    assert 10 <= run.result.calls <= sum(counts.values())


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="Linux accounts it")
def test_waiting_for_a_processor_is_left_out():
    """Two busy processes on one processor with this one: most calls of 3 ms wait in between."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        same = [lambda: sum(range(100_000)) for _ in range(2)]
        with pytest.warns(UndecidedWarning) as caught:
            Latency().compare(*same, allow="+0% p50", budget="3s")
        shares = [float(str(w.message).split("processor (")[1].split(" %")[0]) for w in caught]
        assert 30 < shares[0] <= 100
    finally:
        os.sched_setaffinity(0, before)
        for process in busy:
            process.kill()
            process.wait()


def test_waiting_after_a_call_makes_no_blocks_of_a_million_calls(monkeypatch):
    waited = itertools.accumulate(itertools.chain([0], [10**9] * 19, itertools.repeat(0)))
    own = str(threading.get_native_id())
    monkeypatch.setattr(assertions, "thread_times", lambda _: {own: (0, next(waited))})
    found = lk.assert_latency(lambda: spin(2000), "p50 < 1s", budget="1s")
    assert found.calls == found.blocks


@pytest.mark.slow
def test_against_the_runs_of_a_store(tmp_path):
    latency, store = Latency(), tmp_path / "history"
    options = {"allow": "+50% p50", "store": store, "budget": "0.3s"}
    for runs in range(5):
        with pytest.warns(UndecidedWarning, match=f"; {runs} of 5 runs that a verdict takes"):
            found = latency.against_history("lookup", lambda: spin(1000), **options)
        lk.History(store).add(found.series)
    patient = options | {"budget": "10s"}
    found = latency.against_history("lookup", lambda: spin(1000), **patient)
    assert found.verdict == "passed"
    # the time that a busy machine takes from a spin is left out
    said = r"p50 [2-5][\d.]* ms, [\d.]+ [mµ]s before .*limit \+.*for the noise of 5 runs"
    with pytest.raises(AssertionError, match=said):
        latency.against_history("lookup", lambda: spin(5000), **patient)


# ------------------------------------------------------------ the fixture
TESTS = """
import sys, time, pytest

def test_nothing_is_imported_until_used():
    assert not {"numpy", "latencykit.assertions"} & set(sys.modules)

def spin(count):
    return lambda: sum(range(count))

def test_fast(latency):
    with latency.limit("p90 < 1s") as run:
        for _ in run:
            sum(range(1000))

def test_slower(latency):
    latency.compare(base=spin(3000), new=spin(9000), allow="+20% p50")

def test_undecided(latency):
    latency.compare(base=spin(3000), new=spin(3000), allow="+0% p95", budget="0.2s")
"""


def run_tests(folder: Path, *options: str) -> str:
    (folder / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", MODULE]
    command += ["--rootdir", str(folder), "-c", "/dev/null", str(folder), *options]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_the_fixture(tmp_path):
    shown = run_tests(tmp_path, "--latency-report", "out", "--junitxml", "j.xml")
    assert "1 failed, 3 passed, 1 warning" in shown
    assert "UndecidedWarning: p95" in shown
    assert "E       AssertionError: p50 " in shown
    assert ">       latency.compare(base=spin(3000), new=spin(9000)" in shown
    assert "assertions.py" not in shown.replace("latencykit.assertions", "")
    properties = {
        case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
        for case in ET.parse(tmp_path / "j.xml").getroot().iter("testcase")
    }
    assert properties["test_slower"]["latency"].startswith("failed: p50 ")
    assert float(properties["test_fast"]["latency.p90_ns"]) > 0
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == [
        f"test_it.py-test_{name}.{kind}"
        for name in ("fast", "slower", "undecided") for kind in ("json", "png")
    ]  # fmt: skip
    series = lk.read_all(tmp_path / "out" / "test_it.py-test_slower.json")
    assert [name.split(":")[-1].strip() for name in series] == ["base", "new"]
    assert json.loads((tmp_path / "out" / written[0]).read_text())["series"].keys() == {"new"}


@pytest.mark.slow
def test_options_of_the_fixture(tmp_path):
    assert "2 failed, 2 passed" in run_tests(tmp_path, "--latency-strict")
    assert "4 passed" in run_tests(tmp_path, "--latency-off")
    parallel = ["-p", "xdist", "-n", "2", "--latency-report", "out"]
    assert "1 failed, 3 passed" in run_tests(tmp_path, *parallel).replace("1 warning", "")
    assert len(list((tmp_path / "out").iterdir())) == 6


def test_no_command_imports_it():
    pattern = re.compile(r"^\s*(from|import) latencykit\.assertions\b", re.MULTILINE)
    users = {
        path.name
        for path in Path(lk.__file__).parent.rglob("*.py")
        if pattern.search(path.read_text("utf-8"))
    }
    assert users == {"__init__.py", "pytest_plugin.py"}


def test_waiting_for_threads_of_its_own_is_not_the_machine():
    """New calls that are as fast, but for waiting that the old ones do not have, are not passed."""
    rng = np.random.default_rng(1)
    for waits, verdict in (([0, 0], "passed"), ([1e6, 1e6], "passed"), ([0, 1e6], "undecided")):
        measurement = pairs(50, 0.5)
        assert measurement.add(bursts(rng, 200).reshape(2, 100, 20)) == "passed"
        measurement._spent = [10**9, 10**9]
        measurement._waits = [[waits[0]] * 100, [waits[1]] * 100]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert measurement.finish().verdict == verdict
        assert ["threads of their own?" in str(w.message) for w in caught] == [True] * (
            waits == [0, 1e6]
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::latencykit.errors.UndecidedWarning")
@pytest.mark.parametrize("name", [*flaky(Latency(), 1.0)])
def test_flaky_assertions_as_they_should_have_been(name):
    """`python -m tests.benchmarks.assertions --only rebuilt` runs each 200 times."""
    results = []
    with busy(2):
        flaky(Latency(on_result=results.append), 1.0)[name]()
    assert len(results) == 1
