"""How often `check` and `compare` are definite, and how often wrong.

Each run is asked in all the forms that tools keep of it: samples, a log of seconds, a histogram,
and a table of percentiles as load generators print it. Seeds below a thousand chose the rules'
numbers; these tables take others.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

import latencykit as lk
from tests.benchmarks import worlds
from tests.benchmarks.tables import in_parallel, show
from tests.benchmarks.worlds import Drift, Pauses, Stalls, World

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 5000
PRINTED = (50.0, 75.0, 90.0, 95.0, 99.0)
FACTORS = (0.5, 0.8, 0.95, 1.05, 1.25, 2.0)

WORLDS: dict[str, World] = {
    "i.i.d.": World(rate=100.0),
    "bimodal": World(rate=100.0, service=worlds.bimodal),
    "AR 3 s": Drift(rate=100.0, time=3.0, spread=0.3),
    "AR 10 s": Drift(rate=100.0, time=10.0, spread=0.3),
    "AR 3 s, wide": Drift(rate=100.0, time=3.0, spread=1.0),
    "AR 10 s, wide": Drift(rate=100.0, time=10.0, spread=1.0),
    "GC": Pauses(rate=100.0),
    "stalls 6/min, 0.3 s": Stalls(rate=100.0, per_minute=6.0, length=0.3),
    "stalls 2/min, 0.5 s": Stalls(rate=100.0, per_minute=2.0, length=0.5),
    "stalls 1/min, 1 s": Stalls(rate=100.0, per_minute=1.0, length=1.0),
    "AR 30 s": Drift(rate=100.0, time=30.0, spread=0.3),  # four stretches in two minutes
}


def autoregressive(each: float, spread: float = 0.3) -> Drift:
    """Return log-latency with this correlation from second to second."""
    return Drift(rate=100.0, time=-1 / math.log(each), spread=spread)


PAIRS: dict[str, World] = {
    **{name: WORLDS[name] for name in ("i.i.d.", "bimodal", "AR 3 s", "AR 10 s", "GC")},
    **{f"AR({each})": autoregressive(each) for each in (0.3, 0.6, 0.95)},
    **{name: WORLDS[name] for name in ("stalls 6/min, 0.3 s", "stalls 1/min, 1 s")},
}


def printed(run: lk.Samples) -> lk.Histogram:
    """Return what a load generator prints of a run: some percentiles, mean and maximum."""
    whole = run.histogram()
    stats = {name: getattr(whole, name) for name in ("min", "max", "mean")}
    values = whole.percentile(list(PRINTED)).tolist()
    return lk.Histogram.from_percentiles(
        PRINTED, values, whole.count, reported_stats=stats, run=whole.run
    )


FORMS: dict[str, Callable[[lk.Samples], Any]] = {
    "samples": lambda run: run,
    "log of 1 s": lambda run: run.to_log("1s"),
    "histogram": lambda run: run.histogram(),
    "text": printed,
}


@cache
def _truth(name: str, percentile: float) -> float:
    return WORLDS[name].percentile(percentile) * 1e9


def checked(asked: tuple[str, float, int]) -> dict[str, np.ndarray]:
    """Return, per form, definite, right and sure, and wrong and sure of the limits of each factor."""
    name, duration, number = asked
    found = {form: np.zeros((3, len(FACTORS))) for form in FORMS}
    for k in range(number):
        rng = np.random.default_rng([SEED + k, int(duration), list(WORLDS).index(name)])
        run = WORLDS[name].samples(rng, duration)
        for form, make in FORMS.items():
            data = make(run)
            for at, factor in enumerate(FACTORS):
                limit = f"p99={factor * _truth(name, 99.0):.0f}ns"
                (row,) = lk.SLO.parse(limit).check(data)
                right = row.outcome == ("met" if factor > 1 else "missed")
                found[form][:, at] += (
                    row.outcome != "unknown", row.sure and right, row.sure and not right,
                )  # fmt: skip
    return {form: 100 * numbers / number for form, numbers in found.items()}


def check(quick: bool) -> None:
    """Print how often the outcome of a p99 is definite, sure, and sure but wrong."""
    runs = 10 if quick else 50
    asked = [(name, duration, runs) for name in WORLDS for duration in (60.0, 120.0, 300.0)]
    rows = []
    for (name, duration, _), found in zip(asked, in_parallel(checked, asked), strict=True):
        for form, numbers in found.items():
            definite, right, wrong = (row.round().astype(int).tolist() for row in numbers)
            sure = [right[FACTORS.index(factor)] for factor in (0.5, 2.0)]
            worst = "/".join(map(str, wrong))
            rows.append([name, f"{duration:.0f} s", form, min(definite), *sure, worst])
    found_out = ["definite", "surely missed at ½", "surely met at 2", "sure and wrong"]
    title = f"check of p99, limits at {', '.join(f'{f:g}' for f in FACTORS)} times the truth, % of {runs}"
    show(title, ["traffic", "length", "as", *found_out], rows, text=3)


def compared(
    asked: tuple[str, float, int], *, factors: tuple[float, ...], noises: tuple[float, ...]
) -> dict[str, list[float]]:
    """Return, per form, how often a change is stated: at each factor (10 % noise), at each noise."""
    name, duration, number = asked
    found = {form: np.zeros(len(factors) + len(noises)) for form in FORMS}
    for k in range(number):
        rng = np.random.default_rng([SEED + k, 9, list(PAIRS).index(name)])
        cases = [(factor, 0.1) for factor in factors] + [(1.0, noise) for noise in noises]
        for at, (factor, noise) in enumerate(cases):
            seeds = [[SEED + k, at, side, list(PAIRS).index(name)] for side in (0, 1)]
            levels = np.exp(noise * rng.standard_normal(2)) * (1.0, factor)
            runs = [
                PAIRS[name].samples(np.random.default_rng(seed), duration, level)
                for seed, level in zip(seeds, levels, strict=True)
            ]
            wanted = ("worse",) if factor > 1 else ("better", "worse", "mixed")
            for form, make in FORMS.items():
                found[form][at] += lk.compare(*map(make, runs)).verdict in wanted
    return {form: (100 * numbers / number).tolist() for form, numbers in found.items()}


def compare(quick: bool) -> None:
    """Print how often a change between two runs is stated, where there is one and where not."""
    runs, factors, noises = (10 if quick else 30), (2.0, 3.0, 10.0), (0.0, 0.05, 0.1, 0.2)
    asked = [(name, 300.0, runs) for name in PAIRS]
    job = partial(compared, factors=factors, noises=noises)
    rows = [
        [name, form, *(f"{number:.0f}" for number in numbers)]
        for (name, _, _), found in zip(asked, in_parallel(job, asked), strict=True)
        for form, numbers in found.items()
    ]
    for form in FORMS:
        columns = [row[2:] for row in rows if row[1] == form]
        means = np.array(columns, np.float64).mean(axis=0)
        rows.append(["all", form, *(f"**{number:.1f}**" for number in means)])
    header = ["traffic", "as", *(f"× {factor:g}" for factor in factors)]
    header += [f"A/A, noise {100 * noise:.0f} %" for noise in noises]
    title = (
        f"compare, one run of 300 s per side: a change is stated, % of {runs} (× at run noise 10 %)"
    )
    show(title, header, rows, text=2)
