"""Progress on a terminal: a bar for what is counted, seconds for what is not."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from latencykit.cli.options import is_quiet, note
from latencykit.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

_CELLS = 24


def is_terminal(stream: TextIO | None) -> bool:
    """Return True if somebody reads the stream on a screen."""
    return stream is not None and stream.isatty()


def reading_bar() -> Callable[[int, int], None]:
    """Return a function of (done, of all) that draws a bar on standard error, if a terminal.

    While a server is waited for, its address is shown in the place of the bar.
    """
    from latencykit.io.files import on_wait

    stream = sys.stderr
    if is_quiet() or not is_terminal(stream):
        return lambda *_: None
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


@contextlib.contextmanager
def progress(task: str) -> Iterator[None]:
    """Report on a terminal a task that takes longer than a second."""
    import threading

    if not is_terminal(sys.stderr):
        yield
        return
    done = threading.Event()

    def report() -> None:
        began = time.monotonic()
        while not done.wait(1.0):
            note(f"{task} … {time.monotonic() - began:.0f} s")

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
