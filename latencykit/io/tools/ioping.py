"""ioping: its lines, its JSON (``-J``), and its raw statistics (``-p``, ``-B``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.io import text as jsontext
from latencykit.io.build import several, whole_nanoseconds, without_negative
from latencykit.io.source import Confidence, Format
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_REQUEST = re.compile(r"request=\d+ time=([\d.]+) (\S+)(.*)$", re.MULTILINE)
_STATS = re.compile(r"min/avg/max/mdev = ([^\n]+)")
_RAW = re.compile(r"\d{1,18}(?: \d{1,18}){9}")
_HINT = "the single requests were not printed (-q, -B); without that ioping holds the distribution"


def sniff_text(head: Head) -> Confidence:
    """Tell a request, or the statistics."""
    if re.search(r"(?:<<<|>>>|from|to) .*: request=\d+ time=", head.text):
        return Confidence.CERTAIN
    return Confidence.CERTAIN if "ioping statistics ---" in head.text else Confidence.NO


def sniff_json(head: Head) -> Confidence:
    """Tell the keys of a request."""
    return (
        Confidence.CERTAIN
        if jsontext.has_keys(head, "io", "request", "operation", "time", "ignored")
        or jsontext.has_keys(head, "stat", "load", "mdev", "iops")
        else Confidence.NO
    )


def sniff_raw(head: Head) -> Confidence:
    """Tell lines of ten whole numbers that agree with each other as ioping's do."""
    lines = [line for line in head.lines if line.strip()]
    if not lines or not all(_RAW.fullmatch(line.strip()) for line in lines):
        return Confidence.NO
    count, busy, _, _, low, mean, high, _, total, span = map(int, lines[0].split())
    agree = (
        low <= mean <= high
        and count <= total
        and busy <= span
        and abs(count * mean - busy) <= count
    )
    return Confidence.CERTAIN if agree and count else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every request; warm-up, and those marked too slow or too fast, are left out, as in ioping's sums."""
    text = source.text()
    rows = _REQUEST.findall(text)
    good = [row for row in rows if not re.search(r"\((?:warmup|too slow|too fast)\)", row[2])]
    notes = (
        f"{several(len(rows) - len(good), 'request')} marked as warm-up, too fast or too slow left out",
    )
    run = _run(text).with_notes(*(notes if len(good) < len(rows) else ()))
    if good:
        values = [parse_duration(f"{number}{unit}") for number, unit, _ in good]
        return {"": Samples(duration=np.round(values, 3), run=run)}
    stats = _STATS.search(text)
    if stats is None:
        return {}
    numbers = [round(parse_duration(part), 3) for part in stats[1].split(" / ")]
    if len(numbers) != 4:
        seen = f"min/avg/max/mdev are {len(numbers)} numbers"
        raise source.corrupt(
            text.count("\n", 0, stats.start()) + 1, seen, "four", "run ioping anew"
        )
    low, mean, high, spread = numbers
    count = re.search(r"^(\d+(?:\.\d+)?) ?([kMG]?) requests completed", text, re.MULTILINE)
    number = (
        round(float(count[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[count[2]]) if count else None
    )
    return {
        "": Summary(
            {"min": low, "mean": mean, "max": high, "std": spread},
            {},
            number,
            "ns",
            run.with_notes(_HINT),
        )
    }


def _run(text: str) -> Run:
    generated = re.search(
        r"^generated (\S+)(?: (k|M|G))? requests in ([\d.]+ \S+),", text, re.MULTILINE
    )
    busy = re.search(r"requests completed in ([\d.]+ \S+),", text)
    known = Run(tool="ioping", measure="service", corrected="none", connections=1, unit="ns")
    if not generated or not busy:
        return known
    span = parse_duration(generated[3])
    paced = span > 2 * parse_duration(busy[1])
    return known.replace(loop="paced" if paced else "closed", duration=round(span / 1e9, 9))


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request; the time stamp is the end of it."""
    records = jsontext.load(source)
    requests = [one for one in records if isinstance(one, dict) and "io" in one]
    closing: dict[str, Any] = next(
        (one for one in records if isinstance(one, dict) and "stat" in one), {}
    )
    run = Run(
        tool="ioping",
        measure="service",
        corrected="none",
        connections=1,
        unit="ns",
        unit_from="format",
    )
    load, stat = closing.get("load", {}), closing.get("stat", {})
    if load.get("time"):
        paced = load["time"] > 2 * stat.get("time", 0)
        run = run.replace(
            loop="paced" if paced else "closed",
            duration=load["time"] / 1e9,
            achieved=load.get("iops"),
        )
    good = [one for one in requests if not one["io"].get("ignored")]
    if len(good) < len(requests):
        run = run.with_notes(
            f"{several(len(requests) - len(good), 'request')} marked as ignored (warm-up) left out"
        )
    if not good:
        stats = {
            "min": stat.get("min"),
            "mean": stat.get("avg"),
            "max": stat.get("max"),
            "std": stat.get("mdev"),
        }
        held = {name: float(value) for name, value in stats.items() if value is not None}
        return (
            {"": Summary(held, {}, stat.get("count"), "ns", run.with_notes(_HINT))} if held else {}
        )
    duration = np.array(
        [jsontext.entry(one, "io.time", source, (int, float)) for one in good], np.int64
    )
    ends = whole_nanoseconds(
        [jsontext.entry(one, "timestamp", source, (int, float)) for one in good], "s"
    )
    columns, left_out = without_negative({"duration": duration, "start": ends - duration}, options)
    return {"": Samples(run=run.with_notes(*left_out), **columns)}


def read_raw(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read lines of raw statistics, one a period; together they are one summary."""
    rows = []
    for number, line in enumerate(source.text().splitlines(), 1):
        if _RAW.fullmatch(line.strip()):
            rows.append([int(part) for part in line.split()])
        elif line.strip():
            options.reject(
                source.corrupt(number, "this is no line of ioping -p", "ten whole numbers", "")
            )
    table = np.array(rows, np.float64)
    count, total = int(table[:, 0].sum()), float(table[:, 1].sum())
    stats = {
        "min": float(table[:, 4].min()),
        "mean": round(total / max(count, 1), 3),
        "max": float(table[:, 6].max()),
    }
    if len(rows) == 1:
        stats["std"] = float(table[0, 7])
    run = Run(
        tool="ioping", measure="service", corrected="none", connections=1, unit="ns", unit_from="format",
        duration=float(table[:, 9].sum()) / 1e9, notes=(_HINT,),
    )  # fmt: skip
    return {"": Summary(stats, {}, count, "ns", run)}


FORMATS = (
    Format("ioping", "ioping (text)", "samples", (".txt",), sniff_text, read_text, example="ioping -c 100 . > ioping.txt"),
    Format(
        "ioping-json", "ioping (JSON)", "samples", (".json",), sniff_json, read_json, unit="ns",
        example="ioping -c 100 -J . > ioping.json",
    ),
    Format(
        "ioping-raw", "ioping's raw statistics", "summary", (".txt",), sniff_raw, read_raw, unit="ns",
        example="ioping -c 200 -p 100 -q . > ioping.txt",
    ),
)  # fmt: skip
