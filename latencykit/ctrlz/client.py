"""Three load generators that differ in one respect: the effect of a slow reply on the next request.

* `closed`: each connection waits for its reply, then for its next turn; turns that pass meanwhile
  are dropped. Without a rate it sends again at once.
* `catchup`: the same, but dropped turns are made up for in a burst; the time still counts from the
  send.
* `open`: requests are sent when they are due, regardless of earlier ones; each that waits has a
  connection.

Their clock is ``perf_counter_ns`` around the system calls; their timer is the event loop's, so that
requests leave up to 1 to 2 ms after they are due (the delay is on every row and in the report).
Times from the send contain none of that delay, times from the intended start all of it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from latencykit._records import record
from latencykit.ctrlz.server import raise_file_limit
from latencykit.errors import InputTooLargeError, InvalidArgumentError, LatencyKitError
from latencykit.units import format_count, format_duration, parse_duration

MODES = ("open", "closed", "catchup")
MOST_REQUESTS = 2_000_000
GRACE = 60.0
"""Seconds that replies may take after the last request was sent."""

Row = tuple[int, int, int, int, int]
"""Start, intended start (ns since the epoch), latency (ns), connection, HTTP status or 0."""


PORTS = {
    "http": 80, "https": 443, "ws": 80, "wss": 443, "grpc": 50051, "grpcs": 50051, "redis": 6379,
    "rediss": 6379, "postgres": 5432, "postgresql": 5432, "mysql": 3306, "mongodb": 27017,
    "amqp": 5672, "nats": 4222, "kafka": 9092, "memcached": 11211, "tcp": 0,
}  # fmt: skip
"""Default ports of the protocols that an address may name."""


def loopback(url: str, schemes: Iterable[str] = ("http",)) -> tuple[str, int]:
    """Return host and port of a URL on this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        local, port = False, 0
    if parts.scheme not in schemes or not local or not port:
        hint = "" if "redis" not in schemes else ", or redis://, postgres://, grpc://, tcp://"
        raise InvalidArgumentError(
            f"{url!r} is not an address on this machine; write http://127.0.0.1:PORT/{hint}"
        )
    return host, port


@record()
class Load:
    """A load to generate."""

    mode: str
    url: str
    duration: float
    rate: float | None = None
    connections: int = 1

    def __post_init__(self) -> None:
        loopback(self.url)
        if self.mode not in MODES:
            raise InvalidArgumentError(f"the mode is one of {', '.join(MODES)}, not {self.mode!r}")
        if self.mode != "closed" and self.rate is None:
            raise InvalidArgumentError(f"{self.mode}: a schedule needs a rate")
        if not (
            0 < self.duration <= 3600 and 1 <= self.connections <= 10_000 and (self.rate or 1) > 0
        ):
            raise InvalidArgumentError(
                "the duration must be up to an hour, the rate positive, the connections 1 to 10,000"
            )
        if (self.rate or 0) * self.duration > MOST_REQUESTS:
            raise InputTooLargeError(
                f"{self.rate:g}/s for {format_duration(self.duration * 1e9)} are more than "
                f"{MOST_REQUESTS:,} requests"
            )


class _Wire(asyncio.Protocol):
    """A connection that has one request under way at most."""

    def __init__(self) -> None:
        self._buffer = b""
        self._reply: asyncio.Future[tuple[int, int]] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(
                error or ConnectionResetError("the server closed the connection")
            )

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter_ns()
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
        if len(body) < int(fields.get(b"content-length", 0)):
            return
        self._buffer = b""
        if self._reply is not None and not self._reply.done():
            self._reply.set_result((now, int(head.split(b" ", 2)[1])))

    @property
    def usable(self) -> bool:
        """True unless the server, or we, have closed the connection."""
        return self.transport is not None and not self.transport.is_closing()

    async def ask(self, request: bytes) -> tuple[int, int, int]:
        """Return the times of the send and of the reply (``perf_counter_ns``), and the status."""
        assert self.transport is not None
        self._reply = asyncio.get_running_loop().create_future()
        start = time.perf_counter_ns()
        self.transport.write(request)
        end, status = await self._reply
        return start, end, status


@dataclass
class _Run:
    """One load under way."""

    load: Load
    # Of each request: due, start, end, connection, status.
    rows: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    idle: deque[tuple[int, _Wire]] = field(default_factory=deque)
    wires: list[_Wire] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.host, self.port = loopback(self.load.url)
        parts = urlsplit(self.load.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.request = f"GET {target} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n\r\n".encode()

    async def connect(self) -> tuple[int, _Wire]:
        loop = asyncio.get_running_loop()
        number, wire = len(self.wires), _Wire()
        self.wires.append(wire)
        await loop.create_connection(lambda: wire, self.host, self.port)
        return number, wire

    async def send(self, due: int, number: int, wire: _Wire) -> None:
        """Send one request, and record its outcome."""
        start = time.perf_counter_ns()
        try:
            start, end, status = await wire.ask(self.request)
        except (ConnectionError, asyncio.CancelledError):
            end, status = time.perf_counter_ns(), 0
        self.rows.append((due, start, end, number, status))

    # ------------------------------------------------------------ the three modes

    async def closed(self, begin: int, number: int) -> None:
        """Drive a connection of a closed loop; `catchup` keeps past turns, `closed` drops them."""
        rate, connections = self.load.rate, self.load.connections
        step = 0 if rate is None else round(connections * 1e9 / rate)
        due = begin + step * number // connections
        end = begin + round(self.load.duration * 1e9)
        name, wire = await self.connect()
        while due < end:
            await _until(due)
            if not wire.usable:
                name, wire = await self.connect()
            await self.send(due, name, wire)
            due += step
            if self.load.mode == "closed":
                due = max(due, time.perf_counter_ns())

    async def open_loop(self, begin: int) -> None:
        """Send every request when it is due."""
        under_way: set[asyncio.Task[None]] = set()
        self.idle += [await self.connect() for _ in range(self.load.connections)]
        try:
            for due in self.dues(begin):
                await _until(due)
                task = asyncio.create_task(self.one(due))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            if under_way:
                await asyncio.wait(under_way, timeout=GRACE)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    def dues(self, begin: int) -> Iterator[int]:
        assert self.load.rate is not None
        count = round(self.load.rate * self.load.duration)
        return (begin + round(number * 1e9 / self.load.rate) for number in range(count))

    async def one(self, due: int) -> None:
        """Send one request of the open loop, over an idle connection or a new one."""
        while self.idle and not self.idle[0][1].usable:
            self.idle.popleft()
        number, wire = self.idle.popleft() if self.idle else await self.connect()
        await self.send(due, number, wire)
        if wire.usable:
            self.idle.append((number, wire))


async def _until(due: int) -> None:
    wait = due - time.perf_counter_ns()
    if wait > 0:
        await asyncio.sleep(wait / 1e9)


async def _drive(run: _Run) -> None:
    begin = time.perf_counter_ns()
    try:
        if run.load.mode == "open":
            await run.open_loop(begin)
        else:
            async with asyncio.timeout(run.load.duration + GRACE):
                await asyncio.gather(*(run.closed(begin, n) for n in range(run.load.connections)))
    finally:
        for wire in run.wires:
            if wire.transport is not None:
                wire.transport.abort()
        await asyncio.sleep(0)  # the sockets are closed in the loop's next round


def generate(load: Load) -> list[Row]:
    """Send a load; return one row per request, in order of the send."""
    epoch = time.time_ns() - time.perf_counter_ns()
    run = _Run(load)
    try:
        asyncio.run(_drive(run))
    except TimeoutError:
        raise LatencyKitError(
            f"{load.url}: no reply within {GRACE:g} s after the end of the run"
        ) from None
    except OSError as error:
        raise LatencyKitError(f"{load.url}: {error.strerror or error}") from None
    rows = (
        (start + epoch, due + epoch, end - start, number, status)
        for due, start, end, number, status in run.rows
    )
    return sorted(rows)


# ------------------------------------------------------------
# The command: ``python -m latencykit.ctrlz.client open|closed|catchup URL``.
#
# It shows the effect of the mode on the report, and tests the test: an open loop is honest, a
# closed one omits. Samples go to standard output or a file as CSV, their quality to standard error.


def csv_lines(rows: Sequence[Row], *, intended: bool) -> list[str]:
    """Return the CSV: a header, then one line per request, with or without the intended start."""
    if intended:
        body = [
            f"{start},{took},{due},{number},{status}" for start, due, took, number, status in rows
        ]
        return ["start_ns,latency_ns,intended_ns,conn,status", *body]
    return [
        "start_ns,latency_ns,conn,status",
        *(f"{start},{took},{number},{status}" for start, _, took, number, status in rows),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a client; return 0, or 2 after an error."""
    parser = argparse.ArgumentParser(prog="python -m latencykit.ctrlz.client", description=__doc__)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("url", help="http://127.0.0.1:PORT/")
    parser.add_argument("--rate", type=float, help="requests per second, all connections together")
    parser.add_argument(
        "--connections",
        type=int,
        default=1,
        help="of the closed loops; an open one begins with them (1)",
    )
    parser.add_argument("--duration", default="10s", help="10s")
    parser.add_argument(
        "--intended",
        action="store_true",
        help="catchup: write the intended starts, which give the true response times",
    )
    parser.add_argument("-o", "--output", help="CSV file; standard output without it")
    options = parser.parse_args(arguments)
    if options.intended and options.mode == "closed":
        parser.error("a closed loop has no intended starts: a turn that has passed is dropped")
    try:
        duration = parse_duration(options.duration, "s") / 1e9
        load = Load(options.mode, options.url, duration, options.rate, options.connections)
        raise_file_limit()
        rows = generate(load)
    except LatencyKitError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    text = "\n".join(csv_lines(rows, intended=options.mode == "open" or options.intended)) + "\n"
    if options.output:
        Path(options.output).write_text(text, encoding="ascii")
    else:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.write(text)
    # The quality of a run: requests, missing replies, delays of the send.
    late = sorted(start - due for start, due, *_ in rows)
    unanswered = sum(1 for row in rows if row[-1] == 0)
    text = f"{load.mode} loop: {format_count(len(rows))} requests"
    if unanswered:
        text += f", {format_count(unanswered)} without a reply"
    if late and load.mode != "closed":
        p50, p99 = (format_duration(late[len(late) * p // 100]) for p in (50, 99))
        text += f"; sent {p50} (p50), {p99} (p99) after they were due"
    sys.stderr.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
