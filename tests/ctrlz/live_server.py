"""An HTTP server with set service times: ``live_server.py MEAN_MS WORKERS SEED``.

Requests wait in one queue for one of some workers, each of which takes an exponential time: M/M/c
where arrivals are random. The queue is kept on paper (when each worker is free again), so that the
replies are late by the timer only, whose lateness does not add up.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import sys

from latencykit.ctrlz.server import BACKLOG, raise_file_limit


class Workers:
    """When each worker is free again."""

    def __init__(self, mean: float, number: int, seed: int) -> None:
        self.rate, self.free, self.random = 1 / mean, [0.0] * number, random.Random(seed)

    def take(self, now: float) -> float:
        """Return when a request that arrives now is answered."""
        end = max(now, self.free[0]) + self.random.expovariate(self.rate)
        heapq.heapreplace(self.free, end)
        return end


class Connection(asyncio.Protocol):
    """One client, which may send requests back to back."""

    def __init__(self, workers: Workers) -> None:
        self.workers, self.buffer = workers, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Queue each request."""
        self.buffer += data
        loop = asyncio.get_running_loop()
        while b"\r\n\r\n" in self.buffer:
            _, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            loop.call_at(self.workers.take(loop.time()), self.reply)

    def reply(self) -> None:
        """Answer."""
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


async def main(mean: float, number: int, seed: int) -> None:
    """Serve until the process ends; the port is printed first."""
    workers, loop = Workers(mean, number, seed), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(workers), "127.0.0.1", 0, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    raise_file_limit()
    asyncio.run(main(float(sys.argv[1]) / 1e3, int(sys.argv[2]), int(sys.argv[3])))
