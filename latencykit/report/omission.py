"""What a diagnosis adds to a page: stalls, the verdict on coordinated omission, and the corrected series beside the raw one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.diagnose import diagnose
from latencykit.diagnose.backfill import back_filled
from latencykit.distribution import Distribution
from latencykit.log import HistogramLog
from latencykit.report.markup import bullets, esc, section, table
from latencykit.report.series import PageSeries
from latencykit.report.slots import slots_of
from latencykit.units import format_count, format_duration, format_percentile, format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.diagnose import Diagnosis
    from latencykit.histogram import Histogram

__all__ = [
    "Found", "as_raw", "corrected_series", "doubts", "found_in", "omission_section", "stalls_model", "stalls_section",
    "verdict_badge",
]  # fmt: skip

_SHADED, _LISTED, _LABELLED = 100, 20, 4
"""So many of the longest stalls are shaded, listed, and labelled."""

_COUNTS = 60_000_000
"""Logs of more counts than that are not diagnosed for a page: about an hour of seconds of a very busy server is 14 million."""

_BADGES = {"omits": "bad", "clean": "good", "unknown": "unsure"}


@dataclass(frozen=True, eq=False)
class Found:
    """A series and its diagnosis; None where the source cannot be diagnosed."""

    series: PageSeries
    diagnosis: Diagnosis | None


def found_in(series: Sequence[PageSeries], how: dict[str, Any]) -> list[Found]:
    """Diagnose every measured series; `how` is what `lk.diagnose` takes beside it."""
    return [Found(one, _diagnosed(one, how)) for one in series]


def _diagnosed(one: PageSeries, how: dict[str, Any]) -> Diagnosis | None:
    if isinstance(one.counted, Distribution) or one.counted.unit == "none" or not one.counted.count or _too_large(one):
        return None
    return diagnose(one.rung, **how)


def _too_large(one: PageSeries) -> bool:
    """Whether the passes that a diagnosis takes over the log would take minutes."""
    if one.slots is None or not isinstance(one.rung, HistogramLog):
        return False
    most = one.slots.decoded * len(one.rung) / one.slots.start.size  # as if no interval of a slot shared buckets with another
    return bool(min(most, one.counted.count) > _COUNTS)


def corrected_series(found: Sequence[Found]) -> list[PageSeries]:
    """Return the corrected series of those that omit, over time where back-filling keeps it."""
    shadows = []
    for one in found:
        if one.diagnosis is None or one.diagnosis.verdict != "omits" or one.diagnosis.corrected is None:
            continue
        own, slots, rung = one.series, None, one.diagnosis.corrected
        interval = one.diagnosis.expected_interval
        if one.diagnosis.method == "backfill" and interval is not None and isinstance(own.rung, HistogramLog):
            slots, rung = slots_of(back_filled(own.rung, interval))
        look = ("honest", "") if len(found) == 1 else ("honest" if own.look[0] == "raw" else own.look[0], "dash3")
        supplied = _supplied_from(one.diagnosis.corrected, own.counted), _number(one.diagnosis)
        name = f"{own.name}, corrected"
        shadows.append(PageSeries(name, rung, one.diagnosis.corrected, slots, look, shadow=True, supplied=supplied))
    return shadows


def _supplied_from(corrected: Histogram, raw: Histogram) -> float:
    """The percentile from which on it is the correction that supplies the values: from there it is twice the raw one."""
    percentiles = 100 * (1 - 10.0 ** -np.arange(0.05, 9, 0.05))
    moved = corrected.percentile(percentiles) > 2 * raw.percentile(percentiles)
    return float(percentiles[int(np.argmax(moved))]) if moved.any() else 100.0


def _number(found: Diagnosis) -> str:
    stalls = max(1, len(found.found))
    return f"{stalls} stall{'' if stalls == 1 else 's'}"


def as_raw(found: Sequence[Found]) -> list[Found]:
    """Return a single series that omits in the colour of what omits."""
    if len(found) != 1 or found[0].diagnosis is None or found[0].diagnosis.verdict != "omits":
        return list(found)
    return [replace(found[0], series=replace(found[0].series, look=("raw", "")))]


def verdict_badge(one: Found) -> str:
    """Return the verdict as a word in a frame, and its sentence."""
    if one.diagnosis is None or one.diagnosis.verdict == "unknown":
        return ""
    found = one.diagnosis
    return f"<span class='badge {_BADGES[found.verdict]}'>{found.verdict}</span> {esc(_sentence(found.summary))}"


def _sentence(text: str) -> str:
    first = text[:1] if text.startswith("lk.") else text[:1].upper()
    return f"{first}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


# ---------------------------------------------------------------- stalls


def _longest(found: Diagnosis, most: int) -> list[int]:
    """Positions of the longest stalls, in order of time."""
    return sorted(np.argsort(-found.found.duration, kind="stable")[:most].tolist())


def stalls_model(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Return what the timeline shades."""
    model = []
    for one in found:
        if one.diagnosis is None:
            continue
        stalls = one.diagnosis.found
        named = set(_longest(one.diagnosis, _LABELLED)) if len(stalls) <= _LISTED else set()
        for k in _longest(one.diagnosis, _SHADED):
            missing = int(stalls.missing[k])
            label = f"stall {format_duration(float(stalls.duration[k]) * 1e9, 2)}"
            label += f" · ~{format_count(missing)} requests missing" if missing and one.diagnosis.verdict == "omits" else ""
            start, end = (float(side[k]) + one.series.begin for side in (stalls.start, stalls.end))
            model.append({"start": start, "end": end, "label": label if k in named else ""})
    return model


def stalls_section(found: Sequence[Found]) -> str:
    """Return a table of stalls a series, each with a button that selects its time."""
    held = [one for one in found if one.diagnosis is not None and len(one.diagnosis.found)]
    return section("stalls", "Stalls", *(_stalls(one, several=len(found) > 1) for one in held))


def _stalls(one: Found, *, several: bool) -> str:
    assert one.diagnosis is not None
    stalls = one.diagnosis.found
    rows: list[list[str]] = []
    for k in _longest(one.diagnosis, _LISTED):
        start, end = (float(side[k]) + one.series.begin for side in (stalls.start, stalls.end))
        button = (
            f"<button type='button' data-from='{start!r}' data-to='{end!r}'>Show</button>" if one.series.slots is not None else ""
        )
        cells = [_seconds(start), _seconds(end), format_duration((end - start) * 1e9)]
        share = f"{100 * float(stalls.share[k]):.3g} %"
        worst, missing = format_duration(float(stalls.worst[k])), format_count(int(stalls.missing[k]))
        rows.append([str(len(rows) + 1), *cells, worst, missing, share, button])
    more = len(stalls) - len(rows)
    caption = f"{format_count(len(stalls))} stalls; the {len(rows)} longest are listed." if more else ""
    header = ["", "from", "to", "length", "worst request", "requests missing", "delayed", ""]
    name = f"<p><b>{esc(one.series.name)}</b></p>" if several else ""
    return name + table(header, rows, caption) + bullets(_sentence(note) for note in stalls.notes)


def _seconds(moment: float) -> str:
    """A moment to the millisecond, as ``--from`` and ``--to`` take it."""
    return f"{moment:.3f}".rstrip("0").rstrip(".") + " s"


# ---------------------------------------------------------------- raw against corrected


def omission_section(found: Sequence[Found]) -> str:
    """Return the raw percentiles beside the corrected ones, with what speaks for it, for all series that omit."""
    held = [one for one in found if one.diagnosis is not None and one.diagnosis.verdict == "omits"]
    return section("omission", "What the measurement left out", *map(_omission, held))


def _omission(one: Found) -> str:
    found = one.diagnosis
    assert found is not None
    how = {"backfill": "filled up at the expected interval", "retime": "timed from the schedule"}.get(found.method or "", "")
    if found.method == "backfill" and found.expected_interval:
        how = f"filled up at the expected interval of {format_duration(found.expected_interval)}"
    rows = []
    for percentile, before, after in found.table:
        name = "max" if percentile >= 100 else f"p{format_percentile(percentile)}"
        fixed = "not known" if after is None else format_value(after, found.raw.unit)
        rows.append([name, esc(format_value(before, found.raw.unit)), esc(fixed)])
    said = f"<p>{verdict_badge(one)}</p>"
    evidence = bullets([*(_sentence(f"{piece.test}: {piece.finding}") for piece in found.evidence), _sentence(found.ask)])
    header = ["", "as measured", f"corrected{f' ({esc(how)})' if how else ''}"]
    return said + table(header, rows, esc(one.series.name)) + evidence


def doubts(one: Found) -> list[str]:
    """Return what a diagnosis that cannot tell says to who trusts the numbers."""
    if _too_large(one.series):
        return ["A log of this size is not diagnosed along the way: latencykit diagnose tells stalls and what was left out."]
    if one.diagnosis is None or one.diagnosis.verdict != "unknown":
        return []
    return [_sentence(text) for text in (one.diagnosis.summary, one.diagnosis.ask) if text]
