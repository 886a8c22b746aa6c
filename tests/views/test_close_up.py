"""A closer look: the size of a page, time bins of their own around stalls, and finer ones from the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.units import byte_count
from latencykit.views.page_series import finer
from tests.views.conftest import model_of

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


@pytest.fixture(scope="session")
def omitting() -> lk.HistogramLog:
    """Ten minutes of one connection at 200 requests/s; while a request takes seconds, none is sent."""
    start = np.arange(120_000) * 5_000_000
    duration = np.random.default_rng(4).lognormal(13.5, 0.3, start.size).astype(np.int64)
    sent = np.ones(start.size, np.bool_)
    for begin, end in ((120_100, 123_900), (400_200, 402_700)):
        first, last = begin // 5, end // 5
        duration[first] = (end - begin) * 1_000_000
        sent[first + 1 : last] = False
    return lk.Samples(start=start[sent], duration=duration[sent]).to_log("1s")


@pytest.mark.needs_tool
def test_what_omits_has_finer_bins_and_one_correction(
    omitting: lk.HistogramLog, opened: Any
) -> None:
    model = model_of(lk.report({"log": omitting}, page_size="4MB").html)
    assert [len(one.get("packed", {}).get("start", ())) for one in model["series"]] == [600, 0]
    assert len(model["edges"]) == 601
    page = opened({"log": omitting}, expected_interval="5ms")
    corrected = lk.diagnose(omitting, expected_interval="5ms").corrected
    page.locator("#stalls button", has_text="Show").first.click()

    def check() -> tuple[float, float]:
        start, end = page.selection()
        counts = page.locator("#numbers [data-count]").all_inner_texts()
        parts = (omitting.between(start, end).histogram(), corrected)  # of the whole run
        for selected, (name, row), count in zip(parts, page.rows().items(), counts, strict=True):
            assert count == f"{selected.count:,}", name
            assert row == {p: selected.percentile(p) for p in row}, name
        return start, end

    assert page.evaluate("latencykit.page.finer.bin") == 1
    start, end = check()
    assert start <= 120.1 < 123.9 <= end <= start + 6
    page.press("#plot-timeline", "0")
    assert check() == (start, end)
    page.wait_for_url(lambda url: "span=" in url and "zoom=" not in url)
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector("html[data-ready]")
    assert other.evaluate("latencykit.selection()") == [start, end]
    page.keyboard.press("Shift+ArrowRight")  # the finer bin's edge is none of the whole run's
    later = check()
    assert later[1] > end


@pytest.mark.parametrize("span", [(82.3, 1410.7), (0.0, 700.0), (1990.5, 3700.0), (7.2, 9.1)])
def test_finer_edges_enclose_complete_bins(
    paused: lk.HistogramLog, span: tuple[float, float]
) -> None:
    samples = lk.Samples(start=np.arange(50_000) * 72_000_000, duration=np.full(50_000, 10**6))
    series = {"log": paused, "corrected": lk.correct(paused, "5ms"), "samples": samples}
    for names in (["log"], ["corrected"], ["samples"], list(series)):
        detail = finer({name: series[name] for name in names}, *span)
        edges = detail["edges"]
        assert detail["span"][0] >= span[0]
        for start, end in zip(edges[:1] + edges[-2:-1], edges[1:2] + edges[-1:], strict=True):
            for name, packed in zip(names, detail["series"], strict=True):
                first, last = np.searchsorted(packed["start"], (start, end))
                cells = np.array([start, end]) / (packed["width"] or 1)
                if packed["width"] and np.abs(cells - np.round(cells)).max() > 1e-6:
                    continue  # of a series with longer bins, whose own are selected
                bins = np.array(packed["sum"])[first:last]
                own = series[name].between(start, end).histogram()
                expected = float(own.counts @ own.buckets.mid(own.index))
                assert bins.sum() == pytest.approx(expected, rel=1e-9), (name, start)


@pytest.mark.needs_tool
def test_show_shows_a_short_stall(paused: lk.HistogramLog, opened: Any) -> None:
    page = opened({"log": paused}, title="page")
    bins = "latencykit.page.series[0].data.start.length"
    assert page.evaluate(bins) == 180
    page.locator("#stalls button", has_text="Show").first.click()
    start, end = page.selection()
    assert start <= 2000.1
    assert 2000.41 <= end <= start + 3  # intervals of the log, not time bins of 20 s
    assert page.evaluate("latencykit.page.zoomed[1] - latencykit.page.zoomed[0]") < 60
    selected = paused.between(start, end).histogram()
    assert page.rows()["log"][99.0] == selected.percentile(99)
    assert page.locator("#numbers [data-count]").inner_text() == str(selected.count)
    page.wait_for_url(lambda url: "zoom=" in url and "span=" in url)
    address, rows = page.url, page.rows()
    other = page.context.new_page()
    other.goto(address)
    other.wait_for_selector("html[data-ready]")
    assert other.evaluate("latencykit.selection()") == [start, end]
    page.get_by_role("button", name="All", exact=True).click()
    assert page.evaluate(bins) == 180
    assert page.rows() == rows  # the numbers of a selection do not depend on the zoom
    page.drag(1000, 3000)
    start, end = page.selection()
    count = paused.between(start, end).histogram().count
    assert page.locator("#numbers [data-count]").inner_text() == f"{count:,}"


def test_the_kernel_answers_with_single_intervals(paused: lk.HistogramLog) -> None:
    pytest.importorskip("anywidget", reason="the widget is an anywidget")
    explorer, sent = lk.explore(paused), []
    explorer.send = sent.append
    explorer._handle_custom_msg({"finer": [1990.0, 2010.0]}, [])
    (content,) = sent
    detail = content["finer"]
    assert detail["bin"] == 1.0
    assert detail["edges"] == [float(second) for second in range(1990, 2011)]
    assert detail["series"][0]["entries"] > 0


@pytest.mark.needs_tool
def test_finer_bins_are_asked_for_and_drawn(paused: lk.HistogramLog, opened: Any) -> None:
    page = opened({"log": paused})
    page.evaluate("latencykit.page.ask = (span) => (window.asked = span)")
    page.evaluate("latencykit.page.zoom([100, 140])")
    page.wait_for_timeout(300)
    start, end = page.evaluate("window.asked")
    assert (start, end) == (80, 160)
    page.evaluate("(detail) => latencykit.addFiner(detail)", finer({"log": paused}, start, end))
    assert page.evaluate("latencykit.page.series[0].data.start.length") == 80
    page.evaluate("latencykit.select(110.2, 112.9)")
    assert page.selection() == [110, 113]
    count = paused.between(110, 113).histogram().count
    assert page.locator("#numbers [data-count]").inner_text() == f"{count:,}"
    page.evaluate("latencykit.page.zoom(null)")
    assert page.evaluate("latencykit.page.series[0].data.start.length") == 180
    assert page.evaluate("latencykit.counts().log") == count
