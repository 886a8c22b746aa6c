"""ApacheBench: its text, the rows of ``-g``, and the percentiles of ``-e``.

Text and rows round times to whole milliseconds; ``-e`` prints three decimals, but no number of
requests. ab sends the next request of a connection when the reply to the last one arrived.
"""

from __future__ import annotations

import re

from latencykit._text import format_items, printable
from latencykit.core.run import CLOSED, Run
from latencykit.io.build import data_from_points, mixed_note, statistics_in, unanswered
from latencykit.io.declared import TRUNCATED, Rows
from latencykit.io.rows import line_refuser
from latencykit.io.source import Data, ReadOptions, Source
from latencykit.io.text_reports import (
    Section,
    command_of,
    either,
    fact,
    has_match,
    plain,
    search,
    starts_with,
    text_of_run,
)

# what a report begins with, unless a copy lacks it
_BEGINS = (r"^This is ApacheBench, Version", "^Server Software:", "^Concurrency Level:")
_TABLE = re.compile(
    r"^Connection Times \(ms\)[^\n]*\n"
    r"\s*(min\s+(?:mean\[\+/-sd\]\s+median|avg)\s+max(?:\s+std)?)\s*\n",
    re.MULTILINE,
)
_TOTAL = re.compile(r"^Total:((?:\s+-?\d+(?:\.\d+)?)+)\s*$", re.MULTILINE)
_SPREAD = re.compile(
    r"^Percentage of the requests served within a certain time \(ms\) *\n", re.MULTILINE
)
_POINT = re.compile(
    r"^\s*(\d+)%\s+(?:(\d+(?:\.\d+)?)(?: ms|\s+\((?:longest|last) request\))?|<0> \(never\))\s*$"
)
_FACTS = (
    "Complete requests", "Failed requests", "Non-2xx responses", "Concurrency Level",
    "Time taken for tests",
)  # fmt: skip
_COLUMNS = "starttime\tseconds\tctime\tdtime\tttime\twait"
_RUN = Run(tool="ab", **CLOSED, unit="ms", unit_from="file")
_ROUNDED = "ab rounds times to whole milliseconds"
_BY_TIME = "starts are known to the second; rows are sorted by time, and include failed requests"
_HINT = "ab -g writes every request, and so the full distribution"


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the report of a run."""
    begins = (begin for begin in _BEGINS if search(begin, plain(source.text())))
    text = text_of_run(source, next(begins, _BEGINS[0]))
    part = Section(text, 1, source)
    numbers = re.findall(r"^([A-Z][\w -]+):\s+(\d+(?:\.\d+)?)", text, re.MULTILINE)
    facts = {name: float(number) for name, number in numbers}
    for label in _FACTS:
        part.found(f"{label}:", re.compile(r":\s+\d"), "a number")
    if "Complete requests" not in facts:
        expected = "the number of complete requests"
        raise part.corrupt(None, "the report is missing", expected, "did ab run to its end?")
    # Connections that failed are not among the complete requests.
    unconnected = fact(text, r"\(Connect: (\d+)", int) or 0
    # Replies of another length than the first: pages that vary, unless their status says otherwise.
    uneven = fact(text, r"^[ \t]*\(.*\bLength: (\d+)", int) or 0
    failures = int(facts.get("Failed requests", 0)) - unconnected - uneven
    refused = int(facts.get("Non-2xx responses", 0))
    # Exceptions and errors of receiving have no answer, so no status either.
    mixed = failures + refused if "Exceptions:" in text else max(failures, refused)
    run = _RUN.replace(
        version=fact(text, r"ApacheBench, Version (\S+)", str), command=command_of(text, "ab"),
        duration=facts.get("Time taken for tests"), achieved=facts.get("Requests per second"),
        connections=int(facts["Concurrency Level"]) if "Concurrency Level" in facts else None,
        failed=unconnected + mixed, notes=mixed_note(mixed),
    )  # fmt: skip
    if uneven:
        replies = format_items(uneven, "reply", "replies")
        run = run.with_notes(
            f"{replies} of another length than the first not counted as failed, though ab does "
            "so without -l"
        )
    good = int(facts["Complete requests"]) - mixed
    if not facts["Complete requests"]:
        return {"": unanswered(run)}
    stats: dict[str, float] = {}
    if (table := _TABLE.search(text)) is not None:  # of connection times
        row = _TOTAL.search(text, table.end())
        names = re.findall("[a-z]+", table[1])
        cells = [float(number) for number in row[1].split()] if row else []
        if len(cells) != len(names):
            seen, due = "the row Total of the connection times is corrupt", f"{len(names)} numbers"
            raise part.corrupt(table.end(), seen, due, "run ab anew")
        _, stats = statistics_in(dict(zip(names, cells, strict=True)))
    mean = fact(text, r"^Time per request:\s+([\d.]+) \[ms\] \(mean\)", float)
    if mean is not None and ("mean" not in stats or abs(mean - stats["mean"]) <= 1.0):
        stats["mean"] = mean  # concurrency x time / requests: the same, with three decimals
    title = _SPREAD.search(text, text.index("Complete requests:"))
    points: dict[float, float] = {}
    if title:
        end = re.compile(r"^[ \t]*$|\Z", re.MULTILINE).search(text, title.end())
        stop = end.start() if end else len(text)
        if stop == len(text) and not text.endswith("\n"):
            stop, run = text.rfind("\n") + 1, run.with_notes(TRUNCATED)
        expected = "a percentage and milliseconds"
        rows = part.matches(_POINT, title.end(), max(stop, title.end()), expected)
        points = {float(row[1]): float(row[2]) for row in rows if row[2]}
    if table and table[1].endswith("std"):  # SeaweedFS prints its own so, in tenths of ms
        run = run.replace(tool="weed benchmark")
    else:
        run = run.with_notes(_ROUNDED, _HINT)
    return {"": data_from_points(points, max(good, 0), stats, run, "ms")}


_PERCENT = "Percentage served,Time in ms"


def read_percent(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the percentiles 0 to 99."""
    text, points, notes = source.text(), dict[float, float](), list[str]()
    refuse = line_refuser(source, options, text, notes)
    begin = text.count("\n", 0, text.index(_PERCENT)) + 1  # below a title
    for number, line in enumerate(text.split("\n")[begin:], begin + 1):
        row = re.fullmatch(r"\s*(\d+),\s*(\d+(?:\.\d+)?)\s*", line)
        if row is not None and float(row[1]) <= 100 and number <= text.count("\n"):
            points[float(row[1])] = float(row[2])
        elif line.strip():
            refuse(number, f"{printable(line, 50)!r}", "a percentage and milliseconds")
    hint = f"ab -e does not print how many requests there were; {_HINT}"
    return {"": data_from_points(points, None, {}, _RUN.with_notes(*notes, hint), "ms")}


FORMATS = {
    "ab": (
        either(
            has_match(_BEGINS[0], plain=plain),
            has_match(
                r"^Concurrency Level:", "Time taken for tests:", "Complete requests:", plain=plain
            ),
        ),
        read_text,
    ),
    "ab-gnuplot": (
        starts_with(_COLUMNS),
        Rows(
            run=_RUN,
            columns=_COLUMNS,
            sep="\t",
            duration="ttime",
            start="seconds",
            clock="s",
            notes=(_ROUNDED, _BY_TIME),
        ),
    ),
    "ab-csv": (has_match(rf"^{_PERCENT}"), read_percent),
}
