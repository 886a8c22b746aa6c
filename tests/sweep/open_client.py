"""An open loop with random arrivals: ``open_client.py URL RATE DURATION OUT.csv``."""

from __future__ import annotations

import random
import sys

from latencykit.ctrlz import client
from latencykit.ctrlz.client import Load, csv_lines, generate
from latencykit.ctrlz.server import raise_file_limit

url, rate, duration, out = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
rng = random.Random(f"{rate} {duration} {out}")


def poisson(run: client._Run, begin: int):
    due = float(begin)
    while (due := due + rng.expovariate(rate) * 1e9) < begin + duration * 1e9:
        yield round(due)


client._Run.dues = poisson
raise_file_limit()
rows = generate(Load("open", url, duration, rate, 32))
with open(out, "w", encoding="ascii") as stream:
    stream.write("\n".join(csv_lines(rows, intended=True)) + "\n")
