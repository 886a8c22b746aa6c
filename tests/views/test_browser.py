"""The page in a browser without a network: curve and numbers follow what is dragged over."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.percentile_rows import statistic_text, values_at
from latencykit.io.writing import write_series as write
from latencykit.units import format_value
from latencykit.views.page import page_html
from latencykit.views.series import series_record
from tests.conftest import log_of_values
from tests.views.conftest import model_of

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]

SHOWN = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0]


def at_page(histogram: lk.Histogram, digits: int = 3) -> dict[float, float]:
    """The percentiles of a histogram at the page's resolution, and the exact maximum."""
    coarse = histogram.rebucket(lk.HdrBuckets(digits))
    values, _, beyond = values_at(coarse, np.array(SHOWN))
    values = np.where(beyond, values, np.minimum(values, histogram.max))
    return dict(zip(SHOWN, values.tolist(), strict=True))


def selected(page: Any) -> tuple[str, str]:
    """The span that the page prints, as anybody would copy it."""
    found = re.match(r"([\d.e+-]+) s to ([\d.e+-]+) s", page.inner_text("#selected"))
    assert found is not None, page.inner_text("#selected")
    return found[1], found[2]


def cells(page: Any) -> dict[str, list[str]]:
    """Texts of the table beside the curve."""
    script = """() => [...document.querySelectorAll('#numbers tr')].map(
        row => [row.cells[0].childNodes[1].textContent, ...[...row.cells].slice(1).map(cell => cell.textContent)])"""
    return {row[0]: row[1:] for row in page.evaluate(script)}


def spans(page: Any) -> dict[str, list[str]]:
    """The span of the time bins of each series that has coarser ones than the selection."""
    script = """() => [...document.querySelectorAll('#numbers tr[data-from]')].map(row => [
        row.cells[0].firstChild.nextSibling.textContent, row.dataset.from, row.dataset.to])"""
    return {row[0]: row[1:] for row in page.evaluate(script)}


def test_the_legend_hides_a_series_and_shows_it_again(opened, raw):
    page = opened({"raw": raw.between(0, 6.5), "other": raw.between(13, 21)})
    assert set(page.rows()) == {"raw", "other"}
    curves = "document.querySelectorAll('#plot-curve path.line').length"
    both = page.evaluate(curves)
    button = page.locator("#legend button", has_text="other")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert set(page.rows()) == {"raw"}
    assert page.evaluate(curves) < both
    button.click()
    assert set(page.rows()) == {"raw", "other"}


def test_the_fan_out_slider_walks_through_its_rows(tmp_path, opened, raw):
    path = lk.report({"raw": raw, "untimed": raw.histogram()}, tmp_path / "page.html")
    models = model_of(path.read_text())["fanOut"]
    page = opened(path)
    page.press("#fan-out-slider", "Home")
    assert page.inner_text("#fan-out-n") == "1"
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#fan-out-words") == models[0]["rows"][1]["words"]
    assert page.locator("#fan-out-table tbody tr").count() == 3
    page.press("#fan-out-series", "ArrowDown")
    page.keyboard.press("Enter")
    assert page.inner_text("#fan-out-words") == models[1]["rows"][1]["words"]
    first = page.locator("#fan-out-table tbody tr").first.locator("td").all_inner_texts()
    assert first[0] == ""
    assert first[1]


def test_keys_alone_select_a_span_and_walk_along_the_curve(opened, raw):
    page = opened({"raw": raw})
    page.locator("#from").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    begin, _ = page.selection()
    assert page.rows()["raw"] == at_page(raw.between(begin).histogram())
    assert page.inner_text("#selected").startswith("3 s to ")
    page.press("#plot-curve", "End")
    assert page.inner_text("#spoken").startswith("max. raw: 6 s")


def test_foreign_names_stay_text_and_nothing_runs(opened, raw):
    name = "</script><img src=x onerror=\"document.title='taken'\"><b>x"
    page = opened({name: raw, "b": raw}, title="fine")
    assert page.title() == "fine"
    assert page.locator("img").count() == 0
    assert {name[:20], f"{name}, corrected"[:20], "b"} <= {row[:20] for row in page.rows()}
    assert page.locator("#legend button[data-series]").first.get_attribute("title") == name
    assert len(page.requests) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(opened, raw, scheme):
    page = opened({"raw": raw, "other": raw}, width=390, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


# ---------------------------------------------------------------- real input


def test_a_click_selects_a_slot_and_a_double_click_shows_the_whole_run(opened, raw):
    page = opened({"raw": raw})
    whole = cells(page)
    page.mouse.click(*page.place(3.5))
    shown = int(cells(page)["raw"][0].replace(",", ""))
    assert raw.between(*selected(page)).histogram().count == shown > 0
    begin, end = map(float, selected(page))
    assert begin <= 3.5 < end
    assert len(raw.between(begin, end)) == 1
    page.mouse.dblclick(*page.place(15.5))
    assert page.inner_text("#selected") == "the whole run"
    assert cells(page) == whole
    page.drag(2, 9)
    page.mouse.dblclick(*page.place(4.5))
    assert page.inner_text("#selected") == "the whole run"
    assert page.locator("#plot-timeline .brush").get_attribute("visibility") == "hidden"
    page.mouse.click(*page.place(4.5), button="right")
    assert page.inner_text("#selected") == "the whole run"


class Finger:
    """Touches as a phone's screen sends them."""

    def __init__(self, page: Any) -> None:
        self.page, self.client = page, page.context.new_cdp_session(page.tab)

    def send(self, kind: str, *points: tuple[float, float]) -> None:
        touches = [{"x": x, "y": y} for x, y in points]
        self.client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    def drag(self, begin: tuple[float, float], end: tuple[float, float], steps: int = 8) -> None:
        self.send("touchStart", begin)
        for k in range(1, steps + 1):
            between = (a + (b - a) * k / steps for a, b in zip(begin, end, strict=True))
            self.send("touchMove", tuple(between))

    def selects(self, span: str) -> None:
        """Wait for a span: a touch reaches the page after the call that sends it returns."""
        # not wait_for_function: the page's policy forbids `eval`, which a second look takes
        self.page.locator("#selected", has_text=re.compile(f"^{span}")).wait_for()


@pytest.fixture
def phone(opened, raw):
    """A page on a phone, and a finger."""
    page = opened({"raw": raw}, width=390, device={"has_touch": True, "is_mobile": True})
    return page, Finger(page)


def test_a_finger_brushes(phone, raw):
    page, finger = phone
    scrolled = page.evaluate("window.scrollY")
    finger.drag(page.place(2.2), page.place(9.1))
    scrolled = page.evaluate("window.scrollY")
    finger.send("touchEnd")
    finger.selects("2 s to 10 s")
    begin, end = map(float, selected(page))
    assert int(cells(page)["raw"][0].replace(",", "")) == raw.between(begin, end).histogram().count
    assert page.evaluate("window.scrollY") == scrolled
    page.touchscreen.tap(*page.place(15.5))
    finger.selects("15 s to 16 s")


def test_a_touch_that_the_browser_takes_to_scroll_keeps_what_was_selected(phone):
    page, finger = phone
    finger.drag(page.place(2.2), page.place(9.1))
    finger.send("touchEnd")
    finger.selects("2 s to 10 s")
    numbers = cells(page)
    x, y = page.place(15)
    # down the page: the browser scrolls, and cancels the touch
    finger.drag((x, y), (x + 6, y + 160))
    finger.send("touchEnd")
    finger.selects("2 s to 10 s")
    finger.drag(page.place(12), page.place(18))
    finger.selects("11 s to 19 s")
    finger.send("touchCancel")
    finger.selects("2 s to 10 s")
    assert cells(page) == numbers
    page.locator("#whole").tap()
    finger.drag(page.place(12), page.place(18))
    finger.send("touchCancel")
    finger.selects("the whole run$")


# ---------------------------------------------------------------- one set of numbers


def log_of(starts: Any, seed: int, **run: Any) -> lk.HistogramLog:
    """Intervals at the given moments, with some requests each."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(1, 90, len(starts)))
    values = np.split(rng.lognormal(13, 1.1, ends[-1]), ends[:-1])
    lengths = np.append(np.diff(starts), 1.0)
    return log_of_values(values, starts, lengths, run=lk.Run(unit_from="option", **run))


def requests(rng: np.random.Generator, size: int, rate: float) -> lk.Samples:
    start = np.cumsum(rng.exponential(1e9 / rate, size)).astype(np.int64) + 10**18
    outcome = rng.choice(["ok", "ok", "ok", "error", "timeout"], size)
    outcome[-size // 20 :] = "timeout"  # the server went away
    took = np.where(outcome == "timeout", 2 * 10**9, rng.lognormal(14, 1, size).astype(np.int64))
    return lk.Samples(start=start, duration=took, outcome=outcome)


def worlds() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    jitter = np.round(np.arange(40) + 0.127 + rng.normal(0, 0.002, 40), 3)
    merged = np.sort(np.round(np.arange(2000) * 0.1 + rng.normal(0, 0.004, 2000), 3))
    return {
        "steady": {"a": log_of(np.arange(30.0), 1)},
        "jittered": {"a": log_of(np.sort(jitter), 2)},
        "noise of clocks": {"a": log_of(np.arange(25) * 0.1 + 1441812279.601 - 1441812279.474, 3)},
        "merged": {"a": log_of(merged, 4)},
        "two clocks": {
            "a": log_of(np.arange(30.0), 5),
            "b": log_of(np.round(np.arange(60) * 0.5 + 0.233, 3), 6),
        },
        "merged and not": {
            "a": log_of(np.arange(1500) * 0.1, 7),
            "b": log_of(np.arange(140) + 0.4, 8),
        },
        "two widths": {"a": log_of(np.arange(700) * 1.0, 9), "b": log_of(np.arange(900) * 0.3, 10)},
        "samples": {"a": requests(rng, 4000, 37)},
        "samples and log": {"a": requests(rng, 3000, 20), "b": log_of(np.arange(700) * 0.25, 12)},
        "a part of samples": {"a": requests(rng, 4000, 37).between(20, 71)},
        "late start": {"a": log_of(np.arange(20) * 5 + 43200.0, 13)},
    }


WRITTEN = ("steady", "jittered", "merged", "late start")


@pytest.mark.parametrize("world", worlds())
def test_the_span_that_the_page_prints_selects_the_same_requests_everywhere(
    tmp_path, opened, run, world
):
    data, rng = worlds()[world], np.random.default_rng(5)
    logs = [name for name, one in data.items() if isinstance(one, lk.HistogramLog)]
    files = {name: tmp_path / f"{name}.hlog" for name in logs}
    for name, path in files.items():
        write({name: data[name]}, path)
    if world in WRITTEN:  # times of a file are those that it can write down
        data = {name: lk.read(path) for name, path in files.items()}
    page = opened(data)
    first, last = page.evaluate("window.latencykit.extent()")
    head = page.locator("th[scope=col]").all_text_contents()[1:9]
    for _ in range(4):
        a, b = sorted(rng.uniform(first, last, 2).tolist())
        page.drag(a, b)
        begin, end = selected(page)
        shown = cells(page)
        page.evaluate("window.latencykit.page.showCompared()")  # it waits for the end of a drag
        coarser = spans(page)
        assert page.locator("#compared caption small").count() == len(coarser)
        for name, one in data.items():
            start, stop = coarser.get(name, (begin, end))
            assert float(start) <= float(begin) < float(end) <= float(stop)
            part = one.between(float(start), float(stop))
            assert len(part) == len(one.between(f"{start} s", f"{stop}s"))
            held, record = part.histogram(), series_record(name, part)
            row = dict(zip(head, shown[name], strict=True))
            assert row["requests"] == f"{held.count:,}"
            if not held.count:
                continue
            fine = model_of((tmp_path / "page.html").read_text())["series"][0]["packed"]
            rows = {f"p{p['percentile']:g}": p for p in record["percentiles"]}
            rows["max"], exact = record["percentiles"][-1], fine["entries"] < 50_000
            for column in ("p50", "p90", "p99", "p99.9", "max"):
                assert_no_better(row[column], rows[column], part.unit, exact=exact)
            assert row["mean"] == mean_text(held)
        if world in WRITTEN:
            assert not coarser
            record = run.json("summary", *files.values(), "--from", begin, "--to", end)
            assert record["series"][0]["count"] == int(shown["a"][0].replace(",", ""))


def assert_no_better(text: str, row: dict[str, Any], unit: str, *, exact: bool) -> None:
    """A percentile of a selection is that of the window's table, or claims less."""
    bare, sure = text.strip("()"), not text.startswith("(")
    assert row["supported"] or not sure or row["percentile"] == 100
    value = format_value(row["value"], unit)
    if row["bucket_high"] is None:
        assert bare.startswith("≥ ")
    elif row["resolved"] and exact:
        assert bare == value
    if bare.startswith("≥ ") and row["bucket_high"] is None:
        assert bare == f"≥ {value}" or nanoseconds(bare[2:]) <= row["value"] * 1.01


def mean_text(histogram: lk.Histogram) -> str:
    return statistic_text(histogram, "mean")


def nanoseconds(text: str) -> float:
    from latencykit.units import parse_duration

    return parse_duration(text)


# ---------------------------------------------------------------- the numbers of one page agree


def test_texts_of_the_script_are_those_of_the_package(opened):
    short = [0.25, 1, 12.5, 1_005, 61_983, 999_500]
    ties = [*short, 1_125_000, 1_375_000, 12_250_000, 2.5e9, 1e15 + 1]
    edges = sorted([*ties, *np.random.default_rng(1).lognormal(14, 4, 40)])
    times = lk.Histogram.from_buckets(edges, edges, np.ones(len(edges)))
    bare = lk.Histogram(times.buckets, times.index, times.counts, "none")
    for unit, histogram in (("ns", times), ("none", bare)):
        page = opened({"x": histogram})
        page.press("#plot-curve", "Home")
        for _ in range(15):
            page.keyboard.press("ArrowRight")
            spoken = page.inner_text("#spoken")
            percentile = float(re.match(r"p([\d.]+)\.", spoken)[1])
            value = format_value(float(histogram.percentile(percentile)), unit)
            assert f": {value} ·" in spoken or f"({value})" in spoken
        assert math.isfinite(percentile)


def test_the_page_says_in_the_header_what_its_tables_say(raw):
    text = page_html({"raw": raw})
    record = series_record("raw", raw)
    rows = {row["percentile"]: row for row in record["percentiles"]}
    p50, p99 = (format_value(rows[percentile]["value"]) for percentile in (50.0, 99.0))
    assert f"{record['count']:,} requests: p50 {p50}, p99 {p99}" in text
    assert f"max {format_value(record['max'])}" in text
    for note in record["notes"]:
        assert note[1:40] in text


def test_two_fingers_zoom(phone):
    page, finger = phone
    (x, y), (right, _) = page.place(8), page.place(14)
    middle = (x + right) / 2
    finger.send("touchStart", (middle - 20, y))
    finger.send("touchStart", (middle - 20, y), (middle + 20, y))
    for reach in (40, 60, 80):
        finger.send("touchMove", (middle - reach, y), (middle + reach, y))
        page.wait_for_timeout(50)
    finger.send("touchEnd")
    first, last = page.evaluate("window.latencykit.page.zoomed")
    whole = page.evaluate("window.latencykit.extent()")
    assert last - first == pytest.approx((whole[1] - whole[0]) / 4, rel=0.05)
    assert first < 11 < last
    assert page.selection() is None
