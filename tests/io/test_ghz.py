"""ghz: calls with their outcomes, and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencykit.core.samples import OUTCOMES
from latencykit.errors import CorruptInputError
from tests.io.conftest import lost

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "ghz/paced/ghz-text.txt").read_text()


def record(details, **asked):
    options = {"rps": 100, "concurrency": 4, "timeout": 20_000_000_000} | asked
    return json.dumps(
        {"date": "2026-11-21T00:19:21Z", "endReason": "normal", "options": options, "count": 2, "total": 2e9, "average": 5,
         "fastest": 1, "slowest": 9, "rps": 1.0, "details": details}
    )  # fmt: skip


def call(at, latency, status="OK"):
    return {
        "timestamp": f"2026-11-21T00:00:{at:02d}.5Z",
        "latency": latency,
        "error": "",
        "status": status,
    }


def test_a_stamp_is_the_end_of_a_call(read_text):
    s = read_text(
        record(
            [
                call(1, 500_000_000),
                call(2, 1000),
                call(3, 9, "DeadlineExceeded"),
                call(4, 5, "Internal"),
            ]
        ),
        "out.json",
    )
    s = s["out.json"]
    assert s.start[0] % 10**9 == 0
    assert [OUTCOMES[code] for code in s.outcome] == ["ok", "ok", "timeout", "error"]
    assert (s.run.loop, s.run.rate, s.run.connections, s.run.expected_interval) == (
        "paced",
        100,
        4,
        4e7,
    )
    assert (
        s.run.corrected,
        s.run.measure,
        s.histogram().run.failed,
        s.histogram().run.timeouts,
    ) == ("none", "service", 1, 1)


def test_the_mode(read_text):
    asynchronous = read_text(record([call(1, 5)], **{"async": True}), "out.json")["out.json"].run
    assert (asynchronous.loop, asynchronous.corrected, asynchronous.measure) == (
        "open",
        "schedule",
        "response",
    )
    assert read_text(record([call(1, 5)], rps=0), "out.json")["out.json"].run.loop == "closed"


def test_details_that_are_corrupt(read_text):
    with pytest.raises(CorruptInputError, match="details cannot be read"):
        read_text(record([call(1, "x")]), "out.json")
    with pytest.raises(CorruptInputError, match="no request was answered"):
        read_text(record(None), "out.json")


def test_csv(read_text):
    s = read_text(
        '\nduration (ms),status,error\n1.50,OK,\n2.5,Unavailable,it says, "no", '
        "twice\n0.25,OK,\n3.7",
        "out.csv",
    )["out.csv"]
    assert s.duration.tolist() == [1_500_000, 2_500_000, 250_000]
    assert (s.histogram().count, s.histogram().run.failed) == (2, 1)
    assert any("truncated" in note for note in s.run.notes)
    with pytest.raises(CorruptInputError, match=r"out\.csv:4: "):
        read_text("\nduration (ms),status,error\n1.50,OK,\nx.5,OK,\n0.25,OK,\n", "out.csv")


def test_text_has_percentiles_and_buckets(read_text):
    h = read_text(TEXT)["out.txt"]
    assert (h.count, h.run.failed, h.max, h.min) == (393, 7, 468.43e6, 1.26e6)
    assert h.percentile([10, 50, 90, 95, 99]).tolist() == [
        1.48e6,
        2.05e6,
        18.84e6,
        108.34e6,
        311.44e6,
    ]
    assert h.count_above(375e6) == 2
    assert "mean" not in h.reported_stats, "the average is of the failed ones, too"
    assert (h.run.achieved, h.run.duration) == (170.79, 2.34)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: "$ ghz x\n" + t,
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.replace("1.48 ms", "1480 µs"),
    ],
)
def test_other_surroundings(read_text, change):
    assert read_text(change(TEXT))["out.txt"].percentile(10) == 1.48e6


def test_nothing_was_answered(read_text):
    text = (
        TEXT[: TEXT.index("Response time")]
        + "Status code distribution:\n  [Unavailable]   20 responses\n"
    )
    assert lost(read_text(text))


def test_a_corrupt_summary(read_text):
    with pytest.raises(CorruptInputError, match="summary cannot be read"):
        read_text(TEXT.replace("Slowest:\t468.43 ms", "Slowest:\t4x8.43 ms"))


def test_copies_with_blanks_for_tabs_and_without_blank_lines(read_text):
    whole = read_text(TEXT)["out.txt"]
    assert read_text(TEXT.expandtabs(4).rstrip() + "\n```\n")["out.txt"] == whole
    flat = "\n".join(line.strip() for line in TEXT.split("\n") if line.strip())
    assert read_text(flat)["out.txt"] == whole


def test_several_runs(read_text):
    failed = (
        TEXT[: TEXT.index("Response time")]
        + "Status code distribution:\n  [Unavailable]   9 responses\n"
    )
    found = read_text(f"{TEXT}\n### two\n{failed}")
    assert [(one.count, one.run.failed) for one in found.values()] == [(393, 7), (0, 9)]


def test_more_calls_than_details(read_text):
    found = read_text(TEXT.replace("[OK]            393", "[OK]   1000393"))["out.txt"]
    assert (found.count, found.percentile(50)) == (1_000_393, 2.05e6)
    assert any("393 of 1,000,393 calls" in note for note in found.run.notes)
