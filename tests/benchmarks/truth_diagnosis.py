"""Simulated measurements whose omission is known, for `tests.benchmarks.omission`, which prints the tables.

None of the measurements comes from latencykit's own simulator. Closed worlds are load generators
that wait for replies (paced, paced on a grid, catch-up, full speed, think time, batches), with and
without freezes of the server; honest worlds are users and open load generators that do not wait.
Each run is judged in the forms that a tool may leave of it (`data_types`).
"""

from __future__ import annotations

import heapq
import zlib
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

SERVICES: dict[str, Service] = {
    "lognormal": lambda rng, n: 1.2e-3 * rng.lognormal(0.0, 1.0, n),
    "exponential": lambda rng, n: rng.exponential(2e-3, n),
    "bimodal": lambda rng, n: np.where(
        rng.random(n) < 0.05, rng.gamma(20, 2e-3, n), rng.gamma(4, 4e-4, n)
    ),
}
BROAD: dict[str, Service] = {  # of mean about 1
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "gamma (4)": lambda rng, n: rng.gamma(4.0, 0.25, n),
    "lognormal 0.5": lambda rng, n: rng.lognormal(-0.125, 0.5, n),
    "lognormal 1": lambda rng, n: rng.lognormal(-0.5, 1.0, n),
    "lognormal 1.5": lambda rng, n: rng.lognormal(-1.125, 1.5, n),
    "Pareto 1.5": lambda rng, n: (1 - rng.random(n)) ** (-1 / 1.5) / 3.0,
    "2 % × 50": lambda rng, n: np.where(rng.random(n) < 0.02, 50.0, 1.0) * rng.exponential(0.5, n),
    "Weibull 0.5": lambda rng, n: 0.5 * rng.weibull(0.5, n),
    "bimodal": lambda rng, n: np.where(
        rng.random(n) < 0.05, rng.normal(10.0, 0.3, n), rng.normal(0.5, 0.02, n)
    ),
    "one in 1,000 × 200": lambda rng, n: (
        np.where(rng.random(n) < 1e-3, 200.0, 1.0) * rng.gamma(8.0, 0.1, n)
    ),
}


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
    connections: int = 8
    aimed: float = 0.0  # requests per second
    kind: str = ""

    @property
    def material(self) -> bool:
        """Whether the mean or a percentile up to p99.9 moves by a tenth when nobody waits (a bound from one stall)."""
        good = self.took if self.failed is None else self.took[~self.failed]
        added = self.stall**2 / (2 * self.duration)
        q = np.array([50.0, 75, 90, 95, 99, 99.9])
        q = q[good.size * (1 - q / 100) >= 3]  # else it is one or two requests
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

    def without(pause: Floats) -> Floats:  # Lindley's recursion
        total = np.cumsum(work + pause)
        return total + np.maximum.accumulate(sent - total + work + pause)

    pause = np.zeros(sent.size)
    for begin, stop in sorted(stalls):
        end = without(pause)
        first = int(np.argmax(end > begin)) if (end > begin).any() else sent.size
        if first < sent.size:
            at = max(end[first] - work[first] - pause[first], begin)
            pause[first] += max(stop - at, 0.0)
    return without(pause)


# ---------------------------------------------------------------- closed worlds


def loop(
    kind: str, connections: int, rate: float, service: Service, stalls: list[tuple[float, float]], duration: float, rng: Rng,
    *, hit: float = 1.0,
) -> World:  # fmt: skip
    """Simulate connections that wait for replies; `hit` is the part of them that the stalls reach.

    One row per connection: its sends are running sums, and each stall lengthens one of its requests.
    """
    interval = connections / rate
    work = service(rng, 4096 + 16 * connections)
    usual = max(float(np.median(work)), 1e-9)
    each = duration / {"full speed": usual, "think time": interval}.get(kind, interval)
    work = service(rng, connections * int(1.3 * each + 40)).reshape(connections, -1)
    phase = rng.permutation(connections)[:, None] / rate
    if kind in ("full speed", "batch", "think time"):
        width = interval if kind == "think time" else 1e-3
        phase = rng.uniform(0, width, connections)[:, None]
    think = rng.exponential(interval, work.shape) if kind == "think time" else np.zeros(())
    slots = phase + interval * np.arange(work.shape[1])

    def sends() -> Floats:
        if kind == "catch-up":
            total = np.cumsum(work + 1e-6, axis=1)
            return total + np.maximum.accumulate(slots - total + work, axis=1) - work
        if kind == "paced":
            step = np.maximum(work + 1e-6, interval)
        elif kind == "grid":
            step = interval * np.maximum(np.ceil(work / interval), 1)
        elif kind == "batch":  # all wait for the last of them
            step = np.maximum(work.max(axis=0, keepdims=True) + 1e-6, interval) + 0 * work
        else:
            step = work + think + 1e-6
        return phase + np.cumsum(step, axis=1) - step

    rows = np.flatnonzero(np.arange(connections) < hit * connections)
    for begin, stop in sorted(stalls):
        start = sends()[rows]
        after = start + work[rows] > begin
        first = after.argmax(axis=1)
        at = start[np.arange(rows.size), first]
        longer = np.where(after.any(axis=1) & (at < stop), stop - np.maximum(at, begin), 0.0)
        work[rows, first] += longer
    start = sends()
    sent = start < duration
    start, took = start[sent], work[sent]
    longest = max((right - left for left, right in stalls), default=0.0)
    return World(
        start, took, start.size / duration, duration, closed=True, stall=longest * hit,
        connections=connections, aimed=rate, kind=kind,
    )  # fmt: skip


def seeded(*key: object) -> Rng:
    """A generator that depends on its key alone."""
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


def closed_world(
    cell: tuple[str, int, float, str], steps: float, seed: int, *, stalls: int = 1, hit: float = 1.0
) -> World:
    """One run of a closed cell with stalls of N intervals of a connection."""
    kind, connections, rate, service = cell
    rng = seeded(cell, steps, seed, stalls, hit)
    length = steps * connections / rate
    duration = max(20.0, 6 * length) if kind != "full speed" else 8.0 + 3 * length
    begin = rng.uniform(0.25, 0.6) * duration
    windows = [
        (begin + k * (length + 2.0), begin + k * (length + 2.0) + length * (0.9**k))
        for k in range(stalls)
    ]
    duration += (stalls - 1) * (length + 2)
    return loop(kind, connections, rate, SERVICES[service], windows, duration, rng, hit=hit)


def broad_world(kind: str, connections: int, service: str, seed: int) -> World:
    """A closed loop of a broad service in which nothing ever stopped."""
    rng = seeded("broad", kind, connections, service, seed)
    rate = float(np.exp(rng.uniform(np.log(150), np.log(1500))))
    busy = 1.0 if kind == "full speed" else float(rng.uniform(0.05, 0.7))
    mean = busy * connections / rate
    if service == "queue .9":  # one server for all connections
        duration = 20.0
        at = np.sort(rng.uniform(0, duration, rng.poisson(rate * duration)))
        end = one_queue(at, rng.exponential(0.9 / rate, at.size), [])
        under_way = np.arange(at.size) - np.searchsorted(end, at) < connections
        at, end = at[under_way], end[under_way]
        return World(
            at, end - at, at.size / duration, duration, closed=True, connections=connections,
            aimed=rate, kind="think time",
        )  # fmt: skip
    draw = BROAD[service]
    return loop(
        kind, connections, rate, lambda r, n: mean * np.maximum(draw(r, n), 1e-3), [],
        float(rng.uniform(10, 40)), rng,
    )  # fmt: skip


def frozen_world(kind: str, connections: int, steps: float, seed: int) -> World:
    """A loop of which one freeze stops all connections for some intervals of a connection."""
    rng = seeded("frozen", kind, connections, steps, seed)
    low, high = np.log(6 * connections**0.5), np.log(120 * connections**0.45)
    rate = float(np.exp(rng.uniform(low, high)))
    names = ("exponential", "gamma (4)", "lognormal 0.5", "lognormal 1")
    draw = BROAD[names[int(rng.integers(len(names)))]]
    busy = 1.0 if kind == "full speed" else float(rng.uniform(0.02, 0.4))
    mean, length = busy * connections / rate, steps * connections / rate
    duration = float(rng.uniform(4, 10)) * length + 15.0
    begin = float(rng.uniform(0.2, 0.7)) * duration
    return loop(
        kind, connections, rate, lambda r, n: mean * draw(r, n), [(begin, begin + length)],
        duration, rng,
    )  # fmt: skip


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
    begin = np.cumsum(rng.uniform(3, 6, 8))

    def stalls(rng: Rng) -> list[tuple[float, float]]:
        return list(zip(begin.tolist(), (begin + rng.uniform(0.05, 0.4, 8)).tolist(), strict=True))

    return _plain(rng, stalls=stalls)


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
    """The balancer takes the frozen node out after some checks, and back when one is answered; its users come at random."""
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


def _bursts(rng: Rng) -> World:
    """Traffic comes for 1 to 3 s of every 4 to 10; one request in a thousand is slow, or the server stops."""
    speed, duration, every = float(rng.uniform(60, 400)), 60.0, float(rng.uniform(4, 10))
    at = arrivals(rng, speed, duration)
    at = at[at % every < float(rng.uniform(1, 3))]
    slow, work = rng.random(at.size) < 1e-3, any_service(rng)(rng, at.size)
    stopped = _one(0.5, 4)(rng) if rng.random() < 0.5 else []
    end = no_queue(at, np.where(slow & (not stopped), rng.uniform(0.5, 4, at.size), work), stopped)
    return World(at, end - at, at.size / duration, duration)


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
    took = np.where(rejected, 3e-4, world.took)
    return World(world.start, took, world.rate, 30.0, rejected, stall=world.stall)


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
    "bursts": _bursts,
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


def data_types(
    world: World, names: Iterable[str] | None = None
) -> Iterable[tuple[str, Any, dict[str, Any]]]:
    """Yield each form of a run with what is said to `diagnose`."""
    # `rate and N` are those aimed at, stated by the caller; `tool` is one that is known to wait.
    order = np.argsort(world.start, kind="stable")
    failed = None if world.failed is None else world.failed[order].astype(np.int8)
    samples = lk.Samples(
        start=np.rint(world.start[order] * 1e9), duration=np.rint(world.took[order] * 1e9),
        outcome=failed, run=Run(measure="service"),
    )  # fmt: skip
    histogram, log = samples.histogram(), samples.to_log("1s")
    stats = {"mean": histogram.mean, "max": histogram.max, "p50": histogram.percentile(50)}
    summary = lk.Summary({name: float(v) for name, v in stats.items()}, count=histogram.count)
    tool = {
        "tool": "hey", "loop": "closed" if world.kind == "full speed" else "paced",
        "corrected": "none", "measure": "service", "duration": world.duration,
    }  # fmt: skip
    known = {"rate": world.rate, "duration": world.duration}
    aimed = {"rate": world.aimed or world.rate, "connections": world.connections}
    made: dict[str, tuple[Any, dict[str, Any]]] = {
        "samples": (samples, {}),
        "log 0.1 s": (samples.to_log("100ms"), {}),
        "log 1 s": (log, {}),
        "histogram": (histogram, known),
        "summary": (summary, known),
        "log 1 s, rate and N": (log, aimed),
        "histogram, rate and N": (histogram, aimed | {"duration": world.duration}),
    }
    if world.closed:
        made |= {
            "samples, tool": (samples.with_run(**tool), {}),
            "log 1 s, tool": (log.with_run(**tool), {}),
            "histogram, tool": (histogram.with_run(**tool), {}),
            "histogram, tool and N": (
                histogram.with_run(**tool, connections=world.connections),
                {},
            ),
            "summary, tool and N": (summary.with_run(**tool, connections=world.connections), {}),
        }
    for name, (data, said) in made.items():
        if names is None or name in names:
            yield name, data, said


LENGTHS = {"3–6": (3.0, 6.0), "6–12": (6.0, 12.0), "≥ 12": (12.0, 50.0)}
"""Lengths of freezes, in intervals between requests of one connection."""
