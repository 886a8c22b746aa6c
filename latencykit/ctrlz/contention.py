"""The CPU time that a load generator and its server waited for, and who used it instead.

Linux counts for each thread how long it was ready to run and had no CPU. A machine that is busy
with something else makes latencies longer and rates lower, as an overloaded system does; only this
count tells the two apart. Elsewhere nothing is known, and the hiccups of a sleeping process remain.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record
from latencykit.ctrlz.freeze import listeners, stat_of, tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from latencykit._typing import Floats


RESOLUTION = 1_000_000
"""Of the delays, ns."""

_OFTEN, _SELDOM = 0.02, 1.0
"""Seconds from look to look at the threads, and at the processes."""
_MOST_EFFORT = 0.01
"""Share of the time that either kind of look may take."""
_FULL = 0.8
"""A thread that waited for this share of the time between two looks had not run at all."""
_LOCAL = re.compile(r"(?:127\.\d+\.\d+\.\d+|localhost|\[::1\]):(\d{1,5})\b")


@record()
class Contention:
    """Competition for the CPUs of this machine during a run.

    Attributes
    ----------
    late : ndarray of float64
        How late the load generator's most delayed thread was, ns per millisecond of the run.
    demand : float
        Share of what the load generator could use at most that it ran or was ready to run.
    others : float
        Share of the machine's CPU time that programs which take no part in the test used, or the
        hypervisor took.
    lost : float
        Share of its speed that the server lost to them at most; 0 for one that runs elsewhere.
    """

    late: Floats = field(default_factory=lambda: np.empty(0))
    demand: float = 0.0
    others: float = 0.0
    lost: float = 0.0


class Watch:
    """Watches a load generator, and the servers on local ports that its command names."""

    def __init__(self, client: int, command: Sequence[str]) -> None:
        ports = {int(port) for word in command for port in _LOCAL.findall(word)}
        self._leaders = [pid for port in ports for pid in listeners(port)]
        self._client, self._clients = client, set[str]()
        self._first: dict[str, tuple[int, int]] = {}
        self._last: dict[str, tuple[int, int]] = {}
        self._waits: list[tuple[float, float]] = []
        self._begin = self._seen = self._next = self._rescan = time.perf_counter()
        self._machine = _machine()
        if self._machine is None:
            self._next = math.inf
        else:
            self._ours = self._used()
        self.look()

    def _used(self) -> float:
        """Return the CPU seconds of all processes that take part, ended children included."""
        return sum(map(_seconds, tree([os.getpid(), *self._leaders])))

    def look(self) -> None:
        """Note who has waited since the last look; costs a fiftieth of the time at most."""
        now, begin = time.perf_counter(), time.thread_time()
        if now < self._next:
            return
        if now >= self._rescan:
            servers = tree(self._leaders) if self._leaders else []
            for thread, times in _threads(servers).items():
                self._first.setdefault(thread, times)
                self._last[thread] = times
            self._pids = tree([self._client])
            scanned = time.thread_time()
            self._rescan = now + max(_SELDOM, (scanned - begin) / _MOST_EFFORT)
            now, begin = time.perf_counter(), scanned
        threads = _threads(self._pids)
        waits = [times[1] - self._last.get(name, times)[1] for name, times in threads.items()]
        self._waits.append((now - self._seen, max(waits, default=0) / 1e9))
        self._last |= threads
        self._clients |= threads.keys()
        self._seen = now
        self._next = now + max(_OFTEN, (time.thread_time() - begin) / _MOST_EFFORT)

    def end(self) -> Contention:
        """Return what was seen; nothing on a system other than Linux."""
        machine = _machine()
        if self._machine is None or machine is None or not self._last:
            return Contention()
        self._next = self._rescan = 0.0
        self.look()
        elapsed = max(time.perf_counter() - self._begin, 1e-3)
        used = {
            name: np.subtract(times, self._first.get(name, (0, 0))) / (1e9 * elapsed)
            for name, times in self._last.items()
        }
        ready = sorted(float(used[name].sum()) for name in self._clients)
        alone = ready[-1] if ready and sum(ready[:-1]) < 0.5 else 0.0
        busy, stolen = np.subtract(machine, self._machine).tolist()
        others = (max(busy - (self._used() - self._ours), 0.0) + stolen) / elapsed
        cpus = os.cpu_count() or 1
        lost, servers = 0.0, [used[name] for name in used.keys() - self._clients]
        if servers and others:
            ran, waited = np.transpose(servers)
            lost = min(float(waited.max()), others / (float(ran.sum()) + others))
        late = _delays(self._waits, elapsed)
        return Contention(late, max(alone, sum(ready) / cpus), others / cpus, lost)


def _delays(waits: Sequence[tuple[float, float]], elapsed: float) -> Floats:
    """Return the delay of what is due each millisecond; waits of full windows are one."""
    stretches = [0.0]
    for window, waited in waits:
        stretches[-1] += waited
        if waited < _FULL * window:
            stretches.append(0.0)
    late = np.zeros(max(1, round(elapsed * 1e9 / RESOLUTION)))
    delays = [np.arange(1e9 * stretch, 0, -RESOLUTION) for stretch in stretches if stretch > 0.001]
    joined = np.concatenate(delays)[: late.size] if delays else late[:0]
    late[: joined.size] = joined
    return late


def _threads(pids: Iterable[int]) -> dict[str, tuple[int, int]]:
    """Return how long each thread ran, and waited to run, ns."""
    times: dict[str, tuple[int, int]] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - called 50 times a second
                with contextlib.suppress(OSError):
                    text = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text()
                    ran, waited, _ = map(int, text.split())
                    times[thread] = ran, waited
    return times


def _seconds(pid: int) -> float:
    """Return the CPU seconds of a process and of its ended children."""
    try:
        fields = stat_of(pid)
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _machine() -> tuple[float, float] | None:
    """Return the CPU seconds that programs used, and those that the hypervisor took."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system, _, _, _, _, stolen, *_ = map(int, fields[1:])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system) / tick, stolen / tick
