"""The series of a chart, and what a chart says of them in words; none of it needs matplotlib."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from latencykit import units
from latencykit._limits import check_series
from latencykit._text import brief_list, cause_text, option, plain, shorten
from latencykit._typing import PathOrFrame, is_path_or_frame
from latencykit.core import Data, is_samples, is_summary
from latencykit.core.evidence import Evidence
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.key_statistics import not_answered
from latencykit.core.percentile_rows import Doubt, statistic_text
from latencykit.core.run import TOTAL, shown_parts
from latencykit.errors import DataNotAvailableError, IncompatibleDataError, InvalidArgumentError
from latencykit.plot.style import role_of, short_names

if TYPE_CHECKING:
    import pandas as pd

    from latencykit.analysis.slo import SLO
    from latencykit.core.distribution import Distribution

Drawn: TypeAlias = "PathOrFrame | Data | Distribution"
Drawable: TypeAlias = "Drawn | Mapping[str, Drawn]"
Limits: TypeAlias = "SLO | str | Sequence[tuple[float, float]]"
StallRows: TypeAlias = "pd.DataFrame | Iterable[tuple[float, float, float | None]]"


def read_paths(data: Any) -> Any:
    """Return the same with the series of a file in the place of its path."""
    if isinstance(data, str | os.PathLike):
        from latencykit.io.files import source_of
        from latencykit.io.reading import read_source
        from latencykit.io.source import ReadOptions

        series = read_source(source_of(str(data)), ReadOptions())
        return next(iter(series.values())) if len(series) == 1 else series
    if is_path_or_frame(data):  # a frame
        from latencykit.io.reading import read

        return read(data)
    if not isinstance(data, Mapping):
        return data
    named: dict[str, object] = {}
    for label, values in data.items():
        if isinstance(values, str | os.PathLike):
            series = as_series(values)
            values = next(iter(series.values())) if len(series) == 1 else series
        values = read_paths(values)
        several = values if isinstance(values, Mapping) else {}
        named |= {f"{label}:{name}": part for name, part in several.items()} or {label: values}
    return named


def as_series(data: Any) -> dict[str, Any]:
    """Return label → data type, in nanoseconds where a unit is known."""
    # Of one measurement with tags, the total and then its tags; series that have names are drawn as
    # they are.
    data = read_paths(data)
    if isinstance(data, Mapping):
        labelled = {str(label): values for label, values in data.items()}
    elif not hasattr(data, "run"):
        raise InvalidArgumentError(
            "a chart takes a data type, a path, or a mapping of label to these, "
            f"not {type(data).__name__}"
        )
    elif hasattr(data, "by_tag") and len(data.tags) > 1 and not data.run.aggregate:
        total, shown = shown_parts(data.with_run(aggregate=True), [*data.by_tag().items()])
        labelled = {TOTAL: total, **{tag or "untagged": part for tag, part in shown}}
    else:
        labelled = {data.run.source or ", ".join(data.run.tags): data}
    series = {
        label: part.to_unit("ns") if part.unit in units.NANOSECONDS else part
        for label, part in labelled.items()
    }
    check_series(sum(not part.run.aggregate for part in series.values()))
    if not series:
        raise InvalidArgumentError("there is nothing to draw")
    if len({values.unit for values in series.values()}) > 1:
        raise IncompatibleDataError(
            "bare numbers and times have no axis in common; "
            f"name the unit of the former with {option('unit')}"
        )
    return series


def as_histogram(data: object) -> Any:
    """Return what can be drawn as a curve: a histogram, a model, or a summary."""
    if isinstance(data, HistogramLog):
        return data.evidence().whole  # from one pass, with what marks uncertain percentiles
    return data.histogram() if hasattr(data, "histogram") else data


def is_empty(data: object) -> bool:
    """Return True if nothing was counted, or no request answered of which a tool would report."""
    if is_summary(data):
        return not (data.stats or data.reported_percentiles)
    return isinstance(data, Histogram) and not data.count


def drawable(
    series: Mapping[str, object], quantity: str, *, others: bool = False
) -> tuple[dict[str, Any], str]:
    """Return the series with values as histograms or models, and a note that names empty ones."""
    counted = {label: as_histogram(data) for label, data in series.items()}
    empty = [label for label, data in counted.items() if is_empty(data)]
    for label, data in counted.items():
        if is_summary(data) and label not in empty:
            raise DataNotAvailableError(
                f"{label}: a summary has no buckets, so its {quantity} is unknown; "
                "a histogram or samples would show it"
            )
    if empty and len(empty) == len(counted) and not others:
        raise DataNotAvailableError(
            f"{', '.join(filter(None, empty)) or 'this'}: nothing was counted, "
            "so there is nothing to draw: all requests failed, or none is in the range"
        )
    note = f"nothing counted: {', '.join(map(plain, empty))}" if empty else ""
    return {label: data for label, data in counted.items() if label not in empty}, note


# ------------------------------------------------------------
# What is known of a series' tail: from which percentile on a few events dominate it.


def evidence_of(data: Any, counted: Any) -> Evidence:
    """Return how far the numbers can be trusted: by time where time is known, else by ranks."""
    timed = isinstance(data, HistogramLog) or is_samples(data)
    evidence: Evidence = data.evidence(counted) if timed else counted.evidence()
    return evidence


def doubts_from(
    series: Mapping[str, object], counted: Mapping[str, object]
) -> dict[str, tuple[Doubt, ...]]:
    """Return label → ranges of percentiles that are uncertain within what the sample reaches."""
    doubts = {}
    for label, data in series.items():
        total = counted.get(label)
        if isinstance(total, Histogram) and total.count:
            every = evidence_of(data, total).doubts()
            doubts[label] = tuple(one for one in every if one.cause != "few requests")
    return doubts


def dashes_note(doubts: Mapping[str, Sequence[Doubt]]) -> str:
    """Return what the dashes of a chart mean, or nothing where there are none."""
    return uncertain_note("dashed", (one.cause for some in doubts.values() for one in some))


def uncertain_note(mark: str, causes: Iterable[str]) -> str:
    """Return what a mark of uncertain values means, with their causes; nothing without any."""
    texts = dict.fromkeys(filter(None, (plain(cause_text(cause)) for cause in causes)))
    return f"{mark}: uncertain ({', or '.join(texts)})" if texts else ""


# ------------------------------------------------------------
# Titles and conditions: source, count, duration and rate; how it was measured; the finding of an
# SLO where there is one.

_LOOPS = {"open": "open loop", "paced": "paced loop", "closed": "closed loop"}
_MEASURES = {"service": "service times", "response": "response times"}
_CORRECTIONS = {
    "tool": "corrected by the tool",
    "us": "corrected for coordinated omission",
    "schedule": "timed from the schedule",
    "none": "not corrected",
}


def time_texts(moments: Sequence[float]) -> list[str]:
    """Return times from the start, all in the unit of which all are multiples."""
    largest, whole = max(map(abs, moments), default=0.0), [round(moment) for moment in moments]
    if largest < 60:
        return [units.format_duration(moment * 1e9) for moment in moments]
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if (
            all(moment % length == 0 for moment in moments)
            and length * (1 + (unit == "d")) <= largest < _LARGE * length
        ):
            return [f"{second // length} {unit}" if second else "0" for second in whole]
    return [f"{moment:,.12g} s" if moment else "0" for moment in moments]


_LARGE = 200  # minutes, hours or days that are too many to be read


def measured(run: Any, count: int | None) -> str:
    """Return count, duration and rate."""
    parts = []
    if count is not None:
        parts.append(f"{units.format_count(count)} requests" if count != 1 else "1 request")
    if run.duration:
        parts.append(f"in {units.format_duration(run.duration * 1e9)}")
        rate = count / run.duration if count else None
        if rate:
            parts.append(f"({rate:,.0f}/s)" if rate >= 10 else f"({rate:.2g}/s)")
    return " ".join(parts)


def requests_of(data: object) -> int | None:
    """Return the number of good requests, those above a limit included, or None if unknown."""
    return getattr(data, "requests", getattr(data, "count", None))


def distinct_names(series: Iterable[str], limit: int) -> dict[str, str]:
    """Return label → its beginning and end; where two would be alike, what they differ in."""
    cut = {label: shorten(label, limit) for label in series}
    alike = len(set(cut.values())) < len(cut)
    return dict(zip(cut, short_names(list(cut), limit), strict=True)) if alike else cut


def named_count(name: str, data: object) -> str:
    """Return a series' short name and number of requests, the label of its curve."""
    count = requests_of(data)
    number = f"n = {units.format_count(count)}" if count is not None else ""
    return "  ".join(filter(None, (plain(name), number)))


def conditions(data: Any, each: str = "") -> list[str]:
    """Return how it was measured: tool, loop, connections, latency type, correction, failures."""
    run = data.run
    parts = [plain(" ".join(filter(None, (run.tool, run.version))), 40)]
    parts.append(f"{run.rate:,.6g} requests/s offered" if run.rate else "")
    parts.append(_LOOPS.get(run.loop, ""))
    if run.connections:
        one = run.connections == 1
        parts.append(f"1 connection{each}" if one else f"{run.connections:,} connections")
    parts += [_MEASURES.get(run.measure, ""), _CORRECTIONS.get(run.corrected, "")]
    parts += not_answered(run)
    unit = "no unit stated" if run.unit == "none" else f"values assumed to be {run.unit}"
    parts.append(unit if run.unit_note is not None else "")
    return [part for part in parts if part]


def joined(series: Mapping[str, Any], *first: str) -> str:
    """Return `first` and then the conditions that all series share, in one line."""
    each = " each" if len(series) > 1 else ""  # threads have one connection each
    listed = {label: conditions(data, each) for label, data in series.items()}
    head, *others = listed.values() if listed else [[]]
    shared = [part for part in head if all(part in other for other in others)]
    assumed: dict[str, list[str]] = {}
    for label, parts in listed.items():  # an assumed unit comes last
        if series[label].run.unit_note is not None and parts and parts[-1] not in shared:
            assumed.setdefault(parts[-1], []).append(plain(shorten(label, 40)))
    for text, labels in assumed.items():
        shared.append(f"{text} in {brief_list(labels)}")
    return " · ".join((*filter(None, first), *shared))


def series_title(label: str, run: object, count: int | None) -> str:
    """Return the title of one series: its name, and what was measured."""
    return " · ".join(filter(None, (plain(shorten(label, 60)), measured(run, count))))


def chart_title(series: Mapping[str, Any], kind: str = "") -> str:
    """Return the title of a chart where no finding is known."""
    # Measured and corrected values of one run are not added: they are the same requests; nor are a
    # total and its parts.
    if len(series) == 1:
        ((label, data),) = series.items()
        return series_title(label, data.run, requests_of(data))
    parts = [data for data in series.values() if not data.run.aggregate] or [*series.values()]
    # Of each source the requests of its total, or of its parts, whichever has more: the parts that
    # are shown may be some of those that a total has.
    of_source: dict[str | None, list[Any]] = {}
    for data in series.values():
        of_source.setdefault(data.run.source, []).append(data)
    count = 0
    for members in of_source.values():
        whole_runs = [requests_of(data) or 0 for data in members if data.run.aggregate]
        others = [requests_of(data) or 0 for data in members if not data.run.aggregate]
        count += max(whole_runs[0] if len(whole_runs) == 1 else 0, sum(others or whole_runs))
    total = f"{units.format_count(count)} requests" if count else ""
    if {"raw", "honest"} <= {role_of(label, data) for label, data in series.items()}:
        total = ""
    if kind == "runs":
        return " · ".join(filter(None, (f"{len(series)} runs", total)))
    names = [plain(name) for name in distinct_names(series, 24).values()]
    few = f"{', '.join(names[:-1])} and {names[-1]}"
    whole = " and their total" if len(parts) == len(series) - 1 else ""
    named = few if len(names) <= 3 else f"{len(parts) if whole else len(names)} series{whole}"
    return " · ".join(filter(None, (named, kind, total)))


def slo_pairs(slo: Any) -> list[tuple[float, float]]:
    """Return an SLO's percentiles and limits in ns, ascending; of an `SLO`, its text, or pairs."""
    if slo is None:
        return []
    if isinstance(slo, str) or hasattr(slo, "limits"):
        from latencykit.analysis.slo import for_all_series

        slo = for_all_series(slo)
        slo = [(row.percentile, row.limit) for row in slo.limits if row.percentile is not None]
    return sorted((float(percentile), float(limit)) for percentile, limit in slo)


def key_finding(series: Mapping[str, Any]) -> str | None:
    """Return p50, p99 and the maximum of the only series; None where they are not counted."""
    ((label, data),) = series.items() if len(series) == 1 else ((None, None),)
    if not isinstance(data, Histogram) or not data.count:
        return None
    show = partial(units.format_value, unit=data.unit)
    rows = data.percentile_rows([50.0, 99.0])
    values = [
        f"{units.percentile_name(row.percentile)} {units.format_row(row, show)}" for row in rows
    ]
    name = plain(shorten(str(label), 40))
    return f"{name + ': ' if name else ''}{', '.join(values)}, max {statistic_text(data, 'max')}"


def slo_finding(label: str, data: Any, pairs: Sequence[tuple[float, float]]) -> str | None:
    """Return whether one series meets an SLO's limits, as `check` does; None if undecided."""
    from latencykit.analysis.slo import SLO, Limit

    if not pairs or not hasattr(data, "percentile_rows"):
        return None
    bare = data.unit not in units.NANOSECONDS
    slo = SLO.of(Limit(units.percentile_name(p), limit, bare) for p, limit in pairs)
    result = slo.check(data)
    name = plain(shorten(label, 40)) or "This run"
    return None if result.passed is None else f"{name} {result.headline}"
