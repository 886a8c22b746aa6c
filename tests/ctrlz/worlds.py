"""Systems whose capacity is known: queues on paper, and a live server with set service times."""

from __future__ import annotations

import contextlib
import functools
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy

from latencykit import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from latencykit import Samples

LIVE = Path(__file__).with_name("live_server.py")
CLIENT = Path(__file__).with_name("open_client.py")


def mmc_beyond(rate: float, limit: float, mean: float, servers: int) -> float:
    """Return the share of the sojourn times in M/M/c beyond a limit (Erlang C); seconds."""
    load, mu = rate * mean, 1 / mean
    if load >= servers:
        return 1.0
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    waits = last / (sum(terms) + last)
    theta = servers * mu - rate - mu  # P(T > t) = e^{-mu t} (1 + C (1 - e^{-theta t}) mu / theta)
    grown = limit if abs(theta) < 1e-9 else (1 - math.exp(-theta * limit)) / theta
    return math.exp(-mu * limit) * (1 + waits * mu * grown)


def mmc_capacity(limit: float, percentile: float, mean: float, servers: int) -> float:
    """Return the load at which a percentile of the sojourn time in M/M/c reaches a limit."""
    allowed = 1 - percentile / 100
    top = servers / mean * (1 - 1e-9)
    found = scipy.optimize.brentq(
        lambda rate: mmc_beyond(rate, limit, mean, servers) - allowed, 1e-9, top
    )
    return float(found)


def queue(mean: float, servers: int, seed: int) -> Callable[[float, float], Samples]:
    """Return a load generator of random arrivals at a simulated M/M/c queue."""
    server = simulate.Server(simulate.exponential(mean), servers=servers)
    rng = np.random.default_rng(seed)

    def measure(rate: float, duration: float) -> Samples:
        one, two = (int(number) for number in rng.integers(1 << 30, size=2))
        arrivals = simulate.poisson(rate, duration, seed=one)
        return simulate.open_loop(server, arrivals, duration=duration, seed=two)

    return measure


@contextlib.contextmanager
def live_server(*arguments: str) -> Iterator[str]:
    """Run the server in a process of its own; yield its address."""
    command = [sys.executable, str(LIVE), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
        finally:
            process.kill()


def live(test: Callable[..., None]) -> Callable[..., None]:
    """A test with a stopwatch on a machine that may be busy: the last of five tries counts."""

    @functools.wraps(test)
    def tried(*args: object, **kwargs: object) -> None:
        for pause in (0, 2, 5, 10):  # seconds, for what keeps the machine busy to end
            time.sleep(pause)
            with contextlib.suppress(AssertionError):
                return test(*args, **kwargs)
        return test(*args, **kwargs)

    return pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot freeze a process")(
        tried
    )
