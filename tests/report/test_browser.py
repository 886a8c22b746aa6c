"""The page in a browser without a network: what is dragged over is what the curve and the numbers become."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit.buckets import HdrBuckets

pytestmark = pytest.mark.needs_tool

SHOWN = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0]


def at_page(histogram: lk.Histogram) -> dict[float, float]:
    """The percentiles of a histogram at the page's resolution: two digits, and the exact maximum."""
    coarse = histogram.rebucket(HdrBuckets(2))
    values = np.minimum(coarse.percentile(SHOWN), histogram.max)
    return dict(zip(SHOWN, values.tolist(), strict=True))


def test_a_brush_over_the_stall_gives_the_numbers_of_that_span(tmp_path, opened, raw):
    page = opened(lk.report({"raw": raw}, tmp_path / "page.html"))
    assert page.rows()["raw"] == at_page(raw.histogram())
    page.drag(10.0, 12.6)
    begin, end = page.page.evaluate("window.latencykit.selection()")
    within = raw.between(begin, np.nextafter(end, 0)).histogram()
    assert 0 < within.count < raw.histogram().count
    assert within.max == raw.histogram().max
    assert page.rows()["raw"] == at_page(within)
    curve = page.page.evaluate("[1, 10, 25, 50, 75, 95, 99.5].map(p => window.latencykit.percentile('raw', p))")
    assert curve == np.minimum(within.rebucket(HdrBuckets(2)).percentile([1, 10, 25, 50, 75, 95, 99.5]), within.max).tolist()
    page.page.keyboard.press("Escape")
    assert page.rows()["raw"] == at_page(raw.histogram())
    assert page.complaints == []
    assert len(page.requests) == 1
