"""A TCP proxy that is frozen in a server's place: ``python -m latencykit.ctrlz.proxy HOST PORT``.

It passes bytes on, whatever they mean, so that any protocol can be tested, and no server has to be
stopped. Frozen, it neither accepts nor reads: a client waits as it would for the server itself.

It talks to its parent over its standard streams, one JSON object per line: ``{"port": …}`` when it
listens, then the time of its first connection for each line of input; the line ``reset`` forgets
it. It ends with its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time

from latencykit.ctrlz.server import BACKLOG, commands, say, serve


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction to its end, and then close that direction only."""
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def _serve(host: str, port: int) -> None:
    """Pass connections on until the parent is gone."""
    state: dict[str, object] = {"first": None}
    tasks: set[asyncio.Task[None] | None] = set()  # asyncio itself keeps no hold on them

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state["first"] = state["first"] or time.perf_counter_ns()
        tasks.add(asyncio.current_task())
        ends = [writer]
        with contextlib.suppress(OSError):
            upstream, onward = await asyncio.open_connection(host, port)
            ends.append(onward)
            await asyncio.gather(_pass_on(reader, onward), _pass_on(upstream, writer))
        for end in ends:
            end.close()
        tasks.discard(asyncio.current_task())

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=BACKLOG)
    async for word in commands(server):
        if word == ["reset"]:
            state["first"] = None
        say(state)


if __name__ == "__main__":
    serve(_serve(sys.argv[1], int(sys.argv[2])))
