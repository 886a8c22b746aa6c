"""How often confident statements are wrong: ``python -m tests.benchmarks.truth`` prints Markdown in some minutes.

Worlds whose truth is known are drawn with fixed seeds, asked as a user would ask, and what was said
is compared with the truth. ``--only coverage,events,explain`` chooses
tables, ``--quick`` takes few runs of short logs.

Coverage is here: of the intervals that are given, how many hold the truth; the other tables are in the modules beside it.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import click
import numpy as np

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


TABLES: dict[str, Callable[..., None]] = {
    "check": truth_answers.check,
    "compare": truth_answers.compare,
    "coverage": coverage,
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
        raise click.UsageError(f"{unknown[0]!r} is not a table; choose from {', '.join(TABLES)}")
    for name in chosen:
        begin = time.perf_counter()
        TABLES[name](quick, **({"seed": seed} if name == "uncertainty" else {}))
        print(f"\n<!-- {name}: {time.perf_counter() - begin:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
