"""What a page says of its series: diagnoses, corrections, comparisons, checked limits, fan-out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from latencykit._records import record
from latencykit._text import format_items, option
from latencykit.analysis.compare import compare
from latencykit.analysis.fan_out import fan_out
from latencykit.analysis.omission import diagnose
from latencykit.analysis.slo import SLOResult, for_all_series, why
from latencykit.core.distribution import Distribution
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.quantiles import Doubt
from latencykit.core.samples import Samples
from latencykit.errors import DataNotAvailableError, InvalidArgumentError, LatencyKitError
from latencykit.views.fan_out import PageFanOut
from latencykit.views.page_series import PageSeries, finest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latencykit.analysis.compare import Comparison
    from latencykit.analysis.diagnosis import Diagnosis
    from latencykit.analysis.explain import Explanation
    from latencykit.core import Data
    from latencykit.units import Moment

_COUNTS = 60_000_000
"""Logs of more counts are not diagnosed for a page; an hour of a very busy server is 14 million."""
_CLOSE_UP, _SHORT_STALL = 6, 3
"""Stalls with time bins of their own: most of them, and time bins that a longer one spans."""

_COMPARED = 6
"""Series that are compared with the first one."""

_CALLS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
"""Numbers of calls of the fan-out's slider."""

_WITH_FAN_OUT = 6
"""Series that have a fan-out."""


@record(eq=False)
class DiagnosedSeries:
    """A series and its diagnosis; None where the source cannot be diagnosed."""

    series: PageSeries
    diagnosis: Diagnosis | None

    @property
    def omits(self) -> bool:
        """The diagnosis found coordinated omission."""
        return self.diagnosis is not None and self.diagnosis.verdict == "omits"

    def longest(self, most: int) -> list[int]:
        """Return the positions of the longest stalls, in order of time."""
        if self.diagnosis is None:
            return []
        longest = np.argsort(-self.diagnosis.detected_stalls.duration, kind="stable")
        return sorted(longest[:most].tolist())

    @property
    def too_large(self) -> bool:
        """The passes that a diagnosis takes over the log would take minutes."""
        slots, data, counted = self.series.slots, self.series.data, self.series.counted
        if not (slots and isinstance(data, HistogramLog) and isinstance(counted, Histogram)):
            return False
        # As if no interval of a time bin shared buckets with another.
        return min(slots.decoded * len(data) / slots.start.size, counted.count) > _COUNTS


def diagnose_series(series: Sequence[PageSeries], how: dict[str, Any]) -> list[DiagnosedSeries]:
    """Diagnose every measured series; `how` are the other arguments of `lk.diagnose`."""
    diagnosed = []
    for entry in series:
        counted, one = entry.counted, DiagnosedSeries(entry, None)
        if not (
            isinstance(entry.data, Distribution)
            or isinstance(counted, Distribution)
            or counted.unit == "none"
            or not counted.count
            or one.too_large
        ):
            one = DiagnosedSeries(entry, diagnose(entry.data, **how))
        diagnosed.append(one)
    return diagnosed


def corrected_series(diagnosed: Sequence[DiagnosedSeries]) -> list[PageSeries]:
    """Return the corrected series of those that omit, of the whole run as `diagnose` has it."""
    shadows: list[PageSeries] = []
    for entry in diagnosed:
        own, diagnosis = entry.series, entry.diagnosis
        if diagnosis is None or diagnosis.verdict != "omits" or diagnosis.corrected is None:
            continue
        corrected = diagnosis.corrected
        # A colour that no other series has, and a marker beside several.
        taken = {other.series.look[0] for other in diagnosed} | {
            shadow.look[0] for shadow in shadows
        }
        free = (name for name in ("c0", "c2", "c3", "c1", "c4", "c5") if name not in taken)
        look = (next(free, "c0"), "mark3" if len(diagnosed) > 1 else "")
        # The correction supplies the values from where they are twice the raw ones.
        percentiles = 100 * (1 - 10.0 ** -np.arange(0.05, 9, 0.05))
        moved = corrected.percentile(percentiles) > 2 * own.counted.percentile(percentiles)
        start = float(percentiles[int(np.argmax(moved))]) if moved.any() else 100.0
        stalls = format_items(max(1, len(diagnosis.detected_stalls)), "stall")
        supplied = Doubt(start, 100.0, stalls)
        name = f"{own.name}, corrected"
        shadows.append(PageSeries(name, corrected, corrected, None, look, True, supplied))
    return shadows


def as_raw(diagnosed: Sequence[DiagnosedSeries]) -> list[DiagnosedSeries]:
    """Return a single series that omits in the colour of raw measurements."""
    if len(diagnosed) != 1 or not diagnosed[0].omits:
        return list(diagnosed)
    return [replace(diagnosed[0], series=replace(diagnosed[0].series, look=("raw", "")))]


def checked_limits(slo: Any, series: Sequence[PageSeries]) -> list[SLOResult]:
    """Return the verdicts of each series, one per limit; empty without an SLO."""
    if slo is None:
        return []
    stated = for_all_series(slo)
    checked = []
    for entry in series:
        rows = stated.check(entry.timed)
        if entry.counted.run.unit_from == "assumed":
            # A limit in time cannot be compared with values whose unit is only assumed.
            reasons = why("unit assumed", option=option("unit"))
            rows = SLOResult(
                row
                if row.is_share or row.unit == "none"
                else replace(row, outcome="unknown", reasons=reasons)
                for row in rows
            )
        checked.append(rows)
    return checked


def comparisons(
    series: Sequence[PageSeries],
) -> list[tuple[PageSeries, Comparison | LatencyKitError]]:
    """Compare the first series with the others, or return the reasons why that is impossible.

    Parts are not compared with their total: that they differ from it is neither better nor worse.
    """
    if series[0].counted.run.aggregate:
        return []
    compared: list[tuple[PageSeries, Comparison | LatencyKitError]] = []
    for other in series[1 : 1 + _COMPARED]:
        try:
            sides = cast("list[Data]", [series[0].timed, other.timed])  # a model is refused
            compared.append((other, compare(*sides)))
        except LatencyKitError as error:  # a summary beside a curve, or an empty series
            compared.append((other, error))
    return compared


def fan_outs_of(series: Sequence[PageSeries]) -> list[PageFanOut]:
    """Return the fan-out of each measured series for the numbers of calls of the slider."""
    measured = [
        (part, part.counted)
        for part in series
        if isinstance(part.counted, Histogram) and part.counted.count
    ]
    return [
        PageFanOut(
            part.name,
            counted.max,
            fan_out(counted, _CALLS, independent=True, shares=(99.0,)),
            None
            if part.slots is None
            else fan_out(part.slots.log(counted.unit), _CALLS, shares=(99.0,)),
        )
        for part, counted in measured[:_WITH_FAN_OUT]
    ]


def stall_spans(diagnosed: Sequence[DiagnosedSeries]) -> list[tuple[float, float]]:
    """Return the time around each of the longest stalls that is shorter than a few time bins."""
    spans = []
    for entry in diagnosed:
        slots = entry.series.slots
        if entry.diagnosis is None or slots is None:
            continue
        interval, stalls = finest([entry.series]), entry.diagnosis.detected_stalls
        if slots.width is None or slots.width < 2 * interval:
            continue
        for k in entry.longest(_CLOSE_UP):
            start, end = (
                float(side[k]) + entry.series.begin for side in (stalls.start, stalls.end)
            )
            if end - start < _SHORT_STALL * slots.width:
                margin = 4 * (end - start) + 60 * interval
                spans.append((end - start, (max(0.0, start - margin), end + margin)))
    return [span for _, span in sorted(spans, reverse=True)[:_CLOSE_UP]]


def has_columns(named: Mapping[str, Data]) -> bool:
    """Return whether any series has single requests with attributes."""
    return any(isinstance(data, Samples) and len(data.columns) for data in named.values())


def explanations(
    named: Mapping[str, Data], between: tuple[Moment, Moment] | None = None
) -> dict[str, Explanation]:
    """Explain the slow requests of the series that have attributes."""
    # In a web page, these two come later: it is drawn without them, and again when they are there.
    if not has_columns(named) or None in [find_spec(name) for name in ("pandas", "scipy")]:
        return {}
    from latencykit.analysis.explain import explain  # loads scipy

    explained = {}
    for name, data in named.items():
        if isinstance(data, Samples) and len(data.columns):
            with suppress(InvalidArgumentError, DataNotAvailableError):  # all are equally fast
                explained[name] = explain(data, between=between)
    return explained
