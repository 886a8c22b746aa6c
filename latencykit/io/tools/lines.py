"""Reports with a line per series, each described by a table of ``lines.toml``."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from latencykit.core.run import CLOSED, Run
from latencykit.io.declared import PAIR, Lines
from latencykit.io.text_reports import Sniff, has_match, plain

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


def _format_of(known: dict[str, Any]) -> tuple[Sniff, Lines]:
    """What recognises and what reads the lines of a table of the file."""
    joined = {
        key: "".join(known.get(key, "")) for key in ("head", "without", "row", "pair", "title")
    }
    run = Run(tool=known["tool"], unit=known["unit"], **_RUNS[known.get("run", "")])
    lines = Lines(
        run=run.with_notes(*filter(None, [known.get("note")])),
        row=pattern(joined["row"]),
        pair=joined["pair"] or PAIR,
        title=pattern(joined["title"]) or r"(?!)",
        **{flag: known.get(flag, False) for flag in ("cumulative", "last")},
        prepare=with_parents,
    )
    head, without = pattern(joined["head"]), joined["without"] or r"(?!)"
    return has_match(head, lines.row, without=without, plain=with_parents), lines


_FILE = Path(__file__).with_suffix(".toml").read_text("utf-8")
FORMATS = {name: _format_of(known) for name, known in tomllib.loads(_FILE).items()}
