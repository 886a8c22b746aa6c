"""NATS: what ``nats latency`` prints and the raw values of its ``--histogram``, and ``nats bench``.

``nats latency`` sends messages at a pace and waits for none; a latency is from the send of a message to its receipt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError
from latencykit.io.build import data_from_points, data_from_values, nanoseconds_of, without_negative
from latencykit.io.rows import Layout, read_table
from latencykit.io.source import Confidence, Format
from latencykit.io.text import plain
from latencykit.units import parse_duration, printable

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_CLOCK = r"^(?:\d\d:\d\d:\d\d )?"
_POINT = re.compile(_CLOCK + r"([\d.]+): +(\S+)\s*$", re.MULTILINE)
_FACT = re.compile(_CLOCK + r"([A-Z1][\w/ ]+?) *: +(.+?)\s*$", re.MULTILINE)
_RAW = re.compile(r"\d+\.\d{6}")
_BENCH = re.compile(
    r"^ *(NATS .+? stats): ([\d,]+) msgs/sec(?: ~ [^~\n]+)?(?: ~ ([\d.]+(?:ns|us|µs|ms|s|m)))?\s*$",
    re.MULTILINE,
)
_MEANS = re.compile(
    r"^[ \t]*avg latencies min (\S+) \| avg (\S+) \| max (\S+) \| stddev (\S+)", re.MULTILINE
)
_HINT = "nats latency measures single messages and prints the distribution"


def sniff_latency(head: Head) -> Confidence:
    """Tell the list of percentiles."""
    found = re.search(_CLOCK + r"HDR Percentiles:", head.text, re.MULTILINE)
    return Confidence.CERTAIN if found else Confidence.NO


def sniff_raw(head: Head) -> Confidence:
    """Tell values with six decimals in a file that ends in .raw."""
    lines = head.lines[:50]
    return (
        Confidence.LIKELY
        if head.suffix == ".raw" and lines and all(map(_RAW.fullmatch, lines))
        else Confidence.NO
    )


def sniff_bench(head: Head) -> Confidence:
    """Tell a line of totals."""
    return Confidence.CERTAIN if _BENCH.search(plain(head.text)) else Confidence.NO


def sniff_bench_csv(head: Head) -> Confidence:
    """Tell the heading."""
    return (
        Confidence.CERTAIN
        if head.text.lstrip().startswith("#RunID,ClientID,MsgCount,")
        else Confidence.NO
    )


def read_bench_csv(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Refuse: a row is a client's run, not a message."""
    raise source.corrupt(1, "this CSV of nats bench holds throughput only", "latencies", _HINT)


def read_latency(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the percentiles and the facts around them."""
    text = plain(source.text())
    _, _, body = text.partition("HDR Percentiles:")
    facts = {name.strip(): value for name, value in _FACT.findall(text)}
    line = text.count("\n", 0, len(text) - len(body)) + 1
    try:
        points = {float(p): round(parse_duration(value), 3) for p, value in _POINT.findall(body)}
        times = {
            name: parse_duration(value)
            for name, value in facts.items()
            if name.endswith(("Latency", "Time", "Duration"))
        }
    except InvalidArgumentError as error:
        raise source.corrupt(
            line, f"a latency that cannot be read ({error})", "such as 1.049ms", "run it again"
        ) from None
    for number, row in enumerate(body.split("=====")[0].split("\n")[1:-1], line + 1):
        if (
            row.strip()
            and _POINT.match(row) is None
            and re.search(r"\d", row.partition(" ")[2] or row)
        ):
            raise source.corrupt(
                number,
                f"{printable(row.strip())!r}",
                "a percentile, such as 99:  238µs",
                "run it again",
            )
    if 100.0 not in points and "Maximum Latency" not in times:
        raise source.corrupt(
            line, "the percentiles end before 100", "10 to 100", "did nats latency end?"
        )
    stats = {
        kind: round(times[name], 3)
        for kind, name in (("min", "Minimum Latency"), ("max", "Maximum Latency"))
        if name in times
    }
    rate, seconds = _whole(facts.get("Target Msgs/Sec")), times.get("Target Duration", 0.0) / 1e9
    count = rate * int(seconds) if rate else None  # so many it sends, and it waits for all of them
    achieved = _whole(facts.get("Actual Msgs/Sec"))
    run = Run(
        tool="nats latency", loop="open", measure="service", corrected="none", rate=float(rate) if rate else None,
        achieved=float(achieved) if achieved else None, duration=times.get("Last Recv Wall Time", 0.0) / 1e9 or None,
        notes=("nats latency cuts what it prints to whole microseconds; --histogram FILE writes every value to FILE.raw",),
    )  # fmt: skip
    return {"": data_from_points(points, count, stats, run)}


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and len(text) < 12 else None


def read_raw(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every value (ms), in the order of receipt."""
    unit, unit_from = options.resolve_unit("ms")
    frame, notes = read_table(
        source, options, Layout(("value",), ("value",), largest={"value": 9e12})
    )
    columns, left_out = without_negative(
        {"duration": nanoseconds_of(frame["value"].to_numpy(np.float64), unit)}, options
    )
    run = Run(
        tool="nats latency", loop="open", measure="service", corrected="none", unit=unit, unit_from=unit_from,
        notes=(*notes, *left_out),
    )  # fmt: skip
    return {"": data_from_values(columns["duration"], run)} if len(frame) else {}


def read_bench(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the mean latency of versions that print one."""
    text = plain(source.text())
    found: dict[str, Data] = {}
    begins = list(_BENCH.finditer(text))
    for begin, end in zip(begins, [*(one.start() for one in begins[1:]), len(text)], strict=True):
        means = _MEANS.search(text[begin.end() : end]) or _MEANS.search(text)
        try:
            printed = parse_duration(means[2] if means else begin[3]) if means or begin[3] else None
        except InvalidArgumentError as error:
            raise source.corrupt(
                text.count("\n", 0, begin.start()) + 1,
                f"a latency that cannot be read ({error})",
                "",
                "",
            ) from None
        if printed is not None:
            run = Run(
                tool="nats bench",
                measure="service",
                corrected="none",
                achieved=float(begin[2].replace(",", "")),
            )
            found[begin[1].removesuffix(" stats")] = Summary(
                {"mean": round(printed, 3)}, {}, None, "ns", run.with_notes(_HINT)
            )
    if not found:
        raise source.corrupt(
            None, "this version of nats bench prints throughput only", "a latency", _HINT
        )
    return found


FORMATS = (
    Format(
        "nats-latency", "nats latency (text)", "histogram", (".txt",), sniff_latency, read_latency,
        example="nats latency --server-b HOST --rate 1000 2> out.txt",
    ),
    Format(
        "nats-latency-raw", "nats latency --histogram (raw values)", "samples", (".raw",), sniff_raw, read_raw, unit="ms",
        example="nats latency --server-b HOST --histogram out   # writes out.raw",
    ),
    Format(
        "nats-bench", "nats bench (mean only)", "summary", (".txt",), sniff_bench, read_bench,
        example="nats bench pub foo > out.txt",
    ),
    Format(
        "nats-bench-csv", "nats bench (CSV: no latencies)", "summary", (".csv",), sniff_bench_csv, read_bench_csv,
        example="nats bench pub foo --csv out.csv",
    ),
)  # fmt: skip
