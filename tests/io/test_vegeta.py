"""vegeta's results by the row, and its four reports."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError
from tests.io.conftest import lost

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


ROWS = [(0, {}), (1, {"latency": 2_000_000_000}), (2, {"code": 503}), (3, {"code": 0, "error": "dial tcp: connection refused"}),
        (4, {"code": 0, "latency": 30 * SECOND, "error": "net/http: request canceled "
                                                         "(Client.Timeout exceeded)"})]  # fmt: skip


@pytest.mark.parametrize("row", [csv_row, json_row])
def test_rows(read_text, row):
    found = read_text(text([row(k, **more) for k, more in ROWS]), "results")["results"]
    assert found.duration.tolist() == [1_300_000, 2 * SECOND, 1_300_000, 1_300_000, 30 * SECOND]
    assert found.start.tolist() == [START + k * 10_000_000 for k in range(5)]
    assert found.outcome.tolist() == [0, 0, 1, 1, 2]
    counted = found.histogram()
    assert (counted.count, counted.run.failed, counted.run.timeouts, counted.censored_at) == (
        2,
        2,
        1,
        30e9,
    )
    assert (found.run.loop, found.run.corrected) == ("open", "schedule")


@pytest.mark.parametrize("row", [csv_row, json_row])
def test_attacks_are_series(read_text, row):
    rows = [row(k, attack="warm" if k < 3 else "hot") for k in range(5)]
    found = read_text(text(rows), "r")
    assert {name: len(data) for name, data in found.items()} == {"all": 5, "hot": 2, "warm": 3}
    assert found["all"].run.aggregate
    assert list(read_text(text([row(k, attack="big bang") for k in range(3)]), "r")) == ["big bang"]


def test_versions_with_fewer_columns_and_other_zones(read_text):
    for columns in (6, 7, 9):
        rows = [",".join(csv_row(k).split(",")[:columns]) for k in range(3)]
        assert len(read_text(text(rows), "r.csv")["r.csv"]) == 3
    east = read_text(text([json_row(k, zone="+02:00") for k in range(3)]), "r.json")["r.json"]
    assert east.start.tolist() == [START + k * 10_000_000 for k in range(3)]
    old = [
        json.dumps({k: v for k, v in json.loads(json_row(n)).items() if k not in ("attack", "seq")})
        for n in range(3)
    ]
    assert len(read_text(text(old), "r.json")["r.json"]) == 3


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


REPORT = {
    "latencies": {"mean": 3_000_000, "50th": 1_406_954, "90th": 2_000_000, "95th": 3_000_000, "99th": 5_821_016,
                  "max": 6_019_949, "min": 1_137_100},
    "bytes_in": {"total": 30, "mean": 3}, "bytes_out": {"total": 0, "mean": 0},
    "earliest": "2026-11-21T00:03:07.5Z",
    "latest": "2026-11-21T00:03:27.5Z", "end": "2026-11-21T00:03:27.5Z", "duration": 20 * SECOND,
    "wait": 0, "requests": 1000,
    "rate": 50.0, "throughput": 49.5, "success": 1, "status_codes": {"200": 1000}, "errors": [],
}  # fmt: skip


def test_report_json(read_text):
    found = read_text(json.dumps(REPORT), "r.json")["r.json"]
    assert (found.count, found.min, found.max, found.mean) == (1000, 1_137_100, 6_019_949, 3e6)
    assert found.percentile([50, 90, 99]).tolist() == [1_406_954, 2e6, 5_821_016]
    assert (found.run.rate, found.run.achieved, found.run.duration, found.run.start) == (
        50.0,
        49.5,
        20.0,
        1_795_219_387.5,
    )
    old = {
        **REPORT,
        "latencies": {
            "mean": 3_000_000,
            "50th": 1_400_000,
            "95th": 3_000_000,
            "99th": 5_000_000,
            "max": 6_000_000,
        },
    }
    assert read_text(json.dumps(old), "r.json")["r.json"].percentile(95) == 3e6


def test_report_json_with_buckets_failures_and_several(read_text):
    buckets = {**REPORT, "buckets": {"0": 0, "1000000": 900, "2000000": 90, "5000000": 10}}
    found = read_text(json.dumps(buckets), "r.json")["r.json"]
    assert (found.count, found.count_above(5_821_016), found.percentile(50)) == (
        1000,
        10,
        1_406_954,
    )
    failing = {
        **REPORT,
        "success": 0.9,
        "status_codes": {"200": 900, "500": 60, "0": 40},
        "errors": ["500 Internal", "x timeout"],
    }
    found = read_text(json.dumps(failing), "r.json")["r.json"]
    assert (found.count, found.run.failed, found.run.timeouts) == (900, 100, 0)
    assert any("100 failed requests are among" in note for note in found.run.notes)
    every = json.dumps({**REPORT, "requests": 500}) + "\n" + json.dumps(REPORT) + "\n"
    assert read_text(every, "r.json")["r.json"].count == 1000
    other = json.dumps({**REPORT, "earliest": "2026-11-22T00:00:00Z"})
    assert list(read_text(every + other, "r.json")) == ["attack", "attack (2)"]
    assert (
        read_text(every + other[:90], "r.json")["r.json"].run.notes[0]
        == "the last report is truncated; it was left out"
    )
    nothing = {
        **REPORT,
        "success": 0,
        "status_codes": {"0": 1000},
        "errors": ["context deadline exceeded"],
    }
    assert lost(read_text(json.dumps(nothing), "r.json")) == "1,000 timed out"


TEXT = """Requests      [total, rate, throughput]         6000, 300.05, 300.01
Duration      [total, attack, wait]             1m20s, 19.997s, 2.991ms
Latencies     [min, mean, 50, 90, 95, 99, max]  113.7µs, 925.968ms, 1.407ms, 4.063s, 5.004s, 5.821s, 1m6.02s
Bytes In      [total, mean]                     18000, 3.00
Success       [ratio]                           99.00%
Status Codes  [code:count]                      200:5940  503:60
Error Set:
503 Service Unavailable
"""


def test_report_text(read_text):
    found = read_text(TEXT)["out.txt"]
    assert (found.count, found.run.failed, found.min, found.max) == (
        5940,
        60,
        113_700,
        66_020_000_000,
    )
    assert found.percentile([50, 99]).tolist() == [1_407_000, 5_821_000_000]
    assert (found.run.duration, found.run.rate, found.run.achieved) == (80.0, 300.05, 300.01)
    old = TEXT.replace(
        "[min, mean, 50, 90, 95, 99, max]  113.7µs, ", "[mean, 50, 90, 95, 99, max]  "
    ).replace(", throughput", "")
    assert read_text(old.replace(", 300.01", ""))["out.txt"].percentile(90) == 4_063_000_000
    drawn = read_text("\x1b[H\x1b[2J" + TEXT.replace("6000,", "3000,") + "\x1b[H\x1b[2J" + TEXT)
    assert [data.count for data in drawn.values()] == [5940]
    assert list(read_text(TEXT + TEXT)) == ["attack", "attack (2)"]
    with pytest.raises(CorruptInputError, match=r"out\.txt:3: "):
        read_text(TEXT.replace("5.004s, ", ""))
    with pytest.raises(CorruptInputError, match=r"out\.txt:"):
        read_text(TEXT.replace("5.004s", "5.x"))


HIST = """Bucket           #     %       Histogram
[0s,     1ms]    0     0.00%
[1ms,    2ms]    4116  68.60%  ###################################################
[2ms,    6s]     1879  31.32%  #######
[6s,     +Inf]   5     0.08%
"""


def test_hist(read_text):
    found = read_text(HIST)["out.txt"]
    assert (found.count, found.censored, found.censored_at) == (5995, 5, 6e9)
    assert found.percentile([50, 99, 99.99]).tolist() == [2e6, 6e9, 6e9]
    with pytest.raises(CorruptInputError, match=r"out\.txt:3: "):
        read_text(HIST.replace("4116", "41?6"))
    assert read_text(HIST[: HIST.index("[6s") + 4])["out.txt"].count == 5995


def test_hdrplot(read_text):
    rows = ["1.137100     0.000000    0           1.000000", ("1.406954     0.500000    3000       "
                                                             " 2.000000"),
            "4062.715821  0.900000    5400        10.000000",
            "6019.949978  1.000000    6000        10000000.000000"]  # fmt: skip
    text = "Value(ms)    Percentile  TotalCount  1/(1-Percentile)\n" + "\n".join(rows) + "\n"
    found = read_text(text)["out.txt"]
    assert (found.count, found.min, found.max, found.run.format) == (
        6000,
        1_137_100,
        6_019_949_978,
        "vegeta-hdrplot",
    )
    assert found.percentile([50, 90]).tolist() == [1_406_954, 4_062_715_821]
    with pytest.raises(CorruptInputError, match=r"out\.txt:3: "):
        read_text(text.replace("0.500000", "0.5x0000"))


def test_hists_of_two_runs(read_text):
    found = read_text(f"{HIST}\n{HIST.replace('4116', '4117')}")
    assert [one.count for one in found.values()] == [5995, 5996]


def test_what_follows_the_errors_of_a_report_is_none_of_them(read_text):
    errors = 'Error Set:\nGet "http://a/": context deadline exceeded (Client.Timeout)\n'
    late = TEXT[: TEXT.index("Error Set:")].replace("200:5940  503:60", "0:100  200:5900") + errors
    found = read_text(f"{late}```\n\nThe server was slow.\n{HIST}")["out.txt"]
    assert (found.count, found.run.timeouts, found.run.failed) == (5900, 100, 0)


def test_a_report_of_failures_among_others(read_text):
    failed = TEXT.replace("200:5940  503:60", "503:6000").replace("99.00%", "0.00%")
    found = read_text(f"{TEXT}\n{failed}")
    assert [(one.count, one.run.failed) for one in found.values()] == [(5940, 60), (0, 6000)]
