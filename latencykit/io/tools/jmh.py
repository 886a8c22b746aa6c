"""JMH: its JSON and CSV results, and what it prints.

In sample mode JMH keeps every sampled call, and its JSON the counts of each value; single-shot mode
keeps every shot. Throughput and average time are means of an iteration.

What it prints is the table at its end, else the results of single benchmarks. People publish the
table in comments, in Markdown and in logs of builds, with other separators, and without its
heading.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from latencykit._text import printable
from latencykit._typing import JSONObject
from latencykit.core import is_summary
from latencykit.core.histogram import Histogram
from latencykit.core.probability import student_quantile
from latencykit.core.run import CLOSED, Run
from latencykit.core.summary import Summary
from latencykit.io import build, json_text
from latencykit.io.raw.cells import decimal_number, decimal_style
from latencykit.io.source import Data, ReadOptions, Series, SeveralDocuments, Source
from latencykit.io.text_reports import fact, has_match, line_numbers, plain

_Line = tuple[int, str, re.Match[str] | None]
"""Its number and text, and its cells if it is a row."""


_UNITS = {
    "ns": ("ns", 1), "us": ("us", 1), "ms": ("ms", 1), "s": ("s", 1), "min": ("s", 60),
    "hr": ("s", 3600), "day": ("s", 86400),
}  # fmt: skip
_RUN = Run(tool="JMH", **CLOSED)
_FORKS = 3  # that show how processes differ
_INVERSE = "the mean is threads / throughput"
_HINT = "means of iterations; run JMH with -bm sample for the distribution of single calls"
_ONE_THREAD = "the threads are not stated: one is assumed, as is the default"
FINER = "JMH prints numbers in a finer unit (-tu ns)"
"""What is to be done about scores that are orders of magnitude."""
_PERCENTILE_ROW = re.compile(r"(.+):(?:[^:]*·)?p(\d(?:\.\d+)?)$")


def read_json(source: Source, options: ReadOptions) -> Series:
    """Read every benchmark with its parameters as a series."""
    results = json_text.load(source)
    modes: dict[str, set[str]] = {}
    labels = [
        _label(str(json_text.entry(result, "benchmark", source, str)), result.get("params") or {})
        for result in results
    ]
    for label, result in zip(labels, results, strict=True):
        modes.setdefault(label, set()).add(str(result.get("mode")))
    for label, result in zip(labels, results, strict=True):
        name = label if len(modes[label]) == 1 else f"{label} ({result.get('mode')})"
        data = _data(result, json_text.entry(result, "primaryMetric", source))
        if data is None:
            options.report(f"{source.shown}: {name} has no score in a unit of time; left out")
            continue
        yield name, data
        # The methods of a @Group.
        for part, metric in (result.get("secondaryMetrics") or {}).items():
            inner = _data(result, metric) if metric.get("rawDataHistogram") else None
            if inner is not None:
                yield f"{name}:{part}", inner


def _label(benchmark: str, parameters: JSONObject) -> str:
    return " ".join([benchmark, *(f"{name}={value}" for name, value in parameters.items())])


def _unit(score_unit: str) -> tuple[str, int, bool] | None:
    """Unit of time, its factor, and whether it is a throughput; None for another unit."""
    parts = score_unit.split("/")
    if len(parts) != 2:
        return None
    throughput = parts[0].endswith("ops") or parts[0] == "op"
    unit = _UNITS.get(parts[1] if throughput else parts[0])
    return None if unit is None else (*unit, throughput)


def _data(result: JSONObject, metric: JSONObject) -> Data | None:
    """One metric as the richest data type that its values allow."""
    kind = _unit(str(metric.get("scoreUnit")))
    score = metric.get("score")
    if kind is None or not isinstance(score, (int, float)):
        return None
    unit, factor, throughput = kind
    threads = int(result.get("threads") or 1)
    run = _RUN.replace(version=result.get("jmhVersion"), connections=threads, unit=unit)
    forks, raw = metric.get("rawDataHistogram"), metric.get("rawData")
    if forks:
        pairs = [pair for fork in forks for iteration in fork for pair in iteration]
        values, counts = np.array(pairs, np.float64)[:, :2].T
        return _exact(values * factor, counts, score * factor, metric, run, factor)
    if result.get("mode") == "ss" and raw:
        values = np.array([value for fork in raw for value in fork], np.float64)
        batch = int(result.get("measurementBatchSize") or 1)
        if batch > 1:
            run = run.with_notes(f"each value is one shot of {batch:,} calls")
        return _exact(values * factor, np.ones(values.size), score * factor, metric, run, factor)
    run = run.with_notes(*([_INVERSE] if throughput else []), _HINT)
    forks = [fork for fork in raw if fork] if isinstance(raw, list) else []
    count, error = sum(map(len, forks)) or None, metric.get("scoreError")
    stats = _mean(score, kind, threads, error if isinstance(error, float) else None, count)
    # Iterations of one fork share its compiled code: with few forks their spread is all there is.
    means = [sum(fork) / len(fork) for fork in forks] if len(forks) >= _FORKS else []
    runs = tuple(Summary(_mean(mean, kind, threads), {}, None, "ns", run) for mean in means)
    return Summary(stats, {}, count, "ns", run, runs)


def _mean(
    score: float, kind: tuple[str, int, bool], threads: int, error: float | None = None,
    count: int | None = None,
) -> dict[str, float]:  # fmt: skip
    """The mean time of a call, and its standard error; of a throughput: threads / throughput."""
    # JMH states half of the interval that has a confidence of 99.9 %.
    unit, factor, throughput = kind
    if throughput and not score:
        return {}
    stats = {"mean": build.nanoseconds(factor * (threads / score if throughput else score), unit)}
    if score and error is not None and error > 0 and count is not None and count > 1:
        relative = error / score / student_quantile(0.999, count - 1)
        stats["standard error"] = stats["mean"] * relative
    return stats


def _exact(
    values: Any, counts: Any, mean: float, metric: JSONObject, run: Run, factor: int
) -> Histogram:
    """Every value with its count; percentiles read as JMH printed them."""
    points, total = build.added_up(build.nanoseconds_of(values, run.unit), counts.astype(np.int64))
    percentiles = sorted(
        (float(p), build.nanoseconds(value * factor, run.unit))
        for p, value in (metric.get("scorePercentiles") or {}).items()
        if isinstance(value, (int, float)) and value == value
    )
    return Histogram.from_buckets(
        points, points, total, run=run, reported_stats={"mean": build.nanoseconds(mean, run.unit)},
        reported_percentiles=(tuple(p for p, _ in percentiles), tuple(v for _, v in percentiles)),
    )  # fmt: skip


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every benchmark; the rows of its percentiles (sample mode) belong to it."""
    lines = source.text().splitlines()
    reader = csv.DictReader(lines, delimiter=lines[0][len('"Benchmark"')])
    return of_rows(((reader.line_num, row) for row in reader), source, options)


def of_rows(
    rows: Iterable[tuple[int, Mapping[str, Any]]], source: Source, options: ReadOptions
) -> dict[str, Data]:
    """Return the series of the rows of a table, by the names of the CSV's columns."""
    # Of a score that is only an order of magnitude, that is in the column ``Rough``.
    results: dict[tuple[str, str], dict[str, Any]] = {}
    latest: dict[tuple[str, str], tuple[str, str]] = {}
    repeats: Counter[tuple[str, str]] = Counter()
    for line, row in rows:
        try:
            name, kind, rough = row["Benchmark"], _unit(row["Unit"]), row.get("Rough")
            score = 0.0 if rough else float(row["Score"].replace(",", "."))
            error = float((row.get("Score Error (99.9%)") or "nan").replace(",", "."))
            threads, samples = (
                None if row[key] is None else int(row[key]) for key in ("Threads", "Samples")
            )
            part = _PERCENTILE_ROW.match(name)
            whole = kind is not None or (not part and (":" in name or "/" in row["Unit"]))
        except (ValueError, AttributeError, TypeError, KeyError):
            whole = False
        if not whole:
            options.refuse(source, line, "a row without a score", "numbers")
            continue
        if kind is None or score != score or (part is None and "·" in name):  # of a profiler
            if ":" not in name:
                options.report(f"{source.shown}: {name} has no score in a unit of time; left out")
            continue
        given = {key[7:]: cell for key, cell in row.items() if key and key.startswith("Param: ")}
        given = {key: cell for key, cell in given.items() if cell}
        label = _label(part[1] if part else name, given)
        first = (label, row["Mode"])
        key = latest.get(first, first)
        if part is None and "samples" in results.get(key, {}):  # another one of that name
            repeats[first] += 1
            key = (f"{label} ({repeats[first] + 1})", row["Mode"])
        latest[first] = key
        result = results.setdefault(key, {"points": {}, "rough": {}, "kind": kind})
        if part is None:
            result |= {"threads": threads, "samples": samples, "kind": kind, "error": error}
        point = round(float(part[2]) * 100, 10) if part else "mean"
        if rough:
            result["rough"][point] = f"{rough} {row['Unit']}"
        else:
            result["points"][point] = score
    modes = Counter(label for label, _ in results)
    return {
        label if modes[label] == 1 else f"{label} ({mode})": _result(result, mode)
        for (label, mode), result in results.items()
    }


def _result(result: Mapping[str, Any], mode: str) -> Data:
    """What the rows of one benchmark amount to."""
    (unit, factor, throughput), threads = result["kind"], result.get("threads")
    points, count = dict(result["points"]), result.get("samples")
    score = points.pop("mean", None)
    stats = {}
    if score is not None:
        stats = _mean(score, result["kind"], threads or 1, result.get("error"), count)
    run = _RUN.replace(connections=threads, unit=unit)
    if result["rough"]:
        rough = (
            f"{point if point == 'mean' else f'p{point:g}'} ≈ {value}"
            for point, value in result["rough"].items()
        )
        run = run.with_notes(f"orders of magnitude, not numbers: {', '.join(rough)}; {FINER}")
    if throughput:
        inverse = _INVERSE if threads else f"{_INVERSE}; {_ONE_THREAD}"
        return Summary(stats, {}, count, "ns", run.with_notes(inverse, _HINT))
    if points:
        points = {p: value * factor for p, value in points.items()}
        return build.data_from_points(build.in_nanoseconds(points, unit), count, stats, run)
    shots = "run JMH with -rf json for the distribution of the shots"
    return Summary(stats, {}, count, "ns", run.with_notes(shots if mode == "ss" else _HINT))


# ------------------------------------------------------------
# What JMH prints: the table at its end, else the results of single benchmarks.

_HEADING = re.compile(
    r"^Benchmark[ \t]+((?:\([^()\s]+\)[ \t]+)*)Mode((?:[ \t]+(?:Thr|Count|Cnt|Samples|Sec))*)"
    r"[ \t]+(?:Score|Mean)((?:[ \t]+(?:Score|Mean))?[ \t]+[Ee]rror)?[ \t]+Units?[ \t]*$",
    re.MULTILINE,
)
_MODE = "(?:thrpt|avgt|sample|ss)"
_NUMBER = r"(?:\d[\d.,]*|NaN)(?=[ \t])"
_CELLS = (
    rf"(?P<mode>{_MODE})(?P<numbers>(?:[ \t]+{_NUMBER})*)"
    # the signs are others where the encoding was mistaken
    r"(?:[ \t]+(?:≈[ \t]*|[?\ufffd]{1,3}[ \t]+(?=(?:0|10[?\ufffd]+)[ \t]))(?P<rough>\S+))?"
    rf"(?:[ \t]+(?P<sign>[^\d\s]{{1,3}})[ \t]*(?P<error>{_NUMBER}))?[ \t]+(?P<unit>[^\d\s]\S*)"
)
_ALONE = rf"^\S+[ \t]+{_MODE}[ \t]+[\d≈][^\n]*[ \t](?:ops?/\w+|\w+/op)[ \t]*$"
_RESULT = re.compile(r'^Result(?: "([^"\n]{1,500})")?:', re.MULTILINE)
_THREADS = re.compile(
    r"^# Threads: (\d+) thread[^\n]*(?:\n#[^\n]*){0,3}?\n# Benchmark: (\S+)", re.MULTILINE
)
_ERROR = r"(?:[^\d\s]{1,3}\([\d.,]+%\)[ \t]+\S+[ \t]+)?"
_SCORE = re.compile(
    rf"^[ \t]*(?:mean =[ \t]*)?(\d[\d.,]*)[ \t]+{_ERROR}(\w+/\w+)(?:[ \t]|$)", re.MULTILINE
)
_POINT = re.compile(r"^[ \t]*p\(([\d.,]+)\) =[ \t]+(\d[\d.,]*)[ \t]+\w+/op", re.MULTILINE)
# of comments, and of the logs of Maven, sbt and Ant
_BEFORE = re.compile(r"^[ \t]*(?:\[\w+\]|\*(?!/)|//)?[ \t|]*", re.MULTILINE)
_PIPE = re.compile(r"(?<![^ \t\n])\|(?![^ \t\n])")
_RULE = re.compile(r"[-+=|: \t]*$")
_END = re.compile(r"</|```|\*/|\$(?: |$)")


def bare(text: str) -> str:
    """Return text without what stands before its lines, and without the pipes of a table."""
    text = _BEFORE.sub("", plain(text))
    return _PIPE.sub(" ", text) if "|" in text else text


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the table; of several, each with what is above it."""
    text = bare(source.text())
    lines = text.split("\n")
    headings = [
        (number, match)
        for number, line in enumerate(lines, 1)
        if line.startswith("Benchmark") and (match := _HEADING.match(line))
    ]
    if len(headings) > 1:
        tables = [_table(lines, *heading) for heading in headings[:-1]]
        ends = [t[-1][0] if t else at for t, (at, _) in zip(tables, headings, strict=False)]
        parts = pairwise([0, *ends, len(lines)])
        raise SeveralDocuments([("\n".join(lines[begin:end]), begin) for begin, end in parts])
    # of each benchmark by class and method, as a table shortens packages
    threads = {_method(name): int(number) for number, name in _THREADS.findall(text)}
    stated = set(re.findall(r"^# Threads: (\d+) thread", text, re.MULTILINE))
    threads |= {"": int(*stated)} if len(stated) == 1 else {}
    if headings:
        rows = _rows(headings[0][1], _table(lines, *headings[0]), threads, source, options)
    elif re.search(_ALONE, text, re.MULTILINE):
        row = re.compile(rf"(\S+)()[ \t]+{_CELLS}")  # without a heading, it has no parameters
        like = re.compile(rf"\S+[ \t]+{_MODE}[ \t][^\n]*/")
        alone = [(k, line, row.match(line)) for k, line in enumerate(lines, 1) if like.match(line)]
        rows = _rows(None, alone, threads, source, options)
    else:
        rows = _results(text, threads)
    series = of_rows(rows, source, options)
    if not (series or headings):
        seen = "the table of results is missing"
        raise source.corrupt(None, seen, "what JMH prints at its end", "did JMH run to its end?")
    if series and not any(
        not is_summary(data) or data.stats or data.reported_percentiles for data in series.values()
    ):
        raise source.corrupt(None, "the scores are too small to be printed", "numbers", FINER)
    version = fact(text, r"^# JMH version: (\S+)", str)
    return {name: data.with_run(version=version) for name, data in series.items()}


def _method(name: str) -> str:
    return ".".join(name.partition(":")[0].split(".")[-2:])


def _of(name: str, threads: Mapping[str, int]) -> int | None:
    return threads.get(_method(name), threads.get(""))


def _table(lines: list[str], begin: int, heading: re.Match[str]) -> list[_Line]:
    """The lines below a heading: those behind a gap only if they are rows."""
    row = re.compile(rf"(\S+)((?:[ \t]+\S+){{{heading[1].count('(')}}})[ \t]+{_CELLS}")
    table: list[_Line] = []
    gap = False
    for number in range(begin, len(lines)):
        line = lines[number]
        if _RULE.match(line):
            gap = True
            continue
        match = row.match(line)
        if _END.match(line) or (match is None and gap and table) or _HEADING.match(line):
            break
        if match is not None or not gap:
            table.append((number + 1, line, match))
            gap = False
    while table and table[-1][2] is None and not re.search(r"\d", table[-1][1]):
        table.pop()  # words below the rows
    return table


def _rows(
    heading: re.Match[str] | None,
    table: list[_Line],
    threads: Mapping[str, int],
    source: Source,
    options: ReadOptions,
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows by the names of the CSV's columns."""
    columns, names = ["Cnt"], list[str]()
    if heading is not None:
        columns, names = heading[2].split(), re.findall(r"[^()\s]+", heading[1])
    rows = [(number, line, _cells(row, columns) if row else {}) for number, line, row in table]
    style = decimal_style(row[key] for *_, row in rows for key in _DECIMALS if row.get(key))
    for number, line, row in rows:
        row |= {key: decimal_number(row[key], style) for key in _DECIMALS if row.get(key)}
        if not (row.get("Score") or row.get("Rough")):
            seen = f"{printable(line.strip(), 50)!r}"
            options.refuse(source, number, seen, "a row of JMH's table")
            continue
        params = {f"Param: {name}": v for name, v in zip(names, row["given"], strict=True)}
        own = {"Threads": row["Thr"]} if "Thr" in row else {}
        yield number, {"Threads": _of(row["Benchmark"], threads)} | row | own | params


_DECIMALS = ("Score", "Score Error (99.9%)")


def _cells(row: re.Match[str], columns: list[str]) -> dict[str, Any]:
    """The cells of a row by the names of the CSV's columns, and its parameters; else nothing."""
    numbers, rough, error = row["numbers"].split(), row["rough"], row["error"]
    unsigned = not row["sign"] and len(numbers) > 1 and not numbers[-2].isdigit()
    if unsigned and (len(numbers) > len(columns) + 1 or not numbers[0].isdigit()):
        error = numbers.pop()  # as older versions print it
    if len(numbers) > len(columns) + 1:  # thousands with blanks, or another table
        return {}
    score = None if rough else numbers.pop() if numbers else None
    if rough == "0":
        rough, score = None, "0"
    known = dict(zip(reversed(columns), reversed(numbers), strict=False))
    if not all(map(str.isdigit, known.values())):
        return {}
    count = next((known[name] for name in ("Cnt", "Samples", "Count") if name in known), None)
    return known | {
        "Benchmark": row[1], "Mode": row["mode"], "Unit": row["unit"], "Rough": rough,
        "Samples": count, "given": row[2].split(), _DECIMALS[0]: score, _DECIMALS[1]: error,
    }  # fmt: skip


def _results(text: str, threads: Mapping[str, int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The results that stand above the table, by the names of the CSV's columns."""
    results = [*_RESULT.finditer(text)]
    line_at, before = line_numbers(text), 0
    style = decimal_style([cell for cell, _ in _SCORE.findall(text)])
    ends = [*(result.start() for result in results[1:]), len(text)]
    for result, end in zip(results, ends, strict=False):
        above, before = text[before : result.start()], result.end()
        score = _SCORE.search(text, result.end(), end)
        name = result[1] or fact(above, r"^# Benchmark: (\S+)", str)
        if score is None or name is None:
            continue
        given = fact(above, r"^# Parameters: \(([^\n]*)\)$", str) or ""
        pairs = re.findall(r"(?<![\w.])([\w.]++) = ([^,]+)", given)
        count = re.compile(r"^[ \t]*N = (\d+)", re.MULTILINE).search(text, result.end(), end)
        facts: dict[str, Any] = {f"Param: {key}": value for key, value in pairs}
        facts |= {"Threads": _of(name, threads), "Mode": "sample" if count else "avgt"}
        facts |= {"Unit": score[2], "Samples": count[1] if count else None}
        rows = [(name, score[1])]
        for percentile, value in _POINT.findall(text, result.end(), end) if count else ():
            level = float(percentile.replace(",", ".")) / 100
            rows.append((f"{name}:p{level:.8g}", value))
        for label, cell in rows:
            point = {"Benchmark": label, "Score": decimal_number(cell, style)}
            yield line_at(score.start()), facts | point


FORMATS = {
    "jmh-json": read_json,
    "jmh-csv": (has_match(r'\A"Benchmark"[,;\t]"Mode"[,;\t]"Threads"[,;\t]"Samples"'), read_csv),
    "jmh": (
        has_match(
            rf"^# JMH version: |{_HEADING.pattern}|{_ALONE}|{_RESULT.pattern}[ \t]*$", plain=bare
        ),
        read,
    ),
}
