"""k6: its end-of-test summary as JSON (in three shapes) and as text, and its points (CSV, JSON).

``--summary-export`` writes numbers right under the metric, ``handleSummary`` one level down beside
their type, and the machine-readable summary of k6 1.5 a list of metrics. Times are in ms. The count
of a trend is in none of them unless ``summaryTrendStats`` asks for it; there are as many
``http_req_duration`` as ``http_reqs``.

No summary says how requests were scheduled. Little's law does: where VUs were busy all the time
(iterations per second × their mean duration = VUs), they sent as soon as they could; dropped
iterations are an arrival rate that ran out of VUs.

A point's time is the end of its request; in CSV it is truncated to whole seconds, unless
``K6_CSV_TIME_FORMAT`` says otherwise.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latencykit._text import format_items, printable
from latencykit.core.columns import Words, joined, matching, select
from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError
from latencykit.io import build, json_text
from latencykit.io.declared import TIMED_OUT
from latencykit.io.rows import RowLayout, line_chunks, read_table
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import Section, certain, has_match, plain, starts_with, text_of_run
from latencykit.units import parse_duration

Points = dict[str, Any]  # stamp, value and outcome of one metric, or columns of all
Metrics = dict[str, dict[str, float]]  # of a summary: the numbers of each, times in ms

_MAIN = (
    "http_req_duration", "grpc_req_duration", "ws_session_duration", "browser_http_req_duration",
    "iteration_duration",
)  # fmt: skip
"""Without a series by name, the first of these metrics that is there is read."""

_BEGIN = re.compile(r'^\{\s*"(?:root_group|options|state|metrics|results)"', re.MULTILINE)
_BUILT_IN = re.compile(
    r"(?!browser_web_vital_cls)(?:http_req|grpc|ws|browser|iteration|group)_\w+(?:\{.*\})?"
)
_GOOD = "http_req_duration{expected_response:true}"
_BUSY = 0.9
_HIGH = 99.0
_FEW = 10
_HINT = (
    "k6 run --summary-trend-stats 'avg,min,med,max,p(90),p(99),p(99.9),count' keeps more of the "
    "distribution, --out csv all of it"
)


def _loop_of(busy: float | None, vus: float | None, dropped: int) -> Run:
    """The loop, by the mean number of busy VUs, of VUs, and of iterations that were dropped."""
    run = Run(
        tool="k6", measure="service", unit="ms", unit_from="format", dropped=dropped,
        connections=round(vus) if vus else None,
    )  # fmt: skip
    if dropped:
        return run.replace(loop="open").with_notes(
            f"{format_items(dropped, 'iteration')} dropped: the arrival rate ran out of VUs, "
            "and what was due then is missing"
        )
    if busy and vus and busy >= _BUSY * vus:
        return run.replace(loop="closed", corrected="none")
    return run


def sniff_json(head: Head) -> Confidence:
    """Recognise k6's metrics; what handleSummary writes to ``stdout`` is below the banner."""
    begin = _BEGIN.search(head.text)
    text = head.text[begin.start() :] if begin else head.text
    if text.lstrip()[:1] != "{" or '"type":"Point"' in text:
        return Confidence.NO
    listed = r'"name":\s*"(?:iterations|http_reqs|vus_max)"'
    keyed = (
        r'"(?:iterations|http_reqs|vus_max|data_received|iteration_duration)":\s*\{'
        r'|"http_req_duration":\s*\{\s*"(?:type|values)"'
    )
    return certain(
        ('"results"' in text and re.search(listed, text))
        or ('"metrics"' in text and re.search(keyed, text))
        or all(f'"{key}"' in text for key in ("http_req_duration", "contains", "values"))
    )


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the main metric, or all trends where one is asked for by name."""
    record = json_text.load(source, after_noise=source.head.text.lstrip()[:1] != "{")
    if isinstance(record, dict) and isinstance(record.get("results"), dict):
        rows = json_text.entry(record, "results.metrics", source, list)
        metrics = {str(row["name"]): row for row in rows}
    elif isinstance(record, dict) and _MAIN[0] in record:  # `data.metrics` of handleSummary
        metrics = record
    else:
        metrics = json_text.entry(record, "metrics", source)
    numbers: Metrics = {
        name: {
            key: float(value)
            for key, value in metric.get("values", metric).items()
            if isinstance(value, (int, float)) and key != "thresholds"
        }
        for name, metric in metrics.items()
    }
    timed = [
        name
        for name, metric in metrics.items()
        if metric.get("contains", "time" if _BUILT_IN.fullmatch(name) else "") == "time"
    ]
    state, config = (record.get(key) or {} for key in ("state", "config"))
    seconds = config.get("duration") or (state.get("testRunDurationMs") or 0.0) / 1e3
    return _series_of_summary(numbers, timed, seconds, source, options)


def _series_of_summary(
    metrics: Metrics, timed: Sequence[str], seconds: float, source: Source, options: ReadOptions
) -> dict[str, Data]:
    """The main metric, or all trends where one is asked for by name."""
    trends = [
        name
        for name, row in metrics.items()
        if {"avg", "med"} & {*row} or build.percentiles_in(row)
    ]
    names = [name for name in trends if name in timed]
    main = next((name for name in (*_MAIN, *names) if name in names), None)
    if main is None:
        seen, expected = "it has no trend of times", "http_req_duration or another"
        raise source.corrupt(None, seen, expected, "run k6 to its end")

    def number(name: str, *keys: str) -> float:
        row = metrics.get(name, {})
        return next((row[key] for key in keys if key in row), 0.0)

    pairs = [[number(of, key) for key in ("rate", "count")] for of in ("iterations", "http_reqs")]
    (rate, counted), iterations = max(pairs), pairs[0][1]  # the higher rate has more digits
    seconds = seconds or (counted / rate if rate else 0.0)
    each = number("iteration_duration", "avg")
    busy = iterations * each / 1e3 / seconds if seconds else None
    requests = number("http_reqs", "count")
    vus = number("vus_max", "max", "value") or number("vus", "max", "value")
    run = _loop_of(busy, vus, int(number("dropped_iterations", "count"))).replace(
        duration=round(seconds, 6) or None,
        achieved=round(requests / seconds, 6) if requests and seconds else None,
        failed=int(number("http_req_failed", "passes", "matches")),
    )
    others = tuple(name for name in trends if name != main) if options.series else ()
    return {name: _trend(name, metrics, run, timed) for name in (main, *others)}


def _trend(name: str, metrics: Metrics, run: Run, timed: Sequence[str]) -> Data:
    """One metric, with as many values as the run had requests or iterations."""
    points, stats = (build.in_nanoseconds(p, "ms") for p in build.statistics_in(metrics[name]))
    # Its own count, else the counter that belongs to it.
    base, _, labels = name.partition("{")
    counter = "http_reqs" if base.startswith("http_req_") else ""
    counter = "iterations" if base == "iteration_duration" else counter
    count = None
    if "count" in metrics[name]:
        count = int(metrics[name]["count"])
    elif "count" in metrics.get(counter, {}) and (not labels or name == _GOOD):
        count = int(metrics[counter]["count"]) - (run.failed if labels else 0)
    failed = run.failed if name.startswith("http_req_") else 0
    mixed = failed if not labels else 0
    # k6 gives requests without a reply a time of 0.
    empty = count is not None and count <= mixed and stats.get("max") == 0
    if empty or (count is not None and count <= 0):
        return build.unanswered(run)
    run = run.replace(failed=failed).with_notes(*build.mixed_note(mixed))
    if mixed and name == "http_req_duration" and _GOOD in metrics:
        run = run.with_notes(f"the series {_GOOD} contains the good ones alone")
    if name not in timed:
        note = "k6 does not say that this is a time; it was taken as ms"
        run = run.replace(unit_from="assumed").with_notes(note)
    if not any(p >= _HIGH for p in points) or count is None:
        run = run.with_notes(_HINT)
    good = None if count is None else max(count - mixed, 0)
    if mixed and good is not None and good < _FEW:  # too few for percentiles that are of all
        return Summary(stats, points, good, "ns", run)
    return build.data_from_points(points, good, stats, run)


# ------------------------------------------------------------
# Points: every value of every metric, as ``--out csv`` and ``--out json`` write them.

_BESIDE = ("dropped_iterations", "iteration_duration", "vus_max")
_WORDS = ("metric_name", "expected_response", "status", "error_code", "error")
_STAMPS = ((1e17, 1), (1e14, 1_000), (1e11, 1_000_000), (0, 1_000_000_000))  # least, ns of the unit
_BEGUN = re.compile(rb"^[^\r\n]", re.MULTILINE)
_LINE = re.compile(
    rb'^\{"(?:metric":"[^"\n]+","type":"Point","data":\{"time":"[^"\n]+","value":-?\d[^,\n]*,'
    rb'"tags":[^\n]*\}|type":"Metric",[^\n]*)\}\r?$',
    re.MULTILINE,
)
_ANY_LINE = re.compile(  # a point or the definition of a metric, whatever the order of its keys
    rb'^\{(?=[^\n]*"metric" ?: ?"[^"\n])(?=[^\n]*"type" ?: ?"Metric"|(?=[^\n]*"type" ?: ?"Point")'
    rb'(?=[^\n]*"time" ?: ?"[^"\n])(?=[^\n]*"tags")[^\n]*"value" ?: ?-?\d)[^\n]*\}[ \r]*+$',
    re.MULTILINE,
)


def read_csv(source: Source, options: ReadOptions) -> Series:
    """Read the points of the main metric, or of those asked for by name."""
    lines = source.head.lines
    columns = tuple(lines[0].strip().split(","))
    numeric = len(lines) < 2 or re.match(r"[^,]*,\d+,", lines[1]) is not None
    numbers = ("timestamp", "metric_value") if numeric else ("metric_value",)
    words = _WORDS if numeric else (*_WORDS, "timestamp")
    further = [name for name in columns if name not in (*words, *numbers)]
    further = [name for name in further if name != "metadata"] if options.columns else []
    layout = RowLayout(
        columns, numbers, (*(name for name in words if name in columns), *further), skip=1,
        only={"metric_name": _wanted(options)},
        largest={"timestamp": 9.2e18, "metric_value": 9e12},
    )  # fmt: skip
    frame, notes = read_table(source, options, layout)
    if numeric:  # seconds, ms, µs or ns, by their size
        stamps = frame.pop("timestamp").astype(np.int64)
        factors = (ns for least, ns in _STAMPS if not stamps.size or stamps.max() >= least)
        stamp = stamps * next(factors)
    else:
        stamp = build.iso_nanoseconds(frame.pop("timestamp").cells.tolist())
    if stamp.size and (stamp % 1_000_000_000 == 0).all():
        notes += ("timestamps are whole seconds: K6_CSV_TIME_FORMAT=unix_nano keeps the rest",)
    nothing = Words.named(np.zeros(stamp.size, np.int32), [""])
    outcome = _outcomes(*(frame.get(word, nothing) for word in _WORDS[1:]))
    frame |= {"stamp": stamp, "outcome": outcome}
    return _series_of_points(frame, notes, options, source)


def _outcomes(expected: Any, status: Any, code: Any, error: Any) -> NDArray[np.int8]:
    """Outcomes by k6's own opinion, else by their status; 1050 is its code for a timeout."""
    refused = matching(status, lambda text: text == "0" or (len(text) == 3 and text >= "400"))
    failed = np.where(matching(expected, bool), matching(expected, "false".__eq__), refused)
    late = matching(code, "1050".__eq__) | matching(error, TIMED_OUT.search)
    late &= failed | matching(error, bool)
    return np.where(late, OUTCOMES.index("timeout"), np.where(failed, 1, 0)).astype(np.int8)


def read_points_json(source: Source, options: ReadOptions) -> Series:
    """Read the points of the main metric, or of those asked for by name."""
    metric_names, notes = _wanted(options), list[str]()
    names = b"|".join(re.escape(json.dumps(name)[1:-1].encode()) for name in metric_names)
    wanted = re.compile(rb'^[^\n]*"metric" ?: ?"(?:' + names + rb')"[^\n]*', re.MULTILINE)
    parts: list[Points] = []
    for first, chunk in line_chunks(source):
        part = None
        begun = len(_BEGUN.findall(chunk))
        if any(len(pattern.findall(chunk)) == begun for pattern in (_LINE, _ANY_LINE)):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                records = json.loads(b"[" + b",".join(wanted.findall(chunk)) + b"]")
                part = _points(records, metric_names, options)
        if part is None:
            records = []  # line by line, so that corrupt lines are named
            for number, point in json_text.numbered(source, options, first, chunk, notes):
                try:
                    if point["type"] == "Point":
                        build.iso_nanoseconds([str(point["data"]["time"])])
                        float(point["data"]["value"])
                        records.append(point)
                except (KeyError, TypeError, ValueError):
                    options.refuse(source, number, "a point without time and value", "both")
            part = _points(records, metric_names, options)
        parts.append(part)
    columns = dict.fromkeys(key for part in parts for key in part)
    frame = {
        key: joined([part.get(key, Words.of([None] * part["stamp"].size)) for part in parts])
        for key in columns
    }
    return _series_of_points(frame, notes, options, source)


def _points(records: Sequence[Any], names: Sequence[str], options: ReadOptions) -> Points:
    """The points of some metrics by the names of the CSV's columns."""
    rows = [row for row in records if row["type"] == "Point" and row["metric"] in names]
    data = [row["data"] for row in rows]
    tags = [row.get("tags") or {} for row in data]
    cells = ([str(tag.get(word, "")) for tag in tags] for word in _WORDS[1:])
    keys = dict.fromkeys(key for tag in tags for key in tag) if options.columns else ()
    return {
        "metric_name": Words.of([row["metric"] for row in rows]),
        "stamp": build.iso_nanoseconds([row["time"] for row in data]),
        "metric_value": np.array([row["value"] for row in data], np.float64),
        "outcome": _outcomes(*cells),
        **{key: Words.of([tag.get(key) for tag in tags]) for key in keys},
    }


def _wanted(options: ReadOptions) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*_MAIN, *_BESIDE, *options.series)))


def _series_of_points(
    frame: Points, notes: Sequence[str], options: ReadOptions, source: Source
) -> Series:
    """Samples of the main metric, or of those asked for; the others describe the run."""
    name_of, value = frame.pop("metric_name"), frame.pop("metric_value").astype(np.float64)
    known = {"stamp": frame.pop("stamp"), "value": value, "outcome": frame.pop("outcome")}
    metrics: dict[str, Points] = {}
    for name in name_of.names.tolist():
        rows = matching(name_of, name.__eq__)
        metrics[name] = {key: column[rows] for key, column in known.items()}
        if options.columns:
            cells = {key: build.further_cells([select(c, rows)]) for key, c in frame.items()}
            metrics[name]["columns"] = cells
    missing = [name for name in options.series if name not in metrics]
    if missing:
        raise InvalidArgumentError(
            f"{source.shown}: contains no points of {missing[0]!r}; "
            "names are those of k6's metrics, without tags"
        )
    busy = vus = None
    if "iteration_duration" in metrics and "vus_max" in metrics:
        each, vus = metrics["iteration_duration"], float(metrics["vus_max"]["value"].max())
        begin = float((each["stamp"] - each["value"] * 1e6).min())
        span = float(each["stamp"].max()) - begin
        busy = float(each["value"].sum()) * 1e6 / span if span > 0 else None
    drops = metrics.get("dropped_iterations")
    dropped = int(drops["value"].sum()) if drops else 0
    run = _loop_of(busy, vus, dropped).with_notes(*notes)
    for name in options.series or [name for name in _MAIN if name in metrics][:1]:
        points = metrics[name]
        duration = np.rint(build.nanoseconds_of(points["value"], "ms")).astype(np.int64)
        given = {"start": points["stamp"] - duration, "duration": duration}
        given["outcome"] = points["outcome"] if points["outcome"].any() else None
        if options.columns:
            given["columns"] = points["columns"]
        yield name, build.samples_of(given, run, options)[""]


# ------------------------------------------------------------
# The summary as text, and the lines of scenarios and progress above it.

_TOTAL = re.compile(r"^ *█ TOTAL RESULTS", re.MULTILINE)
_DETAIL = re.compile(r"^ *[█↳] (?:GROUP|SCENARIO):", re.MULTILINE)
_ROW = re.compile(r"^(?: *[✓✗] )? *([A-Za-z_]\w*|\{ [^}\n]* \})\.*: +(\S.*)$", re.MULTILINE)
_CELL = re.compile(r"\b([a-z]+|p\([\d.]+\)|p[\d.]+)=([^\s,]+)")
_COUNTERS = ("http_reqs", "iterations", "dropped_iterations", "vus", "vus_max")
# Go ends every duration with its seconds: 21.44m is 21.44ms without the end of its line.
_TIME = re.compile(r"(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:ns|us|µs|ms|s)")
_CUT = re.compile(r"(?:\d{1,9}h)?(?:\d{1,9}m)?(?:\d{1,19}(?:\.\d{0,19})?[nuµm]?)?")
_FIRST = re.compile(r"^( *)(?:[✓✗] )?([A-Za-z_]\w*)\.{2,}: ", re.MULTILINE)
_COUNTS = r"^ *(?:[✓✗] )?(?:http_reqs|iterations)\.*: "
_TREND = re.compile(r"^.*_duration\.*: (?:avg|min|med|max|p\([\d.]+\))=\d", re.MULTILINE)
_PROGRESS = re.compile(
    r"^running \(.*\), \d+/\d+ VUs, \d+ complete and \d+ interrupted iterations", re.MULTILINE
)
_ARRIVALS = re.compile(r"^ *\* \S+: ([\d.]+) iterations/s", re.MULTILINE)
_LOOPING = re.compile(
    r"^ *\* \S+: .*(?:looping VUs|iterations shared|iterations for each)", re.MULTILINE
)


def sniff(head: Head) -> Confidence:
    """Recognise trends, or the progress before them, where no JSON of handleSummary follows."""
    if sniff_json(head) is Confidence.CERTAIN:
        return Confidence.NO
    text = plain(head.text)
    return certain(_TREND.search(text) or _PROGRESS.search(text))


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the summary of a run: the main metric, or all trends if one is asked for by name."""
    first = _FIRST.search(plain(source.text()))
    begins = r"^ *█ TOTAL RESULTS"
    if first and not _TOTAL.search(plain(source.text())):  # those of groups stand further right
        begins = rf"^{first[1]}(?:[✓✗] )?{first[2]}\.+: "
    text = text_of_run(source, rf"^ *execution: |{begins}", _COUNTS)
    total = _TOTAL.search(text)
    start = total.start() if total else 0
    detail = _DETAIL.search(text, start)
    body = text[start : detail.start() if detail else None]
    part = Section(body, text.count("\n", 0, start) + 1, source)
    metrics: Metrics = {}
    timed, above, asked = list[str](), "", 0.0
    for row in _ROW.finditer(part.text):
        name, cells = row[1], dict(_CELL.findall(row[2]))
        last = next(reversed(cells), "")
        if len(cells) > 2 and last.startswith(("max", "p")) and _CUT.fullmatch(cells[last]):
            del cells[last]  # the edge of a terminal has cut it
        if name[0] == "{":  # a part of the metric above
            name = f"{above}{{{name.strip('{ }')}}}"
        else:
            above = name
        numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", row[2])]
        if not numbers and (_BUILT_IN.fullmatch(name) or name in _COUNTERS):
            seen = printable(f"{name}: {row[2]}", 50)
            raise part.corrupt(row.start(1), seen, "numbers", "run k6 anew")
        if "avg" in cells or "med" in cells:
            times = {key: cell for key, cell in cells.items() if key != "count"}
            bad = next((key for key, cell in times.items() if not _TIME.fullmatch(cell)), None)
            if bad is not None and _BUILT_IN.fullmatch(name):
                seen = printable(f"{name}: {bad}={cells[bad]}")
                raise part.corrupt(row.start(1), seen, "a duration, such as 5.81s", "run k6 anew")
            if bad is None:  # else a user's own, and not of times
                count = {"count": float(cells["count"])} if "count" in cells else {}
                metrics[name] = {k: parse_duration(cell) / 1e6 for k, cell in times.items()} | count
                timed.append(name)
        elif name.startswith("vus"):
            metrics.setdefault("vus_max", {})["value"] = float(cells.get("max", numbers[0]))
        elif name == "http_req_failed" and len(numbers) > 1:
            metrics[name] = {"rate": numbers[0], "passes": numbers[1]}
            asked = numbers[-1] + (0 if " out of " in row[2] else numbers[1])
        elif numbers:
            rated = len(numbers) == 2 and row[2].rstrip().endswith("/s")
            counted = {"count": numbers[0], "rate": numbers[1] if rated else 0.0}
            metrics.setdefault(name, counted)  # a threshold is below the metric that it is of
    if asked:  # of a summary that someone has cut
        metrics.setdefault("http_reqs", {"count": asked, "rate": 0.0})
    series = _series_of_summary(metrics, timed, 0.0, source, options)
    # The lines of scenarios, before the run, and the last line of progress have more.
    arrivals, looping = _ARRIVALS.findall(text), _LOOPING.search(text)
    interrupted = re.findall(r"(?<!\d)(\d+) interrupted iterations", text)
    facts: dict[str, object] = {"unfinished": int(interrupted[-1])} if interrupted else {}
    if arrivals and not looping:
        dropped = any(data.run.dropped for data in series.values())
        corrected = "unknown" if dropped else "schedule"
        facts |= {"loop": "open", "corrected": corrected, "measure": "response"}
        facts |= {"rate": float(arrivals[0])} if len(arrivals) == 1 else {}
    elif looping and not arrivals:
        facts |= {"loop": "closed", "corrected": "none", "measure": "service"}
    return {name: data.with_run(**facts) for name, data in series.items()}


FORMATS = {
    "k6-summary": (sniff_json, read_json),
    "k6-csv": (starts_with("metric_name,timestamp,metric_value"), read_csv),
    "k6-json": (
        has_match(r'\A\s*\{(?=[^\n]*"type": ?"(?:Point|Metric)")(?=[^\n]*"metric":)[^\n]*"data":'),
        read_points_json,
    ),
    "k6": (sniff, read),
}
