"""The look of a page: nothing overlaps, nothing is cut, and names distinguish the series."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latencykit as lk
from latencykit._text import plain
from latencykit.plot.style import short_names

pytestmark = pytest.mark.slow

Many = dict[str, lk.Samples]
NAMES = [f"checkout-production-eu-west-{k:02d}-with-cache-replica-{k % 3}" for k in range(1, 15)]

# Pairs of texts and buttons that cover each other, and texts beyond their picture.
OVERLAPS = """() => {
  const seen = [], box = (one) => one.getBoundingClientRect();
  const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
  for (const own of document.querySelectorAll('.saves button'))
    for (const other of document.querySelectorAll('p, h2, .plot'))
      if (other.checkVisibility() && !apart(box(own), box(other))) seen.push(own.title + ' / ' + other.textContent.slice(0, 40));
  for (const picture of document.querySelectorAll('.plot svg')) {
    const frame = box(picture), ticks = [...picture.querySelectorAll('text.tick:not(.halo)')], labels = [...picture.querySelectorAll('text.label')];
    for (const text of [...ticks, ...labels])
      if (box(text).left < frame.left - 2 || box(text).right > frame.right + 2) seen.push('cut: ' + text.textContent);
    for (const group of [ticks, labels])
      group.forEach((one, k) => group.slice(k + 1).forEach((other) => {
        const [a, b] = [box(one), box(other)];
        const inside = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (inside > 2 && high > 5) seen.push(one.textContent + ' / ' + other.textContent);
      }));
  }
  const numbers = document.querySelector('#numbers').closest('.scroll');
  if (numbers.scrollWidth > numbers.clientWidth + 1) seen.push('the numbers scroll sideways');
  if (document.documentElement.scrollWidth > innerWidth) seen.push('the page scrolls sideways');
  return seen;
}"""


@pytest.fixture(scope="session")
def fourteen() -> Many:
    """Fourteen series whose names differ in the middle."""
    rng = np.random.default_rng(3)
    series = {}
    for k, name in enumerate(NAMES):
        duration = rng.lognormal(14 + 0.12 * k, 0.5, 1_000).astype(np.int64)
        series[name] = lk.Samples(start=np.arange(1_000) * 20_000_000, duration=duration)
    return series


def test_short_names_are_distinct() -> None:
    assert short_names(["a", "b"], 14) == ["a", "b"]
    for limit in (12, 14, 48):
        short = short_names(NAMES, limit)
        assert len(set(short)) == len(NAMES)
        assert max(map(len, short)) <= limit
    assert short_names(["long-name-of-one-series"], 14) == ["long-na…series"]
    # Little would be left of a name that begins all others.
    assert plain("\u05d0 2") == "\u200e\u05d0 2\u200e"
    pair = short_names(["ctrlz-uncorrected.hlog", "ctrlz-uncorrected.hlog, corrected"], 14)
    assert pair == ["ctrlz-u…d.hlog", "ctrlz-u…rected"]


@pytest.mark.needs_tool
@pytest.mark.parametrize("width", [390, 1280, 2000])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overlaps(
    width: int, scheme: str, fourteen: Any, raw: lk.HistogramLog, spiky: lk.Samples, opened: Any
) -> None:
    long = {"raw": raw, "part_" * 12: raw.between(0, 12)}
    pages = {"many": fourteen, "pair": long, "spiky": spiky}
    for name, data in pages.items():
        page = opened(data, width=width, scheme=scheme)
        assert page.evaluate(OVERLAPS) == [], name
        page.evaluate("latencykit.select(5, 12)")
        assert page.evaluate(OVERLAPS) == [], name


@pytest.mark.needs_tool
def test_fourteen_series_are_unmistakable(fourteen: Many, opened: Any) -> None:
    page = opened(fourteen)
    texts = lambda where: page.locator(where).all_text_contents()  # noqa: E731
    assert len(set(texts("#plot-curve .label"))) == 14
    assert len(set(texts("#plot-timeline .label"))) == 14
    legend = texts("#legend button[data-series]")
    assert texts("#numbers th") == legend
    looks = "all => all.map((one) => one.className)"
    swatches = page.locator("#legend .swatch").evaluate_all(looks)
    assert len(set(swatches)) == 14
    page.locator("#plot-curve .catch").hover()
    assert page.locator("#tip .swatch").evaluate_all(looks) == swatches
    assert all(row.startswith(name) for name, row in zip(legend, texts("#tip div"), strict=True))
    column = page.locator(".percentiles").bounding_box()
    assert column["height"] <= 900  # no taller than the window, within which it stays


@pytest.mark.needs_tool
@pytest.mark.parametrize("width", [390, 1280])
def test_many_series_over_time_have_lanes(width: int, fourteen: Many, opened: Any) -> None:
    shorter = fourteen | {name: fourteen[name].between(0, 5) for name in list(fourteen)[:7]}
    page = opened(shorter, width=width)
    assert page.locator("#plot-timeline svg text.label").count() == 14  # those that end sooner, too
    boxes = """all => all.map((one) => [one.getBoundingClientRect().top, one.getBoundingClientRect().bottom])"""
    lines = page.locator("#plot-timeline svg g > path.line:not(.thin):not(.faint)")
    lanes = lines.evaluate_all(boxes)
    assert len(lanes) == 14
    assert all(above[1] <= below[0] + 2 for above, below in pairwise(lanes))
    page.locator("#legend").get_by_text("only").first.click()
    (alone,) = lines.evaluate_all(boxes)
    assert alone[1] - alone[0] > 2 * (lanes[0][1] - lanes[0][0])  # the whole height is its own


@pytest.mark.needs_tool
def test_what_goes_on_below_the_window_fades(fourteen: Many, opened: Any) -> None:
    column = opened(fourteen).locator(".percentiles")
    assert column.evaluate("one => one.scrollHeight > one.clientHeight + 100")
    assert "linear-gradient" in column.evaluate("one => getComputedStyle(one).maskImage")
    column.evaluate("one => one.scrollTo(0, one.scrollHeight)")
    end, last = (one.bounding_box() for one in (column, column.locator("#numbers tr").last))
    assert last["y"] + last["height"] <= end["y"] + end["height"] - 27  # none of it is faded


def test_many_series_begin_with_pictures(fourteen: Many, raw: lk.HistogramLog) -> None:
    html = lk.report(fourteen | {"raw": raw}).html
    header, folded = html.partition("</header>")[0].split("<details>")
    assert header.count("class='headline") == 1  # the one whose measurement omits
    assert "nothing was answered for 6 s" in header
    assert folded.count("class='headline") == 14
    trust = html.partition("<section id='trust'")[2].partition("</section>")[0]
    assert trust.count("<ul>") < 15  # the same is said once
    assert all(f"{k:02d}-with-cache" in trust for k in range(1, 15))


@pytest.mark.needs_tool
def test_print_begins_on_the_first_page(raw: lk.HistogramLog, opened: Any) -> None:
    data = {"raw": raw, "part": raw.between(0, 12)}
    page = opened(data, width=703)
    page.emulate_media(media="print")
    page.wait_for_timeout(200)
    assert page.locator("#legend button[data-series]").first.is_visible()
    assert not page.locator(".tools").is_visible()
    assert not page.locator(".how").is_visible()
    chart = page.locator("#plot-timeline").bounding_box()
    assert chart["y"] + chart["height"] < 1032  # A4 at 96 dots per inch, less its margins


@pytest.mark.needs_tool
def test_letters_are_printed_as_large_as_on_the_screen(raw: lk.HistogramLog, opened: Any) -> None:
    page = opened(raw, width=1280)
    scale = "svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"
    page.emulate_media(media="print")  # one column: a picture is not blown up to its width
    page.wait_for_timeout(200)  # it is drawn anew
    page.locator("#plot-timeline svg").wait_for()
    assert 0.7 < page.locator("#plot-timeline svg").evaluate(scale) < 1.01


@pytest.mark.needs_tool
def test_without_scripts_a_page_shows_a_picture(
    raw: lk.HistogramLog, tmp_path: Path, browser: Any
) -> None:
    path = lk.report(raw, tmp_path / "page.html")
    assert "<noscript" not in path.read_text()  # in a frame, Chromium would show it as text
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    picture = page.locator("#static svg")
    assert picture.is_visible()
    assert 400 < picture.evaluate("svg => svg.getBoundingClientRect().width") < 700
    assert not page.locator("button:visible, select:visible, input:visible").count()
    assert "6,852" in page.locator("#numbers").inner_text()
    context.close()
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    assert not page.locator("#static").count()
    page.close()


@pytest.mark.needs_tool
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(
    scheme: str, raw: lk.HistogramLog, spiky: lk.Samples, opened: Any
) -> None:
    axe = Path(os.environ.get("AXE_CORE", "node_modules/axe-core/axe.min.js"))
    if not axe.exists():
        pytest.skip("axe-core is not here (npm install --no-save axe-core, or AXE_CORE=its file)")
    pages = {"pair": {"raw": raw, "part_" * 9: raw.between(5, 9)}, "spiky": spiky}
    for name, data in pages.items():
        page = opened(data, scheme=scheme, device={"bypass_csp": True}, slo="99=20ms,max=1s")
        page.evaluate("latencykit.select(5, 12)")
        page.evaluate(axe.read_text())
        kinds = "['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']"
        results = page.evaluate(f"axe.run(document, {{runOnly: {kinds}}})")
        found = [(one["id"], one["nodes"][0]["html"][:100]) for one in results["violations"]]
        assert found == [], name


@pytest.mark.needs_tool
def test_a_table_that_goes_on_to_the_right_shows_it(fourteen: Many, opened: Any) -> None:
    page = opened(fourteen, width=390)
    table = page.locator("#key-numbers .scroll").first
    assert table.evaluate("one => one.scrollWidth > one.clientWidth + 100")
    assert table.evaluate("one => getComputedStyle(one).backgroundAttachment") == "local, scroll"
    table.evaluate("one => one.scrollTo(one.scrollWidth, 0)")
    names = table.locator("tbody th").first.bounding_box()  # stay in view
    assert 0 <= names["x"] < 390 - names["width"]
