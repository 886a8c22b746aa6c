"""fortio: its JSON and its text: a histogram with edges in seconds, and interpolated percentiles.

fortio's calls are paced (or at full speed with ``-qps 0``) and timed from their send; by default it
makes up for calls that a stall delayed, so their number proves nothing. The histogram includes
failed calls, whose own histogram is beside it. The text goes to standard error, often with lines of
a log between its own; with ``-json -`` the JSON follows right after it, and is what is read.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from latencykit._typing import JSONObject
from latencykit.core.run import Run
from latencykit.io import build, json_text
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import command_of, has_match, plain, text_of_run
from latencykit.units import parse_duration

Buckets = list[tuple[float, float, int]]  # lower end, upper end (ns), count

_NEAR = 1.0  # ns


def read(source: Source, options: ReadOptions) -> Series:
    """Read a result, or each of a list of results."""
    record = json_text.load(source)
    results = record if isinstance(record, list) else [record]
    for result in results:
        label = "" if len(results) == 1 else str(result.get("Labels") or "run").strip(" ,")
        yield label, _result(result, source)


def _result(record: JSONObject, source: Source) -> Data:
    """One result; failed calls are taken out of its histogram where theirs is known."""
    total = json_text.entry(record, "DurationHistogram", source)
    failures = record.get("ErrorsDurationHistogram") or {}
    failed = int(failures.get("Count") or 0)
    if not failures and record.get("RunType", "HTTP") == "HTTP":  # without their histogram
        codes = {str(code): int(count) for code, count in (record.get("RetCodes") or {}).items()}
        failed = sum(
            count
            for code, count in codes.items()
            if not (code.isdigit() and 200 <= int(code) < 400)
        )
    threads = int(record.get("NumThreads") or 0) or None
    try:
        rate = max(float(record.get("RequestedQPS") or 0), 0.0)
    except ValueError:  # "max"
        rate = 0.0
    run = Run(
        tool="fortio", version=str(record["Version"]) if record.get("Version") else None,
        loop="paced" if rate else "closed", measure="service", corrected="none",
        start=build.epoch_seconds(record.get("StartTime")),
        duration=float(record.get("ActualDuration") or 0) / 1e9 or None, rate=rate or None,
        achieved=float(record.get("ActualQPS") or 0) or None, connections=threads,
        expected_interval=round(1e9 * threads / rate, 3) if threads and rate else None,
        failed=failed, timeout=float(record.get("HTTPReqTimeOut") or 0) or None,
        unit="s", unit_from="format",
    )  # fmt: skip
    calls = int(total.get("Count") or 0)
    if calls <= failed:
        return build.unanswered(run)
    buckets = _buckets(total, source)
    if buckets and sum(count for _, _, count in buckets) != calls:
        seen = f"the buckets do not contain {calls:,} calls"
        raise source.corrupt(None, seen, "as many as Count says", "run fortio anew")
    names = {"min": "Min", "max": "Max", "mean": "Avg", "std": "StdDev"}
    stats = build.in_nanoseconds({name: total.get(key) for name, key in names.items()}, "s")
    rows = total.get("Percentiles") or ()
    listed = {float(_number(row, "Percentile", source)): row.get("Value") for row in rows}
    points = build.in_nanoseconds(listed, "s")
    mixed = run.with_notes(*build.mixed_note(failed, "failed calls"))
    good = _without(buckets, _buckets(failures, source)) if failed else None
    if not buckets or (failed and good is None):  # fortio -quiet prints percentiles only
        ranks = np.cumsum([count for _, _, count in buckets])
        points = points or {
            100.0 * rank / calls: high for rank, (_, high, _) in zip(ranks, buckets, strict=True)
        }
        return build.data_from_points(points, calls - failed, stats, mixed)
    if good is not None:
        note = "fortio's percentiles include failed calls; these are of the good ones' histogram"
        run, buckets, points = run.with_notes(note), good, {}
        stats = {}  # of all calls, those that are still valid of the good ones
        if "Sum" in total and "Sum" in failures:
            own = float(total["Sum"]) - float(failures["Sum"])
            stats["mean"] = build.nanoseconds(own / (calls - failed), "s")
        if float(failures.get("Max", np.inf)) < float(total.get("Max", 0.0)):
            stats["max"] = build.nanoseconds(total["Max"], "s")
        if float(failures.get("Min", 0.0)) > float(total.get("Min", np.inf)):
            stats["min"] = build.nanoseconds(total["Min"], "s")
    highs: list[float] = []
    counts: list[int] = []
    for low, high, count in buckets:  # with an empty bucket wherever fortio left some out
        if highs and low > highs[-1] + _NEAR:
            highs.append(low)
            counts.append(0)
        highs.append(high)
        counts.append(count)
    stats.setdefault("min", buckets[0][0])
    return build.histogram_of_both(
        points, np.maximum.accumulate(highs).tolist(), counts, stats, run
    )


def _number(row: JSONObject, name: str, source: Source) -> Any:
    return json_text.entry(row, name, source, (int, float, str))


def _buckets(histogram: JSONObject, source: Source) -> Buckets:
    return [
        (
            build.nanoseconds(_number(row, "Start", source), "s"),
            build.nanoseconds(_number(row, "End", source), "s"),
            int(_number(row, "Count", source)),
        )
        for row in histogram.get("Data") or ()
    ]


def _without(buckets: Buckets, failures: Buckets) -> Buckets | None:
    """The buckets less those of the failed calls, in the same grid; None where they do not fit."""
    left = [count for _, _, count in buckets]
    for low, high, count in failures:
        inside = (
            k
            for k, bucket in enumerate(buckets)
            if bucket[0] <= low + _NEAR and high <= bucket[1] + _NEAR
        )
        at = next(inside, None)
        if at is None or left[at] < count:
            return None
        left[at] -= count
    kept = zip(buckets, left, strict=True)
    return [(low, high, count) for (low, high, _), count in kept if count] if failures else None


# ------------------------------------------------------------
# The text, made into the record that its JSON would have been.

_BEGIN = re.compile(
    r"^Fortio (\S+) running at (\S+) queries per second[^\n]*?: (\S+)[ \t]*$", re.MULTILINE
)
_NUMBER = r"(-?[\d.]+(?:e[-+]?\d+)?)"
_BLOCK = re.compile(
    r"^(?:(Aggregated Function Time|Error cases) : count (\d+) "
    rf"avg {_NUMBER} \+/- (\S+) min {_NUMBER} max {_NUMBER} sum {_NUMBER}"
    r"[ \t]*\n|\A\s*(?=# range, mid point))((?:(?:#|>)[^\n]*\n?)*)",
    re.MULTILINE,
)
_STATS = ("Count", "Avg", "StdDev", "Min", "Max", "Sum")
_BUCKET = re.compile(rf"^>=? {_NUMBER} <=? {_NUMBER} , \S+ , \S+, (\d+)[ \t]*$", re.MULTILINE)
_POINT = re.compile(rf"^# target ([\d.]+)% {_NUMBER}[ \t]*$", re.MULTILINE)
_CODE = re.compile(r"^Code +(-?\w+) : (\d+)(?: \(|$)", re.MULTILINE)
_STARTED = re.compile(r"^Starting at (\S+) qps with (\d+) thread\(s\)", re.MULTILINE)
_ENDED = re.compile(r"^Ended after (\S+) : \d+ calls\. qps=(\S+)", re.MULTILINE)
_DONE = re.compile(
    rf"^All done (\d+) calls \(plus \d+ warmup\) {_NUMBER} ms avg, (\S+) qps", re.MULTILINE
)
_JSON = re.compile(r'^\{\s*"RunType"', re.MULTILINE)
# Copies lack lines: a run ends with its last one at the latest, unless its JSON follows.
_RUNS = re.compile(rf"\A|(?<= qps)[ \t]*$(?!\s*\{{)|{_BEGIN.pattern}", re.MULTILINE)
_RESULT = re.compile(
    rf"^Aggregated Function Time : count |\A\s*# range, mid point|{_DONE.pattern}", re.MULTILINE
)


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read a run: the JSON in it, or the facts as fortio's JSON has them, times in seconds."""
    text = text_of_run(source, _RUNS, _RESULT)
    command = command_of(text, "fortio")
    if (own := _JSON.search(text)) is not None:
        record = json_text.parse(text, source, own.start(), whole=False)
        return {"": _result(record, source).with_run(command=command)}
    blocks: dict[str, dict[str, object]] = {}
    for row in _BLOCK.finditer(text):
        points = [{"Percentile": p, "Value": value} for p, value in _POINT.findall(row[8])]
        rows = [
            {"Start": low, "End": high, "Count": count}
            for low, high, count in _BUCKET.findall(row[8])
        ]
        stats = dict(zip(_STATS, row.groups()[1:7], strict=True))
        stats["Count"] = row[2] or sum(int(part["Count"]) for part in rows)  # the begin is missing
        name = row[1] or "Aggregated Function Time"
        blocks[name] = {**stats, "Data": rows, "Percentiles": points}
    begin, started, ended, done = (
        pattern.search(text) for pattern in (_BEGIN, _STARTED, _ENDED, _DONE)
    )
    if "Aggregated Function Time" not in blocks:  # not copied, or the run did not end
        if done is None:
            seen = "the run has no Aggregated Function Time"
            raise source.corrupt(None, seen, "what fortio prints at its end", "did the run end?")
        blocks["Aggregated Function Time"] = {"Count": done[1], "Avg": float(done[2]) / 1e3}
    rate = started[1] if started else begin[2] if begin else ""
    codes = {code: int(count) for code, count in _CODE.findall(text)}
    web = (begin and begin[3].startswith("http")) or (
        codes and all(code.lstrip("-").isdigit() for code in codes)
    )
    no_errors = {"Count": 0} if "\nError cases : no data" in text else None
    record = {
        "RunType": "HTTP" if web else "",
        "Version": begin[1] if begin else None,
        "RequestedQPS": rate if re.fullmatch(r"[\d.]+(?:e[-+]?\d+)?", rate) else "max",
        "ActualQPS": ended[2] if ended else done[3] if done else 0,
        "ActualDuration": parse_duration(ended[1]) if ended else 0.0,
        "NumThreads": int(started[2]) if started else None,
        "RetCodes": codes,
        "DurationHistogram": blocks["Aggregated Function Time"],
        "ErrorsDurationHistogram": blocks.get("Error cases") or no_errors,
    }
    return {"": _result(record, source).with_run(command=command)}


FORMATS = {
    "fortio": read,
    "fortio-text": (has_match(rf"{_BEGIN.pattern}|{_RESULT.pattern}", plain=plain), read_text),
}
