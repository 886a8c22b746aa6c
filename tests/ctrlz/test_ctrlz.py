"""Ctrl+Z on real processes: our own clients, odd habits, what goes wrong, real tools."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from latencykit.ctrlz.run import ctrlz, read_output, substitute, written_files
from latencykit.ctrlz.targets import OwnTarget, probe
from latencykit.ctrlz.verdict import CalibrationRow
from latencykit.errors import InvalidArgumentError, LatencyKitError
from latencykit.io.registry import builtin_formats
from latencykit.views.ctrlz import ctrlz_record
from tests.ctrlz import worlds
from tests.ctrlz.conftest import league

if TYPE_CHECKING:
    from collections.abc import Callable


READ = {one.name for one in builtin_formats()}
if "wrk" not in READ:
    pytest.skip("the readers of what these tools print are not there", allow_module_level=True)

SHORT = {"stall": "0.9s", "duration": "2.7s", "rate": 200, "connections": 2}
PACED = ("--rate", "{rate}", "--connections", "{connections}")


def live(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.slow(worlds.live(test))


def _own(mode: str, *flags: str) -> list[str]:
    client = [sys.executable, "-m", "latencykit.ctrlz.client"]
    return [*client, mode, "{url}", "--duration", "{duration}s", "-o", "{out}", *flags]


# ------------------------------------------------------------ the project's own clients


@live
def test_the_open_client_is_honest() -> None:
    found = ctrlz(_own("open", *PACED), **SHORT)
    assert found.verdict == "honest"
    if Path("/proc/net/tcp").exists():
        assert found.model == "open"
    row = next(row for row in found.rows if row.percentile == 99)
    assert row.decisive
    assert row.truth == pytest.approx(0.873e9, rel=0.05)
    assert found.stall == pytest.approx(0.9, abs=0.2)


@live
def test_the_closed_client_omits() -> None:
    found = ctrlz(_own("closed", *PACED), **SHORT)
    assert found.verdict == "omits"
    assert any("scheduled requests were sent" in reason for reason in found.reasons)
    if Path("/proc/net/tcp").exists():
        assert found.model == "paced"


@live
def test_catching_up_omits_and_intended_starts_repair_it() -> None:
    omitting = ctrlz(_own("catchup", *PACED), **SHORT)
    assert omitting.verdict == "omits"
    assert any("catches up" in reason for reason in omitting.reasons)
    assert ctrlz(_own("catchup", "--intended", *PACED), **SHORT).verdict == "honest"


@live
def test_a_stall_over_the_end_of_the_run() -> None:
    found = ctrlz(_own("open", *PACED), at="end", **SHORT)
    assert found.verdict == "honest"
    (top,) = (row.truth for row in found.rows if row.percentile == 100)
    assert top == pytest.approx(0.9e9, rel=0.1)


@live
def test_a_server_of_the_user_s_own_is_frozen() -> None:
    server = [sys.executable, "-m", "latencykit.ctrlz.server", "--port", "{port}"]
    shell = ["sh", "-c", "tail -f /dev/null | " + " ".join(server)]
    assert ctrlz(_own("open", *PACED), server=shell, **SHORT).verdict == "honest"


@live
def test_a_process_that_runs_already() -> None:
    with OwnTarget(1e6) as target:
        found = ctrlz(_own("closed", *PACED), pid=target.frozen()[0], url=target.url, **SHORT)
    assert found.verdict == "omits"


FORKING = """
import http.server, os, socket, sys
sock = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
for _ in range(2):
    if not os.fork():
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()
            def log_message(self, *_): pass
        server = http.server.ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
        server.socket = sock
        server.serve_forever()
os.wait()
"""


@live
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc")
@pytest.mark.parametrize("worker", [False, True])
def test_all_processes_of_a_server_are_frozen(worker) -> None:
    """A worker's brother would answer meanwhile: it listens on the same port."""
    from latencykit.ctrlz.freeze import tree
    from latencykit.ctrlz.targets import free_port

    port = free_port()
    with subprocess.Popen([sys.executable, "-c", FORKING, str(port)]) as server:
        try:
            url = f"http://127.0.0.1:{port}/"
            deadline = time.monotonic() + 10
            while probe(url, 1) is None and time.monotonic() < deadline:
                time.sleep(0.05)
            pid = tree([server.pid])[1] if worker else server.pid
            found = ctrlz(_own("open", *PACED), pid=pid, url=url, **SHORT)
        finally:
            for process in reversed(tree([server.pid])):
                os.kill(process, signal.SIGKILL)
    assert found.verdict == "honest", found.reasons


@live
@pytest.mark.parametrize(("mode", "verdict"), [("open", "honest"), ("closed", "omits")])
def test_a_proxy_is_frozen_in_the_server_s_place(mode, verdict) -> None:
    with OwnTarget(1e6) as server:
        address = server.url.removeprefix("http://").strip("/")
        found = ctrlz(_own(mode, *PACED), through=address, url="http://x/", **SHORT)
        assert server.stats()["requests"] > 100
    assert found.verdict == verdict, found.reasons
    assert found.rows[0].truth is not None


@live
@pytest.mark.needs_tool
@pytest.mark.skipif(shutil.which("redis-benchmark") is None, reason="needs redis-benchmark")
def test_a_proxy_speaks_any_protocol() -> None:
    with OwnTarget(1e6) as server:
        address = server.url.removeprefix("http://").strip("/")
        found = ctrlz(
            "redis-benchmark -h {host} -p {port} -c {connections} -n 6000 -t get",
            through=address, url="redis://127.0.0.1/0", stall=1.0, duration=3.0,
        )  # fmt: skip
    assert found.verdict in ("omits", "partly"), found.reasons
    assert found.rows[0].truth is None


@live
def test_repeated_runs_are_put_together() -> None:
    found = ctrlz(_own("closed", *PACED), repeat=2, stall=0.6, duration=1.8)
    assert found.verdict == "omits"
    assert len(found.runs) == 2
    assert found.reasons[0] == "2 of 2 runs: omits"


# ------------------------------------------------------------ what goes wrong


@live
def test_a_tool_that_ends_early_is_reported() -> None:
    with pytest.raises(LatencyKitError, match="ended before the server was frozen"):
        ctrlz([*_own("closed", "--rate", "50")[:5], "--duration", "0.2"], **SHORT)


@live
def test_a_tool_that_sends_nothing_is_reported() -> None:
    with pytest.raises(LatencyKitError, match=r"without a request.*it said: no wonder"):
        ctrlz([sys.executable, "-c", "import sys; sys.exit('no wonder')"], **SHORT)


@live
def test_output_that_nobody_can_read_is_reported() -> None:
    client = " ".join(_own("closed", *PACED)).replace("{out}", "/dev/null")
    with pytest.raises(LatencyKitError, match=r"no reader knows .* ended with status 3.*kept in"):
        ctrlz(["sh", "-c", f"{client}; echo nonsense; exit 3"], **SHORT)


def test_a_command_that_does_not_exist_is_reported() -> None:
    with pytest.raises(InvalidArgumentError, match="no-such-tool: cannot be started"):
        ctrlz("no-such-tool {url}", **SHORT)


@pytest.mark.parametrize(
    "bad",
    [
        {"stall": 5, "duration": 4}, {"duration": 9999}, {"rate": 0}, {"connections": 0},
        {"at": "start"}, {"repeat": 0},
        {"url": "http://127.0.0.1:1/"}, {"pid": 99, "server": "x {port}"},
        {"pid": 99, "url": "http://example.org/"}, {"command": ""}, {"pid": 1},
        {"command": "x {rate}", "rate": 5000}, {"through": "x"}, {"through": "127.0.0.1:99999"},
        {"through": "example.org:80"}, {"through": "127.0.0.1:80", "pid": 99},
        {"through": "127.0.0.1:80", "url": "gopher://x/"}, {"through": "127.0.0.1:1"},
        {"pid": 99, "url": "redis://example.org/"},
    ],
)  # fmt: skip
def test_what_cannot_be_tested_is_refused(bad) -> None:
    with pytest.raises(InvalidArgumentError):
        ctrlz(**{"command": "x", "stall": 1, "duration": 4, **bad})


def test_windows_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(InvalidArgumentError, match="SIGSTOP"):
        ctrlz("x {url}")


# ------------------------------------------------------------ small parts


def test_braces_of_the_command_itself_stay() -> None:
    assert substitute(["-d", '{"k": {}}', "{rate}/s"], {"rate": "5"}) == ["-d", '{"k": {}}', "5/s"]
    with pytest.raises(InvalidArgumentError, match="--url"):
        substitute(["{url}"], {})


def test_out_may_have_a_suffix() -> None:
    assert substitute(["{out.json}", "{out}_x", "{url.json}"], {"out": "/t/o", "url": "u"}) == [
        "/t/o.json", "/t/o_x", "{url.json}",
    ]  # fmt: skip


CSV = "start_ns,latency_ns,conn,status\n" + "".join(f"{k},{k + 5},0,200\n" for k in range(9))


def test_reports_beside_and_below_out_are_found(tmp_path) -> None:
    (tmp_path / "stdout.txt").write_text("done\n")
    below = tmp_path / "out" / "2026-11-22" / "report.csv"
    below.parent.mkdir(parents=True)
    below.write_text(CSV)
    (tmp_path / "out_notes").write_text("nothing to see\n")
    assert written_files(tmp_path)[0] == below
    (data,) = read_output(written_files(tmp_path), ["tool"]).values()
    assert data.count == 9


@live
def test_a_check_freezes_nothing() -> None:
    found = ctrlz(_own("closed", *PACED), check=True)
    assert (found.verdict, found.stall) == ("unknown", 0.0)
    assert "is read as csv" in found.reasons[0]
    assert found.rows[-1].reported < 0.5e9


def test_the_surest_output_is_read(tmp_path) -> None:
    nothing, noise, csv = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    nothing.write_text("")
    noise.write_text("hello\n")
    csv.write_text(CSV)
    (data,) = read_output([tmp_path / "none", nothing, noise, csv], ["tool"]).values()
    assert data.histogram().count == 9


def test_of_several_distributions_the_latencies_are_judged(tmp_path) -> None:
    from latencykit.ctrlz.run import _series_of

    def series(text: str) -> str:
        (tmp_path / "stdout.txt").write_text(text)
        return _series_of(read_output(written_files(tmp_path), ["tool"]))

    connect, get = "Connect p50: 1ms\nConnect p99: 2ms\n", "get p50: 1ms\nget p99: 3s\n"
    assert series(connect + "Response time p50: 1ms\nResponse time p99: 3s\n") != "Connect"
    interval = "Latency p50: 1ms\nLatency p99: 2ms\n"
    with pytest.raises(LatencyKitError, match="several distributions"):
        series(f"Second 1\n{interval}Summary\n{interval.replace('2ms', '3s')}")
    with pytest.raises(LatencyKitError, match="several distributions"):
        series(interval + interval.replace("2ms", "3ms"))  # of two intervals, and no summary
    assert series(get + get.replace("get ", "")) == "get"
    with pytest.raises(LatencyKitError, match=r"several distributions.*--series: Connect, get"):
        series(connect + get)


def test_the_record_is_the_contract_s() -> None:
    from latencykit.ctrlz.run import Calibration
    from latencykit.ctrlz.verdict import FrozenSpan, scheduled_truth

    truth = scheduled_truth(FrozenSpan(1, 2), 4)
    rows = (CalibrationRow(99.9, 5.0, 10.0, True), CalibrationRow(100.0, 20.0, 20.0, False))
    one = Calibration("omits", "paced", 4.0, rows, ("why",), ("hey",), "hey", "1", truth, truth)
    record = json.loads(json.dumps(ctrlz_record(one)))
    assert {"verdict", "model", "stall", "reported", "truth", "rows"} < set(record)
    assert (record["reasons"], record["command"]) == (["why"], ["hey"])
    both = ctrlz_record(replace(one, runs=(one, one)))
    assert [run["verdict"] for run in both["runs"]] == ["omits", "omits"]
    assert record["reported"] == {"99.9": 5.0, "100": 20.0}
    row = {"percentile": 99.9, "reported": 5.0, "truth": 10.0, "ratio": 0.5}
    assert record["rows"][0] == row


# ------------------------------------------------------------ real tools

LONG = {"stall": "2.5s", "duration": "7s", "rate": 200, "connections": 4}


def _real(tool: str, mode: str, *verdicts: str):
    entry = next(one for one in league.load_entries() if (one.tool, one.mode) == (tool, mode))
    reason = f"{', '.join(entry.missing)} is not installed"
    marks = [pytest.mark.skip(reason=reason)] if entry.missing else []
    return pytest.param(entry, verdicts, marks=marks, id=f"{tool} {mode}")


@live
@pytest.mark.needs_tool
@pytest.mark.parametrize(
    ("entry", "verdicts"),
    [
        _real("hey", "`-q`", "omits"),
        _real("ab", "full speed", "omits"),
        _real("redis-benchmark", "full speed", "omits"),
        _real("wrk", "full speed", "loses"),
        _real("wrk", "full speed, `--timeout 60s`", "honest"),
        _real("vegeta", "`-rate`", "honest"),
    ],
)
def test_real_tools(entry, verdicts) -> None:
    (result,) = league.run_league([entry], repeat=1, **LONG)["results"]
    assert result["error"] is None
    assert result["verdict"] in verdicts, result["reasons"]


@live
def test_a_tool_that_had_to_be_ended_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latencykit.ctrlz.run._GRACE", 0.2)
    never = "import sys, time, urllib.request as u; u.urlopen(sys.argv[1]).read(); time.sleep(60)"
    with pytest.raises(LatencyKitError, match="was still running") as caught:
        ctrlz([sys.executable, "-c", never, "{url}"], stall="0.2s", duration="0.6s")
    assert "status" not in str(caught.value)


# ---------------------------------------------------------------- habits

FAKE = str(Path(__file__).with_name("fake_tool.py"))


@live
@pytest.mark.parametrize(
    ("habit", "verdict", "reason"),
    [
        ("seconds", None, "does not state its unit"),
        ("two-units", "honest", ""),
        ("drops-failed", "loses", "delayed requests are not in the report"),
        ("clips", "clips", "is reported"),
        ("retries-anew", None, "were sent where 900 were scheduled"),
        ("gives-up", None, "did it stop at the first error"),
        ("ramps", "honest", ""),
        ("closes", "honest", ""),
        ("one-connection", "omits", "are missing"),
        ("thinks", "omits", "are missing"),
        ("starts-late", "honest", ""),
        ("probes-long", None, "had not begun its load"),
    ],
)
def test_the_verdict_is_right_or_unknown(habit: str, verdict: str | None, reason: str) -> None:
    rate = "200" if habit == "thinks" else "{rate}"
    command = [sys.executable, FAKE, habit, "{url}", rate, "{duration}"]
    found = ctrlz(command, stall=1.5, duration=4.5)
    assert found.verdict in (verdict, "unknown")
    assert found.reasons[0]
    if found.verdict == verdict or verdict is None:
        assert reason in found.reasons[0]
