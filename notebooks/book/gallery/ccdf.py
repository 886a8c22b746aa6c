"""CCDF

The share of requests that took longer than each value, both axes logarithmic. A straight line is a power law: however long you
measure, the maximum grows.

$ latencykit chart data/ctrlz-uncorrected.hlog data/ctrlz-scheduled.hlog --kind ccdf -o ccdf.png
"""

import latencykit as lk

runs = {
    "waiting for each reply": lk.read("data/ctrlz-uncorrected.hlog"),
    "on schedule": lk.read("data/ctrlz-scheduled.hlog"),
}
ax = lk.plot.ccdf(runs)
