"""A bar on a terminal for what is counted."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from latencykit.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable

_CELLS = 24


def drawn_bar() -> Callable[[int, int], None]:
    """Return a function of (done, of all) that draws a bar on standard error.

    While a server is waited for, its address is shown in the place of the bar.
    """
    from latencykit.io.files import on_wait

    stream = sys.stderr
    on_wait[:] = [_show_wait]
    began = shown = time.monotonic()

    def draw(done: int, of: int) -> None:
        nonlocal shown, began
        now = time.monotonic()
        if done == 1:
            began = now  # the time of an earlier pass does not predict the next
        if done < of and now - shown < 0.2:
            return
        shown = now
        stream.write(bar_text("reading", done, of, now - began) + ("\n" if done == of else ""))
        stream.flush()

    return draw


def _show_wait(address: str, size: int) -> None:
    text = f"{address[-48:]}: {size:,} bytes received" if address else ""
    sys.stderr.write(f"\r{text}\x1b[K")
    sys.stderr.flush()


def bar_text(task: str, done: int, of: int, seconds: float) -> str:
    """Return a bar over the line on a terminal: cells, counts and the estimated time left."""
    full = _CELLS * done // max(of, 1)
    left = f", {format_duration(seconds / done * (of - done) * 1e9)} left" if 0 < done < of else ""
    return f"\r{task} {'█' * full}{'·' * (_CELLS - full)} {done:,} of {of:,}{left}\x1b[K"
