"""Latency assertions that do not flake: `assert_latency`, and the fixture `latency` of pytest.

Blocks of calls are the unit, since calls of one moment depend on each other. Evidence is a wealth
that starts at 1; each block multiplies it by a factor whose mean is at most 1 while the code is as
fast as required. So a test of such code fails with a probability of at most 1/1,000, however often
it looks (Ville's inequality; Waudby-Smith and Ramdas, "Estimating means of bounded random variables
by betting", JRSS B 86(1), 2024; for quantiles Howard and Ramdas, Bernoulli 28(3), 2022).

Time in which the thread was ready to run and had no processor is not the code's: Linux accounts it
per thread, in nanoseconds. A thread that measures hiccups beside the code would wait for the lock
of the interpreter, and blame the machine for the code. Other systems account no such time.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import math
import os
import random
import re
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from latencykit._arrays import ragged
from latencykit._records import record
from latencykit.analysis.slo import SLO
from latencykit.core.histogram import Histogram
from latencykit.errors import DataNotAvailableError, InvalidArgumentError
from latencykit.units import format_change, format_count, format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from latencykit._typing import Floats

    Found: TypeAlias = tuple[float, float, float, float, float]
    Function: TypeAlias = Callable[[], object]
    Time: TypeAlias = str | float

Verdict = Literal["passed", "failed", "undecided", "off"]


@record()
class Rules:
    """Numbers of the assertions; `python -m tests.benchmarks.assertions` prints what they give."""

    failing: float = math.log(1000.0)  # log wealth: 1 false failure in 1,000 tests at most
    passing: float = math.log(100.0)  # against a change beyond what is allowed
    block_ns: float = 2e6  # of one side of a pair, at least one call: shorter than a slow moment
    limit_block_ns: float = 1e6  # p99 passes after some 600 blocks without a call beyond the limit
    batch_ns: float = 5e7  # between looks, and at least a part of the budget for a limit, of which
    batches: int = 40  # 12 have to be beyond the limit: no single moment decides
    span_ns: float = 1e5  # between readings of the waiting time, each of which takes 3 µs
    bets: tuple[float, ...] = (0.08, 0.2, 0.5, 1.5)  # on pairs, in their standard deviations
    stakes: tuple[float, ...] = (0.03, 0.1, 0.3, 0.6, 0.95)  # on limits, of all that can be lost
    pooled: float = 50.0  # latest calls beyond the percentile that both sides are compared at
    z: float = 1.96  # of the intervals that are shown
    uneven: float = 2.0  # times as much waiting on one side as on the other is the code's own
    run_noise: float = 3.1  # standard deviations from run to run beyond which 1 in 1,000 lies


RULES = Rules()
_STEPS, _OFFSET = 256, 10  # buckets per factor of 2 (0.3 %); factors of 2 below 1 ns
_WAITING = Path("/proc/thread-self/schedstat")


class UndecidedWarning(UserWarning):
    """The budget was spent before a latency assertion was decided."""


@record()
class LatencyResult:
    """What a latency assertion found; its text is the fact, the limit, and what decided."""

    verdict: Verdict
    statistic: str  # such as "p99"
    value: float  # ns
    base: float  # what it is compared with, ns; NaN for a limit
    limit: float  # relative change; for a limit ns
    low: float  # 95 % interval, of the change; for a limit of the share of calls beyond it
    high: float
    seconds: float
    calls: int
    blocks: int
    waited: float  # share of the time without a processor, which is left out; of the worse side
    series: Mapping[str, Histogram]
    note: str = ""

    def __str__(self) -> str:
        if not self.calls:
            return self.verdict
        low, high = 100 * self.low, 100 * self.high
        text = f"{self.statistic} {format_duration(self.value)}"
        if math.isnan(self.base):
            text += f", limit {format_duration(self.limit)}"
            if math.isfinite(low) and self.verdict != "passed":
                text += f", which {low:.3g} to {high:.3g} % of calls exceed"
        else:
            change = format_change(self.value / self.base - 1)
            change += f", {low:.0f} to {high:.0f}" if high - low < 500 and low > -90 else ""
            text += f", {format_duration(self.base)} before ({change})"
            text += f", limit {format_change(self.limit)}"
        text += f"; {'un' if self.verdict == 'undecided' else ''}decided after {self.seconds:.2g} s"
        text += f", {format_count(self.calls)} calls in {format_count(self.blocks)} blocks"
        if self.waited >= 0.01:
            text += f"; waiting for a processor ({100 * self.waited:.0f} % of the time) is left out"
        return f"{text}; {self.note}" if self.note else text


def _log_mean(logs: Floats) -> float:
    return float(np.logaddexp.reduce(logs) - math.log(logs.size))


def _quantile(blocks: Sequence[Floats], share: float) -> float:
    return float(np.quantile(np.concatenate(blocks), share, method="inverted_cdf"))


class LimitEvidence:
    """Bets on the share of calls beyond a limit (ns), which a percentile lets be 1 - p at most."""

    def __init__(self, percentile: float, limit: float, base: float = math.nan) -> None:
        self.share, self.limit, self.base = 1 - percentile / 100, limit, base
        self._over, self._under = np.zeros((2, len(RULES.stakes)))
        self._beyond: list[float] = []  # by batch
        self.sides: tuple[list[Floats], ...] = ([],)

    def add(self, blocks: Sequence[Floats]) -> Verdict | None:
        """Take a batch of blocks of latencies; return the verdict, if it is decided."""
        blocks = [block for block in blocks if block.size]
        if not blocks:
            return None
        self.sides[0].extend(blocks)
        sizes, beyond = np.array([b.size for b in blocks]), np.concatenate(blocks) > self.limit
        self._beyond.append(float(beyond.mean()))
        # A batch counts at most twofold, so that a dozen of them is needed.
        bets = np.array(RULES.stakes) / self.share * (self._beyond[-1] - self.share)
        self._over += np.log1p(np.minimum(bets, 1.0))
        parts = np.bincount(ragged(sizes)[0], beyond) / sizes - self.share
        self._under += np.log1p(-np.outer(RULES.stakes, parts) / (1 - self.share)).sum(axis=1)
        if _log_mean(self._over) > RULES.failing:
            return "failed"
        return "passed" if _log_mean(self._under) > RULES.passing else None

    def found(self) -> Found:
        """Value, level of a history, limit, and by the batches the share of calls beyond it."""
        value, low, high = _quantile(self.sides[0], 1 - self.share), math.nan, math.nan
        if not math.isnan(self.base):
            return value, self.base, self.limit / self.base - 1, low, high
        if len(self._beyond) >= 6:
            mean = float(np.mean(self._beyond))
            error = RULES.z * float(np.std(self._beyond)) / len(self._beyond) ** 0.5
            low, high = max(mean - error, 0.0), min(mean + error, 1.0)
        return value, self.base, self.limit, low, high


class PairEvidence:
    """Bets on pairs of blocks, one of old and one of new calls, which were measured in any order.

    If new calls, divided by what is allowed, are no slower than old ones, it is a coin flip which
    block has more calls beyond the percentile of both together, whatever the machine does. That
    percentile is of the latest calls, so that the machine may change.
    """

    def __init__(self, percentile: float, allowed: float) -> None:
        self.share, self.allowed, self._square = 1 - percentile / 100, allowed, 0.0
        self._over, self._under = np.zeros((2, len(RULES.bets)))
        self._pool, self._batches = np.zeros(64 * _STEPS), list[list[tuple[Any, ...]]]()
        self.sides: tuple[list[Floats], ...] = ([], [])

    def add(self, base: Sequence[Floats], new: Sequence[Floats]) -> Verdict | None:
        """Take a batch of pairs of blocks of latencies; return the verdict, if it is decided."""
        pairs = [pair for pair in zip(base, new, strict=True) if pair[0].size and pair[1].size]
        if not pairs:
            return None
        batch = []
        for side, blocks in enumerate(zip(*pairs, strict=True)):
            self.sides[side].extend(blocks)
            sizes = np.array([block.size for block in blocks])
            values = np.maximum(np.concatenate(blocks) / (1 + self.allowed * side), 0.1)
            buckets = ((np.log2(values) + _OFFSET) * _STEPS).astype(np.int64)
            batch.append((buckets, ragged(sizes)[0], sizes))
        self._batches.append(batch)
        # All that the size of a bet depends on is the same if the sides of a pair are swapped.
        slower = self._scores(batch, self._pool)
        self._square += float(slower @ slower)
        bets = np.outer(RULES.bets, slower) / math.sqrt(self._square / len(self.sides[0]) or 1.0)
        even = np.logaddexp(bets, -bets) - math.log(2)
        self._over += (bets - even).sum(axis=1)
        self._under += (-bets - even).sum(axis=1)
        over, under = _log_mean(self._over), _log_mean(self._under)
        if over <= RULES.failing and under <= RULES.passing:
            return None
        old, young = (_quantile(side, 1 - self.share) for side in self.sides)
        if young > old * (1 + self.allowed):
            return "failed" if over > RULES.failing else None
        return "passed" if under > RULES.passing else None

    def _scores(self, batch: Sequence[tuple[Any, ...]], pool: Floats, moved: int = 0) -> Floats:
        """New less old calls beyond the percentile, per pair; divides by `moved` buckets more."""
        (old, in_old, sizes), (new, in_new, new_sizes) = batch
        for buckets in (old, new - moved):
            pool += np.bincount(buckets, minlength=pool.size)
        pool *= min(1.0, RULES.pooled / self.share / pool.sum())
        at = int(np.searchsorted(np.cumsum(pool), (1 - self.share) * pool.sum()))
        beyond = np.bincount(in_new[new - moved > at], minlength=sizes.size) / new_sizes
        beyond -= np.bincount(in_old[old > at], minlength=sizes.size) / sizes
        return np.asarray(beyond * (sizes.mean() + new_sizes.mean()) / 2)

    def found(self) -> Found:
        """Both percentiles, what is allowed, and the changes that the pairs do not reject."""
        old, new = (_quantile(side, 1 - self.share) for side in self.sides)
        ends = []
        for z in (RULES.z, -RULES.z):
            low = round(math.log2(new / old / (1 + self.allowed)) * _STEPS) - 6 * _STEPS
            high = low + 12 * _STEPS
            while low < high:
                middle, pool = (low + high) // 2, np.zeros_like(self._pool)
                scores = np.concatenate([self._scores(b, pool, middle) for b in self._batches])
                below = scores.sum() <= z * math.sqrt((scores @ scores) or 1.0)
                low, high = (low, middle) if below else (middle + 1, high)
            ends.append((1 + self.allowed) * 2 ** (low / _STEPS))
        return new, old, self.allowed, min(ends[0], new / old) - 1, max(ends[1], new / old) - 1


@contextlib.contextmanager
def _waiting() -> Iterator[Callable[[], int]]:
    """Yield a function: ns that this thread was ready to run and had no processor; 0 if unknown."""
    if not _WAITING.exists():
        yield lambda: 0
        return
    with _WAITING.open("rb", buffering=0) as file:
        yield lambda: int(os.pread(file.fileno(), 64, 0).split()[1])


def _block(
    side: int, calls: float, length: float, waiting: Callable[[], int]
) -> Generator[int, None, tuple[Floats, int, int]]:
    """Yield `side` for each call until a number or a time; return latencies, time, waiting."""
    clock, times, first = time.perf_counter_ns, list[int](), 0
    begin = span = clock()
    since = before = waiting()
    while True:
        start = clock()
        yield side
        end = clock()
        times.append(end - start)
        last = len(times) >= calls or end - begin >= length
        if not last and end - span < RULES.span_ns:
            continue
        now = waiting()
        if len(times) == first + 1:  # one call, for which the account is exact
            times[first] -= now - before
        elif 2 * (now - before) > end - span:
            del times[first:]
        first, span, before = len(times), clock(), now
        if last:
            values = np.array(times, np.float64)
            return values[values > 0], end - begin, now - since


class Measurement:
    """A loop that is measured, by ``for`` or ``async for``, in one or several threads.

    Each turn is a call, of the side that it gives. As a context manager it fails at its end.
    """

    def __init__(
        self, latency: Latency, evidence: Any, budget: Time, note: str = "", then: Any = None
    ) -> None:
        self._latency, self._evidence, self._note, self._then = latency, evidence, note, then
        self._budget, self._lock = parse_duration(budget, "s"), threading.Lock()
        self._time, self._begin, self._end = [0, 0], 0, 0
        self._waited: tuple[list[int], list[int]] = ([], [])
        self.verdict: Verdict | None = "off" if latency.off else None
        self.result: LatencyResult | None = None

    def _left(self, share: float = 1.0) -> bool:
        self._end = time.perf_counter_ns()
        self._begin = self._begin or self._end
        return self.verdict is None and self._end - self._begin < self._budget * share

    def __iter__(self) -> Generator[int]:
        order, clock = random.SystemRandom(), time.perf_counter_ns
        sides, cost = range(len(self._evidence.sides)), [math.inf, math.inf]
        with _waiting() as waiting:
            for turn in range(5):  # imports, caches, and how many calls a block has
                for side in sides:
                    if self._left(0.05) or turn == 0:
                        _, spent, waited = yield from _block(side, 1, math.inf, waiting)
                        cost[side] = min(cost[side], max(spent - waited, 1))
            calls, length, batch = max(1, RULES.block_ns // max(cost)), math.inf, RULES.batch_ns
            if len(sides) == 1:
                calls, length = math.inf, RULES.limit_block_ns
                batch = max(batch, self._budget / RULES.batches)
            while self._left() or not (self.verdict or self._evidence.sides[0]):
                until, blocks = clock() + batch, [list[Any]() for _ in sides]
                while not blocks[0] or clock() < until:
                    for side in order.sample(sides, len(sides)):
                        values, spent, waited = yield from _block(side, calls, length, waiting)
                        blocks[side].append(values)
                        self._time[side] += spent
                        self._waited[side].append(waited)
                with self._lock:
                    self.verdict = self.verdict or self._evidence.add(*blocks)

    async def __aiter__(self) -> AsyncIterator[int]:
        for side in self:
            yield side

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        __tracebackhide__ = True
        if kind is None:
            self.finish(level=3)

    def call(self, *functions: Function) -> Any:
        """Call a function per side, and await what they return, if that can be awaited."""
        __tracebackhide__ = True
        first = [function() for function in functions]

        async def awaited() -> LatencyResult:
            for value in first:
                await value  # type: ignore[misc]
            async for side in self:
                await functions[side]()  # type: ignore[misc]
            return self.finish()

        if not any(map(inspect.isawaitable, first)):
            for side in self:
                functions[side]()
            return self.finish()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(awaited())
        return awaited()

    def finish(self, level: int = 4, seconds: float | None = None) -> LatencyResult:
        """Return the result, or fail; a warning is that of the caller some levels up."""
        __tracebackhide__ = True
        sides, found = self._evidence.sides, (math.nan,) * 5
        if sides[0]:
            found = self._evidence.found()
        elif self.verdict is None:
            raise DataNotAvailableError("no call was measured; write 'for _ in run:' in the block")
        waited = [sum(w) / (t or 1) for w, t in zip(self._waited, self._time, strict=True)]
        more = np.sign(np.subtract(*self._waited[::-1])) if len(sides) == 2 else np.zeros(1)
        if waited[1] > RULES.uneven * waited[0] and more.sum() > 4 * np.abs(more).sum() ** 0.5:
            self._note = "new calls wait more than old ones: for threads of their own?"
            self.verdict = None if self.verdict == "passed" else self.verdict
        if self.verdict == "passed" and found[2] == math.inf:  # too short a history
            self.verdict = None
        values = [np.concatenate([*side, np.empty(0)]) for side in sides]
        names, statistic = ("base", "new")[-len(sides) :], 100 * (1 - self._evidence.share)
        self.result = result = LatencyResult(
            self.verdict or "undecided", f"p{statistic:.10g}", *found,
            (self._end - self._begin) / 1e9 if seconds is None else seconds,
            sum(part.size for part in values), sum(map(len, sides)), max(waited),
            {name: Histogram.of(part) for name, part in zip(names, values, strict=True)},
            self._note,
        )  # fmt: skip
        self._latency.on_result(result)
        if self._then is not None and result.verdict in ("passed", "undecided"):
            self._then(result)
        if result.verdict == "failed" or (result.verdict == "undecided" and self._latency.strict):
            raise AssertionError(str(result))
        if result.verdict == "undecided":
            warnings.warn(UndecidedWarning(str(result)), stacklevel=level)
        return result


def _limit(text: str) -> LimitEvidence:
    limits = SLO.parse(text).limits
    percentile = limits[0].percentile if len(limits) == 1 and not limits[0].bare else None
    if percentile is None or not 0 < percentile < 100:
        raise InvalidArgumentError(f"{text!r} is not a limit of a percentile, such as 'p99 < 2ms'")
    return LimitEvidence(percentile, limits[0].limit)


def _allowed(text: str) -> PairEvidence:
    match = re.fullmatch(r"\+?\s*(\d+(?:\.\d*)?)\s*%\s*p(\d+(?:\.\d*)?)", text.strip())
    if not match or not 0 < float(match[2]) < 100:
        raise InvalidArgumentError(f"{text!r} is not an allowed change, such as '+20% p95'")
    return PairEvidence(float(match[2]), float(match[1]) / 100)


@record()
class Latency:
    """Latency assertions; the fixture `latency` of pytest is one, with the options of the run.

    Each fails with AssertionError if the code is too slow. What is undecided when the budget is
    spent passes with a warning, or fails if `strict`. If `off`, nothing is measured.
    """

    strict: bool = False
    off: bool = False
    on_result: Callable[[LatencyResult], object] = lambda _: None

    def limit(self, limit: str, *, budget: Time = "10s") -> Measurement:
        """Measure the turns of a loop, as in the example.

        Examples
        --------
        >>> with Latency().limit("p50 < 1s", budget="5s") as run:
        ...     for _ in run:
        ...         _ = sum(range(1000))
        >>> run.result.verdict
        'passed'
        """
        return Measurement(self, _limit(limit), budget)

    def compare(
        self, base: Function, new: Function, *, allow: str = "+20% p95", budget: Time = "10s"
    ) -> Any:
        """Compare two functions, or coroutine functions; in an event loop, to be awaited."""
        __tracebackhide__ = True
        return Measurement(self, _allowed(allow), budget).call(base, new)

    def against_history(
        self,
        name: str,
        function: Function,
        *,
        allow: str = "+20% p99",
        budget: Time = "10s",
        store: str | os.PathLike[str] = "history",
        labels: Mapping[str, str] | None = None,
        add: bool = False,
    ) -> Any:
        """Compare a function with the series `name` of the runs that ``latencykit history`` keeps.

        It may exceed their level by what is allowed, beyond what runs differ by. With `add` this
        run is added, unless it failed: on the main branch. With fewer than ten runs: undecided.
        """
        __tracebackhide__ = True
        from latencykit.analysis.judge import SETTINGS, judged
        from latencykit.history.history import History

        wanted, history = _allowed(allow), History(store)
        percentile, limit, level = 100 * (1 - wanted.share), math.inf, math.nan
        _, values = history.values(name, f"p{percentile:.10g}", labels or {})
        note = f"{len(values)} of {SETTINGS.min_history_runs} runs that a verdict takes"
        if len(values) >= SETTINGS.min_history_runs:
            known = judged(values, values[-1])
            noise, level = math.exp(RULES.run_noise * known.noise), known.level
            limit = level * (1 + wanted.allowed) * noise
            note = f"of the limit {format_change(noise - 1)} for the noise of {len(values)} runs"

        def keep(result: LatencyResult) -> None:
            if add:
                history.add({name: result.series["new"]}, labels=labels)

        evidence = LimitEvidence(percentile, limit, level)
        return Measurement(self, evidence, budget, note, keep).call(function)

    def from_benchmark(self, benchmark: Any, limit: str) -> LatencyResult:
        """Check what pytest-benchmark's fixture measured, or seconds per call, in their order."""
        __tracebackhide__ = True
        stats: Any = getattr(benchmark, "stats", None)
        if getattr(stats, "iterations", 1) > 1:
            raise DataNotAvailableError(
                f"each value is the mean of {stats.iterations} calls, which hides percentiles; "
                "measure single ones: benchmark.pedantic(function, rounds=1000, iterations=1)"
            )
        data, evidence = benchmark if stats is None else stats.stats.data, _limit(limit)
        if not data:
            raise DataNotAvailableError("the benchmark measured nothing; call it before")
        measurement, values = Measurement(self, evidence, 0), np.array(data) * 1e9
        cuts = np.flatnonzero(np.diff(np.cumsum(values) // RULES.limit_block_ns)) + 1
        blocks = np.split(values, cuts)
        edges = np.linspace(0, len(blocks), RULES.batches + 1).astype(int).tolist()
        for first, last in itertools.pairwise(edges):
            measurement.verdict = measurement.verdict or evidence.add(blocks[first:last])
        return measurement.finish(3, float(np.concatenate(evidence.sides[0]).sum()) / 1e9)


def assert_latency(
    function: Callable[[], object],
    limit: str | None = None,
    *,
    base: Callable[[], object] | None = None,
    allow: str = "+20% p95",
    budget: str | float = "10s",
    strict: bool = False,
) -> LatencyResult:
    """Assert that a function is fast enough, or no slower than another one.

    It is called until that is decided. At most 1 in 1,000 tests of a function that is fast enough
    fail, on a busy machine, too.

    Parameters
    ----------
    function : callable
        Without arguments. Coroutine functions run in an event loop of their own; in a running one,
        ``await`` the methods of `latencykit.assertions.Latency`.
    limit : str, optional
        Such as ``"p99 < 2ms"``.
    base : callable, optional
        What to compare with instead.
    allow : str, optional
        The change of a percentile from `base` that passes.
    budget : str or float, optional
        Longest time to measure, such as ``"10s"``, or in seconds.
    strict : bool, optional
        Fail what is undecided at its end; by default it passes with a warning.

    Raises
    ------
    AssertionError
        If it is too slow; with `strict`, if that is undecided.
    InvalidArgumentError
        If not one of `limit` and `base` is given, or one is not valid.

    Examples
    --------
    >>> import latencykit as lk
    >>> lk.assert_latency(lambda: sum(range(1000)), "p50 < 1s").verdict
    'passed'
    """
    __tracebackhide__ = True
    if (limit is None) == (base is None):
        raise InvalidArgumentError("give a limit such as 'p99 < 2ms', or base= to compare with")
    evidence = _allowed(allow) if limit is None else _limit(limit)
    functions = [function] if base is None else [base, function]
    result: LatencyResult = Measurement(Latency(strict), evidence, budget).call(*functions)
    return result
