"""Ctrl+C and other requests to end: orderly, so that nothing half-written stays behind."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType

_COMPILED = frozenset(
    {"numpy", "scipy", "pandas", "matplotlib", "pyarrow", "dask", "distributed", "zstandard"}
)
"""Packages of compiled modules, some of which abort the interpreter if an exception interrupts
their import."""


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
    deferral = _Deferral()
    sys.meta_path.insert(0, deferral)
    for number in before:
        signal.signal(number, deferral.handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.meta_path.remove(deferral)


class _Deferral:
    """A signal handler that waits while a compiled package is imported, and a finder of these."""

    # `signal.pthread_sigmask` would not do: it blocks a signal in one thread only, and Python runs
    # the handler in the main thread whichever thread received it.

    def __init__(self) -> None:
        self._importing = False
        self._pending: int | None = None

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """End, unless a compiled package is being imported: then remember to."""
        if self._importing:
            self._pending = number
        else:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Find a compiled package whose import handles pending signals at its end."""
        main = threading.current_thread() is threading.main_thread()
        if self._importing or not main or name.partition(".")[0] not in _COMPILED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            self._importing = True
            try:
                load(module)
            finally:
                self._importing = False
                if self._pending is not None:
                    self.handle(self._pending, None)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
