"""How often the bracket of `sweep` holds the known capacity: ``python -m tests.benchmarks.sweeps``.

100 sweeps of at most 12 runs each on simulated queues, printed as Markdown.
"""

from __future__ import annotations

import sys

import numpy as np

import latencykit as lk
from tests.sweep.worlds import mmc_capacity, queue


def main(count: int = 100) -> None:
    """Print one row per queue and data type."""
    print("| queue | data | holds the capacity | median width | most runs |\n|---|---|---|---|---|")
    for servers, mean, limit in ((1, 0.001, 0.020), (4, 0.010, 0.100)):
        truth = mmc_capacity(limit, 99, mean, servers)
        for form in ("histogram", "log"):
            held, widths, runs = 0, [], 0
            for seed in range(count):
                measure = queue(mean, servers, seed)

                def load(rate, duration, measure=measure, form=form):
                    data = measure(rate, duration)
                    return data.histogram() if form == "histogram" else data.to_log("1s")

                start = truth / 8 * 2 ** (seed / count)
                found = lk.sweep(load, f"p99={limit}s", start=start, duration=20_000 * mean)
                capacity = found.capacity
                held += capacity.low <= truth <= capacity.high
                widths.append(capacity.high / max(capacity.low, 1e-9))
                runs = max(runs, len(found.runs))
            width = float(np.median(widths))
            print(f"| M/M/{servers} | {form} | {held}/{count} | {width:.2f} | {runs} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
