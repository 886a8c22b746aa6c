"""How often latency assertions are wrong: ``python -m tests.benchmarks.assertions`` prints Markdown.

* simulated: systems whose latencies and machine are drawn, so that no time passes; cells are failures
* limits: the same systems against a limit
* rebuilt: eleven assertions that projects published and dropped, as they should have been
* real: ten functions on this machine, against themselves and a slower self

Beside the last two run busy processes, and every test takes up to its budget.

``--quick`` takes minutes; all real tests take hours, and say how many there was time for.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gzip
import hashlib
import http.client
import http.server
import itertools
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr

from latencykit.assertions import RULES, Latency, LatencyResult, Measurement
from latencykit.errors import UndecidedWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from latencykit._typing import Floats, Ints

CALL = 200e3  # ns, the median of a call
WORLDS = ("i.i.d.", "bimodal", "drift of 10 s", "GC", "loaded neighbour", "frequency steps")
ALLOWED = {50: 0.1, 95: 0.2, 99: 0.2}
SECONDS = {50: 3.0, 95: 10.0, 99: 10.0}
VERDICTS = ("failed", "undecided", "passed")
CHANGES = (0.0, 0.1, 0.2, 0.5)


def _steps(rng: np.random.Generator, dwell: float, level: Callable[[], float]) -> Floats:
    """A level per ms of 10 s, that changes after exponential times."""
    lengths = 1 + rng.exponential(dwell * 1e3, 2000).astype(int)
    lengths = lengths[: 1 + int(np.searchsorted(np.cumsum(lengths), 10_000))]
    return np.repeat([level() for _ in lengths], lengths)[:10_000]


class Machine:
    """Latencies of calls, by their times and by what is slower in the code."""

    def __init__(self, world: str, rng: np.random.Generator) -> None:
        self.world, self._rng = world, rng
        self._slow, self._load = np.ones(10_000), np.zeros(10_000)
        if world == "drift of 10 s":
            decay = np.exp(-1e-3)  # of 10 ms
            noise = rng.normal(0, 0.2, 1000) * np.where(np.arange(1000), np.sqrt(1 - decay**2), 1)
            self._slow = np.exp(np.repeat(lfilter([1], [1, -decay], noise), 10))
        elif world == "frequency steps":
            self._slow = _steps(rng, 1.0, lambda: rng.choice([1.0, 1.3, 1.8]))
        elif world == "loaded neighbour":  # half of the time, 0 to 90 % of a core
            self._load = _steps(rng, 0.5, lambda: max(0.0, rng.uniform(-0.9, 0.9)))
            self._slow = 1 + 0.6 * self._load

    def calls(self, seconds: Floats, slowest: Floats | float, change: float) -> Floats:
        """Latencies, of which the slowest share of the code's own is slower by a change."""
        rng, z = self._rng, self._rng.normal(size=seconds.shape)
        rank, values = ndtr(z), CALL * np.exp(0.3 * z)
        if self.world == "bimodal":
            slow = rng.random(z.shape) < 0.1
            rank = np.where(slow, 0.9 + 0.1 * rank, 0.9 * rank)
            values = np.where(slow, 4 * CALL, CALL) * np.exp(0.1 * z)
        at = np.minimum((seconds * 1e3).astype(int), 9_999)
        values = values * np.where(rank >= 1 - slowest, 1 + change, 1.0) * self._slow[at]
        if self.world == "GC":  # twice a second
            values += (rng.random(z.shape) < values / 5e8) * rng.uniform(5e6, 20e6, z.shape)
        # A tenth of what the scheduler takes is not in its account.
        preempted = rng.random(z.shape) < 0.1 * values * self._load[at] / 4e6
        return values + preempted * rng.exponential(3e6, z.shape)


def compared(world: str, percentile: int, change: float, seed: int, allowed: float) -> str:
    """One test of new calls against old ones: the verdict."""
    rng = np.random.default_rng([WORLDS.index(world), percentile, round(100 * change), seed])
    machine = Machine(world, rng)
    evidence = Measurement(Latency(), percentile, allowed=allowed, names=("base", "new"))
    calls = int(RULES.block_ns / CALL)
    pairs = int(RULES.batch_ns / (2 * calls * CALL)) + 1
    spent = 2 * pairs * calls * CALL * 1.1e-9
    for start in np.arange(0, SECONDS[percentile], spent):
        seconds = start + np.arange(2 * pairs * calls).reshape(pairs, 2, calls) * CALL * 1.1e-9
        side = rng.permuted(np.tile([0, 1], (pairs, 1)), axis=1)
        slowest = np.where(side, 2 * (1 - percentile / 100), -1)[..., None]
        values = machine.calls(seconds, slowest, change)
        verdict = evidence.add(np.stack([values[side == 0], values[side == 1]]))
        if verdict:
            return verdict
    return "undecided"


@cache
def percentile_of(world: str, percentile: int) -> float:
    """The percentile of calls in the long run."""
    runs = (Machine(world, np.random.default_rng([9, seed])) for seed in range(200))
    seconds = np.arange(0, 10, 2e-3)
    return float(np.percentile(np.stack([run.calls(seconds, 0, 0) for run in runs]), percentile))


def limited(world: str, percentile: int, factor: float, seed: int) -> str:
    """One test against a limit of twice the percentile, with calls slower by a factor."""
    rng = np.random.default_rng([WORLDS.index(world), percentile, round(100 * factor), seed])
    machine = Machine(world, rng)
    limit = 2 * percentile_of(world, percentile) / factor
    evidence = Measurement(Latency(), percentile, limit)
    calls, blocks = int(RULES.block_ns / CALL), int(0.25e9 / RULES.block_ns)
    for start in np.arange(0, 10, 0.25):
        seconds = start + np.arange(blocks * calls).reshape(blocks, calls) * CALL * 1e-9
        verdict = evidence.add(machine.calls(seconds, 0, 0)[None])
        if verdict:
            return verdict
    return "undecided"


def _failed(test: Callable[[int], str], runs: int) -> Ints:
    return np.array([sum(test(seed) == "failed" for seed in range(runs)), runs])


def _rows(rows: Iterable[tuple[str, str, list[Ints]]]) -> Iterator[str]:
    """Rows of a table as they come, then their sums by the second column."""
    sums: dict[str, Any] = {}

    def line(first: str, second: str, cells: Iterable[Ints]) -> str:
        texts = (f"{found:,} of {runs:,}" for found, runs in cells)
        return f"| {first} | {second} | {' | '.join(texts)} |"

    for world, head, cells in rows:
        sums[head] = sums.get(head, 0) + np.array(cells)
        yield line(world, head, cells)
    for head, total in sums.items():
        yield line("all", head, total)


def simulated(runs: int, others: int) -> Iterator[str]:
    """Tables of failures: by world, percentile and change."""
    yield "#### Simulated: failures of `compare`, calls of 0.2 ms\n"
    yield (
        "| world | percentile, allowed, budget | nothing changed | nothing changed, nothing allowed "
        "| +10 % | +20 % | +50 % |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|"
    yield from _rows(
        (
            world,
            f"p{percentile}, +{100 * allowed:.0f} %, {SECONDS[percentile]:.0f} s",
            [
                _failed(partial(_compared, world, percentile, change, permitted), count)
                for change, permitted, count in (
                    (0.0, allowed, runs), (0.0, 0.0, others),
                    *((change, allowed, others) for change in CHANGES[1:]),
                )
            ],
        )
        for world, (percentile, allowed) in itertools.product(WORLDS, ALLOWED.items())
    )  # fmt: skip


def _compared(world: str, percentile: int, change: float, allowed: float, seed: int) -> str:
    return compared(world, percentile, change, seed, allowed)


def limits(runs: int) -> Iterator[str]:
    """A table of failures of limits."""
    yield "\n#### Simulated: failures of a limit of twice the percentile in the long run, 10 s\n"
    yield "| world | percentile | nothing changed | × 1.5 | × 3 |"
    yield "|---|---|--:|--:|--:|"
    yield from _rows(
        (
            world,
            f"p{percentile}",
            [_failed(partial(limited, world, percentile, x), runs) for x in (1.0, 1.5, 3.0)],
        )
        for world, percentile in itertools.product(WORLDS, (50, 95, 99))
    )


# ------------------------------------------------------------ this machine
class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet per reply: two would wait 40 ms for a delayed ACK

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def functions() -> Iterator[dict[str, Callable[[], object]]]:
    """Ten functions of 5 µs to 1 ms."""
    table = {str(number): number for number in range(1000)}
    keys, text = list(table)[::10], json.dumps(table)
    data, numbers = os.urandom(2000) + bytes(20_000), np.random.default_rng(1).normal(size=20_000)
    pattern, lines = re.compile(r"(\d+)=(\w+)"), "a 12=xy b 7=z " * 100
    base = sqlite3.connect(":memory:")
    base.execute("create table t (id integer primary key, name text)")
    base.executemany("insert into t values (?, ?)", ((at, str(at)) for at in range(10_000)))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    client = http.client.HTTPConnection("127.0.0.1", server.server_port)

    def get() -> bytes:
        client.request("GET", "/")
        return client.getresponse().read()

    try:
        yield {
            "100 dict lookups": lambda: [table[key] for key in keys],
            "JSON": lambda: json.loads(text),
            "SQLite": lambda: base.execute("select max(name) from t where id < 500").fetchone(),
            "gzip": lambda: gzip.compress(data, 6),
            "HTTP": get,
            "sorted": lambda: sorted(numbers[:2000].tolist()),
            "numpy": lambda: np.sort(numbers),
            "regular expression": lambda: pattern.findall(lines),
            "SHA-256": lambda: hashlib.sha256(data).hexdigest(),
            "sleep": lambda: time.sleep(0.0005),
        }
    finally:
        client.close()
        server.shutdown()
        thread.join()
        server.server_close()
        base.close()


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Some busy processes beside this one."""
    command = [sys.executable, "-c", "while True: pass"]
    started = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def slower(function: Callable[[], object], often: float) -> Callable[[], object]:
    """A function, of whose calls a share sleeps for 30 % of the median, at least some 60 µs here."""

    def timed() -> int:
        start = time.perf_counter_ns()
        function()
        return time.perf_counter_ns() - start

    more = 0.3 * float(np.median([timed() for _ in range(50)])) / 1e9
    coins = itertools.cycle([random.random() < often for _ in range(10_007)])

    def run() -> None:
        function()
        if next(coins):
            time.sleep(more)

    return run


def _verdict(test: Callable[[Latency], object]) -> str:
    results: list[LatencyResult] = []
    with contextlib.suppress(AssertionError):
        test(Latency(on_result=results.append))
    return str(results[-1].verdict)


def _counted(
    table: str, tests: Mapping[tuple[str, ...], Callable[[Latency], object]],
    runs: int, budget: float, until: float, processes: int, log: Path | None,
) -> tuple[Counter[tuple[str, ...]], str]:  # fmt: skip
    """Verdicts of tests for which there was time, beside busy processes, and what the machine did meanwhile.

    A table that takes hours may be stopped and resumed: what the log has is not measured again.
    """
    about = {"table": table, "busy": processes, "budget": budget}
    lines = log.read_text("utf-8").splitlines() if log is not None and log.exists() else ()
    kept = [one for one in map(json.loads, lines) if about.items() <= one.items()]
    counts = Counter((*one["test"], one["verdict"]) for one in kept)
    with busy(processes), warnings.catch_warnings():
        warnings.simplefilter("ignore", UndecidedWarning)
        for number, (name, test) in itertools.product(range(runs), tests.items()):
            if sum(counts[*name, one] for one in VERDICTS) > number or time.time() > until:
                continue
            verdict, load = _verdict(test), round(os.getloadavg()[0], 1)
            counts[*name, verdict] += 1
            kept.append(about | {"test": name, "verdict": verdict, "load": load})
            if log is not None:
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(kept[-1]) + "\n")
    loads = sorted(one["load"] for one in kept) or [0.0]
    return counts, (
        f"{processes} busy processes beside them on {os.cpu_count()} processors, load average "
        f"{loads[len(loads) // 20]:.0f} to {loads[-1 - len(loads) // 20]:.0f} in nine of ten tests, "
        f"budget {budget:g} s"
    )


PLANS = {
    "nothing changed, +20 % p95": (0.0, "+20% p95"),
    "a sleep of 30 % in 5 % of calls, +5 % p97": (0.05, "+5% p97"),
}


def real(runs: int, budget: float, *settings: Any) -> Iterator[str]:
    """A table of failures on this machine; cells count the tests for which there was time."""

    def tested(function: Callable[[], object], plan: str, latency: Latency) -> None:
        often, allow = PLANS[plan]
        base, new = slower(function, 0.0), slower(function, often)
        latency.compare(base, new, allow=allow, budget=budget)

    with functions() as known:
        names = [*known]
        tests = {
            (name, plan): partial(tested, known[name], plan)
            for name, plan in itertools.product(names, PLANS)
        }
        counts, machine = _counted("real", tests, runs, budget, *settings)
    yield f"\n#### Functions, against themselves and slower ones; {machine}\n"
    yield f"| function: failed (undecided) | {' | '.join(PLANS)} |"
    yield "|---|--:|--:|"
    for name in [*names, "all"]:
        cells = []
        for plan in PLANS:
            failed, undecided, passed = (
                sum(counts[one, plan, verdict] for one in names if name in (one, "all"))
                for verdict in VERDICTS
            )
            cells.append(f"{failed} of {failed + undecided + passed:,} ({undecided})")
        yield f"| {name} | {' | '.join(cells)} |"


# ------------------------------------------------------------ assertions that projects published, and dropped
def flaky(latency: Latency, budget: float) -> dict[str, Callable[[], object]]:
    """Eleven assertions as they should have been; the names are what failed on loaded runners."""
    lock, table = threading.Lock(), list(range(20_000))
    cached = functools.cache(lambda: sorted(table, key=lambda value: -value))
    limit = functools.partial(latency.limit, budget=budget)

    def loop(limit_text: str, function: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            with limit(limit_text) as turns:
                for _ in turns:
                    function()

        return run

    def loop_lag() -> None:
        async def run() -> None:
            with limit("p95 < 10ms") as turns:
                for _ in turns:
                    await asyncio.sleep(0)

        asyncio.run(run())

    def contended() -> None:
        done = threading.Event()

        def hold() -> None:
            while not done.wait(0.002):
                with lock:
                    pass

        holder = threading.Thread(target=hold)
        holder.start()
        try:
            with limit("p90 < 20ms") as turns:
                for _ in turns:
                    with lock:
                        sum(table[:1000])
        finally:
            done.set()
            holder.join()

    def sums(size: int) -> Callable[[], object]:
        return lambda: sum(table[:size])

    return {
        "one call within a timeout of 50 ms": loop("p95 < 50ms", lambda: time.sleep(0.005)),
        "the p95 of 20 calls": loop("p95 < 5ms", lambda: json.dumps(table[:2000])),
        "the mean of 5 calls": loop("p50 < 5ms", lambda: sum(table)),
        "the new function faster in one call": lambda: latency.compare(
            sums(10_000), sums(10_000), allow="+20% p50", budget=budget
        ),
        "a cached call ten times as fast as the first": lambda: latency.compare(
            lambda: sorted(table, key=lambda value: -value), cached, allow="+0% p50", budget=budget
        ),
        "1,000 calls in a second": loop("p50 < 1ms", hashlib.sha256(bytes(20_000)).digest),
        "a sleep of 10 ms ends within 15": loop("p90 < 15ms", lambda: time.sleep(0.01)),
        "a lock is had within 20 ms": contended,
        "ten times the input in fifteen times the time": lambda: latency.compare(
            lambda: [sum(table[:1000]) for _ in range(10)], sums(10_000), allow="+50% p50", budget=budget
        ),
        "the lag of an event loop below 10 ms": loop_lag,
        "the maximum of 100 calls below 100 ms": loop("p99 < 100ms", lambda: json.dumps(table)),
    }  # fmt: skip


def rebuilt(runs: int, budget: float, *settings: Any) -> Iterator[str]:
    """A table of the eleven assertions with busy processes beside them."""
    names = [*flaky(Latency(), budget)]
    tests = {(name,): lambda latency, name=name: flaky(latency, budget)[name]() for name in names}
    counts, machine = _counted("rebuilt", tests, runs, budget, *settings)
    yield f"\n#### Flaky assertions, rebuilt; {machine}\n"
    yield "| what failed on loaded runners | tests | failed | undecided |"
    yield "|---|--:|--:|--:|"
    for name in names:
        failed, undecided, passed = (counts[name, verdict] for verdict in VERDICTS)
        yield f"| {name} | {failed + undecided + passed} | {failed} | {undecided} |"


@click.command()
@click.option("--only", default="simulated,limits,rebuilt,real", help="Tables, with commas.")
@click.option("--runs", default=0, help="Tests per cell; by default 600, 100, 200 and 300.")
@click.option("--budget", default=10.0, help="Seconds of a real test.")
@click.option("--minutes", default=600.0, help="Of each table of real tests.")
@click.option("--busy", "busy_", default=2, help="Busy processes beside real tests; 0 for none.")
@click.option("--log", type=click.Path(path_type=Path), help="Keep real tests here, and resume.")
@click.option("--quick", is_flag=True, help="Few tests: too few to quote.")
def main(
    only: str, runs: int, budget: float, minutes: float, busy_: int, log: Path | None, quick: bool
) -> None:
    """Print the tables."""
    until = time.time() + 60 * minutes
    parts = {
        "simulated": lambda: simulated(*((20, 10) if quick else (runs or 600, runs or 100))),
        "limits": lambda: limits(10 if quick else runs or 100),
        "rebuilt": lambda: rebuilt(1 if quick else runs or 200, budget, until, busy_, log),
        "real": lambda: real(1 if quick else runs or 300, budget, until, busy_, log),
    }
    for name in only.split(","):
        for line in parts[name]():
            click.echo(line)


if __name__ == "__main__":
    main()
