"""What holds of everything that a command prints, whatever it was asked."""

from __future__ import annotations

import itertools
import json
import math
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_THINGS = (
    "request|run|stall|interval|file|limit|connection|call|load|reason|row|part|histogram|event|"
    "change|second|minute|hour|day|bucket|line|value|user|tag|percentile|point"
)
NUMBERED = re.compile(
    rf"(?<![\w.,])(?:1 (?:{_THINGS})s\b|(?!1\b)\d[\d,]* (?:{_THINGS})(?=[,.;:)]|$| (?:are|were)\b))",
    re.MULTILINE,
)
"""One thing as several, or several as one."""
BRACKETED = re.compile(r"(?m)^\S.*? {2,}\([^()]*\d[^()]*\)(?: |$)")
PART = re.compile(r"(?<![\w.,])(\d[\d,]*) of (?:the )?([-−]?\d[\d,]*)(?![\d,.]*\d| ?%)")
"""Part and whole: 3 of 100."""
NOTHING = re.compile(r"\b(?:nan|NaN|None|inf)\b(?!, which is not a latency)")


def output(words: Sequence[str], out: str) -> None:
    """Check what a command that succeeded printed."""
    style = words[words.index("--format") + 1] if "--format" in words[:-1] else "table"
    if style == "json":
        record(json.loads(out))
    elif style != "csv":
        assert not (wrong := [hit[0] for hit in NUMBERED.finditer(out)]), (wrong, out)
    if style != "json":
        text(out)
    if style == "table" and {"summary", "fanout", "load", "compare"} & {*words}:
        explained = any("in brackets: " in line for line in out.splitlines())
        assert explained == bool(BRACKETED.search(out)), out


def text(words: str) -> None:
    """No number is missing, none of a part is larger than that of the whole."""
    assert not NOTHING.search(words), words
    for part, whole in PART.findall(words):
        ends = [int(number.replace(",", "").replace("−", "-")) for number in (part, whole)]
        assert ends[0] <= ends[1], words


def record(whole: Any) -> None:
    """Check every object in a record."""
    for one in dictionaries(whole):
        for words in one.values():
            text(words if isinstance(words, str) else "")
        for law in (percentile, limit, change, stall, series):
            law(one)


def dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a record."""
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict):
        yield value
    for one in inner if isinstance(value, dict | list) else ():
        yield from dictionaries(one)


def percentile(row: dict[str, Any]) -> None:
    """A value lies in its bucket and its interval; it is uncertain for a reason."""
    if not {"bucket_low", "supported"} <= row.keys():
        return
    value, low, high = (row[key] for key in ("value", "bucket_low", "bucket_high"))
    if value is not None:
        assert low is None or low <= value * (1 + 1e-9), row
        assert high is None or value <= high * (1 + 1e-9), row
        assert row.get("low") is None or row["low"] <= value * (1 + 1e-9), row
        assert row.get("high") is None or value <= row["high"] * (1 + 1e-9), row
    if None not in (low, high):
        assert row["resolved"] == (high <= 1.1 * low * (1 + 1e-9)), row
    if row["percentile"] < 100:
        assert (row["supported"] is False) == (row.get("cause") is not None), row


def limit(row: dict[str, Any]) -> None:
    """A limit is met by a value within it; what is sure is known."""
    if not {"outcome", "limit", "sure"} <= row.keys():
        return
    assert row["outcome"] != "unknown" or not row["sure"], row
    if row["value"] is not None and row["outcome"] != "unknown":
        assert (row["value"] <= row["limit"]) == (row["outcome"] == "met"), row
    assert row["sure"] or row["reason"], row


def change(row: dict[str, Any]) -> None:
    """A change lies in its interval, which leaves out none where it is significant."""
    if not {"significant", "change"} <= row.keys() or row["change"] is None:
        return
    low = -math.inf if row["low"] is None else row["low"]
    high = math.inf if row["high"] is None else row["high"]
    assert low - 1e-9 <= row["change"] <= high + 1e-9, row
    assert not row["significant"] or not low < 0 < high or low == -high, row  # no interval


def stall(row: dict[str, Any]) -> None:
    """A stall ends after it began, and is as long as that."""
    if not {"missing", "worst", "start", "end"} <= row.keys() or row["start"] is None:
        return
    assert row["end"] >= row["start"], row
    assert row["missing"] is None or row["missing"] >= 0, row


def series(one: dict[str, Any]) -> None:
    """Percentiles ascend, between the least and the largest value; explanations are weighed."""
    rows = [row for row in one.get("percentiles") or () if isinstance(row, dict)]
    known = [row["value"] for row in rows if row.get("value") is not None]
    if {"min", "max", "timeouts"} <= one.keys() and known:
        ends = [end for end in (one["min"], one["max"]) if end is not None]
        assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(known)), one
        assert one["timeouts"] or one["max"] is None or max(known) <= 1.01 * max(ends), one
    weights = [row["probability"] for row in one.get("explanations") or () if isinstance(row, dict)]
    if weights:
        assert sum(weights) == pytest.approx(1, abs=0.02), one
        assert one["verdict"] != "omits" or one["corrected"], one
    raw = one.get("raw") if one.get("verdict") == "omits" else None
    for p, value in (raw or {}).items():
        corrected = one["corrected"].get(p)
        if None not in (value, corrected) and p not in one["raw_ranges"]:
            assert corrected >= 0.98 * value, one  # what is added lies below the longest, too
