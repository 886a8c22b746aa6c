"""A server of OpenAI's streaming API whose every token comes at a known time."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from tests.servers import served

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST, GAP = 0.060, 0.015  # seconds
FAILS = 12  # every twelfth request


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self.reply(200, {"object": "list", "data": [{"id": "mock"}]})

    def do_POST(self) -> None:
        begin, number = time.perf_counter(), next(self.server.requests)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if number % FAILS == 0:
            self.reply(503, {"error": {"message": "overloaded"}})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        tokens = int(body.get("max_tokens") or body.get("max_completion_tokens") or 8)
        common = {"id": f"c{number}", "object": "chat.completion.chunk"}
        common |= {"created": 1, "model": "mock"}
        word = {"index": 0, "delta": {"role": "assistant", "content": " the"}}
        usage = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": 8 + tokens}
        for k in range(tokens):
            time.sleep(max(begin + FIRST + k * GAP - time.perf_counter(), 0))
            self.chunk(json.dumps(common | {"choices": [word | {"finish_reason": None}]}))
        self.chunk(json.dumps(common | {"choices": [], "usage": usage}))
        self.chunk("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, text: str) -> None:
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def reply(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextlib.contextmanager
def token_server() -> Iterator[int]:
    """Run the server in threads of its own; yield its port."""
    with served(Handler) as server:
        server.requests = itertools.count(1)
        yield server.server_port
