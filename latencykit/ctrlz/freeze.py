"""Freeze processes, and always thaw them.

``python -m latencykit.ctrlz.freeze TARGET…`` is the watchdog, a process and a session of its own.
It stops the targets when its parent asks for it, and continues them when the time is over or its
input ends, whichever comes first: a parent that is killed, by whatever signal, thaws them by dying.
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
    """The time that processes were stopped, by ``perf_counter_ns``.

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
                "Windows cannot stop a process (it has no SIGSTOP); "
                "run this on Linux or macOS, or in WSL"
            )
        self.targets = tuple(targets)
        ours = ancestors(os.getpid())
        for target in self.targets:
            try:
                if target in (0, -1, *ours) or (target < 0 and os.getpgid(0) == -target):
                    raise InvalidArgumentError(
                        f"process {target} is this program, or has started it; it cannot be frozen"
                    )
                os.kill(target, 0)
            except ProcessLookupError:
                raise InvalidArgumentError(f"process {target} does not exist") from None
            except PermissionError:
                raise InvalidArgumentError(
                    f"process {target} belongs to another user; it cannot be frozen"
                ) from None
        command = [sys.executable, "-m", "latencykit.ctrlz.freeze", "--", *map(str, self.targets)]
        self._watchdog = subprocess.Popen(  # noqa: S603 - our own
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._receive("ready")

    def stop(self, seconds: float) -> int:
        """Freeze the targets; return the time (``perf_counter_ns``) as soon as they stop."""
        if not 0 < seconds <= LONGEST:
            raise InvalidArgumentError(
                f"a stall must be longer than nothing and at most {LONGEST:g} s, not {seconds:g} s"
            )
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{seconds}\n")
        self._watchdog.stdin.flush()
        self._start = self._receive("stopped")
        return self._start

    def wait(self) -> Window:
        """Wait for the end of the stall that `stop` began."""
        return Window(self._start, self._receive("thawed"))

    def _receive(self, event: str) -> int:
        assert self._watchdog.stdout is not None
        line = self._watchdog.stdout.readline()
        message: dict[str, Any] = json.loads(line) if line else {"error": "the watchdog was ended"}
        if "error" in message:
            raise LatencyKitError(f"the server could not be frozen: {message['error']}")
        return int(message[event])

    def close(self) -> None:
        """Thaw whatever is frozen, and end the watchdog."""
        _signal(self.targets, signal.SIGCONT)  # even if somebody killed the watchdog
        for pipe in (self._watchdog.stdin, self._watchdog.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._watchdog.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ancestors(pid: int) -> list[int]:
    """Return a process and those that started it, by ``/proc`` or ``ps``."""
    line: list[int] = []
    while pid > 0 and pid not in line:
        line.append(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            answer = subprocess.run(  # noqa: S603 - a number that we read
                ["ps", "-o", "ppid=", "-p", str(pid)],  # noqa: S607 - wherever the system keeps it
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            pid = int(answer.stdout.strip() or 0)
    return line


def _signal(targets: Sequence[int], number: int) -> str:
    """Signal all targets; return the errors."""
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
            if wrong or not _stopped_within(targets, 1.0):
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


def _stopped_within(targets: Sequence[int], seconds: float) -> bool:
    """Wait until every target is stopped, as far as ``/proc`` shows; False if that takes longer."""
    deadline = time.monotonic() + seconds
    waiting = [target for target in targets if target > 0]
    while time.monotonic() < deadline:
        running = []
        for target in waiting:
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{target}/stat").read_text().rpartition(")")[2].split()
                running += [target] if fields[0] != "T" else []
        if not running:
            return True
        waiting = running
        time.sleep(0.001)
    return False


def _say(**message: int | str) -> None:
    # A parent that is gone shows at the next read.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Run the watchdog."""
    for name in ("SIGINT", "SIGHUP", "SIGTERM"):  # it ends when its parent does
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    watch([int(word) for word in sys.argv[1:] if word != "--"], sys.stdin)
    os._exit(0)  # nobody reads what a broken pipe could not take


if __name__ == "__main__":
    main()
