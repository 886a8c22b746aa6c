"""Commands that end when this program does: ``python -m latencykit.ctrlz.guard CHANNEL CMD…``.

The guard is a process between us and the command. Its standard input is a pipe that closes when we
end, by whatever signal: then it ends the command's process group. If the guard itself is killed, we
end the group, and on Linux the kernel ends the command. Over the file descriptor CHANNEL it sends
one JSON object per line: the command's process id or the error of its start, then its exit status.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

from latencykit._processes import own_command

_PATIENCE = 0.4
"""Seconds from SIGTERM to SIGKILL where this program has been killed."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Guarded:
    """A command in a session of its own, whose processes end with this program."""

    # Its `pid` is that of its process group, too.

    def __init__(
        self, command: Sequence[str], stdout: int | IO[bytes], stderr: int | IO[bytes] | None = None
    ) -> None:
        ours, theirs = os.pipe()
        self._channel = os.fdopen(ours, encoding="utf-8")
        try:
            self._guard = subprocess.Popen(  # noqa: S603 - the user's own command
                own_command("latencykit.ctrlz.guard", str(theirs), *command),
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(theirs,),
                start_new_session=True,
            )
        except BaseException:
            self._channel.close()
            raise
        finally:
            os.close(theirs)
        self._code: int | None = None
        self._ended = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        message = json.loads(self._channel.readline() or '{"errno": 0}')
        self.pid = int(message.get("pid", 0))
        self._listener.start()
        if not self.pid:
            self._close()
            raise OSError(message["errno"], os.strerror(message["errno"]), command[0])

    def _listen(self) -> None:
        """Wait for the exit status, or the guard's own end."""
        line = self._channel.readline()
        self._code = json.loads(line)["code"] if line else -signal.SIGKILL
        if not line and self.pid:
            _end(self.pid, signal.SIGKILL)
        self._ended.set()

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while the command runs."""
        return self._code

    def wait(self, seconds: float) -> bool:
        """Wait for the command's end; return False if it does not end in time."""
        return self._ended.wait(max(0.0, seconds))

    def end(self, patience: float = 0.0) -> None:
        """End all processes of the group: at once, or by SIGTERM and after `patience` seconds."""
        if patience:
            _end(self.pid, signal.SIGTERM)
            self.wait(patience)
        _end(self.pid, signal.SIGKILL)
        self.wait(_PATIENCE)
        self._close()

    def _close(self) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()
        self._listener.join()
        self._channel.close()


def _end(group: int, number: signal.Signals) -> None:
    # macOS reports "not permitted" for a group of zombies. A frozen process must go on to end.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        os.killpg(group, signal.SIGCONT)


# ------------------------------------------------------------ the guard

_ENDINGS = (signal.SIGINT, signal.SIGTERM) + (() if sys.platform == "win32" else (signal.SIGHUP,))


def _prepare() -> None:
    """Make the command, before it is executed, end with the guard (on Linux)."""
    for number in _ENDINGS:
        signal.signal(number, signal.SIG_DFL)
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _control(option: int, value: int) -> None:
    """Set an option of this process (on Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value)


def _say(**message: int | None) -> None:
    # A parent that is gone shows at standard input.
    with contextlib.suppress(BrokenPipeError):
        os.write(int(sys.argv[1]), json.dumps(message).encode() + b"\n")


def main() -> None:
    """Run a command; end its process group when standard input ends."""
    for number in _ENDINGS:  # only its parent ends it
        signal.signal(number, signal.SIG_IGN)
    _control(_PR_SET_CHILD_SUBREAPER, 1)  # what forks twice is its child in the end
    wakes, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            sys.argv[2:],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_prepare,  # noqa: PLW1509 - the guard has one thread
        )
    except OSError as error:
        _say(errno=error.errno)
        return
    _say(pid=process.pid)
    watched = [0, wakes]
    while 0 not in (readable := select.select(watched, [], [])[0]):
        os.read(wakes, 4096)
        if wakes in readable and process.poll() is not None:
            _say(code=process.returncode)
            watched.remove(wakes)
    if process.poll() is None:
        _end(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
    _end(process.pid, signal.SIGKILL)
    # Kill the processes that have become this one's children, whatever their session (Linux).
    from latencykit.ctrlz.freeze import tree

    deadline = time.monotonic() + _PATIENCE
    while sys.platform == "linux" and time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        children = tree([os.getpid()])[1:]
        if not children:
            return
        for child in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.005)


if __name__ == "__main__":
    main()
