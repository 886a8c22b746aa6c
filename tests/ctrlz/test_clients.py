"""Our own clients and server, and the protocols that they speak."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest

from latencykit.ctrlz.client import Load, csv_lines, generate, loopback, main
from latencykit.ctrlz.server import MOST_BYTES, ProtocolError, parse_http, parse_resp, speaks_resp
from latencykit.ctrlz.targets import CommandTarget, OwnTarget, ProcessTarget, probe
from latencykit.errors import InputTooLargeError, InvalidArgumentError, LatencyKitError

live = pytest.mark.skipif(sys.platform == "win32", reason="the server is for Linux and macOS")


@pytest.mark.parametrize(
    "url", ["http://example.org/", "https://127.0.0.1/", "127.0.0.1:80", "http://127.0.0.1:x/", ""]
)
def test_only_this_machine_is_asked(url) -> None:
    with pytest.raises(InvalidArgumentError, match="on this machine"):
        loopback(url)


def test_addresses_of_this_machine() -> None:
    assert loopback("http://localhost/") == ("localhost", 80)
    assert loopback("http://[::1]:81/") == ("::1", 81)


@pytest.mark.parametrize(
    "bad", [{"mode": "x"}, {"rate": None}, {"duration": 0}, {"connections": 0}, {"rate": -1.0}]
)
def test_loads_are_checked(bad) -> None:
    usual = {"mode": "open", "url": "http://127.0.0.1:1/", "duration": 1.0, "rate": 10.0}
    with pytest.raises(InvalidArgumentError):
        Load(**usual | bad)


def test_loads_are_bounded() -> None:
    with pytest.raises(InputTooLargeError):
        Load("open", "http://127.0.0.1:1/", 3600, 1e6)


def test_nobody_there_is_said() -> None:
    with pytest.raises(LatencyKitError, match="http://127"):
        generate(Load("closed", "http://127.0.0.1:1/", 1.0, 10.0))


@pytest.mark.slow
@live
@pytest.mark.parametrize("mode", ["open", "closed", "catchup"])
def test_each_mode_sends_its_schedule(mode) -> None:
    with OwnTarget(1e6) as target:
        rows = generate(Load(mode, target.url, 0.5, 100.0, 2))
        served = target.stats()["requests"]
    start, due, took, number, status = np.array(rows).T
    assert len(rows) == served
    assert set(status) == {200}
    assert (took >= 1e6).all()
    assert (start >= due).all()
    if mode != "closed":
        assert len(rows) == 50
        assert np.diff(np.sort(due)) == pytest.approx(np.full(49, 1e7), abs=2)
    if mode != "open":
        assert set(number) == {0, 1}


@pytest.mark.slow
@live
def test_a_closed_loop_without_a_rate_sends_at_once() -> None:
    with OwnTarget(2e6) as target:
        rows = generate(Load("closed", target.url, 0.3, None, 2))
    for number in (0, 1):
        mine = [(start, start + took) for start, _, took, of, _ in rows if of == number]
        assert len(mine) > 5
        assert all(begin >= end for (_, end), (begin, _) in pairwise(mine))


def test_the_csv_has_intended_starts_only_where_they_mean_something() -> None:
    rows = [(10, 9, 5, 0, 200)]
    assert csv_lines(rows, intended=False) == ["start_ns,latency_ns,conn,status", "10,5,0,200"]


@pytest.mark.slow
@live
def test_the_command_writes_csv_and_says_what_it_is_worth(tmp_path, capsys) -> None:
    path = tmp_path / "out.csv"
    with OwnTarget(1e6) as target:
        assert (
            main(["open", target.url, "--rate", "100", "--duration", "0.2s", "-o", str(path)]) == 0
        )
        assert main(["closed", target.url, "--rate", "100", "--duration", "0.2s"]) == 0
    assert len(path.read_text().splitlines()) == 21
    said = capsys.readouterr()
    assert "after they were due" in said.err
    assert said.out.startswith("start_ns,latency_ns,conn,status\n")
    assert main(["closed", "http://example.org/"]) == 2


@pytest.mark.slow
@live
def test_a_server_of_the_user_s_own() -> None:
    command = [sys.executable, "-m", "http.server", "{port}", "--bind", "{host}"]
    with CommandTarget(command) as target:
        assert probe(target.url, 1) is not None
        assert target.frozen()[0] < 0
        assert target.stats() is None
    assert probe(target.url, 1) is None


@live
def test_a_server_may_end_in_order(tmp_path) -> None:
    log = tmp_path / "log"
    code = (
        "import http.server, signal, sys\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (open({str(log)!r}, 'w').close(), sys.exit()))\n"
        "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), "
        "http.server.SimpleHTTPRequestHandler).serve_forever()"
    )
    with CommandTarget([sys.executable, "-c", code, "{port}"]):
        assert not log.exists()
    assert log.exists()


@live
def test_a_server_that_does_not_start_is_reported() -> None:
    with (
        pytest.raises(LatencyKitError, match="does not listen"),
        CommandTarget([sys.executable, "-c", "{port}"]),
    ):
        pass
    with (
        pytest.raises(InvalidArgumentError, match="cannot be started"),
        CommandTarget("no-such-server {port}"),
    ):
        pass


@pytest.mark.parametrize(
    "make",
    [
        lambda: CommandTarget("server --fixed-port"),
        lambda: CommandTarget("server {port}", "http://example.org:{port}/"),
        lambda: ProcessTarget(1),
        lambda: ProcessTarget(77, "http://example.org/"),
    ],
)
def test_targets_that_cannot_be_are_refused(make) -> None:
    with pytest.raises(InvalidArgumentError):
        make()


# ---------------------------------------------------------------- protocols

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
