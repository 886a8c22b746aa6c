"""Cases that no sample shows: Google Benchmark, Artillery, two columns, pyperf, HistogramLogProcessor."""

from __future__ import annotations

import numpy as np
import pytest

from latencykit.errors import LatencyKitError


def test_a_trace_without_a_header_needs_a_clock(read_text):
    dice = np.random.default_rng(3)
    clock, took = np.cumsum(dice.integers(1, 999, 100)) + 10**9, dice.integers(1, 999, 100)
    rows = [f"{a} {b}\n" for a, b in zip(clock, took, strict=True)]
    (data,) = read_text("".join(rows)).values()
    assert data.duration.sum() == took.sum() * 1000
    assert data.run.unit_from == "assumed"
    (data,) = read_text("".join(rows), unit="ns").values()
    assert data.duration.sum() == took.sum()
    with pytest.raises(LatencyKitError):
        read_text("".join(reversed(rows)))
