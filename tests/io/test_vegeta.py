"""vegeta's results by the row, and its four reports."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError

SECOND = 1_000_000_000
START = 1_795_219_387 * SECOND


def csv_row(
    k: int, latency: int = 1_300_000, code: int = 200, error: str = "", attack: str = ""
) -> str:
    return f"{START + k * 10_000_000},{code},{latency},0,3,{error},b2sK,{attack},{k},GET,http://x/,Q29u"


def json_row(
    k: int,
    latency: int = 1_300_000,
    code: int = 200,
    error: str = "",
    attack: str = "",
    zone: str = "Z",
) -> str:
    stamp = f"2026-11-21T{'02' if zone != 'Z' else '00'}:03:07.{k * 10_000_000:09}{zone}"
    record = {
        "attack": attack, "seq": k, "code": code, "timestamp": stamp, "latency": latency,
        "bytes_out": 0, "bytes_in": 3,
        "error": error, "body": "b2sK", "method": "GET", "url": "http://x/",
        "headers": {"X": ['"latency":7,']},
    }  # fmt: skip
    return json.dumps(record, separators=(",", ":"))


def text(rows: list[str]) -> str:
    return "\n".join(rows) + "\n"


def test_sends_that_stop_with_requests_in_flight_are_not_an_open_loop(read_text):
    before, after = range(100), range(500, 600)
    rows = [csv_row(k, latency=4 * SECOND if k == 99 else 1_300_000) for k in (*before, *after)]
    found = read_text(text(rows), "r.csv")["r.csv"]
    assert (found.run.corrected, found.run.loop, found.run.rate) == ("none", "paced", None)
    assert any("sends stopped for 4.01 s" in note for note in found.run.notes)
    pause = read_text(text([csv_row(k) for k in (*before, *after)]), "r.csv")["r.csv"]
    assert pause.run.corrected == "schedule"


@pytest.mark.parametrize("row", [csv_row, json_row])
def test_corruption_cuts_and_negative_times(read_text, row):
    rows = [row(k) for k in range(9)]
    rows[4] = rows[4].replace("1300000", "13000x0")
    said = []
    with pytest.raises(CorruptInputError, match=r"results:5: "):
        read_text(text(rows), "results")
    assert len(read_text(text(rows), "results", lenient=True, report=said.append)["results"]) == 8
    assert "results:5: " in said[0]
    cut = read_text(text([row(k) for k in range(9)])[:-60], "results")["results"]
    assert len(cut) == 8
    assert any("truncated" in note for note in cut.run.notes)
    negative = read_text(text([row(0), row(1, latency=-5)]), "results")["results"]
    assert len(negative) == 1
    assert any("negative" in note for note in negative.run.notes)
