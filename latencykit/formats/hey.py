"""hey (once boom): its text and its CSV, both in seconds with four decimals.

hey sends the next request when the reply to the last one came (or later, with ``-q``), so a stall shows in one request a
worker and in none of those that were not sent. In neither output does it say how it was called.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.formats.base import Confidence, Format
from latencykit.formats.heytext import is_report, parse_report, rung_of_report
from latencykit.formats.rows import Layout, read_table
from latencykit.formats.sections import command_of, plain, sections
from latencykit.formats.shaping import distinct, without_negative
from latencykit.run import Run
from latencykit.samples import OUTCOMES, Samples

if TYPE_CHECKING:
    from latencykit.formats.base import Head, ReadOptions, Rung, Source

__all__ = ["FORMATS"]

_BEGIN = re.compile(r"^Summary:[ \t]*$", re.MULTILINE)
_HEADER = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read"
_TIMEOUT, _MOST = 20e9, 1_000_000
_RUN = Run(tool="hey", loop="closed", measure="service", corrected="none", unit="s", unit_from="file")


def sniff_text(head: Head) -> Confidence:
    """Tell the headings; the reports of oha and ghz have others."""
    text = plain(head.text)
    other = "Success rate:" in text or "  Count:\t" in text
    return Confidence.CERTAIN if is_report(text, "Latency distribution") and not other else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Rung]:  # noqa: ARG001
    """Read every report."""
    found: dict[str, Rung] = {}
    parts = sections(source, _BEGIN)
    for number, part in enumerate(parts, 1):
        run, timeout = _called(command_of(part.text, "hey", "boom"))
        name = "" if len(parts) == 1 else distinct(f"run {number}", found)
        found[name] = rung_of_report(parse_report(part), run, source, timeout)
    return found


def _called(command: str | None) -> tuple[Run, float]:
    """The run as a command line before the report tells it, and hey's timeout."""
    options = {key: float(value) for key, value in re.findall(r" -([cqt])[ =]?(\d+(?:\.\d+)?)", command or "")}
    workers = int(options.get("c", 50)) if command else None
    each = options.get("q", 0.0)
    run = _RUN.but(
        command=command,
        connections=workers,
        loop="paced" if each else "closed",
        rate=each * workers if each and workers else None,
        expected_interval=round(1e9 / each, 3) if each else None,
        timeout=options["t"] * 1e9 if "t" in options else None,
    )
    return run, run.timeout or _TIMEOUT


def sniff_csv(head: Head) -> Confidence:
    """Tell the header."""
    return Confidence.CERTAIN if head.lines and head.lines[0].startswith(_HEADER) else Confidence.NO


def read_csv(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read every reply; hey leaves requests without one out of its CSV."""
    columns = tuple(source.head.lines[0].strip().split(","))
    wanted = tuple(name for name in ("response-time", "status-code", "offset") if name in columns)
    largest = {"response-time": 9e9, "offset": 9e9}
    frame, notes = read_table(source, options, Layout(columns, wanted, skip=1, largest=largest))
    given: dict[str, Any] = {"duration": frame["response-time"].to_numpy(np.float64)}
    if "offset" in frame:
        given["start"] = frame["offset"].to_numpy(np.float64)
    if "status-code" in frame:
        failed = frame["status-code"].to_numpy(np.int64) >= 400
        given["outcome"] = np.where(failed, OUTCOMES.index("error"), 0) if failed.any() else None
    given, left_out = without_negative(given, options)
    if len(frame) == _MOST:
        notes = (*notes, "hey keeps the first million replies: the run may have been longer")
    run = _RUN.but(unit_from="format").noting("hey prints times to 0.1 ms", *notes, *left_out)
    return {"": Samples(unit="s", run=run, **given)}


FORMATS = (
    Format(
        "hey", "hey (text)", "histogram", (".txt",), sniff_text, read_text, unit="s",
        example="hey -z 30s -c 8 http://127.0.0.1:8080/ > hey.txt",
    ),
    Format(
        "hey-csv", "hey (CSV)", "samples", (".csv",), sniff_csv, read_csv, unit="s",
        example="hey -z 30s -c 8 -o csv http://127.0.0.1:8080/ > hey.csv",
    ),
)  # fmt: skip
