"""How often `explain` is wrong: simulated services with planted causes, and worlds without any.

``python -m tests.benchmarks.truth --only explain`` prints the table. A planted world has one cause
or two of slow requests, beside background noise, and about ten blocks of evidence; a finding is
right if it names a cause. A null world has none:
every finding is wrong.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import latencykit as lk
from tests.benchmarks.tables import in_parallel, share, show
from tests.benchmarks.worlds import autoregression, requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rng = np.random.Generator

__all__ = ["NULL", "PLANTED", "Run", "judged"]

SECONDS = 600.0


@dataclass
class Run:
    """Requests with attributes, and the causes that were planted: pairs of attribute and value."""

    start: Floats
    latency: Floats
    columns: dict[str, Any]
    causes: tuple[tuple[str, str], ...] = ()
    above: str = "p99"

    def samples(self) -> lk.Samples:
        """Return the requests as samples."""
        return requests(self.start, self.latency).with_columns(self.columns)


def named(letter: str, numbers: Any) -> Any:
    return np.char.add(letter, numbers.astype(str)).astype(object)


def plain(rng: Rng, rate: float = 100.0, seconds: float = SECONDS) -> Run:
    """Return a service whose attributes do not matter: six of them, some correlated."""
    n = rng.poisson(rate * seconds)
    start = np.sort(rng.uniform(0, seconds, n))
    endpoint = rng.choice(12, n, p=_zipf(12))
    host = np.where(rng.random(n) < 0.8, endpoint % 4, rng.integers(0, 4, n))
    columns: dict[str, Any] = {
        "endpoint": named("/e", endpoint),
        "host": named("h", host),
        "shard": rng.integers(0, 8, n),
        "method": np.where(endpoint % 3 == 0, "POST", "GET").astype(object),
        "bytes": rng.lognormal(8, 1, n).round(),
        "user": named("u", rng.zipf(1.6, n).clip(max=5000)),
        "id": named("r", np.arange(n)),
        "zone": np.array(["a", "b", None], object)[rng.choice(3, n, p=[0.6, 0.3, 0.1])],
    }
    return Run(start, 5e-3 * rng.lognormal(0, 0.6, n), columns)


def _zipf(size: int) -> Floats:
    weight = 1 / np.arange(1, size + 1)
    return weight / weight.sum()


def _times(rng: Rng, number: int, seconds: float = SECONDS) -> Floats:
    return np.sort(rng.uniform(5, seconds - 5, number))


def _stall(run: Run, begin: float, length: float, who: Any = True) -> None:
    """Those of `who` that arrive meanwhile wait for the end."""
    hit = who & (run.start >= begin) & (run.start < begin + length)
    run.latency[hit] += begin + length - run.start[hit]


def _stalls(run: Run, rng: Rng, number: int, length: Callable[[], float], who: Any = True) -> None:
    for begin in _times(rng, number):
        _stall(run, begin, length(), who)


def _slow(run: Run, rng: Rng, who: NDArray[np.bool_], part: float, factor: float) -> None:
    """A part of the requests of `who` takes `factor` times as long."""
    run.latency[who] *= np.where(rng.random(who.sum()) < part, factor, 1)


def _is(run: Run, column: str, value: Any) -> NDArray[np.bool_]:
    return np.asarray(run.columns[column] == value, np.bool_)


# ---------------------------------------------------------------- planted


def slow_shard(rng: Rng) -> Run:
    run = plain(rng)
    _stalls(run, rng, 12, lambda: rng.uniform(1.0, 3.0), _is(run, "shard", 3))
    return replace(run, causes=(("shard", "3"),))


def slow_half(rng: Rng) -> Run:
    """One of two hosts: half of all requests."""
    run = plain(rng)
    run.columns["node"] = rng.choice(["n1", "n2"], run.start.size).astype(object)
    _stalls(run, rng, 14, lambda: rng.uniform(0.5, 1.5), _is(run, "node", "n2"))
    return replace(run, causes=(("node", "n2"),))


def slow_endpoint(rng: Rng) -> Run:
    run = plain(rng)
    _slow(run, rng, _is(run, "endpoint", "/e4"), 0.3, 12)
    return replace(run, causes=(("endpoint", "/e4"),))


def rare_endpoint(rng: Rng) -> Run:
    """An endpoint of one request in five hundred that is always slow."""
    run = plain(rng)
    mine = rng.random(run.start.size) < 0.002
    run.columns["endpoint"] = np.where(mine, "/export", run.columns["endpoint"]).astype(object)
    run.latency[mine] *= 20
    run.causes = (("endpoint", "/export"),)
    run.above = "p99.8"
    return run


def host_not_endpoint(rng: Rng) -> Run:
    """A slow host, on which some endpoints nearly always are."""
    run = plain(rng)
    _slow(run, rng, _is(run, "host", "h2"), 0.05, 15)
    return replace(run, causes=(("host", "h2"),))


def endpoint_sets_host(rng: Rng) -> Run:
    """A slow endpoint; each endpoint is served by one host only."""
    run = plain(rng)
    number = np.array([int(text[2:]) for text in run.columns["endpoint"]])
    run.columns["host"] = named("h", number % 4)
    mine = number == 5
    _slow(run, rng, mine, 0.2, 20)
    return replace(run, causes=(("endpoint", "/e5"),))


def large_replies(rng: Rng) -> Run:
    """Latency grows with the size beyond the 95th percentile."""
    run = plain(rng)
    size = run.columns["bytes"]
    large = size > np.quantile(size, 0.95)
    run.latency[large] *= rng.uniform(3, 10, large.sum())
    return replace(run, causes=(("bytes", "*"),))


def two_causes(rng: Rng) -> Run:
    run = plain(rng)
    _stalls(run, rng, 12, lambda: rng.uniform(1.0, 2.0), _is(run, "shard", 6))
    _slow(run, rng, _is(run, "endpoint", "/e3"), 0.1, 60)
    return replace(run, causes=(("shard", "6"), ("endpoint", "/e3")))


def mix_shift(rng: Rng) -> Run:
    """A slow kind of request becomes common halfway."""
    run = plain(rng)
    share = np.where(run.start < SECONDS / 2, 0.02, 0.2)
    mine = rng.random(run.start.size) < share
    run.columns["kind"] = np.where(mine, "report", "page").astype(object)
    run.latency[mine] *= 4
    return replace(run, causes=(("kind", "report"),))


def deploy(rng: Rng) -> Run:
    """A slow endpoint that exists for a minute only, when everything is somewhat slower."""
    run = plain(rng)
    now = (run.start > 300) & (run.start < 360)
    run.latency[now] *= 1.5
    mine = now & (rng.random(run.start.size) < 0.1)
    run.columns["endpoint"] = np.where(mine, "/migrate", run.columns["endpoint"]).astype(object)
    run.latency[mine] *= 10
    return replace(run, causes=(("endpoint", "/migrate"),))


def heavy_tails(rng: Rng) -> Run:
    """Services whose usual latencies differ tenfold, with Pareto tails; the slowest is the tail."""
    run = plain(rng)
    number = rng.integers(0, 5, run.start.size)
    base = np.array([1e-3, 3e-3, 2e-3, 5e-3, 4e-2])[number]
    run.columns["service"] = np.array(["auth", "cart", "search", "user", "billing"], object)[number]
    run.latency = base * (1 + rng.pareto(2.2, run.start.size))
    return replace(run, causes=(("service", "billing"),))


def stalls_and_shard(rng: Rng) -> Run:
    """A slow shard, beside stalls that hit all."""
    run = plain(rng)
    for begin in _times(rng, 3):
        _stall(run, begin, 0.4)
    _stalls(run, rng, 14, lambda: rng.uniform(1.0, 3.0), _is(run, "shard", 1))
    return replace(run, causes=(("shard", "1"),))


def missing_zone(rng: Rng) -> Run:
    """Requests without a value are the slow ones."""
    run = plain(rng)
    mine = np.array([one is None for one in run.columns["zone"]])
    _slow(run, rng, mine, 0.1, 12)
    return replace(run, causes=(("zone", "(none)"),))


# ---------------------------------------------------------------- null


def drift(rng: Rng, time: float = 10.0) -> Run:
    """Log-latency follows an AR(1) in time, as in any shared service."""
    run = plain(rng)
    level = autoregression(rng, int(SECONDS * 10), np.exp(-0.1 / time))
    noise = 0.5 * rng.normal(size=run.start.size)
    run.latency = 5e-3 * np.exp(level[(run.start * 10).astype(int)] + noise)
    return run


def stalls_hit_all(rng: Rng) -> Run:
    run = plain(rng)
    _stalls(run, rng, rng.poisson(30), lambda: rng.exponential(0.4))
    return run


def one_stall(rng: Rng) -> Run:
    run = plain(rng)
    _stall(run, rng.uniform(50, 500), 8.0)
    return run


def stalls_of_random_hosts(rng: Rng) -> Run:
    """Each stall hits one host, whichever: with eight of them, none is to blame."""
    run = plain(rng)
    for begin in _times(rng, 8):
        _stall(run, begin, rng.uniform(1, 2), _is(run, "shard", rng.integers(0, 8)))
    return run


def harmless_mix(rng: Rng) -> Run:
    """The mix changes when everything becomes slower: a coincidence of times, not of requests."""
    run = plain(rng)
    late = run.start > SECONDS / 2
    mine = rng.random(run.start.size) < np.where(late, 0.5, 0.05)
    run.columns["version"] = np.where(mine, "v2", "v1").astype(object)
    run.latency[late] *= 1.7
    return run


def bursts(rng: Rng) -> Run:
    """Requests of one user come in bursts, and stalls hit all that are there."""
    run = plain(rng)
    place = (run.start * 2).astype(int)
    session = rng.integers(0, 40, place.max() + 1)[place]
    run.columns["session"] = named("s", session)
    _stalls(run, rng, 30, lambda: rng.exponential(0.4))
    return run


def columns_of_time(rng: Rng) -> Run:
    """Columns follow the time of the run, as the load, its phases and a busy CPU do."""
    run = drift(rng, float(rng.choice([2.0, 20.0, 150.0])))
    at = run.start
    run.columns["rps"] = 100 * (1 + 0.3 * np.sin(at / rng.uniform(10, 100)))
    run.columns["phase"] = np.array(["warm", "steady", "cool"], object)[
        np.digitize(at, [0.2 * SECONDS, 0.8 * SECONDS])
    ]
    run.columns["minute"] = (at // 60).astype(int)
    knots = np.arange(0.0, SECONDS + 5, 5.0)
    run.columns["cpu"] = np.interp(at, knots, rng.normal(50, 15, knots.size)).round(1)
    return run


def retries(rng: Rng) -> Run:
    """Requests that wait in a stall are sent again, and both are counted."""
    run = plain(rng)
    _stalls(run, rng, 12, lambda: rng.uniform(0.3, 1.5))
    again = np.flatnonzero(run.latency > 0.3)
    start = np.append(run.start, run.start[again] + 0.3)
    latency = np.append(run.latency, run.latency[again] - 0.3)
    order = np.argsort(start)
    columns = {name: np.append(cells, cells[again])[order] for name, cells in run.columns.items()}
    return Run(start[order], latency[order], columns)


PLANTED: dict[str, Callable[[Rng], Run]] = {
    "one slow shard of 8, 12 stalls": slow_shard,
    "one of two nodes, 14 stalls": slow_half,
    "one slow endpoint": slow_endpoint,
    "a rare slow endpoint": rare_endpoint,
    "a slow host, endpoints correlated": host_not_endpoint,
    "a slow endpoint, one host each": endpoint_sets_host,
    "large replies": large_replies,
    "two causes at once": two_causes,
    "a mix shift": mix_shift,
    "an endpoint during a deploy only": deploy,
    "heavy tails, unlike bases": heavy_tails,
    "a slow shard, and stalls that hit all": stalls_and_shard,
    "requests without a value": missing_zone,
}
NULL: dict[str, Callable[[Rng], Run]] = {
    "i.i.d.": plain,
    "AR drift, 10 s": drift,
    "AR drift, 60 s": partial(drift, time=60.0),
    "stalls that hit all": stalls_hit_all,
    "one stall": one_stall,
    "stalls of random hosts": stalls_of_random_hosts,
    "a mix that changes with everything else": harmless_mix,
    "sessions in bursts, stalls that hit all": bursts,
    "columns that follow the time": columns_of_time,
    "retries counted as requests": retries,
}


def judged(name: str, seed: int) -> Counter[str]:
    """Return, of one run, how many findings are right or wrong and how many causes were found."""
    world = (PLANTED | NULL)[name]
    run = world(np.random.default_rng([seed, *name.encode()]))
    found = lk.explain(run.samples(), above=run.above)
    rows = list(zip(found.suspects["attribute"], found.suspects["value"], strict=True))
    count: Counter[str] = Counter(runs=1, causes=len(run.causes), any=bool(rows))
    for row in rows:
        count["right" if any(_names(row, cause) for cause in run.causes) else "wrong"] += 1
    count["false"] = int(count["wrong"] > 0)
    count["found"] = sum(any(_names(row, cause) for row in rows) for cause in run.causes)
    return count


def _names(row: tuple[str, str], cause: tuple[str, str]) -> bool:
    return row[0] == cause[0] and cause[1] in ("*", row[1])


def table(quick: bool) -> None:
    """Print what is found of planted causes, and what is found where there are none."""
    runs, rows = 4 if quick else 40, []
    for name in PLANTED | NULL:
        count = sum(in_parallel(partial(judged, name), range(runs)), Counter[str]())
        stated = count["right"] + count["wrong"]
        found = f"{count['found']}/{count['causes']}" if count["causes"] else "–"
        right = f"{count['right']}/{stated}" if stated else "–"
        rows.append([name, found, right, share(count["false"], runs)])
    header = ["world", "causes found", "findings right", "runs with a false finding, %"]
    show("Causes of slow requests, 10 min at 100/s", header, rows)
