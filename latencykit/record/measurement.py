"""One measurement: a block, or every call of a function, sync or async."""

from __future__ import annotations

import functools
import inspect
import time
from typing import TYPE_CHECKING, Any, Self, TypeVar

from latencykit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    Put = Callable[[int, int, int, int, int], None]

__all__ = ["NO_DUE", "Measurement", "outcome_of"]

F = TypeVar("F", bound="Callable[..., Any]")
NO_DUE = -1
OK, ERROR, TIMEOUT, UNFINISHED = 0, 1, 2, 4
"""Positions in `latencykit.samples.OUTCOMES`."""


def outcome_of(error: type[BaseException] | None) -> int:
    """Return the outcome of a block that ended so: a timeout, an error, or cut off (Ctrl+C, cancelled)."""
    if error is None:
        return OK
    if issubclass(error, TimeoutError):
        return TIMEOUT
    return ERROR if issubclass(error, Exception) else UNFINISHED


class Measurement:
    """Measures a block (``with``, ``async with``) or a function (as a decorator).

    Parameters
    ----------
    put : callable
        Takes start, end, due (or −1), outcome and tag; times by ``perf_counter_ns``.
    due : int
        When the block was meant to start; −1 where it has no schedule.
    tag : int
        Position of the operation's name.
    """

    __slots__ = ("_due", "_put", "_start", "_tag")

    def __init__(self, put: Put, due: int, tag: int) -> None:
        self._put, self._due, self._tag = put, due, tag

    @property
    def due(self) -> int | None:
        """When the block was meant to start, by ``perf_counter_ns``; None where it has no schedule."""
        return None if self._due == NO_DUE else self._due

    def __enter__(self) -> Self:
        self._start = time.perf_counter_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._put(self._start, time.perf_counter_ns(), self._due, outcome_of(kind), self._tag)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.__exit__(kind, error, trace)

    def __call__(self, function: F) -> F:
        """Return `function`, every call of it measured.

        Raises
        ------
        UsageError
            For generators: their call only makes them; measure what drives them.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(
                f"{function.__name__} is a generator: calling it does no work yet; measure the loop over it, "
                "with recorder.measure()"
            )
        put, tag = self._put, self._tag
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def measured(*args: Any, **kwargs: Any) -> Any:
                with Measurement(put, NO_DUE, tag):
                    return await function(*args, **kwargs)
        else:

            @functools.wraps(function)
            def measured(*args: Any, **kwargs: Any) -> Any:
                with Measurement(put, NO_DUE, tag):
                    return function(*args, **kwargs)

        return measured  # type: ignore[return-value]
