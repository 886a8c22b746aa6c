"""Systems with a known truth: arrivals, service times, servers that stall, load generators.

Every load generator here gives `Samples` that hold both times of each request, the service time
(from the send) and the response time (from the moment it was due), so that what a tool reports can
be laid beside what a user felt.

The Ctrl+Z experiment, 100 requests per second of 1 ms each, the server frozen for the second 100 of
200 seconds:

>>> from latencykit import simulate
>>> server = simulate.Server("1ms", stalls=[simulate.Stall(100, 100)], ideal=True)
>>> naive = simulate.paced_loop(server, rate=100, duration=200)
>>> truth = simulate.open_loop(server, simulate.fixed(rate=100, duration=200))
>>> len(naive), len(truth)
(10001, 20000)
>>> round(float(naive.values.mean()) / 1e6, 4), round(float(truth.values.mean()) / 1e9, 3)
(10.9989, 25.003)
"""

from __future__ import annotations

from latencykit.simulate.generators import (
    bursty,
    catch_up_loop,
    closed_loop,
    fixed,
    open_loop,
    paced_loop,
    poisson,
    ramp,
)
from latencykit.simulate.server import (
    Server,
    Stall,
    constant,
    exponential,
    gamma,
    lognormal,
    mixture,
    pareto,
)

__all__ = [
    "Server",
    "Stall",
    "bursty",
    "catch_up_loop",
    "closed_loop",
    "constant",
    "exponential",
    "fixed",
    "gamma",
    "lognormal",
    "mixture",
    "open_loop",
    "paced_loop",
    "pareto",
    "poisson",
    "ramp",
]
