"""fortio's histogram, with gaps, with failed calls, and from other versions."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError, DataNotAvailableError
from tests.io.conftest import lost


def histogram(*buckets: tuple[float, float, int], **more) -> dict:
    data = [
        {"Start": low, "End": high, "Percent": 0, "Count": count} for low, high, count in buckets
    ]
    total = sum(count for _, _, count in buckets)
    return {"Count": total, "Min": buckets[0][0], "Max": buckets[-1][1], "Sum": 0.003 * total, "Avg": 0.003, "StdDev": 0.01,
            "Data": data, **more}  # fmt: skip


def record(**changes) -> str:
    whole = histogram(
        (0.0011, 0.002, 900), (0.002, 0.003, 90), (5, 5.98, 10),
        Percentiles=[{"Percentile": 50, "Value": 0.0015}, {"Percentile": 99, "Value": 0.003}],
    )  # fmt: skip
    given = {
        "RunType": "HTTP", "Labels": "x , vm", "StartTime": "2026-11-21T00:05:12.5Z",
        "RequestedQPS": "200", "ActualQPS": 199.5,
        "ActualDuration": 20_000_000_000, "NumThreads": 4, "Version": "1.66.5",
        "DurationHistogram": whole,
        "ErrorsDurationHistogram": {"Count": 0, "Data": None}, "RetCodes": {"200": 1000},
        "HTTPReqTimeOut": 30_000_000_000,
    }  # fmt: skip
    return json.dumps({**given, **changes})


def test_percentiles_and_buckets_with_gaps(read_text):
    found = read_text(record(), "out.json")["out.json"]
    assert (found.count, found.min, found.max, found.mean, found.std) == (
        1000,
        1.1e6,
        5.98e9,
        3e6,
        1e7,
    )
    assert found.percentile([50, 99, 99.5]).tolist() == [1.5e6, 3e6, 5.98e9]
    assert found.count_above(4.9e9) == 10
    assert found.percentile_rows([99.5])[0].bucket_low == 5e9
    run = found.run
    assert (run.version, run.loop, run.rate, run.connections, run.expected_interval) == (
        "1.66.5",
        "paced",
        200.0,
        4,
        2e7,
    )
    assert (run.start, run.duration, run.achieved, run.timeout) == (
        1_795_219_512.5,
        20.0,
        199.5,
        30e9,
    )


def test_full_speed_lists_and_grpc(read_text):
    fast = read_text(
        record(RequestedQPS="max", RunType="GRPC Ping", RetCodes={"SERVING": 1000}), "out.json"
    )["out.json"]
    assert (fast.run.loop, fast.run.rate, fast.run.failed) == ("closed", None, 0)
    both = f"[{record()}, {record(Labels='other')}]"
    assert list(read_text(both, "out.json")) == ["x , vm", "other"]


def test_failed_calls_are_taken_out(read_text):
    failures = histogram((0.0012, 0.002, 100), (5, 5.5, 4))
    found = read_text(record(ErrorsDurationHistogram=failures), "out.json")["out.json"]
    assert (found.count, found.run.failed, found.count_above(4.9e9), found.max) == (
        896,
        104,
        6,
        5.98e9,
    )
    assert any("good ones" in note for note in found.run.notes)
    unknown = read_text(record(ErrorsDurationHistogram={"Count": 104, "Data": None}), "out.json")[
        "out.json"
    ]
    assert (unknown.run.failed, unknown.percentile(50)) == (104, 1.5e6)
    assert any("104 failed calls are among" in note for note in unknown.run.notes)
    old = json.loads(record(RetCodes={"200": 990, "503": 8, "-1": 2}))
    del old["ErrorsDurationHistogram"]
    assert read_text(json.dumps(old), "out.json")["out.json"].run.failed == 10


def test_nothing_and_corruption(read_text):
    with pytest.raises(CorruptInputError, match="no request was answered"):
        read_text(record(DurationHistogram={"Count": 0, "Data": None}), "out.json")
    with pytest.raises(
        CorruptInputError, match=r"out\.json: the buckets do not contain 1,000 calls"
    ):
        read_text(
            record().replace('"Count": 90,', '"Count": 9,').replace('"Count": 90}', '"Count": 9}'),
            "out.json",
        )


TEXT = """\
Fortio 1.57.3 running at 100 queries per second, 2->2 procs, for 3s: http://127.0.0.1:8080/
Starting at 100 qps with 4 thread(s) [gomax 2] for 3s : 75 calls each (total 300)
Ended after 3.038599599s : 300 calls. qps=98.73
Aggregated Function Time : count 300 avg 0.0074792815 +/- 0.008429 min 0.000257472 max 0.060499505 sum 2.24378444
# range, mid point, percentile, count
>= 0.000257472 <= 0.004 , 0.00212874 , 43.67, 131
> 0.004 <= 0.005 , 0.0045 , 53.33, 29
> 0.025 <= 0.0604995 , 0.0553 , 100.00, 140
# target 50% 0.004675
# target 99% 0.0601249
Error cases : no data
Code 200 : 300 (100.0 %)
All done 300 calls (plus 0 warmup) 7.479 ms avg, 98.7 qps
"""


def test_text_says_what_the_json_says(read_text):
    found = read_text(TEXT)["out.txt"]
    assert (found.count, found.min, found.max, found.mean) == (
        300,
        257_472,
        60_499_505,
        7_479_281.5,
    )
    assert found.percentile([50, 99]).tolist() == [4_675_000, 60_124_900]
    run = found.run
    assert (run.version, run.loop, run.rate, run.connections, run.duration) == (
        "1.57.3",
        "paced",
        100.0,
        4,
        3.038599599,
    )
    quiet = "\n".join(
        line
        for line in TEXT.splitlines()
        if not line.startswith((">", "# range", "Starting", "Ended"))
    )
    assert (
        read_text(quiet)["out.txt"].percentile(99),
        read_text(quiet)["out.txt"].run.achieved,
    ) == (60_124_900, 98.7)
    assert list(read_text(TEXT + TEXT)) == ["run 1", "run 2"]


def test_text_that_is_cut_or_has_no_good_call(read_text):
    with pytest.raises(CorruptInputError, match="Aggregated Function Time"):
        read_text(TEXT[: TEXT.index("Aggregated")])
    end = read_text(TEXT[TEXT.index("Code 200") :])["out.txt"]  # all that was copied
    assert (end.count, end.stats, end.reported_percentiles) == (300, {"mean": 7_479_000}, {})
    old = TEXT.replace("> 0.004 <= 0.005", ">= 0.004 < 0.005").replace("300 (100.0 %)", "300")
    assert read_text(old)["out.txt"].to_frame().equals(read_text(TEXT)["out.txt"].to_frame())
    with pytest.raises(CorruptInputError, match="buckets do not contain 300"):
        read_text(TEXT[: TEXT.index("> 0.025")])
    refused = TEXT.replace("Code 200", "Code 503").replace("Error cases : no data\n", "")
    assert lost(read_text(refused)) == "300 failed"


def test_failed_calls_without_their_histogram_are_counted_once(read_text):
    text = TEXT.replace("Error cases : no data\n", "").replace(
        "Code 200 : 300 (100.0 %)", "Code 200 : 210 (70.0 %)\nCode 503 : 90 (30.0 %)"
    )
    found = read_text(text)["out.txt"]
    assert (found.count, found.run.failed, found.percentile(50)) == (210, 90, 4_675_000)
    bare = json.loads(record(RetCodes={"200": "900", "503": "100"}))
    del bare["ErrorsDurationHistogram"], bare["RunType"], bare["DurationHistogram"]["Percentiles"]
    found = read_text(json.dumps(bare), "out.json")["out.json"]
    assert (found.count, found.run.failed, found.percentile(90)) == (900, 100, 2e6)


def test_copies_of_several_runs_that_lack_lines(read_text):
    last = "All done {} calls (plus 0 warmup) {} ms avg, 98.7 qps\n"
    first = "Code 200 : 300 (100.0 %)\n" + last.format(300, 7.5)
    second = "Code 200 : 10 (20.0 %)\nCode 503 : 40 (80.0 %)\n" + last.format(50, 30)
    found = read_text(f"{first}\n{second}Code 503 : 5 (100.0 %)\n{last.format(5, 3)}```\n")
    assert [(one.count, one.run.failed) for one in found.values()] == [(300, 0), (10, 40), (0, 5)]
    assert [one.stats.get("mean") for one in found.values()] == [7.5e6, 30e6, None]
    with pytest.raises(DataNotAvailableError, match="there is no p99: no request was answered"):
        found["run 3"].percentile(99)
