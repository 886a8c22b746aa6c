"""Logs whose lines are beyond doubt requests: each has a method, a status and one duration."""

from __future__ import annotations

from latencykit._text import printable
from latencykit.io.raw.log_parts import pattern_of, sniff_requests
from latencykit.io.source import Data, ReadOptions, Source
from latencykit.io.tools.log_lines import Log


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the lines by the pattern that would be proposed."""
    pattern = pattern_of(source.head)
    note = f"the lines are read by the pattern {printable(pattern, 300)}"
    return Log(pattern, notes=(note,))(source, options)


FORMATS = {"request-lines": (sniff_requests, read)}
