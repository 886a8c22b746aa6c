"""Formats that are declared, as a table: the text of each, and what is read of it."""

from __future__ import annotations

import pytest

MTR = """Start: 2026-11-02T08:00:00+0000
HOST: client                      Loss%   Snt   Last   Avg  Best  Wrst StDev
  1.|-- 192.0.2.1                  0.0%    20    0.4   0.5   0.3   2.0   0.4
  2.|-- ???                       100.0    20    0.0   0.0   0.0   0.0   0.0
  3.|-- far.example (192.0.2.9)   15.0%    20   31.0  32.5  30.9  48.0   4.1
"""
LOST = MTR.replace("100.0 ", "100.0%")
INTRINSIC = """Max latency so far: 9 microseconds.
Max latency so far: 122 microseconds.

24586821 total runs (avg 2 microseconds per run).
"""
ROWS = [  # text, series → (count, timeouts, mean, max) in ns
    (LOST, "mtr", {
        "192.0.2.1": (20, 0, 0.5e6, 2e6), "???": (0, 20, None, None),
        "far.example (192.0.2.9)": (17, 3, 32.5e6, 48e6),
    }),
    ("min: 0, max: 2, avg: 0.33 (96 samples)\n", "redis-cli", {"out.txt": (96, 0, 0.33e6, 2e6)}),
    ("0 1 0.23 98\n", "redis-cli", {"out.txt": (98, 0, 0.23e6, 1e6)}),
    (
        "0 0 0.00 1\n0 1 0.50 2\n -- 15.00 seconds range\n0 3 1.00 4\n -- 15.01 seconds range\n",
        "redis-cli",
        {"15.00 seconds range": (2, 0, 0.5e6, 1e6), "15.01 seconds range": (4, 0, 1e6, 3e6)},
    ),
    (
        INTRINSIC,
        "redis-cli-intrinsic", {"out.txt": (24_586_821, 0, 2e3, 122e3)},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "wanted"), ROWS, ids=range(len(ROWS)))
def test_what_is_read(text, name, wanted, read_text):
    found = read_text(text)
    assert {data.run.format for data in found.values()} == {name}
    assert {
        series: (data.count, data.run.timeouts, data.stats.get("mean"), data.stats.get("max"))
        for series, data in found.items()
    } == wanted


def test_percentiles_beside_the_statistics(read_text):
    text = "min: 0.031, max: 0.336, avg: 0.103 (812 samples), p50: 0.089, p99: 0.315, p99.9: 0.336"
    found = read_text(text)["out.txt"]
    assert (found.count, found.percentile(50), found.percentile(99)) == (812, 89e3, 315e3)
