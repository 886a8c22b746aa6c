"""Rally and OpenSearch Benchmark: the table of metrics at the end of a race, or as CSV.

A latency counts from the moment that the schedule of the task asked for the request, so waiting
time is in it; the service time counts from the send. The number of requests is not in the table.
"""

from __future__ import annotations

import re
from collections import defaultdict

from latencykit.core.run import Run
from latencykit.io.build import data_from_points, unit_in
from latencykit.io.source import ReadOptions, Series, Source
from latencykit.io.text_reports import has_match, text_of_run

_BEGIN = r"^[ \t]{0,9}(?:\|[ \t]{0,99})?"
_NEXT = r"[ \t]{0,99}[|,]"
_ROW = re.compile(
    rf"{_BEGIN}(?:([\d.]{{1,12}})(?:st|nd|rd|th) percentile (latency|service time|processing time)"
    rf"|error rate){_NEXT}([^|,\n]{{0,200}})[|,][ \t]{{0,99}}([\d.]{{1,30}}){_NEXT}[ \t]{{0,99}}"
    r"(\S{1,9})",
    re.MULTILINE,
)
_HEADING = rf"{_BEGIN}Metric{_NEXT}"
_LATENCY = (
    rf"{_BEGIN}[\d.]{{1,12}}th percentile (?:latency|service time){_NEXT}[^|,\n]{{0,200}}[|,]"
)


def read(source: Source, options: ReadOptions) -> Series:
    """Read every task's latency, service time and processing time."""
    points: defaultdict[tuple[str, str, str], dict[float, str]] = defaultdict(dict)
    errors: dict[str, str] = {}
    for level, what, cell, value, unit in _ROW.findall(text_of_run(source, _HEADING)):
        task = cell.strip()
        if not level:
            errors[task] = value
        elif time := unit_in(unit):
            points[task, what, time][float(level)] = value
    for (task, what, unit), values in points.items():
        response = what == "latency"
        run = Run(
            tool="Rally", measure="response" if response else "service", unit=unit,
            corrected="schedule" if response else "none", unit_from="file",
        )  # fmt: skip
        if float(errors.get(task, 0)):
            run = run.replace(failures_known=False)
            run = run.with_notes(f"{errors[task]} % of its requests failed, of a number not stated")
        yield f"{task} {what}".strip(), data_from_points(values, None, {}, run, unit)


FORMATS = {"rally": (has_match(_LATENCY), read)}
