from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from latencykit.ctrlz.freeze import Freezer, ancestors, listeners, program, thaw_left, tree
from latencykit.ctrlz.targets import ProcessTarget
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
    with (
        Freezer([victim.pid]) as freezer,
        pytest.raises(LatencyKitError, match="stopped already"),
    ):
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


def test_a_container_is_paused(tmp_path, monkeypatch) -> None:
    log = tmp_path / "log"
    engine = tmp_path / "docker"
    script = f'echo "$@" >> {log}\n[ "$2" = web ] || {{ echo no such >&2; exit 1; }}\n'
    engine.write_text(f"#!/bin/sh\n{script}")
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    target = ProcessTarget("web", "http://127.0.0.1:8080/")
    with Freezer(target.frozen()) as freezer:
        freezer.stop(0.1)
        freezer.wait()
    assert log.read_text() == "pause web\nunpause web\n"
    with (
        Freezer(ProcessTarget("db").frozen()) as freezer,
        pytest.raises(LatencyKitError, match="no such"),
    ):
        freezer.stop(0.1)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InvalidArgumentError, match="neither is installed"):
        ProcessTarget("web")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidArgumentError, match="not the name"):
        ProcessTarget("--help")


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
