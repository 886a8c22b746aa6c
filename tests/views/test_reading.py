"""What a reader sees on a page: what is grey, what bins are drawn, and the same on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.plot.series import time_texts
from tests.conftest import log_of_values

pytestmark = [pytest.mark.slow, pytest.mark.needs_tool]


@pytest.fixture(scope="session")
def day() -> lk.HistogramLog:
    """Twelve hours in intervals of ten seconds."""
    rng = np.random.default_rng(3)
    return log_of_values(
        rng.lognormal(13, 0.5, (4320, 20)), np.arange(4320) * 10.0, np.full(4320, 10.0)
    )


def test_grey_is_explained_where_there_is_some(
    raw: lk.HistogramLog, day: lk.HistogramLog, opened: Any
) -> None:
    page = opened(raw)
    assert "Grey: stalls" in page.locator(".time").inner_text()
    page = opened(day)
    assert "Grey: stalls" not in page.locator(".time").inner_text()


def test_times_and_time_bins_are_those_that_are_shown(day: lk.HistogramLog, opened: Any) -> None:
    page = opened(day, page_size="300kB")
    ticks = "#plot-timeline .tick[text-anchor=middle]"
    texts = page.locator(ticks).all_text_contents()
    assert texts == time_texts([3600.0 * k for k in range(0, 13, int(texts[1].split()[0]))])
    whole = page.locator("#bins").inner_text()
    page.evaluate("latencykit.page.zoom([5400, 12600])")
    texts = page.locator(ticks).all_text_contents()
    assert all(text.endswith((" s", " min", " h")) for text in texts)
    page.evaluate(
        """() => { const page = latencykit.page; page.details.push({span: [0, 1e6], bin: page.model.bin / 2,
            edges: page.allEdges, series: [page.series[0].coarse]}); page.zoom([5400, 12600]); }"""
    )
    assert page.locator("#bins").inner_text().startswith("Zoomed in: time bins of ")
    page.evaluate("latencykit.page.zoom(null)")
    assert page.locator("#bins").inner_text() == whole


def test_a_drag_snaps_to_the_finest_series(opened: Any) -> None:
    rng = np.random.default_rng(3)
    short = log_of_values(rng.lognormal(13, 0.5, (600, 20)), np.arange(600.0))
    long = log_of_values(rng.lognormal(13, 0.5, (3600, 20)), np.arange(3600.0))
    page = opened({"long": long, "short": short})
    page.evaluate("latencykit.page.zoom([0, 300])")
    page.evaluate("latencykit.select(13, 15)")
    start, end = page.selection()
    assert (start, end) == (12, 16)  # bins of two seconds
    row = page.locator("#numbers tr", has_text="long")
    own = [float(row.get_attribute(f"data-{name}")) for name in ("from", "to")]
    assert own[0] <= 12 < 16 <= own[1]
    assert row.locator("[data-count]").inner_text() == f"{long.between(*own).count:,}"
    words = page.locator("#numbers tr", has_text="short").locator("[data-count]")
    assert words.inner_text() == f"{short.between(start, end).count:,}"
    assert f"--from {own[0]:g}s --to {own[1]:g}s" in page.copied("command")


def test_labels_beside_the_timeline_name_the_lines_in_view(
    raw: lk.HistogramLog, opened: Any
) -> None:
    page = opened(raw)
    heights = """() => [...document.querySelectorAll('#plot-timeline svg > text.label')].map(
        (one) => [one.textContent, +one.getAttribute('y')])"""
    page.evaluate("latencykit.page.zoom([0, 12])")
    whole = dict(map(tuple, page.evaluate(heights)))
    page.evaluate("latencykit.page.zoom([0, 6])")
    early = dict(map(tuple, page.evaluate(heights)))
    assert whole.keys() == early.keys() == {"max", "p99", "p50"}
    assert whole["max"] < early["max"]  # the stalled second ends that view
    rng = np.random.default_rng(3)
    short, long = (log_of_values(rng.lognormal(13, 0.5, (k, 20))) for k in (20, 90))
    page = opened({"short": short, "long": long})
    assert dict(page.evaluate(heights)).keys() == {"long"}  # the short one ended long before


def test_one_command_and_one_reason_for_all_series(opened: Any) -> None:
    path = Path(lk.__file__).parents[1] / "data/redis-tagged.hlog"
    page = opened(path)
    assert page.copied("command") == "latencykit summary redis-tagged.hlog"
    page.evaluate("latencykit.select(0, 4)")
    box = page.locator("#plot-curve svg").bounding_box()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 60)
    rows = page.locator("#tip").inner_text().splitlines()
    assert len(rows) == 5  # the percentile, total, two tags, and why there are brackets
    assert rows[-1].startswith("in brackets: ")
    assert not any("uncertain" in row or "sample" in row for row in rows[:-1])


def test_what_is_copied_of_parts_of_a_table_finds_them_again(
    tmp_path: Path, opened: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{k / 10},{k % 7 + 1},/{'ab'[k % 2]}\n" for k in range(600)]
    (tmp_path / "calls.csv").write_text("start_s,latency_ms,endpoint\n" + "".join(rows))
    assert run("report", "calls.csv", "--by", "endpoint", "-o", "page.html")[0] == 0
    page = opened(tmp_path / "page.html")
    assert page.copied("command") == "latencykit summary calls.csv --by endpoint"
    printed: list[Any] = []
    exec(page.copied("Python"), {"print": printed.append})
    assert [one.count for one in printed] == [600, 300, 300]


def test_on_paper_charts_are_as_wide_as_the_page_and_all_is_open(
    raw: lk.HistogramLog, opened: Any
) -> None:
    parts = {f"from {k} s": raw.between(k, 21) for k in range(13, 17)}
    data = {"raw": raw} | parts
    page = opened(data, width=1400)
    assert page.locator("details:not([open])").count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.wait_for_timeout(200)
    assert page.locator("details:not([open])").count() == 0
    widths = "all => all.map((one) => one.getBoundingClientRect().width)"
    assert min(page.locator(".plot > svg").evaluate_all(widths)) >= 690
    assert max(page.locator("main *").evaluate_all(widths)) <= 704
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count()
    before = page.evaluate("document.documentElement.hasAttribute('data-paper')")
    assert not before


def test_a_frame_takes_the_theme_of_what_frames_it(
    raw: lk.HistogramLog, tmp_path: Path, browser: Any
) -> None:
    bundle: Any = lk.report(raw)._repr_mimebundle_()[0]
    outer = tmp_path / "notebook.html"
    outer.write_text(f"<body data-jp-theme-light='false'>{bundle['text/html']}</body>")
    page = browser.new_page(color_scheme="light")
    page.goto(outer.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("html[data-theme=dark]").wait_for(state="attached", timeout=30_000)
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    frame.locator("html[data-theme=light]").wait_for(state="attached", timeout=30_000)
    page.close()
