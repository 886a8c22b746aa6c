"""Density

The share of requests by value, on a logarithmic axis: the modes. A cache hit and a cache miss are two hills, and the mean lies
between them, where no request is.

$ latencykit chart data/redis-tagged.hlog --kind density -o density.png
"""

import latencykit as lk

ax = lk.plot.density(lk.read_all("data/redis-tagged.hlog"))
