"""How many threads decode one file, and work done by threads with its results in order."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from latencykit.errors import InvalidArgumentError

VARIABLE = "LATENCYKIT_JOBS"

THREADS = sys.platform != "emscripten"
"""Whether threads and processes can be started; a web page has neither."""

T = TypeVar("T")
R = TypeVar("R")


def jobs(given: int | None = None) -> int:
    """Return how many threads decode one file, and how many processes read several files."""
    # As `given`, else as ``LATENCYKIT_JOBS`` says, else one per usable core. But one in a thread
    # other than the main one and in a process of a pool, such as the workers of Dask have: there,
    # others are at work beside it.
    if given is not None:
        return given
    stated = os.environ.get(VARIABLE, "").strip()
    if stated:
        if not (stated.isascii() and stated.isdigit() and int(stated)):
            raise InvalidArgumentError(
                f"{VARIABLE} is {stated!r}; it must be a number of threads, such as 4"
            )
        return int(stated)
    processes: Any = sys.modules.get("multiprocessing.process")  # of a child it is there
    in_pool = processes is not None and processes.parent_process() is not None
    beside = threading.current_thread() is not threading.main_thread()
    if not THREADS or in_pool or beside:
        return 1
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def in_order(items: Iterable[T], work: Callable[[T], R], threads: int) -> Iterator[R]:
    """Yield the result of `work` for each item, in order; a few items are worked on ahead."""
    # Items are taken, and results given out, in the thread that asks for them. An error of `work`
    # is raised in place of its result, one of the items after the results of those before it. With
    # one thread, the asking thread does the work.
    if threads == 1 or not THREADS:
        yield from map(work, items)
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    pool = ThreadPoolExecutor(threads, "latencykit")
    waiting: deque[Future[R]] = deque()
    source, failed = iter(items), None
    try:
        while failed is None:
            try:
                item = next(source)
            except StopIteration:
                break
            except Exception as error:  # noqa: BLE001 - raised below
                failed = error
                break
            try:
                waiting.append(pool.submit(work, item))
            except RuntimeError:  # no thread can be started
                done: Future[R] = Future()
                done.set_result(work(item))
                waiting.append(done)
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    if failed is not None:
        raise failed


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items, none of them None; a thread makes the next ones meanwhile."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, "latencykit") as thread:
        try:
            coming = deque([thread.submit(next, items, None) for _ in range(2)])
        except RuntimeError:  # no thread can be started
            yield from items
            return
        while (item := coming.popleft().result()) is not None:
            coming.append(thread.submit(next, items, None))
            yield item
