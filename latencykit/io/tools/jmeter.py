"""Apache JMeter's result files (JTL), as CSV and as XML, and the summary that it prints.

``timeStamp`` is the start of a sample, ``elapsed`` the time to the last byte; both in ms. (With
``sampleresult.timestamp.start=false``, the old way, it is the end; nothing in the file shows that.)
A transaction controller writes a row that sums up the samples in it.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

import numpy as np

from latencykit._text import printable
from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.io import json_text
from latencykit.io.build import (
    data_from_points,
    further_columns,
    mixed_note,
    per_operation,
    unanswered,
    without_negative,
)
from latencykit.io.rows import RowLayout, line_chunks, read_table
from latencykit.io.sniffing import has_json_keys, has_match
from latencykit.io.source import Confidence, Format, refuse_line
from latencykit.io.text_reports import plain, text_of_run

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from latencykit._typing import AnySeries
    from latencykit.io.source import Data, Head, ReadOptions, Source

_DEFAULT_COLUMNS = (
    "timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "dataType",
    "success", "failureMessage", "bytes", "sentBytes", "grpThreads", "allThreads", "URL",
    "Latency", "IdleTime", "Connect",
)  # fmt: skip
_WORDS = ("label", "success", "responseCode", "responseMessage", "threadName")
_NUMBERS = ("timeStamp", "elapsed", "allThreads")
_LARGEST = {"timeStamp": 9e12, "elapsed": 9e12}  # ms that fit in 63 bits as ns
_HEADLESS = re.compile(r"\d{13},\d+,[^,]*,[^,]*,.*,(?:true|false),")
_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,6})?"
_DAY = 86_400_000  # ms
_TRANSACTION = "^Number of samples in transaction"
_TIMEOUT = r"(?i)timeout|timed out"
_SUMMED_UP = "jmeter -l result.jtl writes every request, and so the distribution"
_SAMPLE = re.compile(rb"<(/?)(?:httpSample|sample)\b([^<>]*?)(/?)>")
_ATTRIBUTE = {
    "timeStamp": "ts", "elapsed": "t", "label": "lb", "success": "s", "threadName": "tn",
    "allThreads": "na", "responseCode": "rc", "responseMessage": "rm",
}  # fmt: skip


def sniff_csv(head: Head) -> Confidence:
    """Recognise the header, or rows in the default order."""
    line = head.lines[0] if head.lines else ""
    if {"timeStamp", "elapsed", "label"} <= set(re.split(r"[,;\t|]", line)):
        return Confidence.CERTAIN
    return Confidence.LIKELY if _HEADLESS.match(line) and line.count(",") >= 14 else Confidence.NO


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every label as a series, and all of them first."""
    lines = source.head.lines
    headed, dated = "timeStamp" in lines[0], False
    sep = next((c for c in ",;\t|" if re.search(rf"timeStamp\{c}|\{c}timeStamp", lines[0])), ",")
    columns = tuple(lines[0].split(sep)) if headed else _DEFAULT_COLUMNS
    if headed and len(lines) > 1:
        fields, at = lines[1].split(sep), columns.index("timeStamp")
        dated = len(fields) <= at or not fields[at].strip().isdigit()
    words = [name for name in _WORDS if name in columns]
    numbers = [name for name in _NUMBERS if name in columns]
    if dated:
        numbers.remove("timeStamp")
        words.append("timeStamp")
    further = (
        [name for name in columns if name not in (*words, *_NUMBERS)] if options.columns else []
    )
    layout = RowLayout(
        columns, tuple(numbers), (*words, *further), sep, skip=int(headed),
        optional=("allThreads",), loose=tuple(further), na=("null",), largest=_LARGEST,
    )  # fmt: skip
    frame, notes = read_table(source, options, layout)
    if dated:
        frame["timeStamp"], note = _dated(frame["timeStamp"].astype(str), source)
        notes += (note,)
    return _series(frame, notes, options)


def _dated(stamps: AnySeries, source: Source) -> tuple[AnySeries, str]:
    """Dates, or times of a day, in ms since the epoch, and the note on what they do not say."""
    import pandas as pd

    clock = bool(stamps.str.fullmatch(_CLOCK).all())
    try:
        with warnings.catch_warnings():
            # pandas would guess the format of each cell on its own.
            warnings.simplefilter("error", UserWarning)
            dates = "1970-01-01 " + stamps if clock else stamps
            when = pd.to_datetime(dates, utc=True).dt.tz_localize(None)
        bad = "it is empty" if when.isna().any() else ""
    except UserWarning:
        bad = printable(stamps.iloc[0], 40)
    except (ValueError, OverflowError) as error:
        bad = printable(str(error), 80)
    if bad:
        seen = f"timeStamp is not a date that can be read ({bad})"
        hint = "set jmeter.save.saveservice.timestamp_format=ms"
        raise source.corrupt(2, seen, "milliseconds since the epoch", hint)
    ms = when.to_numpy().astype("datetime64[ms]").astype(np.int64)
    note = "timeStamp contains dates without a time zone; they were taken as UTC"
    if clock:  # rows are written when their requests end: far back is the next day
        ms += np.cumsum(np.diff(ms, prepend=ms[:1]) < -_DAY // 2) * _DAY
        note = "timeStamp contains times without a date"
    return pd.Series(ms, index=stamps.index), note


def _series(frame: pd.DataFrame, notes: tuple[str, ...], options: ReadOptions) -> dict[str, Data]:
    """Columns of a JTL as samples, one series per label."""
    outcome, sums = None, np.zeros(len(frame), np.bool_)
    if "success" in frame:
        failed = _matching(frame["success"], "(?i)^false$")
        outcome = np.where(failed, OUTCOMES.index("error"), 0).astype(np.int8)
        for name in ("responseCode", "responseMessage"):
            if name in frame and failed.any():
                outcome[failed & _matching(frame[name], _TIMEOUT)] = OUTCOMES.index("timeout")
    if "responseMessage" in frame:
        sums = _matching(frame["responseMessage"], _TRANSACTION)
    stamps, threads = frame.get("timeStamp"), frame.get("threadName")
    facts: dict[str, object] = {
        "start": None if stamps is None else np.rint(stamps.to_numpy()).astype(np.int64),
        "duration": frame["elapsed"].to_numpy(np.float64),
        "outcome": outcome,
        "connection": None if threads is None else _codes(threads),
        "code": _codes(frame["label"]),
        "sums": sums,
    }
    if options.columns:
        used = ["timeStamp", "elapsed", "success", "failureMessage"]
        facts["columns"] = further_columns([frame.drop(columns=used, errors="ignore")])
    columns, left_out = without_negative(facts, options)
    code, sums = columns.pop("code"), columns.pop("sums")
    further = columns.pop("columns", {})
    names = [str(name) for name in frame["label"].astype("category").cat.categories]
    apart = [names[k] for k in np.unique(code[sums]).tolist()]
    if apart:
        note = "transactions, sums of other samples; they are left out of the aggregate"
        left_out += (f"{', '.join(apart)}: {note}",)
    most = frame["allThreads"].max() if "allThreads" in frame and len(frame) else np.nan
    if not np.isfinite(most) and "connection" in columns and len(frame):
        most = np.unique(columns["connection"]).size
    run = Run(
        tool="JMeter", loop="closed", measure="service", corrected="none", unit="ms",
        connections=int(most) if np.isfinite(most) and most > 0 else None, unit_from="format",
        notes=(*notes, *left_out),
    )  # fmt: skip
    return per_operation(
        Samples(unit="ms", run=run, **columns).with_columns(further), code, names, apart=apart
    )


def _codes(column: AnySeries) -> NDArray[np.int64]:
    return np.asarray(column.astype("category").cat.codes, np.int64)


def _matching(column: AnySeries, pattern: str) -> NDArray[np.bool_]:
    """The rows that match; each distinct text is compared once, and a missing one has code -1."""
    kinds = column.astype("category").cat
    matches = [re.search(pattern, str(kind)) is not None for kind in kinds.categories]
    return np.asarray([*matches, False], np.bool_)[kinds.codes.to_numpy()]


def read_xml(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every label as a series; samples inside samples (redirects, …) are parts of theirs."""
    from html import unescape

    import pandas as pd

    depth, frames, ended = 0, [], False
    for line, chunk in line_chunks(source):
        elements = _SAMPLE.findall(chunk)
        ended = b"</testResults>" in chunk
        texts = []
        for closing, attributes, empty in elements:
            if depth == 0 and not closing:
                texts.append(attributes.decode("utf-8", "replace"))
            depth += -1 if closing else 0 if empty else 1
        text = pd.Series(texts, dtype=object)
        part = pd.DataFrame(
            {
                name: text.str.extract(rf'(?:^|\s){key}="([^"]*)"', expand=False)
                for name, key in _ATTRIBUTE.items()
            }
        )
        for name in _NUMBERS:
            part[name] = pd.to_numeric(part[name], errors="coerce")
        bad = part["label"].isna()
        for name, most in _LARGEST.items():
            bad |= part[name].isna() | (part[name].abs() > most)
        if bad.any():
            refuse_line(source, options, line, "a sample without t, ts or lb", "all three")
        frames.append(part[~bad])
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    if not len(frame):
        return {}
    kinds = frame["label"].astype("category")
    names = {name: unescape(name) for name in kinds.cat.categories}
    frame["label"] = kinds.map(names).astype(str)
    note = (
        "the file ends before </testResults>: the test was still running, or the file is truncated"
    )
    return _series(frame.dropna(axis=1, how="all"), () if ended else (note,), options)


_SUMMARY = re.compile(
    r"^(?:[^\n=]{0,400}?[ \t])??(\S{0,200}) ([=+]) +(\d+) in +(?:(\d+):(\d+):)?"
    r"(\d+(?:[.,]\d+)?)s? = +([\d.,]+)/s Avg: +(\d+) Min: +(\d+) Max: +(\d+) Err: +(\d+)",
    re.MULTILINE,
)


def read_summary(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read what each summariser states last of a run, or the sum of its intervals."""
    runs: dict[str, list[dict[str, float]]] = {}
    intervals: dict[str, list[dict[str, float]]] = {}
    for row in _SUMMARY.finditer(text_of_run(source, r"^.*\bStarting standalone test", _SUMMARY)):
        numbers = _summed_up(row)
        if row[2] == "+":
            intervals.setdefault(row[1], []).append(numbers)
            continue
        known = runs.setdefault(row[1], [])
        if known and _goes_on(known[-1], numbers):
            known[-1] = numbers
        else:
            known.append(numbers)
    for name in intervals.keys() - runs.keys():
        runs[name] = [_sum_of(intervals[name])]
    return {
        " ".join(
            ([name] if len(runs) > 1 else []) + ([f"run {number}"] if len(known) > 1 else [])
        ): _of_summary(numbers)
        for name, known in runs.items()
        for number, numbers in enumerate(known, 1)
    }


def _summed_up(row: re.Match[str]) -> dict[str, float]:
    """The numbers of a line of the summariser."""
    count, hours, minutes, seconds, rate, mean, low, high, failed = (
        float((cell or "0").replace(",", ".")) for cell in row.groups()[2:]
    )
    length = 3600 * hours + 60 * minutes + seconds
    return {
        "count": count, "seconds": length, "rate": rate, "mean": mean, "min": low, "max": high,
        "failed": failed,
    }  # fmt: skip


def _goes_on(before: dict[str, float], after: dict[str, float]) -> bool:
    """True if a line may sum up the same run as an earlier one: nothing it states was undone."""
    grown = all(before[name] <= after[name] for name in ("count", "seconds", "max", "failed"))
    return grown and before["min"] >= after["min"]


def _sum_of(intervals: list[dict[str, float]]) -> dict[str, float]:
    """What all intervals of a run have in sum."""
    count, seconds, failed = (
        sum(one[name] for one in intervals) for name in ("count", "seconds", "failed")
    )
    mean = sum(one["mean"] * one["count"] for one in intervals) / count if count else 0.0
    return {
        "count": count, "seconds": seconds, "rate": count / seconds if seconds else 0.0,
        "mean": mean, "min": min(one["min"] for one in intervals),
        "max": max(one["max"] for one in intervals), "failed": failed,
    }  # fmt: skip


def _of_summary(numbers: dict[str, float]) -> Data:
    """A run as the summariser has it."""
    failed, good = int(numbers["failed"]), int(numbers["count"] - numbers["failed"])
    run = Run(
        tool="JMeter", loop="closed", measure="service", corrected="none", unit="ms",
        unit_from="format", duration=numbers["seconds"] or None, achieved=numbers["rate"] or None,
        failed=failed, notes=(*mixed_note(failed), _SUMMED_UP),
    )  # fmt: skip
    if good <= 0:
        return unanswered(run)
    stats = {name: numbers[name] for name in ("mean", "min", "max")}
    return data_from_points({}, good, stats, run, "ms")


_SHARES = {50.0: "medianResTime", 90.0: "pct1ResTime", 95.0: "pct2ResTime", 99.0: "pct3ResTime"}


def read_statistics(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the dashboard's statistics, the sum of all labels first."""
    record = json_text.load(source)
    series: dict[str, Data] = {}
    for name in sorted(record, key=lambda label: label != "Total"):
        row = record[name]
        failed = int(row["errorCount"])
        run = Run(
            tool="JMeter", loop="closed", measure="service", corrected="none", unit="ms",
            unit_from="format", achieved=row.get("throughput") or None, failed=failed,
            aggregate=name == "Total" and len(record) > 1,
            notes=("percentiles are taken as JMeter's default: 90, 95, 99", *mixed_note(failed)),
        )  # fmt: skip
        points = {p: row.get(key) for p, key in _SHARES.items()}
        stats = {kind: row.get(f"{kind}ResTime") for kind in ("min", "max", "mean")}
        good = max(int(row["sampleCount"]) - failed, 0)
        series[name] = data_from_points(points, good, stats, run, "ms")
    return series


FORMATS = (
    Format(
        "jmeter-csv", "JMeter results (JTL, CSV)", "samples", (".jtl", ".csv"), sniff_csv,
        read_csv, unit="ms", example="jmeter -n -t plan.jmx -l result.jtl",
    ),
    Format(
        "jmeter-xml", "JMeter results (JTL, XML)", "samples", (".jtl", ".xml"),
        has_match(r"\A[\s\S]{0,2000}?<testResults\b"), read_xml, unit="ms",
        example="jmeter -n -t plan.jmx -l result.jtl "
        "-Jjmeter.save.saveservice.output_format=xml",
    ),
    Format(
        "jmeter-statistics", "JMeter's dashboard (statistics.json)", "histogram", (".json",),
        has_json_keys(("sampleCount", "meanResTime", "pct1ResTime")), read_statistics,
        unit="ms",
        example="jmeter -n -t plan.jmx -l result.jtl -e -o out   # writes out/statistics.json",
    ),
    Format(
        "jmeter-summary", "JMeter (what it prints)", "summary", (".txt", ".log"),
        has_match(_SUMMARY, plain=plain), read_summary, unit="ms",
        example="jmeter -n -t plan.jmx -l result.jtl > out.txt   # result.jtl has every request",
    ),
)  # fmt: skip
