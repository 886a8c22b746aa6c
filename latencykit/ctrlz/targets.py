"""Servers to freeze: our own, a user's command or process, or our proxy before a user's server."""

from __future__ import annotations

import contextlib
import json
import shlex
import socket
import subprocess
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from latencykit._processes import own_command
from latencykit.ctrlz.client import PORTS, loopback
from latencykit.ctrlz.freeze import listeners
from latencykit.ctrlz.guard import Guarded
from latencykit.errors import InvalidArgumentError, LatencyKitError

if TYPE_CHECKING:
    from latencykit._typing import JSONObject

_PATIENCE = 20.0


class Target:
    """A server under test; `kind` is the option that names it, or ``own``."""

    url: str
    kind: str

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the server as it is, unless we have started it."""

    def frozen(self) -> list[int]:
        """Return the process ids to freeze, a group as a negative number."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget the requests so far, if the server is our own."""

    def stats(self) -> JSONObject | None:
        """Return requests, first (``perf_counter_ns``) and CPU seconds; None if unknown."""
        return None


class _Worker:
    """A process of our own: of the server, or the proxy."""

    def __init__(self, module: str, *options: str) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - our own
            own_command(f"latencykit.ctrlz.{module}", *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.port = int(self._receive()["port"])

    def ask(self, word: str = "stats") -> JSONObject:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its output has ended, too
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
        return self._receive()

    def _receive(self) -> JSONObject:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise LatencyKitError("the test's own server was ended; any message of its is above")
        message: dict[str, object] = json.loads(line)
        return message

    def close(self) -> None:
        self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()


class _OurTarget(Target):
    """A process of our own, which is frozen."""

    _worker: _Worker

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def frozen(self) -> list[int]:
        """Return the process."""
        return [self._worker.process.pid]

    def reset(self) -> None:
        """Forget the requests so far."""
        self._worker.ask("reset")


class OwnTarget(_OurTarget):
    """Our own server."""

    kind = "own"

    def __init__(self, service_time: float) -> None:
        self._service_time, self.url = service_time, ""

    def __enter__(self) -> Self:
        self._worker = _Worker("server", "--service-time", f"{self._service_time}ns")
        self.url = f"http://127.0.0.1:{self._worker.port}/"
        return self

    def jitter(self, start: int, end: int) -> dict[str, int] | None:
        """Return how late replies were outside a freeze (ns by percentile)."""
        late: dict[str, int] | None = self._worker.ask(f"jitter {start} {end}")["jitter"]
        return late

    def stats(self) -> JSONObject:
        """Return requests, the time of the first, and CPU seconds."""
        return self._worker.ask()


class CommandTarget(Target):
    """A server that a command starts; it is frozen together with its child processes."""

    kind = "server"

    def __init__(self, command: str | Sequence[str], url: str | None = None) -> None:
        port = free_port()
        words = shlex.split(command) if isinstance(command, str) else list(command)
        self._command = [
            word.replace("{port}", str(port)).replace("{host}", "127.0.0.1") for word in words
        ]
        if not words or (self._command == words and url is None):
            raise InvalidArgumentError(
                "the server's command must contain {port}, or url= (--url) its address"
            )
        self.url = (url or "http://127.0.0.1:{port}/").replace("{port}", str(port))
        self._address = loopback(self.url, PORTS)

    def __enter__(self) -> Self:
        try:
            self._process = Guarded(self._command, stdout=subprocess.DEVNULL)
        except OSError as error:
            raise InvalidArgumentError(
                f"{self._command[0]}: cannot be started: {error.strerror}"
            ) from None
        deadline = time.monotonic() + _PATIENCE
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(self._address, timeout=1.0).close()
                return self
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise LatencyKitError(
                    f"the server {shlex.join(self._command)} does not listen on {self.url}"
                )
            time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        self._process.end(patience=5.0)

    def frozen(self) -> list[int]:
        """Return the process group, and whatever else listens on the port."""
        return [-self._process.pid, *listeners(self._address[1])]


class ProcessTarget(Target):
    """A process that is already running, with its descendants."""

    kind = "pid"

    def __init__(self, process: int, url: str | None = None) -> None:
        if process <= 1:
            raise InvalidArgumentError(f"a process id is a number above 1, not {process}")
        if url is not None:
            loopback(url, PORTS)
        self._process, self.url = process, url or ""

    def frozen(self) -> list[int]:
        """Return the process, and whatever else listens on the port."""
        if not self.url:
            return [self._process]
        return list(dict.fromkeys([self._process, *listeners(loopback(self.url, PORTS)[1])]))


class ProxyTarget(_OurTarget):
    """A server behind our own proxy, which is frozen in its place."""

    kind = "through"

    def __init__(self, address: str, url: str | None = None, *, remote: bool = False) -> None:
        host, _, port = address.rpartition(":")
        self.host = host.strip("[]")
        if not self.host or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise InvalidArgumentError(f"{address!r} is not HOST:PORT")
        self.port, self._address, self._url = int(port), address, url
        if not remote and not self.local:
            raise InvalidArgumentError(
                f"{self.host} is not this machine; load is sent to others only with their consent "
                "(remote=True)"
            )
        if url is not None and urlsplit(url).scheme not in PORTS:
            raise InvalidArgumentError(f"{url!r}: the protocol is not one of {', '.join(PORTS)}")
        self.url = ""

    @property
    def local(self) -> bool:
        """True if the server runs on this machine."""
        with contextlib.suppress(InvalidArgumentError):
            return bool(loopback(f"tcp://{self._address}", PORTS))
        return False

    def __enter__(self) -> Self:
        try:
            socket.create_connection((self.host, self.port), timeout=5.0).close()
        except OSError as error:
            raise InvalidArgumentError(
                f"{self._address}: cannot be connected to: {error.strerror or error}"
            ) from None
        self._worker = _Worker("proxy", self.host, str(self.port))
        parts = urlsplit(self._url or "http:///")
        user, at, _ = parts.netloc.rpartition("@")
        self.url = parts._replace(netloc=f"{user}{at}127.0.0.1:{self._worker.port}").geturl()
        return self

    def stats(self) -> dict[str, object]:
        """Return the time of the first connection; requests are not counted."""
        return self._worker.ask() | {"requests": None, "cpu": None}


def free_port() -> int:
    """Return a free port on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def probe(url: str, count: int = 30, timeout: float = 2.0) -> float | None:
    """Return the median time of a few requests to an HTTP server (ns); None without a reply."""
    host, port = loopback(url)
    request = f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    times = []
    try:
        with socket.create_connection((host, port), timeout) as wire:
            for _ in range(count):
                begin = time.perf_counter_ns()
                wire.sendall(request)
                if not wire.recv(1 << 16):
                    break
                times.append(time.perf_counter_ns() - begin)
    except OSError:
        pass
    return float(sorted(times)[len(times) // 2]) if times else None
