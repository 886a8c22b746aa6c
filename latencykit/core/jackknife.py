"""How much a statistic varies between parts of one run: the jackknife over blocks of time.

A run is cut into twelve blocks of equal length. Each block is left out in turn; how far a
percentile moves then shows its standard error, with the dependence between requests that the run
itself shows (Künsch, 1989). Two things make it larger where a percentile lies above a limit by
luck: drift that is slower than a block (correlated blocks, and blocks of twice the length), and a
tail that the run has hardly seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from latencykit._arrays import as_positions
from latencykit._records import record
from latencykit._typing import AnyArray, Flags, Floats, Ints
from latencykit.core.percentile_rows import Doubt
from latencykit.core.probability import share_interval, student_quantile
from latencykit.core.quantiles import distinct, median
from latencykit.units import format_percentile, format_value


@record()
class JackknifeRule:
    """Numbers of the jackknife; `tests.benchmarks.truth --only check,uncertainty` chose them."""

    blocks: int = 12  # 25 s of a run of 300 s, and a t-distribution of 11 degrees of freedom
    long_blocks: int = 6  # show drift of 10 to 30 s, which blocks of 25 s share
    min_bins: int = 12  # a block without a time bin of its own shows nothing
    max_bins: int = 1024  # for the correlation: neighbours of longer runs are added up
    least_correlation: float = 0.1  # the sum of correlations ends below it, or noise adds up
    tail: float = 0.01  # share: rarer percentiles are not known better than a quarter of their tail
    widest: float = 100.0  # times the value: an end farther off bounds nothing
    range: float = 1.25  # farther off, a reader would decide something else
    min_doubted_bins: int = 3  # a short run has a block per bin; two differ once, maybe by luck
    steps_per_octave: int = 4  # shares above, at which the error is looked at
    least_ratio: float = 1.1  # of the value to that without one stall
    clear_reaches: float = 5.0  # of the latter's error: so far off, it need not be known so well
    stall_requests: int = 5  # that take half as long at least: requests come all through a stall


RULE = JackknifeRule()

_DRIFTS = (50.0, 99.0)  # percentiles that may drift
_USUAL = (75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)


@record(eq=False)
class Jackknife:
    """Requests in time bins × groups of ascending latencies, as twelve blocks."""

    table: AnyArray  # (bins, groups): counts in order of time
    value: Floats  # (groups,): middle of each
    seconds: float  # length of the run; NaN where it is unknown

    @cached_property
    def _occupied(self) -> AnyArray:
        """Bins that hold requests."""
        return np.asarray(self.table[self.table.any(axis=1)])

    @property
    def bins(self) -> int:
        """Time bins that hold requests."""
        return len(self._occupied)

    @property
    def known(self) -> bool:
        """True if the run has bins enough to be cut into blocks."""
        return self.bins >= RULE.min_bins

    def blocks(self, number: int = RULE.blocks) -> Floats:
        """Return the counts of parts of the run, shape (number, groups)."""
        edges = as_positions(self._edges(number))
        return np.add.reduceat(self._occupied, edges, dtype=np.float64)

    def _edges(self, number: int) -> Ints:
        return (np.arange(number) * (self.bins / number)).astype(np.int64)

    def rates(self) -> Floats:
        """Return the requests per time bin of each block but the last, which the end cuts off."""
        return np.asarray(self.blocks().sum(axis=1)[:-1] / np.diff(self._edges(RULE.blocks)))

    @cached_property
    def _logs(self) -> Floats:
        positive = self.value[self.value > 0]
        least = float(positive.min()) / 2 if positive.size else 1.0  # a clock may read zero
        return np.log(np.maximum(self.value, least))

    def _quantiles(self, counts: Floats, above: Floats) -> Floats:
        """Logarithm of each row's value with a share above it, shape (rows, shares)."""
        out = np.empty((len(counts), above.size))
        for row, numbers in enumerate(counts):
            held = np.flatnonzero(numbers)
            size, log = numbers[held], self._logs[held]
            # Next to a constant one slow request is none of many: within half of the smaller group.
            ends, half = np.cumsum(size)[:-1], np.minimum(size[:-1], size[1:]) / 2
            rank = np.stack((ends - half, ends + half), axis=1).ravel()
            value = np.stack((log[:-1], log[1:]), axis=1).ravel()
            out[row] = np.interp((1 - above) * numbers.sum(), rank, value) if ends.size else log
        return out

    def _errors(self, above: Floats, number: int) -> Floats:
        """Standard error of the logarithm of the values with these shares above them."""
        blocks = self.blocks(number)
        return spread(self._quantiles(blocks.sum(axis=0) - blocks, above))

    def errors(self, percentiles: ArrayLike) -> tuple[Floats, Floats]:
        """Return the standard errors downwards and upwards of the logarithm of percentiles."""
        # Upwards they allow for drift that blocks share, and from p99 on for the tail that the run
        # has missed by luck: slow runs look slow, lucky ones look sure.
        above = 1 - np.atleast_1d(np.asarray(percentiles, np.float64)) / 100
        down = self._errors(above, RULE.blocks)
        tail = above[:, None] / 2.0 ** (np.arange(5) / 2)
        tail[above > RULE.tail * (1 + 1e-9)] = above[above > RULE.tail * (1 + 1e-9), None]
        both = [self._errors(tail.ravel(), n) for n in (RULE.blocks, RULE.long_blocks)]
        up = np.maximum(*both).reshape(tail.shape).max(axis=1)
        return down, np.where(up > 0, up * min(self.drift, 1e9), 0.0)

    def doubts(self, confidence: float) -> tuple[Doubt, ...]:
        """Return the ranges of percentiles that are not known within a quarter, ascending."""
        # A percentile is known if its own standard error, with the drift that blocks share, leaves
        # it within a quarter; those below the median are known if it is. A run of fewer bins than
        # blocks has a block per bin.
        number = min(RULE.blocks, self.bins)
        if number < RULE.min_doubted_bins:
            return ()
        octaves = math.log2(max(float(self.table.sum()), 4.0)) - 1
        steps = np.arange(math.ceil(octaves * RULE.steps_per_octave) + 1)
        usual = 1 - np.array(_USUAL) / 100
        shares = np.concatenate((0.5 * 2.0 ** (-steps / RULE.steps_per_octave), usual))
        shares = distinct(shares[shares >= 0.5 * 2.0**-octaves])[::-1]
        blocks = self.blocks(number)
        whole = blocks.sum(axis=0)
        left_out = self._quantiles(whole - blocks, shares)
        reach = student_quantile(confidence, number - 1) * spread(left_out)
        if number == RULE.blocks:  # of a value that never moves, drift does not matter
            reach = np.where(reach > 0, reach * min(self.drift, 1e9), 0.0)
        # Stretches of descending shares that reach beyond the range.
        most, log_share = math.log(RULE.range), np.log(shares)
        doubted = np.concatenate(([False], reach > most, [False]))
        borders = np.flatnonzero(doubted[1:] != doubted[:-1]).tolist()
        places = []  # percentiles: between two shares, where the reach is just that of the range
        for at in borders:
            if at in (0, shares.size):
                places.append(100.0 * (at > 0))
                continue
            part = (most - reach[at - 1]) / (reach[at] - reach[at - 1])
            step = part * (log_share[at] - log_share[at - 1])
            places.append(100 * (1 - math.exp(log_share[at - 1] + step)))
        stretches = zip(borders[::2], borders[1::2], places[::2], places[1::2], strict=True)
        ranges = []
        for first, last, low, high in stretches:
            some, worst = slice(first, last), first + int(reach[first:last].argmax())
            # Drift, if its test fires at the percentile next to most of these.
            log = np.log(1 - np.array(_DRIFTS) / 100)
            near = np.abs(np.log(shares[some])[:, None] - log).argmin(axis=1)
            drifting = np.array([one is not None for one in self.drifts])[near]
            cause = "drift" if drifting.mean() > 0.5 else "parts differ"
            slow = np.zeros(last - first, np.bool_)
            if number == RULE.blocks:
                slow = self._one_period(blocks, left_out[:, worst], shares[some], shares[worst])
            starts = np.flatnonzero(np.append(True, slow[1:] != slow[:-1]))
            middle = np.sqrt(shares[some][starts[1:]] * shares[some][starts[1:] - 1])
            ends = [low, *(100 * (1 - middle)).tolist(), high]
            for start, begin, end in zip(starts.tolist(), ends, ends[1:], strict=False):
                ranges.append(Doubt(begin, end, "one slow period" if slow[start] else cause))
        return tuple(ranges)

    def _one_period(self, blocks: Floats, left_out: Floats, shares: Floats, worst: float) -> Flags:
        """Where without one block, or slow ones that touch it, the value is surely another."""
        culprit = int(np.abs(left_out - left_out.mean()).argmax())
        own = self._quantiles(blocks, np.array([worst]))[:, 0]
        usual = own <= (own.max() + float(median(own))) / 2
        usual[culprit] = False
        first = int(np.flatnonzero(np.append(True, usual[:culprit]))[-1])
        last = culprit + int(np.flatnonzero(np.append(usual[culprit:], True))[0])
        others = np.delete(blocks, np.s_[first:last], axis=0)
        rest, held = others.sum(axis=0), blocks[first:last].sum(axis=0)
        longest = float(self.value[np.flatnonzero(held)[-1]])
        as_slow = held[self.value > longest / 2].sum()  # requests that come all through a stall
        if len(others) < RULE.min_doubted_bins or as_slow < RULE.stall_requests:
            return np.zeros(shares.size, np.bool_)
        without = self._quantiles(rest[None], shares)
        moved = np.abs(self._quantiles(blocks.sum(axis=0)[None], shares) - without)[0]
        errors = spread(self._quantiles(rest - others, shares))
        reach = student_quantile(0.95, RULE.blocks - 1) * errors
        known = reach <= np.maximum(math.log(RULE.range), moved / RULE.clear_reaches)
        return np.asarray(known & (moved >= np.maximum(reach, math.log(RULE.least_ratio))))

    @cached_property
    def drifts(self) -> tuple[Drift | None, ...]:
        """What the test of drift finds of p50 and of p99."""
        return tuple(drift(self.table, self.value, p) for p in _DRIFTS)

    def of_blocks(self, percentiles: ArrayLike, number: int = RULE.blocks) -> Floats:
        """Return percentiles of each block, float64, shape (number, percentiles)."""
        above = 1 - np.atleast_1d(np.asarray(percentiles, np.float64)) / 100
        return np.asarray(np.exp(self._quantiles(self.blocks(number), above)))

    def means(self, low: float, high: float, number: int = RULE.blocks) -> Floats:
        """Return the winsorized mean of each block, between two ranks of the whole run."""
        blocks = self.blocks(number)
        return np.asarray(blocks @ self._winsorized(low, high) / blocks.sum(axis=1))

    def _winsorized(self, low: float, high: float) -> Floats:
        """Values clipped to two ranks."""
        running = np.cumsum(self.table.sum(axis=0))
        last = running.size - 1
        first, final = (
            self.value[min(int(np.searchsorted(running, part * running[-1] - 1e-9)), last)]
            for part in (low, high)
        )
        return np.clip(self.value, first, final)

    def maxima(self) -> Floats:
        """Return the logarithm of each block's highest value."""
        blocks = self.blocks() > 0
        return np.asarray(self._logs[blocks.shape[1] - 1 - blocks[:, ::-1].argmax(axis=1)])

    def _errors_of(self, statistic: Callable[[Floats], Floats]) -> list[float]:
        """Standard errors of a statistic of rows of counts, by blocks and by long ones."""
        sides = (self.blocks(number) for number in (RULE.blocks, RULE.long_blocks))
        return [float(spread(statistic(some.sum(axis=0) - some)[:, None])[0]) for some in sides]

    def mean_errors(self, low: float, high: float) -> tuple[float, float]:
        """Return the relative standard errors, down and up, of the mean between two ranks."""
        # A trimmed mean varies as the winsorized one does, over the share that is kept (Tukey and
        # McLaughlin, 1963).
        kept = self._winsorized(low, high)
        errors = self._errors_of(lambda counts: np.log(counts @ kept / counts.sum(axis=1)))
        return errors[0] / (high - low), max(errors) * self.drift / (high - low)

    def share_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the interval of the share of requests in the last group, of two."""
        # It is at least as wide as that of independent requests (Clopper and Pearson, 1934), and
        # just that where the run has too few bins.
        total, part = round(float(self.table.sum())), round(float(self.table[:, -1].sum()))
        low, high = share_interval(part, total, confidence)
        if not self.known:
            return low, high
        errors = self._errors_of(lambda counts: counts[:, -1] / counts.sum(axis=1))
        reach = student_quantile(confidence, RULE.blocks - 1) * max(errors) * self.drift
        share = part / total
        return max(min(low, share - reach), 0.0), min(max(high, share + reach), 1.0)

    def above(self, value: float) -> Jackknife:
        """Return the same bins in two groups: requests up to a value, and above it."""
        beyond = self.table[:, self.value > value].sum(axis=1)
        parts = np.stack((self.table.sum(axis=1) - beyond, beyond), axis=1)
        return Jackknife(parts, np.array([0.0, 1.0]), self.seconds)

    @cached_property
    def correlation(self) -> float:
        """Bins over which requests around the median stay alike: 1 for independent bins."""
        table = self._occupied
        merged = math.ceil(len(table) / RULE.max_bins)
        if merged > 1:
            table = np.add.reduceat(table, as_positions(np.arange(0, len(table), merged)))
        sizes = table.sum(axis=1)
        half = max(int(np.searchsorted(np.cumsum(table.sum(axis=0)), sizes.sum() / 2)), 1)
        slow = table[:, half:].sum(axis=1)
        rest = slow - slow.sum() / sizes.sum() * sizes
        products = np.fft.irfft(np.abs(np.fft.rfft(rest, 2 * rest.size)) ** 2)[: rest.size]
        if not products[0] > 0:
            return 1.0
        lags = products[1:] / products[0]
        # One standard error of a correlation is noise.
        least = max(RULE.least_correlation, 1 / math.sqrt(rest.size))
        low = np.flatnonzero(lags < least)
        return float(1 + 2 * lags[: low[0] if low.size else None].sum()) * merged

    @property
    def drift(self) -> float:
        """Factor by which drift that is slower than a block widens the standard error."""
        # Of a mean over a time t with a correlation time τ the variance is v(t) = 2 τ/t (1 − τ/t (1
        # − exp(−t/τ))), while blocks of length b around their mean vary by v(b) − v(t).
        time, whole = self.correlation / 2, float(self.bins)

        def variance(length: float) -> float:
            ratio = time / length
            return 2 * ratio * (1 - ratio * (1 - math.exp(-1 / ratio)))

        block = whole / RULE.blocks
        apart = (variance(block) - variance(whole)) / (RULE.blocks - 1)
        return math.sqrt(max(variance(whole) / apart, 1.0)) if apart > 0 else math.inf


def spread(left_out: Floats) -> Floats:
    """The jackknife's standard error from the statistics without each block."""
    number = len(left_out)
    squares = ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(np.sqrt((number - 1) / number * squares))


# ------------------------------------------------------------
# Steadiness of a run: whether latencies of its second half differ from those of the first.


@record()
class DriftRules:
    """When the halves of a run differ; chosen on AR(1) worlds and single stalls."""

    # of time
    blocks: int = 16
    # above a percentile that each half has at least
    min_slow_requests: int = 20
    # standard errors: blocks may depend on each other
    min_deviations: float = 14.0
    # the same of blocks that do: neighbours are alike, and show too little variance
    min_deviations_dependent: float = 20.0
    # of independent requests, from which on blocks depend
    dependent_variances: float = 5.0
    # within a block: correlated for as long, nothing is said
    max_correlation: float = 0.25
    # of a block that can show any correlation
    min_block_rows: int = 4
    # of the difference, which the medians of the blocks show: not one block's alone
    min_median_share: float = 1 / 3
    # of the percentiles of the halves
    min_ratio: float = 1.1


DRIFT = DriftRules()


@record()
class Drift:
    """A percentile that differs between the halves of a run."""

    percentile: float
    first: float  # its value in the first half, within about 2 %
    second: float  # and in the second

    def text(self, unit: str) -> str:
        """Return one sentence."""
        first, second = (format_value(float(f"{x:.2g}"), unit) for x in (self.first, self.second))
        return (
            f"the run is not steady: p{format_percentile(self.percentile)} is about {first} in the "
            f"first half, about {second} in the second"
        )


def drift(table: AnyArray, value: Floats, percentile: float) -> Drift | None:
    """Return a percentile of each half of a run if they differ by more than chance explains.

    The `table` has requests in time bins × groups of latencies, whose `value` ascends. None also
    for runs that are too short to show it.

    >>> table = np.random.default_rng(1).integers(90, 110, (200, 2)).astype(float)
    >>> table[:100, 1], table[100:, 0] = 9, 20
    >>> drift(table, np.array([1e6, 2e6]), 50.0)
    Drift(percentile=50.0, first=1000000.0, second=2000000.0)
    """
    table = table[table.sum(axis=1) > 0]
    if len(table) < DRIFT.min_block_rows * DRIFT.blocks:
        return None
    half = np.add.reduceat(table, as_positions([0, len(table) // 2]))
    begins = np.linspace(0, len(table), DRIFT.blocks, endpoint=False).astype(int)
    above = np.cumsum(table.sum(axis=0)[::-1])[::-1]
    wanted = (1 - percentile / 100) * above[0]
    edge = int(np.abs(np.log(above[1:] / wanted)).argmin()) + 1 if above.size > 1 else 0
    slow = half[:, edge:].sum(axis=1)
    if not edge or (half.sum(axis=1) * (1 - percentile / 100) < DRIFT.min_slow_requests).any():
        return None
    first, second = (  # the values of the groups that the percentile lies in
        float(value[min(int(np.searchsorted(one, rank)), one.size - 1)])
        for one in np.cumsum(half, axis=1)
        for rank in [percentile / 100 * one[-1] * (1 - 1e-12)]
    )
    if max(first, second) < DRIFT.min_ratio * min(first, second) or not slow.any():
        return None
    above_it, counts = table[:, edge:].sum(axis=1), table.sum(axis=1)
    size = np.add.reduceat(counts, as_positions(begins))
    share = np.add.reduceat(above_it, as_positions(begins)) / size
    # The means of the halves differ beyond chance, and not by single blocks alone.
    squares = np.sort(np.diff(share) ** 2)[:-1]  # but the largest: it may be the step
    variance = float(squares.mean()) / 2
    halves = np.split(share, 2)
    between = abs(float(halves[0].mean() - halves[1].mean()))
    if abs(float(median(halves[0]) - median(halves[1]))) < DRIFT.min_median_share * between:
        return None
    independent = float((share * (1 - share) / size).mean())
    dependent = variance > DRIFT.dependent_variances * independent
    beyond = DRIFT.min_deviations_dependent if dependent else DRIFT.min_deviations
    if not between > beyond * math.sqrt(variance * 4 / share.size):
        return None
    correlated = _memory(above_it / counts, begins) >= DRIFT.max_correlation
    return None if correlated else Drift(percentile, first, second)


def _memory(share: Floats, begins: Ints) -> float:
    """Median correlation within a block less its trend, at an eighth of its length."""
    size = share.size // begins.size
    parts = share[begins[:, None] + np.arange(size)]
    parts = parts - parts.mean(axis=1, keepdims=True)
    line = np.arange(size) - (size - 1) / 2
    parts = parts - np.outer(parts @ line, line) / (line @ line)
    lag, square = max(size // 8, 1), (parts**2).sum(axis=1)
    products = (parts[:, lag:] * parts[:, :-lag]).sum(axis=1) * size / (size - lag)
    return float(median(np.where(square > 0, products / np.where(square > 0, square, 1), 0)))
