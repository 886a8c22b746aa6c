"""When requests are due: a fixed rate, kept whatever the requests do."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any

from latencykit.errors import UsageError
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

__all__ = ["Schedule"]


class Schedule:
    """Slots at a fixed rate: iterate with ``for``, or with ``async for`` in a coroutine.

    A slot that comes late because the one before it took long keeps its time: what is measured from it has
    the waiting in it, so a stall is recorded with all the requests that it held up.

    Parameters
    ----------
    make : callable
        Due time (``perf_counter_ns``) → what is yielded.
    rate : float
        Slots per second.
    duration : str or float, optional
        Length of the schedule: ``"10s"``, or seconds. Without it and `count`, the schedule has no end.
    count : int, optional
        Number of slots.
    """

    def __init__(
        self,
        make: Callable[[int], Any],
        rate: float,
        duration: str | float | None = None,
        count: int | None = None,
    ) -> None:
        if not (math.isfinite(rate) and rate > 0):
            raise UsageError(f"a rate must be a positive number of requests per second, not {rate}")
        self._make, self.rate = make, rate
        timed = math.inf if duration is None else round(parse_duration(duration, "s") / 1e9 * rate)
        self.count = min(timed, math.inf if count is None else count)

    def __iter__(self) -> Iterator[Any]:
        for due in self._dues():
            wait = due - time.perf_counter_ns()
            if wait > 0:
                time.sleep(wait / 1e9)
            yield self._make(due)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for due in self._dues():
            await asyncio.sleep(max(0, due - time.perf_counter_ns()) / 1e9)
            yield self._make(due)

    def _dues(self) -> Iterator[int]:
        """Due times; computed from the number of the slot, so that rounding does not add up."""
        first, number = time.perf_counter_ns(), 0
        while number < self.count:
            yield first + round(number * 1e9 / self.rate)
            number += 1
