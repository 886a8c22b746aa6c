"""Comparison

The relative change of each percentile with its interval. Several runs per side separate a change of the system from variation
between runs.

$ latencykit compare --base 'before*.hlog' --new 'after*.hlog' -o compare.png
"""

import numpy as np

import latencykit as lk

random = np.random.default_rng(7)


def run(shift: float) -> lk.Histogram:
    """One run of 20,000 requests; each run is up to some per cent faster or slower than the others."""
    variation = random.normal(1, 0.02)
    return lk.Histogram.of(shift + variation * random.lognormal(14, 0.5, 20_000))


ax = lk.plot.compare([run(0) for _ in range(6)], [run(200_000) for _ in range(6)])
