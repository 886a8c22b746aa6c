"""How often statements about events are wrong: ``python -m tests.benchmarks.truth --only events``.

Worlds without any connection between events and latencies, where every finding is false, and worlds
whose stalls have planted causes among other sources, where precision and recall are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.analysis.coincidence import coincide
from latencykit.core.events import Events
from tests.benchmarks.tables import in_parallel, show
from tests.benchmarks.worlds import Drift, Stalls, World, moments, requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    import latencykit as lk

    Floats = NDArray[np.float64]

EPOCH = 1_769_860_800.0  # 2026-01-31T12:00:00Z


def served(
    rng: np.random.Generator, rate: float, span: float, begin: Any, length: Any
) -> lk.Samples:
    """Requests at random times, which wait to the end of the stall in which they arrive."""
    start = moments(rng, rate, span)
    took = rng.lognormal(np.log(2e-3), 0.6, start.size)
    begin, length = np.asarray(begin, float), np.broadcast_to(length, np.shape(begin))
    order = np.argsort(begin)
    begin, end = begin[order], np.maximum.accumulate((begin + length)[order])
    if begin.size:
        at = np.searchsorted(begin, start, "right") - 1
        waits = np.maximum(end[np.maximum(at, 0)] - start, 0.0)
        took = took + np.where(at >= 0, waits, 0.0)
    return requests(EPOCH + start, took)


def periodic(rng: np.random.Generator, span: float, period: float = 37.0) -> Floats:
    """Times of a period with a random phase."""
    return np.arange(rng.random() * period, span, period)


def random(rng: np.random.Generator, span: float, mean: float = 30.0) -> Floats:
    """Times of a Poisson process."""
    return moments(rng, 1 / mean, span)


def bursts(rng: np.random.Generator, span: float) -> Floats:
    """Times in clusters, as messages of a journal."""
    heart = random(rng, span, 60.0)
    return np.sort(
        np.clip((heart[:, None] + rng.exponential(2.0, (heart.size, 8))).ravel(), 0, span)
    )


def events(name: str, at: Floats, length: Any = 0.0, label: str = "event") -> Events:
    """Events of one kind at these seconds of the run."""
    start = EPOCH + np.asarray(at)
    return Events(name, "times", start, start + length, [label] * start.size, "epoch")


def decoys(rng: np.random.Generator, span: float) -> list[Events]:
    """Sources that have nothing to do with any latency."""
    gc = periodic(rng, span, 37.0)
    return [
        events("gc.log", gc, 0.3 + 0.2 * rng.random(gc.size)),
        events("journal.json", bursts(rng, span)),
        events("crontab", np.arange(0.0, span, 60.0)),
        events("deploys.csv", random(rng, span, 200.0), 10.0),
    ]


def alone(world: World) -> Callable[[np.random.Generator, float], lk.Samples]:
    """Runs of a world without causes outside."""

    def run(rng: np.random.Generator, span: float) -> lk.Samples:
        start, took = world.run(rng, span)
        return requests(EPOCH + start, took)

    return run


NULLS: dict[str, Callable[[np.random.Generator, float], lk.Samples]] = {
    "i.i.d.": alone(World(rate=100.0)),
    "AR 10 s": alone(Drift(time=10.0, rate=100.0)),
    "AR 60 s": alone(Drift(time=60.0, rate=100.0)),
    "stalls 1/min, 0.5 s": alone(Stalls(per_minute=1.0, length=0.5, rate=100.0)),
    "stalls 4/min, 1 s": alone(Stalls(per_minute=4.0, length=1.0, rate=100.0)),
    "stalls every 37 s": lambda rng, span: served(rng, 100.0, span, periodic(rng, span), 0.4),
    "stalls in bursts": lambda rng, span: served(rng, 100.0, span, bursts(rng, span)[::4], 0.4),
}


@dataclass(frozen=True)
class Planted:
    """A run, its sources, and the names of those that are causes."""

    data: Any
    sources: list[Events]
    causes: set[str]


def gc_period(rng: np.random.Generator, blocks: int) -> Planted:
    """A collection every 37 s stops the server."""
    span = 37.0 * blocks
    at, length = periodic(rng, span), 0.4
    others = decoys(rng, span)[1:]
    return Planted(
        served(rng, 100, span, at, length), [events("gc.log", at, length), *others], {"gc.log"}
    )


def gc_random(rng: np.random.Generator, blocks: int) -> Planted:
    """Collections at irregular times, of which one in five is too short to matter."""
    at = np.cumsum(5 + rng.exponential(25.0, blocks))
    span = float(at[-1] + 20)
    more = np.sort(np.concatenate([at, random(rng, span, 150.0)]))
    return Planted(
        served(rng, 100, span, at, 0.4),
        [events("gc.log", more, 0.4), *decoys(rng, span)[1:]],
        {"gc.log"},
    )


def two_causes(rng: np.random.Generator, blocks: int) -> Planted:
    """Collections and a job, each behind a part of the stalls."""
    gc = np.cumsum(8 + rng.exponential(40.0, blocks))
    span = float(gc[-1] + 30)
    job = np.sort(rng.random(blocks)) * span
    both = np.concatenate([gc, job])
    length = np.concatenate([np.full(gc.size, 0.4), np.full(job.size, 0.8)])
    return Planted(
        served(rng, 100, span, both, length),
        [events("gc.log", gc, 0.4), events("job.csv", job, 0.8), *decoys(rng, span)[1:]],
        {"gc.log", "job.csv"},
    )


def lagging(rng: np.random.Generator, blocks: int) -> Planted:
    """A flush 2 s after a message stops the server."""
    at = np.cumsum(20 + rng.exponential(20.0, blocks))
    span = float(at[-1] + 20)
    return Planted(
        served(rng, 100, span, at + 2.0 + 0.05 * rng.random(at.size), 0.5),
        [events("app.csv", at), *decoys(rng, span)],
        {"app.csv"},
    )


def nightly(rng: np.random.Generator, blocks: int) -> Planted:
    """A backup from 02:00 to 02:20 with stalls, as a log of ten seconds over as many nights."""
    night = np.arange(blocks) * 86_400.0 + 7200.0 + 60.0 * rng.random(blocks)
    at = (night[:, None] + np.sort(rng.random((blocks, 20)) * 1200, axis=1)).ravel()
    rows = [served(rng, 2.0, 86_400.0 * blocks, at, 5.0).to_log("10s")]
    jobs = events("backup.csv", night, 1200.0)
    return Planted(rows[0], [jobs, *decoys(rng, 86_400.0 * blocks)[2:3]], {"backup.csv"})


def as_log(make: Callable[[np.random.Generator, int], Planted]) -> Callable[..., Planted]:
    """The same world as a log of seconds."""

    def run(rng: np.random.Generator, blocks: int) -> Planted:
        world = make(rng, blocks)
        return Planted(world.data.to_log("1s"), world.sources, world.causes)

    return run


PLANTED: dict[str, Callable[[np.random.Generator, int], Planted]] = {
    "GC every 37 s": gc_period,
    "GC every 37 s, log of 1 s": as_log(gc_period),
    "irregular GC": gc_random,
    "irregular GC, log of 1 s": as_log(gc_random),
    "two causes": two_causes,
    "2 s after a message": lagging,
    "nightly job": nightly,
}


def files_found(found: Any) -> set[str]:
    """The files of the significant rows."""
    rows = found.rows
    return {name.split(": ")[0] for name in rows[rows.significant].source}


def null_cell(asked: tuple[str, float, str, int]) -> tuple[int, int]:
    """Runs with a false finding about events, and about anything."""
    name, span, interval, runs = asked
    wrong = anything = 0
    for k in range(runs):
        rng = np.random.default_rng([k, int(span), list(NULLS).index(name)])
        data: Any = NULLS[name](rng, span)
        found = coincide(data.to_log(interval) if interval else data, decoys(rng, span))
        wrong += bool(files_found(found))
        own = (name != "stalls every 37 s" or "every" not in text for text in found.findings)
        anything += any(own)
    return wrong, anything


def planted_cell(asked: tuple[str, int, int]) -> tuple[int, int, int]:
    """Causes found, causes, and sources named wrongly."""
    name, blocks, runs = asked
    right = causes = wrong = 0
    for k in range(runs):
        rng = np.random.default_rng([k, blocks, list(PLANTED).index(name)])
        world = PLANTED[name](rng, blocks)
        files = files_found(coincide(world.data, world.sources))
        right += len(files & world.causes)
        wrong += len(files - world.causes)
        causes += len(world.causes)
    return right, causes, wrong


def tables(quick: bool) -> None:
    """Print both tables."""
    runs = 40 if quick else 200
    spans = ((370.0, ""), (1200.0, ""), (1200.0, "1s"))
    nulls = [(name, span, interval, runs) for name in NULLS for span, interval in spans]
    rows: list[Any] = []
    for (name, span, interval, _), found in zip(nulls, in_parallel(null_cell, nulls), strict=True):
        wrong = (f"{100 * number / runs:.1f}" for number in found)
        rows.append([name, f"{span:.0f} s", interval or "samples", *wrong])
    header = ["world without a cause", "run", "data", "false about events, %", "any false, %"]
    show("Events: false findings per run", header, rows, text=3)
    asked = [
        (name, blocks, runs // (4 if "night" in name else 1))
        for name in PLANTED
        for blocks in (10, 20)
    ]
    rows = [
        [name, blocks, f"{right / causes:.2f}", f"{right / max(right + wrong, 1):.2f}"]
        for (name, blocks, _), (right, causes, wrong) in zip(
            asked, in_parallel(planted_cell, asked), strict=True
        )
    ]
    show("Events: planted causes", ["planted cause", "events of it", "recall", "precision"], rows)
