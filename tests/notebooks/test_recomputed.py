"""Numbers of changed and new lessons from their definitions: numpy, scipy and arithmetic, and nothing of the package."""

from __future__ import annotations

import json
import math
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def rank(values: np.ndarray, p: float) -> float:
    return float(np.sort(values)[math.ceil(p / 100 * len(values) - 1e-9) - 1])


def one_by_one(due: np.ndarray, work: float, stop: float, go: float) -> np.ndarray:
    """Response times of a server that takes `work` seconds per request and stops from `stop` to `go`."""
    free, took = 0.0, []
    for at in due:
        begin = max(at, free)
        free = (go if stop <= begin < go else begin) + work
        took.append(free - at)
    return np.array(took)


def paced(work: float, stop: float, go: float, rate: int, duration: int) -> np.ndarray:
    """Latencies of a client that waits, and skips the times of its schedule that pass meanwhile."""
    k, took = 0, []
    while k < rate * duration:
        at = k / rate
        end = (go if stop <= at < go else at) + work
        took.append(end - at)
        k = max(k + 1, math.ceil(end * rate - 1e-9))
    return np.array(took)


def filled(latencies: np.ndarray, interval: float) -> np.ndarray:
    """HdrHistogram's rule: a value v stands for v - I, v - 2I … down to I as well."""
    fills = [v - interval * j for v in latencies if v >= 2 * interval for j in range(1, int(v / interval + 1e-9))]
    return np.concatenate((latencies, fills))


def ctrl_z() -> dict[str, float]:
    due = np.arange(20_000) / 100
    late = one_by_one(due, 0.001, 100, 200)  # a client that catches up sends its backlog one by one
    busy = one_by_one(np.arange(12_000) / 100, 0.008, 20, 25)
    corrected = filled(paced(0.008, 20, 25, 100, 120), 0.01)
    return {
        "p50 {:.3f} s": rank(late, 50), "p75 {:.1f} s": rank(late, 75), "{:,.0f} requests\n": late.size,
        "p95 is {:.1f} s": rank(busy, 95), "p95 {:.0f} ms**": 1e3 * rank(corrected, 95),
        "{:.0f} times too *low*": rank(busy, 95) / rank(corrected, 95),
        "{:.0f} s of queue": (busy > 0.01).sum() / 100 - 5, "knows of {:.0f} s in 120": (corrected > 0.01).sum() / 100,
    }  # fmt: skip


def layouts() -> dict[str, float]:
    return {
        "OpenTelemetry, scale 3 {:26.3f}": 100 * (2 ** (1 / 8) - 1), "scale 4 {:26.3f}": 100 * (2 ** (1 / 16) - 1),
        "DDSketch, 1 % {:.3f}": 100 * (1.01 / 0.99 - 1), "HDR, 2 digits {:.3f}": 100 / 128, "HDR, 3 digits {:.3f}": 100 / 1024,
        "each edge is {:.0f} % above": 100 * (2 ** (1 / 8) - 1),
    }  # fmt: skip


def users() -> dict[str, float]:
    slow = 1 - 0.99 ** np.array([10, 100])
    return {
        "p99 of all 50: {:.1f} ms": math.exp(stats.norm.ppf(0.99 ** (1 / 50))),
        "p99 of the fastest 45: {:.2f} ms": math.exp(stats.norm.ppf(special.betaincinv(45, 6, 0.99))),
        "instead of {:.0f} %": 100 * slow[1], "10 {:.1f}\n": 100 * slow[0], "100 {:.1f}\n": 100 * slow[1],
    }  # fmt: skip


def answered() -> dict[str, float]:
    took = one_by_one(np.arange(10_000) / 500, 0.0, 7, 13)
    good = took[took <= 2]
    return {
        "leaves 1 ms near p{:.0f} and climbs": 100 * (took < 0.001).mean(), "leaves 1 ms near p{:.0f} and ends": 100 * (good < 0.001).mean(),
        "gave up: {:,.0f}": (took > 2).sum(), "answered: {:,.0f}": good.size,
    }  # fmt: skip


def till() -> dict[str, float]:
    rng, n = np.random.default_rng(100), 4_000_000  # another sample of the queue, by Lindley's recursion
    work = np.where(rng.random(n) < 0.01, 180.0, 30.0)
    steps = np.concatenate(([0.0], np.cumsum(work[:-1] - rng.exponential(31.5 / 0.8, n - 1))))
    took = steps - np.minimum.accumulate(steps) + work
    assert rank(took, 99) == pytest.approx(475, rel=0.02)
    second = 0.99 * 30**2 + 0.01 * 180**2
    means = {f"{r:.2f} {{:16.1f}}": 31.5 + r / 31.5 * second / (2 * (1 - r)) for r in (0.5, 0.8, 0.9, 0.95)}
    idle = math.log(100)
    return means | {"idle server ({:.1f})": idle, "p99 is {:.1f} times": 2 * idle, "{:.1f} requests per second": 1000 - idle / 0.02}


def gates() -> dict[str, float]:
    found = {}
    for n in (3, 4, 5):
        sums = np.array([sum(of) for of in combinations(range(1, 2 * n + 1), n)]) - n * (2 * n + 1) / 2
        two = np.array([(np.abs(sums) >= abs(s) - 1e-9).mean() for s in sums])
        one = np.array([(sums >= s - 1e-9).mean() for s in sums])
        row = (two.min(), one.min(), (two <= 0.05 + 1e-12).mean(), (one <= 0.05 + 1e-12).mean())
        found[f"{n} against {n} runs " + " ".join(f"{{{k}:.4f}}" for k in range(4))] = row
    z = stats.norm.ppf(0.99)
    sampling = math.sqrt(0.99 * 0.01 / 20_000) / (stats.norm.pdf(z) / 0.5)
    chance = 2 * stats.norm.sf(math.log(1.04) / (math.hypot(0.03, sampling) * math.sqrt(2 / 5)))
    return found | {"another {:.1f} % from chance": 100 * sampling, "in {:.0f}% of comparisons": 100 * chance}


def culprits() -> dict[str, float]:
    rng, n = np.random.default_rng(10), 60_000
    start = np.sort(rng.uniform(0, 600, n))
    rng.choice(4, n, p=[0.5, 0.3, 0.12, 0.08])
    shard, took = rng.integers(0, 8, n), 5e-3 * rng.lognormal(0, 0.6, n)
    for begin in np.linspace(20, 560, 12):
        hit = (shard == 3) & (start > begin) & (start < begin + 2)
        took[hit] += begin + 2 - start[hit]
    rest = took[shard != 3]
    slow = took > rank(took, 99)
    return {
        "p99 would be {:.1f} ms": 1e3 * rank(rest, 99), "instead of {:.1f} ms": 1e3 * rank(took, 99), "p99.9 is {:.1f} s": rank(took, 99.9),
        "and {:.0f} ms without shard 3": 1e3 * rank(rest, 99.9), "{:.1f} % of those above p99": 100 * (shard[slow] == 3).mean(),
    }  # fmt: skip


def cures() -> dict[str, float]:
    return {
        "needs {:.0f} ms. (Cancelling": math.exp(-0.5 + stats.norm.ppf(0.99)), "P95 = {:.1f} ": math.exp(-0.5 + stats.norm.ppf(0.95)),
        "answers {:.0f} % within 10 ms": 100 * (1 - math.exp(-0.01 * 300)), "send {:,.0f}, it works": 700 * 4,
        "send {:,.0f} per second.": 300 * 4, "1,000 / 4 = {:.0f} new": 1000 / 4,
        "from second {:.0f}.": 11 + math.ceil((700 - 100) / 300),  # a backlog of 700, a wait below 0.1 s, 300 to spare
        "{:.1f} times as much work": 0.7 * 2, "tells {:.0f} % so": 100 * (1 - 1000 / 1200),
    }  # fmt: skip


CLAIMS = {3: layouts, 4: users, 5: ctrl_z, 6: answered, 8: till, 9: gates, 11: culprits, 13: cures}


@pytest.mark.parametrize("lesson", CLAIMS)
def test_a_lesson_says_what_its_definitions_give(lesson: int) -> None:
    (path,) = NOTEBOOKS.glob(f"{lesson:02d}-*.ipynb")
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        parts.append("".join(cell["source"]))
        for out in cell.get("outputs", []):
            data = out.get("data", {})
            parts += ["".join(out.get("text", "")), "".join(data.get("text/plain", ""))]
            parts.append(re.sub(r"<[^>]+>", " ", "".join(data.get("text/html", ""))))  # wide tables are in one piece
    text = " ".join("\n".join(parts).split())
    claims = CLAIMS[lesson]()
    said = [" ".join(form.format(*(value if isinstance(value, tuple) else (value,))).split()) for form, value in claims.items()]
    assert [one for one in said if one not in text] == []


def test_forty_numbers_are_recomputed_and_none_by_the_package() -> None:
    numbers = sum(len(value) if isinstance(value, tuple) else 1 for of in CLAIMS.values() for value in of().values())
    assert numbers >= 40
    assert not re.search(r"^\s*(?:import|from) latencykit", Path(__file__).read_text("utf-8"), re.MULTILINE)
