"""Encoded histograms in text and JSON: each is found whole, named, and has its unit."""

from __future__ import annotations

import base64

import pytest

import latencykit as lk

hdrh = pytest.importorskip("hdrh.histogram")


def encoded(*values: int) -> str:
    histogram = hdrh.HdrHistogram(1, 3_600_000_000, 3)
    for value in values:
        histogram.record_value(value)
    return histogram.encode().decode()


ONE, TWO = encoded(1000, 2000, 3000), encoded(*range(5000, 9000, 7))


def test_bytes_one_after_the_other(read_text):
    series = read_text(base64.b64decode(ONE) + base64.b64decode(TWO), "all.bin")
    assert [data.count for data in series.values()] == [3, 572]


def test_what_is_read_is_what_was_recorded(read_text):
    (data,) = read_text(TWO).values()
    truth = lk.Histogram.of(range(5000, 9000, 7))
    assert data.percentile([1, 50, 99, 100]) == pytest.approx(truth.percentile([1, 50, 99, 100]))
