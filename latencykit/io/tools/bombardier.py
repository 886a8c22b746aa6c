"""bombardier: its JSON (µs) and its text. Every reply counts among the latencies, failed ones and timeouts, too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_points, mixed_note, nanoseconds, nothing_answered
from latencykit.io.source import Confidence, Format
from latencykit.io.text import plain, runs
from latencykit.units import parse_duration, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_HINT = "bombardier --latencies prints the distribution (of 50, 75, 90, 95 and 99 %)"
_JSON = re.compile(r'^[ \t]*\{\s*"spec"', re.MULTILINE)
_BEGIN = re.compile(r"^Bombarding \S+ ", re.MULTILINE)
_TITLE = re.compile(r"^Statistics\s+Avg\s+Stdev\s+Max\s*$", re.MULTILINE)
_LATENCY = re.compile(r"^[ \t]*Latency\s+(\S+)\s+(\S+)\s+(\S+)\s*$", re.MULTILINE)
_POINT = re.compile(r"^[ \t]+([\d.]+)%\s+(\S+)\s*$", re.MULTILINE)
_CODES = re.compile(
    r"1xx - (\d+), 2xx - (\d+), 3xx - (\d+), 4xx - (\d+), 5xx - (\d+)\s+others - (\d+)"
)
_ERRORS = re.compile(r"^[ \t]{2,}(.+?) - (\d+)$", re.MULTILINE)
_TIMEOUT = re.compile(r"timeout|timed out|deadline", re.IGNORECASE)


def sniff_json(head: Head) -> Confidence:
    """Tell the keys of the specification and of the result; without ``-p r`` the introduction and progress stand above."""
    found = _JSON.search(head.text) and all(
        f'"{key}"' in head.text for key in ("result", "timeTakenSeconds", "req2xx")
    )
    return Confidence.CERTAIN if found else Confidence.NO


def sniff_text(head: Head) -> Confidence:
    """Tell the table of statistics, or the first line of a run whose result is not JSON."""
    if sniff_json(head) is Confidence.CERTAIN:
        return Confidence.NO
    text = plain(head.text)
    found = _TITLE.search(text) and re.search(r"^[ \t]*Reqs/sec\s", text, re.MULTILINE)
    return Confidence.CERTAIN if found or _BEGIN.search(text) else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the result."""
    record: dict[str, Any] = jsontext.load(source, after_noise=True)
    asked, result = jsontext.entry(record, "spec", source), jsontext.entry(record, "result", source)
    errors = {
        str(one.get("description", one.get("Error"))): int(one["count"])
        for one in result.get("errors") or ()
    }
    codes = {
        name: int(result.get(name) or 0)
        for name in ("req1xx", "req2xx", "req3xx", "req4xx", "req5xx", "others")
    }
    rate, clients = asked.get("rate"), int(asked.get("numberOfConnections") or 0)
    seconds = result.get("timeTakenSeconds")
    run = _run(list(codes.values()), errors).replace(
        loop="paced" if rate else "closed", rate=float(rate) if rate else None, connections=clients or None, unit="us",
        unit_from="format", duration=seconds, achieved=sum(codes.values()) / seconds if seconds else None,
        expected_interval=round(clients / rate * 1e9, 3) if rate and clients else None,
        timeout=nanoseconds(asked["timeoutSeconds"], "s") if asked.get("timeoutSeconds") else None,
    )  # fmt: skip
    latency = result.get("latency") or {}
    points = {
        float(p): nanoseconds(value, "us")
        for p, value in (latency.get("percentiles") or {}).items()
    }
    names = (("mean", "mean"), ("std", "stddev"), ("max", "max"))
    stats = {kind: nanoseconds(latency[name], "us") for kind, name in names if name in latency}
    return {"": _shaped(points, stats, sum(codes.values()), run, source)}


def _run(codes: list[int], errors: Mapping[str, int]) -> Run:
    """Failures by status (of 400 and above, and none at all), timeouts among them by their text."""
    late = min(sum(count for text, count in errors.items() if _TIMEOUT.search(text)), codes[5])
    bad = sum(codes[3:])
    notes = [f"{count:,} × {printable(text, 100)}" for text, count in list(errors.items())[:5]]
    return Run(
        tool="bombardier", loop="closed", measure="service", corrected="none", failed=bad - late, timeouts=late,
        notes=(*mixed_note(bad), *notes),
    )  # fmt: skip


def _shaped(
    points: dict[float, float], stats: dict[str, float], total: int, run: Run, source: Source
) -> Data:
    good = total - run.failed - run.timeouts
    if good <= 0 or not stats:
        raise nothing_answered(source, run)
    return data_from_points(points, good, stats, run if points else run.with_notes(_HINT))


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the table, the percentiles and the status codes of every run."""
    return {name: _table(part, source) for name, part in runs(plain(source.text()), _BEGIN).items()}


def _table(text: str, source: Source) -> Data:
    title = _TITLE.search(text)
    body = text[title.start() :] if title else text
    row, codes = _LATENCY.search(body), _CODES.search(body)
    if title is None or codes is None:
        raise source.corrupt(
            None, "the closing table is missing", "Statistics and HTTP codes", "did the run end?"
        )
    numbers = [int(number) for number in codes.groups()]
    errors = {name.strip(): int(number) for name, number in _ERRORS.findall(body[codes.end() :])}
    run = _run(numbers, errors).replace(unit_from="file", **_intro(text[: title.start()]))
    if row is None:
        raise nothing_answered(source, run)
    spread = body[row.end() : codes.start()]
    try:
        stats = {
            name: round(parse_duration(value), 3)
            for name, value in zip(("mean", "std", "max"), row.groups(), strict=True)
        }
        points = {float(p): round(parse_duration(value), 3) for p, value in _POINT.findall(spread)}
    except InvalidArgumentError as error:
        raise source.corrupt(
            None, f"a latency that cannot be read ({error})", "such as 1.53ms", ""
        ) from None
    if "Distribution" in spread and len(points) < spread.count("%"):
        raise source.corrupt(
            None, "a percentile that cannot be read", "50%     1.48ms", "run it again"
        )
    return _shaped(points, stats, sum(numbers), run, source)


def _intro(text: str) -> dict[str, Any]:
    """What the first line says: how long, and how many connections."""
    clients, length = (
        re.search(r"using (\d+) connection", text),
        re.search(r" for ([\d.hms]+) using", text),
    )
    return {
        "connections": int(clients[1]) if clients else None,
        "duration": parse_duration(length[1]) / 1e9 if length else None,
    }


FORMATS = (
    Format(
        "bombardier-json", "bombardier (JSON)", "histogram", (".json",), sniff_json, read_json, unit="us",
        example="bombardier -l -o json -p r URL > out.json",
    ),
    Format(
        "bombardier", "bombardier (text)", "histogram", (".txt",), sniff_text, read_text, example="bombardier -l URL > out.txt",
    ),
)  # fmt: skip
