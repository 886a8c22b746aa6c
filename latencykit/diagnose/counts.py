"""T2: whether an interval log's counts fall short by just what its stalls would have let pass.

In a closed loop a stall of d seconds costs rate · d requests, no more and no less, and the requests that it held up are
few and all of one length: one a connection. In an open loop they come back when it ends, many and of all lengths. A deploy
or a quiet time costs requests, too, but its length is not that of the slowest request.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.diagnose.evidence import LEAST, STRONG, WEAK, Evidence, p_words
from latencykit.diagnose.stalls_log import usual_rate
from latencykit.stats.quantiles import median
from latencykit.units import NANOSECONDS, format_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.blocks import Block
    from latencykit.diagnose.stalls import Stalls
    from latencykit.log import HistogramLog, IntervalSeries

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Counts", "SlowFold", "counts_in_stalls"]

_LADDER = 0.1  # of its worst latency: requests above it were held up by the stall,
_TOP = 0.8  # those above this part of it were held up for all of it: in a closed loop, nearly all of them
_NEARLY = 0.5
_MATCH = 0.0025  # of the stall: the shortfall may differ by so much, beside what counts waver by
_WAVER = 3.0  # standard deviations of what they waver by
_FINE = 0.02  # of the stall: where counts waver by more, a match could be chance, and proves nothing


@dataclass(frozen=True)
class Counts:
    """What the counts say of the stalls.

    Attributes
    ----------
    evidence : Evidence
    held : int
        Requests that the largest stall held up for its whole length: the connections of a closed loop.
    """

    evidence: Evidence
    held: int


class SlowFold:
    """Counts, of every interval, the values above two limits: a fold for `HistogramLog.scan`.

    Parameters
    ----------
    low, high : ndarray of float64, shape (intervals,)
        Limits of each interval, in the log's unit.
    """

    def __init__(self, low: Floats, high: Floats) -> None:
        self._limits = (low, high)
        self.counts = np.zeros((2, low.size), np.int64)

    def add(self, block: Block) -> None:
        """Take a block in."""
        value, entry = block.buckets.high(block.index), block.entry_rows
        for k, limit in enumerate(self._limits):
            above = np.where(value > limit[block.rows][entry], block.counts, 0)
            self.counts[k, block.rows] = np.bincount(entry, above, minlength=block.rows.size).astype(np.int64)


def counts_in_stalls(log: HistogramLog, series: IntervalSeries, stalls: Stalls) -> Counts | None:
    """Test the counts around every stall; None where there is none, or too little to go by.

    Parameters
    ----------
    log : HistogramLog
    series : IntervalSeries
        Of the same log.
    stalls : Stalls
        Of the same log.
    """
    rate, stop = usual_rate(series), series.start + series.length
    if not len(stalls) or rate <= 0:
        return None
    rows = [_rows_of(series, a, b) for a, b in zip(stalls.start.tolist(), stalls.end.tolist(), strict=True)]
    quiet = np.ones(len(log), np.bool_)
    for mine in rows:
        quiet[mine] = False
    quiet &= stop < stop.max() - 1e-9  # the last interval is cut
    if quiet.sum() < 3:
        return None
    wavering = 1.4826 * float(median(np.abs(series.count[quiet] - rate * series.length[quiet])))
    held = _held(log, series, stalls, rows)
    best, missing, expected, largest = 0.0, 0.0, 0.0, 0
    for k, mine in enumerate(rows):
        due = rate * float(stalls.duration[k])
        short = rate * float(series.length[mine].sum()) - float(series.count[mine].sum())
        noise = wavering * np.sqrt((series.count[mine] > 0).sum())
        slack = 1.0 + _MATCH * due + _WAVER * noise
        lost = due - held[1, k] / 2  # each connection still sent one, and loses whole slots only
        expected += due
        missing += min(max(short, 0.0), due)
        few = held[1, k] >= _NEARLY * held[0, k]
        if few and short >= LEAST and abs(short - lost) <= slack + held[1, k] / 2 and slack <= max(_FINE * due, _WAVER):
            sigma = short / max(noise, np.sqrt(due))
            if sigma > best:
                best, largest = sigma, int(held[1, k])
    p = float(min(1.0, len(stalls) * 0.5 * math.erfc(best / math.sqrt(2.0)))) if best else 1.0
    level = "strong" if p < STRONG and missing >= LEAST else "weak" if p < WEAK else "none"
    if level == "none" and expected >= 20 and missing <= 0.2 * expected:
        level = "honest"
    return Counts(Evidence("counts in stalls", p, STRONG, _words(level, missing, expected, largest, p), level, missing), largest)


def _rows_of(series: IntervalSeries, begin: float, end: float) -> Ints:
    """Intervals that a stall touches, and one on either side: it is known to about one interval."""
    touched = np.flatnonzero((series.start < end) & (series.start + series.length > begin))
    if not touched.size:  # intervals of no length
        return touched
    first, last = max(int(touched.min()) - 1, 0), min(int(touched.max()) + 2, series.start.size)
    return np.arange(first, last)


def _held(log: HistogramLog, series: IntervalSeries, stalls: Stalls, rows: list[Ints]) -> Ints:
    """Requests that each stall held up at all, and for nearly all of its length."""
    factor = NANOSECONDS.get(series.unit, 1.0)
    low, high = np.full(len(log), np.inf), np.full(len(log), np.inf)
    for k, mine in enumerate(rows):
        worst = float(stalls.worst[k]) / factor
        low[mine], high[mine] = _LADDER * worst, _TOP * worst
    fold = SlowFold(low, high)
    log.scan(fold)
    return np.array([fold.counts[:, mine].sum(axis=1) for mine in rows], np.int64).T


def _words(level: str, missing: float, expected: float, held: int, p: float) -> str:
    shortfall = (
        f"{format_count(missing)} of the {format_count(expected)} requests that the stalls' time would have seen are missing"
    )
    if level in ("strong", "weak"):
        who = "one request was" if held == 1 else f"{held} requests were"
        return f"{shortfall}, and {who} held up for the whole of the longest ({p_words(p)}): a closed loop that waited"
    if level == "honest":
        return f"{shortfall}: nobody waited for replies, or all was made up for later"
    return f"{shortfall}; the shortfall is not the stalls' own length, or those held up are of many lengths"
