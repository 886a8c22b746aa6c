"""Servers that tests start: each is ended, its threads joined and its sockets closed, before the test goes on."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TOKEN = "lesson"


class Server(ThreadingHTTPServer):
    """An HTTP server; closing it ends its connections and waits for the threads that serve them."""

    daemon_threads = False

    def __init__(self, handler: Callable[..., BaseHTTPRequestHandler], host: str) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._connections: set[Any] = set()
        super().__init__((host, 0), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        for connection in list(self._connections):  # clients keep them open between requests
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        super().server_close()


class Silent:
    """A handler that prints nothing."""

    def log_message(self, *_: object) -> None: ...


class Folder(Silent, SimpleHTTPRequestHandler):
    """The files of a `directory`."""


class Replies(Silent, BaseHTTPRequestHandler):
    """What `answer` replies, without the body if only the head is asked for."""

    def do_GET(self) -> None:
        self.answer()

    do_HEAD = do_GET  # noqa: N815 - the server's name for it

    def reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextlib.contextmanager
def served(
    handler: Callable[..., BaseHTTPRequestHandler], host: str = "127.0.0.1"
) -> Iterator[Server]:
    """Run a server in threads of its own."""
    with Server(handler, host) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def jupyterlab(folder: Path, home: Path, *options: str, **environment: str) -> Iterator[str]:
    """Run JupyterLab in a folder, with a home of its own; yield its address once it answers."""
    runtime = home / "runtime"
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")
    own = {name: str(home / name) for name in names} | {"JUPYTER_RUNTIME_DIR": str(runtime)}
    command = [
        sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}",
        f"--IdentityProvider.token={TOKEN}", "--no-browser", "--ServerApp.allow_root=True",
        "--ServerApp.ip=127.0.0.1", *options,
    ]  # fmt: skip
    log = home / "jupyterlab.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(
            command, env=dict(os.environ, **own) | environment, stdout=stream, stderr=stream,
            cwd=folder,
        )  # fmt: skip
        try:
            end = time.monotonic() + 180
            while (address := _address(runtime)) is None:
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            yield address
        finally:
            server.terminate()
            server.wait(60)


def _address(runtime: Path) -> str | None:
    """The address of the server whose runtime files are in a folder; None until it answers."""
    try:
        (notes,) = runtime.glob("jpserver-*.json")
        address = f"http://127.0.0.1:{json.loads(notes.read_text())['port']}"
        with urllib.request.urlopen(f"{address}/api?token={TOKEN}", timeout=30):
            return address
    except (OSError, ValueError):  # no file yet, half of one, or nobody listens
        return None
