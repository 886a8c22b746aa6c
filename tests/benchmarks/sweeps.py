"""How often the bracket of `sweep` holds the known capacity: ``python -m tests.benchmarks.sweeps``.

100 sweeps of at most 12 runs each on simulated queues, and 10 on a live server, printed as
Markdown. ``--only "M/M/4 log" --count 20 --first 40`` runs some of it. The live server and its load
generator mostly sleep, but on a busy machine most of their brackets are wide: ``chrt -r 1 python -m
tests.benchmarks.sweeps --only live`` lets them go first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import latencykit as lk
from tests.benchmarks.tables import show
from tests.conftest import FORMS
from tests.ctrlz.worlds import CLIENT, live_server, mmc_capacity, queue

if TYPE_CHECKING:
    from collections.abc import Iterable

SYSTEMS = {"M/M/1": (1, 0.001, 0.020), "M/M/4": (4, 0.010, 0.100)}
"""Servers, mean service time and limit of p99, in seconds."""

LIVE = (4, 0.005, 0.025, 90)
"""Of the live server, with the percentile that is limited."""


def simulated(name: str, form: str, seeds: range) -> Iterable[lk.Sweep]:
    """Sweep a queue again and again, each time from another load."""
    servers, mean, limit = SYSTEMS[name]
    truth = mmc_capacity(limit, 99, mean, servers)
    for seed in seeds:
        measure = queue(mean, servers, seed)

        def load(rate: float, duration: float, measure: Any = measure) -> Any:
            return FORMS[form](measure(rate, duration))

        start = truth / 8 * 2 ** (seed / 100 % 1)
        yield lk.sweep(load, f"p99={limit}s", start=start, duration=20_000 * mean)


def live(seeds: range) -> Iterable[lk.Sweep]:
    """Sweep a live server of four workers by a load generator that sends at random times."""
    servers, mean, limit, percentile = LIVE
    truth = mmc_capacity(limit, percentile, mean, servers)
    for seed in seeds:
        with (
            live_server(f"{1e3 * mean}", f"{servers}", f"{seed}") as url,
            tempfile.TemporaryDirectory() as to,
        ):
            yield lk.sweep(
                [sys.executable, str(CLIENT), url, "{rate}", "{duration}", "{out.csv}"],
                f"p{percentile}={limit}s", start=truth / 4 * 2 ** (seed / 100 % 1),
                stop=2 * truth, duration=200 * mean,
                folder=Path(to) / "runs",
            )  # fmt: skip


def main() -> None:
    """Print one row per system and data type."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="rows such as 'M/M/4 log', 'live'")
    parser.add_argument("--count", type=int, help="number of sweeps per row")
    parser.add_argument("--first", type=int, default=0, help="number of the first sweep (0)")
    given = parser.parse_args()
    known = {f"{name} {form}": (name, form) for name in SYSTEMS for form in FORMS}
    rows = (row(name, *known.get(name, ("", "")), given) for name in given.only or [*known, "live"])
    header = ["holds the capacity", "finds both ends", "median width", "most runs"]
    show("Capacity of simulated and live servers", ["system, data", *header], rows)


def row(label: str, name: str, form: str, given: argparse.Namespace) -> list[object]:
    """Return what becomes of the sweeps of one system and data type."""
    servers, mean, limit, percentile = (*SYSTEMS[name], 99) if name else LIVE
    truth = mmc_capacity(limit, percentile, mean, servers)
    seeds = range(given.first, given.first + (given.count or (100 if form else 10)))
    brackets = []
    for found in simulated(name, form, seeds) if form else live(seeds):
        known = found.capacity
        low, high = (known.low, known.high) if known is not None else (0.0, np.inf)
        brackets.append((low, high, len(found.runs)))
        wrong = "" if low <= truth <= high else f", not {truth:.1f}/s"
        print(f"{label}: {low:g} to {high:g}/s{wrong}", file=sys.stderr)
    lows, highs, runs = np.array(brackets).T
    both = (lows > 0) & np.isfinite(highs)
    width = float(np.median(highs[both] / lows[both])) if both.any() else np.nan
    held = (int(each.sum()) for each in ((lows <= truth) & (truth <= highs), both))
    shares = (f"{number}/{len(lows)}" for number in held)
    return [label, *shares, f"{width:.2f}", int(runs.max())]


if __name__ == "__main__":
    main()
