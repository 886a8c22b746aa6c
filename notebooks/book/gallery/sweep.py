"""The search for the capacity

Percentiles against load, in the order in which the runs were made, with the range in which the highest load that meets the SLO lies.

$ latencykit sweep --slo 99=20ms -o sweep.png -- wrk2 -t1 -c{connections} -R{rate} -d{duration} --latency {url}
"""

import latencykit as lk
from latencykit import simulate

server = simulate.Server(simulate.exponential("1ms"))


def measure(rate: float, duration: float) -> lk.Samples:
    """A simulated queue that serves 1,000 requests per second."""
    arrivals = simulate.poisson(rate, duration)
    return simulate.open_loop(server, arrivals, duration=duration)


ax = lk.plot.sweep(lk.sweep(measure, "p99=20ms", start=400, duration="60s"))
