"""k6's end-of-test summary as JSON, in its three shapes.

``--summary-export`` writes numbers right under the metric, ``handleSummary`` one level down beside their type, and the
machine-readable summary of k6 1.5 a list of metrics. Times are in ms. The count of a trend is in none of them unless
``summaryTrendStats`` asks for it; there are as many ``http_req_duration`` as ``http_reqs``.

No summary says how requests were scheduled. Little's law does: where VUs were busy all the time (iterations a second ×
their mean duration = VUs), they sent as soon as they could; dropped iterations are an arrival rate that ran out of VUs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.errors import InvalidArgumentError
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    mixed_note,
    nanoseconds,
    nanoseconds_of,
    nothing_answered,
    several,
    without_negative,
)
from latencykit.io.rows import Layout, line_chunks, read_table
from latencykit.io.source import Confidence, Format
from latencykit.io.text import Section, iso_nanoseconds, plain_report
from latencykit.io.tools.vegeta import TIMED_OUT
from latencykit.units import parse_duration, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from latencykit.io.source import Data, Head, ReadOptions, Source

    Points = dict[str, Any]  # stamp, value and outcome of one metric

__all__ = ["BUILT_IN", "FORMATS", "MAIN", "K6Summary", "loop_of", "series_of", "sniff_json"]


MAIN = (
    "http_req_duration",
    "grpc_req_duration",
    "ws_session_duration",
    "browser_http_req_duration",
    "iteration_duration",
)
"""Metrics that are charted where none is asked for: the first of these that is there."""

_PERCENTILE = re.compile(r"p\(?(\d+(?:\.\d+)?)\)?")  # p(95); p95 in the machine-readable summary
_BEGIN = re.compile(r'^\{\s*"(?:root_group|options|state|metrics|results)"', re.MULTILINE)
BUILT_IN = re.compile(r"(?:http_req|grpc|ws|browser|iteration|group)_\w+(?:\{.*\})?")
_GOOD = "http_req_duration{expected_response:true}"
_BUSY = 0.9
_HIGH = 99.0
_HINT = "k6 run --summary-trend-stats 'avg,min,med,max,p(90),p(99),p(99.9),count' keeps more of the distribution, --out csv all of it"


@dataclass(frozen=True)
class K6Summary:
    """The metrics of a run; times in ns.

    Attributes
    ----------
    trends : mapping of str to (mapping, bool)
        Metric → statistics by k6's names, and whether they are times.
    counts, rates : mapping of str to float
        Of counters: how many, and how many a second.
    failed : int or None
        Requests that failed.
    most_vus : float or None
        VUs at most.
    duration : float or None
        Seconds.
    """

    trends: Mapping[str, tuple[Mapping[str, float], bool]]
    counts: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    failed: int | None = None
    most_vus: float | None = None
    duration: float | None = None


def loop_of(busy: float | None, vus: float | None, dropped: int) -> Run:
    """Return how requests were sent, from the mean number of busy VUs, of VUs, and of iterations that were dropped."""
    run = Run(
        tool="k6",
        measure="service",
        unit="ms",
        unit_from="format",
        connections=round(vus) if vus else None,
        dropped=dropped,
    )
    if dropped:
        note = f"{several(dropped, 'iteration')} dropped: the arrival rate ran out of VUs, and what was due then is missing"
        return run.replace(loop="open").with_notes(note)
    if busy and vus and busy >= _BUSY * vus:
        return run.replace(loop="closed", corrected="none")
    return run


def sniff_json(head: Head) -> Confidence:
    """Tell k6's metrics in one of the shapes; what handleSummary writes to ``stdout`` stands below the banner."""
    begin = _BEGIN.search(head.text)
    text = head.text[begin.start() :] if begin else head.text
    if text.lstrip()[:1] != "{" or '"type":"Point"' in text:
        return Confidence.NO
    listed = '"results"' in text and re.search(
        r'"name":\s*"(?:iterations|http_reqs|vus_max)"', text
    )
    keyed = '"metrics"' in text and re.search(
        r'"(?:iterations|http_reqs|vus_max|data_received|iteration_duration)":\s*\{', text
    )
    return Confidence.CERTAIN if listed or keyed else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the main metric, or all trends where one is asked for by name."""
    record = jsontext.load(source, after_noise=source.head.text.lstrip()[:1] != "{")
    listed = isinstance(record, dict) and isinstance(record.get("results"), dict)
    given = jsontext.entry(
        record, "results.metrics" if listed else "metrics", source, list if listed else dict
    )
    metrics = {str(one["name"]): one for one in given} if listed else given
    trends: dict[str, tuple[dict[str, float], bool]] = {}
    counts, rates, gauges = {}, {}, {}
    for name, metric in metrics.items():
        values = metric.get("values", metric)
        numbers = {
            key: float(value)
            for key, value in values.items()
            if isinstance(value, (int, float)) and key != "thresholds"
        }
        if (
            "avg" in numbers
            or "med" in numbers
            or any(_PERCENTILE.fullmatch(key) for key in numbers)
        ):
            timed = (
                metric.get("contains", "time" if BUILT_IN.fullmatch(name) else "default") == "time"
            )
            trends[name] = (
                {
                    key: value if key == "count" else nanoseconds(value, "ms")
                    for key, value in numbers.items()
                },
                timed,
            )
        else:
            counts[name], rates[name] = numbers.get("count", 0.0), numbers.get("rate", 0.0)
            gauges[name] = numbers
    failed = gauges.get("http_req_failed", {})
    state, config = (record.get(key) or {} for key in ("state", "config"))
    seconds = config.get("duration") or (state.get("testRunDurationMs") or 0.0) / 1e3
    most = gauges.get("vus_max", gauges.get("vus", {}))
    known = K6Summary(
        trends,
        counts,
        rates,
        int(failed.get("passes", failed.get("matches", 0))),
        most.get("max", most.get("value")),
        seconds,
    )
    return series_of(known, source, options)


def series_of(known: K6Summary, source: Source, options: ReadOptions) -> dict[str, Data]:
    """Return the main metric, or all trends where one is asked for by name."""
    timed = [name for name, (_, is_time) in known.trends.items() if is_time]
    main = next((name for name in MAIN if name in timed), timed[0] if timed else None)
    if main is None:
        raise source.corrupt(
            None,
            "there is no trend of times in it",
            "http_req_duration or another",
            "run k6 to its end",
        )
    others = tuple(name for name in known.trends if name != main)
    run = _run(known)
    names = (main, *others) if options.series else (main,)
    return {name: _trend(name, known, run.replace(aggregate=False), source) for name in names}


def _run(known: K6Summary) -> Run:
    """How the run was made, from all its metrics together."""
    iterations, seconds = known.counts.get("iterations"), known.duration
    if not seconds and iterations and known.rates.get("iterations"):
        seconds = iterations / known.rates["iterations"]
    each = known.trends.get("iteration_duration", ({}, False))[0].get("avg")
    busy = iterations * each / 1e9 / seconds if iterations and each and seconds else None
    run = loop_of(busy, known.most_vus, int(known.counts.get("dropped_iterations", 0)))
    requests = known.counts.get("http_reqs")
    return run.replace(
        duration=round(seconds, 6) if seconds else None,
        achieved=round(requests / seconds, 6) if requests and seconds else None,
        failed=known.failed or 0,
    )


def _trend(name: str, known: K6Summary, run: Run, source: Source) -> Data:
    """One metric, with as many values as the run had requests or iterations."""
    stats, timed = known.trends[name]
    points = {
        float(found[1]): value
        for key, value in stats.items()
        if (found := _PERCENTILE.fullmatch(key))
    }
    if "med" in stats:
        points.setdefault(50.0, stats["med"])
    reported_stats = {
        ours: stats[theirs]
        for ours, theirs in (("mean", "avg"), ("min", "min"), ("max", "max"))
        if theirs in stats
    }
    count = _count(name, stats, known)
    if count is not None and count <= 0:
        raise nothing_answered(source, run)
    failed = run.failed if name.startswith("http_req_") else 0
    mixed = failed if "{" not in name else 0
    if (
        count is not None and count <= mixed and reported_stats.get("max") == 0
    ):  # k6 gives requests without a reply a time of 0
        raise nothing_answered(source, run)
    run = run.replace(failed=failed).with_notes(*mixed_note(mixed))
    if mixed and name == "http_req_duration" and _GOOD in known.trends:
        run = run.with_notes(f"the series {_GOOD} holds the good ones alone")
    if not timed:
        run = run.replace(unit_from="assumed").with_notes(
            "k6 does not say that this is a time; it was taken as ms"
        )
    if not any(p >= _HIGH for p in points) or count is None:
        run = run.with_notes(_HINT)
    return data_from_points(points, None if count is None else count - mixed, reported_stats, run)


def _count(name: str, stats: Mapping[str, float], known: K6Summary) -> int | None:
    """How many values a trend is of: what it says itself, else the counter that goes with it."""
    if "count" in stats:
        return int(stats["count"])
    base, _, labels = name.partition("{")
    counter = (
        "http_reqs"
        if base.startswith("http_req_")
        else "iterations"
        if base == "iteration_duration"
        else ""
    )
    total = known.counts.get(counter)
    if total is None or (labels and name != _GOOD):
        return None
    return int(total) - ((known.failed or 0) if labels else 0)


_K6 = (
    Format(
        "k6-summary", "k6 summary (JSON)", "histogram", (".json",), sniff_json, read_json, unit="ms",
        example="k6 run --summary-export summary.json --summary-trend-stats 'med,max,p(90),p(99),p(99.9),count' script.js",
    ),
)  # fmt: skip


# ------------------------------------------------------------
# k6's points: every value of every metric, as ``--out csv`` and ``--out json`` write them.
#
# A point's time is the end of its request; in CSV it is cut to whole seconds, unless ``K6_CSV_TIME_FORMAT`` says otherwise.

_BESIDE = ("dropped_iterations", "iteration_duration", "vus_max")
_WORDS = ("metric_name", "expected_response", "status", "error_code", "error")
_STAMPS = (
    (1e17, 1),
    (1e14, 1_000),
    (1e11, 1_000_000),
    (0, 1_000_000_000),
)  # least value, ns of the unit
_BEGUN = re.compile(rb"^[^\r\n]", re.MULTILINE)
_LINE = re.compile(
    rb'^\{"(?:metric":"[^"\n]+","type":"Point","data":\{"time":"[^"\n]+","value":-?\d[^,\n]*,"tags":[^\n]*\}|'
    rb'type":"Point","data":\{"time":"[^"\n]+","value":-?\d[^,\n]*,"tags":[^\n]*\},"metric":"[^"\n]+"|'
    rb'type":"Metric",[^\n]*)\}\r?$',
    re.MULTILINE,
)


def sniff_csv(head: Head) -> Confidence:
    """Tell the header."""
    return (
        Confidence.CERTAIN
        if head.text.startswith("metric_name,timestamp,metric_value")
        else Confidence.NO
    )


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the points of the main metric, or of those asked for by name."""
    lines = source.head.lines
    columns = tuple(lines[0].strip().split(","))
    numeric = len(lines) < 2 or re.match(r"[^,]*,\d+,", lines[1]) is not None
    words = tuple(
        name for name in (*_WORDS, *(() if numeric else ("timestamp",))) if name in columns
    )
    layout = Layout(
        columns, ("timestamp", "metric_value") if numeric else ("metric_value",), words, skip=1,
        only={"metric_name": _wanted(options)}, largest={"timestamp": 9.2e18, "metric_value": 9e12},
    )  # fmt: skip
    frame, notes = read_table(source, options, layout)
    found: dict[str, Points] = {}
    for name in frame["metric_name"].cat.categories.tolist():
        rows = frame[frame["metric_name"] == name]
        found[name] = {
            "stamp": _stamps(rows["timestamp"], numeric),
            "value": rows["metric_value"].to_numpy(np.float64),
            "outcome": _outcomes(*(_column(rows, word) for word in _WORDS[1:])),
        }
    if found and all((points["stamp"] % 1_000_000_000 == 0).all() for points in found.values()):
        notes = (
            *notes,
            "time stamps are whole seconds: K6_CSV_TIME_FORMAT=unix_nano keeps the rest",
        )
    return _series(found, notes, options, source)


def _stamps(column: Any, numeric: bool) -> NDArray[np.int64]:
    """Nanoseconds since the epoch of seconds, ms, µs or ns (by their size), or of dates."""
    if not numeric:
        return iso_nanoseconds(column.astype(str).tolist())
    given = column.to_numpy(np.int64)
    return np.asarray(
        given * next(ns for least, ns in _STAMPS if not given.size or given.max() >= least)
    )


def _column(rows: Any, name: str) -> NDArray[np.str_]:
    return np.asarray(rows[name].astype(str)) if name in rows else np.full(len(rows), "")


def _outcomes(
    expected: NDArray[np.str_],
    status: NDArray[np.str_],
    code: NDArray[np.str_],
    error: NDArray[np.str_],
) -> NDArray[np.int8]:
    """What became of requests, by k6's own opinion, else by their status; 1050 is its code for a timeout."""
    unlike = np.char.str_len(status.astype(np.str_)) != 3
    refused = (status >= "400") & ~unlike
    failed = np.where(expected != "", expected == "false", refused | (status == "0"))
    late = (code == "1050") | np.isin(
        error, [text for text in np.unique(error).tolist() if TIMED_OUT.search(text)]
    )
    return np.where(
        late & (failed | (error != "")), OUTCOMES.index("timeout"), np.where(failed, 1, 0)
    ).astype(np.int8)


def sniff_points_json(head: Head) -> Confidence:
    """Tell the first lines: definitions of metrics, and points."""
    lines = [line for line in head.lines[:3] if line.strip()]
    found = lines and all(
        line.startswith("{") and re.search(r'"type": ?"(?:Point|Metric)"', line) for line in lines
    )
    return (
        Confidence.CERTAIN
        if found and all('"metric":' in line and '"data":' in line for line in lines)
        else Confidence.NO
    )


def read_points_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the points of the main metric, or of those asked for by name."""
    wanted, notes = _wanted(options), list[str]()
    names = b"|".join(re.escape(json.dumps(name)[1:-1].encode()) for name in wanted)
    pattern = re.compile(rb'^[^\n]*"metric":"(?:' + names + rb')"[^\n]*', re.MULTILINE)
    parts: list[dict[str, Points]] = []
    for first, chunk in line_chunks(source):
        whole = len(_LINE.findall(chunk)) == len(_BEGUN.findall(chunk))
        try:
            records = json.loads(b"[" + b",".join(pattern.findall(chunk)) + b"]") if whole else None
            parts.append(
                _points(
                    _checked(source, options, first, chunk, notes) if records is None else records,
                    wanted,
                )
            )
        except (ValueError, KeyError, TypeError):
            parts.append(_points(_checked(source, options, first, chunk, notes), wanted))
    found = {
        name: {
            key: np.concatenate([part[name][key] for part in parts if name in part])
            for key in ("stamp", "value", "outcome")
        }
        for name in {name for part in parts for name in part}
    }
    return _series(found, notes, options, source)


def _checked(
    source: Source, options: ReadOptions, first: int, chunk: bytes, notes: list[str]
) -> list[Any]:
    """The points of a chunk, line by line: it names what is corrupt."""
    good = []
    for number, record in jsontext.numbered(source, options, first, chunk, notes):
        try:
            if record["type"] == "Point":
                iso_nanoseconds([str(record["data"]["time"])])
                float(record["data"]["value"])
                good.append(record)
        except (KeyError, TypeError, ValueError):
            options.reject(
                source.corrupt(
                    number, "a point without time and value", "both", "--lenient skips the line"
                )
            )
    return good


def _points(records: Sequence[Any], wanted: Sequence[str]) -> dict[str, Points]:
    """Arrays of each metric's points."""
    found: dict[str, Points] = {}
    for name in wanted:
        rows = [one["data"] for one in records if one["metric"] == name and one["type"] == "Point"]
        if rows:
            tags = [row.get("tags") or {} for row in rows]
            found[name] = {
                "stamp": iso_nanoseconds([row["time"] for row in rows]),
                "value": np.array([row["value"] for row in rows], np.float64),
                "outcome": _outcomes(
                    *(np.array([str(tag.get(word, "")) for tag in tags]) for word in _WORDS[1:])
                ),
            }
    return found


def _wanted(options: ReadOptions) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*MAIN, *_BESIDE, *options.series)))


def _series(
    found: dict[str, Points], notes: Sequence[str], options: ReadOptions, source: Source
) -> dict[str, Data]:
    """Samples of the main metric, or of those asked for; what the others say goes to the run."""
    missing = [name for name in options.series if name not in found]
    if missing:
        raise InvalidArgumentError(
            f"{source.shown}: holds no points of {missing[0]!r}; names are those of k6's metrics, without tags"
        )
    main = next((name for name in MAIN if name in found), None)
    names = options.series or ((main,) if main else ())
    busy = vus = None
    if "iteration_duration" in found and "vus_max" in found:
        each, vus = found["iteration_duration"], float(found["vus_max"]["value"].max())
        begin = float((each["stamp"] - each["value"] * 1e6).min())
        span = float(each["stamp"].max()) - begin
        busy = float(each["value"].sum()) * 1e6 / span if span > 0 else None
    dropped = (
        int(found["dropped_iterations"]["value"].sum()) if "dropped_iterations" in found else 0
    )
    run = loop_of(busy, vus, dropped).with_notes(*notes)
    result: dict[str, Data] = {}
    for name in names:
        points = found[name]
        duration = np.rint(nanoseconds_of(points["value"], "ms")).astype(np.int64)
        given = {"start": points["stamp"] - duration, "duration": duration}
        given["outcome"] = points["outcome"] if points["outcome"].any() else None
        columns, left_out = without_negative(given, options)
        result[name] = Samples(run=run.with_notes(*left_out), **columns)
    return result


_K6_POINTS = (
    Format(
        "k6-csv", "k6 points (CSV)", "samples", (".csv",), sniff_csv, read_csv, unit="ms",
        example="K6_CSV_TIME_FORMAT=unix_nano k6 run --out csv=points.csv script.js",
    ),
    Format(
        "k6-json", "k6 points (JSON lines)", "samples", (".json", ".jsonl"), sniff_points_json, read_points_json, unit="ms",
        example="k6 run --out json=points.json script.js",
    ),
)  # fmt: skip


# ------------------------------------------------------------
# k6's end-of-test summary as text, and what is said of scenarios and progress above it.

_TOTAL = re.compile(r"^ *█ TOTAL RESULTS", re.MULTILINE)
_DETAIL = re.compile(r"^ *█ (?:GROUP|SCENARIO):", re.MULTILINE)
_ROW = re.compile(r"^(?: *[✓✗] )? *([A-Za-z_]\w*|\{ [^}\n]* \})\.*: +(\S.*)$", re.MULTILINE)
_PART = re.compile(r"([a-z]+|p\([\d.]+\))=(\S+)")
_COUNTERS = ("http_reqs", "iterations", "dropped_iterations", "vus", "vus_max")
_TIME = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+")
_TREND = re.compile(r"^.*_duration\.*: (?:avg|min|med|max|p\([\d.]+\))=\d", re.MULTILINE)
_PROGRESS = re.compile(
    r"^running \(.*\), \d+/\d+ VUs, \d+ complete and \d+ interrupted iterations", re.MULTILINE
)
_ARRIVALS = re.compile(r"^ *\* \S+: ([\d.]+) iterations/s", re.MULTILINE)
_LOOPING = re.compile(
    r"^ *\* \S+: .*(?:looping VUs|iterations shared|iterations for each)", re.MULTILINE
)


def sniff(head: Head) -> Confidence:
    """Tell the rows of trends, or the lines of progress before them, where no JSON of handleSummary follows."""
    if sniff_json(head) is Confidence.CERTAIN:
        return Confidence.NO
    text = plain_report(head.text)
    return Confidence.CERTAIN if _TREND.search(text) or _PROGRESS.search(text) else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the metrics of the last summary: the main one, or all trends where one is asked for by name."""
    text = plain_report(source.text())
    totals = [one.start() for one in _TOTAL.finditer(text)]
    start = totals[-1] if totals else 0
    detail = _DETAIL.search(text, start) if totals else None
    part = Section(
        text[start : detail.start() if detail else None], text.count("\n", 0, start) + 1, source
    )
    found = series_of(_metrics(part), source, options)
    return {name: data.with_run(**_scenarios(text, data.run)) for name, data in found.items()}


def _metrics(part: Section) -> K6Summary:
    """The rows: trends as ``avg=… min=…``, counters as a number and a rate."""
    trends: dict[str, tuple[dict[str, float], bool]] = {}
    counts: dict[str, float] = {}
    rates: dict[str, float] = {}
    most, failed, above = None, 0, ""
    for row in _ROW.finditer(part.text):
        name, stated = row[1], dict(_PART.findall(row[2]))
        if name[0] == "{":  # a part of the metric above
            name = f"{above}{{{name.strip('{ }')}}}"
        else:
            above = name
        numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", row[2])]
        if not numbers and (BUILT_IN.fullmatch(name) or name in _COUNTERS):
            raise part.corrupt(
                row.start(1), printable(f"{name}: {row[2]}", 50), "numbers", "run k6 anew"
            )
        if "avg" in stated or "med" in stated:
            values = _k6_text_trend(part, row, name, stated)
            if values:
                trends[name] = values, True
        elif name.startswith("vus"):
            most = float(stated.get("max", numbers[0]))
        elif name == "http_req_failed" and len(numbers) > 1:
            failed = int(numbers[1])
        elif numbers:
            counts[name] = numbers[0]
            rates[name] = (
                numbers[1] if len(numbers) == 2 and row[2].rstrip().endswith("/s") else 0.0
            )
    return K6Summary(trends, counts, rates, failed, most)


def _k6_text_trend(
    part: Section, row: re.Match[str], name: str, stated: dict[str, str]
) -> dict[str, float]:
    """The statistics of a row in ns; nothing where they are no times."""
    values: dict[str, float] = {}
    for key, text in stated.items():
        if key == "count":
            values[key] = float(text)
        elif _TIME.fullmatch(text):
            values[key] = round(parse_duration(text), 3)
        elif BUILT_IN.fullmatch(name):
            seen = printable(f"{name}: {key}={text}")
            raise part.corrupt(row.start(1), seen, "a duration, such as 5.81s", "run k6 anew")
        else:
            return {}
    return values


def _scenarios(text: str, run: Run) -> dict[str, Any]:
    """What the lines of scenarios, before the run, and the last line of progress say."""
    rates, looping = _ARRIVALS.findall(text), _LOOPING.search(text)
    interrupted = re.findall(r"(\d+) interrupted iterations", text)
    facts: dict[str, Any] = {"unfinished": int(interrupted[-1])} if interrupted else {}
    if rates and not looping:
        facts |= {
            "loop": "open",
            "corrected": "unknown" if run.dropped else "schedule",
            "measure": "response",
        }
        facts |= {"rate": float(rates[0])} if len(rates) == 1 else {}
    elif looping and not rates:
        facts |= {"loop": "closed", "corrected": "none", "measure": "service"}
    return facts


_K6_TEXT = (
    Format(
        "k6", "k6 summary (text)", "histogram", (".txt",), sniff, read,
        example="k6 run --summary-trend-stats 'med,max,p(90),p(99),p(99.9),count' script.js > k6.txt",
    ),
)  # fmt: skip

FORMATS = (*_K6, *_K6_POINTS, *_K6_TEXT)
