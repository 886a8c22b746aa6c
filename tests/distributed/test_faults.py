"""Schedulers and workers that die, or lack what they need: one line that says what to do, exit status 2."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.conftest import needs_package

pytestmark = [
    needs_package("distributed", "cluster"),
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.slow,
]

ROOT = Path(__file__).parents[2]
SLOW = """
import os, time
from latencykit.io import parts
read = parts.read_part
def read_part(place, *words, **more):
    open({reading!r}, "w").close()
    {act}
    return read(place, *words, **more)
parts.read_part = read_part
"""


def start(words, folder):
    """Start a process of Dask's in a group of its own; return it and the address that it prints."""
    env = dict(os.environ, PYTHONPATH=str(folder), PYTHONUNBUFFERED="1")
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{words[0]}", *words[1:], "--no-dashboard"],
        env=env, cwd=folder, start_new_session=True, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    address = ""
    for line in process.stderr:
        known = re.search(r"(?:Scheduler at|Start worker at):\s+(tcp://\S+)", line)
        address = known[1] if known else address
        if address and (words[0] == "scheduler" or "Starting established connection" in line):
            break
    process.drain = threading.Thread(target=process.stderr.read, daemon=True)
    process.drain.start()
    return process, address


def end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)
    process.drain.join(20)
    process.stderr.close()


@contextlib.contextmanager
def a_scheduler():
    process, address = start(["scheduler", "--host", "127.0.0.1", "--port", "0"], ROOT)
    try:
        yield process, address
    finally:
        end(process)


@contextlib.contextmanager
def a_worker(address, folder=ROOT, *words):
    process, _ = start(["worker", address, "--nthreads", "1", *(words or ["--no-nanny"])], folder)
    try:
        yield process
    finally:
        end(process)


@pytest.fixture(scope="module")
def scheduler():
    with a_scheduler() as (_, address):
        yield address


@pytest.fixture
def slow(tmp_path):
    """Folder whose latencykit is the real one, and does something before it reads each file.

    A file `reading` appears in it when the first worker begins.
    """

    def make(act: str) -> Path:
        code = SLOW.format(act=act, reading=str(tmp_path / "reading"))
        begin = f"import sys\nsys.path.insert(1, {str(ROOT)!r})\n"
        (tmp_path / "sitecustomize.py").write_text(begin + code)
        return tmp_path

    return make


def summary(run, address, *files):
    """Run a command that fails; return the one line of the error."""
    return run.refused("-q", "summary", "--merge", *files, "--dask", address)


@contextlib.contextmanager
def meanwhile(folder, act):
    """Do something once a worker reads its first file, while a command waits for it."""

    def wait():
        deadline = time.monotonic() + 60
        while not (folder / "reading").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


def test_a_scheduler_that_dies(run, logs, slow, tmp_path):
    with (
        a_scheduler() as (process, address),
        a_worker(address, slow("time.sleep(0.5)")),
        meanwhile(tmp_path, lambda: end(process)),
    ):
        said = summary(run, address, *logs * 4)
    assert "the Dask scheduler ended before the work was done; start it again" in said


def test_a_worker_without_latencykit(run, scheduler, logs, tmp_path):
    (tmp_path / "latencykit.py").write_text("raise ImportError(name='latencykit')")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f)]\n"
    )
    with a_worker(scheduler, tmp_path):
        said = summary(run, scheduler, *logs)
    needs = "has latencykit None; install latencykit"
    assert re.search(rf"--dask tcp://\S+: the worker tcp://\S+ {needs} \S+ there", said)


def test_a_worker_without_the_files(run, scheduler, logs, tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "a.hlog").write_bytes(Path(logs[0]).read_bytes())
    monkeypatch.chdir(folder)
    with a_worker(scheduler):
        text = summary(run, scheduler, "a.hlog")
    why = "cannot be read: No such file or directory; the workers read it"
    assert text.startswith(f"latencykit: a.hlog: {why}")


def test_workers_that_run_out_of_memory(run, scheduler, logs, slow):
    """What the nanny does to a worker beyond its limit, and the kernel to any process."""
    act = "time.sleep(2); os.kill(os.getpid(), 9)"  # later than its start: else the nanny gives up
    with a_worker(scheduler, slow(act), "--nanny"):
        said = summary(run, scheduler, logs[0])
    assert "workers died again and again over one task, perhaps for want of memory" in said
