"""The numbers behind verdicts are those of a table, which ``python -m tests.snapshots`` writes anew where a change is meant."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

import latencykit as lk
from latencykit.simulate import Server, Stall, closed_loop
from tests.analysis.test_diagnose import bare, measured
from tests.benchmarks.truth_answers import printed
from tests.benchmarks.truth_diagnosis import data_types, frozen_world
from tests.conftest import FORMS
from tests.io.test_contract import CASES

TABLE = Path(__file__).parents[1] / "snapshots" / "numbers.yaml"
FIRST = {case.format: case for case in reversed(CASES)}
KEPT = FORMS | {"bare": bare, "bare log": lambda run: bare(run.to_log("100ms")), "rows": printed}


def leaves(part: Any) -> list[float]:
    """Every number in records, rows and arrays; those that are not finite are large."""
    if dataclasses.is_dataclass(part):
        part = [getattr(part, item.name) for item in dataclasses.fields(part)]
    if isinstance(part, dict | list | tuple):
        inner = part.values() if isinstance(part, dict) else part
        return [number for one in inner for number in leaves(one)]
    counts = isinstance(part, bool | int | float | np.ndarray | np.generic)
    every = np.ravel(part).astype(float) if counts else np.zeros(0)
    return np.nan_to_num(every, nan=-1e9, posinf=1e9, neginf=-1e9).tolist()


def row(name: str, data: Any) -> str:
    """The verdict, and what each part of an answer comes to: a number of any size counts."""
    found, checked = lk.diagnose(data), list[Any]()
    whole = data.histogram() if isinstance(data, lk.Samples | lk.HistogramLog) else data
    if isinstance(whole, lk.Histogram):
        near = {"p50": whole.percentile(50), "p99": whole.percentile(99), "mean": whole.mean}
        unit = whole.unit.replace("none", "")
        limits = [f"{name}={1.03 * one!r}{unit}" for name, one in near.items() if 0 < one < np.inf]
        checked += lk.SLO.parse(",".join(limits)).check(data) if limits else []
    own = [found.detected_stalls, found.longest, found.due, found.backlog, found.rows]
    sums = []
    for part in (found.explained, found.left, found.bound, own, checked):
        every = np.array(leaves(part))
        sums.append(float((np.sign(every) * np.log1p(1e6 * np.abs(every))).sum()))
    return " ".join([f"{name}: {found.verdict}", *(f"{one:.3f}" for one in sums)])


def runs() -> dict[str, lk.Samples]:
    found = {loop: measured(loop) for loop in ("open", "late", "full", "quiet", "paced")}
    for kind, number, seed in (("paced", 50, 1), ("paced", 2, 7), ("full speed", 10, 3)):
        _, data, _ = next(iter(data_types(frozen_world(kind, number, 20, seed), ["samples"])))
        found[f"{kind} {number}"] = data
    for number, stall in ((1, 2), (8, 4)):  # a broad service
        server = Server(lambda rng, n: 3e6 * rng.weibull(0.7, n), 256, stalls=[Stall(17.3, stall)])
        found[f"closed {number}"] = closed_loop(server, 40, connections=number)
    return found


def table() -> str:
    """Of runs whose truth is known, in every form, and of samples that may have stalls."""
    rows = [
        row(f"{name}, {form}", KEPT[form](run)) for name, run in runs().items() for form in KEPT
    ]
    for name in (line.partition(":")[0] for line in TABLE.read_text().splitlines()):
        if name in FIRST:
            rows.append(row(name, next(iter(FIRST[name].read().values()))))
    return "\n".join([*rows, ""])


def test_numbers_are_those_of_the_table() -> None:
    assert table() == TABLE.read_text()
