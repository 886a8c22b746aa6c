"""ping of iputils, BusyBox, BSD and macOS, and Windows; ``-D`` adds the time of the reply."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.io.build import (
    nanoseconds,
    nanoseconds_of,
    several,
    whole_nanoseconds,
    without_negative,
)
from latencykit.io.sniffing import has_match
from latencykit.io.source import Format
from latencykit.io.text import fact

if TYPE_CHECKING:
    from latencykit.io.source import Data, ReadOptions, Source

__all__ = ["FORMATS"]

_REPLY = re.compile(
    r"^(?:\[(\d+\.\d+)\] )?.*?\b(?:icmp_seq|seq|bytes)=(\d+).*?\btime([=<]) ?(-?[\d.]+) ?"
    r"(ms|us|usec|sec|s)\b(.*)$",
    re.MULTILINE,
)
_SENT = re.compile(
    r"\b(\d+) packets transmitted, (\d+) (?:packets )?received|Sent = (\d+), Received = (\d+)"
)
_LOST = re.compile(r"Request time(?:out for icmp_seq|d out)|no answer yet for icmp_seq")
_STATS = re.compile(r"min/avg/max(?:/(?:mdev|stddev))? = ([\d./]+) ms")
_UNREACHABLE = re.compile(
    r"^(?:\[[\d.]+\] )?From .*(?:Unreachable|exceeded)|^Reply from .*unreachable",
    re.MULTILINE | re.IGNORECASE,
)
_UNIT = {"usec": "us", "sec": "s"}
_CUT = (
    "the closing statistics are missing: the run was cut short, lost packets are those it reported"
)
_HINT = "the single replies were not printed (-q); without -q ping holds the distribution"


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every reply; lost packets are counted apart."""
    text = source.text()
    rows = _REPLY.findall(text)
    single = [row for row in rows if "DUP!" not in row[5]]
    sent, unreachable = _SENT.search(text), len(_UNREACHABLE.findall(text))
    notes = []
    if len(rows) > len(single):
        count = several(len(rows) - len(single), "duplicate reply", "duplicate replies")
        notes.append(f"{count} left out")
    if any(row[2] == "<" for row in single):
        notes.append("times printed as below a bound are taken at that bound")
    if sent:
        lost = int(sent[1] or sent[3]) - int(sent[2] or sent[4])
        unreachable = min(unreachable, max(lost, 0))
        late = max(lost - unreachable, 0)
    else:
        late = len(_LOST.findall(text))
        notes.append(_CUT)
    milliseconds = fact(text, r"packet loss, time (\d+)ms", int)
    run = Run(
        tool="ping", version=fact(text, r"ping from (\S+ \S+)", str), loop="open",
        measure="service", corrected="schedule", connections=1, failed=unreachable, timeouts=late,
        duration=None if milliseconds is None else milliseconds / 1e3, unit="ms",
        notes=tuple(notes) if single else (),
    )  # fmt: skip
    stats = _STATS.search(text)
    if not single and stats is None:
        return {}
    if not single and stats is not None:
        cells = [nanoseconds(cell, "ms") for cell in stats[1].split("/") if cell]
        named = dict(zip(("min", "mean", "max", "std"), cells, strict=False))
        received = int(sent[2] or sent[4]) if sent else None
        return {"": Summary(named, {}, received, "ns", run.with_notes(_HINT))}
    unit = _UNIT.get(single[0][4], single[0][4])
    duration = nanoseconds_of([float(row[3]) for row in single], unit)
    ends = np.array([float(row[0] or "nan") for row in single])
    travelled = np.rint(np.maximum(duration, 0)).astype(np.int64)
    start = None if np.isnan(ends).any() else whole_nanoseconds(ends, "s") - travelled
    columns, left_out = without_negative({"duration": duration, "start": start}, options)
    return {"": Samples(run=run.replace(unit=unit).with_notes(*left_out), **columns)}


FORMATS = (
    Format(
        "ping", "ping", "samples", (".txt",),
        has_match(
            r"^(?:PING|Pinging) \S+|\b\d+ bytes from .*icmp_seq=\d+ .*time=[\d.]+ ms|"
            + _STATS.pattern
        ),
        read, unit="ms", example="ping -D -i 0.02 -c 1000 HOST > ping.txt",
    ),
)  # fmt: skip
