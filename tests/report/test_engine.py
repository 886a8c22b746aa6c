"""The engine's rules are Python's: percentiles, ranges and their texts, on the same vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.units import format_value
from latencykit.views.page import script_of

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]
PERCENTILES = [1e-9, 1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 99.999, 100]


@pytest.fixture(scope="module")
def engine(browser: Any) -> Any:
    """A function that evaluates an expression with the engine's functions in scope."""
    page = browser.new_page()
    modules = script_of("main").partition("// The page and the widget")[0]
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
      const data = { ...one, from: [0, size], index, max: [one.max], sum: [0], count: [one.counts.reduce((a, b) => a + b, 0)] };
      const spread = distribution(data, 0, 1);
      return asked.percentiles.map((p) => rowAt(spread, p).value);
    })"""
    assert engine(code, {"vectors": vectors, "percentiles": PERCENTILES}) == expected


def test_texts_of_values(engine: Any) -> None:
    rng = np.random.default_rng(9)
    values = [0, 1, 9.5, 99.95, 999, 1000, 1049.5, 1_000_000, 59_999_999_999, 6e10, 2.5, 0.125]
    values += np.rint(10 ** rng.uniform(0, 12, 500)).tolist()
    texts = engine("asked.map((value) => valueText(value, 'ns'))", values)
    assert dict(zip(values, texts, strict=True)) == {one: format_value(one) for one in values}


def test_nothing_is_evaluated_and_nothing_is_fetched() -> None:
    for home in ("page", "widget"):
        text = script_of(home)
        assert not [
            word
            for word in ("eval(", "new Function", "fetch(", "import(", "\nimport {")
            if word in text
        ]
