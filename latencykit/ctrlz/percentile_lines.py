"""Percentiles as programs print them without any format: ``p99: 1234 us``, ``99% 4029``.

Also ``99.00%  3.860ms``, ``p(99)=2.5ms``, ``99th percentile: 12 ms``, and JSON with such keys. It
is the last resort for the output of a load generator that no reader knows.
"""

from __future__ import annotations

import re

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.units import NANOSECONDS

__all__ = ["read_percentile_lines"]

_VALUE = (
    r"(?P<value>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<unit>ns|us|µs|μs|ms|msec|secs?|seconds|s)?"
)
_END = r"(?![\w.%/])"
# The percentile's name, an optional unit in it (``p99_ms``, ``p99 (us)``), and the value.
_NAME = (
    r"(?:\bp\s?\(?(?P<p>\d{1,5}(?:[._]\d+)?)\)?"
    r"|(?<![\d.])(?P<share>\d{1,3}(?:\.\d+)?)\s?(?:%|(?:st|nd|rd|th)\b)"
    r"|\b(?P<word>mean|avg|average|median|med|min(?:imum)?|max(?:imum)?))"
)
_HINT = r"(?:[ _]*\(?(?P<hint>ns|us|µs|ms|s)\b\)?)?"
_LINE = re.compile(
    rf"{_NAME}(?:[ _]?(?:%?iles?|percentiles?|latency))?{_HINT}[\"']?\s*[:=|]?\s*[\"']?"
    rf"{_VALUE}{_END}",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"\b(?:requests|samples|count|total)[\"']?\s*[:=]\s*[\"']?(\d+)(?![\w.%/])", re.IGNORECASE
)
_SPELLINGS = {"msec": "ms", "sec": "s", "secs": "s", "seconds": "s", "µs": "us", "μs": "us"}
_WORDS: dict[str, str | float] = {
    "avg": "mean", "average": "mean", "minimum": "min", "maximum": "max", "median": 50.0,
    "med": 50.0,
}  # fmt: skip


def _percentile(digits: str) -> float:
    """Return the percentile that ``99``, ``99.9``, ``99_9`` or ``999`` (99.9) stands for."""
    if digits.isdigit() and len(digits) > 2 and digits != "100":
        digits = f"{digits[:2]}.{digits[2:]}"
    return float(digits.replace("_", "."))


def read_percentile_lines(text: str, unit: str | None = None) -> Histogram | Summary | None:
    """Return the percentiles that a text contains, in ns; None if it has fewer than two.

    `unit` is that of bare numbers; without it they are taken for nanoseconds, and the unit is
    marked as assumed.
    """
    stats: dict[str, float] = {}
    percentiles: dict[float, float] = {}
    assumed = False
    for match in _LINE.finditer(text):
        name: str | float
        if match["word"]:
            word = match["word"].lower()
            name = _WORDS.get(word, word)
        else:
            name = float(match["share"]) if match["share"] else _percentile(match["p"])
        stated = (match["unit"] or match["hint"] or "").lower()
        scale = NANOSECONDS[_SPELLINGS.get(stated, stated) or unit or "ns"]
        value = float(match["value"]) * scale
        if isinstance(name, str):
            stats.setdefault(name, value)
        elif 0 < name <= 100 and name not in percentiles:
            percentiles[name] = value
            assumed = assumed or not (stated or unit)
    percentiles = dict(sorted(percentiles.items()))
    values = list(percentiles.values())
    if len(values) < 2 or values != sorted(values):
        return None
    run = Run(unit_from="assumed" if assumed else "file", format="percentile lines")
    count = _COUNT.search(text)
    if count and int(count[1]) > 0 and len(values) > 2:
        if 100.0 in percentiles:
            stats.setdefault("max", percentiles[100.0])
        return Histogram.from_percentiles(
            list(percentiles), values, int(count[1]), reported_stats=stats, run=run
        )
    return Summary(stats, percentiles, run=run)
