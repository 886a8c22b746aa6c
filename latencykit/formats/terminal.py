"""Text as it stood on a terminal: without colours, and without what a progress line overwrote."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["below", "plain", "runs"]

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


def plain(text: str) -> str:
    r"""Return text without escape sequences; of a line that was written over, what was written last.

    Line numbers stay what they were.

    Examples
    --------
    >>> plain("GET: rps=0.0\r             \r\x1b[1mGET\x1b[0m: done\n")
    'GET: done\n'
    """
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\r" not in text:
        return text
    return "\n".join(_last_written(line) if "\r" in line else line for line in text.split("\n"))


def runs(text: str, begin: re.Pattern[str]) -> dict[str, str]:
    r"""Return name → text of each run; a run begins where `begin` matches, and a lone one has no name.

    Examples
    --------
    >>> runs("Go\nfast\nGo\nslow\n", re.compile("^Go$", re.MULTILINE))
    {'run 1': 'Go\nfast\n', 'run 2': 'Go\nslow\n'}
    """
    starts = [one.start() for one in begin.finditer(text)]
    parts = [text[start:end] for start, end in pairwise([0, *starts[1:], len(text)])]
    return {"": text} if len(parts) < 2 else {f"run {number}": part for number, part in enumerate(parts, 1)}


def below(text: str, heading: str) -> Iterator[tuple[int, str]]:
    r"""Yield number and text of the lines below the last line that begins with a heading, up to a blank one.

    Examples
    --------
    >>> list(below("Latency:\n p50: 1\n p99: 2\n\nDone\n", "Latency:"))
    [(2, ' p50: 1'), (3, ' p99: 2')]
    """
    lines = text.split("\n")
    begin = next((k for k in range(len(lines) - 1, -1, -1) if lines[k].startswith(heading)), len(lines))
    for number, line in enumerate(lines[begin + 1 :], begin + 2):
        if not line.strip():
            return
        yield number, line


def _last_written(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")
