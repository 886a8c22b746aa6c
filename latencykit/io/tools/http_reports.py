"""Load generators for HTTP that print reports alike: hey, oha, siege and bombardier.

hey (once boom) prints text and CSV, both in seconds with four decimals.

The histogram's first mark is the fastest request, and ten steps of equal width lead to the slowest;
a mark is the upper end of its bucket. Marks are printed with three decimals, so they are computed
anew from the two ends. oha prints the same report.

hey sends the next request when the reply to the last one arrived (or later, with ``-q``), so a
stall shows in one request per worker and in none of those that were not sent.

oha: JSON, CSV and text; times in seconds, in text in the unit behind each.

No output says whether ``--latency-correction`` was on. With it, times count from the moment a
request was due, yet those to the first byte still from the send: where the former exceed the latter
by far, and not because bodies took long, the times count from a schedule. Requests still in flight
at the deadline are dropped, and only counted.

siege: its closing table as text, and as JSON (``-j``, the default of some distributions).

siege prints times in seconds with two decimals and no distribution.

bombardier: its JSON (µs) and its text.

Every reply counts among the latencies, failed ones and timeouts, too.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._text import printable
from latencykit.core.run import Run
from latencykit.io.declared import TRUNCATED, Json, Report, Rows, Text, at, in_ns
from latencykit.io.source import Confidence, Format, Head
from latencykit.io.text_reports import below, certain, has_json_keys, has_match, plain, starts_with
from latencykit.units import format_duration

if TYPE_CHECKING:
    from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source


_RUN = Run(tool="hey", loop="closed", measure="service", corrected="none", unit="s")
_BEGIN = (  # the first line may be missing
    r"^[ \t]*[Ss]ummary:[ \t]*$"
    r"|\A\s*+(?:(?![Ss]ummary:)[^\n]{0,400}\n\s*+){0,3}?Total:[ \t]+[\d.]+ secs"
)
_FLAG = r" -{}[ =]?(\d+(?:\.\d+)?)"
_UNFINISHED = re.compile(r"aborted due to deadline", re.IGNORECASE)
_HEADER = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read"


def is_report(text: str, *distributions: str) -> bool:
    """True if text has the summary, the histogram, and percentiles under one of these headings."""
    headings = ("Response time histogram", f"(?:{'|'.join(distributions)})")
    only = r"(?: \([^)\n]*only\))?"
    found = [re.search(rf"^[ \t]*{name}{only}:[ \t]*$", text, re.MULTILINE) for name in headings]
    found.append(re.search(_BEGIN, text, re.MULTILINE))
    return all(found) and "Fastest:" in text


def sniff_text(head: Head) -> Confidence:
    """Recognise the headings; the reports of oha and ghz have others."""
    text = plain(head.text)
    other = "Success rate:" in text or re.search(r"^[ \t]*Count:\s+\d", text, re.MULTILINE)
    return certain(is_report(text, "Latency distribution") and not other)


def evenly(report: Report) -> Report:
    """Compute the marks anew, where they lead from the fastest request to the slowest."""
    late = sum(n for text, n in report.errors.items() if _UNFINISHED.search(text))
    run = report.run.replace(failed=report.run.failed - late, unfinished=late)
    if "(2xx only)" in report.text:  # of the percentiles and buckets, not of the statistics
        failed = report.mixed
        stats = {"max": report.edges[-1]} if failed and report.edges else report.stats
        count = None if report.count is None else report.count - failed
        report = replace(
            report, stats={} if failed and not report.edges else stats, mixed=0, count=count
        )
    edges, counts, stats = report.edges, report.counts, report.stats
    near = 0.0006 * (1e9 if "secs" in report.text else 1e6) + 1.0
    ends = (stats.get("min", -1e18), stats.get("max", -1e18))
    if len(edges) < 2 or abs(edges[0] - ends[0]) > near or abs(edges[-1] - ends[1]) > near:
        return replace(report, run=run, edges=(), counts=(), count=report.count or sum(counts))
    even = np.round(np.linspace(*ends, len(edges)), 3).tolist()
    return replace(report, run=run, edges=tuple(even))


def finish(report: Report) -> Report:
    """Take the loop, the rate and the timeout from the command line; etcd's benchmark has none."""
    run = report.run
    if re.search(r"^[ \t]*+Stddev:", report.text, re.MULTILINE):
        notes = tuple(note for note in run.notes if note != TRUNCATED)
        run = run.replace(tool="etcd benchmark", loop="unknown", notes=notes)
    elif run.command:
        found = {key: re.search(_FLAG.format(key), run.command) for key in "cqt"}
        flags = {key: float(match[1]) for key, match in found.items() if match}
        workers, each = int(flags.get("c", 50)), flags.get("q", 0.0)
        run = run.replace(
            connections=workers, loop="paced" if each else "closed",
            rate=each * workers or None, expected_interval=round(1e9 / each, 3) if each else None,
            timeout=flags["t"] * 1e9 if "t" in flags else None,
        )  # fmt: skip
    return evenly(replace(report, run=run, timeout=20e9))


REPORT = Text(
    run=_RUN,
    begin=_BEGIN,
    facts={
        "min": "Fastest:", "max": "Slowest:", "mean": "Average:", "duration": "Total:",
        "achieved": "Requests/sec:",
    },
    needed=("min", "max", "mean"),
    points=(
        "Response time distribution (2xx only):", "Latency distribution:",
        "Response time distribution:",
    ),
    buckets=("Response time histogram (2xx only):", "Response time histogram:"),
    statuses=("Status code distribution:",),
    errors=("Error distribution:",),
    closing=r"^[ \t]*Status code distribution:",
    commands=("hey", "boom"),
    finish=finish,
)  # fmt: skip
CSV = Rows(
    run=_RUN, columns=_HEADER, duration="response-time", unit="s", start="offset",
    status="status-code", notes=("hey prints times to 0.1 ms",), most=1_000_000,
    most_note="hey keeps the first million replies: the run may have been longer",
)  # fmt: skip


# ------------------------------------------------------------
# oha: JSON, CSV and text; times in seconds, in text in the unit behind each.

_OHA_HEADER = "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status"
_OHA_RUN = Run(tool="oha", measure="service", unit="s", unit_from="format")
_SERVICE: dict[str, Any] = {"loop": "closed", "measure": "service", "corrected": "none"}
_SCHEDULE: dict[str, Any] = {"loop": "open", "measure": "response", "corrected": "schedule"}
_APART, _OFTEN, _EVEN = 1.5, 20, 0.9
_FROM_SCHEDULE = (
    "times exceed those to the first byte, yet not by the time of a body: "
    "they count from the schedule"
)


def sniff_oha_text(head: Head) -> Confidence:
    """Recognise the headings, and the success rate that hey does not print."""
    text = plain(head.text)
    headings = ("Response time distribution", "Latency distribution")
    return certain("Success rate:" in text and is_report(text, *headings))


def finish_oha_text(report: Report) -> Report:
    """Take the loop from the command line."""
    command, run = report.run.command, report.run
    if command is not None:
        run = run.replace(**(_SCHEDULE if "--latency-correction" in command else _SERVICE))
    return evenly(replace(report, run=run, timeout=0.0))


def finish_oha_json(report: Report, record: Any) -> Report:
    """Compare the times to the first byte with the total ones; equal marks fall together."""
    good = (report.count or 0) - (report.mixed if report.text else 0)
    if sum(report.counts) != good:
        report = replace(report, edges=(), counts=())
    first = at(record, "firstBytePercentiles") or {}
    slowest, top = at(record, "details.firstByte.slowest"), report.stats.get("max")
    run = report.run
    if first and slowest is not None and top:
        pairs = ((float(p[1:]), in_ns(v, "s")) for p, v in first.items() if v)
        if not any(report.points.get(p, 0.0) > _APART * value for p, value in pairs):
            run = run.replace(**_SERVICE)
        elif top <= _APART * in_ns(slowest, "s"):
            run = run.replace(**_SCHEDULE).with_notes(_FROM_SCHEDULE)
    if report.count is None:  # parts were cut out
        return replace(report, run=run)
    return evenly(replace(report, run=run, timeout=0.0))


def finish_rows(frame: Any, given: dict[str, Any], run: Run) -> tuple[dict[str, Any], Run]:
    """Find the moments at which requests were due, where these show an even schedule."""
    delay = np.rint(frame["Response-delay"].to_numpy(np.float64) * 1e9).astype(np.int64)
    due = given["start"] - (given["duration"] - delay)
    rate = None
    if due.size >= _OFTEN and (given["duration"] > _APART * delay).any():
        steps = np.diff(np.sort(due)).astype(np.float64)
        step = float(np.median(steps))
        even = np.abs(steps - step) <= 0.25 * step + 50_000
        rate = round(1e9 / step, 3) if step > 0 and even.mean() >= _EVEN else None
    if rate is None:
        return given, run.replace(**_SERVICE)
    run = run.replace(**_SCHEDULE, rate=rate).with_notes(_FROM_SCHEDULE)
    return given | {"intended": due, "duration": delay}, run


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read percentiles and buckets, of good replies alone with ``--stats-success-breakdown``."""
    apart = '"latencyPercentilesSuccessful": {' in source.text()
    return (_APART_JSON if apart else _OHA_JSON)(source, options)


_OHA_JSON = Json(
    run=_OHA_RUN,
    facts={
        "min": "summary.fastest", "max": "summary.slowest", "mean": "summary.average",
        "duration": "summary.total", "achieved": "summary.requestsPerSec",
    },
    needed=("summary", "latencyPercentiles"),
    points="latencyPercentiles",
    buckets="responseTimeHistogram",
    statuses="statusCodeDistribution",
    errors="errorDistribution",
    finish=finish_oha_json,
)  # fmt: skip
_APART_JSON = replace(
    _OHA_JSON, points="latencyPercentilesSuccessful", buckets="responseTimeHistogramSuccessful",
    finish=lambda report, record: finish_oha_json(replace(report, text="(2xx only)"), record),
)  # fmt: skip
_COMMAND = "oha -z 30s -q 200 --latency-correction --no-tui"


# ------------------------------------------------------------
# siege: its closing table as text, and as JSON (``-j``, the default of some distributions).

_SIEGE_RUN = Run(
    tool="siege", loop="closed", measure="service", corrected="none", unit="s",
    unit_from="format",
)  # fmt: skip
_SIEGE_HINT = (
    "siege keeps no distribution; its --log and verbose lines contain single requests to 10 ms at "
    "best: measure with a tool that prints percentiles"
)
_LABELS = {
    "count": "Transactions", "failed": "Failed transactions", "duration": "Elapsed time",
    "achieved": "Transaction rate", "connections": "Concurrency", "mean": "Response time",
    "min": "Shortest transaction", "max": "Longest transaction",
}  # fmt: skip


def finish_siege(report: Report, _: Any = None) -> Report:
    """Work the mean out where siege printed it too coarsely; `connections` are its concurrency."""
    run, mean = report.run, report.stats["mean"]
    busy = (run.connections or 0.0) * (run.duration or 0.0)
    notes = ["siege prints times to 10 ms", _SIEGE_HINT]
    if mean < 1e8 and busy and report.count:
        note = "the mean is concurrency x elapsed time / transactions"
        notes.insert(0, f"{note}; siege printed {format_duration(mean)}")
        mean = busy / report.count * 1e9
    stats = {"min": 0.0} | dict(report.stats) | {"mean": round(mean, 3)}
    return replace(report, run=run.replace(connections=None).with_notes(*notes), stats=stats)


_CELL = r'^[ \t]*"?{}"?[ \t]*:[ \t]*([\d.]+)[ \t]*(ms\b)?'
SIEGE_TEXT = Text(
    run=_SIEGE_RUN,
    begin=r"^[ \t]*Transactions:",
    facts={name: _CELL.format(label) for name, label in _LABELS.items()},
    needed=("count", "mean", "max"),
    finish=finish_siege,
)
SIEGE_JSON = Json(
    run=_SIEGE_RUN,
    facts={name: label.lower().replace(" ", "_") for name, label in _LABELS.items()},
    needed=(),
    begin=r'^[ \t]*\{\s*"transactions":',
    finish=finish_siege,
)


# ------------------------------------------------------------
# bombardier: its JSON (µs) and its text.

_BOMBARDIER_RUN = Run(tool="bombardier", loop="closed", measure="service", corrected="none")
_BOMBARDIER_HINT = "bombardier --latencies prints the distribution (of 50, 75, 90, 95 and 99 %)"
_BOMBARDIER_JSON = r'^[ \t]*\{\s*"spec"'
_BOMBARDIER_BEGIN = r"^Bombarding \S+ "
_TITLE = r"^Statistics\s+Avg\s+Stdev\s+Max\s*$"
_TIMEOUT = re.compile(r"timeout|timed out|deadline", re.IGNORECASE)
_CODES = re.compile(
    r"1xx - (\d+), 2xx - (\d+), 3xx - (\d+), 4xx - (\d+), 5xx - (\d+)\s+others - (\d+)"
)
_ERROR = re.compile(r"[ \t]*(\S.*) - (\d+)[ \t]*")


def _counted(report: Report, codes: list[int], errors: dict[str, int]) -> Report:
    """Failures by status (of 400 and above, or none), timeouts among them by their text."""
    late = min(sum(count for text, count in errors.items() if _TIMEOUT.search(text)), codes[5])
    bad = sum(codes[3:])
    notes = [f"{count:,} × {printable(text, 100)}" for text, count in list(errors.items())[:5]]
    run = report.run.replace(failed=bad - late, timeouts=late).with_notes(*notes)
    run = run if report.points or sum(codes) == bad else run.with_notes(_BOMBARDIER_HINT)
    return replace(report, run=run, count=sum(codes), mixed=bad)


def finish_bombardier_json(report: Report, record: Any) -> Report:
    """Take the load from the specification, and count replies by status."""
    result, run = record["result"], report.run
    names = ("req1xx", "req2xx", "req3xx", "req4xx", "req5xx", "others")
    codes = [int(result.get(name) or 0) for name in names]
    errors = {
        str(row.get("description", row.get("Error"))): int(row["count"])
        for row in result.get("errors") or ()
    }
    rate, clients = at(record, "spec.rate"), run.connections or None
    run = run.replace(
        connections=clients, loop="paced" if rate else "closed", rate=float(rate) if rate else None,
        achieved=sum(codes) / run.duration if run.duration else None,
        expected_interval=round(clients / rate * 1e9, 3) if rate and clients else None,
        timeout=run.timeout and run.timeout * 1e6,  # the only time that is not in µs
    )  # fmt: skip
    return _counted(replace(report, run=run), codes, errors)


def finish_bombardier_text(report: Report) -> Report:
    """Count replies by status; a fork prints a second distribution, of the good ones."""
    codes = _CODES.search(report.text)
    assert codes is not None
    lines = (line.strip() for _, line in below(report.text[codes.end() :], "Errors:"))
    errors = {row[1]: int(row[2]) for row in map(_ERROR.fullmatch, lines) if row}
    return _counted(report, [int(number) for number in codes.groups()], errors)


BOMBARDIER_TEXT = Text(
    run=_BOMBARDIER_RUN.replace(unit_from="file"),
    begin=_BOMBARDIER_BEGIN,
    facts={
        "mean": r"^[ \t]*Latency\s+(\d\S*)\s+\S+\s+\S+\s*$",
        "std": r"^[ \t]*Latency\s+\d\S*\s+(\S+)\s+\S+\s*$",
        "max": r"^[ \t]*Latency\s+\d\S*\s+\S+\s+(\S+)\s*$",
        "duration": r" for ([\d.hms]+) using", "connections": r"using (\d+) connection",
    },
    present=dict.fromkeys((_TITLE, _CODES.pattern), "the closing table is missing"),
    points=("Latency Distribution (Total)", "Latency Distribution"),
    finish=finish_bombardier_text,
)  # fmt: skip
BOMBARDIER_JSON = Json(
    run=_BOMBARDIER_RUN.replace(unit="us", unit_from="format"),
    begin=_BOMBARDIER_JSON,
    unit="us",
    facts={
        "mean": "result.latency.mean", "std": "result.latency.stddev",
        "max": "result.latency.max", "duration": "result.timeTakenSeconds",
        "connections": "spec.numberOfConnections", "timeout": "spec.timeoutSeconds",
    },
    needed=("spec", "result"),
    points="result.latency.percentiles",
    finish=finish_bombardier_json,
)  # fmt: skip


FORMATS = (
    Format(
        "hey", "hey (text)", "histogram", (".txt",), sniff_text, REPORT, unit="s",
        example="hey -z 30s -c 8 http://127.0.0.1:8080/ > hey.txt",
    ),
    Format(
        "hey-csv", "hey (CSV)", "samples", (".csv",), starts_with(_HEADER), CSV, unit="s",
        example="hey -z 30s -c 8 -o csv http://127.0.0.1:8080/ > hey.csv",
    ),
    Format(
        "oha-json", "oha (JSON)", "histogram", (".json",),
        has_json_keys(
            ("summary", "responseTimeHistogram", "latencyPercentiles"),
            ("summary", "latencyPercentiles", "statusCodeDistribution"),  # parts were cut out
            ("summary", "latencyPercentiles", "successRate"),
        ),
        read_json,
        unit="s", example=f"{_COMMAND} --output-format json http://127.0.0.1:8080/ > oha.json",
    ),
    Format(
        "oha-csv", "oha (CSV)", "samples", (".csv",), starts_with(_OHA_HEADER),
        Rows(
            run=_OHA_RUN, columns=_OHA_HEADER, duration="request-duration", unit="s",
            start="request-start", status="status", numbers=("Response-delay",), finish=finish_rows,
        ),
        unit="s",
        example=f"{_COMMAND} --output-format csv http://127.0.0.1:8080/ > oha.csv",
    ),
    Format(
        "oha", "oha (text)", "histogram", (".txt",), sniff_oha_text,
        replace(
            REPORT, run=_OHA_RUN.replace(unit_from="file"), commands=("oha",),
            finish=finish_oha_text,
        ),
        example=f"{_COMMAND} http://127.0.0.1:8080/ > oha.txt",
    ),
    Format(
        "siege", "siege (text)", "summary", (".txt",),
        has_match("Availability:", r"Longest transaction:\s"), SIEGE_TEXT, unit="s",
        example="siege -b -c 4 -t 60S URL 2> siege.txt",
    ),
    Format(
        "siege-json", "siege (JSON)", "summary", (".json", ".txt"),
        has_match('"transactions":', '"availability":', '"longest_transaction":'), SIEGE_JSON,
        unit="s", example="siege -j -b -c 4 -t 60S URL > siege.json",
    ),
    Format(
        "bombardier-json", "bombardier (JSON)", "histogram", (".json",),
        has_match(_BOMBARDIER_JSON, '"result"', '"timeTakenSeconds"', '"req2xx"'), BOMBARDIER_JSON,
        unit="us", example="bombardier -l -o json -p r URL > out.json",
    ),
    Format(
        "bombardier", "bombardier (text)", "histogram", (".txt",),
        has_match(
            rf"{_TITLE}\n[ \t]*Reqs/sec\s|{_BOMBARDIER_BEGIN}", plain=plain, without='"req2xx"',
        ),
        BOMBARDIER_TEXT,
        example="bombardier -l URL > out.txt",
    ),
)  # fmt: skip
