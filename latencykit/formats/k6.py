"""k6's end-of-test summary as JSON, in its three shapes.

``--summary-export`` writes numbers right under the metric, ``handleSummary`` one level down beside their type, and the
machine-readable summary of k6 1.5 a list of metrics. Times are in ms. The count of a trend is in none of them unless
``summaryTrendStats`` asks for it; there are as many ``http_req_duration`` as ``http_reqs``.

No summary says how requests were scheduled. Little's law does: where VUs were busy all the time (iterations a second ×
their mean duration = VUs), they sent as soon as they could; dropped iterations are an arrival rate that ran out of VUs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from latencykit.formats import jsontext
from latencykit.formats.base import Confidence, Format
from latencykit.formats.shaping import nanoseconds, rung_of_points, several
from latencykit.formats.spread import mixed_note, nothing_answered
from latencykit.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from latencykit.formats.base import Head, ReadOptions, Rung, Source

__all__ = ["BUILT_IN", "FORMATS", "MAIN", "K6Summary", "loop_of", "series_of", "sniff_json"]

MAIN = ("http_req_duration", "grpc_req_duration", "ws_session_duration", "browser_http_req_duration", "iteration_duration")
"""Metrics that are charted where none is asked for: the first of these that is there."""

_PERCENTILE = re.compile(r"p\(?(\d+(?:\.\d+)?)\)?")  # p(95); p95 in the machine-readable summary
_BEGIN = re.compile(r'^\{\s*"(?:root_group|options|state|metrics|results)"', re.MULTILINE)
BUILT_IN = re.compile(r"(?:http_req|grpc|ws|browser|iteration|group)_\w+(?:\{.*\})?")
_GOOD = "http_req_duration{expected_response:true}"
_BUSY = 0.9
_HIGH = 99.0
_HINT = (
    "k6 run --summary-trend-stats 'avg,min,med,max,p(90),p(99),p(99.9),count' keeps more of the distribution, --out csv all of it"
)


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
        tool="k6", measure="service", unit="ms", unit_from="format", connections=round(vus) if vus else None, dropped=dropped
    )
    if dropped:
        note = f"{several(dropped, 'iteration')} dropped: the arrival rate ran out of VUs, and what was due then is missing"
        return run.but(loop="open").noting(note)
    if busy and vus and busy >= _BUSY * vus:
        return run.but(loop="closed", corrected="none")
    return run


def sniff_json(head: Head) -> Confidence:
    """Tell k6's metrics in one of the shapes; what handleSummary writes to ``stdout`` stands below the banner."""
    begin = _BEGIN.search(head.text)
    text = head.text[begin.start() :] if begin else head.text
    if text.lstrip()[:1] != "{" or '"type":"Point"' in text:
        return Confidence.NO
    listed = '"results"' in text and re.search(r'"name":\s*"(?:iterations|http_reqs|vus_max)"', text)
    keyed = '"metrics"' in text and re.search(r'"(?:iterations|http_reqs|vus_max|data_received|iteration_duration)":\s*\{', text)
    return Confidence.CERTAIN if listed or keyed else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read the main metric, or all trends where one is asked for by name."""
    record = jsontext.load(source, after_noise=source.head.text.lstrip()[:1] != "{")
    listed = isinstance(record, dict) and isinstance(record.get("results"), dict)
    given = jsontext.entry(record, "results.metrics" if listed else "metrics", source, list if listed else dict)
    metrics = {str(one["name"]): one for one in given} if listed else given
    trends: dict[str, tuple[dict[str, float], bool]] = {}
    counts, rates, gauges = {}, {}, {}
    for name, metric in metrics.items():
        values = metric.get("values", metric)
        numbers = {key: float(value) for key, value in values.items() if isinstance(value, (int, float)) and key != "thresholds"}
        if "avg" in numbers or "med" in numbers or any(_PERCENTILE.fullmatch(key) for key in numbers):
            timed = metric.get("contains", "time" if BUILT_IN.fullmatch(name) else "default") == "time"
            trends[name] = {key: value if key == "count" else nanoseconds(value, "ms") for key, value in numbers.items()}, timed
        else:
            counts[name], rates[name] = numbers.get("count", 0.0), numbers.get("rate", 0.0)
            gauges[name] = numbers
    failed = gauges.get("http_req_failed", {})
    state, config = (record.get(key) or {} for key in ("state", "config"))
    seconds = config.get("duration") or (state.get("testRunDurationMs") or 0.0) / 1e3
    most = gauges.get("vus_max", gauges.get("vus", {}))
    known = K6Summary(
        trends, counts, rates, int(failed.get("passes", failed.get("matches", 0))), most.get("max", most.get("value")), seconds
    )
    return series_of(known, source, options)


def series_of(known: K6Summary, source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Return the main metric, or all trends where one is asked for by name."""
    timed = [name for name, (_, is_time) in known.trends.items() if is_time]
    main = next((name for name in MAIN if name in timed), timed[0] if timed else None)
    if main is None:
        raise source.corrupt(None, "there is no trend of times in it", "http_req_duration or another", "run k6 to its end")
    others = tuple(name for name in known.trends if name != main)
    run = _run(known)
    names = (main, *others) if options.series else (main,)
    return {name: _trend(name, known, run.but(aggregate=False), source) for name in names}


def _run(known: K6Summary) -> Run:
    """How the run was made, from all its metrics together."""
    iterations, seconds = known.counts.get("iterations"), known.duration
    if not seconds and iterations and known.rates.get("iterations"):
        seconds = iterations / known.rates["iterations"]
    each = known.trends.get("iteration_duration", ({}, False))[0].get("avg")
    busy = iterations * each / 1e9 / seconds if iterations and each and seconds else None
    run = loop_of(busy, known.most_vus, int(known.counts.get("dropped_iterations", 0)))
    requests = known.counts.get("http_reqs")
    return run.but(
        duration=round(seconds, 6) if seconds else None,
        achieved=round(requests / seconds, 6) if requests and seconds else None,
        failed=known.failed or 0,
    )


def _trend(name: str, known: K6Summary, run: Run, source: Source) -> Rung:
    """One metric, with as many values as the run had requests or iterations."""
    stats, timed = known.trends[name]
    points = {float(found[1]): value for key, value in stats.items() if (found := _PERCENTILE.fullmatch(key))}
    if "med" in stats:
        points.setdefault(50.0, stats["med"])
    told = {ours: stats[theirs] for ours, theirs in (("mean", "avg"), ("min", "min"), ("max", "max")) if theirs in stats}
    count = _count(name, stats, known)
    if count is not None and count <= 0:
        raise nothing_answered(source, run)
    failed = run.failed if name.startswith("http_req_") else 0
    mixed = failed if "{" not in name else 0
    if count is not None and count <= mixed and told.get("max") == 0:  # k6 gives requests without a reply a time of 0
        raise nothing_answered(source, run)
    run = run.but(failed=failed).noting(*mixed_note(mixed))
    if mixed and name == "http_req_duration" and _GOOD in known.trends:
        run = run.noting(f"the series {_GOOD} holds the good ones alone")
    if not timed:
        run = run.but(unit_from="assumed").noting("k6 does not say that this is a time; it was taken as ms")
    if not any(p >= _HIGH for p in points) or count is None:
        run = run.noting(_HINT)
    return rung_of_points(points, None if count is None else count - mixed, told, run)


def _count(name: str, stats: Mapping[str, float], known: K6Summary) -> int | None:
    """How many values a trend is of: what it says itself, else the counter that goes with it."""
    if "count" in stats:
        return int(stats["count"])
    base, _, labels = name.partition("{")
    counter = "http_reqs" if base.startswith("http_req_") else "iterations" if base == "iteration_duration" else ""
    total = known.counts.get(counter)
    if total is None or (labels and name != _GOOD):
        return None
    return int(total) - ((known.failed or 0) if labels else 0)


FORMATS = (
    Format(
        "k6-summary", "k6 summary (JSON)", "histogram", (".json",), sniff_json, read_json, unit="ms",
        example="k6 run --summary-export summary.json --summary-trend-stats 'med,max,p(90),p(99),p(99.9),count' script.js",
    ),
)  # fmt: skip
