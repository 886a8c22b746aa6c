"""go-ycsb and go-tpc: a line of statistics per operation, every few seconds and at the end.

Lines of go-ycsb cover the run so far; those of go-tpc, ``[Current]``, some seconds alone, and are
left out. Both keep buckets: a percentile is the upper edge of one, and may lie above the maximum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import data_from_points, nanoseconds, statistics_in
from latencykit.io.source import ReadOptions, Series, Source
from latencykit.io.text_reports import either, fact, has_match, plain

_LINE = re.compile(
    r"^(?:\[(Current|Summary)\] )?(\w[\w.-]*) +- "
    r"((?:Takes\(s\): [\d.]+, )?Count: \d+, \w+(?:\(ms\))?: .*)$",
    re.MULTILINE,
)
_FIELD = re.compile(r"([^\s:,][^:,]{0,60}+): (-?[\d.]+)")
_TABLE = re.compile(r"^\| *operation *\| *takes\(s\) *\|", re.IGNORECASE | re.MULTILINE)
_TIME = re.compile(r"([\d.]+th|avg|min|max)\(([mu]s)\)")
_FAILED = ("_ERR", "_ERROR")


def read_text(source: Source, options: ReadOptions) -> Series:  # noqa: ARG001
    """Read the last line of each operation."""
    text = plain(source.text())
    if (ended := text.rfind("\nRun finished")) >= 0:  # what a further run began is not of this one
        text = text[:ended] + re.split(r"\n\*+ properties", text[ended:])[0]
    lines = list(_LINE.finditer(text))
    if not lines:
        cells = [line.strip(" |").split("|") for line in text.splitlines() if "|" in line]
        if not cells:
            seen = "it has no line of statistics"
            raise source.corrupt(None, seen, "what the tool prints at its end", "did the run end?")
        names, *rows = [[cell.strip() for cell in line] for line in cells]
        found = [dict(zip(names, row, strict=False)) for row in rows if row != names]
        return _series(found, Run(tool="go-ycsb", loop="closed"))
    if all(line[1] == "Current" for line in lines):
        seen = "every line is about some seconds of the run ([Current])"
        raise source.corrupt(None, seen, "[Summary] lines at its end", "let the run finish")
    found = [
        {"operation": line[2], **dict(_FIELD.findall(line[3]))}
        for line in lines
        if line[1] != "Current"
    ]
    threads = fact(text, r'"threadcount"="(\d+)"', int)
    rate = fact(text, r'"target"="(\d+)"', float) or None
    run = Run(
        tool="go-tpc" if lines[0][1] else "go-ycsb", connections=threads, rate=rate,
        loop="paced" if rate else "closed",
    )  # fmt: skip
    return _series(found, run)


def read_json(source: Source, options: ReadOptions) -> Series:  # noqa: ARG001
    """Read go-ycsb's lists of operations, of which the last one counts."""
    records = json_text.values(source.text(), source)
    lists = [record if isinstance(record, list) else [record] for record in records]
    rows = [row for rows in lists for row in rows if isinstance(row, dict)]
    return _series(rows, Run(tool="go-ycsb", loop="closed"))


def _series(rows: Iterable[Mapping[str, object]], run: Run) -> Series:
    """One series per operation, of its last row; what failed is a number of the operation."""
    given: dict[str, dict[str, str]] = {}
    for row in rows:
        facts = {name.strip().lower(): str(value) for name, value in row.items()}
        if "count" in facts:
            given[facts.pop("operation", "")] = facts
    failures = {name + end for name in given for end in _FAILED if name + end in given}
    for name, facts in given.items():
        if name in failures:
            continue
        points, stats = statistics_in(
            {
                match[1]: nanoseconds(value, match[2])
                for field, value in facts.items()
                if (match := _TIME.fullmatch(field))
            }
        )
        least, most = stats.get("min", 0.0), stats.get("max", float("inf"))
        # above its last bucket, one second, go-ycsb once printed 0
        points = {p: min(value, most) for p, value in points.items() if value >= max(least, 1.0)}
        count, seconds = int(facts["count"]), float(facts.get("takes(s)", 0)) or None
        own = run.replace(
            measure="service", corrected="none", unit="us", unit_from="format", duration=seconds,
            achieved=count / seconds if seconds else None,
            failed=sum(int(given[name + end]["count"]) for end in _FAILED if name + end in given),
        )  # fmt: skip
        yield name, data_from_points(points, count, stats, own)


FORMATS = {
    "go-ycsb": (either(has_match(_LINE), has_match(_TABLE)), read_text),
    "go-ycsb-json": read_json,
}
