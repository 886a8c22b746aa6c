"""k6's end-of-test summary as text, and what is said of scenarios and progress above it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from latencykit.formats.base import Confidence, Format
from latencykit.formats.k6 import BUILT_IN, K6Summary, series_of, sniff_json
from latencykit.formats.sections import Section, plain
from latencykit.units import parse_duration, printable

if TYPE_CHECKING:
    from latencykit.formats.base import Head, ReadOptions, Rung, Source
    from latencykit.run import Run

__all__ = ["FORMATS"]

_TOTAL = re.compile(r"^ *█ TOTAL RESULTS", re.MULTILINE)
_DETAIL = re.compile(r"^ *█ (?:GROUP|SCENARIO):", re.MULTILINE)
_ROW = re.compile(r"^(?: *[✓✗] )? *([A-Za-z_]\w*|\{ [^}\n]* \})\.*: +(\S.*)$", re.MULTILINE)
_PART = re.compile(r"([a-z]+|p\([\d.]+\))=(\S+)")
_COUNTERS = ("http_reqs", "iterations", "dropped_iterations", "vus", "vus_max")
_TIME = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+")
_TREND = re.compile(r"^.*_duration\.*: (?:avg|min|med|max|p\([\d.]+\))=\d", re.MULTILINE)
_PROGRESS = re.compile(r"^running \(.*\), \d+/\d+ VUs, \d+ complete and \d+ interrupted iterations", re.MULTILINE)
_ARRIVALS = re.compile(r"^ *\* \S+: ([\d.]+) iterations/s", re.MULTILINE)
_LOOPING = re.compile(r"^ *\* \S+: .*(?:looping VUs|iterations shared|iterations for each)", re.MULTILINE)


def sniff(head: Head) -> Confidence:
    """Tell the rows of trends, or the lines of progress before them, where no JSON of handleSummary follows."""
    if sniff_json(head) is Confidence.CERTAIN:
        return Confidence.NO
    text = plain(head.text)
    return Confidence.CERTAIN if _TREND.search(text) or _PROGRESS.search(text) else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read the metrics of the last summary: the main one, or all trends where one is asked for by name."""
    text = plain(source.text())
    totals = [one.start() for one in _TOTAL.finditer(text)]
    start = totals[-1] if totals else 0
    detail = _DETAIL.search(text, start) if totals else None
    part = Section(text[start : detail.start() if detail else None], text.count("\n", 0, start) + 1, source)
    found = series_of(_metrics(part), source, options)
    return {name: rung.but(**_scenarios(text, rung.run)) for name, rung in found.items()}


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
            raise part.corrupt(row.start(1), printable(f"{name}: {row[2]}", 50), "numbers", "run k6 anew")
        if "avg" in stated or "med" in stated:
            values = _trend(part, row, name, stated)
            if values:
                trends[name] = values, True
        elif name.startswith("vus"):
            most = float(stated.get("max", numbers[0]))
        elif name == "http_req_failed" and len(numbers) > 1:
            failed = int(numbers[1])
        elif numbers:
            counts[name] = numbers[0]
            rates[name] = numbers[1] if len(numbers) == 2 and row[2].rstrip().endswith("/s") else 0.0
    return K6Summary(trends, counts, rates, failed, most)


def _trend(part: Section, row: re.Match[str], name: str, stated: dict[str, str]) -> dict[str, float]:
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
        facts |= {"loop": "open", "corrected": "unknown" if run.dropped else "schedule", "measure": "response"}
        facts |= {"rate": float(rates[0])} if len(rates) == 1 else {}
    elif looping and not rates:
        facts |= {"loop": "closed", "corrected": "none", "measure": "service"}
    return facts


FORMATS = (
    Format(
        "k6", "k6 summary (text)", "histogram", (".txt",), sniff, read,
        example="k6 run --summary-trend-stats 'med,max,p(90),p(99),p(99.9),count' script.js > k6.txt",
    ),
)  # fmt: skip
