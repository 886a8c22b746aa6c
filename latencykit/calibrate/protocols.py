"""As much of HTTP/1.1 and of Redis' RESP as load generators speak: bytes → replies, no sockets."""

from __future__ import annotations

from dataclasses import dataclass

from latencykit.errors import LatencyKitError

__all__ = ["MOST_BYTES", "ProtocolError", "Reply", "parse_http", "parse_resp", "speaks_resp"]

MOST_BYTES = 1 << 20
"""A request longer than this is refused."""

_END = b"\r\n"
_OK, _ONE, _VALUE, _NOTHING = b"+OK\r\n", b":1\r\n", b"$3\r\nxxx\r\n", b"*0\r\n"
_RESP_REPLIES = {
    b"PING": b"+PONG\r\n", b"GET": _VALUE, b"COMMAND": _NOTHING, b"LRANGE": _NOTHING,
    **dict.fromkeys((b"SET", b"MSET", b"SELECT", b"CLIENT", b"AUTH", b"FLUSHALL", b"QUIT"), _OK),
    **dict.fromkeys((b"INCR", b"LPUSH", b"RPUSH", b"SADD", b"HSET", b"ZADD", b"DEL", b"EXISTS"), _ONE),
    **dict.fromkeys((b"LPOP", b"RPOP", b"SPOP", b"HGET"), _VALUE), b"ZPOPMIN": _NOTHING,
}  # fmt: skip


class ProtocolError(LatencyKitError):
    """What came is neither HTTP nor RESP."""


@dataclass(frozen=True)
class Reply:
    """What to send back, and whether to close then."""

    data: bytes
    close: bool = False


def speaks_resp(data: bytes | bytearray) -> bool:
    """Tell RESP (an array, or an inline PING) from HTTP by the first bytes."""
    return data[:1] == b"*" or data[:4].upper() == b"PING"


def parse_http(buffer: bytearray) -> list[Reply]:
    r"""Take all whole requests off the buffer; return their replies.

    Raises
    ------
    ProtocolError
        For what is no HTTP/1.x request.

    Examples
    --------
    >>> buffer = bytearray(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT")
    >>> [reply.close for reply in parse_http(buffer)], bytes(buffer)
    ([False], b'GET / HT')
    """
    replies: list[Reply] = []
    while (end := buffer.find(b"\r\n\r\n")) >= 0:
        line, *fields = bytes(buffer[:end]).split(_END)
        words = line.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            raise ProtocolError(f"no HTTP/1.x request line: {line[:60]!r}")
        headers = {name.strip().lower(): value.strip() for name, _, value in (f.partition(b":") for f in fields)}
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or b"transfer-encoding" in headers:
            raise ProtocolError("only bodies with a Content-Length are understood")
        whole = end + 4 + int(length)
        if len(buffer) < whole:
            break
        del buffer[:whole]
        wish = headers.get(b"connection", b"").lower()
        keep = wish != b"close" if words[2] == b"HTTP/1.1" else b"keep-alive" in wish
        replies.append(_http_reply(words[0] == b"HEAD", keep))
    if len(buffer) > MOST_BYTES:
        raise ProtocolError(f"a request longer than {MOST_BYTES >> 20} MiB")
    return replies


def _http_reply(head: bool, keep: bool) -> Reply:
    connection = b"keep-alive" if keep else b"close"
    text = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: " + connection
    return Reply(text + b"\r\n\r\n" + (b"" if head else b"ok\n"), not keep)


def parse_resp(buffer: bytearray) -> list[Reply]:
    r"""Take all whole commands off the buffer, pipelined ones too; return their replies.

    Raises
    ------
    ProtocolError
        For what is no command.

    Examples
    --------
    >>> buffer = bytearray(b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n*1")
    >>> [reply.data for reply in parse_resp(buffer)], bytes(buffer)
    ([b'+PONG\r\n', b'$3\r\nxxx\r\n', b'+PONG\r\n'], b'*1')
    """
    replies: list[Reply] = []
    at = 0
    while (found := _command(buffer, at)) is not None:
        words, at = found
        if words:
            replies.append(_resp_reply(words))
    del buffer[:at]
    if len(buffer) > MOST_BYTES:
        raise ProtocolError(f"a command longer than {MOST_BYTES >> 20} MiB")
    return replies


def _command(buffer: bytearray, at: int) -> tuple[list[bytes], int] | None:
    """Words of the command that begins at `at`, and where the next one begins; None while it is not whole."""
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
    if not line.startswith(mark) or not line[1:].isdigit() or int(line[1:]) > most:
        raise ProtocolError(f"{mark.decode()} and a number were expected, not {line[:60]!r}")
    return int(line[1:])


def _resp_reply(words: list[bytes]) -> Reply:
    name = words[0].upper()
    if name == b"CONFIG":  # redis-benchmark asks for `save` and `appendonly` first
        asked = words[2] if len(words) > 2 else b""
        return Reply(b"*2\r\n$%d\r\n%s\r\n$0\r\n\r\n" % (len(asked), asked))
    reply = _RESP_REPLIES.get(name, b"-ERR unknown command\r\n")
    return Reply(reply, close=name == b"QUIT")
