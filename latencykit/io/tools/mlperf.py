"""MLPerf's LoadGen: the summary of a run (``mlperf_log_summary.txt``).

A latency counts from the moment that the scenario scheduled its query. The summary does not say how
many samples there were: ``min_query_count`` is only how many it asked for at least.
"""

from __future__ import annotations

import re
from collections import defaultdict

from latencykit.core.run import CLOSED, SCHEDULED, Run
from latencykit.io.build import data_from_points
from latencykit.io.source import ReadOptions, Series, Source
from latencykit.io.text_reports import fact, has_match, text_of_run

_BEGIN = re.compile(r"^MLPerf Results Summary[ \t]*$", re.MULTILINE)
_ROW = re.compile(
    r"^(Min|Max|Mean|([\d.]{1,12})(?:th)? percentile) ([A-Za-z][\w -]{0,60}?) \(ns\)[ \t]*:"
    r"[ \t]*(\d{1,18})[ \t]*$",
    re.MULTILINE,
)
_NAMES = {"first token latency": "ttft", "time to output token": "tpot"}
_LOOPS = {"Server": SCHEDULED, "SingleStream": CLOSED}
_HINT = "mlperf_log_detail.txt has more of the run; mlperf_log_trace.json has every sample"


def read(source: Source, options: ReadOptions) -> Series:
    """Read the statistics of every kind of latency of a run."""
    text = text_of_run(source, _BEGIN)
    scenario = fact(text, r"^Scenario : (\w+)", str) or ""
    rate = fact(text, r"^target_qps : ([\d.]+)", float)
    verdict = fact(text, r"^Result is : (INVALID)", "LoadGen says that the result is {}".format)
    run = Run(
        tool="MLPerf LoadGen", unit="ns", unit_from="file", **_LOOPS.get(scenario, {}),
        rate=rate if scenario == "Server" else None,
        achieved=fact(text, r"^(?:Completed s|S)amples per second *: ([\d.]+)", float),
        notes=(_HINT, *filter(None, [verdict])),
    )  # fmt: skip
    stats: defaultdict[str, dict[str, str]] = defaultdict(dict)
    points: defaultdict[str, dict[float, str]] = defaultdict(dict)
    for word, level, what, value in _ROW.findall(text):
        name = _NAMES.get(what.lower(), what.lower())
        if level:
            points[name][float(level)] = value
        else:
            stats[name][word.lower()] = value
    for name, values in stats.items():
        own = name if len(stats) > 1 else ""
        yield own, data_from_points(points[name], None, values, run, "ns")


FORMATS = {"mlperf": (has_match(_BEGIN), read)}
