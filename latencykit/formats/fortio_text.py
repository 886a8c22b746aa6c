"""fortio's text: what it prints of a run, made into the record that its JSON would have been.

The text goes to standard error, often with lines of a log between its own, and with ``-json -`` the JSON stands right
after it: then the JSON is what is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from latencykit.errors import UsageError
from latencykit.formats import jsontext
from latencykit.formats.base import Confidence, Format
from latencykit.formats.fortio import rung_of_record
from latencykit.formats.sections import command_of, plain, sections
from latencykit.formats.shaping import distinct
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from latencykit.formats.base import Head, ReadOptions, Rung, Source
    from latencykit.formats.sections import Section

__all__ = ["FORMATS"]

_BEGIN = re.compile(r"^Fortio (\S+) running at (\S+) queries per second[^\n]*?: (\S+)[ \t]*$", re.MULTILINE)
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


def sniff(head: Head) -> Confidence:
    """Tell the first line of a run, or the line above its histogram."""
    text = plain(head.text)
    found = _BEGIN.search(text) or "\nAggregated Function Time : count " in f"\n{text}"
    return Confidence.CERTAIN if found else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Rung]:  # noqa: ARG001
    """Read every run."""
    found: dict[str, Rung] = {}
    parts = sections(source, _BEGIN)
    for number, part in enumerate(parts, 1):
        name = "" if len(parts) == 1 else distinct(f"run {number}", found)
        begin = _JSON.search(part.text)
        record = _record(part) if begin is None else jsontext.parse(part.text, source, begin.start(), whole=False)
        found[name] = rung_of_record(record, source).but(command=command_of(part.text, "fortio"))
    return found


def _record(part: Section) -> dict[str, Any]:
    """The run as fortio's JSON has it, times in seconds."""
    text = part.text
    blocks = {row[1]: _histogram(row) for row in _BLOCK.finditer(text)}
    if "Aggregated Function Time" not in blocks:
        raise part.corrupt(None, "the run has no Aggregated Function Time", "what fortio prints at its end", "did the run end?")
    begin, started, ended, done = (one.search(text) for one in (_BEGIN, _STARTED, _ENDED, _DONE))
    asked = started[1] if started else begin[2] if begin else ""
    rate = ended[2] if ended else done[1] if done else 0
    try:
        duration = parse_duration(ended[1]) if ended else 0.0
    except UsageError:
        raise part.corrupt(ended.start() if ended else None, "a duration that cannot be read", "such as 3.01s", "") from None
    codes = {code: int(count) for code, count in _CODE.findall(text)}
    web = bool(begin and begin[3].startswith("http")) or bool(codes and all(code.lstrip("-").isdigit() for code in codes))
    return {
        "RunType": "HTTP" if web else "",
        "Version": begin[1] if begin else None,
        "RequestedQPS": asked if re.fullmatch(r"[\d.]+(?:e[-+]?\d+)?", asked) else "max",
        "ActualQPS": rate,
        "ActualDuration": duration,
        "NumThreads": int(started[2]) if started else None,
        "RetCodes": codes,
        "DurationHistogram": blocks["Aggregated Function Time"],
        "ErrorsDurationHistogram": blocks.get("Error cases") or ({"Count": 0} if "\nError cases : no data" in text else None),
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
        "Data": [{"Start": low, "End": high, "Count": count} for low, high, count in _BUCKET.findall(row[8])],
        "Percentiles": [{"Percentile": p, "Value": value} for p, value in _POINT.findall(row[8])],
    }


FORMATS = (
    Format(
        "fortio-text", "fortio (text)", "histogram", (".txt",), sniff, read, unit="s",
        example="fortio load -qps 200 -c 4 -t 30s -p 50,90,99,99.9 http://127.0.0.1:8080/ > out.txt 2>&1",
    ),
)  # fmt: skip
