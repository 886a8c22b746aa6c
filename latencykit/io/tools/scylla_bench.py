"""scylla-bench: the results that it prints: raw latencies, and those that count from the schedule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError
from latencykit.io.build import data_from_points
from latencykit.io.source import Confidence, Format
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_BLOCK = re.compile(
    r"^(raw latency|c-o fixed latency|latency) ?:[ \t]*\n((?:[ \t]+[\w.]+:\s+\S+[ \t]*\n?)+)",
    re.MULTILINE | re.IGNORECASE,
)
_ROW = re.compile(r"^[ \t]+(max|mean|median|[\d.]+th):\s+(\S+)", re.MULTILINE)
_NAMES = {"raw latency": "raw", "c-o fixed latency": "co-fixed", "latency": ""}
_HINT = "-hdr-latency-file keeps the whole distribution"


def sniff(head: Head) -> Confidence:
    """Tell the configuration, or the closing blocks."""
    text = head.text
    configured = (
        text.startswith("Configuration\n")
        and re.search(r"^Mode:\s", text, re.MULTILINE)
        and "Partition count:" in text
    )
    return (
        Confidence.CERTAIN
        if configured or (_BLOCK.search(text) and "Total ops:" in text)
        else Confidence.NO
    )


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the closing blocks."""
    text = source.text()
    results = text[text.rfind("\nResults") :] if "\nResults" in text else text
    count = re.search(r"^Total ops:\s+(\d+)", results, re.MULTILINE)
    blocks = _BLOCK.findall(results + "\n")
    if not blocks or count is None:
        raise source.corrupt(
            None,
            "the results at the end are missing",
            "Results and its latencies",
            "did the run end?",
        )
    known = _run(text, results)
    found: dict[str, Data] = {}
    for title, body in blocks:
        name = _NAMES[title.lower()]
        try:
            rows = {key: round(parse_duration(value), 3) for key, value in _ROW.findall(body)}
        except InvalidArgumentError as error:
            raise source.corrupt(
                None, f"a latency that cannot be read ({error})", "such as 1.5ms", ""
            ) from None
        points = {
            float(key.removesuffix("th")): value
            for key, value in rows.items()
            if key.endswith("th")
        }
        points |= {50.0: rows["median"]} if "median" in rows else {}
        stats = {key: rows[key] for key in ("mean", "max") if key in rows}
        fixed = name == "co-fixed"
        run = known.replace(
            measure="response" if fixed else "service", corrected="schedule" if fixed else "none"
        )
        found[name] = data_from_points(points, int(count[1]), stats, run)
    return found


def _run(text: str, results: str) -> Run:
    def number(pattern: str, within: str) -> float | None:
        found = re.search(pattern, within, re.MULTILINE)
        return float(found[1]) if found else None

    rate = number(r"^Max(?:imum)? rate:\s+(?:map\[)?(\d+)", text)
    clients = number(r"^Concurrency:\s+(\d+)", text)
    elapsed = re.search(r"^Time \(avg\):\s+(\S+)", results, re.MULTILINE)
    return Run(
        tool="scylla-bench", loop="paced" if rate else "closed", rate=rate, connections=int(clients) if clients else None,
        duration=parse_duration(elapsed[1]) / 1e9 if elapsed else None, achieved=number(r"^Operations/s:\s+([\d.e+]+)", results),
        failed=int(number(r"^Total errors:\s+(\d+)", results) or 0), notes=(_HINT,),
    )  # fmt: skip


FORMATS = (
    Format(
        name="scylla-bench",
        title="scylla-bench (text)",
        level="histogram",
        suffixes=(".txt",),
        sniff=sniff,
        read=read,
        example="scylla-bench -workload sequential -mode write -max-rate 1000 > out.txt",
    ),
)
