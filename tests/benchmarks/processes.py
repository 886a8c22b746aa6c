"""Whole processes, measured in turns: processor seconds, wall seconds, and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Cost", "answered", "measure", "python"]


class Cost(NamedTuple):
    """What one process took."""

    cpu: float
    wall: float
    peak: float


def python(code: str, *arguments: object) -> list[str]:
    """Return the command that runs `code` in this Python."""
    return [sys.executable, "-c", code, *map(str, arguments)]


def answered(command: Sequence[str]) -> str:
    """Return what a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _once(command: Sequence[str]) -> Cost:
    # One BLAS thread, as the command line sets it: the others spin, which counts as work.
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
    assert process.stderr is not None
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed: {message.decode()[-500:]}")
    scale = 1 if sys.platform == "darwin" else 1024
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(cpu, time.perf_counter() - began, usage.ru_maxrss * scale / 1e6)


def measure(jobs: Mapping[str, Sequence[str]], rounds: int) -> dict[str, Cost]:
    """Return the least time and the largest peak; jobs take turns, so that a slow moment hits all.

    Other work on the machine only adds to the time of a process.
    """
    runs: dict[str, list[Cost]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, command in jobs.items():
            runs[name].append(_once(command))
    found = {}
    for name, costs in runs.items():
        cpu, wall, peak = zip(*costs, strict=True)
        found[name] = Cost(min(cpu), min(wall), max(peak))
    return found
