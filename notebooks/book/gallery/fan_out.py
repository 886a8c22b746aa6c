"""Fan-out

The latency of users who wait for the slowest of n calls. In a log the calls of one user fall into one interval: in a stall, all
of them are slow together.

$ latencykit fanout data/jhiccup-gc.hlog -n 1,10,100 -o fan_out.png
"""

import latencykit as lk

ax = lk.plot.fan_out(lk.read("data/jhiccup-gc.hlog"), [1, 10, 100])
