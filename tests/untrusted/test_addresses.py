"""Servers and schedulers that mean harm, or die: a bounded download, one line, exit status 2."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gzip
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from latencykit.io import files
from tests.conftest import RAW, python
from tests.servers import Replies, served

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@functools.cache
def bomb() -> bytes:
    return gzip.compress(b"1.5\n" * (24 << 20))


class Endless(Replies):
    """Bodies without an end, that unpack to much, and errors at length."""

    def answer(self) -> None:
        with contextlib.suppress(OSError):  # hung up
            if "bomb" in self.path:
                self.reply(200, bomb(), {"Content-Encoding": "gzip"})
            elif "error" in self.path:
                self.reply(500, b"<html>" + b"x" * 100_000)
            else:
                self.send_response(200)
                self.end_headers()
                while self.command != "HEAD":
                    self.wfile.write(b"1.5\n" * (1 << 16))


@pytest.mark.parametrize("name", ["endless.txt", "bomb.txt"])
def test_a_download_has_a_limit_by_name(
    name: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with served(Endless) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        url = f"http://127.0.0.1:{server.server_port}/{name}"
        err = run.refused("-q", "summary", url, "--unit", "ms", "--limit", "download=32MiB")
    assert "--limit download=SIZE" in err
    assert not list(tmp_path.iterdir())


def test_a_body_is_not_quoted(run: Any) -> None:
    with served(Endless) as server:
        url = f"http://127.0.0.1:{server.server_port}/error.txt"
        assert len(run.refused("-q", "summary", url)) < 400


class Redirecting(Replies):
    """A log, one that is longer than it says, and a redirect by the other name of this machine."""

    def answer(self) -> None:
        if "away" in self.path:
            port = self.server.server_address[1]
            self.reply(302, headers={"Location": f"http://127.0.0.1:{port}/a.hlog"})
        else:
            less = {"Content-Length": "2"} if "longer" in self.path else None
            self.reply(200, RAW.read_bytes(), less)


def test_a_public_address_does_not_redirect_into_the_own_network(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def public(host: str | None) -> bool:
        return host == "localhost"

    with served(Redirecting) as server:
        url = f"http://localhost:{server.server_port}/away.hlog"
        assert run("-q", "summary", url)[0] == 0  # from one private address to another
        monkeypatch.setattr(files, "_is_public", public)
        err = run.refused("-q", "summary", url)
        assert "it redirects to 127.0.0.1" in err
        assert "--allow-private" in err
        assert run("-q", "summary", url, "--allow-private")[0] == 0
        longer = f"http://localhost:{server.server_port}/longer.hlog"
        err = run.refused("-q", "summary", longer, "--limit", "tries=1")
        assert "HIST" not in err


def test_private_addresses_are_known_in_all_spellings() -> None:
    private = ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:127.0.0.1", "0.0.0.0"]
    for host in (*private, "2130706433", "localhost", "fd00::1"):
        assert not asyncio.run(files._is_public(host)), host
    for host in ("8.8.8.8", "2001:4860:4860::8888"):
        assert asyncio.run(files._is_public(host)), host


SUMMARY = ("-P", "-m", "latencykit", "-q", "summary", RAW)


@pytest.mark.parametrize("address", ["tls://127.0.0.1:1", "ucx://127.0.0.1:1", "nonsense://x"])
def test_an_address_of_any_protocol_is_one_line(address: str) -> None:
    pytest.importorskip("distributed")
    done = python(*SUMMARY, "--dask", address, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert f"--dask {address}" in done.stderr


SCHEDULER = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=0, processes=True, dashboard_address=None)
    print(cluster.scheduler_address, flush=True)
    time.sleep(600)
"""


def test_a_scheduler_that_is_killed_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    code = tmp_path / "scheduler.py"
    code.write_text(SCHEDULER)
    with subprocess.Popen([sys.executable, code], stdout=subprocess.PIPE, text=True) as scheduler:
        assert scheduler.stdout is not None
        address = scheduler.stdout.readline().strip()
        command = [sys.executable, *SUMMARY, "--dask", address]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as reading:
            time.sleep(4)  # it waits for a worker that never comes
            os.kill(scheduler.pid, signal.SIGKILL)
            _, err = reading.communicate(timeout=90)
    assert (reading.returncode, err.count("\n")) == (2, 1), err
    assert "scheduler" in err
