"""Diagnoses of stalls and coordinated omission: record, text, and the page's sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from latencykit._text import brief_list, esc, printable
from latencykit.analysis.diagnosis import TITLES
from latencykit.core.histogram import Histogram
from latencykit.core.run import UNSTATED
from latencykit.core.summary import Summary
from latencykit.units import (
    format_count,
    format_duration,
    format_percentile,
    format_value,
    percentile_name,
)
from latencykit.views.markup import as_sentence, badge, bullets, section, table
from latencykit.views.records import record_from
from latencykit.views.tables import Table
from latencykit.views.values import Span, UnitFrom, number, percent, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit._typing import PercentileName
    from latencykit.analysis.diagnosis import Diagnosis, Method, Verdict
    from latencykit.analysis.stalls import Stalls
    from latencykit.views.page_results import DiagnosedSeries


class EvidenceRecord(TypedDict):
    """A test and what it found."""

    test: str
    statistic: float | None
    threshold: float | None
    finding: str


class ExplanationRecord(TypedDict):
    """An explanation of the stalls."""

    name: str
    probability: float


class StallRecord(TypedDict):
    """A stall: times in seconds from the start of the series, latencies in nanoseconds."""

    start: float
    end: float
    duration: float
    worst: float | None
    """Slowest request, ns."""
    missing: int
    """Requests that the schedule implies and the source lacks."""


class DiagnosisRecord(TypedDict):
    """The diagnosis of a series."""

    name: str
    count: int | None
    unit: Literal["ns", "none"]
    unit_from: UnitFrom
    verdict: Verdict
    """Whether coordinated omission was detected."""
    sure: bool | None
    """The probability is .99 or more; null for an unknown verdict."""
    explanations: list[ExplanationRecord]
    """The most likely first; empty where no stall shows."""
    findings: list[str]
    """Sentences: the fact, its consequence, how sure."""
    evidence: list[EvidenceRecord]
    """By explanation: how much less likely the stall that tells most is, in decades."""
    advice: str
    """What to do next."""
    expected_interval: float | None
    """Nanoseconds between requests of one connection."""
    stalls: list[StallRecord]
    raw: dict[PercentileName, float | None]
    """Value as measured, by percentile."""
    raw_ranges: dict[PercentileName, Span]
    corrected_ranges: dict[PercentileName, Span]
    corrected: dict[PercentileName, float | None]
    """Value after correction, by percentile."""
    raw_mean: float | None
    corrected_mean: float | None
    range: dict[PercentileName, list[float]]
    """Of service times: what users who arrive on their own see, as recorded and at most."""
    method: Method | None
    notes: list[str]


class DiagnoseRecord(TypedDict):
    """Diagnoses of all series."""

    schema_version: Literal[1]
    """Grows when a key changes its meaning or goes away."""
    series: list[DiagnosisRecord]


def diagnosis_record(name: str, diagnosis: Diagnosis) -> DiagnosisRecord:
    """Return a diagnosis as plain values: times in seconds from the start, latencies in ns."""
    stalls = diagnosis.detected_stalls
    columns = (stalls.start, stalls.end, stalls.duration, stalls.worst, stalls.missing)
    return record_from(
        DiagnosisRecord,
        diagnosis,
        name=name,
        count=diagnosis.raw.count,
        unit="none" if diagnosis.run.unit == "none" else "ns",
        unit_from=diagnosis.run.unit_from,
        explanations=[
            {"name": name, "probability": plain(share)} for name, share in diagnosis.explanations
        ],
        findings=list(diagnosis.sentences),
        evidence=[
            record_from(EvidenceRecord, piece, statistic=plain(max(piece.statistic, -99.0)))
            for piece in diagnosis.evidence
        ],
        stalls=[
            {
                "start": plain(start),
                "end": plain(end),
                "duration": plain(duration),
                "worst": number(round(worst)),
                "missing": missing,
            }
            for start, end, duration, worst, missing in zip(
                *(column.tolist() for column in columns), strict=True
            )
        ],
        raw={format_percentile(p): number(value) for p, value, _ in diagnosis.rows},
        raw_ranges=_ranges(diagnosis.raw, diagnosis),
        corrected_ranges=_ranges(diagnosis.corrected, diagnosis),
        corrected={
            format_percentile(p): number(value)
            for p, _, value in diagnosis.rows
            if value is not None
        },
        raw_mean=number(_mean(diagnosis.raw)),
        corrected_mean=number(_mean(diagnosis.corrected)),
        range={
            format_percentile(p): [plain(low), plain(high)]
            for p, (low, high) in diagnosis.most.items()
        },
        notes=[*stalls.notes, *filter(None, [diagnosis.run.unit_note])],
    )


def _mean(data: Histogram | Summary | None) -> float | None:
    if data is None or isinstance(data, Summary):
        return None if data is None else data.stats.get("mean")
    return data.mean if data.count else None


def _ranges(data: object, diagnosis: Diagnosis) -> dict[str, Span]:
    """Bounds of the percentiles that the source does not resolve."""
    if not isinstance(data, Histogram) or not data.count:
        return {}
    rows = data.evidence().supported_rows([p for p, _, _ in diagnosis.rows])
    return {
        format_percentile(row.percentile): {
            "low": number(row.bucket_low),
            "high": number(row.bucket_high),
        }
        for row in rows
        if not row.resolved
    }


def diagnosis_text(
    records: Sequence[DiagnosisRecord],
    style: str,
    out_unit: str | None = None,
    *,
    every: bool = False,
    verbose: bool = False,
    left_out: int = 0,
) -> str:
    """Return a paragraph per diagnosis, or a row each as CSV or Markdown.

    Of several series the first one has a paragraph, the others a sentence, unless all is wanted
    (`verbose`: with the evidence for each explanation);
    `left_out` more series have no records.
    """
    if style == "table" and (every or verbose or len(records) == 1):
        return "\n\n".join(
            _paragraph(record, out_unit, every=every, verbose=verbose) for record in records
        )
    if style == "table":
        first, *others = records
        sentences: dict[str, list[str]] = {}
        for record in others:
            text = f"{TITLES[record['verdict']]}: {record['findings'][0]}"
            sentences.setdefault(text, []).append(printable(record["name"], 40))
        lines = [f"{brief_list(names)}: {text}" for text, names in sentences.items()]
        if left_out or len(lines) > _BRIEFLY:
            rest = left_out + sum(map(len, [*sentences.values()][_BRIEFLY - 1 :]))
            lines[_BRIEFLY - 1 :] = [f"and {rest:,} more series: --notes or --series NAME"]
        brief = _paragraph(first, out_unit)
        return "\n\n".join([brief, "\n".join(lines)])
    table = Table(style)
    for record in records:
        table.add(
            {
                "series": record["name"],
                "requests": format_count(record["count"] or 0),
                "verdict": record["verdict"],
                "sure": {True: "yes", False: "no", None: ""}[record["sure"]],
                "why": ". ".join(record["findings"]),
                "expected interval": _duration(record["expected_interval"]),
                "stalls": str(len(record["stalls"])),
                "method": record["method"] or "",
            }
        )
    return table.render(left=8)


_BRIEFLY = 4
"""Further series of a text, unless all of them are wanted."""

_USUAL = ("50", "90", "99", "99.9")
"""Percentiles of a text."""


def _paragraph(
    record: DiagnosisRecord, out_unit: str | None, *, every: bool = False, verbose: bool = False
) -> str:
    """The fact and its consequence, the numbers, and how sure: eight lines."""
    texts = [as_sentence(text) for text in record["findings"]]
    table, unit = Table(out_unit=out_unit), record["unit"]
    usual = [name for name in record["raw"] if name in _USUAL]
    shown = list(record["raw"]) if every or not usual else usual
    rows: dict[str, tuple[float | None, dict[str, float | None], dict[str, Span]]] = {
        "as recorded": (record["raw_mean"], record["raw"], record["raw_ranges"])
    }
    if record["corrected"]:
        heading = "had they been sent" if record["verdict"] == "omits" else "if it was omission"
        values, ranges = record["corrected"], record["corrected_ranges"]
        rows[heading] = record["corrected_mean"], values, ranges
    if record["range"]:
        most: dict[str, float | None] = {n: high for n, (_, high) in record["range"].items()}
        rows["users, up to"] = None, most, {}
    for heading, (mean, values, ranges) in rows.items():
        cells = {"": heading, "mean": "" if mean is None else table.bounded(mean, None, unit)}
        for name in shown:
            value = values.get(name)
            cell = "" if value is None else table.bounded(value, ranges.get(name), unit)
            cells[percentile_name(float(name))] = cell
        table.add(cells)
    lines = texts[:2]
    if record["raw"]:
        lines += table.render().splitlines()
    lines += texts[2:]
    if verbose:
        lines += [f"{piece['statistic']:6.1f}  {piece['finding']}" for piece in record["evidence"]]
    if every:
        lines += [
            f"stall from {stall['start']:.3f} s to {stall['end']:.3f} s, worst "
            f"{_duration(stall['worst'])}, {format_count(stall['missing'])} requests missing"
            for stall in record["stalls"]
        ]
    lines += [text for text in record["notes"] if UNSTATED not in text][: None if every else 1]
    if record["advice"]:
        lines.append(as_sentence(record["advice"]))
    heading = f"{printable(record['name'])}: {TITLES[record['verdict']]}"
    return "\n".join([heading, *(f"  {line}" for line in lines)])


_SHADED, _LISTED, _LABELLED = 100, 20, 4
"""Numbers of the longest stalls that are shaded, listed, and labelled."""


def _duration(value: float | None) -> str:
    return "" if value is None else format_duration(float(value))


def verdict_badge(entry: DiagnosedSeries) -> str:
    """Return the verdict as a coloured word, and its sentence."""
    if entry.diagnosis is None or entry.diagnosis.verdict == "unknown":
        return ""
    return f"{badge(entry.diagnosis.verdict)} {esc(as_sentence(entry.diagnosis.summary))}"


def stalls_model(diagnosed: Sequence[DiagnosedSeries]) -> list[dict[str, object]]:
    """Return the stalls that the timeline shades."""
    model = []
    for entry in diagnosed:
        if entry.diagnosis is None:
            continue
        stalls = entry.diagnosis.detected_stalls
        labelled = set(entry.longest(_LABELLED)) if len(stalls) <= _LISTED else set()
        for k in entry.longest(_SHADED):
            label = ""
            if k in labelled:
                label = f"stall {format_duration(float(stalls.duration[k]) * 1e9, 2)}"
                missing = int(stalls.missing[k])
                if missing and entry.omits:
                    label += f" · ~{format_count(missing)} requests missing"
            start, end = (
                float(side[k]) + entry.series.begin for side in (stalls.start, stalls.end)
            )
            model.append({"start": start, "end": end, "label": label})
    return model


def stalls_section(diagnosed: Sequence[DiagnosedSeries]) -> str:
    """Return a table of stalls per series, each with a button that selects its time."""
    parts = [
        _stalls_table(entry, entry.diagnosis.detected_stalls, several=len(diagnosed) > 1)
        for entry in diagnosed
        if entry.diagnosis is not None and len(entry.diagnosis.detected_stalls)
    ]
    return section("stalls", "Stalls", *parts)


def _stalls_table(entry: DiagnosedSeries, stalls: Stalls, *, several: bool) -> str:
    rows: list[list[str]] = []
    series = entry.series
    for k in entry.longest(_LISTED):
        start, end = (float(side[k]) + series.begin for side in (stalls.start, stalls.end))
        button = ""
        if series.slots is not None:
            button = f"<button type='button' data-from='{start!r}' data-to='{end!r}'>Show</button>"
        rows.append(
            [
                str(len(rows) + 1),
                _seconds(start),
                _seconds(end),
                format_duration((end - start) * 1e9),
                format_duration(float(stalls.worst[k])),
                format_count(int(stalls.missing[k])),
                percent(float(stalls.share[k])),
                button,
            ]
        )
    caption = ""
    if len(stalls) > len(rows):
        caption = f"{format_count(len(stalls))} stalls; the {len(rows)} longest are listed."
    header = ["", "from", "to", "length", "worst request", "requests missing", "delayed", ""]
    name = f"<p><b>{esc(series.name)}</b></p>" if several else ""
    return name + table(header, rows, caption) + bullets(map(as_sentence, stalls.notes))


def _seconds(moment: float) -> str:
    """A moment to the millisecond, as ``--from`` and ``--to`` take it."""
    return f"{moment:.3f}".rstrip("0").rstrip(".") + " s"


def omission_section(diagnosed: Sequence[DiagnosedSeries]) -> str:
    """Return raw percentiles beside corrected ones, with the evidence, for all that omit."""
    parts = []
    for entry in diagnosed:
        diagnosis = entry.diagnosis
        if diagnosis is None or diagnosis.verdict != "omits":
            continue
        rows = []
        for percentile, raw, corrected in diagnosis.rows:
            value = "not known"
            if corrected is not None:
                value = format_value(corrected, diagnosis.raw.unit)
            measured = format_value(raw, diagnosis.raw.unit)
            rows.append([percentile_name(percentile), esc(measured), esc(value)])
        parts += [
            f"<p>{verdict_badge(entry)}</p>",
            table(["", "as recorded", "had they been sent"], rows, esc(entry.series.name)),
            bullets(map(as_sentence, [*diagnosis.sentences[1:], diagnosis.advice])),
        ]
    return section("omission", "What the measurement left out", *parts)


def doubts(entry: DiagnosedSeries) -> list[str]:
    """Return why coordinated omission is not judged, or what users may see instead."""
    if entry.too_large:
        command = "latencykit diagnose finds stalls and coordinated omission"
        return [f"A log of this size is not diagnosed for a page: {command}."]
    diagnosis = entry.diagnosis
    if diagnosis is None or diagnosis.verdict in ("omits", "clean"):
        return []
    texts = (*diagnosis.sentences[1:], diagnosis.advice)
    if diagnosis.verdict == "unknown":
        texts = (diagnosis.summary, *texts)
    return [as_sentence(text) for text in texts if text]
