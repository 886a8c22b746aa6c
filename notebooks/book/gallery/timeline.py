"""Latency over time

The maximum and some percentiles of every interval. When a stall ends, the requests that were due in it are answered one after
the other; what a summary calls p99 is often one such moment.

$ latencykit chart data/jhiccup-gc.hlog --kind timeline -o timeline.png
"""

import latencykit as lk

ax = lk.plot.timeline(lk.read("data/jhiccup-gc.hlog"))
