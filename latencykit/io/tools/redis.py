"""Load tools of Redis, memtier_benchmark and redis-benchmark, and the histogram of redis-cli.

memtier_benchmark: its JSON, with a whole HdrHistogram (µs) of every command, and its tables. The
``.txt`` files of ``--hdr-file-prefix`` are percentile text, its ``.hgrm`` files interval logs.

redis-benchmark (and valkey-benchmark): its text, ``-q`` and ``--csv``.

Since 6.2 it counts in an HdrHistogram and prints two lists of exact cumulative counts: at halving
shares, and every 0.1 ms (above 2 ms every 1 ms, where the count changes). Values above 3 s are
counted as 3 s. Before, it printed the share up to each whole millisecond (or what ``--precision``
says), rounded down. With ``-P`` each request of a pipeline gets the time of the whole pipeline; the
output does not say so.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any

import numpy as np

from latencykit._text import format_items, printable
from latencykit.core.run import CLOSED, SERVER_SIDE, Run
from latencykit.core.summary import Summary
from latencykit.io import build, json_text
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import certain, fact, has_match, plain, text_of_run

_TOTALS = "Totals"
_MEMTIER_HINT = "--json-out-file contains the full distribution"
_TABLE_ROW = re.compile(r"^(\w[\w-]*)((?: +(?:[\d.]+|---|-?nan))+) *$", re.MULTILINE)
_SPREAD_ROW = re.compile(r"^(\w[\w-]*) +([\d.]+) +([\d.]+) *$", re.MULTILINE)
_TITLE = re.compile(  # of a test, or all that -q prints of it
    r"[ \t]*====== (.{1,300}?) ======\s*$|(?!\s*throughput summary)(.{1,300}?): "
    r"(?P<rate>[\d.]+|inf|nan) requests per second(?:, p50=(?P<p50>[\d.]+) msec)?\s*$"
)
_ROW = re.compile(
    r"^\s*([\d.]{1,20})% <= ([\d.]{1,30}) milliseconds(?: \(cumulative count (\d{1,18})\))?\s*$"
)
_COLUMNS = re.compile(r"\s*avg(?:\s+(?:min|max|p\d+(?:\.\d+)?))+\s*")
_VALUE = re.compile(r"[\d.]+|[-+]?(?:nan|inf)")
_IMPORTANT = re.compile(r"requests per second|requests completed in|^\s*avg\s+min\s")
_KNOWN = re.compile(
    rf"\s*\d{{1,18}} requests completed in [\d.]+ seconds|{_TITLE.pattern}"
    r"|\s*(?:throughput summary: )?(?:[\d.]+|inf|nan) requests per second"
)
_PROGRESS = re.compile(r"rps=[\d.]+ \(overall: ")
_CLIP = 3000.0  # ms
_COARSEST = 0.93  # a bucket of one digit is up to 1/16 of its value wide
_RUN = Run(tool="redis-benchmark", **CLOSED, unit="ms")
_HINT = "redis-benchmark without -q and --csv (6.2 and later) prints the full distribution"


def read_memtier_json(source: Source, options: ReadOptions) -> Series:
    """Read the totals, then every command that was sent; of several runs, all of them together."""
    record: dict[str, Any] = json_text.load(source)
    sections = [key for key, row in record.items() if isinstance(row, dict) and _TOTALS in row]
    if not sections:
        hint = "run memtier_benchmark with --json-out-file"
        raise source.corrupt(None, "the JSON contains no statistics", '"ALL STATS"', hint)
    others = [key for key in sections if not key.startswith(("BEST", "WORST"))]
    chosen = "ALL STATS" if "ALL STATS" in sections else (others or sections)[0]
    section = record[chosen]
    facts, settings = record.get("run information") or {}, record.get("configuration") or {}
    threads = facts.get("Threads") or settings.get("threads") or 0
    clients = threads * (facts.get("Connections per thread") or settings.get("clients") or 0)
    each, runtime = settings.get("rate_limit") or 0, section.get("Runtime") or {}
    start, duration = runtime.get("Start time"), runtime.get("Total duration")
    run = Run(
        tool="memtier_benchmark", loop="paced" if each else "closed", measure="service",
        corrected="none", start=start / 1e3 if start else None,
        duration=duration / 1e3 if duration else None, connections=clients or None,
        rate=float(each * clients) if each and clients else None,
        expected_interval=round(1e9 / each, 3) if each else None, unit="ms", unit_from="format",
    )  # fmt: skip
    if len(sections) > 1:
        run = run.with_notes(f"of {', '.join(sections)}, this is {chosen}")
    # Old releases print no count; a command that was not sent has none, or no latency.
    names = [name for name, row in section.items()
             if isinstance(row, dict) and row.get("Count", row.get("Latency"))]  # fmt: skip
    for name in sorted(names, key=lambda name: name != _TOTALS):
        row, failed = section[name], int(section[name].get("Connection Errors") or 0)
        own = run.replace(aggregate=name == _TOTALS, achieved=row.get("Ops/sec"), failed=failed)
        if name != _TOTALS:  # the rate is that of all commands together
            own = own.replace(rate=None, expected_interval=None)
        ends = {key.removesuffix(" Latency"): value or None for key, value in row.items()}
        _, stats = build.statistics_in({"mean": row.get("Latency") or None, **ends})
        latencies = row.get("Percentile Latencies") or row
        cells = {key: v for key, v in latencies.items() if isinstance(v, (int, float))}
        points = build.in_nanoseconds(build.percentiles_in(cells), "ms")
        stats = build.in_nanoseconds(stats, "ms")
        payload = (latencies.get("Histogram log format") or {}).get("Compressed Histogram")
        if payload:
            yield name, build.histogram_of_payload(
                payload, "us", own, source, name, reported_stats=stats,
                reported_percentiles=build.printed_rows(points),
            )  # fmt: skip
            continue
        for step in section.get(re.sub(r"S$", "", name.upper()), []):
            if step.get("percent"):
                points[step["percent"]] = build.nanoseconds(step["<=msec"], "ms")
        points.pop(0.0, None)
        yield name, build.data_from_points(points, row.get("Count"), stats, own)


def read_memtier_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the table and the cumulative lines of every command."""
    text = text_of_run(source, r"^(?:\d+ +Threads *|ALL STATS)$|(?<!=\n)^Type +Ops", "^Totals ")
    at = max(text.rfind("\nALL STATS\n"), text.rfind("AGGREGATED AVERAGE RESULTS"), 0)
    header = re.search(r"^Type +.*$", text[at:], re.MULTILINE)
    if header is None:
        return {}
    columns = re.sub(r"(?<=[\w.]) Latency", "_Latency", header[0]).split()
    body, _, cumulative = text[at + header.end() :].partition("Request Latency Distribution")
    spread: dict[str, dict[float, float]] = {}
    for command, value, percent in _SPREAD_ROW.findall(
        cumulative.split("Request Latency Distribution")[0]
    ):
        spread.setdefault(command, {})[float(percent)] = build.nanoseconds(value, "ms")
    threads, per_thread, seconds, each = (
        fact(text, rf"^(\d+) +{name}\s*$", int) or 0
        for name in ("Threads", "Connections per thread", "Seconds", "Requests per client")
    )
    clients = threads * per_thread
    run = Run(
        tool="memtier_benchmark", **CLOSED, unit="ms", duration=float(seconds) or None,
        connections=clients or None, unit_from="format",
    )  # fmt: skip
    rows = {
        name: {
            column: float(cell)
            for column, cell in zip(columns[1:], rest.split(), strict=False) if cell[0].isdigit()
        }
        for name, rest in _TABLE_ROW.findall(body)
    }  # fmt: skip
    total = rows.get(_TOTALS, {}).get("Ops/sec")
    series: dict[str, Data] = {}
    for name, row in rows.items():
        if not row.get("Ops/sec") and not row.get("Avg._Latency", row.get("Latency")):
            continue  # a rate of 0.00 may be rounded
        own = run.replace(aggregate=name == _TOTALS, achieved=row.get("Ops/sec") or None)
        rate = row.get("Ops/sec", 0.0)
        count = round(each * clients * rate / total) if total else 0
        if count and name != _TOTALS:
            own = own.with_notes("the number of requests is that of all by the share of Ops/sec")
        if not count and seconds:
            own = own.with_notes("the number of requests is Ops/sec x seconds")
            count = round(rate * seconds)
        timed = {column.removesuffix("_Latency"): value for column, value in row.items()}
        points = build.in_nanoseconds(build.percentiles_in(timed), "ms")
        steps = spread.get(re.sub(r"S$", "", name.upper()), {})
        points |= {p: value for p, value in steps.items() if p > 0}
        mean = row.get("Avg._Latency", row.get("Latency")) or None
        stats = build.in_nanoseconds({"mean": mean}, "ms")
        series[name] = build.data_from_points(
            points, count or None, stats, own.with_notes(_MEMTIER_HINT)
        )
    return dict(sorted(series.items(), key=lambda item: item[0] != _TOTALS))


def sniff_text(head: Head) -> Confidence:
    """Recognise the title of a test, a quiet line, or the progress that is overwritten."""
    text = plain(head.text)
    summary = re.search(r"^[ \t]*latency summary \(msec\):", text, re.MULTILINE)
    lines = [line for line in text.split("\n") if len(line) < 500]
    titles = [title for line in lines if (title := _TITLE.match(line))]
    return certain(
        ("requests completed in" in text and titles)
        or (summary and "throughput summary:" in text)
        or any(title["rate"] for title in titles)
        or _PROGRESS.search(head.text)
    )


def read_text(source: Source, options: ReadOptions) -> Series:
    """Read one series per test."""
    lines = plain(source.text()).split("\n")
    begins = [k for k, line in enumerate(lines) if _TITLE.match(line)]
    none = True
    for begin, end in pairwise([*dict.fromkeys([0, *begins]), len(lines)]):
        title = _TITLE.match(lines[begin])
        data = _test(lines, begin, end, title, source, options)
        if data is not None:
            none = False
            yield (title[1] or title[2]).strip() if title else "", data
    if none:
        expected = "a distribution, a summary or a p50"
        raise source.corrupt(None, "it contains no latencies", expected, _HINT)


def _test(
    lines: Sequence[str],
    begin: int,
    end: int,
    title: re.Match[str] | None,
    source: Source,
    options: ReadOptions,
) -> Data | None:
    """The data of the lines of a test; None where they hold no latency."""
    stats = {"p50": float(title["p50"])} if title and title["p50"] else {}
    columns: list[str] = []
    rows: list[tuple[float, float, bool]] = []  # ms; cumulative count or share; of the even steps
    even, last = False, (0.0, 0.0)
    for number, line in enumerate(lines[begin:end], begin + 1):
        expected = ""
        if "<=" in line and "millisec" in line:
            row = _ROW.match(line)
            value, share = (
                build.number_in(row[k]) if row and row[k] else None
                for k in (2, 3 if row and row[3] else 1)
            )
            if value is None or share is None or value < last[0] or share < last[1]:
                expected = "50.000% <= 0.031 milliseconds (cumulative count 1), ascending"
            else:
                last = value, share
                rows.append((*last, even))
        elif line.startswith("Cumulative distribution"):
            even, last = True, (0.0, 0.0)
        elif columns and line.strip():
            words = line.split()
            if len(words) == len(columns) and all(map(_VALUE.fullmatch, words)):
                values = dict(zip(columns, map(build.number_in, words), strict=True))
                stats = {name: value for name, value in values.items() if value is not None}
            else:
                expected = ", ".join(columns)
            columns = []
        elif _COLUMNS.fullmatch(line):
            columns = line.split()
        elif _IMPORTANT.search(line) and not _KNOWN.match(line):
            expected = "a line that redis-benchmark prints"
        if expected and number < len(lines):
            options.refuse(source, number, f"{printable(line.strip())!r}", expected)
    text = "\n".join(lines[begin:end])
    run = _RUN.replace(
        duration=fact(text, r"^\s*\d+ requests completed in ([\d.]+) s", build.number_in) or None,
        connections=fact(text, r"^\s*(\d{1,9}) parallel clients", int),
        achieved=build.number_in(title["rate"]) if title and title["rate"] else
        fact(text, r"^\s*(?:throughput summary: )?([\d.]+) requests per second", build.number_in),
    )  # fmt: skip
    count = fact(text, r"^\s*(\d{1,18}) requests completed in [\d.]+ seconds", int) or 0
    if rows and "(cumulative count" in text:
        return _counted(rows, stats, run, title[1] if title else "", source)
    if not rows:
        return _of_stats(stats, count, run)
    value, share = np.array(rows)[:, :2].T
    printed = re.findall(r"% <= ([\d.]{1,30}) millisec", text)[-1].partition(".")[2]
    step, top = 10.0 ** -len(printed), {"max": float(value[-1]) or None}
    run = run.with_notes(
        f"this version rounds latencies down: each may be up to {step:g} ms higher than printed"
    )
    if not count:
        points = {p: build.nanoseconds(v, "ms") for v, p, _ in rows}
        return Summary(build.in_nanoseconds(top, "ms"), points, None, "ns", run)
    counts = np.diff(np.rint(share * count / 100).astype(np.int64), prepend=0)
    high = np.append(value[:-1], value[-1] + step)
    low = np.concatenate(([0.0], high[:-1]))
    return build.data_from_buckets(low, high, counts, run, stats=top)


def _of_stats(stats: Mapping[str, float], count: int, run: Run) -> Data | None:
    """The statistics of a test (ms); None where there are none."""
    points, stats = build.statistics_in(stats)
    if not stats and not points:
        return None
    return build.data_from_points(points, count or None, stats, run.with_notes(_HINT), "ms")


def _counted(
    rows: Sequence[tuple[float, float, bool]],
    named: Mapping[str, float],
    run: Run,
    name: str,
    source: Source,
) -> Data | None:
    """The histogram of two lists of cumulative counts."""
    points, stats = build.statistics_in(build.in_nanoseconds(named, "ms"))
    counted = dict(sorted((value, count) for value, count, _ in rows))
    for (before, count), (value, more) in pairwise((v, n) for v, n, even in rows if even):
        below = value * _COARSEST - (0.1 if value < 2.2 else 1.0)
        if more > count and below > before:  # nothing was counted up to here
            counted.setdefault(below, max(n for v, n in counted.items() if v <= below))
    values, cumulative = np.array(sorted(counted.items())).T
    counts = np.diff(cumulative.astype(np.int64), prepend=0)
    if (counts < 0).any():
        seen = f"the two distributions of {name} contradict each other"
        raise source.corrupt(None, seen, "equal counts", "run it again")
    if not counts.sum():
        return None
    if not stats:
        run = run.with_notes("the output ends before the summary of this test")
    clipped = values >= _CLIP
    late = int(counts[clipped].sum())
    if late:
        run = run.with_notes(
            "redis-benchmark counts what takes longer than 3 s as 3 s: "
            f"{format_items(late, 'request')} took 3 s or more"
        )
    highs = [build.nanoseconds(value, "ms") for value in values[~clipped]]
    return build.histogram_of_both(
        points, highs, counts[~clipped].tolist(), stats, run, censored=late,
        censored_at=_CLIP * 1e6 if late else np.inf,
    )  # fmt: skip


def sniff_csv(head: Head) -> Confidence:
    """Recognise the heading, or rows of old versions."""
    lines = [line for line in head.lines if line.startswith('"')]
    if lines and lines[0].startswith('"test","rps"'):
        return Confidence.CERTAIN
    old = re.compile(r'"[A-Z][^"]{0,100}","[\d.]+"')
    return Confidence.LIKELY if lines and all(map(old.fullmatch, lines)) else Confidence.NO


def read_csv(source: Source, options: ReadOptions) -> Series:
    """Read one summary per test."""
    columns: list[str] = []
    lines, none = source.text().split("\n"), True
    for number, line in enumerate(lines, 1):
        if not line.startswith('"'):
            continue  # warnings of the tool
        row = next(csv.reader([line]))
        if row[:2] == ["test", "rps"]:
            columns = [re.sub(r"_latency_ms$", "", name) for name in row]
            continue
        values = [value for word in row[1:] if (value := build.number_in(word)) is not None]
        unlike = columns and len(row) != len(columns)
        if not line.rstrip().endswith('"') or unlike or len(values) < len(row) - 1:
            if number < len(lines):
                seen, expected = f"{printable(line)!r}", "a test and its numbers"
                options.refuse(source, number, seen, expected)
            continue
        stats = dict(zip(columns[2:], values[1:], strict=False))
        data = _of_stats(stats, 0, _RUN.replace(achieved=values[0]))
        if data is not None:
            none = False
            yield row[0], data
    if none:
        seen = "this version's --csv prints throughput only"
        if columns:
            seen = "it has no test below the heading"
        raise source.corrupt(None, seen, "latencies", _HINT)


# ------------------------------------------------------------
# ``redis-cli latency histogram`` prints per command how many calls took up to 1.032 · 2**k µs,
# rounded down to whole ones: buckets of an HdrHistogram of two digits. Above 1 s all are counted
# as 1 s.

_SERVER = Run(tool="redis", measure="service", unit="ns", notes=(SERVER_SIDE,))
_HISTOGRAM = r'\bcalls[\s":),=>integr(\d#]{1,60}\bhistogram_usec\b'


def read_histogram(source: Source, options: ReadOptions) -> Series:
    """Read the calls of every command, whatever redis-cli puts around the words."""
    text = source.text()
    if text.lstrip().startswith("{"):
        json_text.load(source)  # which says where it is corrupt
    words = re.findall(r'[^\s"{}:,]+', re.sub(r"\d{1,6}[)#]\s|\(integer\)|=>", " ", text))
    begins = [k - 1 for k, word in enumerate(words) if word == "calls"]
    for begin, end in zip(begins, [*begins[1:], len(words)], strict=True):
        pairs = list(takewhile(str.isdigit, words[begin + 2 : begin + 3] + words[begin + 4 : end]))
        if len(pairs) < 3 or pairs[0] != pairs[-1]:
            seen = f"the histogram of {words[begin]!r} is incomplete"
            raise source.corrupt(None, seen, f"{''.join(pairs[:1])} calls", "is it cut off?")
        edge, calls = np.array(pairs[1:], np.float64).reshape(-1, 2).T
        high = 1032 * 2.0 ** np.rint(np.log2(np.maximum(edge, 1) / 1.032))
        counts = np.diff(calls, prepend=0)
        late = high > 1e9
        yield words[begin], build.data_from_buckets(
            np.where(high > 1032, high / 2, 0)[~late], high[~late], counts[~late], _SERVER,
            above=int(counts[late].sum()), bound=1e9,
        )  # fmt: skip


FORMATS = {
    "redis-histogram": (has_match(_HISTOGRAM), read_histogram),
    "memtier-json": read_memtier_json,
    "memtier": (has_match(r"^Type +Ops/sec "), read_memtier_text),
    "redis-benchmark": (sniff_text, read_text),
    "redis-benchmark-csv": (sniff_csv, read_csv),
}
