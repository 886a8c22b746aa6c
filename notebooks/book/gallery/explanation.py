"""What slow requests have in common

Which hosts, endpoints or connections the slow requests come from, compared with all requests. Significant values are in amber; beside
them are the percentile curve of all requests and that of the requests without them.

$ latencykit explain requests.csv -o explanation.png
"""

import numpy as np

import latencykit as lk

random = np.random.default_rng(1)
host = random.choice(["host-1", "host-2", "host-3", "host-4"], 20_000)
endpoint = random.choice(["/cart", "/search", "/pay"], 20_000, p=[0.5, 0.4, 0.1])
duration = random.lognormal(1, 0.5, 20_000)
duration[(host == "host-3") & (endpoint == "/search")] *= 5
requests = lk.Samples(
    start=np.arange(20_000) * 5, duration=duration, unit="ms", host=host, endpoint=endpoint
)
ax = lk.plot.explanation(lk.explain(requests))
