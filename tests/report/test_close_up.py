"""A closer look: the size of a page, time bins of their own around stalls, and finer ones from the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.views.page import byte_count
from latencykit.views.page_data import finer
from tests.report.conftest import model_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def paused() -> lk.HistogramLog:
    """An hour of 200 requests/s over 4 connections; the server pauses for 310 ms at 2,000 s."""
    rng = np.random.default_rng(4)
    start = np.arange(720_000) * 5_000_000
    duration = rng.lognormal(13.5, 0.3, start.size).astype(np.int64)
    begin, end = 2_000_100_000_000, 2_000_410_000_000
    held = (start >= begin) & (start < end)
    duration[held] += end - start[held]
    return lk.Samples(start=start, duration=duration).to_log("1s")


def test_sizes_are_read() -> None:
    sizes = {"2MB": 2_000_000, "500 kB": 500_000, "1MiB": 2**20, 123: 123, "1.5M": 1_500_000}
    assert {size: byte_count(size) for size in sizes} == sizes
    with pytest.raises(lk.InvalidArgumentError, match="expected one such as 500kB"):
        byte_count("large")


def test_a_page_keeps_to_its_size(paused: lk.HistogramLog) -> None:
    sizes = {size: len(lk.report(paused, page_size=size).html) for size in ("300kB", "2MB", "8MB")}
    assert sizes["300kB"] <= 300_000
    assert sizes["300kB"] < sizes["2MB"] <= 2_000_000
    assert sizes["2MB"] < sizes["8MB"] <= 8_000_000
    for size in sizes:
        series = model_of(lk.report(paused, page_size=size).html)["series"][0]["packed"]
        assert max(value for value in series["max"] if value) == paused.max
        assert series["entries"] > 0


@pytest.mark.needs_tool
def test_show_shows_a_short_stall(paused: lk.HistogramLog, tmp_path: Path, opened: Any) -> None:
    page = opened(lk.report({"log": paused}, tmp_path / "page.html", title="page"))
    bins = "latencykit.page.series[0].data.start.length"
    assert page.page.evaluate(bins) == 180
    page.page.locator("#stalls button", has_text="Show").first.click()
    start, end = page.page.evaluate("latencykit.selection()")
    assert start <= 2000.1
    assert 2000.41 <= end <= start + 3  # intervals of the log, not time bins of 20 s
    assert page.page.evaluate("latencykit.page.zoomed[1] - latencykit.page.zoomed[0]") < 60
    selected = paused.between(start, end).histogram()
    assert page.rows()["log"][99.0] == selected.percentile(99)
    assert page.page.locator("#numbers [data-count]").inner_text() == str(selected.count)
    page.page.wait_for_url(lambda url: "zoom=" in url and "span=" in url)
    address, rows = page.page.url, page.rows()
    other = page.context.new_page()
    other.goto(address)
    other.wait_for_selector("html[data-ready]")
    assert other.evaluate("latencykit.selection()") == [start, end]
    page.page.get_by_role("button", name="All", exact=True).click()
    assert page.page.evaluate(bins) == 180
    assert page.rows() == rows  # the numbers of a selection do not depend on the zoom
    page.drag(1000, 3000)
    start, end = page.page.evaluate("latencykit.selection()")
    count = paused.between(start, end).histogram().count
    assert page.page.locator("#numbers [data-count]").inner_text() == f"{count:,}"
    assert page.complaints == []


def test_the_kernel_answers_with_single_intervals(paused: lk.HistogramLog) -> None:
    pytest.importorskip("anywidget", reason="the widget is an anywidget")
    explorer, sent = lk.explore(paused), []
    explorer.send = lambda content, buffers=None: sent.append((content, buffers))
    explorer._handle_custom_msg({"finer": [1990.0, 2010.0]}, [])
    ((content, buffers),) = sent
    detail = content["finer"]
    assert detail["bin"] == 1.0
    assert detail["edges"] == [float(second) for second in range(1990, 2011)]
    assert len(buffers) == 1
    assert detail["series"][0]["bytes"] == 0


@pytest.mark.needs_tool
def test_finer_bins_are_asked_for_and_drawn(
    paused: lk.HistogramLog, tmp_path: Path, opened: Any
) -> None:
    page = opened(lk.report({"log": paused}, tmp_path / "page.html")).page
    page.evaluate("latencykit.page.ask = (span) => (window.asked = span)")
    page.evaluate("latencykit.page.zoom([100, 140])")
    page.wait_for_timeout(300)
    start, end = page.evaluate("window.asked")
    assert (start, end) == (80, 160)
    page.evaluate("(detail) => latencykit.addFiner(detail)", finer({"log": paused}, start, end))
    assert page.evaluate("latencykit.page.series[0].data.start.length") == 80
    page.evaluate("latencykit.select(110.2, 112.9)")
    assert page.evaluate("latencykit.selection()") == [110, 113]
    count = paused.between(110, 113).histogram().count
    assert page.locator("#numbers [data-count]").inner_text() == f"{count:,}"
    page.evaluate("latencykit.page.zoom(null)")
    assert page.evaluate("latencykit.page.series[0].data.start.length") == 180
    assert page.evaluate("latencykit.counts().log") == count
