"""Files without latencies that people give: each is named, in one line, with a hint that helps."""

from __future__ import annotations

import io
import json
import pickle
import sqlite3
import sys
import tarfile
import traceback
import zipfile
from pathlib import Path

import pytest

import latencykit as lk
from latencykit.errors import UnknownFormatError
from latencykit.io.other_files import hint_for
from latencykit.io.source import Head

ROOT = Path(__file__).parents[2]
EVENTS = ROOT / "tests" / "data" / "events"
DASHBOARD = {
    "annotations": {"list": [{"name": "x", "type": "dashboard", "color": "red", "steps": [1, 2]}]},
    "panels": [{"id": 1, "gridPos": {}, "steps": [{"color": "green", "value": None}]}],
}
PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def archive(kind: str) -> bytes:
    made = io.BytesIO()
    if kind == "tar":
        with tarfile.open(fileobj=made, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("x"), io.BytesIO())
    else:
        with zipfile.ZipFile(made, "w") as packed:
            packed.writestr("xl/workbook.xml" if kind == "xlsx" else "notes.txt", "x")
    return made.getvalue()


def python_trace() -> str:
    try:
        json.loads("{")
    except ValueError:
        return traceback.format_exc()
    raise AssertionError


FILES = {
    "PNG": (PICTURE, "a PNG picture", "drawn from"),
    "JPEG": (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG picture", "drawn from"),
    "PDF": (b"%PDF-1.7\n%\xe2\xe3\xcf\n1 0 obj", "a PDF document", "drawn from"),
    "SVG": ('<?xml version="1.0"?>\n<svg xmlns="x"><text>1</text></svg>', "an SVG", "drawn from"),
    "pcap": (b"\xd4\xc3\xb2\xa1\2\0\4\0" + bytes(16), "a packet capture", "tshark -r "),
    "zip": (archive("zip"), "a ZIP archive", "zip://results.csv::"),
    "xlsx": (archive("xlsx"), "an Office document", "as CSV"),
    "tar": (archive("tar"), "a tar archive", "unpacked"),
    "pickle": (pickle.dumps([1.0, 2.0]), "a Python pickle", "to_parquet"),
    "pickle of a dict": (pickle.dumps({"p99": 2.0}), "a Python pickle", "never loaded"),
    "core": (b"\x7fELF\2\1\1" + bytes(9) + b"\4\0" + bytes(40), "a core dump", "run it again"),
    "LFS": (
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
        "a pointer of Git LFS", "git lfs pull",
    ),
    "HTML": ("<!DOCTYPE html>\n<html><body>p99: 12 ms</body></html>", "an HTML page", "JSON"),
    "S3": ("<Error><Code>AccessDenied</Code></Error>", "(AccessDenied)", "rights"),
    "notebook": (
        json.dumps({"cells": [{"cell_type": "code", "source": []}], "nbformat": 4}),
        "a Jupyter notebook", "calls.csv",
    ),
    "dashboard": (json.dumps(DASHBOARD, indent=1), "a Grafana dashboard", "query_range"),
    "rules": (
        "groups:\n- name: x\n  rules:\n  - alert: A\n    expr: x > 1\n",
        "Prometheus' rules", "/metrics",
    ),
    "scrape": ("scrape_configs:\n- job_name: x\n", "a configuration of Prometheus", "/metrics"),
    "jmx": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<jmeterTestPlan version="1.2"><hashTree/>',
        "a JMeter test plan", "jmeter -n -t ",
    ),
    "k6": ("import http from 'k6/http';\nexport default () => {}\n", "a k6 script", "csv=out.csv"),
    "gatling": (
        "import io.gatling.core.Predef._\nclass A extends Simulation {}\n",
        "a Gatling simulation", "simulation.log",
    ),
    "locust": ("from locust import HttpUser\n", "a locustfile", "--csv out"),
    "wrk": ('wrk.method = "POST"\n', "a script of wrk", "--latency -s "),
    "artillery": ("config:\n  target: http://x\nscenarios: []\n", "an Artillery script", "out.json"),
    "vegeta": ("GET http://localhost/\nGET http://localhost/a\n", "vegeta's targets", "encode"),
    "fio": ("[global]\nrw=randread\n[job]\n", "a job file of fio", "json+"),
    "tcpdump": (
        "12:00:01.123456 IP 10.0.0.1.443 > 10.0.0.2.5000: Flags [P.], seq 1:100, length 99\n",
        "tcpdump's text", "tshark",
    ),
    "vmstat": ("procs -----------memory---------- ---swap--\n r  b\n 1  0\n", "vmstat", "averages"),
    "folded": ("main;a;b 12\nmain;a;c 3\n", "folded stacks", "no latencies"),
    "Python": (python_trace(), "a stack trace", "run it again"),
    "Java": (
        'Exception in thread "main" java.lang.Error\n\tat com.x.Y.z(Y.java:12)\n',
        "a stack trace", "run it again",
    ),
    "Go": ("panic: x\n\ngoroutine 1 [running]:\nmain.main()\n", "a stack trace", "run it again"),
    "Rust": ("thread 'main' panicked at src/main.rs:2:5:\nx\n", "a stack trace", "run it again"),
    "JVM crash": (
        "#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n",
        "a crash report", "run it again",
    ),
    "shell": ("sh: 1: wrk: not found\n", "wrk was not found", "install"),
    "bash": ("bash: line 1: hey: command not found\n", "hey was not found", "install"),
    "usage": ("Usage: wrk <options> <url>\n  Options:\n", "usage text", "refused its options"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("suffix", [".txt", ".hlog"])
def test_it_is_named_with_a_hint(name, suffix, tmp_path):
    content, kind, hint = FILES[name]
    path = tmp_path / f"the file{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UnknownFormatError) as caught:
        lk.read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: this is ")
    assert kind in text
    assert hint in text
    assert "\n" not in text
    assert "FILE" not in text


@pytest.mark.skipif(sys.platform == "emscripten", reason="a page runs no programs")
def test_a_program_and_a_database(tmp_path):
    with pytest.raises(UnknownFormatError, match=r"an ELF program|a Windows program|no reader"):
        lk.read(sys.executable)
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("create table calls (ms)")
    with pytest.raises(UnknownFormatError, match=r"an SQLite database.*sqlite3 -header"):
        lk.read(tmp_path / "x.db")


@pytest.mark.parametrize(
    "path", [one for one in sorted(EVENTS.rglob("*")) if one.is_file() and "requests" not in one.name],
    ids=lambda path: path.name,
)  # fmt: skip
def test_a_log_of_events_is_sent_where_events_belong(run, path):
    assert "this is " in run.refused("summary", path)
    with pytest.raises(UnknownFormatError, match=r"latencykit explain RUN --events ") as caught:
        lk.read(path)
    assert str(path) in str(caught.value).rpartition("--events")[2]
    if path.name != "undecorated-25.log":  # whose lines have no time
        assert lk.read_events(path).kind


@pytest.mark.parametrize(
    "text",
    [
        "latency_ms,note\n1.5,panic: no\n2.5,sh: 1: wrk: not found\n",
        "p50: 1 ms\np99: 3 ms\nTraceback (most recent call last):\n  File x\n",
        '{"latency_ms": 5, "message": "Traceback (most recent call last):"}\n' * 3,
        '[{"latency_ms": 5, "message": "GC(3) Pause"}, {"latency_ms": 6, "message": "x"}]',
    ],
)
def test_what_can_be_read_is_read(text, tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(text)
    assert lk.read(path) is not None


def test_a_table_that_prose_shows_further_down_is_not_the_file() -> None:
    prose = "what follows is visible in iostat:\n" + "more\n" * 12
    table = "avg-cpu:  %user  %idle\n           0.12  99.75\n"
    assert hint_for(Head("x.txt", (prose + table).encode()), "x.txt", readable=False) is None
    assert hint_for(Head("x.txt", table.encode()), "x.txt", readable=False) is not None
