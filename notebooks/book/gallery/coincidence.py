"""Stalls and events

Latency over time, and beneath it a lane of events per source, such as garbage collections, deployments or scheduled jobs. A stall
has the colour of the source that coincides with it more often than by chance.

$ latencykit explain run.hlog --events gc.log -o coincidence.png
"""

import numpy as np

import latencykit as lk
from latencykit.core.events import Events

random = np.random.default_rng(1)
start = np.arange(60_000) * 2_000_000  # two minutes, 500 requests per second
duration = random.lognormal(14, 0.4, start.size)
collections = np.sort(random.uniform(0, 120, 12))
deployments = np.sort(random.uniform(0, 120, 5))
for time in collections:  # requests of a pause wait for its end
    paused = (start >= time * 1e9) & (start < (time + 0.4) * 1e9)
    duration[paused] += (time + 0.4) * 1e9 - start[paused]
run = lk.Samples(start=start, duration=duration.astype(np.int64))
sources = [
    Events("gc.log", "jvm-gc", collections, collections + 0.4, ["Pause Full"] * 12),
    Events("deployments", "times", deployments, deployments, ["deployment"] * 5),
]
ax = lk.plot.coincidence(lk.explain(run, events=sources))
