"""Traces as two columns, ``TIMEus DELTAus``: when an operation ended, and how long it took.

It is the input of Brendan Gregg's ``trace2heatmap.pl``, cut from the output of iosnoop, biosnoop
and the like. Without a header, whole numbers are such a trace if the first column is that of a
clock: it never falls and its steps differ, as those of the values of a printed histogram do not.
"""

from __future__ import annotations

import re

import numpy as np

from latencykit.core.run import Run
from latencykit.io.build import base_unit, nanoseconds_of, samples_of, whole_nanoseconds
from latencykit.io.rows import RowLayout, read_table
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source

_HEADER = re.compile(
    r"#?\s*(?P<time>S?TIME|END|START|TS)(?:\s?\(?(?P<clock>ns|us|ms|s)\)?)?\s+"
    r"(?:DELTA|LAT|LATENCY|DURATION)(?:\s?\(?(?P<unit>ns|us|ms|s)\)?)?",
    re.IGNORECASE,
)
_ROW = re.compile(r"\s*(\d{1,18})[ \t]+(\d{1,15})\s*")
_FEWEST = 20  # rows without a header


def _header(head: Head) -> re.Match[str] | None:
    return _HEADER.fullmatch(head.lines[0].strip()) if head.lines else None


def sniff(head: Head) -> Confidence:
    """Recognise the header, or the clock of bare numbers."""
    lines = head.lines[1:21] if (header := _header(head)) else head.lines[:2000]
    if header is not None:
        fits = [re.fullmatch(r"\s*[\d.]+[ \t]+[\d.]+\s*", line) for line in lines]
        return Confidence.CERTAIN if fits and all(fits) else Confidence.NO
    rows = [_ROW.fullmatch(line) for line in lines]
    if len(rows) < _FEWEST or not all(rows):
        return Confidence.NO
    clock = np.array([float(row[1]) for row in rows if row])
    steps = np.diff(clock)
    varied = np.unique(steps).size > len(rows) / 4
    return Confidence.LIKELY if (steps >= 0).all() and varied else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every row; the time is that of the end, unless the header says STIME or START."""
    header = _header(source.head)
    layout = RowLayout(
        ("time", "latency"), ("time", "latency"), sep=" ", skip=int(header is not None),
        largest={"time": 9e18, "latency": 9e15}, exact=True,
    )  # fmt: skip
    frame, notes = read_table(source, options, layout)
    stated = header["unit"] if header else None
    unit, origin = options.resolve_unit("us", "assumed")
    if stated:
        unit, origin = stated.lower(), "file"
    clock = (header["clock"] or unit).lower() if header else unit
    if clock == "none":
        clock = "ns"
    latency = nanoseconds_of(frame["latency"], unit)
    end = whole_nanoseconds(frame["time"], clock)
    begins = header is not None and header["time"].upper() in ("STIME", "START")
    start = end if begins else end - np.rint(latency).astype(np.int64)
    guess = () if header else ("two columns without names: taken as end time and latency",)
    run = Run(
        measure="service", corrected="none", unit=unit, unit_from=origin, notes=(*notes, *guess)
    )
    given = {"start": start, "duration": latency}
    return samples_of(given, run, options, unit=base_unit(unit))


FORMATS = {
    "time-latency": (sniff, read),
}
