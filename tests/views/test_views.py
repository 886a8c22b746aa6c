"""The linked views, with real mouse, wheel and keys: zoom, move, resize, ranges of latency, copies and pictures."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.units import format_value

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]


@pytest.fixture
def page(opened: Any, raw: lk.HistogramLog) -> Any:
    return opened({"raw": raw, "part": raw.between(0, 12)})


def at(page: Any, plot: str, x: float, y: float = 0.5) -> tuple[float, float]:
    """Pixels of a place in a plot, each from 0 to 1."""
    page.locator(plot).scroll_into_view_if_needed()
    box = page.locator(f"{plot} .catch").bounding_box()
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


def drag(page: Any, begin: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*begin)
    page.mouse.down()
    page.mouse.move(*end, steps=6)
    page.mouse.up()


def test_a_selection_is_moved_and_resized(page: Any) -> None:
    page.drag(4.0, 8.0)
    start, end = page.selection()
    span = page.evaluate("window.latencykit.extent()")
    place = lambda moment: at(page, "#plot-timeline", (moment - span[0]) / (span[1] - span[0]))  # noqa: E731
    drag(page, place(6), place(9))
    moved = page.selection()
    assert moved == [start + 3, end + 3]
    drag(page, place(moved[1]), place(moved[1] + 3.5))
    assert page.selection() == [moved[0], moved[1] + 4]
    drag(page, place(moved[0]), place(moved[0] - 1.5))
    assert page.selection() == [moved[0] - 2, moved[1] + 4]


def test_zoom_by_wheel_keys_and_buttons(page: Any) -> None:
    ticks = lambda: page.locator("#plot-timeline .tick").all_text_contents()  # noqa: E731
    whole = ticks()
    page.mouse.move(*at(page, "#plot-timeline", 0.5))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    page.wait_for_timeout(100)
    assert ticks() != whole
    page.press("#plot-timeline", "0")
    assert ticks() == whole
    page.keyboard.press("+")
    assert ticks() != whole
    page.get_by_role("button", name="All", exact=True).click()
    assert ticks() == whole
    page.drag(4.0, 8.0)
    page.get_by_role("button", name="Zoom to selection").click()
    page.wait_for_url(lambda url: "zoom=" in url and "span=" in url)


def test_an_address_brings_the_view_back(page: Any) -> None:
    page.drag(4.0, 8.0)
    page.locator("#legend .only").first.click()
    page.wait_for_url(lambda url: "span=" in url and "hide=" in url)
    span, rows, address = page.selection(), page.rows(), page.url
    other = page.context.new_page()
    other.goto(address)
    other.wait_for_selector("html[data-ready]")
    assert other.evaluate("window.latencykit.selection()") == span
    assert other.locator("#numbers tr").count() == len(rows) == 1
    pressed = other.locator("#legend button[data-series]").evaluate_all(
        "buttons => buttons.map((one) => one.getAttribute('aria-pressed'))"
    )
    assert pressed[0] == "true"
    assert set(pressed[1:]) == {"false"}


def test_when_did_these_percentiles_happen(page: Any, raw: lk.HistogramLog) -> None:
    drag(page, at(page, "#plot-curve", 0.5), at(page, "#plot-curve", 0.7))
    low, high = page.evaluate("window.latencykit.page.values")
    histogram = raw.histogram()
    expected = histogram.count_above(low) - histogram.count_above(high)
    assert f"raw: {expected:,} of 6,852 requests" in page.inner_text("#chosen")
    assert page.locator("#plot-timeline .when").count() > 0
    page.keyboard.press("Escape")
    assert not page.locator("#chosen").is_visible()
    assert page.locator("#plot-timeline .when").count() == 0


def test_a_region_of_the_heat_map_selects_time_and_latency(page: Any) -> None:
    drag(page, at(page, "#plot-heat", 0.1, 0.2), at(page, "#plot-heat", 0.4, 0.8))
    assert page.selection() is not None
    assert "requests, in" in page.inner_text("#chosen")


def test_what_is_taken_along(page: Any, raw: lk.HistogramLog) -> None:
    page.drag(4.0, 8.0)
    start, end = page.selection()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Numbers as CSV").click()
    with Path(waiting.value.path()).open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    within = raw.between(start, end).histogram()
    assert rows[0]["series"] == "raw"
    assert int(rows[0]["requests"]) == within.count
    assert float(rows[0]["p50_ns"]) == within.percentile(50)
    for kind, head in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        for own in page.locator(".saves").get_by_text(kind, exact=True).all():
            with page.expect_download() as waiting:
                own.click()
            content = Path(waiting.value.path()).read_bytes()
            assert content.startswith(head)
            assert len(content) > 2000
            if kind == "SVG":  # which says what it shows, wherever it goes
                heading = page.inner_text("h1")
                assert f"<title>{heading} · " in content.decode()
                assert f">{heading}</text>" in content.decode()
    assert f".between({start:g}, {end:g})" in page.copied("Python")


def test_values_on_a_linear_axis_and_times_of_the_clock(page: Any) -> None:
    before = page.locator("#plot-curve .tick").all_text_contents()
    page.get_by_role("button", name="Linear values").click()
    assert page.locator("#plot-curve .tick").all_text_contents() != before
    page.get_by_role("button", name="Clock times").click()
    assert "UTC, from" in page.locator("#plot-timeline").text_content()


def test_a_selection_is_compared_with_the_rest(opened: Any) -> None:
    """Two minutes at 200 requests/s, of which 50 s are slower by a fifth."""
    from playwright.sync_api import expect

    rng = np.random.default_rng(6)
    start = np.arange(24_000) * 5_000_000
    slower = (start >= 65e9) & (start < 115e9)
    duration = rng.lognormal(14, 0.4, 24_000) * np.where(slower, 1.2, 1.0)
    raw = lk.Samples(start=start, duration=duration.astype(np.int64)).to_log("1s")
    page = opened(raw)
    page.drag(65.0, 115.0)
    first, last = page.selection()
    parts = [raw.between(first, last), raw.between(0, first) + raw.between(last)]
    parts = [part.histogram() for part in parts]
    table = page.locator("#compared table").first
    selected = table.locator("tbody tr").first.locator("td").nth(0)
    expect(selected).to_have_text(f"{parts[0].count:,}")  # once it shows the whole drag
    cells = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert cells[0][:2] == [f"{part.count:,}" for part in parts]
    medians = [float(part.percentile(50)) for part in parts]
    assert cells[1][:2] == [format_value(value) for value in medians]
    difference, _, interval = cells[1][2].partition("\n")
    assert difference == "+" + format_value(medians[0] - medians[1])
    low, high = (float(end) for end in re.findall(r"\+([\d.]+) µs", interval))
    assert low < 0.2 * 1e-3 * np.exp(14) < high
    assert cells[-1][2] == "not judged"  # of a maximum
    page.press("#plot-timeline", "Escape")
    page.locator("#compared").wait_for(state="hidden")


def test_keys_choose_a_range_of_percentiles(page: Any, raw: lk.HistogramLog) -> None:
    page.locator("#plot-curve").focus()
    for key in ("ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    first, last = (100 * (1 - 10**-place) for place in (0.4, 0.6))
    low, high = page.evaluate("window.latencykit.page.values")
    histogram = raw.histogram()
    assert [low, high] == histogram.percentile([first, last]).tolist()
    expected = histogram.count_above(low) - histogram.count_above(high)
    assert f"raw: {expected:,} of 6,852 requests" in page.inner_text("#spoken")
    assert "raw: " in page.inner_text("#tip")  # what is spoken of the rule is shown, too
    page.keyboard.press("Escape")
    assert page.evaluate("window.latencykit.page.values") is None
    assert not page.locator("#tip").is_visible()


def test_keys_choose_a_region_of_the_heat_map(page: Any, raw: lk.HistogramLog) -> None:
    page.locator("#heat-series").select_option("part")
    page.press("#plot-heat", "ArrowLeft")
    assert page.locator("#plot-heat .cell").get_attribute("visibility") == "visible"
    shown = page.inner_text("#tip")
    assert all(line in page.inner_text("#spoken") for line in shown.splitlines())
    for _ in range(3):
        page.keyboard.press("Shift+ArrowLeft")
        page.keyboard.press("Shift+ArrowUp")
    start, end = page.selection()
    assert end - start == pytest.approx(4, abs=0.05)
    low, high = page.evaluate("window.latencykit.page.values")
    # Bins end at their buckets' upper edges.
    part = raw.between(start, end).histogram()
    expected = part.count_above(low) - part.count_above(high)
    assert f"raw: {expected:,} of {part.count:,} requests" in page.inner_text("#chosen")
    page.keyboard.press("Escape")
    assert page.selection() is None


def test_keys_move_and_resize_a_selection(page: Any) -> None:
    page.press("#plot-timeline", "ArrowRight")
    edges = page.evaluate("window.latencykit.page.edges")
    assert page.selection() == edges[:2]
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert page.selection() == [edges[0], edges[3]]
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("ArrowRight")
    assert page.selection() == [edges[1], edges[3]]
    page.keyboard.press("ArrowLeft")
    assert page.selection() == [edges[0], edges[2]]


def test_a_selection_that_python_sets_is_not_answered(page: Any) -> None:
    """Two linked widgets have edges of their own: answers would go back and forth and grow."""
    page.evaluate("void (latencykit.page.onSelect = () => (window.answered = true))")
    page.evaluate("latencykit.follow([4.2, 7.7])")
    start, end = page.selection()
    assert start <= 4.2 < 7.7 <= end
    assert page.evaluate("window.answered") is None
    page.drag(10.0, 12.0)
    assert page.evaluate("window.answered") is True


def test_a_drag_selects_within_a_selection_that_fills_the_view(page: Any) -> None:
    page.drag(4.0, 12.0)
    start, end = page.selection()
    page.get_by_role("button", name="Zoom to selection").click()
    drag(page, at(page, "#plot-timeline", 0.3), at(page, "#plot-timeline", 0.6))
    first, last = page.selection()
    assert start < first < last < end
