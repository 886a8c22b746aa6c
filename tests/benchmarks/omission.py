"""How well `diagnose` judges: textbook freezes, loops without a freeze, rare ends of runs, ranges.

``python -m tests.benchmarks.omission`` prints the tables, and how often it is wrong where worlds are as common as the priors say;
``--first 1000`` takes seeds that nothing was tuned on (tuned on: 0 to 99).
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

import latencykit as lk
from latencykit import simulate
from latencykit.analysis import explanations
from latencykit.core.run import Run
from tests.benchmarks import truth_diagnosis as worlds
from tests.benchmarks.tables import show
from tests.benchmarks.truth_diagnosis import World, seeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Case = tuple[str, str, Any, dict[str, Any]]
"""A row of a table, a form, data, and what is stated."""

SERVICES = {
    "1 ms": "1ms", "lognormal .1": simulate.lognormal("1ms", 0.1), "lognormal .3": simulate.lognormal("1ms", 0.3),
    "lognormal 1": simulate.lognormal("1ms", 1.0), "exponential": simulate.exponential("1ms"),
}  # fmt: skip
SCHEDULES = (
    ("200s", [(100, 100)]), ("300s", [(100, 100)]), ("60s", [(30, 10)]),
    ("600s", [(100, 100), (300, 100), (500, 100)]),
)  # fmt: skip
UNSTATED = {
    "loop": "unknown", "tool": None, "corrected": "unknown", "measure": "service", "rate": None, "connections": None,
    "duration": None, "achieved": None, "expected_interval": None,
}  # fmt: skip
LAWS: dict[str, worlds.Service] = {
    **{f"lognormal {sigma}": (lambda s: lambda rng, n: rng.lognormal(-s * s / 2, s, n))(sigma) for sigma in (0.5, 0.8, 1.0, 1.3, 1.7)},
    "Pareto 1.5": worlds.BROAD["Pareto 1.5"], "Pareto 2.5": lambda rng, n: (1 - rng.random(n)) ** (-1 / 2.5) * 0.6,
    "exponential": worlds.BROAD["exponential"], "gamma (4)": worlds.BROAD["gamma (4)"], "Weibull 0.5": worlds.BROAD["Weibull 0.5"],
}  # fmt: skip
NUMBERS = (1, 2, 3, 4, 5, 6, 16, 50, 200)
VERDICTS = ("omits", "clean", "no stall", "service times", "unknown")
FORMS = ("samples", "log 0.1 s", "log 1 s")
FORMS += ("histogram, tool and N", "histogram, tool", "histogram, rate and N")


def textbook(_: range) -> Iterator[Case]:
    """100 requests per second on a server that is frozen for 10 or 100 s."""
    for service in SERVICES.values():
        for duration, freezes in SCHEDULES:
            server = simulate.Server(
                service, stalls=[simulate.Stall(*freeze) for freeze in freezes]
            )
            for connections in (1, 10):
                waited = simulate.paced_loop(server, 100, duration, connections=connections)
                for form, data in (
                    ("samples", waited),
                    ("log 1 s", waited.to_log("1s")),
                    ("histogram", waited.histogram()),
                ):
                    yield "textbook: as simulated", form, data, {}
                    yield "textbook: nothing stated", form, data.with_run(**UNSTATED), {}
                stated = {"rate": 100, "connections": connections, "duration": duration}
                unstated = waited.histogram().with_run(**UNSTATED)
                yield "textbook: rate, N, duration", "histogram", unstated, stated
            twin = simulate.open_loop(server, simulate.fixed(100, duration))
            for form, data in (("samples", twin), ("log 1 s", twin.to_log("1s"))):
                yield "open-loop twin", form, data, {}
                yield "open-loop twin: nothing stated", form, data.with_run(**UNSTATED), {}


def _forms(row: str, world: World, names: Iterable[str] = FORMS) -> Iterator[Case]:
    for form, data, stated in worlds.data_types(world, names):
        yield row, form, data, stated


def without_freeze(seeds: range) -> Iterator[Case]:
    """Loops of 1 to 200 connections and broad service, in which nothing ever stopped."""
    for seed in seeds:
        for law, draw in LAWS.items():
            for number in NUMBERS:
                rng = seeded("no freeze", law, number, seed)
                mean = 5e-3 * float(np.exp(rng.uniform(-1, 1)))
                world = worlds.loop(
                    "full speed", number, number / mean, lambda r, n, d=draw, m=mean: m * np.maximum(d(r, n), 1e-3), [],
                    float(rng.uniform(8, 25)), rng,
                )  # fmt: skip
                yield from _forms(
                    "no freeze, N 3 to 6" if 3 <= number <= 6 else "no freeze, other N", world
                )
        for service in (*worlds.BROAD, "queue .9"):
            for kind in ("paced", "catch-up"):
                for number in (1, 2, 10, 50, 200):
                    world = worlds.broad_world(kind, number, service, seed)
                    yield from _forms("no freeze, paced or catching up", world)


def freezes(seeds: range) -> Iterator[Case]:
    """Freezes of all connections that matter, of any loop, once; three times; at the end of the run."""
    for seed in seeds:
        for kind in ("paced", "grid", "catch-up", "full speed"):
            for low, high in worlds.LENGTHS.values():
                for number in (1, 2, 4, 10, 50):
                    dice = seeded((kind, number, (low, high)), seed)
                    steps = float(np.exp(dice.uniform(np.log(low), np.log(high))))
                    world = worlds.frozen_world(kind, number, steps, seed)
                    if world.material:
                        yield from _forms("frozen once", world)
        for number in (1, 2, 4, 10, 50):
            rng = seeded("ends", number, seed)
            rate = float(np.exp(rng.uniform(np.log(30), np.log(300)))) * number**0.5
            length = float(rng.uniform(15, 60)) * number / rate

            def draw(r: Any, n: int, m: float = 0.1 * number / rate) -> Any:
                return m * worlds.BROAD["gamma (4)"](r, n)

            duration = 8 * length + 10
            begin = [0.15 * duration, 0.45 * duration, 0.75 * duration]
            three = worlds.loop(
                "paced", number, rate, draw, [(b, b + length) for b in begin], duration, rng
            )
            yield from _forms("frozen three times", three)
            last = worlds.loop(
                "paced", number, rate, draw, [(duration - length, duration)], duration, rng
            )
            yield from _forms("frozen at the end", last)
            once = [(begin[1], begin[1] + length)]
            part = worlds.loop(
                "full speed", max(number, 4), rate, draw, once, duration, rng, hit=0.4
            )
            if part.material:
                yield from _forms("frozen in part", part)


def schedules(seeds: range) -> Iterator[Case]:
    """Paced loops frozen once to four times, for any time at any moment; the same schedules sent on time, some until a stall."""
    for seed in seeds:
        for name in ("1 ms", "lognormal .3", "lognormal 1", "exponential"):
            for number in (1, 2, 10, 50):
                rng = seeded("schedule", name, number, seed)
                rate = float(rng.choice([50, 100, 400]))
                shortest = max(0.5, 6 * number / rate)
                duration = float(np.exp(rng.uniform(np.log(max(30, 20 * shortest)), np.log(600))))
                lengths = np.exp(
                    rng.uniform(np.log(shortest), np.log(0.15 * duration), rng.integers(1, 5))
                )
                free = np.sort(rng.uniform(0, duration - lengths.sum(), lengths.size))
                begin = free + np.cumsum(lengths) - lengths
                frozen = simulate.Server(
                    SERVICES[name],
                    stalls=[simulate.Stall(*each) for each in zip(begin, lengths, strict=True)],
                )
                last = simulate.Server(
                    SERVICES[name], stalls=[simulate.Stall(duration - lengths[0], lengths[0])]
                )
                fixed = simulate.fixed(rate, duration)
                for row, samples in (
                    ("frozen, schedule at random", simulate.paced_loop(frozen, rate, duration, connections=number)),
                    ("open-loop twin, schedule at random", simulate.open_loop(frozen, fixed)),
                    ("open-loop twin, sent until a stall", simulate.open_loop(last, fixed)),
                ):  # fmt: skip
                    bare = samples.with_run(**UNSTATED)
                    for form, data in (
                        ("samples", bare),
                        ("log 0.1 s", bare.to_log("100ms")),
                        ("log 1 s", bare.to_log("1s")),
                    ):
                        yield row, form, data, {}
                        yield f"{row}, rate stated", form, data, {"rate": rate}


def ordinary(seeds: range) -> Iterator[Case]:
    """Honest worlds; the rare ones, which leave what omission leaves, in a row of their own."""
    rare = (
        "deploy, one slow request", "lull, one slow request", "clock set forward", "clock set forward, one in flight",
        "taken out by a balancer",
    )  # fmt: skip
    for seed in seeds:
        for name in worlds.HONEST:
            world = worlds.honest_world(name, seed)
            row = f"honest, rare: {name}" if name in rare else "honest, ordinary"
            yield from _forms(row, world, (*FORMS[:3], "histogram, rate and N"))


GROUPS: tuple[Callable[[range], Iterator[Case]], ...] = (
    textbook,
    without_freeze,
    freezes,
    schedules,
    ordinary,
)


def judged(cases: Iterable[Case]) -> dict[tuple[str, str], Counter[str]]:
    """Verdicts by row and form, and which of them are sure."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row, form, data, stated in cases:
        found = lk.diagnose(data, **stated)
        cell = counts.setdefault((row, form), Counter())
        cell[found.verdict] += 1
        cell[f"sure {found.verdict}"] += bool(found.sure)
    return counts


def service_times(seeds: range) -> str:
    """Whether open users at the achieved rate see what the ranges of ``service times`` say (a tenth is allowed for chance)."""
    inside, widths, verdicts = [], [], Counter[str]()
    for seed in seeds:
        for law, draw in LAWS.items():
            for number in (1, 4, 16, 50, 200):
                for frozen in (False, True):
                    rng = seeded("service times", law, number, frozen, seed)
                    mean = 5e-3 * float(np.exp(rng.uniform(-1, 1)))
                    duration = 10_000 * mean / number * float(rng.uniform(1, 3)) + 20 * mean

                    def service(r: Any, n: int, d: Any = draw, m: float = mean) -> Any:
                        return m * np.maximum(d(r, n), 1e-3)

                    windows = []
                    if frozen:
                        length, begin = (
                            float(rng.uniform(3, 60)) * mean,
                            float(rng.uniform(0.2, 0.6)) * duration,
                        )
                        windows, duration = [(begin, begin + length)], duration + 3 * length
                    world = worlds.loop(
                        "full speed", number, number / mean, service, windows, duration, rng
                    )
                    at = np.sort(rng.uniform(0, 20 * duration, int(world.rate * 20 * duration)))
                    again = [
                        (a + k * duration, b + k * duration) for k in range(20) for a, b in windows
                    ]
                    truth = 1e9 * (worlds.no_queue(at, service(rng, at.size), again) - at)
                    order = np.argsort(world.start)
                    hey = {"tool": "hey", "loop": "closed", "corrected": "none"}
                    run = Run(**hey, measure="service", duration=duration, connections=number)
                    samples = lk.Samples(
                        start=np.rint(1e9 * world.start[order]),
                        duration=np.rint(1e9 * world.took[order]),
                        run=run,
                    )
                    for data in (samples, samples.histogram()):
                        found = lk.diagnose(data)
                        verdicts[found.verdict] += 1
                        for p, (low, high) in found.most.items():
                            inside.append(0.9 * low <= np.percentile(truth, p) <= 1.1 * high)
                            widths.append(high / low)
    return (
        f"`service times`: {verdicts.total()} loops at full speed: {dict(verdicts)}; of {len(inside)} ranges {np.mean(inside):.1%} "
        f"hold what open users see, median width {np.median(widths):.2f} ×"
    )


def table(title: str, counts: dict[tuple[str, str], Counter[str]]) -> None:
    """Print verdicts by row and form."""
    rows = []
    for (row, form), cell in counts.items():
        total = sum(cell[name] for name in VERDICTS)
        shares = {name: f"{cell[name]} ({100 * cell[name] / total:.1f} %)" for name in VERDICTS}
        cells = (text if cell[name] else "" for name, text in shares.items())
        rows.append([row, form, total, *cells, cell["sure omits"] or ""])
    show(title, ["world", "form", "runs", *VERDICTS, "sure of `omits`"], rows, text=2)


WORLDS = {
    "recorded": ("honest, ordinary",), "isolated": ("no freeze, N 3 to 6", "no freeze, other N"),
    "waits": ("frozen once", "frozen three times", "frozen at the end"),
    "paused": ("honest, rare: deploy, one slow request", "honest, rare: lull, one slow request"),
    "node taken out": ("honest, rare: taken out by a balancer",),
    "clock step": ("honest, rare: clock set forward", "honest, rare: clock set forward, one in flight"),
}  # fmt: skip
"""Rows by the explanation that is true of them."""


def weighted(counts: dict[tuple[str, str], Counter[str]]) -> None:
    """How often runs that omit nothing are accused, and what is sure is wrong, each world as common as its prior."""
    lines = []
    for source in ("unlabelled", "generator"):
        prior = dict(zip(explanations.EXPLANATIONS, explanations.PRIORS[source], strict=True))
        for form in FORMS[:3]:
            accused = honest = sure = wrong = 0.0
            for name, rows in WORLDS.items():
                cells = [counts[row, form] for row in rows if (row, form) in counts]
                share = prior[name] / max(len(cells), 1)
                for cell in cells:
                    total = sum(cell[verdict] for verdict in VERDICTS)
                    parts = {
                        verdict: cell[f"sure {verdict}"] / total for verdict in ("omits", "clean")
                    }
                    false = "clean" if name == "waits" else "omits"
                    sure += share * sum(parts.values())
                    wrong += share * parts[false]
                    honest += share * (name != "waits")
                    accused += share * (name != "waits") * cell["omits"] / total
            shares = accused / honest, sure / (honest + prior["waits"]), wrong / sure
            lines.append([source, form, *(f"{part:.1%}" for part in shares)])
    header = ["wrongly accused", "sure of `omits`, `clean`", "of these wrong"]
    show(weighted.__doc__ or "", ["source", "form", *header], lines, text=2)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--first", type=int, default=1000, help="the first seed")
    options.add_argument("--seeds", type=int, default=3, help="how many of each")
    given = options.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    every: dict[tuple[str, str], Counter[str]] = {}
    for group in GROUPS:
        counts = judged(group(seeds))
        every |= counts
        table(group.__doc__ or "", counts)
    weighted(every)
    print(f"\n{service_times(seeds)}")


if __name__ == "__main__":
    main()
