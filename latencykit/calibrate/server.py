"""The server that is frozen: ``python -m latencykit.calibrate.server``, HTTP/1.1 and RESP on one loopback port.

Every request takes a known time, during which its connection waits and others do not. A single thread serves them, at
some 50 to 100 µs each; the CPU time that it says it used tells whether it was the bottleneck.

It speaks with its parent over its standard streams, one JSON object a line: ``{"port": …}`` when it listens, then its
`stats` for each line that comes in; the line ``reset`` starts them anew. It ends when its input does, so that it cannot
outlive its parent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from latencykit.calibrate.protocols import ProtocolError, Reply, parse_http, parse_resp, speaks_resp
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Service", "main"]

BACKLOG = 4096
_FDS = 64


class Service:
    """What the connections of a server share: the service time, and what it counts.

    Parameters
    ----------
    service_time : float
        Seconds that a request takes.
    """

    def __init__(self, service_time: float) -> None:
        self.service_time = service_time
        self.reset()

    def reset(self) -> None:
        """Forget the requests so far."""
        self.requests = 0
        self.first: int | None = None

    def count(self, requests: int) -> None:
        """Count requests that came in."""
        if self.first is None:
            self.first = time.perf_counter_ns()
        self.requests += requests

    def stats(self) -> dict[str, Any]:
        """Requests so far, when the first came (``perf_counter_ns``), now, and CPU seconds used."""
        return {
            "requests": self.requests,
            "first": self.first,
            "now": time.perf_counter_ns(),
            "cpu": time.process_time(),
        }


class Connection(asyncio.Protocol):
    """One connection: its requests are served in turn, each for the service time."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._buffer = bytearray()
        self._replies: deque[Reply] = deque()
        self._parse: Any = None
        self._serving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where replies go."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take requests in; what is neither HTTP nor RESP closes the connection."""
        self._buffer += data
        if self._parse is None:
            self._parse = parse_resp if speaks_resp(self._buffer) else parse_http
        try:
            replies = self._parse(self._buffer)
        except ProtocolError as error:
            sys.stderr.write(f"{error}\n")
            self._transport.close()
            return
        if not replies:
            return
        self._service.count(len(replies))
        self._replies += replies
        if not self._serving:
            self._serve()

    def _serve(self) -> None:
        self._serving = True
        if self._service.service_time > 0:
            asyncio.get_running_loop().call_later(self._service.service_time, self._reply)
            return
        while self._replies and not self._transport.is_closing():
            self._send(self._replies.popleft())
        self._serving = False

    def _reply(self) -> None:
        self._serving = False
        if self._transport.is_closing():
            return
        self._send(self._replies.popleft())
        if self._replies:
            self._serve()

    def _send(self, reply: Reply) -> None:
        self._transport.write(reply.data)
        if reply.close:
            self._transport.close()


async def _serve(service: Service, port: int, channel: socket.socket | None) -> None:
    """Serve until the parent is gone: on a port, or on connections handed over a channel."""
    loop = asyncio.get_running_loop()
    if channel is None:
        listener = await loop.create_server(lambda: Connection(service), "127.0.0.1", port, backlog=BACKLOG)
        port = listener.sockets[0].getsockname()[1]
    else:
        channel.setblocking(False)
        loop.add_reader(channel, _accept_handed, channel, service, set())
    _say({"port": port})
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if line.strip() == b"reset":
            service.reset()
        _say(service.stats())


def _accept_handed(channel: socket.socket, service: Service, tasks: set[Any]) -> None:
    """Take connections that another process accepted."""
    try:
        _, handles, _, _ = socket.recv_fds(channel, _FDS, _FDS)
    except BlockingIOError:
        return
    loop = asyncio.get_running_loop()
    for handle in handles:
        accepted = socket.socket(fileno=handle)
        accepted.setblocking(False)
        task = loop.create_task(loop.connect_accepted_socket(lambda: Connection(service), accepted))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def raise_file_limit() -> None:
    """Allow as many open connections as the system grants: an open loop opens one for each waiting request."""
    import resource  # Windows has none, and must be able to import this module

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the server."""
    parser = argparse.ArgumentParser(prog="python -m latencykit.calibrate.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--service-time", default="1ms", help="time that a request takes (1ms)")
    parser.add_argument("--channel", type=int, help="file descriptor over which connections are handed in")
    options = parser.parse_args(arguments)
    raise_file_limit()
    channel = None if options.channel is None else socket.socket(fileno=options.channel)
    service = Service(parse_duration(options.service_time) / 1e9)
    asyncio.run(_serve(service, options.port, channel))
    os._exit(0)  # open connections are the tool's to end, not ours to wait for


if __name__ == "__main__":
    main()
