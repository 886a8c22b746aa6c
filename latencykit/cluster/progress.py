"""How far it is: one line on standard error that is written over."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from latencykit.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["bar"]

_CELLS = 24


def bar(what: str, wanted: bool | None = None) -> Callable[[int, int], None]:
    """Return what takes (done, of all) and draws a bar; it draws nothing where nobody is looking.

    Parameters
    ----------
    what : str
        What is being done.
    wanted : bool, optional
        Whether to draw; by default where standard error is a terminal.
    """
    stream = sys.stderr
    if stream is None or not (stream.isatty() if wanted is None else wanted):
        return lambda *_: None
    began = shown = time.monotonic()

    def tell(done: int, of: int) -> None:
        nonlocal shown, began
        now = time.monotonic()
        if done == 1:
            began = now  # the first of several passes says nothing of the next
        if done < of and now - shown < 0.2:
            return
        shown = now
        stream.write(line(what, done, of, now - began) + ("\n" if done == of else ""))
        stream.flush()

    return tell


def line(what: str, done: int, of: int, seconds: float) -> str:
    """Return the line: a bar, how many of how many, and how much time is left.

    Examples
    --------
    >>> line("reading", 3, 12, 6.0)
    '\\rreading ██████·················· 3 of 12, 18 s left'
    """
    full = _CELLS * done // max(of, 1)
    left = f", {format_duration(seconds / done * (of - done) * 1e9)} left" if 0 < done < of else ""
    return f"\r{what} {'█' * full}{'·' * (_CELLS - full)} {done:,} of {of:,}{left}"
