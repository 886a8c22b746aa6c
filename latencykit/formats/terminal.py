"""Text as it stood on a terminal: without colours, and without what a progress line overwrote."""

from __future__ import annotations

import re

__all__ = ["plain"]

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


def _last_written(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")
