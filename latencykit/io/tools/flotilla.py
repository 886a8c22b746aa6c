"""Tables of percentiles: Flotilla's (quartiles of each consumer, ms), and others, drawn or as CSV.

A cell may carry its unit (``1.2ms``), the heading may (``p99 (ms)``); Flotilla's bare numbers are
milliseconds, and so are those of JMeter's aggregate report (``99% Line``).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from latencykit._text import format_items, printable
from latencykit.core.run import Run, UnitFrom
from latencykit.errors import InvalidArgumentError
from latencykit.io import build
from latencykit.io.raw.cells import styles_of, with_point
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import certain, plain
from latencykit.units import NANOSECONDS, parse_duration

_RULE = re.compile(r"^[\s|+\-=:\u2500-\u257f]*$")
_BARS = re.compile(r"[|│┃║]")
_UNIT = re.compile(
    r"[(\[]\s*(?:in )?(ns|us|µs|μs|ms|msec|s|sec|seconds|micros|millis)\s*[)\]]"
    r"|[_ ](ns|us|µs|μs|ms|s|microseconds|milliseconds)$",
    re.IGNORECASE,
)
_WORDS = build.STATISTIC_WORDS | {
    "q1": 25.0, "q2": 50.0, "q3": 75.0, "std. dev.": "std",
    # JMeter's report in Spanish, Chinese,
    "muestras": "count", "media": "mean", "mediana": 50.0, "mín": "min", "máx": "max",
    "样本": "count", "平均值": "mean", "中位数": 50.0, "最小值": "min", "最大值": "max",
    # French, German, Portuguese, Polish, Korean; the German median, Mittel, may be a mean
    "echantillons": "count", "moyenne": "mean", "médiane": 50.0, "ecart type": "std",
    "anz. der proben": "count", "durchschnitt": "mean", "mittelwert": "mean",
    "amostras": "count", "média": "mean", "máx.": "max", "mín.": "min", "desvio padrão": "std",
    "liczba próbek": "count", "średnia": "mean", "maksimum": "max", "desv. estándar": "std",
    "표본 수": "count", "평균": "mean", "중간값": 50.0, "최소값": "min", "최대값": "max",
}  # fmt: skip
_FAILED = re.compile(
    r"errors?(?: ?%| rate)?|% (?:error|erreur|fehler|de erro|błędów)|(?:异常|오류) %"
    r"|fail(?:ed|s|ures?)?(?: ?%)?|(?:failed|error) (?:requests|count)|ko"
)
_GOOD = re.compile(r"succ(?:ess(?:es|ful)?|eeded)?|passed|ok")
_COUNTS = ("count", "failed", "good")
_ABOVE = 5  # lines of which one is a CSV's heading
_WORDS_JOINED = re.compile(  # P50LatencyMs, mean_latency
    r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[A-Za-z])_(?=[A-Za-z])"
)
_LINE = re.compile(r"(?<=%)(?:[ _]line| 百分位| centile| linii| 선)$", re.IGNORECASE)
_TOOLS = (  # of a heading: the tool, and the unit of its numbers
    (rf"{_LINE.pattern}|^# samples$|^(?=aggregate_report_)", "JMeter", "ms"),
    (r"^inferences/second$", "perf_analyzer", "us"),
)
_MOST_TIMES = 200  # rows by time of a CSV, each of which is a series
# a table without bars whose rows are statistics, and its units, below which they end: nodetool's
_BLOCK = re.compile(
    r"^([A-Z]\S*(?: \S+)*(?: {2,}\S+(?: \S+)*){2,}) *\n( +\([^\n]*\n)?"
    r"((?:(?:p?\d+(?:\.\d+)?%?|Min|Max|Mean)(?: +[\d.]+){2,} *(?:\n|\Z)){3,})",
    re.MULTILINE,
)
_AGAIN = re.compile(r" \((?:median|max|p\d{1,4})\)", re.IGNORECASE)  # P50 (median)
_TIME = re.compile(r"time(?!out)|date|ts$|start|end$|second|interval|epoch", re.IGNORECASE)
_NUMBER = re.compile(r"-?[\d.,]++ ?(?:[%x×]|[A-Za-z]++/s(?:ec)?|[nuµμm]?s|[QR]PS|TPS)?")
_VALUE = re.compile(r"[\d.,]+ ?(?:[nuµμm]?s)?|[-–]?|N/A|NaN")
_SPREAD = re.compile(r"(?<=\d) ?± ?[\d.,]++%?|(?<=s) ?± ?[\d.,]++ ?[nuµμm]?s$")
_APART = (r"\t+| {2,}", r"\s+")  # what separates columns without bars
_WITH_UNIT = r"[\d.,]+ ?[nuµμm]?s"
_TIMED = re.compile(rf"{_WITH_UNIT}|[-–]")  # of such columns without a unit in a heading
_NOTHING = ("", "-", "–", "N/A", "NaN", "&nbsp;")
_FLOTILLA = {"consumer", "node", "q1", "q2", "q3"}
_SKEW = "a latency is the difference of two machines' clocks, in whole milliseconds"
_BETWEEN = "a table of percentiles: between them nothing is known"
_HINT = "Flotilla prints quartiles only; tylertreat/bench writes a full distribution"


class _Column(NamedTuple):
    """What the heading of a column says: whose statistic, which one, and its unit."""

    whose: str
    kind: float | str | None
    unit: str | None


class _Table(NamedTuple):
    """A table: its headings, what each column is, and the lines of its rows."""

    line: int
    heading: list[str]
    columns: list[_Column]
    rows: list[tuple[int, list[str]]]

    def of(self, whose: str) -> list[_Column]:
        """The columns of one system or latency type; those of the others say nothing."""
        shared = _Column("", None, None)
        return [
            column if column.whose == whose or column.kind in _COUNTS else shared
            for column in self.columns
        ]


def sniff_table(head: Head) -> Confidence:
    """Recognise a table with two percentiles or more."""
    found = any(table.rows and not _is_flotilla(table) for table in _seen(head.text))
    return Confidence.LIKELY if found else Confidence.NO


@lru_cache(1)  # both formats ask for the tables of one head
def _seen(text: str) -> list[_Table]:
    return [*_tables(text)]


def _is_flotilla(table: _Table) -> bool:
    return {cell.lower() for cell in table.heading} >= _FLOTILLA


def _tool(heading: list[str]) -> tuple[str | None, str | None]:
    """The tool whose headings these are, and its unit."""
    found = (row for row in _TOOLS if any(re.search(row[0], one, re.IGNORECASE) for one in heading))
    return next(found, ("", None, None))[1:]


def _drawn(block: re.Match[str]) -> str:
    """A table of statistics per row with bars; a column of zeros has counted nothing."""
    units = [*re.finditer(r"\(\w+\)", block[2] or "")]
    heads = [(head.end(), head[0]) for head in re.finditer(r"\S+(?: \S+)*", block[1])]
    rows = [line.split() for line in block[3].splitlines()]
    if len(units) == len(rows[0]) - 1:  # long headings have one blank between them
        ends = [0, block[1].index(" "), *(unit.end() for unit in units)]
        heads = [(end, block[1][begin:end].strip()) for begin, end in pairwise(ends)]
    if any(len(row) != len(heads) for row in rows):
        return block[0]
    columns = [["-"] * len(rows) if not any(map(float, cells)) else cells
               for cells in [*zip(*rows, strict=True)][1:]]  # fmt: skip
    rows = [[row[0], *cells] for row, *cells in zip(rows, *columns, strict=True)]
    names = [" ".join([name, *(u[0] for u in units if u.end() == end)]) for end, name in heads]
    above = [names, *[["---"]] * bool(block[2])]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [*above, *rows])


def _percentiles(columns: list[_Column]) -> list[int]:
    """Return which columns are percentiles; where none is, which are other statistics."""
    points = [k for k, column in enumerate(columns) if isinstance(column.kind, float)]
    others = [k for k, column in enumerate(columns) if column.kind in ("mean", "min", "max")]
    return points or others


def _tables(text: str) -> Iterator[_Table]:
    """Every table whose heading names percentiles, and those whose first column does, turned.

    One percentile, or mean and maximum, are enough where they are times by their heading or cells.
    """
    table: _Table | None = None
    others: list[tuple[int, list[str]]] = []  # rows of as many cells, below no such heading
    text = _BLOCK.sub(_drawn, plain(text))
    for (number, cells), (_, below) in pairwise((*_rows(text), (0, []), (0, []))):
        if table is not None and len(cells) == len(table.heading):
            table.rows.append((number, cells))
            continue
        if table is not None:
            yield table
            table = None
        if others and len(others[-1][1]) != len(cells):
            yield from _turned(others)
            others = []
        columns = [_column(cell) for cell in cells]
        known = _tool(cells)[1]
        first_row = below if len(below) == len(cells) else [""] * len(cells)
        timed = {
            column.kind for column, cell in zip(columns, first_row, strict=True)
            if column.unit or known or re.fullmatch(_WITH_UNIT, cell)
        }  # fmt: skip
        points = [column.kind for column in columns if isinstance(column.kind, float)]
        values = len(points) > 1 or timed & {*points} or {"mean", "max"} <= timed
        if len(cells) > 2 and values and not re.fullmatch(r"\d+", cells[0]):
            table, others = _Table(number, cells, columns, []), []
        elif cells:
            others.append((number, cells))


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The number and the cells of each line but rules; no cells where it is none of a table."""
    width, apart = 0, r"\s+"  # of a table whose columns only blanks separate
    timed: list[int] = []  # its percentiles
    first: int | None = None  # of the cells behind the name, from the end
    value, above = _TIMED.fullmatch, ""  # of a cell: a unit may be in a heading or the line above
    above_rows = text.lstrip("\ufeff\n").split("\n", _ABOVE)[:_ABOVE]
    drawn = any(map(_BARS.search, above_rows))
    split = (line for line in above_rows if max(map(line.count, ",;\t")) > 1 and not drawn)
    title = next(split, above_rows[0])
    mark = max(",;\t", key=title.count)
    names = title.replace('"', "").split(mark)
    # Rows by time cannot be added up to one distribution: of many, none would stand for the run.
    is_csv = len(names) > 2 and not any(re.fullmatch(r"-?[\d.]+", name) for name in names)
    is_csv &= not any(map(_TIME.match, names)) or text.count("\n") <= _MOST_TIMES
    for number, line in enumerate(text.split("\n"), 1):
        bare, cells = line.strip(), list[str]()
        if bare and _RULE.match(line):
            continue
        if len(bare) <= 2000 and is_csv:
            cells = [cell.strip() for cell in next(csv.reader([bare], delimiter=mark), [])]
        elif len(bare) <= 2000 and _BARS.search(bare):
            inner = re.sub(r"^[|│┃║]|[|│┃║]$", "", bare)
            bare_cells = (
                re.sub(r"^[^\w\s.,<>~(\[-]+ ", "", c.strip(" *`'\t")) for c in _BARS.split(inner)
            )
            cells = [_SPREAD.sub("", cell) for cell in bare_cells]
        else:
            heading = next(filter(None, (_heading(line[:2000], by) for by in _APART)), None)
            words = re.split(apart, bare[:2000])
            if heading is not None:
                cells, apart = heading
                width = len(cells)
                kinds = [_column(cell).kind for cell in cells]
                timed = [k for k, kind in enumerate(kinds) if isinstance(kind, float)]
                first = None if None in kinds[1:] else 1 - width  # a name has blanks in it
                stated = any(map(_UNIT.search, (*cells, above)))
                value = _VALUE.fullmatch if stated else _TIMED.fullmatch
            elif timed and len(words) >= width:
                row = [" ".join(words[:first]), *words[first:]] if first else words
                if len(row) == width and all(value(row[k]) for k in timed):
                    cells = row
            above = line
        yield number, cells


def _heading(line: str, apart: str) -> tuple[list[str], str] | None:
    """The cells of a heading whose first names the rows, and all others statistics."""
    words = re.split(apart, line.strip())
    if line.startswith("  ") and _column(words[0]).kind is not None:
        words = ["", *words]  # names of rows have no heading, as of pandas
    kinds = [_column(word).kind for word in words] if 2 < len(words) < 100 else [0.0]
    points = [kind for kind in kinds if isinstance(kind, float)]  # none are gains such as -5 %
    wide = apart == _APART[0] and len(points) > 1 and points == sorted(set(points))
    wide = wide and not any(re.fullmatch(r"[\d.,]+\)?", word) for word in words)
    return (words, apart) if kinds[0] is None and (wide or None not in kinds[1:]) else None


def _turned(rows: list[tuple[int, list[str]]]) -> Iterator[_Table]:
    """A table of one statistic per row and one system per column, as one of a row per system."""
    (_, systems), *below = rows
    named = [(number, cells, _column(cells[0])) for number, cells in below]
    found = [row for row in named if row[2].kind is not None]
    columns = [column for *_, column in found]
    values = all(_VALUE.fullmatch(cell) for _, cells, _ in found for cell in cells[1:])
    points = [column for column in columns if isinstance(column.kind, float)]
    fits = len(systems) > 2 and values and len(points) > 1
    if fits and not any(column.whose for column in columns):
        heading = [systems[0], *(cells[0] for _, cells, _ in found)]
        turned = [
            (found[0][0], [name, *(cells[k] for _, cells, _ in found)])
            for k, name in enumerate(systems)
            if k
        ]
        yield _Table(rows[0][0], heading, [_Column("", None, None), *columns], turned)


@lru_cache(1 << 12)  # recognising and reading ask for the same cells
def _column(cell: str) -> _Column:
    """What a heading says: ``p99 (ms)``, ``Max latency``, or whose as well: ``TTFT p99 (ms)``."""
    cell = _AGAIN.sub("", _WORDS_JOINED.sub(" ", cell))
    stated = _UNIT.search(cell)
    unit = build.unit_in(stated[1] or stated[2]) if stated else None
    bare = " ".join(_LINE.sub("", _UNIT.sub("", cell).strip("# ")).split())
    parts = [bare.rsplit(None, 1)] if " " in bare else []
    parts += [bare.split(None, 1)[::-1]] if parts and unit else []  # ``p99 Request Latency (ms)``
    for whose, name in (("", bare), *parts):
        if (kind := _kind(name)) is not None and not (whose and isinstance(kind, str)):
            return _Column(whose, kind, unit)
        if whose and kind in ("mean", "min", "max", "std"):
            return _Column(whose, kind, unit)
    return _Column("", None, unit)


def _kind(name: str) -> float | str | None:
    """The percentile or the statistic of a name, or neither."""
    bare = name.lower().removeprefix("latency ").removesuffix(" latency").strip()
    bare = bare.removeprefix("total ").removeprefix("aggregate report").lstrip(" _")
    p = build.percentile_named(bare)
    if p is not None:
        return p if 0 < p < 100 else {0.0: "min", 100.0: "max"}.get(p)
    if _FAILED.fullmatch(bare):
        return "failed"
    return "good" if _GOOD.fullmatch(bare) else _WORDS.get(bare)


def read_flotilla(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one series per consumer."""
    unit, unit_from = options.resolve_unit("ms")
    run = Run(
        tool="Flotilla", measure="service", corrected="none", unit=unit, unit_from=unit_from,
        notes=(_SKEW, _HINT),
    )  # fmt: skip
    series: dict[str, Data] = {}
    failed = 0
    for table in filter(_is_flotilla, _tables(source.text())):
        names = [heading.lower() for heading in table.heading]
        for number, cells in table.rows:
            row = dict(zip(names, cells, strict=True))
            if row.get("error", "").lower() == "true":
                failed += 1
                continue
            name = build.unique_name(f"consumer {row['consumer']} ({row['node']})", series)
            series[name] = _data(table.columns, number, cells, run, source)
    if not failed:
        return series
    note = f"{format_items(failed, 'further consumer')} failed and received nothing"
    return {name: data.with_run(notes=(*data.run.notes, note)) for name, data in series.items()}


def read_table(source: Source, options: ReadOptions) -> Series:
    """Read one series per row, and per system where the headings name several."""
    lines, titled = plain(source.text()).split("\n"), None
    names: set[str] = set()
    for table in _tables(source.text()):
        if not table.rows:
            continue
        over = (line for line in reversed(lines[: table.line - 1]) if not _RULE.match(line))
        above = next(over, "").strip(" :#*")
        titled = _UNIT.search(above) or titled
        tool, usual = _tool(table.heading)
        cells_of = zip(*(cells for _, cells in table.rows), strict=True)
        styles, _ = styles_of({str(k): cells for k, cells in enumerate(cells_of)})
        columns = [table.columns[k] for k in _percentiles(table.columns)]
        # Rows are named by columns of words before the percentiles, else by those of numbers that
        # distinguish them, else by what is behind.
        others = [k for k, column in enumerate(table.columns) if column.kind is None]
        shown = {k: [row[k] for _, row in table.rows if row[k] not in _NOTHING] for k in others}
        words = [k for k in others if not all(map(_NUMBER.fullmatch, shown[k]))]
        first = min(_percentiles(table.columns))
        unlike = [k for k in others if k < first and len(set(shown[k])) > 1]
        alone = [k for k in unlike if len(set(shown[k])) == len(table.rows)][:1]
        before = [k for k in words if k < first]
        labels = (before and words) or alone or unlike or words or others[:1]
        titles = [" ".join(cells[k] for k in labels) for _, cells in table.rows]
        per_row = [_UNIT.search(title) for title in titles]  # `Request latency (ms)`
        for (number, cells), title, said in zip(table.rows, titles, per_row, strict=True):
            if any(per_row) and not said:
                continue  # of tokens or the like
            cells = [with_point(cell, "comma") if styles.get(str(k)) == "comma" else cell
                     for k, cell in enumerate(cells)]  # fmt: skip
            if said:
                title = _UNIT.sub("", title).strip()
            for whose in dict.fromkeys(column.whose for column in columns):
                own = table.of(whose)
                if all(cells[k] in _NOTHING for k in _percentiles(own)):
                    continue  # diskspd's reads, where all were writes
                in_words = said or titled
                stated = in_words and build.unit_in(in_words[1] or in_words[2])
                unit = _unit(own, cells, usual or stated, options)
                if unit is None:
                    seen = "the table does not say the unit of its numbers"
                    raise source.corrupt(table.line, seen, "p50 (ms)", "--unit (unit=) says it")
                notes = (_BETWEEN,) * any(isinstance(column.kind, float) for column in own)
                origin: UnitFrom = "format" if tool and unit[1] == "file" else unit[1]
                run = Run(tool=tool, unit=unit[0], unit_from=origin, notes=notes)
                name = " ".join(filter(None, [title or f"line {number}", whose]))
                if name in names and above and not _BARS.search(above):
                    name = f"{name}, {above}"
                names.add(name)
                yield name, _data(own, number, cells, run, source)


def _unit(
    columns: list[_Column], cells: list[str], said: str | None, options: ReadOptions
) -> tuple[str, UnitFrom] | None:
    """The unit of a row's numbers: in its cells, its name, the headings, or the options."""
    places = _percentiles(columns)
    shown = (cells[k] for k in places if cells[k] not in _NOTHING)
    if all(re.search(r"[A-Za-zµμ]$", cell) for cell in shown):
        return "ns", "file"
    timed = (column for column in columns if column.kind not in (None, *_COUNTS))
    stated = {unit for column in timed if (unit := column.unit)}
    if default := said or min(stated, default=None):
        return options.resolve_unit(default, "file")
    return (options.unit, "option") if options.unit else None


def _data(columns: list[_Column], number: int, cells: list[str], run: Run, source: Source) -> Data:
    """One row: percentiles, statistics and counts as far as they are there."""
    points: dict[float, float] = {}
    stats: dict[str, float] = {}
    counts: dict[str, int] = {}
    share = 0.0  # of the requests, which failed
    for column, cell in zip(columns, cells, strict=True):
        kind, unit = column.kind, run.unit if run.unit_from == "option" else column.unit or run.unit
        if kind is None or cell in _NOTHING:
            continue
        text = cell.replace(",", "")
        try:
            whole = re.fullmatch(r"(\d+)(?: ?\([\d.]+%\)| ?/ ?\d+)?", text)
            if kind == "count" or (kind in _COUNTS and whole):
                counts[kind] = int(whole[1]) if whole else int(float(text))
            if kind == "failed" and text.endswith("%"):
                share = float(cell[:-1].replace(",", ".")) / 100  # no share has thousands
            if kind in _COUNTS:
                continue
            timed = unit in NANOSECONDS
            value = round(parse_duration(text, unit), 3) if timed else float(text)
        except (InvalidArgumentError, ValueError, OverflowError):
            seen = f"{printable(cell, 30)!r} in the table"
            raise source.corrupt(number, seen, "a number") from None
        if isinstance(kind, float):
            points[kind] = value
        else:
            stats[kind] = value
    failed = counts.get("failed", round(share * counts.get("count", 0)))
    good = counts["good"] + failed if "good" in counts else None
    return build.of_all_requests(points, counts.get("count", good), failed, stats, run)


FORMATS = {
    "flotilla": (lambda head: certain(any(map(_is_flotilla, _seen(head.text)))), read_flotilla),
    "percentile-table": (sniff_table, read_table),
}
