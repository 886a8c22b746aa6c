"""Dashboard

Timeline, percentile curve and key numbers of one log on one page: what to attach to a report, and what to look at first.

$ latencykit chart data/jhiccup-gc.hlog --kind dashboard -o dashboard.png
"""

import latencykit as lk

ax = lk.plot.dashboard(lk.read("data/jhiccup-gc.hlog"))
