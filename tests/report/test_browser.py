"""The page in a browser without a network: what is dragged over is what the curve and the numbers become."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit.buckets import HdrBuckets
from tests.report.conftest import model_of

pytestmark = pytest.mark.needs_tool

SHOWN = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0]


def at_page(histogram: lk.Histogram) -> dict[float, float]:
    """The percentiles of a histogram at the page's resolution: two digits, and the exact maximum."""
    coarse = histogram.rebucket(HdrBuckets(2))
    values, _, beyond = coarse.values_at(np.array(SHOWN))
    values = np.where(beyond, values, np.minimum(values, histogram.max))
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


def test_slots_of_a_long_run_and_its_timeouts_are_counted_alike(tmp_path, opened, spiky):
    page = opened(lk.report({"all": spiky}, tmp_path / "page.html"))
    page.page.evaluate("window.latencykit.select(421, 478)")
    begin, end = page.page.evaluate("window.latencykit.selection()")
    ended = (spiky.start + spiky.duration - spiky.start.min()) / 1e9
    within = spiky.select((ended >= begin) & (ended < end)).histogram()
    assert page.rows()["all"] == at_page(within)
    assert "≥ 2 s" in page.page.inner_text("#numbers")


def test_the_legend_hides_a_series_and_shows_it_again(tmp_path, opened, raw):
    page = opened(lk.report({"raw": raw.between(0, 6.5), "other": raw.between(13, 21)}, tmp_path / "page.html"))
    assert set(page.rows()) == {"raw", "other"}
    curves = "document.querySelectorAll('#plot-curve path.line').length"
    both = page.page.evaluate(curves)
    button = page.page.locator("#legend button", has_text="other")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert set(page.rows()) == {"raw"}
    assert page.page.evaluate(curves) < both
    button.click()
    assert set(page.rows()) == {"raw", "other"}
    assert page.complaints == []


def test_the_fan_out_slider_walks_through_its_rows(tmp_path, opened, raw):
    path = lk.report(raw, tmp_path / "page.html")
    rows = model_of(path.read_text())["fanOut"][0]["rows"]
    page = opened(path)
    page.page.locator("#fan-out-slider").focus()
    page.page.keyboard.press("Home")
    assert page.page.inner_text("#fan-out-n") == "1"
    page.page.keyboard.press("ArrowRight")
    assert page.page.inner_text("#fan-out-words") == rows[1]["words"]
    assert page.page.locator("#fan-out-table tbody tr").count() == 3


def test_keys_alone_select_a_span_and_walk_along_the_curve(tmp_path, opened, raw):
    page = opened(lk.report({"raw": raw}, tmp_path / "page.html"))
    page.page.locator("#from").focus()
    for _ in range(3):
        page.page.keyboard.press("ArrowRight")
    begin, _ = page.page.evaluate("window.latencykit.selection()")
    assert page.rows()["raw"] == at_page(raw.between(begin).histogram())
    assert page.page.inner_text("#selected").startswith("3 s to ")
    page.page.locator("#plot-curve").focus()
    page.page.keyboard.press("End")
    assert page.page.inner_text("#spoken").startswith("max. raw: 6 s")


def test_foreign_names_stay_text_and_nothing_runs(tmp_path, opened, raw):
    name = "</script><img src=x onerror=\"document.title='taken'\"><b>x"
    page = opened(lk.report({name: raw, "b": raw}, tmp_path / "page.html", title="fine"))
    assert page.page.title() == "fine"
    assert page.page.locator("img").count() == 0
    assert {name, f"{name}, corrected", "b"} <= page.rows().keys()
    assert page.complaints == []
    assert len(page.requests) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(tmp_path, opened, raw, scheme):
    page = opened(lk.report({"raw": raw, "other": raw}, tmp_path / "page.html"), width=390, scheme=scheme)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.complaints == []
