"""fortio's JSON: a histogram with edges in seconds, and percentiles interpolated in it.

fortio's calls are paced (or at full speed with ``-qps 0``) and timed from their send; by default it makes up for calls that
a stall held back, so their number proves nothing. The histogram takes in failed calls, whose own histogram lies beside it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    distinct,
    histogram_of_both,
    mixed_note,
    nanoseconds,
    nothing_answered,
)
from latencykit.io.source import Confidence, Format
from latencykit.io.text import command_of, epoch_seconds, plain_report, sections
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source
    from latencykit.io.text import Section

    Buckets = list[tuple[float, float, int]]  # lower end, upper end (ns), count

__all__ = ["FORMATS", "rung_of_record"]


_NEAR = 1.0  # ns


def sniff(head: Head) -> Confidence:
    """Tell the keys."""
    found = jsontext.has_keys(head, "DurationHistogram") and any(
        f'"{key}"' in head.text for key in ("RunType", "ActualQPS")
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read a result, or each of a list of results."""
    record = jsontext.load(source)
    results = record if isinstance(record, list) else [record]
    found: dict[str, Data] = {}
    for one in results:
        name = (
            ""
            if len(results) == 1
            else distinct(str(one.get("Labels") or "run").strip(" ,"), found)
        )
        found[name] = rung_of_record(one, source)
    return found


def rung_of_record(record: dict[str, Any], source: Source) -> Data:
    """Return one result; failed calls are taken out of its histogram where theirs is known."""
    whole = jsontext.entry(record, "DurationHistogram", source)
    failures = record.get("ErrorsDurationHistogram") or {}
    failed = int(failures.get("Count") or 0) if failures else _failed_by_codes(record)
    run, total = _run(record, failed), int(whole.get("Count") or 0)
    if total <= failed:
        raise nothing_answered(source, run)
    buckets = _buckets(whole)
    if buckets and sum(count for _, _, count in buckets) != total:
        raise source.corrupt(
            None,
            f"the buckets do not hold {total:,} calls",
            "as many as Count says",
            "run fortio anew",
        )
    names = {"min": "Min", "max": "Max", "mean": "Avg", "std": "StdDev"}
    stats = {
        ours: nanoseconds(float(whole[theirs]), "s")
        for ours, theirs in names.items()
        if whole.get(theirs) is not None
    }
    points = {
        float(one["Percentile"]): nanoseconds(float(one["Value"]), "s")
        for one in whole.get("Percentiles") or ()
    }
    if not buckets:  # fortio -quiet prints percentiles only
        return data_from_points(
            points, total - failed, stats, run.with_notes(*mixed_note(failed, "failed calls"))
        )
    if failed:
        good = _without(buckets, _buckets(failures))
        if good is None:
            run = run.with_notes(*mixed_note(failed, "failed calls"))
        else:
            run = run.with_notes(
                "fortio's percentiles take in failed calls; these are of the good ones' histogram"
            )
            buckets, points, stats = good, {}, _good_stats(whole, failures, total - failed)
    highs, counts = _without_gaps(buckets)
    stats.setdefault("min", buckets[0][0])
    return histogram_of_both(points, highs, counts, stats, run)


def _buckets(histogram: dict[str, Any]) -> Buckets:
    return [
        (
            nanoseconds(float(one["Start"]), "s"),
            nanoseconds(float(one["End"]), "s"),
            int(one["Count"]),
        )
        for one in histogram.get("Data") or ()
    ]


def _without_gaps(buckets: Buckets) -> tuple[list[float], list[int]]:
    """Upper ends and counts, with an empty bucket wherever fortio left some out."""
    highs: list[float] = []
    counts: list[int] = []
    for low, high, count in buckets:
        if highs and low > highs[-1] + _NEAR:
            highs.append(low)
            counts.append(0)
        highs.append(high)
        counts.append(count)
    return np.maximum.accumulate(highs).tolist(), counts


def _without(buckets: Buckets, failures: Buckets) -> Buckets | None:
    """The buckets less those of the failed calls, which lie in the same grid; None where they do not fit."""
    left = [count for _, _, count in buckets]
    for low, high, count in failures:
        at = next(
            (
                k
                for k, one in enumerate(buckets)
                if one[0] <= low + _NEAR and high <= one[1] + _NEAR
            ),
            None,
        )
        if at is None or left[at] < count:
            return None
        left[at] -= count
    kept = [
        (low, high, count) for (low, high, _), count in zip(buckets, left, strict=True) if count
    ]
    return kept if failures else None


def _good_stats(whole: dict[str, Any], failures: dict[str, Any], good: int) -> dict[str, float]:
    """What still holds of the statistics without the failed calls."""
    stats: dict[str, float] = {}
    if "Sum" in whole and "Sum" in failures:
        stats["mean"] = nanoseconds((float(whole["Sum"]) - float(failures["Sum"])) / good, "s")
    if float(failures.get("Max", np.inf)) < float(whole["Max"]):
        stats["max"] = nanoseconds(float(whole["Max"]), "s")
    if float(failures.get("Min", 0.0)) > float(whole["Min"]):
        stats["min"] = nanoseconds(float(whole["Min"]), "s")
    return stats


def _failed_by_codes(record: dict[str, Any]) -> int:
    """Failed calls of a version without their histogram: HTTP codes other than 2xx and 3xx."""
    codes = {str(code): int(count) for code, count in (record.get("RetCodes") or {}).items()}
    if record.get("RunType") != "HTTP":
        return 0
    return sum(
        count for code, count in codes.items() if not (code.isdigit() and 200 <= int(code) < 400)
    )


def _run(record: dict[str, Any], failed: int) -> Run:
    """What the result says of how it was made."""
    threads = int(record.get("NumThreads") or 0) or None
    try:
        rate = float(record.get("RequestedQPS") or 0)
    except ValueError:  # "max"
        rate = 0.0
    duration, timeout = (
        float(record.get("ActualDuration") or 0),
        float(record.get("HTTPReqTimeOut") or 0),
    )
    return Run(
        tool="fortio",
        version=str(record["Version"]) if record.get("Version") else None,
        loop="paced" if rate > 0 else "closed",
        measure="service",
        corrected="none",
        start=epoch_seconds(record.get("StartTime")),
        duration=duration / 1e9 or None,
        rate=rate if rate > 0 else None,
        achieved=float(record.get("ActualQPS") or 0) or None,
        connections=threads,
        expected_interval=round(1e9 * threads / rate, 3) if threads and rate > 0 else None,
        failed=failed,
        timeout=timeout or None,
        unit="s",
        unit_from="format",
    )


_FORTIO = (
    Format(
        "fortio", "fortio (JSON)", "histogram", (".json",), sniff, read, unit="s",
        example="fortio load -qps 200 -c 4 -t 30s -p 50,90,99,99.9 -json out.json http://127.0.0.1:8080/",
    ),
)  # fmt: skip


# ------------------------------------------------------------
# fortio's text: what it prints of a run, made into the record that its JSON would have been.
#
# The text goes to standard error, often with lines of a log between its own, and with ``-json -`` the JSON stands right
# after it: then the JSON is what is read.

_BEGIN = re.compile(
    r"^Fortio (\S+) running at (\S+) queries per second[^\n]*?: (\S+)[ \t]*$", re.MULTILINE
)
_NUMBER = r"(-?[\d.]+(?:e[-+]?\d+)?)"
_BLOCK = re.compile(
    rf"^(Aggregated Function Time|Error cases) : count (\d+) avg {_NUMBER} \+/- (\S+) min {_NUMBER} max {_NUMBER} sum {_NUMBER}"
    r"[ \t]*\n((?:(?:#|>)[^\n]*\n?)*)",
    re.MULTILINE,
)
_BUCKET = re.compile(rf"^>=? {_NUMBER} <= {_NUMBER} , \S+ , \S+, (\d+)[ \t]*$", re.MULTILINE)
_POINT = re.compile(rf"^# target ([\d.]+)% {_NUMBER}[ \t]*$", re.MULTILINE)
_CODE = re.compile(r"^Code +(-?\w+) : (\d+) \(", re.MULTILINE)
_STARTED = re.compile(r"^Starting at (\S+) qps with (\d+) thread\(s\)", re.MULTILINE)
_ENDED = re.compile(r"^Ended after (\S+) : \d+ calls\. qps=(\S+)", re.MULTILINE)
_DONE = re.compile(r"^All done \d+ calls \(plus \d+ warmup\) \S+ ms avg, (\S+) qps", re.MULTILINE)
_JSON = re.compile(r'^\{\s*"RunType"', re.MULTILINE)


def sniff_text(head: Head) -> Confidence:
    """Tell the first line of a run, or the line above its histogram."""
    text = plain_report(head.text)
    found = _BEGIN.search(text) or "\nAggregated Function Time : count " in f"\n{text}"
    return Confidence.CERTAIN if found else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every run."""
    found: dict[str, Data] = {}
    parts = sections(source, _BEGIN)
    for number, part in enumerate(parts, 1):
        name = "" if len(parts) == 1 else distinct(f"run {number}", found)
        begin = _JSON.search(part.text)
        record = (
            _record(part)
            if begin is None
            else jsontext.parse(part.text, source, begin.start(), whole=False)
        )
        found[name] = rung_of_record(record, source).with_run(
            command=command_of(part.text, "fortio")
        )
    return found


def _record(part: Section) -> dict[str, Any]:
    """The run as fortio's JSON has it, times in seconds."""
    text = part.text
    blocks = {row[1]: _histogram(row) for row in _BLOCK.finditer(text)}
    if "Aggregated Function Time" not in blocks:
        raise part.corrupt(
            None,
            "the run has no Aggregated Function Time",
            "what fortio prints at its end",
            "did the run end?",
        )
    begin, started, ended, done = (one.search(text) for one in (_BEGIN, _STARTED, _ENDED, _DONE))
    asked = started[1] if started else begin[2] if begin else ""
    rate = ended[2] if ended else done[1] if done else 0
    try:
        duration = parse_duration(ended[1]) if ended else 0.0
    except InvalidArgumentError:
        raise part.corrupt(
            ended.start() if ended else None, "a duration that cannot be read", "such as 3.01s", ""
        ) from None
    codes = {code: int(count) for code, count in _CODE.findall(text)}
    web = bool(begin and begin[3].startswith("http")) or bool(
        codes and all(code.lstrip("-").isdigit() for code in codes)
    )
    return {
        "RunType": "HTTP" if web else "",
        "Version": begin[1] if begin else None,
        "RequestedQPS": asked if re.fullmatch(r"[\d.]+(?:e[-+]?\d+)?", asked) else "max",
        "ActualQPS": rate,
        "ActualDuration": duration,
        "NumThreads": int(started[2]) if started else None,
        "RetCodes": codes,
        "DurationHistogram": blocks["Aggregated Function Time"],
        "ErrorsDurationHistogram": blocks.get("Error cases")
        or ({"Count": 0} if "\nError cases : no data" in text else None),
    }


def _histogram(row: re.Match[str]) -> dict[str, Any]:
    """The line of statistics and the rows below it."""
    return {
        "Count": int(row[2]),
        "Avg": row[3],
        "StdDev": row[4],
        "Min": row[5],
        "Max": row[6],
        "Sum": row[7],
        "Data": [
            {"Start": low, "End": high, "Count": count}
            for low, high, count in _BUCKET.findall(row[8])
        ],
        "Percentiles": [{"Percentile": p, "Value": value} for p, value in _POINT.findall(row[8])],
    }


_FORTIO_TEXT = (
    Format(
        "fortio-text", "fortio (text)", "histogram", (".txt",), sniff_text, read_text, unit="s",
        example="fortio load -qps 200 -c 4 -t 30s -p 50,90,99,99.9 http://127.0.0.1:8080/ > out.txt 2>&1",
    ),
)  # fmt: skip

FORMATS = (*_FORTIO, *_FORTIO_TEXT)
