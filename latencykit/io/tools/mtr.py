"""mtr, WinMTR and owping: one series per hop, or per direction. What was lost is a timeout."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import distinct
from latencykit.io.declared import Lines, as_it_is, in_ns, report_of
from latencykit.io.text_reports import has_json_keys, has_match

if TYPE_CHECKING:
    from latencykit.io.declared import Report
    from latencykit.io.source import Data, ReadOptions, Source

_RUN = Run(tool="mtr", unit="ms", measure="service", corrected="none")
_ROW = (
    r"^ *\d+\.(?:\|--)? (?P<name>\S.{0,200}?) {1,200}(?P<lost>[\d.]+)%? +(?P<count>\d+) +[\d.]+"
    r" +(?P<mean>[\d.]+) +(?P<min>[\d.]+) +(?P<max>[\d.]+) +(?P<std>[\d.]+)"
)
_WHOLE = "WinMTR measures in whole milliseconds"
_CSV = (  # with the columns of the usual header
    r"^MTR[^,\n]{0,40},\d+,[^,\n]*,[^,\n]*,\d+,(?P<name>[^,\n]{1,200}),(?P<lost>[\d.]+),"
    r"(?P<count>\d+),\d*,[\d.]+,(?P<mean>[\d.]+),(?P<min>[\d.]+),(?P<max>[\d.]+),(?P<std>[\d.]+)"
)
_WINMTR = (
    r"^\| *(?P<name>\S[^|\n]{0,200}?) +- +(?P<lost>\d+) \| +(?P<count>\d+) \| +\d+ \|"
    r" +(?P<min>\d+) \| +(?P<mean>\d+) \| +(?P<max>\d+) \| +\d+ \|"
)
_OWPING = (
    r"^--- owping statistics from (?P<name>\S{1,80} to \S{1,80}) ---\n(?:[\w(][^\n]*\n){0,4}?"
    r"(?P<count>\d+) sent, \d+ lost \((?P<lost>[\d.]+)%\)[^\n]*\n"
    r"one-way delay min/median/max = (?P<min>-?[\d.]+)/(?P<median>-?[\d.]+)/(?P<max>-?[\d.]+) ms"
    r"(?:(?:[^\n]*\n){2}Percentiles:(?P<points>(?:\n\s+[\d.]+: -?[\d.]+ ms)+))?"
)
_KEYS = {"mean": "Avg", "min": "Best", "max": "Wrst", "std": "StDev"}


def _median(report: Report) -> Report:
    stats = dict(report.stats)
    return replace(report, points={**report.points, 50.0: stats.pop("median")}, stats=stats)


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every hop."""
    series: dict[str, Data] = {}
    for hop in json_text.entry(json_text.load(source), "report", source).get("hubs", ()):
        count = int(hop["Snt"])
        late = round(count * float(hop["Loss%"]) / 100)
        facts = {name: in_ns(float(hop[key]), "ms") for name, key in _KEYS.items() if key in hop}
        series[distinct(str(hop.get("host", "")), series)] = report_of(
            facts | {"count": count - late, "timeouts": late}, _RUN, as_it_is
        )
    return series


FORMATS = {
    "mtr": (
        has_match(r"^[^\n]{0,200} Loss% {1,9}Snt {1,9}Last "),
        Lines(run=_RUN, row=_ROW, unit="ms"),
    ),
    "mtr-csv": (
        has_match(r",Loss%,Snt, ,Last,Avg,Best,Wrst,StDev"),
        Lines(run=_RUN, row=_CSV, unit="ms"),
    ),
    "winmtr": (
        has_match(r"WinMTR statistics", _WINMTR),
        Lines(run=_RUN.replace(tool="WinMTR", notes=(_WHOLE,)), row=_WINMTR, unit="ms"),
    ),
    "mtr-json": (has_json_keys(("hubs", "Loss%", "Snt")), read_json),
    "owping": (
        has_match(_OWPING),
        Lines(
            run=_RUN.replace(tool="owping"),
            row=_OWPING,
            unit="ms",
            pair=r"([\d.]+): (-?[\d.]+) ms",
            finish=_median,
        ),
    ),
}
