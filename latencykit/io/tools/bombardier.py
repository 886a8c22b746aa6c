"""bombardier: its JSON (µs) and its text.

Every reply counts among the latencies, failed ones and timeouts, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from latencykit._text import printable
from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import data_from_points, mixed_note, nanoseconds, unanswered
from latencykit.io.sniffing import has_match
from latencykit.io.source import Format
from latencykit.io.text_reports import below, durations, fact, plain, section_runs, text_of_run
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from latencykit.io.source import Data, ReadOptions, Source

_HINT = "bombardier --latencies prints the distribution (of 50, 75, 90, 95 and 99 %)"
_JSON = re.compile(r'^[ \t]*\{\s*"spec"', re.MULTILINE)
_BEGIN = re.compile(r"^Bombarding \S+ ", re.MULTILINE)
_TITLE = re.compile(r"^Statistics\s+Avg\s+Stdev\s+Max\s*$", re.MULTILINE)
_LATENCY = re.compile(r"^[ \t]*Latency\s+(\S+)\s+(\S+)\s+(\S+)\s*$", re.MULTILINE)
_POINT = re.compile(r"^[ \t]*([\d.]+)%\s+(\S+)\s*$", re.MULTILINE)
_CODES = re.compile(
    r"1xx - (\d+), 2xx - (\d+), 3xx - (\d+), 4xx - (\d+), 5xx - (\d+)\s+others - (\d+)"
)
_ERROR = re.compile(r"[ \t]*(\S.*) - (\d+)[ \t]*")
_TIMEOUT = re.compile(r"timeout|timed out|deadline", re.IGNORECASE)


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the result."""
    text_of_run(source, _JSON)
    record: dict[str, object] = json_text.load(source, after_noise=True)
    spec = json_text.entry(record, "spec", source)
    result = json_text.entry(record, "result", source)
    errors = {
        str(row.get("description", row.get("Error"))): int(row["count"])
        for row in result.get("errors") or ()
    }
    names = ("req1xx", "req2xx", "req3xx", "req4xx", "req5xx", "others")
    codes = [int(result.get(name) or 0) for name in names]
    rate, clients = spec.get("rate"), int(spec.get("numberOfConnections") or 0)
    seconds = result.get("timeTakenSeconds")
    run = _run(codes, errors).replace(
        loop="paced" if rate else "closed", rate=float(rate) if rate else None,
        connections=clients or None, unit="us", unit_from="format", duration=seconds,
        achieved=sum(codes) / seconds if seconds else None,
        expected_interval=round(clients / rate * 1e9, 3) if rate and clients else None,
        timeout=nanoseconds(spec["timeoutSeconds"], "s") if spec.get("timeoutSeconds") else None,
    )  # fmt: skip
    latency = result.get("latency") or {}
    points = {float(p): value for p, value in (latency.get("percentiles") or {}).items()}
    keys = (("mean", "mean"), ("std", "stddev"), ("max", "max"))
    stats = {name: latency[key] for name, key in keys if key in latency}
    return {"": _of_good(points, stats, sum(codes), run, "us")}


def _run(codes: list[int], errors: Mapping[str, int]) -> Run:
    """Failures by status (of 400 and above, or none), timeouts among them by their text."""
    late = min(sum(count for text, count in errors.items() if _TIMEOUT.search(text)), codes[5])
    bad = sum(codes[3:])
    notes = [f"{count:,} × {printable(text, 100)}" for text, count in list(errors.items())[:5]]
    return Run(
        tool="bombardier", loop="closed", measure="service", corrected="none", failed=bad - late,
        timeouts=late, notes=(*mixed_note(bad), *notes),
    )  # fmt: skip


def _of_good(
    points: dict[float, float],
    stats: dict[str, float],
    total: int,
    run: Run,
    unit: str = "ns",
) -> Data:
    good = total - run.failed - run.timeouts
    if good <= 0:
        return unanswered(run)
    return data_from_points(points, good, stats, run if points else run.with_notes(_HINT), unit)


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the table, the percentiles and the status codes of every run."""
    series: dict[str, Data] = {}
    for name, part in section_runs(source, _BEGIN).items():
        text = part.text
        title = _TITLE.search(text)
        intro, body = (text[: title.start()], text[title.start() :]) if title else ("", text)
        row, codes = _LATENCY.search(body), _CODES.search(body)
        if title is None or codes is None:
            expected = "Statistics and HTTP codes"
            raise source.corrupt(None, "the closing table is missing", expected, "did the run end?")
        numbers = [int(number) for number in codes.groups()]
        lines = (line.strip() for _, line in below(body[codes.end() :], "Errors:"))
        errors = {row[1]: int(row[2]) for row in map(_ERROR.fullmatch, lines) if row}
        length = fact(intro, r" for ([\d.hms]+) using", parse_duration)
        run = _run(numbers, errors).replace(
            unit_from="file",
            connections=fact(intro, r"using (\d+) connection", int),
            duration=None if length is None else length / 1e9,
        )
        if row is None:
            series[name] = unanswered(run)
            continue
        # a fork prints the distribution of all replies, then that of the good ones
        spread = "Distribution".join(body[row.end() : codes.start()].split("Distribution")[:2])
        cells = dict(zip(("mean", "std", "max"), row.groups(), strict=True))
        stats = durations(cells, source, "1.53ms")
        points = durations({float(p): cell for p, cell in _POINT.findall(spread)}, source, "1.53ms")
        if "Distribution" in spread and len(points) < spread.count("%"):
            seen = "a percentile that cannot be read"
            raise source.corrupt(None, seen, "50%     1.48ms", "run it again")
        series[name] = _of_good(points, stats, sum(numbers), run)
    return series


FORMATS = (
    Format(
        "bombardier-json", "bombardier (JSON)", "histogram", (".json",),
        has_match(_JSON, '"result"', '"timeTakenSeconds"', '"req2xx"'), read_json, unit="us",
        example="bombardier -l -o json -p r URL > out.json",
    ),
    Format(
        "bombardier", "bombardier (text)", "histogram", (".txt",),
        has_match(
            rf"{_TITLE.pattern}\n[ \t]*Reqs/sec\s|{_BEGIN.pattern}", plain=plain,
            without='"req2xx"',
        ),
        read_text,
        example="bombardier -l URL > out.txt",
    ),
)  # fmt: skip
