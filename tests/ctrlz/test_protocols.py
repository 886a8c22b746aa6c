from __future__ import annotations

import pytest

from latencykit.ctrlz.server import MOST_BYTES, ProtocolError, parse_http, parse_resp, speaks_resp

HTTP = (
    b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
    b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
    b"HEAD / HTTP/1.0\r\n\r\n"
)
RESP = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"


@pytest.mark.parametrize(("parse", "data"), [(parse_http, HTTP), (parse_resp, RESP)])
def test_requests_may_come_in_any_pieces(parse, data) -> None:
    whole = parse(bytearray(data))
    assert len(whole) == 3
    for size in range(1, len(data)):
        buffer, replies = bytearray(), []
        for at in range(0, len(data), size):
            buffer += data[at : at + size]
            replies += parse(buffer)
        assert replies == whole
        assert not buffer


@pytest.mark.parametrize(
    ("version", "field", "close"),
    [
        (b"1.1", b"", False),
        (b"1.1", b"Connection: close\r\n", True),
        (b"1.0", b"", True),
        (b"1.0", b"Connection: Keep-Alive\r\n", False),
    ],
)
def test_connections_are_kept_as_asked(version, field, close) -> None:
    (reply,) = parse_http(bytearray(b"GET / HTTP/" + version + b"\r\n" + field + b"\r\n"))
    assert reply.close is close
    assert (b"Connection: close" in reply.data) is close
    assert reply.data.endswith(b"ok\n")


def test_redis_commands_get_their_kind_of_reply() -> None:
    def ask(text: bytes) -> bytes:
        return b"".join(reply.data for reply in parse_resp(bytearray(text)))

    assert ask(b"ping\r\n") == b"+PONG\r\n"
    assert ask(b"set k v\r\n") == b"+OK\r\n"
    assert ask(b"CONFIG GET save\r\n") == b"*2\r\n$4\r\nsave\r\n$0\r\n\r\n"
    assert ask(b"NONSENSE\r\n").startswith(b"-ERR")
    assert ask(b"\r\n") == b""


@pytest.mark.parametrize(
    ("parse", "data"),
    [
        (parse_http, b"\x16\x03\x01 TLS\r\n\r\n"),
        (parse_http, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (parse_http, b"x" * (MOST_BYTES + 1)),
        (parse_resp, b"*99999999\r\n"),
        (parse_resp, b"*1\r\n$-5\r\n"),
        (parse_resp, b"*1\r\n:5\r\n"),
        (parse_resp, b"x" * (MOST_BYTES + 1)),
    ],
)
def test_what_is_not_the_protocol_is_refused(parse, data) -> None:
    with pytest.raises(ProtocolError):
        parse(bytearray(data))


def test_the_first_bytes_tell_the_protocol() -> None:
    assert [speaks_resp(start) for start in (b"*1\r\n", b"PING\r\n", b"POST / HTTP/1.1", b"G")] == [
        True, True, False, False,
    ]  # fmt: skip
