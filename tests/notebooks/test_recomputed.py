"""Numbers of changed and new lessons from their definitions: numpy, scipy and arithmetic, and nothing of the package."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
import zlib
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import linalg, optimize, special, stats

if TYPE_CHECKING:
    from collections.abc import Callable

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
DATA = NOTEBOOKS.parent / "data"


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


def signed(data: bytes) -> np.ndarray:
    """Return the numbers of a V2 payload: zigzag, seven bits a byte, the ninth byte whole."""
    found, word, shift = [], 0, 0
    for byte in data:
        last = shift == 56
        word |= (byte if last else byte & 0x7F) << shift
        shift += 7
        if last or byte < 0x80:
            found.append(word >> 1 ^ -(word & 1))
            word = shift = 0
    return np.array(found, np.int64)


@cache
def intervals(name: str) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Start, highest values and counts of the buckets of each interval of a log, by the specification of HdrHistogram (V1, V2)."""
    found = []
    for line in (DATA / f"{name}.hlog").read_text("utf-8").splitlines():
        if not re.match(r"-?[\d.]", line):
            continue
        start, _, _, payload = line.split(",")
        data = zlib.decompress(base64.b64decode(payload)[8:])
        cookie, length, _, digits, lowest = struct.unpack(">4iq", data[:24])
        body = data[40 : 40 + length]
        if cookie & ~0xF0 == 0x1C849301:  # V1: a word per bucket
            counts = np.frombuffer(body, f">i{cookie >> 4 & 15}").astype(np.int64)
            where = np.flatnonzero(counts)
        else:  # V2: a count, or less than zero: how many empty buckets
            assert cookie & ~0xF0 == 0x1C849303
            counts = signed(body)
            where = np.cumsum(np.where(counts < 0, -counts, 1)) - 1
            where, counts = where[counts > 0], counts
        half, unit = 1 << math.ceil(math.log2(2 * 10**digits)) - 1, math.floor(math.log2(lowest))
        bucket = np.maximum(where // half - 1, 0)
        high = (where - bucket * half + 1 << bucket + unit) - 1
        found.append((float(start), high, counts[counts > 0]))
    return found


def together(name: str, since: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Values and counts of all intervals of a log that start `since` seconds after its first or later, in ascending order."""
    parts = [(values, counts) for start, values, counts in intervals(name) if start - intervals(name)[0][0] >= since]
    values, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(values)
    return values[order], counts[order]


def of_log(values: np.ndarray, counts: np.ndarray, p: float) -> int:
    return int(values[np.searchsorted(np.cumsum(counts), math.ceil(p / 100 * counts.sum() - 1e-9))])


def pauses() -> dict[str, float]:
    (v2, n2), (us, n) = together("jhiccup-v2"), together("ycsb")
    return {
        "median, ms {:.3f} 0.393 0.393 0.373": of_log(v2, n2, 50) / 1e6, "0.344 0.393 0.393 {:.3f}": of_log(us, n, 50) / 1e3,
        "p99, ms {:.1f}00 1241.500 1107.300": of_log(v2, n2, 99) / 1e6, "1241.500 1107.300 {:.1f}00": of_log(us, n, 99) / 1e3,
        "p99.9, ms {:.1f}00 1837.100 1518.300": of_log(v2, n2, 99.9) / 1e6, "1837.100 1518.300 {:.1f}00": of_log(us, n, 99.9) / 1e3,
        "max, ms {:.1f}00 1895.800 1577.100": v2[-1] / 1e6, "1895.800 1577.100 {:.1f}00": us[-1] / 1e3,
        "requests {:d}.000 65964.000": n2.sum(), "61256.000 {:d}.000": n.sum(),
    }  # fmt: skip


def of_windows() -> dict[str, float]:
    p95s = [of_log(np.sort(v), n[np.argsort(v)], 95) / 1e3 for _, v, n in intervals("ycsb") if n.size]
    return layouts() | {"average of 602 p95s: {:.1f} ms": np.mean(p95s), "true p95: {:.1f} ms": of_log(*together("ycsb"), 95) / 1e3}


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


def unlucky(name: str) -> float:
    """Per cent of the users with 100 requests in one interval of whom one is above the p99 of the log."""
    edge = of_log(*together(name), 99)
    above, every = np.array([[n[v > edge].sum(), n.sum()] for _, v, n in intervals(name) if n.size]).T
    return float(100 * np.average(1 - (1 - above / every) ** 100, weights=every))


def users() -> dict[str, float]:
    slow = 1 - 0.99 ** np.array([10, 100])
    return {
        **{f"{name} 63.0 {{:.1f}}": round(unlucky(name)) for name in ("ctrlz-scheduled", "jhiccup-gc", "jhiccup-v2")},
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


def _in_batches(t: float) -> float:
    """P(response ≤ t ms): batches of 10 at 50 per second, exponential service of 1 ms. A cut of the chain gives who is there."""
    there = [0.5]
    while len(there) < 2000:
        there.append(0.05 * sum(there[-10:]))
    ahead = np.convolve(there, np.full(10, 0.1))
    return float(ahead @ stats.gamma.cdf(t, np.arange(1, ahead.size + 1)))


@cache
def _in_bursts() -> Callable[[float], float]:
    """P(response ≤ t ms): 0.9 and 0.1 requests per ms for a second each, by the equations of the chain, solved until they repeat."""
    n, step = 300, 5.0
    walk = {}
    for rate in (0.9, 0.1):
        flow = np.diag(np.full(n - 1, rate), 1) + np.diag(np.ones(n - 1), -1)
        walk[rate] = linalg.expm(step * (flow - np.diag(flow.sum(axis=1))))
    now, met = np.eye(n)[0], np.zeros(n)
    for turn in range(4):
        for rate in (0.9, 0.1):
            for _ in range(200):
                after = now @ walk[rate]
                met += rate * (now + after) / 2 if turn == 3 else 0
                now = after
    return lambda t: float(met @ stats.gamma.cdf(t, np.arange(1, n + 1)) / met.sum())


def till() -> dict[str, float]:
    rng, n = np.random.default_rng(100), 4_000_000  # another sample of the queue, by Lindley's recursion
    work = np.where(rng.random(n) < 0.01, 180.0, 30.0)
    steps = np.concatenate(([0.0], np.cumsum(work[:-1] - rng.exponential(31.5 / 0.8, n - 1))))
    took = steps - np.minimum.accumulate(steps) + work
    assert rank(took, 99) == pytest.approx(475, rel=0.02)
    second = 0.99 * 30**2 + 0.01 * 180**2
    means = {f"{r:.2f} {{:16.1f}}": 31.5 + r / 31.5 * second / (2 * (1 - r)) for r in (0.5, 0.8, 0.9, 0.95)}
    idle = math.log(100)
    assert optimize.brentq(lambda t: _in_batches(t) - 0.99, 1, 200) == pytest.approx(44, rel=0.01)
    assert optimize.brentq(lambda t: _in_bursts()(t) - 0.99, 1, 200) == pytest.approx(41, rel=0.01)
    due = np.cumsum(np.random.default_rng(1).exponential(10, 20_000)).reshape(-1, 32)  # no batch meets another at 100 per second
    steps = np.cumsum(np.r_[0, np.full(19_999, 5.05)] - np.diff(np.cumsum(np.random.default_rng(1).exponential(1000 / 190, 20_000)), prepend=0))
    each = steps - np.minimum.accumulate(steps) + 5.05
    means |= {
        "p99 is {:.0f} ms for a write": rank((due[:, -1:] - due + 6.6).ravel(), 99), "to {:.0f} ms at 190": rank(each, 99),
        "per write makes {:.0f} messages": 1000 / 5.05, "for a write of {:.1f} ms": 5 + 32 * 0.05,
    }  # fmt: skip
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
    dilution = [m * (1 + 8 * warm / 20_000) for m, warm in ((1, 500), (0.9, 1500))]
    rest = [m * (1 + 8 * warm / 19_000 * math.exp(-1000 / warm)) for m, warm in ((1, 500), (0.9, 1500))]
    (us, n), (late, m) = together("ycsb"), together("ycsb", 130)
    means = [float(v @ c / c.sum()) / 1e3 for v, c in ((us, n), (late, m))]
    tails = [of_log(us, n, 99) / 1e3, of_log(late, m, 99) / 1e3]
    found |= {
        "the commit is {:.0f} % slower": 100 * (dilution[1] / dilution[0] - 1), "still {:.0f} % slower": 100 * (rest[1] / rest[0] - 1),
        "more than {:,.0f} requests gains": (8 * 1500 * 0.9 - 8 * 500) / 0.1, "at about {:,.0f} requests": round(1500 * math.log(7.2 / 0.1), -2),
        "{:.1f} ms or ": means[0], "ms or {:.2f}, and": means[1], "a p99 of {:.0f} ms or": tails[0], "ms or {:.1f}: factors": tails[1],
        "factors of {:.0f} and": means[0] / means[1], "and {:.0f} between two": tails[0] / tails[1],
    }  # fmt: skip
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
        "{:.1f} times as much work": 0.7 * 2, "refuses the other {:.0f} % at once": 100 * (1 - 1000 / 1200),
    }  # fmt: skip


def clocks() -> dict[str, float]:
    rng = np.random.default_rng(5)
    sent = np.sort(rng.uniform(0, 60, 12_000))
    took = rng.lognormal(math.log(0.05), 0.3, 12_000)
    logged = took - 0.8 * ((sent < 20) & (sent + took > 20)) + 0.8 * ((sent < 40) & (sent + took > 40))
    gc, n = together("jhiccup-gc")
    late = np.array([c[v > of_log(gc, n, 99)].sum() for _, v, c in intervals("jhiccup-gc")])
    return {
        "{:d}: those under way": (logged != took).sum(), "are {:.1f} requests on average": 200 * 0.05 * math.exp(0.045),
        "p99.9 is {:.0f} ms instead": 1e3 * rank(logged, 99.9), "instead of {:.0f}. Dropping": 1e3 * rank(took, 99.9),
        "{:.0f} %.\n": 100 * (1 - math.exp(-1)), "the way back {:.1f} ms": 0.8 + 2, "by {:.1f} ms on average here": (2.0 - 0.8) / 2,
        "{:.0f} of 40 ms": 100 * (0.003 * 50 + 0.997 * 0.1), "{:,d} requests\n": n.sum(), "p99 is {:.1f} ms.": of_log(gc, n, 99) / 1e6,
        "Of the {:d} wake-ups": late.sum(), "the other {:d} in that one": late[1], "the second maximum, {:.0f} ms": intervals("jhiccup-gc")[1][1].max() / 1e6,
    }  # fmt: skip


CLAIMS = {1: pauses, 3: of_windows, 4: users, 5: ctrl_z, 6: answered, 8: till, 9: gates, 11: culprits, 12: clocks, 13: cures}


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


def test_the_numbers_are_many_and_none_is_from_the_package() -> None:
    numbers = sum(len(value) if isinstance(value, tuple) else 1 for of in CLAIMS.values() for value in of().values())
    assert numbers >= 90
    assert not re.search(r"^\s*(?:import|from) latencykit", Path(__file__).read_text("utf-8"), re.MULTILINE)
