"""MLPerf's LoadGen: the summary of a run (``mlperf_log_summary.txt``).

A latency counts from the moment that the scenario scheduled its query. The summary does not say how
many samples there were: ``min_query_count`` is only how many it asked for at least.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io.build import data_from_points, distinct
from latencykit.io.sniffing import has_match
from latencykit.io.source import Format
from latencykit.io.text_reports import fact, section_runs

if TYPE_CHECKING:
    from latencykit.io.source import Data, ReadOptions, Source

_BEGIN = re.compile(r"^MLPerf Results Summary[ \t]*$", re.MULTILINE)
_ROW = re.compile(
    r"^(Min|Max|Mean|([\d.]{1,12})(?:th)? percentile) ([A-Za-z][\w -]{0,60}?) \(ns\)[ \t]*:"
    r"[ \t]*(\d{1,18})[ \t]*$",
    re.MULTILINE,
)
_NAMES = {"first token latency": "ttft", "time to output token": "tpot"}
_LOOPS: dict[str, dict[str, Any]] = {
    "Server": {"loop": "open", "measure": "response", "corrected": "schedule"},
    "SingleStream": {"loop": "closed", "measure": "service", "corrected": "none"},
}
_HINT = "mlperf_log_detail.txt has more of the run; mlperf_log_trace.json has every sample"


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the statistics of every kind of latency, of every run."""
    series: dict[str, Data] = {}
    for label, part in section_runs(source, _BEGIN).items():
        text = part.text
        scenario = fact(text, r"^Scenario : (\w+)", str) or ""
        rate = fact(text, r"^target_qps : ([\d.]+)", float)
        run = Run(
            tool="MLPerf LoadGen", unit="ns", unit_from="file", **_LOOPS.get(scenario, {}),
            rate=rate if scenario == "Server" else None,
            achieved=fact(text, r"^(?:Completed s|S)amples per second *: ([\d.]+)", float),
        ).with_notes(_HINT)  # fmt: skip
        if (verdict := fact(text, r"^Result is : (INVALID)", str)) is not None:
            run = run.with_notes(f"LoadGen says that the result is {verdict}")
        stats: dict[str, dict[str, float]] = {}
        points: dict[str, dict[float, float]] = {}
        for word, level, what, value in _ROW.findall(text):
            name = _NAMES.get(what.lower(), what.lower())
            stats.setdefault(name, {})
            if level:
                points.setdefault(name, {})[float(level)] = float(value)
            else:
                stats[name][word.lower()] = float(value)
        for name, values in stats.items():
            own = f"{label} {name if len(stats) > 1 else ''}".strip()
            series[distinct(own, series)] = data_from_points(
                points.get(name, {}), None, values, run
            )
    return series


FORMATS = (
    Format(
        "mlperf", "MLPerf LoadGen (summary)", "summary", (".txt",), has_match(_BEGIN), read,
        unit="ns", example="python main.py --scenario Server …   # writes mlperf_log_summary.txt",
    ),
)  # fmt: skip
