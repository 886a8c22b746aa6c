"""Load generators with known habits: ``fake_tool.py HABIT URL RATE SECONDS``.

The names of the habits are those of the test, which knows the right verdict on each. All print
percentiles, in milliseconds unless the habit is another unit.
"""

from __future__ import annotations

import asyncio
import sys
import time
from urllib.parse import urlsplit

LINES = ("p50", "p90", "p99", "max", "mean")
Row = tuple[float, bool]


class Sender:
    """Sends requests of one kind to one server; keeps the seconds of each, and whether it failed."""

    def __init__(self, url: str, patience: float | None) -> None:
        parts = urlsplit(url)
        self.host, self.port, self.patience = parts.hostname, parts.port, patience
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.rows: list[Row] = []

    async def ask(self, *, fresh: bool = False) -> None:
        """Send one request over an idle connection or a new one."""
        pair = None if fresh or not self.idle else self.idle.pop()
        reader, writer = pair or await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if b"content-length" in line)
            await reader.readexactly(int(length.split(b":")[1]))
        except BaseException:
            writer.close()
            raise
        if fresh:
            writer.close()
        else:
            self.idle.append((reader, writer))

    async def timed(self, begin: float | None = None, *, fresh: bool = False) -> bool:
        """Send one request and keep its time since `begin`; return False if it timed out."""
        begin = time.perf_counter() if begin is None else begin
        try:
            async with asyncio.timeout(self.patience):
                await self.ask(fresh=fresh)
        except TimeoutError:
            self.rows.append((time.perf_counter() - begin, True))
            return False
        self.rows.append((time.perf_counter() - begin, False))
        return True


async def arrivals(sender: Sender, rate: float, seconds: float, habit: str) -> None:
    """Send at a constant or, over the first half, rising rate, whatever is in flight."""
    begin, under_way = time.perf_counter(), set()
    stop = asyncio.Event()

    async def one() -> None:
        start = time.perf_counter()
        ok = await sender.timed(start, fresh=habit == "closes")
        while not ok and habit == "retries-anew":
            ok = await sender.timed()
        if not ok and habit == "gives-up":
            stop.set()

    number, due = 0, 0.0
    while due < seconds and not stop.is_set():
        wait = begin + due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(one())
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        number += 1
        ramp = seconds / 2 if habit == "ramps" else 0.0
        due = (2 * ramp * number / rate) ** 0.5 if number < rate * ramp / 2 else (
            number / rate + ramp / 2)  # fmt: skip
    if stop.is_set():
        for task in under_way:
            task.cancel()
    if under_way:
        await asyncio.wait(under_way)


async def callers(sender: Sender, rate: float, seconds: float, number: int, think: float) -> None:
    """Send the next request after the reply, at its turn or after the think time."""
    begin = time.perf_counter()

    async def caller(first: int) -> None:
        turn = first
        while (now := time.perf_counter() - begin) < seconds:
            if not think and turn / rate > now:
                await asyncio.sleep(turn / rate - now)
            await sender.timed()
            turn += number
            await asyncio.sleep(think)

    await asyncio.gather(*(caller(k) for k in range(number)))


async def run(habit: str, url: str, rate: float, seconds: float) -> list[Row]:
    """Send the load of a habit."""
    impatient = ("drops-failed", "clips", "retries-anew", "gives-up")
    sender = Sender(url, 0.5 if habit in impatient else None)
    if habit == "starts-late":
        await asyncio.sleep(4)
    if habit == "probes-long":
        await sender.ask()
        await asyncio.sleep(4)
    if habit in ("one-connection", "thinks"):
        think = 0.02 if habit == "thinks" else 0.0
        await callers(sender, rate, seconds, 4 if think else 1, think)
    else:
        await arrivals(sender, rate, seconds, habit)
    return sender.rows


def main(habit: str, url: str, rate: float, seconds: float) -> None:
    """Send, and print."""
    rows = asyncio.run(run(habit, url, rate, seconds))
    kept = sorted(
        s
        for s, failed in rows
        if not (failed and habit in ("drops-failed", "gives-up", "retries-anew"))
    )
    if not kept:
        sys.exit("no request succeeded")
    values = [kept[min(len(kept) - 1, int(len(kept) * p))] for p in (0.5, 0.9, 0.99, 1.0)]
    values.append(sum(kept) / len(kept))
    factors = {"seconds": [(1, "")] * 5, "two-units": [(1e6, " us")] * 4 + [(1e3, " ms")]}
    for name, value, (factor, unit) in zip(
        LINES, values, factors.get(habit, [(1e3, " ms")] * 5), strict=True
    ):
        print(f"{name}: {value * factor:.6g}{unit}")
    print(f"requests: {len(kept)}")
    if habit == "gives-up" and any(failed for _, failed in rows):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
