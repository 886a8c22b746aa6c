"""Access logs: line formats, stamps, outcomes, corruption."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import latencykit as lk
from latencykit.errors import CorruptInputError


def lines(*records):
    return "".join(json.dumps(one) + "\n" for one in records)


@pytest.mark.parametrize("year", ["0001", "9999"])
def test_years_that_nanoseconds_cannot_hold_are_reported_not_wrapped_around(tmp_path, year):
    log, lines = tmp_path / "access.log", tmp_path / "access.json"
    log.write_text(
        f'1.2.3.4 - - [10/Oct/{year}:13:55:36 -0700] "GET / HTTP/1.0" 200 2326 rt=0.120\n'
    )
    lines.write_text(
        f'{{"time_iso8601": "{year}-10-10T13:55:36+00:00", "status": 200, "request_time": 0.12}}\n'
    )
    for path in (log, lines):
        with pytest.raises(CorruptInputError, match="has no end that can be read"):
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
