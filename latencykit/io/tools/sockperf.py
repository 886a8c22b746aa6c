"""sockperf: its text, and the packets of ``--full-log``.

Latency is half of the round trip unless ``--full-rtt`` was given; it is read as the file has it.
"""

from __future__ import annotations

import re

import numpy as np

from latencykit.core.run import Run
from latencykit.io.build import data_from_points, nanoseconds_of, samples_of
from latencykit.io.rows import RowLayout, read_table
from latencykit.io.source import Data, ReadOptions, Source
from latencykit.io.text_reports import fact, has_match, plain, text_of_run

_PERCENTILE = re.compile(r"---> percentile ([\d.]+) = *([\d.]+)")
_HEADER = re.compile(
    r"^packet, txTime\(sec\), rxTime\(sec\)(?:, *(\w+)\(usec\))?\s*$", re.MULTILINE
)
_STATS = {
    "max": r"---> <?MAX>? observation = *([\d.]+)",
    "min": r"---> <?MIN>? observation = *([\d.]+)",
    "mean": r"avg-(?:rtt|lat(?:ency)?)= *([\d.]+)",
    "std": r"\(std-dev= *([\d.]+)\)",
}
_BEGIN = r"^.*sockperf: (?:=+ version|Warmup stage|\[(?:Total Run|Valid Duration)\]|Total \d+ obs)"


def _run(text: str) -> Run:
    full = "avg-rtt=" in text or "--full-rtt" in text
    halved = "latency is half of the round trip, as sockperf has it without --full-rtt"
    return Run(
        tool="sockperf", version=fact(text, r"== version #(\S+) ==", str), measure="service",
        corrected="none", rate=fact(text, r"--mps=(\d+)", float),
        duration=fact(text, r"\[Valid Duration\] RunTime=([\d.]+) sec", float),
        dropped=fact(text, r"# dropped messages = (\d+)", int) or 0, unit="us",
        unit_from="format", notes=() if full else (halved,),
    )  # fmt: skip


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the printed percentiles."""
    text = text_of_run(source, _BEGIN, _STATS["max"])
    stats = {name: fact(text, pattern, float) for name, pattern in _STATS.items()}
    points = {float(p): value for p, value in _PERCENTILE.findall(text)}
    count = fact(text, r"Total (\d+) observations", int)
    return {"": data_from_points(points, count, stats, _run(text), "us")}


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every packet of the valid part of the test."""
    lines = source.head.lines
    at = next((k for k, line in enumerate(lines) if _HEADER.match(line)), None)
    if at is None:
        return {}
    measured = lines[at].count(",") == 3
    names = ("packet", "tx", "rx", "latency")[: 4 if measured else 3]
    largest = {"tx": 9e9, "rx": 9e9, "latency": 9e15}
    layout = RowLayout(names, names[1:], skip=at + 1, comment="-", largest=largest)
    frame, notes = read_table(source, options, layout)
    run = _run(plain("\n".join(lines[:at])))
    if measured:
        duration = nanoseconds_of(frame["latency"], "us")
    else:
        trip = nanoseconds_of(frame["rx"] - frame["tx"], "s")
        duration = trip / 2 if run.notes else trip
    start = np.rint(frame["tx"] * 1e9).astype(np.int64)
    return samples_of({"duration": duration, "start": start}, run.with_notes(*notes), options)


FORMATS = {
    "sockperf-csv": (has_match(_HEADER), read_csv),
    "sockperf": (has_match("sockperf: ", "---> <?MAX>? observation", without=_HEADER), read_text),
}
