"""Ctrl+C and other requests to end: in order, so that nothing half-written stays behind."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["in_order"]

_LATER = 0.02  # seconds
_PATIENCE = 250  # times


@contextlib.contextmanager
def in_order() -> Iterator[None]:
    """End by an exception where a signal asks to: `KeyboardInterrupt`, or `SystemExit` with the status that shells know.

    Whoever ignores a signal, or handles it himself, is left alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    if hasattr(signal, "SIGHUP"):
        usual[signal.SIGHUP] = signal.SIG_DFL
    held = {
        number: handler for number, handler in usual.items() if signal.getsignal(number) is handler
    }
    end = _End()
    for number in held:
        signal.signal(number, end)
    try:
        yield
    finally:
        end.give_up()
        for number, handler in held.items():
            signal.signal(number, handler)


class _End:
    """Ends what is running, but a little later where that is no moment to end at.

    Compiled modules abort the interpreter when their import is cut in two, and a process that is just being started would
    complain of a parent who never told it what to do.
    """

    def __init__(self) -> None:
        self._waited = 0
        self._before: Any = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if hasattr(signal, "setitimer") and self._waited < _PATIENCE and _untimely(frame):
            if not self._waited:
                self._before = signal.getsignal(signal.SIGALRM)
            self._waited += 1
            signal.signal(signal.SIGALRM, lambda _, later: self(number, later))
            signal.setitimer(signal.ITIMER_REAL, _LATER)
            return
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def give_up(self) -> None:
        """Let what ended by itself be: an alarm that rings while the interpreter shuts down would kill it."""
        if self._waited:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before or signal.SIG_DFL)


def _untimely(frame: FrameType | None) -> bool:
    while frame is not None:
        if (
            frame.f_code.co_filename.startswith("<frozen importlib")
            or "popen_spawn" in frame.f_code.co_filename
        ):
            return True
        frame = frame.f_back
    return False
