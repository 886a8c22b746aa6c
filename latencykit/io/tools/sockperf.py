"""sockperf: its text, and the packets of ``--full-log``.

Latency is half of the round trip unless ``--full-rtt`` was given; what the file calls it is what we give.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.io.build import data_from_points, nanoseconds, nanoseconds_of, without_negative
from latencykit.io.rows import Layout, read_table
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PERCENTILE = re.compile(r"---> percentile ([\d.]+) = *([\d.]+)")
_HEADER = re.compile(r"^packet, txTime\(sec\), rxTime\(sec\)(?:, *(\w+)\(usec\))?\s*$")


def _header_line(head: Head) -> int | None:
    return next((k for k, line in enumerate(head.lines) if _HEADER.match(line)), None)


def sniff_csv(head: Head) -> Confidence:
    """Tell the header of the packets."""
    return Confidence.CERTAIN if _header_line(head) is not None else Confidence.NO


def sniff_text(head: Head) -> Confidence:
    """Tell sockperf's percentiles, where no packets follow."""
    found = "sockperf: " in head.text and "---> <MAX> observation" in head.text
    return Confidence.CERTAIN if found and _header_line(head) is None else Confidence.NO


def _run(text: str) -> Run:
    def number(pattern: str) -> float | None:
        found = re.search(pattern, text)
        return float(found[1]) if found else None

    version = re.search(r"== version #(\S+) ==", text)
    full = "avg-rtt=" in text or "--full-rtt" in text
    return Run(
        tool="sockperf",
        version=version[1] if version else None,
        measure="service",
        corrected="none",
        rate=number(r"--mps=(\d+)"),
        duration=number(r"\[Valid Duration\] RunTime=([\d.]+) sec"),
        dropped=int(number(r"# dropped messages = (\d+)") or 0),
        unit="us",
        unit_from="format",
        notes=()
        if full
        else ("latency is half of the round trip, as sockperf has it without --full-rtt",),
    )


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the printed percentiles."""
    text = _COLOUR.sub("", source.text())
    points = {float(p): nanoseconds(float(value), "us") for p, value in _PERCENTILE.findall(text)}
    stats: dict[str, float] = {}
    for name, pattern in (
        ("max", r"---> <MAX> observation = *([\d.]+)"),
        ("min", r"---> <MIN> observation = *([\d.]+)"),
        ("mean", r"avg-(?:rtt|lat(?:ency)?)= *([\d.]+)"),
        ("std", r"\(std-dev= *([\d.]+)\)"),
    ):
        found = re.search(pattern, text)
        if found:
            stats[name] = nanoseconds(float(found[1]), "us")
    count = re.search(r"Total (\d+) observations", text)
    return {"": data_from_points(points, int(count[1]) if count else None, stats, _run(text))}


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every packet of the valid part of the test."""
    at = _header_line(source.head)
    if at is None:
        raise source.corrupt(
            None, "there is no header of packets", "packet, txTime(sec), rxTime(sec)", ""
        )
    preface = _COLOUR.sub("", "\n".join(source.head.lines[:at]))
    found = _HEADER.match(source.head.lines[at])
    measured = bool(found and found[1])
    names = ("packet", "tx", "rx", "latency") if measured else ("packet", "tx", "rx")
    layout = Layout(
        names, names[1:], skip=at + 1, comment="-", largest={"tx": 9e9, "rx": 9e9, "latency": 9e15}
    )
    frame, notes = read_table(source, options, layout)
    run = _run(preface).with_notes(*notes)
    if measured:
        duration = nanoseconds_of(frame["latency"].to_numpy(), "us")
    else:
        trip = nanoseconds_of(frame["rx"].to_numpy() - frame["tx"].to_numpy(), "s")
        duration = trip if not run.notes or "half" not in run.notes[0] else trip / 2
    start = np.rint(frame["tx"].to_numpy() * 1e9).astype(np.int64)
    columns, left_out = without_negative({"duration": duration, "start": start}, options)
    return {"": Samples(run=run.with_notes(*left_out), **columns)}


FORMATS = (
    Format(
        "sockperf-csv", "sockperf's packets", "samples", (".csv",), sniff_csv, read_csv, unit="us",
        example="sockperf ping-pong -i HOST --full-rtt --full-log packets.csv",
    ),
    Format(
        "sockperf", "sockperf (text)", "histogram", (".txt",), sniff_text, read_text, unit="us",
        example="sockperf ping-pong -i HOST -t 30 > sockperf.txt",
    ),
)  # fmt: skip
