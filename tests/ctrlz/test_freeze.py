"""Freezing: in time, whole, and nothing is left frozen or running."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from latencykit.ctrlz.freeze import Freezer, ancestors, listeners, program, thaw_left, tree
from latencykit.ctrlz.guard import Guarded
from latencykit.errors import InvalidArgumentError, LatencyKitError
from tests.conftest import python

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="states are read from /proc"
)


@pytest.fixture
def victim():
    with _child("import time; time.sleep(600)", start_new_session=True) as process:
        yield process


@contextlib.contextmanager
def _child(code: str, *words: object, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A Python that runs this, until its input ends; in the end it is killed."""
    command, pipe = [sys.executable, "-c", code, *map(str, words)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, **how) as process:
        try:
            yield process
        finally:
            process.kill()


FREEZES = """
import sys
from latencykit.ctrlz.freeze import Freezer, tree
freezer = Freezer([int(sys.argv[1])])
freezer.stop(60)
print(freezer.by_hand)
print(*tree([freezer._watchdog.pid]), flush=True)
sys.stdin.read()
"""


def _watchdogs(parent: subprocess.Popen[bytes]) -> list[int]:
    """The processes that thaw what `FREEZES` froze, once it is frozen."""
    assert parent.stdout.readline() == b"\n"
    return [*map(int, parent.stdout.readline().split())]


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _until(condition) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.slow
def test_a_process_is_frozen_and_thawed_in_time(victim) -> None:
    with Freezer([victim.pid]) as freezer:
        started = freezer.stop(0.2)
        assert _state(victim.pid) == "T"
        ended = freezer.wait()
        assert _until(lambda: _state(victim.pid) != "T")
    assert ended - started >= 0.2e9


@pytest.mark.slow
def test_a_group_is_frozen_whole(victim) -> None:
    with Freezer([-victim.pid]) as freezer:
        freezer.stop(60)
        assert _until(lambda: _state(victim.pid) == "T")
    assert _until(lambda: _state(victim.pid) != "T")


def test_a_killed_parent_thaws(victim) -> None:
    with _child(FREEZES, victim.pid) as parent:
        _watchdogs(parent)
        assert _state(victim.pid) == "T"
        parent.kill()
        assert _until(lambda: _state(victim.pid) != "T")


@pytest.mark.slow
def test_a_killed_watchdog_is_reported_and_thaws(victim) -> None:
    freezer = Freezer([victim.pid])
    freezer.stop(60)
    os.kill(freezer._watchdog.pid, signal.SIGKILL)
    with pytest.raises(LatencyKitError, match="watchdog"):
        freezer.wait()
    freezer.close()
    assert _until(lambda: _state(victim.pid) != "T")


@pytest.mark.slow
def test_the_next_command_thaws_what_is_frozen_when_the_watchdog_is_killed(
    victim, tmp_path
) -> None:
    runtime = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    following = functools.partial(python, "-m", "latencykit", "--version", env=runtime)
    with _child(FREEZES, victim.pid, env=runtime) as parent:
        (watchdog,) = _watchdogs(parent)
        following()
        assert _state(victim.pid) == "T"  # of a test that is under way
        os.kill(parent.pid, signal.SIGSTOP)  # it cannot thaw when the watchdog dies
        for pid in (watchdog, parent.pid):
            os.kill(pid, signal.SIGKILL)
    assert _state(victim.pid) == "T"
    assert following().stderr == f"thawed what a killed test had left frozen: {victim.pid}\n"
    assert _until(lambda: _state(victim.pid) != "T")
    assert not list(tmp_path.glob("*/*"))
    assert not following().stderr


def test_what_was_stopped_before_stays_stopped(victim) -> None:
    code = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
        "print(p.pid, flush=True); p.wait()"
    )
    with _child(code) as parent:
        child = int(parent.stdout.readline())
        os.kill(child, signal.SIGSTOP)
        assert _until(lambda: _state(child) == "T")
        with Freezer([parent.pid]) as freezer:
            freezer.stop(60)
            assert _state(parent.pid) == "T"
        assert _until(lambda: _state(parent.pid) != "T")
        assert _state(child) == "T"
        os.kill(child, signal.SIGKILL)
    os.kill(victim.pid, signal.SIGSTOP)
    assert _until(lambda: _state(victim.pid) == "T")
    with Freezer([victim.pid]) as freezer, pytest.raises(LatencyKitError, match="stopped already"):
        freezer.stop(0.1)
    assert _state(victim.pid) == "T"


def test_a_thread_and_a_group_with_an_ancestor_are_refused() -> None:
    code = "import threading; threading.Thread(target=input).start(); print(flush=True)"
    with _child(code) as process:
        process.stdout.readline()
        thread = max(int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir())
        with pytest.raises(InvalidArgumentError, match=f"a thread of process {process.pid}"):
            Freezer([thread])
    with pytest.raises(InvalidArgumentError, match="this program"):
        Freezer([-os.getpgid(os.getppid())])


@pytest.mark.slow
def test_a_stopped_watchdog_prolongs_a_freeze_by_seconds_at_most(victim) -> None:
    freezer = Freezer([victim.pid])
    freezer.stop(0.3)
    os.kill(freezer._watchdog.pid, signal.SIGSTOP)
    with pytest.raises(LatencyKitError, match="watchdog"):
        freezer.wait()
    assert _until(lambda: _state(victim.pid) != "T")
    freezer.close()


def test_process_0_has_a_message_of_its_own() -> None:
    with pytest.raises(InvalidArgumentError, match="process 0 is none"):
        Freezer([0])


@pytest.mark.slow
def test_the_watchdog_ignores_ctrl_c(victim) -> None:
    with Freezer([victim.pid]) as freezer:
        freezer.stop(0.1)
        os.kill(freezer._watchdog.pid, signal.SIGINT)
        freezer.wait()


def test_what_must_not_be_frozen_is_refused(victim) -> None:
    assert ancestors(os.getpid())[1] == os.getppid()
    victim.kill()
    victim.wait()
    refused = {
        os.getpid(): "this program",
        os.getppid(): "this program",
        victim.pid: "does not exist",
    }
    for pid, words in refused.items():
        with pytest.raises(InvalidArgumentError, match=words):
            Freezer([pid])


@pytest.mark.slow
def test_a_stall_without_end_is_refused(victim) -> None:
    with Freezer([victim.pid]) as freezer:
        with pytest.raises(InvalidArgumentError, match="stall"):
            freezer.stop(0)
        with pytest.raises(InvalidArgumentError, match="stall"):
            freezer.stop(1e9)


def test_windows_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(InvalidArgumentError, match="SIGSTOP"):
        Freezer([1])


def test_descendants_are_frozen_with_their_parent() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with _child(code) as parent:
        assert _until(lambda: len(tree([parent.pid])) == 2)
        child = tree([parent.pid])[1]
        with Freezer([parent.pid]) as freezer:
            freezer.stop(60)
            assert (_state(parent.pid), _state(child)) == ("T", "T")
        assert _until(lambda: "T" not in (_state(parent.pid), _state(child)))
        parent.communicate(b"\n")


def test_all_that_listen_on_a_port_are_known() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert listeners(port) == [os.getpid()]
    assert listeners(port) == []
    assert program(os.getpid())


def test_a_folder_of_records_may_go_at_any_moment(monkeypatch, tmp_path):
    """Another command's test ends while this one begins: no command falls over that."""

    def gone(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("latencykit.ctrlz.freeze.runtime_folder", lambda: tmp_path)
    for name in ("glob", "iterdir"):
        monkeypatch.setattr(Path, name, gone)
    assert thaw_left() == []


# ---------------------------------------------------------------- signals

MARK = "LATENCYKIT_TEST_FAMILY"
CLIENT = [sys.executable, "-m", "latencykit.ctrlz.client", "closed", "{url}", "--duration"]
CLIENT += ["{duration}s", "--rate", "20", "-o", "{out}"]
SERVER = f"sh -c 'tail -f /dev/null | {sys.executable} -m latencykit.ctrlz.server --port {{port}}'"
FORKING = SERVER.replace("{port}'", "{port} & wait'")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
TARGETS = ("ctrlz", "freeze", "guard", "server", "client")
TOOK: list[float] = []


def family(mark: str) -> dict[int, tuple[str, str]]:
    """Return the processes with a mark in their environment: id → (state, command line)."""
    members = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if state not in "ZX":
                    members[int(folder.name)] = (state, line)
    return members


def killed_at(moment: float, number: int, victim: str, *options: str) -> str:
    """Run `ctrlz`, kill one of its processes after some seconds; return what went wrong."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "latencykit", "ctrlz", "--stall", "1s", "--duration", "2.5s"]
    main = subprocess.Popen(
        [*command, *options, "--", *CLIENT],
        env=os.environ | {MARK: mark}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        time.sleep(moment)
        named = {"server": ("ctrlz.server",), "ctrlz": ("latencykit ctrlz",)}
        words = named.get(victim, (f"ctrlz.{victim}",))
        members = {pid: member for pid, member in family(mark).items() if pid != main.pid}
        hit = [pid for pid, (_, line) in members.items() if any(word in line for word in words)]
        hit = [pid for pid in hit if victim == "guard" or "ctrlz.guard" not in members[pid][1]]
        for pid in hit if victim != "ctrlz" else [main.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if victim != "ctrlz":
            with contextlib.suppress(subprocess.TimeoutExpired):
                main.wait(60)
        begin = time.monotonic()  # a busy machine may need longer than a second
        while (left := family(mark)) and time.monotonic() < begin + 20:
            time.sleep(0.02)
        TOOK.append(time.monotonic() - begin)
        main.kill()
        _, err = main.communicate()
        trace = err if "Traceback" in err or "Exception ignored" in err else ""
        return f"left: {left}; said: {err}" if left or trace else ""
    finally:
        for pid in family(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def cases(count: int, seed: int) -> list[tuple[float, int, str, tuple[str, ...]]]:
    dice = random.Random(seed)
    servers = ((), ("--server", SERVER), ("--server", FORKING))
    pairs = [(number, victim) for number in SIGNALS for victim in TARGETS]
    return [(dice.uniform(0.0, 4.0), *pairs[k % len(pairs)], servers[k % 3]) for k in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "number", "victim", "options"), cases(8, 3))
def test_nothing_is_left_behind(moment, number, victim, options) -> None:
    assert not killed_at(moment, number, victim, *options)


@pytest.mark.slow
def test_a_guarded_command_ends_with_its_guard(tmp_path) -> None:
    with (tmp_path / "out").open("wb") as out:
        command = Guarded(["sh", "-c", "sleep 600 & sleep 600"], out)
        os.kill(command._guard.pid, signal.SIGKILL)
        assert command.wait(10)
        assert command.poll() == -signal.SIGKILL
        command.end()
        status = Guarded(["sh", "-c", "exit 3"], out)
        assert status.wait(10)
        assert status.poll() == 3
        status.end()
        with pytest.raises(OSError, match="No such file"):
            Guarded(["/no/such/program"], out)


if __name__ == "__main__":  # python -m tests.ctrlz.test_signals 60 1
    for case in cases(int(sys.argv[1]), int(sys.argv[2])):
        wrong, name = killed_at(*case[:3], *case[3]), signal.Signals(case[1]).name
        print(f"{case[0]:.2f} s {name} {case[2]} {case[3]}: {wrong or 'ok'}", flush=True)
    print(f"{max(TOOK):.2f} s from the signal to the end of all processes, at most")


DAEMON = """
import os, sys, time
if os.fork(): sys.exit()
os.setsid()
if os.fork(): os._exit(0)
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["end", "kill"])
def test_a_command_that_forks_twice_is_ended(tmp_path: Path, how: str) -> None:
    note = tmp_path / "pid"
    code = (
        "import sys, time; from latencykit.ctrlz.guard import Guarded\n"
        f"g = Guarded(sys.argv[1:], None); time.sleep({600 if how == 'kill' else 2}); g.end()"
    )
    command = [sys.executable, "-c", code, sys.executable, "-c", DAEMON, str(note)]
    with subprocess.Popen(command) as parent:
        end = time.monotonic() + 20
        while not (note.exists() and note.read_text()) and time.monotonic() < end:
            time.sleep(0.02)
        daemon = int(note.read_text())
        if how == "kill":
            parent.kill()
        parent.wait(20)
    end = time.monotonic() + 20
    alive = Path(f"/proc/{daemon}/stat")
    while alive.exists() and " Z " not in alive.read_text() and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive.exists() or " Z " in alive.read_text()


@pytest.mark.slow
def test_the_end_of_a_large_output_takes_little_memory(tmp_path: Path) -> None:
    import tracemalloc

    from latencykit.ctrlz.run import Tool

    tool = Tool(["true"], tmp_path)
    tool.stderr.touch()
    with tool.stdout.open("wb") as stream:
        stream.truncate(64 << 20)
        stream.seek(0, os.SEEK_END)
        stream.write(b"\nthe end\n")
    tracemalloc.start()
    assert tool.last_output().endswith("the end")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
