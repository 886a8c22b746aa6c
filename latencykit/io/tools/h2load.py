"""h2load: the log of ``--log-file`` (a row per request: start and duration in µs), and its closing text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.errors import InvalidArgumentError
from latencykit.io.build import data_from_points, mixed_note, nothing_answered, without_negative
from latencykit.io.rows import Layout, read_table
from latencykit.io.source import Confidence, Format
from latencykit.io.text import plain, runs
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_BEGIN = re.compile(r"^starting benchmark\.\.\.", re.MULTILINE)
_LINE = re.compile(r"\d{15,17}\t(?:-1|\d{1,3})\t-?\d+")
_TABLE = re.compile(
    r"^ +(min +max +.*?)\s*$\n(?:.*\n)*?^(?:time for request|request *): *(.+?)\s*$", re.MULTILINE
)
_TITLES = {"min": "min", "max": "max", "mean": "mean", "sd": "std"}
_HINT = "h2load --log-file=FILE holds every request, and so the whole distribution"


def sniff_log(head: Head) -> Confidence:
    """Tell the three columns: µs since the epoch, status, µs."""
    fits = [_LINE.fullmatch(line) is not None for line in head.lines[:50]]
    return (
        Confidence.CERTAIN if fits and fits[0] and sum(fits) >= 0.8 * len(fits) else Confidence.NO
    )


def sniff_text(head: Head) -> Confidence:
    """Tell the line of totals."""
    found = re.search(
        r"^requests: \d+ total, \d+ started, \d+ done", plain(head.text), re.MULTILINE
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read_log(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request; a status of 400 and above, or none, is a failure."""
    names = ("start", "status", "duration")
    frame, notes = read_table(
        source, options, Layout(names, names, sep="\t", largest={"start": 9e15, "duration": 9e15})
    )
    status = frame["status"].to_numpy()
    outcome = np.where((status < 100) | (status >= 400), OUTCOMES.index("error"), 0).astype(np.int8)
    given = {
        "start": frame["start"].to_numpy(np.int64),
        "duration": frame["duration"].to_numpy(np.int64),
        "outcome": outcome,
    }
    columns, left_out = without_negative(given, options)
    start = float(columns["start"].min()) / 1e6 if columns["start"].size else None
    run = Run(
        tool="h2load", loop="closed", measure="service", corrected="none", unit="us", unit_from="format", start=start,
        notes=(*notes, *left_out),
    )  # fmt: skip
    return {"": Samples(unit="us", run=run, **columns)}


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the statistics of requests of every run; since 1.66 with percentiles."""
    return {name: _table(part, source) for name, part in runs(plain(source.text()), _BEGIN).items()}


def _table(text: str, source: Source) -> Data:
    totals = re.search(
        r"^requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", text,
        re.MULTILINE,
    )  # fmt: skip
    table = _TABLE.search(text)
    if totals is None:
        raise source.corrupt(
            None,
            "the closing line of totals is missing",
            "requests: … total, … started",
            "did the run end?",
        )
    _, started, done, good, failed, _, late = (int(number) for number in totals.groups())
    run = _run(text).replace(
        failed=max(failed - late, 0), timeouts=late, unfinished=max(started - done, 0)
    )
    if table is None or not good:
        raise nothing_answered(source, run)
    titles = [title.replace("+/-sd", "") for title in table[1].replace("+/- sd", "+/-sd").split()]
    try:
        values = dict(
            zip(
                titles,
                (parse_duration(cell) for cell in table[2].split()[: len(titles) - 1]),
                strict=False,
            )
        )
    except InvalidArgumentError as error:
        raise source.corrupt(
            None, f"a time that cannot be read ({error})", "such as 1.64ms", ""
        ) from None
    stats = {_TITLES[title]: round(value, 3) for title, value in values.items() if title in _TITLES}
    points = {50.0: round(values["median"], 3)} if "median" in values else {}
    points |= {
        float(title[1:]): round(value, 3)
        for title, value in values.items()
        if re.fullmatch(r"p[\d.]+", title)
    }
    refused = max(done - good, 0)
    return data_from_points(points, good, stats, run.with_notes(_HINT, *mixed_note(refused)))


def _run(text: str) -> Run:
    clients = sum(
        int(number)
        for number in re.findall(r"^spawning thread #\d+: (\d+) total client", text, re.MULTILINE)
    )
    ended = re.search(r"^finished in (\S+), ([\d.]+) req/s", text, re.MULTILINE)
    try:
        seconds = parse_duration(ended[1]) / 1e9 if ended else None
    except InvalidArgumentError:
        seconds = None
    return Run(
        tool="h2load", loop="closed", measure="service", corrected="none", connections=clients or None, duration=seconds,
        achieved=float(ended[2]) if ended else None,
    )  # fmt: skip


FORMATS = (
    Format(
        "h2load-log", "h2load --log-file", "samples", (".tsv", ".log", ".txt"), sniff_log, read_log, unit="us",
        example="h2load -n 10000 -c 10 --log-file=log.tsv URL",
    ),
    Format("h2load", "h2load (text)", "summary", (".txt",), sniff_text, read_text, example="h2load -n 10000 -c 10 URL > out.txt"),
)  # fmt: skip
