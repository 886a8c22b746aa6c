"""Artillery: the JSON of ``artillery run --output``, and what it prints, of versions 2 and 1.

Users arrive by a schedule; each sends its requests one after the other, timed from their send. The
percentiles of version 2 come from a sketch that is right within 1 %.
"""

from __future__ import annotations

import re
from typing import Any

from latencykit._typing import JSONObject
from latencykit.core.run import Run
from latencykit.io import build, json_text
from latencykit.io.source import Data, ReadOptions, Source
from latencykit.io.text_reports import fact, has_match, plain, search, text_of_run

_TIMES = re.compile(r"response_time|session_length|duration|latency|(?:^|\.)(?:FCP|LCP|TTFB|INP)\b")
_SKETCH = "Artillery estimates percentiles by a sketch, within 1 %"
_BAD_CODE = re.compile(r"(.*)\.codes\.[4-9]\d*")
_OF_ENDPOINTS = "plugins.metrics-by-endpoint."
_LATE = re.compile(r"timed?_?out|ETIMEDOUT|ESOCKETTIMEDOUT", re.IGNORECASE)


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the response times of the whole run; other histograms where they are asked for."""
    record = json_text.load(source)
    cut = "aggregate" not in record and {"summaries", "latency"} & set(record)
    return _series(record if cut else json_text.entry(record, "aggregate", source), options)


def _series(report: JSONObject, options: ReadOptions) -> dict[str, Data]:
    """The main histogram of a report, those of endpoints, and others that are asked for."""
    counters: dict[str, Any] = report.get("counters") or {}
    kept: dict[str, JSONObject] = report.get("histograms") or report.get("summaries") or {}
    errors = {k[7:]: int(v) for k, v in counters.items() if k.startswith("errors.")}
    first, last = report.get("firstCounterAt"), report.get("lastCounterAt")
    notes: tuple[str, ...] = (_SKETCH,)
    if not kept and isinstance(report.get("latency"), dict):  # version 1
        kept = {"latency": dict(report["latency"])}
        kept["latency"].setdefault("count", report.get("requestsCompleted"))
        errors = report.get("errors") or {}
        counters = {f"http.codes.{code}": n for code, n in (report.get("codes") or {}).items()}
        first = last = None
        notes = ()
    late = sum(int(number) for name, number in errors.items() if _LATE.search(name))
    run = Run(
        tool="Artillery", measure="service", corrected="none", unit="ms", unit_from="format",
        start=first / 1e3 if first else None,
        duration=(last - first) / 1e3 if first and last and last > first else None,
        failed=sum(map(int, errors.values())) - late, timeouts=late, notes=notes,
    )  # fmt: skip
    failed: dict[str, int] = {}  # answers of status 4xx and 5xx, which are among the values
    for key, number in counters.items():
        if code := _BAD_CODE.fullmatch(key):
            failed[code[1]] = failed.get(code[1], 0) + int(number)
    main = next((name for name in kept if name.endswith("response_time")), None) or next(
        (name for name in kept if _TIMES.search(name)), ""
    )
    if not main:
        ended = any(key.startswith("vusers.") for key in counters) or "requestsCompleted" in report
        return {"": build.unanswered(run)} if ended else {}
    series: dict[str, Data] = {}
    for name, row in kept.items():
        endpoint = name.startswith(f"{_OF_ENDPOINTS}response_time.")
        if name not in (main, *options.series) and not endpoint:
            continue
        label, count = name.rpartition("endpoint.response_time.")[2], row.get("count")
        own = run if name == main else run.replace(failed=0, timeouts=0)
        bad = failed.get(_OF_ENDPOINTS + label, 0) if endpoint else 0
        if name == main:
            bad = sum(number for kind, number in failed.items() if "." not in kind)
        if bad:
            good = f"{name}.2xx"
            hint = (f"--series {good} has the good ones alone",) if good in kept else ()
            own = own.replace(failed=own.failed + bad)
            own = own.with_notes(*build.mixed_note(bad), *hint)
        good_ones = None if count is None else max(int(count) - bad, 0)
        series[label] = build.data_from_statistics(row, good_ones, own, "ms")
    if len(series) > 1:
        series[main] = series[main].with_run(aggregate=True)
    return series


# ------------------------------------------------------------
# The report that is printed at the end, and a piece of the JSON, as the record that it is of.

_SUMMARY = r"^[^\n]{0,80}?\b(?:Summary|all scenarios completed\s+Complete) [Rr]eport @ "
_NEXT = re.compile(
    r"^[^\n]{0,80}?(?:\b[Rr]eport @ |Metrics for period to|Phase started|Log file:)", re.MULTILINE
)
_STATISTIC = re.compile(r"min|max|mean|median|p\d{1,2}(?:\.\d+)?")
_FREE = ("Codes", "Errors", "Scenario counts")  # groups whose names are any
_PIECE = re.compile(r'"(latency|errors|codes)":\s*(\{[^{}]{0,9999}\})')
_COMPLETED = r'"requestsCompleted":\s*(\d+)'


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the summary of a run; reports of single periods precede it."""
    text = text_of_run(source, _SUMMARY)
    begin = search(_SUMMARY, text)
    if begin is None and _PIECE.search(text):  # of the JSON of version 1
        pieces = {key: json_text.parse(value, source) for key, value in _PIECE.findall(text)}
        return _series({"requestsCompleted": fact(text, _COMPLETED, int), **pieces}, options)
    start = begin.end() if begin else 0  # a piece of the report has no heading
    end = _NEXT.search(text, start)
    counters: dict[str, float] = {}
    groups: dict[str, dict[str, float]] = {}
    group = ""
    for line in text[start : end.start() if end else None].split("\n"):
        name, colon, rest = line.strip("#> \t").rpartition(":")
        cell = rest.lstrip(". \t").partition(" ")[0]
        number = build.number_in(cell)
        if not colon:
            group = ""
        elif not cell:
            group = name
            groups.setdefault(name, {})
        elif number is not None and group and (group in _FREE or _STATISTIC.fullmatch(name)):
            groups[group].setdefault(name, number)
        elif number is not None:
            counters.setdefault(name, number)
            group = ""
    latency = groups.get("Request latency", groups.get("Response time (msec)"))
    if latency is not None:
        names = ("Requests completed", "Number of requests made")
        sent = next((counters[name] for name in names if name in counters), None)
        report = {"latency": latency, "requestsCompleted": sent}
        more = {"errors": groups.get("Errors"), "codes": groups.get("Codes")}
        return _series(report | more, options)
    for name, numbers in groups.items():
        answers = counters.get(name.replace(".response_time", ".responses"))
        if answers is not None:
            numbers["count"] = answers
    kept = {name: numbers for name, numbers in groups.items() if numbers}
    return _series({"counters": counters, "histograms": kept}, options)


FORMATS = {
    "artillery": read,
    "artillery-text": (
        has_match(
            rf'{_SUMMARY}|"scenariosCreated":[^\0]{{0,999}}"latency":\s*\{{'
            r"|^[\w./-]{1,200}:\n +min: \.{9}",
            plain=plain,
            without=r'\A\s*\{|"aggregate":',
        ),
        read_text,
    ),
}
