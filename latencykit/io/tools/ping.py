"""ping: what iputils, BusyBox, BSD and macOS, and Windows print; ``-D`` puts the time of the reply in front."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.io.build import nanoseconds_of, several, whole_nanoseconds, without_negative
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_REPLY = re.compile(
    r"^(?:\[(\d+\.\d+)\] )?.*?\b(?:icmp_seq|seq|bytes)=(\d+).*?\btime([=<]) ?(-?[\d.]+) ?(ms|us|usec|sec|s)\b(.*)$",
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
_HINT = "the single replies were not printed (-q); without -q ping holds the distribution"


def sniff(head: Head) -> Confidence:
    """Tell the first line, a reply, or the statistics."""
    if re.search(r"^(?:PING|Pinging) \S+", head.text, re.MULTILINE) or _STATS.search(head.text):
        return Confidence.CERTAIN
    return (
        Confidence.CERTAIN
        if re.search(r"\b\d+ bytes from .*icmp_seq=\d+ .*time=[\d.]+ ms", head.text)
        else Confidence.NO
    )


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every reply; lost packets are counted apart."""
    text = source.text()
    rows = _REPLY.findall(text)
    single = [row for row in rows if "DUP!" not in row[5]]
    notes = (
        [f"{several(len(rows) - len(single), 'duplicate reply', 'duplicate replies')} left out"]
        if len(rows) > len(single)
        else []
    )
    if any(row[2] == "<" for row in single):
        notes.append("times printed as below a bound are taken at that bound")
    run = _run(text, len(single), notes)
    stats = _STATS.search(text)
    if not single:
        if stats is None:
            return {}
        low, mean, high, *spread = (
            nanoseconds_of(float(x), "ms").item() for x in stats[1].split("/") if x
        )
        held = {"min": low, "mean": mean, "max": high} | ({"std": spread[0]} if spread else {})
        sent = _SENT.search(text)
        count = int(next(x for x in (sent[2], sent[4]) if x)) if sent else None
        return {"": Summary(held, {}, count, "ns", run.with_notes(_HINT))}
    unit = _UNIT.get(single[0][4], single[0][4])
    duration = nanoseconds_of([float(row[3]) for row in single], unit)
    ends = np.array([float(row[0] or "nan") for row in single])
    travelled = np.rint(np.maximum(duration, 0)).astype(np.int64)
    start = None if np.isnan(ends).any() else whole_nanoseconds(ends, "s") - travelled
    columns, left_out = without_negative({"duration": duration, "start": start}, options)
    return {"": Samples(run=run.replace(unit=unit).with_notes(*left_out), **columns)}


def _run(text: str, received: int, notes: list[str]) -> Run:
    version = re.search(r"ping from (\S+ \S+)", text)
    sent = _SENT.search(text)
    if sent:
        lost = int(sent[1] or sent[3]) - int(sent[2] or sent[4])
    else:
        lost = len(_LOST.findall(text))
        notes.append(
            "the closing statistics are missing: the run was cut short, lost packets are those it reported"
        )
    unreachable = (
        min(len(_UNREACHABLE.findall(text)), max(lost, 0))
        if sent
        else len(_UNREACHABLE.findall(text))
    )
    seconds = re.search(r"packet loss, time (\d+)ms", text)
    return Run(
        tool="ping",
        version=version[1] if version else None,
        loop="open",
        measure="service",
        corrected="schedule",
        duration=int(seconds[1]) / 1e3 if seconds else None,
        connections=1,
        failed=unreachable,
        timeouts=max(lost - unreachable, 0) if sent else lost,
        unit="ms",
        notes=tuple(notes) if received else (),
    )


FORMATS = (
    Format(
        name="ping",
        title="ping",
        level="samples",
        suffixes=(".txt",),
        sniff=sniff,
        read=read,
        unit="ms",
        example="ping -D -i 0.02 -c 1000 HOST > ping.txt",
    ),
)
