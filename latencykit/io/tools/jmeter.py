"""Apache JMeter's result files (JTL), as CSV and as XML, and the summary that it prints.

``timeStamp`` is the start of a sample, ``elapsed`` the time to the last byte; both in ms. (With
``sampleresult.timestamp.start=false``, the old way, it is the end; nothing in the file shows that.)
A transaction controller writes a row that sums up the samples in it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from latencykit._text import printable
from latencykit.core.columns import Words, joined, matching
from latencykit.core.run import CLOSED, Note, Run
from latencykit.io import json_text
from latencykit.io.build import further_cells, numbers_of, outcome_codes
from latencykit.io.declared import Json, Report, Rows, report_of
from latencykit.io.raw.cells import times_of
from latencykit.io.rows import line_chunks
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import has_match, plain, text_of_run

_RUN = Run(tool="JMeter", **CLOSED, unit="ms", unit_from="format")
_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,6})?"
_DAY = 86_400_000  # ms
_TRANSACTION = re.compile("Number of samples in transaction")
_TIMEOUT = re.compile(r"timeout|timed out", re.IGNORECASE)
_SUMMED_UP = "jmeter -l result.jtl writes every request, and so the distribution"
_HEADLESS = re.compile(r"\d{13},\d+,[^,]*,[^,]*,.*,(?:true|false),")


def finish_rows(
    frame: dict[str, Any], given: dict[str, Any], run: Run
) -> tuple[dict[str, Any], Run]:
    """Tell timeouts among failures, and transactions, which are sums of other samples."""
    if "success" in frame:
        failed = matching(frame["success"], lambda text: text.lower() == "false")
        texts = (frame[name] for name in ("responseCode", "responseMessage") if name in frame)
        late = np.logical_or.reduce(
            [failed & False, *(matching(text, _TIMEOUT.search) for text in texts)]
        )
        given["outcome"] = outcome_codes(error=failed, timeout=failed & late)
    for name in ("success", "failureMessage"):  # the outcome says it
        given.get("columns", {}).pop(name, None)
    if "responseMessage" in frame:
        sums = matching(frame["responseMessage"], _TRANSACTION.match)
        given["apart"] = frame["label"].select(sums).names.tolist()
        if given["apart"]:
            note = "transactions, sums of other samples; they are left out of the aggregate"
            run = run.with_notes(f"{', '.join(given['apart'])}: {note}")
    threads = frame.get("allThreads", np.zeros(0))
    most = np.nanmax(threads) if np.isfinite(threads).any() else np.nan
    if not np.isfinite(most) and "connection" in given and given["duration"].size:
        most = np.unique(given["connection"]).size
    return given, run.replace(connections=int(most) if np.isfinite(most) and most > 0 else None)


ROWS = Rows(
    run=_RUN,
    columns="timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,"
    "failureMessage,bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect",
    duration="elapsed",
    start="timeStamp",
    operation="label",
    connection="threadName",
    numbers=("allThreads",),
    words=("success", "responseCode", "responseMessage"),
    finish=finish_rows,
)
DATED = replace(ROWS, start="", words=(*ROWS.words, "timeStamp"))


def sniff_csv(head: Head) -> Confidence:
    """Recognise the header, or rows in the default order."""
    line = head.lines[0] if head.lines else ""
    if {"timeStamp", "elapsed", "label"} <= set(re.split(r"[,;\t|]", line)):
        return Confidence.CERTAIN
    return Confidence.LIKELY if _HEADLESS.match(line) and line.count(",") >= 14 else Confidence.NO


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every label as a series, and all of them first."""
    header, *rows = source.head.lines
    at = re.split(r"[,;\t|]", header).index("timeStamp") if "timeStamp" in header else -1
    cell = (re.split(r"[,;\t|]", rows[0])[at : at + 1] or [""])[0] if at >= 0 and rows else "0"
    if cell.strip().isdigit():
        return ROWS(source, options)
    return replace(DATED, finish=lambda frame, given, run: _dated(frame, given, run, source))(
        source, options
    )


def _dated(
    frame: dict[str, Any], given: dict[str, Any], run: Run, source: Source
) -> tuple[dict[str, Any], Run]:
    """Dates, or times of a day, in place of ms since the epoch."""
    cells = frame["timeStamp"]
    clock = all(re.fullmatch(_CLOCK, text) for text in cells.names.tolist())
    dates = [f"1970-01-01 {text}" if clock else text for text in cells.names.tolist()]
    times = times_of(Words.named(cells.codes, dates), "moment", "")
    bad = times.missing | times.corrupt
    if bad.any():
        shown = printable(str(cells.cells[bad.argmax()]), 40)
        seen = f"timeStamp is not a date that can be read ({shown})"
        hint = "set jmeter.save.saveservice.timestamp_format=ms"
        raise source.corrupt(2, seen, "milliseconds since the epoch", hint)
    ms = times.ns // 1_000_000
    note = "timeStamp contains dates without a time zone; they were taken as UTC"
    if clock:  # rows are written when their requests end: far back is the next day
        ms += np.cumsum(np.diff(ms, prepend=ms[:1]) < -_DAY // 2) * _DAY
        note = "timeStamp contains times without a date"
    return finish_rows(frame, given | {"start": ms * 1_000_000}, run.with_notes(note))


_SAMPLE = re.compile(rb"<(/?)(?:httpSample|sample)\b([^<>]*?)(/?)>")
_NUMBERS = ("timeStamp", "elapsed", "allThreads")
_PAIR = re.compile(r'(?<!\S)(\w+)="([^"]*)"')
_ATTRIBUTE = {
    "timeStamp": "ts", "elapsed": "t", "label": "lb", "success": "s", "threadName": "tn",
    "allThreads": "na", "responseCode": "rc", "responseMessage": "rm",
}  # fmt: skip


def read_xml(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every label as a series; samples inside samples (redirects, …) are parts of theirs."""
    from html import unescape

    depth, parts, ended = 0, dict[str, list[Any]](), False
    for line, chunk in line_chunks(source):
        elements = _SAMPLE.findall(chunk)
        ended = b"</testResults>" in chunk
        texts = []
        for closing, attributes, empty in elements:
            if depth == 0 and not closing:
                texts.append(attributes.decode("utf-8", "replace"))
            depth += -1 if closing else 0 if empty else 1
        rows = [dict(_PAIR.findall(text)) for text in texts]
        bad = np.array(["lb" not in row for row in rows], np.bool_)
        for key in ("ts", "t"):
            bad |= ~(np.abs(numbers_of(row.get(key, "") for row in rows)) <= 9e12)
        if bad.any():
            options.refuse(source, line, "a sample without t, ts or lb", "all three")
        rows = [row for row, wrong in zip(rows, bad.tolist(), strict=True) if not wrong]
        for name, key in _ATTRIBUTE.items():
            parts.setdefault(name, []).append(Words.of([row.get(key) for row in rows]))
    columns: dict[str, Any] = {name: joined(some) for name, some in parts.items()}
    if not columns or not columns["label"].codes.size:
        return {}
    label = columns["label"]
    columns["label"] = Words.named(label.codes, [unescape(name) for name in label.names.tolist()])
    frame = {
        name: further_cells([cells]) if name in _NUMBERS else cells.sorted()
        for name, cells in columns.items()
        if cells.names.size
    }
    note = Note(
        "the file ends before </testResults>: the test was still running, or the file is truncated"
    )
    return ROWS.data(frame, () if ended else (note,), options)


# ------------------------------------------------------------
# Statistics: of the dashboard, and as lines of the summariser. Failed requests are among them.

_LINE = re.compile(
    r"^(?:[^\n=]{0,400}?[ \t])??(?P<name>\S{0,200}) (?P<sign>[=+]) +(?P<count>\d+) in +"
    r"(?:(?P<hours>\d+):(?P<minutes>\d+):)?(?P<seconds>\d+(?:[.,]\d+)?)s? = +(?P<achieved>[\d.,]+)"
    r"/s Avg: +(?P<mean>\d+) Min: +(?P<min>\d+) Max: +(?P<max>\d+) Err: +(?P<failed>\d+)",
    re.MULTILINE,
)


def with_failures(report: Report, *_: Any) -> Report:
    """Failed samples are among the values."""
    return replace(report, failures_included=report.run.failed)


def read_summary(source: Source, options: ReadOptions) -> Series:
    """Read what each summariser states last of a run, or the sum of its intervals."""
    runs: dict[str, list[dict[str, float]]] = {}
    intervals: dict[str, list[dict[str, float]]] = {}
    for row in _LINE.finditer(text_of_run(source, r"^.*\bStarting standalone test", _LINE)):
        one = {
            key: float((cell or "0").replace(",", "."))
            for key, cell in row.groupdict().items()
            if key not in ("name", "sign")
        }
        one["duration"] = 3600 * one.pop("hours") + 60 * one.pop("minutes") + one.pop("seconds")
        known = (intervals if row["sign"] == "+" else runs).setdefault(row["name"], [])
        last = known[-1] if known and row["sign"] == "=" else {"min": -1.0}
        rising = ("count", "duration", "max", "failed")
        if last["min"] >= one["min"] and all(last[key] <= one[key] for key in rising):
            known.pop()  # the same run, later
        known.append(one)
    for name in intervals.keys() - runs.keys():
        parts = intervals[name]
        total = {key: sum(one[key] for one in parts) for key in ("count", "duration", "failed")}
        total["mean"] = sum(one["mean"] * one["count"] for one in parts) / (total["count"] or 1)
        total["achieved"] = total["count"] / total["duration"] if total["duration"] else 0.0
        total |= {"min": min(one["min"] for one in parts), "max": max(one["max"] for one in parts)}
        runs[name] = [total]
    for name, known in runs.items():
        for number, one in enumerate(known, 1):
            label = [name] * (len(runs) > 1) + [f"run {number}"] * (len(known) > 1)
            facts: dict[str, Any] = one | {key: one[key] * 1e6 for key in ("min", "max", "mean")}
            facts |= {key: one[key] or None for key in ("achieved", "duration")}
            facts["failed"] = int(one["failed"])
            run = _RUN.with_notes(_SUMMED_UP)
            yield " ".join(label), report_of(facts, run, with_failures)


STATISTICS = Json(
    run=_RUN.with_notes("percentiles are taken as JMeter's default: 90, 95, 99"),
    facts={
        "min": "minResTime", "max": "maxResTime", "mean": "meanResTime", "count": "sampleCount",
        "failed": "errorCount", "achieved": "throughput",
    },
    levels={50.0: "medianResTime", 90.0: "pct1ResTime", 95.0: "pct2ResTime", 99.0: "pct3ResTime"},
    finish=with_failures,
)  # fmt: skip


def read_statistics(source: Source, options: ReadOptions) -> Series:
    """Read the dashboard's statistics, the sum of all labels first."""
    record = json_text.load(source)
    for name in sorted(record, key=lambda label: label != "Total"):
        data = STATISTICS.data(record[name])
        yield name, data.with_run(aggregate=name == "Total" and len(record) > 1)


FORMATS = {
    "jmeter-csv": (sniff_csv, read_csv),
    "jmeter-xml": (has_match(r"\A[\s\S]{0,2000}?<testResults\b"), read_xml),
    "jmeter-statistics": read_statistics,
    "jmeter-summary": (has_match(_LINE, plain=plain), read_summary),
}
