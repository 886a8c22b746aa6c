"""What untrusted servers give: each failure is one line that names the address and no secret, and nothing stays behind."""

from __future__ import annotations

import gc
import gzip
import json
import random
import re
import socket
import tempfile
from pathlib import Path
from threading import Event

import pytest

import latencykit as lk
from latencykit.io import files as places
from tests.conftest import needs_package
from tests.servers import Replies, served

pytestmark = [pytest.mark.slow, needs_package("aiohttp", "cluster")]


DATA = Path(__file__).parents[2] / "data"
LOG = (DATA / "jhiccup-v2.hlog").read_bytes()
INTERVALS = b"".join(line for line in LOG.splitlines(keepends=True) if line[:1].isdigit())


ASKED: list[str] = []
GONE = Event()


class UntrustedServer(Replies):
    """Serves what the path asks for: a status, a body, and the length that it lies about."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        kind = self.path.partition("?")[0].rpartition("/")[2]
        ASKED.append(f"{self.command} {kind}")
        if kind in ("silent", "drip", "stops", "reset"):
            self._trouble(kind)
            return
        if kind in ("noise", "nothing"):
            self.wfile.write(b"\0\xff no HTTP\r\n\r\n" if kind == "noise" else b"")
            self.close_connection = True
            return
        status, body, headers = ANSWERS.get(kind, (404, b"", {}))
        if kind == "wrong-range.hlog" and "Range" in self.headers:
            status, body, headers = 206, body[:100], {"Content-Range": f"bytes 5-104/{len(body)}"}
        self.reply(status, body, headers)
        self.close_connection = "Content-Length" in headers or "Transfer-Encoding" in headers

    def _trouble(self, kind: str) -> None:
        """Be silent, slow, or hang up."""
        self.close_connection = True
        if kind == "silent":
            GONE.wait()  # until the tests end: a client that does not give up waits as long
            return
        self.reply(200, LOG[:2000], {"Content-Length": str(len(LOG))})
        if self.command == "HEAD":
            return
        if kind in ("drip", "stops"):
            while not GONE.wait(0.05 if kind == "drip" else None) and kind == "drip":
                self.wfile.write(b"#")
        else:
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.connection.close()


ANSWERS: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "good.hlog": (200, LOG, {}),
    "good.hlog.gz": (200, gzip.compress(LOG), {}),
    "unnamed": (200, gzip.compress(LOG), {}),
    "encoded.hlog": (200, gzip.compress(LOG), {"Content-Encoding": "gzip"}),
    "wrong-range.hlog": (200, LOG, {"Accept-Ranges": "bytes"}),
    "empty.hlog": (200, b"", {}),
    "short.hlog": (200, LOG[:4000], {"Content-Length": str(len(LOG))}),
    "cut.hlog": (200, b"fa0\r\n" + LOG[:4000] + b"\r\n", {"Transfer-Encoding": "chunked"}),
    "cut.hlog.gz": (200, gzip.compress(LOG)[:3000], {}),
    "negative.hlog": (200, LOG, {"Content-Length": "-5"}),
    "huge.hlog": (200, LOG, {"Content-Length": str(10**15)}),
    "busy.hlog": (503, b"", {}),
    "refused.hlog": (403, b"no", {}),
    "broken.hlog": (500, b"no", {}),
    "loop.hlog": (302, b"", {"Location": "/loop.hlog"}),
    "inside.hlog": (302, b"", {"Location": "file:///etc/passwd"}),
    "rubbish.hlog": (200, bytes(range(256)) * 300, {}),
    "page.hlog": (200, b"<html><body>please log in</body></html>", {}),
    "page-of-lines.hlog": (200, b"<html>\n<body>please log in</body>\n</html>\n", {}),
    "encoded-badly.hlog": (200, b"no gzip at all", {"Content-Encoding": "gzip"}),
}
GOOD = ("good.hlog", "good.hlog.gz", "unnamed", "encoded.hlog", "wrong-range.hlog")
NOTED = ("cut.hlog.gz",)


@pytest.fixture(scope="module")
def host():
    with served(UntrustedServer) as server:
        server.handle_error = lambda *_: None  # clients hang up on nonsense
        yield f"127.0.0.1:{server.server_port}"
        GONE.set()


@pytest.fixture(autouse=True)
def spool(tmp_path, monkeypatch):
    """Where copies lie."""
    place = tmp_path / "spool"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    ASKED.clear()
    return place


def left_in(spool):
    gc.collect()  # what was read goes with the process, or when nobody knows it any more
    return list(spool.iterdir())


@pytest.mark.parametrize("name", [*GOOD, *NOTED])
def test_what_a_server_gives_whole_is_read(name, host, run, spool):
    status, out, err = run("summary", "--unit", "ns", "--format", "json", f"http://{host}/{name}")
    assert status == 0, err
    assert ("the compressed file is truncated at its end" in err) == (name in NOTED)
    assert name in NOTED or f'"count": {lk.read(DATA / "jhiccup-v2.hlog").histogram().count}' in out
    assert left_in(spool) == []


@pytest.mark.parametrize(
    "name", ["gone.hlog", "noise", "nothing", *sorted(set(ANSWERS) - {*GOOD, *NOTED})]
)
def test_what_goes_wrong_is_one_line(name, host, run, spool):
    url = f"http://me:secret@{host}/{name}?token=pwd-0451&a=%1b[31m"
    err = run.refused("-q", "summary", "--unit", "ns", url)
    assert re.match(rf"latencykit: http://{host}/{re.escape(name)}(:\d+)?: ", err), err
    assert not re.search(r"secret|pwd-0451|\x1b", err)
    assert left_in(spool) == []


@pytest.mark.parametrize(
    ("name", "limit", "says"),
    [
        ("silent", "answer=300ms", "the server said nothing for 0.3 s; --limit answer=TIME"),
        ("stops", "answer=0.3", "the server said nothing for 0.3 s; --limit answer=TIME"),
        (
            "drip",
            "fetch=300ms",
            r"the server took longer than 0.3 s .2,0\d\d bytes came.; --limit fetch=TIME",
        ),
        ("silent", "fetch=0.3s", "the server said nothing for 0.3 s; --limit fetch=TIME"),
    ],
)
def test_a_server_that_is_silent_or_slow_is_given_up(name, limit, says, host, run, spool):
    url = f"http://{host}/{name}?token=pwd-0451"
    err = run.refused("-q", "summary", "--unit", "ns", "--limit", limit, url)
    assert re.match(rf"latencykit: http://{host}/{name}: {says}", err), err
    assert left_in(spool) == []


def test_limits_of_servers_are_taken_from_a_program_and_from_the_environment(
    host, spool, monkeypatch
):
    with lk.limits(answer=0.2), pytest.raises(lk.LatencyKitError, match=r"said nothing for 0.2 s"):
        places.source_of(f"http://{host}/silent")
    monkeypatch.setenv("LATENCYKIT_LIMITS", "answer=100ms")
    with pytest.raises(lk.LatencyKitError, match=r"said nothing for 0.1 s"):
        places.source_of(f"http://{host}/silent")


@pytest.mark.parametrize(
    ("name", "says"), [("reset", "hung up|ended before"), ("busy.hlog", "503")]
)
def test_a_server_that_hangs_up_or_fails_is_asked_once(name, says, host, run, spool):
    err = run.refused("-q", "summary", "--unit", "ns", f"http://{host}/{name}")
    assert re.search(says, err)
    assert ASKED.count(f"GET {name}") <= 2  # for its size, and for what it holds


@pytest.mark.parametrize(
    "given", ["answer=0", "answer=-1", "fetch=nan", "fetch=1KiB", "fetch=soon"]
)
def test_a_limit_of_servers_that_is_none_is_refused(given, run):
    err = run.refused("summary", "--limit", given, "x.hlog")
    assert f"is not a valid size of the limit {given.split('=')[0]}" in err


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/a.hlog", "https://127.0.0.1:1/a.hlog", "http://", "memory://gone.hlog", "file:///gone.hlog",
        "file:///", "nonsense://a", "data://x", "memory://a\nb\x1b[31m.hlog", "http://127.0.0.1:1/*.hlog",
    ],
)  # fmt: skip
def test_an_address_of_nothing_is_one_line(url, run, spool):
    err = run.refused("-q", "summary", url)
    assert "\x1b" not in err
    assert left_in(spool) == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "the file is empty"),
        (LOG[:4000], None),  # its last line is cut: a note
        (gzip.compress(LOG)[:3000], None),
        (b"\0" * 3000, "expected an interval log"),
        (LOG.replace(b"HIST", b"HUST", 1), "a.hlog:"),
    ],
)
def test_other_storages_give_what_they_hold(data, says, run, spool):
    import fsspec

    fsspec.filesystem("memory").pipe("/a.hlog", data)
    status, out, err = run("summary", "--unit", "ns", "memory://a.hlog")
    assert status == (0 if says is None else 2)
    noted = "truncated" if data[:1] == b"\x1f" else "incomplete"
    assert (says or noted) in (err if says else out)
    assert left_in(spool) == []


def test_hosts_in_brackets_are_read(run, spool):
    assert places.expand("http://[::1]:80/a.hlog") == ["http://[::1]:80/a.hlog"]
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with served(UntrustedServer, "::1") as server:
        status, out, err = run("-q", "summary", f"http://[::1]:{server.server_port}/good.hlog")
    assert status == 0, err
    assert "good.hlog" in out
    assert left_in(spool) == []


def test_no_login_and_no_query_is_reported_or_written(host, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"http://me:secret@{host}/good.hlog?token=pwd-0451"
    again = f"http://me:secret@{host}/good.hlog?token=pwd-0451-b"
    every = [
        ("summary", "--format", "json", url, again),
        ("report", "-o", "page.html", url),
        ("chart", url),
        ("merge", "--tag-by-file", "-o", "both.hlog", url, again),
        ("convert", url, "copy.json"),
        ("check", "--slo", "99=1h", "--junit", "gate.xml", url),
        ("diagnose", url),
        ("summary", "--tag", "none", url),
        ("summary", "--from", "1e9", url),
    ]
    for words in every:
        _, out, err = run(*words, "--unit", "ns")
        assert not re.search("secret|pwd-0451", out + err), (words, out, err)
    written = [path for path in tmp_path.iterdir() if path.is_file()]
    assert len(written) == 5
    for path in written:
        assert not re.search(b"secret|pwd-0451", path.read_bytes()), path
        assert not re.search("secret|pwd-0451", path.name)
    assert lk.read(url).run.source == "good.hlog"
    with pytest.raises(lk.LatencyKitError) as caught:
        lk.read(url.replace("good", "refused"))
    assert not re.search("secret|pwd-0451", str(caught.value))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:se@cret@host/a", "https://host/a"),
        ("https://me:se/cret@host/a", "https://host/a"),
        ("https://host:8080/@me/a@b", "https://host:8080/@me/a@b"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("a//b: me@host", "a//b: me@host"),
        ("s3://key:secret@bucket/a?b#c: gone", "s3://bucket/a: gone"),
        ("url='https://host/a?b=1', 'c'", "url='https://host/a', 'c'"),
        ("what?.csv: me@host", "what?.csv: me@host"),
    ],
)
def test_secrets_are_known_by_their_place(text, shown):
    from latencykit._text import without_secrets

    assert without_secrets(text) == shown


class Fickle(UntrustedServer):
    """Serves a log, or one fault of several, at random."""

    def answer(self) -> None:
        server, log = self.server, LOG
        kind = server.rng.choice(server.faults)
        self.close_connection = True
        status, headers, body, length = 200, {}, log, len(log)
        if kind.isdigit():
            status, body, length = int(kind), b"no", 2
        elif kind == "loop":
            status, headers, body, length = 302, {"Location": self.path}, b"", 0
        elif kind == "short":
            body = body[: length // 2]
        if kind == "silent":
            GONE.wait(1)
        elif kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.connection.close()
        else:
            self.reply(status, body, {**headers, "Content-Length": str(length)})


@pytest.fixture(scope="module")
def fickle():
    with served(Fickle) as server:
        server.handle_error = lambda *_: None
        yield server


ALWAYS = ["fine"] * 5
LIMITS = ("--limit", "answer=100ms", "--limit", "fetch=1s", "--unit", "ns")


@pytest.mark.parametrize("words", [(), ("--merge",)])
def test_a_server_that_fails_at_random_under_200_files(words, fickle, run, spool):
    fickle.faults = [*ALWAYS, "404", "403", "429", "500", "503", "loop", "short", "silent", "reset"]
    fickle.rng = random.Random(7)
    urls = [
        f"http://me:secret@127.0.0.1:{fickle.server_port}/{k}.hlog?token=pwd-0451"
        for k in range(200)
    ]
    status, out, err = run("summary", *LIMITS, "--lenient", "--format", "json", *words, *urls)
    assert status == 0, err
    lost = [line for line in err.splitlines() if line.startswith("left out: ")]
    known = r"left out: http://127\.0\.0\.1:\d+/\d+\.hlog: (the server|nothing is there|cannot be read: )"
    assert all(re.match(known, line) for line in lost)
    assert 0 < len(lost) < 200
    count = sum(one["count"] for one in json.loads(out)["series"])
    assert count == (200 - len(lost)) * lk.read(DATA / "jhiccup-v2.hlog").count
    assert not re.search(r"secret|pwd-0451|Traceback|\wError", err)
    err = run.refused("-q", "summary", *LIMITS, *words, *urls)
    assert re.match(known.replace("left out", "latencykit"), err), err
    assert left_in(spool) == []
