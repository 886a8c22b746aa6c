"""Whatever process is killed, at whatever moment: what `ctrlz` started ends, and what it froze goes on."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from latencykit.ctrlz.guard import Guarded

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc"),
]

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


@pytest.mark.parametrize(("moment", "number", "victim", "options"), cases(8, 3))
def test_nothing_is_left_behind(moment, number, victim, options) -> None:
    assert not killed_at(moment, number, victim, *options)


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
