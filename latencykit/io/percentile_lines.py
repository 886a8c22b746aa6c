"""Percentiles as programs print them without a format of their own: ``p99: 1234 us``, ``99% 4029``.

A text consists of these lines, and others::

    row        label {statistic} {aside}, or names on one line and their values on the next
    statistic  name [unit] [":" "=" "|" "in" "is" "<=" "..."] value [unit], or value unit name
    name       p99 p(99) p99_9 p999 99% 99.9'th, mean avg median min max fastest worst …
    count      [failed …] requests|samples|errors|… [":" …] number, or number requests
    heading    any other line, if it has no count

The statistics of one label are a series; one that comes again begins another series. JSON with such
keys is read as such a text per object. It is the last resort for what no other reader knows, and
takes no prose: a row has statistics, a short label and notes, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from latencykit.core.run import Run
from latencykit.io import build
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import plain
from latencykit.units import NANOSECONDS

_Key = str | float  # of a statistic: its name, or a percentile
# a value as printed: name, value, unit, how it is spelled (a word or ``p``), and what follows it
_Statistic = tuple[_Key, float, str, str, str]

_UNIT = "nanoseconds|microseconds|milliseconds|seconds|msecs|usec|msec|secs|sec|ns|us|µs|μs|ms|s"
_VALUE = (
    r"(?:(?P<minutes>\d{1,9})m)?(?P<value>(?:\d{1,3}(?:,\d{3})++|\d++)(?:\.\d++)?(?:e[+-]?\d+)?)"
    rf"\s?\[?(?P<unit>{_UNIT})?\]?"
)
_NAME = (
    r"(?:(?<![a-z0-9])(?<!\d - )p\s?\(?(?P<p>\d{1,5}(?:[._]\d+)?)\)?(?![a-z0-9])"
    r"|(?<![\w.,/-])(?P<share>\d{1,3}(?:\.\d+)?)\s?(?:%|pct\b|'?(?:st|nd|rd|th)\b)"
    r"|(?<![a-z0-9])(?P<word>(?:avg/)?mean|average|avg|median|med|minimum|min|maximum|max|fastest|slowest"
    r"|best|worst|std(?:[ _.-]?dev(?:iation)?)?|stdev|standard deviation)(?![a-z0-9]))"
)
_STATISTIC = re.compile(
    _NAME
    + r"(?P<further>(?:[ _-]?(?:percentile|latency|response|time|duration|per|request|%?ile)s?"
    r"(?![a-z0-9]))*)(?: \((?:median|max|avg|mean|p\d{1,4})\))?"  # ``P50 (median)``
    rf"(?:[ _]*[(\[]?(?P<hint>{_UNIT})(?![a-z0-9])[)\]]?)?"
    r"[\"'`]?\s*+(?:(?:[:=|│]|<=|≤|i[ns]\b)\s*+)?(?:\.{2,}+\s*+(?:[:=]\s*+)?)?[\"'~≈]?"
    rf"{_VALUE}(?![\w%/]|\.[\w.]|[-:]\d)",
    re.IGNORECASE,
)
# The value before its name: ``1.2 ms avg latency, 9 ms 99th``.
_BEFORE = re.compile(
    rf"(?<![\w.,]){_VALUE}(?P<hint>)(?P<further>)\s++{_NAME}(?: latency| percentile)?"
    r"(?=\s*+(?:[,;.]|$))",
    re.IGNORECASE,
)
_NAME_ONLY = re.compile(_NAME, re.IGNORECASE)
_SPREAD = re.compile(r"st(?:an)?d", re.IGNORECASE)
_ENDS = {"best": "min", "worst": "max"}
# ``Max time (s): 20`` is how long a run was to last, ``Max requests: 5000`` is its number.
_LIMIT = re.compile(
    r"m(?:ax|in)\w*[ _-](?:time(?![ _-]per)|requests(?![ _-](?:time|duration|latency)))",
    re.IGNORECASE,
)
# The unit in a label or heading, and in a key of JSON: ``[ms]``, ``in ms``, ``latencyMs``,
# ``Microseconds per write``.
_LABEL_UNIT = re.compile(
    rf"[(\[](?P<hint>{_UNIT})[)\]]"
    rf"|(?:in |_(?=\w{{2}})|^(?=\w{{2,}} per ))(?P<words>{_UNIT})(?![a-z0-9])"
    r"|\w\s(?P<last>nsec|usec|msec|[nuµm]s)\W*$",
    re.IGNORECASE,
)
_KEY_UNIT = re.compile(
    rf"(?:^|[\s_.(\[-])(?P<hint>(?i:{_UNIT}))[)\]]?$|(?<=[a-z])(?P<words>[NUM]s|Seconds)$"
)
# What may stand beside statistics: notes in parentheses, and pairs such as ``stddev=1.2ms``.
_ASIDE = re.compile(
    r"\([^()]*\)|\[[^][]*\]|(?<![\w-])[a-z_][\w.-]*+(?:\s*+[:=]\s*+|\s++)[\d.,]+"
    rf"(?:\w+|\s(?:{_UNIT})(?![a-z0-9]))?",
    re.IGNORECASE,
)
_PAIR = re.compile(r"(?<![\w-])[a-z_][\w-]*=[\d.,]+\w*|^count: [\d,]+", re.IGNORECASE)
_OTHERS = "(?:thread|worker|connection|client|user|core|cpu|pod|retry)s?"  # that are counted
_COUNT = re.compile(
    r"(?<![a-z0-9/])(?:(?P<kind>fail(?:ed|ure)|error|success(?:ful)?|succeeded|max(?:imum)?|target"
    rf"|{_OTHERS})[ _-])?"
    r"(?P<what>requests?|reqs?|samples?|count|queries|operations|ops|pings|packets received"
    r"|errors?|failures?|failed|success(?:es)?|replies|[45]xx|n(?= ?=))(?: considered)?"
    r"[\"']?(?:\s*+[:=|]\s*+|\s*+\.{2,}+\s*+(?::\s*+)?|\s++)[\"']?(?:total )?"
    r"(?P<number>\d{1,3}(?:,\d{3})+|\d+)(?:\.0+)?(?![\w.%/]| ?[a-z]{1,9}/| ?(?:[kMG]?B|bytes)\b)"
    r"|(?<![\w.,])(?P<before>\d{1,3}(?:,\d{3})+|\d+) (?:total )?(?:requests|reqs|samples|records)\b"
    r"(?! \d)",
    re.IGNORECASE,
)
_BAD = re.compile(r"fail|error|[45]xx", re.IGNORECASE)
_GOOD = re.compile(r"succe|replies", re.IGNORECASE)
# A count in parentheses is a note on a heading: ``Wakeup Latencies (82 total samples)``.
_NOTED = re.compile(r"\(\d[\d,]* (?:total )?(?:requests|reqs|samples|records)\)", re.IGNORECASE)
_LOG_LEVEL = re.compile(r"TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR")
_NOT_A_TIME = re.compile(
    r"rate|rps|qps|throughput|bytes|size|cpu|memory|per second|/s(?:ec)?\b", re.IGNORECASE
)
_LATENCY = re.compile(r"latenc|response", re.IGNORECASE)
_TIME = re.compile(rf"{_LATENCY.pattern}|time|duration", re.IGNORECASE)
# Between the words of a key.
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])_|_(?=[A-Za-z])")
_MOST_WORDS = 5  # of a label
_PANDAS = re.compile(r"\A([\s\S]+)^Name: (.{1,100}), dtype: \w+\s*\Z", re.MULTILINE)
_LONGEST = 2000  # characters of a line that are looked at


class _Fact(NamedTuple):
    """A number of requests: of all (``count``), ``good`` or failed ones, or of a status."""

    line: int
    what: str
    number: int


@dataclass
class _Group:
    """The statistics of one series: name → value and unit; and the requests that it is of."""

    label: str
    heading: str
    further: str = ""
    periodic: bool = False  # whether it is of one interval of several
    stats: dict[_Key, tuple[float, str]] = field(default_factory=dict)
    median: str = ""
    count: _Fact | None = None
    failed: int | None = None

    @property
    def accepted(self) -> bool:
        """True if these are a distribution's: percentiles that rise, or a mean and its range."""
        units = [unit for _, unit in self.stats.values()]
        usual = next(filter(None, units), "ns")  # of bare numbers beside others
        points = {p: pair for p, pair in self.stats.items() if isinstance(p, float)}
        values = [value * NANOSECONDS[unit or usual] for _, (value, unit) in sorted(points.items())]
        unnamed = not all(units) and _NOT_A_TIME.search(f"{self.heading} {self.label}")
        unnamed = unnamed or re.fullmatch(r"\S+/s(?:ec)?", self.label, re.IGNORECASE)
        if values != sorted(values) or unnamed or not (any(units) or any(values)):
            return False  # zeros without a unit are those of a program's source
        if len(values) > 1 and max(points) >= 50:  # the 2nd and the 30th of a month are lower
            return True
        return "mean" in self.stats and len(self.stats) > 2 and all(units)

    def take(self, facts: Sequence[_Fact]) -> list[_Fact]:
        """Take what is not known yet of facts, the nearest first, and return the others."""
        counts = [fact for fact in facts if fact.what in ("good", "count")]
        others = [fact for fact in facts if fact not in counts]
        if counts and self.count is None:  # of a line, its good requests rather than all
            line = [fact for fact in counts if fact.line == counts[0].line]
            self.count = next((fact for fact in line if fact.what == "good"), line[0])
            counts = []
        if others and self.failed is None:
            statuses = {fact.what: fact.number for fact in reversed(others)}
            self.failed = statuses.pop("failed", None) or sum(statuses.values())
            others = []
        return counts + others


def _statistics(line: str, context: str) -> tuple[str, list[_Statistic]] | None:
    """Return the label and the statistics of a row; None for another line."""
    matches = [match for match in _STATISTIC.finditer(line) if not _LIMIT.match(match[0])]
    matches = matches or [match for match in _BEFORE.finditer(line) if match["unit"]]
    if not matches:
        return None
    bounds = zip([m.end() for m in matches], [*(m.start() for m in matches[1:]), None], strict=True)
    rest = " ".join(line[begin:end][:200] for begin, end in bounds)
    label = line[: matches[0].start()]
    words = [
        word
        for word in re.findall(r"[\w./-]++", _PAIR.sub("", label))
        if re.search(r"[^\W_]", word) and not re.search(r"\d", word)
    ]
    if re.search(r"\w", _ASIDE.sub("", rest)) or len(words) > _MOST_WORDS:
        return None
    unit = _LABEL_UNIT.search(label) or _LABEL_UNIT.search(re.split(r"\s\d", context)[0])
    default = (unit["hint"] or unit["words"] or unit["last"]) if unit else ""
    stats: list[_Statistic] = []
    for match in matches:
        word = (match["word"] or "").lower().removeprefix("avg/")
        name = "std" if word[:2] == "st" else _ENDS.get(word) or build.STATISTIC_WORDS.get(word)
        if name is None:
            name = (
                float(match["share"])
                if match["share"]
                else build.percentile_named(f"p{match['p']}")
            )
        value = float(match["value"].replace(",", "")) + 60 * int(match["minutes"] or 0)
        own = build.unit_in(match["unit"] or match["hint"] or default) or ""
        further = match["further"].strip(" _-").lower()
        stats.append((name or 0.0, value, own, word or "p", further))
    bare = (word.strip("._-/:") for word in words)
    label = " ".join(word for word in bare if not _LOG_LEVEL.fullmatch(word))
    return "" if label.lower() == "percentiles" else label, stats


def _row_below(names: str, values: str) -> str | None:
    """Return a row of names above a row of values (``P50 P99`` / ``1ms 2ms``) as pairs."""
    for name, r_name in (("25%", "1st Qu."), ("75%", "3rd Qu."), ("Min", "Min."), ("Max", "Max.")):
        names = names.replace(r_name, name)
    values = re.sub(r" (?=\([nuµm]?s\))", "", values)  # Latency (ms)
    heads, cells = ([c for c in re.split(r"[\s|│]+", line) if c] for line in (names, values))
    named = sum(bool(_NAME_ONLY.fullmatch(head) or _SPREAD.match(head)) for head in heads)
    if named < 2 or named < len(heads) - 1 or len(heads) != len(cells):
        return None
    both = [*zip(heads, cells, strict=True)]
    pairs = [f"{head}: {cell}" for head, cell in both if _NAME_ONLY.fullmatch(head)]
    bare = _TIME.search(cells[0]) and "(" not in cells[0]
    label = "" if _NAME_ONLY.fullmatch(heads[0]) or bare else cells[0]
    return " ".join((label, *pairs)) if all(map(_STATISTIC.fullmatch, pairs)) else None


def _facts(line: str, number: int) -> Iterator[_Fact]:
    """Yield what a line says about the numbers of requests: all, good ones, failed ones."""
    for match in _COUNT.finditer(line[:_LONGEST]):
        said = f"{match['kind'] or ''} {match['what'] or ''}".lower()
        value = int((match["number"] or match["before"]).replace(",", ""))
        share = said == " success" and value < 2
        if not (share or re.match(rf"max|target|{_OTHERS} count", said)):
            what = "failed" if _BAD.search(said) else "good" if _GOOD.search(said) else "count"
            yield _Fact(number, said.strip() if "xx" in said else what, value)


def _groups(text: str, *, once: bool = False) -> list[_Group]:
    """Return the series of a text; none if more lines mention statistics in prose."""
    # With `once`, a statistic that comes again does not begin another series.
    events: list[_Group | _Fact] = []
    latest: dict[str, _Group] = {}
    heading = above = ""
    prose = rows = 0
    for number, line in enumerate(text.splitlines()):
        if not re.search(r"\w", line):
            continue  # a rule is not a heading
        below = _row_below(above, line) if above else None
        row = _statistics(below or line[:_LONGEST], heading)
        facts = list(_facts(line if row is None else _NOTED.sub("", line), number))
        above = line if _NAME_ONLY.search(line) else above if below else ""
        if row is None:
            events += facts
            prose += bool(_STATISTIC.search(line[:_LONGEST])) and not _NOT_A_TIME.search(line)
            noted = _NOTED.search(line) is not None
            if not (above or once) and (noted or not facts):  # keys have no heading
                heading = line.strip()[:200]
                # its counts are those of a block of its own; a run's report is of no interval
                latest = {} if noted else {k: g for k, g in latest.items() if not g.periodic}
            continue
        rows += 1
        label, stats = row
        for name, value, unit, spelling, further in stats:
            if label not in latest and "" in latest and latest[""].further == label.lower():
                latest[label] = latest[""]  # ``mean response time`` before ``response time p99``
            group = latest.get(label)
            same = group is not None and group.heading == heading
            # The median may be there twice, as p50, too.
            twice = same and name == 50.0 and group is not None and group.median != spelling
            if group is not None and name in group.stats and (once or twice):
                continue
            if group is None or name in group.stats:
                group = latest[label] = _Group(label, heading, periodic=same)
                events.append(group)
            group.take(facts)
            group.further = further
            group.stats[name] = value, unit
            group.median = spelling if name == 50.0 else group.median
    groups: list[_Group] = []
    loose: list[_Fact] = []  # counts between two are those of the later if the earlier has some
    for event in events if prose < rows else ():
        if isinstance(event, _Fact):
            loose.append(event)
        elif event.accepted:
            loose = groups[-1].take(loose) if groups else loose
            event.take(loose[::-1])
            groups, loose = [*groups, event], []
    if groups:
        groups[-1].take(loose)
    return groups


def _unit_around(value: dict[str, object], path: str, unit: str) -> str:
    """Return the unit of an object's bare numbers: a key ``unit``, the object's name, or `unit`."""
    for key, stated in value.items():
        named = key.lower() in ("unit", "units", "duration_units")
        if named and isinstance(stated, str) and (known := build.unit_in(stated)):
            return known
    found = _KEY_UNIT.search(path)
    suffix = (found["hint"] or found["words"]).lower() if found else "s"
    # requests_s: a rate
    return (
        unit
        if suffix == "s" and not (found and _TIME.search(path))
        else build.unit_in(suffix) or ""
    )


def _json_groups(value: object, path: str = "", depth: int = 0, unit: str = "") -> Iterator[_Group]:
    """Yield the series of each object that has percentiles among its keys."""
    # What an object named after percentiles holds is taken for that of the object around it.
    if isinstance(value, list):
        for item in value[:1000] if depth < 20 else ():
            name = item.get("name") if isinstance(item, dict) else None
            own = name if isinstance(name, str) else path
            yield from _json_groups(item, own, depth + 1, unit)
    if not isinstance(value, dict) or depth >= 20:
        return
    unit = _unit_around(value, path, unit)
    cells = [(key, item, unit) for key, item in value.items()]
    inside = [key for key in value if "percentile" in key.lower() and isinstance(value[key], dict)]
    for key in inside if len(inside) == 1 else ():
        own = _unit_around(value[key], key, unit)
        cells = [cell for cell in cells if cell[0] != key] + [
            (re.sub(r"^(?=\d{1,3}(?:\.\d+)?$)", "p", name), item, own)
            for name, item in value[key].items()
        ]
    lines = []
    for name, item, own in cells:
        if isinstance(item, str | int | float) and not isinstance(item, bool):
            numeric = not isinstance(item, str) and _NAME_ONLY.fullmatch(name)
            lines.append(f"{_WORDS.sub(' ', name)}: {item}{own if numeric else ''}")
    groups = _groups("\n".join(lines), once=True)
    below = [
        group
        for name, item, own in cells
        for group in _json_groups(item, f"{path}.{name}".lstrip("."), depth + 1, own)
    ]
    for group in groups:
        group.heading = path
    if len(below) == 1 and not groups and below[0].count is None:
        below[0].take([fact for line in lines for fact in _facts(line, 0)])
    yield from (*groups, *below)


def _all_groups(text: str) -> list[_Group]:
    """Return the series of a text or of a JSON document, those of latencies first."""
    groups = None
    if text.lstrip()[:1] in ("{", "["):
        try:
            groups = list(_json_groups(json.loads(text)))
        except (ValueError, RecursionError):
            groups = [] if text.lstrip()[:1] == "{" else None  # ``[2026-05-01 …] text``
    if groups is None:
        groups = _groups(_PANDAS.sub(r"\2\n\1", plain(text)))
    named: dict[tuple[str, str], list[_Group]] = {}
    for group in groups:
        named.setdefault((group.heading, group.label), []).append(group)
    chosen = []
    for same in named.values():
        # Reports of intervals and one of the complete run: it has all their requests. Where that
        # is not known, none stands for the others.
        counts = [group.count.number if group.count else 0 for group in same]
        largest = same[max(range(len(same)), key=lambda k: (counts[k], k))]
        alike = all(group.stats == largest.stats for group in same)
        total = len(same) > 2 and abs(2 * max(counts) - sum(counts)) < 0.01 * max(counts)
        chosen += [largest] if alike or total else same
    return sorted(chosen, key=lambda group: not _LATENCY.search(f"{group.heading} {group.label}"))


def sniff(head: Head) -> Confidence:
    """Recognise statistics, and nothing else that a line consists of."""
    if head.is_dir:
        return Confidence.NO
    text = head.text if head.whole else "\n".join(head.lines)
    return Confidence.GENERIC if _all_groups(text) else Confidence.NO


def read(source: Source, options: ReadOptions) -> Series:
    """Read each group of statistics as a series."""
    groups = _all_groups(source.text())
    if not groups:
        seen = "no line has percentiles and a short label"
        raise source.corrupt(None, seen, "lines such as 'p99: 1234 us'")
    names = [_title(group.heading) for group in groups]
    repeated = len({group.label for group in groups}) < len(groups) and len(set(names)) > 1
    for group, title in zip(groups, names, strict=True):
        name = f"{title} {group.label}".strip() if repeated else group.label or title
        yield name if len(groups) > 1 else "", _data(group, options)


def _title(heading: str) -> str:
    """Return the words of a heading, without notes behind them; none of a fact with its number."""
    heading = heading.strip(" .:=-#*\"'{}[],")
    if re.search(r"\d", heading) and " " in heading:
        heading = re.split(r" [(\[]|[.,;] ", heading)[0].rstrip(" :")
        heading = "" if re.search(r"\d", heading) else heading
    return heading[:100]


def _data(group: _Group, options: ReadOptions) -> Data:
    """Return a histogram where a count and three percentiles are known, otherwise a summary."""
    stated = {unit for _, unit in group.stats.values() if unit}
    usual, origin = options.resolve_unit("none", "assumed")
    # Bare numbers beside others of one unit are of that unit.
    if len(stated) == 1 or all(unit for _, unit in group.stats.values()):
        usual, origin = min(stated), "file"
    run = Run(unit=usual, unit_from=origin)
    named: dict[Any, float] = {
        name: build.nanoseconds(value, unit or usual) for name, (value, unit) in group.stats.items()
    }
    points = {name: value for name, value in named.items() if isinstance(name, float)}
    stats = {name: value for name, value in named.items() if isinstance(name, str)}
    failed, count = group.failed or 0, group.count.number if group.count else None
    if group.count and group.count.what == "good":
        run, failed = run.replace(failed=failed), 0
        if run.failed and not count:
            return build.unanswered(run)
    return build.of_all_requests(points, count if failed else count or None, failed, stats, run)


FORMATS = {"percentile-lines": (sniff, read)}
