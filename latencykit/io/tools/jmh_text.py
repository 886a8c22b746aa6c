"""What JMH prints: the table at its end, else the results of single benchmarks.

People publish the table in comments, in Markdown and in logs of builds, with other separators, and
without its heading.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from latencykit._text import printable
from latencykit.core import is_summary
from latencykit.io.raw.cells import Style, decimal_number, decimal_style
from latencykit.io.sniffing import has_match
from latencykit.io.source import Data, Format, ReadOptions, SeveralDocuments, Source
from latencykit.io.text_reports import fact, line_numbers, plain
from latencykit.io.tools.jmh import FINER, of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    _Line = tuple[int, str, re.Match[str] | None]
    """Its number and text, and its cells if it is a row."""

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


def _parameters(heading: re.Match[str]) -> list[str]:
    return re.findall(r"[^()\s]+", heading[1])


def _table(lines: list[str], begin: int, heading: re.Match[str]) -> list[_Line]:
    """The lines below a heading: those behind a gap only if they are rows."""
    row = re.compile(rf"(\S+)((?:[ \t]+\S+){{{len(_parameters(heading))}}})[ \t]+{_CELLS}")
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
        columns, names = heading[2].split(), _parameters(heading)
    scores: list[str] = []  # and their errors, as they are printed
    for given in filter(None, (row for _, _, row in table)):
        scores += given["numbers"].split()[len(_numbers(given, columns)) - 1 :]
        scores += filter(None, [given["error"]])
    style = decimal_style(scores)
    for number, line, row in table:
        facts = _facts(row, columns, style) if row else None
        if row is None or facts is None:
            seen = f"{printable(line.strip(), 50)!r}"
            options.refuse(source, number, seen, "a row of JMH's table")
            continue
        params = {f"Param: {name}": v for name, v in zip(names, row[2].split(), strict=True)}
        yield (
            number,
            {"Benchmark": row[1], "Mode": row["mode"], "Unit": row["unit"]}
            | params | {"Threads": _of(row[1], threads)} | facts,
        )  # fmt: skip


def _numbers(row: re.Match[str], columns: list[str]) -> list[str]:
    """The numbers up to the score; older versions print no sign before the error."""
    numbers = row["numbers"].split()
    if row["sign"] or len(numbers) < 2 or numbers[-2].isdigit():
        return numbers
    more = len(numbers) > len(columns) + 1 or not numbers[0].isdigit()
    return numbers[:-1] if more else numbers


def _facts(row: re.Match[str], columns: list[str], style: Style) -> dict[str, Any] | None:
    """Count, score and threads of a row; None without a score."""
    numbers, rough = _numbers(row, columns), row["rough"]
    if len(numbers) > len(columns) + 1:  # thousands with blanks, or another table
        return None
    score = None if rough else decimal_number(numbers.pop(), style) if numbers else None
    if rough == "0":
        rough, score = None, "0"
    known = dict(zip(reversed(columns), reversed(numbers), strict=False))
    if (score is None and rough is None) or not all(map(str.isdigit, known.values())):
        return None
    count = next((known[name] for name in ("Cnt", "Samples", "Count") if name in known), None)
    unsigned = row["numbers"].split()[len(_numbers(row, columns)) :]
    error = row["error"] or "".join(unsigned)
    facts = {"Score": score, "Rough": rough, "Samples": count}
    facts["Score Error (99.9%)"] = decimal_number(error, style) if error else None
    return facts | ({"Threads": known["Thr"]} if "Thr" in known else {})


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
        facts = {
            f"Param: {key}": value
            for key, value in re.findall(r"(?<![\w.])([\w.]++) = ([^,]+)", given)
        }
        count = re.compile(r"^[ \t]*N = (\d+)", re.MULTILINE).search(text, result.end(), end)
        facts |= {
            "Threads": _of(name, threads),
            "Mode": "sample" if count else "avgt",
            "Unit": score[2],
        }
        line = line_at(score.start())
        samples = count[1] if count else None
        yield (
            line,
            facts
            | {"Benchmark": name, "Samples": samples, "Score": decimal_number(score[1], style)},
        )
        for percentile, value in _POINT.findall(text, result.end(), end) if count else ():
            level = float(percentile.replace(",", ".")) / 100
            point = {"Benchmark": f"{name}:p{level:.8g}", "Score": decimal_number(value, style)}
            yield line, facts | point | {"Samples": samples}


FORMATS = (
    Format(
        "jmh", "JMH (text)", "histogram", (".txt",),
        has_match(
            rf"^# JMH version: |{_HEADING.pattern}|{_ALONE}|{_RESULT.pattern}[ \t]*$", plain=bare
        ),
        read, example="java -jar benchmarks.jar -bm sample > out.txt",
    ),
)  # fmt: skip
