"""BenchmarkDotNet: tables of several exporters, units, absent results."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError


def test_units_of_the_heading_and_corrupt_rows(read_text):
    text = "Method,Mean [us],Error [us],Allocated [B]\nEncode,7.5,0.2,128\nDecode,NA,NA,NA\n"
    seen = []
    found = read_text(text, "out.csv", report=seen.append)
    assert {name: data.mean for name, data in found.items()} == {"Encode": 7500}
    assert "Decode has no result" in seen[0]
    with pytest.raises(CorruptInputError, match=r"out\.csv:3: '7x'"):
        read_text(text.replace("Decode,NA", "Decode,7x"), "out.csv")
    with pytest.raises(CorruptInputError, match=r"out\.csv:3: 2 cells"):
        read_text(text.replace(",NA,NA\n", "\n"), "out.csv")
