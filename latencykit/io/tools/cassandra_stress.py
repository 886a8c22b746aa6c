"""cassandra-stress: the results that it prints at its end.

With ``-rate fixed=`` its times count from the moment an operation was due, with ``throttle=`` from its start; the text
says which only where the command line stands in it. Its ``-log hdrfile=`` is an interval log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from latencykit.core.run import Run
from latencykit.io.build import data_from_points, nanoseconds
from latencykit.io.source import Confidence, Format
from latencykit.units import printable

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_LINE = re.compile(
    r"^(op rate|latency (?:mean|median|max|[\d.]+th percentile)|total (?:partitions|errors|operation time))\s*: +(\S+)"
    r"(?: [a-z/]+)?\s*(?:\[(.*)\])?\s*$",
    re.MULTILINE | re.IGNORECASE,
)
_HINT = "-log hdrfile=run.hdr keeps the whole distribution"


def sniff(head: Head) -> Confidence:
    """Tell the head of the progress table, or the results."""
    found = re.search(r"^type,? +total ops,", head.text, re.MULTILINE) or re.search(
        r"^latency 99\.9th percentile +: ", head.text, re.MULTILINE | re.IGNORECASE
    )
    return Confidence.CERTAIN if found else Confidence.NO


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
                raise source.corrupt(
                    None,
                    f"the {key} is {printable(value, 40)!r}",
                    "hours:minutes:seconds",
                    "did the run end?",
                )
            facts["total"][key] = clock[0] * 3600 + clock[1] * 60 + clock[2]
            continue
        facts["total"][key] = _number(value)
        for operation, own in re.findall(r"([^\s:,\[]+): ?([\d.,]+)", parts):
            facts.setdefault(operation, {})[key] = _number(own.rstrip(","))
    if "latency 99th percentile" not in facts["total"]:
        raise source.corrupt(
            None, "the results at the end are missing", "Results: and its lines", "did the run end?"
        )
    run = _run(text)
    several = len(facts) > 2
    found: dict[str, Data] = {}
    for operation, own in facts.items():
        if not several and operation != "total":
            continue
        name = operation if several else next((one for one in facts if one != "total"), "total")
        found[name] = _data(
            own, run, text, operation == "total", aggregate=several and operation == "total"
        )
    return found


def _number(text: str) -> float:
    """A number as Java prints it: commas between thousands."""
    found = re.match(r"[\d,]*\.?\d+", text)
    return float(found[0].replace(",", "")) if found else float("nan")


def _run(text: str) -> Run:
    def number(pattern: str) -> int | None:
        found = re.search(pattern, text, re.IGNORECASE)
        return int(found[1]) if found else None

    rate = number(r"OpsPer Sec: ([1-9]\d*)") or number(r"\b(?:throttle|fixed)=([1-9]\d*)")
    fixed, throttled = re.search(r"\bfixed=\d", text), re.search(r"\bthrottle=\d", text)
    known = Run(
        tool="cassandra-stress", loop="paced" if rate else "closed", rate=float(rate) if rate else None,
        connections=number(r"Thread Count: (\d+)") or number(r"Running with (\d+) thread"), unit="ms", notes=(_HINT,),
    )  # fmt: skip
    if fixed:
        return known.replace(loop="open", measure="response", corrected="schedule")
    if rate and not throttled:
        return known.with_notes(
            "whether times count from the schedule (fixed=) or from the start (throttle=) is not in the text"
        )
    return known.replace(measure="service", corrected="none")


def _data(own: dict[str, float], run: Run, text: str, whole: bool, *, aggregate: bool) -> Data:
    points = {50.0: own.get("latency median")}
    for key, value in own.items():
        found = re.match(r"latency ([\d.]+)th percentile", key)
        if found:
            points[float(found[1])] = value
    held = {p: nanoseconds(value, "ms") for p, value in points.items() if value is not None}
    stats = {
        name: nanoseconds(own[f"latency {name}"], "ms")
        for name in ("mean", "max")
        if f"latency {name}" in own
    }
    last = re.findall(r"^total,\s+([\d,]+),", text, re.MULTILINE) if whole else []
    count = _number(last[-1]) if last else own.get("total partitions", 0.0)
    notes = () if last else ("the number of operations is that of partitions",)
    known = run.replace(
        aggregate=aggregate, achieved=own.get("op rate"), failed=int(own.get("total errors", 0)),
        duration=own.get("total operation time"),
    )  # fmt: skip
    return data_from_points(held, int(count), stats, known.with_notes(*notes))


FORMATS = (
    Format(
        name="cassandra-stress",
        title="cassandra-stress (text)",
        level="histogram",
        suffixes=(".txt", ".log"),
        sniff=sniff,
        read=read,
        unit="ms",
        example="cassandra-stress write n=1000000 -rate threads=50 > out.txt",
    ),
)
