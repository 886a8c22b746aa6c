"""vegeta's reports: ``vegeta report`` as text, JSON, ``hist[…]`` and ``hdrplot``.

Its percentiles are estimated (by t-digest), and take in the times of requests that failed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import UsageError
from latencykit.formats import jsontext
from latencykit.formats.base import Confidence, Format
from latencykit.formats.hgrm import parse_spectrum
from latencykit.formats.sections import plain, sections
from latencykit.formats.shaping import distinct, nanoseconds_of, rung_of_points
from latencykit.formats.spread import histogram_of_both, mixed_note, nothing_answered
from latencykit.formats.stamps import epoch_seconds
from latencykit.formats.vegeta import RUN, TIMED_OUT
from latencykit.histogram import Histogram
from latencykit.units import parse_duration, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latencykit.formats.base import Head, ReadOptions, Rung, Source
    from latencykit.formats.sections import Section
    from latencykit.run import Run
    from latencykit.summary import Summary

__all__ = ["FORMATS"]

_ORDINAL = re.compile(r"(\d+(?:\.\d+)?)(?:st|nd|rd|th)?")
_REQUESTS = re.compile(r"^Requests\s+\[total", re.MULTILINE)
_ROW = re.compile(r"^(Requests|Duration|Latencies|Success|Status Codes)\s+\[([^\]]*)\]\s+(.*?)\s*$", re.MULTILINE)
_CLEARED = "\x1b[2J"
_HIST = re.compile(r"^Bucket\s+#\s+%\s+Histogram[ \t]*$", re.MULTILINE)
_BUCKET = re.compile(r"^\[([^,\s]+),\s+([^\]\s]+)\]\s+(\d+)\s+[\d.]+%")
_HDRPLOT = re.compile(r"^Value\(ms\)[ \t]+Percentile[ \t]+TotalCount[ \t]+1/\(1-Percentile\)[ \t]*$", re.MULTILINE)
_HINT = "vegeta report -type=hdrplot prints the distribution, vegeta encode every request"


def sniff_json(head: Head) -> Confidence:
    """Tell the keys."""
    keys = ("latencies", "bytes_in", "status_codes", "success")
    found = all(f'"{key}":' in head.text for key in keys) and '"requests":' in head.text
    return Confidence.CERTAIN if found and plain(head.text).lstrip()[:1] == "{" else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Rung]:  # noqa: ARG001
    """Read each report; of those that ``-every`` made of one attack, the last."""
    documents, notes = jsontext.documents(source)
    last = {str(one.get("earliest")): one for one in documents}
    found: dict[str, Rung] = {}
    for record in last.values():
        name = "" if len(last) == 1 else distinct("attack", found)
        found[name] = _report(record, source, notes)
    return found


def _report(record: dict[str, Any], source: Source, notes: Sequence[str]) -> Rung:
    """One report as JSON: percentiles, and with ``-buckets`` the counts of a histogram."""
    latencies = jsontext.entry(record, "latencies", source)
    total = jsontext.entry(record, "requests", source, int)
    told = {str(key): float(value) for key, value in latencies.items()}
    codes = {str(code): int(number) for code, number in (record.get("status_codes") or {}).items()}
    run = RUN.but(
        start=epoch_seconds(record.get("earliest")),
        duration=round((record.get("duration", 0) + record.get("wait", 0)) / 1e9, 9) or None,
        rate=record.get("rate"), achieved=record.get("throughput") or record.get("rate"), notes=tuple(notes),
    )  # fmt: skip
    run, good = _with_failures(run, total, codes, record.get("success"), record.get("errors") or (), source)
    stats, points = _told(told)
    buckets = {float(edge): int(number) for edge, number in (record.get("buckets") or {}).items()}
    if buckets and good == total and sum(buckets.values()) == total and "max" in stats:
        edges = sorted(buckets)
        highs = [*edges[1:], max(stats["max"], edges[-1])]
        return histogram_of_both(points, highs, [buckets[edge] for edge in edges], stats, run)
    return _hinted(rung_of_points(points, good, stats, run))


def _hinted(rung: Histogram | Summary) -> Rung:
    return rung if isinstance(rung, Histogram) else rung.but(notes=(*rung.run.notes, _HINT))


def _told(told: Mapping[str, float]) -> tuple[dict[str, float], dict[float, float]]:
    """Statistics and percentiles by what a report calls them: mean, 50th, max."""
    stats = {name: float(told[name]) for name in ("min", "mean", "max") if name in told}
    found = {key: match for key in told if (match := _ORDINAL.fullmatch(key))}
    return stats, {float(match[1]): float(told[key]) for key, match in found.items()}


def _with_failures(
    run: Run, total: int, codes: Mapping[str, int], success: float | None, errors: Sequence[Any], source: Source
) -> tuple[Run, int]:
    """The run with what failed, and the number of good requests."""
    failed = sum(number for code, number in codes.items() if not 200 <= int(code) < 400)
    if not codes and success is not None:
        failed = total - round(total * success)
    unanswered = codes.get("0", 0)
    late = unanswered if errors and all(TIMED_OUT.search(str(text)) for text in errors) else 0
    run = run.but(failed=failed - late, timeouts=late).noting(*mixed_note(failed))
    if total <= failed:
        raise nothing_answered(source, run)
    return run, total - failed


def sniff_text(head: Head) -> Confidence:
    """Tell the rows of requests and latencies."""
    text = plain(head.text)
    found = _REQUESTS.search(text) and re.search(r"^Latencies\s+\[", text, re.MULTILINE)
    return Confidence.CERTAIN if found else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Rung]:  # noqa: ARG001
    """Read every report; of those that ``-every`` draws over each other, the last."""
    parts = sections(source, _REQUESTS)
    if _CLEARED in source.text():
        parts = parts[-1:]
    found: dict[str, Rung] = {}
    for part in parts:
        found["" if len(parts) == 1 else distinct("attack", found)] = _text_report(part)
    return found


def _text_report(part: Section) -> Rung:
    """One report as text: rows of names in brackets and as many values."""
    rows: dict[str, dict[str, float]] = {}
    for row in _ROW.finditer(part.text):
        try:
            rows[row[1]] = _values(row)
        except (UsageError, ValueError) as error:
            seen = printable(f"{row[1]}: {error}", 80)
            raise part.corrupt(row.start(), seen, "as many values as names", "run vegeta report anew") from None
    if not {"Requests", "Latencies"} <= set(rows):
        raise part.corrupt(0, "a row is missing", "Requests and Latencies", "run vegeta report anew")
    for name, value in (("Requests", "total"), ("Duration", "total"), ("Success", "ratio")):
        if name in rows and value not in rows[name]:
            raise part.corrupt(part.text.find(name), f"{name} has no {value}", "one", "run vegeta report anew")
    requests, told = rows["Requests"], rows["Latencies"]
    codes = {code: int(number) for code, number in rows.get("Status Codes", {}).items()}
    _, ended, errors = part.text.partition("Error Set:")
    run = RUN.but(
        duration=rows["Duration"]["total"] / 1e9 if "Duration" in rows else None,
        rate=requests.get("rate"), achieved=requests.get("throughput"),
        unit_from="file", notes=() if ended else ("the report is cut at its end",),
    )  # fmt: skip
    share = rows["Success"]["ratio"] / 100 if "Success" in rows else None
    texts = [line for line in errors.split("\n") if line.strip()]
    run, good = _with_failures(run, int(requests["total"]), codes, share, texts, part.source)
    stats, points = _told(told)
    return _hinted(rung_of_points(points, good, stats, run))


def _values(row: re.Match[str]) -> dict[str, float]:
    """The values of a row by their names: durations in ns, numbers, counts of status codes."""
    if row[1] == "Status Codes":
        return {code: float(number) for code, _, number in (one.partition(":") for one in row[3].split()) if int(code) >= 0}
    names, values = re.split(r",\s*", row[2]), re.split(r",\s*", row[3])
    timed = row[1] in ("Duration", "Latencies")
    return {
        name: round(parse_duration(value), 3) if timed else float(value.rstrip("%"))
        for name, value in zip(names, values, strict=True)
    }


def sniff_hist(head: Head) -> Confidence:
    """Tell the header and its first bucket."""
    text = plain(head.text)
    found = _HIST.search(text) and re.search(r"^\[\S+,\s+\S+\]\s+\d+", text, re.MULTILINE)
    return Confidence.CERTAIN if found else Confidence.NO


def read_hist(source: Source, options: ReadOptions) -> dict[str, Rung]:  # noqa: ARG001
    """Read the buckets; what lies in the last one is censored at its lower end."""
    part = sections(source, _HIST)[-1]
    header = _HIST.search(part.text)
    end = len(part.text) if part.text.endswith("\n") else part.text.rfind("\n") + 1
    rows = part.matches(_BUCKET, header.end() if header else 0, end, "a bucket such as [1ms, 2ms] 4116 68.60%")
    notes = () if end == len(part.text) else ("the last line is cut; it was left out",)
    lows, counts = [round(parse_duration(row[1]), 3) for row in rows], [int(row[3]) for row in rows]
    above = counts.pop() if rows and rows[-1][2] == "+Inf" else 0
    highs = [round(parse_duration(row[2]), 3) for row in rows[: len(counts)]]
    if not sum(counts) + above:
        raise nothing_answered(source, RUN)
    limit = lows[-1] if above else float("inf")
    return {
        "": Histogram.from_buckets(lows[: len(counts)], highs, counts, run=RUN.noting(*notes), censored=above, censored_at=limit)
    }


def sniff_hdrplot(head: Head) -> Confidence:
    """Tell vegeta's header, which has no blank line below it."""
    found = _HDRPLOT.search(plain(head.text)[:4000])
    return (
        Confidence.CERTAIN
        if found and re.match(r"\n\d+\.\d+[ \t]+0\.0+[ \t]+0[ \t]", head.text[found.end() :])
        else Confidence.NO
    )


def read_hdrplot(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read the rows between the minimum and the maximum."""
    part = sections(source, _HDRPLOT)[-1]
    notes: list[str] = []
    lines = part.lines(0, len(part.text))

    def fail(number: int, seen: str, expected: str) -> Exception | None:
        if number == lines[-1][0] and not part.text.endswith("\n"):
            notes.append("the last line is cut; it was left out")
            return None
        options.damaged(source.corrupt(number, seen, expected, "--lenient skips such lines"))
        return None

    spectrum = parse_spectrum(lines, fail)
    if not spectrum.counts or not spectrum.counts[-1]:
        raise nothing_answered(source, RUN)
    highs, cumulative = nanoseconds_of(spectrum.values, "ms"), np.asarray(spectrum.counts)
    if (np.diff(highs) < 0).any() or (np.diff(cumulative) < 0).any():
        raise part.corrupt(0, "values and counts do not both ascend", "rows in ascending order", "run vegeta report anew")
    stats = {"min": float(highs[0]), "max": float(highs[-1])}
    run = RUN.but(unit="ms", unit_from="file").noting(*notes)
    return {"": histogram_of_both({}, highs.tolist(), np.diff(cumulative, prepend=0).tolist(), stats, run)}


FORMATS = (
    Format(
        "vegeta-report-json", "vegeta report (JSON)", "histogram", (".json",), sniff_json, read_json, unit="ns",
        example="vegeta report -type=json results.bin > report.json",
    ),
    Format(
        "vegeta-report", "vegeta report (text)", "histogram", (".txt",), sniff_text, read_text,
        example="vegeta report results.bin > report.txt",
    ),
    Format(
        "vegeta-hist", "vegeta report (hist)", "histogram", (".txt",), sniff_hist, read_hist,
        example="vegeta report -type='hist[0,1ms,10ms,100ms,1s]' results.bin > report.txt",
    ),
    Format(
        "vegeta-hdrplot", "vegeta report (hdrplot)", "histogram", (".txt", ".hgrm"), sniff_hdrplot, read_hdrplot, unit="ms",
        example="vegeta report -type=hdrplot results.bin > report.txt",
    ),
)  # fmt: skip
