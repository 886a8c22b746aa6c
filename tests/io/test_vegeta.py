"""vegeta: sends that stop."""

from __future__ import annotations

SECOND = 1_000_000_000
START = 1_795_219_387 * SECOND


def row(k: int, latency: int = 1_300_000) -> str:
    return f"{START + k * 10_000_000},200,{latency},0,3,,b2sK,,{k},GET,http://x/,Q29u\n"


def test_sends_that_stop_with_requests_in_flight_are_not_an_open_loop(read_text):
    before, after = range(100), range(500, 600)
    rows = [row(k, latency=4 * SECOND if k == 99 else 1_300_000) for k in (*before, *after)]
    found = read_text("".join(rows), "r.csv")["r.csv"]
    assert (found.run.corrected, found.run.loop, found.run.rate) == ("none", "paced", None)
    assert any("sends stopped for 4.01 s" in note for note in found.run.notes)
    pause = read_text("".join(row(k) for k in (*before, *after)), "r.csv")["r.csv"]
    assert pause.run.corrected == "schedule"
