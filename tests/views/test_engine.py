"""The engine's rules are Python's: percentiles, ranges and their texts, on the same vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

import latencykit as lk
from latencykit.plot.axes import log_ticks
from latencykit.plot.timeline_chart import intervals_of
from latencykit.units import format_value
from latencykit.views.document import script_of
from latencykit.views.page_data import packed, page_bins
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
            buckets = histogram.buckets
            vectors.append(
                {
                    "low": buckets.low(histogram.index).tolist(),
                    "high": buckets.high(histogram.index).tolist(),
                    "counts": histogram.counts.tolist(),
                    "max": float(histogram.max),
                }
            )
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
    logs = [
        log_of_values(np.random.default_rng(k).lognormal(13, 0.5, (60, k)), np.arange(60.0))
        for k in (5, 40, 150)
    ]
    slow = log_of_values([[10**9]], [59.0])
    logs = [
        log.between(0, 59) + last for log in logs for last in (log_of_values([[9]], [59.0]), slow)
    ]
    code = """Promise.all(asked.map(async (one) => {
      const found = overTime(await unpack(one));
      return [100, 99, 50].map((p) => found[p].map((row) => row && row.value));
    }))"""
    found = engine(code, [packed(page_bins(log)[0]) for log in logs])
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
        assert not [
            word
            for word in ("eval(", "new Function", "fetch(", "import(", "\nimport {")
            if word in text
        ]


def test_intervals_of_differences_contain_the_true_one(engine: Any) -> None:
    """The median of 2,000 independent values, 60 times; scipy's ranks give about the same."""
    rng = np.random.default_rng(10)
    pairs, expected = [], []
    for _ in range(60):
        sides = []
        for shift in (0.0, 0.05):
            histogram = lk.Histogram.of(np.rint(1e6 * rng.lognormal(shift, 0.5, 2_000)))
            buckets = histogram.buckets
            sides.append(
                {
                    "low": buckets.low(histogram.index).tolist(),
                    "high": buckets.high(histogram.index).tolist(),
                    "counts": histogram.counts.tolist(),
                    "max": float(histogram.max),
                }
            )
        pairs.append(sides)
        expected.append(histogram.percentile(50))
    code = """asked.map((pair) => {
      const [a, b] = pair.map((one) => {
        const size = one.counts.length, index = one.counts.map((_, k) => k);
        const data = { ...one, open: [], from: [0, size], index, max: [one.max], sum: [0], count: [one.counts.reduce((a, b) => a + b, 0)] };
        const spread = distribution(data, 0, 1);
        return { ...rowAt(spread, 50), ...intervalAt(spread, 50, 1000) };
      });
      return { b, difference: differenceOf(a, b) };
    })"""
    results = engine(code, pairs)
    assert [one["b"]["value"] for one in results] == expected
    true = 1e6 * (np.exp(0.05) - 1)
    inside = [one["difference"]["from"] <= true <= one["difference"]["until"] for one in results]
    assert 0.9 < np.mean(inside) <= 1
    first, last = scipy.stats.binom.interval(0.95, 2_000, 0.5)
    spans = [one["b"]["until"] - one["b"]["from"] for one in results]
    normal = 1e6 * np.exp(0.05) * 0.5 * np.sqrt(2 * np.pi) * (last - first) / 2_000
    assert np.mean(spans) == pytest.approx(normal, rel=0.1)


def test_long_run_variance_is_that_of_blocks_of_every_length(engine: Any) -> None:
    rng = np.random.default_rng(11)
    residuals = []
    for size in (5, 20, 21, 60, 180, 300):
        noise = rng.normal(size=size)
        residuals += [noise, np.cumsum(noise), np.convolve(noise, np.ones(6))[:size]]
    results = engine("asked.map(longRun)", [one.tolist() for one in residuals])
    for residual, own in zip(residuals, results, strict=True):
        variance = long_run(residual[:, None])[0]
        settled, degrees = settled_and_degrees(residual)
        assert own["settled"] == settled
        if residual.size >= 20:
            assert own["variance"] == pytest.approx(variance, rel=1e-9)
            assert own["degrees"] == pytest.approx(degrees, rel=1e-9)


def long_run(residual: Any) -> Any:
    """Variance of column sums, from overlapping blocks of every length up to a tenth.

    The largest of them counts, and what the last doubling would add: blocks of n correlation times
    lack about 1/n of it.
    """
    n, columns = residual.shape
    if n < 20:
        return np.full(columns, np.inf)
    longest = max(1, n // 10)
    lengths = [1 << k for k in range(longest.bit_length())]
    lengths += [longest] if lengths[-1] < longest else []
    sums = np.concatenate((np.zeros((1, columns)), np.cumsum(residual, axis=0)))
    found = np.empty((len(lengths), columns))
    for k, length in enumerate(lengths):
        blocks = sums[length:] - sums[:-length]
        squares = (blocks * blocks).sum(axis=0)
        found[k] = squares / (n - length + 1) * n / length / (1 - length / n)
    half = max(k for k, length in enumerate(lengths) if length <= max(1, longest // 2))
    grown = found[-1] + np.maximum(found[-1] - found[half], 0.0)
    return np.maximum(found.max(axis=0), grown)


def settled_and_degrees(residual: Any) -> tuple[bool, float]:
    """Whether the last two doublings of the blocks hardly add variance, and degrees of freedom."""
    n = residual.size
    if n < 20:
        return False, 2.0
    longest = n // 10
    lengths = sorted({*(1 << k for k in range(longest.bit_length())), longest})
    sums = np.concatenate(([0.0], np.cumsum(residual)))
    found = [float(((sums[k:] - sums[:-k]) ** 2).mean() * n / k / (1 - k / n)) for k in lengths]
    quarter = max(k for k, length in enumerate(lengths) if length <= max(1, longest // 4))
    clearest = lengths[int(np.argmax(found))]
    return found[-1] <= 2 * found[quarter], max(1.5 * n / clearest - 1, 2.0)


def test_intervals_allow_for_latencies_that_drift(engine: Any) -> None:
    """Two halves of one process that wanders: their true difference is 0."""
    rng = np.random.default_rng(12)
    worlds, size = [], 240
    for _ in range(100):
        level = np.zeros(size)
        for k in range(1, size):
            level[k] = 0.5 * level[k - 1] + rng.normal(0, 0.03)
        duration = rng.lognormal(14 + np.repeat(level, 50), 0.4)
        samples = lk.Samples(start=np.arange(duration.size) * 20_000_000, duration=duration)
        worlds.append(packed(page_bins(samples.to_log("1s"))[0]) | {"reaching": True})
    code = """Promise.all(asked.map(async (one) => {
      const data = await unpack(one), half = data.start.length / 2, percentiles = [50, 90];
      const [a, b] = [[0, half], [half, 2 * half]].map((range) => partRows(data, [range], percentiles, true).rows);
      return percentiles.map((_, k) => differenceOf(a[k], b[k]));
    }))"""
    rows = list(zip(*engine(code, worlds), strict=True))
    for percentile, differences in zip((50, 90), rows, strict=True):
        stated = [one for one in differences if one["from"] is not None]
        inside = [one["from"] <= 0 <= one["until"] for one in stated]
        print(percentile, len(stated), np.mean(inside))
        assert len(stated) > 30, percentile
        assert np.mean(inside) > 0.88, percentile
