"""Latency assertions that do not flake: `assert_latency`, and the fixture `latency` of pytest.

Blocks of calls are the unit, since calls of one moment depend on each other. Evidence is a wealth
of 1 at first, multiplied by each block by a factor whose mean is at most 1 while the code is as
fast as required: a test of it fails with a probability of at most 1/1,000, however often it looks
(Ville's inequality; Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
betting", JRSS B 86(1), 2024; for quantiles Howard and Ramdas, Bernoulli 28(3), 2022).

Time in which a thread was ready to run and had no processor is not the code's. Linux accounts it;
a thread that measures hiccups would wait for the lock of the interpreter, and blame the machine.
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
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from latencykit._processes import interruptions, thread_times
from latencykit._records import record
from latencykit._text import format_items
from latencykit._typing import Floats
from latencykit.analysis.slo import SLO
from latencykit.core.histogram import Histogram
from latencykit.core.jackknife import spread
from latencykit.core.probability import student_quantile
from latencykit.errors import DataNotAvailableError, InvalidArgumentError, UndecidedWarning
from latencykit.units import format_change, format_duration, parse_duration

Function: TypeAlias = Callable[[], object]
Time: TypeAlias = str | float
Verdict: TypeAlias = Literal["passed", "failed", "undecided", "off"]


@record()
class Rules:
    """Numbers of the assertions; `python -m tests.benchmarks.assertions` prints what they give."""

    decided: tuple[float, float] = (math.log(1e3), math.log(100))  # log wealth to fail, to pass
    block_ns: float = 1e6  # of calls, at least one: shorter than a slow moment
    batch_ns: float = 5e7  # between looks at pairs
    batches: int = 40  # of a limit, of which 12 have to be beyond it: no single moment decides
    bets: tuple[float, ...] = (0.08, 0.2, 0.5, 1.5)  # on pairs, in their standard deviations
    stakes: tuple[float, ...] = (0.03, 0.15, 0.5, 0.95)  # on limits, of all that can be lost
    pooled: float = 50.0  # latest calls beyond the percentile that both sides are compared at
    uneven: float = 2.0  # times as much waiting on one side as on the other is the code's own
    run_noise: float = 3.1  # standard deviations from run to run beyond which 1 in 1,000 lies


RULES = Rules()


@record()
class LatencyResult:
    """What a latency assertion found; its text is the fact, the limit, and what decided."""

    verdict: Verdict
    statistic: str  # such as "p99"
    value: float  # ns
    base: float  # ns, what it is compared with: old calls, the level of a history, or the limit
    allowed: float  # relative change; NaN for a limit
    low: float  # 95 % interval of the relative change
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
        change = format_change(self.value / self.base - 1)
        if self.low > -0.95 and self.high < 9:  # beyond these, a change is a factor
            change += f", {100 * self.low:z.0f} to {100 * self.high:z.0f}"
        text, base = f"{self.statistic} {format_duration(self.value)}", format_duration(self.base)
        if math.isnan(self.allowed):
            text += f", limit {base} ({change})"
        elif not math.isnan(self.base):
            text += f", {base} before ({change}), limit {format_change(self.allowed)}"
        text += f"; {'un' if self.verdict == 'undecided' else ''}decided after "
        text += f"{float(f'{self.seconds:.2g}'):g} s"
        text += f", {format_items(self.calls, 'call')} in {format_items(self.blocks, 'block')}"
        if self.waited >= 0.01:
            text += f"; waiting for a processor ({100 * self.waited:.0f} % of the time) is left out"
        return f"{text}; {self.note}" if self.note else text


def _block(side: int, calls: int, others: bool) -> Generator[int, None, tuple[Floats, int, int]]:
    """Yield `side` for each call; return latencies (NaN if unknown), time, and waiting in it."""
    clock, times, own = time.perf_counter_ns, np.empty(calls), str(threading.get_native_id())
    before, account, begin = interruptions(), thread_times([os.getpid()]), clock()
    for number in range(calls):
        start = clock()
        yield side
        times[number] = clock() - start
    spent, waits = clock() - begin, dict[str, int]()
    for name, (_, waited) in thread_times([os.getpid()]).items():
        waits[name] = waited - account.get(name, (0, waited))[1]
    total = waits.pop(own, 0) + max(waits.values() if others else (), default=0)
    total = min(total, spent)  # the account is a little longer than the block
    times[times.argmax()] -= total
    if calls > 1 and interruptions() > before:
        times[:] = math.nan  # their caches were cold; of longer calls, few are not interrupted
    return np.where(times > 0, times, math.nan), spent, total


class Measurement(contextlib.AbstractContextManager["Measurement"]):
    """A loop that is measured, by ``for``, in one or several threads, or coroutines.

    Each turn is a call, of the side that it gives. As a context manager it fails at its end. Bets
    are on blocks of calls. A limit (ns) lets a share of 1 - p of the calls be beyond it. Of two
    sides, it is a coin flip which block of a pair has more calls beyond a percentile of both, if
    new calls, divided by 1 + `allowed`, are no slower than old ones, whatever the machine does.
    That percentile is of the latest calls, relative to those of their moment.
    """

    def __init__(
        self, latency: Latency, percentile: float, base: float = math.nan,
        allowed: float = math.nan, *, names: Sequence[str] = ("new",), budget: Time = 0,
        note: str = "",
    ) -> None:  # fmt: skip
        self._latency, self._budget, self._note = latency, parse_duration(budget, "s"), note
        self._share, self._base, self._allowed = 1 - percentile / 100, base, allowed
        self._names, self._blocks, self._pool = names, list[Any](), list[Any]()
        self._wealth, self._square, self._lock = np.zeros((2, 4)), 0.0, threading.Lock()
        self._begin, self._spent = time.perf_counter_ns(), [0] * len(names)
        self._waits: list[list[int]] = [[] for _ in names]
        self.verdict: Verdict | None = "off" if latency.off else None
        self.result: LatencyResult | None = None

    def add(self, batch: Floats) -> Verdict | None:
        """Take latencies, shape (sides, blocks, calls); return the verdict, if it is decided."""
        batch = batch[:, np.isfinite(batch).any(axis=2).all(axis=0)]
        self._blocks.extend(batch.swapaxes(0, 1))
        if self.verdict is None and batch.size:
            self._wealth += self._on_pairs(batch) if len(batch) == 2 else self._on_limit(batch[0])
            wealth = np.logaddexp.reduce(self._wealth, axis=1) - math.log(len(RULES.bets))
            slower, faster = wealth > RULES.decided
            if slower or faster:
                value, base = self._values(self._blocks)
                beyond = value > base * (1 + np.nan_to_num(self._allowed))
                if slower if beyond else faster:
                    # Without a base the history is too short.
                    self.verdict = "failed" if beyond else "passed" if base > 0 else "undecided"
        return self.verdict

    def _on_limit(self, blocks: Floats) -> list[Floats]:
        """A batch counts at most twofold, so that a dozen of them is needed."""
        stakes, calls = np.array(RULES.stakes), np.isfinite(blocks).sum(axis=1)
        beyond = (blocks > self._base * (1 + np.nan_to_num(self._allowed))).sum(axis=1)
        mean = beyond.sum() / calls.sum() - self._share
        over = np.log1p(np.minimum(stakes / self._share * mean, 1.0))
        shares = (beyond / calls - self._share) / (1 - self._share)
        return [over, np.log1p(-np.outer(stakes, shares)).sum(axis=1)]

    def _on_pairs(self, pairs: Floats) -> list[Floats]:
        """All that the size of a bet depends on is the same if the sides of a pair are swapped."""
        logs, calls = np.log(pairs), np.isfinite(pairs).sum(axis=2)
        logs[1] -= math.log1p(self._allowed)
        logs -= (np.nansum(logs, axis=(0, 2)) / calls.sum(axis=0))[:, None]
        self._pool.append(logs[np.isfinite(logs)])
        while sum(part.size for part in self._pool[1:]) * self._share > RULES.pooled:
            del self._pool[0]
        end = np.quantile(np.concatenate(self._pool), 1 - self._share, method="inverted_cdf")
        score = np.diff((logs > end).sum(axis=2) / calls, axis=0)[0]
        self._square += float(score @ score)
        scale = math.sqrt(self._square / len(self._blocks)) + 1e-9
        bets = np.tanh(np.outer(RULES.bets, score / scale)) * (1 - 1e-9)
        return [np.log1p(bets).sum(axis=1), np.log1p(-bets).sum(axis=1)]

    def _values(self, blocks: Sequence[Floats]) -> tuple[float, float]:
        """The percentile, and what it is compared with."""
        calls, share = np.concatenate(blocks, axis=1), 1 - self._share
        *base, value = np.nanquantile(calls, share, axis=1, method="inverted_cdf").tolist()
        return value, base[0] if base else self._base

    def _found(self) -> tuple[float, float, float, float]:
        """Value, base, and an interval of the change: a jackknife over twelfths of the blocks."""
        (value, base), reach, blocks = self._values(self._blocks), math.nan, self._blocks
        if len(blocks) >= 12:
            cuts = itertools.pairwise(len(blocks) * part // 12 for part in range(13))
            left_out = [self._values(blocks[:first] + blocks[last:]) for first, last in cuts]
            error = float(spread(np.diff(np.log(left_out)))[0])
            reach = math.exp(student_quantile(0.95, 11) * error)
        return value, base, value / base / reach - 1, value / base * reach - 1

    def __iter__(self) -> Generator[int]:
        sides, clock = [*range(len(self._names))], time.perf_counter_ns
        cost, end = [math.inf for _ in sides], self._begin + self._budget
        batch = RULES.batch_ns if len(sides) == 2 else self._budget / RULES.batches
        for turn, side in itertools.product(range(5), sides):  # imports, caches, and costs
            if turn == 0 or (self.verdict is None and clock() < end - 0.95 * self._budget):
                # Not less its waiting, part of which may have been after its end.
                _, spent, _ = yield from _block(side, 1, others=False)
                cost[side] = min(cost[side], spent)
        calls = max(1, int(RULES.block_ns / max(cost)))
        while self.verdict is None and (clock() < end or not self._spent[0]):
            until, blocks = clock() + batch, [list[Any]() for _ in sides]
            while not blocks[0] or clock() < until:
                for side in random.SystemRandom().sample(sides, len(sides)):
                    values, spent, waited = yield from _block(side, calls, len(sides) == 2)
                    blocks[side].append(values)
                    self._spent[side] += spent
                    self._waits[side].append(waited)
            with self._lock:
                self.add(np.array(blocks))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        __tracebackhide__ = True
        if kind is None:
            self.finish(level=3)

    def call(self, *functions: Function) -> Any:
        """Call a function per side, and await what they return, if that can be awaited."""
        __tracebackhide__ = True
        if not inspect.isawaitable(first := functions[-1]()):
            for side in self:
                functions[side]()
            return self.finish()

        async def awaited() -> LatencyResult:
            await first
            for side in self:
                await functions[side]()  # type: ignore[misc]
            return self.finish()

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(awaited())
        return awaited()

    def finish(self, level: int = 4, seconds: float = 0.0) -> LatencyResult:
        """Return the result, or fail; a warning is that of the caller some levels up."""
        __tracebackhide__ = True
        if not self._blocks and self.verdict is None:
            raise DataNotAvailableError(
                "no call was measured; write 'for _ in run:' in the block, without a break"
            )
        value, base, low, high = self._found() if self._blocks else (math.nan,) * 4
        waits = np.array(self._waits, float)
        waited, more = waits.sum(axis=1), np.sign(waits[-1] - waits[0]).astype(int)
        uneven = waited[-1] > RULES.uneven * waited[0] and more.sum() > 4 * abs(more).sum() ** 0.5
        if uneven and self.verdict == "passed":
            self.verdict = "undecided"
            self._note = "new calls wait more than old ones: for threads of their own?"
        calls = [np.concatenate(side) for side in zip(*self._blocks, strict=True)]
        series = [Histogram.of(side[np.isfinite(side)]) for side in calls]
        self.result = result = LatencyResult(
            self.verdict or "undecided", f"p{100 * (1 - self._share):.10g}", value, base,
            self._allowed, low, high, seconds or (time.perf_counter_ns() - self._begin) / 1e9,
            sum(side.count for side in series), len(self._blocks) * len(series),
            float((waited / np.maximum(self._spent, 1)).max()),
            dict(zip(self._names, series, strict=False)), self._note,
        )  # fmt: skip
        self._latency.on_result(result)
        if result.verdict == "failed" or (result.verdict == "undecided" and self._latency.strict):
            raise AssertionError(str(result))
        if result.verdict == "undecided":
            warnings.warn(UndecidedWarning(str(result)), stacklevel=level)
        return result


def _limit(text: str) -> tuple[float, float]:
    limits = SLO.parse(text).limits
    percentile = limits[0].percentile if len(limits) == 1 and not limits[0].bare else None
    if percentile is None or not 0 < percentile < 100:
        raise InvalidArgumentError(f"{text!r} is not a limit of a percentile, such as 'p99 < 2ms'")
    return percentile, limits[0].limit


def _allowed(text: str) -> tuple[float, float]:
    match = re.fullmatch(r"\+?\s*(\d+(?:\.\d*)?)\s*%\s*p(\d+(?:\.\d*)?)", text.strip())
    if not match or not 0 < float(match[2]) < 100:
        raise InvalidArgumentError(f"{text!r} is not an allowed change, such as '+20% p95'")
    return float(match[2]), float(match[1]) / 100


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
        """Measure a loop: ``with latency.limit("p99 < 2ms") as run:``, ``for _ in run: …``."""
        return Measurement(self, *_limit(limit), budget=budget)

    def compare(
        self, base: Function, new: Function, *, allow: str = "+20% p95", budget: Time = "10s"
    ) -> Any:
        """Compare two functions, or coroutine functions; in an event loop, to be awaited."""
        __tracebackhide__ = True
        percentile, allowed = _allowed(allow)
        run = Measurement(self, percentile, allowed=allowed, names=("base", "new"), budget=budget)
        return run.call(base, new)

    def against_history(
        self, name: str, function: Function, *, allow: str = "+20% p99", budget: Time = "10s",
        store: str | Path = "history", labels: Mapping[str, str] | None = None,
    ) -> Any:  # fmt: skip
        """Compare a function with the series `name` of the runs that ``latencykit history`` keeps.

        It may exceed their level by what is allowed, beyond what runs differ by. With fewer than
        five runs it is undecided. ``History(store).add(result.series)`` adds this run.
        """
        __tracebackhide__ = True
        from latencykit.analysis.judge import SETTINGS, judged
        from latencykit.history.history import History

        (percentile, allowed), level = _allowed(allow), math.nan
        _, values = History(store).values(name, f"p{percentile:.10g}", labels or {})
        note = f"{len(values)} of {SETTINGS.min_history_runs} runs that a verdict takes"
        if len(values) >= SETTINGS.min_history_runs:
            known = judged(values, values[-1])
            level, noise = known.level, math.exp(RULES.run_noise * known.noise)
            allowed = (1 + allowed) * noise - 1
            note = f"the limit has {format_change(noise - 1)} for the noise of {len(values)} runs"
        run = Measurement(self, percentile, level, allowed, names=[name], budget=budget, note=note)
        return run.call(function)

    def from_benchmark(self, benchmark: Any, limit: str) -> LatencyResult:
        """Check what pytest-benchmark's fixture measured, or seconds per call, in their order."""
        __tracebackhide__ = True
        stats: Any = getattr(benchmark, "stats", None)
        if getattr(stats, "iterations", 1) > 1:
            raise DataNotAvailableError(
                f"each value is the mean of {stats.iterations} calls, which hides percentiles; "
                "measure single ones: benchmark.pedantic(function, rounds=1000, iterations=1)"
            )
        values = np.array(benchmark if stats is None else stats.stats.data) * 1e9
        run = Measurement(self, *_limit(limit))
        usual = int(RULES.block_ns * values.size / max(values.sum(), 1.0))
        calls = max(1, min(usual, -(-values.size // 1000)))
        last = -values.size % (RULES.batches * calls)
        padded = np.pad(values, (0, last), constant_values=math.nan)
        for batch in padded.reshape(RULES.batches, 1, -1, calls):
            run.add(batch)
        return run.finish(3, float(values.sum()) / 1e9)


def assert_latency(
    function: Callable[[], object], limit: str | None = None, *,
    base: Callable[[], object] | None = None, allow: str = "+20% p95", budget: str | float = "10s",
) -> LatencyResult:  # fmt: skip
    """Assert that a function is fast enough, or no slower than another one.

    It is called until that is decided; what is undecided when the budget is spent passes with a
    warning. At most 1 in 1,000 tests of code that is fast enough fail, on a busy machine, too.

    Parameters
    ----------
    function : callable
        Without arguments. A coroutine function runs in an event loop of its own; where one runs
        already, as in a notebook, the result has to be awaited.
    limit : str, optional
        Such as ``"p99 < 2ms"``.
    base : callable, optional
        What to compare with instead.
    allow : str, optional
        The change of a percentile from `base` that passes.
    budget : str or float, optional
        Longest time to measure, such as ``"10s"``, or in seconds.

    Raises
    ------
    AssertionError
        If it is too slow.
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
    result: LatencyResult = (
        Latency().limit(str(limit), budget=budget).call(function)
        if base is None
        else Latency().compare(base, function, allow=allow, budget=budget)
    )
    return result
