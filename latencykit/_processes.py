"""How our own processes start, importing nothing that lies beside a log, and how threads wait."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path


def own_command(module: str, *options: str) -> list[str]:
    """Return the command that runs a module; the current folder is not searched for modules."""
    return [sys.executable, "-P", "-m", module, *options]


@contextlib.contextmanager
def environment(variable: str, value: str) -> Iterator[None]:
    """Set an environment variable while the block runs; processes that it starts have it, too."""
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = before


def safe_path() -> contextlib.AbstractContextManager[None]:
    """Have Python processes that a library starts in the block search no current folder either."""
    return environment("PYTHONSAFEPATH", "1")


def thread_times(pids: Iterable[int]) -> dict[str, tuple[int, int]]:
    """Return how long each thread ran, and waited to run, ns, as Linux accounts it."""
    times: dict[str, tuple[int, int]] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - called very often
                with contextlib.suppress(OSError):
                    text = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text()
                    ran, waited, _ = map(int, text.split())
                    times[thread] = ran, waited
    return times


def interruptions() -> int:
    """Return how often this thread was interrupted, 0 where the system does not say."""
    try:
        from resource import RUSAGE_THREAD, getrusage
    except ImportError:
        return 0
    return getrusage(RUSAGE_THREAD).ru_nivcsw
