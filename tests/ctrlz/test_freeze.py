from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from latencykit.ctrlz.freeze import Freezer, ancestors, listeners, program, tree
from latencykit.ctrlz.targets import ProcessTarget
from latencykit.errors import InvalidArgumentError, LatencyKitError

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="states are read from /proc"
)


@pytest.fixture
def victim():
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    yield process
    process.kill()
    process.wait()


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
    code = (
        "import os, sys; from latencykit.ctrlz.freeze import Freezer\n"
        "f = Freezer([int(sys.argv[1])]); f.stop(60); print('frozen', flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(victim.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout.readline() == b"frozen\n"
    assert _state(victim.pid) == "T"
    parent.kill()
    assert _until(lambda: _state(victim.pid) != "T")
    parent.communicate()


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
def test_a_parent_and_a_watchdog_killed_together_thaw(victim) -> None:
    code = (
        "import os, sys; from latencykit.ctrlz.freeze import Freezer\n"
        "f = Freezer([int(sys.argv[1])]); f.stop(60); print(f._watchdog.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(victim.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    watchdog = int(parent.stdout.readline())
    assert _state(victim.pid) == "T"
    os.kill(parent.pid, signal.SIGSTOP)  # it cannot thaw when the watchdog dies
    os.kill(watchdog, signal.SIGKILL)
    parent.kill()
    assert _until(lambda: _state(victim.pid) != "T")
    parent.communicate()


@pytest.mark.slow
def test_the_next_command_thaws_what_is_frozen_when_all_watchdogs_are_killed(
    victim, tmp_path
) -> None:
    code = (
        "import os, sys; from latencykit.ctrlz.freeze import Freezer, tree\n"
        "f = Freezer([int(sys.argv[1])]); f.stop(60); print(f.by_hand)\n"
        "print(*tree([f._watchdog.pid]), flush=True); sys.stdin.read()\n"
    )
    runtime = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(victim.pid)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=runtime,
    )  # fmt: skip
    assert parent.stdout.readline().decode() == "\n"  # it is frozen already
    watchdogs = [*map(int, parent.stdout.readline().split())]
    assert len(watchdogs) == 2
    command = [sys.executable, "-m", "latencykit", "--version"]
    subprocess.run(command, env=runtime, check=True)
    assert _state(victim.pid) == "T"  # of a test that is under way
    for pid in watchdogs:
        os.kill(pid, signal.SIGSTOP)
    for pid in (parent.pid, *watchdogs):
        os.kill(pid, signal.SIGKILL)
    parent.communicate()
    assert _state(victim.pid) == "T"
    done = subprocess.run(command, env=runtime, capture_output=True, text=True, check=True)
    assert done.stderr == f"thawed what a killed test had left frozen: {victim.pid}\n"
    assert _until(lambda: _state(victim.pid) != "T")
    assert not list(tmp_path.glob("*/*"))
    assert not subprocess.run(command, env=runtime, capture_output=True, check=True).stderr


def test_what_was_stopped_before_stays_stopped(victim) -> None:
    code = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
        "print(p.pid, flush=True); p.wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        child = int(parent.stdout.readline())
        os.kill(child, signal.SIGSTOP)
        assert _until(lambda: _state(child) == "T")
        with Freezer([parent.pid]) as freezer:
            freezer.stop(60)
            assert _state(parent.pid) == "T"
        assert _until(lambda: _state(parent.pid) != "T")
        assert _state(child) == "T"
        parent.kill()
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
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        thread = max(int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir())
        with pytest.raises(InvalidArgumentError, match=f"a thread of process {process.pid}"):
            Freezer([thread])
        process.communicate(b"\n")
    with pytest.raises(InvalidArgumentError, match="this program"):
        Freezer([-os.getpgid(os.getppid())])


@pytest.mark.slow
def test_a_stopped_watchdog_does_not_prolong_a_freeze(victim) -> None:
    freezer = Freezer([victim.pid])
    freezer.stop(0.3)
    os.kill(freezer._watchdog.pid, signal.SIGSTOP)
    assert _until(lambda: _state(victim.pid) != "T")
    with pytest.raises(LatencyKitError, match="watchdog"):
        freezer.wait()
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
    for pid, words in (
        (os.getpid(), "this program"),
        (os.getppid(), "this program"),
        (victim.pid, "does not exist"),
    ):
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
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as parent:
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
    engine.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\n[ "$2" = web ] || {{ echo no such >&2; exit 1; }}\n'
    )
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
