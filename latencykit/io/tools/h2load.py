"""h2load: the log of ``--log-file`` (one row per request: start, duration in µs), and its text."""

from __future__ import annotations

import re

from latencykit.core.run import CLOSED, Run
from latencykit.io import build
from latencykit.io.declared import Rows
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import certain, durations, has_match, plain, text_of_run
from latencykit.units import parse_duration

_BEGIN = "starting benchmark..."
_RUN = rf"^(?:{re.escape(_BEGIN)}|finished in |requests: \d+ total, )"
_LINE = re.compile(r"\d{15,17}\t(?:-1|\d{1,3})\t-?\d+")
_TOTALS = re.compile(
    r"^requests: \d+ total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, "
    r"\d+ errored(?:, (\d+) timeout)?",  # none before 1.6
    re.MULTILINE,
)
_TABLE = re.compile(
    r"^ *+(min ++max ++.*)\n(?:.*\n)*?(?:time for request|request *): *(.+)$", re.MULTILINE
)
_HINT = "h2load --log-file=FILE contains every request, and so the full distribution"


def sniff_log(head: Head) -> Confidence:
    """Recognise the three columns: µs since the epoch, status, µs."""
    fits = [_LINE.fullmatch(line) is not None for line in head.lines[:50]]
    return certain(fits and fits[0] and sum(fits) >= 0.8 * len(fits))


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the statistics of requests of a run; since 1.66 with percentiles."""
    text = text_of_run(source, _RUN, _TOTALS)
    totals, table = _TOTALS.search(text), _TABLE.search(text)
    if totals is None:
        return {}
    started, done, good, failed, late = (int(number or 0) for number in totals.groups())
    begun = text[max(text.rfind(_BEGIN, 0, totals.start()), 0) : totals.start()]
    clients = re.findall(r"^spawning thread #\d+: (\d+) total client", begun, re.MULTILINE)
    ended = re.search(r"^finished in (\S+), ([\d.]+) req/s", text, re.MULTILINE)
    run = Run(
        tool="h2load", **CLOSED, duration=parse_duration(ended[1]) / 1e9 if ended else None,
        connections=sum(map(int, clients)) or None, achieved=float(ended[2]) if ended else None,
        failed=max(failed - late, 0), timeouts=late, unfinished=max(started - done, 0),
    )  # fmt: skip
    if not good:
        return {"": build.unanswered(run)}
    if table is None:
        return {"": build.data_from_points({}, good, {}, run)}
    titles = [title.replace("+/-sd", "") for title in table[1].replace("+/- sd", "+/-sd").split()]
    cells = dict(zip(titles, table[2].split()[: len(titles) - 1], strict=False))
    values = durations(cells, source, "1.64ms")
    run = run.with_notes(_HINT, *build.mixed_note(max(done - good, 0)))
    return {"": build.data_from_statistics(values, good, run)}


FORMATS = {
    "h2load-log": (
        sniff_log,
        Rows(
            run=Run(tool="h2load", **CLOSED, unit="us"),
            columns="start\tstatus\tduration",
            sep="\t",
            duration="duration",
            start="start",
            status="status",
        ),
    ),
    "h2load": (has_match(r"^requests: \d+ total, \d+ started, \d+ done", plain=plain), read_text),
}
