"""Service times: each function returns a `Service`, which draws them in nanoseconds."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from latencykit._arrays import as_positions
from latencykit._records import record
from latencykit._typing import Floats, Ints
from latencykit.errors import InvalidArgumentError, require
from latencykit.units import format_duration, parse_duration

Service: TypeAlias = "Callable[[np.random.Generator, int], NDArray[np.float64]]"
"""Draws n service times in nanoseconds; any function of (generator, n) will do."""


def constant(time: str | float) -> Service:
    """Return a service that always takes the same time (``"1ms"``, or seconds).

    Examples
    --------
    >>> constant("1ms")(np.random.default_rng(0), 2).tolist()
    [1000000.0, 1000000.0]
    """
    value = parse_duration(time, "s")
    return lambda _rng, n: np.full(n, value)


def exponential(mean: str | float) -> Service:
    """Return a memoryless service of the given mean.

    Examples
    --------
    >>> bool(abs(exponential("1ms")(np.random.default_rng(0), 10_000).mean() - 1e6) < 5e4)
    True
    """
    value = parse_duration(mean, "s")
    return lambda rng, n: rng.exponential(value, n)


def gamma(mean: str | float, shape: float) -> Service:
    """Return a gamma-distributed service: of squared variation ``1 / shape`` around its mean.

    Examples
    --------
    >>> bool(gamma("1ms", 100)(np.random.default_rng(0), 1000).std() < 2e5)
    True
    """
    value = parse_duration(mean, "s")
    return lambda rng, n: rng.gamma(shape, value / shape, n)


def lognormal(median: str | float, sigma: float) -> Service:
    """Return a log-normal service: most are quick, some take several times as long.

    Examples
    --------
    >>> bool(abs(np.median(lognormal("1ms", 1.0)(np.random.default_rng(0), 9999)) - 1e6) < 5e4)
    True
    """
    value = parse_duration(median, "s")
    return lambda rng, n: value * rng.lognormal(0.0, sigma, n)


def pareto(minimum: str | float, alpha: float) -> Service:
    """Return a service with a heavy tail: one in 10ᵅ takes more than ten times the minimum.

    Examples
    --------
    >>> t = pareto("1ms", 1.5)(np.random.default_rng(0), 100_000)
    >>> bool(t.min() >= 1e6), bool(0.028 < (t > 1e7).mean() < 0.035)
    (True, True)
    """
    value = parse_duration(minimum, "s")
    return lambda rng, n: value * (1.0 + rng.pareto(alpha, n))


def mixture(*parts: tuple[float, Service | str | float]) -> Service:
    """Return a mixture of services: pairs of a share and a service, shares adding up to 1.

    Examples
    --------
    >>> m = mixture((0.99, "1ms"), (0.01, exponential("1s")))
    >>> bool(0.98 < (m(np.random.default_rng(0), 10_000) == 1e6).mean() < 1)
    True
    """
    shares = [share for share, _ in parts]
    if not parts or min(shares) < 0 or abs(sum(shares) - 1.0) > 1e-9:
        raise InvalidArgumentError(f"the shares of a mixture must add up to 1, not {sum(shares)}")
    services = [service_of(part) for _, part in parts]

    def draw(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        which = rng.choice(len(shares), n, p=shares)
        return np.choose(as_positions(which), [service(rng, n) for service in services])

    return draw


def service_of(service: Service | str | float) -> Service:
    """Return a service as it is, or a constant one of the given time."""
    return service if callable(service) else constant(service)


# ------------------------------------------------------------
# Servers: how long a request takes from its send to its reply, what with service, queue and
# stalls.


@record()
class Stall:
    """A time in which a server, or one of its shards, does no work.

    Parameters
    ----------
    start, duration : float or str
        Seconds from the run's begin, or a text such as ``"500ms"``.
    shard : int, optional
        Which one of several servers is stopped; all of them unless given.
    drain : bool, default False
        It takes nothing new but works on (a deploy behind a load balancer): requests that come
        meanwhile are turned away at once and end as ``dropped``.

    Examples
    --------
    >>> Stall("500ms", 2).window
    (500000000.0, 2500000000.0)
    """

    start: float | str
    duration: float | str
    shard: int | None = None
    drain: bool = False
    window: tuple[float, float] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        begin, length = parse_duration(self.start, "s"), parse_duration(self.duration, "s")
        if begin < 0 or length <= 0:
            raise InvalidArgumentError(
                f"a stall begins at 0 or later and lasts longer than nothing, not {self.start} "
                f"and {self.duration}"
            )
        object.__setattr__(self, "window", (begin, begin + length))


@record()
class Server:
    """A server with a known service time, and stalls at known times.

    Parameters
    ----------
    service : Service, str or float
        Service time: a duration, or one of the distributions of this package.
    servers : int, default 1
        How many work side by side.
    sharded : bool, default False
        Whether each has a queue of its own, and requests of its own by chance; otherwise one queue
        feeds all.
    stalls : sequence of Stall
        Work that a stall interrupts goes on after it.
    ideal : bool, default False
        The article's server: nobody waits for anybody, and all that was sent during a stall is done
        at its end.

    Examples
    --------
    >>> server = Server("1ms", stalls=[Stall(1, 2)])
    >>> sent = np.array([0.0, 1.5e9, 1.5e9])
    >>> ((server.replies(sent, np.random.default_rng(0)) - sent) / 1e6).tolist()
    [1.0, 1501.0, 1502.0]
    """

    service: Service | str | float = "1ms"
    servers: int = 1
    sharded: bool = False
    stalls: Sequence[Stall] = ()
    ideal: bool = False

    def __post_init__(self) -> None:
        if self.servers < 1:
            raise InvalidArgumentError(f"there must be at least one server, not {self.servers}")
        for stall in self.stalls:
            require(stall, Stall, "stalls as Stall(start, duration)")
        wrong = [
            stall.shard
            for stall in self.stalls
            if stall.shard is not None and not 0 <= stall.shard < self.servers
        ]
        if wrong:
            raise InvalidArgumentError(
                f"no shard {wrong[0]}; {self.servers} servers are numbered from 0"
            )

    def windows(self, shard: int, *, drain: bool = False) -> Floats:
        """Return when a shard is stopped (or, for `drain`, turns requests away).

        Returns
        -------
        ndarray of float64, shape (stalls, 2)
            Begin and end in nanoseconds; ascending, overlapping ones merged.
        """
        own = [
            stall.window
            for stall in self.stalls
            if stall.drain == drain and stall.shard in (None, shard)
        ]
        merged: list[tuple[float, float]] = []
        for begin, end in sorted(own):
            if merged and begin <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        return np.array(merged, np.float64).reshape(-1, 2)

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Return n service times, ns."""
        drawn = np.asarray(service_of(self.service)(rng, n), np.float64)
        if drawn.min(initial=0.0) < 0:
            shown = format_duration(float(drawn.min()))
            raise InvalidArgumentError(f"a service time is not negative; this is {shown}")
        return drawn

    def shards_of(self, rng: np.random.Generator, n: int) -> Ints:
        """Return which shard each of n requests goes to; 0 for all where one queue feeds all."""
        if self.sharded and self.servers > 1:
            return rng.integers(self.servers, size=n)
        return np.zeros(n, np.int64)

    def replies(self, sent: Floats, rng: np.random.Generator) -> Floats:
        """Return when each request is answered.

        Parameters
        ----------
        sent : ndarray of float64, shape (n,)
            When each arrives, ascending, ns.
        rng : Generator

        Returns
        -------
        ndarray of float64, shape (n,)
            Nanoseconds; negative infinity for requests that a draining server turns away.
        """
        work, shard = self.draw(rng, sent.size), self.shards_of(rng, sent.size)
        taken = np.ones(sent.size, np.bool_)
        for number in range(self.servers if self.sharded else 1):
            for begin, end in self.windows(number, drain=True).tolist():
                taken &= (shard != number) | (sent < begin) | (sent >= end)
        done = np.full(sent.size, -np.inf)
        if self.servers > 1 and not self.sharded and not self.ideal:
            queue, pairs = Queue(self), zip(sent[taken].tolist(), work[taken].tolist(), strict=True)
            done[taken] = [queue.take(at, time, 0) for at, time in pairs]
            return done
        for number in range(self.servers if self.sharded else 1):
            own = np.flatnonzero(taken & (shard == number))
            answer = ideal_replies if self.ideal else fifo_replies
            done[own] = answer(sent[own], work[own], self.windows(number))
        return done


def ideal_replies(sent: Floats, work: Floats, stalls: Floats) -> Floats:
    """Return the replies of a server without a queue; work that overlaps a stall ends with it."""
    done = sent + work
    for begin, end in stalls.tolist():
        delayed = (sent < end) & (done > begin)
        done = np.where(delayed, np.maximum(done, end), done)
    return done


def fifo_replies(sent: Floats, work: Floats, stalls: Floats) -> Floats:
    """Return the replies of a FIFO server: Lindley's recursion as a running minimum."""
    # Stalls are taken out of the clock first: on a clock that is stopped with the server, the wait
    # of request i is ``c - min(c[:i])`` with ``c`` the running sum of work minus gaps.
    if not sent.size:
        return np.zeros(0)
    stopped = np.zeros_like(sent)
    for begin, end in stalls.tolist():
        stopped += np.clip(sent, begin, end) - begin
    arrival = sent - stopped
    balance = np.concatenate(([0.0], np.cumsum(work[:-1] - np.diff(arrival))))
    wait = balance - np.minimum.accumulate(balance)
    at = arrival + wait + work
    # Stalls ascend: only work that the earlier ones did not delay passes one.
    for begin, end in stalls.tolist():
        at = np.where(at > begin, at + (end - begin), at)
    return np.asarray(at)


class Queue:
    """A queue that takes one request after the other, for generators that wait for replies."""

    # Such a load generator's next send depends on the reply before, so that this cannot be done in
    # one vectorised pass.

    def __init__(self, server: Server) -> None:
        self._ideal, self._sharded = server.ideal, server.sharded
        shards = range(server.servers)
        self._windows = [server.windows(k).tolist() for k in shards]
        self._drains = [server.windows(k, drain=True).tolist() for k in shards]
        self._free = [(0.0, k) for k in range(server.servers)]

    def take(self, at: float, work: float, shard: int) -> float:
        """Return when a request sent `at` is answered; −inf where it is turned away."""
        # Requests must come in the order of their sends.
        if any(begin <= at < end for begin, end in self._drains[shard]):
            return float("-inf")
        if self._ideal:
            done = at + work
            for begin, end in self._windows[shard]:
                if at < end and done > begin:
                    done = max(done, end)
            return done
        if self._sharded:
            done = self._finish(max(at, self._free[shard][0]), work, shard)
            self._free[shard] = (done, shard)
            return done
        while True:  # until the server that can begin first is not stalled by then
            free, first = self._free[0]
            begin = max(at, free)
            thaw = next((b for a, b in self._windows[first] if a <= begin < b), None)
            if thaw is None:
                break
            heapq.heapreplace(self._free, (thaw, first))
        done = self._finish(begin, work, first)
        heapq.heapreplace(self._free, (done, first))
        return done

    def _finish(self, begin: float, work: float, shard: int) -> float:
        """When `work` that begins then is done, stalls between taken in."""
        for stalled, thaw in self._windows[shard]:
            if begin < thaw and begin + work > stalled:
                work += thaw - max(begin, stalled)
        return begin + work
