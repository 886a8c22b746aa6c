"""Percentiles as programs print them without a format of their own: ``p99: 1234 us``, ``99% 4029``.

Also ``99.00%  3.860ms``, ``p(99)=2.5ms``, ``99.0'th percentile  3ms``, a row of names above a row
of values, and JSON with such keys. It is the last resort for what no other reader knows, and it
takes no prose: a line has statistics and a short label, and nothing else.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io.build import base_unit, distinct
from latencykit.io.source import Confidence, Format
from latencykit.io.text_reports import plain
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from latencykit.io.source import Data, Head, ReadOptions, Source

_UNITS = {
    "ns": "ns", "nanoseconds": "ns", "us": "us", "µs": "us", "μs": "us", "usec": "us",
    "microseconds": "us", "ms": "ms", "msec": "ms", "msecs": "ms", "milliseconds": "ms",
    "s": "s", "sec": "s", "secs": "s", "seconds": "s",
}  # fmt: skip
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_VALUE = (
    r"(?:(?P<minutes>\d+)m)?(?P<value>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?)"
    rf"\s?(?P<unit>{_UNIT})?"
)
_END = r"(?![\w.%/]|[-:]\d)"
_PERCENTILE = (
    r"(?<![a-z0-9])p\s?\(?(?P<p>\d{1,5}(?:[._]\d+)?)\)?(?![a-z0-9])"
    r"|(?<![\w.,/-])(?P<share>\d{1,3}(?:\.\d+)?)\s?(?:%|pct\b|'?(?:st|nd|rd|th)\b)"
)
_WORD = r"(?<![a-z0-9])(?P<word>mean|average|avg|median|med|minimum|min|maximum|max)(?![a-z0-9])"
# The statistic's name, further words of it, its unit (``p99_ms``, ``p99 (us)``), and the value.
_STATISTIC = re.compile(
    rf"(?:{_PERCENTILE}|{_WORD})"
    r"(?P<further>(?:[ _-]?(?:percentile|latency|response|time|duration|per|request|%?ile)s?"
    r"(?![a-z0-9]))*)"
    rf"(?:[ _]*[(\[]?(?P<hint>{_UNIT})(?![a-z0-9])[)\]]?)?"
    r"[\"'`]?\s*(?:[:=|│]\s*)?(?:\.{2,}\s*[:=]?\s*)?[\"']?"
    rf"{_VALUE}{_END}",
    re.IGNORECASE,
)
# The value before its name: ``1.2 ms avg latency, 9 ms 99th``.
_BEFORE = re.compile(
    rf"(?<![\w.]){_VALUE}(?P<hint>)(?P<further>)\s+(?:{_PERCENTILE}|{_WORD})"
    r"(?: latency| percentile)?(?=\s*(?:[,;.]|$))",
    re.IGNORECASE,
)
# ``Max time (s): 20`` is how long a run was to last.
_LIMIT = re.compile(r"m(?:ax|in)\w*[ _-]time(?![ _-]per)", re.IGNORECASE)
_NAME_ONLY = re.compile(rf"{_PERCENTILE}|{_WORD}", re.IGNORECASE)
_SPREAD = re.compile(r"st(?:an)?d", re.IGNORECASE)
_BRACKETS = re.compile(rf"[(\[](?P<hint>{_UNIT})[)\]]|in (?P<words>{_UNIT})\b", re.IGNORECASE)
# What may stand beside statistics: notes in parentheses, and pairs such as ``stddev=1.2ms``.
_ASIDE = re.compile(r"\([^()]*\)|\[[^][]*\]|\b[a-z_][\w-]*\s*[:= ]\s*[\d.,]+\w*", re.IGNORECASE)
_COUNT = re.compile(
    r"(?<![a-z0-9])(?:requests?|samples?|count)[\"']?\s*(?:[:=|]|\.{2,}\s*:?|\s)\s*[\"']?"
    r"(\d{1,3}(?:,\d{3})+|\d+)(?![\w.%/])"
    r"|(?<![\w.])(\d{1,3}(?:,\d{3})+|\d+) (?:requests|samples|records)\b",
    re.IGNORECASE,
)
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
    "med": 50.0,
}  # fmt: skip
_MOST_WORDS = 5  # of a label


@dataclass
class _Group:
    """The statistics of one series: name → value and unit."""

    label: str
    heading: str
    stats: dict[str | float, tuple[float, str]] = field(default_factory=dict)
    percentiles: dict[str | float, tuple[float, str]] = field(default_factory=dict)
    count: int = 0
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
        word for word in re.findall(r"[\w./-]*[^\W_][\w./-]*", label) if not re.search(r"\d", word)
    ]
    if len(words) > _MOST_WORDS:
        return None
    unit = _BRACKETS.search(label) or _BRACKETS.search(context)
    default = "" if unit is None else _UNITS[(unit["hint"] or unit["words"]).lower()]
    name = " ".join(word.strip("._-/") for word in words)
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
    heading = before = ""
    prose = lines = pending = 0
    for line in text.splitlines():
        if not line.strip():
            continue
        row = _row_below(before, line) if before else None
        taken = _statistics(row or line[:2000], heading)
        before = line if _NAME_ONLY.search(line) else ""
        count = _COUNT.search(line[:2000])
        number = int((count[1] or count[2]).replace(",", "")) if count else 0
        if taken is None:
            prose += bool(_STATISTIC.search(line[:2000]))
            heading = heading if before or count else line.strip()[:200]
            if groups and not groups[-1].count:
                groups[-1].count = number
            else:
                pending = pending or number
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
                group = latest[label] = _Group(label, heading, count=pending)
                groups.append(group)
                pending = 0
            group.count, group.further = group.count or number, further
            (group.stats if isinstance(name, str) else group.percentiles)[name] = value, unit
            if name == 50.0:
                group.median = spelling
    return [group for group in groups if group.accepted] if prose < lines else []


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
    """Yield a group for each object that has percentiles among its keys."""
    if isinstance(value, list):
        for item in value[:1000] if depth < 20 else ():
            yield from _json_groups(item, path, depth + 1, unit)
    if not isinstance(value, dict) or depth >= 20:
        return
    inside = "percentile" in path.lower()
    unit = _unit_around(value, path, unit)
    lines = []
    for key, item in value.items():
        bare = inside and re.fullmatch(r"\d{1,3}(\.\d+)?", key)
        if isinstance(item, str | int | float) and not isinstance(item, bool):
            name = f"{'p' if bare else ''}{key}"
            numeric = not isinstance(item, str) and _NAME_ONLY.fullmatch(name)
            lines.append(f"{name}: {item}{unit if numeric else ''}")
    groups = _groups("\n".join(lines), unrepeated=True)
    for group in groups:
        if count := _COUNT.search("\n".join(lines)):
            group.count = int((count[1] or count[2]).replace(",", ""))
        group.heading = path
        yield group
    for key, item in value.items():
        yield from _json_groups(item, f"{path}.{key}".lstrip("."), depth + 1, unit)


def _all_groups(text: str, *, document: bool) -> list[_Group]:
    """Return the groups of a text or of a JSON document, those of latencies first."""
    if document:
        try:
            groups = list(_json_groups(json.loads(text)))
        except (ValueError, RecursionError):
            groups = []
    else:
        text = plain(text)
        groups = _groups(text)
        counts = [int((a or b).replace(",", "")) for a, b in _COUNT.findall(text)]
        for group in groups if len(groups) == 1 else ():
            group.count = group.count or next(iter(counts), 0)
    named: dict[tuple[str, str], list[_Group]] = {}
    for group in groups:
        named.setdefault((group.heading, group.label), []).append(group)
    chosen = []
    for same in named.values():
        # Reports of intervals and one of the complete run: it has all their requests. Where that
        # is not known, none stands for the others.
        largest = max(reversed(same), key=lambda group: group.count)
        rest = sum(group.count for group in same) - largest.count
        alike = all(
            (group.stats, group.percentiles) == (largest.stats, largest.percentiles)
            for group in same
        )
        total = len(same) > 2 and abs(largest.count - rest) < 0.01 * largest.count
        chosen += [largest] if alike or total else same
    return sorted(chosen, key=lambda group: not _LATENCY.search(f"{group.heading} {group.label}"))


def sniff(head: Head) -> Confidence:
    """Recognise statistics, and nothing else that a line consists of."""
    if head.is_dir:
        return Confidence.NO
    text = head.text if head.whole else "\n".join(head.lines)
    document = head.whole and text.lstrip()[:1] in ("{", "[")
    return Confidence.GENERIC if _all_groups(text, document=document) else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read each group of statistics as a series."""
    text = source.text()
    groups = _all_groups(text, document=text.lstrip()[:1] in ("{", "["))
    if not groups:
        raise source.corrupt(
            None, "no line has percentiles and a short label", "lines such as 'p99: 1234 us'"
        )
    series: dict[str, Data] = {}
    for group in groups:
        heading = group.heading.strip(" .:=-#*")
        heading = "" if re.search(r"\d", heading) and " " in heading else heading[:100]
        name = (group.label or heading) if len(groups) > 1 else ""
        series[distinct(name, series)] = _data(group, options)
    return series


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

    stats, percentiles = scaled(group.stats), dict(sorted(scaled(group.percentiles).items()))
    percentiles.pop(0.0, None)
    if 100.0 in percentiles:
        stats["max"] = percentiles[100.0]
    unit = base_unit(usual)
    if group.count and len(percentiles) > 2:
        return Histogram.from_percentiles(
            list(percentiles), list(percentiles.values()), group.count, reported_stats=stats,
            unit=unit, run=run,
        )  # fmt: skip
    return Summary(stats, percentiles, group.count or None, unit, run)


FORMATS = (
    Format(
        "percentile-lines", "lines of percentiles of any program", "histogram", (".txt", ".json"),
        sniff, read, example="./my-benchmark > out.txt",
    ),
)  # fmt: skip
