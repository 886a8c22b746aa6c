"""Whether percentiles and comparisons are stated where they are known, and only there.

``python -m tests.benchmarks.truth --only uncertainty`` prints the tables; ``--seed`` draws other
worlds, ``--quick`` few of them. Each table has both sides: what is withheld though it is known, and
what is stated though it is wrong.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import latencykit as lk
from tests.benchmarks import worlds
from tests.benchmarks.tables import in_parallel, show
from tests.benchmarks.worlds import Drift, Pauses, Stalls, World, moments, requests

if TYPE_CHECKING:
    from collections.abc import Callable

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Rng = np.random.Generator

PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
LEAST = 50  # requests above a percentile that is asked for


def closed_loop(rng: Rng, slow: float = 0.02, number: int = 6000) -> tuple[Floats, Floats]:
    """One connection; a share of the requests takes 50 ms instead of 1."""
    took = np.where(rng.random(number) < slow, 50e-3, 1e-3)
    took = took * np.exp(0.05 * rng.standard_normal(number))
    return np.cumsum(took) - took, took


def two_endpoints(rng: Rng, seconds: float = 60.0) -> tuple[Floats, Floats]:
    start = moments(rng, 100.0, seconds)
    level = np.where(rng.random(start.size) < 0.2, 20e-3, 2e-3)
    return start, level * np.exp(0.3 * rng.standard_normal(start.size))


def collections(rng: Rng, seconds: float = 300.0) -> tuple[Floats, Floats]:
    """A pause of 100 ms every 5 s."""
    start = moments(rng, 100.0, seconds)
    since = (start - 5 * rng.random()) % 5
    took = 2e-3 * np.exp(0.3 * rng.standard_normal(start.size))
    return start, took + np.maximum(0.1 - since, 0.0)


def random_walk(rng: Rng, seconds: float = 300.0) -> tuple[Floats, Floats]:
    """The level has no mean: no percentile is known."""
    start = moments(rng, 100.0, seconds)
    level = np.cumsum(0.05 * rng.standard_normal(int(seconds * 10) + 1))
    noise = 0.3 * rng.standard_normal(start.size)
    return start, 2e-3 * np.exp(level[(start * 10).astype(int)] + noise)


PLAIN: dict[str, tuple[Callable[[Rng], tuple[Floats, Floats]], Callable[[Rng], tuple[Floats, Floats]] | None]] = {
    "closed loop, 2 % slow": (closed_loop, partial(closed_loop, number=400_000)),
    "closed loop, .2 % slow": (
        partial(closed_loop, slow=0.002, number=60_000), partial(closed_loop, slow=0.002, number=2_000_000),
    ),
    "two endpoints": (two_endpoints, partial(two_endpoints, seconds=4000.0)),
    "GC every 5 s, 300 s": (collections, partial(collections, seconds=6000.0)),
    "GC every 5 s, 600 s": (partial(collections, seconds=600.0), partial(collections, seconds=6000.0)),
    "random walk of the level": (random_walk, None),
}  # fmt: skip


def plain_cell(asked: tuple[str, int, int]) -> list[int]:
    """Return how many percentiles were asked for, are plain, and are plain and off by a quarter."""
    name, seed, runs = asked
    draw, long = PLAIN[name]
    truth = None
    if long is not None:
        truth = np.percentile(long(np.random.default_rng([seed, 1]))[1], PERCENTILES)
    count = np.zeros(3, int)
    for k in range(runs):
        samples = requests(*draw(np.random.default_rng([seed, 2, k])))
        for data in (samples, samples.to_log("1s")):
            rows, _ = data.evidence().rows(PERCENTILES)
            above = len(samples) * (1 - np.array(PERCENTILES) / 100)
            known = np.array([row.supported for row in rows]) & (above >= LEAST)
            off = np.zeros(known.size, bool)
            if truth is not None:
                value = np.array([row.value for row in rows]) / 1e9
                off = np.abs(np.log(value / truth)) > np.log(1.25)
            count += (int((above >= LEAST).sum()), int(known.sum()), int((known & off).sum()))
    return count.tolist()


RUNS: dict[str, World] = {
    "i.i.d.": World(rate=100.0),
    "bimodal": World(rate=100.0, service=worlds.bimodal),
    "AR 3 s": Drift(rate=100.0, time=3.0, spread=0.3),
    "GC": Pauses(rate=100.0),
    "AR 60 s": Drift(rate=100.0, time=60.0, spread=0.3),
    "stalls 6/min, 0.3 s": Stalls(rate=100.0, per_minute=6.0, length=0.3),
    "stalls 1/min, 1 s": Stalls(rate=100.0),
}
CHANGES: dict[str, tuple[float, float]] = {  # factor of all, and of what lies above p95
    "A/A": (1.0, 1.0), "+ 20 % all": (1.2, 1.0), "× 2 above p95": (1.0, 2.0),
}  # fmt: skip


def compared_cell(asked: tuple[str, str, int, int, int]) -> float:
    """Return the share of comparisons of several runs per side that state a change, in percent."""
    name, change, each, seed, number = asked
    everything, tail = CHANGES[change]
    stated = 0
    for k in range(number):
        sides: list[list[lk.Samples]] = []
        for side in (0, 1):
            runs = []
            for run in range(each):
                rng = np.random.default_rng([seed, k, side, run, list(RUNS).index(name)])
                start, took = RUNS[name].run(rng, 60.0)
                if side:
                    took = took * everything
                    took = np.where(took > np.percentile(took, 95), took * tail, took)
                runs.append(requests(start, took, float(np.exp(0.03 * rng.standard_normal()))))
            sides.append(runs)
        verdict = lk.compare(*sides).verdict
        wanted = ("worse", "mixed") if change != "A/A" else ("better", "worse", "mixed")
        stated += verdict in wanted
    return 100 * stated / number


def tables(quick: bool, seed: int = 0) -> None:
    """Print the tables."""
    runs = 8 if quick else 30
    asked = [(name, seed, runs) for name in PLAIN]
    rows: list[Any] = [
        [name, f"{100 * plain / every:.0f}", f"{100 * off / max(plain, 1):.1f}"]
        for name, (every, plain, off) in zip(PLAIN, in_parallel(plain_cell, asked), strict=True)
    ]
    header = ["traffic", "plain", "of these off by a quarter"]
    show("Percentiles with 50 requests above them, %", header, rows)
    cells = [
        (name, change, each, seed, runs) for name in RUNS for change in CHANGES for each in (4, 3)
    ]
    found = dict(zip([cell[:3] for cell in cells], in_parallel(compared_cell, cells), strict=True))
    rows = [
        [name, f"{each} v {each}", *(f"{found[name, change, each]:.0f}" for change in CHANGES)]
        for name in RUNS
        for each in (4, 3)
    ]
    for each in (4, 3):
        means = (np.mean([found[name, change, each] for name in RUNS]) for change in CHANGES)
        rows.append(["mean", f"{each} v {each}", *(f"**{mean:.1f}**" for mean in means)])
    title = "Several runs of 60 s per side, 3 % run noise: a change is stated, %"
    show(title, ["traffic", "runs", *CHANGES], rows, text=2)
