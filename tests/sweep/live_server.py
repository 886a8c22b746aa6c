"""An HTTP server with set service times: ``live_server.py MEAN_MS SERVERS [constant]``.

Requests wait in one queue for one of some workers, each of which takes an exponential time: M/M/c
where arrivals are random. The queue is kept on paper (when each worker is free again), so that the
replies are late by the timer only, whose lateness does not add up.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import sys

MEAN, WORKERS = float(sys.argv[1]) / 1e3, int(sys.argv[2])
CONSTANT = "constant" in sys.argv[3:]
free = [0.0] * WORKERS
rng = random.Random(7)


class Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            _, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            loop = asyncio.get_running_loop()
            took = MEAN if CONSTANT else rng.expovariate(1 / MEAN)
            end = max(loop.time(), free[0]) + took
            heapq.heapreplace(free, end)
            loop.call_at(end, self.reply)

    def reply(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")  # type: ignore[attr-defined]


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
