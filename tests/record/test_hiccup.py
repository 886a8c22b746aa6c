from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import latencykit as lk
from latencykit.record.hiccup import hiccup, lateness

MS = 1_000_000


def test_every_slot_of_a_stop_counts_how_late_it_was_noticed() -> None:
    rows = np.array([[1, 1, 1 * MS + 50], [2, 4, 4 * MS + 60], [5, 5, 5 * MS + 10]])
    ((now, late),) = lateness(rows, MS)
    assert late.tolist() == [50, 2 * MS + 60, MS + 60, 60, 10]
    assert now.tolist() == [1 * MS + 50, *[4 * MS + 60] * 3, 5 * MS + 10]


def test_a_very_long_stop_is_expanded_in_pieces(monkeypatch) -> None:
    monkeypatch.setattr("latencykit.record.hiccup._PIECE", 4)
    rows = np.array([[1, 10, 10 * MS], [11, 11, 11 * MS + 7]])
    parts = list(lateness(rows, MS))
    assert max(late.size for _, late in parts) == 4
    every = sorted(np.concatenate([late for _, late in parts]).tolist())
    assert every == [0, 7, *range(MS, 10 * MS, MS)]


@pytest.mark.slow
def test_a_log_is_written_and_says_how_it_was_measured(tmp_path) -> None:
    path = tmp_path / "h.hlog"
    log = hiccup(path, duration="0.3s", interval="100ms", resolution="2ms")
    assert log.histogram().count == 149  # slots at 2, 4, … 298 ms
    assert len(log) == 3
    assert log.run.tool == "latencykit hiccup"
    assert (log.run.corrected, log.run.measure) == ("schedule", "response")
    assert "resolution 2 ms" in path.read_text(errors="replace")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_the_file_is_whole_or_the_old_one(tmp_path, number) -> None:
    path = tmp_path / "h.hlog"
    path.write_text("old")
    code = (
        "import sys; from latencykit.record.hiccup import hiccup\n"
        "from latencykit.cli.signals import handle_signals\n"
        "with handle_signals(): hiccup(sys.argv[1], interval=0.1)"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if sum(part.read_bytes().count(b"HISTF") for part in tmp_path.iterdir()) >= 2:
                break
            time.sleep(0.02)
        assert path.read_text() == "old"
        os.kill(process.pid, getattr(signal, number))
        assert process.wait(30) != 0
    if number == "SIGKILL":
        assert path.read_text() == "old"
        return
    assert [part.name for part in tmp_path.iterdir()] == ["h.hlog"]
    assert path.read_bytes().endswith(b"\n")
    assert lk.read(path).histogram().count > 100


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")
@pytest.mark.parametrize("whole", [False, True])
def test_a_stop_of_the_parent_is_not_recorded_and_one_of_both_is(tmp_path, whole) -> None:
    """At 50 µs the pipe is full after two seconds: the clock goes on all the same."""
    path = tmp_path / "h.hlog"
    command = [sys.executable, "-m", "latencykit", "hiccup", "-o", str(path)]
    stop = os.killpg if whole else os.kill
    with subprocess.Popen(
        [*command, "--duration", "6s", "--resolution", "50us" if not whole else "1ms"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        process.stderr.readline()  # of the first second
        stop(process.pid, signal.SIGSTOP)
        time.sleep(3)  # the length of the stop
        stop(process.pid, signal.SIGCONT)
        process.stderr.read()
    longest = lk.read(path).max
    assert longest >= 2.9e9 if whole else longest < 1.5e9


@pytest.mark.parametrize("bad", [{"resolution": "1us"}, {"duration": 0}, {"interval": "1us"}])
def test_what_cannot_be_used_is_refused(tmp_path, bad) -> None:
    with pytest.raises(lk.InvalidArgumentError):
        hiccup(tmp_path / "h.hlog", **bad)
    assert not (tmp_path / "h.hlog").exists()
