"""pyperf: calibration, warm-ups, several benchmarks, other units."""

from __future__ import annotations

import json

from latencykit.core.histogram import Histogram
from latencykit.core.samples import Samples


def suite(*benchmarks):
    return json.dumps(
        {
            "benchmarks": list(benchmarks),
            "metadata": {"loops": 4, "unit": "second"},
            "version": "1.0",
        }
    )


def test_values_only(read_text):
    slow = {
        "metadata": {"name": "slow"},
        "runs": [
            {"warmups": [[1, 9.9]]},
            {"values": [0.5, 0.25], "warmups": [[4, 9.0]]},
            {"values": [0.75]},
        ],
    }
    fast = {"metadata": {"name": "fast"}, "runs": [{"values": [2.31e-9, 2.5e-9], "warmups": []}]}
    size = {"metadata": {"name": "size", "unit": "byte"}, "runs": [{"values": [100, 200]}]}
    found = read_text(suite(slow, fast, size), "out.json")
    assert isinstance(found["slow"], Samples)
    assert found["slow"].duration.tolist() == [500_000_000, 250_000_000, 750_000_000]
    assert isinstance(found["fast"], Histogram)
    assert (found["fast"].min, found["fast"].max) == (2.31, 2.5)
    assert (found["size"].unit, found["size"].max) == ("none", 200)
    assert "4 calls" in found["slow"].run.notes[0]
