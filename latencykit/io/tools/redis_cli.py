"""redis-cli: ``--latency`` (ms, whole ones rounded down) and ``--intrinsic-latency`` (whole µs)."""

from __future__ import annotations

from latencykit.core.run import CLOSED, Run
from latencykit.io.declared import TRUNCATED, Lines, Text
from latencykit.io.text_reports import has_match

_RUN = Run(tool="redis-cli", **CLOSED, unit="ms")
_ROW = (  # without its words where the output is not a terminal
    r"(?:min: )?(?P<min>[\d.]{1,12})[ ,]{1,2}(?:max: )?(?P<max>[\d.]{1,12})[ ,]{1,2}(?:avg: )?"
    r"(?P<mean>\d{1,9}\.\d+)[ ,]\(?(?P<count>\d{1,18})(?: samples\))?"
    r"(?P<points>(?:, p[\d.]+: [\d.]+)*)(?:\n? -- (?P<name>[\d.]+ seconds range))?"
)
_INTRINSIC = Text(
    run=_RUN.replace(unit="us"), begin=r"^\d+ total runs", needed=("count", "mean"),
    facts={
        "count": r"^(\d+) total runs", "mean": r" runs \(avg(?: latency:)? ([\d.]+) (microseconds)",
        "max": r"^Max latency so far: (\d+) (microseconds)\.\s\s",
    },
)  # fmt: skip
FORMATS = {
    "redis-cli": (
        has_match(
            r"min: [\d.]{1,12}, max: [\d.]+, avg: [\d.]+ \(\d+ samples\)|^ -- [\d.]+ seconds range$"
            r"|\A\d+[ ,]\d+[ ,]\d+\.\d\d[ ,]\d+\s*\Z"
        ),
        Lines(run=_RUN, row=_ROW),
    ),
    "redis-cli-intrinsic-cut": (
        has_match(r"^Max latency so far: \d+ microseconds", without=r"^\d+ total runs \(avg"),
        Lines(
            run=_RUN.replace(unit="us", notes=(TRUNCATED,)),
            row=r"^Max latency so far: (?P<max>\d{1,12}) microseconds",
        ),
    ),
    "redis-cli-intrinsic": (has_match(r"^\d+ total runs \(avg"), _INTRINSIC),
}
