"""Nighthawk, Envoy's load generator: its JSON, and the text that it prints.

The times of its global result cover all workers; rates and connections are those of each worker.
Replies of any status count in ``request_to_response``. Without ``--open-loop``, a request that is
due waits until a connection is free, and is timed from its send; ``sequencer.blocking`` has those
waits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from latencykit._typing import JSONObject
from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import data_from_points, epoch_seconds, mixed_note, unanswered
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import blocks, either, has_json_keys, has_match, line_numbers, plain

_RUN = Run(tool="Nighthawk", measure="service", corrected="none", unit="s", unit_from="format")
_MAIN = "request_to_response"
_CLIENT = "benchmark_http_client."
_BAD = tuple(f"benchmark.http_{status}" for status in ("4xx", "5xx", "xxx"))
_UNANSWERED = ("benchmark.stream_resets", "benchmark.pool_connection_failure")
_STATS = {"mean": "mean", "pstdev": "std", "min": "min", "max": "max"}
_SPAN = re.compile(r"(\d{1,9})s (\d{1,3})ms (\d{1,3})us")
_YAML = re.compile(r"^ {4}statistics:[ \t]*\n {6}- (?:count|id): ", re.MULTILINE)
_TITLE = re.compile(r"^(\S[^\n]{0,200}) \((\d{1,18}) samples\)[ \t]*$", re.MULTILINE)
_ROW = re.compile(rf"^ *([01](?:\.\d{{1,12}})?) +\d+ +({_SPAN.pattern})", re.MULTILINE)
_COUNTER = re.compile(r"^(?:client\.)?([a-z][\w.]{1,100}) +(\d{1,18}) +\d+\.\d\d *$", re.MULTILINE)
_TITLES = {
    "Request start to response end": _MAIN,
    "Queueing and connection setup latency": "queue_to_connect",
    "Initiation to completion": "sequencer.callback",
    "Blocking. Results are skewed when significant numbers are reported here.": (
        "sequencer.blocking"
    ),
}


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the statistics of times of the global result, or of every worker without one."""
    if _YAML.search(source.head.text):
        hint = "write it with --output-format json"
        raise source.corrupt(1, "this is Nighthawk's YAML", "its JSON", hint)
    record = json_text.load(source)
    given = record.get("options") or {}
    results: Sequence[JSONObject] = json_text.entry(record, "results", source, list)
    total = [result for result in results if result.get("name") == "global"]
    workers = max(len(results) - len(total), 1)
    rate, connections = given.get("requests_per_second"), given.get("connections")
    run = _RUN.replace(
        loop="open" if given.get("open_loop") else "paced",
        rate=float(rate) * workers if rate else None,
        connections=int(connections) * workers if connections else None,
        start=epoch_seconds(record["timestamp"]) if record.get("timestamp") else None,
    )
    series: dict[str, Data] = {}
    for result in total or results:
        counters = {row.get("name"): row.get("value") for row in result.get("counters") or ()}
        own = _counted(run.replace(duration=_seconds(result.get("execution_duration"))), counters)
        label = f"{result.get('name')} " if len(total or results) > 1 else ""
        found: list[tuple[str, Data]] = []
        for row in result.get("statistics") or ():
            name, count = str(row.get("id")).removeprefix(_CLIENT), int(row.get("count") or 0)
            if not count or _seconds(row.get("mean")) is None:
                continue  # none, or a size
            levels = row.get("percentiles") or ()
            points = {100 * float(p["percentile"]): _seconds(p["duration"]) for p in levels}
            stats = {name: _seconds(row.get(key)) for key, name in _STATS.items()}
            found.append((name, _statistic(name, points, count, stats, own, counters)))
        series |= {label + name: data for name, data in _first(found)}
        run = own
    return series or {"": unanswered(run)}


def read_text(source: Source, options: ReadOptions) -> Series:
    """Read every block of times, of whole microseconds."""
    text = plain(source.text())
    counters = dict(_COUNTER.findall(text))
    run = _counted(_RUN.replace(unit="us"), counters)
    line_at = line_numbers(text)
    series: list[tuple[str, Data]] = []
    for title, end in blocks(text, _TITLE):
        body, count = text[title.end() : end], int(title[2])
        cells = re.findall(rf"\b(min|mean|max|pstdev): ({_SPAN.pattern})", body)
        stats = {_STATS[cell[0]]: _span(cell[1]) for cell in cells}
        if not count or not stats:
            continue  # none, or a size
        if set(stats) != set(_STATS.values()):
            expected = "min, mean, max and pstdev"
            raise source.corrupt(line_at(title.start()), "this block is cut", expected)
        points = {100 * float(row[0]): _span(row[1]) for row in _ROW.findall(body)}
        name = _TITLES.get(title[1], title[1].removeprefix(_CLIENT))
        series.append((name, _statistic(name, points, count, stats, run, counters)))
    return _first(series or [("", unanswered(run))])


def _first(series: list[tuple[str, Data]]) -> Series:
    """The times of replies before the others."""
    return iter(sorted(series, key=lambda item: item[0] != _MAIN))


def _seconds(text: object) -> float | None:
    """A duration as protobuf writes it: ``0.0012s``."""
    return float(text.removesuffix("s")) if isinstance(text, str) else None


def _span(text: str) -> float:
    """A duration of the text in seconds: ``0s 000ms 190us``."""
    seconds, milliseconds, microseconds = (int(part) for part in re.findall(r"\d+", text))
    return seconds + milliseconds / 1e3 + microseconds / 1e6


def _counted(run: Run, counters: Mapping[str, object]) -> Run:
    failed = sum(int(str(counters.get(name) or 0)) for name in (*_BAD, *_UNANSWERED))
    dropped = int(str(counters.get("benchmark.pool_overflow") or 0))
    return run.replace(failed=failed, dropped=dropped)


def _statistic(
    name: str,
    points: Mapping[float, float | None],
    count: int,
    stats: Mapping[str, float | None],
    run: Run,
    counters: Mapping[str, object],
) -> Data:
    """One statistic of times in seconds; those of replies of any status are together."""
    bad = _BAD if name.endswith(_MAIN) else ()
    mixed = sum(int(str(counters.get(status) or 0)) for status in bad)
    run = run.with_notes(*mixed_note(min(mixed, count)))
    points = {round(p, 6): value for p, value in points.items()}
    return data_from_points(points, max(count - mixed, 0), stats, run, "s")


FORMATS = {
    "nighthawk": (
        either(has_json_keys(("results", "statistics", "pstdev")), has_match(_YAML)),
        read_json,
    ),
    "nighthawk-text": (
        has_match(r"^Nighthawk - A layer 7 protocol benchmarking tool", r"^  min: "),
        read_text,
    ),
}
