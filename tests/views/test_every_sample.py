"""The page of every sample output and data type has a curve or a reason, and a filled table."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.plot.series import as_series
from latencykit.views.page import page_html
from tests.conftest import RAW
from tests.io.test_contract import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]

LOOK = """() => ({
    drawn: document.querySelectorAll(
        '#plot-curve path.line, #plot-curve path.range, #plot-curve circle').length,
    reasons: [...document.querySelectorAll('.plot .reason')].map(one => one.textContent),
    curve: document.getElementById('plot-curve').textContent,
    plots: [...document.querySelectorAll('.plot')].map(one => one.textContent.length),
    trouble: [...document.querySelectorAll('.trouble, #trouble:not([hidden])')].map(
        one => one.textContent),
    odd: /NaN|undefined|null|Infinity/.test(document.querySelector('main').innerHTML),
    rows: [...document.querySelectorAll('#numbers tr')].map(
        row => [...row.cells].map(cell => cell.textContent)),
})"""
FRAME = "<iframe style='width: 1280px; height: 900px; border: 0'></iframe>"


class Tab:
    """One tab that shows page after page, and what the console said of each.

    Each has a new frame: to open a file takes the browser longer than to draw what is in it.
    """

    def __init__(self, browser: Any) -> None:
        self.tab = browser.new_page(viewport={"width": 1300, "height": 920})
        self.said: list[str] = []
        self.kinds: set[Any] = set()
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))

    def show(self, data: Any, **options: Any) -> dict[str, Any]:
        """Of data that the script treats as it did others, only the table that the page comes with."""
        text = page_html(data, **options)
        model = re.search("<script type='application/json' id='model'>(.*?)</script>", text)
        kind = frozenset(features(json.loads(model[1])))
        seen = {"rows": rows_of(text), "counts": re.findall(r"data-count='(\d*)'", text)}
        if kind in self.kinds:
            return seen
        self.kinds.add(kind)
        return seen | self.look(text)

    def look(self, text: str) -> dict[str, Any]:
        self.said.clear()
        self.tab.set_content(FRAME)
        self.page = self.tab.frames[-1]
        self.page.set_content(text)
        self.page.wait_for_selector("html[data-ready], #trouble:not([hidden])", state="attached")
        seen: dict[str, Any] = self.page.evaluate(LOOK)
        assert seen["rows"] == rows_of(text)
        return seen


def features(part: Any, path: str = "") -> Iterator[object]:
    """What the script can branch on in a page's data: keys and types, and what is empty or zero."""
    if isinstance(part, dict | list):
        yield path, min(len(part), 2)
        for key, one in part.items() if isinstance(part, dict) else enumerate(part):
            yield from features(one, f"{path}.{key if isinstance(part, dict) else ''}")
    else:
        yield path, {int: float}.get(type(part), type(part)), bool(part)


def rows_of(text: str) -> list[list[str]]:
    """The table beside the curve, as the page comes."""
    rows = re.findall(r"<tr data-series=.*?</tr>", text)
    cells = [re.findall(r"<t[hd][ >].*?</t[hd]>", row) for row in rows]
    return [[unescape(re.sub("<[^>]*>", "", cell)) for cell in row] for row in cells]


@pytest.fixture(scope="module")
def tab(browser: Any) -> Tab:
    return Tab(browser)


def assert_drawn(tab: Tab, seen: dict[str, Any], data: Any) -> None:
    """The page reports no error, every plot shows something, and the table has the data's numbers."""
    if "drawn" in seen:
        assert (tab.said, seen["trouble"], seen["odd"]) == ([], [], False)
        assert all(seen["plots"])
        assert seen["drawn"] or seen["reasons"]
    series = as_series(data)
    every = zip(seen["rows"], seen["counts"], strict=True)
    measured = [(row, count) for row, count in every if not row[0].endswith(", corrected")]
    assert len(measured) == len(series)
    for (label, one), (row, count) in zip(series.items(), measured, strict=True):
        # A long name is cut, once or twice, and numbered where another is cut to the same.
        kept = re.split(r"…| #\d+$", row[0])
        assert re.fullmatch(".*".join(map(re.escape, kept)), label or "all requests")
        counted = one.histogram() if isinstance(one, lk.HistogramLog | lk.Samples) else one
        known = getattr(counted, "requests", getattr(counted, "count", None))
        assert count == ("" if known is None else str(known))
        words = "not reported" if known is None else f"{known:,}"
        assert row[1] == ("model" if isinstance(one, lk.Distribution) else words)
        held, empty = getattr(counted, "count", True), known == 0
        if isinstance(counted, lk.Summary):
            held = counted.reported_percentiles
            empty |= not {*held, *counted.stats}
        assert any(row[2:]) or empty
        if not held and "curve" in seen:
            assert "nothing to draw" in seen["curve"] or "no distribution to draw" in seen["curve"]


@cases()
def test_the_page_of_every_sample_draws(tab, case):
    data = case.read()
    seen = tab.show(data)
    assert_drawn(tab, seen, data)
    names = as_series(data)
    if list(names) == list(case.expect["series"]):
        wanted = [case.expect["series"][name]["count"] for name in names]
        every = zip(seen["rows"], seen["counts"], strict=True)
        counts = [
            int(count) if count else None
            for row, count in every
            if not row[0].endswith(", corrected")
        ]
        known = [
            getattr(one, "requests", None) or n
            for one, n in zip(data.values(), wanted, strict=True)
        ]
        assert counts == known


def every_type() -> dict[str, Any]:
    """Data of every type, and the corners of each."""
    rng = np.random.default_rng(3)
    start = np.arange(3000) * 5_000_000
    took = rng.lognormal(13, 1, start.size).astype(np.int64)
    number = np.arange(start.size)
    outcome = np.where(number % 31 == 4, "error", "ok")
    outcome = np.where(number % 50 == 7, "timeout", outcome)
    took = np.where(outcome == "timeout", 2_000_000_000, took)
    timed = lk.Samples(start=start, duration=took, outcome=outcome)
    untimed = lk.Samples(duration=took)
    log = timed.to_log("100ms")
    tagged = lk.merge([log.with_tag("get"), log.with_tag("put")])
    reported_percentiles = lk.Histogram.from_percentiles(
        [50, 75, 90, 99], [1e6, 3e6, 9e7, 5e9], 20_000, reported_stats={"max": 6e9, "mean": 681e6}
    )
    wide = lk.Histogram.from_buckets(
        [0, 1e6, 1e7], [1e6, 1e7, 1e8], [10, 900, 90], censored=20, censored_at=1e8
    )
    forty = {"start": start[:40], "duration": took[:40]}
    late = lk.Samples(start=start + 10**6, duration=took, intended=start)
    open_above = lk.Histogram.from_percentiles([50, 90], [1e6, 2e6], 1000)
    timeouts = lk.Histogram.from_buckets([0], [1e6], [0], censored=5, censored_at=1e6)
    mean = lk.Summary({"mean": 1e6})
    paced = lk.read(RAW)
    summary = lk.Summary({"mean": 1.2e6, "max": 9e6}, {50.0: 9e5, 66.0: 1e6, 99.0: 4e6}, 1234)
    return {
        "samples with times": timed,
        "samples of which none succeeded": lk.Samples(**forty, outcome=["error"] * 40),
        "samples that all timed out": lk.Samples(**forty, outcome=["timeout"] * 40),
        "samples sent at once": lk.Samples(start=np.zeros(30), duration=np.arange(30) + 1),
        "one sample": lk.Samples(start=[5], duration=[7], unit="ms"),
        "samples with intended starts": late,
        "samples without times": untimed,
        "bare numbers": lk.Samples(duration=took, unit="none"),
        "zeros": lk.Histogram.of(np.zeros(100)),
        "log": log,
        "log of one interval": log.between(2, 2.1),
        "log of nothing but empty intervals": timed.select(outcome == "error").to_log("100ms"),
        "tagged log": tagged,
        "log that omits": paced,
        "corrected log": lk.correct(paced.with_run(unit_from="option"), "2ms"),
        "log in wide buckets": wide_log(),
        "histogram": untimed.histogram(),
        "histogram of percentiles": reported_percentiles,
        "histogram of percentiles without a maximum": open_above,
        "histogram in wide buckets": wide,
        "empty histogram": lk.Histogram.of([]),
        "nothing but timeouts": timeouts,
        "summary": summary,
        "summary of a mean": mean,
        "summary of a count": lk.Summary({}, {}, 10),
        "model": lk.fan_out(log, 100),
        "several of them": {
            "log": log,
            "samples": timed,
            "wrk": reported_percentiles,
            "go": summary,
            "mean": mean,
            "none": lk.Histogram.of([]),
        },
        "nine series": {f"s{k}": log.between(0, 1 + k) for k in range(9)},
    }


def wide_log() -> lk.HistogramLog:
    """Twelve scrapes of a Prometheus histogram with three buckets."""
    from latencykit.core.blocks import Block, MemoryPart
    from latencykit.core.buckets import EdgeBuckets

    buckets = EdgeBuckets([0.0, 1e6, 5e6], [1e6, 5e6, 1e8])
    index, counts = np.tile(np.arange(3), 12), np.tile([50, 40, 3], 12) + np.arange(36)
    block = Block(np.arange(12), np.arange(13) * 3, index, counts, buckets)
    return lk.HistogramLog(np.arange(12.0) * 15, np.full(12, 15.0), [MemoryPart([block])])


@pytest.mark.parametrize("kind", every_type())
def test_the_page_of_every_data_type_draws(tab, kind):
    data = every_type()[kind]
    named = data if isinstance(data, dict) else {kind: data}
    for slo in (None, "p99=10ms, max=1s, mean=5ms" if "bare" not in kind else None):
        assert_drawn(tab, tab.show(named, slo=slo), named)


def test_a_summary_shows_the_count_and_the_numbers_that_the_tool_printed(tab):
    summary = lk.Summary({"mean": 1.2e6, "min": 1e5}, {50.0: 9e5, 66.0: 1e6, 99.0: 4e6}, 1234)
    seen = tab.look(page_html({"ab": summary}))
    script = "bodies => [...bodies[0].parentNode.tHead.rows[0].cells].map(cell => cell.textContent)"
    head = tab.page.eval_on_selector_all("#numbers", script)
    (row,) = seen["rows"]
    shown = dict(zip(head, row, strict=True))
    percentiles = {"p50": "900 µs", "p66": "1 ms", "p99": "4 ms"}
    assert shown == {"series": "ab", "requests": "1,234", **percentiles, "mean": "1.2 ms"}
    assert seen["drawn"] == 3
    assert "100 µs" in tab.page.inner_text("#key-numbers")


def test_one_section_that_fails_says_so_and_leaves_the_others_alone(tab, raw):
    text = page_html({"raw": raw})
    assert '"mixture":[{' in text
    seen = tab.look(text.replace('"mixture":[{', '"mixture":[null,{'))
    assert len(seen["trouble"]) == 1
    assert tab.page.inner_text("#plot-fanOut").startswith("This chart could not be drawn")
    assert any("TypeError" in text for text in tab.said)
    assert seen["drawn"] > 3
    assert tab.page.locator("#plot-timeline path.line").count() > 3
    assert tab.page.locator("#plot-heat canvas").count() == 1
    assert len(seen["rows"]) == 2


def test_a_series_whose_bytes_are_corrupt_keeps_its_curve(tab, raw):
    text = page_html({"raw": raw})
    at = text.index('"bytes":"') + 60
    seen = tab.look(text[:at] + "AAAAAAAA" + text[at + 8 :])
    assert {one.split(" (")[0] for one in seen["trouble"]} == {"This chart could not be drawn"}
    assert tab.said
    assert seen["drawn"]
    assert any(seen["rows"][0][2:])
