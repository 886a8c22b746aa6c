"""Freeze processes, and always thaw them.

``python -m latencykit.ctrlz.freeze`` is the watchdog, a process and a session of its own. It stops
the targets that its parent names, with all their descendants, and continues them when the time is
over or its input ends, whichever comes first: a parent that is killed, by whatever signal, thaws
them by dying. A watchdog that is itself killed, or does not answer in time, leaves a file in the
runtime folder by which its parent thaws, or the next command if both were killed (`thaw_left`). A
target is a process id, or a process group as a negative number.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from latencykit._files import runtime_folder
from latencykit._processes import own_command
from latencykit._text import printable
from latencykit.errors import InvalidArgumentError, LatencyKitError
from latencykit.units import format_duration

if TYPE_CHECKING:
    from latencykit._typing import JSONObject

_PATIENCE = 5.0  # seconds for a watchdog to answer
LONGEST = 600.0
"""No freeze and no run is longer than this, seconds."""


class Freezer:
    """Freezes processes through a watchdog; a context manager that leaves nothing frozen behind."""

    def __init__(self, targets: Sequence[int]) -> None:
        if sys.platform == "win32":
            raise InvalidArgumentError(
                "Windows cannot stop a process (it has no SIGSTOP); "
                "run this on Linux or macOS, or in WSL"
            )
        self.targets = _checked(targets)
        # An interrupt waits until the watchdog ignores it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._watchdog = subprocess.Popen(  # noqa: S603 - our own
                own_command("latencykit.ctrlz.freeze"), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, start_new_session=True,
            )  # fmt: skip
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._messages: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._receive("ready")

    def _listen(self) -> None:
        """Queue the watchdog's messages; thaw at once if somebody kills it."""
        assert self._watchdog.stdout is not None
        for line in self._watchdog.stdout:
            self._messages.put(line)
        if self._watchdog.wait():
            thaw_left()
        self._messages.put("")

    def stop(self, seconds: float, targets: Sequence[int] | None = None) -> int:
        """Freeze the targets; return the time (``perf_counter_ns``) as soon as they stop."""
        # `targets` are those of now, where they are not those of the beginning: servers start
        # processes as they need them.
        if targets is not None:
            self.targets = _checked(targets)
        if not 0 < seconds <= LONGEST:
            raise InvalidArgumentError(
                "a stall must be longer than nothing and at most "
                f"{format_duration(LONGEST * 1e9)}, not {format_duration(seconds * 1e9)}"
            )
        self._seconds = seconds
        assert self._watchdog.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its output has ended, too
            self._watchdog.stdin.write(json.dumps([seconds, *self.targets]) + "\n")
            self._watchdog.stdin.flush()
        return self._receive("stopped")

    def wait(self) -> int:
        """Wait for the end of the stall that `stop` began; return its time."""
        return self._receive("thawed", self._seconds + _PATIENCE)

    @property
    def by_hand(self) -> str:
        """The command that thaws the targets of now."""
        pids = " ".join(map(str, _expanded(self.targets, processes())))
        return pids and f"kill -CONT {pids}"

    def _receive(self, event: str, seconds: float | None = None) -> int:
        try:
            line = self._messages.get(timeout=seconds)
        except queue.Empty:  # somebody stopped it
            self._watchdog.kill()
            line = ""
        message: JSONObject = json.loads(line) if line else {"error": "the watchdog was ended"}
        if "error" in message:
            raise LatencyKitError(f"the server could not be frozen: {message['error']}")
        return int(message[event])

    def close(self) -> None:
        """Thaw whatever is frozen, and end the watchdog."""
        assert self._watchdog.stdin is not None
        assert self._watchdog.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._watchdog.stdin.close()
        self._listener.join(_PATIENCE)
        if self._listener.is_alive():
            self._watchdog.kill()
            self._listener.join()
        self._watchdog.stdout.close()

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
            pid = int(stat_of(pid)[1])
        except OSError:
            pid = int(_ps("-o", "ppid=", "-p", str(pid)) or 0)
    return line


def stat_of(pid: int | str) -> list[str]:
    """Return what ``/proc`` says of a process after its name: state, parent and so on."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def _ps(*options: str) -> str:
    """What ``ps`` prints, wherever the system keeps it."""
    answer = subprocess.run(["ps", *options], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return answer.stdout.strip()


def _checked(targets: Sequence[int]) -> tuple[int, ...]:
    """Return the targets; refuse this program, and what does not exist or belongs to others."""
    ours = ancestors(os.getpid())
    for target in targets:
        try:
            members, owner = {target}, target
            if target < 0:
                members = {pid for pid, one in processes().items() if one.group == -target}
            else:
                owner = _process_of(target)
            if target == 0:
                raise InvalidArgumentError(
                    "process 0 is none: a process has a number from 1; name that of the server"
                )
            if target == -1 or {owner, *members} & {*ours}:
                raise InvalidArgumentError(
                    f"process {target} is this program, or has started it; it cannot be frozen"
                )
            if owner != target:
                raise InvalidArgumentError(
                    f"{target} is a thread of process {owner}; name the process"
                )
            os.kill(target, 0)
        except ProcessLookupError:
            raise InvalidArgumentError(f"process {target} does not exist") from None
        except PermissionError:
            raise InvalidArgumentError(
                f"process {target} belongs to another user; it cannot be frozen"
            ) from None
    return tuple(targets)


def _process_of(pid: int) -> int:
    """The process that a thread belongs to; signals go to all threads of it."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("Tgid:"):
                return int(line.split()[1])
    return pid


class Process(NamedTuple):
    """What the system says of a process; its start is empty where only ``ps`` knows it."""

    parent: int
    group: int
    state: str
    start: str


def processes() -> dict[int, Process]:
    """Return all processes by their ids, from ``/proc`` or ``ps``."""
    table: dict[int, Process] = {}
    for pid in filter(str.isdecimal, _names_in("/proc")):
        with contextlib.suppress(OSError):
            state, parent, group, *rest = stat_of(pid)
            table[int(pid)] = Process(int(parent), int(group), state, rest[16])
    for line in () if table else _ps("-A", "-o", "pid=,ppid=,pgid=,state=").splitlines():
        pid, parent, group, state = line.split()[:4]
        table[int(pid)] = Process(int(parent), int(group), state[0], "")
    return table


def _names_in(folder: str | Path) -> list[str]:
    """What a folder holds: nothing if it is gone, as another command's may be at any moment."""
    with contextlib.suppress(OSError):
        return [path.name for path in Path(folder).iterdir()]
    return []


def tree(pids: Sequence[int], table: dict[int, Process] | None = None) -> list[int]:
    """Return processes and their descendants, parents first."""
    table = processes() if table is None else table
    family = list(pids)
    for pid in family:  # grows while it is walked
        family += [child for child, process in table.items() if process.parent == pid]
    return list(dict.fromkeys(family))


def program(pid: int) -> str:
    """Return the name of a process, by ``/proc`` or ``ps``; "process" where it is unknown."""
    with contextlib.suppress(OSError):
        return printable(Path(f"/proc/{pid}/comm").read_text(errors="replace").strip())
    return printable(_ps("-o", "comm=", "-p", str(pid))) or "process"


def tcp_sockets(
    tables: Sequence[str] = ("/proc/net/tcp", "/proc/net/tcp6"),
) -> list[tuple[list[int], str, list[str]]] | None:
    """Return ports (local, remote), state and all fields of each TCP socket."""
    # None without the tables that only Linux has.
    sockets = None
    for table in tables:
        with contextlib.suppress(OSError):
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
            sockets = sockets or []
            for fields in map(str.split, lines):
                ports = [int(end.rpartition(":")[2], 16) for end in fields[1:3]]
                sockets.append((ports, fields[3], fields))
    return sockets


LISTENS = "0A"


def listeners(port: int) -> list[int]:
    """Return the processes that listen on a local port, as far as ``/proc`` shows them."""
    sockets = {
        f"socket:[{fields[9]}]"
        for ports, state, fields in tcp_sockets() or ()
        if state == LISTENS and ports[0] == port
    }
    pids = []
    for pid in filter(str.isdecimal, _names_in("/proc") if sockets else ()):
        with contextlib.suppress(OSError):  # another user's
            if any(
                str(handle.readlink()) in sockets for handle in Path(f"/proc/{pid}/fd").iterdir()
            ):
                pids.append(int(pid))
    return sorted(pid for pid in pids if pid > 1)  # 1 may hold the sockets of all services


def _expanded(targets: Sequence[int], table: dict[int, Process]) -> list[int]:
    """Return processes, members of groups and their descendants that run."""
    leaders: list[int] = []
    for target in targets:
        members = [pid for pid, process in table.items() if process.group == -target]
        leaders += [target] if target > 0 else members
    ours = set(ancestors(os.getpid()))  # the watchdog is a child of its parent, never of a target
    family = (pid for pid in tree(leaders, table) if pid not in ours)
    return [pid for pid in family if pid in table and table[pid].state not in "Tt"]


def _signal(targets: Sequence[int], number: signal.Signals) -> str:
    """Stop or continue all targets; return the errors. One that has ended since is not an error."""
    wrong = []
    for target in targets:
        try:
            os.kill(target, number)
        except ProcessLookupError:
            pass
        except OSError as error:
            wrong.append(f"process {target}: {error.strerror}")
    return "; ".join(wrong)


def thaw(targets: Sequence[int]) -> None:
    """Continue stopped targets; those that have ended are passed over."""
    _signal(list(reversed(targets)), signal.SIGCONT)


# ------------------------------------------------------------ what remains if all are killed


def _remember(frozen: Sequence[int], table: dict[int, Process]) -> None:
    """Record what this watchdog is about to freeze; nothing that it thawed remains."""
    folder = runtime_folder()
    path = folder / f"frozen-{os.getpid()}.json"
    if not frozen:
        _forget(path)
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid() or folder.is_symlink():  # somebody else's
        return
    known = {pid: table[pid].start for pid in (os.getpid(), *frozen) if pid in table}
    record = {"watchdog": os.getpid(), "started": known, "frozen": list(frozen)}
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record), encoding="utf-8")
    part.replace(path)


def _forget(path: Path) -> None:
    """Remove a record, and the folder with the last one."""
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def thaw_left() -> list[int]:
    """Thaw what watchdogs left frozen that were killed, and return that."""
    left: list[int] = []
    folder, table = runtime_folder(), processes()
    for path in map(folder.joinpath, _names_in(folder)):
        if not path.match("frozen-*.json"):
            continue
        try:
            if path.stat().st_uid != os.getuid():
                continue
            record: JSONObject = json.loads(path.read_text(encoding="utf-8"))
            watchdog, started, frozen = (record[key] for key in ("watchdog", "started", "frozen"))
        except (OSError, ValueError, KeyError):  # another command has just thawed them
            continue
        alive = [
            int(pid)
            for pid, start in started.items()
            if (process := table.get(int(pid))) and process.start == start
            if process.state not in "ZX"
        ]
        if watchdog not in alive:  # it would thaw them itself
            frozen = [target for target in frozen if target in alive]
            thaw(frozen)
            _forget(path)
            left += frozen
    return left


# ------------------------------------------------------------ the watchdog


def watch(commands: IO[str]) -> None:
    """Freeze on command, thaw in time, and thaw when the commands end."""
    frozen: list[int] = []
    known: dict[int, Process] = {}

    def record() -> None:
        """Keep what is frozen in a file, before it is."""
        with contextlib.suppress(OSError):  # without a folder, this process alone thaws it
            _remember(frozen, known)

    def release() -> None:
        thaw(frozen)
        frozen.clear()
        record()

    try:
        _say(ready=time.perf_counter_ns())
        while line := commands.readline():
            seconds, *targets = json.loads(line)
            wrong = ""
            # A process may start another one until it is stopped itself.
            while not wrong:
                table = processes()
                new = [target for target in _expanded(targets, table) if target not in frozen]
                if not new:
                    break
                frozen += new
                known |= table
                record()
                wrong = _signal(new, signal.SIGSTOP)
                if not wrong and not _stopped(new):
                    wrong = "it did not stop within a second"
            if not frozen:
                wrong = "all of it is stopped already; continue it first (kill -CONT)"
            if wrong:
                release()
                _say(error=wrong)
                continue
            start = time.perf_counter_ns()
            _say(stopped=start)
            remaining = seconds - (time.perf_counter_ns() - start) / 1e9
            gone, _, _ = select.select([commands], [], [], max(remaining, 0.0))
            end = time.perf_counter_ns()
            release()
            if gone:
                return
            _say(thawed=end)
    finally:
        release()


def _stopped(targets: Sequence[int]) -> bool:
    """Wait until all are stopped, as far as ``/proc`` shows; False if that takes over a second."""
    deadline = time.monotonic() + 1.0
    waiting = [target for target in targets if target > 0]
    while time.monotonic() < deadline:
        running = []
        for target in waiting:
            with contextlib.suppress(OSError):
                running += [target] if stat_of(target)[0] not in "TZX" else []
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
    watch(sys.stdin)
    os._exit(0)  # nobody reads what a broken pipe could not take


if __name__ == "__main__":
    main()
