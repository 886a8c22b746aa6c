"""How gates behave on histories of runs: ``python -m tests.benchmarks.history [FILES]`` prints Markdown.

The first table replays 44 histories that public projects recorded in their CI (tests/data/history, names removed; FILES are others
of the same columns); the README beside this file says what its columns count. The second has series whose truth is known, the third
runs of 20,000 requests, changed in one part; the last shows how often `check --history` is sure of limits, and wrong.
"""

from __future__ import annotations

import csv
import gzip
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from latencykit.analysis.judge import judge, judged
from latencykit.analysis.slo import Outcome, SLORow, with_history
from tests.benchmarks.tables import show
from tests.benchmarks.worlds import autoregression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
    Gate = Callable[[Floats, Floats], str]
    World = Callable[[np.random.Generator, int], Floats]

FILES = sorted((Path(__file__).parents[1] / "data" / "history").glob("*.csv.gz"))
FACTORS = (1.1, 1.25, 1.5, 2.0)
_WARM = 20  # runs before the first that is judged


def load(paths: Iterable[Path]) -> dict[str, Floats]:
    """Return every series of forty runs or more, oldest first; rates as times."""
    rows: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
    for path in paths:
        with gzip.open(path, "rt") as stream:
            for row in csv.DictReader(stream):
                entry = int(row["time"]), float(row["value"]), row["unit"].lower()
                rows[f"{path.name}:{row['series']}"].append(entry)
    series = {}
    for name, entries in rows.items():
        entries.sort()
        values = np.array([value for _, value, _ in entries if value > 0])
        if values.size >= 40:
            rate = "/sec" in entries[0][2] or "ops" in entries[0][2]
            series[name] = 1e6 / values if rate else values
    return series


# ------------------------------------------------------------
# Gates: history and the new run → "worse", "better" or anything else.


def above_last(factor: float) -> Gate:
    """The last run is the base."""
    return lambda history, new: "worse" if new[0] > factor * history[-1] else "same"


def outside(history: Floats, new: Floats) -> str:
    """More than three standard deviations from the mean of sixty runs."""
    last = history[-60:]
    deviation = (new[0] - last.mean()) / max(last.std(ddof=1), 1e-300)
    return "worse" if deviation > 3 else "better" if deviation < -3 else "same"


def _deviations(values: Floats, base: Floats) -> Floats:
    """Distances from the median of the base in its median absolute deviations."""
    logs = np.log(base)
    middle = np.median(logs)
    scale = max(1.4826 * float(np.median(np.abs(logs - middle))), 0.01)
    return np.asarray((np.log(values) - middle) / scale)


def robust(history: Floats, new: Floats) -> str:
    """More than four median absolute deviations from the median of twenty runs."""
    deviation = _deviations(new, history[-20:])[0]
    return "worse" if deviation > 4 else "better" if deviation < -4 else "same"


def three_in_a_row(history: Floats, new: Floats) -> str:
    """Three runs beyond three median absolute deviations of the thirty before; once."""
    values = np.concatenate([history, new])

    def side(end: int) -> int:
        deviations = _deviations(values[end - 3 : end], values[max(end - 33, 0) : end - 3])
        return int((deviations > 3).all()) - int((deviations < -3).all())

    now = side(values.size)
    return "same" if now == 0 or now == side(values.size - 1) else "worse" if now > 0 else "better"


def otava() -> Gate | None:
    """Apache Otava with p = .001: a change point among the last three runs; None without it."""
    try:
        from otava.series import AnalysisOptions, Metric, Series
    except ImportError:
        return None
    options = AnalysisOptions()
    options.max_pvalue = 0.001

    def gate(history: Floats, new: Floats) -> str:
        values = np.concatenate([history, new])
        times = list(range(values.size))
        series = Series("", None, times, {"x": Metric()}, {"x": values.tolist()}, {})
        changes = series.analyze(options).change_points["x"]
        late = [point for point in changes if point.index >= values.size - 3]
        if not late:
            return "same"
        return "worse" if late[-1].forward_change_percent() > 0 else "better"

    return gate


def gates() -> dict[str, Gate | None]:
    """Return the gates of the table; None where a package is not installed."""
    return {
        "twice the last value (github-action-benchmark)": above_last(2.0),
        "10 % above the last value": above_last(1.1),
        "mean + 3 sd of 60 (t-test boundary, as Bencher's)": outside,
        "median + 4 MAD of 20": robust,
        "three in a row beyond median ± 3 MAD of 30": three_in_a_row,
        "Apache Otava, p = .001, change point among the last three": otava(),
        "**latencykit, lk.judge**": judge,
    }


# ------------------------------------------------------------
# Tables.


def replay(gate: Gate, series: Iterable[Floats]) -> dict[str, float]:
    """Return alarms per 100 runs, the share that lasts, and the shares of planted changes found."""
    rng = np.random.default_rng(1)
    alarms = lasting = judged = 0
    found: Counter[float] = Counter()
    tried: Counter[float] = Counter()
    for values in series:
        for t in range(_WARM, values.size - 5):
            judged += 1
            if gate(values[:t], values[t : t + 1]) in ("worse", "better"):
                alarms += 1
                before = np.median(values[t - 10 : t])
                kept = np.log(np.median(values[t + 1 : t + 6]) / before)
                step = np.log(values[t] / before)
                lasting += np.sign(kept) == np.sign(step) and abs(kept) >= abs(step) / 2
        for factor in FACTORS:
            for t in rng.integers(_WARM, values.size - 3, size=6):
                tried[factor] += 1
                changed = values.copy()
                changed[t:] *= factor
                found[factor] += _found(gate, changed, t)
    shares = {f"× {factor:g}": found[factor] / tried[factor] for factor in FACTORS}
    return {
        "alarms per 100": 100 * alarms / judged, "that last": float(lasting) / max(alarms, 1)
    } | shares  # fmt: skip


def _found(gate: Gate, values: Floats, t: int) -> bool:
    return any(gate(values[: t + k], values[t + k : t + k + 1]) == "worse" for k in range(3))


def _correlated(keep: float) -> World:
    return lambda rng, size: np.exp(0.03 * autoregression(rng, size, keep))


def _machines(stay: float) -> World:
    def world(rng: np.random.Generator, size: int) -> Floats:
        switches = rng.random(size) > stay
        slow = np.cumsum(switches) % 2
        return np.exp(slow * np.log(1.15) + rng.standard_normal(size) * 0.01)

    return world


WORLDS: dict[str, World] = {
    "independent, 3 %": _correlated(0.0),
    "AR(.5), 3 %": _correlated(0.5),
    "AR(.8), 3 %": _correlated(0.8),
    "heavy tails (t, 2 d.f.), 2 %": lambda rng, n: np.exp(0.02 * rng.standard_t(2, n)),
    "two machines, × 1.15, at random": _machines(0.5),
    "two machines, × 1.15, ten runs each": _machines(0.9),
    "drift of .1 % per run, 3 %": lambda rng, n: np.exp(
        0.001 * np.arange(n) + 0.03 * rng.standard_normal(n)
    ),
    "1 of 20 runs × 1.5, 3 %": lambda rng, n: np.exp(
        0.03 * rng.standard_normal(n) + np.log(1.5) * (rng.random(n) < 0.05)
    ),
}


def simulated(gate: Gate, series: int, length: int = 80) -> list[tuple[str, list[float]]]:
    """Return per world the false alarms per 100 runs, and the shares of changes found."""
    rows = []
    for name, world in WORLDS.items():
        rng = np.random.default_rng(7)
        alarms, found = 0, Counter[float]()
        for _ in range(series):
            values = world(rng, length)
            for t in range(_WARM, length):
                alarms += gate(values[:t], values[t : t + 1]) in ("worse", "better")
            t = int(rng.integers(_WARM + 10, length - 3))
            for factor in (1.03, 1.05, 1.1, 1.25):
                changed = values.copy()
                changed[t:] *= factor
                found[factor] += _found(gate, changed, t)
        shares = [found[factor] / series for factor in (1.03, 1.05, 1.1, 1.25)]
        rows.append((name, [100 * alarms / series / (length - _WARM), *shares]))
    return rows


STATISTICS = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9}
_PLANTED = {"p50": (0.0, 90.0), "p99": (98.0, 99.5), "tail": (99.5, 100.0)}
"""Ranks between which the latencies change."""


def distributions(series: int, length: int = 40) -> list[list[str]]:
    """Return per planted change the share of series in which each statistic becomes worse."""
    rows = []
    for part, (low, high) in _PLANTED.items():
        for factor in (1.0, 1.03, 1.05, 1.1, 1.25) if part == "p50" else (1.03, 1.05, 1.1, 1.25):
            rng = np.random.default_rng(11)
            found: Counter[str] = Counter()
            for _ in range(series):
                t = length - 3
                level = np.exp(0.03 * rng.standard_normal(length))
                values = {name: np.empty(length) for name in STATISTICS}
                for k in range(length):
                    run = np.sort(np.exp(0.5 * rng.standard_normal(20_000))) * level[k]
                    if k >= t:
                        first, last = (int(run.size * rank / 100) for rank in (low, high))
                        run[first:last] *= factor
                    for name, percentile in STATISTICS.items():
                        values[name][k] = np.percentile(run, percentile)
                worse = [name for name in STATISTICS if _found(judge, values[name], t)]
                found.update(worse)
                found["any"] += bool(worse)
            label = "unchanged" if factor == 1 else f"{part}, + {100 * (factor - 1):.0f} %"
            rows.append([label, *(f"{found[n] / series:.2f}" for n in (*STATISTICS, "any"))])
    return rows


LIMITS = (0.5, 0.8, 0.95, 1.05, 1.25, 2.0)


def checked(series: Iterable[Floats], most: int) -> tuple[int, Floats, Floats]:
    """Return the runs of which limits are checked, at most about `most` of each series, and the shares surely right and wrong."""
    number, right, wrong = 0, np.zeros(len(LIMITS)), np.zeros(len(LIMITS))
    for values in series:
        last = len(values) - 10
        for t in range(_WARM, last, max(1, (last - _WARM) // most)):
            history = judged(values[:t], values[t : t + 1])
            level, number = float(np.median(values[t : t + 11])), number + 1
            for k, factor in enumerate(LIMITS):
                value = float(values[t])
                met = value <= factor * level
                outcome: Outcome = "met" if met else "missed"
                row = SLORow("mean", factor * level, value, value, value, outcome)
                if with_history(row, history).sure:
                    right[k] += met == (factor > 1)
                    wrong[k] += met != (factor > 1)
    return number, right / number, wrong / number


def checks(quick: bool, files: tuple[Path, ...]) -> list[list[str]]:
    """Return how often `check --history` is sure, and how often that is wrong."""
    real = load(files or FILES)
    sides = {"histories": list(real.values())}
    for name, world in WORLDS.items():
        rng = np.random.default_rng(99)
        sides[name] = [world(rng, 80) for _ in range(5 if quick else 30)]
    rows = []
    for name, series in sides.items():
        number, *shares = checked(series, 4 if quick else 12 if name in WORLDS else 50)
        cells = ("/".join(f"{100 * share:.1f}" for share in part) for part in shares)
        rows.append([name, f"{number:,}", *cells])
    return rows


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--quick", is_flag=True, help="A tenth of the simulated series.")
@click.option("--only", default="histories,simulated,distributions,check", help="Tables.")
def main(files: tuple[Path, ...], quick: bool, only: str) -> None:
    """Print the tables."""
    if "histories" in only:
        series = load(files or FILES)
        names = ["alarms per 100", "that last", *(f"× {factor:g}" for factor in FACTORS)]
        rows = []
        for name, gate in gates().items():
            result = replay(gate, series.values()) if gate else {}
            cells = [f"{result[key]:.2f}" if gate else "not installed" for key in names]
            rows.append([name, *cells])
        runs = sum(map(len, series.values()))
        show(f"{len(series)} histories, {runs:,} runs", ["gate", *names], rows)
    if "simulated" in only:
        rows = [
            [name, *(f"{number:.2f}" for number in numbers)]
            for name, numbers in simulated(judge, 20 if quick else 200)
        ]
        header = ["unchanged, or changed by", "false per 100", "3 %", "5 %", "10 %", "25 %"]
        show("Simulated histories", header, rows)
    if "distributions" in only:
        rows = distributions(5 if quick else 50)
        show("Parts of a distribution", ["changed", *STATISTICS, "any"], rows)
    if "check" in only:
        title = f"Limits at {', '.join(f'{factor:g}' for factor in LIMITS)} times the level, %"
        header = ["runs of", "runs", "sure and right", "sure and wrong"]
        show(title, header, checks(quick, files))


if __name__ == "__main__":
    main()
