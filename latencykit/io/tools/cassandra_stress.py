"""cassandra-stress: the results that it prints at its end.

With ``-rate fixed=`` its times count from the moment an operation was due, with ``throttle=`` from
its start; the text shows which only if it contains the command line. Its ``-log hdrfile=`` is an
interval log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from latencykit.core.run import Run
from latencykit.io.build import data_from_points, in_nanoseconds
from latencykit.io.sniffing import has_match
from latencykit.io.source import Format
from latencykit.io.text import fact
from latencykit.units import printable

if TYPE_CHECKING:
    from latencykit.io.source import Data, ReadOptions, Source

__all__ = ["FORMATS"]

_LINE = re.compile(
    r"^(op rate|latency (?:mean|median|max|[\d.]+th percentile)|total (?:partitions|errors"
    r"|operation time))\s*: +(\S+)(?: [a-z/]+)?\s*(?:\[(.*)\])?\s*$",
    re.MULTILINE | re.IGNORECASE,
)
_HINT = "-log hdrfile=run.hdr keeps the whole distribution"


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the last results: all operations first, then one series each where there are several."""
    text = source.text()
    begin = max(text.rfind("Results:"), 0)
    facts: dict[str, dict[str, float]] = {"total": {}}
    for name, value, parts in _LINE.findall(text[begin:]):
        key = name.lower()
        if "time" in key:
            clock = [float(part) for part in value.split(":")]
            if len(clock) != 3:
                seen = f"the {key} is {printable(value, 40)!r}"
                raise source.corrupt(None, seen, "hours:minutes:seconds", "did the run end?")
            facts["total"][key] = clock[0] * 3600 + clock[1] * 60 + clock[2]
            continue
        facts["total"][key] = _number(value)
        for operation, own in re.findall(r"([^\s:,\[]+): ?([\d.,]+)", parts):
            facts.setdefault(operation, {})[key] = _number(own.rstrip(","))
    if "latency 99th percentile" not in facts["total"]:
        seen = "the results at the end are missing"
        raise source.corrupt(None, seen, "Results: and its lines", "did the run end?")
    run = _run(text)
    total = facts.pop("total")
    if len(facts) < 2:
        return {next(iter(facts), "total"): _data(total, run, text)}
    return {"total": _data(total, run.replace(aggregate=True), text)} | {
        operation: _data(own, run, "") for operation, own in facts.items()
    }


def _number(text: str) -> float:
    """A number as Java prints it: commas between thousands."""
    match = re.match(r"[\d,]*\.?\d+", text)
    return float(match[0].replace(",", "")) if match else float("nan")


def _run(text: str) -> Run:
    rate = fact(text, r"(?i)OpsPer Sec: ([1-9]\d*)", int)
    rate = rate or fact(text, r"(?i)\b(?:throttle|fixed)=([1-9]\d*)", int)
    threads = fact(text, r"(?i)Thread Count: (\d+)", int)
    run = Run(
        tool="cassandra-stress", loop="paced" if rate else "closed",
        rate=float(rate) if rate else None, unit="ms", notes=(_HINT,),
        connections=threads or fact(text, r"(?i)Running with (\d+) thread", int),
    )  # fmt: skip
    if re.search(r"\bfixed=\d", text):
        return run.replace(loop="open", measure="response", corrected="schedule")
    if rate and not re.search(r"\bthrottle=\d", text):
        return run.with_notes(
            "whether times count from the schedule (fixed=) or from the start (throttle=) "
            "is not in the text"
        )
    return run.replace(measure="service", corrected="none")


def _data(own: dict[str, float], run: Run, text: str) -> Data:
    """Percentiles and statistics of an operation; `text` has the count of all operations."""
    points = {50.0: own.get("latency median")}
    for key, value in own.items():
        match = re.match(r"latency ([\d.]+)th percentile", key)
        if match:
            points[float(match[1])] = value
    stats = {name: own.get(f"latency {name}") for name in ("mean", "max")}
    counts = re.findall(r"^total,\s+([\d,]+),", text, re.MULTILINE)
    count = _number(counts[-1]) if counts else own.get("total partitions", 0.0)
    run = run.replace(
        achieved=own.get("op rate"), failed=int(own.get("total errors", 0)),
        duration=own.get("total operation time"),
    )  # fmt: skip
    if not counts:
        run = run.with_notes("the number of operations is that of partitions")
    stats_ns = in_nanoseconds(stats, "ms")
    return data_from_points(in_nanoseconds(points, "ms"), int(count), stats_ns, run)


FORMATS = (
    Format(
        "cassandra-stress", "cassandra-stress (text)", "histogram", (".txt", ".log"),
        has_match(r"^type,? +total ops,|(?i:^latency 99\.9th percentile +: )"), read, unit="ms",
        example="cassandra-stress write n=1000000 -rate threads=50 > out.txt",
    ),
)  # fmt: skip
