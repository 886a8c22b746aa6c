"""YCSB: its measurement types, intended latencies, failures."""

from __future__ import annotations

import pytest


def test_buckets_of_milliseconds_of_old_versions(read_text):
    """Version 0.1 puts no blank behind some commas, and a value is at least its bucket's."""
    text = (
        "[OVERALL],RunTime(ms), 10110\n[UPDATE], Operations, 491\n"
        "[UPDATE], AverageLatency(ms), 0.055\n[UPDATE], MinLatency(ms), 0\n"
        "[UPDATE], MaxLatency(ms), 1\n[UPDATE], 99thPercentileLatency(ms), 1\n"
        "[UPDATE], 0, 464\n[UPDATE], 1, 27\n[UPDATE], 2, 0\n"
    )
    (data,) = read_text(text).values()
    assert (data.count, data.mean) == (491, 55_000)
    row = data.percentile_rows([50])[0]
    assert (row.bucket_low, row.bucket_high) == (0, pytest.approx(1e6, abs=2))
