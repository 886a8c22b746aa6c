"""Heat map

The share of requests by time and latency: two modes, a drift or a stall that a curve over the whole run would mix.

$ latencykit chart data/jhiccup-v2.hlog --kind heatmap -o heatmap.png
"""

import latencykit as lk

ax = lk.plot.heatmap(lk.read("data/jhiccup-v2.hlog"))
