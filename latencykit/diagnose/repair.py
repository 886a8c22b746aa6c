"""The percentiles as they would have been: re-timed where the sends tell, else back-filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.diagnose.backfill import back_filled
from latencykit.diagnose.floor import physics_floor
from latencykit.diagnose.retiming import chains, retime
from latencykit.diagnose.sends import sends_in_slow_times
from latencykit.diagnose.stalls import stalls_of
from latencykit.diagnose.trace import Trace
from latencykit.histogram import STANDARD_PERCENTILES
from latencykit.samples import Samples
from latencykit.summary import Summary

if TYPE_CHECKING:
    from latencykit.diagnose.facts import Facts
    from latencykit.histogram import Histogram

__all__ = ["is_material", "repaired", "repaired_by"]

_MOVED, _DOUBLED = 1.1, 2.0
_STEADY = 0.1  # of an interval: a schedule's sends are no farther from their slots, half of the time


def repaired_by(facts: Facts, *, scheduled: bool = True) -> str | None:
    """Return which repair fits: ``retime``, ``backfill``, or None where the interval is not known.

    A closed loop at full speed is not `scheduled`: it has no slots to time from.
    """
    if facts.interval is None or not facts.rate or isinstance(facts.rung, Summary) or not facts.count:
        return None
    if _by_its_own_schedule(facts) is not None:
        return "retime"
    return "retime" if scheduled and facts.trace is not None and _keeps_a_schedule(facts) else "backfill"


def repaired(facts: Facts, method: str | None) -> Histogram | None:
    """Return the distribution with the omitted requests in it, or None where it cannot be told."""
    if method is None or facts.interval is None:
        return None
    if method == "retime":
        if (known := _by_its_own_schedule(facts)) is not None:
            return known
        rung = facts.rung.measured("service").but(corrected="none")
        if facts.told_duration:
            rung = rung.but(duration=facts.told_duration)
        timed: Histogram = retime(rung, facts.rate, facts.connections).histogram()
        return timed
    filled: Histogram = back_filled(facts.rung, facts.interval).histogram()
    return filled


def _by_its_own_schedule(facts: Facts) -> Histogram | None:
    """The response times from the intended starts, where the source holds these and none of them is missing."""
    rung = facts.rung
    if not isinstance(rung, Samples) or rung.intended is None or rung.run.measure == "response":
        return None
    timed = rung.measured("response")
    trace = Trace.of(timed)
    sends = sends_in_slow_times(trace, stalls_of(timed, trace=trace))
    return timed.histogram() if sends is not None and sends.evidence.level in ("none", "honest") else None


def _keeps_a_schedule(facts: Facts) -> bool:
    """Whether each connection sends at equal distances but for its stalls: else there are no slots to time from."""
    trace, interval = facts.trace, facts.interval
    if trace is None or interval is None or trace.usual * 1e9 > interval:
        return False
    start, took = np.rint(trace.due * 1e9).astype(np.int64), np.rint(trace.took * 1e9).astype(np.int64)
    chain = chains(start, took, None, facts.connections or 1, interval)
    order = np.lexsort((start, chain))
    same = np.diff(chain[order]) == 0
    off = np.abs(np.diff(start[order])[same] - interval)
    return bool(off.size and np.median(off) <= _STEADY * interval)


def is_material(facts: Facts, after: Histogram | None, stall: float, *, coarse: bool) -> bool:
    """Whether the mean or a supported percentile moves by more than a tenth.

    Parameters
    ----------
    facts : Facts
    after : Histogram or None
        The repaired distribution; without it the floor that one stall of the whole server leaves.
    stall : float
        Seconds.
    coarse : bool
        Look no farther than p99, and let the mean double: for closed loops at full speed, which omit their own hiccups
        by nature.
    """
    if isinstance(facts.rung, Summary):
        mean, duration = facts.rung.stats.get("mean"), facts.duration
        return bool(mean and duration and stall**2 / (2 * duration) * 1e9 > (_MOVED - 1) * mean)
    raw = facts.histogram
    limit = min(99.0 if coarse else 100.0, raw.sample_limit())
    wanted = [p for p in STANDARD_PERCENTILES if p <= limit]
    before = np.asarray(raw.percentile(wanted), np.float64)
    if after is not None and not coarse:  # at full speed its usual times would be filled, too: they are no stall
        moved, mean = np.asarray(after.percentile(wanted), np.float64), after.mean
    elif facts.duration:
        moved = physics_floor(wanted, stall, facts.duration) * 1e9
        mean = raw.mean + stall**2 / (2 * facts.duration) * 1e9
    else:
        return False
    return bool((moved > _MOVED * before).any() or mean > (_DOUBLED if coarse else _MOVED) * raw.mean)
