"""JSON lists of results: a name, a value and its unit each, as github-action-benchmark takes them.

Each name stands once: these are benchmarks, and not requests of one distribution.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from latencykit.core.run import Run
from latencykit.io import build, json_text
from latencykit.io.sanity_checks import whole_count
from latencykit.io.source import Confidence, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import certain

_NAMES = ("name", "benchmark", "test", "title")
_UNITS = ("unit", "units")
_VALUES = ("value", "time", "duration", "latency")
_TIMES = build.word_set("latency time duration response")
_BETWEEN = re.compile(r"[\s,]*")
_ONE = "one value per name, taken for its mean: a mean says nothing of the slowest calls"


def sniff(head: Head) -> Confidence:
    """Recognise a list of objects with a name, a unit and a value, in which no name is repeated."""
    text = head.text.lstrip()
    rows = list(_objects(text)) if text.startswith("[") and '"unit' in text else []
    names = [_text(row, _NAMES) for row in rows]
    fits = rows and all(names) and all(_text(row, _UNITS) and _values(row) for row in rows)
    return certain(fits and len(set(names)) == len(names))


def _objects(text: str) -> Iterator[Mapping[str, object]]:
    """The objects of a list, as far as the text goes; none of one that has other entries."""
    decoder, at = json.JSONDecoder(), 1
    while (begin := _BETWEEN.match(text, at)) and text.startswith("{", begin.end()):
        try:
            row, at = decoder.raw_decode(text, begin.end())
        except (ValueError, RecursionError):
            return
        yield row


def _text(row: Mapping[str, object], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if isinstance(value := row.get(key), str)), "")


def _values(row: Mapping[str, object]) -> dict[float | str, float]:
    """The numbers of a row by the statistics that its keys name; a bare value is "value"."""
    found: dict[float | str, float] = {}
    for key, value in row.items():
        word = key.lower()
        level = "value" if word in _VALUES else build.statistic_named(word)
        if level is not None and isinstance(value, (int, float)) and not isinstance(value, bool):
            found.setdefault(level, float(value))
    return found


def read(source: Source, options: ReadOptions) -> Series:
    """Read one summary per name; what is not in a unit of time is left out."""
    others: list[str] = []
    known = False
    for row in json_text.load(source):
        name, unit = _text(row, _NAMES), _text(row, _UNITS)
        time = build.unit_in(unit.partition("/")[0])  # ns/iter
        if time is None:
            others.append(unit)
            options.report(
                f"{source.shown}: {name} is in {unit!r}, not in a unit of time; left out"
            )
            continue
        values = _values(row)
        run = Run(unit=time)
        if "value" in values:
            # the statistic that the name states, such as "GET p99" and "max latency"
            words = re.findall(r"[a-z0-9.]+", name.lower())
            levels = set(map(build.statistic_named, words)) - {None, "count"}
            sure = any(isinstance(level, float) for level in levels) or not _TIMES.isdisjoint(words)
            kind = levels.pop() if sure and len(levels) == 1 else None
            run = run if kind else run.with_notes(_ONE)
            values.setdefault(kind or "mean", values.pop("value"))
        count = values.pop("count", None)
        points = {level: value for level, value in values.items() if isinstance(level, float)}
        stats = {level: value for level, value in values.items() if isinstance(level, str)}
        number = None if count is None else whole_count(count)
        known = True
        yield name, build.data_from_points(points, number, stats, run, time)
    if not known:
        seen = f"no result is in a unit of time, but in {', '.join(dict.fromkeys(others))}"
        raise source.corrupt(None, seen, "ns, us, ms or s", "")


FORMATS = {"named-results": (sniff, read)}
