from __future__ import annotations

import pytest

import latencykit as lk
from latencykit.ctrlz.percentile_lines import read_percentile_lines

MS = 1e6
TEXTS = {
    "plow": "Latency Percentile:\n  P50     P75    P90   P95\n",
    "colons": "p50: 1200 us\np99: 3860 us\nmax: 4 ms\nmean: 1.5ms\n",
    "slow_cooker": "50th: 1.2ms\n99th percentile: 3.86 ms\nMax latency: 4ms\naverage=1.5 ms",
    "bars": "50.00%  1.200ms\n99.00%  3.860ms\n  avg 1.5ms\nmax=4ms",
    "k6": "http_req: avg=1.5ms min=1ms med=1.2ms max=4ms p(90)=2ms p(99)=3.86ms",
    "artillery": "min: ...... 1ms\np50 1.2ms\np99 3.86ms\nmax 4ms\nmean 1.5ms",
    "JSON": '{"p50_ms": 1.2, "p99_ms": "3.86", "mean": "1.5ms", "max": "4ms"}',
}


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "plow"])
def test_percentiles_are_read_as_printed(name) -> None:
    data = read_percentile_lines(TEXTS[name])
    assert data is not None
    assert data.percentile(50) == pytest.approx(1.2 * MS)
    assert data.percentile(99) == pytest.approx(3.86 * MS)
    assert (data.max, data.mean) == pytest.approx((4 * MS, 1.5 * MS))
    assert data.run.unit_from == "file"


def test_bare_numbers_need_a_unit() -> None:
    text = "Requests: 4000\n  50%      12\n  90%      800\n  99%      4029\n 100%      4100\n"
    assert read_percentile_lines(text).run.unit_from == "assumed"
    data = read_percentile_lines(text, "ms")
    assert isinstance(data, lk.Histogram)
    assert (data.count, data.percentile(99), data.max) == (4000, 4029 * MS, 4100 * MS)
    assert data.run.unit_from == "file"


def test_digits_without_a_point() -> None:
    data = read_percentile_lines("p50=1ms p999=3ms p9999=4ms")
    assert list(data.reported_percentiles) == [50, 99.9, 99.99]


@pytest.mark.parametrize(
    "text",
    ["", "p99: 3ms", "CPU 99% 12s", "p99: 1ms\np50: 2ms", "99% of 100 requests", TEXTS["plow"]],
)
def test_what_is_not_a_distribution_is_left(text) -> None:
    assert read_percentile_lines(text) is None
