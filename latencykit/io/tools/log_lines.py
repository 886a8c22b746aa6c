"""Logs of any shape: a pattern turns each line into a row of a table, and `raw` reads the table.

A preset is a table of ``log_lines.toml``: a pattern whose groups are columns (``latency_ms``,
``start``, ``end``, ``status``, further ones), and which outcomes are failures. A user states one
with ``--pattern``: a regular expression, or nginx's or Apache's own log format. Lines that do not
match (statements, other programs) are left out and counted.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from latencykit._records import record
from latencykit._text import format_items, printable
from latencykit.core.columns import Words, coded
from latencykit.core.run import SERVER_SIDE, UnitFrom
from latencykit.errors import InvalidArgumentError
from latencykit.io.raw.build_samples import build_data
from latencykit.io.raw.cells import latency_columns
from latencykit.io.raw.columns import TimestampColumn, plan_of
from latencykit.io.raw.log_parts import ESCAPES, hint_of, rows_of
from latencykit.io.raw.outcomes import OutcomeRule
from latencykit.io.rows import CUT_LINE, Table, line_chunks
from latencykit.io.source import Confidence, Data, Format, Head, ReadOptions, Source
from latencykit.io.text_reports import certain

_SAMPLE = 400  # lines
_SERVED = OutcomeRule("status", "served", empty=0)


@record()
class Log:
    """A log whose lines are requests."""

    pattern: str  # of a line, with a group per column
    failed: str = r"^5\d\d|^0\b|^-"  # what of a group `outcome` is an error; `status` has HTTP's
    mark: str = ""  # words of each line
    late: str = r"^(?:504|408)"  # what is a timeout
    canceled: str = r"^499"  # what was given up
    entry: str = ""  # what a line begins with that is a request, and corrupt if it does not match
    tool: str | None = None  # the program that writes it, which measures its own requests
    # `format` where the program's rules say the unit that the pattern names
    unit_from: UnitFrom = "file"
    notes: tuple[str, ...] = ()

    def sniff(self, head: Head) -> Confidence:
        """Recognise a log by its first lines."""
        text = ESCAPES.sub("", head.text) if self.mark in head.text else ""
        return certain(re.search(self.pattern, text, re.MULTILINE))

    def __call__(self, source: Source, options: ReadOptions) -> dict[str, Data]:
        """Read every line that matches."""
        pattern = _compiled(self.pattern)
        rows = rows_of(pattern, "\n".join(source.head.lines))[:_SAMPLE]
        if not rows:
            line = next((line for line in source.head.lines if line.strip()), "")
            seen = f"the pattern matches no line, such as {printable(line, 200)!r}"
            raise source.corrupt(1, seen, "the lines of requests", hint_of([line]))
        first = self._table(pattern, rows).columns
        kept = {name: cells for name, cells in first.items() if coded(cells)[1] != [""]}
        latency = next((name for name in kept if name.startswith("latency")), None)
        named = replace(options, column=options.column or latency)
        if "status" in kept:  # which has HTTP's, whatever they look like
            kept["status"] = Words.of(["ok"] * len(rows))
        both = {"status", "outcome"} <= kept.keys()
        plan = plan_of({k: v for k, v in kept.items() if k != "outcome" or not both}, named, source)
        outcomes = [_SERVED if row.column == "status" else row for row in plan.outcomes]
        plan = replace(plan, outcomes=(*outcomes, *[OutcomeRule("outcome", "words")] * both))
        if self.tool or plan.tag == "method":
            plan = replace(plan, tag=None)
        if self.tool:  # a client's address is not a connection
            plan = replace(plan, connection=None)
            side = next((name for name in ("start", "end") if name in kept), None)
            if side is not None and not plan.moments:  # a time, though this one cannot be read
                plan = replace(plan, moments={side: TimestampColumn(side, "moment", "ns")})
        notes: list[str] = []
        series = build_data(
            self._tables(source, options, pattern, notes), plan, options, source,
            partial(_lines_of, source, pattern), notes,
        )  # fmt: skip
        own = self.unit_from if plan.unit_from == "file" else plan.unit_from
        facts: dict[str, Any] = {"tool": self.tool, "unit_from": own}
        if self.tool is not None:
            facts |= {"measure": "service", "corrected": "none"}
            notes.append(SERVER_SIDE)
        return {
            name: data.with_run(**facts, notes=data.run.with_notes(*self.notes, *notes).notes)
            for name, data in series.items()
        }

    def _tables(
        self, source: Source, options: ReadOptions, pattern: re.Pattern[str], notes: list[str]
    ) -> Iterator[Table]:
        """The rows of each chunk; in the end, a note on the lines that are none."""
        others = done = 0
        for first, text in _texts(source):
            rows = rows_of(pattern, text)
            alike = len(rows) == text.count("\n") + (not text.endswith("\n"))
            lines = [] if alike else text.split("\n")
            unlike = max(sum(map(bool, map(str.strip, lines))) - len(rows), 0)
            for number, line in enumerate(lines, first) if unlike and self.entry else ():
                if not re.match(self.entry, line) or pattern.match(line):
                    continue
                unlike -= 1
                if number == first + len(lines) - 1:
                    notes.append(CUT_LINE)
                else:
                    seen = f"this line has no time: {printable(line)!r}"
                    options.refuse(source, number, seen, f"{self.tool}'s line format")
            others += unlike
            if rows:
                yield Table(self._table(pattern, rows).columns, done)
            done += len(rows)
        if others > 0:
            notes.append(f"{format_items(others, 'line')} about something else left out")

    def _table(self, pattern: re.Pattern[str], rows: Sequence[tuple[str, ...]]) -> Table:
        """Texts as columns, statuses as outcomes."""
        columns = {}
        for name, cells in zip(pattern.groupindex, zip(*rows, strict=True), strict=True):
            words = Words.named(*coded(cells))  # texts, of which nothing is to be made
            if name in ("start", "end"):  # Java's and Python's 10:15:02,114
                texts = re.sub(r"\s+", " ", "\0".join(words.names.tolist()).replace(",", "."))
                words = Words(words.codes, np.array(texts.split("\0"), object))
            if name == "outcome":
                kinds = {"timeout": self.late, "unfinished": self.canceled, "error": self.failed}
                outcomes = [
                    next((kind for kind, like in kinds.items() if re.search(like, text)), "ok")
                    for text in words.names.tolist()
                ]
                words = Words(words.codes, np.array(outcomes, object))
            columns[name] = words
        return Table(columns)


def _texts(source: Source) -> Iterator[tuple[int, str]]:
    """Number of the first line, and text of each chunk."""
    for first, chunk in line_chunks(source):
        yield first, ESCAPES.sub("", chunk.decode("utf-8", "replace").replace("\r\n", "\n"))


def _lines_of(
    source: Source, pattern: re.Pattern[str], rows: Sequence[int]
) -> list[tuple[int | None, str]]:
    """Numbers and texts of the lines of some rows."""
    lines: list[tuple[int | None, str]] = []
    for first, text in _texts(source):
        matches = pattern.finditer(text)
        lines += [(first + text.count("\n", 0, match.start()), match[0]) for match in matches]
    return [lines[row] for row in rows]


# ------------------------------------------------------------
# Patterns that a user states.

_COLUMNS = {  # of nginx, of Apache, of a W3C log → our column
    "request_time": "latency_s", "D": "latency_us", "T": "latency_s", "{s}T": "latency_s",
    "{ms}T": "latency_ms", "{us}T": "latency_us", "t": "start", "time_local": "end",
    "time_iso8601": "end", "msec": "end_s", "s": "status", ">s": "status", "<s": "status",
    "status": "status", "sc-status": "status", "h": "client", "remote_addr": "client",
    "r": "request", "b": "size", "O": "size", "body_bytes_sent": "size",
}  # fmt: skip
_VARIABLE = re.compile(
    r"\$\{?(?P<nginx>\w+)\}?|%[\d,!]*(?P<apache>[<>]?(?:\{[^}]*\})?\^?[A-Za-z]+)"
)
_HOW = "a regular expression with (?P<latency>…), or nginx's or Apache's log format with its time"


def log_format(pattern: str) -> Format:
    """Return the format of a user's pattern; an error if it is not valid or has no latency."""
    text = pattern
    if "(?P<" not in pattern:  # each variable is a column that ends where its text does
        given, parts, at, taken = pattern.replace('\\"', '"'), [], 0, set[str]()
        for match in _VARIABLE.finditer(given):
            name = _COLUMNS.get(match["nginx"] or match["apache"], match["nginx"] or "")
            behind = given[match.end() : match.end() + 1]
            cell = r"[^\"]*" if behind == '"' else r"[^\]]*" if behind == "]" else r"\S+?"
            cell = r"\[[^\]]*\]" if match["apache"] == "t" else cell
            cell = r".*?" if name.startswith("upstream") else cell  # "0.010, 0.020"
            group = f"(?P<{name}>{cell})" if name and name not in taken else f"(?:{cell})"
            parts += [re.escape(given[at : match.start()]), group]
            taken.add(name)
            at = match.end()
        text = "".join([*parts, re.escape(given[at:])]) + r"[ \t]*$"
    groups = list(_compiled(text).groupindex)
    if not latency_columns(groups)[0] and not {"start", "end"} <= set(groups):
        raise InvalidArgumentError(
            f"the pattern {printable(pattern, 80)!r} has no latency; expected {_HOW}"
        )
    log = Log(text)
    return Format("pattern", "lines of the pattern", "samples", (".log",), log.sniff, log)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise InvalidArgumentError(
            f"{printable(pattern, 80)!r} is not a pattern ({error}); expected {_HOW}"
        ) from None


# ------------------------------------------------------------
# Presets.

_END = r"(?P<end>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[-+]\d\d:?\d\d)?)"


def _preset(known: dict[str, Any]) -> Log:
    """The log of a table of ``log_lines.toml``."""
    pattern = re.sub(r"(?<!\?P)<end>", lambda _: _END, "".join(known.pop("pattern")))
    return Log(pattern, notes=tuple(known.pop("notes", ())), **known)


_FILE = Path(__file__).with_suffix(".toml").read_text("utf-8")
PRESETS = {name: _preset(known) for name, known in tomllib.loads(_FILE).items()}


def _w3c(head: Head) -> Log | None:
    """The log of a ``#Fields`` line; IIS writes ms, and CloudFront seconds."""
    match = re.search(r"^#Fields:[ \t]*(\S[^\n]*)$", head.text, re.MULTILINE)
    names = match[1].split() if match else []
    if "time-taken" not in names:
        return None
    cloud = any(name.startswith("x-edge") for name in names)
    own = _COLUMNS | {"time-taken": "latency_s" if cloud else "latency_ms"}
    columns = [own.get(name, re.sub(r"\W+", "_", name).strip("_")) for name in names]
    cells = [f"(?P<{name}>[^ \\t\\n]+)" for name in columns]
    text = r"[ \t]+".join(cells).replace(
        r"(?P<date>[^ \t\n]+)[ \t]+(?P<time>[^ \t\n]+)", r"(?P<end>\d{4}-\d\d-\d\d[ \t]+[\d:]+)"
    )
    return Log(
        f"^(?!#){text}",
        tool="CloudFront" if cloud else "IIS",
        notes=("timestamps are whole seconds",),
    )


def _read_w3c(source: Source, options: ReadOptions) -> dict[str, Data]:
    log = _w3c(source.head)
    return log(source, options) if log else {}


FORMATS = {name: (log.sniff, log) for name, log in PRESETS.items()} | {
    "w3c": (lambda head: certain(_w3c(head)), _read_w3c)
}
