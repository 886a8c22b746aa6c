"""pytest-benchmark with and without its data."""

from __future__ import annotations

import json

STATS = {
    "min": 1e-3, "max": 9e-3, "mean": 2e-3, "stddev": 1e-3, "rounds": 200, "median": 2e-3,
    "q1": 1.5e-3, "q3": 3e-3,
    "iterations": 1, "ops": 500.0,
}  # fmt: skip


def report(*benchmarks):
    return json.dumps(
        {"machine_info": {}, "commit_info": {}, "benchmarks": list(benchmarks), "version": "5.3.1"}
    )


def test_without_data_the_quartiles_are_given(read_text):
    found = read_text(
        report({"name": "test_a", "fullname": "x.py::test_a", "stats": STATS}), "out.json"
    )["test_a"]
    assert (found.count, found.percentile(75), found.max) == (200, 3e6, 9e6)
    assert any("distribution" in note for note in found.run.notes)


def test_equal_names_in_two_files(read_text):
    parts = [
        {
            "name": "t",
            "fullname": f"{f}.py::t",
            "stats": STATS | {"data": [0.1, 0.2], "iterations": 5},
        }
        for f in "ab"
    ]
    found = read_text(report(*parts), "out.json")
    assert list(found) == ["a.py::t", "b.py::t"]
    assert found["a.py::t"].duration.tolist() == [100_000_000, 200_000_000]
    assert "5 calls" in found["a.py::t"].run.notes[0]
