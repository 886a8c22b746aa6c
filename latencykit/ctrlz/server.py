"""The server that is frozen: HTTP/1.1 and Redis' RESP, as far as load generators use them."""

from __future__ import annotations

import argparse
import array
import asyncio
import contextlib
import json
import os
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, NoReturn

from latencykit._records import record
from latencykit.errors import LatencyKitError
from latencykit.units import parse_duration

MOST_BYTES = 1 << 20
"""A request longer than this is refused."""

_END = b"\r\n"
_HTTP_REPLY = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: %s\r\n\r\n"
)
_OK, _ONE, _VALUE, _NOTHING = b"+OK\r\n", b":1\r\n", b"$3\r\nxxx\r\n", b"*0\r\n"
_RESP_REPLIES = {
    b"PING": b"+PONG\r\n", b"GET": _VALUE, b"COMMAND": _NOTHING, b"LRANGE": _NOTHING,
    **dict.fromkeys((b"SET", b"MSET", b"SELECT", b"CLIENT", b"AUTH", b"FLUSHALL", b"QUIT"), _OK),
    **dict.fromkeys((b"INCR", b"LPUSH", b"RPUSH", b"SADD", b"HSET", b"ZADD"), _ONE),
    **dict.fromkeys((b"DEL", b"EXISTS"), _ONE),
    **dict.fromkeys((b"LPOP", b"RPOP", b"SPOP", b"HGET"), _VALUE), b"ZPOPMIN": _NOTHING,
}  # fmt: skip


class ProtocolError(LatencyKitError):
    """The bytes received are neither HTTP nor RESP."""


@record()
class Reply:
    """Bytes to send back, and whether to close the connection then."""

    data: bytes
    close: bool = False


def speaks_resp(data: bytes | bytearray) -> bool:
    """Distinguish RESP (an array, or an inline PING) from HTTP by the first bytes."""
    return data[:1] == b"*" or data[:4].upper() == b"PING"


def parse_http(buffer: bytearray) -> list[Reply]:
    r"""Take all complete requests off the buffer; return their replies."""
    replies: list[Reply] = []
    while (end := buffer.find(b"\r\n\r\n")) >= 0:
        line, *fields = bytes(buffer[:end]).split(_END)
        words = line.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            raise ProtocolError(f"no HTTP/1.x request line: {line[:60]!r}")
        pairs = (field.partition(b":") for field in fields)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or b"transfer-encoding" in headers:
            raise ProtocolError("only bodies with a Content-Length are understood")
        size = end + 4 + int(length)
        if len(buffer) < size:
            break
        del buffer[:size]
        connection = headers.get(b"connection", b"").lower()
        keep = connection != b"close" if words[2] == b"HTTP/1.1" else b"keep-alive" in connection
        body = b"" if words[0] == b"HEAD" else b"ok\n"
        replies.append(Reply(_HTTP_REPLY % (b"keep-alive" if keep else b"close") + body, not keep))
    if len(buffer) > MOST_BYTES:
        raise ProtocolError(f"a request longer than {MOST_BYTES >> 20} MiB")
    return replies


def parse_resp(buffer: bytearray) -> list[Reply]:
    r"""Take all complete commands off the buffer, pipelined ones too; return their replies."""
    replies: list[Reply] = []
    at = 0
    while (parsed := _command(buffer, at)) is not None:
        words, at = parsed
        name = words[0].upper() if words else b""
        if name == b"CONFIG":  # redis-benchmark asks for `save` and `appendonly` first
            key = words[2] if len(words) > 2 else b""
            replies.append(Reply(b"*2\r\n$%d\r\n%s\r\n$0\r\n\r\n" % (len(key), key)))
        elif words:
            data = _RESP_REPLIES.get(name, b"-ERR unknown command\r\n")
            replies.append(Reply(data, close=name == b"QUIT"))
    del buffer[:at]
    if len(buffer) > MOST_BYTES:
        raise ProtocolError(f"a command longer than {MOST_BYTES >> 20} MiB")
    return replies


def _command(buffer: bytearray, at: int) -> tuple[list[bytes], int] | None:
    """Return the words of the command at `at`, and the end; None while it is incomplete."""
    end = buffer.find(_END, at)
    if end < 0:
        return None
    line = bytes(buffer[at:end])
    at = end + 2
    if not line.startswith(b"*"):
        return line.split(), at
    words = []
    for _ in range(_number(line, b"*", 1024)):
        end = buffer.find(_END, at)
        if end < 0:
            return None
        size = _number(bytes(buffer[at:end]), b"$", MOST_BYTES)
        at = end + 2 + size + 2
        if len(buffer) < at:
            return None
        words.append(bytes(buffer[end + 2 : at - 2]))
    return words, at


def _number(line: bytes, mark: bytes, most: int) -> int:
    known = line.startswith(mark) and line[1:].isdigit() and len(line) < 20
    if not known or int(line[1:]) > most:
        raise ProtocolError(f"{mark.decode()} and a number were expected, not {line[:60]!r}")
    return int(line[1:])


# ------------------------------------------------------------
# The process: ``python -m latencykit.ctrlz.server``, HTTP/1.1 and RESP on one loopback port.
#
# Every request takes a known time, during which its connection waits and others do not. A single
# thread serves them, in 50 to 100 µs each; the CPU time in its stats shows if it was the
# bottleneck.
#
# It talks to its parent over its standard streams, one JSON object per line: ``{"port": …}`` when
# it listens, then its `stats` for each line of input; the line ``reset`` starts them anew, and
# ``jitter START END`` asks for its own lateness outside a freeze, too. It ends when its input does,
# so that it cannot outlive its parent.

BACKLOG = 4096
MOST_REPLIES = 500_000
"""Replies whose lateness is recorded."""


class Service:
    """The service time and the counters that the connections of a server share."""

    def __init__(self, service_time: float) -> None:
        self.service_time = service_time
        self.reset()

    def replied(self, due: int) -> None:
        """Record how late a reply was sent, where its time came from the timer."""
        if len(self._replies) < 2 * MOST_REPLIES:
            self._replies.extend((due, time.perf_counter_ns() - due))

    def jitter(self, start: int, end: int) -> dict[str, int] | None:
        """Return the median, p99 and maximum lateness of replies outside a freeze, ns."""
        pairs = zip(self._replies[::2], self._replies[1::2], strict=True)
        late = sorted(late for due, late in pairs if due > end or due + late < start)
        if not late:
            return None
        return {"50": late[len(late) // 2], "99": late[len(late) * 99 // 100], "100": late[-1]}

    def reset(self) -> None:
        """Forget the requests so far."""
        self.requests = 0
        self.first: int | None = None
        self._replies = array.array("q")

    def count(self, requests: int) -> None:
        """Count requests that arrived."""
        if self.first is None:
            self.first = time.perf_counter_ns()
        self.requests += requests

    def stats(self) -> dict[str, object]:
        """Return requests so far, the time of the first (``perf_counter_ns``), now, CPU seconds."""
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
        """Keep the transport for replies."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Accept requests; anything but HTTP and RESP closes the connection."""
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
            self._due = time.perf_counter_ns() + round(1e9 * self._service.service_time)
            asyncio.get_running_loop().call_later(self._service.service_time, self._reply)
            return
        while self._replies and not self._transport.is_closing():
            self._send(self._replies.popleft())
        self._serving = False

    def _reply(self) -> None:
        self._serving = False
        self._service.replied(self._due)
        if self._transport.is_closing():
            return
        self._send(self._replies.popleft())
        if self._replies:
            self._serve()

    def _send(self, reply: Reply) -> None:
        self._transport.write(reply.data)
        if reply.close:
            self._transport.close()


async def _serve(service: Service, port: int) -> None:
    """Serve on a port until the parent is gone."""
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(
        lambda: Connection(service), "127.0.0.1", port, backlog=BACKLOG
    )
    async for word, *window in commands(listener):
        if word == "reset":
            service.reset()
        jitter = service.jitter(*map(int, window)) if word == "jitter" else None
        say(service.stats() | {"jitter": jitter})


async def commands(listener: asyncio.Server) -> AsyncIterator[list[str]]:
    """Name the port to the parent, and yield the words of its lines until it is gone."""
    say({"port": listener.sockets[0].getsockname()[1]})
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        yield line.decode().split()


def serve(service: Coroutine[Any, Any, None]) -> NoReturn:
    """Run what serves until the parent, or an interrupt, ends it."""
    raise_file_limit()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(service)
    os._exit(0)  # open connections are the tool's to end, not ours to wait for


def say(message: dict[str, object]) -> None:
    """Write a line for the parent."""
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(0)  # the parent is gone


def raise_file_limit() -> None:
    """Allow all connections that the system grants: an open loop has one per waiting request."""
    import resource  # Windows has none, and must be able to import this module

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 65_536 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the server."""
    parser = argparse.ArgumentParser(prog="python -m latencykit.ctrlz.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--service-time", default="1ms", help="time that a request takes (1ms)")
    options = parser.parse_args(arguments)
    serve(_serve(Service(parse_duration(options.service_time) / 1e9), options.port))


if __name__ == "__main__":
    main()
