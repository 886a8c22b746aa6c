"""Reports with a line per series, each described by a pattern in ``lines.csv``.

A pattern is a regular expression in which ``<mean>``, ``<p99>`` … stand for a time, bare or with
its unit, ``<count>`` for a whole number, ``<rate>`` for a number that is not kept, and ``<name>``
for the words that name a series. The text has what the pattern ``head`` matches, too, and
nothing that ``without`` does.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from latencykit.core.run import CLOSED, Run
from latencykit.io.declared import Lines
from latencykit.io.text_reports import has_match, plain

_RUNS: dict[str, dict[str, Any]] = {
    "": {},
    "service": {"measure": "service"},
    "probe": {"measure": "service", "corrected": "none"},
    "closed": CLOSED,
    "perf": {"loop": "closed", "measure": "service"},
}
_TIME = r"\d++(?:,\d{3})*+(?:\.\d*+)?(?:e-?\d++)?(?: ?(?:[pnuµμm]?s|[num]?secs?)\b)?"
_WHOLE = r"\d++(?:,\d{3})*+"
_MEANINGS = {
    "name": r"\S++(?: \S++)*",
    "rate": r"[\d.,]++",
    **dict.fromkeys(("count", "failed"), _WHOLE),
    **dict.fromkeys(("duration", "achieved"), r"[\d.]++"),
}
_BRANCH = re.compile(r"^([│ ]*)([├╰└]─+ )(\S+(?: \S+)*)", re.MULTILINE)


def pattern(text: str) -> str:
    """Return the regular expression of a pattern with ``<mean>`` and the like."""

    def group(word: re.Match[str]) -> str:
        inner = _MEANINGS.get(word[1], _TIME)
        return inner if word[1] == "rate" else f"(?P<{word[1]}>{inner})"

    return re.sub(r"(?<!\(\?P)(?<!\(\?)<(\w+)>", group, text)


def with_parents(text: str) -> str:
    """Return text in which each branch of a tree is named by those above it, too."""
    path: list[tuple[int, str]] = []

    def named(branch: re.Match[str]) -> str:
        depth, before = len(branch[1]), branch[1] + branch[2]
        path[:] = [(depth_above, name) for depth_above, name in path if depth_above < depth]
        path.append((depth, branch[3]))
        return before + "/".join(name for _, name in path)

    return _BRANCH.sub(named, plain(text))


FORMATS = {}
for row in csv.DictReader(Path(__file__).with_suffix(".csv").read_text("utf-8").splitlines()):
    notes = (row["note"],) * bool(row["note"])
    lines = Lines(
        run=Run(tool=row["tool"], unit=row["unit"], notes=notes, **_RUNS[row["run"]]),
        row=pattern(row["row"]),
        pair=row["pair"] or r"p(\d+(?:\.\d+)?): ([\d.]+)",
        cumulative=bool(row["cumulative"]),
        prepare=with_parents,
    )
    heads = [pattern(text) for text in (row["head"], row["row"]) if text]
    known = has_match(*heads, without=row["without"] or r"(?!)", plain=with_parents)
    FORMATS[row["name"]] = known, lines
