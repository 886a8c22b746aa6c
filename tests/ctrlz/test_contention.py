"""A busy machine is distinguished from an overloaded system."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

import latencykit as lk
from latencykit.ctrlz.sweep import Contention, Watch, _starved

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLO = lk.SLO.parse("p99=20ms")
IDLE = np.zeros(20_000)


def starved(
    contention: Contention, *, mean: float = 6e6, lost: int = 0, spins: bool = False
) -> str:
    """Judge a run of 1,000/s whose latencies are exponential; 6 ms puts p99 at 28 ms."""
    values = np.random.default_rng(1).exponential(mean, 20_000 - lost)
    data = lk.Histogram.of(values).with_run(loop="open", corrected="schedule", duration=20)
    curve = lk.load_curve({"1000": data}, SLO)
    return _starved(contention, curve.rows[0], curve.checks[0], SLO, spins=spins)


def late(share: float, by: float) -> NDArray[np.float64]:
    delays = IDLE.copy()
    delays[: round(share * delays.size)] = by
    return delays


def test_a_miss_on_a_quiet_machine_is_one() -> None:
    assert not starved(Contention())
    assert not starved(Contention(IDLE, 0.4, 0.02, 0.0))
    assert not starved(Contention(late(0.5, 30e6), 0.4, 0.02, 0.5))


def test_a_miss_that_other_programs_explain_is_none() -> None:
    assert "waited for a CPU, for up to 30 ms" in starved(Contention(late(0.03, 30e6), 0.4, 0.5))
    assert "lost 20% of its speed" in starved(Contention(IDLE, 0.4, 0.5, 0.2))


def test_a_miss_that_other_programs_do_not_explain_remains() -> None:
    assert not starved(Contention(late(0.03, 30e6), 0.4, 0.5), mean=1e8)
    assert not starved(Contention(late(0.002, 1e6), 0.4, 0.5))
    # Half of the load was sustained, which no loss of a fifth explains.
    assert not starved(Contention(IDLE, 0.4, 0.5, 0.2), mean=1e8, lost=10_000)


def test_a_load_generator_at_its_limit_shows_nothing_of_the_system() -> None:
    assert "at its own limit" in starved(Contention(IDLE, 0.97, 0.0))
    assert not starved(Contention(IDLE, 0.97, 0.0), spins=True)


def test_a_function_is_watched_as_a_command_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A miss that other programs explain has no verdict; a simulation takes no time to be seen."""

    def found(pause: float) -> lk.Sweep:
        def load(rate: float, duration: float) -> lk.Histogram:
            time.sleep(pause * duration)
            values = np.random.default_rng(1).exponential(6e6, 20_000)
            run = lk.Run(loop="open", corrected="schedule", duration=duration, achieved=rate)
            return lk.Histogram.of(values, run=run)

        return lk.sweep(load, SLO, start=1000, stop=1000, duration=0.4, runs=3)

    if sys.platform == "linux":
        assert {run.verdict for run in found(1.0).runs[1:]} <= {"missed", "void"}
    seen = Contention(late(0.03, 30e6), 0.4, 0.5)
    monkeypatch.setattr("latencykit.ctrlz.sweep._stalled", lambda *_: "")
    monkeypatch.setattr(Watch, "end", lambda _: seen)
    (_, starved, _) = found(1.0).runs
    assert starved.verdict == "void"
    assert "other programs used 50%" in starved.reason
    assert found(0.0).runs[1].verdict == "missed"


@pytest.mark.slow
def test_a_neighbour_on_the_same_cpu_is_seen() -> None:
    """A load generator and its server share a CPU with a program that another process started."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("only Linux counts how long threads waited for a CPU")
    pinned = f"import os, socket; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}}); "
    serves = "s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); "
    spins = f"{pinned}\nwhile True: pass"
    adopted = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" >/dev/null 2>&1 & echo $!', sys.executable, spins],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    try:
        with (
            subprocess.Popen([sys.executable, "-c", spins]) as client,
            subprocess.Popen(
                [sys.executable, "-c", f"{pinned}{serves}\nwhile True: pass"],
                stdout=subprocess.PIPE, text=True,
            ) as server,
        ):  # fmt: skip
            try:
                assert server.stdout is not None
                url = f"http://127.0.0.1:{int(server.stdout.readline())}/"
                watch = Watch(client.pid, ["wrk2", url])
                end = time.monotonic() + 0.5
                while time.monotonic() < end:
                    watch.look()
                    time.sleep(0.005)
                seen = watch.end()
            finally:
                client.kill()
                server.kill()
    finally:
        os.kill(int(adopted.stdout), signal.SIGKILL)
    assert seen.late.max() > 1e6
    assert seen.demand > 0.5
    assert seen.others > 0.05
    assert seen.lost > 0.1
