"""How often `diagnose` is wrong: simulated measurements with a known truth, none of them made by latencykit's own simulator.

``python -m tests.benchmarks.truth_diagnosis`` prints the tables of `tables`; ``--quick`` a tenth of
them.

Closed worlds are load generators that wait for replies (paced, paced on a grid, catch-up, full
speed, think time, batches); honest worlds are users and open load generators that do not. Each run
is judged as samples of an unknown tool, as logs with intervals of 0.1 s and 1 s, as a histogram and
as a summary with rate and duration given. ``omits`` of an honest world, and ``clean`` of a closed
one whose stall was long enough to leave requests out, are wrong.
"""

from __future__ import annotations

import argparse
import heapq
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import latencykit as lk
from latencykit.core.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Rng = np.random.Generator
    Service = Callable[[Rng, int], Floats]

__all__ = [
    "CLOSED",
    "FORMS",
    "HONEST",
    "World",
    "closed_world",
    "honest_world",
    "rungs",
    "tables",
    "verdict",
]

SERVICES: dict[str, Service] = {
    "lognormal": lambda rng, n: 1.2e-3 * rng.lognormal(0.0, 1.0, n),
    "exponential": lambda rng, n: rng.exponential(2e-3, n),
    "bimodal": lambda rng, n: np.where(
        rng.random(n) < 0.05, rng.gamma(20, 2e-3, n), rng.gamma(4, 4e-4, n)
    ),
}
KINDS = ("paced", "grid", "catch-up", "full speed", "think time", "batch")
FORMS = ("samples", "log 0.1 s", "log 1 s", "histogram", "summary")
STEPS = (3, 6, 10, 15, 30)
MODES = ("omits", "unknown", "clean")


@dataclass(frozen=True)
class World:
    """One run: requests in seconds, and the truth about it."""

    start: Floats
    took: Floats
    rate: float
    duration: float
    failed: NDArray[np.bool_] | None = None
    closed: bool = False
    stall: float = 0.0

    @property
    def material(self) -> bool:
        """Whether the mean or a percentile up to p99.9 moves by a tenth when nobody waits (a bound from one stall)."""
        good = self.took if self.failed is None else self.took[~self.failed]
        added = self.stall**2 / (2 * self.duration)
        q = np.array([50.0, 75, 90, 95, 99, 99.9])
        floor = self.stall - (1 - q / 100) * self.duration
        return bool(added > 0.1 * good.mean() or (floor > 1.1 * np.percentile(good, q)).any())


# ---------------------------------------------------------------- servers


def no_queue(sent: Floats, work: Floats, stalls: Iterable[tuple[float, float]]) -> Floats:
    """Replies of a server with room for all: what overlaps a stall goes on after it."""
    end = sent + work
    for begin, stop in stalls:
        held = (sent < stop) & (end > begin)
        end = np.where(held, np.where(sent < begin, end + (stop - begin), stop + work), end)
    return end


def one_queue(sent: Floats, work: Floats, stalls: Iterable[tuple[float, float]]) -> Floats:
    """Replies of one server that takes requests in turn."""
    free, out, stops = 0.0, np.empty(sent.size), list(stalls)
    for k, (at, need) in enumerate(zip(sent.tolist(), work.tolist(), strict=True)):
        begin = max(at, free)
        for left, right in stops:
            if left <= begin < right:
                begin = right
        free = begin + need
        for left, right in stops:
            if begin < left < free:
                free += right - left
        out[k] = free
    return out


# ---------------------------------------------------------------- closed worlds


def loop(
    kind: str, connections: int, rate: float, service: Service, stalls: list[tuple[float, float]], duration: float, rng: Rng,
    *, hit: float = 1.0,
) -> World:  # fmt: skip
    """Simulate connections that wait for replies; `hit` is the part of them that the stalls reach."""
    interval = connections / rate
    draws = iter(service(rng, int(4 * rate * duration) + 100_000).tolist())
    phases = rng.permutation(connections) / rate
    if kind in ("full speed", "batch", "think time"):
        phases = rng.uniform(0, interval if kind == "think time" else 1e-3, connections)
    turns = [(float(phase), k, 0) for k, phase in enumerate(phases)]
    heapq.heapify(turns)
    sent, ended, batch = [], [], []
    while turns:
        at, who, slot = heapq.heappop(turns)
        if at >= duration:
            continue
        end = at + next(draws)
        for left, right in stalls if who < hit * connections else ():
            if at < right and end > left:
                end = end + right - left if at < left else right + end - at
        sent.append(at)
        ended.append(end)
        if kind == "full speed":
            after = end + 1e-6
        elif kind == "think time":
            after = end + float(rng.exponential(interval))
        elif kind == "paced":
            after = max(at + interval, end + 1e-6)
        elif kind == "grid":
            slot = max(slot + 1, int(np.ceil((end - phases[who]) / interval)))
            after = float(phases[who]) + slot * interval
        elif kind == "catch-up":
            slot += 1
            after = max(float(phases[who]) + slot * interval, end + 1e-6)
        else:  # a batch: all wait for the last of them
            batch.append(end)
            if len(batch) == connections:
                begin = max(max(batch) + 1e-6, sent[-connections] + interval)
                for k in range(connections):
                    heapq.heappush(turns, (begin + k * 1e-6, k, 0))
                batch = []
            continue
        heapq.heappush(turns, (after, who, slot))
    start, end = np.array(sent), np.array(ended)
    longest = max((right - left for left, right in stalls), default=0.0)
    return World(
        start, end - start, start.size / duration, duration, closed=True, stall=longest * hit
    )


CLOSED = [
    ("catch-up", 50, 500.0, "bimodal"),
    ("catch-up", 100, 500.0, "lognormal"),
    ("catch-up", 20, 200.0, "bimodal"),
    ("catch-up", 8, 400.0, "exponential"),
    ("paced", 100, 500.0, "bimodal"),
    ("paced", 50, 500.0, "lognormal"),
    ("paced", 10, 200.0, "exponential"),
    ("paced", 1, 50.0, "lognormal"),
    ("grid", 20, 400.0, "exponential"),
    ("grid", 64, 800.0, "bimodal"),
    ("think time", 40, 300.0, "lognormal"),
    ("batch", 20, 200.0, "exponential"),
    ("full speed", 8, 1200.0, "lognormal"),
    ("full speed", 32, 4000.0, "exponential"),
]
"""Kind, connections, requests per second, service."""


def seeded(*key: object) -> Rng:
    """A generator that depends on its key alone."""
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


def closed_world(
    cell: tuple[str, int, float, str], steps: float, seed: int, *, stalls: int = 1, hit: float = 1.0
) -> World:
    """One run of a closed cell with stalls of so many intervals of a connection."""
    kind, connections, rate, service = cell
    rng = seeded(cell, steps, seed, stalls, hit)
    length = steps * connections / rate
    duration = max(20.0, 6 * length) if kind != "full speed" else 8.0 + 3 * length
    begin = rng.uniform(0.25, 0.6) * duration
    windows = [
        (begin + k * (length + 2.0), begin + k * (length + 2.0) + length * (0.9**k))
        for k in range(stalls)
    ]
    return loop(
        kind,
        connections,
        rate,
        SERVICES[service],
        windows,
        duration + (stalls - 1) * (length + 2),
        rng,
        hit=hit,
    )


# ---------------------------------------------------------------- honest worlds


def arrivals(rng: Rng, rate: float, duration: float, kind: str = "") -> Floats:
    """Moments at which independent users, or a schedule, send."""
    if (kind or ("fixed" if rng.random() < 0.3 else "Poisson")) == "fixed":
        return np.arange(rng.uniform(0, 1 / rate), duration, 1 / rate)
    return np.sort(rng.uniform(0, duration, rng.poisson(rate * duration)))


def any_service(rng: Rng) -> Service:
    """One of the services."""
    return SERVICES[list(SERVICES)[int(rng.integers(len(SERVICES)))]]


def _plain(
    rng: Rng, *, rate: tuple[float, float] = (60, 500), duration: float = 30.0, stalls: Callable[[Rng], Any] | None = None,
    kind: str = "", queue: bool = False,
) -> World:  # fmt: skip
    speed = float(rng.uniform(*rate))
    at = arrivals(rng, speed, duration, kind)
    work = any_service(rng)(rng, at.size)
    windows = stalls(rng) if stalls else []
    if queue:
        end = one_queue(
            at, np.minimum(work, 20 * work.mean()) * (0.6 / speed / work.mean()), windows
        )
    else:
        end = no_queue(at, work, windows)
    return World(at, end - at, speed, duration, stall=max((b - a for a, b in windows), default=0.0))


def _one(
    low: float, high: float, until: float = 20.0
) -> Callable[[Rng], list[tuple[float, float]]]:
    def windows(rng: Rng) -> list[tuple[float, float]]:
        begin = float(rng.uniform(6, until))
        return [(begin, begin + float(rng.uniform(low, high)))]

    return windows


def _busy(rng: Rng) -> World:
    speed, duration = float(rng.uniform(60, 300)), 30.0
    at = arrivals(rng, speed, duration, "Poisson")
    end = one_queue(at, rng.exponential(0.9 / speed, at.size), [])
    return World(at, end - at, speed, duration)


def _collections(rng: Rng) -> World:
    gaps = np.cumsum(rng.uniform(3, 6, 8))
    return _plain(
        rng,
        stalls=lambda _: [
            (float(t), float(t + w)) for t, w in zip(gaps, rng.uniform(0.05, 0.4, 8), strict=True)
        ],
    )


def _at_end(rng: Rng) -> World:
    begin = float(rng.uniform(24, 28))
    return _plain(rng, stalls=lambda _: [(begin, begin + float(rng.uniform(2, 6)))])


def _parts(rng: Rng, parts: int) -> World:
    speed, duration = float(rng.uniform(100, 500)), 30.0
    at = arrivals(rng, speed, duration)
    work, mine = any_service(rng)(rng, at.size), rng.integers(parts, size=at.size) == 0
    windows = _one(1, 5)(rng)
    end = np.where(mine, no_queue(at, work, windows), at + work)
    return World(at, end - at, speed, duration, stall=windows[0][1] - windows[0][0])


def _retries(rng: Rng, *, storm: bool = False) -> World:
    world = _plain(rng, stalls=_one(1.5, 4))
    limit = float(rng.uniform(0.5, 1.0))
    start, end = [world.start], [world.start + world.took]
    for k in range(1, 9 if storm else 3):
        again = world.start[world.took > k * limit] + k * limit
        due = (world.start + world.took)[world.took > k * limit]
        start.append(again)
        end.append(due + rng.exponential(2e-3, due.size))
    at, stop = np.concatenate(start), np.concatenate(end)
    late = stop - at > limit
    took = np.minimum(stop - at, limit) if storm else stop - at
    return World(at, took, world.rate, world.duration, late if storm else None, stall=world.stall)


def _batches(rng: Rng) -> World:
    every, size = float(rng.uniform(0.2, 2.0)), int(rng.integers(5, 60))
    at = np.sort((np.arange(0, 30, every)[:, None] + rng.uniform(0, 1e-3, (1, size))).ravel())
    end = no_queue(at, any_service(rng)(rng, at.size), _one(1, 5)(rng))
    return World(at, end - at, size / every, 30.0)


def _pool(rng: Rng) -> World:
    """Users wait for one of few connections; timed from when they came."""
    speed, few = float(rng.uniform(60, 300)), int(rng.integers(4, 40))
    at, windows = arrivals(rng, speed, 30.0), _one(0.5, 4)(rng)
    work, free, end = any_service(rng)(rng, at.size), [0.0] * few, np.empty(at.size)
    for k, (due, need) in enumerate(zip(at.tolist(), work.tolist(), strict=True)):
        begin = max(due, heapq.heappop(free))
        end[k] = float(no_queue(np.array([begin]), np.array([need]), windows)[0])
        heapq.heappush(free, float(end[k]))
    return World(at, end - at, speed, 30.0, stall=windows[0][1] - windows[0][0])


def _bucket(rng: Rng) -> World:
    """A token bucket lets requests through at its own rate; their users wait for it."""
    speed = float(rng.uniform(60, 300))
    at = arrivals(rng, speed, 30.0, "Poisson")
    at = np.sort(np.concatenate((at, rng.uniform(10, 10.5, int(speed * rng.uniform(0.5, 3))))))
    through = one_queue(at, np.full(at.size, 1 / (1.15 * speed)), [])
    end = through + any_service(rng)(rng, at.size)
    return World(at, end - at, speed, 30.0)


def _low(rng: Rng) -> World:
    return _plain(rng, rate=(0.5, 5), duration=120.0, stalls=_one(1, 20, 80))


def _kept(world: World, keep: NDArray[np.bool_], **changes: Any) -> World:
    values = {"rate": world.rate, "duration": world.duration, "stall": world.stall} | changes
    return World(world.start[keep], world.took[keep], **values)


def _deploy(rng: Rng) -> World:
    """Traffic goes elsewhere for some seconds, and one of the last requests takes about as long."""
    world, begin, length = _plain(rng), float(rng.uniform(8, 18)), float(rng.uniform(1, 5))
    keep = (world.start < begin) | (world.start > begin + length)
    took = world.took.copy()
    last = int(np.flatnonzero(world.start < begin)[-1 - int(rng.integers(3))])
    took[last] = (begin - world.start[last]) + length * float(
        rng.choice([1.0, rng.uniform(0.7, 1.3)])
    )
    return _kept(World(world.start, took, world.rate, 30.0), keep)


def _lull(rng: Rng) -> World:
    """Nobody comes for a while; a slow request of its own lies in it."""
    world, begin, length = _plain(rng), float(rng.uniform(8, 18)), float(rng.uniform(0.5, 4))
    keep = (world.start < begin) | (world.start > begin + length)
    took = world.took.copy()
    last = int(np.flatnonzero(world.start < begin)[-1])
    took[last] = float(rng.uniform(0.6, 1.1)) * length
    return _kept(World(world.start, took, world.rate, 30.0), keep)


def _clock(rng: Rng, step: float, *, one: bool = False) -> World:
    world = _plain(rng, rate=(60, 300))
    end = world.start + world.took
    at = float(rng.uniform(8, 20))
    if one:  # in the middle of a request that is alone
        before = np.maximum.accumulate(np.concatenate(([0.0], end[:-1])))
        after = np.concatenate((world.start[1:], [np.inf]))
        alone = np.flatnonzero((world.start > 8) & (before < world.start) & (after > end))
        if alone.size:
            which = int(alone[int(rng.integers(alone.size))])
            at = float(world.start[which] + world.took[which] / 2)
    start, stop = world.start + step * (world.start > at), end + step * (end > at)
    return World(start, np.maximum(stop - start, 0.0), world.rate, 30.0 + max(step, 0.0))


def _refused(rng: Rng) -> World:
    """Frozen: the backlog takes some connections, the others are refused at once and counted apart."""
    at = arrivals(rng, speed := float(rng.uniform(60, 500)), 30.0)
    (begin, thaw), backlog = _one(1, 6)(rng)[0], int(rng.integers(1, 130))
    end = no_queue(at, any_service(rng)(rng, at.size), [(begin, thaw)])
    inside = (at >= begin) & (at < thaw)
    refused = inside & (np.cumsum(inside) > backlog)
    return World(at, np.where(refused, 2e-4, end - at), speed, 30.0, refused, stall=thaw - begin)


def _balancer(rng: Rng) -> World:
    """The balancer takes the frozen node out after some checks, and back when a check is answered.

    Its users come at random: a schedule that is taken away and given back looks like a paced loop,
    and nothing tells.
    """
    world, begin, length = (
        _plain(rng, kind="Poisson"),
        float(rng.uniform(6, 18)),
        float(rng.uniform(2, 8)),
    )
    found = begin + float(rng.uniform(0.05, 1.0)) * float(rng.choice([0.1, 1.0]))
    back = begin + length + float(rng.choice([0.0, 1e-3, rng.uniform(0, 0.3), rng.uniform(0, 2)]))
    end = no_queue(world.start, world.took, [(begin, begin + length)])
    keep = (world.start < found) | (world.start >= back)
    return _kept(World(world.start, end - world.start, world.rate, 30.0, stall=length), keep)


def _scaling(rng: Rng) -> World:
    """Load grows, latencies with it, until new machines come."""
    low, high = float(rng.uniform(20, 60)), float(rng.uniform(200, 500))
    at = np.sort(30 * np.sqrt(rng.uniform((low / high) ** 2, 1, int((low + high) / 2 * 30))))
    slow = 1 + 30 * np.clip((at - 12) / 6, 0, 1) * (at < 18)
    end = no_queue(
        at, any_service(rng)(rng, at.size) * slow, _one(0.5, 3)(rng) if rng.random() < 0.5 else []
    )
    return World(at, end - at, at.size / 30, 30.0)


def _on_off(rng: Rng) -> World:
    edges = np.cumsum(rng.exponential(1.0, 60))
    at = arrivals(rng, 300, 30.0, "Poisson")
    at = at[np.searchsorted(edges, at) % 2 == 0]
    end = no_queue(at, any_service(rng)(rng, at.size), _one(0.5, 4)(rng))
    return World(at, end - at, at.size / 30, 30.0)


def _warm_up(rng: Rng) -> World:
    world, long = _plain(rng), float(rng.uniform(1, 6))
    return World(world.start, world.took + 0.8 * np.exp(-world.start * 4 / long), world.rate, 30.0)


def _cron(rng: Rng) -> World:
    world = _plain(rng)
    times = np.arange(rng.uniform(0, 5), 30, 5.0)
    extra = np.sort((times[:, None] + rng.uniform(0, 0.05, (1, 80))).ravel())
    at = np.sort(np.concatenate((world.start, extra)))
    end = no_queue(at, any_service(rng)(rng, at.size), _one(0.5, 4)(rng))
    return World(at, end - at, at.size / 30, 30.0)


def _limited(rng: Rng) -> World:
    """Some requests are rejected at once."""
    world = _plain(rng, stalls=_one(0.5, 4))
    rejected = rng.random(world.start.size) < 0.1
    return World(
        world.start,
        np.where(rejected, 3e-4, world.took),
        world.rate,
        30.0,
        rejected,
        stall=world.stall,
    )


def _slow_client(rng: Rng) -> World:
    world = _plain(rng)
    mine = rng.random(world.start.size) < 0.02
    return World(world.start, world.took + mine * rng.uniform(0.3, 2), world.rate, 30.0)


def _pool_of_slow(rng: Rng) -> World:
    world = _plain(rng)
    slow = rng.random(world.start.size) < 10 ** rng.uniform(-3.5, -1.5)
    return World(world.start, np.where(slow, rng.uniform(0.5, 3), world.took), world.rate, 30.0)


def _drift(rng: Rng) -> World:
    world = _plain(rng, stalls=_one(0.5, 4))
    start, end = world.start * (1 + 2e-4), (world.start + world.took) * (1 + 2e-4)
    grain = float(rng.choice([1e-6, 1e-3]))
    start, end = np.floor(start / grain) * grain, np.floor(end / grain) * grain
    return World(start, end - start, world.rate, 30.0, stall=world.stall)


HONEST: dict[str, Callable[[Rng], World]] = {
    "quiet": _plain,
    "one stall": lambda rng: _plain(rng, stalls=_one(0.5, 6)),
    "one stall, one queue": lambda rng: _plain(rng, stalls=_one(0.5, 4), queue=True),
    "busy queue": _busy,
    "collections": _collections,
    "stall at the end": _at_end,
    "one shard of eight": lambda rng: _parts(rng, 8),
    "half of the servers": lambda rng: _parts(rng, 2),
    "retries": _retries,
    "retry storm": lambda rng: _retries(rng, storm=True),
    "batches": _batches,
    "connection pool": _pool,
    "token bucket": _bucket,
    "low rate": _low,
    "deploy, one slow request": _deploy,
    "lull, one slow request": _lull,
    "clock set back": lambda rng: _clock(rng, -float(rng.uniform(0.2, 5))),
    "clock set forward": lambda rng: _clock(rng, float(rng.uniform(0.5, 6))),
    "clock set forward, one in flight": lambda rng: _clock(
        rng, float(rng.choice([2.0, 5.0, rng.uniform(0.5, 6)])), one=True
    ),
    "refused while frozen": _refused,
    "taken out by a balancer": _balancer,
    "autoscaling ramp": _scaling,
    "on and off": _on_off,
    "warm-up": _warm_up,
    "cron batches": _cron,
    "rate limit": _limited,
    "slow client": _slow_client,
    "isolated slow requests": _pool_of_slow,
    "coarse clock that drifts": _drift,
}


def honest_world(name: str, seed: int) -> World:
    """One run of an honest world."""
    return HONEST[name](seeded(name, seed))


# ---------------------------------------------------------------- judging


def rungs(world: World) -> Iterable[tuple[str, Any, dict[str, Any]]]:
    """Yield each form of a run, as an unknown tool would leave it, with what is said to `diagnose`."""
    order = np.argsort(world.start, kind="stable")
    failed = None if world.failed is None else world.failed[order].astype(np.int8)
    samples = lk.Samples(
        start=np.rint(world.start[order] * 1e9), duration=np.rint(world.took[order] * 1e9),
        outcome=failed,
        run=Run(measure="service"),
    )  # fmt: skip
    known = {"rate": world.rate, "duration": world.duration}
    yield "samples", samples, {}
    yield "log 0.1 s", samples.to_log("100ms"), {}
    yield "log 1 s", samples.to_log("1s"), {}
    histogram = samples.histogram()
    yield "histogram", histogram, known
    stats = {
        "mean": float(histogram.mean),
        "max": float(histogram.max),
        "p50": float(histogram.percentile(50)),
    }
    yield "summary", lk.Summary(stats, count=histogram.count, unit="ns"), known


def verdict(rung: Any, known: dict[str, Any]) -> str:
    """The verdict alone."""
    return str(lk.diagnose(rung, **known).verdict)


def _cell(found: Counter[str]) -> str:
    return "/".join(str(found[mode]) for mode in MODES)


def false_clean(
    runs: int, cells: list[tuple[str, int, float, str]], steps: tuple[float, ...] = STEPS
) -> tuple[str, str]:
    """Table of verdicts on samples by loop and stall length, and of all forms of the same runs."""
    rows, forms, power = (
        [],
        {form: Counter[str]() for form in FORMS},
        {"below 12": Counter[str](), "12 and more": Counter[str]()},
    )
    for cell in cells:
        line = []
        for k in steps:
            seen: Counter[str] = Counter()
            for seed in range(runs):
                world = closed_world(cell, k, seed)
                for form, rung, known in rungs(world):
                    one = verdict(rung, known)
                    if form == "samples":
                        seen[one] += 1
                        if world.material and cell[0] in ("paced", "grid", "catch-up"):
                            power["below 12" if k < 12 else "12 and more"][one] += 1
                    if world.material or one == "clean":
                        forms[form][one] += 1
            line.append(_cell(seen))
        rows.append(f"| {cell[0]} {cell[1]}, {cell[2]:g}/s, {cell[3]} | " + " | ".join(line) + " |")
    head = (
        "| loop, connections, rate, service | "
        + " | ".join(f"{k:g} I" for k in steps)
        + " |\n|"
        + "---|" * (len(steps) + 1)
    )
    other = [
        "| form | closed, material |",
        "|---|---|",
        *(f"| {form} | {_cell(forms[form])} |" for form in FORMS),
    ]
    other += [
        f"| samples, paced or catching up, stalls of {name} intervals | {_cell(power[name])} |"
        for name in power
    ]
    return "\n".join([head, *rows]), "\n".join(other)


def any_closed(runs: int) -> str:
    """Table of verdicts on loops, rates, services, numbers and lengths of stalls and parts of the connections at random."""
    found = {(kind, form): Counter[str]() for kind in KINDS for form in FORMS}
    for seed in range(runs):
        for kind in KINDS:
            rng = seeded("any closed", kind, seed)
            rate = float(np.exp(rng.uniform(np.log(30), np.log(1500))))
            connections = int(np.clip(np.exp(rng.uniform(0, np.log(200))), 1, 0.4 * rate))
            service = list(SERVICES)[int(rng.integers(len(SERVICES)))]
            steps, stalls = (
                float(np.exp(rng.uniform(np.log(1.5), np.log(40)))),
                int(rng.integers(1, 5)),
            )
            if kind == "full speed":
                rate = connections / 2.5e-3
            cell = (kind, connections, rate, service)
            world = closed_world(
                cell, steps, seed, stalls=stalls, hit=float(rng.choice([1.0, 1.0, 0.5]))
            )
            for form, rung, known in rungs(world):
                found[kind, form][verdict(rung, known)] += 1
    rows = [
        f"| {kind} | " + " | ".join(_cell(found[kind, form]) for form in FORMS) + " |"
        for kind in KINDS
    ]
    return "\n".join(
        [f"| closed, at random | {' | '.join(FORMS)} |", "|" + "---|" * (len(FORMS) + 1), *rows]
    )


def honest(runs: int, names: Iterable[str] | None = None) -> str:
    """Table of verdicts on honest worlds by form."""
    total = {form: Counter[str]() for form in FORMS}
    rows = []
    for name in HONEST if names is None else names:
        found = {form: Counter[str]() for form in FORMS}
        for seed in range(runs):
            for form, rung, known in rungs(honest_world(name, seed)):
                found[form][verdict(rung, known)] += 1
        rows.append(f"| {name} | " + " | ".join(_cell(found[form]) for form in FORMS) + " |")
        for form in FORMS:
            total[form].update(found[form])
    rows.append("| all | " + " | ".join(_cell(total[form]) for form in FORMS) + " |")
    return "\n".join(
        [f"| honest world | {' | '.join(FORMS)} |", "|" + "---|" * (len(FORMS) + 1), *rows]
    )


def tables(quick: bool) -> str:
    """Return the tables of wrong and right verdicts as Markdown; each cell is omits/unknown/clean."""
    runs = 2 if quick else 20
    by_cell, by_form = false_clean(runs, CLOSED)
    near = [
        (kind, c, rate, service)
        for kind, c, rate, service in CLOSED
        if kind in ("catch-up", "paced", "grid")
    ]
    between, _ = false_clean(max(runs // 4, 1), near, (1.5, 2, 4, 8, 12, 20))
    unit = "the stall's length in intervals I = c/r of a connection"
    return "\n\n".join([
        f"Verdicts on samples of closed loops of an unknown tool (omits/unknown/clean) by {unit}",
        by_cell,
        "The same, neighbouring lengths", between, "The same runs in all forms", by_form,
        "Closed loops at random, 1.5 to 40 I", any_closed(3 if quick else 40),
        "Honest worlds (omits/unknown/clean)", honest(2 if quick else 36),
    ])  # fmt: skip


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a tenth of the runs")
    print(tables(options.parse_args().quick))
