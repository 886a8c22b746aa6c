"""When requests are due: ascending times in nanoseconds from the begin of the run."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latencykit._typing import Floats
from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.errors import InvalidArgumentError
from latencykit.simulate.server import Queue, Server
from latencykit.units import parse_duration


def fixed(rate: float, duration: str | float) -> Floats:
    """Return arrivals at equal distances.

    Parameters
    ----------
    rate : float
        Requests per second.
    duration : str or float
        Length of the run: ``"20s"``, or seconds.

    Returns
    -------
    ndarray of float64, shape (n,)
        Nanoseconds; the first at 0, all before `duration`.

    Examples
    --------
    >>> fixed(rate=2, duration="2s").tolist()
    [0.0, 500000000.0, 1000000000.0, 1500000000.0]
    """
    span = _span(rate, duration)
    return np.asarray(np.arange(np.ceil(round(rate * span / 1e9, 6))) * (1e9 / rate), np.float64)


def poisson(rate: float, duration: str | float, seed: int = 0) -> Floats:
    """Return a Poisson process of `rate` arrivals per second, ns; see `fixed`.

    Examples
    --------
    >>> poisson(rate=100, duration=10, seed=1).size
    1001
    """
    rng, span = np.random.default_rng(seed), _span(rate, duration)
    return np.sort(rng.uniform(0.0, span, rng.poisson(rate * span / 1e9)))


def bursty(
    rate: float, duration: str | float, on: str | float = 0.5, off: str | float = 1.5, seed: int = 0
) -> Floats:
    """Return arrivals in bursts: a Poisson process that runs for a while and pauses for a while.

    Parameters
    ----------
    rate : float
        Requests per second on the long run; within a burst they come ``(on + off) / on`` times as
        fast.
    duration : str or float
    on, off : str or float
        Mean length of a burst and of the pause after it (both exponential), seconds.
    seed : int

    Returns
    -------
    ndarray of float64, shape (n,)
        Nanoseconds.

    Examples
    --------
    >>> 500 < bursty(rate=100, duration=20, seed=1).size < 4000
    True
    """
    rng, span = np.random.default_rng(seed), _span(rate, duration)
    busy, idle = parse_duration(on, "s"), parse_duration(off, "s")
    cycles = int(4 * span / (busy + idle)) + 16
    ends = np.cumsum(
        np.stack([rng.exponential(busy, cycles), rng.exponential(idle, cycles)], 1).reshape(-1)
    )
    edges = np.concatenate(([0.0], ends))
    # burst time passed before each burst
    active = np.cumsum(np.concatenate(([0.0], np.diff(edges)[::2])))
    size = rng.poisson(rate * (busy + idle) / busy * active[-1] / 1e9)
    within = np.sort(rng.uniform(0.0, active[-1], size))
    burst = np.searchsorted(active, within, "right") - 1
    arrivals = edges[::2][burst] + within - active[burst]
    return np.asarray(arrivals[arrivals < span])


def ramp(rate: float, to: float, duration: str | float, seed: int = 0) -> Floats:
    """Return a Poisson process whose rate changes evenly from `rate` to `to` per second, ns.

    Examples
    --------
    >>> t = ramp(10, 190, duration=20, seed=1)
    >>> 1800 < t.size < 2200, bool((t < 10e9).sum() < (t >= 10e9).sum())
    (True, True)
    """
    rng, span = np.random.default_rng(seed), _span(max(rate, to), duration)
    if min(rate, to) < 0:
        raise InvalidArgumentError("rates must not be negative")
    size = rng.poisson((rate + to) / 2 * span / 1e9)
    share = np.sort(rng.uniform(0.0, 1.0, size))  # of all arrivals; its inverse is a quadratic
    if rate == to:
        return share * span
    root = np.sqrt(rate * rate + share * (to * to - rate * rate))
    return np.asarray(span * (root - rate) / (to - rate))


def _span(rate: float, duration: str | float) -> float:
    span = parse_duration(duration, "s")
    if not (rate > 0 and span > 0):
        raise InvalidArgumentError(
            f"a rate and a duration must be above zero, not {rate} and {duration}"
        )
    return span


# ------------------------------------------------------------
# Load generators: who sends when, and what each of them would report of the same server.

_AT_ONCE = 4096  # service times drawn at a time


def open_loop(
    server: Server,
    arrivals: ArrayLike,
    *,
    duration: str | float | None = None,
    timeout: str | float | None = None,
    seed: int = 0,
) -> Samples:
    """Send at the given times, whatever becomes of earlier requests: what independent users do.

    Parameters
    ----------
    server : Server
    arrivals : array_like of float
        When each request is due, ns from the run's begin: `fixed`, `poisson`, `bursty`, `ramp`.
    duration : str or float, optional
        Length of the run, where it is more than the last arrival tells.
    timeout : str or float, optional
        After so long the client gives up; the server works on.
    seed : int

    Returns
    -------
    Samples
        Sends and due times are one, so service and response time are, too.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall, fixed
    >>> samples = open_loop(Server("1ms", stalls=[Stall(1, 1)], ideal=True), fixed(100, 3))
    >>> len(samples), float(samples.values.max() / 1e6)
    (300, 1000.0)
    """
    due = np.asarray(arrivals, np.float64)
    if due.ndim != 1:
        raise InvalidArgumentError("arrivals are one time per request, such as fixed(100, '10s')")
    sent = np.sort(due)
    done = server.replies(sent, np.random.default_rng(seed))
    span = None if duration is None else parse_duration(duration, "s") / 1e9
    rate = None if span is None else sent.size / span
    run = Run(
        tool="simulation", loop="open", measure="response", corrected="schedule", duration=span,
        rate=rate,
    )  # fmt: skip
    return _samples(sent, done, sent, None, timeout, run)


def paced_loop(
    server: Server,
    rate: float,
    duration: str | float,
    *,
    connections: int = 1,
    timeout: str | float | None = None,
    seed: int = 0,
) -> Samples:
    """Send at a rate, but never before the previous reply: send times that pass are skipped.

    Parameters
    ----------
    server : Server
    rate : float
        Requests per second, all connections together.
    duration : str or float
    connections : int, default 1
        Each sends at ``rate / connections``, one after the other in turn.
    timeout : str or float, optional
        After so long a connection gives up and goes on; the server works on.
    seed : int

    Returns
    -------
    Samples
        With the service time, as such tools report it; ``measured("response")`` counts from the
        slot of each request that was sent, which finds no more: what was never sent is not there.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall
    >>> samples = paced_loop(Server("1ms", stalls=[Stall(1, 1)], ideal=True), rate=100, duration=3)
    >>> len(samples), round(float(samples.values.mean()) / 1e6, 3)
    (201, 5.97)
    """
    return _closed(server, rate, duration, connections, timeout, seed, catch_up=False)


def catch_up_loop(
    server: Server,
    rate: float,
    duration: str | float,
    *,
    connections: int = 1,
    timeout: str | float | None = None,
    seed: int = 0,
) -> Samples:
    """Send at a rate, never before the previous reply, and catch up as fast as possible.

    No request is missing in the end, and yet those that were due in a stall are timed from when
    they were sent: twice as wrong. Parameters are those of `paced_loop`.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall
    >>> server = Server("1ms", stalls=[Stall(1, 1)], ideal=True)
    >>> samples = catch_up_loop(server, rate=100, duration=3)
    >>> service, response = samples.values.mean() / 1e6, samples.response.mean() / 1e6
    >>> len(samples), round(float(service), 2), round(response)
    (300, 4.33, 187)
    """
    return _closed(server, rate, duration, connections, timeout, seed, catch_up=True)


def closed_loop(
    server: Server,
    duration: str | float,
    *,
    connections: int = 1,
    timeout: str | float | None = None,
    seed: int = 0,
) -> Samples:
    """Send as soon as the reply arrives: no schedule, and so no response time.

    Parameters are those of `paced_loop`.

    Examples
    --------
    >>> from latencykit.simulate import Server
    >>> len(closed_loop(Server("1ms"), duration=1, connections=4))
    1003
    """
    return _closed(server, None, duration, connections, timeout, seed, catch_up=False)


def _closed(
    server: Server,
    rate: float | None,
    duration: str | float,
    connections: int,
    timeout: str | float | None,
    seed: int,
    *,
    catch_up: bool,
) -> Samples:
    """Let connections send, wait and send again until the run is over."""
    span = parse_duration(duration, "s")
    if connections < 1 or not span > 0 or (rate is not None and not rate > 0):
        raise InvalidArgumentError(
            "a closed loop needs a connection, a duration and a rate above zero"
        )
    interval = 0.0 if rate is None else 1e9 * connections / rate
    limit = float("inf") if timeout is None else parse_duration(timeout, "s")
    queue, draws = Queue(server), _draws(server, np.random.default_rng(seed))
    phase = 0.0 if rate is None else 1e9 / rate
    # when each connection sends next, and the number of its slot
    turns = [(k * phase, k, 0) for k in range(connections)]
    rows: list[tuple[float, float, float, int]] = []
    while turns:
        at, connection, slot = heapq.heappop(turns)
        due = connection * phase + slot * interval
        if (due if catch_up else at) >= span - 1e-3:
            continue
        done = queue.take(at, *next(draws))
        rows.append((at, done, due, connection))
        back = min(at + limit, done) if done > at else at
        if not interval:
            heapq.heappush(turns, (max(back, at + 1.0), connection, 0))
            continue
        slot += 1
        if not catch_up:  # the first slot that is not past when the reply comes
            slot = max(slot, int(np.ceil((back - connection * phase) / interval - 1e-9)))
        heapq.heappush(turns, (max(back, connection * phase + slot * interval), connection, slot))
    sent, ended, slots, by = (np.array(column) for column in zip(*rows, strict=True))
    run = Run(
        tool="simulation", loop="closed" if rate is None else "paced", measure="service",
        corrected="none", duration=span / 1e9, rate=rate, connections=connections,
    )  # fmt: skip
    return _samples(sent, ended, None if rate is None else slots, by, timeout, run)


def _draws(server: Server, rng: np.random.Generator) -> Iterator[tuple[float, int]]:
    """Service time and shard of one request after the other, drawn many at a time."""
    while True:
        work, shard = server.draw(rng, _AT_ONCE), server.shards_of(rng, _AT_ONCE)
        yield from zip(work.tolist(), shard.tolist(), strict=True)


def _samples(
    sent: Floats,
    done: Floats,
    due: Floats | None,
    connection: Any,
    timeout: str | float | None,
    run: Run,
) -> Samples:
    """What the client records: replies, requests that timed out, and rejected requests."""
    limit = np.inf if timeout is None else parse_duration(timeout, "s")
    took = done - sent
    outcome = np.zeros(sent.size, np.int8)
    outcome[took > limit] = OUTCOMES.index("timeout")
    outcome[took < 0] = OUTCOMES.index("dropped")
    return Samples(
        start=sent, duration=np.clip(took, 0.0, limit), intended=due, connection=connection,
        outcome=outcome if outcome.any() else None,
        run=run if timeout is None else run.replace(timeout=float(limit)),
    )  # fmt: skip
