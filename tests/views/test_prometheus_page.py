"""A page of a classic Prometheus histogram, and of a tool that prints its maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import latencykit as lk
from tests.views.conftest import model_of

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{le="0.005"} 200
http_request_duration_seconds_bucket{le="0.01"} 800
http_request_duration_seconds_bucket{le="0.1"} 950
http_request_duration_seconds_bucket{le="1"} 990
http_request_duration_seconds_bucket{le="+Inf"} 1000
http_request_duration_seconds_sum 25.3
http_request_duration_seconds_count 1000
"""

WRK = """Running 8s test @ http://127.0.0.1:18080/
  1 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.36ms  463.18us   7.71ms   95.75%
    Req/Sec     3.01k   153.71     3.35k    82.50%
  Latency Distribution
     50%    1.27ms
     75%    1.32ms
     90%    1.37ms
     99%    4.04ms
  24018 requests in 8.02s, 2.73MB read
Requests/sec:   2994.19
Transfer/sec:    347.96KB
"""


@pytest.fixture
def scrape(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.prom"
    path.write_text(TEXT)
    return path


def test_the_bucket_without_an_end_is_not_a_timeout(scrape: Path) -> None:
    data = lk.read(scrape)
    html = lk.report(data).html.partition("<script")[0]
    assert "timed out" not in html
    assert "timeouts" not in html
    assert "above the last bucket" in html
    assert "<li>histogram_quantile interpolates" in html  # as the function is spelt
    (row,) = data.percentile_rows([99.9])
    assert row.cause == "above the last bucket"
    third = ["ok", "ok", "timeout"]
    late = lk.Samples(start=[0, 1, 2], duration=[10**6, 10**6, 10**9], outcome=third)
    assert late.histogram().percentile_rows([99.9])[0].cause == "timeouts"


@pytest.mark.slow
@pytest.mark.needs_tool
def test_a_narrow_page_fits(scrape: Path, opened: Any) -> None:
    page = opened(lk.read(scrape), width=390)
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert page.locator("#plot-curve .label").all_text_contents() == ["≥ 1 s"]


@pytest.mark.slow
@pytest.mark.needs_tool
@pytest.mark.parametrize("width", [390, 800])
def test_the_maximum_of_wrk_is_as_it_is_printed(width: int, tmp_path: Path, opened: Any) -> None:
    path = tmp_path / "stdout.txt"
    path.write_text(WRK)
    out = lk.report(lk.read(path), tmp_path / "page.html")
    assert model_of(out.read_text())["series"][0]["curve"]["top"] == 7_710_000
    page = opened(out, width=width)
    label = page.locator("#plot-curve .label", has_text="max")
    assert label.text_content() == "max 7.71 ms"
    box, frame = label.bounding_box(), page.locator("#plot-curve svg").bounding_box()
    assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
