"""BenchmarkDotNet: tables of several exporters, units, absent results."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError

TABLE = """\
| Method | Job   | Size | Mean        | Error    | P95         | Allocated |
|------- |------ |----- |------------:|---------:|------------:|----------:|
| Encode | .NET8 | 16   |    812.4 ns |  4.21 ns |    818.3 ns |     128 B |
| Encode | .NET8 | 4096 | 1,204.55 us |  6.10 us | 1,214.02 us |         - |
"""


def test_rows_are_named_by_the_columns_that_vary(read_text):
    for text in (
        TABLE,
        f"# Results\n\n{TABLE}\nand more\n",
        TABLE.replace("\n|", "\n").replace("|\n", "\n"),
    ):
        found = read_text(text, "out.md")
        assert {name: data.mean for name, data in found.items()} == {
            "Encode Size=16": 812.4,
            "Encode Size=4096": 1_204_550,
        }
    assert found["Encode Size=16"].percentile(95) == 818.3


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


def test_methods_without_units_are_of_another_tool(read_text):
    text = "Method,Mean,Error,P95,P99\nGET,7.5,0,9,12\n"
    (data,) = read_text(text, "out.csv", unit="ms").values()
    assert data.run.format == "percentile-table"


def test_json_of_two_jobs(read_text):
    rows = [
        {
            "FullName": "A.Run",
            "DisplayInfo": f"A.Run: Job{job}",
            "Statistics": {"OriginalValues": [job, job]},
        }
        for job in (1.5, 2.5)
    ]
    found = read_text(json.dumps({"HostEnvironmentInfo": {}, "Benchmarks": rows}), "out.json")
    assert {name: data.max for name, data in found.items()} == {
        "A.Run: Job1.5": 1.5,
        "A.Run: Job2.5": 2.5,
    }
