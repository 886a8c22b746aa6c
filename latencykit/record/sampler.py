"""A process that sleeps and reads the clock: ``python -m latencykit.record.sampler NANOSECONDS``.

It is a process of its own, without numpy and without garbage collection, so that what counts and
writes cannot disturb what measures. It writes rows of three int64 to its standard output: the first
slot that was due since it last looked, the last one, and the time when it looked; the first row is
the time of slot 0 in all three places.
"""

from __future__ import annotations

import array
import collections
import contextlib
import gc
import os
import signal
import sys
import time

BATCH_NS = 50_000_000
"""Rows are sent this often."""


def sample(resolution: int, out: int) -> None:
    """Sleep from slot to slot until nobody reads any more."""
    clock, sleep = time.perf_counter_ns, time.sleep
    if sys.platform != "win32":
        os.set_blocking(out, False)  # a reader that is stopped must not stop the clock
    origin = sent = clock()
    rows, slot = array.array("q", [origin] * 3), 1
    unsent: collections.deque[bytes] = collections.deque()
    while True:
        wait = origin + slot * resolution - clock()
        if wait > 0:
            sleep(wait / 1e9)
        now = clock()
        last = max(slot, (now - origin) // resolution)
        rows.extend((slot, last, now))
        slot = last + 1
        if now - sent > BATCH_NS:
            unsent.append(rows.tobytes())
            rows, sent = array.array("q"), now
            # Write what the pipe takes at once; the rest keeps its place.
            with contextlib.suppress(BlockingIOError):
                while unsent:
                    unsent[0] = unsent[0][os.write(out, unsent[0]) :]
                    if not unsent[0]:
                        unsent.popleft()


if __name__ == "__main__":
    # Ctrl+C reaches the whole group; the parent decides
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    try:
        sample(int(sys.argv[1]), sys.stdout.fileno())
    except BrokenPipeError:
        os._exit(0)  # the parent is gone; nothing is left to flush
