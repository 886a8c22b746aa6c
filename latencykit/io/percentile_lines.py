"""Percentiles as programs print them without a format of their own: ``p99: 1234 us``, ``99% 4029``.

Also ``99.00%  3.860ms``, ``p(99)=2.5ms``, ``99.0'th percentile  3ms``, a row of names above a row
of values, and JSON with such keys. It is the last resort for what no other reader knows, and it
takes no prose: a line has statistics and a short label, and nothing else.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from latencykit.core.run import Run
from latencykit.io.build import of_all_requests, unanswered
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import plain
from latencykit.units import NANOSECONDS

_UNITS = {
    "ns": "ns", "nanoseconds": "ns", "us": "us", "µs": "us", "μs": "us", "usec": "us",
    "microseconds": "us", "ms": "ms", "msec": "ms", "msecs": "ms", "milliseconds": "ms",
    "s": "s", "sec": "s", "secs": "s", "seconds": "s",
}  # fmt: skip
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_VALUE = (
    r"(?:(?P<minutes>\d{1,9})m)?(?P<value>(?:\d{1,3}(?:,\d{3})++|\d++)(?:\.\d++)?(?:e[+-]?\d+)?)"
    rf"\s?\[?(?P<unit>{_UNIT})?\]?"
)
_END = r"(?![\w%/]|\.[\w.]|[-:]\d)"
_PERCENTILE = (
    r"(?<![a-z0-9])(?<!\d - )p\s?\(?(?P<p>\d{1,5}(?:[._]\d+)?)\)?(?![a-z0-9])"
    r"|(?<![\w.,/-])(?P<share>\d{1,3}(?:\.\d+)?)\s?(?:%|pct\b|'?(?:st|nd|rd|th)\b)"
)
_WORD = (
    r"(?<![a-z0-9])(?P<word>mean|average|avg|median|med|minimum|min|maximum|max|fastest|slowest"
    r"|best|worst)(?![a-z0-9])"
)
# The statistic's name, further words of it, its unit (``p99_ms``, ``p99 (us)``), and the value.
_STATISTIC = re.compile(
    rf"(?:{_PERCENTILE}|{_WORD})"
    r"(?P<further>(?:[ _-]?(?:percentile|latency|response|time|duration|per|request|%?ile)s?"
    r"(?![a-z0-9]))*)"
    rf"(?:[ _]*[(\[]?(?P<hint>{_UNIT})(?![a-z0-9])[)\]]?)?"
    r"[\"'`]?\s*+(?:(?:[:=|│]|<=|≤|in\b)\s*+)?(?:\.{2,}+\s*+(?:[:=]\s*+)?)?[\"']?"
    rf"{_VALUE}{_END}",
    re.IGNORECASE,
)
# The value before its name: ``1.2 ms avg latency, 9 ms 99th``.
_BEFORE = re.compile(
    rf"(?<![\w.,]){_VALUE}(?P<hint>)(?P<further>)\s++(?:{_PERCENTILE}|{_WORD})"
    r"(?: latency| percentile)?(?=\s*+(?:[,;.]|$))",
    re.IGNORECASE,
)
# ``Max time (s): 20`` is how long a run was to last, ``Max requests: 5000`` is its number.
_LIMIT = re.compile(
    r"m(?:ax|in)\w*[ _-](?:time(?![ _-]per)|requests(?![ _-](?:time|duration|latency)))",
    re.IGNORECASE,
)
_NAME_ONLY = re.compile(rf"{_PERCENTILE}|{_WORD}", re.IGNORECASE)
_SPREAD = re.compile(r"st(?:an)?d", re.IGNORECASE)
_BRACKETS = re.compile(
    rf"[(\[](?P<hint>{_UNIT})[)\]]|(?:in |_(?=\w{{2}}))(?P<words>{_UNIT})(?![a-z0-9])",
    re.IGNORECASE,
)
# What may stand beside statistics: notes in parentheses, and pairs such as ``stddev=1.2ms``.
_ASIDE = re.compile(
    r"\([^()]*\)|\[[^][]*\]|(?<![\w-])[a-z_][\w-]*+(?:\s*+[:=]\s*+|\s++)[\d.,]+\w*", re.IGNORECASE
)
_PAIR = re.compile(r"(?<![\w-])[a-z_][\w-]*=[\d.,]+\w*", re.IGNORECASE)
# Requests and what became of them: ``Failed requests  2``, ``errors=2``, ``82 total samples``.
_COUNT = re.compile(
    r"(?<![a-z0-9/])(?:(?P<kind>failed|error|successful|succeeded|max(?:imum)?|target)[ _-])?"
    r"(?P<what>requests?|reqs?|samples?|count|queries|operations|ops|pings|packets received"
    r"|errors?|failures?|failed|success(?:es)?|replies|[45]xx)(?: considered)?"
    r"[\"']?(?:\s*+[:=|]\s*+|\s*+\.{2,}+\s*+(?::\s*+)?|\s++)[\"']?(?:total )?"
    r"(?P<number>\d{1,3}(?:,\d{3})+|\d+)(?![\w.%/]| ?[a-z]{1,9}/| ?(?:[kMG]?B|bytes)\b)"
    r"|(?<![\w.,])(?P<before>\d{1,3}(?:,\d{3})+|\d+) (?:total )?(?:requests|reqs|samples|records)\b"
    r"(?! \d)",
    re.IGNORECASE,
)
_BAD = re.compile(r"fail|error|[45]xx", re.IGNORECASE)
_GOOD = re.compile(r"succe|replies", re.IGNORECASE)
_LIMIT_OF = re.compile(r"max|target", re.IGNORECASE)
# A count in parentheses is a note on a heading: ``Wakeup Latencies (82 total samples)``.
_NOTED = re.compile(r"\(\d[\d,]* (?:total )?(?:requests|reqs|samples|records)\)", re.IGNORECASE)
_LOG_LEVEL = re.compile(r"TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR")
# The unit in a key above the statistics: ``latency_ms``, ``latencyMs``, ``latency (ms)``.
_KEY_UNIT = re.compile(
    rf"(?:^|[\s_.(\[-])(?P<hint>(?i:{_UNIT}))[)\]]?$|(?<=[a-z])(?P<camel>[NUM]s|Seconds)$"
)
_NOT_A_TIME = re.compile(
    r"rate|rps|qps|throughput|bytes|size|cpu|memory|per second|/s(?:ec)?\b", re.IGNORECASE
)
_LATENCY = re.compile(r"latenc|response", re.IGNORECASE)
_TIME = re.compile(rf"{_LATENCY.pattern}|time|duration", re.IGNORECASE)
_SPELLINGS: dict[str, str | float] = {
    "avg": "mean", "average": "mean", "minimum": "min", "maximum": "max", "median": 50.0,
    "med": 50.0, "fastest": "min", "slowest": "max", "best": "min", "worst": "max",
}  # fmt: skip
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|_")  # between the words of a key
_MOST_WORDS = 5  # of a label


class _Fact(NamedTuple):
    """A number of requests, and the line that states it."""

    line: int
    what: str
    number: int

    @property
    def counts(self) -> bool:
        """True if it counts requests that were answered, or all of them."""
        return self.what in ("good", "count")


@dataclass
class _Group:
    """The statistics of one series: name → value and unit."""

    label: str
    heading: str
    lines: list[int] = field(default_factory=lambda: [0])
    stats: dict[str | float, tuple[float, str]] = field(default_factory=dict)
    percentiles: dict[str | float, tuple[float, str]] = field(default_factory=dict)
    count: int | None = None
    answered: bool = False
    """Whether the count is that of the good requests alone."""
    failed: int | None = None
    median: str = ""
    further: str = ""

    @property
    def accepted(self) -> bool:
        """True if these are a distribution's: percentiles that rise, or a mean and its range."""
        units = [unit for _, unit in (*self.stats.values(), *self.percentiles.values())]
        usual = next(filter(None, units), "ns")  # of bare numbers beside others
        values = [
            value * NANOSECONDS[unit or usual]
            for _, (value, unit) in sorted(self.percentiles.items())
        ]
        stated = all(units)
        if values != sorted(values):
            return False
        if not stated and _NOT_A_TIME.search(f"{self.heading} {self.label}"):
            return False
        few = "mean" in self.stats and len(self.stats) + len(values) > 2
        return len(values) > 1 or (few and stated)


def _percentile(match: re.Match[str]) -> str | float:
    """Return the name of a statistic: 99.9 for ``99.9``, ``99_9`` and ``999``, or a word."""
    if match["word"]:
        return _SPELLINGS.get(match["word"].lower(), match["word"].lower())
    digits = match["share"] or match["p"]
    if match["p"] and digits.isdigit() and len(digits) > 2 and digits != "100":
        digits = f"{digits[:2]}.{digits[2:]}"
    return float(digits.replace("_", "."))


def _statistics(
    line: str, context: str
) -> tuple[str, list[tuple[str | float, float, str, tuple[str, str]]]] | None:
    """Return a line's label and its statistics; None if there are none, or other text, too.

    A statistic is its name, value, unit and spelling: a word, or ``p``, and what follows it.
    """
    matches = [match for match in _STATISTIC.finditer(line) if not _LIMIT.match(match[0])]
    matches = matches or [match for match in _BEFORE.finditer(line) if match["unit"]]
    if not matches:
        return None
    label, *rest = [
        line[start:end]
        for start, end in zip(
            [0, *(match.end() for match in matches)],
            [*(match.start() for match in matches), len(line)],
            strict=True,
        )
    ]
    rest[-1] = rest[-1][:200]
    if re.search(r"\w", _ASIDE.sub("", " ".join(rest))):
        return None
    words = [
        word
        for word in re.findall(r"[\w./-]++", _PAIR.sub("", label))
        if re.search(r"[^\W_]", word) and not re.search(r"\d", word)
    ]
    if len(words) > _MOST_WORDS:
        return None
    unit = _BRACKETS.search(label) or _BRACKETS.search(re.split(r"\s\d", context)[0])
    default = "" if unit is None else _UNITS[(unit["hint"] or unit["words"]).lower()]
    name = " ".join(bare for word in words if not _LOG_LEVEL.fullmatch(bare := word.strip("._-/:")))
    stats = []
    for match in matches:
        stated = _UNITS.get((match["unit"] or match["hint"] or "").lower(), default)
        value = float(match["value"].replace(",", ""))
        if match["minutes"]:
            value += 60 * int(match["minutes"])
        spelling = (match["word"] or "p").lower(), match["further"].strip(" _-").lower()
        stats.append((_percentile(match), value, stated, spelling))
    return name, stats


def _row_below(names: str, values: str) -> str | None:
    """Return a row of names above a row of values (``P50 P99`` / ``1ms 2ms``) as pairs."""
    heads, cells = (
        [cell for cell in re.split(r"[\s|│]+", line) if cell] for line in (names, values)
    )
    named = sum(bool(_NAME_ONLY.fullmatch(head) or _SPREAD.match(head)) for head in heads)
    if named < 2 or named < len(heads) - 1 or len(heads) != len(cells):
        return None
    pairs = [
        f"{head}: {cell}"
        for head, cell in zip(heads, cells, strict=True)
        if _NAME_ONLY.fullmatch(head)
    ]
    return " ".join(pairs) if all(_STATISTIC.fullmatch(pair) for pair in pairs) else None


def _groups(text: str, *, unrepeated: bool = False) -> list[_Group]:
    """Return the groups of statistics in a text; none if more lines mention some in prose.

    With `unrepeated`, a statistic that comes again does not begin another group.
    """
    groups: list[_Group] = []
    latest: dict[str, _Group] = {}
    periodic: dict[str, bool] = {}
    facts: list[_Fact] = []
    heading = before = ""
    prose = lines = 0
    for number, line in enumerate(text.splitlines()):
        if not line.strip():
            continue
        row = _row_below(before, line) if before else None
        taken = _statistics(row or line[:2000], heading)
        before = line if _NAME_ONLY.search(line) else ""
        found = _facts(line if taken is None else _NOTED.sub("", line), number)
        facts += found
        if taken is None:
            prose += bool(_STATISTIC.search(line[:2000])) and not _NOT_A_TIME.search(line)
            noted = _NOTED.search(line) is not None
            heading = line.strip()[:200] if not before and (noted or not found) else heading
            if noted:
                latest.clear()  # its counts are those of a block of its own
            continue
        lines += 1
        label, stats = taken
        for name, value, unit, (spelling, further) in stats:
            if label not in latest and "" in latest and latest[""].further == label.lower():
                latest[label] = latest[""]  # ``mean response time`` before ``response time p99``
            group = latest.get(label)
            known = None if group is None else group.stats | group.percentiles
            same = group is not None and group.heading == heading
            # The median may be there twice, as p50, too.
            twice = name == 50.0 and group is not None and group.median not in ("", spelling)
            if known and name in known and (unrepeated or (same and twice)):
                continue
            # Below a heading of its own, what follows lines of intervals is not of the last one.
            apart = not same and periodic.get(label, False)
            if group is None or known is None or name in known or apart:
                periodic[label] = group is not None and group.heading == heading
                group = latest[label] = _Group(label, heading, [number])
                groups.append(group)
            group.further = further
            group.lines += [number] * (group.lines[-1] < number)
            (group.stats if isinstance(name, str) else group.percentiles)[name] = value, unit
            if name == 50.0:
                group.median = spelling
    return _counted([group for group in groups if group.accepted], facts) if prose < lines else []


def _facts(line: str, number: int) -> list[_Fact]:
    """Return what a line says about the numbers of requests: all, good ones, failed ones."""
    facts = []
    for match in _COUNT.finditer(line[:2000]):
        said = f"{match['kind'] or ''} {match['what'] or ''}".lower()
        if _LIMIT_OF.search(said):
            continue
        what = "failed" if _BAD.search(said) else "good" if _GOOD.search(said) else "count"
        value = int((match["number"] or match["before"]).replace(",", ""))
        facts.append(_Fact(number, said.strip() if "xx" in said else what, value))
    return facts


def _counted(groups: list[_Group], facts: list[_Fact]) -> list[_Group]:
    """Give each group the numbers nearest to it: on its lines, above them, else below them."""
    lines = [fact.line for fact in facts]  # ascending
    used: set[int] = set()
    end = 0
    for k, group in enumerate(groups):
        own = set(group.lines)
        first = bisect_left(lines, group.lines[0])
        after = groups[k + 1].lines[0] if k + 1 < len(groups) else math.inf
        rest = range(first, bisect_left(lines, after))
        places = [
            [at for at in rest if lines[at] in own],
            [at for at in range(first - 1, end - 1, -1) if at not in used],
            [at for at in rest if lines[at] not in own],
        ]
        end = max(end, bisect_left(lines, group.lines[-1] + 1))
        for counts in (True, False):
            some = [[at for at in part if facts[at].counts is counts] for part in places]
            nearest = next(filter(None, some), [])
            used.update(nearest if nearest is some[2] else ())
            if nearest:
                _take(group, [facts[at] for at in nearest], counts=counts)
    return groups


def _take(group: _Group, facts: list[_Fact], *, counts: bool) -> None:
    """Take the first facts: a line's good requests rather than all of them, statuses together."""
    if not counts:
        statuses = {fact.what: fact.number for fact in reversed(facts)}
        failed = statuses.pop("failed", None)
        group.failed = sum(statuses.values()) if failed is None else failed
        return
    line = [fact for fact in facts if fact.line == facts[0].line]
    best = next((fact for fact in line if fact.what == "good"), line[0])
    group.count, group.answered = best.number, best.what == "good"


def _unit_around(value: dict[str, object], path: str, unit: str) -> str:
    """Return the unit of an object's bare numbers: a key ``unit``, the object's name, or `unit`."""
    for key in ("unit", "units"):
        if isinstance(stated := value.get(key), str) and stated.strip().lower() in _UNITS:
            return _UNITS[stated.strip().lower()]
    if (found := _KEY_UNIT.search(path)) is None:
        return unit
    suffix = (found["hint"] or found["camel"]).lower()
    return (
        unit if suffix == "s" and not _TIME.search(path) else _UNITS[suffix]
    )  # requests_s: a rate


def _json_groups(value: object, path: str = "", depth: int = 0, unit: str = "") -> Iterator[_Group]:
    """Yield a group for each object that has percentiles among its keys.

    What an object named after percentiles holds is taken for that of the object around it.
    """
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
        cells = [cell for cell in cells if cell[0] != key]
        own = _unit_around(value[key], key, unit)
        for name, item in value[key].items():
            bare = re.fullmatch(r"\d{1,3}(\.\d+)?", name)
            cells.append((f"p{name}" if bare else name, item, own))
    lines = []
    for name, item, own in cells:
        if isinstance(item, str | int | float) and not isinstance(item, bool):
            numeric = not isinstance(item, str) and _NAME_ONLY.fullmatch(name)
            lines.append(f"{name}: {item}{own if numeric else ''}")
    groups = _groups("\n".join(lines), unrepeated=True)
    facts = _facts("\n".join(_WORDS.sub(" ", line) for line in lines), 0)
    for group in groups:
        group.heading, group.lines = path, [0]  # that of the facts
    below = [
        group
        for name, item, own in cells
        for group in _json_groups(item, f"{path}.{name}".lstrip("."), depth + 1, own)
    ]
    for group in groups or (below if len(below) == 1 and below[0].count is None else ()):
        _counted([group], facts)
    yield from (*groups, *below)


def _all_groups(text: str) -> list[_Group]:
    """Return the groups of a text or of a JSON document, those of latencies first."""
    groups = None
    if text.lstrip()[:1] in ("{", "["):
        try:
            groups = list(_json_groups(json.loads(text)))
        except (ValueError, RecursionError):
            groups = [] if text.lstrip()[:1] == "{" else None  # ``[2026-05-01 …] text``
    if groups is None:
        groups = _groups(plain(text))
    named: dict[tuple[str, str], list[_Group]] = {}
    for group in groups:
        named.setdefault((group.heading, group.label), []).append(group)
    chosen = []
    for same in named.values():
        # Reports of intervals and one of the complete run: it has all their requests. Where that
        # is not known, none stands for the others.
        counts = [group.count or 0 for group in same]
        largest = max(reversed(same), key=lambda group: group.count or 0)
        most = max(counts)
        alike = all(
            (group.stats, group.percentiles) == (largest.stats, largest.percentiles)
            for group in same
        )
        total = len(same) > 2 and abs(2 * most - sum(counts)) < 0.01 * most
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
    text = source.text()
    groups = _all_groups(text)
    if not groups:
        raise source.corrupt(
            None, "no line has percentiles and a short label", "lines such as 'p99: 1234 us'"
        )
    names = [_titled(group) for group in groups]
    repeated = len({group.label for group in groups}) < len(groups) and len(set(names)) > 1
    for group, title in zip(groups, names, strict=True):
        name = f"{title} {group.label}".strip() if repeated else group.label or title
        yield name if len(groups) > 1 else "", _data(group, options)


def _titled(group: _Group) -> str:
    """Return the words of a heading, without notes behind them; none of a fact with its number."""
    heading = group.heading.strip(" .:=-#*")
    if re.search(r"\d", heading) and " " in heading:
        heading = re.split(r" [(\[]|[.,;] ", heading)[0].rstrip(" :")
        heading = "" if re.search(r"\d", heading) else heading
    return heading[:100]


def _data(group: _Group, options: ReadOptions) -> Data:
    """Return a histogram where a count and three percentiles are known, otherwise a summary."""
    values = [*group.stats.values(), *group.percentiles.values()]
    stated = {unit for _, unit in values if unit}
    usual, origin = options.resolve_unit("none", "assumed")
    # Bare numbers beside others of one unit are of that unit.
    if len(stated) == 1 or all(unit for _, unit in values):
        usual, origin = min(stated), "file"
    run = Run(unit=usual, unit_from=origin)

    def scaled(named: dict[Any, tuple[float, str]]) -> dict[Any, float]:
        return {
            name: value * NANOSECONDS.get(unit or usual, 1) for name, (value, unit) in named.items()
        }

    stats, percentiles = scaled(group.stats), scaled(group.percentiles)
    failed, count = group.failed or 0, group.count
    if group.answered:
        run, failed = run.replace(failed=failed), 0
        if run.failed and not count:
            return unanswered(run)
    return of_all_requests(percentiles, count if failed else count or None, failed, stats, run)


FORMATS = {
    "percentile-lines": (sniff, read),
}
