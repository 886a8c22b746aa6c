"""Reports that cannot be true: reported numbers that no set of requests can have together.

One check for every command: `latencykit.io` notes it when a report is read, `check` judges nothing
by such a report, `diagnose` and `correct` derive nothing from it. Rounding does not contradict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from latencykit._text import format_items
from latencykit.core.run import CONTRADICTS, Run
from latencykit.units import NANOSECONDS, format_count, format_duration

COARSE = 0.05
"""Locust prints percentiles with two digits, and the maximum with all."""

GRAIN = 1e7
"""Nanoseconds: siege prints hundredths of a second."""

_SLACK = 1.1  # of the run: replies are awaited for a little, and tools round its length
_BUSY = 1.25  # of the time of all connections: tools count a little differently what they time
_WAIT = 1.0  # seconds
_CALIBRATION = 10.0  # of wrk2, which are not in its run's length
_IN_FLIGHT = {
    "redis-benchmark": math.inf, "h2load": math.inf, "memtier_benchmark": math.inf,
    "Nighthawk": math.inf, "k6": 20,
}  # fmt: skip
"""Requests that a tool may have under way per connection: pipelines, streams, http.batch of k6."""
_LATEST = ("NoSQLBench", "LinkBench")
"""Tools whose percentiles are of a run's latest requests, or the ends of wide ranges."""


def last_place(value: float, grain: float) -> float:
    """Return the last decimal place of a value, in its unit: zeros at its end may be digits."""
    place = 1.0 if value else grain
    while place < grain and value % (10 * place) == 0:
        place *= 10
    return min(place, grain)


def contradiction(data: Any) -> str | None:
    """Return which reported numbers cannot be true together, one sentence; None if all can.

    >>> from latencykit.core.run import Run
    >>> from latencykit.core.summary import Summary
    >>> run = Run(duration=10.0, connections=1)
    >>> contradiction(Summary({"mean": 5e6}, {}, 100_000, run=run))
    'the report contradicts itself: 100,000 requests of 5 ms do not fit into 10 s on 1 connection'
    >>> contradiction(Summary({"mean": 5e6}, {}, 2_000, run=run)) is None
    True
    """
    run = data.run
    noted = next((note for note in run.notes if CONTRADICTS in note), None)
    if noted or data.unit not in NANOSECONDS:
        return noted
    factor, reported = NANOSECONDS[data.unit], getattr(data, "reported_percentiles", {})
    points = dict(zip(*reported, strict=True)) if isinstance(reported, tuple) else reported
    points = {p: value * factor for p, value in points.items()}
    named = getattr(data, "stats", None) or getattr(data, "reported_stats", {})
    stats = {name: value * factor for name, value in named.items()}
    count = (getattr(data, "count", None) or 0) + getattr(data, "censored", 0)
    sentence: str | None = None
    mean, top = stats.get("mean", 0.0), stats.get("max", math.inf)
    if points and mean and count and run.tool not in _LATEST:
        # The mean is beyond what requests with these percentiles, minimum and maximum can have.
        # Tools choose the request of a percentile in different ways, which are up to two apart.
        grain, apart = min(NANOSECONDS.get(run.unit, 1.0), GRAIN), 2 / count
        shares, values = [p / 100 for p in sorted(points)], [points[p] for p in sorted(points)]
        up = [0.0, *(max(share - apart, 0.0) for share in shares), 1.0]
        down = [0.0, *(min(share + apart, 1.0) for share in shares), 1.0]
        most = sum(
            (end - begin) * (value + last_place(value, grain) if value < math.inf else value)
            for begin, end, value in zip(up, up[1:], [*values, max(top, values[-1])], strict=False)
            if end > begin
        )
        lowest = [stats.get("min", 0.0), *values]
        least = sum(
            (end - begin) * max(value - last_place(value, grain), 0.0)
            for begin, end, value in zip(down, down[1:], lowest, strict=False)
        )
        place, has = last_place(mean, grain), f"and it has {format_duration(mean)}"
        if mean + place < (1 - COARSE) * least:
            sentence = f"its percentiles allow a mean of {format_duration(least)} at least, {has}"
        elif mean - place > (1 + COARSE) * most:
            sentence = f"its percentiles allow a mean of {format_duration(most)} at most, {has}"
    if run.unit_from in ("file", "format") and run.corrected != "us":
        own = run.corrected not in ("tool", "schedule")
        sentence = (own and busy(stats, count, run)) or sentence
        length, longest = run.duration or 0.0, stats.get("max", 0.0) / 1e9
        wait = _WAIT + (_CALIBRATION if run.tool == "wrk2" else 0.0)
        if length and _SLACK * length + wait < longest:
            took, whole = format_duration(longest * 1e9), format_duration(length * 1e9)
            sentence = f"a latency of {took} is longer than the run, {whole}"
    return sentence and f"the report {CONTRADICTS} itself: {sentence}"


def busy(stats: Mapping[str, float], count: int, run: Run, slack: float = _BUSY) -> str | None:
    """Return that the requests took longer in all than their connections had; None if they fit."""
    # Tools that may send any number of requests at once per connection are left out.
    mean, length, number = stats.get("mean", 0.0), run.duration or 0.0, run.connections or 0
    most = slack * number * length * _IN_FLIGHT.get(run.tool or "", 1)
    least = mean - last_place(mean, min(NANOSECONDS.get(run.unit, 1.0), GRAIN))
    if not 0 < most < count * least / 1e9:
        return None
    each, whole = format_duration(mean), format_duration(length * 1e9)
    on = format_items(number, "connection")
    return f"{format_count(count)} requests of {each} do not fit into {whole} on {on}"
