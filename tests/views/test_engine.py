"""The engine's rules are Python's: percentiles, ranges and their texts, on the same vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.plot.axes import log_ticks
from latencykit.plot.timeline_chart import intervals_of
from latencykit.units import format_value
from latencykit.views.document import script_of
from latencykit.views.page_data import packed, page_bins
from tests.benchmarks.worlds import autoregression
from tests.conftest import log_of_values

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]
PERCENTILES = [1e-9, 1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 99.999, 100]


@pytest.fixture(scope="module")
def engine(browser: Any) -> Any:
    """A function that evaluates an expression with the engine's functions in scope."""
    page = browser.new_page()
    modules = script_of("main").partition("\nconst SECTIONS")[0]
    yield lambda code, given: page.evaluate(f"(asked) => {{ {modules}\nreturn ({code}); }}", given)
    page.close()


def test_percentiles_of_random_counts(engine: Any) -> None:
    rng = np.random.default_rng(8)
    vectors, expected = [], []
    for digits, size in ((1, 10), (2, 1_000), (3, 50_000), (3, 7), (2, 1)):
        for scale in (1, 1e3, 1e6):
            values = np.rint(scale * rng.lognormal(3, 1.5, size))
            histogram = lk.Histogram.of(values, digits=digits)
            ends = (histogram.buckets.low, histogram.buckets.high)
            low, high = (end(histogram.index).tolist() for end in ends)
            vector = {"low": low, "high": high, "counts": histogram.counts.tolist()}
            vectors.append(vector | {"max": float(histogram.max)})
            found = histogram.percentile(PERCENTILES)
            expected.append(np.minimum(found, histogram.max).tolist())
    code = """asked.vectors.map((one) => {
      const size = one.counts.length, index = one.counts.map((_, k) => k);
      const data = { ...one, open: [], from: [0, size], index, max: [one.max], sum: [0], count: [one.counts.reduce((a, b) => a + b, 0)] };
      const spread = distribution(data, 0, 1);
      return asked.percentiles.map((p) => rowAt(spread, p).value);
    })"""
    assert engine(code, {"vectors": vectors, "percentiles": PERCENTILES}) == expected


def test_texts_of_values(engine: Any) -> None:
    rng = np.random.default_rng(9)
    values = [0, 1, 9.5, 99.95, 999, 1000, 1049.5, 1_000_000, 59_999_999_999, 6e10, 2.5, 0.125]
    values += np.rint(10 ** rng.uniform(0, 16, 700)).tolist()
    texts = engine("asked.map((value) => valueText(value, 'ns'))", values)
    assert dict(zip(values, texts, strict=True)) == {one: format_value(one) for one in values}
    expected = log_ticks(1e5, 1e15, 99, 1e9)
    assert np.allclose(engine("logTicks(...asked)", [1e5, 1e15, 1e9]), expected, rtol=1e-12)


def test_lines_over_time_are_those_of_the_chart(engine: Any) -> None:
    """No percentile of fewer requests than it takes; the few of a last bin draw no leap."""
    values = [np.random.default_rng(k).lognormal(13, 0.5, (59, k)) for k in (5, 40, 150)]
    ends = [log_of_values([[value]], [59.0]) for value in (9, 10**9)]
    logs = [log_of_values(own) + end for own in values for end in ends]
    code = """Promise.all(asked.map(async (one) => {
      const found = overTime(await unpack(one));
      return [100, 99, 50].map((p) => found[p].map((row) => row && row.value));
    }))"""
    found = engine(code, [packed(page_bins(log)) for log in logs])
    for log, lines in zip(logs, found, strict=True):
        values = intervals_of(log, (99, 50)).values
        for own, p in zip(lines, (100, 99, 50), strict=True):
            assert np.array_equal(np.array(own, float), values[p], equal_nan=True), p
    assert found[0][0][-1] is None
    assert found[0][1][-1] is None
    assert found[1][0][-1] > 9e8


def test_nothing_is_evaluated_and_nothing_is_fetched() -> None:
    for home in ("page", "widget"):
        text = script_of(home)
        words = ("eval(", "new Function", "fetch(", "import(", "\nimport {")
        assert not [word for word in words if word in text]


@pytest.mark.parametrize("step", [0.0, 0.03])
def test_intervals_of_differences_contain_the_true_one(engine: Any, step: float) -> None:
    """Two halves of one process, steady or one that wanders: their true difference is 0."""
    rng = np.random.default_rng(12)
    worlds, size = [], 240
    for _ in range(100):
        level = step / 0.75**0.5 * autoregression(rng, size, 0.5)
        duration = rng.lognormal(14 + np.repeat(level, 50), 0.4)
        samples = lk.Samples(start=np.arange(duration.size) * 20_000_000, duration=duration)
        worlds.append(packed(page_bins(samples.to_log("1s"))))
    code = """Promise.all(asked.map(async (one) => {
      const data = await unpack(one), half = data.start.length / 2, percentiles = [50, 90];
      const [a, b] = [[0, half], [half, 2 * half]].map((range) => partRows(data, [range], percentiles, true).rows);
      return percentiles.map((_, k) => differenceOf(a[k], b[k]));
    }))"""
    spreads = (0.4 * 1.2533, 0.4 * 1.709)  # of a normal quantile, p50 and p90, times the root of n
    rows = list(zip(*engine(code, worlds), strict=True))
    for z, spread, differences in zip((0.0, 1.2816), spreads, rows, strict=True):
        stated = [one for one in differences if one["from"] is not None]
        assert len(stated) > 90
        assert np.mean([one["from"] <= 0 <= one["until"] for one in stated]) > 0.88
        width = np.median([one["until"] - one["from"] for one in stated])
        alone = 2 * 1.96 * spread * np.exp(14 + 0.4 * z) * np.sqrt(2 / 6000)
        assert 0.9 < width / alone < (1.6 if step == 0 else 8)
