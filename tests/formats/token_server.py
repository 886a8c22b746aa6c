"""A server of OpenAI's streaming API whose every token comes at a known time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST, GAP = 0.060, 0.015  # seconds
FAILS = 12  # every twelfth request


async def _answer(body: dict[str, Any], number: int, write: Any) -> None:
    tokens = int(body.get("max_tokens") or body.get("max_completion_tokens") or 8)
    about = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1, "model": "mock"}
    word = {"index": 0, "delta": {"role": "assistant", "content": " the"}, "finish_reason": None}
    usage = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": 8 + tokens}
    begin = asyncio.get_running_loop().time()
    for k in range(tokens):
        due = begin + FIRST + k * GAP
        await asyncio.sleep(max(due - asyncio.get_running_loop().time(), 0))
        await write("data: " + json.dumps(about | {"choices": [word]}) + "\n\n")
    await write("data: " + json.dumps(about | {"choices": [], "usage": usage}) + "\n\n")
    await write("data: [DONE]\n\n")


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: list[int]
) -> None:
    async def chunk(text: str) -> None:
        writer.write(b"%x\r\n%s\r\n" % (len(text.encode()), text.encode()))
        await writer.drain()

    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while line := await reader.readline():
            method, path, _ = line.decode().split()
            size = 0
            while (header := (await reader.readline()).strip().lower()) != b"":
                if header.startswith(b"content-length:"):
                    size = int(header.partition(b":")[2])
            body = json.loads(await reader.readexactly(size) or b"{}")
            status, reply = "200 OK", {"object": "list", "data": [{"id": "mock"}]}
            if method == "POST" and path.endswith("completions"):
                count[0] += 1
                if count[0] % FAILS:
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
                    writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
                    await _answer(body, count[0], chunk)
                    await chunk("")
                    continue
                status, reply = "503 Service Unavailable", {"error": {"message": "overloaded"}}
            data = json.dumps(reply).encode()
            writer.write(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n".encode())
            writer.write(f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
            await writer.drain()
    writer.close()


@contextlib.contextmanager
def token_server() -> Iterator[int]:
    """Run the server in a thread of its own; yield its port."""
    loop, count = asyncio.new_event_loop(), [0]
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    start = asyncio.start_server(lambda r, w: _serve(r, w, count), "127.0.0.1", 0)
    server = asyncio.run_coroutine_threadsafe(start, loop).result()

    async def stop() -> None:
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)

    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
