"""Access logs: line formats, stamps, outcomes, corruption."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import latencykit as lk
from latencykit.errors import CorruptInputError

CLF = '10.0.0.1 - bob [21/Nov/2026:01:16:36 +0100] "GET /a \\"b\\" HTTP/1.1" {status} 3 "-" "Agent/1.0 (x; 9.999)" {tail}\n'
END = 1795220196 * 10**9


@pytest.mark.parametrize(
    "tail",
    [
        "rt=0.250 uct=- urt=-",
        "0.250 0.249",
        '"-" request_time=0.250',
        "512 0.250 [up] [] 10.0.0.2:80 3 0.249 200 af",
        '"0.250"',
    ],
)
def test_nginx_in_its_many_layouts(read_text, tail):
    found = read_text(CLF.format(status=200, tail=tail))["out.txt"]
    assert found.run.tool == "nginx"
    assert found.duration.tolist() == [250_000_000]
    assert found.start.tolist() == [END - 250_000_000]
    assert any("whole seconds" in note for note in found.run.notes)


@pytest.mark.parametrize(
    ("tail", "origin"), [("250000", "assumed"), ("0/250000", "assumed"), ("D=250000", "format")]
)
def test_apache_counts_microseconds_from_the_begin(read_text, tail, origin):
    found = read_text(CLF.format(status=200, tail=tail))["out.txt"]
    assert (found.run.tool, found.run.unit, found.run.unit_from) == ("Apache httpd", "us", origin)
    assert found.duration.tolist() == [250_000_000]
    assert found.start.tolist() == [END]
    assert read_text(CLF.format(status=200, tail=tail), unit="ms")["out.txt"].duration.tolist() == [
        250_000_000_000
    ]


def test_common_log_with_time(read_text):
    line = '10.0.0.1 - - [21/Nov/2026:01:16:36 +0100] "GET / HTTP/1.1" 200 123 4567\n'
    assert read_text(line)["out.txt"].duration.tolist() == [4_567_000]


def test_msec_first(read_text):
    found = read_text("1795220196.335 0.004 - 503 GET /\n1795220196.336 0.000 0.001 200 GET /\n")[
        "out.txt"
    ]
    assert found.start.tolist() == [1795220196_331_000_000, 1795220196_336_000_000]
    h = found.histogram()
    assert (h.count, h.run.failed, h.min) == (1, 1, 0.0)


def test_haproxy(read_text):
    line = (
        "Feb  6 12:14:14 host haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in "
        "static/srv1 10/0/30/69/{time} "
        '{status} 2750 - - ---- 1/1/1/1/0 0/0 {{1wt.eu}} {{}} "GET /index.html HTTP/1.1"\n'
    )
    found = read_text(line.format(time=109, status=200) + line.format(time="+60000", status=504))[
        "out.txt"
    ]
    assert found.start[0] == 1233922454_655_000_000
    h = found.histogram()
    assert (h.count, h.run.timeouts, h.censored_at, h.max) == (1, 1, 60e9, 109e6)


def test_outcomes_of_a_server(read_text):
    text = "".join(
        CLF.format(status=status, tail="rt=0.100") for status in (200, 404, 500, 499, 504)
    )
    run = read_text(text)["out.txt"].histogram().run
    assert (run.failed, run.timeouts, run.unfinished) == (1, 1, 1)


def test_corruption(read_text):
    good = CLF.format(status=200, tail="rt=0.100")
    with pytest.raises(CorruptInputError, match=r"out\.txt:21: this line has no time: 'garbage'"):
        read_text(good * 20 + "garbage\n" + good)
    seen = []
    assert (
        len(read_text(good * 20 + "garbage\n" + good, lenient=True, report=seen.append)["out.txt"])
        == 21
    )
    assert len(seen) == 1
    cut = read_text(good * 20 + good[:60])["out.txt"]
    assert any("truncated" in note for note in cut.run.notes)
    with pytest.raises(CorruptInputError, match="no time of a request"):
        read_text(CLF.format(status=200, tail="").rstrip() + "\n")
    with pytest.raises(CorruptInputError, match="not a valid timestamp"):
        read_text(good.replace("21/Nov", "99/Nov"))


def lines(*records):
    return "".join(json.dumps(one) + "\n" for one in records)


def test_json_of_nginx(read_text):
    text = lines(
        {"msec": 1795220196.335, "status": 200, "request_time": 0.001, "connection": 7},
        {"msec": 1795220197.335, "status": 502, "request_time": "0.002", "connection": 8},
    )
    found = read_text(text, "access.log")["access.log"]
    assert found.start.tolist() == [1795220196_334_000_000, 1795220197_333_000_000]
    assert found.connection.tolist() == [7, 8]
    assert found.histogram().run.failed == 1


@pytest.mark.parametrize(
    ("record", "tool", "start"),
    [
        (
            {
                "Duration": 250_000_000,
                "StartUTC": "2026-11-21T00:16:36.5Z",
                "DownstreamStatus": 200,
                "RequestMethod": "GET",
            },
            "Traefik",
            END + 5 * 10**8,
        ),
        (
            {"duration": 250, "start_time": "2026-11-21T00:16:36.000Z", "response_code": 200},
            "Envoy",
            END,
        ),
        ({"ts": 1795220196.25, "request": {}, "duration": 0.25, "status": 200}, "Caddy", END),
        (
            {"request_time": "0.250", "time": "2026-11-21T01:16:36+01:00", "status": "200"},
            "nginx",
            END - 25 * 10**7,
        ),
    ],
)
def test_json_of_other_servers(read_text, record, tool, start):
    found = read_text(lines(record), "access.log")["access.log"]
    assert (found.run.tool, found.duration.tolist(), found.start.tolist()) == (
        tool,
        [250_000_000],
        [start],
    )


def test_json_corruption(read_text):
    good = {"msec": 1.5, "status": 200, "request_time": 0.001}
    other = read_text(lines(good, {"msec": 1.5, "status": 200}), "a.log")["a.log"]
    assert (len(other), other.run.notes[0]) == (1, "1 row without a latency left out")
    with pytest.raises(CorruptInputError, match=r"a\.log:2: this row has no latency"):
        read_text(lines(good, good | {"request_time": "soon"}), "a.log")
    with pytest.raises(CorruptInputError, match=r"a\.log:2: this is not JSON"):
        read_text(lines(good) + "{oops\n" + lines(good), "a.log")
    assert (
        len(read_text(lines(good) + "{oops\n" + lines(good), "a.log", lenient=True)["a.log"]) == 2
    )
    stamped = good | {"msec": 1795220196.335}
    cut = read_text(lines(stamped) + '{"msec": 1', "a.log")["a.log"]
    assert any("truncated" in note for note in cut.run.notes)
    assert cut.start.tolist() == [1795220196_334_000_000]  # which a float64 does not hold


@pytest.mark.parametrize("year", ["0001", "9999"])
def test_years_that_nanoseconds_cannot_hold_are_reported_not_wrapped_around(tmp_path, year):
    log, lines = tmp_path / "access.log", tmp_path / "access.json"
    log.write_text(
        f'1.2.3.4 - - [10/Oct/{year}:13:55:36 -0700] "GET / HTTP/1.0" 200 2326 rt=0.120\n'
    )
    lines.write_text(
        f'{{"time_iso8601": "{year}-10-10T13:55:36+00:00", "status": 200, "request_time": 0.12}}\n'
    )
    for path, said in ((log, "not a valid timestamp"), (lines, "has no end that can be read")):
        with pytest.raises(CorruptInputError, match=said):
            lk.read(path)


SERVED = '10.0.0.1 - - [21/Nov/2026:01:16:36 +0100] "GET /a HTTP/1.1" 200 {size} "-" "Agent/1.0 (x; 9.999)" {tail}\n'
DICE = random.Random(4)
SERVES = [
    (DICE.lognormvariate(-2.5, 1.2), DICE.uniform(0, 1), int(DICE.lognormvariate(7, 1.5)))
    for _ in range(80)
]


def seconds(value):
    return f"{value:.3f}"


@pytest.mark.parametrize(
    ("tail", "unit"),
    [
        (lambda t, u, b: f"{seconds(u)} {seconds(t)}", "s"), (lambda t, u, b: f"{seconds(t)} "
                                                                              f"{seconds(u)}", "s"),
        (lambda t, u, b: f"{'-' if b % 3 else seconds(u)} {seconds(t)}", "s"), (lambda t, u, b: f'"{seconds(u)}, {seconds(u / 2)}" {seconds(t)}', "s"),
        (lambda t, u, b: f'{seconds(t)} "{seconds(u)}" "{seconds(u / 3)}" .', "s"), (lambda t, u, b: f"upstream_response_time={seconds(u)} request_time={seconds(t)}", "s"),
        (lambda t, u, b: f'urt="{seconds(u)}" rt="{seconds(t)}"', "s"), (lambda t, u, b: f"{b} {seconds(u)} {seconds(t)} 200", "s"),
        (lambda t, u, b: f"{int(t * 1e6)} {int(t)}", "us"), (lambda t, u, b: f"{int(t)} {int(t * 1e6)}", "us"), (lambda t, u, b: f"{int(t)}/{int(t * 1e6)}", "us"),
        (lambda t, u, b: f"{int(t * 1e3)} {int(t * 1e6)}", "us"), (lambda t, u, b: f"{int(t * 1e6)} {int(t * 1e3)}", "us"), (lambda t, u, b: f"ms={int(t * 1e3)}", "ms"),
        (lambda t, u, b: f"took_ms:{int(t * 1e3)}", "ms"), (lambda t, u, b: f"{int(t * 1e3)}ms", "ms"), (lambda t, u, b: f"{int(t * 1e6)}us", "us"),
        (lambda t, u, b: f"D={int(t * 1e6)} size={b}", "us"), (lambda t, u, b: f"T:{int(t)} D:{int(t * 1e6)}", "us"), (lambda t, u, b: f"duration={int(t * 1e6)}us", "us"),
        (lambda t, u, b: f"{300 + b % 40} {b + 250} {int(t * 1e6)}", "us"), (lambda t, u, b: f"{int(t * 1e6)}", "us"),
    ],
)  # fmt: skip
def test_the_time_of_the_request_among_other_numbers(read_text, tail, unit):
    rows = [SERVED.format(size=b, tail=tail(t, t * u, b)) for t, u, b in SERVES]
    found = read_text("".join(rows), "access.log")["access.log"]
    step = {"s": 1e6, "ms": 1e6, "us": 1e3}[unit]
    assert found.run.unit == unit
    assert np.abs(found.duration - np.array([t * 1e9 for t, _, _ in SERVES])).max() <= step


def test_milliseconds_without_a_label_are_doubted(read_text):
    rows = [SERVED.format(size=b, tail=int(t * 200)) for t, _, b in SERVES]
    found = read_text("".join(rows), "access.log")["access.log"]
    assert found.run.unit_from == "assumed"
    assert any("are they %{ms}T? (--unit ms)" in note for note in found.run.notes)
    assert found.run.unit_note in found.run.notes


@pytest.mark.parametrize(
    "tail",
    [
        lambda b: f"{300 + b % 40} {b + 250}",
        lambda b: f"bytes={b}",
        lambda b: f"{b + 180}",
        lambda b: "",
    ],
)
def test_bytes_are_not_latency(read_text, tail):
    rows = [SERVED.format(size=b, tail=tail(b)) for _, _, b in SERVES]
    with pytest.raises(CorruptInputError, match="no time of a request"):
        read_text("".join(rows), "access.log")


def test_the_longer_time_behind_msec_is_that_of_the_request(read_text):
    rows = [
        f"{1795220196 + k}.335 {seconds(t * u)} {seconds(t)} 200 GET /\n"
        for k, (t, u, _) in enumerate(SERVES)
    ]
    found = read_text("".join(rows), "access.log")["access.log"]
    assert np.abs(found.duration - np.array([t * 1e9 for t, _, _ in SERVES])).max() <= 1e6
