"""T2: whether counts fall short while a log's server stood still, and whether all that its stalls delayed is there.

A closed loop that waits loses just as many requests as its stall has room for, and those that waited, one for each
connection, all take as long as the stall. A deploy, a dip or the refusals of a frozen server lose requests, too: so a
shortfall accuses only if it equals the stall's room to within what the counts waver by, if the counts are steadier than
those of independent users, and if failed requests do not make up for it. A client that catches up loses none; then what it
has too few of are the latencies between nothing and the stall's length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.diagnose.evidence import LEAST, STRONG, WEAK, Evidence, p_words
from latencykit.diagnose.stalls_log import LEVELS, evenly_spread
from latencykit.units import format_count, format_duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.diagnose.stalls import Stalls

__all__ = ["Counts", "counts_in_stalls"]

_NEARLY = 0.5  # of those it delayed at all: so many were delayed for all of the stall in a closed loop
_MATCH = 0.0025  # of the stall: the shortfall may differ by so much, beside what counts waver by
_WAVER = 3.0  # standard deviations of what they waver by
_FINE = 0.02  # of the stall: where counts waver by more, a match could be chance, and proves nothing
_SCHEDULE = 0.25  # of the variance of independent users: counts that waver less keep to a schedule
_FAILED = 0.2  # of those missing: so many failures may be what is missing
_IN_FLIGHT = 3  # requests may be under way by chance when a clock is set forward, or traffic pauses
_POWER = 8.0  # requests in a fifth of a stall, to show that all of it is there
_LEAST_PART = 0.5  # of what each part of a stall leaves
_THERE = 0.8
_TRIFLE = 0.05  # of the requests: so many may be missing in shorter stalls


@dataclass(frozen=True)
class Counts:
    """What the counts say of the stalls.

    Attributes
    ----------
    evidence : Evidence
    waiting : int
        Requests that the largest stall delayed for its whole length: the connections of a closed loop.
    failed : bool
        Whether failures may account for what is missing.
    """

    evidence: Evidence
    waiting: int
    failed: bool


def counts_in_stalls(stalls: Stalls, rate: float, failures: int) -> Counts | None:
    """Test the counts around every stall; None where there is none, or too little to go by.

    Parameters
    ----------
    stalls : Stalls
        Of the log.
    rate : float
        Usual requests per second.
    failures : int
        Requests that failed or timed out and are not counted.
    """
    counts = stalls.delayed
    if counts is None or not len(stalls) or not rate or np.isnan(counts.wavering):
        return None
    due, missing = rate * stalls.duration, float(stalls.missing.sum())
    waiting, any_delay = counts.above[LEVELS.index(0.8)], counts.above[LEVELS.index(0.1)]
    lost = due - waiting / 2  # each connection still sent one, and loses whole slots only
    slack = 1.0 + _MATCH * due + _WAVER * counts.noise
    match = (waiting >= _NEARLY * any_delay) & (counts.short >= LEAST) & (np.abs(counts.short - lost) <= slack + waiting / 2)
    match &= slack <= np.maximum(_FINE * due, _WAVER)
    sigma = np.where(match, counts.short / np.maximum(counts.noise, np.sqrt(np.maximum(due, 1.0))), 0.0)
    largest = int(np.argmax(sigma))
    p = float(min(1.0, len(stalls) * 0.5 * math.erfc(float(sigma[largest]) / math.sqrt(2.0)))) if match.any() else 1.0
    failed = failures > _FAILED * (missing if missing >= LEAST else float(due.sum()))
    steady = counts.wavering**2 <= max(_SCHEDULE * counts.usual, 1.0 if counts.usual >= _POWER else 0.0)
    # Few requests that are slow by themselves, or whose clock was set forward, fit any hole; a connection loses to each hiccup.
    sure = steady and not failed and (waiting[largest] > _IN_FLIGHT or counts.alone or int(match.sum()) > 1)
    level = "strong" if p < STRONG and missing >= LEAST and sure else "weak" if p < WEAK else "none"
    longest = stalls.duration >= stalls.duration.max() * _THERE
    lost_none = not stalls.missing[longest].any() and missing <= _TRIFLE * float(due.sum())
    if level == "none" and lost_none and _all_there(stalls, due, longest):
        level = "honest"
    finding = _words(stalls, level, float(due.sum()), int(waiting[largest]), p, failed, failures)
    evidence = Evidence("counts in stalls", p, STRONG, finding, level, missing)
    return Counts(evidence, int(waiting[largest]) if match.any() else 0, failed)


def _all_there(stalls: Stalls, due: NDArray[np.float64], longest: NDArray[np.bool_]) -> bool:
    """Whether the longest stalls each left latencies all the way down from their length, as those do who do not wait."""
    counts = stalls.delayed
    assert counts is not None
    even = evenly_spread(counts.above, counts.beside, due, _POWER)
    half = LEVELS.index(0.5)
    enough = counts.above[half] - counts.beside[half] >= _THERE * due / 2
    tenth = np.diff(-counts.above[:2] + counts.beside[:2], axis=0)[0]  # the shortest waits are those that are left out first
    there = tenth >= _LEAST_PART * due / 10
    return bool((even & enough & there)[longest].all())


def _words(stalls: Stalls, level: str, due: float, waiting: int, p: float, failed: bool, failures: int) -> str:
    during = f"during stalls ({format_duration(float(stalls.duration.sum()) * 1e9)} in total)"
    missing = format_count(int(stalls.missing.sum()))
    shortfall = f"{during} the usual rate implies {format_count(round(due))} requests; {missing} are missing"
    if failed:
        return f"{shortfall}, and {format_count(failures)} failed at times that are not known"
    if level == "strong":
        who = "one request was" if waiting == 1 else f"{waiting} requests were"
        return f"{shortfall}, and {who} delayed for the whole of the longest ({p_words(p)}): a closed loop that waited"
    if level == "weak":
        return f"{shortfall}: a closed loop that waited, or traffic that paused for a reason of its own ({p_words(p)})"
    if level == "honest":
        return f"{shortfall}, and latencies are spread evenly up to the longest: the load generator did not wait for replies"
    return shortfall
