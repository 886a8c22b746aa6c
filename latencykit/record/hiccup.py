"""The hiccup meter: how late this machine wakes a process that only wants to sleep."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import numpy as np

import latencykit
from latencykit._arrays import ragged
from latencykit._files import whole
from latencykit._processes import own_command
from latencykit._records import record
from latencykit._typing import Ints
from latencykit.core.histogram_log import HistogramLog
from latencykit.errors import InvalidArgumentError, LatencyKitError
from latencykit.record.intervals import IntervalCounter, interval_width
from latencykit.units import format_duration, parse_duration

_FINEST = 50_000
_PIECE = 1 << 20  # slots expanded at a time: an hour's stop has millions


@record()
class HiccupProgress:
    """What a hiccup meter saw so far."""

    elapsed: float  # seconds since it began
    worst: float  # longest hiccup since the last call, ns
    max: float  # longest hiccup so far, ns


def hiccup(
    path: str | os.PathLike[str],
    *,
    duration: str | float | None = None,
    resolution: str | float = "1ms",
    interval: str | float = "1s",
    progress: Callable[[HiccupProgress], None] | None = None,
) -> HistogramLog:
    """Record this machine's own hiccups: what any program on it would have felt."""
    # A process of its own wants to wake at every slot of a fixed schedule. Each slot counts how
    # late it was noticed, so a stop of 3 s at 1 ms is recorded as the 3,000 slots that it delayed,
    # from 3 s down to nothing: what jHiccup back-fills with its resolution as expected interval is
    # measured here. The log says that it is from a schedule, and it must not be corrected again.
    # The clock is that child process: a stop of the calling process alone (``kill -STOP``) is not
    # counted, and Ctrl+Z, which stops both, is. Nothing is subtracted: an idle machine shows its
    # timer's own lateness, some 50 to 150 µs on Linux (jHiccup subtracts the shortest that it saw).
    #
    # The file appears, or replaces an older one, when the recording ends, with Ctrl+C too.
    step = int(parse_duration(resolution, "s"))
    if not _FINEST <= step <= 10**10:
        raise InvalidArgumentError(f"the resolution must be from 50 µs to 10 s, not {resolution!r}")
    end = None if duration is None else int(parse_duration(duration, "s"))
    if end is not None and end <= 0:
        raise InvalidArgumentError(f"the duration must be longer than nothing, not {duration!r}")
    width = interval_width(interval)
    version = latencykit.__version__
    head = [
        f"Logged with latencykit hiccup {version}, resolution {format_duration(step)}",
        "latencykit measure: response, corrected: schedule, loop: open",
    ]
    asked: BaseException | None = None
    elapsed = worst = longest = 0
    following = width
    with whole(Path(path)) as temporary, temporary.open("wb") as stream:
        counter = IntervalCounter(time.time(), width, 3, stream, head)
        try:
            with contextlib.closing(_sampled(step)) as samples:
                while end is None or elapsed < end:
                    rows = next(samples)
                    elapsed = int(rows[-1, 2])
                    if end is not None:  # the slots due before the end, however late noticed
                        elapsed = min(elapsed, end)
                        rows = rows[rows[:, 0] * step < end]
                        rows[:, 1] = np.minimum(rows[:, 1], (end - 1) // step)
                    for now, late in lateness(rows, step):
                        counter.add(now if end is None else np.minimum(now, end - 1), late)
                        worst = max(worst, int(late.max()))
                    counter.advance(elapsed)
                    if elapsed >= following:
                        longest = max(longest, worst)
                        if progress is not None:
                            progress(HiccupProgress(elapsed / 1e9, worst, longest))
                        worst, following = 0, (elapsed // width + 1) * width
        except (KeyboardInterrupt, SystemExit) as ended:  # what was recorded is a log
            asked = ended
        finally:
            counter.finish(elapsed)
    if asked is not None:
        raise asked
    from latencykit.io.reading import read

    log = read(path)
    assert isinstance(log, HistogramLog)
    return log


def _sampled(step: int) -> Generator[Ints, None, None]:
    """First slot, last slot and time (ns from slot 0) of each wake-up; never ends by itself."""
    command = own_command("latencykit.record.sampler", str(step))
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as sampler:  # noqa: S603
        assert sampler.stdout is not None
        origin, rest = None, b""
        try:
            while data := sampler.stdout.read(1 << 16):
                data = rest + data
                complete = len(data) // 24 * 24
                rows = np.frombuffer(data[:complete], np.int64).reshape(-1, 3)
                rest = data[complete:]
                if origin is None and len(rows):
                    origin, rows = int(rows[0, 0]), rows[1:]
                if origin is not None and len(rows):
                    yield rows - np.array([0, 0, origin])
            raise LatencyKitError("the process that measures hiccups was ended from outside")
        finally:
            sampler.kill()


def lateness(rows: Ints, step: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield times and lateness of slots, ns from slot 0; `rows`: first slot, last slot, time."""
    sizes = rows[:, 1] - rows[:, 0] + 1
    for large in rows[sizes > _PIECE].tolist():
        for first in range(large[0], large[1] + 1, _PIECE):
            slots = np.arange(first, min(first + _PIECE, large[1] + 1))
            yield np.full(slots.size, large[2]), large[2] - slots * step
    rows, sizes = rows[sizes <= _PIECE], sizes[sizes <= _PIECE]
    if rows.size:
        row, place = ragged(sizes)
        slots, now = rows[row, 0] + place, rows[row, 2]
        yield now, np.maximum(now - slots * step, 0)
