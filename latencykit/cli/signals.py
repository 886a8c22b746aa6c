"""Ctrl+C and other requests to end: orderly, so that nothing half-written stays behind."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_COMPILED = frozenset(
    {"numpy", "scipy", "pandas", "matplotlib", "pyarrow", "dask", "distributed", "zstandard"}
)
"""Packages of compiled modules, some of which abort the interpreter if an exception interrupts
their import."""

_AGAIN = 0.02
"""Seconds until a signal that came during such an import is looked at again."""


@contextlib.contextmanager
def handle_signals() -> Iterator[None]:
    """Turn signals that ask to end into exceptions: `KeyboardInterrupt`, or `SystemExit`."""
    # Signals that are ignored, or have another handler, are left alone.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    if hasattr(signal, "SIGHUP"):
        defaults[signal.SIGHUP] = signal.SIG_DFL
    before = {
        number: handler
        for number, handler in defaults.items()
        if signal.getsignal(number) is handler
    }
    for number in before:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    """End, unless a compiled package is being imported: then the signal comes again soon."""
    # `signal.pthread_sigmask` would not do: it blocks a signal in one thread only, and Python runs
    # the handler in the main thread whichever thread received it.
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if frame.f_code.co_name == "<module>" and package in _COMPILED:
            again = threading.Timer(_AGAIN, _send, (number,))
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _send(number: int) -> None:
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:  # wakes the thread where it waits
        signal.pthread_kill(main, number)
    else:
        signal.raise_signal(number)
