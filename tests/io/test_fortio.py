"""fortio's histogram, with gaps, with failed calls, and from other versions."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError
from tests.io.conftest import lost
from tests.io.test_cases import text_of


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


TEXT = text_of("fortio", "text says what the json says, 1")


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


@pytest.mark.parametrize("key", ["Start", "End", "Percentile"])
def test_a_key_that_a_row_lacks_is_named(read_text, key):
    with pytest.raises(CorruptInputError, match=f"contains no {key}"):
        read_text(record().replace(f'"{key}"', f'"{key}x"'), "out.json")
