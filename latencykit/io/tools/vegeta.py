"""vegeta: its results by the row (of ``vegeta attack`` or ``encode``), and its reports.

A row's time stamp is its send; rows are not sorted by it. vegeta sends by a schedule and adds
workers where replies are late, so times are those of an open loop, unless ``-max-workers`` ends
that: then sends stop while requests are in flight. The percentiles of reports are estimated (by
t-digest), and include the times of requests that failed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latencykit._text import printable
from latencykit._typing import JSONObject
from latencykit.core.columns import Words, coded, matching
from latencykit.core.histogram import Histogram
from latencykit.core.run import SCHEDULED, Run
from latencykit.errors import InvalidArgumentError
from latencykit.io import build, json_text
from latencykit.io.declared import TIMED_OUT, TRUNCATED
from latencykit.io.gob import columns_of_structs
from latencykit.io.hgrm import parse_spectrum, spectrum_data
from latencykit.io.raw import objects
from latencykit.io.raw.columns import ColumnPlan, TimestampColumn
from latencykit.io.rows import CUT_LINE, RowLayout, line_refuser, read_table
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import below, certain, has_match, plain, sections, text_of_run
from latencykit.units import format_duration, parse_duration

Columns = dict[str, Any]

_RUN = Run(tool="vegeta", **SCHEDULED, unit="ns", unit_from="format")
_COLUMNS = (
    "stamp", "code", "latency", "bytes_out", "bytes_in", "error", "body", "attack", "seq", "method",
    "url", "headers",
)  # fmt: skip
_FURTHER = ("method", "url", "code", "bytes_in", "bytes_out")
_KEYS = ("timestamp", "latency", "code", "bytes_in", "bytes_out")
_OFTEN, _LONG = 20, 5e7
_SECONDS_TO_1970 = 62_135_596_800  # from the year 1, where Go's time begins


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request."""
    line, ends, _ = source.head.text.partition("\n")
    columns = _COLUMNS[: len(next(csv.reader([line.rstrip("\r")])))] if ends else _COLUMNS
    numbers, asked = ("stamp", "code", "latency"), _FURTHER if options.columns else ()
    words = [name for name in ("error", "attack", *asked) if name in columns]
    words = [name for name in words if name not in numbers]
    largest = {"stamp": 9.2e18, "latency": 9.2e18}
    layout = RowLayout(columns, numbers, tuple(words), largest=largest)
    frame, notes = read_table(source, options, layout)
    given: Columns = {
        "start": frame["stamp"].astype(np.int64),
        "duration": frame["latency"].astype(np.int64),
        "status": frame["code"].astype(np.int64),
    }
    given |= {name: frame[name] for name in ("error", "attack") if name in frame}
    if options.columns:
        names = [name for name in _FURTHER if name in frame]
        given["columns"] = {name: build.further_cells([frame[name]]) for name in names}
    return _series(given, notes, options)


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request."""
    plan = ColumnPlan(
        "latency", "number", "ns", "format",
        {"start": TimestampColumn("timestamp", "moment", "ns")}, (), True,
        connection=None, connection_kind="number", tag=None, series=None, notes=(),
        further=("error", "attack", *(_FURTHER if options.columns else ("code",))),
    )  # fmt: skip
    data: Any = objects.read_lines(source, replace(options, counted=False), plan)[""]
    given: Columns = {"start": data.start, "duration": data.duration}
    given["status"] = np.nan_to_num(data.columns.cells("code")).astype(np.int64)
    given |= {name: data.columns.cells(name) for name in ("error", "attack")}
    if options.columns:
        given["columns"] = {name: data.columns.cells(name) for name in _FURTHER}
    return _series(given, data.run.notes, options)


def sniff_gob(head: Head) -> Confidence:
    """Recognise the definition of vegeta's type of results, the first of a gob stream."""
    begin = head.data[:300]
    return certain(b"\x06Result\x01" in begin[:24] and b"\x07Latency\x01" in begin)


def read_gob(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request of what ``vegeta attack`` writes."""
    notes: list[str] = []
    names = ("Attack", "Code", "Timestamp", "Latency", "Error")
    further = {"BytesOut": "bytes_out", "BytesIn": "bytes_in", "Method": "method", "URL": "url"}
    further |= {"Code": "code"}
    asked = (*names, *further) if options.columns else names
    parts = list(columns_of_structs(source, asked, notes))
    if not parts:
        return {}
    columns = {
        name: np.concatenate([part[name] for part in parts])
        for name in asked
        if all(name in part for part in parts)
    }
    if not {*names[1:]} <= {*columns}:
        raise source.corrupt(None, "its results lack a time or a latency", "results of vegeta")
    stamp = columns["Timestamp"].astype("S15").view(np.uint8).reshape(-1, 15)
    if not np.isin(stamp[:, 0], (1, 2)).all():  # versions of Time.MarshalBinary
        raise source.corrupt(None, "a result without a proper timestamp", "results of vegeta")
    seconds = stamp[:, 1:9].copy().view(">i8")[:, 0].astype(np.int64) - _SECONDS_TO_1970
    given: Columns = {
        "start": seconds * 1_000_000_000 + stamp[:, 9:13].copy().view(">i4")[:, 0],
        "duration": columns["Latency"],
        "status": columns["Code"],
    }
    for name in ("Error", "Attack"):
        if name in columns:
            given[name.lower()] = Words.of(columns[name])
    if options.columns:
        given["columns"] = {
            name: build.further_cells([cells if cells.dtype.kind in "iu" else Words.of(cells)])
            for key, name in further.items()
            if (cells := columns.get(key)) is not None
        }
    return _series(given, notes, options)


def _series(given: Columns, notes: Sequence[str], options: ReadOptions) -> dict[str, Data]:
    """Columns as samples: one series per attack, where there are several."""
    nothing = Words(np.zeros(given["duration"].size, np.int32), np.array([""], object))
    error, attack, status = (given.pop(key, nothing) for key in ("error", "attack", "status"))
    bad = (status < 200) | (status >= 400) | matching(error, bool)
    late = bad & matching(error, TIMED_OUT.search)
    given["outcome"] = build.outcome_codes(error=bad, timeout=late)
    code, attacks = coded(attack.sorted() if isinstance(attack, Words) else attack)
    given["code"] = np.where(code < 0, len(attacks), code)
    good = given["duration"] >= 0
    run = _paced(given["start"][good], given["duration"][good]).with_notes(*notes)
    return build.samples_of(given, run, options, [*attacks, ""])


def _paced(start: NDArray[np.int64], duration: NDArray[np.int64]) -> Run:
    """The run: of an open loop, unless sends stopped for as long as requests were in flight."""
    if start.size < _OFTEN:
        return _RUN
    order = np.argsort(start, kind="stable")
    sent, ended = start[order], start[order] + duration[order]
    gaps = np.diff(sent)
    at = int(gaps.argmax())
    gap, span = float(gaps[at]), float(sent[-1] - sent[0]) / 1e9
    rate = round((start.size - 1) / span, 3) if span > 0 else None
    run = _RUN.replace(rate=rate, achieved=rate)
    in_flight = (ended[: at + 1] >= sent[at] + 0.9 * gap).any()
    if gap <= max(_OFTEN * float(np.median(gaps)), _LONG) or not in_flight:
        return run
    run = run.replace(loop="paced", measure="service", corrected="none", rate=None)
    return run.with_notes(
        f"sends stopped for {format_duration(gap)} while requests were in flight: "
        "the workers ran out (-max-workers), and what was due in that time is missing"
    )


# ------------------------------------------------------------
# Reports: as text, JSON, ``hist[…]`` and ``hdrplot``.

_REQUESTS = re.compile(r"^Requests\s+\[total", re.MULTILINE)
_REPORT_ROW = re.compile(
    r"^(Requests|Duration|Latencies|Success|Status Codes)\s+\[([^\]]*)\]\s+(.*?)\s*$", re.MULTILINE
)
_CLEARED = "\x1b[2J"
_HIST = re.compile(r"^Bucket\s+#\s+%\s+Histogram[ \t]*$", re.MULTILINE)
_BUCKET = re.compile(r"^\[([^,\s]+),\s+([^\]\s]+)\]\s+(\d+)\s+[\d.]+%")
_HDRPLOT = re.compile(
    r"^Value\(ms\)[ \t]+Percentile[ \t]+TotalCount[ \t]+1/\(1-Percentile\)[ \t]*$", re.MULTILINE
)
_HINT = "vegeta report -type=hdrplot prints the distribution, vegeta encode every request"
_ANEW = "run vegeta report anew"
_REPORT_KEYS = ("latencies", "bytes_in", "status_codes", "success", "requests")


def read_report_json(source: Source, options: ReadOptions) -> Series:
    """Read each report; of those that ``-every`` made of one attack, the last."""
    documents, notes = json_text.documents(source)
    last = {str(record.get("earliest")): record for record in documents}
    for record in last.values():
        yield "" if len(last) == 1 else "attack", _report(record, _RUN.with_notes(*notes))


def _report(record: JSONObject, run: Run) -> Data:
    """One report; times in ns."""
    total, statuses = int(record["requests"]), record.get("status_codes") or {}
    points, stats = build.statistics_in({k: float(v) for k, v in record["latencies"].items()})
    if not stats.get("mean") and (whole := record["latencies"].get("total")):
        points, stats["mean"] = {}, whole / max(total, 1)  # a program did not call Metrics.Close
    codes = {str(code): int(number) for code, number in statuses.items()}
    run = run.replace(
        start=build.epoch_seconds(record.get("earliest")), rate=record.get("rate"),
        duration=round((record.get("duration", 0) + record.get("wait", 0)) / 1e9, 9) or None,
        achieved=record.get("throughput") or record.get("rate"),
    )  # fmt: skip
    failed, success = sum(n for code, n in codes.items() if not 200 <= int(code) < 400), None
    if not codes and (success := record.get("success")) is not None:
        failed = total - round(total * success)
    errors = record.get("errors") or ()
    only_timeouts = errors and all(TIMED_OUT.search(str(text)) for text in errors)
    late, good = codes.get("0", 0) if only_timeouts else 0, max(total - failed, 0)
    run = run.replace(failed=failed - late, timeouts=late).with_notes(*build.mixed_note(failed))
    if not good:
        shown = ", ".join(f"p{p:g} {format_duration(value)}" for p, value in points.items())
        note = f"no request succeeded: the times printed, {shown}, are of failures"
        return build.unanswered(run).with_run(notes=(note,) if shown else ())
    buckets = {float(edge): int(n) for edge, n in (record.get("buckets") or {}).items()}
    if buckets and good == total == sum(buckets.values()) and "max" in stats:
        edges, counts = zip(*sorted(buckets.items()), strict=True)
        highs = [*edges[1:], max(stats["max"], edges[-1])]
        return build.histogram_of_both(points, highs, counts, stats, run)
    data = build.data_from_points(points, good, stats, run)
    return data if isinstance(data, Histogram) else data.with_run(notes=(*data.run.notes, _HINT))


def read_text(source: Source, options: ReadOptions) -> Series:
    """Read every report; of those that ``-every`` draws over each other, the last."""
    parts = sections(source, _REQUESTS)
    if _CLEARED in source.text():
        parts = parts[-1:]
    for part in parts:
        rows: dict[str, dict[str, float]] = {}
        for row in _REPORT_ROW.finditer(part.text):
            try:
                if row[1] == "Status Codes":  # [code:count]  200:60  500:3
                    pairs = (cell.partition(":") for cell in row[3].split())
                    rows[row[1]] = {code: float(n) for code, _, n in pairs if int(code) >= 0}
                    continue
                cells = zip(*(re.split(r",\s*", row[k]) for k in (2, 3)), strict=True)
                timed = row[1] in ("Duration", "Latencies")
                rows[row[1]] = {
                    name: round(parse_duration(value), 3) if timed else float(value.rstrip("%"))
                    for name, value in cells
                }
            except (InvalidArgumentError, ValueError) as error:
                seen, expected = printable(f"{row[1]}: {error}", 80), "as many values as names"
                raise part.corrupt(row.start(), seen, expected, _ANEW) from None
        requests, latencies = (rows.get(name, {}) for name in ("Requests", "Latencies"))
        if "total" not in requests or not latencies:
            raise part.corrupt(0, "a row is missing", "Requests and Latencies", _ANEW)
        record = requests | {
            "requests": requests["total"], "status_codes": rows.get("Status Codes"),
            "duration": rows.get("Duration", {}).get("total", 0.0),
            "success": rows["Success"]["ratio"] / 100 if "Success" in rows else None,
            "errors": [line for _, line in below(part.text, "Error Set:")],
            "latencies": {re.sub(r"^(?=\d+$)", "p", key): v for key, v in latencies.items()},
        }  # fmt: skip
        ended = "Error Set:" in part.text
        run = _RUN.replace(unit_from="file", notes=() if ended else (TRUNCATED,))
        yield "" if len(parts) == 1 else "attack", _report(record, run)


def read_hist(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the buckets of a run; what lies in the last one is censored at its lower end."""
    if _CLEARED not in source.text():
        text_of_run(source, _HIST)
    part = sections(source, _HIST)[-1]
    header = _HIST.search(part.text)
    end = len(part.text) if part.text.endswith("\n") else part.text.rfind("\n") + 1
    expected = "a bucket such as [1ms, 2ms] 4116 68.60%"
    rows = part.matches(_BUCKET, header.end() if header else 0, end, expected)
    notes = () if end == len(part.text) else (CUT_LINE,)
    lows, counts = [round(parse_duration(row[1]), 3) for row in rows], [int(row[3]) for row in rows]
    above = counts.pop() if rows and rows[-1][2] == "+Inf" else 0
    highs = [round(parse_duration(row[2]), 3) for row in rows[: len(counts)]]
    if not sum(counts) + above:
        return {"": build.unanswered(_RUN)}
    histogram = Histogram.from_buckets(
        lows[: len(counts)], highs, counts, run=_RUN.with_notes(*notes), censored=above,
        censored_at=lows[-1] if above else float("inf"),
    )  # fmt: skip
    return {"": histogram}


def read_hdrplot(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the rows between the minimum and the maximum."""
    text_of_run(source, _HDRPLOT)
    part = sections(source, _HDRPLOT)[-1]
    notes: list[str] = []
    refuse = line_refuser(source, options, source.text(), notes)
    spectrum = parse_spectrum(part.lines(0, len(part.text)), refuse)
    if not spectrum.counts or not spectrum.counts[-1]:
        return {"": build.unanswered(_RUN)}
    spectrum.reported_stats = {"min": spectrum.values[0], "max": spectrum.values[-1]}
    run = _RUN.replace(unit="ms", unit_from="file").with_notes(*notes)
    return {"": spectrum_data(spectrum, run, source)}


FORMATS = {
    "vegeta": (sniff_gob, read_gob),
    "vegeta-csv": (has_match(r"\A\d{16,19},\d{1,3},-?\d+,\d+,\d+,"), read_csv),
    "vegeta-json": (
        has_match(r"\A\{" + "".join(rf'(?=[^\n]*"{key}":)' for key in _KEYS)),
        read_json,
    ),
    "vegeta-report-json": (
        has_match(r"\A\s*\{", *(f'"{key}":' for key in _REPORT_KEYS), plain=plain),
        read_report_json,
    ),
    "vegeta-report": (has_match(_REQUESTS, r"^Latencies\s+\[", plain=plain), read_text),
    "vegeta-hist": (
        has_match(_HIST, r"^\[\S+,\s+\S+\]\s+\d+", without=_REQUESTS, plain=plain),
        read_hist,
    ),
    "vegeta-hdrplot": (
        has_match(  # no blank line below the header
            rf"{_HDRPLOT.pattern}\n\d+\.\d+[ \t]+0\.0+[ \t]+0[ \t]", plain=plain
        ),
        read_hdrplot,
    ),
}
