"""Load and latency

Percentiles against load, with the throughput that each run achieved below. The largest load that meets the SLO is marked, with
the range in which it lies.

$ latencykit load 'rate-*.csv' --slo 99=20ms -o load_curve.png
"""

import latencykit as lk
from latencykit import simulate

server = simulate.Server(simulate.exponential("2ms"))
runs = {}
for rate in (50, 150, 250, 350, 400, 440, 470):
    runs[f"{rate}/s"] = simulate.open_loop(server, simulate.poisson(rate=rate, duration=120))
ax = lk.plot.load_curve(runs, slo="99=20ms")
