"""vegeta's results by the row: ``vegeta encode -to csv`` and ``-to json``.

A row's time stamp is its send; rows are not sorted by it. vegeta sends by a schedule and adds workers where replies are
late, so times are those of an open loop, unless ``-max-workers`` ends that: then sends stop while requests are in flight.
"""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.errors import InvalidArgumentError
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    distinct,
    histogram_of_both,
    mixed_note,
    nanoseconds_of,
    nothing_answered,
    per_operation,
    without_negative,
)
from latencykit.io.hgrm import parse_spectrum
from latencykit.io.rows import Layout, line_chunks, read_table
from latencykit.io.source import Confidence, Format
from latencykit.io.text import epoch_seconds, iso_nanoseconds, plain_report, sections
from latencykit.units import format_duration, parse_duration, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from latencykit.core.summary import Summary
    from latencykit.io.source import Data, Head, ReadOptions, Source
    from latencykit.io.text import Section

    Columns = dict[str, Any]

__all__ = ["FORMATS", "RUN", "TIMED_OUT"]


RUN = Run(
    tool="vegeta",
    loop="open",
    measure="response",
    corrected="schedule",
    unit="ns",
    unit_from="format",
)
TIMED_OUT = re.compile(r"timeout|timed out|deadline exceeded", re.IGNORECASE)
_COLUMNS = (
    "stamp",
    "code",
    "latency",
    "out",
    "in",
    "error",
    "body",
    "attack",
    "seq",
    "method",
    "url",
    "headers",
)
_ROW = re.compile(r"\d{16,19},\d{1,3},-?\d+,\d+,\d+,")
_KEYS = ("timestamp", "latency", "code", "bytes_in", "bytes_out")
_WHOLE = {key: re.compile(rf'"{key}":(-?\d+)[,}}]'.encode()) for key in ("latency", "code")}
_WORDS = {
    key: re.compile(rf'"{key}":"((?:[^"\\]|\\.)*)"'.encode())
    for key in ("timestamp", "error", "attack")
}
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_OFTEN, _LONG = 20, 5e7


def sniff_csv(head: Head) -> Confidence:
    """Tell nanoseconds since the epoch, a status, a latency and two sizes at the begin of the first row."""
    return Confidence.CERTAIN if _ROW.match(head.text) else Confidence.NO


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request."""
    line, ends, _ = source.head.text.partition("\n")
    columns = _COLUMNS[: len(next(csv.reader([line.rstrip("\r")])))] if ends else _COLUMNS
    words = tuple(name for name in ("error", "attack") if name in columns)
    layout = Layout(
        columns, ("stamp", "code", "latency"), words, largest={"stamp": 9.2e18, "latency": 9.2e18}
    )
    frame, notes = read_table(source, options, layout)
    given: Columns = {
        "start": frame["stamp"].to_numpy(np.int64),
        "duration": frame["latency"].to_numpy(np.int64),
        "status": frame["code"].to_numpy(np.int64),
    }
    for name in words:
        kinds = frame[name].astype("category").cat
        given[name] = np.asarray(kinds.codes, np.int64)
        given[f"{name}s"] = ["" if kind == "" else str(kind) for kind in kinds.categories]
    return _series(given, notes, options)


def sniff_json(head: Head) -> Confidence:
    """Tell the keys of the first object."""
    if not head.text.startswith("{"):
        return Confidence.NO
    line = head.text.partition("\n")[0]
    return Confidence.CERTAIN if all(f'"{key}":' in line for key in _KEYS) else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request: chunks of whole lines by pattern; a chunk that does not fit is taken line by line."""
    notes: list[str] = []
    parts: list[Columns] = []
    for first, chunk in line_chunks(source):
        whole = chunk.rfind(b"\n") + 1
        parts.append(
            _matched(chunk[:whole]) or _parsed(source, options, first, chunk[:whole], notes)
        )
        if whole < len(chunk):
            parts.append(_parsed(source, options, first + chunk.count(b"\n"), chunk[whole:], notes))
    parts = [part for part in parts if len(part["start"])]
    if not parts:
        return {}
    given: Columns = {
        name: np.concatenate([part[name] for part in parts])
        for name in ("start", "duration", "status")
    }
    for name in ("error", "attack"):
        kinds, code = np.unique(np.concatenate([part[name] for part in parts]), return_inverse=True)
        given[name], given[f"{name}s"] = code.reshape(-1), [_text(kind) for kind in kinds.tolist()]
    return _series(given, tuple(notes), options)


def _matched(chunk: bytes) -> Columns | None:
    """The columns of a chunk, where each of its lines has each of the keys once."""
    size = chunk.count(b"\n")
    whole = {key: pattern.findall(chunk) for key, pattern in _WHOLE.items()}
    words = {key: pattern.findall(chunk) for key, pattern in _WORDS.items()}
    words["attack"] = words["attack"] or [b""] * size
    if not size or any(len(found) != size for found in (*whole.values(), *words.values())):
        return None
    try:
        start = iso_nanoseconds([text.decode() for text in words["timestamp"]])
        return {
            "start": start,
            "duration": np.array(whole["latency"], "S20").astype(np.int64),
            "status": np.array(whole["code"], "S8").astype(np.int64),
            "error": np.array(words["error"], np.bytes_),
            "attack": np.array(words["attack"], np.bytes_),
        }
    except (ValueError, OverflowError):
        return None


def _parsed(
    source: Source, options: ReadOptions, first: int, chunk: bytes, notes: list[str]
) -> Columns:
    """The same, line by line: it names what is corrupt."""
    stamps: list[str] = []
    rows: list[tuple[int, int, bytes, bytes]] = []
    for number, record in jsontext.numbered(source, options, first, chunk, notes):
        try:
            error, attack = (str(record.get(key, "")).encode() for key in ("error", "attack"))
            row = _int64(record["latency"]), _int64(record["code"]), error, attack
            stamps.append(_stamp(record["timestamp"]))
            rows.append(row)
        except (AttributeError, KeyError, TypeError, ValueError):
            seen = "an object without a proper timestamp, latency and code"
            options.reject(
                source.corrupt(number, seen, "a result of vegeta", "--lenient skips the line")
            )
    return {
        "start": iso_nanoseconds(stamps),
        "duration": np.array([row[0] for row in rows], np.int64),
        "status": np.array([row[1] for row in rows], np.int64),
        "error": np.array([row[2] for row in rows], np.bytes_),
        "attack": np.array([row[3] for row in rows], np.bytes_),
    }


def _stamp(value: Any) -> str:
    if _STAMP.fullmatch(str(value)) is None:
        raise ValueError(value)
    return str(value)


def _int64(value: Any) -> int:
    number = int(value)
    if abs(number) >= 2**63:
        raise ValueError(number)
    return number


def _text(kind: bytes) -> str:
    text = kind.decode("utf-8", "replace")
    return str(json.loads(f'"{text}"')) if "\\" in text else text


def _series(given: Columns, notes: Sequence[str], options: ReadOptions) -> dict[str, Data]:
    """Columns as samples: one series an attack, where there are several."""
    errors, attacks = given.pop("errors", []), given.pop("attacks", [])
    error, status = given.pop("error", None), given.pop("status")
    bad = (status < 200) | (status >= 400)
    outcome = np.where(bad, OUTCOMES.index("error"), 0)
    if error is not None:
        late = np.array(
            [TIMED_OUT.search(text) is not None for text in errors] or [False], np.bool_
        )
        reported_stats = np.array([text != "" for text in errors] or [False], np.bool_)
        outcome[reported_stats[error]] = OUTCOMES.index("error")
        outcome[late[error] & (bad | reported_stats[error])] = OUTCOMES.index("timeout")
    given["outcome"] = outcome if outcome.any() else None
    columns, left_out = without_negative(given, options)
    code = columns.pop("attack", None)
    run = _paced(columns["start"], columns["duration"]).with_notes(*notes, *left_out)
    samples = Samples(run=run, **columns)
    return {"": samples} if code is None else per_operation(samples, code, attacks)


def _paced(start: NDArray[np.int64], duration: NDArray[np.int64]) -> Run:
    """The run: of an open loop, unless sends stopped for as long as requests were in flight."""
    if start.size < _OFTEN:
        return RUN
    order = np.argsort(start, kind="stable")
    sent, ended = start[order], start[order] + duration[order]
    gaps = np.diff(sent)
    at = int(gaps.argmax())
    gap, span = float(gaps[at]), float(sent[-1] - sent[0]) / 1e9
    run = (
        RUN.replace(
            rate=round((start.size - 1) / span, 3), achieved=round((start.size - 1) / span, 3)
        )
        if span > 0
        else RUN
    )
    if (
        gap <= max(_OFTEN * float(np.median(gaps)), _LONG)
        or not (ended[: at + 1] >= sent[at] + 0.9 * gap).any()
    ):
        return run
    note = (
        f"sends stopped for {format_duration(gap)} while requests were in flight: the workers ran out (-max-workers), and "
        "what was due in that time is missing"
    )
    return run.replace(loop="paced", measure="service", corrected="none", rate=None).with_notes(
        note
    )


_VEGETA = (
    Format(
        "vegeta-csv", "vegeta results (CSV)", "samples", (".csv",), sniff_csv, read_csv, unit="ns",
        example="vegeta encode -to csv results.bin > results.csv",
    ),
    Format(
        "vegeta-json", "vegeta results (JSON lines)", "samples", (".json", ".jsonl"), sniff_json, read_json, unit="ns",
        example="vegeta encode -to json results.bin > results.json",
    ),
)  # fmt: skip


# ------------------------------------------------------------
# vegeta's reports: ``vegeta report`` as text, JSON, ``hist[…]`` and ``hdrplot``.
#
# Its percentiles are estimated (by t-digest), and take in the times of requests that failed.

_ORDINAL = re.compile(r"(\d+(?:\.\d+)?)(?:st|nd|rd|th)?")
_REQUESTS = re.compile(r"^Requests\s+\[total", re.MULTILINE)
_VEGETA_REPORT_ROW = re.compile(
    r"^(Requests|Duration|Latencies|Success|Status Codes)\s+\[([^\]]*)\]\s+(.*?)\s*$", re.MULTILINE
)
_CLEARED = "\x1b[2J"
_HIST = re.compile(r"^Bucket\s+#\s+%\s+Histogram[ \t]*$", re.MULTILINE)
_BUCKET = re.compile(r"^\[([^,\s]+),\s+([^\]\s]+)\]\s+(\d+)\s+[\d.]+%")
_HDRPLOT = re.compile(
    r"^Value\(ms\)[ \t]+Percentile[ \t]+TotalCount[ \t]+1/\(1-Percentile\)[ \t]*$", re.MULTILINE
)
_HINT = "vegeta report -type=hdrplot prints the distribution, vegeta encode every request"


def sniff_report_json(head: Head) -> Confidence:
    """Tell the keys."""
    keys = ("latencies", "bytes_in", "status_codes", "success")
    found = all(f'"{key}":' in head.text for key in keys) and '"requests":' in head.text
    return (
        Confidence.CERTAIN
        if found and plain_report(head.text).lstrip()[:1] == "{"
        else Confidence.NO
    )


def read_report_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read each report; of those that ``-every`` made of one attack, the last."""
    documents, notes = jsontext.documents(source)
    last = {str(one.get("earliest")): one for one in documents}
    found: dict[str, Data] = {}
    for record in last.values():
        name = "" if len(last) == 1 else distinct("attack", found)
        found[name] = _report(record, source, notes)
    return found


def _report(record: dict[str, Any], source: Source, notes: Sequence[str]) -> Data:
    """One report as JSON: percentiles, and with ``-buckets`` the counts of a histogram."""
    latencies = jsontext.entry(record, "latencies", source)
    total = jsontext.entry(record, "requests", source, int)
    reported_stats = {str(key): float(value) for key, value in latencies.items()}
    codes = {str(code): int(number) for code, number in (record.get("status_codes") or {}).items()}
    run = RUN.replace(
        start=epoch_seconds(record.get("earliest")),
        duration=round((record.get("duration", 0) + record.get("wait", 0)) / 1e9, 9) or None,
        rate=record.get("rate"), achieved=record.get("throughput") or record.get("rate"), notes=tuple(notes),
    )  # fmt: skip
    run, good = _with_failures(
        run, total, codes, record.get("success"), record.get("errors") or (), source
    )
    stats, points = _told(reported_stats)
    buckets = {float(edge): int(number) for edge, number in (record.get("buckets") or {}).items()}
    if buckets and good == total and sum(buckets.values()) == total and "max" in stats:
        edges = sorted(buckets)
        highs = [*edges[1:], max(stats["max"], edges[-1])]
        return histogram_of_both(points, highs, [buckets[edge] for edge in edges], stats, run)
    return _hinted(data_from_points(points, good, stats, run))


def _hinted(data: Histogram | Summary) -> Data:
    return data if isinstance(data, Histogram) else data.with_run(notes=(*data.run.notes, _HINT))


def _told(reported_stats: Mapping[str, float]) -> tuple[dict[str, float], dict[float, float]]:
    """Statistics and percentiles by what a report calls them: mean, 50th, max."""
    stats = {
        name: float(reported_stats[name])
        for name in ("min", "mean", "max")
        if name in reported_stats
    }
    found = {key: match for key in reported_stats if (match := _ORDINAL.fullmatch(key))}
    return stats, {float(match[1]): float(reported_stats[key]) for key, match in found.items()}


def _with_failures(
    run: Run,
    total: int,
    codes: Mapping[str, int],
    success: float | None,
    errors: Sequence[Any],
    source: Source,
) -> tuple[Run, int]:
    """The run with what failed, and the number of good requests."""
    failed = sum(number for code, number in codes.items() if not 200 <= int(code) < 400)
    if not codes and success is not None:
        failed = total - round(total * success)
    unanswered = codes.get("0", 0)
    late = unanswered if errors and all(TIMED_OUT.search(str(text)) for text in errors) else 0
    run = run.replace(failed=failed - late, timeouts=late).with_notes(*mixed_note(failed))
    if total <= failed:
        raise nothing_answered(source, run)
    return run, total - failed


def sniff_text(head: Head) -> Confidence:
    """Tell the rows of requests and latencies."""
    text = plain_report(head.text)
    found = _REQUESTS.search(text) and re.search(r"^Latencies\s+\[", text, re.MULTILINE)
    return Confidence.CERTAIN if found else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every report; of those that ``-every`` draws over each other, the last."""
    parts = sections(source, _REQUESTS)
    if _CLEARED in source.text():
        parts = parts[-1:]
    found: dict[str, Data] = {}
    for part in parts:
        found["" if len(parts) == 1 else distinct("attack", found)] = _text_report(part)
    return found


def _text_report(part: Section) -> Data:
    """One report as text: rows of names in brackets and as many values."""
    rows: dict[str, dict[str, float]] = {}
    for row in _VEGETA_REPORT_ROW.finditer(part.text):
        try:
            rows[row[1]] = _values(row)
        except (InvalidArgumentError, ValueError) as error:
            seen = printable(f"{row[1]}: {error}", 80)
            raise part.corrupt(
                row.start(), seen, "as many values as names", "run vegeta report anew"
            ) from None
    if not {"Requests", "Latencies"} <= set(rows):
        raise part.corrupt(
            0, "a row is missing", "Requests and Latencies", "run vegeta report anew"
        )
    for name, value in (("Requests", "total"), ("Duration", "total"), ("Success", "ratio")):
        if name in rows and value not in rows[name]:
            raise part.corrupt(
                part.text.find(name), f"{name} has no {value}", "one", "run vegeta report anew"
            )
    requests, reported_stats = rows["Requests"], rows["Latencies"]
    codes = {code: int(number) for code, number in rows.get("Status Codes", {}).items()}
    _, ended, errors = part.text.partition("Error Set:")
    run = RUN.replace(
        duration=rows["Duration"]["total"] / 1e9 if "Duration" in rows else None,
        rate=requests.get("rate"), achieved=requests.get("throughput"),
        unit_from="file", notes=() if ended else ("the report is cut at its end",),
    )  # fmt: skip
    share = rows["Success"]["ratio"] / 100 if "Success" in rows else None
    texts = [line for line in errors.split("\n") if line.strip()]
    run, good = _with_failures(run, int(requests["total"]), codes, share, texts, part.source)
    stats, points = _told(reported_stats)
    return _hinted(data_from_points(points, good, stats, run))


def _values(row: re.Match[str]) -> dict[str, float]:
    """The values of a row by their names: durations in ns, numbers, counts of status codes."""
    if row[1] == "Status Codes":
        return {
            code: float(number)
            for code, _, number in (one.partition(":") for one in row[3].split())
            if int(code) >= 0
        }
    names, values = re.split(r",\s*", row[2]), re.split(r",\s*", row[3])
    timed = row[1] in ("Duration", "Latencies")
    return {
        name: round(parse_duration(value), 3) if timed else float(value.rstrip("%"))
        for name, value in zip(names, values, strict=True)
    }


def sniff_hist(head: Head) -> Confidence:
    """Tell the header and its first bucket."""
    text = plain_report(head.text)
    found = _HIST.search(text) and re.search(r"^\[\S+,\s+\S+\]\s+\d+", text, re.MULTILINE)
    return Confidence.CERTAIN if found else Confidence.NO


def read_hist(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the buckets; what lies in the last one is censored at its lower end."""
    part = sections(source, _HIST)[-1]
    header = _HIST.search(part.text)
    end = len(part.text) if part.text.endswith("\n") else part.text.rfind("\n") + 1
    rows = part.matches(
        _BUCKET, header.end() if header else 0, end, "a bucket such as [1ms, 2ms] 4116 68.60%"
    )
    notes = () if end == len(part.text) else ("the last line is cut; it was left out",)
    lows, counts = [round(parse_duration(row[1]), 3) for row in rows], [int(row[3]) for row in rows]
    above = counts.pop() if rows and rows[-1][2] == "+Inf" else 0
    highs = [round(parse_duration(row[2]), 3) for row in rows[: len(counts)]]
    if not sum(counts) + above:
        raise nothing_answered(source, RUN)
    limit = lows[-1] if above else float("inf")
    return {
        "": Histogram.from_buckets(
            lows[: len(counts)],
            highs,
            counts,
            run=RUN.with_notes(*notes),
            censored=above,
            censored_at=limit,
        )
    }


def sniff_hdrplot(head: Head) -> Confidence:
    """Tell vegeta's header, which has no blank line below it."""
    found = _HDRPLOT.search(plain_report(head.text)[:4000])
    return (
        Confidence.CERTAIN
        if found and re.match(r"\n\d+\.\d+[ \t]+0\.0+[ \t]+0[ \t]", head.text[found.end() :])
        else Confidence.NO
    )


def read_hdrplot(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the rows between the minimum and the maximum."""
    part = sections(source, _HDRPLOT)[-1]
    notes: list[str] = []
    lines = part.lines(0, len(part.text))

    def fail(number: int, seen: str, expected: str) -> Exception | None:
        if number == lines[-1][0] and not part.text.endswith("\n"):
            notes.append("the last line is cut; it was left out")
            return None
        options.reject(source.corrupt(number, seen, expected, "--lenient skips such lines"))
        return None

    spectrum = parse_spectrum(lines, fail)
    if not spectrum.counts or not spectrum.counts[-1]:
        raise nothing_answered(source, RUN)
    highs, cumulative = nanoseconds_of(spectrum.values, "ms"), np.asarray(spectrum.counts)
    if (np.diff(highs) < 0).any() or (np.diff(cumulative) < 0).any():
        raise part.corrupt(
            0,
            "values and counts do not both ascend",
            "rows in ascending order",
            "run vegeta report anew",
        )
    stats = {"min": float(highs[0]), "max": float(highs[-1])}
    run = RUN.replace(unit="ms", unit_from="file").with_notes(*notes)
    return {
        "": histogram_of_both(
            {}, highs.tolist(), np.diff(cumulative, prepend=0).tolist(), stats, run
        )
    }


_VEGETA_REPORT = (
    Format(
        "vegeta-report-json", "vegeta report (JSON)", "histogram", (".json",), sniff_report_json, read_report_json, unit="ns",
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

FORMATS = (*_VEGETA, *_VEGETA_REPORT)
