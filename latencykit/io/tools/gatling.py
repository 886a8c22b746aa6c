"""Gatling: ``simulation.log`` of the versions that write it as text (up to 3.11), and the report's ``stats.json``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    distinct,
    nanoseconds,
    per_operation,
    without_negative,
)
from latencykit.io.rows import line_chunks
from latencykit.io.source import Confidence, Format
from latencykit.units import printable

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

# 3.4 to 3.11: REQUEST, groups, name, start, end, status, message; before that a user's number comes second
_REQUEST = re.compile(
    rb"^(?:[^\t\n]*\t\d*\t)?REQUEST\t(?:\d+\t)?([^\t\n]*)\t([^\t\n]*)\t(\d{12,14})\t(-?\d+)\t(OK|KO)(?:\t([^\n]*))?$",
    re.MULTILINE,
)
_ANY_REQUEST = re.compile(rb"^(?:[^\t\n]*\t\d*\t)?REQUEST\t[^\n]*\n", re.MULTILINE)
_STATS = {50.0: "percentiles1", 75.0: "percentiles2", 95.0: "percentiles3", 99.0: "percentiles4"}


def sniff_log(head: Head) -> Confidence:
    """Tell the records; a binary log is told by its name and first byte."""
    if (
        re.search(
            r"^(?:RUN\t|[^\t\n]*\t[^\t\n]*\tRUN\t|(?:[^\t\n]*\t\d*\t)?REQUEST\t)",
            head.text,
            re.MULTILINE,
        )
        and "\t" in head.text
    ):
        return Confidence.CERTAIN
    return (
        Confidence.CERTAIN
        if head.name == "simulation.log" and head.data[:1] == b"\0"
        else Confidence.NO
    )


def read_log(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request; KO ones are counted apart. Groups are sums of requests and left out."""
    if source.head.data[:1] == b"\0":
        raise source.corrupt(
            None, "this is the binary simulation.log of Gatling 3.12 and later", "the text of versions up to 3.11",
            "read js/stats.json of the HTML report, which holds its percentiles",
        )  # fmt: skip
    parts = []
    notes: tuple[str, ...] = ()
    for first, chunk in line_chunks(source):
        found = _REQUEST.findall(chunk)
        seen = len(_ANY_REQUEST.findall(chunk))
        if not chunk.endswith(b"\n"):
            last = chunk[chunk.rfind(b"\n") + 1 :]
            whole = _REQUEST.match(last) is not None
            notes = (
                ()
                if whole or b"REQUEST" not in last
                else ("the last line is cut; it was left out",)
            )
            seen += whole
        if seen > len(found):
            _report(chunk, first, source, options)
        parts += [_columns(found)] if found else []
    if not parts:
        return {}
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    names, code = np.unique(columns.pop("name"), return_inverse=True)
    columns["code"] = code.reshape(-1)
    kept, left_out = without_negative(columns, options)
    version = re.search(
        r"^(?:[^\t\n]*\t[^\t\n]*\t)?RUN\t.*?\t(\d+\.\d+\S*)\s*$", source.head.text, re.MULTILINE
    )
    run = Run(
        tool="Gatling", version=version[1] if version else None, loop="unknown", measure="service", corrected="none", unit="ms",
        unit_from="format", notes=(*notes, *left_out),
    )  # fmt: skip
    code = kept.pop("code")
    kept["outcome"] = kept["outcome"] if kept["outcome"].any() else None
    return per_operation(
        Samples(run=run, **kept), code, [name.decode("utf-8", "replace") for name in names.tolist()]
    )


def _columns(found: list[tuple[bytes, ...]]) -> dict[str, Any]:
    group, name, start, end, status, message = (
        np.array(column) for column in zip(*found, strict=True)
    )
    begin, stop = start.astype(np.int64), end.astype(np.int64)
    open_end = stop <= 0  # Gatling writes the smallest number for requests that never ended
    failed, late = status == b"KO", np.char.find(np.char.lower(message), b"timeout") >= 0
    outcome = np.where(
        failed, np.where(late, OUTCOMES.index("timeout"), OUTCOMES.index("error")), 0
    ).astype(np.int8)
    outcome[open_end] = OUTCOMES.index("unfinished")
    joined = np.where(group == b"", name, np.char.add(np.char.add(group, b" / "), name))
    return {
        "name": joined,
        "start": begin * 1_000_000,
        "duration": np.where(open_end, 0, stop - begin) * 1_000_000,
        "outcome": outcome,
    }


def _report(chunk: bytes, first: int, source: Source, options: ReadOptions) -> None:
    """Name the records that do not fit."""
    for found in _ANY_REQUEST.finditer(chunk):
        if _REQUEST.match(found[0].rstrip(b"\n")) is None:
            line = first + chunk.count(b"\n", 0, found.start())
            text = printable(found[0].decode("utf-8", "replace").rstrip())
            expected = "REQUEST, groups, name, start, end, OK or KO"
            options.reject(
                source.corrupt(
                    line, f"this is no record: {text!r}", expected, "--lenient skips the line"
                )
            )


def sniff_stats(head: Head) -> Confidence:
    """Tell the keys of the report's statistics."""
    return (
        Confidence.CERTAIN
        if jsontext.has_keys(head, "numberOfRequests", "maxResponseTime", "percentiles1")
        else Confidence.NO
    )


def read_stats(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the statistics of all requests, and of each."""
    record = jsontext.load(source)
    found: dict[str, Data] = {}
    waiting = [record]
    while waiting:
        one = waiting.pop(0)
        waiting += list((one.get("contents") or {}).values())
        stats = one.get("stats", one)
        if one is record or one.get("type") == "REQUEST":
            found[distinct(str(one.get("path") or stats.get("name") or "all"), found)] = (
                _from_stats(stats, one is record and bool(waiting))
            )
    return found


def _from_stats(stats: dict[str, Any], aggregate: bool) -> Data:
    def value(key: str, which: str = "ok") -> float | None:
        given = (stats.get(key) or {}).get(which)
        text = str(given).replace(",", "")
        return float(text) if re.fullmatch(r"\d+(?:\.\d+)?", text) else None

    reported_stats = {
        name: nanoseconds(held, "ms")
        for name, key in (
            ("min", "minResponseTime"),
            ("max", "maxResponseTime"),
            ("mean", "meanResponseTime"),
            ("std", "standardDeviation"),
        )
        if (held := value(key)) is not None
    }
    points = {
        p: nanoseconds(held, "ms") for p, key in _STATS.items() if (held := value(key)) is not None
    }
    run = Run(
        tool="Gatling", measure="service", corrected="none", unit="ms", unit_from="format", aggregate=aggregate,
        failed=int(value("numberOfRequests", "ko") or 0), achieved=value("meanNumberOfRequestsPerSecond", "total"),
        notes=("percentiles are taken as Gatling's default: 50, 75, 95, 99",),
    )  # fmt: skip
    return data_from_points(points, int(value("numberOfRequests") or 0), reported_stats, run)


FORMATS = (
    Format(
        "gatling", "Gatling's simulation.log (text)", "samples", (".log",), sniff_log, read_log, unit="ms",
        example="mvn gatling:test   # writes target/gatling/*/simulation.log",
    ),
    Format(
        "gatling-stats", "Gatling's report (js/stats.json)", "histogram", (".json",), sniff_stats, read_stats, unit="ms",
        example="mvn gatling:test   # writes target/gatling/*/js/stats.json",
    ),
)  # fmt: skip
