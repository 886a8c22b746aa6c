"""oha's JSON, CSV and text, and what tells that its latency correction was on."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError
from tests.conftest import DATA

TEXT = (DATA / "formats/oha/text/oha.txt").read_text("utf-8")


def test_text(read_text):
    found = read_text("\x1b[1m" + TEXT.replace("Summary:", "Summary:\x1b[0m"))["out.txt"]
    assert (
        found.count,
        found.max,
        found.percentile(50),
        found.count_above(1.5e6),
        found.run.unfinished,
    ) == (
        100,
        6e6,
        1.2e6,
        9,
        4,
    )
    assert (found.run.format, found.run.duration, found.run.corrected) == (
        "oha",
        10.0041,
        "unknown",
    )
    assert (
        read_text("$ oha -q 9 --latency-correction http://x\n" + TEXT)["out.txt"].run.corrected
        == "schedule"
    )
    seconds = TEXT.replace(" ms", " secs").replace(".00% in", "% in")
    assert read_text(seconds)["out.txt"].percentile(99) == 5.5e9
    tens = TEXT.replace(" ms", " 10 sec")
    assert read_text(tens)["out.txt"].percentile(99) == 55e9
    with pytest.raises(CorruptInputError, match=r"out\.txt:28: "):
        read_text(TEXT.replace("50.00% in 1.2000", "50.00% in 1.?000"))
