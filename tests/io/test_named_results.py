"""JSON lists of benchmarks: one series per name, in its own unit."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError

ROWS = [
    {"name": "min heap", "unit": "ns", "value": 90.5, "range": "3%"},
    {"name": "insert", "unit": "ms/op", "value": 2},
    {"name": "max latency", "unit": "us", "value": 700},
    {"name": "heap size", "unit": "MB", "value": 12},
]


def test_each_name_is_a_series_in_its_unit(read_text):
    seen = []
    found = read_text(json.dumps(ROWS), "out.json", report=seen.append)
    assert {name: data.stats for name, data in found.items()} == {
        "min heap": {"mean": 90.5},
        "insert": {"mean": 2e6},
        "max latency": {"max": 700_000},
    }
    assert "heap size is in 'MB'" in seen[0]
    assert any("taken for its mean" in note for note in found["insert"].run.notes)
    with pytest.raises(CorruptInputError, match="no result is in a unit of time, but in MB"):
        read_text(json.dumps(ROWS[3:]), "out.json")
