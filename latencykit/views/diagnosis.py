"""Diagnoses of stalls and coordinated omission: record, text, and the page's sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from latencykit._text import brief_list, printable
from latencykit.analysis.diagnosis import doubts_text
from latencykit.core.histogram import Histogram
from latencykit.core.run import UNSTATED
from latencykit.units import (
    format_count,
    format_duration,
    format_percentile,
    format_value,
    percentile_name,
)
from latencykit.views.markup import as_sentence, badge, bullets, esc, section, table
from latencykit.views.records import record_from
from latencykit.views.tables import Table
from latencykit.views.values import Span, UnitFrom, number, percent, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit._typing import PercentileName
    from latencykit.analysis.diagnosis import Diagnosis, Method, Verdict
    from latencykit.analysis.stalls import Stalls
    from latencykit.views.page_results import Diagnosed


class EvidenceRecord(TypedDict):
    """A test and what it found."""

    test: str
    statistic: float | None
    threshold: float | None
    finding: str


class HypothesisRecord(TypedDict):
    """An explanation other than omission."""

    name: str
    text: str
    log10_odds: float
    """Of omission against it; it is excluded from 1.8 on."""
    remains: bool
    speaks_for: list[str]
    """Tests that speak for it."""
    speaks_against: list[str]


class MovedRecord(TypedDict):
    """A statistic, and the least that it would be if the longest request hid others; ns."""

    statistic: str
    value: float | None
    at_least: float | None


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
    summary: str
    """The verdict in a sentence."""
    advice: str
    """What to do next."""
    doubts: list[str]
    """What an unknown verdict leaves open, a sentence each."""
    findings: list[str]
    """Names of the findings."""
    evidence: list[EvidenceRecord]
    speaks_for: list[str]
    """Tests that speak for a load generator that waited."""
    speaks_against: list[str]
    """Tests that speak for another explanation."""
    hypotheses: list[HypothesisRecord]
    """The other explanations, the most likely first."""
    moved: list[MovedRecord]
    """How far mean and percentiles could have moved."""
    expected_interval: float | None
    """Nanoseconds between requests of one connection."""
    stalls: list[StallRecord]
    raw: dict[PercentileName, float | None]
    """Value as measured, by percentile."""
    raw_ranges: dict[PercentileName, Span]
    corrected_ranges: dict[PercentileName, Span]
    corrected: dict[PercentileName, float | None]
    """Value after correction, by percentile."""
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
        doubts=doubts_text(diagnosis),
        evidence=[record_from(EvidenceRecord, piece) for piece in diagnosis.evidence],
        speaks_for=[piece.test for piece in diagnosis.evidence if piece.speaks_for],
        speaks_against=[piece.test for piece in diagnosis.evidence if piece.speaks_against],
        hypotheses=[
            record_from(HypothesisRecord, one, log10_odds=plain(one.odds))
            for one in diagnosis.ledger.hypotheses
        ],
        moved=[
            {"statistic": name, "value": number(value), "at_least": number(least)}
            for name, value, least in diagnosis.moved
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
        notes=[*stalls.notes, *filter(None, [diagnosis.run.unit_note])],
    )


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
    left_out: int = 0,
) -> str:
    """Return a paragraph per diagnosis, or a row each as CSV or Markdown.

    Of several series the first one has a paragraph, the others a sentence, unless all is wanted;
    `left_out` more series have no records.
    """
    if style == "table" and (every or len(records) == 1):
        return "\n\n".join(_paragraph(record, out_unit, every=every) for record in records)
    if style == "table":
        first, *others = records
        sentences: dict[str, list[str]] = {}
        for record in others:
            text = f"{record['verdict']}: {record['summary']}"
            sentences.setdefault(text, []).append(printable(record["name"], 40))
        lines = [f"{brief_list(names)}: {text}" for text, names in sentences.items()]
        if left_out or len(lines) > _BRIEFLY:
            rest = left_out + sum(map(len, [*sentences.values()][_BRIEFLY - 1 :]))
            lines[_BRIEFLY - 1 :] = [f"and {rest:,} more series: --notes or --series NAME"]
        brief = _paragraph(first, out_unit, evidence=_EVIDENCE // 2)
        return "\n\n".join([brief, "\n".join(lines)])
    table = Table(style)
    for record in records:
        table.add(
            {
                "series": record["name"],
                "requests": format_count(record["count"] or 0),
                "verdict": record["verdict"],
                "why": record["summary"],
                "findings": " ".join(record["findings"]),
                "expected interval": _duration(record["expected_interval"]),
                "stalls": str(len(record["stalls"])),
                "method": record["method"] or "",
            }
        )
    return table.render(left=8)


_EVIDENCE, _SHOWN_STALLS, _BRIEFLY = 4, 3, 4
"""Findings, stalls and further series of a text, unless all of them are wanted."""

_USUAL = ("50", "90", "99", "99.9", "100")
"""Percentiles of a text."""


def _found(record: DiagnosisRecord) -> list[str]:
    """Evidence: what speaks for an omission first, then what speaks against it."""
    order = {"for: ": record["speaks_for"], "against: ": record["speaks_against"]}
    if record["verdict"] in ("clean", "no stall"):
        order = {}
    rest = {piece["test"] for piece in record["evidence"]}.difference(*order.values())
    return [
        f"{label}{piece['finding']} ({piece['test']})"
        for label, tests in (*order.items(), ("", sorted(rest)))
        for piece in record["evidence"]
        if piece["test"] in tests and record["unit"] == "ns"  # plain numbers have no unit of time
    ]


def _paragraph(
    record: DiagnosisRecord,
    out_unit: str | None,
    *,
    every: bool = False,
    evidence: int = _EVIDENCE,
) -> str:
    lines = [record["summary"]]
    if record["findings"]:
        lines.append(f"also: {', '.join(record['findings'])}")
    found = _found(record)
    notes = [text for text in record["notes"] if UNSTATED not in text]
    stalls = record["stalls"]
    if len(stalls) > _SHOWN_STALLS and not every:  # the worst alone, so that a screen has it all
        stalls = [max(stalls, key=lambda stall: stall["worst"] or 0.0)]
        evidence -= 1
    found, notes = (found, notes) if every else (found[:evidence], notes[:1])
    lines += [*found, *record["doubts"], *notes]
    for stall in stalls:
        lines.append(
            f"stall from {stall['start']:.3f} s to {stall['end']:.3f} s, "
            f"worst {_duration(stall['worst'])}, "
            f"{format_count(stall['missing'])} requests not sent meanwhile"
        )
    if len(stalls) < len(record["stalls"]):
        lines.append(f"and {format_count(len(record['stalls']) - len(stalls))} more stalls")
    if record["expected_interval"]:
        lines.append(f"expected interval {_duration(record['expected_interval'])}")
    rows = {"as measured": (record["raw"], record["raw_ranges"])}
    if record["corrected"] and record["method"] is not None:
        how = {"retime": "by the schedule", "backfill": "back-filled"}[record["method"]]
        rows[how] = record["corrected"], record["corrected_ranges"]
    table = Table(out_unit=out_unit)
    usual = [name for name in record["raw"] if name in _USUAL]
    shown = list(record["raw"]) if every or not usual else usual
    for heading, (values, ranges) in rows.items():
        cells = {
            percentile_name(float(name)): table.bounded(
                values.get(name), ranges.get(name), record["unit"]
            )
            for name in shown
        }
        table.add({"": heading, **cells})
    if record["raw"]:
        lines += table.render(margin=2).splitlines()
    if record["advice"]:
        lines.append(record["advice"])
    heading = f"{printable(record['name'])}: {record['verdict']}"
    return "\n".join([heading, *(f"  {line}" for line in lines)])


def _duration(value: float | None) -> str:
    return "" if value is None else format_duration(float(value))


_SHADED, _LISTED, _LABELLED = 100, 20, 4
"""Numbers of the longest stalls that are shaded, listed, and labelled."""


def verdict_badge(entry: Diagnosed) -> str:
    """Return the verdict as a coloured word, and its sentence."""
    if entry.diagnosis is None or entry.diagnosis.verdict == "unknown":
        return ""
    return f"{badge(entry.diagnosis.verdict)} {esc(as_sentence(entry.diagnosis.summary))}"


def stalls_model(diagnosed: Sequence[Diagnosed]) -> list[dict[str, object]]:
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


def stalls_section(diagnosed: Sequence[Diagnosed]) -> str:
    """Return a table of stalls per series, each with a button that selects its time."""
    parts = [
        _stalls_table(entry, entry.diagnosis.detected_stalls, several=len(diagnosed) > 1)
        for entry in diagnosed
        if entry.diagnosis is not None and len(entry.diagnosis.detected_stalls)
    ]
    return section("stalls", "Stalls", *parts)


def _stalls_table(entry: Diagnosed, stalls: Stalls, *, several: bool) -> str:
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


def omission_section(diagnosed: Sequence[Diagnosed]) -> str:
    """Return raw percentiles beside corrected ones, with the evidence, for all that omit."""
    parts = []
    for entry in diagnosed:
        diagnosis = entry.diagnosis
        if diagnosis is None or diagnosis.verdict != "omits":
            continue
        how = ""
        if diagnosis.method == "backfill":
            interval = diagnosis.expected_interval
            of = f" of {format_duration(interval)}" if interval else ""
            how = f" at the expected interval{of}"
        elif diagnosis.method == "retime":
            how = " by the schedule"
        rows = []
        for percentile, raw, corrected in diagnosis.rows:
            value = "not known"
            if corrected is not None:
                value = format_value(corrected, diagnosis.raw.unit)
            measured = format_value(raw, diagnosis.raw.unit)
            rows.append([percentile_name(percentile), esc(measured), esc(value)])
        evidence = [as_sentence(f"{piece.test}: {piece.finding}") for piece in diagnosis.evidence]
        parts += [
            f"<p>{verdict_badge(entry)}</p>",
            table(["", "as measured", f"corrected{esc(how)}"], rows, esc(entry.series.name)),
            bullets([*evidence, as_sentence(diagnosis.advice)]),
        ]
    return section("omission", "What the measurement left out", *parts)


def doubts(entry: Diagnosed) -> list[str]:
    """Return the reasons why coordinated omission is not judged."""
    if entry.too_large:
        command = "latencykit diagnose finds stalls and coordinated omission"
        return [f"A log of this size is not diagnosed for a page: {command}."]
    if entry.diagnosis is None or entry.diagnosis.verdict != "unknown":
        return []
    diagnosis = entry.diagnosis
    texts = (diagnosis.summary, *doubts_text(diagnosis), diagnosis.advice)
    return [as_sentence(text) for text in texts if text]
