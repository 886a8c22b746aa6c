"""fortio's histogram, with gaps, with failed calls, and from other versions."""

from __future__ import annotations

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
