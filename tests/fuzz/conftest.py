"""What is slow, or never ends, fails instead of holding everything up."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 30.0  # seconds of processor time, which other work on the machine does not use up


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """Interrupt a test that takes too long."""

    def stop(*_: object) -> None:
        raise AssertionError(f"not done within {LIMIT:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
