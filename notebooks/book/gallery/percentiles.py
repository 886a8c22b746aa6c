"""Percentile curves

Latency over percentiles, on an axis that gives each further nine the same width. The curve ends at the maximum; where the sample
is too small for a percentile, it is dotted. One server was frozen for six seconds: the closed loop stopped sending, the other
client kept to its schedule.

$ latencykit chart waiting=data/ctrlz-uncorrected.hlog scheduled=data/ctrlz-scheduled.hlog -o percentiles.png
"""

import latencykit as lk

runs = {
    "waiting for each reply": lk.read("data/ctrlz-uncorrected.hlog"),
    "on schedule": lk.read("data/ctrlz-scheduled.hlog"),
}
ax = lk.plot.percentiles(runs, confidence=0.95, slo="99.9=1s")
