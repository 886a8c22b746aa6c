"""The one browser test that the quick lane has; `test_browser` has the others."""

from __future__ import annotations

import numpy as np

from tests.views.test_browser import at_page


def test_a_brush_over_the_stall_gives_the_numbers_of_that_span(opened, raw):
    page = opened({"raw": raw})
    assert page.rows()["raw"] == at_page(raw.histogram())
    page.drag(10.0, 12.6)
    begin, end = page.selection()
    within = raw.between(begin, end).histogram()
    assert 0 < within.count < raw.histogram().count
    assert within.max == raw.histogram().max
    assert page.rows()["raw"] == at_page(within)
    asked = [1, 10, 25, 50, 75, 95, 99.5]
    curve = page.evaluate(f"{asked}.map(p => window.latencykit.percentile('raw', p))")
    assert curve == np.minimum(within.percentile(asked), within.max).tolist()
    page.keyboard.press("Escape")
    assert page.rows()["raw"] == at_page(raw.histogram())
    assert len(page.requests) == 1
