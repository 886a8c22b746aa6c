"""Freezing processes, and always thawing them: ``python -m latencykit.ctrlz.freeze TARGET…`` is the watchdog.

The watchdog is a process and a session of its own. It stops the targets when its parent says so, and continues them when
the time is over or its input ends, whichever comes first: a parent that is killed, however hard, thaws them by dying.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from latencykit.errors import InvalidArgumentError, LatencyKitError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Freezer", "Window", "ancestors"]

LONGEST = 600.0
"""No freeze is longer than this, seconds."""


@dataclass(frozen=True)
class Window:
    """When processes was stopped, by ``perf_counter_ns``.

    Attributes
    ----------
    start, end : int
    """

    start: int
    end: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end - self.start) / 1e9


class Freezer:
    """Freezes processes through a watchdog; a context manager that leaves nothing frozen behind."""

    def __init__(self, targets: Sequence[int]) -> None:
        if sys.platform == "win32":
            raise InvalidArgumentError(
                "Windows cannot stop a process (it has no SIGSTOP); run this on Linux or macOS, or in WSL"
            )
        self.targets = tuple(targets)
        for target in self.targets:
            _check(target)
        command = [sys.executable, "-m", "latencykit.ctrlz.freeze", "--", *map(str, self.targets)]
        self._dog = subprocess.Popen(  # noqa: S603 - our own
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._hear("ready")

    def stop(self, seconds: float) -> int:
        """Freeze the targets for so long; return when (``perf_counter_ns``) as soon as they stop."""
        if not 0 < seconds <= LONGEST:
            raise InvalidArgumentError(
                f"a stall must be longer than nothing and at most {LONGEST:g} s, not {seconds:g} s"
            )
        assert self._dog.stdin is not None
        self._dog.stdin.write(f"{seconds}\n")
        self._dog.stdin.flush()
        self._start = self._hear("stopped")
        return self._start

    def wait(self) -> Window:
        """Wait for the thaw that a `stop` has set the time of."""
        return Window(self._start, self._hear("thawed"))

    def _hear(self, event: str) -> int:
        assert self._dog.stdout is not None
        line = self._dog.stdout.readline()
        said: dict[str, Any] = json.loads(line) if line else {"error": "the watchdog was ended"}
        if "error" in said:
            raise LatencyKitError(f"the server could not be frozen: {said['error']}")
        return int(said[event])

    def close(self) -> None:
        """Thaw whatever is frozen, and end the watchdog."""
        _signal(self.targets, signal.SIGCONT)  # even if somebody killed the watchdog
        for pipe in (self._dog.stdin, self._dog.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._dog.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ancestors(pid: int) -> list[int]:
    """Return a process and those that started it, as far as ``/proc`` or ``ps`` tell."""
    line: list[int] = []
    while pid > 0 and pid not in line:
        line.append(pid)
        pid = _parent(pid)
    return line


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        pass
    answer = subprocess.run(  # noqa: S603 - a number that we read
        ["ps", "-o", "ppid=", "-p", str(pid)],  # noqa: S607 - wherever the system keeps it
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return int(answer.stdout.strip() or 0)


def _check(target: int) -> None:
    try:
        ours = ancestors(os.getpid())
        if target in (0, -1) or target in ours or (target < 0 and os.getpgid(0) == -target):
            raise InvalidArgumentError(
                f"process {target} is this program, or has started it; it cannot be frozen"
            )
        os.kill(target, 0)
    except ProcessLookupError:
        raise InvalidArgumentError(f"there is no process {target}") from None
    except PermissionError:
        raise InvalidArgumentError(
            f"process {target} belongs to somebody else; it cannot be frozen"
        ) from None


def _signal(targets: Sequence[int], number: int) -> str:
    """Signal all targets, and return what went wrong with some."""
    wrong = []
    for target in targets:
        try:
            os.kill(target, number)
        except OSError as error:
            wrong.append(f"process {target}: {error.strerror}")
    return "; ".join(wrong)


# ------------------------------------------------------------ the watchdog


def watch(targets: Sequence[int], commands: IO[str]) -> None:
    """Freeze on command, thaw in time, and thaw when the commands end."""
    try:
        _say(ready=time.perf_counter_ns())
        while line := commands.readline():
            wrong = _signal(targets, signal.SIGSTOP)
            if wrong or not _all_stopped(targets):
                _signal(targets, signal.SIGCONT)
                _say(error=wrong or "it did not stop within a second")
                continue
            start = time.perf_counter_ns()
            _say(stopped=start)
            remaining = float(line) - (time.perf_counter_ns() - start) / 1e9
            gone, _, _ = select.select([commands], [], [], max(remaining, 0.0))
            end = time.perf_counter_ns()
            _signal(targets, signal.SIGCONT)
            if gone:
                return
            _say(thawed=end)
    finally:
        _signal(targets, signal.SIGCONT)


def _all_stopped(targets: Sequence[int]) -> bool:
    """Whether every target is stopped, as far as ``/proc`` tells; it is given a second."""
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        if all(_state(target) in ("T", "") for target in targets if target > 0):
            return True
        time.sleep(0.001)
    return False


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _say(**message: int | str) -> None:
    with contextlib.suppress(
        BrokenPipeError
    ):  # the parent is gone; its end is seen at the next read
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Run the watchdog."""
    for name in ("SIGINT", "SIGHUP", "SIGTERM"):  # it leaves when its parent does, and not before
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    watch([int(word) for word in sys.argv[1:] if word != "--"], sys.stdin)
    os._exit(0)  # nobody reads what a broken pipe could not take


if __name__ == "__main__":
    main()
