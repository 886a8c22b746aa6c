"""How often confident statements are wrong: ``python -m tests.benchmarks.truth`` prints Markdown in some minutes.

Worlds whose truth is known are drawn with fixed seeds, asked as a user would ask, and what was said
is compared with the truth. ``--only coverage,changes,load,events,explain`` chooses
tables, ``--quick`` takes few runs of short logs.

* coverage: of the intervals that are given, how many hold the truth; and how many are given
* changes: change points in series without a change, and with one
* load: brackets of an M/M/1 queue's capacity
* events: what coincides with stalls, see `tests.benchmarks.truth_events`
* uncertainty: percentiles shown plain, several runs compared, see `tests.benchmarks.truth_uncertainty`
* explain: planted causes of slow requests, and worlds without, see `tests.benchmarks.truth_explain`
"""

from __future__ import annotations

import itertools
import math
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import latencykit as lk
from latencykit.analysis.change_points import change_positions
from tests.benchmarks import truth_answers, truth_events, truth_explain, truth_uncertainty, worlds
from tests.benchmarks.tables import in_parallel, share, show
from tests.benchmarks.worlds import Drift, Modes, Rhythm, Stalls, World

if TYPE_CHECKING:
    from collections.abc import Callable

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
NAMES = ("p50", "p90", "p99", "p99.9", "mean")

WORLDS: dict[str, World] = {
    "i.i.d. lognormal, 75/s": World(),
    "i.i.d. lognormal, 1,000/s": World(rate=1000.0),
    "i.i.d. Pareto (2.5)": World(service=worlds.pareto),
    "i.i.d. bimodal": World(service=worlds.bimodal),
    "AR 3 s": Drift(time=3.0),
    "AR 10 s": Drift(time=10.0),
    "AR 30 s": Drift(time=30.0),
    "stalls 6/min, 0.3 s": Stalls(per_minute=6.0, length=0.3),
    "stalls 2/min, 0.5 s, constant": Stalls(per_minute=2.0, length=0.5, constant=True),
    "stalls 1/min, 1 s": Stalls(per_minute=1.0, length=1.0),
    "stalls 0.5/min, 2 s, exponential service": Stalls(
        per_minute=0.5, length=2.0, service=worlds.exponential
    ),
    "stalls 0.2/min, 5 s": Stalls(per_minute=0.2, length=5.0),
    "slow mode, 3 of 30 s": Modes(),
    "sine, 60 s": Rhythm(),
}
LENGTHS = (60.0, 300.0, 1000.0, 3600.0)


# ---------------------------------------------------------------- coverage


def stated(evidence: Any) -> list[tuple[float, float]]:
    """Return low and high of the percentiles and of the mean; NaN and infinite where they are open."""
    rows, _ = evidence.rows(PERCENTILES)
    below, above = evidence.mean()
    return [
        *((row.low, row.high) for row in rows),
        (evidence.whole.mean - below, evidence.whole.mean + above),
    ]


def cell(asked: tuple[str, float, str, int]) -> dict[str, Any]:
    """Return, for one world and length, how often each statistic had an interval, and held the truth."""
    name, duration, interval, runs = asked
    world = WORLDS[name]
    truth = [*(world.percentile(p) * 1e9 for p in PERCENTILES), world.mean * 1e9]
    given, held = np.zeros(len(NAMES)), np.zeros(len(NAMES))
    for number in range(runs):
        rng = np.random.default_rng([number, int(duration), list(WORLDS).index(name)])
        run = world.samples(rng, duration)
        evidence = (run.to_log(interval) if interval else run).evidence()
        for k, ((low, high), true) in enumerate(zip(stated(evidence), truth, strict=True)):
            closed = math.isfinite(low) and math.isfinite(high)
            given[k] += closed
            held[k] += closed and low <= true <= high
    return {"given": given, "held": held, "runs": runs, "asked": asked}


def cells(quick: bool) -> list[dict[str, Any]]:
    """Return all cells: every world as a log of seconds, and some as samples, as logs of 0.1 s and of 10 s."""
    lengths = LENGTHS[:2] if quick else LENGTHS
    asked = [
        (name, duration, "1s", 20 if quick else 40 if duration > 1000 else 60)
        for name, world in WORLDS.items()
        for duration in (lengths if world.rate < 500 else lengths[:2])
    ]
    if not quick:
        others = ("i.i.d. lognormal, 75/s", "AR 10 s", "stalls 1/min, 1 s", "stalls 6/min, 0.3 s")
        asked += [
            (name, duration, kind, 40)
            for name in others
            for duration in (300.0, 1800.0)
            for kind in ("", "100ms", "10s")
        ]
    return in_parallel(cell, asked)


def coverage(quick: bool) -> None:
    """Print how many of the intervals that are given hold the truth."""
    rows = []
    for found in cells(quick):
        pairs = zip(found["held"], found["given"], strict=True)
        name, duration, interval, _ = found["asked"]
        form = f"log, {interval}" if interval else "samples"
        parts = (f"{share(held, given)} ({share(given, found['runs'])})" for held, given in pairs)
        rows.append([name, f"{duration:.0f} s", form, *parts])
    title = "Coverage of 95 % intervals in %, where both ends are given (and share of runs where they are)"
    show(title, ["traffic", "length", "as", *NAMES], rows, text=3)


# ---------------------------------------------------------------- change points


def series(run: int, *, runs: int, correlation: float, step: float) -> tuple[bool, bool]:
    """Return whether a change was found, and whether the series was called not exchangeable."""
    rng = np.random.default_rng([run, runs, int(100 * correlation), int(1000 * step)])
    level = 0.0375 * worlds.autoregression(rng, runs, correlation)
    level[runs // 2 :] += math.log1p(step)
    found = change_positions(np.exp(level))
    return bool(found), not found.exchangeable


SERIES = [
    *((60, correlation, 0.0) for correlation in (0.0, 0.3, 0.6, 0.9)),
    *((runs, 0.6, 0.0) for runs in (30, 120)),
    *((60, 0.0, step) for step in (0.03, 0.05, 0.1)),
]
"""Number of runs, correlation of successive ones, and change."""


def changes(quick: bool) -> None:
    """Print alarms of change points at a nominal 1 %."""
    repeats, rows = 40 if quick else 200, []
    for runs, correlation, step in SERIES:
        job = partial(series, runs=runs, correlation=correlation, step=step)
        found = np.sum(in_parallel(job, range(repeats)), axis=0)
        shares = (share(part, repeats) for part in found)
        rows.append([runs, f"{correlation:g}", f"{100 * step:.0f} %", *shares])
    title = "Change points at a nominal 1 %: series of runs that vary by 3.75 %"
    show(title, ["runs", "correlation", "change", "found, %", "not exchangeable, %"], rows)


# ---------------------------------------------------------------- load


def queue(rng: np.random.Generator, rate: float, requests: int) -> lk.Samples:
    """Return requests to an M/M/1 queue that serves 1,000 per second, long after its start."""
    before = 3000
    arrival = np.cumsum(rng.exponential(1 / rate, requests + before))
    work = np.cumsum(rng.exponential(1e-3, requests + before))
    done = work + np.maximum.accumulate(arrival - np.concatenate(([0.0], work[:-1])))
    return worlds.requests(arrival[before:] - arrival[before], (done - arrival)[before:])


def bracket(
    run: int, *, grid: tuple[int, ...], requests: int, timed: bool
) -> tuple[bool, bool, bool]:
    """Return whether the bracket holds the capacity, whether it is bounded, and whether half load is called saturated."""
    rng = np.random.default_rng([run, requests, *grid])
    runs = {str(rate): queue(rng, rate, requests) for rate in grid}
    found = lk.load_curve(
        runs if timed else {rate: one.histogram() for rate, one in runs.items()}, "p99=20ms"
    ).capacity
    half = lk.load_curve({"500": queue(rng, 500, requests)}).rows[0].saturated
    assert found is not None
    return found.low <= 769.7 <= found.high, found.low > 0 and math.isfinite(found.high), half


def load(quick: bool) -> None:
    """Print how often the bracket of a capacity holds the truth."""
    repeats, rows = 20 if quick else 40, []
    grids = ((500, 600, 700, 800, 900), tuple(range(700, 860, 20)), (400, 750, 790, 950))
    sizes = (1000, 5000, 20_000, 50_000)[: 2 if quick else 4]
    for requests, grid, timed in itertools.product(sizes, grids, (True, False)):
        job = partial(bracket, grid=grid, requests=requests, timed=timed)
        found = np.sum(in_parallel(job, range(repeats)), axis=0)
        form = "samples" if timed else "histograms"
        shares = (share(part, repeats) for part in found)
        rows.append([f"{requests:,}", f"{grid[0]}–{grid[-1]}", form, *shares])
    asked = ["bracket holds it, %", "bounded on both sides, %", "ρ = 0.5 saturated, %"]
    title = "M/M/1, p99 ≤ 20 ms, true capacity 769.7/s"
    show(title, ["requests", "loads", "as", *asked], rows, text=3)


TABLES: dict[str, Callable[..., None]] = {
    "check": truth_answers.check,
    "compare": truth_answers.compare,
    "coverage": coverage,
    "changes": changes,
    "load": load,
    "events": truth_events.tables,
    "explain": truth_explain.table,
    "uncertainty": truth_uncertainty.tables,
}


@click.command()
@click.option("--only", default=",".join(TABLES), show_default=True, help="Tables to print.")
@click.option("--quick", is_flag=True, help="Few runs of short logs: to see that it works.")
@click.option("--seed", default=0, show_default=True, help="Other worlds of `uncertainty`.")
def main(only: str, quick: bool, seed: int) -> None:
    """Print how often confident statements are wrong."""
    chosen = [name.strip() for name in only.split(",")]
    unknown = [name for name in chosen if name not in TABLES]
    if unknown:
        raise click.InvalidArgumentError(
            f"{unknown[0]!r} is not a table; choose from {', '.join(TABLES)}"
        )
    for name in chosen:
        begin = time.perf_counter()
        TABLES[name](quick, **({"seed": seed} if name == "uncertainty" else {}))
        print(f"\n<!-- {name}: {time.perf_counter() - begin:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
