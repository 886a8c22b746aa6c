"""Statistics that a tool states are checked like buckets: by one function, for every format.

What no latency can be (negative, infinite, not a number, the 2^63 that stands for "nothing yet") is
left out, and so is what contradicts the others: a mean outside minimum and maximum, or outside of
the buckets, a maximum below a percentile. A percentile below a lower one is raised to it. A note
says so. Printed values are rounded, percentiles often more
coarsely than the maximum beside them, so that what differs by no more than rounding contradicts
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from latencykit._text import option
from latencykit.core import is_samples, is_summary
from latencykit.core.consistency import COARSE, GRAIN, busy, contradiction, last_place
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import CONTRADICTS, Note, Run
from latencykit.errors import InvalidArgumentError
from latencykit.io.source import Data
from latencykit.units import NANOSECONDS, format_duration, format_percentile, format_value

_Stated = tuple[str | float, float]
"""A statistic's name or a percentile, and its value."""

_SENTINEL = 2.0**63 * (1 - 1e-9)
_NAMES = {"mean": "mean", "std": "standard deviation", "min": "minimum", "max": "maximum"}
_FACTS = ("duration", "rate", "achieved", "start", "expected_interval", "timeout")
_TEXTS = ("tool", "version", "command")
_COUNTED = ("connections", "failed", "timeouts", "dropped", "unfinished")


def consistent(
    points: Mapping[float, float], stats: Mapping[str, float], run: Run
) -> tuple[dict[float, float], dict[str, float], Run]:
    """Return percentiles and statistics that can be true, and the run with notes on the others."""
    unit = "none" if run.unit == "none" else "ns"
    wrong: list[str] = []
    kept: dict[str | float, float] = dict(sorted(points.items())) | dict(stats)
    names: list[str | float] = [name for name in _NAMES if name in stats]
    for name in [*names, *sorted(points)]:
        kept[name] = value = _number(kept[name])
        if not 0 <= value < _SENTINEL:  # and not a number
            seen = f"{_named(name)} is {_shown(value, unit)}, which is not a latency"
            wrong.append(f"{seen}: it was left out")
            del kept[name]
    inner = {name: value for name, value in kept.items() if not isinstance(name, str)}
    known = {name: value for name, value in kept.items() if isinstance(name, str)}
    grain = min(NANOSECONDS.get(run.unit, 1.0), GRAIN)
    for doubted, lower, upper in _pairs(inner, known):
        if _less(lower[1], upper[1], grain):
            low, high = (f"{_named(name)}, {_shown(value, unit)}" for name, value in (lower, upper))
            left_out = isinstance(doubted, str) and known.pop(doubted, None) is not None
            done = f"{_named(doubted)} was left out" if left_out else "it was raised to that"
            wrong.append(f"{low}, lies below {high}, which {CONTRADICTS} it: {done}")
    top = known.get("min", 0.0)
    for percentile, value in inner.items():
        inner[percentile] = top = max(top, value)
    return inner, known, run.with_notes(*wrong)


def _pairs(
    points: Mapping[float, float], stats: Mapping[str, float]
) -> Iterator[tuple[str | float, _Stated, _Stated]]:
    """Yield what is doubted if the first of two values lies below the second."""
    inner = list(points.items())
    top = inner[0] if inner else (0.0, 0.0)
    for pair in inner[1:]:
        yield pair[0], pair, top
        top = pair if pair[1] > top[1] else top
    least, mean, most = ((name, stats.get(name, math.nan)) for name in ("min", "mean", "max"))
    if inner:
        yield "max", most, top
        yield "min", inner[0], least
    yield from (("min", most, least), ("mean", mean, least), ("mean", most, mean))


def _less(value: float, least: float, grain: float) -> bool:
    """True if a value is less than another by more than rounding to a last place, or `grain`."""
    below = least * (1 - COARSE) - last_place(least, grain)
    return value < least and value + last_place(value, grain) < below


def whole_count(count: object) -> int | None:
    """Return a number of values as the tool states it; None where it does not."""
    if count is None:
        return None
    number = _number(count)
    if not (
        math.isfinite(number) and number >= 0 and number == round(number) and number < _SENTINEL
    ):
        raise InvalidArgumentError(
            f"the count of values is {str(count)[:40]}; expected a whole number"
        )
    return int(count) if isinstance(count, int) else round(number)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise InvalidArgumentError(f"a statistic is {str(value)[:40]!r}; expected a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _named(name: str | float) -> str:
    return f"the {_NAMES[name]}" if isinstance(name, str) else f"p{format_percentile(name)}"


def _shown(value: float, unit: str) -> str:
    bare = unit == "none" or not abs(value) < _SENTINEL
    return f"{value:.4g}" if bare else format_value(value, unit, 4)


# ------------------------------------------------------------ what was read
def without_contradictions(data: Data) -> Data:
    """Return the data with only those reported statistics that fit each other and the buckets."""
    if is_summary(data):
        points, stats, run = consistent(data.reported_percentiles, data.stats, data.run)
        count = whole_count(data.count)
        same = run is data.run and count == data.count and points == data.reported_percentiles
        return data if same else type(data)(stats, points, count, data.unit, run)
    if not isinstance(data, Histogram):
        return data
    if data.index.size:
        least, most = map(float, data.buckets.low(data.index[[0, -1]]))
        if not most < _SENTINEL:
            raise InvalidArgumentError(f"a bucket begins at {most:.4g}, which is not a latency")
        if least < 0:
            raise InvalidArgumentError(f"a value is {least:.4g}, which is not a latency")
    if not (data.reported_stats or data.reported_percentiles[0]):
        return data
    points, stats, run = consistent(
        dict(zip(*data.reported_percentiles, strict=True)), data.reported_stats, data.run
    )
    wrong: dict[str, str] = {}
    if data.index.size:
        unit = "none" if data.unit == "none" else "ns"
        grain = min(NANOSECONDS.get(run.unit, 1.0), GRAIN)
        low, high = (edges(data.index[[0, -1]]) for edges in (data.buckets.low, data.buckets.high))
        bounds = [("max", float(low[1]), "below"), ("mean", float(low[0]), "below")]
        if not data.censored:
            bounds += [("min", float(high[0]), "above"), ("mean", float(high[1]), "above")]
        for name, bound, side in bounds:
            value, edge = stats.get(name, bound), _shown(bound, unit)
            lower, upper = (value, bound) if side == "below" else (bound, value)
            if _less(lower, upper, grain):  # by more than rounding
                span = f"from {edge} on" if side == "below" else f"up to {edge}"
                seen = f"{_named(name)}, {_shown(value, unit)}, lies {side} counted values, {span}"
                seen += f", which {CONTRADICTS} it: it was left out"
                wrong[name] = seen
    run = run.with_notes(*wrong.values())
    stats = {name: value for name, value in stats.items() if name not in wrong}
    if run is data.run and tuple(points.values()) == data.reported_percentiles[1]:
        return data
    return replace(
        data,
        reported_stats=stats,
        reported_percentiles=(tuple(points), tuple(points.values())),
        run=run,
    )


def checked(data: Data) -> Data:
    """Return data with statistics that can be true, and notes on the others."""
    data = without_contradictions(data)
    changed: dict[str, Any] = {
        name: str(value)
        for name in _TEXTS
        if (value := getattr(data.run, name)) is not None and not isinstance(value, str)
    }
    for name in (*_FACTS, *_COUNTED):
        value = getattr(data.run, name)
        if value is None or (type(value) is int and 0 <= value < 2**63):
            continue
        number = _number(value)
        if name in _COUNTED:
            changed[name] = whole_count(value)
        elif (
            not abs(number) < _SENTINEL
            or (number < 0 and name != "start")
            or 0 < abs(number) < 1 / _SENTINEL
        ):
            seen = f"the {name.replace('_', ' ')} is {number:.4g}: it was left out"
            changed |= {name: None, "notes": (*changed.get("notes", data.run.notes), seen)}
    data = data.with_run(**changed) if changed else data
    if not (is_summary(data) or isinstance(data, Histogram)):
        return data
    # what of its report cannot be true, or what wrk added to it
    run, wrong = data.run, contradiction(data)
    known = data.stats if is_summary(data) else data.reported_stats
    if run.corrected == "tool" and (filled := busy(known, data.count or 0, run, 1.0)):
        scripted = " (or its script sends several at once)" if run.tool == "wrk" else ""
        run = run.with_notes(
            f"{filled}: the tool's correction added some{scripted}; do not correct again"
        )
    notes = run.notes if wrong is None or wrong in run.notes else (wrong, *run.notes)
    return data.with_run(notes=notes) if notes != data.run.notes else data


# ------------------------------------------------------------
# Latencies longer than their run: reported when a file is read, most often a wrong unit.
#
# They are not an error. A request may have begun before its log did, tools calibrate first,
# and wait a little for the last replies: what follows allows for all of that.

_SLACK = 10.0  # seconds; as long as wrk2 calibrates
_MARGIN = 1.1


def longer_than_run(data: Data, highest: float | None = None) -> str | None:
    """Return a note on a latency that lasts longer than the run, or the log, or None."""
    # Of a log that is `highest`, in its unit, if it was decoded as it was read; a unit that the
    # user states is worth a pass over others.
    run, what, length = data.run, "run", data.run.duration
    if data.unit not in NANOSECONDS or any(CONTRADICTS in note for note in run.notes):
        return None
    if isinstance(data, HistogramLog):
        ends = data.starts + data.lengths
        length = float(ends.max(initial=0.0)) - min(0.0, float(data.starts.min(initial=0.0)))
        what = "log"
        if highest is None and run.unit_from == "option":
            total = data.histogram()
            highest = float(total.max) if total.count else 0.0
        longest = highest or 0.0
    elif is_summary(data):
        longest = max(data.stats.get("max", 0.0), *data.reported_percentiles.values(), 0.0)
    elif is_samples(data):
        longest = float(data.duration.max(initial=0))
        if data.start is not None and data.start.size and run.unit_from == "option":
            length = length or float(np.ptp(data.start)) / 1e9
    else:
        longest = float(data.max) if data.count else 0.0
    nanoseconds = longest * NANOSECONDS[data.unit]
    if not (length and nanoseconds / 1e9 > _MARGIN * length + _SLACK):
        return None
    why = "was a clock set, or had it begun before?"
    if run.unit_from == "option":
        why = f"are the values in {run.unit}? ({option('unit')})"
    took, whole = format_duration(nanoseconds), format_duration(length * 1e9)
    return Note(f"a latency of {took} is longer than the {what}, {whole}: {why}")
