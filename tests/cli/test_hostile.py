"""Untrusted input, over the command line: one line of error, no traceback, nothing half-written or overwritten."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import os
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from threading import Thread

import pytest

import latencykit as lk
from tests.conftest import DATA, RAW
from tests.io.test_contract import attempt


def payload(counts: bytes, **header: object) -> str:
    """A V2 payload with any header, as it stands in a log."""
    names = ("size", "offset", "digits", "low", "high", "ratio")
    usual = dict(zip(names, (len(counts), 0, 3, 1, 36 * 10**11, 1.0), strict=True))
    inner = struct.pack(">iiiiqqd", 0x1C849313, *(usual | header).values()) + counts
    packed = zlib.compress(inner, 1 if len(inner) > 1 << 20 else -1)  # at any level a bomb
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(packed)) + packed).decode()


def log_of(path, *payloads: str, tag: str = ""):
    lines = (f"{tag}{k}.0,1.0,1.0,{one}\n" for k, one in enumerate(payloads))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_counts_beyond_all_numbers_are_refused(run, tmp_path):
    most = payload(b"\xfe" + b"\xff" * 8)  # 2^63 - 1
    assert "2^63" in run.refused("-q", "summary", log_of(tmp_path / "a.hlog", most, payload(b"\2")))


def test_nothing_foreign_reaches_the_terminal_as_a_command(run, tmp_path):
    log = log_of(tmp_path / "a.hlog", payload(b"\2"), tag="Tag=\x1b]0;x\x07\u202e,")
    status, out, err = run("summary", log)
    assert status == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(out + err)
    bad = tmp_path / "a\nb\x1b[31m.txt"
    bad.write_text("nothing")
    assert "\x1b" not in run.refused("summary", bad)


def places(record: object, path: tuple[object, ...] = ()):
    """Every place in a JSON record, with the first element of each list."""
    first = enumerate(record[:1] if isinstance(record, list) else ())
    for key, value in record.items() if isinstance(record, dict) else first:
        yield (*path, key)
        yield from places(value, (*path, key))


@pytest.mark.slow
def test_no_wrong_value_in_our_own_json_breaks_anything(run, tmp_path):
    good, path = tmp_path / "good.json", tmp_path / "bad.json"
    assert run("-q", "convert", RAW, good, "--to", "3s")[0] == 0
    text = good.read_text()
    for number, place in enumerate(places(json.loads(text))):
        record = json.loads(text)
        inner = record
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = 1e300 if place[-1] == "scale" else (None, "x", [], {})[number % 4]
        path.write_text(json.dumps(record))
        status, _, err = run("-q", "summary", "--percentiles", "50", path)
        assert status in (0, 2), place
        assert err.count("\n") == (status == 2), place


@pytest.mark.slow
def test_a_reader_that_went_away_is_not_a_verdict():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "latencykit", "-q", "summary", "--format", "json", str(RAW)]
    with os.fdopen(writer, "wb") as gone:
        ended = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_closed_standard_input_is_said(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed" in run.refused("summary", "-")


DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "text",
    [
        "1 {0} 3 4 5 6 7 8 9 10\n",
        "1795219554 {0} 3 4 5 6\n",
        "{0}\n",
        "# Histogram\n000001 {0}:\n",
        "a,{0}\n1,2\n",
    ],
)
def test_digits_without_end_stop_no_detection(run, tmp_path, text):
    path = tmp_path / "a.txt"
    path.write_text(text.format(DIGITS) * 3)
    assert "bug" not in run.refused("-q", "summary", path)


@pytest.mark.slow
@pytest.mark.parametrize("ends", [("\r\n", "\r"), ("\n\r\n", "\r\r\n")])
def test_blank_lines_after_any_line_end_break_no_reader(tmp_path, ends):
    """Each sample with one of two line ends, and with one of two others."""
    samples = sorted((DATA / "formats").glob("*/*/expect.json"))
    for expect, end in zip(samples, itertools.cycle(ends)):
        name = json.loads(expect.read_text())["file"]
        data = (expect.parent / name).read_bytes() if (expect.parent / name).is_file() else b""
        if b"\n" not in data or b"\0" in data or len(data) > 6000:
            continue
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(data.replace(b"\n", end.encode()) + end.encode() * 2)
        said = attempt(lk.read_all, path)
        assert not isinstance(said, str) or not re.search(r"\n|bug in the reader", said), name


PIPED = {
    "a log": RAW.read_bytes(),
    "a compressed log": gzip.compress(RAW.read_bytes()),
    "a long table": b"latency_ms,tag\n" + b"5,a\n" * 40_000,
    "a long list": b"[" + b'{"latency_ms": 5},' * 9_000 + b'{"latency_ms": 5}]',
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", PIPED)
def test_a_pipe_is_read_as_a_file_is(run, tmp_path, name):
    path, pipe = tmp_path / "file", tmp_path / "pipe"
    path.write_bytes(PIPED[name])
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=[PIPED[name]], daemon=True)
    writer.start()
    piped = run("-q", "summary", "--format", "csv", f"x={pipe}")
    writer.join()
    assert piped[0] == 0
    assert piped == run("-q", "summary", "--format", "csv", f"x={path}")


def test_what_cannot_be_read_is_named_and_an_empty_name_is_explained(run):
    assert "empty string" in run.refused("summary", "")
    if os.path.exists("/proc/self/mem"):  # noqa: PTH110
        assert "/proc/self/mem: cannot be read" in run.refused("summary", "/proc/self/mem")


def test_a_directory_whose_files_go_away_is_refused_as_one(run, tmp_path, monkeypatch):
    def gone(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/proc/26459")

    monkeypatch.setattr(Path, "glob", gone)
    assert "no reader knows this directory" in run.refused("summary", tmp_path)


def test_a_line_that_is_not_json_says_why(run, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"latency_ms":1}\n{"latency_ms":nan}\n{"latency_ms":1}\n')
    err = run.refused("summary", path)
    assert "a.jsonl:2: this is not JSON" in err
    assert "near 'nan}'" in err
    assert "expected the JSON" not in err
