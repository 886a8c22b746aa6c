"""Reports with a line per series, each described by a pattern in ``lines.csv``.

A pattern is a regular expression in which ``<mean>``, ``<p99>`` … stand for a time, bare or with
its unit, ``<count>`` for a whole number, and ``<name>`` for words. The text has what ``head``
matches, too, and nothing that ``without`` does.
"""

from __future__ import annotations

import csv
import re
from functools import lru_cache
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
}
_TIME = r"\d++(?:,\d{3})*+(?:\.\d*+)?(?:e-?\d++)?(?: ?(?:[pnuµμm]?s|[num]?secs?)\b)?"
_WHOLE = r"\d++(?:,\d{3})*+"
_MEANINGS = {
    "name": r"\S++(?: \S++)*",
    **dict.fromkeys(("count", "failed"), _WHOLE),
    **dict.fromkeys(("duration", "achieved"), r"[\d.]++"),
}
_BRANCH = re.compile(r"^([│ ]*)([├╰└]─+ )(\S+(?: \S+)*)", re.MULTILINE)


def pattern(text: str) -> str:
    """Return the regular expression of a pattern with ``<mean>`` and the like."""
    word = r"(?<!\(\?P)(?<!\(\?)<(\w+)>"
    return re.sub(word, lambda name: f"(?P<{name[1]}>{_MEANINGS.get(name[1], _TIME)})", text)


@lru_cache(1)  # each format asks for the same head
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
    run = Run(tool=row["tool"], unit=row["unit"], **_RUNS[row["run"]])
    lines = Lines(
        run=run.with_notes(*filter(None, [row["note"]])),
        row=pattern(row["row"]),
        pair=row["pair"] or r"p(\d+(?:\.\d+)?): ([\d.]+)",
        cumulative=bool(row["cumulative"]),
        prepare=with_parents,
    )
    head, without = pattern(row["head"]), row["without"] or r"(?!)"
    known = has_match(head, lines.row, without=without, plain=with_parents)
    FORMATS[row["name"]] = known, lines
