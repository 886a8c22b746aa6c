"""Requests that pile up at a round maximum: perhaps timeouts, or all that a recorder can count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from latencykit.core.histogram import Histogram

_ROUND = np.array([
    0.001, 0.002, 0.005, 0.01, 0.02, 0.025, 0.05,
    0.1, 0.2, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 45, 50, 60,
    75, 90, 100, 120, 150, 180, 200, 240, 250, 300, 360, 400, 500, 600, 900, 1200, 1800, 3600,
])  # fmt: skip
"""Timeouts, and highest values of recorders, that people choose, in seconds."""


@record()
class TimeoutRules:
    """When a pile at the maximum may be a timeout; chosen on freezes and clipped recorders."""

    # a timer fires a little late,
    early_ratio: float = 0.9995
    # and a clock may be a little fast
    late_ratio: float = 1.002
    # of the timeout: of a bucket at the maximum, and of a clock's step
    max_width_share: float = 0.01
    # requests from this share of the timeout on show how many are to be expected at it
    near_share: float = 0.8
    # fewer pile up by chance
    min_requests: int = 10
    # of all requests: more are a mode
    max_share: float = 0.2
    # as many as latencies just below imply
    min_times_expected: float = 10
    # that show how fine the clock is
    min_distinct_values: int = 20


TIMEOUT = TimeoutRules()


def suspected_timeout(histogram: Histogram) -> tuple[float, int] | None:
    """Return the timeout at which requests may have been given up, and how many were.

    Many requests took a round time that is the maximum. A recorder that counts all slower requests
    as the highest value that it tracks leaves the same, and so does a true mode: it is a
    possibility and no more.

    Nothing is said where the clock or the buckets are coarse, where latencies just below are about
    as frequent, or where the source knows its timeouts.

    >>> import latencykit as lk, random
    >>> dice = random.Random(1)
    >>> h = lk.Histogram.of([dice.expovariate(10) for _ in range(5000)] + [30.0] * 20, unit="s")
    >>> suspected_timeout(h)
    (30.0, 20)
    """
    counted, scale = histogram.counted, NANOSECONDS.get(histogram.unit)
    known = histogram.censored or histogram.run.timeout
    if scale is None or known or counted.counts.size < TIMEOUT.min_distinct_values:
        return None
    low, high, counts = counted.low * scale / 1e9, counted.high * scale / 1e9, counted.counts
    greatest = histogram.max * scale / 1e9
    least = min(float(low[-1]), greatest)  # a reported maximum may lie within the bucket
    round_times = _ROUND[
        (least <= _ROUND * TIMEOUT.late_ratio) & (greatest >= _ROUND * TIMEOUT.early_ratio)
    ]
    if not round_times.size:
        return None
    timeout, step = float(round_times[-1]), float(np.diff(low).min())
    begin = int(np.searchsorted(high, timeout * TIMEOUT.early_ratio))
    if (
        begin == high.size  # only a maximum that the source states lies there
        or max(step, high[-1] - low[-1]) > TIMEOUT.max_width_share * timeout
        or step > TIMEOUT.max_width_share * timeout / 4
    ):
        return None
    near = int(np.searchsorted(high, timeout * TIMEOUT.near_share))
    number, total = int(counts[begin:].sum()), int(counts.sum())
    width = max(float(high[-1]), timeout * TIMEOUT.late_ratio) - min(
        float(low[begin]), timeout * TIMEOUT.early_ratio
    )
    just_below = timeout * (TIMEOUT.early_ratio - TIMEOUT.near_share)
    expected = (1 + counts[near:begin].sum()) * width / just_below
    least = max(TIMEOUT.min_requests, TIMEOUT.min_times_expected * expected)
    return (timeout * 1e9 / scale, number) if least <= number <= TIMEOUT.max_share * total else None
